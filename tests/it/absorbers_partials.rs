//! What absorbers make of a partition: a function of the log up to the end that was announced, however far they have read.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bernstream_config::{InputParams, WorkerSettings};
use bernstream_kafka::source::kafka::PartitionRanges;
use bernstream_release::window::ReleaseInput;
use bernstream_synopsis::Positions;
use bernstream_synopsis::clock::Timestamp;
use bernstream_worker::scale::{
    AbsorbingStep, PartitionAbsorber, PartitionPartial, WindowAnnouncement,
};
use rdkafka::admin::{AdminClient, AdminOptions, NewPartitions};
use rdkafka::client::DefaultClientContext;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};

use crate::harness::{PATIENCE, kafka};
use crate::readers::{PARTITIONS, configuration, message, message_at, origin, send, send_at};
use crate::source::delete_before;

/// A record of the time before `backfill_until` belongs to its window however late it was sent.
#[test]
fn history_that_was_read_beyond_an_end_is_read_again() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let topic = send(&servers);
    let until = origin().plus(Duration::from_secs(180));
    let input = Records {
        backfill_until: Some(until),
        ..Records::new(&servers, &topic)
    };
    let end = input.high(0);
    // Of the second window, sent a minute after its end.
    message_at(&servers, &topic, 0, (origin(), 70), 170);
    assert_eq!(input.announced(1, 0, end).cutoff, until);
    a_message_is_in_the_second_window(&input, end);
}

/// Whoever has read the message at offset `end` while the first window was open has it in the second one only if that ends behind it.
fn a_message_is_in_the_second_window(input: &Records, end: i64) {
    let mut ahead = input.open();
    answer(&mut ahead, &input.announced(0, 0, end + 1), 0);
    let partials = [end, end + 1].map(|end| {
        let asked = input.announced(1, 0, end);
        let found = answer(&mut ahead, &asked, 0);
        assert!(found == answer(&mut input.open(), &asked, 0), "end {end}");
        found
    });
    assert!(partials[0] != partials[1], "it is in the window");
}

/// A record may be ahead of its message, which then came before the cutoff of the window before.
#[test]
fn records_that_are_ahead_of_their_message_are_read_again_too() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let settings = [
        ("message.timestamp.type", "CreateTime"),
        ("message.timestamp.after.max.ms", "9223372036854775807"),
    ];
    let topic = kafka::fresh_topic(&servers, "ahead", PARTITIONS, &settings);
    message(&servers, &topic, 0, (origin(), 0));
    // The second window begins then, and the first one waits a second longer.
    message_at(&servers, &topic, 0, (origin(), 60), 60);
    a_message_is_in_the_second_window(&Records::new(&servers, &topic), 1);
}

/// Messages that the client has missed, such as those that were deleted ahead of it: a partition begins anew, at what its window needs.
#[test]
fn partitions_begin_anew_where_messages_were_missed() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let settings = [
        ("message.timestamp.type", "CreateTime"),
        ("message.timestamp.after.max.ms", "9223372036854775807"),
    ];
    let topic = kafka::fresh_topic(&servers, "missed", PARTITIONS, &settings);
    [0, 5, 10, 15, 70]
        .iter()
        .for_each(|second| message(&servers, &topic, 0, (origin(), *second)));
    let input = Records::new(&servers, &topic);
    let mut absorbing = input.open();
    let asked = input.announced(1, 0, 5);
    let expected = answer(&mut input.open(), &asked, 0);
    // While something else is waited for, the first partition is held behind its first message, and no more of it is fetched.
    absorbing.ask_instead(&input.announced(0, 1, 1), 1);
    answer(&mut absorbing, &input.announced(0, 0, 1), 0);
    for _ in 0..6 {
        assert!(
            absorbing
                .read_step(Duration::from_millis(50))
                .expect("it reads")
                .finished
                .is_empty()
        );
    }
    // Messages that only the window needs that is closed.
    delete_before(&servers, &topic, 3);
    assert!(answer(&mut absorbing, &asked, 0) == expected);
}

/// A batch that no client can unpack stops its partition, which is left to the worker, and no other.
#[test]
fn a_batch_that_cannot_be_read_stops_its_partition_alone() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let topic = send(&servers);
    let input = Records::new(&servers, &topic);
    let high = input.high(0);
    let mut config = kafka::at(&servers).client_config().expect("settings");
    config
        .set("compression.type", "zstd")
        .set("message.max.bytes", "200000000");
    let producer: BaseProducer = config.create().expect("a producer");
    let bomb = vec![0; 130_000_000];
    producer
        .send(BaseRecord::<(), _>::to(&topic).partition(0).payload(&bomb))
        .map_err(|(e, _)| e)
        .expect("queued");
    producer.flush(PATIENCE).expect("the broker takes it");
    let mut absorbing = input.open();
    absorbing.ask_instead(&input.announced(0, 0, high + 1), 0);
    let mut stuck = None;
    let started = Instant::now();
    while stuck.is_none() && started.elapsed() < PATIENCE {
        let step = absorbing
            .read_step(Duration::from_millis(50))
            .expect("it reads");
        assert!(step.finished.is_empty());
        stuck = step.stuck;
    }
    let stuck = stuck.expect("it stops");
    let in_full = stuck.in_full();
    assert!(
        in_full.contains(&format!(
            "the batch at offsets {high} to {high} of partition 0"
        )),
        "{in_full}"
    );
    assert_eq!(absorbing.stopped_partitions(), [0]);
    let asked = input.announced(0, 1, input.high(1));
    assert!(answer(&mut absorbing, &asked, 1) == answer(&mut input.open(), &asked, 1));
    assert_eq!(absorbing.stopped_partitions(), [0]);
}

/// An absorber that has been reading when a partition is added has the partial of it that one has which starts later.
#[test]
fn a_partition_that_is_added_in_mid_window_is_read_by_absorbers_that_run() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let topic = send(&servers);
    let input = Records::new(&servers, &topic);
    let mut running = input.open();
    answer(&mut running, &input.announced(0, 0, input.high(0)), 0);
    add_partition(&servers, &topic);
    message(&servers, &topic, PARTITIONS, (origin(), 70));
    let asked = input.announced(1, PARTITIONS, 1);
    let found = answer(&mut running, &asked, PARTITIONS);
    let expected = answer(&mut input.open(), &asked, PARTITIONS);
    assert!(found == expected);
    assert_ne!(
        found,
        answer(&mut running, &input.announced(1, PARTITIONS, 0), PARTITIONS),
        "it has the record"
    );
}

/// Workers announce side by side, such as standbys: what several ask of one partition is answered in order, the newest of it, and no more
/// than a few windows wait.
#[test]
fn what_several_workers_ask_is_answered_and_a_bounded_number_waits() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let topic = send(&servers);
    let input = Records::new(&servers, &topic);
    // Two of them: one is a window ahead.
    let asked: Vec<_> = (1..=5)
        .flat_map(|end| [1, 2].map(|number| input.announced(number, 0, end)))
        .collect();
    let mut absorbing = input.open();
    let forms: Arc<[ReleaseInput]> = input
        .settings
        .release_inputs()
        .into_iter()
        .map(|form| ReleaseInput { panes: 1, ..form })
        .collect();
    asked
        .iter()
        .for_each(|asked| absorbing.ask_beside(&forms, asked, 0));
    // Once more, as announcements are repeated.
    absorbing.ask_beside(&forms, &asked[9], 0);
    let expected: Vec<_> = asked[2..]
        .iter()
        .map(|asked| {
            (
                asked.partial_name(0).expect("announced"),
                answer(&mut input.open(), asked, 0),
            )
        })
        .collect();
    let mut found = Vec::new();
    let started = Instant::now();
    while found.len() < expected.len() && started.elapsed() < PATIENCE {
        let step = absorbing
            .read_step(Duration::from_millis(50))
            .expect("it reads");
        found.extend(
            step.finished
                .into_iter()
                .map(|partial| (partial.name, partial.bytes)),
        );
    }
    assert!(found == expected);
    for _ in 0..5 {
        assert!(
            absorbing
                .read_step(Duration::from_millis(50))
                .expect("it reads")
                .finished
                .is_empty()
        );
    }
}

/// What was read before its window was asked for is not read again, though nobody needs the window before any more.
#[test]
fn a_window_that_is_passed_over_takes_nothing_from_the_next_one() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let settings = [
        ("message.timestamp.type", "CreateTime"),
        ("message.timestamp.after.max.ms", "9223372036854775807"),
    ];
    let topic = kafka::fresh_topic(&servers, "passed", PARTITIONS, &settings);
    [0, 61, 62, 63, 20]
        .iter()
        .for_each(|second| message(&servers, &topic, 0, (origin(), *second)));
    let input = Records::new(&servers, &topic);
    let asked = input.announced(1, 0, 5);
    let expected = answer(&mut input.open(), &asked, 0);
    let mut absorbing = input.open();
    // More than there is, so that it is not answered.
    absorbing.ask_instead(&input.announced(0, 0, 6), 0);
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(5) {
        assert!(
            absorbing
                .read_step(Duration::from_millis(50))
                .expect("it reads")
                .finished
                .is_empty()
        );
    }
    // Whoever begins anew misses them.
    delete_before(&servers, &topic, 4);
    assert!(answer(&mut absorbing, &asked, 0) == expected);
    assert!(answer(&mut input.open(), &asked, 0) != expected);
}

/// A worker asks itself for what it needs now: a window that absorbers have sent meanwhile does not hold up the next one.
#[test]
fn what_a_worker_asks_itself_takes_the_place_of_what_it_asked_before() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let topic = send(&servers);
    let input = Records::new(&servers, &topic);
    let mut absorbing = input.open();
    let high = input.high(0);
    (0..3).for_each(|number| absorbing.ask_instead(&input.announced(number, 0, high), 0));
    let asked = input.announced(3, 0, high);
    absorbing.ask_instead(&asked, 0);
    let first = steps(&mut absorbing)
        .find_map(|step| step.finished.into_iter().next())
        .expect("a partial");
    assert_eq!(Some(&first.name), asked.partial_name(0).as_ref());
    assert!(first.bytes == answer(&mut input.open(), &asked, 0));
}

/// Records that were sent in time for a window and turn up behind its end are in none, and that is told, to operators.
#[test]
fn what_turns_up_behind_the_end_of_its_window_is_counted() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let topic = send(&servers);
    let input = Records::new(&servers, &topic);
    let high = input.high(0);
    let behind = |end: i64| -> u64 {
        let mut absorbing = input.open();
        answer(&mut absorbing, &input.announced(0, 0, end), 0);
        absorbing.ask_instead(&input.announced(1, 0, high), 0);
        counted(&mut absorbing)
    };
    let [none, one, all] = [0, 1, high].map(behind);
    assert!(none > one && one > all && all == 0, "{none} {one} {all}");
    // Whoever begins with a later window finds records of earlier ones that others have closed.
    for end in [1, high] {
        let mut absorbing = input.open();
        let asked = input.announced(1, 0, end);
        absorbing.ask_instead(&asked, 0);
        assert_eq!(counted(&mut absorbing), 0);
    }
}

/// How many records are behind until a partial is there.
fn counted(absorbing: &mut PartitionAbsorber) -> u64 {
    let mut behind = 0;
    let finished = steps(absorbing)
        .inspect(|step| behind += step.behind)
        .any(|step| !step.finished.is_empty());
    assert!(finished);
    behind
}

/// One step after the other; fails where they take too long.
fn steps(absorbing: &mut PartitionAbsorber) -> impl Iterator<Item = AbsorbingStep> {
    let started = Instant::now();
    std::iter::from_fn(move || {
        assert!(
            started.elapsed() < PATIENCE,
            "what is asked is not answered"
        );
        Some(
            absorbing
                .read_step(Duration::from_millis(50))
                .expect("it reads"),
        )
    })
}

/// A message from the future, by its producer's clock, does not keep an absorber from reading what comes after it before that is asked for.
#[test]
fn one_message_of_the_future_does_not_end_reading_ahead() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let settings = [
        ("message.timestamp.type", "CreateTime"),
        ("message.timestamp.after.max.ms", "9223372036854775807"),
    ];
    let topic = kafka::fresh_topic(&servers, "future", PARTITIONS, &settings);
    let minute = 60_000_000;
    let start = Timestamp::from_micros((Timestamp::now().micros() / minute - 1) * minute);
    let input = Records::since(&servers, &topic, start);
    let decades = Duration::from_secs(75 * 365 * 86_400);
    message(&servers, &topic, 0, (start.plus(decades), 0));
    let mut absorbing = input.open();
    answer(&mut absorbing, &input.announced(0, 0, 1), 0);
    // Nobody asks for it; it is in time for the window that has just been closed, which shows that it was read.
    message(&servers, &topic, 0, (start, 10));
    let mut behind = 0;
    let started = Instant::now();
    while behind == 0 && started.elapsed() < PATIENCE {
        behind += absorbing
            .read_step(Duration::from_millis(50))
            .expect("it reads")
            .behind;
    }
    assert!(behind > 0);
}

/// One partition more than an input has.
pub fn add_partition(servers: &str, topic: &str) {
    add_partitions(servers, topic, PARTITIONS.unsigned_abs() as usize + 1);
}

/// As many partitions as `to` says.
pub fn add_partitions(servers: &str, topic: &str, to: usize) {
    let admin: AdminClient<DefaultClientContext> = kafka::at(servers)
        .client_config()
        .expect("settings")
        .create()
        .expect("a client");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    let options = AdminOptions::new().request_timeout(Some(PATIENCE));
    let more = NewPartitions::new(topic, to);
    let added = runtime
        .block_on(admin.create_partitions([&more], &options))
        .expect("an answer");
    assert!(added.iter().all(Result::is_ok), "{added:?}");
}

/// A topic of records, as absorbers read it.
pub struct Records {
    servers: String,
    topic: String,
    settings: WorkerSettings,
    backfill_until: Option<Timestamp>,
}

impl Records {
    pub fn new(servers: &str, topic: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        Records::of(
            servers,
            topic,
            &configuration(servers, topic, folder.path(), 1),
        )
    }

    /// Of windows from `start` on, without an end, which wait five minutes for late records.
    fn since(servers: &str, topic: &str, start: Timestamp) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let text = configuration(servers, topic, folder.path(), 1);
        let text = text
            .lines()
            .filter(|line| !line.starts_with("end = "))
            .collect::<Vec<_>>()
            .join("\n");
        let text = text
            .replace(&origin().to_string(), &start.to_string())
            .replace("grace = \"1s\"", "grace = \"5m\"");
        Records::of(servers, topic, &text)
    }

    fn of(servers: &str, topic: &str, text: &str) -> Self {
        let settings = WorkerSettings::parse(text, "f").expect("a configuration");
        Records {
            servers: servers.to_owned(),
            topic: topic.to_owned(),
            settings,
            backfill_until: None,
        }
    }

    pub fn open(&self) -> PartitionAbsorber {
        let InputParams::Kafka(input) = &self.settings.input else {
            panic!("records come from Kafka")
        };
        let stretches =
            PartitionRanges::open(input.clone(), self.settings.columns.clone()).expect("it opens");
        let forms = self.settings.release_inputs();
        PartitionAbsorber::new(stretches, self.settings.windows.clone(), forms)
    }

    pub fn high(&self, partition: i32) -> i64 {
        let client = kafka::at(&self.servers).consumer(&[]).expect("a client");
        rdkafka::consumer::Consumer::fetch_watermarks(&client, &self.topic, partition, PATIENCE)
            .expect("an answer")
            .1
    }

    /// The window of this number, with one partition.
    pub fn announced(&self, number: u64, partition: i32, end: i64) -> Arc<WindowAnnouncement> {
        let rules = &self.settings.windows;
        let window = rules
            .grid
            .span_of(rules.grid.origin().plus(Duration::from_secs(60 * number)));
        Arc::new(WindowAnnouncement {
            version: 1,
            settings: String::new(),
            choices: String::new(),
            topic: String::new(),
            window,
            cutoff: rules.window_cutoff(window, self.backfill_until),
            first: rules.grid.origin(),
            backfill_until: self.backfill_until,
            ends: Positions(BTreeMap::from([(partition, end)])),
            past: Positions::default(),
        })
    }
}

/// The partial of a partition, once it is read.
pub fn answer(
    absorbing: &mut PartitionAbsorber,
    asked: &Arc<WindowAnnouncement>,
    partition: i32,
) -> Vec<u8> {
    absorbing.ask_instead(asked, partition);
    let is_it = |partial: &PartitionPartial| partial.partition == partition;
    let found = steps(absorbing)
        .find_map(|step| step.finished.into_iter().find(is_it))
        .expect("a partial");
    assert_eq!(Some(found.name), asked.partial_name(partition));
    found.bytes
}

mod long {
    use super::*;

    /// A partition that was read far ahead, and beyond an end that is announced then, has the partial of one that was not.
    #[test]
    fn what_was_read_beyond_an_end_is_read_again() {
        let Some(servers) = kafka::broker() else {
            return;
        };
        // Also where message timestamps step back by most of a window.
        for topic in [send(&servers), send_at(&servers, 9)] {
            let input = Records::new(&servers, &topic);
            let high = input.high(0);
            assert!(high > 4, "{high} messages");
            let mut different = 0;
            for end in (0..=high).rev() {
                let mut ahead = input.open();
                let asked = input.announced(1, 0, end);
                // To the end of the log: records of all windows.
                answer(&mut ahead, &input.announced(0, 0, high), 0);
                let found = answer(&mut ahead, &asked, 0);
                let expected = answer(&mut input.open(), &asked, 0);
                assert!(found == expected, "end {end}");
                different += usize::from(
                    expected != answer(&mut input.open(), &input.announced(1, 0, high), 0),
                );
            }
            assert!(different > 0, "some end cuts the window");
        }
    }
}
