//! Ledgers to test with, and a witness and a sink in memory.
#![allow(dead_code, reason = "each test uses some of it")]

use std::cell::RefCell;
use std::panic::resume_unwind;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use bernstream::clock::Timestamp;
use bernstream::ledger::witness::{self, Claim, Witness, fold};
use bernstream::ledger::{Closing, Genesis, Head, Ledger, Paid, Params, new_id};
use bernstream::mechanism::calibrate::Epsilon;
use bernstream::mechanism::price::Price;
use bernstream::sink::{self, Sink};
use bernstream::source::Positions;
use bernstream::synopsis::Sealed;
use bernstream::window::grid::Span;

/// A temporary folder, in memory where the system has such a place: the tests are about order, not about a disk's patience.
pub fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

pub fn at(minute: i64) -> Timestamp {
    Timestamp::from_micros(minute * 60_000_000)
}

/// The `n`-th window; windows are an hour, blocks two.
pub fn window(n: i64) -> Span {
    Span { start: at(60 * n), end: at(60 * n + 60) }
}

pub fn block(n: i64) -> Span {
    Span { start: at(120 * n), end: at(120 * n + 120) }
}

pub fn price(tenths: u64) -> Price {
    Price::Pure(Epsilon::from_trillionths(tenths * 100_000_000_000))
}

pub fn params(folder: &Path) -> Params {
    Params { path: folder.to_path_buf(), keep_published: Duration::from_secs(3600) }
}

pub fn genesis(first: Timestamp, witness: &str, previous: Option<Head>) -> Genesis {
    Genesis {
        ledger: new_id().unwrap(),
        created: at(0),
        settings: "{}".into(),
        total: price(10),
        first,
        backfill_until: None,
        input: "input".into(),
        witness: witness.into(),
        previous,
    }
}

/// A message of `window` whose bytes nobody else draws.
pub fn sealed(window: Span, key: &str, draw: u64) -> Sealed {
    let headers = [("ce_source", "/bernstream/p/r"), ("ce_subject", key), ("window_start", &window.start.to_string())];
    let headers = headers.map(|(name, value)| (name.to_string(), value.to_string())).to_vec();
    Sealed { key: format!("p/{key}"), headers, bytes: draw.to_be_bytes().repeat(100) }
}

/// The next window of the grid, published at its end.
pub fn closing(ledger: &Ledger, keys: &[&str], tenths: u64, draw: u64) -> Closing {
    let start = ledger.next_window();
    let window = Span { start, end: start.plus(Duration::from_secs(3600)) };
    let n = start.micros().div_euclid(7_200_000_000);
    Closing {
        window,
        publish_at: window.end,
        charges: vec![(block(n), price(tenths))],
        ends: Positions([(0, n), (1, 7)].into()),
        sealed: keys.iter().map(|key| sealed(window, key, draw)).collect(),
    }
}

/// What becomes of an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Lands,
    LandsUnheard,
    Lost,
    Delayed,
    Doubled,
}

/// The topic behind any number of [`MemoryWitness`]es.
#[derive(Debug, Default)]
pub struct Topic {
    pub id: u64,
    pub log: Vec<Claim>,
    pub delayed: Vec<Claim>,
}

impl Topic {
    pub fn accepted(&self) -> Option<Claim> {
        self.log.iter().copied().fold(None, fold)
    }

    /// Deleted, and made anew.
    pub fn remake(&mut self) {
        self.id += 1;
        self.log.clear();
    }
}

pub type Fold = fn(Option<Claim>, Claim) -> Option<Claim>;

/// One worker's view of a [`Topic`].
pub struct MemoryWitness {
    pub topic: Rc<RefCell<Topic>>,
    /// How many of the newest records the next read does not see.
    pub stale: usize,
    pub fate: Fate,
    pub fold: Fold,
}

impl MemoryWitness {
    pub fn new(topic: &Rc<RefCell<Topic>>) -> Self {
        MemoryWitness { topic: topic.clone(), stale: 0, fate: Fate::Lands, fold }
    }
}

impl Witness for MemoryWitness {
    fn read(&mut self) -> Result<Option<Claim>, witness::Error> {
        let topic = self.topic.borrow();
        let seen = topic.log.len().saturating_sub(self.stale);
        Ok(topic.log[..seen].iter().copied().fold(None, self.fold))
    }

    fn identity(&mut self) -> Result<String, witness::Error> {
        Ok(self.topic.borrow().id.to_string())
    }

    fn append(&mut self, claim: &Claim) -> Result<(), witness::Error> {
        let mut topic = self.topic.borrow_mut();
        match self.fate {
            Fate::Lands | Fate::LandsUnheard => topic.log.push(*claim),
            Fate::Lost => {}
            Fate::Delayed => topic.delayed.push(*claim),
            Fate::Doubled => {
                topic.log.push(*claim);
                topic.delayed.push(*claim);
            }
        }
        match self.fate {
            Fate::Lands | Fate::Doubled => Ok(()),
            _ => Err(witness::Error::Unavailable { name: "memory".into(), why: "as the test wants".into() }),
        }
    }
}

/// Everything that was ever published, by anyone.
#[derive(Debug, Default)]
pub struct Output(pub Vec<Sealed>);

/// One worker's way to the [`Output`].
pub struct MemorySink {
    pub output: Rc<RefCell<Output>>,
    /// After how many messages the worker crashes: published, and not known to be. A crash unwinds as a panic does.
    pub crashes_after: Option<usize>,
}

impl MemorySink {
    pub fn new(output: &Rc<RefCell<Output>>) -> Self {
        MemorySink { output: output.clone(), crashes_after: None }
    }
}

impl Sink for MemorySink {
    fn publish(&mut self, paid: &Paid) -> Result<(), sink::Error> {
        self.output.borrow_mut().0.push(paid.sealed().clone());
        match self.crashes_after.as_mut() {
            Some(0) => resume_unwind(Box::new("the worker crashed")),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }
}
