//! The Gamma law's distribution function.

/// Terms of a series, or of a continued fraction, at most.
const MOST: u32 = 1_000_000;
const SMALL: f64 = 1e-300;

/// `P(X <= x)` for `X` of the Gamma law with this shape and scale 1: the regularized lower incomplete gamma function, to about ten
/// digits.
///
/// The series `x^a e^-x / Gamma(a + 1) (1 + x/(a + 1) + ...)` below the mean (Abramowitz and Stegun 6.5.29), the continued
/// fraction of the upper tail above it (6.5.31), by Lentz's algorithm.
pub(super) fn probability_up_to(shape: f64, x: f64) -> f64 {
    if x.is_nan() || x <= 0.0 {
        return 0.0;
    }
    let front = libm::exp(shape * libm::log(x) - x - libm::lgamma(shape));
    if x < shape + 1.0 {
        let mut term = 1.0 / shape;
        let mut sum = 1.0 / shape;
        for n in 1..MOST {
            term *= x / (shape + f64::from(n));
            sum += term;
            if term < sum * 1e-15 {
                break;
            }
        }
        return (front * sum).clamp(0.0, 1.0);
    }
    let mut b = x + 1.0 - shape;
    let mut c = 1.0 / SMALL;
    let mut d = 1.0 / b;
    let mut fraction = d;
    for n in 1..MOST {
        let a = -f64::from(n) * (f64::from(n) - shape);
        b += 2.0;
        d = 1.0 / away_from_zero(a * d + b);
        c = away_from_zero(b + a / c);
        fraction *= d * c;
        if (d * c - 1.0).abs() < 1e-15 {
            break;
        }
    }
    (1.0 - front * fraction).clamp(0.0, 1.0)
}

fn away_from_zero(y: f64) -> f64 {
    if y.abs() < SMALL { SMALL } else { y }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_law_in_closed_form_where_there_is_one() {
        for x in [0.01, 0.3, 1.0, 2.0, 5.0, 30.0] {
            let f = |shape| probability_up_to(shape, x);
            assert!((f(1.0) - (1.0 - (-x).exp())).abs() < 1e-12, "{x}");
            assert!(
                (f(3.0) - (1.0 - (-x).exp() * (1.0 + x + x * x / 2.0))).abs() < 1e-12,
                "{x}"
            );
            // Half a chi squared variate of one degree.
            assert!((f(0.5) - (1.0 - libm::erfc(x.sqrt()))).abs() < 1e-12, "{x}");
        }
        // The central limit: a shape of a million.
        let shape = 1e6;
        let deviation = 1e3;
        for (z, normal) in [(-2.0, 0.022_750_1), (0.0, 0.5), (1.0, 0.841_344_7)] {
            assert!(
                (probability_up_to(shape, shape + z * deviation) - normal).abs() < 5e-4,
                "{z}"
            );
        }
        assert_eq!(
            (probability_up_to(2.0, -1.0), probability_up_to(2.0, 1e9)),
            (0.0, 1.0)
        );
    }
}
