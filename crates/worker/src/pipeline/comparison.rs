//! The question whether the witness has lost claims: asked after a start, after every outage, where its reader finds it cut, and twice in a take-over,
//! before the draw and before what was claimed is published. Nothing is drawn before the answer is no.

use std::time::{Duration, Instant};

use bernstream_kafka::sink::OutputTail;
use bernstream_ledger::{Evidence, Head};

/// For how long the answer holds for a worker that follows another one and is about to take over.
const AGREEMENT_LIFETIME: Duration = Duration::from_secs(2);

/// After so long without a step, as of a process that was frozen, brokers may have lost power unnoticed.
const LONGEST_SILENCE: Duration = Duration::from_secs(10);

/// A comparison of the witness with what was published.
#[derive(Default)]
pub(super) struct WitnessComparison {
    /// The evidence that was found before the witness was read.
    pub found: Option<FoundOutput>,
    /// The time at which the witness agreed.
    agreed: Option<Instant>,
    /// The time of the last step.
    stepped: Option<Instant>,
    /// The log says that the witness has lost claims.
    pub is_loss_reported: bool,
    /// The loss of the output that the log has told.
    pub reported: ReportedLoss,
}

/// A loss of the output, which the next comparison finds again as long as nothing new is published.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ReportedLoss {
    /// Synopses whose bytes are not kept any more.
    pub gone: u64,
    /// The newest row that was published then.
    pub published: Option<Head>,
    /// Keys of which nothing is left on the output.
    pub unknown: usize,
}

/// The evidence of what was published.
pub(super) struct FoundOutput {
    /// The newest row of which that was known before the output was read.
    pub published: Option<Head>,
    pub tail: OutputTail,
    pub evidence: Evidence,
}

impl WitnessComparison {
    /// Compares again: brokers may have lost power meanwhile.
    pub fn begin_again(&mut self) {
        *self = WitnessComparison {
            is_loss_reported: self.is_loss_reported,
            reported: self.reported,
            ..WitnessComparison::default()
        };
    }

    /// A step is done. Before the next one publishes what a worker has claimed in the place of another one (`takes_over`), that may have
    /// published and lost its claim.
    pub fn step_done(&mut self, takes_over: bool) {
        if takes_over {
            self.begin_again();
        }
        self.stepped = Some(Instant::now());
    }

    /// Compares again if there was no step for so long that brokers may have lost power unnoticed.
    pub fn begin_again_if_silent(&mut self) {
        if self.is_silent() {
            self.begin_again();
        }
    }

    /// Returns whether it is time to look what was published.
    pub fn needs_evidence(&self) -> bool {
        !self.has_agreed() && self.found.is_none()
    }

    /// Records that the witness has accepted all of it. Returns whether the log says otherwise.
    pub fn record_agreement(&mut self) -> bool {
        self.found = None;
        self.agreed = Some(Instant::now());
        std::mem::take(&mut self.is_loss_reported)
    }

    fn is_silent(&self) -> bool {
        self.stepped
            .is_some_and(|stepped| stepped.elapsed() > LONGEST_SILENCE)
    }

    /// Returns whether the witness has accepted all that was published.
    pub fn has_agreed(&self) -> bool {
        self.agreed.is_some() && !self.is_silent()
    }

    /// Returns whether it has lately.
    pub fn is_fresh(&self) -> bool {
        self.agreed
            .is_some_and(|agreed| agreed.elapsed() < AGREEMENT_LIFETIME)
    }
}
