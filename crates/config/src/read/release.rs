//! `[release]`: the function that is published, its domain, its lattice and its price.

use std::ops::Range;
use std::sync::Arc;

use crate::file;
use crate::file::KeyedFunction;
use crate::read::cells::GivenGrid;
use crate::read::domain::{Domain, read_domain, read_label};
use crate::read::draft::ReleaseDraft;
use crate::read::noise::{CountedNoise, NoiseKeys, NoiseRequest};
use crate::read::pricing::Pricing;
use crate::read::targets::TargetReader;
use crate::read::{as_checked, cells, names, private_order, targets};
use crate::recorded::RecordedSettings;
use crate::select;
use crate::select::{CandidateSearch, ChoiceTerms};
use crate::settings::{
    AutoChoice, Calibration, Coordinates, NoiseKind, NoiseSelection, Payment, ReleasedFunction,
};
use crate::targets::cells as cells_target;
use crate::targets::{DeclaredUnits, FrequencyPlan, Labelled, ReadTarget, TargetContext, moments};
use crate::text::{Checked, Document, Field, Reported, Spanned, values};
use bernstream_functions::user_weighted::UserWeighted;
use bernstream_noise::Mechanism;
use bernstream_release::window::DomainAxis;
use bernstream_synopsis::description::{PlotNames, Smoothness, TargetDescription};
use bernstream_synopsis::price::Price;
use bernstream_synopsis::{Basis, NoiseDistribution};

/// Reads `[release]`. A choice by `"auto"` depends on `terms`; one that is `recorded` is kept.
pub fn read_release(
    document: &mut Document<'_>,
    table: Spanned<file::Release>,
    terms: Checked<ChoiceTerms>,
    pricing: Checked<Pricing>,
    declared: Option<&DeclaredUnits<'_>>,
    recorded: Option<&RecordedSettings>,
) -> Checked<ReleaseDraft> {
    let payment = known_payment(&pricing);
    let parts = ReleaseParts::read(document, table, payment)?;
    let Domain { mut columns, axes } = parts.domain?;
    let label = parts.label?;
    let request = parts.request?;
    let reader = parts.reader?;
    check_label_is_no_axis(document, label.as_ref(), &columns)?;
    let grid = given_grid(document, &request, &axes)?;
    let tables = match parts.has_tables {
        true => cells_target::table_count(label.as_ref().map(Spanned::get_ref)),
        false => 1,
    };
    let builder = FunctionBuilder {
        reader: &reader,
        axes: &axes,
        columns: &columns,
        label: label.as_ref(),
        planned: parts.planned,
        declared,
        law: first_law(&request),
        weights: parts.weights.as_ref(),
        grid,
        tables,
    };
    // Built even where it is not what will be chosen, so that its own faults are told.
    let first = request.first_coordinates(&grid, axes.len(), tables);
    let function = builder.build(document, first);
    let name = parts.name?;
    let pricing = pricing?;
    let expected = parts.expected?;
    let mut function = function?;
    fits_the_request(document, &request, &function.get_ref().function, &expected)?;
    let expected = expected.map(Spanned::into_inner);
    let open = request.open_keys();
    let mut selection = None;
    if let Some(expected_records) = expected
        && !open.is_empty()
    {
        // What is chosen for a file with faults is of no use, and choosing takes seconds.
        if let Some(reported) = document.reported() {
            return Err(reported);
        }
        let price = pricing.payment.get_ref().mechanism_price();
        let search = builder.search(&request, &open, expected_records, price, terms?);
        let kept = recorded.and_then(|recorded| recorded.kept_choice(name.get_ref()));
        let found = builder.select(document, &request, &function, &search, kept)?;
        function = builder.build(document, found.taken.on)?;
        selection = Some(found);
    }
    let AutoChoice { noise, on, order } = final_choice(&request, selection.as_ref(), first);
    let target_place = function.span();
    let ReadTarget {
        function,
        private_bandwidths,
    } = function.into_inner();
    let function = Spanned::new(target_place, function);
    let smoothness = fitting_smoothness(document, parts.smoothness, &function)?;
    let label = label.map(Spanned::into_inner);
    columns.extend(label.as_ref().map(|label| label.column.clone()));
    Ok(ReleaseDraft {
        name: name.into_inner(),
        windows: parts.windows,
        payment: pricing.payment,
        policy: pricing.policy,
        size: request.place,
        order,
        noise,
        on,
        calibration: parts.calibration?,
        expected_records: expected,
        auto: selection,
        private_order: request.private_order,
        smoothness,
        private_bandwidths,
        columns,
        axes,
        names: parts.names?,
        label: label.map(|label| label.label),
        function,
        sampled: parts.sampled,
    })
}

/// Checks that what depends on how much single records change is not asked of weighted users.
fn check_weights(
    document: &mut Document<'_>,
    written: &file::Release,
    request: &Checked<NoiseRequest>,
) {
    let Some(weights) = &written.weights else {
        return;
    };
    let has_private_order = request
        .as_ref()
        .is_ok_and(|request| request.private_order.is_some());
    if *weights.get_ref() == file::WrittenWeights::User
        && (has_private_order || written.sampled.is_some())
    {
        let what = "\"user\" goes neither with private_order nor with [release.sampled]";
        document.fault(weights.span(), what, "remove one of them");
    }
}

/// The function with records that weigh as much together as one, where a user has several.
fn user_weighted(
    document: &mut Document<'_>,
    place: Range<usize>,
    target: Spanned<ReadTarget>,
) -> Checked<Spanned<ReadTarget>> {
    let span = target.span();
    let mut target = target.into_inner();
    let is_of_places = matches!(
        target.function.about,
        TargetDescription::Density(_) | TargetDescription::Cells(_)
    );
    let weighted = UserWeighted::new(Arc::clone(&target.function.target));
    let Some(weighted) = weighted.filter(|_| is_of_places && target.private_bandwidths.is_none())
    else {
        let what =
            "\"user\" is for [release.density] with fixed bandwidths, and for [release.cells]";
        return Err(document.fault(place, what, "remove it"));
    };
    target.function.target = Arc::new(weighted);
    target.function.meaning = format!(
        "{}, where all records of a user in a window weigh as much as one together",
        target.function.meaning
    );
    Ok(Spanned::new(span, target))
}

/// The payment of a release whose price has no fault.
fn known_payment(pricing: &Checked<Pricing>) -> Option<Payment> {
    let pricing = pricing.as_ref().ok()?;
    Some(*pricing.payment.get_ref())
}

/// The grid of tables of cells, as far as the file gives it.
fn given_grid(
    document: &mut Document<'_>,
    request: &NoiseRequest,
    axes: &[DomainAxis],
) -> Checked<GivenGrid> {
    match &request.cells {
        Some(keys) => keys.read_grid(document, axes),
        None => Ok(GivenGrid::default()),
    }
}

/// Checks that the label of a release is none of its axes, which are these columns.
fn check_label_is_no_axis(
    document: &mut Document<'_>,
    label: Option<&Spanned<Labelled>>,
    columns: &[String],
) -> Checked<()> {
    match label {
        Some(label) if columns.contains(&label.get_ref().column) => {
            let what = format!("{} is already an axis", label.get_ref().column);
            Err(document.fault(label.span(), what, "the label cannot be an axis"))
        }
        _ => Ok(()),
    }
}

/// The law of the first kind of noise that the release may have.
fn first_law(request: &NoiseRequest) -> NoiseDistribution {
    request
        .kinds
        .first()
        .map_or(NoiseDistribution::DiscreteLaplace, |kind| {
            kind.noise_distribution()
        })
}

/// The choice that is in use: that of the search, if there was one, with the order that the file gives.
fn final_choice(
    request: &NoiseRequest,
    selection: Option<&NoiseSelection>,
    first: Coordinates,
) -> AutoChoice {
    let mut choice = match selection {
        Some(selection) => selection.taken.choice(),
        None => AutoChoice {
            noise: request.kinds.first().copied().unwrap_or(NoiseKind::Laplace),
            on: first,
            order: 1,
        },
    };
    if let Some(order) = NoiseRequest::fixed_value(&request.order) {
        choice.order = order;
    }
    choice
}

/// The keys of `[release]`, each as read or with the proof that it has a fault.
struct ReleaseParts {
    name: Checked<Spanned<String>>,
    request: Checked<NoiseRequest>,
    expected: Checked<Option<Spanned<u64>>>,
    /// For moments with a smoothness, where the price is known.
    planned: Option<FrequencyPlan>,
    calibration: Checked<Option<Spanned<Calibration>>>,
    names: Checked<Option<PlotNames>>,
    domain: Checked<Domain>,
    label: Checked<Option<Spanned<Labelled>>>,
    reader: Checked<TargetReader>,
    /// The function is one of tables of cells.
    has_tables: bool,
    weights: Field<file::WrittenWeights>,
    windows: Field<file::WrittenWindowKind>,
    smoothness: Field<file::SmoothnessClaim>,
    sampled: Field<file::SampledTable>,
}

impl ReleaseParts {
    fn read(
        document: &mut Document<'_>,
        table: Spanned<file::Release>,
        payment: Option<Payment>,
    ) -> Checked<Self> {
        let place = table.span();
        let mut written = table.into_inner();
        let name = document.required(&place, "name", written.name.take(), values::name);
        step_as_bandwidth(&mut written);
        let request = noise_request(document, &place, &mut written, payment);
        let expected = document.optional(written.expected_records.take(), values::count);
        // Moments choose their number by themselves: nothing is left to search for.
        let mut planned = None;
        let expected = match expected {
            Ok(expected) => match &written.moments {
                Some(moments) => {
                    let records =
                        records_of_moments(document, &place, moments.get_ref(), expected)?;
                    if let Some(records) = records
                        && let Some(payment) = payment
                    {
                        let epsilon = payment.epsilon().to_f64();
                        planned = Some(FrequencyPlan { records, epsilon });
                    }
                    Ok(None)
                }
                None => checked_expectation(document, &place, &request, expected),
            },
            Err(reported) => Err(reported),
        };
        check_weights(document, &written, &request);
        let calibration = read_calibration(document, written.scale.take(), &request);
        let about = [
            written.title.take(),
            written.description.take(),
            written.record.take(),
        ];
        let axes = written.domain.as_mut().map(Spanned::get_mut);
        let names = names::release_names(document, about, axes);
        let domain = match written.counts_by_key() {
            Some(counting) => no_domain(document, counting, written.domain.take()),
            None => read_domain(document, &place, written.domain.take()),
        };
        let has_tables = written.cells.is_some();
        take_counted_value(document, &mut written);
        let label = match written.label.take() {
            Some(written) => read_label(document, written).map(Some),
            None => Ok(None),
        };
        let reader = targets::only_target(document, place, &mut written);
        Ok(ReleaseParts {
            name,
            request,
            expected,
            planned,
            calibration,
            names,
            domain,
            label,
            reader,
            has_tables,
            weights: written.weights,
            windows: written.windows,
            smoothness: written.smoothness,
            sampled: written.sampled,
        })
    }
}

/// Checks that tables by key, which have no axes, are given none.
fn no_domain(
    document: &mut Document<'_>,
    counting: KeyedFunction,
    written: Field<Vec<Spanned<file::AxisTable>>>,
) -> Checked<Domain> {
    match written {
        Some(domain) => {
            let what = match counting {
                KeyedFunction::Counts => "has no effect: counts have no axes",
                KeyedFunction::Quantiles => "has no effect: quantiles by key have no axes",
            };
            Err(document.fault(domain.span(), what, hint_of_value(counting)))
        }
        None => Ok(Domain {
            columns: Vec::new(),
            axes: Vec::new(),
        }),
    }
}

fn hint_of_value(counting: KeyedFunction) -> &'static str {
    match counting {
        KeyedFunction::Counts => "remove it; what is summed is written in [release.counts] value",
        KeyedFunction::Quantiles => "remove it; the column is written in [release.quantiles] value",
    }
}

/// Makes the value of counts and quantiles the label of the release, which they have no other of.
fn take_counted_value(document: &mut Document<'_>, written: &mut file::Release) {
    let Some(counting) = written.counts_by_key() else {
        return;
    };
    if let Some(label) = &written.label {
        let what = match counting {
            KeyedFunction::Counts => "has no effect: counts have no label",
            KeyedFunction::Quantiles => "has no effect: quantiles by key have no label",
        };
        document.fault(label.span(), what, hint_of_value(counting));
    }
    if let Some(sampled) = &written.sampled {
        let what = match counting {
            KeyedFunction::Counts => {
                "has no effect: the sensitivity of counts is that of their caps"
            }
            KeyedFunction::Quantiles => {
                "has no effect: the sensitivity of quantiles is that of their counts"
            }
        };
        document.fault(sampled.span(), what, "remove [release.sampled]");
    }
    let of_counts = written.counts.as_mut();
    let of_quantiles = written.quantiles.as_mut();
    let value = of_counts
        .and_then(|counts| counts.get_mut().value.take())
        .or_else(|| of_quantiles.and_then(|quantiles| quantiles.get_mut().value.take()));
    written.label = value.map(|value| Spanned::new(value.span(), value.into_inner().into_label()));
}

/// Makes the step of tables of cells, where it is given alone, their smallest bandwidth too: every spline can be read with it.
fn step_as_bandwidth(written: &mut file::Release) {
    if let Some(cells) = &mut written.cells
        && let Some(step) = &written.step
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

/// Reads what the file says of noise and size; the keys are taken out of `written`.
fn noise_request(
    document: &mut Document<'_>,
    place: &Range<usize>,
    written: &mut file::Release,
    payment: Option<Payment>,
) -> Checked<NoiseRequest> {
    let keys = NoiseKeys {
        noise: written.noise.take(),
        degree: written.degree.take(),
        order: written.order.take(),
        private_order: written.private_order.take(),
        points: written.points.take(),
        cells: cells::CellKeys {
            spline: written.spline.take(),
            step: written.step.take(),
        },
    };
    // Which other keys belong to it depends on the noise, and on whether it is for moments or tables of cells.
    for key in ["noise", "moments", "cells", "counts", "quantiles"] {
        if let Some(reported) = document.reported_of(place, key) {
            return Err(reported);
        }
    }
    let payment = payment.as_ref();
    if written.moments.is_some() {
        NoiseRequest::of_moments(document, place, keys, payment)
    } else if written.cells.is_some() {
        NoiseRequest::of_tables(document, place, keys, payment)
    } else if let Some(counting) = written.counts_by_key() {
        let changed = written.changed_numbers();
        NoiseRequest::of_counts(
            document,
            place,
            keys,
            payment,
            CountedNoise { counting, changed },
        )
    } else {
        NoiseRequest::read(document, place, keys, payment)
    }
}

fn read_calibration(
    document: &mut Document<'_>,
    written: Field<file::WrittenScale>,
    request: &Checked<NoiseRequest>,
) -> Checked<Option<Spanned<Calibration>>> {
    let is_laplace = match request {
        Ok(request) => request.kinds == [NoiseKind::Laplace],
        Err(_) => true,
    };
    document.optional(written, |scale| match scale {
        file::WrittenScale::Tight => Ok(Calibration::Tight),
        file::WrittenScale::Paper if is_laplace => Ok(Calibration::Paper),
        file::WrittenScale::Paper => {
            Err("\"paper\" is for Laplace noise: remove `scale` or `noise`".to_owned())
        }
    })
}

/// Checks that the keys of `[release]` suit its function: its orders, its degree, and the expected number of records.
fn fits_the_request(
    document: &mut Document<'_>,
    request: &NoiseRequest,
    function: &ReleasedFunction,
    expected: &Option<Spanned<u64>>,
) -> Checked<()> {
    let shape = function.target.shape();
    if let Some(orders) = &request.private_order {
        private_order::can_be_chosen(document, orders, &shape)?;
    }
    if shape.basis == Basis::Affine {
        is_one(document, "degree", &request.degree)?;
        is_one(document, "order", &request.order)?;
    }
    if let Some(expected) = expected
        && request.open_keys().is_empty()
        && !matches!(function.about, TargetDescription::Density(_))
    {
        let what = "has no effect: noise and size are fixed";
        return Err(document.fault(
            expected.span(),
            what,
            r#"remove it, or set one of them to "auto""#,
        ));
    }
    Ok(())
}

/// Builds the function of a release on the coordinates that are tried for it.
struct FunctionBuilder<'a> {
    reader: &'a TargetReader,
    axes: &'a [DomainAxis],
    columns: &'a [String],
    label: Option<&'a Spanned<Labelled>>,
    planned: Option<FrequencyPlan>,
    declared: Option<&'a DeclaredUnits<'a>>,
    law: NoiseDistribution,
    weights: Option<&'a Spanned<file::WrittenWeights>>,
    grid: GivenGrid,
    /// Number of tables of cells.
    tables: u32,
}

impl<'a> FunctionBuilder<'a> {
    fn build(&self, document: &mut Document<'_>, on: Coordinates) -> Checked<Spanned<ReadTarget>> {
        let context = TargetContext {
            axes: self.axes,
            columns: self.columns,
            label: self.label,
            on,
            planned: self.planned,
            declared: self.declared,
            law: self.law,
        };
        let target = (self.reader)(document, &context)?;
        match self.weights {
            Some(weights) if *weights.get_ref() == file::WrittenWeights::User => {
                if self.declared.is_some_and(|declared| !declared.has_users) {
                    let what = "\"user\" needs users, and every record is a unit of its own";
                    let hint = "write privacy.unit = { user = { column = \"user_id\", per = \"1d\", max_records_per_window = 20 } }, or remove it";
                    return Err(document.fault(weights.span(), what, hint));
                }
                user_weighted(document, weights.span(), target)
            }
            _ => Ok(target),
        }
    }

    /// The search of `"auto"` over everything that the file leaves open.
    fn search(
        &self,
        request: &NoiseRequest,
        open: &'a [&'static str],
        expected_records: u64,
        price: Price,
        terms: ChoiceTerms,
    ) -> CandidateSearch<'a> {
        let orders = match &request.private_order {
            Some(private) => Some(private.get_ref().candidates.iter().copied().collect()),
            None => NoiseRequest::fixed_value(&request.order).map(|order| vec![order]),
        };
        CandidateSearch {
            kinds: request.kinds.clone(),
            degree: NoiseRequest::fixed_value(&request.degree),
            orders,
            points: NoiseRequest::fixed_value(&request.points),
            open,
            spline: self.grid.spline,
            steps: self.grid.steps,
            tables: self.tables,
            expected_records,
            price,
            terms,
            axes: self.axes,
        }
    }

    /// The best candidate of `search`, and the choice that is `kept` in its place, if it is one that the file allows.
    fn select(
        &self,
        document: &mut Document<'_>,
        request: &NoiseRequest,
        target: &Spanned<ReadTarget>,
        search: &CandidateSearch<'_>,
        kept: Option<AutoChoice>,
    ) -> Checked<NoiseSelection> {
        let mut found = self.choose(document, request, target, search)?;
        if let Some(kept) = kept.and_then(|choice| search.only_choice(&choice)) {
            found.taken = self.choose(document, request, target, &kept)?.best;
        }
        Ok(found)
    }

    /// The best candidate of `search`; a fault at `target` if there is none.
    fn choose(
        &self,
        document: &mut Document<'_>,
        request: &NoiseRequest,
        target: &Spanned<ReadTarget>,
        search: &CandidateSearch<'_>,
    ) -> Checked<NoiseSelection> {
        // Tried in a clone: what cannot be built is no candidate.
        let trial = document.clone();
        let chosen = search.choose_best(|on| {
            let target = self.build(&mut trial.clone(), on).ok()?;
            let function = target.into_inner().function;
            match &request.private_order {
                Some(orders) if !orders.get_ref().is_quick(&function.target.shape()) => None,
                _ => Some(function),
            }
        });
        chosen.ok_or_else(|| no_choice_fault(document, request, target, search))
    }
}

/// Checks that the smoothness fits the form of the function.
fn fitting_smoothness(
    document: &mut Document<'_>,
    smoothness: Field<file::SmoothnessClaim>,
    function: &Spanned<ReleasedFunction>,
) -> Checked<Option<Smoothness>> {
    let Some(smoothness) = smoothness else {
        return Ok(None);
    };
    let shape = function.get_ref().target.shape();
    if smoothness
        .get_ref()
        .0
        .fits_basis(shape.dimensions, &shape.basis)
    {
        return Ok(Some(smoothness.into_inner().0));
    }
    let hint = "numbers above 0, one an axis: `lipschitz` or `curvature` for a lattice; one `norm` for kernel points";
    Err(document.fault(
        smoothness.span(),
        "does not fit the form of the function",
        hint,
    ))
}

/// The expected number of records: required with `"auto"`; otherwise it is for densities, whose readers are told what they will see.
fn checked_expectation(
    document: &mut Document<'_>,
    place: &Range<usize>,
    request: &Checked<NoiseRequest>,
    expected: Option<Spanned<u64>>,
) -> Checked<Option<Spanned<u64>>> {
    let is_fixed = as_checked(request)?.open_keys().is_empty();
    if expected.is_some() || is_fixed {
        return Ok(expected);
    }
    // Misspelt, it is not left to the program.
    for key in ["spline", "step", "degree", "order", "points"] {
        if let Some(reported) = document.reported_of(place, key) {
            return Err(reported);
        }
    }
    Err(document.missing(place.clone(), "expected_records"))
}

/// The expected number of records of moments: required with a smoothness, refused without it.
fn records_of_moments(
    document: &mut Document<'_>,
    place: &Range<usize>,
    written: &moments::Table,
    expected: Option<Spanned<u64>>,
) -> Checked<Option<u64>> {
    let has_smoothness = written.smoothness.is_some();
    match expected {
        Some(expected) if has_smoothness => Ok(Some(expected.into_inner())),
        Some(expected) => {
            let what = "has no effect: the number of frequencies is fixed";
            Err(document.fault(
                expected.span(),
                what,
                "remove it, or give a smoothness in place of frequencies",
            ))
        }
        None if has_smoothness => Err(document.missing(place.clone(), "expected_records")),
        None => Ok(None),
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

/// The fault that `"auto"` found no candidate, with the reason.
fn no_choice_fault(
    document: &mut Document<'_>,
    request: &NoiseRequest,
    target: &Spanned<ReadTarget>,
    search: &CandidateSearch<'_>,
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
    let CandidateSearch { price, terms, .. } = *search;
    let kind = request.kinds.first().copied();
    let law = kind.unwrap_or(NoiseKind::Laplace).noise_distribution();
    let values = function.target.shape().value_count();
    let sensitivity =
        function
            .target
            .sensitivity_in(law.norm(), terms.adjacency, terms.contributions);
    let sensitivity = match sensitivity {
        Ok(sensitivity) => sensitivity,
        Err(why) => return document.fault(target.span(), why.to_string(), ""),
    };
    match Mechanism::calibrated(law, sensitivity, values, price) {
        Err(why) => document.fault(target.span(), why.to_string(), ""),
        Ok(_) => document.fault(place, "no lattice fits into a message", "publish to files"),
    }
}
