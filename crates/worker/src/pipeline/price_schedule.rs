//! Prices of the windows of one release, one after the other.

use bernstream_noise::accountant::policy::PricePolicy;
use bernstream_synopsis::price::Price;

/// The price of each window of a release, private choices included. All of it is public.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PriceSchedule {
    pub policy: PricePolicy,
    /// The part of every price that pays for private choices, and not for the function's noise.
    pub choices: Price,
    /// The number of the first window of a block that is not released: nothing is left for it, or so little that its noise
    /// could not be drawn. `None` for a fixed price: there the budget decides.
    pub over: Option<u64>,
}

impl PriceSchedule {
    /// The price of window `n` of a block; `None` once the release is over.
    pub fn price_of_window(&self, n: u64) -> Option<Price> {
        if self.over.is_some_and(|over| n >= over) {
            None
        } else {
            self.policy.window_price(n)
        }
    }
}
