//! The witness as a topic of one partition.

use std::path::Path;

use super::place::{Memory, Place};
use super::{Claim, Error, Witness, fold};
use crate::kafka::ordered::{self, Fault, OrderedTopic};
use crate::kafka::topic::Topic;

pub use crate::kafka::ordered::{Params, SETTINGS};

/// A witness topic, read from offset 0.
pub struct KafkaWitness {
    /// Everything before its next offset is folded.
    topic: OrderedTopic,
    accepted: Option<Claim>,
    /// The accepted record, as it is in the topic.
    place: Option<Place>,
    /// The topic that is read, by its id; a topic of the same name that was made anew has another.
    identity: String,
    memory: Option<Memory>,
}

impl KafkaWitness {
    /// Checks the settings of the topic and starts to read it.
    ///
    /// # Errors
    ///
    /// If the topic is missing, cannot be a witness, or cannot be reached.
    pub fn open(params: &Params) -> Result<Self, Error> {
        let topic = OrderedTopic::open(params, "bernstream-witness").map_err(|fault| explain(params, fault))?;
        let mut witness = KafkaWitness { topic, accepted: None, place: None, identity: String::new(), memory: None };
        witness.identity = witness.identity()?;
        Ok(witness)
    }

    /// Reads from the accepted claim that the file `path` remembers, if it does, and keeps it up to date. For the one worker of a
    /// ledger.
    #[must_use]
    pub fn remembering(mut self, path: &Path) -> Self {
        let (memory, place) = Memory::load(path.into());
        self.memory = Some(memory);
        // Of another topic it says nothing.
        if let Some(place) = place.filter(|place| place.identity == self.identity)
            && let Ok(offset) = i64::try_from(place.offset)
        {
            self.topic.start_at(offset);
            self.place = Some(place);
        }
        self
    }

    /// Folds the record `payload`, that at `offset`.
    fn take(&mut self, offset: i64, payload: &[u8]) -> Result<(), Error> {
        let remembered = self.place.as_ref().filter(|_| self.accepted.is_none());
        if remembered.is_some_and(|place| place.record.as_bytes() != payload) {
            let what = format!("the record at offset {offset} is not the one that was accepted there");
            return Err(self.failed(Fault::Damaged { what }));
        }
        let no_claim = || self.failed(Fault::Damaged { what: format!("the record at offset {offset} is no claim") });
        let claim = Claim::decode(payload).ok_or_else(no_claim)?;
        let accepted = if remembered.is_some() { Some(claim) } else { fold(self.accepted, claim) };
        if accepted != self.accepted {
            let record = String::from_utf8_lossy(payload).into_owned();
            self.place = Some(Place { identity: self.identity.clone(), offset: offset.unsigned_abs(), record });
            self.accepted = accepted;
        }
        Ok(())
    }

    /// Creates the topic with the settings of a witness.
    ///
    /// # Errors
    ///
    /// If the cluster cannot be reached or refuses.
    pub fn create(params: &Params, replication: i32) -> Result<(), Error> {
        ordered::create(params, replication).map_err(|fault| explain(params, fault))
    }

    fn failed(&self, fault: Fault) -> Error {
        of(self.topic.name(), fault)
    }
}

impl Witness for KafkaWitness {
    fn read(&mut self) -> Result<Option<Claim>, Error> {
        let end = self.topic.end().map_err(|fault| self.failed(fault))?;
        // The remembered record is read, the others were.
        let next = self.topic.next();
        let read = if self.topic.is_begun() || self.place.is_none() { next } else { next + 1 };
        if end < read {
            // Made anew, it is another witness, which the ledger refuses.
            if self.identity()? != self.identity {
                return Ok(self.accepted);
            }
            let offset = read.unsigned_abs().saturating_sub(1);
            return Err(Error::Shorter { name: self.topic.name().to_owned(), offset });
        }
        while self.topic.next() < end {
            let offset = self.topic.next();
            let payload = self.topic.read().map_err(|fault| self.failed(fault))?;
            self.take(offset, &payload)?;
        }
        if let (Some(memory), Some(place)) = (&mut self.memory, &self.place) {
            memory.save(place);
        }
        Ok(self.accepted)
    }

    fn identity(&mut self) -> Result<String, Error> {
        self.topic.identity().map_err(|fault| self.failed(fault))
    }

    fn append(&mut self, claim: &Claim) -> Result<(), Error> {
        self.topic.append(claim.encode().as_bytes()).map_err(|fault| self.failed(fault))
    }
}

/// Checks that the topic can be a witness.
///
/// # Errors
///
/// If it has not the one partition or not the settings of a witness.
pub fn check(params: &Params, topic: &Topic) -> Result<(), Error> {
    ordered::check(params, topic).map_err(|fault| explain(params, fault))
}

fn explain(params: &Params, fault: Fault) -> Error {
    of(&params.topic, fault)
}

fn of(name: &str, fault: Fault) -> Error {
    let name = name.to_owned();
    match fault {
        Fault::Unavailable { why } => Error::Unavailable { name, why },
        Fault::Refused { why } => Error::Refused { name, why },
        Fault::Missing => Error::Missing { name },
        Fault::Damaged { what } => Error::Damaged { name, what },
        Fault::Partitions { partitions } => Error::Partitions { name, partitions },
        Fault::Setting { setting, found, needed } => Error::Setting { name, setting, found, needed },
    }
}
