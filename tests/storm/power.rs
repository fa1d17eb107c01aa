//! Three brokers that lose their power together: a short episode, and what the storm sees where claims are not synced.

use super::counts::Counts;
use super::episode::play;
use super::harness::{cluster, preload};
use super::place::{Flush, Place};
use super::schedule::Schedule;

const TEST: &str = "power::long::brokers_that_lose_power_together_lose_no_claim";

mod long {
    use super::*;

    #[test]
    fn brokers_that_lose_power_together_lose_no_claim() {
        let Some(brokers) = cluster::inside_on_disks(TEST, 1000) else {
            return;
        };
        let folder = tempfile::tempdir().expect("a folder");
        let Some(_) = preload::build("storm/faults.c", folder.path()) else {
            return;
        };
        let counts = Counts::default();
        let unseen = Counts::default();
        let synced: Schedule = "live:16:7 power:2000:0:loses-disk power:0:0:lives"
            .parse()
            .expect("a schedule");
        let place = Place::Cluster {
            brokers,
            claims: Flush::AtOnce,
        };
        play(&synced, &place, &counts).expect("nothing is lost, and nothing is published twice");
        assert!(
            counts.of("claims that were looked for after power cuts") > 1,
            "{counts}"
        );

        // As brokers are set up by default, claims are lost, and the storm sees it.
        let Place::Cluster { brokers, .. } = place else {
            return;
        };
        let place = Place::Cluster {
            brokers,
            claims: Flush::Sometime,
        };
        let unsynced: Schedule = "live:10:7 power:2000:0:loses-disk"
            .parse()
            .expect("a schedule");
        let found = play(&unsynced, &place, &unseen).expect_err("claims are lost");
        assert!(found.contains("are gone after a power cut"), "{found}");
    }
}
