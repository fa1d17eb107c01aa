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
    if state.witness_has_lost || (state.log_has_lost && !has_all(state, worker, setup)) {
        return Ok(());
    }
    let mut state = *state;
    state.workers[1 - worker].process = None;
    let setup = &Setup { draws: u8::MAX, ..*setup };
    state.faults = Faults { checkpoints: 9, ..Faults::default() };
    let settled = run(&state, worker, setup)?;
    let windows = (1 << setup.windows) - 1;
    if settled.published() != windows {
        let missing = worker::missing(&settled, setup);
        return Err(format!("worker {worker} alone never publishes window {missing}"));
    }
    let mut replaced = settled;
    replaced.workers[worker].process = None;
    lose_disk(&mut replaced, worker);
    let replaced = run(&replaced, worker, setup)?;
    let head = topics::accepted(&replaced, setup);
    match replaced.workers[worker].disk.ledger {
        Some(ledger) if ledger.head == head && ledger.account == replaced.chain(head) => Ok(()),
        _ => Err(format!("worker {worker} ran alone, lost its disk, and cannot go on")),
    }
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
        let is_down = state.workers[worker].process.is_none_or(|process| process.stopped);
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
        Step::Publish(_) => Some(2),
        Step::Mark(_, true) => Some(3),
        Step::Discard => Some(4),
        Step::Append(_, Arrival::Now) => Some(5),
        Step::Restore => Some(6),
        Step::GiveUp => Some(7),
        Step::Checkpoint(Arrival::Now) if needs_checkpoint(state, worker, setup) => Some(8),
        Step::Draft if needs_checkpoint(state, worker, setup) => Some(9),
        Step::Claim(Arrival::Now) => Some(10),
        Step::Pay => Some(11),
        _ => None,
    };
    let mut steps: Vec<_> = worker::steps(state, worker).filter_map(|step| Some((rank(&step)?, step))).collect();
    steps.sort_by_key(|(rank, _)| *rank);
    steps.into_iter().find_map(|(_, step)| worker::after(state, worker, step, setup)).transpose()
}

/// Whether the log lacks what neither the worker nor it has.
fn needs_checkpoint(state: &State, worker: usize, setup: &Setup) -> bool {
    let (Some(process), Some(ledger)) = (state.workers[worker].process, state.workers[worker].disk.ledger) else {
        return false;
    };
    let is_known = process.view < UNREAD && ledger.account & bit(process.view) != 0;
    let bodies: Set = process.seen | ledger.bytes;
    is_known && topics::walk(state, ledger.head, bodies, setup).is_err()
}
