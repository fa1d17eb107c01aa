//! Counts of cells: of every spline the grid with the smallest predicted error.

use std::f64::consts::TAU;

use crate::select::search::{BuildFunction, CandidateSearch, CandidateTask};
use crate::settings::{CellGrid, Coordinates, NoiseCandidate, NoiseKind, ReleasedFunction};
use bernstream_synopsis::cell_error;
use bernstream_synopsis::cell_error::CellError;
use bernstream_synopsis::description::{CellLabel, Cells, TargetDescription};
use bernstream_synopsis::histogram::Spline;
use bernstream_synopsis::predict::ExpectedErrors;
use bernstream_synopsis::{Adjacency, Basis, CellBasis};

/// Most cells of a grid that is tried, so that a worker starts within seconds.
const MOST_CELLS: usize = 20_000;

impl CandidateSearch<'_> {
    /// Every spline with every grid.
    pub(super) fn cell_judges(&self, build: &BuildFunction<'_>) -> Vec<CandidateTask<'_>> {
        let kinds = self.kinds_of_family(NoiseKind::is_on_cells);
        if kinds.is_empty() {
            return Vec::new();
        }
        let finest = Coordinates::Cells(CellGrid::finest_grid(
            Spline::Box,
            self.axes.len(),
            self.tables,
        ));
        // What has no cells has none on the finest grid either.
        let Some(feature) = build(finest).and_then(|function| function.feature) else {
            return Vec::new();
        };
        let widths: Vec<f64> = (0..self.axes.len())
            .map(|axis| feature.kernel.width_along(axis))
            .collect();
        let splines = match self.spline {
            Some(spline) => vec![spline],
            None => Spline::ALL.to_vec(),
        };
        let mut judges: Vec<CandidateTask<'_>> = Vec::new();
        for spline in splines {
            let grids = self.built_grids(build, spline, &widths);
            let kinds = kinds.clone();
            judges.push(Box::new(move || self.best_grids(&kinds, &grids)));
        }
        judges
    }

    /// The grids that are tried with a spline, but those that are too large.
    fn built_grids(
        &self,
        build: &BuildFunction<'_>,
        spline: Spline,
        widths: &[f64],
    ) -> Vec<BuiltGrid> {
        let grids = match &self.steps {
            Some(grid) => vec![grid.steps().to_vec()],
            None => cell_error::candidate_grids(spline, widths),
        };
        let most = MOST_CELLS.min(self.terms.most_values);
        let mut built = Vec::new();
        for steps in grids {
            let grid = CellGrid::new(spline, &steps);
            let fits = self.steps.is_some() || grid.node_count() * self.tables as usize <= most;
            if fits && let Some(function) = build(Coordinates::Cells(grid)) {
                built.push(BuiltGrid { grid, function });
            }
        }
        built
    }

    /// The best grid for each kind of noise.
    fn best_grids(&self, kinds: &[NoiseKind], grids: &[BuiltGrid]) -> Vec<NoiseCandidate> {
        let mut found = Vec::new();
        for kind in kinds {
            let judged = grids.iter().filter_map(|grid| self.judge_grid(*kind, grid));
            let best = judged.min_by(|one, other| {
                let error = one.error.grid_criterion();
                error.total_cmp(&other.error.grid_criterion())
            });
            found.extend(best.map(|best| best.candidate));
        }
        found
    }

    /// The errors in the units of the function: of tables of cells that is the density, or the label.
    #[expect(clippy::cast_precision_loss, reason = "a prediction")]
    fn natural_errors(
        &self,
        function: &ReleasedFunction,
        basis: &CellBasis,
        error: &CellError,
    ) -> ExpectedErrors {
        let TargetDescription::Cells(cells) = &function.about else {
            return error.worst_case_errors();
        };
        let reader = (0..self.axes.len()).map(|axis| (TAU / basis.precision[axis][axis]).sqrt());
        let integral: f64 = reader.product();
        let volume: f64 = self.axes.iter().map(|axis| axis.max - axis.min).product();
        let range = match &cells.label {
            None => return error.density_errors(1.0 / (integral * volume)),
            Some(CellLabel::Number { min, max, .. }) => max - min,
            Some(CellLabel::Above { .. } | CellLabel::Classes { .. }) => 1.0,
        };
        error.label_errors(
            basis,
            self.expected_records as f64 * integral.min(1.0),
            range,
        )
    }

    /// The errors of one grid; `None` if it cannot be drawn for.
    #[expect(clippy::cast_precision_loss, reason = "a prediction")]
    fn judge_grid(&self, kind: NoiseKind, built: &BuiltGrid) -> Option<JudgedGrid> {
        let function = &built.function;
        let shape = function.target.shape();
        let basis = match &shape.basis {
            Basis::Cells(basis) => basis.clone(),
            // Counts of cells are judged by the density that their smallest bandwidths read.
            Basis::Tables(tables) => tables.basis_for_bandwidths(&tables.bandwidths)?,
            _ => return None,
        };
        let scale = self.noise_scale(kind, function)? * f64::from(self.tables).sqrt();
        let a_record = function
            .target
            .sup_sensitivity(Adjacency::AddRemove, 1)
            .ok()? as f64
            * function.grid_unit();
        let error = CellError::predict_error(
            &basis,
            kind.noise_distribution(),
            scale,
            (self.expected_records as f64, a_record),
        );
        let is_ratio = matches!(
            &function.about,
            TargetDescription::Cells(Cells { label: Some(_) })
        );
        let error = if is_ratio { error.of_a_ratio() } else { error };
        let candidate = NoiseCandidate {
            noise: kind,
            on: Coordinates::Cells(built.grid),
            order: 1,
            values: shape.value_count(),
            expected: self.natural_errors(function, &basis, &error),
        };
        Some(JudgedGrid { error, candidate })
    }
}

/// A grid of cells, and the function on it.
struct BuiltGrid {
    grid: CellGrid,
    function: ReleasedFunction,
}

/// A candidate, and the error that it is compared by.
struct JudgedGrid {
    error: CellError,
    candidate: NoiseCandidate,
}
