//! What is not listed counts under a name, from the configuration to what readers see.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use bernstream_config::WorkerSettings;
use bernstream_config::diff::setting_differences;
use bernstream_synopsis::Synopsis;
use serde_json::{Value, json};

/// The price is so high that noise moves no count by a half.
const CONFIGURATION: &str = r#"
pipeline = "visits"
input = { time = "at", files = { path = "FOLDER/visits.csv" }, key = KEY }
windows = { origin = "2026-01-05T00:00:00Z", length = "1d", end = "2026-01-06T00:00:00Z" }
privacy = { unit = { user = { column = "user", type = "text", per = "1d", max_records_per_window = 3 } }, adjacency = "add_remove", epsilon = 1000 }
output = { files = { path = "FOLDER/out" } }
ledger = { path = "FOLDER/ledger" }
[[release]]
name = "counts"
epsilon = 500
counts = { of = ["users", "records"], max_keys = 2, max_records = 4 }
[[release]]
name = "amounts"
epsilon = 500
spline = "box"
step = [25]
domain = [{ column = "amount", min = 0, max = 50, outside = "clamp" }]
cells = { bandwidths = [30] }
"#;

const COUNTRY: &str =
    r#"{ column = "country", type = "text", values = ["CH", "DE"], other = "rest" }"#;
const BOTH: &str = r#"{ columns = ["country", "device"], types = ["text", "integer"], values = { country = ["CH", "DE"], device = ["1", "2"] }, other = "rest" }"#;

fn settings(key: &str) -> Result<WorkerSettings, String> {
    let text = CONFIGURATION.replace("KEY", key);
    WorkerSettings::parse(&text, "f").map_err(|faults| faults.to_string())
}

fn fault(key: &str) -> String {
    settings(key).map_or_else(|fault| fault, |_| "none".to_owned())
}

fn keys_of(key: &str) -> Vec<String> {
    settings(key).unwrap().windows.keys.expect("keys")
}

#[test]
fn a_name_for_what_is_not_listed_is_a_key_more() {
    assert_eq!(keys_of(COUNTRY), ["CH", "DE", "rest"]);
    let expected = [
        "CH/1",
        "CH/2",
        "CH/rest",
        "DE/1",
        "DE/2",
        "DE/rest",
        "rest/1",
        "rest/2",
        "rest/rest",
    ];
    assert_eq!(keys_of(BOTH), expected);
    let one = BOTH.replace("\"rest\"", "{ device = \"a/b\" }");
    let expected = ["CH/1", "CH/2", "CH/a%2Fb", "DE/1", "DE/2", "DE/a%2Fb"];
    assert_eq!(keys_of(&one), expected);
    assert_eq!(
        settings(&one).unwrap().windows.other,
        [None, Some("a/b".to_owned())]
    );
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("countries.txt");
    fs::write(&path, "CH\nDE\n").unwrap();
    let listed = r#"values = ["CH", "DE"]"#;
    let file = COUNTRY.replace(listed, &format!("values_file = {path:?}"));
    assert_eq!(keys_of(&file), ["CH", "DE", "rest"]);
    assert_eq!(
        settings(&file).unwrap().digest(),
        settings(COUNTRY).unwrap().digest()
    );
}

/// A key that is listed under that name takes no other records: processes that read for one another must not agree about it, and a ledger
/// records the change.
#[test]
fn whether_a_listed_key_stands_for_others_is_part_of_the_settings() {
    let listed = r#"{ column = "country", type = "text", values = ["CH", "DE", "rest"] }"#;
    let [ours, theirs] = [COUNTRY, listed].map(|key| settings(key).unwrap());
    assert_eq!(ours.windows.keys, theirs.windows.keys);
    assert_ne!(ours.digest(), theirs.digest());
    assert_ne!(ours.reading_digest(), theirs.reading_digest());
    assert_eq!(
        setting_differences(&theirs.normalised, &ours.normalised),
        ["input.key.other: nothing in the ledger, \"rest\" in the file"]
    );
    let all = BOTH;
    let parts = r#"{ columns = ["country", "device"], types = ["text", "integer"], values = { country = ["CH", "DE", "rest"], device = ["1", "2"] }, other = { device = "rest" } }"#;
    let [all, parts] = [all, parts].map(|key| settings(key).unwrap());
    assert_eq!(all.windows.keys, parts.windows.keys);
    assert_ne!(all.digest(), parts.digest());
    assert_ne!(all.reading_digest(), parts.reading_digest());
}

#[test]
fn every_mistake_in_the_name_of_what_is_not_listed_is_told_in_its_place() {
    let rows = r#"values = [["CH", "1"], ["DE", "2"]]"#;
    let lists = r#"values = { country = ["CH", "DE"], device = ["1", "2"] }"#;
    for (key, old, new, expected) in [
        (
            COUNTRY,
            "\"rest\"",
            "\"DE\"",
            "input.key.other: \"DE\" is listed as well",
        ),
        (
            COUNTRY,
            "\"rest\"",
            "\" \"",
            "input.key.other: must not be empty",
        ),
        (
            COUNTRY,
            "\"rest\"",
            "true",
            "input.key.other: expected a name such as \"other\", the key of all records",
        ),
        (
            COUNTRY,
            "\"rest\"",
            "{ country = \"rest\" }",
            "input.key.other: is a table of the names of several columns, and the key is one column",
        ),
        (
            BOTH,
            lists,
            rows,
            "input.key.other: needs the values of each column, and keys are listed as a whole",
        ),
        (
            BOTH,
            "\"rest\"",
            "{ state = \"rest\" }",
            "input.key.other.state: \"state\" is no column of the key",
        ),
        (
            BOTH,
            "\"rest\"",
            "{ device = \"2\" }",
            "input.key.other.device: \"2\" is listed as well",
        ),
        (
            BOTH,
            "\"rest\"",
            "{ device = \"\" }",
            "input.key.other.device: must not be empty",
        ),
        (BOTH, "\"rest\"", "{}", "input.key.other: must not be empty"),
        (
            BOTH,
            "\"rest\"",
            "\"1\"",
            "input.key.other: \"1\" is listed as well",
        ),
    ] {
        assert!(key.contains(old), "{old}");
        let fault = fault(&key.replace(old, new));
        assert!(fault.contains(expected), "{new}: {fault}");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys.csv");
    fs::write(&path, "CH,1\n").unwrap();
    let file = BOTH.replace(lists, &format!("values_file = {path:?}"));
    assert!(fault(&file).contains("input.key.other: needs the values of each column"));
    let many: String = (0..100_000).map(|number| format!("{number}\n")).collect();
    fs::write(&path, many).unwrap();
    let file = COUNTRY.replace(
        r#"values = ["CH", "DE"]"#,
        &format!("values_file = {path:?}"),
    );
    assert!(fault(&file).contains("input.key.other: makes 100001 keys, more than 100000"));
}

/// A folder with visits, and what was published of them.
struct VisitsFolder {
    folder: tempfile::TempDir,
}

impl VisitsFolder {
    /// A file of these visits, `time,user,country,device,amount` without the time, and its configuration.
    fn of_rows(key: &str, rows: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut visits = "at,user,country,device,amount\n".to_owned();
        for row in rows.lines() {
            writeln!(visits, "2026-01-05T10:00:00Z,{row}").unwrap();
        }
        fs::write(folder.path().join("visits.csv"), visits).unwrap();
        let text = CONFIGURATION
            .replace("KEY", key)
            .replace("FOLDER", &folder.path().display().to_string());
        fs::write(folder.path().join("visits.toml"), text).unwrap();
        VisitsFolder { folder }
    }

    fn run(key: &str, rows: &str) -> Self {
        let visits = VisitsFolder::of_rows(key, rows);
        let configuration = visits.path("visits.toml").display().to_string();
        visits.told(&["run", &configuration]);
        visits
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn told(&self, arguments: &[&str]) -> String {
        let run = Command::new(env!("CARGO_BIN_EXE_bernstream"))
            .args(arguments)
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&run.stdout).into_owned();
        assert!(
            run.status.success(),
            "{arguments:?}: {told} {}",
            String::from_utf8_lossy(&run.stderr)
        );
        told
    }

    fn query(&self, arguments: &[&str]) -> Value {
        let table = self.path("out/visits/counts/2026-01-05T000000Z.arrows");
        let table = table.display().to_string();
        let told = self.told(&[&["query", &table, "--json"], arguments].concat());
        serde_json::from_str(&told).unwrap()
    }

    /// Users and records of each key, rounded.
    fn counts(&self) -> Vec<Value> {
        let rows = self.query(&[])["keys"].as_array().unwrap().clone();
        let rounded = |row: &Value, name: &str| row[name]["value"].as_f64().unwrap().round();
        rows.iter()
            .map(|row| json!([row["key"], rounded(row, "users"), rounded(row, "records")]))
            .collect()
    }

    /// Records of the table of cells of a key, rounded.
    fn cells(&self, key: &str) -> f64 {
        let path = self.path(&format!(
            "out/visits/amounts/{key}/2026-01-05T000000Z.arrows"
        ));
        let cells = synopsis(&path).tables().unwrap();
        let range = cells.range(&[[0.0, 50.0]]).unwrap();
        range.count().value.round()
    }
}

fn synopsis(path: &Path) -> Synopsis {
    Synopsis::decode_message(&fs::read(path).unwrap()).unwrap()
}

/// Two users of listed keys, and two of others: one of the name itself, and one of two keys that are not listed. The last three rows have no key, or
/// no user.
const ROWS: &str = "ann,CH,1,10\nann,CH,1,10\nben,DE,2,20\ncat,rest,1,30\ndan,FR,1,30\ndan,\"IT, south\",1,30\ndan,DE,1,30\ndan,,1,30\neve,,1,30\n,FR,1,30\n";

#[test]
fn records_that_are_not_listed_count_under_the_name() {
    let visits = VisitsFolder::run(COUNTRY, ROWS);
    // Of the last user both keys count, though the cap is 2: those that are not listed are one.
    let expected = json!([["CH", 1.0, 2.0], ["DE", 2.0, 2.0], ["rest", 2.0, 3.0]]);
    assert_eq!(Value::from(visits.counts()), expected);
    assert_eq!(
        ["CH", "DE", "rest"].map(|key| visits.cells(key)),
        [2.0, 2.0, 3.0]
    );
    let only = visits.query(&["--row", "rest"]);
    assert_eq!(only["keys"].as_array().unwrap().len(), 1);
    let without = COUNTRY.replace(", other = \"rest\"", "");
    let without = VisitsFolder::run(&without, ROWS);
    let expected = json!([["CH", 1.0, 2.0], ["DE", 2.0, 2.0]]);
    assert_eq!(Value::from(without.counts()), expected);
}

/// Someone who has been in forty countries that are not listed, twice each, is one user of the name, with as many records as the cap allows.
#[test]
fn a_user_of_many_keys_that_are_not_listed_is_one_user_of_the_name() {
    let mut rows = ROWS.to_owned();
    for country in 0..40 {
        rows += &format!("far,X{country},1,30\n").repeat(2);
    }
    rows += "far,CH,1,30\n";
    let visits = VisitsFolder::run(COUNTRY, &rows);
    let expected = json!([["CH", 2.0, 3.0], ["DE", 2.0, 2.0], ["rest", 3.0, 7.0]]);
    assert_eq!(Value::from(visits.counts()), expected);
    let all: f64 = ["CH", "DE", "rest"]
        .map(|key| visits.cells(key))
        .iter()
        .sum();
    assert_eq!(all, 10.0, "a user has three records of all keys together");
}

#[test]
fn each_column_of_a_key_has_a_name_for_what_is_not_listed_of_it() {
    let rows =
        "ann,CH,1,10\nben,CH,7,20\ncat,FR,2,30\ndan,FR,7,30\ndan,IT,8,30\neve,CH,x,30\neve,,1,30\n";
    let visits = VisitsFolder::run(BOTH, rows);
    let counts = visits.counts();
    let some: Vec<&Value> = counts.iter().filter(|row| row[2] != json!(0.0)).collect();
    // A part of another type is null, and its record dropped.
    let expected = json!([
        ["CH/1", 1.0, 1.0],
        ["CH/rest", 1.0, 1.0],
        ["rest/2", 1.0, 1.0],
        ["rest/rest", 1.0, 2.0]
    ]);
    assert_eq!(json!(some), expected);
    let margin = visits.query(&["--margin", "country"]);
    let rows = margin["rows"].as_array().unwrap();
    let records: Vec<f64> = rows
        .iter()
        .map(|row| row["records"]["value"].as_f64().unwrap().round())
        .collect();
    assert_eq!(records, [2.0, 0.0, 3.0]);
    assert_eq!(rows[2]["parts"], json!({ "country": "rest" }));
}

#[test]
fn a_sample_counts_what_is_not_listed_under_the_name_and_says_what_it_is() {
    let mut rows = String::new();
    for user in 0..10 {
        rows += &format!("u{user},CH,1,10\nu{user},FR,1,10\nu{user},IT,1,10\nu{user},ES,1,10\n");
    }
    rows += "u1,FR,1,10\nu2,,1,10\n";
    let visits = VisitsFolder::of_rows(COUNTRY, &rows);
    let configuration = visits.path("visits.toml").display().to_string();
    let told = visits.told(&["check", "--sample", &configuration]);
    let words = "records in them have a listed key: 41 of 42, 31 of them as what is not listed (input.key.other); \
                 the commonest others: \"FR\" in 11, \"ES\" in 10, \"IT\" in 10";
    assert!(told.contains(words), "{told}");
    // Two keys of each user, of the cap of 2.
    assert!(
        told.contains(
            "keys of a user and window in them count under the cap of 2 in counts: 20 of 20"
        ),
        "{told}"
    );
}
