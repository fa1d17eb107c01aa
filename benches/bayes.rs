//! Naive Bayes: the cost of a record on its way into the state, and of a window at its cutoff.

use std::hint::black_box;

use bernstream_functions::bayes::gaussian::GaussianBayes;
use bernstream_functions::bayes::kernel::KernelBayes;
use bernstream_release::Target;
use bernstream_release::window::accumulator::Record;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use rand::rngs::ChaCha20Rng;
use rand::{RngExt, SeedableRng};

const RECORDS: usize = 100_000;

fn targets(axes: usize, degree: u32) -> [(&'static str, Box<dyn Target>); 2] {
    let widths = &[0.1; 3][..axes];
    [
        (
            "kernel",
            Box::new(KernelBayes::new(widths, degree).expect("a target")),
        ),
        (
            "gaussian",
            Box::new(GaussianBayes::new(widths, degree).expect("a target")),
        ),
    ]
}

fn records(target: &dyn Target) -> Vec<Record> {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let spec = target.accumulator();
    let record = |_| {
        let x: [f64; 3] = rng.random();
        spec.record(&x, if rng.random() { 1.0 } else { -1.0 })
    };
    (0..RECORDS).map(record).collect()
}

fn arrivals(c: &mut Criterion) {
    for axes in 1..=3 {
        for (name, target) in targets(axes, 5) {
            let records = records(&*target);
            let mut group = c.benchmark_group(format!("records, {name}"));
            group.throughput(Throughput::Elements(RECORDS as u64));
            group.bench_function(BenchmarkId::new("l", axes), |b| {
                b.iter(|| {
                    target
                        .accumulator()
                        .filled_accumulator(black_box(&records).iter().copied())
                });
            });
            group.finish();
        }
    }
}

fn cutoffs(c: &mut Criterion) {
    for (axes, degree) in [
        (1, 20),
        (1, 200),
        (2, 20),
        (2, 99),
        (3, 10),
        (3, 20),
        (3, 50),
    ] {
        for (name, target) in targets(axes, degree) {
            let state = target.accumulator().filled_accumulator(records(&*target));
            c.bench_function(&format!("cutoff, {name}, {axes}-D, k = {degree}"), |b| {
                b.iter(|| target.evaluate(black_box(&state)));
            });
        }
    }
}

criterion_group!(benches, arrivals, cutoffs);
criterion_main!(benches);
