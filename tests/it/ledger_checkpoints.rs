//! A ledger log forgets what no ledger is built from any more, and a ledger that is built from a checkpoint goes on as if it had all rows.

use std::cell::RefCell;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bernstream_kafka::sink::deliver;
use bernstream_kafka::sink::deliver::{DeliveryProgress, step};
use bernstream_ledger as ledger;
use bernstream_ledger::log::{
    AppendOutcome, CannotAppend, LedgerLog, LedgerLogError, Log, LogKey, LogReader, RestoredLedger,
};
use bernstream_ledger::witness;
use bernstream_ledger::witness::{Witness, WitnessClaim};
use bernstream_ledger::{
    ClosingWindow, Configuration, Digest, Evidence, Head, Ledger, OutputMessage, WitnessStanding,
};
use bernstream_synopsis::clock::Timestamp;
use rusqlite::Connection;

use crate::harness::ledger::{
    Fate, MemorySink, MemoryWitness, Output, Told, Topic, at, closing, folder, format_4, genesis,
    padded, params, price,
};

/// The topic of a log: its records by offset, and which topic it is.
#[derive(Default)]
pub struct Records {
    id: u64,
    next: i64,
    /// How many bytes were ever appended.
    written: usize,
    pub kept: Vec<(i64, Vec<u8>)>,
}

impl Records {
    fn push(&mut self, record: Vec<u8>) {
        self.written += record.len();
        self.kept.push((self.next, record));
        self.next += 1;
    }

    /// Deleted, and made anew.
    fn remake(&mut self) {
        *self = Records {
            id: self.id + 1,
            ..Records::default()
        };
    }

    /// The rows of its checkpoints, in the order of the log.
    fn checkpoints(&self) -> Vec<u64> {
        self.kept
            .iter()
            .filter_map(|(_, record)| named(record, "checkpoint"))
            .collect()
    }
}

/// The row that a record of this kind names in the clear.
fn named(record: &[u8], kind: &str) -> Option<u64> {
    let text = String::from_utf8_lossy(record);
    let (_, after) = text.split_once(&format!(r#"{{"{kind}":{{"sequence":"#))?;
    after.split_once(',')?.0.parse().ok()
}

/// One worker's view of [`Records`].
pub struct MemoryLog {
    pub records: Arc<Mutex<Records>>,
    read: Option<(u64, i64)>,
}

impl MemoryLog {
    pub fn open(records: &Arc<Mutex<Records>>) -> LedgerLog {
        let log = MemoryLog {
            records: records.clone(),
            read: None,
        };
        LedgerLog::new(Box::new(log), LogKey::new(&[1; 32]))
    }
}

impl Log for MemoryLog {
    fn name(&self) -> &str {
        "memory"
    }

    fn largest(&self) -> usize {
        1_000_000
    }

    fn read(&mut self, reader: &mut dyn LogReader) -> Result<(), LedgerLogError> {
        let records = self.records.lock().unwrap();
        let from = match self.read {
            Some((id, next)) if id == records.id => next,
            _ => {
                reader.begin();
                0
            }
        };
        let added = || records.kept.iter().filter(|(at, _)| *at >= from);
        reader.expect(added().count() as u64);
        added().for_each(|(at, record)| reader.take(*at, record));
        self.read = Some((records.id, records.next));
        Ok(())
    }

    fn rewind(&mut self) {
        self.read = None;
    }

    fn append(&mut self, appended: &[Vec<u8>]) -> Result<(), LedgerLogError> {
        let mut records = self.records.lock().unwrap();
        appended
            .iter()
            .for_each(|record| records.push(record.clone()));
        Ok(())
    }

    fn delete_before(&mut self, offset: i64) -> Result<(), LedgerLogError> {
        self.records
            .lock()
            .unwrap()
            .kept
            .retain(|(at, _)| *at >= offset);
        Ok(())
    }
}

/// A witness that is the one of the ledger.
struct Named {
    inner: MemoryWitness,
    identity: String,
}

impl Witness for Named {
    fn read(&mut self) -> Result<Option<WitnessClaim>, witness::WitnessError> {
        self.inner.read()
    }

    fn identity(&mut self) -> Result<String, witness::WitnessError> {
        Ok(self.identity.clone())
    }

    fn append(&mut self, claim: &WitnessClaim) -> Result<(), witness::WitnessError> {
        self.inner.append(claim)
    }
}

/// A pipeline with a window an hour and noise that goes on, as its worker keeps it, without the records.
pub struct Pipeline {
    disk: tempfile::TempDir,
    pub witness: Rc<RefCell<Topic>>,
    pub output: Rc<RefCell<Output>>,
    log: Arc<Mutex<Records>>,
    pub ledger: Ledger,
    draw: u64,
    /// How long after its end a window is published.
    delay: Duration,
}

impl Pipeline {
    pub fn new() -> Self {
        let disk = folder();
        let ledger = Ledger::create(&params(disk.path()), genesis(at(0), "0", None)).unwrap();
        Pipeline::with(disk, ledger)
    }

    fn with(disk: tempfile::TempDir, mut ledger: Ledger) -> Self {
        let (witness, output, log) = Default::default();
        ledger.attach_log(MemoryLog::open(&log));
        Pipeline {
            disk,
            witness,
            output,
            log,
            ledger,
            draw: 0,
            delay: Duration::ZERO,
        }
    }

    /// Another worker of it, with a disk of its own. Its draws are others.
    pub fn beside(&self) -> Pipeline {
        let disk = folder();
        let (_, mut ledger) = self.built_in(disk.path()).unwrap();
        ledger.attach_log(MemoryLog::open(&self.log));
        let witness = self.witness.clone();
        let output = self.output.clone();
        let log = self.log.clone();
        Pipeline {
            disk,
            witness,
            output,
            log,
            ledger,
            draw: self.draw + 1_000_000,
            delay: self.delay,
        }
    }

    /// A worker on a clone of its disk, as blocks: nothing tells it from the original.
    pub fn clone_of_disk(&self) -> Pipeline {
        let disk = folder();
        let file = |disk: &Path| disk.join("ledger.sqlite");
        fs::copy(file(self.disk.path()), file(disk.path())).unwrap();
        let kept = fs::read_to_string(self.disk.path().join("instance")).unwrap();
        let mut kept: serde_json::Value = serde_json::from_str(&kept).unwrap();
        let about = fs::metadata(file(disk.path())).unwrap();
        let made = about.created().ok().map(|made| {
            made.duration_since(std::time::UNIX_EPOCH)
                .unwrap()
                .as_nanos()
        });
        assert_ne!(kept["place"]["number"], about.ino());
        let made = made.map(|made| serde_json::Number::from_u128(made).unwrap());
        kept["place"] = serde_json::json!({ "number": about.ino(), "made": made });
        fs::write(disk.path().join("instance"), kept.to_string()).unwrap();
        let mut ledger = Ledger::open(&params(disk.path())).unwrap();
        ledger.attach_log(MemoryLog::open(&self.log));
        let witness = self.witness.clone();
        let output = self.output.clone();
        let log = self.log.clone();
        Pipeline {
            disk,
            witness,
            output,
            log,
            ledger,
            draw: self.draw + 1_000_000,
            delay: self.delay,
        }
    }

    /// The next window: every one goes on with one noise, every hundredth with another.
    fn closing(&mut self) -> ClosingWindow {
        self.draw += 1;
        let noise = |slot: &str| (slot.to_owned(), self.draw.to_be_bytes().to_vec());
        let mut closing = closing(&self.ledger, &["k"], 4, self.draw);
        closing.publish_at = closing.window.end.plus(self.delay);
        closing.states.push(noise("every"));
        if self.ledger.next_sequence() % 100 == 7 {
            closing.states.push(noise("rare"));
        }
        closing
    }

    pub fn pay(&mut self) -> Timestamp {
        let closing = self.closing();
        let end = closing.window.end;
        self.ledger.pay_window(closing).unwrap();
        end
    }

    /// One step, which may fail.
    pub fn try_step(
        &mut self,
        now: Timestamp,
        fate: Fate,
    ) -> Result<DeliveryProgress, deliver::DeliveryError> {
        let inner = MemoryWitness {
            fate,
            ..MemoryWitness::new(&self.witness)
        };
        let mut witness = Named {
            inner,
            identity: self.ledger.genesis().witness.clone(),
        };
        step(
            &mut self.ledger,
            &mut witness,
            &mut MemorySink::new(&self.output),
            now,
        )
    }

    pub fn step(
        &mut self,
        now: Timestamp,
        fate: Fate,
    ) -> Result<DeliveryProgress, deliver::DeliveryError> {
        match self.try_step(now, fate) {
            Ok(progress) => Ok(progress),
            Err(deliver::DeliveryError::Ledger(error)) => panic!("{error}"),
            Err(error) => Err(error),
        }
    }

    /// Claims and publishes everything.
    pub fn deliver(&mut self, mut now: Timestamp) {
        loop {
            let done = self.step(now, Fate::Lands).unwrap();
            match done.is_waiting {
                // Whoever claimed before has had its time.
                true => now = now.plus(Duration::from_secs(11)),
                false if done.has_claimed || done.published > 0 => {}
                false => return,
            }
        }
    }

    /// Pays for so many windows, and publishes them.
    pub fn pass(&mut self, windows: usize) {
        for _ in 0..windows {
            let now = self.pay();
            self.deliver(now);
        }
    }

    /// The ledger that is built on an empty disk.
    fn built_in(&self, disk: &Path) -> Result<(RestoredLedger, Ledger), ledger::LedgerError> {
        let accepted = self.witness.borrow().accepted().expect("a claim").head;
        let now = self.ledger.next_window();
        let mut told = Told::default();
        let built = MemoryLog::open(&self.log).restore_with_progress(
            &params(disk),
            &accepted,
            now,
            &mut |done, all| told.take(done, all),
        )?;
        assert_eq!(told.all, self.log.lock().unwrap().kept.len() as u64);
        told.is_done();
        // As a whole, and as a worker opens it.
        let mut told = Told::default();
        let whole =
            Ledger::inspect_with_progress(&params(disk), &mut |done, all| told.take(done, all))?;
        assert_eq!(
            (whole.row_count(), told.all),
            (whole.rows().unwrap().len() as u64, whole.row_count())
        );
        told.is_done();
        Ok((built, Ledger::open(&params(disk))?))
    }

    /// Goes on with the ledger that is built on an empty disk, which says the same as the one that is lost.
    fn lose_disk(&mut self) -> RestoredLedger {
        let disk = folder();
        let (built, ledger) = self.built_in(disk.path()).unwrap();
        assert_same(&ledger, &self.ledger);
        (self.disk, self.ledger) = (disk, ledger);
        // A worker knows its own place.
        self.ledger.attach_log(MemoryLog::open(&self.log));
        built
    }
}

/// The accounts of two ledgers are the same.
#[track_caller]
pub fn assert_same(one: &Ledger, other: &Ledger) {
    let account = |ledger: &Ledger| {
        let block = ledger.newest_block().expect("a block");
        let states: Vec<_> = ledger
            .slots()
            .map(|slot| (slot.to_owned(), ledger.noise_state(slot).unwrap()))
            .collect();
        let times = (
            ledger.next_window(),
            ledger.live_from(),
            ledger.last_block_end(),
        );
        (
            *ledger.head(),
            times,
            block,
            ledger.spent(block.0),
            states,
            ledger.ends().clone(),
            ledger.settings().to_owned(),
        )
    };
    assert_eq!(account(one), account(other));
    assert_eq!(one.genesis(), other.genesis());
}

#[test]
fn a_log_keeps_the_rows_of_two_checkpoints_and_whoever_is_built_from_them_goes_on_with_the_same_account()
 {
    let mut pipeline = Pipeline::new();
    pipeline.pass(1100);
    let kept = pipeline
        .log
        .lock()
        .unwrap()
        .kept
        .iter()
        .filter(|(_, record)| named(record, "row").is_some())
        .count();
    assert_eq!(pipeline.log.lock().unwrap().checkpoints(), [768, 1024]);
    assert_eq!(kept, 1100 - 768);
    let built = pipeline.lose_disk();
    assert_eq!(
        (built.checkpoint, built.newest, built.unpublished),
        (Some(1024), 1100, 0)
    );
    assert_eq!(built.rows, 2 + 1100 - 1024);
    let missing = pipeline.ledger.missing().expect("rows that are not there");
    assert_eq!((missing.first, missing.last), (1, 1023));
    // Twice more, with the gap, and what was built keeps its messages and moves its old rows as any other.
    for rows in [300, 700] {
        pipeline.pass(rows);
        assert!(pipeline.lose_disk().checkpoint.is_some());
        pipeline.pass(600);
        let accepted = *pipeline.ledger.head();
        let moved = Ledger::inspect(&params(pipeline.disk.path()))
            .unwrap()
            .archive_rows(&accepted, &mut |_| {})
            .unwrap();
        assert!(
            moved.is_some_and(|(first, _)| first > pipeline.ledger.missing().unwrap().last),
            "{moved:?}"
        );
        Ledger::inspect(&params(pipeline.disk.path())).unwrap();
    }
    let output = &pipeline.output.borrow().0;
    let windows: std::collections::BTreeSet<_> =
        output.iter().map(|sealed| sealed.headers.clone()).collect();
    assert_eq!(windows.len(), output.len(), "nothing was published twice");
}

/// What a worker without a disk takes from the log before it claims that again, where the witness has accepted two rows less.
fn taken_again(
    pipeline: &Pipeline,
    messages: Vec<OutputMessage>,
    remembered: Option<Head>,
) -> Result<Option<Head>, ledger::LedgerError> {
    let disk = folder();
    let (_, built) = pipeline.built_in(disk.path()).unwrap();
    let mut log = MemoryLog::open(&pipeline.log);
    let evidence = Evidence::gather(messages, Some(&mut log)).unwrap();
    built.row_to_take(&mut log, Some(built.head()), remembered, &evidence)
}

fn message_of(pipeline: &Pipeline, sequence: u64, bytes: &[u8]) -> OutputMessage {
    let ledger = pipeline.ledger.genesis().ledger.clone();
    let place = "partition 0".to_owned();
    OutputMessage {
        ledger,
        sequence,
        digest: Digest::of_bytes(bytes),
        place,
    }
}

#[test]
fn rows_whose_claims_are_lost_are_those_that_were_published_and_not_a_draw_that_lost() {
    let mut pipeline = Pipeline::new();
    pipeline.pass(3);
    // Its draw of the next window is in the log, and was never accepted.
    let mut other = pipeline.beside();
    other.pay();
    other.ledger.fill_log().unwrap();
    pipeline.pass(2);
    let (head, void) = (*pipeline.ledger.head(), *other.ledger.head());
    pipeline
        .witness
        .borrow_mut()
        .log
        .retain(|claim| claim.head.sequence <= 3);
    let message = |sequence: u64, bytes: &[u8]| message_of(&pipeline, sequence, bytes);
    let bytes: Vec<Vec<u8>> = pipeline
        .output
        .borrow()
        .0
        .iter()
        .map(|sealed| sealed.bytes.clone())
        .collect();
    // By the marks of the log.
    assert_eq!(taken_again(&pipeline, vec![], None).unwrap(), Some(head));
    let is_other = |error: ledger::LedgerError, row: u64| matches!(error, ledger::LedgerError::TwoBranches { row: found } if found == row);
    assert!(is_other(
        taken_again(&pipeline, vec![], Some(void)).unwrap_err(),
        void.sequence
    ));
    // By the output, also if only the first of the two is there: what comes after it may have been accepted too.
    pipeline
        .log
        .lock()
        .unwrap()
        .kept
        .retain(|(_, record)| named(record, "published").is_none());
    let newest = vec![message(4, &bytes[3]), message(5, &bytes[4])];
    assert_eq!(taken_again(&pipeline, newest, None).unwrap(), Some(head));
    assert_eq!(
        taken_again(&pipeline, vec![message(4, &bytes[3])], None).unwrap(),
        Some(head)
    );
    // By nothing: the longest chain that is there.
    assert_eq!(taken_again(&pipeline, vec![], None).unwrap(), Some(head));
    // Of another ledger it says nothing.
    let foreign = OutputMessage {
        ledger: "another".to_owned(),
        ..message(9, b"")
    };
    assert_eq!(
        taken_again(&pipeline, vec![foreign], None).unwrap(),
        Some(head)
    );
    // Nobody has what was published, which is the message of this ledger that none of its rows has paid for.
    for (row, innocent) in [
        (
            6,
            OutputMessage {
                ledger: "another".to_owned(),
                ..message(6, b"")
            },
        ),
        (5, message(5, &bytes[4])),
    ] {
        let gone = OutputMessage {
            place: "partition 1".to_owned(),
            ..message(row, b"gone")
        };
        let lost = taken_again(
            &pipeline,
            vec![innocent.clone(), gone.clone(), innocent],
            None,
        )
        .unwrap_err();
        assert!(
            matches!(&lost, ledger::LedgerError::LostClaims { row: found, .. } if *found == row)
                && !lost.is_transient(),
            "{lost}"
        );
        assert!(
            lost.to_string()
                .contains("(a message in partition 1 says so)"),
            "{lost}"
        );
    }
}

#[test]
fn a_row_that_was_published_and_another_one_of_its_number_that_was_accepted_are_two_branches() {
    // The published one is the newest, or others were accepted after its rival.
    for (windows, later) in [(300, 0), (3, 2)] {
        let mut pipeline = Pipeline::new();
        pipeline.pass(windows);
        let built = pipeline.lose_disk();
        assert_eq!(
            built.checkpoint.is_some(),
            windows == 300,
            "most rows are missing"
        );
        let (_disk, behind) = copied(pipeline.disk.path());
        let mut other = pipeline.beside();
        other.pay();
        other.ledger.fill_log().unwrap();
        pipeline.pass(1);
        let published = *pipeline.ledger.head();
        let mut log = MemoryLog::open(&pipeline.log);
        assert_eq!(published.sequence, other.ledger.head().sequence);
        // As long as it is accepted, the rival gives way, and whoever is behind does.
        let evidence = Evidence::gather(vec![], Some(&mut log)).unwrap();
        other
            .ledger
            .check_gives_way(&log, published, None, &evidence)
            .unwrap();
        behind
            .check_gives_way(&log, published, None, &evidence)
            .unwrap();
        // Its claim is lost, and that of its rival, which was sent before, is accepted.
        pipeline
            .witness
            .borrow_mut()
            .log
            .retain(|claim| claim.head.sequence < published.sequence);
        for _ in 0..later {
            other.pay();
        }
        let accepted = pipeline.witness.borrow().accepted().map(|claim| claim.head);
        let claim = other
            .ledger
            .make_claim(accepted.as_ref())
            .unwrap()
            .expect("rows");
        pipeline.witness.borrow_mut().log.push(claim);
        let all: Vec<OutputMessage> = pipeline
            .output
            .borrow()
            .0
            .iter()
            .zip(1..)
            .map(|(sealed, row)| message_of(&pipeline, row, &sealed.bytes))
            .collect();
        let newest = all.last().unwrap().clone();
        let is_found = |messages: Vec<OutputMessage>| {
            let standing = other.ledger.standing_of_witness(
                Some(other.ledger.head()),
                None,
                &Evidence::gather(messages.clone(), None).unwrap(),
            );
            let of_log = taken_again(&pipeline, messages, None);
            let is_unknown = matches!(standing, Ok(WitnessStanding::Unknown(shown)) if shown.sequence() == published.sequence);
            (
                is_unknown,
                matches!(of_log, Err(ledger::LedgerError::TwoBranches { row }) if row == published.sequence),
            )
        };
        assert_eq!(is_found(vec![]), (false, true), "by its mark");
        pipeline
            .log
            .lock()
            .unwrap()
            .kept
            .retain(|(_, record)| named(record, "published") != Some(published.sequence));
        assert_eq!(is_found(vec![]), (false, false));
        // Missing rows, dropped ones, and those that the ledger has too.
        assert_eq!(is_found(all[..windows].to_vec()), (false, false));
        assert_eq!(
            is_found(vec![newest.clone()]),
            (true, true),
            "by its message"
        );
        // The disk that has it does not give way, also where only the output knows that it was published.
        let accepted = *other.ledger.head();
        let (disk, unaware) = copied(pipeline.disk.path());
        let forget = format!(
            "UPDATE outbox SET published_at = NULL WHERE sequence = {}",
            published.sequence
        );
        Connection::open(disk.path().join("ledger.sqlite"))
            .unwrap()
            .execute(&forget, [])
            .unwrap();
        let gives_way = |ledger: &Ledger, messages: Vec<OutputMessage>| {
            let mut log = MemoryLog::open(&pipeline.log);
            let evidence = Evidence::gather(messages, Some(&mut log)).unwrap();
            ledger.check_gives_way(&log, accepted, None, &evidence)
        };
        for refused in [
            gives_way(&pipeline.ledger, vec![]),
            gives_way(&unaware, vec![newest]),
        ] {
            assert!(
                matches!(refused, Err(ledger::LedgerError::TwoBranches { row }) if row == published.sequence)
            );
        }
        gives_way(&unaware, vec![]).unwrap();
    }
}

#[test]
fn what_a_worker_remembers_of_a_ledger_that_was_replaced_is_not_missed() {
    let mut old = Pipeline::new();
    old.pass(3);
    let remembered = *old.ledger.head();
    let disk = folder();
    let ledger =
        Ledger::create(&params(disk.path()), genesis(at(0), "0", Some(remembered))).unwrap();
    let mut new = Pipeline {
        witness: old.witness.clone(),
        ..Pipeline::with(disk, ledger)
    };
    new.pass(2);
    assert_eq!(taken_again(&new, vec![], Some(remembered)).unwrap(), None);
    let mut log = MemoryLog::open(&new.log);
    let evidence = Evidence::gather(vec![], Some(&mut log)).unwrap();
    old.ledger
        .check_gives_way(&log, *new.ledger.head(), None, &evidence)
        .unwrap();
    let standing = new
        .ledger
        .standing_of_witness(
            Some(new.ledger.head()),
            Some(remembered),
            &Evidence::default(),
        )
        .unwrap();
    assert_eq!(standing, WitnessStanding::Agrees);
    // Of its own rows it is.
    let void = Head {
        digest: Digest::of_bytes(b"another"),
        ..*new.ledger.head()
    };
    assert!(matches!(
        taken_again(&new, vec![], Some(void)),
        Err(ledger::LedgerError::TwoBranches { .. })
    ));
}

/// Another ledger on a copy of a disk.
fn copied(disk: &Path) -> (tempfile::TempDir, Ledger) {
    let copy = folder();
    fs::copy(
        disk.join("ledger.sqlite"),
        copy.path().join("ledger.sqlite"),
    )
    .unwrap();
    let ledger = Ledger::open(&params(copy.path())).unwrap();
    (copy, ledger)
}

#[test]
fn a_ledger_that_is_behind_takes_what_it_lacks_as_long_as_the_log_has_it() {
    let mut pipeline = Pipeline::new();
    pipeline.pass(900);
    for behind in [1, 2, 300, 1000] {
        let (disk, mut old) = copied(pipeline.disk.path());
        let before = *old.head();
        pipeline.pass(behind);
        let accepted = *pipeline.ledger.head();
        let now = pipeline.ledger.next_window();
        let mut log = MemoryLog::open(&pipeline.log);
        assert_eq!(
            old.rows_behind(&mut log, accepted).unwrap(),
            (behind < 1000).then_some(behind as u64)
        );
        let outcome = old.catch_up(&mut log, accepted, now).unwrap();
        if behind < 1000 {
            assert_eq!(outcome, AppendOutcome::Appended);
            assert_same(&old, &pipeline.ledger);
            assert_eq!(
                (old.missing(), old.unpublished_count().unwrap()),
                (None, 0),
                "all rows, and what was published"
            );
            old.verify_all().unwrap();
        } else {
            let gone = AppendOutcome::Refused(CannotAppend::Gone);
            assert_eq!((outcome, *old.head()), (gone, before));
            drop(old);
            log.restore_ledger(&params(disk.path()), &accepted, now)
                .unwrap();
            assert_same(
                &Ledger::open(&params(disk.path())).unwrap(),
                &pipeline.ledger,
            );
        }
    }
}

#[test]
fn a_ledger_with_a_row_that_lost_is_left_as_it_is_and_a_new_one_is_built() {
    // What lost is newer than what was accepted, or older.
    for (own, others) in [(3, 1), (1, 3)] {
        let mut pipeline = Pipeline::new();
        pipeline.pass(20);
        let (disk, old) = copied(pipeline.disk.path());
        let mut other = Pipeline {
            ledger: old,
            draw: 9_000,
            ..pipeline.beside()
        };
        for _ in 0..own {
            other.pay();
        }
        let lost = *other.ledger.head();
        pipeline.pass(others);
        let accepted = *pipeline.ledger.head();
        let now = pipeline.ledger.next_window();
        let mut log = MemoryLog::open(&pipeline.log);
        assert_eq!(other.ledger.rows_behind(&mut log, accepted).unwrap(), None);
        assert_eq!(
            other.ledger.catch_up(&mut log, accepted, now).unwrap(),
            AppendOutcome::Refused(CannotAppend::Lost)
        );
        assert_eq!(*other.ledger.head(), lost);
        drop(other);
        log.restore_ledger(&params(disk.path()), &accepted, now)
            .unwrap();
        assert_same(
            &Ledger::open(&params(disk.path())).unwrap(),
            &pipeline.ledger,
        );
    }
}

#[test]
fn what_is_too_large_to_be_kept_at_once_is_taken_in_portions() {
    let mut pipeline = Pipeline::new();
    pipeline.pass(3);
    let (_disk, mut old) = copied(pipeline.disk.path());
    for _ in 0..3 {
        let mut closing = pipeline.closing();
        let now = closing.window.end;
        closing.sealed = closing
            .sealed
            .iter()
            .map(|_| padded(closing.window, "k", pipeline.draw, 25 << 20))
            .collect();
        pipeline.ledger.pay_window(closing).unwrap();
        pipeline.deliver(now);
    }
    let accepted = *pipeline.ledger.head();
    let now = pipeline.ledger.next_window();
    let mut log = MemoryLog::open(&pipeline.log);
    assert_eq!(
        old.catch_up(&mut log, accepted, now).unwrap(),
        AppendOutcome::Appended
    );
    assert_same(&old, &pipeline.ledger);
}

#[test]
fn a_block_that_was_charged_before_the_checkpoint_is_not_charged_beyond_its_total() {
    let disk = folder();
    // Row 512 is that of the first of the two windows of a block.
    let ledger = Ledger::create(&params(disk.path()), genesis(at(60), "0", None)).unwrap();
    let mut pipeline = Pipeline::with(disk, ledger);
    pipeline.pass(512);
    let settings = pipeline.ledger.settings().to_owned();
    let first = pipeline.ledger.next_window();
    let reach = Duration::ZERO;
    let ended = Vec::new();
    pipeline
        .ledger
        .record_settings(Configuration {
            settings,
            first,
            reach,
            ended,
            until: None,
        })
        .unwrap();
    pipeline.deliver(first);
    assert_eq!(pipeline.lose_disk().checkpoint, Some(512));
    let block = pipeline.ledger.newest_block().unwrap().0;
    assert_eq!(pipeline.ledger.spent(block), price(4));
    assert_eq!(pipeline.ledger.charged_by_missing(), Some(block));
    assert_eq!(pipeline.ledger.settings_after_missing(), Some((512, "{}")));
    let pay = |pipeline: &mut Pipeline, tenths| {
        let mut closing = pipeline.closing();
        assert_eq!(closing.charges[0].0, block);
        closing.charges[0].1 = price(tenths);
        pipeline.ledger.pay_window(closing)
    };
    assert!(matches!(
        pay(&mut pipeline, 7),
        Err(ledger::LedgerError::Refused { .. })
    ));
    pay(&mut pipeline, 6).unwrap();
}

#[test]
fn whatever_is_deleted_a_ledger_can_be_built_even_if_the_newest_checkpoint_is_lost() {
    let mut pipeline = Pipeline::new();
    pipeline.pass(480);
    for _ in 0..9 {
        pipeline.pass(70);
        let newest = pipeline.log.lock().unwrap().checkpoints().last().copied();
        // An append whose acknowledgement got lost is sent again.
        let copies: Vec<Vec<u8>> = {
            let log = pipeline.log.lock().unwrap();
            let of_newest =
                |record: &[u8]| named(record, "checkpoint").is_some_and(|row| Some(row) == newest);
            log.kept
                .iter()
                .map(|(_, record)| record)
                .filter(|record| of_newest(record))
                .cloned()
                .collect()
        };
        if let [only] = copies.as_slice() {
            pipeline.log.lock().unwrap().push(only.clone());
        }
        let (_, ledger) = pipeline.built_in(folder().path()).unwrap();
        assert_same(&ledger, &pipeline.ledger);
        let whole = pipeline.log.lock().unwrap().kept.clone();
        pipeline.log.lock().unwrap().kept.retain(|(_, record)| {
            named(record, "checkpoint").is_none_or(|row| Some(row) != newest)
        });
        let without = pipeline.built_in(folder().path());
        let (built, ledger) = without.unwrap_or_else(|error| {
            panic!("after row {}: {error}", pipeline.ledger.head().sequence)
        });
        assert!(built.checkpoint < newest || newest.is_none());
        assert_same(&ledger, &pipeline.ledger);
        pipeline.log.lock().unwrap().kept = whole;
    }
    assert!(pipeline.log.lock().unwrap().kept.len() < 800);
}

#[test]
fn nothing_is_deleted_before_what_a_checkpoint_needs_is_accepted() {
    let mut pipeline = Pipeline::new();
    pipeline.pass(512);
    let now = pipeline.pay();
    // The second time the worker knows of two checkpoints; the newer one is of no use without the row that was not accepted.
    for _ in 0..2 {
        assert!(pipeline.step(now, Fate::Lost).is_err());
    }
    let begins = |pipeline: &Pipeline| pipeline.log.lock().unwrap().kept[0].0;
    assert_eq!(pipeline.log.lock().unwrap().checkpoints(), [256, 512]);
    assert_eq!(begins(&pipeline), 0);
    pipeline.deliver(now);
    assert!(begins(&pipeline) > 0);
}

#[test]
fn a_changed_checkpoint_is_refused() {
    let mut pipeline = Pipeline::new();
    pipeline.pass(1040);
    let whole = pipeline.log.lock().unwrap().kept.clone();
    let place = |row| {
        whole
            .iter()
            .position(|(_, record)| named(record, "checkpoint") == Some(row))
            .expect("a checkpoint")
    };
    let change = |row, byte: usize| {
        let mut changed = whole.clone();
        let record = &mut changed[place(row)].1;
        let at = record.len() - 1 - byte % record.len();
        record[at] ^= 1;
        changed
    };
    let length = whole[place(1024)].1.len();
    for byte in (0..length).step_by(211) {
        pipeline.log.lock().unwrap().kept = change(1024, byte);
        let (built, _) = pipeline.built_in(folder().path()).unwrap();
        assert_eq!(built.checkpoint, Some(768), "byte {byte}");
    }
    // With none, there is nothing to begin with, and that is waited for.
    let mut none = change(1024, 40);
    none[place(768)].1[100] ^= 1;
    pipeline.log.lock().unwrap().kept = none;
    let disk = folder();
    let error = pipeline.built_in(disk.path()).unwrap_err();
    assert!(
        error.is_log_unavailable() && error.to_string().contains("row 768"),
        "{error}"
    );
    assert!(!disk.path().join("ledger.sqlite").exists());
}

#[test]
fn an_edit_of_what_a_ledger_says_of_its_missing_rows_is_noticed() {
    let mut pipeline = Pipeline::new();
    pipeline.pass(300);
    assert_eq!(pipeline.lose_disk().checkpoint, Some(256));
    Ledger::inspect(&params(pipeline.disk.path())).unwrap();
    let edits = [
        r#"UPDATE gap SET account = replace(account, '"settings":"{}"', '"settings":"{ }"')"#,
        "UPDATE gap SET digest = zeroblob(32)",
        "UPDATE gap SET form = 1",
        "UPDATE gap SET sequence = 255",
        "UPDATE gap SET sequence = 257",
        "DELETE FROM gap",
    ];
    for edit in edits {
        let copy = folder();
        let file = copy.path().join("ledger.sqlite");
        fs::copy(pipeline.disk.path().join("ledger.sqlite"), &file).unwrap();
        assert_eq!(
            Connection::open(&file).unwrap().execute(edit, []).unwrap(),
            1,
            "{edit}"
        );
        let outcome = Ledger::inspect(&params(copy.path()));
        assert!(
            matches!(outcome, Err(ledger::LedgerError::Damaged { .. })),
            "{edit}"
        );
    }
}

#[test]
fn a_row_that_is_missing_after_the_checkpoint_is_waited_for() {
    let mut pipeline = Pipeline::new();
    pipeline.pass(800);
    let whole = pipeline.log.lock().unwrap().kept.clone();
    pipeline
        .log
        .lock()
        .unwrap()
        .kept
        .retain(|(_, record)| named(record, "row") != Some(780));
    let disk = folder();
    let error = pipeline.built_in(disk.path()).unwrap_err();
    assert!(
        error.is_log_unavailable() && error.to_string().contains("row 780"),
        "{error}"
    );
    assert!(!disk.path().join("ledger.sqlite").exists());
    // What was lost before the checkpoint is not.
    pipeline.log.lock().unwrap().kept = whole;
    pipeline
        .log
        .lock()
        .unwrap()
        .kept
        .retain(|(_, record)| named(record, "row") != Some(700));
    assert_eq!(
        pipeline.built_in(disk.path()).unwrap().0.checkpoint,
        Some(768)
    );
}

#[test]
fn a_checkpoint_whose_noise_a_lost_row_has_replaced_is_not_used() {
    let mut pipeline = Pipeline::new();
    pipeline.pass(256);
    assert_eq!(pipeline.log.lock().unwrap().checkpoints().len(), 0);
    // The checkpoint comes with the next row, whose claim is lost with the disk.
    let now = pipeline.pay();
    assert!(pipeline.step(now, Fate::Lost).is_err());
    assert_eq!(pipeline.log.lock().unwrap().checkpoints(), [256]);
    // Nor does it take the place of a row that is lost.
    let accepted = pipeline.witness.borrow().accepted().unwrap().head;
    let whole = pipeline.log.lock().unwrap().kept.clone();
    pipeline
        .log
        .lock()
        .unwrap()
        .kept
        .retain(|(_, record)| named(record, "row") != Some(100));
    let looked_at = Ledger::inspect(&params(pipeline.disk.path())).unwrap();
    let (lacking, _) = looked_at
        .compare_with_log(&mut MemoryLog::open(&pipeline.log), accepted)
        .unwrap();
    assert_eq!(
        lacking.iter().map(|head| head.sequence).collect::<Vec<_>>(),
        [100]
    );
    pipeline.log.lock().unwrap().kept = whole;
    let disk = folder();
    let (built, ledger) = pipeline.built_in(disk.path()).unwrap();
    assert_eq!((built.checkpoint, built.newest), (None, 256));
    assert_eq!(
        ledger.noise_state("every").unwrap(),
        Some(256_u64.to_be_bytes().to_vec())
    );
    // Whoever goes on gives the log one that is of use.
    (pipeline.disk, pipeline.ledger) = (disk, ledger);
    pipeline.ledger.attach_log(MemoryLog::open(&pipeline.log));
    pipeline.pass(10);
    assert_eq!(pipeline.lose_disk().checkpoint, Some(256));
}

#[test]
fn a_ledger_whose_noise_is_not_in_the_log_is_not_built() {
    let mut pipeline = Pipeline::new();
    pipeline.pass(3);
    pipeline.pay();
    let accepted = *pipeline.ledger.head();
    // Before its body is appended, the next row has replaced the noise that it wrote.
    let now = pipeline.pay();
    assert!(pipeline.step(now, Fate::Lost).is_err());
    let disk = folder();
    let error = MemoryLog::open(&pipeline.log)
        .restore_ledger(&params(disk.path()), &accepted, now)
        .unwrap_err();
    assert!(
        error.is_log_unavailable() && error.to_string().contains("row 4"),
        "{error}"
    );
    assert!(!disk.path().join("ledger.sqlite").exists());
}

#[test]
fn a_log_that_was_made_anew_gets_a_checkpoint_instead_of_the_rows_before_it() {
    let mut pipeline = Pipeline::new();
    pipeline.pass(700);
    for is_built in [false, true] {
        if is_built {
            pipeline.lose_disk();
        }
        pipeline.log.lock().unwrap().remake();
        pipeline.pass(1);
        let log = pipeline.log.lock().unwrap();
        assert_eq!(log.checkpoints(), [512]);
        assert!(
            log.kept
                .iter()
                .all(|(_, record)| named(record, "row").is_none_or(|row| row > 512))
        );
    }
    assert_eq!(pipeline.lose_disk().checkpoint, Some(512));
    // So does a ledger that only has what comes after a checkpoint, when nothing of the log is left.
    pipeline.log.lock().unwrap().remake();
    let mut log = MemoryLog::open(&pipeline.log);
    let accepted = *pipeline.ledger.head();
    pipeline.ledger.fill_other_log(&mut log, &accepted).unwrap();
    pipeline.lose_disk();
}

#[test]
fn the_log_of_an_older_ledger_is_read_from_its_first_row_until_there_is_a_checkpoint() {
    let disk = folder();
    format_4(disk.path(), 600);
    let mut pipeline = Pipeline::with(folder(), Ledger::open(&params(disk.path())).unwrap());
    pipeline.draw = 10_000;
    let now = pipeline.ledger.next_window();
    pipeline.deliver(now);
    assert_eq!(pipeline.log.lock().unwrap().checkpoints().len(), 0);
    pipeline.lose_disk();
    assert_eq!(pipeline.ledger.missing(), None);
    pipeline.pass(200);
    assert_eq!(pipeline.log.lock().unwrap().checkpoints(), [768]);
    pipeline.pass(300);
    let log_begins = pipeline
        .log
        .lock()
        .unwrap()
        .kept
        .iter()
        .filter_map(|(_, record)| named(record, "row"))
        .min();
    assert_eq!(log_begins, Some(769));
    assert_eq!(pipeline.lose_disk().checkpoint, Some(1024));
}

#[test]
fn nothing_is_deleted_from_a_log_that_has_rows_of_another_pipeline_or_of_another_key() {
    for (key, witness) in [(1, "another"), (2, "0")] {
        let mut pipeline = Pipeline::new();
        let disk = folder();
        let ledger = Ledger::create(&params(disk.path()), genesis(at(0), witness, None)).unwrap();
        let mut other = Pipeline::with(disk, ledger);
        other.log = pipeline.log.clone();
        let log = MemoryLog {
            records: pipeline.log.clone(),
            read: None,
        };
        other
            .ledger
            .attach_log(LedgerLog::new(Box::new(log), LogKey::new(&[key; 32])));
        other.pass(3);
        pipeline.pass(800);
        let refusal = pipeline.ledger.log_refusal();
        assert!(
            refusal.is_some_and(|why| why.contains("rows of another pipeline")),
            "{key}"
        );
        assert_eq!(
            pipeline.log.lock().unwrap().kept.first().map(|(at, _)| *at),
            Some(0),
            "{key}"
        );
        // Whoever goes on elsewhere may delete there.
        pipeline.log = Arc::default();
        pipeline.ledger.attach_log(MemoryLog::open(&pipeline.log));
        pipeline.pass(300);
        assert!(pipeline.ledger.log_refusal().is_none());
        assert_eq!(pipeline.lose_disk().checkpoint, Some(1024));
    }
}

#[test]
fn what_is_not_published_when_a_disk_is_lost_comes_before_no_checkpoint() {
    let mut pipeline = Pipeline::new();
    // So long that hundreds of rows wait, and more than one could have a checkpoint.
    pipeline.delay = Duration::from_secs(600 * 3600);
    pipeline.pass(1000);
    assert_eq!(pipeline.output.borrow().0.len(), 400);
    assert_eq!(pipeline.log.lock().unwrap().checkpoints(), [256]);
    let built = pipeline.lose_disk();
    assert_eq!((built.checkpoint, built.unpublished), (Some(256), 600));
    pipeline.deliver(pipeline.ledger.next_window().plus(pipeline.delay));
    let output = &pipeline.output.borrow().0;
    let windows: std::collections::BTreeSet<_> =
        output.iter().map(|sealed| sealed.headers.clone()).collect();
    assert_eq!(
        (windows.len(), output.len()),
        (1000, 1000),
        "every window, once"
    );
}

/// `cargo test --release --test it -- --ignored --nocapture what_a_log_costs`
#[test]
#[ignore = "figures: minutes"]
fn what_a_log_costs_and_how_long_a_ledger_takes_to_be_built() {
    let mut pipeline = Pipeline::new();
    let mut windows = 0;
    for more in [1_000, 3_000, 12_000] {
        pipeline.pass(more);
        windows += more;
        let claims: usize = pipeline
            .witness
            .borrow()
            .log
            .iter()
            .map(|claim| claim.encode().len())
            .sum();
        let (written, kept) = {
            let log = pipeline.log.lock().unwrap();
            (
                log.written,
                log.kept
                    .iter()
                    .map(|(_, record)| record.len())
                    .sum::<usize>(),
            )
        };
        let begun = std::time::Instant::now();
        let built = MemoryLog::open(&pipeline.log).restore_ledger(
            &params(folder().path()),
            pipeline.ledger.head(),
            at(0),
        );
        println!(
            "{windows} windows of one message of 800 bytes: {} bytes a window were appended to the log and {} to the witness; the log \
             keeps {kept} bytes; a ledger is built of {} bytes in {:.3} s",
            written / windows,
            claims / windows,
            built.unwrap().bytes,
            begun.elapsed().as_secs_f64()
        );
    }
    // Without a checkpoint: what a log of an older program has.
    let disk = folder();
    format_4(disk.path(), 3_000);
    let mut old = Pipeline::with(folder(), Ledger::open(&params(disk.path())).unwrap());
    old.deliver(old.ledger.next_window());
    let begun = std::time::Instant::now();
    let built = MemoryLog::open(&old.log)
        .restore_ledger(&params(folder().path()), old.ledger.head(), at(0))
        .unwrap();
    let seconds = begun.elapsed().as_secs_f64();
    println!(
        "{} rows without a checkpoint: {} bytes, {seconds:.1} s",
        built.rows, built.bytes
    );
    for (what, rows) in [
        ("a year of minutes", 525_600.0),
        ("a month of seconds", 2_592_000.0),
    ] {
        println!(
            "{what}, if every row takes as long: {:.0} s",
            seconds * rows / built.rows as f64
        );
    }
}
