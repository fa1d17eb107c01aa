//! The start of a new ledger. Pure.

use std::time::Duration;

use super::chain::Head;
use super::witness::WitnessClaim;
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::grid::{Blocks, Span, SpanGrid};

/// Origin of a new ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartMode {
    /// The worker, which found no ledger.
    Run,
    /// The operator (`ledger init`).
    Init,
    /// From an earlier time: `ledger init --from`, and files, which start at the origin of the grid.
    From {
        from: Timestamp,
        backfill_until: Option<Timestamp>,
    },
}

impl StartMode {
    /// Returns true if the ledger may begin later than asked: history may not.
    pub fn may_wait(self) -> bool {
        !matches!(self, StartMode::From { .. })
    }
}

/// Times that decide where the ledger of a pipeline may start.
#[derive(Clone, Copy, Debug)]
pub struct StartSchedule {
    pub windows: SpanGrid,
    pub blocks: Blocks,
    /// Time by which the event time of a record may exceed its message timestamp.
    pub ahead: Duration,
    /// Time by which clocks may be apart.
    pub slack: Duration,
}

impl StartSchedule {
    /// Time from which on the first window may start of a ledger that is made at `now`, after another one.
    ///
    /// The other one has charged only records with a message timestamp before a cutoff that the clock had reached. A window that starts here
    /// or later takes only records with a later one. So none of them is charged again, whatever field is the event time now.
    fn first_after_another(&self, now: Timestamp) -> Timestamp {
        now.plus(self.slack).plus(self.ahead)
    }

    /// Returns true if a ledger that was made at `created`, after another one, takes no record that the other may have charged, if it still reads
    /// the records of windows that start at `oldest` or later.
    pub fn is_apart(&self, created: Timestamp, oldest: Timestamp) -> bool {
        oldest >= self.first_after_another(created)
    }
}

/// Traces of earlier ledgers at the witness and on the output.
#[derive(Clone, Copy, Debug)]
pub struct PriorState<'a> {
    /// The head of the witness.
    pub claim: Option<&'a WitnessClaim>,
    /// Nothing was ever written to the output.
    pub is_output_untouched: bool,
}

/// Start of a new ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StartPoint {
    /// The start of the first window that it may release.
    pub first: Timestamp,
    pub backfill_until: Option<Timestamp>,
    /// The head of the witness. The first claim names it, which fences earlier ledgers.
    pub previous: Option<Head>,
}

/// Decides where a new ledger starts: at the first window that lies wholly in blocks that no ledger can have charged.
///
/// These are the blocks that start at or after the end of the last claimed block, and so late that no record of theirs was sent before now.
/// Where nothing was ever claimed or published, they start at or after now. An earlier start is possible only
/// if nothing was ever claimed or published. The same holds for every start if the unit has one budget forever, now or before:
/// all of time is then one block.
///
/// # Errors
///
/// If a ledger may not start there: records might be charged by two ledgers.
pub fn choose_start(
    scheme: StartSchedule,
    mode: StartMode,
    prior: PriorState<'_>,
    now: Timestamp,
) -> Result<StartPoint, BootstrapError> {
    let StartSchedule {
        windows, blocks, ..
    } = scheme;
    // A written output implies a written witness.
    let is_fresh = prior.claim.is_none() && prior.is_output_untouched;
    let was_forever = prior
        .claim
        .is_some_and(|claim| claim.last_block_end >= Span::ALL.end);
    let start = match mode {
        StartMode::From { .. } if !is_fresh => return Err(BootstrapError::NotFresh),
        StartMode::Run | StartMode::Init
            if !is_fresh && (blocks == Blocks::Forever || was_forever) =>
        {
            return Err(BootstrapError::Forever);
        }
        StartMode::Run if !is_fresh => return Err(BootstrapError::Lost),
        StartMode::From { from, .. } => from,
        StartMode::Run | StartMode::Init => {
            let now = if is_fresh {
                now
            } else {
                scheme.first_after_another(now)
            };
            let after = prior
                .claim
                .map_or(now, |claim| now.max(claim.last_block_end));
            // A single block forever has no next block: it has started, and no ledger has charged it.
            blocks.first_from(after).map_or(after, |block| block.start)
        }
    };
    let backfill_until = match mode {
        StartMode::From { backfill_until, .. } => backfill_until,
        StartMode::Run | StartMode::Init => None,
    };
    Ok(StartPoint {
        first: windows.first_from(start).start,
        backfill_until,
        previous: prior.claim.map(|claim| claim.head),
    })
}

/// Reasons why a ledger may not start there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BootstrapError {
    #[error(
        "there is no ledger, but the witness or the output was written before: the volume is empty or the wrong one; start with \
         the volume that holds the ledger or, if it is lost, run `bernstream ledger init --replace`, which starts at the next block"
    )]
    Lost,
    #[error(
        "the witness or the output was written before, so earlier records may have been published already: an earlier \
         start (--from, and files, which always start early) needs a witness and an output that were never written: use another \
         ledger.path and another output.files.path, or another topic and witness; the privacy losses of both compose, and no ledger \
         tracks their sum"
    )]
    NotFresh,
    #[error(
        "the witness or the output was written before, by a ledger that is not here, and a user without a period has one budget \
         forever: there is no later block in which a new ledger could spend. Start with the volume that holds the ledger. If it is \
         lost, or the unit has changed, a new ledger needs a new output and witness; the privacy losses of both compose, and no \
         ledger tracks their sum"
    )]
    Forever,
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000_000;

    fn hours(hours: i64) -> Timestamp {
        Timestamp::from_micros(hours * HOUR)
    }

    fn grid(length: u64) -> SpanGrid {
        SpanGrid::new(hours(0), Duration::from_secs(length * 3600)).unwrap()
    }

    fn claim(last_block_end: i64) -> WitnessClaim {
        let head = Head {
            sequence: 4,
            digest: crate::Digest::of_bytes(b"row"),
        };
        WitnessClaim {
            previous: None,
            head,
            last_block_end: hours(last_block_end),
            maker: None,
        }
    }

    /// Records and clocks are on time.
    fn scheme(windows: SpanGrid, blocks: Blocks) -> StartSchedule {
        StartSchedule {
            windows,
            blocks,
            ahead: Duration::ZERO,
            slack: Duration::ZERO,
        }
    }

    fn first(
        mode: StartMode,
        claim: Option<&WitnessClaim>,
        is_output_untouched: bool,
        now: i64,
    ) -> Result<i64, BootstrapError> {
        let prior = PriorState {
            claim,
            is_output_untouched,
        };
        let start = choose_start(scheme(grid(1), grid(24).into()), mode, prior, hours(now))?;
        assert_eq!(start.previous, claim.map(|claim| claim.head));
        Ok(start.first.micros() / HOUR)
    }

    #[test]
    fn a_new_ledger_starts_with_the_first_block_after_now_and_after_the_last_one_claimed() {
        assert_eq!(first(StartMode::Run, None, true, 30), Ok(48));
        assert_eq!(first(StartMode::Run, None, true, 48), Ok(48));
        assert_eq!(first(StartMode::Init, None, false, 48), Ok(48));
        assert_eq!(first(StartMode::Init, Some(&claim(24)), false, 30), Ok(48));
        assert_eq!(first(StartMode::Init, Some(&claim(72)), false, 30), Ok(72));
        assert_eq!(first(StartMode::Init, Some(&claim(73)), false, 30), Ok(96));
    }

    #[test]
    fn a_worker_without_a_ledger_stops_where_the_witness_or_the_output_was_written() {
        assert_eq!(
            first(StartMode::Run, None, false, 30),
            Err(BootstrapError::Lost)
        );
        assert_eq!(
            first(StartMode::Run, Some(&claim(24)), true, 30),
            Err(BootstrapError::Lost)
        );
    }

    #[test]
    fn an_earlier_start_needs_a_witness_and_an_output_that_were_never_written() {
        let mode = StartMode::From {
            from: hours(5),
            backfill_until: Some(hours(100)),
        };
        assert_eq!(first(mode, None, true, 30), Ok(5));
        assert_eq!(first(mode, None, false, 30), Err(BootstrapError::NotFresh));
        assert_eq!(
            first(mode, Some(&claim(24)), true, 30),
            Err(BootstrapError::NotFresh)
        );
        assert_eq!(
            first(mode, Some(&claim(24)), false, 30),
            Err(BootstrapError::NotFresh)
        );
    }

    #[test]
    fn the_first_window_touches_no_block_before_the_first() {
        // Windows of five hours on days: the window that straddles midnight would charge the day before.
        let prior = PriorState {
            claim: None,
            is_output_untouched: true,
        };
        let start = choose_start(
            scheme(grid(5), grid(24).into()),
            StartMode::Run,
            prior,
            hours(30),
        )
        .unwrap();
        assert_eq!(start.first, hours(50));
    }

    #[test]
    fn a_unit_forever_starts_with_the_next_window_and_once_only() {
        let forever = |mode, claim: Option<&WitnessClaim>, is_output_untouched| {
            let prior = PriorState {
                claim,
                is_output_untouched,
            };
            let start = choose_start(scheme(grid(5), Blocks::Forever), mode, prior, hours(31));
            start.map(|start| (start.first.micros() / HOUR, start.previous))
        };
        let mode = StartMode::From {
            from: hours(6),
            backfill_until: None,
        };
        assert_eq!(forever(StartMode::Run, None, true), Ok((35, None)));
        assert_eq!(forever(StartMode::Init, None, true), Ok((35, None)));
        assert_eq!(forever(mode, None, true), Ok((10, None)));
        for claim in [None, Some(&claim(24))] {
            assert_eq!(
                forever(StartMode::Run, claim, false),
                Err(BootstrapError::Forever)
            );
            assert_eq!(
                forever(StartMode::Init, claim, false),
                Err(BootstrapError::Forever)
            );
            assert_eq!(forever(mode, claim, false), Err(BootstrapError::NotFresh));
        }
        assert_eq!(
            forever(StartMode::Init, Some(&claim(24)), true),
            Err(BootstrapError::Forever)
        );
    }

    #[test]
    fn nothing_follows_a_ledger_that_was_forever_whatever_the_unit_is_now() {
        let claim = WitnessClaim {
            last_block_end: Span::ALL.end,
            ..claim(0)
        };
        assert_eq!(
            first(StartMode::Init, Some(&claim), true, 30),
            Err(BootstrapError::Forever)
        );
        assert_eq!(
            first(StartMode::Run, Some(&claim), false, 30),
            Err(BootstrapError::Forever)
        );
    }
}
