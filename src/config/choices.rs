//! What a window chooses privately: written -> used, and its mechanisms.

use std::sync::Arc;

use toml::Spanned;

use crate::config::body::{Coordinates, LARGEST_ORDER};
use crate::config::document::Document;
use crate::config::plan::Error;
use crate::config::release::Ground;
use crate::config::sections::Found;
use crate::config::{Function, file, forms, functions};
use crate::mechanism::calibrate::Epsilon;
use crate::mechanism::choice::{Bandwidth, Candidates, Change, Order, Remainder};
use crate::mechanism::{self, Mechanism};
use crate::synopsis::bernstein::Operator;
use crate::synopsis::description::Smoothing;
use crate::synopsis::predict;
use crate::targets::density::Density;
use crate::targets::marginals::Marginals;
use crate::targets::{Adjacency, Basis, Shape};
use crate::window::accumulator::AccumulatorSpec;

/// More candidates say less: the noise decides.
const MOST_CANDIDATES: usize = 16;
/// Multiplications of all tables of a choice of order: what a start has the patience for.
const WORK: usize = 300_000_000;

/// Who is protected, and how many records count.
#[derive(Clone, Copy, Debug)]
pub struct Protected {
    pub adjacency: Adjacency,
    pub contributions: u32,
}

/// `private_bandwidths`: every candidate is a function of its own, all on one histogram.
#[derive(Clone, Debug)]
pub struct PrivateBandwidths {
    /// The price of one choice.
    pub price: Epsilon,
    pub candidates: Candidates<Function>,
    /// In the unit cube, one list a candidate.
    in_cube: Vec<Vec<f64>>,
}

/// `private_order`: the candidates ascend.
#[derive(Clone, Debug)]
pub struct PrivateOrder {
    /// The price of one choice.
    pub price: Epsilon,
    pub candidates: Candidates<u32>,
}

impl PrivateBandwidths {
    pub fn mechanism(&self, protected: Protected) -> Result<Bandwidth, Error> {
        let AccumulatorSpec::Histogram(nodes) = self.candidates.first().target.keep() else {
            return Err(Error::Mechanism(mechanism::Error::NoSensitivity));
        };
        let marginals = Marginals::new(nodes);
        let sensitivity = marginals.sensitivity(protected.adjacency, protected.contributions)?;
        Ok(Bandwidth::new(marginals, self.in_cube.clone(), sensitivity, self.price)?)
    }
}

impl PrivateOrder {
    /// For the values of `function` with the noise of `noise`.
    pub fn mechanism(&self, function: &Function, noise: &Mechanism, protected: Protected) -> Result<Order, Error> {
        let target = &function.target;
        let Shape { dimensions, degree, .. } = target.shape();
        let orders: Vec<u32> = self.candidates.iter().copied().collect();
        #[expect(clippy::cast_precision_loss, reason = "a prediction; what is claimed is read off whole numbers")]
        let scale = noise.scale().units() as f64;
        let noises = predict::noise(&target.shape(), noise.law(), &orders);
        let tables = Operator::new(dimensions, degree).remainders(&orders);
        let remainders = noises.iter().zip(&tables).map(|(noise, rows)| Remainder::new(noise * scale, rows)).collect();
        let Protected { adjacency, contributions } = protected;
        let change = Change {
            values: target.shape().values(),
            sup: target.sup_sensitivity(adjacency, 1)?,
            effects: target.effects(),
            adjacency,
            contributions,
        };
        Ok(Order::new(remainders, &change, self.price)?)
    }

    /// Whether the tables for this lattice are soon made: at most degree 290 on one axis and 20 on two at order 8.
    pub fn is_quick(&self, shape: &Shape) -> bool {
        let highest = self.candidates.iter().max().map_or(1, |order| *order as usize);
        let step = shape.values().saturating_pow(2).saturating_mul(shape.degree as usize + 1) * shape.dimensions;
        step.saturating_mul(highest) <= WORK
    }
}

/// The functions of a density with private bandwidths.
pub(super) fn bandwidths(
    document: &mut Document<'_>,
    ground: &Ground<'_>,
    table: Spanned<file::PrivateBandwidths>,
) -> Found<PrivateBandwidths> {
    let (place, written) = (table.span(), table.into_inner());
    let price = document.required(&place, "epsilon", written.epsilon, forms::epsilon);
    let candidates = document.required(&place, "candidates", written.candidates, several);
    let candidates = candidates?;
    let list_place = candidates.span();
    let lengths: Vec<_> =
        candidates.into_inner().into_iter().map(|list| functions::lengths(document, ground, list)).collect();
    let lengths: Vec<Vec<f64>> = lengths.into_iter().map(|list| Ok(list?.into_inner())).collect::<Found<_>>()?;
    let in_cube: Vec<Vec<f64>> =
        lengths.iter().map(|list| list.iter().zip(ground.widths()).map(|(b, width)| b / width).collect()).collect();
    let Coordinates::Lattice { degree } = ground.on else {
        let what = "choose among several kernels, and kernel points come from one";
        return Err(document.fault(place, what, "give `bandwidths`, or take noise = \"laplace\" or \"cube\""));
    };
    let family =
        Density::family(&in_cube, degree).map_err(|error| document.fault(list_place.clone(), error.to_string(), ""))?;
    let function = |(density, lengths): (Density, Vec<f64>)| {
        functions::intensity(ground, Arc::new(density), Smoothing::Bandwidths(lengths))
    };
    let functions: Vec<Function> = family.into_iter().zip(lengths).map(function).collect();
    let candidates = Candidates::from_vec(functions).ok_or_else(|| document.missing(place.clone(), "candidates"))?;
    Ok(PrivateBandwidths { price: price?.into_inner(), candidates, in_cube })
}

/// The orders to choose from.
pub(super) fn orders(document: &mut Document<'_>, table: Spanned<file::PrivateOrder>) -> Found<Spanned<PrivateOrder>> {
    let (place, written) = (table.span(), table.into_inner());
    let price = document.required(&place, "epsilon", written.epsilon, forms::epsilon);
    let candidates = document.required(&place, "candidates", written.candidates, |candidates| {
        let candidates = several(candidates)?;
        let is_known = |order: &u32| (1..=LARGEST_ORDER).contains(order);
        if !candidates.iter().all(is_known) || !candidates.is_sorted_by(|a, b| a < b) {
            return Err(format!("must ascend, from 1 to {}", LARGEST_ORDER));
        }
        Candidates::from_vec(candidates).ok_or_else(String::new)
    });
    Ok(Spanned::new(place, PrivateOrder { price: price?.into_inner(), candidates: candidates?.into_inner() }))
}

/// The order of what has no lattice, or one too large, cannot be chosen.
pub(super) fn can_be_chosen(document: &mut Document<'_>, orders: &Spanned<PrivateOrder>, shape: &Shape) -> Found<()> {
    let what = match &shape.basis {
        Basis::Affine => "a linear score is exact at order 1: there is nothing to choose",
        Basis::Kernel(_) | Basis::Cosine { .. } => "this form of the function has no order: there is nothing to choose",
        Basis::Bernstein if !orders.get_ref().is_quick(shape) => {
            "the lattice is too large for a private choice: at order 8, degree 290 on one axis and 20 on two is the most"
        }
        Basis::Bernstein => return Ok(()),
    };
    Err(document.fault(orders.span(), what, "give `order`, or take a smaller degree and lower orders"))
}

fn several<T>(candidates: Vec<T>) -> Result<Vec<T>, String> {
    match candidates.len() {
        2..=MOST_CANDIDATES => Ok(candidates),
        count => Err(format!("must have 2 to {MOST_CANDIDATES} candidates, has {count}")),
    }
}
