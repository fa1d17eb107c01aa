//! `[release]`: the function that is published, its domain, its lattice and its price.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use toml::Spanned;

use crate::config::document::Document;
use crate::config::sections::Found;
use crate::config::{Function, file, forms};
use crate::mechanism::calibrate::Epsilon;
use crate::synopsis::description::{self, Method, Smoothing};
use crate::target;
use crate::target::Target;
use crate::target::density::Density;
use crate::window::{Axis, Label, Outside};

/// The orders for which the evaluation was checked (privacy-math, section 2).
const LARGEST_ORDER: u32 = 200;

/// `[release]`
pub struct Stage {
    pub name: String,
    pub price: Spanned<Epsilon>,
    pub degree: Spanned<u32>,
    pub order: u32,
    /// Those of the axes, then that of the label.
    pub columns: Vec<String>,
    pub axes: Vec<Axis>,
    pub label: Option<Label>,
    pub function: Spanned<Function>,
}

/// What every function is built from.
struct Ground<'a> {
    axes: &'a [Axis],
    columns: &'a [String],
    label: Option<&'a Spanned<Labelled>>,
    degree: u32,
}

/// A label and its column.
struct Labelled {
    column: String,
    label: Label,
}

impl Ground<'_> {
    fn widths(&self) -> impl Iterator<Item = f64> {
        self.axes.iter().map(|axis| axis.max - axis.min)
    }

    fn volume(&self) -> f64 {
        self.widths().product()
    }

    /// The columns of the axes, in words.
    fn per(&self) -> String {
        self.columns.join(" and ")
    }
}

pub fn release(document: &mut Document<'_>, table: Spanned<file::Release>) -> Found<Stage> {
    let (place, written) = (table.span(), table.into_inner());
    let name = document.required(&place, "name", written.name, forms::name);
    let price = document.required(&place, "epsilon", written.epsilon, forms::epsilon);
    let degree = document.required(&place, "degree", written.degree, forms::count);
    let order = document.required(&place, "order", written.order, |order| match order {
        1..=LARGEST_ORDER => Ok(order),
        _ => Err(format!("must be from 1 to {LARGEST_ORDER}")),
    });
    let domain = document.required(&place, "domain", written.domain, |axes| match axes.len() {
        1..=3 => Ok(axes),
        count => Err(format!("has {count} axes, must have 1 to 3")),
    });
    let axes = domain.and_then(|axes| {
        let mut seen = HashSet::new();
        // Every axis before the first `?`, so that the faults of all are recorded.
        let axes: Vec<_> = axes.into_inner().into_iter().map(|written| axis(document, written, &mut seen)).collect();
        axes.into_iter().collect::<Found<Vec<_>>>()
    });
    let label = written.label.map(|written| label(document, written)).transpose();
    let targets = [
        ("density", written.density.map(Written::Density)),
        ("regression", written.regression.map(Written::Regression)),
    ];
    let known = targets.each_ref().map(|(name, _)| *name);
    let (names, mut found): (Vec<&str>, Vec<Written>) =
        targets.into_iter().filter_map(|(name, target)| Some((name, target?))).unzip();
    let target = match (found.pop(), &names[..]) {
        (Some(target), [_]) => Ok(target),
        (Some(_), several) => Err(document.not_one_of(place, several, true)),
        (None, _) => Err(document.not_one_of(place, &known, false)),
    };
    let (axes, label, degree, target) = (axes?, label?, degree?, target?);
    let (columns, axes): (Vec<String>, Vec<Axis>) = axes.into_iter().unzip();
    let ground = Ground { axes: &axes, columns: &columns, label: label.as_ref(), degree: *degree.get_ref() };
    let function = target.settle(document, &ground)?;
    let (label_column, label) = label.map(|label| label.into_inner()).map(|l| (l.column, l.label)).unzip();
    Ok(Stage {
        name: name?.into_inner(),
        price: price?,
        degree,
        order: order?.into_inner(),
        columns: columns.into_iter().chain(label_column).collect(),
        axes,
        label,
        function,
    })
}

/// The function as written.
enum Written {
    Density(Spanned<file::Density>),
    Regression(Spanned<file::Regression>),
}

impl Written {
    fn settle(self, document: &mut Document<'_>, ground: &Ground<'_>) -> Found<Spanned<Function>> {
        match self {
            Written::Density(table) => settled(document, ground, table, density),
            Written::Regression(table) => settled(document, ground, table, regression),
        }
    }
}

/// The function that `build` makes of a table, with the table's place.
fn settled<T>(
    document: &mut Document<'_>,
    ground: &Ground<'_>,
    table: Spanned<T>,
    build: impl FnOnce(&mut Document<'_>, &Ground<'_>, &Range<usize>, T) -> Found<Function>,
) -> Found<Spanned<Function>> {
    let place = table.span();
    let function = build(document, ground, &place, table.into_inner())?;
    Ok(Spanned::new(place, function))
}

/// A target that can be built, or why it cannot, said at `place`.
fn built<T: Target + 'static>(
    document: &mut Document<'_>,
    place: &Range<usize>,
    target: Result<T, target::Error>,
) -> Found<Arc<dyn Target>> {
    match target {
        Ok(target) => Ok(Arc::new(target)),
        Err(error) => Err(document.fault(place.clone(), error.to_string(), "")),
    }
}

fn no_label(document: &mut Document<'_>, ground: &Ground<'_>, what: &str) -> Found<()> {
    match ground.label {
        Some(label) => Err(document.fault(label.span(), format!("{what} has no label"), "leave it out")),
        None => Ok(()),
    }
}

/// The bounds of a label that is a number.
fn number<'g>(document: &mut Document<'_>, ground: &'g Ground<'_>, place: &Range<usize>) -> Found<(&'g str, &'g Axis)> {
    match ground.label.map(|label| (label.span(), label.get_ref())) {
        Some((_, Labelled { column, label: Label::Number(axis) })) => Ok((column, axis)),
        Some((place, _)) => Err(document.fault(place, "must be a number with `min` and `max`", "a class has no mean")),
        None => Err(document.fault(place.clone(), "needs release.label", "add what is to be expected at a point")),
    }
}

fn density(
    document: &mut Document<'_>,
    ground: &Ground<'_>,
    place: &Range<usize>,
    written: file::Density,
) -> Found<Function> {
    no_label(document, ground, "a density")?;
    let bandwidths = bandwidths(document, ground, place, written.bandwidths)?;
    let in_unit_cube: Vec<f64> = bandwidths.get_ref().iter().zip(ground.widths()).map(|(b, width)| b / width).collect();
    let target = built(document, &bandwidths.span(), Density::new(&in_unit_cube, ground.degree))?;
    let kernel = Smoothing::Bandwidths(bandwidths.into_inner());
    let per = ground.per();
    Ok(Function {
        about: description::Target::Density(description::Density { kernel, divide_by: None }),
        meaning: format!("records per unit of {per}; divide by the released mass for a density"),
        quantity: format!("records per unit of {per}"),
        unit: target.unit() / ground.volume(),
        offset: 0.0,
        target,
    })
}

fn regression(
    document: &mut Document<'_>,
    ground: &Ground<'_>,
    place: &Range<usize>,
    written: file::Regression,
) -> Found<Function> {
    let label = number(document, ground, place);
    let bandwidth = document.required(place, "bandwidth", written.bandwidth, forms::positive);
    let gap = document.required(place, "gap", written.gap, forms::positive);
    let max_records = document.required(place, "max_records", written.max_records, forms::count);
    let (column, bounds) = label?;
    let (bandwidth, gap, max_records) = (bandwidth?.into_inner(), gap?.into_inner(), max_records?.into_inner());
    todo!("{column} {bounds:?} {bandwidth} {gap} {max_records}")
}

/// One bandwidth an axis, in natural units.
fn bandwidths(
    document: &mut Document<'_>,
    ground: &Ground<'_>,
    place: &Range<usize>,
    written: file::Field<Vec<Spanned<f64>>>,
) -> Found<Spanned<Vec<f64>>> {
    let axes = ground.axes.len();
    let list = document.required(place, "bandwidths", written, |list| match list.len() {
        count if count == axes => Ok(list),
        count => Err(format!("has {count} numbers for {axes} axes")),
    })?;
    let list_place = list.span();
    let mut bandwidths = Vec::new();
    for (bandwidth, width) in list.into_inner().into_iter().zip(ground.widths()) {
        let (place, bandwidth) = (bandwidth.span(), bandwidth.into_inner());
        bandwidths.push(match bandwidth > 0.0 && bandwidth <= width {
            true => Ok(bandwidth),
            false => {
                let what = format!("must be above 0 and at most the width of the domain, {width}");
                Err(document.fault(place, what, "about a twentieth of the width is a good start"))
            }
        });
    }
    Ok(Spanned::new(list_place, bandwidths.into_iter().collect::<Found<_>>()?))
}

/// One axis: its column and its bounds.
fn axis(document: &mut Document<'_>, table: Spanned<file::Axis>, seen: &mut HashSet<String>) -> Found<(String, Axis)> {
    let (place, written) = (table.span(), table.into_inner());
    let column = document.required(&place, "column", written.column, |column| {
        let column = forms::words(column)?;
        if seen.insert(column.clone()) { Ok(column) } else { Err("is an axis already".to_owned()) }
    });
    let bounds = bounds(document, &place, written.min, written.max, written.outside);
    Ok((column?.into_inner(), bounds?))
}

fn bounds(
    document: &mut Document<'_>,
    place: &Range<usize>,
    min: file::Field<f64>,
    max: file::Field<f64>,
    outside: file::Field<file::Outside>,
) -> Found<Axis> {
    let min = document.required(place, "min", min, forms::finite);
    let max = document.required(place, "max", max, forms::finite);
    let outside = document.required(place, "outside", outside, |outside| {
        Ok(match outside {
            file::Outside::Clamp => Outside::Clamp,
            file::Outside::Drop => Outside::Drop,
        })
    });
    let (min, max) = (min?.into_inner(), max?);
    let width = max.get_ref() - min;
    if width <= 0.0 || !width.is_finite() {
        let what =
            if width <= 0.0 { format!("must be more than `min`, {min}") } else { "is too far from `min`".to_owned() };
        let hint = "bounds are public: take them from what is known, not from the data";
        return Err(document.fault(max.span(), what, hint));
    }
    Ok(Axis { min, max: max.into_inner(), outside: outside?.into_inner() })
}

/// What a record says about its place: a number within bounds, or a class.
fn label(document: &mut Document<'_>, table: Spanned<file::Label>) -> Found<Spanned<Labelled>> {
    let (place, written) = (table.span(), table.into_inner());
    let column = document.required(&place, "column", written.column, forms::words);
    let label = match written.above {
        Some(above) if written.min.is_none() && written.max.is_none() && written.outside.is_none() => {
            document.required(&place, "above", Some(above), forms::finite).map(|above| Label::Above(above.into_inner()))
        }
        Some(above) => Err(document.fault(
            above.span(),
            "a label is a class or a number, not both",
            "keep `above`, or keep `min`, `max` and `outside`",
        )),
        None => bounds(document, &place, written.min, written.max, written.outside).map(Label::Number),
    };
    Ok(Spanned::new(place, Labelled { column: column?.into_inner(), label: label? }))
}
