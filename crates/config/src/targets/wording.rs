//! The meaning of the values of a function: intensities, expected labels and scores.

use std::sync::Arc;

use crate::settings::{FunctionHeight, FunctionRoughness, ReleasedFunction};
use crate::targets::context::{ClassLabel, NumberLabel, TargetContext};
use bernstream_release::{Target, ValueScaling};
use bernstream_synopsis::PointKernel;
use bernstream_synopsis::description;
use bernstream_synopsis::description::{Classifier, Method, Regression, Smoothing};

/// The expected value of a numeric label, scaled to `[-1, 1]` by its bounds.
pub fn expected_label_function(
    context: &TargetContext<'_>,
    label: &NumberLabel<'_>,
    method: Method,
    target: Arc<dyn Target>,
    feature: FunctionRoughness,
) -> ReleasedFunction {
    let NumberLabel { column, bounds } = *label;
    let middle = (bounds.min + bounds.max) / 2.0;
    let half = (bounds.max - bounds.min) / 2.0;
    let about = Regression {
        label: column.to_owned(),
        min: bounds.min,
        max: bounds.max,
        method,
    };
    ReleasedFunction {
        about: description::TargetDescription::Regression(about),
        meaning: format!(
            "{column} as expected at {}; {middle} where there are no records",
            context.columns_in_words()
        ),
        quantity: format!("of {column}"),
        scaling: ValueScaling::new(target.unit() * half, middle),
        feature: Some(feature),
        target,
    }
}

/// A score for two classes, whose sign tells them apart.
pub fn score_function(
    label: &ClassLabel<'_>,
    method: Method,
    target: Arc<dyn Target>,
    unit: f64,
    quantity: String,
    feature: FunctionRoughness,
) -> ReleasedFunction {
    let ClassLabel { column, above } = *label;
    ReleasedFunction {
        about: description::TargetDescription::Classifier(Classifier {
            label: column.to_owned(),
            above,
            method,
        }),
        meaning: format!(
            "a score: above 0 where {column} > {above} is expected, below 0 where it is not"
        ),
        quantity,
        scaling: ValueScaling::new(unit, 0.0),
        feature: Some(feature),
        target,
    }
}

/// A kernel density, in records per unit of its axes.
pub fn intensity_function(
    context: &TargetContext<'_>,
    target: Arc<dyn Target>,
    kernel: Smoothing,
) -> ReleasedFunction {
    let per = context.columns_in_words();
    let feature = match &kernel {
        Smoothing::Bandwidths(bandwidths) => Some(FunctionRoughness::from_widths(
            &context.parts_of_axes(bandwidths),
            FunctionHeight::AllRecords,
        )),
        Smoothing::Covariance(rows) => PointKernel::of_covariance(&context.covariance_parts(rows))
            .map(|kernel| FunctionRoughness {
                kernel,
                height: FunctionHeight::AllRecords,
            }),
    };
    ReleasedFunction {
        about: description::TargetDescription::Density(description::Density {
            kernel,
            divide_by: None,
        }),
        meaning: format!("records per unit of {per}; divide by the released mass for a density"),
        quantity: format!("records per unit of {per}"),
        scaling: ValueScaling::new(target.unit() / context.volume(), 0.0),
        feature,
        target,
    }
}
