//! What others write to the topic of absorbers, and copies that differ: the worker takes none of it, and waits for nobody.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use bernstream_config::{InputParams, WorkerSettings};
use bernstream_kafka::producer::{Producer, ProducerRecord};
use bernstream_kafka::source::kafka::PartitionRanges;
use bernstream_ledger::sealing::KeyFileSecret;
use bernstream_release::window::VERSION;
use bernstream_synopsis::Positions;
use bernstream_synopsis::grid::Span;
use bernstream_worker::metrics::{Metrics, MetricsDetail};
use bernstream_worker::scale::{
    PartialPiece, PartitionAbsorber, PartitionPartial, ScaleKeys, ScaleMessage, ScaleParams,
    ScaleTopic, WindowAnnouncement, split_into_pieces,
};
use tracing_subscriber::fmt::MakeWriter;

use crate::absorbers::{Scene, absorber, with_scale};
use crate::harness::{PATIENCE, kafka};
use crate::readers::{PARTITIONS, configuration, published_by, published_with, send};

/// Absorbers of another configuration, with another key, and writers with and without the key.
#[test]
fn what_others_write_to_the_topic_changes_nothing() {
    let Some(scene) = Scene::new() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let text = scene.configuration(folder.path(), "2s");
    // Another cap: it would change every window.
    let other = text.replace("max_records_per_window = 3", "max_records_per_window = 2");
    assert_ne!(other, text);
    fs::write(folder.path().join("bernstream.toml"), other).expect("it is written");
    let foreign = absorber(folder.path(), None);
    let thief = tempfile::tempdir().expect("a folder");
    fs::write(thief.path().join("key"), [8; 32]).expect("it is written");
    let with_other_key = text.replace(
        &format!("{}/key", folder.path().display()),
        &format!("{}/key", thief.path().display()),
    );
    fs::write(thief.path().join("bernstream.toml"), with_other_key).expect("it is written");
    let stranger = absorber(thief.path(), None);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let forger = scope.spawn(|| forge(&scene, &text, &is_over));
        let published = published_by(&text, folder.path(), 1);
        is_over.store(true, Ordering::Relaxed);
        assert!(published == scene.expected);
        assert!(
            forger.join().expect("it ends") > 0,
            "it has answered announcements"
        );
    });
    drop((foreign, stranger));
}

/// Somebody sends all partitions of a window, and when the next one is announced nothing of it, but other copies of the one that is
/// closed: the worker does not wait for a partition that nobody reads, and tells of each once.
#[test]
fn a_copy_that_differs_from_one_of_a_closed_window_holds_up_nothing() {
    let Some(scene) = Scene::new() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let text = scene.configuration(folder.path(), "3s");
    let settings = WorkerSettings::parse(&text, "f").expect("a sound configuration");
    let InputParams::Kafka(input) = &settings.input else {
        panic!("records come from Kafka")
    };
    let scale = settings.scale.clone().expect("it has one");
    let broker = kafka::at(&scene.servers);
    let keys = ScaleKeys::new(&KeyFileSecret::new([7; 32]));
    let mut topic = ScaleTopic::of_absorber(&scale, &broker, &scene.topic, keys).expect("it opens");
    let stretches =
        PartitionRanges::open(input.clone(), settings.columns.clone()).expect("it opens");
    let forms = settings.release_inputs();
    let mut absorbing = PartitionAbsorber::new(stretches, settings.windows.clone(), forms);
    let is_over = AtomicBool::new(false);
    let late = AtomicUsize::new(0);
    let told = Log::default();
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut first: Option<Arc<WindowAnnouncement>> = None;
            let mut is_told: bool = false;
            while !is_over.load(Ordering::Relaxed) {
                if let Some(ScaleMessage::Announcement { announcement, .. }) =
                    topic.next_message(Duration::from_millis(20), soon())
                {
                    match &first {
                        None => {
                            let asked = Arc::new(announcement);
                            (0..PARTITIONS)
                                .for_each(|partition| absorbing.ask_instead(&asked, partition));
                            first = Some(asked);
                        }
                        Some(closed) if closed.window != announcement.window && !is_told => {
                            for partition in 0..PARTITIONS {
                                let name = closed.partial_name(partition).expect("announced");
                                topic.send_partial(
                                    &PartitionPartial {
                                        name,
                                        partition,
                                        bytes: vec![0; 9],
                                    },
                                    "liar",
                                    &|| (),
                                );
                                late.fetch_add(1, Ordering::Relaxed);
                            }
                            is_told = true;
                        }
                        Some(_) => {}
                    }
                }
                let step = absorbing
                    .read_step(Duration::from_millis(20))
                    .expect("it reads");
                step.finished
                    .iter()
                    .for_each(|partial| topic.send_partial(partial, "honest", &|| ()));
            }
        });
        let log = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_writer(told.clone())
            .finish();
        let published =
            tracing::subscriber::with_default(log, || published_by(&text, folder.path(), 1));
        is_over.store(true, Ordering::Relaxed);
        assert!(published == scene.expected);
    });
    assert_eq!(late.into_inner(), PARTITIONS.unsigned_abs() as usize);
    let told = String::from_utf8(told.0.lock().expect("the log").clone()).expect("text");
    for partition in 0..PARTITIONS {
        let alarm = format!("two copies of the partial of partition {partition} differ");
        assert_eq!(told.matches(&alarm).count(), 1, "{told}");
    }
}

/// How long absorbers take, and whether their partials have room, shows how much was recorded: the log of a worker whose metrics do not
/// show it says nothing of it either.
#[test]
fn what_follows_from_the_records_is_told_to_operators_only() {
    let Some(scene) = Scene::new() else { return };
    for (detail, is_told) in [
        (MetricsDetail::Safe, false),
        (MetricsDetail::Operator, true),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let text = scene.configuration(folder.path(), "100ms");
        let metrics = Metrics::new(detail, "told", "pure epsilon", "").expect("metrics");
        let told = Log::default();
        let log = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_writer(told.clone())
            .finish();
        tracing::subscriber::with_default(log, || {
            published_with(&text, folder.path(), 1, &metrics)
        });
        let told = String::from_utf8(told.0.lock().expect("the log").clone()).expect("text");
        assert!(told.contains("reading the input"), "{told}");
        assert_eq!(
            told.contains("no absorber has sent these partitions in time"),
            is_told,
            "{told}"
        );
    }
}

/// What is logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("the log").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Log;

    fn make_writer(&self) -> Log {
        self.clone()
    }
}

/// Of announcements that name another version, configuration, input topic or cutoff nothing is sent: it would bear the name of what was
/// asked and be something else. All others are answered, whoever announces.
#[test]
fn an_absorber_answers_all_that_it_can_read_and_nothing_else() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let like = send(&servers);
    let folder = tempfile::tempdir().expect("a folder");
    let text = with_scale(
        &configuration(&servers, &like, folder.path(), 1),
        folder.path(),
        "1s",
    );
    fs::write(folder.path().join("bernstream.toml"), &text).expect("it is written");
    let settings = WorkerSettings::parse(&text, "f").expect("a sound configuration");
    let InputParams::Kafka(input) = &settings.input else {
        panic!("records come from Kafka")
    };
    let scale = settings.scale.clone().expect("it has one");
    let broker = kafka::at(&servers);
    let keys = ScaleKeys::new(&KeyFileSecret::new([7; 32]));
    let mut topic = ScaleTopic::of_worker(&scale, &broker, &like, keys).expect("it opens");
    let rules = &settings.windows;
    let window = rules.grid.span_of(rules.grid.origin());
    let second = Duration::from_secs(1);
    let apart = Span {
        start: window.start.plus(second),
        end: window.end.plus(second),
    };
    let behind = rules.grid.span_of(rules.end.expect("it ends"));
    let asked = WindowAnnouncement {
        version: VERSION,
        settings: settings.reading_digest(),
        choices: settings.auto_choices(),
        topic: PartitionRanges::open(input.clone(), settings.columns.clone())
            .expect("it opens")
            .id()
            .to_owned(),
        window,
        cutoff: rules.window_cutoff(window, None),
        first: window.start,
        backfill_until: None,
        ends: Positions((0..PARTITIONS).map(|partition| (partition, 1)).collect()),
        past: Positions::default(),
    };
    let other = "another".to_owned();
    let others = [
        WindowAnnouncement {
            version: VERSION + 1,
            ..asked.clone()
        },
        WindowAnnouncement {
            settings: other.clone(),
            ..asked.clone()
        },
        WindowAnnouncement {
            topic: other,
            ..asked.clone()
        },
        WindowAnnouncement {
            cutoff: asked.cutoff.plus(second),
            ..asked.clone()
        },
        // One that is no window of the grid, and one behind the end.
        WindowAnnouncement {
            window: apart,
            cutoff: rules.window_cutoff(apart, None),
            ..asked.clone()
        },
        WindowAnnouncement {
            window: behind,
            cutoff: rules.window_cutoff(behind, None),
            ..asked.clone()
        },
    ];
    let announced: Vec<_> = others.into_iter().chain([asked.clone()]).collect();
    let running = absorber(folder.path(), None);
    // A second worker asks the same, such as a standby: it is answered as well.
    let mut copies = BTreeSet::new();
    for worker in 0..2 {
        let ids: Vec<_> = announced
            .iter()
            .map(|_| ScaleTopic::new_id().expect("an id"))
            .collect();
        let mut found = BTreeSet::new();
        let started = Instant::now();
        while found.len() < PARTITIONS.unsigned_abs() as usize {
            assert!(
                started.elapsed() < PATIENCE,
                "worker {worker} has only {found:?}"
            );
            // Again and again, as workers do: it may have no partition yet.
            ids.iter()
                .zip(&announced)
                .for_each(|(id, announcement)| topic.send_announcement(id, announcement));
            let until = Instant::now() + Duration::from_secs(1);
            while Instant::now() < until {
                if let Some(ScaleMessage::Piece(piece)) =
                    topic.next_message(Duration::from_millis(50), soon())
                {
                    assert_eq!(Some(piece.name), asked.partial_name(piece.partition));
                    found.extend(copies.insert(piece.copy).then_some(piece.partition));
                }
            }
        }
    }
    drop(running);
}

/// Whoever may write to the topic keeps nobody busy for longer than a moment at a time.
#[test]
fn what_nobody_can_open_is_passed_over_a_few_at_a_time() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let broker = kafka::at(&servers);
    let like = kafka::fresh_input(&servers, 1);
    let params = ScaleParams {
        topic: kafka::fresh_name("flooded"),
        key_file: "key".into(),
        group: String::new(),
        deadline: Duration::ZERO,
        most: 0,
        is_for_operators: false,
    };
    let keys = ScaleKeys::new(&KeyFileSecret::new([7; 32]));
    let mut topic = ScaleTopic::of_worker(&params, &broker, &like, keys.clone()).expect("it opens");
    let mut producer = Producer::new(broker, params.topic);
    let mut send = |payload: &[u8]| {
        producer
            .send(ProducerRecord {
                partition: Some(1),
                payload,
                ..ProducerRecord::default()
            })
            .expect("it is sent");
    };
    (0..100).for_each(|_| send(b"rubbish"));
    let partial = PartitionPartial {
        name: "0".repeat(64),
        partition: 0,
        bytes: vec![1],
    };
    let message = ScaleMessage::Piece(split_into_pieces(&partial).expect("pieces").remove(0));
    send(&keys.seal_message(&message).expect("sealed"));
    for rubbish in 0..100 {
        assert_eq!(
            topic.next_message(PATIENCE, Instant::now()),
            None,
            "{rubbish}"
        );
    }
    assert_eq!(topic.next_message(PATIENCE, Instant::now()), Some(message));
}

/// For whoever reads the topic and does nothing else meanwhile.
pub fn soon() -> Instant {
    Instant::now() + Duration::from_millis(50)
}

/// Answers every announcement with rubbish until it is over: without the key, and with it; returns how many it has answered. Whoever has
/// the key is believed where nobody contradicts, and so the first of two lies never arrives whole: when the second does, it is contradicted
/// already, however slowly either is read.
fn forge(scene: &Scene, text: &str, is_over: &AtomicBool) -> usize {
    let settings = WorkerSettings::parse(text, "f").expect("a sound configuration");
    let scale = settings.scale.expect("it has one");
    let broker = kafka::at(&scene.servers);
    let keys = ScaleKeys::new(&KeyFileSecret::new([7; 32]));
    let mut topic =
        ScaleTopic::of_absorber(&scale, &broker, &scene.topic, keys.clone()).expect("it opens");
    let mut producer = Producer::new(broker.clone(), scale.topic.clone());
    let mut answered = 0;
    while !is_over.load(Ordering::Relaxed) {
        let Some(ScaleMessage::Announcement { announcement, .. }) =
            topic.next_message(Duration::from_millis(50), soon())
        else {
            continue;
        };
        for partition in 0..PARTITIONS {
            let lie = |bytes: &[u8]| -> Vec<PartialPiece> {
                let name = announcement.partial_name(partition).expect("announced");
                split_into_pieces(&PartitionPartial {
                    name,
                    partition,
                    bytes: bytes.to_vec(),
                })
                .expect("pieces")
            };
            // The whole one is a partial that could be taken: nothing was recorded.
            let mut half = lie(&[0]);
            let whole = lie(&[0; 9]);
            half.iter_mut().for_each(|piece| piece.of += 1);
            for piece in [half, whole].concat() {
                let sealed = keys
                    .seal_message(&ScaleMessage::Piece(piece))
                    .expect("sealed");
                let mut changed = sealed.clone();
                changed[60] ^= 1;
                for payload in [
                    &sealed,
                    &changed,
                    &sealed[..sealed.len() / 2].to_vec(),
                    &Vec::new(),
                ] {
                    // All in one partition of the topic: both lies of one partition before the next one's.
                    producer
                        .send(ProducerRecord {
                            partition: Some(1),
                            payload,
                            ..ProducerRecord::default()
                        })
                        .expect("it is sent");
                }
            }
        }
        answered += 1;
    }
    answered
}
