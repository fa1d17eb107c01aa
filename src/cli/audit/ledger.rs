//! Ledger and output, where there are some.

use serde::Serialize;

use crate::cli::failure::Failure;
use crate::cli::ledger;
use bernstream_audit::Deadline;
use bernstream_config::WorkerSettings;
use bernstream_ledger::{Ledger, PendingWrite, ledger_exists};

/// The words of `ledger verify`.
#[derive(Clone, Debug, Serialize)]
pub struct LedgerVerification {
    pub state: VerificationState,
    pub lines: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum VerificationState {
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

/// Verifies what is there, and changes nothing. Where there is no ledger, nothing is asked of any broker. Once begun it is finished,
/// whatever the deadline says.
pub fn verify_ledger(settings: &WorkerSettings, deadline: &Deadline) -> LedgerVerification {
    let path = settings.ledger.path.display();
    match ledger_exists(&settings.ledger) {
        Ok(true) => {}
        Ok(false) => {
            let line = format!(
                "there is no ledger in {path} yet: nothing was paid for, and nothing is verified"
            );
            return LedgerVerification {
                state: VerificationState::Missing,
                lines: vec![line],
            };
        }
        Err(error) => return judge_failure(Vec::new(), error.into()),
    }
    if deadline.is_stopped() {
        return not_verified("the audit was ended before it; `bernstream ledger verify` does it");
    }
    match Ledger::pending_write(&settings.ledger) {
        Ok(None) => {}
        Ok(Some(pending)) => return not_verified(&pending_in_words(pending, &path.to_string())),
        Err(error) => return judge_failure(Vec::new(), error.into()),
    }
    let mut lines = Vec::new();
    let done = ledger::verify_all(settings, &mut |line| {
        lines.push(line);
        Ok(())
    });
    match done {
        Ok(_) => LedgerVerification {
            state: VerificationState::Verified,
            lines,
        },
        Err(why) => judge_failure(lines, why),
    }
}

/// Judges why verification ended. A ledger that cannot be looked at, because its worker holds it or the disk fails, is not wrong for that.
fn judge_failure(mut lines: Vec<String>, why: Failure) -> LedgerVerification {
    let state = match &why {
        Failure::Unsound(_) | Failure::LostLedger(_) => VerificationState::Failed,
        Failure::Unavailable(_) => VerificationState::Unreachable,
        _ => VerificationState::NotVerified,
    };
    lines.push(match state {
        VerificationState::NotVerified => format!("not verified: {why}"),
        _ => why.to_string(),
    });
    LedgerVerification { state, lines }
}

fn not_verified(why: &str) -> LedgerVerification {
    judge_failure(Vec::new(), Failure::Other(why.to_owned()))
}

fn pending_in_words(pending: PendingWrite, path: &str) -> String {
    let what = match pending {
        PendingWrite::Older { format } => {
            format!("the ledger in {path} has format {format}, of an older program")
        }
        PendingWrite::Unfinished => {
            format!("a crash has left the ledger in {path} in the middle of a write")
        }
    };
    format!(
        "{what}; to verify it would change it, which an audit does not do: the next start of its worker, or `bernstream ledger verify` \
         while none runs, brings it up to date; then audit again"
    )
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use bernstream_ledger::LedgerError;

    #[test]
    fn a_ledger_that_cannot_be_looked_at_is_not_taken_for_one_that_is_wrong() {
        let path = || PathBuf::from("ledger");
        let cannot_look = [
            LedgerError::Locked { path: path() },
            LedgerError::Busy { path: path() },
            LedgerError::Unfinished { path: path() },
            LedgerError::Disk {
                path: path(),
                why: "it is gone".to_owned(),
            },
            LedgerError::ReadFailed { path: path() },
            LedgerError::Newer {
                path: path(),
                format: 99,
            },
        ];
        for error in cannot_look {
            let verified = judge_failure(vec!["seen so far".to_owned()], error.into());
            assert_eq!(
                (verified.state, verified.lines.len()),
                (VerificationState::NotVerified, 2),
                "{:?}",
                verified.lines
            );
        }
        for wrong in [
            LedgerError::Damaged {
                path: path(),
                what: "a digest".to_owned(),
            }
            .into(),
            Failure::Unsound("the output holds what this ledger never paid for".to_owned()),
        ] {
            assert_eq!(
                judge_failure(Vec::new(), wrong).state,
                VerificationState::Failed
            );
        }
    }
}
