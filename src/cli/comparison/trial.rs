//! Releases that are built, noised and read on the same records: each with fresh noise, through the mechanism of a worker.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::cli::comparison::reading::{ComparedReading, ReadingAccuracy, mean_error_of};
use crate::cli::comparison::world::ComparisonData;
use crate::cli::failure::Failure;
use crate::cli::parallel::on_all_processors;
use crate::cli::progress::WorkDone;
use bernstream_config::{Payment, ReleaseSettings, WorkerSettings};
use bernstream_noise::Exact;
use bernstream_noise::noise::Generator;
use bernstream_release::choice::Candidates;
use bernstream_synopsis::Synopsis;
use bernstream_synopsis::band::Band;
use bernstream_synopsis::calibrate::{Epsilon, Rho};
use bernstream_synopsis::price::Price;
use bernstream_worker::pipeline::ReleaseVariant;

/// Draws of noise for each window.
pub const DRAWS: usize = 8;
/// A price in trillionths that leaves next to no noise: epsilon or rho 1,000.
const PLENTY: u64 = 1_000_000_000_000_000;

/// A release to compare, and how it is read.
pub struct ComparedRelease {
    pub title: String,
    /// Lines to write in `[release]`; `None` of the file's own.
    pub lines: Option<String>,
    pub readings: Vec<ComparedReading>,
    variant: ReleaseVariant,
    /// The release at a price that leaves next to no noise, where there is one.
    quiet: Option<ReleaseVariant>,
}

/// The errors of one reading on one window.
struct WindowErrors {
    /// One for each draw of noise.
    noisy: Vec<ReadingAccuracy>,
    /// The error with next to no noise.
    quiet: Option<ReadingAccuracy>,
}

/// The errors of all readings of a contender on one window.
struct WindowTrial {
    contender: usize,
    readings: Vec<WindowErrors>,
}

/// A mean over windows and noise, and its standard deviation by the noise.
#[derive(Clone, Copy, Debug)]
pub struct MeanError {
    pub mean: f64,
    pub deviation: f64,
}

/// Errors of one reading of a release.
#[derive(Clone, Debug)]
pub struct MeasuredErrors {
    pub error: Option<MeanError>,
    pub wrong: Option<MeanError>,
    /// The error where there is next to no noise.
    pub without_noise: Option<f64>,
}

impl ComparedRelease {
    /// # Errors
    ///
    /// If noise cannot be calibrated.
    pub fn new(
        settings: &WorkerSettings,
        release: &ReleaseSettings,
        title: String,
        lines: Option<String>,
        readings: Vec<ComparedReading>,
    ) -> Result<Self, Failure> {
        let bands = Candidates::new(unread_band(), Vec::new());
        let variant = settings.release_variant(release, &release.function, &bands, true)?;
        let costly = ReleaseSettings {
            payment: plentiful_payment(release.payment),
            ..release.clone()
        };
        let quiet = settings
            .release_variant(&costly, &costly.function, &bands, true)
            .ok();
        Ok(ComparedRelease {
            title,
            lines,
            readings,
            variant,
            quiet,
        })
    }

    /// The errors of every reading on one window.
    fn window_errors(&self, world: &ComparisonData) -> Result<Vec<WindowErrors>, Failure> {
        let exact = self
            .variant
            .target
            .evaluate(&world.accumulate_records(&self.variant.target.accumulator()));
        let noisy = (0..DRAWS)
            .map(|_| draw_trial(&self.variant, &exact))
            .collect::<Result<Vec<_>, Failure>>()?;
        let quiet = self
            .quiet
            .as_ref()
            .map(|variant| draw_trial(variant, &exact))
            .transpose()?;
        let mut errors = Vec::new();
        for reading in &self.readings {
            let mut of_reading = WindowErrors {
                noisy: Vec::new(),
                quiet: None,
            };
            for synopsis in &noisy {
                let error = mean_error_of(synopsis, reading, &world.judged).map_err(unreadable)?;
                of_reading.noisy.push(error);
            }
            if let Some(synopsis) = &quiet {
                let error = mean_error_of(synopsis, reading, &world.judged).map_err(unreadable)?;
                of_reading.quiet = Some(error);
            }
            errors.push(of_reading);
        }
        Ok(errors)
    }
}

/// Measures every reading of every contender, and counts in `done` each window of each.
///
/// # Errors
///
/// If the operating system has no entropy, or if a synopsis cannot be read.
pub fn measure_contenders(
    contenders: &[ComparedRelease],
    worlds: &[ComparisonData],
    done: &WorkDone,
) -> Result<Vec<Vec<MeasuredErrors>>, Failure> {
    let jobs = TrialJobs {
        contenders,
        worlds,
        next: AtomicUsize::new(0),
        finished: AtomicUsize::new(0),
        done,
    };
    let found = on_all_processors(|| jobs.work(), "a function panicked")?;
    let trials: Vec<WindowTrial> = found.into_iter().flatten().collect();
    let mut measured = Vec::new();
    for (number, contender) in contenders.iter().enumerate() {
        let own: Vec<&WindowTrial> = trials
            .iter()
            .filter(|trial| trial.contender == number)
            .collect();
        let of_reading = (0..contender.readings.len()).map(|reading| {
            let windows = own.iter().filter_map(|trial| trial.readings.get(reading));
            MeasuredErrors::new(&windows.collect::<Vec<_>>())
        });
        measured.push(of_reading.collect());
    }
    Ok(measured)
}

/// Every contender on every world, from which threads take one after the other.
struct TrialJobs<'a> {
    contenders: &'a [ComparedRelease],
    worlds: &'a [ComparisonData],
    next: AtomicUsize,
    finished: AtomicUsize,
    done: &'a WorkDone,
}

impl TrialJobs<'_> {
    /// Takes jobs until there are no more.
    fn work(&self) -> Result<Vec<WindowTrial>, Failure> {
        let all = self.contenders.len() * self.worlds.len();
        let mut trials = Vec::new();
        loop {
            let job = self.next.fetch_add(1, Relaxed);
            if job >= all {
                return Ok(trials);
            }
            let contender = job / self.worlds.len();
            let world = &self.worlds[job % self.worlds.len()];
            trials.push(WindowTrial {
                contender,
                readings: self.contenders[contender].window_errors(world)?,
            });
            let finished = self.finished.fetch_add(1, Relaxed) + 1;
            self.done.set(finished as u64, all as u64);
        }
    }
}

impl MeasuredErrors {
    fn new(windows: &[&WindowErrors]) -> Self {
        let quiet = windows
            .iter()
            .map(|window| window.quiet.and_then(|quiet| quiet.error));
        let without_noise = quiet
            .collect::<Option<Vec<f64>>>()
            .map(|errors| errors.iter().sum::<f64>() / errors.len() as f64);
        MeasuredErrors {
            error: mean_error(windows, |off| off.error),
            wrong: mean_error(windows, |off| off.wrong),
            without_noise,
        }
    }
}

/// The mean of a figure over windows and noise; `None` where a reading does not have it.
fn mean_error(
    windows: &[&WindowErrors],
    figure: fn(&ReadingAccuracy) -> Option<f64>,
) -> Option<MeanError> {
    let mut means = 0.0;
    let mut variances = 0.0;
    for window in windows {
        let values = window
            .noisy
            .iter()
            .map(figure)
            .collect::<Option<Vec<f64>>>()?;
        let draws = values.len() as f64;
        let mean = values.iter().sum::<f64>() / draws;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        means += mean;
        variances += squares / (draws - 1.0) / draws;
    }
    let count = windows.len() as f64;
    let variance: f64 = variances / (count * count);
    Some(MeanError {
        mean: means / count,
        deviation: variance.sqrt(),
    })
}

/// A window as a worker would publish it: the noise is drawn anew each time, and never used for anything else.
fn draw_trial(variant: &ReleaseVariant, exact: &Exact) -> Result<Synopsis, Failure> {
    let mut generator =
        Generator::from_entropy().map_err(|error| Failure::Other(error.to_string()))?;
    let noisy = variant.mechanism.release_noisy(exact, &mut generator);
    Synopsis::new(
        variant.descriptions.first().clone(),
        variant.dequantize(&noisy).into_values(),
    )
    .map_err(unreadable)
}

fn unreadable(error: bernstream_synopsis::SynopsisError) -> Failure {
    Failure::Other(error.to_string())
}

/// A price of the same kind that leaves next to no noise; that of one window of a plan is the price of its noise.
fn plentiful_payment(payment: Payment) -> Payment {
    match payment {
        Payment::Own(price) => Payment::Own(plentiful_price(price)),
        Payment::Planned(price) => Payment::Planned(plentiful_price(price)),
        Payment::Converted { rho, .. } => Payment::Converted {
            epsilon: Epsilon::from_trillionths(PLENTY),
            rho,
        },
    }
}

fn plentiful_price(price: Price) -> Price {
    match price {
        Price::Pure(_) => Price::Pure(Epsilon::from_trillionths(PLENTY)),
        Price::Approximate { delta, .. } => Price::Approximate {
            epsilon: Epsilon::from_trillionths(PLENTY),
            delta,
        },
        Price::Concentrated(_) => Price::Concentrated(Rho::from_trillionths(PLENTY)),
        slots @ Price::Slots(_) => slots,
    }
}

/// A band that nothing looks at: simulating one takes its time.
fn unread_band() -> Band {
    Band {
        level: 0.95,
        half_width: 1.0,
        weights: vec![1.0],
        pointwise: 1.0,
        draws: 1,
        expected_sup: 1.0,
        norm: 1.0,
    }
}
