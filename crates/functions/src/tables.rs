//! Noisy tables of cells: a record is shared among the nodes of a public grid, and by its label over tables; noise is added to the
//! counts, and whoever has them reads densities, shares, quantiles, regressions and classes off them
//! (`docs/proofs/cells.md`, [`bernstream_synopsis::tables`]).
//!
//! # What is released
//!
//! `c_tj = sum_i l_t(i) w_j(d_i)`, `d_i` the records of the window in the unit cube, `w_j` a B-spline around node `p_j` ([`Spline`]), `l_t`
//! the part of a record that its label gives to table `t` ([`TableLabel`]): not negative, and 1 in all. Without a label there is one table.
//!
//! # Why the sensitivities hold
//!
//! Counts are kept in grains. A record's grains on a node are divided among the tables, and none is lost or added: they add up to
//! `2^20` over all tables and nodes, whatever the record is. So a record more or less changes the counts by `2^20` in the
//! 1-norm, less where a cell is full, and one that is replaced by at most twice that. In the 2-norm the parts of a node's grains, not
//! negative, are no longer than their sum: [`Nodes::longest_deposit`] holds for all tables as for one, and `sqrt 2` times that for a
//! replacement, as the inner product of two deposits is not negative. Counts are multiplied by a power of two, so nothing is rounded.

use super::cells::{SHIFT, length_of_change, records_of_change};
use bernstream_noise::Exact;
use bernstream_release::builtin::Builtin;
use bernstream_release::error::TargetError;
use bernstream_release::lattice::{UNITS_A_PEAK, times_contributions};
use bernstream_release::target::Target;
use bernstream_release::window::accumulator::{Accumulator, AccumulatorSpec, TableLabel};
use bernstream_synopsis::adjacency::{Adjacency, Sensitivity};
use bernstream_synopsis::bandwidths::check_bandwidths;
use bernstream_synopsis::cell_kernel::{LEAST_LEFT, MOST_CELLS};
use bernstream_synopsis::histogram::{GRAINS, Nodes, Spline};
use bernstream_synopsis::shape::{Basis, Shape, TableBasis};
use bernstream_synopsis::shape_error::ShapeError;

/// The tables of one release: all of it is public.
#[derive(Clone, Debug)]
pub struct CellTables {
    nodes: Nodes,
    label: Option<TableLabel>,
    basis: TableBasis,
}

impl CellTables {
    /// `bandwidths`, the smallest that readings may have, in units of the cube's width, in `(0, 1]`, one an axis, 1 to 3; `steps` the
    /// steps of each axis, from 1.
    ///
    /// # Errors
    ///
    /// If axes or bandwidths are out of range, the spline alone is as wide as the narrowest kernel, or there are more than
    /// [`MOST_CELLS`] values.
    pub fn new(
        bandwidths: &[f64],
        spline: Spline,
        steps: &[u32],
        label: Option<TableLabel>,
    ) -> Result<Self, TargetError> {
        if !(1..=3).contains(&bandwidths.len()) {
            return Err(ShapeError::Axes(bandwidths.len()).into());
        }
        check_bandwidths(bandwidths)?;
        let tables = label.map_or(1, TableLabel::table_count);
        let cells = steps
            .iter()
            .map(|m| spline.nodes(*m) as u128)
            .product::<u128>()
            * tables as u128;
        let is_small = steps.len() == bandwidths.len() && cells <= MOST_CELLS as u128;
        let nodes =
            Nodes::shared_by(spline, steps)
                .filter(|_| is_small)
                .ok_or(ShapeError::CellGrid {
                    cells,
                    most: MOST_CELLS,
                })?;
        for (b, m) in bandwidths.iter().zip(steps) {
            let is_wider = (b * f64::from(*m)).powi(2) > LEAST_LEFT * spline.variance();
            if !is_wider {
                return Err(ShapeError::WideSteps { spline }.into());
            }
        }
        let basis = TableBasis {
            spline,
            steps: steps.to_vec(),
            bandwidths: bandwidths.to_vec(),
            tables: tables as u32,
        };
        Ok(CellTables {
            nodes,
            label,
            basis,
        })
    }
}

impl Builtin for CellTables {}

impl Target for CellTables {
    fn is_sum(&self) -> bool {
        true
    }

    fn accumulator(&self) -> AccumulatorSpec {
        let nodes = self.nodes.clone();
        match self.label {
            Some(by) => AccumulatorSpec::Tables { nodes, by },
            None => AccumulatorSpec::Histogram(nodes),
        }
    }

    fn shape(&self) -> Shape {
        Shape {
            dimensions: self.basis.steps.len(),
            degree: 1,
            basis: Basis::Tables(self.basis.clone()),
        }
    }

    /// A released value is a number of records.
    fn unit(&self) -> f64 {
        1.0 / f64::from(UNITS_A_PEAK).exp2()
    }

    fn evaluate(&self, accumulator: &Accumulator) -> Exact {
        let values: Vec<i128> = accumulator
            .tables()
            .iter()
            .flat_map(|table| &table.cells)
            .map(|grains| i128::from(*grains) << SHIFT)
            .collect();
        Exact::new(if values.is_empty() {
            vec![0; self.shape().value_count()]
        } else {
            values
        })
    }

    fn sensitivity(
        &self,
        adjacency: Adjacency,
        contributions: u32,
    ) -> Result<Sensitivity, TargetError> {
        records_of_change(adjacency, contributions).map(Sensitivity)
    }

    /// Change by one record for each record of a unit, for either adjacency: shares are not negative.
    fn sup_sensitivity(&self, _: Adjacency, contributions: u32) -> Result<u64, TargetError> {
        times_contributions(u128::from(GRAINS) << SHIFT, contributions)
    }

    fn euclidean_sensitivity(
        &self,
        adjacency: Adjacency,
        contributions: u32,
    ) -> Result<u64, TargetError> {
        length_of_change(&self.nodes, adjacency, contributions)
    }
}
