//! The state of an absorber that the probes see: that its loop runs and that it can read, never what it reads.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};
use std::time::Duration;

use bernstream_synopsis::clock::Timestamp;

/// A loop without a heartbeat for this long hangs: it waits less for a broker.
const HANGS_AFTER: Duration = Duration::from_secs(180);

/// Shared between the loop of an absorber, which sets it, and the endpoints, which read it.
#[derive(Debug, Default)]
pub struct AbsorberPulse {
    last: AtomicI64,
    is_reading: AtomicBool,
}

impl AbsorberPulse {
    /// Records a heartbeat.
    pub fn record_heartbeat(&self) {
        self.last.store(Timestamp::now().micros(), Relaxed);
    }

    /// Records whether the input can be read.
    pub fn set_reading(&self, is_reading: bool) {
        self.is_reading.store(is_reading, Relaxed);
    }

    /// Returns whether the loop had a heartbeat lately, or has not begun.
    pub fn is_alive(&self) -> bool {
        let last = self.last.load(Relaxed);
        last == 0 || Timestamp::now().since(Timestamp::from_micros(last)) < HANGS_AFTER
    }

    /// Returns whether its topics were found and can be read. It does not need a partition, nor a worker that asks.
    pub fn is_ready(&self) -> bool {
        self.is_reading.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_that_waits_for_brokers_is_alive_and_not_ready_and_one_that_hangs_is_neither() {
        let pulse = AbsorberPulse::default();
        assert_eq!((pulse.is_alive(), pulse.is_ready()), (true, false));
        pulse.record_heartbeat();
        pulse.set_reading(true);
        assert_eq!((pulse.is_alive(), pulse.is_ready()), (true, true));
        pulse.set_reading(false);
        assert_eq!((pulse.is_alive(), pulse.is_ready()), (true, false));
        pulse.last.store(
            Timestamp::now()
                .minus(HANGS_AFTER + Duration::from_secs(1))
                .micros(),
            Relaxed,
        );
        assert!(!pulse.is_alive());
    }
}
