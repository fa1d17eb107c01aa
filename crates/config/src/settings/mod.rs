//! The validated settings: data, and what follows from it alone. Nothing here depends on TOML or on positions in a text.

mod block_count;
mod calibration;
mod choice;
mod endpoints;
mod error;
mod found_keys;
mod function;
mod gaussian_limits;
mod mechanisms;
mod mistakes;
mod noise;
mod payment;
mod prices;
mod privacy;
mod release;
mod selection;
mod size;
mod windowing;
mod worker;

pub use block_count::most_blocks;
pub use calibration::Calibration;
pub use choice::{PrivateBandwidths, PrivateOrder};
pub use endpoints::InputParams;
pub use error::SettingsError;
pub use found_keys::FoundKeySettings;
pub use function::{FunctionHeight, FunctionRoughness, ReleasedFunction};
pub use gaussian_limits::{DRAWN, FINEST, MOST_DRAWN, touched_values};
pub use noise::{CellGrid, Coordinates, NoiseKind};
pub use payment::Payment;
pub use privacy::{NeighbourRelation, Period, PrivacySettings, PrivacyUnit, SharedBudget};
pub use release::ReleaseSettings;
pub use selection::{AutoChoice, NoiseCandidate, NoiseSelection};
pub use size::{most_values, synopsis_bytes};
pub use windowing::WindowKind;
pub use worker::{PRODUCTS_A_SECOND, WorkerSettings};
