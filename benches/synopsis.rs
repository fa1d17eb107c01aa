//! The cost of reading and evaluating synopses: `cargo bench --bench synopsis`.

use std::hint::black_box;

use bernstream_synopsis::Shape;
use bernstream_synopsis::Synopsis;
use bernstream_synopsis::band::Band;
use bernstream_synopsis::bernstein::Operator;
use bernstream_synopsis::description::{AxisDescription, Basis, Description, NoiseDistribution};
use criterion::{Criterion, criterion_group, criterion_main};

fn synopsis(dimensions: usize, degree: u32) -> Synopsis {
    let mut about: Description = serde_json::from_str(bernstream_synopsis::EXAMPLE).unwrap();
    about.degree = degree;
    about.domain = vec![
        AxisDescription {
            column: "x".to_owned(),
            min: 0.0,
            max: 1.0
        };
        dimensions
    ];
    let points = about.shape().value_count();
    Synopsis::new(about, (0..points).map(|i| (i as f64).sin()).collect()).unwrap()
}

fn benchmarks(criterion: &mut Criterion) {
    for (dimensions, degree) in [(1, 40), (2, 20)] {
        let synopsis = synopsis(dimensions, degree);
        let evaluator = synopsis.evaluator(2).unwrap();
        let point = vec![0.37; dimensions];
        criterion.bench_function(&format!("evaluate/{dimensions}-D k={degree}"), |bencher| {
            bencher.iter(|| evaluator.evaluate(black_box(&point)).unwrap());
        });
        let operator = Operator::new(dimensions, degree);
        criterion.bench_function(
            &format!("coefficients h=200/{dimensions}-D k={degree}"),
            |bencher| {
                bencher.iter(|| operator.coefficients(black_box(synopsis.values()), 200));
            },
        );
        let bytes = synopsis.encode().unwrap().bytes;
        criterion.bench_function(&format!("open/{dimensions}-D k={degree}"), |bencher| {
            bencher.iter(|| Synopsis::decode_message(black_box(&bytes)).unwrap());
        });
    }
    let line = Shape {
        dimensions: 1,
        degree: 40,
        basis: Basis::Bernstein,
    };
    criterion.bench_function("band/1-D k=40 h=2", |bencher| {
        bencher.iter(|| Band::simulate(&line, NoiseDistribution::DiscreteLaplace, 2))
    });
}

criterion_group! { name = benches; config = Criterion::default().sample_size(20); targets = benchmarks }
criterion_main!(benches);
