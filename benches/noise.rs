//! The cost of an exact draw, compared with its random words alone.

use bernstream_noise::calibrate::Scale;
use bernstream_noise::key_selection::KeySelection;
use bernstream_noise::noise::{
    DiscreteCube, DiscreteGaussian, DiscreteLaplace, Generator, RoundedBall,
};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

const DRAWS: usize = 10_000;

fn draws(c: &mut Criterion) {
    let mut group = c.benchmark_group("noise");
    group.throughput(Throughput::Elements(DRAWS as u64));
    let mut generator = Generator::frozen([1; 32]);
    group.bench_function("one ChaCha20 word", |b| {
        b.iter(|| (0..DRAWS).fold(0, |sum: u64, _| sum.wrapping_add(generator.next_word())));
    });
    let mut values = vec![0; DRAWS];
    for units in [16, 1 << 40, 16 * ((1 << 41) + 12_345)] {
        let laplace = DiscreteLaplace::new(Scale::new(units).expect("a scale"));
        group.bench_function(BenchmarkId::new("discrete Laplace, scale", units), |b| {
            b.iter(|| laplace.fill(&mut generator, &mut values));
        });
    }
    for units in [16, 1 << 40, 16 * ((1 << 41) + 12_345)] {
        let gaussian = DiscreteGaussian::new(Scale::new(units).expect("a scale"));
        group.bench_function(BenchmarkId::new("discrete Gaussian, sigma", units), |b| {
            b.iter(|| gaussian.fill(&mut generator, &mut values));
        });
    }
    group.finish();

    let mut group = c.benchmark_group("found keys");
    group.throughput(Throughput::Elements(DRAWS as u64));
    let epsilon = "1".parse().expect("an epsilon");
    let delta = "0.000000001".parse().expect("a delta");
    let selection = KeySelection::calibrated(1, epsilon, delta).expect("a selection");
    for units in [1, 20] {
        let counts = vec![units; DRAWS];
        group.bench_function(BenchmarkId::new("units of a key", units), |b| {
            b.iter(|| selection.find_keys(&counts, &mut generator));
        });
    }
    group.finish();

    let mut group = c.benchmark_group("ball");
    for (units, coordinates) in [(1 << 40, 32), (1 << 40, 141), (Scale::LARGEST, 141)] {
        group.throughput(Throughput::Elements(coordinates as u64));
        let ball = RoundedBall::new(Scale::new(units).expect("a scale"));
        group.bench_function(
            BenchmarkId::new(format!("scale {units}, coordinates"), coordinates),
            |b| {
                b.iter(|| ball.fill(&mut generator, &mut values[..coordinates]));
            },
        );
    }
    group.finish();

    let mut group = c.benchmark_group("cube");
    for coordinates in [21, 441, DRAWS] {
        group.throughput(Throughput::Elements(coordinates as u64));
        let cube = DiscreteCube::new(Scale::new(1 << 40).expect("a scale"));
        group.bench_function(BenchmarkId::new("coordinates", coordinates), |b| {
            b.iter(|| cube.fill(&mut generator, &mut values[..coordinates]));
        });
    }
    group.finish();
}

criterion_group!(benches, draws);
criterion_main!(benches);
