//! The plan of settings, its bands taken for 1: for what does not look at bands, which take their time.

use bernstream_config::WorkerSettings;
use bernstream_release::choice::Candidates;
use bernstream_synopsis::band::Band;
use bernstream_worker::pipeline::ReleasePlan;

pub fn plan(settings: &WorkerSettings) -> ReleasePlan {
    let band = Band {
        level: 0.95,
        half_width: 1.0,
        weights: vec![1.0],
        pointwise: 1.0,
        draws: 1,
        expected_sup: 1.0,
        norm: 1.0,
    };
    settings
        .plan(|_| Candidates::new(band.clone(), Vec::new()), true)
        .expect("a plan")
}
