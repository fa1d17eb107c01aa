//! How a budget is spent: what the windows of a block are charged, and how long it lasts. Everything here is public.

use std::collections::BTreeMap;
use std::time::Duration;

use bernstream_config::{
    Period, PrivacyUnit, ReleaseSettings, WindowKind, WorkerSettings, guarantee,
};
use bernstream_noise::accountant;
use bernstream_noise::accountant::ChargedBlock;
use bernstream_noise::accountant::policy::{PricePolicy, window_number};
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::grid::{Span, SpanGrid};
use bernstream_synopsis::price::Price;
use bernstream_worker::pipeline::PriceSchedule;

/// The most windows of a forecast; a longer block is cut off here.
const MOST_WINDOWS: usize = 100_000;

/// Longer than this is "centuries".
const CENTURIES: Duration = Duration::from_secs(300 * 365 * 24 * 3600);

/// The charges of a block, and how long its budget lasts.
pub(super) fn budget_in_words(settings: &WorkerSettings) -> Vec<String> {
    let price = settings.window_price();
    let total = settings.privacy.total;
    match &settings.privacy.unit {
        PrivacyUnit::Record => budget_of_records(settings),
        PrivacyUnit::User {
            per: Period::Every(length),
            ..
        } => {
            let mut lines = vec![format!(
                "every period of {} is a block of its own, with a total of {total}{}; a window charges {} to every block that it \
                 overlaps",
                bernstream_synopsis::clock::format_duration(*length),
                kept_back_in_words(settings),
                what_it_costs(settings),
            )];
            let blocks = SpanGrid::new(settings.windows.grid.origin(), *length);
            lines.extend(
                blocks
                    .iter()
                    .flat_map(|blocks| forecast_blocks(settings, *blocks))
                    .map(|forecast| forecast.to_string()),
            );
            // Otherwise windows reach over other borders of later periods.
            let alike = if length
                .as_micros()
                .is_multiple_of(settings.windows.grid.length().as_micros())
            {
                "later periods are alike: the budget is renewed with every period"
            } else {
                "the budget is renewed with every period; windows reach over the borders of periods, so later ones differ"
            };
            lines.push(alike.to_owned());
            lines
        }
        PrivacyUnit::User {
            per: Period::Ever, ..
        } => {
            let mut lines = vec![format!(
                "all of time is one block, with a total of {total}{}; a window charges {}, and the budget is never renewed",
                kept_back_in_words(settings),
                what_it_costs(settings),
            )];
            let policies = settings
                .releases
                .iter()
                .filter(|release| !is_fixed(release));
            lines.extend(policies.map(|release| {
                let over = settings.price_schedule(release).over;
                format!(
                    "of {:?} {}",
                    release.name,
                    duration_in_words(settings, over)
                )
            }));
            if settings.releases.iter().any(is_fixed) {
                lines.push(format!(
                    "it {}",
                    duration_in_words(
                        settings,
                        PricePolicy::Fixed(price).paid_windows(
                            settings.privacy.spendable_limit(),
                            None,
                            |_| true
                        )
                    )
                ));
            }
            lines
        }
    }
}

fn budget_of_records(settings: &WorkerSettings) -> Vec<String> {
    let total = settings.privacy.total;
    let lasts = match settings.windows.end {
        Some(end) => format!("the budget lasts to the end of the grid, {end}"),
        None => "the budget lasts forever".to_owned(),
    };
    let Some(price) = settings.total_window_price() else {
        return vec![format!(
            "every window is a block of its own, and {total} does not pay for all releases that cover it: some windows \
             will repeatedly be withheld; raise the total, or lower the prices of releases that are computed afresh from \
             several windows"
        )];
    };
    let mut lines = vec![format!(
        "every window is a block of its own and is charged {price} of {total}: {lasts}"
    )];
    let limit = settings.privacy.spendable_limit();
    if let Some(unused) = limit.checked_sub(price).filter(|rest| !rest.is_zero()) {
        lines.push(format!(
            "{unused} of a block is never used: the price of a window could be {limit}"
        ));
    }
    lines
}

fn is_fixed(release: &ReleaseSettings) -> bool {
    matches!(release.policy, PricePolicy::Fixed(_))
}

pub(super) fn kept_back_in_words(settings: &WorkerSettings) -> String {
    let limit = settings.privacy.spendable_limit();
    if limit == settings.privacy.total {
        String::new()
    } else {
        format!(", of which windows may spend {limit}")
    }
}

fn what_it_costs(settings: &WorkerSettings) -> String {
    if settings.releases.iter().all(is_fixed) {
        return settings.window_price().to_string();
    }
    let mut prices = Vec::new();
    for release in &settings.releases {
        let price = guarantee::policy_sentence(release.policy);
        prices.push(format!("{price} of {:?}", release.name));
    }
    prices.join(" and ")
}

/// Tells how long the only block lasts, which pays for `paid` windows.
fn duration_in_words(settings: &WorkerSettings, paid: Option<u64>) -> String {
    let grid = settings.windows.grid;
    let Some(count) = paid else {
        return "pays for all windows".to_owned();
    };
    let length = u32::try_from(count)
        .map(|count| grid.length().saturating_mul(count))
        .unwrap_or(Duration::MAX);
    let end = grid.origin().plus(length);
    match settings.windows.end {
        Some(last) if last <= end => {
            format!("pays for {count} windows, and lasts to the end of the grid, {last}")
        }
        _ if length > CENTURIES => format!("pays for {count} windows, for centuries"),
        _ => format!(
            "pays for {count} windows, {} from the first window of the ledger on: if that is the one at \
             windows.origin, the window of {end} is the first that is withheld",
            bernstream_synopsis::clock::format_duration(length)
        ),
    }
}

/// A block after all its windows.
#[derive(Debug, PartialEq, Eq)]
struct BlockForecast {
    block: Span,
    windows: usize,
    paid: usize,
    spent: Price,
    /// The start of the first window that is not published.
    exhausted: Option<Timestamp>,
}

impl std::fmt::Display for BlockForecast {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let BlockForecast {
            block,
            windows,
            paid,
            spent,
            exhausted,
        } = self;
        write!(
            f,
            "{} to {}: {paid} of its {windows} windows are published, for {spent}",
            block.start, block.end
        )?;
        match exhausted {
            Some(start) => write!(
                f,
                "; it runs out, and the window of {start} is the first that is not"
            ),
            None => Ok(()),
        }
    }
}

/// The first two blocks from the origin on.
fn forecast_blocks(settings: &WorkerSettings, blocks: SpanGrid) -> Vec<BlockForecast> {
    let origin = settings
        .windows
        .grid
        .span_of(settings.windows.grid.origin());
    let first = blocks.span_of(origin.start);
    let shown = [first, blocks.span_after(first)];
    let nothing = settings.privacy.total.zero_of_kind();
    let mut forecasts: BTreeMap<Span, BlockForecast> = BTreeMap::new();
    let since = LedgerStart {
        first: origin.start,
        covered_from: origin.start,
    };
    for coming in windows_to_come(settings, since, origin, |_| nothing).take(MOST_WINDOWS) {
        let window = coming.window;
        if window.start >= shown[1].end {
            break;
        }
        for block in blocks.spans_meeting(window) {
            let new = BlockForecast {
                block,
                windows: 0,
                paid: 0,
                spent: nothing,
                exhausted: None,
            };
            let forecast = forecasts.entry(block).or_insert(new);
            forecast.windows += 1;
            match coming.charged.iter().find(|charged| charged.block == block) {
                Some(charged) => {
                    forecast.paid += 1;
                    forecast.spent = charged.spent;
                }
                None => forecast.exhausted = forecast.exhausted.or(Some(window.start)),
            }
        }
    }
    forecasts
        .into_values()
        .filter(|forecast| shown.contains(&forecast.block))
        .collect()
}

/// The beginning of a ledger.
#[derive(Clone, Copy, Debug)]
pub(super) struct LedgerStart {
    /// The start of its first window.
    pub first: Timestamp,
    /// No release covers what was before.
    pub covered_from: Timestamp,
}

/// A window that is to be closed, and what the accountant of the worker charges for it: nothing for one that is not published.
#[derive(Debug)]
pub(super) struct WindowToCome {
    pub window: Span,
    pub charged: Vec<ChargedBlock>,
}

/// The windows from `next` to the end of the grid. `spent` says what a block was charged before `next`.
pub(super) fn windows_to_come<'s>(
    settings: &'s WorkerSettings,
    ledger: LedgerStart,
    next: Span,
    spent: impl Fn(Span) -> Price + 's,
) -> impl Iterator<Item = WindowToCome> + 's {
    let grid = settings.windows.grid;
    let limit = settings.privacy.spendable_limit();
    let schedules: Vec<PriceSchedule> = settings
        .releases
        .iter()
        .map(|release| settings.price_schedule(release))
        .collect();
    let mut since = BTreeMap::<Span, Price>::new();
    let windows = std::iter::successors(Some(next), move |window| Some(grid.span_after(*window)));
    windows
        .take_while(|window| settings.windows.end.is_none_or(|end| window.start < end))
        .map(move |window| {
            let mut prices = Vec::new();
            for (release, schedule) in settings.releases.iter().zip(&schedules) {
                let span = charged_span(grid, release, window, ledger.covered_from);
                let block = settings.blocks.span_of(span.start);
                if let Some(price) =
                    schedule.price_of_window(window_number(grid, block, ledger.first, window))
                {
                    let blocks = settings.blocks.spans_meeting(span);
                    prices.extend(blocks.map(|block| (block, price)));
                }
            }
            let charged = accountant::quote_window(
                prices,
                |block| since.get(&block).copied().unwrap_or_else(|| spent(block)),
                limit,
            )
            .unwrap_or_default();
            since.extend(charged.iter().map(|charged| (charged.block, charged.spent)));
            WindowToCome { window, charged }
        })
}

/// The time whose blocks a release charges for a window: one that is computed afresh from several windows charges the blocks of all.
fn charged_span(
    grid: SpanGrid,
    release: &ReleaseSettings,
    window: Span,
    covered_from: Timestamp,
) -> Span {
    match release.window_kind {
        WindowKind::Hopping { panes } if !release.is_sum_of_panes() => Span {
            start: grid.start_before(window, panes - 1).max(covered_from),
            ..window
        },
        _ => window,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USERS: &str = include_str!("../../config/users.toml");

    fn settings(price: &str, per: &str) -> WorkerSettings {
        let text = USERS
            .replace("epsilon = 0.04", &format!("epsilon = {price}"))
            .replace("per = \"1d\"", &format!("per = \"{per}\""));
        WorkerSettings::parse(&text, "test").unwrap()
    }

    /// The first two days of users, with another price and another period.
    fn forecasts(price: &str, per: &str) -> Vec<String> {
        budget_in_words(&settings(price, per))
            .into_iter()
            .filter(|line| line.contains(" windows are published"))
            .collect()
    }

    #[test]
    fn a_period_runs_out_where_the_accountant_says() {
        assert_eq!(
            forecasts("0.1", "1d"),
            [
                "2026-01-01T00:00:00Z to 2026-01-02T00:00:00Z: 10 of its 24 windows are published, for 1; it runs out, and \
             the window of 2026-01-01T10:00:00Z is the first that is not",
                "2026-01-02T00:00:00Z to 2026-01-03T00:00:00Z: 10 of its 24 windows are published, for 1; it runs out, and \
             the window of 2026-01-02T10:00:00Z is the first that is not",
            ]
        );
        assert_eq!(
            forecasts("1", "1h"),
            [
                "2026-01-01T00:00:00Z to 2026-01-01T01:00:00Z: 1 of its 1 windows are published, for 1",
                "2026-01-01T01:00:00Z to 2026-01-01T02:00:00Z: 1 of its 1 windows are published, for 1",
            ]
        );
    }

    #[test]
    fn a_window_over_a_border_charges_both_periods() {
        // Hours over periods of 90 minutes: the second hour meets both, so the second period begins half spent.
        assert_eq!(
            forecasts("0.5", "90m"),
            [
                "2026-01-01T00:00:00Z to 2026-01-01T01:30:00Z: 2 of its 2 windows are published, for 1",
                "2026-01-01T01:30:00Z to 2026-01-01T03:00:00Z: 2 of its 2 windows are published, for 1",
            ]
        );
        assert_eq!(
            forecasts("0.6", "90m"),
            [
                "2026-01-01T00:00:00Z to 2026-01-01T01:30:00Z: 1 of its 2 windows are published, for 0.6; it runs out, and \
             the window of 2026-01-01T01:00:00Z is the first that is not",
                "2026-01-01T01:30:00Z to 2026-01-01T03:00:00Z: 1 of its 2 windows are published, for 0.6; it runs out, and \
             the window of 2026-01-01T01:00:00Z is the first that is not",
            ]
        );
    }

    #[test]
    fn the_budget_of_a_user_without_a_period_ends() {
        let said = budget_in_words(&settings("0.04", "ever")).join(" ");
        for words in [
            "all of time is one block, with a total of 1",
            "pays for 25 windows, 1d 1h",
            "2026-01-02T01:00:00Z",
        ] {
            assert!(said.contains(words), "{said}");
        }
    }
}
