//! The rules for keys that nobody listed.

use std::ops::Range;

use crate::file::WrittenWindowKind;
use crate::read::draft::ReleaseDraft;
use crate::settings::{FoundKeySettings, PrivacySettings};
use crate::text::{Document, Spanned};
use bernstream_noise::NoiseError;
use bernstream_noise::accountant::policy::PricePolicy;
use bernstream_release::window::accumulator::AccumulatorSpec;
use bernstream_synopsis::Adjacency;
use bernstream_synopsis::calibrate::Delta;
use bernstream_synopsis::price::Price;

/// Checks that keys can be found: by one release of tumbling windows that pays with a delta, where the presence of a unit is hidden.
pub fn check_key_search(
    document: &mut Document<'_>,
    found: &Spanned<FoundKeySettings>,
    privacy: &PrivacySettings,
    drafts: &[ReleaseDraft],
) {
    let place = found.span();
    if privacy.adjacency != Adjacency::AddRemove {
        let what =
            "keys cannot be found where records are replaced: their keys are then not hidden";
        document.fault(
            place.clone(),
            what,
            "write adjacency = \"add_remove\" in [privacy]",
        );
        return;
    }
    if let Some(other) = drafts.get(1) {
        let what = "keys are found by one release, and this is a second one";
        let hint = "give it a pipeline of its own, which lists its keys or finds them itself";
        document.fault(other.function.span(), what, hint);
        return;
    }
    let Some(draft) = drafts.first() else {
        return;
    };
    let function = draft.function.get_ref();
    if !matches!(function.target.accumulator(), AccumulatorSpec::FoundKeys(_)) {
        let what = "is for listed keys: only [release.counts] has keys that are found";
        let hint = "list the keys in input.key.values, or write counts = { of = [\"users\"], max_keys = 3 }";
        document.fault(draft.function.span(), what, hint);
        return;
    }
    check_windows_alike(document, draft);
    check_price(document, found.get_ref(), privacy, draft);
}

fn check_windows_alike(document: &mut Document<'_>, draft: &ReleaseDraft) {
    if let Some(windows) = &draft.windows
        && !matches!(windows.get_ref(), WrittenWindowKind::Tumbling)
    {
        let what = "is for listed keys: keys are found in tumbling windows";
        document.fault(windows.span(), what, "remove it");
    }
    if let Some(PricePolicy::Decaying { .. }) = draft.policy {
        let what =
            "changes the noise from window to window, and keys are found with the same in all";
        document.fault(
            draft.payment.span(),
            what,
            "use `horizon`, or a fixed price",
        );
    }
}

fn check_price(
    document: &mut Document<'_>,
    found: &FoundKeySettings,
    privacy: &PrivacySettings,
    draft: &ReleaseDraft,
) {
    let price = draft.payment.get_ref().mechanism_price();
    let counts = draft.function.get_ref().keyed_counts();
    let max_keys = counts.map_or(1, |counts| counts.max_keys);
    let place: Range<usize> = draft.payment.span();
    match price {
        Price::Approximate { delta, .. } if delta > Delta::ZERO => {
            let found = found.for_unit(&privacy.unit);
            if let Err(error) = found.key_search(max_keys, price) {
                let hint = match error {
                    NoiseError::LimitTooLow { .. } => {
                        "raise `candidates` in input.key.found, or the price"
                    }
                    _ => "",
                };
                document.fault(place, error.to_string(), hint);
            }
        }
        Price::Pure(_) | Price::Approximate { .. } => {
            let what = "keys cannot be found at a price without `delta`: whatever names a key that one unit has, with any probability, could \
                        not name it without that unit";
            let hint = "write delta = 1e-9, say, in [release], and a `delta` of a whole period in [privacy]; or list the keys in input.key.values";
            document.fault(place, what, hint);
        }
        Price::Concentrated(_) | Price::Slots(_) => {
            let what = "keys are found at a price in `epsilon` and `delta`, which this total does not have";
            let hint = "give [privacy] `epsilon` and `delta` without `composition`";
            document.fault(place, what, hint);
        }
    }
}
