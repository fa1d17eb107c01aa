//! One false-alarm rate for every statistical test, and the quantiles that belong to it.

/// How often a test alarms on a correct sampler, over seeds. Seeds are fixed, so a test that passes keeps passing.
pub const FALSE_ALARM: f64 = 1e-9;
/// `Phi^-1(1 - FALSE_ALARM)`.
pub const ONE_SIDED: f64 = 5.997_807;
/// `Phi^-1(1 - FALSE_ALARM / 2)`.
pub const TWO_SIDED: f64 = 6.109_410;

/// The quantile of the chi-square law at the normal quantile `z` (Wilson and Hilferty 1931), good to 1 % from 15 degrees
/// of freedom on.
pub fn chi_square_quantile(degrees: f64, z: f64) -> f64 {
    let c = 2.0 / (9.0 * degrees);
    degrees * (1.0 - c + z * c.sqrt()).powi(3)
}

/// Where the mean of `n` standard exponential variates lies, but for [`FALSE_ALARM`]: their sum is `Gamma(n)`, half a
/// chi-square of `2n` degrees.
pub fn exponential_mean_range(n: usize) -> std::ops::Range<f64> {
    let degrees = 2.0 * n as f64;
    chi_square_quantile(degrees, -TWO_SIDED) / degrees
        ..chi_square_quantile(degrees, TWO_SIDED) / degrees
}

/// Pearson's statistic against its limit: more than 1 rejects.
pub fn chi_square(observed_and_expected: &[(f64, f64)]) -> f64 {
    let statistic: f64 = observed_and_expected
        .iter()
        .map(|(o, e)| (o - e).powi(2) / e)
        .sum();
    statistic / chi_square_quantile(observed_and_expected.len() as f64 - 1.0, ONE_SIDED)
}
