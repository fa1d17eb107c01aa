//! Kernel density, Gaussian kernel, by whitened coordinates: the intensity `F(y) = sum_i phi_H(y - d_i)`, `d_i` the records
//! of the window in the unit cube, one to three axes (`docs/proofs/densities.md`).
//!
//! # How
//!
//! Records are deposited on the fine grid of [`crate::density`]. A record at `x` is `K(x, .)` in the space of the
//! kernel, times its peak; its coordinates are `M k_P(x)` ([`super`]). One table has those of every cell, of the kernel `H'`
//! that is narrower by the deposit's variance, as whole numbers of `2^-30`. An exact value is the sum over the cells of
//! count times entry: integers, the same products whatever the counts.
//!
//! # Why the sensitivities hold
//!
//! They are read off the table, so nothing that floats did to it matters. A record's deposit is `2^20` times a convex
//! combination of single cells; saturation adds "no cell at all". A norm is convex, so its largest value is at a single
//! cell: with `r` the largest 2-norm of a column of the table
//!
//! ```text
//! D2 <= 2^20 r / 2^shift + sqrt(d)
//! ```
//!
//! as rounding moves each coordinate of a difference by less than one unit. For a replacement `r` is the largest distance of
//! two columns, "absent" among them. Where those are too many, it is twice `r`, or the bound of [`KernelDensity::distance_bound`].

use std::f64::consts::PI;

use crate::density::fine_grid;
use bernstream_noise::Exact;
use bernstream_release::builtin::Builtin;
use bernstream_release::error::TargetError;
use bernstream_release::lattice::{UNITS_A_PEAK, round_half_up, times_contributions};
use bernstream_release::target::{Target, root_rounded_up};
use bernstream_release::window::accumulator::{Accumulator, AccumulatorSpec};
use bernstream_synopsis::adjacency::{Adjacency, Sensitivity};
use bernstream_synopsis::bandwidths::{check_bandwidths, check_covariance};
use bernstream_synopsis::histogram::{GRAINS, Nodes};
use bernstream_synopsis::quadratic::QuadraticForm;
use bernstream_synopsis::shape::{Basis, PointKernel, Shape};
use bernstream_synopsis::shape_error::ShapeError;
use bernstream_synopsis::whitened::points::{Placement, Points};

/// The entry that stands for 1 in the table.
const ONE: u32 = 1 << 30;

/// `log2` of the part of a sum that is rounded off. 2^24 full cells of 64 bits times 31 bits stay below 2^120.
const SHIFT: u32 = GRAINS.ilog2() + ONE.ilog2() - UNITS_A_PEAK;

/// Most entries of a table (64 MB).
pub const MOST_ENTRIES: usize = 1 << 24;

/// Most numbers to compare when the widest pair of columns is looked for.
const MOST_COMPARED: usize = 1 << 28;

/// A density of one release in whitened coordinates: all of it is public.
#[derive(Clone, Debug)]
pub struct KernelDensity {
    nodes: Nodes,
    points: Points,
    /// `d` entries for each cell.
    table: Vec<i32>,
    norms: ColumnNorms,
    /// Peak of a record's narrowed Gaussian, in records per volume of the cube.
    peak: f64,
}

/// Norms of the table's columns, rounded up.
#[derive(Clone, Copy, Debug)]
struct ColumnNorms {
    /// `max_c ||M[, c]||_1`.
    sum: u64,
    /// `max_c ||M[, c]||_inf`.
    sup: u64,
    /// `max_c ||M[, c]||_2`.
    longest: u64,
    /// `max ||M[, a] - M[, b]||_2`, a column of zeros ("absent") among them, or more.
    farthest: u64,
}

impl KernelDensity {
    /// `bandwidths` in units of the cube's width, in `(0, 1]`, one an axis, 1 to 3; at points placed so ([`Points::from_placement`]), a
    /// number for at most so many ([`Points::choose_greedily`]).
    ///
    /// # Errors
    ///
    /// If the bandwidths or the number of points are out of range, or the tables would be too large.
    pub fn diagonal(
        bandwidths: &[f64],
        placement: impl Into<Placement>,
    ) -> Result<Self, TargetError> {
        if !(1..=3).contains(&bandwidths.len()) {
            return Err(ShapeError::Axes(bandwidths.len()).into());
        }
        check_bandwidths(bandwidths)?;
        let mut matrix = vec![vec![0.0; bandwidths.len()]; bandwidths.len()];
        for (i, bandwidth) in bandwidths.iter().enumerate() {
            matrix[i][i] = bandwidth.powi(2);
        }
        let form = QuadraticForm::new(&matrix).ok_or(ShapeError::NotPositiveDefinite)?;
        KernelDensity::on_points(bandwidths, &matrix, &form, placement.into())
    }

    /// `matrix` is `H` in units of the cube's width, two or three rows, symmetric and positive definite, variances at most 1.
    ///
    /// # Errors
    ///
    /// If the matrix is not symmetric and positive definite, or the tables would be too large.
    pub fn covariance(
        matrix: &[Vec<f64>],
        placement: impl Into<Placement>,
    ) -> Result<Self, TargetError> {
        let form = check_covariance(matrix)?;
        let precision = form.inverse();
        let widths: Vec<f64> = (0..precision.len())
            .map(|i| precision[i][i].powf(-0.5))
            .collect();
        KernelDensity::on_points(&widths, matrix, &form, placement.into())
    }

    /// `widths` are those of the kernel along the axes.
    fn on_points(
        widths: &[f64],
        matrix: &[Vec<f64>],
        form: &QuadraticForm,
        placement: Placement,
    ) -> Result<Self, TargetError> {
        let axes = matrix.len();
        // More cells cost little where a kernel is wide, and the outermost, which no record fills, lie less far apart.
        let widest = if axes < 3 { 0.25 } else { 1.0 };
        let limited: Vec<f64> = widths.iter().map(|width| width.min(widest)).collect();
        let nodes = fine_grid(&limited)?;
        let narrow = narrowed_form(matrix, &nodes, 1.0)?;
        let narrower = narrowed_form(matrix, &nodes, 2.0)?;
        let points = Points::from_placement(
            PointKernel::Gaussian {
                precision: form.inverse(),
            },
            axes,
            placement,
        )?;
        let count = points.count();
        let cells = nodes.cells();
        if count.saturating_mul(cells) > MOST_ENTRIES {
            return Err(TargetError::Table {
                points: count,
                cells,
                most: MOST_ENTRIES,
            });
        }
        let kernel = PointKernel::Gaussian {
            precision: narrow.inverse(),
        };
        let table = coordinate_table(&kernel, &points, &nodes);
        let norm = narrow.determinant() / (form.determinant() * narrower.determinant()).sqrt();
        let norms =
            ColumnNorms::of_columns(&table, count, Self::distance_bound(&points, norm.sqrt()));
        let peak = ((2.0 * PI).powi(axes as i32) * narrow.determinant()).powf(-0.5);
        Ok(KernelDensity {
            nodes,
            points,
            table,
            norms,
            peak,
        })
    }

    /// Upper bound of the distance of any two columns, without looking at them.
    ///
    /// In the space of `K = K_H` the narrowed `K_H'` at two places have norms `n`, `n^2 = |H'| / sqrt(|H| |2 H' - H|)`, and an
    /// inner product above 0 (their Fourier transforms are Gaussian), so they are at most `sqrt(2) n` apart, and their
    /// coordinates [`Points::stretch_bound`] times that. Added are the floats and the rounding of both columns.
    fn distance_bound(points: &Points, norm: f64) -> u64 {
        let rounding = 0.5 * (points.count() as f64).sqrt();
        let floats = f64::from(ONE)
            * (2.0 * points.kernel_error() * points.whitening_norm() + points.rounding_loss());
        let distance =
            f64::from(ONE) * points.stretch_bound() * 2.0_f64.sqrt() * norm * (1.0 + 1e-6);
        // A cast from a float saturates.
        (distance + 2.0 * (rounding + floats)).ceil() as u64
    }

    /// The fine grid that windows deposit on.
    pub fn nodes(&self) -> &Nodes {
        &self.nodes
    }

    pub fn points(&self) -> &Points {
        &self.points
    }

    /// A norm of columns as one record makes it, in grid units.
    fn rounded_up(columns: u64) -> u128 {
        (u128::from(columns) * u128::from(GRAINS)).div_ceil(1 << SHIFT)
    }

    /// `D2` for one record.
    fn euclidean_change(&self, adjacency: Adjacency) -> u128 {
        let columns = match adjacency {
            Adjacency::AddRemove => self.norms.longest,
            Adjacency::ReplaceOne => self.norms.farthest,
        };
        Self::rounded_up(columns) + u128::from(root_rounded_up(self.points.count() as u128))
    }
}

impl Builtin for KernelDensity {}

impl Target for KernelDensity {
    fn is_sum(&self) -> bool {
        true
    }

    fn accumulator(&self) -> AccumulatorSpec {
        AccumulatorSpec::Histogram(self.nodes.clone())
    }

    fn shape(&self) -> Shape {
        Shape {
            dimensions: self.points.axes(),
            degree: 1,
            basis: Basis::Kernel(self.points.basis().clone()),
        }
    }

    /// Value of one grid unit of a coordinate: functions are records per volume of the unit cube.
    fn unit(&self) -> f64 {
        self.peak / f64::from(UNITS_A_PEAK).exp2()
    }

    fn evaluate(&self, accumulator: &Accumulator) -> Exact {
        let count = self.points.count();
        let mut sums = vec![0_i128; count];
        if let Some(histogram) = accumulator.histogram() {
            for (grains, column) in histogram.cells.iter().zip(self.table.chunks_exact(count)) {
                let grains = i128::from(*grains);
                for (sum, entry) in sums.iter_mut().zip(column) {
                    *sum += grains * i128::from(*entry);
                }
            }
        }
        Exact::new(
            sums.into_iter()
                .map(|sum| round_half_up(sum, SHIFT))
                .collect(),
        )
    }

    /// Change in the 1-norm: `ceil(D1 / 2^shift) + d`, `D1` the largest of a column, twice that for a replacement; or `sqrt(d)`
    /// times [`Target::euclidean_sensitivity`], whichever is less.
    fn sensitivity(
        &self,
        adjacency: Adjacency,
        contributions: u32,
    ) -> Result<Sensitivity, TargetError> {
        let count = self.points.count() as u128;
        let sum = Self::rounded_up(self.norms.sum * changed_records(adjacency)) + count;
        let by_length = self.euclidean_change(adjacency) * u128::from(root_rounded_up(count));
        times_contributions(sum.min(by_length), contributions).map(Sensitivity)
    }

    fn sup_sensitivity(
        &self,
        adjacency: Adjacency,
        contributions: u32,
    ) -> Result<u64, TargetError> {
        let sup = Self::rounded_up(self.norms.sup * changed_records(adjacency));
        times_contributions(sup.min(self.euclidean_change(adjacency)), contributions)
    }

    /// `contributions * (ceil(2^20 r / 2^shift) + ceil(sqrt(d)))`.
    fn euclidean_sensitivity(
        &self,
        adjacency: Adjacency,
        contributions: u32,
    ) -> Result<u64, TargetError> {
        times_contributions(self.euclidean_change(adjacency), contributions)
    }

    fn publish(&self, noisy: Vec<f64>) -> Vec<f64> {
        self.points.coefficients(&noisy)
    }
}

/// Records in which neighbours differ.
fn changed_records(adjacency: Adjacency) -> u64 {
    match adjacency {
        Adjacency::AddRemove => 1,
        Adjacency::ReplaceOne => 2,
    }
}

/// `matrix` without what the deposit gives to the variances, taken away so many `times`.
fn narrowed_form(
    matrix: &[Vec<f64>],
    nodes: &Nodes,
    times: f64,
) -> Result<QuadraticForm, ShapeError> {
    let mut narrowed = matrix.to_vec();
    for (i, m) in nodes.per_axis().iter().enumerate() {
        narrowed[i][i] -= times * 0.25 / f64::from(*m).powi(2);
    }
    QuadraticForm::new(&narrowed).ok_or(ShapeError::NotPositiveDefinite)
}

impl ColumnNorms {
    /// `apart` is a distance that no two columns can pass.
    fn of_columns(table: &[i32], count: usize, apart: u64) -> Self {
        let mut sum = 0_u64;
        let mut sup = 0;
        let mut squared = 0_u128;
        for column in table.chunks_exact(count) {
            sum = sum.max(column.iter().map(size).sum());
            sup = sup.max(column.iter().map(size).max().unwrap_or(0));
            let squares = column.iter().map(|entry| u128::from(size(entry)).pow(2));
            squared = squared.max(squares.sum());
        }
        let longest = root_rounded_up(squared);
        let mut farthest = apart.min(2 * longest);
        let pairs = (table.len() / count).pow(2).saturating_mul(count) / 2;
        // Then no distance squared, four times that at most, passes 2^64.
        if pairs <= MOST_COMPARED && squared < 1 << 62 {
            let mut widest = 0_u64;
            for (i, a) in table.chunks_exact(count).enumerate() {
                for b in table.chunks_exact(count).take(i) {
                    widest = widest.max(squared_distance(a, b));
                }
            }
            farthest = root_rounded_up(u128::from(widest)).max(longest);
        }
        ColumnNorms {
            sum,
            sup,
            longest,
            farthest,
        }
    }
}

fn size(entry: &i32) -> u64 {
    u64::from(entry.unsigned_abs())
}

fn squared_distance(a: &[i32], b: &[i32]) -> u64 {
    a.iter()
        .zip(b)
        .map(|(a, b)| u64::from(a.abs_diff(*b)).pow(2))
        .sum()
}

/// `M k_P` of every cell, row-major over the nodes.
fn coordinate_table(kernel: &PointKernel, points: &Points, nodes: &Nodes) -> Vec<i32> {
    let places = cell_places(nodes);
    let mut table = Vec::with_capacity(places.len() * points.count());
    for place in places {
        let values: Vec<f64> = points
            .basis()
            .points
            .iter()
            .map(|p| kernel.value(p, &place))
            .collect();
        for entry in points.whiten(&values) {
            // A cast from a float saturates.
            table.push((entry * f64::from(ONE)).round() as i32);
        }
    }
    table
}

/// The places of all nodes, row-major; those of an axis begin and end a cell outside the cube.
fn cell_places(nodes: &Nodes) -> Vec<Vec<f64>> {
    let mut places = vec![Vec::new()];
    for m in nodes.per_axis() {
        let mut extended = Vec::new();
        for place in &places {
            for j in -1..=i64::from(*m) + 1 {
                extended.push([&place[..], &[j as f64 / f64::from(*m)]].concat());
            }
        }
        places = extended;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::opened::opened;
    use bernstream_synopsis::histogram::Histogram;

    fn squared(a: &[i32], b: &[i32]) -> f64 {
        a.iter()
            .zip(b)
            .map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2))
            .sum::<f64>()
    }

    #[test]
    fn norms_are_those_of_all_columns_and_all_pairs() {
        for (bandwidths, most) in [
            (&[0.05][..], 12),
            (&[0.3], 16),
            (&[1.0], 10),
            (&[0.3, 0.4], 20),
        ] {
            let density = KernelDensity::diagonal(bandwidths, most).unwrap();
            let count = density.points.count();
            let none = vec![0; count];
            let columns: Vec<&[i32]> = density.table.chunks_exact(count).collect();
            let length = columns
                .iter()
                .map(|a| squared(a, &none))
                .fold(0.0, f64::max)
                .sqrt();
            let pairs = columns
                .iter()
                .flat_map(|a| columns.iter().map(|b| squared(a, b)));
            let widest = pairs.fold(0.0, f64::max).sqrt().max(length);
            let ColumnNorms {
                longest,
                farthest,
                sum,
                sup,
            } = density.norms;
            let near =
                |claimed: u64, found: f64| (claimed as f64 - found).abs() <= 1.0 + found * 1e-12;
            assert!(
                near(longest, length) && near(farthest, widest),
                "{bandwidths:?}: {:?}",
                density.norms
            );
            assert!(
                sup <= longest && longest <= sum && sum <= longest * root_rounded_up(count as u128)
            );
            // About 1, as in the mathematics, and the bound without a look at the pairs holds.
            assert!((length / f64::from(ONE) - 1.0).abs() < 0.1, "{length}");
            let apart = KernelDensity::distance_bound(&density.points, 1.001);
            println!("{bandwidths:?}: longest {length}, widest {widest}, without a look {apart}");
            assert!(apart >= farthest, "{apart} {farthest}");
        }
    }

    /// Too many pairs to look at: nearly the distance of two kernels that share nothing, far less than twice a length.
    #[test]
    fn a_narrow_kernel_in_the_plane_is_bounded_without_a_look_at_the_pairs() {
        let density = KernelDensity::diagonal(&[0.05, 0.05], 300).unwrap();
        let ColumnNorms {
            longest, farthest, ..
        } = density.norms;
        let ratio = farthest as f64 / f64::from(ONE);
        assert!(ratio > 2.0_f64.sqrt() && ratio < 1.415, "{ratio}");
        let count = density.points.count();
        let columns: Vec<&[i32]> = density.table.chunks_exact(count).collect();
        let some = columns
            .iter()
            .step_by(7)
            .flat_map(|a| columns.iter().step_by(11).map(|b| squared(a, b)));
        let found = some.fold(0.0, f64::max).sqrt();
        println!("found {found} of {farthest}, longest {longest}");
        assert!(
            found <= farthest as f64 && found > 0.9 * farthest as f64,
            "{found} {farthest}"
        );
    }

    #[test]
    fn a_full_histogram_does_not_wrap() {
        for bandwidths in [&[0.2][..], &[0.2, 0.3], &[0.4, 0.5, 0.6]] {
            let density = KernelDensity::diagonal(bandwidths, 20).unwrap();
            let mut full = Histogram::new(&density.nodes);
            full.cells.fill(u64::MAX);
            let first = opened(&density.evaluate(&Accumulator::Histogram(full)))[0];
            let column: i128 = density
                .table
                .iter()
                .step_by(density.points.count())
                .map(|entry| i128::from(*entry))
                .sum();
            assert_eq!(first, round_half_up(column * i128::from(u64::MAX), SHIFT));
        }
    }

    /// Why "absent" counts among the columns: where all cells but those around one record are full, the record that goes
    /// took nothing along when it came.
    #[test]
    fn next_to_full_cells_a_replacement_counts_like_an_addition() {
        let density = KernelDensity::diagonal(&[1.0], 10).unwrap();
        let mut full = Histogram::new(&density.nodes);
        full.cells.fill(u64::MAX);
        let middle = full.cells.len() / 2;
        full.cells[middle - 1..=middle + 1].fill(0);
        let side = |x: f64| {
            let mut histogram = full.clone();
            histogram.deposit_record(&density.nodes, density.nodes.place_record(&[x]));
            density.evaluate(&Accumulator::Histogram(histogram))
        };
        let near = side((middle - 1) as f64 / f64::from(density.nodes.per_axis()[0]));
        let far = side(0.0);
        let changes = opened(&near)
            .into_iter()
            .zip(opened(&far))
            .map(|(a, b)| (a - b) as f64);
        let found = changes.map(|z| z * z).sum::<f64>().sqrt();
        let claimed = density
            .euclidean_sensitivity(Adjacency::ReplaceOne, 1)
            .unwrap() as f64;
        assert!(
            found <= claimed && found > 0.97 * claimed,
            "{found} {claimed}"
        );
    }
}
