//! Breadth first through all states that a setup can reach.

use std::collections::HashSet;
use std::fmt;
use std::hash::{Hash, Hasher};

use super::alone;
use super::faults::{self, Fault};
use super::setup::{Clause, Setup};
use super::state::{State, Worker};
use super::worker::{self, Step, Violation};

/// What was found.
#[derive(Debug)]
pub struct Report {
    /// How many states there are, or were looked at.
    pub states: usize,
    /// The bound was reached before all of them were.
    pub is_cut: bool,
    pub violation: Option<Trace>,
}

/// The steps to a violation, and what it is.
#[derive(Debug)]
pub struct Trace {
    pub events: Vec<Event>,
    pub violation: Violation,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    Step(usize, Step),
    Fault(Fault),
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for event in &self.events {
            match event {
                Event::Step(worker, step) => writeln!(f, "  worker {worker}: {step:?}")?,
                Event::Fault(fault) => writeln!(f, "  {fault:?}")?,
            }
        }
        write!(f, "  => {}", self.violation)
    }
}

fn after(state: &State, event: Event, setup: &Setup) -> Option<Result<State, Violation>> {
    let next = match event {
        Event::Step(worker, step) => worker::after(state, worker, step, setup),
        Event::Fault(fault) => faults::after(state, fault, setup),
    }?;
    Some(next.map(|mut next| {
        next.tidy();
        next
    }))
}

/// Explores up to `bound` states, and stops at the first violation.
pub fn explore(setup: &Setup, bound: usize) -> Report {
    let has_mirror = !setup.settings && setup.holds(Clause::Unmarked);
    let name = |state: &State| match has_mirror {
        true => hash(state).min(hash(&state.mirrored())),
        false => hash(state),
    };
    let first = State::new(setup);
    let mut known = HashSet::from([name(&first)]);
    let mut paths: Vec<(u32, Option<Event>)> = vec![(0, None)];
    let mut checked = HashSet::new();
    let mut wave = vec![(0_u32, first)];
    while !wave.is_empty() {
        let mut coming = Vec::new();
        for (at, state) in wave {
            for worker in [0, 1] {
                if checked.insert(hash(&alone_of(&state, worker)))
                    && let Err(violation) = alone::check(&state, worker, setup)
                {
                    return found(&paths, at, None, violation);
                }
            }
            let steps = [0, 1].into_iter().flat_map(|worker| {
                worker::steps(&state, worker).map(move |step| Event::Step(worker, step))
            });
            for event in steps.chain(faults::faults(&state).map(Event::Fault)) {
                match after(&state, event, setup) {
                    None => {}
                    Some(Err(violation)) => return found(&paths, at, Some(event), violation),
                    Some(Ok(next)) => {
                        if next.witness.items().len() > usize::from(setup.claims)
                            || !known.insert(name(&next))
                        {
                            continue;
                        }
                        if paths.len() >= bound {
                            return Report {
                                states: paths.len(),
                                is_cut: true,
                                violation: None,
                            };
                        }
                        coming.push((paths.len() as u32, next));
                        paths.push((at, Some(event)));
                    }
                }
            }
        }
        wave = coming;
    }
    Report {
        states: paths.len(),
        is_cut: false,
        violation: None,
    }
}

/// What the future of a worker that is alone depends on.
fn alone_of(state: &State, worker: usize) -> State {
    let mut alone = *state;
    alone.workers[1 - worker] = Worker::default();
    (alone.faults, alone.aside) = (Default::default(), None);
    alone.late_bodies = super::state::List::new();
    alone.late_messages = 0;
    alone.late_claims = super::state::List::new();
    if worker == 1 { alone.mirrored() } else { alone }
}

fn found(
    paths: &[(u32, Option<Event>)],
    at: u32,
    last: Option<Event>,
    violation: Violation,
) -> Report {
    let mut events: Vec<_> = last.into_iter().collect();
    let mut at = at;
    while let (before, Some(event)) = paths[at as usize] {
        events.push(event);
        at = before;
    }
    events.reverse();
    Report {
        states: paths.len(),
        is_cut: false,
        violation: Some(Trace { events, violation }),
    }
}

/// 128 bits that stand for a state: of some million states, two share them with a chance of 1e-25.
fn hash(state: &State) -> (u64, u64) {
    let mut lanes = Lanes(0x9e37_79b9_7f4a_7c15, 0xc2b2_ae3d_27d4_eb4f);
    state.hash(&mut lanes);
    let mixed = |lane: u64| {
        let lane = (lane ^ (lane >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        lane ^ (lane >> 32)
    };
    (mixed(lanes.0), mixed(lanes.1))
}

/// A hash that is fast for many small numbers.
struct Lanes(u64, u64);

impl Lanes {
    fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
        self.1 = (self.1.rotate_left(23) ^ word).wrapping_mul(0x9fb2_1c65_1e98_df25);
    }
}

impl Hasher for Lanes {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            self.add(
                chunk
                    .iter()
                    .fold(0, |word, &byte| word << 8 | u64::from(byte)),
            );
        }
    }

    fn write_u8(&mut self, byte: u8) {
        self.add(byte.into());
    }

    fn write_u32(&mut self, word: u32) {
        self.add(word.into());
    }

    fn write_u64(&mut self, word: u64) {
        self.add(word);
    }
}
