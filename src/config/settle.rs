//! From the file as written to the settings as used: the rules between sections, every fault at once.

use std::collections::HashSet;
use std::ops::Range;
use std::time::Duration;

use toml::Spanned;

use crate::accountant::policy::Policy;
use crate::config::auto::Terms;
use crate::config::choices::Protected;
use crate::config::document::{Document, Reported};
use crate::config::file::{self, Field, File};
use crate::config::over::{self, WindowKind};
use crate::config::release::{self, Stage};
use crate::config::sampled;
use crate::config::sections::{self, Schedule};
use crate::config::{
    Calibration, Function, Input, Output, Period, Privacy, Release, Settings, Unit, most_values, normalised,
    synopsis_bytes,
};
use crate::config::{composition, policy};
use crate::kafka::Broker;
use crate::mechanism::choice::Candidates;
use crate::mechanism::price::Price;
use crate::metrics::Detail;
use crate::source::Columns;
use crate::targets::Sensitivity;
use crate::window::grid::{Blocks, Grid};
use crate::window::{Cap, Rules};

/// The largest message that Kafka's producers and brokers take as they come (the smaller of their defaults).
const MESSAGE_LIMIT: usize = 1_000_000;

/// `[privacy]` and every release, settled on what the first says.
pub(super) fn ground(
    document: &mut Document<'_>,
    privacy: Field<file::Privacy>,
    releases: Field<file::Releases>,
    grid: Option<Grid>,
    to_kafka: bool,
) -> (Result<Privacy, Reported>, Result<Vec<Stage>, Reported>) {
    let privacy = document.required(&ROOT, "privacy", privacy, Ok).and_then(|t| sections::privacy(document, t));
    let terms = privacy.as_ref().map_err(|reported| *reported).map(|privacy| Terms {
        adjacency: privacy.adjacency,
        contributions: privacy.unit.contributions(),
        most_values: if to_kafka { most_values(MESSAGE_LIMIT) } else { usize::MAX },
        total: privacy.total,
    });
    let releases = document.required(&ROOT, "release", releases, Ok).and_then(|written| {
        let place = written.span();
        let mut several = match written.into_inner() {
            file::Releases::One(one) => vec![Spanned::new(place, *one)],
            file::Releases::Several(several) if several.is_empty() => {
                return Err(document.missing(place, "release"));
            }
            file::Releases::Several(several) => several,
        };
        let mut names = HashSet::new();
        for name in several.iter().filter_map(|release| release.get_ref().name.as_ref()) {
            if !names.insert(name.get_ref()) {
                document.fault(name.span(), "is the name of another release", "each has a name of its own");
            }
        }
        // Every release before the first `?`, so that the faults of all are recorded.
        let paying = policy::settle(document, &mut several, privacy.as_ref().map_err(|reported| *reported), grid);
        let each = several.into_iter().zip(paying);
        let stages: Vec<_> = each.map(|(one, paying)| release::release(document, one, terms, paying)).collect();
        stages.into_iter().collect()
    });
    (privacy, releases)
}

/// The document itself, which no table heading stands for.
const ROOT: Range<usize> = 0..0;

/// All settings. Every section is settled before the first `?`, so that the faults of all are recorded.
pub fn settings(document: &mut Document<'_>, file: File) -> Result<Settings, Reported> {
    let pipeline = document.required(&ROOT, "pipeline", file.pipeline, super::forms::name);
    // Known from what is there, be it right or wrong, so that the windows' keys are judged in any case.
    let from_kafka = file.input.as_ref().and_then(|input| {
        let input = input.get_ref();
        (input.kafka.is_some() != input.files.is_some()).then_some(input.kafka.is_some())
    });
    let to_kafka = file.output.as_ref().is_some_and(|output| output.get_ref().kafka.is_some());
    let input = document.required(&ROOT, "input", file.input, Ok).and_then(|t| sections::input(document, t));
    let windows = document.required(&ROOT, "windows", file.windows, Ok);
    let windows = windows.and_then(|t| sections::schedule(document, t, from_kafka));
    let grid = windows.as_ref().ok().map(|schedule| schedule.grid);
    let (mut privacy, mut stages) = ground(document, file.privacy, file.release, grid, to_kafka);
    let default_broker = input.as_ref().ok().map(|input| input.from.broker());
    let output = document.required(&ROOT, "output", file.output, Ok);
    let output = output.and_then(|t| sections::output(document, t, default_broker));
    let ledger = document.required(&ROOT, "ledger", file.ledger, Ok).and_then(|t| sections::ledger(document, t));
    let serve = file.serve.map(|t| sections::serve(document, t)).transpose();

    if let (Ok(privacy), Ok(stages)) = (&privacy, &stages) {
        can_pay_once(document, privacy, stages);
    }
    let mut overs = Ok(Vec::new());
    if let (Ok(schedule), Ok(stages)) = (&windows, &stages) {
        let all: Vec<_> = stages.iter().map(|stage| over::settle(document, stage, schedule)).collect();
        overs = all.into_iter().collect();
    }
    if let (Ok(privacy), Ok(stages)) = (&mut privacy, &mut stages)
        && sampled::settle(document, stages, privacy).is_ok()
    {
        for stage in stages.iter() {
            can_be_drawn(document, privacy, stage);
        }
        if document.reported().is_none() {
            let _reported = composition::holds(document, privacy, stages, grid);
        }
    }
    if let (Ok(input), Ok(schedule)) = (&input, &windows) {
        delays_past_the_slack(document, &input.from, schedule);
    }
    if let (Ok(output), Ok(stages)) = (&output, &stages) {
        for stage in stages {
            fits_a_message(document, output, stage);
        }
    }
    if let (Ok(input), Ok(output)) = (&input, &output) {
        reads_no_output(document, input, output);
    }

    let (pipeline, input, schedule, privacy) = (pipeline?.into_inner(), input?, windows?, privacy?);
    let (stages, output, ledger, serve) = (stages?, output?, ledger?, serve?);
    let cap = match privacy.unit {
        Unit::Record => None,
        Unit::User { per, max_records_per_window: records, .. } => {
            let period = match per {
                Period::Every(length) => Grid::new(schedule.grid.origin(), length).map(Blocks::from),
                Period::Ever => Some(Blocks::Forever),
            };
            period.map(|period| Cap { period, records })
        }
    };
    let unit = match &privacy.unit {
        Unit::Record => None,
        Unit::User { column, .. } => Some(column.clone()),
    };
    let (key, keys) = input.key.unzip();
    let places: Vec<_> = stages.iter().map(|stage| stage.payment.span()).collect();
    let mut releases: Vec<Release> =
        stages.into_iter().zip(overs?).map(|(stage, over)| Release::new(stage, over)).collect();
    composition::share_the_slot(privacy.total, &mut releases);
    let mut values: Vec<String> = Vec::new();
    for column in releases.iter().flat_map(|release| &release.columns) {
        if !values.contains(column) {
            values.push(column.clone());
        }
    }
    let mut settings = Settings {
        pipeline,
        columns: Columns { time: input.time, key, unit, values },
        input: input.from,
        blocks: cap.as_ref().map_or(schedule.grid.into(), |cap| cap.period),
        windows: Rules {
            grid: schedule.grid,
            end: schedule.end,
            allowed_lateness: schedule.allowed_lateness,
            max_future_skew: schedule.max_future_skew,
            keys,
            cap,
        },
        privacy,
        releases,
        publish_delay: schedule.delay.map_or(Duration::ZERO, Spanned::into_inner),
        output: output.to,
        ledger,
        serve: serve.as_ref().map(|serve| serve.listen),
        dashboard: serve.as_ref().and_then(|serve| serve.dashboard),
        detail: serve.map_or(Detail::Safe, |serve| serve.detail),
        normalised: String::new(),
    };
    can_go_on(document, &settings, &places)?;
    settings.normalised = normalised::json(&settings);
    Ok(settings)
}

impl Release {
    fn new(stage: Stage, over: WindowKind) -> Self {
        let payment = stage.payment.into_inner();
        let mut release = Release {
            name: stage.name,
            over,
            function: stage.function.into_inner(),
            columns: stage.columns,
            axes: stage.axes,
            label: stage.label,
            payment,
            policy: Policy::Fixed(payment.price()),
            order: stage.order,
            body: stage.body,
            auto: stage.auto,
            private_order: stage.private_order.map(Spanned::into_inner),
            smoothness: stage.smoothness,
            private_bandwidths: stage.private_bandwidths.map(Spanned::into_inner),
            calibration: stage.calibration.map_or(Calibration::Tight, Spanned::into_inner),
        };
        release.policy = stage.policy.unwrap_or(Policy::Fixed(release.window_price()));
        release
    }
}

/// Whether the total pays for a window of all releases; the fault stands where it is exceeded.
fn can_pay_once(document: &mut Document<'_>, privacy: &Privacy, stages: &[Stage]) {
    // All of them have one slot.
    if let Price::Slots(_) = privacy.limit() {
        return slots_are_left(document, privacy, stages);
    }
    let mut before = privacy.total.zero();
    for stage in stages {
        let Some(sum) = can_pay(document, privacy, before, stage) else { return };
        before = sum;
    }
}

fn slots_are_left(document: &mut Document<'_>, privacy: &Privacy, stages: &[Stage]) {
    if let (true, Some(stage)) = (privacy.limit().is_zero(), stages.first()) {
        let what = format!("{}, less what is kept back, is not one window", privacy.total);
        document.fault(stage.payment.span(), what, "lower privacy.reserve, or raise privacy.windows");
    }
}

fn can_pay(document: &mut Document<'_>, privacy: &Privacy, before: Price, release: &Stage) -> Option<Price> {
    let (total, limit) = (privacy.total, privacy.limit());
    let choices = [
        release.private_bandwidths.as_ref().map(|choice| choice.get_ref().price),
        release.private_order.as_ref().map(|choice| choice.get_ref().price),
    ];
    let own = release.payment.get_ref().price();
    let price = choices.into_iter().flatten().fold(own, Price::with_pure);
    let sum = before.checked_add(price);
    if sum.is_none_or(|sum| !sum.is_within(limit)) {
        let keys = match total {
            Price::Pure(_) => "privacy.epsilon",
            Price::Approximate { .. } => "privacy.epsilon and privacy.delta",
            Price::Concentrated(_) => "privacy.rho",
            Price::Slots(_) => "privacy.windows",
        };
        let parts = if price == own { String::new() } else { format!(" ({own}, and the rest for private choices)") };
        let others = if before.is_zero() { String::new() } else { format!(" and {before} for the releases before it") };
        let kept = if limit == total { String::new() } else { format!(", of which {limit} is not kept back") };
        let what = format!("the price of one window, {price}{parts}{others}, is more than {keys}, {total}{kept}");
        document.fault(release.payment.span(), what, "no window could ever be paid for");
        return None;
    }
    sum
}

/// Noise for this price exists, so that no window can fail for want of it.
fn can_be_drawn(document: &mut Document<'_>, privacy: &Privacy, release: &Stage) {
    let protected = Protected { adjacency: privacy.adjacency, contributions: privacy.unit.contributions() };
    if let Some(choice) = &release.private_bandwidths
        && let Err(error) = choice.get_ref().mechanism(protected)
    {
        document.fault(choice.span(), error.to_string(), "");
    }
    let fixed = || Candidates::new(release.function.get_ref().clone(), Vec::new());
    let functions =
        release.private_bandwidths.as_ref().map_or_else(fixed, |choice| choice.get_ref().candidates.clone());
    for function in functions.iter() {
        if sensitivity(document, function, privacy, release).is_err() {
            return;
        }
        let calibration = release.calibration.as_ref().map_or(Calibration::Tight, |written| *written.get_ref());
        let price = release.payment.get_ref().own();
        let noise = match calibration.mechanism(&*function.target, release.body.law(), privacy, price) {
            Ok(noise) => noise,
            Err(error) => {
                document.fault(release.payment.span(), error.to_string(), "");
                return;
            }
        };
        if let Some(choice) = &release.private_order
            && let Err(error) = choice.get_ref().mechanism(function, &noise, protected)
        {
            document.fault(choice.span(), error.to_string(), "");
            return;
        }
    }
}

/// Correlated noise for these prices exists.
fn can_go_on(document: &mut Document<'_>, settings: &Settings, places: &[Range<usize>]) -> Result<(), Reported> {
    for (release, place) in settings.releases.iter().zip(places) {
        settings.series(release).map_err(|error| document.fault(place.clone(), error.to_string(), ""))?;
    }
    Ok(())
}

/// What the noise of a function is made for. The papers' bound is at fault only where there is one of our own.
fn sensitivity(
    document: &mut Document<'_>,
    function: &Function,
    privacy: &Privacy,
    release: &Stage,
) -> Result<Sensitivity, Reported> {
    let ours = Calibration::Tight.sensitivity(&*function.target, release.body.law(), privacy);
    let ours = ours.map_err(|error| document.fault(release.function.span(), error.to_string(), ""))?;
    match &release.calibration {
        None => Ok(ours),
        Some(calibration) => calibration
            .get_ref()
            .sensitivity(&*function.target, release.body.law(), privacy)
            .map_err(|error| document.fault(calibration.span(), error.to_string(), "")),
    }
}

fn delays_past_the_slack(document: &mut Document<'_>, input: &Input, schedule: &Schedule) {
    if let (Input::Kafka(kafka), Some(delay)) = (input, &schedule.delay)
        && *delay.get_ref() <= kafka.clock_slack
    {
        let slack = crate::clock::show(kafka.clock_slack);
        let what = format!("must be longer than input.kafka.clock_slack, {slack}");
        document.fault(delay.span(), what, "where a window ends is known only that long after its cutoff");
    }
}

fn fits_a_message(document: &mut Document<'_>, output: &sections::Outlet, release: &Stage) {
    let bytes = synopsis_bytes(&release.function.get_ref().target.shape());
    if matches!(output.to, Output::Kafka { .. }) && bytes > MESSAGE_LIMIT {
        let what = format!("a synopsis would have {bytes} bytes, more than Kafka's default limit of {MESSAGE_LIMIT}");
        document.fault(release.size.clone(), what, "take a smaller degree or fewer points, or publish to files");
    }
}

/// What the worker writes must not come back as records.
fn reads_no_output(document: &mut Document<'_>, input: &sections::Inlet, output: &sections::Outlet) {
    match (&input.from, &output.to) {
        (Input::Kafka(from), Output::Kafka { sink, witness }) => {
            for (broker, topic, place) in
                [(&sink.broker, &sink.topic, &output.place), (&witness.broker, &witness.topic, &output.witness_place)]
            {
                if is_same(broker, &from.broker) && *topic == from.topic {
                    document.fault(place.clone(), "is the input topic", "choose another topic");
                }
            }
        }
        (Input::Files(from), Output::Files(to)) if from.path == to.path => {
            document.fault(output.place.clone(), "is the input path", "choose another folder");
        }
        _ => {}
    }
}

fn is_same(one: &Broker, other: &Broker) -> bool {
    one.servers == other.servers
}
