//! `bernstream explain`: the expected error of a release, before any record is read. Everything here is public.

use std::path::PathBuf;

use crate::accountant::policy::Policy;
use crate::cli::budget_forecast::budget;
use crate::cli::failure::Failure;
use crate::cli::figures::{float, three_digits};
use crate::cli::print::{print, section};
use crate::cli::progress::during;
use crate::cli::{candidates, comparison, settings};
use crate::config::{self, Release, Settings, WindowKind, guarantee};
use crate::mechanism::calibrate::{Epsilon, Rho};
use crate::mechanism::continual::Series;
use crate::mechanism::noise::Norm;
use crate::mechanism::price::Price;
use crate::synopsis::band::Band;
use crate::synopsis::description::{Definition, Density, Smoothing, Target};
use crate::synopsis::{bernstein, cell_error, predict};
use crate::targets::marginals::BINS;
use crate::targets::whitened::Points;
use crate::targets::{self, Adjacency, Basis, Sensitivity, Shape};
use crate::window::histogram::Spline;

/// The most synopses of a running sum that are examined one by one.
const MOST_STEPS: u64 = 100_000;

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The configuration.
    file: PathBuf,
    #[command(flatten)]
    comparison: comparison::Arguments,
}

/// Prints guarantee, sensitivity, noise, expected errors and the budget over time; or the comparison with other functions.
///
/// # Errors
///
/// If the configuration has a fault, if nothing in it can be compared, or if standard output cannot be written.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let settings =
        during("reading the configuration, and selecting what is automatic", || settings::load(&arguments.file))?;
    if arguments.comparison.compare {
        return print(comparison::text(&settings, &arguments.comparison)?);
    }
    print(during("simulating the noise", || explanation(&settings))?)
}

fn explanation(settings: &Settings) -> Result<String, Failure> {
    let mut text = String::new();
    section(&mut text, "Guarantee", &guarantee::promise(settings));
    for release in &settings.releases {
        text.push_str(&of_release(settings, release)?);
    }
    for (title, lines) in [("Budget", budget(settings)), ("Note", guarantee::notes(settings))] {
        if !lines.is_empty() {
            section(&mut text, title, &lines);
        }
    }
    Ok(text)
}

/// The expected error of one release.
fn of_release(settings: &Settings, release: &Release) -> Result<String, Failure> {
    let plan = Plan::new(settings, release)?;
    let mut text = String::new();
    if settings.releases.len() > 1 {
        section(&mut text, "Release", std::slice::from_ref(&release.name));
    }
    section(&mut text, "Function", std::slice::from_ref(&release.function.meaning));
    let (heading, form) = plan.form();
    section(&mut text, heading, &[form]);
    if let Some(table) = &release.auto {
        section(&mut text, "Choice of noise and size", &candidates::list(table, release));
        let readings = candidates::readings(table, settings, release, &plan.band)?;
        if !readings.is_empty() {
            section(&mut text, "Readings", &readings);
        }
    }
    let choices = choices(settings, release)?;
    if !choices.is_empty() {
        section(&mut text, "Private choices", &choices);
    }
    section(&mut text, "Sensitivity", &plan.sensitivity());
    section(&mut text, "Noise", &plan.noise()?);
    if let Some(series) = &plan.series {
        section(&mut text, "Sums", &plan.sums(series));
    }
    match plan.release.policy {
        Policy::Fixed(_) => section(&mut text, "Other prices", &plan.prices(&around(release.payment.own()))),
        Policy::Horizon { .. } => {}
        Policy::Decaying { half_after, .. } => section(&mut text, "Later windows", &plan.later(half_after.get())),
    }
    let mut approximation = plan.approximation();
    if approximation.is_empty() && release.shape().basis == Basis::Bernstein && release.auto.is_none() {
        let unknown = "not predicted for this function: the errors above are due to the noise alone";
        approximation.push(unknown.to_owned());
    }
    if !approximation.is_empty() {
        section(&mut text, "Approximation", &approximation);
    }
    Ok(text)
}

/// The public quantities that everything is computed from.
struct Plan<'s> {
    settings: &'s Settings,
    release: &'s Release,
    sensitivity: Sensitivity,
    /// The most that one unit changes one value, in grid units.
    sup: f64,
    /// The most that one record adds to one value, in grid units.
    a_record: f64,
    band: Band,
    /// The noise of a running sum. The noise at a price is then that of its first synopsis.
    series: Option<Series>,
}

impl<'s> Plan<'s> {
    fn new(settings: &'s Settings, release: &'s Release) -> Result<Self, Failure> {
        let (target, adjacency) = (&release.function.target, settings.privacy.adjacency);
        let unbounded = |e: targets::Error| Failure::Configuration(e.to_string());
        let contributions = settings.privacy.unit.contributions();
        let sensitivity = release.noise.law().sensitivity(&**target, adjacency, contributions).map_err(unbounded)?;
        let sup = float(target.sup_sensitivity(adjacency, contributions).map_err(unbounded)?);
        let a_record = float(target.sup_sensitivity(Adjacency::AddRemove, 1).map_err(unbounded)?);
        let band = Band::simulate(&release.shape(), release.noise.law(), release.order);
        let series = settings.series(release).map_err(|e| Failure::Configuration(e.to_string()))?;
        Ok(Plan { settings, release, sensitivity, sup, a_record, band, series })
    }

    /// What the noise is added to: its name, and how much of it there is.
    fn form(&self) -> (&'static str, String) {
        let Shape { dimensions, degree, basis } = self.release.shape();
        let count = self.release.shape().values();
        match basis {
            Basis::Bernstein => {
                let orders = self.release.orders().iter().map(ToString::to_string).collect::<Vec<_>>().join(" or ");
                (
                    "Lattice",
                    format!(
                        "degree {degree}, dimensions {dimensions}: {count} points; Bernstein operator of order {orders}"
                    ),
                )
            }
            Basis::Affine => {
                ("Coefficients", format!("an affine function of {dimensions} columns: {count} coefficients"))
            }
            Basis::Cells(basis) => {
                let steps = basis.steps.iter().map(ToString::to_string).collect::<Vec<_>>().join(" x ");
                let beyond = if count > basis.steps.iter().map(|m| *m as usize).product() {
                    ", and those that reach beyond the domain"
                } else {
                    ""
                };
                let shared = match basis.spline {
                    Spline::Box => "each record counts in its own cell",
                    Spline::Linear => "each record is shared by the nearest cells, in proportion to how near they are",
                    Spline::Quadratic => "each record is shared by the nearest cells, by a quadratic spline",
                };
                ("Cells", format!("{count} counts, of {steps} cells of the domain{beyond}; {shared}"))
            }
            Basis::Tables(basis) => {
                let steps = basis.steps.iter().map(ToString::to_string).collect::<Vec<_>>().join(" x ");
                let tables =
                    if basis.tables == 1 { "one table".to_owned() } else { format!("{} tables", basis.tables) };
                ("Cells", format!("{count} counts: {tables} of {steps} cells of the domain, {} spline", basis.spline))
            }
            Basis::Kernel(_) => {
                ("Kernel points", format!("kernel functions at {count} points, dimensions {dimensions}"))
            }
            Basis::Cosine { frequencies } => {
                ("Moments", format!("{count} cosine moments: {frequencies} frequencies, dimensions {dimensions}"))
            }
        }
    }

    fn sensitivity(&self) -> Vec<String> {
        let units = float(self.sensitivity.0);
        let together = match self.release.noise.law().norm() {
            Norm::One => "all values together",
            Norm::Two => "the 2-norm of all values together",
            Norm::Sup => "any single value",
        };
        let how_often = match &self.settings.privacy.definition {
            Definition::Random(random) => format!(
                ", except for gamma = {} of the pairs of neighbours under the prior: number {} by size of {} sampled changes",
                random.gamma, random.order, random.samples
            ),
            _ => String::new(),
        };
        if let Basis::Cells(_) | Basis::Tables(_) = self.release.shape().basis {
            let together = together.replace("all values", "the counts of all cells");
            let records = three_digits(units / self.a_record);
            let mut lines = vec![format!("a unit changes {together} by at most {records} records{how_often}")];
            if matches!(self.release.shape().basis, Basis::Cells(_)) {
                let peak = three_digits(self.in_natural_units(self.a_record));
                lines.push(format!(
                    "the kernel of one record in a cell is {peak} {} high",
                    self.release.function.quantity
                ));
            }
            return lines;
        }
        let mut lines = vec![
            format!("a unit changes {together} by at most {} grid units{how_often}", self.sensitivity.0),
            format!(
                "that is {} times its largest change of a single value, {} {}",
                three_digits(units / self.sup),
                three_digits(self.in_natural_units(self.sup)),
                self.release.function.quantity
            ),
        ];
        if self.release.noise.law().norm() == Norm::One && self.release.shape().basis == Basis::Bernstein {
            let papers = three_digits(float(self.release.shape().values() as u64) * self.sup / units);
            lines.push(format!(
                "the bound of [AR17], lattice points x largest change, is {papers} times this sensitivity"
            ));
        }
        lines
    }

    fn noise(&self) -> Result<Vec<String>, Failure> {
        let scale = self.scale(self.release.payment.own())?;
        if let Basis::Tables(tables) = self.release.shape().basis {
            let (records, root) = (self.in_natural_units(scale), f64::from(tables.tables).sqrt());
            let of_all = root * (tables.count() as f64).sqrt() * self.band.pointwise * records;
            return Ok(vec![
                format!("{} noise of scale {} records on every count", self.release.noise.law(), three_digits(records)),
                format!("the number of all records: within {} with 95 % probability", three_digits(of_all)),
                format!(
                    "every reading by a kernel: within {} times the length of its weights at one point, and {} at all points and \
                     bandwidths at once, with 95 % probability",
                    three_digits(self.band.pointwise * records),
                    three_digits(self.band.half_width * records)
                ),
            ]);
        }
        let quantity = &self.release.function.quantity;
        let (middle, corner) = self.half_widths(scale);
        let natural = |units: f64| three_digits(self.in_natural_units(units));
        let units = |units: f64| three_digits(units / self.sup);
        let expected = self.band.expected_sup * scale;
        Ok(vec![
            format!(
                "{} noise of scale {} grid units = {} {quantity}",
                self.release.noise.law(),
                three_digits(scale),
                natural(scale)
            ),
            format!(
                "standard deviation of the noise on one value: {} times the most that one privacy unit can change it",
                units(scale * self.release.noise.law().deviation(self.release.shape().values()))
            ),
            format!(
                "expected largest error due to the noise: {} {quantity}, or {} units",
                natural(expected),
                units(expected)
            ),
            format!(
                "half width of the simultaneous 95 % band: {} in the middle and {} at a corner of the domain, or {} and {} units",
                natural(middle),
                natural(corner),
                units(middle),
                units(corner)
            ),
        ])
    }

    /// The noise at other prices.
    fn prices(&self, prices: &[Price]) -> Vec<String> {
        // Noise of pure differential privacy is also calibrated to an epsilon where the budget is in rho.
        let is_converted =
            matches!(prices, [Price::Pure(_), ..]) && matches!(self.release.payment.price(), Price::Concentrated(_));
        let price = if is_converted { "epsilon of the noise" } else { "price" };
        let mut lines =
            vec![format!("{price:<34} {:<34} {}", "scale (largest effects of a unit)", "95 % error in the middle")];
        for price in prices.iter().copied() {
            // Half of the lowest possible price is impossible.
            let Ok(scale) = self.scale(price) else { continue };
            let (middle, _) = self.half_widths(scale);
            let (scale, middle) = (three_digits(scale / self.sup), three_digits(middle / self.sup));
            lines.push(format!("{:<34} {scale:<34} {middle}", price.to_string()));
        }
        lines
    }

    /// The noise of the first window of a block, and of some later ones.
    fn later(&self, half_after: u64) -> Vec<String> {
        let price_schedule = self.settings.price_schedule(self.release);
        let numbers = [0, 1, 3, 9].map(|times| half_after.saturating_mul(times));
        let own = |n: u64| price_schedule.price(n)?.checked_sub(price_schedule.choices);
        let prices: Vec<Price> = numbers.into_iter().filter_map(own).collect();
        let numbers = numbers.map(|number| number.to_string()).join(", ");
        let mut lines = vec![format!(
            "the part of the price that pays for noise, in windows {numbers} of a block, counted from 0:"
        )];
        lines.extend(self.prices(&prices));
        lines
    }

    /// The approximation error for one record, without noise, if it is known before any record is read.
    fn approximation(&self) -> Vec<String> {
        if let Basis::Cells(cells) = self.release.shape().basis {
            return vec![format!(
                "without noise, a synopsis of one record is off by about {} % of its peak at worst",
                three_digits(100.0 * cell_error::form_of_a_record(&cells))
            )];
        }
        let Target::Density(Density { kernel: Smoothing::Bandwidths(bandwidths), .. }) = &self.release.function.about
        else {
            return Vec::new();
        };
        if let Basis::Kernel(basis) = self.release.shape().basis {
            return vec![format!(
                "without noise, a synopsis of one record is off by at most {} % of its peak",
                three_digits(100.0 * Points::again(&basis).power())
            )];
        }
        let widths = self.release.axes.iter().map(|axis| axis.max - axis.min);
        let in_cube: Vec<f64> = bandwidths.iter().zip(widths).map(|(b, width)| b / width).collect();
        let shares = predict::approximation(&in_cube, self.release.shape().degree, &[self.release.order]);
        let say = |share: f64| {
            format!(
                "without noise, a synopsis of one record is off by up to {} % of its peak (the worst on a grid of positions)",
                three_digits(100.0 * share)
            )
        };
        shares.into_iter().map(say).collect()
    }

    /// In grid units.
    fn scale(&self, price: Price) -> Result<f64, Failure> {
        let noise = self.settings.mechanism_at(self.release, &self.release.function, price);
        let noise = noise.map_err(|e| Failure::Configuration(e.to_string()))?;
        // Relative to the noise of a single window; the factor does not depend on the price.
        let factor = self.series.as_ref().map_or(Ok(1.0), |series| self.factor(series))?;
        Ok(factor * float(noise.scale().units()))
    }

    /// The noise of a running sum's first synopsis, relative to that of a single window.
    fn factor(&self, series: &Series) -> Result<f64, Failure> {
        let (release, values) = (self.release, self.release.shape().values());
        let own = self.settings.mechanism_of(release, &release.function);
        let own = own.map_err(|e| Failure::Configuration(e.to_string()))?;
        let one = float(own.scale().units()) * own.distribution().deviation(values);
        Ok(series.deviation(values, 0) / one)
    }

    /// The largest deviation in `count` synopses. That of a tree goes up and down; all others only grow.
    fn worst(&self, series: &Series, count: u64) -> f64 {
        let values = self.release.shape().values();
        let is_tree = self.release.noise.law().is_pure();
        let first = if is_tree { count.saturating_sub(MOST_STEPS) } else { count - 1 };
        (first..count).map(|step| series.deviation(values, step)).fold(0.0, f64::max)
    }

    /// How the noise grows from synopsis to synopsis, relative to the first one.
    fn sums(&self, series: &Series) -> Vec<String> {
        let values = self.release.shape().values();
        let last = match self.release.window_kind {
            WindowKind::Hopping { panes } => u64::from(panes),
            WindowKind::Cumulative { horizon } => horizon,
            WindowKind::Tumbling => 1,
        };
        let mut counts: Vec<u64> =
            std::iter::successors(Some(1), |count: &u64| count.checked_mul(10)).take_while(|n| *n < last).collect();
        counts.push(last);
        // The long run: a filter settles, and a sum continues past its horizon.
        counts.push(last.saturating_mul(10));
        let fresh = series.deviation(values, 0);
        let mut lines = vec![
            "the noise above is that of the first synopsis; the largest standard deviation on a value so far, in largest effects of a \
             unit:".to_owned(),
            format!("  {:<10} {:<12} relative to the first", "windows", "deviation"),
        ];
        lines.extend(counts.into_iter().map(|count| {
            let deviation = self.worst(series, count);
            format!(
                "  {count:<10} {:<12} {} times",
                three_digits(deviation / self.sup),
                three_digits(deviation / fresh)
            )
        }));
        lines
    }

    /// Half the width of the band in the middle of the domain and at a corner, in grid units.
    fn half_widths(&self, scale: f64) -> (f64, f64) {
        let axes = i32::try_from(self.release.shape().dimensions).unwrap_or(i32::MAX);
        let weights = &self.band.weights;
        let degree = u32::try_from(weights.len().saturating_sub(1)).unwrap_or(u32::MAX);
        let at = |x: f64| {
            let weight = bernstein::evaluate(weights, &[bernstein::basis(degree, x)]);
            scale * self.band.half_width / weight.powi(axes)
        };
        (at(0.5), at(0.0))
    }

    fn in_natural_units(&self, units: f64) -> f64 {
        units * self.release.function.unit
    }
}

/// Half, the same and twice the price; delta stays the same.
fn around(price: Price) -> [Price; 3] {
    let of = |count: u64| [(count / 2).max(1), count, count.saturating_mul(2)];
    match price {
        Price::Pure(epsilon) => of(epsilon.trillionths()).map(|count| Price::Pure(Epsilon::from_trillionths(count))),
        Price::Approximate { epsilon, delta } => of(epsilon.trillionths())
            .map(|count| Price::Approximate { epsilon: Epsilon::from_trillionths(count), delta }),
        Price::Concentrated(rho) => {
            of(rho.trillionths()).map(|count| Price::Concentrated(Rho::from_trillionths(count)))
        }
        Price::Slots(count) => of(count).map(Price::Slots),
    }
}

/// What each window and key chooses privately from its own records, and how accurately.
fn choices(settings: &Settings, release: &Release) -> Result<Vec<String>, Failure> {
    let refused = |e: config::Error| Failure::Configuration(e.to_string());
    let (quantity, protected) = (&release.function.quantity, settings.protected());
    let mut lines = Vec::new();
    if let Some(choice) = &release.private_bandwidths {
        lines.push(format!(
            "bandwidths, for {}: from counts of records in {BINS} parts of each axis, each off by about {} records; the selected \
             candidate is the nearest to 0.9 (interquartile range / 1.34) n^(-1 / (axes + 4))",
            choice.price,
            three_digits(choice.mechanism(protected).map_err(refused)?.noise())
        ));
        for function in choice.candidates.iter() {
            let scale = float(settings.mechanism_of(release, function).map_err(refused)?.scale().units());
            if let Target::Density(Density { kernel: Smoothing::Bandwidths(lengths), .. }) = &function.about {
                lines.push(format!("  {lengths:?}: noise of scale {} {quantity}", three_digits(scale * function.unit)));
            }
        }
    }
    if let Some(choice) = &release.private_order {
        let noise = settings.mechanism_of(release, &release.function).map_err(refused)?;
        let order = choice.mechanism(&release.function, &noise, protected).map_err(refused)?;
        lines.push(format!(
            "order, for {}: the one with the smallest expected noise + approximation error at the lattice, each known to about {} \
             {quantity}",
            choice.price,
            three_digits(2.0_f64.sqrt() * float(order.scale()) * release.function.unit)
        ));
    }
    if !lines.is_empty() {
        lines.push("everything below holds for the first candidates".to_owned());
    }
    Ok(lines)
}
