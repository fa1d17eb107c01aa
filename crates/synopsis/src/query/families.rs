//! Smooth functions that are often asked for, in natural units.

use crate::cholesky::sequential_dot;

/// `sum_j c_j prod_i x_i^(e_ji)`. One of a degree below the number of frequencies on every axis is answered without
/// truncation.
pub fn polynomial(terms: Vec<(f64, Vec<i32>)>) -> impl Fn(&[f64]) -> f64 {
    move |x| {
        terms
            .iter()
            .map(|(c, powers)| {
                c * x
                    .iter()
                    .zip(powers)
                    .map(|(x, e)| x.powi(*e))
                    .product::<f64>()
            })
            .sum()
    }
}

/// `exp(-sum_i (x_i - c_i)^2 / 2 w_i^2)`: about how many records lie near `center`.
pub fn gaussian_bump(center: Vec<f64>, widths: Vec<f64>) -> impl Fn(&[f64]) -> f64 {
    move |x| {
        let mut square = 0.0;
        for ((x, center), width) in x.iter().zip(&center).zip(&widths) {
            square += ((x - center) / width).powi(2);
        }
        (-square / 2.0).exp()
    }
}

/// `1 / (1 + exp(-(sum_i a_i x_i - threshold)))`: about how many records lie in a half-space, the smoother its border the
/// shorter `a` is.
pub fn half_space(normal: Vec<f64>, threshold: f64) -> impl Fn(&[f64]) -> f64 {
    move |x| {
        let inside = sequential_dot(x, &normal);
        1.0 / (1.0 + (threshold - inside).exp())
    }
}
