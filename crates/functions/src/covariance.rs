//! Kernel density, Gaussian kernel, full covariance matrix: the intensity `F(y) = sum_i K_H(y - d_i)` on the lattice, `d_i`
//! the records of the window in the unit cube, two or three axes (`[AR17]` section 6; `docs/proofs/densities.md`).
//!
//! # How
//!
//! As in [`crate::density`]: records are deposited on a fine grid, and the deposit's variance of 1/4 cell^2 on
//! each axis is taken from the diagonal of `H`. What is left, `H'`, is positive definite: with four cells to
//! `s_i = 1/sqrt((H^-1)_ii)`, the width of the kernel along an axis, the eigenvalues of `H^-1 (H - H')` add up to at most
//! `l/64`. Along an axis the kernel is a Gaussian of width `s_i`, so the spline is as accurate as for a density.
//!
//! The kernel does not separate. But cells a step, or steps a cell, are a whole number on each axis, so a weight depends
//! on the few ways in which a lattice point lies between nodes and on the offset in cells. Only offsets within seven
//! standard deviations are tabulated, as whole numbers of at most 2^30; further out all would round to 0.
//! Every lattice value is a sum of such integers times counts, the same products whatever the counts.
//!
//! # Why the sensitivities hold
//!
//! A record's deposit is `2^20` times a convex combination of single nodes; saturation adds "no node at all". A norm is
//! convex, so its largest value is reached at a single node: `D1 <= 2^20 max_c sum_p K[p][c]`, `S <= 2^20 max K`,
//! `D2 <= 2^20 max_c sqrt(sum_p K[p][c]^2)`, all taken from the integers in use. What remains is the rounding at the end, as for a density. [`lattice_sum`] is the
//! closed form of `D1`; the product of the diagonal's would be too small (`tests/properties/covariance.rs`).

use std::f64::consts::PI;

use crate::density::finer_grid;
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
use bernstream_synopsis::bandwidths::check_covariance;
use bernstream_synopsis::histogram::{GRAINS, Nodes};
use bernstream_synopsis::quadratic::QuadraticForm;
use bernstream_synopsis::shape::{Basis, Shape};
use bernstream_synopsis::shape_error::ShapeError;

/// Peak of the kernel table. 4.3 million full cells of 64 bits times 30 bits stay below 2^117.
const PEAK: u32 = 1 << 30;

/// `7^2`: `2^30 exp(-7^2 / 2) < 1/2`.
const REACH: f64 = 49.0;

/// Most products of one window and key, some seconds' work.
const MOST_WORK: f64 = 4_294_967_296.0;

/// Most numbers to compare when the widest pair of columns is looked for.
const MOST_COMPARED: usize = 1 << 28;

/// Cost of a weight of the table in products, an exponential, and in memory.
const WEIGHT: f64 = 64.0;

/// A density of one release: all of it is public.
#[derive(Clone, Debug)]
pub struct CovarianceDensity {
    nodes: Nodes,
    degree: u32,
    points: usize,
    axes: Vec<AxisPhases>,
    /// Tables, one for each way in which a lattice point lies between nodes, the last axis fastest.
    tables: Vec<Vec<WeightRun>>,
    /// `max_c sum_p K[p][c]`.
    largest_mass: u64,
    /// `max_c max_p K[p][c]`.
    largest_weight: u32,
    /// `max_c sqrt(sum_p K[p][c]^2)`, rounded up.
    largest_length: u64,
    /// Distances over all pairs of columns, a column of zeros ("absent") among them.
    pairs: PairDistances,
    /// Peak of a record on a lattice point, before the deposit spreads it.
    peak: f64,
}

/// Distances that no pair of columns can pass.
#[derive(Clone, Copy, Debug, Default)]
struct PairDistances {
    /// `max sum_p |K[p][a] - K[p][b]|`.
    widest: u128,
    /// `max sqrt(sum_p (K[p][a] - K[p][b])^2)`.
    longest: u64,
}

/// Sums over one column of the table.
#[derive(Clone, Default)]
struct ColumnSums {
    mass: u64,
    /// Sum of the squares.
    square: u128,
}

/// Position of the lattice on the nodes of one axis.
#[derive(Clone, Debug)]
struct AxisPhases {
    cells: u32,
    /// Number of places between two nodes that lattice points have: point `p` the one of `p mod phases`.
    phases: u32,
}

/// Weights of nodes in a row along the last axis, by their offsets from the node at or before a lattice point.
#[derive(Clone, Debug)]
struct WeightRun {
    lead: Vec<i32>,
    first: i32,
    weights: Vec<u32>,
}

impl CovarianceDensity {
    /// `covariance` is `H` in units of the cube's width, two or three rows, symmetric and positive definite, variances at
    /// most 1; `degree` is `k`, the same on all axes, at most `2^20` lattice points.
    ///
    /// # Errors
    ///
    /// If the matrix is not symmetric and positive definite, the degree is out of range, or the work would be too much.
    pub fn new(covariance: &[Vec<f64>], degree: u32) -> Result<Self, TargetError> {
        let form = check_covariance(covariance)?;
        let points = lattice::lattice_points(covariance.len(), degree)?;
        let precision = form.inverse();
        let widths: Vec<f64> = (0..precision.len())
            .map(|i| precision[i][i].powf(-0.5))
            .collect();
        let nodes = fine_grid(&widths, degree)?;
        let mut narrowed = covariance.to_vec();
        for (i, m) in nodes.per_axis().iter().enumerate() {
            narrowed[i][i] -= 0.25 / f64::from(*m).powi(2);
        }
        let form = QuadraticForm::new(&narrowed).ok_or(ShapeError::NotPositiveDefinite)?;
        let axes: Vec<AxisPhases> = nodes
            .per_axis()
            .iter()
            .map(|m| AxisPhases::new(*m, degree))
            .collect();
        check_work(&form, &axes, &nodes, points)?;
        let tables = phase_tables(&form, &axes).ok_or(ShapeError::NotPositiveDefinite)?;
        let peak = ((2.0 * PI).powi(axes.len() as i32) * form.determinant()).powf(-0.5);
        let mut density = CovarianceDensity {
            nodes,
            degree,
            points,
            axes,
            tables,
            largest_mass: 0,
            largest_weight: 0,
            largest_length: 0,
            pairs: PairDistances::default(),
            peak,
        };
        density.measure_columns();
        density.pairs = density.compare_columns();
        Ok(density)
    }

    /// Reads the norms of the columns off the tables.
    fn measure_columns(&mut self) {
        let mut columns = vec![ColumnSums::default(); self.nodes.cells()];
        let mut largest_weight = 0;
        for point in 0..self.points {
            self.each_run(point, |cell, weights| {
                for (sums, weight) in columns.iter_mut().skip(cell).zip(weights) {
                    sums.mass += u64::from(*weight);
                    sums.square += u128::from(u64::from(*weight).pow(2));
                    largest_weight = largest_weight.max(*weight);
                }
            });
        }
        self.largest_mass = columns.iter().map(|sums| sums.mass).max().unwrap_or(0);
        self.largest_length =
            root_rounded_up(columns.iter().map(|sums| sums.square).max().unwrap_or(0));
        self.largest_weight = largest_weight;
    }

    /// The widest pair of columns; where there are too many to compare, what no pair can pass.
    fn compare_columns(&self) -> PairDistances {
        let cells = self.nodes.cells();
        if cells.saturating_mul(cells).saturating_mul(self.points) / 2 > MOST_COMPARED {
            let all = self.points as u128 * u128::from(self.largest_weight);
            let widest = all.min(2 * u128::from(self.largest_mass));
            return PairDistances {
                widest,
                longest: root_rounded_up(2 * u128::from(self.largest_length).pow(2)),
            };
        }
        let mut columns = vec![0_u32; cells * self.points];
        for point in 0..self.points {
            self.each_run(point, |cell, weights| {
                for (i, weight) in weights.iter().enumerate() {
                    columns[(cell + i) * self.points + point] = *weight;
                }
            });
        }
        let columns: Vec<&[u32]> = columns.chunks_exact(self.points).collect();
        let mut widest = self.largest_mass;
        let mut squared = u128::from(self.largest_length).pow(2);
        for (i, a) in columns.iter().enumerate() {
            for b in columns.iter().take(i) {
                let mut sum = 0;
                let mut square = 0;
                for (a, b) in a.iter().zip(*b) {
                    let apart = u64::from(a.abs_diff(*b));
                    sum += apart;
                    square += u128::from(apart * apart);
                }
                widest = widest.max(sum);
                squared = squared.max(square);
            }
        }
        PairDistances {
            widest: widest.into(),
            longest: root_rounded_up(squared),
        }
    }

    /// Gives `take` the row of lattice point `point`: runs of weights, each with the cell of the first.
    fn each_run(&self, point: usize, mut take: impl FnMut(usize, &[u32])) {
        let side = self.degree as usize + 1;
        // By axis from the last: the node at or before the point, and the table.
        let mut bases = [0_i64; 3];
        let mut rest = point;
        let mut table = 0;
        let mut stride = 1;
        for (base, axis) in bases.iter_mut().zip(&self.axes).rev() {
            let p = (rest % side) as u64;
            rest /= side;
            *base = (p * u64::from(axis.cells) / u64::from(self.degree)) as i64;
            table += (p % u64::from(axis.phases)) as usize * stride;
            stride *= axis.phases as usize;
        }
        let [leading @ .., last] = &self.axes[..] else {
            return;
        };
        'runs: for run in self.tables.get(table).into_iter().flatten() {
            // Cells begin at node -1.
            let mut row = 0;
            for (i, axis) in leading.iter().enumerate() {
                let cell = bases[i] + i64::from(run.lead[i]) + 1;
                if !(0..axis.width()).contains(&cell) {
                    continue 'runs;
                }
                row = row * axis.width() + cell;
            }
            let start = bases[leading.len()] + i64::from(run.first) + 1;
            let below = (-start).clamp(0, run.weights.len() as i64);
            let end = (last.width() - start).clamp(below, run.weights.len() as i64);
            if below < end {
                let cell = row * last.width() + start + below;
                take(cell as usize, &run.weights[below as usize..end as usize]);
            }
        }
    }

    /// A sum over table columns as one record makes it, in grid units.
    fn rounded_up(columns: u128) -> u128 {
        (columns * u128::from(GRAINS)).div_ceil(1 << SHIFT)
    }
}

const SHIFT: u32 = GRAINS.ilog2() + PEAK.ilog2() - UNITS_A_PEAK;

impl Builtin for CovarianceDensity {}

impl Target for CovarianceDensity {
    fn is_sum(&self) -> bool {
        true
    }

    fn accumulator(&self) -> AccumulatorSpec {
        AccumulatorSpec::Histogram(self.nodes.clone())
    }

    fn shape(&self) -> Shape {
        Shape {
            dimensions: self.axes.len(),
            degree: self.degree,
            basis: Basis::Bernstein,
        }
    }

    /// Grid unit in records per volume of the unit cube; the normaliser is that of `H'`, as depositing keeps a record's mass.
    fn unit(&self) -> f64 {
        self.peak / f64::from(UNITS_A_PEAK).exp2()
    }

    fn evaluate(&self, accumulator: &Accumulator) -> Exact {
        let cells = accumulator
            .histogram()
            .map_or(&[][..], |histogram| &histogram.cells);
        let mut values = Vec::with_capacity(self.points);
        for point in 0..self.points {
            let mut sum = 0_u128;
            self.each_run(point, |cell, weights| {
                let counts = cells.get(cell..).unwrap_or_default();
                sum += counts
                    .iter()
                    .zip(weights)
                    .map(|(n, w)| u128::from(*n) * u128::from(*w))
                    .sum::<u128>();
            });
            values.push(round_half_up(sum as i128, SHIFT));
        }
        Exact::new(values)
    }

    /// `contributions * (ceil(D1 / 2^shift) + N)`; for a replacement the widest pair of columns, or, where those are too
    /// many, twice `D1` or `N` times the peak, whichever is less.
    fn sensitivity(
        &self,
        adjacency: Adjacency,
        contributions: u32,
    ) -> Result<Sensitivity, TargetError> {
        let columns = match adjacency {
            Adjacency::AddRemove => u128::from(self.largest_mass),
            Adjacency::ReplaceOne => self.pairs.widest,
        };
        times_contributions(
            Self::rounded_up(columns) + self.points as u128,
            contributions,
        )
        .map(Sensitivity)
    }

    /// Weights are not negative, so a record that is replaced changes a value by no more than one that comes or goes.
    fn sup_sensitivity(&self, _: Adjacency, contributions: u32) -> Result<u64, TargetError> {
        times_contributions(
            Self::rounded_up(u128::from(self.largest_weight)),
            contributions,
        )
    }

    /// `contributions * (ceil(D2 / 2^shift) + ceil(sqrt N))`; for a replacement the widest pair of columns, or, where those
    /// are too many, `sqrt 2 D2`, as weights are not negative. Or `sqrt(D1 S)`, where that is less.
    fn euclidean_sensitivity(
        &self,
        adjacency: Adjacency,
        contributions: u32,
    ) -> Result<u64, TargetError> {
        let columns = match adjacency {
            Adjacency::AddRemove => self.largest_length,
            Adjacency::ReplaceOne => self.pairs.longest,
        };
        let one = Self::rounded_up(u128::from(columns))
            + u128::from(root_rounded_up(self.points as u128));
        Ok(
            times_contributions(one, contributions)?.min(interpolated_sensitivity(
                self,
                adjacency,
                contributions,
            )?),
        )
    }

    /// `[AR17]` section 6, `S <= sup K`: true for both adjacencies.
    fn papers_sensitivity(
        &self,
        adjacency: Adjacency,
        contributions: u32,
    ) -> Result<Sensitivity, TargetError> {
        sensitivity_of_every_value(self, adjacency, contributions)
    }
}

impl AxisPhases {
    fn new(cells: u32, degree: u32) -> Self {
        // A step is a whole number of cells, or the other way round.
        AxisPhases {
            cells,
            phases: (degree / cells).max(1),
        }
    }

    /// Number of nodes, a cell outside the cube at either end.
    fn width(&self) -> i64 {
        i64::from(self.cells) + 3
    }

    /// Distance of the points of a phase from the node before them, in cells.
    fn phase_offset(&self, phase: u32) -> f64 {
        f64::from(phase) / f64::from(self.phases)
    }
}

/// `sum over all whole z of K_H(z / k)`, to a part in 10^12, never less: the most by which a record can change the
/// intensity in the 1-norm, were the lattice infinite. `covariance` and `degree` as for [`CovarianceDensity::new`].
///
/// # Errors
///
/// If the matrix is not positive definite, or the degree is out of range.
pub fn lattice_sum(covariance: &[Vec<f64>], degree: u32) -> Result<f64, TargetError> {
    check_covariance(covariance)?;
    lattice::lattice_points(covariance.len(), degree)?;
    Ok(lattice::gaussian_sum(covariance, degree).ok_or(ShapeError::NotPositiveDefinite)?)
}

/// Four cells a width, three where four are too many; and a multiple or a divisor of the degree.
fn fine_grid(widths: &[f64], degree: u32) -> Result<Nodes, TargetError> {
    finer_grid(
        &cells_per_axis(widths, degree, 4.0),
        &cells_per_axis(widths, degree, 3.0),
    )
}

/// So many cells a width, at least.
fn cells_per_axis(widths: &[f64], degree: u32, cells: f64) -> Vec<u32> {
    // A cast from a float saturates, and grids that large are refused.
    widths
        .iter()
        .map(|width| fitting_cells((cells / width).ceil().max(1.0) as u32, degree))
        .collect()
}

/// Number of cells, at least `least`: a multiple or a divisor of the degree.
fn fitting_cells(least: u32, degree: u32) -> u32 {
    if least >= degree {
        return degree.saturating_mul(least.div_ceil(degree));
    }
    let mut steps = degree / least;
    while !degree.is_multiple_of(steps) {
        steps -= 1;
    }
    degree / steps
}

/// Refuses what would take too long at the cutoff, or too much memory for its tables.
fn check_work(
    form: &QuadraticForm,
    axes: &[AxisPhases],
    nodes: &Nodes,
    points: usize,
) -> Result<(), TargetError> {
    let ball = if axes.len() == 2 { PI } else { 4.0 / 3.0 * PI };
    let cells: f64 = axes.iter().map(|axis| f64::from(axis.cells)).product();
    let ellipsoid = ball * REACH.powf(axes.len() as f64 / 2.0) * form.determinant().sqrt() * cells;
    let phases: f64 = axes.iter().map(|axis| f64::from(axis.phases)).product();
    let table: f64 = axes
        .iter()
        .map(|axis| f64::from(2 * axis.cells + 5))
        .product();
    let work = points as f64 * ellipsoid.min(nodes.cells() as f64)
        + WEIGHT * phases * ellipsoid.min(table);
    if work > MOST_WORK {
        return Err(TargetError::Work {
            work: work as u64,
            most: MOST_WORK as u64,
        });
    }
    Ok(())
}

/// `form` is that of `H'`.
fn phase_tables(form: &QuadraticForm, axes: &[AxisPhases]) -> Option<Vec<Vec<WeightRun>>> {
    let mut precision = form.inverse();
    for (i, row) in precision.iter_mut().enumerate() {
        for (entry, axis) in row.iter_mut().zip(axes) {
            *entry /= f64::from(axis.cells) * f64::from(axes[i].cells);
        }
    }
    let in_cells = QuadraticForm::new(&precision)?;
    let count = axes.iter().map(|axis| axis.phases as usize).product();
    Some(
        (0..count)
            .map(|index| phase_table(&in_cells, axes, index))
            .collect(),
    )
}

/// Weights for the lattice points that lie between nodes in the way of this `index`.
fn phase_table(form: &QuadraticForm, axes: &[AxisPhases], index: usize) -> Vec<WeightRun> {
    let limits: Vec<i32> = axes.iter().map(|axis| axis.cells as i32 + 2).collect();
    let mut rest = index;
    let mut center = vec![0.0; axes.len()];
    for (center, axis) in center.iter_mut().zip(axes).rev() {
        *center = axis.phase_offset((rest % axis.phases as usize) as u32);
        rest /= axis.phases as usize;
    }
    let mut table = Vec::new();
    for run in form.points_within(&center, REACH, &limits) {
        let mut offset = run.lead.clone();
        offset.push(run.first);
        let mut weights = Vec::new();
        for last in run.first..=run.last {
            offset[run.lead.len()] = last;
            let away: Vec<f64> = offset
                .iter()
                .zip(&center)
                .map(|(z, center)| f64::from(*z) - center)
                .collect();
            weights
                .push((f64::from(PEAK) * (-0.5 * form.evaluate_form(&away)).exp()).round() as u32);
        }
        table.push(WeightRun {
            lead: run.lead,
            first: run.first,
            weights,
        });
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::opened::opened;
    use bernstream_synopsis::histogram::Histogram;

    fn matrix(b: [f64; 2], correlation: f64) -> Vec<Vec<f64>> {
        let covariance = correlation * b[0] * b[1];
        vec![vec![b[0] * b[0], covariance], vec![covariance, b[1] * b[1]]]
    }

    #[test]
    fn what_cannot_be_built_is_refused_in_words() {
        let says = |covariance: &[Vec<f64>], degree, words: &str| {
            let message = CovarianceDensity::new(covariance, degree)
                .expect_err(words)
                .to_string();
            assert!(message.contains(words), "{message}");
        };
        let shapes: [&[Vec<f64>]; 5] = [
            &[],
            &[vec![0.1]],
            &[vec![0.1, 0.0], vec![0.0]],
            &[vec![0.1, 0.01], vec![0.02, 0.1]],
            &[vec![0.1, f64::NAN], vec![f64::NAN, 0.1]],
        ];
        for wrong in shapes {
            says(wrong, 10, "2 or 3 rows and as many columns");
        }
        for correlation in [1.0, 1.5, -1.0] {
            says(
                &matrix([0.125, 0.25], correlation),
                10,
                "not positive definite",
            );
        }
        says(
            &[vec![0.1, 0.0], vec![0.0, -0.1]],
            10,
            "not positive definite",
        );
        says(
            &[vec![0.1, 0.0], vec![0.0, f64::INFINITY]],
            10,
            "the bandwidth of axis 2 is inf",
        );
        says(
            &matrix([0.1, 1.25], 0.0),
            10,
            "the bandwidth of axis 2 is 1.25",
        );
        says(&matrix([0.1, 0.1], 0.5), 0, "degree 0 is out of range");
        says(&matrix([0.1, 0.1], 0.5), 1024, "1050625 lattice points");
        says(
            &matrix([0.01, 0.01], 0.9999),
            10,
            " cells for every window and key",
        );
        says(&matrix([0.5, 0.5], 0.5), 997, "would take ");
    }

    #[test]
    fn cells_are_a_multiple_or_a_divisor_of_the_degree() {
        let cells = |b, degree| {
            CovarianceDensity::new(&matrix(b, 0.0), degree)
                .unwrap()
                .nodes
                .per_axis()
                .to_vec()
        };
        assert_eq!(cells([0.1, 0.3], 10), [40, 20]);
        assert_eq!(cells([0.1, 0.3], 7), [42, 14]);
        assert_eq!(cells([0.1, 0.3], 120), [40, 15]);
        assert_eq!(cells([0.1, 0.3], 67), [67, 67]);
        assert_eq!(cells([1.0, 1.0], 1), [4, 4]);
    }

    #[test]
    fn a_full_histogram_does_not_wrap() {
        let density = CovarianceDensity::new(&matrix([0.4, 0.7], -0.6), 3).unwrap();
        let mut full = Histogram::new(&density.nodes);
        full.cells.fill(u64::MAX);
        for value in opened(&density.evaluate(&Accumulator::Histogram(full))) {
            assert!(value > 1 << 70 && value < 1 << 100, "{value}");
        }
    }

    #[test]
    fn a_window_without_records_is_all_zeros() {
        let density = CovarianceDensity::new(&matrix([0.1, 0.2], 0.5), 5).unwrap();
        for state in [
            density.accumulator().empty(),
            Accumulator::Records(Vec::new()),
        ] {
            assert_eq!(opened(&density.evaluate(&state)), [0; 36]);
        }
    }

    #[test]
    fn a_unit_is_charged_for_each_of_its_records() {
        let density = CovarianceDensity::new(&matrix([0.1, 0.1], 0.5), 20).unwrap();
        for adjacency in [Adjacency::AddRemove, Adjacency::ReplaceOne] {
            let one = density.sensitivity(adjacency, 1).unwrap().0;
            assert_eq!(density.sensitivity(adjacency, 7), Ok(Sensitivity(7 * one)));
            assert_eq!(density.sup_sensitivity(adjacency, 1), Ok(1 << 32));
            let most = Err(TargetError::Contributions {
                contributions: u32::MAX,
            });
            assert_eq!(density.sensitivity(adjacency, u32::MAX), most);
        }
    }

    /// At this covariance the diagonal alone would promise 400; and where the kernel is separable, the product.
    #[test]
    fn the_lattice_sum_is_that_of_the_whole_matrix() {
        let correlated = lattice_sum(&matrix([0.05, 0.05], 0.97), 20).unwrap();
        assert!((correlated - 652.0).abs() < 0.5, "{correlated}");
        // `k` for each axis on which the kernel spans several steps, the peak for one on which it spans none.
        for (b, expected) in [
            ([0.3, 0.4], 400.0),
            ([0.3, 0.001], 20.0 / ((2.0 * PI).sqrt() * 0.001)),
        ] {
            let sum = lattice_sum(&matrix(b, 0.0), 20).unwrap();
            assert!(
                sum >= expected && sum / expected < 1.0 + 1e-9,
                "{sum} {expected}"
            );
        }
        // The same axes turned: the sum and its dual meet where one is used and the other was.
        for (b, correlation, degree) in [
            ([0.05, 0.05], 0.97, 20),
            ([0.1, 0.05], -0.6, 4),
            ([0.2, 0.2], 0.9, 3),
        ] {
            let covariance = matrix(b, correlation);
            let form = QuadraticForm::new(&covariance).unwrap();
            let precision = form.inverse();
            let k = f64::from(degree);
            let value = |x: f64, y: f64| {
                let at = precision[0][0] * x * x
                    + 2.0 * precision[0][1] * x * y
                    + precision[1][1] * y * y;
                (-0.5 * at).exp() / (2.0 * PI * form.determinant().sqrt())
            };
            let far = (10.0 * k) as i32;
            let points = (-far..=far)
                .flat_map(|x| (-far..=far).map(move |y| (f64::from(x) / k, f64::from(y) / k)));
            let direct: f64 = points.map(|(x, y)| value(x, y)).sum();
            let sum = lattice_sum(&covariance, degree).unwrap();
            assert!((sum / direct - 1.0).abs() < 1e-9, "{sum} {direct}");
        }
    }
}
