//! Two replays of neighbouring streams: what differs, and how far the released values move.
//!
//! With the noise frozen a released value moves by just as much as the exact one. So exact values are compared, as whole grid
//! units, where noise meets them: on the lattice, in whitened coordinates, in counts of cells, of one pane. What left is then
//! held against that: it must move by what the exact values moved, brought into published form.
//!
//! A private choice may select another variant for a neighbour, and then another function with other noise is released: that
//! is allowed, it was paid for. So the law of the choice is held against what it is made from: the counts that a bandwidth is
//! chosen from move by at most their sensitivity, and the two scores of orders that move most, together, by at most theirs. The
//! exact values of every variant are compared, whichever was released; published values only where the choices are the same.

use std::collections::BTreeMap;
use std::ops::Range;

use super::found_names::FoundKeyRelease;
use super::found_tables::{AnnouncedLists, FoundTable, KeyChanges, TableComparison};
use super::observed::{Evaluation, PublishedBytes, ReplayObservations};
use super::pair::NeighbouringPair;
use super::shift::{distance_of, norm_of_changes, two_largest, value_changes};
use super::subject::AuditSubject;
use bernstream_synopsis::Norm;
use bernstream_synopsis::Synopsis;
use bernstream_synopsis::description::{Description, PanesKind};
use bernstream_synopsis::key_threshold::UNIT_GRAINS;
use bernstream_worker::pipeline::{PlannedRelease, ReleaseVariant};

/// A part of a release that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ComparedPart {
    /// The released values, in this variant.
    Values { variant: usize },
    /// The counts that a bandwidth is chosen from.
    Counts,
    /// The scores that an order is chosen from, in this variant.
    Scores { variant: usize },
    /// The number of different keys, where nobody listed them and there may be too many.
    DifferentKeys,
}

/// The distance that one window of a release moved, all keys together, in the norm of its noise, and the distance that it may.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReleaseShift {
    pub release: usize,
    pub part: ComparedPart,
    pub found: f64,
    pub declared: u64,
}

/// The differences between two replays.
#[derive(Clone, Debug, Default)]
pub struct ReplayDifference {
    /// Differences that the promise rules out, but for what moved too far.
    pub violations: Vec<String>,
    /// Releases that moved further than declared: under random differential privacy that may happen, with a stated probability.
    pub beyond: Vec<String>,
    /// Differences that it allows.
    pub shifts: Vec<ReleaseShift>,
    /// Tables of keys that nobody listed, and those of them whose rows could not be compared: other keys in one stream are other noise.
    pub found_tables: usize,
    pub uncompared_tables: usize,
}

/// The largest shift of a part, and the pair that it was found with.
#[derive(Clone, Debug, PartialEq)]
pub struct LargestShift {
    pub found: f64,
    pub declared: u64,
    pub pair: String,
}

impl LargestShift {
    /// Found as a part of declared.
    pub fn share_of_declared(&self) -> f64 {
        self.found / self.declared as f64
    }
}

/// The result of many pairs.
#[derive(Clone, Debug, Default)]
pub struct PairsReport {
    pub pairs: usize,
    /// Each with the name of its pair.
    pub violations: Vec<(String, String)>,
    /// Releases that moved further than declared, each with the name of its pair.
    pub beyond: Vec<(String, String)>,
    pub largest: BTreeMap<(usize, ComparedPart), LargestShift>,
    /// Pairs of tables of keys that nobody listed, and those of them whose rows could not be compared.
    pub found_tables: usize,
    pub uncompared_tables: usize,
}

impl PairsReport {
    pub fn add_pair(&mut self, pair: &NeighbouringPair, difference: ReplayDifference) {
        self.pairs += 1;
        self.found_tables += difference.found_tables;
        self.uncompared_tables += difference.uncompared_tables;
        let name = &pair.name;
        for violation in difference.violations {
            self.violations.push((name.clone(), violation));
        }
        for beyond in difference.beyond {
            self.beyond.push((name.clone(), beyond));
        }
        for shift in difference.shifts {
            self.keep_larger(
                (shift.release, shift.part),
                LargestShift {
                    found: shift.found,
                    declared: shift.declared,
                    pair: name.clone(),
                },
            );
        }
    }

    /// Adds what other pairs of the same subject came to.
    pub fn merge_report(&mut self, other: PairsReport) {
        self.pairs += other.pairs;
        self.found_tables += other.found_tables;
        self.uncompared_tables += other.uncompared_tables;
        self.violations.extend(other.violations);
        self.beyond.extend(other.beyond);
        for (place, largest) in other.largest {
            self.keep_larger(place, largest);
        }
    }

    fn keep_larger(&mut self, place: (usize, ComparedPart), found: LargestShift) {
        let largest = self.largest.entry(place).or_insert_with(|| found.clone());
        if found.share_of_declared() > largest.share_of_declared() {
            *largest = found;
        }
    }
}

/// Compares the replays of a pair.
pub fn compare_replays(
    subject: &AuditSubject<'_>,
    pair: &NeighbouringPair,
    with: &ReplayObservations,
    without: &ReplayObservations,
) -> ReplayDifference {
    let mut difference = ReplayDifference::default();
    difference.require_equal("how the worker ended", &with.stopped, &without.stopped);
    difference.require_equal("the log of the default level", &with.log, &without.log);
    difference.require_equal("the metrics at the end", &with.metrics, &without.metrics);
    difference.require_equal("what the source was asked", &with.asked, &without.asked);
    difference.require_equal("what the ledger claimed", &with.claimed, &without.claimed);
    difference.require_equal("the rows of the ledger", &with.rows, &without.rows);
    difference.require_equal(
        "the number of windows with noise",
        &with.windows.len(),
        &without.windows.len(),
    );
    difference.require_equal(
        "the number of messages",
        &with.published.len(),
        &without.published.len(),
    );
    difference.require_equal(
        "the number of evaluations",
        &with.evaluations.len(),
        &without.evaluations.len(),
    );
    if !difference.violations.is_empty() {
        return difference;
    }
    if with.published.len() != with.evaluations.len() {
        difference
            .violations
            .push("some evaluations were not published".to_owned());
        return difference;
    }
    let ends = with
        .windows
        .iter()
        .skip(1)
        .map(|window| window.evaluations)
        .chain([with.evaluations.len()]);
    let mut past = EarlierWindows::default();
    for ((window, other), end) in with.windows.iter().zip(&without.windows).zip(ends) {
        difference.require_equal("the metrics before a draw", &window.metrics, &other.metrics);
        difference.require_equal(
            "the evaluations before a draw",
            &window.evaluations,
            &other.evaluations,
        );
        let with = released_in(with, window.evaluations..end);
        let without = released_in(without, window.evaluations..end);
        let is_chosen_alike = difference.compare_window(subject, pair, &with, &without, &mut past);
        if is_chosen_alike {
            difference.require_equal("the number of random words", &window.words, &other.words);
        }
    }
    difference
}

/// A release whose keys nobody listed, in one window of two streams.
struct FoundEvaluation<'a> {
    release: &'a PlannedRelease,
    evaluations: [&'a Evaluation; 2],
    synopses: [&'a Synopsis; 2],
}

/// One evaluation and the message that it led to.
struct ReleasedMessage<'a> {
    evaluation: &'a Evaluation,
    message: &'a PublishedBytes,
}

fn released_in(observed: &ReplayObservations, places: Range<usize>) -> Vec<ReleasedMessage<'_>> {
    let evaluations = observed.evaluations.get(places.clone()).unwrap_or_default();
    let published = observed.published.get(places).unwrap_or_default();
    let pairs = evaluations.iter().zip(published);
    pairs
        .map(|(evaluation, message)| ReleasedMessage {
            evaluation,
            message,
        })
        .collect()
}

fn evaluations_of<'a>(all: &[ReleasedMessage<'a>], release: usize) -> Vec<&'a Evaluation> {
    let evaluations = all.iter().map(|released| released.evaluation);
    evaluations
        .filter(|evaluation| evaluation.release == release)
        .collect()
}

/// Changes and lists of earlier windows, which later ones are compared by.
#[derive(Default)]
struct EarlierWindows {
    shifts: EarlierShifts,
    announced: AnnouncedLists,
}

/// The changes of earlier windows, for sums over several of them, by release and key.
#[derive(Default)]
struct EarlierShifts(BTreeMap<(usize, String), Vec<Vec<i128>>>);

impl ReplayDifference {
    fn require_equal<T: PartialEq + std::fmt::Debug>(&mut self, what: &str, with: &T, without: &T) {
        if with != without {
            let with = format!("{with:?}");
            let without = format!("{without:?}");
            let start = with
                .chars()
                .zip(without.chars())
                .take_while(|(a, b)| a == b)
                .count()
                .saturating_sub(40);
            let with: String = with.chars().skip(start).take(200).collect();
            let without: String = without.chars().skip(start).take(200).collect();
            self.violations
                .push(format!("{what}: ...{with}... and not ...{without}..."));
        }
    }

    /// Compares one window; returns whether all its private choices are the same.
    fn compare_window(
        &mut self,
        subject: &AuditSubject<'_>,
        pair: &NeighbouringPair,
        with: &[ReleasedMessage<'_>],
        without: &[ReleasedMessage<'_>],
        past: &mut EarlierWindows,
    ) -> bool {
        let mut is_chosen_alike = true;
        for (place, release) in subject.plan.releases.iter().enumerate() {
            let with = evaluations_of(with, place);
            self.compare_exact_values(place, release, &with, &evaluations_of(without, place));
        }
        for (with, without) in with.iter().zip(without) {
            let evaluation = with.evaluation;
            let other = without.evaluation;
            let sent = with.message;
            let other_sent = without.message;
            let Some(release) = subject.plan.releases.get(evaluation.release) else {
                continue;
            };
            self.require_equal("the order of releases", &evaluation.release, &other.release);
            self.require_equal("the key of a message", &sent.key, &other_sent.key);
            self.require_equal(
                "the headers of a message",
                &sent.headers,
                &other_sent.headers,
            );
            let (Ok(one), Ok(two)) = (
                Synopsis::decode_message(&sent.bytes),
                Synopsis::decode_message(&other_sent.bytes),
            ) else {
                self.violations
                    .push("a message cannot be read again".to_owned());
                continue;
            };
            if evaluation.found.is_some() || other.found.is_some() {
                let tables = FoundEvaluation {
                    release,
                    evaluations: [evaluation, other],
                    synopses: [&one, &two],
                };
                let lists = &mut past.announced;
                is_chosen_alike &= self.compare_found_keys(pair, subject, &tables, lists);
                continue;
            }
            let moved = release_shift(evaluation, other);
            if moved.iter().any(|shift| *shift != 0)
                && !is_charged(pair, subject, one.description())
            {
                self.violations.push(format!(
                    "{} moved in the window from {}, which charges no block of the unit",
                    one.description().release,
                    one.description().window.start
                ));
            }
            if evaluation.variant != other.variant
                || one.description().choices != two.description().choices
            {
                // Everything after a choice may depend on it: the noise that follows in this window is another one.
                is_chosen_alike = false;
            }
            if !is_chosen_alike {
                continue;
            }
            self.require_equal(
                "the length of a message",
                &sent.bytes.len(),
                &other_sent.bytes.len(),
            );
            self.require_equal(
                "the description of a synopsis",
                one.description(),
                two.description(),
            );
            let expected =
                past.shifts
                    .expected_shift(evaluation.release, &moved, one.description());
            self.compare_published(release, evaluation.variant, &expected, &one, &two);
        }
        is_chosen_alike
    }

    /// Compares the tables of keys that nobody listed; returns whether the same random numbers were the same noise.
    fn compare_found_keys(
        &mut self,
        pair: &NeighbouringPair,
        subject: &AuditSubject<'_>,
        tables: &FoundEvaluation<'_>,
        lists: &mut AnnouncedLists,
    ) -> bool {
        let FoundEvaluation {
            release,
            evaluations: [with, without],
            synopses: [one, two],
        } = tables;
        let place = with.release;
        let window = one.description().window;
        let [announced, other_announced] = lists.announced_at(place, window.start);
        let with = with.found.as_ref();
        let with = with.and_then(|totals| FoundTable::new(totals, &announced, one));
        let without = without.found.as_ref();
        let without = without.and_then(|totals| FoundTable::new(totals, &other_announced, two));
        let (Some(with), Some(without)) = (with, without) else {
            self.violations
                .push("a table does not say how its keys were found".to_owned());
            return false;
        };
        let changes = KeyChanges::between(&with, &without);
        let name = &release.description().release;
        self.record_shift(
            release,
            ReleaseShift {
                release: place,
                part: ComparedPart::Values { variant: 0 },
                found: changes.norm() as f64,
                declared: release.variants.first().change.0,
            },
        );
        if changes.largest() > u128::from(UNIT_GRAINS) {
            let found = changes.largest();
            self.beyond.push(format!(
                "{name}: the number of a key moved by {found} grid units, declared are {UNIT_GRAINS}"
            ));
        }
        if let Some(found) = FoundKeyRelease::of_release(release)
            && found.search.search.overfull_test().is_some()
        {
            self.record_shift(
                release,
                ReleaseShift {
                    release: place,
                    part: ComparedPart::DifferentKeys,
                    found: changes.distinct as f64,
                    declared: found.counting.max_keys.into(),
                },
            );
        }
        if !changes.by_key.is_empty() && !is_charged(pair, subject, one.description()) {
            self.violations.push(format!(
                "{name} moved in the window from {}, which charges no block of the unit",
                window.start
            ));
        }
        let comparison = TableComparison::of_tables(&with, &without, &changes);
        self.found_tables += 1;
        self.uncompared_tables += usize::from(!comparison.is_drawn_alike);
        self.violations.extend(comparison.violations);
        lists.add_tables(place, [&with, &without]);
        comparison.is_drawn_alike
    }

    /// Compares the exact values of a release in one window.
    fn compare_exact_values(
        &mut self,
        place: usize,
        release: &PlannedRelease,
        with: &[&Evaluation],
        without: &[&Evaluation],
    ) {
        if with.is_empty() {
            return;
        }
        for (index, variant) in release.variants.iter().enumerate() {
            let values = with.iter().zip(without).filter_map(|(one, other)| {
                let other = other.values.get(index)?;
                Some(distance_of(variant, one.values.get(index)?, other))
            });
            self.record_shift(
                release,
                ReleaseShift {
                    release: place,
                    part: ComparedPart::Values { variant: index },
                    found: values.sum(),
                    declared: variant.change.0,
                },
            );
            if let Some(order) = &variant.order {
                let scores = with.iter().zip(without).filter_map(|(one, other)| {
                    let other = other.scores.get(index)?.as_ref()?;
                    Some(two_largest(one.scores.get(index)?.as_ref()?, other))
                });
                self.record_shift(
                    release,
                    ReleaseShift {
                        release: place,
                        part: ComparedPart::Scores { variant: index },
                        found: scores.sum(),
                        declared: order.change().0,
                    },
                );
            }
        }
        if let Some(bandwidth) = &release.bandwidth {
            let counts = with.iter().zip(without).filter_map(|(one, other)| {
                let change = value_changes(one.counts.as_ref()?, other.counts.as_ref()?);
                Some(norm_of_changes(Norm::One, &change))
            });
            self.record_shift(
                release,
                ReleaseShift {
                    release: place,
                    part: ComparedPart::Counts,
                    found: counts.sum(),
                    declared: bandwidth.count_sensitivity().0,
                },
            );
        }
    }

    /// Records how far a part of a release moved, and whether it may.
    fn record_shift(&mut self, release: &PlannedRelease, shift: ReleaseShift) {
        let ReleaseShift {
            part,
            found,
            declared,
            ..
        } = shift;
        // Roots of whole numbers are rounded.
        if found > declared as f64 * (1.0 + 1e-12) {
            let name = &release.description().release;
            self.beyond.push(format!(
                "{name}, {part:?}: moved by {found} grid units, declared are {declared}"
            ));
        }
        if found > 0.0 {
            self.shifts.push(shift);
        }
    }

    /// Requires that the published values move by what the exact values moved.
    fn compare_published(
        &mut self,
        release: &PlannedRelease,
        variant: usize,
        moved: &[i128],
        one: &Synopsis,
        two: &Synopsis,
    ) {
        let variant: &ReleaseVariant = release.variants.get(variant);
        let natural = moved
            .iter()
            .map(|shift| *shift as f64 * variant.scaling.unit())
            .collect();
        let expected = variant.target.publish(natural);
        let mut largest: f64 = 0.0;
        for value in one.values().iter().chain(two.values()).chain(&expected) {
            largest = largest.max(value.abs());
        }
        let mut is_off = expected.len() != one.values().len();
        for ((a, b), expected) in one.values().iter().zip(two.values()).zip(&expected) {
            is_off |= ((a - b) - expected).abs() > 1e-9 * largest;
        }
        if is_off {
            let what = format!(
                "{}: published values do not move as the exact ones",
                one.description().release
            );
            self.violations.push(what);
        }
    }
}

impl EarlierShifts {
    /// The changes that the values of a synopsis must show: those of its window, or the sum over its panes.
    fn expected_shift(
        &mut self,
        release: usize,
        moved: &[i128],
        description: &Description,
    ) -> Vec<i128> {
        let key = (release, description.key.clone().unwrap_or_default());
        let Some(panes) = description.panes.filter(|panes| panes.step.is_some()) else {
            return moved.to_vec();
        };
        let all = self.0.entry(key).or_default();
        if panes.step == Some(0) {
            all.clear();
        }
        all.push(moved.to_vec());
        let count = match panes.over {
            PanesKind::Hopping(count) => count as usize,
            PanesKind::Cumulative => usize::MAX,
        };
        let mut sum = vec![0; moved.len()];
        for pane in all.iter().rev().take(count) {
            sum = sum.iter().zip(pane).map(|(a, b)| a + b).collect();
        }
        sum
    }
}

/// Returns whether a synopsis charges a block in which the unit has a row.
fn is_charged(
    pair: &NeighbouringPair,
    subject: &AuditSubject<'_>,
    description: &Description,
) -> bool {
    let mut blocks = pair
        .times
        .iter()
        .map(|time| subject.plan.blocks.span_of(*time));
    blocks.any(|block| {
        let mut charges = description.privacy.blocks.iter();
        charges.any(|charge| charge.start == block.start && charge.end == block.end)
    })
}

/// The changes of the values of the released variant.
fn release_shift(one: &Evaluation, other: &Evaluation) -> Vec<i128> {
    if let Some(other) = other.values.get(one.variant)
        && let Some(one) = one.values.get(one.variant)
    {
        return value_changes(one, other);
    }
    Vec::new()
}
