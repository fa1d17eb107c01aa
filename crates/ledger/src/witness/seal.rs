//! The seal of a witness file: a file beside it that is made anew for every accepted claim, and names itself.
//!
//! A backup that is written into the witness that is there keeps the number of that file and when it was made. The seal shows it: if it
//! was left as it was, it knows a newer claim; if it was brought back too, it names another file than the one that it is in.
//! A witness without a seal is one that an older program made, or that was moved: it gets one.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::chain::Head;
use crate::instance::FilePlace;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WitnessSeal {
    /// The random identity of the witness.
    witness: String,
    /// The newest accepted claim when it was made.
    head: Head,
    /// Place of its own file.
    place: FilePlace,
}

/// Result of the comparison of a witness with its seal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SealComparison {
    /// There is none, or it does not know the newest claim yet.
    Behind,
    Fits,
    /// An older state was written into the seal.
    SealBroughtBack,
    /// An older state was written into the witness: it ends before this claim.
    BroughtBack {
        known: u64,
    },
}

/// Compares the newest accepted claim of the witness at `path` with its seal.
///
/// # Errors
///
/// If the seal cannot be read.
pub(super) fn compare_seal(
    path: &Path,
    witness: &str,
    newest: Option<&Head>,
) -> io::Result<SealComparison> {
    let file = file_of(path);
    let text = match fs::read(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(SealComparison::Behind),
        Err(error) => return Err(error),
    };
    let seal = serde_json::from_slice::<WitnessSeal>(&text)
        .ok()
        .filter(|seal| seal.witness == witness);
    let Some(WitnessSeal {
        head: known, place, ..
    }) = seal
    else {
        return Ok(SealComparison::Behind);
    };
    if place != FilePlace::of_file(&file)? {
        return Ok(SealComparison::SealBroughtBack);
    }
    Ok(match newest {
        Some(newest) if *newest == known => SealComparison::Fits,
        Some(newest) if newest.sequence > known.sequence => SealComparison::Behind,
        _ => SealComparison::BroughtBack {
            known: known.sequence,
        },
    })
}

/// Makes the seal of the witness at `path` anew, durably.
///
/// # Errors
///
/// If it cannot be written.
pub(super) fn renew_seal(path: &Path, witness: &str, newest: Head) -> io::Result<()> {
    let file = file_of(path);
    let draft = file.with_extension(format!("seal.{}", std::process::id()));
    let mut made = File::create(&draft)?;
    let seal = WitnessSeal {
        witness: witness.to_owned(),
        head: newest,
        place: FilePlace::of_file(&draft)?,
    };
    writeln!(made, "{}", serde_json::json!(seal))?;
    made.sync_all()?;
    fs::rename(&draft, &file)?;
    File::open(file.parent().unwrap_or(Path::new(".")))?.sync_all()
}

fn file_of(witness: &Path) -> PathBuf {
    let mut file = witness.as_os_str().to_owned();
    file.push(".seal");
    file.into()
}
