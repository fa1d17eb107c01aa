//! `[release]`: the function that is published, its domain, its lattice and its price.

use std::collections::HashSet;
use std::ops::Range;

use toml::Spanned;

use crate::config::document::Document;
use crate::config::sections::Found;
use crate::config::{Calibration, Function, file, forms, functions};
use crate::mechanism::calibrate::Epsilon;
use crate::window::{Axis, Label, Outside};

/// The orders for which the evaluation was checked (privacy-math, section 2).
const LARGEST_ORDER: u32 = 200;

/// `[release]`
pub struct Stage {
    pub name: String,
    pub price: Spanned<Epsilon>,
    pub degree: Spanned<u32>,
    pub order: u32,
    /// With its place where it is written.
    pub calibration: Option<Spanned<Calibration>>,
    /// Those of the axes, then that of the label.
    pub columns: Vec<String>,
    pub axes: Vec<Axis>,
    pub label: Option<Label>,
    pub function: Spanned<Function>,
    /// Taken by [`crate::config::sampled`].
    pub sampled: Option<Spanned<file::Sampled>>,
}

/// What every function is built from.
pub(super) struct Ground<'a> {
    pub axes: &'a [Axis],
    pub columns: &'a [String],
    pub label: Option<&'a Spanned<Labelled>>,
    pub degree: u32,
}

/// A label and its column.
pub(super) struct Labelled {
    pub column: String,
    pub label: Label,
}

impl Ground<'_> {
    pub fn widths(&self) -> impl Iterator<Item = f64> {
        self.axes.iter().map(|axis| axis.max - axis.min)
    }

    pub fn volume(&self) -> f64 {
        self.widths().product()
    }

    /// The columns of the axes, in words.
    pub fn per(&self) -> String {
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
    let calibration = document.optional(written.scale, |scale| {
        Ok(match scale {
            file::Scale::Tight => Calibration::Tight,
            file::Scale::Paper => Calibration::Paper,
        })
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
        ("bayes", written.bayes.map(Written::Bayes)),
        ("machine", written.machine.map(Written::Machine)),
        ("logistic", written.logistic.map(Written::Logistic)),
        ("expression", written.expression.map(Written::Expression)),
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
        calibration: calibration?,
        columns: columns.into_iter().chain(label_column).collect(),
        axes,
        label,
        function,
        sampled: written.sampled,
    })
}

/// The function as written.
enum Written {
    Density(Spanned<file::Density>),
    Regression(Spanned<file::Regression>),
    Bayes(Spanned<file::Bayes>),
    Machine(Spanned<file::Machine>),
    Logistic(Spanned<file::Logistic>),
    Expression(Spanned<file::Expression>),
}

impl Written {
    fn settle(self, document: &mut Document<'_>, ground: &Ground<'_>) -> Found<Spanned<Function>> {
        match self {
            Written::Density(table) => settled(document, ground, table, functions::density),
            Written::Regression(table) => settled(document, ground, table, functions::regression),
            Written::Bayes(table) => settled(document, ground, table, functions::bayes),
            Written::Machine(table) => settled(document, ground, table, functions::machine),
            Written::Logistic(table) => settled(document, ground, table, functions::logistic),
            Written::Expression(table) => settled(document, ground, table, functions::expression),
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
