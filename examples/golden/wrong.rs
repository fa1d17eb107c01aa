//! What every reader must reject: valid synopses with one error each.

use std::error::Error;

use bernstream_synopsis::Synopsis;
use serde_json::{Value, json};

const GOOD: &str = r#"{"format":1,"pipeline":"flights","release":"departure-delay","key":"JFK",
"window":{"start":"2013-01-01T05:00:00Z","end":"2013-01-02T05:00:00Z"},"published":"2013-01-02T06:01:00Z",
"target":{"density":{"kernel":{"bandwidths":[10.0]},"divide_by":null}},"meaning":"records per unit of dep_delay",
"domain":[{"column":"dep_delay","min":-30.0,"max":180.0}],"basis":"bernstein","degree":2,"order":2,
"noise":{"law":"discrete laplace","scale":0.25,"grid":5e-10,"calibrated":"tight"},
"privacy":{"definition":"pure epsilon","unit":"record","in_words":"one record more or less","adjacency":"add_remove",
"price":"0.5","blocks":[{"start":"2013-01-01T05:00:00Z","end":"2013-01-02T05:00:00Z","spent":"0.5","total":"1"}]},
"band":{"covers":"the noise, not the approximation","level":0.95,"half_width":1.25,"weights":[1.0,1.5,1.0],"draws":20000},
"not_protected":[],"incomplete":false,"digests":{"configuration":"9f86d081884c7d65","program":"0.1.0"},
"ledger":{"id":"3b1f0c7e9a2d4f60","sequence":17},"synthetic":true,"values":[2.0,4.0,6.0]}"#;

/// The valid synopsis from which each of the others differs in one way.
pub fn good() -> String {
    GOOD.replace('\n', "")
}

pub fn text() -> Result<String, Box<dyn Error>> {
    let points = r#""basis":{"kernel":{"kernel":{"machine":"linear"},"points":"#;
    let as_written = [
        ("format 2", r#""format":1"#, r#""format":2"#),
        ("no format", r#""format":1,"#, ""),
        ("too few values", "[2.0,4.0,6.0]", "[2.0,4.0]"),
        ("too many values", "[2.0,4.0,6.0]", "[2.0,4.0,6.0,8.0]"),
        ("no values", r#","values":[2.0,4.0,6.0]"#, ""),
        ("a value that is null", "[2.0,4.0,6.0]", "[2.0,null,6.0]"),
        (
            "a value that is text",
            "[2.0,4.0,6.0]",
            r#"[2.0,"4.0",6.0]"#,
        ),
        ("a value that is true", "[2.0,4.0,6.0]", "[2.0,true,6.0]"),
        (
            "a value too large for a number",
            "[2.0,4.0,6.0]",
            "[2.0,1e999,6.0]",
        ),
        (
            "a value that is NaN, which is not JSON",
            "[2.0,4.0,6.0]",
            "[2.0,NaN,6.0]",
        ),
        (
            "values in a list of lists",
            "[2.0,4.0,6.0]",
            "[[2.0,4.0,6.0]]",
        ),
        (
            "an axis upside down",
            r#""min":-30.0,"max":180.0"#,
            r#""min":180.0,"max":-30.0"#,
        ),
        ("an axis without width", r#""min":-30.0"#, r#""min":180.0"#),
        (
            "an axis whose width overflows",
            r#""min":-30.0,"max":180.0"#,
            r#""min":-1.7e308,"max":1.7e308"#,
        ),
        ("an axis without bounds", r#","min":-30.0,"max":180.0"#, ""),
        (
            "no axis",
            r#"[{"column":"dep_delay","min":-30.0,"max":180.0}]"#,
            "[]",
        ),
        ("degree 0", r#""degree":2"#, r#""degree":0"#),
        ("a negative degree", r#""degree":2"#, r#""degree":-2"#),
        ("a degree above 5000", r#""degree":2"#, r#""degree":5001"#),
        (
            "a degree with a fraction",
            r#""degree":2"#,
            r#""degree":2.5"#,
        ),
        ("order 0", r#""order":2"#, r#""order":0"#),
        ("an order above 1000", r#""order":2"#, r#""order":1001"#),
        ("a band of 0", r#""half_width":1.25"#, r#""half_width":0.0"#),
        (
            "a negative band",
            r#""half_width":1.25"#,
            r#""half_width":-1.25"#,
        ),
        ("a band without weights", "[1.0,1.5,1.0]", "[]"),
        (
            "a band with a weight of 0",
            "[1.0,1.5,1.0]",
            "[1.0,0.0,1.0]",
        ),
        (
            "an error of the form of 0",
            r#""draws":20000},"#,
            r#""draws":20000,"pointwise":0.7},"form_error":0.0,"#,
        ),
        (
            "an error of the form without a pointwise band",
            r#""draws":20000},"#,
            r#""draws":20000},"form_error":0.1,"#,
        ),
        (
            "a pointwise band of 0",
            r#""draws":20000"#,
            r#""draws":20000,"pointwise":0.0"#,
        ),
        (
            "a band that covers something else",
            "the noise, not the approximation",
            "everything",
        ),
        ("noise without scale", r#""scale":0.25"#, r#""scale":0.0"#),
        ("noise without grid", r#""grid":5e-10"#, r#""grid":0"#),
        (
            "a law of noise that nobody knows",
            "discrete laplace",
            "cauchy",
        ),
        (
            "a basis that nobody knows",
            r#""basis":"bernstein""#,
            r#""basis":"wavelets""#,
        ),
        (
            "a target that nobody knows",
            r#"{"density":"#,
            r#"{"median":"#,
        ),
        (
            "a window that is not a time",
            r#"{"start":"2013-01-01T05:00:00Z","end":"2013-01-02T05:00:00Z"},"published""#,
            r#"{"start":"yesterday","end":"2013-01-02T05:00:00Z"},"published""#,
        ),
        (
            "a price of another kind than the definition",
            r#""price":"0.5""#,
            r#""price":{"rho":"0.5"}"#,
        ),
        (
            "a price that is a number",
            r#""price":"0.5""#,
            r#""price":0.5"#,
        ),
        (
            "a declared plan without what it implies",
            r#""pure epsilon""#,
            r#""declared plan""#,
        ),
        (
            "noise sampled, but differential privacy that is not random",
            r#""calibrated":"tight""#,
            r#""calibrated":"sampled""#,
        ),
        (
            "smoothness for more axes than there are",
            r#""synthetic":true"#,
            r#""synthetic":true,"smoothness":{"lipschitz":[1.0,2.0]}"#,
        ),
        (
            "a reading of cells, but no cells",
            r#""synthetic":true"#,
            r#""synthetic":true,"reading":"nonnegative""#,
        ),
        (
            "an offset that is not a number",
            r#""synthetic":true"#,
            r#""synthetic":true,"offset":null"#,
        ),
        (
            "no lattice, but a degree",
            r#""basis":"bernstein""#,
            r#""basis":"affine""#,
        ),
        (
            "no description of the noise",
            r#""noise":{"law":"discrete laplace","scale":0.25,"grid":5e-10,"calibrated":"tight"},"#,
            "",
        ),
    ];
    let mut wrong: Vec<Value> = Vec::new();
    let good = good();
    for (why, from, to) in as_written {
        if good.matches(from).count() != 1 {
            return Err(format!("{from} does not stand in the example once").into());
        }
        wrong.push(json!({ "why": why, "text": good.replace(from, to) }));
    }
    // Forms without a lattice have degree and order 1.
    let flat = good.replace(r#""degree":2,"order":2"#, r#""degree":1,"order":1"#);
    let cells = |precision: &str, spline: &str, steps: &str| {
        format!(
            r#""basis":{{"cells":{{"precision":{precision},"spline":"{spline}","steps":{steps}}}}}"#
        )
    };
    for (why, basis) in [
        ("kernel points outside of the cube", format!("{points}[[0.0],[0.5],[1.5]]}}}}")),
        ("kernel points of another dimension", format!("{points}[[0.0,0.0],[0.5,0.5],[1.0,1.0]]}}}}")),
        ("no kernel points", format!("{points}[]}}}}")),
        (
            "a kernel matrix of another dimension",
            r#""basis":{"kernel":{"kernel":{"gaussian":{"precision":[[1.0,0.0],[0.0,1.0]]}},"points":[[0.0],[0.5],[1.0]]}}"#
                .to_owned(),
        ),
        ("cells of another number of axes", cells("[[4.0]]", "box", "[3,1]")),
        ("cells without a step", cells("[[4.0]]", "box", "[0]")),
        ("cells with part of a step", cells("[[4.0]]", "box", "[3.5]")),
        ("cells of another number than the values", cells("[[4.0]]", "linear", "[3]")),
        ("more cells than anybody releases", cells("[[4.0]]", "box", "[65537]")),
        ("cells shared by nobody knows what", cells("[[4.0]]", "cubic", "[3]")),
        (
            "a recommended reading that nobody knows",
            format!(r#"{},"reading":"sharp""#, cells("[[4.0]]", "box", "[3]")),
        ),
        ("cells read by a matrix of another dimension", cells("[[4.0,0.0],[0.0,4.0]]", "box", "[3]")),
        ("cells read by a matrix that is not positive definite", cells("[[-4.0]]", "box", "[3]")),
        ("no frequencies", r#"""basis":{"cosine":{"frequencies":0}}"#.to_owned()),
        ("more frequencies than anybody releases", r#""basis":{"cosine":{"frequencies":2000}}"#.to_owned()),
        ("an affine function with three coefficients on one axis", r#""basis":"affine""#.to_owned()),
    ] {
        wrong.push(json!({ "why": why, "text": flat.replace(r#""basis":"bernstein""#, &basis) }));
    }
    let tables = |target: Value,
                  bandwidths: Value,
                  tables: u32|
     -> Result<String, Box<dyn Error>> {
        let mut about: Value = serde_json::from_str(&flat)?;
        about["target"] = target;
        about["basis"] = json!({ "tables": { "spline": "box", "steps": [3], "bandwidths": bandwidths, "tables": tables } });
        Ok(about.to_string())
    };
    let cells = |label: Value| json!({ "cells": { "label": label } });
    let density = json!({ "density": { "kernel": { "bandwidths": [10.0] }, "divide_by": null } });
    Synopsis::from_json(&tables(cells(Value::Null), json!([0.5]), 1)?)?;
    for (why, text) in [
        ("tables of a density", tables(density, json!([0.5]), 1)?),
        (
            "tables of another number than the label's",
            tables(
                cells(json!({ "above": { "column": "x", "above": 1.0 } })),
                json!([0.5]),
                1,
            )?,
        ),
        (
            "tables of one class",
            tables(
                cells(json!({ "classes": { "column": "x", "values": [1.0] } })),
                json!([0.5]),
                1,
            )?,
        ),
        (
            "tables read by a kernel as narrow as their spline",
            tables(cells(Value::Null), json!([0.09]), 1)?,
        ),
        (
            "tables read by a kernel wider than the domain",
            tables(cells(Value::Null), json!([1.5]), 1)?,
        ),
        (
            "tables without a bandwidth for each axis",
            tables(cells(Value::Null), json!([0.5, 0.5]), 1)?,
        ),
        (
            "tables of another number than the values",
            tables(cells(Value::Null), json!([0.5]), 0)?,
        ),
    ] {
        wrong.push(json!({ "why": why, "text": text }));
    }
    let told = |bins: Value, values: usize| -> Result<String, Box<dyn Error>> {
        let mut about: Value = serde_json::from_str(&flat)?;
        about["key"] = Value::Null;
        about["domain"] = json!([]);
        about["target"] = json!({ "counts": { "max_keys": 2, "parts": [] } });
        about["basis"] = json!({ "keys": {
            "keys": ["a", "b", "c"], "columns": [{ "statistic": "users", "unit": 1.0 }], "units": { "bins": bins, "unit": 1.0 },
        } });
        about["values"] = vec![1.0; values].into();
        Ok(about.to_string())
    };
    let bin = |least: u32, most: u32| json!({ "least": least, "most": most });
    Synopsis::from_json(&told(json!([bin(1, 2), bin(3, 3)]), 5)?)?;
    for (why, text) in [
        (
            "numbers of units of which none ends at the cap",
            told(json!([bin(1, 1), bin(2, 3)]), 5)?,
        ),
        (
            "numbers of units with a gap",
            told(json!([bin(1, 1), bin(3, 3)]), 5)?,
        ),
        (
            "numbers of units that overlap",
            told(json!([bin(1, 2), bin(2, 3)]), 5)?,
        ),
        (
            "numbers of units of fewer keys than there are",
            told(json!([bin(1, 2)]), 4)?,
        ),
        ("no numbers of units", told(json!([]), 3)?),
        (
            "numbers of units without a value for each",
            told(json!([bin(1, 2), bin(3, 3)]), 4)?,
        ),
    ] {
        wrong.push(json!({ "why": why, "text": text }));
    }
    wrong.extend(found_keys(&flat)?);
    for (why, text) in [
        ("nothing", ""),
        ("not JSON", "a synopsis"),
        ("not an object", "[1]"),
        ("null", "null"),
        ("an empty object", "{}"),
    ] {
        wrong.push(json!({ "why": why, "text": text }));
    }
    wrong.push(json!({ "why": "cut short", "text": &good[..good.len() - 20] }));
    let lines: Vec<String> = wrong.iter().map(Value::to_string).collect();
    Ok(format!("[\n{}\n]\n", lines.join(",\n")))
}

/// Tables of keys that nobody listed, each with one error.
fn found_keys(flat: &str) -> Result<Vec<Value>, Box<dyn Error>> {
    let mut right: Value = serde_json::from_str(flat)?;
    right["key"] = Value::Null;
    right["domain"] = json!([]);
    right["target"] =
        json!({ "counts": { "max_keys": 1, "parts": [{ "of": "records", "part": 1.0 }] } });
    right["noise"]["scale"] = json!(4096.0);
    right["noise"]["grid"] = json!(1.0);
    let price = json!({ "epsilon": "1", "delta": "0.000000001" });
    right["privacy"]["definition"] = json!("epsilon-delta");
    right["privacy"]["price"] = price.clone();
    right["privacy"]["blocks"][0]["spent"] = price.clone();
    right["privacy"]["blocks"][0]["total"] = price;
    let renewed = "2013-01-03T05:00:00Z";
    right["basis"] = json!({ "keys": {
        "keys": ["a", "ab", "\u{f3}"],
        "columns": [{ "statistic": "records", "unit": 1.0 / 4096.0 }],
        "found": {
            "threshold": 84277, "delta": "0.000000001", "keep_seconds": 86400, "most": 3, "longest": 2,
            "overfull": { "limit": 1000, "soft_limit": 900, "is_overfull": false },
            "rows": [
                { "is_new": true, "until": renewed },
                { "is_new": false, "until": "2013-01-01T06:00:00Z" },
                { "is_new": false, "until": renewed },
            ],
        },
    } });
    right["values"] = json!([20.75, -1.5, 40.0]);
    Synopsis::from_json(&right.to_string())?;
    let found = "/basis/keys/found";
    let mut wrong = Vec::new();
    for (why, place, value) in [
        (
            "found keys that are not sorted",
            "/basis/keys/keys",
            json!(["ab", "a", "\u{f3}"]),
        ),
        (
            "found keys that are sorted by other than their bytes",
            "/basis/keys/keys",
            json!(["a", "\u{f3}", "z"]),
        ),
        (
            "a found key twice",
            "/basis/keys/keys",
            json!(["a", "a", "\u{f3}"]),
        ),
        (
            "a found key without a letter",
            "/basis/keys/keys",
            json!(["", "a", "\u{f3}"]),
        ),
        (
            "a found key that is too long",
            "/basis/keys/keys",
            json!(["a", "abc", "\u{f3}"]),
        ),
        (
            "a found key that is too long in bytes",
            "/basis/keys/keys",
            json!(["a", "ab", "\u{20ac}"]),
        ),
        (
            "more found keys than a table has",
            &format!("{found}/most"),
            json!(2),
        ),
        ("no found keys at most", &format!("{found}/most"), json!(0)),
        (
            "found keys above a lower threshold than their noise has",
            &format!("{found}/threshold"),
            json!(84275),
        ),
        (
            "found keys above a higher threshold than their noise has",
            &format!("{found}/threshold"),
            json!(84279),
        ),
        (
            "found keys with another delta than that of their threshold",
            &format!("{found}/delta"),
            json!("0.00000001"),
        ),
        (
            "found keys without a delta",
            &format!("{found}/delta"),
            json!("0"),
        ),
        (
            "found keys with other noise than that of their threshold",
            "/noise/scale",
            json!(4000.0),
        ),
        (
            "found keys with noise on another grid",
            "/noise/grid",
            json!(2.0),
        ),
        (
            "found keys with another cap than that of their threshold",
            "/target/counts/max_keys",
            json!(2),
        ),
        (
            "found keys with Gaussian noise",
            "/noise/law",
            json!("discrete gaussian"),
        ),
        (
            "found keys of another number",
            "/basis/keys/columns/0/statistic",
            json!("users"),
        ),
        (
            "found keys in other units",
            "/basis/keys/columns/0/unit",
            json!(1.0),
        ),
        (
            "a new key that is not above the threshold",
            "/values/0",
            json!(20.5),
        ),
        (
            "a number of a found key that is not on the grid",
            "/values/1",
            json!(0.3),
        ),
        (
            "a found key above the threshold that is not announced anew",
            "/values/1",
            json!(30.0),
        ),
        (
            "a new key that is announced for another time",
            &format!("{found}/rows/0/until"),
            json!("2013-01-03T06:00:00Z"),
        ),
        (
            "a key whose announcement is over",
            &format!("{found}/rows/1/until"),
            json!("2013-01-01T05:00:00Z"),
        ),
        (
            "fewer rows than found keys",
            &format!("{found}/rows"),
            json!([{ "is_new": true, "until": renewed }]),
        ),
        (
            "found keys, and nothing said of them",
            &format!("{found}/rows"),
            json!([]),
        ),
        (
            "a row that does not say whether it is new",
            &format!("{found}/rows/1/is_new"),
            Value::Null,
        ),
        (
            "an overfull window with keys",
            &format!("{found}/overfull/is_overfull"),
            json!(true),
        ),
        (
            "limits of different keys that are not in order",
            &format!("{found}/overfull/soft_limit"),
            json!(1000),
        ),
        (
            "found keys where only values are protected",
            "/privacy/adjacency",
            json!("replace_one"),
        ),
    ] {
        let mut text = right.clone();
        *text.pointer_mut(place).ok_or(place)? = value;
        wrong.push(json!({ "why": why, "text": text.to_string() }));
    }
    let mut pure = right.clone();
    pure["privacy"]["definition"] = json!("pure epsilon");
    for place in [
        "/privacy/price",
        "/privacy/blocks/0/spent",
        "/privacy/blocks/0/total",
    ] {
        *pure.pointer_mut(place).ok_or(place)? = json!("1");
    }
    wrong.push(json!({ "why": "found keys under pure epsilon", "text": pure.to_string() }));
    let mut second = right.clone();
    second["basis"]["keys"]["columns"] = json!([
        { "statistic": "records", "unit": 1.0 / 4096.0 }, { "statistic": "sum", "unit": 1.0 },
    ]);
    second["target"]["counts"]["value"] = json!({ "column": "x", "min": 0.0, "max": 1.0 });
    second["values"] = json!([20.75, -1.5, 40.0, 1.0, 1.0, 1.0]);
    wrong.push(json!({ "why": "found keys with a second number", "text": second.to_string() }));
    let mut told = right.clone();
    told["basis"]["keys"]["units"] =
        json!({ "bins": [{ "least": 1, "most": 1 }, { "least": 2, "most": 3 }], "unit": 1.0 });
    told["values"] = json!([20.75, -1.5, 40.0, 1.0, 1.0]);
    wrong.push(json!({ "why": "found keys that tell their caps", "text": told.to_string() }));
    let mut columns = right;
    columns["key_columns"] = json!(["service", "until"]);
    columns["basis"]["keys"]["keys"] = json!(["/", "/a", "a/"]);
    wrong.push(json!({ "why": "found keys with a column of the table's own name", "text": columns.to_string() }));
    Ok(wrong)
}
