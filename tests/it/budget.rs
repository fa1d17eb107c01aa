//! The budget of a user's day ends before the day does: what is paid for is published, the rest is not, and both are said,
//! in every kind of budget. And what a ledger says was spent is what a unit lost, worked out outcome by outcome.

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroU64;
use std::process::Command;
use std::time::Duration;

use bernstream_ledger::{ClosingWindow, Genesis, Ledger, LedgerRow, ReleaseOutcome};
use bernstream_noise::accountant;
use bernstream_noise::accountant::plan::{AccountantPlan, ReleaseClass};
use bernstream_noise::accountant::policy::{PricePolicy, window_number};
use bernstream_synopsis::Positions;
use bernstream_synopsis::Synopsis;
use bernstream_synopsis::calibrate::{Delta, Epsilon};
use bernstream_synopsis::grid::{Blocks, Span, SpanGrid};
use bernstream_synopsis::price::Price;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use crate::harness::ledger::{at, folder, genesis, params, sealed};
use crate::harness::policies::{HOUR, ORIGIN, bernstream, records};

/// Two days of hourly windows at `price` of `total` a day, from a file to a folder.
fn configuration(total: &str, price: &str) -> String {
    let users = fs::read_to_string("config/users.toml").expect("the example");
    let from = |text: &str, start: &str, end: &str, with: &str| {
        let (before, rest) = text.split_once(start).expect("its start");
        let (_, after) = rest.split_once(end).expect("its end");
        format!("{before}{with}{end}{after}")
    };
    let text = from(
        &users,
        "[input.kafka]",
        "[windows]",
        "files = { path = \"in.arrows\" }\n\n",
    );
    let text = from(
        &text,
        "grace =",
        "# At most",
        "end = \"2026-01-03T00:00:00Z\"\n\n[privacy]\n",
    )
    .replacen("[privacy]\n# At most", "# At most", 1);
    let text = from(
        &text,
        "[output.kafka]",
        "[ledger]",
        "[output]\nfiles = { path = \"out\" }\n\n",
    );
    text.replace("epsilon = 1.0", total)
        .replace("epsilon = 0.04", price)
}

/// One way to budget, and what is to become of it.
struct Kind {
    total: &'static str,
    price: &'static str,
    /// What the first windows of a day leave spent, in words; the next one does not fit.
    spent: &'static [&'static str],
    of: &'static str,
    /// What stands in every synopsis.
    definition: &'static str,
    in_words: &'static str,
    promised: &'static [&'static str],
    row: &'static str,
}

const PURE: Kind = Kind {
    total: "epsilon = 0.9",
    price: "epsilon = 0.2",
    spent: &["0.2", "0.4", "0.6", "0.8"],
    of: "0.9",
    definition: "pure epsilon",
    in_words: "pure differential privacy",
    promised: &[
        "by at most a factor of exp(0.9): pure differential privacy of a user's period with epsilon = 0.9",
    ],
    row: r#","0.2"]"#,
};

/// The delta ends first.
const APPROXIMATE: Kind = Kind {
    total: "epsilon = 0.9\ndelta = 1e-6",
    price: "epsilon = 0.2\ndelta = 4e-7",
    spent: &[
        "(epsilon 0.2, delta 0.0000004)",
        "(epsilon 0.4, delta 0.0000008)",
    ],
    of: "(epsilon 0.9, delta 0.000001)",
    definition: "epsilon-delta",
    in_words: "approximate, (epsilon, delta)-differential privacy",
    promised: &[
        "exp(0.9) times as much plus 0.000001: approximate, (epsilon, delta)-differential privacy",
        "far below one over the number of units",
        "makes no use of the delta",
    ],
    row: r#",{"epsilon":"0.2","delta":"0.0000004"}]"#,
};

const CONCENTRATED: Kind = Kind {
    total: "rho = 0.09",
    price: "rho = 0.02",
    spent: &["rho 0.02", "rho 0.04", "rho 0.06", "rho 0.08"],
    of: "rho 0.09",
    definition: "zero-concentrated",
    in_words: "zero-concentrated differential privacy",
    promised: &[
        "Renyi divergence of at most 0.09 a for every order a > 1",
        "zero-concentrated differential privacy of a user's period with rho = 0.09",
        // By a search over the orders of [CKS20, corollary 13]: 2.02266... and 2.56767...
        "epsilon = 2.023 at delta = 1e-6, or 2.568 at delta = 1e-9",
    ],
    row: r#",{"rho":"0.02"}]"#,
};

/// 0.2 + exp(-0.2) - 1 = 0.01873075307...
const CONVERTED: Kind = Kind {
    price: "epsilon = 0.2",
    spent: &[
        "rho 0.018730753099",
        "rho 0.037461506198",
        "rho 0.056192259297",
        "rho 0.074923012396",
    ],
    promised: &["with epsilon = 0.2, which costs a rho of epsilon + exp(-epsilon) - 1"],
    row: r#",{"rho":"0.018730753099"}]"#,
    ..CONCENTRATED
};

#[test]
fn a_day_is_published_until_its_budget_ends_and_the_next_one_begins_anew() {
    for kind in [PURE, APPROXIMATE, CONCENTRATED, CONVERTED] {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        fs::write(folder.join("c.toml"), configuration(kind.total, kind.price))
            .expect("the configuration");
        records(&folder.join("in.arrows"));
        let (_, log) = bernstream(folder, &["run", "c.toml"]);
        let paid = kind.spent.len();
        assert_eq!(
            log.matches("window withheld").count(),
            48 - 2 * paid,
            "{log}"
        );

        let published = folder.join("out/responses/response-time");
        let mut files: Vec<_> = fs::read_dir(published)
            .expect("the output")
            .map(|f| f.expect("a file").path())
            .collect();
        files.sort();
        let mut spent = Vec::new();
        for path in &files {
            let synopsis =
                Synopsis::decode_message(&fs::read(path).expect("a synopsis")).expect("a synopsis");
            let privacy = &synopsis.description().privacy;
            assert_eq!(
                (
                    privacy.price.to_string().as_str(),
                    privacy.definition.name()
                ),
                (kind.spent[0], kind.definition)
            );
            for said in kind.promised {
                assert!(
                    privacy.in_words.contains(said),
                    "{said}: {}",
                    privacy.in_words
                );
            }
            assert_eq!(
                (
                    privacy.blocks.len(),
                    privacy.blocks[0].total.to_string().as_str()
                ),
                (1, kind.of)
            );
            let start = synopsis.description().window.start.micros();
            spent.push(((start - ORIGIN) / HOUR, privacy.blocks[0].spent.to_string()));
        }
        let day = |first: i64| (first..).zip(kind.spent.iter().map(|spent| (*spent).to_owned()));
        assert_eq!(spent, day(0).chain(day(24)).collect::<Vec<_>>());

        let (shown, _) = bernstream(folder, &["ledger", "show", "c.toml"]);
        let last = format!("{} of {}", kind.spent[paid - 1], kind.of);
        for said in [
            &format!("{} released", 2 * paid),
            &format!("{} withheld", 48 - 2 * paid),
            &last,
        ] {
            assert!(shown.contains(said), "{said}: {shown}");
        }
        assert_eq!(
            shown.contains("the guarantee of a block is its total"),
            kind.definition != "pure epsilon"
        );
        bernstream(folder, &["ledger", "verify", "c.toml"]);
        let (rows, _) = bernstream(folder, &["ledger", "export", "c.toml"]);
        assert_eq!(rows.matches(kind.row).count(), 2 * paid, "{rows}");
        for command in [
            &["check", "--offline", "c.toml"][..],
            &["explain", "c.toml"],
        ] {
            let (said, _) = bernstream(folder, command);
            assert!(
                kind.promised.iter().all(|promise| said.contains(promise)),
                "{said}"
            );
        }
        let (explained, _) = bernstream(folder, &["explain", "c.toml"]);
        assert!(explained.contains(&format!(
            "{paid} of its 24 windows are published, for {}",
            kind.spent[paid - 1]
        )));
        let file = files[0].to_str().expect("a path");
        let (_, told) = bernstream(folder, &["evaluate", file, "--at", "100"]);
        assert_eq!(
            told.contains(&format!(", {}: ", kind.spent[0])),
            kind.definition != "pure epsilon",
            "{told}"
        );

        // The ledger is of this kind for ever.
        let other = if kind.definition == PURE.definition {
            CONCENTRATED
        } else {
            PURE
        };
        fs::write(
            folder.join("c.toml"),
            configuration(other.total, other.price),
        )
        .expect("the configuration");
        let refused = Command::new(env!("CARGO_BIN_EXE_bernstream"))
            .args(["run", "c.toml"])
            .current_dir(folder)
            .output();
        let refused = refused.expect("bernstream runs");
        let why = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(74), "{why}");
        assert!(
            why.contains(&format!(
                "accounts for {}, the configuration asks for {}",
                kind.in_words, other.in_words
            )),
            "{why}"
        );
    }
}

// Small streams, worked out whole: a unit has one bit, every window reports it by randomised response.

/// The probability that the leaky response gives its bit away.
const LEAK: f64 = 0.001;

/// The probabilities of an answer where the bit is 0 and where it is 1: `[0, 1, "it is 0", "it is 1"]`.
fn response(epsilon: f64, leak: f64) -> [(f64, f64); 4] {
    let truth = (1.0 - leak) / (1.0 + (-epsilon).exp());
    let lie = (1.0 - leak) / (1.0 + epsilon.exp());
    [(truth, lie), (lie, truth), (leak, 0.0), (0.0, leak)]
}

/// All outcomes of all these windows together, with their probabilities under either bit.
fn outcomes(epsilons: &[f64], leak: f64) -> Vec<(f64, f64)> {
    epsilons.iter().fold(vec![(1.0, 1.0)], |all, epsilon| {
        let answers = response(*epsilon, leak);
        all.iter()
            .flat_map(|(p, q)| answers.map(|(a, b)| (p * a, q * b)))
            .collect()
    })
}

/// How much of what is `claimed` a unit really loses, at most 1 where the claim is true.
fn lost(claimed: Price, epsilons: &[f64]) -> f64 {
    match claimed {
        Price::Pure(epsilon) => {
            let all = outcomes(epsilons, 0.0);
            let most = all
                .iter()
                .filter(|(p, _)| *p > 0.0)
                .map(|(p, q)| (p / q).ln())
                .fold(0.0, f64::max);
            most / epsilon.to_f64()
        }
        Price::Approximate { epsilon, delta } => {
            let all = outcomes(epsilons, LEAK);
            let beyond: f64 = all
                .iter()
                .map(|(p, q)| (p - q * epsilon.to_f64().exp()).max(0.0))
                .sum();
            beyond / delta.to_f64()
        }
        Price::Concentrated(rho) => {
            let all = outcomes(epsilons, 0.0);
            let at = |order: f64| {
                let moment: f64 = all
                    .iter()
                    .filter(|(p, _)| *p > 0.0)
                    .map(|(p, q)| q * (p / q).powf(order))
                    .sum();
                moment.ln() / (order - 1.0) / order
            };
            (1..60)
                .map(|i| at(1.0 + 1e-3 * 1.2_f64.powi(i)))
                .fold(0.0, f64::max)
                / rho.to_f64()
        }
        Price::Slots(_) => unreachable!("a plan is judged as a whole"),
    }
}

#[test]
fn what_a_ledger_says_was_spent_is_what_a_unit_lost() {
    let price = |epsilon: &str, total: Price| match total {
        Price::Approximate { .. } => Price::Approximate {
            epsilon: epsilon.parse().unwrap(),
            delta: LEAK.to_string().parse().unwrap(),
        },
        total => total.of_pure(epsilon.parse().unwrap()).unwrap(),
    };
    let totals = [
        Price::Pure("1".parse().unwrap()),
        Price::Approximate {
            epsilon: "1".parse().unwrap(),
            delta: "0.003".parse().unwrap(),
        },
        Price::Concentrated("0.2".parse().unwrap()),
    ];
    let mut judged = 0;
    let mut withheld = 0;
    for (total, seed) in totals
        .into_iter()
        .flat_map(|total| (0..4).map(move |seed| (total, seed)))
    {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let folder = folder();
        let begun = Genesis {
            total,
            ..genesis(at(0), "w", None)
        };
        let mut ledger = Ledger::create(&params(folder.path()), begun).unwrap();
        // Hours over periods of 150 minutes: every second border is straddled.
        let block = |n: i64| Span {
            start: at(150 * n),
            end: at(150 * n + 150),
        };
        let mut epsilons: BTreeMap<Span, f64> = BTreeMap::new();
        for hour in 0..10 {
            let window = Span {
                start: at(60 * hour),
                end: at(60 * hour + 60),
            };
            let blocks = (60 * hour / 150..=(60 * hour + 59) / 150).map(block);
            let epsilon = ["0.1", "0.3", "0.5"][rng.random_range(0..3)];
            let price = price(epsilon, total);
            let prices: Vec<_> = blocks.map(|block| (block, price)).collect();
            if accountant::quote_window(prices.iter().copied(), |block| ledger.spent(block), total)
                .is_err()
            {
                ledger
                    .withhold_window(window, Positions::default())
                    .unwrap();
                withheld += 1;
                continue;
            }
            let charges = prices;
            let sealed = vec![sealed(window, "k", 1)];
            ledger
                .pay_window(ClosingWindow {
                    window,
                    publish_at: window.end,
                    charges,
                    ends: Positions::default(),
                    sealed,
                    states: vec![],
                })
                .unwrap();
            epsilons.insert(window, epsilon.parse::<Epsilon>().unwrap().to_f64());
        }
        drop(ledger);
        let ledger = Ledger::open(&params(folder.path())).unwrap();
        for (block, spent) in ledger.newest_blocks(usize::MAX).unwrap() {
            // What a unit of the block answered, by the windows and not by the charges.
            let answered: Vec<f64> = epsilons
                .iter()
                .filter(|(window, _)| window.start < block.end && block.start < window.end)
                .map(|(_, epsilon)| *epsilon)
                .collect();
            let share = lost(spent, &answered);
            assert!(
                spent.is_within(total) && share <= 1.0 + 1e-6,
                "{spent} of {total}: {share} {answered:?}"
            );
            // No claim is for free: one that is 5 % lower would be found out.
            assert!(share > 0.95, "{spent}: {share} {answered:?}");
            judged += 1;
        }
        // And the sums are those of the rows, part by part.
        let mut sums: BTreeMap<Span, Price> = BTreeMap::new();
        for stored in ledger.rows().unwrap() {
            if let LedgerRow::Window(row) = stored.row
                && let ReleaseOutcome::Released { charges, .. } = row.outcome
            {
                for (block, price) in charges {
                    let sum = sums.entry(block).or_insert(total.zero_of_kind());
                    *sum = sum.checked_add(price).unwrap();
                }
            }
        }
        assert_eq!(
            ledger.newest_blocks(usize::MAX).unwrap(),
            sums.into_iter().rev().collect::<Vec<_>>()
        );
    }
    assert!(judged > 40 && withheld > 5, "{judged} {withheld}");
}

/// Releases as the worker does: what each window pays follows from its number in the block, and every one answers by
/// randomised response for all that it pays.
fn under(
    policy: PricePolicy,
    total: Price,
    blocks: Blocks,
) -> (Vec<(Span, f64)>, BTreeMap<Span, Price>) {
    let folder = folder();
    let mut ledger = Ledger::create(
        &params(folder.path()),
        Genesis {
            total,
            ..genesis(at(0), "w", None)
        },
    )
    .unwrap();
    let windows = SpanGrid::new(at(0), Duration::from_secs(3600)).unwrap();
    let mut epsilons = Vec::new();
    for hour in 0..8 {
        let window = windows.span_of(at(60 * hour));
        let price = policy.window_price(window_number(
            windows,
            blocks.span_of(window.start),
            at(0),
            window,
        ));
        let charges: Vec<_> = price.map_or(Vec::new(), |price| {
            blocks.spans_meeting(window).map(|b| (b, price)).collect()
        });
        let is_paid =
            accountant::quote_window(charges.iter().copied(), |block| ledger.spent(block), total)
                .is_ok();
        let Some(price) = price.filter(|_| is_paid) else {
            ledger
                .withhold_window(window, Positions::default())
                .unwrap();
            continue;
        };
        let sealed = vec![sealed(window, "k", 1)];
        let ends = Positions::default();
        ledger
            .pay_window(ClosingWindow {
                window,
                publish_at: window.end,
                charges,
                ends,
                sealed,
                states: Vec::new(),
            })
            .unwrap();
        epsilons.push((window, price.largest_pure_epsilon().to_f64()));
    }
    drop(ledger);
    let ledger = Ledger::open(&params(folder.path())).unwrap();
    let spent = ledger
        .newest_blocks(usize::MAX)
        .unwrap()
        .into_iter()
        .collect();
    (epsilons, spent)
}

#[test]
fn what_policies_spend_is_what_a_unit_lost_in_a_period_and_for_ever() {
    let some = |count| NonZeroU64::new(count).unwrap();
    let halves = SpanGrid::new(at(0), Duration::from_secs(150 * 60)).unwrap();
    let mut judged = 0;
    for share in [
        Price::Pure("1".parse().unwrap()),
        Price::Concentrated("0.2".parse().unwrap()),
    ] {
        let fixed = PricePolicy::Fixed(share.map_parts(|count| count / 3));
        let horizon = |windows| PricePolicy::Horizon {
            share,
            windows: some(windows),
        };
        let fading = PricePolicy::Decaying {
            share,
            half_after: some(2),
        };
        for (policy, for_ever) in [(fixed, 3), (horizon(5), 5), (horizon(20), 8), (fading, 8)] {
            for blocks in [Blocks::Forever, Blocks::from(halves)] {
                let (epsilons, spent) = under(policy, share, blocks);
                if blocks == Blocks::Forever {
                    assert_eq!((epsilons.len(), spent.len()), (for_ever, 1), "{policy:?}");
                }
                for (block, spent) in spent {
                    let met = |(window, _): &&(Span, f64)| {
                        window.start < block.end && block.start < window.end
                    };
                    let answered: Vec<f64> = epsilons
                        .iter()
                        .filter(met)
                        .map(|(_, epsilon)| *epsilon)
                        .collect();
                    let lost = lost(spent, &answered);
                    assert!(
                        spent.is_within(share) && lost <= 1.0 + 1e-6 && lost > 0.95,
                        "{policy:?} {spent}: {lost}"
                    );
                    judged += 1;
                }
            }
        }
    }
    assert!(judged > 30, "{judged}");
}

#[test]
fn a_plan_keeps_its_epsilon_and_delta_with_all_its_windows_and_with_fewer() {
    for (each, windows, delta) in [
        ("0.3", 6, "0.001"),
        ("0.1", 8, "0.0001"),
        ("0.9", 4, "0.01"),
    ] {
        let each: Epsilon = each.parse().unwrap();
        let delta: Delta = delta.parse().unwrap();
        let plan = AccountantPlan::new([(ReleaseClass::Pure(each), windows)]);
        let epsilon = plan.epsilon(delta).unwrap();
        let (epsilons, spent) = under(
            PricePolicy::Fixed(Price::SLOT),
            Price::Slots(windows),
            Blocks::Forever,
        );
        assert_eq!(
            (epsilons.len() as u64, spent[&Span::ALL]),
            (windows, Price::Slots(windows))
        );
        let beyond = |count: u64| -> f64 {
            let all = outcomes(&vec![each.to_f64(); count as usize], 0.0);
            all.iter()
                .map(|(p, q)| (p - q * epsilon.to_f64().exp()).max(0.0))
                .sum()
        };
        let most = beyond(windows) / delta.to_f64();
        assert!(
            most <= 1.0 && (1..windows).all(|fewer| beyond(fewer) <= delta.to_f64()),
            "{each}: {most}"
        );
        // No epsilon is for free, but for the sum of all, which needs no delta.
        let basic = each.to_f64() * windows as f64;
        assert!(
            most > 0.99 || epsilon.to_f64() >= basic - 1e-9,
            "{each}: {most} {epsilon} {basic}"
        );
    }
}
