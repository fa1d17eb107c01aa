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

use super::observed::{Evaluation, Observed, Published};
use super::pair::Pair;
use super::shift::{changes, norm, size, two_largest};
use super::subject::Subject;
use bernstream_noise::Exact;
use bernstream_synopsis::Norm;
use bernstream_synopsis::Synopsis;
use bernstream_synopsis::description::{Description, WindowKind};
use bernstream_worker::pipeline::{Release, ReleaseVariant};

/// What is compared of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The released values, in this variant.
    Values { variant: usize },
    /// What the choice of a bandwidth is made from.
    Counts,
    /// What the choice of an order is made from, in this variant.
    Scores { variant: usize },
}

/// How far one window of a release moved, all keys together, in the norm of its noise, and how far it may.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shift {
    pub release: usize,
    pub part: Part,
    pub found: f64,
    pub declared: u64,
}

/// What differs between two replays.
#[derive(Clone, Debug, Default)]
pub struct Difference {
    /// What the promise rules out, but for what moved too far.
    pub violations: Vec<String>,
    /// What moved further than declared: under random differential privacy that may happen, with a stated probability.
    pub beyond: Vec<String>,
    /// What it allows.
    pub shifts: Vec<Shift>,
}

/// The largest shift of a part, and the pair that it was found with.
#[derive(Clone, Debug, PartialEq)]
pub struct Largest {
    pub found: f64,
    pub declared: u64,
    pub pair: String,
}

impl Largest {
    /// Found as a part of declared.
    pub fn part(&self) -> f64 {
        self.found / self.declared as f64
    }
}

/// What many pairs came to.
#[derive(Clone, Debug, Default)]
pub struct Report {
    pub pairs: usize,
    /// Each with the name of its pair.
    pub violations: Vec<(String, String)>,
    /// What moved further than declared, each with the name of its pair.
    pub beyond: Vec<(String, String)>,
    pub largest: BTreeMap<(usize, Part), Largest>,
}

impl Report {
    pub fn add(&mut self, pair: &Pair, difference: Difference) {
        self.pairs += 1;
        let name = || pair.name.clone();
        self.violations.extend(
            difference
                .violations
                .into_iter()
                .map(|violation| (name(), violation)),
        );
        self.beyond
            .extend(difference.beyond.into_iter().map(|beyond| (name(), beyond)));
        for Shift {
            release,
            part,
            found,
            declared,
        } in difference.shifts
        {
            self.enter(
                (release, part),
                Largest {
                    found,
                    declared,
                    pair: name(),
                },
            );
        }
    }

    /// Adds what other pairs of the same subject came to.
    pub fn join(&mut self, other: Report) {
        self.pairs += other.pairs;
        self.violations.extend(other.violations);
        self.beyond.extend(other.beyond);
        other
            .largest
            .into_iter()
            .for_each(|(place, largest)| self.enter(place, largest));
    }

    fn enter(&mut self, place: (usize, Part), found: Largest) {
        let largest = self.largest.entry(place).or_insert_with(|| found.clone());
        if found.part() > largest.part() {
            *largest = found;
        }
    }
}

/// Compares the replays of a pair.
pub fn compare(
    subject: &Subject<'_>,
    pair: &Pair,
    with: &Observed,
    without: &Observed,
) -> Difference {
    let mut difference = Difference::default();
    difference.same("how the worker ended", &with.stopped, &without.stopped);
    difference.same("the log of the default level", &with.log, &without.log);
    difference.same("the metrics at the end", &with.metrics, &without.metrics);
    difference.same("what the source was asked", &with.asked, &without.asked);
    difference.same("what the ledger claimed", &with.claimed, &without.claimed);
    difference.same("the rows of the ledger", &with.rows, &without.rows);
    difference.same(
        "the number of windows with noise",
        &with.windows.len(),
        &without.windows.len(),
    );
    difference.same(
        "the number of messages",
        &with.published.len(),
        &without.published.len(),
    );
    difference.same(
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
    let mut past = Past::default();
    for ((window, other), end) in with.windows.iter().zip(&without.windows).zip(ends) {
        difference.same("the metrics before a draw", &window.metrics, &other.metrics);
        difference.same(
            "the evaluations before a draw",
            &window.evaluations,
            &other.evaluations,
        );
        let part = |observed: &'_ Observed| {
            let evaluations = observed
                .evaluations
                .get(window.evaluations..end)
                .unwrap_or_default()
                .to_vec();
            let published = observed
                .published
                .get(window.evaluations..end)
                .unwrap_or_default()
                .to_vec();
            evaluations.into_iter().zip(published).collect::<Vec<_>>()
        };
        let is_chosen_alike =
            difference.window(subject, pair, &part(with), &part(without), &mut past);
        if is_chosen_alike {
            difference.same("the number of random words", &window.words, &other.words);
        }
    }
    difference
}

/// One evaluation and the message that it led to.
type Released = (Evaluation, Published);

/// Of sums over several windows, how far earlier windows moved, by release and key.
#[derive(Default)]
struct Past(BTreeMap<(usize, String), Vec<Vec<i128>>>);

impl Difference {
    fn same<T: PartialEq + std::fmt::Debug>(&mut self, what: &str, with: &T, without: &T) {
        if with != without {
            let with = format!("{with:?}");
            let without = format!("{without:?}");
            let start = with
                .chars()
                .zip(without.chars())
                .take_while(|(a, b)| a == b)
                .count()
                .saturating_sub(40);
            let shown = |text: &str| text.chars().skip(start).take(200).collect::<String>();
            self.violations.push(format!(
                "{what}: ...{}... and not ...{}...",
                shown(&with),
                shown(&without)
            ));
        }
    }

    /// Whether all private choices of the window are the same.
    fn window(
        &mut self,
        subject: &Subject<'_>,
        pair: &Pair,
        with: &[Released],
        without: &[Released],
        past: &mut Past,
    ) -> bool {
        let mut is_chosen_alike = true;
        for (at, release) in subject.plan.releases.iter().enumerate() {
            let of = |all: &[Released]| -> Vec<Evaluation> {
                all.iter()
                    .filter(|(evaluation, _)| evaluation.release == at)
                    .map(|(evaluation, _)| evaluation.clone())
                    .collect()
            };
            self.shifts(at, release, &of(with), &of(without));
        }
        for ((evaluation, sent), (other, other_sent)) in with.iter().zip(without) {
            let Some(release) = subject.plan.releases.get(evaluation.release) else {
                continue;
            };
            self.same("the order of releases", &evaluation.release, &other.release);
            self.same("the key of a message", &sent.key, &other_sent.key);
            self.same(
                "the headers of a message",
                &sent.headers,
                &other_sent.headers,
            );
            let (Ok(one), Ok(two)) = (
                Synopsis::open(&sent.bytes),
                Synopsis::open(&other_sent.bytes),
            ) else {
                self.violations
                    .push("a message cannot be read again".to_owned());
                continue;
            };
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
            self.same(
                "the length of a message",
                &sent.bytes.len(),
                &other_sent.bytes.len(),
            );
            self.same(
                "the description of a synopsis",
                one.description(),
                two.description(),
            );
            let expected = past.expected(evaluation.release, &moved, one.description());
            self.published(release, evaluation.variant, &expected, &one, &two);
        }
        is_chosen_alike
    }

    /// How far a release moved in one window, and whether it may.
    fn shifts(
        &mut self,
        at: usize,
        release: &Release,
        with: &[Evaluation],
        without: &[Evaluation],
    ) {
        if with.is_empty() {
            return;
        }
        let mut parts = Vec::new();
        for (place, variant) in release.variants.iter().enumerate() {
            let pairs = |of: fn(&Evaluation, usize) -> Option<&Exact>| -> Vec<(&Exact, &Exact)> {
                with.iter()
                    .zip(without)
                    .filter_map(|(a, b)| Some((of(a, place)?, of(b, place)?)))
                    .collect()
            };
            let values = pairs(|evaluation, place| evaluation.values.get(place));
            parts.push((
                Part::Values { variant: place },
                size(variant, &values),
                variant.change.0,
            ));
            if let Some(order) = &variant.order {
                let scores = pairs(|evaluation, place| evaluation.scores.get(place)?.as_ref());
                let found = scores.iter().map(|(a, b)| two_largest(a, b)).sum();
                parts.push((Part::Scores { variant: place }, found, order.change().0));
            }
        }
        if let Some(bandwidth) = &release.bandwidth {
            let counts = with
                .iter()
                .zip(without)
                .filter_map(|(a, b)| Some((a.counts.as_ref()?, b.counts.as_ref()?)));
            let found = counts.map(|(a, b)| norm(Norm::One, &changes(a, b))).sum();
            parts.push((Part::Counts, found, bandwidth.change().0));
        }
        for (part, found, declared) in parts {
            // Roots of whole numbers are rounded.
            if found > declared as f64 * (1.0 + 1e-12) {
                let name = &release.description().release;
                self.beyond.push(format!(
                    "{name}, {part:?}: moved by {found} grid units, declared are {declared}"
                ));
            }
            if found > 0.0 {
                self.shifts.push(Shift {
                    release: at,
                    part,
                    found,
                    declared,
                });
            }
        }
    }

    /// What left must move by what the exact values moved.
    fn published(
        &mut self,
        release: &Release,
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
        let largest = one
            .values()
            .iter()
            .chain(two.values())
            .chain(&expected)
            .fold(0.0, |most: f64, v| most.max(v.abs()));
        let is_off =
            |((a, b), expected): ((&f64, &f64), &f64)| ((a - b) - expected).abs() > 1e-9 * largest;
        let found = one.values().iter().zip(two.values()).zip(&expected);
        if expected.len() != one.values().len() || found.into_iter().any(is_off) {
            let what = format!(
                "{}: published values do not move as the exact ones",
                one.description().release
            );
            self.violations.push(what);
        }
    }
}

impl Past {
    /// How far the values of a synopsis must move: those of its window, or the sum over its panes.
    fn expected(&mut self, release: usize, moved: &[i128], description: &Description) -> Vec<i128> {
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
            WindowKind::Hopping(count) => count as usize,
            WindowKind::Cumulative => usize::MAX,
        };
        let newest = all.iter().rev().take(count);
        newest.fold(vec![0; moved.len()], |sum, pane| {
            sum.iter().zip(pane).map(|(a, b)| a + b).collect()
        })
    }
}

/// Whether a synopsis charges a block in which the unit has a row.
fn is_charged(pair: &Pair, subject: &Subject<'_>, description: &Description) -> bool {
    let charged = |time: &_| {
        let block = subject.plan.blocks.span_of(*time);
        description
            .privacy
            .blocks
            .iter()
            .any(|charge| charge.start == block.start && charge.end == block.end)
    };
    pair.times.iter().any(charged)
}

/// How far the values of the released variant moved.
fn release_shift(one: &Evaluation, other: &Evaluation) -> Vec<i128> {
    match (one.values.get(one.variant), other.values.get(one.variant)) {
        (Some(one), Some(other)) => changes(one, other),
        _ => Vec::new(),
    }
}
