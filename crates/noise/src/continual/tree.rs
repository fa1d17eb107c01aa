//! Noise for sums of everything so far, under laws whose price adds up in the 1-norm.

use super::rounding::round_to_bits;

/// A tree of `levels` levels over the panes, `branching` children to a node (`[DNPR10]`, `[CSS11]`). Every node
/// has noise of its own, and is combined with its children as soon as it is complete (`[Hon15]`, from below). A pane is in one
/// node per level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoiseTree {
    branching: u64,
    /// For each level from the leaves, what part of a node's estimate its own noise is, in units of `2^-16`; the rest is its
    /// children's. It is also the variance of that estimate, where fresh noise has 1.
    weights: Vec<u64>,
}

const BITS: u32 = 16;
const MOST_CHILDREN: u64 = 1024;

impl NoiseTree {
    /// The one of the smallest mean square error over `horizon` panes; of one level where noise added up does as well.
    pub fn for_horizon(horizon: u64) -> NoiseTree {
        let horizon = horizon.max(1);
        let flat = NoiseTree {
            branching: horizon,
            weights: vec![1 << BITS],
        };
        let mut least = flat.total_error(horizon);
        let mut best = flat;
        for branching in 2..=MOST_CHILDREN.min(horizon) {
            let tree = NoiseTree::for_panes(horizon, branching);
            let error = tree.total_error(horizon);
            if error < least {
                least = error;
                best = tree;
            }
        }
        best
    }

    /// The lowest over `horizon` panes.
    pub fn for_panes(horizon: u64, branching: u64) -> NoiseTree {
        let mut weights = vec![1_u64 << BITS];
        let mut capacity = branching;
        while capacity < horizon {
            // v = 1 / (1 + 1 / (b u)), u of the level below.
            let children = branching * weights[weights.len() - 1];
            weights.push((children << BITS) / ((1 << BITS) + children));
            capacity = capacity.saturating_mul(branching);
        }
        NoiseTree { branching, weights }
    }

    pub fn levels(&self) -> usize {
        self.weights.len()
    }

    pub fn branching(&self) -> u64 {
        self.branching
    }

    /// Number of panes that it holds.
    pub fn capacity(&self) -> u64 {
        self.weights.iter().fold(1, |capacity: u64, _| {
            capacity.saturating_mul(self.branching)
        })
    }

    /// Change of the noise of the sum with leaf `leaf`. For each level `open` has the sum of the noise of its nodes that
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
        let mut change = node.clone();
        let mut whole = leaf + 1;
        for (sum, above) in open.iter_mut().zip(1..) {
            for (sum, noise) in sum.iter_mut().zip(&node) {
                *sum += noise;
            }
            if !whole.is_multiple_of(self.branching) || above == self.levels() {
                break;
            }
            whole /= self.branching;
            let own = i128::from(self.weights[above]);
            node = draw();
            for ((noise, children), change) in node.iter_mut().zip(sum).zip(&mut change) {
                *noise = round_to_bits(own * *noise + ((1 << BITS) - own) * *children, BITS);
                *change += *noise - *children;
                *children = 0;
            }
        }
        change
    }

    /// The variance of the noise of the sum over so many panes, of fresh noise of variance 1.
    #[expect(clippy::cast_precision_loss, reason = "a figure to show")]
    pub(super) fn row_variance(&self, panes: u64) -> f64 {
        let mut rest = panes;
        let mut variance = 0.0;
        for (level, weight) in self.weights.iter().enumerate() {
            let nodes = if level + 1 == self.levels() {
                rest
            } else {
                rest % self.branching
            };
            variance += nodes as f64 * *weight as f64 / f64::from(1_u32 << BITS);
            rest /= self.branching;
        }
        variance
    }

    /// The square of the levels (the price of a node is that part of the whole) times the sum of the variances.
    #[expect(clippy::cast_precision_loss, reason = "which is the better one")]
    fn total_error(&self, horizon: u64) -> f64 {
        let mut size = 1_u64;
        let mut sum = 0.0;
        for (level, weight) in self.weights.iter().enumerate() {
            let counted = horizon + 1;
            let period = size.saturating_mul(self.branching);
            let periods = if level + 1 == self.levels() {
                0
            } else {
                counted / period
            };
            let rest = counted - periods * period;
            let nodes = rest / size;
            let part = rest % size;
            let in_all = (periods * size) as f64 * triangle_number(self.branching as f64)
                + size as f64 * triangle_number(nodes as f64)
                + (nodes * part) as f64;
            sum += in_all * *weight as f64 / f64::from(1_u32 << BITS);
            size = period;
        }
        (self.levels() as f64).powi(2) * sum
    }

    /// Numbers that make it this one and no other.
    pub(super) fn numbers(&self) -> Vec<u64> {
        [&[self.branching], self.weights.as_slice()].concat()
    }
}

/// The sum of `0, 1, ..., n - 1`.
fn triangle_number(n: f64) -> f64 {
    n * (n - 1.0) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::continual::series::price_of_a_node;
    use bernstream_synopsis::calibrate::Epsilon;
    use bernstream_synopsis::price::Price;

    /// What each pane's noise is, of these fresh ones in the order of drawing, and the panes that each draw covers.
    fn run(tree: &NoiseTree, panes: u64, fresh: &[i128]) -> (Vec<i128>, Vec<std::ops::Range<u64>>) {
        let mut open = vec![vec![0]; tree.levels()];
        let mut covered = Vec::new();
        let mut at = 0;
        let mut noise = Vec::new();
        for pane in 0..panes {
            let mut size = 1;
            let mut draw = || {
                covered.push(pane + 1 - size..pane + 1);
                size *= tree.branching;
                at += 1;
                vec![fresh[at - 1]]
            };
            noise.push(tree.correlate(pane, &mut open, &mut draw)[0]);
        }
        (noise, covered)
    }

    /// Neighbours publish the same where exactly the nodes over the pane have that much less noise: one a level.
    #[test]
    fn a_pane_is_in_one_node_of_each_level_and_nothing_else_knows_it() {
        for (branching, horizon) in [(2, 16), (3, 27), (3, 20), (5, 25), (4, 4)] {
            let tree = NoiseTree::for_panes(horizon, branching);
            let panes = tree.capacity();
            let fresh: Vec<i128> = (0..200_i128).map(|i| i * i * 7919 % 1001 - 500).collect();
            let (noise, covered) = run(&tree, panes, &fresh);
            for pane in 0..panes {
                for change in [1, -3, 1000] {
                    let is_over =
                        |i: usize| covered.get(i).is_some_and(|panes| panes.contains(&pane));
                    let shift = |(i, z): (usize, &i128)| z - if is_over(i) { change } else { 0 };
                    let shifted: Vec<i128> = fresh.iter().enumerate().map(shift).collect();
                    let mut expected = noise.clone();
                    expected[pane as usize] -= change;
                    assert_eq!(
                        run(&tree, panes, &shifted).0,
                        expected,
                        "{branching} {pane}"
                    );
                    let nodes: Vec<usize> = (0..covered.len()).filter(|i| is_over(*i)).collect();
                    assert_eq!(nodes.len(), tree.levels(), "{branching} {pane}");
                    // With one of them left as it was, something else is published.
                    let mut wrong = shifted;
                    wrong[nodes[nodes.len() - 1]] += 1000 * change;
                    assert_ne!(run(&tree, panes, &wrong).0, expected, "{branching} {pane}");
                }
            }
        }
    }

    #[test]
    fn the_nodes_over_a_pane_cost_no_more_than_the_pane_and_hardly_less() {
        let epsilon = |text: &str| text.parse::<Epsilon>().unwrap();
        for levels in [2_usize, 3, 5] {
            let Price::Pure(node) = price_of_a_node(Price::Pure(epsilon("1")), levels, 7) else {
                panic!()
            };
            let in_all = node.trillionths() * levels as u64;
            assert!(
                in_all <= 1_000_000_000_000 && in_all > 999_999_999_990,
                "{in_all}"
            );
            for panes in [1_u64, 2, 30] {
                let total = Price::Concentrated("0.003".parse().unwrap());
                let Price::Pure(node) = price_of_a_node(total, levels, panes as u32) else {
                    panic!()
                };
                // All of a unit's panes in one node of each level, and fewer.
                let cost = |panes: u64| {
                    let of_all = Epsilon::from_trillionths(node.trillionths() * panes);
                    let Some(Price::Concentrated(rho)) = total.of_pure(of_all) else {
                        panic!()
                    };
                    rho.to_f64() * levels as f64 / (0.003 * panes as f64)
                };
                assert!(
                    (1..=panes).all(|panes| cost(panes) < 1.0 + 1e-12),
                    "{levels} {panes}"
                );
                assert!(cost(panes) > 0.999_999, "{levels} {panes}: {}", cost(panes));
                assert!(cost(2 * panes) > 1.3, "twice the panes are not paid for");
            }
        }
    }

    #[test]
    fn the_error_that_chooses_a_tree_is_the_mean_over_its_panes() {
        for (horizon, branching) in [(1, 5), (7, 7), (64, 8), (100, 3), (1000, 11), (1331, 11)] {
            let tree = NoiseTree::for_panes(horizon, branching);
            let sum: f64 = (1..=horizon).map(|panes| tree.row_variance(panes)).sum();
            let expected = sum * (tree.levels() * tree.levels()) as f64;
            assert!(
                (tree.total_error(horizon) / expected - 1.0).abs() < 1e-12,
                "{horizon} {branching}"
            );
        }
        assert_eq!(NoiseTree::for_horizon(30).levels(), 1);
        let found = [64, 1024, 4096].map(NoiseTree::for_horizon);
        assert_eq!(
            found.map(|tree| (tree.branching(), tree.levels())),
            [(8, 2), (11, 3), (16, 3)]
        );
    }
}
