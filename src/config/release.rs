//! `[release]`: the function that is published, its domain, its lattice and its price.

use std::collections::HashSet;
use std::ops::Range;

use toml::Spanned;

use crate::accountant::policy::Policy;
use crate::config::auto::{self, Search, Terms};
use crate::config::body::{Asked, Body, Coordinates, Keys};
use crate::config::budget::Payment;
use crate::config::choices::{self, PrivateBandwidths, PrivateOrder};
use crate::config::document::{Document, Reported};
use crate::config::policy::Paying;
use crate::config::sections::Found;
use crate::config::{Calibration, Function, file, forms, functions};
use crate::mechanism::Mechanism;
use crate::synopsis::approximation::Smoothness;
use crate::targets::Basis;
use crate::window::{Axis, Label, Outside};

/// `[release]`
pub struct Stage {
    pub name: String,
    /// Settled by [`crate::config::over`], which knows the grid.
    pub windows: Option<Spanned<file::WindowKind>>,
    pub payment: Spanned<Payment>,
    /// None where the price of a window is fixed.
    pub policy: Option<Policy>,
    /// What decides how long a message is.
    pub size: Range<usize>,
    pub order: u32,
    pub auto: Option<auto::Table>,
    pub private_order: Option<Spanned<PrivateOrder>>,
    pub smoothness: Option<Smoothness>,
    pub private_bandwidths: Option<Spanned<PrivateBandwidths>>,
    pub body: Body,
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
    pub on: Coordinates,
    /// For moments that choose how many they are.
    pub planned: Option<Planned>,
}

/// What a number of moments is chosen for.
#[derive(Clone, Copy)]
pub(super) struct Planned {
    pub records: u64,
    pub epsilon: f64,
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

    /// The degree of the lattice; a fault where the function must be put on kernel points and cannot.
    pub fn degree(&self, document: &mut Document<'_>, place: &Range<usize>) -> Found<u32> {
        match self.on {
            Coordinates::Lattice { degree } => Ok(degree),
            Coordinates::Points { .. } => {
                let what = "is not a function of a kernel's space: kernel points are for densities and kernel machines";
                Err(document.fault(place.clone(), what, "take noise = \"laplace\" or \"cube\""))
            }
        }
    }

    /// The columns of the axes, in words.
    pub fn per(&self) -> String {
        self.columns.join(" and ")
    }
}

/// `terms` are what a choice of degree and order is judged by.
pub fn release(
    document: &mut Document<'_>,
    table: Spanned<file::Release>,
    terms: Found<Terms>,
    paying: Found<Paying>,
) -> Found<Stage> {
    let (place, written) = (table.span(), table.into_inner());
    let name = document.required(&place, "name", written.name, forms::name);
    let (payment, policy) = match paying {
        Ok(paying) => (Ok(paying.payment), paying.policy),
        Err(reported) => (Err(reported), None),
    };
    let keys = Keys {
        noise: written.noise,
        degree: written.degree,
        order: written.order,
        private_order: written.private_order,
        points: written.points,
    };
    let asked = match &written.moments {
        Some(_) => Asked::of_moments(document, &place, keys, payment.as_ref().ok().map(Spanned::get_ref)),
        None => Asked::read(document, &place, keys, payment.as_ref().ok().map(Spanned::get_ref)),
    };
    let expected = document.optional(written.expected_records, forms::count);
    // Moments choose their number by themselves: nothing is left to search for.
    let (expected, records) = match (&written.moments, expected) {
        (Some(moments), Ok(expected)) => (Ok(None), of_moments(document, &place, moments.get_ref(), expected)?),
        (None, Ok(expected)) => (expectation(document, &place, &asked, expected), None),
        (_, Err(reported)) => (Err(reported), None),
    };
    let is_laplace = asked.as_ref().is_ok_and(|asked| asked.bodies == [Body::Laplace]);
    let calibration = document.optional(written.scale, |scale| match scale {
        file::Scale::Tight => Ok(Calibration::Tight),
        file::Scale::Paper if is_laplace => Ok(Calibration::Paper),
        file::Scale::Paper => Err("\"paper\" is Laplace noise: leave out one of `scale` and `noise`".to_owned()),
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
        ("moments", written.moments.map(Written::Moments)),
    ];
    let known = targets.each_ref().map(|(name, _)| *name);
    let (names, mut found): (Vec<&str>, Vec<Written>) =
        targets.into_iter().filter_map(|(name, target)| Some((name, target?))).unzip();
    let target = match (found.pop(), &names[..]) {
        (Some(target), [_]) => Ok(target),
        (Some(_), several) => Err(document.not_one_of(place, several, true)),
        (None, _) => Err(document.not_one_of(place, &known, false)),
    };
    let (axes, label, asked, target) = (axes?, label?, asked?, target?);
    let (columns, axes): (Vec<String>, Vec<Axis>) = axes.into_iter().unzip();
    if let Some(label) = &label
        && columns.contains(&label.get_ref().column)
    {
        let what = format!("{} is an axis already", label.get_ref().column);
        return Err(document.fault(label.span(), what, "a label is another column: what is to be told from the axes"));
    }
    let epsilon = payment.as_ref().ok().map(|payment| payment.get_ref().epsilon().to_f64());
    let planned = records.zip(epsilon).map(|(records, epsilon)| Planned { records, epsilon });
    let build = |document: &mut Document<'_>, on| {
        let ground = Ground { axes: &axes, columns: &columns, label: label.as_ref(), on, planned };
        target.clone().settle(document, &ground)
    };
    // Built even where it is not what will be chosen, so that its own faults are told.
    let function = build(document, first(&asked));
    let (name, payment, expected) = (name?, payment?, expected?);
    let mut function = function?;
    if let Some(orders) = &asked.private_order {
        choices::can_be_chosen(document, orders, &function.get_ref().target.shape())?;
    }
    if function.get_ref().target.shape().basis == Basis::Affine {
        is_one(document, "degree", &asked.degree)?;
        is_one(document, "order", &asked.order)?;
    }
    let mut found = None;
    if let Some(expected_records) = expected {
        let private = asked.private_order.as_ref().map(Spanned::get_ref);
        let fixed = Asked::fixed(&asked.order).map(|order| vec![order]);
        let search = Search {
            bodies: &asked.bodies,
            degree: Asked::fixed(&asked.degree),
            orders: private.map_or(fixed, |private| Some(private.candidates.iter().copied().collect())),
            points: Asked::fixed(&asked.points),
            expected_records,
            price: payment.get_ref().own(),
            terms: terms?,
            axes: &axes,
        };
        // Tried in a clone: what cannot be built is no candidate.
        let trial = document.clone();
        let is_quick = |function: &Function| private.is_none_or(|orders| orders.is_quick(&function.target.shape()));
        let built = |on| build(&mut trial.clone(), on).ok().map(Spanned::into_inner).filter(|f| is_quick(f));
        let table = search.choose(built).ok_or_else(|| no_choice(document, &asked, &function, &search))?;
        function = build(document, table.best.on)?;
        found = Some(table);
    }
    let best = found.as_ref().map(|found| found.best);
    let order = Asked::fixed(&asked.order).or(best.map(|best| best.order)).unwrap_or(1);
    let body = best.map(|best| best.body).or(asked.bodies.first().copied()).unwrap_or(Body::Laplace);
    let on = best.map_or(first(&asked), |best| best.on);
    let ground = Ground { axes: &axes, columns: &columns, label: label.as_ref(), on, planned };
    let private_bandwidths = target.private_bandwidths(document, &ground).transpose()?;
    let smoothness = written.smoothness.map(|smoothness| vouched(document, smoothness, &function)).transpose()?;
    let (label_column, label) = label.map(|label| label.into_inner()).map(|l| (l.column, l.label)).unzip();
    Ok(Stage {
        name: name.into_inner(),
        windows: written.windows,
        payment,
        policy,
        size: asked.place,
        order,
        body,
        calibration: calibration?,
        auto: found,
        private_order: asked.private_order,
        smoothness,
        private_bandwidths,
        columns: columns.into_iter().chain(label_column).collect(),
        axes,
        label,
        function,
        sampled: written.sampled,
    })
}

/// A smoothness that the form of the function can make use of.
fn vouched(
    document: &mut Document<'_>,
    smoothness: Spanned<Smoothness>,
    function: &Spanned<Function>,
) -> Found<Smoothness> {
    let shape = function.get_ref().target.shape();
    if smoothness.get_ref().fits(shape.dimensions, &shape.basis) {
        return Ok(smoothness.into_inner());
    }
    let hint = "numbers above 0, one an axis: `lipschitz` or `curvature` for a lattice; one `norm` for kernel points";
    Err(document.fault(smoothness.span(), "does not fit the form of the function", hint))
}

/// What is built first: what is asked for, or the least of what is looked at.
fn first(asked: &Asked) -> Coordinates {
    match asked.bodies.iter().all(|body| body.is_on_points()) {
        true => Coordinates::Points { most: Asked::fixed(&asked.points).unwrap_or(1) },
        false => Coordinates::Lattice { degree: Asked::fixed(&asked.degree).unwrap_or(auto::first_degree()) },
    }
}

/// The expected number of records: given where something is left to be chosen, and nowhere else.
fn expectation(
    document: &mut Document<'_>,
    place: &Range<usize>,
    asked: &Found<Asked>,
    expected: Option<Spanned<u64>>,
) -> Found<Option<u64>> {
    let is_open = asked.as_ref().map_err(|reported| *reported)?.is_open();
    match expected {
        Some(expected) if is_open => Ok(Some(expected.into_inner())),
        None if is_open => Err(document.missing(place.clone(), "expected_records")),
        Some(expected) => Err(document.fault(
            expected.span(),
            "bears on nothing: noise and size are fixed",
            r#"leave it out, or leave something to "auto""#,
        )),
        None => Ok(None),
    }
}

/// The same for moments: given with a smoothness, and nowhere else.
fn of_moments(
    document: &mut Document<'_>,
    place: &Range<usize>,
    written: &file::Moments,
    expected: Option<Spanned<u64>>,
) -> Found<Option<u64>> {
    match (&written.smoothness, expected) {
        (Some(_), Some(expected)) => Ok(Some(expected.into_inner())),
        (Some(_), None) => Err(document.missing(place.clone(), "expected_records")),
        (None, Some(expected)) => {
            let what = "bears on nothing: the number of frequencies is fixed";
            Err(document.fault(expected.span(), what, "leave it out, or give a smoothness in place of frequencies"))
        }
        (None, None) => Ok(None),
    }
}

/// A linear score has no lattice to choose: what is written must say so.
fn is_one(document: &mut Document<'_>, name: &str, written: &Option<Spanned<Option<u32>>>) -> Found<()> {
    match written {
        Some(written) if written.get_ref().is_some_and(|count| count != 1) => {
            let what = "must be 1: a linear score is exact at degree 1 and order 1";
            Err(document.fault(written.span(), what, format!("write {name} = 1, or score = \"sigmoid\"")))
        }
        _ => Ok(()),
    }
}

/// Why `auto` found nothing.
fn no_choice(
    document: &mut Document<'_>,
    asked: &Asked,
    function: &Spanned<Function>,
    search: &Search<'_>,
) -> Reported {
    let target = &function.get_ref().target;
    let place = asked.order.as_ref().map_or(asked.place.clone(), Spanned::span);
    if !auto::is_quick(&target.shape()) {
        let what = r#""auto" looks at lattices of at most degree 546 on one axis, 52 on two and 16 on three"#;
        return document.fault(place, what, "give the order too, or take a smaller degree");
    }
    let Search { price, terms, .. } = *search;
    let law = asked.bodies.first().map_or(Body::Laplace, |body| *body).law();
    let sensitivity = law.sensitivity(&**target, terms.adjacency, terms.contributions).map_err(|e| e.to_string());
    let values = target.shape().values();
    match sensitivity.and_then(|s| Mechanism::calibrated(law, s, values, price).map_err(|e| e.to_string())) {
        Err(why) => document.fault(function.span(), why, ""),
        Ok(_) => document.fault(place, "no lattice fits into a message", "publish to files"),
    }
}

/// The function as written.
#[derive(Clone)]
enum Written {
    Density(Spanned<file::Density>),
    Regression(Spanned<file::Regression>),
    Bayes(Spanned<file::Bayes>),
    Machine(Spanned<file::Machine>),
    Logistic(Spanned<file::Logistic>),
    Expression(Spanned<file::Expression>),
    Moments(Spanned<file::Moments>),
}

impl Written {
    /// The candidates of a density that chooses its bandwidths privately.
    fn private_bandwidths(
        self,
        document: &mut Document<'_>,
        ground: &Ground<'_>,
    ) -> Option<Found<Spanned<PrivateBandwidths>>> {
        let Written::Density(table) = self else { return None };
        let table = table.into_inner().private_bandwidths?;
        let place = table.span();
        Some(choices::bandwidths(document, ground, table).map(|candidates| Spanned::new(place, candidates)))
    }

    fn settle(self, document: &mut Document<'_>, ground: &Ground<'_>) -> Found<Spanned<Function>> {
        match self {
            Written::Density(table) => settled(document, ground, table, functions::density),
            Written::Regression(table) => settled(document, ground, table, functions::regression),
            Written::Bayes(table) => settled(document, ground, table, functions::bayes),
            Written::Machine(table) => settled(document, ground, table, functions::machine),
            Written::Logistic(table) => settled(document, ground, table, functions::logistic),
            Written::Expression(table) => settled(document, ground, table, functions::expression),
            Written::Moments(table) => settled(document, ground, table, functions::moments),
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
