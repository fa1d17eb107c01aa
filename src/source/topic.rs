//! What a topic is: its id, partitions and settings.

/// How to reach a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broker {
    /// `bootstrap.servers`.
    pub servers: String,
    /// The demonstration's mock cluster, which answers no administration requests: settings are not checked there.
    pub is_mock: bool,
}
