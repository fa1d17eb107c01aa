//! Cosine moments: `Su_m = sum_x prod_i cos(m_i arccos t_i)`, `0 <= m_i < t` on each axis, `t_i = 2 x_i - 1` in `[-1, 1]`, `x`
//! a record of the window in the unit cube. `[WFZW13]` algorithm 1; `docs/proofs/moments.md`.
//!
//! From them alone anyone can answer how much any smooth function adds up to over the records ([`bernstream_synopsis::query`]).
//! They are sums: the number of records is the first, private under add-remove adjacency, and nothing is divided by it.
//!
//! # How
//!
//! Records are deposited on a fine grid that is even in the angle `arccos t` ([`Nodes::of_angles`]); the histogram is
//! multiplied by one integer table of cosines an axis. The deposit leaves `(sin a / a)^3`, `a = m pi / 2M`, of a cosine, for
//! which the tables make up. What remains is its aliasing, up to `2 (a / pi)^3` of a record and axis, and the place rounded to
//! 1/1024 of a cell, which moves an angle by `pi / 2048 M`. With `M` cells an axis, at most
//!
//! ```text
//! M / t                                     64       32       16        8
//! error of a moment, a record and axis    3e-5     6e-5     2e-4     7e-4
//! ```
//!
//! at the highest frequency, less below (`tests/properties/moments.rs`): far below the noise.
//!
//! # Why the sensitivities hold
//!
//! A record's deposit is `2^20` times a convex combination of single nodes, and where a cell is full some of it is missing:
//! then "no node at all" is in the combination. A norm is convex, so over all records its largest value is reached at a
//! single node, that is at a product of columns of the tables, one an axis; and over all pairs of records at a pair of them,
//! "absent" among them. The norms of a product are the products of the norms:
//!
//! * add-remove: `D1 = 2^20 prod_i max_c sum_m |T_i[m][c]|`, and alike in the sup norm and the 2-norm. Where all angles are 0
//!   every cosine is 1, so these are `t^d`, 1 and `t^(d/2)` times what the spline is made up for: less than 1 % on one axis, and where
//!   three axes leave 8 cells a frequency 2 % in the 1-norm and 6 % in the sup norm. None is larger than needed by more;
//! * replace-one: on one axis the largest distance over all pairs of columns, about `1.2 t`; on more, twice the above. (The
//!   paper's `t^d` is false: a cosine moves from 1 to -1.)
//!
//! What remains is the rounding at the end, which moves a difference by less than one unit in each value: `N` in the 1-norm,
//! `sqrt N` in the 2-norm, nothing in the sup norm because halves are rounded up.

mod table;

use std::sync::OnceLock;

use self::table::{CosineTable, WidestColumns, root_rounded_up};
use bernstream_noise::Exact;
use bernstream_release::builtin::Builtin;
use bernstream_release::error::TargetError;
use bernstream_release::lattice::{UNITS_A_PEAK, round_half_up, times_contributions};
use bernstream_release::target::{Target, sensitivity_of_every_value};
use bernstream_release::window::accumulator::{Accumulator, AccumulatorSpec};
use bernstream_synopsis::adjacency::{Adjacency, Sensitivity};
use bernstream_synopsis::histogram::{GRAINS, Histogram, Nodes};
use bernstream_synopsis::moments::grid::moment_nodes;
pub use bernstream_synopsis::moments::grid::{MOST_FREQUENCIES, most_frequencies};
use bernstream_synopsis::shape::{Basis, Shape};
use bernstream_synopsis::shape_error::ShapeError;

/// The moments of one release: grid and tables. All of it is public.
#[derive(Clone, Debug)]
pub struct CosineMoments {
    nodes: Nodes,
    frequencies: u32,
    tables: Vec<CosineTable>,
    /// `log2` of what one record adds to the first moment, before the last shift.
    peak_bits: u32,
    /// The most that a cell counts: no sum can leave 128 bits.
    fullest: u64,
    widest: OnceLock<WidestColumns>,
}

impl CosineMoments {
    /// `dimensions` 1 to 3; `frequencies` is `t`: 1 to 1024 on one axis, 258 on two, 19 on three.
    ///
    /// # Errors
    ///
    /// If the dimensions or the frequencies are out of range.
    pub fn new(dimensions: usize, frequencies: u32) -> Result<Self, TargetError> {
        // Tables of so many bits leave room in 128 for 2^30 records in one cell.
        let bits = match dimensions {
            1 => 30,
            2 => 24,
            3 => 18,
            _ => return Err(ShapeError::Axes(dimensions).into()),
        };
        let nodes = if (1..=MOST_FREQUENCIES).contains(&frequencies) {
            moment_nodes(dimensions, frequencies)
        } else {
            None
        };
        let Some(nodes) = nodes else {
            return Err(TargetError::Frequencies {
                frequencies,
                axes: dimensions,
                most: most_frequencies(dimensions),
            });
        };
        let tables: Vec<CosineTable> = nodes
            .per_axis()
            .iter()
            .map(|m| CosineTable::new(*m, frequencies, 1 << bits))
            .collect();
        let heaviest = tables
            .iter()
            .map(CosineTable::largest_weight)
            .product::<u128>()
            * nodes.cells() as u128;
        let fullest = u64::try_from(i128::MAX.unsigned_abs() / heaviest).unwrap_or(u64::MAX);
        let peak_bits = GRAINS.ilog2() + bits * dimensions as u32;
        Ok(CosineMoments {
            nodes,
            frequencies,
            tables,
            peak_bits,
            fullest,
            widest: OnceLock::new(),
        })
    }

    /// The fine grid that windows deposit on.
    pub fn nodes(&self) -> &Nodes {
        &self.nodes
    }

    /// The moments, exact: whatever the order of the deposits, these integers.
    ///
    /// `histogram` must be one on [`CosineMoments::nodes`].
    pub fn exact_moments(&self, histogram: &Histogram) -> Exact {
        let mut values: Vec<i128> = histogram
            .cells
            .iter()
            .map(|count| i128::from(*count.min(&self.fullest)))
            .collect();
        let mut inner = self.nodes.cells();
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

    fn shift(&self) -> u32 {
        self.peak_bits - UNITS_A_PEAK
    }

    /// A norm over columns as one record makes it, in grid units.
    fn rounded_up(&self, columns: u128) -> u128 {
        (columns * u128::from(GRAINS)).div_ceil(1 << self.shift())
    }

    /// Change in the 1-norm over columns, by one record or by two in place of each other.
    fn column_mass(&self, adjacency: Adjacency) -> u128 {
        let one: u128 = self.tables.iter().map(CosineTable::largest_mass).product();
        match adjacency {
            Adjacency::AddRemove => one,
            Adjacency::ReplaceOne => self.widest_pair().map_or(2 * one, |widest| widest.sum),
        }
    }

    /// Change in the 2-norm over columns.
    fn column_length(&self, adjacency: Adjacency) -> u128 {
        let one = root_rounded_up(
            self.tables
                .iter()
                .map(CosineTable::largest_square)
                .product(),
        );
        match adjacency {
            Adjacency::AddRemove => one,
            Adjacency::ReplaceOne => self
                .widest_pair()
                .map_or(2 * one, |widest| root_rounded_up(widest.square)),
        }
    }

    /// Pairs are looked at on one axis only.
    fn widest_pair(&self) -> Option<WidestColumns> {
        let [table] = &self.tables[..] else {
            return None;
        };
        Some(*self.widest.get_or_init(|| table.widest_pair()))
    }
}

impl Builtin for CosineMoments {}

impl Target for CosineMoments {
    fn is_sum(&self) -> bool {
        true
    }

    fn accumulator(&self) -> AccumulatorSpec {
        AccumulatorSpec::Histogram(self.nodes.clone())
    }

    fn shape(&self) -> Shape {
        let basis = Basis::Cosine {
            frequencies: self.frequencies,
        };
        Shape {
            dimensions: self.tables.len(),
            degree: 1,
            basis,
        }
    }

    /// Grid unit in records: the first moment is their number.
    fn unit(&self) -> f64 {
        (-f64::from(UNITS_A_PEAK)).exp2()
    }

    fn evaluate(&self, accumulator: &Accumulator) -> Exact {
        match accumulator.histogram() {
            Some(histogram) => self.exact_moments(histogram),
            None => Exact::new(vec![0; self.shape().value_count()]),
        }
    }

    /// `contributions * (ceil(D1 / 2^shift) + N)`, `D1` before the rounding as in the [module](self).
    fn sensitivity(
        &self,
        adjacency: Adjacency,
        contributions: u32,
    ) -> Result<Sensitivity, TargetError> {
        let units =
            self.rounded_up(self.column_mass(adjacency)) + self.shape().value_count() as u128;
        times_contributions(units, contributions).map(Sensitivity)
    }

    /// `contributions * ceil(S / 2^shift)`; under replace-one a cosine can move by twice its height.
    fn sup_sensitivity(
        &self,
        adjacency: Adjacency,
        contributions: u32,
    ) -> Result<u64, TargetError> {
        let one = self
            .tables
            .iter()
            .map(CosineTable::largest_weight)
            .product::<u128>();
        let columns = match adjacency {
            Adjacency::AddRemove => one,
            Adjacency::ReplaceOne => 2 * one,
        };
        times_contributions(self.rounded_up(columns), contributions)
    }

    /// `contributions * (ceil(D2 / 2^shift) + ceil(sqrt N))`.
    fn euclidean_sensitivity(
        &self,
        adjacency: Adjacency,
        contributions: u32,
    ) -> Result<u64, TargetError> {
        times_contributions(
            self.rounded_up(self.column_length(adjacency))
                + root_rounded_up(self.shape().value_count() as u128),
            contributions,
        )
    }

    /// `[WFZW13]` algorithm 1: `t^d` in the 1-norm. True where a record comes or goes, false where one is replaced.
    fn papers_sensitivity(
        &self,
        adjacency: Adjacency,
        contributions: u32,
    ) -> Result<Sensitivity, TargetError> {
        match adjacency {
            Adjacency::AddRemove => sensitivity_of_every_value(self, adjacency, contributions),
            Adjacency::ReplaceOne => Err(TargetError::PaperIsWrong {
                what: "cosine moments",
            }),
        }
    }
}
