//! Why synopses cannot be read.

use std::path::PathBuf;

use bernstream_kafka as kafka;

/// Why synopses cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum FeedError {
    #[error(transparent)]
    Topic(#[from] kafka::ClusterError),
    #[error("there is no folder {path}: the worker creates it with its first synopsis")]
    NoFolder { path: PathBuf },
    #[error("{path} is a file: name the folder of synopses that [output.files] names")]
    NotAFolder { path: PathBuf },
    #[error(transparent)]
    Folder(#[from] bernstream_kafka::sink::SinkError),
}
