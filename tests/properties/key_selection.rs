//! Keys that nobody listed: the odds of neighbours, added up over everything that can be published, and the laws of what is drawn.

use bernstream_noise::NoiseError;
use bernstream_noise::calibrate::Scale;
use bernstream_noise::key_selection::{KeySelection, OverfullTest, UNIT_GRAINS};
use bernstream_noise::noise::Generator;
use bernstream_synopsis::calibrate::{Delta, Epsilon};
use bernstream_synopsis::key_threshold::laplace_truncation;

use crate::statistics::{TWO_SIDED, chi_square};

/// What the calibration adds to the least bound that hides a change.
const SLACK: i64 = 16;

/// Far above the relative errors of sums here, and far below any effect on what they say.
const FLOAT_ERROR: f64 = 1e-12;

/// Discrete Laplace noise truncated to `[-bound, bound]`: the probabilities of all its values, the least first.
fn truncated_law(scale: u64, bound: i64) -> Vec<f64> {
    let weights: Vec<f64> = (-bound..=bound)
        .map(|x| (-(x.abs() as f64) / scale as f64).exp())
        .collect();
    let sum: f64 = weights.iter().sum();
    weights.iter().map(|weight| weight / sum).collect()
}

/// A mechanism that finds one key, with any grid.
#[derive(Clone)]
struct KeyLaw {
    noise: Vec<f64>,
    bound: i64,
    /// Grid units of a unit.
    grains: i64,
    /// What a noisy count must exceed: the bound, in a mechanism that is right.
    threshold: i64,
}

impl KeyLaw {
    fn new(scale: u64, bound: i64, grains: i64) -> Self {
        KeyLaw {
            noise: truncated_law(scale, bound),
            bound,
            grains,
            threshold: bound,
        }
    }

    /// The probability that `noisy` is published for a key of `count` units. A key of none is not tested.
    fn chance(&self, count: i64, noisy: i64) -> f64 {
        let index = noisy - count * self.grains + self.bound;
        match count > 0 && noisy > self.threshold && index >= 0 {
            true => self.noise.get(index as usize).copied().unwrap_or(0.0),
            false => 0.0,
        }
    }

    fn chance_of_nothing(&self, count: i64) -> f64 {
        if count == 0 {
            return 1.0;
        }
        let values = self.threshold - count * self.grains + self.bound + 1;
        let hidden = values.clamp(0, self.noise.len() as i64) as usize;
        self.noise[..hidden].iter().sum()
    }

    /// The least delta of `epsilon` between two counts, in one direction: the sum of what one law has above `exp(epsilon)` times the
    /// other.
    fn one_way(&self, count: i64, other: i64, epsilon: f64) -> f64 {
        let odds = (epsilon + FLOAT_ERROR).exp();
        let published = self.threshold + 1..=count * self.grains + self.bound;
        let nothing = self.chance_of_nothing(count) - odds * self.chance_of_nothing(other);
        let above = published
            .map(|noisy| (self.chance(count, noisy) - odds * self.chance(other, noisy)).max(0.0));
        nothing.max(0.0) + above.sum::<f64>()
    }

    /// The largest delta of neighbours with these counts, and one unit more.
    fn largest_delta(&self, counts: impl Iterator<Item = i64>, epsilon: f64) -> f64 {
        let mut largest = 0.0_f64;
        for count in counts {
            largest = largest.max(self.one_way(count, count + 1, epsilon));
            largest = largest.max(self.one_way(count + 1, count, epsilon));
        }
        largest
    }

    /// Counts from which a key is never found to where it is always found: all of them where these are few, and otherwise those at both
    /// ends, in the middle, and some between.
    fn counts(&self) -> impl Iterator<Item = i64> + use<> {
        let certain = 2 * self.bound / self.grains + 2;
        let step = (certain / 16).max(1);
        let middle = certain / 2;
        let is_taken = move |count: &i64| {
            *count < 3 || count % step == 0 || (count - middle).abs() < 2 || *count > certain - 2
        };
        (0..=certain).filter(is_taken)
    }
}

/// A key's price, and the law that it pays for.
struct PricedLaw {
    epsilon: f64,
    delta: f64,
    scale: u64,
    bound: i64,
    grains: i64,
}

impl PricedLaw {
    /// On a small grid, at the price that this scale has there.
    fn with_grid(scale: u64, grains: u32, quintillionths: u64) -> Self {
        let delta = Delta::from_quintillionths(quintillionths);
        PricedLaw {
            epsilon: f64::from(grains) / scale as f64,
            delta: delta.to_f64(),
            scale,
            bound: laplace_truncation(scale, grains, delta).unwrap() as i64,
            grains: i64::from(grains),
        }
    }

    fn of_a_key(max_keys: u32, epsilon: &str, delta: &str) -> Self {
        let selection = selection(max_keys, epsilon, delta);
        PricedLaw {
            epsilon: amount::<Epsilon>(epsilon).to_f64() / f64::from(max_keys),
            delta: amount::<Delta>(delta).to_f64() / f64::from(max_keys),
            scale: selection.scale().units(),
            bound: selection.threshold() as i64,
            grains: UNIT_GRAINS as i64,
        }
    }

    /// Part of the delta that is needed with so many grid units less than the calibration has.
    fn needed(&self, units_less: i64) -> f64 {
        let law = KeyLaw::new(self.scale, self.bound - units_less, self.grains);
        law.largest_delta(law.counts(), self.epsilon) / self.delta
    }
}

fn amount<T: std::str::FromStr<Err = String>>(text: &str) -> T {
    text.parse().unwrap()
}

fn selection(max_keys: u32, epsilon: &str, delta: &str) -> KeySelection {
    KeySelection::calibrated(max_keys, amount(epsilon), amount(delta)).unwrap()
}

#[test]
fn no_count_of_a_key_needs_more_than_its_delta_and_a_lower_threshold_does() {
    let laws = [
        PricedLaw::with_grid(16, 1, 1_000_000_000_000_000),
        PricedLaw::with_grid(16, 8, 1_000_000_000_000),
        PricedLaw::with_grid(48, 16, 10_000_000_000_000_000),
        PricedLaw::with_grid(32, 64, 1),
        PricedLaw::of_a_key(1, "1", "0.000000001"),
        PricedLaw::of_a_key(1, "0.3", "0.000001"),
        PricedLaw::of_a_key(3, "3", "0.000000001"),
        PricedLaw::of_a_key(5, "1", "0.00000000001"),
        PricedLaw::of_a_key(2, "8", "0.000000000000001"),
    ];
    for law in laws {
        let [ours, least, lower] = [0, SLACK, SLACK + 1].map(|less| law.needed(less));
        println!(
            "scale {}, grid {}, K {}: needs {ours:.6} of its delta {:.3e}, without slack {least:.6}, with a grid unit less {lower:.6}",
            law.scale, law.grains, law.bound, law.delta
        );
        assert!(ours <= 1.0 && least <= 1.0, "{ours} {least}");
        assert!(ours > 0.3, "more slack than is needed: {ours}");
        assert!(lower > 1.0, "{lower}");
    }
}

/// At even odds, a law that finds one key of a unit needs as many units as any program.
#[test]
fn a_key_is_found_at_even_odds_from_the_count_that_no_program_beats() {
    for (epsilon, delta) in [
        ("1", "0.000000001"),
        ("0.3", "0.000001"),
        ("3", "0.000000001"),
    ] {
        let law = PricedLaw::of_a_key(1, epsilon, delta);
        let keys = KeyLaw::new(law.scale, law.bound, law.grains);
        let even = (0..).find(|count| keys.chance_of_nothing(*count) <= 0.5);
        let bound = (law.epsilon.exp_m1() / (2.0 * law.delta)).ln_1p() / law.epsilon;
        println!("epsilon {epsilon}, delta {delta}: found at {even:?}, bound {bound:.2}");
        assert!((bound..bound + 1.2).contains(&(even.unwrap() as f64)));
    }
}

#[test]
fn a_threshold_that_may_be_met_needs_more_than_its_delta() {
    let law = PricedLaw::with_grid(16, 1, 1_000_000_000_000_000);
    let strict = KeyLaw::new(law.scale, law.bound - SLACK, law.grains);
    let mut met = strict.clone();
    met.threshold -= 1;
    let [strict, met] = [strict, met].map(|keys| keys.largest_delta(0..3, law.epsilon) / law.delta);
    println!("needs {strict:.4} of its delta, and {met:.4} if counts at the threshold are found");
    assert!(strict <= 1.0 && met > 1.5);
}

/// The two laws of a pair of keys.
fn joint_delta(law: &KeyLaw, counts: [i64; 2], others: [i64; 2], epsilon: f64) -> f64 {
    let outcomes = |count: i64, other: i64| {
        let most = count.max(other) * law.grains + law.bound;
        let published = (law.threshold + 1..=most).map(Some);
        let all = std::iter::once(None).chain(published);
        let chance = |count: i64, outcome: Option<i64>| match outcome {
            Some(noisy) => law.chance(count, noisy),
            None => law.chance_of_nothing(count),
        };
        all.map(|outcome| [chance(count, outcome), chance(other, outcome)])
            .collect::<Vec<_>>()
    };
    let second = outcomes(counts[1], others[1]);
    let mut sum = 0.0;
    for [first, first_other] in outcomes(counts[0], others[0]) {
        for [second, second_other] in &second {
            let others = first_other * second_other;
            sum += (first * second - (epsilon + FLOAT_ERROR).exp() * others).max(0.0);
        }
    }
    sum
}

/// The largest delta of neighbours of whose two keys a unit may change both.
fn largest_joint_delta(law: &KeyLaw, epsilon: f64) -> f64 {
    let certain = 2 * law.bound / law.grains + 1;
    let counts = [0, 1, 2, certain / 2, certain];
    let mut largest = 0.0_f64;
    for first in counts {
        for second in counts {
            for change in [[0, 1], [1, 0], [1, 1], [1, -1], [-1, 1], [-1, -1]] {
                let others = [first + change[0], second + change[1]];
                if others.iter().all(|count| *count >= 0) {
                    largest = largest.max(joint_delta(law, [first, second], others, epsilon));
                }
            }
        }
    }
    largest
}

#[test]
fn two_keys_of_a_unit_need_no_more_than_both_their_deltas() {
    const GRAINS: u32 = 4;
    for (scale, quintillionths) in [(16, 10_000_000_000_000_000), (32, 1_000_000_000_000)] {
        let of_a_key = PricedLaw::with_grid(scale, GRAINS, quintillionths);
        let law = KeyLaw::new(scale, of_a_key.bound, of_a_key.grains);
        let needed = |law: &KeyLaw| {
            largest_joint_delta(law, 2.0 * of_a_key.epsilon) / (2.0 * of_a_key.delta)
        };
        // As if each key had the delta of both.
        let careless = PricedLaw::with_grid(scale, GRAINS, 2 * quintillionths);
        let careless = KeyLaw::new(scale, careless.bound - SLACK, of_a_key.grains);
        let [ours, careless] = [needed(&law), needed(&careless)];
        println!("scale {scale}: {ours:.4} of delta, {careless:.4} where each key has all of it");
        assert!(ours <= 1.0 && ours > 0.3, "{ours}");
        assert!(careless > 1.0, "{careless}");
    }
}

const DRAWS: usize = 1 << 20;

/// A selection whose truncation is often met.
fn often_truncated() -> KeySelection {
    selection(1, "1", "0.3")
}

/// Published counts of `DRAWS` keys of `count` units.
fn found_counts(selection: KeySelection, count: u64, seed: u8) -> Vec<i64> {
    let counts = vec![count; DRAWS];
    let found = selection.find_keys(&counts, &mut Generator::frozen([seed; 32]));
    found
        .into_iter()
        .flatten()
        .map(|noisy| noisy as i64)
        .collect()
}

/// How far published counts are from the law of found keys with this scale and threshold, which also say how many are found: more than
/// 1 rejects.
fn misfit(published: &[i64], count: i64, scale: u64, threshold: i64) -> f64 {
    const WIDTH: i64 = 50;
    let law = KeyLaw::new(scale, threshold, UNIT_GRAINS as i64);
    let most = count * law.grains + threshold;
    let first = (threshold + 1).max(count * law.grains - threshold);
    let bins = (most - first) / WIDTH + 1;
    // What the law cannot publish has a bin of its own, which is all but empty.
    let mut observed = vec![0.0; bins as usize + 2];
    let mut expected = vec![0.0; bins as usize];
    for noisy in published {
        let is_possible = (first..=most).contains(noisy);
        let bin = match is_possible {
            true => (noisy - first) / WIDTH,
            false => bins + 1,
        };
        observed[bin as usize] += 1.0;
    }
    for noisy in first..=most {
        expected[((noisy - first) / WIDTH) as usize] += DRAWS as f64 * law.chance(count, noisy);
    }
    observed[bins as usize] = (DRAWS - published.len()) as f64;
    expected.push(DRAWS as f64 * law.chance_of_nothing(count));
    expected.push(1e-9);
    let pairs = observed.into_iter().zip(expected);
    let pairs: Vec<_> = pairs.filter(|(_, expected)| *expected > 0.0).collect();
    chi_square(&pairs)
}

#[test]
fn what_is_found_has_the_law_and_another_threshold_or_scale_is_found_out() {
    let selection = often_truncated();
    let scale = selection.scale().units();
    let threshold = selection.threshold() as i64;
    for (seed, count) in [(1, 1), (2, 2), (3, 100)] {
        let published = found_counts(selection, count, seed);
        let count = count as i64;
        let fit = misfit(&published, count, scale, threshold);
        println!(
            "{count} units: {} of {DRAWS} found, chi-square at {fit:.3} of its limit",
            published.len()
        );
        assert!(fit < 1.0, "{count}: {fit}");
        let wrong = [
            (scale, threshold + 100),
            (scale, threshold - 100),
            (scale * 21 / 20, threshold),
            (scale * 20 / 21, threshold),
        ];
        for (scale, threshold) in wrong {
            let misfit = misfit(&published, count, scale, threshold);
            assert!(misfit > 1.0, "{count} {scale} {threshold}: {misfit}");
        }
    }
}

/// One by one they have the odds and the mean of many at once.
#[test]
fn keys_that_are_drawn_one_by_one_are_found_as_often() {
    const KEYS: usize = 20_000;
    let selection = often_truncated();
    let mut generator = Generator::frozen([4; 32]);
    let found = (0..KEYS).filter_map(|_| selection.find_key(2, &mut generator));
    let found: Vec<i128> = found.collect();
    let law = KeyLaw::new(
        selection.scale().units(),
        selection.threshold() as i64,
        UNIT_GRAINS as i64,
    );
    let chance = 1.0 - law.chance_of_nothing(2);
    let expected = chance * KEYS as f64;
    let reach = TWO_SIDED * (expected * (1.0 - chance)).sqrt();
    println!("{} found, {expected:.0} expected", found.len());
    assert!((found.len() as f64 - expected).abs() < reach);
    assert!((found.len() as f64 - 1.05 * expected).abs() > reach);
    let least = i128::from(selection.threshold()) + 1;
    let most = 2 * i128::from(UNIT_GRAINS) + i128::from(selection.threshold());
    assert!(found.iter().all(|noisy| (least..=most).contains(noisy)));
}

/// Where noise is small, counts meet the threshold exactly many times.
#[test]
fn a_count_that_meets_the_threshold_is_not_found_and_one_above_it_is() {
    let selection = selection(1, "1000", "0.3");
    assert_eq!(selection.scale(), Scale::SMALLEST);
    let published = found_counts(selection, 1, 5);
    let meeting = KeyLaw::new(16, selection.threshold() as i64, UNIT_GRAINS as i64);
    let meets = meeting.noise[(2 * meeting.bound - meeting.grains) as usize];
    println!("{} found; {meets:.2e} meet the threshold", published.len());
    assert!(meets * DRAWS as f64 > 100.0);
    assert_eq!(
        published.iter().min(),
        Some(&(selection.threshold() as i64 + 1))
    );
}

#[test]
fn a_key_of_no_unit_is_never_found() {
    for selection in [often_truncated(), selection(1, "1000", "0.3")] {
        let mut generator = Generator::frozen([6; 32]);
        let found = selection.find_keys(&vec![0; DRAWS], &mut generator);
        assert!(found.len() == DRAWS && found.iter().all(Option::is_none));
        assert!((0..1_000).all(|_| selection.find_key(0, &mut generator).is_none()));
    }
}

#[test]
fn the_largest_counts_do_not_wrap() {
    let mut generator = Generator::frozen([7; 32]);
    let selection = selection(5, "0.1", "0.000000001");
    let exact = i128::from(u64::MAX) * i128::from(UNIT_GRAINS);
    let noisy = selection.find_key(u64::MAX, &mut generator).unwrap();
    assert!(noisy.abs_diff(exact) <= u128::from(selection.threshold()));
    let announced = selection.count_announced(u64::MAX, &mut generator);
    assert!(announced.abs_diff(exact) < 100 * u128::from(selection.scale().units()));
}

/// Announced keys have noise beyond the threshold, on both sides, also with a count of 0.
#[test]
fn an_announced_key_has_the_plain_law_whatever_its_count() {
    const BINS: usize = 64;
    let selection = often_truncated();
    let scale = selection.scale().units() as f64;
    for (seed, count) in [(8, 0), (9, 3)] {
        let mut generator = Generator::frozen([seed; 32]);
        let mut noisy = selection.count_all_announced(&vec![count; DRAWS], &mut generator);
        let single = (0..1_000).map(|_| selection.count_announced(count, &mut generator));
        noisy.extend(single);
        let exact = i128::from(count * UNIT_GRAINS);
        // Sixteenths of the scale, the tails together.
        let misfit = |scale: f64| {
            let mut bins = vec![(0.0, 0.0); BINS];
            for noisy in &noisy {
                let size = (noisy - exact).unsigned_abs() as f64;
                let bin = (size / 400.0) as usize;
                bins[bin.min(BINS - 1)].0 += 1.0;
            }
            let above = |size: f64| match size <= 0.0 {
                true => 1.0,
                // Twice `r^size / (1 + r)`.
                false => 2.0 * (-size / scale).exp() / (1.0 + (-1.0 / scale).exp()),
            };
            for (bin, pair) in bins.iter_mut().enumerate() {
                let next = match bin + 1 == BINS {
                    true => 0.0,
                    false => above(400.0 * (bin + 1) as f64),
                };
                pair.1 = noisy.len() as f64 * (above(400.0 * bin as f64) - next);
            }
            chi_square(&bins)
        };
        let fit = misfit(scale);
        println!("announced, {count} units: chi-square at {fit:.3} of its limit");
        assert!(fit < 1.0 && misfit(1.05 * scale) > 1.0 && misfit(scale / 1.05) > 1.0);
        let below = noisy.iter().filter(|noisy| **noisy < exact).count() as f64;
        let half = 0.5 * noisy.len() as f64;
        assert!((below - half).abs() < TWO_SIDED * (0.5 * half).sqrt() + 200.0);
        let threshold = i128::from(selection.threshold());
        assert!(noisy.iter().any(|noisy| noisy - exact < -threshold));
    }
}

fn overfull_test(max_keys: u32) -> OverfullTest {
    let calibrated = |limit| {
        OverfullTest::calibrated(limit, max_keys, amount("0.001"), amount("0.000000000001"))
    };
    let Err(NoiseError::LimitTooLow { least, .. }) = calibrated(1) else {
        panic!("a limit of 1 is refused")
    };
    assert!(calibrated(least - 1).is_err());
    calibrated(least).unwrap()
}

/// The probabilities of both answers, each added up from its smallest parts.
#[derive(Clone, Copy)]
struct OverfullChance {
    overfull: f64,
    not_overfull: f64,
}

/// The answers at each number of different keys, from the limit down to the soft limit, with a truncation of its own.
fn overfull_chances(scale: u64, truncation: i64) -> Vec<OverfullChance> {
    let noise = truncated_law(scale, truncation);
    // At `limit - j` keys the noise must exceed `j - truncation - 1`.
    let mut chances = Vec::with_capacity(noise.len() + 1);
    let mut not_overfull = 0.0;
    for chance in std::iter::once(&0.0).chain(&noise) {
        not_overfull += chance;
        chances.push(OverfullChance {
            overfull: 0.0,
            not_overfull,
        });
    }
    let mut overfull = 0.0;
    for (chances, chance) in chances
        .iter_mut()
        .rev()
        .zip([&0.0].into_iter().chain(noise.iter().rev()))
    {
        overfull += chance;
        chances.overfull = overfull;
    }
    chances
}

/// The largest delta of neighbours whose numbers of keys are at most `max_keys` apart.
fn overfull_delta(chances: &[OverfullChance], max_keys: usize, epsilon: f64) -> f64 {
    let odds = (epsilon + FLOAT_ERROR).exp();
    let mut largest = 0.0_f64;
    for (index, one) in chances.iter().enumerate() {
        for other in chances.iter().skip(index + 1).take(max_keys) {
            for (one, other) in [(one, other), (other, one)] {
                let overfull = one.overfull - odds * other.overfull;
                let not_overfull = one.not_overfull - odds * other.not_overfull;
                largest = largest.max(overfull).max(not_overfull);
            }
        }
    }
    largest
}

#[test]
fn the_test_of_too_many_keys_needs_no_more_than_its_price() {
    const DELTA: f64 = 1e-12;
    for max_keys in [1, 3] {
        let test = overfull_test(max_keys);
        let most = max_keys as usize;
        let needed = |truncation: i64| {
            let chances = overfull_chances(test.scale().units(), truncation);
            overfull_delta(&chances, most, 0.001) / DELTA
        };
        let ours = test.truncation() as i64;
        let [ours, least, lower] = [0, SLACK, SLACK + 1].map(|less| needed(ours - less));
        println!(
            "{max_keys} keys: limit {}, soft {}, truncation {}: {ours:.5} of its delta, without slack {least:.5}, with 1 less {lower:.5}",
            test.limit(),
            test.soft_limit(),
            test.truncation()
        );
        assert!(ours <= 1.0 && ours > 0.5 && least <= 1.0 && lower > 1.0);
        // A map that is overfull where it is full, and nowhere else.
        let without_noise = overfull_chances(16, 0);
        assert!(overfull_delta(&without_noise, most, 0.001) > 0.99);
    }
    // As if a unit of three keys changed one.
    let test = overfull_test(3);
    let of_one = laplace_truncation(test.scale().units(), 1, amount("0.000000000001")).unwrap();
    let chances = overfull_chances(test.scale().units(), of_one as i64);
    assert!(overfull_delta(&chances, 3, 0.001) > 2.0 * DELTA);
}

#[test]
fn a_full_window_is_certain_to_be_overfull_and_one_at_the_soft_limit_never_is() {
    const WINDOWS: usize = 10_000;
    let test = OverfullTest::calibrated(1_000, 1, amount("0.3"), amount("0.001")).unwrap();
    let chances = overfull_chances(test.scale().units(), test.truncation() as i64);
    assert!(2 * test.soft_limit() >= test.limit());
    let mut generator = Generator::frozen([10; 32]);
    let mut overfull = |keys: u64| {
        let windows = (0..WINDOWS).filter(|_| test.is_overfull(keys, &mut generator));
        windows.count()
    };
    for keys in [0, 1, test.soft_limit() - 1, test.soft_limit()] {
        assert_eq!(overfull(keys), 0, "{keys}");
    }
    for keys in [test.limit(), test.limit() + 1, u64::MAX] {
        assert_eq!(overfull(keys), WINDOWS, "{keys}");
    }
    let mut is_between = false;
    for keys in test.soft_limit() + 1..test.limit() {
        let chance = chances[(test.limit() - keys) as usize].overfull;
        let found = overfull(keys) as f64;
        let expected = chance * WINDOWS as f64;
        let reach = TWO_SIDED * (expected * (1.0 - chance)).sqrt() + 10.0;
        assert!(
            (found - expected).abs() < reach,
            "{keys}: {found} {expected}"
        );
        is_between |= (0.2..0.8).contains(&chance) && (found - 1.3 * expected).abs() > reach;
    }
    assert!(is_between);
}
