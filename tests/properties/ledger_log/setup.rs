//! What a run of the checker allows: which clauses of the protocol hold, and how many faults of each kind may happen.

/// The clauses of the protocol that can be taken out, by their numbers in the protocol; all of them hold unless a test says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clause {
    /// 1: a body is assembled from its pieces in any order. Without: from pieces that follow each other.
    Pieces,
    /// 3: bodies are acknowledged or read back before they are claimed.
    BodyBeforeClaim,
    /// 4: what is in the log is known from reading it. Without: a durable mark says so.
    ReadTheLog,
    /// 5: a checkpoint is written when everything up to its row was published. Without: its bytes are in no checkpoint.
    AfterPublishing,
    /// 5: a checkpoint counts only for chains that have the row at which it was written. Without: what that row has replaced of the noise
    /// is lost with it.
    Replaced,
    /// 5: a checkpoint is one snapshot, and its account is the one whose digest is in its row.
    OneSnapshot,
    /// 6: a checkpoint counts only on the chain of the accepted head.
    ChainTest,
    /// 6: a new file is built. Without: rows that lost are discarded first.
    NewFile,
    /// 6: before that, the log is given what the old file has, if it lacks what the accepted ledger is built from.
    OldFile,
    /// 6: rows of others are appended to a file only if they follow its newest row. Without: to any.
    Follows,
    /// 7: a missing body waits. Without: it is taken for lost, and the worker goes on behind it.
    Wait,
    /// 8: the whole remembered record is compared. Without: the digest of its head alone.
    WholeRecord,
    /// 8: a witness that is shorter than remembered is waited for. Without: it is taken as it is.
    Shorter,
    /// 9: the worker deletes, not time.
    NoExpiry,
    /// 9: below a checkpoint on the accepted chain. Without: below any.
    AcceptedCheckpoint,
    /// 9: below the second-newest row with a checkpoint. Without: below the newest.
    SecondNewest,
    /// 9: and those are two rows. Without: two checkpoints of one row will do.
    TwoRows,
    /// 10: "published" is marked after the acknowledgement of the sink.
    MarkAfter,
    /// 11: a claim with no mark is overdue. Without: it is left to whoever made it.
    Unmarked,
    /// 12: a process appends settings once, and stops at newer foreign ones.
    SettingsOnce,
    /// 12a: a start compares the accepted head with the marks in the log.
    ComparesMarks,
    /// 12a: and with the messages in the output.
    ComparesOutput,
    /// 12a: and with what the disk remembers. Without: what the witness no longer shows is waited for, and what differs is final.
    ComparesDisk,
    /// 12a: bodies in the log that follow the accepted head are claimed. Without: something else is drawn beside them.
    ClaimsBodies,
    /// 12a: output and marks are compared once more before each publication.
    ComparesAgain,
    /// 12a: and not before messages in flight have arrived or expired.
    WaitsForMessages,
    /// 12a: the remembered record is compared before each publication too. Without: when the witness is read.
    ComparesRecord,
    /// 12a: a remembered record is told apart from the same one that was sent again. Without: that may come to stand at the remembered place,
    /// behind another one that was accepted.
    TellsApart,
    /// 12b: a record that is no claim is void. Without: it stops whoever reads it.
    VoidRecords,
    /// The fold: a claim names the head that it follows.
    NamesHead,
}

/// What may happen in a run, and how often.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// The clause that is taken out.
    pub without: Option<Clause>,
    /// Windows that are released.
    pub windows: u8,
    /// Draws for one place in the chain that are still of any consequence.
    pub draws: u8,
    /// Rows that are paid for and not claimed.
    pub unclaimed: u8,
    /// Records of the witness.
    pub claims: u8,
    /// Pieces of a body.
    pub parts: u8,
    /// Whether the order in the log is of consequence: for retention and pieces.
    pub ordered: bool,
    /// Whether the workers have different settings.
    pub settings: bool,
    /// Whether the worker deletes from the log.
    pub retention: bool,
    /// How many workers there are, one or two.
    pub workers: u8,
    /// Whether claims that the witness loses are noticed and made again, as clause 12a says.
    pub compares: bool,
    pub faults: Faults,
}

/// How often each fault may happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Faults {
    pub crashes: u8,
    pub lost_disks: u8,
    /// A disk is copied aside, and later put back in its own place or in that of the other.
    pub copies: u8,
    /// Appends of bodies that come later, or never.
    pub late_bodies: u8,
    /// Appends of claims that come later, or never.
    pub late_claims: u8,
    /// Late claims that come twice.
    pub doubled_claims: u8,
    /// Bodies that an unclean election takes out of the log.
    pub lost_bodies: u8,
    /// Unclean elections of the witness.
    pub elections: u8,
    /// Reads of the witness that show less than there is.
    pub stale_reads: u8,
    /// Marks that do not come into the log.
    pub lost_marks: u8,
    pub checkpoints: u8,
    /// Losses of the newest records of the witness, whatever was published.
    pub lost_claims: u8,
    /// Messages that the output loses after a reader has seen them.
    pub lost_messages: u8,
    /// Messages that arrive in the output later, or never.
    pub late_messages: u8,
    /// Records of the witness that are no claims.
    pub stray_records: u8,
}

impl Setup {
    pub fn holds(&self, clause: Clause) -> bool {
        self.without != Some(clause)
    }
}

/// Two windows, and no fault.
pub const CALM: Setup = Setup {
    without: None,
    windows: 2,
    draws: 2,
    unclaimed: 1,
    claims: 4,
    parts: 1,
    ordered: false,
    settings: false,
    retention: false,
    workers: 2,
    compares: false,
    faults: Faults {
        crashes: 0,
        lost_disks: 0,
        copies: 0,
        late_bodies: 0,
        late_claims: 0,
        doubled_claims: 0,
        lost_bodies: 0,
        elections: 0,
        stale_reads: 0,
        lost_marks: 0,
        checkpoints: 0,
        lost_claims: 0,
        lost_messages: 0,
        late_messages: 0,
        stray_records: 0,
    },
};
