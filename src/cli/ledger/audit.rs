//! `ledger verify --output-only`: the budget as the output states it, for readers without a ledger.

use crate::cli::failure::Failure;
use crate::cli::print::{report, section};
use bernstream_kafka::sink::Output;
use bernstream_kafka::sink::output::Location;
use bernstream_ledger::Digest;
use bernstream_ledger::audit::{Audit, Missing, Statement};
use bernstream_synopsis::Synopsis;
use bernstream_synopsis::description::Unit;
use bernstream_synopsis::grid::Span;

/// How many lines of each kind are shown.
const SHOWN: usize = 10;

/// Reads the whole output, and nothing else.
///
/// # Errors
///
/// If the output cannot be read, or if it contradicts itself or its guarantee.
pub fn run(output: &Output) -> Result<(), Failure> {
    let mut audit = Audit::default();
    let mut unreadable = Vec::new();
    output
        .extent()?
        .each_published(|found| match Synopsis::open(found.bytes()) {
            Ok(synopsis) => audit.add(
                &found.place,
                Digest::of(found.bytes()),
                synopsis.description(),
            ),
            Err(error) => {
                unreadable.push(format!("{}: not a readable synopsis: {error}", found.place))
            }
        })?;
    let findings = audit.finish();
    let mut text = String::new();
    for statement in &findings.statements {
        say(&mut text, statement);
    }
    if findings.statements.is_empty() && unreadable.is_empty() {
        let (kind, name) = match output.location() {
            Location::Topic { topic, .. } => ("topic", topic.to_owned()),
            Location::Folder(path) => ("folder", path.display().to_string()),
        };
        return Err(Failure::Unavailable(format!(
            "there is no synopsis in the {kind} {name}, so there is nothing to verify: nothing was published yet, everything \
             was removed, or it is the wrong {kind}"
        )));
    }
    report(text)?;
    unreadable.extend(findings.contradictions);
    if unreadable.is_empty() {
        return Ok(());
    }
    let found = unreadable.len();
    let shown = few(&unreadable).join("\n  ");
    Err(Failure::Unsound(format!(
        "the output contradicts itself or what it promises, in {found} places:\n  {shown}"
    )))
}

fn say(text: &mut String, statement: &Statement) {
    let Statement {
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
    let worst = statement.worst;
    let newest = statement.newest;
    let definition = &promise.definition;
    let total = promise.total;
    let unit = match &promise.unit {
        Unit::Record => "a record".to_owned(),
        Unit::User { column, per, .. } => {
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
    section(text, &format!("Ledger {ledger} of {pipeline}"), &[found]);
    let promised = [
        format!("{definition}, at most {total} per block, for {unit}"),
        in_words.clone(),
    ];
    section(text, "Promised", &promised);
    let spent = |(block, spent): (Span, _)| {
        let block = match block == Span::ALL {
            true => "all of time".to_owned(),
            false => format!("{} to {}", block.start, block.end),
        };
        format!("{block}: {spent} of {total}")
    };
    section(
        text,
        "Spent",
        &[
            format!("most, {}", spent(worst)),
            format!("newest, {}", spent(newest)),
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
    section(text, "Holds", &holds);
    section(text, "Missing", &missing(&statement.missing));
}

fn missing(missing: &Missing) -> Vec<String> {
    let Missing {
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
        lines.extend(few(messages));
    }
    if !unaccounted.is_empty() {
        lines.push(format!(
            "{} claims that exceed the prices on the output:",
            unaccounted.len()
        ));
        lines.extend(few(unaccounted));
    }
    if lines.is_empty() {
        lines.push(
            "nothing that the other messages imply; messages removed at the very end cannot be noticed".to_owned(),
        );
    }
    lines
}

/// The first of `lines`, and how many more there are.
fn few(lines: &[String]) -> Vec<String> {
    let mut few: Vec<String> = lines.iter().take(SHOWN).cloned().collect();
    if lines.len() > SHOWN {
        few.push(format!("and {} more", lines.len() - SHOWN));
    }
    few
}
