//! What an audit cannot show, for this configuration.

use super::attack::AttackOutcome;
use super::replay::ReplayFindings;
use crate::cli::figures::three_digits;
use bernstream_audit::samplers::SamplerFindings;
use bernstream_config::{InputParams, WorkerSettings};
use bernstream_kafka::source::record::TopicFormat;
use bernstream_noise::accountant::policy::PricePolicy;
use bernstream_release::Target;
use bernstream_synopsis::description::PrivacyDefinition;

/// A sentence each: what a fault must look like to stay unseen.
pub fn limits_in_words(
    settings: &WorkerSettings,
    replayed: &ReplayFindings,
    sampled: &[SamplerFindings],
    attacks: &[AttackOutcome],
) -> Vec<String> {
    let mut lines = limits_of_replays(settings, replayed);
    lines.extend(limits_of_samplers(sampled));
    lines.extend(limits_of_attacks(settings, attacks));
    lines.extend(
        [
            "that the prices of several windows, keys and releases add up to no more than the total: that is proved \
             (docs/proofs/composition.md) and kept by the ledger, not shown by runs",
            "the entropy of the operating system: the noise here comes from a seed, that of a worker from the system",
            "brokers, disks, clocks and crashes: a replay has its messages in memory, and one worker that never stops",
            "other versions of this program, and this program on another machine",
            "what the promise leaves out (docs/concepts/not-protected.md)",
        ]
        .map(str::to_owned),
    );
    lines
}

fn limits_of_replays(settings: &WorkerSettings, replayed: &ReplayFindings) -> Vec<String> {
    let mut lines = vec![
        "a pair of streams that is worse than those replayed: they are made from the words of the promise, with records at \
         corners, edges and a few places between, not at every place"
            .to_owned(),
    ];
    if replayed.replayed < replayed.pairs {
        lines.push(format!(
            "{} of the {} pairs, for which there was no time: more --minutes",
            replayed.pairs - replayed.replayed,
            replayed.pairs
        ));
    }
    if settings
        .releases
        .iter()
        .any(|release| release.private_bandwidths.is_some())
    {
        lines.push(
            "what follows a private choice in which two streams differ: the rest of that window has other noise, and is not compared"
                .to_owned(),
        );
    }
    if replayed.uncompared_tables > 0 {
        lines.push(format!(
            "the rows of {} of {} tables of keys that nobody listed: one of their two streams had a key or an announced key that the other \
             had not, so the same random numbers were other noise; each was held against its own stream, and attacks drew the like many \
             times",
            replayed.uncompared_tables, replayed.found_tables
        ));
    }
    lines.push("noise that two keys share, where a pair differs in one of them".to_owned());
    let is_arrow = matches!(&settings.input, InputParams::Kafka(kafka) if matches!(kafka.format, TopicFormat::Arrow));
    if !is_arrow {
        lines.push(
            "how records are read from their form or file: those of a replay come as Arrow (tests of the program compare all forms)"
                .to_owned(),
        );
    }
    if matches!(settings.input, InputParams::Kafka(_)) {
        lines.push(
            "several readers: a replay has one (tests of the program compare one with many)"
                .to_owned(),
        );
        lines.push(
            "a ledger with a backfill: a replay's ledger has none (tests of the program have one)"
                .to_owned(),
        );
    }
    if let PrivacyDefinition::Random(random) = &settings.privacy.definition {
        lines.push(format!(
            "random differential privacy: its sensitivity was sampled, so pairs that move a release by more than that are no fault; \
             that they are rare on the prior, {} of all, is not tested here",
            random.gamma
        ));
    }
    if settings
        .releases
        .iter()
        .any(|release| is_solved(&*release.function.target))
    {
        lines.push(
            "the time that a solver takes: it depends on the records, and a replay compares no times (publication is by the \
             schedule)"
                .to_owned(),
        );
    }
    lines
}

/// A release whose evaluation takes many steps.
fn is_solved(target: &dyn Target) -> bool {
    !target.is_sum() && target.cost().products > 0
}

fn limits_of_samplers(sampled: &[SamplerFindings]) -> Vec<String> {
    let mut lines = Vec::new();
    let largest = sampled
        .iter()
        .flat_map(|one| &one.tests)
        .map(|test| test.allowed)
        .fold(0.0, f64::max);
    if largest > 0.0 {
        lines.push(format!(
            "a sampler that is wrong in less than {} of its draws, whose numbers miss some between others in another pattern than that of \
             their low bits, or whose values depend on each other in more than the size of a draw and the signs of neighbours",
            three_digits(2.0 * largest)
        ));
    }
    for one in sampled.iter().filter(|one| !one.untested.is_empty()) {
        lines.push(format!(
            "{} of the noise of {}: its scale is {} grid units, too few for a distribution of real numbers",
            one.untested.join(" and "),
            one.of,
            one.scale_in_grid_units
        ));
    }
    lines
}

fn limits_of_attacks(settings: &WorkerSettings, attacks: &[AttackOutcome]) -> Vec<String> {
    let mut lines = Vec::new();
    for outcome in attacks {
        match outcome {
            AttackOutcome::NotAttacked { release, why } => {
                lines.push(format!("the attack on {release}: {why}"))
            }
            AttackOutcome::Attacked { attacked, .. } => {
                let allowed = attacked
                    .tests
                    .iter()
                    .filter(|test| test.draws > 0)
                    .map(|test| test.allowed);
                lines.push(format!(
                    "a fault that moves no distribution of the attack on {} by {}, such as one in a smaller part of the windows",
                    attacked.release,
                    three_digits(2.0 * allowed.fold(0.0, f64::max))
                ));
            }
        }
    }
    if attacks.iter().any(has_no_cost) {
        lines.push(
            "what the change costs beside the price, for a declared plan, random differential privacy and pure noise with a delta: the \
             price of one window says nothing that holds for every pair; of a declared plan the attacker is compared with the budget of \
             the whole plan"
                .to_owned(),
        );
    }
    lines.push(
        "what an attacker learns from several releases, windows or keys of another pair at once: every attack is on one release and one \
         window"
            .to_owned(),
    );
    if settings.found_keys.is_some() {
        lines.push(
            "the noise of the test whether there are too many different keys, and tables that have more keys than rows, by runs: replays \
             compare what they are made from"
                .to_owned(),
        );
    }
    for release in &settings.releases {
        let name = &release.name;
        if release.private_bandwidths.is_some() {
            lines.push(format!(
                "the choice of bandwidths of {name} by runs: each function is attacked by itself; the noise of the choice is tested, and \
                 what it is made from is compared"
            ));
        }
        if release.is_sum_of_panes() {
            lines.push(format!(
                "later synopses of the running sum {name} by runs: the first is attacked; replays compare how all move"
            ));
        }
        if matches!(release.policy, PricePolicy::Decaying { .. }) {
            lines.push(format!(
                "later prices of {name}: attacks and samplers have the scale of a first window"
            ));
        }
    }
    lines
}

/// Tells whether nothing that is calculated was compared with the price.
fn has_no_cost(outcome: &AttackOutcome) -> bool {
    matches!(outcome, AttackOutcome::Attacked { attacked, .. } if attacked.tests.iter().all(|test| test.draws > 0))
}
