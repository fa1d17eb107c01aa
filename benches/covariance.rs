//! The cost of a density with a full covariance matrix, at the cutoff and for its setup. Neither depends on the records.

use std::hint::black_box;

use bernstream_functions::covariance::CovarianceDensity;
use bernstream_release::Target;
use criterion::{Criterion, criterion_group, criterion_main};

/// The same bandwidth on all axes, and the same correlation between all pairs.
fn matrix(axes: usize, b: f64, correlation: f64) -> Vec<Vec<f64>> {
    let entry = |i, j| b * b * if i == j { 1.0 } else { correlation };
    (0..axes)
        .map(|i| (0..axes).map(|j| entry(i, j)).collect())
        .collect()
}

fn cutoffs(c: &mut Criterion) {
    for (axes, b, correlation, degree) in [
        (2, 0.1, 0.5, 20),
        (2, 0.05, 0.97, 20),
        (2, 0.1, 0.5, 50),
        (2, 0.1, 0.5, 100),
        (3, 0.1, 0.3, 10),
        (3, 0.1, 0.3, 20),
    ] {
        let case = format!("{axes}-D, b = {b}, correlation {correlation}, k = {degree}");
        let h = matrix(axes, b, correlation);
        let density = CovarianceDensity::new(&h, degree).expect("a density");
        let empty = density.accumulator().empty();
        c.bench_function(&format!("cutoff, {case}"), |b| {
            b.iter(|| density.evaluate(black_box(&empty)))
        });
        c.bench_function(&format!("set up, {case}"), |b| {
            b.iter(|| CovarianceDensity::new(black_box(&h), degree))
        });
    }
}

criterion_group! { name = benches; config = Criterion::default().sample_size(10); targets = cutoffs }
criterion_main!(benches);
