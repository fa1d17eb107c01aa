//! Whether readers of a density will see anything, told before any record is read, and what would let them see its shape.

use std::time::Duration;

use serde::Serialize;

use crate::cli::explain::errors::named;
use crate::cli::figures::three_digits;
use crate::clock;
use crate::config::{Release, Settings};
use crate::mechanism::calibrate::{Epsilon, Rho};
use crate::mechanism::price::Price;
use crate::synopsis::description::{Density, Smoothing, Target};

/// How many times the noise the mean height is where half of it more or less is beyond the noise, everywhere at once and with 95 %
/// probability.
const OF_THE_SHAPE: f64 = 2.0;

/// The same for a tenth more or less.
const OF_DETAILS: f64 = 10.0;

/// A kernel that is wider than this part of the domain leaves no shape to see.
const WIDEST_KERNEL: f64 = 0.25;

/// What readers of a density can tell from noise. Computed from public quantities alone.
#[derive(Clone, Debug, Serialize)]
pub struct Visibility {
    pub visible: Visible,
    /// How many times the noise the mean height of a curve of the expected records is.
    pub height_to_noise: f64,
    /// What would show the shape, each by itself; about, for the noise is taken to be in proportion. Only where nothing is visible.
    pub shape_needs: Option<ShapeNeeds>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Visible {
    /// Places with half as many records as in the mean, or half as many again, look like any other.
    Nothing,
    /// Those can be told apart.
    Shape,
    /// Places with a tenth more or fewer records than in the mean can be told apart.
    Details,
}

#[derive(Clone, Debug, Serialize)]
pub struct ShapeNeeds {
    /// Records of a window and key.
    pub records: u64,
    /// The price of a window.
    pub price: Price,
    /// The length of a window, at the same price.
    pub window: String,
    /// Absent where there is only one matrix of bandwidths, or the kernel would be as wide as the domain.
    pub bandwidths: Option<Vec<f64>>,
}

impl Visibility {
    /// Of a density whose mean height is `height_to_noise` times its noise, where `records` are expected in a window and key.
    pub(super) fn new(settings: &Settings, release: &Release, records: u64, height_to_noise: f64) -> Self {
        let visible = match height_to_noise {
            OF_DETAILS.. => Visible::Details,
            OF_THE_SHAPE.. => Visible::Shape,
            _ => Visible::Nothing,
        };
        let shape_needs = (visible == Visible::Nothing && height_to_noise > 0.0)
            .then(|| ShapeNeeds::new(settings, release, records, OF_THE_SHAPE / height_to_noise));
        Visibility { visible, height_to_noise, shape_needs }
    }

    /// The verdict in words: nothing, the shape, or details.
    pub(super) fn in_words(&self, height: f64, records: u64) -> Vec<String> {
        let verdict = match self.visible {
            Visible::Nothing => {
                "Nothing will be seen: places with half as many records as in the mean, or half as many again, look like any other"
            }
            Visible::Shape => {
                "The shape will be seen: places with half as many records as in the mean, or half as many again"
            }
            Visible::Details => "Details will be seen: places with a tenth more or fewer records than in the mean",
        };
        let [height, times] = [height, self.height_to_noise].map(three_digits);
        let compared = format!(
            "the mean height of a curve of the expected {records} records is {height}, {times} times the noise"
        );
        let mut lines = vec![format!("{verdict} ({compared}).")];
        lines.extend(self.shape_needs.as_ref().map(ShapeNeeds::in_words));
        lines
    }
}

impl ShapeNeeds {
    /// What makes the height `factor` times as large beside the noise.
    fn new(settings: &Settings, release: &Release, records: u64, factor: f64) -> Self {
        let length = settings.windows.grid.length().as_secs_f64() * factor;
        let whole = if length > 600.0 { 60.0 } else { 1.0 };
        ShapeNeeds {
            records: times(records, factor),
            price: price_times(release.payment.own(), factor),
            window: clock::show(Duration::from_secs_f64((length / whole).ceil() * whole)),
            bandwidths: wider(release, factor),
        }
    }

    fn in_words(&self) -> String {
        let bandwidths = match &self.bandwidths {
            Some(bandwidths) => {
                let bandwidths = bandwidths.iter().map(|width| three_digits(*width)).collect::<Vec<_>>().join(", ");
                format!(", or bandwidths = [{bandwidths}]")
            }
            None => String::new(),
        };
        format!(
            "To see the shape: about {} records in a window, or {} a window, or windows of {} at the same price{bandwidths}.",
            self.records,
            named(self.price),
            self.window
        )
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "an estimate to show; a cast saturates"
)]
fn times(count: u64, factor: f64) -> u64 {
    (count as f64 * factor).ceil() as u64
}

/// A price at which the noise is about `factor` times smaller.
fn price_times(price: Price, factor: f64) -> Price {
    match price {
        Price::Pure(epsilon) => Price::Pure(Epsilon::from_trillionths(times(epsilon.trillionths(), factor))),
        Price::Approximate { epsilon, delta } => {
            Price::Approximate { epsilon: Epsilon::from_trillionths(times(epsilon.trillionths(), factor)), delta }
        }
        Price::Concentrated(rho) => {
            Price::Concentrated(Rho::from_trillionths(times(rho.trillionths(), factor * factor)))
        }
        Price::Slots(count) => Price::Slots(times(count, factor)),
    }
}

/// Bandwidths of a kernel that is `factor` times lower.
fn wider(release: &Release, factor: f64) -> Option<Vec<f64>> {
    let Target::Density(Density { kernel: Smoothing::Bandwidths(bandwidths), .. }) = &release.function.about else {
        return None;
    };
    let each = factor.powf(1.0 / bandwidths.len() as f64);
    let wider: Vec<f64> = bandwidths.iter().map(|bandwidth| bandwidth * each).collect();
    let mut axes = wider.iter().zip(&release.axes);
    axes.all(|(bandwidth, axis)| *bandwidth <= WIDEST_KERNEL * (axis.max - axis.min)).then_some(wider)
}
