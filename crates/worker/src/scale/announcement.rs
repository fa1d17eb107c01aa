//! The requests of a worker to absorbers.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use bernstream_synopsis::Positions;
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::grid::Span;

/// Everything that the partials of a window depend on, but for the log itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowAnnouncement {
    /// The version of the form of partials: [`bernstream_release::window::VERSION`].
    pub version: u32,
    /// A digest of the settings that decide what is read of a record.
    pub settings: String,
    /// The choices of `"auto"` that the ledger of the worker keeps, for absorbers, which have none. What follows from it is in `settings`.
    pub choices: String,
    /// The id of the input topic: another one of the same name has another log.
    pub topic: String,
    pub window: Span,
    /// Records with an earlier message timestamp are in.
    pub cutoff: Timestamp,
    /// The first window of the ledger.
    pub first: Timestamp,
    /// Until when the ledger takes late history.
    pub backfill_until: Option<Timestamp>,
    /// The end offset of every partition: a record at or after it is out.
    pub ends: Positions,
    /// Offsets before which every message is too old for the window: what was deleted there is not missing. Nothing of a partial depends on
    /// it.
    #[serde(default)]
    pub past: Positions,
}

impl WindowAnnouncement {
    /// The name of the partial of a partition: two partials of one name are the same bytes. `None` where nothing was announced.
    pub fn partial_name(&self, partition: i32) -> Option<String> {
        let end = self.ends.0.get(&partition)?;
        let WindowAnnouncement {
            version,
            settings,
            topic,
            window,
            cutoff,
            first,
            backfill_until,
            ..
        } = self;
        let all = serde_json::json!([
            version,
            settings,
            topic,
            window,
            cutoff,
            first,
            backfill_until,
            partition,
            end
        ]);
        Some(to_hex(&Sha256::digest(all.to_string())))
    }
}

pub(super) fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
