//! What the cap on a user's records drops of a sample.

use std::collections::HashMap;

use arrow_array::Array;

use super::tally::{has_user, is_listed};
use crate::cli::cap::CapLoss;
use crate::cli::progress::part_in_words;
use bernstream_config::WorkerSettings;
use bernstream_kafka::check::TopicCheck;
use bernstream_release::source::Batch;
use bernstream_release::window::{Cap, WindowRules};
use bernstream_synopsis::clock::Timestamp;

/// Number of users that are followed, each of their windows counting as one. Records of others are not looked at.
const MOST_USER_WINDOWS: usize = 1_000_000;

/// Numbers of records of a sample that each user has in each window and period: a cap is for these.
pub struct CapTally<'a> {
    rules: &'a WindowRules,
    counts: HashMap<UserWindow, u64>,
    /// Records of others were not looked at.
    is_full: bool,
}

/// A user in a window, within a period.
#[derive(PartialEq, Eq, Hash)]
struct UserWindow {
    window: Timestamp,
    period: Timestamp,
    user: Vec<u8>,
}

impl<'a> CapTally<'a> {
    pub fn new(settings: &'a WorkerSettings) -> Self {
        CapTally {
            rules: &settings.windows,
            counts: HashMap::new(),
            is_full: false,
        }
    }

    pub fn count(&mut self, batch: &Batch) {
        let Some(cap) = &self.rules.cap else { return };
        for row in 0..batch.times.len() {
            if let Some(user) = user_window_of(self.rules, cap, batch, row) {
                if let Some(records) = self.counts.get_mut(&user) {
                    *records += 1;
                } else if self.counts.len() < MOST_USER_WINDOWS {
                    self.counts.insert(user, 1);
                } else {
                    self.is_full = true;
                }
            }
        }
    }

    /// Tells how many records the cap keeps, with a warning where it drops most of them; `is_part` if not all records are tried.
    pub fn checks(&self, is_part: bool) -> Vec<TopicCheck> {
        let Some(cap) = &self.rules.cap else {
            return Vec::new();
        };
        let counts: Vec<u64> = self.counts.values().copied().collect();
        let records = counts.iter().sum::<u64>();
        if records == 0 {
            return Vec::new();
        }
        let kept = counts
            .iter()
            .map(|count| u64::from(cap.records).min(*count))
            .sum();
        let mut what = format!(
            "records in them count under the cap of {} for a user in a window: {}",
            cap.records,
            part_in_words(kept, records)
        );
        if self.is_full {
            what += &format!(
                "; of the first {MOST_USER_WINDOWS} users and windows, for there are more"
            );
        }
        if is_part {
            what += "; a user may have more records than are in the sample, and the cap then keeps less of them";
        }
        let loss = CapLoss::of_counts(u64::from(cap.records), &counts);
        let mut check = TopicCheck::passed(what);
        if loss.is_much() {
            let why = "the cap drops more than half".to_owned();
            let remedy = format!(
                "{}; or keep it, if the earliest records of each user tell enough. It is part of what a ledger promises: \
                 decide before there is one",
                loss.alternative_in_words()
            );
            check.warning = Some((why, remedy));
        }
        vec![check]
    }
}

/// The user of a record, if a window takes it: the releases may drop it all the same.
fn user_window_of(rules: &WindowRules, cap: &Cap, batch: &Batch, row: usize) -> Option<UserWindow> {
    let time = batch
        .times
        .is_valid(row)
        .then(|| Timestamp::from_micros(batch.times.value(row)))?;
    let is_taken = rules.has_window(time, batch.message_time)
        && is_listed(rules, batch, row)
        && has_user(batch, row);
    let user = batch
        .units
        .as_ref()
        .and_then(|users| users.get(row))
        .filter(|_| is_taken)?;
    let window = rules.grid.span_of(time).start;
    let period = cap.period.span_of(time).start;
    Some(UserWindow {
        window,
        period,
        user: user.to_vec(),
    })
}
