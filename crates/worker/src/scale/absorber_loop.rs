//! The loop of `bernstream absorb`.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tracing::{error, info, warn};

use super::ScaleParams;
use super::announcement::WindowAnnouncement;
use super::membership::GroupMembership;
use super::partition_absorber::{AbsorbingStep, PartitionAbsorber, single_pane_inputs};
use super::pulse::AbsorberPulse;
use super::topic::ScaleTopic;
use super::wire::{ScaleKeys, ScaleMessage};
use bernstream_kafka::UnknownTopic;
use bernstream_kafka::source::kafka;
use bernstream_kafka::source::kafka::PartitionRanges;
use bernstream_kafka::source::{RedactedReason, SourceError};
use bernstream_release::source::Columns;
use bernstream_release::window::{ReleaseInput, VERSION, WindowRules};

/// The longest wait for records or announcements.
const READ_POLL: Duration = Duration::from_millis(50);
/// The pause before a transient failure is retried.
const RETRY_PAUSE: Duration = Duration::from_secs(1);
/// Number of different choices of `"auto"` whose consequences are remembered.
const REMEMBERED_CHOICES: usize = 8;

/// The name in metrics of absorbers without one of their own.
const UNNAMED_ABSORBER: &str = "unnamed";

/// The identity of an absorber, and the workers that it works for.
pub struct AbsorberIdentity {
    /// A name that it keeps over restarts.
    pub member: Option<String>,
    /// The records that it reads for a worker whose ledger keeps these choices of `"auto"`; `None` if its own configuration does not have them.
    pub reads: ChoiceReader,
}

/// A function from the choices of `"auto"` that an announcement names to what is read for it.
pub type ChoiceReader = Box<dyn Fn(&str) -> Option<ReadSettings>>;

/// The settings of what is read of records, and of what windows keep of it.
#[derive(Clone)]
pub struct ReadSettings {
    /// The digest of the settings that decide it.
    pub settings: String,
    pub forms: Vec<ReleaseInput>,
}

/// The consequences of some choices of `"auto"`.
struct KnownChoices {
    choices: String,
    settings: String,
    forms: Arc<[ReleaseInput]>,
}

/// A process that reads the partitions that the group gives it. It keeps nothing that a restart would lose.
pub struct Absorber {
    identity: AbsorberIdentity,
    pulse: Arc<AbsorberPulse>,
    topic: ScaleTopic,
    membership: GroupMembership,
    absorber: PartitionAbsorber,
    ours: BTreeSet<i32>,
    /// The consequences of choices that were announced, the newest last.
    readings: VecDeque<KnownChoices>,
    is_for_operators: bool,
    /// Announcements of other settings were told.
    is_foreign_told: bool,
    is_failing: bool,
    is_skip_told: bool,
    is_loss_told: bool,
    stuck: Option<RedactedReason>,
}

impl Absorber {
    /// Connects and joins the group.
    ///
    /// # Errors
    ///
    /// If a topic is missing or cannot be read.
    pub fn open(
        params: &ScaleParams,
        keys: ScaleKeys,
        (identity, pulse): (AbsorberIdentity, Arc<AbsorberPulse>),
        (input, columns): (&kafka::KafkaSourceParams, Columns),
        (rules, forms): (WindowRules, Vec<ReleaseInput>),
    ) -> Result<Self, SourceError> {
        let ranges = PartitionRanges::open(input.clone(), columns)?;
        let topic = ScaleTopic::of_absorber(params, &input.broker, &input.topic, keys)?;
        let membership = GroupMembership::join_group(
            &input.broker,
            &input.topic,
            &params.group,
            identity.member.as_deref(),
        )?;
        Ok(Absorber {
            identity,
            pulse,
            topic,
            membership,
            absorber: PartitionAbsorber::new(ranges, rules, forms),
            ours: BTreeSet::new(),
            readings: VecDeque::new(),
            is_for_operators: params.is_for_operators,
            is_foreign_told: false,
            is_failing: false,
            is_skip_told: false,
            is_loss_told: false,
            stuck: None,
        })
    }

    /// Answers announcements until `is_over`.
    ///
    /// # Errors
    ///
    /// A failure that retrying cannot mend. Nothing is lost by it.
    pub fn run_until(mut self, is_over: &dyn Fn() -> bool) -> Result<(), SourceError> {
        let mut unknown = UnknownTopic::default();
        while !is_over() {
            self.pulse.record_heartbeat();
            if let Some(assigned) = self.membership.changed_partitions()? {
                info!(
                    partitions = assigned.len(),
                    "the group has assigned partitions"
                );
                self.ours.clone_from(assigned);
                self.absorber.keep_partitions(&self.ours);
                // The next repetition of an announcement asks for the new ones too.
                self.topic.answer_again();
            }
            let until = Instant::now() + READ_POLL;
            while Instant::now() < until
                && let Some(message) = self.topic.next_message(Duration::ZERO, until)
            {
                if let ScaleMessage::Announcement { announcement, .. } = message {
                    self.take_announcement(announcement);
                }
            }
            match self.absorber.read_step(READ_POLL) {
                Ok(step) => {
                    unknown.note_known();
                    self.send_answers(step);
                    self.pulse.set_reading(true);
                }
                Err(failure @ SourceError::Deleted { partition, .. }) => {
                    let in_full = failure.in_full().filter(|_| self.is_for_operators);
                    let why = in_full.unwrap_or_else(|| failure.to_string());
                    warn!("{why}; partition {partition} is left to the worker");
                    self.absorber.clear_asked(partition);
                }
                Err(failure)
                    if failure.is_transient()
                        || failure.is_missing() && unknown.note_unknown(Instant::now()) =>
                {
                    if !std::mem::replace(&mut self.is_failing, true) {
                        warn!("cannot read the input: {failure}; trying again");
                    }
                    self.pulse.set_reading(false);
                    std::thread::sleep(RETRY_PAUSE);
                }
                Err(failure) => return Err(failure),
            }
        }
        Ok(())
    }

    fn take_announcement(&mut self, announcement: WindowAnnouncement) {
        let is_known = announcement.version == VERSION
            && announcement.topic == self.absorber.topic_id()
            && self.absorber.matches_grid(&announcement);
        let Some(forms) = is_known.then(|| self.inputs_for(&announcement)).flatten() else {
            if !std::mem::replace(&mut self.is_foreign_told, true) {
                warn!(
                    "a worker announces windows for another configuration, another version of this program or another input topic, \
                     and they are not answered: run absorbers with the worker's configuration and version"
                );
            }
            return;
        };
        let announcement = Arc::new(announcement);
        for partition in self
            .ours
            .iter()
            .filter(|partition| announcement.ends.0.contains_key(partition))
        {
            self.absorber.ask_beside(&forms, &announcement, *partition);
        }
    }

    /// The inputs that windows keep for a worker that reads as this process does, with the choices of its ledger. A file that cannot be read now is
    /// read again for the next announcement.
    fn inputs_for(&mut self, announcement: &WindowAnnouncement) -> Option<Arc<[ReleaseInput]>> {
        let choices = &announcement.choices;
        let at = self
            .readings
            .iter()
            .position(|known| known.choices == *choices);
        let known = match at.and_then(|at| self.readings.remove(at)) {
            Some(known) => known,
            None => {
                let ReadSettings { settings, forms } = (self.identity.reads)(choices)?;
                KnownChoices {
                    choices: choices.clone(),
                    settings,
                    forms: single_pane_inputs(forms),
                }
            }
        };
        if self.readings.len() >= REMEMBERED_CHOICES {
            self.readings.pop_front();
        }
        let forms = (known.settings == announcement.settings).then(|| Arc::clone(&known.forms));
        self.readings.push_back(known);
        forms
    }

    fn send_answers(&mut self, step: AbsorbingStep) {
        if std::mem::take(&mut self.is_failing) {
            info!("reading the input again");
        }
        for partial in &step.finished {
            let name = self.identity.member.as_deref().unwrap_or(UNNAMED_ABSORBER);
            self.topic
                .send_partial(partial, name, &|| self.pulse.record_heartbeat());
        }
        if let Some(why) = step.skipped
            && !std::mem::replace(&mut self.is_skip_told, true)
        {
            warn!(
                "{}; it is skipped, and others like it are without a word",
                why.shown(self.is_for_operators)
            );
        }
        let is_loss = step.behind > 0 && self.is_for_operators;
        if is_loss && !std::mem::replace(&mut self.is_loss_told, true) {
            warn!(
                "records have turned up behind the end of their window, although they were stamped before its cutoff, and are in no \
                 synopsis: replicas lag, or clocks of brokers differ, by more than clock_slack; others like them are left out without a word"
            );
        }
        if let Some(why) = step.stuck
            && self.stuck.as_ref() != Some(&why)
        {
            error!(
                "a partition is left to the worker: {}",
                why.shown(self.is_for_operators)
            );
            self.stuck = Some(why);
        }
        for partition in self.absorber.stopped_partitions() {
            self.absorber.clear_asked(partition);
        }
    }
}
