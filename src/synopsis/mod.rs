//! What the world may see. Usable without the rest of the crate (`default-features = false`).
//!
//! A synopsis carries noisy values of a function on a lattice, and what they mean. Anyone can evaluate it anywhere, at
//! any order, for ever: that costs no privacy.
//!
//! ```
//! use bernstream::synopsis::{By, Synopsis};
//!
//! # fn main() -> Result<(), bernstream::synopsis::Error> {
//! # use bernstream::synopsis::{band::Band, description::*};
//! # let description = serde_json::from_str::<Description>(include_str!("example.json")).expect("a description");
//! # let message = Synopsis::new(description, vec![2.0, 4.0, 6.0])?.seal()?.bytes;
//! // `message` is the value of a Kafka message, or a file.
//! let synopsis = Synopsis::open(&message)?;
//! let delay = [75.0];
//! let flights_per_minute = synopsis.evaluate(&delay)?;
//! let noise_at_most = synopsis.half_width(&delay)?;
//! println!("{flights_per_minute:.1} flights a minute, give or take {noise_at_most:.1}");
//! # assert_eq!(flights_per_minute, 4.0);
//!
//! // For many points, and for a density instead of an intensity:
//! let evaluator = synopsis.evaluator(synopsis.description().order)?;
//! let density = evaluator.evaluate(&delay)? / evaluator.mass();
//! # assert!((density - 1.0 / 210.0).abs() < 1e-12);
//!
//! // Smoothed as far as the noise that is known to be on it asks for, with how uncertain that leaves it:
//! let smooth = synopsis.evaluator(By::Posterior)?;
//! let (mean, deviation) = (smooth.evaluate(&delay)?, smooth.deviation(&delay)?);
//! # assert!(mean.is_finite() && deviation.is_some_and(|deviation| deviation > 0.0));
//! # Ok(())
//! # }
//! ```

pub mod approximation;
pub mod band;
pub mod bernstein;
pub mod description;
pub mod evaluator;
mod message;
mod newton;
mod noise;
pub mod pointwise;
mod posterior;
pub mod proper;
pub mod predict;
pub mod query;

use arrow::error::ArrowError;

use crate::synopsis::bernstein::MAX_ORDER;
use crate::synopsis::description::{Axis, Basis, Description};
pub use crate::synopsis::evaluator::{By, Evaluator};

/// A released function: what it is, and its noisy lattice values.
#[derive(Clone, Debug, PartialEq)]
pub struct Synopsis {
    description: Description,
    values: Vec<f64>,
}

impl Synopsis {
    /// `values` are the noisy values, in the order of the [`Basis`] and in natural units: a density's are records per unit
    /// volume of the domain (see [`description::Density::divide_by`]).
    ///
    /// An error where the numbers of the description are not proper, or the values not finite or not as many as its
    /// [`Description::shape`] asks for.
    pub fn new(description: Description, values: Vec<f64>) -> Result<Self, Error> {
        description.check().map_err(Error::Damaged)?;
        let expected = description.shape().values();
        if expected != values.len() {
            return Err(Error::Damaged(format!("it has {} values, its description asks for {expected}", values.len())));
        }
        if !values.iter().all(|value| value.is_finite()) {
            return Err(Error::Damaged("a lattice value is not a number".to_owned()));
        }
        Ok(Synopsis { description, values })
    }

    pub fn description(&self) -> &Description {
        &self.description
    }

    /// Noisy lattice values, as in [`Synopsis::new`].
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// The function at one point, in natural units, at the recommended order. For many points use an [`Evaluator`].
    pub fn evaluate(&self, point: &[f64]) -> Result<f64, Error> {
        self.evaluator(self.description.order)?.evaluate(point)
    }

    /// The integral of the function over the domain, at the recommended order: the noisy number of records.
    pub fn mass(&self) -> Result<f64, Error> {
        Ok(self.evaluator(self.description.order)?.mass())
    }

    /// Half the width of the simultaneous band at a point, at the recommended order; see [`description::NoiseBand`].
    pub fn half_width(&self, point: &[f64]) -> Result<f64, Error> {
        if matches!(self.description.basis, Basis::Cosine { .. }) {
            return Err(Error::NoFunction);
        }
        Ok(self.description.band.half_width_at(&unit_point(&self.description.domain, point)?))
    }
}

/// Maps a point of the domain to the unit cube.
fn unit_point(axes: &[Axis], point: &[f64]) -> Result<Vec<f64>, Error> {
    if point.len() != axes.len() {
        return Err(Error::Dimensions { given: point.len(), expected: axes.len() });
    }
    let to_unit = |(axis, value): (&Axis, &f64)| match (axis.min..=axis.max).contains(value) {
        true => Ok(((value - axis.min) / (axis.max - axis.min)).clamp(0.0, 1.0)),
        false => Err(Error::OutsideDomain { column: axis.column.clone(), value: *value, min: axis.min, max: axis.max }),
    };
    axes.iter().zip(point).map(to_unit).collect()
}

/// A finished message: exactly the bytes that will leave, and where they go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sealed {
    /// Kafka message key: pipeline and group key, so that compaction keeps the newest.
    pub key: String,
    /// CloudEvents and our own headers, in order.
    pub headers: Vec<(String, String)>,
    /// The Arrow IPC stream.
    pub bytes: Vec<u8>,
}

/// What is wrong with a synopsis, or with a question to it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("not a synopsis: {0}")]
    Damaged(String),
    #[error("cannot encode the synopsis")]
    Encode(#[source] ArrowError),
    #[error("a point of this synopsis has {expected} coordinates, not {given}")]
    Dimensions { given: usize, expected: usize },
    #[error("{column} = {value} is outside the domain {min} to {max}")]
    OutsideDomain { column: String, value: f64, min: f64, max: f64 },
    #[error("it holds moments of the records, not a function of a point: put a question to it with `bernstream query`")]
    NoFunction,
    #[error("it holds a function of a point, not moments of the records: use `bernstream evaluate`")]
    NoMoments,
    #[error("the question has no finite answer at {at:?}: it must be a number everywhere in the domain")]
    NotANumber { at: Vec<f64> },
    #[error(transparent)]
    Expression(#[from] crate::targets::expression::Error),
    #[error("order {order} is not from 1 to {MAX_ORDER}")]
    Order { order: u32 },
    #[error("the values of this synopsis cannot be read by {by}")]
    Reading { by: By },
    #[error("the released mass is {mass}, not positive: noise outweighs the records, and there is no density to show")]
    NoMass { mass: f64 },
    #[error("a distribution function needs one axis, not {axes}")]
    NotOneAxis { axes: usize },
}
