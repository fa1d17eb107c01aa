//! The configuration: the file as written ([`file`]) becomes the settings as used ([`Settings`]), which cannot be wrong.

pub mod auto;
pub mod body;
pub mod budget;
pub mod choices;
mod cluster;
pub mod composition;
pub mod differences;
pub mod document;
pub mod file;
mod forms;
mod functions;
pub mod guarantee;
pub mod keys;
pub mod normalised;
pub mod over;
mod plan;
pub mod policy;
mod release;
pub mod sampled;
pub mod schema;
mod sections;
mod settle;

use std::fmt;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::accountant::policy::{Fraction, Policy, without_reserve};
use crate::config::body::Body;
use crate::config::budget::Payment;
use crate::config::choices::{PrivateBandwidths, PrivateOrder, Protected};
use crate::config::document::Document;
pub use crate::config::document::Faults;
use crate::config::over::WindowKind;
pub use crate::config::plan::Error;
use crate::kafka::Broker;
use crate::mechanism::calibrate::Delta;
use crate::mechanism::choice::Candidates;
use crate::mechanism::price::Price;
use crate::mechanism::{Laplace, Mechanism, NoiseDistribution};
use crate::metrics::Detail;
use crate::synopsis::approximation::Smoothness;
use crate::synopsis::description::{self, Definition, Implied};
use crate::targets::{self, Adjacency, Sensitivity, Shape, Target};
use crate::window::grid::Blocks;
use crate::window::{Axis, Label};
use crate::{ledger, sink, source, window};

/// Everything a worker needs to know; every rule between two settings holds.
#[derive(Clone, Debug)]
pub struct Settings {
    pub pipeline: String,
    pub input: Input,
    pub columns: source::Columns,
    pub windows: window::Rules,
    /// The privacy blocks: for records the windows themselves, for users the periods, or all of time.
    pub blocks: Blocks,
    pub privacy: Privacy,
    /// Never empty; each has a name of its own.
    pub releases: Vec<Release>,
    /// From the cutoff of a window to its publication.
    pub publish_delay: Duration,
    pub output: Output,
    pub ledger: ledger::Params,
    pub serve: Option<SocketAddr>,
    /// Where the worker shows its own output.
    pub dashboard: Option<SocketAddr>,
    pub detail: Detail,
    /// Canonical JSON of what bears on privacy, and of nothing else: no address, no path, no secret.
    pub normalised: String,
}

#[expect(clippy::large_enum_variant, reason = "there is one in a program")]
#[derive(Clone, Debug)]
pub enum Input {
    Kafka(source::kafka::Params),
    Files(source::files::Params),
}

#[expect(clippy::large_enum_variant, reason = "there is one in a program")]
#[derive(Clone, Debug)]
pub enum Output {
    Kafka { sink: sink::kafka::Params, witness: ledger::witness::kafka::Params },
    Files(sink::files::Params),
}

/// What is promised to whom.
#[derive(Clone, Debug)]
pub struct Privacy {
    pub unit: Unit,
    pub adjacency: Adjacency,
    /// The public number of records of a window, under [`Adjacency::ReplaceOne`].
    pub records_per_window: Option<u64>,
    pub definition: Definition,
    /// The most that a unit may lose in its block.
    pub total: Price,
    /// What the total was worked out from, where that is what is promised.
    pub implies: Option<Implied>,
    /// What of it is kept back, for corrections.
    pub reserve: Fraction,
}

impl Privacy {
    /// What ordinary windows may spend of a block.
    pub fn limit(&self) -> Price {
        without_reserve(self.total, self.reserve)
    }

    /// How many of `values` of each key a unit can change: one of several records can be in as many keys.
    pub fn touched(&self, values: usize) -> usize {
        values.saturating_mul(self.unit.contributions() as usize)
    }
}

/// Who is protected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unit {
    Record,
    /// All records of a user in one period.
    User {
        column: String,
        per: Period,
        max_records_per_window: u32,
    },
}

/// How long a user is one unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Period {
    /// Then again, with a total of its own.
    Every(Duration),
    Ever,
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Period::Every(length) => f.write_str(&crate::clock::show(*length)),
            Period::Ever => f.write_str("ever"),
        }
    }
}

impl Unit {
    /// How many records of one unit count in a window, over all keys.
    pub fn contributions(&self) -> u32 {
        match self {
            Unit::Record => 1,
            Unit::User { max_records_per_window, .. } => *max_records_per_window,
        }
    }
}

/// What is published of each window: one function.
#[derive(Clone, Debug)]
pub struct Release {
    pub name: String,
    pub over: WindowKind,
    pub function: Function,
    /// The columns of the axes, then that of the label.
    pub columns: Vec<String>,
    pub axes: Vec<Axis>,
    pub label: Option<Label>,
    /// What pays for the function's noise, in the first window.
    pub payment: Payment,
    /// What the windows cost, choices and all.
    pub policy: Policy,
    /// The order `h` of the iterated Bernstein operator.
    pub order: u32,
    pub body: Body,
    pub calibration: Calibration,
    /// How degree and order were chosen, where the file says `auto`.
    pub auto: Option<auto::Table>,
    /// What every window and key chooses for itself; `order` and the function are then the first candidates.
    pub private_order: Option<PrivateOrder>,
    /// What the operator vouches for, never checked: the bound on the approximation rests on it, no privacy does.
    pub smoothness: Option<Smoothness>,
    pub private_bandwidths: Option<PrivateBandwidths>,
}

/// Which bound on what a unit can change the noise is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Calibration {
    /// The target's own.
    Tight,
    /// The papers', to compare with: as private, and noisier.
    Paper,
}

impl Calibration {
    /// In the norm of `law`; the papers' is in the 1-norm.
    pub fn sensitivity(
        self,
        target: &dyn Target,
        law: NoiseDistribution,
        privacy: &Privacy,
    ) -> Result<Sensitivity, targets::Error> {
        let (adjacency, contributions) = (privacy.adjacency, privacy.unit.contributions());
        match self {
            Calibration::Tight => law.sensitivity(target, adjacency, contributions),
            Calibration::Paper => target.papers_sensitivity(adjacency, contributions),
        }
    }

    /// The mechanism for `target` at a price. The papers' takes its `lambda_delta` where the price has a delta.
    pub fn mechanism(
        self,
        target: &dyn Target,
        law: NoiseDistribution,
        privacy: &Privacy,
        price: Price,
    ) -> Result<Mechanism, plan::Error> {
        let (change, values) = (self.sensitivity(target, law, privacy)?, target.shape().values());
        let touched = privacy.touched(values);
        Ok(match (self, price) {
            (Calibration::Paper, Price::Approximate { epsilon, delta }) if delta > Delta::ZERO => {
                let sup = change.0.div_ceil(values as u64);
                Mechanism::Laplace(Laplace::advanced(sup, values, epsilon, delta)?)
            }
            _ => Mechanism::calibrated(law, change, touched, price)?,
        })
    }
}

impl Release {
    /// What the released values are.
    pub fn shape(&self) -> Shape {
        self.function.target.shape()
    }

    /// Whether it is a sum over several windows of the grid, with noise that goes on from one to the next.
    pub fn is_sum_of_panes(&self) -> bool {
        self.over != WindowKind::Tumbling && self.function.target.is_sum()
    }

    /// Every function that a window can have.
    pub fn functions(&self) -> Candidates<Function> {
        let fixed = || Candidates::new(self.function.clone(), Vec::new());
        self.private_bandwidths.as_ref().map_or_else(fixed, |choice| choice.candidates.clone())
    }

    /// What the first window costs: the function, and every choice.
    pub fn window_price(&self) -> Price {
        let choices = [
            self.private_bandwidths.as_ref().map(|choice| choice.price),
            self.private_order.as_ref().map(|choice| choice.price),
        ];
        choices.into_iter().flatten().fold(self.payment.price(), Price::with_pure)
    }

    /// Every order that a window can have.
    pub fn orders(&self) -> Candidates<u32> {
        let fixed = || Candidates::new(self.order, Vec::new());
        self.private_order.as_ref().map_or_else(fixed, |choice| choice.candidates.clone())
    }
}

/// The function that is published, and what its values mean.
#[derive(Clone, Debug)]
pub struct Function {
    pub target: Arc<dyn Target>,
    /// What every synopsis says about it; all that its values depend on, beside domain, lattice and label.
    pub about: description::Target,
    /// What a value means, in words.
    pub meaning: String,
    /// What a value counts, in words: the unit of an error.
    pub quantity: String,
    /// What one grid unit stands for, in natural units.
    pub unit: f64,
    /// The natural value of zero grid units.
    pub offset: f64,
}

impl Settings {
    /// Reads the file at `path`.
    pub fn load(path: &Path) -> Result<Self, Faults> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|e| Faults::unreadable(&name, &e))?;
        Settings::parse(&text, &name)
    }

    /// Reads `text`; `name` stands before every fault.
    pub fn parse(text: &str, name: &str) -> Result<Self, Faults> {
        let (mut document, file) = Document::read(text, name);
        let settings = file.and_then(|file| settle::settings(&mut document, file));
        document.finish(settings)
    }

    /// SHA-256 of [`Settings::normalised`]: changes with what bears on privacy, and with nothing else.
    pub fn digest(&self) -> [u8; 32] {
        Sha256::digest(&self.normalised).into()
    }

    /// How far before its window a charge can lie: as far as windows overlap that are paid for anew each time.
    pub fn reach(&self) -> Duration {
        let panes = self.releases.iter().map(|release| match release.over {
            WindowKind::Hopping { panes } if !release.is_sum_of_panes() => panes - 1,
            _ => 0,
        });
        self.windows.grid.length().saturating_mul(panes.max().unwrap_or(0))
    }

    /// What a block that is one window pays in all, for every release that speaks of it; `None` where that is more than can be
    /// paid.
    pub fn price_in_all(&self) -> Option<Price> {
        let paid = |release: &Release| {
            let price = release.policy.price(0)?;
            let times = match release.over {
                WindowKind::Hopping { panes } if !release.is_sum_of_panes() => panes,
                _ => 1,
            };
            (0..times).try_fold(price.zero(), |sum, _| sum.checked_add(price))
        };
        let all =
            self.releases.iter().map(paid).try_fold(self.privacy.total.zero(), |sum, price| sum.checked_add(price?));
        all.filter(|sum| sum.is_within(self.privacy.limit()))
    }

    /// What the first window of all releases costs.
    pub fn window_price(&self) -> Price {
        let prices = self.releases.iter().filter_map(|release| release.policy.price(0));
        // A file whose sum does not fit into its total has a fault.
        prices.fold(self.privacy.total.zero(), |sum, price| sum.checked_add(price).unwrap_or(self.privacy.total))
    }

    /// What is unwise about how the clusters are reached.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = self.input.broker().map_or(Vec::new(), Broker::warnings);
        if let Output::Kafka { sink, .. } = &self.output {
            warnings.extend(sink.broker.warnings());
        }
        warnings.dedup();
        warnings
    }

    pub fn protected(&self) -> Protected {
        Protected { adjacency: self.privacy.adjacency, contributions: self.privacy.unit.contributions() }
    }

    /// How many synopses a window publishes of each release: one a key.
    pub fn groups(&self) -> usize {
        self.windows.keys.as_ref().map_or(1, Vec::len)
    }
}

/// The most values of a synopsis that is no longer than `bytes`.
pub fn most_values(bytes: usize) -> usize {
    bytes.saturating_sub(message_bytes(0)) / 8
}

/// About how long a synopsis of this shape is.
pub fn synopsis_bytes(shape: &Shape) -> usize {
    let points = match &shape.basis {
        // Its points stand in the description, at most 22 characters a coordinate.
        targets::Basis::Kernel(basis) => 24 * shape.dimensions * basis.points.len(),
        _ => 0,
    };
    message_bytes(shape.values()) + points
}

/// About how long a synopsis of `lattice_points` is: eight bytes a coefficient, and its schema and metadata.
fn message_bytes(lattice_points: usize) -> usize {
    8 * lattice_points + 4096
}

impl Input {
    pub fn broker(&self) -> Option<&Broker> {
        match self {
            Input::Kafka(params) => Some(&params.broker),
            Input::Files(_) => None,
        }
    }
}
