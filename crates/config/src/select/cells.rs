//! Counts of cells: of every spline the grid with the smallest predicted error.

use std::f64::consts::TAU;

use crate::select::search::{Build, Judge, Search};
use crate::settings::{Candidate, CellGrid, Coordinates, Function, NoiseKind};
use bernstream_synopsis::cell_error;
use bernstream_synopsis::cell_error::CellError;
use bernstream_synopsis::description::{CellLabel, Cells, Target};
use bernstream_synopsis::histogram::Spline;
use bernstream_synopsis::predict::Expected;
use bernstream_synopsis::{Adjacency, Basis, CellBasis};

/// Most cells of a grid that is tried, so that a worker starts within seconds.
const MOST_CELLS: usize = 20_000;

impl Search<'_> {
    /// Every spline with every grid.
    pub(super) fn cells(&self, build: &Build<'_>) -> Vec<Judge<'_>> {
        let kinds = self.kinds(NoiseKind::is_on_cells);
        let finest =
            Coordinates::Cells(CellGrid::finest(Spline::Box, self.axes.len(), self.tables));
        // What has no cells has none on the finest grid either.
        let widths = match build(finest)
            .filter(|_| !kinds.is_empty())
            .and_then(|function| function.feature)
        {
            Some(feature) => (0..self.axes.len())
                .map(|axis| feature.kernel.width(axis))
                .collect::<Vec<f64>>(),
            None => return Vec::new(),
        };
        let splines = self
            .spline
            .map_or(Spline::ALL.to_vec(), |spline| vec![spline]);
        let of_spline = |spline: Spline| -> Judge<'_> {
            let grids = match &self.steps {
                Some(grid) => vec![grid.steps().to_vec()],
                None => cell_error::grids(spline, &widths),
            };
            let built = |steps: Vec<u32>| {
                let grid = CellGrid::new(spline, &steps);
                let fits = self.steps.is_some()
                    || grid.count() * self.tables as usize
                        <= MOST_CELLS.min(self.terms.most_values);
                let function = if fits {
                    build(Coordinates::Cells(grid))
                } else {
                    None
                };
                function.map(|function| (grid, function))
            };
            let functions: Vec<(CellGrid, Function)> =
                grids.into_iter().filter_map(built).collect();
            let kinds = kinds.clone();
            Box::new(move || {
                let best = |kind: &NoiseKind| {
                    let judged = functions
                        .iter()
                        .filter_map(|(grid, function)| self.of_cells(*kind, *grid, function));
                    let best =
                        judged.min_by(|(a, _), (b, _)| a.of_choice().total_cmp(&b.of_choice()));
                    best.map(|(_, candidate)| candidate)
                };
                kinds.iter().filter_map(best).collect()
            })
        };
        splines.into_iter().map(of_spline).collect()
    }

    /// In the units of the function: of tables of cells that is the density, or the label.
    #[expect(clippy::cast_precision_loss, reason = "a prediction")]
    fn told(&self, function: &Function, basis: &CellBasis, error: &CellError) -> Expected {
        let Target::Cells(cells) = &function.about else {
            return error.told();
        };
        let reader = (0..self.axes.len()).map(|axis| (TAU / basis.precision[axis][axis]).sqrt());
        let integral: f64 = reader.product();
        let volume: f64 = self.axes.iter().map(|axis| axis.max - axis.min).product();
        let range = match &cells.label {
            None => return error.density(1.0 / (integral * volume)),
            Some(CellLabel::Number { min, max, .. }) => max - min,
            Some(CellLabel::Above { .. } | CellLabel::Classes { .. }) => 1.0,
        };
        error.label(
            basis,
            self.expected_records as f64 * integral.min(1.0),
            range,
        )
    }

    /// One grid; `None` if it cannot be drawn for.
    #[expect(clippy::cast_precision_loss, reason = "a prediction")]
    fn of_cells(
        &self,
        kind: NoiseKind,
        grid: CellGrid,
        function: &Function,
    ) -> Option<(CellError, Candidate)> {
        let shape = function.target.shape();
        let basis = match &shape.basis {
            Basis::Cells(basis) => basis.clone(),
            // Counts of cells are judged by the density that their smallest bandwidths read.
            Basis::Tables(tables) => tables.at(&tables.bandwidths)?,
            _ => return None,
        };
        let scale = self.scale(kind, function)? * f64::from(self.tables).sqrt();
        let a_record = function
            .target
            .sup_sensitivity(Adjacency::AddRemove, 1)
            .ok()? as f64
            * function.unit();
        let error = CellError::expected(
            &basis,
            kind.law(),
            scale,
            (self.expected_records as f64, a_record),
        );
        let is_ratio = matches!(&function.about, Target::Cells(Cells { label: Some(_) }));
        let error = if is_ratio { error.of_a_ratio() } else { error };
        let on = Coordinates::Cells(grid);
        let values = shape.values();
        let expected = self.told(function, &basis, &error);
        Some((
            error,
            Candidate {
                noise: kind,
                on,
                order: 1,
                values,
                expected,
            },
        ))
    }
}
