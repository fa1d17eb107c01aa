//! Records that move a function most: found by trying public places, one record at a time.

use super::shift::distance_of;
use bernstream_noise::Exact;
use bernstream_release::window::accumulator::{AccumulatorSpec, Record};
use bernstream_release::window::{DomainAxis, RecordLabel};
use bernstream_worker::pipeline::{PlannedRelease, ReleaseVariant};

/// A record of one release, in natural units: one value an axis, then the label.
pub(super) type RecordValues = Vec<f64>;

/// The place where a function is asked what a record changes.
pub(super) struct MoverSearch<'a> {
    pub release: &'a PlannedRelease,
    /// The records of others in the window and key.
    pub others: &'a [RecordValues],
}

/// Records that were tried, and the distance that they moved the values.
struct TriedRecords<T> {
    moved: f64,
    records: T,
}

/// The `most` of them that moved the values furthest, the first of all first.
fn furthest<T>(mut tried: Vec<TriedRecords<T>>, most: usize) -> Vec<T> {
    tried.sort_by(|one, other| other.moved.total_cmp(&one.moved));
    let first = tried.into_iter().take(most);
    first.map(|tried| tried.records).collect()
}

/// The number of places that are tried where a function is a sum, and where it is solved for.
const TRIED: [usize; 2] = [64, 10];

impl MoverSearch<'_> {
    /// The `most` records that change the values most when they are added, the first of all first.
    pub fn best_additions(&self, most: usize) -> Vec<RecordValues> {
        let variant = self.release.variants.first();
        let before = self.evaluate_with(None);
        let mut tried = Vec::new();
        for place in self.tried_places() {
            tried.push(TriedRecords {
                moved: distance_of(variant, &self.evaluate_with(Some(&place)), &before),
                records: place,
            });
        }
        furthest(tried, most)
    }

    /// The `most` pairs of records that change the values most when one takes the place of the other.
    pub fn best_replacements(&self, most: usize) -> Vec<[RecordValues; 2]> {
        let variant = self.release.variants.first();
        let places = self.tried_places();
        let exact: Vec<Exact> = places
            .iter()
            .map(|place| self.evaluate_with(Some(place)))
            .collect();
        let all = exact.iter().zip(&places);
        let mut pairs = Vec::new();
        for (index, (one, from)) in all.clone().enumerate() {
            for (other, to) in all.clone().skip(index + 1) {
                pairs.push(TriedRecords {
                    moved: distance_of(variant, one, other),
                    records: [from, to],
                });
            }
        }
        let pairs = furthest(pairs, most).into_iter();
        pairs.map(|pair| pair.map(Clone::clone)).collect()
    }

    /// The values with one record more.
    fn evaluate_with(&self, more: Option<&RecordValues>) -> Exact {
        let ReleaseVariant { target, .. } = self.release.variants.first();
        let spec = target.accumulator();
        let all = self
            .others
            .iter()
            .chain(more)
            .filter_map(|values| self.record_of(&spec, values));
        let most = if let AccumulatorSpec::Records { most } = spec {
            most as usize
        } else {
            usize::MAX
        };
        target.evaluate(&spec.filled_accumulator(all.take(most)))
    }

    fn record_of(&self, spec: &AccumulatorSpec, values: &RecordValues) -> Option<Record> {
        let axes = &self.release.form.axes;
        let x = axes
            .iter()
            .zip(values)
            .map(|(axis, value)| axis.unit_place(*value))
            .collect::<Option<Vec<f64>>>()?;
        let label = match (&self.release.form.label, values.get(axes.len())) {
            (Some(label), Some(value)) => label.of(*value)?,
            _ => 0.0,
        };
        Some(spec.record(&x, label))
    }

    /// Ends, lattice points and points between them, with every label that is extreme.
    fn tried_places(&self) -> Vec<RecordValues> {
        let shape = self.release.variants.first().target.shape();
        let axes = &self.release.form.axes;
        let parts = axis_parts(shape.degree, axes.len());
        let mut all: Vec<RecordValues> = vec![Vec::new()];
        for axis in axes {
            all = extend_each(
                &all,
                &parts
                    .iter()
                    .map(|part| axis_point(axis, *part))
                    .collect::<Vec<_>>(),
            );
        }
        if let Some(label) = &self.release.form.label {
            all = extend_each(&all, &extreme_labels(label));
        }
        let is_sum = !matches!(
            self.release.form.accumulator,
            AccumulatorSpec::Records { .. }
        );
        let tried = if is_sum { TRIED[0] } else { TRIED[1] };
        // Spread over all of them.
        let step = all.len().div_ceil(tried).max(1);
        let last = all.last().cloned();
        all.into_iter().step_by(step).chain(last).collect()
    }
}

/// Parts of an axis: fewer where there are more axes.
fn axis_parts(degree: u32, axes: usize) -> Vec<f64> {
    let lattice = f64::from(degree.max(1));
    let of_lattice = |at: u32| f64::from(at) / lattice;
    let mut parts = vec![0.0, 1.0, 0.5];
    match axes {
        1 => parts.extend(
            (0..=degree.min(40)).flat_map(|at| [of_lattice(at), of_lattice(at) + 0.5 / lattice]),
        ),
        2 => parts.extend([
            0.25,
            of_lattice(degree / 2),
            of_lattice(degree / 3) + 0.5 / lattice,
        ]),
        _ => {}
    }
    parts.retain(|part| *part <= 1.0);
    parts.sort_by(f64::total_cmp);
    parts.dedup();
    parts
}

/// The value at a part of an axis.
pub(super) fn axis_point(axis: &DomainAxis, part: f64) -> f64 {
    (axis.min + part * (axis.max - axis.min)).clamp(axis.min, axis.max)
}

/// The labels that move most: the ends, and the middle.
pub(super) fn extreme_labels(label: &RecordLabel) -> Vec<f64> {
    match label {
        RecordLabel::Number(axis) => [0.0, 0.5, 1.0].map(|part| axis_point(axis, part)).to_vec(),
        RecordLabel::Above(threshold) => vec![threshold - 1.0, threshold + 1.0],
        RecordLabel::Classes(values) => values.clone(),
    }
}

fn extend_each(all: &[RecordValues], more: &[f64]) -> Vec<RecordValues> {
    let with = |values: &RecordValues| {
        let values = values.clone();
        more.iter()
            .map(move |value| {
                values
                    .iter()
                    .copied()
                    .chain([*value])
                    .collect::<RecordValues>()
            })
            .collect::<Vec<_>>()
    };
    all.iter().flat_map(with).collect()
}
