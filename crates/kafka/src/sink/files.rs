//! Publishing to a folder: one file per synopsis, `<pipeline>/<release>/<key>/<window start>.arrows`. Overlapping windows use the
//! start of their newest pane.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::thread;

use sha2::{Digest, Sha256};

use super::error::Error;
use super::publish::{Sink, Unpublished};
use super::published::Published;
use super::tail::{Part, Seen, Tail};
use bernstream_ledger::{Paid, PublishedMessage};
use bernstream_synopsis::Encoded;

const EXTENSION: &str = "arrows";
/// The longest name that file systems take, in bytes.
const LONGEST_NAME: usize = 255;
/// How many files are written at a time.
const AT_ONCE: usize = 32;

#[derive(Clone, Debug)]
pub struct Params {
    pub path: PathBuf,
    /// The witness, outside the folder; without it the file `witness` in it.
    pub witness: Option<PathBuf>,
}

impl Params {
    /// The path of the witness.
    pub fn witness(&self) -> PathBuf {
        self.witness
            .clone()
            .unwrap_or_else(|| self.path.join("witness"))
    }
}

/// A folder of synopses.
#[derive(Debug)]
pub struct FolderSink {
    params: Params,
}

impl FolderSink {
    pub fn new(params: &Params) -> Self {
        FolderSink {
            params: params.clone(),
        }
    }
}

impl Sink for FolderSink {
    fn publish(&mut self, paid: &[Paid]) -> Result<(), Unpublished> {
        let messages: Vec<&Encoded> = paid.iter().map(Paid::encoded).collect();
        write(&self.params.path, &messages)
    }

    fn tail(&mut self, _newest: &[PublishedMessage]) -> Result<Option<Tail>, Error> {
        let all = synopses(&self.params)?;
        // Sorted by folder, and in each by window.
        let newest: Vec<PathBuf> = all
            .chunk_by(|one, next| one.parent() == next.parent())
            .filter_map(|folder| folder.last().cloned())
            .collect();
        let mut parts = Vec::new();
        each_synopsis(&newest, |place, bytes| {
            if let Some(seen) = Seen::of(0, &Published::of_bytes(place, bytes)) {
                let mut part = Part::default();
                part.take(seen, true);
                parts.push(part);
            }
        })?;
        Ok(Some(Tail {
            parts,
            has_keys: false,
        }))
    }
}

/// Writes each synopsis to its file, durably, up to the first one that fails.
fn write(folder: &Path, synopses: &[&Encoded]) -> Result<(), Unpublished> {
    let drafted = side_by_side(synopses, |message| draft(folder, message));
    let mut failed = None;
    let mut written = Vec::new();
    for drafted in drafted {
        match drafted.and_then(Drafted::finish) {
            Ok(path) => written.push(path),
            Err(error) => {
                failed = Some(error);
                break;
            }
        }
    }
    // Even of a file that existed: a crash may have come between its new name and this.
    let above = written.iter().flat_map(|path| {
        path.ancestors()
            .skip(1)
            .take_while(|at| at.starts_with(folder))
    });
    let folders: Vec<&Path> = above.collect::<BTreeSet<_>>().into_iter().collect();
    let sync = |folder: &&Path| {
        File::open(folder)
            .and_then(|folder| folder.sync_all())
            .map_err(|error| Error::File {
                path: folder.to_path_buf(),
                why: error.to_string(),
            })
    };
    if let Some(error) = side_by_side(&folders, sync)
        .into_iter()
        .find_map(Result::err)
    {
        return Err(Unpublished { durable: 0, error });
    }
    failed.map_or(Ok(()), |error| {
        Err(Unpublished {
            durable: written.len(),
            error,
        })
    })
}

/// A synopsis on the disk, perhaps not under its own name yet.
struct Drafted {
    path: PathBuf,
    /// Where it is, if not there.
    draft: Option<PathBuf>,
}

/// Writes a synopsis beside its file, durably, unless it has one.
fn draft(folder: &Path, message: &Encoded) -> Result<Drafted, Error> {
    let path = folder.join(name(message)?);
    let draft = path.with_extension("new");
    let write = || {
        match fs::read(&path) {
            Ok(bytes) if bytes == message.bytes => return Ok(Some(None)),
            Ok(_) => return Ok(None),
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            Err(_) => {}
        }
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        let mut file = File::create(&draft)?;
        file.write_all(&message.bytes)?;
        file.sync_all()?;
        Ok(Some(Some(draft)))
    };
    match write() {
        Ok(Some(draft)) => Ok(Drafted { path, draft }),
        Ok(None) => Err(Error::Different { path }),
        Err(error) => Err(Error::File {
            path,
            why: error.to_string(),
        }),
    }
}

impl Drafted {
    /// Gives the file its own name.
    fn finish(self) -> Result<PathBuf, Error> {
        let Drafted { path, draft } = self;
        match draft.map_or(Ok(()), |draft| fs::rename(draft, &path)) {
            Ok(()) => Ok(path),
            Err(error) => Err(Error::File {
                path,
                why: error.to_string(),
            }),
        }
    }
}

/// Does the same for all items, many at a time: a disk syncs many files in about the time of one.
fn side_by_side<I: Sync, O: Send>(items: &[I], act: impl Fn(&I) -> O + Sync) -> Vec<O> {
    let all = |part: &[I]| part.iter().map(&act).collect::<Vec<O>>();
    let all = &all;
    let size = items.len().div_ceil(AT_ONCE).max(1);
    thread::scope(|scope| {
        let begin = |part| {
            (
                part,
                thread::Builder::new().spawn_scoped(scope, move || all(part)),
            )
        };
        let threads: Vec<_> = items.chunks(size).map(begin).collect();
        let end = |(part, thread): (_, io::Result<thread::ScopedJoinHandle<'_, _>>)| match thread {
            Ok(thread) => thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            // The system gives no further thread.
            Err(_) => all(part),
        };
        threads.into_iter().flat_map(end).collect()
    })
}

/// The file of a synopsis below the folder, from its headers.
///
/// Two synopses share a name only if source, key and window are the same.
///
/// # Errors
///
/// [`Error::Header`] if a header is missing.
pub fn name(message: &Encoded) -> Result<PathBuf, Error> {
    let header = |name| {
        message
            .headers
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, value)| value.as_str())
    };
    let source = header("ce_source").ok_or(Error::Header("ce_source"))?;
    let start = header("pane_start")
        .or(header("window_start"))
        .ok_or(Error::Header("window_start"))?;
    let source = source.strip_prefix("/bernstream/").unwrap_or(source);
    let mut path: PathBuf = source.split('/').map(safe).collect();
    path.extend(header("ce_subject").map(safe));
    // Some file systems do not allow colons in names.
    path.push(format!("{}.{EXTENSION}", safe(&start.replace(':', ""))));
    Ok(path)
}

/// `text` as the name of a file or folder: special characters are escaped, what is too long ends with a digest of all of it, and different
/// texts have different names.
fn safe(text: &str) -> String {
    let mut name = escaped(text);
    if name.len() > LONGEST_NAME {
        let digest: String = Sha256::digest(text)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        // No escaped text has a tilde.
        name.truncate(LONGEST_NAME - 1 - digest.len());
        name = format!("{name}~{digest}");
    }
    name
}

fn escaped(text: &str) -> String {
    let escape = |(place, byte): (usize, u8)| match byte {
        b'.' if place == 0 => "%2E".to_string(),
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    };
    if text.is_empty() {
        "%".into()
    } else {
        text.bytes().enumerate().map(escape).collect()
    }
}

/// A synopsis of each folder in the output that is not that of `pipeline`, if it has one.
///
/// # Errors
///
/// If a folder cannot be listed.
pub fn not_of(params: &Params, pipeline: &str) -> Result<Vec<PathBuf>, Error> {
    let unlisted = |error: io::Error| Error::File {
        path: params.path.clone(),
        why: error.to_string(),
    };
    let entries = match fs::read_dir(&params.path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(unlisted)?,
    };
    let own = safe(pipeline);
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(unlisted)?;
        if entry.file_name() != *own && entry.file_type().map_err(unlisted)?.is_dir() {
            found.extend(synopses_below(&entry.path())?.into_iter().next());
        }
    }
    Ok(found)
}

/// The path of every synopsis in the folder, sorted.
///
/// # Errors
///
/// If a folder cannot be listed.
pub fn synopses(params: &Params) -> Result<Vec<PathBuf>, Error> {
    synopses_below(&params.path)
}

/// The same of the folder at this path.
///
/// # Errors
///
/// As for [`synopses`].
pub fn synopses_below(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let mut list = || {
            for entry in fs::read_dir(&folder)? {
                let entry = entry?;
                if entry.file_type()?.is_dir() {
                    folders.push(entry.path());
                } else if entry
                    .path()
                    .extension()
                    .is_some_and(|extension| extension == EXTENSION)
                {
                    found.push(entry.path());
                }
            }
            Ok::<(), io::Error>(())
        };
        match list() {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(Error::File {
                    path: folder,
                    why: error.to_string(),
                });
            }
            _ => {}
        }
    }
    found.sort();
    Ok(found)
}

/// Passes the path and the bytes of each of these synopses to `each`; those that were removed since are left out.
///
/// # Errors
///
/// If a file cannot be read.
pub fn each_synopsis(
    paths: &[PathBuf],
    mut each: impl FnMut(String, Vec<u8>),
) -> Result<(), Error> {
    for path in paths {
        match fs::read(path) {
            Ok(bytes) => each(path.display().to_string(), bytes),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => {
                return Err(Error::File {
                    path: path.clone(),
                    why: error.to_string(),
                });
            }
        }
    }
    Ok(())
}

/// Whether no synopsis was ever written to the folder, or none is left.
///
/// # Errors
///
/// If the folder cannot be listed.
pub fn is_untouched(params: &Params) -> Result<bool, Error> {
    Ok(synopses(params)?.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed(source: &str, subject: Option<&str>, bytes: &[u8]) -> Encoded {
        let mut headers = vec![
            ("ce_source", source),
            ("window_start", "2013-01-01T05:00:00Z"),
        ];
        headers.extend(subject.map(|subject| ("ce_subject", subject)));
        let headers = headers
            .into_iter()
            .map(|(n, v)| (n.to_string(), v.to_string()))
            .collect();
        Encoded {
            key: "k".into(),
            headers,
            bytes: bytes.to_vec(),
        }
    }

    #[test]
    fn a_synopsis_has_a_file_of_its_own_inside_the_folder() {
        let name = |source, subject| {
            name(&sealed(source, subject, b""))
                .unwrap()
                .display()
                .to_string()
        };
        assert_eq!(
            name("/bernstream/p/r", Some("EWR")),
            "p/r/EWR/2013-01-01T050000Z.arrows"
        );
        assert_eq!(
            name("/bernstream/p/r", None),
            "p/r/2013-01-01T050000Z.arrows"
        );
        assert_eq!(
            name("/bernstream/../r", Some("../x")),
            "%2E./r/%2E.%2Fx/2013-01-01T050000Z.arrows"
        );
        assert_eq!(
            name("/bernstream/p/r", Some("")),
            "p/r/%/2013-01-01T050000Z.arrows"
        );
        assert_eq!(
            name("/bernstream/p/r", Some("a b")),
            "p/r/a%20b/2013-01-01T050000Z.arrows"
        );
        assert_eq!(
            name("/bernstream/p/r", Some("a%20b")),
            "p/r/a%2520b/2013-01-01T050000Z.arrows"
        );
        let [one, other] = ["a", "b"].map(|last| "東".repeat(99) + last);
        let [one, other] = [&one, &other].map(|key| name("/bernstream/p/r", Some(key)));
        assert!(
            one != other && one.split('/').all(|part| part.len() <= LONGEST_NAME),
            "{one}"
        );
    }

    #[test]
    fn the_same_bytes_may_come_again_and_other_bytes_may_not() {
        let folder = tempfile::tempdir().unwrap();
        let params = Params {
            path: folder.path().join("out"),
            witness: None,
        };
        assert!(is_untouched(&params).unwrap());
        let first = sealed("/bernstream/p/r", Some("EWR"), b"one");
        write(&params.path, &[&first]).unwrap();
        write(&params.path, &[&first]).unwrap();
        let other = sealed("/bernstream/p/r", Some("EWR"), b"two");
        let Unpublished { durable, error } = write(&params.path, &[&other]).unwrap_err();
        assert!(matches!(error, Error::Different { .. }) && !error.is_transient() && durable == 0);
        assert!(!is_untouched(&params).unwrap());
        let found = synopses(&params).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(fs::read(&found[0]).unwrap(), b"one");
    }

    #[test]
    fn a_draft_that_a_crash_left_is_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let params = Params {
            path: folder.path().into(),
            witness: None,
        };
        let first = sealed("/bernstream/p/r", None, b"one");
        let draft = folder.path().join("p/r/2013-01-01T050000Z.new");
        fs::create_dir_all(draft.parent().unwrap()).unwrap();
        fs::write(&draft, b"on").unwrap();
        assert!(is_untouched(&params).unwrap());
        write(&params.path, &[&first]).unwrap();
        assert!(!draft.exists());
        assert_eq!(synopses(&params).unwrap().len(), 1);
    }
}
