//! `budget` of `[privacy]`: a share of a total that several pipelines keep together.

use crate::file;
use crate::file::Composition;
use crate::settings::SharedBudget;
use crate::text::{Checked, Document, Field, Spanned, values};
use bernstream_synopsis::price::Price;

/// A shared budget, and the total that this pipeline has of it: its share, rounded down.
pub struct BudgetShare {
    pub own: Price,
    pub budget: SharedBudget,
}

/// Reads `budget`; `whole` is the total that stands beside it.
pub fn read_share(
    document: &mut Document<'_>,
    table: Spanned<file::SharedBudgetTable>,
    composition: &Field<Composition>,
    whole: Checked<Price>,
) -> Checked<BudgetShare> {
    let place = table.span();
    let written = table.into_inner();
    let topic = document.required(&place, "topic", written.topic, values::name);
    let share = document.required(&place, "share", written.share, values::share);
    if let Some(composition) = composition
        && *composition.get_ref() != Composition::Sum
    {
        let what =
            "works a total out for the releases of one pipeline, and cannot be shared with others";
        return Err(document.fault(
            composition.span(),
            what,
            "write the whole total as `epsilon`, `delta` or `rho`",
        ));
    }
    let topic = topic?.into_inner();
    let share = share?;
    let whole = whole?;
    let place = share.span();
    let share = share.into_inner();
    let own = share.part_of_price(whole);
    for (own_part, whole_part) in own.smallest_units().iter().zip(whole.smallest_units()) {
        if *own_part == 0 && whole_part > 0 {
            let what = format!(
                "leaves nothing of the whole total, {whole}, because shares are rounded down"
            );
            return Err(document.fault(place, what, "ask for more, or raise the total"));
        }
    }
    let budget = SharedBudget {
        topic,
        share,
        whole,
    };
    Ok(BudgetShare { own, budget })
}
