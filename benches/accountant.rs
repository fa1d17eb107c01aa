//! The cost of accounting for a declared plan.

use bernstream_noise::accountant::gaussian::DrawnNoise;
use bernstream_noise::accountant::plan::{AccountantPlan, ReleaseClass, longest_horizon};
use bernstream_noise::calibrate::Scale;
use bernstream_synopsis::Sensitivity;
use bernstream_synopsis::calibrate::{Delta, Epsilon, Rho};
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};

fn plans(c: &mut Criterion) {
    let scale = Scale::new(1 << 40).expect("a scale");
    let laplace = ReleaseClass::Laplace {
        change: Sensitivity(110_000_000_000),
        scale,
    };
    let pure = ReleaseClass::Pure(Epsilon::from_trillionths(50_000_000_000));
    let drawn = DrawnNoise {
        values: 1000,
        sigma: scale,
    };
    let gaussian = ReleaseClass::Gaussian {
        rho: Rho::from_trillionths(5_000_000_000),
        drawn,
    };
    let epsilon = Epsilon::from_trillionths(1_000_000_000_000);
    let delta = Delta::from_quintillionths(1_000_000_000_000);

    let mut group = c.benchmark_group("plan");
    group.sample_size(10);
    for count in [10, 1000, 100_000] {
        let one = AccountantPlan::new([(laplace, count)]);
        group.bench_function(BenchmarkId::new("epsilon, Laplace", count), |b| {
            b.iter(|| one.epsilon(delta))
        });
        let mixed = AccountantPlan::new([(laplace, count), (pure, count), (gaussian, count)]);
        group.bench_function(BenchmarkId::new("epsilon, three classes", count), |b| {
            b.iter(|| mixed.epsilon(delta))
        });
    }
    group.bench_function("longest horizon", |b| {
        b.iter(|| longest_horizon(&[(laplace, 1)], epsilon, delta))
    });
    group.finish();
}

criterion_group!(benches, plans);
criterion_main!(benches);
