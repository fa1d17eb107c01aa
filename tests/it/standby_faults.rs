//! Three workers of one pipeline, each on a host of its own beside three brokers: to each of them anything happens at any moment. Every
//! window of the grid leaves in one version all the same, and in the end all three have the same ledger.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::thread;
use std::time::{Duration, Instant};

use bernstream_ledger as ledger;
use bernstream_ledger::Ledger;
use bernstream_synopsis::Synopsis;
use bernstream_synopsis::clock::Timestamp;
use rand::rngs::ChaCha20Rng;
use rand::{RngExt, SeedableRng};
use rdkafka::producer::{BaseRecord, Producer};

use crate::harness::PATIENCE;
use crate::harness::cluster::{self, Inside};
use crate::harness::setup::{Row, Setup, message};
use crate::standby::{Peer, beside_brokers, create_topics, published, wait_more};

/// What happens to a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Trouble {
    Killed,
    KilledAndDiskLost,
    Frozen,
    CutOff,
    Ended,
}

const TROUBLES: [Trouble; 9] = [
    Trouble::Killed,
    Trouble::Killed,
    Trouble::KilledAndDiskLost,
    Trouble::Frozen,
    Trouble::Frozen,
    Trouble::CutOff,
    Trouble::CutOff,
    Trouble::Ended,
    Trouble::Ended,
];

/// A worker, and what is wrong with it until when.
struct Patient<'s> {
    peer: Peer<'s>,
    trouble: Option<(Trouble, Instant)>,
}

impl Patient<'_> {
    fn strike(&mut self, trouble: Trouble, until: Instant) {
        self.trouble = Some((trouble, until));
        match trouble {
            Trouble::Killed => self.peer.kill(),
            Trouble::KilledAndDiskLost => {
                self.peer.kill();
                // It may not have made one yet.
                let _ = fs::remove_dir_all(self.peer.disk());
            }
            Trouble::Frozen => self.peer.signal("-STOP"),
            Trouble::CutOff => self.peer.host.as_ref().expect("a host").cut(),
            Trouble::Ended => self.peer.signal("-TERM"),
        }
    }

    /// Ends what is wrong with it, if that is over.
    fn mend(&mut self) {
        let Some((trouble, _)) = self.trouble.filter(|(_, until)| *until <= Instant::now()) else {
            return;
        };
        match trouble {
            Trouble::Killed | Trouble::KilledAndDiskLost => self.peer.start(),
            Trouble::Frozen => self.peer.signal("-CONT"),
            Trouble::CutOff => self.peer.host.as_ref().expect("a host").heal(),
            Trouble::Ended => {
                let Some(status) = self
                    .peer
                    .child
                    .as_mut()
                    .expect("it runs")
                    .try_wait()
                    .expect("its status")
                else {
                    let (_, until) = self.trouble.expect("trouble");
                    assert!(
                        until.elapsed() < PATIENCE,
                        "it does not end:\n{}",
                        tail(&self.peer)
                    );
                    return;
                };
                // The signal may come before it is waited for.
                assert!(
                    status.success() || status.signal() == Some(15),
                    "{status}\n{}",
                    tail(&self.peer)
                );
                self.peer.start();
            }
        }
        self.trouble = None;
    }

    /// With which nothing is wrong runs.
    fn check(&mut self) {
        if self.trouble.is_some() {
            return;
        }
        let ended = self
            .peer
            .child
            .as_mut()
            .expect("it runs")
            .try_wait()
            .expect("its status");
        assert_eq!(
            ended,
            None,
            "{} ended by itself\n{}",
            self.peer.name,
            tail(&self.peer)
        );
    }
}

/// The end of its log.
fn tail(peer: &Peer<'_>) -> String {
    let log = peer.all_log();
    let lines: Vec<&str> = log.lines().collect();
    let last = lines.len().saturating_sub(100);
    format!("{}:\n{}\n", peer.name, lines[last..].join("\n"))
}

fn number(name: &str, default: u32) -> u32 {
    env::var(name)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}

/// Short ones, and now and then one that is longer than any patience.
fn lasts(random: &mut ChaCha20Rng) -> Duration {
    let most = if random.random_range(0..12) == 0 {
        45.0
    } else {
        8.0
    };
    Duration::from_secs_f64(random.random_range(0.05_f64..1.0).powi(2) * most)
}

/// Three minutes; `BERNSTREAM_FAULTS` says how many seconds, and `BERNSTREAM_FAULTS_SEED` gives another schedule.
#[test]
#[ignore = "long: minutes or hours"]
fn whatever_happens_to_three_workers_every_window_leaves_in_one_version() {
    let name =
        "standby_faults::whatever_happens_to_three_workers_every_window_leaves_in_one_version";
    let Some(brokers) = cluster::inside(name, 6_000) else {
        return;
    };
    let seconds = number("BERNSTREAM_FAULTS", 180);
    let seed = number("BERNSTREAM_FAULTS_SEED", 1);
    let (setup, standby) = beside_brokers(&brokers);
    // Time to begin before the first fault, and to come to rest after the last one.
    let last_fault = setup.start_of(30 + seconds);
    let end = setup.start_of(60 + seconds);
    setup.edit(
        &format!("end = \"{}\"", setup.start_of(3600)),
        &format!("end = \"{end}\""),
    );
    create_topics(&setup);
    let mut patients = three(&setup, &brokers);
    let happened = trouble(&setup, &mut patients, last_fault, seed.into());
    for Patient { peer, .. } in &mut patients {
        let deadline = Instant::now() + PATIENCE + end.since(Timestamp::now());
        let ended = loop {
            match peer
                .child
                .as_mut()
                .expect("it runs")
                .try_wait()
                .expect("its status")
            {
                Some(status) => break status,
                None => assert!(
                    Instant::now() < deadline,
                    "it does not come to the end\n{}",
                    tail(peer)
                ),
            }
            thread::sleep(Duration::from_millis(100));
        };
        assert!(ended.success(), "{}", tail(peer));
    }
    println!("{seconds} s of faults, seed {seed}, a standby of {standby}: {happened:?}");
    whole(&setup, end);
    agreed(&patients);
}

fn three<'s>(setup: &'s Setup, brokers: &Inside) -> [Patient<'s>; 3] {
    let mut patients = [("one", 1), ("two", 2), ("three", 3)].map(|(name, number)| {
        let peer = Peer::new(setup, name, Some(brokers.host(number)));
        Patient {
            peer,
            trouble: None,
        }
    });
    fs::rename(setup.ledger(), patients[0].peer.disk()).expect("its disk");
    for Patient { peer, .. } in &mut patients {
        peer.start();
    }
    patients
}

/// Has random things happen until `last`, while records come, and mends all; how often each happened.
fn trouble(
    setup: &Setup,
    patients: &mut [Patient<'_>; 3],
    last: Timestamp,
    seed: u64,
) -> BTreeMap<Trouble, usize> {
    let mut random = ChaCha20Rng::seed_from_u64(seed);
    let producer = setup.producer(&[("linger.ms", "5")]);
    let mut happened = BTreeMap::new();
    let mut next = setup.start_of(30);
    loop {
        let now = Timestamp::now();
        patients.iter_mut().for_each(Patient::mend);
        if now >= last && patients.iter().all(|patient| patient.trouble.is_none()) {
            break;
        }
        if now >= next && now < last {
            let patient = &mut patients[random.random_range(0..3)];
            if patient.trouble.is_none() {
                let trouble = TROUBLES[random.random_range(0..TROUBLES.len())];
                patient.strike(trouble, Instant::now() + lasts(&mut random));
                *happened.entry(trouble).or_insert(0) += 1;
            }
            // Now and then it is calm.
            let calm = if random.random_range(0..12) == 0 {
                15.0
            } else {
                5.0
            };
            next = now.plus(Duration::from_secs_f64(random.random_range(0.0..calm)));
        }
        patients.iter_mut().for_each(Patient::check);
        let rows: Vec<Row> = (0..5)
            .map(|_| Row {
                micros: now.micros(),
                key: ["a", "b"][random.random_range(0..2)],
                value: random.random_range(0.0..100.0),
            })
            .collect();
        let partition = random.random_range(0..2);
        let payload = message(&rows);
        let record = BaseRecord::<(), _>::to(&setup.input)
            .partition(partition)
            .payload(&payload);
        producer
            .send(record)
            .map_err(|(error, _)| error)
            .expect("it is queued");
        thread::sleep(Duration::from_millis(50));
    }
    producer.flush(PATIENCE).expect("the brokers take it");
    happened
}

/// One version of each window and key, and none is left out, up to the end of the grid.
fn whole(setup: &Setup, end: Timestamp) {
    let mut versions = BTreeMap::<_, BTreeMap<Vec<u8>, Vec<Timestamp>>>::new();
    let mut messages = 0;
    let mut late = Vec::new();
    for published in setup.published() {
        let synopsis = Synopsis::decode_message(&published.payload).expect("a synopsis");
        let description = synopsis.description();
        let place = (
            description.window.start,
            description.key.clone().expect("a key"),
        );
        let known = versions.entry(place).or_default();
        if known.is_empty() {
            late.push(published.stamp.since(description.published));
        }
        known
            .entry(published.payload)
            .or_default()
            .push(published.stamp);
        messages += 1;
    }
    for (place, versions) in &versions {
        let times: Vec<_> = versions.values().collect();
        assert_eq!(
            versions.len(),
            1,
            "{place:?} was drawn twice, published at {times:?}"
        );
    }
    let first = versions.keys().next().expect("a window").0;
    let mut expected = Vec::new();
    let mut start = first;
    while start < end {
        expected.extend(["a", "b"].map(|key| (start, key.to_owned())));
        start = start.plus(Duration::from_secs(1));
    }
    assert!(
        first < setup.start_of(30),
        "it begins before the first fault: {first}"
    );
    let left_out: Vec<_> = expected
        .iter()
        .filter(|place| !versions.contains_key(place))
        .collect();
    assert!(left_out.is_empty(), "left out: {left_out:?}");
    assert_eq!(versions.len(), expected.len(), "no window is too many");
    late.sort();
    let at = |part: usize| late[(late.len() - 1) * part / 1000].as_secs_f64();
    println!(
        "{} windows and keys in one version each, {} messages besides that repeat one; published after they were due: half within {:.2} s, \
         nine of ten {:.2} s, 99 of 100 {:.2} s, all {:.2} s",
        versions.len(),
        messages - versions.len(),
        at(500),
        at(900),
        at(990),
        at(1000)
    );
}

/// Every ledger is sound, and all of them are the same one.
fn agreed(patients: &[Patient<'_>; 3]) {
    let heads = patients.each_ref().map(|Patient { peer, .. }| {
        peer.verify();
        let log = peer.all_log();
        let count = |words: &str| log.matches(words).count();
        println!(
            "{}: acted {} times, built its ledger {} times, caught up {} times, handed over {} times",
            peer.name,
            count("this worker acts"),
            count("built the ledger from its log"),
            count("took the rows"),
            count("handed over to the workers that follow")
        );
        let params = ledger::LedgerParams { path: peer.disk(), keep_published: Duration::ZERO };
        *Ledger::inspect(&params).expect("a ledger").head()
    });
    assert!(heads.iter().all(|head| *head == heads[0]), "{heads:?}");
}

mod long {
    use super::*;

    /// Claims take longer than the standby: two workers draw the same windows again and again.
    #[test]
    fn brokers_that_are_slower_than_the_standby_keep_no_window_from_leaving() {
        let name = "standby_faults::long::brokers_that_are_slower_than_the_standby_keep_no_window_from_leaving";
        let Some(brokers) = cluster::inside(name, 30_000) else {
            return;
        };
        let (setup, standby) = beside_brokers(&brokers);
        setup.edit(&format!("standby = \"{standby}\""), "standby = \"1s\"");
        create_topics(&setup);
        let mut peers = [("one", 1), ("two", 2)]
            .map(|(name, number)| Peer::new(&setup, name, Some(brokers.host(number))));
        fs::rename(setup.ledger(), peers[0].disk()).expect("its disk");
        for (peer, acts) in peers.iter_mut().zip([true, false]) {
            peer.start();
            peer.wait_acts(acts);
        }
        let told = || peers.iter().map(tail).collect::<String>();
        let each = |action: &str| {
            ["1", "2", "3"]
                .iter()
                .for_each(|broker| drop(brokers.ask(&[action, broker])))
        };
        let before = published(&setup, told);
        for _ in 0..15 {
            each("freeze");
            thread::sleep(Duration::from_millis(1500));
            each("thaw");
            thread::sleep(Duration::from_millis(300));
        }
        let during = published(&setup, told);
        let lost = peers
            .iter()
            .map(|peer| peer.all_log().matches("another worker was faster").count());
        println!(
            "{} windows while brokers were slow, {:?} draws in vain",
            during - before,
            lost.collect::<Vec<_>>()
        );
        assert!(during > before + 2, "{}", told());
        wait_more(&setup, 10, told);
        peers.iter().for_each(Peer::verify);
    }
}
