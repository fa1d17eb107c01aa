//! How a pipeline comes to its share before it has a ledger. Pure: whoever reads and writes the topic repeats it until it holds.

use super::entry::{BlockGrid, Entry, Holder, Shared};
use super::error::Error;
use super::fold::Shares;
use bernstream_synopsis::Fraction;
use bernstream_synopsis::clock::Timestamp;

/// The share that a pipeline asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The budget topic, for messages.
    pub topic: String,
    /// The id of its witness.
    pub owner: String,
    pub pipeline: String,
    pub share: Fraction,
    pub of: Shared,
    /// The start of the first block that its ledger would charge.
    pub from: Timestamp,
    /// Whether it may begin later: history may not.
    pub may_wait: bool,
    /// Whether its witness has accepted anything: only then can an earlier ledger have decided an end that is still on its way.
    pub was_claimed: bool,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "there is one")]
pub enum Next {
    /// It holds: the ledger may begin with the block that starts at `from`.
    Begin { holder: Holder, from: Timestamp },
    /// To be written, and read back: it may be void by then.
    Write(Entry),
}

/// What a pipeline that has no ledger does next, once the whole topic was read.
///
/// A share of the same pipeline that has not ended is continued, if no ledger of it was ever accepted, or if its entry is `ours`,
/// just written. Otherwise its ledger was lost or is replaced, and the same share is taken over by the next generation: an end that
/// the earlier ledger has decided, and that comes late, then ends nothing. One that has ended is followed by another, from a block
/// after its end.
///
/// # Errors
///
/// If the budget is of another kind, if the pipeline holds another share, or if too little is left.
pub fn next(shares: &Shares, wanted: &Wanted, ours: Option<&Holder>) -> Result<Next, Error> {
    let name = || wanted.topic.clone();
    if let Some(what) = shares.difference(&wanted.of) {
        return Err(Error::OtherBudget { name: name(), what });
    }
    let own = shares.newest_of(&wanted.owner);
    let write = |generation, from| {
        let holder = Holder {
            owner: wanted.owner.clone(),
            generation,
        };
        let Wanted {
            pipeline,
            share,
            of,
            ..
        } = wanted.clone();
        Ok(Next::Write(Entry {
            holder,
            pipeline,
            share,
            from,
            of,
        }))
    };
    let (generation, earliest) = match own.map(|held| (held, held.until)) {
        None => (0, wanted.from),
        Some((held, Some(until))) => (
            held.entry.holder.generation.saturating_add(1),
            wanted.from.max(until),
        ),
        Some((held, None)) => {
            let Entry {
                holder,
                share,
                from,
                ..
            } = &held.entry;
            if *share != wanted.share {
                return Err(Error::OtherShare {
                    name: name(),
                    held: *share,
                    asked: wanted.share,
                });
            }
            let from = wanted.from.max(*from);
            if from > wanted.from && !wanted.may_wait {
                return Err(Error::Later {
                    name: name(),
                    share: *share,
                    asked: wanted.from,
                    from,
                });
            }
            if wanted.was_claimed && ours != Some(holder) {
                return write(holder.generation.saturating_add(1), from);
            }
            return Ok(Next::Begin {
                holder: holder.clone(),
                from,
            });
        }
    };
    let Some(from) = shares.first_fit(wanted.share, earliest) else {
        return Err(full(wanted, shares, earliest));
    };
    if from > wanted.from && !wanted.may_wait {
        return Err(Error::Later {
            name: name(),
            share: wanted.share,
            asked: wanted.from,
            from,
        });
    }
    write(generation, from)
}

/// What is left, from when on, and who holds the rest.
fn full(wanted: &Wanted, shares: &Shares, from: Timestamp) -> Error {
    let blocks = wanted.of.blocks;
    let over_time = shares.left_over_time(from).into_iter();
    let left: Vec<String> = over_time
        .map(|(from, left)| format!("{left} is left{}", blocks.since(from)))
        .collect();
    let holders = shares
        .held()
        .iter()
        .filter(|held| held.until.is_none_or(|until| until > from))
        .map(|held| {
            let Entry {
                pipeline,
                share,
                from,
                ..
            } = &held.entry;
            match (blocks, held.until) {
                (BlockGrid::Ever, _) => format!("{pipeline} ({share})"),
                (_, Some(until)) => format!("{pipeline} ({share} from {from} until {until})"),
                (_, None) => format!("{pipeline} ({share} from {from})"),
            }
        });
    Error::Full {
        name: wanted.topic.clone(),
        asked: wanted.share,
        left: left.join(", "),
        holders: holders.collect::<Vec<_>>().join(", "),
    }
}
