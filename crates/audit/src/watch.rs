//! Notes of a replay: exact values where noise meets them, claims and published bytes.

use std::sync::{Arc, Mutex, PoisonError};

use super::observed::{Evaluation, PublishedBytes};
use bernstream_kafka::sink;
use bernstream_kafka::sink::Sink;
use bernstream_ledger::Paid;
use bernstream_ledger::witness;
use bernstream_ledger::witness::{Witness, WitnessClaim, fold_claim};
use bernstream_noise::order::OrderChoice;
use bernstream_noise::{CandidateCounts, Exact};
use bernstream_release::builtin::Builtin;
use bernstream_release::choice::Bandwidth;
use bernstream_release::window::accumulator::{Accumulator, AccumulatorSpec};
use bernstream_release::{EvaluationCost, Target, TargetError};
use bernstream_synopsis::{Adjacency, Sensitivity, Shape};
use bernstream_worker::pipeline::{PlannedRelease, ReleasePlan, ReleaseVariant};

/// A list that several parts of a replay write to.
#[derive(Clone, Debug)]
pub(super) struct SharedNotes<T>(Arc<Mutex<Vec<T>>>);

impl<T> Default for SharedNotes<T> {
    fn default() -> Self {
        SharedNotes(Arc::default())
    }
}

impl<T> SharedNotes<T> {
    pub fn push(&self, note: T) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(note);
    }

    pub fn len(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Takes what was written so far.
    pub fn take(&self) -> Vec<T> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A target that can be released of a window and key, and the choice of its order.
#[derive(Debug)]
struct TargetVariant {
    target: Arc<dyn Target>,
    order: Option<OrderChoice>,
}

/// A target that writes down what it computes: for the variant that is released, and for every other that could have been.
#[derive(Debug)]
struct WatchedTarget {
    inner: Arc<dyn Target>,
    release: usize,
    variant: usize,
    variants: Arc<Vec<TargetVariant>>,
    bandwidth: Option<Bandwidth>,
    notes: SharedNotes<Evaluation>,
}

impl Builtin for WatchedTarget {}

impl Target for WatchedTarget {
    fn accumulator(&self) -> AccumulatorSpec {
        self.inner.accumulator()
    }

    fn shape(&self) -> Shape {
        self.inner.shape()
    }

    fn unit(&self) -> f64 {
        self.inner.unit()
    }

    fn evaluate(&self, accumulator: &Accumulator) -> Exact {
        let exact = self.inner.evaluate(accumulator);
        let mut values = Vec::new();
        let mut scores = Vec::new();
        for (index, variant) in self.variants.iter().enumerate() {
            let exact = if index == self.variant {
                exact.clone()
            } else {
                variant.target.evaluate(accumulator)
            };
            scores.push(variant.order.as_ref().map(|order| order.scores(&exact)));
            values.push(exact);
        }
        self.notes.push(Evaluation {
            release: self.release,
            variant: self.variant,
            scores,
            values,
            counts: self
                .bandwidth
                .as_ref()
                .map(|bandwidth| bandwidth.exact_counts(accumulator)),
            found: None,
        });
        exact
    }

    fn candidates(&self, accumulator: &Accumulator) -> Option<CandidateCounts> {
        let candidates = self.inner.candidates(accumulator)?;
        self.notes.push(Evaluation {
            release: self.release,
            variant: self.variant,
            values: Vec::new(),
            scores: Vec::new(),
            counts: None,
            found: accumulator.found_keys().cloned(),
        });
        Some(candidates)
    }

    fn is_sum(&self) -> bool {
        self.inner.is_sum()
    }

    fn adds_up(&self) -> bool {
        self.inner.adds_up()
    }

    fn cost(&self) -> EvaluationCost {
        self.inner.cost()
    }

    fn sensitivity(
        &self,
        adjacency: Adjacency,
        contributions: u32,
    ) -> Result<Sensitivity, TargetError> {
        self.inner.sensitivity(adjacency, contributions)
    }

    fn sup_sensitivity(
        &self,
        adjacency: Adjacency,
        contributions: u32,
    ) -> Result<u64, TargetError> {
        self.inner.sup_sensitivity(adjacency, contributions)
    }

    fn euclidean_sensitivity(
        &self,
        adjacency: Adjacency,
        contributions: u32,
    ) -> Result<u64, TargetError> {
        self.inner.euclidean_sensitivity(adjacency, contributions)
    }

    fn publish(&self, noisy: Vec<f64>) -> Vec<f64> {
        self.inner.publish(noisy)
    }

    fn effects(&self) -> Option<Vec<Vec<i128>>> {
        self.inner.effects()
    }

    fn papers_sensitivity(
        &self,
        adjacency: Adjacency,
        contributions: u32,
    ) -> Result<Sensitivity, TargetError> {
        self.inner.papers_sensitivity(adjacency, contributions)
    }
}

/// A copy of the plan whose targets write down what they compute.
pub(super) fn watched_plan(plan: &ReleasePlan, notes: &SharedNotes<Evaluation>) -> ReleasePlan {
    let mut releases = Vec::new();
    for (place, release) in plan.releases.iter().enumerate() {
        let variants = release.variants.iter().map(|variant| TargetVariant {
            target: variant.target.clone(),
            order: variant.order.clone(),
        });
        let variants = Arc::new(variants.collect::<Vec<_>>());
        let mut number = 0..;
        let watched = release.variants.try_map(|variant| {
            let target = WatchedTarget {
                inner: variant.target.clone(),
                release: place,
                variant: number.next().unwrap_or(0),
                variants: variants.clone(),
                bandwidth: release.bandwidth.clone(),
                notes: notes.clone(),
            };
            Ok::<_, std::convert::Infallible>(ReleaseVariant {
                target: Arc::new(target),
                ..variant.clone()
            })
        });
        let Ok(variants) = watched;
        releases.push(PlannedRelease {
            variants,
            ..release.clone()
        });
    }
    ReleasePlan {
        releases,
        ..plan.clone()
    }
}

/// A witness in memory.
#[derive(Default)]
pub(super) struct MemoryWitness {
    head: Option<WitnessClaim>,
    pub claims: SharedNotes<WitnessClaim>,
}

impl MemoryWitness {
    pub const NAME: &str = "memory";
}

impl Witness for MemoryWitness {
    fn read(&mut self) -> Result<Option<WitnessClaim>, witness::WitnessError> {
        Ok(self.head)
    }

    fn identity(&mut self) -> Result<String, witness::WitnessError> {
        Ok(MemoryWitness::NAME.to_owned())
    }

    fn append(&mut self, claim: &WitnessClaim) -> Result<(), witness::WitnessError> {
        self.head = fold_claim(self.head, *claim);
        self.claims.push(*claim);
        Ok(())
    }
}

/// A sink in memory.
pub(super) struct MemorySink(pub SharedNotes<PublishedBytes>);

impl Sink for MemorySink {
    fn publish(&mut self, paid: &[Paid]) -> Result<(), sink::Unpublished> {
        for message in paid.iter().map(Paid::encoded) {
            self.0.push(PublishedBytes {
                key: message.key.clone(),
                headers: message.headers.clone(),
                bytes: message.bytes.clone(),
            });
        }
        Ok(())
    }
}
