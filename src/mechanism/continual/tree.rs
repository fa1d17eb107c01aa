//! Noise for sums of everything so far, under laws whose price adds up in the 1-norm.

/// A tree of `levels` levels over the panes, `branching` children to a node (Dwork, Naor, Pitassi and Rothblum 2010; Chan,
/// Shi and Song 2011), every node with noise of its own and put together with its children's as soon as it is whole (Honaker
/// 2015, from below). A pane is in one node a level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    branching: u64,
    /// For each level from the leaves, what part of a node's estimate its own noise is, in units of `2^-16`; the rest is its
    /// children's. It is also the variance of that estimate, where fresh noise has 1.
    weights: Vec<u64>,
}

const BITS: u32 = 16;
const MOST_CHILDREN: u64 = 1024;

impl Tree {
    /// The one of the smallest mean square error over `horizon` panes; of one level where noise added up does as well.
    pub fn for_horizon(horizon: u64) -> Tree {
        let horizon = horizon.max(1);
        let flat = Tree { branching: horizon, weights: vec![1 << BITS] };
        let deep = (2..=MOST_CHILDREN.min(horizon)).map(|branching| Tree::over(horizon, branching));
        deep.fold((flat.error(horizon), flat), |(least, best), tree| {
            let error = tree.error(horizon);
            if error < least { (error, tree) } else { (least, best) }
        })
        .1
    }

    /// The lowest over `horizon` panes.
    pub fn over(horizon: u64, branching: u64) -> Tree {
        let (mut weights, mut capacity) = (vec![1_u64 << BITS], branching);
        while capacity < horizon {
            // v = 1 / (1 + 1 / (b u)), u of the level below.
            let children = branching * weights[weights.len() - 1];
            weights.push((children << BITS) / ((1 << BITS) + children));
            capacity = capacity.saturating_mul(branching);
        }
        Tree { branching, weights }
    }

    pub fn levels(&self) -> usize {
        self.weights.len()
    }

    pub fn branching(&self) -> u64 {
        self.branching
    }

    /// How many panes it holds.
    pub fn capacity(&self) -> u64 {
        self.weights.iter().fold(1, |capacity: u64, _| capacity.saturating_mul(self.branching))
    }

    /// What the noise of the sum changes by with leaf `leaf`. For each level `open` has the sum of the noise of its nodes that
    /// are whole and whose parent is not.
    ///
    /// An estimate is the node's sum plus `(a fresh + (1 - a) children)` of noise, rounded. Adding a whole number to both
    /// moves that by the same number: what is published is a function of the nodes' own noisy sums.
    pub(super) fn correlate(
        &self,
        leaf: u64,
        open: &mut [Vec<i128>],
        draw: &mut dyn FnMut() -> Vec<i128>,
    ) -> Vec<i128> {
        let mut node = draw();
        let (mut change, mut whole) = (node.clone(), leaf + 1);
        for level in 0..self.levels() {
            open[level].iter_mut().zip(&node).for_each(|(sum, noise)| *sum += noise);
            if !whole.is_multiple_of(self.branching) || level + 1 == self.levels() {
                break;
            }
            whole /= self.branching;
            let own = i128::from(self.weights[level + 1]);
            node = draw();
            for ((noise, children), change) in node.iter_mut().zip(&mut open[level]).zip(&mut change) {
                *noise = super::round(own * *noise + ((1 << BITS) - own) * *children, BITS);
                *change += *noise - *children;
                *children = 0;
            }
        }
        change
    }

    /// The variance of the noise of the sum over so many panes, of fresh noise of variance 1.
    #[expect(clippy::cast_precision_loss, reason = "a figure to show")]
    pub(super) fn row(&self, panes: u64) -> f64 {
        let (mut rest, mut variance) = (panes, 0.0);
        for (level, weight) in self.weights.iter().enumerate() {
            let nodes = if level + 1 == self.levels() { rest } else { rest % self.branching };
            variance += nodes as f64 * *weight as f64 / f64::from(1_u32 << BITS);
            rest /= self.branching;
        }
        variance
    }

    /// The square of the levels (the price of a node is that part of the whole) times the sum of the variances.
    #[expect(clippy::cast_precision_loss, reason = "which is the better one")]
    fn error(&self, horizon: u64) -> f64 {
        // The sum of `0, 1, ..., n - 1`.
        let triangle = |n: f64| n * (n - 1.0) / 2.0;
        let (mut size, mut sum) = (1_u64, 0.0);
        for (level, weight) in self.weights.iter().enumerate() {
            let counted = horizon + 1;
            let period = size.saturating_mul(self.branching);
            let (periods, rest) =
                if level + 1 == self.levels() { (0, counted) } else { (counted / period, counted % period) };
            let (nodes, part) = (rest / size, rest % size);
            let in_all = (periods * size) as f64 * triangle(self.branching as f64)
                + size as f64 * triangle(nodes as f64)
                + (nodes * part) as f64;
            sum += in_all * *weight as f64 / f64::from(1_u32 << BITS);
            size = period;
        }
        (self.levels() as f64).powi(2) * sum
    }

    /// What makes it this one and no other.
    pub(super) fn numbers(&self) -> Vec<u64> {
        [&[self.branching], self.weights.as_slice()].concat()
    }
}
