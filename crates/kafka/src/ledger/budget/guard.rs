//! A witness that takes claims only while the ledger's share holds.

use super::topic::BudgetTopic;
use bernstream_ledger::budget::entry::ShareHolder;
use bernstream_ledger::budget::error::BudgetError;
use bernstream_ledger::budget::fold::ActiveShare;
use bernstream_ledger::chain::Head;
use bernstream_ledger::witness;
use bernstream_ledger::witness::{StrayCounts, Witness, WitnessClaim};

/// The witness of a ledger that holds a share.
///
/// The budget topic is asked for its id and read after a window was paid for and before it is claimed. What is not claimed is
/// never published, so a topic that was made anew, in which others may have taken the same share, is noticed in time.
pub struct GuardedWitness {
    witness: Box<dyn Witness + Send>,
    topic: BudgetTopic,
    holder: ShareHolder,
}

impl GuardedWitness {
    pub fn new(witness: Box<dyn Witness + Send>, topic: BudgetTopic, holder: ShareHolder) -> Self {
        GuardedWitness {
            witness,
            topic,
            holder,
        }
    }
}

impl Witness for GuardedWitness {
    fn read(&mut self) -> Result<Option<WitnessClaim>, witness::WitnessError> {
        self.witness.read()
    }

    fn identity(&mut self) -> Result<String, witness::WitnessError> {
        self.witness.identity()
    }

    fn append(&mut self, claim: &WitnessClaim) -> Result<(), witness::WitnessError> {
        let held = current_share(&mut self.topic, &self.holder)?;
        if let Some(until) = held.until.filter(|until| claim.last_block_end > *until) {
            return Err(BudgetError::Ended {
                name: self.topic.name().to_owned(),
                until,
            }
            .into());
        }
        self.witness.append(claim)
    }

    fn remembered(&self) -> Option<Head> {
        self.witness.remembered()
    }

    fn settle(&mut self) {
        self.witness.settle();
    }

    fn strays(&self) -> StrayCounts {
        StrayCounts {
            budget: self.topic.count_strays(),
            ..self.witness.strays()
        }
    }
}

/// The share of `holder`, as it is now.
///
/// # Errors
///
/// [`BudgetError::Unheld`] if the topic does not know it, or if it cannot be read.
pub fn current_share(
    topic: &mut BudgetTopic,
    holder: &ShareHolder,
) -> Result<ActiveShare, BudgetError> {
    let held = topic.read_shares()?.share_of(holder).cloned();
    held.ok_or_else(|| BudgetError::Unheld {
        name: topic.name().to_owned(),
    })
}
