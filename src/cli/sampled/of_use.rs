//! How many of the records that can be read are of use.

use super::share::UsableShare;
use super::tally::{EventTimes, ReleaseTally, SampleTally, UnlistedKey};
use bernstream_kafka::check::TopicCheck;
use bernstream_release::window::{OutsideRule, RecordLabel};

/// Number of keys that are named and not listed, and of the characters of each.
const MOST_NAMED: usize = 5;
const LONGEST_NAME: usize = 40;

/// Checks that enough of the records lie in a window, have a listed key, and have what the releases read where they read it.
pub fn checks_of_use(tally: &SampleTally<'_>, least: u64) -> Vec<TopicCheck> {
    let SampleTally {
        records,
        in_window,
        in_time,
        times,
        with_listed_key,
        under_other,
        ..
    } = *tally;
    let mut checks = Vec::new();
    if let Some(EventTimes { first, last }) = times {
        let what = format!(
            "records in them lie in a window: {in_window} of {records}, with times from {first} to {last}"
        );
        let remedy = "correct input.time_format, the column of the event time, or origin and end of [windows]";
        checks.push(
            UsableShare {
                part: in_window,
                whole: records,
            }
            .judge_share(what, least, remedy),
        );
    }
    if in_time < in_window {
        let what = format!(
            "records in them came before the cutoff of their window: {in_time} of {in_window}"
        );
        let remedy = "correct the time zone of the event time, or grace; for records of the past begin the ledger with \
                      --from and --backfill-until";
        // Records of the past are late by design, and whether the ledger begins there is not known yet: only a warning.
        checks.push(
            UsableShare {
                part: in_time,
                whole: in_window,
            }
            .judge_share(what, 0, remedy),
        );
    }
    if tally.has_keys() && records > 0 {
        let mut what = format!("records in them have a listed key: {with_listed_key} of {records}");
        if tally.has_other() {
            what += &format!(", {under_other} of them as what is not listed (input.key.other)");
        }
        what += &unlisted_in_words(&tally.commonest_unlisted());
        let remedy = match tally.has_other() {
            true => "correct the keys of [input.key], or its column",
            false => {
                "correct the keys of [input.key], or its column; `other` there counts all others under one name"
            }
        };
        checks.push(
            UsableShare {
                part: with_listed_key,
                whole: records,
            }
            .judge_share(what, least, remedy),
        );
    }
    if tally.finds_keys() && records > 0 {
        let what = format!(
            "records in them have a key that can be found: {with_listed_key} of {records}; all others, whose key is missing, empty, too long or no text, are dropped"
        );
        let remedy = "correct the column of [input.key], or raise `longest` there";
        checks.push(
            UsableShare {
                part: with_listed_key,
                whole: records,
            }
            .judge_share(what, least, remedy),
        );
    }
    for release in tally.releases.iter().filter(|_| records > 0) {
        checks.push(complete_check(release, records, least));
        checks.push(inside_check(release, least));
    }
    checks
}

/// Checks that enough of the records have what a release reads.
fn complete_check(release: &ReleaseTally<'_>, records: u64, least: u64) -> TopicCheck {
    let ReleaseTally { name, complete, .. } = release;
    let what = format!("records in them have all that {name} reads: {complete} of {records}");
    let remedy = "correct the names of the columns, or their types";
    UsableShare {
        part: *complete,
        whole: records,
    }
    .judge_share(what, least, remedy)
}

/// Checks that enough of the complete records lie inside the domain of a release. An end belongs to it: it may be a value of its own.
fn inside_check(release: &ReleaseTally<'_>, least: u64) -> TopicCheck {
    let ReleaseTally {
        name,
        form,
        complete,
        inside,
        at_ends,
    } = release;
    let more = if *at_ends > 0 {
        format!(", and {at_ends} at its ends")
    } else {
        String::new()
    };
    let what =
        format!("records in them lie inside the domain of {name}: {inside} of {complete}{more}");
    let drops = form
        .axes
        .iter()
        .any(|axis| axis.outside == OutsideRule::Drop)
        || matches!(form.label, Some(RecordLabel::Classes(_)));
    let fate = if drops {
        "dropped"
    } else {
        "moved to its ends"
    };
    let remedy =
        format!("correct min and max, the column, or its unit: records outside are {fate}");
    UsableShare {
        part: inside + at_ends,
        whole: *complete,
    }
    .judge_share(what, least, &remedy)
}

/// The first of the keys that are not listed.
fn unlisted_in_words(unlisted: &[UnlistedKey<'_>]) -> String {
    let mut named = Vec::new();
    for UnlistedKey { key, records } in unlisted.iter().take(MOST_NAMED) {
        let name = String::from_utf8_lossy(key);
        let name: String = name.chars().take(LONGEST_NAME).collect();
        named.push(format!("{name:?} in {records}"));
    }
    if named.is_empty() {
        String::new()
    } else {
        format!("; the commonest others: {}", named.join(", "))
    }
}
