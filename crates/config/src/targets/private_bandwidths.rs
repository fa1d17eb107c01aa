//! `private_bandwidths` of `[release.density]`: every candidate is a function of its own.
// Forms of values have lists and tables in brackets.
#![allow(rustdoc::broken_intra_doc_links)]

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::settings::{Coordinates, PrivateBandwidths};
use crate::targets::context::TargetContext;
use crate::targets::lengths;
use crate::targets::wording::intensity_function;
use crate::text::{Checked, Document, Field, Spanned, each, values};
use bernstream_functions::density::LatticeDensity;
use bernstream_release::choice::Candidates;
use bernstream_synopsis::description::Smoothing;

/// With more candidates the noise dominates the choice.
const MOST_CANDIDATES: usize = 16;

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PrivateBandwidthsTable {
    /// a number above 0 with at most 12 decimals, such as 0.1: the price of a choice
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub epsilon: Field<f64>,
    /// a list of 2 to 16 bandwidths such as [[5], [10], [20]]
    #[schemars(transform = each(json!({
        "description": "a list such as [10], a number above 0 for each axis",
        "items": { "description": "a number above 0 in the units of the column, such as 10", "exclusiveMinimum": 0 },
    })))]
    pub candidates: Field<Vec<Spanned<Vec<Spanned<f64>>>>>,
}

/// The functions of a density with private bandwidths.
pub fn read(
    document: &mut Document<'_>,
    context: &TargetContext<'_>,
    table: Spanned<PrivateBandwidthsTable>,
) -> Checked<PrivateBandwidths> {
    let place = table.span();
    let written = table.into_inner();
    let price = document.required(&place, "epsilon", written.epsilon, values::epsilon);
    let candidates =
        document.required(&place, "candidates", written.candidates, several_candidates);
    let candidates = candidates?;
    let list_place = candidates.span();
    // Every list before the first `?`, so that the faults of all are recorded.
    let mut lists = Vec::new();
    for list in candidates.into_inner() {
        lists.push(lengths::checked_lengths(document, context, list));
    }
    let mut lengths: Vec<Vec<f64>> = Vec::new();
    for list in lists {
        lengths.push(list?.into_inner());
    }
    let in_cube: Vec<Vec<f64>> = lengths
        .iter()
        .map(|list| context.parts_of_axes(list))
        .collect();
    let degree = match context.on {
        Coordinates::Lattice { degree } => degree,
        Coordinates::Points { .. } | Coordinates::Tensor(_) => {
            let what = "cannot be combined with kernel points, which come from a single kernel";
            return Err(document.fault(
                place,
                what,
                "give `bandwidths`, or use noise = \"laplace\" or \"cube\"",
            ));
        }
        Coordinates::Cells(_) => {
            let what = "pays for what counts of cells give for nothing: a reader can smooth them with any larger bandwidth";
            return Err(document.fault(
                place,
                what,
                "give the smallest of the bandwidths as `bandwidths`",
            ));
        }
    };
    let family = LatticeDensity::family_on_one_grid(&in_cube, degree)
        .map_err(|error| document.fault(list_place.clone(), error.to_string(), ""))?;
    let mut functions = Vec::new();
    for (density, lengths) in family.into_iter().zip(lengths) {
        let kernel = Smoothing::Bandwidths(lengths);
        functions.push(intensity_function(context, Arc::new(density), kernel));
    }
    let candidates = Candidates::from_vec(functions)
        .ok_or_else(|| document.missing(place.clone(), "candidates"))?;
    Ok(PrivateBandwidths {
        price: price?.into_inner(),
        candidates,
        in_cube,
    })
}

/// Checks that the number of candidates suits a private choice.
pub fn several_candidates<T>(candidates: Vec<T>) -> Result<Vec<T>, String> {
    match candidates.len() {
        2..=MOST_CANDIDATES => Ok(candidates),
        count => Err(format!(
            "must have 2 to {MOST_CANDIDATES} candidates, has {count}"
        )),
    }
}
