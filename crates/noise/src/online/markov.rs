//! The Ornstein-Uhlenbeck process, `K(x, y) = exp(-|x - y| / b)` on a line: given its nearest neighbours on both sides, a point
//! knows nothing of the others.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::process::{ChangeGrowth, GaussianProcess, PointOffer, row_norm, whole_row};

/// The points asked so far, in their order on the line.
pub(super) struct MarkovProcess {
    bandwidth: f64,
    stops: BTreeMap<MarkovPosition, MarkovStop>,
    /// `sum_i m_i^2`, `m_i` the size of a row in the 1-norm.
    squares: f64,
}

struct MarkovStop {
    number: usize,
    /// Released.
    value: f64,
}

/// The place of a new point.
pub(super) struct NewPlace {
    place: MarkovPosition,
    /// The sum of squares with its row.
    squares: f64,
}

/// A stop next to a new point.
#[derive(Clone, Copy)]
struct NeighbourStop {
    /// Distance to it over the bandwidth.
    distance: f64,
    number: usize,
    value: f64,
}

/// A neighbour with its weight in the conditional mean.
struct WeightedStop {
    number: usize,
    weight: f64,
    value: f64,
}

/// A place on the line; a number.
#[derive(Clone, Copy, Debug)]
pub(super) struct MarkovPosition(f64);

impl MarkovProcess {
    pub fn new(bandwidth: f64) -> Self {
        MarkovProcess {
            bandwidth,
            stops: BTreeMap::new(),
            squares: 0.0,
        }
    }

    fn neighbour(&self, x: f64, place: &MarkovPosition, stop: &MarkovStop) -> NeighbourStop {
        NeighbourStop {
            distance: (x - place.0).abs() / self.bandwidth,
            number: stop.number,
            value: stop.value,
        }
    }
}

impl NeighbourStop {
    fn weighted(self, weight: f64) -> WeightedStop {
        WeightedStop {
            number: self.number,
            weight,
            value: self.value,
        }
    }
}

/// `e(t) = 1 - exp(-2 t)`.
fn left_out(t: f64) -> f64 {
    -(-2.0 * t).exp_m1()
}

/// Weight of the neighbour at distance `near`, with another one on the other side at `far`; `whole` is `e(near + far)`.
fn weight_between(near: f64, far: f64, whole: f64) -> f64 {
    (-near).exp() * (left_out(far) / whole)
}

impl GaussianProcess for MarkovProcess {
    type Place = NewPlace;

    /// With `e(t) = 1 - exp(-2 t)`, `s` and `t` the distances to the nearest points on the left and on the right over the
    /// bandwidth: weights `exp(-s) e(t) / e(s + t)` and `exp(-t) e(s) / e(s + t)`, of the pivot's square is left
    /// `e(s) e(t) / e(s + t)`; a side without a point has `e = 1` and no weight. Nothing cancels.
    ///
    /// # What floats lose
    ///
    /// A distance is off by at most `3 u` of itself, `e` by `6 u` (`t e' / e <= 1`), `exp(-t)` by `4 u` (`t exp(-t) < 0.37`), so
    /// an entry of the row by less than `40 u` over the pivot, which is at least `10^-4`; rounding adds `2^-25`. The three
    /// entries together are off by less than `2^-23`, a function of norm 1 is nowhere above 1, and the exact rows leave it
    /// its norm: so `q <= 1 + 2^-23 sqrt(i)` for `i` points.
    fn offer(&self, point: &[f64]) -> PointOffer<NewPlace> {
        // Adding nothing makes of -0 a 0.
        let x = point.first().copied().unwrap_or_default() + 0.0;
        let left = self.stops.range(..=MarkovPosition(x)).next_back();
        let right = self.stops.range(MarkovPosition(x)..).next();
        let left = left.map(|(place, stop)| self.neighbour(x, place, stop));
        let right = right.map(|(place, stop)| self.neighbour(x, place, stop));
        let (neighbours, rest) = match (left, right) {
            (None, None) => (Vec::new(), 1.0),
            (Some(only), None) | (None, Some(only)) => {
                let t = only.distance;
                (vec![only.weighted((-t).exp())], left_out(t))
            }
            // The point itself, or one that no float tells apart from it.
            (Some(left), Some(right)) if left.distance == 0.0 || right.distance == 0.0 => {
                let nearest = if left.distance <= right.distance {
                    left
                } else {
                    right
                };
                (vec![nearest.weighted(1.0)], 0.0)
            }
            (Some(left), Some(right)) => {
                let s = left.distance;
                let t = right.distance;
                let whole = left_out(s + t);
                let weighted = vec![
                    left.weighted(weight_between(s, t, whole)),
                    right.weighted(weight_between(t, s, whole)),
                ];
                (weighted, left_out(s) * (left_out(t) / whole))
            }
        };
        let mean = neighbours.iter().map(|stop| stop.weight * stop.value).sum();
        let own = self.stops.len();
        let row = whole_row(
            neighbours.iter().map(|stop| (stop.number, stop.weight)),
            own,
            rest,
        );
        let squares = self.squares + row_norm(&row).powi(2);
        let points = (own + 1) as f64;
        let stretch = 1.0 + points.sqrt() / 8_388_608.0;
        let reach = ChangeGrowth {
            stretch,
            spread: squares.sqrt() * (1.0 + 1e-9),
        };
        PointOffer {
            whole: 1.0,
            rest,
            mean,
            row,
            reach,
            place: NewPlace {
                place: MarkovPosition(x),
                squares,
            },
        }
    }

    fn take(&mut self, offer: PointOffer<NewPlace>, coordinate: f64) -> f64 {
        let value = offer.mean + offer.rest.sqrt() * coordinate;
        let NewPlace { place, squares } = offer.place;
        self.stops.insert(
            place,
            MarkovStop {
                number: self.stops.len(),
                value,
            },
        );
        self.squares = squares;
        value
    }
}

impl Ord for MarkovPosition {
    fn cmp(&self, other: &MarkovPosition) -> Ordering {
        #[cfg(test)]
        tests::LOOKED_AT.set(tests::LOOKED_AT.get() + 1);
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for MarkovPosition {
    fn partial_cmp(&self, other: &MarkovPosition) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for MarkovPosition {
    fn eq(&self, other: &MarkovPosition) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for MarkovPosition {}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::super::dense::DenseProcess;
    use super::*;
    use bernstream_synopsis::{PointKernel, machine};

    thread_local! {
        pub(super) static LOOKED_AT: Cell<u64> = const { Cell::new(0) };
    }

    /// Fractions of the golden ratio: they fall into the widest gaps, in no order.
    fn place(i: u32) -> f64 {
        (f64::from(i) * 0.618_033_988_749_894_9).fract()
    }

    #[test]
    fn what_the_neighbours_say_is_what_all_points_say() {
        for bandwidth in [0.02, 0.2, 3.0] {
            let mut near = MarkovProcess::new(bandwidth);
            let mut all = DenseProcess::new(PointKernel::Machine(machine::CubeKernel::Laplacian {
                bandwidth,
            }));
            for i in 0..60 {
                let x = place(i);
                let by_near = near.offer(&[x]);
                let by_all = all.offer(&[x]);
                assert!(
                    (by_near.mean - by_all.mean).abs() < 1e-9,
                    "{i}: {} {}",
                    by_near.mean,
                    by_all.mean
                );
                assert!(
                    (by_near.rest / by_all.rest - 1.0).abs() < 1e-9,
                    "{i}: {} {}",
                    by_near.rest,
                    by_all.rest
                );
                // The rows: at most three entries count.
                let mut dense = vec![0; i as usize + 1];
                by_near
                    .row
                    .iter()
                    .for_each(|entry| dense[entry.number] = entry.weight);
                let apart = by_all
                    .row
                    .iter()
                    .zip(&dense)
                    .map(|(entry, b)| entry.weight.abs_diff(*b))
                    .max();
                assert!(by_near.row.len() <= 3 && apart <= Some(1), "{i}: {apart:?}");
                assert!((by_near.reach.spread - by_all.reach.spread).abs() < 1e-3);
                assert!(
                    (1.0..1.00001).contains(&by_near.reach.stretch),
                    "{}",
                    by_near.reach.stretch
                );
                assert!(
                    (1.0..1.0001).contains(&by_all.reach.stretch),
                    "{}",
                    by_all.reach.stretch
                );
                let coordinate = f64::from(i * i % 7) - 3.0;
                let a = near.take(by_near, coordinate);
                let b = all.take(by_all, coordinate);
                assert!((a - b).abs() < 1e-9, "{a} {b}");
            }
        }
    }

    #[test]
    fn few_points_are_looked_at() {
        let mut process = MarkovProcess::new(0.1);
        let mut most = Vec::new();
        for (from, to) in [(0, 100), (100, 1_000), (1_000, 10_000), (10_000, 100_000)] {
            let mut largest = 0;
            for i in from..to {
                LOOKED_AT.set(0);
                let offer = process.offer(&[place(i)]);
                largest = largest.max(LOOKED_AT.get());
                process.take(offer, 0.0);
            }
            most.push(largest);
        }
        println!("{most:?}");
        // A thousand times the points, some steps down a tree more. A list would look at 100,000.
        assert!(most[3] < 200 && most[3] - most[1] < 90, "{most:?}");
    }

    /// Ends, points that floats hardly tell apart, and none.
    #[test]
    fn no_place_makes_a_value_that_is_no_number() {
        let mut process = MarkovProcess::new(0.001);
        for x in [
            0.0,
            f64::MIN_POSITIVE,
            5e-324,
            1.0,
            1.0 - f64::EPSILON,
            0.5,
            -0.0,
            1.0,
            0.5 + 1e-12,
            1e-320,
        ] {
            let offer = process.offer(&[x]);
            assert!(
                offer.mean.is_finite() && offer.rest >= 0.0,
                "{x}: {} {}",
                offer.mean,
                offer.rest
            );
            if offer.rest >= crate::online::process::LEAST {
                process.take(offer, 1.0);
            }
        }
        assert_eq!(process.stops.len(), 3);
    }
}
