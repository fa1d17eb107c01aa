//! The cost of a ledger that has been kept for years: `cargo bench --bench ledger`.

#[path = "../tests/harness/mod.rs"]
mod harness;

use bernstream_ledger::Ledger;
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use harness::ledger::{closing, folder, of_years, params};

fn benchmarks(criterion: &mut Criterion) {
    for rows in [1_000, 100_000, 1_000_000] {
        let folder = folder();
        let params = params(folder.path());
        let mut ledger = of_years(folder.path(), rows);
        criterion.bench_function(&format!("pay/{rows} rows"), |bencher| {
            // A price so small that no block is ever spent.
            bencher.iter_batched(
                || (),
                |()| {
                    let closing = closing(&ledger, &["k"], 1, 1);
                    ledger.pay_window(closing)
                },
                BatchSize::PerIteration,
            );
        });
        drop(ledger);
        criterion.bench_function(&format!("open/{rows} rows"), |bencher| {
            bencher.iter(|| Ledger::open(&params).unwrap());
        });
    }
}

criterion_group! { name = benches; config = Criterion::default().sample_size(10); targets = benchmarks }
criterion_main!(benches);
