//! Releases that are built, noised and read on the same records: each with fresh noise, through the mechanism of a worker.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

use crate::cli::comparison::reading::{Off, Reading, off};
use crate::cli::comparison::world::World;
use crate::cli::failure::Failure;
use bernstream_config::{Payment, Release, Settings};
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
pub struct Contender {
    pub title: String,
    /// What to write in `[release]`; `None` of the file's own.
    pub lines: Option<String>,
    pub readings: Vec<Reading>,
    variant: ReleaseVariant,
    /// The same for a price that leaves next to no noise, where there is one.
    quiet: Option<ReleaseVariant>,
}

/// The errors of one reading on one window: of each draw of noise, and with next to none.
type Errors = (Vec<Off>, Option<Off>);

/// How far one reading of a release is off.
#[derive(Clone, Debug)]
pub struct Measured {
    /// A mean over windows and noise, and its standard deviation by the noise.
    pub error: Option<(f64, f64)>,
    pub wrong: Option<(f64, f64)>,
    /// The error where there is next to no noise.
    pub without_noise: Option<f64>,
}

impl Contender {
    /// # Errors
    ///
    /// If noise cannot be calibrated.
    pub fn new(
        settings: &Settings,
        release: &Release,
        title: String,
        lines: Option<String>,
        readings: Vec<Reading>,
    ) -> Result<Self, Failure> {
        let bands = Candidates::new(unread(), Vec::new());
        let of = |release: &Release| settings.variant(release, &release.function, &bands, true);
        let variant = of(release)?;
        let quiet = of(&Release {
            payment: plenty(release.payment),
            ..release.clone()
        })
        .ok();
        Ok(Contender {
            title,
            lines,
            readings,
            variant,
            quiet,
        })
    }

    /// Of every reading, on one window.
    fn on(&self, world: &World) -> Result<Vec<Errors>, Failure> {
        let exact = self
            .variant
            .target
            .evaluate(&world.accumulated(&self.variant.target.accumulator()));
        let noisy = (0..DRAWS)
            .map(|_| released(&self.variant, &exact))
            .collect::<Result<Vec<_>, Failure>>()?;
        let quiet = self
            .quiet
            .as_ref()
            .map(|variant| released(variant, &exact))
            .transpose()?;
        let of = |reading: &Reading| {
            let off =
                |synopsis: &Synopsis| off(synopsis, reading, &world.judged).map_err(unreadable);
            Ok((
                noisy.iter().map(off).collect::<Result<_, Failure>>()?,
                quiet.as_ref().map(off).transpose()?,
            ))
        };
        self.readings.iter().map(of).collect()
    }
}

/// Measures every reading of every contender; `done` is told after each window of each.
///
/// # Errors
///
/// If the operating system has no entropy, or if a synopsis cannot be read.
pub fn measured(
    contenders: &[Contender],
    worlds: &[World],
    done: impl Fn(usize) + Sync,
) -> Result<Vec<Vec<Measured>>, Failure> {
    let jobs: Vec<(usize, usize)> = (0..contenders.len())
        .flat_map(|c| (0..worlds.len()).map(move |w| (c, w)))
        .collect();
    let next = AtomicUsize::new(0);
    let finished = AtomicUsize::new(0);
    let work = || {
        let mut found = Vec::new();
        while let Some((c, w)) = jobs.get(next.fetch_add(1, Relaxed)) {
            if let (Some(contender), Some(world)) = (contenders.get(*c), worlds.get(*w)) {
                found.push((*c, contender.on(world)?));
                done(finished.fetch_add(1, Relaxed) + 1);
            }
        }
        Ok(found)
    };
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let found = thread::scope(|scope| {
        let working: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        let mut found = Vec::new();
        for worker in working {
            let panicked = |_| Err(Failure::Other("a function panicked".to_owned()));
            found.extend(worker.join().unwrap_or_else(panicked)?);
        }
        Ok::<_, Failure>(found)
    })?;
    let of_reading = |c: usize, reading: usize| {
        let windows = found
            .iter()
            .filter(|(of, _)| *of == c)
            .filter_map(|(_, readings)| readings.get(reading));
        Measured::of(&windows.collect::<Vec<_>>())
    };
    let of = |(c, contender): (usize, &Contender)| {
        (0..contender.readings.len())
            .map(|r| of_reading(c, r))
            .collect()
    };
    Ok(contenders.iter().enumerate().map(of).collect())
}

impl Measured {
    fn of(windows: &[&(Vec<Off>, Option<Off>)]) -> Self {
        let mean = |pick: fn(&Off) -> Option<f64>| {
            let window = |(draws, _): &&(Vec<Off>, Option<Off>)| {
                let values = draws.iter().map(pick).collect::<Option<Vec<f64>>>()?;
                let count = values.len() as f64;
                let sum = values.iter().sum::<f64>();
                let mean = sum / count;
                let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
                Some((mean, squares / (count - 1.0) / count))
            };
            let each = windows
                .iter()
                .map(window)
                .collect::<Option<Vec<(f64, f64)>>>()?;
            let count = each.len() as f64;
            let variance = each.iter().map(|(_, variance)| variance).sum::<f64>() / (count * count);
            Some((
                each.iter().map(|(mean, _)| mean).sum::<f64>() / count,
                variance.sqrt(),
            ))
        };
        let quiet = windows
            .iter()
            .map(|(_, quiet)| quiet.and_then(|quiet| quiet.error));
        let without_noise = quiet
            .collect::<Option<Vec<f64>>>()
            .map(|errors| errors.iter().sum::<f64>() / errors.len() as f64);
        Measured {
            error: mean(|off| off.error),
            wrong: mean(|off| off.wrong),
            without_noise,
        }
    }
}

/// A window as a worker would publish it: the noise is drawn anew each time, and never used for anything else.
fn released(variant: &ReleaseVariant, exact: &Exact) -> Result<Synopsis, Failure> {
    let mut generator =
        Generator::from_entropy().map_err(|error| Failure::Other(error.to_string()))?;
    let noisy = variant.mechanism.release(exact, &mut generator);
    Synopsis::new(
        variant.descriptions.first().clone(),
        variant.dequantize(&noisy).into_values(),
    )
    .map_err(unreadable)
}

fn unreadable(error: bernstream_synopsis::Error) -> Failure {
    Failure::Other(error.to_string())
}

/// A price of the same kind that leaves next to no noise; that of one window of a plan is the price of its noise.
fn plenty(payment: Payment) -> Payment {
    let more = |price: Price| match price {
        Price::Pure(_) => Price::Pure(Epsilon::from_trillionths(PLENTY)),
        Price::Approximate { delta, .. } => Price::Approximate {
            epsilon: Epsilon::from_trillionths(PLENTY),
            delta,
        },
        Price::Concentrated(_) => Price::Concentrated(Rho::from_trillionths(PLENTY)),
        slots @ Price::Slots(_) => slots,
    };
    match payment {
        Payment::Own(price) => Payment::Own(more(price)),
        Payment::Planned(price) => Payment::Planned(more(price)),
        Payment::Converted { rho, .. } => Payment::Converted {
            epsilon: Epsilon::from_trillionths(PLENTY),
            rho,
        },
    }
}

/// A band that nothing looks at: simulating one takes its time.
fn unread() -> Band {
    let half_width = 1.0;
    let pointwise = 1.0;
    let expected_sup = 1.0;
    let norm = 1.0;
    Band {
        level: 0.95,
        half_width,
        weights: vec![1.0],
        pointwise,
        draws: 1,
        expected_sup,
        norm,
    }
}
