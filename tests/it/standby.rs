//! Several workers of one pipeline: one acts, the others follow it in ledgers of their own and take over where it does not. Whatever
//! happens, a window leaves in one version.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use bernstream::cli::components;
use bernstream::cli::components::Components;
use bernstream::cli::run::noise_bands;
use bernstream_config::WorkerSettings;
use bernstream_kafka::sink::deliver;
use bernstream_ledger::bootstrap::StartMode;
use bernstream_ledger::witness;
use bernstream_ledger::witness::{Witness, WitnessClaim};
use bernstream_ledger::{Configuration, DesiredSettings, Ledger, LedgerError, StandbyRule};
use bernstream_noise::noise::Generator;
use bernstream_synopsis::Synopsis;
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::grid::SpanGrid;
use bernstream_synopsis::price::Price;
use bernstream_worker::metrics::{Metrics, MetricsDetail};
use bernstream_worker::pipeline::{Health, StopRequest, Worker};
use rand::rngs::ChaCha20Rng;
use rand::{RngExt, SeedableRng};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::{Offset, TopicPartitionList};

use crate::harness::cluster::{self, Host, Inside};
use crate::harness::ledger::{Fate, at};
use crate::harness::preload::Clock;
use crate::harness::setup::{Published, Row, Setup};
use crate::harness::{PATIENCE, http, kafka, wait_for};
use crate::ledger_checkpoints::{Pipeline, assert_same};
use crate::ledger_log::{add_log, log_topic};

const RULE: StandbyRule = StandbyRule {
    patience: Duration::from_secs(10),
    drawing: Duration::from_millis(500),
    lead: Duration::ZERO,
};

/// More than the time by which workers act apart.
const APART: Duration = Duration::from_millis(250);

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

/// Has the worker share its log with others.
fn stand_by(pipeline: &mut Pipeline, settings: &str, now: Timestamp) {
    stand_by_with(pipeline, wanted(settings), now);
}

fn stand_by_with(pipeline: &mut Pipeline, wanted: DesiredSettings, now: Timestamp) {
    let accepted = pipeline.witness.borrow().accepted();
    pipeline
        .ledger
        .stand_by(RULE, wanted, accepted.as_ref(), now);
}

/// What a process knows of its settings for as long as it lives.
fn wanted(settings: &str) -> DesiredSettings {
    DesiredSettings {
        settings: settings.to_owned(),
        reach: Duration::ZERO,
        grid: SpanGrid::new(at(0), Duration::from_secs(3600)).unwrap(),
        continued: ["every", "rare"].map(str::to_owned).into(),
        agree: |one, other| one == other,
        is_chosen: false,
        is_settled: Arc::default(),
        losses: Arc::default(),
    }
}

/// Two workers in memory, the first of which acts, and the time.
fn two() -> (Pipeline, Pipeline, Timestamp) {
    let mut acting = Pipeline::new();
    acting.pass(3);
    let mut following = acting.beside();
    let now = acting.ledger.next_window();
    [&mut acting, &mut following]
        .into_iter()
        .for_each(|worker| stand_by(worker, "{}", now));
    assert!(acting.ledger.is_acting() && !following.ledger.is_acting());
    (acting, following, now)
}

#[test]
fn a_worker_that_follows_has_the_same_ledger_without_building_it_and_publishes_nothing() {
    let (mut acting, mut following, _) = two();
    for rows in [1, 3, 300, 7] {
        let mut now = acting.ledger.next_window();
        (0..rows).for_each(|_| now = acting.pay());
        acting.deliver(now);
        let published = acting.output.borrow().0.len();
        assert!(following.step(now, Fate::Lands).unwrap().has_followed);
        assert_same(&following.ledger, &acting.ledger);
        assert_eq!(
            following.ledger.unpublished_count().unwrap(),
            0,
            "the marks in the log say so"
        );
        following.ledger.verify_all().unwrap();
        // What is published is not published again, however late it is.
        following.deliver(now.plus(seconds(3600.0)));
        assert_eq!(following.output.borrow().0.len(), published);
    }
}

#[test]
fn what_was_accepted_and_not_published_is_published_by_the_one_that_follows() {
    let (mut acting, mut following, _) = two();
    let now = acting.pay();
    assert!(acting.step(now, Fate::Lands).unwrap().has_claimed);
    let before = acting.output.borrow().0.len();
    let sent = |now: Timestamp, following: &mut Pipeline| {
        following.step(now, Fate::Lands).unwrap().published
    };
    assert_eq!(sent(now, &mut following), 0);
    assert_eq!(sent(now.plus(seconds(9.9)), &mut following), 0);
    assert_eq!(sent(now.plus(RULE.patience + APART), &mut following), 1);
    // The one that was thought to be dead publishes the same bytes.
    acting.step(now.plus(seconds(11.0)), Fate::Lands).unwrap();
    let output = acting.output.borrow();
    let versions = &output.0[before..];
    assert!(versions.len() == 2 && versions[0].bytes == versions[1].bytes);
}

#[test]
fn a_worker_that_follows_draws_what_is_overdue_and_the_one_whose_row_lost_builds_its_ledger_again()
{
    // What lost is as long as what was accepted, or shorter.
    [0, 3].into_iter().for_each(is_overtaken_by);
}

fn is_overtaken_by(more: usize) {
    let (mut acting, mut following, now) = two();
    following.step(now, Fate::Lands).unwrap();
    let due = now.plus(seconds(3600.0));
    for early in [0.0, 5.0, 9.9] {
        assert!(
            !following
                .ledger
                .try_begin_draw(due, due.plus(seconds(early)))
                .unwrap(),
            "{early}"
        );
    }
    // The one that acts draws, and is frozen before it claims.
    assert!(acting.ledger.try_begin_draw(due, due).unwrap());
    acting.pay();
    let late = due.plus(RULE.patience + APART);
    assert!(following.ledger.try_begin_draw(due, late).unwrap());
    following.pay();
    assert!(
        following.step(late, Fate::Lands).unwrap().is_waiting,
        "not before its moment"
    );
    let next = due.plus(seconds(3600.0));
    assert!(
        !following
            .ledger
            .try_begin_draw(next, next.plus(seconds(3600.0)))
            .unwrap(),
        "and nothing else meanwhile"
    );
    let late = late.plus(seconds(0.5));
    assert!(following.step(late, Fate::Lands).unwrap().has_claimed);
    assert_eq!(following.step(late, Fate::Lands).unwrap().published, 1);
    assert!(following.ledger.is_acting());
    following.pass(more);
    let overtaken = acting.try_step(late, Fate::Lands);
    assert!(
        matches!(
            overtaken,
            Err(deliver::DeliveryError::Ledger(
                LedgerError::ForeignHead { .. }
            ))
        ),
        "{overtaken:?}"
    );
}

#[test]
fn who_hands_over_is_not_waited_for_and_does_not_act_before_it_claims_again() {
    let (mut acting, mut following, now) = two();
    let due = now.plus(seconds(3600.0));
    let handed = due.minus(seconds(100.0));
    assert!(acting.ledger.resign_turn(false, handed).unwrap());
    following.step(handed, Fate::Lands).unwrap();
    assert!(
        !following
            .ledger
            .try_begin_draw(due, due.minus(seconds(1.0)))
            .unwrap(),
        "it is not due"
    );
    assert!(
        following
            .ledger
            .try_begin_draw(due, due.plus(APART))
            .unwrap()
    );
    // The same disk, started again.
    acting.ledger.fill_log().unwrap();
    stand_by(&mut acting, "{}", handed);
    assert!(!acting.ledger.is_acting());
    assert!(
        !acting.ledger.resign_turn(false, handed).unwrap(),
        "it is not its turn"
    );
    following.pay();
    let late = due.plus(seconds(1.0));
    following.step(late, Fate::Lands).unwrap();
    following.deliver(late.plus(seconds(1.0)));
    assert!(following.ledger.is_acting());
    assert!(acting.step(late, Fate::Lands).unwrap().has_followed);
    assert_same(&following.ledger, &acting.ledger);
    // That somebody handed over once says nothing of a later claim.
    let next = acting.ledger.next_window().plus(seconds(3600.0));
    assert!(
        !acting
            .ledger
            .try_begin_draw(next, next.plus(seconds(5.0)))
            .unwrap()
    );
}

/// A claim of the worker that acts takes one and a half patiences to arrive, always or for some time.
#[test]
fn a_worker_that_draws_in_vain_backs_off_until_others_are_in_time() {
    let (mut acting, mut following, _) = two();
    let own = wanted("{}");
    stand_by_with(&mut following, own.clone(), acting.ledger.next_window());
    let mut window = |is_slow: bool| {
        let due = acting.ledger.next_window().plus(seconds(3600.0));
        acting.pay();
        let late = due.plus(RULE.patience + APART);
        assert!(!following.ledger.try_begin_draw(due, due).unwrap());
        let is_hasty = is_slow && following.ledger.try_begin_draw(due, late).unwrap();
        if is_hasty {
            following.pay();
        }
        let arrives = due.plus(RULE.patience * 3 / 2);
        acting.deliver(arrives);
        match following.try_step(arrives, Fate::Lands) {
            Ok(_) => assert!(!is_hasty),
            Err(error) => {
                assert!(is_hasty, "{error}");
                following = acting.beside();
                stand_by_with(&mut following, own.clone(), arrives);
            }
        }
        assert!(acting.ledger.is_acting() && !following.ledger.is_acting());
        is_hasty
    };
    let in_vain = (0..100).filter(|_| window(true)).count();
    assert!((2..=13).contains(&in_vain), "{in_vain} of 100 windows");
    assert_eq!((0..40).filter(|_| window(false)).count(), 0);
    // It acts in time again.
    assert_eq!(own.losses.load(Relaxed), 0);
    let due = acting.ledger.next_window().plus(seconds(3600.0));
    assert!(!following.ledger.try_begin_draw(due, due).unwrap());
    assert!(
        following
            .ledger
            .try_begin_draw(due, due.plus(RULE.patience + APART))
            .unwrap()
    );
}

/// Nobody can claim while brokers do not answer: otherwise all workers would draw when they answer again.
#[test]
fn a_worker_waits_anew_after_brokers_have_not_answered_once_for_a_window() {
    // The seconds after the window was due at which the witness answers, and from when the worker that follows may draw.
    for (answers, from) in [
        (vec![0.0, 4.0, 8.0], 10.0),
        (vec![0.0, 12.0], 22.0),
        (vec![0.0, 4.0, 9.5], 19.5),
        (vec![0.0, 6.0, 12.0, 18.0], 16.0),
        (vec![0.0, 4.0, 10.0, 14.0, 21.0], 20.0),
    ] {
        let (_acting, mut following, now) = two();
        let due = now.plus(seconds(3600.0));
        for before in (0..3600).step_by(4) {
            following
                .step(now.plus(seconds(f64::from(before))), Fate::Lands)
                .unwrap();
        }
        for at in answers {
            following.step(due.plus(seconds(at)), Fate::Lands).unwrap();
            // An answer takes some time.
            let is_turn = following
                .ledger
                .try_begin_draw(due, due.plus(seconds(at + 0.1)))
                .unwrap();
            assert_eq!(is_turn, at > from + 0.5, "{at} {from}");
        }
        let draws = following
            .ledger
            .draws_from(due)
            .unwrap()
            .since(due)
            .as_secs_f64();
        assert!(
            (from..from + 0.5).contains(&draws),
            "{draws} and not {from}"
        );
    }
}

/// The other one may have read the window as late, where an absorber was missing.
#[test]
fn a_worker_that_follows_waits_from_when_it_has_the_window() {
    let (_acting, mut following, now) = two();
    following.step(now, Fate::Lands).unwrap();
    let due = now.plus(seconds(3600.0));
    let read = due.plus(seconds(25.0));
    assert!(!following.ledger.try_begin_draw(due, read).unwrap());
    assert!(
        !following
            .ledger
            .try_begin_draw(due, read.plus(seconds(9.9)))
            .unwrap()
    );
    assert!(
        following
            .ledger
            .try_begin_draw(due, read.plus(RULE.patience + APART))
            .unwrap()
    );
}

#[test]
fn a_clone_of_a_disk_follows_once_the_other_one_has_claimed() {
    for is_clone_faster in [false, true] {
        let mut original = Pipeline::new();
        original.pass(3);
        let mut clone = original.clone_of_disk();
        let now = original.ledger.next_window();
        stand_by(&mut clone, "{}", now);
        // It was started again: both go on in the stead of the same process.
        if is_clone_faster {
            original = original.clone_of_disk();
        }
        stand_by(&mut original, "{}", now);
        assert!(original.ledger.is_acting() && clone.ledger.is_acting());
        let (mut faster, mut slower) = if is_clone_faster {
            (clone, original)
        } else {
            (original, clone)
        };
        for _ in 0..3 {
            let now = faster.ledger.next_window();
            faster.pass(1);
            assert!(slower.step(now, Fate::Lands).unwrap().has_followed);
            assert!(faster.ledger.is_acting() && !slower.ledger.is_acting());
            let due = slower.ledger.next_window().plus(seconds(3600.0));
            assert!(
                !slower
                    .ledger
                    .try_begin_draw(due, due.plus(seconds(5.0)))
                    .unwrap()
            );
        }
    }
}

/// When a worker claims a window that is due at `due`, whose draw begins at `begun` and takes `draw`.
fn claims_at(worker: &mut Pipeline, due: Timestamp, begun: Timestamp, draw: Duration) -> Timestamp {
    assert_eq!(
        worker.ledger.try_begin_draw(due, due).unwrap(),
        begun == due
    );
    assert!(worker.ledger.try_begin_draw(due, begun).unwrap());
    let ready = begun.plus(draw);
    worker.pay();
    worker
        .ledger
        .schedule_claim(None, ready)
        .unwrap()
        .max(ready)
}

#[test]
fn how_long_a_draw_takes_does_not_decide_which_of_two_draws_is_accepted() {
    let mut winners = Vec::new();
    for own in [0.0, 0.1, 1.0, 4.9, 5.1, 7.3, 9.9, 10.2] {
        for other in [0.0, 0.01, 0.2, 0.4, 0.5] {
            let (mut acting, mut following, now) = two();
            let due = now.plus(seconds(3600.0));
            let acts = claims_at(&mut acting, due, due, seconds(own));
            let follows = following.ledger.draws_from(due).unwrap();
            if acts < follows {
                // The other one sees it, and does not draw.
                assert!(own < 5.0 && acts == due.plus(seconds(own)), "{own}");
                continue;
            }
            assert!(own > 5.0);
            let follows = claims_at(&mut following, due, follows, seconds(other));
            assert!(acts.since(due) > seconds(10.0) && follows.since(due) > seconds(10.0));
            // The moments themselves do not depend on the draws.
            winners.push((
                acts.since(due),
                following.ledger.draws_from(due).plus_half() == follows,
                acts <= follows,
            ));
        }
    }
    assert_eq!(winners.len(), 4 * 5);
    assert!(
        winners.iter().all(|one| *one == winners[0] && one.1),
        "{winners:?}"
    );
    // It takes another whole patience to lose, whatever the rest is.
    let (mut acting, _, now) = two();
    let due = now.plus(seconds(3600.0));
    assert_eq!(
        claims_at(&mut acting, due, due, seconds(10.6)).since(due),
        seconds(20.5)
    );
}

trait PlusHalf {
    fn plus_half(self) -> Timestamp;
}

impl PlusHalf for Option<Timestamp> {
    /// When what is drawn from then on is claimed.
    fn plus_half(self) -> Timestamp {
        self.unwrap().plus(RULE.drawing)
    }
}

#[test]
fn who_ends_right_after_a_claim_hands_over_what_it_claimed_and_nothing_that_it_did_not() {
    // The claim is accepted, and the worker ends before it has seen that.
    for (has_claimed, is_at_once) in [(true, true), (false, false)] {
        let (mut acting, mut following, _) = two();
        let row = acting.pay();
        assert!(acting.step(row, Fate::Lands).unwrap().has_claimed);
        assert!(acting.ledger.resign_turn(has_claimed, row).unwrap());
        assert!(following.step(row, Fate::Lands).unwrap().has_followed);
        let due = row.plus(seconds(3600.0));
        assert_eq!(
            following
                .ledger
                .try_begin_draw(due, due.plus(APART))
                .unwrap(),
            is_at_once
        );
    }
}

/// A claim may be made while the question for it is on its way, and is then newer than the question.
#[test]
fn a_claim_is_as_new_as_the_answer_that_shows_it() {
    let (mut acting, mut following, _) = two();
    let row = acting.pay();
    assert!(acting.step(row, Fate::Lands).unwrap().has_claimed);
    following.witness.borrow_mut().slow = Duration::from_millis(500);
    assert!(following.step(row, Fate::Lands).unwrap().has_followed);
    let patient = row.plus(RULE.patience);
    assert!(!following.ledger.try_begin_draw(row, row).unwrap());
    assert!(
        !following
            .ledger
            .try_begin_draw(row, patient.plus(APART))
            .unwrap(),
        "as if it were as old as the question"
    );
    assert!(
        following
            .ledger
            .try_begin_draw(row, patient.plus(APART + seconds(2.0)))
            .unwrap()
    );
}

#[test]
fn settings_are_recorded_by_who_acts_and_stop_a_worker_that_has_others() {
    let (mut acting, mut following, now) = two();
    stand_by(&mut following, "new", now);
    following.ledger.postpone_settings();
    let row = acting.pay();
    acting.deliver(row);
    assert!(following.step(row, Fate::Lands).unwrap().has_followed);
    assert_eq!(
        following.ledger.settings(),
        "{}",
        "it follows, and has recorded nothing"
    );
    // Windows that closed under other settings say nothing of when its own would have.
    let [known, unknown] = [&acting, &following].map(|worker| {
        worker
            .ledger
            .recorded_positions(row.plus(seconds(3600.0)), |window| window.end)
            .unwrap()
            .past
    });
    assert!(
        known.is_some() && unknown.is_none(),
        "{known:?}, {unknown:?}"
    );
    // A row that says the same again, such as the end of a share, is nobody's other will.
    let settings = "{}".to_owned();
    let first = acting.ledger.next_window();
    let again = Configuration {
        settings,
        first,
        reach: Duration::ZERO,
        ended: Vec::new(),
        until: None,
    };
    acting.ledger.record_settings(again).unwrap();
    acting.deliver(row);
    assert!(following.step(row, Fate::Lands).unwrap().has_followed);
    // Its turn comes: the settings are claimed at once, for nothing of them was drawn.
    acting.ledger.resign_turn(false, row).unwrap();
    following.step(row, Fate::Lands).unwrap();
    let due = row.plus(seconds(3600.0));
    assert!(
        following
            .ledger
            .try_begin_draw(due, due.plus(APART))
            .unwrap()
    );
    assert_eq!(
        following.ledger.record_postponed_settings().unwrap(),
        Some(row)
    );
    assert_eq!(following.ledger.record_postponed_settings().unwrap(), None);
    let late = due.plus(APART);
    assert!(following.step(late, Fate::Lands).unwrap().has_claimed);
    assert!(!following.step(late, Fate::Lands).unwrap().is_waiting);
    assert!(following.ledger.is_acting() && following.ledger.settings() == "new");
    let refused = acting.try_step(late, Fate::Lands);
    assert!(
        matches!(
            refused,
            Err(deliver::DeliveryError::Ledger(LedgerError::OtherSettings {
                row: 6
            }))
        ),
        "{refused:?}"
    );
}

/// A worker of a pipeline with a disk, a configuration and a log of its own.
pub struct Peer<'s> {
    setup: &'s Setup,
    pub name: &'static str,
    pub host: Option<Host>,
    pub child: Option<Child>,
    /// Its wall clock, if that is not the machine's.
    clock: Option<Clock>,
    /// How long its log was when it was started.
    before: usize,
}

impl Drop for Peer<'_> {
    fn drop(&mut self) {
        self.kill();
    }
}

impl<'s> Peer<'s> {
    /// A worker whose disk is empty.
    pub fn new(setup: &'s Setup, name: &'static str, host: Option<Host>) -> Self {
        let peer = Peer {
            setup,
            name,
            host,
            child: None,
            clock: None,
            before: 0,
        };
        let text = fs::read_to_string(setup.configuration()).expect("the configuration");
        let text = text.replace(
            &setup.ledger().display().to_string(),
            &peer.disk().display().to_string(),
        );
        let serve = "\n[serve]\nlisten = \"127.0.0.1:0\"\n";
        fs::write(peer.configuration(), text + serve).expect("it is written");
        peer
    }

    fn place(&self, what: &str) -> PathBuf {
        self.setup
            .folder
            .path()
            .join(format!("{}{what}", self.name))
    }

    fn configuration(&self) -> PathBuf {
        self.place(".toml")
    }

    pub fn disk(&self) -> PathBuf {
        self.place("-ledger")
    }

    pub fn edit(&self, from: &str, to: &str) {
        let text = fs::read_to_string(self.configuration()).expect("the configuration");
        assert!(text.contains(from), "'{from}' is in the configuration");
        fs::write(self.configuration(), text.replace(from, to)).expect("it is written");
    }

    pub fn start(&mut self) {
        self.before = self.all_log().len();
        let program = self.setup.bernstream(&[]);
        let mut command = match &self.host {
            None => Command::new(program.get_program()),
            Some(host) => host.command(program.get_program()),
        };
        let log = fs::File::options()
            .create(true)
            .append(true)
            .open(self.place(".log"))
            .expect("a log");
        command
            .arg("run")
            .arg(self.configuration())
            .env("BERNSTREAM_LOG", "info");
        if let Some(clock) = &self.clock {
            command
                .env("LD_PRELOAD", &clock.library)
                .env(Clock::SHIFT, &clock.shift);
        }
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        self.child = Some(command.spawn().expect("the worker starts"));
    }

    pub fn started(mut self) -> Self {
        self.start();
        self
    }

    pub fn all_log(&self) -> String {
        fs::read_to_string(self.place(".log")).unwrap_or_default()
    }

    /// Since it was started.
    pub fn log(&self) -> String {
        self.all_log().split_off(self.before)
    }

    #[track_caller]
    fn wait<T>(&self, what: &str, found: impl FnMut() -> Option<T>) -> T {
        wait_for(&format!("{} {what}", self.name), || self.all_log(), found)
    }

    /// Whether its log says so last; `None` if it says neither.
    pub fn acts(&self) -> Option<bool> {
        let log = self.log();
        let at = |words| log.rfind(words);
        match (
            at("this worker acts"),
            at("this worker follows another one"),
        ) {
            (None, None) => None,
            (acts, follows) => Some(acts > follows),
        }
    }

    #[track_caller]
    pub fn wait_acts(&self, is_acting: bool) {
        self.wait(&format!("acts: {is_acting}"), || {
            (self.acts() == Some(is_acting)).then_some(())
        });
    }

    pub fn get(&self, path: &str) -> (u16, String) {
        let log = self.log();
        let address = log
            .split_once("serving http://")
            .and_then(|(_, rest)| rest.split_once("/metrics"));
        let answer = address.and_then(|(address, _)| http::ask(address, "GET", path).ok());
        answer.map_or((0, String::new()), |answer| (answer.status, answer.body))
    }

    pub fn signal(&self, name: &str) {
        let id = self.child.as_ref().expect("it runs").id().to_string();
        assert!(
            Command::new("kill")
                .args([name, &id])
                .status()
                .expect("kill runs")
                .success()
        );
    }

    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    pub fn end(&mut self) -> ExitStatus {
        self.child.take().expect("it runs").wait().expect("it ends")
    }

    /// What a metric is.
    pub fn metric(&self, name: &str) -> Option<f64> {
        let (_, text) = self.get("/metrics");
        let line = text
            .lines()
            .find(|line| line.starts_with(&format!("bernstream_{name}{{")))?;
        line.rsplit(' ').next()?.parse().ok()
    }

    /// What is said of its ledger.
    pub fn said_by_verify(&self) -> String {
        let mut command = self.setup.bernstream(&["ledger", "verify"]);
        let said = command.arg(self.configuration()).output().expect("it runs");
        String::from_utf8_lossy(&said.stdout).into_owned() + &String::from_utf8_lossy(&said.stderr)
    }

    /// Its ledger is sound, and comes to be the one that the witness follows: whoever follows is a moment behind.
    pub fn verify(&self) {
        let verified = || {
            let mut command = self.setup.bernstream(&["ledger", "verify"]);
            command
                .arg(self.configuration())
                .output()
                .expect("it runs")
                .status
                .success()
                .then_some(())
        };
        self.wait("is verified", verified);
    }
}

/// A pipeline of windows of a second with a log, and how long its standby waits.
fn ticking(servers: &str, standby: &str) -> Setup {
    ticking_with(servers, standby, &[])
}

/// The same, with another configuration.
fn ticking_with(servers: &str, standby: &str, edits: &[(&str, &str)]) -> Setup {
    let setup = Setup::of_seconds(servers, 0);
    edits.iter().for_each(|(from, to)| setup.edit(from, to));
    add_log(&setup, 1);
    setup.edit(
        "[ledger]\n",
        &format!("[ledger]\nstandby = \"{standby}\"\n"),
    );
    create_topics(&setup);
    setup
}

/// Creates all topics, and a ledger whose disk nobody uses.
pub fn create_topics(setup: &Setup) {
    let made = setup.ledger_command(&["init"]);
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
}

/// The first worker, with the disk of the ledger that was created, and one that follows it with an empty disk.
pub fn peers(setup: &Setup) -> (Peer<'_>, Peer<'_>) {
    let first = Peer::new(setup, "first", None);
    fs::rename(setup.ledger(), first.disk()).expect("its disk");
    let first = first.started();
    first.wait_acts(true);
    let second = Peer::new(setup, "second", None).started();
    second.wait_acts(false);
    (first, second)
}

/// The one that acts, and the other one.
pub fn in_turn<'p, 's>(
    one: &'p mut Peer<'s>,
    other: &'p mut Peer<'s>,
) -> (&'p mut Peer<'s>, &'p mut Peer<'s>) {
    if one.acts() == Some(true) {
        (one, other)
    } else {
        (other, one)
    }
}

/// How many windows are on the output: one version of each, and none is left out.
#[track_caller]
pub fn published(setup: &Setup, told: impl Fn() -> String) -> usize {
    let versions = setup.versions();
    let mut starts: Vec<Timestamp> = Vec::new();
    for ((start, key), versions) in &versions {
        assert_eq!(
            versions.len(),
            1,
            "{start} {key} was drawn twice\n{}",
            told()
        );
        if starts.last() != Some(start) {
            starts.push(*start);
        }
    }
    for pair in starts.windows(2) {
        assert_eq!(
            pair[1].since(pair[0]),
            Duration::from_secs(1),
            "a window is left out after {}\n{}",
            pair[0],
            told()
        );
    }
    starts.len()
}

#[track_caller]
pub fn wait_more(setup: &Setup, windows: usize, told: impl Fn() -> String) {
    let before = published(setup, &told);
    wait_for("windows", &told, || {
        (published(setup, &told) >= before + windows).then_some(())
    });
}

#[test]
fn two_workers_do_not_get_in_each_others_way_and_both_are_ready() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let setup = ticking(&servers, "20s");
    let (first, second) = peers(&setup);
    let told = || first.all_log() + &second.all_log();
    wait_more(&setup, 15, told);
    assert_eq!(
        (first.acts(), second.acts()),
        (Some(true), Some(false)),
        "{}",
        told()
    );
    for (peer, words, acting) in [
        (&first, "ready\n", "1"),
        (&second, "ready, following another worker\n", "0"),
    ] {
        peer.wait("is ready", || {
            (peer.get("/readyz") == (200, words.to_owned())).then_some(())
        });
        let metrics = peer.get("/metrics").1;
        let line = |name: &str| {
            let line = metrics
                .lines()
                .find(|line| line.starts_with(&format!("bernstream_{name}{{")));
            line.and_then(|line| line.rsplit(' ').next())
                .expect(name)
                .to_owned()
        };
        assert_eq!(line("acting"), acting);
        assert!(
            line("ledger_entries").parse::<f64>().expect("a number") > 5.0,
            "{metrics}"
        );
    }
    // It was built once, when its disk was empty, and followed since.
    assert_eq!(
        told().matches("built the ledger from its log").count(),
        1,
        "{}",
        told()
    );
    assert!(!told().contains("trying again"), "{}", told());
    second.verify();
}

#[test]
fn a_worker_that_could_not_act_because_its_clock_is_behind_is_not_ready_to_follow() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let setup = ticking(&servers, "6s");
    let mut first = Peer::new(&setup, "first", None);
    fs::rename(setup.ledger(), first.disk()).expect("its disk");
    first.start();
    first.wait_acts(true);
    let mut second = Peer::new(&setup, "second", None);
    let Some(clock) = Clock::new(setup.folder.path()) else {
        return;
    };
    clock.move_to(-3600);
    second.clock = Some(clock);
    second.start();
    second.wait_acts(false);
    let words = "not ready: a right clock (that of this machine is behind the brokers')\n";
    second.wait("is not ready", || {
        (second.get("/readyz") == (503, words.to_owned())).then_some(())
    });
    first.kill();
    thread::sleep(Duration::from_secs(8));
    assert_eq!(second.get("/readyz").0, 503, "{}", second.all_log());
    second.clock.as_ref().expect("a clock").move_to(0);
    second.wait_acts(true);
    second.wait("is ready", || {
        (second.get("/readyz").0 == 200).then_some(())
    });
}

#[test]
fn a_worker_that_is_told_to_end_hands_over_at_once() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let setup = ticking(&servers, "20s");
    let (mut first, mut second) = peers(&setup);
    let mut quick = 0;
    // Who has claimed nothing yet has nothing to hand over.
    wait_more(&setup, 2, || first.all_log() + &second.all_log());
    for _ in 0..4 {
        let (acting, following) = in_turn(&mut first, &mut second);
        acting.signal("-TERM");
        let told = Instant::now();
        assert!(acting.end().success(), "{}", acting.log());
        assert!(
            acting
                .log()
                .contains("handed over to the workers that follow"),
            "{}",
            acting.log()
        );
        following.wait_acts(true);
        println!("handed over within {:?}", told.elapsed());
        quick += usize::from(told.elapsed() < Duration::from_secs(15));
        acting.start();
        acting.wait_acts(false);
        wait_more(&setup, 2, || first.all_log() + &second.all_log());
    }
    // Where a machine is so busy that a draw takes more than half a second, it is claimed a whole standby later.
    assert!(
        quick >= 1,
        "{quick} of 4 at once: {}{}",
        first.all_log(),
        second.all_log()
    );
}

#[test]
fn what_was_claimed_by_a_worker_that_dies_before_it_publishes_is_published_by_the_other_one() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let setup = ticking(&servers, "2s");
    // It is due long after it is claimed: nobody claims anything in between.
    setup.edit("publish_delay = \"300ms\"", "publish_delay = \"6s\"");
    let mut first = Peer::new(&setup, "first", None);
    fs::rename(setup.ledger(), first.disk()).expect("its disk");
    first.start();
    first.wait_acts(true);
    let mut second = Peer::new(&setup, "second", None);
    second.start();
    second.wait_acts(false);
    wait_more(&setup, 1, || first.all_log() + &second.all_log());
    first.kill();
    wait_more(&setup, 10, || first.all_log() + &second.all_log());
    second.verify();
}

#[test]
fn a_worker_that_sees_newer_settings_of_another_one_stops_and_says_what_to_do() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let setup = ticking(&servers, "6s");
    let mut first = Peer::new(&setup, "first", None);
    fs::rename(setup.ledger(), first.disk()).expect("its disk");
    first.start();
    first.wait_acts(true);
    let mut second = Peer::new(&setup, "second", None);
    second.edit("degree = 12", "degree = 10");
    second.start();
    second.wait_acts(false);
    assert!(
        second
            .log()
            .contains("once this worker acts and no longer follows another one"),
        "{}",
        second.log()
    );
    wait_more(&setup, 3, || first.all_log() + &second.all_log());
    assert_eq!(first.acts(), Some(true), "{}", first.log());
    first.signal("-STOP");
    second.wait_acts(true);
    second.wait("records its settings", || {
        second
            .log()
            .contains("its settings hold for windows from")
            .then_some(())
    });
    first.signal("-CONT");
    assert!(!first.end().success(), "{}", first.log());
    assert!(
        first
            .log()
            .contains("another worker has recorded other settings"),
        "{}",
        first.log()
    );
    // With the same settings it follows.
    first.edit("degree = 12", "degree = 10");
    first.start();
    first.wait_acts(false);
    wait_more(&setup, 3, || first.all_log() + &second.all_log());
}

#[test]
fn a_worker_that_starts_behind_takes_what_it_lacks_and_builds_nothing() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let setup = ticking(&servers, "6s");
    let (first, mut second) = peers(&setup);
    let told = || first.all_log();
    wait_more(&setup, 2, told);
    second.kill();
    let rows_before = rows(&second);
    wait_more(&setup, 4, told);
    // Beside it, or without it, this ledger is only behind.
    let verify = setup
        .bernstream(&["ledger", "verify"])
        .arg(second.configuration())
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&verify.stdout).into_owned();
    assert!(
        verify.status.success(),
        "{}",
        String::from_utf8_lossy(&verify.stderr)
    );
    assert!(said.contains("rows behind another worker"), "{said}");
    assert!(said.contains("of rows that it does not have yet"), "{said}");
    second.start();
    second.wait_acts(false);
    let log = second.log();
    assert!(
        log.contains("took the rows up to") && !log.contains("built the ledger"),
        "{log}"
    );
    assert!(!log.contains("WARN"), "{log}");
    assert!(rows(&second).starts_with(&rows_before));
    second.verify();
}

/// The lines of its ledger, but those of what another worker may have added.
fn rows(peer: &Peer<'_>) -> Vec<String> {
    let export = peer
        .setup
        .bernstream(&["ledger", "export"])
        .arg(peer.configuration())
        .output()
        .expect("it runs");
    assert!(
        export.status.success(),
        "{}",
        String::from_utf8_lossy(&export.stderr)
    );
    String::from_utf8_lossy(&export.stdout)
        .lines()
        .map(str::to_owned)
        .collect()
}

#[test]
fn a_worker_whose_releases_reach_further_back_withholds_no_window_when_it_takes_over() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    // Each window of three panes pays for all of them.
    let regression = "label = { column = \"label\", min = 0, max = 1, outside = \"clamp\" }\n\n[release.regression]\n\
                      bandwidth = 10\ngap = 0.5\nmax_records = 100";
    let edits = [
        ("epsilon = 1.0\n\n[release]", "epsilon = 4.0\n\n[release]"),
        ("\n[release.density]\nbandwidths = [10]", regression),
    ];
    let setup = ticking_with(&servers, "6s", &edits);
    let mut first = Peer::new(&setup, "first", None);
    fs::rename(setup.ledger(), first.disk()).expect("its disk");
    first.start();
    first.wait_acts(true);
    let mut second = Peer::new(&setup, "second", None);
    second.edit(
        "name = \"density\"",
        "name = \"density\"\nwindows = { hopping = \"3s\" }",
    );
    second.start();
    second.wait_acts(false);
    wait_more(&setup, 5, || first.all_log() + &second.all_log());
    first.kill();
    second.wait_acts(true);
    // They overlap, and each ends a second after the one before.
    let ends = || {
        let open = |bytes: &Published| {
            Synopsis::decode_message(&bytes.payload)
                .expect("a synopsis")
                .description()
                .window
                .end
        };
        let ends: BTreeSet<Timestamp> = setup.published().iter().map(open).collect();
        let ends: Vec<Timestamp> = ends.into_iter().collect();
        for pair in ends.windows(2) {
            assert_eq!(
                pair[1].since(pair[0]),
                Duration::from_secs(1),
                "{}",
                second.all_log()
            );
        }
        ends.len()
    };
    let before = ends();
    second.wait("releases windows", || (ends() >= before + 12).then_some(()));
    assert!(
        second
            .log()
            .contains("reading again, so that no window is withheld"),
        "{}",
        second.log()
    );
    second.verify();
}

#[test]
fn a_worker_without_a_disk_whose_settings_have_changed_learns_what_was_left_to_the_program() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let auto = "degree = \"auto\"\norder = \"auto\"\nexpected_records = 60";
    let setup = ticking_with(&servers, "6s", &[("degree = 12\norder = 2", auto)]);
    let mut first = Peer::new(&setup, "first", None);
    fs::rename(setup.ledger(), first.disk()).expect("its disk");
    first.start();
    first.wait_acts(true);
    let mut second = Peer::new(&setup, "second", None);
    second.edit("expected_records = 60", "expected_records = 60000");
    second.start();
    second.wait_acts(false);
    assert!(
        second
            .log()
            .contains("reading the configuration again with that"),
        "{}",
        second.log()
    );
    second.wait("is ready", || {
        (second.get("/readyz").0 == 200).then_some(())
    });
    wait_more(&setup, 2, || first.all_log() + &second.all_log());
    first.kill();
    second.wait_acts(true);
    second.wait("records its settings", || {
        second
            .log()
            .contains("its settings hold for windows from")
            .then_some(())
    });
    wait_more(&setup, 3, || first.all_log() + &second.all_log());
    second.verify();
}

#[test]
fn a_worker_without_a_disk_keeps_the_total_that_an_older_version_has_recorded() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let gaussian = "epsilon = 6.0\ndelta = 1e-9\ncomposition = \"gaussian\"\n\n[release]\nname = \"density\"\nnoise = \"gaussian\"\nrho = 0.02";
    let setup = ticking_with(
        &servers,
        "6s",
        &[(
            "epsilon = 1.0\n\n[release]\nname = \"density\"\nepsilon = 1.0",
            gaussian,
        )],
    );
    let mut settings = WorkerSettings::load(&setup.configuration()).expect("a sound configuration");
    let today = serde_json::json!(settings.privacy.total).to_string();
    settings.privacy.total = Price::Concentrated("0.132".parse().expect("a rho"));
    let theirs = serde_json::json!(settings.privacy.total).to_string();
    settings.normalised = settings.normalised.replace(
        &format!("\"total\":{today}"),
        &format!("\"total\":{theirs}"),
    );
    let now = Timestamp::now();
    let mut witness = settings.output.open_witness().expect("a witness");
    let genesis =
        components::first_row(&settings, &mut *witness, StartMode::Init, now).expect("a genesis");
    fs::remove_dir_all(setup.ledger()).expect("the ledger of today's version");
    drop(Ledger::create(&settings.ledger, genesis).expect("that of the older one"));
    let mut first = Peer::new(&setup, "first", None);
    fs::rename(setup.ledger(), first.disk()).expect("its disk");
    first.start();
    first.wait_acts(true);
    wait_more(&setup, 2, || first.all_log());
    let mut second = Peer::new(&setup, "second", None);
    second.start();
    second.wait_acts(false);
    let log = second.log();
    assert!(log.contains("built the ledger from its log"), "{log}");
    assert!(
        log.contains("reading the configuration again with that"),
        "{log}"
    );
    first.kill();
    second.wait_acts(true);
    wait_more(&setup, 2, || second.all_log());
    second.verify();
}

#[test]
fn what_is_drawn_when_a_worker_is_told_to_end_is_claimed() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let setup = ticking(&servers, "300s");
    let settings = WorkerSettings::load(&setup.configuration()).expect("a sound configuration");
    let plan = settings
        .plan(|release| noise_bands(release, &settings.ledger.path), false)
        .expect("a plan");
    let components = Components::open(&settings)
        .map_err(|error| error.failure)
        .expect("the components open");
    let health = Health::default();
    let stop = StopRequest::default();
    let mut drawn = 0;
    let stopping = stop.clone();
    let worker = Worker {
        plan: &plan,
        readers: components.readers,
        ledger: components.ledger,
        witness: components.witness,
        sink: components.sink,
        generators: Box::new(move || {
            drawn += 1;
            if drawn == 3 {
                stopping.request_stop();
            }
            Generator::from_entropy()
        }),
        metrics: Metrics::new(MetricsDetail::Safe, "setup", "pure epsilon", "0").expect("metrics"),
        health: &health,
        stop,
    };
    worker.run_alone().expect("it is told to end");
    let head = *Ledger::open(&settings.ledger).expect("its ledger").head();
    let claimed = settings
        .output
        .open_witness()
        .expect("a witness")
        .read()
        .expect("an answer");
    assert_eq!(claimed.map(|claim| claim.head), Some(head));
}

/// Tells when a claim is made.
struct Timed {
    inner: Box<dyn Witness + Send>,
    claimed: mpsc::Sender<Instant>,
}

impl Witness for Timed {
    fn read(&mut self) -> Result<Option<WitnessClaim>, witness::WitnessError> {
        self.inner.read()
    }

    fn identity(&mut self) -> Result<String, witness::WitnessError> {
        self.inner.identity()
    }

    fn append(&mut self, claim: &WitnessClaim) -> Result<(), witness::WitnessError> {
        let _ = self.claimed.send(Instant::now());
        self.inner.append(claim)
    }
}

/// What `check` and the schedule of claims take for granted, on the machine that runs this.
#[test]
#[ignore = "figures: a minute"]
fn how_long_it_takes_from_a_draw_to_its_claim() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    for (keys, degree) in [(2, 12), (100, 12), (400, 12), (400, 200), (20, 2_000)] {
        let values: Vec<String> = (0..keys).map(|key| format!("\"k{key}\"")).collect();
        let values = format!("values = [{}]", values.join(", "));
        let degree = format!("degree = {degree}");
        let edits = [
            ("values = [\"a\", \"b\"]", values.as_str()),
            ("degree = 12", degree.as_str()),
        ];
        let setup = ticking_with(&servers, "300s", &edits);
        let settings = WorkerSettings::load(&setup.configuration()).expect("a sound configuration");
        let plan = settings
            .plan(|release| noise_bands(release, &settings.ledger.path), false)
            .expect("a plan");
        let components = Components::open(&settings)
            .map_err(|error| error.failure)
            .expect("the components open");
        let health = Health::default();
        let stop = StopRequest::default();
        let (drawing, drawn) = mpsc::channel();
        let (claimed, claims) = mpsc::channel();
        let stopping = stop.clone();
        let mut count = 0;
        let worker = Worker {
            plan: &plan,
            readers: components.readers,
            ledger: components.ledger,
            witness: Box::new(Timed {
                inner: components.witness,
                claimed,
            }),
            sink: components.sink,
            generators: Box::new(move || {
                count += 1;
                let _ = drawing.send(Instant::now());
                if count == 5 {
                    stopping.request_stop();
                }
                Generator::from_entropy()
            }),
            metrics: Metrics::new(MetricsDetail::Safe, "setup", "pure epsilon", "0")
                .expect("metrics"),
            health: &health,
            stop,
        };
        worker.run_alone().expect("it is told to end");
        let drawn: Vec<_> = drawn.iter().collect();
        let claims: Vec<_> = claims.iter().collect();
        // One claim may be of several draws; the last one counts.
        let took = claims.iter().filter_map(|claim| {
            let began = drawn.iter().rfind(|drawn| *drawn < claim)?;
            Some(claim.duration_since(*began))
        });
        println!(
            "{keys} keys, {degree}: {:?}, given {:?}",
            took.collect::<Vec<_>>(),
            settings.standby_times().drawing
        );
    }
}

#[test]
fn two_workers_and_an_absorber_publish_every_window_once() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let partials = kafka::fresh_name("partials");
    let folder = tempfile::tempdir().expect("a folder");
    let key = folder.path().join("absorbers");
    fs::write(&key, [7; 32]).expect("it is written");
    let scale = format!(
        "[scale]\ntopic = \"{partials}\"\ngroup = \"{partials}\"\nkey_file = \"{}\"\ndeadline = \"2s\"\n\n[output.kafka]\n",
        key.display()
    );
    let edits = [
        ("[output.kafka]\n", scale.as_str()),
        ("publish_delay = \"300ms\"", "publish_delay = \"3s\""),
    ];
    let setup = ticking_with(&servers, "2s", &edits);
    let absorber = Absorber::start(&setup);
    let mut first = Peer::new(&setup, "first", None);
    let mut second = Peer::new(&setup, "second", None);
    for peer in [&first, &second] {
        peer.edit(
            "listen = \"127.0.0.1:0\"",
            "listen = \"127.0.0.1:0\"\ndetail = \"operator\"",
        );
    }
    fs::rename(setup.ledger(), first.disk()).expect("its disk");
    first.start();
    first.wait_acts(true);
    second.start();
    second.wait_acts(false);
    let told =
        |first: &Peer<'_>, second: &Peer<'_>| first.all_log() + &second.all_log() + &absorber.log();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Relaxed) {
                let micros = Timestamp::now().micros();
                setup.send(&[
                    Row {
                        micros,
                        key: "a",
                        value: 10.0,
                    },
                    Row {
                        micros,
                        key: "b",
                        value: 20.0,
                    },
                ]);
                thread::sleep(Duration::from_millis(100));
            }
        });
        let _over = Over(&is_over);
        for _ in 0..2 {
            let (acting, following) = in_turn(&mut first, &mut second);
            for peer in [&*acting, &*following] {
                peer.wait("takes what the absorber sends", || {
                    let taken =
                        |line: &&str| line.contains("fate=\"taken\"") && !line.ends_with(" 0");
                    peer.get("/metrics").1.lines().find(taken).map(drop)
                });
            }
            acting.kill();
            following.wait_acts(true);
            acting.start();
            acting.wait_acts(false);
            wait_more(&setup, 4, || told(&first, &second));
        }
    });
    [first, second].iter().for_each(Peer::verify);
}

/// Ends what runs beside a test, however that ends.
struct Over<'o>(&'o AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// A process that reads for workers; it ends with the test.
struct Absorber<'s> {
    setup: &'s Setup,
    child: Child,
}

impl<'s> Absorber<'s> {
    fn start(setup: &'s Setup) -> Self {
        let log = fs::File::create(setup.folder.path().join("absorber.log")).expect("a log");
        let mut command = setup.bernstream(&["absorb"]);
        command
            .arg(setup.configuration())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        Absorber {
            setup,
            child: command.spawn().expect("it starts"),
        }
    }

    fn log(&self) -> String {
        fs::read_to_string(self.setup.folder.path().join("absorber.log")).unwrap_or_default()
    }
}

impl Drop for Absorber<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn of_two_workers_that_begin_a_pipeline_at_once_one_acts_and_the_other_one_follows() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let setup = Setup::of_seconds(&servers, 0);
    add_log(&setup, 1);
    create_topics(&setup);
    // The same pipeline with another witness: nothing was ever claimed there.
    let settings = [
        ("retention.bytes", "-1"),
        ("cleanup.policy", "delete"),
        ("unclean.leader.election.enable", "false"),
        ("message.timestamp.type", "LogAppendTime"),
        ("flush.messages", "1"),
    ];
    let witness = kafka::fresh_topic(&servers, "witness", 1, &settings);
    let log = log_topic(&setup);
    setup.edit(&setup.witness, &witness);
    setup.edit(&log, &kafka::fresh_topic(&servers, "ledger", 1, &settings));
    let peers = ["first", "second"].map(|name| Peer::new(&setup, name, None).started());
    let told = || peers.iter().map(Peer::all_log).collect::<String>();
    let both = wait_for("both", told, || {
        let [one, other] = [peers[0].acts()?, peers[1].acts()?];
        (one != other).then_some([one, other])
    });
    wait_more(&setup, 4, told);
    assert_eq!(
        peers.each_ref().map(|peer| peer.acts()),
        both.map(Some),
        "{}",
        told()
    );
    peers.iter().for_each(Peer::verify);
}

/// What happens to the worker that acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Killed,
    Frozen,
    CutOff,
    Ended,
}

/// The end of the output.
fn end_of(client: &BaseConsumer, topic: &str) -> i64 {
    client
        .fetch_watermarks(topic, 0, PATIENCE)
        .expect("an answer")
        .1
}

/// How long it takes from a fault of the worker that acts to the next synopsis.
fn time_to_next(setup: &Setup, acting: &mut Peer<'_>, fault: Fault) -> Duration {
    let client: BaseConsumer = kafka::at(&setup.servers)
        .client_config()
        .expect("settings")
        .set("group.id", "test")
        .set("enable.auto.commit", "false")
        .create()
        .expect("a consumer");
    end_of(&client, &setup.output);
    let begun = Instant::now();
    match fault {
        Fault::Killed => acting.kill(),
        Fault::Frozen => acting.signal("-STOP"),
        Fault::CutOff => acting.host.as_ref().expect("a host").cut(),
        Fault::Ended => {
            acting.signal("-TERM");
            assert!(acting.end().success(), "{}", acting.log());
        }
    }
    // What is on its way arrives.
    thread::sleep(Duration::from_millis(30));
    let end = end_of(&client, &setup.output);
    let mut list = TopicPartitionList::new();
    list.add_partition_offset(&setup.output, 0, Offset::Offset(end))
        .expect("a partition");
    client.assign(&list).expect("assigned");
    client.poll(PATIENCE).expect("in time").expect("a synopsis");
    begun.elapsed()
}

/// A pipeline of windows of a second beside three brokers, and how long its standby waits.
pub fn beside_brokers(brokers: &Inside) -> (Setup, String) {
    let standby = env::var("BERNSTREAM_TEST_STANDBY").unwrap_or_else(|_| "2s".to_owned());
    let mut setup = Setup::of_seconds(&brokers.servers, 0);
    let input = brokers.topic(
        "input",
        2,
        1,
        &[("message.timestamp.type", "LogAppendTime")],
    );
    setup.edit(
        &format!("topic = \"{}\"", setup.input),
        &format!("topic = \"{input}\""),
    );
    setup.input = input;
    setup.edit(
        "witness_min_insync_replicas = 1",
        "witness_min_insync_replicas = 2",
    );
    add_log(&setup, 1);
    setup.edit("key_file", &format!("standby = \"{standby}\"\nkey_file"));
    (setup, standby)
}

/// Takes over so many times after each fault, on three brokers; prints how long it took.
fn take_over(brokers: &Inside, times: usize) {
    let (setup, standby) = beside_brokers(brokers);
    create_topics(&setup);
    let mut one = Peer::new(&setup, "one", Some(brokers.host(1)));
    fs::rename(setup.ledger(), one.disk()).expect("its disk");
    one.start();
    one.wait_acts(true);
    let mut other = Peer::new(&setup, "other", Some(brokers.host(2))).started();
    other.wait_acts(false);
    let mut random = ChaCha20Rng::seed_from_u64(5);
    for fault in [Fault::Killed, Fault::Frozen, Fault::CutOff, Fault::Ended] {
        let mut took = Vec::new();
        for _ in 0..times {
            wait_more(&setup, 2, || one.all_log() + &other.all_log());
            thread::sleep(Duration::from_millis(random.random_range(0..1000)));
            let (acting, following) = in_turn(&mut one, &mut other);
            took.push(time_to_next(&setup, acting, fault));
            following.wait_acts(true);
            match fault {
                Fault::Killed | Fault::Ended => acting.start(),
                Fault::Frozen => acting.signal("-CONT"),
                Fault::CutOff => acting.host.as_ref().expect("a host").heal(),
            }
            acting.wait_acts(false);
        }
        took.sort();
        let at = |part: usize| took[(took.len() - 1) * part / 100].as_secs_f64();
        println!(
            "{fault:?}: {times} take-overs with a standby of {standby}, from the fault to the next synopsis: {:.2} s to {:.2} s, half \
             of them within {:.2} s, nine of ten within {:.2} s",
            at(0),
            at(100),
            at(50),
            at(90)
        );
    }
    let windows = published(&setup, || one.all_log() + &other.all_log());
    println!("{windows} windows, each in one version, and none is left out");
    [one, other].iter().for_each(Peer::verify);
}

#[test]
fn of_two_hosts_one_takes_over_from_the_other() {
    let Some(brokers) =
        cluster::inside("standby::of_two_hosts_one_takes_over_from_the_other", 6_000)
    else {
        return;
    };
    take_over(&brokers, 1);
}

/// Some twenty minutes; `BERNSTREAM_TAKEOVERS` says how many of each kind.
#[test]
#[ignore = "figures: tens of minutes"]
fn how_long_a_take_over_takes() {
    let Some(brokers) = cluster::inside("standby::how_long_a_take_over_takes", 6_000) else {
        return;
    };
    let times = env::var("BERNSTREAM_TAKEOVERS")
        .ok()
        .and_then(|times| times.parse().ok())
        .unwrap_or(30);
    take_over(&brokers, times);
}

mod long {
    use super::*;

    #[test]
    fn a_worker_that_is_killed_is_followed_and_finds_itself_following_when_it_comes_back() {
        let Some(servers) = kafka::broker() else {
            return;
        };
        let setup = ticking(&servers, "6s");
        let (mut first, mut second) = peers(&setup);
        for round in 0..4 {
            let (acting, following) = in_turn(&mut first, &mut second);
            acting.kill();
            following.wait_acts(true);
            if round > 1 {
                fs::remove_dir_all(acting.disk()).expect("its disk is lost");
            }
            acting.start();
            acting.wait_acts(false);
            wait_more(&setup, 3, || first.all_log() + &second.all_log());
        }
        [first, second].iter().for_each(Peer::verify);
    }

    #[test]
    fn a_worker_that_is_frozen_backs_off_when_it_goes_on() {
        let Some(servers) = kafka::broker() else {
            return;
        };
        let setup = ticking(&servers, "6s");
        let (mut first, mut second) = peers(&setup);
        for round in 0..4 {
            let (acting, following) = in_turn(&mut first, &mut second);
            thread::sleep(Duration::from_millis(230 * round));
            acting.signal("-STOP");
            following.wait_acts(true);
            acting.signal("-CONT");
            acting.wait_acts(false);
            wait_more(&setup, 3, || first.all_log() + &second.all_log());
        }
        [first, second].iter().for_each(Peer::verify);
    }
}
