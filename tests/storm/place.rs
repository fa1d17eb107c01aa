//! Where episodes play: on a broker that others use too, on one that may be harmed, or on three.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::thread::sleep;
use std::time::Duration;

use crate::harness::cluster::Inside;
use crate::harness::kafka::Own;
use crate::harness::setup::Setup;

use super::schedule::{Harm, Site};

pub enum Place {
    Shared(String),
    Own(Own),
    Cluster { brokers: Inside, claims: Flush },
}

/// When brokers that can lose their power bring a claim to their disks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flush {
    /// Before it counts as written.
    AtOnce,
    /// When their system does.
    Sometime,
}

/// What makes a broker sync each record of a topic before it counts as written.
const AT_ONCE: (&str, &str) = ("flush.messages", "1");
const BROKER_TIME: (&str, &str) = ("message.timestamp.type", "LogAppendTime");
/// What a witness and a ledger log must have, beside what all topics of a test have.
const ORDERED: [(&str, &str); 5] = [
    ("cleanup.policy", "delete"),
    ("retention.bytes", "-1"),
    ("unclean.leader.election.enable", "false"),
    ("min.insync.replicas", "2"),
    BROKER_TIME,
];

impl Place {
    pub fn servers(&self) -> &str {
        match self {
            Place::Shared(servers) => servers,
            Place::Own(own) => &own.servers,
            Place::Cluster { brokers, .. } => &brokers.servers,
        }
    }

    pub fn site(&self) -> Site {
        match self {
            Place::Shared(_) => Site::Shared,
            Place::Own(_) => Site::Own,
            Place::Cluster { brokers, .. } if brokers.can_lose_power() => Site::Powered,
            Place::Cluster { .. } => Site::Cluster,
        }
    }

    /// Fits a pipeline to it: brokers that are busy, stopped, or not of one time are slow to show a record.
    pub fn fit(&self, setup: &mut Setup) {
        let slack = match self {
            Place::Shared(_) => 1,
            Place::Own(_) | Place::Cluster { .. } => 6,
        };
        setup.edit(
            "clock_slack = \"200ms\"",
            &format!("clock_slack = \"{slack}s\""),
        );
        setup.edit(
            "publish_delay = \"300ms\"",
            &format!("publish_delay = \"{}ms\"", 1000 * slack + 300),
        );
        let Place::Cluster { brokers, claims } = self else {
            return;
        };
        setup.edit(
            "witness_min_insync_replicas = 1",
            "witness_min_insync_replicas = 2",
        );
        if brokers.can_lose_power() {
            fit_to_power(setup, brokers, *claims);
        } else {
            let input = brokers.topic("input", 2, 1, &[BROKER_TIME]);
            setup.input = replaced(setup, &setup.input, input);
        }
    }

    /// The brokers whose power can fail.
    pub fn powered(&self) -> &Inside {
        match self {
            Place::Cluster { brokers, .. } if brokers.can_lose_power() => brokers,
            _ => panic!("no broker here can lose its power"),
        }
    }

    /// Harms a broker for a while.
    pub fn harm(&self, harm: Harm, broker: i32, lasts: Duration) {
        match (self, harm) {
            (Place::Own(own), Harm::Killed) => {
                own.ask("crash");
                sleep(lasts);
                own.ask("restart");
            }
            (Place::Own(own), Harm::Frozen) => {
                own.signal("-STOP");
                sleep(lasts);
                own.signal("-CONT");
            }
            (Place::Cluster { brokers, .. }, Harm::Alone) => {
                brokers.cut_off(broker, || sleep(lasts))
            }
            (Place::Cluster { brokers, .. }, harm) => {
                let this = broker.to_string();
                let next = (broker % 3 + 1).to_string();
                let (begin, end) = match harm {
                    Harm::Killed => (vec!["kill", &this], vec!["restart", &this]),
                    Harm::Frozen => (vec!["freeze", &this], vec!["thaw", &this]),
                    Harm::Alone | Harm::Parted => {
                        (vec!["cut", &this, &next], vec!["heal", &this, &next])
                    }
                    Harm::Ahead => (vec!["clock", &this, "2"], vec!["clock", &this, "0"]),
                    Harm::Behind => (vec!["clock", &this, "-2"], vec!["clock", &this, "0"]),
                };
                brokers.ask(&begin);
                sleep(lasts);
                brokers.ask(&end);
            }
            (Place::Own(_) | Place::Shared(_), _) => panic!("{harm} is not for this place"),
        }
    }
}

/// Gives a pipeline topics that lose nothing in a failure of power, but for claims that are to be lost, and a ledger log, from which a
/// worker without its disk builds its ledger.
fn fit_to_power(setup: &mut Setup, brokers: &Inside, claims: Flush) {
    let input = brokers.topic(
        "input",
        2,
        1,
        &[BROKER_TIME, AT_ONCE, ("min.insync.replicas", "2")],
    );
    setup.input = replaced(setup, &setup.input, input);
    let output = brokers.topic("output", 1, 2, &[AT_ONCE, ("min.insync.replicas", "2")]);
    setup.output = replaced(setup, &setup.output, output);
    let synced = [ORDERED.as_slice(), &[AT_ONCE]].concat();
    let witness = match claims {
        Flush::AtOnce => brokers.topic("witness", 1, 3, &synced),
        Flush::Sometime => {
            setup.edit(
                "[output.kafka]\n",
                "[output.kafka]\nbrokers_lose_power = \"separately\"\n",
            );
            brokers.topic("witness", 1, 3, &ORDERED)
        }
    };
    setup.witness = replaced(setup, &setup.witness, witness);
    let log = brokers.topic("ledger", 1, 1, &synced);
    let key = setup.folder.path().join("key");
    fs::write(&key, [7; 32]).expect("the key is written");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).expect("it is a secret");
    let log = format!(
        "[ledger]\nlog = \"{log}\"\nkey_file = \"{}\"\nstandby = \"2s\"\n",
        key.display()
    );
    setup.edit("[ledger]\n", &log);
}

/// Names another topic in the configuration.
fn replaced(setup: &Setup, old: &str, new: String) -> String {
    setup.edit(&format!("\"{old}\""), &format!("\"{new}\""));
    new
}
