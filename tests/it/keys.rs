//! Windows of many keys: what publishing them costs, and what a crash in the middle of it leaves.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};

use bernstream_kafka::ledger::witness::kafka::KafkaWitness;
use bernstream_kafka::ordered::PowerLoss;
use bernstream_kafka::sink;
use bernstream_kafka::sink::Sink;
use bernstream_kafka::sink::deliver;
use bernstream_kafka::sink::deliver::step;
use bernstream_kafka::sink::files::FolderSink;
use bernstream_kafka::sink::kafka::KafkaSink;
use bernstream_ledger::witness;
use bernstream_ledger::witness::file::FileWitness;
use bernstream_ledger::witness::{Witness, WitnessClaim};
use bernstream_ledger::{Ledger, Paid};
use bernstream_synopsis::Encoded;

use crate::harness::kafka;
use crate::harness::ledger::{at, closing, folder, genesis, params};

/// A time when everything is due.
const EVER: i64 = 100_000_000;

fn names(count: usize) -> Vec<String> {
    (0..count).map(|key| format!("key-{key:05}")).collect()
}

/// A ledger with `windows` windows of `count` keys, whose witness is `witness`.
fn paid(folder: &Path, witness: &mut dyn Witness, windows: usize, count: usize) -> Ledger {
    let identity = witness.identity().unwrap();
    let mut ledger = Ledger::create(&params(folder), genesis(at(0), &identity, None)).unwrap();
    let names = names(count);
    let keys: Vec<&str> = names.iter().map(String::as_str).collect();
    for window in 0..windows {
        ledger
            .pay_window(closing(&ledger, &keys, 1, window as u64))
            .unwrap();
    }
    ledger
}

/// Counts what is asked of a witness and a sink.
#[derive(Debug, Default, PartialEq, Eq)]
struct Asked {
    witness_reads: usize,
    claims: usize,
    confirmations: usize,
    /// How many messages came at once.
    portions: Vec<usize>,
}

struct CountingWitness<'a>(FileWitness, &'a RefCell<Asked>);

impl Witness for CountingWitness<'_> {
    fn read(&mut self) -> Result<Option<WitnessClaim>, witness::WitnessError> {
        self.1.borrow_mut().witness_reads += 1;
        self.0.read()
    }

    fn identity(&mut self) -> Result<String, witness::WitnessError> {
        self.0.identity()
    }

    fn append(&mut self, claim: &WitnessClaim) -> Result<(), witness::WitnessError> {
        self.1.borrow_mut().claims += 1;
        self.0.append(claim)
    }
}

struct CountingSink<'a>(&'a RefCell<Asked>);

impl Sink for CountingSink<'_> {
    fn publish(&mut self, paid: &[Paid]) -> Result<(), sink::Unpublished> {
        self.0.borrow_mut().portions.push(paid.len());
        Ok(())
    }

    fn confirm_place(&mut self) -> Result<(), sink::SinkError> {
        self.0.borrow_mut().confirmations += 1;
        Ok(())
    }
}

/// Whatever time it takes: what is asked of witness and sink grows as the keys do, 512 at a time.
#[test]
fn publishing_many_keys_asks_in_proportion_to_them() {
    let asked = |count: usize| {
        let folder = folder();
        let path = folder.path().join("witness");
        FileWitness::create(&path).unwrap();
        let asked = RefCell::default();
        let mut witness = CountingWitness(FileWitness::open(&path).unwrap(), &asked);
        let mut ledger = paid(&folder.path().join("ledger"), &mut witness, 1, count);
        let mut published = 0;
        while published < count {
            published += step(
                &mut ledger,
                &mut witness,
                &mut CountingSink(&asked),
                at(EVER),
            )
            .unwrap()
            .published;
        }
        asked.into_inner()
    };
    let portions = |count: usize| -> Vec<usize> {
        let full = std::iter::repeat_n(512, count / 512);
        full.chain(Some(count % 512).filter(|rest| *rest > 0))
            .collect()
    };
    for count in [2, 512, 513, 2000, 4000] {
        let portions = portions(count);
        let steps = portions.len();
        // One step more: the claim comes before them.
        let expected = Asked {
            witness_reads: steps + 1,
            claims: 1,
            confirmations: 2 * steps,
            portions,
        };
        assert_eq!(asked(count), expected, "{count} keys");
    }
}

/// Publishes so many messages, and then the place has no room.
struct Full(usize);

impl Sink for Full {
    fn publish(&mut self, paid: &[Paid]) -> Result<(), sink::Unpublished> {
        let durable = paid.len().min(self.0);
        self.0 -= durable;
        let error = || sink::SinkError::File {
            path: "out".into(),
            why: "no space left".to_owned(),
        };
        if durable == paid.len() {
            Ok(())
        } else {
            Err(sink::Unpublished {
                durable,
                error: error(),
            })
        }
    }
}

#[test]
fn what_a_step_published_before_it_failed_is_counted() {
    let folder = folder();
    let path = folder.path().join("witness");
    FileWitness::create(&path).unwrap();
    let mut witness = FileWitness::open(&path).unwrap();
    let mut ledger = paid(&folder.path().join("ledger"), &mut witness, 2, 30);
    assert!(
        step(&mut ledger, &mut witness, &mut Full(0), at(EVER))
            .unwrap()
            .has_claimed
    );
    // The first window and a third of the second one; then what was left of both.
    for (room, before) in [(40, 40), (0, 0), (15, 15)] {
        let error = step(&mut ledger, &mut witness, &mut Full(room), at(EVER)).unwrap_err();
        assert!(
            error.is_transient() && error.published_before() == before,
            "{error}: {}",
            error.published_before()
        );
    }
    assert_eq!(
        step(&mut ledger, &mut witness, &mut Full(60), at(EVER))
            .unwrap()
            .published,
        5
    );
    assert_eq!(ledger.unpublished_count().unwrap(), 0);
}

/// Publishes so many messages, and then the worker is gone.
struct Dying {
    inner: Box<dyn Sink>,
    left: usize,
}

impl Sink for Dying {
    fn publish(&mut self, paid: &[Paid]) -> Result<(), sink::Unpublished> {
        let now = paid.len().min(self.left);
        self.inner.publish(&paid[..now])?;
        self.left -= now;
        if now < paid.len() {
            resume_unwind(Box::new("the worker was killed"));
        }
        Ok(())
    }

    fn confirm_place(&mut self) -> Result<(), sink::SinkError> {
        self.inner.confirm_place()
    }
}

/// Works to the end of `ledger`; killed on the way, it starts again, and lives half as long again as the last time.
fn killed_again_and_again(
    folder: &Path,
    ledger: Ledger,
    mut witness: impl FnMut() -> Box<dyn Witness>,
    mut sink: impl FnMut() -> Box<dyn Sink>,
) -> usize {
    let mut kills = 0;
    let mut lives = 100;
    let mut ledger = Some(ledger);
    loop {
        let mut here = ledger
            .take()
            .unwrap_or_else(|| Ledger::open(&params(folder)).unwrap());
        let work = || {
            let mut witness = witness();
            let mut sink = Dying {
                inner: sink(),
                left: lives,
            };
            loop {
                let done = step(&mut here, &mut *witness, &mut sink, at(EVER))?;
                if !done.has_claimed && done.next_due.is_none() {
                    return Ok::<(), deliver::DeliveryError>(());
                }
            }
        };
        match catch_unwind(AssertUnwindSafe(work)) {
            Ok(done) => {
                done.unwrap();
                return kills;
            }
            Err(_) => (kills, lives) = (kills + 1, lives + lives / 2),
        }
    }
}

const WINDOWS: usize = 2;
const KEYS: usize = 700;

/// Every message of a ledger, by the name of its file.
fn all_of(ledger: &Ledger) -> BTreeMap<PathBuf, Encoded> {
    let all = ledger
        .due_messages(ledger.head(), at(EVER), WINDOWS * KEYS)
        .unwrap();
    assert_eq!(all.len(), WINDOWS * KEYS);
    all.iter()
        .map(|paid| {
            (
                sink::files::synopsis_path(paid.encoded()).unwrap(),
                paid.encoded().clone(),
            )
        })
        .collect()
}

#[test]
fn a_worker_that_is_killed_in_the_midst_of_many_files_writes_each_once() {
    let (folder, ledger_folder) = (folder(), folder());
    let output = sink::files::FolderSinkParams {
        path: folder.path().join("out"),
        witness: None,
    };
    fs::create_dir_all(&output.path).unwrap();
    FileWitness::create(&output.witness_path()).unwrap();
    let open = || FileWitness::open(&output.witness_path()).unwrap();
    let ledger = paid(ledger_folder.path(), &mut open(), WINDOWS, KEYS);
    let all = all_of(&ledger);
    let witness = || Box::new(open()) as Box<dyn Witness>;
    let kills = killed_again_and_again(ledger_folder.path(), ledger, witness, || {
        Box::new(FolderSink::new(&output))
    });
    assert!(kills > 5, "{kills}");
    let found = sink::files::synopsis_files(&output).unwrap();
    assert_eq!(found.len(), WINDOWS * KEYS);
    for path in found {
        let name = path.strip_prefix(&output.path).unwrap();
        assert!(
            fs::read(&path).unwrap() == all[name].bytes,
            "{} is what was paid for",
            path.display()
        );
    }
    assert_eq!(
        Ledger::open(&params(ledger_folder.path()))
            .unwrap()
            .unpublished_count()
            .unwrap(),
        0
    );
}

fn witness_params(servers: &str) -> bernstream_kafka::ledger::witness::kafka::OrderedTopicParams {
    let broker = kafka::at(servers);
    let params = bernstream_kafka::ledger::witness::kafka::OrderedTopicParams {
        broker,
        topic: kafka::fresh_name("witness"),
        min_insync_replicas: 1,
        power_loss: PowerLoss::Together,
    };
    KafkaWitness::create(&params, 1).unwrap();
    params
}

/// What a topic has, in the order of each partition.
fn read(output: &sink::kafka::KafkaSinkParams) -> Vec<Encoded> {
    let mut found = Vec::new();
    let extent = sink::kafka::read_extent(output).unwrap();
    sink::kafka::each_message(output, &extent, |_, sealed| found.push(sealed)).unwrap();
    found
}

#[test]
fn a_worker_that_is_killed_in_the_midst_of_many_messages_sends_only_the_same_again() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let witness = witness_params(&servers);
    let topic = kafka::fresh_topic(&servers, "output", 3, &[]);
    let output = sink::kafka::KafkaSinkParams {
        broker: kafka::at(&servers),
        topic,
    };
    let folder = folder();
    let open = || KafkaWitness::open(&witness).unwrap();
    let ledger = paid(folder.path(), &mut open(), WINDOWS, KEYS);
    let all = all_of(&ledger);
    let witness = || Box::new(open()) as Box<dyn Witness>;
    let kills = killed_again_and_again(folder.path(), ledger, witness, || {
        Box::new(KafkaSink::open(&output).unwrap())
    });
    assert!(kills > 5, "{kills}");
    let found = read(&output);
    let mut newest: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    let mut names = BTreeSet::new();
    for sealed in &found {
        let name = sink::files::synopsis_path(sealed).unwrap();
        assert!(
            all[&name] == *sealed,
            "{} is what was paid for",
            name.display()
        );
        names.insert(name);
        let newest = newest.entry(sealed.key.clone()).or_default();
        assert!(
            sealed.bytes >= *newest,
            "no window of a key comes after a later one"
        );
        newest.clone_from(&sealed.bytes);
    }
    assert_eq!(names.len(), WINDOWS * KEYS);
    println!(
        "{kills} kills, {} messages for {} slots",
        found.len(),
        names.len()
    );
}

/// A batch counts as one message: one that the topic does not take holds messages that it takes.
#[test]
fn a_topic_that_takes_only_small_messages_takes_many_of_them() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let witness = witness_params(&servers);
    let topic = kafka::fresh_topic(&servers, "output", 1, &[("max.message.bytes", "5000")]);
    let output = sink::kafka::KafkaSinkParams {
        broker: kafka::at(&servers),
        topic,
    };
    let folder = folder();
    let mut witness = KafkaWitness::open(&witness).unwrap();
    let mut ledger = paid(folder.path(), &mut witness, 1, 1000);
    let mut sink = KafkaSink::open(&output).unwrap();
    let mut published = 0;
    while published < 1000 {
        published += step(&mut ledger, &mut witness, &mut sink, at(EVER))
            .unwrap()
            .published;
    }
    let keys: Vec<String> = read(&output).into_iter().map(|sealed| sealed.key).collect();
    let sent: Vec<String> = names(1000).iter().map(|key| format!("p/r/{key}")).collect();
    assert_eq!(keys, sent, "each once, in the order of the keys");
}
