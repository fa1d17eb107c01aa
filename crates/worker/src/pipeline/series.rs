//! The state that a running sum over several panes carries from one window to the next.

use serde::{Deserialize, Serialize};

use super::error::PipelineError;
use bernstream_ledger as ledger;
use bernstream_noise::continual;
use bernstream_noise::continual::{CalibratedSeries, SeriesKind, SeriesState};
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::description;
use bernstream_synopsis::description::{Description, SensitivityDescription};
use bernstream_synopsis::grid::{Span, SpanGrid};

/// Reads the state that a series left in the ledger, by its slot; `None` if there is none.
pub type StateReader<'s> = dyn Fn(&str) -> Result<Option<Vec<u8>>, ledger::LedgerError> + 's;

/// Correlated noise, and what distinguishes its series from those of other settings.
#[derive(Clone, Debug)]
pub struct NoiseSeries {
    pub series: CalibratedSeries,
    /// The sum restarts where this differs from the identity of the previous pane.
    pub identity: String,
}

/// The progress of the series of one release and key: stored with each charge.
pub(super) struct NoiseState {
    slot: String,
    head: StoredHead,
    pub state: SeriesState,
}

/// The line that is stored before the state.
#[derive(Serialize, Deserialize)]
struct StoredHead {
    identity: String,
    /// The start of the first pane, and of the next.
    first: Timestamp,
    next: Timestamp,
}

impl NoiseSeries {
    /// The slot where the ledger keeps the state of the series of `release` and `key`.
    pub fn slot_name(release: &str, key: Option<&str>) -> String {
        serde_json::json!([release, key]).to_string()
    }

    /// The series of `release` and `key` before the pane `window`: the one that the previous pane left, or a new one if there
    /// is none, if that pane was not released, or if the settings have changed. A new one has fresh noise and no earlier
    /// records, so nothing is paid for twice.
    ///
    /// # Errors
    ///
    /// If the stored state cannot be read or is damaged.
    pub(super) fn resume_or_begin(
        &self,
        stored: &StateReader<'_>,
        release: &str,
        key: Option<&str>,
        window: Span,
        values: usize,
    ) -> Result<NoiseState, PipelineError> {
        let slot = NoiseSeries::slot_name(release, key);
        let mut head = StoredHead {
            identity: self.identity.clone(),
            first: window.start,
            next: window.end,
        };
        if let Some(bytes) = stored(&slot)? {
            let before = SlotContent::read(&bytes)?;
            if before.head.next == window.start
                && let Some(state) = self.continued_state(&before, values)?
            {
                head.first = before.head.first;
                return Ok(NoiseState { slot, head, state });
            }
        }
        Ok(NoiseState {
            slot,
            head,
            state: self.series.begin_state(values),
        })
    }

    /// Returns whether the sum that left `stored` in the ledger goes on under these settings, if no window between is withheld.
    ///
    /// # Errors
    ///
    /// If the stored state cannot be read or is damaged.
    pub fn continues_sum(
        &self,
        stored: &[u8],
        values: usize,
    ) -> Result<bool, continual::SeriesError> {
        let before = SlotContent::read(stored)?;
        Ok(self.continued_state(&before, values)?.is_some())
    }

    /// The state of an earlier window, if it is of this series.
    fn continued_state(
        &self,
        before: &SlotContent<'_>,
        values: usize,
    ) -> Result<Option<SeriesState>, continual::SeriesError> {
        if before.head.identity != self.identity {
            return Ok(None);
        }
        match SeriesState::from_bytes(&self.series, before.state) {
            Ok(state) => Ok((state.values() == values).then_some(state)),
            // The price of another release can change how many windows a unit contributes to, and so this noise.
            Err(continual::SeriesError::StateForeign) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl NoiseState {
    /// The description of a synopsis after this step, with the windows that it covers and the deviation of its noise.
    pub fn describe_synopsis(
        &self,
        noise: &NoiseSeries,
        description: &Description,
        grid: SpanGrid,
        window: Span,
    ) -> Description {
        let step = self.state.step().saturating_sub(1);
        let mut start = self.head.first;
        let over = match noise.series.over() {
            SeriesKind::Cumulative => description::PanesKind::Cumulative,
            SeriesKind::Hopping { panes } => {
                start = start.max(grid.start_before(window, panes - 1));
                description::PanesKind::Hopping(panes)
            }
        };
        let values = self.state.values();
        let deviation = noise.series.deviation(values, step) * description.noise.grid;
        let before = description.noise.law.deviation(values) * description.noise.scale;
        let panes = Some(description::Panes {
            over,
            newest: window,
            step: Some(step),
        });
        let window = Span {
            start,
            end: window.end,
        };
        let fresh = Some(noise.series.describe_noise(description.noise.grid));
        let sensitivity =
            description
                .sensitivity
                .clone()
                .map(|sensitivity| SensitivityDescription {
                    fresh,
                    ..sensitivity
                });
        Description {
            window,
            panes,
            sensitivity,
            ..description.clone().at_scale(deviation / before)
        }
    }

    /// The slot and its bytes, for the ledger.
    pub fn to_stored(&self, series: &CalibratedSeries) -> (String, Vec<u8>) {
        let mut bytes = serde_json::json!(self.head).to_string().into_bytes();
        bytes.push(b'\n');
        bytes.extend(self.state.to_bytes(series));
        (self.slot.clone(), bytes)
    }
}

/// The content of a slot of the ledger, taken apart.
struct SlotContent<'a> {
    head: StoredHead,
    state: &'a [u8],
}

impl<'a> SlotContent<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self, continual::SeriesError> {
        let mut parts = bytes.splitn(2, |byte| *byte == b'\n');
        let head = parts
            .next()
            .and_then(|head| serde_json::from_slice(head).ok());
        match (head, parts.next()) {
            (Some(head), Some(state)) => Ok(SlotContent { head, state }),
            _ => Err(continual::SeriesError::StateDamaged),
        }
    }
}
