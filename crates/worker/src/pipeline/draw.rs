//! From exact to noisy: fresh noise for every window, or the next step of a noise series.

use super::error::Error;
use super::plan::{Release, ReleaseVariant};
use super::series::{NoiseSeries, NoiseState, Stored};
use bernstream_noise::Exact;
use bernstream_noise::Noisy;
use bernstream_noise::noise::Generator;
use bernstream_synopsis::description::Description;
use bernstream_synopsis::grid::{Grid, Span};

/// The noisy values of one window and key, and the next state of its noise series, if it has one.
pub(super) struct Drawn {
    pub noisy: Noisy,
    noise_state: Option<NoiseState>,
}

impl Release {
    /// The state of a key's noise series before the pane `window`; `None` if every window has noise of its own.
    ///
    /// # Errors
    ///
    /// If the stored state cannot be read or is damaged.
    pub(super) fn noise_state(
        &self,
        stored: &Stored<'_>,
        variant: &ReleaseVariant,
        key: Option<&str>,
        window: Span,
    ) -> Result<Option<NoiseState>, Error> {
        let resume = |series: &NoiseSeries| {
            series.resume(
                stored,
                (&self.description().release, key),
                window,
                variant.target.shape().values(),
            )
        };
        self.series.as_ref().map(resume).transpose()
    }

    /// Adds the noise: no other code of the worker turns exact values into published ones.
    pub(super) fn draw(
        &self,
        variant: &ReleaseVariant,
        exact: &Exact,
        noise_state: Option<NoiseState>,
        generator: &mut Generator,
    ) -> Drawn {
        match (&self.series, noise_state) {
            (Some(noise), Some(mut noise_state)) => {
                let noisy = noise.series.step(exact, &mut noise_state.state, generator);
                Drawn {
                    noisy,
                    noise_state: Some(noise_state),
                }
            }
            _ => Drawn {
                noisy: variant.mechanism.release(exact, generator),
                noise_state: None,
            },
        }
    }
}

impl Drawn {
    /// What a synopsis says about the windows that it covers, and about its noise.
    pub fn describe(
        &self,
        release: &Release,
        description: &Description,
        grid: Grid,
        window: Span,
    ) -> Description {
        match (&release.series, &self.noise_state) {
            (Some(noise), Some(noise_state)) => {
                noise_state.describe(noise, description, grid, window)
            }
            _ => Description {
                window,
                panes: release.panes(newest(grid, window)),
                ..description.clone()
            },
        }
    }

    /// The slot of its noise series and the bytes of its state, for the ledger.
    pub fn state(&self, release: &Release) -> Option<(String, Vec<u8>)> {
        Some(
            self.noise_state
                .as_ref()?
                .to_stored(&release.series.as_ref()?.series),
        )
    }
}

/// The last window of the grid in `span`, which ends with one.
fn newest(grid: Grid, span: Span) -> Span {
    Span {
        start: span.end.minus(grid.length()),
        end: span.end,
    }
}
