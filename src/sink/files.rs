//! Publishing to a folder.

use std::path::PathBuf;

#[derive(Clone, Debug)]
pub struct Params {
    pub path: PathBuf,
}
