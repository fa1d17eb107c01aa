//! Several workers, several copies of ledgers, crashes, lost and late messages: no window is ever published in two versions or
//! beyond the budget, and nobody gets stuck for ever. A small randomised model over the real ledger and the real step.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use bernstream_kafka::ledger::witness::kafka::{KafkaWitness, OrderedTopicParams as WitnessParams};
use bernstream_kafka::ordered::{FLUSH, PowerLoss};
use bernstream_kafka::sink;
use bernstream_kafka::sink::deliver;
use bernstream_kafka::sink::deliver::step;
use bernstream_kafka::sink::kafka::KafkaSink;
use bernstream_kafka::topic;
use bernstream_ledger::bootstrap::{PriorState, StartMode, StartSchedule, choose_start};
use bernstream_ledger::witness;
use bernstream_ledger::witness::file::FileWitness;
use bernstream_ledger::witness::{Witness, WitnessClaim};
use bernstream_ledger::{Ledger, LedgerError, ledger_exists};
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::grid::{Span, SpanGrid};
use bernstream_synopsis::price::Price;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use crate::harness::ledger::{
    Fate, MemorySink, MemoryWitness, Output, Topic, at, closing, folder, genesis, params, price,
    sealed,
};
use crate::harness::{kafka, wait_for};

/// The clause that a negative control leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Without {
    Nothing,
    /// A claim must name the head that it follows.
    PreviousHead,
    /// Only rows that the witness has accepted are published.
    Acceptance,
    /// Reading decides, an acknowledgement does not.
    Reading,
    /// A witness made anew is another witness.
    Identity,
    /// A new ledger begins after the last block claimed.
    LastBlock,
}

struct Model {
    without: Without,
    /// One worker with one volume, to which nobody does anything: only crashes, and a witness that is slow to answer.
    is_alone: bool,
    rng: ChaCha8Rng,
    minute: i64,
    draws: u64,
    topic: Rc<RefCell<Topic>>,
    output: Rc<RefCell<Output>>,
    volumes: [tempfile::TempDir; 2],
    workers: [Option<Ledger>; 2],
    copies: Vec<Vec<u8>>,
    /// What was drawn for, by its bytes: window and price.
    paid: BTreeMap<Vec<u8>, (Span, Price)>,
    checked: usize,
    versions: BTreeMap<(Timestamp, String), Vec<u8>>,
    released: BTreeSet<Span>,
    block_costs: BTreeMap<Span, Price>,
}

fn grid(minutes: u64) -> SpanGrid {
    SpanGrid::new(at(0), Duration::from_secs(60 * minutes)).unwrap()
}

impl Model {
    fn new(seed: u64, without: Without) -> Self {
        Model {
            without,
            is_alone: false,
            rng: ChaCha8Rng::seed_from_u64(seed),
            minute: 10,
            draws: 0,
            topic: Rc::default(),
            output: Rc::default(),
            volumes: [folder(), folder()],
            workers: [None, None],
            copies: vec![],
            paid: BTreeMap::new(),
            checked: 0,
            versions: BTreeMap::new(),
            released: BTreeSet::new(),
            block_costs: BTreeMap::new(),
        }
    }

    fn file(&self, who: usize) -> std::path::PathBuf {
        self.volumes[who].path().join("ledger.sqlite")
    }

    fn witness(&self) -> MemoryWitness {
        let mut witness = MemoryWitness::new(&self.topic);
        if self.without == Without::PreviousHead {
            witness.fold = |current: Option<WitnessClaim>, next| match current {
                Some(current) if next.head.sequence <= current.head.sequence => Some(current),
                _ => Some(next),
            };
        }
        witness
    }

    fn start(&mut self, who: usize) {
        self.workers[who] = None;
        if ledger_exists(&params(self.volumes[who].path())).unwrap() {
            self.workers[who] = Some(Ledger::open(&params(self.volumes[who].path())).unwrap());
        } else {
            self.begin(who, StartMode::Run, 0, 0);
        }
    }

    /// A new ledger on an empty volume, if it may begin; by a clock that may be behind, for which the witness makes up.
    fn begin(&mut self, who: usize, mode: StartMode, stale: usize, behind: i64) {
        let mut witness = self.witness();
        witness.stale = stale;
        let mut claim = witness.read().unwrap();
        let identity = witness.identity().unwrap();
        if let (Without::LastBlock, Some(claim)) = (self.without, claim.as_mut()) {
            claim.last_block_end = at(0);
        }
        let is_output_untouched = self.output.borrow().0.is_empty();
        let prior = PriorState {
            claim: claim.as_ref(),
            is_output_untouched,
        };
        let clock = if claim.is_some() {
            self.minute - behind
        } else {
            self.minute
        };
        let scheme = StartSchedule {
            windows: grid(60),
            blocks: grid(120).into(),
            ahead: Duration::ZERO,
            slack: Duration::ZERO,
        };
        if let Ok(start) = choose_start(scheme, mode, prior, at(clock)) {
            let genesis = genesis(start.first, &identity, start.previous);
            self.workers[who] =
                Some(Ledger::create(&params(self.volumes[who].path()), genesis).unwrap());
        }
    }

    fn empty(&mut self, who: usize) {
        self.workers[who] = None;
        let _ = fs::remove_file(self.file(who));
    }

    /// Closes the next window if it is over: pays for it where the budget allows.
    fn close(&mut self, who: usize) {
        let tenths = self.rng.random_range(1..=9);
        let Some(ledger) = &mut self.workers[who] else {
            return;
        };
        self.draws += 1;
        let closing = closing(ledger, &["EWR", "JFK"], tenths, self.draws);
        if closing.window.end > at(self.minute) {
            return;
        }
        let (block, cost) = closing.charges[0];
        let messages = closing.sealed.clone();
        let window = closing.window;
        let ends = closing.ends.clone();
        if !ledger
            .spent(block)
            .checked_add(cost)
            .unwrap()
            .is_within(price(10))
        {
            ledger.withhold_window(window, ends).unwrap();
        } else {
            ledger.pay_window(closing).unwrap();
            for message in &messages {
                self.paid
                    .insert(message.encoded().bytes.clone(), (window, cost));
            }
        }
    }

    /// One step with whatever may go wrong; a worker whose step stops for good stays down.
    fn step(&mut self, who: usize, is_calm: bool) -> bool {
        let mut witness = self.witness();
        let mut sink = MemorySink::new(&self.output);
        if !is_calm {
            witness.stale = if self.rng.random_bool(0.3) {
                self.rng.random_range(0..3)
            } else {
                0
            };
            let fates = [
                Fate::Lands,
                Fate::LandsUnheard,
                Fate::Lost,
                Fate::Delayed,
                Fate::Doubled,
            ];
            witness.fate = fates[self.rng.random_range(0..fates.len())];
            sink.crashes_after = self
                .rng
                .random_bool(0.2)
                .then(|| self.rng.random_range(0..3));
        }
        let Some(ledger) = &mut self.workers[who] else {
            return false;
        };
        let without = self.without;
        let now = at(self.minute);
        let attempt = || match without {
            Without::Acceptance | Without::Reading => {
                careless_step(without, ledger, &mut witness, &mut sink, now)
            }
            _ => step(ledger, &mut witness, &mut sink, now).map(drop),
        };
        let Ok(outcome) = catch_unwind(AssertUnwindSafe(attempt)) else {
            // It crashed: what was published is not remembered.
            self.start(who);
            return true;
        };
        let is_stopped = outcome.is_err_and(|error| !error.is_transient());
        if is_stopped {
            self.workers[who] = None;
        }
        !is_stopped
    }

    fn event(&mut self) {
        let who = if self.is_alone {
            0
        } else {
            self.rng.random_range(0..2)
        };
        match self
            .rng
            .random_range(0..if self.is_alone { 88 } else { 100 })
        {
            0..20 => self.minute += self.rng.random_range(0..50),
            20..45 => self.close(who),
            45..80 => {
                self.step(who, false);
            }
            80..84 => self.start(who),
            84..88 => {
                let mut topic = self.topic.borrow_mut();
                if !topic.delayed.is_empty() {
                    let late = self.rng.random_range(0..topic.delayed.len());
                    let claim = topic.delayed.remove(late);
                    topic.log.push(claim);
                }
            }
            88..92 => self.copies.extend(fs::read(self.file(who))),
            92..95 if !self.copies.is_empty() => {
                let copy = self.rng.random_range(0..self.copies.len());
                self.workers[who] = None;
                fs::write(self.file(who), &self.copies[copy]).unwrap();
                self.start(who);
            }
            95 => {
                self.empty(who);
                self.start(who);
            }
            96..98 => {
                self.empty(who);
                let stale = self.rng.random_range(0..2);
                let behind = self.rng.random_range(0..300);
                self.begin(who, StartMode::Init, stale, behind);
            }
            98 if self.rng.random_bool(0.2) => {
                let mut topic = self.topic.borrow_mut();
                topic.remake();
                if self.without == Without::Identity {
                    topic.id = 0;
                }
            }
            _ => {}
        }
    }

    /// What was published since the last look: nothing unpaid, one version of each window, no block beyond its total.
    fn check(&mut self) -> Result<(), String> {
        let output = self.output.borrow();
        for sealed in &output.0[self.checked..] {
            let Some((window, cost)) = self.paid.get(&sealed.bytes) else {
                return Err("unpaid".into());
            };
            let slot = (window.start, sealed.key.clone());
            if self
                .versions
                .entry(slot)
                .or_insert_with(|| sealed.bytes.clone())
                != &sealed.bytes
            {
                return Err(format!(
                    "two versions of the window that starts at {}",
                    window.start
                ));
            }
            if self.released.insert(*window) {
                let cost_so_far = self
                    .block_costs
                    .entry(grid(120).span_of(window.start))
                    .or_insert(price(0));
                *cost_so_far = cost_so_far.checked_add(*cost).unwrap();
                if !cost_so_far.is_within(price(10)) {
                    return Err(format!(
                        "the block of the window that starts at {} is overspent",
                        window.start
                    ));
                }
            }
        }
        self.checked = output.0.len();
        Ok(())
    }

    /// Once everything works again, a worker goes on, at worst with a new ledger.
    fn recover(&mut self) -> Result<(), String> {
        self.workers[1] = None;
        self.topic.borrow_mut().delayed.clear();
        for attempt in 0..if self.is_alone { 1 } else { 2 } {
            if attempt == 0 {
                self.start(0)
            } else {
                self.begin(0, StartMode::Init, 0, 0)
            }
            let before = self.output.borrow().0.len();
            for _ in 0..6 {
                self.minute += 60;
                self.close(0);
                self.step(0, true);
                self.step(0, true);
            }
            let is_going = self.workers[0]
                .as_ref()
                .is_some_and(|ledger| ledger.unpublished_count().unwrap() == 0);
            if is_going && self.output.borrow().0.len() > before {
                return self.check();
            }
            self.empty(0);
        }
        Err("stuck".into())
    }
}

/// The step, without a clause.
fn careless_step(
    without: Without,
    ledger: &mut Ledger,
    witness: &mut MemoryWitness,
    sink: &mut MemorySink,
    now: Timestamp,
) -> Result<(), deliver::DeliveryError> {
    let newest = witness.read()?;
    let accepted = newest.map(|claim| claim.head);
    if without == Without::Reading {
        ledger.check_accepted(&witness.identity()?, newest.as_ref())?;
    }
    let mut published = accepted;
    if let Some(claim) = ledger.make_claim(accepted.as_ref())? {
        witness.append(&claim)?;
        published = Some(claim.head);
    }
    if without == Without::Acceptance {
        published = Some(*ledger.head());
    }
    while let Some(paid) = published
        .map_or(Ok(vec![]), |head| ledger.due_messages(&head, now, 1))?
        .pop()
    {
        sink::Sink::publish(sink, std::slice::from_ref(&paid)).map_err(|unpublished| {
            deliver::DeliveryError::Sink {
                published: 0,
                error: unpublished.error,
            }
        })?;
        ledger.mark_published(std::slice::from_ref(&paid), now)?;
    }
    Ok(())
}

fn run(seed: u64, without: Without, is_alone: bool) -> Result<usize, String> {
    let mut model = Model::new(seed, without);
    model.is_alone = is_alone;
    model.start(0);
    if !is_alone {
        model.start(1);
    }
    for _ in 0..200 {
        model.event();
        model.check()?;
    }
    let published = model.versions.len();
    model.recover()?;
    Ok(published)
}

fn finds_no_violation(is_alone: bool, least: usize) {
    let run =
        |seed| run(seed, Without::Nothing, is_alone).unwrap_or_else(|why| panic!("{seed}: {why}"));
    let published: usize = (0..400).map(run).sum();
    // The model does something: messages of different windows and keys, before all is calm.
    assert!(published > 400 * least, "{published}");
}

#[test]
fn no_window_is_published_twice_or_unpaid_and_nobody_is_stuck() {
    finds_no_violation(false, 4);
}

#[test]
fn crashes_alone_never_need_the_operator() {
    finds_no_violation(true, 12);
}

fn finds_a_violation(without: Without) {
    let violation = |seed| run(seed, without, false).err().filter(|why| why != "stuck");
    let found = (0..2000).find_map(|seed| violation(seed).map(|why| (seed, why)));
    assert!(
        found.is_some(),
        "the model does not see that {without:?} is missing"
    );
}

#[test]
fn the_previous_head_must_be_named() {
    finds_a_violation(Without::PreviousHead);
}

#[test]
fn only_accepted_rows_may_be_published() {
    finds_a_violation(Without::Acceptance);
}

#[test]
fn an_acknowledgement_decides_nothing() {
    finds_a_violation(Without::Reading);
}

#[test]
fn a_witness_made_anew_must_be_noticed() {
    finds_a_violation(Without::Identity);
}

#[test]
fn a_new_ledger_must_begin_after_the_last_block_claimed() {
    finds_a_violation(Without::LastBlock);
}

// The witness as a file.

fn a_claim(previous: Option<&WitnessClaim>, sequence: u64) -> WitnessClaim {
    let head = format!(
        r#"{{"sequence":{sequence},"digest":"{:064x}"}}"#,
        sequence + 77
    );
    let head = serde_json::from_str(&head).unwrap();
    WitnessClaim {
        previous: previous.map(|claim| claim.head),
        head,
        last_block_end: at(0),
        maker: None,
    }
}

#[test]
fn a_witness_file_says_what_was_appended() {
    let folder = folder();
    let path = folder.path().join("out/witness");
    assert!(matches!(
        FileWitness::open(&path),
        Err(witness::WitnessError::Missing { .. })
    ));
    FileWitness::create(&path).unwrap();
    let mut one = FileWitness::open(&path).unwrap();
    FileWitness::create(&path).unwrap();
    let mut two = FileWitness::open(&path).unwrap();
    assert_eq!(one.read().unwrap(), None);
    let first = a_claim(None, 0);
    let second = a_claim(Some(&first), 3);
    one.append(&first).unwrap();
    two.append(&a_claim(None, 1)).unwrap();
    two.append(&second).unwrap();
    for witness in [&mut one, &mut two] {
        assert_eq!(witness.read().unwrap(), Some(second));
    }
    assert_eq!(one.identity().unwrap(), two.identity().unwrap());
    assert_eq!(fs::read_dir(folder.path().join("out")).unwrap().count(), 1);
}

#[test]
fn a_claim_that_a_crash_has_torn_is_void_and_in_nobodys_way() {
    let folder = folder();
    let path = folder.path().join("witness");
    FileWitness::create(&path).unwrap();
    let mut witness = FileWitness::open(&path).unwrap();
    let start = fs::read(&path).unwrap();
    let first = a_claim(None, 0);
    witness.append(&first).unwrap();
    let whole = fs::read(&path).unwrap();
    for length in start.len()..whole.len() {
        fs::write(&path, &whole[..length]).unwrap();
        let mut witness = FileWitness::open(&path).unwrap();
        assert_eq!(witness.read().unwrap(), None, "{length}");
        let other = a_claim(None, 5);
        witness.append(&other).unwrap();
        // Only its last byte was missing: then it was there first.
        let expected = if length == whole.len() - 1 {
            first
        } else {
            other
        };
        assert_eq!(witness.read().unwrap(), Some(expected), "{length}");
    }
    fs::write(&path, [whole.as_slice(), b"\xff\x00{\n"].concat()).unwrap();
    assert_eq!(
        FileWitness::open(&path).unwrap().read().unwrap(),
        Some(first)
    );
}

#[test]
fn a_witness_file_that_was_replaced_is_noticed() {
    let folder = folder();
    let path = folder.path().join("witness");
    FileWitness::create(&path).unwrap();
    let mut witness = FileWitness::open(&path).unwrap();
    let older = fs::read(&path).unwrap();
    witness.append(&a_claim(None, 0)).unwrap();
    witness.read().unwrap();
    fs::write(folder.path().join("copy"), older).unwrap();
    fs::rename(folder.path().join("copy"), &path).unwrap();
    assert!(matches!(
        witness.read(),
        Err(witness::WitnessError::Damaged { .. })
    ));
    fs::remove_file(&path).unwrap();
    assert!(matches!(
        witness.read(),
        Err(witness::WitnessError::Missing { .. })
    ));
    assert!(matches!(
        witness.append(&a_claim(None, 0)),
        Err(witness::WitnessError::Missing { .. })
    ));
    FileWitness::create(&path).unwrap();
    let before = witness.identity().unwrap();
    let mut anew = FileWitness::open(&path).unwrap();
    assert_ne!(anew.identity().unwrap(), before);
}

// The witness as a topic of a real broker.

/// The brokers say when a record was appended.
const TIMES: (&str, &str) = ("message.timestamp.type", "LogAppendTime");

fn witness_params(servers: &str) -> WitnessParams {
    WitnessParams {
        broker: kafka::at(servers),
        topic: kafka::fresh_name("witness"),
        min_insync_replicas: 1,
        power_loss: PowerLoss::Together,
    }
}

#[test]
fn a_witness_topic_says_what_was_appended() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let witness_topic = witness_params(&servers);
    assert!(matches!(
        KafkaWitness::open(&witness_topic),
        Err(witness::WitnessError::Missing { .. })
    ));
    KafkaWitness::create(&witness_topic, 1).unwrap();
    let mut one = KafkaWitness::open(&witness_topic).unwrap();
    let mut two = KafkaWitness::open(&witness_topic).unwrap();
    assert_eq!(one.read().unwrap(), None);
    let first = a_claim(None, 0);
    let second = a_claim(Some(&first), 3);
    one.append(&first).unwrap();
    two.append(&a_claim(None, 1)).unwrap();
    assert_eq!(one.read().unwrap(), Some(first));
    two.append(&second).unwrap();
    for witness in [&mut one, &mut two] {
        assert_eq!(witness.read().unwrap(), Some(second));
    }
    assert_eq!(one.identity().unwrap(), two.identity().unwrap());
    assert_eq!(
        KafkaWitness::open(&witness_topic).unwrap().read().unwrap(),
        Some(second)
    );
}

#[test]
fn a_witness_topic_that_could_lose_a_record_is_refused() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let good = [
        ("retention.bytes", "-1"),
        ("unclean.leader.election.enable", "false"),
        TIMES,
        ("min.insync.replicas", "1"),
        FLUSH,
    ];
    for bad in [
        ("cleanup.policy", "compact"),
        ("cleanup.policy", "compact,delete"),
        ("retention.ms", "1000"),
        ("retention.bytes", "1000"),
        ("unclean.leader.election.enable", "true"),
        ("flush.messages", "2"),
        ("message.timestamp.type", "CreateTime"),
    ] {
        let witness_topic = witness_params(&servers);
        let settings = [("retention.ms", "-1")]
            .iter()
            .chain(&good)
            .filter(|(name, _)| *name != bad.0)
            .copied();
        let settings: Vec<_> = settings.chain([bad]).collect();
        topic::create_topic(&witness_topic.broker, &witness_topic.topic, 1, 1, &settings).unwrap();
        let error = KafkaWitness::open(&witness_topic).err().unwrap();
        assert!(
            matches!(&error, witness::WitnessError::Setting { setting, .. } if **setting == *bad.0),
            "{error}"
        );
    }
    let mut witness_topic = witness_params(&servers);
    witness_topic.power_loss = PowerLoss::Separately;
    KafkaWitness::create(&witness_topic, 1).unwrap();
    assert!(
        KafkaWitness::open(&witness_topic).is_ok(),
        "as the operator says, not all brokers lose power at once"
    );
    witness_topic.power_loss = PowerLoss::Together;
    let error = KafkaWitness::open(&witness_topic)
        .err()
        .unwrap()
        .to_string();
    let command = format!(
        "--entity-name {} --add-config flush.messages=1",
        witness_topic.topic
    );
    assert!(
        error.contains("has flush.messages = ") && error.contains(&command),
        "{error}"
    );
    let mut witness_topic = witness_params(&servers);
    KafkaWitness::create(&witness_topic, 1).unwrap();
    witness_topic.min_insync_replicas = 2;
    let error = KafkaWitness::open(&witness_topic).err().unwrap();
    assert!(
        matches!(&error, witness::WitnessError::Setting { setting, .. } if &**setting == "min.insync.replicas"),
        "{error}"
    );
    witness_topic.topic = kafka::fresh_topic(&servers, "witness", 2, &good);
    let error = KafkaWitness::open(&witness_topic).err().unwrap();
    assert!(
        matches!(
            &error,
            witness::WitnessError::Partitions { partitions: 2, .. }
        ),
        "{error}"
    );
}

fn administer<T>(
    servers: &str,
    work: impl AsyncFnOnce(&rdkafka::admin::AdminClient<rdkafka::client::DefaultClientContext>) -> T,
) -> T {
    let admin = kafka::at(servers)
        .client_config()
        .expect("settings")
        .create()
        .unwrap();
    tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap()
        .block_on(work(&admin))
}

#[test]
fn a_witness_topic_that_lost_its_beginning_or_was_made_anew_is_noticed() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let witness_topic = witness_params(&servers);
    KafkaWitness::create(&witness_topic, 1).unwrap();
    let mut witness = KafkaWitness::open(&witness_topic).unwrap();
    witness.append(&a_claim(None, 0)).unwrap();
    witness.append(&a_claim(None, 1)).unwrap();
    witness.read().unwrap();
    let before = witness.identity().unwrap();
    let mut start = rdkafka::TopicPartitionList::new();
    start
        .add_partition_offset(&witness_topic.topic, 0, rdkafka::Offset::Offset(1))
        .unwrap();
    administer(&servers, async |admin| {
        admin
            .delete_records(&start, &Default::default())
            .await
            .map(drop)
    })
    .unwrap();
    assert!(matches!(
        witness.read(),
        Err(witness::WitnessError::Damaged { .. })
    ));
    let mut late = KafkaWitness::open(&witness_topic).unwrap();
    assert!(matches!(
        late.read(),
        Err(witness::WitnessError::Damaged { .. })
    ));

    administer(&servers, async |admin| {
        admin
            .delete_topics(&[&witness_topic.topic], &Default::default())
            .await
            .map(drop)
    })
    .unwrap();
    wait_for("a new topic", String::new, || {
        KafkaWitness::create(&witness_topic, 1).ok()
    });
    let is_noticed = |witness: &mut KafkaWitness| match witness.read() {
        Ok(_) => witness.identity().is_ok_and(|identity| identity != before),
        Err(error) => !error.is_transient(),
    };
    wait_for("another identity", String::new, || {
        is_noticed(&mut witness).then_some(())
    });
}

#[test]
fn a_copy_beside_a_worker_publishes_nothing_on_a_real_broker() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let witness_topic = witness_params(&servers);
    KafkaWitness::create(&witness_topic, 1).unwrap();
    let output = sink::kafka::KafkaSinkParams {
        broker: witness_topic.broker.clone(),
        topic: kafka::fresh_topic(&servers, "output", 3, &[]),
    };
    assert!(sink::kafka::is_untouched(&output).unwrap());
    let here = folder();
    let there = folder();
    let mut witnesses = [
        KafkaWitness::open(&witness_topic).unwrap(),
        KafkaWitness::open(&witness_topic).unwrap(),
    ];
    let mut sink = KafkaSink::open(&output).unwrap();
    let identity = witnesses[0].identity().unwrap();
    let mut ledger = Ledger::create(&params(here.path()), genesis(at(0), &identity, None)).unwrap();
    let now = at(100_000);
    step(&mut ledger, &mut witnesses[0], &mut sink, now).unwrap();
    fs::copy(
        here.path().join("ledger.sqlite"),
        there.path().join("ledger.sqlite"),
    )
    .unwrap();
    let mut copy = Ledger::open(&params(there.path())).unwrap();
    ledger
        .pay_window(closing(&ledger, &["EWR", "JFK"], 1, 1))
        .unwrap();
    copy.pay_window(closing(&copy, &["EWR", "JFK"], 1, 2))
        .unwrap();
    step(&mut ledger, &mut witnesses[0], &mut sink, now).unwrap();
    let error = step(&mut copy, &mut witnesses[1], &mut sink, now).unwrap_err();
    assert!(
        matches!(
            error,
            deliver::DeliveryError::Ledger(LedgerError::ForeignHead { .. })
        ),
        "{error}"
    );
    assert_eq!(
        step(&mut ledger, &mut witnesses[0], &mut sink, now)
            .unwrap()
            .published,
        2
    );
    assert!(!sink::kafka::is_untouched(&output).unwrap());
    let mut found = vec![];
    let all = sink::kafka::read_extent(&output).unwrap();
    sink::kafka::each_message(&output, &all, |_, message| found.push(message)).unwrap();
    found.sort_by(|a, b| a.key.cmp(&b.key));
    let window = Span {
        start: at(0),
        end: at(60),
    };
    assert_eq!(
        found,
        ["EWR", "JFK"].map(|key| sealed(window, key, 1).encoded().clone())
    );
}

#[test]
fn what_a_worker_keeps_beside_its_ledger_is_not_passed_over_where_it_cannot_be_read() {
    let folder = folder();
    let ledger = params(folder.path());
    drop(Ledger::create(&ledger, genesis(at(0), "w", None)).unwrap());
    let (witness, memory) = (
        folder.path().join("witness"),
        folder.path().join("witness-place"),
    );
    FileWitness::create(&witness).unwrap();
    let instance = folder.path().join("instance");
    for file in [&instance, &memory] {
        let _ = fs::remove_file(file);
        fs::create_dir(file).unwrap();
    }
    let error = Ledger::open(&ledger).unwrap_err();
    assert!(
        matches!(&error, bernstream_ledger::LedgerError::Disk { path, .. } if *path == instance),
        "{error}"
    );
    let error = FileWitness::open_remembering(&witness, &memory)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("remembers what it had accepted, cannot be read")
            && error.contains("do not delete it"),
        "{error}"
    );
    // A loss of power leaves them empty; what is not there was never kept.
    for is_there in [true, false] {
        for file in [&instance, &memory] {
            let _ = fs::remove_dir(file);
            let _ = fs::remove_file(file);
            if is_there {
                fs::write(file, "").unwrap();
            }
        }
        Ledger::open(&ledger).unwrap();
        FileWitness::open_remembering(&witness, &memory).unwrap();
    }
}

#[test]
fn a_message_that_the_output_topic_does_not_take_is_for_the_operator() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let small = kafka::fresh_topic(&servers, "output", 1, &[("max.message.bytes", "500")]);
    let output = sink::kafka::KafkaSinkParams {
        broker: kafka::at(&servers),
        topic: small,
    };
    let mut sink = KafkaSink::open(&output).unwrap();
    let folder = folder();
    let mut ledger = Ledger::create(&params(folder.path()), genesis(at(0), "0", None)).unwrap();
    ledger.pay_window(closing(&ledger, &["EWR"], 1, 1)).unwrap();
    let paid = ledger
        .due_messages(ledger.head(), at(999), 1)
        .unwrap()
        .pop()
        .unwrap();
    for _ in 0..2 {
        let sink::Unpublished { error, .. } =
            sink::Sink::publish(&mut sink, std::slice::from_ref(&paid)).unwrap_err();
        assert!(
            matches!(error, sink::SinkError::TooLarge { .. }) && !error.is_transient(),
            "{error}"
        );
    }
}

/// The file in which a worker remembers its place.
fn remember(path: &Path, place: &serde_json::Value) {
    let place = place.to_string();
    let digest = bernstream_ledger::Digest::of_bytes(place.as_bytes());
    fs::write(path, format!("{digest}\n{place}")).unwrap();
}

fn remembered(path: &Path) -> serde_json::Value {
    serde_json::from_str(
        fs::read_to_string(path)
            .unwrap()
            .split_once('\n')
            .unwrap()
            .1,
    )
    .unwrap()
}

/// The same place, with another value of this field.
fn with(
    place: &serde_json::Value,
    field: &str,
    value: impl Into<serde_json::Value>,
) -> serde_json::Value {
    let mut place = place.clone();
    place[field] = value.into();
    place
}

#[test]
fn a_start_reads_the_witness_from_the_place_that_it_remembers_and_compares_it_first() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let witness_topic = witness_params(&servers);
    KafkaWitness::create(&witness_topic, 1).unwrap();
    let folder = folder();
    let mut claims = vec![a_claim(None, 0)];
    let path = folder.path().join("witness-place");
    let open = || {
        KafkaWitness::open(&witness_topic)
            .unwrap()
            .with_memory(&path)
            .unwrap()
    };
    let mut witness = open();
    assert_eq!(witness.read().unwrap(), None);
    assert!(!path.exists(), "there is nothing to remember");
    for sequence in 1..=70 {
        claims.push(a_claim(claims.last(), sequence));
    }
    // Void claims lie between.
    let mut older = serde_json::Value::Null;
    for (sequence, claim) in claims.iter().enumerate() {
        witness.append(claim).unwrap();
        witness.append(&a_claim(None, 999)).unwrap();
        if sequence == 10 {
            witness.read().unwrap();
            older = remembered(&path);
        }
    }
    let newest = claims.last().copied();
    assert_eq!(witness.read().unwrap(), newest);
    let place = remembered(&path);
    assert_eq!(place["identity"], witness.identity().unwrap());
    assert_eq!(place["offset"], 140);
    assert_eq!(place["record"], newest.unwrap().encode());
    assert_eq!(open().read().unwrap(), newest);

    // What is remembered holds, if it is what is there: from an older place the rest is read.
    remember(&path, &older);
    let mut from_older = open();
    assert_eq!(
        (from_older.read().unwrap(), from_older.remembered()),
        (newest, None)
    );
    assert_eq!(remembered(&path), place, "it is brought up to date");
    // A record that was accepted there, and is not there any more: the rest of a record counts too, not only its head, and the same
    // record is another one where it was written at another time, or where nobody knows when it was.
    let other = WitnessClaim {
        last_block_end: at(5),
        ..claims[10]
    };
    let mut of_old_program = older.clone();
    of_old_program.as_object_mut().unwrap().remove("written");
    for (head, lost) in [
        (other.head, with(&older, "record", other.encode())),
        (claims[11].head, with(&older, "record", claims[11].encode())),
        (
            claims[10].head,
            with(&older, "written", older["written"].as_i64().unwrap() - 1),
        ),
        (claims[10].head, of_old_program),
    ] {
        remember(&path, &lost);
        let mut anew = open();
        assert_eq!(anew.read().unwrap(), newest, "read from the beginning");
        assert_eq!(anew.remembered(), Some(head));
        // Its offset is forgotten, its head is not.
        let kept = remembered(&path);
        assert_eq!(
            (&kept["offset"], &kept["record"]),
            (&place["offset"], &place["record"])
        );
        assert_eq!(kept["remembered"]["sequence"], head.sequence);
        assert_eq!(
            (open().read().unwrap(), open().remembered()),
            (newest, Some(head)),
            "until it is seen to be covered"
        );
        anew.settle();
        anew.read().unwrap();
        assert_eq!(
            (anew.remembered(), remembered(&path)),
            (None, place.clone())
        );
    }
    // A witness that ends before it has lost the rest, or may yet show it.
    let next = a_claim(newest.as_ref(), 71);
    remember(
        &path,
        &with(&with(&place, "offset", 142), "record", next.encode()),
    );
    let mut waiting = open();
    for _ in 0..2 {
        assert_eq!(
            (waiting.read().unwrap(), waiting.remembered()),
            (newest, Some(next.head))
        );
    }
    witness.append(&next).unwrap();
    assert_eq!(
        (waiting.read().unwrap(), waiting.remembered()),
        (Some(next), Some(next.head))
    );
    waiting.settle();
    // However it ends, the next start reads on from the last claim.
    let last = a_claim(Some(&next), 72);
    waiting.append(&last).unwrap();
    assert_eq!(waiting.read().unwrap(), Some(last));
    assert_eq!(remembered(&path)["offset"], 143);
    let next = last;
    // A memory of another witness, or one that is not whole, is none.
    let lost = with(&older, "record", other.encode());
    remember(&path, &with(&lost, "identity", "another"));
    assert_eq!(open().read().unwrap(), Some(next));
    remember(&path, &lost);
    let text = fs::read_to_string(&path).unwrap();
    for damaged in [&text[..text.len() - 1], &text.replace(":20", ":21"), ""] {
        fs::write(&path, damaged).unwrap();
        assert_eq!(open().read().unwrap(), Some(next));
    }
    // It is really used: who reads from the beginning counts a record that is no claim.
    let broken = witness_params(&servers);
    KafkaWitness::create(&broken, 1).unwrap();
    let mut witness = KafkaWitness::open(&broken).unwrap();
    let producer: rdkafka::producer::BaseProducer = kafka::at(&servers)
        .client_config()
        .unwrap()
        .create()
        .unwrap();
    let record = rdkafka::producer::BaseRecord::<(), _>::to(&broken.topic).payload("no claim");
    producer.send(record).map_err(|(error, _)| error).unwrap();
    rdkafka::producer::Producer::flush(&producer, Duration::from_secs(30)).unwrap();
    witness.append(&claims[0]).unwrap();
    for strays in [1, 0] {
        let mut witness = KafkaWitness::open(&broken)
            .unwrap()
            .with_memory(&path)
            .unwrap();
        assert_eq!(
            (witness.read().unwrap(), witness.strays().witness),
            (Some(claims[0]), strays)
        );
    }
}

#[test]
fn a_start_reads_a_witness_file_from_the_place_that_it_remembers_and_compares_it_first() {
    let folder = folder();
    let (path, memory) = (
        folder.path().join("witness"),
        folder.path().join("ledger/witness-place"),
    );
    fs::create_dir(folder.path().join("ledger")).unwrap();
    FileWitness::create(&path).unwrap();
    let open = || FileWitness::open_remembering(&path, &memory);
    let mut witness = open().unwrap();
    let mut claims = vec![a_claim(None, 0)];
    for sequence in 1..=70 {
        claims.push(a_claim(claims.last(), sequence));
    }
    for claim in &claims {
        witness.append(claim).unwrap();
        witness.append(&a_claim(None, 999)).unwrap();
        // Read again and again: each time from the newest accepted claim.
        assert_eq!(witness.read().unwrap(), Some(*claim));
    }
    let newest = claims.last().copied();
    assert_eq!(open().unwrap().read().unwrap(), newest);
    let place = remembered(&memory);
    let whole = fs::read_to_string(&path).unwrap();
    let offset = place["offset"].as_u64().unwrap();
    let record = place["record"].as_str().unwrap();
    assert!(
        offset > 1000 && whole[usize::try_from(offset).unwrap()..].starts_with(record),
        "{place}"
    );
    // It is used: what lies before it is not read. And it is compared.
    let before = whole.replacen(
        &claims[0].encode(),
        &"x".repeat(claims[0].encode().len()),
        1,
    );
    fs::write(&path, &before).unwrap();
    assert_eq!(open().unwrap().read().unwrap(), newest);
    assert_ne!(FileWitness::open(&path).unwrap().read().unwrap(), newest);
    fs::write(&path, &whole).unwrap();
    let lost = with(&place, "record", claims[3].encode());
    remember(&memory, &lost);
    assert!(matches!(open(), Err(witness::WitnessError::Damaged { .. })));
    remember(&memory, &with(&place, "offset", offset + 1));
    assert!(matches!(open(), Err(witness::WitnessError::Damaged { .. })));
    // A memory of another file, or none.
    remember(&memory, &with(&lost, "identity", "another"));
    assert_eq!(open().unwrap().read().unwrap(), newest);
    fs::remove_file(&memory).unwrap();
    assert_eq!(open().unwrap().read().unwrap(), newest);
    // A file that was cut behind the worker's back, or that ends before what is remembered.
    let mut worker = open().unwrap();
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    assert!(matches!(
        worker.read(),
        Err(witness::WitnessError::Damaged { .. })
    ));
    assert!(matches!(open(), Err(witness::WitnessError::Damaged { .. })));
}

/// Run it by its name, with `--ignored --nocapture`.
#[test]
#[ignore = "it writes a million claims"]
fn a_start_after_a_million_claims() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let witness_topic = witness_params(&servers);
    KafkaWitness::create(&witness_topic, 1).unwrap();
    let producer: rdkafka::producer::BaseProducer = kafka::at(&servers)
        .client_config()
        .unwrap()
        .create()
        .unwrap();
    let mut last = None;
    for sequence in 0..1_000_000 {
        let claim = a_claim(last.as_ref(), sequence);
        let payload = claim.encode();
        while producer
            .send(
                rdkafka::producer::BaseRecord::<(), _>::to(&witness_topic.topic).payload(&payload),
            )
            .is_err()
        {
            producer.poll(Duration::from_millis(10));
        }
        last = Some(claim);
    }
    rdkafka::producer::Producer::flush(&producer, Duration::from_secs(120)).unwrap();
    let folder = folder();
    let path = folder.path().join("witness-place");
    for what in ["from the beginning", "from the place that it remembers"] {
        let started = std::time::Instant::now();
        let mut witness = KafkaWitness::open(&witness_topic)
            .unwrap()
            .with_memory(&path)
            .unwrap();
        assert_eq!(witness.read().unwrap(), last);
        println!("{what}: {:?}", started.elapsed());
    }
}

mod long {
    use super::*;

    /// Another claim was accepted first, so that the one that is sent again is void, and stands where it was accepted.
    #[test]
    fn a_claim_that_a_client_sends_again_is_not_the_one_that_was_lost() {
        let Some(_) = kafka::broker() else { return };
        let own = kafka::Own::start();
        let folder = folder();
        let witness_topic = witness_params(&own.servers);
        KafkaWitness::create(&witness_topic, 1).unwrap();
        let path = folder.path().join("witness-place");
        let open = || {
            KafkaWitness::open(&witness_topic)
                .unwrap()
                .with_memory(&path)
                .unwrap()
        };
        let first = a_claim(None, 0);
        let lost = a_claim(Some(&first), 1);
        let other = a_claim(Some(&first), 2);
        // A client gives a record that it sends again the time that it had.
        let send_again = |claim: &WitnessClaim| {
            let producer: rdkafka::producer::BaseProducer = kafka::at(&own.servers)
                .client_config()
                .unwrap()
                .create()
                .unwrap();
            let payload = claim.encode();
            let record = rdkafka::producer::BaseRecord::<(), _>::to(&witness_topic.topic)
                .payload(&payload)
                .timestamp(1);
            producer.send(record).map_err(|(error, _)| error).unwrap();
            rdkafka::producer::Producer::flush(&producer, Duration::from_secs(30)).unwrap();
        };
        let mut witness = open();
        witness.append(&first).unwrap();
        witness.append(&a_claim(None, 999)).unwrap();
        send_again(&lost);
        assert_eq!(witness.read().unwrap(), Some(lost));
        let place = remembered(&path);
        // Times stay what they are when somebody changes the setting.
        let set_times = |times: &str| {
            let settings = rdkafka::admin::AlterConfig::new(
                rdkafka::admin::ResourceSpecifier::Topic(&witness_topic.topic),
            );
            let settings = witness_topic
                .needed_settings()
                .into_iter()
                .fold(settings, |all, (name, value)| {
                    all.set(name, if name == TIMES.0 { times } else { value })
                });
            let settings = settings.set("min.insync.replicas", "1");
            administer(&own.servers, async |admin| {
                admin
                    .alter_configs([&settings], &Default::default())
                    .await
                    .map(drop)
            })
            .unwrap();
        };
        set_times("CreateTime");
        let error = wait_for("a refusal", String::new, || {
            KafkaWitness::open(&witness_topic).err()
        });
        assert!(
            error
                .to_string()
                .contains("has message.timestamp.type = CreateTime, but needs LogAppendTime"),
            "{error}"
        );
        set_times(TIMES.1);
        let mut same = wait_for("the setting", String::new, || {
            KafkaWitness::open(&witness_topic).ok()
        })
        .with_memory(&path)
        .unwrap();
        assert_eq!(
            (same.read().unwrap(), same.remembered()),
            (Some(lost), None)
        );
        assert_eq!(remembered(&path), place);
        own.ask("crash");
        // Without that it reads on, as a worker does that has noticed nothing.
        assert!(same.read().is_err());
        own.cut(&witness_topic.topic, |_| 1);
        own.ask("restart");
        let mut witness = KafkaWitness::open(&witness_topic).unwrap();
        witness.append(&other).unwrap();
        send_again(&lost);
        for mut reader in [open(), same] {
            assert_eq!(
                (reader.read().unwrap(), reader.remembered()),
                (Some(other), Some(lost.head))
            );
        }

        // Somebody changes the setting while a worker runs: a time that a producer gave tells no record from the same one, sent again.
        let lost = a_claim(Some(&other), 3);
        let another = a_claim(Some(&other), 4);
        let mut witness = open();
        set_times("CreateTime");
        wait_for("the setting", String::new, || {
            KafkaWitness::open(&witness_topic).err()
        });
        witness.append(&a_claim(None, 999)).unwrap();
        send_again(&lost);
        assert_eq!(witness.read().unwrap(), Some(lost));
        own.ask("crash");
        own.cut(&witness_topic.topic, |records| records - 2);
        own.ask("restart");
        send_again(&another);
        send_again(&lost);
        set_times(TIMES.1);
        wait_for("the setting", String::new, || {
            KafkaWitness::open(&witness_topic).ok()
        });
        let mut witness = open();
        assert_eq!(
            (witness.read().unwrap(), witness.remembered()),
            (Some(another), Some(lost.head))
        );
    }
}
