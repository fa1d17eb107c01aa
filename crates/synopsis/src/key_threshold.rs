//! The threshold above which a key that nobody listed is found, and what the published count of a found key says
//! (`docs/proofs/found-keys.md`).

use crate::calibrate::Delta;
use crate::tables::ConfidenceInterval;

/// Grid units of a unit (user or record) that a key is counted in.
pub const UNIT_GRAINS: u64 = 1 << UNIT_GRAIN_BITS;
const UNIT_GRAIN_BITS: u32 = 12;

/// The number `K` of grid units that the noisy count of a found key exceeds, and that its noise does not exceed.
///
/// `scale` is that of the noise in grid units, for units that change at most `max_keys` counts by 1 each; `delta` is for all of them
/// together, and its part of a key is rounded down. `None` as in [`laplace_truncation`].
pub fn key_threshold(scale: u64, max_keys: u32, delta: Delta) -> Option<u64> {
    let part = delta.quintillionths().checked_div(u64::from(max_keys))?;
    laplace_truncation(
        scale,
        1 << UNIT_GRAIN_BITS,
        Delta::from_quintillionths(part),
    )
}

/// The bound `K` at which discrete Laplace noise of this scale may be truncated: for values that differ by at most `change`, noise
/// within `[-K, K]` is (`change / scale`, `delta`)-differentially private.
///
/// The upper `change` points, which only the larger value reaches, have at most the mass `delta`:
/// `K = ceil(s ln((r^(1-D) - r + 2 r d) / (d (1 + r)))) + 16`, `r = exp(-1/s)`, and at least `D`, the change. The 16 units pay for the errors
/// of floats, which are below 0.1 units up to a scale of `2^40`; above, they are below the `2^-40` of the scale that is added there.
///
/// `None` if `delta` is 0 or promises nothing, if a scale or change is 0, or if the scale is above `2^56`.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rounded to the safe side: below 2^63, and errors are paid for"
)]
pub fn laplace_truncation(scale: u64, change: u32, delta: Delta) -> Option<u64> {
    const CERTAIN: u64 = 1_000_000_000_000_000_000;
    const LARGEST_SCALE: u64 = 1 << 56;
    const SLACK: u64 = 16;
    let is_promise = (1..CERTAIN).contains(&delta.quintillionths());
    if change == 0 || !is_promise || !(1..=LARGEST_SCALE).contains(&scale) {
        return None;
    }
    let s = scale as f64;
    let delta = delta.to_f64();
    // Numerator and denominator of the formula, both divided by `r`.
    let numerator = log_of_odds(f64::from(change) / s, delta);
    let denominator = libm::log(delta * (1.0 + libm::exp(1.0 / s)));
    let least = (s * (numerator - denominator)).ceil() as u64;
    Some((least + SLACK + (scale >> 40)).max(u64::from(change)))
}

/// `ln(exp(odds) - 1 + 2 delta)`, where `exp` may be too large for a float.
fn log_of_odds(odds: f64, delta: f64) -> f64 {
    match odds < 40.0 {
        true => libm::log(libm::expm1(odds) + 2.0 * delta),
        // It is less than this, which is `ln(exp(odds) + 1)` or a little more.
        false => odds + libm::exp(-odds),
    }
}

/// Law of the published count of a found key: `n G + X`, given that it exceeds the threshold `K`, with `G` grid units for each of `n` units
/// and `X` discrete Laplace noise truncated to `[-K, K]`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FoundLaw {
    /// In grid units.
    pub scale: f64,
    /// In grid units.
    pub threshold: f64,
}

impl FoundLaw {
    /// The interval of the true count of a key that was found with the count `published`, in grid units: at every true count it holds with
    /// probability `level` or more, given that the key is found. It never leaves `[published - K, published + K]`, where the
    /// count always is, nor does it have a count below 1. What is published is in it.
    ///
    /// A count belongs to it where neither `published` or more nor `published` or less has a probability below `(1 - level) / 2`. Given
    /// a larger true count a larger one is published, so the counts that belong are those between two ends. By a hair above the threshold none
    /// does: what is published then is the upper end, as it is wherever that would be larger.
    pub fn count_interval(&self, published: f64, level: f64) -> ConfidenceInterval {
        let tail = (1.0 - level) / 2.0;
        let published = published.max(self.threshold + 1.0);
        let least = (published - self.threshold).max(unit_grains());
        let most = (published + self.threshold).max(least);
        let mut lower = Bracket {
            outside: least,
            inside: most,
        };
        while let Some(exact) = lower.next_middle() {
            lower.replace_end(exact, self.chance_above(published, exact) >= tail);
        }
        let mut upper = Bracket {
            outside: most,
            inside: least,
        };
        while let Some(exact) = upper.next_middle() {
            upper.replace_end(exact, self.chance_below(published, exact) >= tail);
        }
        ConfidenceInterval {
            lower: lower.outside / unit_grains(),
            upper: upper.outside.max(published) / unit_grains(),
        }
    }

    /// The probability of `published` or more, of a found key with the count `exact`.
    fn chance_above(&self, published: f64, exact: f64) -> f64 {
        let lowest = self.lowest_noise(exact);
        self.weight(published - exact, self.threshold, lowest)
            / self.weight(lowest, self.threshold, lowest)
    }

    /// The probability of `published` or less, of a found key with the count `exact`.
    fn chance_below(&self, published: f64, exact: f64) -> f64 {
        let lowest = self.lowest_noise(exact);
        self.weight(lowest, published - exact, lowest) / self.weight(lowest, self.threshold, lowest)
    }

    /// The least noise with which a count is found.
    fn lowest_noise(&self, exact: f64) -> f64 {
        (self.threshold + 1.0 - exact).max(-self.threshold)
    }

    /// The sum of `exp(-abs(x) / s)` for `x` from `first` to `last`, up to a factor that is the same for one `lowest`, so that nothing
    /// underflows. It grows steadily between whole numbers.
    fn weight(&self, first: f64, last: f64, lowest: f64) -> f64 {
        let nearest = lowest.max(0.0);
        if first > 0.0 {
            self.tail_weight(first, last, nearest)
        } else if last < 0.0 {
            self.tail_weight(-last, -first, nearest)
        } else {
            self.tail_weight(0.0, last, nearest) + self.tail_weight(1.0, -first, nearest)
        }
    }

    /// The same on one side of zero.
    fn tail_weight(&self, first: f64, last: f64, nearest: f64) -> f64 {
        let share = -libm::expm1((first - last - 1.0) / self.scale);
        libm::exp((nearest - first) / self.scale) * share
    }
}

#[expect(clippy::cast_precision_loss, reason = "a power of two")]
const fn unit_grains() -> f64 {
    UNIT_GRAINS as f64
}

/// Two counts with an end of an interval between them.
struct Bracket {
    outside: f64,
    inside: f64,
}

impl Bracket {
    /// `None` where no float lies between them.
    fn next_middle(&self) -> Option<f64> {
        let middle = self.outside.midpoint(self.inside);
        let is_between = middle != self.outside && middle != self.inside && middle.is_finite();
        is_between.then_some(middle)
    }

    fn replace_end(&mut self, middle: f64, is_inside: bool) {
        match is_inside {
            true => self.inside = middle,
            false => self.outside = middle,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scale, change, quintillionths of delta, and the formula without its slack, in 80 decimal digits.
    const EXACT: [(u64, u32, u64, u64); 15] = [
        (16, 4096, 1_000_000_000, 4416),
        (16, 4096, 300_000_000_000_000_000, 4104),
        (4112, 4096, 1_000_000_000, 84_564),
        (20_496, 4096, 2_000_000, 506_991),
        (1008, 1, 1_000_000, 20_183),
        (3008, 3, 1_000_000, 60_244),
        (1 << 30, 4096, 1, 30_361_915_325),
        (1 << 40, 4096, 1, 23_469_365_350_281),
        (1 << 40, 4096, 1_000_000_000, 1_156_407_039_988),
        (1 << 40, 1, 999_999_999_999_999_999, 1),
        (1 << 40, u32::MAX, 1, 38_713_981_225_801),
        ((1 << 41) + 16, 4096, 1, 45_414_483_930_438),
        (1 << 50, 4096, 1, 16_228_487_274_751_565),
        (1 << 56, 1, 1, 149_287_046_857_400_448),
        (1 << 56, u32::MAX, 1, 1_737_874_402_137_543_242),
    ];

    #[test]
    fn the_truncation_is_that_of_exact_arithmetic_and_never_below_it() {
        for (scale, change, quintillionths, exact) in EXACT {
            let delta = Delta::from_quintillionths(quintillionths);
            let found = laplace_truncation(scale, change, delta).unwrap();
            let slack = 16 + (scale >> 40);
            assert!(
                (exact + slack / 2..=exact + slack + 1 + (scale >> 40)).contains(&found),
                "{scale} {change} {delta}: {found} {exact}"
            );
        }
    }

    /// By summation, of noise that has so few values that they can be added up.
    #[test]
    fn one_unit_less_than_the_truncation_without_its_slack_hides_too_little() {
        for (scale, change, delta) in [(16, 1, 1e-3), (16, 64, 1e-9), (48, 16, 0.3), (320, 4, 0.01)]
        {
            let found = laplace_truncation(
                scale,
                change,
                Delta::from_quintillionths((delta * 1e18) as u64),
            );
            let least = found.unwrap() as i64 - 16;
            let upper_mass = |bound: i64| {
                let weight = |x: i64| (-(x.abs() as f64) / scale as f64).exp();
                let upper: f64 = (bound - i64::from(change) + 1..=bound).map(weight).sum();
                upper / (-bound..=bound).map(weight).sum::<f64>()
            };
            println!(
                "{scale} {change}: {:.4} of {delta}, with one unit less {:.4}",
                upper_mass(least) / delta,
                upper_mass(least - 1) / delta
            );
            assert!(upper_mass(least) <= delta && upper_mass(least - 1) > delta);
        }
    }

    #[test]
    fn a_delta_is_divided_by_the_keys_and_rounded_down() {
        let of_all =
            |quintillionths| key_threshold(4112, 3, Delta::from_quintillionths(quintillionths));
        let of_a_key = laplace_truncation(4112, 4096, Delta::from_quintillionths(333));
        assert_eq!(of_all(1000), of_a_key);
        assert!(of_a_key.is_some());
        assert_eq!(of_all(2), None);
    }

    #[test]
    fn what_promises_nothing_has_no_truncation() {
        let half = Delta::from_quintillionths(500_000_000_000_000_000);
        assert!(laplace_truncation(16, 1, half).is_some());
        assert_eq!(laplace_truncation(16, 1, Delta::ZERO), None);
        let one = Delta::from_quintillionths(1_000_000_000_000_000_000);
        assert_eq!(laplace_truncation(16, 1, one), None);
        assert_eq!(laplace_truncation(16, 0, half), None);
        assert_eq!(laplace_truncation(0, 1, half), None);
        assert_eq!(laplace_truncation((1 << 56) + 16, 1, half), None);
        assert_eq!(key_threshold(16, 0, half), None);
    }

    /// The law of a found key with a whole count, by summation: probabilities of the published counts from `first` on.
    struct Published {
        first: i64,
        chances: Vec<f64>,
    }

    fn published(scale: u64, threshold: i64, count: i64) -> Published {
        let exact = count * UNIT_GRAINS as i64;
        let first = (threshold + 1).max(exact - threshold);
        let weight = |y: i64| (-((y - exact).abs() as f64) / scale as f64).exp();
        let weights: Vec<f64> = (first..=exact + threshold).map(weight).collect();
        let sum: f64 = weights.iter().sum();
        Published {
            first,
            chances: weights.iter().map(|weight| weight / sum).collect(),
        }
    }

    /// How often an interval of `law` has the count of a key that is published by `published`. Both ends of an interval grow with the
    /// published count, so the counts with which it holds are those between two.
    fn coverage(law: FoundLaw, level: f64, published: &Published, count: i64) -> f64 {
        let interval = |at: usize| law.count_interval((published.first + at as i64) as f64, level);
        let places: Vec<usize> = (0..published.chances.len()).collect();
        let begin = places.partition_point(|at| interval(*at).upper < count as f64);
        let end = places.partition_point(|at| interval(*at).lower <= count as f64);
        published.chances[begin..end.max(begin)].iter().sum()
    }

    /// Counts around the threshold and far above, up to where no noise reaches it.
    fn counts(threshold: u64) -> Vec<i64> {
        let units = (threshold / UNIT_GRAINS) as i64;
        let near = (1..=8).chain(units - 3..=units + 8);
        let far = (9..3 * units).step_by(5).chain([1000, 1_000_000]);
        near.chain(far).filter(|count| *count > 0).collect()
    }

    /// Scale and keys' delta: epsilon 20, 1, 0.2 and 1 with a large delta.
    const LAWS: [(u64, u64); 4] = [
        (208, 1_000_000),
        (4112, 1_000_000_000),
        (20_496, 1_000_000_000_000),
        (4112, 200_000_000_000_000_000),
    ];

    fn laws() -> impl Iterator<Item = (FoundLaw, u64, u64)> {
        LAWS.into_iter().map(|(scale, quintillionths)| {
            let delta = Delta::from_quintillionths(quintillionths);
            let threshold = key_threshold(scale, 1, delta).unwrap();
            let law = FoundLaw {
                scale: scale as f64,
                threshold: threshold as f64,
            };
            (law, scale, threshold)
        })
    }

    #[test]
    fn intervals_of_found_keys_hold_at_every_count_and_the_plain_one_does_not() {
        let mut worst_plain = 1.0_f64;
        for (law, scale, threshold) in laws() {
            for level in [0.5, 0.95] {
                let mut worst = 1.0_f64;
                let mut worst_of_less_noise = 1.0_f64;
                for count in counts(threshold) {
                    let published = published(scale, threshold as i64, count);
                    worst = worst.min(coverage(law, level, &published, count));
                    let less = FoundLaw {
                        scale: law.scale * 0.9,
                        ..law
                    };
                    let of_less_noise = coverage(less, level, &published, count);
                    worst_of_less_noise = worst_of_less_noise.min(of_less_noise);
                    worst_plain = worst_plain.min(plain_coverage(law, &published, count));
                }
                println!(
                    "scale {scale}, threshold {threshold}: {level} held in {worst:.4} or more, made for 0.9 of the noise in {worst_of_less_noise:.4}"
                );
                assert!(worst >= level && worst < level + 0.02, "{scale}: {worst}");
                assert!(worst_of_less_noise < level);
            }
        }
        println!("the plain interval held in {worst_plain:.4}");
        assert!(worst_plain < 1e-9);
    }

    /// The interval of 95 % around what is published, as if keys were not selected.
    fn plain_coverage(law: FoundLaw, published: &Published, count: i64) -> f64 {
        let half_width = law.scale * 20.0_f64.ln();
        let exact = (count * UNIT_GRAINS as i64) as f64;
        let holds =
            |at: &usize| ((published.first + *at as i64) as f64 - exact).abs() <= half_width;
        let places = 0..published.chances.len();
        places.filter(holds).map(|at| published.chances[at]).sum()
    }

    #[test]
    fn ends_of_intervals_grow_with_what_is_published_and_keep_to_what_is_certain() {
        for (law, _, threshold) in laws() {
            let threshold = threshold as i64;
            let step = (threshold / 2_000).max(1) as usize;
            let mut before = ConfidenceInterval {
                lower: 0.0,
                upper: 0.0,
            };
            for published in (threshold + 1..4 * threshold).step_by(step) {
                let ends = law.count_interval(published as f64, 0.95);
                assert!(ends.lower >= before.lower && ends.upper >= before.upper);
                assert!(1.0 <= ends.lower && ends.lower <= ends.upper);
                let [least, most] = [published - threshold, published + threshold]
                    .map(|grains| grains as f64 / unit_grains());
                assert!(least <= ends.lower && ends.upper <= most, "{published}");
                before = ends;
            }
        }
    }

    /// Far above the threshold the selection changes nothing.
    #[test]
    fn far_above_the_threshold_an_interval_is_the_plain_one() {
        let (law, ..) = laws().nth(1).unwrap();
        let published = 4_096e6;
        let ends = law.count_interval(published, 0.95);
        let half_width = law.scale * 20.0_f64.ln() / unit_grains();
        assert!((ends.upper - 1e6 - half_width).abs() < 1e-3, "{ends:?}");
        assert!((1e6 - ends.lower - half_width).abs() < 1e-3, "{ends:?}");
    }

    #[test]
    fn odd_laws_and_counts_in_a_message_have_ends_in_order() {
        for scale in [1e-300, 16.0, 1e300] {
            for threshold in [0.0, 4096.0, 1e15] {
                let law = FoundLaw { scale, threshold };
                for published in [-1.0, 0.0, threshold, threshold + 1.0, 1e18] {
                    let ends = law.count_interval(published, 0.95);
                    assert!(ends.lower <= ends.upper, "{law:?} {published}: {ends:?}");
                }
            }
        }
        let law = FoundLaw {
            scale: 16.0,
            threshold: f64::NAN,
        };
        law.count_interval(1.0, 0.95);
    }
}
