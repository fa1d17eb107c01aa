//! `[release.density]`: how many records there are, smoothed by a kernel.
// Forms of values have lists and tables in brackets.
#![allow(rustdoc::broken_intra_doc_links)]

use std::ops::Range;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::settings::Coordinates;
use crate::targets::context::{ReadTarget, TargetContext, built_target};
use crate::targets::lengths::lengths_per_axis;
use crate::targets::private_bandwidths;
use crate::targets::wording::intensity_function;
use crate::text::{Checked, Document, Field, Spanned, each};
use bernstream_functions::cells::CellDensity;
use bernstream_functions::covariance::CovarianceDensity;
use bernstream_functions::density::LatticeDensity;
use bernstream_functions::whitened::KernelDensity;
use bernstream_release::Target;
use bernstream_synopsis::description::Smoothing;

/// a table [release.density]
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// a list such as [10], a number above 0 for each axis, in the units of its column
    #[schemars(transform = each(json!({
        "description": "a number above 0 in the units of the column, such as 10",
        "exclusiveMinimum": 0,
    })))]
    pub bandwidths: Field<Vec<Spanned<f64>>>,
    /// a matrix such as [[100, 3], [3, 1]], in the units of the columns
    #[schemars(transform = each(json!({
        "description": "a row of numbers such as [100, 3]",
        "items": { "description": "a number such as 100" },
    })))]
    pub covariance: Field<Vec<Spanned<Vec<Spanned<f64>>>>>,
    /// a table such as { epsilon = 0.1, candidates = [[5], [10], [20]] }, instead of `bandwidths`
    pub private_bandwidths: Field<private_bandwidths::PrivateBandwidthsTable>,
}

pub fn read(
    document: &mut Document<'_>,
    context: &TargetContext<'_>,
    place: &Range<usize>,
    written: Table,
) -> Checked<ReadTarget> {
    if let Some(label) = context.label {
        return Err(document.fault(label.span(), "a density has no label", "remove it"));
    }
    let has_bandwidths = written.bandwidths.is_some();
    if let Some(private) = written.private_bandwidths {
        if has_bandwidths {
            let keys = ["bandwidths", "private_bandwidths"];
            return Err(document.not_one_of(place.clone(), &keys, true));
        }
        if written.covariance.is_some() {
            let keys = ["covariance", "private_bandwidths"];
            return Err(document.not_one_of(place.clone(), &keys, true));
        }
        let place = private.span();
        let choice = private_bandwidths::read(document, context, private)?;
        // The first of the candidates stands for all.
        let function = choice.candidates.first().clone();
        return Ok(ReadTarget {
            function,
            private_bandwidths: Some(Spanned::new(place, choice)),
        });
    }
    let Some(covariance) = written.covariance else {
        let bandwidths =
            lengths_per_axis(document, context, place, "bandwidths", written.bandwidths)?;
        let target = on_bandwidths(document, context, &bandwidths)?;
        let kernel = Smoothing::Bandwidths(bandwidths.into_inner());
        return Ok(intensity_function(context, target, kernel).into());
    };
    if has_bandwidths {
        let keys = ["bandwidths", "covariance"];
        return Err(document.not_one_of(place.clone(), &keys, true));
    }
    let place = covariance.span();
    let mut rows: Vec<Vec<f64>> = Vec::new();
    for row in covariance.into_inner() {
        let row = row.into_inner();
        rows.push(row.into_iter().map(Spanned::into_inner).collect());
    }
    let target = on_covariance(document, context, &place, &rows)?;
    Ok(intensity_function(context, target, Smoothing::Covariance(rows)).into())
}

fn on_bandwidths(
    document: &mut Document<'_>,
    context: &TargetContext<'_>,
    bandwidths: &Spanned<Vec<f64>>,
) -> Checked<Arc<dyn Target>> {
    let place = bandwidths.span();
    let in_cube = context.parts_of_axes(bandwidths.get_ref());
    if let Some(placement) = context.on.placement() {
        let target = KernelDensity::diagonal(&in_cube, placement);
        return built_target(document, &place, target);
    }
    if let Coordinates::Cells(grid) = context.on {
        let target = CellDensity::diagonal(&in_cube, grid.spline, grid.steps());
        return built_target(document, &place, target);
    }
    let degree = context.lattice_degree(document, &place)?;
    built_target(document, &place, LatticeDensity::new(&in_cube, degree))
}

fn on_covariance(
    document: &mut Document<'_>,
    context: &TargetContext<'_>,
    place: &Range<usize>,
    rows: &[Vec<f64>],
) -> Checked<Arc<dyn Target>> {
    let size = context.axes.len();
    if rows.len() != size || rows.iter().any(|row| row.len() != size) {
        let what = format!("must be a matrix with {size} rows and columns");
        return Err(document.fault(place.clone(), what, ""));
    }
    let in_cube = context.covariance_parts(rows);
    if let Some(placement) = context.on.placement() {
        let target = KernelDensity::covariance(&in_cube, placement);
        return built_target(document, place, target);
    }
    if let Coordinates::Cells(grid) = context.on {
        let target = CellDensity::covariance(&in_cube, grid.spline, grid.steps());
        return built_target(document, place, target);
    }
    let degree = context.lattice_degree(document, place)?;
    built_target(document, place, CovarianceDensity::new(&in_cube, degree))
}
