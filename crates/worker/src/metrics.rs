//! Every metric, with its name and help text; the only user of the `prometheus` crate.
//!
//! Names and labels are an interface: alerts, panels and `deploy/RUNBOOK.md` use every one of them, and a test lists them.

use prometheus::core::Collector;
use prometheus::{
    Encoder, Gauge, GaugeVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry,
    TextEncoder,
};

use bernstream_kafka::sink::deliver::LostTopic;
use bernstream_ledger::witness::StrayCounts;
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::price::Price;

/// The level of detail of the metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricsDetail {
    /// Only what the clock and the configuration determine, and whether the worker makes progress: a message that stops reading, or a solver that is
    /// late, shows.
    Safe,
    /// Exact counts too, for people who may see the records anyway.
    Operator,
}

impl MetricsDetail {
    pub fn name(self) -> &'static str {
        match self {
            MetricsDetail::Safe => "safe",
            MetricsDetail::Operator => "operator",
        }
    }
}

/// The metrics of one worker. Cheap to clone: all clones share their values.
#[derive(Clone, Debug)]
pub struct Metrics {
    registry: Registry,
    pub released: IntCounter,
    pub withheld: IntCounter,
    pub published: IntCounter,
    pub closed_until: MomentGauge,
    pub next_release: MomentGauge,
    spent: PriceGauges,
    total: PriceGauges,
    reserve: PriceGauges,
    /// Those of the newest window, one per release.
    price: PriceGauges,
    used: Gauge,
    pub lasts_until: MomentGauge,
    newest_withheld: IntGaugeVec,
    /// One per release.
    pub noise_scale: GaugeVec,
    pub ledger_entries: IntGauge,
    pub acting: IntGauge,
    pub witness_lost_claims: IntGauge,
    pub output_lost: IntGauge,
    ledger: IntGaugeVec,
    /// One per part of the worker.
    pub ready: IntGaugeVec,
    /// One per topic of the ledger.
    strays: IntGaugeVec,
    lost: IntGaugeVec,
    /// By subject.
    newest_schema: IntGaugeVec,
    /// By subject.
    registry_answers: IntGaugeVec,
    /// Only with [`MetricsDetail::Operator`].
    pub operator: Option<OperatorMetrics>,
}

/// Exact counts of records: never at the default level, where the difference of two scrapes would reveal the count of a window.
#[derive(Clone, Debug)]
pub struct OperatorMetrics {
    pub records: IntCounterVec,
    /// By column.
    pub unread: IntCounterVec,
    pub batches: IntCounter,
    pub seconds_to_seal: Gauge,
    pub read_until: MomentGauge,
    /// By absorber and by what became of them.
    pub partials: IntCounterVec,
    /// By absorber.
    pub partial_bytes: IntCounterVec,
    pub read_here: IntGauge,
}

/// The reason why a window is withheld: because of the schedule, never because of the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WithheldReason {
    /// A block cannot pay for it.
    Budget,
    /// Every release is over.
    Over,
}

impl WithheldReason {
    const ALL: [WithheldReason; 2] = [WithheldReason::Budget, WithheldReason::Over];

    fn name(self) -> &'static str {
        match self {
            WithheldReason::Budget => "budget",
            WithheldReason::Over => "over",
        }
    }
}

/// A point in time, shown only if it is known.
#[derive(Clone, Debug)]
pub struct MomentGauge(GaugeVec);

impl MomentGauge {
    fn new(registry: &Registry, name: &str, help: &str) -> Result<Self, prometheus::Error> {
        // A gauge vector without labels is not exported before it is set.
        let gauge = GaugeVec::new(Opts::new(format!("{name}_timestamp_seconds"), help), &[])?;
        registry
            .register(Box::new(gauge.clone()))
            .map(|()| MomentGauge(gauge))
    }

    pub fn set_time(&self, time: Option<Timestamp>) {
        match time {
            #[expect(clippy::cast_precision_loss, reason = "a time to show")]
            Some(time) => self
                .0
                .with_label_values::<&str>(&[])
                .set(time.micros() as f64 / 1e6),
            None => self.0.reset(),
        }
    }
}

const WITHHELD: &str =
    "windows withheld: their budget was spent, their share had ended, or every release was over";
const PUBLISHED: &str = "synopses that reached the output";
const CLOSED_UNTIL: &str = "end of the newest closed window";
const NEXT_RELEASE: &str =
    "when the next window is due on the output; absent for files and after the last window";
const RESERVE: &str = "part of the total of every block that windows may not spend";
const NEWEST_WITHHELD: &str = "1 if the newest window was withheld, for this reason: its budget is spent, or every release is over";
const USED: &str =
    "spent share of the total in the newest charged block; of two components the larger";
const NOISE_SCALE: &str = "scale of the noise, in units of the synopsis";
const ACTING: &str =
    "1 while this worker releases the windows, 0 while it follows another one that does";
const LOST_CLAIMS: &str =
    "1 if the witness had lost claims since this worker was started, whose rows it claims again";
const OUTPUT_LOST: &str = "the most published synopses that the output had lost at its end since this worker was started, and whose bytes were not kept any more";
const LEDGER: &str = "1; the label is the ledger in use, as in every synopsis";
const READY: &str = "1 while the part works: the clock is not behind the brokers', the input is read, the witness agrees with the ledger, the output accepts what is due";
const LASTS_UNTIL: &str = "start of the first window of the newest block that leaves a release unpaid, or the end of the share of an \
                           input's total, if there is one";
const PRICE: &str = "what the newest window costs for this release, a part of what its blocks spend; 0 once the release is over";

const PARTIALS: &str = "partials that absorbers have sent: taken, broken, differing from another copy, without room (no_room), or taken and then refused, as they are none";
const UNREAD: &str = "messages of Arrow, or batches of a file, that lack a needed column or have it with a type that it may not have";
const READ_HERE: &str = "partitions that the worker reads because no absorber has sent them in time; without [scale] 0, though it \
                         reads all of them";

const STRAYS: &str = "records of the witness and budget topics that were read and that no program of this kind has written: they count for \
                      nothing";
const LOST: &str = "1 while a witness or budget topic ends before what this worker has read of it";

const NEWEST_SCHEMA: &str = "1 if the newest schema of the subject is pinned, 0 if records that are written with it are dropped, as the registry \
                             said last; absent without a registry";
const REGISTRY_ANSWERS: &str =
    "1 while the schema registry says which schema is the newest; absent without a registry";

/// The components of a price; only those of the kind of budget in use are ever shown.
#[derive(Clone, Debug)]
struct PriceGauges {
    epsilon: GaugeVec,
    delta: GaugeVec,
    rho: GaugeVec,
    windows: GaugeVec,
}

impl PriceGauges {
    fn new(
        registry: &Registry,
        what: &str,
        help: &str,
        labels: &[&str],
    ) -> Result<Self, prometheus::Error> {
        let [epsilon, delta, rho, windows] = ["epsilon", "delta", "rho", "windows"]
            .map(|part| Opts::new(format!("privacy_{part}_{what}"), help));
        Ok(PriceGauges {
            epsilon: registered(registry, GaugeVec::new(epsilon, labels)?)?,
            delta: registered(registry, GaugeVec::new(delta, labels)?)?,
            rho: registered(registry, GaugeVec::new(rho, labels)?)?,
            windows: registered(registry, GaugeVec::new(windows, labels)?)?,
        })
    }

    fn set_price(&self, price: Price, labels: &[&str]) {
        match price {
            Price::Pure(epsilon) => set_labelled(&self.epsilon, labels, epsilon.to_f64()),
            Price::Approximate { epsilon, delta } => {
                set_labelled(&self.epsilon, labels, epsilon.to_f64());
                set_labelled(&self.delta, labels, delta.to_f64());
            }
            Price::Concentrated(rho) => set_labelled(&self.rho, labels, rho.to_f64()),
            #[expect(clippy::cast_precision_loss, reason = "a figure to show")]
            Price::Slots(count) => set_labelled(&self.windows, labels, count as f64),
        }
    }
}

fn set_labelled(gauges: &GaugeVec, labels: &[&str], value: f64) {
    gauges.with_label_values(labels).set(value);
}

fn registered_labelled(
    registry: &Registry,
    name: &str,
    help: &str,
    label: &str,
) -> Result<IntGaugeVec, prometheus::Error> {
    registered(registry, IntGaugeVec::new(Opts::new(name, help), &[label])?)
}

fn registered_counter(
    registry: &Registry,
    name: &str,
    help: &str,
) -> Result<IntCounter, prometheus::Error> {
    registered(registry, IntCounter::new(name, help)?)
}

fn registered_gauge(
    registry: &Registry,
    name: &str,
    help: &str,
) -> Result<IntGauge, prometheus::Error> {
    registered(registry, IntGauge::new(name, help)?)
}

/// Registers a metric whose labels say what is running.
fn register_build_info(
    registry: &Registry,
    detail: MetricsDetail,
    definition: &str,
    digest: &str,
) -> Result<(), prometheus::Error> {
    let info = Opts::new("build_info", "1; the labels say what is running")
        .const_label("version", env!("CARGO_PKG_VERSION"))
        .const_label("configuration", digest)
        .const_label("definition", definition)
        .const_label("detail", detail.name());
    registered(registry, IntGauge::with_opts(info)?)?.set(1);
    Ok(())
}

/// Registers a metric, which `registry` then shows.
fn registered<M: Collector + Clone + 'static>(
    registry: &Registry,
    metric: M,
) -> Result<M, prometheus::Error> {
    registry.register(Box::new(metric.clone()))?;
    Ok(metric)
}

impl OperatorMetrics {
    fn new(registry: &Registry) -> Result<Self, prometheus::Error> {
        let records = Opts::new("records_total", "records by outcome");
        let unread = Opts::new("unread_columns_total", UNREAD);
        let partials = Opts::new("partials_total", PARTIALS);
        let partial_bytes = Opts::new(
            "partial_bytes_total",
            "compressed bytes of partials that absorbers have sent",
        );
        let batches = IntCounter::new("batches_total", "messages read")?;
        let seconds_to_seal = Gauge::new(
            "seal_seconds",
            "seconds from closing to sealing the last window",
        )?;
        Ok(OperatorMetrics {
            records: registered(registry, IntCounterVec::new(records, &["fate"])?)?,
            unread: registered(registry, IntCounterVec::new(unread, &["column"])?)?,
            partials: registered(
                registry,
                IntCounterVec::new(partials, &["absorber", "fate"])?,
            )?,
            partial_bytes: registered(registry, IntCounterVec::new(partial_bytes, &["absorber"])?)?,
            read_here: registered(registry, IntGauge::new("partitions_read_here", READ_HERE)?)?,
            batches: registered(registry, batches)?,
            seconds_to_seal: registered(registry, seconds_to_seal)?,
            read_until: MomentGauge::new(
                registry,
                "read_until",
                "message timestamp of the last message read",
            )?,
        })
    }
}

impl Metrics {
    /// Registers every metric. `definition` names the privacy definition, `digest` is that of the privacy settings.
    ///
    /// # Errors
    ///
    /// If a metric cannot be registered, which would be a bug.
    pub fn new(
        detail: MetricsDetail,
        pipeline: &str,
        definition: &str,
        digest: &str,
    ) -> Result<Metrics, prometheus::Error> {
        let registry = Registry::new_custom(
            Some("bernstream".into()),
            Some([("pipeline".to_string(), pipeline.to_string())].into()),
        )?;
        register_build_info(&registry, detail, definition, digest)?;
        let operator = match detail {
            MetricsDetail::Safe => None,
            MetricsDetail::Operator => Some(OperatorMetrics::new(&registry)?),
        };
        let used = Gauge::new("privacy_budget_used_ratio", USED)?;
        let noise_scale = Opts::new("noise_scale", NOISE_SCALE);
        let to = &registry;
        Ok(Metrics {
            released: registered_counter(to, "windows_released_total", "windows paid for")?,
            withheld: registered_counter(to, "windows_withheld_total", WITHHELD)?,
            published: registered_counter(to, "synopses_published_total", PUBLISHED)?,
            closed_until: MomentGauge::new(to, "closed_until", CLOSED_UNTIL)?,
            next_release: MomentGauge::new(to, "next_release", NEXT_RELEASE)?,
            spent: PriceGauges::new(to, "spent", "spent in the newest charged block", &[])?,
            total: PriceGauges::new(to, "limit", "total of every block", &[])?,
            reserve: PriceGauges::new(to, "reserve", RESERVE, &[])?,
            price: PriceGauges::new(to, "price", PRICE, &["release"])?,
            lasts_until: MomentGauge::new(to, "privacy_budget_lasts_until", LASTS_UNTIL)?,
            newest_withheld: registered_labelled(
                to,
                "newest_window_withheld",
                NEWEST_WITHHELD,
                "reason",
            )?,
            used: registered(to, used)?,
            noise_scale: registered(to, GaugeVec::new(noise_scale, &["release"])?)?,
            ledger_entries: registered_gauge(to, "ledger_entries", "rows of the ledger")?,
            acting: registered_gauge(to, "acting", ACTING)?,
            witness_lost_claims: registered_gauge(to, "witness_lost_claims", LOST_CLAIMS)?,
            output_lost: registered_gauge(to, "output_synopses_lost", OUTPUT_LOST)?,
            ledger: registered_labelled(to, "ledger_info", LEDGER, "ledger")?,
            ready: registered_labelled(to, "ready", READY, "part")?,
            strays: registered_labelled(to, "stray_records", STRAYS, "topic")?,
            lost: registered_labelled(to, "records_lost", LOST, "topic")?,
            newest_schema: registered_labelled(
                to,
                "newest_schema_pinned",
                NEWEST_SCHEMA,
                "subject",
            )?,
            registry_answers: registered_labelled(
                to,
                "schema_registry_answers",
                REGISTRY_ANSWERS,
                "subject",
            )?,
            operator,
            registry,
        })
    }

    /// Shows what the newest charged block has spent of its total.
    pub fn show_budget(&self, spent: Price, total: Price) {
        self.spent.set_price(spent, &[]);
        self.total.set_price(total, &[]);
        self.used.set(spent.share_of(total));
    }

    /// Shows what is known before the first window: the name of the ledger, the total of a block, and its reserve.
    pub fn show_beginning(&self, ledger: &str, total: Price, limit: Price) {
        self.ledger.with_label_values(&[ledger]).set(1);
        self.show_budget(total.zero_of_kind(), total);
        self.show_strays(StrayCounts::default());
        self.show_lost(None);
        if let Some(reserve) = total
            .checked_sub(limit)
            .filter(|reserve| !reserve.is_zero())
        {
            self.reserve.set_price(reserve, &[]);
        }
    }

    /// Shows what the newest window costs for `release`: by the schedule alone, whether it was withheld or not.
    pub fn show_price(&self, release: &str, price: Price) {
        self.price.set_price(price, &[release]);
    }

    /// Shows how many records somebody else has written to the topics of the ledger.
    pub fn show_strays(&self, strays: StrayCounts) {
        let witness = i64::try_from(strays.witness).unwrap_or(i64::MAX);
        self.strays.with_label_values(&["witness"]).set(witness);
        let budget = i64::try_from(strays.budget).unwrap_or(i64::MAX);
        self.strays.with_label_values(&["budget"]).set(budget);
    }

    /// Shows whether a topic of the ledger has lost what it had accepted.
    pub fn show_lost(&self, lost: Option<LostTopic>) {
        let claims = i64::from(lost == Some(LostTopic::Claims));
        self.lost.with_label_values(&["witness"]).set(claims);
        let shares = i64::from(lost == Some(LostTopic::Shares));
        self.lost.with_label_values(&["budget"]).set(shares);
    }

    /// Shows whether the newest schema of `subject` is pinned; `None` where the registry does not say which it is.
    pub fn show_newest_schema(&self, subject: &str, is_pinned: Option<bool>) {
        self.registry_answers
            .with_label_values(&[subject])
            .set(i64::from(is_pinned.is_some()));
        if let Some(is_pinned) = is_pinned {
            self.newest_schema
                .with_label_values(&[subject])
                .set(i64::from(is_pinned));
        }
    }

    /// Shows whether the newest window was withheld, and why.
    pub fn show_withheld(&self, why: Option<WithheldReason>) {
        for reason in WithheldReason::ALL {
            self.newest_withheld
                .with_label_values(&[reason.name()])
                .set(i64::from(why == Some(reason)));
        }
    }

    /// The text that Prometheus scrapes.
    ///
    /// # Errors
    ///
    /// If the metrics cannot be encoded.
    pub fn render_text(&self) -> Result<String, prometheus::Error> {
        let mut text = Vec::new();
        TextEncoder::new().encode(&self.registry.gather(), &mut text)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bernstream_synopsis::calibrate::Epsilon;

    /// Every series with its type, labels and help text, as a scrape shows it once everything is known.
    fn interface(detail: MetricsDetail) -> String {
        let metrics = Metrics::new(detail, "p", "pure epsilon", "0").unwrap();
        let one = Epsilon::from_trillionths(1_000_000_000_000);
        let prices = [
            Price::Approximate {
                epsilon: one,
                delta: "0.5".parse().unwrap(),
            },
            Price::Slots(2),
        ];
        for price in prices
            .into_iter()
            .chain([Price::Concentrated("0.5".parse().unwrap())])
        {
            metrics.show_budget(price, price);
            metrics.reserve.set_price(price, &[]);
            metrics.show_price("r", price);
        }
        metrics.show_withheld(None);
        metrics.show_newest_schema("s", Some(true));
        metrics.show_beginning("l", prices[0], prices[0]);
        metrics.noise_scale.with_label_values(&["r"]).set(1.0);
        metrics.ready.with_label_values(&["input"]).set(1);
        let operator = metrics.operator.iter();
        let moments = [
            &metrics.closed_until,
            &metrics.next_release,
            &metrics.lasts_until,
        ];
        moments
            .into_iter()
            .chain(operator.clone().map(|operator| &operator.read_until))
            .for_each(|moment| {
                moment.set_time(Some(Timestamp::from_micros(0)));
            });
        operator.for_each(|operator| {
            operator.records.with_label_values(&["taken"]).inc();
            operator.unread.with_label_values(&["x"]).inc();
            operator.partials.with_label_values(&["a", "taken"]).inc();
            operator.partial_bytes.with_label_values(&["a"]).inc();
        });
        let text = metrics.render_text().unwrap();
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
        let safe = interface(MetricsDetail::Safe);
        assert_eq!(safe, SAFE.trim(), "{safe}");
        let operator = interface(MetricsDetail::Operator);
        let more: Vec<&str> = operator
            .lines()
            .filter(|line| !SAFE.contains(line))
            .collect();
        assert_eq!(more.join("\n"), OPERATOR.trim(), "{}", more.join("\n"));
    }

    #[test]
    fn a_moment_that_is_not_known_is_not_shown() {
        let metrics = Metrics::new(MetricsDetail::Safe, "p", "pure epsilon", "0").unwrap();
        let is_shown = || {
            metrics
                .render_text()
                .unwrap()
                .contains("next_release_timestamp_seconds")
        };
        assert!(!is_shown());
        metrics
            .next_release
            .set_time(Some(Timestamp::from_micros(0)));
        assert!(is_shown());
        metrics.next_release.set_time(None);
        assert!(!is_shown());
    }

    const SAFE: &str = r"
bernstream_acting{pipeline} gauge: 1 while this worker releases the windows, 0 while it follows another one that does
bernstream_build_info{configuration,definition,detail,version,pipeline} gauge: 1; the labels say what is running
bernstream_closed_until_timestamp_seconds{pipeline} gauge: end of the newest closed window
bernstream_ledger_entries{pipeline} gauge: rows of the ledger
bernstream_ledger_info{ledger,pipeline} gauge: 1; the label is the ledger in use, as in every synopsis
bernstream_newest_schema_pinned{subject,pipeline} gauge: 1 if the newest schema of the subject is pinned, 0 if records that are written with it are dropped, as the registry said last; absent without a registry
bernstream_newest_window_withheld{reason,pipeline} gauge: 1 if the newest window was withheld, for this reason: its budget is spent, or every release is over
bernstream_next_release_timestamp_seconds{pipeline} gauge: when the next window is due on the output; absent for files and after the last window
bernstream_noise_scale{release,pipeline} gauge: scale of the noise, in units of the synopsis
bernstream_output_synopses_lost{pipeline} gauge: the most published synopses that the output had lost at its end since this worker was started, and whose bytes were not kept any more
bernstream_privacy_budget_lasts_until_timestamp_seconds{pipeline} gauge: start of the first window of the newest block that leaves a release unpaid, or the end of the share of an input's total, if there is one
bernstream_privacy_budget_used_ratio{pipeline} gauge: spent share of the total in the newest charged block; of two components the larger
bernstream_privacy_delta_limit{pipeline} gauge: total of every block
bernstream_privacy_delta_price{release,pipeline} gauge: what the newest window costs for this release, a part of what its blocks spend; 0 once the release is over
bernstream_privacy_delta_reserve{pipeline} gauge: part of the total of every block that windows may not spend
bernstream_privacy_delta_spent{pipeline} gauge: spent in the newest charged block
bernstream_privacy_epsilon_limit{pipeline} gauge: total of every block
bernstream_privacy_epsilon_price{release,pipeline} gauge: what the newest window costs for this release, a part of what its blocks spend; 0 once the release is over
bernstream_privacy_epsilon_reserve{pipeline} gauge: part of the total of every block that windows may not spend
bernstream_privacy_epsilon_spent{pipeline} gauge: spent in the newest charged block
bernstream_privacy_rho_limit{pipeline} gauge: total of every block
bernstream_privacy_rho_price{release,pipeline} gauge: what the newest window costs for this release, a part of what its blocks spend; 0 once the release is over
bernstream_privacy_rho_reserve{pipeline} gauge: part of the total of every block that windows may not spend
bernstream_privacy_rho_spent{pipeline} gauge: spent in the newest charged block
bernstream_privacy_windows_limit{pipeline} gauge: total of every block
bernstream_privacy_windows_price{release,pipeline} gauge: what the newest window costs for this release, a part of what its blocks spend; 0 once the release is over
bernstream_privacy_windows_reserve{pipeline} gauge: part of the total of every block that windows may not spend
bernstream_privacy_windows_spent{pipeline} gauge: spent in the newest charged block
bernstream_ready{part,pipeline} gauge: 1 while the part works: the clock is not behind the brokers', the input is read, the witness agrees with the ledger, the output accepts what is due
bernstream_records_lost{topic,pipeline} gauge: 1 while a witness or budget topic ends before what this worker has read of it
bernstream_schema_registry_answers{subject,pipeline} gauge: 1 while the schema registry says which schema is the newest; absent without a registry
bernstream_stray_records{topic,pipeline} gauge: records of the witness and budget topics that were read and that no program of this kind has written: they count for nothing
bernstream_synopses_published_total{pipeline} counter: synopses that reached the output
bernstream_windows_released_total{pipeline} counter: windows paid for
bernstream_windows_withheld_total{pipeline} counter: windows withheld: their budget was spent, their share had ended, or every release was over
bernstream_witness_lost_claims{pipeline} gauge: 1 if the witness had lost claims since this worker was started, whose rows it claims again
";
    const OPERATOR: &str = r"
bernstream_batches_total{pipeline} counter: messages read
bernstream_partial_bytes_total{absorber,pipeline} counter: compressed bytes of partials that absorbers have sent
bernstream_partials_total{absorber,fate,pipeline} counter: partials that absorbers have sent: taken, broken, differing from another copy, without room (no_room), or taken and then refused, as they are none
bernstream_partitions_read_here{pipeline} gauge: partitions that the worker reads because no absorber has sent them in time; without [scale] 0, though it reads all of them
bernstream_read_until_timestamp_seconds{pipeline} gauge: message timestamp of the last message read
bernstream_records_total{fate,pipeline} counter: records by outcome
bernstream_seal_seconds{pipeline} gauge: seconds from closing to sealing the last window
bernstream_unread_columns_total{column,pipeline} counter: messages of Arrow, or batches of a file, that lack a needed column or have it with a type that it may not have
";
}
