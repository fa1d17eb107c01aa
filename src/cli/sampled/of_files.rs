//! The records of files: whether they can be read.

use std::path::Path;
use std::time::Duration;

use super::share::UsableShare;
use super::trial::SampleLimits;
use crate::cli::progress::WorkDone;
use bernstream_kafka::check::TopicCheck;
use bernstream_kafka::source::files::{FileSource, FileSourceParams};
use bernstream_kafka::source::lines::BrokenLines;
use bernstream_kafka::source::{RecordSource as _, SourceEvent, folder};
use bernstream_release::source::{Batch, Columns};

/// Number of lines that are listed and cannot be read.
const MOST_LISTED: usize = 5;

/// Reads all files and hands their records to `take`. What keeps them from being opened, and which columns each has, is told elsewhere.
pub fn checks_of_files(
    params: &FileSourceParams,
    columns: &Columns,
    trial: SampleLimits,
    take: &mut dyn FnMut(&Batch),
    done: &WorkDone,
) -> Vec<TopicCheck> {
    let Ok(mut files) = FileSource::open(params, columns.clone()) else {
        return Vec::new();
    };
    let mut records = 0;
    let bytes = files.total_bytes();
    loop {
        match files.next_event(None, Duration::ZERO) {
            Ok(SourceEvent::Batch(batch)) => {
                records += batch.times.len() as u64;
                take(&batch);
                done.set(files.bytes_read(), bytes);
            }
            Ok(_) => return vec![readable_check(params, &files, records, trial.least)],
            Err(error) => {
                let what = format!(
                    "records of the files at {} can be read",
                    params.path.display()
                );
                let why = error.in_full().unwrap_or_else(|| error.to_string());
                return vec![TopicCheck::new(
                    what,
                    false,
                    why,
                    "write the file again, or take it out of the folder",
                )];
            }
        }
    }
}

/// A line that is no record is dropped by itself.
fn readable_check(
    params: &FileSourceParams,
    files: &FileSource,
    records: u64,
    least: u64,
) -> TopicCheck {
    let broken: u64 = files.broken_lines().map(|(_, lines)| lines.count).sum();
    let path = params.path.display();
    let part = records.saturating_sub(broken);
    let mut what = format!("records of the files at {path} can be read: {part} of {records}");
    let listed: Vec<String> = files
        .broken_lines()
        .flat_map(|(path, lines)| named_lines(path, lines))
        .take(MOST_LISTED)
        .collect();
    if !listed.is_empty() {
        what = format!("{what}; the others are dropped: {}", listed.join("; "));
    }
    UsableShare {
        part,
        whole: records,
    }
    .judge_share(
        what,
        least,
        "correct what writes the lines, or the ending of the name",
    )
}

fn named_lines(path: &Path, lines: &BrokenLines) -> Vec<String> {
    let name = folder::shown_names(std::iter::once(path));
    lines
        .first
        .iter()
        .map(|broken| format!("line {} of {name}: {}", broken.line, broken.why))
        .collect()
}
