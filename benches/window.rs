//! The cost of a record on its way into a window, compared with a loop that only reads its columns; and that of a cell of what absorbers
//! send.
#![allow(clippy::too_many_lines, reason = "lists of cases")]

use std::hint::black_box;
use std::time::Duration;

use arrow_array::{BinaryArray, Float64Array, Int64Array};
use bernstream_functions::density::LatticeDensity;
use bernstream_release::Target;
use bernstream_release::source::Batch;
use bernstream_release::window::accumulator::AccumulatorSpec;
use bernstream_release::window::{
    DomainAxis, OutsideRule, ReleaseInput, VERSION, WindowRules, WindowStore,
};
use bernstream_synopsis::Positions;
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::grid::SpanGrid;
use bernstream_worker::scale::{
    CollectedPartials, PartialPiece, PartitionPartial, WindowAnnouncement, split_into_pieces,
};
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use rand::rngs::ChaCha20Rng;
use rand::{RngExt, SeedableRng};

const ROWS: usize = 10_000;

fn batch(axes: usize) -> Batch {
    let mut random = ChaCha20Rng::seed_from_u64(1);
    let values = |random: &mut ChaCha20Rng| {
        (0..ROWS)
            .map(|_| random.random_range(-5.0..105.0))
            .collect::<Vec<f64>>()
    };
    Batch {
        partition: 0,
        offset: 0,
        message_time: Some(Timestamp::from_micros(61_000_000)),
        times: Int64Array::from_iter_values((0..ROWS).map(|_| random.random_range(0..60_000_000))),
        keys: None,
        units: None,
        values: (0..axes)
            .map(|_| Float64Array::from(values(&mut random)))
            .collect(),
        found: None,
    }
}

fn rules() -> WindowRules {
    WindowRules {
        grid: SpanGrid::new(Timestamp::from_micros(0), Duration::from_secs(60)).expect("a length"),
        end: None,
        allowed_lateness: Duration::from_secs(60),
        max_future_skew: Duration::from_secs(60),
        keys: None,
        other: Vec::new(),
        longest_key: None,
        cap: None,
    }
}

fn form(axes: usize, spec: AccumulatorSpec) -> ReleaseInput {
    let axis = DomainAxis {
        min: 0.0,
        max: 100.0,
        outside: OutsideRule::Clamp,
    };
    ReleaseInput {
        axes: vec![axis; axes],
        label: None,
        columns: (0..axes).collect(),
        accumulator: spec,
        panes: 1,
    }
}

fn absorb(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("a record");
    group.throughput(Throughput::Elements(ROWS as u64));
    for axes in [1, 2] {
        let batch = batch(axes);
        group.bench_function(BenchmarkId::new("columns only read", axes), |b| {
            b.iter(|| {
                let times: i64 = batch
                    .times
                    .values()
                    .iter()
                    .fold(0, |sum, time| sum.wrapping_add(*time));
                let values: f64 = batch
                    .values
                    .iter()
                    .flat_map(|column| column.values().iter())
                    .sum();
                black_box((times, values))
            });
        });
        for degree in [20, 50, 200] {
            let density = LatticeDensity::new(&vec![0.05; axes], degree).expect("a density");
            let rules = rules();
            let first = rules.grid.span_of(Timestamp::from_micros(0));
            let mut windows = WindowStore::new(
                rules,
                vec![form(axes, density.accumulator())],
                first.start,
                first,
                None,
            );
            group.bench_function(
                BenchmarkId::new(format!("absorbed, k = {degree}"), axes),
                |b| {
                    b.iter(|| black_box(windows.absorb_batch(&batch)));
                },
            );
        }
    }
    group.finish();
}

/// Partials of all partitions of a window, each with every cell of every key: what a worker does with them.
fn join(criterion: &mut Criterion) {
    const PARTITIONS: i32 = 8;
    const KEYS: usize = 1_000;
    const MESSAGES: usize = 40;
    let density = LatticeDensity::new(&[0.05], 20).expect("a density");
    let keys: Vec<String> = (0..KEYS).map(|key| format!("key {key}")).collect();
    let rules = WindowRules {
        keys: Some(keys.clone()),
        ..rules()
    };
    let first = rules.grid.span_of(Timestamp::from_micros(0));
    let open = || {
        WindowStore::new(
            rules.clone(),
            vec![form(1, density.accumulator())],
            first.start,
            first,
            None,
        )
    };
    let mut random = ChaCha20Rng::seed_from_u64(2);
    let mut bytes = Vec::new();
    for _ in 0..PARTITIONS {
        let mut windows = open();
        for _ in 0..MESSAGES {
            let chosen: BinaryArray = (0..ROWS)
                .map(|_| Some(keys[random.random_range(0..KEYS)].as_bytes()))
                .collect();
            let values = (0..ROWS)
                .map(|_| random.random_range(0.0..100.0))
                .collect::<Vec<f64>>();
            let values = vec![Float64Array::from(values)];
            windows.absorb_batch(&Batch {
                keys: Some(chosen.into()),
                values,
                ..batch(0)
            });
        }
        bytes.push(windows.close_part().canonical_bytes());
    }
    let announcement = WindowAnnouncement {
        version: VERSION,
        settings: String::new(),
        choices: String::new(),
        topic: String::new(),
        window: first,
        cutoff: first.end,
        first: first.start,
        backfill_until: None,
        ends: Positions((0..PARTITIONS).map(|partition| (partition, 1)).collect()),
        past: Positions::default(),
    };
    let partial = |(partition, bytes): (i32, &Vec<u8>)| {
        let name = announcement.partial_name(partition).expect("announced");
        split_into_pieces(&PartitionPartial {
            name,
            partition,
            bytes: bytes.clone(),
        })
        .expect("pieces")
    };
    let sent: Vec<PartialPiece> = (0..).zip(&bytes).flat_map(partial).collect();
    let cells = PARTITIONS as usize * KEYS * density.cells();
    let length: usize = bytes.iter().map(Vec::len).sum();
    let compressed: usize = sent.iter().map(|piece| piece.bytes.len()).sum();
    println!("{cells} cells in {PARTITIONS} partials: {length} bytes, compressed {compressed}");
    let mut group = criterion.benchmark_group("a cell of a partial");
    group
        .throughput(Throughput::Elements(cells as u64))
        .sample_size(20);
    group.bench_function("unpacked and compared with its digest", |b| {
        b.iter_batched(
            || (CollectedPartials::new(&announcement, 1 << 30), sent.clone()),
            |(mut collected, sent)| {
                sent.into_iter()
                    .for_each(|piece| _ = black_box(collected.add_piece(piece)));
                assert_eq!(collected.missing_partitions().count(), 0);
                collected
            },
            BatchSize::LargeInput,
        );
    });
    group.bench_function("decoded and added", |b| {
        b.iter_batched(
            open,
            |mut windows| {
                for bytes in &bytes {
                    assert!(windows.take_part(first, bytes));
                }
                windows.close_part()
            },
            BatchSize::LargeInput,
        );
    });
    group.finish();
}

criterion_group!(benches, absorb, join);
criterion_main!(benches);
