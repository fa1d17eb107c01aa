//! A density by counts of cells, read with a larger bandwidth: post-processing, at no price.

use super::band::Band;
use super::description::{
    AxisDescription, Basis, CellBasis, Density, Description, Smoothing, TableBasis,
    TargetDescription,
};
use super::error::SynopsisError;
use super::released::Synopsis;
use crate::NoiseDistribution;
use crate::cell_kernel::CellKernel;
use crate::form_error;

impl Synopsis {
    /// Reads the same records with these bandwidths, one an axis in natural units: what would have been published had the configuration asked
    /// for them, with the same noise on the counts, and a band that is simulated anew.
    ///
    /// A larger bandwidth averages more of the noise away, and its form is closer: the cells are smaller relative to it.
    ///
    /// Tables of cells need no new band: theirs is for every bandwidth.
    ///
    /// # Errors
    ///
    /// If the synopsis is not one by counts of cells with a bandwidth for each axis, or one of `bandwidths` is smaller than the
    /// released one, or larger than the domain.
    pub fn at_bandwidths(&self, bandwidths: &[f64]) -> Result<Synopsis, SynopsisError> {
        self.at_bandwidths_with_progress(bandwidths, &|_, _| {})
    }

    /// Reads the same records with these bandwidths; `progress` is called with how many draws of the noise are simulated, of how many.
    ///
    /// # Errors
    ///
    /// As for [`at_bandwidths`](Self::at_bandwidths).
    pub fn at_bandwidths_with_progress(
        &self,
        bandwidths: &[f64],
        progress: &(dyn Fn(u64, u64) + Sync),
    ) -> Result<Synopsis, SynopsisError> {
        let description = &self.description;
        if let Basis::Tables(basis) = &description.basis {
            self.tables()?.kernel(Some(bandwidths))?;
            let mut bandwidths = parts_of_domain(&description.domain, bandwidths);
            for bandwidth in &mut bandwidths {
                *bandwidth = bandwidth.min(1.0);
            }
            let mut wider = self.clone();
            wider.description.basis = Basis::Tables(TableBasis {
                bandwidths,
                ..basis.clone()
            });
            return Ok(wider);
        }
        let Basis::Cells(cells) = &description.basis else {
            return Err(SynopsisError::NoOtherBandwidths);
        };
        let TargetDescription::Density(Density {
            kernel: Smoothing::Bandwidths(released),
            ..
        }) = &description.target
        else {
            return Err(SynopsisError::NoOtherBandwidths);
        };
        let too_small = || SynopsisError::Bandwidths {
            least: released.clone(),
        };
        let are_wider = bandwidths
            .iter()
            .zip(released)
            .all(|(bandwidth, released)| bandwidth >= released);
        if bandwidths.len() != released.len() || !are_wider {
            return Err(too_small());
        }
        let wide = parts_of_domain(&description.domain, bandwidths);
        let wide = CellKernel::from_bandwidths(&wide, cells.spline, &cells.steps)
            .map_err(|_| too_small())?;
        let narrow = parts_of_domain(&description.domain, released);
        let narrow = CellKernel::from_bandwidths(&narrow, cells.spline, &cells.steps)
            .map_err(|_| too_small())?;
        // A value is a count times the peak of the kernel that reads it.
        let factor = wide.peak() / narrow.peak();
        let basis = wide.basis().clone();
        let mut description = description.clone();
        description.noise.scale *= factor;
        description.noise.grid *= factor;
        description.band =
            simulated_band(&description, &basis, progress).scaled_to_noise(&description.noise);
        description.basis = Basis::Cells(basis);
        // It was for the noise of the released bandwidths.
        description.reading = None;
        if let TargetDescription::Density(density) = &mut description.target {
            density.kernel = Smoothing::Bandwidths(bandwidths.to_vec());
        }
        description.form_error = form_error::density_form_error(
            &description.target,
            &description.shape(),
            description.order,
            &description.domain,
        );
        Synopsis::new(
            description,
            self.values.iter().map(|value| value * factor).collect(),
        )
    }
}

/// Lengths in natural units, one an axis, as parts of the widths of the domain.
fn parts_of_domain(domain: &[AxisDescription], lengths: &[f64]) -> Vec<f64> {
    lengths
        .iter()
        .zip(domain)
        .map(|(length, axis)| length / (axis.max - axis.min))
        .collect()
}

/// Band in units of the scale: of a running sum, that of a sum of draws.
fn simulated_band(
    description: &Description,
    basis: &CellBasis,
    progress: &(dyn Fn(u64, u64) + Sync),
) -> Band {
    let law = description.noise.law;
    let mut shape = description.shape();
    shape.basis = Basis::Cells(basis.clone());
    let band = Band::simulate_with_progress(&shape, law, 1, progress);
    let is_running_sum = description.panes.is_some_and(|panes| panes.step.is_some());
    if !is_running_sum {
        return band;
    }
    let normal =
        Band::simulate_with_progress(&shape, NoiseDistribution::DiscreteGaussian, 1, progress);
    band.of_sums(law, shape.value_count(), &normal)
}
