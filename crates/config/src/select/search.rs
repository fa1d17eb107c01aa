//! The candidates that `"auto"` chooses from, the settings that the choice depends on, and the scale and the functions by which every
//! family is judged.

use crate::settings::{
    AutoChoice, CellGrid, Coordinates, FunctionHeight, FunctionRoughness, NoiseCandidate,
    NoiseKind, ReleasedFunction,
};
use bernstream_noise::Mechanism;
use bernstream_noise::concentrated::epsilon_of_ball;
use bernstream_release::window::DomainAxis;
use bernstream_synopsis::Adjacency;
use bernstream_synopsis::histogram::Spline;
use bernstream_synopsis::price::Price;
use bernstream_synopsis::rough::{WorstCaseFunctions, WorstCaseKind};

/// The candidates to choose from, and what the choice depends on.
#[derive(Clone, Debug)]
pub struct CandidateSearch<'a> {
    /// Never empty.
    pub kinds: Vec<NoiseKind>,
    /// A fixed degree, or those of the list.
    pub degree: Option<u32>,
    /// Fixed orders, ascending, or those of the list.
    pub orders: Option<Vec<u32>>,
    /// Fixed kernel points, or those of the lists.
    pub points: Option<Coordinates>,
    /// The keys of the file that are left open.
    pub open: &'a [&'static str],
    /// A fixed spline of cells, or all of them.
    pub spline: Option<Spline>,
    /// Fixed steps of cells, or those of the list.
    pub steps: Option<CellGrid>,
    /// Tables of cells: 1 but for [`bernstream_functions::tables`] with a label.
    pub tables: u32,
    pub expected_records: u64,
    pub price: Price,
    pub terms: ChoiceTerms,
    pub axes: &'a [DomainAxis],
}

/// Settings of other sections of the file that the choice depends on.
#[derive(Clone, Copy, Debug)]
pub struct ChoiceTerms {
    pub adjacency: Adjacency,
    pub contributions: u32,
    /// The most values that a message holds.
    pub most_values: usize,
}

/// The function on given coordinates; `None` where it cannot be built on them.
pub type BuildFunction<'a> = dyn Fn(Coordinates) -> Option<ReleasedFunction> + 'a;

/// Judges some candidates of a family; it may run beside the others.
pub type CandidateTask<'a> = Box<dyn FnOnce() -> Vec<NoiseCandidate> + Send + 'a>;

impl CandidateSearch<'_> {
    /// The search for this choice alone, with the orders that it may have; `None` if it is not what the file asks for.
    pub fn only_choice(&self, choice: &AutoChoice) -> Option<Self> {
        let mut degree = None;
        let mut points = None;
        let mut grid = None;
        match choice.on {
            Coordinates::Lattice { degree: chosen } => degree = Some(chosen),
            Coordinates::Points { .. } | Coordinates::Tensor(_) => points = Some(choice.on),
            Coordinates::Cells(chosen) => grid = Some(chosen),
        }
        let spline = grid.map(|grid| grid.spline);
        let is_asked = self.kinds.contains(&choice.noise)
            && (self.degree.is_none() || self.degree == degree)
            && (self.points.is_none() || self.points == points)
            && (self.spline.is_none() || self.spline == spline)
            && self
                .steps
                .is_none_or(|steps| grid.is_some_and(|grid| grid.steps() == steps.steps()))
            && self
                .orders
                .as_ref()
                .is_none_or(|orders| orders.contains(&choice.order));
        // Fixed orders are those of the file: a window may choose among them.
        let orders = self.orders.clone().or(Some(vec![choice.order]));
        let kinds = vec![choice.noise];
        is_asked.then(|| CandidateSearch {
            kinds,
            degree,
            orders,
            points,
            spline,
            steps: grid,
            ..self.clone()
        })
    }

    /// The kinds of noise that are asked for and that belong to a family.
    pub(super) fn kinds_of_family(&self, of_family: impl Fn(NoiseKind) -> bool) -> Vec<NoiseKind> {
        self.kinds
            .iter()
            .copied()
            .filter(|kind| of_family(*kind))
            .collect()
    }

    /// The scale of the noise, in natural units.
    pub(super) fn noise_scale(&self, kind: NoiseKind, function: &ReleasedFunction) -> Option<f64> {
        let ChoiceTerms {
            adjacency,
            contributions,
            ..
        } = self.terms;
        let law = kind.noise_distribution();
        let values = function.target.shape().value_count();
        let change = function
            .target
            .sensitivity_in(law.norm(), adjacency, contributions)
            .ok()?;
        let price = match self.price {
            // Beside Gaussian noise, whose variance is `d / (d + 1)` of the ball's at the same rho, it need not be looked at closely.
            Price::Concentrated(rho) if self.kinds == [NoiseKind::Ball] => {
                Price::Pure(epsilon_of_ball(change, values, rho))
            }
            price => price,
        };
        let mechanism =
            Mechanism::calibrated(law, change, values * contributions as usize, price).ok()?;
        #[expect(
            clippy::cast_precision_loss,
            reason = "a prediction; the noise itself is drawn from the integer"
        )]
        Some(mechanism.scale().units() as f64 * function.grid_unit())
    }

    /// The functions that are assumed, in natural units; none if nothing is known about them.
    #[expect(clippy::cast_precision_loss, reason = "a prediction")]
    pub(super) fn worst_functions(
        &self,
        function: &ReleasedFunction,
    ) -> Option<WorstCaseFunctions> {
        let records = self.expected_records as f64;
        let FunctionRoughness { kernel, height } = function.feature.clone()?;
        let is = match height {
            FunctionHeight::AllRecords => {
                let most = function
                    .target
                    .sup_sensitivity(Adjacency::AddRemove, 1)
                    .ok()? as f64
                    * function.grid_unit();
                WorstCaseKind::Heap(records * most)
            }
            FunctionHeight::Each(height) => WorstCaseKind::Heap(records * height),
            FunctionHeight::Fixed(height) => WorstCaseKind::Bounded(height),
            FunctionHeight::Covered { limit, gap } => WorstCaseKind::Alternating {
                height: limit * (gap * records).min(1.0),
                least: 2.0,
            },
        };
        Some(WorstCaseFunctions {
            kernel,
            axes: self.axes.len(),
            is,
        })
    }
}
