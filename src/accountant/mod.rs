//! accountant
