//! Following the worker that acts: what it has appended to the log and the witness has accepted is appended here too.
//!
//! Only where the accepted row follows the newest one of this ledger, all of whose rows were then accepted: nothing is taken out of the
//! file. Whoever has a row that lost builds a new file, as at a start.

use std::time::Duration;

use rusqlite::{OptionalExtension, params};

use super::chain::{Head, LedgerRow};
use super::checkpoint::Checkpoint;
use super::error::LedgerError;
use super::log::{
    AppendOutcome, CannotAppend, LedgerLog, MessageFate, NextRows, RowBody, write_row,
};
use super::open::Ledger;
use super::outgoing::OutgoingRow;
use super::replay::AppliedRow;
use super::standby::{DesiredSettings, Leadership, StandbyRule};
use super::witness::WitnessClaim;
use crate::outbox;
use crate::store;
use bernstream_synopsis::clock::Timestamp;

/// Outcome of following the log to an accepted row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FollowOutcome {
    /// The ledger does not have the rows now.
    Refused,
    /// It has the rows, and knew what was published.
    NothingMore,
    /// It has the rows, and more was published than it knew.
    MorePublished,
}

impl Ledger {
    /// Shares its log with other workers from now on. The witness has accepted `accepted` so far, which this ledger has.
    pub fn stand_by(
        &mut self,
        rule: StandbyRule,
        desired_settings: DesiredSettings,
        accepted: Option<&WitnessClaim>,
        now: Timestamp,
    ) {
        self.leadership = Some(Leadership::new(rule, desired_settings, self.instance()));
        if let Some(log) = &mut self.log {
            log.follow(self.state.head.sequence);
        }
        self.note_accepted(accepted, now);
    }

    /// Returns true if several workers may share its log.
    pub fn is_shared(&self) -> bool {
        self.leadership.is_some()
    }

    /// Returns true if it is this worker's turn, as far as it knows.
    pub fn is_acting(&self) -> bool {
        self.leadership.as_ref().is_none_or(Leadership::is_acting)
    }

    /// Interval at which it looks what was accepted, if it follows.
    pub fn looks_every(&self) -> Option<Duration> {
        self.leadership
            .as_ref()
            .filter(|leadership| !leadership.is_acting())
            .map(|leadership| leadership.rule.look_interval())
    }

    /// The settings of this worker are recorded once it acts.
    pub fn postpone_settings(&mut self) {
        if let Some(leadership) = &mut self.leadership {
            leadership.is_postponed = true;
        }
    }

    /// Records the settings that were postponed; when they begin to hold, if they needed a row.
    ///
    /// # Errors
    ///
    /// As for [`record_settings`](Self::record_settings).
    pub fn record_postponed_settings(&mut self) -> Result<Option<Timestamp>, LedgerError> {
        let Some(leadership) = self
            .leadership
            .as_mut()
            .filter(|leadership| leadership.is_postponed)
        else {
            return Ok(None);
        };
        leadership.is_postponed = false;
        let account = &self.state.account;
        let slots = account.states.keys().map(String::as_str);
        let Some(change) =
            leadership
                .desired_settings
                .change_row(&account.settings, slots, account.next_window)
        else {
            return Ok(None);
        };
        let first = change.first;
        self.record_settings(change).map(|()| Some(first))
    }

    /// Time from which on this worker may draw the window that is due on the output at `publish_at`, if it follows and nobody else does.
    pub fn draws_from(&self, publish_at: Timestamp) -> Option<Timestamp> {
        let leadership = self
            .leadership
            .as_ref()
            .filter(|leadership| !leadership.is_acting());
        leadership
            .map(|leadership| leadership.draws_from(self.state.account.next_window, publish_at))
    }

    /// Begins the draw of the next window, which this worker has read and which is due on the output at `publish_at`, if it may draw it now.
    /// Returns true if it may.
    ///
    /// # Errors
    ///
    /// If the ledger cannot be read.
    pub fn try_begin_draw(
        &mut self,
        publish_at: Timestamp,
        now: Timestamp,
    ) -> Result<bool, LedgerError> {
        let head = self.state.head;
        let first = self.first_unaccepted()?;
        let start = self.state.account.next_window;
        let Some(leadership) = &mut self.leadership else {
            return Ok(true);
        };
        leadership.note_read_window(start, now);
        let may_draw = leadership.may_draw(start, publish_at, head, first, now);
        if may_draw {
            leadership.begin_draw(now);
        }
        Ok(may_draw)
    }

    /// Time at which the first message is due that the witness has not accepted yet.
    pub(super) fn first_unaccepted(&self) -> Result<Option<Timestamp>, LedgerError> {
        let accepted = self
            .leadership
            .as_ref()
            .and_then(Leadership::accepted)
            .map_or(i64::MIN, |head| {
                i64::try_from(head.sequence).unwrap_or(i64::MAX)
            });
        let first = "SELECT sequence FROM outbox WHERE sequence > ?1 ORDER BY sequence LIMIT 1";
        let first: Option<i64> = self
            .connection
            .query_row(first, [accepted], |row| row.get(0))
            .optional()
            .map_err(LedgerError::sqlite(&self.file))?;
        let Some(first) = first else {
            return Ok(None);
        };
        let outgoing = OutgoingRow::read_row(&self.connection, first)
            .map_err(LedgerError::sqlite(&self.file))?;
        Ok(outgoing.map(|outgoing| outgoing.publish_at))
    }

    /// Appends the rows that others have claimed up to `accepted`, the newest accepted claim of the witness `identity`, and learns what they have
    /// published. Returns true if there was anything. What cannot be appended is left to [`check_accepted`](Self::check_accepted).
    ///
    /// # Errors
    ///
    /// If the log cannot be read or lacks a row for now, [`LedgerError::OtherSettings`], or if a row is damaged.
    pub fn follow_accepted(
        &mut self,
        identity: &str,
        accepted: Option<&WitnessClaim>,
        now: Timestamp,
    ) -> Result<bool, LedgerError> {
        if let Some(claim) = accepted {
            self.note_first_claim(claim);
        }
        let is_ours = accepted.is_none_or(|claim| self.is_ours(claim));
        if self.leadership.is_none() || identity != self.state.genesis.witness {
            return Ok(false);
        }
        let Some(claim) = accepted else {
            self.note_accepted(accepted, now);
            return Ok(false);
        };
        let is_known =
            self.contains(&claim.head)? || self.state.genesis.previous == Some(claim.head);
        if is_known && is_ours {
            self.note_accepted(accepted, now);
            return Ok(false);
        }
        // Taken out for as long as the ledger learns from it.
        let Some(mut log) = self.log.take() else {
            return Ok(false);
        };
        let followed = self.learn_rows(&mut log, claim.head, is_known, now);
        self.log = Some(log);
        let followed = followed?;
        if followed == FollowOutcome::Refused {
            return Ok(false);
        }
        self.note_accepted(accepted, now);
        Ok(!is_known || followed == FollowOutcome::MorePublished)
    }

    /// Learns from the log the rows up to `accepted`, unless it knows them, and what was published.
    fn learn_rows(
        &mut self,
        log: &mut LedgerLog,
        accepted: Head,
        is_known: bool,
        now: Timestamp,
    ) -> Result<FollowOutcome, LedgerError> {
        log.follow(self.state.head.sequence);
        log.read()?;
        if !is_known && let AppendOutcome::Refused(why) = self.append_from(log, accepted)? {
            if why == CannotAppend::Lost
                && let Some(leadership) = &self.leadership
            {
                leadership.note_loss();
            }
            return Ok(FollowOutcome::Refused);
        }
        Ok(match self.learn_published(log, now)? {
            true => FollowOutcome::MorePublished,
            false => FollowOutcome::NothingMore,
        })
    }

    /// Takes the rows up to `accepted`, the newest accepted claim, from `log`, before it has a log of its own: a worker that starts behind the
    /// others.
    ///
    /// # Errors
    ///
    /// If the log lacks a row for now or cannot be read, or if a row is damaged.
    pub fn catch_up(
        &mut self,
        log: &mut LedgerLog,
        accepted: Head,
        now: Timestamp,
    ) -> Result<AppendOutcome, LedgerError> {
        log.follow(self.state.head.sequence);
        log.read()?;
        let outcome = self.append_from(log, accepted)?;
        if outcome == AppendOutcome::Appended {
            self.learn_published(log, now)?;
        }
        Ok(outcome)
    }

    /// Number of rows by which `accepted`, which this ledger does not have, is after its newest one, if `log` has all of them; nothing is
    /// appended.
    ///
    /// # Errors
    ///
    /// If the log lacks one or cannot be read.
    pub fn rows_behind(
        &self,
        log: &mut LedgerLog,
        accepted: Head,
    ) -> Result<Option<u64>, LedgerError> {
        log.read()?;
        Ok(match log.rows_between(self.state.head, accepted)? {
            NextRows::Rows(rows) => Some(rows.len() as u64),
            NextRows::Refused(_) => None,
        })
    }

    /// Returns true if this worker made the newest accepted claim, or the process in whose stead it goes on, or nobody in particular.
    pub(super) fn is_ours(&self, claim: &WitnessClaim) -> bool {
        // A new ledger takes the place of another one, and leaves it nothing.
        if self.state.genesis.previous == Some(claim.head) {
            return true;
        }
        let Some(maker) = claim.maker else {
            return true;
        };
        self.maker
            .as_ref()
            .is_some_and(|own| own.is_own(claim.head, maker))
    }

    /// Notes the newest accepted claim that this process sees first: it says whether this process goes on in the stead of another one.
    pub(super) fn note_first_claim(&mut self, claim: &WitnessClaim) {
        if self.state.genesis.previous != Some(claim.head)
            && let (Some(own), Some(maker)) = (&mut self.maker, claim.maker)
        {
            own.note_first_claim(claim.head, maker);
        }
    }

    /// Notes that the newest accepted claim is `accepted`, which this ledger has.
    fn note_accepted(&mut self, accepted: Option<&WitnessClaim>, now: Timestamp) {
        let head = accepted.map(|claim| claim.head);
        if let Some(claim) = accepted {
            self.note_first_claim(claim);
        }
        let is_ours = accepted.is_none_or(|claim| self.is_ours(claim));
        let handed_over = match (&head, &self.log) {
            (Some(head), Some(log)) => log.handed_over(head),
            _ => None,
        };
        let is_all = head == Some(self.state.head);
        if let Some(leadership) = &mut self.leadership {
            leadership.note_accepted(head, is_ours, handed_over, now);
            if is_all {
                leadership.end_draw();
                leadership.note_settings(&self.state.account.settings);
            }
        }
    }

    /// Appends the rows up to `accepted`, verified as those that are appended.
    fn append_from(
        &mut self,
        log: &mut LedgerLog,
        accepted: Head,
    ) -> Result<AppendOutcome, LedgerError> {
        while self.state.head != accepted {
            let bodies = match log.take_rows_between(self.state.head, accepted)? {
                NextRows::Rows(bodies) => bodies,
                NextRows::Refused(why) => return Ok(AppendOutcome::Refused(why)),
            };
            let before = self.state.account.settings.clone();
            let Some(appended) = self.append_all(bodies)? else {
                return Ok(AppendOutcome::Refused(CannotAppend::Gone));
            };
            log.follow(self.state.head.sequence);
            // The end of a share, say, repeats the settings that were recorded before. Told before more is read, which may fail.
            let settings = &self.state.account.settings;
            if let Some(row) = appended.newest_settings
                && let Some(leadership) = &self.leadership
                && *settings != before
                && !leadership.desired_settings.agrees(settings)
            {
                return Err(LedgerError::OtherSettings { row });
            }
        }
        Ok(AppendOutcome::Appended)
    }

    /// Appends the next rows, all or none; `None` if they lack noise that is in use after them.
    fn append_all(&mut self, bodies: Vec<RowBody>) -> Result<Option<Appended>, LedgerError> {
        let mut state = self.state.clone();
        let mut rows = Vec::new();
        let mut newest_settings = None;
        for body in bodies {
            let head = body.entry.head;
            let applied = state.apply_entry(&body.entry, |what| {
                LedgerError::damaged(
                    &self.file,
                    format!("row {} of its log: {what}", head.sequence),
                )
            })?;
            if matches!(applied.row, LedgerRow::Configuration(_)) {
                newest_settings = Some(head.sequence);
            }
            let checkpoint =
                Checkpoint::is_due(head.sequence).then(|| state.checkpoint(&state.account, head));
            rows.push(FollowedRow {
                body,
                applied,
                checkpoint,
            });
        }
        // What a later row has replaced when a body was appended is not in it; what is in use now must be.
        for (slot, (written, _)) in &state.account.states {
            let writer = rows
                .iter()
                .find(|row| row.body.entry.head.sequence == *written);
            if writer.is_some_and(|row| !row.body.has_state(slot)) {
                return Ok(None);
            }
        }
        self.write_transaction(|transaction| {
            for row in &rows {
                let AppliedRow { row: said, spent } = &row.applied;
                write_row(
                    transaction,
                    &row.body,
                    Some(said),
                    spent,
                    MessageFate::Unpublished,
                )?;
                if let Some(checkpoint) = &row.checkpoint {
                    checkpoint.insert(transaction)?;
                }
            }
            Ok(())
        })?;
        self.state = state;
        Ok(Some(Appended { newest_settings }))
    }

    /// Learns from the log which messages others have published; returns true if there were any.
    fn learn_published(&mut self, log: &LedgerLog, now: Timestamp) -> Result<bool, LedgerError> {
        let first =
            outbox::first_unpublished(&self.connection).map_err(LedgerError::sqlite(&self.file))?;
        let Some(first) = first.and_then(|first| u64::try_from(first).ok()) else {
            return Ok(false);
        };
        let published = log.newest_published(first, |head| {
            let Ok(sequence) = i64::try_from(head.sequence) else {
                return Ok(false);
            };
            Ok(store::digest_at(&self.connection, sequence)? == Some(head.digest))
        });
        let Some(published) = published.map_err(LedgerError::sqlite(&self.file))? else {
            return Ok(false);
        };
        let published = i64::try_from(published).unwrap_or(i64::MAX);
        let head = self.state.head.sequence;
        let keep_from = now.minus(self.keep_published);
        self.write_transaction(|transaction| {
            outbox::drop_old(
                transaction,
                i64::try_from(head).unwrap_or(i64::MAX),
                keep_from,
            )?;
            let mark =
                "UPDATE outbox SET published_at = ?2 WHERE published_at IS NULL AND sequence <= ?1";
            transaction
                .execute(mark, params![published, now.micros()])
                .map(drop)
        })?;
        Ok(true)
    }

    /// The newest time at which messages are due on the output that are published now: those of another worker later than one's own.
    pub fn publishes_until(&self, now: Timestamp) -> Timestamp {
        self.leadership
            .as_ref()
            .map_or(now, |leadership| leadership.publishes_until(now))
    }

    /// Leaves what comes next to others at once, and returns whether it was this worker's turn: once its newest row is accepted, if that has just
    /// been claimed. Only a hint: without it they wait longer.
    ///
    /// # Errors
    ///
    /// If the log cannot be written.
    pub fn resign_turn(&mut self, has_claimed: bool, now: Timestamp) -> Result<bool, LedgerError> {
        let (Some(leadership), Some(log)) = (&self.leadership, &mut self.log) else {
            return Ok(false);
        };
        let head = if has_claimed {
            Some(self.state.head)
        } else {
            leadership.accepted()
        };
        let Some(head) = head.filter(|_| leadership.is_acting()) else {
            return Ok(false);
        };
        log.resign_leadership(head, now)?;
        Ok(true)
    }
}

/// A row of another worker that was verified, to be written.
struct FollowedRow {
    body: RowBody,
    applied: AppliedRow,
    /// The checkpoint after it, where one stands.
    checkpoint: Option<Checkpoint>,
}

/// Rows of another worker that were written.
struct Appended {
    /// The newest of them that records settings.
    newest_settings: Option<u64>,
}
