//! What a ledger claims at its witness, and whether the witness knows it.

use super::chain::Head;
use super::error::Error;
use super::open::Ledger;
use super::store;
use super::witness::Claim;

impl Ledger {
    /// Checks that this ledger may continue from `accepted`, the head of the witness `identity`.
    ///
    /// # Errors
    ///
    /// [`Error::ForeignWitness`] and [`Error::ForeignHead`]: permanently, this ledger may not publish.
    pub fn recognise(&self, identity: &str, accepted: Option<&Head>) -> Result<(), Error> {
        if identity != self.state.genesis.witness {
            let (expected, found) = (self.state.genesis.witness.clone(), identity.to_string());
            return Err(Error::ForeignWitness { path: self.file.clone(), expected, found });
        }
        let is_ours = match accepted {
            None => self.state.genesis.previous.is_none(),
            Some(head) => self.state.genesis.previous == Some(*head) || self.contains(head)?,
        };
        if is_ours {
            return Ok(());
        }
        let found = accepted.map_or_else(|| "no row at all".to_string(), |head| format!("row {}", head.sequence));
        Err(Error::ForeignHead { path: self.file.clone(), found, newest: self.state.head.sequence })
    }

    /// The claim on all rows after `accepted`, the head of the witness; `None` if there are none.
    ///
    /// # Errors
    ///
    /// [`Error::Replaced`] if the file was changed since it was opened, or if it cannot be read.
    pub fn claim(&self, accepted: Option<&Head>) -> Result<Option<Claim>, Error> {
        if accepted == Some(&self.state.head) {
            return Ok(None);
        }
        self.check_usable()?;
        let stored = store::stored_head(&self.connection).map_err(|error| Error::sqlite(&self.file, error))?;
        if stored != Some(self.state.head) {
            return Err(Error::Replaced { path: self.file.clone() });
        }
        let last_block_end = self.state.account.last_block_end;
        Ok(Some(Claim { previous: accepted.copied(), head: self.state.head, last_block_end }))
    }
}
