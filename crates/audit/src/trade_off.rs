//! Two neighbouring streams, released many times, and the best attacker there is, who tells which of the two it was.
//!
//! The attacker knows both streams and the law of the noise, and sees the released values. The best test is that of the
//! likelihood ratio (Neyman and Pearson); its errors, for every threshold, are the trade-off curve (`[DRS22]`). Two things are
//! tested: no point of it may be better for the attacker than the promise allows, and it must be the curve of the
//! declared noise for the change that was found, neither better nor worse.
//!
//! Every run is a whole window: its records are absorbed and it closes, then [`ReleasePlan::release_window`], as in the worker. Only the
//! disk is missing: nothing is sealed, paid or published.

use std::time::{Duration, Instant};

use super::attacked::{AttackReport, DetectableScale, ErrorRatePoint};
use super::attacker::{Attacker, CalculatedCurve, WatchedKey};
use super::deadline::Deadline;
use super::error::ReplayError;
use super::evidence::{AuditTest, Verdict, scale_fails_at};
use super::gamma::probability_up_to;
use super::law::NoiseLaw;
use super::looks::SequentialTest;
use super::opened::open_exact_values;
use super::promise::{ChangeCost, PromisedGuarantees};
use super::samplers::generator_key;
use super::tally::ThresholdCounts;
use super::threads::{in_parts, processors};
use bernstream_noise::Noisy;
use bernstream_noise::noise::Generator;
use bernstream_release::choice::Candidates;
use bernstream_release::source::Batch;
use bernstream_release::window::{Window, WindowStore};
use bernstream_synopsis::NoiseDistribution;
use bernstream_synopsis::description::{PaymentRow, PrivacyDescription};
use bernstream_synopsis::grid::Span;
use bernstream_worker::pipeline;
use bernstream_worker::pipeline::{
    LedgerBeginning, PlannedRelease, ReleasePlan, ReleasedSynopsis, WindowQuote, WindowTerms,
};

/// The first look, and how long it may take, however little time there is.
const FIRST: u64 = 400;
const PATIENCE: Duration = Duration::from_secs(30);
/// The part of the time for simulating the law of the declared noise.
const SIMULATING: f64 = 0.15;

/// Two neighbouring streams.
#[derive(Clone, Copy, Debug)]
pub struct NeighbouringStreams<'a> {
    pub with: &'a [Batch],
    pub without: &'a [Batch],
}

/// One release and window of two neighbouring streams.
pub struct WindowAttack<'a> {
    neighbours: NeighbouringStreams<'a>,
    /// With that release alone, and that variant of it in which the change is largest beside the noise.
    plan: ReleasePlan,
    window: Span,
    quoted: WindowQuote,
    attacker: Attacker,
    /// The change that was declared, as a part of the scale.
    declared: f64,
    privacy: PrivacyDescription,
    name: String,
}

/// The reason why there is no attack.
#[derive(Debug, thiserror::Error)]
pub enum AttackError {
    #[error(transparent)]
    Pipeline(#[from] pipeline::PipelineError),
    #[error("no window of this pair is paid for")]
    Unpaid,
    #[error("the two streams differ in no value of this release")]
    NoChange,
    #[error(
        "{FIRST} windows of each stream, the fewest that say anything, would take about {seconds:.0} s: more --minutes"
    )]
    TooSlow { seconds: f64 },
    #[error(
        "the noise of a first synopsis is a sum of several draws, whose distribution has no closed form"
    )]
    Sum,
    #[error("the audit was ended before it")]
    Stopped,
    #[error(transparent)]
    Replay(#[from] ReplayError),
}

impl<'a> WindowAttack<'a> {
    /// The release at `place` of the plan, in that window of `windows` in which the streams differ most.
    ///
    /// # Errors
    ///
    /// If there is nothing to attack, or the worker could not release a window.
    pub fn new(
        plan: &ReleasePlan,
        place: usize,
        neighbours: NeighbouringStreams<'a>,
        windows: &[Span],
    ) -> Result<Self, AttackError> {
        let release = plan.releases.get(place).ok_or(AttackError::NoChange)?;
        let mut worst: Option<WindowAttack<'a>> = None;
        let mut reason = AttackError::NoChange;
        for window in windows {
            for variant in release.variants.iter() {
                // A private choice of bandwidths has no likelihood ratio in closed form: each function by itself.
                let variants = Candidates::new(variant.clone(), Vec::new());
                let one = PlannedRelease {
                    bandwidth: None,
                    variants,
                    ..release.clone()
                };
                let plan = ReleasePlan {
                    releases: vec![one],
                    ..plan.clone()
                };
                match WindowAttack::of_window(plan, neighbours, *window) {
                    Ok(attack)
                        if worst
                            .as_ref()
                            .is_none_or(|worst| attack.distance() > worst.distance()) =>
                    {
                        worst = Some(attack);
                    }
                    Ok(_) | Err(AttackError::NoChange | AttackError::Unpaid) => {}
                    Err(error) => reason = error,
                }
            }
        }
        worst.ok_or(reason)
    }

    fn of_window(
        plan: ReleasePlan,
        neighbours: NeighbouringStreams<'a>,
        window: Span,
    ) -> Result<Self, AttackError> {
        let quoted = quote_window(&plan, window).ok_or(AttackError::Unpaid)?;
        let with = close_window(&plan, neighbours.with, window);
        let without = close_window(&plan, neighbours.without, window);
        let terms = audit_terms(&quoted, window);
        let mut generator = Generator::frozen([0; 32]);
        let synopses = draw_synopses(&plan, &with, &terms, &mut generator)?;
        let privacy = synopses
            .first()
            .map(|released| released.description.privacy.clone())
            .ok_or(AttackError::Unpaid)?;
        let mut watched = Vec::new();
        let with = exact_values(&plan, &with).into_iter();
        let pairs = with.zip(exact_values(&plan, &without));
        for (place, ((exact, other), released)) in pairs.zip(&synopses).enumerate() {
            let changes = exact.iter().zip(&other);
            let change: Vec<i128> = changes.map(|(with, without)| with - without).collect();
            if change.iter().any(|change| *change != 0) {
                let noise = released.description.noise;
                let law = NoiseLaw {
                    noise: noise.law,
                    scale: noise.scale / noise.grid,
                    values: change.len(),
                };
                watched.push(WatchedKey {
                    place,
                    law,
                    exact,
                    change,
                });
            }
        }
        if watched.is_empty() {
            return Err(AttackError::NoChange);
        }
        let release = plan.releases.first().ok_or(AttackError::NoChange)?;
        if is_several_draws(release, &watched) {
            return Err(AttackError::Sum);
        }
        let name = release.description().release.clone();
        let attacker = Attacker(watched);
        let declared = release.variants.first().change.0 as f64 / attacker.law().scale;
        Ok(WindowAttack {
            neighbours,
            window,
            quoted,
            attacker,
            declared,
            privacy,
            name,
            plan,
        })
    }

    /// The distance of the streams in the norm of the noise, as a part of its scale.
    pub fn distance(&self) -> f64 {
        self.attacker.change_in_scales()
    }

    /// Releases windows until `deadline`, `most` at most, and at least until a first look unless it is stopped; `seed` and `number`
    /// determine every draw. Ends early only with a test that fails.
    ///
    /// # Errors
    ///
    /// If the worker could not release a window, or takes too long for one, or if the deadline is stopped before a first look.
    pub fn run_attack(
        &self,
        (seed, number): (u64, u64),
        alarm: f64,
        most: u64,
        deadline: &Deadline,
    ) -> Result<AttackReport, AttackError> {
        if deadline.is_stopped() {
            return Err(AttackError::Stopped);
        }
        let started = Instant::now();
        let calculated =
            self.attacker
                .calculate_curve(seed ^ number, alarm, &deadline.part_of_rest(SIMULATING));
        let of_size: Vec<f64> = self.attacker.joint_law().size_thresholds();
        let mut seen = RunCounts::new(calculated.thresholds.clone(), of_size);
        // Half of the alarms are for the law that it is held against, or for the other stream.
        let mut looks = SequentialTest::new(alarm / 2.0, FIRST);
        let one = Instant::now();
        let left = deadline.time_left();
        self.release_both(seed, number, 0, &mut seen.empty())?;
        let first = one.elapsed().mul_f64(FIRST as f64 / processors() as f64);
        if first > left.max(PATIENCE) {
            return Err(AttackError::TooSlow {
                seconds: first.as_secs_f64(),
            });
        }
        let mut done = 0;
        let mut last = None;
        loop {
            let parts = in_parts(done..looks.runs(), |runs| {
                let mut part = seen.empty();
                for run in runs {
                    if deadline.is_stopped() {
                        return Err(AttackError::Stopped);
                    }
                    self.release_both(seed, number, run, &mut part)?;
                }
                Ok(part)
            });
            let parts = match (parts.into_iter().collect::<Result<Vec<_>, _>>(), last) {
                // What was released since the last look does not count.
                (Err(AttackError::Stopped), Some(looks)) => {
                    return Ok(self.report_so_far(
                        &seen,
                        &calculated,
                        &looks,
                        alarm,
                        true,
                        started,
                    ));
                }
                (parts, _) => parts?,
            };
            parts.iter().for_each(|part| seen.join(part));
            done = looks.runs();
            let is_over = deadline.is_over() || looks.next_look().runs() > most;
            let found = self.report_so_far(&seen, &calculated, &looks, alarm, is_over, started);
            // What is calculated fails whatever is drawn.
            if is_over
                || found
                    .tests
                    .iter()
                    .any(|test| test.draws > 0 && test.has_failed())
            {
                return Ok(found);
            }
            last = Some(looks);
            looks = looks.next_look();
        }
    }

    /// Releases one window of each stream.
    fn release_both(
        &self,
        seed: u64,
        number: u64,
        run: u64,
        seen: &mut RunCounts,
    ) -> Result<(), AttackError> {
        let generator = Generator::frozen(generator_key([seed, 2, number, run]));
        let with = self.release_one(self.neighbours.with, generator, true)?;
        seen.with.add(with.loss);
        seen.sizes.add(with.size);
        let generator = Generator::frozen(generator_key([seed, 3, number, run]));
        let without = self.release_one(self.neighbours.without, generator, false)?;
        seen.without.add(without.loss);
        seen.sizes.add(without.size);
        Ok(())
    }

    /// Releases one window of a stream; `is_there` says whether the unit is in it.
    fn release_one(
        &self,
        batches: &[Batch],
        mut generator: Generator,
        is_there: bool,
    ) -> Result<SeenWindow, AttackError> {
        let window = close_window(&self.plan, batches, self.window);
        let terms = audit_terms(&self.quoted, self.window);
        let synopses = draw_synopses(&self.plan, &window, &terms, &mut generator)?;
        let mut loss = 0.0;
        let mut size = 0.0;
        for watched in &self.attacker.0 {
            let Some(ReleasedSynopsis { noisy, .. }) = synopses.get(watched.place) else {
                continue;
            };
            // With the unit the noise is what was added to its values; without it, to the others.
            let noise_with = watched.noise_in(noisy, true);
            loss += watched.law.privacy_loss(&noise_with, &watched.change);
            size += watched.law.size_of_draw(&watched.noise_in(noisy, is_there));
        }
        Ok(SeenWindow { loss, size })
    }

    fn report_so_far(
        &self,
        seen: &RunCounts,
        calculated: &CalculatedCurve,
        looks: &SequentialTest,
        alarm: f64,
        is_over: bool,
        started: Instant,
    ) -> AttackReport {
        let promise = PromisedGuarantees::from_privacy(&self.privacy);
        let runs = seen.with.total();
        let band = looks.confidence_band(runs);
        let points = seen.points(calculated, &promise);
        let mut worst = f64::NEG_INFINITY;
        let mut epsilon_at_least: f64 = 0.0;
        for point in &points {
            let positives = point.false_positives + band;
            let negatives = point.false_negatives + band;
            worst = worst.max(promise.least_false_negatives(positives) - negatives);
            epsilon_at_least = epsilon_at_least.max(shown_epsilon(positives, negatives));
        }
        let mut scale = None;
        if is_over {
            // What is measured is within the band of the truth, and the test adds it once more.
            let by = 2.0 * band;
            scale = self
                .attacker
                .scale_that_breaks(calculated, |positives, negatives| {
                    promise.least_false_negatives(positives + by) - (negatives + by) > 0.0
                });
        }
        let mut tests = vec![AuditTest {
            what: "the attacker's error rates are no lower than the promise allows".to_owned(),
            verdict: Verdict::from_result(worst <= 0.0),
            difference: (worst + band).max(0.0),
            allowed: band,
            draws: runs,
            false_alarm: alarm,
            fails_at: scale,
        }];
        tests.extend(self.ratio_tests(seen, calculated, looks, alarm, is_over));
        tests.push(self.size_test(seen, looks, alarm));
        tests.extend(self.cost_at(1.0).map(|cost| AuditTest {
            what: "the largest change, found or declared, costs no more than the price".to_owned(),
            // Rounded in the last digits.
            verdict: Verdict::from_result(cost.found <= cost.promised * (1.0 + 1e-9)),
            difference: cost.found,
            allowed: cost.promised,
            draws: 0,
            false_alarm: 0.0,
            fails_at: None,
        }));
        let detects = scale.map(|scale| {
            let cost = self.cost_at(scale);
            DetectableScale {
                scale,
                cost: cost.map(|cost| cost.found),
                of: cost.map(|cost| cost.of),
            }
        });
        let mut curve = vec![constant_answer(&promise, 1.0)];
        curve.extend(points);
        curve.push(constant_answer(&promise, 0.0));
        let law = self.attacker.joint_law();
        AttackReport {
            release: self.name.clone(),
            promised: PromisedGuarantees::in_words(&self.privacy),
            window: self.window,
            noise: law.noise,
            values: law.values,
            change_in_scales: self.attacker.change_in_scales(),
            windows: runs,
            seconds: started.elapsed().as_secs_f64(),
            tests,
            epsilon_at_least,
            detects,
            curve,
        }
    }

    /// The tests of the log likelihood ratio, with the unit and without it.
    fn ratio_tests(
        &self,
        seen: &RunCounts,
        calculated: &CalculatedCurve,
        looks: &SequentialTest,
        alarm: f64,
        is_over: bool,
    ) -> [AuditTest; 2] {
        let runs = seen.with.total();
        let allowed = looks.confidence_band(runs) + calculated.error;
        let mut tests = [
            AuditTest::of_distance(
                "the log likelihood ratio with the unit has its calculated distribution",
                seen.with.distance(&calculated.with),
                allowed,
                runs,
                alarm,
            ),
            AuditTest::of_distance(
                "the log likelihood ratio without the unit has its calculated distribution",
                seen.without.distance(&calculated.without),
                allowed,
                runs,
                alarm,
            ),
        ];
        if is_over {
            let fails_at = self.attacker.scale_that_fails(calculated, 2.0 * allowed);
            for test in &mut tests {
                test.fails_at = fails_at;
            }
        }
        tests
    }

    /// The cost of the change if the noise had this part of its scale.
    fn cost_at(&self, scale: f64) -> Option<ChangeCost> {
        let found = self.distance() / scale;
        let declared = self.declared / scale;
        PromisedGuarantees::cost_of_change(&self.privacy, &self.attacker.law(), found, declared)
    }

    /// The test of the sizes of the noise, of both streams.
    fn size_test(&self, seen: &RunCounts, looks: &SequentialTest, alarm: f64) -> AuditTest {
        let law = self.attacker.joint_law();
        let thresholds = seen.sizes.thresholds();
        let expected: Vec<f64> = thresholds
            .iter()
            .map(|x| probability_up_to(law.gamma_shape(), *x))
            .collect();
        let draws = seen.sizes.total();
        let allowed = looks.confidence_band(draws) + law.rounding_distance();
        let factor = scale_fails_at(2.0 * allowed, thresholds, &expected, |x| {
            probability_up_to(law.gamma_shape(), x)
        });
        // Half a square shrinks twice.
        let power = if law.noise == NoiseDistribution::DiscreteGaussian {
            0.5
        } else {
            1.0
        };
        AuditTest {
            fails_at: factor.map(|factor| factor.powf(power)),
            ..AuditTest::of_distance(
                "the size of the noise has the declared distribution",
                seen.sizes.distance(&expected),
                allowed,
                draws,
                alarm,
            )
        }
    }
}

pub(super) fn part_at(parts: &[f64], index: usize) -> f64 {
    parts.get(index).copied().unwrap_or(0.0)
}

/// The epsilon that an attacker with these error rates shows at least.
pub(super) fn shown_epsilon(positives: f64, negatives: f64) -> f64 {
    ((1.0 - negatives) / positives)
        .ln()
        .max(((1.0 - positives) / negatives).ln())
}

/// The point of an attacker who always gives the same answer: with `yes` 1 there are no false negatives, and with 0 no false positives.
pub(super) fn constant_answer(promise: &PromisedGuarantees, yes: f64) -> ErrorRatePoint {
    ErrorRatePoint {
        false_positives: yes,
        false_negatives: 1.0 - yes,
        calculated_false_positives: yes,
        calculated_false_negatives: 1.0 - yes,
        promised_false_negatives: promise.least_false_negatives(yes),
    }
}

/// The loss of one released window, and the size of its noise.
struct SeenWindow {
    loss: f64,
    size: f64,
}

impl WatchedKey {
    /// The noise of a released value, if the unit is there or is not.
    fn noise_in(&self, noisy: &Noisy, is_there: bool) -> Vec<i128> {
        let mut noise = Vec::with_capacity(self.exact.len());
        let exact = self.exact.iter().zip(&self.change);
        for (noisy, (with, change)) in noisy.values().iter().zip(exact) {
            let exact = if is_there { *with } else { with - change };
            noise.push(noisy.saturating_sub(exact));
        }
        noise
    }
}

/// The exact values of each release and key of a window.
fn exact_values(plan: &ReleasePlan, window: &Window) -> Vec<Vec<i128>> {
    let mut all = Vec::new();
    for (release, groups) in plan.releases.iter().zip(&window.forms) {
        let target = &release.variants.first().target;
        all.extend(
            groups
                .iter()
                .map(|group| open_exact_values(&target.evaluate(&group.accumulator))),
        );
    }
    all
}

/// The counts of all runs.
#[derive(Clone, Debug)]
struct RunCounts {
    with: ThresholdCounts,
    without: ThresholdCounts,
    sizes: ThresholdCounts,
}

impl RunCounts {
    fn new(ratios: Vec<f64>, sizes: Vec<f64>) -> Self {
        RunCounts {
            with: ThresholdCounts::new(ratios.clone()),
            without: ThresholdCounts::new(ratios),
            sizes: ThresholdCounts::new(sizes),
        }
    }

    fn empty(&self) -> Self {
        RunCounts::new(
            self.with.thresholds().to_vec(),
            self.sizes.thresholds().to_vec(),
        )
    }

    /// The error rates of the attacker at each threshold.
    fn points(
        &self,
        calculated: &CalculatedCurve,
        promise: &PromisedGuarantees,
    ) -> Vec<ErrorRatePoint> {
        let with = self.with.parts_up_to();
        let without = self.without.parts_up_to();
        let mut points = Vec::new();
        for index in 0..calculated.thresholds.len() {
            let false_positives = 1.0 - part_at(&without, index);
            points.push(ErrorRatePoint {
                false_positives,
                false_negatives: part_at(&with, index),
                calculated_false_positives: 1.0 - part_at(&calculated.without, index),
                calculated_false_negatives: part_at(&calculated.with, index),
                promised_false_negatives: promise.least_false_negatives(false_positives),
            });
        }
        points
    }

    fn join(&mut self, other: &RunCounts) {
        self.with.join(&other.with);
        self.without.join(&other.without);
        self.sizes.join(&other.sizes);
    }
}

/// Returns whether the first synopsis of a running sum has noise of more than one draw: its deviation is not that of one.
fn is_several_draws(release: &PlannedRelease, watched: &[WatchedKey]) -> bool {
    let Some(noise) = &release.series else {
        return false;
    };
    let fresh = noise.series.noise();
    #[expect(clippy::cast_precision_loss, reason = "compared to a few digits")]
    let unit = fresh.scale().units() as f64 / (1_u64 << noise.series.bits()) as f64;
    watched
        .iter()
        .any(|watched| (watched.law.scale / unit - 1.0).abs() > 1e-3)
}

/// The synopses of a window, as the worker draws them.
fn draw_synopses(
    plan: &ReleasePlan,
    window: &Window,
    terms: &WindowTerms,
    generator: &mut Generator,
) -> Result<Vec<ReleasedSynopsis>, pipeline::PipelineError> {
    let mut synopses = Vec::new();
    plan.release_window(window, terms, &|_| Ok(None), generator, &mut |released| {
        synopses.push(released);
        Ok(())
    })?;
    Ok(synopses)
}

/// The window of a stream, as the worker closes it.
pub(super) fn close_window(plan: &ReleasePlan, batches: &[Batch], window: Span) -> Window {
    let first = plan.rules.grid.span_of(plan.rules.grid.origin());
    let forms = plan
        .releases
        .iter()
        .map(|release| release.form.clone())
        .collect();
    let mut windows = WindowStore::new(plan.rules.clone(), forms, first.start, first, None);
    for batch in batches {
        windows.absorb_batch(batch);
    }
    loop {
        let closed = windows.close_next();
        if closed.span.start >= window.start {
            return closed;
        }
    }
}

/// The prices of a window for which nothing was spent before; `None` if it cannot be paid for.
pub(super) fn quote_window(plan: &ReleasePlan, window: Span) -> Option<WindowQuote> {
    let first = plan.rules.grid.span_of(plan.rules.grid.origin()).start;
    let beginning = LedgerBeginning {
        first_window: first,
        first_covered: first,
    };
    plan.quote_window(window, beginning, |_| plan.total.zero_of_kind())
}

pub(super) fn audit_terms(quoted: &WindowQuote, window: Span) -> WindowTerms {
    let entry = PaymentRow {
        id: "audit".to_owned(),
        sequence: 1,
    };
    WindowTerms {
        publish_at: window.end,
        entry,
        quoted: quoted.clone(),
    }
}
