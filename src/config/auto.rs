//! `degree = "auto"`, `order = "auto"`: the pair with the smallest predicted error, from public quantities only.
//!
//! Predicted error = noise + approximation, both the largest over the domain, in natural units:
//! * noise: the mean sup of the order-`h` polynomial of the noise that the release's price buys at that degree,
//!   simulated ([`predict::noise`]): measured operator norms, not `2^h - 1`;
//! * approximation: of a bump, measured ([`predict::approximation`]) where `[AR17]` theorem 3 gives a rate only. Half of
//!   the expected records make one cluster as wide as the function's own smoothing, wherever the polynomial follows it
//!   worst; the other half lie evenly and cost nothing.
//!
//! Why a bump: records that lie evenly need no degree at all, records all in one place need no bandwidth. A bandwidth is
//! chosen no wider than what is to be seen, so that is how fine the records are taken to be.
//!
//! The choice must be the same on every machine: no clock, no thread and no cache has a part in it. (The last digit of
//! an exponential may differ from one machine to the next: that could tell only between candidates that are equal to
//! fifteen digits, and a worker whose choice is not its ledger's refuses to start.)

use std::thread;

use crate::config::Function;
use crate::mechanism::calibrate::Epsilon;
use crate::mechanism::{Law, Mechanism};
use crate::synopsis::description::{Classifier, Density, Method, Regression, Smoothing, Target};
use crate::synopsis::predict;
use crate::target::machine::Kernel;
use crate::target::{Adjacency, Basis, Shape};
use crate::window::Axis;

/// The degrees that are looked at, where [`is_quick`] allows.
const DEGREES: [u32; 14] = [2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256];
const ORDERS: [u32; 10] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32];
/// Multiplications of one step of the operator: what a start has the patience for.
const WORK: usize = 300_000;

/// What is asked for, and what it is to be judged by.
#[derive(Clone, Debug)]
pub struct Search<'a> {
    /// A fixed degree, or those of the list.
    pub degree: Option<u32>,
    /// Fixed orders, ascending, or those of the list.
    pub orders: Option<Vec<u32>>,
    pub expected_records: u64,
    pub law: Law,
    pub price: Epsilon,
    pub terms: Terms,
    pub axes: &'a [Axis],
}

/// What the other sections of the file say that bears on a choice.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    pub adjacency: Adjacency,
    pub contributions: u32,
    /// The most values that a message holds.
    pub most_values: usize,
}

/// What was looked at, and what was taken.
#[derive(Clone, Debug)]
pub struct Table {
    pub expected_records: u64,
    /// The best order of each degree, by degree.
    pub candidates: Vec<Candidate>,
    /// Taken.
    pub best: Candidate,
}

/// One pair, with its predicted errors in natural units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    pub degree: u32,
    pub order: u32,
    /// How many values a synopsis has.
    pub values: usize,
    pub noise: f64,
    pub approximation: f64,
}

impl Candidate {
    pub fn error(&self) -> f64 {
        self.noise + self.approximation
    }
}

/// Whether a lattice is small enough to be looked at: up to degree 546 on one axis, 52 on two, 16 on three.
pub fn is_quick(shape: &Shape) -> bool {
    shape.values() * (shape.degree as usize + 1) * shape.dimensions <= WORK
}

/// The smallest degree that can be chosen.
pub fn first_degree() -> u32 {
    DEGREES[0]
}

impl Search<'_> {
    /// The best pair; `None` where no candidate can be built, drawn and sent. `build` gives the function for a degree.
    pub fn choose(&self, build: impl Fn(u32) -> Option<Function>) -> Option<Table> {
        let degrees = self.degree.map_or(DEGREES.to_vec(), |degree| vec![degree]);
        let mut functions: Vec<Function> = degrees.into_iter().filter_map(build).collect();
        // An affine function is the same whatever degree is asked for.
        functions.dedup_by_key(|function| function.target.shape());
        let judged: Vec<Vec<Candidate>> = thread::scope(|scope| {
            let workers: Vec<_> = functions.iter().map(|function| scope.spawn(|| self.judge(function))).collect();
            workers.into_iter().map(|worker| worker.join().unwrap_or_default()).collect()
        });
        // The first of equals: the smallest message, then the lowest order.
        let least =
            |candidates: &[Candidate]| candidates.iter().copied().min_by(|a, b| a.error().total_cmp(&b.error()));
        let candidates: Vec<Candidate> = judged.iter().filter_map(|orders| least(orders)).collect();
        let best = least(&candidates)?;
        Some(Table { expected_records: self.expected_records, candidates, best })
    }

    /// Every order of one function; none where it cannot be drawn or sent.
    fn judge(&self, function: &Function) -> Vec<Candidate> {
        let shape = function.target.shape();
        let Terms { adjacency, contributions, most_values } = self.terms;
        if shape.values() > most_values || !is_quick(&shape) {
            return Vec::new();
        }
        let sensitivity = self.law.sensitivity(&*function.target, adjacency, contributions);
        let Some(mechanism) = sensitivity.ok().and_then(|s| Mechanism::calibrated(self.law, s, self.price).ok()) else {
            return Vec::new();
        };
        let orders = match shape.basis {
            Basis::Bernstein => self.orders.clone().unwrap_or(ORDERS.to_vec()),
            _ => vec![1],
        };
        #[expect(clippy::cast_precision_loss, reason = "a prediction; the noise itself is drawn from the integer")]
        let scale = mechanism.scale().units() as f64 * function.unit;
        let Some((widths, height)) = self.bump(function) else { return Vec::new() };
        let approximation = match shape.basis {
            Basis::Bernstein => predict::approximation(&widths, shape.degree, &orders),
            _ => vec![0.0],
        };
        let errors = predict::noise(&shape, self.law, &orders).into_iter().zip(approximation);
        let candidate = |(order, (noise, share)): (u32, (f64, f64))| Candidate {
            degree: shape.degree,
            order,
            values: shape.values(),
            noise: noise * scale,
            approximation: share * height,
        };
        orders.into_iter().zip(errors).map(candidate).collect()
    }

    /// How fine what is fitted is taken to be, in the unit cube: as its kernel, or half the domain.
    fn smoothing(&self, method: &Method) -> Vec<f64> {
        let width = match method {
            Method::KernelMachine {
                kernel: Kernel::Gaussian { bandwidth } | Kernel::Laplacian { bandwidth }, ..
            } => bandwidth.min(0.5),
            _ => 0.5,
        };
        vec![width; self.axes.len()]
    }

    /// The bump that the polynomial must follow: its standard deviations in the unit cube, and its height.
    #[expect(clippy::cast_precision_loss, reason = "a prediction")]
    fn bump(&self, function: &Function) -> Option<(Vec<f64>, f64)> {
        let records = self.expected_records as f64;
        let widths =
            |lengths: &[f64]| lengths.iter().zip(self.axes).map(|(b, axis)| b / (axis.max - axis.min)).collect();
        // What half of the records make of a value where each has its largest effect.
        let most = function.target.sup_sensitivity(Adjacency::AddRemove, 1).ok()? as f64 * function.unit;
        let crowd = records / 2.0 * most;
        let (smoothing, height): (Vec<f64>, f64) = match &function.about {
            Target::Density(Density { kernel: Smoothing::Bandwidths(bandwidths), .. }) => (widths(bandwidths), crowd),
            Target::Density(Density { kernel: Smoothing::Covariance(rows), .. }) => {
                let deviations: Vec<f64> =
                    rows.iter().enumerate().filter_map(|(i, row)| row.get(i)).map(|v| v.sqrt()).collect();
                (widths(&deviations), crowd)
            }
            // Gaps that count share out the domain: a label's effect is bounded by the label, not by the records.
            Target::Regression(Regression {
                min, max, method: Method::PriestleyChao { bandwidth, gap, .. }, ..
            }) => {
                let covered = widths(&[*gap]).iter().map(|gap| gap * records).sum::<f64>().min(1.0);
                (widths(&[*bandwidth]), (max - min) / 2.0 * covered)
            }
            // However many the records are, what is expected of a label stays within its bounds, and a score about 1.
            Target::Regression(Regression { min, max, method, .. }) => (self.smoothing(method), (max - min) / 2.0),
            Target::Classifier(Classifier { method: Method::KernelBayes { bandwidths: lengths }, .. })
            | Target::Classifier(Classifier { method: Method::GaussianBayes { min_deviations: lengths }, .. }) => {
                (widths(lengths), crowd)
            }
            Target::Classifier(Classifier { method, .. }) => (self.smoothing(method), 1.0),
            Target::Probability(Classifier { method, .. }) => (self.smoothing(method), 0.5),
            // Nothing is known of its shape: a bump of half the domain.
            Target::Sum(_) => (vec![0.25; self.axes.len()], crowd),
        };
        // Two Gaussians on top of each other: the cluster, and the smoothing, each as wide as the other.
        let lowered = height * 0.5_f64.powf(smoothing.len() as f64 / 2.0);
        Some((smoothing.iter().map(|b| b * 2.0_f64.sqrt()).collect(), lowered))
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Settings;

    const FLIGHTS: &str = include_str!("../../config/flights.toml");

    fn chosen(records: u64, changes: &[(&str, &str)]) -> (u32, u32) {
        let auto = format!("degree = \"auto\"\norder = \"auto\"\nexpected_records = {records}");
        let text = FLIGHTS.replace("degree = 40\norder = 4", &auto);
        let text = changes.iter().fold(text, |text, (old, new)| {
            assert!(text.contains(old), "{old}");
            text.replace(old, new)
        });
        let settings = Settings::parse(&text, "test").unwrap();
        (settings.shape().degree, settings.release.order)
    }

    /// A change here changes the settings of ledgers that are running: they will refuse to start until `degree` and
    /// `order` are written out. Say so in the changelog.
    #[test]
    fn the_choice_stays_what_it_was() {
        assert_eq!(chosen(300, &[]), (32, 32));
        assert_eq!(chosen(20, &[]), (8, 8));
        assert_eq!(chosen(10_000, &[]), (96, 32));
        assert_eq!(chosen(300, &[("bandwidths = [10]", "bandwidths = [40]")]), (6, 8));
        assert_eq!(chosen(300, &[("epsilon = 1.0\ndegree", "epsilon = 0.1\ndegree")]), (12, 24));
    }
}
