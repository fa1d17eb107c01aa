//! Counts by key and votes of users through a real broker: whatever becomes of workers and absorbers, every window leaves once, is paid for
//! once, and has the numbers that a plain count of the records has.
//!
//! The price is so high that noise moves no count by a half. `tests/properties/key_counts.rs` has every small stream in memory; `crash.rs`,
//! `absorbers.rs` and `standby.rs` have the same faults with a density.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow_ipc::writer::StreamWriter;
use bernstream_config::WorkerSettings;
use bernstream_ledger::{Ledger, LedgerRow};
use bernstream_synopsis::Synopsis;
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::description::Description;
use bernstream_synopsis::grid::Span;
use bernstream_worker::metrics::{Metrics, MetricsDetail};
use rand::rngs::ChaCha20Rng;
use rand::{RngExt, SeedableRng};
use rdkafka::producer::{BaseRecord, Producer};

use crate::absorbers::{NEVER, absorber, late, published_amid_faults, with_scale};
use crate::crash::{STEPS, dies_at, grown};
use crate::harness::setup::Setup;
use crate::harness::{PATIENCE, in_time, kafka, wait_for};
use crate::ledger_log::add_log;
use crate::readers::{self, PARTITIONS, WINDOWS, published_by, published_with};
use crate::standby::{create_topics, in_turn, peers};

/// Counts with a cap on keys, counts over two windows, which are two periods of each user, and votes. Some users have more than each cap.
const RELEASES: &str = r#"[privacy]
unit = { user = { column = "user", per = "ONE", max_records_per_window = 3 } }
adjacency = "add_remove"
epsilon = 1000.0

[[release]]
name = "capped"
epsilon = 250.0
[release.counts]
of = ["users", "records", "sum", "mean"]
max_keys = 1
max_records = 2
value = { column = "value", min = 0, max = 100, outside = "clamp" }

[[release]]
name = "hopping"
epsilon = 250.0
windows = { hopping = "TWO" }
[release.counts]
of = ["users", "records"]
parts = { users = 0.2, records = 0.8 }
max_keys = 2
max_records = 3

[[release]]
name = "votes"
epsilon = 250.0
weights = "user"
record = "user"
spline = "box"
step = [20]
domain = [{ column = "value", min = 0, max = 100, outside = "clamp" }]
[release.cells]
bandwidths = [30]

"#;

/// Records since the sum began, with a cap for each window.
const RUNNING: &str = r#"[privacy]
unit = { user = { column = "user", per = "1m" } }
adjacency = "add_remove"
epsilon = 1000.0

[[release]]
name = "running"
epsilon = 250.0
windows = { cumulative = "1h" }
[release.counts]
of = ["records"]
max_keys = 2
max_records = 3

"#;

/// One window of a minute, and two.
const MINUTES: [&str; 2] = ["1m", "2m"];

/// Messages of a window: a table of each of two releases, and the votes of each key.
const MESSAGES: usize = 4;

/// A configuration with these releases in place of its own; windows of one and of two lengths.
fn with_counts(text: &str, [one, two]: [&str; 2]) -> String {
    with_releases(text, &RELEASES.replace("ONE", one).replace("TWO", two))
}

fn with_releases(text: &str, releases: &str) -> String {
    let (head, rest) = text.split_once("[privacy]").expect("a section");
    let (_, tail) = rest.split_once("[output").expect("a section");
    format!("{head}{releases}[output{tail}")
}

/// A record. The key `c` is not declared.
#[derive(Clone, Debug)]
struct VisitRecord {
    micros: i64,
    user: u32,
    key: &'static str,
    value: f64,
}

/// So many visits of 30 users from `start` on, in so many seconds, in the order of their times.
fn visits(start: Timestamp, seconds: i64, count: usize, seed: u64) -> Vec<VisitRecord> {
    let mut random = ChaCha20Rng::seed_from_u64(seed);
    let mut visits = Vec::with_capacity(count);
    for _ in 0..count {
        visits.push(VisitRecord {
            micros: start.micros() + random.random_range(0..1_000_000 * seconds),
            user: random.random_range(0..30),
            key: ["a", "b", "c"][random.random_range(0..3)],
            value: random.random_range(-5.0..105.0),
        });
    }
    visits.sort_by_key(|visit| visit.micros);
    visits
}

fn message_of(visits: &[&VisitRecord]) -> Vec<u8> {
    let times = visits.iter().map(|visit| visit.micros);
    let times = TimestampMicrosecondArray::from_iter_values(times).with_timezone("UTC");
    let keys = StringArray::from_iter_values(visits.iter().map(|visit| visit.key));
    let users = visits.iter().map(|visit| format!("u{}", visit.user));
    let values = visits.iter().map(|visit| visit.value);
    let columns: [(&str, ArrayRef); 4] = [
        ("time", Arc::new(times)),
        ("key", Arc::new(keys)),
        ("user", Arc::new(StringArray::from_iter_values(users))),
        ("value", Arc::new(Float64Array::from_iter_values(values))),
    ];
    let batch = RecordBatch::try_from_iter(columns).expect("columns of one length");
    let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema()).expect("a writer");
    writer.write(&batch).expect("it is written");
    writer.into_inner().expect("it ends")
}

/// Sends visits to the input of a setup, each user's to both partitions.
fn send_visits(setup: &Setup, visits: &[VisitRecord]) {
    let producer = setup.producer(&[("enable.idempotence", "true")]);
    for (partition, place) in [(0, 0), (1, 1)] {
        let own: Vec<&VisitRecord> = visits.iter().skip(place).step_by(2).collect();
        let payload = message_of(&own);
        let record = BaseRecord::<(), _>::to(&setup.input).partition(partition);
        let sent = producer.send(record.payload(&payload));
        sent.map_err(|(error, _)| error).expect("it is queued");
    }
    producer.flush(PATIENCE).expect("the broker takes it");
}

/// Users of one key, and how many records each has in each window of the grid.
#[derive(Clone, Debug, Default, PartialEq)]
struct ExactCounts {
    users: BTreeSet<u32>,
    records: BTreeMap<(u32, i64), usize>,
}

impl ExactCounts {
    /// Records under a cap of three for each user and period.
    fn capped_records(&self) -> usize {
        self.records.values().map(|records| *records.min(&3)).sum()
    }
}

/// Exact counts of the declared keys of the visits in a window, whose periods have the length of a window of the grid.
fn exact_counts(
    visits: &[VisitRecord],
    window: Span,
    period: i64,
) -> BTreeMap<String, ExactCounts> {
    let mut counts = BTreeMap::from(["a", "b"].map(|key| (key.to_owned(), ExactCounts::default())));
    for visit in visits {
        let is_inside = (window.start.micros()..window.end.micros()).contains(&visit.micros);
        if let Some(counted) = counts.get_mut(visit.key).filter(|_| is_inside) {
            counted.users.insert(visit.user);
            let period = visit.micros / period;
            *counted.records.entry((visit.user, period)).or_default() += 1;
        }
    }
    counts
}

/// Numbers of a table by key, under the names of key and number.
fn numbers_of(synopsis: &Synopsis) -> BTreeMap<String, f64> {
    let table = synopsis.key_table().expect("a table by key");
    let mut numbers = BTreeMap::new();
    for row in table.rows() {
        for (reading, estimate) in table.readings().iter().zip(&row.estimates) {
            numbers.insert(format!("{} {}", row.key, reading.name()), estimate.value);
        }
    }
    numbers
}

/// Checks all synopses of a window against its visits: those of the windows that a release covers.
fn assert_exact(synopses: &[Synopsis], visits: &[VisitRecord], period: i64) {
    let mut votes: BTreeMap<Timestamp, f64> = BTreeMap::new();
    let mut voters: BTreeMap<Timestamp, usize> = BTreeMap::new();
    for synopsis in synopses {
        let about = synopsis.description();
        let counts = exact_counts(visits, about.window, period);
        let all: BTreeSet<u32> = counts.values().flat_map(|one| one.users.clone()).collect();
        let place = format!("{} of {:?}", about.release, about.window);
        if about.release == "votes" {
            let tables = synopsis.tables().expect("cells");
            let range = tables.range(&[[0.0, 100.0]]).expect("a range");
            *votes.entry(about.window.start).or_default() += range.count().value;
            voters.insert(about.window.start, all.len());
            continue;
        }
        let numbers = numbers_of(synopsis);
        if about.release == "capped" {
            let users = numbers["a users"] + numbers["b users"];
            assert_eq!(users.round(), all.len() as f64, "{place}: {numbers:?}");
            let records = numbers["a records"] + numbers["b records"];
            assert!(
                (users - 0.5..2.0 * users + 0.5).contains(&records),
                "{place}"
            );
            continue;
        }
        for (key, counted) in &counts {
            let found = [
                numbers[&format!("{key} users")],
                numbers[&format!("{key} records")],
            ];
            let exact = [counted.users.len() as f64, counted.capped_records() as f64];
            assert_eq!(found.map(f64::round), exact, "{key} of {place}");
        }
    }
    for (start, votes) in votes {
        assert_eq!(
            votes.round(),
            voters[&start] as f64,
            "votes from {start} on"
        );
    }
}

/// What a message is of.
fn place_of(about: &Description) -> String {
    format!("{} {:?} {:?}", about.release, about.key, about.window)
}

/// Checks what must hold whatever happened: each window on the output in one version with its exact numbers, and in one row of the ledger.
fn assert_whole(setup: &Setup, visits: &[VisitRecord], windows: u32) {
    let mut versions: BTreeMap<String, BTreeSet<Vec<u8>>> = BTreeMap::new();
    for published in setup.published() {
        let synopsis = Synopsis::decode_message(&published.payload).expect("a synopsis");
        let about = synopsis.description();
        // A ledger begins when it is made, which may be before the first window that has records.
        if about.window.end <= setup.origin {
            continue;
        }
        let place = place_of(about);
        versions.entry(place).or_default().insert(published.payload);
    }
    assert_eq!(
        versions.len(),
        MESSAGES * windows as usize,
        "{:?}",
        versions.keys()
    );
    let mut synopses = Vec::new();
    for (place, versions) in &versions {
        assert_eq!(versions.len(), 1, "{place} was drawn twice");
        for bytes in versions {
            synopses.push(Synopsis::decode_message(bytes).expect("a synopsis"));
        }
    }
    let period = setup.start_of(1).since(setup.start_of(0)).as_micros();
    assert_exact(&synopses, visits, period.try_into().expect("a length"));
}

/// Number of windows that a ledger has paid for.
fn paid_windows(ledger: &Ledger) -> usize {
    let rows = ledger.rows().expect("rows");
    let of_windows = rows
        .iter()
        .filter(|row| matches!(row.row, LedgerRow::Window(_)));
    of_windows.count()
}

/// Kills a worker at a step, and the one that is started after it, and checks what the third one leaves.
fn kill_at(servers: &str, step: &str) {
    let setup = Setup::new(servers, 3);
    let text = fs::read_to_string(setup.configuration()).expect("the configuration");
    fs::write(setup.configuration(), with_counts(&text, MINUTES)).expect("it is written");
    let visits = visits(setup.origin, 180, 400, 1);
    kill_twice(&setup, step, &visits);
    assert_whole(&setup, &visits, 3);
    let verified = setup.ledger_command(&["verify"]);
    assert!(verified.status.success(), "{step}: {verified:?}");
    let settings = WorkerSettings::load(&setup.configuration()).expect("settings");
    let ledger = Ledger::open(&settings.ledger).expect("its ledger");
    assert_eq!(paid_windows(&ledger), 3, "{step}");
}

/// Kills a worker that reads these visits at a step, and the one that is started after it; the third one comes to an end.
fn kill_twice(setup: &Setup, step: &str, visits: &[VisitRecord]) {
    send_visits(setup, visits);
    setup.begin(Duration::from_millis(500));
    assert!(dies_at(setup, step, 1), "{step} is passed");
    let rows = grown(setup, &[]);
    dies_at(setup, step, 2);
    grown(setup, &rows);
    let ended = setup.start().wait().expect("it ends");
    assert!(ended.success(), "{step}: {}", setup.read_log());
}

/// Kills the workers of a running sum, as above; the sum goes on over all windows.
fn kill_sum_at(servers: &str, step: &str) {
    let setup = Setup::new(servers, 3);
    let text = fs::read_to_string(setup.configuration()).expect("the configuration");
    fs::write(setup.configuration(), with_releases(&text, RUNNING)).expect("it is written");
    let visits = visits(setup.origin, 180, 400, 2);
    kill_twice(&setup, step, &visits);
    let mut sums: BTreeMap<Timestamp, BTreeSet<Vec<u8>>> = BTreeMap::new();
    for published in setup.published() {
        let synopsis = Synopsis::decode_message(&published.payload).expect("a synopsis");
        let end = synopsis.description().window.end;
        sums.entry(end).or_default().insert(published.payload);
    }
    for (next_step, (end, versions)) in (0..).zip(&sums) {
        assert_eq!(versions.len(), 1, "{step}: {end} was drawn twice");
        let bytes = versions.first().expect("one");
        let synopsis = Synopsis::decode_message(bytes).expect("a synopsis");
        let about = synopsis.description();
        let panes = about.panes.expect("a sum");
        assert_eq!(panes.step, Some(next_step), "{step}: {end}");
        let counts = exact_counts(&visits, about.window, 60_000_000);
        let numbers = numbers_of(&synopsis);
        for (key, counted) in counts {
            let found = numbers[&format!("{key} records")].round();
            assert_eq!(
                found,
                counted.capped_records() as f64,
                "{step}: {key}, {end}"
            );
        }
    }
    let last = sums.keys().last().expect("sums");
    assert_eq!(*last, setup.start_of(3), "{step}");
    let verified = setup.ledger_command(&["verify"]);
    assert!(verified.status.success(), "{step}: {verified:?}");
}

/// Kills a worker at each of these steps, side by side.
fn kill_at_each(steps: &[&str]) {
    let Some(servers) = kafka::broker() else {
        return;
    };
    thread::scope(|scope| {
        for step in steps {
            scope.spawn(|| kill_at(&servers, step));
        }
    });
}

/// Of the first worker the first window is claimed, or out: the next ones need its records again.
#[test]
fn a_worker_that_is_killed_counts_every_user_once_in_each_window() {
    kill_at_each(&["claimed", "published"]);
}

#[test]
fn a_running_table_goes_on_where_its_worker_was_killed() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    kill_sum_at(&servers, "published");
}

/// How the visits are spread over partitions.
#[derive(Clone, Copy, Debug)]
enum Spread {
    /// Each anywhere, another way for each seed.
    Random(u64),
    /// All in the second partition.
    OnePartition,
}

/// A topic with these visits, five seconds a message; each has the time of its end.
fn topic_of(servers: &str, visits: &[VisitRecord], spread: Spread) -> String {
    let settings = [
        ("message.timestamp.type", "CreateTime"),
        ("message.timestamp.after.max.ms", "9223372036854775807"),
    ];
    let topic = kafka::fresh_topic(servers, "visits", PARTITIONS, &settings);
    let mut messages: BTreeMap<(i64, i32), Vec<&VisitRecord>> = BTreeMap::new();
    let mut random = ChaCha20Rng::seed_from_u64(match spread {
        Spread::Random(seed) => seed,
        Spread::OnePartition => 0,
    });
    for visit in visits {
        let partition = match spread {
            Spread::Random(_) => random.random_range(0..PARTITIONS),
            Spread::OnePartition => 1,
        };
        let end = visit.micros / 5_000_000 + 1;
        messages.entry((end, partition)).or_default().push(visit);
    }
    let mut config = kafka::at(servers).client_config().expect("settings");
    config.set("enable.idempotence", "true");
    let producer: rdkafka::producer::ThreadedProducer<_> = config.create().expect("a producer");
    for ((end, partition), visits) in &messages {
        let payload = message_of(visits);
        let record = BaseRecord::<(), _>::to(&topic).partition(*partition);
        let sent = producer.send(record.payload(&payload).timestamp(5_000 * end));
        sent.map_err(|(error, _)| error).expect("it is queued");
    }
    producer.flush(PATIENCE).expect("the broker takes it");
    topic
}

/// The configuration of a worker that reads a topic of visits.
fn configuration(servers: &str, topic: &str, folder: &Path, threads: u32) -> String {
    let text = readers::configuration(servers, topic, folder, threads);
    late(&with_counts(&text, MINUTES))
}

/// Visits of all windows of `readers`.
fn visits_of_windows() -> Vec<VisitRecord> {
    visits(readers::origin(), 60 * WINDOWS, 600, 2)
}

/// What a worker alone publishes of these visits.
fn published_alone(servers: &str, visits: &[VisitRecord]) -> Vec<(String, Vec<u8>)> {
    let topic = topic_of(servers, visits, Spread::Random(1));
    let folder = tempfile::tempdir().expect("a folder");
    let text = configuration(servers, &topic, folder.path(), 1);
    let alone = published_by(&text, folder.path(), 1);
    assert_eq!(alone.len(), MESSAGES * WINDOWS as usize);
    let mut synopses = Vec::new();
    for (_, bytes) in &alone {
        synopses.push(Synopsis::decode_message(bytes).expect("a synopsis"));
    }
    assert_exact(&synopses, visits, 60_000_000);
    alone
}

/// Number of partials of absorbers with this fate.
fn partials_with(fate: &str, metrics: &Metrics) -> f64 {
    let shown = metrics.render_text().expect("metrics");
    let mut count = 0.0;
    for line in shown.lines() {
        if line.starts_with("bernstream_partials_total{")
            && line.contains(&format!("fate=\"{fate}\""))
        {
            let number = line.rsplit(' ').next().expect("a number");
            count += number.parse::<f64>().expect("a number");
        }
    }
    count
}

#[test]
fn counts_do_not_depend_on_partitions_readers_and_absorbers() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let visits = visits_of_windows();
    let alone = published_alone(&servers, &visits);
    let threads = 5;
    let topic = topic_of(&servers, &visits, Spread::Random(threads.into()));
    let folder = tempfile::tempdir().expect("a folder");
    let text = configuration(&servers, &topic, folder.path(), threads);
    assert!(
        published_by(&text, folder.path(), threads) == alone,
        "{threads} threads"
    );
    for (absorbers, spread) in [(3, Spread::Random(8)), (1, Spread::OnePartition)] {
        let topic = topic_of(&servers, &visits, spread);
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        let text = with_scale(&configuration(&servers, &topic, folder, 1), folder, NEVER);
        fs::write(folder.join("bernstream.toml"), &text).expect("it is written");
        let running: Vec<_> = (0..absorbers).map(|_| absorber(folder, None)).collect();
        let metrics =
            Metrics::new(MetricsDetail::Operator, "visits", "pure epsilon", "").expect("metrics");
        let published = published_with(&text, folder, 1, &metrics);
        drop(running);
        assert!(published == alone, "{absorbers} absorbers, {spread:?}");
        // None was read by the worker in their place.
        let taken = partials_with("taken", &metrics);
        assert_eq!(
            taken,
            f64::from(PARTITIONS) * WINDOWS as f64,
            "{absorbers}, {spread:?}"
        );
    }
}

/// Enough for a table above the limit of a topic.
const KEYS: usize = 25_000;

/// Makes a configuration count the users of so many keys, `a` and `b` among them.
fn count_many_keys(setup: &Setup) {
    let list = setup.folder.path().join("keys.txt");
    let mut keys = "a\nb\n".to_owned();
    for key in 2..KEYS {
        keys += &format!("key-{key:06}\n");
    }
    fs::write(&list, keys).expect("it is written");
    setup.edit(
        "values = [\"a\", \"b\"]",
        &format!("type = \"text\", values_file = \"{}\"", list.display()),
    );
    let text = fs::read_to_string(setup.configuration()).expect("the configuration");
    let (head, rest) = text.split_once("[privacy]").expect("a section");
    let (_, tail) = rest.split_once("[output").expect("a section");
    let counted = r#"[privacy]
unit = { user = { column = "user", type = "text", per = "1d" } }
adjacency = "add_remove"
epsilon = 1000.0

[release]
name = "visitors"
epsilon = 1000.0
[release.counts]
of = ["users"]
max_keys = 2

"#;
    fs::write(
        setup.configuration(),
        format!("{head}{counted}[output{tail}"),
    )
    .expect("written");
}

/// A program that was run to its end.
fn said_by(setup: &Setup, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = setup.bernstream(arguments);
    let done = command
        .arg(setup.configuration())
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&done.stdout) + String::from_utf8_lossy(&done.stderr);
    (done.status.code(), said.into_owned())
}

#[test]
fn a_table_above_a_megabyte_is_refused_before_it_is_paid_for_unless_the_topic_takes_it() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    // A topic with the limit of the cluster.
    let small = Setup::new(&servers, 1);
    count_many_keys(&small);
    let topic = kafka::fresh_topic(&servers, "output", 1, &[]);
    small.edit(&small.output, &topic);
    let (_, offline) = said_by(&small, &["check", "--offline"]);
    assert!(
        offline.contains("more than a topic takes by default"),
        "{offline}"
    );
    let (code, said) = said_by(&small, &["check"]);
    assert_eq!(code, Some(78), "{said}");
    assert!(said.contains("--add-config max.message.bytes="), "{said}");
    small.begin(Duration::from_millis(500));
    let (code, said) = said_by(&small, &["run"]);
    assert_eq!(code, Some(78), "{said}");
    assert!(said.contains("takes no message of"), "{said}");
    let settings = WorkerSettings::load(&small.configuration()).expect("settings");
    assert_eq!(
        paid_windows(&Ledger::open(&settings.ledger).expect("a ledger")),
        0
    );

    // One that `ledger init` makes.
    let large = Setup::new(&servers, 1);
    count_many_keys(&large);
    let visits = visits(large.origin, 60, 200, 4);
    send_visits(&large, &visits);
    large.begin(Duration::from_millis(500));
    let ended = large.start().wait().expect("it ends");
    assert!(ended.success(), "{}", large.read_log());
    let published = large.published();
    let [table] = &published[..] else {
        panic!("{} messages", published.len())
    };
    assert!(
        table.payload.len() > 1_048_588,
        "{} bytes",
        table.payload.len()
    );
    let synopsis = Synopsis::decode_message(&table.payload).expect("a synopsis");
    let numbers = numbers_of(&synopsis);
    let window = synopsis.description().window;
    let counts = exact_counts(&visits, window, 60_000_000);
    assert_eq!(numbers.len(), KEYS);
    for key in ["a", "b"] {
        let users = numbers[&format!("{key} users")];
        assert_eq!(users.round(), counts[key].users.len() as f64, "{key}");
    }
}

mod long {
    use super::*;

    #[test]
    fn a_worker_that_is_killed_at_any_step_counts_every_user_once_in_each_window() {
        kill_at_each(&STEPS);
    }

    #[test]
    fn absorbers_of_counts_that_are_killed_frozen_and_come_back_change_nothing() {
        let Some(servers) = kafka::broker() else {
            return;
        };
        let visits = visits_of_windows();
        let alone = published_alone(&servers, &visits);
        let topic = topic_of(&servers, &visits, Spread::Random(9));
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        let text = with_scale(&configuration(&servers, &topic, folder, 3), folder, "1s");
        fs::write(folder.join("bernstream.toml"), &text).expect("it is written");
        assert!(published_amid_faults(&text, folder, 3, 1) == alone);
    }

    /// Windows of the test below, a second each.
    const SECONDS: u32 = 12;

    #[test]
    fn a_standby_that_takes_over_counts_every_user_once_in_each_window() {
        let Some(servers) = kafka::broker() else {
            return;
        };
        in_time(|preparations| {
            let second = 1_000_000;
            let now = Timestamp::now().plus(preparations).micros();
            let origin = Timestamp::from_micros(now / second * second);
            let setup = Setup::quick(&servers, origin, SECONDS);
            let text = fs::read_to_string(setup.configuration()).expect("the configuration");
            // All records are there before the first window begins: however slow the machine is, none is late.
            let text = with_counts(&text, ["1s", "2s"]).replace("ahead = \"1s\"", "ahead = \"1h\"");
            fs::write(setup.configuration(), text).expect("it is written");
            add_log(&setup, 1);
            setup.edit("[ledger]\n", "[ledger]\nstandby = \"2s\"\n");
            create_topics(&setup);
            let visits = visits(origin, SECONDS.into(), 600, 3);
            send_visits(&setup, &visits);
            if Timestamp::now() >= origin {
                return false;
            }
            let (mut first, mut second) = peers(&setup);
            let some = || (setup.published().len() >= 3 * MESSAGES).then_some(());
            wait_for(
                "three windows",
                || first.all_log() + &second.all_log(),
                some,
            );
            let (acting, following) = in_turn(&mut first, &mut second);
            acting.kill();
            following.wait_acts(true);
            acting.start();
            for peer in [&mut first, &mut second] {
                assert!(peer.end().success(), "{}", peer.all_log());
            }
            assert_whole(&setup, &visits, SECONDS);
            for peer in [&first, &second] {
                peer.verify();
            }
            true
        });
    }
}
