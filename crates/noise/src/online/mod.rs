//! The Gaussian process, one point at a time: one price for as many points as are asked (`[HRW13]`,
//! section 5; `docs/proofs/online.md`).
//!
//! # How
//!
//! `K = L L'` is the kernel matrix of the points asked so far. For a new point `x` the public row `R` of [`GaussianProcess`] stands for
//! that of `L^-1`, in whole numbers of `2^-24`. The exact values at the points, whole numbers of grid units, make the
//! coordinate `c = R v`, an exact integer; discrete Gaussian noise `z` is added, and the answer is
//!
//! ```text
//! m(x) + l (c + z)
//! ```
//!
//! `m(x)` the conditional mean at `x` given the earlier answers and `l` the pivot: so answers are exact values and the path of a
//! Gaussian process with the covariance `sigma^2 K`. (The paper draws around `m(x)` itself, without `c`: after the first point
//! that is no longer about the data. Its recursion is that of the noise.)
//!
//! # Guarantee
//!
//! The caller declares: for neighbours, the exact values at whatever points are those of a function of norm at most `Delta` in
//! the space of the kernel, up to `e` at each point. For all coordinates together, whatever the points,
//!
//! ```text
//! ||c - c'||_2 <= q Delta + s e <= 1.05 Delta
//! ```
//!
//! `q` the largest that the rows make of a function of norm 1 and `s` of an error of 1 at each point: both are bounded from the
//! public points alone, with all that rounding and floats did. The noise is made for `1.05 Delta`. A point that would pass
//! it, or that is so near to others that its pivot's square is below `10^-8`, is answered by `m(x)`: no exact value is
//! looked at and nothing is paid, and [`OnlineAnswer::power`] says so. That decision sees points alone.
//!
//! Points may be chosen after seeing answers. Let `d_i` be the change of coordinate `i` between two neighbours; after the
//! answers before it, it is a number, and `sum_i d_i^2 <= D^2 = (1.05 Delta)^2` for every course of answers. Then
//!
//! * for `rho`: with `P`, `P'` the laws of the answers, `prod_i (p_i / p_i')^a exp(-a (a - 1) d_i^2 / 2 sigma^2)` is a
//!   supermartingale under `P'`, because each noisy integer is that close (`[CKS20]` theorem 14). So the divergence of order `a`
//!   is at most `a D^2 / 2 sigma^2`, as for one vector that changes by `D`;
//! * for (epsilon, delta): with the continuous law, coordinate `i` is the increment of a Brownian motion with drift 0 or 1 over
//!   a time of `d_i^2 / sigma^2`, scaled by `sigma^2 / d_i`; so all answers are computed from its path up to the time
//!   `D^2 / sigma^2`, whose end is sufficient: one Gaussian that moves by `D` (`[ST22]`). What the
//!   discrete law adds is counted for [`MOST`] coordinates.
//!
//! Sums wrap at `2^128`: that is post-processing of the sum of integers and its noise. The answer is, too.

mod dense;
mod markov;
mod process;

use std::fmt;

use self::dense::DenseProcess;
use self::markov::MarkovProcess;
use self::process::{GaussianProcess, LEAST, ONE, PointOffer};
use super::calibrated::Mechanism;
use super::error::NoiseError;
use super::noise::{DiscreteGaussian, Generator};
use crate::Exact;
use bernstream_synopsis::law::NoiseDistribution;
use bernstream_synopsis::price::Price;
use bernstream_synopsis::{PointKernel, Sensitivity, machine};

/// Most points with noise of their own. Those of a kernel without a shorter way are at most [`dense::MOST`].
pub const MOST: usize = 1 << 20;

/// The part of `Delta` that floats, rounding and errors of the values may take: one in so many.
const SLACK: u64 = 20;

/// A function of secret records that answers at one public point after the other. One price, paid at the start: that of
/// [`OnlineMechanism::new`], however many points follow. It is for one function of one set of records: another one costs a price of
/// its own. Grid units are the caller's; with `Delta` at `2^24` of them and rounded values, 50,000 points scattered on a line
/// have noise of their own under the Ornstein-Uhlenbeck kernel (`tests/properties/online.rs`).
///
/// # Example
///
/// How many records lie near, in kernels of width 0.2: `f(y) = sum_i exp(-|y - d_i| / 0.2)`. One record more is a function of
/// norm 1; rounding moves a difference by 1 at most.
///
/// ```
/// use bernstream_noise::noise::Generator;
/// use bernstream_noise::online::OnlineMechanism;
/// use bernstream_synopsis::price::Price;
/// use bernstream_noise::Exact;
/// use bernstream_synopsis::{PointKernel, Sensitivity};
/// use bernstream_synopsis::machine::CubeKernel;
///
/// let records = [0.1, 0.4, 0.45, 0.5, 0.9];
/// let grid = f64::from(1 << 24);
/// let near = |y: f64| records.iter().map(|d: &f64| (-(y - d).abs() / 0.2).exp()).sum::<f64>();
/// let exact = |y: f64| Exact::new(vec![(near(y) * grid).round() as i128]);
///
/// let kernel = PointKernel::Machine(CubeKernel::Laplacian { bandwidth: 0.2 });
/// let price = Price::Concentrated("0.5".parse().unwrap());
/// let mut online = OnlineMechanism::new(kernel, 1, Sensitivity(1 << 24), 1.0, price)?;
/// let mut generator = Generator::from_entropy()?;
/// let first = online.answer_point(&[0.5], &exact(0.5), &mut generator)?;
/// let next = if first.value > 3.0 * grid { 0.4 } else { 0.9 };
/// let second = online.answer_point(&[next], &exact(next), &mut generator)?;
/// assert!(second.power.is_none(), "noise of its own");
/// let again = online.answer_point(&[0.5], &exact(0.5), &mut generator)?;
/// assert_eq!((again.value, again.power), (first.value, Some(0.0)));
/// # Ok::<(), bernstream_noise::NoiseError>(())
/// ```
pub struct OnlineMechanism {
    process: ProcessKind,
    axes: usize,
    responder: Responder,
}

enum ProcessKind {
    Dense(DenseProcess),
    Markov(MarkovProcess),
}

/// Part that all processes have in common. Exact values are secret: nothing shows them.
struct Responder {
    /// `Delta` and `e`, in grid units.
    change: f64,
    error: f64,
    noise: Mechanism,
    exact: Vec<i128>,
}

/// An answer at a point, in grid units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OnlineAnswer {
    pub value: f64,
    /// The standard deviation of the noise in it.
    pub deviation: f64,
    /// `None` where noise was drawn. Else the value is what the earlier answers predict, for free; it misses the function by
    /// at most this times the function's norm, beside the noise.
    pub power: Option<f64>,
}

impl OnlineMechanism {
    /// `kernel` on the unit cube of `axes` axes, `K(x, x) <= 1`; `change` is `Delta` and `error` is `e`: 1 where values of a
    /// function that changes by at most `Delta` are rounded to whole numbers. Takes `log` of the number of points for each
    /// with [`machine::CubeKernel::Laplacian`] on one axis (the Ornstein-Uhlenbeck process), its square with others.
    ///
    /// # Errors
    ///
    /// If the kernel or the price is invalid, or `error` is too large for `change`.
    pub fn new(
        kernel: PointKernel,
        axes: usize,
        change: Sensitivity,
        error: f64,
        price: Price,
    ) -> Result<Self, NoiseError> {
        let kernel = kernel.check_for_cube(axes)?;
        let delta = change.0 as f64;
        if change.0 > 0 && !(error >= 0.0 && delta + error < allowed_change(delta)) {
            return Err(NoiseError::NoSlack {
                change: change.0,
                error,
            });
        }
        let with_slack =
            u128::from(change.0) * (u128::from(SLACK) + 1) * (1 << 24) / u128::from(SLACK);
        // A cast that is cut would be a smaller change; more than 2^56 is refused all the same.
        let euclidean = Sensitivity(u64::try_from(with_slack + 1).unwrap_or(u64::MAX));
        let euclidean = if change.0 == 0 { change } else { euclidean };
        let noise =
            Mechanism::calibrated(NoiseDistribution::DiscreteGaussian, euclidean, MOST, price)?;
        let process = match kernel {
            PointKernel::Machine(machine::CubeKernel::Laplacian { bandwidth }) if axes == 1 => {
                ProcessKind::Markov(MarkovProcess::new(bandwidth))
            }
            kernel => ProcessKind::Dense(DenseProcess::new(kernel)),
        };
        Ok(OnlineMechanism {
            process,
            axes,
            responder: Responder {
                change: delta,
                error,
                noise,
                exact: Vec::new(),
            },
        })
    }

    /// `sigma`: the standard deviation of the noise where `K(x, x) = 1`, in grid units.
    pub fn deviation(&self) -> f64 {
        self.responder.deviation()
    }

    /// Number of points that have noise of their own.
    pub fn drawn(&self) -> usize {
        self.responder.exact.len()
    }

    /// The answer at a public point of the unit cube; `exact` has one value, that of the function there. It is not looked at
    /// where the answer is free.
    ///
    /// # Errors
    ///
    /// If the point is not in the unit cube, or `exact` does not have one value.
    pub fn answer_point(
        &mut self,
        point: &[f64],
        exact: &Exact,
        generator: &mut Generator,
    ) -> Result<OnlineAnswer, NoiseError> {
        if point.len() != self.axes || !point.iter().all(|x| (0.0..=1.0).contains(x)) {
            return Err(NoiseError::Point { axes: self.axes });
        }
        let [exact] = exact.reveal() else {
            return Err(NoiseError::Point { axes: self.axes });
        };
        Ok(match &mut self.process {
            ProcessKind::Dense(process) => self
                .responder
                .answer_offer(process, point, *exact, generator),
            ProcessKind::Markov(process) => self
                .responder
                .answer_offer(process, point, *exact, generator),
        })
    }
}

impl Responder {
    fn deviation(&self) -> f64 {
        self.noise.scale().units() as f64 / ONE
    }

    /// Public: no exact value has a say.
    fn can_afford<Place>(&self, offer: &PointOffer<Place>) -> bool {
        let reached = offer.reach.stretch * self.change + offer.reach.spread * self.error;
        self.exact.len() < MOST && offer.rest >= LEAST && reached <= allowed_change(self.change)
    }

    fn answer_offer<P: GaussianProcess>(
        &mut self,
        process: &mut P,
        point: &[f64],
        exact: i128,
        generator: &mut Generator,
    ) -> OnlineAnswer {
        let offer = process.offer(point);
        if !self.can_afford(&offer) {
            let explained = (offer.whole - offer.rest).max(0.0).sqrt();
            let power = Some(offer.rest.max(0.0).sqrt());
            return OnlineAnswer {
                value: offer.mean,
                deviation: self.deviation() * explained,
                power,
            };
        }
        self.exact.push(exact);
        let mut noise = [0];
        DiscreteGaussian::new(self.noise.scale()).fill(generator, &mut noise);
        let mut noisy = noise[0];
        for entry in &offer.row {
            let exact = self.exact.get(entry.number).copied().unwrap_or_default();
            noisy = noisy.wrapping_add(exact.wrapping_mul(i128::from(entry.weight)));
        }
        let deviation = self.deviation() * offer.whole.sqrt();
        OnlineAnswer {
            value: process.take(offer, noisy as f64 / ONE),
            deviation,
            power: None,
        }
    }
}

/// Bound of the changes of all coordinates together.
fn allowed_change(change: f64) -> f64 {
    (1.0 + 1.0 / SLACK as f64) * change * (1.0 - 1e-9)
}

impl fmt::Debug for OnlineMechanism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Online({} points drawn)", self.drawn())
    }
}
