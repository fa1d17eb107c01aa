//! Small ledgers for tests.

use std::time::Duration;

use super::chain::{ClosedWindow, Genesis, MessageDigests, ReleaseOutcome};
use bernstream_synopsis::Encoded;
use bernstream_synopsis::Positions;
use bernstream_synopsis::calibrate::Epsilon;
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::grid::Span;
use bernstream_synopsis::price::Price;

pub fn span(start: i64, end: i64) -> Span {
    Span {
        start: Timestamp::from_micros(start),
        end: Timestamp::from_micros(end),
    }
}

pub fn price(tenths: u64) -> Price {
    Price::Pure(Epsilon::from_trillionths(tenths * 100_000_000_000))
}

pub fn genesis(reach: u64) -> Genesis {
    Genesis {
        ledger: "00".into(),
        created: Timestamp::from_micros(0),
        settings: "{}".into(),
        total: price(10),
        first: Timestamp::from_micros(0),
        backfill_until: None,
        input: "files".into(),
        witness: "w".into(),
        previous: None,
        reach: Duration::from_micros(reach),
        budget: None,
    }
}

pub fn released(window: Span, charges: &[(Span, Price)]) -> ClosedWindow {
    let sealed = Encoded {
        key: "k".into(),
        headers: vec![],
        bytes: vec![1],
    };
    let outcome = ReleaseOutcome::Released {
        publish_at: window.end,
        charges: charges.to_vec(),
        messages: vec![MessageDigests::from_encoded(&sealed)],
        states: vec![],
    };
    ClosedWindow {
        window,
        ends: Positions::default(),
        outcome,
    }
}
