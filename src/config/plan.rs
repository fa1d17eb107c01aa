//! From settings to the plan that the pipeline carries out: sensitivity, noise, and what every synopsis will say.

use crate::config::{Calibration, Input, Settings, Unit, guarantee};
use crate::mechanism::{self, Laplace};
use crate::pipeline::{Plan, Publication};
use crate::synopsis::band::Band;
use crate::synopsis::description::{
    Axis, Calibrated, Definition, Density, Description, Digests, Entry, FORMAT, Law, Noise, Privacy, Target,
    Unit as DescribedUnit,
};
use crate::target::{self, Adjacency, Sensitivity};

/// Why settings that are sound cannot be carried out.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Target(#[from] target::Error),
    #[error(transparent)]
    Mechanism(#[from] mechanism::Error),
}

impl Settings {
    /// The Laplace mechanism for these settings.
    pub fn mechanism(&self) -> Result<Laplace, Error> {
        Ok(Laplace::calibrated(self.sensitivity(self.release.calibration)?, self.release.price)?)
    }

    /// What a unit can change, by one or the other bound.
    pub fn sensitivity(&self, calibration: Calibration) -> Result<Sensitivity, target::Error> {
        calibration.sensitivity(&*self.function.target, &self.privacy)
    }

    /// What the noise is calibrated to, for people to read.
    pub fn calibrated(&self) -> Result<Calibrated, Error> {
        Ok(match (self.release.calibration, &self.privacy.definition) {
            (Calibration::Tight, Definition::PureEpsilon) => Calibrated::Tight,
            (Calibration::Tight, Definition::Random(_)) => Calibrated::Sampled,
            (Calibration::Paper, _) => {
                let [paper, tight] = [Calibration::Paper, Calibration::Tight].map(|which| self.sensitivity(which));
                #[expect(clippy::cast_precision_loss, reason = "a figure to show")]
                Calibrated::Paper { times_needed: paper?.0 as f64 / tight?.0 as f64 }
            }
        })
    }

    /// The plan. `band` is that of the noise in units of its scale; `is_synthetic` says that the records are simulated.
    pub fn plan(&self, band: &Band, is_synthetic: bool) -> Result<Plan, Error> {
        let mechanism = self.mechanism()?;
        let publication = match self.input {
            Input::Kafka(_) => Publication::AfterCut(self.release.publish_delay),
            Input::Files(_) => Publication::AtWindowEnd,
        };
        Ok(Plan {
            rules: self.windows.clone(),
            blocks: self.blocks,
            target: self.function.target.clone(),
            mechanism,
            price: self.release.price,
            total: self.privacy.total,
            publication,
            offset: self.function.offset,
            description: self.description(mechanism, self.calibrated()?, band, is_synthetic),
        })
    }

    /// What every synopsis says; window, key, blocks and ledger row are filled in when there are any.
    fn description(&self, mechanism: Laplace, calibrated: Calibrated, band: &Band, is_synthetic: bool) -> Description {
        let grid = self.function.unit;
        #[expect(clippy::cast_precision_loss, reason = "a scale to show; the noise itself is drawn from the integer")]
        let scale = mechanism.scale().units() as f64 * grid;
        let noise = Noise { law: Law::DiscreteLaplace, scale, grid, calibrated };
        let start = self.windows.grid.origin();
        Description {
            format: FORMAT,
            pipeline: self.pipeline.clone(),
            release: self.release.name.clone(),
            key: None,
            window: self.windows.grid.span_of(start),
            published: start,
            target: self.target_description(),
            meaning: self.meaning(),
            domain: self.domain(),
            basis: self.shape().basis,
            degree: self.shape().degree,
            order: self.release.order,
            noise,
            privacy: Privacy {
                definition: self.privacy.definition.clone(),
                unit: self.unit_description(),
                in_words: guarantee::promise(self).join(" "),
                adjacency: self.privacy.adjacency,
                price: self.release.price,
                blocks: Vec::new(),
            },
            band: band.scaled(&noise),
            not_protected: guarantee::not_protected(self),
            incomplete: matches!(&self.input, Input::Kafka(kafka) if !kafka.lost.is_empty()),
            digests: Digests {
                configuration: self.digest().iter().map(|byte| format!("{byte:02x}")).collect(),
                program: format!("bernstream {}", env!("CARGO_PKG_VERSION")),
            },
            ledger: Entry { id: String::new(), sequence: 0 },
            synthetic: is_synthetic,
        }
    }

    /// Under `replace_one` the number of records is public, and a density can be divided by it.
    fn target_description(&self) -> Target {
        match self.function.about.clone() {
            Target::Density(density) => {
                Target::Density(Density { divide_by: self.privacy.records_per_window, ..density })
            }
            other => other,
        }
    }

    fn meaning(&self) -> String {
        match (&self.function.about, self.privacy.adjacency) {
            (Target::Density(_), Adjacency::ReplaceOne) => {
                format!("{}; divide by 'divide_by' for a density", self.function.quantity)
            }
            _ => self.function.meaning.clone(),
        }
    }

    fn domain(&self) -> Vec<Axis> {
        let axes = self.columns.values.iter().zip(&self.windows.axes);
        axes.map(|(column, axis)| Axis { column: column.clone(), min: axis.min, max: axis.max }).collect()
    }

    fn unit_description(&self) -> DescribedUnit {
        match &self.privacy.unit {
            Unit::Record => DescribedUnit::Record,
            Unit::User { column, per, max_records_per_window } => DescribedUnit::User {
                column: column.clone(),
                per: crate::clock::show(*per),
                max_records_per_window: *max_records_per_window,
            },
        }
    }
}
