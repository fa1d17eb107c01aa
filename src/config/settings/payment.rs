//! What the noise of a window is paid with.

use crate::mechanism::calibrate::{Delta, Epsilon, Rho};
use crate::mechanism::price::Price;

/// What the noise of a window is paid with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payment {
    /// Written in the kind of the total.
    Own(Price),
    /// What the noise takes of a plan that was declared beforehand; a window of the plan is charged.
    Planned(Price),
    /// Written in `epsilon` where the total is in `rho`: for mechanisms of pure differential privacy only.
    Converted(Epsilon),
}

impl Payment {
    /// What is charged, in the kind of the total.
    pub fn price(self) -> Price {
        match self {
            Payment::Own(price) => price,
            Payment::Planned(_) => Price::SLOT,
            Payment::Converted(epsilon) => Price::Concentrated(Rho::ZERO).with_pure(epsilon),
        }
    }

    /// What a mechanism may take for it, in a kind that it is calibrated in.
    pub fn own(self) -> Price {
        match self {
            Payment::Own(price) | Payment::Planned(price) => price,
            Payment::Converted(epsilon) => Price::Pure(epsilon),
        }
    }

    /// Whether it pays for noise that gives no pure differential privacy.
    pub fn pays_for_gaussian(self) -> bool {
        match self.own() {
            Price::Approximate { delta, .. } => delta > Delta::ZERO,
            Price::Concentrated(_) => true,
            Price::Pure(_) | Price::Slots(_) => false,
        }
    }

    /// What a mechanism of pure differential privacy may take for it.
    pub fn epsilon(self) -> Epsilon {
        self.own().pure()
    }
}
