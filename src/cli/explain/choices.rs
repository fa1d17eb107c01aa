//! What each window and key chooses privately from its own records, and how accurately.

use crate::cli::failure::Failure;
use crate::cli::figures::{float, three_digits};
use crate::cli::units;
use bernstream_config::{ReleaseSettings, WorkerSettings};
use bernstream_release::marginals::BINS;
use bernstream_synopsis::description::{Density, Smoothing, TargetDescription};

/// The private choices of each window and key from its own records, and how accurate they are.
pub(super) fn private_choices(
    settings: &WorkerSettings,
    release: &ReleaseSettings,
) -> Result<Vec<String>, Failure> {
    let quantity = units::quantity_of_release(release);
    let protected = settings.neighbouring_relation();
    let mut lines = Vec::new();
    if let Some(choice) = &release.private_bandwidths {
        lines.push(format!(
            "bandwidths, for {}: from counts of records in {BINS} parts of each axis, each off by about {} records; the selected \
             candidate is the nearest to 0.9 (interquartile range / 1.34) n^(-1 / (axes + 4))",
            choice.price,
            three_digits(choice.mechanism(protected)?.noise_in_records())
        ));
        for function in choice.candidates.iter() {
            let scale = float(settings.mechanism_of(release, function)?.scale().units());
            if let TargetDescription::Density(Density {
                kernel: Smoothing::Bandwidths(lengths),
                ..
            }) = &function.about
            {
                lines.push(format!(
                    "  {lengths:?}: noise of scale {} {quantity}",
                    three_digits(scale * function.grid_unit())
                ));
            }
        }
    }
    if let Some(choice) = &release.private_order {
        let noise = settings.mechanism_of(release, &release.function)?;
        let order = choice.mechanism(&release.function, &noise, protected)?;
        lines.push(format!(
            "order, for {}: the one with the smallest expected noise + approximation error at the lattice, each known to about {} \
             {quantity}",
            choice.price,
            three_digits(2.0_f64.sqrt() * float(order.scale()) * release.function.grid_unit())
        ));
    }
    if !lines.is_empty() {
        lines.push("everything below holds for the first candidates".to_owned());
    }
    Ok(lines)
}
