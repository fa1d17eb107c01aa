//! An explicit-state checker of the ledger on a log: two workers with a disk each, the log, the witness and the output, and all
//! orders in which their steps and the faults can happen, breadth first, within bounds.
//!
//! What holds in every state: no window is published in two versions; nothing is published that the witness has not accepted, or
//! by a ledger whose account is not that of its chain; accepted rows follow each other, so that what was paid stays paid. And from
//! every state, a worker that runs on alone publishes every window, and after that an empty disk is enough to go on. That is asked
//! for unless the log has lost a body that the worker has not either, or the witness records that nobody compares.
//!
//! With [`Setup::compares`] the witness may lose its newest claims at any moment, published or not, as where all brokers lose power
//! ([`Fault::LoseClaims`](faults::Fault::LoseClaims)). Then no window is published in two versions as long as each published row is shown by
//! the output or by a mark in the log, or, of a worker that has no other beside it, has its body in the log; and a worker that runs on alone
//! publishes every window, unless what was published, what is accepted and what it remembers contradict each other: then it stops.
//!
//! Each clause of the protocol can be taken out, and then the checker finds a violation. It also found a clause that had not been
//! written down: a worker whose claim lost gives the log what it lacks and the old file has, before it builds the new one
//! ([`Clause::OldFile`]).
//!
//! Where the model departs from the program:
//!
//! - There is no time. Any worker may act at any moment, so safety does not lean on `standby`; whether a take-over comes in time,
//!   and whether two workers that are both alive get in each other's way, is not asked.
//! - A step is what one transaction, request or read does. A read of the log shows all of it, an old view stands for an old read;
//!   an election of the log is noticed by the next read. The witness is compared with the remembered place at every read.
//! - Every row carries the digest of its account, so that a checkpoint can stand at any row; and every row replaces the noise of the one
//!   before it.
//! - A body is whole or not; in two pieces only where that is looked at, and there no append is late. The order of the log matters
//!   only there and to retention; a late or lost mark is one fault.
//! - Without [`Setup::compares`], an unclean election of the witness happens before the lost claims' rows are published, and while no worker that runs has read
//!   them; or where every disk remembers one of them, and no disk is lost afterwards. Everything else is the owner's word.
//! - Retention keeps later rows of other workers too, whether or not they are accepted. Without that nothing breaks here: it would take a
//!   row that was lost and appended again behind them, farther out than is looked.
//! - With it, a worker compares the remembered record, the output and the marks at the moment at which it sends a message. What is sent
//!   later than that is a message in flight, and nobody publishes another row while it may arrive: in the program it expires.
//! - Hashes are ideal, keys are safe, the clear part (clause 2), topics that are made anew, and shares (clauses 13 and 14) are left
//!   out. Void records of the witness take no offset unless it can lose records.
//! - Bounds: two or three rows deep, at most two draws for one row, and the faults that a case lists.

mod alone;
mod bodies;
mod explore;
mod faults;
mod lost;
mod setup;
mod state;
mod topics;
mod worker;

use self::explore::explore;
use self::setup::{CALM, Clause, Faults, Setup};

/// For each clause a case in which it is needed.
fn cases() -> Vec<(Clause, Setup)> {
    let with = |faults: Faults| Setup { faults, ..CALM };
    let one = |faults: Faults| Setup {
        windows: 1,
        ..with(faults)
    };
    let none = Faults::default();
    let dies = Faults { crashes: 1, ..none };
    let loses = Faults {
        lost_disks: 1,
        ..dies
    };
    let checkpoint = Faults {
        checkpoints: 1,
        ..loses
    };
    let cut = Setup {
        retention: true,
        ordered: true,
        ..CALM
    };
    let two_checkpoints = Faults {
        checkpoints: 2,
        ..none
    };
    vec![
        (
            Clause::NamesHead,
            Setup {
                unclaimed: 2,
                ..CALM
            },
        ),
        (
            Clause::Pieces,
            Setup {
                parts: 2,
                ordered: true,
                ..one(loses)
            },
        ),
        (Clause::BodyBeforeClaim, one(loses)),
        (
            Clause::ReadTheLog,
            one(Faults {
                lost_bodies: 1,
                ..dies
            }),
        ),
        (Clause::AfterPublishing, one(checkpoint)),
        (Clause::Replaced, with(checkpoint)),
        (Clause::OneSnapshot, with(checkpoint)),
        (Clause::ChainTest, with(checkpoint)),
        (
            Clause::NewFile,
            with(Faults {
                lost_bodies: 1,
                ..none
            }),
        ),
        (
            Clause::OldFile,
            with(Faults {
                lost_bodies: 1,
                ..none
            }),
        ),
        (Clause::Follows, CALM),
        (Clause::Wait, CALM),
        (
            Clause::WholeRecord,
            Setup {
                unclaimed: 2,
                ..with(Faults {
                    elections: 1,
                    late_claims: 2,
                    ..dies
                })
            },
        ),
        (
            Clause::Shorter,
            with(Faults {
                crashes: 2,
                elections: 1,
                ..none
            }),
        ),
        (
            Clause::NoExpiry,
            one(Faults {
                crashes: 2,
                lost_disks: 1,
                ..none
            }),
        ),
        (
            Clause::AcceptedCheckpoint,
            Setup {
                unclaimed: 2,
                faults: two_checkpoints,
                ..cut
            },
        ),
        (
            Clause::SecondNewest,
            Setup {
                faults: Faults {
                    crashes: 1,
                    lost_disks: 1,
                    ..two_checkpoints
                },
                ..cut
            },
        ),
        (
            Clause::TwoRows,
            Setup {
                faults: Faults {
                    crashes: 1,
                    lost_disks: 1,
                    ..two_checkpoints
                },
                ..cut
            },
        ),
        (Clause::MarkAfter, one(dies)),
        (Clause::Unmarked, one(dies)),
        (
            Clause::SettingsOnce,
            Setup {
                settings: true,
                claims: 5,
                ..one(dies)
            },
        ),
        (
            Clause::VoidRecords,
            one(Faults {
                stray_records: 1,
                ..none
            }),
        ),
    ]
}

/// For each part of clause 12a a case in which it is needed: the witness loses its newest claims.
fn cases_of_lost_claims() -> Vec<(Clause, Setup)> {
    let none = Faults {
        lost_claims: 1,
        ..Faults::default()
    };
    let one = |faults: Faults| Setup {
        windows: 1,
        compares: true,
        faults,
        ..CALM
    };
    let loses = Faults {
        crashes: 1,
        lost_disks: 1,
        lost_messages: 1,
        ..none
    };
    vec![
        (
            Clause::ComparesMarks,
            one(Faults {
                lost_messages: 1,
                ..none
            }),
        ),
        (Clause::ComparesOutput, one(none)),
        (Clause::ComparesDisk, one(none)),
        (
            Clause::ClaimsBodies,
            Setup {
                workers: 1,
                ..one(loses)
            },
        ),
        (Clause::ComparesAgain, one(none)),
        (
            Clause::WaitsForMessages,
            one(Faults {
                late_messages: 1,
                ..none
            }),
        ),
        (Clause::ComparesRecord, one(none)),
        (
            Clause::TellsApart,
            Setup {
                windows: 2,
                ..one(Faults {
                    stray_records: 1,
                    ..none
                })
            },
        ),
    ]
}

/// All faults but the elections, which have cases of their own.
fn everything() -> Setup {
    let faults = Faults {
        crashes: 2,
        lost_disks: 1,
        copies: 1,
        late_bodies: 1,
        late_claims: 1,
        doubled_claims: 1,
        lost_bodies: 1,
        elections: 0,
        stale_reads: 1,
        lost_marks: 1,
        checkpoints: 1,
        ..Faults::default()
    };
    Setup { faults, ..CALM }
}

/// The witness loses its newest claims twice, and other faults.
fn two_workers() -> Setup {
    let faults = Faults {
        crashes: 1,
        lost_disks: 1,
        stale_reads: 1,
        lost_marks: 1,
        checkpoints: 1,
        lost_claims: 2,
        late_messages: 1,
        stray_records: 1,
        ..Faults::default()
    };
    Setup {
        compares: true,
        faults,
        ..CALM
    }
}

/// Of a worker that has no other beside it the output may lose messages too, with their marks.
fn one_worker() -> Setup {
    let faults = Faults {
        crashes: 2,
        lost_messages: 2,
        late_claims: 1,
        ..two_workers().faults
    };
    Setup {
        workers: 1,
        compares: true,
        faults,
        ..CALM
    }
}

/// Explores up to `bound` states of a setup, which must hold.
#[track_caller]
fn holds(name: &str, setup: &Setup, bound: usize) -> usize {
    let report = explore(setup, bound);
    let all = if report.is_cut { "the first" } else { "all" };
    println!("{name}: {all} {} states", report.states);
    if let Some(trace) = report.violation {
        panic!("{name}: after {} states\n{trace}", report.states);
    }
    report.states
}

#[test]
fn without_a_clause_something_breaks() {
    for (clause, setup) in cases() {
        let report = explore(
            &Setup {
                without: Some(clause),
                ..setup
            },
            600_000,
        );
        let Some(trace) = report.violation else {
            panic!(
                "without {clause:?} nothing breaks in {} states",
                report.states
            );
        };
        println!(
            "without {clause:?}, after {} states:\n{trace}",
            report.states
        );
    }
}

#[test]
fn with_all_clauses_nothing_breaks_where_one_of_them_is_needed() {
    // Elections need long traces before something breaks without the clause.
    let bound = |setup: &Setup| {
        if setup.faults.elections > 0 {
            300_000
        } else {
            80_000
        }
    };
    let all = cases();
    let states: usize = all
        .iter()
        .map(|(clause, setup)| holds(&format!("{clause:?}"), setup, bound(setup)))
        .sum();
    println!("{states} states");
}

#[test]
fn with_all_faults_together_nothing_breaks() {
    holds(
        "one window, three crashes, copies",
        &Setup {
            windows: 1,
            faults: Faults {
                copies: 2,
                crashes: 3,
                ..Faults::default()
            },
            ..CALM
        },
        150_000,
    );
    holds("everything", &everything(), 250_000);
}

#[test]
fn without_a_part_of_the_comparison_lost_claims_break_something() {
    for (clause, setup) in cases_of_lost_claims() {
        let report = explore(
            &Setup {
                without: Some(clause),
                ..setup
            },
            600_000,
        );
        let Some(trace) = report.violation else {
            panic!(
                "without {clause:?} nothing breaks in {} states",
                report.states
            );
        };
        println!(
            "without {clause:?}, after {} states:\n{trace}",
            report.states
        );
    }
}

#[test]
fn where_the_witness_loses_its_newest_claims_no_window_is_published_twice() {
    let all = cases_of_lost_claims();
    let mut states: usize = all
        .iter()
        .map(|(clause, setup)| holds(&format!("{clause:?}"), setup, 100_000))
        .sum();
    for (name, setup) in [("two workers", two_workers()), ("one worker", one_worker())] {
        states += holds(&format!("lost claims, {name}"), &setup, 120_000);
    }
    println!("{states} states");
}

/// Tens of minutes, and some gigabytes.
#[test]
#[ignore = "tens of minutes, and some gigabytes"]
fn further_out_nothing_breaks_either() {
    for (clause, setup) in cases() {
        holds(&format!("{clause:?}"), &setup, 4_000_000);
    }
    holds("everything", &everything(), 10_000_000);
    let elections = Faults {
        elections: 1,
        ..everything().faults
    };
    holds(
        "everything, with elections",
        &Setup {
            faults: elections,
            ..everything()
        },
        10_000_000,
    );
    for (clause, setup) in cases_of_lost_claims() {
        holds(&format!("{clause:?}"), &setup, 4_000_000);
    }
    holds("lost claims, two workers", &two_workers(), 10_000_000);
    holds("lost claims, one worker", &one_worker(), 10_000_000);
    let order = Setup {
        ordered: true,
        retention: true,
        windows: 3,
        unclaimed: 2,
        ..everything()
    };
    let order = Setup {
        faults: Faults {
            checkpoints: 3,
            ..order.faults
        },
        ..order
    };
    holds("everything, with retention", &order, 10_000_000);
}
