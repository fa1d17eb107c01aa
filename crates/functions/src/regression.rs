//! Priestley-Chao regression on one axis, gap-clipped: `F(y) = sum_{i>=2} min(d_(i) - d_(i-1), g) l_i K_b(y - d_(i))` on
//! the lattice, records sorted by `d`, `K_b` the Gaussian density (`[AR17]` section 6; `docs/proofs/regression.md`).
//!
//! Everything is in units of the unit cube: `d` in `[0, 1]`, labels in `[-1, 1]`, the gap `g` and the bandwidth `b` parts
//! of the domain's width. Where records lie closer than `g`, `F` is about the label that is expected there; where there
//! are none it goes to 0, the middle of the label's range. The vignette's function is `sqrt(2 pi) F` with `g = 1`.
//!
//! Records with the same `d` count as one with the mean of their labels. That is the mean of the formula over all orders
//! of tied records; to let one of them carry the gap alone, by its label, would favour small labels.
//!
//! # How
//!
//! Gaps are whole numbers of 2^-31, labels of 2^-30. The product of a record's gap and label is spread on the nodes of a
//! fine grid around it like the mass of a density's record ([`crate::density`]), and the sums of the nodes are
//! convolved with one integer kernel table. Sixteen cells a bandwidth keep a record's term within 3e-5 of its peak
//! (`tests/properties/regression.rs`). Gaps add up to at most the domain, so all sums stay below 2^112: nothing can overflow.
//!
//! # Why the sensitivities hold
//!
//! Let a record come at `r`, between its neighbours `a < c`, or at the place of others.
//! * Between: its own weight is `u = min(r - a, g)`. The weight of `c` falls from `min(c - a, g)` to `min(c - r, g)`,
//!   which is by at most `u`, as `min(s + t, g) <= min(s, g) + min(t, g)`. So `F` changes by `u l_r K(. - r)` and by at
//!   most `u |l_c| K(. - c)`. Both reach `u K` where `c` is close to `r`: this bound is met.
//! * Before all others: the record has no term, and `c` gains a weight of at most `g` and at most `c`.
//! * At the place of `m` others: gaps stay, and the mean label moves by at most `2/(m+1) <= 1`: one `u K(. - r)`.
//!
//! As `u` is at most `g` and no gap is wider than the way from the border, one record changes the 1-norm by at most
//! `2 max_d min(g, d) ||K(. - d)||_1`, any value by at most `2 g K(0)`, and the 2-norm as the 1-norm. Means are rounded down to whole products, and
//! rounding down turns a difference of at most a whole number into one that is no larger; all bounds above are whole.
//!
//! A window keeps its first `most` records, so one that comes can push another out: for both adjacencies the bound is
//! that of a replacement, a record that goes and one that comes, twice the above. The gaps of a window add up to at most
//! the domain, so no two windows differ by more than `2 ||K||` either.
//!
//! The condition under which the paper claims `4 B c / (n b) sup K`, that each record has *some* other within `c / n`,
//! does not bound the gap between consecutive records; two windows that meet it differ by 30 times the claim
//! (`docs/proofs/papers.md`). So there is no scale of the paper here.

use std::f64::consts::PI;

use super::kernel::KernelWeights;
use bernstream_noise::Exact;
use bernstream_release::builtin::Builtin;
use bernstream_release::error::TargetError;
use bernstream_release::lattice;
use bernstream_release::lattice::{UNITS_A_PEAK, round_half_up, times_contributions};
use bernstream_release::target::{Target, interpolated_sensitivity, root_rounded_up};
use bernstream_release::window::accumulator::{Accumulator, AccumulatorSpec, LABEL, Record};
use bernstream_synopsis::adjacency::{Adjacency, Sensitivity};
use bernstream_synopsis::histogram::{GRAINS, GridPoint, Nodes};
use bernstream_synopsis::shape::{Basis, Shape};
use bernstream_synopsis::shape_error::ShapeError;

/// Cells of the fine grid a bandwidth.
const FINENESS: f64 = 16.0;

/// Peak of the kernel table.
const PEAK: u32 = 1 << 30;

/// A regression of one release: all of it is public.
#[derive(Clone, Debug)]
pub struct LatticeRegression {
    nodes: Nodes,
    degree: u32,
    points: usize,
    table: KernelWeights,
    /// `b'`: what the spread on the nodes leaves of the bandwidth.
    bandwidth: f64,
    /// `g`, in 2^-31 of the domain.
    gap: u32,
    most: u32,
}

impl LatticeRegression {
    /// `bandwidth` in `(0, 1]` and `gap` in `[2^-31, 1]`, in units of the domain's width; `degree` is `k`, 1 to 5000; a
    /// window keeps its first `most` records, 2 or more.
    ///
    /// Noise grows with the gap. One that most consecutive records keep to, a few times `1 / most`, loses little.
    ///
    /// # Errors
    ///
    /// If the bandwidth, the gap, the degree or the number of records is out of range.
    pub fn new(bandwidth: f64, degree: u32, gap: f64, most: u32) -> Result<Self, TargetError> {
        if !(bandwidth > 0.0 && bandwidth <= 1.0) {
            return Err(ShapeError::Bandwidth { axis: 1, bandwidth }.into());
        }
        if !(gap * f64::from(GridPoint::FINE) >= 1.0 && gap <= 1.0) {
            return Err(TargetError::Gap(gap));
        }
        if most < 2 {
            return Err(TargetError::FewRecords(most));
        }
        let points = lattice::lattice_points(1, degree)?;
        let cells = (FINENESS / bandwidth).ceil();
        // A cast from a float saturates, and grids that large are refused.
        let m = cells as u32;
        let nodes = Nodes::new(&[m]).ok_or(TargetError::Cells {
            cells: cells as u128 + 3,
        })?;
        let narrowed = (bandwidth * bandwidth - 0.25 / f64::from(m).powi(2)).sqrt();
        let table = KernelWeights::gaussian(narrowed, m, degree, PEAK);
        Ok(LatticeRegression {
            nodes,
            degree,
            points,
            table,
            bandwidth: narrowed,
            gap: GridPoint::fine_coordinate(gap),
            most,
        })
    }

    /// The sums of the nodes: products of gap and label, in 2^-61, times grains.
    fn spread_gaps(&self, records: &[Record]) -> Vec<i128> {
        let mut cells = vec![0; self.nodes.cells()];
        let mut before = None;
        for tied in records.chunk_by(|one, other| one.place == other.place) {
            let Some(first) = tied.first() else { continue };
            let place = first.place.0[0];
            let Some(before) = before.replace(place) else {
                continue;
            };
            let gap = place.saturating_sub(before).min(self.gap);
            let labels: i128 = tied.iter().map(|record| i128::from(record.label)).sum();
            let area = (i128::from(gap) * labels).div_euclid(tied.len() as i128);
            let (cell, grains) = self.nodes.place_record(&[first.x(0)]).spread_on_axis();
            for (sum, grains) in cells.iter_mut().skip(cell).zip(grains) {
                *sum += area * i128::from(grains);
            }
        }
        cells
    }

    /// Two windows differ by at most this sum over a table column, which is given one of every column, times the widest
    /// gap; in units of the table and 2^-31.
    fn replacement_change(&self, columns: impl Iterator<Item = u64>) -> u128 {
        let m = u64::from(self.nodes.per_axis()[0]);
        let domain = u64::from(GridPoint::FINE);
        let mut one = 0;
        let mut all = 0;
        for (cell, column) in columns.enumerate() {
            // The cell is that of node `cell - 1`. Records that reach it lie less than 3/2 steps above, and so do their gaps.
            let border = ((cell as u64 + 1) * domain).div_ceil(m).min(domain);
            let gap = border.min(u64::from(self.gap));
            one = one.max(u128::from(gap) * u128::from(column));
            all = all.max(u128::from(domain) * u128::from(column));
        }
        (4 * one).min(2 * all)
    }

    /// Products of 2^-31 and the table, in grid units.
    fn rounded_up(&self, products: u128) -> u128 {
        (products * u128::from(GRAINS) * LABEL as u128).div_ceil(1 << self.shift())
    }

    /// Leaves the most that a record can change a value between 2^32 and 2^33.
    fn shift(&self) -> u32 {
        let widest = (4 * u64::from(self.gap)).min(2 * u64::from(GridPoint::FINE));
        widest.ilog2() + LABEL.ilog2() + GRAINS.ilog2() + PEAK.ilog2() - UNITS_A_PEAK
    }
}

impl Builtin for LatticeRegression {}

impl Target for LatticeRegression {
    fn accumulator(&self) -> AccumulatorSpec {
        AccumulatorSpec::Records { most: self.most }
    }

    fn shape(&self) -> Shape {
        Shape {
            dimensions: 1,
            degree: self.degree,
            basis: Basis::Bernstein,
        }
    }

    /// Grid unit of the label, the middle of its range 0 and its bounds -1 and 1.
    fn unit(&self) -> f64 {
        let peak = 1.0 / ((2.0 * PI).sqrt() * self.bandwidth);
        let whole = f64::from(GridPoint::FINE) * f64::from(LABEL) * GRAINS as f64 * f64::from(PEAK);
        peak * f64::from(self.shift()).exp2() / whole
    }

    fn evaluate(&self, accumulator: &Accumulator) -> Exact {
        let values = self
            .table
            .apply_along_axis(&self.spread_gaps(accumulator.records()), 1);
        let shift = self.shift();
        Exact::new(
            values
                .into_iter()
                .map(|sum| round_half_up(sum, shift))
                .collect(),
        )
    }

    /// `contributions * (ceil(D1 / 2^shift) + N)`, `D1` that of a replacement, for either adjacency.
    fn sensitivity(&self, _: Adjacency, contributions: u32) -> Result<Sensitivity, TargetError> {
        let one = self.rounded_up(self.replacement_change(self.table.column_masses()))
            + self.points as u128;
        times_contributions(one, contributions).map(Sensitivity)
    }

    /// `contributions * ceil(S / 2^shift)`, `S` that of a replacement; rounding halves up adds nothing.
    fn sup_sensitivity(&self, _: Adjacency, contributions: u32) -> Result<u64, TargetError> {
        times_contributions(
            self.rounded_up(self.replacement_change(self.table.column_peaks())),
            contributions,
        )
    }

    /// `contributions * (ceil(D2 / 2^shift) + ceil(sqrt N))`, `D2` that of a replacement; or `sqrt(D1 S)`, where that is less.
    fn euclidean_sensitivity(
        &self,
        adjacency: Adjacency,
        contributions: u32,
    ) -> Result<u64, TargetError> {
        let one = self.rounded_up(self.replacement_change(self.table.column_lengths()))
            + u128::from(root_rounded_up(self.points as u128));
        Ok(
            times_contributions(one, contributions)?.min(interpolated_sensitivity(
                self,
                adjacency,
                contributions,
            )?),
        )
    }

    /// Refused: the condition of `[AR17]` section 6 bounds no gap between consecutive records.
    fn papers_sensitivity(
        &self,
        _: Adjacency,
        _contributions: u32,
    ) -> Result<Sensitivity, TargetError> {
        Err(TargetError::PaperIsWrong {
            what: "a Priestley-Chao regression, 4 B c / (n b),",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::opened::opened;

    fn values(regression: &LatticeRegression, records: &[(f64, f64)]) -> Vec<f64> {
        let records = records
            .iter()
            .map(|(x, label)| regression.accumulator().record(&[*x], *label));
        let exact = regression.evaluate(&regression.accumulator().filled_accumulator(records));
        opened(&exact)
            .iter()
            .map(|value| *value as f64 * regression.unit())
            .collect()
    }

    /// `tests/data/regression.py` writes lines of a name, `b`, `k`, `g`, records, and lattice values.
    #[test]
    fn lattice_values_are_those_of_the_formula() {
        let text = include_str!("../../../tests/data/regression.txt");
        let mut cases = 0;
        for line in text.lines() {
            let parts: Vec<Vec<f64>> = line
                .split('|')
                .skip(1)
                .map(|part| part.split(' ').map(|n| n.parse().unwrap()).collect())
                .collect();
            let [settings, x, labels, expected] = &parts[..] else {
                panic!("{line}")
            };
            let regression =
                LatticeRegression::new(settings[0], settings[1] as u32, settings[2], 1000).unwrap();
            let records: Vec<_> = x.iter().copied().zip(labels.iter().copied()).collect();
            let found = values(&regression, &records);
            assert_eq!(found.len(), expected.len());
            let error = found
                .iter()
                .zip(expected)
                .map(|(a, b)| (a - b).abs())
                .fold(0.0, f64::max);
            println!("{}: {error:.1e}", line.split('|').next().unwrap());
            assert!(error < 2e-5, "{error} {line}");
            cases += 1;
        }
        assert_eq!(cases, 6);
    }

    #[test]
    fn what_cannot_be_built_is_refused_in_words() {
        let says = |regression: Result<LatticeRegression, TargetError>, words: &str| {
            let message = regression.expect_err(words).to_string();
            assert!(message.contains(words), "{message}");
        };
        for bandwidth in [0.0, -0.1, 1.5, f64::NAN, f64::INFINITY] {
            says(
                LatticeRegression::new(bandwidth, 10, 0.1, 100),
                "the bandwidth of axis 1 is ",
            );
        }
        for gap in [0.0, -0.1, 1.5, f64::NAN, 1e-10] {
            says(
                LatticeRegression::new(0.1, 10, gap, 100),
                "at least 2^-31 and at most 1",
            );
        }
        says(
            LatticeRegression::new(0.1, 0, 0.1, 100),
            "degree 0 is out of range",
        );
        says(
            LatticeRegression::new(0.1, 10, 0.1, 1),
            "at least 2 records, not 1",
        );
        says(LatticeRegression::new(1e-6, 10, 0.1, 100), "16000003 cells");
    }

    #[test]
    fn windows_without_gaps_are_all_zeros() {
        let regression = LatticeRegression::new(0.1, 10, 0.1, 1000).unwrap();
        for records in [
            &[][..],
            &[(0.3, 1.0)],
            &[(0.3, 1.0), (0.3, -0.5), (0.3, 0.2)],
        ] {
            assert_eq!(values(&regression, records), [0.0; 11]);
        }
        assert_eq!(
            opened(&regression.evaluate(&Accumulator::Sums(vec![7]))),
            [0; 11]
        );
    }

    #[test]
    fn tied_records_count_as_one_with_their_mean_label() {
        let regression = LatticeRegression::new(0.1, 10, 0.2, 1000).unwrap();
        let tied = [
            (0.3, 1.0),
            (0.4, 0.75),
            (0.4, -0.25),
            (0.4, -0.5),
            (0.7, 1.0),
            (0.7, 1.0),
            (0.7, 0.25),
        ];
        assert_eq!(
            values(&regression, &tied),
            values(&regression, &[(0.3, 0.0), (0.4, 0.0), (0.7, 0.75)])
        );
    }

    #[test]
    fn labels_and_places_beyond_their_bounds_are_moved_to_them() {
        let regression = LatticeRegression::new(0.1, 10, 0.2, 1000).unwrap();
        let beyond = values(
            &regression,
            &[(-3.0, 0.0), (0.5, 7.0), (2.0, f64::NEG_INFINITY)],
        );
        assert_eq!(
            beyond,
            values(&regression, &[(0.0, 0.0), (0.5, 1.0), (1.0, -1.0)])
        );
    }

    #[test]
    fn a_unit_is_charged_for_each_of_its_records() {
        for (gap, units) in [
            (1.0, 1 << 32),
            (2_f64.powi(-31), 1 << 32),
            (0.3, 8 * 644_245_094),
            (0.75, 1 << 32),
        ] {
            let regression = LatticeRegression::new(0.1, 20, gap, 1000).unwrap();
            for adjacency in [Adjacency::AddRemove, Adjacency::ReplaceOne] {
                let one = regression.sensitivity(adjacency, 1).unwrap().0;
                assert_eq!(
                    regression.sensitivity(adjacency, 7),
                    Ok(Sensitivity(7 * one))
                );
                assert_eq!(regression.sup_sensitivity(adjacency, 1), Ok(units), "{gap}");
                let most = Err(TargetError::Contributions {
                    contributions: u32::MAX,
                });
                assert_eq!(regression.sensitivity(adjacency, u32::MAX), most);
            }
        }
    }

    /// All records have the label bound and every gap is 1/2^16 of the domain: the sums are as large as they can be.
    #[test]
    fn the_largest_sums_do_not_overflow() {
        let regression = LatticeRegression::new(1.0, 3, 1.0, u32::MAX).unwrap();
        let records: Vec<_> = (0..=1 << 16)
            .map(|i| (f64::from(i) / 65536.0, -1.0))
            .collect();
        for value in values(&regression, &records) {
            assert!((-0.4..-0.3).contains(&value), "{value}");
        }
    }
}
