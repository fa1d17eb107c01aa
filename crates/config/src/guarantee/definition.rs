//! The definition of each kind of guarantee, in words.

use crate::settings::{Period, PrivacyUnit, WorkerSettings};
use bernstream_noise::accountant::concentrated;
use bernstream_synopsis::Adjacency;
use bernstream_synopsis::calibrate::{Delta, Rho};
use bernstream_synopsis::description::{ImpliedPrivacy, PrivacyDefinition, RandomPrivacy};
use bernstream_synopsis::price::Price;

const EVERYTHING: &str = "everything that is ever published, retries and restarts included";

/// The part of validity that `replace_one` hides, and the facts that it does not hide. `tests/properties/absent.rs` and
/// `tests/properties/neighbours.rs` test just that.
const REPLACED: &str = " The other values may also make it invalid, or valid: null, not a number, outside a domain that drops. That a \
                        record is there, its time and its key are not hidden.";

/// A guarantee of plain differential privacy: pure, approximate, concentrated or Gaussian.
pub fn plain_guarantee(settings: &WorkerSettings) -> Vec<String> {
    let NeighbourWords {
        who,
        changes,
        of,
        hidden,
    } = neighbour_words(settings);
    match settings.privacy.total {
        Price::Pure(epsilon) => vec![format!(
            "{who} {changes} the probability of {EVERYTHING}, by at most a factor of exp({epsilon}): pure differential privacy of \
             {of} with epsilon = {epsilon}.{hidden}"
        )],
        Price::Approximate { epsilon, delta } => vec![
            format!(
                "{who} {changes} the probability that {EVERYTHING}, is in a set of outcomes, whichever set that is, to at most \
                 exp({epsilon}) times as much plus {delta}: approximate, (epsilon, delta)-differential privacy of {of} with epsilon = \
                 {epsilon} and delta = {delta}.{hidden}"
            ),
            "Delta is room for outcomes that the factor does not hold for, those that give a unit away among them: it should be \
             far below one over the number of units."
                .to_owned(),
        ],
        Price::Concentrated(rho) if settings.privacy.definition == PrivacyDefinition::Gaussian => {
            let mut lines = vec![format!(
                "{who} {changes} the probabilities of {EVERYTHING}, no more than a normal variable of deviation 1 that moves by \
                 sqrt(2 x {rho}), all noise being Gaussian, but for a rounding to whole numbers that moves no probability by \
                 more than 3e-12: Gaussian differential privacy of {of} with mu = {}.{hidden}",
                ((2.0 * rho.to_f64()).sqrt() * 1e6).ceil() / 1e6
            )];
            lines.extend(settings.privacy.implies.map(|implies| promise_sentence(implies, settings.privacy.total)));
            lines
        }
        Price::Concentrated(rho) => vec![
            format!(
                "{who} {changes} the probabilities of {EVERYTHING}, by a Renyi divergence of at most {rho} a for every order a > 1, \
                 either way: zero-concentrated differential privacy of {of} with rho = {rho}.{hidden}"
            ),
            match settings.privacy.implies {
                Some(implies) => promise_sentence(implies, settings.privacy.total),
                None => implied_sentence(rho),
            },
        ],
        Price::Slots(windows) => settings.privacy.implies.map_or(Vec::new(), |ImpliedPrivacy { epsilon, delta }| {
            vec![format!(
                "{who} {changes} the probability that {EVERYTHING}, is in a set of outcomes, whichever set that is, to at most \
                 exp({epsilon}) times as much plus {delta}: approximate, (epsilon, delta)-differential privacy of {of} with epsilon = \
                 {epsilon} and delta = {delta}, of a plan of {windows} windows that was declared before the first of them, \
                 however many of them are published.{hidden}"
            )]
        }),
    }
}

/// The parts of a sentence about neighbouring streams.
struct NeighbourWords {
    /// The difference between two neighbours.
    who: String,
    /// Its verb.
    changes: &'static str,
    /// The records that are protected.
    of: &'static str,
    /// A sentence about what is hidden and what is not; empty if there is nothing to add.
    hidden: &'static str,
}

fn neighbour_words(settings: &WorkerSettings) -> NeighbourWords {
    match &settings.privacy.unit {
        PrivacyUnit::Record => match settings.privacy.adjacency {
            Adjacency::AddRemove => NeighbourWords {
                who: "One record more or less".to_owned(),
                changes: "changes",
                of: "records",
                hidden: "",
            },
            Adjacency::ReplaceOne => NeighbourWords {
                who: "Other values in one record".to_owned(),
                changes: "change",
                of: "the values of records",
                hidden: REPLACED,
            },
        },
        PrivacyUnit::User {
            column,
            per: Period::Ever,
            ..
        } => NeighbourWords {
            who: format!(
                "All records of one user ({column}) more or less, whenever they were sent,"
            ),
            changes: "change",
            of: "a user",
            hidden: "",
        },
        PrivacyUnit::User {
            column,
            per: per @ Period::Every(_),
            ..
        } => NeighbourWords {
            who: format!("All records of one user ({column}) in one period of {per} more or less"),
            changes: "change",
            of: "a user's period",
            hidden: "",
        },
    }
}

/// The (epsilon, delta) that a rho implies: the tightest known bound `[CKS20]`, corollary 13, rounded up.
pub fn implied_sentence(rho: Rho) -> String {
    format!(
        "A rho implies (epsilon, delta)-differential privacy for every delta: of this total, epsilon = {} at delta = 1e-6, or {} \
         at delta = 1e-9.",
        implied_epsilon(rho, Delta::from_quintillionths(1_000_000_000_000)),
        implied_epsilon(rho, Delta::from_quintillionths(1_000_000_000))
    )
}

/// The epsilon that a rho implies at `delta`, rounded up to thousandths.
fn implied_epsilon(rho: Rho, delta: Delta) -> f64 {
    match concentrated::epsilon_of(rho, delta) {
        Some(epsilon) => (epsilon.to_f64() * 1e3 + 1e-6).ceil() / 1e3,
        None => f64::INFINITY,
    }
}

/// The (epsilon, delta) that was asked for and that the total implies.
fn promise_sentence(implied: ImpliedPrivacy, total: Price) -> String {
    let ImpliedPrivacy { epsilon, delta } = implied;
    format!(
        "Of this total, {total}, follows (epsilon, delta)-differential privacy with epsilon = {epsilon} and delta = {delta}, which \
         is what was asked for."
    )
}

/// Random differential privacy `[RA17]`, which must not be mistaken for plain differential privacy: for which records and with
/// which probability it holds, how it composes, and what holds otherwise.
pub fn random_guarantee(settings: &WorkerSettings, random: &RandomPrivacy) -> Vec<String> {
    let total = settings.privacy.total;
    let gamma = random.gamma;
    let records = random.records;
    let change;
    let rest;
    match settings.privacy.adjacency {
        Adjacency::AddRemove => {
            change = "one of them left out";
            rest = "";
        }
        Adjacency::ReplaceOne => {
            change = "one of them drawn anew or made invalid";
            rest = REPLACED;
        }
    }
    let [lo, hi] = random.range;
    vec![
        format!(
            "RANDOM differential privacy of records, not plain: epsilon = {total} with gamma = {gamma}. For {records} records \
             of a window and key, drawn independently from the public prior, and {change}, the probability of {EVERYTHING}, \
             changes by at most a factor of exp({total}), but for a probability of {gamma} over those records and the pairs \
             that were sampled.{rest}"
        ),
        format!(
            "Gamma is that of one record, window and key, and adds up (union bound): at most w x {gamma} for w windows and keys \
             together, at most {records} x {gamma} for all records of one at once; from 1 on that says nothing."
        ),
        format!(
            "Of records that the prior does not resemble it says nothing. Whatever the records are, values are clipped to {lo} to \
             {hi}, so that none changes a value by more than {}, and the noise gives pure differential privacy with epsilon = \
             {:.1} a window.",
            hi - lo,
            random.epsilon_at_worst
        ),
    ]
}
