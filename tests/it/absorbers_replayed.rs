//! Who may write to the topic of absorbers, without the key, can write there again what others have written: it keeps nobody busy. And who
//! has the key, but is no absorber, is found out where what it sends could not be read of any record.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bernstream_config::{InputParams, WorkerSettings};
use bernstream_kafka::producer::{Producer, ProducerRecord};
use bernstream_kafka::source::kafka::PartitionRanges;
use bernstream_ledger::sealing::KeyFileSecret;
use bernstream_release::window::VERSION;
use bernstream_synopsis::Positions;
use bernstream_synopsis::clock::Timestamp;
use bernstream_worker::metrics::{Metrics, MetricsDetail};
use bernstream_worker::scale::{
    AnnouncementHead, PartialPiece, PartitionAbsorber, PartitionPartial, ScaleKeys, ScaleMessage,
    ScaleTopic, WindowAnnouncement, split_into_pieces,
};
use rdkafka::consumer::Consumer;

use crate::absorbers::{NEVER, Scene, absorber, with_scale};
use crate::absorbers_forged::soon;
use crate::absorbers_partials::{Records, add_partitions, answer};
use crate::harness::{PATIENCE, kafka};
use crate::readers::{
    PARTITIONS, WINDOWS, configuration, origin, published_by, published_with, send,
};

/// Announcements of long ago, which an absorber that has started since has never seen, and those that it has answered: thousands of them
/// stand before a new one, and it answers that and nothing else.
#[test]
fn a_flood_of_old_announcements_does_not_delay_a_new_one() {
    const OLD: u64 = 2_000;
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
    let mut topic = ScaleTopic::of_worker(&scale, &broker, &like, keys.clone()).expect("it opens");
    let id = PartitionRanges::open(input.clone(), settings.columns.clone())
        .expect("it opens")
        .id()
        .to_owned();
    // Each has a name of its own: a later ledger would have asked for it.
    let announcement = |number: u64| {
        let rules = &settings.windows;
        let window = rules.grid.span_of(rules.grid.origin());
        WindowAnnouncement {
            version: VERSION,
            settings: settings.reading_digest(),
            choices: settings.auto_choices(),
            topic: id.clone(),
            window,
            cutoff: rules.window_cutoff(window, None),
            first: window.start.minus(Duration::from_secs(60 * number)),
            backfill_until: None,
            ends: Positions((0..PARTITIONS).map(|partition| (partition, 1)).collect()),
            past: Positions::default(),
        }
    };
    let sealed = |number: u64, sent: Timestamp| {
        let head = AnnouncementHead {
            id: ScaleTopic::new_id().expect("an id"),
            sent,
        };
        keys.seal_message(&ScaleMessage::Announcement {
            head,
            read: 9,
            announcement: announcement(number),
        })
        .expect("sealed")
    };
    let mut producer = Producer::new(broker, scale.topic.clone());
    let mut write = |payload: &[u8]| {
        producer
            .send(ProducerRecord {
                partition: Some(0),
                payload,
                ..ProducerRecord::default()
            })
            .expect("it is sent");
    };
    let names = |number: u64| {
        (0..PARTITIONS)
            .map(|p| announcement(number).partial_name(p).expect("announced"))
            .collect::<BTreeSet<_>>()
    };
    let running = absorber(folder.path(), None);
    // Until the group has given it its partitions a worker repeats what it asks.
    let first = AnnouncementHead {
        id: ScaleTopic::new_id().expect("an id"),
        sent: Timestamp::now(),
    };
    let started = Instant::now();
    loop {
        let head = AnnouncementHead {
            sent: Timestamp::now(),
            ..first.clone()
        };
        write(
            &keys
                .seal_message(&ScaleMessage::Announcement {
                    head,
                    read: 9,
                    announcement: announcement(0),
                })
                .expect("sealed"),
        );
        let until = Instant::now() + Duration::from_secs(1);
        let has_answered =
            std::iter::from_fn(|| (Instant::now() < until).then_some(())).any(|()| {
                matches!(
                    topic.next_message(Duration::from_millis(50), soon()),
                    Some(ScaleMessage::Piece(_))
                )
            });
        if has_answered {
            break;
        }
        assert!(started.elapsed() < PATIENCE, "it answers nothing");
    }
    // More than the partials that can come of the announcement before.
    let mut answered = Vec::new();
    for number in 1..=10 {
        let one = sealed(number, Timestamp::now());
        write(&one);
        assert!(
            topic_answers(&mut topic, &names(number)).is_superset(&names(number)),
            "{number}"
        );
        answered.push(one);
    }
    let long_ago = Timestamp::now().minus(Duration::from_secs(600));
    let old: Vec<Vec<u8>> = (0..OLD)
        .map(|number| sealed(100 + number, long_ago))
        .collect();
    for (one, another) in old.iter().zip(answered.iter().cycle()) {
        write(one);
        write(another);
    }
    write(&sealed(50, Timestamp::now()));
    let found = topic_answers(&mut topic, &names(50));
    assert!(
        found == names(50),
        "{} partials, {} of them asked for",
        found.len(),
        names(50).len()
    );
    drop(running);
}

/// What is answered until all of this is.
fn topic_answers(topic: &mut ScaleTopic, expected: &BTreeSet<String>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let started = Instant::now();
    while !found.is_superset(expected) && started.elapsed() < PATIENCE {
        if let Some(ScaleMessage::Piece(piece)) =
            topic.next_message(Duration::from_millis(50), soon())
        {
            found.insert(piece.name);
        }
    }
    found
}

/// Whoever has the key sends a record that lies outside of the domain: the worker takes none of it, reads the partition itself at once, and
/// publishes what it would have published.
#[test]
fn a_partial_that_no_reader_makes_is_refused_and_read_here() {
    let Some(scene) = Scene::new() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let text = scene.configuration(folder.path(), NEVER);
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
    let mut absorbing = PartitionAbsorber::new(
        stretches,
        settings.windows.clone(),
        settings.release_inputs(),
    );
    let is_over = AtomicBool::new(false);
    let metrics =
        Metrics::new(MetricsDetail::Operator, "forged", "pure epsilon", "").expect("metrics");
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut is_forged = false;
            while !is_over.load(Ordering::Relaxed) {
                if let Some(ScaleMessage::Announcement { announcement, .. }) =
                    topic.next_message(Duration::from_millis(20), soon())
                {
                    let asked = Arc::new(announcement);
                    let honest = i32::from(!is_forged);
                    (honest..PARTITIONS)
                        .for_each(|partition| absorbing.ask_instead(&asked, partition));
                    if !std::mem::replace(&mut is_forged, true) {
                        let name = asked.partial_name(0).expect("announced");
                        let bytes = outside();
                        topic.send_partial(
                            &PartitionPartial {
                                name,
                                partition: 0,
                                bytes,
                            },
                            "liar",
                            &|| (),
                        );
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
        let published = published_with(&text, folder.path(), 1, &metrics);
        is_over.store(true, Ordering::Relaxed);
        assert!(published == scene.expected);
    });
    let shown = metrics.render_text().expect("metrics");
    assert!(
        shown.contains(r#"bernstream_partials_total{absorber="liar",fate="refused""#),
        "{shown}"
    );
}

/// An absorber that gets no more through than the last piece of its partials, but for one partition: after the first window the worker reads
/// the others all the time, and waits for them no more.
#[test]
fn the_last_piece_alone_is_no_partial() {
    let Some(scene) = Scene::new() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let text = scene.configuration(folder.path(), "8s");
    let settings = WorkerSettings::parse(&text, "f").expect("a sound configuration");
    let scale = settings.scale.expect("it has one");
    let broker = kafka::at(&scene.servers);
    let keys = ScaleKeys::new(&KeyFileSecret::new([7; 32]));
    let mut topic =
        ScaleTopic::of_absorber(&scale, &broker, &scene.topic, keys.clone()).expect("it opens");
    let input = Records::new(&scene.servers, &scene.topic);
    let whole: BTreeMap<_, _> = (0..PARTITIONS)
        .flat_map(|partition| (0..WINDOWS.unsigned_abs()).map(move |window| (window, partition)))
        .map(|(window, partition)| {
            let asked = input.announced(window, partition, input.high(partition));
            (
                (asked.window.start, partition),
                answer(&mut input.open(), &asked, partition),
            )
        })
        .collect();
    let mut producer = Producer::new(broker, scale.topic.clone());
    let is_over = AtomicBool::new(false);
    let metrics =
        Metrics::new(MetricsDetail::Operator, "last", "pure epsilon", "").expect("metrics");
    let mut read_here = Vec::new();
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let Some(ScaleMessage::Announcement { announcement, .. }) =
                    topic.next_message(Duration::from_millis(20), soon())
                else {
                    continue;
                };
                let mut send = |partition: i32, is_whole: bool| {
                    let bytes = whole[&(announcement.window.start, partition)].clone();
                    let name = announcement.partial_name(partition).expect("announced");
                    let piece = split_into_pieces(&PartitionPartial {
                        name,
                        partition,
                        bytes,
                    })
                    .expect("pieces")
                    .remove(0);
                    let piece = if is_whole {
                        piece
                    } else {
                        PartialPiece {
                            number: 1,
                            of: 2,
                            ..piece
                        }
                    };
                    let payload = keys
                        .seal_message(&ScaleMessage::Piece(piece))
                        .expect("sealed");
                    let record = ProducerRecord {
                        partition: Some(1),
                        payload: &payload,
                        ..ProducerRecord::default()
                    };
                    producer.send(record).expect("it is sent");
                };
                (1..PARTITIONS).for_each(|partition| send(partition, false));
                // The window is not over before this one is there.
                thread::sleep(Duration::from_millis(500));
                read_here.push(
                    metrics
                        .operator
                        .as_ref()
                        .expect("its level")
                        .read_here
                        .get(),
                );
                send(0, true);
            }
        });
        let published = published_with(&text, folder.path(), 1, &metrics);
        is_over.store(true, Ordering::Relaxed);
        assert!(published == scene.expected);
    });
    let others = i64::from(PARTITIONS) - 1;
    assert_eq!(read_here, [0, others, others, others]);
}

/// The partial of the first of three releases with a record of one user, in the first second, far beyond the grid of its density.
fn outside() -> Vec<u8> {
    let written = |micros: i64| {
        let mut left = micros.unsigned_abs() << 1;
        let mut bytes = Vec::new();
        while left >= 0x80 {
            bytes.push(left as u8 | 0x80);
            left >>= 7;
        }
        bytes.push(left as u8);
        bytes
    };
    let mut bytes = vec![1];
    bytes.extend(written(origin().micros() + 1_000_000));
    // Of the first key, at 2^28 - 1 on the axis, without a label, of the first user.
    bytes.extend([0, 0xff, 0xff, 0xff, 0x7f, 0, 0, 0, 1]);
    bytes.push(1);
    bytes.extend(written(origin().micros()));
    bytes.extend([1, b'u', 0]);
    bytes.extend([0; 6]);
    bytes
}

/// Partitions are added to the topic of absorbers while a worker runs: absorbers that start then use only those that it reads.
#[test]
fn partitions_that_are_added_to_the_topic_of_absorbers_lose_nothing() {
    let Some(scene) = Scene::new() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let settings = [("cleanup.policy", "delete"), ("retention.ms", "3600000")];
    let name = kafka::fresh_topic(&scene.servers, "few", 2, &settings);
    let text = scene.configuration(folder.path(), NEVER);
    let made = WorkerSettings::parse(&text, "f")
        .expect("a sound configuration")
        .scale
        .expect("it has one")
        .topic;
    let text = text.replace(
        &format!("topic = \"{made}\""),
        &format!("topic = \"{name}\""),
    );
    fs::write(folder.path().join("bernstream.toml"), &text).expect("it is written");
    let published = thread::scope(|scope| {
        let worker = scope.spawn(|| published_by(&text, folder.path(), 1));
        let client = kafka::at(&scene.servers).consumer(&[]).expect("a client");
        let started = Instant::now();
        while client
            .fetch_watermarks(&name, 0, PATIENCE)
            .expect("an answer")
            .1
            == 0
        {
            assert!(started.elapsed() < PATIENCE, "the worker announces nothing");
            thread::sleep(Duration::from_millis(50));
        }
        add_partitions(&scene.servers, &name, 9);
        // Its leaders may not be known yet.
        thread::sleep(Duration::from_millis(500));
        let running = absorber(folder.path(), None);
        let published = worker.join().expect("it works");
        drop(running);
        published
    });
    assert!(published == scene.expected);
}
