//! The price of the noise of a window.

use bernstream_synopsis::calibrate::{Delta, Epsilon, Rho};
use bernstream_synopsis::price::Price;

/// The price of the noise of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payment {
    /// In the same kind as the total.
    Own(Price),
    /// The price of the noise in a declared plan, where a window is charged as one slot.
    Planned(Price),
    /// In `epsilon` where the total is in `rho`: only for mechanisms of pure differential privacy. `rho` is what is charged.
    Converted { epsilon: Epsilon, rho: Rho },
}

impl Payment {
    /// An epsilon where the total is in rho, charged as that of a mechanism of which nothing else is known.
    pub fn converted_from(epsilon: Epsilon) -> Payment {
        let rho = match Price::Concentrated(Rho::ZERO).with_pure(epsilon) {
            Price::Concentrated(rho) => rho,
            Price::Pure(_) | Price::Approximate { .. } | Price::Slots(_) => {
                Rho::from_trillionths(u64::MAX)
            }
        };
        Payment::Converted { epsilon, rho }
    }

    /// This payment, charged `own` where that is less: the noise of a converted epsilon costs no more.
    #[must_use]
    pub fn with_lower_charge(self, own: Rho) -> Payment {
        match self {
            Payment::Converted { epsilon, rho } => Payment::Converted {
                epsilon,
                rho: rho.min(own),
            },
            Payment::Own(_) | Payment::Planned(_) => self,
        }
    }

    /// The charge, in the kind of the total.
    pub fn charged_price(self) -> Price {
        match self {
            Payment::Own(price) => price,
            Payment::Planned(_) => Price::SLOT,
            Payment::Converted { rho, .. } => Price::Concentrated(rho),
        }
    }

    /// The price that the mechanism is calibrated to.
    pub fn mechanism_price(self) -> Price {
        match self {
            Payment::Own(price) | Payment::Planned(price) => price,
            Payment::Converted { epsilon, .. } => Price::Pure(epsilon),
        }
    }

    /// Returns whether it pays for Gaussian noise, which does not give pure differential privacy.
    pub fn pays_for_gaussian(self) -> bool {
        match self.mechanism_price() {
            Price::Approximate { delta, .. } => delta > Delta::ZERO,
            Price::Concentrated(_) => true,
            Price::Pure(_) | Price::Slots(_) => false,
        }
    }

    /// The epsilon that a mechanism of pure differential privacy is calibrated to.
    pub fn epsilon(self) -> Epsilon {
        self.mechanism_price().largest_pure_epsilon()
    }
}
