//! `"auto"`: chooses the noise, degree, order or points with the smallest predicted error, from public quantities only.
//!
//! The prediction is the mean of the largest error over the domain, in natural units, simulated with the noise that the price
//! of the release buys ([`predict`]). It uses measured operator norms instead of `2^h - 1`, and, since `[AR17]` theorem 3 gives
//! only a rate, the approximation error on one function, a bump: half of the expected records form one cluster as wide as the
//! smoothing of the function, anywhere in the domain; the other half are spread evenly and add no error.
//!
//! Why a bump: evenly spread records need no degree at all, and records in one point need no bandwidth. Operators choose a
//! bandwidth no wider than the features they want to see, so the bandwidth is taken as the width of a feature.
//!
//! The choice must be the same on every machine: it depends on no clock, thread or cache. (The last digit of an exponential
//! may differ between machines. That matters only for candidates that are equal to fifteen digits, and a worker whose choice
//! differs from that of its ledger refuses to start.)

mod cells;
mod choose;
mod lattices;
mod points;
mod search;

pub use lattices::{first_degree, is_quick};
pub use search::{Search, Terms};

#[cfg(test)]
mod tests {
    use crate::config::Settings;

    const FLIGHTS: &str = include_str!("../../../config/flights.toml");

    fn chosen(records: u64, changes: &[(&str, &str)]) -> (u32, u32) {
        let auto = format!("degree = \"auto\"\norder = \"auto\"\nexpected_records = {records}");
        let text = FLIGHTS.replace("degree = 40\norder = 4", &auto);
        let text = changes.iter().fold(text, |text, (old, new)| {
            assert!(text.contains(old), "{old}");
            text.replace(old, new)
        });
        let settings = Settings::parse(&text, "test").unwrap();
        (settings.releases[0].shape().degree, settings.releases[0].order)
    }

    /// A change here changes the settings of running ledgers: their workers refuse to start until the earlier choice is written
    /// into the file. Say so in the changelog.
    #[test]
    fn the_choice_stays_what_it_was() {
        let found = [
            chosen(300, &[]),
            chosen(20, &[]),
            chosen(10_000, &[]),
            chosen(300, &[("bandwidths = [10]", "bandwidths = [40]")]),
            chosen(300, &[("epsilon = 1.0\ndegree", "epsilon = 0.1\ndegree")]),
        ];
        assert_eq!(found, [(24, 32), (8, 6), (64, 32), (4, 12), (8, 12)]);
    }
}
