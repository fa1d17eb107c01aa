//! A released function: its description and its noisy values.

use super::description::Description;
use super::error::SynopsisError;
use crate::found_keys::check_new_rows;

/// A released function: what it is, and its noisy lattice values.
#[derive(Clone, Debug, PartialEq)]
pub struct Synopsis {
    pub(super) description: Description,
    pub(super) values: Vec<f64>,
}

impl Synopsis {
    /// Makes a synopsis, for whoever reads or simulates one: what a worker publishes is a `Sealed`, which is made of noisy values only.
    /// `values` are the noisy values, in the order of the [`Basis`](super::description::Basis) and in natural units: a density's are records per unit
    /// volume of the domain (see [`Density::divide_by`](super::description::Density::divide_by)).
    ///
    /// # Errors
    ///
    /// If the description is inconsistent, or the values are not finite or not as many as its [`Description::shape`] asks for.
    pub fn new(description: Description, values: Vec<f64>) -> Result<Self, SynopsisError> {
        description
            .check_consistency()
            .map_err(SynopsisError::Damaged)?;
        let expected = description.shape().value_count();
        if expected != values.len() {
            return Err(SynopsisError::Damaged(format!(
                "it has {} values, its description asks for {expected}",
                values.len()
            )));
        }
        if !values.iter().all(|value| value.is_finite()) {
            return Err(SynopsisError::Damaged(
                "a lattice value is not a number".to_owned(),
            ));
        }
        check_new_rows(&description, &values).map_err(SynopsisError::Damaged)?;
        Ok(Synopsis {
            description,
            values,
        })
    }

    pub fn description(&self) -> &Description {
        &self.description
    }

    /// Noisy lattice values, as in [`Synopsis::new`].
    pub fn values(&self) -> &[f64] {
        &self.values
    }
}
