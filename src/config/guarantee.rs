//! The guarantee in words. Said once here; shown by `check` and `explain`, and carried by every synopsis.

use std::time::Duration;

use crate::accountant::concentrated;
use crate::accountant::policy::Policy;
use crate::clock::micros;
use crate::config::budget::Payment;
use crate::config::over::{self, WindowKind};
use crate::config::{Calibration, Input, Period, Release, Settings, Unit, composition, policy};
use crate::mechanism::NoiseDistribution;
use crate::mechanism::calibrate::{Delta, Rho};
use crate::mechanism::price::Price;
use crate::metrics::Detail;
use crate::source::kafka::OnBadMessage;
use crate::synopsis::description::{Definition, Implied, Random};
use crate::targets::Adjacency;
use crate::window::accumulator::AccumulatorSpec;

/// Of an ordinary machine.
const PRODUCTS_A_SECOND: u64 = 1_000_000_000;

const EVERYTHING: &str = "everything that is ever published, retries and restarts included";

/// What is promised, to whom, for how much, and how it adds up: one sentence a line.
pub fn promise(settings: &Settings) -> Vec<String> {
    let (total, price) = (settings.privacy.total, settings.window_price());
    let mut lines = match &settings.privacy.definition {
        Definition::Random(random) => self::random(settings, random),
        _ => plain(settings),
    };
    let keys = if settings.groups() > 1 { " for all its keys together, which share out the records" } else { "" };
    let is_fixed = |release: &Release| matches!(release.policy, Policy::Fixed(_));
    match settings.releases.iter().all(is_fixed) {
        true => lines.push(format!("A window costs {price}{keys}.")),
        false => lines.push(format!(
            "What a window costs{keys} follows from how many windows met its block before; the first costs {price}."
        )),
    }
    if settings.privacy.limit() != total {
        let limit = settings.privacy.limit();
        lines.push(format!("Windows spend {limit} of a block at most; the rest is kept for corrections."));
    }
    for release in &settings.releases {
        let own = self::release(settings, release);
        if !is_fixed(release) {
            lines.push(format!("The release {:?} costs {}.", release.name, policy::in_words(release.policy)));
        } else if settings.releases.len() > 1 {
            lines.extend(
                release
                    .policy
                    .price(0)
                    .filter(|price| !price.is_zero())
                    .map(|price| format!("Of that, {price} pays for the release {:?}.", release.name)),
            );
        }
        if settings.privacy.definition == Definition::Planned {
            lines.push(format!(
                "The noise of the release {:?} is declared at {}.",
                release.name,
                release.payment.own()
            ));
        }
        lines.extend(own);
        lines.extend(over::in_words(release, settings.windows.grid.length()));
    }
    match &settings.privacy.unit {
        Unit::Record if settings.releases.iter().all(|release| release.over == WindowKind::Tumbling) => {
            lines.push("A record lies in one window, so windows do not add up (parallel composition).".to_owned())
        }
        Unit::Record => lines.push(format!(
            "{} A record lies in one window of [windows], so windows do not add up (parallel composition) but where one pays for \
             several releases, or several times.",
            match settings.price_in_all() {
                Some(all) => format!("In all a window is charged {all}."),
                None => format!("{total} does not pay for all the releases that speak of a window: some are not published."),
            }
        )),
        Unit::User { per: Period::Ever, max_records_per_window, .. } => {
            lines.push(format!(
                "All windows add up (sequential composition), for ever; a window that would take the sum over {total} is \
                 not published."
            ));
            lines.push(format!(
                "At most {max_records_per_window} records of a user count in a window, over all keys; which ones depends on \
                 that user's records alone."
            ));
        }
        Unit::User { per: Period::Every(_), max_records_per_window, .. } => {
            lines.push(format!(
                "The windows of a period add up (sequential composition); a window that would take its period over \
                 {total} is not published."
            ));
            lines.push(format!(
                "At most {max_records_per_window} records of a user and period count in a window, over all keys; which \
                 ones depends on that user's records alone."
            ));
        }
    }
    lines
}

/// What one release pays for beside its noise, and what is unusual about that.
fn release(settings: &Settings, release: &Release) -> Vec<String> {
    let total = settings.privacy.total;
    // The noise of a sum is not that of a window of its own.
    let mut lines: Vec<String> = pure_noise(release).filter(|_| !release.is_sum_of_panes()).into_iter().collect();
    for (choice, paid) in [
        ("bandwidths", release.private_bandwidths.as_ref().map(|choice| choice.price)),
        ("order", release.private_order.as_ref().map(|choice| choice.price)),
    ] {
        // What a window of a plan chooses was declared with the plan.
        if let Some((epsilon, paid)) = paid.and_then(|epsilon| Some((epsilon, total.of_pure(epsilon)?))) {
            let pure = format!(", of pure differential privacy with epsilon = {epsilon}");
            let pure = if matches!(total, Price::Concentrated(_)) { &pure } else { "" };
            lines.push(format!(
                "Of that, {paid} pays for the choice of the {choice}{pure}, which each window and key makes from its own records."
            ));
        }
    }
    lines.extend(settings.calibrated(release, &release.function).ok().and_then(|calibrated| calibrated.remark()));
    lines
}

/// A guarantee of one of the three kinds, and what it means.
fn plain(settings: &Settings) -> Vec<String> {
    let (who, changes, of, hidden) = match (&settings.privacy.unit, settings.privacy.adjacency) {
        (Unit::Record, Adjacency::AddRemove) => ("One record more or less".to_owned(), "changes", "records", ""),
        (Unit::Record, Adjacency::ReplaceOne) => (
            "Other values in one record".to_owned(),
            "change",
            "the values of records",
            " That a record is there, its time and its key are not hidden.",
        ),
        (Unit::User { column, per: Period::Ever, .. }, _) => {
            let who = format!("All records of one user ({column}) more or less, whenever they were sent,");
            (who, "change", "a user", "")
        }
        (Unit::User { column, per: per @ Period::Every(_), .. }, _) => {
            let who = format!("All records of one user ({column}) in one period of {per} more or less");
            (who, "change", "a user's period", "")
        }
    };
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
        Price::Concentrated(rho) if settings.privacy.definition == Definition::Gaussian => {
            let mut lines = vec![format!(
                "{who} {changes} the probabilities of {EVERYTHING}, no more than a normal variable of deviation 1 that moves by \
                 sqrt(2 x {rho}), all noise being Gaussian, but for a rounding to whole numbers that the delta below has room \
                 for: Gaussian differential privacy of {of} with mu = {}.{hidden}",
                ((2.0 * rho.to_f64()).sqrt() * 1e6).ceil() / 1e6
            )];
            lines.extend(settings.privacy.implies.map(|implies| composition::in_words(implies, settings.privacy.total)));
            lines
        }
        Price::Concentrated(rho) => vec![
            format!(
                "{who} {changes} the probabilities of {EVERYTHING}, by a Renyi divergence of at most {rho} a for every order a > 1, \
                 either way: zero-concentrated differential privacy of {of} with rho = {rho}.{hidden}"
            ),
            match settings.privacy.implies {
                Some(implies) => composition::in_words(implies, settings.privacy.total),
                None => implied(rho),
            },
        ],
        Price::Slots(windows) => settings.privacy.implies.map_or(Vec::new(), |Implied { epsilon, delta }| {
            vec![format!(
                "{who} {changes} the probability that {EVERYTHING}, is in a set of outcomes, whichever set that is, to at most \
                 exp({epsilon}) times as much plus {delta}: approximate, (epsilon, delta)-differential privacy of {of} with epsilon = \
                 {epsilon} and delta = {delta}, of a plan of {windows} windows that was declared before the first of them, \
                 however many of them are published.{hidden}"
            )]
        }),
    }
}

/// What a rho means as (epsilon, delta), the least that is known [CKS20, corollary 13], rounded up to show.
pub fn implied(rho: Rho) -> String {
    let at = |quintillionths: u64| {
        let epsilon = concentrated::epsilon_of(rho, Delta::from_quintillionths(quintillionths));
        epsilon.map_or(f64::INFINITY, |epsilon| (epsilon.to_f64() * 1e3 + 1e-6).ceil() / 1e3)
    };
    format!(
        "A rho implies (epsilon, delta)-differential privacy for every delta: of this total, epsilon = {} at delta = 1e-6, or {} \
         at delta = 1e-9.",
        at(1_000_000_000_000),
        at(1_000_000_000)
    )
}

/// What noise of pure differential privacy takes of a price of another kind.
fn pure_noise(release: &Release) -> Option<String> {
    let epsilon = release.payment.epsilon();
    match (release.body.law(), release.payment.price()) {
        (NoiseDistribution::DiscreteLaplace, Price::Concentrated(_)) if matches!(release.payment, Payment::Own(_)) => Some(
            "Its noise is Laplace noise, whose own constant is smaller than that of other pure mechanisms: a rho of t + exp(-t) - 1, \
             t being the largest change over the scale."
                .to_owned(),
        ),
        (NoiseDistribution::DiscreteLaplace | NoiseDistribution::DiscreteCube | NoiseDistribution::Ball, Price::Concentrated(_))
            if matches!(release.policy, Policy::Decaying { .. }) =>
        {
            Some(
                "Its noise is of pure differential privacy, which costs a rho of epsilon tanh(epsilon / 2).".to_owned(),
            )
        }
        (NoiseDistribution::DiscreteLaplace | NoiseDistribution::DiscreteCube | NoiseDistribution::Ball, Price::Concentrated(_)) => Some(format!(
            "Its noise is of pure differential privacy with epsilon = {epsilon}, which costs a rho of epsilon tanh(epsilon / 2)."
        )),
        (NoiseDistribution::DiscreteLaplace | NoiseDistribution::DiscreteCube | NoiseDistribution::Ball, Price::Approximate { delta, .. })
            if !matches!(release.policy, Policy::Decaying { .. })
                && delta > Delta::ZERO
                && release.calibration == Calibration::Tight =>
        {
            Some(format!(
                "Its noise is of pure differential privacy with epsilon = {epsilon} and makes no use of the delta."
            ))
        }
        _ => None,
    }
}

/// Never to be taken for plain differential privacy: for whom, how often, how it adds up, and what holds for the rest.
fn random(settings: &Settings, random: &Random) -> Vec<String> {
    let (total, gamma, records) = (settings.privacy.total, random.gamma, random.records);
    let (change, rest) = match settings.privacy.adjacency {
        Adjacency::AddRemove => ("one of them left out", ""),
        Adjacency::ReplaceOne => {
            ("one of them drawn anew", " That a record is there, its time and its key are not hidden.")
        }
    };
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

/// What the promise does not cover.
pub fn not_protected(settings: &Settings) -> Vec<String> {
    let mut lines = vec![
        "exact publication times when the worker is late, and that it has stopped".to_owned(),
        "copies of one row that a producer wrote twice: use idempotent producers".to_owned(),
    ];
    let is_slow = |release: &Release| matches!(release.function.target.keep(), AccumulatorSpec::Records { .. });
    if settings.releases.iter().any(is_slow) {
        let slow = "how long a window takes to compute, which depends on its records: it shows where a synopsis falls due meanwhile";
        lines.push(slow.to_owned());
    }
    if let Definition::Random(random) = &settings.privacy.definition {
        lines.push("records that are not as the prior says, but for what clipping and the noise leave".to_owned());
        lines.push(format!("each record that is, with a probability of up to gamma = {} in each window", random.gamma));
        lines.push(format!(
            "windows and keys with another number of records than {}, but for what clipping and the noise leave: fewer \
             records can change a value far more",
            random.records
        ));
    }
    if let Unit::User { per: per @ Period::Every(_), .. } = &settings.privacy.unit {
        lines
            .push(format!("what the records of several periods of {per} tell together: each period has its own total"));
    }
    if let Input::Kafka(kafka) = &settings.input {
        if kafka.trust_producer_time {
            lines.push("against producers: their clocks decide which window a record belongs to".to_owned());
        }
        if kafka.on_bad_message == OnBadMessage::Skip || !kafka.skip.is_empty() {
            lines
                .push("messages that cannot be read: they are skipped, and whether there were any can show".to_owned());
        }
        if !kafka.lost.is_empty() {
            lines.push("input that was deleted before it was read: it is missing from its windows".to_owned());
        }
    }
    if settings.detail == Detail::Operator {
        lines.push("the metrics: they show exact counts and lags to whoever can read them".to_owned());
    }
    lines
}

/// What is allowed but may surprise: windows and periods that do not fit together.
pub fn notes(settings: &Settings) -> Vec<String> {
    slow(settings).into_iter().chain(misfits(settings)).chain(overlaps(settings)).collect()
}

/// That a record cannot pay for all the windows that it is in.
fn overlaps(settings: &Settings) -> Option<String> {
    let is_short = settings.privacy.unit == Unit::Record && settings.price_in_all().is_none();
    is_short.then(|| {
        format!(
            "{} does not pay for all the releases that speak of a window: again and again windows will not be published",
            settings.privacy.limit()
        )
    })
}

/// That a window can take longer than the time until it is due.
fn slow(settings: &Settings) -> Option<String> {
    let Input::Kafka(kafka) = &settings.input else { return None };
    let one = settings.releases.iter().map(|release| release.function.target.cost().products);
    let products = one.fold(0, u64::saturating_add).saturating_mul(settings.groups() as u64);
    let (longest, delay) = (Duration::from_secs(products / PRODUCTS_A_SECOND), settings.publish_delay);
    // Windows are computed one after the other, each from its cutoff on: what falls due then waits.
    let length = micros(settings.windows.grid.length()).max(1);
    let busy = kafka.clock_slack.saturating_add(longest);
    let falls_into = micros(delay) % length < micros(busy);
    (longest > Duration::ZERO && (longest > delay || falls_into)).then(|| {
        format!(
            "a window whose keys are all full can take {products} multiplications, some {} where {PRODUCTS_A_SECOND} take a \
             second, and is computed from its cutoff on; windows.publish_delay is {}: what falls due meanwhile is late, and that \
             shows something of the records",
            crate::clock::show(longest),
            crate::clock::show(delay)
        )
    })
}

fn misfits(settings: &Settings) -> Vec<String> {
    let Unit::User { per: Period::Every(per), max_records_per_window: cap, .. } = &settings.privacy.unit else {
        return Vec::new();
    };
    let length = settings.windows.grid.length();
    let (window, period) = (micros(length), micros(*per));
    let (shown_window, shown_period) = (crate::clock::show(length), crate::clock::show(*per));
    if period % window == 0 {
        return Vec::new();
    }
    let straddled = format!(
        "windows of {shown_window} do not fill periods of {shown_period} evenly: a window that meets several periods \
         charges each of them its whole price"
    );
    if period >= window {
        return vec![straddled];
    }
    // A window that starts just before a border meets one period more than fit into it.
    let most = most_blocks(length, *per);
    let most_records = u64::from(*cap).saturating_mul(most);
    let several = format!(
        "a window is longer than a period: it meets up to {most} periods, a user may count with up to {most_records} \
         records in it, {cap} for each period, and loses its price for each of them"
    );
    if window % period == 0 { vec![several] } else { vec![straddled, several] }
}

/// The most blocks of `block` that a window of `window` can meet, both on grids with one origin.
///
/// A window starts `r = m * gcd` after a border, `r < block`, and meets `ceil((r + window) / block)` blocks.
pub fn most_blocks(window: Duration, block: Duration) -> u64 {
    let (window, block) = (micros(window).unsigned_abs(), micros(block).unsigned_abs().max(1));
    let step = gcd(window, block);
    (block - step).saturating_add(window).div_ceil(block)
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Timestamp;
    use crate::window::grid::Grid;

    #[test]
    fn the_most_blocks_of_a_window_is_what_the_grid_says() {
        for (window, block) in [(7, 3), (3, 7), (6, 3), (3, 6), (5, 4), (4, 5), (1, 9), (9, 1), (12, 8)] {
            let [w, b] = [window, block].map(Duration::from_micros);
            let [windows, blocks] = [w, b].map(|length| Grid::new(Timestamp::from_micros(2), length).unwrap());
            let mut span = windows.span_of(Timestamp::from_micros(-100));
            let mut most = 0;
            for _ in 0..100 {
                most = most.max(blocks.spans_meeting(span).count());
                span = windows.after(span);
            }
            assert_eq!(usize::try_from(most_blocks(w, b)).unwrap(), most, "{window} {block}");
        }
    }

    const USERS: &str = include_str!("../../config/users.toml");

    #[test]
    fn windows_and_periods_that_do_not_fit_are_noted() {
        let notes = |per: &str| {
            let text = USERS.replace("per = \"1d\"", &format!("per = \"{per}\""));
            notes(&Settings::parse(&text, "test").unwrap()).join("\n")
        };
        assert_eq!(notes("1d"), "");
        assert_eq!(notes("1h"), "");
        assert!(notes("90m").contains("charges each of them its whole price"));
        assert!(!notes("90m").contains("longer than a period"));
        assert!(notes("30m").contains("meets up to 2 periods, a user may count with up to 40 records"));
        // 60 minutes over periods of 25 meet up to four: 5 + 25 + 25 + 5.
        assert_eq!(notes("ever"), "");
        assert!(notes("25m").contains("meets up to 4 periods, a user may count with up to 80 records"));
    }

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

    #[test]
    fn every_kind_of_budget_says_what_it_means() {
        let promise = |total: &str, price: &str| {
            let text = USERS.replace("epsilon = 1.0", total).replace("epsilon = 0.04", price);
            promise(&Settings::parse(&text, "test").unwrap()).join(" ")
        };
        let said = promise("epsilon = 1.0\ndelta = 1e-7", "epsilon = 0.04");
        for words in ["to at most exp(1) times as much plus 0.0000001", "A window costs (epsilon 0.04, delta 0)"] {
            assert!(said.starts_with("All records of one user") && said.contains(words), "{said}");
        }
        assert!(!said.contains("makes no use of the delta"), "{said}");
        let said = promise("rho = 0.5", "epsilon = 0.04");
        // By a search over the orders of [CKS20, corollary 13]: 5.22153... and 6.47407...
        for words in ["Renyi divergence of at most 0.5 a", "epsilon = 5.222 at delta = 1e-6, or 6.475 at delta = 1e-9"]
        {
            assert!(said.contains(words), "{said}");
        }
        assert!(
            said.contains("A window costs rho 0.00079989") && said.contains("epsilon = 0.04, which costs"),
            "{said}"
        );
    }

    #[test]
    fn every_promise_names_its_unit_and_its_total() {
        let promise = |text: &str| promise(&Settings::parse(text, "test").unwrap()).join(" ");
        let flights = include_str!("../../config/flights.toml");
        let ever = USERS.replace("per = \"1d\"", "per = \"ever\"");
        let replaced = flights.replace("\"add_remove\"", "{ replace_one = { records_per_window = 9 } }");
        for (text, unit) in [
            (flights, "One record more or less"),
            (replaced.as_str(), "Other values in one record"),
            (USERS, "All records of one user (user_id) in one period of 1d more or less"),
            (ever.as_str(), "All records of one user (user_id) more or less, whenever they were sent, change"),
        ] {
            let said = promise(text);
            assert!(said.starts_with(unit) && said.contains("epsilon = 1."), "{said}");
        }
    }
}
