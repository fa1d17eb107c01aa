//! The windows of a worker whose reading is split over processes: it announces each of them, takes what absorbers send, and reads
//! itself what they do not.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use tracing::{error, info, warn};

use super::absorbers::Absorbers;
use super::error::Error;
use super::health::{Health, ReaderHealth};
use super::joining::{Handover, Share};
use super::outage::CommonOutage;
use super::repeated::Repeated;
use super::stop::Stop;
use crate::clock::{ScheduleClock, Timestamp};
use crate::metrics::Metrics;
use crate::scale::{self, Added, Announcement, Collected, Message, Piece, ScaleTopic};
use crate::source::kafka::Kafka;
use crate::source::{self, Positions, Source};
use crate::window::grid::Span;
use crate::window::{VERSION, Windows};

/// The longest wait for records, and so the delay with which a partial or a stop is noticed.
const POLL: Duration = Duration::from_millis(100);
/// The pause before a transient failure is retried.
const RETRY: Duration = Duration::from_secs(1);
/// How often a window is announced until everything is there: an absorber may have started, or been given a partition, in between.
const AGAIN: Duration = Duration::from_secs(1);
/// How many windows are remembered, to compare copies that come late.
const REMEMBERED: usize = 8;

/// What a worker needs to leave reading to others.
pub struct Absorbed {
    /// The input, for its clock and its end offsets.
    pub input: Kafka,
    pub topic: ScaleTopic,
    /// What reads the partitions that no absorber sends.
    pub own: scale::Absorbing,
    /// The digest of the settings that decide what is read of a record.
    pub settings: String,
    /// How long after its announcement the partials of a window are waited for.
    pub deadline: Duration,
}

impl Absorbed {
    pub(super) fn clock(&self) -> ScheduleClock {
        self.input.clock()
    }
}

/// From announcements and partials to windows: a reader of everything, as far as the other loops know.
pub(super) struct Absorbing<'a> {
    absorbed: Absorbed,
    /// Those of all partials that are there.
    windows: Windows,
    first: Timestamp,
    backfill_until: Option<Timestamp>,
    /// The windows to announce before the next one can close: itself, and after a start those that it overlaps.
    coming: VecDeque<Span>,
    round: Option<Round>,
    /// The rounds before, to compare copies that come late.
    past: VecDeque<Round>,
    /// The partitions that no absorber has sent in time: they are read here, all the time.
    alone: BTreeSet<i32>,
    /// Where the topic may be deleted to once a window is accepted, by the end of it.
    closed: VecDeque<(Timestamp, Positions)>,
    accepted: Arc<AtomicI64>,
    absorbers: Absorbers,
    recorded: Positions,
    is_checked: bool,
    is_stuck: bool,
    skipped: Repeated,
    outage: &'a CommonOutage,
    health: Arc<ReaderHealth>,
    all: &'a Health,
}

/// A window that was announced.
struct Round {
    id: String,
    announcement: Arc<Announcement>,
    collected: Collected,
    since: Instant,
    told: Instant,
    is_late: bool,
}

impl<'a> Absorbing<'a> {
    pub fn new(
        absorbed: Absorbed,
        (windows, first, backfill_until): (Windows, Timestamp, Option<Timestamp>),
        (recorded, accepted, metrics): (Positions, Arc<AtomicI64>, Metrics),
        (outage, health, all): (&'a CommonOutage, Arc<ReaderHealth>, &'a Health),
    ) -> Self {
        Absorbing {
            absorbed,
            coming: windows.needed().into(),
            windows,
            first,
            backfill_until,
            round: None,
            past: VecDeque::new(),
            alone: BTreeSet::new(),
            closed: VecDeque::new(),
            accepted,
            absorbers: Absorbers::new(metrics),
            recorded,
            is_checked: false,
            is_stuck: false,
            skipped: Repeated::default(),
            outage,
            health,
            all,
        }
    }

    /// Closes one window after another, until the grid ends or a stop is requested.
    ///
    /// # Errors
    ///
    /// A failure that retrying cannot mend.
    pub fn run(mut self, shares: Handover, stop: &Stop) -> Result<(), Error> {
        while !stop.asked() && self.windows.next().is_some() {
            self.health.beat();
            match self.step() {
                Ok(None) => {}
                Ok(Some(share)) => {
                    if !shares.give(share, &self.health, stop) {
                        break;
                    }
                }
                Err(error) if error.is_transient() => {
                    self.health.reading.store(false, Relaxed);
                    if self.outage.fails() {
                        warn!("cannot read the input: {error}; trying again");
                    }
                    stop.wait(RETRY);
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Waits for records, partials or the end of a window, and takes what is there.
    fn step(&mut self) -> Result<Option<Share>, source::Error> {
        self.absorbed.input.still_exists()?;
        if !self.is_checked {
            self.absorbed.input.is_the_same(&self.recorded)?;
            self.is_checked = true;
        }
        if self.round.is_none() {
            self.announce()?;
        }
        while let Some(message) = self.absorbed.topic.next(Duration::ZERO) {
            if let Message::Piece(piece) = message {
                self.take(piece);
            }
        }
        self.delete();
        self.read()?;
        self.is_reading();
        if let Some((count, why)) = self.skipped.due() {
            warn!("{count} broken messages were skipped; the last: {why}");
        }
        let Some(round) = &mut self.round else { return Ok(None) };
        if round.collected.missing().next().is_none() {
            return Ok(self.close());
        }
        if round.told.elapsed() >= AGAIN {
            self.absorbed.topic.announce(&round.id, &round.announcement);
            round.told = Instant::now();
        }
        if !round.is_late && round.since.elapsed() >= self.absorbed.deadline {
            round.is_late = true;
            let missing: Vec<i32> = round.collected.missing().collect();
            // Whatever was asked before: what is asked twice is read once, and what nobody asked for would be waited for without end.
            missing.iter().for_each(|number| self.absorbed.own.ask(&round.announcement, *number));
            let more = missing.into_iter().filter(|number| self.alone.insert(*number)).count();
            if more > 0 {
                info!(partitions = more, "no absorber has sent these partitions in time: they are read here");
            }
        }
        Ok(None)
    }

    /// Deletes what belongs to windows that the witness has accepted: a worker that starts again does not need it.
    fn delete(&mut self) {
        let accepted = Timestamp::from_micros(self.accepted.load(Relaxed));
        let is_accepted = |(end, _): &mut (Timestamp, Positions)| *end <= accepted;
        let all = std::iter::from_fn(|| self.closed.pop_front_if(is_accepted));
        if let Some((_, before)) = all.last() {
            self.absorbed.topic.delete_before(before);
        }
    }

    /// Announces the next window, once its end offsets are known.
    fn announce(&mut self) -> Result<(), source::Error> {
        let Absorbed { input, topic, own, settings, .. } = &mut self.absorbed;
        let Some(window) = self.coming.front().copied().or_else(|| self.windows.next()) else { return Ok(()) };
        let cutoff = self.windows.cutoff_of(window);
        let (Some(ends), Some(id)) = (input.ends(cutoff)?, ScaleTopic::new_id()) else { return Ok(()) };
        let announcement = Arc::new(Announcement {
            version: VERSION,
            settings: settings.clone(),
            topic: own.topic().to_owned(),
            window,
            cutoff,
            first: self.first,
            backfill_until: self.backfill_until,
            ends,
        });
        topic.announce(&id, &announcement);
        self.alone.retain(|number| announcement.ends.0.contains_key(number));
        own.keep(&self.alone);
        self.alone.iter().for_each(|number| own.ask(&announcement, *number));
        self.absorbers.leave(self.alone.len());
        let (collected, now) = (Collected::new(&announcement), Instant::now());
        self.round = Some(Round { id, announcement, collected, since: now, told: now, is_late: false });
        Ok(())
    }

    /// Takes a piece of a partial, of this window or of one before it.
    fn take(&mut self, piece: Piece) {
        let partition = piece.partition;
        if let Some(past) = self.past.iter_mut().find(|round| round.collected.names(&piece)) {
            // It was released with what it had: this is the alarm, and there is nothing to read again.
            let (absorber, bytes) = (piece.absorber.clone(), piece.bytes.len() as u64);
            let added = past.collected.add(piece);
            self.absorbers.count(absorber, bytes, added);
            if added == Added::Differing {
                differs(partition);
            }
            return;
        }
        let Some(round) = self.round.as_mut().filter(|round| round.collected.names(&piece)) else { return };
        let is_in_time = round.since.elapsed() < self.absorbed.deadline;
        let (number, of) = (piece.number, piece.of);
        let (absorber, bytes) = (piece.absorber.clone(), piece.bytes.len() as u64);
        let added = round.collected.add(piece);
        self.absorbers.count(absorber, bytes, added);
        match added {
            Added::Differing => {
                differs(partition);
                self.absorbed.own.ask(&round.announcement, partition);
                self.alone.insert(partition);
            }
            Added::Broken => warn!("an absorber has sent a partial of partition {partition} that cannot be unpacked"),
            // Somebody reads it, and fast enough: also where this process was faster.
            Added::Complete | Added::Nothing if is_in_time && number + 1 == of => _ = self.alone.remove(&partition),
            Added::Complete | Added::Nothing => {}
        }
    }

    /// Reads the partitions that are read here.
    fn read(&mut self) -> Result<(), source::Error> {
        let step = self.absorbed.own.step(POLL)?;
        self.is_stuck = step.stuck.is_some();
        if let Some(why) = step.stuck
            && self.health.reading.swap(false, Relaxed)
        {
            error!("reading has stopped: {why}");
        }
        if let Some(why) = step.skipped {
            self.skipped.add(1, why);
        }
        for partial in step.finished {
            let partition = partial.partition;
            if let Some(round) = &mut self.round
                && round.collected.add_own(partial) == Added::Differing
            {
                differs(partition);
            }
        }
        Ok(())
    }

    /// Adds all partials of the window to it; returns its share if it is the next one to close.
    fn close(&mut self) -> Option<Share> {
        let mut round = self.round.take()?;
        let Announcement { window, cutoff, ends, .. } = &*round.announcement;
        let mut added = BTreeMap::new();
        for (partition, bytes) in round.collected.partials() {
            added.insert(partition, self.windows.take(*window, partition, bytes));
        }
        if let Some((partition, _)) = added.iter().find(|(_, is_added)| !**is_added) {
            // Sealed with the key, named rightly, and no partial: somebody else's program has written it.
            error!("the partial of partition {partition} cannot be read, and the window is read again");
            self.windows.forget(*window);
            added.iter().filter(|(_, is_added)| !**is_added).for_each(|(number, _)| {
                round.collected.refuse(*number);
                self.absorbed.own.ask(&round.announcement, *number);
                self.alone.insert(*number);
            });
            self.round = Some(round);
            return None;
        }
        self.coming.pop_front();
        // The next window is not announced yet: nothing that was read belongs to it.
        self.closed.push_back((window.end, self.absorbed.topic.read_to()));
        let share = (self.windows.next() == Some(*window)).then(|| {
            let (cutoff, ends) = (*cutoff, ends.clone());
            Share { part: self.windows.part(), ends, cutoff }
        });
        round.collected.close();
        self.past.push_front(round);
        self.past.truncate(REMEMBERED);
        share
    }

    fn is_reading(&mut self) {
        if !self.absorbed.input.is_connected() {
            self.health.reading.store(false, Relaxed);
            if self.outage.fails() {
                warn!("the brokers of the input cannot be reached; waiting for them");
            }
        } else if !self.is_stuck {
            self.health.reading.store(true, Relaxed);
            if self.outage.works(|| self.all.is_reading()) {
                info!("reading the input");
            }
        }
    }
}

fn differs(partition: i32) {
    error!(
        "two copies of the partial of partition {partition} differ, and none that an absorber has sent is taken: is somebody else \
         writing to scale.topic, do absorbers run on damaged machines, or has the partition lost records in an unclean election?"
    );
}
