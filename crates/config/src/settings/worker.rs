//! Everything that a worker needs to know.

use std::net::SocketAddr;
use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::settings::endpoints::InputParams;
use crate::settings::found_keys::FoundKeySettings;
use crate::settings::privacy::{NeighbourRelation, PrivacySettings};
use crate::settings::release::ReleaseSettings;
use crate::settings::size::synopsis_bytes;
use bernstream_kafka::Broker;
use bernstream_kafka::sink::OutputParams;
use bernstream_kafka::source::registry::SchemaRegistry;
use bernstream_ledger as ledger;
use bernstream_ledger::bootstrap::StartSchedule;
use bernstream_release::{source, window};
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::grid::Blocks;
use bernstream_worker::metrics::MetricsDetail;
use bernstream_worker::scale;

/// An estimate for an ordinary machine.
pub const PRODUCTS_A_SECOND: u64 = 1_000_000_000;

/// Time that a draw is given in addition, before it is claimed where another worker may draw too.
const DRAWING: Duration = Duration::from_millis(500);

/// Time that it takes, beside the computation, to draw, seal and write a synopsis and to append it to the log: for each, and for each byte of it.
const NANOS_A_SYNOPSIS: u64 = 3_000_000;
const NANOS_A_BYTE: u64 = 250;

/// Nanoseconds to which a predicted time is rounded down.
const TENTH: u64 = 100_000_000;

/// Everything a worker needs to know; every rule between two settings holds.
#[derive(Clone, Debug)]
pub struct WorkerSettings {
    pub pipeline: String,
    pub input: InputParams,
    /// Within it of its event time a producer sends a record, whatever other records there are; none for files, and where nothing is
    /// declared. The worker cannot see whether it is kept, and nothing that it does depends on it.
    pub producer_delay: Option<Duration>,
    /// The registry that knows the newest schema of the input. It says what people should pin, and nothing that is read depends on it.
    pub registry: Option<SchemaRegistry>,
    pub columns: source::Columns,
    pub windows: window::WindowRules,
    /// Rules for keys that nobody listed; `None` where keys are listed, or there are none.
    pub found_keys: Option<FoundKeySettings>,
    /// The privacy blocks: for records the windows themselves, for users the periods, or all of time.
    pub blocks: Blocks,
    pub privacy: PrivacySettings,
    /// Never empty; each has a name of its own.
    pub releases: Vec<ReleaseSettings>,
    /// From the cutoff of a window to its publication.
    pub publish_delay: Duration,
    pub output: OutputParams,
    pub ledger: ledger::LedgerParams,
    /// The log that the ledger can be built from again.
    pub ledger_log: Option<bernstream_kafka::ledger::log::KafkaLogParams>,
    /// Time that workers that follow wait for the one that acts, where there is a log.
    pub standby: Duration,
    /// Reading is split over processes.
    pub scale: Option<scale::ScaleParams>,
    pub serve: Option<SocketAddr>,
    /// The address at which the worker shows its own output.
    pub dashboard: Option<SocketAddr>,
    /// The names by which both may be asked.
    pub hosts: Vec<String>,
    pub detail: MetricsDetail,
    /// Canonical JSON of what affects privacy, and of nothing else: no address, no path, no secret.
    pub normalised: String,
}

impl WorkerSettings {
    /// SHA-256 of [`WorkerSettings::normalised`]: changes with what affects privacy, and with nothing else.
    pub fn digest(&self) -> [u8; 32] {
        Sha256::digest(&self.normalised).into()
    }

    /// Time before its window that a charge can reach: the overlap of windows that pay each time.
    pub fn charge_reach(&self) -> Duration {
        let earlier = self
            .releases
            .iter()
            .map(|release| release.panes_charged() - 1)
            .max();
        self.windows
            .grid
            .length()
            .saturating_mul(earlier.unwrap_or(0))
    }

    /// The rules for where a ledger may start, and what it may read.
    pub fn bootstrap_scheme(&self) -> StartSchedule {
        let slack = match &self.input {
            InputParams::Kafka(kafka) => kafka.clock_slack,
            InputParams::Files(_) => Duration::ZERO,
        };
        StartSchedule {
            windows: self.windows.grid,
            blocks: self.blocks,
            ahead: self.windows.max_future_skew,
            slack,
        }
    }

    /// Warnings about the security of the connections, and about what is surely a mistake.
    pub fn warnings(&self, now: Timestamp) -> Vec<String> {
        let mut warnings = super::mistakes::suspected_mistakes(self, now);
        warnings.extend(self.connection_warnings());
        warnings
    }

    fn connection_warnings(&self) -> Vec<String> {
        let mut warnings = self.input.broker().map_or(Vec::new(), Broker::warnings);
        warnings.extend(self.registry.iter().flat_map(SchemaRegistry::warnings));
        warnings.extend(self.output.broker().map_or(Vec::new(), Broker::warnings));
        warnings.extend(ledger::private::access_warning(&self.ledger.path));
        warnings.extend(
            self.ledger_log
                .as_ref()
                .and_then(bernstream_kafka::ledger::log::KafkaLogParams::key_warning),
        );
        warnings.extend(
            self.scale
                .as_ref()
                .and_then(scale::ScaleParams::key_file_warning),
        );
        warnings.dedup();
        warnings
    }

    pub fn neighbouring_relation(&self) -> NeighbourRelation {
        self.privacy.protected()
    }

    /// About how long a window can take to compute, on an ordinary machine, in whole tenths of a second.
    pub fn longest_computation(&self) -> Duration {
        whole_tenths(self.compute_nanos())
    }

    /// About how long a window can take from its cutoff until it can be claimed where there is a log: computed, drawn, written and appended.
    /// In whole tenths of a second.
    pub fn longest_drawing(&self) -> Duration {
        whole_tenths(self.compute_nanos().saturating_add(self.write_nanos()))
    }

    /// Nanoseconds of the multiplications of a window.
    fn compute_nanos(&self) -> u64 {
        self.window_products()
            .saturating_mul(1_000_000_000 / PRODUCTS_A_SECOND)
    }

    /// Nanoseconds of everything that comes after them.
    fn write_nanos(&self) -> u64 {
        let mut nanos: u64 = 0;
        for release in &self.releases {
            let shape = release.shape();
            let state = match self.noise_series(release) {
                Ok(Some(series)) => series.state_bytes(shape.value_count()),
                Ok(None) | Err(_) => 0,
            };
            let bytes = (synopsis_bytes(&shape, self.columns.key.len()) as u64)
                .saturating_add(state as u64);
            let of_each = NANOS_A_SYNOPSIS.saturating_add(bytes.saturating_mul(NANOS_A_BYTE));
            let synopses = self.synopses_of_release(release) as u64;
            nanos = nanos.saturating_add(of_each.saturating_mul(synopses));
        }
        nanos
    }

    /// The most multiplications that a window can take, all releases and keys together.
    pub fn window_products(&self) -> u64 {
        let mut products: u64 = 0;
        for release in &self.releases {
            let of_each = release.function.target.cost().products;
            let synopses = self.synopses_of_release(release) as u64;
            products = products.saturating_add(of_each.saturating_mul(synopses));
        }
        products
    }

    /// The times for which workers that share a log wait for each other.
    pub fn standby_times(&self) -> ledger::StandbyRule {
        let lead = match &self.input {
            InputParams::Kafka(kafka) => self.publish_delay.saturating_sub(kafka.clock_slack),
            InputParams::Files(_) => Duration::ZERO,
        };
        ledger::StandbyRule {
            patience: self.standby,
            drawing: DRAWING + self.longest_drawing(),
            lead,
        }
    }

    /// The size of the largest synopsis, about, in bytes.
    pub fn largest_synopsis(&self) -> usize {
        let mut largest = 0;
        for release in &self.releases {
            largest = largest.max(synopsis_bytes(&release.shape(), self.columns.key.len()));
        }
        largest
    }

    /// Number of keys that the input declares; one where all records belong together.
    pub fn key_count(&self) -> usize {
        self.windows.keys.as_ref().map_or(1, Vec::len)
    }

    /// Number of synopses that a release publishes of a window: one a key, or one table of all keys.
    pub fn synopses_of_release(&self, release: &ReleaseSettings) -> usize {
        match release.function.keyed_counts() {
            Some(_) => 1,
            None => self.key_count(),
        }
    }

    /// Number of synopses of a window, all releases together.
    pub fn synopses_of_window(&self) -> usize {
        let releases = self.releases.iter();
        releases
            .map(|release| self.synopses_of_release(release))
            .sum()
    }
}

fn whole_tenths(nanos: u64) -> Duration {
    Duration::from_nanos(nanos / TENTH * TENTH)
}
