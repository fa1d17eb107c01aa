//! The cost of an expression per record, by the number of lattice points, and of its bound, once.

use std::hint::black_box;

use bernstream_functions::expression::{Formula, Variable};
use bernstream_release::Target;
use bernstream_release::window::accumulator::{AccumulatorSpec, Record};
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};

const KERNEL: &str = "exp(-((x - at.x)/0.1)^2/2)";
const KERNEL_2D: &str = "exp(-(((x - at.x)/0.2)^2 + ((y - at.y)/0.2)^2)/2)";

fn formula(text: &str, axes: usize, degree: u32) -> Formula {
    let axes: Vec<Variable> = ["x", "y"]
        .into_iter()
        .take(axes)
        .map(|name| Variable {
            name: name.into(),
            min: 0.0,
            max: 1.0,
        })
        .collect();
    Formula::new(text, &axes, None, degree).expect("a formula")
}

fn records(c: &mut Criterion) {
    let mut group = c.benchmark_group("a record");
    for (text, axes, degree) in [
        (KERNEL, 1, 20),
        (KERNEL, 1, 200),
        (KERNEL, 1, 2_000),
        (KERNEL_2D, 2, 20),
        (KERNEL_2D, 2, 127),
    ] {
        let target = formula(text, axes, degree)
            .with_clipped_ranges(1.0, 1e6)
            .expect("a target");
        let AccumulatorSpec::Sums(feature) = target.accumulator() else {
            unreachable!("an expression keeps sums")
        };
        let mut sums = vec![0; feature.sum_count()];
        let record = Record::new(&[0.3, 0.7], 0.0);
        group.bench_function(BenchmarkId::new(format!("{axes}-D, N"), sums.len()), |b| {
            b.iter(|| feature.add(black_box(&record), &mut sums));
        });
    }
    group.finish();
}

fn bounds(c: &mut Criterion) {
    let mut group = c.benchmark_group("the bound");
    group.sample_size(10);
    for (text, axes, degree) in [(KERNEL, 1, 20), (KERNEL, 1, 200), (KERNEL_2D, 2, 20)] {
        let formula = formula(text, axes, degree);
        group.bench_function(format!("{axes}-D, k = {degree}"), |b| {
            b.iter(|| formula.clone().with_proved_ranges().expect("a bound"));
        });
    }
    group.finish();
}

criterion_group!(benches, records, bounds);
criterion_main!(benches);
