//! Messages with keys that nobody listed: what is sent is what is read, and what does not fit is refused.

use std::io::Cursor;
use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray, TimestampMillisecondArray,
};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{Field, Schema};
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::description::{Basis, Description, UnitDescription};
use bernstream_synopsis::found_keys::{FoundKeys, FoundRow, OverfullRule};
use bernstream_synopsis::key_table::KeyReading;
use bernstream_synopsis::{KeyBasis, Synopsis, SynopsisError};

/// A table of users by page: rows that are new and rows that are not, in the order of their keys.
fn table() -> Synopsis {
    golden(include_str!("../../clients/golden/counts-found.json"))
}

fn golden(text: &str) -> Synopsis {
    let file: serde_json::Value = serde_json::from_str(text).unwrap();
    Synopsis::from_json(&file["synopsis"].to_string()).unwrap()
}

fn basis(about: &mut Description) -> &mut KeyBasis {
    match &mut about.basis {
        Basis::Keys(basis) => basis,
        other => panic!("{other:?}"),
    }
}

fn found(about: &mut Description) -> &mut FoundKeys {
    basis(about).found.as_mut().unwrap()
}

/// The table with another description and other values, if it can be made.
fn changed(change: impl FnOnce(&mut Description, &mut Vec<f64>)) -> Result<Synopsis, String> {
    let table = table();
    let mut about = table.description().clone();
    let mut values = table.values().to_vec();
    change(&mut about, &mut values);
    Synopsis::new(about, values).map_err(|error| error.to_string())
}

#[test]
fn both_forms_say_the_same_with_and_without_rows() {
    for synopsis in [
        table(),
        golden(include_str!(
            "../../clients/golden/counts-found-columns.json"
        )),
        golden(include_str!("../../clients/golden/counts-found-empty.json")),
        golden(include_str!(
            "../../clients/golden/counts-found-overfull.json"
        )),
    ] {
        let bytes = synopsis.encode().unwrap().bytes;
        assert_eq!(Synopsis::decode_message(&bytes).unwrap(), synopsis);
        let json = synopsis.to_json().unwrap();
        assert_eq!(Synopsis::from_json(&json).unwrap(), synopsis);
        let batch = Parts::of(&bytes).batch;
        let rows = synopsis.key_table().unwrap().rows();
        assert_eq!(batch.num_rows(), rows.len());
        // Whoever reads the columns alone is told which keys are new.
        let schema = batch.schema();
        let names: Vec<&str> = schema
            .fields()
            .iter()
            .map(|field| field.name().as_str())
            .collect();
        assert_eq!(names[names.len() - 2..], ["new", "until"]);
        let document = &schema.metadata()["bernstream"];
        let about: serde_json::Value = serde_json::from_str(document).unwrap();
        assert_eq!(about["basis"]["keys"].get("keys"), None);
        assert_eq!(about["basis"]["keys"]["found"].get("rows"), None);
    }
}

#[test]
fn a_key_that_is_new_has_the_interval_of_its_selection_and_any_other_the_plain_one() {
    let synopsis = table();
    let table = synopsis.key_table().unwrap();
    let about = synopsis.description();
    let plain = 20.0_f64.ln() * about.noise.scale / 4096.0;
    for row in table.rows() {
        let interval = row.estimates[0].interval.unwrap();
        let value = row.estimates[0].value;
        let [below, above] = [value - interval.lower, interval.upper - value];
        let is_plain = (below - plain).abs() < 0.01 && (above - plain).abs() < 0.01;
        let is_new = row.found.unwrap().is_new;
        let is_far = value > 50.0;
        assert_eq!(is_plain, !is_new || is_far, "{row:?}");
        if is_new {
            assert!(interval.lower >= 1.0 && below >= plain - 0.01, "{row:?}");
        }
    }
    // 45.8 and 43.8 are new, and either may be less than 16.1, which is not.
    for count in [4, 5] {
        let top = table.top_keys(KeyReading::Users, count).unwrap();
        assert!(top.is_last_unclear, "{count}");
    }
    let far = table.top_keys(KeyReading::Users, 6).unwrap();
    assert_eq!(far.rows[5].key, "/offers");
    assert!(!far.is_last_unclear);
}

#[test]
fn absence_says_that_a_key_had_few_and_nothing_where_new_ones_were_not_looked_for() {
    let synopsis = table();
    let table = synopsis.key_table().unwrap();
    let summary = table.found_summary().unwrap();
    assert_eq!((summary.keys, summary.new), (7, 4));
    assert_eq!(
        summary.in_words(),
        "7 keys, 4 of them new; a key that is not here had fewer than about 41 users"
    );
    let absent = table.row_of("/\u{202e}x").unwrap_err();
    assert!(matches!(absent, SynopsisError::AbsentKey { .. }));
    assert_eq!(
        absent.to_string(),
        r"there is no key '/\u{202e}x' in this table: a key that is not here had fewer than about 41 users"
    );
    // A full table has pushed out what is smaller than its least row.
    let full = changed(|about, _| found(about).most = 7).unwrap();
    let least = full.key_table().unwrap().found_summary().unwrap();
    assert_eq!(least.absent_below, summary.absent_below);
    let full = changed(|about, values| {
        let end = about.window.end;
        let until = found(about).until(end);
        found(about).most = 7;
        for (row, value) in found(about).rows.iter_mut().zip(values) {
            row.until = until;
            *value = value.max(60.0);
        }
    });
    let least = full.unwrap().key_table().unwrap().found_summary().unwrap();
    assert_eq!(least.absent_below, Some(60.0));
    let overfull = golden(include_str!(
        "../../clients/golden/counts-found-overfull.json"
    ));
    let summary = overfull.key_table().unwrap().found_summary().unwrap();
    assert_eq!(summary.absent_below, None);
    assert_eq!(
        summary.in_words(),
        "too many different keys to look for new ones"
    );
    for synopsis in [&synopsis, &overfull] {
        let table = synopsis.key_table().unwrap();
        let refused = table.margin(&[]).unwrap_err().to_string();
        assert!(refused.contains("nobody listed its keys"), "{refused}");
        assert!(table.shares(&[]).is_err());
    }
}

fn assert_unmade(why: &str, change: fn(&mut Description, &mut Vec<f64>)) {
    let error = changed(change).expect_err(why);
    assert!(error.contains(why), "{why}: {error}");
}

#[test]
fn tables_that_no_selection_makes_cannot_be_made() {
    assert_eq!(changed(|_, _| {}).unwrap(), table());
    assert_unmade("order of their bytes", |about, _| {
        basis(about).keys.swap(1, 2);
    });
    assert_unmade("two rows of one key", |about, _| {
        basis(about).keys[2] = "/about".to_owned();
    });
    assert_unmade("empty or too long", |about, _| found(about).longest = 5);
    assert_unmade("more keys than it can have", |about, _| {
        found(about).most = 6;
    });
    assert_unmade("whether it is new", |about, _| {
        found(about).rows.pop();
    });
    // The least number that is above, and the one below it.
    let nearest = changed(|about, values| {
        values[0] = (found(about).threshold as f64 + 1.0) / 4096.0;
    });
    assert!(nearest.is_ok());
    assert_unmade("a new key is not above", |about, values| {
        values[0] = found(about).threshold as f64 / 4096.0;
    });
    assert_unmade("not announced anew", |about, values| {
        values[1] = (found(about).threshold as f64 + 1.0) / 4096.0;
    });
    assert_unmade("on the grid", |_, values| values[1] += 1e-6);
    assert_unmade("another threshold", |about, _| found(about).threshold -= 2);
    assert_unmade("another threshold", |about, _| about.noise.scale += 16.0);
    assert_unmade("another threshold", |about, _| {
        found(about).delta = "0.00000001".parse().unwrap();
    });
    // Of records users are not what is protected.
    assert_unmade("another number than that of units", |about, _| {
        about.privacy.unit = UnitDescription::Record;
    });
    assert_unmade("announced for the time", |about, _| {
        let start = about.window.start;
        found(about).rows[1].until = start;
    });
    assert_unmade("announced for the time", |about, _| {
        found(about).rows[1].until = Timestamp::from_micros(i64::MAX);
    });
    let overfull = OverfullRule {
        limit: 10,
        soft_limit: 8,
        is_overfull: true,
    };
    let mut about = table().description().clone();
    found(&mut about).overfull = Some(overfull);
    assert!(Synopsis::new(about.clone(), table().values().to_vec()).is_err());
    found(&mut about).rows.clear();
    basis(&mut about).keys.clear();
    assert!(Synopsis::new(about.clone(), Vec::new()).is_ok());
    basis(&mut about).found = None;
    let listed = Synopsis::new(about, Vec::new()).unwrap_err().to_string();
    assert!(listed.contains("is empty"), "{listed}");
}

/// The only batch of a message, whose columns can be put in another way.
struct Parts {
    batch: RecordBatch,
}

impl Parts {
    fn of(bytes: &[u8]) -> Parts {
        let mut reader = StreamReader::try_new(Cursor::new(bytes), None).unwrap();
        Parts {
            batch: reader.next().unwrap().unwrap(),
        }
    }

    fn place(&self, name: &str) -> usize {
        self.batch.schema().index_of(name).unwrap()
    }

    fn column(&self, name: &str) -> ArrayRef {
        self.batch.column(self.place(name)).clone()
    }

    /// The message with this column in place of the one of its name.
    fn with(&self, name: &str, column: ArrayRef) -> Result<Synopsis, SynopsisError> {
        let is_nullable = column.null_count() > 0;
        self.with_field(name, column, is_nullable)
    }

    fn with_field(
        &self,
        name: &str,
        column: ArrayRef,
        is_nullable: bool,
    ) -> Result<Synopsis, SynopsisError> {
        let place = self.place(name);
        let schema = self.batch.schema();
        let mut fields: Vec<Field> = schema
            .fields()
            .iter()
            .map(|field| (**field).clone())
            .collect();
        fields[place] = Field::new(name, column.data_type().clone(), is_nullable);
        let mut columns = self.batch.columns().to_vec();
        columns[place] = column;
        self.written(fields, columns)
    }

    fn without(&self, name: &str) -> Result<Synopsis, SynopsisError> {
        let place = self.place(name);
        let schema = self.batch.schema();
        let mut fields: Vec<Field> = schema
            .fields()
            .iter()
            .map(|field| (**field).clone())
            .collect();
        fields.remove(place);
        let mut columns = self.batch.columns().to_vec();
        columns.remove(place);
        self.written(fields, columns)
    }

    /// The message of these rows alone.
    fn rows(&self, from: usize, count: usize) -> Result<Synopsis, SynopsisError> {
        read(&self.batch.slice(from, count))
    }

    fn written(
        &self,
        fields: Vec<Field>,
        columns: Vec<ArrayRef>,
    ) -> Result<Synopsis, SynopsisError> {
        let metadata = self.batch.schema().metadata().clone();
        let schema = Schema::new(fields).with_metadata(metadata);
        read(&RecordBatch::try_new(Arc::new(schema), columns).unwrap())
    }
}

fn read(batch: &RecordBatch) -> Result<Synopsis, SynopsisError> {
    let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    writer.write(batch).unwrap();
    writer.finish().unwrap();
    Synopsis::decode_message(&writer.into_inner().unwrap())
}

fn assert_refused(what: &str, message: Result<Synopsis, SynopsisError>) {
    assert!(
        matches!(message, Err(SynopsisError::Damaged(_))),
        "{what}: {message:?}"
    );
}

#[test]
fn messages_whose_columns_do_not_fit_are_refused() {
    let synopsis = table();
    let parts = Parts::of(&synopsis.encode().unwrap().bytes);
    assert_eq!(read(&parts.batch).unwrap(), synopsis);
    let same = parts.with("new", parts.column("new"));
    assert_eq!(same.unwrap(), synopsis);

    for name in ["new", "until", "users", "key", "sequence"] {
        assert_refused(name, parts.without(name));
        let null = parts.column(name);
        assert_refused(name, parts.with_field(name, null, name != "key"));
    }
    let nulls = BooleanArray::from(vec![
        Some(true),
        None,
        None,
        Some(true),
        None,
        Some(true),
        None,
    ]);
    assert_refused("a null in new", parts.with("new", Arc::new(nulls)));
    let words: ArrayRef = Arc::new(StringArray::from(vec!["true"; 7]));
    assert_refused("words in new", parts.with("new", words));
    let until = parts.column("until");
    let until = until
        .as_any()
        .downcast_ref::<TimestampMicrosecondArray>()
        .unwrap();
    let seconds = until.values().iter().map(|micros| micros / 1000);
    let coarse = TimestampMillisecondArray::from(seconds.collect::<Vec<_>>()).with_timezone("UTC");
    assert_refused(
        "another unit of time",
        parts.with("until", Arc::new(coarse)),
    );
    let local = until.clone().with_timezone("+01:00");
    assert_refused("another zone", parts.with("until", Arc::new(local)));
    let extreme = [i64::MIN, i64::MAX]
        .map(|micros| TimestampMicrosecondArray::from(vec![micros; 7]).with_timezone("UTC"));
    for until in extreme {
        assert_refused("an extreme time", parts.with("until", Arc::new(until)));
    }
    for (new, is_right) in [(true, false), (false, true)] {
        // All are new, of which some have small numbers; or none is, which their times allow.
        let column: ArrayRef = Arc::new(BooleanArray::from(vec![new; 7]));
        assert_eq!(parts.with("new", column).is_ok(), is_right);
    }
    let mut keys: Vec<String> = synopsis.key_table().unwrap().keys().to_vec();
    keys.swap(0, 1);
    assert_refused(
        "unsorted",
        parts.with("key", Arc::new(StringArray::from(keys.clone()))),
    );
    keys[0] = keys[1].clone();
    assert_refused(
        "twice",
        parts.with("key", Arc::new(StringArray::from(keys.clone()))),
    );
    let mut small = synopsis.values().to_vec();
    small[0] = 40.0;
    assert_refused(
        "a small new one",
        parts.with("users", Arc::new(Float64Array::from(small))),
    );
    let mut unknown = synopsis.values().to_vec();
    unknown[1] = f64::NAN;
    assert_refused(
        "no number",
        parts.with("users", Arc::new(Float64Array::from(unknown))),
    );

    // Fewer rows are a table as well: nothing says how many there were.
    for (from, count) in [(0, 0), (0, 1), (2, 3), (6, 1)] {
        let less = parts.rows(from, count).unwrap();
        assert_eq!(less.values(), &synopsis.values()[from..from + count]);
    }
}

/// Rows in the description of a message are none: the columns are.
#[test]
fn what_the_description_of_a_message_says_of_rows_does_not_count() {
    let synopsis = table();
    let parts = Parts::of(&synopsis.encode().unwrap().bytes);
    let schema = parts.batch.schema();
    let mut about: serde_json::Value =
        serde_json::from_str(&schema.metadata()["bernstream"]).unwrap();
    about["basis"]["keys"]["found"]["rows"] =
        serde_json::json!([{ "is_new": true, "until": "2100-01-01T00:00:00Z" }]);
    about["basis"]["keys"]["keys"] = serde_json::json!(["a", "b"]);
    let metadata = [("bernstream".to_owned(), about.to_string())];
    let fields: Vec<Field> = schema
        .fields()
        .iter()
        .map(|field| (**field).clone())
        .collect();
    let schema = Schema::new(fields).with_metadata(metadata);
    let batch = RecordBatch::try_new(Arc::new(schema), parts.batch.columns().to_vec()).unwrap();
    assert_eq!(read(&batch).unwrap(), synopsis);
}

#[test]
fn no_changed_byte_makes_a_table_that_contradicts_itself() {
    let bytes = table().encode().unwrap().bytes;
    std::panic::set_hook(Box::new(|_| {}));
    let mut opened = 0;
    for place in 0..bytes.len() {
        for value in [0x00, 0x7f, 0xff, bytes[place] ^ 0x01, bytes[place] ^ 0x10] {
            let mut mutated = bytes.clone();
            mutated[place] = value;
            let Ok(synopsis) = Synopsis::decode_message(&mutated) else {
                continue;
            };
            opened += 1;
            let mut about = synopsis.description().clone();
            let FoundKeys {
                rows,
                most,
                threshold,
                ..
            } = found(&mut about).clone();
            let keys = &basis(&mut about).keys;
            assert!(keys.is_sorted() && keys.len() <= most as usize);
            assert_eq!([rows.len(), synopsis.values().len()], [keys.len(); 2]);
            for (FoundRow { is_new, until }, value) in rows.iter().zip(synopsis.values()) {
                assert!(*until > about.window.start);
                assert!(!is_new || value * 4096.0 > threshold as f64);
            }
            for row in synopsis.key_table().unwrap().rows() {
                let interval = row.estimates[0].interval.unwrap();
                assert!(interval.lower <= interval.upper);
            }
        }
    }
    drop(std::panic::take_hook());
    // Words and keys can change unnoticed: nothing signs a message.
    assert!(opened > 0 && opened < 5 * bytes.len());
}
