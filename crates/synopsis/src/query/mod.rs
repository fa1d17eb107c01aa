//! The sum of any smooth function over the records of a synopsis that holds their cosine moments (`[WFZW13]` algorithm 2).
//!
//! ```
//! use bernstream_synopsis::Synopsis;
//! use bernstream_synopsis::query::{Query, gaussian_bump};
//!
//! # fn main() -> Result<(), bernstream_synopsis::SynopsisError> {
//! # let synopsis = bernstream_synopsis::query::example();
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
pub mod frequencies;
mod function;
mod truncation;

use serde::Serialize;
use serde_json::json;

pub use self::coefficients::CoefficientGrid;
pub use self::families::{gaussian_bump, half_space, polynomial};
pub use self::frequencies::{frequencies, papers_frequencies};
pub use self::function::{Approximation, MOST_SMOOTHNESS, Query};
pub use self::truncation::Truncation;
use crate::cholesky::sequential_dot;
use crate::description::{Basis, Description};
use crate::error::SynopsisError;
pub use crate::noise::AnswerNoise;
use crate::released::Synopsis;

/// The sum of a function over the records, and its mean. Noise and truncation are apart, and both bear on both.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct QueryAnswer {
    pub sum: f64,
    pub noise: AnswerNoise,
    pub truncation: Truncation,
    /// `None` where the released number of records is not three times its own noise.
    pub mean: Option<Mean>,
}

/// The sum over the released number of records. Its truncation error is [`Truncation::per_record`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Mean {
    pub value: f64,
    /// Noise of sum and number together, to first order.
    pub noise: AnswerNoise,
}

impl QueryAnswer {
    /// The answer, its query and its synopsis, as `bernstream query --json` and the dashboard have it.
    pub fn in_context(&self, function: &str, description: &Description) -> serde_json::Value {
        let window = json!({ "start": description.window.start, "end": description.window.end });
        json!({
            "pipeline": description.pipeline, "release": description.release, "key": description.key, "window": window,
            "function": function, "answer": self,
        })
    }
}

impl Synopsis {
    /// Coefficients `c_m`: the sum that a query asks for is that of their products with [`Synopsis::values`], in this and in every
    /// synopsis of the same domain and frequencies.
    ///
    /// # Errors
    ///
    /// If the synopsis holds no cosine moments.
    pub fn weights(&self, query: &Query<'_>) -> Result<Vec<f64>, SynopsisError> {
        match self.description().basis {
            Basis::Cosine { frequencies } => {
                Ok(query.coefficients(&self.description().domain, frequencies as usize))
            }
            _ => Err(SynopsisError::NoMoments),
        }
    }

    /// Answers a query, at no cost in privacy.
    ///
    /// # Errors
    ///
    /// If the synopsis holds no cosine moments, or the function is not a number somewhere in the domain.
    pub fn answer(&self, query: &Query<'_>) -> Result<QueryAnswer, SynopsisError> {
        Ok(self.answer_and_weights(query)?.0)
    }

    /// Answers a query, with the [`Synopsis::weights`], by which every synopsis of the same domain and frequencies can be answered.
    ///
    /// # Errors
    ///
    /// As [`Synopsis::answer`].
    pub fn answer_and_weights(
        &self,
        query: &Query<'_>,
    ) -> Result<(QueryAnswer, Vec<f64>), SynopsisError> {
        let description = self.description();
        let moments = self.values();
        let Basis::Cosine { frequencies } = description.basis else {
            return Err(SynopsisError::NoMoments);
        };
        let weights = self.weights(query)?;
        let sum = sequential_dot(&weights, moments);
        let records = moments.first().copied().unwrap_or(0.0);
        let truncation = Truncation::bound_error(
            query,
            &description.domain,
            frequencies as usize,
            &weights,
            records.max(0.0),
        )?;
        let answer = QueryAnswer {
            sum,
            noise: description.noise.of_weighted_sum(&weights),
            truncation,
            mean: self.mean_of_query(&weights, sum, records),
        };
        Ok((answer, weights))
    }

    /// The mean of a query; `None` where the released number of records is not three times its own noise.
    fn mean_of_query(&self, weights: &[f64], sum: f64, records: f64) -> Option<Mean> {
        let noise = &self.description().noise;
        let mut of_records = vec![0.0; weights.len()];
        of_records[0] = 1.0;
        let is_known = records > 3.0 * noise.of_weighted_sum(&of_records).half_width;
        if !is_known {
            return None;
        }
        let value = sum / records;
        let mut of_mean = weights.to_vec();
        of_mean[0] -= value;
        for weight in &mut of_mean {
            *weight /= records;
        }
        Some(Mean {
            value,
            noise: noise.of_weighted_sum(&of_mean),
        })
    }
}

/// A synopsis with the moments of 1,000 records in the middle of the domain, for the example above.
#[doc(hidden)]
#[expect(
    clippy::expect_used,
    reason = "of a file of this crate; a test calls it"
)]
pub fn example() -> Synopsis {
    let mut description: crate::description::Description =
        serde_json::from_str(crate::EXAMPLE).expect("the example is a description");
    description.basis = Basis::Cosine { frequencies: 4 };
    description.degree = 1;
    description.order = 1;
    Synopsis::new(description, vec![1000.0, 0.0, -1000.0, 0.0]).expect("it fits")
}
