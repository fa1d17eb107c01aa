//! Publishing to a folder: one file per synopsis, `<pipeline>/<release>/<key>/<window start>.arrows`. Overlapping windows use the
//! start of their newest pane.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::thread;

use sha2::{Digest, Sha256};

use super::error::SinkError;
use super::publish::{Sink, Unpublished};
use super::published::FoundMessage;
use super::tail::{OutputTail, SeenSynopsis, TailPart};
use bernstream_ledger::{Paid, PublishedMessage};
use bernstream_synopsis::Encoded;

const EXTENSION: &str = "arrows";
/// The longest name that file systems take, in bytes.
const LONGEST_NAME: usize = 255;
/// Number of files that are written at a time.
const AT_ONCE: usize = 32;

#[derive(Clone, Debug)]
pub struct FolderSinkParams {
    pub path: PathBuf,
    /// The witness, outside the folder; without it the file `witness` in it.
    pub witness: Option<PathBuf>,
}

impl FolderSinkParams {
    /// The path of the witness.
    pub fn witness_path(&self) -> PathBuf {
        self.witness
            .clone()
            .unwrap_or_else(|| self.path.join("witness"))
    }
}

/// A folder of synopses.
#[derive(Debug)]
pub struct FolderSink {
    params: FolderSinkParams,
}

impl FolderSink {
    pub fn new(params: &FolderSinkParams) -> Self {
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

    fn read_tail(&mut self, _newest: &[PublishedMessage]) -> Result<Option<OutputTail>, SinkError> {
        let all = synopsis_files(&self.params)?;
        // Sorted by folder, and in each by window.
        let newest: Vec<PathBuf> = all
            .chunk_by(|one, next| one.parent() == next.parent())
            .filter_map(|folder| folder.last().cloned())
            .collect();
        let mut parts = Vec::new();
        each_synopsis(&newest, |place, bytes| {
            if let Some(seen) =
                SeenSynopsis::from_published(0, &FoundMessage::of_bytes(place, bytes))
            {
                let mut part = TailPart::default();
                part.add_message(seen, true);
                parts.push(part);
            }
        })?;
        Ok(Some(OutputTail {
            parts,
            has_keys: false,
        }))
    }
}

/// Writes each synopsis to its file, durably, up to the first one that fails.
fn write(folder: &Path, synopses: &[&Encoded]) -> Result<(), Unpublished> {
    let drafted = side_by_side(synopses, |message| write_draft(folder, message));
    let mut failed = None;
    let mut written = Vec::new();
    for drafted in drafted {
        match drafted.and_then(DraftedFile::rename_draft) {
            Ok(path) => written.push(path),
            Err(error) => {
                failed = Some(error);
                break;
            }
        }
    }
    // Even of a file that existed: a crash may have come between its new name and this.
    let mut folders = BTreeSet::new();
    for path in &written {
        let above = path.ancestors().skip(1);
        folders.extend(above.take_while(|parent| parent.starts_with(folder)));
    }
    let folders: Vec<&Path> = folders.into_iter().collect();
    for synced in side_by_side(&folders, |folder| sync_folder(folder)) {
        synced.map_err(|error| Unpublished { durable: 0, error })?;
    }
    match failed {
        None => Ok(()),
        Some(error) => Err(Unpublished {
            durable: written.len(),
            error,
        }),
    }
}

fn sync_folder(folder: &Path) -> Result<(), SinkError> {
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(|error| file_error(folder, &error))
}

fn file_error(path: &Path, error: &io::Error) -> SinkError {
    SinkError::File {
        path: path.to_owned(),
        why: error.to_string(),
    }
}

/// A synopsis on the disk, perhaps not under its own name yet.
struct DraftedFile {
    path: PathBuf,
    /// Where it is, if not there.
    draft: Option<PathBuf>,
}

/// Writes a synopsis beside its file, durably, unless it has one.
fn write_draft(folder: &Path, message: &Encoded) -> Result<DraftedFile, SinkError> {
    let path = folder.join(synopsis_path(message)?);
    match fs::read(&path) {
        Ok(bytes) if bytes == message.bytes => return Ok(DraftedFile { path, draft: None }),
        Ok(_) => return Err(SinkError::Different { path }),
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(file_error(&path, &error)),
        Err(_) => {}
    }
    let draft = path.with_extension("new");
    match write_durably(&draft, &message.bytes) {
        Ok(()) => Ok(DraftedFile {
            path,
            draft: Some(draft),
        }),
        Err(error) => Err(file_error(&path, &error)),
    }
}

/// Writes a file, and the folders that it lies in where they are missing.
fn write_durably(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

impl DraftedFile {
    /// Gives the file its own name.
    fn rename_draft(self) -> Result<PathBuf, SinkError> {
        let DraftedFile { path, draft } = self;
        if let Some(draft) = draft
            && let Err(error) = fs::rename(draft, &path)
        {
            return Err(file_error(&path, &error));
        }
        Ok(path)
    }
}

/// Does one thing for all items, many at a time: a disk syncs many files in about the time of one.
fn side_by_side<I: Sync, O: Send>(items: &[I], act: impl Fn(&I) -> O + Sync) -> Vec<O> {
    let act = &act;
    let size = items.len().div_ceil(AT_ONCE).max(1);
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for part in items.chunks(size) {
            let work = move || part.iter().map(act).collect::<Vec<O>>();
            threads.push(thread::Builder::new().spawn_scoped(scope, work));
        }
        let mut outcomes = Vec::with_capacity(items.len());
        for (part, thread) in items.chunks(size).zip(threads) {
            match thread {
                Ok(thread) => match thread.join() {
                    Ok(done) => outcomes.extend(done),
                    Err(panic) => std::panic::resume_unwind(panic),
                },
                // The system gives no further thread.
                Err(_) => outcomes.extend(part.iter().map(act)),
            }
        }
        outcomes
    })
}

/// The file of a synopsis below the folder, from its headers.
///
/// Two synopses share a name only if source, key and window are the same.
///
/// # Errors
///
/// [`SinkError::Header`] if a header is missing.
pub fn synopsis_path(message: &Encoded) -> Result<PathBuf, SinkError> {
    let source = message_header(message, "ce_source").ok_or(SinkError::Header("ce_source"))?;
    let start = message_header(message, "pane_start")
        .or(message_header(message, "window_start"))
        .ok_or(SinkError::Header("window_start"))?;
    let source = source.strip_prefix("/bernstream/").unwrap_or(source);
    let mut path: PathBuf = source.split('/').map(file_name).collect();
    path.extend(message_header(message, "ce_subject").map(file_name));
    // Some file systems do not allow colons in names.
    let start = file_name(&start.replace(':', ""));
    path.push(format!("{start}.{EXTENSION}"));
    Ok(path)
}

fn message_header<'m>(message: &'m Encoded, wanted: &str) -> Option<&'m str> {
    for (name, value) in &message.headers {
        if name == wanted {
            return Some(value);
        }
    }
    None
}

/// `text` as the name of a file or folder: special characters are escaped, what is too long ends with a digest of all of it, and different
/// texts have different names.
fn file_name(text: &str) -> String {
    let mut name = escaped_name(text);
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

fn escaped_name(text: &str) -> String {
    if text.is_empty() {
        return "%".into();
    }
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'.' if escaped.is_empty() => escaped.push_str("%2E"),
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => {
                escaped.push(char::from(byte));
            }
            _ => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    escaped
}

/// A synopsis of each folder in the output that is not that of `pipeline`, if it has one.
///
/// # Errors
///
/// If a folder cannot be listed.
pub fn other_pipelines(
    params: &FolderSinkParams,
    pipeline: &str,
) -> Result<Vec<PathBuf>, SinkError> {
    let folders = folders_except(&params.path, &file_name(pipeline))
        .map_err(|error| file_error(&params.path, &error))?;
    let mut found = Vec::new();
    for folder in folders {
        found.extend(synopses_below(&folder)?.into_iter().next());
    }
    Ok(found)
}

/// The folders in `folder` but for the one with the name `except`; none if it does not exist.
fn folders_except(folder: &Path, except: &str) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry?;
        if entry.file_name() != *except && entry.file_type()?.is_dir() {
            found.push(entry.path());
        }
    }
    Ok(found)
}

/// The path of every synopsis in the folder, sorted.
///
/// # Errors
///
/// If a folder cannot be listed.
pub fn synopsis_files(params: &FolderSinkParams) -> Result<Vec<PathBuf>, SinkError> {
    synopses_below(&params.path)
}

/// The path of every synopsis in the folder at this path, sorted.
///
/// # Errors
///
/// As for [`synopsis_files`].
pub fn synopses_below(folder: &Path) -> Result<Vec<PathBuf>, SinkError> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        match list_folder(&folder, &mut folders, &mut found) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(file_error(&folder, &error));
            }
            _ => {}
        }
    }
    found.sort();
    Ok(found)
}

fn list_folder(
    folder: &Path,
    folders: &mut Vec<PathBuf>,
    synopses: &mut Vec<PathBuf>,
) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            folders.push(path);
        } else if path
            .extension()
            .is_some_and(|extension| extension == EXTENSION)
        {
            synopses.push(path);
        }
    }
    Ok(())
}

/// Passes the path and the bytes of each of these synopses to `each`; those that were removed since are left out.
///
/// # Errors
///
/// If a file cannot be read.
pub fn each_synopsis(
    paths: &[PathBuf],
    mut each: impl FnMut(String, Vec<u8>),
) -> Result<(), SinkError> {
    for path in paths {
        match fs::read(path) {
            Ok(bytes) => each(path.display().to_string(), bytes),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(file_error(path, &error)),
        }
    }
    Ok(())
}

/// Returns whether no synopsis was ever written to the folder, or none is left.
///
/// # Errors
///
/// If the folder cannot be listed.
pub fn is_untouched(params: &FolderSinkParams) -> Result<bool, SinkError> {
    Ok(synopsis_files(params)?.is_empty())
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
            synopsis_path(&sealed(source, subject, b""))
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
        let params = FolderSinkParams {
            path: folder.path().join("out"),
            witness: None,
        };
        assert!(is_untouched(&params).unwrap());
        let first = sealed("/bernstream/p/r", Some("EWR"), b"one");
        write(&params.path, &[&first]).unwrap();
        write(&params.path, &[&first]).unwrap();
        let other = sealed("/bernstream/p/r", Some("EWR"), b"two");
        let Unpublished { durable, error } = write(&params.path, &[&other]).unwrap_err();
        assert!(
            matches!(error, SinkError::Different { .. }) && !error.is_transient() && durable == 0
        );
        assert!(!is_untouched(&params).unwrap());
        let found = synopsis_files(&params).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(fs::read(&found[0]).unwrap(), b"one");
    }

    #[test]
    fn a_draft_that_a_crash_left_is_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let params = FolderSinkParams {
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
        assert_eq!(synopsis_files(&params).unwrap().len(), 1);
    }
}
