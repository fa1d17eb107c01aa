//! Exact integer noise.
