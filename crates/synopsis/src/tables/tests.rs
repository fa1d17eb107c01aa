//! That what the noise does to a reading is its derivative by the noisy counts.

use super::{KernelFit, TableKernel, Tables};
use crate::Synopsis;
use crate::TableBasis;
use crate::cholesky::dot_product;
use crate::description::{
    AxisDescription, Basis, CellLabel, Cells, Description, TargetDescription,
};
use crate::histogram::Spline;

/// Three classes on two axes, unevenly filled, with noise of this scale.
fn synopsis(scale: f64) -> Synopsis {
    let mut about: Description = serde_json::from_str(crate::EXAMPLE).unwrap();
    let axis = |column: &str| AxisDescription {
        column: column.to_owned(),
        min: 0.0,
        max: 1.0,
    };
    (about.domain, about.degree, about.order) = (vec![axis("x"), axis("y")], 1, 1);
    let basis = TableBasis {
        spline: Spline::Linear,
        steps: vec![4, 3],
        bandwidths: vec![0.3, 0.4],
        tables: 3,
    };
    let count = basis.values();
    about.basis = Basis::Tables(basis);
    let label = CellLabel::Classes {
        column: "z".to_owned(),
        values: vec![1.0, 2.0, 3.0],
    };
    about.target = TargetDescription::Cells(Cells { label: Some(label) });
    (about.noise.scale, about.noise.grid) = (scale, scale * 1e-9);
    let value =
        |i: usize| 20.0 + 15.0 * (1.7 * i as f64).sin() + if i % 20 > 11 { 40.0 } else { 0.0 };
    Synopsis::new(about, (0..count).map(value).collect()).unwrap()
}

/// The derivative of every class's sum by every value.
fn gradients(tables: &Tables, y: &[f64], fit: KernelFit) -> Vec<Vec<f64>> {
    let step = 1e-4;
    let moved = |value: usize, by: f64| {
        let mut tables = tables.clone();
        tables.values[value] += by;
        let node = value % tables.counts.len();
        tables.counts[node] += by;
        tables.kernel(None).unwrap().parts(y, fit).sums
    };
    let of_value = |value| -> Vec<f64> {
        moved(value, step)
            .iter()
            .zip(moved(value, -step))
            .map(|(up, down)| (up - down) / (2.0 * step))
            .collect()
    };
    let by_value: Vec<Vec<f64>> = (0..tables.values.len()).map(of_value).collect();
    (0..tables.count())
        .map(|table| by_value.iter().map(|row| row[table]).collect())
        .collect()
}

#[test]
fn what_the_noise_does_to_sums_is_their_derivative_by_the_noisy_counts() {
    let synopsis = synopsis(1e-3);
    let tables = synopsis.tables().unwrap();
    for fit in [KernelFit::Constant, KernelFit::Linear, KernelFit::Naive] {
        for y in [[0.3, 0.6], [0.0, 0.9], [0.52, 0.11]] {
            let kernel: TableKernel<'_> = tables.kernel(None).unwrap();
            let parts = kernel.parts(&y, fit);
            let gradients = gradients(&tables, &y, fit);
            for (one, row) in gradients.iter().zip(&parts.moves) {
                for (other, found) in gradients.iter().zip(row) {
                    let expected = dot_product(one, other);
                    let size = (dot_product(one, one) * dot_product(other, other)).sqrt();
                    assert!(
                        (found - expected).abs() < 1e-5 * size,
                        "{fit:?} at {y:?}: {found}, not {expected}"
                    );
                }
            }
            // And so is the error of a probability.
            let p = kernel.probability(&y, 1, fit).unwrap().value;
            let whole = parts.sum_of_parts();
            let by_value = (0..tables.values.len()).map(|value| {
                let of_whole: f64 = gradients.iter().map(|gradient| gradient[value]).sum();
                (gradients[1][value] - p * of_whole) / whole
            });
            let expected = by_value.map(|d| d * d).sum::<f64>().sqrt();
            assert!(
                (kernel.probability_length(&y, 1, fit) / expected - 1.0).abs() < 1e-5,
                "{fit:?} at {y:?}"
            );
        }
    }
}
