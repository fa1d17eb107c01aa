//! Claims of a ledger at its witness, and whether the witness knows them.

use super::chain::Head;
use super::error::LedgerError;
use super::instance::{PRECEDENCE, WaitingRows};
use super::open::Ledger;
use super::witness::WitnessClaim;
use crate::store;
use bernstream_synopsis::clock::Timestamp;

impl Ledger {
    /// Checks that this ledger may continue from `accepted`, the newest accepted claim of the witness `identity`.
    ///
    /// # Errors
    ///
    /// [`LedgerError::ForeignWitness`] and [`LedgerError::ForeignHead`]: permanently, this ledger may not publish.
    pub fn check_accepted(
        &self,
        identity: &str,
        accepted: Option<&WitnessClaim>,
    ) -> Result<(), LedgerError> {
        if identity != self.state.genesis.witness {
            let expected = self.state.genesis.witness.clone();
            let found = identity.to_string();
            return Err(LedgerError::ForeignWitness {
                path: self.file.clone(),
                expected,
                found,
            });
        }
        let is_ours = match accepted {
            None => self.state.genesis.previous.is_none(),
            Some(claim) => {
                self.state.genesis.previous == Some(claim.head) || self.contains(&claim.head)?
            }
        };
        if is_ours {
            return Ok(());
        }
        let found = match accepted {
            None => "no row at all".to_string(),
            Some(WitnessClaim {
                head, maker: None, ..
            }) => format!("row {}", head.sequence),
            Some(WitnessClaim {
                head,
                maker: Some(maker),
                ..
            }) => {
                format!("row {}, claimed by the instance {maker}", head.sequence)
            }
        };
        Err(LedgerError::ForeignHead {
            path: self.file.clone(),
            found,
            newest: self.state.head.sequence,
        })
    }

    /// Schedules the next claim. Returns its earliest time: not after `now` if it may be made. `accepted` is the newest accepted claim.
    ///
    /// Without a [standby](super::StandbyRule) it is left to the instance that made that for some seconds: if that is the original and this a
    /// copy, the original wins. An instance that goes on alone loses these seconds, once.
    ///
    /// # Errors
    ///
    /// If the ledger cannot be read.
    pub fn schedule_claim(
        &mut self,
        accepted: Option<&WitnessClaim>,
        now: Timestamp,
    ) -> Result<Timestamp, LedgerError> {
        if self.leadership.is_some() {
            let head = self.state.head;
            let first = self.first_unaccepted()?;
            return Ok(self.leadership.as_mut().map_or(now, |leadership| {
                leadership.schedule_claim(head, first, now)
            }));
        }
        if let Some(claim) = accepted {
            self.note_first_claim(claim);
        }
        let other = accepted.filter(|claim| !self.is_ours(claim));
        let Some(claim) = other else {
            self.waiting = None;
            return Ok(now);
        };
        let waiting = self
            .waiting
            .filter(|waiting| waiting.accepted == claim.head && waiting.since <= now);
        let waiting = *self.waiting.insert(waiting.unwrap_or(WaitingRows {
            accepted: claim.head,
            since: now,
        }));
        Ok(waiting.since.plus(PRECEDENCE))
    }

    /// Notes that its rows are about to be claimed.
    pub fn note_claim(&mut self, now: Timestamp) {
        let head = self.state.head;
        if let Some(leadership) = &mut self.leadership {
            leadership.note_claim(head, now);
        }
    }

    /// The claim on all rows after `accepted`, the head of the witness; `None` if there are none. Where there is a log, it holds all
    /// rows before this returns.
    ///
    /// # Errors
    ///
    /// [`LedgerError::Replaced`] if the file was changed since it was opened, or if it cannot be read; [`LedgerError::Log`] if the log does not
    /// hold the rows.
    pub fn make_claim(
        &mut self,
        accepted: Option<&Head>,
    ) -> Result<Option<WitnessClaim>, LedgerError> {
        if accepted == Some(&self.state.head) {
            self.watch_log()?;
            return Ok(None);
        }
        self.check_usable()?;
        self.fill_log()?;
        let stored =
            store::stored_head(&self.connection).map_err(LedgerError::sqlite(&self.file))?;
        if stored != Some(self.state.head) {
            return Err(LedgerError::Replaced {
                path: self.file.clone(),
            });
        }
        if let (Some(maker), Some(folder)) = (&mut self.maker, self.file.parent()) {
            maker.keep_name(folder)?;
        }
        let head = self.state.head;
        let last_block_end = self.state.account.last_block_end;
        Ok(Some(WitnessClaim {
            previous: accepted.copied(),
            head,
            last_block_end,
            maker: self.instance(),
        }))
    }
}
