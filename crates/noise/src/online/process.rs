//! A Gaussian process, point by point: what it makes of a point, and how a row of it is rounded.

/// What 1 is in a row.
pub(super) const ONE: f64 = 16_777_216.0;

/// The least square of a pivot.
pub(super) const LEAST: f64 = 1e-8;

/// A Gaussian process with the covariance of a kernel, point by point. It sees noisy values only.
pub(super) trait Process {
    /// What a new point needs besides the rest of an [`Offer`].
    type Place;

    fn offer(&self, point: &[f64]) -> Offer<Self::Place>;

    /// Takes the point with its noisy coordinate. The value there.
    fn take(&mut self, offer: Offer<Self::Place>, coordinate: f64) -> f64;
}

/// What a process makes of a point before anybody looks at the value there.
pub(super) struct Offer<Place> {
    /// `K(x, x)`, and what the points so far leave of it: the square of the pivot.
    pub whole: f64,
    pub rest: f64,
    /// `m(x)`.
    pub mean: f64,
    /// `R` in `2^-24`, by the number of the point; the last is the new point's own.
    pub row: Vec<(usize, i64)>,
    pub reach: Reach,
    pub place: Place,
}

/// What the rows with the new one can make of a change.
pub(super) struct Reach {
    /// `q`, or more.
    pub stretch: f64,
    /// `s`, or more.
    pub spread: f64,
}

/// A row of `L^-1` in whole numbers: `weights` those of the conditional mean.
pub(super) fn whole_row(
    weights: impl Iterator<Item = (usize, f64)>,
    own: usize,
    rest: f64,
) -> Vec<(usize, i64)> {
    let pivot = rest.sqrt();
    // A cast from a float saturates; such a row is refused.
    let whole = |entry: f64| (entry * ONE / pivot).round() as i64;
    weights
        .map(|(number, weight)| (number, whole(-weight)))
        .chain([(own, whole(1.0))])
        .collect()
}

/// The size of a row in the 1-norm.
pub(super) fn size(row: &[(usize, i64)]) -> f64 {
    row.iter()
        .map(|(_, weight)| weight.unsigned_abs() as f64 / ONE)
        .sum()
}
