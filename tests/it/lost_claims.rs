//! Brokers that lose power together acknowledge claims that they then do not have: whatever is left, and wherever, no window leaves in two
//! versions.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;

use bernstream::cli::components::Components;
use bernstream::cli::run::noise_bands;
use bernstream_config::WorkerSettings;
use bernstream_kafka::sink;
use bernstream_kafka::sink::kafka::{KafkaSink, KafkaSinkParams};
use bernstream_kafka::sink::{LostMessages, OutputTail, Sink, Unpublished};
use bernstream_ledger::witness;
use bernstream_ledger::witness::{Witness, WitnessClaim};
use bernstream_ledger::{ClosingWindow, Head, Ledger, Paid, PublishedMessage};
use bernstream_noise::noise::Generator;
use bernstream_synopsis::Synopsis;
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::description::{Description, PaymentRow};
use bernstream_worker::metrics::{Metrics, MetricsDetail};
use bernstream_worker::pipeline::{Health, StopRequest, Worker};
use rdkafka::admin::{AdminClient, AdminOptions};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::producer::{BaseRecord, Producer};
use rdkafka::{Offset, TopicPartitionList};

use crate::harness::setup::Setup;
use crate::harness::{PATIENCE, kafka, ledger, wait_for};
use crate::ledger_log::{add_log, log_topic};
use crate::standby::{Peer, create_topics};

/// What the words of the log say when the witness has lost claims.
const TOLD: &str = "the witness has lost claims";

/// A pipeline of windows of a second on a broker of its own, and one worker of it.
struct Cut<'s> {
    own: &'s kafka::Own,
    setup: &'s Setup,
    worker: Peer<'s>,
    /// What readers have seen before the brokers lost power.
    seen: BTreeMap<(Timestamp, String), Vec<u8>>,
}

fn ticking(servers: &str, has_log: bool) -> Setup {
    let setup = Setup::of_seconds(servers, 0);
    if has_log {
        add_log(&setup, 1);
        setup.edit("[ledger]\n", "[ledger]\nstandby = \"2s\"\n");
    }
    create_topics(&setup);
    setup
}

/// Of how many batches how many are left.
fn all_but_two(batches: usize) -> usize {
    batches - 2
}

fn half(batches: usize) -> usize {
    batches / 2
}

/// The first claim, and that of a window.
fn two(_: usize) -> usize {
    2
}

/// That of the first window.
fn first(_: usize) -> usize {
    1
}

/// How many windows readers have seen, at least, before the power fails.
const WINDOWS: usize = 4;

impl<'s> Cut<'s> {
    /// A worker that has published some windows, with the disk of the ledger that was created.
    fn begun(own: &'s kafka::Own, setup: &'s Setup) -> Self {
        let worker = Peer::new(setup, "first", None);
        fs::rename(setup.ledger(), worker.disk()).expect("its disk");
        let cut = Cut {
            own,
            setup,
            worker: worker.started(),
            seen: BTreeMap::new(),
        };
        cut.wait_more(WINDOWS);
        cut
    }

    /// More windows are published, so often one after another, and known to be.
    fn wait_more(&self, times: usize) {
        for _ in 0..times {
            let before = self.setup.versions().len();
            let is_more = || (self.setup.versions().len() > before).then_some(());
            wait_for("windows", || self.worker.all_log(), is_more);
        }
        let known = self
            .worker
            .metric("synopses_published_total")
            .unwrap_or_default();
        let is_known = || {
            self.worker
                .metric("synopses_published_total")
                .filter(|now| *now > known)
                .map(drop)
        };
        wait_for("marks", || self.worker.all_log(), is_known);
    }

    /// The newest row whose messages the ledger keeps no more.
    fn dropped(&self) -> i64 {
        let file = rusqlite::Connection::open(self.worker.disk().join("ledger.sqlite"))
            .expect("its ledger");
        file.query_row("SELECT pruned FROM kept", [], |row| row.get(0))
            .unwrap_or_default()
    }

    /// How many claims the witness has.
    fn claims(&self) -> usize {
        let client: BaseConsumer = kafka::at(&self.setup.servers)
            .client_config()
            .unwrap()
            .create()
            .unwrap();
        let (_, end) = client
            .fetch_watermarks(&self.setup.witness, 0, PATIENCE)
            .expect("an answer");
        usize::try_from(end).expect("an offset")
    }

    /// The broker dies at once, and loses the newest batches of these topics.
    fn loses_power(&mut self, topics: &[(&str, &dyn Fn(usize) -> usize)]) {
        self.seen = one_version(self.setup);
        self.own.ask("crash");
        topics
            .iter()
            .for_each(|(topic, keeps)| self.own.cut(topic, *keeps));
        self.own.ask("restart");
    }

    fn lose_disk(&self) {
        fs::remove_dir_all(self.worker.disk()).expect("the disk is lost");
    }

    /// It goes on, what readers have seen stays the only version, and nothing is left out.
    #[track_caller]
    fn goes_on(&self) {
        let windows = self.seen.len() / 2;
        wait_for(
            "windows",
            || self.worker.all_log(),
            || (one_version(self.setup).len() >= 2 * (windows + 3)).then_some(()),
        );
        self.assert_seen();
        self.worker.verify();
    }

    /// Its log says so.
    #[track_caller]
    fn tells(&self) {
        assert!(self.worker.log().contains(TOLD), "{}", self.worker.log());
    }

    #[track_caller]
    fn assert_seen(&self) {
        let now = one_version(self.setup);
        let changed: Vec<_> = self
            .seen
            .iter()
            .filter(|(place, bytes)| now.get(*place) != Some(*bytes))
            .collect();
        assert!(
            changed.is_empty(),
            "gone or changed: {:?}",
            changed.iter().map(|(place, _)| place).collect::<Vec<_>>()
        );
    }

    /// It stops with these words, and has published nothing more.
    #[track_caller]
    fn stops(&mut self, words: &str) {
        let log = self.worker.log();
        let child = self.worker.child.as_mut().expect("it runs");
        let status = wait_for(
            "the end",
            || log.clone(),
            || child.try_wait().expect("it can be asked"),
        );
        assert_eq!(status.code(), Some(74), "{}", self.worker.log());
        assert!(self.worker.log().contains(words), "{}", self.worker.log());
        assert_eq!(
            one_version(self.setup),
            self.seen,
            "nothing is published, and nothing is drawn"
        );
    }
}

/// The synopses on the output; no window of a key has two versions there.
#[track_caller]
fn one_version(setup: &Setup) -> BTreeMap<(Timestamp, String), Vec<u8>> {
    let versions = setup.versions();
    let twice: Vec<_> = versions
        .iter()
        .filter(|(_, versions)| versions.len() > 1)
        .map(|(place, _)| place)
        .collect();
    assert!(
        twice.is_empty(),
        "published twice with other noise: {twice:?}"
    );
    versions
        .into_iter()
        .filter_map(|(place, versions)| Some((place, versions.into_iter().next()?)))
        .collect()
}

fn copy(from: &Path, to: &Path) {
    assert!(
        Command::new("cp")
            .arg("-a")
            .arg(from)
            .arg(to)
            .status()
            .expect("cp")
            .success()
    );
}

#[test]
fn a_worker_that_runs_on_claims_again_what_it_has_published() {
    let Some(_) = kafka::broker() else { return };
    let own = kafka::Own::start();
    let setup = ticking(&own.servers, true);
    let mut cut = Cut::begun(&own, &setup);
    cut.loses_power(&[(&setup.witness, &all_but_two)]);
    cut.goes_on();
    cut.tells();
}

/// The newest row that the disk of a worker knows to be published, and its digest.
fn newest_published(worker: &Peer<'_>) -> Option<(i64, Vec<u8>)> {
    let file = worker.disk().join("ledger.sqlite");
    let ledger =
        rusqlite::Connection::open_with_flags(file, rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY)
            .ok()?;
    let newest = "SELECT sequence, digest FROM rows WHERE sequence = (SELECT max(sequence) FROM outbox WHERE published_at IS NOT NULL)";
    ledger
        .query_row(newest, [], |row| Ok((row.get(0)?, row.get(1)?)))
        .ok()
}

/// A witness that loses its newest claim once, between two answers, until a claim is made again.
struct LosesOne {
    inner: Box<dyn Witness + Send>,
    accepted: Option<WitnessClaim>,
    /// What it shows in the place of that.
    cut: Option<Option<WitnessClaim>>,
    remembered: Option<Head>,
    stop: StopRequest,
}

impl Witness for LosesOne {
    fn read(&mut self) -> Result<Option<WitnessClaim>, witness::WitnessError> {
        let newest = self.inner.read()?;
        if let Some(cut) = self.cut {
            return Ok(cut);
        }
        let before = self.accepted;
        let now = newest.map_or(0, |claim| claim.head.sequence);
        self.accepted = newest;
        match before {
            Some(claim) if now >= 4 && claim.head.sequence < now && self.remembered.is_none() => {
                (self.cut, self.remembered) = (Some(before), newest.map(|claim| claim.head));
                Ok(before)
            }
            _ => Ok(newest),
        }
    }

    fn identity(&mut self) -> Result<String, witness::WitnessError> {
        self.inner.identity()
    }

    fn append(&mut self, claim: &WitnessClaim) -> Result<(), witness::WitnessError> {
        if self.cut.take().is_some() {
            self.stop.request_stop();
        }
        self.inner.append(claim)
    }

    fn remembered(&self) -> Option<Head> {
        self.remembered
    }
}

#[test]
fn a_cut_that_only_the_reader_of_the_witness_sees_is_told() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let setup = ticking(&servers, false);
    let metrics = run_inside(&setup, |stop, components| {
        let inner = components.witness;
        let witness = LosesOne {
            inner,
            accepted: None,
            cut: None,
            remembered: None,
            stop: stop.clone(),
        };
        Components {
            witness: Box::new(witness),
            ..components
        }
    });
    assert_eq!(metrics.witness_lost_claims.get(), 1);
}

/// Runs a worker with other components until one of them asks it to end.
fn run_inside(
    setup: &Setup,
    changed: impl FnOnce(&StopRequest, Components) -> Components,
) -> Metrics {
    let settings = WorkerSettings::load(&setup.configuration()).expect("a sound configuration");
    let plan = settings
        .plan(|release| noise_bands(release, &settings.ledger.path), false)
        .expect("a plan");
    let health = Health::default();
    let stop = StopRequest::default();
    let components = Components::open(&settings)
        .map_err(|error| error.failure)
        .expect("the components open");
    let components = changed(&stop, components);
    let metrics = Metrics::new(MetricsDetail::Safe, "setup", "pure epsilon", "0").expect("metrics");
    let worker = Worker {
        plan: &plan,
        readers: components.readers,
        ledger: components.ledger,
        witness: components.witness,
        sink: components.sink,
        generators: Box::new(Generator::from_entropy),
        metrics: metrics.clone(),
        health: &health,
        stop,
    };
    worker.run_alone().expect("it is told to end");
    metrics
}

/// A sink whose topic was emptied, and that then fails until it has been asked a few times.
struct Emptied {
    inner: Box<dyn Sink + Send>,
    servers: String,
    topic: String,
    published: usize,
    failed: usize,
    stop: StopRequest,
}

impl Sink for Emptied {
    fn publish(&mut self, paid: &[Paid]) -> Result<(), Unpublished> {
        if self.published < WINDOWS {
            self.published += 1;
            return self.inner.publish(paid);
        }
        if self.failed == 0 {
            empty(&self.servers, &self.topic);
        }
        self.failed += 1;
        if self.failed == 4 {
            self.stop.request_stop();
        }
        let servers = self.servers.clone();
        let why = "for now".to_owned();
        Err(Unpublished {
            durable: 0,
            error: bernstream_kafka::ClusterError::Unavailable { servers, why }.into(),
        })
    }

    fn read_tail(
        &mut self,
        newest: &[PublishedMessage],
    ) -> Result<Option<OutputTail>, sink::SinkError> {
        self.inner.read_tail(newest)
    }
}

/// Deletes what is on a topic of one partition, as its retention does.
fn empty(servers: &str, topic: &str) {
    let admin: AdminClient<DefaultClientContext> = kafka::at(servers)
        .client_config()
        .unwrap()
        .create()
        .unwrap();
    let mut all = TopicPartitionList::new();
    all.add_partition_offset(topic, 0, Offset::End).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime
        .block_on(admin.delete_records(&all, &AdminOptions::new()))
        .unwrap();
}

#[test]
fn that_nothing_of_a_key_is_left_is_told_once() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let setup = ticking(&servers, false);
    let file = fs::File::create(setup.log()).expect("a log");
    let log = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(Mutex::new(file))
        .finish();
    tracing::subscriber::with_default(log, || {
        run_inside(&setup, |stop, components| {
            let inner = components.sink;
            let stop = stop.clone();
            let topic = setup.output.clone();
            let sink = Emptied {
                inner,
                servers: servers.clone(),
                topic,
                published: 0,
                failed: 0,
                stop,
            };
            Components {
                sink: Box::new(sink),
                ..components
            }
        });
    });
    let said = setup.read_log();
    assert_eq!(
        said.matches("nothing is left on the output of 2 keys")
            .count(),
        1,
        "{said}"
    );
}

/// What an output lacks that has the messages of the first `there` rows, each with its keys, of a ledger that has published all of them.
fn lost(servers: &str, rows: &[Vec<String>], there: usize) -> LostMessages {
    let folder = ledger::folder();
    let mut book = Ledger::create(
        &ledger::params(folder.path()),
        ledger::genesis(ledger::at(0), "w", None),
    )
    .unwrap();
    let topic = kafka::fresh_topic(servers, "output", 1, &[]);
    let mut sink = KafkaSink::open(&KafkaSinkParams {
        broker: kafka::at(servers),
        topic,
    })
    .unwrap();
    for (number, keys) in rows.iter().enumerate() {
        let next = ledger::closing(&book, &[], 1, 1);
        let row = PaymentRow {
            id: book.genesis().ledger.clone(),
            sequence: book.next_sequence(),
        };
        let described = |key: &String| {
            let ledger = row.clone();
            let window = next.window;
            ledger::described(1, |about| Description {
                ledger,
                key: Some(key.clone()),
                window,
                published: window.end,
                ..about
            })
        };
        let sealed = keys.iter().map(described).collect();
        book.pay_window(ClosingWindow { sealed, ..next }).unwrap();
        let accepted = *book.head();
        let late = ledger::at(1_000_000_000);
        loop {
            let due = book.due_messages(&accepted, late, usize::MAX).unwrap();
            if due.is_empty() {
                break;
            }
            if number < there {
                sink.publish(&due).unwrap();
            }
            book.mark_published(&due, late).unwrap();
        }
    }
    let tail = sink
        .read_tail(&book.newest_messages().unwrap())
        .unwrap()
        .expect("it may be read");
    tail.lost_messages(&book, book.head()).unwrap()
}

fn keys(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("key {number}")).collect()
}

#[test]
fn nothing_that_an_output_has_lost_counts_as_removed_however_much_it_is() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    // More messages than are looked at in one go: in all of the lost windows together, and in one.
    let many_windows = lost(&servers, &vec![keys(40); 60], 30);
    assert_eq!(
        (
            many_windows.kept.len(),
            many_windows.gone,
            many_windows.unknown
        ),
        (30 * 40, 0, 0)
    );
    let many_keys = lost(&servers, &vec![keys(1500); 2], 1);
    assert_eq!(
        (many_keys.kept.len(), many_keys.gone, many_keys.unknown),
        (1500, 0, 0)
    );
    // One key has come only at first, and again at last.
    let mut rows = vec![keys(100); 13];
    rows.first_mut()
        .into_iter()
        .for_each(|row| row.push("rare".to_owned()));
    rows.last_mut()
        .into_iter()
        .for_each(|row| row.push("rare".to_owned()));
    let rare = lost(&servers, &rows, 12);
    assert_eq!((rare.kept.len(), rare.gone, rare.unknown), (101, 0, 0));
    let none = lost(&servers, &vec![keys(1500); 2], 2);
    assert_eq!((none.kept.len(), none.gone, none.unknown), (0, 0, 0));
}

mod long {
    use super::*;

    #[test]
    fn what_the_output_has_lost_at_its_end_is_sent_again_or_named() {
        let Some(_) = kafka::broker() else { return };
        for is_kept in [true, false] {
            let own = kafka::Own::start();
            let setup = ticking(&own.servers, false);
            if !is_kept {
                setup.edit("keep_published = \"1h\"", "keep_published = \"1s\"");
            }
            let mut cut = Cut::begun(&own, &setup);
            if is_kept {
                cut.wait_more(WINDOWS);
            } else {
                // The first row has no messages, and the first window stays.
                let is_dropped = || (cut.dropped() >= 3).then_some(());
                wait_for("rows without bytes", || cut.worker.all_log(), is_dropped);
            }
            cut.worker.kill();
            let keeps: &dyn Fn(usize) -> usize = if is_kept { &half } else { &first };
            cut.loses_power(&[(&setup.output, keeps)]);
            assert!(
                one_version(&setup).len() < cut.seen.len(),
                "something is gone"
            );
            let has_verdict =
                || Some(cut.worker.said_by_verify()).filter(|said| said.contains("verified: "));
            let verified = wait_for("a verdict", || cut.worker.said_by_verify(), has_verdict);
            cut.worker.start();
            if is_kept {
                assert!(
                    verified.contains("are missing at the end of the output, which has lost them"),
                    "{verified}"
                );
                wait_for(
                    "what was lost",
                    || cut.worker.all_log(),
                    || (one_version(&setup).len() > cut.seen.len()).then_some(()),
                );
                cut.assert_seen();
                assert!(
                    !cut.worker.log().contains("not kept any more"),
                    "{}",
                    cut.worker.log()
                );
            } else {
                assert!(
                    verified.contains("missing at the end of the output, and lost"),
                    "{verified}"
                );
                let is_named = || {
                    cut.worker
                        .metric("output_synopses_lost")
                        .filter(|lost| *lost > 0.0)
                };
                wait_for("the metric", || cut.worker.all_log(), is_named);
                assert!(
                    cut.worker
                        .log()
                        .contains("their bytes are not kept any more"),
                    "{}",
                    cut.worker.log()
                );
                // It compares again, and newer messages are there.
                cut.wait_more(1);
                own.ask("crash");
                own.ask("restart");
                cut.wait_more(WINDOWS);
                let lost = cut.worker.metric("output_synopses_lost");
                assert!(
                    lost.is_some_and(|lost| lost > 0.0),
                    "what is gone stays gone: {lost:?}"
                );
            }
        }
    }

    #[test]
    fn a_worker_without_a_disk_stops_where_the_log_has_lost_the_rows_too() {
        let Some(_) = kafka::broker() else { return };
        let own = kafka::Own::start();
        let setup = ticking(&own.servers, true);
        let mut cut = Cut::begun(&own, &setup);
        cut.worker.kill();
        cut.loses_power(&[(&setup.witness, &two), (&log_topic(&setup), &half)]);
        cut.lose_disk();
        cut.worker.start();
        cut.stops("the witness has lost claims, and nobody here has their rows");
    }

    #[test]
    fn a_disk_that_survives_claims_again_what_it_has() {
        let Some(_) = kafka::broker() else { return };
        for has_log in [true, false] {
            let own = kafka::Own::start();
            let setup = ticking(&own.servers, has_log);
            let mut cut = Cut::begun(&own, &setup);
            cut.worker.kill();
            cut.loses_power(&[(&setup.witness, &all_but_two)]);
            cut.worker.start();
            cut.goes_on();
            cut.tells();
        }
    }

    #[test]
    fn a_worker_that_lacks_the_rows_waits_for_the_one_that_has_them() {
        let Some(_) = kafka::broker() else { return };
        let own = kafka::Own::start();
        let setup = ticking(&own.servers, true);
        let mut cut = Cut::begun(&own, &setup);
        cut.worker.kill();
        cut.loses_power(&[(&setup.witness, &two), (&log_topic(&setup), &half)]);
        let mut second = Peer::new(&setup, "second", None);
        second.start();
        let waits = || {
            second
                .log()
                .contains("waiting for such a worker for a minute")
                .then_some(())
        };
        wait_for("the words", || second.log(), waits);
        assert_eq!(
            (
                second.metric("witness_lost_claims"),
                second.get("/readyz").0
            ),
            (Some(1.0), 503)
        );
        assert_eq!(one_version(&setup), cut.seen, "nothing is drawn");
        cut.worker.start();
        cut.goes_on();
        second.wait_acts(false);
        second.verify();
    }

    #[test]
    fn a_disk_whose_published_rows_were_overruled_is_left_as_it_is() {
        let Some(_) = kafka::broker() else { return };
        let own = kafka::Own::start();
        let setup = ticking(&own.servers, true);
        let mut cut = Cut::begun(&own, &setup);
        cut.worker.kill();
        // Nothing that is left shows these rows to a worker without that disk.
        cut.loses_power(&[
            (&setup.witness, &two),
            (&log_topic(&setup), &half),
            (&setup.output, &first),
        ]);
        let before = newest_published(&cut.worker).expect("its rows");
        let mut second = Peer::new(&setup, "second", None).started();
        let is_further = || newest_published(&second).filter(|newest| newest.0 > before.0);
        wait_for("other rows", || second.all_log(), is_further);
        second.kill();
        cut.worker.start();
        let log = || cut.worker.log();
        let words =
            "is not a row of the ledger that the witness follows now: the witness has lost claims";
        wait_for("the end", log, || log().contains(words).then_some(()));
        assert_eq!(newest_published(&cut.worker), Some(before));
    }

    #[test]
    fn of_two_workers_that_start_at_once_the_one_with_a_disk_is_not_overruled_by_the_one_without() {
        let Some(_) = kafka::broker() else { return };
        let own = kafka::Own::start();
        let setup = ticking(&own.servers, true);
        let mut cut = Cut::begun(&own, &setup);
        let mut second = Peer::new(&setup, "second", None);
        cut.worker.kill();
        cut.loses_power(&[(&setup.witness, &all_but_two)]);
        second.start();
        cut.worker.start();
        cut.goes_on();
        second.verify();
        assert!((cut.worker.log() + &second.log()).contains(TOLD));
    }

    #[test]
    fn a_worker_without_a_disk_claims_again_what_the_log_has() {
        let Some(_) = kafka::broker() else { return };
        let own = kafka::Own::start();
        let setup = ticking(&own.servers, true);
        let mut cut = Cut::begun(&own, &setup);
        cut.worker.kill();
        cut.loses_power(&[(&setup.witness, &all_but_two)]);
        cut.lose_disk();
        cut.worker.start();
        cut.goes_on();
        cut.tells();
    }

    #[test]
    fn an_older_copy_of_a_disk_stops_where_the_output_is_ahead_of_the_witness() {
        let Some(_) = kafka::broker() else { return };
        let own = kafka::Own::start();
        let setup = ticking(&own.servers, false);
        let mut cut = Cut::begun(&own, &setup);
        cut.worker.kill();
        let old = setup.folder.path().join("old");
        copy(&cut.worker.disk(), &old);
        let claims = cut.claims();
        cut.worker.start();
        cut.wait_more(WINDOWS);
        cut.worker.kill();
        cut.loses_power(&[(&setup.witness, &|_| claims - 1)]);
        cut.lose_disk();
        fs::rename(&old, cut.worker.disk()).expect("the old copy");
        cut.worker.start();
        cut.stops("the witness has lost claims, and nobody here has their rows");
    }

    #[test]
    fn an_error_about_a_row_that_somebody_else_may_have_written_names_its_partition() {
        let Some(_) = kafka::broker() else { return };
        let own = kafka::Own::start();
        let setup = ticking(&own.servers, false);
        let mut cut = Cut::begun(&own, &setup);
        cut.worker.kill();
        let newest = setup.published().pop().expect("a message");
        let synopsis = Synopsis::decode_message(&newest.payload).expect("a synopsis");
        let row = PaymentRow {
            sequence: 1_000_000,
            ..synopsis.description().ledger.clone()
        };
        // Of this pipeline: that of another one is refused before.
        let pipeline = "setup".to_owned();
        let key = Some("stray".to_owned());
        let stray = ledger::described(1, |about| Description {
            pipeline,
            ledger: row,
            key,
            ..about
        });
        let record = BaseRecord::to(&setup.output)
            .key("stray")
            .payload(&stray.encoded().bytes);
        let producer = setup.producer(&[]);
        producer
            .send(record)
            .map_err(|(error, _)| error)
            .expect("it is queued");
        producer.flush(PATIENCE).expect("the broker takes it");
        cut.seen = one_version(&setup);
        cut.worker.start();
        cut.stops(&format!(
            "row 1000000 of this ledger was published (a message in partition 0 of topic '{}' says so)",
            setup.output
        ));
    }
}
