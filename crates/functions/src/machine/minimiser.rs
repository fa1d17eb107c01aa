//! The minimiser of one window, and what finding it takes.

use super::landmarks::Map;
use super::newton::Factor;
use super::pairs::Pairs;
use super::settings::Settings;
use super::solver::Problem;
use super::space::Features;
use bernstream_release::target::Cost;
use bernstream_release::window::accumulator::{Accumulator, Record};

/// The minimiser of one window, to within the solver's tolerance.
pub(super) enum Minimiser {
    /// `sum_i b_i K(x_i, .)`.
    Kernels(Vec<(f64, [f64; 3])>),
    /// `<w, phi(.)>`.
    Features(Vec<f64>),
}

impl Minimiser {
    /// At most `m` records.
    pub fn of(
        settings: &Settings,
        map: Option<&Map>,
        problem: &Problem,
        records: &[Record],
    ) -> Self {
        let Settings {
            kernel,
            loss,
            dimensions: axes,
            ..
        } = *settings;
        let x = |record: &Record| [record.x(0), record.x(1), record.x(2)];
        let labels: Vec<f64> = records
            .iter()
            .map(|record| loss.label(record.label()))
            .collect();
        if let Some(map) = map {
            let write = |i: usize, row: &mut [f32]| map.features(&x(&records[i])[..axes], row);
            let features = Features::new(records.len(), map.width(), write);
            return Minimiser::Features(features.weights(&problem.solve(&features, &labels)));
        }
        let places: Vec<[f64; 3]> = records.iter().map(x).collect();
        let b = problem.solve_pairs(&Pairs::new(kernel, axes, &places), &labels);
        Minimiser::Kernels(
            b.into_iter()
                .zip(places)
                .filter(|(b, _)| *b != 0.0)
                .collect(),
        )
    }
}

/// What solving takes at most, and the values at so many places.
pub(super) fn cost(
    settings: &Settings,
    map: Option<&Map>,
    problem: &Problem,
    places: usize,
) -> Cost {
    let records = u64::from(settings.records);
    let (entries, bytes) = match map {
        None => (
            records * records,
            records * records * 8 + Factor::bytes(records),
        ),
        Some(map) => (
            records * map.width() as u64,
            records * map.width() as u64 * 4,
        ),
    };
    Cost {
        bytes,
        products: entries
            .saturating_mul(problem.rounds())
            .saturating_add(records * places as u64),
    }
}

/// The records that count: a window keeps no more, and the bounds rest on it.
pub(crate) fn at_most(accumulator: &Accumulator, most: u32) -> &[Record] {
    let records = accumulator.records();
    records.get(..most as usize).unwrap_or(records)
}
