//! Errors of the readings of a table by key that depend on its records, before there are any: for records that a reader imagines.

use super::{CountedTable, KeyNoise, KeyReading};
use crate::KeyBasis;
use crate::noise::weighted_noise;

impl KeyNoise<'_> {
    /// Half the length of the interval, 95 %, of a mean, a variance or a deviation of so many records of a key, whose values are spread
    /// evenly from one end of the value to the other; `None` if the noise may be all of them, or the table has no such reading.
    pub fn half_width_of_even(&self, reading: KeyReading, records: f64) -> Option<f64> {
        // Evenly spread values put as much on every place: 1/2 on two, and on three the mean of (1-y)^2, 2y(1-y) and y^2.
        let numbers = vec![records / self.placed_columns().len() as f64; self.basis.columns.len()];
        let basis = KeyBasis {
            keys: vec![String::new()],
            ..self.basis.clone()
        };
        let table = CountedTable::new(
            KeyNoise {
                basis: &basis,
                ..*self
            },
            &numbers,
        );
        let at = table.readings.iter().position(|known| *known == reading)?;
        let interval = table.row(0).estimates.get(at)?.interval?;
        Some((interval.upper - interval.lower) / 2.0)
    }

    /// Half-width, 95 %, of each number of units with so many keys; `None` where caps are not told.
    pub fn half_width_of_units(&self) -> Option<f64> {
        let told = self.basis.units.as_ref()?;
        Some(weighted_noise(self.law, self.scale, &[told.unit]).half_width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::description::CountedValue;
    use crate::{KeyColumn, KeyStatistic, NoiseDistribution};

    fn basis(statistics: &[KeyStatistic]) -> KeyBasis {
        let statistics = statistics.iter();
        KeyBasis {
            found: None,
            // A basis is of many keys, and the error of one.
            keys: vec!["a".to_owned(), "b".to_owned()],
            columns: statistics
                .map(|statistic| KeyColumn {
                    statistic: *statistic,
                    unit: 2.0,
                })
                .collect(),
            units: None,
        }
    }

    /// With many records the interval of a mean is that of `sum_i w_i x_i / n`, by weights `w` from `-r/2` to `r/2` of the range `r`.
    #[test]
    fn the_error_of_a_mean_falls_with_the_records_and_is_that_of_its_weights() {
        let value = CountedValue {
            column: "fare".to_owned(),
            min: -10.0,
            max: 30.0,
        };
        let basis = basis(&[KeyStatistic::Users, KeyStatistic::Low, KeyStatistic::High]);
        let noise = KeyNoise {
            basis: &basis,
            value: Some(&value),
            quantiles: None,
            law: NoiseDistribution::DiscreteGaussian,
            scale: 3.0,
        };
        // 1.96 deviations of 2 x 3, of two weights of 20 each.
        for (records, tolerance) in [(1e3, 0.02), (1e6, 1e-3)] {
            let expected = 1.96 * 6.0 * 2.0_f64.sqrt() * 20.0 / records;
            let found = noise.half_width_of_even(KeyReading::Mean, records);
            let found = found.expect("many records");
            assert!(
                (found / expected - 1.0).abs() < tolerance,
                "{found} {expected}"
            );
        }
        assert_eq!(noise.half_width_of_even(KeyReading::Mean, 10.0), None);
        assert_eq!(noise.half_width_of_even(KeyReading::Variance, 1e6), None);
        assert_eq!(noise.half_width_of_units(), None);
    }

    #[test]
    fn the_error_of_a_variance_falls_with_the_records() {
        let columns = [KeyStatistic::Low, KeyStatistic::Middle, KeyStatistic::High];
        let basis = basis(&columns);
        let noise = KeyNoise {
            basis: &basis,
            value: None,
            quantiles: None,
            law: NoiseDistribution::DiscreteGaussian,
            scale: 1.0,
        };
        let [many, more] = [1e5, 1e6].map(|records| {
            [KeyReading::Variance, KeyReading::Deviation].map(|reading| {
                noise
                    .half_width_of_even(reading, records)
                    .expect("many records")
            })
        });
        // The square distances of three places from the middle have the weights 1/4, -1/4 and 1/4.
        let expected =
            1.96 * 2.0 * (3.0_f64 / 16.0 + 1.0 / 144.0 * 3.0 - 2.0 / 12.0 / 4.0).sqrt() / 1e6;
        assert!(
            (more[0] / expected - 1.0).abs() < 0.01,
            "{more:?} {expected}"
        );
        assert!((many[0] / more[0] - 10.0).abs() < 0.1, "{many:?} {more:?}");
        // A deviation is the root of 1/12.
        let root = (1.0_f64 / 12.0).sqrt();
        assert!((more[1] * 2.0 * root / more[0] - 1.0).abs() < 1e-3);
    }
}
