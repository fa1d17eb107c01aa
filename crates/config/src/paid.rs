//! The prices that the releases of recorded settings pay for their windows: for whoever asks later where a budget went.

use std::time::Duration;

use serde_json::Value;

use crate::canonical::{parsed_settings, read_field};
use bernstream_noise::accountant::policy::{PricePolicy, window_number};
use bernstream_synopsis::calibrate::Epsilon;
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::grid::{Blocks, Span, SpanGrid};
use bernstream_synopsis::price::Price;

/// The releases of recorded settings, and the grids that they are charged on.
#[derive(Clone, Debug)]
pub struct RecordedReleases {
    windows: SpanGrid,
    blocks: Blocks,
    releases: Vec<RecordedRelease>,
}

#[derive(Clone, Debug)]
struct RecordedRelease {
    name: String,
    policy: PricePolicy,
    /// Number of windows that it is computed from, each of whose blocks pays.
    panes: u32,
}

/// The most releases of which it is tried whether they are over.
const MOST_ENDING: usize = 8;

/// The name of a release, and what each block is charged for one window of it.
pub type ReleaseCharges<'a> = (&'a str, Vec<(Span, Price)>);

impl RecordedReleases {
    /// Reads recorded settings ([`recorded_text`](super::canonical::recorded_text)); `None` if this program does not understand them.
    pub fn from_settings(settings: &str) -> Option<Self> {
        let settings = parsed_settings(settings);
        let windows = recorded_grid(settings.get("windows")?)?;
        let ledger = settings.get("ledger")?;
        let blocks = match ledger.get("blocks")? {
            Value::String(_) => Blocks::Forever,
            about => recorded_grid(about)?.into(),
        };
        let mut releases = Vec::new();
        if let Price::Slots(_) = read_field(ledger, "total")? {
            // A window takes one, for all its releases together.
            releases.push(RecordedRelease {
                name: "all releases of the plan".to_owned(),
                policy: PricePolicy::Fixed(Price::SLOT),
                panes: 1,
            });
        } else {
            for (name, about) in settings.get("releases")?.as_object()? {
                releases.push(recorded_release(name, about)?);
            }
        }
        Some(RecordedReleases {
            windows,
            blocks,
            releases,
        })
    }

    pub fn blocks(&self) -> Blocks {
        self.blocks
    }

    /// The charge of each release for `window`, if they add up to what its row says, `charged`, exactly; `None` if they do not.
    ///
    /// `first` is the first window of the ledger, and no release covers what was before `covered_from`.
    pub fn charges_of_window(
        &self,
        window: Span,
        [first, covered_from]: [Timestamp; 2],
        charged: &[(Span, Price)],
    ) -> Option<Vec<ReleaseCharges<'_>>> {
        // A release whose price falls is over once its noise cannot be drawn, which depends on more than is recorded.
        let ending: Vec<&str> = self
            .releases
            .iter()
            .filter(|release| matches!(release.policy, PricePolicy::Decaying { .. }))
            .map(|release| release.name.as_str())
            .take(MOST_ENDING)
            .collect();
        let mut found = None;
        for over in 0..1_u32 << ending.len() {
            let mut charges = Vec::new();
            for release in &self.releases {
                let place = ending.iter().position(|name| *name == release.name);
                if place.is_none_or(|place| over >> place & 1 == 0) {
                    charges.extend(self.release_charge(release, window, first, covered_from));
                }
            }
            if !charges_add_up(&charges, charged) {
                continue;
            }
            if found.is_some() {
                // It could be one release or another, and nobody knows which.
                return None;
            }
            found = Some(charges);
        }
        found
    }

    /// The charge of one release for `window`; `None` if it has no price then.
    fn release_charge<'a>(
        &self,
        release: &'a RecordedRelease,
        window: Span,
        first: Timestamp,
        covered_from: Timestamp,
    ) -> Option<ReleaseCharges<'a>> {
        let earlier = release.panes.saturating_sub(1);
        let start = self.windows.start_before(window, earlier).max(covered_from);
        let block = self.blocks.span_of(start);
        let number = window_number(self.windows, block, first, window);
        let price = release.policy.window_price(number)?;
        let covered = Span {
            start,
            end: window.end,
        };
        let blocks = self.blocks.spans_meeting(covered);
        let charged = blocks.map(|block| (block, price)).collect();
        Some((&release.name, charged))
    }
}

/// Returns whether the charges of the releases add up to what each block was charged.
fn charges_add_up(charges: &[ReleaseCharges<'_>], charged: &[(Span, Price)]) -> bool {
    let mut parts = Vec::new();
    for (_, of_release) in charges {
        parts.extend(of_release);
    }
    for (block, price) in charged {
        let mut sum = Some(price.zero_of_kind());
        for (_, part) in parts.iter().filter(|(charged, _)| charged == block) {
            sum = sum.and_then(|sum| sum.checked_add(*part));
        }
        if sum != Some(*price) {
            return false;
        }
    }
    parts
        .iter()
        .all(|(block, _)| charged.iter().any(|(known, _)| known == block))
}

fn recorded_grid(about: &Value) -> Option<SpanGrid> {
    let origin: Timestamp = read_field(about, "origin")?;
    SpanGrid::new(origin, Duration::from_micros(read_field(about, "length")?))
}

fn recorded_release(name: &str, about: &Value) -> Option<RecordedRelease> {
    let price = about.get("price")?;
    let has_share = price.get("share").is_some();
    let policy = if has_share && price.get("horizon").is_some() {
        PricePolicy::Horizon {
            share: read_field(price, "share")?,
            windows: read_field(price, "horizon")?,
        }
    } else if has_share && price.get("half_after").is_some() {
        PricePolicy::Decaying {
            share: read_field(price, "share")?,
            half_after: read_field(price, "half_after")?,
        }
    } else {
        let mut fixed: Price = read_field(about, "price")?;
        for choice in ["private_bandwidths", "private_order"] {
            if let Some(choice) = about.get(choice) {
                let epsilon: Epsilon = read_field(choice, "price")?;
                fixed = fixed.with_pure(epsilon);
            }
        }
        PricePolicy::Fixed(fixed)
    };
    // Sums over records pay for each window once: their noise is correlated.
    let kind = about.get("function")?.as_object()?.keys().next()?;
    let is_sum = ["density", "sum", "moments", "cells"].contains(&kind.as_str());
    let panes = about.pointer("/windows/hopping/panes");
    let panes = match panes.and_then(Value::as_u64) {
        Some(panes) if !is_sum => panes.try_into().ok()?,
        _ => 1,
    };
    Some(RecordedRelease {
        name: name.to_owned(),
        policy,
        panes,
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
    fn recorded(other: &str) -> RecordedReleases {
        let windows = SpanGrid::new(Timestamp::from_micros(0), Duration::from_secs(1)).unwrap();
        let falling = |share| PricePolicy::Decaying {
            share: pure(share),
            half_after: 1.try_into().unwrap(),
        };
        let release = |name: &str, policy| RecordedRelease {
            name: name.to_owned(),
            policy,
            panes: 1,
        };
        let releases = vec![
            release("a", falling("0.5")),
            release("b", falling(other)),
            release("c", PricePolicy::Fixed(pure("0.1"))),
        ];
        RecordedReleases {
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
        let of = |sum: &str, recorded: &RecordedReleases| {
            let parts =
                recorded.charges_of_window(window, [window.start; 2], &[(Span::ALL, pure(sum))])?;
            Some(
                parts
                    .into_iter()
                    .map(|(name, _)| name.to_owned())
                    .collect::<Vec<_>>()
                    .join(""),
            )
        };
        let price = |share: &str| {
            PricePolicy::Decaying {
                share: pure(share),
                half_after: 1.try_into().unwrap(),
            }
            .window_price(0)
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
