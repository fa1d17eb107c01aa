//! The cost of a regression at the cutoff: it grows with the number of kept records, and hardly with the degree.

use std::hint::black_box;

use bernstream_functions::regression::LatticeRegression;
use bernstream_release::Target;
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use rand::rngs::ChaCha20Rng;
use rand::{RngExt, SeedableRng};

fn cutoffs(c: &mut Criterion) {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let mut group = c.benchmark_group("regression, cut");
    for (n, k) in [
        (0, 25),
        (1_000, 25),
        (10_000, 25),
        (100_000, 25),
        (10_000, 100),
        (10_000, 1_000),
    ] {
        let regression = LatticeRegression::new(0.05, k, 0.001, 100_000).expect("a regression");
        let spec = regression.accumulator();
        let state = spec.filled_accumulator(
            (0..n).map(|_| spec.record(&[rng.random()], rng.random_range(-1.0..1.0))),
        );
        let id = BenchmarkId::from_parameter(format!("n = {n}, k = {k}"));
        group.bench_function(id, |b| b.iter(|| regression.evaluate(black_box(&state))));
    }
    group.finish();
}

criterion_group!(benches, cutoffs);
criterion_main!(benches);
