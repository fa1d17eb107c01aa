//! The configuration: the file as written ([`file`]) becomes the settings as used ([`Settings`]), which cannot be wrong.
//!
//! In layers, each of which imports only those before it:
//!
//! ```text
//! settings   validated data, and the noise and the prices that follow from it
//! text       a TOML text with positions, its faults, and parsers of single values
//! targets    the functions that can be released, a file each
//! file       the file as written: every key and its form
//! canonical  what affects privacy, as one canonical text; diff: where two of them differ
//! select     what "auto" chooses
//! read       each section: from the file to settings and drafts of releases
//! validate   the rules between sections
//! assemble   the whole file; study: the part that sampling needs
//! guarantee  every sentence about the guarantee
//! plan       from settings to what the pipeline carries out
//! ```

mod assemble;
pub mod canonical;
pub mod diff;
mod file;
mod plan;
mod read;
pub mod guarantee;
mod select;
mod settings;
mod study;
mod targets;
mod text;
mod validate;

use std::path::Path;

pub use file::{KEYS, schema};
pub use read::sampled::Study;
pub use settings::{
    Calibration, Candidate, Coordinates, Error, Function, Input, NoiseKind, Payment, Period, Privacy,
    PrivateBandwidths, PrivateOrder, Protected, Release, Selection, Settings, Unit, WindowKind, synopsis_bytes,
};
pub use text::Faults;

pub use crate::sink::Output;

use crate::config::file::{File, known_keys};
use crate::config::text::Document;

impl Settings {
    /// Reads the file at `path`.
    ///
    /// # Errors
    ///
    /// All faults of the file, or that it cannot be read.
    pub fn load(path: &Path) -> Result<Self, Faults> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|e| Faults::unreadable(&name, &e))?;
        Settings::parse(&text, &name)
    }

    /// Reads `text`; every fault starts with `name`.
    ///
    /// # Errors
    ///
    /// All faults of the text.
    pub fn parse(text: &str, name: &str) -> Result<Self, Faults> {
        let (mut document, file) = Document::read::<File>(text, name, known_keys());
        let settings = file.and_then(|file| assemble::settings(&mut document, file));
        document.finish(settings)
    }
}
