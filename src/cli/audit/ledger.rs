//! Ledger and output, where they are.

use serde::Serialize;

use crate::cli::failure::Failure;
use crate::cli::ledger;
use crate::config::Settings;
use crate::ledger::exists;

/// What `ledger verify` says.
#[derive(Clone, Debug, Serialize)]
pub struct Verified {
    pub state: State,
    pub lines: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    Verified,
    Failed,
    /// There is none here yet.
    Missing,
    /// It, or the output, cannot be reached from here.
    Unreachable,
}

/// Verifies what is there. Where there is no ledger, nothing is asked of any broker.
pub fn verify(settings: &Settings) -> Verified {
    let path = settings.ledger.path.display();
    if !exists(&settings.ledger) {
        let line = format!("there is no ledger in {path} yet: nothing was paid for, and nothing is verified");
        return Verified { state: State::Missing, lines: vec![line] };
    }
    let mut lines = Vec::new();
    let done = ledger::verify(settings, &mut |line| {
        lines.push(line);
        Ok(())
    });
    let state = match done {
        Ok(()) => State::Verified,
        Err(Failure::Unavailable(why)) => {
            lines.push(why);
            State::Unreachable
        }
        Err(why) => {
            lines.push(why.to_string());
            State::Failed
        }
    };
    Verified { state, lines }
}
