//! The input of every target: the axes, the label, and the coordinates of the values.

use std::ops::Range;
use std::sync::Arc;

use crate::settings::{Coordinates, FoundKeySettings, PrivateBandwidths, ReleasedFunction};
use crate::text::{Checked, Document, Reported, Spanned};
use bernstream_release as targets;
use bernstream_release::Target;
use bernstream_release::window::{DomainAxis, RecordLabel};
use bernstream_synopsis::NoiseDistribution;

/// The input of every target.
pub struct TargetContext<'a> {
    pub axes: &'a [DomainAxis],
    pub columns: &'a [String],
    pub label: Option<&'a Spanned<Labelled>>,
    pub on: Coordinates,
    /// For moments with a smoothness in place of a number of frequencies.
    pub planned: Option<FrequencyPlan>,
    /// `None` where a section that it follows from has a fault.
    pub declared: Option<&'a DeclaredUnits<'a>>,
    /// The law of the noise, or the first of those that are tried.
    pub law: NoiseDistribution,
}

/// Keys that the file declares, and whether units are users.
pub struct DeclaredUnits<'a> {
    pub pipeline: &'a str,
    /// The columns of the key; none where all records count together.
    pub columns: &'a [String],
    /// The declared keys, or one empty name for all records.
    pub keys: &'a [String],
    pub has_users: bool,
    /// The search for keys that nobody listed.
    pub search: Option<DeclaredSearch>,
}

/// Rules of a search for keys, and where the file has them.
pub struct DeclaredSearch {
    pub settings: FoundKeySettings,
    pub place: Range<usize>,
}

/// The records and the price that a number of frequencies is chosen for.
#[derive(Clone, Copy)]
pub struct FrequencyPlan {
    pub records: u64,
    pub epsilon: f64,
}

/// A label and its column.
pub struct Labelled {
    pub column: String,
    pub label: RecordLabel,
}

/// The function of a release, with its candidates where each window chooses privately.
pub struct ReadTarget {
    pub function: ReleasedFunction,
    pub private_bandwidths: Option<Spanned<PrivateBandwidths>>,
}

impl From<ReleasedFunction> for ReadTarget {
    fn from(function: ReleasedFunction) -> Self {
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
    pub fn parts_of_axes(&self, lengths: &[f64]) -> Vec<f64> {
        lengths
            .iter()
            .zip(self.widths())
            .map(|(length, width)| length / width)
            .collect()
    }

    /// A covariance matrix, with the domain as the unit.
    pub fn covariance_parts(&self, rows: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let widths: Vec<f64> = self.widths().collect();
        let mut scaled = Vec::new();
        for (row, height) in rows.iter().zip(&widths) {
            let entries = row.iter().zip(&widths);
            scaled.push(entries.map(|(x, width)| x / (height * width)).collect());
        }
        scaled
    }

    pub fn volume(&self) -> f64 {
        self.widths().product()
    }

    /// The degree of the lattice; a fault for a function that cannot have kernel points.
    pub fn lattice_degree(
        &self,
        document: &mut Document<'_>,
        place: &Range<usize>,
    ) -> Checked<u32> {
        match self.on {
            Coordinates::Lattice { degree } => Ok(degree),
            Coordinates::Points { .. } | Coordinates::Tensor(_) => {
                let what = "cannot use kernel points: they are for densities and kernel machines";
                Err(document.fault(place.clone(), what, "use noise = \"laplace\" or \"cube\""))
            }
            Coordinates::Cells(_) => Err(self.no_cells_fault(document, place)),
        }
    }

    /// The fault of a function that is no sum of kernels over the records.
    pub fn no_cells_fault(&self, document: &mut Document<'_>, place: &Range<usize>) -> Reported {
        let what = "cannot be read off counts of cells: they are for densities";
        document.fault(place.clone(), what, "use noise = \"auto\"")
    }

    /// The columns of the axes, in words.
    pub fn columns_in_words(&self) -> String {
        self.columns.join(" and ")
    }
}

/// A label that is a number.
pub struct NumberLabel<'g> {
    pub column: &'g str,
    pub bounds: &'g DomainAxis,
}

/// A label of two classes: those above a threshold, and the others.
pub struct ClassLabel<'g> {
    pub column: &'g str,
    pub above: f64,
}

/// The label, which must be a number.
pub fn number_label<'g>(
    document: &mut Document<'_>,
    context: &'g TargetContext<'_>,
    place: &Range<usize>,
) -> Checked<NumberLabel<'g>> {
    let Some(label) = context.label else {
        return Err(no_label(document, place));
    };
    let Labelled {
        column,
        label: kind,
    } = label.get_ref();
    match kind {
        RecordLabel::Number(bounds) => Ok(NumberLabel { column, bounds }),
        RecordLabel::Above(_) | RecordLabel::Classes(_) => Err(document.fault(
            label.span(),
            "must be a number, with `min` and `max`",
            "regression needs a numeric label",
        )),
    }
}

/// The label, which must be a class.
pub fn class_label<'g>(
    document: &mut Document<'_>,
    context: &'g TargetContext<'_>,
    place: &Range<usize>,
) -> Checked<ClassLabel<'g>> {
    let Some(label) = context.label else {
        return Err(no_label(document, place));
    };
    let Labelled {
        column,
        label: kind,
    } = label.get_ref();
    match kind {
        RecordLabel::Above(above) => Ok(ClassLabel {
            column,
            above: *above,
        }),
        RecordLabel::Number(_) | RecordLabel::Classes(_) => Err(document.fault(
            label.span(),
            "must be a class, with `above`",
            "a classifier needs two classes",
        )),
    }
}

const LABELS: &str = "add a class, label = { column = \"late\", above = 15 }, or a number, label = { column = \"late\", \
                      min = -60, max = 150, outside = \"clamp\" }";

fn no_label(document: &mut Document<'_>, place: &Range<usize>) -> Reported {
    document.fault(place.clone(), "needs release.label", LABELS)
}

/// The target, or the fault at `place` that it cannot be built.
pub fn built_target<T: Target + 'static>(
    document: &mut Document<'_>,
    place: &Range<usize>,
    target: Result<T, targets::TargetError>,
) -> Checked<Arc<dyn Target>> {
    match target {
        Ok(target) => Ok(Arc::new(target)),
        Err(error) => Err(document.fault(place.clone(), error.to_string(), "")),
    }
}
