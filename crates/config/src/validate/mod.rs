//! The rules between sections.

mod composition;
mod delivery;
mod found_keys;
mod noise;
mod price;
mod sharing;

pub use composition::{composition_holds, share_the_slot};
pub use delivery::{
    delays_past_the_slack, fits_a_message, fits_a_row, grace_exceeds_the_producer_delay,
    logs_no_input, reads_no_output,
};
pub use found_keys::check_key_search;
pub use noise::{can_be_drawn, sums_can_be_drawn};
pub use price::can_pay_once;
pub use sharing::shares_through_a_topic;
