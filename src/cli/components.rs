//! The components of a worker that reach outside the process, opened so that the ledger refuses first.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use tracing::{info, warn};

pub use crate::cli::open_error::OpenError;
use crate::cli::open_error::ledger_refused;
use crate::cli::rebuilt;
use crate::cli::restarted_sums::{restarted_sums, series_slots};
use crate::cli::shares::{self, ShareRequest};
use bernstream_config::{InputParams, WorkerSettings, canonical, diff};
use bernstream_kafka::broker_clock::BrokerClock;
use bernstream_kafka::ledger::log::open_log;
use bernstream_kafka::sink::Sink;
use bernstream_kafka::source::RecordSource;
use bernstream_kafka::source::files::FileSource;
use bernstream_kafka::source::folder;
use bernstream_kafka::source::kafka::KafkaSource;
use bernstream_kafka::topic;
use bernstream_ledger as ledger;
use bernstream_ledger::bootstrap::{PriorState, StartMode, choose_start};
use bernstream_ledger::witness::Witness;
use bernstream_ledger::{DesiredSettings, Genesis, Ledger};
use bernstream_synopsis::clock;
use bernstream_synopsis::clock::Timestamp;
use bernstream_worker::metrics::MetricsDetail;
use bernstream_worker::pipeline::AnnouncedKeys;

/// Knowledge of a worker of the settings in its ledger for as long as its process lives, however often it builds that again.
#[derive(Debug, Default)]
pub struct ProcessState {
    /// The settings of the ledger when it began.
    first: OnceLock<String>,
    /// The witness has accepted this worker's own, or others that say the same.
    is_settled: Arc<AtomicBool>,
    /// Number of its draws in vain of late.
    losses: Arc<AtomicU32>,
    /// Its file was read again for what the ledger says of `"auto"` and of a Gaussian total: once, for a file that was changed says otherwise each time.
    has_read_again: AtomicBool,
}

impl ProcessState {
    /// Refuses a ledger with other settings that another worker has recorded meanwhile.
    fn recognise(&self, wanted: &DesiredSettings, ledger: &Ledger) -> Result<(), OpenError> {
        let recorded = ledger.settings();
        let is_first = self.first.get_or_init(|| recorded.to_owned()) == recorded;
        if wanted.agrees(recorded) || (is_first && !self.is_settled.load(Relaxed)) {
            return Ok(());
        }
        Err(ledger::LedgerError::OtherSettings {
            row: ledger.head().sequence,
        }
        .into())
    }
}

/// The identity of an input that is not a topic, in a ledger.
const FILES: &str = "files";

/// Everything that a worker reads, writes and keeps.
pub struct Components {
    /// Shares of the input, one a reader; none where reading is split over processes.
    pub readers: Vec<Box<dyn RecordSource + Send>>,
    pub ledger: Ledger,
    pub witness: Box<dyn Witness + Send>,
    pub sink: Box<dyn Sink + Send>,
}

impl Components {
    /// Opens everything that `settings` name; creates the ledger if nothing was ever written.
    ///
    /// # Errors
    ///
    /// If the ledger belongs to other settings, or if a component is missing, damaged or cannot be reached.
    pub fn open(settings: &WorkerSettings) -> Result<Components, OpenError> {
        Components::open_in(settings, &ProcessState::default())
    }

    /// Opens everything, like [`open`](Self::open), once more in a process that did so before.
    ///
    /// # Errors
    ///
    /// Those of [`open`](Self::open); and if another worker has recorded other settings meanwhile.
    pub fn open_in(
        settings: &WorkerSettings,
        process: &ProcessState,
    ) -> Result<Components, OpenError> {
        // The ledger first: if another worker holds it, nothing else is touched.
        let existing = match ledger::ledger_exists(&settings.ledger)? {
            true => Some(Ledger::open(&settings.ledger)?),
            false => None,
        };
        // The input after the output, which a new pipeline lacks: to open the input may create the topic of its clock.
        let mut sink = settings.output.open_sink()?;
        // Before it is paid for.
        settings
            .output
            .check_message_limit(settings.largest_synopsis())?;
        let readers = open_readers(settings)?;
        if existing.is_none() && settings.ledger_log.is_none() {
            // Before its witness is missed, which nobody has made.
            refuse_foreign_output(settings, false)?;
        }
        let mut witness = settings
            .output
            .open_witness_remembering(&settings.ledger.path)?;
        let mut log = settings.ledger_log.as_ref().map(open_log).transpose()?;
        let existing = match &mut log {
            Some(log) => rebuilt::newest_ledger(
                settings,
                &process.has_read_again,
                existing,
                &mut *witness,
                log,
                &mut *sink,
            )?,
            None => existing,
        };
        let mut ledger = match existing {
            Some(ledger) => ledger,
            None => {
                let genesis = match first_row(
                    settings,
                    &mut *witness,
                    start_mode(settings),
                    Timestamp::now(),
                ) {
                    Err(_) if log.is_some() && witness.read()?.is_some() => {
                        let why = "another worker has just begun the ledger of this pipeline, which is built from its log";
                        return Err(ledger_refused(why.to_owned()).for_now());
                    }
                    genesis => genesis?,
                };
                Ledger::create(&settings.ledger, genesis)?
            }
        };
        check_promise(settings, &ledger)?;
        refuse_foreign_output(settings, ledger.genesis().previous.is_some())?;
        let wanted = desired_settings(settings, process);
        if let Some(log) = log {
            ledger.attach_log(log);
            // At its first start a log is filled; the worker that begins then only adds to it.
            ledger.fill_log()?;
            let newest = witness.read()?;
            ledger.stand_by(
                settings.standby_times(),
                wanted.clone(),
                newest.as_ref(),
                Timestamp::now(),
            );
            process.recognise(&wanted, &ledger)?;
        }
        if settings.ledger_log.is_none() {
            rebuilt::refuse_behind(&ledger, &mut *witness, &mut *sink)?;
        }
        adopt_settings(settings, &wanted, &mut ledger)?;
        let witness = shares::guard_witness(settings, &ledger, witness)?;
        if ledger.has_published()? && settings.output.is_untouched()? {
            warn!(
                "the output is empty, but this ledger has published: the output was removed or created again, and the synopses in \
                 it are gone; `bernstream ledger republish --all` sends those that the ledger still has (ledger.keep_published)"
            );
        }
        Ok(Components {
            readers,
            ledger,
            witness,
            sink,
        })
    }
}

/// The way in which a worker starts that finds no ledger.
pub fn start_mode(settings: &WorkerSettings) -> StartMode {
    match &settings.input {
        InputParams::Kafka(_) => StartMode::Run,
        // Files are history: if nothing was ever written, they are released from the start.
        InputParams::Files(_) => StartMode::From {
            from: settings.windows.grid.origin(),
            backfill_until: None,
        },
    }
}

/// Refuses an output that holds synopses of another pipeline: whoever reads it, and `ledger verify`, takes all that it holds for the work
/// of one. A ledger that follows another one (`is_successor`) goes on where that has published, under whatever name.
///
/// # Errors
///
/// If it does, or if it cannot be read.
pub fn refuse_foreign_output(
    settings: &WorkerSettings,
    is_successor: bool,
) -> Result<(), OpenError> {
    if is_successor {
        return Ok(());
    }
    let Some(other) = settings.output.another_pipeline(&settings.pipeline)? else {
        return Ok(());
    };
    let own = match settings.output.broker() {
        Some(_) => "name another topic and witness in [output.kafka]",
        None => "name another folder in [output.files]",
    };
    Err(ledger_refused(format!(
        "the output holds synopses of the pipeline {:?} ({}), and this one is {:?}: an output belongs to one pipeline, because all that it \
         holds is verified against one ledger; {own}",
        other.pipeline, other.place, settings.pipeline
    )))
}

/// The first row of a new ledger.
///
/// # Errors
///
/// If a new ledger may not start, or if witness, output or input cannot be reached.
pub fn first_row(
    settings: &WorkerSettings,
    witness: &mut dyn Witness,
    mode: StartMode,
    now: Timestamp,
) -> Result<Genesis, OpenError> {
    // Before a share is taken over from a ledger that goes on: what follows must not fail for want of a folder.
    Ledger::prepare(&settings.ledger)?;
    let claim = witness.read()?;
    let is_output_untouched = settings.output.is_untouched()?;
    refuse_foreign_output(settings, claim.is_some() && mode == StartMode::Init)?;
    let prior = PriorState {
        claim: claim.as_ref(),
        is_output_untouched,
    };
    // After the claim was read: no window that it covers has closed later.
    let now = if claim.is_some() || !is_output_untouched {
        now.max(latest_clock(settings)?)
    } else {
        now
    };
    let start = choose_start(settings.bootstrap_scheme(), mode, prior, now)
        .map_err(|error| ledger_refused(error.to_string()))?;
    let witness = witness.identity()?;
    let input = input_identity(settings)?;
    let beginner = ShareRequest {
        owner: &witness,
        was_claimed: claim.is_some(),
        first: start.first,
        may_wait: mode.may_wait(),
    };
    let begun = shares::begin_share(settings, &input, &beginner)?;
    Ok(Genesis {
        ledger: ledger::new_id()?,
        created: now,
        settings: canonical::recorded_text(settings),
        total: settings.privacy.total,
        first: begun.first,
        backfill_until: start.backfill_until,
        input,
        witness,
        previous: start.previous,
        reach: settings.charge_reach(),
        budget: begun.holding,
    })
}

/// The later one of the clocks that windows close by: no window has closed with a cutoff that it has not reached.
///
/// # Errors
///
/// If the brokers do not tell their time.
fn latest_clock(settings: &WorkerSettings) -> Result<Timestamp, OpenError> {
    let now = Timestamp::now();
    match &settings.input {
        InputParams::Kafka(kafka) if !kafka.trust_producer_time => Ok(now.max(
            BrokerClock::open(&kafka.broker, &kafka.clock, &kafka.topic)?
                .ask_time()?
                .stamp,
        )),
        InputParams::Kafka(_) | InputParams::Files(_) => Ok(now),
    }
}

fn open_readers(settings: &WorkerSettings) -> Result<Vec<Box<dyn RecordSource + Send>>, OpenError> {
    let columns = settings.columns.clone();
    match &settings.input {
        // Absorbers read, and the worker what they do not.
        InputParams::Kafka(_) if settings.scale.is_some() => Ok(Vec::new()),
        InputParams::Kafka(params) => {
            let input = KafkaSource::open(params.clone(), columns, Timestamp::now)?;
            let shares = input
                .listing_broken(settings.detail == MetricsDetail::Operator)
                .shared_readers();
            Ok(shares
                .into_iter()
                .map(|share| Box::new(share) as Box<dyn RecordSource + Send>)
                .collect())
        }
        InputParams::Files(params) => {
            let files = FileSource::open(params, columns)?;
            if files.passed_over().len() > 0 {
                warn!(
                    "passed over in {}: {}",
                    params.path.display(),
                    folder::shown_names(files.passed_over())
                );
            }
            Ok(vec![Box::new(files)])
        }
    }
}

/// The identity of the input, which another topic of the same name does not share.
///
/// # Errors
///
/// If the topic is missing or cannot be reached.
pub fn input_identity(settings: &WorkerSettings) -> Result<String, OpenError> {
    match &settings.input {
        InputParams::Kafka(params) => Ok(topic::describe_topic(&params.broker, &params.topic)?.id),
        InputParams::Files(_) => Ok(FILES.to_owned()),
    }
}

/// The reason why a ledger with these settings cannot account for those of the file, if it cannot: input, unit, total and plan are fixed for its
/// life. Other settings may change from a window on.
pub fn promise_mismatch(settings: &WorkerSettings, recorded: &str) -> Option<String> {
    let theirs = canonical::recorded_definition(recorded);
    if theirs
        .as_ref()
        .is_none_or(|theirs| !theirs.is_kind_of(&settings.privacy.definition))
    {
        let theirs = theirs.map_or(
            "a definition that this program does not know".to_owned(),
            |theirs| theirs.to_string(),
        );
        return Some(format!(
            "the ledger in {} accounts for {theirs}, the configuration asks for {}: the two do not add up, so each needs a ledger of its own: {}",
            settings.ledger.path.display(),
            settings.privacy.definition,
            settings.output.new_ledger_advice(),
        ));
    }
    let for_ever = diff::ledger_differences(recorded, &settings.normalised);
    (!for_ever.is_empty()).then(|| {
        format!(
            "the ledger in {} was created for another guarantee: {}; undo the change, or {}",
            settings.ledger.path.display(),
            for_ever.join("; "),
            settings.output.new_ledger_advice(),
        )
    })
}

/// Checks what is fixed for the life of a ledger.
fn check_promise(settings: &WorkerSettings, ledger: &Ledger) -> Result<(), OpenError> {
    if let Some(why) = promise_mismatch(settings, ledger.settings()) {
        return Err(ledger_refused(why));
    }
    if let Some(why) = reads_too_far_back(settings, ledger) {
        return Err(ledger_refused(why));
    }
    if input_identity(settings)? != ledger.genesis().input {
        return Err(ledger_refused(input_mismatch(settings)));
    }
    Ok(())
}

/// The reason why a ledger cannot take records as far ahead of their message timestamps as the file allows now, if it cannot: another one may have
/// charged them. Whether there was one is not always known, so only a ledger that begins in the past, which is the first, is spared.
pub fn reads_too_far_back(settings: &WorkerSettings, ledger: &Ledger) -> Option<String> {
    let genesis = ledger.genesis();
    let ahead = settings.windows.max_future_skew;
    let had = canonical::recorded_skew(ledger.settings())
        .filter(|had| ahead > *had && genesis.first >= genesis.created)?;
    let oldest = genesis
        .first
        .max(ledger.next_window().minus(settings.charge_reach()));
    (!settings.bootstrap_scheme().is_apart(genesis.created, oldest)).then(|| {
        format!(
            "windows.ahead: {} in the ledger in {}, {} in the file: a ledger before this one may have charged records that were sent \
             until {}, and with so much its window of {oldest} would take them; leave it for now, and let it grow once that is longer ago",
            clock::format_duration(had),
            settings.ledger.path.display(),
            clock::format_duration(ahead),
            genesis.created,
        )
    })
}

/// Words for an input that is not the one that the ledger knows.
pub fn input_mismatch(settings: &WorkerSettings) -> String {
    format!(
        "the input topic was deleted and created anew since the ledger was created, so the offsets in the ledger are void; {}",
        settings.output.new_ledger_advice(),
    )
}

/// The settings that a worker records in its ledger.
fn desired_settings(settings: &WorkerSettings, process: &ProcessState) -> DesiredSettings {
    let mut slots = Vec::new();
    for release in &settings.releases {
        if settings.found_keys.is_some() {
            slots.push(AnnouncedKeys::slot_name(&release.name));
        }
        if release.is_sum_of_panes() {
            slots.extend(series_slots(settings, release));
        }
    }
    DesiredSettings {
        settings: canonical::recorded_text(settings),
        reach: settings.charge_reach(),
        grid: settings.windows.grid,
        continued: slots.into_iter().collect(),
        agree: |recorded, settings| diff::setting_differences(recorded, settings).is_empty(),
        is_chosen: settings
            .releases
            .iter()
            .any(|release| release.auto.is_some()),
        is_settled: process.is_settled.clone(),
        losses: process.losses.clone(),
    }
}

/// Records changed settings in the ledger: they hold from the first window that was not closed under the old ones, and what
/// was spent stays spent. A ledger that does not know what was left to `"auto"` learns it. A worker that follows another one
/// does so when it acts.
fn adopt_settings(
    settings: &WorkerSettings,
    wanted: &DesiredSettings,
    ledger: &mut Ledger,
) -> Result<(), OpenError> {
    let changes = diff::setting_differences(ledger.settings(), &wanted.settings);
    let Some(configuration) =
        wanted.change_row(ledger.settings(), ledger.slots(), ledger.next_window())
    else {
        return Ok(());
    };
    let is_acting = ledger.is_acting();
    if !configuration.ended.is_empty() {
        info!(
            "the ledger forgets the noise of sums and the announced keys that no release continues: {}",
            configuration.ended.join(", ")
        );
    }
    if !changes.is_empty() {
        match is_acting {
            true => warn!(
                "the settings have changed; these hold for windows from {} on, and what was spent stays spent:",
                configuration.first
            ),
            false => warn!(
                "the settings have changed; these hold once this worker acts and no longer follows another one, and what was \
                 spent stays spent:"
            ),
        }
        for change in changes {
            warn!("  {change}");
        }
        for restarted in restarted_sums(settings, ledger) {
            warn!("  {restarted}");
        }
        for release in &settings.releases {
            if let Some(table) = &release.auto {
                info!(
                    "release {:?}: \"auto\" selects {}",
                    release.name,
                    table.taken.keys_in_file(&release.axes, &release.function)
                );
            }
        }
    } else if wanted.is_chosen && ledger.settings() != wanted.settings {
        info!("the ledger now records what the file leaves to \"auto\"");
    }
    match is_acting {
        true => Ok(ledger.record_settings(configuration)?),
        false => {
            ledger.postpone_settings();
            Ok(())
        }
    }
}
