//! The state of a sum over records: an integer histogram on a fine public grid.
//!
//! A record deposits one unit of mass, as `2^20` whole grains, on the nodes around it. After [`Nodes::place_record`] everything
//! is an integer, so the state does not depend on the order of the records. Memory depends on the grid alone and no
//! record is kept.

use std::f64::consts::PI;
use std::fmt;

use serde::{Deserialize, Serialize};

/// Grains that one record deposits, always and exactly.
pub const GRAINS: u64 = 1 << GRAIN_BITS;
const GRAIN_BITS: u32 = 20;

/// Steps of a place between two nodes.
const STEPS: u32 = 1024;

/// Weights of the three nodes of one axis add up to `2^21`.
const WEIGHT_BITS: u32 = 21;

/// Most cells of a histogram (35 MB).
pub const MOST_CELLS: usize = 4_300_000;

/// A record's place: integer coordinates, one an axis, in 1/1024 of a cell where there is a grid, in 2^-31 of the domain
/// where there is none. Axes that are not there are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GridPoint(pub [u32; 3]);

impl GridPoint {
    /// Steps of the domain where there is no grid.
    pub const FINE: u32 = 1 << 31;

    /// A coordinate where there is no grid: whatever `x` is, it lies in the domain.
    #[inline]
    pub fn fine_coordinate(x: f64) -> u32 {
        let x = x * f64::from(Self::FINE);
        // A cast from a float rounds down, saturates and takes NaN to 0. `round` would be a call for each record.
        let whole = x as u32;
        whole
            .saturating_add(u32::from(x - f64::from(whole) >= 0.5))
            .min(Self::FINE)
    }

    /// Deposit of a record here on a grid of one axis: the cell of the lowest node, and the grains of it and the next
    /// two, [`GRAINS`] in all.
    #[inline]
    pub fn spread_on_axis(self) -> (usize, [u64; 3]) {
        let stencil = Stencil::at(self.0[0]);
        let [low, _, high] = stencil.weights.map(|w| w >> (WEIGHT_BITS - GRAIN_BITS));
        (stencil.first, [low, GRAINS - low - high, high])
    }
}

/// Spline that shares a record among the nodes around it: a B-spline of its distance in steps, the product over the axes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Spline {
    /// All of it on one node, the middle of its cell.
    Box,
    /// `1 - f` and `f` on the nodes below and above it, `f` its distance from the lower one.
    Linear,
    /// `(1/2 - f)^2 / 2`, `3/4 - f^2`, `(1/2 + f)^2 / 2` on the three nodes around it, `f` its distance from the middle one.
    Quadratic,
}

impl Spline {
    pub const ALL: [Spline; 3] = [Spline::Box, Spline::Linear, Spline::Quadratic];

    /// Nodes of an axis with so many steps.
    pub fn nodes(self, steps: u32) -> usize {
        steps as usize
            + match self {
                Spline::Box => 0,
                Spline::Linear => 1,
                Spline::Quadratic => 3,
            }
    }

    /// Place of the first node, in steps from the lower end of the axis. The others follow a step apart.
    pub fn first_node(self) -> f64 {
        match self {
            Spline::Box => 0.5,
            Spline::Linear => 0.0,
            Spline::Quadratic => -1.0,
        }
    }

    /// The variance of the shares around the record, in steps squared, the mean over its places between two nodes.
    pub fn variance(self) -> f64 {
        match self {
            Spline::Box => 1.0 / 12.0,
            Spline::Linear => 1.0 / 6.0,
            Spline::Quadratic => 1.0 / 4.0,
        }
    }
}

impl fmt::Display for Spline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Spline::Box => "box",
            Spline::Linear => "linear",
            Spline::Quadratic => "quadratic",
        })
    }
}

/// A public grid on the unit cube, or on its angles: `M` steps on each axis. Nodes are `j / M`, `j = -1 ..= M + 1`, where records
/// are shared by the quadratic spline, as they are unless something else is said; see [`Spline`] for the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nodes {
    /// `M`, one an axis, 1 to 3 axes.
    per_axis: Vec<u32>,
    measure: Measure,
    spline: Spline,
}

/// Measure in which the nodes are evenly spaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Measure {
    /// The coordinate `x`.
    Length,
    /// Its angle `arccos(2 x - 1)`, in half turns: from 0 where `x` is 1 to 1 where it is 0.
    Angle,
}

impl Nodes {
    /// `None` unless there are 1 to 3 axes, each with at least one step, and at most [`MOST_CELLS`] cells together.
    pub fn new(per_axis: &[u32]) -> Option<Self> {
        Nodes::shared_by(Spline::Quadratic, per_axis)
    }

    /// Nodes with another spline.
    pub fn shared_by(spline: Spline, per_axis: &[u32]) -> Option<Self> {
        if !(1..=3).contains(&per_axis.len()) {
            return None;
        }
        let mut cells: usize = 1;
        for steps in per_axis {
            if !(1..=u32::MAX / STEPS).contains(steps) {
                return None;
            }
            cells = cells.checked_mul(spline.nodes(*steps))?;
        }
        (cells <= MOST_CELLS).then(|| Nodes {
            per_axis: per_axis.to_vec(),
            measure: Measure::Length,
            spline,
        })
    }

    /// Nodes that are evenly spaced in the angle of each coordinate: node `j` is where `arccos(2 x - 1)` is `pi j / M`. Those
    /// outside of the cube are the mirror images of their neighbours inside.
    pub fn of_angles(per_axis: &[u32]) -> Option<Self> {
        Some(Nodes {
            measure: Measure::Angle,
            ..Nodes::new(per_axis)?
        })
    }

    /// `M`, one an axis.
    pub fn per_axis(&self) -> &[u32] {
        &self.per_axis
    }

    pub fn spline(&self) -> Spline {
        self.spline
    }

    /// Tests that the nodes are evenly spaced in the angle of each coordinate.
    pub fn is_of_angles(&self) -> bool {
        self.measure == Measure::Angle
    }

    /// Nodes of each axis.
    pub fn widths(&self) -> impl Iterator<Item = usize> {
        self.per_axis.iter().map(|m| self.spline.nodes(*m))
    }

    /// At least the 2-norm of what any record deposits, in grains.
    ///
    /// Shares are not negative and add up to [`GRAINS`], so it is at most that, and a record on a node of a box or linear spline
    /// reaches it. Of the quadratic one it is the product over the axes of the largest norm of the three weights, which
    /// are read off; rounding products down makes none larger, but for the middle, which takes less than one grain of
    /// each of the others.
    pub fn longest_deposit(&self) -> u64 {
        let axes = self.per_axis.len() as u32;
        if self.spline != Spline::Quadratic {
            return GRAINS;
        }
        let mut largest: u128 = 0;
        for coordinate in STEPS / 2..=3 * STEPS / 2 {
            let weights = Stencil::at(coordinate).weights;
            largest = largest.max(
                weights
                    .iter()
                    .map(|weight| u128::from(*weight).pow(2))
                    .sum(),
            );
        }
        // Three squares of 42 bits fill 126.
        let length = largest.pow(axes).isqrt() + 1;
        let grains = length.div_ceil(1 << (WEIGHT_BITS * axes - GRAIN_BITS)) as u64;
        (grains + 3_u64.pow(axes) - 1).min(GRAINS)
    }

    /// Cells of a histogram: the product of [`Nodes::widths`].
    pub fn cells(&self) -> usize {
        self.widths().product()
    }

    /// Place of a record of the unit cube, to the nearest 1/1024 of a cell.
    ///
    /// Whatever `x` is, the place lies on the grid; but mapping a record into the cube is the window's job.
    #[inline]
    pub fn place_record(&self, x: &[f64]) -> GridPoint {
        let mut place = GridPoint([0; 3]);
        for (axis, (coordinate, x)) in place.0.iter_mut().zip(x).enumerate() {
            self.write_coordinates(
                axis,
                std::slice::from_ref(x),
                std::slice::from_mut(coordinate),
            );
        }
        place
    }

    /// The largest coordinate on an axis; 0 where that is not there.
    pub fn last_coordinate(&self, axis: usize) -> u32 {
        self.per_axis.get(axis).map_or(0, |m| m * STEPS)
    }

    /// Writes the places of records of the unit cube on one axis; nothing is written for an axis that is not there.
    #[inline]
    pub fn write_coordinates(&self, axis: usize, x: &[f64], coordinates: &mut [u32]) {
        let Some(last) = self.per_axis.get(axis).map(|m| m * STEPS) else {
            return;
        };
        match self.measure {
            Measure::Length => {
                for (coordinate, x) in coordinates.iter_mut().zip(x) {
                    *coordinate = nearest_step(*x, last);
                }
            }
            Measure::Angle => {
                for (coordinate, x) in coordinates.iter_mut().zip(x) {
                    *coordinate = nearest_step(half_turns(*x), last);
                }
            }
        }
    }
}

/// The nearest of `last` steps of the unit interval.
#[inline]
fn nearest_step(x: f64, last: u32) -> u32 {
    // A cast from a float rounds down, saturates and takes NaN to 0. `round` would be a call for each record.
    ((x * f64::from(last) + 0.5) as u32).min(last)
}

/// The angle of a coordinate in half turns. By `libm`, whose last bit is the same on every host: replicas must agree.
fn half_turns(x: f64) -> f64 {
    libm::acos((2.0 * x - 1.0).clamp(-1.0, 1.0)) / PI
}

/// Grains deposited so far, one count a node; it saturates rather than wraps.
///
/// Row-major, the last axis fastest. `Debug` shows no counts: they are exact.
#[derive(Clone, PartialEq, Eq)]
pub struct Histogram {
    pub cells: Vec<u64>,
}

impl Histogram {
    pub fn new(nodes: &Nodes) -> Self {
        Histogram {
            cells: vec![0; nodes.cells()],
        }
    }

    /// Adds the counts of another one on the same grid.
    pub fn add_histogram(&mut self, other: &Histogram) {
        for (cell, grains) in self.cells.iter_mut().zip(&other.cells) {
            *cell = cell.saturating_add(*grains);
        }
    }

    /// The secret counts themselves: a window can be read by who has it, what functions make of it cannot.
    pub fn grains(&self) -> &[u64] {
        &self.cells
    }

    /// Adds one record: [`GRAINS`] in all, on the nodes around it, by the [`Spline`] of the nodes, which must be the ones that the
    /// histogram was made with.
    #[inline]
    pub fn deposit_record(&mut self, nodes: &Nodes, place: GridPoint) {
        nodes.share_record(place, |first, grains| self.add_grains(first, grains));
    }

    /// Adds many records, each column of coordinates one axis; those of an axis that is not there are not looked at.
    pub fn deposit_all(&mut self, nodes: &Nodes, [x, y, z]: [&[u32]; 3]) {
        match &nodes.per_axis[..] {
            [_] if nodes.spline == Spline::Quadratic => {
                for x in x {
                    let (first, grains) = GridPoint([*x, 0, 0]).spread_on_axis();
                    self.add_grains(first, &grains);
                }
            }
            [_, m] if nodes.spline == Spline::Quadratic => {
                let width = *m as usize + 3;
                for (x, y) in x.iter().zip(y) {
                    share_2(width, Stencil::at(*x), Stencil::at(*y), |first, grains| {
                        self.add_grains(first, grains)
                    });
                }
            }
            _ => {
                for ((x, y), z) in x.iter().zip(y).zip(z) {
                    self.deposit_record(nodes, GridPoint([*x, *y, *z]));
                }
            }
        }
    }

    #[inline]
    fn add_grains(&mut self, first: usize, grains: &[u64]) {
        if let Some(cells) = self.cells.get_mut(first..first + grains.len()) {
            for (cell, grains) in cells.iter_mut().zip(grains) {
                *cell = cell.saturating_add(*grains);
            }
        }
    }

    /// Adds `1 / count` of one record, each share rounded down to whole grains: so many such parts are no more than a record in any cell.
    pub fn deposit_fraction(&mut self, nodes: &Nodes, place: GridPoint, count: u64) {
        let count = count.max(1);
        nodes.share_record(place, |first, grains| {
            for (cell, grains) in self.cells.iter_mut().skip(first).zip(grains) {
                *cell = cell.saturating_add(grains / count);
            }
        });
    }

    /// Adds `part / 2^31` of `1 / count` of one record, and the rest of that to `rest`, each share rounded down to whole grains.
    pub fn deposit_part_of_fraction(
        &mut self,
        rest: &mut Histogram,
        nodes: &Nodes,
        place: GridPoint,
        part: u64,
        count: u64,
    ) {
        let count = count.max(1);
        nodes.share_record(place, |first, grains| {
            let ours = self.cells.iter_mut().skip(first);
            let theirs = rest.cells.iter_mut().skip(first);
            for ((ours, theirs), grains) in ours.zip(theirs).zip(grains) {
                let grains = grains / count;
                let some = (grains * part) >> 31;
                *ours = ours.saturating_add(some);
                *theirs = theirs.saturating_add(grains - some);
            }
        });
    }

    /// Adds `part / 2^31` of one record, each share rounded down to whole grains, and the rest to `rest`; `part` is at most `2^31`.
    ///
    /// Both together change as one histogram would, and no share is moved to another node: in every norm that adds up over the
    /// two they change by no more than one histogram.
    pub fn deposit_part(
        &mut self,
        rest: &mut Histogram,
        nodes: &Nodes,
        place: GridPoint,
        part: u64,
    ) {
        nodes.share_record(place, |first, grains| {
            let ours = self.cells.iter_mut().skip(first);
            let theirs = rest.cells.iter_mut().skip(first);
            for ((ours, theirs), grains) in ours.zip(theirs).zip(grains) {
                // 20 bits of grains and 32 of a part.
                let some = (grains * part) >> 31;
                *ours = ours.saturating_add(some);
                *theirs = theirs.saturating_add(grains - some);
            }
        });
    }
}

impl Nodes {
    /// Shares one record: passes `to` the cell of a node, and the grains of it and of the cells after it, [`GRAINS`] in all.
    ///
    /// Products over the axes are rounded down to whole grains and the rest goes to one of them. So a deposit is a convex
    /// combination of single nodes, times [`GRAINS`], whatever the record: sensitivities rest on that.
    #[inline]
    fn share_record(&self, place: GridPoint, mut to: impl FnMut(usize, &[u64])) {
        match self.spline {
            Spline::Box => self.share_box(place, to),
            Spline::Linear => self.share_linear(place, to),
            Spline::Quadratic => {
                let [x, y, z] = place.0;
                match self.per_axis[..] {
                    [_] => {
                        let (first, grains) = place.spread_on_axis();
                        to(first, &grains);
                    }
                    [_, m] => share_2(
                        m as usize + 3,
                        Stencil::at(x),
                        Stencil::at(y),
                        |first, row| to(first, row),
                    ),
                    [_, m, n] => {
                        let widths = [m as usize + 3, n as usize + 3];
                        share_3(widths, Stencil::at(x), Stencil::at(y), Stencil::at(z), to);
                    }
                    _ => {}
                }
            }
        }
    }

    fn share_box(&self, place: GridPoint, mut to: impl FnMut(usize, &[u64])) {
        let mut index = 0;
        for (m, coordinate) in self.per_axis.iter().zip(place.0) {
            index = index * *m as usize + (coordinate / STEPS).min(m - 1) as usize;
        }
        to(index, &[GRAINS]);
    }

    /// Shares as the quadratic spline does, but the rest goes to the corner whose nodes are the lowest.
    fn share_linear(&self, place: GridPoint, mut to: impl FnMut(usize, &[u64])) {
        // Weights of an axis add up to 2^10.
        const BITS: u32 = STEPS.ilog2();
        let mut indices = [0_usize; 8];
        let mut weights = [1_u64; 8];
        let mut count = 1;
        for (m, coordinate) in self.per_axis.iter().zip(place.0) {
            // At the upper end all of it is on the upper node of the last step.
            let low = (coordinate / STEPS).min(m - 1);
            let above = u64::from(coordinate - low * STEPS);
            for corner in 0..count {
                let index = indices[corner] * (*m as usize + 1) + low as usize;
                let weight = weights[corner];
                indices[corner] = index;
                weights[corner] = weight * (u64::from(STEPS) - above);
                indices[count + corner] = index + 1;
                weights[count + corner] = weight * above;
            }
            count *= 2;
        }
        let grains = &mut weights[..count];
        for grains in grains.iter_mut() {
            // At most three weights of 10 bits, and the 20 bits of the grains.
            *grains = (*grains << GRAIN_BITS) >> (BITS * count.ilog2());
        }
        grains[0] += GRAINS - grains.iter().sum::<u64>();
        for (index, grains) in indices.iter().zip(grains) {
            to(*index, &[*grains]);
        }
    }
}

#[inline]
fn share_2(width: usize, x: Stencil, y: Stencil, mut to: impl FnMut(usize, &[u64; 3])) {
    let mut grains = x
        .weights
        .map(|u| y.weights.map(|v| (u * v) >> (2 * WEIGHT_BITS - GRAIN_BITS)));
    let sum: u64 = grains.iter().flatten().sum();
    grains[1][1] += GRAINS - sum;
    let mut start = x.first * width + y.first;
    for row in grains {
        to(start, &row);
        start += width;
    }
}

fn share_3(
    [width, depth]: [usize; 2],
    x: Stencil,
    y: Stencil,
    z: Stencil,
    mut to: impl FnMut(usize, &[u64]),
) {
    // Three weights of 21 bits fill 63.
    let shift = 3 * WEIGHT_BITS - GRAIN_BITS;
    let mut grains = x
        .weights
        .map(|u| y.weights.map(|v| z.weights.map(|w| (u * v * w) >> shift)));
    let sum: u64 = grains.iter().flatten().flatten().sum();
    grains[1][1][1] += GRAINS - sum;
    for (i, plane) in grains.into_iter().enumerate() {
        let mut start = ((x.first + i) * width + y.first) * depth + z.first;
        for row in plane {
            to(start, &row);
            start += depth;
        }
    }
}

impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Histogram({} cells)", self.cells.len())
    }
}

/// Shares that one axis gives to its three nodes.
struct Stencil {
    /// Index of the lowest of the three: the cell of node `j - 1`, as cells begin at node -1.
    first: usize,
    /// Shares in units of `2^-21`.
    weights: [u64; 3],
}

impl Stencil {
    #[inline]
    fn at(coordinate: u32) -> Self {
        const HALF: i64 = STEPS as i64 / 2;
        let nearest = (coordinate + STEPS / 2) / STEPS;
        let f = i64::from(coordinate) - i64::from(nearest * STEPS);
        let weights = [
            (HALF - f) * (HALF - f),
            6 * HALF * HALF - 2 * f * f,
            (HALF + f) * (HALF + f),
        ];
        Stencil {
            first: nearest as usize,
            weights: weights.map(i64::unsigned_abs),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn deposited(nodes: &Nodes, x: &[f64]) -> Histogram {
        let mut histogram = Histogram::new(nodes);
        histogram.deposit_record(nodes, nodes.place_record(x));
        histogram
    }

    #[test]
    fn a_grid_has_one_to_three_axes_and_fits_in_memory() {
        for wrong in [
            &[][..],
            &[4; 4],
            &[0],
            &[4, 0],
            &[u32::MAX],
            &[u32::MAX; 3],
            &[4_299_998],
            &[2_073, 2_073],
        ] {
            assert_eq!(Nodes::new(wrong), None, "{wrong:?}");
        }
        for right in [&[1][..], &[4_194_303], &[2_070, 2_070], &[159; 3]] {
            assert!(Nodes::new(right).is_some(), "{right:?}");
        }
    }

    #[test]
    fn weights_of_an_axis_are_the_quadratic_spline_and_add_up() {
        for coordinate in 0..=3 * STEPS {
            let stencil = Stencil::at(coordinate);
            assert_eq!(stencil.weights.iter().sum::<u64>(), 1 << WEIGHT_BITS);
            // The spline reproduces the place, and its variance is a quarter of a cell wherever the record lies.
            let moment = |power: u32| -> i64 {
                let node = |i: usize| (stencil.first + i) as i64 - 1;
                let from_record = |i: usize| node(i) * i64::from(STEPS) - i64::from(coordinate);
                (0..3)
                    .map(|i| stencil.weights[i] as i64 * from_record(i).pow(power))
                    .sum()
            };
            assert_eq!(moment(1), 0, "{coordinate}");
            assert_eq!(
                moment(2),
                (1 << WEIGHT_BITS) * i64::from(STEPS * STEPS / 4),
                "{coordinate}"
            );
        }
    }

    #[test]
    fn a_record_on_a_node_is_spread_as_one_six_one() {
        let nodes = Nodes::new(&[4]).unwrap();
        let eighth = GRAINS / 8;
        assert_eq!(
            deposited(&nodes, &[0.0]).cells,
            [eighth, 6 * eighth, eighth, 0, 0, 0, 0]
        );
        assert_eq!(
            deposited(&nodes, &[1.0]).cells,
            [0, 0, 0, 0, eighth, 6 * eighth, eighth]
        );
    }

    #[test]
    fn a_place_lies_on_the_grid_whatever_the_value() {
        let nodes = Nodes::new(&[4]).unwrap();
        for (x, place) in [
            (f64::NAN, 0),
            (-1.0, 0),
            (f64::NEG_INFINITY, 0),
            (2.0, 4096),
            (f64::INFINITY, 4096),
            (0.5, 2048),
        ] {
            assert_eq!(nodes.place_record(&[x]), GridPoint([place, 0, 0]), "{x}");
        }
        let largest = Nodes::new(&[u32::MAX / STEPS]).unwrap();
        assert_eq!(
            deposited(&largest, &[1.0]).cells.iter().sum::<u64>(),
            GRAINS
        );
    }

    #[test]
    fn angles_run_from_the_upper_end_of_an_axis_to_the_lower_one() {
        let nodes = Nodes::of_angles(&[4]).unwrap();
        let eighth = PI / 8.0;
        for (x, place) in [
            (1.0, 0),
            (0.5, 2048),
            (0.0, 4096),
            ((1.0 + eighth.cos()) / 2.0, 512),
            (2.0, 0),
            (-1.0, 4096),
            (f64::INFINITY, 0),
            (f64::NAN, 0),
        ] {
            assert_eq!(nodes.place_record(&[x]), GridPoint([place, 0, 0]), "{x}");
        }
    }

    #[test]
    fn a_full_cell_saturates() {
        let nodes = Nodes::new(&[1]).unwrap();
        let mut histogram = Histogram {
            cells: vec![u64::MAX - 1, 7, u64::MAX - GRAINS, 0],
        };
        histogram.deposit_record(&nodes, nodes.place_record(&[0.0]));
        assert_eq!(
            histogram.cells,
            [
                u64::MAX,
                7 + 6 * GRAINS / 8,
                u64::MAX - GRAINS + GRAINS / 8,
                0
            ]
        );
    }

    #[test]
    fn debug_output_holds_no_counts() {
        let nodes = Nodes::new(&[4]).unwrap();
        assert_eq!(
            format!("{:?}", deposited(&nodes, &[0.3])),
            "Histogram(7 cells)"
        );
    }

    proptest! {
        #[test]
        fn many_records_at_once_are_one_after_another(
            per_axis in prop::collection::vec(1_u32..9, 1..=3),
            points in prop::collection::vec(prop::array::uniform3(-0.1..=1.1_f64), 0..50),
        ) {
            for spline in Spline::ALL {
                let nodes = Nodes::shared_by(spline, &per_axis).unwrap();
                let (mut each, mut all) = (Histogram::new(&nodes), Histogram::new(&nodes));
                let places: Vec<_> = points.iter().map(|x| nodes.place_record(x)).collect();
                places.iter().for_each(|place| each.deposit_record(&nodes, *place));
                let axes = [0, 1, 2].map(|axis| places.iter().map(|place| place.0[axis]).collect::<Vec<_>>());
                all.deposit_all(&nodes, axes.each_ref().map(Vec::as_slice));
                prop_assert!(each == all);
            }
        }

        #[test]
        fn every_record_deposits_exactly_its_grains_around_itself(
            axes in prop::collection::vec((1_u32..40, 0.0..=1.0_f64), 1..=3)
        ) {
            let (per_axis, x): (Vec<u32>, Vec<f64>) = axes.into_iter().unzip();
            let nodes = Nodes::new(&per_axis).unwrap();
            let cells = deposited(&nodes, &x).cells;
            prop_assert_eq!(cells.iter().sum::<u64>(), GRAINS);
            let widths: Vec<usize> = nodes.widths().collect();
            for (index, _) in cells.iter().enumerate().filter(|(_, grains)| **grains > 0) {
                let mut rest = index;
                for axis in (0..x.len()).rev() {
                    let node = (rest % widths[axis]) as f64 - 1.0;
                    rest /= widths[axis];
                    prop_assert!((node - x[axis] * f64::from(per_axis[axis])).abs() <= 1.501);
                }
            }
        }
    }
}
