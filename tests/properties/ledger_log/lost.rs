//! How a worker finds out that the witness has lost claims, and what it claims again.

use super::setup::Clause;
use super::state::{Claim, NONE, ROWS, Set, State, UNREAD, bit, each};
use super::topics;
use super::worker::Run;

/// What a worker finds ahead of the accepted head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    Nothing,
    /// The rows up to this one are claimed again.
    Again(u8),
    /// Two rows that do not follow each other; only the owner can decide.
    Fork,
}

impl Run<'_> {
    /// What the ledger must continue from: the accepted head, or what is to be claimed again.
    pub fn goal(&self) -> u8 {
        match self.lost() {
            Lost::Again(row) => row,
            Lost::Nothing | Lost::Fork => self.process.view,
        }
    }

    /// What is known to be ahead of the accepted head.
    pub fn lost(&self) -> Lost {
        let view = self.process.view;
        if !self.setup.compares || view == UNREAD {
            return Lost::Nothing;
        }
        let accepted = self.state.chain(view);
        let ahead = self.known() & !accepted;
        match each(ahead).max_by_key(|row| State::depth(*row)) {
            Some(newest) if (ahead | accepted) & !self.state.chain(newest) == 0 => {
                Lost::Again(newest)
            }
            Some(_) => Lost::Fork,
            None => self.body_ahead().map_or(Lost::Nothing, Lost::Again),
        }
    }

    /// Rows that were accepted, as output, log and disk show.
    fn known(&self) -> Set {
        let disk = self.state.workers[self.worker].disk;
        let remembered = disk.marks
            | disk.lost.map_or(0, bit)
            | disk.place.map_or(0, |place| bit(place.claim.head));
        let own = if self.setup.holds(Clause::ComparesDisk) {
            remembered
        } else {
            0
        };
        self.process.published | own
    }

    /// The last of the bodies in the log that follow the accepted head, unless the worker has rows of its own to claim.
    fn body_ahead(&self) -> Option<u8> {
        let view = self.process.view;
        let accepted = self.state.chain(view);
        let has_own = self.ledger().is_some_and(|ledger| {
            ledger.account & !accepted != 0 && accepted & !ledger.account == 0
        });
        if has_own || !self.setup.holds(Clause::ClaimsBodies) {
            return None;
        }
        let follows = |row: &u8| {
            let chain = self.state.chain(*row);
            accepted & !chain == 0 && chain & !accepted & !self.process.seen == 0
        };
        let rows = self.process.seen & !accepted & ((1 << ROWS) - 1);
        each(rows)
            .filter(follows)
            .max_by_key(|row| (State::depth(*row), std::cmp::Reverse(*row)))
    }

    /// Reads the output and the marks in the log.
    pub fn compare(&mut self) -> Option<()> {
        if !self.setup.compares
            || self.process.view == UNREAD
            || !self.process.has_read_log
            || !self.has_waited(self.process.view)
        {
            return None;
        }
        let published = self.shown();
        let is_news = !self.process.is_compared || self.process.published != published;
        (self.process.is_compared, self.process.published) = (true, published);
        is_news.then_some(())
    }

    /// The published rows that a worker sees.
    fn shown(&self) -> Set {
        let output = self.state.sink & !self.state.lost_messages;
        let of = |clause, rows| if self.setup.holds(clause) { rows } else { 0 };
        of(Clause::ComparesMarks, self.state.log_marks) | of(Clause::ComparesOutput, output)
    }

    /// Whether no message is in flight that is not on one chain with `row`.
    fn has_waited(&self, row: u8) -> bool {
        let late = self.state.late_messages;
        !self.setup.holds(Clause::WaitsForMessages)
            || self.state.is_one_chain(late | self.state.chain(row))
    }

    /// Whether a row may be published, now that its claim is read; `None` if not yet.
    pub fn may_publish(&self, row: u8) -> Option<bool> {
        if !self.setup.compares {
            return Some(true);
        }
        let place = self.state.workers[self.worker].disk.place?;
        let found: Option<&Claim> = self.state.witness.items().get(usize::from(place.offset));
        if self.setup.holds(Clause::ComparesRecord) && found != Some(&place.claim) {
            return None;
        }
        if !self.setup.holds(Clause::ComparesAgain) {
            return Some(true);
        }
        let shown = self.shown();
        self.has_waited(row)
            .then(|| each(shown).all(|other| self.state.is_one_chain(bit(other) | bit(row))))
    }

    /// Reads all of a witness that does not show the remembered record.
    pub fn read_anew(&mut self, claims: &[Claim]) -> Option<()> {
        let remembered = self.disk().place?.claim.head;
        let found = topics::fold(claims, 0, None, self.setup);
        let head = found.map_or(NONE, |place| place.claim.head);
        self.disk().place = found;
        if self.state.chain(head) & bit(remembered) == 0 {
            let longer = self
                .disk()
                .lost
                .filter(|lost| self.state.chain(*lost) & bit(remembered) != 0);
            self.disk().lost = longer.or(Some(remembered));
            self.process.is_compared = false;
        }
        self.see(found);
        Some(())
    }
}
