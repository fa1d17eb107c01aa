//! The turn of a worker: of several workers of one pipeline, each with a copy of its ledger, one acts and the others follow. Pure.
//!
//! Safety is the fold of the witness, and nothing here: whatever a worker believes, one draw of a window is accepted. What is here
//! keeps workers out of each other's way, and keeps the length of a draw from deciding which of two draws that is:
//!
//! - Whoever made the newest accepted claim acts: it draws at once, and claims at once for as long as half of [`StandbyRule::patience`] has not
//!   passed since the window was due to be claimed, or since its last accepted claim.
//! - Every other worker draws a window when that has been due, it has read it, and nothing was accepted, for the whole of
//!   [`StandbyRule::patience`]; at once if the one that acted has handed over. While brokers do not answer nobody can claim: after that it waits
//!   anew, once for a window. Whoever drew in vain waits twice as long, and so on, until it has seen some claims of others: where a claim takes longer
//!   than the patience, it would draw every window in vain.
//! - Every other claim on a draw is made a fixed time after the draw began, or that and some whole patiences.
//!
//! `docs/proofs/ledger.md` says what follows from it.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use super::chain::{Configuration, Head};
use super::instance::Instance;
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::grid::SpanGrid;

/// The longest that a worker waits in addition, so that two that follow do not act at one moment.
const LONGEST_JITTER: u64 = 250;
/// Longest interval at which a worker that follows looks what was accepted.
const LONGEST_LOOK_INTERVAL: Duration = Duration::from_millis(500);
/// Most draws in vain in a row that count: the wait is doubled for each, up to 16 times.
const MOST_LOSSES: u32 = 4;
/// Number of claims of others, while it drew nothing, after which the time that a worker waits is halved.
const QUIET_CLAIMS: u32 = 8;

/// Times for which workers wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StandbyRule {
    /// Time for which something is due, and nothing was accepted, before a worker that follows acts.
    pub patience: Duration,
    /// Time that a draw may take before it is claimed, whatever it takes.
    pub drawing: Duration,
    /// Time from when a window is due to be claimed until it is due on the output.
    pub lead: Duration,
}

impl StandbyRule {
    /// Interval at which a worker that follows looks what was accepted.
    pub fn look_interval(&self) -> Duration {
        LONGEST_LOOK_INTERVAL.min(self.patience / 8)
    }

    /// Time at which a draw that began at `began` and is there since `ready` is claimed, where that is not done at once.
    fn claim_at(&self, began: Timestamp, ready: Timestamp) -> Timestamp {
        let first = began.plus(self.drawing);
        let late = ready.since(first).as_micros();
        let missed = late.div_ceil(self.patience.as_micros().max(1));
        first.plus(
            self.patience
                .saturating_mul(u32::try_from(missed).unwrap_or(u32::MAX)),
        )
    }
}

/// The settings of a worker, which it records in the ledger when it acts.
#[derive(Clone)]
pub struct DesiredSettings {
    /// Text of them as a ledger records it.
    pub settings: String,
    pub reach: Duration,
    pub grid: SpanGrid,
    /// The slots of noise that its releases continue.
    pub continued: BTreeSet<String>,
    /// Returns true if recorded settings, the first, say the same as others.
    pub agree: fn(&str, &str) -> bool,
    /// Set if choices that were left to the program must be recorded too.
    pub is_chosen: bool,
    /// This process has seen the witness accept these settings. It then never records them again: two workers with different settings would
    /// overrule each other for ever.
    pub is_settled: Arc<AtomicBool>,
    /// Number of draws in vain of this process of late, while another worker acted.
    pub losses: Arc<AtomicU32>,
}

impl fmt::Debug for DesiredSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Wanted({})", self.settings)
    }
}

impl DesiredSettings {
    /// Returns true if the settings of a ledger say the same.
    pub fn agrees(&self, recorded: &str) -> bool {
        (self.agree)(recorded, &self.settings)
    }

    /// The row that records the settings, if it needs one, in a ledger that has recorded others, has the noise of these slots, and whose
    /// next window starts at `next`.
    pub fn change_row<'s>(
        &self,
        recorded: &str,
        slots: impl Iterator<Item = &'s str>,
        next: Timestamp,
    ) -> Option<Configuration> {
        let ended: Vec<String> = slots
            .filter(|slot| !self.continued.contains(*slot))
            .map(str::to_owned)
            .collect();
        if self.agrees(recorded)
            && ended.is_empty()
            && (!self.is_chosen || recorded == self.settings)
        {
            return None;
        }
        let first = self.grid.first_from(next).start;
        Some(Configuration {
            settings: self.settings.clone(),
            first,
            reach: self.reach,
            ended,
            until: None,
        })
    }
}

/// Knowledge of a worker of whose turn it is.
#[derive(Debug)]
pub(super) struct Leadership {
    pub rule: StandbyRule,
    pub desired_settings: DesiredSettings,
    /// The settings are recorded when it acts.
    pub is_postponed: bool,
    jitter: Duration,
    /// The newest accepted claim.
    seen: Option<SeenClaim>,
    /// Time at which the witness last answered.
    answered: Option<Timestamp>,
    /// The next window, once this worker has read it.
    waiting: Option<WaitingWindow>,
    /// The newest row that it has claimed itself, at the time of the claim.
    claimed: Option<TimedHead>,
    /// Time at which the first draw began that is not accepted yet.
    began: Option<Timestamp>,
    /// The newest row, since the time at which it was there.
    ready: Option<TimedHead>,
    /// Number of claims of others that it has seen while it drew nothing.
    calm: u32,
}

/// A row, and a time of it.
#[derive(Clone, Copy, Debug)]
struct TimedHead {
    head: Head,
    time: Timestamp,
}

/// A window that this worker has.
#[derive(Clone, Copy, Debug)]
struct WaitingWindow {
    start: Timestamp,
    since: Timestamp,
    /// It was waited for anew: once, for brokers that fall silent again and again would keep a worker from acting for ever.
    is_renewed: bool,
}

/// The newest accepted claim.
#[derive(Clone, Copy, Debug)]
struct SeenClaim {
    head: Head,
    since: Timestamp,
    /// It is this worker's, or nobody's in particular.
    is_ours: bool,
    /// Time at which its maker has handed over.
    handed_over: Option<Timestamp>,
}

impl Leadership {
    pub fn new(
        rule: StandbyRule,
        desired_settings: DesiredSettings,
        instance: Option<Instance>,
    ) -> Self {
        let jitter = Duration::from_millis(
            instance.map_or(0, |instance| instance.number() % LONGEST_JITTER),
        );
        Leadership {
            rule,
            desired_settings,
            is_postponed: false,
            jitter,
            seen: None,
            answered: None,
            waiting: None,
            claimed: None,
            began: None,
            ready: None,
            calm: 0,
        }
    }

    /// Notes that the witness has accepted `head`, or nothing at all.
    pub fn note_accepted(
        &mut self,
        head: Option<Head>,
        is_ours: bool,
        handed_over: Option<Timestamp>,
        now: Timestamp,
    ) {
        if head.is_some() && self.seen.is_some_and(|seen| Some(seen.head) != head) {
            self.note_newer_claim(is_ours);
        }
        let before = self.answered.replace(now);
        let was_silent = before.is_some_and(|before| now.since(before) > self.rule.patience / 2);
        if let Some(waiting) = self
            .waiting
            .as_mut()
            .filter(|waiting| was_silent && !waiting.is_renewed)
        {
            waiting.since = now;
            waiting.is_renewed = true;
        }
        let known = self
            .seen
            .filter(|seen| Some(seen.head) == head && seen.since <= now);
        self.seen = head.map(|head| {
            let since = known.map_or(now, |known| known.since);
            SeenClaim {
                head,
                since,
                is_ours,
                handed_over,
            }
        });
    }

    /// Notes that a claim was accepted after those that it has seen.
    fn note_newer_claim(&mut self, is_ours: bool) {
        self.calm = if self.began.is_none() {
            self.calm + 1
        } else {
            0
        };
        let losses = &self.desired_settings.losses;
        if is_ours {
            losses.store(0, Relaxed);
        } else if self.calm >= QUIET_CLAIMS {
            self.calm = 0;
            losses.store(losses.load(Relaxed).saturating_sub(1), Relaxed);
        }
    }

    /// Notes that a draw of it was not accepted. Whoever acted was too slow once; whoever did not was too hasty.
    pub fn note_loss(&self) {
        if !self.is_acting() {
            self.desired_settings.losses.store(
                (self.desired_settings.losses.load(Relaxed) + 1).min(MOST_LOSSES),
                Relaxed,
            );
        }
    }

    /// The newest accepted row.
    pub fn accepted(&self) -> Option<Head> {
        self.seen.map(|seen| seen.head)
    }

    /// Notes that its settings were accepted, or those of another one that say the same.
    pub fn note_settings(&self, recorded: &str) {
        if self.desired_settings.agrees(recorded) {
            self.desired_settings.is_settled.store(true, Relaxed);
        }
    }

    /// Returns true if it acts: it made the newest accepted claim, and has not handed over. Of a new pipeline whoever comes first does.
    pub fn is_acting(&self) -> bool {
        self.seen
            .is_none_or(|seen| seen.is_ours && seen.handed_over.is_none())
    }

    /// Time from which on the worker may draw the window that starts at `start` and is due on the output at `publish_at`, if it follows.
    pub fn draws_from(&self, start: Timestamp, publish_at: Timestamp) -> Timestamp {
        let due = publish_at.minus(self.rule.lead);
        let Some(SeenClaim {
            since, handed_over, ..
        }) = self.seen
        else {
            return due;
        };
        let patience = self
            .rule
            .patience
            .saturating_mul(1 << self.desired_settings.losses.load(Relaxed).min(MOST_LOSSES));
        let had = self
            .waiting
            .filter(|waiting| waiting.start == start)
            .map_or(due, |waiting| waiting.since);
        let patient = due.max(since).max(had).plus(patience);
        let from = handed_over.map_or(patient, |at| patient.min(due.max(at)));
        from.plus(self.jitter)
    }

    /// Notes that the worker has read the next window, from `start` on.
    pub fn note_read_window(&mut self, start: Timestamp, now: Timestamp) {
        let known = self
            .waiting
            .filter(|waiting| waiting.start == start && waiting.since <= now);
        self.waiting = known.or(Some(WaitingWindow {
            start,
            since: now,
            is_renewed: false,
        }));
    }

    /// Returns true if the worker, which has read the next window, from `start` on, may draw it, with the newest row `head`. `first` is when the
    /// first row that is not accepted is due on the output, if such a row has messages.
    pub fn may_draw(
        &self,
        start: Timestamp,
        publish_at: Timestamp,
        head: Head,
        first: Option<Timestamp>,
        now: Timestamp,
    ) -> bool {
        // The first row of a new pipeline is accepted before it draws.
        let Some(seen) = self.seen else { return false };
        let is_accepted = seen.head == head;
        if self.is_acting() {
            // All are claimed together, and still promptly.
            is_accepted
                || first.is_some_and(|first| self.is_prompt(first, now.plus(self.rule.drawing)))
        } else {
            is_accepted && now >= self.draws_from(start, publish_at)
        }
    }

    /// Notes that a draw begins.
    pub fn begin_draw(&mut self, now: Timestamp) {
        self.began.get_or_insert(now);
    }

    /// Returns true if a claim on the rows from one that is due on the output at `first` on can have no rival: nobody else draws yet.
    fn is_prompt(&self, first: Timestamp, now: Timestamp) -> bool {
        let due = first.minus(self.rule.lead);
        let claimed = self
            .claimed
            .filter(|claimed| self.seen.is_some_and(|seen| seen.head == claimed.head));
        let since = claimed.map_or(due, |claimed| due.max(claimed.time));
        self.is_acting() && now < since.plus(self.rule.patience / 2)
    }

    /// Schedules the claim on its rows up to `head`, of which the first with messages is due on the output at `first`. Returns its earliest time;
    /// not after `now` if it may be made.
    pub fn schedule_claim(
        &mut self,
        head: Head,
        first: Option<Timestamp>,
        now: Timestamp,
    ) -> Timestamp {
        // What was not drawn may be claimed at any time.
        let Some(first) = first else { return now };
        let began = self.began.filter(|began| *began <= now).unwrap_or(now);
        self.began = Some(began);
        let ready = match self.ready {
            Some(known) if known.head == head && known.time <= now => known.time,
            _ => now,
        };
        self.ready = Some(TimedHead { head, time: ready });
        if self.is_prompt(first, now) {
            now
        } else {
            self.rule.claim_at(began, ready)
        }
    }

    /// Notes that the rows up to `head` are claimed.
    pub fn note_claim(&mut self, head: Head, now: Timestamp) {
        self.claimed = Some(TimedHead { head, time: now });
    }

    /// Notes that every row is accepted.
    pub fn end_draw(&mut self) {
        self.began = None;
        self.ready = None;
    }

    /// Newest time at which messages are due on the output that are published now.
    pub fn publishes_until(&self, now: Timestamp) -> Timestamp {
        match self.seen {
            Some(SeenClaim {
                handed_over: Some(at),
                ..
            }) if at <= now => now,
            Some(SeenClaim { is_ours: false, .. }) => now.minus(self.rule.patience + self.jitter),
            _ => now,
        }
    }
}
