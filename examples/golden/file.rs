//! One golden file: a synopsis in both forms, and the results of every reading.

use std::error::Error;

use base64::prelude::{BASE64_STANDARD, Engine};
use bernstream_synopsis as synopsis;
use bernstream_synopsis::description::{AxisDescription, Basis, CellLabel};
use bernstream_synopsis::key_table::CountedTable;
use bernstream_synopsis::query::Query;
use bernstream_synopsis::tables::{ConfidenceInterval, Estimate, KernelFit, PointEstimate};
use bernstream_synopsis::told_caps::ToldBin;
use bernstream_synopsis::{Synopsis, SynopsisReading};
use serde_json::{Value, json};

/// A synopsis and what to evaluate.
pub struct Case {
    pub name: &'static str,
    pub synopsis: Synopsis,
    pub orders: Vec<u32>,
    pub queries: Vec<&'static str>,
    /// Whether to include the readings of [`bernstream_synopsis::proper`].
    pub proper: bool,
}

/// The tolerance for clients that compute with the same floats in another order.
const TOLERANCE: f64 = 1e-12;
/// The tolerances where systems are solved. A program that keeps directions of the kernel's space that floats cannot distinguish,
/// which this one omits, differs by up to 4e-9 and 4e-7.
const POSTERIOR: f64 = 1e-7;
const INTERPOLATION: f64 = 1e-5;
/// Where a line is fitted, and where an interval is the root of a difference.
const READING: f64 = 1e-9;
/// Of an integral, whose noise and form are those of sums that cancel.
const INTEGRAL: f64 = 1e-9;
/// The length of `L^-1 k_P(x)`.
const LENGTH: f64 = 1e-10;

pub fn text(case: &Case) -> Result<String, Box<dyn Error>> {
    let sealed = case.synopsis.encode()?;
    let headers: Vec<Value> = sealed
        .headers
        .iter()
        .map(|(name, value)| json!([name, value]))
        .collect();
    let mut text = String::from("{\n");
    for (name, value) in [
        ("name", json!(case.name).to_string()),
        ("synopsis", case.synopsis.to_json()?),
        (
            "arrow",
            json!(BASE64_STANDARD.encode(&sealed.bytes)).to_string(),
        ),
        (
            "message",
            json!({ "key": sealed.key, "headers": headers }).to_string(),
        ),
        ("evaluations", evaluations(case)?.to_string()),
        ("refused", refused(case).to_string()),
        ("half_widths", half_widths(case)?.to_string()),
        ("form_error", json!(case.synopsis.form_error()).to_string()),
        ("integrals", integrals(case)?.to_string()),
        ("readings", readings_of_tables(case)?.to_string()),
        ("keys", rows_of_keys(case).to_string()),
        ("queries", queries(case)?.to_string()),
        ("proper", proper(case)?.to_string()),
    ] {
        // Other forms have none, and their files stay what they were.
        if ["form_error", "integrals", "readings", "keys"].contains(&name) && value == "null" {
            continue;
        }
        let comma = if name == "proper" { "" } else { "," };
        text.push_str(&format!("{name:?}: {value}{comma}\n"));
    }
    text.push_str("}\n");
    Ok(text)
}

/// The name of a reading in a file.
fn name(by: SynopsisReading) -> Value {
    match by {
        SynopsisReading::Bernstein(order) => json!(order),
        SynopsisReading::Nearest => json!("nearest"),
        SynopsisReading::Kernel => json!("kernel"),
        SynopsisReading::Posterior => json!("posterior"),
        SynopsisReading::Nonnegative => json!("nonnegative"),
    }
}

fn readings(case: &Case) -> Vec<SynopsisReading> {
    let orders = case
        .orders
        .iter()
        .map(|order| SynopsisReading::Bernstein(*order));
    orders
        .chain([
            SynopsisReading::Nearest,
            SynopsisReading::Kernel,
            SynopsisReading::Posterior,
            SynopsisReading::Nonnegative,
        ])
        .collect()
}

fn evaluations(case: &Case) -> Result<Value, Box<dyn Error>> {
    let points = points(&case.synopsis.description().domain);
    let mut evaluations = Vec::new();
    for by in readings(case) {
        // Readings that do not exist are listed under `refused`.
        let Ok(evaluator) = case.synopsis.evaluator(by) else {
            continue;
        };
        let values = at(&points, |point| evaluator.evaluate(point))?;
        let deviations: Option<Vec<f64>> = points
            .iter()
            .map(|p| evaluator.deviation(p).ok().flatten())
            .collect();
        let tolerance = tolerance(&case.synopsis, by, &values);
        evaluations.push(json!({
            "by": name(by),
            "points": points,
            "values": values,
            "deviations": deviations,
            "mass": evaluator.total_mass(),
            "tolerance": tolerance,
        }));
    }
    Ok(json!(evaluations))
}

fn refused(case: &Case) -> Value {
    let refused = readings(case)
        .into_iter()
        .filter(|by| case.synopsis.evaluator(*by).is_err());
    json!(refused.map(name).collect::<Vec<Value>>())
}

/// Relative to the largest value. For kernel functions, whose coefficients can be far larger than their sum, the effect of
/// rounding every term.
fn tolerance(synopsis: &Synopsis, by: SynopsisReading, values: &[f64]) -> f64 {
    let largest = |values: &[f64]| {
        values
            .iter()
            .fold(0.0_f64, |most, value| most.max(value.abs()))
    };
    match (by, &synopsis.description().basis) {
        (SynopsisReading::Posterior | SynopsisReading::Nonnegative, _) => POSTERIOR,
        (SynopsisReading::Kernel, Basis::Bernstein) => INTERPOLATION,
        (_, Basis::Tables(_)) => READING,
        (_, Basis::Kernel(_) | Basis::Cells(_)) => {
            let terms: f64 = synopsis.values().iter().map(|value| value.abs()).sum();
            rounded_up((4e-15 * terms / largest(values)).max(TOLERANCE))
        }
        _ => TOLERANCE,
    }
}

/// Rounded up to a power of ten.
fn rounded_up(tolerance: f64) -> f64 {
    10.0_f64.powi(tolerance.log10().ceil() as i32)
}

fn half_widths(case: &Case) -> Result<Value, Box<dyn Error>> {
    let about = case.synopsis.description();
    if matches!(about.basis, Basis::Cosine { .. } | Basis::Keys(_)) {
        return Ok(Value::Null);
    }
    let points = points(&about.domain);
    // The intervals of tables are not as wide on both sides: they are under `readings`.
    let ends = |order: u32, half: &dyn Fn(&[f64]) -> Result<f64, synopsis::SynopsisError>| {
        let evaluator = case.synopsis.evaluator(order)?;
        let ends = points
            .iter()
            .map(|point| evaluator.interval(point, half(point)?));
        let ends: Vec<[f64; 2]> = ends.collect::<Result<_, _>>()?;
        Ok::<_, synopsis::SynopsisError>(json!(
            (!matches!(about.basis, Basis::Tables(_))).then_some(ends)
        ))
    };
    let mut pointwise = Vec::new();
    for order in &case.orders {
        let band = case.synopsis.pointwise_band(*order)?;
        pointwise.push(json!({
            "order": order,
            "ends": ends(*order, &|point| band.half_width(point))?,
            "half_widths": at(&points, |point| band.half_width(point))?,
            "deviations": at(&points, |point| band.deviation(point))?,
        }));
    }
    let tolerance = match about.basis {
        Basis::Kernel(_) => LENGTH,
        Basis::Tables(_) => READING,
        _ => TOLERANCE,
    };
    Ok(json!({
        "simultaneous": at(&points, |point| case.synopsis.half_width(point))?,
        "ends": ends(about.order, &|point| case.synopsis.half_width(point))?,
        "points": points,
        "pointwise": pointwise,
        "tolerance": tolerance,
    }))
}

/// Integrals over boxes that are found without a midpoint rule: clients differ in how fine theirs are.
fn integrals(case: &Case) -> Result<Value, Box<dyn Error>> {
    let about = case.synopsis.description();
    let is_exact = match &about.basis {
        Basis::Bernstein | Basis::Affine => true,
        Basis::Cells(basis) => basis.is_diagonal(),
        Basis::Kernel(_) | Basis::Tables(_) | Basis::Cosine { .. } | Basis::Keys(_) => false,
    };
    if !is_exact {
        return Ok(Value::Null);
    }
    let mut integrals = Vec::new();
    for parts in [[0.0, 1.0], [0.0, 0.31], [0.25, 0.5], [0.93, 0.94]] {
        let side =
            |axis: &AxisDescription| parts.map(|part| axis.min + part * (axis.max - axis.min));
        let sides: Vec<[f64; 2]> = about.domain.iter().map(side).collect();
        let found = case.synopsis.integrate(&sides)?;
        integrals.push(json!({
            "box": sides,
            "value": found.value,
            "noise_deviation": found.noise.deviation,
            "noise_half_width": found.noise.half_width,
            "form_error": found.form_error,
            "tolerance": INTEGRAL,
            "half_width_tolerance": 2e-3,
        }));
    }
    Ok(json!(integrals))
}

/// What is read from tables of cells, at the smallest bandwidths and at twice those.
fn readings_of_tables(case: &Case) -> Result<Value, Box<dyn Error>> {
    let Ok(tables) = case.synopsis.tables() else {
        return Ok(Value::Null);
    };
    let about = case.synopsis.description();
    let points = points(&about.domain);
    let least = tables.bandwidths();
    let wide: Vec<f64> = least.iter().map(|b| 2.0 * b).collect();
    let is_number = matches!(tables.label(), Some(CellLabel::Number { .. }));
    let labelled: Vec<usize> = if tables.label().is_some() {
        (0..tables.count()).collect()
    } else {
        Vec::new()
    };
    let mut readings = Vec::new();
    for bandwidths in [&least, &wide] {
        let kernel = tables.kernel(Some(bandwidths))?;
        for point in points.iter().step_by(points.len().div_ceil(8)) {
            let mut add = |about: Value, reading: PointEstimate| {
                let mut entry = json!({
                    "bandwidths": bandwidths,
                    "point": point,
                    "value": reading.value,
                    "pointwise": interval(reading.pointwise),
                    "simultaneous": interval(reading.simultaneous),
                    "tolerance": READING,
                });
                extend(&mut entry, about);
                readings.push(entry);
            };
            add(json!({ "reading": "density" }), kernel.density(point)?);
            let naive = [("naive", KernelFit::Naive)]
                .into_iter()
                .filter(|_| !is_number);
            for (degree, fit) in [
                ("constant", KernelFit::Constant),
                ("linear", KernelFit::Linear),
            ]
            .into_iter()
            .chain(naive)
            {
                for table in &labelled {
                    let about =
                        json!({ "reading": "probability", "table": table, "degree": degree });
                    add(about, kernel.probability(point, *table, fit)?);
                }
                if is_number {
                    add(
                        json!({ "reading": "expected", "degree": degree }),
                        kernel.expected(point, fit)?,
                    );
                }
            }
            for over in labelled.iter().filter(|_| !is_number) {
                let of = (over + 1) % labelled.len();
                let about = json!({ "reading": "density_ratio", "table": of, "over": over });
                add(about, kernel.density_ratio(point, of, *over)?);
            }
        }
    }
    for parts in [[0.0, 0.31], [0.25, 0.5], [0.4, 1.0], [0.93, 0.94]] {
        let side =
            |axis: &AxisDescription| parts.map(|part| axis.min + part * (axis.max - axis.min));
        let sides: Vec<[f64; 2]> = about.domain.iter().map(side).collect();
        let range = tables.range(&sides)?;
        let mut add = |about: Value, estimate: Estimate| {
            let value = estimate.value;
            let within = interval(estimate.interval);
            let mut entry = json!({ "range": sides, "value": value, "pointwise": within, "tolerance": READING });
            extend(&mut entry, about);
            readings.push(entry);
        };
        add(json!({ "reading": "count" }), range.count());
        add(json!({ "reading": "share" }), range.share());
        for table in &labelled {
            add(
                json!({ "reading": "probability", "table": table }),
                range.probability(*table)?,
            );
        }
        if is_number {
            add(json!({ "reading": "expected" }), range.mean()?);
        }
    }
    for part in [0.05, 0.5, 0.9] {
        let Ok(Estimate {
            value,
            interval: within,
        }) = tables.quantile(part)
        else {
            continue;
        };
        let within = interval(within);
        readings.push(json!({
            "reading": "quantile", "part": part, "value": value, "pointwise": within, "tolerance": READING,
        }));
    }
    Ok(json!(readings))
}

/// The ends of an interval; null is unknown.
fn interval(interval: Option<ConfidenceInterval>) -> Value {
    json!(interval.map(|ConfidenceInterval { lower, upper }| [lower, upper]))
}

/// The rows of a table by key, and its largest keys by each reading.
fn rows_of_keys(case: &Case) -> Value {
    let Ok(table) = case.synopsis.key_table() else {
        return Value::Null;
    };
    let mut rows = Vec::new();
    for row in table.rows() {
        let estimates: Vec<Value> = row.estimates.iter().map(written_estimate).collect();
        let mut entry = json!({ "key": row.key, "estimates": estimates });
        if let Some(found) = row.found {
            extend(
                &mut entry,
                json!({ "new": found.is_new, "until": found.until }),
            );
        }
        rows.push(entry);
    }
    let mut top = Vec::new();
    for by in table.readings() {
        for count in 1..=table.keys().len() {
            let found = table.top_keys(*by, count).unwrap_or_default();
            let keys: Vec<&str> = found.rows.iter().map(|row| row.key).collect();
            top.push(json!({
                "by": by, "count": count, "keys": keys, "is_last_unclear": found.is_last_unclear,
            }));
        }
    }
    let mut keys = json!({
        "readings": table.readings(),
        "rows": rows,
        "top": top,
        "tolerance": TOLERANCE,
        "half_width_tolerance": 2e-3,
    });
    if !table.key_columns().is_empty() {
        extend(&mut keys, sums_over_keys(&table));
    }
    if let Some(summary) = table.found_summary() {
        keys["found"] = json!(summary);
    }
    if let Some(told) = case.synopsis.told_caps() {
        let mut units = Vec::new();
        for ToldBin {
            bin,
            estimate,
            dropped,
        } in &told.units
        {
            let mut entry = written_estimate(estimate);
            extend(&mut entry, json!(bin));
            entry["dropped"] = written_estimate(dropped);
            units.push(entry);
        }
        keys["caps"] = json!({ "dropped": written_estimate(&told.dropped), "units": units });
    }
    keys
}

/// The parts of the keys, and the margins and shares in all columns and in each.
fn sums_over_keys(table: &CountedTable<'_>) -> Value {
    let parts: Vec<_> = table.keys().iter().map(|key| table.parts_of(key)).collect();
    let mut margins = Vec::new();
    let mut all_shares = Vec::new();
    let mut asked: Vec<Vec<&str>> = vec![Vec::new()];
    asked.extend(
        table
            .key_columns()
            .iter()
            .map(|column| vec![column.as_str()]),
    );
    for columns in &asked {
        if let Ok(margin) = table.margin(columns) {
            let mut rows = Vec::new();
            for row in &margin.rows {
                let estimates: Vec<Value> = row.estimates.iter().map(written_estimate).collect();
                rows.push(json!({ "parts": row.parts, "keys": row.keys, "estimates": estimates }));
            }
            margins.push(json!({ "columns": columns, "readings": margin.readings, "rows": rows }));
        }
        if let Ok(shares) = table.shares(columns) {
            let mut rows: Vec<Vec<Value>> = Vec::new();
            for row in &shares.rows {
                rows.push(row.iter().map(written_estimate).collect());
            }
            all_shares
                .push(json!({ "columns": columns, "readings": shares.readings, "rows": rows }));
        }
    }
    json!({ "parts": parts, "margins": margins, "shares": all_shares })
}

fn written_estimate(estimate: &Estimate) -> Value {
    json!({ "value": estimate.value, "interval": interval(estimate.interval) })
}

fn extend(entry: &mut Value, about: Value) {
    if let (Value::Object(entry), Value::Object(about)) = (entry, about) {
        entry.extend(about);
    }
}

fn queries(case: &Case) -> Result<Value, Box<dyn Error>> {
    let mut queries = Vec::new();
    for function in &case.queries {
        let proved = Query::expression(function, &case.synopsis)?;
        let answer = case.synopsis.answer(&proved)?;
        // Found on a fine grid, which every client can do; only the library has the proof by intervals.
        let seen = case
            .synopsis
            .answer(&Query::function(|x| value(function, x)))?;
        let weights = case.synopsis.weights(&proved)?;
        queries.push(json!({
            "function": function,
            // The tolerances are relative to this: about the largest value of the function.
            "size": weights.iter().map(|weight| weight.abs()).sum::<f64>(),
            "weights": weights,
            "sum": answer.sum,
            "noise_deviation": answer.noise.deviation,
            "noise_half_width": answer.noise.half_width,
            "truncation_per_record": seen.truncation.per_record,
            "truncation_proved": answer.truncation.is_proved.then_some(answer.truncation.per_record),
            "mean": answer.mean.map(|mean| mean.value),
            "mean_noise_half_width": answer.mean.map(|mean| mean.noise.half_width),
            "tolerance": 1e-10,
            "half_width_tolerance": 2e-3,
        }));
    }
    Ok(json!(queries))
}

/// The queries of the files as a client has them: functions of a point, by their text.
fn value(function: &str, x: &[f64]) -> f64 {
    let near = |x: f64, center: f64, width: f64| (-((x - center) / width).powi(2) / 2.0).exp();
    match (function, x) {
        ("1", _) => 1.0,
        ("dep_delay", [delay, ..]) => *delay,
        ("dep_delay^3 - 2 * dep_delay", [delay, ..]) => delay.powi(3) - 2.0 * delay,
        ("exp(-(dep_delay/60)^2)", [delay, ..]) => (-(delay / 60.0).powi(2)).exp(),
        ("1 / (1 + exp((15 - dep_delay) / 10))", [delay, ..]) => {
            1.0 / (1.0 + ((15.0 - delay) / 10.0).exp())
        }
        ("exp(-((dep_delay - 15)/40)^2/2) * exp(-((hour - 17)/6)^2/2)", [delay, hour, ..]) => {
            near(*delay, 15.0, 40.0) * near(*hour, 17.0, 6.0)
        }
        ("dep_delay * hour", [delay, hour, ..]) => delay * hour,
        ("dep_delay * hour * distance / 1000", [delay, hour, distance]) => {
            delay * hour * distance / 1000.0
        }
        _ => f64::NAN,
    }
}

fn proper(case: &Case) -> Result<Value, Box<dyn Error>> {
    if !case.proper {
        return Ok(Value::Null);
    }
    let points = points(&case.synopsis.description().domain);
    let order = case.synopsis.description().order;
    let evaluator = || case.synopsis.evaluator(order);
    let density = evaluator()?.proper_density()?;
    let cumulative = match evaluator()?.distribution_function() {
        Ok(cumulative) => Some(at(&points, |point| cumulative.evaluate(point))?),
        Err(_) => None,
    };
    Ok(json!({
        "order": order,
        "mass": density.mass(),
        "densities": at(&points, |point| density.evaluate(point))?,
        "cumulative": cumulative,
        "points": points,
        "tolerance": 1e-11,
    }))
}

fn at<E>(points: &[Vec<f64>], f: impl Fn(&[f64]) -> Result<f64, E>) -> Result<Vec<f64>, E> {
    points.iter().map(|point| f(point)).collect()
}

/// Corners, edges, and irregular points, in natural units.
pub fn points(domain: &[AxisDescription]) -> Vec<Vec<f64>> {
    let unit: &[&[f64]] = match domain.len() {
        1 => &[
            &[0.0],
            &[1e-6],
            &[0.0137],
            &[0.1],
            &[0.25],
            &[0.4611],
            &[0.5],
            &[0.77],
            &[0.9899],
            &[1.0],
        ],
        2 => &[
            &[0.0, 0.0],
            &[0.0, 1.0],
            &[1.0, 0.0],
            &[1.0, 1.0],
            &[0.0, 0.37],
            &[0.61, 1.0],
            &[0.11, 0.34],
            &[0.5, 0.72],
            &[0.873, 0.0129],
        ],
        _ => &[
            &[0.0, 0.0, 0.0],
            &[1.0, 1.0, 1.0],
            &[0.0, 1.0, 0.0],
            &[0.0, 1.0, 0.43],
            &[0.32, 0.0, 0.81],
            &[0.11, 0.34, 0.2],
            &[0.52, 0.72, 0.09],
            &[0.873, 0.0129, 0.64],
        ],
    };
    let natural = |(axis, y): (&AxisDescription, &f64)| {
        let x = axis.min + y * (axis.max - axis.min);
        ((x * 1e6).round() / 1e6).clamp(axis.min, axis.max)
    };
    unit.iter()
        .map(|point| domain.iter().zip(*point).map(natural).collect())
        .collect()
}
