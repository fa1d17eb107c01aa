//! Reasons why a budget cannot be shared, and what to do about it.

use crate::fault::TopicFault;
use bernstream_synopsis::Fraction;
use bernstream_synopsis::clock::Timestamp;

/// Reasons why a budget cannot be shared.
#[derive(Debug, thiserror::Error)]
pub enum BudgetError {
    #[error("the budget topic {name} cannot be reached: {why}")]
    Unavailable { name: String, why: String },
    #[error(
        "the budget topic {name} ends before a record that was read before: a broker that is behind shows the rest again; if it does \
         not, an unclean election has lost shares, and nothing may be published before the owners of its pipelines have decided"
    )]
    Shorter { name: String },
    #[error(
        "the budget topic {name} has a record of another version of this program, which this one cannot read: start the newest version \
         that its pipelines have had; nothing is lost"
    )]
    OfAnotherVersion { name: String },
    #[error("the budget topic {name} cannot be used: {why}")]
    Refused { name: String, why: String },
    #[error(
        "the budget topic {name} is missing: correct its name (`budget` in [privacy]), or, before the first pipeline of an input, \
         create it with `bernstream budget init`. If a pipeline has held a share already, it was deleted, and nobody may create it \
         anew, because it says who may spend what: restore it"
    )]
    Missing { name: String },
    #[error(
        "the budget topic {name} has been changed: {what}; it must never be compacted, expired, edited or replaced"
    )]
    Damaged { name: String, what: String },
    #[error(
        "the budget topic {name} has {partitions} partitions, and only in one do shares have one order: name another topic \
         (`budget` in [privacy]), which `bernstream budget init` creates"
    )]
    Partitions { name: String, partitions: usize },
    #[error(
        "the budget topic {name} has {setting} = {found}, but needs {needed}; a budget must never lose a record, nor take another one for it: {remedy}"
    )]
    Setting {
        name: String,
        setting: Box<str>,
        found: Box<str>,
        needed: Box<str>,
        remedy: Box<str>,
    },
    #[error(
        "the budget topic {name} was deleted and created anew, so that other pipelines may have taken what this one holds: nothing \
         is published until the owners of its pipelines have decided; a new ledger (`bernstream ledger init --replace`, in another \
         folder) asks the new topic for a share"
    )]
    Remade { name: String },
    #[error(
        "the budget topic {name} is not the one that this ledger has its share in, which has the id {id}: name that one (`budget` in \
         [privacy]); if the name is right, the topic was deleted and created anew, others may have taken the same share, and nothing \
         is published until the owners of its pipelines have decided"
    )]
    Elsewhere { name: String, id: String },
    #[error(
        "the brokers give topics no ids, so that nobody can tell the pipelines of the budget topic {name} apart: Apache Kafka has ids \
         since version 2.8 (with metadata.version or inter.broker.protocol.version from 2.8 on)"
    )]
    NoIds { name: String },
    #[error(
        "a newer ledger of this pipeline, of generation {generation}, has taken the share over in the budget topic {name} from {from} on: \
         this one can no longer end it; run `bernstream budget end` with the newer one, or, if that was never made, \
         `bernstream ledger init --replace` and then `bernstream budget end`"
    )]
    TakenOver {
        name: String,
        generation: u64,
        from: Timestamp,
    },
    #[error(
        "the budget topic {name} is of another budget: {what}; correct the configuration, or name another topic"
    )]
    OtherBudget { name: String, what: String },
    #[error(
        "this pipeline holds a share of {held} in the budget topic {name}, and the configuration asks for {asked}: write {held}, or \
         end that share first: `bernstream budget end` with its ledger, or with one that `bernstream ledger init --replace` makes for {held}"
    )]
    OtherShare {
        name: String,
        held: Fraction,
        asked: Fraction,
    },
    #[error(
        "the budget topic {name} has no share of {asked} left: {left}. It is held by {holders}; ask for less, or have one of them end (`bernstream budget end`)"
    )]
    Full {
        name: String,
        asked: Fraction,
        left: String,
        holders: String,
    },
    #[error(
        "the budget topic {name} has a share of {share} from {from} on, and the ledger was to begin at {asked}: begin then \
         (`bernstream ledger init --from`), or ask for less"
    )]
    Later {
        name: String,
        share: Fraction,
        asked: Timestamp,
        from: Timestamp,
    },
    #[error(
        "the budget topic {name} does not know the share of this ledger: it is another topic, or has lost records; nothing may be \
         published before the owners of its pipelines have decided"
    )]
    Unheld { name: String },
    #[error(
        "the share of this ledger in the budget topic {name} has ended at {until}, and blocks after that were charged: nothing \
         more may be published; a new ledger (`bernstream ledger init --replace`, in another folder) asks for a new share"
    )]
    Ended { name: String, until: Timestamp },
    #[error(
        "the budget topic {name} is written by others so often that no share could be taken; try again"
    )]
    Busy { name: String },
}

impl BudgetError {
    /// Returns true if it is worth trying again.
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            BudgetError::Unavailable { .. }
                | BudgetError::Shorter { .. }
                | BudgetError::Busy { .. }
        )
    }

    /// Returns true if the topic is not there.
    pub fn is_missing(&self) -> bool {
        matches!(self, BudgetError::Missing { .. })
    }

    /// Returns true if the topic is not set up as it must be.
    pub fn is_unsound(&self) -> bool {
        matches!(
            self,
            BudgetError::Partitions { .. }
                | BudgetError::Setting { .. }
                | BudgetError::Damaged { .. }
        )
    }

    pub fn from_fault(name: &str, fault: TopicFault) -> Self {
        let name = name.to_owned();
        match fault {
            TopicFault::Unavailable { why } => BudgetError::Unavailable { name, why },
            TopicFault::Refused { why } => BudgetError::Refused { name, why },
            TopicFault::Missing => BudgetError::Missing { name },
            TopicFault::Damaged { what } => BudgetError::Damaged { name, what },
            TopicFault::OfAnotherVersion => BudgetError::OfAnotherVersion { name },
            TopicFault::Cut => BudgetError::Damaged {
                name,
                what: "records that were not read yet are gone".to_owned(),
            },
            TopicFault::Partitions { partitions } => BudgetError::Partitions { name, partitions },
            TopicFault::Setting {
                setting,
                found,
                needed,
                remedy,
            } => BudgetError::Setting {
                name,
                setting,
                found,
                needed,
                remedy,
            },
        }
    }
}
