//! Reasons why a worker stops.

use bernstream_kafka::sink::deliver;
use bernstream_kafka::source;
use bernstream_noise as mechanism;
use bernstream_noise::continual;
use {bernstream_ledger as ledger, bernstream_synopsis as synopsis};

/// The reason why a worker stopped.
#[derive(Debug, thiserror::Error)]
pub enum PipelineError {
    #[error(transparent)]
    Source(#[from] source::SourceError),
    #[error(transparent)]
    Mechanism(#[from] mechanism::NoiseError),
    #[error(transparent)]
    Continual(#[from] continual::SeriesError),
    #[error(transparent)]
    Synopsis(#[from] synopsis::SynopsisError),
    #[error(transparent)]
    Ledger(#[from] ledger::LedgerError),
    #[error(transparent)]
    Deliver(#[from] deliver::DeliveryError),
    #[error(
        "other workers have recorded settings under which a window may not reach as far back as this one has read: reading again, so that \
         no window is withheld"
    )]
    ReadsTooFar,
    #[error(
        "the list of announced keys in the ledger cannot be read: it is damaged, or a newer program wrote it"
    )]
    AnnouncedKeysDamaged,
    #[error("a thread cannot be started: {0}; let this user run more threads")]
    Thread(std::io::Error),
    #[error("a loop of the worker panicked; this is a bug, please report it with the log")]
    Panicked,
}

impl PipelineError {
    /// Returns whether the worker goes on once its ledger and its input are opened again.
    pub fn begins_again(&self) -> bool {
        use ledger::LedgerError::{LostClaims, TwoBranches};
        let is_lost = matches!(
            self,
            PipelineError::Ledger(LostClaims { .. } | TwoBranches { .. })
        );
        self.is_overtaken() || is_lost || matches!(self, PipelineError::ReadsTooFar)
    }

    /// Returns whether a client of the input hangs, which only another one mends.
    pub fn is_hanging(&self) -> bool {
        matches!(
            self,
            PipelineError::Source(source::SourceError::Hanging { .. })
        )
    }

    /// Returns whether the witness follows another copy of the ledger.
    pub fn is_overtaken(&self) -> bool {
        matches!(
            self,
            PipelineError::Deliver(deliver::DeliveryError::Ledger(
                ledger::LedgerError::ForeignHead { .. }
            ))
        )
    }
}
