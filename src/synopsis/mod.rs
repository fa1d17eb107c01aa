//! What the world may see. Usable without the rest of the crate (`default-features = false`).

/// A finished message: exactly the bytes that will leave, and where they go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sealed {
    /// Kafka message key: pipeline and group key, so that compaction keeps the newest.
    pub key: String,
    /// CloudEvents and our own headers, in order.
    pub headers: Vec<(String, String)>,
    /// The Arrow IPC stream.
    pub bytes: Vec<u8>,
}
