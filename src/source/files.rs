//! Records from a folder of Parquet or Arrow files.

use std::path::PathBuf;

/// Where the files are: one file, or a folder of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Params {
    pub path: PathBuf,
}
