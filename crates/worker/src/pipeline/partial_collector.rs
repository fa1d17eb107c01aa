//! The windows of a worker whose reading is split over processes: it announces each of them, takes what absorbers send, and reads
//! itself what they do not.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use tracing::{error, info, warn};

use super::absorber_metrics::AbsorberMetrics;
use super::joining::PartialWindow;
use super::local_partitions::LocalPartitions;
use super::local_readers::LocalReaderPool;
use super::loops::WindowsStart;
use super::reader::{InputReader, ReaderStatus};
use super::repeated_event::RepeatedEvent;
use crate::metrics::Metrics;
use crate::scale::{
    self, AddedPiece, CollectedPartials, PartialPiece, ScaleMessage, ScaleTopic, WindowAnnouncement,
};
use bernstream_kafka::source;
use bernstream_kafka::source::RecordSource;
use bernstream_kafka::source::kafka::KafkaSource;
use bernstream_release::window::{VERSION, WindowStore};
use bernstream_synopsis::clock::{ScheduleClock, Timestamp};
use bernstream_synopsis::grid::Span;
use bernstream_synopsis::{Positions, RecordedPositions};

/// The longest wait for what is read here, and so the delay with which a partial or a stop is noticed.
const LOCAL_POLL: Duration = Duration::from_millis(100);
/// The pause between two announcements of a window, until everything is there: an absorber may have started, or been given a partition, in between.
const ANNOUNCEMENT_INTERVAL: Duration = Duration::from_secs(1);
/// Number of windows that are remembered, to compare copies that come late.
const REMEMBERED_WINDOWS: usize = 8;

/// Everything that a worker needs to leave reading to others.
pub struct AbsorberParams {
    /// The input, for its clock and its end offsets.
    pub input: KafkaSource,
    pub topic: ScaleTopic,
    /// Readers of the partitions that no absorber sends, each in a thread: one at least.
    pub own: Vec<scale::PartitionAbsorber>,
    /// The digest of the settings that decide what is read of a record.
    pub settings: String,
    /// The choices of `"auto"` that the ledger keeps.
    pub choices: String,
    /// The time after its announcement for which the partials of a window are waited for.
    pub deadline: Duration,
    /// The most bytes that are held of the partials of a window.
    pub most: u64,
}

impl AbsorberParams {
    pub(super) fn clock(&self) -> ScheduleClock {
        self.input.clock()
    }
}

/// A reader that makes windows of announcements and partials: of everything, as far as the other loops know.
pub(super) struct PartialCollector<'a> {
    absorbed: AbsorberParams,
    /// The id of the input topic.
    id: String,
    local_reader_pool: LocalReaderPool,
    /// Those of all partials that are there.
    windows: WindowStore,
    first: Timestamp,
    backfill_until: Option<Timestamp>,
    /// The windows to announce before the next one can close: itself, and after a start those that it overlaps.
    coming: VecDeque<Span>,
    announced_window: Option<AnnouncedWindow>,
    /// The rounds before, to compare copies that come late.
    past: VecDeque<AnnouncedWindow>,
    local_partitions: LocalPartitions,
    /// The windows that are closed and not known to be accepted, in order.
    closed: VecDeque<UnacceptedWindow>,
    accepted: Arc<AtomicI64>,
    absorbers: AbsorberMetrics,
    recorded: RecordedPositions,
    has_begun: bool,
    /// Partials that could not be unpacked.
    broken: RepeatedEvent,
    status: ReaderStatus<'a>,
}

/// A window that was announced.
struct AnnouncedWindow {
    id: String,
    announcement: Arc<WindowAnnouncement>,
    collected: CollectedPartials,
    since: Instant,
    announced_last: Instant,
    is_late: bool,
}

/// A window that was closed, by its end.
struct UnacceptedWindow {
    end: Timestamp,
    /// The end of what belongs to it in the topic.
    read_to: Positions,
}

impl<'a> PartialCollector<'a> {
    pub fn new(
        absorbed: AbsorberParams,
        id: String,
        local_reader_pool: LocalReaderPool,
        start: &WindowsStart<'_>,
        accepted: Arc<AtomicI64>,
        metrics: Metrics,
        status: ReaderStatus<'a>,
    ) -> Self {
        let windows = start.open_windows();
        PartialCollector {
            absorbed,
            id,
            local_reader_pool,
            coming: windows.needed().into(),
            windows,
            first: start.first,
            backfill_until: start.backfill_until,
            announced_window: None,
            past: VecDeque::new(),
            local_partitions: LocalPartitions::default(),
            closed: VecDeque::new(),
            accepted,
            absorbers: AbsorberMetrics::new(metrics),
            recorded: start.recorded.clone(),
            has_begun: false,
            broken: RepeatedEvent::default(),
            status,
        }
    }
}

impl<'a> InputReader<'a> for PartialCollector<'a> {
    fn reader_status(&mut self) -> &mut ReaderStatus<'a> {
        &mut self.status
    }

    fn is_over(&self) -> bool {
        self.windows.next().is_none()
    }

    /// Waits for records, partials or the end of a window, and takes what is there.
    fn read_once(&mut self) -> Result<Option<PartialWindow>, source::SourceError> {
        self.absorbed.input.still_exists()?;
        if !self.has_begun {
            self.absorbed.input.begin_following(&self.recorded.ends)?;
            self.has_begun = true;
        }
        if self.announced_window.is_none() {
            self.announce_window()?;
        }
        let until = Instant::now() + LOCAL_POLL;
        while Instant::now() < until
            && let Some(message) = self.absorbed.topic.next_message(Duration::ZERO, until)
        {
            if let ScaleMessage::Piece(piece) = message {
                self.take_piece(piece);
            }
        }
        self.delete_accepted();
        // There is no time to wait where more has been sent.
        self.take_local_partials(until.saturating_duration_since(Instant::now()));
        self.status
            .report_reading(self.absorbed.input.is_connected());
        if let Some(line) = self.broken.due_line() {
            let partition = line.newest;
            warn!(
                "an absorber has sent a partial of partition {partition} that cannot be unpacked"
            );
        }
        let Some(announced_window) = &mut self.announced_window else {
            return Ok(None);
        };
        if announced_window
            .collected
            .missing_partitions()
            .next()
            .is_none()
        {
            return Ok(self.close_window());
        }
        if announced_window.announced_last.elapsed() >= ANNOUNCEMENT_INTERVAL {
            self.absorbed
                .topic
                .send_announcement(&announced_window.id, &announced_window.announcement);
            announced_window.announced_last = Instant::now();
        }
        if !announced_window.is_late && announced_window.since.elapsed() >= self.absorbed.deadline {
            announced_window.is_late = true;
            let missing: Vec<i32> = announced_window.collected.missing_partitions().collect();
            // Whatever was asked before: what is asked twice is read once, and what nobody asked for would be waited for without end.
            let mut has_new = false;
            for number in &missing {
                self.local_reader_pool
                    .ask_for_partial(&announced_window.announcement, *number);
                has_new |= self.local_partitions.add_late(*number);
            }
            // How long absorbers take shows how much they have read, also where all of them are late.
            if has_new && self.absorbers.are_shown() {
                info!(
                    partitions = missing.len(),
                    "no absorber has sent these partitions in time: they are read here"
                );
            }
        }
        Ok(None)
    }
}

impl PartialCollector<'_> {
    /// Deletes what belongs to windows that the witness has accepted: a worker that starts again does not need it.
    fn delete_accepted(&mut self) {
        let accepted = Timestamp::from_micros(self.accepted.load(Relaxed));
        let mut newest = None;
        while let Some(closed) = self.closed.pop_front_if(|closed| closed.end <= accepted) {
            newest = Some(closed);
        }
        if let Some(newest) = newest {
            self.absorbed.topic.delete_before(newest.read_to);
        }
    }

    /// Announces the next window, once its end offsets are known.
    fn announce_window(&mut self) -> Result<(), source::SourceError> {
        let AbsorberParams {
            input,
            topic,
            settings,
            choices,
            ..
        } = &mut self.absorbed;
        let Some(window) = self.coming.front().copied().or_else(|| self.windows.next()) else {
            return Ok(());
        };
        let cutoff = self.windows.cutoff_of(window);
        let (Some(ends), Some(id)) = (input.end_offsets(cutoff)?, ScaleTopic::new_id()) else {
            return Ok(());
        };
        let announcement = Arc::new(WindowAnnouncement {
            version: VERSION,
            settings: settings.clone(),
            choices: choices.clone(),
            topic: self.id.clone(),
            window,
            cutoff,
            first: self.first,
            backfill_until: self.backfill_until,
            ends,
            past: input.past_offsets(self.windows.oldest_message_of(window), &self.recorded),
        });
        topic.send_announcement(&id, &announcement);
        let local_partitions = self
            .local_partitions
            .next_window(|number| announcement.ends.0.contains_key(number));
        self.local_reader_pool.keep_partitions(&local_partitions);
        for number in &local_partitions {
            self.local_reader_pool
                .ask_for_partial(&announcement, *number);
        }
        self.absorbers.show_read_here(local_partitions.len());
        let collected = CollectedPartials::new(&announcement, self.absorbed.most);
        let now = Instant::now();
        self.announced_window = Some(AnnouncedWindow {
            id,
            announcement,
            collected,
            since: now,
            announced_last: now,
            is_late: false,
        });
        Ok(())
    }

    /// Takes a piece of a partial, of this window or of one before it.
    fn take_piece(&mut self, piece: PartialPiece) {
        let partition = piece.partition;
        if let Some(past) = self
            .past
            .iter_mut()
            .find(|announced_window| announced_window.collected.is_named(&piece))
        {
            // It was released with what it had: this is the alarm, and there is nothing to read again.
            let absorber = piece.absorber.clone();
            let bytes = piece.bytes.len() as u64;
            let added = past.collected.add_piece(piece);
            self.absorbers.count_piece(absorber, bytes, added);
            match added {
                AddedPiece::Differing => report_differing(partition),
                // All partitions may be read here, and each window be there before anybody else can send any of it.
                AddedPiece::Known if past.since.elapsed() < self.absorbed.deadline => {
                    self.local_partitions.give_back(partition)
                }
                _ => {}
            }
            return;
        }
        let Some(announced_window) = self
            .announced_window
            .as_mut()
            .filter(|announced_window| announced_window.collected.is_named(&piece))
        else {
            return;
        };
        let is_in_time = announced_window.since.elapsed() < self.absorbed.deadline;
        let number = piece.number;
        let absorber = piece.absorber.clone();
        let bytes = piece.bytes.len() as u64;
        let added = announced_window.collected.add_piece(piece);
        // Each of its pieces finds no room: that is counted once.
        let counted = if added == AddedPiece::Full && number > 0 {
            AddedPiece::Nothing
        } else {
            added
        };
        self.absorbers.count_piece(absorber, bytes, counted);
        match added {
            AddedPiece::Differing => {
                report_differing(partition);
                self.local_reader_pool
                    .ask_for_partial(&announced_window.announcement, partition);
                self.local_partitions.add_late(partition);
            }
            AddedPiece::Broken => self.broken.add_events(1, format!("{partition}")),
            // How much was recorded is told by metrics for operators, and not by the log.
            AddedPiece::Full if self.local_partitions.add_without_room(partition) => self
                .local_reader_pool
                .ask_for_partial(&announced_window.announcement, partition),
            AddedPiece::Full => {}
            // Somebody reads it, and fast enough: also where this process was faster.
            AddedPiece::Complete | AddedPiece::Known if is_in_time => {
                self.local_partitions.give_back(partition)
            }
            AddedPiece::Complete | AddedPiece::Known | AddedPiece::Nothing => {}
        }
    }

    /// Takes what was read here.
    fn take_local_partials(&mut self, timeout: Duration) {
        for partial in self.local_reader_pool.next_partials(timeout) {
            let partition = partial.partition;
            if let Some(announced_window) = &mut self.announced_window
                && announced_window.collected.add_own(partial) == AddedPiece::Differing
            {
                report_differing(partition);
            }
        }
    }

    /// Adds all partials of the window to it; returns its share if it is the next one to close.
    fn close_window(&mut self) -> Option<PartialWindow> {
        let mut announced_window = self.announced_window.take()?;
        let WindowAnnouncement {
            window,
            cutoff,
            ends,
            ..
        } = &*announced_window.announcement;
        let mut refused = Vec::new();
        for (partition, bytes) in announced_window.collected.complete_partials() {
            // There may be thousands of them, of megabytes each.
            self.status.record_heartbeat();
            if !self.windows.take_part(*window, bytes) {
                refused.push(partition);
            }
        }
        if let Some(partition) = refused.first() {
            // Sealed with the key, named rightly, and no partial: somebody else's program has written it.
            error!(
                "the partial of partition {partition} cannot be read, and the window is read again"
            );
            self.windows.forget_window(*window);
            for number in refused {
                if let Some(absorber) = announced_window.collected.refuse_partial(number)
                    && !absorber.is_empty()
                {
                    self.absorbers.count_refused(&absorber);
                }
                self.local_reader_pool
                    .ask_for_partial(&announced_window.announcement, number);
                self.local_partitions.add_late(number);
            }
            self.announced_window = Some(announced_window);
            return None;
        }
        self.coming.pop_front();
        // The next window is not announced yet: nothing that was read belongs to it.
        self.closed.push_back(UnacceptedWindow {
            end: window.end,
            read_to: self.absorbed.topic.read_to(),
        });
        let mut share = None;
        if self.windows.next() == Some(*window) {
            share = Some(PartialWindow {
                part: self.windows.close_part(),
                ends: ends.clone(),
                cutoff: *cutoff,
            });
        }
        announced_window.collected.forget_bytes();
        self.past.push_front(announced_window);
        self.past.truncate(REMEMBERED_WINDOWS);
        share
    }
}

fn report_differing(partition: i32) {
    error!(
        "two copies of the partial of partition {partition} differ, and none that an absorber has sent is taken: is somebody else \
         writing to scale.topic, do absorbers run on damaged machines, or has the partition lost records in an unclean election?"
    );
}
