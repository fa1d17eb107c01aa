//! Every metric: one struct, names and help texts; the only user of the `prometheus` crate.

use prometheus::{Encoder, Gauge, GaugeVec, IntCounter, IntCounterVec, IntGauge, Opts, Registry, TextEncoder};

use crate::clock::Timestamp;
use crate::mechanism::price::Price;

/// How much the metrics tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Only what the clock and the configuration determine.
    Safe,
    /// Exact counts too, for people who may see the records anyway.
    Operator,
}

impl Detail {
    pub fn name(self) -> &'static str {
        match self {
            Detail::Safe => "safe",
            Detail::Operator => "operator",
        }
    }
}

/// The metrics of one worker. Cheap to clone: all clones count together.
#[derive(Clone, Debug)]
pub struct Metrics {
    registry: Registry,
    pub released: IntCounter,
    pub withheld: IntCounter,
    pub published: IntCounter,
    pub closed_until: Gauge,
    spent: Parts,
    total: Parts,
    reserve: Parts,
    used: Gauge,
    /// Not shown where the budget outlasts its block.
    lasts_until: GaugeVec,
    /// One a release.
    pub noise_scale: GaugeVec,
    pub ledger_entries: IntGauge,
    pub ready: IntGauge,
    /// Only with [`Detail::Operator`].
    pub operator: Option<Operator>,
}

/// Exact counts of records: never in the default level, where the difference of two scrapes would be a window's count.
#[derive(Clone, Debug)]
pub struct Operator {
    pub records: IntCounterVec,
    pub batches: IntCounter,
    pub seconds_to_seal: Gauge,
}

/// The parts that a price can have; only those of the budget in use are ever shown.
#[derive(Clone, Debug)]
struct Parts {
    epsilon: GaugeVec,
    delta: GaugeVec,
    rho: GaugeVec,
    windows: GaugeVec,
}

impl Parts {
    fn new(registry: &Registry, what: &str, help: &str) -> Result<Self, prometheus::Error> {
        // A gauge without labels that is not shown before it is set.
        let part = |part: &str| {
            let gauge = GaugeVec::new(Opts::new(format!("privacy_{part}_{what}"), help), &[])?;
            registry.register(Box::new(gauge.clone())).map(|()| gauge)
        };
        Ok(Parts { epsilon: part("epsilon")?, delta: part("delta")?, rho: part("rho")?, windows: part("windows")? })
    }

    fn set(&self, price: Price) {
        let set = |gauge: &GaugeVec, value| gauge.with_label_values::<&str>(&[]).set(value);
        match price {
            Price::Pure(epsilon) => set(&self.epsilon, epsilon.to_f64()),
            Price::Approximate { epsilon, delta } => {
                set(&self.epsilon, epsilon.to_f64());
                set(&self.delta, delta.to_f64());
            }
            Price::Concentrated(rho) => set(&self.rho, rho.to_f64()),
            #[expect(clippy::cast_precision_loss, reason = "a figure to show")]
            Price::Slots(count) => set(&self.windows, count as f64),
        }
    }
}

impl Metrics {
    /// Registers every metric. `definition` names the kind of privacy, `digest` is that of the privacy settings in use.
    pub fn new(detail: Detail, pipeline: &str, definition: &str, digest: &str) -> Result<Metrics, prometheus::Error> {
        let registry = Registry::new_custom(
            Some("bernstream".into()),
            Some([("pipeline".to_string(), pipeline.to_string())].into()),
        )?;
        let add = |gauge: Gauge| registry.register(Box::new(gauge.clone())).map(|()| gauge);
        let count = |counter: IntCounter| registry.register(Box::new(counter.clone())).map(|()| counter);
        let whole = |gauge: IntGauge| registry.register(Box::new(gauge.clone())).map(|()| gauge);

        let info = Opts::new("build_info", "1; the labels say what is running")
            .const_label("version", env!("CARGO_PKG_VERSION"))
            .const_label("configuration", digest)
            .const_label("definition", definition)
            .const_label("detail", detail.name());
        whole(IntGauge::with_opts(info)?)?.set(1);

        let operator = match detail {
            Detail::Safe => None,
            Detail::Operator => {
                let records =
                    IntCounterVec::new(Opts::new("records_total", "records by what became of them"), &["fate"])?;
                registry.register(Box::new(records.clone()))?;
                Some(Operator {
                    records,
                    batches: count(IntCounter::new("batches_total", "messages read")?)?,
                    seconds_to_seal: add(Gauge::new("seal_seconds", "time from close to sealed of the last window")?)?,
                })
            }
        };
        Ok(Metrics {
            released: count(IntCounter::new("windows_released_total", "windows paid for")?)?,
            withheld: count(IntCounter::new(
                "windows_withheld_total",
                "windows closed unpaid: their budget was spent, or no release was due",
            )?)?,
            published: count(IntCounter::new("synopses_published_total", "synopses that reached the output")?)?,
            closed_until: add(Gauge::new(
                "closed_until_timestamp_seconds",
                "end of the newest window that was closed",
            )?)?,
            spent: Parts::new(&registry, "spent", "spent in the newest block charged")?,
            total: Parts::new(&registry, "limit", "total of every block")?,
            reserve: Parts::new(&registry, "reserve", "of the total of every block, kept back for corrections")?,
            lasts_until: {
                let about = Opts::new(
                    "privacy_budget_lasts_until_timestamp_seconds",
                    "start of the first window of the newest block that has a release unpaid, where there is one",
                );
                let until = GaugeVec::new(about, &[])?;
                registry.register(Box::new(until.clone()))?;
                until
            },
            used: add(Gauge::new(
                "privacy_budget_used_ratio",
                "spent of total in the newest block charged, the larger part",
            )?)?,
            noise_scale: {
                let about = Opts::new("noise_scale", "scale of the noise, in units of the synopsis");
                let scales = GaugeVec::new(about, &["release"])?;
                registry.register(Box::new(scales.clone()))?;
                scales
            },
            ledger_entries: whole(IntGauge::new("ledger_entries", "rows of the ledger")?)?,
            ready: whole(IntGauge::new("ready", "1 while the worker is ready")?)?,
            operator,
            registry,
        })
    }

    /// What the newest block charged has spent, of what.
    pub fn show_budget(&self, spent: Price, total: Price) {
        self.spent.set(spent);
        self.total.set(total);
        self.used.set(spent.share_of(total));
    }

    /// What of the total is kept back, if anything is.
    pub fn show_reserve(&self, total: Price, limit: Price) {
        if let Some(reserve) = total.checked_sub(limit).filter(|reserve| !reserve.is_zero()) {
            self.reserve.set(reserve);
        }
    }

    /// Until when the block that is charged pays for every release; `None` to its end.
    pub fn show_lasts_until(&self, until: Option<Timestamp>) {
        self.lasts_until.reset();
        if let Some(until) = until {
            #[expect(clippy::cast_precision_loss, reason = "a time to show")]
            self.lasts_until.with_label_values::<&str>(&[]).set(until.micros() as f64 / 1e6);
        }
    }

    /// The text that Prometheus scrapes.
    pub fn render(&self) -> Result<String, prometheus::Error> {
        let mut text = Vec::new();
        TextEncoder::new().encode(&self.registry.gather(), &mut text)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}
