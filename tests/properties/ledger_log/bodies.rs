//! The steps of a worker with the log: bodies, checkpoints, and what is built from them.

use super::setup::Clause;
use super::state::{Checkpoint, Ledger, NONE, ROWS, Set, State, UNREAD, bit, each};
use super::topics;
use super::worker::{Arrival, Run, Violation};

impl Run<'_> {
    /// What the log needs to have before the newest row is claimed.
    fn needed(&self) -> Option<Set> {
        let ledger = self.ledger().filter(|ledger| ledger.head != NONE)?;
        let own = self.process.seen | ledger.bytes;
        let restored = topics::walk(self.state, ledger.head, own, self.setup);
        // What is missing between them only a new checkpoint can replace.
        Some(restored.map_or(0, |restored| restored.rows & !self.process.seen))
    }

    pub fn append(&mut self, body: u8, arrival: Arrival) -> Option<()> {
        let ledger = self.ledger()?;
        if !self.process.has_read_log && self.setup.holds(Clause::BodyBeforeClaim) {
            return None;
        }
        // A worker whose rows are not those of the witness gives the log what it has of its chain.
        let wanted = match self.process.view {
            UNREAD => return None,
            _ if self.is_recognised() => self.needed()?,
            _ if self.setup.holds(Clause::OldFile) => {
                match topics::walk(self.state, self.goal(), self.process.seen, self.setup) {
                    Ok(_) => 0,
                    Err(_) => self.state.chain(self.goal()) & !self.process.seen,
                }
            }
            _ => return None,
        };
        if (wanted & ledger.bytes) & bit(body) == 0 {
            return None;
        }
        self.put_body(body, arrival)
    }

    fn put_body(&mut self, body: u8, arrival: Arrival) -> Option<()> {
        let setup = self.setup;
        if arrival == Arrival::Late {
            if self.setup.parts > 1 || self.process.half != NONE {
                return None;
            }
            self.state.faults.late_bodies = self.state.faults.late_bodies.checked_sub(1)?;
            return topics::put(&mut self.state.late_bodies, 2 * body, setup).then_some(());
        }
        let is_half = self.process.half == body;
        if !topics::put(&mut self.state.log, 2 * body + u8::from(is_half), setup) {
            return None;
        }
        if is_half || setup.parts == 1 {
            self.process.half = NONE;
            self.process.seen |= bit(body);
        } else {
            self.process.half = body;
        }
        Some(())
    }

    pub fn draft(&mut self) -> Option<()> {
        let ledger = self.ledger().filter(|ledger| ledger.head != NONE)?;
        if self.setup.holds(Clause::OneSnapshot)
            || self.process.draft.is_some()
            || self.state.faults.checkpoints == 0
        {
            return None;
        }
        self.process.draft = Some(ledger.account);
        Some(())
    }

    pub fn checkpoint(&mut self, arrival: Arrival) -> Option<()> {
        let ledger = self
            .ledger()
            .filter(|ledger| ledger.head != NONE && self.is_recognised())?;
        if !self.process.has_read_log {
            return None;
        }
        let row = self.newest_published(ledger.head)?;
        let account = match self.setup.holds(Clause::OneSnapshot) {
            true => ledger.account & self.state.chain(row),
            false => self.process.draft.take()?,
        };
        let body = self.state.make_checkpoint(Checkpoint {
            row,
            account,
            from: ledger.head,
        })?;
        if self.process.seen & bit(body) != 0 {
            return None;
        }
        if self.process.half != body {
            self.state.faults.checkpoints = self.state.faults.checkpoints.checked_sub(1)?;
        }
        self.put_body(body, arrival)
    }

    /// The newest row up to `head` up to which all are known to be published.
    fn newest_published(&mut self, head: u8) -> Option<u8> {
        if !self.setup.holds(Clause::AfterPublishing) {
            return Some(head);
        }
        let marks = self.disk().marks;
        let is_published = |row: u8| self.state.row(row).window == NONE || marks & bit(row) != 0;
        let mut row = head;
        while row != NONE && !each(self.state.chain(row)).all(is_published) {
            row = self.state.row(row).parent;
        }
        (row != NONE).then_some(row)
    }

    /// Deletes what is before `kept`, the oldest body that is needed, if there is something.
    ///
    /// # Errors
    ///
    /// If what is left is not enough when the checkpoints of the newest row are lost too, and was before.
    pub fn delete(&mut self, kept: u8) -> Option<Result<(), Violation>> {
        let view = self.process.view;
        let is_tested = self.setup.holds(Clause::AcceptedCheckpoint);
        if !self.setup.retention || (is_tested && (!self.is_recognised() || view == NONE)) {
            return None;
        }
        let seen = self.process.seen;
        let mut usable: Vec<_> = each(seen)
            .filter_map(|body| Some((body, self.state.checkpoint(body)?)))
            .collect();
        if is_tested {
            usable.retain(|(_, checkpoint)| self.state.chain(view) & bit(checkpoint.row) != 0);
            usable.retain(|(_, checkpoint)| topics::has_noise(self.state, checkpoint, view));
        }
        usable.sort_by_key(|(_, checkpoint)| std::cmp::Reverse(State::length(checkpoint.row)));
        if self.setup.holds(Clause::TwoRows) {
            usable.dedup_by_key(|(_, checkpoint)| State::length(checkpoint.row));
        }
        let (body, checkpoint) =
            *usable.get(usize::from(self.setup.holds(Clause::SecondNewest)))?;
        let later = match is_tested {
            true => self.state.chain(view) & !self.state.chain(checkpoint.row),
            false => 0,
        };
        let pieces = self.state.log.items();
        // A checkpoint is known from reading the log up to it.
        let place = pieces.iter().position(|piece| piece / 2 == body)?;
        if later & !seen != 0
            || pieces[..place]
                .iter()
                .any(|piece| seen & bit(piece / 2) == 0)
        {
            return None;
        }
        let is_later = |row: &u8| {
            usize::from(*row) < ROWS && State::length(*row) > State::length(checkpoint.row)
        };
        let others = match is_tested {
            true => each(seen)
                .filter(is_later)
                .fold(0, |rows, row| rows | bit(row)),
            false => 0,
        };
        let needed = later | others | bit(body);
        let first = pieces
            .iter()
            .position(|piece| needed & bit(piece / 2) != 0)?;
        if pieces[first] / 2 != kept || first == 0 {
            return None;
        }
        let newest = usable.first().map(|(_, checkpoint)| checkpoint.row)?;
        let was_enough = self.is_enough_without(newest);
        (0..first).for_each(|_| _ = self.state.log.remove(0));
        if was_enough && !self.is_enough_without(newest) {
            return Some(Err(
                "what is left is not enough if the newest checkpoint is lost".to_owned(),
            ));
        }
        Some(Ok(()))
    }

    /// Whether the accepted ledger can be built without the checkpoints of a row.
    fn is_enough_without(&self, row: u8) -> bool {
        let of_row = each(topics::whole(self.state, self.setup)).filter(|body| {
            self.state
                .checkpoint(*body)
                .is_some_and(|checkpoint| checkpoint.row == row)
        });
        let lost = of_row.fold(0, |bodies, body| bodies | bit(body));
        let whole = topics::whole(self.state, self.setup) & !lost;
        topics::walk(
            self.state,
            topics::accepted(self.state, self.setup),
            whole,
            self.setup,
        )
        .is_ok()
    }

    pub fn restore(&mut self) -> Option<()> {
        let goal = self.goal();
        if goal >= UNREAD || self.is_recognised() {
            return None;
        }
        if !self.setup.holds(Clause::NewFile) && self.ledger().is_some() {
            return None;
        }
        let readable = self.process.seen & topics::whole(self.state, self.setup);
        let restored = topics::walk(self.state, goal, readable, self.setup).ok()?;
        let account = restored
            .checkpoint
            .map_or(0, |(_, checkpoint)| checkpoint.account);
        if restored
            .checkpoint
            .is_some_and(|(_, checkpoint)| !topics::has_noise(self.state, &checkpoint, goal))
        {
            // What is not the noise that its row wrote is never gone on with.
            return None;
        }
        let marks = self.state.log_marks;
        self.disk().marks |= marks | account;
        let ledger = Ledger {
            head: goal,
            account: account | restored.rows,
            bytes: restored.rows,
        };
        self.disk().ledger = Some(ledger);
        Some(())
    }

    /// Appends what others have claimed to its own file, if that follows its newest row.
    pub fn follow(&mut self) -> Option<()> {
        let goal = self.goal();
        let ledger = self.ledger().filter(|ledger| ledger.head != NONE)?;
        if goal >= UNREAD || self.is_recognised() {
            return None;
        }
        let accepted = self.state.chain(goal);
        let own = self.state.chain(ledger.head);
        if self.setup.holds(Clause::Follows) && accepted & bit(ledger.head) == 0 {
            return None;
        }
        let rows = accepted & !own;
        if rows & !(self.process.seen & topics::whole(self.state, self.setup)) != 0 {
            return None;
        }
        let marks = self.state.log_marks;
        self.disk().marks |= marks;
        self.disk().ledger = Some(Ledger {
            head: goal,
            account: ledger.account | rows,
            bytes: ledger.bytes | rows,
        });
        Some(())
    }

    pub fn discard(&mut self) -> Option<()> {
        let view = self.process.view;
        if self.setup.holds(Clause::NewFile)
            || view >= UNREAD
            || self.is_recognised()
            || self.ledger().is_none()
        {
            return None;
        }
        self.disk().ledger = None;
        Some(())
    }

    pub fn give_up(&mut self) -> Option<()> {
        let view = self.process.view;
        if self.setup.holds(Clause::Wait)
            || view >= UNREAD
            || self.is_recognised()
            || !self.process.has_read_log
        {
            return None;
        }
        let found = topics::walk(self.state, view, self.process.seen, self.setup).err()?;
        self.disk().ledger = Some(Ledger {
            head: view,
            account: found | bit(view),
            bytes: found,
        });
        Some(())
    }
}
