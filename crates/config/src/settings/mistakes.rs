//! Settings that are allowed and surely a mistake, for warnings.

use crate::settings::{InputParams, Period, PrivacyUnit, ReleaseSettings, WorkerSettings};
use bernstream_kafka::source::record::TopicFormat;
use bernstream_noise::accountant::policy::PricePolicy;
use bernstream_synopsis::Basis;
use bernstream_synopsis::clock;
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::description::{Density, Smoothing, TargetDescription};
use bernstream_synopsis::price::Price;

/// Above this an epsilon promises next to nothing: a doubt of one in a thousand million becomes a near certainty at 20.7.
const MUCH: u64 = 20;

/// Suspicions in words: an epsilon that promises nothing, a lattice too coarse for its kernel, a budget that leaves most windows
/// unpaid, a delta that nothing needs, windows in the future, names of columns that are none. Everything is public.
pub fn suspected_mistakes(settings: &WorkerSettings, now: Timestamp) -> Vec<String> {
    let mut found = Vec::new();
    found.extend(large_epsilon(settings));
    found.extend(unpaid_windows(settings));
    found.extend(unused_delta(settings));
    found.extend(settings.releases.iter().filter_map(coarse_lattice));
    found.extend(future_windows(settings, now));
    for name in settings.columns.names() {
        found.extend(computed_column(settings, name));
    }
    found
}

fn unused_delta(settings: &WorkerSettings) -> Option<String> {
    let Price::Approximate { delta, .. } = settings.privacy.total else {
        return None;
    };
    let Price::Approximate {
        delta: of_window, ..
    } = settings.window_price()
    else {
        return None;
    };
    (of_window.quintillionths() == 0).then(|| {
        format!(
            "delta = {delta} is promised, and nothing needs it: every release has noise for a pure epsilon; remove privacy.delta, or write \
             composition = \"concentrated\", which pays for more windows with it"
        )
    })
}

/// A name that asks for something to be computed: a column may have it, but seldom does.
fn computed_column(settings: &WorkerSettings, name: &str) -> Option<String> {
    let is_call = name
        .split_once('(')
        .is_some_and(|(before, _)| before.ends_with(|c: char| c.is_alphanumeric()));
    let is_expression = is_call
        || [" + ", " - ", " * ", " / ", " > ", " < ", " = "]
            .iter()
            .any(|sign| name.contains(sign));
    let is_path = name.starts_with("$.") || name.contains("->") || name.contains("[*]");
    let is_arrow = matches!(&settings.input, InputParams::Kafka(kafka) if matches!(kafka.format, TopicFormat::Arrow));
    let what = if is_expression {
        "an expression, and is read as the name of a column: a column is released as it is, unless [release.expression] computes of it"
    } else if is_path {
        "a path of another language: in records of JSON, Avro and Protobuf write names with dots between them, such as after.amount"
    } else if is_arrow && name.contains('.') {
        "a path, and is read as the name of a column: what is within a column of Arrow is not read"
    } else {
        return None;
    };
    Some(format!("{name:?} looks like {what}"))
}

fn large_epsilon(settings: &WorkerSettings) -> Option<String> {
    let epsilon = match settings.privacy.total {
        Price::Pure(epsilon) | Price::Approximate { epsilon, .. } => epsilon,
        Price::Concentrated(_) | Price::Slots(_) => settings.privacy.implies?.epsilon,
    };
    (epsilon.to_f64() > MUCH as f64).then(|| {
        format!("epsilon = {epsilon} protects next to nothing: who sees the synopses can be all but sure of any record; a usual total is 1, and above 10 is rare")
    })
}

/// Windows that a worker waits for, whatever it reads.
fn future_windows(settings: &WorkerSettings, now: Timestamp) -> Option<String> {
    let grid = settings.windows.grid;
    let origin = grid.origin();
    match &settings.input {
        InputParams::Files(_) => {
            let end = settings.windows.end.filter(|end| *end > now)?;
            let all = grid.count_spans(origin, end);
            let later = all - grid.count_spans(origin, now);
            Some(format!(
                "{later} of {all} windows end in the future: each is published when it has ended, and the worker is waiting until {end}, the end \
                 of the last; correct windows.origin and windows.end if that is not meant"
            ))
        }
        InputParams::Kafka(_) if origin > now => Some(format!(
            "windows.origin lies {} in the future: the worker is waiting until {origin}, and earlier records are in no window",
            clock::format_duration(origin.since(now))
        )),
        InputParams::Kafka(_) => None,
    }
}

/// Windows that fixed prices leave unpaid: a policy says itself how far it goes.
fn unpaid_windows(settings: &WorkerSettings) -> Option<String> {
    if !settings
        .releases
        .iter()
        .all(ReleaseSettings::has_fixed_price)
    {
        return None;
    }
    let grid = settings.windows.grid;
    let all;
    let of;
    match &settings.privacy.unit {
        PrivacyUnit::User {
            per: Period::Every(length),
            ..
        } => {
            all = length.as_micros() / grid.length().as_micros().max(1);
            of = "of a period";
        }
        PrivacyUnit::User {
            per: Period::Ever, ..
        } => {
            all = u128::from(grid.count_spans(grid.origin(), settings.windows.end?));
            of = "of the grid";
        }
        PrivacyUnit::Record => return None,
    }
    let paid = PricePolicy::Fixed(settings.window_price()).paid_windows(
        settings.privacy.spendable_limit(),
        None,
        |_| true,
    )?;
    (u128::from(paid) * 2 < all).then(|| {
        format!(
            "the budget pays for {paid} of the {all} windows {of}, and all others are withheld: make windows longer, lower the price of \
             a window, or spread the total with a `horizon`"
        )
    })
}

fn coarse_lattice(release: &ReleaseSettings) -> Option<String> {
    let TargetDescription::Density(Density {
        kernel: Smoothing::Bandwidths(bandwidths),
        ..
    }) = &release.function.about
    else {
        return None;
    };
    let shape = release.shape();
    if shape.basis != Basis::Bernstein || release.auto.is_some() {
        return None;
    }
    let axes = release.axes.iter().zip(&release.columns);
    for ((axis, column), bandwidth) in axes.zip(bandwidths) {
        let step = (axis.max - axis.min) / f64::from(shape.degree);
        if *bandwidth < step / 2.0 {
            return Some(format!(
                "release {:?}: the bandwidth {bandwidth} of {column} is far below the step of the lattice, {step:.3}: a record between two points \
                 is hardly seen; raise the bandwidth or the degree, or write degree = \"auto\"",
                release.name
            ));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, changes: &[(&str, &str)]) -> Vec<String> {
        let text = changes.iter().fold(text.to_owned(), |text, (from, to)| {
            assert!(text.contains(from), "{from}");
            text.replace(from, to)
        });
        suspected_mistakes(
            &WorkerSettings::parse(&text, "test").unwrap(),
            Timestamp::parse("2026-01-05T00:00:00Z").unwrap(),
        )
    }

    #[test]
    fn only_what_is_surely_a_mistake_is_suspected() {
        let records = include_str!("../../../../config/files.toml");
        let users = include_str!("../../../../config/users.toml");
        assert_eq!((of(records, &[]), of(users, &[])), (vec![], vec![]));
        let large = of(records, &[("epsilon = 1.0", "epsilon = 25.0")]);
        assert!(
            large.len() == 1 && large[0].starts_with("epsilon = 25 protects next to nothing"),
            "{large:?}"
        );
        assert_eq!(
            of(records, &[("epsilon = 1.0", "epsilon = 20.0")]),
            Vec::<String>::new()
        );
        let unpaid = of(users, &[("epsilon = 0.04", "epsilon = 0.1")]);
        assert!(
            unpaid.len() == 1 && unpaid[0].contains("pays for 10 of the 24 windows of a period"),
            "{unpaid:?}"
        );
        let coarse = of(records, &[("bandwidths = [10]", "bandwidths = [2]")]);
        assert!(
            coarse.len() == 1 && coarse[0].contains("the bandwidth 2 of dep_delay is far below"),
            "{coarse:?}"
        );
        let unused = of(
            records,
            &[("epsilon = 1.0\n\n", "epsilon = 1.0\ndelta = 1e-9\n\n")],
        );
        assert!(
            unused.len() == 1 && unused[0].starts_with("delta = 0.000000001 is promised"),
            "{unused:?}"
        );
        for name in ["log(dep_delay)", "dep_delay / 60", "$.dep_delay"] {
            let computed = of(records, &[("\"dep_delay\"", &format!("{name:?}"))]);
            assert!(
                computed.len() == 1 && computed[0].starts_with(&format!("{name:?} looks like")),
                "{computed:?}"
            );
        }
        for name in ["delay (min)", "km/h", "a-b", "after.delay"] {
            assert_eq!(
                of(records, &[("\"dep_delay\"", &format!("{name:?}"))]),
                Vec::<String>::new()
            );
        }
        let open = of(
            records,
            &[("end = \"2014-01-01T05", "end = \"2026-01-06T05")],
        );
        assert!(
            open.len() == 1 && open[0].starts_with("2 of 4753 windows end in the future"),
            "{open:?}"
        );
        let ahead = of(users, &[("origin = \"2026-", "origin = \"2027-")]);
        assert!(
            ahead.len() == 1 && ahead[0].contains("the worker is waiting until 2027-"),
            "{ahead:?}"
        );
    }
}
