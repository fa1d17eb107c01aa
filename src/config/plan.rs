//! From settings to the plan that the pipeline carries out: sensitivity, noise, and what every synopsis will say.

use crate::config::choices::Protected;
use crate::config::over::WindowKind;
use crate::config::{Calibration, Function, Input, Period, Release, Settings, Unit, guarantee, normalised};
use crate::mechanism::choice::Candidates;
use crate::mechanism::continual::{self, Series};
use crate::mechanism::price::Price;
use crate::mechanism::{self, Mechanism};
use crate::pipeline::{self, Plan, Publication, ReleaseVariant};
use crate::synopsis::band::Band;
use crate::synopsis::description::{
    Axis, Calibrated, Choice, Definition, Density, Description, Digests, Entry, FORMAT, Noise, Privacy, Smoothing,
    Target, Unit as DescribedUnit,
};
use crate::targets::{self, Basis, Sensitivity};
use crate::window::Form;

/// Why settings that are sound cannot be carried out.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Target(#[from] targets::Error),
    #[error(transparent)]
    Mechanism(#[from] mechanism::Error),
    #[error(transparent)]
    Continual(#[from] continual::Error),
}

impl Settings {
    /// What a unit can change in one of the functions of a release, by one or the other bound, in the norm of its noise.
    pub fn sensitivity(
        &self,
        release: &Release,
        function: &Function,
        calibration: Calibration,
    ) -> Result<Sensitivity, targets::Error> {
        calibration.sensitivity(&*function.target, release.body.law(), &self.privacy)
    }

    /// What the noise of one of the functions is calibrated to, for people to read.
    pub fn calibrated(&self, release: &Release, function: &Function) -> Result<Calibrated, Error> {
        Ok(match (release.calibration, &self.privacy.definition) {
            (Calibration::Tight, Definition::Random(_)) => Calibrated::Sampled,
            (Calibration::Tight, _) => Calibrated::Tight,
            (Calibration::Paper, _) => {
                let bounds =
                    [Calibration::Paper, Calibration::Tight].map(|which| self.sensitivity(release, function, which));
                let [paper, tight] = bounds;
                #[expect(clippy::cast_precision_loss, reason = "a figure to show")]
                Calibrated::Paper { times_needed: paper?.0 as f64 / tight?.0 as f64 }
            }
        })
    }

    /// The mechanism for one of the functions that a window of a release can have.
    pub fn mechanism_of(&self, release: &Release, function: &Function) -> Result<Mechanism, Error> {
        self.mechanism_at(release, function, release.payment.own())
    }

    /// What the mechanism for a function would be at another price.
    pub fn mechanism_at(&self, release: &Release, function: &Function, price: Price) -> Result<Mechanism, Error> {
        release.calibration.mechanism(&*function.target, release.body.law(), &self.privacy, price)
    }

    /// The correlated noise of a release that is a sum over several panes.
    pub fn series(&self, release: &Release) -> Result<Option<Series>, Error> {
        let Some(over) = release.over.series().filter(|_| release.is_sum_of_panes()) else { return Ok(None) };
        let (law, target) = (release.body.law(), &*release.function.target);
        let Protected { adjacency, contributions } = self.protected();
        let change = law.sensitivity(target, adjacency, contributions)?;
        let values = self.privacy.touched(target.shape().values());
        let (panes, horizon) = (self.panes_a_unit(release), release.over.horizon());
        // What is written in epsilon is that epsilon, as for a window of its own. For a unit in several panes it is the rho.
        let price = if panes == 1 { release.payment.own() } else { release.payment.price() };
        Ok(Some(Series::calibrated(over, law, change, values, panes, price, horizon)?))
    }

    /// How many windows of the grid, each paid for by the release, one unit can be in.
    fn panes_a_unit(&self, release: &Release) -> u32 {
        match &self.privacy.unit {
            Unit::Record => 1,
            Unit::User { per: Period::Every(per), .. } => {
                u32::try_from(guarantee::most_blocks(*per, self.windows.grid.length())).unwrap_or(u32::MAX)
            }
            // As many as the total pays for, were it for this release alone.
            Unit::User { per: Period::Ever, .. } => {
                let paid = release.policy.lasts(self.privacy.total, None, |_| true);
                paid.and_then(|paid| u32::try_from(paid).ok()).unwrap_or(u32::MAX)
            }
        }
    }

    /// The plan. `bands` gives those of a release's noise in units of its scale, one for each order that a window can have;
    /// `is_synthetic` says that the records are simulated.
    pub fn plan(&self, bands: impl Fn(&Release) -> Candidates<Band>, is_synthetic: bool) -> Result<Plan, Error> {
        let release = |release: &Release| {
            let (bands, series) = (bands(release), self.series(release)?);
            let bandwidth = release.private_bandwidths.as_ref();
            let position = |column: &String| self.columns.values.iter().position(|value| value == column);
            Ok(pipeline::Release {
                form: Form {
                    axes: release.axes.clone(),
                    label: release.label.clone(),
                    columns: release.columns.iter().filter_map(position).collect(),
                    keep: release.function.target.keep(),
                    panes: match release.over {
                        WindowKind::Hopping { panes } if series.is_none() => panes,
                        _ => 1,
                    },
                },
                bandwidth: bandwidth.map(|choice| choice.mechanism(self.protected())).transpose()?,
                variants: release
                    .functions()
                    .try_map(|function| self.variant(release, function, &bands, is_synthetic))?,
                price_schedule: self.price_schedule(release),
                series: series
                    .map(|series| pipeline::NoiseSeries { series, identity: normalised::identity(self, release) }),
            })
        };
        let publication = match self.input {
            Input::Kafka(_) => Publication::AfterCutoff(self.publish_delay),
            Input::Files(_) => Publication::AtWindowEnd,
        };
        Ok(Plan {
            rules: self.windows.clone(),
            blocks: self.blocks,
            releases: self.releases.iter().map(release).collect::<Result<_, Error>>()?,
            total: self.privacy.total,
            limit: self.privacy.limit(),
            publication,
        })
    }

    /// How a release is released with one of its functions.
    pub fn variant(
        &self,
        release: &Release,
        function: &Function,
        bands: &Candidates<Band>,
        is_synthetic: bool,
    ) -> Result<ReleaseVariant, Error> {
        let (mechanism, calibrated) = (self.mechanism_of(release, function)?, self.calibrated(release, function)?);
        let choice = release.private_order.as_ref();
        let order = choice.map(|choice| choice.mechanism(function, &mechanism, self.protected())).transpose()?;
        let mut place = 0..;
        let descriptions = release.orders().try_map(|order| {
            let band = bands.get(place.next().unwrap_or(0));
            Ok::<_, Error>(self.description((release, function), *order, (mechanism, calibrated), band, is_synthetic))
        })?;
        let Function { target, unit, offset, .. } = function;
        let change = self.sensitivity(release, function, release.calibration)?;
        let touched = self.privacy.touched(target.shape().values());
        Ok(ReleaseVariant {
            target: target.clone(),
            mechanism,
            change,
            touched,
            unit: *unit,
            offset: *offset,
            order,
            descriptions,
        })
    }

    /// What every synopsis says; window, key, blocks and ledger row are filled in when there are any.
    fn description(
        &self,
        (release, function): (&Release, &Function),
        order: u32,
        (mechanism, calibrated): (Mechanism, Calibrated),
        band: &Band,
        is_synthetic: bool,
    ) -> Description {
        let (grid, shape) = (function.unit, release.shape());
        #[expect(clippy::cast_precision_loss, reason = "a scale to show; the noise itself is drawn from the integer")]
        let scale = mechanism.scale().units() as f64 * grid;
        let noise = Noise { law: mechanism.law(), scale, grid, calibrated };
        let start = self.windows.grid.origin();
        Description {
            format: FORMAT,
            pipeline: self.pipeline.clone(),
            release: release.name.clone(),
            key: None,
            window: self.windows.grid.span_of(start),
            published: start,
            target: self.target_description(release, function),
            meaning: self.meaning(release, function),
            domain: release.domain(),
            offset: if matches!(shape.basis, Basis::Kernel(_)) { function.offset } else { 0.0 },
            degree: shape.degree,
            basis: shape.basis,
            order,
            noise,
            privacy: Privacy {
                definition: self.privacy.definition.clone(),
                unit: self.unit_description(),
                in_words: guarantee::promise(self).join(" "),
                adjacency: self.privacy.adjacency,
                implies: self.privacy.implies,
                price: release.policy.price(0).unwrap_or(self.privacy.total.zero()),
                blocks: Vec::new(),
            },
            choices: release.choices(function, order),
            band: band.scaled(&noise),
            smoothness: release.smoothness.clone(),
            not_protected: guarantee::not_protected(self),
            incomplete: matches!(&self.input, Input::Kafka(kafka) if !kafka.lost.is_empty()),
            digests: Digests {
                configuration: self.digest().iter().map(|byte| format!("{byte:02x}")).collect(),
                program: format!("bernstream {}", env!("CARGO_PKG_VERSION")),
            },
            ledger: Entry { id: String::new(), sequence: 0 },
            panes: None,
            synthetic: is_synthetic,
        }
    }

    /// Under `replace_one` the number of records is public, and a density can be divided by it.
    fn target_description(&self, release: &Release, function: &Function) -> Target {
        match function.about.clone() {
            Target::Density(density) => Target::Density(Density { divide_by: self.divide_by(release), ..density }),
            other => other,
        }
    }

    /// Only of one window: how many there are in a sum differs.
    fn divide_by(&self, release: &Release) -> Option<u64> {
        self.privacy.records_per_window.filter(|_| release.over == WindowKind::Tumbling)
    }

    fn meaning(&self, release: &Release, function: &Function) -> String {
        match (&function.about, self.divide_by(release)) {
            (Target::Density(_), Some(_)) => {
                format!("{}; divide by 'divide_by' for a density", function.quantity)
            }
            _ => function.meaning.clone(),
        }
    }

    fn unit_description(&self) -> DescribedUnit {
        match &self.privacy.unit {
            Unit::Record => DescribedUnit::Record,
            Unit::User { column, per, max_records_per_window } => DescribedUnit::User {
                column: column.clone(),
                per: per.to_string(),
                max_records_per_window: *max_records_per_window,
            },
        }
    }
}

impl Release {
    /// What a window with this function and order has chosen privately.
    fn choices(&self, function: &Function, order: u32) -> Vec<Choice> {
        let bandwidths = |function: &Function| match &function.about {
            Target::Density(Density { kernel: Smoothing::Bandwidths(bandwidths), .. }) => bandwidths.clone(),
            _ => Vec::new(),
        };
        let of_bandwidths = self.private_bandwidths.as_ref().map(|choice| Choice::Bandwidths {
            taken: bandwidths(function),
            candidates: choice.candidates.iter().map(bandwidths).collect(),
            price: choice.price,
        });
        let of_order = self.private_order.as_ref().map(|choice| Choice::Order {
            taken: order,
            candidates: choice.candidates.iter().copied().collect(),
            price: choice.price,
        });
        of_bandwidths.into_iter().chain(of_order).collect()
    }

    fn domain(&self) -> Vec<Axis> {
        let axes = self.columns.iter().zip(&self.axes);
        axes.map(|(column, axis)| Axis { column: column.clone(), min: axis.min, max: axis.max }).collect()
    }
}
