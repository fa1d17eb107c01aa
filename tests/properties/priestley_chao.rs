//! The regression of the diffpriv vignette as a caller's function.

use bernstream_functions::blackbox::{Fitted, RecordFunction};
use bernstream_release::window::accumulator::Record;

#[derive(Clone, Debug)]
pub struct PriestleyChao {
    pub bandwidth: f64,
    /// Weights are gaps of at most this; infinite as in the vignette, where no bound but a sampled one holds.
    pub gap: f64,
}

impl RecordFunction for PriestleyChao {
    fn fit<'a>(&'a self, records: &'a [Record]) -> Fitted<'a> {
        Box::new(move |y| {
            let term = |pair: &[Record]| {
                let z = (y[0] - pair[1].x(0)) / self.bandwidth;
                (pair[1].x(0) - pair[0].x(0)).min(self.gap) * pair[1].label() * (-z * z / 2.0).exp()
            };
            records.windows(2).map(term).sum::<f64>() / self.bandwidth
        })
    }
}
