//! Synopses from a folder, as [`bernstream_kafka::sink::files`] writes them. A file appears under its name when it is complete, and is read
//! once.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use super::error::FeedError;
use super::live::Feed;
use super::stop_flag::StopFlag;
use super::synopsis_cache::PER_KEY;
use bernstream_kafka::sink::files;

/// The pause between two scans of the folder, if scanning is fast.
const SCAN_PAUSE: Duration = Duration::from_millis(200);
/// The pause is at least this many times as long as the scan.
const PAUSE_FACTOR: u32 = 10;
/// Larger files are not read: no synopsis has this size.
const MAX_BYTES: u64 = 64 << 20;

/// Files by their paths.
type FolderFiles = BTreeMap<PathBuf, FileStamp>;

/// Marks of a file that differ if it was replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileStamp {
    modified: Option<SystemTime>,
    size: u64,
}

/// # Errors
///
/// If the folder does not exist.
pub(super) fn check_folder(folder: &Path) -> Result<(), FeedError> {
    let path = folder.to_owned();
    match folder.metadata() {
        Ok(about) if about.is_dir() => Ok(()),
        Ok(_) => Err(FeedError::NotAFolder { path }),
        Err(_) => Err(FeedError::NoFolder { path }),
    }
}

/// Reads until `stop` is set.
///
/// # Errors
///
/// If the folder disappears or cannot be listed.
pub(super) fn follow_folder(folder: &Path, feed: &Feed, stop: &StopFlag) -> Result<(), FeedError> {
    let mut seen = FolderFiles::new();
    while !stop.is_set() {
        let started = Instant::now();
        check_folder(folder)?;
        let found = scan_folder(folder)?;
        feed.set_connected();
        for path in newest_files(&found, &seen) {
            read_file(folder, path, feed);
            if stop.is_set() {
                break;
            }
        }
        seen = found;
        stop.wait(SCAN_PAUSE.max(started.elapsed() * PAUSE_FACTOR));
    }
    Ok(())
}

/// Every file of the folder.
fn scan_folder(folder: &Path) -> Result<FolderFiles, FeedError> {
    let paths = files::synopsis_files(&files::FolderSinkParams {
        path: folder.to_owned(),
        witness: None,
    })?;
    let mut found = FolderFiles::new();
    for path in paths {
        // Regular files only: a link or a pipe was not written by a sink, and may never end.
        if let Ok(about) = fs::symlink_metadata(&path)
            && about.is_file()
        {
            let stamp = FileStamp {
                modified: about.modified().ok(),
                size: about.len(),
            };
            found.insert(path, stamp);
        }
    }
    Ok(found)
}

/// The new files, only the newest windows of each key; file names sort by window, oldest first.
fn newest_files<'a>(found: &'a FolderFiles, seen: &FolderFiles) -> Vec<&'a Path> {
    let mut new: Vec<&Path> = Vec::new();
    for (path, stamp) in found {
        if seen.get(path) != Some(stamp) {
            new.push(path);
        }
    }
    let mut newest: Vec<&Path> = Vec::new();
    for files in new.chunk_by(|one, other| one.parent() == other.parent()) {
        newest.extend(files.iter().skip(files.len().saturating_sub(PER_KEY)));
    }
    newest.sort_by_key(|path| path.file_name());
    newest
}

fn read_file(folder: &Path, path: &Path, feed: &Feed) {
    let name = path.strip_prefix(folder).unwrap_or(path);
    match read_bytes(path) {
        Ok(bytes) if bytes.len() as u64 > MAX_BYTES => {
            let why = format!("it is larger than {MAX_BYTES} bytes");
            feed.reject_message(name.display().to_string(), why);
        }
        Ok(bytes) => feed.add_message(|| name.display().to_string(), &bytes),
        // It was deleted after the scan.
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => feed.reject_message(name.display().to_string(), error.to_string()),
    }
}

/// The content of a file, of a larger one a byte more than [`MAX_BYTES`].
fn read_bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    fs::File::open(path)?
        .take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_pipes_are_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("a.arrows"), "whole").unwrap();
        std::os::unix::fs::symlink("/dev/zero", at("b.arrows")).unwrap();
        assert!(
            std::process::Command::new("mkfifo")
                .arg(at("c.arrows"))
                .status()
                .unwrap()
                .success()
        );
        let found: Vec<PathBuf> = scan_folder(folder.path()).unwrap().into_keys().collect();
        assert_eq!(found, [at("a.arrows")]);
    }

    #[test]
    fn only_new_files_are_read_and_of_many_the_newest_of_each_key() {
        let stamp = FileStamp {
            modified: None,
            size: 1,
        };
        let mut found = FolderFiles::new();
        for day in 0..100 {
            found.insert(format!("out/r/JFK/{day:03}.arrows").into(), stamp);
        }
        found.insert("out/r/LGA/050.arrows".into(), stamp);
        let read = newest_files(&found, &FolderFiles::new());
        assert_eq!(read.len(), PER_KEY + 1);
        assert_eq!(read.first(), Some(&Path::new("out/r/JFK/040.arrows")));
        assert_eq!(
            read[10..12],
            [
                Path::new("out/r/JFK/050.arrows"),
                Path::new("out/r/LGA/050.arrows")
            ]
        );
        let mut seen = found.clone();
        assert!(newest_files(&found, &seen).is_empty());
        seen.insert(
            "out/r/JFK/007.arrows".into(),
            FileStamp {
                modified: None,
                size: 2,
            },
        );
        assert_eq!(
            newest_files(&found, &seen),
            [Path::new("out/r/JFK/007.arrows")],
            "it was written anew"
        );
    }
}
