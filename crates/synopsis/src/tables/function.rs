//! The function of a point that tables are taken for where no reading is asked for.

use super::{ConfidenceInterval, KernelFit, PointEstimate, Tables};
use crate::description::CellLabel;
use crate::domain::unit_point;
use crate::error::SynopsisError;

/// The function of a point that tables are taken for, at the smallest bandwidths.
#[derive(Clone, Debug, PartialEq)]
pub struct TableFunction {
    tables: Tables,
    kind: FunctionKind,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum FunctionKind {
    Density,
    Expected { fit: KernelFit },
    Probability { table: usize, fit: KernelFit },
}

impl Tables {
    /// The density; of a label that is a number its expected value, by local lines; of classes the probability of being above the
    /// threshold, or of the first of several, by local means.
    pub fn function(&self) -> TableFunction {
        let fit = match self.label {
            Some(CellLabel::Number { .. }) => KernelFit::Linear,
            _ => KernelFit::Constant,
        };
        self.function_fitted_by(fit)
    }

    /// The function, with its label fitted so.
    ///
    /// # Errors
    ///
    /// If it has no label, or naive Bayes is asked for and the label has no classes.
    pub fn fitted(&self, fit: KernelFit) -> Result<TableFunction, SynopsisError> {
        self.label.as_ref().ok_or(SynopsisError::NoLabel)?;
        self.check_fit(fit)?;
        Ok(self.function_fitted_by(fit))
    }

    fn function_fitted_by(&self, fit: KernelFit) -> TableFunction {
        let kind = match self.label {
            None => FunctionKind::Density,
            Some(CellLabel::Number { .. }) => FunctionKind::Expected { fit },
            Some(CellLabel::Above { .. }) => FunctionKind::Probability { table: 1, fit },
            Some(CellLabel::Classes { .. }) => FunctionKind::Probability { table: 0, fit },
        };
        TableFunction {
            tables: self.clone(),
            kind,
        }
    }
}

impl TableFunction {
    /// Reading at a point of the domain, in natural units.
    ///
    /// # Errors
    ///
    /// If the point has another number of coordinates than the domain or lies outside it.
    pub fn read_point(&self, point: &[f64]) -> Result<PointEstimate, SynopsisError> {
        Ok(self.reading_in_cube(&unit_point(&self.tables.axes, point)?))
    }

    /// Reading at a point of the unit cube.
    pub(crate) fn reading_in_cube(&self, y: &[f64]) -> PointEstimate {
        let kernel = self.tables.narrowest();
        match self.kind {
            FunctionKind::Density => kernel.density_at(y),
            FunctionKind::Expected { fit } => kernel.expected_at(y, fit),
            FunctionKind::Probability { table, fit } => kernel.probability_at(y, table, fit),
        }
    }

    /// Half the width of a band around the value at all points of the cube at once.
    pub(crate) fn simultaneous_half_width(&self, y: &[f64]) -> f64 {
        let PointEstimate {
            value,
            simultaneous,
            ..
        } = self.reading_in_cube(y);
        self.further_end(value, simultaneous)
    }

    /// Half the width of the interval at one point alone.
    pub(crate) fn pointwise_half_width(&self, y: &[f64]) -> f64 {
        let PointEstimate {
            value, pointwise, ..
        } = self.reading_in_cube(y);
        self.further_end(value, pointwise)
    }

    /// The standard deviation of the noise in units of that of one value, to first order; infinite where the interval is unknown.
    pub(crate) fn noise_length(&self, y: &[f64]) -> f64 {
        let kernel = self.tables.narrowest();
        match self.kind {
            FunctionKind::Density => kernel.density_length(y),
            FunctionKind::Expected { fit } => {
                kernel.probability_length(y, 1, fit)
                    * (self.tables.label_of_probability(1.0)
                        - self.tables.label_of_probability(0.0))
            }
            FunctionKind::Probability { table, fit } => kernel.probability_length(y, table, fit),
        }
    }

    /// Largest distance of the interval's ends from the value; the whole range of the label where it is unknown.
    fn further_end(&self, value: f64, interval: Option<ConfidenceInterval>) -> f64 {
        match interval {
            Some(ConfidenceInterval { lower, upper }) => (upper - value).max(value - lower),
            None => self.tables.label_of_probability(1.0) - self.tables.label_of_probability(0.0),
        }
    }
}
