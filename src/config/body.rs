//! `noise`, `degree`, `order`, `points`: what the file asks for, or leaves to be chosen.

use std::fmt;
use std::ops::Range;

use serde::Serialize;
use toml::Spanned;

use crate::config::budget::Payment;
use crate::config::choices::{self, PrivateOrder};
use crate::config::document::Document;
use crate::config::file::{self, Auto, Field};
use crate::config::forms;
use crate::config::sections::Found;
use crate::mechanism::NoiseDistribution;

/// The orders for which the evaluation was checked (privacy-math, section 2).
pub(super) const LARGEST_ORDER: u32 = 200;

/// A noise body: the law of the noise, and what it is put on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Body {
    /// Independent on every lattice value.
    Laplace,
    /// Uniform in a cube of random size, on the lattice values.
    Cube,
    /// Uniform in a ball of random size, on the whitened coordinates of kernel points.
    Ball,
    /// Gaussian, independent on every lattice value. Needs a price with a delta, or in rho.
    Gaussian,
    /// Gaussian, independent on the whitened coordinates of kernel points: a Gaussian process on the domain. As dear.
    GaussianProcess,
}

impl Body {
    /// Those that a price pays for.
    fn paid_with(payment: Option<&Payment>) -> Vec<Body> {
        let pure = [Body::Laplace, Body::Cube, Body::Ball];
        let gaussian = [Body::Gaussian, Body::GaussianProcess];
        match payment {
            Some(payment) if payment.pays_for_gaussian() => pure.into_iter().chain(gaussian).collect(),
            _ => pure.to_vec(),
        }
    }

    pub fn law(self) -> NoiseDistribution {
        match self {
            Body::Laplace => NoiseDistribution::DiscreteLaplace,
            Body::Cube => NoiseDistribution::DiscreteCube,
            Body::Ball => NoiseDistribution::Ball,
            Body::Gaussian | Body::GaussianProcess => NoiseDistribution::DiscreteGaussian,
        }
    }

    /// Whether it is put on kernel points, not on a lattice.
    pub fn is_on_points(self) -> bool {
        matches!(self, Body::Ball | Body::GaussianProcess)
    }
}

impl fmt::Display for Body {
    /// As in the file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Body::Laplace => "laplace",
            Body::Cube => "cube",
            Body::Ball => "ball",
            Body::Gaussian => "gaussian",
            Body::GaussianProcess => "gaussian_process",
        })
    }
}

/// What the exact values of a function are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coordinates {
    /// Values on a lattice of this degree.
    Lattice { degree: u32 },
    /// Whitened coordinates of at most so many kernel points.
    Points { most: u32 },
}

/// What is asked for; where there is nothing, it is to be chosen.
pub(super) struct Asked {
    /// Never empty.
    pub bodies: Vec<Body>,
    pub degree: Option<Spanned<Option<u32>>>,
    pub order: Option<Spanned<Option<u32>>>,
    pub private_order: Option<Spanned<PrivateOrder>>,
    pub points: Option<Spanned<Option<u32>>>,
    /// What decides how long a message is.
    pub place: Range<usize>,
}

/// The keys of `[release]` that say it.
pub(super) struct Keys {
    pub noise: Field<file::Noise>,
    pub degree: Field<Auto<u32>>,
    pub order: Field<Auto<u32>>,
    pub private_order: Field<file::PrivateOrder>,
    pub points: Field<Auto<u32>>,
}

impl Asked {
    pub fn read(
        document: &mut Document<'_>,
        place: &Range<usize>,
        keys: Keys,
        payment: Option<&Payment>,
    ) -> Found<Asked> {
        let noise = keys.noise.as_ref().map_or(place.clone(), Spanned::span);
        let bodies = match keys.noise.map(Spanned::into_inner) {
            None | Some(file::Noise::Laplace) => vec![Body::Laplace],
            Some(file::Noise::Cube) => vec![Body::Cube],
            Some(file::Noise::Ball) => vec![Body::Ball],
            Some(file::Noise::Gaussian) => vec![Body::Gaussian],
            Some(file::Noise::GaussianProcess) => vec![Body::GaussianProcess],
            Some(file::Noise::Auto) => Body::paid_with(payment),
        };
        if let [body] = bodies[..] {
            pays_for(document, noise.clone(), body, payment)?;
        }
        match &bodies[..] {
            [body] if body.is_on_points() => {
                let why = "there is no lattice: this noise is put on kernel points";
                unwanted(document, keys.degree, why)?;
                unwanted(document, keys.order, why)?;
                unwanted(document, keys.private_order, why)?;
                let points = document.required(place, "points", keys.points, auto)?;
                let place = points.span();
                Ok(Asked { bodies, degree: None, order: None, private_order: None, points: Some(points), place })
            }
            [_] => {
                unwanted(document, keys.points, "this noise is put on a lattice")?;
                let degree = document.required(place, "degree", keys.degree, auto);
                let private_order = match (&keys.order, keys.private_order) {
                    (Some(_), Some(_)) => Err(document.not_one_of(place.clone(), &["order", "private_order"], true)),
                    (_, private) => private.map(|table| choices::orders(document, table)).transpose(),
                };
                let order = match &private_order {
                    // The first of the candidates stands for all.
                    Ok(Some(private)) => Ok(Spanned::new(private.span(), Some(*private.get_ref().candidates.first()))),
                    Err(reported) => Err(*reported),
                    Ok(None) => document.required(place, "order", keys.order, |order| match order {
                        Auto::Fixed(order @ 1..=LARGEST_ORDER) => Ok(Some(order)),
                        Auto::Fixed(_) => Err(format!("must be from 1 to {LARGEST_ORDER}")),
                        Auto::Auto(_) => Ok(None),
                    }),
                };
                let (degree, order, private_order) = (degree?, order?, private_order?);
                let place = degree.span();
                Ok(Asked { bodies, degree: Some(degree), order: Some(order), private_order, points: None, place })
            }
            _ => {
                let why = "is chosen together with the noise";
                unwanted(document, keys.degree, why)?;
                unwanted(document, keys.order, why)?;
                unwanted(document, keys.private_order, why)?;
                unwanted(document, keys.points, why)?;
                Ok(Asked { bodies, degree: None, order: None, private_order: None, points: None, place: noise })
            }
        }
    }

    /// The same for moments, which have no lattice and no kernel. Cube noise is the smaller one for them, always: a record can
    /// move every moment by nearly as much as any one.
    pub fn of_moments(
        document: &mut Document<'_>,
        place: &Range<usize>,
        keys: Keys,
        payment: Option<&Payment>,
    ) -> Found<Asked> {
        let why = "moments have no lattice and no kernel points, only [release.moments] says how many there are";
        unwanted(document, keys.degree, why)?;
        unwanted(document, keys.order, why)?;
        unwanted(document, keys.private_order, why)?;
        unwanted(document, keys.points, why)?;
        let body = match keys.noise.map(|noise| (noise.span(), noise.into_inner())) {
            None | Some((_, file::Noise::Laplace)) => Body::Laplace,
            Some((_, file::Noise::Cube)) => Body::Cube,
            Some((noise, file::Noise::Gaussian)) => {
                pays_for(document, noise, Body::Gaussian, payment)?;
                Body::Gaussian
            }
            // Of those that are paid for the smallest, whatever the weights of a question.
            Some((_, file::Noise::Auto)) if payment.is_some_and(|payment| payment.pays_for_gaussian()) => {
                Body::Gaussian
            }
            Some((_, file::Noise::Auto)) => Body::Cube,
            Some((noise, file::Noise::Ball | file::Noise::GaussianProcess)) => {
                let what = "is put on kernel points, and moments have none";
                return Err(document.fault(noise, what, "take noise = \"cube\", the smallest for moments"));
            }
        };
        let place = place.clone();
        Ok(Asked { bodies: vec![body], degree: None, order: None, private_order: None, points: None, place })
    }

    /// Whether something is left to be chosen.
    pub fn is_open(&self) -> bool {
        let is_auto = |written: &Option<Spanned<Option<u32>>>| {
            written.as_ref().is_some_and(|written| written.get_ref().is_none())
        };
        self.bodies.len() > 1 || is_auto(&self.degree) || is_auto(&self.order) || is_auto(&self.points)
    }

    /// A number that is given.
    pub fn fixed(written: &Option<Spanned<Option<u32>>>) -> Option<u32> {
        written.as_ref().and_then(|written| *written.get_ref())
    }
}

/// A price that buys this noise.
fn pays_for(document: &mut Document<'_>, noise: Range<usize>, body: Body, payment: Option<&Payment>) -> Found<()> {
    if body.law() != NoiseDistribution::DiscreteGaussian || payment.is_none_or(|payment| payment.pays_for_gaussian()) {
        return Ok(());
    }
    let hint =
        "give [privacy] and [release] a `delta`, or price both in `rho`; or take \"ball\", \"cube\" or \"laplace\"";
    Err(document.fault(noise, "Gaussian noise gives no pure differential privacy", hint))
}

fn auto(written: Auto<u32>) -> Result<Option<u32>, String> {
    match written {
        Auto::Fixed(count) => forms::count(count).map(Some),
        Auto::Auto(_) => Ok(None),
    }
}

fn unwanted<T>(document: &mut Document<'_>, field: Field<T>, why: &str) -> Found<()> {
    match field {
        None => Ok(()),
        Some(field) => Err(document.fault(field.span(), why, "leave it out")),
    }
}
