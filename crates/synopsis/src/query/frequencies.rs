//! The number of frequencies to release, from public quantities.

use std::f64::consts::{PI, SQRT_2};

/// The `t` of the smallest predicted error, for queries whose derivatives up to the order `smoothness` are at most 1 on
/// `[-1, 1]^d`; 1 to `most`.
///
/// Predicted error of a mean = noise `sqrt 2 t^d / (epsilon n)` + truncation `d (1 / pi K t^K + 2 / 2^t t!)`, at most 1: of a function
/// whose `K`-th derivative jumps by 1 at one place, where all records are, and of one that is smooth forever (Bernstein's
/// bound for `t <= K`). A function that is rough everywhere can be missed by up to ten times the first.
///
/// A departure from `[WFZW13]`, which takes `t = n^(1/(2d+K))`: its proof adds up the noise of `t^d` moments as if they had
/// one sign, while they are independent and a query's coefficients have a bounded 2-norm. So the noise of an answer is that of
/// one moment, and more frequencies pay: about `(epsilon n)^(1/(d+K))`, with an error of about `(epsilon n)^(-K/(d+K))`.
pub fn frequencies(
    dimensions: usize,
    smoothness: u32,
    records: u64,
    epsilon: f64,
    most: u32,
) -> u32 {
    let mut best = 1;
    let mut least = predicted_error(dimensions, smoothness, records, epsilon, best);
    for t in 2..=most {
        let error = predicted_error(dimensions, smoothness, records, epsilon, t);
        if error.total_cmp(&least).is_lt() {
            best = t;
            least = error;
        }
    }
    best
}

/// Number of frequencies that the paper takes: `n^(1/(2d+K))`, rounded.
pub fn papers_frequencies(dimensions: usize, smoothness: u32, records: u64) -> u32 {
    let exponent = 1.0 / (2.0 * dimensions as f64 + f64::from(smoothness));
    (records as f64).powf(exponent).round().max(1.0) as u32
}

fn predicted_error(dimensions: usize, smoothness: u32, records: u64, epsilon: f64, t: u32) -> f64 {
    let noise = SQRT_2 * f64::from(t).powi(dimensions as i32) / (epsilon * records as f64);
    let t = f64::from(t);
    let jump = 1.0 / (PI * f64::from(smoothness) * t.powi(smoothness as i32));
    let mut smooth = 2.0;
    for j in 1..=t as u32 {
        smooth /= 2.0 * f64::from(j);
    }
    let missed = dimensions as f64 * (jump + smooth);
    noise + missed.min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smoother_queries_need_fewer_frequencies_and_more_records_allow_more() {
        let t = |smoothness, records| frequencies(1, smoothness, records, 1.0, 1024);
        assert_eq!(
            [1, 2, 4, 8].map(|smoothness| t(smoothness, 10_000)),
            [47, 13, 6, 6]
        );
        assert_eq!(
            [1_000, 10_000, 100_000].map(|records| t(2, records)),
            [6, 13, 28]
        );
        assert_eq!(frequencies(3, 1, 1 << 40, 1.0, 19), 19);
        assert_eq!(
            [1, 2, 20].map(|smoothness| papers_frequencies(1, smoothness, 10_000)),
            [22, 10, 2]
        );
    }

    #[test]
    fn less_budget_or_more_axes_mean_fewer() {
        assert!(frequencies(1, 2, 10_000, 0.1, 1024) < frequencies(1, 2, 10_000, 1.0, 1024));
        assert!(frequencies(2, 2, 10_000, 1.0, 258) < frequencies(1, 2, 10_000, 1.0, 1024));
    }
}
