//! The witness as a topic of one partition.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::ordered;
use crate::ordered::{OrderedTopic, StoredRecord};
use crate::topic::TopicMetadata;
use bernstream_ledger::chain::Head;
use bernstream_ledger::fault::TopicFault;
use bernstream_ledger::witness::place::{ClaimPlace, PlaceMemory};
use bernstream_ledger::witness::{
    StrayCounts, Witness, WitnessClaim, WitnessError, WitnessRecord, fold_claim,
};

pub use crate::ordered::OrderedTopicParams;

/// After so long without a read brokers may have lost power and been started again, as after what has failed: reading begins with the
/// accepted record.
const SILENCE: Duration = Duration::from_secs(10);

/// A witness topic, read from offset 0 or from the accepted record on, which must be where it was: otherwise it is read from offset 0 again,
/// and what was accepted is [remembered](Witness::remembered).
pub struct KafkaWitness {
    /// Everything before its next offset is folded.
    topic: OrderedTopic,
    accepted: Option<WitnessClaim>,
    /// The accepted record, as it is in the topic.
    place: Option<ClaimPlace>,
    /// The topic that is read, by its id; a topic of the same name that was made anew has another.
    identity: String,
    memory: Option<PlaceMemory>,
    /// The newest head that it had accepted and may have lost.
    remembered: Option<Head>,
    /// When it was last read to its end, if nothing has failed since.
    answered: Option<Instant>,
    /// The offsets of records that somebody else has written.
    strays: BTreeSet<i64>,
}

impl KafkaWitness {
    /// Checks the settings of the topic and starts to read it.
    ///
    /// # Errors
    ///
    /// If the topic is missing, cannot be a witness, or cannot be reached.
    pub fn open(params: &OrderedTopicParams) -> Result<Self, WitnessError> {
        let topic = OrderedTopic::open(params, "bernstream-witness")
            .map_err(|fault| witness_error(&params.topic, fault))?;
        let mut witness = KafkaWitness {
            topic,
            accepted: None,
            place: None,
            identity: String::new(),
            memory: None,
            remembered: None,
            answered: None,
            strays: BTreeSet::new(),
        };
        witness.identity = witness.identity()?;
        Ok(witness)
    }

    /// Reads from the accepted claim that the file `path` remembers, if it does, and keeps it up to date. For the one worker of a
    /// ledger.
    ///
    /// # Errors
    ///
    /// If it is there and cannot be read.
    pub fn with_memory(mut self, path: &Path) -> Result<Self, WitnessError> {
        let (memory, place) = PlaceMemory::load(path.into(), self.topic.name())?;
        self.memory = Some(memory);
        // A place in another topic says nothing of this one.
        let Some(place) = place.filter(|place| place.identity == self.identity) else {
            self.remembered = None;
            self.place = None;
            return Ok(self);
        };
        self.remembered = place.remembered;
        if place.record.is_empty() {
            self.place = None;
            return Ok(self);
        }
        let has_time = place.written.is_some();
        self.place = Some(place);
        // Written by a program that could not tell it apart from the same claim, sent again.
        if !has_time {
            self.begin_anew();
        }
        Ok(self)
    }

    /// Has the next read begin with the accepted record, which it compares.
    fn begin_at_place(&mut self) {
        let offset = self
            .place
            .as_ref()
            .and_then(|place| i64::try_from(place.offset).ok());
        self.topic.start_at(offset.unwrap_or(0));
        self.accepted = None;
    }

    /// Has the next read begin at offset 0: the accepted record is not where it was.
    fn begin_anew(&mut self) {
        if let Some(place) = self.place.take()
            && let Some(lost) = WitnessClaim::decode(place.record.as_bytes())
            && self
                .remembered
                .is_none_or(|remembered| lost.head.sequence > remembered.sequence)
        {
            self.remembered = Some(lost.head);
        }
        self.begin_at_place();
    }

    /// Reads to the end of the topic.
    fn read_on(&mut self) -> Result<(), TopicFault> {
        let end = self.topic.end_offset()?;
        // The accepted record is read again, the others were read.
        let next = self.topic.next_offset();
        let read = if self.topic.is_begun() || self.place.is_none() {
            next
        } else {
            next + 1
        };
        if end < read {
            return Err(TopicFault::Cut);
        }
        while let Some(stored) = self.topic.read_record(end)? {
            self.fold_record(&stored)?;
        }
        Ok(())
    }

    /// Keeps the accepted record, and what may be lost, in the file.
    fn save_place(&mut self) -> Result<(), WitnessError> {
        let Some(memory) = &mut self.memory else {
            return Ok(());
        };
        let remembered = self.remembered;
        let place = match self.place.clone() {
            Some(place) => ClaimPlace {
                remembered,
                ..place
            },
            None if remembered.is_none() => return Ok(()),
            None => ClaimPlace {
                identity: self.identity.clone(),
                offset: 0,
                record: String::new(),
                written: None,
                remembered,
            },
        };
        match memory.save(&place) {
            // The file still has an offset at which another claim may come to stand.
            Err(error) if self.remembered.is_some() => {
                let why =
                    format!("the file witness-place beside the ledger cannot be written: {error}");
                Err(WitnessError::Unavailable {
                    name: self.topic.name().to_owned(),
                    why,
                })
            }
            // Without it the next start reads more.
            _ => Ok(()),
        }
    }

    /// Folds a record.
    ///
    /// One that is no claim counts for nothing, here and for everyone else who reads it: a stray byte, an empty record, what an aborted
    /// transaction has left. What fits into the fold is a claim, whether a transaction has written it or not.
    fn fold_record(&mut self, stored: &StoredRecord) -> Result<(), TopicFault> {
        let place = self.place.as_ref().filter(|_| self.accepted.is_none());
        if place.is_some_and(|place| !is_at_place(stored, place)) {
            return Err(TopicFault::Cut);
        }
        let claim = match WitnessRecord::decode(&stored.payload) {
            WitnessRecord::Claim(claim) => claim,
            WitnessRecord::OfAnotherVersion => return Err(TopicFault::OfAnotherVersion),
            WitnessRecord::Stray => {
                self.strays.insert(stored.offset);
                return Ok(());
            }
        };
        let accepted = if place.is_some() {
            Some(claim)
        } else {
            fold_claim(self.accepted, claim)
        };
        if accepted != self.accepted {
            self.place = Some(ClaimPlace {
                identity: self.identity.clone(),
                offset: stored.offset.unsigned_abs(),
                record: String::from_utf8_lossy(&stored.payload).into_owned(),
                written: stored.written,
                remembered: None,
            });
            self.accepted = accepted;
        }
        Ok(())
    }

    /// Creates the topic with the settings of a witness.
    ///
    /// # Errors
    ///
    /// If the cluster cannot be reached or refuses.
    pub fn create(params: &OrderedTopicParams, replication: i32) -> Result<(), WitnessError> {
        ordered::create_topic(params, replication)
            .map_err(|fault| witness_error(&params.topic, fault))
    }

    fn own_error(&self, fault: TopicFault) -> WitnessError {
        witness_error(self.topic.name(), fault)
    }
}

/// Returns whether a record is the accepted one, as it was read before.
fn is_at_place(stored: &StoredRecord, place: &ClaimPlace) -> bool {
    i64::try_from(place.offset).ok() == Some(stored.offset)
        && place.written.is_some()
        && place.written == stored.written
        && place.record.as_bytes() == stored.payload.as_slice()
}

impl Witness for KafkaWitness {
    fn read(&mut self) -> Result<Option<WitnessClaim>, WitnessError> {
        match self.answered.take() {
            Some(answered) if answered.elapsed() <= SILENCE => {}
            _ => self.begin_at_place(),
        }
        match self.read_on() {
            Err(TopicFault::Cut) => {
                // Made anew, it is another witness, which the ledger refuses.
                if self.identity()? != self.identity {
                    return Ok(self.accepted);
                }
                self.begin_anew();
                self.read_on().map_err(|fault| self.own_error(fault))?;
            }
            read => read.map_err(|fault| self.own_error(fault))?,
        }
        self.save_place()?;
        self.answered = Some(Instant::now());
        Ok(self.accepted)
    }

    fn identity(&mut self) -> Result<String, WitnessError> {
        self.topic.topic_id().map_err(|fault| self.own_error(fault))
    }

    fn append(&mut self, claim: &WitnessClaim) -> Result<(), WitnessError> {
        let appended = self.topic.append_record(claim.encode().as_bytes());
        self.answered = self.answered.filter(|_| appended.is_ok());
        appended.map_err(|fault| self.own_error(fault))
    }

    fn remembered(&self) -> Option<Head> {
        self.remembered
    }

    fn settle(&mut self) {
        // The file is brought up to date by the next read.
        self.remembered = None;
    }

    fn strays(&self) -> StrayCounts {
        StrayCounts {
            witness: self.strays.len() as u64,
            budget: 0,
        }
    }
}

/// Checks that the topic can be a witness.
///
/// # Errors
///
/// If it has not the one partition or not the settings of a witness.
pub fn check_topic(params: &OrderedTopicParams, topic: &TopicMetadata) -> Result<(), WitnessError> {
    ordered::check_topic(params, topic).map_err(|fault| witness_error(&params.topic, fault))
}

fn witness_error(name: &str, fault: TopicFault) -> WitnessError {
    let name = name.to_owned();
    match fault {
        TopicFault::Unavailable { why } => WitnessError::Unavailable { name, why },
        TopicFault::Refused { why } => WitnessError::Refused { name, why },
        TopicFault::Missing => WitnessError::Missing { name },
        TopicFault::Damaged { what } => WitnessError::Damaged { name, what },
        TopicFault::OfAnotherVersion => WitnessError::OfAnotherVersion { name },
        TopicFault::Cut => WitnessError::Unavailable {
            name,
            why: "it was cut while it was read".to_owned(),
        },
        TopicFault::Partitions { partitions } => WitnessError::Partitions { name, partitions },
        TopicFault::Setting {
            setting,
            found,
            needed,
            remedy,
        } => WitnessError::Setting {
            name,
            setting,
            found,
            needed,
            remedy,
        },
    }
}
