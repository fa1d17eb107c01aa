//! What the caps on a user's records and keys drop of a sample.

use std::collections::{HashMap, HashSet};

use arrow_array::Array;

use super::tally::has_user;
use crate::cli::cap::CapLoss;
use crate::cli::progress::part_in_words;
use bernstream_config::WorkerSettings;
use bernstream_kafka::check::TopicCheck;
use bernstream_release::source::Batch;
use bernstream_release::window::{Cap, KeyGroups, WindowRules};
use bernstream_synopsis::clock::Timestamp;

/// Number of users that are followed, each of their windows counting as one. Records of others are not looked at.
const MOST_USER_WINDOWS: usize = 1_000_000;

/// Numbers of records and keys of a sample that each user has in each window and period: caps are for these.
pub struct CapTally<'a> {
    rules: &'a WindowRules,
    keys: Option<KeyGroups>,
    /// Caps on the keys of a user.
    key_caps: Vec<KeyCap<'a>>,
    counts: HashMap<UserWindow, UserCount>,
    /// Records of others were not looked at.
    is_full: bool,
}

/// Most keys of a user that count in a window of a release.
struct KeyCap<'a> {
    release: &'a str,
    most: u32,
}

/// What a user has in a window.
#[derive(Default)]
struct UserCount {
    records: u64,
    /// Different keys by their places, where there is a cap on them: all that is not listed may be one.
    keys: HashSet<u32>,
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
        let mut key_caps = Vec::new();
        for release in &settings.releases {
            if let Some(counts) = release.function.keyed_counts()
                && settings.windows.keys.is_some()
            {
                key_caps.push(KeyCap {
                    release: &release.name,
                    most: counts.max_keys,
                });
            }
        }
        CapTally {
            rules: &settings.windows,
            keys: KeyGroups::of_rules(&settings.windows),
            key_caps,
            counts: HashMap::new(),
            is_full: false,
        }
    }

    pub fn count(&mut self, batch: &Batch) {
        let Some(cap) = &self.rules.cap else { return };
        let groups = match (&self.keys, &batch.keys) {
            (Some(groups), Some(keys)) => groups.groups_of_rows(keys),
            _ => Vec::new(),
        };
        for row in 0..batch.times.len() {
            let group = groups.get(row).copied().flatten();
            if self.keys.is_some() && group.is_none() {
                continue;
            }
            let Some(user) = user_window_of(self.rules, cap, batch, row) else {
                continue;
            };
            if self.counts.len() >= MOST_USER_WINDOWS && !self.counts.contains_key(&user) {
                self.is_full = true;
                continue;
            }
            let count = self.counts.entry(user).or_default();
            count.records += 1;
            if !self.key_caps.is_empty() {
                count.keys.extend(group);
            }
        }
    }

    /// Tells how much the caps keep, with a warning where one drops most of it; `is_part` if not all records are tried.
    pub fn checks(&self, is_part: bool) -> Vec<TopicCheck> {
        let cap = self.rules.cap.as_ref().filter(|cap| cap.records > 0);
        let of_records = cap.and_then(|cap| self.check_of_records(cap, is_part));
        let of_keys = self.key_caps.iter();
        of_records
            .into_iter()
            .chain(of_keys.filter_map(|cap| self.check_of_keys(cap, is_part)))
            .collect()
    }

    /// Tells how many users in keys count under a cap on them.
    fn check_of_keys(&self, cap: &KeyCap<'_>, is_part: bool) -> Option<TopicCheck> {
        let KeyCap { release, most } = cap;
        let counts: Vec<u64> = self
            .counts
            .values()
            .map(|count| count.keys.len() as u64)
            .collect();
        let all = counts.iter().sum::<u64>();
        if all == 0 {
            return None;
        }
        let kept = counts
            .iter()
            .map(|keys| u64::from(*most).min(*keys))
            .sum::<u64>();
        let mut what = format!(
            "keys of a user and window in them count under the cap of {most} in {release}: {}",
            part_in_words(kept, all)
        );
        what += &self.remarks(is_part, "keys");
        let mut check = TopicCheck::passed(what);
        if kept < all / 2 {
            let remedy = format!(
                "raise max_keys of {release}, and the noise with it: it is part of what a ledger promises, so decide before there is one"
            );
            check.warning = Some(("the cap drops more than half".to_owned(), remedy));
        }
        Some(check)
    }

    /// Tells how far the sample can be trusted.
    fn remarks(&self, is_part: bool, capped: &str) -> String {
        let mut remarks = String::new();
        if self.is_full {
            remarks += &format!(
                "; of the first {MOST_USER_WINDOWS} users and windows, for there are more"
            );
        }
        if is_part {
            remarks += &format!(
                "; a user may have more {capped} than are in the sample, and the cap then keeps less of them"
            );
        }
        remarks
    }

    /// Tells how many records the cap on them keeps.
    fn check_of_records(&self, cap: &Cap, is_part: bool) -> Option<TopicCheck> {
        let counts: Vec<u64> = self.counts.values().map(|count| count.records).collect();
        let records = counts.iter().sum::<u64>();
        if records == 0 {
            return None;
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
        what += &self.remarks(is_part, "records");
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
        Some(check)
    }
}

/// The user of a record with a listed key, if a window takes it: the releases may drop it all the same.
fn user_window_of(rules: &WindowRules, cap: &Cap, batch: &Batch, row: usize) -> Option<UserWindow> {
    let time = batch
        .times
        .is_valid(row)
        .then(|| Timestamp::from_micros(batch.times.value(row)))?;
    let is_taken = rules.has_window(time, batch.message_time) && has_user(batch, row);
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
