//! What happens to the workers: crashes, disks, and topics.

use super::setup::{Clause, Setup};
use super::state::{Claim, Disk, Process, State, UNREAD, bit, each};
use super::topics;
use super::worker::{self, Violation, put_claim};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    Crash(usize),
    Start(usize),
    LoseDisk(usize),
    /// The disk is copied aside.
    Copy(usize),
    /// The copy is put in the place of the disk.
    PutBack(usize),
    /// A late piece arrives in the log.
    BodyArrives(usize),
    /// A late claim arrives at the witness: once, or once now and once more later.
    ClaimArrives(usize, bool),
    /// The log loses a body.
    LoseBody(u8),
    /// The witness loses its records from this one on.
    Election(u8),
    /// The witness loses its records from this one on, published or not.
    LoseClaims(u8),
    /// The output loses a message.
    LoseMessage(u8),
    /// A late message arrives in the output, or never will.
    MessageArrives(u8, bool),
    /// Something that is no claim is appended to the witness.
    StrayRecord,
    /// The log loses everything, because it is old; only without [`Clause::NoExpiry`].
    Expiry,
}

pub fn faults(state: &State) -> impl Iterator<Item = Fault> {
    let workers = [0, 1].into_iter();
    let of_workers = workers.flat_map(|worker| {
        [
            Fault::Crash(worker),
            Fault::Start(worker),
            Fault::LoseDisk(worker),
            Fault::Copy(worker),
            Fault::PutBack(worker),
        ]
    });
    let bodies = (0..state.late_bodies.items().len()).map(Fault::BodyArrives);
    let claims = (0..state.late_claims.items().len())
        .flat_map(|place| [false, true].map(|twice| Fault::ClaimArrives(place, twice)));
    let lost = (0..32).map(Fault::LoseBody);
    let elections = (0..state.witness.items().len() as u8).map(Fault::Election);
    let losses = (0..state.witness.items().len() as u8).map(Fault::LoseClaims);
    let messages = each(state.sink & !state.lost_messages).map(Fault::LoseMessage);
    let late = each(state.late_messages)
        .flat_map(|row| [true, false].map(|comes| Fault::MessageArrives(row, comes)));
    let of_topics = losses
        .chain(messages)
        .chain(late)
        .chain([Fault::StrayRecord]);
    let of_topics = of_topics
        .chain(bodies)
        .chain(claims)
        .chain(lost)
        .chain(elections)
        .chain([Fault::Expiry]);
    of_workers.chain(of_topics)
}

/// The state after a fault; `None` if it cannot happen.
pub fn after(state: &State, fault: Fault, setup: &Setup) -> Option<Result<State, Violation>> {
    let mut next = *state;
    match fault {
        Fault::Crash(worker) => {
            next.faults.crashes = next.faults.crashes.checked_sub(1)?;
            next.workers[worker].process.take()?;
        }
        Fault::Start(worker) => {
            if state.workers[worker].process.is_some() || worker >= usize::from(setup.workers) {
                return None;
            }
            start(&mut next, worker, setup);
        }
        Fault::LoseDisk(worker) => {
            next.faults.lost_disks = next.faults.lost_disks.checked_sub(1)?;
            lose_disk(&mut next, worker)?;
        }
        Fault::Copy(worker) => {
            if state.aside.is_some() || state.faults.copies == 0 {
                return None;
            }
            next.aside = Some(state.workers[worker].disk);
        }
        Fault::PutBack(worker) => {
            if state.workers[worker].process.is_some() {
                return None;
            }
            next.faults.copies = next.faults.copies.checked_sub(1)?;
            next.workers[worker].disk = next.aside.take()?;
        }
        Fault::BodyArrives(place) => {
            let piece = next.late_bodies.remove(place);
            if !topics::put(&mut next.log, piece, setup) {
                return None;
            }
        }
        Fault::ClaimArrives(place, twice) => {
            let claim = next.late_claims.items()[place];
            if twice {
                next.faults.doubled_claims = next.faults.doubled_claims.checked_sub(1)?;
            } else {
                next.late_claims.remove(place);
            }
            if let Err(violation) = put_claim(&mut next, claim, setup)? {
                return Some(Err(violation));
            }
        }
        Fault::LoseBody(body) => {
            next.faults.lost_bodies = next.faults.lost_bodies.checked_sub(1)?;
            while let Some(place) = next.log.items().iter().position(|piece| piece / 2 == body) {
                next.log.remove(place);
            }
            if next.log == state.log {
                return None;
            }
            next.log_has_lost = true;
        }
        Fault::Election(length) => elect(&mut next, length, setup)?,
        Fault::LoseClaims(length) => lose_claims(&mut next, length, setup)?,
        Fault::LoseMessage(row) => {
            next.faults.lost_messages = next.faults.lost_messages.checked_sub(1)?;
            next.lost_messages |= bit(row);
            is_evident(&next, setup).then_some(())?;
        }
        Fault::MessageArrives(row, comes) => {
            next.late_messages &= !bit(row);
            if comes && let Err(violation) = worker::arrive(&mut next, row) {
                return Some(Err(violation));
            }
        }
        Fault::StrayRecord => {
            next.faults.stray_records = next.faults.stray_records.checked_sub(1)?;
            if next.witness.is_full() {
                return None;
            }
            next.witness.push(Claim::STRAY);
        }
        Fault::Expiry => {
            if setup.holds(Clause::NoExpiry)
                || state.workers.iter().any(|worker| worker.process.is_some())
            {
                return None;
            }
            (0..state.log.items().len()).for_each(|_| _ = next.log.remove(0));
        }
    }
    Some(Ok(next))
}

pub fn start(state: &mut State, worker: usize, setup: &Setup) {
    let worker = &mut state.workers[worker];
    worker.process = Some(Process::new(&worker.disk, setup));
    // Which process it is matters to claims and settings only.
    if setup.settings || !setup.holds(Clause::Unmarked) {
        worker.starts += 1;
    }
}

pub fn lose_disk(state: &mut State, worker: usize) -> Option<()> {
    let worker = &mut state.workers[worker];
    if worker.process.is_some() || worker.disk == Disk::default() {
        return None;
    }
    worker.disk = Disk::default();
    Some(())
}

/// All brokers of the witness lose power, or an unclean election: it loses its newest records.
fn lose_claims(state: &mut State, length: u8, setup: &Setup) -> Option<()> {
    state.faults.lost_claims = state.faults.lost_claims.checked_sub(1)?;
    while state.witness.items().len() > usize::from(length) {
        state.witness.remove(usize::from(length));
    }
    if setup.holds(Clause::TellsApart) {
        let disks = state
            .workers
            .iter_mut()
            .map(|worker| &mut worker.disk)
            .chain(&mut state.aside);
        let places = disks.filter_map(|disk| disk.place.as_mut());
        places
            .filter(|place| place.offset >= length)
            .for_each(|place| place.claim.maker = Claim::LOST);
    }
    state.witness_has_lost = true;
    is_evident(state, setup).then_some(())
}

/// Whether the output or a mark in the log shows each published row that the witness does not show. Of a worker that has no other beside it
/// the body in the log is enough. Everything else is the owner's word.
fn is_evident(state: &State, setup: &Setup) -> bool {
    let shown = match setup.workers {
        1 => state.evident() | topics::whole(state, setup),
        _ => state.evident(),
    };
    state.sink & !state.chain(topics::accepted(state, setup)) & !shown == 0
}

/// An unclean election of the witness. It is the owner's word where claims are lost whose rows are published, or about to be, by a
/// worker that has read them; unless every disk remembers one of them, and stays.
fn elect(state: &mut State, length: u8, setup: &Setup) -> Option<()> {
    state.faults.elections = state.faults.elections.checked_sub(1)?;
    let chain = |state: &State| state.chain(topics::accepted(state, setup));
    let before = chain(state);
    while state.witness.items().len() > usize::from(length) {
        state.witness.remove(usize::from(length));
    }
    let lost = before & !chain(state);
    let mut processes = state.workers.iter().filter_map(|worker| worker.process);
    if processes.any(|process| process.view < UNREAD && lost & bit(process.view) != 0) {
        return None;
    }
    if lost & state.sink != 0 {
        let mut disks = state
            .workers
            .iter()
            .map(|worker| worker.disk)
            .chain(state.aside);
        if !disks.all(|disk| disk.place.is_some_and(|place| place.offset >= length)) {
            return None;
        }
        (state.faults.lost_disks, state.faults.copies, state.aside) = (0, 0, None);
    }
    state.witness_has_lost = true;
    Some(())
}
