//! Reading partitions, each for windows of its own: what an absorber does, and a worker for the partitions that nobody sends.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tracing::warn;

use super::announcement::WindowAnnouncement;
use bernstream_kafka::source::kafka::PartitionRanges;
use bernstream_kafka::source::{RedactedReason, SourceError, SourceEvent};
use bernstream_release::source::Batch;
use bernstream_release::window::{ReleaseInput, WindowRules, WindowStore};
use bernstream_synopsis::Positions;
use bernstream_synopsis::clock::Timestamp;

/// Number of windows of a partition that wait to be answered: of more, the oldest are left to the worker.
const MOST_ASKED: usize = 8;

/// The part of a window that comes from one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionPartial {
    /// [`WindowAnnouncement::partial_name`].
    pub name: String,
    pub partition: i32,
    /// [`bernstream_release::window::WindowPart::canonical_bytes`].
    pub bytes: Vec<u8>,
}

/// The outcome of a step.
#[derive(Debug, Default)]
pub struct AbsorbingStep {
    pub finished: Vec<PartitionPartial>,
    /// The reason why a partition has stopped.
    pub stuck: Option<RedactedReason>,
    /// The reason why a message was skipped.
    pub skipped: Option<RedactedReason>,
    /// Number of records that have turned up behind the end of their window, although they were sent before its cutoff: they are in none.
    pub behind: u64,
}

/// Some partitions, and their open windows.
pub struct PartitionAbsorber {
    ranges: PartitionRanges,
    rules: WindowRules,
    /// Those of this process's own settings.
    forms: Arc<[ReleaseInput]>,
    partitions: BTreeMap<i32, AbsorbedPartition>,
}

#[derive(Default)]
struct AbsorbedPartition {
    open: Option<OpenPartition>,
    asked: VecDeque<AskedWindow>,
    /// The newest, in case that it is asked for again.
    last: Option<PartitionPartial>,
}

/// A window that is asked of a partition, and what windows keep of it for whoever asks.
struct AskedWindow {
    announcement: Arc<WindowAnnouncement>,
    forms: Arc<[ReleaseInput]>,
}

/// A partition that is being read.
struct OpenPartition {
    windows: WindowStore,
    /// [`WindowAnnouncement::settings`].
    settings: String,
    first: Timestamp,
    backfill_until: Option<Timestamp>,
    /// An offset behind all messages that came before the cutoff of a window and not before that of an earlier one, by its start: if
    /// it is beyond an announced end, the window may have records from there.
    behind: BTreeMap<Timestamp, i64>,
    /// The end of the last window that was closed here: what lies before it may belong to windows that were closed elsewhere.
    closed: Option<i64>,
    /// The newest message timestamp.
    newest: Timestamp,
    /// The timestamp of the last message, or the time when it was read, if that is earlier.
    last: Timestamp,
}

impl PartitionAbsorber {
    pub fn new(ranges: PartitionRanges, rules: WindowRules, forms: Vec<ReleaseInput>) -> Self {
        PartitionAbsorber {
            ranges,
            rules,
            forms: single_pane_inputs(forms),
            partitions: BTreeMap::new(),
        }
    }

    /// The id of the topic that is read.
    pub fn topic_id(&self) -> &str {
        self.ranges.id()
    }

    /// Returns whether a window is one of the grid, and closes at the announced cutoff.
    pub fn matches_grid(&self, announcement: &WindowAnnouncement) -> bool {
        let WindowAnnouncement {
            window,
            cutoff,
            backfill_until,
            ..
        } = announcement;
        self.rules.grid.span_of(window.start) == *window
            && self.rules.end.is_none_or(|end| window.end <= end)
            && self.rules.window_cutoff(*window, *backfill_until) == *cutoff
    }

    /// Reads no partitions but these any more.
    pub fn keep_partitions(&mut self, partitions: &BTreeSet<i32>) {
        let gone: Vec<i32> = self
            .partitions
            .keys()
            .copied()
            .filter(|number| !partitions.contains(number))
            .collect();
        for number in gone {
            self.partitions.remove(&number);
            self.ranges.end_partition(number);
        }
    }

    /// Asks for the partial of a partition instead of what was asked before, and goes on reading it until [`PartitionAbsorber::keep_partitions`].
    pub fn ask_instead(&mut self, announcement: &Arc<WindowAnnouncement>, partition: i32) {
        self.clear_asked(partition);
        let forms = Arc::clone(&self.forms);
        self.ask_beside(&forms, announcement, partition);
    }

    /// Asks for a partial beside what was asked before, for a worker whose windows keep what `forms` say, of [`single_pane_inputs`] windows.
    pub fn ask_beside(
        &mut self,
        forms: &Arc<[ReleaseInput]>,
        announcement: &Arc<WindowAnnouncement>,
        partition: i32,
    ) {
        let asked = &mut self.partitions.entry(partition).or_default().asked;
        if !asked
            .iter()
            .any(|asked| asked.announcement == *announcement)
        {
            asked.push_back(AskedWindow {
                announcement: Arc::clone(announcement),
                forms: Arc::clone(forms),
            });
        }
        if asked.len() > MOST_ASKED {
            asked.pop_front();
        }
    }

    /// Answers nothing that was asked of a partition.
    pub fn clear_asked(&mut self, partition: i32) {
        if let Some(partition) = self.partitions.get_mut(&partition) {
            partition.asked.clear();
        }
    }

    /// Returns whether there is nothing to read.
    pub fn is_idle(&self) -> bool {
        self.partitions.is_empty()
    }

    /// The partitions that have stopped at a broken message.
    pub fn stopped_partitions(&self) -> Vec<i32> {
        self.partitions
            .keys()
            .copied()
            .filter(|number| self.ranges.has_stopped(*number))
            .collect()
    }

    /// Reads once, or makes the partials of what has been read.
    ///
    /// # Errors
    ///
    /// If a partition cannot be read, or messages that it may need were deleted.
    pub fn read_step(&mut self, timeout: Duration) -> Result<AbsorbingStep, SourceError> {
        let mut step = AbsorbingStep::default();
        let numbers: Vec<i32> = self.partitions.keys().copied().collect();
        for number in numbers {
            self.begin_partition(number)?;
            step.finished.extend(self.finished_partial(number)?);
        }
        if !step.finished.is_empty() {
            return Ok(step);
        }
        match self.ranges.next_event(&self.read_limits(), timeout)? {
            SourceEvent::Batch(batch) => step.behind = self.absorb_batch(&batch),
            SourceEvent::Idle => {}
            SourceEvent::Skipped { why } => step.skipped = Some(why),
            SourceEvent::Stuck { why } => step.stuck = Some(why),
            SourceEvent::Reset { why } => {
                warn!("{why}; reading again from the oldest open window");
                for (number, partition) in &mut self.partitions {
                    partition.open = None;
                    self.ranges.end_partition(*number);
                }
            }
        }
        Ok(step)
    }

    /// Begins to read a partition at the first record of the window that is asked for, unless it is being read for that window and
    /// has not come too far.
    fn begin_partition(&mut self, number: i32) -> Result<(), SourceError> {
        let Some(partition) = self.partitions.get_mut(&number) else {
            return Ok(());
        };
        let Some(AskedWindow {
            announcement: asked,
            forms,
        }) = partition.asked.front()
        else {
            return Ok(());
        };
        let is_there = partition
            .last
            .as_ref()
            .is_some_and(|last| Some(&last.name) == asked.partial_name(number).as_ref());
        if let Some(open) = partition.open.as_mut().filter(|_| !is_there) {
            open.drop_earlier_windows(asked);
        }
        if is_there
            || partition
                .open
                .as_ref()
                .is_some_and(|open| open.suits_announcement(asked, number))
        {
            return Ok(());
        }
        let WindowAnnouncement {
            window,
            first,
            backfill_until,
            ..
        } = **asked;
        let windows = WindowStore::new(
            self.rules.clone(),
            forms.to_vec(),
            first,
            window,
            backfill_until,
        );
        let settings = asked.settings.clone();
        let past = asked.past.0.get(&number).copied().unwrap_or(0);
        partition.open = None;
        if let Err(error) = self
            .ranges
            .begin_partition(number, windows.oldest_message(), past)
        {
            self.ranges.end_partition(number);
            return Err(error);
        }
        partition.open = Some(OpenPartition {
            windows,
            settings,
            first,
            backfill_until,
            behind: BTreeMap::new(),
            closed: None,
            newest: Timestamp::EARLIEST,
            last: Timestamp::EARLIEST,
        });
        Ok(())
    }

    /// The partial that was asked for first, if everything before its end was read.
    fn finished_partial(&mut self, number: i32) -> Result<Option<PartitionPartial>, SourceError> {
        let Some(partition) = self.partitions.get_mut(&number) else {
            return Ok(None);
        };
        let Some(AskedWindow {
            announcement: asked,
            ..
        }) = partition.asked.front()
        else {
            return Ok(None);
        };
        let (Some(name), Some(end)) = (asked.partial_name(number), asked.ends.0.get(&number))
        else {
            partition.asked.pop_front();
            return Ok(None);
        };
        if partition.last.as_ref().is_none_or(|last| last.name != name) {
            let Some(open) = &mut partition.open else {
                return Ok(None);
            };
            if !self.ranges.has_reached(number, *end)? || !open.suits_announcement(asked, number) {
                return Ok(None);
            }
            let bytes = open.windows.close_part().canonical_bytes();
            open.closed = Some(*end);
            // Only the greatest matters to later windows.
            let later = open.behind.split_off(&asked.window.end);
            let behind = std::mem::replace(&mut open.behind, later)
                .into_values()
                .max();
            open.behind
                .extend(behind.map(|behind| (asked.window.start, behind)));
            partition.last = Some(PartitionPartial {
                name,
                partition: number,
                bytes,
            });
        }
        partition.asked.pop_front();
        Ok(partition.last.clone())
    }

    /// The offsets up to which to read: to the end of what is asked for. Others wait until that is answered, and do not come far ahead of the windows
    /// that will be asked for.
    fn read_limits(&self) -> Positions {
        let is_asked = self
            .partitions
            .values()
            .any(|partition| !partition.asked.is_empty());
        let mut until = Positions::default();
        for (number, partition) in &self.partitions {
            let Some(open) = &partition.open else {
                continue;
            };
            let asked = partition.asked.front();
            let end = asked.and_then(|asked| asked.announcement.ends.0.get(number));
            if let Some(end) = end {
                until.0.insert(*number, *end);
            } else if is_asked
                || open.last >= open.windows.next_cutoff().plus(self.rules.grid.length())
            {
                until.0.insert(*number, 0);
            }
        }
        until
    }

    /// Absorbs a batch; returns how many of its records were sent in time for a window that has ended without them.
    fn absorb_batch(&mut self, batch: &Batch) -> u64 {
        let number = batch.partition;
        let Some(open) = self
            .partitions
            .get_mut(&number)
            .and_then(|partition| partition.open.as_mut())
        else {
            return 0;
        };
        let mut counts = open.windows.absorb_batch(batch);
        if counts.closed > 0 && open.closed.is_some_and(|end| batch.offset >= end) {
            counts.set_behind(open.windows.count_behind(batch));
        }
        // The first window whose cutoff is later.
        let mut start = Timestamp::EARLIEST;
        if let Some(time) = batch.message_time
            && open.backfill_until.is_none_or(|until| time >= until)
        {
            let earliest = time.minus(self.rules.allowed_lateness);
            start = self.rules.grid.span_of(earliest).start;
        }
        let behind = open.behind.entry(start).or_default();
        *behind = self.ranges.returned_offset(number).max(*behind);
        if let Some(time) = batch.message_time {
            // By a producer's clock a message can be from the future, which must not end reading ahead.
            open.last = time.min(Timestamp::now());
            open.newest = time.max(open.newest);
        }
        counts.behind
    }
}

/// Windows that overlap are joined by the worker: here each is kept by itself.
pub(super) fn single_pane_inputs(
    forms: impl IntoIterator<Item = ReleaseInput>,
) -> Arc<[ReleaseInput]> {
    forms
        .into_iter()
        .map(|form| ReleaseInput { panes: 1, ..form })
        .collect()
}

impl OpenPartition {
    /// Drops the windows before the one that is asked for, if reading has come to it: others have sent them, and what was read since is of
    /// that one too.
    fn drop_earlier_windows(&mut self, asked: &WindowAnnouncement) {
        let has_come = self.newest >= self.windows.oldest_message_of(asked.window);
        while has_come
            && self.reads_for(asked)
            && self
                .windows
                .next()
                .is_some_and(|next| next.start < asked.window.start)
        {
            self.windows.close_part();
            self.closed = None;
        }
    }

    /// Returns whether it reads as whoever asks.
    fn reads_for(&self, asked: &WindowAnnouncement) -> bool {
        self.settings == asked.settings
            && self.first == asked.first
            && self.backfill_until == asked.backfill_until
    }

    /// Returns whether what is read can be the partial: of that window, and with nothing from behind its end.
    fn suits_announcement(&self, asked: &WindowAnnouncement, number: i32) -> bool {
        let end = asked.ends.0.get(&number).copied().unwrap_or(0);
        self.reads_for(asked)
            && self.windows.next() == Some(asked.window)
            && self
                .behind
                .range(..=asked.window.start)
                .all(|(_, behind)| *behind <= end)
    }
}
