//! The noise bands of a worker, cached beside its ledger.

use std::convert::Infallible;
use std::fs;
use std::path::Path;

use sha2::{Digest, Sha256};
use tracing::{info, warn};

use crate::cli::figures::hexadecimal;
use crate::cli::progress::show_progress;
use bernstream_config::ReleaseSettings;
use bernstream_ledger::private;
use bernstream_release::choice::Candidates;
use bernstream_synopsis::NoiseDistribution;
use bernstream_synopsis::Shape;
use bernstream_synopsis::band::Band;

/// The noise band for each order that a window can have: simulated once per plan from public quantities, and cached in
/// `folder`, beside the ledger.
pub fn noise_bands(release: &ReleaseSettings, folder: &Path) -> Candidates<Band> {
    let bands = release
        .candidate_orders()
        .try_map(|order| Ok::<_, Infallible>(band_of_order(release, *order, folder)));
    bands.unwrap_or_else(|never| match never {})
}

fn band_of_order(release: &ReleaseSettings, order: u32, folder: &Path) -> Band {
    let shape = release.shape();
    let law = release.noise.noise_distribution();
    let band = cached_band(&shape, law, order, folder);
    if release.is_sum_of_panes() && law.is_pure() {
        let gaussian = cached_band(&shape, NoiseDistribution::DiscreteGaussian, order, folder);
        band.of_sums(law, shape.value_count(), &gaussian)
    } else {
        band
    }
}

fn cached_band(shape: &Shape, law: NoiseDistribution, order: u32, folder: &Path) -> Band {
    // The name identifies everything that determines the band.
    let about = serde_json::json!([
        env!("CARGO_PKG_VERSION"),
        shape.dimensions,
        shape.degree,
        shape.basis,
        law,
        order
    ]);
    let digest = Sha256::digest(about.to_string());
    let name = format!("band-{}.json", hexadecimal(digest.iter().take(12)));
    let cached = folder.join(name);
    if let Some(band) = fs::read(&cached)
        .ok()
        .and_then(|bytes| serde_json::from_slice(&bytes).ok())
    {
        return band;
    }
    info!(
        values = shape.value_count(),
        "simulating the noise band; it is cached beside the ledger"
    );
    let band = show_progress("simulating the noise band", |done| {
        Band::simulate_with_progress(shape, law, order, &|draws, all| done.set(draws, all))
    });
    // How long it took is seen from the two lines' times: a log that is compared has no other times of its own.
    info!(values = shape.value_count(), "simulated the noise band");
    // Only a cache: without it the same band is simulated again.
    if let Err(error) = serde_json::to_vec(&band)
        .map_err(std::io::Error::from)
        .and_then(|bytes| private::write_private(&cached, &bytes))
    {
        warn!(
            "cannot cache the noise band in {}: {error}",
            cached.display()
        );
    }
    band
}
