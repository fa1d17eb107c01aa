//! The replicated log of a ledger, in a topic.

mod topic;

pub use self::topic::KafkaLog;
pub use self::topic::KafkaLogParams;
pub use self::topic::check_topic;
pub use self::topic::open_log;
