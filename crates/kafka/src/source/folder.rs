//! Which files of a folder are the input, and that none of them is there twice.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use bernstream_release::source::broken::{Broken, names};

/// The extensions of the files that are read.
const EXTENSIONS: [&str; 7] = [
    "parquet", "arrow", "feather", "arrows", "csv", "jsonl", "ndjson",
];

/// How names begin that programs give to what is no data of its own: hidden files, those that Spark and Hive keep beside data, and
/// what Office has open.
const NO_DATA: [&str; 3] = [".", "_", "~$"];

/// What is in a folder.
pub(super) struct Listing {
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
pub(super) fn list(folder: &Path) -> Result<Listing, Broken> {
    if let Some((format, mark)) = table_of(folder) {
        return Err(Broken::new(format_args!(
            "this is a table of {format} ({}): its folder keeps files that the table has replaced, and their records would count \
             twice; export the newest version into a folder of its own",
            mark.display()
        )));
    }
    let entries = folder
        .read_dir()
        .map_err(Broken::new)?
        .map(|entry| entry.map(|entry| entry.path()));
    let mut entries = entries
        .collect::<Result<Vec<_>, _>>()
        .map_err(Broken::new)?;
    entries.sort();
    let (files, passed_over): (Vec<_>, Vec<_>) =
        entries.into_iter().partition(|entry| is_input(entry));
    if files.is_empty() {
        let none = "the folder contains no .parquet, .arrow, .feather, .arrows, .csv, .jsonl or .ndjson file";
        return Err(match passed_over.is_empty() {
            true => Broken::new(none),
            false => Broken::new(format_args!(
                "{none}, only {}",
                shown(passed_over.iter().map(PathBuf::as_path))
            )),
        });
    }
    Ok(Listing { files, passed_over })
}

/// The first of some names, without their folder.
pub fn shown<'p>(paths: impl Iterator<Item = &'p Path>) -> String {
    let all: Vec<String> = paths
        .map(|path| {
            path.file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    names(all.iter().map(String::as_str))
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

/// The format of the table that a folder belongs to, and what shows it: data may lie in folders below that of the table.
fn table_of(folder: &Path) -> Option<(&'static str, PathBuf)> {
    let whole = folder.canonicalize().ok()?;
    whole.ancestors().find_map(|folder| {
        let delta = folder.join("_delta_log");
        let hudi = folder.join(".hoodie");
        let is_metadata = |entry: &PathBuf| entry.to_string_lossy().ends_with(".metadata.json");
        let iceberg = || {
            let entries = folder.join("metadata").read_dir().ok()?;
            entries
                .filter_map(|entry| Some(entry.ok()?.path()))
                .find(is_metadata)
        };
        match () {
            () if delta.is_dir() => Some(("Delta Lake", delta)),
            () if hudi.is_dir() => Some(("Hudi", hudi)),
            () => iceberg().map(|metadata| ("Iceberg", metadata)),
        }
    })
}

/// Files with the same bytes, of which there are some.
pub(super) struct Equal<'f> {
    pub first: &'f Path,
    pub second: &'f Path,
}

/// Pairs of files with equal content. Only files of one size are read.
///
/// # Errors
///
/// If a file cannot be read.
pub(super) fn equal(files: &[PathBuf]) -> io::Result<Vec<Equal<'_>>> {
    let mut by_size: BTreeMap<u64, Vec<&Path>> = BTreeMap::new();
    for file in files {
        by_size
            .entry(file.metadata()?.len())
            .or_default()
            .push(file);
    }
    let mut pairs = Vec::new();
    for alike in by_size
        .into_iter()
        .filter(|(size, alike)| *size > 0 && alike.len() > 1)
        .map(|(_, alike)| alike)
    {
        let mut known: BTreeMap<[u8; 32], &Path> = BTreeMap::new();
        for second in alike {
            let first = *known.entry(digest(second)?).or_insert(second);
            if first != second {
                pairs.push(Equal { first, second });
            }
        }
    }
    Ok(pairs)
}

fn digest(path: &Path) -> io::Result<[u8; 32]> {
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
