//! Keys that nobody listed: found by their noisy counts, at a price in epsilon and delta, if there are not too many of them
//! (`docs/proofs/found-keys.md`).

use super::calibrate::Scale;
use super::error::NoiseError;
use super::noise::{DiscreteLaplace, Generator, TruncatedLaplace};
use bernstream_synopsis::Sensitivity;
use bernstream_synopsis::calibrate::{Delta, Epsilon};
pub use bernstream_synopsis::key_threshold::UNIT_GRAINS;
use bernstream_synopsis::key_threshold::{key_threshold, laplace_truncation};

/// Law that finds keys (`[DVGM22]`): a key is found, and its noisy count told, where its count plus truncated Laplace noise exceeds a
/// threshold.
///
/// For units that change at most `max_keys` counts by 1 each, one draw for every key that somebody holds is (epsilon,
/// delta)-differentially private, and so are draws for announced keys among them. A count has `G =` [`UNIT_GRAINS`] grid units for each unit;
/// the threshold `K` bounds the noise as well, so a key of no unit could never be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeySelection {
    scale: Scale,
    threshold: u64,
}

impl KeySelection {
    /// For units that change at most `max_keys` counts by 1 each.
    ///
    /// # Errors
    ///
    /// If `max_keys` or epsilon is 0, the scale would be too large, or delta is 1 or more or has less than `10^-18` for each of the keys.
    pub fn calibrated(max_keys: u32, epsilon: Epsilon, delta: Delta) -> Result<Self, NoiseError> {
        let change = Sensitivity(UNIT_GRAINS * u64::from(max_keys));
        let scale = Scale::for_price(change, epsilon)?;
        let threshold = key_threshold(scale.units(), max_keys, delta)
            .ok_or(NoiseError::NoDeltaForKeys { delta, max_keys })?;
        Ok(KeySelection { scale, threshold })
    }

    /// Scale of the noise, in grid units: at least `G max_keys / epsilon`.
    pub fn scale(&self) -> Scale {
        self.scale
    }

    /// Threshold `K`, in grid units.
    pub fn threshold(&self) -> u64 {
        self.threshold
    }

    /// Draws. The noisy count of a key in grid units, if it is found: `count G + X` where that is above `K`, `X` truncated to
    /// `[-K, K]`. A count of 0 never is. Each call costs the price once more: the noisy count of a found key is this one.
    pub fn find_key(&self, count: u64, generator: &mut Generator) -> Option<i128> {
        let mut noise = [0];
        self.truncated_noise().fill(generator, &mut noise);
        self.select(count, noise[0])
    }

    /// Draws, as [`find_key`](Self::find_key) for each of these counts, many times faster.
    pub fn find_keys(&self, counts: &[u64], generator: &mut Generator) -> Vec<Option<i128>> {
        let mut noise = vec![0; counts.len()];
        self.truncated_noise().fill(generator, &mut noise);
        let mut found = Vec::with_capacity(counts.len());
        for (count, noise) in counts.iter().zip(noise) {
            found.push(self.select(*count, noise));
        }
        found
    }

    /// Draws. The noisy count of an announced key in grid units, whatever it is: with discrete Laplace noise of the same scale, which is
    /// not truncated.
    pub fn count_announced(&self, count: u64, generator: &mut Generator) -> i128 {
        let mut noise = [0];
        DiscreteLaplace::new(self.scale).fill(generator, &mut noise);
        grains(count) + noise[0]
    }

    /// Draws, as [`count_announced`](Self::count_announced) for each of these counts, many times faster.
    pub fn count_all_announced(&self, counts: &[u64], generator: &mut Generator) -> Vec<i128> {
        let mut noisy = vec![0; counts.len()];
        DiscreteLaplace::new(self.scale).fill(generator, &mut noisy);
        for (noisy, count) in noisy.iter_mut().zip(counts) {
            *noisy += grains(*count);
        }
        noisy
    }

    fn truncated_noise(&self) -> TruncatedLaplace {
        TruncatedLaplace::new(self.scale, self.threshold)
    }

    fn select(&self, count: u64, noise: i128) -> Option<i128> {
        let noisy = grains(count) + noise;
        (count > 0 && noisy > i128::from(self.threshold)).then_some(noisy)
    }
}

/// A count in grid units; below `2^76`.
fn grains(count: u64) -> i128 {
    i128::from(count) * i128::from(UNIT_GRAINS)
}

/// Private test of whether a window has too many different keys to look for new ones: propose, test, release (`[DL09]`).
///
/// A map of keys that comes to `limit` of them drops them all. Its window is certain to be overfull, and an overfull window finds no key, so
/// nothing depends on what the map left out. At [`soft_limit`](Self::soft_limit) keys or fewer a window never is overfull. For units that
/// change the number of keys by at most `max_keys`, the test is (epsilon, delta)-differentially private.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OverfullTest {
    limit: u64,
    scale: Scale,
    truncation: u64,
}

impl OverfullTest {
    /// `limit` is how many different keys there is room for.
    ///
    /// # Errors
    ///
    /// If `max_keys` or epsilon is 0, the scale would be too large, delta is none, or the soft limit would be below half the limit.
    pub fn calibrated(
        limit: u64,
        max_keys: u32,
        epsilon: Epsilon,
        delta: Delta,
    ) -> Result<Self, NoiseError> {
        let scale = Scale::for_price(Sensitivity(u64::from(max_keys)), epsilon)?;
        let truncation = laplace_truncation(scale.units(), max_keys, delta)
            .ok_or(NoiseError::NoDeltaForKeys { delta, max_keys })?;
        let least = truncation.saturating_mul(4).saturating_add(2);
        if limit < least {
            return Err(NoiseError::LimitTooLow { limit, least });
        }
        Ok(OverfullTest {
            limit,
            scale,
            truncation,
        })
    }

    /// The number of different keys at which a window is certain to be overfull.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// The largest number of different keys at which a window never is overfull.
    pub fn soft_limit(&self) -> u64 {
        self.limit - 2 * self.truncation - 1
    }

    /// Scale of the noise, in keys.
    pub fn scale(&self) -> Scale {
        self.scale
    }

    /// The most that the noise can be, in keys.
    pub fn truncation(&self) -> u64 {
        self.truncation
    }

    /// Draws. Each call costs the price once more. `distinct_keys` are those of the window, announced ones too; of a full
    /// map it is the limit, or any number above.
    pub fn is_overfull(&self, distinct_keys: u64, generator: &mut Generator) -> bool {
        let mut noise = [0];
        TruncatedLaplace::new(self.scale, self.truncation).fill(generator, &mut noise);
        let noisy = i128::from(distinct_keys.min(self.limit)) + noise[0];
        noisy > i128::from(self.soft_limit() + self.truncation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused<T: std::fmt::Debug>(result: Result<T, NoiseError>, words: &str) {
        let message = result.unwrap_err().to_string();
        assert!(message.contains(words), "{message}");
    }

    #[test]
    fn what_cannot_find_keys_is_refused_in_words() {
        let find = |keys, epsilon: &str, delta: &str| {
            KeySelection::calibrated(keys, epsilon.parse().unwrap(), delta.parse().unwrap())
        };
        refused(find(1, "0", "0.1"), "price of 0");
        refused(find(0, "1", "0.1"), "sensitivity of 0");
        refused(find(1, "1", "0"), "needs a delta below 1");
        refused(find(1, "1", "1"), "needs a delta below 1");
        refused(find(3, "1", "0.000000000000000002"), "each of the 3 keys");
        refused(find(u32::MAX, "0.000000000001", "0.1"), "is so low");
        assert!(find(3, "1", "0.000000000000000003").is_ok());
    }

    #[test]
    fn a_limit_leaves_room_for_a_soft_one() {
        let test = |limit, delta: &str| {
            OverfullTest::calibrated(limit, 1, "0.001".parse().unwrap(), delta.parse().unwrap())
        };
        refused(test(80_000, "0.000000000001"), "give at least 80798");
        refused(test(1_000_000, "0"), "needs a delta below 1");
        let found = test(1_000_000, "0.000000000001").unwrap();
        assert_eq!((found.truncation(), found.soft_limit()), (20_199, 959_601));
        // The largest noise that there is.
        let huge = OverfullTest::calibrated(
            u64::MAX,
            u32::MAX,
            "0.0000001".parse().unwrap(),
            "0.000000000000000001".parse().unwrap(),
        );
        assert!(huge.is_ok_and(|test| test.soft_limit() > u64::MAX / 2));
    }
}
