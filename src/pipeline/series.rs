//! What a sum over several panes goes on with from one window to the next.

use serde::{Deserialize, Serialize};

use super::Error;
use super::plan::{Release, ReleaseVariant};
use crate::clock::Timestamp;
use crate::ledger::Ledger;
use crate::mechanism::Noisy;
use crate::mechanism::continual::{self, Series, State, WindowKind};
use crate::mechanism::noise::Generator;
use crate::synopsis::description::{self, Description};
use crate::synopsis::predict;
use crate::targets::Exact;
use crate::window::grid::{Grid, Span};

/// Correlated noise, and what tells its series from those of other settings.
#[derive(Clone, Debug)]
pub struct NoiseSeries {
    pub series: Series,
    /// Where it is not that of the last pane, the sum begins anew.
    pub identity: String,
}

/// Where the series of one release and key stands: written with each charge.
pub(super) struct NoiseState {
    slot: String,
    head: Head,
    pub state: State,
}

/// What is written before the state.
#[derive(Serialize, Deserialize)]
struct Head {
    identity: String,
    /// The start of the first pane, and of the next.
    first: Timestamp,
    next: Timestamp,
}

impl NoiseSeries {
    /// The series of `release` and `key` before the pane `window`: the one that the pane before it left, or a new one where
    /// there was none, where it was not released, and where the settings have changed. A new one has fresh noise and none of
    /// the records before, so nothing is paid for twice.
    pub(super) fn resume(
        &self,
        ledger: &Ledger,
        (release, key): (&str, Option<&str>),
        window: Span,
        values: usize,
    ) -> Result<NoiseState, Error> {
        let slot = serde_json::json!([release, key]).to_string();
        let head = |first| Head { identity: self.identity.clone(), first, next: window.end };
        if let Some(bytes) = ledger.state(&slot)? {
            let (before, state) = read(&bytes).ok_or(continual::Error::StateDamaged)?;
            if before.identity == self.identity && before.next == window.start {
                match State::from_bytes(&self.series, state) {
                    Ok(state) if state.values() == values => {
                        return Ok(NoiseState { slot, head: head(before.first), state });
                    }
                    // What another release costs can change how many windows a unit is in, and with it this noise.
                    Ok(_) | Err(continual::Error::StateForeign) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(NoiseState { slot, head: head(window.start), state: self.series.begin(values) })
    }
}

/// What was drawn of one window and key, and where its series stands now if it has one.
pub(super) struct Drawn {
    pub noisy: Noisy,
    noise_state: Option<NoiseState>,
}

impl Release {
    /// Where the series of a key stands before the pane `window`; none where every window has noise of its own.
    pub(super) fn noise_state(
        &self,
        ledger: &Ledger,
        variant: &ReleaseVariant,
        key: Option<&str>,
        window: Span,
    ) -> Result<Option<NoiseState>, Error> {
        let resume = |serial: &NoiseSeries| {
            serial.resume(ledger, (&self.description().release, key), window, variant.target.shape().values())
        };
        self.series.as_ref().map(resume).transpose()
    }

    /// The one door from exact to noisy.
    pub(super) fn draw(
        &self,
        variant: &ReleaseVariant,
        exact: &Exact,
        noise_state: Option<NoiseState>,
        generator: &mut Generator,
    ) -> Drawn {
        match (&self.series, noise_state) {
            (Some(serial), Some(mut noise_state)) => {
                let noisy = serial.series.step(exact, &mut noise_state.state, generator);
                Drawn { noisy, noise_state: Some(noise_state) }
            }
            _ => Drawn { noisy: variant.mechanism.release(exact, generator), noise_state: None },
        }
    }
}

impl Drawn {
    /// What a synopsis says of the windows that it speaks of, and of its noise.
    pub fn describe(&self, release: &Release, about: &Description, grid: Grid, window: Span) -> Description {
        match (&release.series, &self.noise_state) {
            (Some(serial), Some(noise_state)) => noise_state.describe(serial, about, grid, window),
            _ => Description { window, panes: release.panes(newest(grid, window)), ..about.clone() },
        }
    }

    /// The slot of its series and its bytes, for the ledger.
    pub fn state(&self, release: &Release) -> Option<(String, Vec<u8>)> {
        Some(self.noise_state.as_ref()?.written(&release.series.as_ref()?.series))
    }
}

impl NoiseState {
    /// What a synopsis says after this step: what it speaks of, and how far its noise reaches.
    fn describe(&self, serial: &NoiseSeries, about: &Description, grid: Grid, window: Span) -> Description {
        let step = self.state.step().saturating_sub(1);
        let (over, start) = match serial.series.over() {
            WindowKind::Cumulative => (description::WindowKind::Cumulative, self.head.first),
            WindowKind::Hopping { panes } => {
                (description::WindowKind::Hopping(panes), grid.before(window, panes - 1).max(self.head.first))
            }
        };
        let values = self.state.values();
        let natural = serial.series.deviation(values, step) * about.noise.grid;
        let one = predict::deviation(about.noise.law, values) * about.noise.scale;
        let panes = Some(description::Panes { over, newest: window, step: Some(step) });
        Description { window: Span { start, end: window.end }, panes, ..about.clone().at_scale(natural / one) }
    }

    /// The slot and its bytes, for the ledger.
    fn written(&self, series: &Series) -> (String, Vec<u8>) {
        let mut bytes = serde_json::json!(self.head).to_string().into_bytes();
        bytes.push(b'\n');
        bytes.extend(self.state.to_bytes(series));
        (self.slot.clone(), bytes)
    }
}

/// The last window of the grid in `span`, which ends with one.
fn newest(grid: Grid, span: Span) -> Span {
    Span { start: span.end.minus(grid.length()), end: span.end }
}

fn read(bytes: &[u8]) -> Option<(Head, &[u8])> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let (head, state) = bytes.split_at(end);
    Some((serde_json::from_slice(head).ok()?, state.get(1..)?))
}
