//! The things that the guarantee does not protect: one list, from which `check`, every synopsis, README and the page of docs are made.

mod conditions;
mod list;

pub use list::{ALL, Exclusion};

use crate::settings::{Period, PrivacyUnit, WorkerSettings};
use bernstream_synopsis::clock;
use bernstream_synopsis::description::PrivacyDefinition;

/// The things that the guarantee does not protect, one clause a line.
pub fn not_protected(settings: &WorkerSettings) -> Vec<String> {
    let applying = ALL.iter().filter(|exclusion| (exclusion.applies)(settings));
    applying
        .map(|exclusion| filled_clause(exclusion.clause, settings))
        .collect()
}

/// A clause with the values that it names.
fn filled_clause(clause: &str, settings: &WorkerSettings) -> String {
    let mut clause = clause.to_owned();
    if let PrivacyUnit::User {
        per: per @ Period::Every(_),
        ..
    } = &settings.privacy.unit
    {
        clause = clause.replace("{per}", &per.to_string());
    }
    if let PrivacyDefinition::Random(random) = &settings.privacy.definition {
        clause = clause.replace("{gamma}", &random.gamma.to_string());
        clause = clause.replace("{records}", &random.records.to_string());
    }
    if let Some(budget) = &settings.privacy.budget {
        clause = clause.replace("{budget}", &budget.topic);
    }
    if let Some(kafka) = conditions::kafka_input(settings) {
        // What comes within the grace is in its window: no more is needed, and no less.
        let delay = settings
            .producer_delay
            .unwrap_or(settings.windows.allowed_lateness);
        clause = clause.replace("{clock_slack}", &clock::format_duration(kafka.clock_slack));
        clause = clause.replace(
            "{ahead}",
            &clock::format_duration(settings.windows.max_future_skew),
        );
        clause = clause.replace("{producer_delay}", &clock::format_duration(delay));
    }
    clause
}

/// Sentences about other pipelines of the same input.
pub fn other_pipelines(settings: &WorkerSettings) -> Vec<String> {
    match &settings.privacy.budget {
        Some(budget) => vec![
            format!("those that hold shares in the budget topic {} keep the whole total together", budget.topic),
            "of any other one nothing is known: what it reveals adds to that".to_owned(),
        ],
        None => vec![
            "nothing is known of any: what two pipelines of one input reveal adds up, and nothing counts it unless they share a budget \
             (`budget` in [privacy])"
                .to_owned(),
        ],
    }
}
