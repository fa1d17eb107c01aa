//! Kernel density, Gaussian kernel, diagonal bandwidth: the intensity `F(y) = sum_i prod_a phi_b_a(y_a - d_ia)` on the
//! lattice, `d_i` the records of the window in the unit cube (`[AR17]` section 6; `docs/proofs/densities.md`).
//!
//! The record count is private under add-remove adjacency, so the intensity is not divided by it.
//!
//! # How
//!
//! Records are deposited on a fine grid ([`bernstream_synopsis::histogram`]); the histogram is convolved with one integer
//! kernel table an axis. The deposit spreads a record with a variance of 1/4 cell^2 on each axis wherever it lies, so
//! the tables have the bandwidth `b' = sqrt(b^2 - 1/(4 M^2))`, and the two together have `b`. With four cells a bandwidth
//! no lattice value is off by more than 2.5e-4 of a record's peak a record and axis (`tests/properties/sensitivity.rs`).
//!
//! # Why the sensitivities hold
//!
//! A record's deposit is `2^20` times a convex combination of single nodes. Saturation can only take some of it away,
//! which adds "no node at all" to the combination. A norm is convex, so over all records its largest value is reached at
//! a single node: at a column of the tables. In the 2-norm such a column is the product over the axes of theirs, and a pair
//! of them, having no negative entry, is no further apart than `|u|^2 + |v|^2`. What remains is the rounding at the end, which
//! moves a difference by less than one unit at each of the `N` lattice points: by `sqrt N` in the 2-norm.
//! In the 2-norm it is 1.19, 1.42 and 1.69 times less, in one to three dimensions, than what the other two norms imply.

use std::f64::consts::PI;

use super::kernel::KernelWeights;
use bernstream_noise::Exact;
use bernstream_release::builtin::Builtin;
use bernstream_release::error::TargetError;
use bernstream_release::lattice;
use bernstream_release::lattice::{UNITS_A_PEAK, round_half_up, times_contributions};
use bernstream_release::target::{
    Target, interpolated_sensitivity, root_rounded_up, sensitivity_of_every_value,
};
use bernstream_release::window::accumulator::{Accumulator, AccumulatorSpec};
use bernstream_synopsis::adjacency::{Adjacency, Sensitivity};
use bernstream_synopsis::bandwidths::check_bandwidths;
use bernstream_synopsis::histogram::{GRAINS, Histogram, Nodes};
use bernstream_synopsis::shape::{Basis, Shape};
use bernstream_synopsis::shape_error::ShapeError;

/// The density of one release: its lattice, its kernel tables, and what follows from them. All of it is public.
#[derive(Clone, Debug)]
pub struct LatticeDensity {
    nodes: Nodes,
    degree: u32,
    points: usize,
    tables: Vec<KernelWeights>,
    /// `b'`, one an axis.
    bandwidths: Vec<f64>,
    /// `log2` of the sum that a record on a lattice point makes there, before the last shift.
    peak_bits: u32,
}

impl LatticeDensity {
    /// `bandwidths` in units of the cube's width, in `(0, 1]`, one an axis, 1 to 3; `degree` is `k`, 1 to 5000, the same
    /// on all axes, at most `2^20` lattice points.
    ///
    /// The fine grid has four cells a bandwidth, three where four are too many.
    ///
    /// # Errors
    ///
    /// If the axes, the bandwidths or the degree are out of range, or the histogram would be too large.
    pub fn new(bandwidths: &[f64], degree: u32) -> Result<Self, TargetError> {
        check_axes(bandwidths.len())?;
        check_bandwidths(bandwidths)?;
        lattice::lattice_points(bandwidths.len(), degree)?;
        LatticeDensity::on_nodes(fine_grid(bandwidths)?, bandwidths, degree)
    }

    /// Densities of one lattice with other bandwidths, all from histograms on one grid: that of the narrowest bandwidth of
    /// each axis. Every list has the length of the first.
    ///
    /// # Errors
    ///
    /// As [`LatticeDensity::new`], for any of the bandwidths.
    pub fn family_on_one_grid(
        bandwidths: &[Vec<f64>],
        degree: u32,
    ) -> Result<Vec<Self>, TargetError> {
        let axes = bandwidths.first().map_or(0, Vec::len);
        check_axes(axes)?;
        let mut narrowest = vec![1.0_f64; axes];
        for bandwidths in bandwidths {
            check_bandwidths(bandwidths)?;
            for (narrowest, bandwidth) in narrowest.iter_mut().zip(bandwidths) {
                *narrowest = narrowest.min(*bandwidth);
            }
        }
        lattice::lattice_points(axes, degree)?;
        let nodes = fine_grid(&narrowest)?;
        bandwidths
            .iter()
            .map(|bandwidths| LatticeDensity::on_nodes(nodes.clone(), bandwidths, degree))
            .collect()
    }

    /// `nodes` are at least three a bandwidth.
    fn on_nodes(nodes: Nodes, bandwidths: &[f64], degree: u32) -> Result<Self, TargetError> {
        let axes = bandwidths.len();
        // Three tables of 24 bits, or two of 30, leave room in 128 bits for 2^34 records in one place.
        let bits = match axes {
            1 | 2 => 30,
            3 => 24,
            _ => return Err(ShapeError::Axes(axes).into()),
        };
        let points = lattice::lattice_points(axes, degree)?;
        let bandwidths: Vec<f64> = bandwidths
            .iter()
            .zip(nodes.per_axis())
            .map(|(b, m)| narrowed_bandwidth(*b, *m))
            .collect();
        let tables = bandwidths
            .iter()
            .zip(nodes.per_axis())
            .map(|(b, m)| KernelWeights::gaussian(*b, *m, degree, 1 << bits))
            .collect();
        let peak_bits = GRAINS.ilog2() + bits * axes as u32;
        Ok(LatticeDensity {
            nodes,
            degree,
            points,
            tables,
            bandwidths,
            peak_bits,
        })
    }

    /// The fine grid that windows deposit on.
    pub fn nodes(&self) -> &Nodes {
        &self.nodes
    }

    /// `l`, 1 to 3.
    pub fn dimensions(&self) -> usize {
        self.tables.len()
    }

    /// `k`.
    pub fn degree(&self) -> u32 {
        self.degree
    }

    /// `N = (k + 1)^l`.
    pub fn lattice_points(&self) -> usize {
        self.points
    }

    /// Cells of one histogram.
    pub fn cells(&self) -> usize {
        self.nodes.cells()
    }

    /// Lattice values of the intensity, exact: whatever the order of the deposits, these integers. Sums saturate.
    ///
    /// `histogram` must be one on [`LatticeDensity::nodes`].
    pub fn exact_intensity(&self, histogram: &Histogram) -> Exact {
        let mut values: Vec<i128> = histogram
            .cells
            .iter()
            .map(|count| i128::from(*count))
            .collect();
        let mut inner = self.cells();
        for (table, width) in self.tables.iter().zip(self.nodes.widths()) {
            inner /= width;
            values = table.apply_along_axis(&values, inner);
        }
        let shift = self.shift();
        Exact::new(
            values
                .into_iter()
                .map(|sum| round_half_up(sum, shift))
                .collect(),
        )
    }

    fn largest_mass(&self) -> u128 {
        self.tables
            .iter()
            .map(|table| u128::from(table.largest_mass()))
            .product()
    }

    fn largest_weight(&self) -> u128 {
        self.tables
            .iter()
            .map(|table| u128::from(table.largest_weight()))
            .product()
    }

    fn largest_length(&self) -> u128 {
        self.tables
            .iter()
            .map(|table| u128::from(table.largest_length()))
            .product()
    }

    /// A sum over table columns as one record makes it, in grid units.
    fn rounded_up(&self, columns: u128) -> u128 {
        (columns * u128::from(GRAINS)).div_ceil(1 << self.shift())
    }

    fn shift(&self) -> u32 {
        self.peak_bits - UNITS_A_PEAK
    }
}

impl Builtin for LatticeDensity {}

impl Target for LatticeDensity {
    fn is_sum(&self) -> bool {
        true
    }

    fn accumulator(&self) -> AccumulatorSpec {
        AccumulatorSpec::Histogram(self.nodes.clone())
    }

    fn shape(&self) -> Shape {
        Shape {
            dimensions: self.tables.len(),
            degree: self.degree,
            basis: Basis::Bernstein,
        }
    }

    /// The intensity, in records per volume of the unit cube, that one grid unit stands for.
    ///
    /// The normaliser is that of `b'`, the tables' own bandwidth: depositing keeps a record's mass, so the mass of the
    /// result is the mass of the table's Gaussian, `sqrt(2 pi) b'` an axis, and a record must come out with mass 1.
    fn unit(&self) -> f64 {
        let peak: f64 = self
            .bandwidths
            .iter()
            .map(|b| 1.0 / ((2.0 * PI).sqrt() * b))
            .product();
        peak / f64::from(UNITS_A_PEAK).exp2()
    }

    fn evaluate(&self, accumulator: &Accumulator) -> Exact {
        match accumulator.histogram() {
            Some(histogram) => self.exact_intensity(histogram),
            None => Exact::new(vec![0; self.points]),
        }
    }

    /// Largest change of the lattice values by a unit of at most `contributions` records, in the 1-norm.
    ///
    /// `contributions * (ceil(D1 / 2^shift) + N)`, with `D1`, before the rounding, at most
    /// * add-remove: `2^20 prod_i max_c sum_p K_i[p][c]`;
    /// * replace-one: in one dimension the largest distance of two columns, "absent" among them (a saturated cell may
    ///   have taken nothing); in more, twice the above or `N` times the peak, whichever is less.
    ///
    /// Records of one unit change the values one after the other, so their changes add up, rounding included.
    fn sensitivity(
        &self,
        adjacency: Adjacency,
        contributions: u32,
    ) -> Result<Sensitivity, TargetError> {
        let columns = match adjacency {
            Adjacency::AddRemove => self.largest_mass(),
            Adjacency::ReplaceOne => match &self.tables[..] {
                [table] => u128::from(table.widest_pair()),
                _ => (2 * self.largest_mass()).min(self.points as u128 * self.largest_weight()),
            },
        };
        let rounded = self.rounded_up(columns) + self.points as u128;
        times_contributions(rounded, contributions).map(Sensitivity)
    }

    /// Largest change of any one lattice value by such a unit, in grid units, for either adjacency.
    ///
    /// `contributions * ceil(S / 2^shift)`, `S = 2^20 prod_i max K_i`. Weights are not negative, so a record that is
    /// replaced changes a value by no more than one that comes or goes; and rounding halves up turns a difference of at
    /// most `m` units into one of at most `m` units, so it adds nothing.
    fn sup_sensitivity(&self, _: Adjacency, contributions: u32) -> Result<u64, TargetError> {
        times_contributions(self.rounded_up(self.largest_weight()), contributions)
    }

    /// `contributions * (ceil(D2 / 2^shift) + ceil(sqrt N))`, with `D2`, before the rounding, at most
    /// * add-remove: `2^20 prod_i max_c sqrt(sum_p K_i[p][c]^2)`;
    /// * replace-one: in one dimension the largest distance of two columns, "absent" among them; in more, `sqrt 2` times the
    ///   above.
    ///
    /// Or `sqrt(D1 S)`, where that is less: for kernels about as wide as the domain.
    fn euclidean_sensitivity(
        &self,
        adjacency: Adjacency,
        contributions: u32,
    ) -> Result<u64, TargetError> {
        let longest = self.rounded_up(self.largest_length());
        let columns = match adjacency {
            Adjacency::AddRemove => longest,
            Adjacency::ReplaceOne => match &self.tables[..] {
                [table] => self.rounded_up(u128::from(table.longest_pair())),
                _ => u128::from(root_rounded_up(2 * longest.pow(2))),
            },
        };
        let own = times_contributions(
            columns + u128::from(root_rounded_up(self.points as u128)),
            contributions,
        )?;
        Ok(own.min(interpolated_sensitivity(self, adjacency, contributions)?))
    }

    /// The columns of the table on one axis, which are whole grid units: a deposit is a convex combination of single nodes.
    fn effects(&self) -> Option<Vec<Vec<i128>>> {
        let [table] = &self.tables[..] else {
            return None;
        };
        let units = GRAINS.checked_shr(self.shift())?;
        if units << self.shift() != GRAINS {
            return None;
        }
        let mut effects = Vec::new();
        for column in table.dense_columns() {
            let weights = column.map(|weight| i128::from(weight) * i128::from(units));
            effects.push(weights.collect());
        }
        Some(effects)
    }

    /// `[AR17]` section 6, `S <= sup K`: true for both adjacencies, because weights are not negative.
    fn papers_sensitivity(
        &self,
        adjacency: Adjacency,
        contributions: u32,
    ) -> Result<Sensitivity, TargetError> {
        sensitivity_of_every_value(self, adjacency, contributions)
    }
}

fn check_axes(axes: usize) -> Result<(), TargetError> {
    if (1..=3).contains(&axes) {
        Ok(())
    } else {
        Err(ShapeError::Axes(axes).into())
    }
}

/// `b'`: the bandwidth of a table on `m` cells that has the bandwidth `b` together with the deposit.
pub(super) fn narrowed_bandwidth(b: f64, m: u32) -> f64 {
    (b * b - 0.25 / f64::from(m).powi(2)).sqrt()
}

pub(super) fn fine_grid(bandwidths: &[f64]) -> Result<Nodes, TargetError> {
    finer_grid(
        &cells_per_axis(bandwidths, 4.0),
        &cells_per_axis(bandwidths, 3.0),
    )
}

/// The fine grid, or the coarse one where its cells are too many.
pub(super) fn finer_grid(fine: &[u32], coarse: &[u32]) -> Result<Nodes, TargetError> {
    Nodes::new(fine)
        .or_else(|| Nodes::new(coarse))
        .ok_or_else(|| TargetError::Cells {
            cells: coarse.iter().map(|m| u128::from(*m) + 3).product(),
        })
}

/// So many cells a bandwidth, at least.
fn cells_per_axis(bandwidths: &[f64], cells: f64) -> Vec<u32> {
    // A cast from a float saturates, and grids that large are refused.
    bandwidths
        .iter()
        .map(|b| (cells / b).ceil() as u32)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::opened::opened;
    use bernstream_noise::order::{OrderRemainder, TargetChange};
    use bernstream_synopsis::bernstein::Operator;

    fn records(density: &LatticeDensity, places: &[&[f64]]) -> Histogram {
        let mut histogram = Histogram::new(density.nodes());
        for x in places {
            histogram.deposit_record(density.nodes(), density.nodes().place_record(x));
        }
        histogram
    }

    #[test]
    fn what_cannot_be_built_is_refused_in_words() {
        let says = |bandwidths: &[f64], degree, words: &str| {
            let message = LatticeDensity::new(bandwidths, degree)
                .expect_err(words)
                .to_string();
            assert!(message.contains(words), "{message}");
        };
        says(&[], 10, "1 to 3 axes, not 0");
        says(&[0.1; 4], 10, "1 to 3 axes, not 4");
        for bandwidth in [0.0, -0.1, 1.5, f64::NAN, f64::INFINITY] {
            says(&[0.1, bandwidth], 10, "the bandwidth of axis 2 is ");
        }
        says(&[0.1], 0, "degree 0 is out of range");
        says(&[0.1], 5_001, "between 1 and 5000");
        says(
            &[0.1; 3],
            101,
            "degree 101 on 3 axes makes 1061208 lattice points",
        );
        says(&[1e-9], 10, "3000000003 cells");
        says(&[0.01; 3], 10, "27818127 cells");
    }

    #[test]
    fn cells_are_four_a_bandwidth_then_three() {
        assert_eq!(
            LatticeDensity::new(&[0.1, 0.3], 10)
                .unwrap()
                .nodes()
                .per_axis(),
            [40, 14]
        );
        assert_eq!(
            LatticeDensity::new(&[0.026; 3], 10).unwrap().cells(),
            157_usize.pow(3)
        );
        assert_eq!(
            LatticeDensity::new(&[0.02; 3], 10).unwrap().cells(),
            153_usize.pow(3)
        );
    }

    #[test]
    fn an_empty_window_is_all_zeros() {
        let density = LatticeDensity::new(&[0.1, 0.2], 5).unwrap();
        assert_eq!(
            opened(&density.exact_intensity(&records(&density, &[]))),
            [0; 36]
        );
    }

    #[test]
    fn a_full_histogram_saturates_and_does_not_wrap() {
        for axes in 1..=3 {
            let density = LatticeDensity::new(&[0.2, 0.3, 0.4][..axes], 3).unwrap();
            let full = Histogram {
                cells: vec![u64::MAX; density.cells()],
            };
            let most = i128::MAX >> density.shift();
            for value in opened(&density.exact_intensity(&full)) {
                assert!(value > 1 << 60 && value <= most);
                // One dimension does not reach 128 bits; more do.
                assert!(axes == 1 || value == most, "{axes} {value}");
            }
        }
    }

    /// Why "absent" counts among the columns: where all cells but those around one record are full, the record that goes
    /// took nothing along when it came.
    #[test]
    fn next_to_full_cells_a_replacement_counts_like_an_addition() {
        for (bandwidth, degree) in [(0.5, 3), (0.3, 7), (0.05, 20)] {
            let density = LatticeDensity::new(&[bandwidth], degree).unwrap();
            let nodes = density.nodes();
            let mut full = Histogram {
                cells: vec![u64::MAX; density.cells()],
            };
            let middle = density.cells() / 2;
            full.cells[middle - 1..=middle + 1].fill(0);
            let side = |x: f64| {
                let mut histogram = full.clone();
                histogram.deposit_record(nodes, nodes.place_record(&[x]));
                density.exact_intensity(&histogram)
            };
            let near = side((middle - 1) as f64 / f64::from(nodes.per_axis()[0]));
            let far = side(0.0);
            let found: u128 = opened(&near)
                .into_iter()
                .zip(opened(&far))
                .map(|(a, b)| a.abs_diff(b))
                .sum();
            let alone = density.sensitivity(Adjacency::AddRemove, 1).unwrap().0;
            let claimed = density.sensitivity(Adjacency::ReplaceOne, 1).unwrap().0;
            assert!(
                found <= u128::from(alone) && alone <= claimed,
                "{bandwidth}: {found} {alone} {claimed}"
            );
            assert!(
                found as f64 > 0.97 * alone as f64,
                "{bandwidth}: {found} {alone}"
            );
        }
    }

    #[test]
    fn the_papers_scale_is_the_peak_at_every_lattice_point() {
        let density = LatticeDensity::new(&[0.05, 0.1], 20).unwrap();
        for adjacency in [Adjacency::AddRemove, Adjacency::ReplaceOne] {
            let papers = density.papers_sensitivity(adjacency, 3).unwrap().0 as f64;
            assert!(
                (papers / (3.0 * 441.0 * 32_f64.exp2()) - 1.0).abs() < 1e-3,
                "{papers}"
            );
            assert!(papers > density.sensitivity(adjacency, 3).unwrap().0 as f64);
        }
        let too_many = density.papers_sensitivity(Adjacency::AddRemove, u32::MAX);
        assert_eq!(
            too_many,
            Err(TargetError::Contributions {
                contributions: u32::MAX
            })
        );
    }

    #[test]
    fn a_unit_is_charged_for_each_of_its_records() {
        let density = LatticeDensity::new(&[0.1], 20).unwrap();
        for adjacency in [Adjacency::AddRemove, Adjacency::ReplaceOne] {
            let one = density.sensitivity(adjacency, 1).unwrap();
            assert_eq!(
                density.sensitivity(adjacency, 7),
                Ok(Sensitivity(7 * one.0))
            );
            assert_eq!(
                density.sensitivity(adjacency, u32::MAX),
                Err(TargetError::Contributions {
                    contributions: u32::MAX
                })
            );
        }
        assert_eq!(
            density.sup_sensitivity(Adjacency::AddRemove, 1),
            Ok(1 << 32)
        );
        assert_eq!(
            density.sup_sensitivity(Adjacency::AddRemove, u32::MAX),
            Ok(u64::from(u32::MAX) << 32)
        );
    }

    #[test]
    fn a_record_on_a_lattice_point_adds_one_peak_there() {
        let density = LatticeDensity::new(&[0.25; 3], 4).unwrap();
        let exact = density.exact_intensity(&records(&density, &[&[0.5; 3]]));
        let peak = opened(&exact)[opened(&exact).len() / 2] as f64 * density.unit();
        let gaussian = ((2.0 * PI).sqrt() * 0.25).powi(-3);
        assert!((peak / gaussian - 1.0).abs() < 2e-4, "{}", peak / gaussian);
    }

    fn remainders(degree: u32, orders: &[u32]) -> Vec<OrderRemainder> {
        Operator::new(1, degree)
            .remainders(orders)
            .iter()
            .map(|rows| OrderRemainder::new(0.0, rows))
            .collect()
    }

    /// A record at any place, added to nothing or to many, or moved: found is a little less than claimed because a record
    /// lies on three nodes and an effect on one, which high orders see.
    #[test]
    fn no_record_of_a_density_changes_a_score_by_more_than_its_effects_say() {
        for (bandwidth, degree) in [(0.06, 24), (0.2, 10)] {
            let density = LatticeDensity::new(&[bandwidth], degree).unwrap();
            let spec = density.accumulator();
            let values = |places: &[f64]| {
                opened(&density.evaluate(
                    &spec.filled_accumulator(places.iter().map(|x| spec.record(&[*x], 0.0))),
                ))
            };
            let many: Vec<f64> = (0..500).map(|i| (f64::from(i) / 500.0).powi(2)).collect();
            for (order, table) in [1, 2, 8, 32]
                .into_iter()
                .zip(remainders(degree, &[1, 2, 8, 32]))
            {
                let change = |adjacency| TargetChange {
                    effects: density.effects(),
                    adjacency,
                    values: density.lattice_points(),
                    sup: density.sup_sensitivity(adjacency, 1).unwrap(),
                    contributions: 1,
                };
                let claimed = table.sensitivity(&change(Adjacency::AddRemove)).unwrap();
                let in_general = table
                    .sensitivity(&TargetChange {
                        effects: None,
                        ..change(Adjacency::AddRemove)
                    })
                    .unwrap();
                let moved = table.sensitivity(&change(Adjacency::ReplaceOne)).unwrap();
                let mut found = 0;
                let mut farthest = 0;
                for base in [&[][..], &many] {
                    let left = |x: Option<f64>| {
                        table.undone_error(&values(
                            &base.iter().copied().chain(x).collect::<Vec<_>>(),
                        ))
                    };
                    let without = left(None);
                    let with: Vec<i128> = (0..=150)
                        .map(|i| left(Some(f64::from(i) / 150.0)))
                        .collect();
                    found = with
                        .iter()
                        .map(|left| left.abs_diff(without))
                        .max()
                        .unwrap_or(0)
                        .max(found);
                    let low = with.iter().min().unwrap();
                    let high = with.iter().max().unwrap();
                    farthest = high.abs_diff(*low).max(farthest);
                }
                assert!(
                    found <= claimed && farthest <= moved,
                    "{order}: {found} {claimed} {farthest} {moved}"
                );
                assert!(
                    found as f64 > 0.94 * claimed as f64,
                    "{order}: {found} {claimed}"
                );
                assert!(claimed < in_general);
            }
        }
    }
}
