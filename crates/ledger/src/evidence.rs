//! Evidence that rows were accepted, whatever the witness says now.
//!
//! Brokers acknowledge before they flush, so a witness may lose its newest claims. What they covered may have been published; then it is on
//! the output, or marked in the log or on this disk, or this worker remembers the claim. While the witness has not accepted all of that
//! again, nothing is drawn: a window would be published in a second version. Rows that somebody has are claimed again, the same bytes. A
//! claim that is made because of a stale read is void.

use super::chain::Head;
use super::error::LedgerError;
use super::log::{CannotAppend, LedgerLog, NextRows};
use super::open::Ledger;
use super::outgoing::{OutgoingRow, OutputMessage};
use crate::store;

/// Evidence that was found before the witness was read: whatever it shows was claimed before that.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    messages: Vec<OutputMessage>,
    /// Rows that the log says are published.
    marks: Vec<Head>,
}

/// Relation of the witness to the rows that a ledger and the evidence show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WitnessStanding {
    /// It has accepted all that was published.
    Agrees,
    /// It has not accepted this row of the ledger, which was published.
    Behind(Head),
    /// A row was published that the ledger does not have.
    Unknown(AcceptedEvidence),
}

/// Evidence of a row that was accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AcceptedEvidence {
    Row(Head),
    /// Somebody else may have written it.
    Message(OutputMessage),
}

impl AcceptedEvidence {
    pub fn sequence(&self) -> u64 {
        match self {
            AcceptedEvidence::Row(head) => head.sequence,
            AcceptedEvidence::Message(message) => message.sequence,
        }
    }
}

/// Rows that were accepted and may not be any more.
#[derive(Debug, Default)]
struct DisputedRows {
    /// Rows of the ledger.
    own: Vec<Head>,
    unknown: Vec<AcceptedEvidence>,
}

impl Evidence {
    /// The newest `messages` of the output, and what `log` says of published rows, which is read.
    ///
    /// # Errors
    ///
    /// If the log cannot be read.
    pub fn gather(
        messages: Vec<OutputMessage>,
        log: Option<&mut LedgerLog>,
    ) -> Result<Self, LedgerError> {
        let marks = match log {
            Some(log) => {
                log.read()?;
                log.marked_rows()
            }
            None => Vec::new(),
        };
        Ok(Evidence { messages, marks })
    }
}

impl Ledger {
    /// Gathers the evidence, with its own log.
    ///
    /// # Errors
    ///
    /// If that cannot be read.
    pub fn gather_evidence(
        &mut self,
        messages: Vec<OutputMessage>,
    ) -> Result<Evidence, LedgerError> {
        Evidence::gather(messages, self.log.as_mut())
    }

    /// Relation of the witness, whose head `accepted` is a row of this ledger, and which had once accepted `remembered`, to the rows of it.
    ///
    /// # Errors
    ///
    /// If the ledger cannot be read.
    pub fn standing_of_witness(
        &self,
        accepted: Option<&Head>,
        remembered: Option<Head>,
        evidence: &Evidence,
    ) -> Result<WitnessStanding, LedgerError> {
        let found = self.find_unaccepted(accepted, remembered, evidence)?;
        let unknown = found
            .unknown
            .into_iter()
            .max_by_key(AcceptedEvidence::sequence);
        let newest = found.own.into_iter().max_by_key(|head| head.sequence);
        if let Some(shown) = unknown {
            return Ok(WitnessStanding::Unknown(shown));
        }
        Ok(newest.map_or(WitnessStanding::Agrees, WitnessStanding::Behind))
    }

    /// Checks that the rows up to `accepted`, which this ledger does not have, leave out none of its own that was published: nobody else may
    /// have that, so its file is not replaced. `log` was read.
    ///
    /// # Errors
    ///
    /// [`LedgerError::TwoBranches`] if they do, or if the ledger cannot be read.
    pub fn check_gives_way(
        &self,
        log: &LedgerLog,
        accepted: Head,
        remembered: Option<Head>,
        evidence: &Evidence,
    ) -> Result<(), LedgerError> {
        let published = self.newest_published()?;
        let mut own = self
            .find_unaccepted(published.as_ref(), remembered, evidence)?
            .own;
        own.extend(published);
        match own.into_iter().max_by_key(|head| head.sequence) {
            Some(newest) if log.is_overruled(newest, accepted) => Err(LedgerError::TwoBranches {
                row: newest.sequence,
            }),
            _ => Ok(()),
        }
    }

    /// The row up to which the ledger must take rows from `log`, which was read from its beginning, before they are claimed again: those up to
    /// the newest one that was published, and those that the log has after it, for they may have been accepted. `None` if there are
    /// none, or the ledger has them.
    ///
    /// # Errors
    ///
    /// [`LedgerError::LostClaims`] if the log does not have them either, [`LedgerError::TwoBranches`] if they are not rows of one ledger.
    pub fn row_to_take(
        &self,
        log: &mut LedgerLog,
        accepted: Option<&Head>,
        remembered: Option<Head>,
        evidence: &Evidence,
    ) -> Result<Option<Head>, LedgerError> {
        let DisputedRows { own, unknown } = self.find_unaccepted(accepted, remembered, evidence)?;
        if unknown.is_empty() {
            return Ok(log.continuation(self.state.head));
        }
        // The ledger has the accepted row, and so another one of each earlier number.
        for rival in unknown.iter().map(AcceptedEvidence::sequence) {
            if accepted.is_some_and(|head| rival <= head.sequence) {
                return Err(LedgerError::TwoBranches { row: rival });
            }
        }
        log.keep_after(accepted.map_or(0, |head| head.sequence))?;
        let mut shown = own;
        for what in unknown {
            let row = match &what {
                AcceptedEvidence::Row(head) => Some(*head),
                AcceptedEvidence::Message(message) => log.row_of(message),
            };
            shown.push(row.ok_or_else(|| LedgerError::lost_claims(&what, accepted))?);
        }
        let Some(newest) = shown.iter().copied().max_by_key(|head| head.sequence) else {
            return Ok(None);
        };
        // The first row of a ledger that follows another one does not name that one's head.
        let own_accepted = accepted.filter(|head| self.state.genesis.previous != Some(**head));
        let is_there = match own_accepted {
            Some(accepted) => log.rows_between(*accepted, newest).is_ok(),
            None => log.can_build(&newest),
        };
        if !is_there {
            return Err(LedgerError::lost_claims(
                &AcceptedEvidence::Row(newest),
                accepted,
            ));
        }
        // All of them, and what the witness has accepted, are rows of one chain.
        for row in shown.iter().chain(own_accepted) {
            let next = log.rows_between(*row, newest);
            if matches!(next, Ok(NextRows::Refused(CannotAppend::Lost))) {
                return Err(LedgerError::TwoBranches { row: row.sequence });
            }
        }
        Ok(Some(log.continuation(newest).unwrap_or(newest)))
    }

    /// Evidence that more was accepted than `accepted`, or something else.
    fn find_unaccepted(
        &self,
        accepted: Option<&Head>,
        remembered: Option<Head>,
        evidence: &Evidence,
    ) -> Result<DisputedRows, LedgerError> {
        let published = self.newest_published()?;
        let pruned = store::pruned_to(&self.connection).map_err(LedgerError::sqlite(&self.file))?;
        // Of these this ledger publishes nothing any more. A later number may be that of another row, which was published and lost its claim.
        let settled = published
            .map(|head| head.sequence)
            .max(u64::try_from(pruned).ok());
        let settled = settled.min(accepted.map(|head| head.sequence));
        let mut found = DisputedRows::default();
        let marks = evidence
            .marks
            .iter()
            .copied()
            .filter(|mark| self.is_open(mark.sequence, settled));
        // A worker may remember the ledger that this one has replaced.
        let replaced = self.state.genesis.previous.map(|head| head.sequence);
        let remembered = remembered
            .filter(|head| Some(head.sequence) > replaced && !self.is_missing_row(head.sequence));
        for head in published.into_iter().chain(marks).chain(remembered) {
            if !self.contains(&head)? {
                found.unknown.push(AcceptedEvidence::Row(head));
            } else if is_later(head, accepted) {
                found.own.push(head);
            }
        }
        for message in &evidence.messages {
            if message.ledger != self.state.genesis.ledger
                || !self.is_open(message.sequence, settled)
            {
                continue;
            }
            match self.row_that_paid(message)? {
                Some(head) if is_later(head, accepted) => found.own.push(head),
                Some(_) => {}
                None => found
                    .unknown
                    .push(AcceptedEvidence::Message(message.clone())),
            }
        }
        Ok(found)
    }

    /// Returns true if this ledger may still publish messages of the row `sequence`: it is after `settled`, and not missing.
    fn is_open(&self, sequence: u64, settled: Option<u64>) -> bool {
        Some(sequence) > settled && !self.is_missing_row(sequence)
    }

    fn is_missing_row(&self, sequence: u64) -> bool {
        self.missing()
            .is_some_and(|rows| (rows.first..=rows.last).contains(&sequence))
    }

    /// The newest row of which a message is known to be published, of those whose messages are kept.
    ///
    /// # Errors
    ///
    /// If the ledger cannot be read.
    pub fn newest_published(&self) -> Result<Option<Head>, LedgerError> {
        let newest = "SELECT max(sequence) FROM outbox WHERE published_at IS NOT NULL";
        let newest: Option<i64> = self
            .connection
            .query_row(newest, [], |row| row.get(0))
            .map_err(LedgerError::sqlite(&self.file))?;
        match newest {
            Some(sequence) => self.head_at(sequence),
            None => Ok(None),
        }
    }

    fn row_that_paid(&self, message: &OutputMessage) -> Result<Option<Head>, LedgerError> {
        let Ok(sequence) = i64::try_from(message.sequence) else {
            return Ok(None);
        };
        let row = OutgoingRow::read_row(&self.connection, sequence)
            .map_err(LedgerError::sqlite(&self.file))?;
        match row {
            Some(row) if message.is_one_of(&row.messages) => self.head_at(sequence),
            _ => Ok(None),
        }
    }

    fn head_at(&self, sequence: i64) -> Result<Option<Head>, LedgerError> {
        store::head_at(&self.connection, sequence).map_err(LedgerError::sqlite(&self.file))
    }
}

fn is_later(head: Head, accepted: Option<&Head>) -> bool {
    accepted.is_none_or(|accepted| head.sequence > accepted.sequence)
}

impl LedgerError {
    /// Error of a ledger that does not have the row of `shown`, which was published; the newest one that the witness has accepted is `accepted`.
    pub fn lost_claims(shown: &AcceptedEvidence, accepted: Option<&Head>) -> Self {
        let row = shown.sequence();
        if accepted.is_some_and(|head| row <= head.sequence) {
            return LedgerError::TwoBranches { row };
        }
        let accepted = accepted.map_or("none".to_owned(), |head| head.sequence.to_string());
        let shown = match shown {
            AcceptedEvidence::Row(_) => String::new(),
            AcceptedEvidence::Message(message) => {
                format!(" (a message in {} says so)", message.place)
            }
        };
        LedgerError::LostClaims {
            row,
            accepted,
            shown,
        }
    }
}
