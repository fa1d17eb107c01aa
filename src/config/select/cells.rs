//! Counts of cells: of every spline the grid with the smallest predicted error.

use crate::config::select::search::{Build, Judge, Search};
use crate::config::settings::{Candidate, CellGrid, Coordinates, Function, NoiseKind};
use crate::synopsis::cell_error::{self, CellError};
use crate::targets::{Adjacency, Basis};
use crate::window::histogram::Spline;

/// Most cells of a grid that is tried, so that a worker starts within seconds.
const MOST_CELLS: usize = 20_000;

impl Search<'_> {
    /// Every spline with every grid.
    pub(super) fn cells(&self, build: &Build<'_>) -> Vec<Judge<'_>> {
        let kinds = self.kinds(NoiseKind::is_on_cells);
        let finest = Coordinates::Cells(CellGrid::finest(Spline::Box, self.axes.len()));
        // What has no cells has none on the finest grid either.
        let widths = match build(finest).filter(|_| !kinds.is_empty()).and_then(|function| function.feature) {
            Some(feature) => (0..self.axes.len()).map(|axis| feature.kernel.width(axis)).collect::<Vec<f64>>(),
            None => return Vec::new(),
        };
        let splines = self.spline.map_or(Spline::ALL.to_vec(), |spline| vec![spline]);
        let of_spline = |spline: Spline| -> Judge<'_> {
            let grids = match &self.steps {
                Some(grid) => vec![grid.steps().to_vec()],
                None => cell_error::grids(spline, &widths),
            };
            let built = |steps: Vec<u32>| {
                let grid = CellGrid::new(spline, &steps);
                let fits = self.steps.is_some() || grid.count() <= MOST_CELLS.min(self.terms.most_values);
                let function = if fits { build(Coordinates::Cells(grid)) } else { None };
                function.map(|function| (grid, function))
            };
            let functions: Vec<(CellGrid, Function)> = grids.into_iter().filter_map(built).collect();
            let kinds = kinds.clone();
            Box::new(move || {
                let best = |kind: &NoiseKind| {
                    let judged = functions.iter().filter_map(|(grid, function)| self.of_cells(*kind, *grid, function));
                    let best = judged.min_by(|(a, _), (b, _)| a.of_choice().total_cmp(&b.of_choice()));
                    best.map(|(_, candidate)| candidate)
                };
                kinds.iter().filter_map(best).collect()
            })
        };
        splines.into_iter().map(of_spline).collect()
    }

    /// One grid; `None` if it cannot be drawn for.
    #[expect(clippy::cast_precision_loss, reason = "a prediction")]
    fn of_cells(&self, kind: NoiseKind, grid: CellGrid, function: &Function) -> Option<(CellError, Candidate)> {
        let Basis::Cells(basis) = function.target.shape().basis else { return None };
        let scale = self.scale(kind, function)?;
        let a_record = function.target.sup_sensitivity(Adjacency::AddRemove, 1).ok()? as f64 * function.unit;
        let error = CellError::expected(&basis, kind.law(), scale, (self.expected_records as f64, a_record));
        let (on, values, expected) = (Coordinates::Cells(grid), basis.count(), error.told());
        Some((error, Candidate { noise: kind, on, order: 1, values, expected }))
    }
}
