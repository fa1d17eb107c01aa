//! Quantiles of the values of one key, from noisy counts of ranges of the value; all of it is post-processing.
//!
//! A value counts at the nearest of evenly spaced places. There is a noisy count for each place, and one for each block of places that
//! follow one another, all with independent noise of one scale. The counts of both levels that are nearest in least squares and add up
//! say how many values lie up to a place (`[HRMS10]`, two levels of it). The formulas are those of `clients/FORMAT.md`, "Quantiles".

use serde::{Deserialize, Serialize};

use crate::proper::isotonic_regression;
use crate::shape::KeyRange;

/// Most places that values count at.
pub const MOST_PLACES: u32 = 1024;

/// Places that values count at, from the least value to the largest one, and blocks of them that are counted too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankGrid {
    /// Number of places, from 2 to [`MOST_PLACES`]: evenly spaced, the first and the last at the bounds of the value.
    pub places: u32,
    /// Number of places in a block, from 2, but for the last one, which has the rest, not a single place; absent where only places are
    /// counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block: Option<u32>,
}

/// Part of the values in thousandths, from 1 to 999.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct QuantilePart(u16);

impl QuantilePart {
    /// The part itself, such as 0.5; `None` unless it is a whole number of thousandths above 0 and below 1.
    pub fn new(part: f64) -> Option<Self> {
        let thousandths = (1000.0 * part).round();
        let is_whole = (thousandths / 1000.0 - part).abs() < 1e-9;
        let is_inside = (1.0..=999.0).contains(&thousandths);
        (is_whole && is_inside).then_some(QuantilePart(thousandths as u16))
    }

    /// The part, above 0 and below 1.
    pub fn fraction(self) -> f64 {
        f64::from(self.0) / 1000.0
    }

    /// The name of its column: `p50` for the median, `p99.9` for 0.999.
    pub fn name(self) -> String {
        match self.0 % 10 {
            0 => format!("p{}", self.0 / 10),
            tenth => format!("p{}.{tenth}", self.0 / 10),
        }
    }
}

/// Places of a quantile: the estimate, and the ends of its interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QuantilePlaces {
    /// `None` where there seem to be no values.
    pub estimate: Option<usize>,
    /// `None` where the noise may be all of the values.
    pub interval: Option<[usize; 2]>,
}

impl RankGrid {
    /// The grid of so many places whose median has the least noise, where noise is made for changes in a norm in which `levels` counts of one
    /// record change by `length_of_levels(levels)`.
    pub fn with_least_noise(places: u32, length_of_levels: impl Fn(u32) -> f64) -> Self {
        let flat = RankGrid {
            places,
            block: None,
        };
        let mut best = flat;
        let mut least = flat.largest_length(0.5) * length_of_levels(1);
        for block in 2..places {
            let grid = RankGrid {
                places,
                block: Some(block),
            };
            if grid.check().is_err() {
                continue;
            }
            let length = grid.largest_length(0.5) * length_of_levels(2);
            if length < least {
                least = length;
                best = grid;
            }
        }
        best
    }

    /// Says what is wrong, if anything is.
    pub(crate) fn check(&self) -> Result<(), String> {
        if !(2..=MOST_PLACES).contains(&self.places) {
            return Err(format!(
                "its values do not count at 2 to {MOST_PLACES} places"
            ));
        }
        match self.block {
            // A block of one place would be counted twice under one name.
            Some(block) if !(2..=self.places).contains(&block) || self.places % block == 1 => {
                Err("its blocks of places are none".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// Number of counts that one value is in.
    pub fn levels(&self) -> u32 {
        1 + u32::from(self.block.is_some())
    }

    /// Number of blocks.
    fn block_count(&self) -> u32 {
        self.block.map_or(0, |block| self.places.div_ceil(block))
    }

    /// The ranges that are counted: the blocks, and then the places.
    pub fn ranges(&self) -> Vec<KeyRange> {
        let mut ranges = Vec::new();
        if let Some(block) = self.block {
            for number in 0..self.block_count() {
                ranges.push(KeyRange {
                    from: number * block,
                    to: (number * block + block).min(self.places),
                });
            }
        }
        ranges.extend((0..self.places).map(|from| KeyRange { from, to: from + 1 }));
        ranges
    }

    /// Numbers of values up to each place, by least squares, from the counts in the order of [`RankGrid::ranges`].
    pub(crate) fn counts_up_to(&self, counts: &[f64]) -> Vec<f64> {
        let (blocks, places) = counts.split_at(self.block_count() as usize);
        let mut sums = Vec::with_capacity(places.len());
        let mut before = 0.0;
        let Some(size) = self.block else {
            for count in places {
                before += count;
                sums.push(before);
            }
            return sums;
        };
        for (block, places) in blocks.iter().zip(places.chunks(size as usize)) {
            // What the block has more than its places together is divided among block and places alike.
            let missing = block - places.iter().sum::<f64>();
            let each = missing / (places.len() as f64 + 1.0);
            for count in places {
                before += count + each;
                sums.push(before);
            }
        }
        sums
    }

    /// The length of the weights with which noise is in (values up to a place) - part x (all values).
    pub(crate) fn noise_length(&self, place: usize, part: f64) -> f64 {
        let places = self.places as usize;
        let up_to = place + 1;
        let Some(size) = self.block else {
            let square =
                up_to as f64 * (1.0 - part).powi(2) + (places - up_to) as f64 * part.powi(2);
            return square.sqrt();
        };
        let mut square = 0.0;
        for from in (0..places).step_by(size as usize) {
            let to = (from + size as usize).min(places);
            let k = (to - from) as f64;
            // Of the places of this block those that are counted.
            let counted = (up_to.clamp(from, to) - from) as f64;
            let of_block = (counted - part * k).powi(2);
            let inside = counted * (k + 1.0 - counted - part).powi(2);
            let outside = (k - counted) * (counted + part).powi(2);
            square += (of_block + inside + outside) / (k + 1.0).powi(2);
        }
        square.sqrt()
    }

    /// The length of the weights with which noise is in the number of all values.
    pub fn length_of_all(&self) -> f64 {
        self.noise_length(self.places as usize - 1, 0.0)
    }

    /// The largest of [`RankGrid::noise_length`] over all places.
    pub fn largest_length(&self, part: f64) -> f64 {
        let places = 0..self.places as usize;
        places.fold(0.0, |most, place| most.max(self.noise_length(place, part)))
    }

    /// The place of the quantile, the least up to which there are at least `part` of all values; and of its interval, all places but those
    /// that are certainly too low or too high. `up_to` are the [`RankGrid::counts_up_to`], `half_widths` those of (values up to a place) -
    /// `part` x (all values), and `of_all` that of all values.
    pub(crate) fn quantile(
        &self,
        up_to: &[f64],
        part: f64,
        half_widths: &[f64],
        of_all: f64,
    ) -> QuantilePlaces {
        let all = up_to.last().copied().unwrap_or_default();
        let last = up_to.len().saturating_sub(1);
        let is_unknown = all <= 0.0;
        let rising = isotonic_regression(up_to);
        let place = rising.partition_point(|sum| *sum < part * all).min(last);
        let mut lower = last;
        let mut upper = 0;
        for (place, (sum, half_width)) in up_to.iter().zip(half_widths).enumerate().rev() {
            let above = sum - part * all;
            if above >= -half_width {
                lower = place;
            }
            // The next place is the quantile only if fewer values than the part lie up to this one.
            if above <= *half_width && upper == 0 {
                upper = (place + 1).min(last);
            }
        }
        let upper = upper.max(lower);
        let interval = (all > of_all).then_some([lower, upper]);
        QuantilePlaces {
            estimate: (!is_unknown).then(|| place.clamp(lower, upper)),
            interval,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRIDS: [RankGrid; 4] = [
        RankGrid {
            places: 8,
            block: None,
        },
        RankGrid {
            places: 8,
            block: Some(3),
        },
        RankGrid {
            places: 12,
            block: Some(4),
        },
        RankGrid {
            places: 5,
            block: Some(5),
        },
    ];

    /// The weights of every count, by counts that are all 0 but one.
    fn weights(grid: &RankGrid, place: usize, part: f64) -> Vec<f64> {
        let count = grid.ranges().len();
        let mut weights = Vec::new();
        for one in 0..count {
            let mut counts = vec![0.0; count];
            counts[one] = 1.0;
            let up_to = grid.counts_up_to(&counts);
            weights.push(up_to[place] - part * up_to.last().expect("a place"));
        }
        weights
    }

    #[test]
    fn counts_that_add_up_stay_as_they_are() {
        for grid in GRIDS {
            let values: Vec<u32> = (0..grid.places).map(|place| (5 * place) % 7).collect();
            let counts: Vec<f64> = grid
                .ranges()
                .iter()
                .map(|range| {
                    f64::from(
                        values[range.from as usize..range.to as usize]
                            .iter()
                            .sum::<u32>(),
                    )
                })
                .collect();
            let mut sum = 0;
            for (found, value) in grid.counts_up_to(&counts).iter().zip(&values) {
                sum += value;
                assert!((found - f64::from(sum)).abs() < 1e-9, "{grid:?}");
            }
        }
    }

    #[test]
    fn the_length_of_the_noise_is_that_of_its_weights() {
        for grid in GRIDS {
            for part in [0.0, 0.1, 0.5, 0.95] {
                for place in 0..grid.places as usize {
                    let weights = weights(&grid, place, part);
                    let length = weights.iter().map(|w| w * w).sum::<f64>().sqrt();
                    let found = grid.noise_length(place, part);
                    assert!(
                        (found - length).abs() < 1e-12,
                        "{grid:?} {place} {part}: {found} {length}"
                    );
                }
            }
        }
    }

    /// Least squares leave no smaller variance: moving a weight from a block to its places, which tells the same, is longer.
    #[test]
    fn no_other_weights_that_tell_the_same_are_shorter() {
        for grid in GRIDS {
            let Some(size) = grid.block else { continue };
            let blocks = grid.block_count() as usize;
            for place in 0..grid.places as usize {
                let weights = weights(&grid, place, 0.5);
                for block in 0..blocks {
                    for moved in [-0.01, 0.01] {
                        let mut other = weights.clone();
                        other[block] += moved;
                        let from = blocks + block * size as usize;
                        let to = (from + size as usize).min(other.len());
                        other[from..to]
                            .iter_mut()
                            .for_each(|weight| *weight -= moved);
                        let square = |weights: &[f64]| weights.iter().map(|w| w * w).sum::<f64>();
                        assert!(
                            square(&other) > square(&weights),
                            "{grid:?} {place} {block}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn without_noise_the_quantile_is_the_least_place_with_the_part_up_to_it() {
        let grid = RankGrid {
            places: 5,
            block: None,
        };
        let up_to = grid.counts_up_to(&[2.0, 0.0, 3.0, 4.0, 1.0]);
        for (part, place) in [
            (0.1, 0),
            (0.2, 0),
            (0.21, 2),
            (0.5, 2),
            (0.51, 3),
            (0.9, 3),
            (0.999, 4),
        ] {
            let found = grid.quantile(&up_to, part, &[1e-9; 5], 1e-9);
            assert_eq!(found.estimate, Some(place), "{part}");
            let [lower, upper] = found.interval.expect("known");
            assert!(
                lower <= place && place <= upper && upper - lower <= 2,
                "{part} {found:?}"
            );
        }
    }

    #[test]
    fn where_the_noise_may_be_all_of_the_values_nothing_is_known() {
        let grid = RankGrid {
            places: 3,
            block: None,
        };
        let few = grid.quantile(&[1.0, 2.0, 3.0], 0.5, &[9.0; 3], 9.0);
        assert!(few.interval.is_none() && few.estimate == Some(1));
        let none = grid.quantile(&[1.0, -1.0, -2.0], 0.5, &[9.0; 3], 9.0);
        assert!(none.interval.is_none() && none.estimate.is_none());
    }

    #[test]
    fn few_places_need_no_blocks_and_many_have_blocks_of_about_their_root() {
        let laplace = |levels: u32| f64::from(levels);
        assert_eq!(RankGrid::with_least_noise(5, laplace).block, None);
        let many = RankGrid::with_least_noise(256, laplace);
        assert!(
            many.block.is_some_and(|block| (12..=20).contains(&block)),
            "{many:?}"
        );
        let other = RankGrid {
            places: 256,
            block: None,
        };
        assert!(2.0 * many.largest_length(0.5) < 0.75 * other.largest_length(0.5));
    }

    #[test]
    fn parts_are_thousandths_with_short_names() {
        for (part, name) in [
            (0.5, "p50"),
            (0.95, "p95"),
            (0.999, "p99.9"),
            (0.001, "p0.1"),
            (0.05, "p5"),
        ] {
            let found = QuantilePart::new(part).expect("a part");
            assert_eq!(found.name(), name);
            assert!((found.fraction() - part).abs() < 1e-12);
        }
        for part in [0.0, 1.0, 0.0001, 0.12345, -0.5, f64::NAN, f64::INFINITY] {
            assert_eq!(QuantilePart::new(part), None, "{part}");
        }
    }
}
