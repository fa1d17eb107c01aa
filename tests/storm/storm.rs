//! What happens to the worker of an episode, and to what is around it.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rdkafka::producer::{BaseRecord, Producer};

use crate::harness::PATIENCE;
use crate::harness::setup::Setup;

use super::counts::Counts;
use super::episode::Episode;
use super::place::Place;
use super::schedule::{Beside, Fault};
use super::topics::{self, Lost, Message};
use super::worker::{Death, Plan, Refusal, Worker, was_killed};

/// A worker that has read its input for so long and has not died where it should passes that place seldom, and goes on.
const WAIT: Duration = Duration::from_secs(6);

/// The exit code of a worker that its ledger stops.
const STOPPED: i32 = 74;

/// How long a worker with work to do takes to its next claim.
const CLAIMED: Duration = Duration::from_secs(30);

/// How long a leader takes to show again what it has, after all brokers have started.
const SHOWN: Duration = Duration::from_secs(30);

pub struct Storm<'a> {
    episode: &'a Episode,
    place: &'a Place,
    counts: &'a Counts,
    worker: Option<Worker>,
    /// How long the log was when it started.
    logged: usize,
    /// The worker has done all its work.
    is_over: bool,
}

fn millis(count: u32) -> Duration {
    Duration::from_millis(count.into())
}

impl<'a> Storm<'a> {
    pub fn new(episode: &'a Episode, place: &'a Place, counts: &'a Counts) -> Self {
        Storm {
            episode,
            place,
            counts,
            worker: None,
            logged: 0,
            is_over: false,
        }
    }

    pub fn strike(&mut self, fault: Fault) {
        if self.is_over {
            return;
        }
        match fault {
            Fault::Dies {
                way,
                call,
                count,
                seed,
            } => self.planned(Plan::Dies(Death {
                way,
                call,
                count,
                seed,
            })),
            Fault::Refused {
                error,
                call,
                count,
                times,
            } => {
                self.planned(Plan::Refused(Refusal {
                    error,
                    call,
                    count,
                    times,
                }));
            }
            Fault::PowerCut {
                after,
                lasts,
                worker,
            } => self.power_cut(after, millis(lasts), worker),
            Fault::Killed { after } => {
                self.running(after);
                self.kill("kills: from outside, at any time");
            }
            Fault::Frozen { after, lasts } => {
                if let Some(worker) = self.running(after) {
                    worker.signal("-STOP");
                    sleep(millis(lasts));
                    worker.signal("-CONT");
                    self.counts.add("freezes of the worker", 1);
                }
            }
            Fault::Clock {
                after,
                seconds,
                lasts,
            } => {
                self.running(after);
                self.episode.shim.clock.move_to(seconds.into());
                sleep(millis(lasts));
                self.episode.shim.clock.move_to(0);
                self.counts.add("steps of the worker's clock", 1);
            }
            Fault::Second { after } => self.second(after),
            Fault::Readers { after, lasts } => self.readers(after, millis(lasts)),
            Fault::Bomb { after, partition } => {
                self.running(after);
                self.bomb(partition);
            }
            Fault::Broker {
                harm,
                broker,
                after,
                lasts,
            } => {
                self.running(after);
                self.place.harm(harm, broker, millis(lasts));
                self.counts.add(&format!("faults of a broker: {harm}"), 1);
                self.look();
            }
        }
    }

    /// A new worker, and time for what its system is to do to it.
    fn planned(&mut self, plan: Plan) {
        self.kill("kills: a new worker was wanted");
        self.start(plan);
        self.wait_words("reading the input");
        let until = Instant::now() + WAIT;
        while self.worker.is_some() && Instant::now() < until {
            sleep(Duration::from_millis(10));
            self.look();
        }
    }

    /// All brokers lose their power at once. Every claim that the witness had is there afterwards.
    fn power_cut(&mut self, after: u32, lasts: Duration, worker: Beside) {
        self.running(after);
        let claims = self.fresh_claims();
        let setup = &self.episode.setup;
        let brokers = self.place.powered();
        brokers.power_off();
        if worker != Beside::Lives {
            self.kill("kills: with the power of the brokers");
        }
        if worker == Beside::LosesDisk && !self.is_over {
            std::fs::remove_dir_all(setup.ledger()).expect("the disk is lost");
        }
        sleep(lasts);
        brokers.power_on();
        let lost = lost_claims(&setup.servers, &setup.witness, &claims);
        self.counts.add(
            &format!("power cuts of three brokers: the worker {worker}"),
            1,
        );
        self.counts.add(
            "claims that were looked for after power cuts",
            claims.len() as u64,
        );
        assert_eq!(
            lost,
            0,
            "of {} claims {lost} are gone after a power cut",
            claims.len()
        );
        self.look();
    }

    /// The claims of the witness, as soon as one has come; a worker may have none to make for a while.
    fn fresh_claims(&mut self) -> Vec<Message> {
        let Setup {
            servers, witness, ..
        } = &self.episode.setup;
        let before = topics::read(servers, witness, "read_uncommitted").len();
        let until = Instant::now() + CLAIMED;
        loop {
            let claims = topics::read(servers, witness, "read_uncommitted");
            self.look();
            if claims.len() > before || self.worker.is_none() || Instant::now() > until {
                return claims;
            }
            sleep(Duration::from_millis(20));
        }
    }

    /// A worker that has done all its work is started again: it compares the output with its ledger.
    pub fn start_again(&mut self) {
        self.is_over = false;
        self.end();
    }

    /// A worker that runs and has done so for `after`; none where it has died or all is done.
    fn running(&mut self, after: u32) -> Option<&Worker> {
        self.look();
        if self.worker.is_none() && !self.is_over {
            self.start(Plan::Nothing);
        }
        sleep(millis(after));
        self.look();
        self.worker.as_ref()
    }

    fn start(&mut self, plan: Plan) {
        self.logged = self.episode.setup.read_log().len();
        self.worker = Some(self.episode.worker(plan));
    }

    /// Waits until the running worker has said so, or has ended.
    fn wait_words(&mut self, words: &str) {
        let until = Instant::now() + PATIENCE;
        while self.worker.is_some() && !self.episode.setup.read_log()[self.logged..].contains(words)
        {
            assert!(
                Instant::now() < until,
                "the worker does not come to say '{words}': {}",
                self.last_words()
            );
            sleep(Duration::from_millis(10));
            self.look();
        }
    }

    fn look(&mut self) {
        if let Some(status) = self.worker.as_mut().and_then(Worker::ended) {
            self.has_ended(status);
        }
    }

    /// A worker ends because it was killed, because its disk failed, or because it has done all its work, and for no other reason.
    fn has_ended(&mut self, status: ExitStatus) {
        let Some(worker) = self.worker.take() else {
            return;
        };
        match worker.plan {
            plan if status.success() => {
                self.is_over = true;
                self.count_refusal(plan, "went on");
            }
            Plan::Dies(death) if was_killed(status) => {
                self.counts
                    .add(&format!("kills: {} {}", death.way, death.call), 1);
            }
            plan @ Plan::Refused(_)
                if status.code() == Some(STOPPED) && self.is_told_of_the_disk() =>
            {
                self.count_refusal(plan, "stopped");
            }
            _ => panic!("the worker ended with {status}: {}", self.last_words()),
        }
    }

    /// Whether the worker's last words are about its disk, and not about a ledger that is lost.
    fn is_told_of_the_disk(&self) -> bool {
        let log = self.episode.setup.read_log();
        let last = log[self.logged..].lines().rev().take(5).collect::<String>();
        let of_the_disk = [
            "the disk fails, not the ledger",
            "says nothing about the ledger",
            "is full; make room",
        ];
        of_the_disk.iter().any(|words| last.contains(words)) && !last.contains("damaged")
    }

    fn count_refusal(&self, plan: Plan, then: &str) {
        if let Plan::Refused(Refusal { error, call, .. }) = plan
            && self.episode.shim.was_refused()
        {
            self.counts.add(
                &format!("system calls that failed: {error} of {call}, and the worker {then}"),
                1,
            );
        }
    }

    /// The last lines of the log, the newest first.
    fn last_words(&self) -> String {
        self.episode
            .setup
            .read_log()
            .lines()
            .rev()
            .take(12)
            .map(|line| format!("\n  {line}"))
            .collect()
    }

    fn kill(&mut self, why: &str) {
        self.look();
        if let Some(mut worker) = self.worker.take() {
            worker.child.kill().expect("it is killed");
            let status = worker.child.wait().expect("it ends");
            if was_killed(status) {
                self.counts.add(why, 1);
                self.count_refusal(worker.plan, "went on");
            } else {
                self.worker = Some(worker);
                self.has_ended(status);
            }
        }
    }

    /// Another worker on the same ledger gives up, and the first goes on.
    fn second(&mut self, after: u32) {
        self.running(after);
        self.wait_words("ledger verified");
        if self.worker.is_none() {
            return;
        }
        let mut second = self.episode.worker(Plan::Nothing);
        let ended = second.ends_within(PATIENCE);
        self.look();
        match ended.and_then(|status| status.code()) {
            Some(74) => self.counts.add("second workers that were refused", 1),
            // The first had ended.
            Some(0) if self.worker.is_none() => self.is_over = true,
            code => panic!("a second worker on the ledger ended with {code:?}"),
        }
    }

    /// A batch that unfolds beyond all bounds stops the worker, which says what to give up; without it the next one goes on.
    fn bomb(&mut self, partition: i32) {
        let Episode { setup, .. } = self.episode;
        let from = setup.read_log().len();
        let producer = setup.producer(&[
            ("compression.type", "zstd"),
            ("message.max.bytes", "200000000"),
        ]);
        let zeros = vec![0; 130_000_000];
        let record = BaseRecord::<(), [u8]>::to(&setup.input)
            .partition(partition)
            .payload(&zeros);
        producer
            .send(record)
            .map_err(|(error, _)| error)
            .expect("it is queued");
        producer.flush(PATIENCE).expect("the broker takes it");
        let until = Instant::now() + PATIENCE;
        // One that has read all of its windows does not come to it.
        while !self.is_over {
            if let Some(lost) = lost(&setup.read_log()[from..]) {
                self.kill("kills: to give up a batch");
                return self.episode.give_up(lost);
            }
            assert!(
                Instant::now() < until,
                "the worker does not say what it cannot read: {}",
                self.last_words()
            );
            self.running(10);
        }
    }

    /// Those who look while the worker works.
    fn readers(&mut self, after: u32, lasts: Duration) {
        if self.running(after).is_none() {
            return;
        }
        let Episode { setup, .. } = self.episode;
        let mut export = setup.bernstream(&["ledger", "export"]);
        let export = export
            .arg(setup.configuration())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let mut export = export.expect("it starts");
        let mut slow = self
            .address()
            .map(|address| slow_readers(&address))
            .unwrap_or_default();
        let verify = |what: &str| {
            let done = setup.ledger_command(&[what]);
            let code = done.status.code();
            assert_eq!(
                code,
                Some(0),
                "ledger {what} beside the worker: {}",
                String::from_utf8_lossy(&done.stderr)
            );
        };
        let until = Instant::now() + lasts;
        loop {
            verify("verify");
            verify("show");
            self.counts.add("looks at the ledger beside its worker", 2);
            if Instant::now() > until {
                break;
            }
        }
        for stream in &mut slow {
            let _ = stream.read(&mut [0; 1]);
        }
        let _ = export.kill();
        let _ = export.wait();
        self.look();
    }

    /// Where the endpoints of the running worker are.
    fn address(&self) -> Option<String> {
        let log = self.episode.setup.read_log();
        let line = log
            .lines()
            .rev()
            .find_map(|line| line.split_once("serving http://"))?;
        line.1
            .split_once("/metrics")
            .map(|(address, _)| address.to_owned())
    }

    /// After the last fault the worker comes to its end by itself.
    pub fn end(&mut self) {
        let until = Instant::now() + PATIENCE;
        while !self.is_over {
            self.running(0);
            let left = until.saturating_duration_since(Instant::now());
            let ended = self
                .worker
                .as_mut()
                .and_then(|worker| worker.ends_within(left));
            match ended {
                // Perhaps of a fault that it had not come to before.
                Some(status) => self.has_ended(status),
                None if self.is_over => {}
                None => panic!(
                    "the worker does not come to its end within {PATIENCE:?}: {}",
                    self.last_words()
                ),
            }
        }
    }
}

/// How many of these claims the witness does not show any more.
fn lost_claims(servers: &str, witness: &str, claims: &[Message]) -> usize {
    let until = Instant::now() + SHOWN;
    loop {
        let found = topics::read(servers, witness, "read_uncommitted");
        let lost = claims.iter().filter(|claim| !found.contains(claim)).count();
        if lost == 0 || Instant::now() > until {
            return lost;
        }
        sleep(Duration::from_millis(500));
    }
}

/// What the log says to give up.
fn lost(log: &str) -> Option<Lost> {
    let number = |text: &str, name: &str| {
        let digits = text.split_once(&format!("{name} = "))?.1;
        digits[..digits.find(|c: char| !c.is_ascii_digit())?]
            .parse::<i64>()
            .ok()
    };
    let text = log.split_once("add { partition")?.1.split_once('}')?.0;
    let text = format!("partition{text}}}");
    let partition = i32::try_from(number(&text, "partition")?).ok()?;
    Some(Lost {
        partition,
        from: number(&text, "from")?,
        to: number(&text, "to")?,
    })
}

/// Connections that ask for half of something, and for something that they do not read.
fn slow_readers(address: &str) -> Vec<TcpStream> {
    let ask = |request: &str| {
        let mut stream = TcpStream::connect(address).ok()?;
        stream
            .set_read_timeout(Some(Duration::from_millis(10)))
            .ok()?;
        stream.write_all(request.as_bytes()).ok()?;
        Some(stream)
    };
    let half = "GET /healthz HTTP/1.1\r\nHost: lo";
    let whole = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
    (0..60)
        .filter_map(|number| ask(if number % 2 == 0 { half } else { whole }))
        .collect()
}
