//! The cost of a record on its way into a window, compared with a loop that only reads its columns.

use std::hint::black_box;
use std::time::Duration;

use arrow_array::{Float64Array, Int64Array};
use bernstream::clock::Timestamp;
use bernstream::source::Batch;
use bernstream::targets::Target;
use bernstream::targets::density::Density;
use bernstream::window::accumulator::AccumulatorSpec;
use bernstream::window::grid::Grid;
use bernstream::window::{Axis, Form, Outside, Rules, Windows};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use rand::rngs::ChaCha20Rng;
use rand::{RngExt, SeedableRng};

const ROWS: usize = 10_000;

fn batch(axes: usize) -> Batch {
    let mut random = ChaCha20Rng::seed_from_u64(1);
    let values = |random: &mut ChaCha20Rng| (0..ROWS).map(|_| random.random_range(-5.0..105.0)).collect::<Vec<f64>>();
    Batch {
        partition: 0,
        offset: 0,
        message_time: Some(Timestamp::from_micros(61_000_000)),
        times: Int64Array::from_iter_values((0..ROWS).map(|_| random.random_range(0..60_000_000))),
        keys: None,
        units: None,
        values: (0..axes).map(|_| Float64Array::from(values(&mut random))).collect(),
    }
}

fn rules() -> Rules {
    Rules {
        grid: Grid::new(Timestamp::from_micros(0), Duration::from_secs(60)).expect("a length"),
        end: None,
        allowed_lateness: Duration::from_secs(60),
        max_future_skew: Duration::from_secs(60),
        keys: None,
        cap: None,
    }
}

fn form(axes: usize, spec: AccumulatorSpec) -> Form {
    let axis = Axis { min: 0.0, max: 100.0, outside: Outside::Clamp };
    Form { axes: vec![axis; axes], label: None, columns: (0..axes).collect(), accumulator: spec, panes: 1 }
}

fn absorb(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("a record");
    group.throughput(Throughput::Elements(ROWS as u64));
    for axes in [1, 2] {
        let batch = batch(axes);
        group.bench_function(BenchmarkId::new("columns only read", axes), |b| {
            b.iter(|| {
                let times: i64 = batch.times.values().iter().fold(0, |sum, time| sum.wrapping_add(*time));
                let values: f64 = batch.values.iter().flat_map(|column| column.values().iter()).sum();
                black_box((times, values))
            });
        });
        for degree in [20, 50, 200] {
            let density = Density::new(&vec![0.05; axes], degree).expect("a density");
            let rules = rules();
            let first = rules.grid.span_of(Timestamp::from_micros(0));
            let mut windows = Windows::new(rules, vec![form(axes, density.accumulator())], first.start, first, None);
            group.bench_function(BenchmarkId::new(format!("absorbed, k = {degree}"), axes), |b| {
                b.iter(|| black_box(windows.absorb(&batch)));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, absorb);
criterion_main!(benches);
