//! Costs of Laplace and ball noise in zero-concentrated differential privacy: less than a mechanism of which only the epsilon
//! is known, the ball by as many times as it has values. The proofs are in `docs/proofs/concentrated.md`.

use super::calibrate::Scale;
use bernstream_synopsis::Sensitivity;
use bernstream_synopsis::calibrate::{Epsilon, Rho};
use bernstream_synopsis::price::{Price, largest_paid_epsilon};

/// At least the `rho` of discrete Laplace noise of `scale` on values that neighbours change by at most `change` in the
/// 1-norm: with `t = change / scale` at most `t + exp(-t) - 1 + min(t, 1) / 6 scale^2`, rounded up by less than six units
/// and the `2^-30` of the sampler. A mechanism of which only the epsilon `t` is known costs `t tanh(t / 2)`: 26 % more at
/// `t = 1`, 3 % more at 0.1.
///
/// Proof (`docs/proofs/concentrated.md`): the worst change has all of `change` in one value. As a function of the order the divergence
/// has, but for a factor, imaginary zeros only, so no order `a` loses more than `a` times the mean loss
/// `t - (1 - exp(-t)) / (s sinh(1/s))`, and `1 / (s sinh(1/s)) >= 1 - 1/6s^2`.
///
/// The constants of the sampler are paid for as with Gaussian noise. Whole numbers alone: the result
/// may enter a ledger, and must be the same on every machine.
pub fn rho_of_laplace(change: Sensitivity, scale: Scale) -> Rho {
    let change = u128::from(change.0);
    let scale = u128::from(scale.units());
    let shift = (change * TRILLION).div_ceil(scale);
    let decay = (exp_of_minus(change, scale) * TRILLION).div_ceil(ONE);
    // Beyond a scale of 2^20 less than one unit.
    let discrete = match scale {
        0..=0x10_0000 => (change.min(scale) * TRILLION).div_ceil(6 * scale * scale * scale),
        _ => 1,
    };
    let noise = (shift + decay + discrete).saturating_sub(TRILLION);
    let rho = noise + noise.div_ceil(1 << 30) + 1;
    Rho::from_trillionths(u64::try_from(rho).unwrap_or(u64::MAX))
}

/// At least the `rho` of ball noise of `scale` on `values` values that neighbours change by at most `change` in the 2-norm: with
/// `t = change / scale` and `d = values` at most `t^2 / 2d` while `t <= d`, and `t - d/2` beyond; rounded up by less than two
/// units and the `2^-30` of the sampler. Near `t = 0` nothing less is true. A mechanism of which only the epsilon `t` is known costs
/// `t tanh(t / 2)`, about `t^2 / 2`, which is the less where `d = 1`.
///
/// Proof (`docs/proofs/concentrated.md`) for the density of real vectors that is proportional to `exp(-||x||)`, moved by `t`; rounding is
/// post-processing. The mean loss is at most that, because the Laplacian of `E ||X - u||` is at most 1, its value at 0; and no order `a`
/// loses more than `a` times the mean, as for Laplace noise.
pub fn rho_of_ball(change: Sensitivity, values: usize, scale: Scale) -> Rho {
    let change = u128::from(change.0);
    let scale = u128::from(scale.units());
    let values = values.max(1) as u128;
    let shift = (change * TRILLION).div_ceil(scale);
    let noise = if shift <= values * TRILLION {
        (shift * shift).div_ceil(2 * values * TRILLION)
    } else {
        shift - values * TRILLION / 2
    };
    let rho = noise + noise.div_ceil(1 << 30) + 1;
    Rho::from_trillionths(u64::try_from(rho).unwrap_or(u64::MAX))
}

/// The largest epsilon such that the ball noise that is made for it ([`Scale::for_price`]) costs at most `rho`, by its own constant
/// ([`rho_of_ball`]) or that of any mechanism of pure differential privacy. `values` are those of one key, as there.
pub fn epsilon_of_ball(change: Sensitivity, values: usize, rho: Rho) -> Epsilon {
    largest_paid_epsilon(Price::Concentrated(rho).largest_pure_epsilon(), |epsilon| {
        Scale::for_price(change, epsilon)
            .is_ok_and(|scale| rho_of_ball(change, values, scale) <= rho)
    })
}

const TRILLION: u128 = 1_000_000_000_000;

/// Fixed point.
const ONE: u128 = 1 << 62;

/// At least `exp(-change / scale)`, in units of `1 / ONE`, less than `2^-43` above it.
///
/// `1 - x + x^2/2 - x^3/6 + x^4/24` is at least `exp(-x)` (Taylor, the next term being negative). With `x = t / 2^16` rounded
/// down, and every other term and square rounded up, squaring sixteen times gives at least `exp(-t)`.
fn exp_of_minus(change: u128, scale: u128) -> u128 {
    const HALVINGS: u32 = 16;
    // At most 2^64 * 2^46.
    let x = change * (ONE >> HALVINGS) / scale;
    // Beyond it the power is below one unit.
    let x = x.min(ONE >> 4);
    let square = x * x / ONE;
    let root = ONE - x + (x * x).div_ceil(2 * ONE) - square * x / (6 * ONE)
        + ((square + 1) * (square + 1)).div_ceil(24 * ONE);
    (0..HALVINGS).fold(root, |y, _| (y * y).div_ceil(ONE))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rho(change: u64, scale: u64) -> f64 {
        rho_of_laplace(Sensitivity(change), Scale::new(scale).unwrap()).to_f64()
    }

    /// The Renyi divergence of a discrete law and its shift by `change`, from the probabilities alone, over the order.
    fn divergence(change: u64, scale: u64, order: f64) -> f64 {
        let change = i32::try_from(change).unwrap();
        let scale = scale as f64;
        let log_mass = |z: i32| f64::from(-z.abs()) / scale + (0.5 / scale).tanh().ln();
        let terms: Vec<f64> = (-60 * scale as i32..60 * scale as i32 + change)
            .map(|z| order * log_mass(z) + (1.0 - order) * log_mass(z - change))
            .collect();
        let largest = terms.iter().copied().fold(f64::MIN, f64::max);
        let log_sum = largest
            + terms
                .iter()
                .map(|term| (term - largest).exp())
                .sum::<f64>()
                .ln();
        log_sum / (order - 1.0) / order
    }

    #[test]
    fn no_order_loses_more_and_the_lowest_lose_all_of_it() {
        for (change, scale) in [
            (1, 16),
            (2, 16),
            (5, 16),
            (16, 16),
            (63, 16),
            (128, 16),
            (33, 32),
            (7, 160),
            (160, 160),
        ] {
            let cost = rho(change, scale);
            let worst = (0..60)
                .map(|i| divergence(change, scale, 1.0 + 1e-3 * 1.27_f64.powi(i)))
                .fold(0.0, f64::max);
            println!(
                "{change} / {scale}: {worst} of {cost}, {:.1e} below",
                1.0 - worst / cost
            );
            assert!(worst <= cost, "{change} {scale}: {worst} {cost}");
            // Tight: also the term for whole numbers is needed where the scale is small. 1 % less is found out.
            assert!(worst > 0.99 * cost, "{change} {scale}: {worst} {cost}");
        }
        // The continuous constant would not do for whole numbers.
        let continuous = |t: f64| t + (-t).exp() - 1.0;
        assert!(divergence(1, 16, 1.0001) > continuous(1.0 / 16.0));
    }

    #[test]
    fn for_fine_grids_it_is_the_continuous_constant_and_below_that_of_any_pure_mechanism() {
        for (t, exact) in [
            (0.01, 4.983_374_916_805_357e-5),
            (0.1, 0.004_837_418_035_959_573),
            (0.5, 0.106_530_659_712_633_42),
            (1.0, 0.367_879_441_171_442_3),
            (2.0, 1.135_335_283_236_612_7),
            (4.0, 3.018_315_638_888_734),
            (40.0, 39.0),
            (100.0, 99.0),
        ] {
            let scale = 1_u64 << 40;
            let found = rho((t * scale as f64).ceil() as u64, scale);
            // The part of the sampler and six units.
            assert!(
                (exact..exact * (1.0 + 2e-9) + 6e-12).contains(&found),
                "{t}: {found} {exact}"
            );
            assert!(found < t * (t / 2.0).tanh() || t > 30.0, "{t}: {found}");
        }
        assert_eq!(rho(u64::MAX, 16), Rho::from_trillionths(u64::MAX).to_f64());
    }

    fn ball(change: u64, values: usize, scale: u64) -> f64 {
        rho_of_ball(Sensitivity(change), values, Scale::new(scale).unwrap()).to_f64()
    }

    /// By integration over length and angle: `E exp((order - 1) loss)`, the loss that of a move by `t` along the axis.
    fn divergence_of_ball(t: f64, d: u32, order: f64) -> f64 {
        const ANGLES: u32 = 600;
        const LENGTHS: u32 = 3000;
        let n = f64::from(d);
        let most = n + 12.0 * n.sqrt() + 40.0 + order * t;
        let mut sum = 0.0;
        let mut whole = 0.0;
        for i in 0..LENGTHS {
            // Denser near the middle, where the loss turns.
            let part = (f64::from(i) + 0.5) / f64::from(LENGTHS);
            let r = part * part * most;
            let of_length = part * ((n - 1.0) * (r / n).ln() - r + n).exp();
            for j in 0..ANGLES {
                let angle = (f64::from(j) + 0.5) / f64::from(ANGLES) * std::f64::consts::PI;
                let weight = of_length * angle.sin().powf(n - 2.0);
                let loss = (r * r - 2.0 * r * t * angle.cos() + t * t).max(0.0).sqrt() - r;
                sum += weight * ((order - 1.0) * loss).exp();
                whole += weight;
            }
        }
        (sum / whole).ln() / (order - 1.0) / order
    }

    #[test]
    fn no_order_of_a_ball_loses_more_and_small_moves_lose_all_of_it() {
        for d in [2, 3, 5, 20] {
            for t in [0.05_f64, 0.5, 2.0, 8.0] {
                let cost = ball((t * 65536.0).ceil() as u64, d as usize, 65536);
                let at = [1.001, 1.1, 1.5, 2.0, 4.0, 16.0, 64.0]
                    .map(|order| divergence_of_ball(t, d, order));
                let worst = at.into_iter().fold(0.0, f64::max);
                println!(
                    "d = {d}, t = {t}: {worst:.6} of {cost:.6}; {:.4}; {at:.6?}",
                    worst / cost
                );
                assert!(worst <= cost * (1.0 + 1e-6), "{d} {t}: {worst} {cost}");
                // The lowest order loses most of all, as a part of what it may.
                assert!(at[0] >= worst * (1.0 - 1e-3), "{d} {t}: {at:?}");
                // A tenth less is found out where moves are small beside the ball.
                assert!(
                    t / f64::from(d) > 0.3 || worst > 0.9 * cost,
                    "{d} {t}: {worst} {cost}"
                );
            }
        }
    }

    #[test]
    fn a_ball_costs_as_many_times_less_as_it_has_values() {
        for (t, d, expected) in [
            (1.0, 40, 0.0125),
            (0.5, 1, 0.125),
            (2.0, 4, 0.5),
            (4.0, 4, 2.0),
            (9.0, 4, 7.0),
        ] {
            let found = ball((t * 65536.0) as u64, d, 65536);
            assert!(
                (expected..expected * (1.0 + 2e-9) + 3e-12).contains(&found),
                "{t} {d}: {found}"
            );
        }
        assert_eq!(
            ball(u64::MAX, 1 << 20, 16),
            Rho::from_trillionths(u64::MAX).to_f64()
        );
        assert!(ball(1, 0, 16) > 0.0);
    }

    #[test]
    fn a_ball_for_a_rho_costs_no_more_and_a_little_more_epsilon_would() {
        for (text, values) in [
            ("0.0001", 3),
            ("0.01", 40),
            ("0.5", 1),
            ("0.5", 2),
            ("3", 5),
            ("40", 7),
        ] {
            let rho: Rho = text.parse().unwrap();
            let change = Sensitivity(1 << 32);
            let epsilon = epsilon_of_ball(change, values, rho);
            let cost =
                |epsilon| rho_of_ball(change, values, Scale::for_price(change, epsilon).unwrap());
            let of_any = Price::Concentrated(rho).largest_pure_epsilon();
            if values == 1 {
                // Its own constant is no less there than that of any mechanism.
                assert_eq!(epsilon, of_any);
                continue;
            }
            let more =
                Epsilon::from_trillionths(epsilon.trillionths() + epsilon.trillionths() / 100_000);
            assert!(cost(epsilon) <= rho && cost(more) > rho, "{text} {values}");
            let known = (2.0 * values as f64 * rho.to_f64()).sqrt();
            let known = if known <= values as f64 {
                known
            } else {
                rho.to_f64() + values as f64 / 2.0
            };
            let found = epsilon.to_f64() / known;
            println!("rho {text}, {values} values: epsilon {epsilon}, of any mechanism {of_any}");
            // Scales are rounded up, so that a little more epsilon makes the same noise.
            assert!(
                (0.999_99..1.000_01).contains(&found) && epsilon > of_any,
                "{text} {values}: {found}"
            );
        }
    }

    #[test]
    fn laplace_noise_for_a_rho_costs_no_more_and_the_next_smaller_scale_would() {
        use crate::laplace::scale_for_rho;
        use bernstream_synopsis::price::Price;
        for text in ["0.000001", "0.01", "0.5", "3"] {
            let rho: Rho = text.parse().unwrap();
            for change in [1_000, 1 << 20, 1 << 32] {
                let scale = scale_for_rho(Sensitivity(change), rho).unwrap();
                assert!(
                    rho_of_laplace(Sensitivity(change), scale) <= rho,
                    "{text} {change}"
                );
                if let Some(smaller) = Scale::new(scale.units() - 16) {
                    assert!(
                        rho_of_laplace(Sensitivity(change), smaller) > rho,
                        "{text} {change}"
                    );
                }
                let of_any = Scale::for_price(
                    Sensitivity(change),
                    Price::Concentrated(rho).largest_pure_epsilon(),
                )
                .unwrap();
                assert!(scale <= of_any, "{text} {change}: {scale:?} {of_any:?}");
            }
        }
        assert!(scale_for_rho(Sensitivity(1 << 40), "0.000000000001".parse().unwrap()).is_err());
    }
}
