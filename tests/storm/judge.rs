//! What must hold whatever happened, by what is on the topics alone: the input says what each window must hold, the output
//! what was published.

use std::collections::{BTreeMap, BTreeSet};

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, TimestampMicrosecondType};
use arrow_ipc::reader::StreamReader;
use bernstream_synopsis::Synopsis;

use super::topics::Message;

/// The public rules of an episode; times in microseconds.
#[derive(Clone, Debug)]
pub struct Rules {
    pub origin: i64,
    pub length: i64,
    pub windows: i64,
    pub grace: i64,
    pub ahead: i64,
    pub backfill_until: i64,
}

/// All that is on the topics in the end.
#[derive(Clone, Debug)]
pub struct Evidence {
    pub rules: Rules,
    /// Of transactions that were committed, and without one.
    pub input: Vec<Message>,
    pub output: Vec<Message>,
    pub committed: Vec<Message>,
}

/// What was seen.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    pub records: u64,
    /// Records that belong to a window.
    pub taken: u64,
    pub slots: u64,
    /// Messages that were there before, byte for byte.
    pub repeats: u64,
    /// The largest deviation of a lattice value, in peaks of one record.
    pub deviation: f64,
}

const KEYS: [&str; 2] = ["a", "b"];
const DEGREE: usize = 12;
const BANDWIDTH: f64 = 10.0;
const WIDTH: f64 = 100.0;

/// The density of one record at its place.
fn peak() -> f64 {
    1.0 / ((2.0 * std::f64::consts::PI).sqrt() * BANDWIDTH)
}

/// The sum of the records' kernels on the lattice, and how many they are.
#[derive(Clone, Debug, Default)]
struct Exact {
    values: [f64; DEGREE + 1],
    count: u64,
}

impl Exact {
    fn add(&mut self, value: f64) {
        self.count += 1;
        for (p, sum) in self.values.iter_mut().enumerate() {
            let z = (p as f64 * WIDTH / DEGREE as f64 - value.clamp(0.0, WIDTH)) / BANDWIDTH;
            *sum += peak() * (-z * z / 2.0).exp();
        }
    }
}

impl Rules {
    /// The window that takes a record, by the record alone.
    fn window(&self, time: i64, stamp: i64) -> Option<i64> {
        let window = (time - self.origin).div_euclid(self.length);
        let cutoff =
            (self.origin + (window + 1) * self.length + self.grace).max(self.backfill_until);
        ((0..self.windows).contains(&window) && time <= stamp + self.ahead && stamp < cutoff)
            .then_some(window)
    }
}

fn rows(payload: &[u8]) -> RecordBatch {
    StreamReader::try_new(payload, None)
        .expect("a stream")
        .next()
        .expect("a batch")
        .expect("it is whole")
}

/// What each window must hold.
fn expected(evidence: &Evidence, seen: &mut Seen) -> BTreeMap<(i64, &'static str), Exact> {
    let mut windows: BTreeMap<_, Exact> = BTreeMap::new();
    for message in &evidence.input {
        let rows = rows(&message.payload);
        let times = rows["time"].as_primitive::<TimestampMicrosecondType>();
        let keys = rows["key"].as_string::<i32>();
        let values = rows["value"].as_primitive::<Float64Type>();
        for row in 0..rows.num_rows() {
            seen.records += 1;
            let key = KEYS.into_iter().find(|key| *key == keys.value(row));
            let window = evidence.rules.window(times.value(row), message.stamp);
            if let (Some(key), Some(window)) = (key, window)
                && !values.value(row).is_nan()
            {
                seen.taken += 1;
                windows
                    .entry((window, key))
                    .or_default()
                    .add(values.value(row));
            }
        }
    }
    windows
}

/// Says what is wrong, if anything is.
pub fn judge(evidence: &Evidence) -> Result<Seen, String> {
    let mut seen = Seen::default();
    if evidence.output != evidence.committed {
        return Err("read_committed and read_uncommitted differ".to_owned());
    }
    let expected = expected(evidence, &mut seen);
    let mut slots: BTreeMap<(i64, String), (&Message, Synopsis)> = BTreeMap::new();
    let mut newest = BTreeMap::new();
    let mut rows = BTreeMap::new();
    let mut ids = BTreeSet::new();
    for message in &evidence.output {
        let place = format!("{}:{}", message.partition, message.offset);
        let synopsis = Synopsis::decode_message(&message.payload)
            .map_err(|error| format!("{place} is no synopsis: {error}"))?;
        let about = synopsis.description();
        let key = about.key.clone().unwrap_or_default();
        let window =
            (about.window.start.micros() - evidence.rules.origin).div_euclid(evidence.rules.length);
        let name = format!("window {window} of key {key}");
        if !(0..evidence.rules.windows).contains(&window) || !KEYS.contains(&key.as_str()) {
            return Err(format!("{place}: {name} is not declared"));
        }
        if let Some((first, _)) = slots.get(&(window, key.clone())) {
            if (&first.key, &first.headers, &first.payload)
                != (&message.key, &message.headers, &message.payload)
            {
                return Err(format!(
                    "{name} was published twice, at {}:{} and at {place}",
                    first.partition, first.offset
                ));
            }
            seen.repeats += 1;
            continue;
        }
        // New ones come in order.
        if newest
            .insert(key.clone(), window)
            .is_some_and(|before| before >= window)
        {
            return Err(format!("{name} comes after a later one"));
        }
        if *rows.entry(window).or_insert(about.ledger.sequence) != about.ledger.sequence {
            return Err(format!(
                "{name} was paid by another row than the rest of its window"
            ));
        }
        let id = message
            .headers
            .iter()
            .find(|(header, _)| header == "ce_id")
            .map(|(_, id)| id.clone());
        if !ids.insert(id.ok_or_else(|| format!("{name} has no ce_id"))?) {
            return Err(format!("{name} has the ce_id of another"));
        }
        slots.insert((window, key), (message, synopsis));
    }
    if rows.values().collect::<BTreeSet<_>>().len() != rows.len() {
        return Err("a row of the ledger paid for two windows".to_owned());
    }
    for window in 0..evidence.rules.windows {
        for key in KEYS {
            let missing = || format!("window {window} of key {key} is missing");
            let (_, synopsis) = slots.get(&(window, key.to_owned())).ok_or_else(missing)?;
            let deviation = compare(synopsis, expected.get(&(window, key)))
                .map_err(|why| format!("window {window} of key {key}: {why}"))?;
            seen.deviation = seen.deviation.max(deviation);
            seen.slots += 1;
        }
    }
    Ok(seen)
}

/// How far the published values are from the exact ones, in peaks of a record.
fn compare(synopsis: &Synopsis, exact: Option<&Exact>) -> Result<f64, String> {
    let exact = exact.cloned().unwrap_or_default();
    // A deposit is off by 2.5e-4 of a peak; one record more or less is off by 0.9 of a peak at the lattice point next to it.
    let noise = 30.0 * synopsis.description().noise.scale / peak();
    let allowed = 0.01 + 3e-4 * exact.count as f64 + noise;
    if allowed > 0.4 {
        return Err(format!("{} records are too many to tell one", exact.count));
    }
    let off = synopsis
        .values()
        .iter()
        .zip(exact.values)
        .map(|(found, exact)| (found - exact) / peak());
    let off = off.fold(
        0.0,
        |most: f64, off| if off.abs() > most.abs() { off } else { most },
    );
    if synopsis.values().len() != DEGREE + 1 || off.abs() > allowed || off.is_nan() {
        let sum = synopsis.values().iter().sum::<f64>() - exact.values.iter().sum::<f64>();
        return Err(format!(
            "a value is off by {off:.3} records where {allowed:.3} is allowed; {} records belong there, about {:+.1} are published",
            exact.count,
            sum * WIDTH / DEGREE as f64
        ));
    }
    Ok(off.abs())
}
