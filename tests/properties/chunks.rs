//! Rows that are taken column by column, a thousand at a time: the same as one after another, by a plain loop over the rows.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::types::Int16Type;
use arrow_array::{
    Array, ArrayRef, DictionaryArray, Float64Array, Int16Array, RecordBatch, StringArray,
};
use arrow_array::{TimestampMicrosecondArray, UInt8Array};
use arrow_ipc::writer::StreamWriter;
use bernstream_release::source::decode::decode_message;
use bernstream_release::source::{Batch, Columns};
use bernstream_release::window::accumulator::{
    Accumulator, AccumulatorSpec, Record, RecordFeature, TableLabel,
};
use bernstream_release::window::{
    Cap, DomainAxis, LONGEST_UNIT, OutsideRule, RecordCounts, RecordLabel, ReleaseInput,
    WindowRules, WindowStore, survival_rank,
};
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::grid::{Span, SpanGrid};
use bernstream_synopsis::histogram::{Nodes, Spline};
use rand::rngs::ChaCha20Rng;
use rand::{RngExt, SeedableRng};

use crate::batches::seconds;

/// Sums that depend on every part of a record.
#[derive(Debug)]
struct Moments;

impl RecordFeature for Moments {
    fn sum_count(&self) -> usize {
        4
    }

    fn add(&self, record: &Record, sums: &mut [i128]) {
        let whole = |x: f64| (x * 1e9) as i128;
        let all = [
            1,
            whole(record.x(0)),
            whole(record.x(1)),
            whole(record.x(0) * record.label()),
        ];
        sums.iter_mut()
            .zip(all)
            .for_each(|(sum, part)| *sum += part);
    }

    fn feature_identity(&self) -> serde_json::Value {
        "moments".into()
    }
}

/// One form of every kind, over the columns x, y and label.
pub fn forms(panes: u32) -> Vec<ReleaseInput> {
    let axis = |outside| DomainAxis {
        min: 0.0,
        max: 10.0,
        outside,
    };
    let clamped = [axis(OutsideRule::Clamp), axis(OutsideRule::Drop)];
    let number = RecordLabel::Number(DomainAxis {
        min: -1.0,
        max: 2.0,
        outside: OutsideRule::Clamp,
    });
    let nodes = |per_axis: &[u32]| Nodes::new(per_axis).expect("a small grid");
    let plain = |accumulator, axes: usize| ReleaseInput {
        axes: clamped[..axes].to_vec(),
        label: None,
        columns: (0..axes).collect(),
        accumulator,
        panes,
    };
    let labelled = |label, accumulator, axes: usize| ReleaseInput {
        label: Some(label),
        columns: (0..axes).chain([2]).collect(),
        ..plain(accumulator, axes)
    };
    let classes = RecordLabel::Classes(vec![0.0, 1.0, 2.0]);
    let by = TableLabel::Classes(3);
    vec![
        plain(AccumulatorSpec::Histogram(nodes(&[40])), 1),
        plain(AccumulatorSpec::Histogram(nodes(&[12, 9])), 2),
        plain(
            AccumulatorSpec::Histogram(Nodes::of_angles(&[16]).expect("a small grid")),
            1,
        ),
        plain(
            AccumulatorSpec::Histogram(
                Nodes::shared_by(Spline::Linear, &[8, 8]).expect("a small grid"),
            ),
            2,
        ),
        plain(
            AccumulatorSpec::Histogram(Nodes::shared_by(Spline::Box, &[8]).expect("a small grid")),
            1,
        ),
        labelled(
            number.clone(),
            AccumulatorSpec::Tables {
                nodes: nodes(&[20]),
                by: TableLabel::Number,
            },
            1,
        ),
        labelled(
            classes,
            AccumulatorSpec::Tables {
                nodes: nodes(&[20]),
                by,
            },
            1,
        ),
        labelled(
            RecordLabel::Above(0.5),
            AccumulatorSpec::Marginals(vec![nodes(&[20]), nodes(&[7])]),
            2,
        ),
        labelled(number.clone(), AccumulatorSpec::Sums(Arc::new(Moments)), 2),
        labelled(number, AccumulatorSpec::Records { most: 15 }, 2),
    ]
}

/// Windows of ten seconds from zero to a hundred, two seconds of grace, one second ahead.
pub fn rules(has_keys: bool, cap: Option<u32>) -> WindowRules {
    let period = SpanGrid::new(seconds(3), Duration::from_secs(7)).expect("a length");
    WindowRules {
        grid: SpanGrid::new(seconds(0), Duration::from_secs(10)).expect("a length"),
        end: Some(seconds(100)),
        allowed_lateness: Duration::from_secs(2),
        max_future_skew: Duration::from_secs(1),
        keys: has_keys.then(|| ["b", "a", "a longer key", "z"].map(str::to_owned).to_vec()),
        other: Vec::new(),
        longest_key: None,
        cap: cap.map(|records| Cap {
            period: period.into(),
            records,
        }),
    }
}

/// Messages of a stream, some of many rows and some of one; in most of them all is well, in others much is odd.
pub fn messages(seed: u64) -> Vec<Batch> {
    let mut random = ChaCha20Rng::seed_from_u64(seed);
    let sizes = [1, 0, 700, 1023, 1024, 1025, 2500, 3, 1];
    (0..24)
        .map(|number| {
            message(
                number,
                sizes[random.random_range(0..sizes.len())],
                &mut random,
            )
        })
        .collect()
}

/// The same, with many records of one event time.
pub fn tied(seed: u64) -> Vec<Batch> {
    let tied = |time: i64| time.saturating_sub(time.rem_euclid(5_000_000));
    messages(seed)
        .into_iter()
        .map(|batch| Batch {
            times: batch.times.unary(tied),
            ..batch
        })
        .collect()
}

fn message(number: i64, rows: usize, random: &mut ChaCha20Rng) -> Batch {
    let sent = 4 * number + 1;
    let is_odd = random.random_bool(0.5);
    let spread = if random.random_bool(0.5) { 2 } else { 15 };
    // What happened after its message was stamped, by that clock, is too far ahead from a second on.
    let shift = if random.random_bool(0.3) { 2 } else { 0 };
    let odd = |random: &mut ChaCha20Rng| is_odd && random.random_bool(0.02);
    let times: Vec<Option<i64>> = (0..rows)
        .map(|_| match (odd(random), random.random_range(0..4)) {
            (true, 0) => None,
            (true, 1) => Some(i64::MAX),
            (true, 2) => Some(i64::MIN),
            (true, _) => Some(1_000_000 * (sent + 30)),
            _ => Some(1_000_000 * (sent + shift) - random.random_range(0..1_000_000 * spread)),
        })
        .collect();
    let number_of = |random: &mut ChaCha20Rng| match (odd(random), random.random_range(0..5)) {
        (true, 0) => None,
        (true, 1) => Some(f64::NAN),
        (true, 2) => Some(f64::INFINITY),
        (true, 3) => Some(f64::NEG_INFINITY),
        (true, _) => Some(-1e300),
        (false, 0) => Some(f64::from(random.random_range(-1..12))),
        _ => Some(random.random_range(0.0..10.0)),
    };
    let x: Float64Array = (0..rows).map(|_| number_of(random)).collect();
    let y: Float64Array = (0..rows).map(|_| number_of(random)).collect();
    let labels: Float64Array = (0..rows)
        .map(|_| number_of(random).map(|n| (n / 4.0).round()))
        .collect();
    let known = [
        "a",
        "b",
        "a longer key",
        "z",
        "unknown",
        "a key that is longer than all that are declared",
    ];
    let users = (0..rows).map(|_| match random.random_range(0..200) {
        0 if is_odd => None,
        1 if is_odd => Some("u".repeat(LONGEST_UNIT + 1)),
        _ => Some(format!("user {}", random.random_range(0..9))),
    });
    let users: StringArray = users.collect();
    let mut key = |most: i16| {
        if odd(random) {
            None
        } else {
            Some(random.random_range(0..most))
        }
    };
    let keys: ArrayRef = match number % 3 {
        0 => Arc::new(
            (0..rows)
                .map(|_| key(6).map(|at| known[at as usize]))
                .collect::<StringArray>(),
        ),
        // A dictionary with a null and with more entries than a short message has rows.
        1 => {
            let indices: Int16Array = (0..rows).map(|_| key(7)).collect();
            let entries: StringArray = known.iter().map(|key| Some(*key)).chain([None]).collect();
            Arc::new(DictionaryArray::<Int16Type>::new(
                indices,
                Arc::new(entries),
            ))
        }
        // No key is a number.
        _ => Arc::new(
            (0..rows)
                .map(|_| key(6).map(|at| at as u8))
                .collect::<UInt8Array>(),
        ),
    };
    let columns: Vec<(&str, ArrayRef)> = vec![
        (
            "time",
            Arc::new(TimestampMicrosecondArray::from(times).with_timezone("UTC")),
        ),
        ("key", keys),
        ("user", Arc::new(users)),
        ("x", Arc::new(x)),
        ("y", Arc::new(y)),
        ("label", Arc::new(labels)),
    ];
    let columns = columns
        .into_iter()
        .map(|(name, column)| (name, column, true));
    let records = RecordBatch::try_from_iter_with_nullable(columns).expect("columns of one length");
    let mut writer = StreamWriter::try_new(Vec::new(), &records.schema()).expect("a writer");
    // In two pieces, as a message may come.
    let half = rows / 2;
    for part in [records.slice(0, half), records.slice(half, rows - half)] {
        writer.write(&part).expect("it is written");
    }
    let named = Columns {
        time: "time".to_owned(),
        key: vec!["key".to_owned()],
        unit: Some("user".to_owned()),
        values: ["x", "y", "label"].map(str::to_owned).to_vec(),
        ..Columns::default()
    };
    let bytes = writer.into_inner().expect("it ends");
    let partition = random.random_range(0..5);
    decode_message(&bytes, &named, partition, number, Some(seconds(sent))).expect("a sound message")
}

/// A record of one form and key: its place in the order of survival, its user, and itself.
type Kept = ((i64, u64), Option<Vec<u8>>, usize, Record);

/// The law, row by row: what each form and key keeps of the window, and what became of the rows.
fn by_the_law(
    rules: &WindowRules,
    forms: &[ReleaseInput],
    messages: &[Batch],
    window: Span,
) -> (Vec<Vec<Accumulator>>, RecordCounts) {
    let mut counts = RecordCounts::default();
    let mut kept: Vec<Vec<Kept>> = vec![Vec::new(); forms.len()];
    for batch in messages {
        for row in 0..batch.times.len() {
            let fate = match belongs(rules, batch, row) {
                Err(fate) => fate,
                Ok((span, group, user)) => {
                    let order = |record: &Record| {
                        let user = user.as_deref().unwrap_or_default();
                        let time = batch.times.value(row);
                        let group = u32::try_from(group).expect("few keys");
                        (
                            time,
                            survival_rank(Timestamp::from_micros(time), user, group, record),
                        )
                    };
                    let records: Vec<_> =
                        forms.iter().map(|form| record(form, batch, row)).collect();
                    for (kept, record) in kept.iter_mut().zip(&records) {
                        if let (true, Ok(record)) = (span == window, record) {
                            kept.push((order(record), user.clone(), group, *record));
                        }
                    }
                    let is_taken = records.iter().any(Result::is_ok);
                    if is_taken {
                        "taken"
                    } else {
                        records
                            .last()
                            .and_then(|last| last.err())
                            .unwrap_or("missing")
                    }
                }
            };
            let count = match fate {
                "taken" => &mut counts.taken,
                "closed" => &mut counts.closed,
                "late" => &mut counts.late,
                "ahead" => &mut counts.ahead,
                "unknown_key" => &mut counts.unknown_key,
                "missing" => &mut counts.missing,
                "long_unit" => &mut counts.long_unit,
                _ => &mut counts.outside,
            };
            *count += 1;
        }
    }
    let groups = rules.keys.as_ref().map_or(1, Vec::len);
    let accumulators = forms.iter().zip(kept).map(|(form, mut kept)| {
        kept.sort_by_key(|(order, _, group, record)| (*order, *group, *record));
        let mut of_users: BTreeMap<(Timestamp, Vec<u8>), u32> = BTreeMap::new();
        kept.retain(|((time, ..), user, ..)| match (&rules.cap, user) {
            (Some(cap), Some(user)) => {
                let period = cap.period.span_of(Timestamp::from_micros(*time)).start;
                let count = of_users.entry((period, user.clone())).or_default();
                *count += 1;
                *count <= cap.records
            }
            _ => true,
        });
        let most = if let AccumulatorSpec::Records { most } = form.accumulator {
            most as usize
        } else {
            usize::MAX
        };
        let of_group = |group| {
            let records = kept
                .iter()
                .filter(move |(_, _, of, _)| *of == group)
                .take(most);
            form.accumulator
                .filled_accumulator(records.map(|(.., record)| *record))
        };
        (0..groups).map(of_group).collect()
    });
    (accumulators.collect(), counts)
}

type Belongs = (Span, usize, Option<Vec<u8>>);

fn belongs(rules: &WindowRules, batch: &Batch, row: usize) -> Result<Belongs, &'static str> {
    if batch.times.is_null(row) {
        return Err("missing");
    }
    let time = Timestamp::from_micros(batch.times.value(row));
    let span = rules.grid.span_of(time);
    if span.start < seconds(0) || rules.end.is_some_and(|end| span.end > end) {
        return Err("closed");
    }
    let sent = batch.message_time.expect("every message has a timestamp");
    if time > sent.plus(rules.max_future_skew) {
        return Err("ahead");
    }
    if sent >= span.end.plus(rules.allowed_lateness) {
        return Err("late");
    }
    let key = batch.keys.as_ref().and_then(|keys| keys.get(row));
    let place = |keys: &Vec<String>| {
        keys.iter()
            .position(|known| Some(known.as_bytes()) == key.as_deref())
    };
    let group = rules
        .keys
        .as_ref()
        .map_or(Some(0), place)
        .ok_or("unknown_key")?;
    let user = batch
        .units
        .as_ref()
        .and_then(|users| users.get(row))
        .filter(|_| rules.cap.is_some());
    match user {
        None if rules.cap.is_some() => Err("missing"),
        Some(user) if user.len() > LONGEST_UNIT => Err("long_unit"),
        user => Ok((span, group, user.map(<[u8]>::to_vec))),
    }
}

fn record(form: &ReleaseInput, batch: &Batch, row: usize) -> Result<Record, &'static str> {
    let number = |column: usize| {
        let values = &batch.values[column];
        (values.is_valid(row) && !values.value(row).is_nan())
            .then(|| values.value(row))
            .ok_or("missing")
    };
    let mut x = Vec::new();
    for (axis, column) in form.axes.iter().zip(&form.columns) {
        x.push(axis.unit_place(number(*column)?).ok_or("outside")?);
    }
    let label = match (&form.label, form.columns.last()) {
        (Some(label), Some(column)) => label.of(number(*column)?).ok_or("outside")?,
        _ => 0.0,
    };
    Ok(form.accumulator.record(&x, label))
}

#[test]
fn rows_by_column_are_rows_one_after_another() {
    let mut seen = RecordCounts::default();
    for seed in 0..8 {
        let messages = if seed < 4 { messages(seed) } else { tied(seed) };
        for (has_keys, cap) in [
            (false, None),
            (true, None),
            (true, Some(2)),
            (false, Some(1)),
        ] {
            let rules = rules(has_keys, cap);
            let first = rules.grid.span_of(seconds(0));
            let mut windows = WindowStore::new(rules.clone(), forms(1), first.start, first, None);
            let mut counts = RecordCounts::default();
            for batch in &messages {
                counts = sum(counts, windows.absorb_batch(batch));
            }
            while windows.next().is_some() {
                let window = windows.close_next();
                let (expected, fates) = by_the_law(&rules, &forms(1), &messages, window.span);
                assert_eq!(counts, fates, "seed {seed}");
                for (at, (groups, expected)) in window.forms.iter().zip(expected).enumerate() {
                    let groups: Vec<_> = groups
                        .iter()
                        .map(|group| group.accumulator.clone())
                        .collect();
                    assert!(
                        groups == expected,
                        "seed {seed}, form {at}, window {}, {has_keys} {cap:?}",
                        window.span.start
                    );
                }
            }
            seen = sum(seen, counts);
        }
    }
    // Nothing here looks for records behind their window, and what one form drops as outside another one takes.
    for (name, count) in seen.by_name() {
        assert!(count > 0 || ["behind", "outside"].contains(&name), "{name}");
    }
}

/// Where only few of them count, no value is favoured for good, nor all records of a user or key alike.
#[test]
fn of_one_event_time_other_records_count_first_at_other_times_and_for_other_users_and_keys() {
    let form = forms(1).remove(9);
    let records: Vec<Record> = (0..50)
        .map(|number| {
            form.accumulator
                .record(&[0.02 * f64::from(number), 0.5], 0.0)
        })
        .collect();
    let first = |time: i64, user: &[u8], group: u32| {
        let rank = |place: &usize| {
            survival_rank(Timestamp::from_micros(time), user, group, &records[*place])
        };
        (0..records.len()).min_by_key(rank).expect("records")
    };
    let ways: [(&str, &dyn Fn(u32) -> usize); 3] = [
        ("times", &|number| first(i64::from(number), b"user", 1)),
        ("users", &|number| {
            first(0, format!("user {number}").as_bytes(), 1)
        }),
        ("keys", &|number| first(0, b"user", number)),
    ];
    for (what, way) in ways {
        let mut counts = [0; 50];
        (0..1000).for_each(|number| counts[way(number)] += 1);
        // Twenty on average.
        assert!(
            counts.iter().all(|count| (2..60).contains(count)),
            "{what}: {counts:?}"
        );
    }
}

/// One form alone, so that what it drops is not taken by another.
#[test]
fn what_one_form_drops_is_counted_by_its_reason() {
    let mut outside = 0;
    for form in forms(1) {
        let messages = messages(77);
        let rules = rules(false, None);
        let first = rules.grid.span_of(seconds(0));
        let mut windows =
            WindowStore::new(rules.clone(), vec![form.clone()], first.start, first, None);
        let counts = messages.iter().fold(RecordCounts::default(), |all, batch| {
            sum(all, windows.absorb_batch(batch))
        });
        assert_eq!(counts, by_the_law(&rules, &[form], &messages, first).1);
        assert!(counts.missing > 0 && counts.taken > 0);
        outside += counts.outside;
    }
    assert!(outside > 0);
}

pub fn sum(one: RecordCounts, other: RecordCounts) -> RecordCounts {
    RecordCounts {
        taken: one.taken + other.taken,
        closed: one.closed + other.closed,
        behind: one.behind + other.behind,
        late: one.late + other.late,
        ahead: one.ahead + other.ahead,
        unknown_key: one.unknown_key + other.unknown_key,
        missing: one.missing + other.missing,
        long_unit: one.long_unit + other.long_unit,
        outside: one.outside + other.outside,
    }
}
