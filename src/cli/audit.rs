//! `bernstream audit`: this program against what a configuration promises, without any data.

mod attack;
mod ledger;
mod limits;
mod page;
mod pictures;
mod replay;
mod report;

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::cli::failure::Failure;
use crate::cli::figures::hexadecimal;
use crate::cli::print::{line, note, print};
use crate::cli::progress::{WorkDone, show_progress_until};
use crate::cli::runtime::{start_runtime, stop_on_signal};
use crate::cli::settings;
use bernstream_audit::{AuditSubject, Deadline, StampSource, neighbours, samplers};
use bernstream_config::{InputParams, WorkerSettings, guarantee};
use bernstream_noise::noise::Generator;
use bernstream_release::choice::Candidates;
use bernstream_synopsis::band::Band;
use bernstream_synopsis::description::PrivacyDefinition;
use bernstream_worker::pipeline::StopRequest;

use self::attack::Attackers;
use self::report::AuditReport;

/// The probability with which one test fails a correct program, at most.
const ALARM: f64 = 1e-9;
/// The parts of the time that are left, for replays and for samplers; the rest is for the attacks.
const REPLAYS: f64 = 0.4;
const SAMPLERS: f64 = 0.35;
/// The most draws of one sampler, and windows of one attack, however much time there is.
const MOST_DRAWS: u64 = 2_000_000;
const MOST_RUNS: u64 = 10_000_000;
/// Programs that read JSON numbers as floats have a smaller number exactly, too.
const SEEDS: u64 = 1 << 53;

#[derive(Debug, clap::Args)]
pub struct AuditArguments {
    /// The configuration.
    configuration: PathBuf,
    /// About how long to test. Every test is valid whenever it ends: Ctrl-C or SIGTERM end it early, with its report.
    #[arg(long, default_value_t = 3.0, value_parser = minutes)]
    minutes: f64,
    /// Draws the same noise as the audit that printed this number; how much is tested still depends on the time.
    #[arg(long, value_parser = clap::value_parser!(u64).range(..SEEDS))]
    seed: Option<u64>,
    /// Print the report as one JSON document, whose fields docs/reference/audit.schema.json describes.
    #[arg(long)]
    json: bool,
    /// Write the report as one page, with pictures.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

fn minutes(text: &str) -> Result<f64, String> {
    let minutes: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if minutes > 0.0 && minutes <= 100_000.0 {
        Ok(minutes)
    } else {
        Err("must be more than 0".to_owned())
    }
}

/// Replays neighbours, tests the samplers, attacks what is released, verifies ledger and output, and says what all that cannot show.
///
/// # Errors
///
/// If the configuration has a fault, if a test could not be carried out, or if one has failed.
pub fn run(arguments: &AuditArguments) -> Result<(), Failure> {
    let settings = settings::load_only_looking(&arguments.configuration)?;
    let seed = match arguments.seed {
        Some(seed) => seed,
        None => {
            Generator::from_entropy()
                .map_err(|error| Failure::Other(error.to_string()))?
                .next_word()
                % SEEDS
        }
    };
    // A page that cannot be written is told before the audit takes its time.
    let page = match &arguments.html {
        Some(path) => Some(ReportPage::create(path)?),
        None => None,
    };
    let file = arguments.configuration.display().to_string();
    // Selecting what is automatic takes as long as it takes.
    let started = Instant::now();
    let planned = Duration::from_secs_f64(60.0 * arguments.minutes);
    let stop = StopRequest::default();
    let runtime = start_runtime()?;
    stop_on_signal(&runtime, &stop, || {
        note("ending: the report follows; a second signal ends at once, without one")
    });
    note(format_args!(
        "auditing {file} for about {}; Ctrl-C ends it early, with its report",
        minutes_in_words(arguments.minutes)
    ));
    let time = PlannedTime { started, planned };
    let report = audit_settings(&settings, file, seed, time, &stop)?;
    // The page first: standard output may be closed.
    if let Some(page) = page {
        page.write(&report)?;
    }
    if arguments.json {
        let json =
            serde_json::to_string(&report).map_err(|error| Failure::Other(error.to_string()))?;
        line(json)?;
    } else {
        print(report.in_words())?;
    }
    match report.failed.as_slice() {
        [] => Ok(()),
        failed => Err(Failure::Audit(format!(
            "audit of {}: {} of its tests failed: {}",
            report.configuration,
            failed.len(),
            failed.join("; ")
        ))),
    }
}

/// The file of the report as a page.
struct ReportPage<'p> {
    path: &'p Path,
    file: File,
}

impl<'p> ReportPage<'p> {
    fn create(path: &'p Path) -> Result<Self, Failure> {
        let file = File::create(path).map_err(|error| unwritable(path, &error))?;
        Ok(ReportPage { path, file })
    }

    fn write(mut self, report: &AuditReport) -> Result<(), Failure> {
        self.file
            .write_all(page::report_page(report)?.as_bytes())
            .map_err(|error| unwritable(self.path, &error))?;
        note(format_args!("wrote {}", self.path.display()));
        Ok(())
    }
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    Failure::Unavailable(format!("cannot write {}: {error}", path.display()))
}

/// The beginning of an audit, and the time that it is to take.
#[derive(Clone, Copy)]
struct PlannedTime {
    started: Instant,
    planned: Duration,
}

fn audit_settings(
    settings: &WorkerSettings,
    configuration: String,
    seed: u64,
    time: PlannedTime,
    stop: &StopRequest,
) -> Result<AuditReport, Failure> {
    let plan = settings.plan(|_| Candidates::new(no_band(), Vec::new()), false)?;
    let stamps = match &settings.input {
        InputParams::Kafka(kafka) if kafka.trust_producer_time => StampSource::Producers,
        InputParams::Kafka(kafka) => StampSource::Broker {
            slack: kafka.clock_slack,
        },
        InputParams::Files(_) => StampSource::None,
    };
    let subject = AuditSubject {
        plan: &plan,
        columns: &settings.columns,
        adjacency: settings.privacy.adjacency,
        stamps,
        backfill_until: None,
    };
    let is_random = matches!(settings.privacy.definition, PrivacyDefinition::Random(_));
    let end = time.started + time.planned;
    let deadline = Deadline::new(end, stop);
    let until = deadline.part_of_rest(REPLAYS);
    let pairs = neighbours::neighbouring_pairs(&subject);
    let replay = show_progress_until("replaying neighbouring streams", until.end(), |done| {
        replay::replay_pairs(&subject, &pairs, seed, is_random, &until, done)
    })?;
    let until = deadline.part_of_rest(SAMPLERS);
    let sampled = show_progress_until("testing the samplers", until.end(), |done| {
        test_samplers(&samplers::samplers_of_plan(&plan), seed, &until, done)
    });
    let attackers = Attackers {
        subject: &subject,
        seed,
        alarm: ALARM,
        most_windows: MOST_RUNS,
    };
    let attacks = show_progress_until("attacking what is released", end, |done| {
        attackers.attack_all(&replay, &pairs, &deadline, done)
    })?;
    let ledger = ledger::verify_ledger(settings, &deadline);
    Ok(AuditReport {
        format: 1,
        program: format!("bernstream {}", env!("CARGO_PKG_VERSION")),
        configuration,
        digest: hexadecimal(&settings.digest()),
        audited: bernstream_synopsis::clock::Timestamp::now(),
        seed,
        seconds: 0.0,
        planned_seconds: time.planned.as_secs_f64(),
        ended_early: deadline.is_stopped(),
        passed: false,
        failed: Vec::new(),
        left_out: Vec::new(),
        promise: guarantee::promise_lines(settings),
        not_protected: guarantee::not_protected(settings),
        cannot_show: limits::limits_in_words(settings, &replay, &sampled, &attacks),
        replay,
        samplers: sampled,
        attacks,
        ledger,
    }
    .with_verdict(time.started.elapsed()))
}

/// Tests each sampler for an equal part of the time that is left, and counts them in `done`.
fn test_samplers(
    all: &[samplers::Sampler],
    seed: u64,
    deadline: &Deadline,
    done: &WorkDone,
) -> Vec<samplers::SamplerFindings> {
    let mut sampled = Vec::new();
    for (number, sampler) in all.iter().enumerate() {
        done.set(number as u64, all.len() as u64);
        let share = deadline.part_of_rest(1.0 / (all.len() - number).max(1) as f64);
        sampled.push(samplers::test_sampler(
            sampler,
            (seed, number as u64),
            ALARM,
            MOST_DRAWS,
            &share,
        ));
    }
    sampled
}

fn minutes_in_words(minutes: f64) -> String {
    if minutes < 1.0 {
        format!("{:.0} s", 60.0 * minutes)
    } else {
        format!("{minutes} min")
    }
}

/// The band of synopses that nobody sees.
fn no_band() -> Band {
    Band {
        level: 0.95,
        half_width: 1.0,
        weights: vec![1.0],
        pointwise: 1.0,
        draws: 0,
        expected_sup: 1.0,
        norm: 1.0,
    }
}
