//! Scales of Gaussian noise: a smaller deviation for a guarantee with a delta.

use num_bigint::BigUint;

use super::calibrate::Scale;
use super::error::NoiseError;
use bernstream_synopsis::Sensitivity;
use bernstream_synopsis::calibrate::{Delta, Epsilon, Rho};
use bernstream_synopsis::price::Price;

/// The least scale that `price` pays for, the change being that of all values together in the 2-norm. Gaussian noise has no
/// price of pure differential privacy, and slots calibrate nothing.
pub(super) fn gaussian_scale(
    change: Sensitivity,
    values: usize,
    price: Price,
) -> Result<Scale, NoiseError> {
    match price {
        Price::Pure(_) | Price::Slots(_) => Err(NoiseError::NoPromise { delta: Delta::ZERO }),
        Price::Approximate { epsilon, delta } => {
            scale_for_epsilon_delta(change.0, values, epsilon, delta)
        }
        Price::Concentrated(rho) => scale_for_rho(change.0, rho),
    }
}

/// The smallest `sigma` whose noise costs at most `rho` in zero-concentrated differential privacy, for neighbours at
/// most `euclidean` apart: `D2^2 / 2 sigma^2`, in whole numbers (`[CKS20]` theorem 14).
///
/// A part of `2^-30` of the price and `10^-12` pay for the constants of the sampler: where every probability is within
/// `exp(eta)` times what it should be, the divergence of order `a` rises by at most `(2 + 1/(a - 1)) eta`, and below
/// `a = 1 + 2^-30` it is at most that of this order; in all `2^-30 rho + (2^30 + 2) eta`, and `eta` is below `2^-77` up
/// to `2^20` values.
pub(super) fn scale_for_rho(euclidean: u64, rho: Rho) -> Result<Scale, NoiseError> {
    if euclidean == 0 {
        return Err(NoiseError::NoSensitivity);
    }
    let price = rho.trillionths();
    let noise_alone = price
        .checked_sub(price.div_ceil(1 << 30) + 1)
        .filter(|rest| *rest > 0)
        .ok_or(NoiseError::NoPrice)?;
    // (16 b)^2 is at least D2^2 / 2 rho.
    let square = BigUint::from(euclidean).pow(2) * 1_000_000_000_000_u64;
    let least = (square - 1_u32) / (BigUint::from(512_u32) * noise_alone);
    // The smallest b whose square is above a whole number.
    let sixteenths = least.sqrt() + 1_u32;
    let units = u64::try_from(sixteenths * 16_u32).ok();
    units
        .and_then(Scale::new)
        .ok_or(NoiseError::TooMuchNoiseForRho { rho })
}

/// The smallest `sigma` whose noise on `values` values is (`price`, `delta`)-differentially private, for neighbours at
/// most `euclidean` apart, by the analytic Gaussian mechanism (`[BW18]`, theorem 8), never below it.
///
/// That theorem is for the continuous law. Rounded to whole numbers, which is post-processing, it is within
/// `1 / 40 sigma^2` of the discrete law in total variation, a value: so delta pays `(1 + exp(price)) N / 40 sigma^2`
/// more. Proof: a cell's mass and the density at its centre are at most `sup |phi''| / 24` apart, and the sum of these
/// over all cells is at most the integral of `|phi''|` and that of `|phi'''|`, `0.968 / sigma^2` and `1.52 / sigma^3`;
/// `sigma` is at least 16. `10^-15` of the price pays for the constants of the sampler, as with
/// [`Scale::for_price`].
pub(super) fn scale_for_epsilon_delta(
    euclidean: u64,
    values: usize,
    price: Epsilon,
    delta: Delta,
) -> Result<Scale, NoiseError> {
    if euclidean == 0 {
        return Err(NoiseError::NoSensitivity);
    }
    if price == Epsilon::ZERO {
        return Err(NoiseError::NoPrice);
    }
    let of_one = Delta::from_quintillionths(1_000_000_000_000_000_000);
    if delta == Delta::ZERO || delta >= of_one {
        return Err(NoiseError::NoPromise { delta });
    }
    let mut too_few = 0;
    let mut enough = Scale::LARGEST / 16;
    let needed = needed_delta(euclidean, values, price, 16 * enough);
    // Written so that what is not a number is not enough.
    let is_enough = needed <= delta.to_f64();
    if !is_enough {
        return Err(NoiseError::TooMuchNoise { price });
    }
    while enough - too_few > 1 {
        let between = too_few.midpoint(enough);
        if needed_delta(euclidean, values, price, 16 * between) <= delta.to_f64() {
            enough = between;
        } else {
            too_few = between;
        }
    }
    Scale::new(16 * enough).ok_or(NoiseError::TooMuchNoise { price })
}

/// No less than the delta that noise of this `sigma` needs at `price`.
#[expect(
    clippy::cast_precision_loss,
    reason = "far below the margin of the curve"
)]
fn needed_delta(euclidean: u64, values: usize, price: Epsilon, sigma: u64) -> f64 {
    // A promise for less than the price is one for the price. Beyond 24 the slack for whole numbers would outgrow the rest.
    let epsilon = (price.trillionths() as f64 / 1e12).min(24.0) - 1e-15;
    let sigma = sigma as f64;
    let rounding = (1.0 + libm::exp(epsilon)) * values as f64 / (40.0 * sigma * sigma);
    (delta_curve(euclidean as f64 / sigma, epsilon) + rounding) * (1.0 + MARGIN)
}

/// A part of a tail.
const MARGIN: f64 = 1.0 / (1_u64 << 36) as f64;

/// No less than the delta of continuous Gaussian noise at `epsilon`, `mu` the change over the deviation (`[BW18]`,
/// theorem 8), but for what is below `10^-300`.
///
/// With `a = epsilon/mu - mu/2` and `c = epsilon/mu + mu/2` it is `Q(a) - exp(epsilon) Q(c)`, `Q` the upper tail of the normal
/// law. The error functions are good to the last digit, and an argument to `c 2^-51`; while `c <= 64` that is
/// `(a + 1) c 2^-51 < 2^-38` of a tail, and beyond, delta is nearly 1 or below `10^-800`. Every tail is taken for `2^-36`
/// worse than computed: small tails stay accurate, and where the two nearly cancel the result is too large.
///
/// Beyond `c = 30` the second part is `phi(a) (1/c - 1/c^3 + 3/c^5 - 15/c^7)`, which is below it and overflows never.
pub fn delta_curve(mu: f64, epsilon: f64) -> f64 {
    let near = epsilon / mu - mu / 2.0;
    let far = epsilon / mu + mu / 2.0;
    let nearer = upper_tail(near);
    let farther = if far < 30.0 {
        libm::exp(epsilon) * upper_tail(far)
    } else {
        let square = 1.0 / (far * far);
        let density = libm::exp(-near * near / 2.0) / (2.0 * std::f64::consts::PI).sqrt();
        density / far * (1.0 - square * (1.0 - square * (3.0 - square * 15.0)))
    };
    (nearer - farther + MARGIN * (nearer + farther)).max(0.0)
}

/// Mass of the standard normal law above `x`.
fn upper_tail(x: f64) -> f64 {
    libm::erfc(x * std::f64::consts::FRAC_1_SQRT_2) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    const DISTANCE: u64 = 1 << 40;

    /// The smallest sigma at a sensitivity of 1, from arithmetic of 60 digits.
    const REFERENCE: [(&str, &str, f64); 36] = [
        ("0.001", "0.001", 276.128875569203),
        ("0.001", "0.000001", 2436.55249374858),
        ("0.001", "0.000000001", 4122.62973202625),
        ("0.001", "0.000000000001", 5412.30219384393),
        ("0.001", "0.000000000000001", 6486.49063832044),
        ("0.01", "0.001", 93.9074198398516),
        ("0.01", "0.000001", 306.350376153818),
        ("0.01", "0.000000001", 458.508497497253),
        ("0.01", "0.000000000001", 578.997867061414),
        ("0.01", "0.000000000000001", 681.221883551442),
        ("0.1", "0.001", 17.4043962030312),
        ("0.1", "0.000001", 36.3046904261958),
        ("0.1", "0.000000001", 50.2098182630153),
        ("0.1", "0.000000000001", 61.5390559188945),
        ("0.1", "0.000000000000001", 71.300595076365),
        ("0.5", "0.000001", 8.05761848072504),
        ("0.5", "0.000000001", 10.67389681508),
        ("1", "0.001", 2.57465701863721),
        ("1", "0.000001", 4.22467888932684),
        ("1", "0.000000001", 5.4952661572383),
        ("1", "0.000000000001", 6.55782206745885),
        ("1", "0.000000000000001", 7.4870094679866),
        ("2", "0.000001", 2.23047627118642),
        ("2", "0.000000001", 2.84454707349574),
        ("4", "0.001", 0.823077685244661),
        ("4", "0.000001", 1.19351858715799),
        ("4", "0.000000001", 1.48780367710346),
        ("4", "0.000000000001", 1.73861723913956),
        ("4", "0.000000000000001", 1.96054066416508),
        ("8", "0.000001", 0.652935384358216),
        ("8", "0.000000001", 0.792237049804094),
        ("10", "0.001", 0.406059558024139),
        ("10", "0.000001", 0.541086831818366),
        ("10", "0.000000001", 0.650246918958657),
        ("10", "0.000000000001", 0.744612322921754),
        ("10", "0.000000000000001", 0.828959874721969),
    ];

    fn sigma(price: &str, delta: &str) -> f64 {
        let found = scale_for_epsilon_delta(
            DISTANCE,
            100,
            price.parse().unwrap(),
            delta.parse().unwrap(),
        )
        .unwrap();
        found.units() as f64 / DISTANCE as f64
    }

    #[test]
    fn the_analytic_calibration_is_that_of_the_paper_and_never_below_it() {
        for (price, delta, least) in REFERENCE {
            let found = sigma(price, delta);
            println!(
                "({price}, {delta}): {:.1e} above {least}",
                found / least - 1.0
            );
            assert!(
                (1.0..1.0 + 1e-6).contains(&(found / least)),
                "({price}, {delta}): {found} {least}"
            );
        }
    }

    /// Another road: the classical bound `sqrt(2 ln(1.25 / delta)) / epsilon` is above it for epsilon up to 1, and
    /// `sqrt(2 ln(1 / delta)) / epsilon`, which is too little for large epsilon, is below it there.
    #[test]
    fn the_analytic_calibration_lies_where_it_must() {
        for (price, delta) in [(0.01, 1e-6), (0.1, 1e-9), (1.0, 1e-12)] {
            let found = sigma(&price.to_string(), &format!("{delta:.15}"));
            assert!(
                found < (2.0 * (1.25_f64 / delta).ln()).sqrt() / price,
                "{price} {delta}: {found}"
            );
        }
        assert!(sigma("24", "0.001") > 0.95 * sigma("30", "0.001"));
        assert_eq!(sigma("25", "0.001"), sigma("30", "0.001"));
    }

    #[test]
    fn rho_is_never_exceeded_and_missed_by_less_than_sixteen_units() {
        for price in ["0.00000001", "0.01", "0.5", "1", "20"] {
            for distance in [1, 1 << 20, DISTANCE + 12_345, 1 << 50] {
                let rho: Rho = price.parse().unwrap();
                let Ok(found) = scale_for_rho(distance, rho) else {
                    assert!(distance == 1 << 50 && price == "0.00000001");
                    continue;
                };
                let costs_at_most = |sigma: u64, rho: u64| {
                    BigUint::from(distance).pow(2) * 10_u64.pow(12)
                        <= BigUint::from(sigma).pow(2) * 2_u32 * rho
                };
                let sigma = found.units();
                let price = rho.trillionths();
                assert!(
                    costs_at_most(sigma, price - price / (1 << 30) - 1),
                    "{rho} {distance}"
                );
                assert!(
                    sigma == 16 || !costs_at_most(sigma - 16, price - price.div_ceil(1 << 30) - 1),
                    "{rho} {distance}"
                );
            }
        }
    }

    #[test]
    fn a_price_that_cannot_be_met_is_refused_in_words() {
        let price = |text: &str| text.parse::<Epsilon>().unwrap();
        let delta = |text: &str| text.parse::<Delta>().unwrap();
        for (found, words) in [
            (scale_for_rho(0, "1".parse().unwrap()), "sensitivity of 0"),
            (scale_for_rho(1, Rho::ZERO), "price of 0"),
            (
                scale_for_rho(u64::MAX, "0.1".parse().unwrap()),
                "rho of 0.1 is so low",
            ),
            (
                scale_for_epsilon_delta(0, 1, price("1"), delta("0.1")),
                "sensitivity of 0",
            ),
            (
                scale_for_epsilon_delta(1, 1, price("0"), delta("0.1")),
                "price of 0",
            ),
            (
                scale_for_epsilon_delta(1, 1, price("1"), delta("0")),
                "delta above 0 and below 1, such as 0.000001, not 0",
            ),
            (
                scale_for_epsilon_delta(1, 1, price("1"), delta("1")),
                "not 1",
            ),
            (
                scale_for_epsilon_delta(u64::MAX, 1, price("0.1"), delta("0.1")),
                "price of 0.1 is so low",
            ),
        ] {
            let message = found.unwrap_err().to_string();
            assert!(message.contains(words), "{message}");
        }
    }
}
