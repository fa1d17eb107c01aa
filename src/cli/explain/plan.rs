//! What is known of a release before any record is read, from public quantities: sensitivity, noise, form.

use crate::cli::explain::ExplainSection;
use crate::cli::failure::Failure;
use crate::cli::figures::{float, join_numbers, ten_digits, three_digits};
use crate::cli::units;
use bernstream_config::{PrivacyUnit, ReleaseSettings, WindowKind, WorkerSettings};
use bernstream_noise::continual::CalibratedSeries;
use bernstream_release as targets;
use bernstream_synopsis::Norm;
use bernstream_synopsis::band::Band;
use bernstream_synopsis::description::{
    CountedQuantiles, Density, KeyedCounts, PrivacyDefinition, Smoothing, TargetDescription,
    ValueBounds,
};
use bernstream_synopsis::histogram::Spline;
use bernstream_synopsis::key_table::{KeyNoise, KeyReading};
use bernstream_synopsis::key_threshold::UNIT_GRAINS;
use bernstream_synopsis::price::Price;
use bernstream_synopsis::told_caps::UnitCounts;
use bernstream_synopsis::whitened::Points;
use bernstream_synopsis::{Adjacency, Basis, KeyBasis, KeyStatistic, Sensitivity, Shape};
use bernstream_synopsis::{bernstein, cell_error, predict};

/// The most synopses of a running sum that are examined one by one.
const MOST_STEPS: u64 = 100_000;

/// The public quantities that everything is computed from.
pub(super) struct PublicQuantities<'s> {
    pub(super) settings: &'s WorkerSettings,
    pub(super) release: &'s ReleaseSettings,
    sensitivity: Sensitivity,
    /// The most that one unit changes one value, in grid units.
    sup: f64,
    /// The most that one record adds to one value, in grid units.
    a_record: f64,
    pub(super) band: Band,
    /// The noise of a running sum. The noise at a price is then that of its first synopsis.
    pub(super) series: Option<CalibratedSeries>,
}

impl<'s> PublicQuantities<'s> {
    pub(super) fn new(
        settings: &'s WorkerSettings,
        release: &'s ReleaseSettings,
    ) -> Result<Self, Failure> {
        let target = &release.function.target;
        let adjacency = settings.privacy.adjacency;
        let contributions = settings.privacy.unit.most_contributions();
        let sensitivity = target
            .sensitivity_in(
                release.noise.noise_distribution().norm(),
                adjacency,
                contributions,
            )
            .map_err(unbounded)?;
        let sup = target
            .sup_sensitivity(adjacency, contributions)
            .map_err(unbounded)?;
        let a_record = target
            .sup_sensitivity(Adjacency::AddRemove, 1)
            .map_err(unbounded)?;
        let band = Band::simulate(
            &release.shape(),
            release.noise.noise_distribution(),
            release.order,
        );
        Ok(PublicQuantities {
            settings,
            release,
            sensitivity,
            sup: float(sup),
            a_record: float(a_record),
            band,
            series: settings.noise_series(release)?,
        })
    }

    /// The values that the noise is added to: their name, and how many there are.
    pub(super) fn released_form(&self) -> ExplainSection {
        let Shape {
            dimensions,
            degree,
            basis,
        } = self.release.shape();
        let count = self.release.shape().value_count();
        match basis {
            Basis::Bernstein => {
                let orders = join_numbers(self.release.candidate_orders().iter(), " or ");
                one_line(
                    "Lattice",
                    format!(
                        "degree {degree}, dimensions {dimensions}: {count} points; Bernstein operator of order {orders}"
                    ),
                )
            }
            Basis::Affine => one_line(
                "Coefficients",
                format!("an affine function of {dimensions} columns: {count} coefficients"),
            ),
            Basis::Cells(basis) => {
                let steps = join_numbers(basis.steps.iter(), " x ");
                let beyond = if count > basis.steps.iter().map(|m| *m as usize).product() {
                    ", and those that reach beyond the domain"
                } else {
                    ""
                };
                let shared = sharing_in_words(basis.spline);
                one_line(
                    "Cells",
                    format!("{count} counts, of {steps} cells of the domain{beyond}; {shared}"),
                )
            }
            Basis::Tables(basis) => {
                let steps = join_numbers(basis.steps.iter(), " x ");
                let tables = if basis.tables == 1 {
                    "one table".to_owned()
                } else {
                    format!("{} tables", basis.tables)
                };
                one_line(
                    "Cells",
                    format!(
                        "{count} counts: {tables} of {steps} cells of the domain, {} spline",
                        basis.spline
                    ),
                )
            }
            Basis::Kernel(_) => one_line(
                "Kernel points",
                format!("kernel functions at {count} points, dimensions {dimensions}"),
            ),
            Basis::Keys(basis) => one_line("Table", self.table_in_words(&basis, count)),
            Basis::Cosine { frequencies } => one_line(
                "Moments",
                format!(
                    "{count} cosine moments: {frequencies} frequencies, dimensions {dimensions}"
                ),
            ),
        }
    }

    /// The columns of a key of several, which are no news of one.
    fn key_columns_in_words(&self) -> String {
        match self.settings.columns.key.as_slice() {
            several @ [_, _, ..] => format!(", combinations of {}", several.join(" and ")),
            _ => String::new(),
        }
    }

    /// Which keys are found, where nobody lists them.
    fn found_keys_in_words(&self) -> Vec<String> {
        let Ok(Some(search)) = self.settings.key_search(self.release) else {
            return Vec::new();
        };
        let unit = float(UNIT_GRAINS);
        let threshold = float(search.selection().threshold()) / unit;
        // Noise is above so much, or below it, in a twentieth of the draws.
        let apart = float(search.selection().scale().units()) / unit * 10.0_f64.ln();
        let reading = self.first_key_reading();
        let mut lines = vec![format!(
            "Found: half of the keys with {} {reading} in a window that count, at least 95 % of those with {}, at most 5 % of those with {}. A \
             key that is not in a table was counted for fewer than about so many, or was not found yet.",
            three_digits(threshold),
            three_digits(threshold + apart),
            three_digits((threshold - apart).max(0.0))
        )];
        if self.settings.privacy.unit != PrivacyUnit::Record {
            lines.push("What max_keys drops of users with more keys is not known.".to_owned());
        }
        lines
    }

    /// The numbers of a table by key.
    fn table_in_words(&self, basis: &KeyBasis, count: usize) -> String {
        let names: Vec<_> = basis
            .columns
            .iter()
            .map(|column| column.statistic.name())
            .collect();
        let each = match self.quantiles() {
            Some(_) => format!("counts of {} ranges of the value", names.len()),
            None => names.join(", "),
        };
        let keys = match self.settings.found_keys {
            Some(_) => format!("at most {} keys that are found", basis.keys.len()),
            None => format!("{} keys", basis.keys.len()),
        };
        format!(
            "{count} numbers: {each} of each of {keys}{}",
            self.key_columns_in_words()
        )
    }

    /// What a unit can change in a table by key.
    fn key_change_in_words(&self, counts: &KeyedCounts) -> Vec<String> {
        if self.settings.privacy.unit == PrivacyUnit::Record {
            return vec!["a unit is one record, in one key: nothing is cut off".to_owned()];
        }
        let each = match !self.settings.columns.key.is_empty() {
            true => " of each",
            false => "",
        };
        let keys = match (!self.settings.columns.key.is_empty(), counts.max_keys) {
            (false, _) => "a window".to_owned(),
            (true, 1) => "at most one key of a window".to_owned(),
            (true, most) => format!("at most {most} keys of a window"),
        };
        let keys = keys + &self.key_columns_in_words();
        let records = match counts.max_records {
            None if counts.quantiles.is_some() => format!(", with the mean of its values{each}"),
            Some(1) => format!(", with at most one record{each}"),
            Some(most) => format!(", with at most {most} records{each}"),
            None => String::new(),
        };
        let sum = match counts.per_user {
            Some(ValueBounds { min, max }) => format!(", with a sum{each} from {min} to {max}"),
            None => String::new(),
        };
        vec![
            format!("a unit counts in {keys}{records}{sum}: this depends on that unit alone"),
            "what it has beyond is not counted: results are then too low, and no interval says so; `check --sample` says how much".to_owned(),
        ]
    }

    /// The quantiles that a table by key is of.
    fn quantiles(&self) -> Option<&CountedQuantiles> {
        let counts = self.release.function.keyed_counts()?;
        counts.quantiles.as_ref()
    }

    /// Name of the first reading of a table by key.
    pub(super) fn first_key_reading(&self) -> &'static str {
        match &self.release.shape().basis {
            Basis::Keys(basis) => match basis.columns.first().map(|column| column.statistic) {
                Some(KeyStatistic::Users) => "users",
                Some(KeyStatistic::Sum) => "sum",
                Some(
                    KeyStatistic::Low
                    | KeyStatistic::Middle
                    | KeyStatistic::High
                    | KeyStatistic::Records,
                ) => "records",
                Some(KeyStatistic::Range(_)) => "values",
                None => "",
            },
            _ => "",
        }
    }

    /// The errors of the other readings of a table by key, at the price of the file.
    pub(super) fn key_errors_in_words(&self) -> Vec<String> {
        let shape = self.release.shape();
        let Basis::Keys(basis) = &shape.basis else {
            return Vec::new();
        };
        let TargetDescription::Counts(counts) = &self.release.function.about else {
            return Vec::new();
        };
        let Ok(scale) = self.noise_scale(self.release.payment.mechanism_price()) else {
            return Vec::new();
        };
        let noise = KeyNoise {
            basis,
            value: counts.value.as_ref(),
            quantiles: counts.quantiles.as_ref(),
            law: self.release.noise.noise_distribution(),
            scale,
        };
        if counts.quantiles.is_some() {
            return quantile_errors_in_words(&noise);
        }
        let mut lines = self.found_keys_in_words();
        for reading in noise.readings().into_iter().skip(1) {
            let within = three_digits(noise.half_width(reading));
            lines.push(match reading {
                KeyReading::Mean | KeyReading::Variance | KeyReading::Deviation => format!(
                    "Its {} has an interval of its own in every window: the more records, the narrower. Of records that are spread evenly over the value: {}.",
                    reading.name(),
                    even_errors_in_words(&noise, reading),
                ),
                KeyReading::Sum => format!("Its sum is within ± {within}, in the unit of the value."),
                KeyReading::Quantile(_) | KeyReading::Values | KeyReading::Users | KeyReading::Records => {
                    format!("Its number of {} is within ± {within}.", reading.name())
                }
            });
        }
        if let Some(half_width) = noise.half_width_of_units() {
            lines.push(format!(
                "The number of users with so many keys is within ± {} each. The share that max_keys drops has an interval of its own in every window: the more users, the narrower.",
                three_digits(half_width)
            ));
        }
        lines
    }

    pub(super) fn sensitivity_in_words(&self) -> Vec<String> {
        if let TargetDescription::Counts(counts) = &self.release.function.about {
            return self.key_change_in_words(counts);
        }
        let units = float(self.sensitivity.0);
        let together = match self.release.noise.noise_distribution().norm() {
            Norm::One => "all values together",
            Norm::Two => "the 2-norm of all values together",
            Norm::Sup => "any single value",
        };
        let how_often = match &self.settings.privacy.definition {
            PrivacyDefinition::Random(random) => format!(
                ", except for gamma = {} of the pairs of neighbours under the prior: number {} by size of {} sampled changes",
                random.gamma, random.order, random.samples
            ),
            _ => String::new(),
        };
        if let Basis::Cells(_) | Basis::Tables(_) = self.release.shape().basis {
            let together = together.replace("all values", "the counts of all cells");
            let records = three_digits(units / self.a_record);
            let mut lines = vec![format!(
                "a unit changes {together} by at most {records} records{how_often}"
            )];
            if matches!(self.release.shape().basis, Basis::Cells(_)) {
                let peak = three_digits(self.in_natural_units(self.a_record));
                lines.push(format!(
                    "the kernel of one record in a cell is {peak} {} high",
                    units::quantity_of_release(self.release)
                ));
            }
            return lines;
        }
        let mut lines = vec![
            format!(
                "a unit changes {together} by at most {} grid units{how_often}",
                self.sensitivity.0
            ),
            format!(
                "that is {} times its largest change of a single value, {} {}",
                three_digits(units / self.sup),
                three_digits(self.in_natural_units(self.sup)),
                units::quantity_of_release(self.release)
            ),
        ];
        if self.release.noise.noise_distribution().norm() == Norm::One
            && self.release.shape().basis == Basis::Bernstein
        {
            let papers =
                three_digits(float(self.release.shape().value_count() as u64) * self.sup / units);
            lines.push(format!(
                "the bound of [AR17], lattice points x largest change, is {papers} times this sensitivity"
            ));
        }
        lines
    }

    /// The noise in the units of the release.
    pub(super) fn noise_in_words(&self) -> Result<Vec<String>, Failure> {
        let scale = self.noise_scale(self.release.payment.mechanism_price())?;
        if let Basis::Keys(basis) = &self.release.shape().basis {
            let law = self.release.noise.noise_distribution();
            if let (Some(_), Some(column)) = (self.quantiles(), basis.columns.first()) {
                let scale = three_digits(scale * column.unit);
                return Ok(vec![format!(
                    "{law} noise of scale {scale} on each count of every key"
                )]);
            }
            let mut lines = Vec::new();
            for column in &basis.columns {
                lines.push(format!(
                    "{law} noise of scale {} on {} of every key",
                    three_digits(scale * column.unit),
                    column.statistic.name()
                ));
            }
            if let Some(told) = &basis.units {
                lines.push(format!(
                    "{law} noise of scale {} on each number of units with so many keys",
                    three_digits(scale * told.unit)
                ));
                let counts = self.release.function.keyed_counts();
                lines.extend(counts.and_then(|counts| told_caps_in_words(told, counts)));
            }
            return Ok(lines);
        }
        if let Basis::Tables(_) = self.release.shape().basis {
            let records = self.in_natural_units(scale);
            return Ok(vec![
                format!(
                    "{} noise of scale {} records on every count",
                    self.release.noise.noise_distribution(),
                    three_digits(records)
                ),
                format!(
                    "every reading by a kernel: within {} times the length of its weights at one point, and {} at all points and \
                     bandwidths at once, with 95 % probability",
                    three_digits(self.band.pointwise * records),
                    three_digits(self.band.half_width * records)
                ),
            ]);
        }
        let quantity = units::quantity_of_release(self.release);
        let largest = self.in_natural_units(self.band.expected_sup * scale);
        Ok(vec![
            format!(
                "{} noise of scale {} {quantity}",
                self.release.noise.noise_distribution(),
                three_digits(self.in_natural_units(scale))
            ),
            format!(
                "expected largest error due to the noise: {} {quantity}",
                three_digits(largest)
            ),
        ])
    }

    /// The noise in grid units, and in the largest effects of a privacy unit on one value.
    pub(super) fn noise_in_units(&self) -> Result<Vec<String>, Failure> {
        if let Basis::Tables(_) | Basis::Keys(_) = self.release.shape().basis {
            return Ok(Vec::new());
        }
        let scale = self.noise_scale(self.release.payment.mechanism_price())?;
        let law = self.release.noise.noise_distribution();
        let deviation = scale * law.deviation(self.release.shape().value_count());
        let band = self.half_widths(scale);
        Ok(vec![
            format!(
                "scale {} grid units; below, one is the most that a privacy unit can change a value",
                three_digits(scale)
            ),
            format!(
                "standard deviation of the noise on one value: {}",
                three_digits(deviation / self.sup)
            ),
            format!(
                "expected largest error due to the noise: {}",
                three_digits(self.band.expected_sup * scale / self.sup)
            ),
            format!(
                "half width of the simultaneous 95 % band: {} in the middle and {} at a corner of the domain",
                three_digits(band.middle / self.sup),
                three_digits(band.corner / self.sup)
            ),
        ])
    }

    /// The prices of the first window of a block, and of some later ones, that pay for noise.
    pub(super) fn later_prices(&self, half_after: u64) -> Vec<LaterPrice> {
        let schedule = self.settings.price_schedule(self.release);
        let mut later = Vec::new();
        for times in [0, 1, 3, 9] {
            let window = half_after.saturating_mul(times);
            let price = schedule.price_of_window(window);
            let price = price.and_then(|price| price.checked_sub(schedule.choices));
            later.extend(price.map(|price| LaterPrice { window, price }));
        }
        later
    }

    /// The bounds that 95 % of the noise stays within at this price, in the units of the release: everywhere at once, or in the number of
    /// all records of tables of cells.
    ///
    /// # Errors
    ///
    /// If the price pays for no noise that can be drawn.
    pub(super) fn half_widths_at(&self, price: Price) -> Result<HalfWidths, Failure> {
        let scale = self.noise_scale(price)?;
        if let Basis::Tables(tables) = self.release.shape().basis {
            let root = f64::from(tables.tables).sqrt() * (tables.count() as f64).sqrt();
            let of_all = self.in_natural_units(root * self.band.pointwise * scale);
            return Ok(HalfWidths {
                middle: of_all,
                corner: of_all,
            });
        }
        if let Basis::Keys(basis) = &self.release.shape().basis
            && let Some(column) = basis.columns.first()
        {
            // Records of a value are two numbers together, with variances three, and values of quantiles all counts.
            let numbers = match (column.statistic, self.quantiles()) {
                (KeyStatistic::Range(_), Some(quantiles)) => quantiles.grid.length_of_all(),
                (KeyStatistic::Low, _) if basis.has_middle() => 3.0_f64.sqrt(),
                (KeyStatistic::Low, _) => 2.0_f64.sqrt(),
                _ => 1.0,
            };
            let of_a_key = numbers * self.band.pointwise * scale * column.unit;
            return Ok(HalfWidths {
                middle: of_a_key,
                corner: of_a_key,
            });
        }
        let band = self.half_widths(scale);
        Ok(HalfWidths {
            middle: self.in_natural_units(band.middle),
            corner: self.in_natural_units(band.corner),
        })
    }

    /// The approximation error for one record, without noise, if it is known before any record is read.
    pub(super) fn approximation_in_words(&self) -> Vec<String> {
        if let Basis::Cells(cells) = self.release.shape().basis {
            return vec![format!(
                "without noise, a synopsis of one record is off by about {} % of its peak at worst",
                three_digits(100.0 * cell_error::form_of_a_record(&cells))
            )];
        }
        let TargetDescription::Density(Density {
            kernel: Smoothing::Bandwidths(bandwidths),
            ..
        }) = &self.release.function.about
        else {
            return Vec::new();
        };
        if let Basis::Kernel(basis) = self.release.shape().basis {
            return vec![format!(
                "without noise, a synopsis of one record is off by at most {} % of its peak",
                three_digits(100.0 * Points::from_basis(&basis).largest_power())
            )];
        }
        let widths = self.release.axes.iter().map(|axis| axis.max - axis.min);
        let in_cube: Vec<f64> = bandwidths
            .iter()
            .zip(widths)
            .map(|(b, width)| b / width)
            .collect();
        let shares =
            predict::bump_errors(&in_cube, self.release.shape().degree, &[self.release.order]);
        let mut lines = Vec::new();
        for share in shares {
            lines.push(format!(
                "without noise, a synopsis of one record is off by up to {} % of its peak (the worst on a grid of positions)",
                three_digits(100.0 * share)
            ));
        }
        lines
    }

    /// The scale of the noise at a price, in grid units.
    pub(super) fn noise_scale(&self, price: Price) -> Result<f64, Failure> {
        let noise = self
            .settings
            .mechanism_at(self.release, &self.release.function, price)?;
        // Relative to the noise of a single window; the factor does not depend on the price.
        let factor = match &self.series {
            Some(series) => self.series_factor(series)?,
            None => 1.0,
        };
        Ok(factor * float(noise.scale().units()))
    }

    /// The noise of a running sum's first synopsis, relative to that of a single window.
    fn series_factor(&self, series: &CalibratedSeries) -> Result<f64, Failure> {
        let values = self.release.shape().value_count();
        let own = self
            .settings
            .mechanism_of(self.release, &self.release.function)?;
        let single = float(own.scale().units()) * own.distribution().deviation(values);
        Ok(series.deviation(values, 0) / single)
    }

    /// The largest deviation in `count` synopses. That of a tree goes up and down; all others only grow.
    fn worst_deviation(&self, series: &CalibratedSeries, count: u64) -> f64 {
        let values = self.release.shape().value_count();
        let is_tree = self.release.noise.noise_distribution().is_pure();
        let first = if is_tree {
            count.saturating_sub(MOST_STEPS)
        } else {
            count - 1
        };
        (first..count)
            .map(|step| series.deviation(values, step))
            .fold(0.0, f64::max)
    }

    /// Tells how the noise grows from synopsis to synopsis, relative to the first one.
    pub(super) fn sums_in_words(&self, series: &CalibratedSeries) -> Vec<String> {
        let values = self.release.shape().value_count();
        let last = match self.release.window_kind {
            WindowKind::Hopping { panes } => u64::from(panes),
            WindowKind::Cumulative { horizon } => horizon,
            WindowKind::Tumbling => 1,
        };
        let mut counts: Vec<u64> =
            std::iter::successors(Some(1), |count: &u64| count.checked_mul(10))
                .take_while(|n| *n < last)
                .collect();
        counts.push(last);
        // The long run: a filter settles, and a sum continues past its horizon.
        counts.push(last.saturating_mul(10));
        let fresh = series.deviation(values, 0);
        if let Some(lines) = self.sums_by_key_in_words(series, &counts) {
            return lines;
        }
        let mut lines = vec![
            "the noise above is that of the first synopsis; the largest standard deviation on a value so far, in largest effects of a \
             unit:".to_owned(),
            format!("  {:<10} {:<12} relative to the first", "windows", "deviation"),
        ];
        lines.extend(counts.into_iter().map(|count| {
            let deviation = self.worst_deviation(series, count);
            format!(
                "  {count:<10} {:<12} {} times",
                three_digits(deviation / self.sup),
                three_digits(deviation / fresh)
            )
        }));
        lines
    }

    /// The same of a table by key, in its own unit; `None` of other functions.
    fn sums_by_key_in_words(
        &self,
        series: &CalibratedSeries,
        counts: &[u64],
    ) -> Option<Vec<String>> {
        let Basis::Keys(_) = self.release.shape().basis else {
            return None;
        };
        let values = self.release.shape().value_count();
        let fresh = series.deviation(values, 0);
        let price = self.release.payment.mechanism_price();
        let within = self.half_widths_at(price).ok()?.middle;
        let mut lines = vec![
            "the errors above are those of the first sum; the largest so far:".to_owned(),
            format!(
                "  {:<10} {:<12} relative to the first",
                "windows",
                self.first_key_reading()
            ),
        ];
        for count in counts {
            let times = self.worst_deviation(series, *count) / fresh;
            lines.push(format!(
                "  {count:<10} {:<12} {} times",
                format!("± {}", three_digits(within * times)),
                three_digits(times)
            ));
        }
        Some(lines)
    }

    /// Half the width of the band for noise of this scale, in grid units.
    fn half_widths(&self, scale: f64) -> HalfWidths {
        HalfWidths {
            middle: self.half_width_where_all_are(0.5, scale),
            corner: self.half_width_where_all_are(0.0, scale),
        }
    }

    /// Half the width of the band at the point of the unit cube all of whose coordinates are `x`.
    fn half_width_where_all_are(&self, x: f64, scale: f64) -> f64 {
        let axes = i32::try_from(self.release.shape().dimensions).unwrap_or(i32::MAX);
        let weights = &self.band.weights;
        let degree = u32::try_from(weights.len().saturating_sub(1)).unwrap_or(u32::MAX);
        let weight =
            bernstein::evaluate_polynomial(weights, &[bernstein::bernstein_basis(degree, x)]);
        scale * self.band.half_width / weight.powi(axes)
    }

    pub(super) fn in_natural_units(&self, units: f64) -> f64 {
        units * self.release.function.grid_unit()
    }
}

/// Half the width of a band, in the middle of the domain and at a corner.
#[derive(Clone, Copy, Debug)]
pub(super) struct HalfWidths {
    pub middle: f64,
    pub corner: f64,
}

/// The price of a later window of a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct LaterPrice {
    /// Its number, from 0.
    pub window: u64,
    pub price: Price,
}

/// A line on the price of telling what the cap on keys drops.
fn told_caps_in_words(told: &UnitCounts, counts: &KeyedCounts) -> Option<String> {
    let part = counts.parts.iter().find(|part| part.of == "caps")?.part;
    let last = told.bins.last()?;
    Some(format!(
        "what max_keys drops is told: units by how many keys they have, up to {} apart, for {} % of the price; `query` reads it",
        last.least.max(2) - 1,
        ten_digits(100.0 * part)
    ))
}

/// The errors of a reading with some numbers of records of a key.
fn even_errors_in_words(noise: &KeyNoise<'_>, reading: KeyReading) -> String {
    let mut words = Vec::new();
    for records in [100.0, 1000.0, 10_000.0] {
        words.push(match noise.half_width_of_even(reading, records) {
            Some(within) => format!("± {} of {records}", three_digits(within)),
            None => format!("unknown of {records}"),
        });
    }
    words.join(", ")
}

/// How far quantiles are off, in the order of the values: how far that is in their unit depends on how many lie near them.
fn quantile_errors_in_words(noise: &KeyNoise<'_>) -> Vec<String> {
    const EXAMPLE: f64 = 1000.0;
    let mut lines = Vec::new();
    for reading in noise.readings() {
        let KeyReading::Quantile(part) = reading else {
            continue;
        };
        let within = noise.rank_half_width(part);
        let [least, most] = [-within, within].map(|off| {
            let percent = 100.0 * (part.fraction() + off / EXAMPLE).clamp(0.0, 1.0);
            three_digits(percent)
        });
        lines.push(format!(
            "Its {} is within about ± {} values of the exact one, in their order: of {EXAMPLE} values, between the exact p{least} and p{most}.",
            reading.name(),
            three_digits(within),
        ));
    }
    lines
}

fn unbounded(error: targets::TargetError) -> Failure {
    Failure::Configuration(error.to_string())
}

fn one_line(heading: &'static str, line: String) -> ExplainSection {
    ExplainSection::new(heading, vec![line])
}

/// A price with the name of what it is.
pub(super) fn price_in_words(price: Price) -> String {
    match price {
        Price::Pure(epsilon) => format!("epsilon = {epsilon}"),
        Price::Approximate { epsilon, delta } => format!("epsilon = {epsilon}, delta = {delta}"),
        Price::Concentrated(rho) => format!("rho = {rho}"),
        slots @ Price::Slots(_) => slots.to_string(),
    }
}

/// How the cells of a spline share a record.
fn sharing_in_words(spline: Spline) -> &'static str {
    match spline {
        Spline::Box => "each record counts in its own cell",
        Spline::Linear => {
            "each record is shared by the nearest cells, in proportion to how near they are"
        }
        Spline::Quadratic => "each record is shared by the nearest cells, by a quadratic spline",
    }
}
