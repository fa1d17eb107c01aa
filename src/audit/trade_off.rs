//! The real walk on two neighbouring streams, many times, with the best attacker there is for it.
//!
//! The attacker knows both streams and the law of the noise, and sees the released values. The best test is that of the
//! likelihood ratio (Neyman and Pearson); its errors, for every threshold, are the trade-off curve (`[DRS22]`). Two things are held
//! against it: no point of it may be better for the attacker than the promise allows, and it must be the curve of the
//! declared noise for the change that was found, neither better nor worse.
//!
//! Every run is a whole window: its records are absorbed and it closes, then [`Plan::release`], as in the worker. Only the
//! disk is missing: nothing is sealed, paid or published.

use std::time::{Duration, Instant};

use serde::Serialize;

use super::attacker::{Attacker, Calculated, Watched};
use super::evidence::{Test, Verdict, noticed};
use super::gamma::probability_up_to;
use super::law::Law;
use super::looks::Looks;
use super::promise::Promise;
use super::samplers::{Curve, key};
use super::tally::{Tally, distance};
use super::threads::{in_parts, processors};
use crate::mechanism::NoiseDistribution;
use crate::mechanism::choice::Candidates;
use crate::mechanism::noise::Generator;
use crate::pipeline::{self, Plan, Quoted, Release, Released, Terms};
use crate::source::Batch;
use crate::synopsis::description::{Entry, Privacy};
use crate::window::grid::Span;
use crate::window::{Window, Windows};

/// The first look, and how long it may take, however little time there is.
const FIRST: u64 = 400;
const PATIENCE: Duration = Duration::from_secs(30);
/// The part of the time for simulating the law of the declared noise.
const SIMULATING: f64 = 0.15;

/// Two neighbouring streams.
#[derive(Clone, Copy, Debug)]
pub struct Neighbours<'a> {
    pub with: &'a [Batch],
    pub without: &'a [Batch],
}

/// One release and window of two neighbouring streams.
pub struct Walk<'a> {
    neighbours: Neighbours<'a>,
    /// With that release alone, and that variant of it in which the change is largest beside the noise.
    plan: Plan,
    window: Span,
    quoted: Quoted,
    attacker: Attacker,
    /// The change that was declared, as a part of the scale.
    declared: f64,
    privacy: Privacy,
    name: String,
}

/// Why nothing is walked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Pipeline(#[from] pipeline::Error),
    #[error("no window of this pair is paid for")]
    Unpaid,
    #[error("the two streams differ in no value of this release")]
    NoChange,
    #[error(
        "{FIRST} windows of each stream, the fewest that say anything, would take about {seconds:.0} s: more --minutes"
    )]
    TooSlow { seconds: f64 },
    #[error("the noise of a first synopsis is a sum of several draws, of which no law is known in closed form")]
    Sum,
}

/// What was found.
#[derive(Clone, Debug, Serialize)]
pub struct Walked {
    pub release: String,
    /// What one release of one window promises.
    pub promised: String,
    pub window: Span,
    pub law: NoiseDistribution,
    /// How many values are released in the keys in which the streams differ, and how far the streams are apart
    /// in the norm of the noise, as a part of its scale.
    pub values: usize,
    pub change_in_scales: f64,
    /// Of each of the two streams.
    pub runs: u64,
    pub seconds: f64,
    pub tests: Vec<Test>,
    /// With the confidence of the tests, the promise is no less than this epsilon at its delta.
    pub epsilon_shown: f64,
    pub curve: Vec<Point>,
    /// Of the size of the noise in the walk.
    pub sizes: Curve,
}

/// One threshold of the attacker.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Point {
    /// Who answers that the unit is there from this log likelihood ratio on.
    pub threshold: f64,
    /// The part of wrong answers, without the unit and with it: found, and calculated for the declared noise.
    pub false_accusations: f64,
    pub false_denials: f64,
    pub calculated_accusations: f64,
    pub calculated_denials: f64,
    /// The least part of false denials that the promise allows at the false accusations that were found.
    pub promised_denials: f64,
}

impl<'a> Walk<'a> {
    /// The release at `place` of the plan, in that window of `windows` in which the streams differ most.
    ///
    /// # Errors
    ///
    /// If there is nothing to walk, or the worker could not release a window.
    pub fn new(plan: &Plan, place: usize, neighbours: Neighbours<'a>, windows: &[Span]) -> Result<Self, Error> {
        let release = plan.releases.get(place).ok_or(Error::NoChange)?;
        let mut worst: Option<(f64, Walk<'a>)> = None;
        let mut reason = Error::NoChange;
        for window in windows {
            for variant in release.variants.iter() {
                // A private choice of bandwidths has no likelihood ratio in closed form: each function by itself.
                let variants = Candidates::new(variant.clone(), Vec::new());
                let one = Release { bandwidth: None, variants, ..release.clone() };
                let plan = Plan { releases: vec![one], ..plan.clone() };
                match Walk::of_window(plan, neighbours, *window) {
                    Ok(walk) if worst.as_ref().is_none_or(|(most, _)| walk.distance() > *most) => {
                        worst = Some((walk.distance(), walk));
                    }
                    Ok(_) | Err(Error::NoChange | Error::Unpaid) => {}
                    Err(error) => reason = error,
                }
            }
        }
        worst.map(|(_, walk)| walk).ok_or(reason)
    }

    fn of_window(plan: Plan, neighbours: Neighbours<'a>, window: Span) -> Result<Self, Error> {
        let first = plan.rules.grid.span_of(plan.rules.grid.origin()).start;
        let quoted = plan.quoted(window, (first, first), |_| plan.total.zero()).ok_or(Error::Unpaid)?;
        let [with, without] = [neighbours.with, neighbours.without].map(|stream| close(&plan, stream, window));
        let terms = terms(&quoted, window);
        let mut generator = Generator::frozen([0; 32]);
        let synopses = plan.release(&with, &terms, &|_| Ok(None), &mut generator, &|| ())?;
        let privacy = synopses.first().map(|released| released.description.privacy.clone()).ok_or(Error::Unpaid)?;
        let exact = |window: &Window| -> Vec<Vec<i128>> {
            let parts = plan.releases.iter().zip(&window.forms);
            let groups = parts.flat_map(|(release, groups)| groups.iter().map(move |group| (release, group)));
            let values = |(release, group): (&Release, &crate::window::Group)| {
                release.variants.first().target.evaluate(&group.accumulator).reveal().to_vec()
            };
            groups.map(values).collect()
        };
        let mut watched = Vec::new();
        for (place, ((exact, other), released)) in
            exact(&with).into_iter().zip(exact(&without)).zip(&synopses).enumerate()
        {
            let change: Vec<i128> = exact.iter().zip(&other).map(|(with, without)| with - without).collect();
            if change.iter().any(|change| *change != 0) {
                let noise = released.description.noise;
                let law = Law { noise: noise.law, scale: noise.scale / noise.grid, values: change.len() };
                watched.push(Watched { place, law, exact, change });
            }
        }
        if watched.is_empty() {
            return Err(Error::NoChange);
        }
        let release = plan.releases.first().ok_or(Error::NoChange)?;
        if is_several_draws(release, &watched) {
            return Err(Error::Sum);
        }
        let name = release.description().release.clone();
        let attacker = Attacker(watched);
        let declared = release.variants.first().change.0 as f64 / attacker.law().scale;
        Ok(Walk { neighbours, window, quoted, attacker, declared, privacy, name, plan })
    }

    /// How far the streams are apart in the norm of the noise, as a part of its scale.
    pub fn distance(&self) -> f64 {
        self.attacker.distance()
    }

    /// Walks until `until`, `most` times at most, and at least until a first look; `seed` and `number` determine every draw. Ends
    /// early only with an alarm.
    ///
    /// # Errors
    ///
    /// If the worker could not release a window, or takes too long for one.
    pub fn run(&self, (seed, number): (u64, u64), alarm: f64, most: u64, until: Instant) -> Result<Walked, Error> {
        let started = Instant::now();
        let simulating = started + until.saturating_duration_since(started).mul_f64(SIMULATING);
        let calculated = self.attacker.calculated(seed ^ number, alarm, simulating);
        let of_size: Vec<f64> = self.attacker.all().sizes();
        let mut seen = Seen::new(calculated.thresholds.clone(), of_size);
        // Half of the alarms are for the law that it is held against, or for the other stream.
        let mut looks = Looks::new(alarm / 2.0, FIRST);
        let one = Instant::now();
        self.once((seed, number, 0), &mut seen.empty())?;
        let first = one.elapsed().mul_f64(FIRST as f64 / processors() as f64);
        if first > until.saturating_duration_since(one).max(PATIENCE) {
            return Err(Error::TooSlow { seconds: first.as_secs_f64() });
        }
        let mut done = 0;
        loop {
            let walked = in_parts(done..looks.runs(), |runs| {
                let mut part = seen.empty();
                runs.into_iter().try_for_each(|run| self.once((seed, number, run), &mut part)).map(|()| part)
            });
            for part in walked {
                seen.join(&part?);
            }
            done = looks.runs();
            let is_over = Instant::now() >= until || looks.next().runs() > most;
            let found = self.walked(&seen, &calculated, &looks, alarm, is_over, started);
            // What is calculated fails whatever is drawn.
            if is_over || found.tests.iter().any(|test| test.draws > 0 && test.has_failed()) {
                return Ok(found);
            }
            looks = looks.next();
        }
    }

    /// One window of each stream.
    fn once(&self, (seed, number, run): (u64, u64, u64), seen: &mut Seen) -> Result<(), Error> {
        for (stream, batches) in [(2, self.neighbours.with), (3, self.neighbours.without)] {
            let window = close(&self.plan, batches, self.window);
            let mut generator = Generator::frozen(key([seed, stream, number, run]));
            let terms = terms(&self.quoted, self.window);
            let synopses = self.plan.release(&window, &terms, &|_| Ok(None), &mut generator, &|| ())?;
            let (mut loss, mut size) = (0.0, 0.0);
            for watched in &self.attacker.0 {
                let Some(Released { noisy, .. }) = synopses.get(watched.place) else { continue };
                // With the unit the noise is what was added to its values; without it, to the others.
                let noise = |is_there: bool| -> Vec<i128> {
                    let exact = watched.exact.iter().zip(&watched.change);
                    let exact = exact.map(|(with, change)| if is_there { *with } else { with - change });
                    noisy.values().iter().zip(exact).map(|(noisy, exact)| noisy.saturating_sub(exact)).collect()
                };
                loss += watched.law.loss(&noise(true), &watched.change);
                size += watched.law.size(&noise(stream == 2));
            }
            if stream == 2 {
                seen.with.add(loss)
            } else {
                seen.without.add(loss)
            }
            seen.sizes.add(size);
        }
        Ok(())
    }

    fn walked(
        &self,
        seen: &Seen,
        calculated: &Calculated,
        looks: &Looks,
        alarm: f64,
        is_over: bool,
        started: Instant,
    ) -> Walked {
        let promise = Promise::of(&self.privacy);
        let runs = seen.with.total();
        let band = looks.band(runs);
        let (with, without) = (seen.with.parts(), seen.without.parts());
        let point = |at: usize, threshold: f64| {
            let part = |parts: &[f64]| parts.get(at).copied().unwrap_or(0.0);
            let false_accusations = 1.0 - part(&without);
            Point {
                threshold,
                false_accusations,
                false_denials: part(&with),
                calculated_accusations: 1.0 - part(&calculated.without),
                calculated_denials: part(&calculated.with),
                promised_denials: promise.least(false_accusations),
            }
        };
        let curve: Vec<Point> =
            calculated.thresholds.iter().enumerate().map(|(at, threshold)| point(at, *threshold)).collect();
        // How much better the attacker is than allowed, where both errors are as large as they may be by chance.
        let better = |point: &Point| promise.least(point.false_accusations + band) - (point.false_denials + band);
        let worst = curve.iter().map(better).fold(f64::NEG_INFINITY, f64::max);
        let shown = |point: &Point| {
            let (accusations, denials) = (point.false_accusations + band, point.false_denials + band);
            ((1.0 - denials) / accusations).ln().max(((1.0 - accusations) / denials).ln())
        };
        let allowed = band + calculated.error;
        let pinned = |what: &str, found: f64, noticed: Option<f64>| Test {
            what: what.to_owned(),
            verdict: Verdict::of(found <= allowed),
            found,
            allowed,
            draws: runs,
            alarm,
            noticed,
        };
        let by_ratio = is_over.then(|| self.attacker.noticed(calculated, 2.0 * allowed)).flatten();
        let law = self.attacker.all();
        let up_to = |x: f64| probability_up_to(law.shape(), x);
        let sizes = seen.sizes.thresholds().to_vec();
        let of_size: Vec<f64> = sizes.iter().map(|x| up_to(*x)).collect();
        let (found, of_both) = (seen.sizes.distance(&of_size), looks.band(seen.sizes.total()) + law.rounding());
        let power = if law.noise == NoiseDistribution::DiscreteGaussian { 0.5 } else { 1.0 };
        let by_size = noticed(2.0 * of_both, |factor| {
            let shrunk: Vec<f64> = sizes.iter().map(|x| up_to(x / factor)).collect();
            distance(&shrunk, &of_size)
        });
        let cost = Promise::cost(&self.privacy, &self.attacker.law(), self.distance(), self.declared);
        let cost = cost.map(|(found, allowed)| Test {
            what: "the change that was found or declared costs no more than the price".to_owned(),
            // Rounded in the last digits.
            verdict: Verdict::of(found <= allowed * (1.0 + 1e-9)),
            found,
            allowed,
            draws: 0,
            alarm: 0.0,
            noticed: None,
        });
        let of_runs = [
            Test {
                what: "no attacker is better than the promise allows".to_owned(),
                verdict: Verdict::of(worst <= 0.0),
                found: worst + band,
                allowed: band,
                draws: runs,
                alarm,
                noticed: None,
            },
            pinned(
                "the curve with the unit is that of the declared noise",
                distance(&with, &calculated.with),
                by_ratio,
            ),
            pinned(
                "the curve without the unit is that of the declared noise",
                distance(&without, &calculated.without),
                by_ratio,
            ),
            Test {
                what: "the size of the noise is that of the declared noise".to_owned(),
                verdict: Verdict::of(found <= of_both),
                found,
                allowed: of_both,
                draws: seen.sizes.total(),
                alarm,
                noticed: by_size.map(|factor| factor.powf(power)),
            },
        ];
        let tests = of_runs.into_iter().chain(cost).collect::<Vec<_>>();
        Walked {
            release: self.name.clone(),
            promised: Promise::in_words(&self.privacy),
            window: self.window,
            law: law.noise,
            values: law.values,
            change_in_scales: self.attacker.distance(),
            runs,
            seconds: started.elapsed().as_secs_f64(),
            tests,
            epsilon_shown: curve.iter().map(shown).fold(0.0, f64::max),
            curve,
            sizes: Curve { found: seen.sizes.parts(), law: of_size, thresholds: sizes },
        }
    }
}

/// What was counted.
#[derive(Clone, Debug)]
struct Seen {
    with: Tally,
    without: Tally,
    sizes: Tally,
}

impl Seen {
    fn new(ratios: Vec<f64>, sizes: Vec<f64>) -> Self {
        Seen { with: Tally::new(ratios.clone()), without: Tally::new(ratios), sizes: Tally::new(sizes) }
    }

    fn empty(&self) -> Self {
        Seen::new(self.with.thresholds().to_vec(), self.sizes.thresholds().to_vec())
    }

    fn join(&mut self, other: &Seen) {
        self.with.join(&other.with);
        self.without.join(&other.without);
        self.sizes.join(&other.sizes);
    }
}

/// Whether the first synopsis of a running sum has noise of more than one draw: its deviation is not that of one.
fn is_several_draws(release: &Release, watched: &[Watched]) -> bool {
    let Some(noise) = &release.series else { return false };
    let fresh = noise.series.noise();
    #[expect(clippy::cast_precision_loss, reason = "compared to a few digits")]
    let unit = fresh.scale().units() as f64 / (1_u64 << noise.series.bits()) as f64;
    watched.iter().any(|watched| (watched.law.scale / unit - 1.0).abs() > 1e-3)
}

/// The window of a stream, as the worker closes it.
fn close(plan: &Plan, batches: &[Batch], window: Span) -> Window {
    let first = plan.rules.grid.span_of(plan.rules.grid.origin());
    let forms = plan.releases.iter().map(|release| release.form.clone()).collect();
    let mut windows = Windows::new(plan.rules.clone(), forms, first.start, first, None);
    for batch in batches {
        windows.absorb(batch);
    }
    loop {
        let closed = windows.close();
        if closed.span.start >= window.start {
            return closed;
        }
    }
}

fn terms(quoted: &Quoted, window: Span) -> Terms {
    let entry = Entry { id: "audit".to_owned(), sequence: 1 };
    Terms { publish_at: window.end, entry, quoted: quoted.clone() }
}
