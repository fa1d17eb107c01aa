//! A density by counts of cells, read with a larger bandwidth: post-processing, at no price.

use super::band::Band;
use super::description::{Basis, CellBasis, Density, Description, Smoothing, TableBasis, Target};
use super::error::Error;
use super::released::Synopsis;
use crate::NoiseDistribution;
use crate::cell_kernel::CellKernel;
use crate::form_error;

impl Synopsis {
    /// The same records with these bandwidths, one an axis in natural units: what would have been published had the configuration asked
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
    pub fn at_bandwidths(&self, bandwidths: &[f64]) -> Result<Synopsis, Error> {
        self.at_bandwidths_telling(bandwidths, &|_, _| {})
    }

    /// The same; `told` hears how many draws of the noise are simulated, of how many.
    ///
    /// # Errors
    ///
    /// As for [`at_bandwidths`](Self::at_bandwidths).
    pub fn at_bandwidths_telling(
        &self,
        bandwidths: &[f64],
        told: &(dyn Fn(u64, u64) + Sync),
    ) -> Result<Synopsis, Error> {
        let about = &self.description;
        if let Basis::Tables(basis) = &about.basis {
            self.tables()?.kernel(Some(bandwidths))?;
            let widths = about.domain.iter().map(|axis| axis.max - axis.min);
            let bandwidths = bandwidths
                .iter()
                .zip(widths)
                .map(|(b, width)| (b / width).min(1.0))
                .collect();
            let mut wider = self.clone();
            wider.description.basis = Basis::Tables(TableBasis {
                bandwidths,
                ..basis.clone()
            });
            return Ok(wider);
        }
        let (
            Basis::Cells(cells),
            Target::Density(Density {
                kernel: Smoothing::Bandwidths(released),
                ..
            }),
        ) = (&about.basis, &about.target)
        else {
            return Err(Error::NoOtherBandwidths);
        };
        let widths = about.domain.iter().map(|axis| axis.max - axis.min);
        let parts = |lengths: &[f64]| -> Vec<f64> {
            lengths
                .iter()
                .zip(widths.clone())
                .map(|(b, w)| b / w)
                .collect()
        };
        let is_wider = |(b, released): (&f64, &f64)| *b >= *released;
        if bandwidths.len() != released.len() || !bandwidths.iter().zip(released).all(is_wider) {
            return Err(Error::Bandwidths {
                least: released.clone(),
            });
        }
        let of = |bandwidths: &[f64]| {
            CellKernel::diagonal(&parts(bandwidths), cells.spline, &cells.steps).map_err(|_| {
                Error::Bandwidths {
                    least: released.clone(),
                }
            })
        };
        let wide = of(bandwidths)?;
        let narrow = of(released)?;
        // A value is a count times the peak of the kernel that reads it.
        let factor = wide.peak() / narrow.peak();
        let basis = wide.basis().clone();
        let mut about = about.clone();
        about.noise.scale *= factor;
        about.noise.grid *= factor;
        about.band = band(&about, &basis, told).scaled(&about.noise);
        about.basis = Basis::Cells(basis);
        // It was for the noise of the released bandwidths.
        about.reading = None;
        if let Target::Density(density) = &mut about.target {
            density.kernel = Smoothing::Bandwidths(bandwidths.to_vec());
        }
        about.form_error =
            form_error::of_form(&about.target, &about.shape(), about.order, &about.domain);
        Synopsis::new(
            about,
            self.values.iter().map(|value| value * factor).collect(),
        )
    }
}

/// In units of the scale: of a running sum, that of a sum of draws.
fn band(about: &Description, basis: &CellBasis, told: &(dyn Fn(u64, u64) + Sync)) -> Band {
    let mut shape = about.shape();
    shape.basis = Basis::Cells(basis.clone());
    let band = Band::simulate_telling(&shape, about.noise.law, 1, told);
    match about.panes.is_some_and(|panes| panes.step.is_some()) {
        true => band.of_sums(
            about.noise.law,
            shape.values(),
            &Band::simulate_telling(&shape, NoiseDistribution::DiscreteGaussian, 1, told),
        ),
        false => band,
    }
}
