//! An episode: a pipeline of its own, its records, and the faults of a schedule, one after the other; then everything must be
//! there, once, and exact.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use bernstream_synopsis::clock::Timestamp;

use crate::harness::setup::Setup;

use super::counts::Counts;
use super::judge::{Evidence, Rules, Seen, judge};
use super::place::Place;
use super::schedule::{Grid, Schedule};
use super::sender::Sender;
use super::storm::Storm;
use super::topics::{self, Lost};
use super::worker::{Plan, Shim, Worker};

/// The exit code of a command whose broker does not answer.
const UNAVAILABLE: i32 = 69;

pub struct Episode {
    pub setup: Setup,
    pub rules: Rules,
    pub shim: Shim,
    /// What of the input was given up.
    pub lost: Mutex<Vec<Lost>>,
}

/// Plays a schedule and judges it. An error says what is wrong, and where the log and the ledger are.
pub fn play(schedule: &Schedule, place: &Place, counts: &Counts) -> Result<Seen, String> {
    let episode = caught(|| Ok(Episode::new(schedule, place)))?;
    let played = caught(|| {
        episode.storm(schedule, place, counts);
        judge(&episode.evidence())
    });
    match &played {
        Ok(seen) => counts.judged(seen),
        Err(_) => counts.add("seen: episodes that FAILED", 1),
    }
    played.map_err(|why| {
        format!(
            "{why}\n  log and ledger: {}",
            episode.setup.folder.keep().display()
        )
    })
}

/// What a test would end with.
fn caught<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    let words = |panic: Box<dyn Any + Send>| {
        let text = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or(panic.downcast_ref::<&str>().copied());
        text.unwrap_or("a panic").to_owned()
    };
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(words(panic)))
}

impl Episode {
    pub fn new(schedule: &Schedule, place: &Place) -> Self {
        let mut setup = match schedule.grid {
            Grid::Past => Setup::new(place.servers(), schedule.windows),
            Grid::Live => {
                let soon =
                    Timestamp::now().plus(Duration::from_secs(3)).micros() / 1_000_000 * 1_000_000;
                Setup::quick(
                    place.servers(),
                    Timestamp::from_micros(soon),
                    schedule.windows,
                )
            }
        };
        // No noise that could hide a record.
        setup.edit("epsilon = 1.0", "epsilon = 1000.0");
        place.fit(&mut setup);
        setup.edit(
            "[ledger]",
            "[serve]\nlisten = \"127.0.0.1:0\"\ndetail = \"operator\"\n\n[ledger]",
        );
        let backfill_until = match schedule.grid {
            Grid::Past => {
                Sender::new(&setup, schedule).begin();
                Timestamp::now().plus(Duration::from_secs(2))
            }
            Grid::Live => setup.origin,
        };
        let from = setup.origin.to_string();
        let until = backfill_until.to_string();
        let made = setup.ledger_command(&["init", "--from", &from, "--backfill-until", &until]);
        assert!(
            made.status.success(),
            "{}",
            String::from_utf8_lossy(&made.stderr)
        );
        let rules = Rules {
            origin: setup.origin.micros(),
            length: setup.start_of(1).micros() - setup.origin.micros(),
            windows: schedule.windows.into(),
            grace: 1_000_000,
            ahead: 1_000_000,
            backfill_until: backfill_until.micros(),
        };
        let shim = Shim::new(setup.folder.path()).expect("a C compiler, which was there");
        Episode {
            setup,
            rules,
            shim,
            lost: Mutex::default(),
        }
    }

    pub fn worker(&self, plan: Plan) -> Worker {
        Worker::start(&self.setup, &self.shim, plan)
    }

    /// Sends the records, and lets happen what is to happen; returns when the worker has done all its work.
    pub fn storm(&self, schedule: &Schedule, place: &Place, counts: &Counts) {
        let Rules {
            origin,
            length,
            windows,
            grace,
            backfill_until,
            ..
        } = self.rules;
        let closed =
            Timestamp::from_micros((origin + windows * length + grace).max(backfill_until));
        thread::scope(|scope| {
            scope.spawn(|| Sender::new(&self.setup, schedule).run(closed));
            let mut storm = Storm::new(self, place, counts);
            for fault in &schedule.faults {
                storm.strike(*fault);
            }
            storm.end();
            if schedule.loses_power() {
                storm.start_again();
            }
        });
        // A broker that has just come back may not have the partition yet: the command then says so, and is given again.
        let verified = self.setup.wait_for("an answer of the broker", || {
            Some(self.setup.ledger_command(&["verify"]))
                .filter(|verified| verified.status.code() != Some(UNAVAILABLE))
        });
        assert!(
            verified.status.success(),
            "ledger verify: {}",
            String::from_utf8_lossy(&verified.stderr)
        );
    }

    /// Gives up a part of the input, as the log says it is done.
    pub fn give_up(&self, lost: Lost) {
        let Lost {
            partition,
            from,
            to,
        } = lost;
        let mut all = self.lost.lock().expect("the list");
        let before = if all.is_empty() {
            "clock_slack"
        } else {
            "lost = ["
        };
        let one = format!("{{ partition = {partition}, from = {from}, to = {to} }}");
        let after = if all.is_empty() {
            format!("lost = [{one}]\nclock_slack")
        } else {
            format!("lost = [{one}, ")
        };
        self.setup.edit(before, &after);
        all.push(lost);
    }

    pub fn evidence(&self) -> Evidence {
        let Setup {
            servers,
            input,
            output,
            ..
        } = &self.setup;
        let lost = self.lost.lock().expect("the list");
        let mut read = topics::read(servers, input, "read_committed");
        read.retain(|message| !lost.iter().any(|lost| lost.has(message)));
        Evidence {
            rules: self.rules.clone(),
            input: read,
            output: topics::read(servers, output, "read_uncommitted"),
            committed: topics::read(servers, output, "read_committed"),
        }
    }
}
