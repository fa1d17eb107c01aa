//! What the releases of recorded settings pay for their windows: for whoever asks later where a budget went.

use serde_json::Value;

use crate::accountant::policy::{Policy, number};
use crate::clock::Timestamp;
use crate::mechanism::calibrate::Epsilon;
use crate::mechanism::price::Price;
use crate::window::grid::{Blocks, Grid, Span};

/// The releases of recorded settings, and the grids that they are charged on.
#[derive(Clone, Debug)]
pub struct Recorded {
    windows: Grid,
    blocks: Blocks,
    releases: Vec<Release>,
}

#[derive(Clone, Debug)]
struct Release {
    name: String,
    policy: Policy,
    /// How many windows it is computed from, each of whose blocks pays.
    panes: u32,
}

/// What one release is charged for one window.
pub type Charge<'a> = (&'a str, Vec<(Span, Price)>);

impl Recorded {
    /// Reads recorded settings ([`canonical::recorded`](super::canonical::recorded)); `None` if this program does not understand them.
    pub fn read(settings: &str) -> Option<Self> {
        let settings: Value = serde_json::from_str(settings).ok()?;
        let grid = |about: &Value| {
            let origin: Timestamp = serde_json::from_value(about.get("origin")?.clone()).ok()?;
            Grid::new(origin, std::time::Duration::from_micros(about.get("length")?.as_u64()?))
        };
        let windows = grid(settings.get("windows")?)?;
        let bound = settings.get("ledger")?;
        let blocks = match bound.get("blocks")? {
            Value::String(_) => Blocks::Forever,
            about => grid(about)?.into(),
        };
        let total: Price = serde_json::from_value(bound.get("total")?.clone()).ok()?;
        let releases = match total {
            // A window takes one, for all its releases together.
            Price::Slots(_) => {
                let name = "all releases of the plan".to_owned();
                vec![Release { name, policy: Policy::Fixed(Price::SLOT), panes: 1 }]
            }
            _ => {
                let all = settings.get("releases")?.as_object()?.iter();
                all.map(|(name, about)| release(name, about)).collect::<Option<_>>()?
            }
        };
        Some(Recorded { windows, blocks, releases })
    }

    pub fn blocks(&self) -> Blocks {
        self.blocks
    }

    /// Which release was charged what for `window`, if that adds up to what its row says, `charged`, exactly; `None` if it does not.
    ///
    /// `first` is the first window of the ledger.
    pub fn of(&self, window: Span, first: Timestamp, charged: &[(Span, Price)]) -> Option<Vec<Charge<'_>>> {
        let mut parts = Vec::new();
        for release in &self.releases {
            let start = self.windows.before(window, release.panes.saturating_sub(1)).max(first);
            let block = self.blocks.span_of(start);
            let Some(price) = release.policy.price(number(self.windows, block, first, window)) else { continue };
            let span = Span { start, end: window.end };
            let blocks = self.blocks.spans_meeting(span).map(|block| (block, price)).collect();
            parts.push((release.name.as_str(), blocks));
        }
        let is_whole = |(block, price): &(Span, Price)| {
            let own =
                parts.iter().flat_map(|(_, charges): &Charge<'_>| charges).filter(|(charged, _)| charged == block);
            own.copied().try_fold(price.zero(), |sum, (_, part)| sum.checked_add(part)) == Some(*price)
        };
        let is_known = |(block, _): &(Span, Price)| charged.iter().any(|(charged, _)| charged == block);
        let is_all = parts.iter().flat_map(|(_, charges)| charges).all(is_known);
        (is_all && charged.iter().all(is_whole)).then_some(parts)
    }
}

fn release(name: &str, about: &Value) -> Option<Release> {
    let read = |value: &Value| serde_json::from_value::<Price>(value.clone()).ok();
    let price = about.get("price")?;
    let policy = if let (Some(share), Some(windows)) = (price.get("share"), price.get("horizon")) {
        Policy::Horizon { share: read(share)?, windows: windows.as_u64()?.try_into().ok()? }
    } else if let (Some(share), Some(windows)) = (price.get("share"), price.get("half_after")) {
        Policy::Decaying { share: read(share)?, half_after: windows.as_u64()?.try_into().ok()? }
    } else {
        let choices = ["private_bandwidths", "private_order"].into_iter().filter_map(|choice| about.get(choice));
        let choices: Option<Vec<Epsilon>> =
            choices.map(|choice| serde_json::from_value(choice.get("price")?.clone()).ok()).collect();
        Policy::Fixed(choices?.into_iter().fold(read(price)?, Price::with_pure))
    };
    // Sums over records pay for each window once: their noise is correlated.
    let kind = about.get("function")?.as_object()?.keys().next()?;
    let is_sum = ["density", "sum", "moments", "cells"].contains(&kind.as_str());
    let panes = about.pointer("/windows/hopping/panes").and_then(Value::as_u64).filter(|_| !is_sum).unwrap_or(1);
    Some(Release { name: name.to_owned(), policy, panes: panes.try_into().ok()? })
}
