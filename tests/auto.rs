//! `degree = "auto"`, `order = "auto"`: what is predicted is what is found, and the pair that is taken is nearly the best.
#![cfg(feature = "worker")]



use bernstream::config::Settings;
use bernstream::config::auto::Candidate;
use bernstream::mechanism::noise::Generator;
use bernstream::synopsis::Synopsis;
use bernstream::synopsis::band::Band;
use bernstream::target::{Basis, Shape};
use bernstream::window::keep::State;
use rand::rngs::ChaCha12Rng;
use rand::{RngExt, SeedableRng};
use rand_distr::StandardNormal;

const FLIGHTS: &str = include_str!("../config/flights.toml");
const ORDERS: [u32; 10] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32];
const POINTS: u32 = 400;
const WINDOWS: u32 = 10;

/// One release of flights: bandwidth in minutes on a domain of 210, records, price.
#[derive(Clone, Copy)]
struct Case {
    bandwidth: f64,
    records: u64,
    price: &'static str,
}

impl Case {
    fn settings(&self, degree: &str, order: &str) -> Settings {
        let expected = match degree.starts_with('"') || order.starts_with('"') {
            true => format!("\nexpected_records = {}", self.records),
            false => String::new(),
        };
        let text = FLIGHTS
            .replace("epsilon = 1.0\ndegree = 40\norder = 4", &format!("epsilon = {}\ndegree = {degree}\norder = {order}{expected}", self.price))
            .replace("bandwidths = [10]", &format!("bandwidths = [{}]", self.bandwidth));
        Settings::parse(&text, "test").unwrap()
    }

    /// Places in the unit interval: half in a cluster as wide as the bandwidth, half anywhere.
    fn window(&self, seed: u32) -> Vec<f64> {
        let mut rng = ChaCha12Rng::seed_from_u64(u64::from(seed));
        let (centre, width) = (rng.random_range(0.1..0.9), self.bandwidth / 210.0);
        let place = |i: u64| match i % 2 {
            0 => (centre + width * rng.sample::<f64, _>(StandardNormal)).clamp(0.0, 1.0),
            _ => rng.random(),
        };
        (0..self.records).map(place).collect()
    }

    /// What every record adds, at [`POINTS`] + 1 places: the function without operator and noise, in records a minute.
    fn exact(&self, records: &[f64]) -> Vec<f64> {
        let width = self.bandwidth / 210.0;
        let peak = 1.0 / ((2.0 * std::f64::consts::PI).sqrt() * self.bandwidth);
        let at = |y: f64| records.iter().map(|d| (-((y - d) / width).powi(2) / 2.0).exp()).sum::<f64>() * peak;
        (0..=POINTS).map(|i| at(f64::from(i) / f64::from(POINTS))).collect()
    }
}

/// Every pair that `auto` looks at with its largest error, the mean over windows: that of the noise alone and in all.
struct Found {
    degree: u32,
    order: u32,
    noise: f64,
    error: f64,
}

fn sup(values: &[f64], exact: &[f64]) -> f64 {
    values.iter().zip(exact).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

fn found(case: Case, degrees: &[u32]) -> Vec<Found> {
    let band = Band::simulate(Shape { dimensions: 1, degree: 1, basis: Basis::Affine }, 1);
    let mut all = Vec::new();
    for degree in degrees {
        let settings = case.settings(&degree.to_string(), "1");
        let plan = settings.plan(&band, true).unwrap();
        let keep = plan.target.keep();
        let mut sums = vec![(0.0, 0.0); ORDERS.len()];
        for seed in 0..WINDOWS {
            let records = case.window(seed);
            let exact = case.exact(&records);
            let truth: State = keep.state(records.iter().map(|x| keep.record(&[*x], 0.0)));
            let truth = plan.target.evaluate(&truth);
            let noisy = plan.mechanism.release(&truth, &mut Generator::frozen([seed as u8; 32]));
            let natural = plan.natural(&noisy);
            let smooth: Vec<f64> = truth.reveal().iter().map(|v| *v as f64 * settings.function.unit).collect();
            let noise: Vec<f64> = natural.iter().zip(&smooth).map(|(a, b)| a - b).collect();
            for (order, (sum_of_noise, sum)) in ORDERS.iter().zip(&mut sums) {
                let at = |values: &[f64]| {
                    let synopsis = Synopsis::new(plan.description.clone(), values.to_vec()).unwrap();
                    let evaluator = synopsis.evaluator(*order).unwrap();
                    (0..=POINTS).map(|i| evaluator.evaluate(&[-30.0 + 210.0 * f64::from(i) / f64::from(POINTS)]).unwrap()).collect::<Vec<f64>>()
                };
                *sum_of_noise += sup(&at(&noise), &vec![0.0; exact.len()]);
                *sum += sup(&at(&natural), &exact);
            }
        }
        all.extend(ORDERS.iter().zip(sums).map(|(order, (noise, error))| Found {
            degree: *degree,
            order: *order,
            noise: noise / f64::from(WINDOWS),
            error: error / f64::from(WINDOWS),
        }));
    }
    all
}

#[test]
fn look() {
    for (bandwidth, records, price) in [(10.0, 300, "1.0"), (10.0, 100_00, "1.0"), (40.0, 300, "1.0"), (10.0, 300, "0.1"), (10.0, 20, "1.0")] {
        let case = Case { bandwidth, records, price };
        let started = std::time::Instant::now();
        let table = case.settings("\"auto\"", "\"auto\"").release.auto.unwrap();
        println!("{bandwidth} {records} {price}: auto in {:?}", started.elapsed());
        let degrees: Vec<u32> = table.candidates.iter().map(|c| c.degree).collect();
        let found = found(case, &degrees);
        println!(" found in {:?}", started.elapsed());
        for candidate in &table.candidates {
            let f = found.iter().find(|f| (f.degree, f.order) == (candidate.degree, candidate.order)).unwrap();
            println!("  {:?} predicted {:.4} {:.4} found noise {:.4} error {:.4}", (candidate.degree, candidate.order), candidate.noise, candidate.error(), f.noise, f.error);
        }
        let best = found.iter().min_by(|a, b| a.error.total_cmp(&b.error)).unwrap();
        let b = table.best;
        let taken = found.iter().find(|f| (f.degree, f.order) == (b.degree, b.order)).unwrap();
        println!("  best {:?} {:.4}; taken {:?} {:.4} ratio {:.3}", (best.degree, best.order), best.error, (b.degree, b.order), taken.error, taken.error / best.error);
    }
}
