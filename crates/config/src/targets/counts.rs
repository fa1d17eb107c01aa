//! `[release.counts]`: users, records, sums, means and variances for each key.
// Forms of values have lists and tables in brackets.
#![allow(rustdoc::broken_intra_doc_links)]

use std::ops::Range;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::file;
use crate::settings::ReleasedFunction;
use crate::targets::context::{DeclaredUnits, ReadTarget, TargetContext, built_target};
use crate::targets::found_counts::FoundCounts;
use crate::targets::told_caps::{CapsTable, told_caps};
use crate::text::{Checked, Document, Field, Reported, Spanned, values};
use bernstream_functions::key_counts::{CountedStatistic, KeyCounts, StatisticShare};
use bernstream_release::ValueScaling;
use bernstream_release::window::{
    DomainAxis, KeyCounting, MOST_RECORDS, RankKey, RecordLabel, UnitSum,
};
use bernstream_synopsis::description;
use bernstream_synopsis::description::{CountedValue, KeyedCounts, PricePart, ValueBounds};

/// a table such as { of = ["users"], max_keys = 1 }
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// a list of one or more of "users", "records", "sum", "mean" and "variance", such as ["users"]: what is told of each key
    pub of: Field<Vec<Spanned<CountedName>>>,
    /// a whole number from 1, such as 3: the most keys of a user that count in a window
    #[schemars(range(min = 1))]
    pub max_keys: Field<u32>,
    /// a whole number from 1 to 1048576, such as 4: the most records of a user and key that count, with the mean of all of them
    #[schemars(range(min = 1, max = 1_048_576))]
    pub max_records: Field<u32>,
    /// a table such as { column = "amount", min = 0, max = 500, outside = "clamp" }: what is summed
    pub value: Field<ValueColumn>,
    /// a table such as { min = 0, max = 300 }: bounds of the sum of a user and key, in place of max_records
    pub per_user: Field<SumRange>,
    /// a table such as { users = 0.3, sum = 0.7 }: parts of the price, 1 together; without it they are equal
    pub parts: Field<PriceParts>,
    /// a table such as { part = 0.05, most = 32 }: tells how many keys users have, and so what max_keys drops
    pub caps: Field<CapsTable>,
}

/// "users", "records", "sum", "mean" or "variance"
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CountedName {
    Users,
    Records,
    Sum,
    Mean,
    Variance,
}

impl CountedName {
    pub(super) fn name(self) -> &'static str {
        match self {
            CountedName::Users => "users",
            CountedName::Records => "records",
            CountedName::Sum => "sum",
            CountedName::Mean => "mean",
            CountedName::Variance => "variance",
        }
    }
}

/// a table such as { column = "amount", min = 0, max = 500, outside = "clamp" }
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ValueColumn {
    /// the name of a column of numbers, such as "amount"
    pub column: Field<String>,
    /// a number such as 0: a bound that does not come from the data
    pub min: Field<f64>,
    /// a number such as 500: a bound that does not come from the data
    pub max: Field<f64>,
    /// "clamp" or "drop"
    pub outside: Field<file::WrittenOutside>,
}

impl ValueColumn {
    /// The column as a label, which it is to a window.
    pub fn into_label(self) -> file::LabelTable {
        file::LabelTable {
            column: self.column,
            min: self.min,
            max: self.max,
            outside: self.outside,
            above: None,
            values: None,
        }
    }
}

/// a table such as { min = 0, max = 300 }
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SumRange {
    /// a number such as 0, at most 0: a bound that does not come from the data
    pub min: Field<f64>,
    /// a number such as 300, at least 0: a bound that does not come from the data
    pub max: Field<f64>,
}

/// a table such as { users = 0.3, sum = 0.7 }
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PriceParts {
    /// a number above 0, at most 1, such as 0.5: a part of the price
    #[schemars(extend("exclusiveMinimum" = 0, "maximum" = 1))]
    pub users: Field<f64>,
    /// a number above 0, at most 1, such as 0.5: a part of the price
    #[schemars(extend("exclusiveMinimum" = 0, "maximum" = 1))]
    pub records: Field<f64>,
    /// a number above 0, at most 1, such as 0.5: a part of the price
    #[schemars(extend("exclusiveMinimum" = 0, "maximum" = 1))]
    pub sum: Field<f64>,
    /// a number above 0, at most 1, such as 0.5: a part of the price
    #[schemars(extend("exclusiveMinimum" = 0, "maximum" = 1))]
    pub mean: Field<f64>,
    /// a number above 0, at most 1, such as 0.5: a part of the price
    #[schemars(extend("exclusiveMinimum" = 0, "maximum" = 1))]
    pub variance: Field<f64>,
}

/// The caps of a unit.
pub(super) struct UnitCaps {
    pub max_keys: u32,
    /// Cap on the records of a key; of releases that count records, or the records of values.
    pub max_records: Option<u32>,
}

pub fn read(
    document: &mut Document<'_>,
    context: &TargetContext<'_>,
    place: &Range<usize>,
    written: Table,
) -> Checked<ReadTarget> {
    let Some(declared) = &context.declared else {
        // The fault of `[input]` or `[privacy]` has been told.
        return Err(match document.reported() {
            Some(reported) => reported,
            None => document.fault(place.clone(), "needs [input] and [privacy]", ""),
        });
    };
    let of = document.required(place, "of", written.of.clone(), several_names)?;
    // Without a name that was not understood, other settings may seem to have no effect.
    if let Some(reported) = document.reported_within(&of.span()) {
        return Err(reported);
    }
    if let Some(search) = &declared.search {
        return FoundCounts::new(&written, search, declared).read(
            document,
            place,
            &of,
            context.law,
        );
    }
    let names = CountedNames(of.get_ref());
    names.check_unit(document, of.span(), declared)?;
    let value = counted_value(document, context, place, &names)?;
    let per_user = match &written.per_user {
        Some(range) => Some(sum_range(document, range, &names, declared)?),
        None => None,
    };
    let statistics = names.statistics(per_user.is_some());
    let caps = unit_caps(document, place, &written, declared, &statistics)?;
    let mut shares = price_parts(document, &written.parts, of.get_ref(), &statistics)?;
    let keys: Vec<String> = declared.keys.to_vec();
    let key_count = u32::try_from(keys.len()).unwrap_or(u32::MAX);
    let max_keys = caps.max_keys.min(key_count);
    let mut unit_bins = Vec::new();
    if let Some(written) = &written.caps {
        let told = told_caps(document, written, declared, max_keys)?;
        unit_bins = told.unit_bins(key_count, max_keys);
        told.take_part(&mut shares);
    }
    let sum = match (per_user, value) {
        (Some(range), Some(value)) => Some(UnitSum {
            value_min: value.bounds.min,
            value_max: value.bounds.max,
            min: range.min,
            max: range.max,
        }),
        _ => None,
    };
    let counting = KeyCounting {
        max_keys,
        max_records: caps.max_records.unwrap_or(1),
        keys,
        sum,
        keeps_squares: names.has(CountedName::Variance),
        grid: None,
        unit_bins,
        ranks: RankKey::for_pipeline(declared.pipeline),
    };
    let about = KeyedCounts {
        max_keys: counting.max_keys,
        max_records: caps.max_records,
        per_user,
        value: value.map(|value| CountedValue {
            column: value.column.to_owned(),
            min: value.bounds.min,
            max: value.bounds.max,
        }),
        quantiles: None,
        parts: described_parts(&shares),
    };
    let built = KeyCounts::new(counting, &shares, context.law.norm());
    let target = built_target(document, place, built)?;
    let meaning = names.meaning(value.map(|value| value.column), declared);
    Ok(ReleasedFunction {
        quantity: "of each column".to_owned(),
        scaling: ValueScaling::of_target(&*target),
        about: description::TargetDescription::Counts(about),
        feature: None,
        meaning,
        target,
    }
    .into())
}

fn several_names(names: Vec<Spanned<CountedName>>) -> Result<Vec<CountedName>, String> {
    let mut several = Vec::new();
    for name in names {
        let name = name.into_inner();
        if several.contains(&name) {
            return Err(format!("has \"{}\" twice", name.name()));
        }
        several.push(name);
    }
    match several.is_empty() {
        true => Err(
            "must name one or more of \"users\", \"records\", \"sum\", \"mean\" and \"variance\""
                .to_owned(),
        ),
        false => Ok(several),
    }
}

/// The column that is summed, and its bounds.
#[derive(Clone, Copy)]
struct SummedColumn<'a> {
    column: &'a str,
    bounds: &'a DomainAxis,
}

/// Names of what is told of each key.
struct CountedNames<'a>(&'a [CountedName]);

impl CountedNames<'_> {
    fn has(&self, name: CountedName) -> bool {
        self.0.contains(&name)
    }

    fn needs_value(&self) -> bool {
        self.has(CountedName::Sum) || self.needs_records_of_values()
    }

    /// A mean and a variance are those of records, and not of users.
    fn needs_records_of_values(&self) -> bool {
        self.has(CountedName::Mean) || self.has(CountedName::Variance)
    }

    /// Users are counted where records belong to users.
    fn check_unit(
        &self,
        document: &mut Document<'_>,
        place: Range<usize>,
        declared: &DeclaredUnits<'_>,
    ) -> Checked<()> {
        if self.has(CountedName::Users) && !declared.has_users {
            let what = "users cannot be counted where every record is a unit of its own";
            let hint = "write privacy.unit = { user = { column = \"user_id\", per = \"1d\" } }, or count \"records\"";
            return Err(document.fault(place, what, hint));
        }
        Ok(())
    }

    /// The statistics that are released for them: records, sum, mean and variance come of the same numbers.
    fn statistics(&self, has_bounded_sums: bool) -> Vec<CountedStatistic> {
        let mut statistics = Vec::new();
        if self.has(CountedName::Users) {
            statistics.push(CountedStatistic::Users);
        }
        if self.needs_value() && !has_bounded_sums {
            statistics.push(CountedStatistic::Values);
            return statistics;
        }
        if self.has(CountedName::Records) {
            statistics.push(CountedStatistic::Records);
        }
        if self.has(CountedName::Sum) {
            statistics.push(CountedStatistic::Sums);
        }
        statistics
    }

    fn meaning(&self, column: Option<&str>, declared: &DeclaredUnits<'_>) -> String {
        let mut words = Vec::new();
        for name in self.0 {
            words.push(match name {
                CountedName::Users => "different users".to_owned(),
                CountedName::Records => "records".to_owned(),
                CountedName::Sum => format!("sum of {}", column.unwrap_or_default()),
                CountedName::Mean => format!("mean of {}", column.unwrap_or_default()),
                CountedName::Variance => format!("variance of {}", column.unwrap_or_default()),
            });
        }
        match declared.columns {
            [] => words.join(", "),
            columns => format!("{} of each {}", words.join(", "), columns.join(" and ")),
        }
    }
}

/// The statistic that a name is read from.
fn statistic_of(name: CountedName, statistics: &[CountedStatistic]) -> CountedStatistic {
    let values = CountedStatistic::Values;
    match name {
        CountedName::Users => CountedStatistic::Users,
        _ if statistics.contains(&values) => values,
        CountedName::Records => CountedStatistic::Records,
        CountedName::Sum | CountedName::Mean | CountedName::Variance => CountedStatistic::Sums,
    }
}

fn counted_value<'a>(
    document: &mut Document<'_>,
    context: &'a TargetContext<'_>,
    place: &Range<usize>,
    names: &CountedNames<'_>,
) -> Checked<Option<SummedColumn<'a>>> {
    let Some(label) = context.label else {
        if names.needs_value() {
            return Err(document.missing(place.clone(), "value"));
        }
        return Ok(None);
    };
    if !names.needs_value() {
        let what = "has no effect: none of \"sum\", \"mean\" and \"variance\" is told";
        return Err(document.fault(label.span(), what, "remove it, or add \"sum\" to `of`"));
    }
    match &label.get_ref().label {
        RecordLabel::Number(bounds)
            if names.has(CountedName::Variance) && !has_square(bounds.max - bounds.min) =>
        {
            let what = "has no variance: max - min is too large or too small to be squared";
            let hint = "bounds that far apart, or that near, come of a mistake: take those within which values lie";
            Err(document.fault(label.span(), what, hint))
        }
        RecordLabel::Number(bounds) => Ok(Some(SummedColumn {
            column: &label.get_ref().column,
            bounds,
        })),
        RecordLabel::Above(_) | RecordLabel::Classes(_) => {
            Err(document.missing(place.clone(), "value"))
        }
    }
}

/// Returns whether a square is a number with all its digits.
fn has_square(number: f64) -> bool {
    (number * number).is_normal()
}

fn sum_range(
    document: &mut Document<'_>,
    range: &Spanned<SumRange>,
    names: &CountedNames<'_>,
    declared: &DeclaredUnits<'_>,
) -> Checked<ValueBounds> {
    let place = range.span();
    if !declared.has_users {
        let what = "has no effect: every record is a unit of its own";
        return Err(document.fault(place, what, "remove it: `value` bounds a record"));
    }
    if !names.has(CountedName::Sum) || names.needs_records_of_values() {
        let what = "bounds sums of users, of which no mean and no variance can be told";
        let hint = "give `max_records` in place of `per_user`, or tell \"sum\" without \"mean\" and \"variance\"";
        return Err(document.fault(place, what, hint));
    }
    let written = range.get_ref().clone();
    let min = document.required(&place, "min", written.min, values::finite);
    let max = document.required(&place, "max", written.max, values::finite);
    let bounds = ValueBounds {
        min: min?.into_inner(),
        max: max?.into_inner(),
    };
    if bounds.min > 0.0 || bounds.max < 0.0 || bounds.min >= bounds.max {
        let what = "must have 0 inside, or at an end: a user without records has the sum 0";
        return Err(document.fault(place, what, "such as { min = 0, max = 300 }"));
    }
    Ok(bounds)
}

pub(super) fn unit_caps(
    document: &mut Document<'_>,
    place: &Range<usize>,
    written: &Table,
    declared: &DeclaredUnits<'_>,
    statistics: &[CountedStatistic],
) -> Checked<UnitCaps> {
    if !declared.has_users {
        if let Some(cap) = written.max_keys.as_ref().or(written.max_records.as_ref()) {
            let what = "has no effect: every record is a unit of its own, in one key";
            return Err(document.fault(cap.span(), what, "remove it"));
        }
        return Ok(UnitCaps {
            max_keys: 1,
            max_records: Some(1),
        });
    }
    let counts_records = statistics
        .iter()
        .any(|one| matches!(one, CountedStatistic::Records | CountedStatistic::Values));
    let max_keys = match (&written.max_keys, declared.columns) {
        (None, []) => 1,
        _ => document
            .required(place, "max_keys", written.max_keys.clone(), values::count)?
            .into_inner(),
    };
    let max_records = match &written.max_records {
        Some(cap) if !counts_records => {
            let what = "has no effect: no records are counted";
            return Err(document.fault(cap.span(), what, "remove it"));
        }
        None if !counts_records => None,
        _ => {
            let cap = document.required(
                place,
                "max_records",
                written.max_records.clone(),
                record_cap,
            )?;
            Some(cap.into_inner())
        }
    };
    Ok(UnitCaps {
        max_keys,
        max_records,
    })
}

fn record_cap(number: u32) -> Result<u32, String> {
    match number {
        1..=MOST_RECORDS => Ok(number),
        _ => Err(format!("must be from 1 to {MOST_RECORDS}")),
    }
}

const PARTS_HINT: &str = "the parts are 1 together, such as { users = 0.3, sum = 0.7 }";

/// The parts of the price: those of names that come of the same numbers add up.
fn price_parts(
    document: &mut Document<'_>,
    written: &Field<PriceParts>,
    names: &[CountedName],
    statistics: &[CountedStatistic],
) -> Checked<Vec<StatisticShare>> {
    let Some(parts) = written else {
        let part = 1.0 / statistics.len() as f64;
        return Ok(statistics
            .iter()
            .map(|statistic| StatisticShare {
                statistic: *statistic,
                part,
            })
            .collect());
    };
    if let Some(reported) = document.reported_within(&parts.span()) {
        return Err(reported);
    }
    let mut shares: Vec<StatisticShare> = Vec::new();
    for name in [
        CountedName::Users,
        CountedName::Records,
        CountedName::Sum,
        CountedName::Mean,
        CountedName::Variance,
    ] {
        let Some(part) = parts.get_ref().of_name(name) else {
            continue;
        };
        if !names.contains(&name) {
            let what = format!("\"{}\" is not told", name.name());
            return Err(document.fault(part.span(), what, "remove it, or add it to `of`"));
        }
        let number = *part.get_ref();
        if !(number > 0.0 && number <= 1.0) {
            let what = "must be above 0 and at most 1";
            return Err(document.fault(part.span(), what, PARTS_HINT));
        }
        let statistic = statistic_of(name, statistics);
        match shares.iter_mut().find(|share| share.statistic == statistic) {
            Some(share) => share.part += number,
            None => shares.push(StatisticShare {
                statistic,
                part: number,
            }),
        }
    }
    for statistic in statistics {
        if !shares.iter().any(|share| share.statistic == *statistic) {
            return Err(no_part(
                document,
                parts.span(),
                *statistic,
                names,
                statistics,
            ));
        }
    }
    let whole: f64 = shares.iter().map(|share| share.part).sum();
    if (whole - 1.0).abs() > 1e-9 {
        // Without the digits of rounding.
        let whole = (whole * 1e9).round() / 1e9;
        let what = format!("adds up to {whole}, not to 1");
        return Err(document.fault(parts.span(), what, PARTS_HINT));
    }
    // In the order of the columns, whatever the order in the file.
    shares.sort_by_key(|share| {
        let mut places = statistics.iter();
        places.position(|statistic| *statistic == share.statistic)
    });
    Ok(shares)
}

/// Records that no part is given for a statistic, which may have several of `names`.
fn no_part(
    document: &mut Document<'_>,
    place: Range<usize>,
    statistic: CountedStatistic,
    names: &[CountedName],
    statistics: &[CountedStatistic],
) -> Reported {
    let mut quoted = Vec::new();
    for name in names {
        if statistic_of(*name, statistics) == statistic {
            quoted.push(format!("\"{}\"", name.name()));
        }
    }
    let what = format!("gives no part to {}", quoted.join(" and "));
    let hint = match quoted.len() {
        1 => PARTS_HINT,
        _ => {
            "they come of the same numbers: give one part to all of them, under one of their names"
        }
    };
    document.fault(place, what, hint)
}

impl PriceParts {
    fn of_name(&self, name: CountedName) -> Option<&Spanned<f64>> {
        match name {
            CountedName::Users => self.users.as_ref(),
            CountedName::Records => self.records.as_ref(),
            CountedName::Sum => self.sum.as_ref(),
            CountedName::Mean => self.mean.as_ref(),
            CountedName::Variance => self.variance.as_ref(),
        }
    }
}

fn described_parts(shares: &[StatisticShare]) -> Vec<PricePart> {
    let mut parts = Vec::new();
    for share in shares {
        let of = match share.statistic {
            CountedStatistic::Users => "users",
            CountedStatistic::Records => "records",
            CountedStatistic::Values => "values",
            CountedStatistic::Sums => "sums",
            CountedStatistic::Ranges => "ranges",
            CountedStatistic::Caps => "caps",
        };
        parts.push(PricePart {
            of: of.to_owned(),
            part: share.part,
        });
    }
    parts
}
