//! Those who send the records of an episode, all the while.

use std::thread;
use std::time::Duration;

use bernstream_synopsis::clock::Timestamp;
use rand::rngs::ChaCha20Rng;
use rand::{RngExt, SeedableRng};
use rdkafka::producer::{BaseRecord, DefaultProducerContext, Producer, ThreadedProducer};

use crate::harness::setup::{Row, Setup, message};
use crate::harness::{PATIENCE, kafka};

use super::schedule::{Grid, Schedule};

/// A producer that finds a new leader soon.
const HASTY: [(&str, &str); 3] = [
    ("linger.ms", "0"),
    ("request.timeout.ms", "2000"),
    ("topic.metadata.refresh.interval.ms", "1000"),
];

type Client = ThreadedProducer<DefaultProducerContext>;

/// How many messages come before the windows of the past begin to close, at least.
const BEFORE: usize = 60;

pub struct Sender<'a> {
    setup: &'a Setup,
    grid: Grid,
    length: Duration,
    windows: u32,
    random: ChaCha20Rng,
    plain: Client,
    /// Whether some messages are in transactions: not where brokers lose their power, for they do not sync what they know of those.
    has_transactions: bool,
    /// The producer of transactions, some of which are aborted.
    transactional: Option<Client>,
    id: String,
}

impl<'a> Sender<'a> {
    pub fn new(setup: &'a Setup, schedule: &Schedule) -> Self {
        let plain = setup.producer(&[&[("enable.idempotence", "true")], HASTY.as_slice()].concat());
        let id = kafka::fresh_name("storm");
        let random = ChaCha20Rng::seed_from_u64(schedule.seed);
        let length = setup.start_of(1).since(setup.origin);
        let grid = schedule.grid;
        let windows = schedule.windows;
        let has_transactions = !schedule.loses_power();
        Sender {
            setup,
            grid,
            length,
            windows,
            random,
            plain,
            has_transactions,
            transactional: None,
            id,
        }
    }

    /// Sends what comes before the first window may close.
    pub fn begin(&mut self) {
        (0..BEFORE).for_each(|_| self.one());
        self.plain.flush(PATIENCE).expect("the broker takes it");
    }

    /// Sends until `end`, when all windows have closed; the topic says what of it has come.
    pub fn run(mut self, end: Timestamp) {
        while Timestamp::now() < end {
            self.one();
            thread::sleep(Duration::from_millis(self.random.random_range(5..30)));
        }
        (0..5).for_each(|_| self.one());
        let _ = self.plain.flush(PATIENCE);
        if !self.has_transactions {
            return;
        }
        // No transaction of this one is open any more.
        let last = self.transactional.take();
        drop(last);
        let closed = self.client();
        assert!(
            closed.is_some(),
            "the transactions of {} cannot be ended",
            self.id
        );
    }

    /// A message, or a transaction of some.
    fn one(&mut self) {
        match self.random.random_bool(0.1) {
            true if self.has_transactions => self.transaction(),
            _ => {
                let (partition, payload) = self.message();
                self.send(&self.plain, partition, &payload);
            }
        }
    }

    fn client(&self) -> Option<Client> {
        let client = self
            .setup
            .producer(&[&[("transactional.id", self.id.as_str())], HASTY.as_slice()].concat());
        client.init_transactions(PATIENCE).ok().map(|()| client)
    }

    /// A transaction that is open for a while. One that fails is ended by the next client of its name.
    fn transaction(&mut self) {
        let Some(client) = self.transactional.take().or_else(|| self.client()) else {
            return;
        };
        if client.begin_transaction().is_err() {
            return;
        }
        for _ in 0..self.random.random_range(1..4) {
            let (partition, payload) = self.message();
            self.send(&client, partition, &payload);
        }
        thread::sleep(Duration::from_millis(self.random.random_range(0..150)));
        let ended = match self.random.random_bool(0.6) {
            true => client.commit_transaction(PATIENCE),
            false => client.abort_transaction(PATIENCE),
        };
        self.transactional = ended.is_ok().then_some(client);
    }

    fn send(&self, client: &Client, partition: i32, payload: &[u8]) {
        let _ = client.send(
            BaseRecord::<(), _>::to(&self.setup.input)
                .partition(partition)
                .payload(payload),
        );
    }

    fn message(&mut self) -> (i32, Vec<u8>) {
        let count = match self.grid {
            Grid::Past => self.random.random_range(1..120),
            Grid::Live => self.random.random_range(1..8),
        };
        let rows: Vec<Row> = (0..count).map(|_| self.row()).collect();
        (self.random.random_range(0..2), message(&rows))
    }

    fn row(&mut self) -> Row {
        let random = &mut self.random;
        let micros = match self.grid {
            Grid::Past => {
                let first = self.setup.origin.minus(self.length).micros();
                random.random_range(first..self.setup.start_of(self.windows + 1).micros())
            }
            // Most are of now; some are late, some from the future.
            Grid::Live => {
                let off = match random.random_range(0..20) {
                    0 => random.random_range(0..2_000_000),
                    1..4 => random.random_range(-4_000_000..0),
                    _ => random.random_range(-600_000..0),
                };
                Timestamp::now().micros() + off
            }
        };
        let key = ["a", "b", "a", "b", "a", "b", "unknown"][random.random_range(0..7)];
        let value = match random.random_range(0..20) {
            0 => f64::NAN,
            1 => random.random_range(-50.0..150.0),
            _ => random.random_range(0.0..100.0),
        };
        Row { micros, key, value }
    }
}
