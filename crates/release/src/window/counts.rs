//! Counts of what became of records.

/// Reason why a row was dropped.
#[derive(Clone, Copy)]
pub(super) enum DropReason {
    Closed,
    Late,
    Ahead,
    UnknownKey,
    Missing,
    LongUnit,
    Outside,
}

/// Exact counts of what became of records, for the `operator` level of detail only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordCounts {
    /// Taken into a window, by one form at least (under a cap they may still lose their place to the unit's own earlier rows).
    pub taken: u64,
    /// Rows for a window that is closed already, or before the first or after the last.
    pub closed: u64,
    /// Sent before the cutoff of a window that had closed without them: they turned up behind its end.
    pub behind: u64,
    /// The message came at or after the window's cutoff.
    pub late: u64,
    /// Event time too far ahead of the message timestamp.
    pub ahead: u64,
    /// The key is missing or not declared; where nobody declared keys, it is missing, empty, too long or no UTF-8.
    pub unknown_key: u64,
    /// Null or not-a-number where a time, a unit or a value is needed.
    pub missing: u64,
    /// The unit has more than [`LONGEST_UNIT`](super::LONGEST_UNIT) bytes.
    pub long_unit: u64,
    /// Outside a domain that drops.
    pub outside: u64,
}

impl RecordCounts {
    /// Counts so many rows as dropped.
    pub(super) fn add(&mut self, why: DropReason, rows: usize) {
        let count = match why {
            DropReason::Closed => &mut self.closed,
            DropReason::Late => &mut self.late,
            DropReason::Ahead => &mut self.ahead,
            DropReason::UnknownKey => &mut self.unknown_key,
            DropReason::Missing => &mut self.missing,
            DropReason::LongUnit => &mut self.long_unit,
            DropReason::Outside => &mut self.outside,
        };
        *count += rows as u64;
    }

    /// Names so many of the records of closed windows as behind their ends.
    pub fn set_behind(&mut self, count: u64) {
        self.behind = count.min(self.closed);
        self.closed -= self.behind;
    }

    /// Every count with its name in the metrics.
    pub fn by_name(&self) -> [(&'static str, u64); 9] {
        [
            ("taken", self.taken),
            ("closed", self.closed),
            ("behind", self.behind),
            ("late", self.late),
            ("ahead", self.ahead),
            ("unknown_key", self.unknown_key),
            ("missing", self.missing),
            ("long_unit", self.long_unit),
            ("outside", self.outside),
        ]
    }
}
