//! Every metric: one struct, names and help texts.

/// How much the metrics tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Only what the clock and the configuration determine.
    Safe,
    /// Exact counts and lags too, for people who may see the records anyway.
    Operator,
}
