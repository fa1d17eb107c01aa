//! The input of every target: the axes, the label, and the coordinates of the values.

use std::ops::Range;
use std::sync::Arc;

use crate::settings::{Coordinates, Function, PrivateBandwidths};
use crate::text::{Checked, Document, Reported, Spanned};
use bernstream_release as targets;
use bernstream_release::Target;
use bernstream_release::window::{Axis, Label};

/// The input of every target.
pub struct TargetContext<'a> {
    pub axes: &'a [Axis],
    pub columns: &'a [String],
    pub label: Option<&'a Spanned<Labelled>>,
    pub on: Coordinates,
    /// For moments with a smoothness in place of a number of frequencies.
    pub planned: Option<FrequencyPlan>,
}

/// What the number of frequencies is chosen for.
#[derive(Clone, Copy)]
pub struct FrequencyPlan {
    pub records: u64,
    pub epsilon: f64,
}

/// A label and its column.
pub struct Labelled {
    pub column: String,
    pub label: Label,
}

/// The function of a release, with its candidates where each window chooses privately.
pub struct ReadTarget {
    pub function: Function,
    pub private_bandwidths: Option<Spanned<PrivateBandwidths>>,
}

impl From<Function> for ReadTarget {
    fn from(function: Function) -> Self {
        ReadTarget {
            function,
            private_bandwidths: None,
        }
    }
}

impl TargetContext<'_> {
    pub fn widths(&self) -> impl Iterator<Item = f64> {
        self.axes.iter().map(|axis| axis.max - axis.min)
    }

    /// Lengths along the axes, as parts of the domain.
    pub fn parts(&self, lengths: &[f64]) -> Vec<f64> {
        lengths
            .iter()
            .zip(self.widths())
            .map(|(length, width)| length / width)
            .collect()
    }

    /// A covariance matrix, with the domain as the unit.
    pub fn covariance_parts(&self, rows: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let widths: Vec<f64> = self.widths().collect();
        let scaled = |(row, w): (&Vec<f64>, &f64)| {
            row.iter().zip(&widths).map(|(x, v)| x / (w * v)).collect()
        };
        rows.iter().zip(&widths).map(scaled).collect()
    }

    pub fn volume(&self) -> f64 {
        self.widths().product()
    }

    /// The degree of the lattice; a fault for a function that cannot have kernel points.
    pub fn degree(&self, document: &mut Document<'_>, place: &Range<usize>) -> Checked<u32> {
        match self.on {
            Coordinates::Lattice { degree } => Ok(degree),
            Coordinates::Points { .. } | Coordinates::Tensor(_) => {
                let what = "cannot use kernel points: they are for densities and kernel machines";
                Err(document.fault(place.clone(), what, "use noise = \"laplace\" or \"cube\""))
            }
            Coordinates::Cells(_) => Err(self.no_cells(document, place)),
        }
    }

    /// The fault of a function that is no sum of kernels over the records.
    pub fn no_cells(&self, document: &mut Document<'_>, place: &Range<usize>) -> Reported {
        let what = "cannot be read off counts of cells: they are for densities";
        document.fault(place.clone(), what, "use noise = \"auto\"")
    }

    /// The columns of the axes, in words.
    pub fn per(&self) -> String {
        self.columns.join(" and ")
    }
}

/// The column and the bounds of a label that is a number.
pub fn number<'g>(
    document: &mut Document<'_>,
    context: &'g TargetContext<'_>,
    place: &Range<usize>,
) -> Checked<(&'g str, &'g Axis)> {
    match context.label.map(|label| (label.span(), label.get_ref())) {
        Some((
            _,
            Labelled {
                column,
                label: Label::Number(axis),
            },
        )) => Ok((column, axis)),
        Some((label, _)) => Err(document.fault(
            label,
            "must be a number, with `min` and `max`",
            "regression needs a numeric label",
        )),
        None => Err(no_label(document, place)),
    }
}

/// The column and the threshold of a label that is a class.
pub fn class<'g>(
    document: &mut Document<'_>,
    context: &'g TargetContext<'_>,
    place: &Range<usize>,
) -> Checked<(&'g str, f64)> {
    match context.label.map(|label| (label.span(), label.get_ref())) {
        Some((
            _,
            Labelled {
                column,
                label: Label::Above(above),
            },
        )) => Ok((column, *above)),
        Some((label, _)) => Err(document.fault(
            label,
            "must be a class, with `above`",
            "a classifier needs two classes",
        )),
        None => Err(no_label(document, place)),
    }
}

const LABELS: &str = "add a class, label = { column = \"late\", above = 15 }, or a number, label = { column = \"late\", \
                      min = -60, max = 150, outside = \"clamp\" }";

fn no_label(document: &mut Document<'_>, place: &Range<usize>) -> Reported {
    document.fault(place.clone(), "needs release.label", LABELS)
}

/// The target, or the fault at `place` that it cannot be built.
pub fn built<T: Target + 'static>(
    document: &mut Document<'_>,
    place: &Range<usize>,
    target: Result<T, targets::Error>,
) -> Checked<Arc<dyn Target>> {
    match target {
        Ok(target) => Ok(Arc::new(target)),
        Err(error) => Err(document.fault(place.clone(), error.to_string(), "")),
    }
}
