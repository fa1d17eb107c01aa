//! `"auto"`: chooses the noise, degree, order or points with the smallest predicted error, from public quantities only.
//!
//! The prediction is the mean of the largest error over the domain, in natural units, simulated with the noise that the price
//! of the release buys ([`bernstream_synopsis::predict`]). It uses measured operator norms instead of `2^h - 1`, and, since `[AR17]`
//! theorem 3 gives only a rate, the approximation error on functions that are as rough as their kernel allows
//! ([`bernstream_synopsis::rough`]): all expected records in one place, or kernels of either sign up to the bounds of a label. Of 64
//! such functions those eight count that the form follows least. Most functions are smoother, and what follows the roughest is too
//! noisy for them. So errors are predicted for smoother ones too, a part of the records, from half to all, in a cluster as wide as
//! the kernel and the others anywhere: the choice is that with the smallest mean of these, and the error of the roughest is told
//! beside it.
//!
//! The choice must be the same on every machine: it depends on no clock, thread or cache. (The last digit of an exponential
//! may differ between machines. That matters only for candidates that are equal to fifteen digits, and a worker goes on with the choice that its ledger has
//! recorded: [`crate::recorded`].)

mod cells;
mod choose;
mod lattices;
mod points;
mod search;

pub use lattices::{first_degree, is_quick};
pub use search::{CandidateSearch, ChoiceTerms};

#[cfg(test)]
mod tests {
    use crate::WorkerSettings;

    const FLIGHTS: &str = include_str!("../../../../tests/data/lattice.toml");

    fn chosen(records: u64, changes: &[(&str, &str)]) -> (u32, u32) {
        let auto = format!("degree = \"auto\"\norder = \"auto\"\nexpected_records = {records}");
        let text = FLIGHTS.replace("degree = 40\norder = 4", &auto);
        let text = changes.iter().fold(text, |text, (old, new)| {
            assert!(text.contains(old), "{old}");
            text.replace(old, new)
        });
        let settings = WorkerSettings::parse(&text, "test").unwrap();
        (
            settings.releases[0].shape().degree,
            settings.releases[0].order,
        )
    }

    /// A change here changes what new ledgers record; workers go on with what theirs have recorded. Say so in the changelog.
    #[test]
    fn the_choice_stays_what_it_was() {
        let found = [
            chosen(300, &[]),
            chosen(20, &[]),
            chosen(10_000, &[]),
            chosen(300, &[("bandwidths = [10]", "bandwidths = [40]")]),
            chosen(300, &[("epsilon = 1.0\ndegree", "epsilon = 0.1\ndegree")]),
        ];
        assert_eq!(found, [(24, 32), (12, 8), (64, 32), (6, 12), (12, 12)]);
    }
}
