//! What a release costs and how far off it is, in its own units: the first that is told, and what `--json` prints.

use serde::Serialize;

use crate::cli::explain::plan::{LaterPrice, PublicQuantities, price_in_words};
use crate::cli::explain::visibility::{
    CurveScale, CurveVisibility, ExpectedCurve, reason_without_verdict,
};
use crate::cli::failure::Failure;
use crate::cli::figures::{float, three_digits};
use crate::cli::units;
use bernstream_config::{ReleaseSettings, WorkerSettings};
use bernstream_synopsis::Basis;
use bernstream_synopsis::calibrate::{Epsilon, Rho};
use bernstream_synopsis::description::{CellLabel, Cells, TargetDescription};
use bernstream_synopsis::price::Price;
use bernstream_synopsis::rough::WorstCaseKind;

/// Accuracy of a release at its price and at others. Computed from public quantities alone.
#[derive(Debug, Serialize)]
pub struct Accuracy {
    /// The unit of every error here, such as "flights per minute".
    pub quantity: String,
    /// The price of the noise of a window.
    pub price: Price,
    /// Bounds of the error of noise alone, at this price and at others.
    pub at_prices: Vec<AtPrice>,
    /// Bound of noise and form together, everywhere, in 9 of 10 windows even of the roughest functions; only where the file
    /// leaves a size to "auto".
    pub noise_and_form: Option<f64>,
    /// The curve that is read off tables of cells: what noise and form together stay within, everywhere, in most windows of the expected
    /// records; only where the file leaves a size to "auto".
    pub curve: Option<QuantityError>,
    /// The mean height of a curve of the expected number of records, to compare the errors with.
    pub mean_height: Option<f64>,
    /// The detail that readers will see; absent where the file does not say how many records it expects and that matters, or leaves its noise
    /// to a private choice, and of what has neither a height nor a range.
    pub visibility: Option<CurveVisibility>,
    #[serde(skip)]
    expectation: Option<ExpectedCurve>,
    #[serde(skip)]
    objects: Objects,
}

/// The noise at one price: with 95 % probability it is within this, everywhere at once.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct AtPrice {
    pub price: Price,
    pub in_the_middle: f64,
    /// Bound in a corner of the domain.
    pub at_the_ends: f64,
}

/// An error in a unit of its own.
#[derive(Clone, Debug, Serialize)]
pub struct QuantityError {
    pub within: f64,
    pub quantity: String,
}

/// Objects of which 95 % are within an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Objects {
    Curves,
    Maps,
    Functions,
    Moments,
    /// Tables of cells: the number of all records.
    Counts,
    /// Tables by key: each number.
    Keys,
}

impl Accuracy {
    /// Everything that is known of the error of a release.
    ///
    /// # Errors
    ///
    /// If the noise of its own price cannot be drawn.
    pub(super) fn of_plan(plan: &PublicQuantities<'_>) -> Result<Self, Failure> {
        let release = plan.release;
        let own = release.payment.mechanism_price();
        let shape = release.shape();
        let objects = match &shape.basis {
            Basis::Tables(_) => Objects::Counts,
            Basis::Cosine { .. } => Objects::Moments,
            Basis::Keys(_) => Objects::Keys,
            _ => match shape.dimensions {
                1 => Objects::Curves,
                2 => Objects::Maps,
                _ => Objects::Functions,
            },
        };
        let at_own = AtPrice::new(plan, own)?;
        // Half of the lowest possible price is impossible.
        let at_prices = prices_around(own)
            .into_iter()
            .filter_map(|price| AtPrice::new(plan, price).ok())
            .collect();
        let auto = release.auto.as_ref().filter(|_| !release.is_sum_of_panes());
        let curve = auto
            .filter(|_| objects == Objects::Counts)
            .map(|auto| QuantityError {
                within: auto.taken.expected.within,
                quantity: units::quantity_of_release(release),
            });
        let scale = curve_scale(plan.settings, release).filter(|_| {
            !release.is_sum_of_panes() && (objects != Objects::Counts || curve.is_some())
        });
        let expectation = scale.map(|scale| {
            let noise = at_own.in_the_middle.max(at_own.at_the_ends);
            let error = curve.as_ref().map_or(noise, |curve| curve.within);
            ExpectedCurve {
                scale,
                error,
                is_of_noise_alone: curve.is_none(),
            }
        });
        // Which noise a private choice leads to is not known before.
        let is_chosen = release.private_order.is_none() && release.private_bandwidths.is_none();
        let judged = expectation.filter(|_| is_chosen);
        let visibility =
            judged.map(|expected| CurveVisibility::new(plan.settings, release, expected));
        Ok(Accuracy {
            quantity: match objects {
                Objects::Counts => units::records_in_plural(release.names.as_ref()),
                Objects::Keys => plan.first_key_reading().to_owned(),
                _ => units::quantity_of_release(release),
            },
            price: own,
            at_prices,
            noise_and_form: auto
                .filter(|_| objects != Objects::Counts)
                .map(|auto| auto.taken.expected.within),
            curve,
            mean_height: expectation.and_then(|expected| match expected.scale {
                CurveScale::MeanHeight { height, .. } => Some(height),
                CurveScale::Range(_) => None,
            }),
            visibility,
            expectation,
            objects,
        })
    }

    /// The most important, in two or three sentences.
    pub(super) fn in_short(&self, plan: &PublicQuantities<'_>) -> Vec<String> {
        let Some(own) = self.at_prices.iter().find(|at| at.price == self.price) else {
            return Vec::new();
        };
        let price = price_in_words(own.price);
        let quantity = &self.quantity;
        let of_sums = if plan.series.is_some() {
            " of the first sum,"
        } else {
            ""
        };
        let many = match self.objects {
            Objects::Curves => "95 % of curves are within",
            Objects::Maps => "95 % of maps are within",
            Objects::Functions => "95 % of functions are within",
            Objects::Moments => "95 % of windows have every moment within",
            Objects::Counts => "95 % of counts of all records are within",
            Objects::Keys => "of each key 95 % of windows are within",
        };
        let [middle, ends] = [own.in_the_middle, own.at_the_ends].map(three_digits);
        let ends = if middle == ends {
            String::new()
        } else {
            format!(" in the middle, and ± {ends} at the ends")
        };
        let mut lines = vec![format!(
            "At {price},{of_sums} {many} ± {middle} {quantity}{ends}, counting the noise alone."
        )];
        lines.extend(plan.key_errors_in_words());
        if let Some(within) = self.noise_and_form {
            let even = match plan
                .release
                .auto
                .as_ref()
                .and_then(|auto| auto.rough.as_ref())
                .map(|rough| rough.is)
            {
                Some(WorstCaseKind::Bounded(_)) => ", by a bound",
                _ => ", even of the roughest",
            };
            lines.push(format!(
                "Counting what the published form cannot follow as well: within ± {} in at least 9 of 10 windows{even}.",
                three_digits(within)
            ));
        }
        if let Some(QuantityError { within, quantity }) = &self.curve {
            let how_often = match &plan.release.function.about {
                TargetDescription::Cells(Cells { label: Some(_) }) => {
                    "most windows, where the expected records are spread evenly; where there are fewer it grows in proportion"
                }
                _ => "at least 9 of 10 windows, even of the roughest",
            };
            lines.push(format!(
                "The curve that is read off the counts, counting noise and form: within ± {} {quantity} in {how_often}.",
                three_digits(*within)
            ));
        }
        if self.visibility.is_none() {
            lines.push(reason_without_verdict(plan.release).to_owned());
        }
        lines.extend(self.visibility_in_words());
        lines
    }

    /// Tells whether readers will see anything; empty where nothing is known of it.
    pub(super) fn visibility_in_words(&self) -> Vec<String> {
        match (&self.visibility, self.expectation) {
            (Some(visibility), Some(expected)) => visibility.in_words(expected),
            _ => Vec::new(),
        }
    }

    /// A line for every price; the one of the file is marked.
    pub(super) fn table(&self) -> Vec<String> {
        let are_alike = self
            .at_prices
            .iter()
            .all(|at| at.in_the_middle == at.at_the_ends);
        let mut head = format!("{:<36}", "price of a window");
        head += &match are_alike {
            true => format!("error ({})", self.quantity),
            false => format!("{:<17}at the ends ({})", "in the middle", self.quantity),
        };
        let mut lines = vec![format!("  {head}")];
        for at in &self.at_prices {
            let mark = if at.price == self.price { "*" } else { " " };
            let [middle, ends] = [at.in_the_middle, at.at_the_ends]
                .map(|error| format!("± {}", three_digits(error)));
            let errors = if are_alike {
                middle
            } else {
                format!("{middle:<17}{ends}")
            };
            lines.push(format!("{mark} {:<36}{errors}", price_in_words(at.price)));
        }
        lines
    }

    /// The noise of later windows, whose prices fall.
    pub(super) fn later_windows(
        &self,
        plan: &PublicQuantities<'_>,
        half_after: u64,
    ) -> Vec<String> {
        let mut lines = vec![format!(
            "the noise of windows counted from 0, in the middle ({}):",
            self.quantity
        )];
        for LaterPrice { window, price } in plan.later_prices(half_after) {
            if let Ok(band) = plan.half_widths_at(price) {
                lines.push(format!(
                    "window {window} of a block: {} pays for ± {}",
                    price_in_words(price),
                    three_digits(band.middle)
                ));
            }
        }
        lines
    }
}

impl AtPrice {
    fn new(plan: &PublicQuantities<'_>, price: Price) -> Result<Self, Failure> {
        let band = plan.half_widths_at(price)?;
        Ok(AtPrice {
            price,
            in_the_middle: band.middle,
            at_the_ends: band.corner,
        })
    }
}

/// The scale of the differences of a release's curve, to judge its error by; `None` where it is not known before.
pub(super) fn curve_scale(
    settings: &WorkerSettings,
    release: &ReleaseSettings,
) -> Option<CurveScale> {
    match &release.function.about {
        TargetDescription::Density(_) | TargetDescription::Cells(Cells { label: None }) => {
            let records = settings
                .privacy
                .records_per_window
                .or(release.expected_records)?;
            let volume: f64 = release
                .axes
                .iter()
                .map(|axis| axis.max - axis.min)
                .product();
            Some(CurveScale::MeanHeight {
                records,
                height: float(records) / volume,
            })
        }
        TargetDescription::Cells(Cells {
            label: Some(CellLabel::Number { min, max, .. }),
        }) => Some(CurveScale::Range(max - min)),
        TargetDescription::Cells(Cells {
            label: Some(CellLabel::Above { .. }),
        }) => Some(CurveScale::Range(1.0)),
        // Fitted functions are drawn towards nothing, and how much of the range is left depends on records.
        _ => None,
    }
}

/// A quarter, half, the same, twice and four times the price; delta stays the same.
fn prices_around(price: Price) -> Vec<Price> {
    let count = match price {
        Price::Pure(epsilon) | Price::Approximate { epsilon, .. } => epsilon.trillionths(),
        Price::Concentrated(rho) => rho.trillionths(),
        Price::Slots(count) => count,
    };
    let counts = [
        (count / 4).max(1),
        (count / 2).max(1),
        count,
        count.saturating_mul(2),
        count.saturating_mul(4),
    ];
    let mut prices = counts
        .map(|count| match price {
            Price::Pure(_) => Price::Pure(Epsilon::from_trillionths(count)),
            Price::Approximate { delta, .. } => Price::Approximate {
                epsilon: Epsilon::from_trillionths(count),
                delta,
            },
            Price::Concentrated(_) => Price::Concentrated(Rho::from_trillionths(count)),
            Price::Slots(_) => Price::Slots(count),
        })
        .to_vec();
    prices.dedup();
    prices
}
