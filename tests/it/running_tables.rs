//! Running sums of tables by key, by the worker on real files: what is counted of each window, that a sum goes on after a stop and a change
//! of other releases, that other keys begin a new one, and that its intervals hold.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_ipc::writer::StreamWriter;
use bernstream_synopsis::Synopsis;
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::description::PanesKind;
use bernstream_synopsis::key_table::KeyReading;
use bernstream_synopsis::tables::Estimate;
use rand::rngs::ChaCha20Rng;
use rand::{RngExt, SeedableRng};

use crate::running_sums::Place;

const HOUR: i64 = 3_600_000_000;
/// Hours of all visits: fifteen periods of a user.
const HOURS: i64 = 30;
/// Most visits of a user and key that count in an hour.
const CAP: usize = 2;
/// Bounds of the sum of a user and key in an hour.
const SUMS: Range<f64> = -5.0..12.0;

#[derive(Clone, Debug)]
struct Visit {
    micros: i64,
    user: i64,
    key: String,
    value: f64,
}

/// Visits of ten users of three keys, in the order of time, some of them more often in an hour than counts.
fn visits() -> Vec<Visit> {
    let mut random = ChaCha20Rng::seed_from_u64(8);
    let mut visits = Vec::new();
    for _ in 0..3000 {
        visits.push(Visit {
            micros: random.random_range(0..HOURS * HOUR),
            user: random.random_range(0..10),
            key: ["a", "b", "c"][random.random_range(0..3)].to_owned(),
            value: random.random_range(-12.0..12.0),
        });
    }
    visits.sort_by_key(|visit| visit.micros);
    visits
}

fn write_visits(place: &Place, visits: &[Visit]) {
    let times: Int64Array = visits.iter().map(|visit| visit.micros).collect();
    let times = arrow_array::TimestampMicrosecondArray::from(times.values().to_vec());
    let users: Int64Array = visits.iter().map(|visit| visit.user).collect();
    let keys = StringArray::from_iter_values(visits.iter().map(|visit| &visit.key));
    let values: Float64Array = visits.iter().map(|visit| Some(visit.value)).collect();
    let columns: [(&str, ArrayRef); 4] = [
        ("time", Arc::new(times.with_timezone("UTC"))),
        ("user", Arc::new(users)),
        ("key", Arc::new(keys)),
        ("value", Arc::new(values)),
    ];
    let batch = RecordBatch::try_from_iter(columns).expect("columns");
    let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema()).expect("a writer");
    writer.write(&batch).expect("rows");
    let bytes = writer.into_inner().expect("bytes");
    fs::write(place.path("in.arrows"), bytes).expect("a file");
}

/// A configuration that ends after so many hours.
fn write_settings(place: &Place, hours: i64, keys: &str, privacy: &str, releases: &str) {
    let end = Timestamp::from_micros(hours * HOUR);
    let text = format!(
        "pipeline = \"p\"\n[input]\ntime = \"time\"\nkey = {{ column = \"key\", type = \"text\", values = [{keys}] }}\n\
         files = {{ path = \"in.arrows\" }}\n[windows]\norigin = \"1970-01-01T00:00:00Z\"\nlength = \"1h\"\nend = \"{end}\"\n\
         [privacy]\nadjacency = \"add_remove\"\n{privacy}\n{releases}\n[output]\nfiles = {{ path = \"out\" }}\n\
         [ledger]\npath = \"ledger\"\n"
    );
    fs::write(place.path("c.toml"), text).expect("a file");
}

const USERS: &str =
    "unit = { user = { column = \"user\", type = \"integer\", per = \"2h\" } }\nrho = 1000";

/// So large a price that the noise is a few records, and a wrong sum shows.
const MEANS: &str = r#"
[[release]]
name = "means"
windows = { cumulative = "100h" }
rho = 200
noise = "gaussian"
[release.counts]
of = ["records", "sum", "mean"]
max_keys = 3
max_records = 2
value = { column = "value", min = -10, max = 10, outside = "clamp" }
"#;

const SUMS_OF_USERS: &str = r#"
[[release]]
name = "sums"
windows = { cumulative = "100h" }
epsilon = 250
[release.counts]
of = ["records", "sum"]
max_keys = 3
max_records = 2
value = { column = "value", min = -10, max = 10, outside = "clamp" }
per_user = { min = -5, max = 12 }
"#;

/// What is kept of the visits of a key: the caps are for each hour.
#[derive(Debug, Default)]
struct KeptVisits {
    records: f64,
    /// Of the values of those records: of more than count the mean of all.
    sum: f64,
    /// Of the sums of users, each within its bounds.
    of_users: f64,
}

fn kept_visits(visits: &[Visit], key: &str, hours: Range<i64>) -> KeptVisits {
    let mut values: BTreeMap<(i64, i64), Vec<f64>> = BTreeMap::new();
    for visit in visits.iter().filter(|visit| visit.key == key) {
        let hour = visit.micros / HOUR;
        if hours.contains(&hour) {
            let values = values.entry((hour, visit.user)).or_default();
            values.push(visit.value.clamp(-10.0, 10.0));
        }
    }
    let mut kept = KeptVisits::default();
    for values in values.into_values() {
        let sum: f64 = values.iter().sum();
        let counted = values.len().min(CAP) as f64;
        kept.records += counted;
        kept.sum += counted * sum / values.len() as f64;
        kept.of_users += sum.clamp(SUMS.start, SUMS.end);
    }
    kept
}

fn estimate(synopsis: &Synopsis, key: &str, reading: KeyReading) -> Estimate {
    let table = synopsis.key_table().expect("a table by key");
    let mut readings = table.readings().iter();
    let at = readings.position(|known| *known == reading).expect("it");
    table.row_of(key).expect("a row").estimates[at]
}

fn assert_kept(synopsis: &Synopsis, visits: &[Visit], hours: Range<i64>) {
    for key in ["a", "b", "c"] {
        let kept = kept_visits(visits, key, hours.clone());
        let is_of_users = synopsis.description().release == "sums";
        let sum = if is_of_users { kept.of_users } else { kept.sum };
        let mut expected = vec![(KeyReading::Records, kept.records), (KeyReading::Sum, sum)];
        if !is_of_users {
            expected.push((KeyReading::Mean, kept.sum / kept.records));
        }
        for (reading, exact) in expected {
            let found = estimate(synopsis, key, reading);
            let Some(interval) = found.interval else {
                assert!(reading == KeyReading::Mean && hours.end - hours.start < 3);
                continue;
            };
            // More than five deviations, which are small.
            let half_width = (interval.upper - interval.lower) / 2.0;
            assert!(
                (found.value - exact).abs() < 2.7 * half_width,
                "{key} {hours:?} {reading:?}: {found:?} {exact}"
            );
            let most = if reading == KeyReading::Sum {
                30.0
            } else {
                4.0
            };
            assert!(half_width < most, "{key} {hours:?} {reading:?}: {found:?}");
        }
    }
}

#[test]
fn a_table_adds_up_what_the_caps_leave_of_each_hour_and_goes_on_where_it_was_stopped() {
    let place = Place::empty();
    let visits = visits();
    write_visits(&place, &visits);
    let keys = r#""a", "b", "c""#;
    let both = [MEANS, SUMS_OF_USERS].concat();
    for hours in [1, 7, 8] {
        write_settings(&place, hours, keys, USERS, &both);
        place.run();
    }
    // The other release is given up; this one is still the same.
    write_settings(&place, HOURS, keys, USERS, MEANS);
    for command in ["check --offline", "run"] {
        let said = said(&place, command);
        assert!(
            said.contains("no longer in the file") && !said.contains("starts over"),
            "{said}"
        );
    }
    let means = place.published("means");
    let sums = place.published("sums");
    assert_eq!((means.len(), sums.len()), (HOURS as usize, 8));
    for (hour, synopsis) in means.iter().chain(&sums) {
        assert_kept(synopsis, &visits, 0..hour + 1);
        let about = synopsis.description();
        let panes = about.panes.expect("panes");
        assert_eq!(
            (about.window.start.micros(), panes.over, panes.step),
            (0, PanesKind::Cumulative, Some(*hour as u64)),
            "{hour}"
        );
        assert_eq!(panes.newest.start.micros(), hour * HOUR);
        assert!(about.key.is_none());
    }
    // In all, the caps have left something out, and in each hour by itself: a cap on the whole would leave out nearly everything.
    let of_all = |key: &str| visits.iter().filter(|visit| visit.key == key).count() as f64;
    let kept = kept_visits(&visits, "a", 0..HOURS).records;
    assert!(
        kept < 0.9 * of_all("a") && kept > 0.5 * of_all("a"),
        "{kept}"
    );
    assert!(place.verify().contains("was paid for"));
}

const STARTS_OVER: &str = "the running sum of release \"means\" starts over with the next window, without the records before it";

/// Everything that a command says of the configuration, with the quotes of a log as they are.
fn said(place: &Place, command: &str) -> String {
    let arguments: Vec<&str> = command.split(' ').chain(["c.toml"]).collect();
    let output = place.command(&arguments).output().expect("it runs");
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success(), "{said:?}");
    String::from_utf8(said).expect("text").replace("\\\"", "\"")
}

/// The rows of a table are those of its keys: with other keys, or in another order, it is another sum. A unit pays no hour twice.
#[test]
fn another_list_of_keys_begins_a_new_sum() {
    for keys in [r#""c", "a", "b""#, r#""a", "b", "c", "d""#] {
        let place = Place::empty();
        let visits = visits();
        write_visits(&place, &visits);
        write_settings(&place, 5, r#""a", "b", "c""#, USERS, MEANS);
        place.run();
        write_settings(&place, 9, keys, USERS, MEANS);
        assert!(said(&place, "check --offline").contains(STARTS_OVER));
        assert!(said(&place, "run").contains(STARTS_OVER));
        for (hour, synopsis) in place.published("means") {
            let first = if hour < 5 { 0 } else { 5 };
            let about = synopsis.description();
            assert_eq!(about.window.start.micros(), first * HOUR, "{hour}");
            let step = about.panes.expect("panes").step;
            assert_eq!(step, Some((hour - first) as u64));
            assert_kept(&synopsis, &visits, first..hour + 1);
        }
        place.verify();
    }
}

/// Keys of a table whose noise is not small: each is a draw.
const MANY: usize = 2000;

const OF_RECORDS: &str = r#"
[[release]]
name = "laplace"
windows = { cumulative = "100h" }
epsilon = 1
counts = { of = ["records", "mean"], value = { column = "value", min = -10, max = 10, outside = "clamp" } }

[[release]]
name = "gaussian"
windows = { cumulative = "100h" }
rho = 0.5
noise = "gaussian"
counts = { of = ["records", "mean"], value = { column = "value", min = -10, max = 10, outside = "clamp" } }
"#;

/// Of 2,000 keys, 95 % or a little more; their deviation is 0.5 %.
#[test]
fn intervals_of_what_is_published_hold_in_the_first_hour_and_in_later_ones() {
    let place = Place::empty();
    let mut random = ChaCha20Rng::seed_from_u64(9);
    let mut visits = Vec::new();
    let mut records = vec![0.0; MANY];
    let mut sums = vec![0.0; MANY];
    for hour in 0..HOURS {
        for key in 0..MANY {
            // All in the first hour but for a few.
            let is_here = hour == 0 || (hour + key as i64) % 10 == 0;
            for visit in 0..if hour == 0 { 20 + key as i64 % 60 } else { 1 } {
                if is_here {
                    visits.push(Visit {
                        micros: hour * HOUR + visit,
                        user: 0,
                        key: format!("k{key}"),
                        value: f64::from(random.random_range(-10..=10)),
                    });
                }
            }
        }
    }
    write_visits(&place, &visits);
    let keys: Vec<String> = (0..MANY).map(|key| format!("\"k{key}\"")).collect();
    let privacy = "unit = \"record\"\nrho = 1";
    write_settings(&place, HOURS, &keys.join(", "), privacy, OF_RECORDS);
    place.run();
    let mut next = 0;
    for hour in 0..HOURS {
        while next < visits.len() && visits[next].micros / HOUR == hour {
            let key: usize = visits[next].key[1..].parse().expect("a number");
            records[key] += 1.0;
            sums[key] += visits[next].value;
            next += 1;
        }
        if ![0, 9, 29].contains(&hour) {
            continue;
        }
        for release in ["laplace", "gaussian"] {
            let published = place.published(release);
            let table = published[&hour].key_table().expect("a table by key");
            let readings = table.readings().to_vec();
            for (at, reading) in readings.iter().enumerate() {
                let mut held = 0;
                let mut held_by_less = 0;
                for (key, row) in table.rows().iter().enumerate() {
                    let exact = match reading {
                        KeyReading::Records => records[key],
                        KeyReading::Sum => sums[key],
                        _ => sums[key] / records[key],
                    };
                    let Estimate { value, interval } = row.estimates[at];
                    // What is unknown is not excluded.
                    let is_held = interval.is_none_or(|interval| {
                        (interval.lower - 1e-9..=interval.upper + 1e-9).contains(&exact)
                    });
                    let is_held_by_less = interval.is_some_and(|interval| {
                        (exact - value).abs() < (interval.upper - interval.lower) / 3.0
                    });
                    held += usize::from(is_held);
                    held_by_less += usize::from(is_held_by_less);
                }
                println!("{release} {hour} {reading:?}: {held} of {MANY}, {held_by_less} by less");
                assert!(
                    held > MANY * 92 / 100,
                    "{release} {hour} {reading:?}: {held}"
                );
                // Of a third less: a wrong deviation shows.
                if *reading != KeyReading::Mean {
                    assert!(
                        held < MANY * 99 / 100 && held_by_less < MANY * 89 / 100,
                        "{release} {hour} {reading:?}: {held} {held_by_less}"
                    );
                }
            }
        }
    }
    place.verify();
}

/// How far off the first sum is and the last, in records.
#[test]
fn explain_tells_the_error_of_a_table_as_the_sum_grows() {
    let place = Place::empty();
    write_settings(
        &place,
        HOURS,
        r#""a", "b""#,
        "unit = \"record\"\nrho = 1",
        OF_RECORDS,
    );
    let output = place
        .command(&["explain", "c.toml"])
        .output()
        .expect("it runs");
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{told}");
    for line in [
        "of the first sum, of each key 95 % of windows are within",
        "the errors above are those of the first sum; the largest so far:",
        "windows    records      relative to the first",
    ] {
        assert!(told.contains(line), "{line}: {told}");
    }
    assert!(!told.contains("largest effects of a unit"), "{told}");
}
