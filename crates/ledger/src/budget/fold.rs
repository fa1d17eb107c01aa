//! Which shares hold. Pure: the same for everyone who has read the same records from the first one on.

use super::entry::{BudgetEntry, BudgetRecord, BudgetTerms, ShareEnd, ShareHolder};
use bernstream_synopsis::Fraction;
use bernstream_synopsis::clock::Timestamp;

/// A share that holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActiveShare {
    pub entry: BudgetEntry,
    /// It covers no block from this time on; `None` without an end.
    pub until: Option<Timestamp>,
}

/// The shares that hold, in the order of the topic. The first says what all have in common.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BudgetShares(Vec<ActiveShare>);

/// Reason why a record changes nothing, for ever.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordRejection {
    #[error("no program of this kind has written it")]
    Stray,
    #[error("it is not of the same budget: {0}")]
    Other(String),
    #[error("it was there before, or a later one of the same pipeline was")]
    Again,
    #[error("only {0} was left")]
    TooMuch(Fraction),
    #[error("it takes nothing")]
    Nothing,
    #[error("no block starts then")]
    OffGrid,
    #[error("nobody holds that share")]
    Unheld,
    #[error("that share has ended before")]
    Ended,
}

impl ActiveShare {
    fn covers(&self, time: Timestamp) -> bool {
        self.entry.from <= time && self.until.is_none_or(|until| time < until)
    }
}

impl BudgetShares {
    /// Reads one record more.
    ///
    /// An entry holds if it is of the same budget as those before it, if its generation is newer than all of its owner (else one that was
    /// delivered twice would be taken again after its end), and if the shares of every block stay within the whole. A share ends once:
    /// with its end, or where a newer generation of its owner takes over. An end that comes after that is void, so that it frees nothing
    /// that the newer generation has charged.
    ///
    /// # Errors
    ///
    /// Why the record is void. Nothing has changed then.
    pub fn apply_record(&mut self, record: BudgetRecord) -> Result<(), RecordRejection> {
        match record {
            BudgetRecord::Share(entry) => self.add_share(entry),
            BudgetRecord::End(end) => self.end_share(&end),
        }
    }

    fn add_share(&mut self, entry: BudgetEntry) -> Result<(), RecordRejection> {
        if let Some(difference) = self.difference(&entry.of) {
            return Err(RecordRejection::Other(difference));
        }
        if !entry.of.blocks.has_start(entry.from) {
            return Err(RecordRejection::OffGrid);
        }
        if entry.share == Fraction::ZERO {
            return Err(RecordRejection::Nothing);
        }
        let newest = self
            .newest_of(&entry.holder.owner)
            .map(|held| held.entry.holder.generation);
        if newest.is_some_and(|newest| entry.holder.generation <= newest) {
            return Err(RecordRejection::Again);
        }
        let mut after = self.clone();
        for held in &mut after.0 {
            if held.entry.holder.owner == entry.holder.owner && held.entry.from <= entry.from {
                held.until = held.until.or(Some(entry.from));
            }
        }
        let left = after.left_from(entry.from);
        if entry.share > left {
            return Err(RecordRejection::TooMuch(left));
        }
        after.0.push(ActiveShare { entry, until: None });
        *self = after;
        Ok(())
    }

    fn end_share(&mut self, end: &ShareEnd) -> Result<(), RecordRejection> {
        let held = self
            .0
            .iter_mut()
            .find(|held| held.entry.holder == end.holder)
            .ok_or(RecordRejection::Unheld)?;
        if !held.entry.of.blocks.has_start(end.from) {
            return Err(RecordRejection::OffGrid);
        }
        if held.until.is_some() {
            return Err(RecordRejection::Ended);
        }
        held.until = Some(end.from);
        Ok(())
    }

    pub fn held_shares(&self) -> &[ActiveShare] {
        &self.0
    }

    /// Common part of all shares, as the first entry says it; `None` before that.
    pub fn shared_budget(&self) -> Option<&BudgetTerms> {
        self.0.first().map(|held| &held.entry.of)
    }

    /// Difference of a pipeline from those that hold or held a share; `None` if it is of the same budget. It is compared with each:
    /// of schemas one may say what the first does not.
    pub fn difference(&self, of: &BudgetTerms) -> Option<String> {
        self.0.iter().find_map(|held| of.difference(&held.entry.of))
    }

    pub fn share_of(&self, holder: &ShareHolder) -> Option<&ActiveShare> {
        self.0.iter().find(|held| held.entry.holder == *holder)
    }

    /// The last share that `owner` took.
    pub fn newest_of(&self, owner: &str) -> Option<&ActiveShare> {
        self.0
            .iter()
            .filter(|held| held.entry.holder.owner == owner)
            .max_by_key(|held| held.entry.holder.generation)
    }

    /// Fraction that is left of the block that starts at `time`.
    fn left_at(&self, time: Timestamp) -> Fraction {
        let mut left = Fraction::ALL;
        for held in self.0.iter().filter(|held| held.covers(time)) {
            // Whatever holds was accepted within the whole.
            left = left.checked_sub(held.entry.share).unwrap_or(Fraction::ZERO);
        }
        left
    }

    /// Fraction that is left of every block from `time` on, which a new share may take.
    pub fn left_from(&self, time: Timestamp) -> Fraction {
        let mut left = self.left_at(time);
        for held in &self.0 {
            if held.entry.from > time {
                left = left.min(self.left_at(held.entry.from));
            }
        }
        left
    }

    /// Fractions that a new share may take from `time` on, and from later blocks on.
    pub fn left_over_time(&self, time: Timestamp) -> Vec<(Timestamp, Fraction)> {
        let mut times: Vec<Timestamp> = self
            .0
            .iter()
            .filter_map(|held| held.until)
            .filter(|end| *end > time)
            .collect();
        times.push(time);
        times.sort_unstable();
        let mut left: Vec<(Timestamp, Fraction)> = times
            .into_iter()
            .map(|time| (time, self.left_from(time)))
            .collect();
        left.dedup_by_key(|(_, left)| *left);
        left
    }

    /// The first block from `time` on where `share` fits.
    pub fn first_fit(&self, share: Fraction, time: Timestamp) -> Option<Timestamp> {
        self.left_over_time(time)
            .into_iter()
            .find(|(_, left)| share <= *left)
            .map(|(from, _)| from)
    }
}
