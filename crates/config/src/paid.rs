//! What the releases of recorded settings pay for their windows: for whoever asks later where a budget went.

use serde_json::Value;

use bernstream_noise::accountant::policy::{Policy, number};
use bernstream_synopsis::calibrate::Epsilon;
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::grid::{Blocks, Grid, Span};
use bernstream_synopsis::price::Price;

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

/// The most releases of which it is tried whether they are over.
const MOST_ENDING: usize = 8;

/// What one release is charged for one window.
pub type Charge<'a> = (&'a str, Vec<(Span, Price)>);

impl Recorded {
    /// Reads recorded settings ([`canonical::recorded`](super::canonical::recorded)); `None` if this program does not understand them.
    pub fn read(settings: &str) -> Option<Self> {
        let settings: Value = serde_json::from_str(settings).ok()?;
        let grid = |about: &Value| {
            let origin: Timestamp = serde_json::from_value(about.get("origin")?.clone()).ok()?;
            Grid::new(
                origin,
                std::time::Duration::from_micros(about.get("length")?.as_u64()?),
            )
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
                vec![Release {
                    name,
                    policy: Policy::Fixed(Price::SLOT),
                    panes: 1,
                }]
            }
            _ => {
                let all = settings.get("releases")?.as_object()?.iter();
                all.map(|(name, about)| release(name, about))
                    .collect::<Option<_>>()?
            }
        };
        Some(Recorded {
            windows,
            blocks,
            releases,
        })
    }

    pub fn blocks(&self) -> Blocks {
        self.blocks
    }

    /// Which release was charged what for `window`, if that adds up to what its row says, `charged`, exactly; `None` if it does not.
    ///
    /// `first` is the first window of the ledger, and no release covers what was before `covered_from`.
    pub fn of(
        &self,
        window: Span,
        [first, covered_from]: [Timestamp; 2],
        charged: &[(Span, Price)],
    ) -> Option<Vec<Charge<'_>>> {
        // A release whose price falls is over once its noise cannot be drawn, which depends on more than is recorded.
        let ending: Vec<&str> = self
            .releases
            .iter()
            .filter(|release| matches!(release.policy, Policy::Decaying { .. }))
            .map(|release| release.name.as_str())
            .take(MOST_ENDING)
            .collect();
        let mut found = (0..1_u32 << ending.len()).filter_map(|over| {
            let is_over = |name: &str| {
                ending
                    .iter()
                    .position(|ending| *ending == name)
                    .is_some_and(|at| over >> at & 1 == 1)
            };
            self.without(is_over, window, [first, covered_from], charged)
        });
        // Where it could be one release or another, nobody knows which.
        let only = found.next()?;
        found.next().is_none().then_some(only)
    }

    /// The same if the releases that `is_over` names paid for nothing.
    fn without(
        &self,
        is_over: impl Fn(&str) -> bool,
        window: Span,
        [first, covered_from]: [Timestamp; 2],
        charged: &[(Span, Price)],
    ) -> Option<Vec<Charge<'_>>> {
        let mut parts = Vec::new();
        for release in self
            .releases
            .iter()
            .filter(|release| !is_over(&release.name))
        {
            let start = self
                .windows
                .before(window, release.panes.saturating_sub(1))
                .max(covered_from);
            let block = self.blocks.span_of(start);
            let Some(price) = release
                .policy
                .price(number(self.windows, block, first, window))
            else {
                continue;
            };
            let span = Span {
                start,
                end: window.end,
            };
            let blocks = self
                .blocks
                .spans_meeting(span)
                .map(|block| (block, price))
                .collect();
            parts.push((release.name.as_str(), blocks));
        }
        let is_whole = |(block, price): &(Span, Price)| {
            let own = parts
                .iter()
                .flat_map(|(_, charges): &Charge<'_>| charges)
                .filter(|(charged, _)| charged == block);
            own.copied()
                .try_fold(price.zero(), |sum, (_, part)| sum.checked_add(part))
                == Some(*price)
        };
        let is_known =
            |(block, _): &(Span, Price)| charged.iter().any(|(charged, _)| charged == block);
        let is_all = parts.iter().flat_map(|(_, charges)| charges).all(is_known);
        (is_all && charged.iter().all(is_whole)).then_some(parts)
    }
}

fn release(name: &str, about: &Value) -> Option<Release> {
    let read = |value: &Value| serde_json::from_value::<Price>(value.clone()).ok();
    let price = about.get("price")?;
    let policy = if let (Some(share), Some(windows)) = (price.get("share"), price.get("horizon")) {
        Policy::Horizon {
            share: read(share)?,
            windows: windows.as_u64()?.try_into().ok()?,
        }
    } else if let (Some(share), Some(windows)) = (price.get("share"), price.get("half_after")) {
        Policy::Decaying {
            share: read(share)?,
            half_after: windows.as_u64()?.try_into().ok()?,
        }
    } else {
        let choices = ["private_bandwidths", "private_order"]
            .into_iter()
            .filter_map(|choice| about.get(choice));
        let choices: Option<Vec<Epsilon>> = choices
            .map(|choice| serde_json::from_value(choice.get("price")?.clone()).ok())
            .collect();
        Policy::Fixed(choices?.into_iter().fold(read(price)?, Price::with_pure))
    };
    // Sums over records pay for each window once: their noise is correlated.
    let kind = about.get("function")?.as_object()?.keys().next()?;
    let is_sum = ["density", "sum", "moments", "cells"].contains(&kind.as_str());
    let panes = about
        .pointer("/windows/hopping/panes")
        .and_then(Value::as_u64)
        .filter(|_| !is_sum)
        .unwrap_or(1);
    Some(Release {
        name: name.to_owned(),
        policy,
        panes: panes.try_into().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn pure(text: &str) -> Price {
        Price::Pure(text.parse().unwrap())
    }

    /// Two releases whose prices fall, and one that goes on.
    fn recorded(other: &str) -> Recorded {
        let windows = Grid::new(Timestamp::from_micros(0), Duration::from_secs(1)).unwrap();
        let falling = |share| Policy::Decaying {
            share: pure(share),
            half_after: 1.try_into().unwrap(),
        };
        let release = |name: &str, policy| Release {
            name: name.to_owned(),
            policy,
            panes: 1,
        };
        let releases = vec![
            release("a", falling("0.5")),
            release("b", falling(other)),
            release("c", Policy::Fixed(pure("0.1"))),
        ];
        Recorded {
            windows,
            blocks: Blocks::Forever,
            releases,
        }
    }

    /// When the noise of a release can no longer be drawn is not recorded: it follows from what was charged, unless two could be it.
    #[test]
    fn what_is_over_is_left_out_where_only_one_release_can_be() {
        let window = Span {
            start: Timestamp::from_micros(0),
            end: Timestamp::from_micros(1_000_000),
        };
        let recorded = recorded("0.25");
        let of = |sum: &str, recorded: &Recorded| {
            let parts = recorded.of(window, [window.start; 2], &[(Span::ALL, pure(sum))])?;
            Some(
                parts
                    .into_iter()
                    .map(|(name, _)| name.to_owned())
                    .collect::<Vec<_>>()
                    .join(""),
            )
        };
        let price = |share: &str| {
            Policy::Decaying {
                share: pure(share),
                half_after: 1.try_into().unwrap(),
            }
            .price(0)
            .unwrap()
        };
        let together = |parts: &[Price]| {
            parts
                .iter()
                .fold(pure("0.1"), |sum, part| sum.checked_add(*part).unwrap())
                .to_string()
        };
        let a = price("0.5");
        let b = price("0.25");
        for (charged, who) in [
            (together(&[a, b]), "abc"),
            (together(&[a]), "ac"),
            (together(&[b]), "bc"),
            (together(&[]), "c"),
        ] {
            assert_eq!(of(&charged, &recorded).as_deref(), Some(who), "{charged}");
        }
        assert_eq!(of("0.2", &recorded), None, "nothing adds up to that");
        let alike = self::recorded("0.5");
        assert_eq!(of(&together(&[a]), &alike), None, "it could be either");
        assert_eq!(of(&together(&[a, a]), &alike).as_deref(), Some("abc"));
    }
}
