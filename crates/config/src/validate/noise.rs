//! The rule that noise can be calibrated to the prices.

use std::ops::Range;

use crate::read::draft::ReleaseDraft;
use crate::settings::{Calibration, PrivacySettings, ReleasedFunction, WorkerSettings};
use crate::text::{Checked, Document};
use bernstream_synopsis::Sensitivity;

/// Checks that noise can be calibrated to this price, so that no window fails later.
pub fn can_be_drawn(
    document: &mut Document<'_>,
    privacy: &PrivacySettings,
    release: &ReleaseDraft,
) {
    let protected = privacy.protected();
    if let Some(choice) = &release.private_bandwidths
        && let Err(error) = choice.get_ref().mechanism(protected)
    {
        document.fault(choice.span(), error.to_string(), "");
    }
    for function in release.functions().iter() {
        if sensitivity(document, function, privacy, release).is_err() {
            return;
        }
        let calibration = release.calibration();
        let price = release.payment.get_ref().mechanism_price();
        let noise = match calibration.mechanism(
            &*function.target,
            release.noise.noise_distribution(),
            privacy,
            price,
        ) {
            Ok(noise) => noise,
            Err(error) => {
                document.fault(release.payment.span(), error.to_string(), "");
                return;
            }
        };
        if let Some(choice) = &release.private_order
            && let Err(error) = choice.get_ref().mechanism(function, &noise, protected)
        {
            document.fault(choice.span(), error.to_string(), "");
            return;
        }
    }
}

/// Checks that correlated noise can be calibrated to these prices.
pub fn sums_can_be_drawn(
    document: &mut Document<'_>,
    settings: &WorkerSettings,
    places: &[Range<usize>],
) -> Checked<()> {
    for (release, place) in settings.releases.iter().zip(places) {
        settings
            .noise_series(release)
            .map_err(|error| document.fault(place.clone(), error.to_string(), ""))?;
    }
    Ok(())
}

/// The sensitivity that the noise is calibrated to. The bound of the papers is reported as missing only if ours exists.
fn sensitivity(
    document: &mut Document<'_>,
    function: &ReleasedFunction,
    privacy: &PrivacySettings,
    release: &ReleaseDraft,
) -> Checked<Sensitivity> {
    let ours = Calibration::Tight.sensitivity(
        &*function.target,
        release.noise.noise_distribution(),
        privacy,
    );
    let ours =
        ours.map_err(|error| document.fault(release.function.span(), error.to_string(), ""))?;
    match &release.calibration {
        None => Ok(ours),
        Some(calibration) => calibration
            .get_ref()
            .sensitivity(
                &*function.target,
                release.noise.noise_distribution(),
                privacy,
            )
            .map_err(|error| document.fault(calibration.span(), error.to_string(), "")),
    }
}
