//! Ledger and output, where they are.

use serde::Serialize;

use crate::cli::failure::Failure;
use crate::cli::ledger;
use crate::config::Settings;
use crate::ledger::{Error, Ledger, Pending, exists};

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
    /// Ledger or output have a fault.
    Failed,
    /// It is there, and was not verified: the lines say why.
    NotVerified,
    /// There is none here yet.
    Missing,
    /// It, or the output, cannot be reached from here.
    Unreachable,
}

/// Verifies what is there, and changes nothing. Where there is no ledger, nothing is asked of any broker.
pub fn verify(settings: &Settings) -> Verified {
    let path = settings.ledger.path.display();
    if !exists(&settings.ledger) {
        let line = format!("there is no ledger in {path} yet: nothing was paid for, and nothing is verified");
        return Verified { state: State::Missing, lines: vec![line] };
    }
    match Ledger::pending(&settings.ledger) {
        Ok(None) => {}
        Ok(Some(pending)) => return not_verified(Vec::new(), &of_pending(pending, &path.to_string())),
        Err(error @ Error::Damaged { .. }) => {
            return Verified { state: State::Failed, lines: vec![error.to_string()] };
        }
        Err(error) => return not_verified(Vec::new(), &error.to_string()),
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
        Err(why @ (Failure::Ledger(_) | Failure::LostLedger(_))) => {
            lines.push(why.to_string());
            State::Failed
        }
        Err(why) => return not_verified(lines, &why.to_string()),
    };
    Verified { state, lines }
}

fn not_verified(mut lines: Vec<String>, why: &str) -> Verified {
    lines.push(format!("not verified: {why}"));
    Verified { state: State::NotVerified, lines }
}

fn of_pending(pending: Pending, path: &str) -> String {
    let what = match pending {
        Pending::Older { format } => format!("the ledger in {path} has format {format}, of an older program"),
        Pending::Unfinished => format!("a crash has left the ledger in {path} in the middle of a write"),
    };
    format!(
        "{what}; to verify it would change it, which an audit does not do: the next start of its worker, or `bernstream ledger verify` \
         while none runs, brings it up to date; then audit again"
    )
}
