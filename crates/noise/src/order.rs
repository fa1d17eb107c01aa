//! An order of a polynomial, chosen from the records themselves, privately and for a price of its own (`docs/proofs/choice.md`).

use super::calibrated::Mechanism;
use super::error::NoiseError;
use super::exact::Exact;
use super::noise::Generator;
use bernstream_synopsis::calibrate::Epsilon;
use bernstream_synopsis::{Adjacency, Sensitivity};

/// An order by report noisy max.
///
/// The score of order `h` is minus what its synopsis is expected to be off by, in whole grid units: the noise, which is
/// public, and how far the polynomial is from the exact values at the lattice, `max |(I - A)^h v|` (`A` takes lattice
/// values to those of their polynomial, so order `h` leaves `(I - A)^h v` of them undone).
///
/// # Guarantee
///
/// The scores get discrete Laplace noise of scale `s`, and only the place of the largest is told (the first of equals).
/// With all other noise fixed, order `h` is told where its own noise reaches a whole number; between neighbours that
/// number moves by at most `D_h + max D_j`, `D` the sensitivities of the scores. So `s` = (the sum of the two largest `D`) /
/// price makes it cost `price`, with delta 0 (`[DR14]`, claim 3.9, with the discrete law in place of the other).
///
/// `D_h` is read off the whole numbers of the table `T` that is used; there is no float between the values and the choice. A
/// record that changes every value by at most `S` changes a row's sum by at most `S max_i sum_j |T[i][j]|`. Where a target
/// lists the effects of single records (`Target::effects`), of which every change is a convex combination up
/// to rounding, it is at most `max |T e| + max_i sum_j |T[i][j]|` over all effects `e` (twice the first for a record that
/// moves), and mostly far less: high orders leave little of a smooth kernel undone. A unit is charged for each of its
/// records.
#[derive(Clone, Debug)]
pub struct OrderChoice {
    remainders: Vec<OrderRemainder>,
    noise: Mechanism,
    change: Sensitivity,
}

/// Grounds on which an order is judged: its noise, and the table of what it leaves undone.
#[derive(Clone, Debug)]
pub struct OrderRemainder {
    /// Size in grid units.
    noise: i128,
    /// `(I - A)^h` in units of `2^-20`, row by row.
    rows: Vec<i64>,
}

/// Changes of one record to the values that an order is chosen for.
#[derive(Clone, Debug)]
pub struct TargetChange {
    pub values: usize,
    /// The most that it changes any value.
    pub sup: u64,
    /// `Target::effects`.
    pub effects: Option<Vec<Vec<i128>>>,
    pub adjacency: Adjacency,
    /// The most records of a unit.
    pub contributions: u32,
}

const TABLE_BITS: u32 = 20;
/// No value is taken for more than this in size, which moves none of them apart. Sums of effects never reach it: 2^64 records'
/// grains in each of 2^23 cells are less than 2^99 grid units.
const LARGEST_VALUE: i128 = 1 << 99;
/// The largest sum of a row: with values of [`LARGEST_VALUE`] it fits into 128 bits. Those of operators are below 2^25.
const LARGEST_ROW: u128 = 1 << 27;

impl OrderRemainder {
    /// `noise` in grid units, its expected largest size; `rows` the matrix `(I - A)^h`, row by row.
    ///
    /// Both are public. The floats decide how good the choice is, nothing else.
    pub fn new(noise: f64, rows: &[f64]) -> Self {
        let mut table = Vec::with_capacity(rows.len());
        for entry in rows {
            // A cast from a float saturates, and takes NaN to 0.
            table.push((entry * f64::from(1 << TABLE_BITS)).round() as i64);
        }
        OrderRemainder {
            noise: noise as i64 as i128,
            rows: table,
        }
    }

    /// Error that is left undone, rounded down to whole grid units.
    pub fn undone_error(&self, values: &[i128]) -> i128 {
        self.largest_entry(values) >> TABLE_BITS
    }

    /// `max_i |sum_j T[i][j] v[j]|`, not negative.
    fn largest_entry(&self, values: &[i128]) -> i128 {
        let mut largest = 0;
        for row in self.rows.chunks_exact(values.len().max(1)) {
            let mut sum = 0_i128;
            for (weight, value) in row.iter().zip(values) {
                let value = (*value).clamp(-LARGEST_VALUE, LARGEST_VALUE);
                sum = sum.saturating_add(i128::from(*weight).saturating_mul(value));
            }
            largest = largest.max(sum.saturating_abs());
        }
        largest
    }

    /// Largest change of a unit to [`OrderRemainder::undone_error`]; `None` for a table that no operator has. Rounding down turns a
    /// difference of at most `d` into one of at most `ceil(d)`.
    pub fn sensitivity(&self, change: &TargetChange) -> Option<u128> {
        let mut norm = 0;
        for row in self.rows.chunks_exact(change.values.max(1)) {
            let sum = row.iter().map(|t| u128::from(t.unsigned_abs())).sum();
            norm = u128::max(norm, sum);
        }
        let in_general = norm.saturating_mul(u128::from(change.sup));
        let moves = match change.adjacency {
            Adjacency::AddRemove => 1,
            Adjacency::ReplaceOne => 2,
        };
        let of_effects = match &change.effects {
            Some(effects) => {
                let mut most = 0;
                for effect in effects {
                    most = self.largest_entry(effect).unsigned_abs().max(most);
                }
                most.saturating_mul(moves).saturating_add(norm)
            }
            None => u128::MAX,
        };
        let of_one = in_general.min(of_effects).div_ceil(1 << TABLE_BITS);
        (norm <= LARGEST_ROW).then(|| of_one.saturating_mul(u128::from(change.contributions)))
    }
}

impl OrderChoice {
    /// # Errors
    ///
    /// If a table is larger than that of any operator, or as with [`Mechanism::laplace`].
    pub fn new(
        remainders: Vec<OrderRemainder>,
        change: &TargetChange,
        price: Epsilon,
    ) -> Result<Self, NoiseError> {
        let changes = remainders
            .iter()
            .map(|order| order.sensitivity(change))
            .collect::<Option<Vec<u128>>>();
        let mut changes = changes.ok_or(NoiseError::TooMuchNoise { price })?;
        changes.sort_unstable();
        let mut both: u128 = 0;
        for change in changes.iter().rev().take(2) {
            both = both.saturating_add(*change);
        }
        let sensitivity =
            Sensitivity(u64::try_from(both).map_err(|_| NoiseError::TooMuchNoise { price })?);
        Ok(OrderChoice {
            remainders,
            noise: Mechanism::laplace(sensitivity, price)?,
            change: sensitivity,
        })
    }

    /// The same choice where the noise on the values has `factor` times the scale: public, and as private.
    #[must_use]
    pub fn at_scale(&self, factor: f64) -> Self {
        let mut order = self.clone();
        for remainder in &mut order.remainders {
            remainder.noise = (remainder.noise as f64 * factor) as i64 as i128;
        }
        order
    }

    /// The scale of the noise on a score, in grid units.
    pub fn scale(&self) -> u64 {
        self.noise.scale().units()
    }

    /// The noise on the scores.
    pub fn mechanism(&self) -> Mechanism {
        self.noise
    }

    /// Draws. The index of an order; each call costs the price once more.
    pub fn choose_order(&self, exact: &Exact, generator: &mut Generator) -> usize {
        let noisy = self.noise.release_noisy(&self.scores(exact), generator);
        // The last of equals is what `max_by_key` takes: so from the back.
        noisy
            .values()
            .iter()
            .enumerate()
            .rev()
            .max_by_key(|(_, score)| **score)
            .map_or(0, |(index, _)| index)
    }

    /// Largest change of a unit to the two scores that it changes most, together, for which their noise is made.
    pub fn change(&self) -> Sensitivity {
        self.change
    }

    /// Scores of the orders, as secret as the values.
    pub fn scores(&self, exact: &Exact) -> Exact {
        let mut scores = Vec::with_capacity(self.remainders.len());
        for order in &self.remainders {
            scores.push(-(order.noise + order.undone_error(exact.reveal())));
        }
        Exact::new(scores)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bernstream_synopsis::bernstein::Operator;

    fn price(text: &str) -> Epsilon {
        text.parse().unwrap()
    }

    /// One record, of whose effects nothing is known but `sup`.
    fn any(values: usize, sup: u64) -> TargetChange {
        TargetChange {
            values,
            sup,
            effects: None,
            adjacency: Adjacency::AddRemove,
            contributions: 1,
        }
    }

    fn tables(dimensions: usize, degree: u32, orders: &[u32]) -> Vec<OrderRemainder> {
        Operator::new(dimensions, degree)
            .remainders(orders)
            .iter()
            .map(|rows| OrderRemainder::new(0.0, rows))
            .collect()
    }

    #[test]
    fn what_an_order_leaves_undone_is_what_its_polynomial_misses_at_the_lattice() {
        use bernstream_synopsis::bernstein::{bernstein_basis, evaluate_polynomial};
        let degree = 9;
        let orders = [1, 2, 5];
        let values: Vec<i128> = (0..=degree)
            .map(|j| i128::from(7919 * j % 1009) << 32)
            .collect();
        let floats: Vec<f64> = values.iter().map(|v| *v as f64).collect();
        for (order, table) in orders.into_iter().zip(tables(1, degree, &orders)) {
            let coefficients = Operator::new(1, degree).coefficients(&floats, order);
            let missed = |j: u32| {
                let at = bernstein_basis(degree, f64::from(j) / f64::from(degree));
                (evaluate_polynomial(&coefficients, &[at]) - floats[j as usize]).abs()
            };
            let most = (0..=degree).map(missed).fold(0.0, f64::max);
            let left = table.undone_error(&values) as f64;
            assert!((left / most - 1.0).abs() < 1e-4, "{order}: {left} {most}");
        }
    }

    /// Every sign of every value's change on a small lattice: none changes a remainder by more than is claimed, and one by
    /// all of it.
    #[test]
    fn no_neighbour_changes_a_score_by_more_than_its_sensitivity() {
        let sup = 1_u64 << 33;
        for (dimensions, degree) in [(1, 5), (1, 10), (2, 2)] {
            let orders = [1, 2, 4, 8];
            for (order, table) in orders.into_iter().zip(tables(dimensions, degree, &orders)) {
                let count = (degree as usize + 1).pow(dimensions as u32);
                let claimed = table.sensitivity(&any(count, sup)).unwrap();
                let mut found = 0;
                for (signs, base) in
                    (0..1_u32 << count).flat_map(|signs| [(signs, 0), (signs, 1 << 40)])
                {
                    let before: Vec<i128> = (0..count).map(|j| base * (j as i128 % 3)).collect();
                    let change = |j: usize| {
                        if signs >> j & 1 == 1 {
                            i128::from(sup)
                        } else {
                            -i128::from(sup)
                        }
                    };
                    let after: Vec<i128> = before
                        .iter()
                        .enumerate()
                        .map(|(j, v)| v + change(j))
                        .collect();
                    found = table
                        .undone_error(&before)
                        .abs_diff(table.undone_error(&after))
                        .max(found);
                }
                assert!(
                    found <= claimed,
                    "{dimensions} {degree} {order}: {found} {claimed}"
                );
                assert!(
                    found as f64 > 0.999 * claimed as f64,
                    "{dimensions} {degree} {order}: {found} {claimed}"
                );
            }
        }
    }

    #[test]
    fn values_of_any_size_do_not_wrap() {
        for table in tables(1, 12, &[1, 64, 200]) {
            let values: Vec<i128> = (0..13)
                .map(|j| if j % 2 == 0 { i128::MAX } else { i128::MIN })
                .collect();
            assert!(table.undone_error(&values) > LARGEST_VALUE / 2);
        }
        // What no operator has is refused, and does not wrap either.
        let wild = OrderRemainder::new(
            f64::INFINITY,
            &[f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 1.0],
        );
        assert!(
            wild.undone_error(&[i128::MAX, i128::MIN]) > 0
                && wild.sensitivity(&any(2, 1)).is_none()
        );
    }

    #[test]
    fn a_price_too_low_is_refused_in_words() {
        let error = OrderChoice::new(tables(1, 5, &[1, 2]), &any(6, u64::MAX), price("0.1"))
            .unwrap_err()
            .to_string();
        assert!(error.contains("is so low"), "{error}");
    }
}
