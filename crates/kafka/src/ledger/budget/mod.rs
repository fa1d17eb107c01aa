//! The budget that pipelines of one input share, in a topic.

pub mod guard;
pub mod topic;
