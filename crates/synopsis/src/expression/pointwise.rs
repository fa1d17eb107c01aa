//! An expression of a point alone: a question to a synopsis, where an expression elsewhere is what is released of records.

use super::error::ExpressionError;
use super::interval::{Interval, SIDES, Slope};
use super::parse::ExpressionTree;

/// An expression such as `exp(-x^2) * y` of the columns of a domain, in natural units.
#[derive(Clone, Debug)]
pub struct PointwiseExpression(ExpressionTree);

impl PointwiseExpression {
    /// `names` are the columns, one to three.
    ///
    /// # Errors
    ///
    /// If the text is not an expression of these columns.
    pub fn parse(text: &str, names: &[String]) -> Result<Self, ExpressionError> {
        ExpressionTree::parse(text, names).map(PointwiseExpression)
    }

    pub fn value(&self, point: &[f64]) -> f64 {
        self.0.evaluate(point)
    }

    /// The least and the most of the derivative along each axis, anywhere in the box of these sides; `None` where interval
    /// arithmetic proves nothing.
    pub fn slopes(&self, sides: &[[f64; 2]]) -> Option<Vec<[f64; 2]>> {
        let mut variables = Vec::with_capacity(sides.len());
        for (axis, [lo, hi]) in sides.iter().take(SIDES).enumerate() {
            variables.push(Slope::variable(Interval::new(*lo, *hi), axis));
        }
        let slope: Slope = self.0.evaluate(&variables);
        if slope.value.fault.is_some() {
            return None;
        }
        let mut slopes = Vec::with_capacity(sides.len());
        for side in slope.slopes.iter().take(sides.len()) {
            if side.fault.is_some() {
                return None;
            }
            slopes.push([side.lo, side.hi]);
        }
        Some(slopes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slopes_hold_everywhere_in_the_box() {
        let names = ["x", "y"].map(String::from);
        let f = PointwiseExpression::parse("exp(-x^2) * y", &names).unwrap();
        assert!((f.value(&[1.0, 2.0]) - 2.0 * (-1.0_f64).exp()).abs() < 1e-15);
        let slopes = f.slopes(&[[0.5, 1.0], [2.0, 3.0]]).unwrap();
        for (x, y) in [(0.5, 2.0), (0.7, 2.5), (1.0, 3.0), (0.5, 3.0)] {
            let bump = f64::exp(-x * x);
            for (derivative, [lo, hi]) in [-2.0 * x * bump * y, bump].into_iter().zip(&slopes) {
                assert!((*lo..=*hi).contains(&derivative), "{x} {y}: {derivative}");
            }
        }
        assert!(
            PointwiseExpression::parse("ln(x)", &names)
                .unwrap()
                .slopes(&[[0.0, 1.0], [0.0, 1.0]])
                .is_none()
        );
    }
}
