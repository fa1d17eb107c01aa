//! The step from exact to noisy values: fresh noise for every window, or the next step of a noise series.

use super::error::PipelineError;
use super::plan::{PlannedRelease, ReleaseVariant};
use super::series::{NoiseState, StateReader};
use bernstream_noise::Exact;
use bernstream_noise::Noisy;
use bernstream_noise::noise::Generator;
use bernstream_synopsis::description::Description;
use bernstream_synopsis::grid::{Span, SpanGrid};

/// The noisy values of one window and key, and the next state of its noise series, if it has one.
pub(super) struct DrawnSynopsis {
    pub noisy: Noisy,
    noise_state: Option<NoiseState>,
}

impl PlannedRelease {
    /// The state of a key's noise series before the pane `window`; `None` if every window has noise of its own.
    ///
    /// # Errors
    ///
    /// If the stored state cannot be read or is damaged.
    pub(super) fn noise_state(
        &self,
        stored: &StateReader<'_>,
        variant: &ReleaseVariant,
        key: Option<&str>,
        window: Span,
    ) -> Result<Option<NoiseState>, PipelineError> {
        let Some(series) = &self.series else {
            return Ok(None);
        };
        let release = &self.description().release;
        let values = variant.target.shape().value_count();
        series
            .resume_or_begin(stored, release, key, window, values)
            .map(Some)
    }

    /// Adds the noise: no other code of the worker turns exact values into published ones.
    pub(super) fn draw_noise(
        &self,
        variant: &ReleaseVariant,
        exact: &Exact,
        noise_state: Option<NoiseState>,
        generator: &mut Generator,
    ) -> DrawnSynopsis {
        if let Some(noise) = &self.series
            && let Some(mut noise_state) = noise_state
        {
            return DrawnSynopsis {
                noisy: noise
                    .series
                    .release_step(exact, &mut noise_state.state, generator),
                noise_state: Some(noise_state),
            };
        }
        DrawnSynopsis {
            noisy: variant.mechanism.release_noisy(exact, generator),
            noise_state: None,
        }
    }
}

impl DrawnSynopsis {
    /// The description of a synopsis, with the windows that it covers and its noise.
    pub fn describe_synopsis(
        &self,
        release: &PlannedRelease,
        description: &Description,
        grid: SpanGrid,
        window: Span,
    ) -> Description {
        if let Some(noise) = &release.series
            && let Some(noise_state) = &self.noise_state
        {
            return noise_state.describe_synopsis(noise, description, grid, window);
        }
        Description {
            window,
            panes: release.described_panes(newest_window(grid, window)),
            ..description.clone()
        }
    }

    /// The slot of its noise series and the bytes of its state, for the ledger.
    pub fn stored_state(&self, release: &PlannedRelease) -> Option<(String, Vec<u8>)> {
        let noise_state = self.noise_state.as_ref()?;
        Some(noise_state.to_stored(&release.series.as_ref()?.series))
    }
}

/// The last window of the grid in `span`, which ends with one.
fn newest_window(grid: SpanGrid, span: Span) -> Span {
    Span {
        start: span.end.minus(grid.length()),
        end: span.end,
    }
}
