//! `[privacy]`

use crate::file;
use crate::read::as_checked;
use crate::read::budget;
use crate::read::budget::{Amounts, BudgetSpec};
use crate::read::share::read_share;
use crate::recorded::RecordedSettings;
use crate::settings::{PrivacySettings, PrivacyUnit};
use crate::text::{Checked, Document, Spanned, values};
use bernstream_synopsis::Adjacency;
use bernstream_synopsis::Fraction;

/// `has_records` says that a release keeps records, and `recorded` is what the ledger says, where it is known.
pub fn read_privacy(
    document: &mut Document<'_>,
    table: Spanned<file::PrivacyTable>,
    has_records: bool,
    recorded: Option<&RecordedSettings>,
) -> Checked<PrivacySettings> {
    let place = table.span();
    let written = table.into_inner();
    let amounts = Amounts {
        epsilon: written.epsilon,
        delta: written.delta,
        rho: written.rho,
    };
    let composition = written.composition.clone();
    let own = budget::read_budget(
        document,
        &place,
        amounts,
        written.composition,
        written.windows,
        recorded,
    );
    let shared = match written.budget {
        Some(table) => {
            let whole = as_checked(&own).map(|own| own.total);
            read_share(document, table, &composition, whole).map(Some)
        }
        None => Ok(None),
    };
    let unit = document.required(&place, "unit", written.unit, Ok);
    let is_user = unit
        .as_ref()
        .is_ok_and(|unit| matches!(unit.get_ref(), file::WrittenUnit::User(_)));
    let unit = unit.and_then(|unit| match unit.into_inner() {
        file::WrittenUnit::Record => Ok(PrivacyUnit::Record),
        file::WrittenUnit::User(user) => self::read_user(document, user, has_records),
    });
    let adjacency = document
        .required(&place, "adjacency", written.adjacency, Ok)
        .and_then(|adjacency| read_neighbours(document, adjacency, is_user));
    let reserve = document.optional(written.reserve, values::reserve);
    let AdjacencySettings {
        adjacency,
        records_per_window,
    } = adjacency?;
    let unit = unit?;
    let BudgetSpec {
        total,
        definition,
        implies,
    } = own?;
    let reserve = reserve?.map_or(Fraction::ZERO, Spanned::into_inner);
    let mut privacy = PrivacySettings {
        unit,
        adjacency,
        records_per_window,
        definition,
        total,
        implies,
        reserve,
        budget: None,
    };
    if let Some(share) = shared? {
        privacy.total = share.own;
        privacy.budget = Some(share.budget);
    }
    Ok(privacy)
}

/// The adjacency, and the public number of records under `replace_one`.
struct AdjacencySettings {
    adjacency: Adjacency,
    records_per_window: Option<u64>,
}

fn read_neighbours(
    document: &mut Document<'_>,
    written: Spanned<file::WrittenAdjacency>,
    is_user: bool,
) -> Checked<AdjacencySettings> {
    let place = written.span();
    match written.into_inner() {
        file::WrittenAdjacency::AddRemove => Ok(AdjacencySettings {
            adjacency: Adjacency::AddRemove,
            records_per_window: None,
        }),
        file::WrittenAdjacency::ReplaceOne(_) if is_user => {
            let what = "replace_one protects the values of a record, not all records of a user";
            Err(document.fault(place, what, r#"use "add_remove""#))
        }
        file::WrittenAdjacency::ReplaceOne(replace) => {
            let place = replace.span();
            let written = replace.into_inner();
            let records = document.required(
                &place,
                "records_per_window",
                written.records_per_window,
                values::count,
            )?;
            Ok(AdjacencySettings {
                adjacency: Adjacency::ReplaceOne,
                records_per_window: Some(records.into_inner()),
            })
        }
    }
}

fn read_user(
    document: &mut Document<'_>,
    table: Spanned<file::UserTable>,
    has_records: bool,
) -> Checked<PrivacyUnit> {
    let place = table.span();
    let written = table.into_inner();
    let column = document.required(&place, "column", written.column, values::words);
    let per = document.required(&place, "per", written.per, values::period);
    let cap = match written.max_records_per_window {
        None if !has_records => Ok(None),
        Some(cap) if !has_records => {
            let what = "has no effect: counts by key have caps of their own";
            let hint = "remove it: max_keys and max_records of [release.counts], or max_keys of [release.quantiles], take its place";
            Err(document.fault(cap.span(), what, hint))
        }
        cap => document
            .required(&place, "max_records_per_window", cap, values::count)
            .map(|cap| Some(cap.into_inner())),
    };
    Ok(PrivacyUnit::User {
        column: column?.into_inner(),
        per: per?.into_inner(),
        max_records_per_window: cap?,
    })
}
