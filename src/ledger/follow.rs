//! Following the worker that acts: what it has appended to the log and the witness has accepted is appended here too.
//!
//! Only where the accepted row follows the newest one of this ledger, all of whose rows were then accepted: nothing is taken out of the
//! file. Whoever has a row that lost builds a new file, as at a start.

use std::time::Duration;

use rusqlite::{OptionalExtension, params};

use super::chain::{Digest, Head, Row};
use super::checkpoint::Checkpoint;
use super::error::Error;
use super::log::{Messages, write_row};
use super::open::Ledger;
use super::outbox;
use super::outgoing::Outgoing;
use super::standby::{Standby, Turn, Wanted};
use super::store;
use super::witness::Claim;
use crate::clock::Timestamp;

impl Ledger {
    /// Shares its log with other workers from now on. The witness has accepted `accepted` so far, which this ledger has.
    pub fn stand_by(&mut self, rule: Standby, wanted: Wanted, accepted: Option<&Claim>, now: Timestamp) {
        self.turn = Some(Turn::new(rule, wanted, self.instance));
        if let Some(log) = &mut self.log {
            log.follow(self.state.head.sequence);
        }
        self.see(accepted, now);
    }

    /// Whether several workers may share its log.
    pub fn is_shared(&self) -> bool {
        self.turn.is_some()
    }

    /// Whether it is this worker's turn, as far as it knows.
    pub fn is_acting(&self) -> bool {
        self.turn.as_ref().is_none_or(Turn::is_acting)
    }

    /// How often it looks what was accepted, if it follows.
    pub fn looks_every(&self) -> Option<Duration> {
        self.turn.as_ref().filter(|turn| !turn.is_acting()).map(|turn| turn.rule.look())
    }

    /// The settings of this worker are recorded once it acts.
    pub fn postpone_settings(&mut self) {
        if let Some(turn) = &mut self.turn {
            turn.is_postponed = true;
        }
    }

    /// Records the settings that were postponed; when they begin to hold, if they needed a row.
    ///
    /// # Errors
    ///
    /// As for [`reconfigure`](Self::reconfigure).
    pub fn settle(&mut self) -> Result<Option<Timestamp>, Error> {
        let Some(turn) = self.turn.as_mut().filter(|turn| turn.is_postponed) else { return Ok(None) };
        turn.is_postponed = false;
        let account = &self.state.account;
        let slots = account.states.keys().map(String::as_str);
        let Some(change) = turn.wanted.change(&account.settings, slots, account.next_window) else { return Ok(None) };
        let first = change.first;
        self.reconfigure(change).map(|()| Some(first))
    }

    /// When this worker may draw the window that is due on the output at `publish_at`, if it follows and nobody else does.
    pub fn draws_from(&self, publish_at: Timestamp) -> Option<Timestamp> {
        self.turn.as_ref().filter(|turn| !turn.is_acting()).map(|turn| turn.draws_from(publish_at))
    }

    /// Whether this worker may draw the next window, which is due on the output at `publish_at`: from then on its draw has begun.
    ///
    /// # Errors
    ///
    /// If the ledger cannot be read.
    pub fn may_draw(&mut self, publish_at: Timestamp, now: Timestamp) -> Result<bool, Error> {
        if self.turn.is_none() {
            return Ok(true);
        }
        let (head, first) = (self.state.head, self.first_unaccepted()?);
        let turn = self.turn.as_mut().filter(|turn| turn.may_draw(publish_at, head, first, now));
        Ok(turn.map(|turn| turn.begin(now)).is_some())
    }

    /// When the first message is due that the witness has not accepted yet.
    pub(super) fn first_unaccepted(&self) -> Result<Option<Timestamp>, Error> {
        let accepted = self
            .turn
            .as_ref()
            .and_then(Turn::accepted)
            .map_or(i64::MIN, |head| i64::try_from(head.sequence).unwrap_or(i64::MAX));
        let first = "SELECT sequence FROM outbox WHERE sequence > ?1 ORDER BY sequence LIMIT 1";
        let read = || {
            let first: Option<i64> = self.connection.query_row(first, [accepted], |row| row.get(0)).optional()?;
            first.map_or(Ok(None), |sequence| Outgoing::read(&self.connection, sequence))
        };
        let first = read().map_err(|error| Error::sqlite(&self.file, error))?;
        Ok(first.map(|outgoing| outgoing.publish_at))
    }

    /// Appends what others have claimed up to `accepted`, the newest accepted claim of the witness `identity`, and learns what they have
    /// published. Returns whether there was anything. What cannot be appended is left to [`recognise`](Self::recognise).
    ///
    /// # Errors
    ///
    /// If the log cannot be read or lacks a row for now, [`Error::OtherSettings`], or if a row is damaged.
    pub fn follow(&mut self, identity: &str, accepted: Option<&Claim>, now: Timestamp) -> Result<bool, Error> {
        if self.turn.is_none() || identity != self.state.genesis.witness {
            return Ok(false);
        }
        let Some(claim) = accepted else {
            self.see(accepted, now);
            return Ok(false);
        };
        let is_known = self.contains(&claim.head)? || self.state.genesis.previous == Some(claim.head);
        let is_ours = self.is_ours(claim);
        if is_known && is_ours {
            self.see(accepted, now);
            return Ok(false);
        }
        if let Some(log) = &mut self.log {
            log.follow(self.state.head.sequence);
            log.read()?;
        }
        if !is_known && !self.catch_up(claim.head)? {
            return Ok(false);
        }
        let has_learnt = self.learn_published(now)?;
        self.see(accepted, now);
        Ok(!is_known || has_learnt)
    }

    /// Whether this worker made a claim, or nobody in particular.
    fn is_ours(&self, claim: &Claim) -> bool {
        claim.maker.is_none() || claim.maker == self.instance || self.state.genesis.previous == Some(claim.head)
    }

    /// The newest accepted claim is `accepted`, which this ledger has.
    fn see(&mut self, accepted: Option<&Claim>, now: Timestamp) {
        let head = accepted.map(|claim| claim.head);
        let is_ours = accepted.is_none_or(|claim| self.is_ours(claim));
        let handed_over = head.and_then(|head| self.log.as_ref().and_then(|log| log.handed_over(&head)));
        let is_all = head == Some(self.state.head);
        if let Some(turn) = &mut self.turn {
            turn.see(head, is_ours, handed_over, now);
            if is_all {
                turn.rest();
                turn.settle(&self.state.account.settings);
            }
        }
    }

    /// Appends the rows up to `accepted`, verified as those that are appended; `false` if that does not follow the newest row, or the log
    /// does not have all of it any more.
    fn catch_up(&mut self, accepted: Head) -> Result<bool, Error> {
        let Some(log) = &mut self.log else { return Ok(false) };
        let Some(bodies) = log.between(self.state.head, accepted)? else { return Ok(false) };
        let before = self.state.account.settings.clone();
        let (mut state, mut rows) = (self.state.clone(), Vec::new());
        for body in bodies {
            let head = body.entry.head;
            let damaged =
                |what: String| Error::damaged(&self.file, format!("row {} of its log: {what}", head.sequence));
            let (row, spent) = state.take(&body.entry, damaged)?;
            let checkpoint = Checkpoint::is_due(head.sequence).then(|| state.checkpoint(&state.account, head));
            rows.push((body, row, spent, checkpoint));
        }
        // What a later row has replaced when a body was appended is not in it; what is in use now must be.
        let is_there = |(slot, (written, _)): (&String, &(u64, Digest))| {
            let of = rows.iter().find(|(body, ..)| body.entry.head.sequence == *written);
            of.is_none_or(|(body, ..)| body.has_state(slot))
        };
        if !state.account.states.iter().all(is_there) {
            return Ok(false);
        }
        self.write(|transaction| {
            rows.iter().try_for_each(|(body, row, spent, checkpoint)| {
                write_row(transaction, body, Some(row), spent, Messages::Unpublished)?;
                checkpoint.iter().try_for_each(|checkpoint| checkpoint.insert(transaction))
            })
        })?;
        self.state = state;
        if let Some(log) = &mut self.log {
            log.follow(self.state.head.sequence);
        }
        let is_change = |row: &Row| matches!(row, Row::Configuration(_));
        let recorded = rows.iter().rev().find(|(_, row, ..)| is_change(row)).map(|(body, ..)| body.entry.head.sequence);
        // The end of a share, say, repeats the settings that were recorded before.
        let settings = &self.state.account.settings;
        match (recorded, &self.turn) {
            (Some(row), Some(turn)) if *settings != before && !turn.wanted.agrees(settings) => {
                Err(Error::OtherSettings { row })
            }
            _ => Ok(true),
        }
    }

    /// Learns from the log what others have published; whether that was anything.
    fn learn_published(&mut self, now: Timestamp) -> Result<bool, Error> {
        let sqlite = |error| Error::sqlite(&self.file, error);
        let first = "SELECT sequence FROM outbox WHERE published_at IS NULL ORDER BY sequence, place LIMIT 1";
        let first: Option<i64> = self.connection.query_row(first, [], |row| row.get(0)).optional().map_err(sqlite)?;
        let (Some(first), Some(log)) = (first.and_then(|first| u64::try_from(first).ok()), &self.log) else {
            return Ok(false);
        };
        let digest = "SELECT digest FROM rows WHERE sequence = ?1";
        let published = log.published(first, |head| {
            let Ok(sequence) = i64::try_from(head.sequence) else { return Ok(false) };
            let found = self.connection.query_row(digest, [sequence], |row| store::digest_of(row, 0)).optional()?;
            Ok(found == Some(head.digest))
        });
        let Some(published) = published.map_err(sqlite)? else { return Ok(false) };
        let (published, head) = (i64::try_from(published).unwrap_or(i64::MAX), self.state.head.sequence);
        let keep_from = now.minus(self.keep_published);
        self.write(|transaction| {
            outbox::drop_old(transaction, i64::try_from(head).unwrap_or(i64::MAX), keep_from)?;
            let mark = "UPDATE outbox SET published_at = ?2 WHERE published_at IS NULL AND sequence <= ?1";
            transaction.execute(mark, params![published, now.micros()]).map(drop)
        })?;
        Ok(true)
    }

    /// The newest time at which messages are due on the output that are published now: those of another worker later than one's own.
    pub fn publishes_until(&self, now: Timestamp) -> Timestamp {
        self.turn.as_ref().map_or(now, |turn| turn.publishes_until(now))
    }

    /// Leaves what comes next to others at once, and returns whether it was this worker's turn. Only a hint: without it they wait longer.
    ///
    /// # Errors
    ///
    /// If the log cannot be written.
    pub fn resign(&mut self, now: Timestamp) -> Result<bool, Error> {
        let (Some(turn), Some(log)) = (&self.turn, &mut self.log) else { return Ok(false) };
        let Some(accepted) = turn.accepted().filter(|_| turn.is_acting()) else { return Ok(false) };
        log.hand_over(accepted, now)?;
        // A claim on its newest rows may be under way.
        if self.state.head != accepted {
            log.hand_over(self.state.head, now)?;
        }
        Ok(true)
    }
}
