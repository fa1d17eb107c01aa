//! What the guarantee does not protect: one list, from which `check`, every synopsis, README and the page of docs are made.

mod conditions;
mod list;

pub use list::{ALL, Exclusion};

use crate::settings::{Period, Settings, Unit};
use bernstream_synopsis::description::Definition;

/// What the guarantee does not protect, one clause a line.
pub fn not_protected(settings: &Settings) -> Vec<String> {
    let applying = ALL.iter().filter(|exclusion| (exclusion.applies)(settings));
    applying
        .map(|exclusion| filled(exclusion.clause, settings))
        .collect()
}

/// The values that clauses name.
fn values(settings: &Settings) -> Vec<(&'static str, String)> {
    let mut values = Vec::new();
    if let Unit::User {
        per: per @ Period::Every(_),
        ..
    } = &settings.privacy.unit
    {
        values.push(("{per}", per.to_string()));
    }
    if let Definition::Random(random) = &settings.privacy.definition {
        values.push(("{gamma}", random.gamma.to_string()));
        values.push(("{records}", random.records.to_string()));
    }
    if let Some(budget) = &settings.privacy.budget {
        values.push(("{budget}", budget.topic.clone()));
    }
    if let Some(kafka) = conditions::kafka(settings) {
        values.push((
            "{clock_slack}",
            bernstream_synopsis::clock::show(kafka.clock_slack),
        ));
        values.push((
            "{ahead}",
            bernstream_synopsis::clock::show(settings.windows.max_future_skew),
        ));
        // What comes within the grace is in its window: no more is needed, and no less.
        let delay = settings
            .producer_delay
            .unwrap_or(settings.windows.allowed_lateness);
        values.push(("{producer_delay}", bernstream_synopsis::clock::show(delay)));
    }
    values
}

fn filled(clause: &str, settings: &Settings) -> String {
    values(settings)
        .iter()
        .fold(clause.to_owned(), |clause, (name, value)| {
            clause.replace(name, value)
        })
}

/// What is known of other pipelines of the same input.
pub fn others(settings: &Settings) -> Vec<String> {
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
