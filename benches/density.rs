//! The cost of a record on its way into the histogram, compared with only reading it, and of a window at its cutoff.

use std::hint::black_box;

use bernstream_functions::density::LatticeDensity;
use bernstream_synopsis::histogram::Histogram;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use rand::rngs::ChaCha20Rng;
use rand::{RngExt, SeedableRng};

const RECORDS: usize = 100_000;

fn columns(axes: usize) -> Vec<Vec<f64>> {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    (0..axes)
        .map(|_| (0..RECORDS).map(|_| rng.random()).collect())
        .collect()
}

fn deposits(c: &mut Criterion) {
    for axes in 1..=2 {
        let columns = columns(axes);
        let mut group = c.benchmark_group(format!("deposit, {axes}-D"));
        group.throughput(Throughput::Elements(RECORDS as u64));
        group.bench_function("only sum the columns", |b| {
            b.iter(|| {
                black_box(&columns)
                    .iter()
                    .map(|column| column.iter().sum::<f64>())
                    .sum::<f64>()
            });
        });
        for degree in [20, 50, 200] {
            let density = LatticeDensity::new(&[0.05, 0.05][..axes], degree).expect("a density");
            let nodes = density.nodes();
            let mut histogram = Histogram::new(nodes);
            group.bench_function(BenchmarkId::new("k", degree), |b| {
                b.iter(|| {
                    for row in 0..RECORDS {
                        let mut x = [0.0; 2];
                        for (x, column) in x.iter_mut().zip(&columns) {
                            *x = column[row];
                        }
                        histogram.deposit_record(nodes, nodes.place_record(&x[..axes]));
                    }
                });
            });
        }
        group.finish();
    }
}

fn cutoffs(c: &mut Criterion) {
    for (name, bandwidths, degree) in [
        ("1-D, k = 200", &[0.05][..], 200),
        ("2-D, k = 99", &[0.05; 2], 99),
        ("3-D, k = 20", &[0.1; 3], 20),
    ] {
        let density = LatticeDensity::new(bandwidths, degree).expect("a density");
        let histogram = Histogram::new(density.nodes());
        c.bench_function(&format!("evaluate, {name}"), |b| {
            b.iter(|| density.exact_intensity(black_box(&histogram)))
        });
    }
}

criterion_group!(benches, deposits, cutoffs);
criterion_main!(benches);
