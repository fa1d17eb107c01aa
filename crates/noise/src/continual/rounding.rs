//! Rounding that commutes with adding whole numbers.

/// `value / 2^bits`, rounded to the nearest, halves up: adding `n 2^bits` to the value adds `n`.
pub(super) fn round_to_bits(value: i128, bits: u32) -> i128 {
    value.saturating_add((1 << bits) >> 1) >> bits
}
