//! Which files of a folder are the input, and that none of them is there twice.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use bernstream_release::source::broken::{DecodeError, first_names};

/// The extensions of the files that are read.
const EXTENSIONS: [&str; 7] = [
    "parquet", "arrow", "feather", "arrows", "csv", "jsonl", "ndjson",
];

/// Beginnings of names that programs give to what is no data of its own: hidden files, those that Spark and Hive keep beside data, and
/// what Office has open.
const NO_DATA: [&str; 3] = [".", "_", "~$"];

/// Contents of a folder.
pub(super) struct FolderListing {
    /// The files that are read, by their names.
    pub files: Vec<PathBuf>,
    /// Everything else.
    pub passed_over: Vec<PathBuf>,
}

/// Lists a folder.
///
/// # Errors
///
/// If it cannot be read, belongs to a table of several versions, or has no file that is read.
pub(super) fn list_folder(folder: &Path) -> Result<FolderListing, DecodeError> {
    if let Some(table) = table_of(folder) {
        return Err(DecodeError::new(format_args!(
            "this is a table of {} ({}): its folder keeps files that the table has replaced, and their records would count \
             twice; export the newest version into a folder of its own",
            table.format,
            table.mark.display()
        )));
    }
    let mut files = Vec::new();
    let mut passed_over = Vec::new();
    for entry in sorted_entries(folder).map_err(DecodeError::new)? {
        if is_input(&entry) {
            files.push(entry);
        } else {
            passed_over.push(entry);
        }
    }
    if files.is_empty() {
        let none = "the folder contains no .parquet, .arrow, .feather, .arrows, .csv, .jsonl or .ndjson file";
        if passed_over.is_empty() {
            return Err(DecodeError::new(none));
        }
        let names = shown_names(passed_over.iter().map(PathBuf::as_path));
        return Err(DecodeError::new(format_args!("{none}, only {names}")));
    }
    Ok(FolderListing { files, passed_over })
}

fn sorted_entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut entries = Vec::new();
    for entry in folder.read_dir()? {
        entries.push(entry?.path());
    }
    entries.sort();
    Ok(entries)
}

/// The first of some names, without their folder.
pub fn shown_names<'p>(paths: impl Iterator<Item = &'p Path>) -> String {
    let all: Vec<String> = paths
        .map(|path| {
            path.file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    first_names(all.iter().map(String::as_str))
}

fn is_input(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let is_data = !NO_DATA.iter().any(|beginning| name.starts_with(beginning));
    is_data
        && path
            .extension()
            .is_some_and(|ending| EXTENSIONS.iter().any(|known| ending == *known))
        && !path.is_dir()
}

/// A table of several versions.
struct VersionedTable {
    format: &'static str,
    /// The file or folder that shows it.
    mark: PathBuf,
}

/// The table that a folder belongs to: data may lie in folders below that of the table.
fn table_of(folder: &Path) -> Option<VersionedTable> {
    let whole = folder.canonicalize().ok()?;
    for folder in whole.ancestors() {
        for (format, name) in [("Delta Lake", "_delta_log"), ("Hudi", ".hoodie")] {
            let mark = folder.join(name);
            if mark.is_dir() {
                return Some(VersionedTable { format, mark });
            }
        }
        if let Some(mark) = iceberg_metadata(folder) {
            let format = "Iceberg";
            return Some(VersionedTable { format, mark });
        }
    }
    None
}

fn iceberg_metadata(folder: &Path) -> Option<PathBuf> {
    for entry in folder.join("metadata").read_dir().ok()?.flatten() {
        let path = entry.path();
        if path.to_string_lossy().ends_with(".metadata.json") {
            return Some(path);
        }
    }
    None
}

/// Files with the same bytes, of which there are some.
pub(super) struct EqualFiles<'f> {
    pub first: &'f Path,
    pub second: &'f Path,
}

/// Pairs of files with equal content. Only files of one size are read.
///
/// # Errors
///
/// If a file cannot be read.
pub(super) fn equal_files(files: &[PathBuf]) -> io::Result<Vec<EqualFiles<'_>>> {
    let mut by_size: BTreeMap<u64, Vec<&Path>> = BTreeMap::new();
    for file in files {
        by_size
            .entry(file.metadata()?.len())
            .or_default()
            .push(file);
    }
    let mut pairs = Vec::new();
    for (size, alike) in by_size {
        if size == 0 || alike.len() < 2 {
            continue;
        }
        let mut known: BTreeMap<[u8; 32], &Path> = BTreeMap::new();
        for second in alike {
            let first = *known.entry(file_digest(second)?).or_insert(second);
            if first != second {
                pairs.push(EqualFiles { first, second });
            }
        }
    }
    Ok(pairs)
}

fn file_digest(path: &Path) -> io::Result<[u8; 32]> {
    let mut file = File::open(path)?;
    let mut hash = Sha256::new();
    let mut piece = vec![0; 1 << 16];
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(hash.finalize().into()),
            read => hash.update(piece.get(..read).unwrap_or_default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_programs_keep_beside_data_is_no_input() {
        for name in [
            "a.csv",
            "a_b.parquet",
            "monday (copy).csv",
            "1.arrow",
            "~a.csv",
        ] {
            assert!(is_input(Path::new(name)), "{name}");
        }
        for name in [
            ".a.csv", "._a.csv", "~$a.csv", "_a.csv", "_SUCCESS", "a.csv.gz", "a.CSV", "a.csv~",
            "a",
        ] {
            assert!(!is_input(Path::new(name)), "{name}");
        }
    }
}
