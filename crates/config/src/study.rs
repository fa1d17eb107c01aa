//! The input of `bernstream sample`, read without the rest of the file.

use std::path::Path;

use crate::file::{ConfigFile, known_keys};
use crate::read::draft::ReleaseDraft;
use crate::read::output::publishes_to_kafka;
use crate::read::releases::{PrivateReleases, WrittenReleases, privacy_and_releases};
use crate::read::sampled::{SamplerInput, composition_fault, sampled_study};
use crate::read_text;
use crate::text::{Checked, Document, Faults};

impl SamplerInput {
    /// Reads `[privacy]` and `[release]` of the file at `path`, and opens nothing that the file names.
    ///
    /// # Errors
    ///
    /// All faults of these sections, or that the file cannot be read.
    pub fn load(path: &Path) -> Result<Self, Faults> {
        let name = path.display().to_string();
        let text = read_text(path)?;
        let (mut document, file) = Document::read::<ConfigFile>(&text, &name, known_keys());
        let study = file.and_then(|file| read_study(&mut document, file));
        document.finish(study)
    }
}

fn read_study(document: &mut Document<'_>, file: ConfigFile) -> Checked<SamplerInput> {
    let written = WrittenReleases {
        to_kafka: publishes_to_kafka(&file),
        privacy: file.privacy,
        releases: file.release,
        grid: None,
        input: None,
    };
    let PrivateReleases { privacy, drafts } = privacy_and_releases(document, written, None);
    let privacy = privacy?;
    let mut draft = only_draft(document, drafts?)?;
    let Some(table) = draft.sampled.take() else {
        let what = "has no [release.sampled]";
        let hint = "add it, with a public prior: config/reference.toml shows how";
        return Err(document.fault(draft.function.span(), what, hint));
    };
    sampled_study(document, table, &draft, &privacy)
}

fn only_draft(document: &mut Document<'_>, mut drafts: Vec<ReleaseDraft>) -> Checked<ReleaseDraft> {
    let Some(draft) = drafts.pop() else {
        return Err(document.missing(0..0, "release"));
    };
    if drafts.is_empty() {
        Ok(draft)
    } else {
        Err(composition_fault(document, draft.function.span()))
    }
}
