//! The steps of a worker.

use super::lost::Lost;
use super::setup::{Clause, Setup};
use super::state::{Claim, Disk, Ledger, NONE, Place, Process, Row, Set, State, UNREAD, bit, each};
use super::topics::{self, Read};

/// One step of the worker `0` or `1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Reads so many records of the witness.
    ReadWitness(u8),
    ReadLog,
    /// Compares the accepted head with what is published.
    Compare,
    /// Pays for the next window, or appends its settings.
    Pay,
    /// Appends a piece of a body.
    Append(u8, Arrival),
    Claim(Arrival),
    Publish(u8, Arrival),
    /// Marks a row as published: on its disk, and in the log or not.
    Mark(u8, bool),
    /// Reads the account for a checkpoint; only without [`Clause::OneSnapshot`].
    Draft,
    Checkpoint(Arrival),
    /// Deletes the log before the body.
    Delete(u8),
    /// Builds a new file from the log.
    Restore,
    /// Appends to its file what another worker has claimed.
    Follow,
    /// Discards its rows; only without [`Clause::NewFile`].
    Discard,
    /// Goes on without the missing bodies; only without [`Clause::Wait`].
    GiveUp,
}

/// When a record is in its topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// At once, and acknowledged.
    Now,
    /// Later or never.
    Late,
}

/// All steps that might be possible.
pub fn steps(state: &State, worker: usize) -> impl Iterator<Item = Step> {
    let length = state.witness.items().len() as u8;
    let arrivals = [Arrival::Now, Arrival::Late];
    let bodies = each(bodies(state, worker));
    let rows = state.workers[worker]
        .process
        .map_or(0, |process| process.acknowledged | process.marked);
    let ledger = state.workers[worker]
        .disk
        .ledger
        .map_or(0, |ledger| ledger.bytes);
    (0..=length)
        .rev()
        .map(Step::ReadWitness)
        .chain([Step::ReadLog, Step::Compare])
        .chain(
            each(ledger | rows)
                .flat_map(move |row| arrivals.map(|arrival| Step::Publish(row, arrival))),
        )
        .chain(
            each(ledger | rows)
                .flat_map(|row| [true, false].map(|arrives| Step::Mark(row, arrives))),
        )
        .chain([Step::Discard, Step::Follow, Step::Restore, Step::GiveUp])
        .chain(bodies.flat_map(move |body| arrivals.map(|arrival| Step::Append(body, arrival))))
        .chain(arrivals.map(Step::Claim))
        .chain([Step::Pay, Step::Draft])
        .chain(arrivals.map(Step::Checkpoint))
        .chain(each(deletable(state)).map(Step::Delete))
}

/// The bodies of rows that a worker has.
fn bodies(state: &State, worker: usize) -> Set {
    state.workers[worker]
        .disk
        .ledger
        .map_or(0, |ledger| ledger.bytes)
}

fn deletable(state: &State) -> Set {
    state
        .log
        .items()
        .iter()
        .fold(0, |bodies, piece| bodies | bit(piece / 2))
}

/// What is wrong after a step.
pub type Violation = String;

/// The state after `step`; `None` if it is not possible.
///
/// # Errors
///
/// What it breaks.
pub fn after(
    state: &State,
    worker: usize,
    step: Step,
    setup: &Setup,
) -> Option<Result<State, Violation>> {
    let mut next = *state;
    let process = next.workers[worker]
        .process
        .filter(|process| !process.stopped)?;
    let mut run = Run {
        state: &mut next,
        worker,
        process,
        setup,
    };
    match run.take(step)? {
        Ok(()) => {
            let process = run.process;
            next.workers[worker].process = Some(process);
            if !setup.holds(Clause::ReadTheLog) {
                next.workers[worker].disk.in_log = process.seen;
            }
            Some(Ok(next))
        }
        Err(violation) => Some(Err(violation)),
    }
}

/// A worker at one of its steps.
pub struct Run<'a> {
    pub state: &'a mut State,
    pub worker: usize,
    pub process: Process,
    pub setup: &'a Setup,
}

impl Run<'_> {
    pub fn disk(&mut self) -> &mut Disk {
        &mut self.state.workers[self.worker].disk
    }

    pub fn ledger(&self) -> Option<Ledger> {
        self.state.workers[self.worker].disk.ledger
    }

    /// Whether the ledger continues from the accepted head, as it was read, or from what is to be claimed again.
    pub fn is_recognised(&self) -> bool {
        let goal = self.goal();
        goal != UNREAD
            && (goal == NONE
                || self
                    .ledger()
                    .is_some_and(|ledger| ledger.account & bit(goal) != 0))
    }

    fn take(&mut self, step: Step) -> Option<Result<(), Violation>> {
        let acts = matches!(step, Step::Pay | Step::Claim(_) | Step::Publish(..));
        if acts && !self.process.is_compared {
            return None;
        }
        if acts && self.lost() == Lost::Fork {
            self.process.stopped = true;
            return Some(Ok(()));
        }
        match step {
            Step::ReadWitness(length) => self.read_witness(length),
            Step::ReadLog => self.read_log(),
            Step::Compare => self.compare(),
            Step::Pay => self.pay(),
            Step::Append(body, arrival) => self.append(body, arrival),
            Step::Claim(arrival) => return self.claim(arrival),
            Step::Publish(row, arrival) => return self.publish(row, arrival),
            Step::Mark(row, arrives) => self.mark(row, arrives),
            Step::Draft => self.draft(),
            Step::Checkpoint(arrival) => self.checkpoint(arrival),
            Step::Delete(body) => return self.delete(body),
            Step::Restore => self.restore(),
            Step::Follow => self.follow(),
            Step::Discard => self.discard(),
            Step::GiveUp => self.give_up(),
        }?;
        Some(Ok(()))
    }

    fn read_witness(&mut self, length: u8) -> Option<()> {
        let all = self.state.witness.items().len();
        let shown = usize::from(length);
        if shown < all {
            self.state.faults.stale_reads = self.state.faults.stale_reads.checked_sub(1)?;
        }
        let claims = self.state.witness;
        let claims = &claims.items()[..shown];
        if !self.setup.holds(Clause::VoidRecords) && claims.contains(&Claim::STRAY) {
            self.process.stopped = true;
            return Some(());
        }
        match topics::read(claims, self.disk().place, self.setup) {
            Read::Shorter | Read::Differs
                if self.setup.compares && self.setup.holds(Clause::ComparesDisk) =>
            {
                self.read_anew(claims)
            }
            Read::Shorter => None,
            Read::Differs => {
                self.process.stopped = true;
                Some(())
            }
            Read::Accepted(place) => {
                self.disk().place = place;
                self.see(place).then_some(())
            }
        }
    }

    /// The witness has accepted the claim at this place; whether that is news.
    pub fn see(&mut self, place: Option<Place>) -> bool {
        let head = place.map_or(NONE, |place| place.claim.head);
        let is_maker = place.is_some_and(|place| place.claim.maker == self.maker())
            || self.setup.holds(Clause::Unmarked);
        let is_news = (self.process.view, self.process.is_maker) != (head, is_maker);
        (self.process.view, self.process.is_maker) = (head, is_maker);
        let accepted = self.state.chain(head);
        self.disk().lost = self.disk().lost.filter(|lost| accepted & bit(*lost) == 0);
        is_news
    }

    /// Who this process is, where that is of consequence.
    fn maker(&self) -> u8 {
        match self.setup.holds(Clause::Unmarked) {
            true => 0,
            false => 2 * self.state.workers[self.worker].starts + self.worker as u8,
        }
    }

    fn read_log(&mut self) -> Option<()> {
        let whole = topics::whole(self.state, self.setup);
        let seen = if self.setup.holds(Clause::ReadTheLog) {
            whole
        } else {
            self.process.seen | whole
        };
        let is_news = !self.process.has_read_log || seen != self.process.seen;
        (self.process.seen, self.process.has_read_log) = (seen, true);
        is_news.then_some(())
    }

    fn pay(&mut self) -> Option<()> {
        if !self.is_recognised() || self.lost() != Lost::Nothing {
            return None;
        }
        let ledger = self.ledger().unwrap_or(Ledger {
            head: NONE,
            account: 0,
            bytes: 0,
        });
        let unclaimed = State::length(ledger.head) - State::length(self.process.view);
        if unclaimed >= self.setup.unclaimed {
            return None;
        }
        let mine = self.worker as u8;
        let rows: Vec<_> = each(ledger.account)
            .map(|row| self.state.row(row))
            .collect();
        let settings = rows
            .iter()
            .rev()
            .map(|row| row.settings)
            .find(|settings| *settings != NONE)
            .unwrap_or(0);
        let mut row = Row {
            parent: ledger.head,
            window: NONE,
            settings: NONE,
        };
        if self.setup.settings && settings != mine {
            if self.process.settled && self.setup.holds(Clause::SettingsOnce) {
                self.process.stopped = true;
                return Some(());
            }
            row.settings = mine;
        } else {
            row.window = rows.iter().filter(|row| row.window != NONE).count() as u8;
            if row.window >= self.setup.windows {
                return None;
            }
        }
        self.process.settled |= self.setup.settings;
        let row = self.state.draw(row, self.setup.draws)?;
        let account = ledger.account | bit(row);
        self.disk().ledger = Some(Ledger {
            head: row,
            account,
            bytes: ledger.bytes | bit(row),
        });
        Some(())
    }

    fn claim(&mut self, arrival: Arrival) -> Option<Result<(), Violation>> {
        let ledger = self.ledger().filter(|_| self.is_recognised())?;
        let previous = self.process.view;
        if ledger.head == previous || ledger.head == NONE {
            return None;
        }
        let bodies = self.process.seen;
        if self.setup.holds(Clause::BodyBeforeClaim)
            && (!self.process.has_read_log
                || topics::walk(self.state, ledger.head, bodies, self.setup).is_err())
        {
            return None;
        }
        let claim = Claim {
            previous,
            head: ledger.head,
            maker: self.maker(),
        };
        let is_known = self.state.witness.items().last() == Some(&claim)
            || self.state.late_claims.items().contains(&claim);
        if is_known {
            return None;
        }
        if arrival == Arrival::Late {
            self.state.faults.late_claims = self.state.faults.late_claims.checked_sub(1)?;
            if self.state.late_claims.is_full() {
                return None;
            }
            self.state.late_claims.push(claim);
            self.state.late_claims.sort();
            return Some(Ok(()));
        }
        put_claim(self.state, claim, self.setup)
    }

    fn publish(&mut self, row: u8, arrival: Arrival) -> Option<Result<(), Violation>> {
        let ledger = self.ledger().filter(|_| self.is_recognised())?;
        let view = self.process.view;
        if view == NONE
            || self.state.chain(view) & bit(row) == 0
            || ledger.bytes & bit(row) == 0
            || !self.process.is_maker
        {
            return None;
        }
        let Row { window, .. } = self.state.row(row);
        let is_marked = self.disk().marks & bit(row) != 0;
        match self.setup.holds(Clause::MarkAfter) {
            true if is_marked => return None,
            false if self.process.marked & bit(row) == 0 => return None,
            _ => {}
        }
        if self.process.acknowledged & bit(row) != 0 {
            return None;
        }
        if !self.may_publish(row)? {
            self.process.stopped = true;
            return Some(Ok(()));
        }
        if arrival == Arrival::Late {
            self.state.faults.late_messages = self.state.faults.late_messages.checked_sub(1)?;
            self.state.late_messages |= bit(row);
            return Some(Ok(()));
        }
        // A row of settings has nothing to publish.
        if window != NONE {
            if self.state.chain(topics::accepted(self.state, self.setup)) & bit(row) == 0 {
                return Some(Err(format!("row {row} is published and not claimed")));
            }
            if ledger.account != self.state.chain(ledger.head) {
                return Some(Err(format!(
                    "row {row} is published by a ledger whose account is not that of its chain"
                )));
            }
            if let Err(violation) = arrive(self.state, row) {
                return Some(Err(violation));
            }
        }
        match self.setup.holds(Clause::MarkAfter) {
            true => self.process.acknowledged |= bit(row),
            false => self.process.marked &= !bit(row),
        }
        Some(Ok(()))
    }

    fn mark(&mut self, row: u8, arrives: bool) -> Option<()> {
        if self.setup.holds(Clause::MarkAfter) {
            if self.process.acknowledged & bit(row) == 0 {
                return None;
            }
            self.process.acknowledged &= !bit(row);
        } else {
            let view = self.process.view;
            if !self.is_recognised()
                || view == NONE
                || self.state.chain(view) & bit(row) == 0
                || self.disk().marks & bit(row) != 0
            {
                return None;
            }
            self.process.marked |= bit(row);
        }
        if arrives {
            self.state.log_marks |= bit(row);
        } else {
            self.state.faults.lost_marks = self.state.faults.lost_marks.checked_sub(1)?;
        }
        self.disk().marks |= bit(row);
        Some(())
    }
}

/// A message arrives in the output.
///
/// # Errors
///
/// If its window was published before with other bytes.
pub fn arrive(state: &mut State, row: u8) -> Result<(), Violation> {
    let window = state.row(row).window;
    if each(state.sink).any(|other| other != row && state.row(other).window == window) {
        return Err(format!("two versions of window {window} are published"));
    }
    state.sink |= bit(row);
    state.lost_messages &= !bit(row);
    Ok(())
}

/// A claim arrives at the witness.
pub fn put_claim(state: &mut State, claim: Claim, setup: &Setup) -> Option<Result<(), Violation>> {
    if state.witness.is_full() {
        return None;
    }
    let before = topics::accepted(state, setup);
    state.witness.push(claim);
    let after = topics::accepted(state, setup);
    if after == before && setup.faults.elections == 0 && setup.faults.lost_claims == 0 {
        // It is void for ever, and only where records are lost is it of consequence that it has an offset.
        state.witness.remove(state.witness.items().len() - 1);
    }
    if before != NONE && state.chain(after) & bit(before) == 0 {
        return Some(Err(format!(
            "row {after} is accepted after {before}, which it does not follow"
        )));
    }
    let settings = each(state.chain(after))
        .filter(|row| state.row(*row).settings != NONE)
        .count();
    let starts: u8 = state.workers.iter().map(|worker| worker.starts).sum();
    if settings > usize::from(starts) {
        return Some(Err(format!(
            "{settings} rows of settings are accepted, of {starts} processes"
        )));
    }
    Some(Ok(()))
}

/// The first window that is not published.
pub fn missing(state: &State, setup: &Setup) -> u8 {
    (0..setup.windows)
        .find(|window| state.published() & bit(*window) == 0)
        .unwrap_or(setup.windows)
}
