//! The configuration: the file as written ([`file`](mod@file)) becomes the settings as used ([`WorkerSettings`]), which cannot be wrong.
//!
//! In layers, each of which imports only those before it:
//!
//! ```text
//! settings   validated data, and the noise and the prices that follow from it
//! text       a TOML text with positions, its faults, and parsers of single values
//! targets    the functions that can be released, a file each
//! file       the file as written: every key and its form
//! schemas    what the schemas of records say that a ledger is bound to
//! canonical  what affects privacy, as one canonical text; diff: where two of them differ; sharing: what pipelines say alike
//! reading    what bears on reading, as a digest
//! select     what "auto" chooses, a file for each family of candidates
//! recorded   what a ledger says that it chose; paid: what its releases have paid
//! read       each section: from the file to settings and drafts of releases
//! validate   the rules between sections
//! assemble   the whole file; study: the part that sampling needs
//! alternatives  what else a release could be, at its price
//! guarantee  every sentence about the guarantee
//! plan       from settings to what the pipeline carries out
//! ```
#![cfg_attr(
    not(test),
    deny(
        clippy::expect_used,
        clippy::missing_errors_doc,
        clippy::panic,
        clippy::todo,
        clippy::unimplemented,
        clippy::unreachable,
        clippy::unwrap_used
    )
)]

mod alternatives;
mod assemble;
pub mod canonical;
pub mod diff;
mod file;
pub mod guarantee;
pub mod paid;
mod plan;
mod read;
mod reading;
mod recorded;
mod schemas;
mod select;
mod settings;
mod sharing;
mod study;
mod targets;
mod text;
mod validate;

use std::path::Path;

pub use alternatives::{Alternative, Incomparable};
pub use file::{KEYS, schema};
pub use read::sampled::SamplerInput;
pub use settings::{
    AutoChoice, Calibration, Coordinates, InputParams, NeighbourRelation, NoiseCandidate,
    NoiseKind, NoiseSelection, Payment, Period, PrivacySettings, PrivacyUnit, PrivateBandwidths,
    PrivateOrder, ReleaseSettings, ReleasedFunction, SettingsError, SharedBudget, WindowKind,
    WorkerSettings, synopsis_bytes,
};
pub use text::Faults;
pub use text::values::{host, socket_address};

pub use bernstream_kafka::sink::OutputParams;

use crate::file::{ConfigFile, known_keys};
use crate::recorded::RecordedSettings;
use crate::text::Document;
use bernstream_ledger as ledger;

impl WorkerSettings {
    /// Reads the file at `path`.
    ///
    /// # Errors
    ///
    /// All faults of the file, or that it cannot be read.
    pub fn load(path: &Path) -> Result<Self, Faults> {
        let name = path.display().to_string();
        let text = read_text(path)?;
        WorkerSettings::parse(&text, &name)
    }

    /// Reads the file at `path`, with the choices of `"auto"` that its ledger has recorded for this file, if any, and the total
    /// that it has recorded for this promise. `recorded` returns the newest settings of a ledger ([`canonical::recorded_text`]).
    ///
    /// # Errors
    ///
    /// All faults of the file, or that it cannot be read.
    pub fn load_keeping(
        path: &Path,
        recorded: impl Fn(&ledger::LedgerParams) -> Option<String>,
    ) -> Result<Self, Faults> {
        let name = path.display().to_string();
        let text = read_text(path)?;
        let Some(settings) =
            assemble::ledger_of_file(&text, &name).and_then(|params| recorded(&params))
        else {
            return WorkerSettings::parse(&text, &name);
        };
        let mut recorded = RecordedSettings {
            settings,
            keeps_choices: true,
        };
        match WorkerSettings::parse_with(&text, &name, Some(&recorded)) {
            Ok(settings) if recorded.is_recorded_for(&settings) => Ok(settings),
            _ => {
                recorded.keeps_choices = false;
                WorkerSettings::parse_with(&text, &name, Some(&recorded))
            }
        }
    }

    /// Reads the file at `path` with these [`choices`](WorkerSettings::auto_choices) of `"auto"`.
    ///
    /// # Errors
    ///
    /// Those of [`WorkerSettings::load`]. Choices that the file does not allow are none.
    pub fn load_choosing(path: &Path, choices: &str) -> Result<Self, Faults> {
        let name = path.display().to_string();
        let text = read_text(path)?;
        let recorded = RecordedSettings {
            settings: choices.to_owned(),
            keeps_choices: true,
        };
        WorkerSettings::parse_with(&text, &name, Some(&recorded))
    }

    /// Reads `text`; every fault starts with `name`.
    ///
    /// # Errors
    ///
    /// All faults of the text.
    pub fn parse(text: &str, name: &str) -> Result<Self, Faults> {
        WorkerSettings::parse_with(text, name, None)
    }

    fn parse_with(
        text: &str,
        name: &str,
        recorded: Option<&RecordedSettings>,
    ) -> Result<Self, Faults> {
        let (mut document, file) = Document::read::<ConfigFile>(text, name, known_keys());
        let settings =
            file.and_then(|file| assemble::assembled_settings(&mut document, file, recorded));
        document.finish(settings)
    }
}

fn read_text(path: &Path) -> Result<String, Faults> {
    std::fs::read_to_string(path)
        .map_err(|error| Faults::unreadable(&path.display().to_string(), &error))
}
