//! The repair where the witness or the output has lost what was published: a worker claims, and sends, the same bytes again.

use tracing::{error, info, warn};

use super::comparison::{FoundOutput, ReportedLoss};
use super::error::PipelineError;
use super::releasing::ReleaseTask;
use bernstream_kafka::sink;
use bernstream_kafka::sink::{Sink, deliver};
use bernstream_ledger as ledger;
use bernstream_ledger::witness::Witness;
use bernstream_ledger::{Head, OutboxSlot, WitnessStanding};

/// Number of messages that are sent again at once, which bounds the memory that their bytes take.
const AT_ONCE: usize = 16;

impl ReleaseTask<'_> {
    /// Looks what was published, before the witness is read.
    ///
    /// # Errors
    ///
    /// If output or log cannot be read.
    pub(super) fn read_output_tail(&mut self) -> Result<(), deliver::DeliveryError> {
        self.comparison.begin_again_if_silent();
        if !self.comparison.needs_evidence() {
            return Ok(());
        }
        let published = self.ledger.newest_published()?;
        let tail = self.sink.read_tail(&self.ledger.newest_messages()?);
        let tail = tail
            .map_err(|error| deliver::DeliveryError::Sink {
                published: 0,
                error,
            })?
            .unwrap_or_default();
        let evidence = self.ledger.gather_evidence(tail.rows())?;
        self.comparison.found = Some(FoundOutput {
            published,
            tail,
            evidence,
        });
        Ok(())
    }

    /// Compares `accepted`, the head of the witness, with that; what the output has lost is sent again.
    ///
    /// # Errors
    ///
    /// [`ledger::LedgerError::LostClaims`] if a row was published that the ledger does not have.
    pub(super) fn compare_with_witness(
        &mut self,
        accepted: Option<Head>,
    ) -> Result<(), PipelineError> {
        let Some(found) = &self.comparison.found else {
            return Ok(());
        };
        let remembered = self.witness.remembered();
        match self
            .ledger
            .standing_of_witness(accepted.as_ref(), remembered, &found.evidence)?
        {
            WitnessStanding::Agrees => {}
            WitnessStanding::Unknown(shown) => {
                return Err(ledger::LedgerError::lost_claims(&shown, accepted.as_ref()).into());
            }
            WitnessStanding::Behind(head) => {
                self.report_lost_claims(&head, accepted.as_ref());
                return Ok(());
            }
        }
        self.witness.settle();
        let published = found.published;
        let lost = match &published {
            Some(published) => found.tail.lost_messages(&self.ledger, published)?,
            None => sink::LostMessages::default(),
        };
        self.report_output_loss(published, &lost);
        self.send_again(&lost.kept)?;
        if self.comparison.record_agreement() {
            info!("the witness has accepted again what it had lost");
        }
        Ok(())
    }

    /// Reports once that the witness lacks claims up to `shown`, which was published.
    fn report_lost_claims(&mut self, shown: &Head, accepted: Option<&Head>) {
        self.metrics.witness_lost_claims.set(1);
        if std::mem::replace(&mut self.comparison.is_loss_reported, true) {
            return;
        }
        let accepted = match accepted {
            Some(accepted) => accepted.sequence.to_string(),
            None => "none".to_owned(),
        };
        error!(
            "the witness has lost claims: row {} was published, and the newest row that it has accepted is {accepted}. The rows \
             between are claimed again, the same bytes, and nothing is drawn before it has accepted them",
            shown.sequence
        );
    }

    /// Reports what the output has lost at its end, unless it was reported before.
    fn report_output_loss(&mut self, published: Option<Head>, lost: &sink::LostMessages) {
        let now = ReportedLoss {
            gone: lost.gone,
            published,
            unknown: lost.unknown,
        };
        let before = std::mem::replace(&mut self.comparison.reported, now);
        let is_new_loss = now.gone != before.gone || now.published != before.published;
        if lost.gone > 0 && is_new_loss {
            error!(
                "the output has lost {} synopses at its end that were published, and their bytes are not kept any more \
                 (ledger.keep_published)",
                lost.gone
            );
            // Later comparisons no longer see the loss once newer windows are published.
            let gone = i64::try_from(lost.gone).unwrap_or(i64::MAX);
            self.metrics
                .output_lost
                .set(self.metrics.output_lost.get().max(gone));
        }
        if lost.unknown > 0 && lost.unknown != before.unknown {
            warn!(
                "nothing is left on the output of {} keys that were published, so whether it has lost messages of them or they were removed \
                 cannot be known",
                lost.unknown
            );
        }
        if !lost.kept.is_empty() {
            warn!(
                "the output has lost {} synopses at its end that were published: sending the same bytes again",
                lost.kept.len()
            );
        }
    }

    /// Sends the same bytes again, row by row.
    fn send_again(&mut self, lost: &[OutboxSlot]) -> Result<(), PipelineError> {
        for row in lost.chunk_by(OutboxSlot::is_of_row_of) {
            for portion in row.chunks(AT_ONCE) {
                let sent = self.sink.publish(&self.ledger.kept_in_slots(portion)?);
                sent.map_err(|unpublished| deliver::DeliveryError::Sink {
                    published: 0,
                    error: unpublished.error,
                })?;
            }
        }
        Ok(())
    }
}
