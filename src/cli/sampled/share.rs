//! Whether enough records of a sample are of use.

use bernstream_kafka::check::TopicCheck;

/// Below this share of records, in percent, something is worth a look.
const USUAL: u64 = 90;

/// The part of some records, or messages, that is of use.
#[derive(Clone, Copy, Debug)]
pub struct UsableShare {
    pub part: u64,
    pub whole: u64,
}

impl UsableShare {
    fn is_below(self, percent: u64) -> bool {
        self.part.saturating_mul(100) < self.whole.saturating_mul(percent)
    }

    /// `what` as a check: a fault below `least` percent, and a warning where it is less than usual. The share of nothing is no fault.
    pub fn judge_share(self, what: String, least: u64, remedy: &str) -> TopicCheck {
        if self.is_below(least) {
            return TopicCheck::new(
                what,
                false,
                format!("less than {least} %, which --least-share asks for"),
                remedy,
            );
        }
        let mut check = TopicCheck::passed(what);
        if self.is_below(USUAL) {
            check.warning = Some((format!("less than {USUAL} %"), remedy.to_owned()));
        }
        check
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_judged_by_what_is_least_and_by_what_is_usual() {
        for (part, whole, least, is_fault, is_warning) in [
            (0, 0, 100, false, false),
            (0, 400, 50, true, false),
            (199, 400, 50, true, false),
            (200, 400, 50, false, true),
            (0, 400, 0, false, true),
            (359, 400, 50, false, true),
            (360, 400, 50, false, false),
            (399, 400, 100, true, false),
            (u64::MAX, u64::MAX, 100, false, false),
        ] {
            let check = UsableShare { part, whole }.judge_share(String::new(), least, "");
            assert_eq!(
                (check.fault.is_some(), check.warning.is_some()),
                (is_fault, is_warning),
                "{part} of {whole}"
            );
        }
    }
}
