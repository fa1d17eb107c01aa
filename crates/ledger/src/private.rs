//! Files that only their owner can read, whatever the umask is: a ledger has exact counts of messages, and the noise of running sums.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Access of everyone to a file, or to a folder.
const OTHERS: u32 = 0o007;

/// Options with which every file of a ledger is opened that may be new. `SQLite` gives its journals the mode of the file that they are of.
pub(super) fn private_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

/// Creates a file that is not there, to be written.
pub(super) fn create_new(path: &Path) -> io::Result<File> {
    private_options().write(true).create_new(true).open(path)
}

/// Creates a file to be written, or empties the one that is there.
pub(super) fn create_private(path: &Path) -> io::Result<File> {
    private_options()
        .write(true)
        .create(true)
        .truncate(true)
        .open(path)
}

/// Writes a file that belongs to a ledger, to the disk.
///
/// # Errors
///
/// If it cannot be written.
pub fn write_private(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = create_private(path)?;
    file.write_all(content)?;
    file.sync_all()
}

/// Writes the entries of a folder to the disk.
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Creates the folder of a ledger, durably, for its owner alone; the folders above it are as the umask has them, because others use them.
/// One that is there, from an older version or made by hand, is closed to everyone else, with the files in it, if it belongs to
/// this user: nobody needs that access, and from what it shows the noise could be subtracted. What a group may do was somebody's decision.
///
/// # Errors
///
/// If the folder cannot be created.
pub fn make_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        close_folder(folder);
        return Ok(());
    }
    if let Some(above) = folder.parent() {
        fs::create_dir_all(above)?;
    }
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    match folder.canonicalize()?.parent() {
        Some(above) => sync_folder(above),
        None => Ok(()),
    }
}

/// Takes all access from others. Only the owner can, and whoever else cannot is warned by [`access_warning`].
fn close_folder(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        close_to_others(&entry.path());
    }
    close_to_others(folder);
}

fn close_to_others(path: &Path) {
    if let Ok(about) = fs::symlink_metadata(path)
        && !about.is_symlink()
        && about.mode() & OTHERS != 0
    {
        let mode = about.mode() & 0o7777 & !OTHERS;
        let _ = fs::set_permissions(path, Permissions::from_mode(mode));
    }
}

/// Warning that everyone can read something in the folder of a ledger, if they can.
pub fn access_warning(folder: &Path) -> Option<String> {
    let mut files = fs::read_dir(folder).ok()?.flatten();
    let is_open = has_mode(folder, 0o001) && files.any(|file| has_mode(&file.path(), 0o004));
    let folder = folder.display();
    is_open.then(|| {
        format!(
            "every user of this machine can read the ledger in {folder}, and with it exact counts of messages and the noise of running \
             sums: chmod -R o= {folder}"
        )
    })
}

/// Returns true if the mode of a file has one of these bits.
fn has_mode(path: &Path, bits: u32) -> bool {
    fs::metadata(path).is_ok_and(|about| about.mode() & bits != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn a_ledger_that_everyone_can_read_is_told_and_closed() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("a/ledger");
        assert_eq!(access_warning(&folder), None, "there is none yet");
        make_folder(&folder).unwrap();
        assert_eq!(mode(&folder), 0o700);
        let file = folder.join("ledger.sqlite");
        write_private(&file, b"x").unwrap();
        assert_eq!(mode(&file), 0o600);
        for (of_folder, of_file, is_told) in [
            (0o755, 0o644, true),
            (0o711, 0o604, true),
            (0o750, 0o644, false),
            (0o755, 0o640, false),
        ] {
            fs::set_permissions(&folder, Permissions::from_mode(of_folder)).unwrap();
            fs::set_permissions(&file, Permissions::from_mode(of_file)).unwrap();
            assert_eq!(
                access_warning(&folder).is_some(),
                is_told,
                "{of_folder:o} {of_file:o}"
            );
        }
        fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
        make_folder(&folder).unwrap();
        assert_eq!(
            (mode(&folder), mode(&file), access_warning(&folder)),
            (0o750, 0o640, None)
        );
    }
}
