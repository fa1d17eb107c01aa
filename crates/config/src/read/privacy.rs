//! `[privacy]`

use crate::file;
use crate::read::budget;
use crate::read::budget::{Amounts, BudgetSpec};
use crate::read::share::share;
use crate::recorded::Recorded;
use crate::settings::{Privacy, Unit};
use crate::text::{Checked, Document, Spanned, values};
use bernstream_synopsis::Adjacency;
use bernstream_synopsis::Fraction;

/// `recorded` is what the ledger says, where it is known.
pub fn privacy(
    document: &mut Document<'_>,
    table: Spanned<file::Privacy>,
    recorded: Option<&Recorded>,
) -> Checked<Privacy> {
    let place = table.span();
    let written = table.into_inner();
    let amounts = Amounts {
        epsilon: written.epsilon,
        delta: written.delta,
        rho: written.rho,
    };
    let composition = written.composition.clone();
    let book = budget::budget(
        document,
        &place,
        amounts,
        written.composition,
        written.windows,
        recorded,
    );
    let whole = book
        .as_ref()
        .map(|book| book.total)
        .map_err(|reported| *reported);
    let shared = written
        .budget
        .map(|table| share(document, table, &composition, whole))
        .transpose();
    let unit = document.required(&place, "unit", written.unit, Ok);
    let is_user = unit
        .as_ref()
        .is_ok_and(|unit| matches!(unit.get_ref(), file::Unit::User(_)));
    let unit = unit.and_then(|unit| match unit.into_inner() {
        file::Unit::Record => Ok(Unit::Record),
        file::Unit::User(user) => self::user(document, user),
    });
    let adjacency = document
        .required(&place, "adjacency", written.adjacency, Ok)
        .and_then(|adjacency| {
            let place = adjacency.span();
            match adjacency.into_inner() {
                file::Adjacency::AddRemove => Ok((Adjacency::AddRemove, None)),
                file::Adjacency::ReplaceOne(_) if is_user => {
                    let what =
                        "replace_one protects the values of a record, not all records of a user";
                    Err(document.fault(place, what, r#"use "add_remove""#))
                }
                file::Adjacency::ReplaceOne(replace) => {
                    let place = replace.span();
                    let written = replace.into_inner();
                    let n = document.required(
                        &place,
                        "records_per_window",
                        written.records_per_window,
                        values::count,
                    )?;
                    Ok((Adjacency::ReplaceOne, Some(n.into_inner())))
                }
            }
        });
    let reserve = document.optional(written.reserve, values::reserve);
    let (adjacency, records_per_window) = adjacency?;
    let unit = unit?;
    let BudgetSpec {
        total,
        definition,
        implies,
    } = book?;
    let reserve = reserve?.map_or(Fraction::ZERO, Spanned::into_inner);
    let (total, budget) = match shared? {
        Some((own, budget)) => (own, Some(budget)),
        None => (total, None),
    };
    Ok(Privacy {
        unit,
        adjacency,
        records_per_window,
        definition,
        total,
        implies,
        reserve,
        budget,
    })
}

fn user(document: &mut Document<'_>, table: Spanned<file::User>) -> Checked<Unit> {
    let place = table.span();
    let written = table.into_inner();
    let column = document.required(&place, "column", written.column, values::words);
    let per = document.required(&place, "per", written.per, values::period);
    let cap = document.required(
        &place,
        "max_records_per_window",
        written.max_records_per_window,
        values::count,
    );
    Ok(Unit::User {
        column: column?.into_inner(),
        per: per?.into_inner(),
        max_records_per_window: cap?.into_inner(),
    })
}
