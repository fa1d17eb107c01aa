//! A synopsis of simulated flights, computed like the worker does: bounded, summed, priced, drawn, described.

use std::error::Error;
use std::sync::Arc;

use bernstream_noise::Mechanism;
use bernstream_noise::noise::Generator;
use bernstream_release::Target;
use bernstream_release::window::accumulator::{Accumulator, AccumulatorSpec, Record};
use bernstream_release::window::{CountedKeys, KeyCounting, KeyTotals, RECORD_GRAINS};
use bernstream_synopsis::Adjacency;
use bernstream_synopsis::Synopsis;
use bernstream_synopsis::band::Band;
use bernstream_synopsis::description;
use bernstream_synopsis::description::{
    AxisDescription, Basis, BlockCharge, CalibrationBound, Description, Digests, FORMAT,
    NoiseDescription, NoiseDistribution, PaymentRow, PrivacyDefinition, PrivacyDescription,
    SensitivityDescription, UnitDescription,
};
use bernstream_synopsis::form_error;
use bernstream_synopsis::grid::Span;
use bernstream_synopsis::price::Price;
use bernstream_synopsis::told_caps::UnitBin;
use rand::rngs::ChaCha12Rng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Exp1, StandardNormal};

/// The axes of the records. Every record also has a label: the arrival delay, from -60 to 150 minutes.
pub const AXES: [(&str, f64, f64); 3] = [
    ("dep_delay", -30.0, 180.0),
    ("hour", 0.0, 24.0),
    ("distance", 0.0, 3000.0),
];
pub const LABEL: (&str, f64, f64) = ("arr_delay", -60.0, 150.0);
/// Minutes of arrival delay above which a flight counts as late.
pub const LATE: f64 = 15.0;

/// What the label of a record is.
#[derive(Clone, Copy)]
pub enum Labelled {
    Number,
    /// Late or not.
    Class,
    /// Early, not late, late.
    Classes,
}

/// What is released, and at what price.
pub struct Release {
    pub name: &'static str,
    pub key: Option<&'static str>,
    pub axes: usize,
    pub records: usize,
    pub target: Arc<dyn Target>,
    pub about: description::TargetDescription,
    pub meaning: String,
    /// The factor from the target's unit to natural units: one over the volume, half the label's range, or 1.
    pub stands_for: f64,
    pub offset: f64,
    pub label: Labelled,
    pub law: NoiseDistribution,
    pub price: Price,
    pub adjacency: Adjacency,
    pub order: u32,
}

impl Release {
    /// The synopsis: the same on every call.
    pub fn synopsis(&self) -> Result<Synopsis, Box<dyn Error>> {
        let shape = self.target.shape();
        let exact = self.target.evaluate(&self.accumulator());
        let change = self
            .target
            .sensitivity_in(self.law.norm(), self.adjacency, 1)?;
        let mechanism = Mechanism::calibrated(self.law, change, shape.value_count(), self.price)?;
        let noisy = mechanism.release_noisy(&exact, &mut Generator::frozen([7; 32]));
        let grid = self.target.unit() * self.stands_for;
        let natural = noisy
            .values()
            .iter()
            .map(|value| *value as f64 * grid)
            .collect();
        let published = self.target.publish(natural);
        let on_points = matches!(shape.basis, Basis::Kernel(_));
        let values = match on_points {
            true => published,
            false => published
                .into_iter()
                .map(|value| self.offset + value)
                .collect(),
        };
        let noise = NoiseDescription {
            law: self.law,
            scale: mechanism.scale().units() as f64 * grid,
            grid,
            calibrated: CalibrationBound::Tight,
        };
        let band = Band::simulate(&shape, self.law, self.order).scaled_to_noise(&noise);
        let sensitivity = SensitivityDescription {
            norm: self.law.norm(),
            units: change.0,
            records: 1,
            values: shape.value_count() as u64,
            derived: noise
                .calibrated
                .sensitivity_derivation(&self.about, &shape.basis),
            fresh: None,
        };
        let domain = domain(self.axes);
        let form_error = form_error::density_form_error(&self.about, &shape, self.order, &domain);
        let window = Span {
            start: time("2013-06-18T05:00:00Z")?,
            end: time("2013-06-19T05:00:00Z")?,
        };
        let about = Description {
            format: FORMAT,
            pipeline: "flights".to_owned(),
            release: self.name.to_owned(),
            key: self.key.map(str::to_owned),
            key_columns: Vec::new(),
            window,
            published: time("2013-06-19T06:01:00Z")?,
            grid_end: None,
            target: self.about.clone(),
            meaning: self.meaning.clone(),
            domain,
            names: None,
            offset: if on_points { self.offset } else { 0.0 },
            degree: shape.degree,
            basis: shape.basis,
            order: self.order,
            noise,
            sensitivity: Some(sensitivity),
            privacy: PrivacyDescription {
                definition: PrivacyDefinition::from_total(self.price),
                unit: UnitDescription::Record,
                in_words: in_words(self.price, self.adjacency),
                adjacency: self.adjacency,
                implies: None,
                price: self.price,
                blocks: vec![BlockCharge {
                    start: window.start,
                    end: window.end,
                    spent: self.price,
                    total: self.price,
                }],
            },
            choices: Vec::new(),
            band,
            smoothness: None,
            form_error,
            reading: None,
            not_protected: vec![
                "exact publication times when the worker is late, and that it has stopped"
                    .to_owned(),
                "copies of one row that a producer wrote twice: use idempotent producers"
                    .to_owned(),
            ],
            incomplete: false,
            digests: Digests {
                configuration: "9f86d081884c7d659a2feaa0c55ad015".to_owned(),
                program: "bernstream 0.1.0".to_owned(),
            },
            ledger: PaymentRow {
                id: "3b1f0c7e9a2d4f60".to_owned(),
                sequence: 17,
            },
            panes: None,
            synthetic: true,
        };
        Ok(Synopsis::new(about, values)?)
    }

    /// What a window keeps of the flights.
    fn accumulator(&self) -> Accumulator {
        let spec = self.target.accumulator();
        if let AccumulatorSpec::Keys(counting) = &spec {
            return Accumulator::Keys(CountedKeys {
                totals: carrier_totals(counting),
                units: passengers_of_bins(&counting.unit_bins),
            });
        }
        let records = self
            .flights()
            .into_iter()
            .map(|(x, label)| spec.record(&x, label));
        spec.filled_accumulator(records.collect::<Vec<Record>>())
    }

    /// Points in the unit cube, and labels in `[-1, 1]`, or the place of a class among several.
    fn flights(&self) -> Vec<(Vec<f64>, f64)> {
        let mut rng = ChaCha12Rng::seed_from_u64(2013);
        let flight = |_| {
            let rush = if rng.random() { 8.0 } else { 17.5 };
            let hour = (rush + 2.5 * rng.sample::<f64, _>(StandardNormal)).clamp(0.0, 24.0);
            let late = rng.random::<f64>() < 0.2 + hour / 60.0;
            let waits: f64 = if late {
                30.0 * rng.sample::<f64, _>(Exp1)
            } else {
                0.0
            };
            let delay = -4.0 + 4.0 * rng.sample::<f64, _>(StandardNormal) + waits;
            let distance = 400.0 + 800.0 * rng.sample::<f64, _>(Exp1);
            let arrival = delay - 6.0 + 14.0 * rng.sample::<f64, _>(StandardNormal);
            let place = [delay, hour, distance]
                .into_iter()
                .zip(AXES)
                .take(self.axes);
            let place = place
                .map(|(x, (_, min, max))| (x.clamp(min, max) - min) / (max - min))
                .collect();
            let (_, min, max) = LABEL;
            let label = match self.label {
                Labelled::Class if arrival > LATE => 1.0,
                Labelled::Class => -1.0,
                Labelled::Classes => {
                    [0.0, LATE].iter().filter(|least| arrival > **least).count() as f64
                }
                Labelled::Number => 2.0 * (arrival.clamp(min, max) - min) / (max - min) - 1.0,
            };
            (place, label)
        };
        (0..self.records).map(flight).collect()
    }
}

/// Passengers of a carrier on one day.
struct Carrier {
    key: &'static str,
    users: u32,
    records: u32,
    /// Mean of what a record costs, of the way from the least to the most.
    mean: f64,
    /// Sum of what the passengers paid, each bounded.
    sum: f64,
}

const CARRIERS: [Carrier; 6] = [
    Carrier {
        key: "AA",
        users: 412,
        records: 655,
        mean: 0.43,
        sum: 81_250.0,
    },
    Carrier {
        key: "B6",
        users: 398,
        records: 702,
        mean: 0.21,
        sum: 47_100.0,
    },
    Carrier {
        key: "DL",
        users: 231,
        records: 240,
        mean: 0.9,
        sum: 60_400.0,
    },
    Carrier {
        key: "OO",
        users: 3,
        records: 4,
        mean: 0.5,
        sum: 700.0,
    },
    Carrier {
        key: "Lin\u{f3}pe \"air\"",
        users: 57,
        records: 61,
        mean: 0.66,
        sum: -950.0,
    },
    Carrier {
        key: "nobody",
        users: 0,
        records: 0,
        mean: 0.0,
        sum: 0.0,
    },
];

/// Names of the carriers, the keys of counts by key.
pub fn carriers() -> Vec<String> {
    CARRIERS
        .iter()
        .map(|carrier| carrier.key.to_owned())
        .collect()
}

fn carrier_totals(counting: &KeyCounting) -> Vec<KeyTotals> {
    let mut totals = Vec::new();
    for carrier in &CARRIERS {
        let grains = i128::from(carrier.records) * i128::from(RECORD_GRAINS);
        let mean = (carrier.mean * grains as f64).round() as i128;
        // Values are spread evenly around the mean, as far as the nearer end of the value, or half as far.
        let [low, middle, high] = if counting.keeps_squares {
            let spread = carrier.mean.min(1.0 - carrier.mean) / 2.0;
            let square = carrier.mean * carrier.mean + spread * spread / 3.0;
            let high = (square * grains as f64).round() as i128;
            [grains - 2 * mean + high, 2 * (mean - high), high]
        } else {
            [grains - mean, 0, mean]
        };
        totals.push(KeyTotals {
            users: carrier.users.into(),
            records: carrier.records.into(),
            low,
            middle,
            high,
            sum: match &counting.sum {
                Some(bounds) => (carrier.sum / bounds.step()).round() as i128,
                None => 0,
            },
            places: counting
                .grid
                .map_or(Vec::new(), |grid| spread_users(carrier, grid.places)),
        });
    }
    totals
}

/// Passengers that flew with one carrier, with two, and so on: with two at most that count they are the users of all carriers.
const PASSENGERS: [u64; CARRIERS.len()] = [521, 240, 31, 12, 5, 2];

fn passengers_of_bins(bins: &[UnitBin]) -> Vec<u64> {
    let mut passengers = Vec::new();
    for bin in bins {
        let own = (1..).zip(PASSENGERS);
        let own = own.filter(|(carriers, _)| (bin.least..=bin.most).contains(carriers));
        passengers.push(own.map(|(_, passengers)| passengers).sum());
    }
    passengers
}

/// The users of a carrier at places around its mean, fewer the further they are.
fn spread_users(carrier: &Carrier, places: u32) -> Vec<u64> {
    let mut users = vec![0; places as usize];
    let middle = carrier.mean * f64::from(places - 1);
    for user in 0..carrier.users {
        let part = (f64::from(user) + 0.5) / f64::from(carrier.users);
        let place = middle + 0.1 * f64::from(places) * (part / (1.0 - part)).ln();
        users[place.round().clamp(0.0, f64::from(places - 1)) as usize] += 1;
    }
    users
}

pub fn domain(axes: usize) -> Vec<AxisDescription> {
    let axis = |(column, min, max): (&str, f64, f64)| AxisDescription {
        column: column.to_owned(),
        min,
        max,
    };
    AXES.into_iter().take(axes).map(axis).collect()
}

pub fn time(text: &str) -> Result<bernstream_synopsis::clock::Timestamp, String> {
    bernstream_synopsis::clock::Timestamp::parse_argument(text)
}

fn in_words(price: Price, adjacency: Adjacency) -> String {
    let who = match adjacency {
        Adjacency::AddRemove => "One record more or less changes",
        Adjacency::ReplaceOne => "Other values in one record change",
    };
    format!("{who} the probability of what is published by no more than a price of {price} allows.")
}
