//! From fresh noise to correlated noise, step by step.

use std::fmt;

use super::blt::Blt;
use super::fir::Fir;
use super::tree::NoiseTree;

/// A causal map from fresh noise to the noise `w` of the panes, and after how many panes it begins anew.
#[derive(Clone, Debug, PartialEq)]
pub struct Correlation {
    pub(super) kind: CorrelationKind,
    pub(super) longest: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum CorrelationKind {
    /// Every pane has fresh noise.
    Independent,
    Blt(&'static Blt),
    Fir(Fir),
    Tree(NoiseTree),
}

/// Noise that is remembered. Secret: with what was published it tells the exact values.
///
/// `Debug` shows no values.
#[derive(Clone, PartialEq, Eq)]
pub struct NoiseMemory {
    pub(super) step: u64,
    pub(super) noise: Vec<Vec<i128>>,
}

impl fmt::Debug for NoiseMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Memory({} vectors, step {})",
            self.noise.len(),
            self.step
        )
    }
}

impl Correlation {
    pub fn independent() -> Self {
        Correlation {
            kind: CorrelationKind::Independent,
            longest: u64::MAX,
        }
    }

    /// `longest` is how many panes the rounding is paid for.
    pub fn blt(blt: &'static Blt, longest: u64) -> Self {
        Correlation {
            kind: CorrelationKind::Blt(blt),
            longest: longest.max(1),
        }
    }

    pub fn fir(fir: Fir) -> Self {
        Correlation {
            kind: CorrelationKind::Fir(fir),
            longest: u64::MAX,
        }
    }

    pub fn tree(tree: NoiseTree) -> Self {
        let longest = tree.capacity().max(1);
        Correlation {
            kind: CorrelationKind::Tree(tree),
            longest,
        }
    }

    /// Memory before the first pane.
    pub fn empty_memory(&self, values: usize) -> NoiseMemory {
        NoiseMemory {
            step: 0,
            noise: vec![vec![0; values]; self.vector_count()],
        }
    }

    /// Number of vectors of noise that are remembered.
    pub(super) fn vector_count(&self) -> usize {
        match &self.kind {
            CorrelationKind::Independent => 0,
            CorrelationKind::Blt(blt) => blt.buffers(),
            CorrelationKind::Fir(fir) => fir.reach(),
            CorrelationKind::Tree(tree) => tree.levels(),
        }
    }

    /// Number of vectors of fresh noise that a pane is in; `None` where each is in many, a part of it.
    pub fn nodes_of_a_pane(&self) -> Option<usize> {
        match &self.kind {
            CorrelationKind::Independent => Some(1),
            CorrelationKind::Tree(tree) => Some(tree.levels()),
            CorrelationKind::Blt(_) | CorrelationKind::Fir(_) => None,
        }
    }

    /// Bound of the squared 2-norm of a column from above, where a vector of fresh noise is in many panes, a part of it. A figure to show.
    #[expect(clippy::cast_precision_loss, reason = "a figure to show")]
    pub fn norm_squared(&self) -> Option<f64> {
        let squared = match &self.kind {
            CorrelationKind::Blt(blt) => blt.norm_squared(),
            CorrelationKind::Fir(fir) => fir.norm_squared(),
            CorrelationKind::Independent | CorrelationKind::Tree(_) => return None,
        };
        Some(squared as f64 / 2_f64.powi(64))
    }

    /// The noise of the next pane. `draw` gives a vector of fresh noise: once a step, and under a tree once more for every
    /// node that the pane completes.
    pub fn next_noise(
        &self,
        memory: &mut NoiseMemory,
        draw: &mut dyn FnMut() -> Vec<i128>,
    ) -> Vec<i128> {
        let position = memory.step % self.longest;
        if position == 0 && self.longest < u64::MAX {
            for vector in &mut memory.noise {
                vector.fill(0);
            }
        }
        let noise = match &self.kind {
            CorrelationKind::Independent => draw(),
            CorrelationKind::Blt(blt) => {
                let mut noise = draw();
                blt.correlate(&mut memory.noise, &mut noise);
                noise
            }
            CorrelationKind::Fir(fir) => {
                let mut noise = draw();
                fir.correlate(position, &mut memory.noise, &mut noise);
                noise
            }
            CorrelationKind::Tree(tree) => tree.correlate(position, &mut memory.noise, draw),
        };
        memory.step += 1;
        noise
    }

    /// The variance of the sum of the noise of the last `over` of `panes` panes, of fresh noise of variance 1: of all of them
    /// but for a filter, which is for sums over its own length.
    #[expect(clippy::cast_precision_loss, reason = "a figure to show")]
    pub(super) fn row_variance(&self, panes: u64, over: Option<u32>) -> f64 {
        match &self.kind {
            CorrelationKind::Independent => {
                over.map_or(panes, |over| panes.min(over.into())) as f64
            }
            CorrelationKind::Blt(blt) => {
                self.row_since_begun(panes, |panes| blt.row_variance(panes))
            }
            CorrelationKind::Fir(fir) => fir.row_variance(panes),
            CorrelationKind::Tree(tree) => {
                self.row_since_begun(panes, |panes| tree.row_variance(panes))
            }
        }
    }

    /// The variance of the sum over `panes` panes where noise begins anew after the longest run; `row` is that within a run.
    #[expect(clippy::cast_precision_loss, reason = "a figure to show")]
    fn row_since_begun(&self, panes: u64, row: impl Fn(u64) -> f64) -> f64 {
        let finished = panes / self.longest;
        let rest = panes % self.longest;
        let of_finished = if finished > 0 {
            finished as f64 * row(self.longest)
        } else {
            0.0
        };
        of_finished + if rest > 0 { row(rest) } else { 0.0 }
    }

    /// Numbers that make it this one and no other.
    pub(super) fn numbers(&self) -> Vec<u64> {
        let kind = match &self.kind {
            CorrelationKind::Independent => 0,
            CorrelationKind::Blt(_) => 1,
            CorrelationKind::Fir(_) => 2,
            CorrelationKind::Tree(_) => 3,
        };
        let rest = match &self.kind {
            CorrelationKind::Independent => Vec::new(),
            CorrelationKind::Blt(blt) => blt.identifying_numbers(),
            CorrelationKind::Fir(fir) => fir
                .coefficients()
                .iter()
                .map(|c| c.cast_unsigned())
                .collect(),
            CorrelationKind::Tree(tree) => tree.numbers(),
        };
        [&[kind, self.longest], rest.as_slice()].concat()
    }
}
