//! Synopses from a folder, as [`bernstream_kafka::sink::files`] writes them. A file appears under its name when it is complete, and is read
//! once.

use std::collections::HashMap;
use std::fs;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use super::error::Error;
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

/// The files of the last scan.
type Seen = HashMap<PathBuf, Stamp>;

/// Modification time and size: they differ if a file was replaced.
type Stamp = (Option<SystemTime>, u64);

/// # Errors
///
/// If the folder does not exist.
pub(super) fn check(folder: &Path) -> Result<(), Error> {
    let path = folder.to_owned();
    match folder.metadata() {
        Ok(about) if about.is_dir() => Ok(()),
        Ok(_) => Err(Error::NotAFolder { path }),
        Err(_) => Err(Error::NoFolder { path }),
    }
}

/// Reads until `stop` is set.
///
/// # Errors
///
/// If the folder disappears or cannot be listed.
pub(super) fn follow(folder: &Path, feed: &Feed, stop: &StopFlag) -> Result<(), Error> {
    let mut seen = Seen::new();
    while !stop.is_set() {
        let started = Instant::now();
        check(folder)?;
        let found = scan(folder)?;
        feed.connected();
        for path in newest(&found, &seen) {
            read(folder, path, feed);
            if stop.is_set() {
                break;
            }
        }
        seen = found.into_iter().collect();
        stop.wait(SCAN_PAUSE.max(started.elapsed() * PAUSE_FACTOR));
    }
    Ok(())
}

/// Every file, sorted by path.
fn scan(folder: &Path) -> Result<Vec<(PathBuf, Stamp)>, Error> {
    let paths = files::synopses(&files::Params {
        path: folder.to_owned(),
        witness: None,
    })?;
    let stamp = |path: PathBuf| {
        // Regular files only: a link or a pipe was not written by a sink, and may never end.
        let metadata = fs::symlink_metadata(&path)
            .ok()
            .filter(fs::Metadata::is_file)?;
        Some((path, (metadata.modified().ok(), metadata.len())))
    };
    Ok(paths.into_iter().filter_map(stamp).collect())
}

/// The new files, only the newest windows of each key; file names sort by window, oldest first.
fn newest<'a>(found: &'a [(PathBuf, Stamp)], seen: &Seen) -> Vec<&'a Path> {
    let new: Vec<&Path> = found
        .iter()
        .filter(|(path, stamp)| seen.get(path) != Some(stamp))
        .map(|(path, _)| path.as_path())
        .collect();
    let of_each_key = new.chunk_by(|one, other| one.parent() == other.parent());
    let mut newest: Vec<&Path> = of_each_key
        .flat_map(|files| {
            files
                .iter()
                .skip(files.len().saturating_sub(PER_KEY))
                .copied()
        })
        .collect();
    newest.sort_by_key(|path| path.file_name());
    newest
}

fn read(folder: &Path, path: &Path, feed: &Feed) {
    let name = || {
        path.strip_prefix(folder)
            .unwrap_or(path)
            .display()
            .to_string()
    };
    let bytes = fs::File::open(path).and_then(|file| {
        let mut bytes = Vec::new();
        file.take(MAX_BYTES + 1)
            .read_to_end(&mut bytes)
            .map(|_| bytes)
    });
    match bytes {
        Ok(bytes) if bytes.len() as u64 > MAX_BYTES => {
            feed.reject(name(), format!("it is larger than {MAX_BYTES} bytes"));
        }
        Ok(bytes) => feed.put(name, &bytes),
        // It was deleted after the scan.
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => feed.reject(name(), error.to_string()),
    }
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
        let found: Vec<PathBuf> = scan(folder.path())
            .unwrap()
            .into_iter()
            .map(|(path, _)| path)
            .collect();
        assert_eq!(found, [at("a.arrows")]);
    }

    #[test]
    fn only_new_files_are_read_and_of_many_the_newest_of_each_key() {
        let stamp = (None, 1);
        let file = |name: String| (PathBuf::from(name), stamp);
        let mut found: Vec<_> = (0..100)
            .map(|day| file(format!("out/r/JFK/{day:03}.arrows")))
            .collect();
        found.push(file("out/r/LGA/050.arrows".to_owned()));
        let read = newest(&found, &Seen::new());
        assert_eq!(read.len(), PER_KEY + 1);
        assert_eq!(read.first(), Some(&Path::new("out/r/JFK/040.arrows")));
        assert_eq!(
            read[10..12],
            [
                Path::new("out/r/JFK/050.arrows"),
                Path::new("out/r/LGA/050.arrows")
            ]
        );
        let mut seen: Seen = found.iter().cloned().collect();
        assert!(newest(&found, &seen).is_empty());
        seen.insert("out/r/JFK/007.arrows".into(), (None, 2));
        assert_eq!(
            newest(&found, &seen),
            [Path::new("out/r/JFK/007.arrows")],
            "it was written anew"
        );
    }
}
