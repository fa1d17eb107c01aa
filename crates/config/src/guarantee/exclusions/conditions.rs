//! When an exclusion applies.

use crate::settings::{InputParams, Period, PrivacyUnit, WorkerSettings};
use bernstream_kafka::ordered::PowerLoss;
use bernstream_kafka::sink::OutputParams;
use bernstream_kafka::source;
use bernstream_kafka::source::kafka::BadMessageRule;
use bernstream_release::window::accumulator::AccumulatorSpec;
use bernstream_synopsis::Adjacency;
use bernstream_synopsis::description::PrivacyDefinition;
use bernstream_worker::metrics::MetricsDetail;

pub fn always_applies(_: &WorkerSettings) -> bool {
    true
}

/// The settings of the input topic; none for files.
pub fn kafka_input(settings: &WorkerSettings) -> Option<&source::kafka::KafkaSourceParams> {
    match &settings.input {
        InputParams::Kafka(kafka) => Some(kafka),
        InputParams::Files(_) => None,
    }
}

pub fn reads_a_topic(settings: &WorkerSettings) -> bool {
    kafka_input(settings).is_some()
}

pub fn reads_files(settings: &WorkerSettings) -> bool {
    kafka_input(settings).is_none()
}

pub fn trusts_producers(settings: &WorkerSettings) -> bool {
    kafka_input(settings).is_some_and(|kafka| kafka.trust_producer_time)
}

pub fn relies_on_brokers_clocks(settings: &WorkerSettings) -> bool {
    kafka_input(settings).is_some_and(|kafka| !kafka.trust_producer_time)
}

pub fn skips_messages(settings: &WorkerSettings) -> bool {
    kafka_input(settings)
        .is_some_and(|kafka| kafka.on_bad_message == BadMessageRule::Skip || !kafka.skip.is_empty())
}

pub fn accepts_loss(settings: &WorkerSettings) -> bool {
    kafka_input(settings).is_some_and(|kafka| !kafka.lost.is_empty())
}

pub fn asks_a_registry(settings: &WorkerSettings) -> bool {
    settings.registry.is_some()
}

pub fn uses_brokers(settings: &WorkerSettings) -> bool {
    reads_a_topic(settings) || matches!(settings.output, OutputParams::Kafka { .. })
}

/// Claims are acknowledged before they are on the disks of brokers.
pub fn does_not_flush(settings: &WorkerSettings) -> bool {
    matches!(&settings.output, OutputParams::Kafka { witness, .. } if witness.power_loss == PowerLoss::Separately)
}

/// A function of kept records is solved for, or keys are searched for, which takes a time that depends on the records.
pub fn solves_for_function(settings: &WorkerSettings) -> bool {
    settings.releases.iter().any(|release| {
        let accumulator = release.function.target.accumulator();
        matches!(
            accumulator,
            AccumulatorSpec::Records { .. } | AccumulatorSpec::FoundKeys(_)
        )
    })
}

pub fn protects_records(settings: &WorkerSettings) -> bool {
    settings.privacy.unit == PrivacyUnit::Record
}

pub fn renews_for_users(settings: &WorkerSettings) -> bool {
    matches!(
        settings.privacy.unit,
        PrivacyUnit::User {
            per: Period::Every(_),
            ..
        }
    )
}

pub fn hides_values_only(settings: &WorkerSettings) -> bool {
    matches!(settings.privacy.adjacency, Adjacency::ReplaceOne)
}

pub fn is_random(settings: &WorkerSettings) -> bool {
    matches!(settings.privacy.definition, PrivacyDefinition::Random(_))
}

pub fn has_no_shared_budget(settings: &WorkerSettings) -> bool {
    settings.privacy.budget.is_none()
}

pub fn shares_a_budget(settings: &WorkerSettings) -> bool {
    settings.privacy.budget.is_some()
}

pub fn shows_operators(settings: &WorkerSettings) -> bool {
    settings.detail == MetricsDetail::Operator
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guarantee::not_protected;

    const USERS: &str = include_str!("../../../../../config/users.toml");

    #[test]
    fn only_functions_that_are_solved_for_show_how_long_that_took() {
        let shows = |text: &str| solves_for_function(&WorkerSettings::parse(text, "test").unwrap());
        assert!(!shows(USERS));
        let (before, _) = USERS.split_once("[release.density]").unwrap();
        let (_, after) = USERS.split_once("[output.kafka]").unwrap();
        let label = "label = { column = \"age\", min = 0, max = 100, outside = \"clamp\" }";
        let regression = "bandwidth = 150\ngap = 10\nmax_records = 500";
        let text =
            format!("{before}\n{label}\n[release.regression]\n{regression}\n[output.kafka]{after}");
        assert!(shows(&text));
    }

    #[test]
    fn brokers_that_never_lose_power_together_are_a_condition_that_every_synopsis_states() {
        let says = |text: &str| {
            let settings = WorkerSettings::parse(text, "test").unwrap();
            not_protected(&settings)
                .iter()
                .any(|line| line.contains("losing power at once"))
        };
        let saying = |power: &str| {
            USERS.replace(
                "[output.kafka]\n",
                &format!("[output.kafka]\nbrokers_lose_power = {power:?}\n"),
            )
        };
        assert!(!says(USERS) && !says(&saying("together")));
        assert!(says(&saying("separately")));
    }
}
