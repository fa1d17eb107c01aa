//! Shares of a budget, without a broker: the fold against one that counts every block by itself, and pipelines that join, lose
//! their ledgers and end, through a topic that loses, doubles and delays what is written. No block is ever charged beyond the
//! whole, and what has ended can be taken again.

use std::collections::{BTreeMap, BTreeSet};

use bernstream_ledger::budget::entry::{
    BlockGrid, BudgetEntry, BudgetRecord, BudgetTerms, ShareEnd, ShareHolder,
};
use bernstream_ledger::budget::error::BudgetError;
use bernstream_ledger::budget::fold::{BudgetShares, RecordRejection};
use bernstream_ledger::budget::join::{JoinStep, WantedShare, next_step};
use bernstream_synopsis::Fraction;
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::grid::{Blocks, SpanGrid};
use bernstream_synopsis::price::Price;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use serde_json::json;

const WHOLE: u32 = 1_000_000;

/// The start of a block: one an hour.
fn at(block: i64) -> Timestamp {
    Timestamp::from_micros(block * 3_600_000_000)
}

fn number(time: Timestamp) -> i64 {
    time.micros() / 3_600_000_000
}

fn share(millionths: u32) -> Fraction {
    Fraction::from_millionths(millionths).unwrap()
}

fn shared() -> BudgetTerms {
    BudgetTerms {
        fields: None,
        input: "input".into(),
        unit: json!("record"),
        time: "time".into(),
        time_format: None,
        blocks: BlockGrid::Every {
            origin: at(0),
            length: 3_600_000_000,
        },
        adjacency: json!("add_remove"),
        total: Price::Pure("1".parse().unwrap()),
    }
}

fn holder(owner: &str, generation: u64) -> ShareHolder {
    ShareHolder {
        owner: owner.into(),
        generation,
    }
}

fn entry(owner: &str, generation: u64, millionths: u32, from: i64) -> BudgetEntry {
    let holder = holder(owner, generation);
    let share = share(millionths);
    BudgetEntry {
        holder,
        pipeline: owner.into(),
        share,
        from: at(from),
        of: shared(),
    }
}

fn takes(owner: &str, generation: u64, millionths: u32, from: i64) -> BudgetRecord {
    BudgetRecord::Share(entry(owner, generation, millionths, from))
}

fn ends(owner: &str, generation: u64, from: i64) -> BudgetRecord {
    BudgetRecord::End(ShareEnd {
        holder: holder(owner, generation),
        from: at(from),
    })
}

fn wanted(owner: &str, millionths: u32, from: i64) -> WantedShare {
    let topic = "budget".into();
    let share = share(millionths);
    WantedShare {
        topic,
        owner: owner.into(),
        pipeline: owner.into(),
        share,
        of: shared(),
        from: at(from),
        may_wait: true,
        was_claimed: false,
    }
}

fn fold(records: &[BudgetRecord]) -> (BudgetShares, Vec<Result<(), RecordRejection>>) {
    let mut shares = BudgetShares::default();
    let verdicts = records
        .iter()
        .map(|record| shares.apply_record(record.clone()))
        .collect();
    (shares, verdicts)
}

#[test]
fn the_fold_accepts_what_one_that_counts_every_block_accepts() {
    const BLOCKS: usize = 30;
    let mut accepted = 0;
    let mut refused = 0;
    let mut handed_over = 0;
    for seed in 0..3000 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut shares = BudgetShares::default();
        let mut counted = [0_u32; BLOCKS];
        let mut known: BTreeMap<ShareHolder, (u32, usize, bool)> = BTreeMap::new();
        let mut taken_over = 0;
        for _ in 0..20 {
            let who = holder(
                ["a", "b", "c", "d"][rng.random_range(0..4)],
                rng.random_range(0..3),
            );
            let block = rng.random_range(0..BLOCKS - 1);
            let millionths = [
                100_000, 250_000, 333_333, 333_334, 500_000, 999_999, 1_000_000,
            ][rng.random_range(0..7)];
            let first = i64::try_from(block).unwrap();
            if rng.random_bool(0.6) {
                // What the same owner holds is handed over, if it began before.
                let own = |(held, (_, from, has_ended)): &(&ShareHolder, &(u32, usize, bool))| {
                    held.owner == who.owner && *from <= block && !has_ended
                };
                let handed: u32 = known
                    .iter()
                    .filter(own)
                    .map(|(_, (millionths, ..))| millionths)
                    .sum();
                let fits = counted[block..]
                    .iter()
                    .all(|sum| sum + millionths <= WHOLE + handed);
                let is_new = known
                    .keys()
                    .filter(|held| held.owner == who.owner)
                    .all(|held| held.generation < who.generation);
                let must = fits && is_new;
                let verdict =
                    shares.apply_record(takes(&who.owner, who.generation, millionths, first));
                assert_eq!(
                    verdict.is_ok(),
                    must,
                    "seed {seed}: {who:?} {millionths} from {block}: {verdict:?}"
                );
                if must {
                    for (held, (millionths, from, has_ended)) in &mut known {
                        if held.owner == who.owner && *from <= block && !*has_ended {
                            counted[block..]
                                .iter_mut()
                                .for_each(|sum| *sum -= *millionths);
                            *has_ended = true;
                            taken_over += 1;
                        }
                    }
                    counted[block..]
                        .iter_mut()
                        .for_each(|sum| *sum += millionths);
                    known.insert(who, (millionths, block, false));
                    accepted += 1;
                } else {
                    refused += 1;
                }
            } else {
                let must = known.get(&who).is_some_and(|(.., has_ended)| !has_ended);
                assert_eq!(
                    shares
                        .apply_record(ends(&who.owner, who.generation, first))
                        .is_ok(),
                    must,
                    "seed {seed}"
                );
                if let Some((millionths, from, has_ended)) = known.get_mut(&who).filter(|_| must) {
                    // One that ends before it begins covers nothing.
                    counted[(*from).max(block)..]
                        .iter_mut()
                        .for_each(|sum| *sum -= *millionths);
                    *has_ended = true;
                }
            }
            for block in 0..BLOCKS {
                let most = counted[block..].iter().max().copied().unwrap();
                assert_eq!(
                    shares.left_from(at(i64::try_from(block).unwrap())),
                    share(WHOLE - most),
                    "seed {seed}"
                );
            }
            // Where a share fits first, and that it fits nowhere before.
            let fits = |block: &usize| {
                counted[*block..]
                    .iter()
                    .all(|sum| sum + millionths <= WHOLE)
            };
            let expected = (block..BLOCKS)
                .find(fits)
                .map(|block| at(i64::try_from(block).unwrap()));
            assert_eq!(
                shares.first_fit(share(millionths), at(first)),
                expected,
                "seed {seed}"
            );
        }
        handed_over += taken_over;
    }
    assert!(
        accepted > 5000 && refused > 5000,
        "{accepted} and {refused}"
    );
    assert!(handed_over > 500, "{handed_over}");
}

#[test]
fn what_is_doubled_late_or_of_another_budget_is_void_for_ever() {
    let other = |change: &dyn Fn(&mut BudgetTerms)| {
        let mut entry = entry("b", 0, 100_000, 0);
        change(&mut entry.of);
        let (_, verdicts) = fold(&[takes("a", 0, 400_000, 0), BudgetRecord::Share(entry)]);
        assert_eq!(verdicts[0], Ok(()));
        match verdicts[1].clone() {
            Err(RecordRejection::Other(what)) => what,
            other => panic!("{other:?}"),
        }
    };
    let day = BlockGrid::Every {
        origin: at(0),
        length: 24 * 3_600_000_000,
    };
    assert!(other(&|shared| shared.input = "anew".into()).contains("another input topic"));
    assert!(
        other(&|shared| shared.unit = json!({ "column": "user", "per": "ever" }))
            .contains("the unit of privacy")
    );
    assert!(
        other(&|shared| shared.time = "when".into())
            .contains("input.time is time there, and when here")
    );
    assert!(other(&|shared| shared.blocks = day).contains("the blocks is one every 1h"));
    assert!(
        other(&|shared| shared.adjacency = json!({ "records_per_window": 9 }))
            .contains("privacy.adjacency")
    );
    assert!(
        other(&|shared| shared.total = Price::Pure("2".parse().unwrap()))
            .contains("the whole total is 1 there, and 2")
    );
    assert!(
        other(&|shared| shared.total = Price::Concentrated("1".parse().unwrap()))
            .contains("the whole total")
    );

    let (shares, verdicts) = fold(&[
        takes("a", 0, 600_000, 0),
        takes("a", 0, 600_000, 0),
        takes("b", 0, 500_000, 0),
        ends("a", 0, 5),
        ends("a", 0, 3),
        takes("b", 0, 500_000, 4),
        takes("b", 0, 500_000, 5),
        // Delivered again after its end.
        takes("a", 0, 600_000, 7),
        ends("c", 0, 7),
        takes("c", 0, 0, 7),
    ]);
    let left = share(400_000);
    let expected = [
        Ok(()),
        Err(RecordRejection::Again),
        Err(RecordRejection::TooMuch(left)),
        Ok(()),
        Err(RecordRejection::Ended),
        Err(RecordRejection::TooMuch(left)),
        Ok(()),
        Err(RecordRejection::Again),
        Err(RecordRejection::Unheld),
        Err(RecordRejection::Nothing),
    ];
    assert_eq!(verdicts, expected);
    assert_eq!(
        shares.left_over_time(at(0)),
        [(at(0), share(400_000)), (at(5), share(500_000))]
    );

    let mut between = entry("a", 0, 100_000, 0);
    between.from = Timestamp::from_micros(1);
    assert_eq!(
        fold(&[BudgetRecord::Share(between)]).1,
        [Err(RecordRejection::OffGrid)]
    );
    let aside = BudgetRecord::End(ShareEnd {
        holder: holder("a", 0),
        from: Timestamp::from_micros(1),
    });
    assert_eq!(
        fold(&[takes("a", 0, 1, 0), aside]).1,
        [Ok(()), Err(RecordRejection::OffGrid)]
    );
}

#[test]
fn blocks_that_are_the_same_are_written_the_same() {
    let hours = |origin: i64| {
        let grid = SpanGrid::new(
            Timestamp::from_micros(origin),
            std::time::Duration::from_secs(3600),
        )
        .unwrap();
        BlockGrid::from(Blocks::from(grid))
    };
    assert_eq!(hours(0), hours(-7 * 3_600_000_000));
    assert_eq!(hours(5), hours(9 * 3_600_000_000 + 5));
    assert_ne!(hours(0), hours(5));
    let record = takes("a", 0, 333_333, -3);
    assert_eq!(
        BudgetRecord::decode(record.encode().as_bytes()),
        Some(record.clone())
    );
    assert!(
        record.encode().contains(r#""share":"0.333333""#),
        "{}",
        record.encode()
    );
    for wrong in [
        "{}",
        &record.encode().replace("0.333333", "1.1"),
        &record.encode().replace("\"of\"", "\"off\""),
    ] {
        assert_eq!(BudgetRecord::decode(wrong.as_bytes()), None, "{wrong}");
    }
}

#[test]
fn a_pipeline_takes_continues_or_is_told_what_is_left() {
    let (shares, _) = fold(&[
        takes("a", 0, 600_000, 2),
        takes("b", 0, 300_000, 2),
        ends("a", 0, 9),
    ]);
    let write = |owner: &str, generation, millionths, from| {
        Ok::<_, String>(JoinStep::Write(entry(owner, generation, millionths, from)))
    };
    let decide =
        |wanted: &WantedShare| next_step(&shares, wanted, None).map_err(|error| error.to_string());
    // A share that is held goes on, never before it began.
    assert_eq!(
        decide(&wanted("b", 300_000, 4)),
        Ok(JoinStep::Begin {
            holder: holder("b", 0),
            from: at(4)
        })
    );
    assert_eq!(
        decide(&wanted("b", 300_000, 1)),
        Ok(JoinStep::Begin {
            holder: holder("b", 0),
            from: at(2)
        })
    );
    // Where its witness has accepted something, a new ledger takes it over, and goes on once its entry is read back.
    let replacing = WantedShare {
        was_claimed: true,
        ..wanted("b", 300_000, 4)
    };
    assert_eq!(decide(&replacing), write("b", 1, 300_000, 4));
    let mut after = shares.clone();
    after.apply_record(takes("b", 1, 300_000, 4)).unwrap();
    assert_eq!(after.share_of(&holder("b", 0)).unwrap().until, Some(at(4)));
    let ours = holder("b", 1);
    let begun = JoinStep::Begin {
        holder: ours.clone(),
        from: at(4),
    };
    assert_eq!(next_step(&after, &replacing, Some(&ours)).unwrap(), begun);
    assert_eq!(
        after.apply_record(ends("b", 0, 3)),
        Err(RecordRejection::Ended),
        "an end of the ledger before frees nothing"
    );
    // One that has ended is followed by the next generation, after its end.
    assert_eq!(decide(&wanted("a", 100_000, 4)), write("a", 1, 100_000, 9));
    assert_eq!(decide(&wanted("c", 100_000, 4)), write("c", 0, 100_000, 4));
    assert_eq!(
        decide(&wanted("c", 700_000, 4)),
        write("c", 0, 700_000, 9),
        "as soon as it fits"
    );
    let history = WantedShare {
        may_wait: false,
        ..wanted("c", 700_000, 4)
    };
    let told = decide(&history).unwrap_err();
    assert!(
        told.contains(&format!("has a share of 0.7 from {} on", at(9))),
        "{told}"
    );
    let told = decide(&wanted("c", 800_000, 4)).unwrap_err();
    let left = format!(
        "no share of 0.8 left: 0.1 is left from {} on, 0.7 is left from {} on.",
        at(4),
        at(9)
    );
    assert!(told.contains(&left), "{told}");
    assert!(
        told.contains(&format!(
            "held by a (0.6 from {} until {}), b (0.3 from {})",
            at(2),
            at(9),
            at(2)
        )),
        "{told}"
    );
    let told = decide(&wanted("b", 400_000, 4)).unwrap_err();
    assert!(
        told.contains("holds a share of 0.3") && told.contains("asks for 0.4"),
        "{told}"
    );
    let mut foreign = wanted("c", 1, 4);
    foreign.of.time = "when".into();
    assert!(matches!(
        next_step(&shares, &foreign, None),
        Err(BudgetError::OtherBudget { .. })
    ));
}

/// The clause that a negative control leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Without {
    Nothing,
    /// The entry is read back before the ledger is made.
    ReadBack,
    /// The ledger begins with a block that its entry covers.
    FirstBlock,
    /// The ledger's own row comes before the end entry.
    Order,
    /// The topic is asked for its id, and read, before a claim.
    Guard,
    /// A new ledger where another one was accepted takes the next generation.
    Generation,
}

/// A ledger on its volume.
#[derive(Clone, Debug)]
struct Book {
    /// The id of the topic that its share is in.
    topic: u32,
    holder: ShareHolder,
    share: u32,
    from: i64,
    until: Option<i64>,
}

struct World {
    without: Without,
    rng: ChaCha8Rng,
    /// The block that is being released.
    now: i64,
    topic: Vec<BudgetRecord>,
    id: u32,
    late: Vec<BudgetRecord>,
    books: [Option<Book>; 3],
    /// The end of the last block that each pipeline's witness has accepted.
    claimed: [i64; 3],
    /// Whether it has accepted anything.
    was_claimed: [bool; 3],
    asks: [u32; 3],
    charged: BTreeMap<i64, u32>,
    charges: usize,
}

const OWNERS: [&str; 3] = ["a", "b", "c"];

impl World {
    fn new(seed: u64, without: Without) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let asks =
            [0; 3].map(|_: i32| [300_000, 500_000, 600_000, 1_000_000][rng.random_range(0..4)]);
        let late = vec![];
        let books = [None, None, None];
        let charged = BTreeMap::new();
        World {
            without,
            rng,
            now: 1,
            topic: vec![],
            id: 0,
            late,
            books,
            claimed: [0; 3],
            was_claimed: [false; 3],
            asks,
            charged,
            charges: 0,
        }
    }

    fn shares(&self) -> BudgetShares {
        fold(&self.topic).0
    }

    /// Written, written twice, delayed or lost: nobody knows which.
    fn append(&mut self, record: BudgetRecord) {
        match self.rng.random_range(0..10) {
            0..6 => self.topic.push(record),
            6 => self.topic.extend([record.clone(), record]),
            7 => {
                self.topic.push(record.clone());
                self.late.push(record);
            }
            8 => self.late.push(record),
            _ => {}
        }
    }

    fn join(&mut self, who: usize) {
        if self.books[who].is_some() {
            return;
        }
        // History only where nothing was ever accepted.
        let is_history = !self.was_claimed[who] && self.rng.random_bool(0.4);
        let from = if is_history {
            self.rng.random_range(0..=self.now)
        } else {
            self.now + 1
        };
        let was_claimed = self.was_claimed[who] && self.without != Without::Generation;
        let wanted = WantedShare {
            was_claimed,
            ..wanted(OWNERS[who], self.asks[who], from.max(self.claimed[who]))
        };
        let mut ours = None;
        for _ in 0..4 {
            let (holder, from) = match next_step(&self.shares(), &wanted, ours.as_ref()) {
                Err(_) => return,
                Ok(JoinStep::Begin { holder, from }) => (holder, number(from)),
                Ok(JoinStep::Write(entry)) => {
                    self.append(BudgetRecord::Share(entry.clone()));
                    // A crash between the entry and the ledger.
                    if self.rng.random_bool(0.2) {
                        return;
                    }
                    if self.without != Without::ReadBack {
                        ours = Some(entry.holder);
                        continue;
                    }
                    (entry.holder, number(entry.from))
                }
            };
            let from = if self.without == Without::FirstBlock {
                number(wanted.from)
            } else {
                from
            };
            self.books[who] = Some(Book {
                topic: self.id,
                holder,
                share: self.asks[who],
                from,
                until: None,
            });
            return;
        }
    }

    fn end(&mut self, who: usize) {
        let Some(book) = self.books[who].clone().filter(|book| book.topic == self.id) else {
            return;
        };
        let until = book
            .until
            .unwrap_or_else(|| self.claimed[who].max(book.from) + self.rng.random_range(0..3));
        let record = BudgetRecord::End(ShareEnd {
            holder: book.holder,
            from: at(until),
        });
        let crashes = self.rng.random_bool(0.3);
        if self.without == Without::Order {
            self.append(record);
            if crashes {
                return;
            }
        }
        if let Some(book) = &mut self.books[who] {
            book.until = Some(until);
        }
        self.was_claimed[who] = true;
        if self.without != Without::Order && !crashes {
            let record = BudgetRecord::End(ShareEnd {
                holder: self.books[who].clone().unwrap().holder,
                from: at(until),
            });
            self.append(record);
        }
    }

    /// Somebody deletes the topic, and makes it anew. What was spent under the old one is for its owners to decide; whoever goes on
    /// with a share of that spends beyond the new one.
    fn make_anew(&mut self) {
        (self.topic, self.late, self.charged) = (vec![], vec![], BTreeMap::new());
        self.id += 1;
    }

    /// The block is over: whoever may release it does.
    fn close(&mut self) {
        let now = self.now;
        let shares = self.shares();
        for who in 0..3 {
            let Some(book) = &self.books[who] else {
                continue;
            };
            let held = shares.share_of(&book.holder);
            let is_guarded = !matches!(
                self.without,
                Without::Guard | Without::Order | Without::ReadBack
            );
            // History first.
            for block in book.from.max(self.claimed[who])..=now {
                let is_ours = book.until.is_none_or(|until| block < until);
                let stands = book.topic == self.id
                    && held
                        .is_some_and(|held| held.until.is_none_or(|until| at(block + 1) <= until));
                if is_ours && (stands || !is_guarded) {
                    *self.charged.entry(block).or_default() += book.share;
                    self.charges += 1;
                    self.claimed[who] = block + 1;
                    self.was_claimed[who] = true;
                }
            }
        }
        self.now += 1;
    }

    fn run(&mut self, steps: usize) -> Result<(), String> {
        for _ in 0..steps {
            let who = self.rng.random_range(0..3);
            match self.rng.random_range(0..100) {
                0..30 => self.close(),
                30..60 => self.join(who),
                60..75 => self.end(who),
                75..84 => self.books[who] = None,
                84 if self.rng.random_bool(0.1) => self.make_anew(),
                85..95 if !self.late.is_empty() => {
                    let at = self.rng.random_range(0..self.late.len());
                    let record = self.late.swap_remove(at);
                    self.topic.push(record);
                }
                // A pipeline that has ended begins again with another share.
                _ if self.books[who]
                    .as_ref()
                    .is_some_and(|book| book.until.is_some_and(|until| until <= self.now)) =>
                {
                    self.books[who] = None;
                    self.asks[who] = [300_000, 500_000, 600_000][self.rng.random_range(0..3)];
                }
                _ => {}
            }
            if let Some((block, sum)) = self.charged.iter().find(|(_, sum)| **sum > WHOLE) {
                return Err(format!("block {block} was charged {sum}"));
            }
        }
        Ok(())
    }
}

#[test]
fn no_block_is_charged_beyond_the_whole_whatever_the_topic_does() {
    let mut charges = 0;
    let mut full = 0;
    for seed in 0..10_000 {
        let mut world = World::new(seed, Without::Nothing);
        world
            .run(150)
            .unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        charges += world.charges;
        full += world.charged.values().filter(|sum| **sum > 800_000).count();
        // Whatever comes late: everything that ends is there for others again.
        let late = std::mem::take(&mut world.late);
        world.topic.extend(late);
        let shares = world.shares();
        let live: BTreeSet<&str> = shares
            .held_shares()
            .iter()
            .filter(|held| held.until.is_none())
            .map(|held| held.entry.pipeline.as_str())
            .collect();
        assert!(
            shares
                .held_shares()
                .iter()
                .filter(|held| held.until.is_none())
                .count()
                <= live.len(),
            "one share a pipeline"
        );
        for held in shares
            .held_shares()
            .iter()
            .filter(|held| held.until.is_none())
        {
            let end = ShareEnd {
                holder: held.entry.holder.clone(),
                from: at(world.now + 50),
            };
            world.topic.push(BudgetRecord::End(end));
        }
        assert_eq!(
            world.shares().left_from(at(world.now + 60)),
            Fraction::ALL,
            "seed {seed}"
        );
    }
    assert!(
        charges > 100_000 && full > 10_000,
        "{charges} charges, {full} of them full"
    );
}

#[test]
fn every_clause_is_needed() {
    for without in [
        Without::ReadBack,
        Without::FirstBlock,
        Without::Order,
        Without::Guard,
        Without::Generation,
    ] {
        let found = (0..10_000).find_map(|seed| World::new(seed, without).run(150).err());
        assert!(found.is_some(), "nothing happens without {without:?}");
    }
}
