//! What any smooth function adds up to over the records of a synopsis that holds their cosine moments (`[WFZW13]` algorithm 2).
//!
//! ```
//! use bernstream::synopsis::Synopsis;
//! use bernstream::synopsis::query::{Query, gaussian_bump};
//!
//! # fn main() -> Result<(), bernstream::synopsis::Error> {
//! # let synopsis = bernstream::synopsis::query::example();
//! // In natural units, as text or as any function of a point.
//! let text = Query::expression("exp(-(dep_delay - 75)^2 / 200)", &synopsis)?;
//! let bump = Query::function(gaussian_bump(vec![75.0], vec![10.0]));
//! let answer = synopsis.answer(&text)?;
//! println!("{:.0} flights, give or take {:.0}", answer.sum, answer.noise.half_width);
//! println!("and {:.2} for what the moments do not hold", answer.truncation.error);
//! # assert!((answer.sum - synopsis.answer(&bump)?.sum).abs() < 1e-9);
//! # Ok(())
//! # }
//! ```
//!
//! `f` is taken for the sum `p` of products of cosines that the moments hold: the answer is `sum_m c_m Su_m`, what `p` adds up to
//! over the records, and noise. Two errors are told apart:
//!
//! * **noise**: of the moments, times the `c_m`; its law is known and so are its deviation and quantile;
//! * **truncation**: what `f` differs from `p`, at most `sup |f - p|` a record.

mod coefficients;
mod families;
mod frequencies;
mod noise;
mod truncation;

use std::fmt;

use serde::Serialize;
use serde_json::json;

pub use self::coefficients::Grid;
pub use self::families::{gaussian_bump, half_space, polynomial};
pub use self::frequencies::{frequencies, papers_frequencies};
pub use self::noise::NoiseError;
pub use self::truncation::Truncation;
use crate::synopsis::description::{Axis, Basis, Description};
use crate::synopsis::{Error, Synopsis};
use crate::targets::expression::Pointwise;

/// A function of a point of the domain, in natural units, and how it is turned into cosines.
pub struct Query<'a> {
    function: Function<'a>,
    approximation: Approximation,
    grid: Grid,
}

/// Of a point in natural units.
type Closure<'a> = dyn Fn(&[f64]) -> f64 + 'a;

enum Function<'a> {
    Closure(Box<Closure<'a>>),
    Expression(Pointwise),
}

/// Which sum of cosines stands for a function.
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
    /// Any function of a point; see [`polynomial`], [`gaussian_bump`] and [`half_space`].
    pub fn function(f: impl Fn(&[f64]) -> f64 + 'a) -> Self {
        Query::new(Function::Closure(Box::new(f)))
    }

    /// An expression such as `exp(-x^2) * y`; its variables are the columns of the synopsis. Its truncation error is bounded
    /// by interval arithmetic where that succeeds.
    pub fn expression(text: &str, of: &Synopsis) -> Result<Self, Error> {
        let names: Vec<String> = of.description().domain.iter().map(|axis| axis.column.clone()).collect();
        Ok(Query::new(Function::Expression(Pointwise::parse(text, &names)?)))
    }

    fn new(function: Function<'a>) -> Self {
        Query { function, approximation: Approximation::default(), grid: Grid::default() }
    }

    #[must_use]
    pub fn by(self, approximation: Approximation) -> Self {
        Query { approximation, ..self }
    }

    #[must_use]
    pub fn on(self, grid: Grid) -> Self {
        Query { grid, ..self }
    }

    fn value(&self, point: &[f64]) -> f64 {
        match &self.function {
            Function::Closure(f) => f(point),
            Function::Expression(expression) => expression.value(point),
        }
    }

    /// The least and the most of each derivative in a box, where they are proved.
    fn slopes(&self, sides: &[[f64; 2]]) -> Option<Vec<[f64; 2]>> {
        match &self.function {
            Function::Closure(_) => None,
            Function::Expression(expression) => expression.slopes(sides),
        }
    }

    fn coefficients(&self, domain: &[Axis], t: usize) -> Vec<f64> {
        let at = |cosines: &[f64]| -> f64 {
            let natural: Vec<f64> = domain.iter().zip(cosines).map(|(axis, cosine)| place(axis, *cosine)).collect();
            self.value(&natural)
        };
        let mut found = coefficients::coefficients(domain.len(), t, self.grid, at);
        if let Approximation::Jackson { smoothness } = self.approximation {
            let multipliers = coefficients::jackson(t, smoothness.clamp(1, MOST_SMOOTHNESS));
            let widths = vec![t; domain.len()];
            for (flat, c) in found.iter_mut().enumerate() {
                coefficients::place(flat, &widths, |_, m| *c *= multipliers[m]);
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

/// From `[-1, 1]` to the domain.
fn place(axis: &Axis, cosine: f64) -> f64 {
    (axis.min + (cosine + 1.0) / 2.0 * (axis.max - axis.min)).clamp(axis.min, axis.max)
}

/// What a function adds up to over the records, and on average. Noise and truncation are apart, and both bear on both.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Answer {
    pub sum: f64,
    pub noise: NoiseError,
    pub truncation: Truncation,
    /// `None` where the released number of records is not three times its own noise.
    pub mean: Option<Mean>,
}

/// The sum over the released number of records. Its truncation error is [`Truncation::per_record`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Mean {
    pub value: f64,
    /// Of sum and number together, to first order.
    pub noise: NoiseError,
}

impl Answer {
    /// Itself, what was asked, and of which synopsis: as `bernstream query --json` and the dashboard have it.
    pub fn in_context(&self, function: &str, about: &Description) -> serde_json::Value {
        let window = json!({ "start": about.window.start, "end": about.window.end });
        json!({
            "pipeline": about.pipeline, "release": about.release, "key": about.key, "window": window,
            "function": function, "answer": self,
        })
    }
}

impl Synopsis {
    /// The `c_m`: the sum that a query asks for is that of their products with [`Synopsis::values`], in this and in every
    /// synopsis of the same domain and frequencies.
    pub fn weights(&self, query: &Query<'_>) -> Result<Vec<f64>, Error> {
        match self.description().basis {
            Basis::Cosine { frequencies } => Ok(query.coefficients(&self.description().domain, frequencies as usize)),
            _ => Err(Error::NoMoments),
        }
    }

    /// Answers a query, at no cost in privacy. An error where the synopsis holds no moments, or the function is not a number
    /// somewhere in the domain.
    pub fn answer(&self, query: &Query<'_>) -> Result<Answer, Error> {
        let (about, moments) = (self.description(), self.values());
        let Basis::Cosine { frequencies } = about.basis else { return Err(Error::NoMoments) };
        let mut weights = self.weights(query)?;
        let noise_of = |weights: &[f64]| noise::of(about.noise.law, about.noise.scale, weights);
        let sum: f64 = weights.iter().zip(moments).map(|(c, moment)| c * moment).sum();
        let records = moments.first().copied().unwrap_or(0.0);
        let truncation = Truncation::of(query, &about.domain, frequencies as usize, &weights, records.max(0.0))?;
        let noise = noise_of(&weights);
        let mut alone = vec![0.0; weights.len()];
        alone[0] = 1.0;
        let mean = (records > 3.0 * noise_of(&alone).half_width).then(|| {
            let value = sum / records;
            weights[0] -= value;
            weights.iter_mut().for_each(|c| *c /= records);
            Mean { value, noise: noise_of(&weights) }
        });
        Ok(Answer { sum, noise, truncation, mean })
    }
}

/// A synopsis with the moments of 1,000 records in the middle of the domain, for the example above.
#[doc(hidden)]
pub fn example() -> Synopsis {
    let mut description: crate::synopsis::description::Description =
        serde_json::from_str(include_str!("../example.json")).expect("the example is a description");
    (description.basis, description.degree, description.order) = (Basis::Cosine { frequencies: 4 }, 1, 1);
    Synopsis::new(description, vec![1000.0, 0.0, -1000.0, 0.0]).expect("it fits")
}
