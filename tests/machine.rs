//! How much a record can change a machine or a logistic regression, against searches that try to change it more.

use bernstream::target::logistic::{Logistic, Score};
use bernstream::target::machine::{Kernel, Loss, Machine, Settings};
use bernstream::target::{Adjacency, Error, Target};
use bernstream::window::keep::{Record, State};
use rand::rngs::ChaCha20Rng;
use rand::{RngExt, SeedableRng};

const ADJACENCIES: [Adjacency; 2] = [Adjacency::AddRemove, Adjacency::ReplaceOne];

fn settings(kernel: Kernel, loss: Loss, c: f64) -> Settings {
    Settings { kernel, loss, c, records: 8, dimensions: 1, degree: 12, landmarks: None }
}

fn machine(settings: Settings) -> Machine {
    Machine::new(settings).unwrap()
}

/// A side of a neighbouring pair: places and labels.
type Side = Vec<(Vec<f64>, f64)>;

fn state(target: &dyn Target, side: &Side) -> State {
    target.keep().state(side.iter().map(|(x, label)| Record::new(x, *label)))
}

/// 1-norm and sup norm of the difference, over what is claimed.
fn change(target: &dyn Target, adjacency: Adjacency, one: &Side, other: &Side) -> [f64; 2] {
    let (one, other) = (target.evaluate(&state(target, one)), target.evaluate(&state(target, other)));
    let changes = || one.reveal().iter().zip(other.reveal()).map(|(a, b)| a.abs_diff(*b));
    let (sum, sup) = (changes().sum::<u128>(), changes().max().unwrap());
    let adjacency = if target.sensitivity(adjacency, 1).is_ok() { adjacency } else { Adjacency::ReplaceOne };
    [
        sum as f64 / target.sensitivity(adjacency, 1).unwrap().0 as f64,
        sup as f64 / target.sup_sensitivity(adjacency, 1).unwrap() as f64,
    ]
}

/// Windows of `m` records that share all but one, and what a window of `m` keeps when one more arrives: the searches
/// start from what the proofs say is worst, and move every record, label and multiplicity.
struct Search<'a> {
    target: &'a dyn Target,
    adjacency: Adjacency,
    dimensions: usize,
    /// `m`.
    records: usize,
    classes: bool,
}

impl Search<'_> {
    fn label(&self, rng: &mut ChaCha20Rng) -> f64 {
        if self.classes || rng.random_bool(0.7) {
            if rng.random_bool(0.5) { 1.0 } else { -1.0 }
        } else {
            rng.random_range(-1.0..=1.0)
        }
    }

    fn place(&self, rng: &mut ChaCha20Rng) -> Vec<f64> {
        match rng.random_range(0..3) {
            0 => (0..self.dimensions).map(|_| f64::from(rng.random_range(0..2_u32))).collect(),
            1 => vec![0.5; self.dimensions],
            _ => (0..self.dimensions).map(|_| rng.random()).collect(),
        }
    }

    /// The two that are exchanged first, then what both sides share.
    fn starts(&self, rng: &mut ChaCha20Rng) -> Vec<Side> {
        let lattice: Vec<Vec<f64>> = [0.0, 0.25, 0.5, 1.0].map(|x| vec![x; self.dimensions]).to_vec();
        let mut starts = Vec::new();
        for x in &lattice {
            for share in [0, 1, self.records - 1] {
                // Alone, or against records that all say the same.
                for label in [1.0, -1.0] {
                    let mut side = vec![(x.clone(), 1.0), (x.clone(), -1.0)];
                    side.extend((0..share).map(|_| (x.clone(), label)));
                    starts.push(side);
                }
            }
        }
        // Two camps on either side of where the record changes its own.
        for gap in [0.05, 0.2, 0.5] {
            let at = |x: f64| vec![x.clamp(0.0, 1.0); self.dimensions];
            let mut side = vec![(at(0.5 - gap / 2.0), 1.0), (at(0.5 + gap / 2.0), -1.0)];
            side.extend(
                (1..self.records).map(|i| if i % 2 == 0 { (at(0.5 - gap), -1.0) } else { (at(0.5 + gap), 1.0) }),
            );
            starts.push(side);
        }
        for _ in 0..30 {
            let share = rng.random_range(0..self.records);
            starts.push((0..share + 2).map(|_| (self.place(rng), self.label(rng))).collect());
        }
        starts
    }

    fn found(&self, both: &Side) -> [f64; 2] {
        let shared = &both[2..];
        let side = |one: usize| -> Side { std::iter::once(both[one].clone()).chain(shared.iter().cloned()).collect() };
        if self.adjacency == Adjacency::AddRemove {
            if both.len() < self.records + 1 {
                // The window is not full: there is one record more, or not.
                return change(self.target, self.adjacency, &side(0), &shared.to_vec());
            }
            // The window is full: the record that arrives first pushes the last one out.
        }
        change(self.target, self.adjacency, &side(0), &side(1))
    }

    fn worst(&self, rng: &mut ChaCha20Rng, rounds: i32) -> [f64; 2] {
        [0, 1].map(|norm| {
            let starts = self.starts(rng);
            let mut found: Vec<(f64, Side)> = starts.into_iter().map(|side| (self.found(&side)[norm], side)).collect();
            found.sort_by(|a, b| b.0.total_cmp(&a.0));
            found.truncate(2);
            for (best, both) in &mut found {
                for round in 0..rounds {
                    let step = 0.3 * 0.95_f64.powi(round);
                    let mut moved = both.clone();
                    let one = rng.random_range(0..moved.len());
                    for (index, (place, label)) in moved.iter_mut().enumerate() {
                        if index == one || rng.random_bool(0.3) {
                            place
                                .iter_mut()
                                .for_each(|x| *x = (*x + step * rng.random_range(-1.0..=1.0)).clamp(0.0, 1.0));
                            if rng.random_bool(0.1) {
                                *label = self.label(rng);
                            }
                        }
                    }
                    let change = self.found(&moved)[norm];
                    if change > *best {
                        (*best, *both) = (change, moved);
                    }
                }
            }
            found[0].0.max(found[1].0)
        })
    }
}

#[test]
fn print() {
    for (kernel, s) in [
        (Kernel::Gaussian { bandwidth: 0.1 }, 0),
        (Kernel::Gaussian { bandwidth: 1.0 }, 0),
        (Kernel::Laplacian { bandwidth: 0.3 }, 0),
        (Kernel::Polynomial { power: 3 }, 0),
        (Kernel::Linear, 0),
    ] {
        let _ = s;
        for loss in [Loss::Hinge, Loss::Logistic, Loss::Squared, Loss::Huber] {
            for c in [0.5, 3.0, 100.0] {
                let settings = settings(kernel, loss, c);
                let target = machine(settings);
                for adjacency in ADJACENCIES {
                    let mut rng = ChaCha20Rng::seed_from_u64(1);
                    let search = Search {
                        target: &target,
                        adjacency,
                        dimensions: settings.dimensions,
                        records: settings.records as usize,
                        classes: loss.classifies(),
                    };
                    let start = std::time::Instant::now();
                    let [sum, sup] = search.worst(&mut rng, 100);
                    println!(
                        "{kernel:?} {loss:?} {c} {adjacency:?}: {sum:.3} {sup:.3} {:?}, {} steps tol {:.1e} r ~{:.2e}",
                        start.elapsed(),
                        target.steps(),
                        target.tolerance(),
                        target.unit() * (1u64 << 32) as f64
                    );
                }
            }
        }
    }
}
