//! The histogram of keys per unit, before a cap on keys drops any, and the share of pairs of a unit and a key that the cap drops, which is
//! read off it. Readings are post-processing and cost no privacy.
//!
//! The formulas are those of `clients/FORMAT.md`, "Told caps".

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::description::{NoiseDescription, TargetDescription};
use crate::noise::weighted_noise;
use crate::released::Synopsis;
use crate::tables::{ConfidenceInterval, Estimate, fieller_interval};
use crate::{Basis, KeyBasis};

/// Most keys up to which units can be told apart.
pub const MOST_TOLD: u32 = 1024;

/// Range of numbers of keys, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitBin {
    pub least: u32,
    pub most: u32,
}

/// Numbers of units by how many keys they have. The noisy counts follow the columns of their table, one for each bin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UnitCounts {
    pub bins: Vec<UnitBin>,
    /// The noise on a count has so many times the scale that the description gives. It is no privacy unit.
    pub unit: f64,
    /// The counts, in an Arrow message, whose columns have a number for each key: 16 hexadecimal digits each, as long whatever they are.
    /// Elsewhere they are the last values, and this is absent.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub packed: String,
}

/// Reading of the cap on keys, from the numbers of units: what it drops.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CapReading {
    /// The cap.
    pub max_keys: u32,
    /// Share of all pairs of a unit and a key of it that the cap drops.
    pub dropped: Estimate,
    /// Units of each bin.
    pub units: Vec<ToldBin>,
}

/// Units with so many keys.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ToldBin {
    #[serde(flatten)]
    pub bin: UnitBin,
    #[serde(flatten)]
    pub estimate: Estimate,
    /// Share of all pairs of a unit and a key of it that a cap of `bin.most` keys would drop.
    pub dropped: Estimate,
}

/// The bins of units with 1 to `keys` keys: 1, 2, 3, 4, 5 to 6, 7 to 8, 9 to 12, two for each doubling, up to `most`; whatever is above is
/// in the last one. With `max_keys <= most` no bin has numbers on both sides of the cap, so that units that lose nothing are apart from all others.
pub fn unit_bins(most: u32, keys: u32, max_keys: u32) -> Vec<UnitBin> {
    let told = most.min(keys);
    let mut ends = BTreeSet::from([told, keys]);
    for exponent in 0..u32::BITS {
        let power = 1_u32 << exponent;
        for end in [power, power + power / 2] {
            if end < told {
                ends.insert(end);
            }
        }
    }
    if max_keys < told {
        ends.insert(max_keys);
    }
    let mut bins = Vec::with_capacity(ends.len());
    let mut least = 1;
    for most in ends.into_iter().filter(|end| *end > 0) {
        bins.push(UnitBin { least, most });
        least = most.saturating_add(1);
    }
    bins
}

/// Digits of a packed count.
const DIGITS: usize = 16;

/// The bits of each count, the highest first, in hexadecimal.
pub(crate) fn pack_counts(counts: &[f64]) -> String {
    let mut packed = String::with_capacity(DIGITS * counts.len());
    for count in counts {
        packed += &format!("{:016x}", count.to_bits());
    }
    packed
}

/// The counts of [`pack_counts`]; `None` if these are no such digits.
pub(crate) fn unpack_counts(packed: &str) -> Option<Vec<f64>> {
    let digits = packed.as_bytes();
    if !digits.len().is_multiple_of(DIGITS) || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let mut counts = Vec::with_capacity(digits.len() / DIGITS);
    for digits in digits.chunks(DIGITS) {
        let digits = std::str::from_utf8(digits).ok()?;
        counts.push(f64::from_bits(u64::from_str_radix(digits, 16).ok()?));
    }
    Some(counts)
}

/// Says what is wrong, if anything is, with the bins of a table with so many keys.
pub(crate) fn check_unit_counts(told: &UnitCounts, keys: usize) -> Result<(), String> {
    let mut next = 1;
    for bin in &told.bins {
        if bin.least != next || bin.most < bin.least {
            return Err("the numbers of keys of its units have gaps or overlaps".to_owned());
        }
        next = bin.most.saturating_add(1);
    }
    let ends_well = told
        .bins
        .last()
        .is_some_and(|last| last.most as usize == keys && last.least <= MOST_TOLD + 1);
    let is_proper = told.unit > 0.0 && told.unit.is_finite() && told.packed.is_empty();
    match ends_well && is_proper {
        true => Ok(()),
        false => Err("the numbers of keys of its units are not proper".to_owned()),
    }
}

/// Says what is wrong if no bin ends at the cap: units that lose nothing would be among others.
pub(crate) fn check_cap_of_bins(told: &UnitCounts, max_keys: u32) -> Result<(), String> {
    match told.bins.iter().any(|bin| bin.most == max_keys) {
        true => Ok(()),
        false => Err("none of the numbers of keys of its units ends at max_keys".to_owned()),
    }
}

impl UnitBin {
    /// The number of keys that stands for the bin: its middle, and of a wide one not more than a quarter above its least.
    fn middle(self) -> f64 {
        let least = f64::from(self.least);
        f64::midpoint(least, f64::from(self.most)).min(1.25 * least)
    }
}

/// The number of keys that every unit of a bin is taken to have.
#[derive(Clone, Copy)]
enum KeysOfBin {
    Middle,
    /// The one with which the cap drops the smallest share.
    LeastDropped,
    /// The one with which it drops the largest share.
    MostDropped,
}

impl KeysOfBin {
    /// The share that a cap drops falls with the keys of a unit that it drops none of, and rises with those of others. A bin has units of
    /// one kind only, since one ends at the cap.
    fn number(self, bin: UnitBin, cap: u32) -> f64 {
        let is_whole = bin.most <= cap;
        f64::from(match self {
            KeysOfBin::Middle => return bin.middle(),
            KeysOfBin::LeastDropped if is_whole => bin.most,
            KeysOfBin::LeastDropped => bin.least,
            KeysOfBin::MostDropped if is_whole => bin.least,
            KeysOfBin::MostDropped => bin.most,
        })
    }
}

/// Pairs of a unit and a key, all of them and those that a cap drops, as sums of the counts with public weights.
struct WeighedPairs {
    dropped: f64,
    all: f64,
    /// Sums over the bins of the square of the first weight, the product of both, and the square of the second.
    squares: [f64; 3],
}

impl WeighedPairs {
    fn new(bins: &[UnitBin], counts: &[f64], cap: u32, keys: KeysOfBin) -> Self {
        let mut pairs = WeighedPairs {
            dropped: 0.0,
            all: 0.0,
            squares: [0.0; 3],
        };
        for (bin, count) in bins.iter().zip(counts) {
            let keys = keys.number(*bin, cap);
            let dropped = (keys - f64::from(cap)).max(0.0);
            pairs.dropped += dropped * count;
            pairs.all += keys * count;
            let [of_dropped, of_both, of_all] = &mut pairs.squares;
            *of_dropped += dropped * dropped;
            *of_both += dropped * keys;
            *of_all += keys * keys;
        }
        pairs
    }

    fn interval(&self, half_width: f64) -> Option<ConfidenceInterval> {
        fieller_interval(self.dropped, self.all, half_width, self.squares)
    }
}

impl Synopsis {
    /// The reading of the cap on keys; `None` where the numbers of units by their keys are not told.
    pub fn told_caps(&self) -> Option<CapReading> {
        let about = &self.description;
        let (Basis::Keys(basis), TargetDescription::Counts(counts)) = (&about.basis, &about.target)
        else {
            return None;
        };
        let told = basis.units.as_ref()?;
        let values = self.values.get(basis.table_values()..)?;
        Some(read_caps(&about.noise, counts.max_keys, told, values))
    }
}

fn read_caps(noise: &NoiseDescription, cap: u32, told: &UnitCounts, counts: &[f64]) -> CapReading {
    let half_width = weighted_noise(noise.law, noise.scale, &[told.unit]).half_width;
    let mut units = Vec::with_capacity(counts.len());
    for (bin, count) in told.bins.iter().zip(counts) {
        units.push(ToldBin {
            bin: *bin,
            estimate: Estimate {
                value: *count,
                interval: Some(ConfidenceInterval::around(*count, half_width)),
            },
            dropped: dropped_share(&told.bins, counts, bin.most, half_width),
        });
    }
    CapReading {
        max_keys: cap,
        dropped: dropped_share(&told.bins, counts, cap, half_width),
        units,
    }
}

/// The share of pairs that a cap drops. Each end of the interval is that of the ratio with the keys in every bin that make it most
/// extreme (Fieller), so the interval holds wherever in their bins units are.
fn dropped_share(bins: &[UnitBin], counts: &[f64], cap: u32, half_width: f64) -> Estimate {
    let pairs = WeighedPairs::new(bins, counts, cap, KeysOfBin::Middle);
    let value = match pairs.all > 0.0 {
        true => (pairs.dropped / pairs.all).clamp(0.0, 1.0),
        false => f64::NAN,
    };
    let [least, most] = [KeysOfBin::LeastDropped, KeysOfBin::MostDropped]
        .map(|keys| WeighedPairs::new(bins, counts, cap, keys).interval(half_width));
    let interval = match (least, most) {
        (Some(least), Some(most)) => Some(
            ConfidenceInterval {
                // A number of units below 0 turns the two around.
                lower: least.lower.min(most.lower),
                upper: least.upper.max(most.upper),
            }
            .clamped(0.0, 1.0),
        ),
        _ => None,
    };
    // Noise of the last bin can put the value, which takes the middle there, outside of ends that take other numbers.
    let value = match interval {
        Some(ends) if value < ends.lower => ends.lower,
        Some(ends) if value > ends.upper => ends.upper,
        _ => value,
    };
    Estimate { value, interval }
}

impl KeyBasis {
    /// Number of values of the rows and columns; the numbers of units follow.
    pub fn table_values(&self) -> usize {
        self.keys.len().saturating_mul(self.columns.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(bins: &[UnitBin]) -> Vec<[u32; 2]> {
        bins.iter().map(|bin| [bin.least, bin.most]).collect()
    }

    #[test]
    fn bins_are_finer_where_keys_are_few_and_have_everything_in_the_end() {
        assert_eq!(
            ends(&unit_bins(32, 1000, 1)),
            [
                [1, 1],
                [2, 2],
                [3, 3],
                [4, 4],
                [5, 6],
                [7, 8],
                [9, 12],
                [13, 16],
                [17, 24],
                [25, 32],
                [33, 1000]
            ]
        );
        assert_eq!(ends(&unit_bins(32, 3, 2)), [[1, 1], [2, 2], [3, 3]]);
        assert_eq!(
            ends(&unit_bins(5, 7, 3)),
            [[1, 1], [2, 2], [3, 3], [4, 4], [5, 5], [6, 7]]
        );
        assert_eq!(
            ends(&unit_bins(8, 9, 5)),
            [
                [1, 1],
                [2, 2],
                [3, 3],
                [4, 4],
                [5, 5],
                [6, 6],
                [7, 8],
                [9, 9]
            ]
        );
        for most in 1..80 {
            for keys in 1..80 {
                let told = UnitCounts {
                    bins: unit_bins(most, keys, most / 2),
                    unit: 1.0,
                    packed: String::new(),
                };
                assert_eq!(check_unit_counts(&told, keys as usize), Ok(()));
            }
        }
    }

    #[test]
    fn packed_counts_are_as_long_whatever_they_are() {
        for counts in [[0.0, -0.5], [1e300, -1.0 / 3.0]] {
            let packed = pack_counts(&counts);
            assert_eq!(packed.len(), 32);
            assert_eq!(unpack_counts(&packed), Some(counts.to_vec()));
        }
        for damaged in ["0", "000000000000000g", "+00000000000000f"] {
            assert_eq!(unpack_counts(damaged), None, "{damaged}");
        }
    }

    #[test]
    fn bins_with_gaps_or_of_other_keys_are_refused() {
        let mut told = UnitCounts {
            bins: unit_bins(4, 9, 2),
            unit: 1.0,
            packed: String::new(),
        };
        assert!(check_unit_counts(&told, 8).is_err());
        told.bins.remove(1);
        assert!(check_unit_counts(&told, 9).is_err());
        told.bins.clear();
        assert!(check_unit_counts(&told, 9).is_err());
    }

    #[test]
    fn bins_without_an_end_at_the_cap_are_refused() {
        for cap in 1..=8 {
            let told = UnitCounts {
                bins: unit_bins(8, 11, cap),
                unit: 1.0,
                packed: String::new(),
            };
            assert_eq!(check_cap_of_bins(&told, cap), Ok(()));
            let is_end = cap <= 4 || cap == 6 || cap == 8;
            let told = UnitCounts {
                bins: unit_bins(8, 11, 1),
                ..told
            };
            assert_eq!(check_cap_of_bins(&told, cap).is_ok(), is_end, "{cap}");
        }
    }

    /// Without noise the interval is what units can do within their bins, and both ends are reached.
    #[test]
    fn ends_without_noise_are_those_of_all_places_in_bins() {
        let bins = unit_bins(8, 11, 1);
        let counts = [3.0, 2.0, 0.0, 1.0, 2.0, 1.0, 1.0];
        for cap in [1, 2, 3, 4, 6, 8] {
            let found = dropped_share(&bins, &counts, cap, 0.0);
            let interval = found.interval.expect("pairs");
            let [mut least, mut most] = [f64::INFINITY, 0.0_f64];
            // Two units of 5 or 6 keys, one of 7 or 8, one of 9 to 11; the others are known.
            for one in 5..=6_u32 {
                for two in 5..=6 {
                    for three in 7..=8 {
                        for four in 9..=11 {
                            let all = [1, 1, 1, 2, 2, 4, one, two, three, four];
                            let dropped: u32 = all.iter().map(|j| j.saturating_sub(cap)).sum();
                            let share = f64::from(dropped) / f64::from(all.iter().sum::<u32>());
                            least = least.min(share);
                            most = most.max(share);
                        }
                    }
                }
            }
            assert!(
                (interval.lower - least).abs() < 1e-12,
                "{cap}: {interval:?} {least}"
            );
            assert!(
                (interval.upper - most).abs() < 1e-12,
                "{cap}: {interval:?} {most}"
            );
            assert!((least..=most).contains(&found.value), "{cap}: {found:?}");
        }
    }

    #[test]
    fn ends_are_in_order_where_noise_makes_a_number_of_units_negative() {
        let bins = unit_bins(32, 1000, 3);
        let mut counts = vec![0.0; bins.len()];
        counts[3] = 3000.0;
        *counts.last_mut().expect("bins") = -4.0;
        let found = dropped_share(&bins, &counts, 3, 1.96);
        let interval = found.interval.expect("pairs");
        assert!(
            interval.lower < 0.1 && 0.23 < interval.upper,
            "{interval:?}"
        );
        assert!((interval.lower..=interval.upper).contains(&found.value));
    }
}
