//! From settings to the plan that the pipeline executes: sensitivity, noise, and the description of every synopsis.

use crate::settings::{
    InputParams, PrivacyUnit, ReleaseSettings, ReleasedFunction, SettingsError, WindowKind,
    WorkerSettings,
};
use crate::{canonical, guarantee};
use bernstream_ledger::Digest;
use bernstream_noise::Mechanism;
use bernstream_release::choice::Candidates;
use bernstream_release::window::ReleaseInput;
use bernstream_synopsis::band::Band;
use bernstream_synopsis::description::{
    AxisDescription, CalibrationBound, Density, Description, Digests, FORMAT, NoiseDescription,
    PaymentRow, PrivacyDescription, PrivateChoice, Recommended, SensitivityDescription, Smoothing,
    TargetDescription, UnitDescription as DescribedUnit,
};
use bernstream_synopsis::form_error;
use bernstream_synopsis::{Basis, Sensitivity as Change};
use bernstream_worker::pipeline;
use bernstream_worker::pipeline::{Publication, ReleasePlan, ReleaseVariant};

impl WorkerSettings {
    /// The plan. `bands` returns the error bands of the noise of a release in units of its scale, one for each order that a
    /// window can have; `is_synthetic` says that the records are simulated.
    ///
    /// # Errors
    ///
    /// If noise cannot be calibrated for a release.
    pub fn plan(
        &self,
        bands: impl Fn(&ReleaseSettings) -> Candidates<Band>,
        is_synthetic: bool,
    ) -> Result<ReleasePlan, SettingsError> {
        let mut releases = Vec::new();
        for release in &self.releases {
            releases.push(self.release_plan(release, &bands(release), is_synthetic)?);
        }
        let publication = match self.input {
            InputParams::Kafka(_) => Publication::AfterCutoff(self.publish_delay),
            InputParams::Files(_) => Publication::AtWindowEnd,
        };
        Ok(ReleasePlan {
            rules: self.windows.clone(),
            blocks: self.blocks,
            releases,
            total: self.privacy.total,
            limit: self.privacy.spendable_limit(),
            publication,
        })
    }

    fn release_plan(
        &self,
        release: &ReleaseSettings,
        bands: &Candidates<Band>,
        is_synthetic: bool,
    ) -> Result<pipeline::PlannedRelease, SettingsError> {
        let series = self.noise_series(release)?;
        let bandwidth = match &release.private_bandwidths {
            Some(choice) => Some(choice.mechanism(self.neighbouring_relation())?),
            None => None,
        };
        let functions = release.candidate_functions();
        let key_search = match (&self.found_keys, self.key_search(release)?) {
            (Some(found), Some(search)) => Some(pipeline::PlannedKeySearch {
                search,
                keep: found.keep,
                most: found.most,
                longest: found.longest,
                identity: canonical::announced_identity(self),
            }),
            _ => None,
        };
        Ok(pipeline::PlannedRelease {
            form: ReleaseInput {
                panes: release.panes_charged(),
                ..self.release_input(release)
            },
            bandwidth,
            variants: functions
                .try_map(|function| self.release_variant(release, function, bands, is_synthetic))?,
            price_schedule: self.price_schedule(release),
            series: series.map(|series| pipeline::NoiseSeries {
                series,
                identity: canonical::release_identity(self, release),
            }),
            key_search,
        })
    }

    /// The values that a release takes of the records of a single window.
    pub fn release_input(&self, release: &ReleaseSettings) -> ReleaseInput {
        let mut columns = Vec::new();
        for column in &release.columns {
            columns.extend(self.columns.values.iter().position(|value| value == column));
        }
        ReleaseInput {
            axes: release.axes.clone(),
            label: release.label.clone(),
            columns,
            accumulator: release.function.target.accumulator(),
            panes: 1,
        }
    }

    /// The variant of a release with one of its functions.
    ///
    /// # Errors
    ///
    /// If its noise cannot be calibrated.
    pub fn release_variant(
        &self,
        release: &ReleaseSettings,
        function: &ReleasedFunction,
        bands: &Candidates<Band>,
        is_synthetic: bool,
    ) -> Result<ReleaseVariant, SettingsError> {
        let mechanism = self.mechanism_of(release, function)?;
        let calibrated = self.calibration_shown(release, function)?;
        let order = match &release.private_order {
            Some(choice) => {
                Some(choice.mechanism(function, &mechanism, self.neighbouring_relation())?)
            }
            None => None,
        };
        let change = self.sensitivity(release, function, release.calibration)?;
        let variant = DescribedVariant {
            release,
            function,
            mechanism,
            calibrated,
            change,
            is_synthetic,
        };
        let mut at = 0;
        let descriptions = release.candidate_orders().try_map(|order| {
            let band = bands.get(at);
            at += 1;
            Ok::<_, SettingsError>(self.description(&variant, *order, band))
        })?;
        Ok(ReleaseVariant {
            target: function.target.clone(),
            mechanism,
            change,
            touched: self
                .privacy
                .touched_values(function.target.shape().value_count()),
            scaling: function.scaling,
            order,
            descriptions,
        })
    }

    /// The description in every synopsis; window, key, blocks and ledger row are filled in later.
    fn description(&self, variant: &DescribedVariant<'_>, order: u32, band: &Band) -> Description {
        let release = variant.release;
        let function = variant.function;
        let shape = release.shape();
        let noise = variant.noise();
        let start = self.windows.grid.origin();
        let target = self.target_description(release, function);
        let sensitivity = SensitivityDescription {
            norm: noise.law.norm(),
            units: variant.change.0,
            records: match release.is_user_weighted() {
                true => 1,
                false => self.privacy.unit.most_contributions(),
            },
            values: self.privacy.touched_values(shape.value_count()) as u64,
            derived: variant
                .calibrated
                .sensitivity_derivation(&target, &shape.basis),
            fresh: None,
        };
        let domain = release.described_domain();
        let form_error = form_error::density_form_error(&target, &shape, order, &domain);
        let about = Description {
            format: FORMAT,
            pipeline: self.pipeline.clone(),
            release: release.name.clone(),
            key: None,
            key_columns: match self.columns.key.as_slice() {
                several @ [_, _, ..] => several.to_vec(),
                _ => Vec::new(),
            },
            window: self.windows.grid.span_of(start),
            published: start,
            grid_end: self.windows.end,
            target,
            meaning: self.meaning_in_words(release, function),
            domain,
            names: release.names.clone(),
            offset: if matches!(shape.basis, Basis::Kernel(_)) {
                function.scaling.offset()
            } else {
                0.0
            },
            degree: shape.degree,
            basis: shape.basis,
            order,
            noise,
            sensitivity: Some(sensitivity),
            privacy: self.privacy_description(release),
            choices: release.described_choices(function, order),
            band: band.scaled_to_noise(&noise),
            smoothness: release.smoothness.clone(),
            form_error,
            reading: None,
            not_protected: guarantee::not_protected(self),
            incomplete: matches!(&self.input, InputParams::Kafka(kafka) if !kafka.lost.is_empty()),
            digests: Digests {
                configuration: Digest::from(self.digest()).to_string(),
                program: format!("bernstream {}", env!("CARGO_PKG_VERSION")),
            },
            ledger: PaymentRow {
                id: String::new(),
                sequence: 0,
            },
            panes: None,
            synthetic: variant.is_synthetic,
        };
        // Of a sum of panes neither the noise nor the records are those of a pane.
        if release.is_sum_of_panes() {
            return about;
        }
        let records = self.public_records(release).or(release.expected_records);
        Description {
            reading: records.and_then(|records| {
                Recommended::for_noise(&about.target, &about.basis, about.band.half_width, records)
            }),
            ..about
        }
    }

    /// The promise as a synopsis states it; the blocks are filled in later.
    fn privacy_description(&self, release: &ReleaseSettings) -> PrivacyDescription {
        PrivacyDescription {
            definition: self.privacy.definition.clone(),
            unit: self.unit_description(),
            in_words: guarantee::promise_lines(self).join(" "),
            adjacency: self.privacy.adjacency,
            implies: self.privacy.implies,
            price: release
                .policy
                .window_price(0)
                .unwrap_or(self.privacy.total.zero_of_kind()),
            blocks: Vec::new(),
        }
    }

    /// Under `replace_one` the number of records is public, and a density can be divided by it.
    fn target_description(
        &self,
        release: &ReleaseSettings,
        function: &ReleasedFunction,
    ) -> TargetDescription {
        match function.about.clone() {
            TargetDescription::Density(density) => TargetDescription::Density(Density {
                divide_by: self.public_records(release),
                ..density
            }),
            other => other,
        }
    }

    /// Only for tumbling windows: the number of records of a sum is not constant.
    fn public_records(&self, release: &ReleaseSettings) -> Option<u64> {
        self.privacy
            .records_per_window
            .filter(|_| release.window_kind == WindowKind::Tumbling)
    }

    fn meaning_in_words(&self, release: &ReleaseSettings, function: &ReleasedFunction) -> String {
        if matches!(function.about, TargetDescription::Density(_))
            && self.public_records(release).is_some()
        {
            format!("{}; divide by 'divide_by' for a density", function.quantity)
        } else {
            function.meaning.clone()
        }
    }

    fn unit_description(&self) -> DescribedUnit {
        match &self.privacy.unit {
            PrivacyUnit::Record => DescribedUnit::Record,
            PrivacyUnit::User {
                column,
                per,
                max_records_per_window,
            } => DescribedUnit::User {
                column: column.clone(),
                per: per.to_string(),
                max_records_per_window: *max_records_per_window,
            },
        }
    }
}

impl ReleaseSettings {
    /// The private choices of a window with this function and order.
    fn described_choices(&self, function: &ReleasedFunction, order: u32) -> Vec<PrivateChoice> {
        let mut choices = Vec::new();
        if let Some(choice) = &self.private_bandwidths {
            choices.push(PrivateChoice::Bandwidths {
                taken: density_bandwidths(function),
                candidates: choice.candidates.iter().map(density_bandwidths).collect(),
                price: choice.price,
            });
        }
        if let Some(choice) = &self.private_order {
            choices.push(PrivateChoice::Order {
                taken: order,
                candidates: choice.candidates.iter().copied().collect(),
                price: choice.price,
            });
        }
        choices
    }

    fn described_domain(&self) -> Vec<AxisDescription> {
        let mut domain = Vec::new();
        for (column, axis) in self.columns.iter().zip(&self.axes) {
            domain.push(AxisDescription {
                column: column.clone(),
                min: axis.min,
                max: axis.max,
            });
        }
        domain
    }
}

/// The bandwidths of a density; none of any other function.
fn density_bandwidths(function: &ReleasedFunction) -> Vec<f64> {
    match &function.about {
        TargetDescription::Density(Density {
            kernel: Smoothing::Bandwidths(bandwidths),
            ..
        }) => bandwidths.clone(),
        _ => Vec::new(),
    }
}

/// A release with one of its functions, as every description of it is written.
struct DescribedVariant<'a> {
    release: &'a ReleaseSettings,
    function: &'a ReleasedFunction,
    mechanism: Mechanism,
    calibrated: CalibrationBound,
    change: Change,
    is_synthetic: bool,
}

impl DescribedVariant<'_> {
    fn noise(&self) -> NoiseDescription {
        let grid = self.function.grid_unit();
        #[expect(
            clippy::cast_precision_loss,
            reason = "a scale to show; the noise itself is drawn from the integer"
        )]
        let scale = self.mechanism.scale().units() as f64 * grid;
        NoiseDescription {
            law: self.mechanism.distribution(),
            scale,
            grid,
            calibrated: self.calibrated,
        }
    }
}
