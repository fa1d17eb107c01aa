//! Every metric: one struct, names and help texts; the only user of the `prometheus` crate.
//!
//! Names and labels are an interface: alerts, panels and `deploy/RUNBOOK.md` use every one of them, and a test lists them.

use prometheus::{
    Encoder, Gauge, GaugeVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry, TextEncoder,
};

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
    pub closed_until: Moment,
    pub next_release: Moment,
    spent: Parts,
    total: Parts,
    reserve: Parts,
    used: Gauge,
    pub lasts_until: Moment,
    newest_withheld: IntGaugeVec,
    /// One a release.
    pub noise_scale: GaugeVec,
    pub ledger_entries: IntGauge,
    ledger: IntGaugeVec,
    /// One a part of the worker.
    pub ready: IntGaugeVec,
    /// Only with [`Detail::Operator`].
    pub operator: Option<Operator>,
}

/// Exact counts of records: never in the default level, where the difference of two scrapes would be a window's count.
#[derive(Clone, Debug)]
pub struct Operator {
    pub records: IntCounterVec,
    pub batches: IntCounter,
    pub seconds_to_seal: Gauge,
    pub read_until: Moment,
}

/// Why a window is closed unpaid: the schedule says so, never the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Withheld {
    /// A block cannot pay for it.
    Budget,
    /// Every release is over.
    Over,
}

impl Withheld {
    const ALL: [Withheld; 2] = [Withheld::Budget, Withheld::Over];

    fn name(self) -> &'static str {
        match self {
            Withheld::Budget => "budget",
            Withheld::Over => "over",
        }
    }
}

/// A time. Not shown where there is none.
#[derive(Clone, Debug)]
pub struct Moment(GaugeVec);

impl Moment {
    fn new(registry: &Registry, name: &str, help: &str) -> Result<Self, prometheus::Error> {
        // A gauge without labels that is not shown before it is set.
        let gauge = GaugeVec::new(Opts::new(format!("{name}_timestamp_seconds"), help), &[])?;
        registry.register(Box::new(gauge.clone())).map(|()| Moment(gauge))
    }

    pub fn set(&self, time: Option<Timestamp>) {
        match time {
            #[expect(clippy::cast_precision_loss, reason = "a time to show")]
            Some(time) => self.0.with_label_values::<&str>(&[]).set(time.micros() as f64 / 1e6),
            None => self.0.reset(),
        }
    }
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
        let labelled = |name: &str, help: &str, label: &str| {
            let gauges = IntGaugeVec::new(Opts::new(name, help), &[label])?;
            registry.register(Box::new(gauges.clone())).map(|()| gauges)
        };

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
                    read_until: Moment::new(&registry, "read_until", "message timestamp of what was read last")?,
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
            closed_until: Moment::new(&registry, "closed_until", "end of the newest window that was closed")?,
            next_release: Moment::new(
                &registry,
                "next_release",
                "when the next window is due on the output; none for files and after the last window",
            )?,
            spent: Parts::new(&registry, "spent", "spent in the newest block charged")?,
            total: Parts::new(&registry, "limit", "total of every block")?,
            reserve: Parts::new(&registry, "reserve", "of the total of every block, kept back for corrections")?,
            lasts_until: Moment::new(
                &registry,
                "privacy_budget_lasts_until",
                "start of the first window of the newest block that has a release unpaid, where there is one",
            )?,
            newest_withheld: labelled(
                "newest_window_withheld",
                "1 where the newest window was closed unpaid, and why: no budget is left, or every release is over",
                "reason",
            )?,
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
            ledger: labelled("ledger_info", "1; the name of the ledger in use, as in every synopsis", "ledger")?,
            ready: labelled(
                "ready",
                "1 while it works: the input is read, the witness agrees with the ledger, the output takes what is due",
                "part",
            )?,
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

    /// What is known before the first window: the ledger's name, the total of a block, and what of it is kept back.
    pub fn begin(&self, ledger: &str, total: Price, limit: Price) {
        self.ledger.with_label_values(&[ledger]).set(1);
        self.show_budget(total.zero(), total);
        if let Some(reserve) = total.checked_sub(limit).filter(|reserve| !reserve.is_zero()) {
            self.reserve.set(reserve);
        }
    }

    /// Whether the newest window was withheld.
    pub fn show_withheld(&self, why: Option<Withheld>) {
        for reason in Withheld::ALL {
            self.newest_withheld.with_label_values(&[reason.name()]).set(i64::from(why == Some(reason)));
        }
    }

    /// The text that Prometheus scrapes.
    pub fn render(&self) -> Result<String, prometheus::Error> {
        let mut text = Vec::new();
        TextEncoder::new().encode(&self.registry.gather(), &mut text)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mechanism::calibrate::Epsilon;

    /// Every series with its type, labels and help, as somebody sees it who scrapes a worker of which everything is known.
    fn interface(detail: Detail) -> String {
        let metrics = Metrics::new(detail, "p", "pure epsilon", "0").unwrap();
        let one = Epsilon::from_trillionths(1_000_000_000_000);
        let prices = [Price::Approximate { epsilon: one, delta: "0.5".parse().unwrap() }, Price::Slots(2)];
        for price in prices.into_iter().chain([Price::Concentrated("0.5".parse().unwrap())]) {
            metrics.show_budget(price, price);
            metrics.reserve.set(price);
        }
        metrics.show_withheld(None);
        metrics.begin("l", prices[0], prices[0]);
        metrics.noise_scale.with_label_values(&["r"]).set(1.0);
        metrics.ready.with_label_values(&["input"]).set(1);
        let operator = metrics.operator.iter();
        let moments = [&metrics.closed_until, &metrics.next_release, &metrics.lasts_until];
        moments.into_iter().chain(operator.clone().map(|operator| &operator.read_until)).for_each(|moment| {
            moment.set(Some(Timestamp::from_micros(0)));
        });
        operator.for_each(|operator| operator.records.with_label_values(&["taken"]).inc());
        let text = metrics.render().unwrap();
        let mut series = Vec::new();
        for lines in text.split("# HELP ").skip(1) {
            let (head, values) = lines.split_once("\n# TYPE ").unwrap();
            let (name, help) = head.split_once(' ').unwrap();
            let value = values.lines().nth(1).unwrap();
            let labels: Vec<&str> = value
                .split(['{', ','])
                .skip(1)
                .filter_map(|label| label.split_once('='))
                .map(|(name, _)| name)
                .collect();
            let kind = values.lines().next().unwrap().rsplit(' ').next().unwrap();
            series.push(format!("{name}{{{}}} {kind}: {help}", labels.join(",")));
        }
        series.join("\n")
    }

    #[test]
    fn the_names_are_those_that_alerts_and_panels_use() {
        let safe = interface(Detail::Safe);
        assert_eq!(safe, SAFE.trim(), "{safe}");
        let operator = interface(Detail::Operator);
        let more: Vec<&str> = operator.lines().filter(|line| !SAFE.contains(line)).collect();
        assert_eq!(more.join("\n"), OPERATOR.trim(), "{}", more.join("\n"));
    }

    #[test]
    fn a_moment_that_is_not_known_is_not_shown() {
        let metrics = Metrics::new(Detail::Safe, "p", "pure epsilon", "0").unwrap();
        let is_shown = || metrics.render().unwrap().contains("next_release_timestamp_seconds");
        assert!(!is_shown());
        metrics.next_release.set(Some(Timestamp::from_micros(0)));
        assert!(is_shown());
        metrics.next_release.set(None);
        assert!(!is_shown());
    }

    const SAFE: &str = r"
bernstream_build_info{configuration,definition,detail,version,pipeline} gauge: 1; the labels say what is running
bernstream_closed_until_timestamp_seconds{pipeline} gauge: end of the newest window that was closed
bernstream_ledger_entries{pipeline} gauge: rows of the ledger
bernstream_ledger_info{ledger,pipeline} gauge: 1; the name of the ledger in use, as in every synopsis
bernstream_newest_window_withheld{reason,pipeline} gauge: 1 where the newest window was closed unpaid, and why: no budget is left, or every release is over
bernstream_next_release_timestamp_seconds{pipeline} gauge: when the next window is due on the output; none for files and after the last window
bernstream_noise_scale{release,pipeline} gauge: scale of the noise, in units of the synopsis
bernstream_privacy_budget_lasts_until_timestamp_seconds{pipeline} gauge: start of the first window of the newest block that has a release unpaid, where there is one
bernstream_privacy_budget_used_ratio{pipeline} gauge: spent of total in the newest block charged, the larger part
bernstream_privacy_delta_limit{pipeline} gauge: total of every block
bernstream_privacy_delta_reserve{pipeline} gauge: of the total of every block, kept back for corrections
bernstream_privacy_delta_spent{pipeline} gauge: spent in the newest block charged
bernstream_privacy_epsilon_limit{pipeline} gauge: total of every block
bernstream_privacy_epsilon_reserve{pipeline} gauge: of the total of every block, kept back for corrections
bernstream_privacy_epsilon_spent{pipeline} gauge: spent in the newest block charged
bernstream_privacy_rho_limit{pipeline} gauge: total of every block
bernstream_privacy_rho_reserve{pipeline} gauge: of the total of every block, kept back for corrections
bernstream_privacy_rho_spent{pipeline} gauge: spent in the newest block charged
bernstream_privacy_windows_limit{pipeline} gauge: total of every block
bernstream_privacy_windows_reserve{pipeline} gauge: of the total of every block, kept back for corrections
bernstream_privacy_windows_spent{pipeline} gauge: spent in the newest block charged
bernstream_ready{part,pipeline} gauge: 1 while it works: the input is read, the witness agrees with the ledger, the output takes what is due
bernstream_synopses_published_total{pipeline} counter: synopses that reached the output
bernstream_windows_released_total{pipeline} counter: windows paid for
bernstream_windows_withheld_total{pipeline} counter: windows closed unpaid: their budget was spent, or no release was due
";
    const OPERATOR: &str = r"
bernstream_batches_total{pipeline} counter: messages read
bernstream_read_until_timestamp_seconds{pipeline} gauge: message timestamp of what was read last
bernstream_records_total{fate,pipeline} counter: records by what became of them
bernstream_seal_seconds{pipeline} gauge: time from close to sealed of the last window
";
}
