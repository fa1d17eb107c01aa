//! Keys that nobody listed, by the worker on real files: what is found, when it is announced, how long it stays, and that a stop, a withheld
//! window or too many keys change nothing else. `found_keys_faults.rs` has them on a real broker, amid faults.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Output;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::{ArrayRef, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow_ipc::writer::StreamWriter;
use bernstream_config::WorkerSettings;
use bernstream_ledger::{ClosingWindow, Ledger, LedgerParams, LedgerRow};
use bernstream_noise::CandidateCounts;
use bernstream_noise::noise::Generator;
use bernstream_release::{Dequantized, Sealed};
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::description::Description;
use bernstream_synopsis::found_keys::{FoundKeys, OverfullRule};
use bernstream_synopsis::grid::Span;
use bernstream_synopsis::price::Price;
use bernstream_synopsis::{Basis, Positions, Synopsis};

use crate::running_sums::Place;

const HOUR: i64 = 3_600_000_000;
const HOURS: i64 = 12;
/// A key stays for three windows after the last that had it above the threshold.
const KEEP: i64 = 3;

/// A visit to a page.
#[derive(Clone, Debug)]
pub struct PageVisit {
    pub micros: i64,
    pub user: String,
    pub page: String,
}

/// Visits of so many users each to a page in an hour.
fn page_visits(visits: &mut Vec<PageVisit>, hour: i64, page: &str, users: i64) {
    let start = Timestamp::from_micros(hour * HOUR);
    for user in 0..users {
        visits.push(page_visit(start, user, page, page));
    }
}

/// The visit of a user, so many microseconds after the start of a window, to a page.
pub fn page_visit(start: Timestamp, number: i64, group: &str, page: &str) -> PageVisit {
    PageVisit {
        micros: start.micros() + number,
        user: format!("{group} {number}"),
        page: page.to_owned(),
    }
}

/// A page that everybody visits, one that everybody visits once, one that few visit, and names that a page should not have.
fn all_visits() -> Vec<PageVisit> {
    let mut visits = Vec::new();
    for hour in 0..HOURS {
        page_visits(&mut visits, hour, "steady", 300);
        page_visits(&mut visits, hour, "rare", 3);
        if hour == 2 {
            page_visits(&mut visits, hour, "sudden", 250);
        }
        if hour == 4 {
            for odd in ["../../x", "=1+1", "<script>", "\u{202e}abc", "\0", "a\nb"] {
                page_visits(&mut visits, hour, odd, 200);
            }
        }
    }
    visits
}

/// Visits as an Arrow stream. The place of a visit is its page under another name.
pub fn visits_stream(visits: &[&PageVisit]) -> Vec<u8> {
    let times = visits.iter().map(|visit| visit.micros);
    let times = TimestampMicrosecondArray::from_iter_values(times).with_timezone("UTC");
    let users = visits.iter().map(|visit| visit.user.as_str());
    let pages = StringArray::from_iter_values(visits.iter().map(|visit| visit.page.as_str()));
    let columns: [(&str, ArrayRef); 4] = [
        ("time", Arc::new(times)),
        ("user", Arc::new(StringArray::from_iter_values(users))),
        ("page", Arc::new(pages.clone())),
        ("place", Arc::new(pages)),
    ];
    let batch = RecordBatch::try_from_iter(columns).expect("columns");
    let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema()).expect("a writer");
    writer.write(&batch).expect("rows");
    writer.into_inner().expect("bytes")
}

fn write_visits(place: &Place, visits: &[PageVisit]) {
    let visits: Vec<&PageVisit> = visits.iter().collect();
    fs::write(place.path("in.arrows"), visits_stream(&visits)).expect("a file");
}

/// A folder with these visits.
fn place_of(visits: &[PageVisit]) -> Place {
    let place = Place::empty();
    write_visits(&place, visits);
    place
}

/// A price at which keys of 21 users are found half of the time.
const NOISY: &str = "epsilon = 1.0\ndelta = 1e-9\ncounts = { of = [\"users\"], max_keys = 1 }";
/// A price at which noise moves no count by a half: every key of two users is found, and none of one.
const EXACT: &str = "epsilon = 80.0\ndelta = 1e-9\ncounts = { of = [\"users\"], max_keys = 1 }";
const EXACT_TOTAL: &str = "epsilon = 1000.0\ndelta = 1e-6";

/// The key of a configuration, its pages found under these rules.
fn found_pages(found: &str) -> String {
    format!("{{ column = \"page\", type = \"text\", found = {found} }}")
}

/// A configuration of users that ends after so many hours.
fn of_users(hours: i64, found: &str, total: &str, release: &str) -> String {
    of_keyed_users(hours, &found_pages(found), total, release)
}

fn of_keyed_users(hours: i64, key: &str, total: &str, release: &str) -> String {
    let unit = "unit = { user = { column = \"user\", per = \"1d\" } }";
    of_unit(hours, key, &format!("{unit}\n{total}"), release)
}

/// A configuration of records that ends after so many hours, whose noise moves no count by a half.
fn of_records(hours: i64, found: &str) -> String {
    let price = "epsilon = 400.0\ndelta = 1e-8";
    of_unit(
        hours,
        &found_pages(found),
        &format!("unit = \"record\"\n{price}"),
        &format!("{price}\ncounts = {{ of = [\"records\"] }}"),
    )
}

fn of_unit(hours: i64, key: &str, privacy: &str, release: &str) -> String {
    let end = at_hour(hours);
    format!(
        "pipeline = \"p\"\n[input]\ntime = \"time\"\nkey = {key}\n\
         files = {{ path = \"in.arrows\" }}\n[windows]\norigin = \"1970-01-01T00:00:00Z\"\nlength = \"1h\"\nend = \"{end}\"\n\
         [privacy]\nadjacency = \"add_remove\"\n{privacy}\n[release]\nname = \"pages\"\n{release}\n\
         [output]\nfiles = {{ path = \"out\" }}\n[ledger]\npath = \"ledger\"\n"
    )
}

fn at_hour(hour: i64) -> Timestamp {
    Timestamp::from_micros(hour * HOUR)
}

const TOTAL: &str = "epsilon = 100.0\ndelta = 1e-6";

/// What the table of a window says of one key.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PublishedKey {
    pub users: f64,
    pub is_new: bool,
    pub until: Timestamp,
}

pub fn found_of(synopsis: &Synopsis) -> &FoundKeys {
    match &synopsis.description().basis {
        Basis::Keys(basis) => basis.found.as_ref().expect("found keys"),
        other => panic!("{other:?}"),
    }
}

pub fn published_keys(synopsis: &Synopsis) -> BTreeMap<String, PublishedKey> {
    let found = found_of(synopsis);
    let table = synopsis.key_table().expect("a table by key");
    let mut keys = BTreeMap::new();
    for (row, about) in table.rows().iter().zip(&found.rows) {
        let published = PublishedKey {
            users: row.estimates[0].value,
            is_new: about.is_new,
            until: about.until,
        };
        keys.insert(row.key.to_owned(), published);
    }
    assert_eq!(keys.len(), found.rows.len());
    keys
}

/// The same with whole users: what it is where noise moves no count by a half.
pub fn exact_keys(synopsis: &Synopsis) -> BTreeMap<String, PublishedKey> {
    let mut keys = published_keys(synopsis);
    for published in keys.values_mut() {
        // Not -0.
        published.users = published.users.round() + 0.0;
    }
    keys
}

/// A row with so many users of a key, announced until an hour.
fn key_until(users: i64, is_new: bool, hour: i64) -> PublishedKey {
    PublishedKey {
        users: users as f64,
        is_new,
        until: at_hour(hour),
    }
}

/// A table with these rows.
fn keys_of<const N: usize>(rows: [(&str, PublishedKey); N]) -> BTreeMap<String, PublishedKey> {
    rows.map(|(key, published)| (key.to_owned(), published))
        .into()
}

fn run_with(place: &Place, settings: &str) {
    fs::write(place.path("c.toml"), settings).expect("a file");
    place.run();
}

/// Slots and bytes of the states that the ledger has.
fn stored_states(place: &Place) -> Vec<(String, Vec<u8>)> {
    let file = place.path("ledger").join("ledger.sqlite");
    let connection = rusqlite::Connection::open(file).expect("a ledger");
    let mut all = connection
        .prepare("SELECT slot, bytes FROM states ORDER BY slot")
        .expect("a table");
    let all = all
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .expect("rows");
    all.collect::<Result<_, _>>().expect("slots and bytes")
}

/// The slot of the list.
const SLOT: &str = r#"["pages",null,"found"]"#;

fn stored_list(place: &Place) -> Vec<u8> {
    let states = stored_states(place);
    let [(slot, bytes)] = &states[..] else {
        panic!("one list")
    };
    assert_eq!(slot, SLOT);
    bytes.clone()
}

/// What `bernstream keys` says.
fn listed_keys(place: &Place) -> String {
    let listed = place
        .command(&["keys", "c.toml"])
        .output()
        .expect("it runs");
    assert!(listed.status.success(), "{}", said_by(&listed));
    String::from_utf8(listed.stdout).expect("text")
}

fn said_by(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The threshold at these prices is 20.6 users.
const NEAR: f64 = 21.0;

#[test]
fn keys_are_found_once_and_published_until_they_are_no_longer_above_the_threshold() {
    let place = place_of(&all_visits());
    // Stopped twice on the way: the ledger has the list.
    for hours in [1, 5, HOURS] {
        run_with(&place, &of_users(hours, "{ keep = \"3h\" }", TOTAL, NOISY));
    }
    let published = place.published("pages");
    assert_eq!(published.len(), HOURS as usize);
    for (hour, synopsis) in &published {
        let keys = published_keys(synopsis);
        let threshold = found_of(synopsis).threshold as f64 / 4096.0;
        assert!((20.0..NEAR).contains(&threshold), "{threshold}");
        // Every window has it above the threshold.
        let steady = keys["steady"];
        assert_eq!(
            (steady.is_new, steady.until),
            (*hour == 0, at_hour(hour + 1 + KEEP))
        );
        assert!((steady.users - 300.0).abs() < NEAR, "{steady:?}");
        assert!(!keys.contains_key("rare"), "{keys:?}");
        let sudden = keys.get("sudden");
        match hour {
            2 => assert!(sudden.is_some_and(|sudden| sudden.is_new && sudden.users > 200.0)),
            // It is published all the same, with nobody.
            3..=5 => assert!(
                sudden.is_some_and(|sudden| !sudden.is_new
                    && sudden.until == at_hour(3 + KEEP)
                    && sudden.users.abs() < NEAR),
                "{hour}: {keys:?}"
            ),
            _ => assert_eq!(sudden, None, "{hour}"),
        }
        let odd = keys.len() - 1 - usize::from(sudden.is_some());
        assert_eq!(odd, if (4..=7).contains(hour) { 6 } else { 0 }, "{keys:?}");
    }
    assert!(place.verify().contains("was paid for"));
    assert_eq!(
        listed_keys(&place),
        "steady  since 1970-01-01T01:00:00Z, until 1970-01-01T15:00:00Z\n"
    );
}

/// A day pays for five windows.
#[test]
fn a_withheld_window_finds_and_renews_nothing_and_its_time_passes_all_the_same() {
    let mut visits = Vec::new();
    for hour in 0..30 {
        page_visits(&mut visits, hour, "steady", 300);
        match hour {
            0 => page_visits(&mut visits, hour, "brief", 300),
            5..=23 | 25 => page_visits(&mut visits, hour, "unpaid", 300),
            _ => {}
        }
    }
    let place = place_of(&visits);
    let run_until = |hours| {
        let total = "epsilon = 5.0\ndelta = 1e-8";
        run_with(&place, &of_users(hours, "{ keep = \"22h\" }", total, NOISY));
    };
    run_until(5);
    let before = stored_list(&place);
    // Nineteen windows are withheld.
    run_until(24);
    assert!(stored_list(&place) == before);
    // Of the other one the time has passed.
    assert_eq!(
        listed_keys(&place),
        "steady  since 1970-01-01T01:00:00Z, until 1970-01-02T03:00:00Z\n"
    );
    run_until(30);
    let published = place.published("pages");
    let hours: Vec<i64> = published.keys().copied().collect();
    assert_eq!(hours, [0, 1, 2, 3, 4, 24, 25, 26, 27, 28]);
    for (hour, synopsis) in &published {
        let keys = published_keys(synopsis);
        let steady = keys["steady"];
        assert_eq!(
            (steady.is_new, steady.until),
            (*hour == 0, at_hour(hour + 1 + 22))
        );
        // Its time has passed while nothing was published.
        let brief = keys.get("brief").map(|brief| brief.until);
        assert_eq!(brief, (*hour < 5).then_some(at_hour(23)), "{hour}");
        // It is found where it is paid for, and not before.
        let unpaid = keys.get("unpaid").map(|unpaid| unpaid.is_new);
        assert_eq!(unpaid, (*hour >= 25).then_some(*hour == 25), "{hour}");
    }
    place.verify();
}

/// The most different keys that the windows of `of_records` keep in the test below.
const CANDIDATES: i64 = 2000;

/// The limits of a configuration of records.
fn limits_of(settings: &str) -> OverfullRule {
    let settings = WorkerSettings::parse(settings, "c.toml").expect("settings");
    let search = settings.key_search(&settings.releases[0]).expect("a price");
    let search = search.expect("a search");
    let test = search.overfull_test().expect("a test");
    OverfullRule {
        limit: test.limit(),
        soft_limit: test.soft_limit(),
        is_overfull: false,
    }
}

/// Visits to so many pages, one each.
fn single_visits(visits: &mut Vec<PageVisit>, hour: i64, pages: i64) {
    for page in 0..pages {
        let page = format!("single {page}");
        page_visits(visits, hour, &page, 1);
    }
}

#[test]
fn an_overfull_window_publishes_nothing_and_leaves_the_announced_keys_to_the_next_one() {
    let found = format!("{{ keep = \"4h\", candidates = {CANDIDATES} }}");
    let limits = limits_of(&of_records(1, &found));
    let soft_limit = i64::try_from(limits.soft_limit).expect("a number");
    assert!(limits.limit == 2000 && (1000..2000).contains(&soft_limit));
    let mut visits = Vec::new();
    for hour in 0..7 {
        if hour != 6 {
            page_visits(&mut visits, hour, "steady", 300);
        }
        match hour {
            0 => page_visits(&mut visits, hour, "brief", 200),
            // As many different keys as the limit, one of them new.
            1 => {
                page_visits(&mut visits, hour, "sudden", 300);
                single_visits(&mut visits, hour, CANDIDATES - 2);
            }
            3 => single_visits(&mut visits, hour, soft_limit - 1),
            4 => single_visits(&mut visits, hour, CANDIDATES + 100),
            _ => {}
        }
    }
    let place = place_of(&visits);
    let mut lists = Vec::new();
    for hours in 1..=7 {
        run_with(&place, &of_records(hours, &found));
        lists.push(stored_list(&place));
    }
    let published = place.published("pages");
    for (hour, synopsis) in &published {
        let about = found_of(synopsis);
        let is_overfull = matches!(hour, 1 | 4);
        assert_eq!(
            about.overfull,
            Some(OverfullRule {
                is_overfull,
                ..limits
            }),
            "{hour}"
        );
        let hour = *hour;
        let steady = ("steady", key_until(300, hour == 0, hour + 5));
        let brief = ("brief", key_until(0, false, 5));
        let expected = match hour {
            0 => keys_of([steady, ("brief", key_until(200, true, 5))]),
            1 | 4 => keys_of([]),
            2 | 3 => keys_of([steady, brief]),
            5 => keys_of([steady]),
            _ => keys_of([("steady", key_until(0, false, 10))]),
        };
        assert_eq!(exact_keys(synopsis), expected, "{hour}");
    }
    assert_eq!(published.len(), 7);
    assert!(lists[0] == lists[1] && lists[3] == lists[4]);
    assert!(lists[1] != lists[2]);
    place.verify();
}

/// The tables of all windows, where noise moves no count by a half.
fn exact_tables(place: &Place) -> Vec<BTreeMap<String, PublishedKey>> {
    let published = place.published("pages");
    assert!(published.keys().copied().eq(0..published.len() as i64));
    published.values().map(exact_keys).collect()
}

#[test]
fn windows_that_close_together_find_keys_as_windows_that_close_apart() {
    let visits = all_visits();
    let [together, apart] = [place_of(&visits), place_of(&visits)];
    let settings = |hours| of_users(hours, "{ keep = \"3h\" }", EXACT_TOTAL, EXACT);
    run_with(&together, &settings(HOURS));
    for hours in 1..=HOURS {
        run_with(&apart, &settings(hours));
    }
    let tables = exact_tables(&together);
    assert_eq!(tables.len(), HOURS as usize);
    // What the first window found the second one has as announced.
    assert_eq!(tables[0]["rare"], key_until(3, true, 4));
    assert_eq!(tables[1]["rare"], key_until(3, false, 5));
    assert_eq!(exact_tables(&apart), tables);
    assert_eq!(stored_list(&apart), stored_list(&together));
}

#[test]
fn of_more_keys_than_a_table_takes_those_with_the_most_users_are_published_and_stay_announced() {
    let mut visits = Vec::new();
    let hours = [
        &[("a", 10), ("b", 20), ("c", 30), ("d", 40), ("e", 50)][..],
        &[("c", 30), ("d", 40), ("e", 50), ("f", 60)],
        &[("c", 70), ("d", 1), ("e", 50)],
        &[],
    ];
    for (hour, pages) in (0..).zip(hours) {
        for (page, users) in pages {
            page_visits(&mut visits, hour, page, *users);
        }
    }
    let place = place_of(&visits);
    for hours in 1..=4 {
        let found = "{ keep = \"9h\", most = 3 }";
        run_with(&place, &of_users(hours, found, EXACT_TOTAL, EXACT));
        assert_eq!(listed_keys(&place).lines().count(), 3, "{hours}");
    }
    let tables = exact_tables(&place);
    let [first, second, third, fourth] = &tables[..] else {
        panic!("{tables:?}")
    };
    let found = [
        ("c", key_until(30, true, 10)),
        ("d", key_until(40, true, 10)),
        ("e", key_until(50, true, 10)),
    ];
    assert_eq!(*first, keys_of(found));
    // A new key pushes out an announced one, which is then announced no more.
    let pushed = [
        ("d", key_until(40, false, 11)),
        ("e", key_until(50, false, 11)),
        ("f", key_until(60, true, 11)),
    ];
    assert_eq!(*second, keys_of(pushed));
    // One that is announced and has one user, which is not above the threshold, keeps its time.
    let came_back = [
        ("c", key_until(70, true, 12)),
        ("d", key_until(1, false, 11)),
        ("e", key_until(50, false, 12)),
    ];
    assert_eq!(*third, keys_of(came_back));
    let empty = [
        ("c", key_until(0, false, 12)),
        ("d", key_until(0, false, 11)),
        ("e", key_until(0, false, 12)),
    ];
    assert_eq!(*fourth, keys_of(empty));
}

/// A place whose first two windows have found two keys, one of which has no visits any more.
fn begun_place() -> Place {
    let mut visits = Vec::new();
    for hour in 0..6 {
        page_visits(&mut visits, hour, "steady", 300);
        if hour == 0 {
            page_visits(&mut visits, hour, "brief", 200);
        }
    }
    let place = place_of(&visits);
    run_with(
        &place,
        &of_users(2, "{ keep = \"9h\" }", EXACT_TOTAL, EXACT),
    );
    place
}

/// The table of the third window under other settings than the two before.
fn third_table(settings: &str) -> BTreeMap<String, PublishedKey> {
    let place = begun_place();
    run_with(&place, settings);
    place.verify();
    exact_tables(&place)[2].clone()
}

#[test]
fn another_key_or_length_begins_an_empty_list_and_other_settings_go_on_with_it() {
    let anew = keys_of([("steady", key_until(300, true, 12))]);
    let longer = of_users(3, "{ keep = \"9h\", longest = 100 }", EXACT_TOTAL, EXACT);
    assert_eq!(third_table(&longer), anew);
    let other = found_pages("{ keep = \"9h\" }").replace("page", "place");
    let other = of_keyed_users(3, &other, EXACT_TOTAL, EXACT);
    assert_eq!(third_table(&other), anew);

    let brief = ("brief", key_until(0, false, 10));
    let steady = ("steady", key_until(300, false, 12));
    let more_keys = EXACT.replace("max_keys = 1", "max_keys = 2");
    let more_keys = of_users(3, "{ keep = \"9h\" }", EXACT_TOTAL, &more_keys);
    assert_eq!(third_table(&more_keys), keys_of([brief, steady]));
    let one = of_users(3, "{ keep = \"9h\", most = 1 }", EXACT_TOTAL, EXACT);
    assert_eq!(third_table(&one), keys_of([steady]));
    // What is announced keeps its time, and what is announced anew gets the new one.
    let shorter = of_users(3, "{ keep = \"2h\" }", EXACT_TOTAL, EXACT);
    let shortened = ("steady", key_until(300, false, 5));
    assert_eq!(third_table(&shorter), keys_of([brief, shortened]));
}

/// Slots whose states were given up, by the rows of the ledger.
fn ended_slots(place: &Place) -> Vec<String> {
    let ledger = Ledger::open(&ledger_params(place)).expect("a ledger");
    let mut ended = Vec::new();
    for stored in ledger.rows().expect("rows") {
        if let LedgerRow::Configuration(configuration) = stored.row {
            ended.extend(configuration.ended);
        }
    }
    ended
}

fn ledger_params(place: &Place) -> LedgerParams {
    LedgerParams {
        path: place.path("ledger"),
        keep_published: Duration::ZERO,
    }
}

#[test]
fn keys_that_are_listed_after_all_leave_no_list_and_a_later_search_begins_anew() {
    let place = begun_place();
    let listed = "{ column = \"page\", type = \"text\", values = [\"steady\", \"other\"] }";
    let release = "epsilon = 80.0\ncounts = { of = [\"users\"], max_keys = 1 }";
    run_with(&place, &of_keyed_users(4, listed, EXACT_TOTAL, release));
    assert!(stored_states(&place).is_empty());
    assert_eq!(ended_slots(&place), [SLOT]);
    let published = place.published("pages");
    let synopsis = &published[&3];
    let Basis::Keys(basis) = &synopsis.description().basis else {
        panic!("a table by key")
    };
    assert!(basis.found.is_none() && basis.keys == ["steady", "other"]);
    let table = synopsis.key_table().expect("a table by key");
    let users: Vec<f64> = table
        .rows()
        .iter()
        .map(|row| row.estimates[0].value.round())
        .collect();
    assert_eq!(users, [300.0, 0.0]);

    run_with(
        &place,
        &of_users(6, "{ keep = \"9h\" }", EXACT_TOTAL, EXACT),
    );
    let published = place.published("pages");
    let anew = keys_of([("steady", key_until(300, true, 14))]);
    assert_eq!(exact_keys(&published[&4]), anew);
    let on = keys_of([("steady", key_until(300, false, 15))]);
    assert_eq!(exact_keys(&published[&5]), on);
    place.verify();
}

/// A release may change from one to the other and keep its name.
#[test]
fn a_running_sum_and_a_list_do_not_take_the_state_of_each_other_for_their_own() {
    let place = begun_place();
    let listed = "{ column = \"page\", type = \"text\", values = [\"steady\"] }";
    let sum = "epsilon = 80.0\nwindows = { cumulative = \"1000h\" }\ncounts = { of = [\"records\"], max_keys = 1, max_records = 1 }";
    run_with(&place, &of_keyed_users(4, listed, EXACT_TOTAL, sum));
    let slots: Vec<String> = stored_states(&place)
        .into_iter()
        .map(|(slot, _)| slot)
        .collect();
    assert_eq!(slots, [r#"["pages",null]"#]);
    let published = place.published("pages");
    let table = published[&3].key_table().expect("a table by key");
    let records = table.rows()[0].estimates[0].value;
    assert!((590.0..610.0).contains(&records), "{records}");

    run_with(
        &place,
        &of_users(6, "{ keep = \"9h\" }", EXACT_TOTAL, EXACT),
    );
    assert_eq!(ended_slots(&place), [SLOT, r#"["pages",null]"#]);
    let published = place.published("pages");
    let anew = keys_of([("steady", key_until(300, true, 14))]);
    assert_eq!(exact_keys(&published[&4]), anew);
    place.verify();
}

/// Checks that a worker whose list cannot be trusted ends with these words and does not publish the window of an hour, and that `bernstream
/// keys` says them too.
fn assert_refused(place: &Place, next: i64, words: &str) {
    let settings = of_users(4, "{ keep = \"9h\" }", EXACT_TOTAL, EXACT);
    fs::write(place.path("c.toml"), settings).expect("a file");
    for command in ["run", "keys"] {
        let output = place.command(&[command, "c.toml"]).output();
        let output = output.expect("it runs");
        let said = said_by(&output);
        let code = output.status.code();
        assert!(code.is_some_and(|code| code != 0 && code != 101), "{said}");
        assert!(said.contains(words) && !said.contains("panic"), "{said}");
    }
    let published = place.published("pages");
    assert!(published.keys().all(|hour| *hour < next));
}

#[test]
fn a_damaged_list_stops_the_worker_with_words() {
    for change in [
        "UPDATE states SET bytes = x'7b7d'",
        "UPDATE states SET bytes = CAST(replace(CAST(bytes AS TEXT), 'brief', 'other') AS BLOB)",
        "UPDATE states SET sequence = sequence - 1",
        "DELETE FROM states",
    ] {
        let place = begun_place();
        let file = place.path("ledger").join("ledger.sqlite");
        let connection = rusqlite::Connection::open(file).expect("a ledger");
        assert_eq!(connection.execute(change, []).expect("a change"), 1);
        drop(connection);
        let words = "the state [\"pages\",null,\"found\"], which later windows continue, is not the one that row 2 wrote";
        assert_refused(&place, 2, words);
        let verify = &["ledger", "verify", "c.toml"];
        let verified = place.command(verify).output().expect("it runs");
        let said = said_by(&verified);
        assert!(!verified.status.success() && said.contains(words), "{said}");
    }
}

/// A row that wrote something else in the place of the list.
#[test]
fn what_is_no_list_stops_the_worker_with_words() {
    let place = begun_place();
    let text = fs::read_to_string(place.path("c.toml")).expect("a file");
    let settings = WorkerSettings::parse(&text, "c.toml").expect("settings");
    let release = &settings.releases[0];
    let search = settings.key_search(release).expect("a price");
    let announced = ["brief", "steady"].map(str::to_owned).into();
    let outcome = search.expect("a search").search_keys(
        &CandidateCounts::new(BTreeMap::new(), false),
        &announced,
        &mut Generator::frozen([5; 32]),
    );
    let function = &release.function;
    let values = Dequantized::from_noisy(&outcome.noisy, &*function.target, function.scaling);
    let mut ledger = Ledger::open(&ledger_params(&place)).expect("a ledger");
    let window = Span {
        start: ledger.next_window(),
        end: at_hour(3),
    };
    let about = Description {
        window,
        ..place.published("pages")[&1].description().clone()
    };
    let day = Span {
        start: at_hour(0),
        end: at_hour(24),
    };
    let price = Price::Approximate {
        epsilon: "80".parse().expect("a number"),
        delta: "0.000000001".parse().expect("a number"),
    };
    ledger
        .pay_window(ClosingWindow {
            window,
            publish_at: window.end,
            charges: vec![(day, price)],
            ends: Positions::default(),
            sealed: vec![Sealed::new(about, values).expect("a table")],
            states: vec![(SLOT.to_owned(), b"no list".to_vec())],
        })
        .expect("a row");
    drop(ledger);
    assert_refused(
        &place,
        3,
        "the list of announced keys in the ledger cannot be read",
    );
}

/// The commands of the page, on real flights.
#[test]
fn the_airlines_of_an_airport_are_found_without_a_list() {
    let place = Place::empty();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    fs::create_dir(place.path("tests")).expect("a folder");
    for folder in ["config", "tests/data"] {
        std::os::unix::fs::symlink(root.join(folder), place.path(folder)).expect("a link");
    }
    let said = |arguments: &[&str]| {
        let output = place.command(arguments).output().expect("it runs");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {errors}");
        String::from_utf8(output.stdout).expect("text")
    };
    let file = "config/flights-carriers.toml";
    let explained = said(&["explain", file]);
    assert!(
        explained.contains("half of the keys with 20.7 records"),
        "{explained}"
    );
    said(&["run", file]);
    let day = "out/flights-carriers/flights-carriers/flights/2013-06-18T050000Z.arrows";
    let table = said(&["query", day]);
    // 143 flights that day; Hawaiian has one a day.
    assert!(table.contains("EWR     UA"), "{table}");
    assert!(!table.contains("HA"), "{table}");
    let listed = said(&["keys", file]);
    assert!(
        listed.contains("EWR/UA  since 2013-01-02T05:00:00Z"),
        "{listed}"
    );
    let pinned = said(&["keys", file, "--pin"]);
    assert!(
        pinned.starts_with("values = [") && pinned.contains("[\"EWR\", \"UA\"],"),
        "{pinned}"
    );
}

#[test]
fn what_cannot_find_keys_is_refused_with_what_to_do() {
    let users = of_users(1, "{}", EXACT_TOTAL, EXACT);
    let records = of_records(1, "{}");
    let refused = |text: &str, change: [&str; 2], words: &[&str]| {
        let [from, to] = change;
        assert!(text.contains(from), "{from}: {text}");
        let fault = WorkerSettings::parse(&text.replace(from, to), "c.toml");
        let fault = fault.expect_err(to).to_string();
        for word in words {
            assert!(fault.contains(word), "{word}: {fault}");
        }
    };
    for (from, to, words) in [
        (
            "found = {}",
            "found = { keep = \"3000000d\" }",
            ["at most 3660d", "found.keep"],
        ),
        (
            "found = {}",
            "found = { keep = \"1500ms\" }",
            ["whole number of seconds", "found.keep"],
        ),
        (
            "found = {}",
            "found = { most = 0 }",
            ["from 1 to 100000", "found.most"],
        ),
        (
            "found = {}",
            "found = { candidates = 9 }",
            ["at most max_keys of each user", "remove"],
        ),
        (
            "found = {}",
            "found = {}, values = [\"a\"]",
            ["keys are found", "remove"],
        ),
        (
            "[\"users\"]",
            "[\"users\", \"records\"]",
            ["by their number of users", "of = [\"users\"]"],
        ),
        (
            "\"add_remove\"",
            "{ replace_one = { records_per_window = 9 } }",
            ["replace", ""],
        ),
    ] {
        refused(&users, [from, to], &words);
    }
    for (from, to, words) in [
        (
            "delta = 1e-8",
            "delta = 1e-12",
            ["used up by the private test", "give more"],
        ),
        (
            "found = {}",
            "found = { candidates = 100 }",
            ["too low", "raise `candidates`"],
        ),
        (
            "delta = 1e-8",
            "",
            [
                "cannot be found at a price without `delta`",
                "delta = 1e-9, say",
            ],
        ),
    ] {
        refused(&records, [from, to], &words);
    }
}
