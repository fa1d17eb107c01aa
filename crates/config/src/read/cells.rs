//! `spline` and `step`: the grid of `noise = "cells"`, where the file gives it.

use crate::file::Auto;
use crate::settings::CellGrid;
use crate::text::{Checked, Document, Field, Spanned};
use bernstream_release::window::DomainAxis;
use bernstream_synopsis::histogram::Spline;

/// The largest distance of a number of steps from a whole one, relative to it: rounding a step in decimals leaves that.
const ROUNDING: f64 = 1e-6;

/// The keys of `[release]` that it is read from; what is left out is chosen.
#[derive(Clone)]
pub struct CellKeys {
    pub spline: Field<Auto<Spline>>,
    pub step: Field<Auto<Vec<f64>>>,
}

/// The part of a grid that the file gives.
#[derive(Clone, Copy, Debug, Default)]
pub struct GivenGrid {
    pub spline: Option<Spline>,
    /// The steps of each axis: those of a grid with any spline.
    pub steps: Option<CellGrid>,
}

impl CellKeys {
    /// Returns whether the spline is chosen.
    pub fn is_spline_open(&self) -> bool {
        let spline = self.spline.as_ref().map(Spanned::get_ref);
        !matches!(spline, Some(Auto::Fixed(_)))
    }

    /// Returns whether the steps are chosen.
    pub fn are_steps_open(&self) -> bool {
        let step = self.step.as_ref().map(Spanned::get_ref);
        !matches!(step, Some(Auto::Fixed(_)))
    }

    /// The grid in whole steps.
    pub fn read_grid(
        &self,
        document: &mut Document<'_>,
        axes: &[DomainAxis],
    ) -> Checked<GivenGrid> {
        let spline = match self.spline.as_ref().map(Spanned::get_ref) {
            Some(Auto::Fixed(spline)) => Some(*spline),
            _ => None,
        };
        let none = GivenGrid {
            spline,
            steps: None,
        };
        let Some(step) = &self.step else {
            return Ok(none);
        };
        let Auto::Fixed(lengths) = step.get_ref() else {
            return Ok(none);
        };
        if lengths.len() != axes.len() {
            let what = format!("has {} numbers for {} axes", lengths.len(), axes.len());
            return Err(document.fault(step.span(), what, "write one number for each axis"));
        }
        let mut steps = Vec::new();
        for (length, axis) in lengths.iter().zip(axes) {
            let width = axis.max - axis.min;
            steps.push(whole_steps(width / length).ok_or_else(|| {
                let what = format!(
                    "must divide the width of the domain, {width}, into a whole number of steps"
                );
                document.fault(step.span(), what, nearest_length(width, *length))
            }));
        }
        let steps = steps.into_iter().collect::<Checked<Vec<u32>>>()?;
        Ok(GivenGrid {
            spline,
            steps: Some(CellGrid::new(spline.unwrap_or(Spline::Linear), &steps)),
        })
    }
}

/// The whole number that `steps` stands for.
fn whole_steps(steps: f64) -> Option<u32> {
    let near = steps.round();
    let is_whole =
        near >= 1.0 && near <= f64::from(u32::MAX) && (steps - near).abs() <= ROUNDING * near;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "from 1 to 2^32"
    )]
    is_whole.then_some(near as u32)
}

/// The nearest length that divides the domain, as a hint.
fn nearest_length(width: f64, length: f64) -> String {
    let steps = (width / length).round();
    if steps.is_finite() && steps >= 1.0 {
        format!("such as {}", width / steps)
    } else {
        format!("such as {}", width / 10.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_divides_the_domain_but_for_its_rounding() {
        assert_eq!(
            [10.0, 100.0 / 14.2857143, 1.0].map(whole_steps),
            [Some(10), Some(7), Some(1)]
        );
        assert_eq!(
            [0.4, 9.9, 0.0, -3.0, f64::NAN, f64::INFINITY].map(whole_steps),
            [None; 6]
        );
        assert_eq!(nearest_length(100.0, 30.0), "such as 33.333333333333336");
        assert_eq!(nearest_length(100.0, 0.0), "such as 10");
    }
}
