//! Everything there is at one moment: two workers with their disks, the log, the witness and the output.

use super::setup::{Clause, Faults, Setup};

/// The longest chain of rows.
pub const DEPTH: usize = 5;
/// Draws for one place in the chain.
const DRAWS: usize = 3;
pub const ROWS: usize = DEPTH * DRAWS;
/// Checkpoints that are still of any consequence.
pub const CHECKPOINTS: usize = 4;

/// No row; as the parent of a row: it is the first one.
pub const NONE: u8 = 0xff;
/// A row that is not there.
const FREE: u8 = 0xfe;
/// The witness was not read yet.
pub const UNREAD: u8 = 0xfd;

/// A set of rows or of bodies, a bit each: the bodies of rows, and then those of checkpoints.
pub type Set = u32;

pub const fn bit(place: u8) -> Set {
    1 << place
}

/// The places of a set.
pub fn each(set: Set) -> impl Iterator<Item = u8> {
    (0..32).filter(move |&place| set & bit(place) != 0)
}

/// A short list whose places behind its end are all the same, so that equal lists are equal states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct List<T, const N: usize> {
    items: [T; N],
    len: u8,
}

impl<T: Copy + Default + Ord, const N: usize> List<T, N> {
    pub fn new() -> Self {
        List {
            items: [T::default(); N],
            len: 0,
        }
    }

    pub fn items(&self) -> &[T] {
        &self.items[..usize::from(self.len)]
    }

    pub fn push(&mut self, item: T) {
        self.items[usize::from(self.len)] = item;
        self.len += 1;
    }

    pub fn remove(&mut self, place: usize) -> T {
        let item = self.items[place];
        self.items
            .copy_within(place + 1..usize::from(self.len), place);
        self.len -= 1;
        self.items[usize::from(self.len)] = T::default();
        item
    }

    pub fn sort(&mut self) {
        self.items[..usize::from(self.len)].sort_unstable();
    }

    pub fn is_full(&self) -> bool {
        usize::from(self.len) == N
    }
}

/// A record of the witness.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Claim {
    pub previous: u8,
    pub head: u8,
    /// The process that made it: twice its number, and which worker it is.
    pub maker: u8,
}

impl Claim {
    /// The maker of a remembered record that the witness has lost: no other record has it, not even the same one that was sent again.
    pub const LOST: u8 = UNREAD;
    /// A record that is no claim.
    pub const STRAY: Claim = Claim {
        previous: FREE,
        head: NONE,
        maker: FREE,
    };
}

/// The accepted record of the witness, and where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    pub offset: u8,
    pub claim: Claim,
}

/// The file of a ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ledger {
    pub head: u8,
    /// The rows that its account has charged: in a right one those of its chain.
    pub account: Set,
    /// The rows whose bytes it has.
    pub bytes: Set,
}

/// What outlives a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Disk {
    pub ledger: Option<Ledger>,
    /// Rows that are known to be published.
    pub marks: Set,
    pub place: Option<Place>,
    /// The accepted row that the witness has lost.
    pub lost: Option<u8>,
    /// Bodies that are taken to be in the log; only without [`Clause::ReadTheLog`].
    pub in_log: Set,
}

/// What a process has in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Process {
    /// It found something that only its owner can decide.
    pub stopped: bool,
    /// The accepted head, as it was read.
    pub view: u8,
    /// Whether this process made the claim of that head.
    pub is_maker: bool,
    /// Bodies that were acknowledged or read.
    pub seen: Set,
    pub has_read_log: bool,
    /// Rows that the sink has acknowledged, and that are not marked.
    pub acknowledged: Set,
    /// Marked rows that are still to be published; only without [`Clause::MarkAfter`].
    pub marked: Set,
    /// The body whose first piece is appended.
    pub half: u8,
    /// The account of a checkpoint that is being made; only without [`Clause::OneSnapshot`].
    pub draft: Option<Set>,
    /// It has found its settings in the ledger, or has put them there.
    pub settled: bool,
    /// It has compared the accepted head with what is published.
    pub is_compared: bool,
    /// What was published then, by the marks in the log and by the output.
    pub published: Set,
}

impl Process {
    pub fn new(disk: &Disk, setup: &Setup) -> Self {
        let believes = !setup.holds(Clause::ReadTheLog);
        Process {
            stopped: false,
            view: UNREAD,
            is_maker: false,
            seen: if believes { disk.in_log } else { 0 },
            has_read_log: believes,
            acknowledged: 0,
            marked: 0,
            half: NONE,
            draft: None,
            settled: false,
            is_compared: !setup.compares,
            published: 0,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Worker {
    pub process: Option<Process>,
    pub disk: Disk,
    /// Processes that were started so far.
    pub starts: u8,
}

/// A row, its body or not: whoever has its digest knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Row {
    pub parent: u8,
    pub window: u8,
    /// The worker whose settings the row holds instead of a window.
    pub settings: u8,
}

const NO_ROW: Row = Row {
    parent: FREE,
    window: NONE,
    settings: NONE,
};

/// The body of a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Checkpoint {
    pub row: u8,
    pub account: Set,
    /// The newest row when it was written. If that is a later one, it has replaced the noise that goes on after `row`.
    pub from: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct State {
    pub rows: [Row; ROWS],
    pub checkpoints: [Option<Checkpoint>; CHECKPOINTS],
    pub workers: [Worker; 2],
    /// A copy of a disk that was put aside.
    pub aside: Option<Disk>,
    /// Pieces of bodies: twice the body, and which piece. Sorted, where the order is of no consequence.
    pub log: List<u8, 24>,
    /// Rows with a mark in the log.
    pub log_marks: Set,
    /// Appends to the log that have not arrived.
    pub late_bodies: List<u8, 6>,
    pub witness: List<Claim, 8>,
    pub late_claims: List<Claim, 4>,
    /// Published rows, which a reader has.
    pub sink: Set,
    /// Those of them that the output has lost.
    pub lost_messages: Set,
    /// Messages that have not arrived in the output.
    pub late_messages: Set,
    /// Faults that can still happen.
    pub faults: Faults,
    /// The log has lost a body.
    pub log_has_lost: bool,
    /// The witness has lost records.
    pub witness_has_lost: bool,
}

impl State {
    pub fn new(setup: &Setup) -> Self {
        let disk = Disk::default();
        let worker = Worker {
            process: Some(Process::new(&disk, setup)),
            disk,
            starts: 1,
        };
        let other = if setup.workers > 1 {
            worker
        } else {
            Worker::default()
        };
        State {
            rows: [NO_ROW; ROWS],
            checkpoints: [None; CHECKPOINTS],
            workers: [worker, other],
            aside: None,
            log: List::new(),
            log_marks: 0,
            late_bodies: List::new(),
            witness: List::new(),
            late_claims: List::new(),
            sink: 0,
            lost_messages: 0,
            late_messages: 0,
            faults: setup.faults,
            log_has_lost: false,
            witness_has_lost: false,
        }
    }

    pub fn row(&self, row: u8) -> Row {
        self.rows[usize::from(row)]
    }

    /// The rows from the first one to `row`.
    pub fn chain(&self, row: u8) -> Set {
        let mut chain = 0;
        let mut next = row;
        while next != NONE {
            chain |= bit(next);
            next = self.row(next).parent;
        }
        chain
    }

    pub fn depth(row: u8) -> u8 {
        row / DRAWS as u8
    }

    /// Whether all rows are on one chain.
    pub fn is_one_chain(&self, rows: Set) -> bool {
        each(rows)
            .max_by_key(|row| Self::depth(*row))
            .is_none_or(|newest| rows & !self.chain(newest) == 0)
    }

    /// The rows that the output and the marks in the log show to be published.
    pub fn evident(&self) -> Set {
        self.log_marks | (self.sink & !self.lost_messages)
    }

    /// The number of rows of a chain that ends with `head`.
    pub fn length(head: u8) -> u8 {
        if head == NONE {
            0
        } else {
            Self::depth(head) + 1
        }
    }

    /// A new row behind `parent`; `None` if `draws` rows there are of consequence already, or the chain is too long.
    pub fn draw(&mut self, row: Row, draws: u8) -> Option<u8> {
        let depth = Self::length(row.parent);
        if usize::from(depth) >= DEPTH {
            return None;
        }
        let first = depth * DRAWS as u8;
        let free = (first..first + draws.min(DRAWS as u8))
            .find(|&place| self.row(place).parent == FREE)?;
        self.rows[usize::from(free)] = row;
        Some(free)
    }

    /// The body of a checkpoint; a new one, or one that is the same.
    pub fn make_checkpoint(&mut self, checkpoint: Checkpoint) -> Option<u8> {
        let same = self
            .checkpoints
            .iter()
            .position(|other| *other == Some(checkpoint));
        let place = same.or_else(|| self.checkpoints.iter().position(Option::is_none))?;
        self.checkpoints[place] = Some(checkpoint);
        Some((ROWS + place) as u8)
    }

    pub fn checkpoint(&self, body: u8) -> Option<Checkpoint> {
        usize::from(body)
            .checked_sub(ROWS)
            .and_then(|place| self.checkpoints[place])
    }

    /// The published windows, a bit each.
    pub fn published(&self) -> Set {
        each(self.sink).fold(0, |windows, row| windows | bit(self.row(row).window))
    }

    /// Forgets rows and checkpoints that nothing refers to, so that their places can be used again.
    pub fn tidy(&mut self) {
        let mut used = 0;
        let mut bodies = 0;
        for piece in self.log.items().iter().chain(self.late_bodies.items()) {
            bodies |= bit(piece / 2);
        }
        for worker in &self.workers {
            if let Some(process) = &worker.process {
                let half = if process.half == NONE {
                    0
                } else {
                    bit(process.half)
                };
                let view = if process.view < UNREAD {
                    bit(process.view)
                } else {
                    0
                };
                used |= process.draft.unwrap_or(0) | view | process.published;
                bodies |= half;
            }
        }
        let kept = (1 << ROWS) - 1;
        for place in 0..CHECKPOINTS {
            match self.checkpoints[place] {
                Some(checkpoint) if bodies & bit((ROWS + place) as u8) != 0 => {
                    used |= bit(checkpoint.row) | bit(checkpoint.from) | checkpoint.account;
                }
                _ => self.checkpoints[place] = None,
            }
        }
        used |= bodies & kept;
        let disks = self
            .workers
            .iter()
            .map(|worker| worker.disk)
            .chain(self.aside);
        for disk in disks {
            if let Some(ledger) = disk.ledger {
                used |= ledger.account
                    | ledger.bytes
                    | if ledger.head == NONE {
                        0
                    } else {
                        bit(ledger.head)
                    };
            }
            used |= disk.lost.map_or(0, bit);
            if let Some(Place { claim, .. }) = disk.place {
                used |= Self::named(claim);
            }
        }
        for claim in self.witness.items().iter().chain(self.late_claims.items()) {
            used |= Self::named(*claim);
        }
        used |= self.sink | self.late_messages;
        for row in each(used) {
            used |= self.chain(row);
        }
        let mut all = used;
        for (place, checkpoint) in self.checkpoints.iter().enumerate() {
            all |= if checkpoint.is_some() {
                bit((ROWS + place) as u8)
            } else {
                0
            };
        }
        for (place, row) in self.rows.iter_mut().enumerate() {
            if used & bit(place as u8) == 0 {
                *row = NO_ROW;
            }
        }
        for worker in &mut self.workers {
            worker.disk.marks &= used;
            worker.disk.in_log &= all;
            if let Some(process) = &mut worker.process {
                process.seen &= all;
            }
        }
        if let Some(disk) = &mut self.aside {
            disk.marks &= used;
            disk.in_log &= all;
        }
        self.log_marks &= used;
    }

    fn named(claim: Claim) -> Set {
        let row = |row| if row >= FREE { 0 } else { bit(row) };
        row(claim.previous) | row(claim.head)
    }

    /// The same with the workers in each other's place.
    pub fn mirrored(&self) -> Self {
        let mut state = *self;
        state.workers.swap(0, 1);
        state
    }
}
