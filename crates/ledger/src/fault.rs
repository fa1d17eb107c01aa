//! Faults of the topic of a witness, a log or a budget.

/// Reason why a topic that loses no record cannot be used. Whoever uses it names it, and says what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TopicFault {
    Unavailable {
        why: String,
    },
    Refused {
        why: String,
    },
    Missing,
    Damaged {
        what: String,
    },
    /// It ends before what was read, or did: its newest records are gone, or a broker is behind.
    Cut,
    /// Another version of the program has written to it what this one cannot read.
    OfAnotherVersion,
    Partitions {
        partitions: usize,
    },
    Setting {
        setting: Box<str>,
        found: Box<str>,
        needed: Box<str>,
        remedy: Box<str>,
    },
}
