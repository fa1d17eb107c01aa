//! Ledgers to test with, and a witness and a sink in memory.

use std::cell::RefCell;
use std::panic::resume_unwind;
use std::path::Path;
use std::rc::Rc;
use std::sync::LazyLock;
use std::time::Duration;

use bernstream_functions::density::LatticeDensity;
use bernstream_kafka::sink;
use bernstream_kafka::sink::Sink;
use bernstream_ledger::witness;
use bernstream_ledger::witness::{Witness, WitnessClaim, fold_claim};
use bernstream_ledger::{
    ClosedWindow, ClosingWindow, Genesis, Head, Ledger, LedgerParams, LedgerRow, MessageDigests,
    Paid, ReleaseOutcome, new_id,
};
use bernstream_noise::Exact;
use bernstream_noise::Mechanism;
use bernstream_noise::calibrate::Scale;
use bernstream_noise::noise::Generator;
use bernstream_release::{Dequantized, Sealed, ValueScaling};
use bernstream_synopsis::Encoded;
use bernstream_synopsis::NoiseDistribution;
use bernstream_synopsis::Positions;
use bernstream_synopsis::calibrate::Epsilon;
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::description::Description;
use bernstream_synopsis::grid::Span;
use bernstream_synopsis::price::Price;
use sha2::{Digest as _, Sha256};

/// A temporary folder, in memory where the system has such a place: the tests are about order, not about a disk's patience.
pub fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .unwrap()
}

pub fn at(minute: i64) -> Timestamp {
    Timestamp::from_micros(minute * 60_000_000)
}

/// The `n`-th window; windows are an hour, blocks two.
pub fn window(n: i64) -> Span {
    Span {
        start: at(60 * n),
        end: at(60 * n + 60),
    }
}

pub fn block(n: i64) -> Span {
    Span {
        start: at(120 * n),
        end: at(120 * n + 120),
    }
}

pub fn price(tenths: u64) -> Price {
    Price::Pure(Epsilon::from_trillionths(tenths * 100_000_000_000))
}

pub fn params(folder: &Path) -> LedgerParams {
    LedgerParams {
        path: folder.to_path_buf(),
        keep_published: Duration::from_secs(3600),
    }
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
        reach: Duration::ZERO,
        budget: None,
    }
}

/// A message of `window` whose bytes nobody else draws.
pub fn sealed(window: Span, key: &str, draw: u64) -> Sealed {
    padded(window, key, draw, 0)
}

/// The same, longer by so many bytes.
pub fn padded(window: Span, key: &str, draw: u64, bytes: usize) -> Sealed {
    described(draw, |about| Description {
        key: Some(key.into()),
        window,
        published: window.end,
        meaning: "x".repeat(bytes),
        ..about
    })
}

/// A message with another description.
pub fn described(draw: u64, edited: impl FnOnce(Description) -> Description) -> Sealed {
    static EXAMPLE: LazyLock<(LatticeDensity, Description)> = LazyLock::new(|| {
        let about = serde_json::from_str(bernstream_synopsis::EXAMPLE).unwrap();
        (LatticeDensity::new(&[0.1], 2).unwrap(), about)
    });
    let (density, example) = &*EXAMPLE;
    let about = edited(Description {
        pipeline: "p".into(),
        release: "r".into(),
        meaning: String::new(),
        ..example.clone()
    });
    let mechanism = Mechanism::with_scale(NoiseDistribution::DiscreteLaplace, Scale::SMALLEST);
    let noisy = mechanism.release_noisy(
        &Exact::new(vec![i128::from(draw); 3]),
        &mut Generator::frozen([0; 32]),
    );
    Sealed::new(
        about,
        Dequantized::from_noisy(&noisy, density, ValueScaling::of_target(density)),
    )
    .unwrap()
}

/// The next window of the grid, published at its end.
pub fn closing(ledger: &Ledger, keys: &[&str], tenths: u64, draw: u64) -> ClosingWindow {
    let start = ledger.next_window();
    let window = Span {
        start,
        end: start.plus(Duration::from_secs(3600)),
    };
    let n = start.micros().div_euclid(7_200_000_000);
    ClosingWindow {
        window,
        publish_at: window.end,
        charges: vec![(block(n), price(tenths))],
        ends: Positions([(0, n), (1, 7)].into()),
        sealed: keys.iter().map(|key| sealed(window, key, draw)).collect(),
        states: vec![],
    }
}

/// The digest of a row of an older program, as the ledger's documentation says it is made.
pub fn link_whole(before: &[u8], sequence: u64, salt: &[u8], body: &str) -> Vec<u8> {
    let parts = [
        b"bernstream ledger row 1\n",
        before,
        &sequence.to_be_bytes(),
        salt,
        body.as_bytes(),
    ]
    .concat();
    Sha256::digest(parts).to_vec()
}

/// What stands for the secret part of a row, as the ledger's documentation says it is made.
pub fn commitment(salt: &[u8], secret: &str) -> Vec<u8> {
    Sha256::digest([b"bernstream ledger secret 1\n", salt, secret.as_bytes()].concat()).to_vec()
}

/// The digest of a row after one of this form and digest, as the ledger's documentation says it is made.
pub fn link(
    (form, before): (u8, &[u8]),
    sequence: u64,
    commitment: &[u8],
    public: &str,
) -> Vec<u8> {
    let before = [b"bernstream ledger row 2\n", &[form][..], before].concat();
    Sha256::digest(
        [
            &before,
            &sequence.to_be_bytes()[..],
            commitment,
            public.as_bytes(),
        ]
        .concat(),
    )
    .to_vec()
}

/// Writes the digest of a row after one of this form and digest; returns its own.
pub fn rechain(
    file: &rusqlite::Connection,
    at: i64,
    (form, before): (u8, Vec<u8>),
) -> (u8, Vec<u8>) {
    let row = "SELECT salt, body, secret FROM rows WHERE sequence = ?1";
    let row = file.query_row(row, [at], |row| {
        Ok((
            row.get::<_, Vec<u8>>(0)?,
            row.get::<_, String>(1)?,
            row.get::<_, Option<String>>(2)?,
        ))
    });
    let (salt, body, secret) = row.unwrap();
    let sequence = u64::try_from(at).unwrap();
    let digest = match &secret {
        None => link_whole(&before, sequence, &salt, &body),
        Some(secret) => link((form, &before), sequence, &commitment(&salt, secret), &body),
    };
    file.execute(
        "UPDATE rows SET digest = ?2 WHERE sequence = ?1",
        (at, &digest),
    )
    .unwrap();
    (if secret.is_some() { 2 } else { 1 }, digest)
}

/// The tables of format 4, as the program of that time made them.
const FORMAT_4: &str = "
    CREATE TABLE rows (
        sequence INTEGER PRIMARY KEY, salt BLOB NOT NULL, body TEXT NOT NULL, digest BLOB NOT NULL, secret TEXT
    ) STRICT;
    CREATE TABLE spent (
        block_start INTEGER NOT NULL, block_end INTEGER NOT NULL, price TEXT NOT NULL,
        PRIMARY KEY (block_start, block_end)
    ) STRICT;
    CREATE INDEX live ON spent (block_end);
    CREATE TABLE states (
        slot TEXT PRIMARY KEY, sequence INTEGER NOT NULL, salt BLOB NOT NULL, bytes BLOB NOT NULL
    ) STRICT;
    CREATE TABLE checkpoints (
        sequence INTEGER PRIMARY KEY, body TEXT NOT NULL, digest BLOB NOT NULL
    ) STRICT;
    CREATE TABLE kept (pruned INTEGER NOT NULL) STRICT;
    INSERT INTO kept VALUES (0);
    CREATE TABLE archives (first INTEGER PRIMARY KEY, last INTEGER NOT NULL) STRICT;
    CREATE TABLE outbox (
        sequence INTEGER NOT NULL, place INTEGER NOT NULL,
        key TEXT NOT NULL, headers TEXT NOT NULL, bytes BLOB, published_at INTEGER,
        PRIMARY KEY (sequence, place)
    ) STRICT;
    CREATE INDEX unpublished ON outbox (sequence, place) WHERE published_at IS NULL;
    PRAGMA user_version = 4;
";

/// Puts a ledger into `there` as a crash leaves it in the middle of a write; its head is that of before.
pub fn half_written(there: &Path) -> Head {
    let here = folder();
    let mut ledger = Ledger::create(&params(here.path()), genesis(at(0), "w", None)).unwrap();
    ledger.pay_window(closing(&ledger, &["k"], 1, 1)).unwrap();
    let head = *ledger.head();
    drop(ledger);
    let file = rusqlite::Connection::open(here.path().join("ledger.sqlite")).unwrap();
    // A cache of a few pages: the file is overwritten before the commit, which never comes.
    file.execute_batch(
        "PRAGMA cache_size = 2; BEGIN IMMEDIATE; UPDATE rows SET salt = zeroblob(32);
         WITH RECURSIVE n(i) AS (SELECT 100 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
         INSERT INTO rows SELECT i, zeroblob(32), hex(zeroblob(200)), zeroblob(32), '{}' FROM n;",
    )
    .unwrap();
    for name in ["ledger.sqlite", "ledger.sqlite-journal"] {
        std::fs::copy(here.path().join(name), there.join(name)).unwrap();
    }
    head
}

/// A ledger of format 4 with so many windows, each of one message at 0.4 of 1, all published but the last. Its rows are whole, as
/// programs before that wrote them, and it has no checkpoint.
pub fn format_4(folder: &Path, windows: u64) {
    let mut file = rusqlite::Connection::open(folder.join("ledger.sqlite")).unwrap();
    file.execute_batch(FORMAT_4).unwrap();
    let transaction = file.transaction().unwrap();
    {
        let [mut row, mut spent, mut outbox] = [
            "INSERT INTO rows VALUES (?1, ?2, ?3, ?4, NULL)",
            "INSERT INTO spent VALUES (?1, ?2, ?3) ON CONFLICT DO UPDATE SET price = ?3",
            "INSERT INTO outbox VALUES (?1, 0, ?2, ?3, ?4, ?5)",
        ]
        .map(|sql| transaction.prepare(sql).unwrap());
        let mut before = vec![0; 32];
        for sequence in 0..=windows {
            let n = i64::try_from(sequence).unwrap() - 1;
            let body = if sequence == 0 {
                LedgerRow::Genesis(genesis(at(0), "w", None))
            } else {
                let window = window(n);
                let block = block(n.div_euclid(2));
                let message = sealed(window, "k", sequence).encoded().clone();
                let is_published = sequence < windows;
                let spent_by = ["\"0.4\"", "\"0.8\""][usize::try_from(n % 2).unwrap()];
                spent
                    .execute((block.start.micros(), block.end.micros(), spent_by))
                    .unwrap();
                let (bytes, published) = if is_published {
                    (None, Some(window.end.micros()))
                } else {
                    (Some(&message.bytes), None)
                };
                outbox
                    .execute((
                        n + 1,
                        &message.key,
                        serde_json::json!(message.headers).to_string(),
                        bytes,
                        published,
                    ))
                    .unwrap();
                let outcome = ReleaseOutcome::Released {
                    publish_at: window.end,
                    charges: vec![(block, price(4))],
                    messages: vec![MessageDigests::from_encoded(&message)],
                    states: vec![],
                };
                LedgerRow::Window(ClosedWindow {
                    window,
                    ends: Positions([(0, n)].into()),
                    outcome,
                })
            };
            let salt = [9; 32];
            let body = serde_json::to_string(&body).unwrap();
            before = link_whole(&before, sequence, &salt, &body);
            row.execute((n + 1, salt, body, &before)).unwrap();
        }
    }
    transaction.commit().unwrap();
}

/// The same in the format of today, with some windows more up to a checkpoint, all published.
pub fn of_years(folder: &Path, windows: u64) -> Ledger {
    format_4(folder, windows);
    let mut ledger = Ledger::open(&params(folder)).unwrap();
    loop {
        ledger.pay_window(closing(&ledger, &["k"], 1, 1)).unwrap();
        let waiting = ledger
            .due_messages(ledger.head(), at(i64::MAX / 60_000_000), 2)
            .unwrap();
        ledger
            .mark_published(&waiting, ledger.next_window())
            .unwrap();
        if ledger.head().sequence.is_multiple_of(256) {
            return ledger;
        }
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
    pub log: Vec<WitnessClaim>,
    pub delayed: Vec<WitnessClaim>,
    /// How long reading takes.
    pub slow: Duration,
}

impl Topic {
    pub fn accepted(&self) -> Option<WitnessClaim> {
        self.log.iter().copied().fold(None, fold_claim)
    }

    /// Deleted, and made anew.
    pub fn remake(&mut self) {
        self.id += 1;
        self.log.clear();
    }
}

pub type Fold = fn(Option<WitnessClaim>, WitnessClaim) -> Option<WitnessClaim>;

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
        MemoryWitness {
            topic: topic.clone(),
            stale: 0,
            fate: Fate::Lands,
            fold: fold_claim,
        }
    }
}

impl Witness for MemoryWitness {
    fn read(&mut self) -> Result<Option<WitnessClaim>, witness::WitnessError> {
        let topic = self.topic.borrow();
        std::thread::sleep(topic.slow);
        let seen = topic.log.len().saturating_sub(self.stale);
        Ok(topic.log[..seen].iter().copied().fold(None, self.fold))
    }

    fn identity(&mut self) -> Result<String, witness::WitnessError> {
        Ok(self.topic.borrow().id.to_string())
    }

    fn append(&mut self, claim: &WitnessClaim) -> Result<(), witness::WitnessError> {
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
            _ => Err(witness::WitnessError::Unavailable {
                name: "memory".into(),
                why: "as the test wants".into(),
            }),
        }
    }
}

/// Everything that was ever published, by anyone.
#[derive(Debug, Default)]
pub struct Output(pub Vec<Encoded>);

/// One worker's way to the [`Output`].
pub struct MemorySink {
    pub output: Rc<RefCell<Output>>,
    /// After how many messages the worker crashes: published, and not known to be. A crash unwinds as a panic does.
    pub crashes_after: Option<usize>,
}

impl MemorySink {
    pub fn new(output: &Rc<RefCell<Output>>) -> Self {
        MemorySink {
            output: output.clone(),
            crashes_after: None,
        }
    }
}

impl Sink for MemorySink {
    fn publish(&mut self, paid: &[Paid]) -> Result<(), sink::Unpublished> {
        for paid in paid {
            self.output.borrow_mut().0.push(paid.encoded().clone());
            match self.crashes_after.as_mut() {
                Some(0) => resume_unwind(Box::new("the worker crashed")),
                Some(left) => *left -= 1,
                None => {}
            }
        }
        Ok(())
    }
}

/// What is told of some work: how much is done, of how much.
#[derive(Default)]
pub struct Told {
    done: u64,
    pub all: u64,
}

impl Told {
    /// Work never goes back, and what is all of it is known from the beginning.
    pub fn take(&mut self, done: u64, all: u64) {
        assert!(
            self.done <= done && done <= all && (self.all == 0 || self.all == all),
            "{done} of {all}"
        );
        (self.done, self.all) = (done, all);
    }

    pub fn is_done(&self) {
        assert!(
            self.all > 0 && self.done == self.all,
            "{} of {}",
            self.done,
            self.all
        );
    }
}
