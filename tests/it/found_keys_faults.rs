//! Keys that nobody listed, through a real broker: whatever becomes of workers, disks and absorbers, every window leaves once, a key is told to
//! be new once, and whoever draws a window has the list that the accepted row before it left.
//!
//! At most prices here noise moves no count by a half, so that tables are those of a plain count. Where it does, the list is a function
//! of the tables that were published, whatever other draws there were.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use bernstream_config::WorkerSettings;
use bernstream_ledger::{Ledger, LedgerRow};
use bernstream_synopsis::Synopsis;
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::grid::Span;
use bernstream_worker::metrics::{Metrics, MetricsDetail};
use rand::rngs::ChaCha20Rng;
use rand::{RngExt, SeedableRng};
use rdkafka::producer::{BaseRecord, DefaultProducerContext, Producer, ThreadedProducer};

use crate::absorbers::{NEVER, absorber, late, published_amid_faults, with_scale};
use crate::crash::{STEPS, dies_at, grown};
use crate::found_keys::{
    PageVisit, PublishedKey, exact_keys, found_of, page_visit, published_keys, visits_stream,
};
use crate::harness::setup::Setup;
use crate::harness::{PATIENCE, in_time, kafka, wait_for};
use crate::ledger_log::{add_log, copy_disk};
use crate::readers::{self, PARTITIONS, WINDOWS, published_by, published_with};
use crate::standby::{Peer, create_topics, in_turn, peers};

/// A price at which every key of two users is found, and none of one.
const EXACT: &str = "80.0";
/// A price at which keys of [`EVEN_USERS`] users are found half of the time.
const NOISY: &str = "1.0";
const EVEN_USERS: i64 = 41;

/// Pages of users, each in at most two of a window; a page stays for so long after the last window that had it above the threshold.
fn pages_of_users(epsilon: &str, keep: &str) -> FoundPages {
    FoundPages {
        key: format!("found = {{ keep = \"{keep}\", most = 100, longest = 64 }}"),
        privacy: format!(
            "unit = {{ user = {{ column = \"user\", type = \"text\", per = \"1d\" }} }}\nadjacency = \"add_remove\"\n\
             epsilon = 1000.0\ndelta = 1e-6\n\n[release]\nname = \"pages\"\nepsilon = {epsilon}\ndelta = 1e-9\n\
             counts = {{ of = [\"users\"], max_keys = 2 }}\n\n"
        ),
    }
}

/// The most different pages that a window of records keeps.
const CANDIDATES: i64 = 2000;

/// Pages of records.
fn pages_of_records() -> FoundPages {
    FoundPages {
        key: format!(
            "found = {{ keep = \"5m\", most = 100, longest = 64, candidates = {CANDIDATES} }}"
        ),
        privacy: "unit = \"record\"\nadjacency = \"add_remove\"\nepsilon = 400.0\ndelta = 1e-8\n\n[release]\nname = \"pages\"\n\
                  epsilon = 400.0\ndelta = 1e-8\ncounts = { of = [\"records\"] }\n\n"
            .to_owned(),
    }
}

/// How a configuration finds pages.
struct FoundPages {
    /// The rules of the key.
    key: String,
    /// The sections of privacy and of the release.
    privacy: String,
}

impl FoundPages {
    /// A configuration with these in the place of its own key and releases.
    fn within(&self, text: &str) -> String {
        let listed = "column = \"key\", values = [\"a\", \"b\"]";
        assert!(text.contains(listed), "{text}");
        let found = format!("column = \"page\", type = \"text\", {}", self.key);
        let text = text.replace(listed, &found);
        let (head, rest) = text.split_once("[privacy]").expect("a section");
        let (_, tail) = rest.split_once("[output").expect("a section");
        format!("{head}[privacy]\n{}[output{tail}", self.privacy)
    }

    /// Makes a setup find them.
    fn configure(&self, setup: &Setup) {
        let text = fs::read_to_string(setup.configuration()).expect("the configuration");
        fs::write(setup.configuration(), self.within(&text)).expect("it is written");
    }
}

/// Visits of so many users of a group to a page in a window.
fn page_visits(visits: &mut Vec<PageVisit>, start: Timestamp, group: &str, page: &str, users: i64) {
    for user in 0..users {
        visits.push(page_visit(start, user, group, page));
    }
}

/// Visits of the windows that start then, of two pages a user at most: a page that everybody visits, some that few visit, in the first window or
/// again and again, and one that a single user visits.
fn visits_of(starts: &[Timestamp]) -> Vec<PageVisit> {
    let mut visits = Vec::new();
    for (number, start) in starts.iter().enumerate() {
        page_visits(&mut visits, *start, "steady", "steady", 12);
        page_visits(&mut visits, *start, "steady", "some", 6);
        page_visits(&mut visits, *start, "single", "single", 1);
        match number % 4 {
            0 => page_visits(&mut visits, *start, "again", "again", 5),
            1 => page_visits(&mut visits, *start, "late", "late", 7),
            _ => {}
        }
        if number == 0 {
            page_visits(&mut visits, *start, "sudden", "sudden", 9);
        }
    }
    visits
}

/// Visits to many pages of which each is found half of the time, and to one that always is.
fn even_visits_of(starts: &[Timestamp]) -> Vec<PageVisit> {
    let mut visits = Vec::new();
    for start in starts {
        page_visits(&mut visits, *start, "steady", "steady", 300);
        for page in 0..20 {
            let page = format!("even {page}");
            page_visits(&mut visits, *start, &page, &page, EVEN_USERS);
        }
    }
    visits
}

/// Sends visits to the input of a setup, a few thousand a message: in turn to both partitions, and every third to both.
fn send_visits(setup: &Setup, visits: &[PageVisit]) {
    let producer = setup.producer(&[("enable.idempotence", "true")]);
    for visits in visits.chunks(5000) {
        for (partition, place) in [(0, 0), (1, 1)] {
            let mut own = Vec::new();
            for (number, visit) in visits.iter().enumerate() {
                if number % 2 == place || number % 3 == 0 {
                    own.push(visit);
                }
            }
            let payload = visits_stream(&own);
            let record = BaseRecord::<(), _>::to(&setup.input).partition(partition);
            let sent = producer.send(record.payload(&payload));
            sent.map_err(|(error, _)| error).expect("it is queued");
        }
    }
    producer.flush(PATIENCE).expect("the broker takes it");
}

/// What a table must have where noise moves no count by a half: `before` is the list before the window.
fn expected_table(
    visits: &[PageVisit],
    window: Span,
    keep: Duration,
    before: &BTreeMap<String, Timestamp>,
) -> BTreeMap<String, PublishedKey> {
    let mut users: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for visit in visits {
        let micros = visit.micros;
        if (window.start.micros()..window.end.micros()).contains(&micros) {
            users.entry(&visit.page).or_default().insert(&visit.user);
        }
    }
    let mut pages: BTreeSet<&str> = users.keys().copied().collect();
    pages.extend(before.keys().map(String::as_str));
    let mut table = BTreeMap::new();
    for page in pages {
        let announced = before.get(page).filter(|until| **until > window.start);
        let count = users.get(page).map_or(0, BTreeSet::len);
        let renewed = (count > 1).then(|| window.end.plus(keep));
        if let Some(until) = renewed.or(announced.copied()) {
            let published = PublishedKey {
                users: count as f64,
                is_new: announced.is_none(),
                until,
            };
            table.insert(page.to_owned(), published);
        }
    }
    table
}

/// The one version of each window that is on the output of a setup, in their order.
fn all_tables(setup: &Setup) -> Vec<Synopsis> {
    let mut versions: BTreeMap<Timestamp, BTreeSet<Vec<u8>>> = BTreeMap::new();
    for published in setup.published() {
        let synopsis = Synopsis::decode_message(&published.payload).expect("a synopsis");
        let window = synopsis.description().window;
        // A ledger begins when it is made, which may be before the first window that has records.
        if window.end > setup.origin {
            versions
                .entry(window.start)
                .or_default()
                .insert(published.payload);
        }
    }
    let mut tables = Vec::new();
    for (start, versions) in versions {
        assert_eq!(versions.len(), 1, "{start} was drawn twice");
        for bytes in versions {
            tables.push(Synopsis::decode_message(&bytes).expect("a synopsis"));
        }
    }
    tables
}

/// The keys of a table and until when they are announced: the list that it leaves.
fn list_after(synopsis: &Synopsis) -> BTreeMap<String, Timestamp> {
    let published = published_keys(synopsis);
    published
        .into_iter()
        .map(|(key, published)| (key, published.until))
        .collect()
}

/// Checks that each table has the keys as announced that the one before it has left, and no other: whatever was drawn beside them.
fn assert_continuous(tables: &[Synopsis]) {
    let mut before: BTreeMap<String, Timestamp> = BTreeMap::new();
    for synopsis in tables {
        let window = synopsis.description().window;
        let mut announced = BTreeSet::new();
        for (key, until) in &before {
            if *until > window.start {
                announced.insert(key.clone());
            }
        }
        let mut told = BTreeSet::new();
        for (key, published) in published_keys(synopsis) {
            if !published.is_new {
                told.insert(key);
            }
        }
        assert_eq!(told, announced, "{window:?}");
        before = list_after(synopsis);
    }
}

/// Checks tables against a plain count of the visits.
fn assert_exact(tables: &[Synopsis], visits: &[PageVisit], keep: Duration) {
    let mut before = BTreeMap::new();
    for synopsis in tables {
        let window = synopsis.description().window;
        let expected = expected_table(visits, window, keep, &before);
        assert_eq!(exact_keys(synopsis), expected, "{window:?}");
        before = list_after(synopsis);
    }
}

/// What `bernstream keys` says under a configuration.
fn listed_keys(setup: &Setup, configuration: &Path) -> String {
    let mut command = setup.bernstream(&["keys"]);
    let listed = command.arg(configuration).output().expect("it runs");
    let said = String::from_utf8_lossy(&listed.stderr).into_owned();
    assert!(listed.status.success(), "{said}");
    String::from_utf8(listed.stdout).expect("text")
}

/// Checks that a ledger has the list that the last table has left.
fn assert_listed(setup: &Setup, configuration: &Path, last: &Synopsis) {
    let listed = listed_keys(setup, configuration);
    let mut told = BTreeMap::new();
    for line in listed.lines() {
        let (key, rest) = line.split_once("  since ").expect("a key");
        let (_, until) = rest.split_once(", until ").expect("a time");
        told.insert(key.to_owned(), Timestamp::parse(until).expect("a time"));
    }
    let mut left = list_after(last);
    left.retain(|_, until| *until > last.description().window.end);
    assert_eq!(told, left);
}

/// Number of windows that the ledger of a setup has paid for.
fn paid_windows(setup: &Setup) -> usize {
    let settings = WorkerSettings::load(&setup.configuration()).expect("settings");
    let ledger = Ledger::open(&settings.ledger).expect("its ledger");
    let rows = ledger.rows().expect("rows");
    let of_windows = rows
        .iter()
        .filter(|row| matches!(row.row, LedgerRow::Window(_)));
    of_windows.count()
}

/// Windows of the tests in which a worker dies.
const FEW: u32 = 4;

/// What the visits of a test are, and what becomes of the disk of the worker that dies.
#[derive(Clone, Copy, Debug)]
struct DeathScene {
    step: &'static str,
    is_exact: bool,
    is_disk_lost: bool,
}

impl DeathScene {
    /// Kills a worker at a step, and the one that is started after it, and checks what the third one leaves.
    fn play(self, servers: &str) {
        let setup = Setup::new(servers, FEW);
        let epsilon = if self.is_exact { EXACT } else { NOISY };
        pages_of_users(epsilon, "2m").configure(&setup);
        if self.is_disk_lost {
            add_log(&setup, 1);
        }
        let starts: Vec<Timestamp> = (0..FEW).map(|window| setup.start_of(window)).collect();
        let visits = match self.is_exact {
            true => visits_of(&starts),
            false => even_visits_of(&starts),
        };
        send_visits(&setup, &visits);
        setup.begin(Duration::from_millis(500));
        assert!(dies_at(&setup, self.step, 1), "{self:?} is passed");
        self.rest(&setup);
        dies_at(&setup, self.step, 2);
        self.rest(&setup);
        let ended = setup.start().wait().expect("it ends");
        assert!(ended.success(), "{self:?}: {}", setup.read_log());
        let tables = all_tables(&setup);
        assert_eq!(tables.len(), FEW as usize, "{self:?}");
        assert_continuous(&tables);
        match self.is_exact {
            true => assert_exact(&tables, &visits, Duration::from_secs(120)),
            false => assert!(tables.iter().any(|table| found_of(table).new_keys() > 1)),
        }
        let last = tables.last().expect("a table");
        assert_listed(&setup, &setup.configuration(), last);
        let verified = setup.ledger_command(&["verify"]);
        assert!(verified.status.success(), "{self:?}: {verified:?}");
        assert_eq!(paid_windows(&setup), FEW as usize, "{self:?}");
        if self.is_disk_lost {
            // Without a window: all are there.
            fs::remove_dir_all(setup.ledger()).expect("the disk is lost");
            let restored = setup.ledger_command(&["restore"]);
            assert!(restored.status.success(), "{self:?}: {restored:?}");
            assert_listed(&setup, &setup.configuration(), last);
        }
    }

    /// What lies between two workers.
    fn rest(self, setup: &Setup) {
        match self.is_disk_lost {
            true => fs::remove_dir_all(setup.ledger()).expect("the disk is lost"),
            false => drop(grown(setup, &[])),
        }
    }
}

/// Kills a worker at each of these steps, side by side: with exact counts, with keys that each draw finds half of the time, and with a
/// disk that is lost each time.
fn kill_at_each(steps: &[&'static str]) {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let servers = &servers;
    for (is_exact, is_disk_lost) in [(true, false), (false, false), (false, true)] {
        thread::scope(|scope| {
            for step in steps.iter().copied() {
                let scene = DeathScene {
                    step,
                    is_exact,
                    is_disk_lost,
                };
                scope.spawn(move || scene.play(servers));
            }
        });
    }
}

/// Of the first worker a window is drawn and not claimed, or claimed and not out.
#[test]
fn a_worker_that_is_killed_tells_of_every_key_once_that_it_is_new() {
    kill_at_each(&["claim", "claimed"]);
}

/// Both draw the same windows, and find other keys in them.
#[test]
fn of_two_copies_of_a_disk_at_once_both_end_with_the_list_of_the_accepted_rows() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let windows = 8;
    let setup = Setup::new(&servers, windows);
    pages_of_users(NOISY, "2m").configure(&setup);
    add_log(&setup, 1);
    let starts: Vec<Timestamp> = (0..windows).map(|window| setup.start_of(window)).collect();
    send_visits(&setup, &even_visits_of(&starts));
    setup.begin(Duration::from_millis(500));
    let there = setup.folder.path().join("there");
    copy_disk(&setup.ledger(), &there);
    let text = fs::read_to_string(setup.configuration()).expect("the configuration");
    let [from, to] = [setup.ledger(), there].map(|path| path.display().to_string());
    let other = setup.folder.path().join("other.toml");
    fs::write(&other, text.replace(&from, &to)).expect("it is written");
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut beside = setup.bernstream(&["run"]);
            let ended = beside.arg(&other).output().expect("it runs");
            assert!(ended.status.success(), "{ended:?}");
        });
        let ended = setup.start().wait().expect("it ends");
        assert!(ended.success(), "{}", setup.read_log());
    });
    let tables = all_tables(&setup);
    assert_eq!(tables.len(), windows as usize);
    assert_continuous(&tables);
    let last = tables.last().expect("a table");
    for configuration in [&setup.configuration(), &other] {
        assert_listed(&setup, configuration, last);
    }
}

/// How visits are spread over partitions.
#[derive(Clone, Copy, Debug)]
enum VisitSpread {
    /// Each anywhere, another way for each seed.
    Random(u64),
    /// All in the second partition.
    OnePartition,
}

/// A topic with these visits, a window a message; each has the time of its end.
fn topic_of(servers: &str, visits: &[PageVisit], spread: VisitSpread) -> String {
    let settings = [
        ("message.timestamp.type", "CreateTime"),
        ("message.timestamp.after.max.ms", "9223372036854775807"),
    ];
    let topic = kafka::fresh_topic(servers, "pages", PARTITIONS, &settings);
    let mut messages: BTreeMap<(i64, i32), Vec<&PageVisit>> = BTreeMap::new();
    let mut random = ChaCha20Rng::seed_from_u64(match spread {
        VisitSpread::Random(seed) => seed,
        VisitSpread::OnePartition => 0,
    });
    for visit in visits {
        let partition = match spread {
            VisitSpread::Random(_) => random.random_range(0..PARTITIONS),
            VisitSpread::OnePartition => 1,
        };
        let end = visit.micros / 5_000_000 + 1;
        messages.entry((end, partition)).or_default().push(visit);
    }
    let mut config = kafka::at(servers).client_config().expect("settings");
    config.set("enable.idempotence", "true");
    let producer: ThreadedProducer<DefaultProducerContext> = config.create().expect("a producer");
    for ((end, partition), visits) in &messages {
        let payload = visits_stream(visits);
        let record = BaseRecord::<(), _>::to(&topic).partition(*partition);
        let sent = producer.send(record.payload(&payload).timestamp(5_000 * end));
        sent.map_err(|(error, _)| error).expect("it is queued");
    }
    producer.flush(PATIENCE).expect("the broker takes it");
    topic
}

/// The starts of all windows of `readers`.
fn reader_starts() -> Vec<Timestamp> {
    let minutes = (0..WINDOWS).map(|window| Duration::from_secs(60 * window.unsigned_abs()));
    minutes.map(|since| readers::origin().plus(since)).collect()
}

/// Records of two pages, of which the windows have few, as many others as are too many, too many in a part, and few again.
fn crowded_visits() -> Vec<PageVisit> {
    let mut visits = Vec::new();
    for (start, others) in reader_starts()
        .into_iter()
        .zip([10, CANDIDATES, 6 * CANDIDATES, 50])
    {
        page_visits(&mut visits, start, "steady", "steady", 40);
        page_visits(&mut visits, start, "second", "second", 30);
        for other in 0..others {
            let page = format!("other {other}");
            visits.push(page_visit(start, 100 + other, &page, &page));
        }
    }
    visits
}

/// The configuration of a worker that reads a topic of visits.
fn configuration(
    servers: &str,
    topic: &str,
    pages: &FoundPages,
    folder: &Path,
    threads: u32,
) -> String {
    late(&pages.within(&readers::configuration(servers, topic, folder, threads)))
}

/// What a worker alone publishes of these visits.
fn published_alone(
    servers: &str,
    pages: &FoundPages,
    visits: &[PageVisit],
) -> Vec<(String, Vec<u8>)> {
    let topic = topic_of(servers, visits, VisitSpread::Random(1));
    let folder = tempfile::tempdir().expect("a folder");
    let text = configuration(servers, &topic, pages, folder.path(), 1);
    let alone = published_by(&text, folder.path(), 1);
    assert_eq!(alone.len(), WINDOWS as usize);
    alone
}

/// The tables that were published, in the order of their windows.
fn tables_of(published: &[(String, Vec<u8>)]) -> Vec<Synopsis> {
    let mut tables = Vec::new();
    for (_, bytes) in published {
        tables.push(Synopsis::decode_message(bytes).expect("a synopsis"));
    }
    tables.sort_by_key(|table| table.description().window.start);
    tables
}

/// Number of partials of absorbers that were taken.
fn taken_partials(metrics: &Metrics) -> f64 {
    let shown = metrics.render_text().expect("metrics");
    let mut count = 0.0;
    for line in shown.lines() {
        if line.starts_with("bernstream_partials_total{") && line.contains("fate=\"taken\"") {
            let number = line.rsplit(' ').next().expect("a number");
            count += number.parse::<f64>().expect("a number");
        }
    }
    count
}

/// Checks that threads and absorbers publish what a worker alone has published, to the byte.
fn assert_as_alone(
    servers: &str,
    pages: &FoundPages,
    visits: &[PageVisit],
    alone: &[(String, Vec<u8>)],
) {
    let threads = 5;
    let topic = topic_of(servers, visits, VisitSpread::Random(5));
    let folder = tempfile::tempdir().expect("a folder");
    let text = configuration(servers, &topic, pages, folder.path(), threads);
    assert!(
        published_by(&text, folder.path(), threads) == alone,
        "{threads} threads"
    );
    for (absorbers, spread) in [(3, VisitSpread::Random(8)), (1, VisitSpread::OnePartition)] {
        let topic = topic_of(servers, visits, spread);
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        let text = configuration(servers, &topic, pages, folder, 1);
        let text = with_scale(&text, folder, NEVER);
        fs::write(folder.join("bernstream.toml"), &text).expect("it is written");
        let running: Vec<_> = (0..absorbers).map(|_| absorber(folder, None)).collect();
        let metrics = Metrics::new(MetricsDetail::Operator, "pages", "approximate", "");
        let metrics = metrics.expect("metrics");
        let published = published_with(&text, folder, 1, &metrics);
        drop(running);
        assert!(published == alone, "{absorbers} absorbers, {spread:?}");
        // None was read by the worker in their place.
        let taken = taken_partials(&metrics);
        assert_eq!(
            taken,
            f64::from(PARTITIONS) * WINDOWS as f64,
            "{absorbers}, {spread:?}"
        );
    }
}

#[test]
fn found_keys_do_not_depend_on_partitions_readers_and_absorbers() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let visits = visits_of(&reader_starts());
    let pages = pages_of_users(EXACT, "2m");
    let alone = published_alone(&servers, &pages, &visits);
    assert_exact(&tables_of(&alone), &visits, Duration::from_secs(120));
    assert_as_alone(&servers, &pages, &visits, &alone);
}

/// Of absorbers the parts of the second window have room for their own keys, all together have none; in the third no part has.
#[test]
fn a_window_that_is_too_full_for_keys_is_so_however_it_is_spread() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let visits = crowded_visits();
    let pages = pages_of_records();
    let alone = published_alone(&servers, &pages, &visits);
    let tables = tables_of(&alone);
    let overfull: Vec<bool> = tables
        .iter()
        .map(|table| found_of(table).is_overfull())
        .collect();
    assert_eq!(overfull, [false, true, true, false]);
    let starts = reader_starts();
    // The windows between leave the list as it is.
    for window in [0, 3] {
        let row = |users| PublishedKey {
            users,
            is_new: window == 0,
            until: starts[window].plus(Duration::from_secs(60 + 300)),
        };
        let expected = [
            ("second".to_owned(), row(30.0)),
            ("steady".to_owned(), row(40.0)),
        ];
        let expected = BTreeMap::from(expected);
        assert_eq!(exact_keys(&tables[window]), expected, "{window}");
    }
    for window in [1, 2] {
        assert!(published_keys(&tables[window]).is_empty());
    }
    assert_as_alone(&servers, &pages, &visits, &alone);
}

mod long {
    use super::*;

    #[test]
    fn a_worker_that_is_killed_at_any_step_tells_of_every_key_once_that_it_is_new() {
        kill_at_each(&STEPS);
    }

    #[test]
    fn absorbers_of_found_keys_that_are_killed_frozen_and_come_back_change_nothing() {
        let Some(servers) = kafka::broker() else {
            return;
        };
        for (pages, visits) in [
            (pages_of_users(EXACT, "2m"), visits_of(&reader_starts())),
            (pages_of_records(), crowded_visits()),
        ] {
            let alone = published_alone(&servers, &pages, &visits);
            let topic = topic_of(&servers, &visits, VisitSpread::Random(9));
            let folder = tempfile::tempdir().expect("a folder");
            let folder = folder.path();
            let text = configuration(&servers, &topic, &pages, folder, 3);
            let text = with_scale(&text, folder, "1s");
            fs::write(folder.join("bernstream.toml"), &text).expect("it is written");
            assert!(published_amid_faults(&text, folder, 3, 1) == alone);
        }
    }

    /// Two workers with windows of a second, and the records of all of them.
    struct StandbyScene {
        setup: Setup,
        visits: Vec<PageVisit>,
        windows: u32,
        is_exact: bool,
    }

    impl StandbyScene {
        /// With exact counts, or with keys that each draw finds half of the time, so that the list of another draw would show; `None` if the
        /// records were not there before the first window.
        fn begin(
            servers: &str,
            windows: u32,
            is_exact: bool,
            preparations: Duration,
        ) -> Option<Self> {
            let second = 1_000_000;
            let now = Timestamp::now().plus(preparations).micros();
            let origin = Timestamp::from_micros(now / second * second);
            let setup = Setup::quick(servers, origin, windows);
            let epsilon = if is_exact { EXACT } else { NOISY };
            pages_of_users(epsilon, "2s").configure(&setup);
            // However slow the machine is, none is late.
            setup.edit("ahead = \"1s\"", "ahead = \"1h\"");
            add_log(&setup, 1);
            setup.edit("[ledger]\n", "[ledger]\nstandby = \"2s\"\n");
            create_topics(&setup);
            let starts: Vec<Timestamp> =
                (0..windows).map(|window| setup.start_of(window)).collect();
            let visits = match is_exact {
                true => visits_of(&starts),
                false => even_visits_of(&starts),
            };
            send_visits(&setup, &visits);
            let scene = StandbyScene {
                setup,
                visits,
                windows,
                is_exact,
            };
            (Timestamp::now() < origin).then_some(scene)
        }

        /// Waits until so many more tables are on the output.
        fn wait_tables(&self, more: usize, peers: [&Peer<'_>; 2]) {
            let before = all_tables(&self.setup).len();
            wait_for(
                "tables",
                || peers.map(Peer::all_log).concat(),
                || (all_tables(&self.setup).len() >= before + more).then_some(()),
            );
        }

        /// Waits for the end of both workers, and checks what they have left.
        fn check_end(&self, mut peers: [Peer<'_>; 2]) {
            for peer in &mut peers {
                assert!(peer.end().success(), "{}", peer.all_log());
            }
            let tables = all_tables(&self.setup);
            assert_eq!(tables.len(), self.windows as usize);
            assert_continuous(&tables);
            if self.is_exact {
                assert_exact(&tables, &self.visits, Duration::from_secs(2));
            }
            let last = tables.last().expect("a table");
            for peer in &peers {
                peer.verify();
                let configuration = self.setup.folder.path().join(format!("{}.toml", peer.name));
                assert_listed(&self.setup, &configuration, last);
            }
            // A third disk, which was empty.
            let restored = self.setup.ledger_command(&["restore"]);
            assert!(restored.status.success(), "{restored:?}");
            assert_listed(&self.setup, &self.setup.configuration(), last);
        }
    }

    #[test]
    fn a_standby_that_takes_over_has_the_list_of_the_accepted_row() {
        let Some(servers) = kafka::broker() else {
            return;
        };
        for is_exact in [true, false] {
            in_time(|preparations| {
                let scene = StandbyScene::begin(&servers, 12, is_exact, preparations);
                let Some(scene) = scene else { return false };
                let (mut first, mut second) = peers(&scene.setup);
                scene.wait_tables(3, [&first, &second]);
                let (acting, following) = in_turn(&mut first, &mut second);
                acting.kill();
                following.wait_acts(true);
                acting.start();
                scene.check_end([first, second]);
                true
            });
        }
    }

    /// What it drew last is not what the row before its next window has left.
    #[test]
    fn a_worker_that_was_frozen_and_acts_again_has_the_list_of_the_accepted_row() {
        let Some(servers) = kafka::broker() else {
            return;
        };
        in_time(|preparations| {
            let scene = StandbyScene::begin(&servers, 60, false, preparations);
            let Some(scene) = scene else { return false };
            let (mut first, mut second) = peers(&scene.setup);
            scene.wait_tables(3, [&first, &second]);
            let (acting, following) = in_turn(&mut first, &mut second);
            acting.signal("-STOP");
            following.wait_acts(true);
            acting.signal("-CONT");
            acting.wait_acts(false);
            scene.wait_tables(2, [acting, following]);
            following.kill();
            acting.wait_acts(true);
            following.start();
            scene.check_end([first, second]);
            true
        });
    }
}
