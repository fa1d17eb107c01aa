//! A part of a whole, both noisy: the part that is told where there are few records, and the set of parts that the noise allows (Fieller,
//! J. R. Statist. Soc. B 16, 1954).

use super::Interval;

/// The `p` in `[0, 1]` with `(part - p whole)^2 <= q^2 (c - 2 b p + a p^2)`, where `[c, b, a]` say how the variance of the left side
/// depends on `p`; `None` where the noise may be all of the whole.
pub(super) fn fieller(part: f64, whole: f64, q: f64, [c, b, a]: [f64; 3]) -> Option<Interval> {
    let square = q * q;
    let (of_square, half, constant) = (whole * whole - square * a, part * whole - square * b, part * part - square * c);
    if of_square <= 0.0 || whole <= 0.0 {
        return None;
    }
    let root = (half * half - of_square * constant).max(0.0).sqrt();
    let at = |sign: f64| ((half + sign * root) / of_square).clamp(0.0, 1.0);
    Some(Interval { lower: at(-1.0), upper: at(1.0) })
}

/// The part of each table of `sums`, drawn to that of all records as far as the noise on the whole, of deviation `error`, is large beside
/// it.
pub(super) fn shrunk(sums: &[f64], error: f64, of_all: &[f64]) -> Vec<f64> {
    let whole: f64 = sums.iter().sum();
    if error == 0.0 && whole == 0.0 {
        return of_all.to_vec();
    }
    let more = if error > 0.0 { error * error / whole.max(error) } else { 0.0 };
    let clipped = |(sum, all): (&f64, &f64)| ((sum + more * all) / (whole.max(0.0) + more)).clamp(0.0, 1.0);
    let parts: Vec<f64> = sums.iter().zip(of_all).map(clipped).collect();
    match parts.iter().sum::<f64>() {
        all if all > 0.0 => parts.iter().map(|part| part / all).collect(),
        _ => of_all.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ends are where the inequality is an equality, and it holds between them alone.
    #[test]
    fn the_interval_is_the_set_that_the_noise_allows() {
        for (part, whole, q, tables) in [(30.0, 100.0, 5.0, 2.0), (2.0, 40.0, 9.0, 3.0), (99.0, 100.0, 8.0, 2.0)] {
            let variance = [1.0, 1.0, tables];
            let holds = |p: f64| {
                (part - p * whole).powi(2) <= q * q * (variance[0] - 2.0 * variance[1] * p + variance[2] * p * p)
            };
            let Interval { lower, upper } = fieller(part, whole, q, variance).unwrap();
            for i in 0..=10_000 {
                let p = f64::from(i) / 10_000.0;
                let away = (p - lower).abs().min((p - upper).abs());
                assert!(away < 1e-9 || holds(p) == (lower..=upper).contains(&p), "{part} of {whole}: {p}");
            }
        }
        assert_eq!(fieller(3.0, 5.0, 4.0, [1.0, 1.0, 2.0]), None);
        assert_eq!(fieller(3.0, -100.0, 4.0, [1.0, 1.0, 2.0]), None);
    }

    #[test]
    fn parts_add_up_and_are_those_of_all_where_there_is_noise_alone() {
        let of_all = [0.7, 0.3];
        assert_eq!(shrunk(&[30.0, 10.0], 0.0, &of_all), [0.75, 0.25]);
        assert_eq!(shrunk(&[0.0, 0.0], 5.0, &of_all), [0.7, 0.3]);
        for sums in [[-3.0, 5.0], [-20.0, 4.0], [1.0, 1.0]] {
            assert!((shrunk(&sums, 5.0, &of_all).iter().sum::<f64>() - 1.0).abs() < 1e-12);
        }
    }
}
