//! What is read in the two topics.

use super::setup::{Clause, Setup};
use super::state::{Checkpoint, Claim, List, NONE, Place, Set, State, bit};

/// What a worker finds in the witness.
pub enum Read {
    /// The accepted record, and the remembered place of it.
    Accepted(Option<Place>),
    /// Fewer records than were read before.
    Shorter,
    /// Another record at the remembered place.
    Differs,
}

/// The accepted record of a witness, from the remembered place on.
pub fn read(claims: &[Claim], remembered: Option<Place>, setup: &Setup) -> Read {
    let Some(place) = remembered else {
        return Read::Accepted(fold(claims, 0, None, setup));
    };
    let Some(found) = claims.get(usize::from(place.offset)) else {
        return match setup.holds(Clause::Shorter) {
            true => Read::Shorter,
            false => Read::Accepted(fold(claims, 0, None, setup)),
        };
    };
    let is_same = match setup.holds(Clause::WholeRecord) {
        true => *found == place.claim,
        false => found.head == place.claim.head,
    };
    match is_same {
        true => Read::Accepted(fold(
            claims,
            usize::from(place.offset) + 1,
            Some(place),
            setup,
        )),
        false => Read::Differs,
    }
}

pub fn fold(claims: &[Claim], start: usize, known: Option<Place>, setup: &Setup) -> Option<Place> {
    claims
        .iter()
        .enumerate()
        .skip(start)
        .fold(known, |accepted, (offset, &claim)| {
            let head = accepted.map_or(NONE, |place| place.claim.head);
            let follows = claim.previous == head || !setup.holds(Clause::NamesHead);
            match follows && State::length(claim.head) > State::length(head) {
                true => Some(Place {
                    offset: offset as u8,
                    claim,
                }),
                false => accepted,
            }
        })
}

/// The accepted head of all that the witness has.
pub fn accepted(state: &State, setup: &Setup) -> u8 {
    fold(state.witness.items(), 0, None, setup).map_or(NONE, |place| place.claim.head)
}

/// The bodies that are whole in the log.
pub fn whole(state: &State, setup: &Setup) -> Set {
    let pieces = state.log.items();
    if setup.parts == 1 {
        return pieces
            .iter()
            .fold(0, |bodies, piece| bodies | bit(piece / 2));
    }
    if !setup.holds(Clause::Pieces) {
        let pairs = pieces
            .windows(2)
            .filter(|pair| pair[0] % 2 == 0 && pair[1] == pair[0] + 1);
        return pairs.fold(0, |bodies, pair| bodies | bit(pair[0] / 2));
    }
    let part = |part| {
        pieces
            .iter()
            .filter(move |piece| *piece % 2 == part)
            .fold(0, |set, piece| set | bit(piece / 2))
    };
    part(0) & part(1)
}

/// Puts a piece into the log. Where its order is of no consequence it is a sorted set.
pub fn put<const N: usize>(log: &mut List<u8, N>, piece: u8, setup: &Setup) -> bool {
    if !setup.ordered && log.items().contains(&piece) {
        return true;
    }
    if log.is_full() {
        return false;
    }
    log.push(piece);
    if !setup.ordered {
        log.sort();
    }
    true
}

/// What can be restored, or claimed: the rows behind a checkpoint up to `head` and that checkpoint, if all of them are among
/// `bodies`.
pub struct Restored {
    pub checkpoint: Option<(u8, Checkpoint)>,
    pub rows: Set,
}

/// Whether the noise of a ledger up to `head` can be found if it is built from a checkpoint: what was replaced when that was written is in
/// the body of the row that replaced it.
pub fn has_noise(state: &State, checkpoint: &Checkpoint, head: u8) -> bool {
    state.chain(head) & bit(checkpoint.from) != 0
}

/// Walks from `head` back to the first whole checkpoint of its chain or the first row. The error holds the rows on the way that
/// are among `bodies`, and whether they are all that is needed is no.
pub fn walk(state: &State, head: u8, bodies: Set, setup: &Setup) -> Result<Restored, Set> {
    let chain = state.chain(head);
    let is_whole = |checkpoint: &Checkpoint| {
        !setup.holds(Clause::Replaced) || has_noise(state, checkpoint, head)
    };
    if !setup.holds(Clause::ChainTest) {
        // Any checkpoint that is not behind the head will do.
        for body in (0..32).rev().filter(|&body| bodies & bit(body) != 0) {
            if let Some(checkpoint) = state.checkpoint(body)
                && State::length(checkpoint.row) <= State::length(head)
            {
                let rows = super::state::each(chain)
                    .filter(|&row| State::length(row) > State::length(checkpoint.row))
                    .fold(0, |rows, row| rows | bit(row));
                if rows & !bodies == 0 {
                    return Ok(Restored {
                        checkpoint: Some((body, checkpoint)),
                        rows,
                    });
                }
            }
        }
    }
    let mut rows = 0;
    let mut row = head;
    while row != NONE {
        let is_usable = |checkpoint: &Checkpoint| {
            checkpoint.row == row
                && is_whole(checkpoint)
                && (checkpoint.account == state.chain(row) || !setup.holds(Clause::OneSnapshot))
        };
        let bodies_of_checkpoints =
            super::state::each(bodies).filter_map(|body| Some((body, state.checkpoint(body)?)));
        let mut usable = bodies_of_checkpoints.filter(|(_, checkpoint)| is_usable(checkpoint));
        if let Some(found) = usable.next() {
            return Ok(Restored {
                checkpoint: Some(found),
                rows,
            });
        }
        if bodies & bit(row) == 0 {
            return Err(chain & bodies);
        }
        rows |= bit(row);
        row = state.row(row).parent;
    }
    Ok(Restored {
        checkpoint: None,
        rows,
    })
}
