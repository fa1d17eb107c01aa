//! Reading split over processes: absorbers read partitions and hand what windows keep of them to the worker.
//!
//! The worker announces a window with the end offset of each partition; an absorber answers with *partials*: what the window has of one
//! partition. A partial is a pure function of what was announced and of the log of the partition up to that end ([`WindowAnnouncement`]), so
//! that it does not matter who makes it, how often, or whether anybody does: the worker reads what nobody sends.

mod absorber_loop;
mod announcement;
mod collected;
mod deleting;
mod membership;
mod partition_absorber;
mod pulse;
mod replays;
mod topic;
mod wire;

use std::path::PathBuf;
use std::time::Duration;

pub use self::absorber_loop::{Absorber, AbsorberIdentity, ChoiceReader, ReadSettings};
pub use self::announcement::WindowAnnouncement;
pub use self::collected::{AddedPiece, CollectedPartials};
pub use self::partition_absorber::{AbsorbingStep, PartitionAbsorber, PartitionPartial};
pub use self::pulse::AbsorberPulse;
pub use self::topic::{LARGEST, ScaleTopic, message_limit_below, takes_compressed};
pub use self::wire::{
    AnnouncementHead, LONGEST, PartialPiece, ScaleKeys, ScaleMessage, split_into_pieces,
};
use bernstream_ledger::sealing;

/// The settings of reading that is split over processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScaleParams {
    /// A topic of the input's cluster for announcements and partials.
    pub topic: String,
    /// The file of the secret that they are encrypted with.
    pub key_file: PathBuf,
    /// The consumer group that hands out partitions to absorbers.
    pub group: String,
    /// The time after its announcement for which the worker waits for the partials of a window.
    pub deadline: Duration,
    /// The most bytes that the worker holds of the partials of a window.
    pub most: u64,
    /// Logs may tell what follows from the records.
    pub is_for_operators: bool,
}

impl ScaleParams {
    /// A warning if everyone can read the key.
    pub fn key_file_warning(&self) -> Option<String> {
        sealing::key_file_warning(&self.key_file, "absorbers")
    }
}
