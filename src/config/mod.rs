//! The configuration: the file as written ([`file`]) becomes the settings as used ([`Settings`]), which cannot be wrong.
//!
//! In layers, each of which imports only those before it:
//!
//! ```text
//! settings   validated data, and the noise and the prices that follow from it
//! text       a TOML text, where everything stands in it, and what is wrong with it
//! targets    the functions that can be released, a file each
//! file       the file as written: every key and its form
//! canonical  what bears on privacy in one canonical text; diff: where two of them differ
//! select     what "auto" takes
//! read       section after section: from what is written to settings and drafts of releases
//! validate   the rules between sections
//! assemble   all of it together; study: as much as sampling needs
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
    pub fn load(path: &Path) -> Result<Self, Faults> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|e| Faults::unreadable(&name, &e))?;
        Settings::parse(&text, &name)
    }

    /// Reads `text`; `name` stands before every fault.
    pub fn parse(text: &str, name: &str) -> Result<Self, Faults> {
        let (mut document, file) = Document::read::<File>(text, name, known_keys());
        let settings = file.and_then(|file| assemble::settings(&mut document, file));
        document.finish(settings)
    }
}
