//! The way of a pipeline to its share before it has a ledger. Pure: whoever reads and writes the topic repeats it until it holds.

use super::entry::{BlockGrid, BudgetEntry, BudgetTerms, ShareHolder};
use super::error::BudgetError;
use super::fold::BudgetShares;
use bernstream_synopsis::Fraction;
use bernstream_synopsis::clock::Timestamp;

/// The share that a pipeline asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedShare {
    /// The budget topic, for messages.
    pub topic: String,
    /// The id of its witness.
    pub owner: String,
    pub pipeline: String,
    pub share: Fraction,
    pub of: BudgetTerms,
    /// The start of the first block that its ledger would charge.
    pub from: Timestamp,
    /// True if it may begin later: history may not.
    pub may_wait: bool,
    /// True if its witness has accepted anything: only then can an earlier ledger have decided an end that is still on its way.
    pub was_claimed: bool,
}

/// Next step of a pipeline.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "there is one")]
pub enum JoinStep {
    /// It holds: the ledger may begin with the block that starts at `from`.
    Begin {
        holder: ShareHolder,
        from: Timestamp,
    },
    /// To be written, and read back: it may be void by then.
    Write(BudgetEntry),
}

/// Decides the next step of a pipeline that has no ledger, once the whole topic was read.
///
/// A share of the same pipeline that has not ended is continued, if no ledger of it was ever accepted, or if its entry is `ours`,
/// just written. Otherwise its ledger was lost or is replaced, and the same share is taken over by the next generation: an end that
/// the earlier ledger has decided, and that comes late, then ends nothing. One that has ended is followed by another, from a block
/// after its end.
///
/// # Errors
///
/// If the budget is of another kind, if the pipeline holds another share, or if too little is left.
pub fn next_step(
    shares: &BudgetShares,
    wanted: &WantedShare,
    ours: Option<&ShareHolder>,
) -> Result<JoinStep, BudgetError> {
    let name = &wanted.topic;
    if let Some(what) = shares.difference(&wanted.of) {
        return Err(BudgetError::OtherBudget {
            name: name.clone(),
            what,
        });
    }
    let mut generation = 0;
    let mut earliest = wanted.from;
    if let Some(held) = shares.newest_of(&wanted.owner) {
        let BudgetEntry {
            holder,
            share,
            from,
            ..
        } = &held.entry;
        generation = holder.generation.saturating_add(1);
        let Some(until) = held.until else {
            if *share != wanted.share {
                return Err(BudgetError::OtherShare {
                    name: name.clone(),
                    held: *share,
                    asked: wanted.share,
                });
            }
            let from = wanted.from.max(*from);
            check_start(wanted, from)?;
            if wanted.was_claimed && ours != Some(holder) {
                return Ok(JoinStep::Write(wanted.entry(generation, from)));
            }
            return Ok(JoinStep::Begin {
                holder: holder.clone(),
                from,
            });
        };
        earliest = wanted.from.max(until);
    }
    let Some(from) = shares.first_fit(wanted.share, earliest) else {
        return Err(full_error(wanted, shares, earliest));
    };
    check_start(wanted, from)?;
    Ok(JoinStep::Write(wanted.entry(generation, from)))
}

/// Checks that the share may begin at `from`.
fn check_start(wanted: &WantedShare, from: Timestamp) -> Result<(), BudgetError> {
    if from > wanted.from && !wanted.may_wait {
        return Err(BudgetError::Later {
            name: wanted.topic.clone(),
            share: wanted.share,
            asked: wanted.from,
            from,
        });
    }
    Ok(())
}

impl WantedShare {
    /// The entry that takes the share from `from` on.
    fn entry(&self, generation: u64, from: Timestamp) -> BudgetEntry {
        BudgetEntry {
            holder: ShareHolder {
                owner: self.owner.clone(),
                generation,
            },
            pipeline: self.pipeline.clone(),
            share: self.share,
            from,
            of: self.of.clone(),
        }
    }
}

/// Error that says what is left, from when on, and who holds the rest.
fn full_error(wanted: &WantedShare, shares: &BudgetShares, from: Timestamp) -> BudgetError {
    let blocks = wanted.of.blocks;
    let mut left = Vec::new();
    for (from, share) in shares.left_over_time(from) {
        left.push(format!("{share} is left{}", blocks.words_since(from)));
    }
    let mut holders = Vec::new();
    for held in shares.held_shares() {
        if held.until.is_some_and(|until| until <= from) {
            continue;
        }
        let BudgetEntry {
            pipeline,
            share,
            from,
            ..
        } = &held.entry;
        holders.push(match held.until {
            _ if blocks == BlockGrid::Ever => format!("{pipeline} ({share})"),
            Some(until) => format!("{pipeline} ({share} from {from} until {until})"),
            None => format!("{pipeline} ({share} from {from})"),
        });
    }
    BudgetError::Full {
        name: wanted.topic.clone(),
        asked: wanted.share,
        left: left.join(", "),
        holders: holders.join(", "),
    }
}
