//! The input of `bernstream sample`, read without the rest of the file.

use std::path::Path;

use crate::file::{File, known_keys};
use crate::read::draft::ReleaseDraft;
use crate::read::releases::privacy_and_releases;
use crate::read::sampled::{Study, alone, study};
use crate::text::{Checked, Document, Faults};

impl Study {
    /// Reads `[privacy]` and `[release]` of the file at `path`, and opens nothing that the file names.
    ///
    /// # Errors
    ///
    /// All faults of these sections, or that the file cannot be read.
    pub fn load(path: &Path) -> Result<Self, Faults> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|e| Faults::unreadable(&name, &e))?;
        let (mut document, file) = Document::read::<File>(&text, &name, known_keys());
        let study = file.and_then(|file| {
            let to_kafka = file
                .output
                .as_ref()
                .is_some_and(|output| output.get_ref().kafka.is_some());
            let (privacy, draft) = privacy_and_releases(
                &mut document,
                file.privacy,
                file.release,
                None,
                to_kafka,
                None,
            );
            let privacy = privacy?;
            let drafts = draft?;
            let mut draft = only(&mut document, drafts)?;
            match draft.sampled.take() {
                Some(table) => {
                    study(&mut document, table, &draft, &privacy).map(|(study, _)| study)
                }
                None => {
                    let what = "has no [release.sampled]";
                    let hint = "add it, with a public prior: config/reference.toml shows how";
                    Err(document.fault(draft.function.span(), what, hint))
                }
            }
        });
        document.finish(study)
    }
}

/// The only release of the file.
fn only(document: &mut Document<'_>, mut drafts: Vec<ReleaseDraft>) -> Checked<ReleaseDraft> {
    match (drafts.pop(), drafts.is_empty()) {
        (Some(draft), true) => Ok(draft),
        (Some(draft), false) => Err(alone(document, draft.function.span())),
        (None, _) => Err(document.missing(0..0, "release")),
    }
}
