//! `ledger verify --output-only`: the budget as the output states it, for readers without a ledger.

use crate::cli::failure::Failure;
use crate::cli::print::{print_verdict, push_section};
use bernstream_kafka::sink::OutputParams;
use bernstream_kafka::sink::output::OutputLocation;
use bernstream_ledger::Digest;
use bernstream_ledger::audit::{LedgerStatement, MissingOutput, OutputAudit};
use bernstream_synopsis::Synopsis;
use bernstream_synopsis::description::UnitDescription;
use bernstream_synopsis::grid::Span;

/// Number of lines of each kind that are shown.
const SHOWN: usize = 10;

/// Reads the whole output, and nothing else.
///
/// # Errors
///
/// If the output cannot be read, or if it contradicts itself or its guarantee.
pub fn run(output: &OutputParams) -> Result<(), Failure> {
    let mut audit = OutputAudit::default();
    let mut unreadable = Vec::new();
    output.current_extent()?.each_published(|found| {
        match Synopsis::decode_message(found.bytes()) {
            Ok(synopsis) => audit.add(
                &found.place,
                Digest::of_bytes(found.bytes()),
                synopsis.description(),
            ),
            Err(error) => {
                unreadable.push(format!("{}: not a readable synopsis: {error}", found.place))
            }
        }
    })?;
    let findings = audit.finish();
    let mut text = String::new();
    for statement in &findings.statements {
        write_statement(&mut text, statement);
    }
    if findings.statements.is_empty() && unreadable.is_empty() {
        let location = output.location();
        let kind = match &location {
            OutputLocation::Topic { .. } => "topic",
            OutputLocation::Folder(_) => "folder",
        };
        let name = match location {
            OutputLocation::Topic { topic, .. } => topic.to_owned(),
            OutputLocation::Folder(path) => path.display().to_string(),
        };
        return Err(Failure::Unavailable(format!(
            "there is no synopsis in the {kind} {name}, so there is nothing to verify: nothing was published yet, everything \
             was removed, or it is the wrong {kind}"
        )));
    }
    print_verdict(text)?;
    unreadable.extend(findings.contradictions);
    if unreadable.is_empty() {
        return Ok(());
    }
    let found = unreadable.len();
    let shown = first_few(&unreadable).join("\n  ");
    Err(Failure::Unsound(format!(
        "the output contradicts itself or what it promises, in {found} places:\n  {shown}"
    )))
}

fn write_statement(text: &mut String, statement: &LedgerStatement) {
    let LedgerStatement {
        pipeline,
        ledger,
        promise,
        in_words,
        messages,
        copies,
        rows,
        until,
        ..
    } = statement;
    let definition = &promise.definition;
    let total = promise.total;
    let unit = match &promise.unit {
        UnitDescription::Record => "a record".to_owned(),
        UnitDescription::User { column, per, .. } => {
            format!("all records of one {column} within a block ({per})")
        }
    };
    let found = match copies {
        0 => format!("{messages} messages of the rows {} to {}", rows.0, rows.1),
        copies => format!(
            "{messages} messages of the rows {} to {}, and {copies} copies of them",
            rows.0, rows.1
        ),
    };
    push_section(text, &format!("Ledger {ledger} of {pipeline}"), &[found]);
    let promised = [
        format!("{definition}, at most {total} per block, for {unit}"),
        in_words.clone(),
    ];
    push_section(text, "Promised", &promised);
    let (worst, most) = statement.worst;
    let (newest, last) = statement.newest;
    push_section(
        text,
        "Spent",
        &[
            format!("most, {}: {most} of {total}", block_in_words(worst)),
            format!("newest, {}: {last} of {total}", block_in_words(newest)),
        ],
    );
    let holds = [
        format!(
            "for every block that was charged up to the window that ends at {until}; it cannot be revoked"
        ),
        format!(
            "the newest block has {} left; a window that it cannot pay for is withheld",
            statement.left
        ),
    ];
    push_section(text, "Holds", &holds);
    push_section(text, "Missing", &missing_in_words(&statement.missing));
}

fn block_in_words(block: Span) -> String {
    if block == Span::ALL {
        "all of time".to_owned()
    } else {
        format!("{} to {}", block.start, block.end)
    }
}

fn missing_in_words(missing: &MissingOutput) -> Vec<String> {
    let MissingOutput {
        unaccounted,
        messages,
        rows,
    } = missing;
    let mut lines = Vec::new();
    if *rows > 0 {
        lines.push(format!(
            "{rows} rows in between have no message: withheld windows, changes of the configuration, or messages that retention \
             or compaction removed"
        ));
    }
    if !messages.is_empty() {
        lines.push(format!(
            "{} messages of rows whose other keys are there:",
            messages.len()
        ));
        lines.extend(first_few(messages));
    }
    if !unaccounted.is_empty() {
        lines.push(format!(
            "{} claims that exceed the prices on the output:",
            unaccounted.len()
        ));
        lines.extend(first_few(unaccounted));
    }
    if lines.is_empty() {
        lines.push(
            "nothing that the other messages imply; messages removed at the very end cannot be noticed".to_owned(),
        );
    }
    lines
}

/// The first of `lines`, and how many more there are.
fn first_few(lines: &[String]) -> Vec<String> {
    let mut few: Vec<String> = lines.iter().take(SHOWN).cloned().collect();
    if lines.len() > SHOWN {
        few.push(format!("and {} more", lines.len() - SHOWN));
    }
    few
}
