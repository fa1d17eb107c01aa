//! What functions on a lattice share: how many points it may have, and how sums become whole grid units.

use super::Error;

const HIGHEST_DEGREE: u32 = 5_000;
const MOST_POINTS: usize = 1 << 20;

/// One grid unit is `2^-32` of the most that a record can change a value, or up to twice that part.
pub(super) const UNITS_A_PEAK: u32 = 32;

/// `(k + 1)^l`, for 1 to 3 axes.
pub(super) fn points(axes: usize, degree: u32) -> Result<usize, Error> {
    if !(1..=HIGHEST_DEGREE).contains(&degree) {
        return Err(Error::Degree { degree, most: HIGHEST_DEGREE });
    }
    let points = (u64::from(degree) + 1).pow(axes as u32);
    if points > MOST_POINTS as u64 {
        return Err(Error::Points { degree, axes, points, most: MOST_POINTS });
    }
    Ok(points as usize)
}

/// `sum / 2^shift`, halves up and not to even: then sums that differ by at most a whole number of units still do.
pub(super) fn rounded(sum: i128, shift: u32) -> i128 {
    sum.saturating_add(1 << (shift - 1)) >> shift
}

/// What a unit of several records is charged: each record's change follows the one before, so they add up.
pub(super) fn times(units: u128, contributions: u32) -> Result<u64, Error> {
    units
        .checked_mul(u128::from(contributions))
        .and_then(|units| u64::try_from(units).ok())
        .ok_or(Error::Contributions { contributions })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_rounded_up_so_that_whole_differences_stay_whole() {
        assert_eq!([1, 2, 3, 4, 6, 10].map(|sum| rounded(sum, 2)), [0, 1, 1, 1, 2, 3]);
        for sum in 0..64 {
            assert_eq!(rounded(sum + 4, 2) - rounded(sum, 2), 1);
        }
        assert_eq!(rounded(i128::MAX, 18), i128::MAX >> 18);
    }
}
