//! `[release.density]`: how many records there are, smoothed by a kernel.
// Forms of values have lists and tables in brackets.
#![allow(rustdoc::broken_intra_doc_links)]

use std::ops::Range;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::settings::Coordinates;
use crate::targets::context::{ReadTarget, TargetContext, built};
use crate::targets::lengths::per_axis;
use crate::targets::private_bandwidths;
use crate::targets::wording::intensity;
use crate::text::{Checked, Document, Field, Spanned, each};
use bernstream_functions::cells::CellDensity;
use bernstream_functions::covariance::CovarianceDensity;
use bernstream_functions::density::Density;
use bernstream_functions::whitened::KernelDensity;
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
    pub private_bandwidths: Field<private_bandwidths::Table>,
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
    if let Some(private) = written.private_bandwidths {
        return match (written.bandwidths, written.covariance) {
            (None, None) => {
                let place = private.span();
                let choice = private_bandwidths::read(document, context, private)?;
                // The first of the candidates stands for all.
                let function = choice.candidates.first().clone();
                Ok(ReadTarget {
                    function,
                    private_bandwidths: Some(Spanned::new(place, choice)),
                })
            }
            (Some(_), _) => {
                Err(document.not_one_of(place.clone(), &["bandwidths", "private_bandwidths"], true))
            }
            (_, Some(_)) => {
                Err(document.not_one_of(place.clone(), &["covariance", "private_bandwidths"], true))
            }
        };
    }
    let (target, kernel) = match (written.bandwidths, written.covariance) {
        (bandwidths, None) => {
            let bandwidths = per_axis(document, context, place, "bandwidths", bandwidths)?;
            let in_cube = context.parts(bandwidths.get_ref());
            let place = bandwidths.span();
            let target = match context.on.placement() {
                Some(placement) => built(
                    document,
                    &place,
                    KernelDensity::diagonal(&in_cube, placement),
                )?,
                None => match context.on {
                    Coordinates::Cells(grid) => built(
                        document,
                        &place,
                        CellDensity::diagonal(&in_cube, grid.spline, grid.steps()),
                    )?,
                    _ => {
                        let degree = context.degree(document, &place)?;
                        built(document, &place, Density::new(&in_cube, degree))?
                    }
                },
            };
            (target, Smoothing::Bandwidths(bandwidths.into_inner()))
        }
        (None, Some(covariance)) => {
            let place = covariance.span();
            let rows = covariance
                .into_inner()
                .into_iter()
                .map(|row| row.into_inner());
            let rows: Vec<Vec<f64>> = rows
                .map(|row| row.into_iter().map(Spanned::into_inner).collect())
                .collect();
            let in_cube = context.covariance_parts(&rows);
            let size = context.axes.len();
            if rows.len() != size || rows.iter().any(|row| row.len() != size) {
                return Err(document.fault(
                    place,
                    format!("must be a matrix with {size} rows and columns"),
                    "",
                ));
            }
            let target = match context.on.placement() {
                Some(placement) => built(
                    document,
                    &place,
                    KernelDensity::covariance(&in_cube, placement),
                )?,
                None => match context.on {
                    Coordinates::Cells(grid) => built(
                        document,
                        &place,
                        CellDensity::covariance(&in_cube, grid.spline, grid.steps()),
                    )?,
                    _ => {
                        let degree = context.degree(document, &place)?;
                        built(document, &place, CovarianceDensity::new(&in_cube, degree))?
                    }
                },
            };
            (target, Smoothing::Covariance(rows))
        }
        (Some(_), Some(_)) => {
            return Err(document.not_one_of(place.clone(), &["bandwidths", "covariance"], true));
        }
    };
    Ok(intensity(context, target, kernel).into())
}
