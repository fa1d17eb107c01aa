//! `private_order`: the orders that a window chooses from.

use crate::file;
use crate::settings::PrivateOrder;
use crate::targets::several_candidates;
use crate::text::{Checked, Document, Spanned, values};
use bernstream_release::choice::Candidates;
use bernstream_synopsis::{Basis, Shape};

/// The largest order for which the evaluation was checked.
pub const LARGEST_ORDER: u32 = 200;

/// The orders to choose from.
pub fn read_private_order(
    document: &mut Document<'_>,
    table: Spanned<file::PrivateOrderTable>,
) -> Checked<Spanned<PrivateOrder>> {
    let place = table.span();
    let written = table.into_inner();
    let price = document.required(&place, "epsilon", written.epsilon, values::epsilon);
    let candidates = document.required(&place, "candidates", written.candidates, |candidates| {
        let candidates = several_candidates(candidates)?;
        let known = 1..=LARGEST_ORDER;
        if !candidates.iter().all(|order| known.contains(order))
            || !candidates.is_sorted_by(|a, b| a < b)
        {
            return Err(format!(
                "must be in ascending order, from 1 to {LARGEST_ORDER}"
            ));
        }
        Candidates::from_vec(candidates).ok_or_else(String::new)
    });
    Ok(Spanned::new(
        place,
        PrivateOrder {
            price: price?.into_inner(),
            candidates: candidates?.into_inner(),
        },
    ))
}

/// Checks that the function has a lattice, and one that is small enough for a private choice of order.
pub fn can_be_chosen(
    document: &mut Document<'_>,
    orders: &Spanned<PrivateOrder>,
    shape: &Shape,
) -> Checked<()> {
    let what = match &shape.basis {
        Basis::Affine => "a linear score is exact at order 1: there is nothing to choose",
        Basis::Kernel(_)
        | Basis::Cells(_)
        | Basis::Tables(_)
        | Basis::Cosine { .. }
        | Basis::Keys(_) => "this form of the function has no order: there is nothing to choose",
        Basis::Bernstein if !orders.get_ref().is_quick(shape) => {
            "the lattice is too large for a private choice: at order 8, degree 290 on one axis and 20 on two is the most"
        }
        Basis::Bernstein => return Ok(()),
    };
    Err(document.fault(
        orders.span(),
        what,
        "give `order`, or use a smaller degree and lower orders",
    ))
}
