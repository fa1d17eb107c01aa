//! Settings that a ledger has recorded: with them, a choice of `"auto"` holds until the file changes, and a total that was
//! worked out from a promise holds for ever.
//!
//! A new version may choose otherwise for the same file, or work out more from the same promise. Its settings are then those of
//! the ledger again: every setting follows from the file and what is recorded, and where nothing else differs, nothing has
//! changed.

use crate::settings::{AutoChoice, WorkerSettings};
use crate::{canonical, diff, schemas};
use bernstream_synopsis::calibrate::Rho;
use bernstream_synopsis::description::ImpliedPrivacy;

/// The newest settings of a ledger, as recorded ([`canonical::recorded_text`]).
#[derive(Clone, Debug)]
pub struct RecordedSettings {
    pub settings: String,
    /// Its choices hold; its total does in any case.
    pub keeps_choices: bool,
}

impl RecordedSettings {
    /// The noise and the size of a release; `None` if they do not hold, if it has no such release, or if this version cannot
    /// read it.
    pub fn kept_choice(&self, release: &str) -> Option<AutoChoice> {
        if !self.keeps_choices {
            return None;
        }
        canonical::recorded_choice(&self.settings, release)
    }

    /// The total under `composition = "gaussian"` of a promise that leaves `today`: what the ledger has recorded for the same
    /// promise, where that is less. What keeps less keeps the promise too.
    pub fn kept_total(&self, promise: ImpliedPrivacy, today: Rho) -> Rho {
        match canonical::recorded_gaussian_total(&self.settings) {
            Some(recorded) if recorded.promise == promise => recorded.total.min(today),
            _ => today,
        }
    }

    /// Returns whether these settings are the recorded ones, chosen for the same request where the ledger says for which. What a written
    /// epsilon is charged in rho may have changed.
    pub fn is_recorded_for(&self, settings: &WorkerSettings) -> bool {
        let ours = canonical::recorded_text(settings);
        diff::setting_differences(&with_prices_of(&self.settings, &ours), &ours).is_empty()
    }
}

/// The `recorded` settings with the fields of messages, which older ledgers do not have, with the prices of `ours` where the same
/// epsilon is converted, and with the epsilon that the same price of a ball buys now: older ledgers record none.
fn with_prices_of(recorded: &str, ours: &str) -> String {
    let mut recorded = canonical::parsed_settings(recorded);
    let ours = canonical::parsed_settings(ours);
    schemas::add_what_may_grow(&mut recorded, &ours);
    let Some(releases) = recorded["releases"].as_object_mut() else {
        return recorded.to_string();
    };
    for (name, release) in releases {
        let ours = &ours["releases"][name];
        match release.get("epsilon") {
            Some(epsilon) if ours.get("epsilon") == Some(epsilon) => {
                release["price"] = ours["price"].clone();
            }
            None if release.get("noise").is_some_and(|noise| noise == "ball")
                && release.get("price") == ours.get("price") =>
            {
                release["epsilon"] = ours["epsilon"].clone();
            }
            Some(_) | None => {}
        }
    }
    recorded.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_same_epsilon_is_charged_may_differ() {
        let recorded = |epsilon: &str, price: &str, degree: u32| {
            serde_json::json!({ "releases": { "a": { "epsilon": epsilon, "price": price, "degree": degree } } })
                .to_string()
        };
        let ours = recorded("0.2", "0.018", 4);
        assert_eq!(with_prices_of(&recorded("0.2", "0.019", 4), &ours), ours);
        for other in [recorded("0.3", "0.019", 4), recorded("0.2", "0.019", 5)] {
            assert_ne!(with_prices_of(&other, &ours), ours);
        }
        // A ball that was priced in rho before it got noise of its own.
        let ball = serde_json::json!({ "releases": { "a": { "noise": "ball", "price": "0.02", "epsilon": "0.5" } } });
        let older =
            serde_json::json!({ "releases": { "a": { "noise": "ball", "price": "0.02" } } });
        let cheaper =
            serde_json::json!({ "releases": { "a": { "noise": "ball", "price": "0.01" } } });
        assert_eq!(
            with_prices_of(&older.to_string(), &ball.to_string()),
            ball.to_string()
        );
        assert_ne!(
            with_prices_of(&cheaper.to_string(), &ball.to_string()),
            ball.to_string()
        );
        // Prices that are written themselves.
        let written = r#"{"releases":{"a":{"price":"0.019"}}}"#;
        assert_eq!(
            with_prices_of(written, &written.replace("0.019", "0.018")),
            written
        );
    }
}
