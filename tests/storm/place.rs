//! Where episodes play: on a broker that others use too, on one that may be harmed, or on three.

use std::thread::sleep;
use std::time::Duration;

use crate::harness::cluster::Inside;
use crate::harness::kafka::Own;
use crate::harness::setup::Setup;

use super::schedule::{Harm, Site};

pub enum Place {
    Shared(String),
    Own(Own),
    Cluster(Inside),
}

impl Place {
    pub fn servers(&self) -> &str {
        match self {
            Place::Shared(servers) => servers,
            Place::Own(own) => &own.servers,
            Place::Cluster(brokers) => &brokers.servers,
        }
    }

    pub fn site(&self) -> Site {
        match self {
            Place::Shared(_) => Site::Shared,
            Place::Own(_) => Site::Own,
            Place::Cluster(_) => Site::Cluster,
        }
    }

    /// Fits a pipeline to it: brokers that are busy, stopped, or not of one time are slow to show a record.
    pub fn fit(&self, setup: &mut Setup) {
        let slack = match self {
            Place::Shared(_) => 1,
            Place::Own(_) | Place::Cluster(_) => 6,
        };
        setup.edit("clock_slack = \"200ms\"", &format!("clock_slack = \"{slack}s\""));
        setup.edit("publish_delay = \"300ms\"", &format!("publish_delay = \"{}ms\"", 1000 * slack + 300));
        if let Place::Cluster(brokers) = self {
            let input = brokers.topic("input", 2, 1, &[("message.timestamp.type", "LogAppendTime")]);
            setup.edit(&format!("topic = \"{}\"", setup.input), &format!("topic = \"{input}\""));
            setup.input = input;
            setup.edit("witness_min_insync_replicas = 1", "witness_min_insync_replicas = 2");
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
            (Place::Cluster(brokers), Harm::Alone) => brokers.cut_off(broker, || sleep(lasts)),
            (Place::Cluster(brokers), harm) => {
                let (this, next) = (broker.to_string(), (broker % 3 + 1).to_string());
                let (begin, end) = match harm {
                    Harm::Killed => (vec!["kill", &this], vec!["restart", &this]),
                    Harm::Frozen => (vec!["freeze", &this], vec!["thaw", &this]),
                    Harm::Alone | Harm::Parted => (vec!["cut", &this, &next], vec!["heal", &this, &next]),
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
