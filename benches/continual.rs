//! The cost of a pane in a running sum, with noise correlated over panes, compared with a single release.

use bernstream_noise::Exact;
use bernstream_noise::Mechanism;
use bernstream_noise::continual::{CalibratedSeries, SeriesKind};
use bernstream_noise::noise::Generator;
use bernstream_synopsis::NoiseDistribution;
use bernstream_synopsis::Sensitivity;
use bernstream_synopsis::price::Price;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

const VALUES: usize = 441;

fn panes(c: &mut Criterion) {
    let rho = Price::Concentrated("0.01".parse().expect("a rho"));
    let pure = Price::Pure("0.1".parse().expect("an epsilon"));
    let pane = Exact::new(vec![1 << 40; VALUES]);
    let mut generator = Generator::frozen([1; 32]);
    let mut group = c.benchmark_group("continual");
    group.throughput(Throughput::Elements(VALUES as u64));
    for (law, price) in [
        (NoiseDistribution::DiscreteGaussian, rho),
        (NoiseDistribution::DiscreteLaplace, pure),
    ] {
        let plain = Mechanism::calibrated(law, Sensitivity(1 << 30), VALUES, price)
            .expect("a price that pays");
        group.bench_function(BenchmarkId::new("one release", law), |b| {
            b.iter(|| plain.release_noisy(&pane, &mut generator))
        });
        for (name, over) in [
            ("cumulative", SeriesKind::Cumulative),
            ("24 panes", SeriesKind::Hopping { panes: 24 }),
            ("128 panes", SeriesKind::Hopping { panes: 128 }),
        ] {
            let series = CalibratedSeries::calibrated(
                over,
                law,
                Sensitivity(1 << 30),
                VALUES,
                1,
                price,
                4096,
            );
            let series = series.expect("a price that pays");
            let mut state = series.begin_state(VALUES);
            group.bench_function(BenchmarkId::new(name, law), |b| {
                b.iter(|| series.release_step(&pane, &mut state, &mut generator));
            });
            group.bench_function(
                BenchmarkId::new(format!("{name}, state written and read"), law),
                |b| {
                    b.iter(|| {
                        bernstream_noise::continual::SeriesState::from_bytes(
                            &series,
                            &state.to_bytes(&series),
                        )
                    });
                },
            );
        }
    }
    group.finish();
}

criterion_group!(benches, panes);
criterion_main!(benches);
