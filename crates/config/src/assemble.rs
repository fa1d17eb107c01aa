//! From the file to the settings: every section, then the rules between sections, with all faults at once.

use std::time::Duration;

use crate::file::{File, known_keys};
use crate::read::releases::{ROOT, privacy_and_releases};
use crate::read::scale::Around;
use crate::read::{
    format, input, ledger, output, registry, sampled, scale, schedule, serve, windowing,
};
use crate::recorded::Recorded;
use crate::settings::{Input, Period, Release, Settings, Unit, WindowKind};
use crate::text::{Checked, Document, Spanned, values};
use crate::{canonical, validate};
use bernstream_kafka::source::record::{Declared, Format};
use bernstream_ledger::Params;
use bernstream_release::source::Columns;
use bernstream_release::window::{Cap, Rules};
use bernstream_synopsis::grid::{Blocks, Grid};
use bernstream_worker::metrics::Detail;

/// Where the ledger of a file is; `None` if the file does not say.
pub fn ledger(text: &str, name: &str) -> Option<Params> {
    let (mut document, file) = Document::read::<File>(text, name, known_keys());
    ledger::ledger(&mut document, file.ok()?.ledger?)
        .ok()
        .map(|ledger| ledger.params)
}

/// All settings, with the choices of `"auto"` that are `recorded`. Every section is read before the first `?`, so that the
/// faults of all are told.
pub fn settings(
    document: &mut Document<'_>,
    mut file: File,
    recorded: Option<&Recorded>,
) -> Checked<Settings> {
    let form_place = format::place(&file);
    let registry = registry::registry(document, &mut file);
    let form = format::format(document, &mut file);
    let time_format = format::of_columns(&file, form.as_ref().ok());
    let declared = form
        .as_ref()
        .map_or_else(|_| Declared::default(), |(_, declared)| *declared);
    let pipeline = document.required(&ROOT, "pipeline", file.pipeline, values::name);
    // Known even if the section has faults, so that the keys of [windows] are checked in any case.
    let from_kafka = file.input.as_ref().and_then(|input| {
        let input = input.get_ref();
        (input.kafka.is_some() != input.files.is_some()).then_some(input.kafka.is_some())
    });
    let to_kafka = file
        .output
        .as_ref()
        .is_some_and(|output| output.get_ref().kafka.is_some());
    let input = document
        .required(&ROOT, "input", file.input, Ok)
        .and_then(|t| input::input(document, t, form));
    let windows = document.required(&ROOT, "windows", file.windows, Ok);
    let windows = windows.and_then(|t| schedule::schedule(document, t, from_kafka));
    let grid = windows.as_ref().ok().map(|schedule| schedule.grid);
    let shared_place = file
        .privacy
        .as_ref()
        .and_then(|privacy| privacy.get_ref().budget.as_ref())
        .map(Spanned::span);
    let (mut privacy, mut drafts) = privacy_and_releases(
        document,
        file.privacy,
        file.release,
        grid,
        to_kafka,
        recorded,
    );
    let default_broker = input.as_ref().ok().map(|input| input.from.broker());
    let output = document.required(&ROOT, "output", file.output, Ok);
    let output = output.and_then(|t| output::output(document, t, default_broker));
    let ledger = document
        .required(&ROOT, "ledger", file.ledger, Ok)
        .and_then(|t| ledger::ledger(document, t));
    let serve = file.serve.map(|t| serve::serve(document, t)).transpose();

    let mut overs = Ok(Vec::new());
    if let (Ok(schedule), Ok(drafts)) = (&windows, &drafts) {
        let all: Vec<_> = drafts
            .iter()
            .map(|draft| windowing::windowing(document, draft, schedule))
            .collect();
        overs = all.into_iter().collect();
    }
    if let (Ok(privacy), Ok(drafts)) = (&privacy, &mut drafts) {
        let kinds = overs
            .iter()
            .flatten()
            .copied()
            .chain(std::iter::repeat(WindowKind::Tumbling));
        drafts
            .iter_mut()
            .zip(kinds)
            .for_each(|(draft, over)| draft.charge_own_rho(privacy, over));
        validate::can_pay_once(document, privacy, drafts);
    }
    if let (Ok(privacy), Ok(drafts)) = (&mut privacy, &mut drafts)
        && sampled::settle(document, drafts, privacy).is_ok()
    {
        for draft in drafts.iter() {
            validate::can_be_drawn(document, privacy, draft);
        }
        if document.reported().is_none() {
            let _reported = validate::holds(document, privacy, drafts, grid);
        }
    }
    if let (Ok(input), Ok(schedule)) = (&input, &windows) {
        validate::delays_past_the_slack(document, &input.from, schedule);
        validate::grace_exceeds_the_producer_delay(document, input, schedule);
    }
    if let (Ok(output), Ok(drafts)) = (&output, &drafts) {
        for draft in drafts {
            validate::fits_a_message(document, output, draft);
        }
    }
    if let (Ok(input), Ok(drafts)) = (&input, &drafts) {
        validate::fits_a_row(document, input, drafts.len());
    }
    if let (Ok(input), Ok(output)) = (&input, &output) {
        validate::reads_no_output(document, input, output);
    }
    if let (Some(place), Ok(privacy), Ok(input), Ok(output)) =
        (shared_place, &privacy, &input, &output)
    {
        validate::shares_through_a_topic(document, place, privacy, input, output);
    }
    let log = match (&ledger, &output) {
        (Ok(ledger), Ok(output)) => ledger.log(document, &output.to),
        _ => Ok(None),
    };
    if let (Ok(input), Ok(ledger), Ok(Some(log))) = (&input, &ledger, &log) {
        validate::logs_no_input(document, input, log, ledger.log_place());
    }

    let scale = match (file.scale, &pipeline, &input, &windows, &privacy) {
        (Some(table), Ok(pipeline), Ok(input), Ok(schedule), Ok(privacy)) => {
            let publish_delay = schedule
                .delay
                .as_ref()
                .map_or(Duration::ZERO, |delay| *delay.get_ref());
            let has_users = matches!(privacy.unit, Unit::User { .. });
            let is_for_operators =
                matches!(&serve, Ok(Some(serve)) if serve.detail == Detail::Operator);
            let pipeline = pipeline.get_ref();
            let around = Around {
                pipeline,
                input: &input.from,
                publish_delay,
                has_users,
                is_for_operators,
            };
            Some(scale::scale(document, table, around))
        }
        _ => None,
    };

    let pipeline = pipeline?.into_inner();
    let input = input?;
    let schedule = windows?;
    let privacy = privacy?;
    let drafts = drafts?;
    let output = output?;
    let ledger = ledger?;
    let serve = serve?;
    let cap = match privacy.unit {
        Unit::Record => None,
        Unit::User {
            per,
            max_records_per_window: records,
            ..
        } => {
            let period = match per {
                Period::Every(length) => {
                    Grid::new(schedule.grid.origin(), length).map(Blocks::from)
                }
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
    let places: Vec<_> = drafts.iter().map(|draft| draft.payment.span()).collect();
    let mut releases: Vec<Release> = drafts
        .into_iter()
        .zip(overs?)
        .map(|(draft, over)| draft.finish(over))
        .collect();
    validate::share_the_slot(privacy.total, &mut releases);
    let mut values: Vec<String> = Vec::new();
    for column in releases.iter().flat_map(|release| &release.columns) {
        if !values.contains(column) {
            values.push(column.clone());
        }
    }
    let key_type = declared.key;
    let unit_type = declared.unit;
    let columns = Columns {
        time: input.time,
        time_format,
        key,
        key_type,
        unit,
        unit_type,
        values,
    };
    if let (Input::Kafka(kafka), Some(place)) = (&input.from, form_place)
        && let Format::Records { form, declared } = &kafka.format
    {
        format::fields_can_be_there(document, place, (form, declared), &columns)?;
    }
    let mut settings = Settings {
        pipeline,
        columns,
        producer_delay: input.producer_delay,
        registry: registry?,
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
        standby: ledger.standby,
        ledger: ledger.params,
        ledger_log: log?,
        scale: scale.transpose()?,
        serve: serve.as_ref().map(|serve| serve.listen),
        dashboard: serve.as_ref().and_then(|serve| serve.dashboard),
        hosts: serve
            .as_ref()
            .map(|serve| serve.hosts.clone())
            .unwrap_or_default(),
        detail: serve.map_or(Detail::Safe, |serve| serve.detail),
        normalised: String::new(),
    };
    validate::can_go_on(document, &settings, &places)?;
    settings.normalised = canonical::json(&settings);
    Ok(settings)
}
