//! Keys of several columns, from the configuration to what readers see.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use arrow_array::StringArray;
use arrow_ipc::reader::StreamReader;
use bernstream_config::WorkerSettings;
use bernstream_synopsis::Synopsis;
use serde_json::{Value, json};

const CONFIGURATION: &str = r#"
pipeline = "shop"
input = { time = "at", files = { path = "FOLDER/orders.csv" }, key = KEY }
windows = { origin = "2026-01-05T00:00:00Z", length = "1d", end = "2026-01-06T00:00:00Z" }
privacy = { unit = "record", adjacency = "add_remove", epsilon = 4 }
output = { files = { path = "FOLDER/out" } }
ledger = { path = "FOLDER/ledger" }
[[release]]
name = "orders"
epsilon = 2
counts = { of = ["records", "sum"], value = { column = "amount", min = 0, max = 50, outside = "clamp" } }
[[release]]
name = "amounts"
epsilon = 2
degree = 4
order = 1
domain = [{ column = "amount", min = 0, max = 50, outside = "clamp" }]
density = { bandwidths = [10] }
"#;

/// Two columns, one of numbers: parts with a comma, what stands between parts, and what escapes it.
const ORDERS: &str = r#"{ columns = ["merchant", "status"], types = ["text", "integer"], values = { merchant = ["a/b", "c, d", "50%"], status = ["1", "2"] } }"#;

fn settings(key: &str) -> Result<WorkerSettings, String> {
    let text = CONFIGURATION.replace("KEY", key);
    WorkerSettings::parse(&text, "f").map_err(|faults| faults.to_string())
}

fn fault(key: &str) -> String {
    settings(key).map_or_else(|fault| fault, |_| "none".to_owned())
}

#[test]
fn keys_of_several_columns_are_listed_or_combined() {
    let combined = settings(ORDERS).unwrap();
    let keys = combined.windows.keys.expect("keys");
    let expected = [
        "a%2Fb/1", "a%2Fb/2", "c, d/1", "c, d/2", "50%25/1", "50%25/2",
    ];
    assert_eq!(keys, expected);
    assert_eq!(combined.columns.key, ["merchant", "status"]);
    let listed = r#"{ columns = ["merchant", "status"], types = ["text", "integer"], values = [["a/b", "1"], ["a/b", "2"],
        ["c, d", "1"], ["c, d", "2"], ["50%", "1"], ["50%", "2"]] }"#;
    let listed = settings(&listed.replace('\n', " ")).unwrap();
    assert_eq!(listed.windows.keys, settings(ORDERS).unwrap().windows.keys);
    assert_eq!(listed.digest(), settings(ORDERS).unwrap().digest());
    // Other columns are other keys, and so are one column and two.
    let other = ORDERS.replace("merchant", "shop");
    assert_ne!(listed.digest(), settings(&other).unwrap().digest());
    let one = r#"{ column = "merchant", type = "text", values = ["a%2Fb/1"] }"#;
    let two = r#"{ columns = ["merchant", "status"], type = "text", values = [["a/b", "1"]] }"#;
    assert_ne!(
        settings(one).unwrap().digest(),
        settings(two).unwrap().digest()
    );
}

#[test]
fn a_file_of_keys_has_a_field_for_each_part() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys.csv");
    let key = format!(
        "{{ columns = [\"merchant\", \"status\"], types = [\"text\", \"integer\"], values_file = {path:?} }}"
    );
    let with_header = "merchant,status\na/b,1\n\"c, d\",2\n";
    for text in [with_header, &with_header.replace("merchant,status\n", "")] {
        fs::write(&path, text).unwrap();
        assert_eq!(
            settings(&key).unwrap().windows.keys.unwrap(),
            ["a%2Fb/1", "c, d/2"]
        );
    }
    for (text, expected) in [
        (
            "status,merchant\na,1\n",
            "keys.csv:1: has the names of the columns in another order than merchant,status",
        ),
        (
            "a,1\nb\n",
            "keys.csv:2: has 1 of 2 parts: merchant,status are expected",
        ),
        ("a,1\nb,x\n", "keys.csv:2: no integer is written as \"x\""),
        ("a,1\n,1\n", "keys.csv:2: has an empty part"),
        ("a,1\na ,1\n", "keys.csv:2: has white space around a part"),
        ("a,1\nb,1\na,1\n", "keys.csv:3: has the key of line 1"),
        (
            "a,1\n\"b,1\n",
            "keys.csv:2: cannot be read: it has a quoted field that does not end",
        ),
        ("merchant,status\n", "keys.csv: has no key"),
    ] {
        fs::write(&path, text).unwrap();
        let fault = fault(&key);
        assert!(fault.contains(expected), "{text}: {fault}");
        assert!(fault.contains("input.key.values_file"), "{fault}");
    }
}

#[test]
fn every_mistake_in_keys_of_several_columns_is_told_in_its_place() {
    let with = |old: &str, new: &str| {
        assert!(ORDERS.contains(old), "{old}");
        fault(&ORDERS.replace(old, new))
    };
    let list = r#"values = { merchant = ["a/b", "c, d", "50%"], status = ["1", "2"] }"#;
    let columns = r#"columns = ["merchant", "status"], types = ["text", "integer"]"#;
    let many: Vec<String> = (0..400).map(|number| format!("\"{number}\"")).collect();
    let many = many.join(", ");
    for (old, new, expected) in [
        (
            list,
            r#"values = [["a", "1"], ["b"]]"#,
            "input.key.values[1]: has one part, and a key has 2",
        ),
        (
            list,
            r#"values = [["a", "1", "2"]]"#,
            "input.key.values[0]: has 3 parts, and a key has 2",
        ),
        (
            list,
            r#"values = ["a"]"#,
            "input.key.values[0]: is one text, and a key has several parts",
        ),
        (
            list,
            r#"values = [["a", "1"], ["a", "1"]]"#,
            "input.key.values[1]: duplicate key",
        ),
        (
            list,
            r#"values = [["a", ""]]"#,
            "input.key.values[0][1]: a part of a key must not be empty",
        ),
        (
            list,
            r#"values = [["a", "x"]]"#,
            "input.key.values[0][1]: no integer is written as \"x\"",
        ),
        (
            list,
            "values = []",
            "input.key.values: must not be empty: list every key",
        ),
        (
            r#"status = ["1", "2"]"#,
            r#"state = ["1"]"#,
            "input.key.values.state: \"state\" is no column of the key",
        ),
        (
            r#", status = ["1", "2"]"#,
            "",
            "input.key.values: lacks the values of status",
        ),
        (
            r#"["1", "2"]"#,
            "[]",
            "input.key.values.status: must not be empty: list every value",
        ),
        (
            r#"["1", "2"]"#,
            r#"["1", "1"]"#,
            "input.key.values.status[1]: duplicate value",
        ),
        (
            list,
            &format!("values = {{ merchant = [{many}], status = [{many}] }}"),
            "400 times 400 make more than 100000 keys",
        ),
        (
            columns,
            r#"columns = ["merchant", "merchant"]"#,
            "input.key.columns[1]: is there twice",
        ),
        (
            columns,
            r#"columns = ["merchant"]"#,
            "input.key.columns: names one column only",
        ),
        (
            columns,
            "columns = []",
            "input.key.columns: must not be empty",
        ),
        (
            columns,
            r#"columns = ["a", "b", "c", "d"]"#,
            "input.key.columns: names 4 columns, more than 3",
        ),
        (
            columns,
            r#"columns = ["merchant", "users"]"#,
            "input.key.columns[1]: is the name of a column that tables by key have",
        ),
        (
            columns,
            r#"columns = ["merchant", "status"], types = ["text"]"#,
            "input.key.types: has 1 types, and the key has 2 columns",
        ),
        (
            columns,
            r#"columns = ["merchant", "status"], type = "text", types = ["text", "text"]"#,
            "input.key: has both `type` and `types`",
        ),
        (
            columns,
            r#"columns = ["merchant", "status"], column = "a", type = "text""#,
            "input.key: has both `column` and `columns`",
        ),
        (
            columns,
            r#"columns = ["merchant", "status"]"#,
            "input.key.type: missing",
        ),
        (
            columns,
            r#"column = "merchant", type = "text""#,
            "input.key.values: is a table of the values of several columns",
        ),
    ] {
        let fault = with(old, new);
        assert!(fault.contains(expected), "{new}: {fault}");
    }
    let alone = r#"{ column = "merchant", types = ["text"], values = ["a"] }"#;
    assert!(fault(alone).contains("input.key.types: is for a key of several columns"));
    let parts = r#"{ column = "merchant", type = "text", values = [["a", "b"]] }"#;
    assert!(
        fault(parts).contains("input.key.values[0]: is a list of parts, and the key is one column")
    );
}

/// A folder with orders of two merchants and two states, 400 of the first state for each 100 of the second, and what was published.
struct OrderShop {
    folder: tempfile::TempDir,
}

impl OrderShop {
    fn run() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut orders = "at,merchant,status,amount\n".to_owned();
        for number in 0..1000 {
            let merchant = ["a/b", "\"c, d\""][number % 2];
            let status = 1 + usize::from(number % 5 == 0);
            let amount = 10 + number % 3;
            writeln!(orders, "2026-01-05T10:00:00Z,{merchant},{status},{amount}").unwrap();
        }
        // Records without a part, or with one that is not listed, are dropped alone.
        orders += "2026-01-05T10:00:00Z,a/b,,1\n2026-01-05T10:00:00Z,,1,1\n2026-01-05T10:00:00Z,a/b,3,1\n2026-01-05T10:00:00Z,a/b,x,1\n";
        fs::write(folder.path().join("orders.csv"), orders).unwrap();
        let shop = OrderShop { folder };
        let text = CONFIGURATION
            .replace("KEY", ORDERS)
            .replace("FOLDER", &shop.folder.path().display().to_string());
        fs::write(shop.path("shop.toml"), text).unwrap();
        let configuration = shop.path("shop.toml").display().to_string();
        shop.told(&["run", &configuration]);
        shop
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

    fn table(&self) -> String {
        let path = self.path("out/shop/orders/2026-01-05T000000Z.arrows");
        path.display().to_string()
    }

    fn query(&self, arguments: &[&str]) -> Value {
        let table = self.table();
        let told = self.told(&[&["query", &table, "--json"], arguments].concat());
        serde_json::from_str(&told).unwrap()
    }
}

fn text_column(path: &Path, name: &str) -> Vec<String> {
    let reader = StreamReader::try_new(fs::File::open(path).unwrap(), None).unwrap();
    let mut all = Vec::new();
    for batch in reader {
        let batch = batch.unwrap();
        let column = batch.column_by_name(name).unwrap();
        let column: &StringArray = column.as_any().downcast_ref().unwrap();
        all.extend(column.iter().map(|text| text.unwrap().to_owned()));
    }
    all
}

#[test]
fn a_table_of_two_columns_has_parts_margins_and_shares() {
    let shop = OrderShop::run();
    let table = PathBuf::from(shop.table());
    assert_eq!(
        text_column(&table, "merchant"),
        ["a/b", "a/b", "c, d", "c, d", "50%", "50%"]
    );
    assert_eq!(
        text_column(&table, "status"),
        ["1", "2", "1", "2", "1", "2"]
    );
    assert_eq!(text_column(&table, "key")[4], "50%25/1");
    let synopsis = Synopsis::decode_message(&fs::read(&table).unwrap()).unwrap();
    assert_eq!(synopsis.description().key_columns, ["merchant", "status"]);
    let again = Synopsis::from_json(&synopsis.to_json().unwrap()).unwrap();
    assert_eq!(again, synopsis);

    let rows = shop.query(&["--shares=merchant"]);
    assert_eq!(
        rows["keys"][1]["parts"],
        json!({ "merchant": "a/b", "status": "2" })
    );
    let share = &rows["keys"][0]["shares"]["records"];
    let value = share["value"].as_f64().unwrap();
    let ends = ["lower", "upper"].map(|end| share["interval"][end].as_f64().unwrap());
    assert!(
        (value - 0.8).abs() < 0.02 && ends[0] < value && value < ends[1],
        "{share}"
    );
    assert!(ends[1] - ends[0] < 0.1, "{share}");
    assert!(rows["keys"][0]["shares"]["sum"].is_object());
    let only = shop.query(&["--row", "a%2Fb/1"]);
    assert_eq!(only["keys"].as_array().unwrap().len(), 1);
    assert!(only["keys"][0].get("shares").is_none());

    let margin = shop.query(&["--margin", "merchant"]);
    assert_eq!(margin["margin"], json!(["merchant"]));
    let rows = margin["rows"].as_array().unwrap();
    let names: Vec<&Value> = rows.iter().map(|row| &row["parts"]["merchant"]).collect();
    assert_eq!(names, ["a/b", "c, d", "50%"]);
    assert!((rows[0]["records"]["value"].as_f64().unwrap() - 500.0).abs() < 30.0);
    assert_eq!(rows[0]["keys"], 2);
    let words = shop.told(&["query", &shop.table(), "--margin", "status"]);
    assert!(words.starts_with("status  keys  records"), "{words}");
    let words = shop.told(&["query", "--shares", &shop.table()]);
    assert!(words.starts_with("merchant  status  records"), "{words}");
    assert!(words.contains("share of records"), "{words}");

    // A curve of each key stands in a folder of its name, and says its parts.
    let curve = shop.path("out/shop/amounts/a%252Fb%2F1/2026-01-05T000000Z.arrows");
    let curve = Synopsis::decode_message(&fs::read(curve).unwrap()).unwrap();
    let about = curve.description();
    assert_eq!(about.key.as_deref(), Some("a%2Fb/1"));
    assert_eq!(about.parts_of_key("a%2Fb/1"), ["a/b", "1"]);
}

#[test]
fn a_message_whose_parts_are_not_those_of_its_keys_is_none() {
    let shop = OrderShop::run();
    let synopsis = Synopsis::decode_message(&fs::read(shop.table()).unwrap()).unwrap();
    let damaged = |change: fn(&mut bernstream_synopsis::description::Description)| {
        let mut about = synopsis.description().clone();
        change(&mut about);
        Synopsis::new(about, synopsis.values().to_vec())
            .map_or_else(|error| error.to_string(), |_| "none".to_owned())
    };
    for (fault, expected) in [
        (
            damaged(|about| about.key_columns = vec!["merchant".to_owned()]),
            "the columns of its keys are not two or three different names",
        ),
        (
            damaged(|about| about.key_columns[1] = "merchant".to_owned()),
            "the columns of its keys are not two or three different names",
        ),
        (
            damaged(|about| about.key_columns[1] = "sum_lower".to_owned()),
            "the columns of its keys are not two or three different names",
        ),
        (
            damaged(|about| about.key_columns.push("more".to_owned())),
            "a key does not have 3 parts",
        ),
    ] {
        assert!(fault.contains(expected), "{fault}");
    }
    // The bytes of a part in the table, and not in its key.
    let mut bytes = fs::read(shop.table()).unwrap();
    let part = b"a/ba/b";
    let place = bytes.windows(part.len()).position(|found| found == part);
    bytes[place.expect("the column of merchants")] = b'x';
    assert!(Synopsis::decode_message(&bytes).is_err());
}
