//! `[release]`: the function that is published, its domain, its lattice and its price.

use std::ops::Range;

use crate::file;
use crate::read::cells::GivenGrid;
use crate::read::domain::{domain, label};
use crate::read::draft::ReleaseDraft;
use crate::read::noise::{Keys, NoiseRequest};
use crate::read::pricing::Pricing;
use crate::read::{cells, names, private_order, targets};
use crate::recorded::Recorded;
use crate::select;
use crate::select::{Search, Terms};
use crate::settings::{Calibration, Coordinates, Function, NoiseKind, Selection};
use crate::targets::cells as cells_target;
use crate::targets::{FrequencyPlan, ReadTarget, TargetContext, moments};
use crate::text::{Checked, Document, Reported, Spanned, values};
use bernstream_noise::Mechanism;
use bernstream_release::window::Axis;
use bernstream_synopsis::Basis;
use bernstream_synopsis::description::{Smoothness, Target};
use bernstream_synopsis::price::Price;

/// `terms` are what a choice by `"auto"` depends on; one that is `recorded` is kept.
pub fn release(
    document: &mut Document<'_>,
    table: Spanned<file::Release>,
    terms: Checked<Terms>,
    pricing: Checked<Pricing>,
    recorded: Option<&Recorded>,
) -> Checked<ReleaseDraft> {
    let place = table.span();
    let mut written = table.into_inner();
    let name = document.required(&place, "name", written.name.take(), values::name);
    let (payment, policy) = match pricing {
        Ok((payment, policy)) => (Ok(payment), policy),
        Err(reported) => (Err(reported), None),
    };
    a_step_as_bandwidth(&mut written);
    let keys = Keys {
        noise: written.noise.take(),
        degree: written.degree.take(),
        order: written.order.take(),
        private_order: written.private_order.take(),
        points: written.points.take(),
        cells: cells::Keys {
            spline: written.spline.take(),
            step: written.step.take(),
        },
    };
    let paid = payment.as_ref().ok().map(Spanned::get_ref);
    // Which other keys belong to it depends on the noise, and on whether it is for moments or tables of cells.
    let unknown = document
        .reported_of(&place, "noise")
        .or_else(|| document.reported_of(&place, "moments"));
    let unknown = unknown.or_else(|| document.reported_of(&place, "cells"));
    let request = match (&written.moments, &written.cells, unknown) {
        (_, _, Some(reported)) => Err(reported),
        (Some(_), ..) => NoiseRequest::of_moments(document, &place, keys, paid),
        (_, Some(_), None) => NoiseRequest::of_tables(document, &place, keys, paid),
        _ => NoiseRequest::read(document, &place, keys, paid),
    };
    let expected = document.optional(written.expected_records.take(), values::count);
    // Moments choose their number by themselves: nothing is left to search for.
    let (expected, records) = match (&written.moments, expected) {
        (Some(moments), Ok(expected)) => (
            Ok(None),
            of_moments(document, &place, moments.get_ref(), expected)?,
        ),
        (None, Ok(expected)) => (expectation(document, &place, &request, expected), None),
        (_, Err(reported)) => (Err(reported), None),
    };
    let is_laplace = request
        .as_ref()
        .map_or(true, |request| request.kinds == [NoiseKind::Laplace]);
    let calibration = document.optional(written.scale.take(), |scale| match scale {
        file::Scale::Tight => Ok(Calibration::Tight),
        file::Scale::Paper if is_laplace => Ok(Calibration::Paper),
        file::Scale::Paper => {
            Err("\"paper\" is for Laplace noise: remove `scale` or `noise`".to_owned())
        }
    });
    let about = [
        written.title.take(),
        written.description.take(),
        written.record.take(),
    ];
    let names = names::of_release(
        document,
        about,
        written.domain.as_mut().map(Spanned::get_mut),
    );
    let axes = domain(document, &place, written.domain.take());
    let has_tables = written.cells.is_some();
    let label = written
        .label
        .take()
        .map(|written| label(document, written))
        .transpose();
    let target = targets::only(document, place, &mut written);
    let axes = axes?;
    let label = label?;
    let request = request?;
    let target = target?;
    let (columns, axes): (Vec<String>, Vec<Axis>) = axes.into_iter().unzip();
    if let Some(label) = &label
        && columns.contains(&label.get_ref().column)
    {
        let what = format!("{} is already an axis", label.get_ref().column);
        return Err(document.fault(label.span(), what, "the label cannot be an axis"));
    }
    let epsilon = payment
        .as_ref()
        .ok()
        .map(|payment| payment.get_ref().epsilon().to_f64());
    let planned = records
        .zip(epsilon)
        .map(|(records, epsilon)| FrequencyPlan { records, epsilon });
    let build = |document: &mut Document<'_>, on| {
        target(
            document,
            &TargetContext {
                axes: &axes,
                columns: &columns,
                label: label.as_ref(),
                on,
                planned,
            },
        )
    };
    // Built even where it is not what will be chosen, so that its own faults are told.
    let grid = request
        .cells
        .as_ref()
        .map_or(Ok(GivenGrid::default()), |keys| keys.read(document, &axes))?;
    let tables = if has_tables {
        cells_target::tables(label.as_ref().map(Spanned::get_ref))
    } else {
        1
    };
    let first = request.first(&grid, axes.len(), tables);
    let function = build(document, first);
    let name = name?;
    let payment = payment?;
    let expected = expected?;
    let mut function = function?;
    let shape = function.get_ref().function.target.shape();
    if let Some(orders) = &request.private_order {
        private_order::can_be_chosen(document, orders, &shape)?;
    }
    if shape.basis == Basis::Affine {
        is_one(document, "degree", &request.degree)?;
        is_one(document, "order", &request.order)?;
    }
    if let Some(expected) = &expected
        && request.open().is_empty()
        && !matches!(function.get_ref().function.about, Target::Density(_))
    {
        let what = "has no effect: noise and size are fixed";
        return Err(document.fault(
            expected.span(),
            what,
            r#"remove it, or set one of them to "auto""#,
        ));
    }
    let expected = expected.map(Spanned::into_inner);
    let selection = match expected.filter(|_| !request.open().is_empty()) {
        None => None,
        Some(expected_records) => {
            // What is chosen for a file with faults is of no use, and choosing takes seconds.
            if let Some(reported) = document.reported() {
                return Err(reported);
            }
            let open = request.open();
            let search = search(
                &request,
                (grid, tables, &open),
                expected_records,
                payment.get_ref().own(),
                terms?,
                &axes,
            );
            let mut found = choose(document, &request, &function, &search, build)?;
            let kept = recorded.and_then(|recorded| search.only(&recorded.choice(name.get_ref())?));
            if let Some(kept) = kept {
                found.taken = choose(document, &request, &function, &kept, build)?.best;
            }
            function = build(document, found.taken.on)?;
            Some(found)
        }
    };
    let taken = selection.as_ref().map(|selection| selection.taken);
    let order = NoiseRequest::fixed(&request.order)
        .or(taken.map(|taken| taken.order))
        .unwrap_or(1);
    let noise = taken
        .map(|taken| taken.noise)
        .or(request.kinds.first().copied())
        .unwrap_or(NoiseKind::Laplace);
    let target_place = function.span();
    let ReadTarget {
        function,
        private_bandwidths,
    } = function.into_inner();
    let function = Spanned::new(target_place, function);
    let smoothness = written
        .smoothness
        .map(|smoothness| vouched(document, smoothness, &function))
        .transpose()?;
    let (label_column, label) = label
        .map(|label| label.into_inner())
        .map(|l| (l.column, l.label))
        .unzip();
    let on = taken.map_or(first, |taken| taken.on);
    Ok(ReleaseDraft {
        name: name.into_inner(),
        windows: written.windows,
        payment,
        policy,
        size: request.place,
        order,
        noise,
        on,
        calibration: calibration?,
        expected_records: expected,
        auto: selection,
        private_order: request.private_order,
        smoothness,
        private_bandwidths,
        columns: columns.into_iter().chain(label_column).collect(),
        axes,
        names: names?,
        label,
        function,
        sampled: written.sampled,
    })
}

/// Of tables of cells whose step is given alone, that is the smallest bandwidth too: every spline can be read with it.
fn a_step_as_bandwidth(written: &mut file::Release) {
    if let (Some(cells), Some(step)) = (&mut written.cells, &written.step)
        && let file::Auto::Fixed(lengths) = step.get_ref()
        && cells.get_ref().bandwidths.is_none()
    {
        let lengths = lengths
            .iter()
            .map(|length| Spanned::new(step.span(), *length))
            .collect();
        cells.get_mut().bandwidths = Some(Spanned::new(step.span(), lengths));
    }
}

/// The search of `"auto"` over everything that the file leaves open.
fn search<'a>(
    request: &'a NoiseRequest,
    (grid, tables, open): (GivenGrid, u32, &'a [&'static str]),
    expected_records: u64,
    price: Price,
    terms: Terms,
    axes: &'a [Axis],
) -> Search<'a> {
    let private = request.private_order.as_ref().map(Spanned::get_ref);
    let fixed = NoiseRequest::fixed(&request.order).map(|order| vec![order]);
    Search {
        kinds: request.kinds.clone(),
        degree: NoiseRequest::fixed(&request.degree),
        orders: private.map_or(fixed, |private| {
            Some(private.candidates.iter().copied().collect())
        }),
        points: NoiseRequest::fixed(&request.points),
        open,
        spline: grid.spline,
        steps: grid.steps,
        tables,
        expected_records,
        price,
        terms,
        axes,
    }
}

/// The best candidate of `search`; `build` returns the function on given coordinates.
fn choose(
    document: &mut Document<'_>,
    request: &NoiseRequest,
    target: &Spanned<ReadTarget>,
    search: &Search<'_>,
    build: impl Fn(&mut Document<'_>, Coordinates) -> Checked<Spanned<ReadTarget>>,
) -> Checked<Selection> {
    // Tried in a clone: what cannot be built is no candidate.
    let trial = document.clone();
    let private = request.private_order.as_ref().map(Spanned::get_ref);
    let is_quick = |function: &Function| {
        private.is_none_or(|orders| orders.is_quick(&function.target.shape()))
    };
    let built = |on| {
        let target = build(&mut trial.clone(), on).ok()?;
        Some(target.into_inner().function).filter(is_quick)
    };
    search
        .choose(built)
        .ok_or_else(|| no_choice(document, request, target, search))
}

/// Checks that the smoothness fits the form of the function.
fn vouched(
    document: &mut Document<'_>,
    smoothness: Spanned<file::SmoothnessClaim>,
    function: &Spanned<Function>,
) -> Checked<Smoothness> {
    let shape = function.get_ref().target.shape();
    if smoothness.get_ref().0.fits(shape.dimensions, &shape.basis) {
        return Ok(smoothness.into_inner().0);
    }
    let hint = "numbers above 0, one an axis: `lipschitz` or `curvature` for a lattice; one `norm` for kernel points";
    Err(document.fault(
        smoothness.span(),
        "does not fit the form of the function",
        hint,
    ))
}

/// The expected number of records: required with `"auto"`; otherwise it is for densities, whose readers are told what they will see.
fn expectation(
    document: &mut Document<'_>,
    place: &Range<usize>,
    request: &Checked<NoiseRequest>,
    expected: Option<Spanned<u64>>,
) -> Checked<Option<Spanned<u64>>> {
    let is_open = !request
        .as_ref()
        .map_err(|reported| *reported)?
        .open()
        .is_empty();
    if expected.is_some() || !is_open {
        return Ok(expected);
    }
    // Misspelt, it is not left to the program.
    Err(["spline", "step", "degree", "order", "points"]
        .into_iter()
        .find_map(|key| document.reported_of(place, key))
        .unwrap_or_else(|| document.missing(place.clone(), "expected_records")))
}

/// The expected number of records of moments: required with a smoothness, refused without it.
fn of_moments(
    document: &mut Document<'_>,
    place: &Range<usize>,
    written: &moments::Table,
    expected: Option<Spanned<u64>>,
) -> Checked<Option<u64>> {
    match (&written.smoothness, expected) {
        (Some(_), Some(expected)) => Ok(Some(expected.into_inner())),
        (Some(_), None) => Err(document.missing(place.clone(), "expected_records")),
        (None, Some(expected)) => {
            let what = "has no effect: the number of frequencies is fixed";
            Err(document.fault(
                expected.span(),
                what,
                "remove it, or give a smoothness in place of frequencies",
            ))
        }
        (None, None) => Ok(None),
    }
}

/// Checks that the degree or order of a linear score is 1: it has no lattice to choose.
fn is_one(
    document: &mut Document<'_>,
    name: &str,
    written: &Option<Spanned<Option<u32>>>,
) -> Checked<()> {
    match written {
        Some(written) if written.get_ref().is_some_and(|count| count != 1) => {
            let what = "must be 1: a linear score is exact at degree 1 and order 1";
            Err(document.fault(
                written.span(),
                what,
                format!("write {name} = 1, or score = \"sigmoid\""),
            ))
        }
        _ => Ok(()),
    }
}

/// Why `"auto"` found no candidate.
fn no_choice(
    document: &mut Document<'_>,
    request: &NoiseRequest,
    target: &Spanned<ReadTarget>,
    search: &Search<'_>,
) -> Reported {
    let function = &target.get_ref().function;
    let place = request
        .order
        .as_ref()
        .map_or(request.place.clone(), Spanned::span);
    if request.cells.is_some() {
        let what = r#""auto" finds no grid of cells that can be drawn for and sent: the bandwidths are too small"#;
        return document.fault(place, what, "widen them, give `step`, or publish to files");
    }
    if !select::is_quick(&function.target.shape()) {
        let what =
            r#""auto" tries lattices of at most degree 546 on one axis, 52 on two and 16 on three"#;
        return document.fault(place, what, "give the order too, or use a smaller degree");
    }
    let Search { price, terms, .. } = *search;
    let law = request
        .kinds
        .first()
        .map_or(NoiseKind::Laplace, |body| *body)
        .law();
    let sensitivity = function
        .target
        .sensitivity_in(law.norm(), terms.adjacency, terms.contributions)
        .map_err(|e| e.to_string());
    let values = function.target.shape().values();
    match sensitivity
        .and_then(|s| Mechanism::calibrated(law, s, values, price).map_err(|e| e.to_string()))
    {
        Err(why) => document.fault(target.span(), why, ""),
        Ok(_) => document.fault(place, "no lattice fits into a message", "publish to files"),
    }
}
