//! A choice by coins.

use super::generator::Generator;
use super::geometric::{falls_below, uniform_below};
use crate::calibrate::Scale;

/// The index of one of `utilities`: in a uniform order, the first whose coin of probability `exp(-g / s)` succeeds, `g` what
/// it falls short of the largest by and `s` the [`Scale`] (`[MS20]`). Every coin is exact.
///
/// Where no utility differs between neighbours by more than `S`, this is `2S/s`-differentially private.
pub fn permute_and_flip(scale: Scale, utilities: &[i128], generator: &mut Generator) -> usize {
    let largest = utilities.iter().copied().max().unwrap_or_default();
    let mut left: Vec<usize> = (0..utilities.len()).collect();
    while left.len() > 1 {
        let index = left.swap_remove(uniform_below(generator, left.len() as u64) as usize);
        if gap_coin_succeeds(largest.abs_diff(utilities[index]), scale.units(), generator) {
            return index;
        }
    }
    // The largest has a coin that always succeeds: so it is the last, or there is none.
    left.first().copied().unwrap_or_default()
}

/// True with probability `exp(-gap / scale)`.
fn gap_coin_succeeds(gap: u128, scale: u64, generator: &mut Generator) -> bool {
    let rest = (gap % u128::from(scale)) as u64;
    (0..gap / u128::from(scale)).all(|_| exponential_coin(scale, scale, generator))
        && exponential_coin(rest, scale, generator)
}

/// True with probability `exp(-numerator / denominator)`, at most 1 (`[CKS20]` algorithm 1).
fn exponential_coin(numerator: u64, denominator: u64, generator: &mut Generator) -> bool {
    let mut k = 1;
    while (numerator == denominator || falls_below(numerator, denominator, generator))
        && (k == 1 || uniform_below(generator, k) == 0)
    {
        k += 1;
    }
    k % 2 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_coin_has_the_probability_of_its_gap() {
        let mut generator = Generator::frozen([1; 32]);
        for gap in [0_u128, 5, 16, 24, 40] {
            let hits = (0..100_000)
                .filter(|_| gap_coin_succeeds(gap, 16, &mut generator))
                .count() as f64;
            let expected = 100_000.0 * (-(gap as f64) / 16.0).exp();
            assert!(
                (hits - expected).abs() <= 6.11 * (expected * (1.0 - expected / 100_000.0)).sqrt(),
                "{gap}: {hits}"
            );
        }
        assert!(!gap_coin_succeeds(u128::MAX, 16, &mut generator));
    }
}
