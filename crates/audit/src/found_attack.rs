//! Attacks on keys that nobody listed: small windows of two neighbouring streams, released many times, and the best attacker, who knows
//! which keys the unit has.
//!
//! A unit is alone in its keys, or the last in announced ones, or one more near the threshold. The attacker sees the table; its test is
//! that of the likelihood ratio, as in [`trade_off`](super::trade_off). Beside it two events are counted that no law needs: that a key
//! that only one unit has is named, which delta bounds, and that a row is there that neither stream can lead to.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Instant;

use rand::SeedableRng;
use rand::rngs::ChaCha12Rng;

use super::attacked::{AttackReport, DetectableScale, ErrorRatePoint};
use super::batches::decode_batches;
use super::deadline::Deadline;
use super::evidence::{AuditTest, Verdict};
use super::found_law::{AttackedKey, CERTAIN, SearchLaw};
use super::found_names::{FoundKeyRelease, KeyKind, key_bytes};
use super::looks::SequentialTest;
use super::messages::{InputMessage, InputRow};
use super::promise::PromisedGuarantees;
use super::samplers::generator_key;
use super::stage::BackgroundStream;
use super::subject::AuditSubject;
use super::tally::ThresholdCounts;
use super::threads::in_parts;
use super::trade_off::{
    AttackError, audit_terms, close_window, constant_answer, part_at, quote_window, shown_epsilon,
};
use bernstream_noise::key_search::SelectedKey;
use bernstream_noise::noise::Generator;
use bernstream_release::source::Batch;
use bernstream_synopsis::description::PrivacyDescription;
use bernstream_synopsis::grid::Span;
use bernstream_synopsis::key_threshold::UNIT_GRAINS;
use bernstream_synopsis::price::Price;
use bernstream_synopsis::{Basis, NoiseDistribution};
use bernstream_worker::pipeline::{
    AnnouncedKeys, PlannedKeySearch, PlannedRelease, ReleasePlan, ReleaseVariant, ReleasedSynopsis,
    WindowQuote,
};

/// The first look.
const FIRST: u64 = 400;
/// Rows of a window, at most: larger thresholds are not come near.
const MOST_ROWS: u64 = 20_000;
/// Draws of the law of the declared noise, and of each part of its scale.
const DRAWS: u64 = 200_000;
const DRAWS_OF_A_FACTOR: u64 = 20_000;
/// Distances at which the likelihood ratio is looked at, for each of the two streams.
const THRESHOLDS: usize = 200;
/// The parts of the scale at which it is asked whether the promise would break.
const FACTORS: [f64; 12] = [
    0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1,
];

/// Two streams of one window that differ by a unit, and the list before it.
pub struct KeyScene {
    pub name: String,
    with: Vec<InputMessage>,
    without: Vec<InputMessage>,
    window: Span,
    keys: Vec<AttackedKey>,
}

impl KeyScene {
    /// All scenes of a release; none where its keys are listed.
    pub fn scenes_of_release(subject: &AuditSubject<'_>, place: usize) -> Vec<KeyScene> {
        let release = subject.plan.releases.get(place);
        let Some(found) = release.and_then(FoundKeyRelease::of_release) else {
            return Vec::new();
        };
        let windows = subject.replayed_windows();
        let [Some(first), second] = [windows.first(), windows.get(1)] else {
            return Vec::new();
        };
        let own = found.keys(subject, KeyKind::Own, found.most_keys());
        let mut scenes = vec![KeyScene::of_counts(
            subject,
            "the only unit of its keys",
            *first,
            &own,
            KeyNumbers {
                others: 0,
                is_announced: false,
            },
        )];
        if let Some(second) = second {
            scenes.push(KeyScene::of_counts(
                subject,
                "the only unit of announced keys",
                *second,
                &own,
                KeyNumbers {
                    others: 0,
                    is_announced: true,
                },
            ));
        }
        let others = found.threshold_units();
        if others.saturating_mul(own.len() as u64) <= MOST_ROWS {
            scenes.push(KeyScene::of_counts(
                subject,
                "one more unit of keys near the threshold",
                *first,
                &own,
                KeyNumbers {
                    others,
                    is_announced: false,
                },
            ));
        }
        scenes.retain(|scene| !scene.keys.is_empty());
        scenes
    }

    /// A unit with these keys, each of which so many others have.
    fn of_counts(
        subject: &AuditSubject<'_>,
        name: &str,
        window: Span,
        keys: &[String],
        numbers: KeyNumbers,
    ) -> Self {
        let mut rows = Vec::new();
        for unit in 0..numbers.others {
            rows.extend(rows_of_unit(window, keys, &format!("other {unit}")));
        }
        let without = rows.clone();
        rows.extend(rows_of_unit(window, keys, "neighbour"));
        let attacked = keys.iter().map(|key| AttackedKey {
            key: key.clone(),
            with: numbers.others + 1,
            without: numbers.others,
            is_announced: numbers.is_announced,
        });
        let stamp = BackgroundStream::time_in_window(window, 0.6);
        let [with, without] = [rows, without].map(|rows| {
            let values = subject.columns.values.len();
            let mut all = Vec::new();
            for row in rows {
                all.push(InputRow {
                    values: vec![Some(0.0); values],
                    ..row
                });
            }
            vec![InputMessage::from_rows(0, stamp, all)]
        });
        KeyScene {
            name: name.to_owned(),
            with,
            without,
            window,
            keys: attacked.collect(),
        }
    }
}

/// The number of others that have a key, and whether it was announced before.
#[derive(Clone, Copy)]
struct KeyNumbers {
    others: u64,
    is_announced: bool,
}

fn rows_of_unit(window: Span, keys: &[String], unit: &str) -> Vec<InputRow> {
    let mut rows = Vec::new();
    for key in keys {
        rows.push(InputRow {
            time: Some(BackgroundStream::time_in_window(window, 0.4)),
            key: key_bytes(key),
            unit: Some(unit.as_bytes().into()),
            values: Vec::new(),
        });
    }
    rows
}

/// An attack on the keys of one release.
pub struct KeyAttack {
    plan: ReleasePlan,
    with: Vec<Batch>,
    without: Vec<Batch>,
    window: Span,
    quoted: WindowQuote,
    keys: Vec<AttackedKey>,
    /// The list before the window, as a ledger has it.
    stored: Option<Vec<u8>>,
    law: SearchLaw,
    max_keys: u32,
    privacy: PrivacyDescription,
    name: String,
}

impl KeyAttack {
    /// The release at `place` of the plan of a subject, in a scene.
    ///
    /// # Errors
    ///
    /// If a stream cannot be written, nothing is paid for, or the release does not find its keys.
    pub fn new(
        subject: &AuditSubject<'_>,
        place: usize,
        scene: KeyScene,
    ) -> Result<Self, AttackError> {
        let release = subject.plan.releases.get(place);
        let release = release.ok_or(AttackError::NoChange)?;
        let found = FoundKeyRelease::of_release(release).ok_or(AttackError::NoChange)?;
        let plan = ReleasePlan {
            releases: vec![without_described_keys(release)],
            ..subject.plan.clone()
        };
        let quoted = quote_window(&plan, scene.window).ok_or(AttackError::Unpaid)?;
        let selection = found.search.search.selection();
        let stored = stored_list(found.search, &plan, &scene)?;
        Ok(KeyAttack {
            with: decode_batches(subject, &scene.with)?,
            without: decode_batches(subject, &scene.without)?,
            window: scene.window,
            stored,
            law: SearchLaw {
                scale: selection.scale().units(),
                threshold: selection.threshold(),
            },
            max_keys: found.counting.max_keys,
            privacy: release.description().privacy.clone(),
            name: release.description().release.clone(),
            keys: scene.keys,
            quoted,
            plan,
        })
    }

    /// Releases windows until `deadline`, `most` at most, and at least until a first look unless it is stopped; `seed` and `number`
    /// determine every draw. Ends early only with a test that fails.
    ///
    /// # Errors
    ///
    /// If the worker could not release a window, or if the deadline is stopped before a first look.
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
        let calculated = self.calculate_curve(seed ^ number, alarm);
        // A third of the alarms is for the law that it is held against, and one for each of the two streams.
        let mut looks = SequentialTest::new(alarm / 3.0, FIRST);
        let mut seen = SeenTables::new(&calculated.thresholds);
        let mut done = 0;
        loop {
            let parts = in_parts(done..looks.runs(), |runs| {
                let mut part = SeenTables::new(&calculated.thresholds);
                for run in runs {
                    if done > 0 && deadline.is_stopped() {
                        return Err(AttackError::Stopped);
                    }
                    self.release_both(seed, number, run, &mut part)?;
                }
                Ok(part)
            });
            let parts: Result<Vec<_>, AttackError> = parts.into_iter().collect();
            let is_stopped = matches!(parts, Err(AttackError::Stopped));
            if is_stopped {
                // What was released since the last look does not count.
                let before = SequentialTest::new(alarm / 3.0, FIRST);
                let looks = look_at(before, done);
                return Ok(self.report(&seen, &calculated, &looks, alarm, true, started));
            }
            parts?.iter().for_each(|part| seen.join(part));
            done = looks.runs();
            let is_over = deadline.is_over() || looks.next_look().runs() > most;
            let found = self.report(&seen, &calculated, &looks, alarm, is_over, started);
            // What is calculated fails whatever is drawn.
            let mut drawn = found.tests.iter().filter(|test| test.draws > 0);
            if is_over || drawn.any(AuditTest::has_failed) {
                return Ok(found);
            }
            looks = looks.next_look();
        }
    }

    /// Releases one window of each stream.
    fn release_both(
        &self,
        seed: u64,
        number: u64,
        run: u64,
        seen: &mut SeenTables,
    ) -> Result<(), AttackError> {
        let generator = Generator::frozen(generator_key([seed, 6, number, run]));
        let with = self.release_one(&self.with, generator)?;
        let generator = Generator::frozen(generator_key([seed, 7, number, run]));
        let without = self.release_one(&self.without, generator)?;
        let is_alone = self.keys.iter().all(|key| key.without == 0);
        seen.named += u64::from(is_alone && with.names_new);
        for table in [&with, &without] {
            seen.impossible += u64::from(table.loss.is_none());
        }
        seen.with.add(with.loss.unwrap_or(CERTAIN));
        seen.without.add(without.loss.unwrap_or(-CERTAIN));
        Ok(())
    }

    /// Releases one window of a stream.
    fn release_one(
        &self,
        batches: &[Batch],
        mut generator: Generator,
    ) -> Result<SeenTable, AttackError> {
        let window = close_window(&self.plan, batches, self.window);
        let terms = audit_terms(&self.quoted, self.window);
        let mut tables: Vec<ReleasedSynopsis> = Vec::new();
        self.plan.release_window(
            &window,
            &terms,
            &|_| Ok(self.stored.clone()),
            &mut generator,
            &mut |released| {
                tables.push(released);
                Ok(())
            },
        )?;
        let mut rows = BTreeMap::new();
        let mut is_overfull = false;
        let mut names_new = false;
        if let Some(table) = tables.first()
            && let Basis::Keys(basis) = &table.description.basis
            && let Some(found) = &basis.found
        {
            is_overfull = found.is_overfull();
            names_new = found.new_keys() > 0;
            for (key, count) in basis.keys.iter().zip(table.noisy.values()) {
                rows.insert(key.as_str(), *count);
            }
        }
        let mut loss = (!is_overfull).then_some(0.0);
        for key in &self.keys {
            let row = rows.remove(key.key.as_str());
            loss = match (loss, self.law.loss(key, row)) {
                (Some(sum), Some(more)) => Some((sum + more).clamp(-CERTAIN, CERTAIN)),
                _ => None,
            };
        }
        // No other key has a unit.
        if !rows.is_empty() {
            loss = None;
        }
        Ok(SeenTable { loss, names_new })
    }

    /// Losses of simulated tables, of the stream with the unit or without it, where the noise has this part of its scale.
    fn simulate_losses(&self, seed: u64, draws: u64, factor: f64, has_unit: bool) -> Vec<f64> {
        let parts = in_parts(0..draws, |range| {
            let stream = u64::from(has_unit);
            let mut rng = ChaCha12Rng::from_seed(generator_key([seed, 8 + stream, range.start, 0]));
            let mut losses = Vec::new();
            for _ in range {
                let mut sum: f64 = 0.0;
                for key in &self.keys {
                    let units = if has_unit { key.with } else { key.without };
                    let row = self
                        .law
                        .simulate_row(units, key.is_announced, factor, &mut rng);
                    // Weaker noise is possible in the declared law.
                    let loss = self.law.loss(key, row).unwrap_or(0.0);
                    sum = (sum + loss).clamp(-CERTAIN, CERTAIN);
                }
                losses.push(sum);
            }
            losses
        });
        parts.into_iter().flatten().collect()
    }

    fn calculate_curve(&self, seed: u64, alarm: f64) -> CalculatedLosses {
        let [with, without] =
            [true, false].map(|has_unit| self.simulate_losses(seed, DRAWS, 1.0, has_unit));
        let mut thresholds = Vec::new();
        for losses in [&with, &without] {
            let mut sorted = losses.clone();
            sorted.sort_by(f64::total_cmp);
            let step = (sorted.len() / THRESHOLDS).max(1);
            let places = (0..sorted.len()).step_by(step);
            thresholds.extend(places.filter_map(|place| middle_above(&sorted, place)));
            // What comes last, and hardly ever.
            thresholds.extend(sorted.last().and_then(|last| {
                let below = sorted.partition_point(|x| x < last).checked_sub(1)?;
                middle_above(&sorted, below)
            }));
        }
        thresholds.push(CERTAIN / 2.0);
        thresholds.push(-CERTAIN / 2.0);
        let thresholds = ThresholdCounts::new(thresholds).thresholds().to_vec();
        CalculatedLosses {
            with: parts_up_to(&thresholds, &with),
            without: parts_up_to(&thresholds, &without),
            error: SequentialTest::new(alarm / 3.0, DRAWS).confidence_band(DRAWS),
            thresholds,
        }
    }

    fn report(
        &self,
        seen: &SeenTables,
        calculated: &CalculatedLosses,
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
            scale = self.scale_that_breaks(calculated, &promise, 2.0 * band);
        }
        let allowed = band + calculated.error;
        let mut tests = vec![
            AuditTest {
                what: "the attacker's error rates are no lower than the promise allows".to_owned(),
                verdict: Verdict::from_result(worst <= 0.0),
                difference: (worst + band).max(0.0),
                allowed: band,
                draws: runs,
                false_alarm: alarm,
                fails_at: scale,
            },
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
            AuditTest::of_distance(
                "no table has a row that neither stream can lead to, or lacks one that both must",
                part_of(seen.impossible, 2 * runs),
                0.0,
                2 * runs,
                0.0,
            ),
        ];
        tests.extend(self.naming_test(seen, looks, alarm));
        tests.push(self.threshold_cost());
        tests.push(self.epsilon_cost());
        let detects = scale.map(|scale| DetectableScale {
            scale,
            cost: None,
            of: None,
        });
        let mut curve = vec![constant_answer(&promise, 1.0)];
        curve.extend(points);
        curve.push(constant_answer(&promise, 0.0));
        AttackReport {
            release: self.name.clone(),
            promised: PromisedGuarantees::in_words(&self.privacy),
            window: self.window,
            noise: NoiseDistribution::DiscreteLaplace,
            values: self.keys.len(),
            change_in_scales: self.change_in_scales(),
            windows: runs,
            seconds: started.elapsed().as_secs_f64(),
            tests,
            epsilon_at_least,
            detects,
            curve,
        }
    }

    /// The 1-norm of what the unit changes, as a part of the scale.
    #[expect(clippy::cast_precision_loss, reason = "a figure to show")]
    fn change_in_scales(&self) -> f64 {
        (self.keys.len() as u64 * UNIT_GRAINS) as f64 / self.law.scale as f64
    }

    /// The delta of the price: what the search was made for does not count.
    fn promised_delta(&self) -> f64 {
        match self.privacy.price {
            Price::Approximate { delta, .. } => delta.to_f64(),
            _ => 0.0,
        }
    }

    /// The event that a key that only one unit has is named, in windows with the unit: no more often than delta. By the inequality of
    /// Chernoff, `P(a part q or more of n) <= exp(-n KL(q, delta))`.
    fn naming_test(
        &self,
        seen: &SeenTables,
        looks: &SequentialTest,
        alarm: f64,
    ) -> Option<AuditTest> {
        if self
            .keys
            .iter()
            .any(|key| key.without > 0 || key.is_announced)
        {
            return None;
        }
        let runs = seen.with.total();
        let named = part_of(seen.named, runs);
        let allowed = self.promised_delta();
        let most = looks.largest_part(runs, allowed);
        Some(AuditTest {
            what: "keys that only one unit has are named no more often than delta".to_owned(),
            verdict: Verdict::from_result(named <= most),
            difference: (named - allowed).max(0.0),
            allowed: most - allowed,
            draws: runs,
            false_alarm: alarm,
            fails_at: None,
        })
    }

    /// The probability that a key of one unit is found, by the declared law: at most its part of delta. That is the most that a unit
    /// more or less of any key costs beside epsilon.
    fn threshold_cost(&self) -> AuditTest {
        let promised = self.promised_delta() / f64::from(self.max_keys.max(1));
        let found = self.law.chance_found(1);
        AuditTest {
            what: "the threshold costs no more of delta than there is for a key".to_owned(),
            verdict: Verdict::from_result(found <= promised * (1.0 + 1e-9)),
            difference: found,
            allowed: promised,
            draws: 0,
            false_alarm: 0.0,
            fails_at: None,
        }
    }

    /// The epsilon of a unit in as many keys as count.
    #[expect(clippy::cast_precision_loss, reason = "a figure to show")]
    fn epsilon_cost(&self) -> AuditTest {
        let change = u64::from(self.max_keys) * UNIT_GRAINS;
        let found = change as f64 / self.law.scale as f64;
        let promised = match self.privacy.price {
            Price::Approximate { epsilon, .. } => epsilon.to_f64(),
            _ => 0.0,
        };
        AuditTest {
            what: "a unit in as many keys as count costs no more epsilon than the price".to_owned(),
            verdict: Verdict::from_result(found <= promised * (1.0 + 1e-9)),
            difference: found,
            allowed: promised,
            draws: 0,
            false_alarm: 0.0,
            fails_at: None,
        }
    }

    /// The largest part of the scale, of some, at which the error rates would break the promise by more than chance allows.
    fn scale_that_breaks(
        &self,
        calculated: &CalculatedLosses,
        promise: &PromisedGuarantees,
        by: f64,
    ) -> Option<f64> {
        FACTORS.into_iter().find(|factor| {
            let [with, without] = [true, false].map(|has_unit| {
                let losses = self.simulate_losses(5, DRAWS_OF_A_FACTOR, *factor, has_unit);
                parts_up_to(&calculated.thresholds, &losses)
            });
            let mut pairs = with.iter().zip(&without);
            pairs.any(|(negatives, without)| {
                let positives = 1.0 - without;
                promise.least_false_negatives(positives + by) > negatives + by
            })
        })
    }
}

/// The release without the keys of its largest table in its descriptions: every window would copy them, and has keys of its own.
fn without_described_keys(release: &PlannedRelease) -> PlannedRelease {
    let variants = release.variants.try_map(|variant| {
        let descriptions = variant.descriptions.try_map(|description| {
            let mut description = description.clone();
            if let Basis::Keys(basis) = &mut description.basis {
                basis.keys = Vec::new();
            }
            Ok::<_, Infallible>(description)
        });
        let Ok(descriptions) = descriptions;
        Ok::<_, Infallible>(ReleaseVariant {
            descriptions,
            ..variant.clone()
        })
    });
    let Ok(variants) = variants;
    PlannedRelease {
        variants,
        ..release.clone()
    }
}

/// The look at which there were so many runs.
fn look_at(first: SequentialTest, runs: u64) -> SequentialTest {
    let mut looks = first;
    while looks.runs() < runs {
        looks = looks.next_look();
    }
    looks
}

/// The list that the window before a scene leaves: the keys of the scene, where they are announced.
fn stored_list(
    search: &PlannedKeySearch,
    plan: &ReleasePlan,
    scene: &KeyScene,
) -> Result<Option<Vec<u8>>, AttackError> {
    let mut rows = Vec::new();
    for key in scene.keys.iter().filter(|key| key.is_announced) {
        rows.push(SelectedKey {
            key: key.key.clone(),
            was_announced: false,
            is_above: true,
        });
    }
    if rows.is_empty() {
        return Ok(None);
    }
    let before = plan.rules.grid.span_of(plan.rules.grid.origin());
    let empty = AnnouncedKeys::from_stored(None, &search.identity)?;
    let list = empty.after_window(before, &rows, search.keep);
    Ok(Some(list.to_stored()))
}

/// The parts of the numbers that are at most each threshold.
fn parts_up_to(thresholds: &[f64], numbers: &[f64]) -> Vec<f64> {
    let mut counts = ThresholdCounts::new(thresholds.to_vec());
    numbers.iter().for_each(|number| counts.add(*number));
    counts.parts_up_to()
}

/// The middle between a number in a sorted list and the next one that is larger.
fn middle_above(sorted: &[f64], place: usize) -> Option<f64> {
    let low = *sorted.get(place)?;
    let next = sorted.partition_point(|x| *x <= low + 1e-9 * (1.0 + low.abs()));
    Some(f64::midpoint(low, *sorted.get(next)?))
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
fn part_of(count: u64, all: u64) -> f64 {
    count as f64 / all.max(1) as f64
}

/// Observation of the attacker in one window: `None` where the table is one that neither stream can lead to.
struct SeenTable {
    loss: Option<f64>,
    names_new: bool,
}

/// The law of the log likelihood ratio at some thresholds.
struct CalculatedLosses {
    thresholds: Vec<f64>,
    with: Vec<f64>,
    without: Vec<f64>,
    /// The largest error of these probabilities.
    error: f64,
}

/// The counts of all runs.
struct SeenTables {
    with: ThresholdCounts,
    without: ThresholdCounts,
    /// Windows with the unit in which a key was named that only it has.
    named: u64,
    /// Tables that neither stream can lead to.
    impossible: u64,
}

impl SeenTables {
    fn new(thresholds: &[f64]) -> Self {
        SeenTables {
            with: ThresholdCounts::new(thresholds.to_vec()),
            without: ThresholdCounts::new(thresholds.to_vec()),
            named: 0,
            impossible: 0,
        }
    }

    fn join(&mut self, other: &SeenTables) {
        self.with.join(&other.with);
        self.without.join(&other.without);
        self.named += other.named;
        self.impossible += other.impossible;
    }

    /// The error rates of the attacker at each threshold.
    fn points(
        &self,
        calculated: &CalculatedLosses,
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
}
