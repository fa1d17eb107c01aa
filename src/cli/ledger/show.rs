//! `ledger show`: what was promised, released and spent.

use serde::Serialize;

use super::promised::{definition_in_words, total_in_words};
use super::rows;
use crate::cli::failure::Failure;
use crate::cli::left::RemainingBudget;
use crate::cli::print::{as_json, line, print, push_section};
use bernstream_config::{SharedBudget, WorkerSettings};
use bernstream_ledger::{ClosedWindow, Head, LedgerRow, MissingRows, ReleaseOutcome};
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::grid::Span;
use bernstream_synopsis::price::Price;

/// Number of blocks that are listed.
const SHOWN: usize = 10;

/// A ledger at a glance; what `--json` prints.
#[derive(Debug, Serialize)]
struct LedgerReport {
    ledger: String,
    pipeline: String,
    created: Timestamp,
    /// The definition of privacy that it accounts for.
    definition: String,
    /// The most that a block may spend.
    total: Price,
    first_window: Timestamp,
    next_window: Timestamp,
    /// The newest row.
    head: Head,
    backfill_until: Option<Timestamp>,
    /// The newest row of the ledger that it follows.
    previous: Option<Head>,
    /// The rows that it does not have, because it was built from a checkpoint of its log: none of what follows counts them.
    #[serde(skip_serializing_if = "Option::is_none")]
    missing: Option<MissingRows>,
    released: u64,
    withheld: u64,
    /// Messages that are not known to be published.
    unpublished: u64,
    changes: Vec<SettingsChange>,
    /// The newest blocks that were charged.
    blocks: Vec<BlockSpending>,
    left: Option<RemainingBudget>,
    #[serde(skip)]
    meaning: Vec<String>,
    /// Whose part the total is, if it is a share.
    #[serde(skip)]
    share: Option<String>,
}

/// A change of the settings.
#[derive(Debug, Serialize)]
struct SettingsChange {
    /// The first window that it holds for.
    first: Timestamp,
    row: u64,
}

#[derive(Debug, Serialize)]
struct BlockSpending {
    block: Span,
    spent: Price,
}

/// Prints it.
///
/// # Errors
///
/// If the ledger is missing, damaged or cannot be read, or if standard output cannot be written.
pub(super) fn run(settings: &WorkerSettings, is_json: bool) -> Result<(), Failure> {
    let shown = read_ledger(settings)?;
    if is_json {
        line(as_json(&shown)?)
    } else {
        print(shown.in_words())
    }
}

fn read_ledger(settings: &WorkerSettings) -> Result<LedgerReport, Failure> {
    let ledger = rows::verified_ledger(settings)?;
    let genesis = ledger.genesis();
    let mut released = 0;
    let mut withheld = 0;
    let mut changes = Vec::new();
    rows::each_row("reading the ledger", &ledger, |stored| {
        match stored.row {
            LedgerRow::Genesis(_) => {}
            LedgerRow::Window(ClosedWindow {
                outcome: ReleaseOutcome::Released { .. },
                ..
            }) => released += 1,
            LedgerRow::Window(ClosedWindow {
                outcome: ReleaseOutcome::Withheld,
                ..
            }) => withheld += 1,
            LedgerRow::Configuration(row) => changes.push(SettingsChange {
                first: row.first,
                row: stored.head.sequence,
            }),
        }
        Ok(())
    })?;
    let blocks = ledger
        .newest_blocks(SHOWN)?
        .into_iter()
        .map(|(block, spent)| BlockSpending { block, spent })
        .collect();
    Ok(LedgerReport {
        ledger: genesis.ledger.clone(),
        pipeline: settings.pipeline.clone(),
        created: genesis.created,
        definition: definition_in_words(genesis),
        total: genesis.total,
        first_window: genesis.first,
        next_window: ledger.next_window(),
        head: *ledger.head(),
        backfill_until: genesis.backfill_until,
        previous: genesis.previous,
        missing: ledger.missing(),
        released,
        withheld,
        unpublished: ledger.unpublished_count()?,
        changes,
        blocks,
        left: RemainingBudget::of_ledger(settings),
        meaning: total_in_words(genesis.total),
        share: genesis.budget.as_ref().map(|_| share_in_words(settings)),
    })
}

/// Words for rows that a ledger does not have.
pub(super) fn not_here(MissingRows { first, last, .. }: MissingRows) -> String {
    format!(
        "rows {first} to {last} are not in it: it was built from a checkpoint of its log, which has what they have spent, and not what \
         they said"
    )
}

/// Tells of which total the ledger's own is a share.
fn share_in_words(settings: &WorkerSettings) -> String {
    let total = settings.privacy.total;
    match &settings.privacy.budget {
        Some(SharedBudget { topic, share, whole }) => format!(
            "its total, {total}, is a share of {share} of its input's whole total, {whole}, which pipelines share in the budget topic {topic}"
        ),
        None => {
            "its total is a share of its input's whole total; this configuration has no `budget` that says of which"
                .to_owned()
        }
    }
}

impl LedgerReport {
    fn in_words(&self) -> String {
        let mut text = String::new();
        let mut lines = vec![
            format!(
                "{} of {}, begun {}",
                self.ledger, self.pipeline, self.created
            ),
            self.definition.clone(),
        ];
        lines.extend(self.meaning.iter().cloned());
        lines.extend(self.share.iter().cloned());
        lines.extend([
            format!(
                "first window {}, next window {}",
                self.first_window, self.next_window
            ),
            format!(
                "newest row {}, digest {}",
                self.head.sequence, self.head.digest
            ),
        ]);
        if let Some(until) = self.backfill_until {
            lines.push(format!(
                "past windows accept records that were sent until {until}"
            ));
        }
        if let Some(head) = self.previous {
            lines.push(format!(
                "follows the ledger that ended with row {}",
                head.sequence
            ));
        }
        lines.extend(self.missing.map(not_here));
        push_section(&mut text, "Ledger", &lines);
        if let Some(left) = &self.left {
            push_section(&mut text, "Left", &left.in_words());
        }
        let windows = [
            format!("{} released", self.released),
            format!(
                "{} withheld: their budget was spent, their share had ended, or every release was over",
                self.withheld
            ),
            format!("{} messages not known to be published", self.unpublished),
        ];
        push_section(&mut text, "Windows", &windows);
        let changes = self
            .changes
            .iter()
            .map(|change| format!("from {} on, by row {}", change.first, change.row));
        let changes: Vec<String> = changes.collect();
        if !changes.is_empty() {
            push_section(&mut text, "Changes of the configuration", &changes);
        }
        let mut blocks = Vec::new();
        for BlockSpending { block, spent } in &self.blocks {
            let Span { start, end } = block;
            blocks.push(format!("{start} - {end}  {spent} of {}", self.total));
        }
        if !blocks.is_empty() {
            let parts = match self.total {
                Price::Pure(_) => "epsilon",
                Price::Approximate { .. } => "epsilon and delta",
                Price::Concentrated(_) => "rho",
                Price::Slots(_) => "windows of the plan",
            };
            push_section(
                &mut text,
                &format!("Newest blocks: {parts} spent of the total"),
                &blocks,
            );
        }
        text
    }
}
