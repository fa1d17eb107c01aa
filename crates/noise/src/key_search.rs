//! The search of a window for keys that nobody listed: a test whether there are too many of them, the selection, and which of the keys
//! become a row. Everything after the noise is post-processing.

use std::collections::{BTreeMap, BTreeSet};

use super::calibrated::Mechanism;
use super::candidate_counts::CandidateCounts;
use super::error::NoiseError;
use super::key_selection::{KeySelection, OverfullTest};
use super::noise::Generator;
use super::noisy::Noisy;
use bernstream_synopsis::NoiseDistribution;
use bernstream_synopsis::calibrate::{Delta, Epsilon};

/// The test has a thousandth of the epsilon, and this delta.
const TEST_PART: u64 = 1000;
const TEST_DELTA: Delta = Delta::from_quintillionths(1_000_000);

/// The largest threshold: noisy numbers of found keys are exact in the floats of a message up to the double of it, so that no message of
/// drawn numbers is ever refused.
const LARGEST_THRESHOLD: u64 = 1 << 51;

/// The search of one window, at one price.
///
/// # Guarantee
///
/// (`epsilon`, `delta`)-differential privacy for units that change at most `max_keys` counts by 1 each, whatever keys are announced:
/// the test and the selection pay for themselves, one after the other (`docs/proofs/found-keys.md`).
#[derive(Clone, Debug)]
pub struct KeySearch {
    selection: KeySelection,
    selection_delta: Delta,
    /// Test whether there are too many keys; `None` where units bound them.
    overfull: Option<OverfullTest>,
    /// Most rows of a window.
    most: usize,
}

/// What a search publishes: the rows of the table, by the bytes of their keys.
#[derive(Clone, Debug)]
pub struct KeySearchOutcome {
    pub rows: Vec<SelectedKey>,
    /// The noisy count of each row, in grid units.
    pub noisy: Noisy,
    /// There are too many different keys to look for new ones, and nothing else is told.
    pub is_overfull: bool,
}

/// A key of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectedKey {
    pub key: String,
    /// It was announced before, and is published whatever its count is.
    pub was_announced: bool,
    /// Its noisy count exceeds the threshold.
    pub is_above: bool,
}

/// The noisy count of a key.
struct NoisyKey {
    key: String,
    was_announced: bool,
    count: i128,
}

impl KeySearch {
    /// The search that a price buys. Under a `limit` of different keys the test gets a thousandth of the epsilon and 1e-12 of the delta.
    ///
    /// # Errors
    ///
    /// If the price is too low, or the limit is too small for the test.
    pub fn calibrated(
        max_keys: u32,
        limit: Option<u32>,
        most: u32,
        epsilon: Epsilon,
        delta: Delta,
    ) -> Result<Self, NoiseError> {
        let mut selection_epsilon = epsilon;
        let mut selection_delta = delta;
        let mut overfull = None;
        if let Some(limit) = limit {
            let test_epsilon = Epsilon::from_trillionths(epsilon.trillionths() / TEST_PART);
            selection_epsilon =
                Epsilon::from_trillionths(epsilon.trillionths() - test_epsilon.trillionths());
            let left = delta
                .quintillionths()
                .checked_sub(TEST_DELTA.quintillionths());
            selection_delta = match left {
                Some(left) if left > 0 => Delta::from_quintillionths(left),
                _ => {
                    return Err(NoiseError::NoDeltaBesideTest {
                        delta,
                        test: TEST_DELTA,
                    });
                }
            };
            overfull = Some(OverfullTest::calibrated(
                limit.into(),
                max_keys,
                test_epsilon,
                TEST_DELTA,
            )?);
        }
        let selection = KeySelection::calibrated(max_keys, selection_epsilon, selection_delta)?;
        if selection.threshold() > LARGEST_THRESHOLD {
            return Err(NoiseError::TooMuchNoise { price: epsilon });
        }
        Ok(KeySearch {
            selection,
            selection_delta,
            overfull,
            most: usize::try_from(most).unwrap_or(usize::MAX),
        })
    }

    pub fn selection(&self) -> &KeySelection {
        &self.selection
    }

    /// The noise of the keys that are announced.
    pub fn announced_noise(&self) -> Mechanism {
        Mechanism::with_scale(NoiseDistribution::DiscreteLaplace, self.selection.scale())
    }

    /// The delta of the selection alone.
    pub fn selection_delta(&self) -> Delta {
        self.selection_delta
    }

    pub fn overfull_test(&self) -> Option<&OverfullTest> {
        self.overfull.as_ref()
    }

    /// Draws. Each call costs the price once more: call it once a window, and keep the result.
    ///
    /// Every key of `announced` gets a row, and every other key whose noisy count exceeds the threshold; of more than the table takes
    /// those with the largest noisy counts.
    pub fn search_keys(
        &self,
        candidates: &CandidateCounts,
        announced: &BTreeSet<String>,
        generator: &mut Generator,
    ) -> KeySearchOutcome {
        if let Some(test) = &self.overfull {
            let distinct = candidates.distinct(test.limit());
            if test.is_overfull(distinct, generator) {
                return KeySearchOutcome {
                    rows: Vec::new(),
                    noisy: Noisy(Vec::new()),
                    is_overfull: true,
                };
            }
        }
        let mut noisy = self.found_keys(candidates.counts(), announced, generator);
        noisy.extend(self.announced_keys(candidates.counts(), announced, generator));
        self.largest_keys(noisy)
    }

    /// The keys that are found of those that are not announced.
    fn found_keys(
        &self,
        counts: &BTreeMap<String, u64>,
        announced: &BTreeSet<String>,
        generator: &mut Generator,
    ) -> Vec<NoisyKey> {
        let mut keys = Vec::with_capacity(counts.len());
        let mut exact = Vec::with_capacity(counts.len());
        for (key, count) in counts {
            if !announced.contains(key) {
                keys.push(key);
                exact.push(*count);
            }
        }
        let mut found = Vec::new();
        let drawn = self.selection.find_keys(&exact, generator);
        for (key, noisy) in keys.into_iter().zip(drawn) {
            if let Some(count) = noisy {
                found.push(NoisyKey {
                    key: key.clone(),
                    was_announced: false,
                    count,
                });
            }
        }
        found
    }

    /// The keys that are announced, all of them.
    fn announced_keys(
        &self,
        counts: &BTreeMap<String, u64>,
        announced: &BTreeSet<String>,
        generator: &mut Generator,
    ) -> Vec<NoisyKey> {
        let mut exact = Vec::with_capacity(announced.len());
        for key in announced {
            exact.push(counts.get(key).copied().unwrap_or(0));
        }
        let drawn = self.selection.count_all_announced(&exact, generator);
        let mut noisy = Vec::with_capacity(announced.len());
        for (key, count) in announced.iter().zip(drawn) {
            noisy.push(NoisyKey {
                key: key.clone(),
                was_announced: true,
                count,
            });
        }
        noisy
    }

    /// The rows: those with the largest noisy counts, by the bytes of their keys.
    fn largest_keys(&self, mut noisy: Vec<NoisyKey>) -> KeySearchOutcome {
        noisy.sort_unstable_by(|one, other| {
            let by_count = other.count.cmp(&one.count);
            by_count.then_with(|| one.key.cmp(&other.key))
        });
        noisy.truncate(self.most);
        noisy.sort_unstable_by(|one, other| one.key.cmp(&other.key));
        let mut rows = Vec::with_capacity(noisy.len());
        let mut counts = Vec::with_capacity(noisy.len());
        for NoisyKey {
            key,
            was_announced,
            count,
        } in noisy
        {
            rows.push(SelectedKey {
                key,
                was_announced,
                is_above: count > i128::from(self.selection.threshold()),
            });
            counts.push(count);
        }
        KeySearchOutcome {
            rows,
            noisy: Noisy(counts),
            is_overfull: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So dear that noise is far below a half.
    const EPSILON: u64 = 400_000_000_000_000;
    const DELTA: u64 = 1_000_000_000_000;

    fn search(limit: Option<u32>, most: u32) -> KeySearch {
        let epsilon = Epsilon::from_trillionths(EPSILON);
        let delta = Delta::from_quintillionths(DELTA);
        KeySearch::calibrated(1, limit, most, epsilon, delta).unwrap()
    }

    fn candidates(counts: &[(&str, u64)]) -> CandidateCounts {
        let counts = counts
            .iter()
            .map(|(key, count)| ((*key).to_owned(), *count));
        CandidateCounts::new(counts.collect(), false)
    }

    fn announced(keys: &[&str]) -> BTreeSet<String> {
        keys.iter().map(|key| (*key).to_owned()).collect()
    }

    fn searched(search: &KeySearch, counts: &[(&str, u64)], list: &[&str]) -> KeySearchOutcome {
        let mut generator = Generator::frozen([7; 32]);
        search.search_keys(&candidates(counts), &announced(list), &mut generator)
    }

    fn keys_of(outcome: &KeySearchOutcome) -> Vec<&str> {
        outcome.rows.iter().map(|row| row.key.as_str()).collect()
    }

    #[test]
    fn announced_keys_are_published_with_nobody_and_others_only_above_the_threshold() {
        let counts = [("b", 1), ("c", 90), ("d", 40)];
        let outcome = searched(&search(None, 10), &counts, &["a", "b", "d"]);
        assert_eq!(keys_of(&outcome), ["a", "b", "c", "d"]);
        let flags: Vec<[bool; 2]> = outcome
            .rows
            .iter()
            .map(|row| [row.was_announced, row.is_above])
            .collect();
        assert_eq!(
            flags,
            [[true, false], [true, false], [false, true], [true, true]]
        );
        let units: Vec<f64> = outcome
            .noisy
            .values()
            .iter()
            .map(|noisy| *noisy as f64 / 4096.0)
            .collect();
        for (units, exact) in units.iter().zip([0.0, 1.0, 90.0, 40.0]) {
            assert!((units - exact).abs() < 0.5, "{units} {exact}");
        }
        // A key of one unit is at the threshold or below.
        assert!(keys_of(&searched(&search(None, 10), &[("b", 1)], &[])).is_empty());
    }

    #[test]
    fn of_more_keys_than_rows_those_with_the_largest_noisy_counts_are_left() {
        let counts = [("a", 50), ("b", 60), ("c", 70), ("d", 80)];
        let outcome = searched(&search(None, 2), &counts, &["a", "e"]);
        assert_eq!(keys_of(&outcome), ["c", "d"]);
        assert_eq!(outcome.noisy.values().len(), 2);
    }

    #[test]
    fn an_overfull_window_tells_nothing_else() {
        let limit = 2000;
        let search = search(Some(limit), 10);
        let soft = search.overfull_test().unwrap().soft_limit();
        let names: Vec<String> = (0..limit).map(|key| format!("{key:04}")).collect();
        let of_keys = |keys: u64| {
            let names = names.iter().take(usize::try_from(keys).unwrap());
            CandidateCounts::new(names.map(|name| (name.clone(), 100)).collect(), false)
        };
        let full = CandidateCounts::new(BTreeMap::new(), true);
        for (candidates, is_overfull) in [
            (of_keys(soft), false),
            (of_keys(limit.into()), true),
            (full, true),
        ] {
            let mut generator = Generator::frozen([8; 32]);
            let outcome = search.search_keys(&candidates, &announced(&["0000"]), &mut generator);
            assert_eq!(outcome.is_overfull, is_overfull);
            assert_eq!(outcome.rows.is_empty(), is_overfull);
            assert_eq!(outcome.noisy.values().is_empty(), is_overfull);
        }
    }

    /// The parts are those that the description and the proof say, and never more than the whole.
    #[test]
    fn test_and_selection_share_the_price() {
        let delta = Delta::from_quintillionths(DELTA);
        let of_users = search(None, 10);
        assert!(of_users.overfull_test().is_none());
        assert_eq!(of_users.selection_delta(), delta);
        let of_records = search(Some(2000), 10);
        let left = of_records.selection_delta().quintillionths();
        assert_eq!(left + TEST_DELTA.quintillionths(), DELTA);
        let alone = |part: u64| {
            let epsilon = Epsilon::from_trillionths(part);
            KeySelection::calibrated(1, epsilon, of_records.selection_delta()).unwrap()
        };
        assert_eq!(*of_records.selection(), alone(EPSILON - EPSILON / 1000));
        let test = OverfullTest::calibrated(
            2000,
            1,
            Epsilon::from_trillionths(EPSILON / 1000),
            TEST_DELTA,
        );
        assert_eq!(*of_records.overfull_test().unwrap(), test.unwrap());
        let epsilon = Epsilon::from_trillionths(EPSILON);
        for delta in [Delta::ZERO, TEST_DELTA] {
            assert!(KeySearch::calibrated(1, Some(2000), 10, epsilon, delta).is_err());
        }
    }
}
