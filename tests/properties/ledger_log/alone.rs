//! What one worker does alone from some state on, when nothing fails any more.

use super::faults::{lose_disk, start};
use super::setup::{Faults, Setup};
use super::state::{NONE, Set, State, UNREAD, bit};
use super::topics;
use super::worker::{self, Arrival, Step, Violation};

/// Checks that a worker that runs on alone publishes every window, and that another one with an empty disk can then take its place.
///
/// # Errors
///
/// What it does not do.
pub fn check(state: &State, worker: usize, setup: &Setup) -> Result<(), Violation> {
    if worker >= usize::from(setup.workers)
        || (state.witness_has_lost && !setup.compares)
        || (state.log_has_lost && !has_all(state, worker, setup))
    {
        return Ok(());
    }
    let mut state = *state;
    state.workers[1 - worker].process = None;
    if has_stopped(&state, worker) {
        state.workers[worker].process = None;
    }
    // Messages in flight expire.
    state.late_messages = 0;
    let must_end = state.is_one_chain(known(&state, worker, setup));
    let setup = &Setup {
        draws: u8::MAX,
        ..*setup
    };
    state.faults = Faults {
        checkpoints: 9,
        ..Faults::default()
    };
    let settled = run(&state, worker, setup)?;
    if has_stopped(&settled, worker) {
        return match must_end {
            true => Err(format!(
                "worker {worker} alone stops, though nothing contradicts the witness"
            )),
            false => Ok(()),
        };
    }
    let windows = (1 << setup.windows) - 1;
    if settled.published() != windows {
        let missing = worker::missing(&settled, setup);
        return Err(format!(
            "worker {worker} alone never publishes window {missing}"
        ));
    }
    let mut replaced = settled;
    replaced.workers[worker].process = None;
    lose_disk(&mut replaced, worker);
    let replaced = run(&replaced, worker, setup)?;
    if has_stopped(&replaced, worker) && !must_end {
        return Ok(());
    }
    let head = topics::accepted(&replaced, setup);
    match replaced.workers[worker].disk.ledger {
        Some(ledger) if ledger.head == head && ledger.account == replaced.chain(head) => Ok(()),
        _ => Err(format!(
            "worker {worker} ran alone, lost its disk, and cannot go on"
        )),
    }
}

/// What was published, what is accepted, and what the worker remembers.
fn known(state: &State, worker: usize, setup: &Setup) -> Set {
    let place = state.workers[worker].disk.place;
    let lost = state.workers[worker].disk.lost.map_or(0, bit);
    let remembered = lost | place.map_or(0, |place| bit(place.claim.head));
    state.sink | state.chain(topics::accepted(state, setup)) | remembered
}

fn has_stopped(state: &State, worker: usize) -> bool {
    state.workers[worker]
        .process
        .is_some_and(|process| process.stopped)
}

/// Whether the bodies of the accepted chain are in the log or on the worker's disk.
fn has_all(state: &State, worker: usize, setup: &Setup) -> bool {
    let head = topics::accepted(state, setup);
    let ledger = state.workers[worker].disk.ledger;
    if head == NONE || ledger.is_some_and(|ledger| ledger.account & bit(head) != 0) {
        return true;
    }
    let bytes = ledger.map_or(0, |ledger| ledger.bytes);
    topics::walk(state, head, topics::whole(state, setup) | bytes, setup).is_ok()
}

/// Repeats the worker's steps until nothing changes.
fn run(state: &State, worker: usize, setup: &Setup) -> Result<State, Violation> {
    let mut state = *state;
    for _ in 0..200 {
        let is_down = state.workers[worker]
            .process
            .is_none_or(|process| process.stopped);
        if setup.compares && has_stopped(&state, worker) {
            return Ok(state);
        }
        if is_down {
            state.workers[worker].process = None;
            start(&mut state, worker, setup);
        }
        match next(&state, worker, setup)? {
            Some(after) => state = after,
            None => return Ok(state),
        }
        state.tidy();
    }
    Err(format!("worker {worker} alone never comes to rest"))
}

fn next(state: &State, worker: usize, setup: &Setup) -> Result<Option<State>, Violation> {
    let rank = |step: &Step| match step {
        Step::ReadWitness(_) => Some(0),
        Step::ReadLog => Some(1),
        Step::Compare => Some(2),
        Step::Publish(_, Arrival::Now) => Some(3),
        Step::Mark(_, true) => Some(4),
        Step::Discard => Some(5),
        Step::Append(_, Arrival::Now) => Some(6),
        Step::Restore => Some(7),
        Step::GiveUp => Some(8),
        Step::Checkpoint(Arrival::Now) if needs_checkpoint(state, worker, setup) => Some(9),
        Step::Draft if needs_checkpoint(state, worker, setup) => Some(10),
        Step::Claim(Arrival::Now) => Some(11),
        Step::Pay => Some(12),
        _ => None,
    };
    let mut steps: Vec<_> = worker::steps(state, worker)
        .filter_map(|step| Some((rank(&step)?, step)))
        .collect();
    steps.sort_by_key(|(rank, _)| *rank);
    steps
        .into_iter()
        .find_map(|(_, step)| worker::after(state, worker, step, setup))
        .transpose()
}

/// Whether the log lacks what neither the worker nor it has.
fn needs_checkpoint(state: &State, worker: usize, setup: &Setup) -> bool {
    let (Some(process), Some(ledger)) = (
        state.workers[worker].process,
        state.workers[worker].disk.ledger,
    ) else {
        return false;
    };
    let is_known = process.view < UNREAD && ledger.account & bit(process.view) != 0;
    let bodies: Set = process.seen | ledger.bytes;
    is_known && topics::walk(state, ledger.head, bodies, setup).is_err()
}
