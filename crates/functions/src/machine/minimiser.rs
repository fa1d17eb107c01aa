//! The minimiser of one window, and the cost of finding it.

use super::landmarks::LandmarkMap;
use super::newton::GramFactor;
use super::pairs::RecordPairs;
use super::settings::MachineSettings;
use super::solver::RiskProblem;
use super::space::Features;
use bernstream_release::target::EvaluationCost;
use bernstream_release::window::accumulator::{Accumulator, Record};

/// The minimiser of one window, to within the solver's tolerance.
pub(super) enum Minimiser {
    /// `sum_i b_i K(x_i, .)`.
    Kernels(Vec<MinimiserTerm>),
    /// `<w, phi(.)>`.
    Features(Vec<f64>),
}

/// `b_i K(x_i, .)`.
pub(super) struct MinimiserTerm {
    pub coefficient: f64,
    pub place: [f64; 3],
}

impl Minimiser {
    /// The minimiser for at most `m` records.
    pub fn find_minimiser(
        settings: &MachineSettings,
        map: Option<&LandmarkMap>,
        problem: &RiskProblem,
        records: &[Record],
    ) -> Self {
        let MachineSettings {
            kernel,
            loss,
            dimensions: axes,
            ..
        } = *settings;
        let labels: Vec<f64> = records
            .iter()
            .map(|record| loss.signed_label(record.label()))
            .collect();
        if let Some(map) = map {
            let features = Features::new(records.len(), map.width(), |i, row| {
                map.write_features(&place(&records[i])[..axes], row);
            });
            return Minimiser::Features(features.weights(&problem.solve(&features, &labels)));
        }
        let places: Vec<[f64; 3]> = records.iter().map(place).collect();
        let coefficients = problem.solve_pairs(&RecordPairs::new(kernel, axes, &places), &labels);
        let mut terms = Vec::new();
        for (coefficient, place) in coefficients.into_iter().zip(places) {
            if coefficient != 0.0 {
                terms.push(MinimiserTerm { coefficient, place });
            }
        }
        Minimiser::Kernels(terms)
    }
}

fn place(record: &Record) -> [f64; 3] {
    [record.x(0), record.x(1), record.x(2)]
}

/// The most that solving takes, and the values at so many places.
pub(super) fn solving_cost(
    settings: &MachineSettings,
    map: Option<&LandmarkMap>,
    problem: &RiskProblem,
    places: usize,
) -> EvaluationCost {
    let records = u64::from(settings.records);
    let width = map.map_or(records, |map| map.width() as u64);
    let entries = records * width;
    let bytes = match map {
        None => entries * 8 + GramFactor::most_bytes(records),
        Some(_) => entries * 4,
    };
    EvaluationCost {
        bytes,
        products: entries
            .saturating_mul(problem.most_rounds())
            .saturating_add(records * places as u64),
    }
}

/// The records that count: a window keeps no more, and the bounds rest on it.
pub(crate) fn first_records(accumulator: &Accumulator, most: u32) -> &[Record] {
    let records = accumulator.records();
    records.get(..most as usize).unwrap_or(records)
}
