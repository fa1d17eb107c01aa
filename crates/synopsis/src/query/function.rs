//! A query: a function of a point, and its approximation by cosines.

use std::fmt;

use super::coefficients::CoefficientGrid;
use crate::description::AxisDescription;
use crate::error::SynopsisError;
use crate::expression::PointwiseExpression;
use crate::query::coefficients;
use crate::released::Synopsis;

/// A function of a point of the domain, in natural units, and how it is turned into cosines.
pub struct Query<'a> {
    function: QueryFunction<'a>,
    approximation: Approximation,
    grid: CoefficientGrid,
}

/// Function of a point in natural units.
type QueryClosure<'a> = dyn Fn(&[f64]) -> f64 + 'a;

enum QueryFunction<'a> {
    Closure(Box<QueryClosure<'a>>),
    Expression(PointwiseExpression),
}

/// Approximation of a function by a sum of cosines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Approximation {
    /// Its Chebyshev series, cut off: for smooth functions next to the best.
    #[default]
    Chebyshev,
    /// The paper's, with the generalised Jackson kernel for this smoothness `K`, from 1: its truncation error
    /// falls as `t^-K` for every such function, and is larger for those that are smoother.
    Jackson { smoothness: u32 },
}

/// The most that [`Approximation::Jackson`] takes: beyond it binomials lose their digits.
pub const MOST_SMOOTHNESS: u32 = 32;

impl<'a> Query<'a> {
    /// Any function of a point; see [`polynomial`](super::polynomial), [`gaussian_bump`](super::gaussian_bump) and [`half_space`](super::half_space).
    pub fn function(f: impl Fn(&[f64]) -> f64 + 'a) -> Self {
        Query::new(QueryFunction::Closure(Box::new(f)))
    }

    /// An expression such as `exp(-x^2) * y`; its variables are the columns of the synopsis. Its truncation error is bounded
    /// by interval arithmetic where that succeeds.
    ///
    /// # Errors
    ///
    /// If the text is not an expression of the synopsis's columns.
    pub fn expression(text: &str, of: &Synopsis) -> Result<Self, SynopsisError> {
        let names: Vec<String> = of
            .description()
            .domain
            .iter()
            .map(|axis| axis.column.clone())
            .collect();
        Ok(Query::new(QueryFunction::Expression(
            PointwiseExpression::parse(text, &names)?,
        )))
    }

    fn new(function: QueryFunction<'a>) -> Self {
        Query {
            function,
            approximation: Approximation::default(),
            grid: CoefficientGrid::default(),
        }
    }

    #[must_use]
    pub fn with_approximation(self, approximation: Approximation) -> Self {
        Query {
            approximation,
            ..self
        }
    }

    #[must_use]
    pub fn with_grid(self, grid: CoefficientGrid) -> Self {
        Query { grid, ..self }
    }

    pub(super) fn value(&self, point: &[f64]) -> f64 {
        match &self.function {
            QueryFunction::Closure(f) => f(point),
            QueryFunction::Expression(expression) => expression.value(point),
        }
    }

    /// The least and the most of each derivative in a box, where they are proved.
    pub(super) fn slopes(&self, sides: &[[f64; 2]]) -> Option<Vec<[f64; 2]>> {
        match &self.function {
            QueryFunction::Closure(_) => None,
            QueryFunction::Expression(expression) => expression.slopes(sides),
        }
    }

    pub(super) fn coefficients(&self, domain: &[AxisDescription], t: usize) -> Vec<f64> {
        let mut found = coefficients::coefficients(domain.len(), t, self.grid, |cosines| {
            let natural: Vec<f64> = domain
                .iter()
                .zip(cosines)
                .map(|(axis, cosine)| natural_coordinate(axis, *cosine))
                .collect();
            self.value(&natural)
        });
        if let Approximation::Jackson { smoothness } = self.approximation {
            let multipliers =
                coefficients::jackson_multipliers(t, smoothness.clamp(1, MOST_SMOOTHNESS));
            let widths = vec![t; domain.len()];
            let mut frequencies = vec![0; domain.len()];
            for (flat, coefficient) in found.iter_mut().enumerate() {
                coefficients::unravel_index(flat, &widths, &mut frequencies);
                for frequency in frequencies.iter().rev() {
                    *coefficient *= multipliers[*frequency];
                }
            }
        }
        found
    }
}

impl fmt::Debug for Query<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Query")
            .field("approximation", &self.approximation)
            .field("grid", &self.grid)
            .finish_non_exhaustive()
    }
}

/// Maps `[-1, 1]` to an axis of the domain.
pub(super) fn natural_coordinate(axis: &AxisDescription, cosine: f64) -> f64 {
    (axis.min + (cosine + 1.0) / 2.0 * (axis.max - axis.min)).clamp(axis.min, axis.max)
}
