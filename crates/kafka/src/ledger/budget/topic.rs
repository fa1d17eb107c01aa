//! The topic of a budget.

use crate::ordered;
use crate::ordered::OrderedTopic;
use crate::topic::TopicMetadata;
use bernstream_ledger::budget::entry::{BudgetRecord, ShareEnd, ShareHolder};
use bernstream_ledger::budget::error::BudgetError;
use bernstream_ledger::budget::fold::{BudgetShares, RecordRejection};
use bernstream_ledger::budget::join::{JoinStep, WantedShare, next_step};
use bernstream_ledger::fault::TopicFault;
use bernstream_synopsis::clock::Timestamp;

pub use crate::ordered::OrderedTopicParams;

/// Number of times that an entry is tried which others make void.
const TRIES: usize = 10;

/// The topic of a budget, read from its start.
pub struct BudgetTopic {
    topic: OrderedTopic,
    /// The topic that is read, by its id; one of the same name that was made anew has another.
    id: String,
    /// Its end when it was last read.
    end: i64,
    shares: BudgetShares,
    /// The records that changed nothing: their offsets, and why.
    void: Vec<(i64, RecordRejection)>,
}

impl BudgetTopic {
    /// Checks the settings of the topic; nothing is read yet.
    ///
    /// # Errors
    ///
    /// If the topic is missing, is not set up as it must be, or cannot be reached.
    pub fn open(params: &OrderedTopicParams) -> Result<Self, BudgetError> {
        let topic = OrderedTopic::open(params, "bernstream-budget")
            .map_err(|fault| BudgetError::from_fault(&params.topic, fault))?;
        let id = topic
            .topic_id()
            .map_err(|fault| BudgetError::from_fault(&params.topic, fault))?;
        Ok(BudgetTopic {
            topic,
            id,
            end: 0,
            shares: BudgetShares::default(),
            void: Vec::new(),
        })
    }

    /// Creates the topic with the settings of a budget.
    ///
    /// # Errors
    ///
    /// If the cluster cannot be reached or refuses.
    pub fn create(params: &OrderedTopicParams, replication: i32) -> Result<(), BudgetError> {
        ordered::create_topic(params, replication)
            .map_err(|fault| BudgetError::from_fault(&params.topic, fault))
    }

    pub fn name(&self) -> &str {
        self.topic.name()
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    /// The records that were read and changed nothing.
    pub fn void_records(&self) -> &[(i64, RecordRejection)] {
        &self.void
    }

    /// Number of records that were read and somebody else has written.
    pub fn count_strays(&self) -> u64 {
        self.void
            .iter()
            .filter(|(_, void)| *void == RecordRejection::Stray)
            .count() as u64
    }

    /// Reads everything from the first record on, and before that asks whether it is still the same topic.
    ///
    /// All of it each time: of a topic that an unclean election has cut and others have filled again, a reader that goes on from
    /// where it was would believe what is gone.
    ///
    /// # Errors
    ///
    /// [`BudgetError::Remade`] if it is not; or if it cannot be read, has lost records, or has one of another version.
    pub fn read_shares(&mut self) -> Result<&BudgetShares, BudgetError> {
        let end = self
            .topic
            .end_offset()
            .map_err(|fault| self.budget_error(fault))?;
        let id = self
            .topic
            .topic_id()
            .map_err(|fault| self.budget_error(fault))?;
        if id != self.id {
            return Err(BudgetError::Remade {
                name: self.name().to_owned(),
            });
        }
        if end < self.end {
            return Err(BudgetError::Shorter {
                name: self.name().to_owned(),
            });
        }
        self.end = end;
        self.topic.start_at(0);
        self.shares = BudgetShares::default();
        self.void.clear();
        loop {
            let read = self.topic.read_record(end);
            let Some(stored) = read.map_err(|fault| self.budget_error(fault))? else {
                return Ok(&self.shares);
            };
            let taken = match BudgetRecord::decode(&stored.payload) {
                Some(record) => self.shares.apply_record(record),
                // It may be a share.
                None if BudgetRecord::is_of_another_version(&stored.payload) => {
                    return Err(BudgetError::OfAnotherVersion {
                        name: self.name().to_owned(),
                    });
                }
                None => Err(RecordRejection::Stray),
            };
            if let Err(void) = taken {
                self.void.push((stored.offset, void));
            }
        }
    }

    /// Takes the share that is `wanted`, or over the one that the same pipeline holds; returns the holder and the start of
    /// the first block that a ledger may charge. Its entry was read back.
    ///
    /// # Errors
    ///
    /// If the share does not fit, or if the topic cannot be read or written: after a transient error the entry may be there, and the
    /// next call finds it.
    pub fn join(&mut self, wanted: &WantedShare) -> Result<(ShareHolder, Timestamp), BudgetError> {
        let mut ours = None;
        for _ in 0..TRIES {
            match next_step(self.read_shares()?, wanted, ours.as_ref())? {
                JoinStep::Begin { holder, from } => return Ok((holder, from)),
                JoinStep::Write(entry) => {
                    self.append_record(&BudgetRecord::Share(entry.clone()))?;
                    ours = Some(entry.holder);
                }
            }
        }
        Err(BudgetError::Busy {
            name: self.name().to_owned(),
        })
    }

    /// Ends a share. Only after the ledger says so, in a row that its witness has accepted.
    ///
    /// # Errors
    ///
    /// [`BudgetError::TakenOver`] by a newer ledger; or if the topic cannot be read or written, or does not know the share.
    pub fn end(&mut self, holder: &ShareHolder, from: Timestamp) -> Result<Timestamp, BudgetError> {
        for _ in 0..TRIES {
            let shares = self.read_shares()?;
            let held = shares.share_of(holder).cloned();
            let newest = shares
                .newest_of(&holder.owner)
                .map(|newest| newest.entry.clone());
            let Some(held) = held else {
                return Err(BudgetError::Unheld {
                    name: self.name().to_owned(),
                });
            };
            let Some(until) = held.until else {
                self.append_record(&BudgetRecord::End(ShareEnd {
                    holder: holder.clone(),
                    from,
                }))?;
                continue;
            };
            if let Some(newest) = newest
                && newest.holder != *holder
                && newest.from <= until
            {
                return Err(BudgetError::TakenOver {
                    name: self.name().to_owned(),
                    generation: newest.holder.generation,
                    from: newest.from,
                });
            }
            return Ok(until);
        }
        Err(BudgetError::Busy {
            name: self.name().to_owned(),
        })
    }

    fn append_record(&mut self, record: &BudgetRecord) -> Result<(), BudgetError> {
        let written = self.topic.append_record(record.encode().as_bytes());
        written.map_err(|fault| self.budget_error(fault))
    }

    fn budget_error(&self, fault: TopicFault) -> BudgetError {
        BudgetError::from_fault(self.name(), fault)
    }
}

/// Checks that the topic can hold a budget.
///
/// # Errors
///
/// If it has not the one partition or not the settings of a budget.
pub fn check_topic(params: &OrderedTopicParams, topic: &TopicMetadata) -> Result<(), BudgetError> {
    ordered::check_topic(params, topic)
        .map_err(|fault| BudgetError::from_fault(&params.topic, fault))
}
