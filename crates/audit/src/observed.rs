//! Observations of a replay.

use super::stream::SourceQuestion;
use bernstream_noise::Exact;
use bernstream_release::window::FoundKeyTotals;
use bernstream_synopsis::clock::Timestamp;

/// All that a worker shows, and the exact values where noise meets them.
#[derive(Clone, Debug, Default)]
pub struct ReplayObservations {
    /// One a window for which noise was drawn.
    pub windows: Vec<DrawnWindow>,
    /// One a release, window and key, in the order of the walk.
    pub evaluations: Vec<Evaluation>,
    /// In the order in which they left; one an evaluation.
    pub published: Vec<PublishedBytes>,
    /// The metrics of the default level at the end.
    pub metrics: String,
    /// The log of the default level, in the order of the alphabet.
    pub log: Vec<String>,
    /// The rows of the ledger as `bernstream ledger export` prints them for everybody, without digests that are random or of noisy values.
    pub rows: Vec<String>,
    /// The questions to the source outside of reading.
    pub asked: Vec<SourceQuestion>,
    /// The sequence of the ledger's newest row, and the end of the last block that it claimed.
    pub claimed: Option<(u64, Timestamp)>,
    /// The reason why the worker stopped before the end of the grid.
    pub stopped: Option<String>,
}

/// Observations of a window when its noise was drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrawnWindow {
    /// Number of evaluations before it.
    pub evaluations: usize,
    /// Number of 32-bit words of randomness that it used.
    pub words: u128,
    /// The metrics of the default level just before.
    pub metrics: String,
}

/// The exact values of one release, window and key. Secret, of a stream that was made up.
#[derive(Clone, Debug)]
pub struct Evaluation {
    /// Its place in the plan.
    pub release: usize,
    /// The variant that was released; a private choice can select another one.
    pub variant: usize,
    /// The values of every variant, whichever was released.
    pub values: Vec<Exact>,
    /// The scores that the choice of an order compares, of every variant.
    pub scores: Vec<Option<Exact>>,
    /// The counts that a bandwidth is chosen from.
    pub counts: Option<Exact>,
    /// The numbers of the keys, where nobody listed them; there are no values then.
    pub found: Option<FoundKeyTotals>,
}

/// A message that left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishedBytes {
    pub key: String,
    pub headers: Vec<(String, String)>,
    pub bytes: Vec<u8>,
}
