//! Whether readers of a curve will see anything, told before any record is read, and what would let them see its shape.

use std::time::Duration;

use serde::Serialize;

use crate::cli::explain::plan::price_in_words;
use crate::cli::figures::{three_digits, two_digits};
use bernstream_config::{ReleaseSettings, WorkerSettings};
use bernstream_synopsis::calibrate::{Epsilon, Rho};
use bernstream_synopsis::clock;
use bernstream_synopsis::description::{Cells, Density, Smoothing, TargetDescription};
use bernstream_synopsis::price::Price;

/// Least ratio of a mean height to its error at which its band stays clear of those of half and of one and a half of it; and of half of a
/// range, at which the bands of its middle and of a value a quarter of it away are apart.
const OF_THE_SHAPE: f64 = 4.0;

/// Least ratio of a mean height to its error at which its band is told from that of a tenth more or less; and of half of a range, at which
/// values are told apart that differ by a twentieth of it.
const OF_DETAILS: f64 = 20.0;

/// For more records, or at a higher price, "auto" chooses a size with less error of form and more noise.
const RESERVE: f64 = 1.25;

/// A kernel that is wider than this part of the domain leaves no shape to see.
const WIDEST_KERNEL: f64 = 0.25;

/// The finest differences of a curve that bands tell apart. Computed from public quantities alone.
#[derive(Clone, Debug, Serialize)]
pub struct CurveVisibility {
    pub visible: VisibleDetail,
    /// Ratio to the error of the mean height of a curve of the expected records, or of half of the range of its values.
    pub height_to_error: f64,
    /// Changes that would show the shape, each by itself; estimates, which take the noise to be in proportion. Only of a density of which
    /// nothing is visible, where the error is that of noise alone.
    pub shape_needs: Option<ShapeNeeds>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum VisibleDetail {
    /// The bands of a place with half as many records as in the mean, or half as many again, and of one with the mean overlap; or those of
    /// two values that are a quarter of the range apart.
    Nothing,
    /// Those bands do not overlap.
    Shape,
    /// The bands of a place with a tenth more or fewer records do not overlap either, nor those of values that are a twentieth of the range apart.
    Details,
}

#[derive(Clone, Debug, Serialize)]
pub struct ShapeNeeds {
    /// Records of a window and key.
    pub records: u64,
    /// The price of a window; absent where the total does not allow it, or is not of its kind.
    pub price: Option<Price>,
    /// The length of a window, at the same price, if it has as many more records; absent where that is longer than any.
    pub window: Option<String>,
    /// Absent where the size is fixed or the kernel is not given by bandwidths, and where one would be wider than a quarter of the domain.
    pub bandwidths: Option<Vec<f64>>,
}

/// The expected scale of a curve, and its error.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExpectedCurve {
    pub scale: CurveScale,
    /// The bound within which noise, or noise and form, stay everywhere.
    pub error: f64,
    pub is_of_noise_alone: bool,
}

/// Size of the differences of a curve.
#[derive(Clone, Copy, Debug)]
pub(super) enum CurveScale {
    /// The mean height of a density of so many records of a window and key.
    MeanHeight { records: u64, height: f64 },
    /// The length from the least possible value to the greatest.
    Range(f64),
}

impl ExpectedCurve {
    /// Ratio of the height, or of half of the range, to the error.
    fn height_to_error(self) -> f64 {
        match self.scale {
            CurveScale::MeanHeight { height, .. } => height / self.error,
            CurveScale::Range(range) => range / 2.0 / self.error,
        }
    }
}

impl CurveVisibility {
    pub(super) fn new(
        settings: &WorkerSettings,
        release: &ReleaseSettings,
        expected: ExpectedCurve,
    ) -> Self {
        let height_to_error = expected.height_to_error();
        let visible = match height_to_error {
            OF_DETAILS.. => VisibleDetail::Details,
            OF_THE_SHAPE.. => VisibleDetail::Shape,
            _ => VisibleDetail::Nothing,
        };
        let factor = RESERVE * OF_THE_SHAPE / height_to_error;
        let shape_needs = match expected.scale {
            CurveScale::MeanHeight { records, .. }
                if visible == VisibleDetail::Nothing
                    && expected.is_of_noise_alone
                    && factor.is_finite() =>
            {
                Some(ShapeNeeds::new(settings, release, records, factor))
            }
            _ => None,
        };
        CurveVisibility {
            visible,
            height_to_error,
            shape_needs,
        }
    }

    /// The verdict in words: nothing, the shape, or details.
    pub(super) fn in_words(&self, expected: ExpectedCurve) -> Vec<String> {
        let error = if expected.is_of_noise_alone {
            "the noise"
        } else {
            "what noise and form stay within"
        };
        let times = three_digits(self.height_to_error);
        let verdict = match expected.scale {
            CurveScale::MeanHeight { records, height } => format!(
                "{} (the mean height of a curve of the expected {records} records is {}, {times} times {error}).",
                records_in_words(self.visible),
                three_digits(height)
            ),
            CurveScale::Range(range) => format!(
                "{} (half of the range of values is {}, {times} times {error}, where the expected records are spread evenly).",
                values_in_words(self.visible),
                three_digits(range / 2.0)
            ),
        };
        let needs = self.shape_needs.as_ref().map(ShapeNeeds::in_words);
        std::iter::once(verdict).chain(needs).collect()
    }
}

/// Tells why nothing is known of what readers of a release will see, and what to look at instead.
pub(super) fn reason_without_verdict(release: &ReleaseSettings) -> &'static str {
    if release.private_order.is_some() || release.private_bandwidths.is_some() {
        return "Whether anything will be seen is not told: which noise a private choice leads to is not known before. Compare the error of \
                each candidate, written into the file by itself, with what you expect.";
    }
    if release.is_sum_of_panes() {
        return "Whether anything will be seen is not told: records and noise of a sum grow until it covers all its windows. Compare the error \
                above, and by how much it grows (Sums, below), with what you expect of a whole sum.";
    }
    match &release.function.about {
        TargetDescription::Cells(_) if release.auto.is_none() => {
            "How far the curve that is read off the counts is off depends on how many records lie under its kernel: where the file \
             leaves `spline` or `step` to \"auto\" and says `expected_records`, it is predicted here."
        }
        TargetDescription::Density(_) | TargetDescription::Cells(Cells { label: None }) => {
            "Whether the shape will be seen depends on how many records a window and key has: where the file says `expected_records`, it is \
             told here."
        }
        TargetDescription::Cells(Cells { label: Some(_) }) => {
            "Whether anything will be seen is not told: how far apart the values are depends on how frequent each class is. Compare the error \
             above with the differences that matter to you."
        }
        TargetDescription::Moments(_) => {
            "Whether anything will be seen is not told: how large a moment is depends on where the records are. Compare the error above with \
             the number of records that you expect, which is the first moment: others are at most as large, and mostly far smaller."
        }
        TargetDescription::Counts(counts) if counts.quantiles.is_some() => {
            "How far a quantile is off in the unit of the value depends on how many values lie near it: the more, the less. A key needs several \
             times as many values as the error above; every interval tells what the noise may have done."
        }
        TargetDescription::Counts(_) => {
            "Compare the errors with the numbers that you expect of a key: what is below them drowns in noise."
        }
        TargetDescription::Sum(_) => {
            "Whether anything will be seen is not told: how large the sum is depends on the records. Compare the error above with the sum that \
             you expect."
        }
        TargetDescription::Regression(_)
        | TargetDescription::Classifier(_)
        | TargetDescription::Probability(_) => {
            "Whether anything will be seen is not told: what is fitted is drawn towards the middle of its range, and how much of its range is left depends on \
             the records. Compare the error above with the differences that matter to you."
        }
    }
}

fn records_in_words(visible: VisibleDetail) -> &'static str {
    match visible {
        VisibleDetail::Nothing => {
            "Nothing will be seen: bands are too wide to tell a place with half as many records as in the mean, or half as many again, \
             from one with the mean"
        }
        VisibleDetail::Shape => {
            "The shape will be seen: bands tell a place with half as many records as in the mean, or half as many again, from one with \
             the mean"
        }
        VisibleDetail::Details => {
            "Details will be seen: bands tell a place with a tenth more or fewer records than in the mean from one with the mean"
        }
    }
}

fn values_in_words(visible: VisibleDetail) -> &'static str {
    match visible {
        VisibleDetail::Nothing => {
            "Nothing will be seen: bands are too wide to tell values apart that differ by a quarter of the range"
        }
        VisibleDetail::Shape => {
            "The shape will be seen: bands tell values apart that differ by a quarter of the range"
        }
        VisibleDetail::Details => {
            "Details will be seen: bands tell values apart that differ by a twentieth of the range"
        }
    }
}

impl ShapeNeeds {
    /// Changes that make the height `factor` times as large beside the noise.
    fn new(
        settings: &WorkerSettings,
        release: &ReleaseSettings,
        records: u64,
        factor: f64,
    ) -> Self {
        let windows = u32::try_from(rounded_times(1, factor)).ok();
        let length =
            windows.and_then(|windows| settings.windows.grid.length().checked_mul(windows));
        ShapeNeeds {
            records: rounded_times(records, factor),
            price: Some(price_times(release.payment.mechanism_price(), factor))
                .filter(|price| price.is_within(settings.privacy.total)),
            window: length
                .filter(|length| *length < Duration::MAX)
                .map(clock::format_duration),
            bandwidths: wider_bandwidths(release, factor),
        }
    }

    fn in_words(&self) -> String {
        let price = self
            .price
            .map(|price| format!(", or {} a window", price_in_words(price)))
            .unwrap_or_default();
        let window = match &self.window {
            Some(length) => format!(
                ", or windows of {length} at the same price, if they have as many more records"
            ),
            None => String::new(),
        };
        let bandwidths = match &self.bandwidths {
            Some(bandwidths) => format!(", or bandwidths = {bandwidths:?}"),
            None => String::new(),
        };
        format!(
            "To see the shape: about {} records in a window{price}{window}{bandwidths}.",
            self.records
        )
    }
}

/// `count` times `factor`, rounded up to two digits.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "an estimate to show; a cast saturates"
)]
fn rounded_times(count: u64, factor: f64) -> u64 {
    rounded_up((count as f64 * factor).ceil()).round() as u64
}

/// To two digits.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the logarithm of a float is small"
)]
fn rounded_up(value: f64) -> f64 {
    let second_digit = 10_f64.powi(value.log10().floor() as i32 - 1);
    two_digits((value / second_digit).ceil() * second_digit)
}

/// A price at which the noise is about `factor` times smaller.
fn price_times(price: Price, factor: f64) -> Price {
    match price {
        Price::Pure(epsilon) => Price::Pure(Epsilon::from_trillionths(rounded_times(
            epsilon.trillionths(),
            factor,
        ))),
        Price::Approximate { epsilon, delta } => Price::Approximate {
            epsilon: Epsilon::from_trillionths(rounded_times(epsilon.trillionths(), factor)),
            delta,
        },
        Price::Concentrated(rho) => Price::Concentrated(Rho::from_trillionths(rounded_times(
            rho.trillionths(),
            factor * factor,
        ))),
        Price::Slots(count) => Price::Slots(rounded_times(count, factor)),
    }
}

/// Bandwidths of a kernel that is `factor` times lower.
fn wider_bandwidths(release: &ReleaseSettings, factor: f64) -> Option<Vec<f64>> {
    let TargetDescription::Density(Density {
        kernel: Smoothing::Bandwidths(bandwidths),
        ..
    }) = &release.function.about
    else {
        return None;
    };
    // Where the size is fixed, wider kernels are not always less noisy.
    release.auto.as_ref()?;
    let each = factor.powf(1.0 / bandwidths.len() as f64);
    let wider: Vec<f64> = bandwidths
        .iter()
        .map(|bandwidth| rounded_up(bandwidth * each))
        .collect();
    let mut axes = wider.iter().zip(&release.axes);
    axes.all(|(bandwidth, axis)| *bandwidth <= WIDEST_KERNEL * (axis.max - axis.min))
        .then_some(wider)
}
