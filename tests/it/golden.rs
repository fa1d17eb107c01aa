//! The golden files that every client reads: what is committed is what the library writes and reads, and what is wrong is refused.

#[path = "../../examples/golden/cases.rs"]
mod cases;
#[path = "../../examples/golden/file.rs"]
mod file;
#[path = "../../examples/golden/release.rs"]
mod release;
#[path = "../../examples/golden/wrong.rs"]
mod wrong;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use base64::prelude::{BASE64_STANDARD, Engine};
use bernstream_synopsis::query::Query;
use bernstream_synopsis::tables::Estimate;
use bernstream_synopsis::{Synopsis, SynopsisReading, form_error};
use serde_json::{Map, Value};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/golden")
}

/// Every golden file but those of what is wrong.
fn files() -> Vec<(String, Value)> {
    let entries = fs::read_dir(folder())
        .expect("the folder")
        .map(|entry| entry.expect("an entry").path());
    let json = entries.filter(|path| {
        path.extension().is_some_and(|e| e == "json") && !path.ends_with("wrong.json")
    });
    let mut files: Vec<(String, Value)> = json
        .map(|path| {
            let name = path
                .file_stem()
                .expect("a name")
                .to_string_lossy()
                .into_owned();
            (
                name,
                serde_json::from_slice(&fs::read(path).expect("a file")).expect("JSON"),
            )
        })
        .collect();
    files.sort_by(|a, b| a.0.cmp(&b.0));
    assert!(files.len() > 30, "{}", files.len());
    files
}

fn numbers(list: &Value) -> Vec<f64> {
    list.as_array()
        .expect("a list")
        .iter()
        .map(|x| x.as_f64().expect("a number"))
        .collect()
}

fn points(of: &Value) -> Vec<Vec<f64>> {
    of["points"]
        .as_array()
        .expect("points")
        .iter()
        .map(numbers)
        .collect()
}

fn by(name: &Value) -> SynopsisReading {
    match (name.as_u64(), name.as_str()) {
        (Some(order), _) => SynopsisReading::Bernstein(order as u32),
        (_, Some("nearest")) => SynopsisReading::Nearest,
        (_, Some("kernel")) => SynopsisReading::Kernel,
        (_, Some("posterior")) => SynopsisReading::Posterior,
        (_, Some("nonnegative")) => SynopsisReading::Nonnegative,
        _ => panic!("{name} is no reading"),
    }
}

/// Relative to the largest of what is expected.
fn assert_near(found: &[f64], expected: &[f64], tolerance: f64, what: &str) {
    let largest = expected.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
    assert_eq!(found.len(), expected.len(), "{what}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(
            (found - expected).abs() <= tolerance * largest,
            "{what}: {found}, not {expected}"
        );
    }
}

#[test]
fn what_is_committed_is_what_the_program_writes() {
    let mut written = BTreeSet::from(["wrong.json".to_owned()]);
    let anew = "write them anew with: cargo run --example golden";
    for case in cases::all().expect("cases") {
        let name = format!("{}.json", case.name);
        let committed = fs::read_to_string(folder().join(&name)).unwrap_or_default();
        assert!(
            committed == file::text(&case).expect("a file"),
            "{name} is not what the program writes; {anew}"
        );
        assert!(written.insert(name));
    }
    let committed = fs::read_to_string(folder().join("wrong.json")).expect("wrong.json");
    assert!(
        committed == wrong::text().expect("a file"),
        "wrong.json is not what the program writes; {anew}"
    );
    let there = fs::read_dir(folder()).expect("the folder");
    let there: BTreeSet<String> = there
        .map(|e| {
            e.expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    assert_eq!(
        there, written,
        "files that nobody writes, or that are missing"
    );
}

#[test]
fn both_forms_are_the_same_synopsis() {
    for (name, file) in files() {
        assert_eq!(file["name"], name);
        let from_json = Synopsis::from_json(&file["synopsis"].to_string()).expect(&name);
        let bytes = BASE64_STANDARD
            .decode(file["arrow"].as_str().expect("text"))
            .expect("base64");
        assert_eq!(
            Synopsis::decode_message(&bytes).expect(&name),
            from_json,
            "{name}"
        );
        let sealed = from_json.encode().expect(&name);
        assert_eq!(sealed.bytes, bytes, "{name}");
        assert_eq!(file["message"]["key"], sealed.key, "{name}");
        assert_eq!(
            file["message"]["headers"],
            serde_json::json!(sealed.headers),
            "{name}"
        );
    }
}

#[test]
fn every_reading_gives_what_is_stated() {
    let mut readings = 0;
    for (name, file) in files() {
        let synopsis = Synopsis::from_json(&file["synopsis"].to_string()).expect(&name);
        for stated in file["evaluations"].as_array().expect("evaluations") {
            let what = format!("{name} by {}", stated["by"]);
            let tolerance = stated["tolerance"].as_f64().expect("one");
            let evaluator = synopsis.evaluator(by(&stated["by"])).expect(&what);
            let points = points(stated);
            let values: Vec<f64> = points
                .iter()
                .map(|p| evaluator.evaluate(p).expect(&what))
                .collect();
            assert_near(&values, &numbers(&stated["values"]), tolerance, &what);
            assert_near(
                &[evaluator.total_mass()],
                &[stated["mass"].as_f64().expect("a mass")],
                tolerance,
                &what,
            );
            let deviations: Option<Vec<f64>> = points
                .iter()
                .map(|p| evaluator.deviation(p).expect(&what))
                .collect();
            assert_eq!(
                deviations.is_some(),
                stated["deviations"].is_array(),
                "{what}"
            );
            if let Some(deviations) = deviations {
                assert_near(
                    &deviations,
                    &numbers(&stated["deviations"]),
                    tolerance,
                    &what,
                );
            }
            readings += 1;
        }
        for refused in file["refused"].as_array().expect("a list") {
            assert!(
                synopsis.evaluator(by(refused)).is_err(),
                "{name} by {refused}"
            );
        }
    }
    assert!(readings > 100, "{readings}");
}

#[test]
fn bands_and_answers_are_what_is_stated() {
    let mut answers = 0;
    for (name, file) in files() {
        let synopsis = Synopsis::from_json(&file["synopsis"].to_string()).expect(&name);
        let bands = &file["half_widths"];
        if !bands.is_null() {
            let points = points(bands);
            let tolerance = bands["tolerance"].as_f64().expect("a tolerance");
            let everywhere: Vec<f64> = points
                .iter()
                .map(|p| synopsis.half_width(p).expect(&name))
                .collect();
            assert_near(
                &everywhere,
                &numbers(&bands["simultaneous"]),
                tolerance,
                &name,
            );
            for stated in bands["pointwise"].as_array().expect("a list") {
                let band = synopsis
                    .pointwise_band(stated["order"].as_u64().expect("an order") as u32)
                    .expect(&name);
                let alone: Vec<f64> = points
                    .iter()
                    .map(|p| band.half_width(p).expect(&name))
                    .collect();
                assert_near(&alone, &numbers(&stated["half_widths"]), tolerance, &name);
                assert!(
                    alone
                        .iter()
                        .zip(&everywhere)
                        .all(|(alone, everywhere)| *alone > 0.0 && *everywhere > 0.0)
                );
            }
        }
        assert_eq!(
            synopsis.form_error().is_some(),
            file["form_error"].is_number(),
            "{name}"
        );
        if let Some(form) = synopsis.form_error() {
            assert_near(
                &[form],
                &[file["form_error"].as_f64().expect("a number")],
                1e-12,
                &name,
            );
        }
        for stated in file["integrals"].as_array().into_iter().flatten() {
            let sides: Vec<[f64; 2]> =
                serde_json::from_value(stated["box"].clone()).expect("a box");
            let found = synopsis.integrate(&sides).expect(&name);
            let number = |field: &str| stated[field].as_f64().expect(field);
            let tolerance = number("tolerance");
            assert_near(&[found.value], &[number("value")], tolerance, &name);
            assert_near(
                &[found.noise.deviation],
                &[number("noise_deviation")],
                tolerance,
                &name,
            );
            assert_near(
                &[found.noise.half_width],
                &[number("noise_half_width")],
                tolerance,
                &name,
            );
            assert_eq!(
                found.form_error.is_some(),
                stated["form_error"].is_number(),
                "{name}"
            );
            assert_eq!(
                found.form_error.is_some(),
                synopsis.form_error().is_some(),
                "{name}"
            );
            if let Some(form) = found.form_error {
                assert_near(&[form], &[number("form_error")], tolerance, &name);
            }
        }
        for stated in file["queries"].as_array().expect("a list") {
            let query = Query::expression(stated["function"].as_str().expect("text"), &synopsis)
                .expect(&name);
            let answer = synopsis.answer(&query).expect(&name);
            let tolerance = stated["tolerance"].as_f64().expect("a tolerance");
            let number = |field: &str| stated[field].as_f64().expect(field);
            assert_near(&[answer.sum], &[number("sum")], tolerance, &name);
            assert_near(
                &[answer.noise.deviation],
                &[number("noise_deviation")],
                tolerance,
                &name,
            );
            assert_near(
                &synopsis.weights(&query).expect(&name),
                &numbers(&stated["weights"]),
                tolerance,
                &name,
            );
            // What was seen on a grid is no more than what is proved.
            assert!(
                number("truncation_per_record") <= answer.truncation.per_record * 1.001 + 1e-9,
                "{name}"
            );
            assert_eq!(answer.mean.is_some(), stated["mean"].is_number(), "{name}");
            answers += 1;
        }
    }
    assert!(answers >= 10, "{answers}");
}

#[test]
fn rows_of_tables_by_key_are_what_is_stated() {
    let mut tables = 0;
    for (name, file) in files() {
        let synopsis = Synopsis::from_json(&file["synopsis"].to_string()).expect(&name);
        let stated = &file["keys"];
        assert_eq!(synopsis.key_table().is_ok(), stated.is_object(), "{name}");
        let Ok(table) = synopsis.key_table() else {
            continue;
        };
        let readings: Vec<_> = table.readings().iter().map(|by| by.name()).collect();
        assert_eq!(stated["readings"], serde_json::json!(readings), "{name}");
        let mut unknown = 0;
        for row in stated["rows"].as_array().expect("rows") {
            let key = row["key"].as_str().expect("a key");
            let found = table.row_of(key).expect(key);
            let [is_new, until] = match found.found {
                Some(row) => [row.is_new.into(), row.until.to_string().into()],
                None => [Value::Null, Value::Null],
            };
            assert_eq!([&row["new"], &row["until"]], [&is_new, &until], "{key}");
            for (estimate, stated) in found
                .estimates
                .iter()
                .zip(row["estimates"].as_array().expect("estimates"))
            {
                assert_eq!(
                    estimate.value.is_finite(),
                    stated["value"].is_number(),
                    "{name} {key}"
                );
                assert_eq!(
                    estimate.interval.is_some(),
                    stated["interval"].is_array(),
                    "{name} {key}"
                );
                let Some(interval) = estimate.interval else {
                    unknown += 1;
                    continue;
                };
                let value = stated["value"].as_f64().expect("a value");
                assert_near(&[estimate.value], &[value], 1e-12, key);
                assert_near(
                    &[interval.lower, interval.upper],
                    &numbers(&stated["interval"]),
                    1e-12,
                    key,
                );
                assert!(
                    interval.lower <= value && value <= interval.upper,
                    "{name} {key}"
                );
            }
        }
        assert_eq!(
            unknown > 0,
            readings
                .iter()
                .any(|name| name == "mean" || name.starts_with('p')),
            "{name}: a mean without records is unknown"
        );
        assert!(table.row_of("no such key").is_err());
        let summary = table
            .found_summary()
            .map(|summary| serde_json::json!(summary));
        assert_eq!(stated["found"], serde_json::json!(summary), "{name}");
        tables += 1;
    }
    assert_eq!(tables, 12);
}

/// What a cap drops, and units by their keys, of the golden table that tells its caps.
#[test]
fn told_caps_of_tables_by_key_are_what_is_stated() {
    let mut tables = 0;
    for (name, file) in files() {
        let synopsis = Synopsis::from_json(&file["synopsis"].to_string()).expect(&name);
        let stated = &file["keys"]["caps"];
        assert_eq!(synopsis.told_caps().is_some(), stated.is_object(), "{name}");
        let Some(told) = synopsis.told_caps() else {
            continue;
        };
        let units = stated["units"].as_array().expect("units");
        assert_eq!(told.units.len(), units.len());
        let mut estimates = vec![(&told.dropped, &stated["dropped"])];
        for (unit, stated) in told.units.iter().zip(units) {
            estimates.extend([
                (&unit.estimate, stated),
                (&unit.dropped, &stated["dropped"]),
            ]);
        }
        for (found, stated) in estimates {
            let interval = found.interval.expect("an interval");
            let found = [found.value, interval.lower, interval.upper];
            let mut expected = vec![stated["value"].as_f64().expect("a value")];
            expected.extend(numbers(&stated["interval"]));
            assert_near(&found, &expected, 1e-12, &name);
        }
        for (unit, stated) in told.units.iter().zip(units) {
            let ends = [&stated["least"], &stated["most"]];
            assert_eq!(ends, [unit.bin.least, unit.bin.most]);
        }
        tables += 1;
    }
    assert_eq!(tables, 1);
}

/// Sums over keys, and shares, of the golden tables whose keys have parts.
#[test]
fn margins_and_shares_of_tables_by_key_are_what_is_stated() {
    let mut tables = 0;
    for (name, file) in files() {
        let stated = &file["keys"];
        if stated["parts"].is_null() {
            continue;
        }
        let synopsis = Synopsis::from_json(&file["synopsis"].to_string()).expect(&name);
        let table = synopsis.key_table().expect("a table by key");
        let parts: Vec<_> = table.keys().iter().map(|key| table.parts_of(key)).collect();
        assert_eq!(stated["parts"], serde_json::json!(parts), "{name}");
        // Where nobody listed the keys, sums would be without those that were not found.
        let has_sums = table.found_summary().is_none();
        assert_eq!(table.margin(&[]).is_ok(), has_sums, "{name}");
        assert_eq!(table.shares(&[]).is_ok(), has_sums, "{name}");
        for stated in stated["margins"].as_array().expect("margins") {
            let margin = table.margin(&texts(&stated["columns"])).expect("a margin");
            let rows = stated["rows"].as_array().expect("rows");
            assert_eq!(margin.rows.len(), rows.len(), "{name}");
            for (row, stated) in margin.rows.iter().zip(rows) {
                assert_eq!(stated["parts"], serde_json::json!(row.parts), "{name}");
                assert_eq!(stated["keys"], row.keys, "{name}");
                assert_estimates(&row.estimates, &stated["estimates"], &name);
            }
        }
        for stated in stated["shares"].as_array().expect("shares") {
            let shares = table.shares(&texts(&stated["columns"])).expect("shares");
            for (row, stated) in shares
                .rows
                .iter()
                .zip(stated["rows"].as_array().expect("rows"))
            {
                assert_estimates(row, stated, &name);
            }
        }
        tables += 1;
    }
    assert_eq!(tables, 3);
}

fn texts(list: &Value) -> Vec<&str> {
    let list = list.as_array().expect("a list").iter();
    list.map(|text| text.as_str().expect("a text")).collect()
}

fn assert_estimates(found: &[Estimate], stated: &Value, name: &str) {
    let stated = stated.as_array().expect("estimates");
    assert_eq!(found.len(), stated.len(), "{name}");
    for (estimate, stated) in found.iter().zip(stated) {
        assert_eq!(
            estimate.interval.is_some(),
            stated["interval"].is_array(),
            "{name}"
        );
        let Some(interval) = estimate.interval else {
            continue;
        };
        let value = stated["value"].as_f64().expect("a value");
        assert_near(&[estimate.value], &[value], 1e-12, name);
        let ends = [interval.lower, interval.upper];
        assert_near(&ends, &numbers(&stated["interval"]), 1e-12, name);
        assert!(interval.lower <= value && value <= interval.upper, "{name}");
    }
}

/// A client that checks only these must have met every kind.
#[test]
fn every_kind_is_there() {
    let files = files();
    let all: String = files
        .iter()
        .map(|(_, file)| file["synopsis"].to_string())
        .collect();
    for kind in [
        r#""bandwidths":"#,
        r#""covariance":"#,
        r#""regression":"#,
        r#""classifier":"#,
        r#""probability":"#,
        r#""sum":{"#,
        r#""moments":"#,
        r#""priestley_chao":"#,
        r#""kernel_bayes":"#,
        r#""gaussian_bayes":"#,
        r#""kernel_machine":"#,
        r#""logistic":{"#,
        r#""hinge""#,
        r#""huber""#,
        r#""squared""#,
        r#""basis":"bernstein""#,
        r#""basis":"affine""#,
        r#""precision":"#,
        r#""machine":{"gaussian""#,
        r#""laplacian":"#,
        r#""polynomial":"#,
        r#""machine":"linear""#,
        r#""cells":"#,
        r#""spline":"box""#,
        r#""spline":"linear""#,
        r#""spline":"quadratic""#,
        r#""cosine":"#,
        r#""basis":{"keys":"#,
        r#""units":{"bins":"#,
        r#""found":{"delta":"#,
        r#""is_new":true"#,
        r#""is_overfull":true"#,
        r#""counts":{"#,
        r#""per_user":"#,
        "discrete laplace",
        "discrete cube",
        "rounded ball",
        "discrete gaussian",
        "pure epsilon",
        "epsilon-delta",
        "zero-concentrated",
        r#""definition":"gaussian""#,
        "declared plan",
        r#""random":"#,
        "add_remove",
        "replace_one",
        r#""user":"#,
        r#""hopping":"#,
        r#""cumulative""#,
        r#""lipschitz":"#,
        r#""form_error":"#,
        r#""curvature":"#,
        r#""norm":"#,
        r#""times_needed":"#,
        r#""sampled""#,
        r#""choices":"#,
        r#""reading":"nonnegative""#,
        r#""incomplete":true"#,
        r#""key":null"#,
    ] {
        assert!(all.contains(kind), "{kind}");
    }
    for axes in 1..=3 {
        assert!(files.iter().any(|(_, file)| {
            file["synopsis"]["domain"]
                .as_array()
                .is_some_and(|d| d.len() == axes)
        }));
    }
}

#[test]
fn what_is_wrong_is_refused_and_without_the_fault_it_is_not() {
    Synopsis::from_json(&wrong::good()).expect("nothing is wrong with it");
    let text = fs::read_to_string(folder().join("wrong.json")).expect("wrong.json");
    let wrong: Vec<Value> = serde_json::from_str(&text).expect("JSON");
    assert!(wrong.len() > 40, "{}", wrong.len());
    for case in &wrong {
        let read = Synopsis::from_json(case["text"].as_str().expect("text"));
        assert!(read.is_err(), "{}", case["why"]);
    }
}

/// Every field that is ever written stands in the schema, wherever it is: the schema says of it what it is.
#[test]
fn every_field_stands_in_the_schema() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/synopsis.schema.json");
    let schema: Value = serde_json::from_slice(&fs::read(path).expect("the schema")).expect("JSON");
    for (name, file) in files() {
        assert_known(&file["synopsis"], &schema, &schema, &name);
    }
    let mut stranger = files().remove(0).1["synopsis"].clone();
    stranger["privacy"]["stranger"] = true.into();
    assert!(
        unknown(&stranger, &schema, &schema).is_some(),
        "a field that is not in the schema must be found"
    );
}

fn assert_known(value: &Value, schema: &Value, whole: &Value, what: &str) {
    if let Some(field) = unknown(value, schema, whole) {
        panic!("{what}: '{field}' does not stand in clients/synopsis.schema.json");
    }
}

/// A field of `value` that `schema` does not name.
fn unknown(value: &Value, schema: &Value, whole: &Value) -> Option<String> {
    let named = named(schema, whole);
    match value {
        Value::Object(fields) => {
            fields
                .iter()
                .find_map(|(name, field)| match named.properties.get(name) {
                    Some(inner) => {
                        unknown(field, inner, whole).map(|rest| format!("{name}.{rest}"))
                    }
                    None => Some(name.clone()),
                })
        }
        Value::Array(items) => {
            let inner = named.items?;
            items.iter().find_map(|item| unknown(item, &inner, whole))
        }
        _ => None,
    }
}

/// What a schema and its alternatives name.
struct Named {
    properties: Map<String, Value>,
    items: Option<Value>,
}

fn named(schema: &Value, whole: &Value) -> Named {
    if let Some(reference) = schema["$ref"].as_str() {
        let place = reference
            .strip_prefix('#')
            .expect("a reference within the schema");
        return named(whole.pointer(place).expect("what is referred to"), whole);
    }
    let mut found = Named {
        properties: Map::new(),
        items: schema.get("items").cloned(),
    };
    for alternative in schema["oneOf"].as_array().into_iter().flatten() {
        let Named { properties, items } = named(alternative, whole);
        found.properties.extend(properties);
        found.items = found.items.or(items);
    }
    found.properties.extend(
        schema["properties"]
            .as_object()
            .cloned()
            .unwrap_or_default(),
    );
    found
}

/// The page is tested on what a worker writes today, as far as that follows from the description: how far the form is off.
#[test]
fn the_synopses_that_the_page_is_tested_with_say_what_their_form_adds() {
    let mut known = 0;
    for entry in fs::read_dir("tests/browser/fixtures").expect("the folder") {
        let path = entry.expect("a file").path();
        let mut computed = None;
        for line in fs::read_to_string(&path).expect("lines").lines() {
            let synopsis = Synopsis::from_json(line).expect("a synopsis");
            let about = synopsis.description();
            let of_form = || {
                form_error::density_form_error(
                    &about.target,
                    &about.shape(),
                    about.order,
                    &about.domain,
                )
            };
            // All of a file have one description, but for their window.
            assert_eq!(
                about.form_error,
                *computed.get_or_insert_with(of_form),
                "{}",
                path.display()
            );
            known += usize::from(about.form_error.is_some());
        }
    }
    assert!(known > 20, "{known}");
}
