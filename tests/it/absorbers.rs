//! Absorbers: processes that read partitions for a worker. What the worker publishes does not depend on how many of them there are,
//! nor on what becomes of them.
//!
//! Whole workers on a real broker with the noise frozen, and absorbers that are processes of the program. `tests/properties/partials.rs`
//! has what they exchange.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bernstream::config::{Input, Settings};
use bernstream::kafka::producer::{Producer, Record};
use bernstream::kafka::sealing::Secret;
use bernstream::scale::{Absorbing, Announcement, Keys, Message, Partial, Piece, ScaleTopic, pieces};
use bernstream::source::Positions;
use bernstream::source::kafka::Stretches;
use rand::rngs::ChaCha20Rng;
use rand::{RngExt, SeedableRng};

use crate::harness::{PATIENCE, kafka};
use crate::readers::{PARTITIONS, WINDOWS, configuration, published_by, send};

/// Nobody waits for this in a test: whoever needs it to pass fails by the limit of the whole test.
const NEVER: &str = "20m";

/// A process that ends with the test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        self.0.kill().expect("it can be killed");
        self.0.wait().expect("it ends");
    }
}

/// One topic, and what a worker that reads it alone publishes.
struct Scene {
    servers: String,
    topic: String,
    expected: Vec<(String, Vec<u8>)>,
}

impl Scene {
    fn new() -> Option<Self> {
        let servers = kafka::broker()?;
        let topic = send(&servers);
        let folder = tempfile::tempdir().expect("a folder");
        let text = late(&configuration(&servers, &topic, folder.path(), 1));
        let expected = published_by(&text, folder.path(), 1);
        assert_eq!(expected.len(), 6 * WINDOWS as usize);
        Some(Scene { servers, topic, expected })
    }

    /// The configuration of a worker that leaves reading to absorbers for as long as `deadline`, and of the absorbers.
    fn configuration(&self, folder: &Path, deadline: &str) -> String {
        let text = late(&configuration(&self.servers, &self.topic, folder, 1));
        fs::write(folder.join("key"), [7; 32]).expect("it is written");
        let name = kafka::fresh_name("partials");
        format!(
            "{text}\n[scale]\ntopic = \"{name}\"\nkey_file = \"{}/key\"\ngroup = \"{name}\"\ndeadline = \"{deadline}\"\n",
            folder.display()
        )
    }

    fn check(&self, text: &str, folder: &Path, who: &str) {
        assert!(published_by(text, folder, 1) == self.expected, "{who}");
    }
}

/// So late that any deadline is before it.
fn late(text: &str) -> String {
    text.replace("publish_delay = \"300ms\"", "publish_delay = \"30m\"")
}

/// An absorber with the configuration that was written to `folder`.
fn absorber(folder: &Path, member: Option<&str>) -> Process {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bernstream"));
    command.arg("absorb").arg(folder.join("bernstream.toml")).env("RUST_LOG", "info");
    command.args(member.iter().flat_map(|member| ["--member", member]));
    let log = fs::OpenOptions::new().create(true).append(true).open(folder.join("absorbers.log")).expect("a log");
    let error = log.try_clone().expect("the same log");
    Process(command.stdin(Stdio::null()).stdout(log).stderr(error).spawn().expect("it starts"))
}

#[test]
fn what_leaves_does_not_depend_on_the_number_of_absorbers() {
    let Some(scene) = Scene::new() else { return };
    // With none the worker reads everything when the deadline is over. With some it never is.
    for (absorbers, deadline) in [(0, "100ms"), (1, NEVER), (2, NEVER)] {
        let folder = tempfile::tempdir().expect("a folder");
        let text = scene.configuration(folder.path(), deadline);
        fs::write(folder.path().join("bernstream.toml"), &text).expect("it is written");
        let running: Vec<_> = (0..absorbers).map(|_| absorber(folder.path(), None)).collect();
        scene.check(&text, folder.path(), &format!("{absorbers} absorbers"));
        drop(running);
    }
}

#[test]
fn absorbers_that_are_killed_and_come_back_change_nothing() {
    let Some(scene) = Scene::new() else { return };
    for seed in 0..3 {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        let text = scene.configuration(folder, "1s");
        fs::write(folder.join("bernstream.toml"), &text).expect("it is written");
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut random = ChaCha20Rng::seed_from_u64(seed);
                let mut running: Vec<Option<Process>> = vec![None, None, None];
                while !is_over.load(Ordering::Relaxed) {
                    let number = random.random_range(0..running.len());
                    running[number] = match running[number].take() {
                        Some(_killed) => None,
                        None => Some(absorber(folder, Some(&format!("absorber-{number}")))),
                    };
                    thread::sleep(Duration::from_millis(random.random_range(100..900)));
                }
            });
            let published = published_by(&text, folder, 1);
            is_over.store(true, Ordering::Relaxed);
            assert!(published == scene.expected, "seed {seed}");
        });
    }
}

/// A partition that was read far ahead, and beyond an end that is announced then, has the partial of one that was not.
#[test]
fn what_was_read_beyond_an_end_is_read_again() {
    let Some(servers) = kafka::broker() else { return };
    let topic = send(&servers);
    let folder = tempfile::tempdir().expect("a folder");
    let settings = Settings::parse(&configuration(&servers, &topic, folder.path(), 1), "f").expect("a configuration");
    let Input::Kafka(input) = &settings.input else { panic!("records come from Kafka") };
    let open = || {
        let stretches = Stretches::open(input.clone(), settings.columns.clone()).expect("it opens");
        let forms = settings.releases.iter().map(|release| settings.form(release)).collect();
        Absorbing::new(stretches, settings.windows.clone(), forms)
    };
    let announced = |number: i64, end: i64| {
        let window =
            settings.windows.grid.span_of(settings.windows.grid.origin().plus(Duration::from_secs(60 * number as u64)));
        let (cutoff, ends) = (settings.windows.cutoff(window, None), Positions(BTreeMap::from([(0, end)])));
        let (first, topic) = (settings.windows.grid.origin(), String::new());
        Arc::new(Announcement {
            version: 1,
            settings: String::new(),
            topic,
            window,
            cutoff,
            first,
            backfill_until: None,
            ends,
        })
    };
    let answer = |absorbing: &mut Absorbing, asked: &Arc<Announcement>| -> Vec<u8> {
        absorbing.ask(asked, 0);
        loop {
            let step = absorbing.step(Duration::from_millis(50)).expect("it reads");
            if let Some(partial) = step.finished.into_iter().next() {
                assert_eq!(Some(partial.name), asked.name(0));
                return partial.bytes;
            }
        }
    };
    let high = {
        let partitions = kafka::at(&servers).consumer(&[]).expect("a client");
        rdkafka::consumer::Consumer::fetch_watermarks(&partitions, &topic, 0, PATIENCE).expect("an answer").1
    };
    assert!(high > 4, "{high} messages");
    let mut different = 0;
    for end in (0..=high).rev() {
        let (mut ahead, asked) = (open(), announced(1, end));
        // To the end of the log: records of all windows.
        answer(&mut ahead, &announced(0, high));
        let (found, expected) = (answer(&mut ahead, &asked), answer(&mut open(), &asked));
        assert!(found == expected, "end {end}");
        different += usize::from(expected != answer(&mut open(), &announced(1, high)));
    }
    assert!(different > 0, "some end cuts the window");
}

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
    let with_other_key =
        text.replace(&format!("{}/key", folder.path().display()), &format!("{}/key", thief.path().display()));
    fs::write(thief.path().join("bernstream.toml"), with_other_key).expect("it is written");
    let stranger = absorber(thief.path(), None);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let forger = scope.spawn(|| forge(&scene, &text, &is_over));
        let published = published_by(&text, folder.path(), 1);
        is_over.store(true, Ordering::Relaxed);
        assert!(published == scene.expected);
        assert!(forger.join().expect("it ends") > 0, "it has answered announcements");
    });
    drop((foreign, stranger));
}

/// A partial shows what was recorded: it is in the topic no longer than until its window is accepted, and so are announcements.
#[test]
fn what_belongs_to_accepted_windows_is_deleted() {
    let Some(scene) = Scene::new() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let text = scene.configuration(folder.path(), NEVER);
    fs::write(folder.path().join("bernstream.toml"), &text).expect("it is written");
    let running = absorber(folder.path(), None);
    scene.check(&text, folder.path(), "an absorber");
    drop(running);
    let settings = Settings::parse(&text, "f").expect("a sound configuration");
    let name = settings.scale.expect("it has one").topic;
    let client = kafka::at(&scene.servers).consumer(&[]).expect("a client");
    let kept = |number: i32| -> (i64, i64) {
        rdkafka::consumer::Consumer::fetch_watermarks(&client, &name, number, PATIENCE).expect("an answer")
    };
    // The newest windows may have been accepted when the worker had ended: those are left to the retention of the topic.
    let started = Instant::now();
    let deleted = || (0..9).map(|number| kept(number).0).filter(|low| *low > 0).count();
    while deleted() <= PARTITIONS.unsigned_abs() as usize && started.elapsed() < PATIENCE {
        thread::sleep(Duration::from_millis(50));
    }
    let kept: Vec<_> = (0..9).map(kept).collect();
    // Announcements, and the partials of five partitions.
    assert_eq!(kept.iter().filter(|(low, _)| *low > 0).count(), 1 + PARTITIONS.unsigned_abs() as usize, "{kept:?}");
}

/// Somebody sends all partitions of a window, and when the next one is announced nothing of it, but other copies of the one that is
/// closed: the worker does not wait for a partition that nobody reads.
#[test]
fn a_copy_that_differs_from_one_of_a_closed_window_holds_up_nothing() {
    let Some(scene) = Scene::new() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let text = scene.configuration(folder.path(), "3s");
    let settings = Settings::parse(&text, "f").expect("a sound configuration");
    let Input::Kafka(input) = &settings.input else { panic!("records come from Kafka") };
    let (scale, broker) = (settings.scale.clone().expect("it has one"), kafka::at(&scene.servers));
    let keys = Keys::new(&Secret::new([7; 32]));
    let topic = ScaleTopic::of_absorber(&scale, &broker, &scene.topic, keys).expect("it opens");
    let stretches = Stretches::open(input.clone(), settings.columns.clone()).expect("it opens");
    let forms = settings.releases.iter().map(|release| settings.form(release)).collect();
    let mut absorbing = Absorbing::new(stretches, settings.windows.clone(), forms);
    let (is_over, late) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            let (mut first, mut second): (Option<Arc<Announcement>>, Option<Arc<Announcement>>) = (None, None);
            while !is_over.load(Ordering::Relaxed) {
                if let Some(Message::Announcement { announcement, .. }) = topic.next(Duration::from_millis(20)) {
                    let is_new = |known: &Option<Arc<Announcement>>| {
                        known.as_ref().is_none_or(|known| known.window != announcement.window)
                    };
                    if first.is_none() {
                        let asked = Arc::new(announcement);
                        (0..PARTITIONS).for_each(|partition| absorbing.ask(&asked, partition));
                        first = Some(asked);
                    } else if is_new(&first) && second.is_none() {
                        let closed = first.as_ref().expect("it was announced");
                        for partition in 0..PARTITIONS {
                            let name = closed.name(partition).expect("announced");
                            topic.send(&Partial { name, partition, bytes: vec![0; 9] }, "liar", &|| ());
                            late.fetch_add(1, Ordering::Relaxed);
                        }
                        second = Some(Arc::new(announcement));
                    }
                }
                let step = absorbing.step(Duration::from_millis(20)).expect("it reads");
                step.finished.iter().for_each(|partial| topic.send(partial, "honest", &|| ()));
            }
        });
        let published = published_by(&text, folder.path(), 1);
        is_over.store(true, Ordering::Relaxed);
        assert!(published == scene.expected);
    });
    assert_eq!(late.into_inner(), PARTITIONS.unsigned_abs() as usize);
}

/// Answers every announcement with rubbish until it is over: without the key, and with it; returns how many it has answered. Whoever has
/// the key is believed where nobody contradicts, and so the first of two lies never arrives whole: when the second does, it is contradicted
/// already, however slowly either is read.
fn forge(scene: &Scene, text: &str, is_over: &AtomicBool) -> usize {
    let settings = Settings::parse(text, "f").expect("a sound configuration");
    let (scale, broker) = (settings.scale.expect("it has one"), kafka::at(&scene.servers));
    let keys = Keys::new(&Secret::new([7; 32]));
    let topic = ScaleTopic::of_absorber(&scale, &broker, &scene.topic, keys.clone()).expect("it opens");
    let mut producer = Producer::new(broker.clone(), scale.topic.clone());
    let mut answered = 0;
    while !is_over.load(Ordering::Relaxed) {
        let Some(Message::Announcement { announcement, .. }) = topic.next(Duration::from_millis(50)) else { continue };
        for partition in 0..PARTITIONS {
            let lie = |bytes: &[u8]| -> Vec<Piece> {
                let name = announcement.name(partition).expect("announced");
                pieces(&Partial { name, partition, bytes: bytes.to_vec() }).expect("pieces")
            };
            // The whole one is a partial that could be taken: nothing was recorded.
            let (mut half, whole) = (lie(&[0]), lie(&[0; 9]));
            half.iter_mut().for_each(|piece| piece.of += 1);
            for piece in [half, whole].concat() {
                let sealed = keys.sealed(&Message::Piece(piece)).expect("sealed");
                let mut changed = sealed.clone();
                changed[60] ^= 1;
                for payload in [&sealed, &changed, &sealed[..sealed.len() / 2].to_vec(), &Vec::new()] {
                    // All in one partition of the topic: both lies of one partition before the next one's.
                    producer.send(Record { partition: Some(1), payload, ..Record::default() }).expect("it is sent");
                }
            }
        }
        answered += 1;
    }
    answered
}
