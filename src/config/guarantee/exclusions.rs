//! What the guarantee does not protect.

use crate::config::settings::{Input, Period, Release, Settings, Unit};
use crate::metrics::Detail;
use crate::source::kafka::OnBadMessage;
use crate::synopsis::description::Definition;
use crate::window::accumulator::AccumulatorSpec;

/// What the guarantee does not protect, one clause a line.
pub fn not_protected(settings: &Settings) -> Vec<String> {
    let mut lines = vec![
        "exact publication times when the worker is late, and that it has stopped".to_owned(),
        "copies of one row that a producer wrote twice: use idempotent producers".to_owned(),
    ];
    let is_slow = |release: &Release| matches!(release.function.target.accumulator(), AccumulatorSpec::Records { .. });
    if settings.releases.iter().any(is_slow) {
        let slow = "how long a window takes to compute, which depends on its records: it shows where a synopsis falls due meanwhile";
        lines.push(slow.to_owned());
    }
    if let Definition::Random(random) = &settings.privacy.definition {
        lines.push("records that the prior does not describe, except by clipping and the noise".to_owned());
        lines.push(format!("each record that is, with a probability of up to gamma = {} in each window", random.gamma));
        lines.push(format!(
            "windows and keys with another number of records than {}, except by clipping and the noise: fewer \
             records can change a value far more",
            random.records
        ));
    }
    if let Unit::User { per: per @ Period::Every(_), .. } = &settings.privacy.unit {
        lines.push(format!(
            "what the records of several periods of {per} reveal together: each period has its own total"
        ));
    }
    if let Input::Kafka(kafka) = &settings.input {
        if kafka.trust_producer_time {
            lines.push("against producers: their clocks decide which window a record belongs to".to_owned());
        }
        if kafka.on_bad_message == OnBadMessage::Skip || !kafka.skip.is_empty() {
            lines.push(
                "messages that cannot be read: they are skipped, and the output can show whether there were any"
                    .to_owned(),
            );
        }
        if !kafka.lost.is_empty() {
            lines.push(
                "input that was deleted before it was read, or that cannot be read: it is missing from its windows"
                    .to_owned(),
            );
        }
    }
    if let Some(budget) = &settings.privacy.budget {
        lines.push(format!(
            "what pipelines of the input reveal that hold no share in the budget topic {}: nothing counts them",
            budget.topic
        ));
    }
    if settings.detail == Detail::Operator {
        lines.push("the metrics: they show exact counts and lags to whoever can read them".to_owned());
    }
    lines
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

#[cfg(test)]
mod tests {
    use super::*;

    const USERS: &str = include_str!("../../../config/users.toml");

    #[test]
    fn only_functions_that_are_solved_for_show_how_long_that_took() {
        let shows = |text: &str| {
            let settings = Settings::parse(text, "test").unwrap();
            not_protected(&settings).iter().any(|line| line.contains("how long a window takes"))
        };
        assert!(!shows(USERS));
        let (before, _) = USERS.split_once("[release.density]").unwrap();
        let (_, after) = USERS.split_once("[output.kafka]").unwrap();
        let label = "label = { column = \"age\", min = 0, max = 100, outside = \"clamp\" }";
        let regression = "bandwidth = 150\ngap = 10\nmax_records = 500";
        let text = format!("{before}\n{label}\n[release.regression]\n{regression}\n[output.kafka]{after}");
        assert!(shows(&text));
    }
}
