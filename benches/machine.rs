//! The cost of a kernel machine at the cutoff, all of it (Gram matrix or features, solver with its certificate, lattice), by
//! the number of records; and of LIBSVM on the same data in the same run, if `python3` has scikit-learn.
//!
//! The comparison: hinge loss, Gaussian kernel of width 0.2, two axes, the same `C/m` and the same tolerance on values of
//! the function (LIBSVM's `tol` bounds the violation of a margin, ours is a certified distance). LIBSVM fits an intercept
//! and has the sharp hinge, ours neither; both evaluate the same lattice.

use std::fmt::Write as _;
use std::hint::black_box;
use std::process::Command;
use std::time::Instant;

use bernstream_functions::machine::{Machine, MachineSettings};
use bernstream_release::Target;
use bernstream_release::window::accumulator::{Accumulator, Record};
use bernstream_synopsis::machine::{CubeKernel, Loss};
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use rand::rngs::ChaCha20Rng;
use rand::{RngExt, SeedableRng};

const KERNEL: CubeKernel = CubeKernel::Gaussian { bandwidth: 0.2 };

/// A class that depends on a circle, one label in ten wrong.
fn records(n: u32) -> Vec<([f64; 2], f64)> {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let mut record = || {
        let x = [rng.random::<f64>(), rng.random()];
        let inside = (x[0] - 0.5).powi(2) + (x[1] - 0.5).powi(2) < 0.12;
        (
            x,
            if inside != rng.random_bool(0.1) {
                1.0
            } else {
                -1.0
            },
        )
    };
    (0..n).map(|_| record()).collect()
}

fn machine(loss: Loss, c: f64, n: u32, landmarks: Option<u32>) -> Machine {
    let settings = MachineSettings {
        kernel: KERNEL,
        loss,
        c,
        records: n,
        dimensions: 2,
        degree: 20,
        landmarks,
    };
    Machine::new(settings).expect("a machine")
}

fn state(machine: &Machine, records: &[([f64; 2], f64)]) -> Accumulator {
    machine
        .accumulator()
        .filled_accumulator(records.iter().map(|(x, label)| Record::new(x, *label)))
}

fn cutoffs(c: &mut Criterion) {
    let mut group = c.benchmark_group("cutoff, C = 10");
    group.sample_size(10);
    for (name, landmarks, sizes) in [
        ("exact", None, &[500, 1_000, 2_000, 5_000][..]),
        ("landmarks 10", Some(10), &[5_000, 20_000, 100_000]),
    ] {
        for n in sizes {
            for loss in [Loss::Hinge, Loss::Logistic] {
                let machine = machine(loss, 10.0, *n, landmarks);
                let state = state(&machine, &records(*n));
                group.bench_function(
                    BenchmarkId::new(format!("{name}, {loss:?}").to_lowercase(), n),
                    |b| {
                        b.iter(|| black_box(machine.evaluate(&state)));
                    },
                );
            }
        }
    }
    group.finish();
}

fn plans(c: &mut Criterion) {
    let mut group = c.benchmark_group("plan, 441 lattice points");
    group.sample_size(10);
    for (name, landmarks) in [("exact", None), ("landmarks 10", Some(10))] {
        group.bench_function(name, |b| {
            b.iter(|| machine(Loss::Hinge, 10.0, 5_000, landmarks))
        });
    }
    group.finish();
}

/// Both on the same files, one after the other; the best of three.
fn beside_libsvm(_: &mut Criterion) {
    let script = "
import sys, time
try:
    import numpy as np
    from sklearn.svm import SVC
except ImportError:
    print('no scikit-learn: no comparison')
    sys.exit()
table = np.loadtxt(sys.argv[1], delimiter=',')
side = np.arange(21) / 20
lattice = np.array([[a, b] for a in side for b in side])
best = 1e9
for _ in range(3):
    start = time.perf_counter()
    model = SVC(C=float(sys.argv[2]), kernel='rbf', gamma=1 / (2 * 0.2 ** 2), tol=float(sys.argv[3]), cache_size=400)
    model.fit(table[:, :2], table[:, 2]).decision_function(lattice)
    best = min(best, time.perf_counter() - start)
print(f'{best * 1e3:.1f} ms, {len(model.support_)} support vectors')
";
    for (n, c) in [
        (1_000, 10.0),
        (5_000, 10.0),
        (5_000, 500.0),
        (5_000, 5_000.0),
    ] {
        let records = records(n);
        let machine = machine(Loss::Hinge, c, n, None);
        let state = state(&machine, &records);
        let mut ours = f64::INFINITY;
        for _ in 0..3 {
            let start = Instant::now();
            black_box(machine.evaluate(&state));
            ours = ours.min(start.elapsed().as_secs_f64());
        }
        let mut table = String::new();
        for (x, label) in &records {
            let _ = writeln!(table, "{},{},{label}", x[0], x[1]);
        }
        let path =
            std::env::temp_dir().join(format!("bernstream-machine-{}.csv", std::process::id()));
        let written = std::fs::write(&path, table);
        let output = Command::new("python3")
            .args(["-c", script])
            .arg(&path)
            .args([
                (c / f64::from(n)).to_string(),
                machine.tolerance().to_string(),
            ])
            .output();
        let theirs = match (written, output) {
            (Ok(()), Ok(output)) if output.status.success() => {
                String::from_utf8_lossy(&output.stdout).trim().to_string()
            }
            _ => "no python3: no comparison".to_string(),
        };
        let _ = std::fs::remove_file(&path);
        println!(
            "{n} records, C = {c}: {:.1} ms; LIBSVM: {theirs}",
            ours * 1e3
        );
    }
}

criterion_group!(benches, cutoffs, plans, beside_libsvm);
criterion_main!(benches);
