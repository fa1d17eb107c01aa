//! A Gaussian process, point by point: what it makes of a point, and how a row of it is rounded.

/// Number that stands for 1 in a row.
pub(super) const ONE: f64 = 16_777_216.0;

/// The least square of a pivot.
pub(super) const LEAST: f64 = 1e-8;

/// A Gaussian process with the covariance of a kernel, point by point. It sees noisy values only.
pub(super) trait GaussianProcess {
    /// Data of a new point besides the rest of a [`PointOffer`].
    type Place;

    fn offer(&self, point: &[f64]) -> PointOffer<Self::Place>;

    /// Takes the point with its noisy coordinate. The value there.
    fn take(&mut self, offer: PointOffer<Self::Place>, coordinate: f64) -> f64;
}

/// Offer of a process for a point, before anybody looks at the value there.
pub(super) struct PointOffer<Place> {
    /// `K(x, x)`, and what the points so far leave of it: the square of the pivot.
    pub whole: f64,
    pub rest: f64,
    /// `m(x)`.
    pub mean: f64,
    /// `R` in `2^-24`, by the number of the point; the last is the new point's own.
    pub row: Vec<RowEntry>,
    pub reach: ChangeGrowth,
    pub place: Place,
}

/// Growth of a change by the rows with the new one.
pub(super) struct ChangeGrowth {
    /// `q`, or more.
    pub stretch: f64,
    /// `s`, or more.
    pub spread: f64,
}

/// An entry of a row.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowEntry {
    /// Number of its point.
    pub number: usize,
    pub weight: i64,
}

/// A row of `L^-1` in whole numbers: `weights` those of the conditional mean.
pub(super) fn whole_row(
    weights: impl Iterator<Item = (usize, f64)>,
    own: usize,
    rest: f64,
) -> Vec<RowEntry> {
    let pivot = rest.sqrt();
    let mut row: Vec<RowEntry> = weights
        .map(|(number, weight)| RowEntry {
            number,
            weight: whole_entry(-weight, pivot),
        })
        .collect();
    row.push(RowEntry {
        number: own,
        weight: whole_entry(1.0, pivot),
    });
    row
}

/// A cast from a float saturates; a row with such an entry is refused.
fn whole_entry(entry: f64, pivot: f64) -> i64 {
    (entry * ONE / pivot).round() as i64
}

/// The size of a row in the 1-norm.
pub(super) fn row_norm(row: &[RowEntry]) -> f64 {
    row.iter()
        .map(|entry| entry.weight.unsigned_abs() as f64 / ONE)
        .sum()
}
