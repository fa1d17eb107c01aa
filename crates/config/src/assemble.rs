//! From the file to the settings: every section, then the rules between sections, with all faults at once.

use std::ops::Range;
use std::time::Duration;

use crate::file::{ConfigFile, known_keys};
use crate::read::draft::ReleaseDraft;
use crate::read::input::InputSettings;
use crate::read::ledger::LedgerSettings;
use crate::read::output::{OutputSettings, publishes_to_kafka};
use crate::read::releases::{
    DeclaredInput, PrivateReleases, ROOT, WrittenReleases, privacy_and_releases,
};
use crate::read::scale::ScaleContext;
use crate::read::schedule::Schedule;
use crate::read::serve::ServeSettings;
use crate::read::{
    format, input, ledger, output, registry, sampled, scale, schedule, serve, windowing,
};
use crate::recorded::RecordedSettings;
use crate::settings::{
    InputParams, Period, PrivacySettings, PrivacyUnit, ReleaseSettings, WindowKind, WorkerSettings,
};
use crate::text::{Checked, Document, Field, Spanned, values};
use crate::{canonical, file, validate};
use bernstream_kafka::ledger::log;
use bernstream_kafka::source::record::{DeclaredTypes, TimeFormat, TopicFormat};
use bernstream_kafka::source::registry::SchemaRegistry;
use bernstream_ledger::LedgerParams;
use bernstream_release::source::Columns;
use bernstream_release::window::{Cap, WindowRules};
use bernstream_synopsis::grid::{Blocks, SpanGrid};
use bernstream_worker::metrics::MetricsDetail;
use bernstream_worker::scale as scale_out;

/// The place of the ledger of a file; `None` if the file does not say.
pub fn ledger_of_file(text: &str, name: &str) -> Option<LedgerParams> {
    let (mut document, file) = Document::read::<ConfigFile>(text, name, known_keys());
    let ledger = ledger::read_ledger(&mut document, file.ok()?.ledger?).ok()?;
    Some(ledger.params)
}

/// All settings, with the choices of `"auto"` that are `recorded`. Every section is read and every rule is checked before the first
/// `?`, so that the faults of all are told.
pub fn assembled_settings(
    document: &mut Document<'_>,
    file: ConfigFile,
    recorded: Option<&RecordedSettings>,
) -> Checked<WorkerSettings> {
    let mut sections = Sections::read(document, file, recorded);
    let window_kinds = sections.window_kinds(document);
    sections.settle_prices(document, &window_kinds);
    sections.check_rules(document);
    let log = sections.ledger_log(document);
    let scale = sections.read_scale(document);
    sections.into_settings(document, window_kinds, log, scale)
}

/// The sections of a file, each as read or with the proof that it has a fault.
struct Sections {
    pipeline: Checked<Spanned<String>>,
    /// The place where the file says how messages are written.
    form_place: Option<Range<usize>>,
    registry: Checked<Option<SchemaRegistry>>,
    time_format: Option<TimeFormat>,
    declared: DeclaredTypes,
    input: Checked<InputSettings>,
    windows: Checked<Schedule>,
    /// The place of a shared budget.
    shared_place: Option<Range<usize>>,
    privacy: Checked<PrivacySettings>,
    drafts: Checked<Vec<ReleaseDraft>>,
    output: Checked<OutputSettings>,
    ledger: Checked<LedgerSettings>,
    serve: Checked<Option<ServeSettings>>,
    scale: Field<file::ScaleTable>,
}

impl Sections {
    fn read(
        document: &mut Document<'_>,
        mut file: ConfigFile,
        recorded: Option<&RecordedSettings>,
    ) -> Self {
        let form_place = format::format_place(&file);
        let registry = registry::read_registry(document, &mut file);
        let form = format::read_format(document, &mut file);
        let time_format = format::column_time_format(&file, &form);
        let declared = match &form {
            Ok(form) => form.declared,
            Err(_) => DeclaredTypes::default(),
        };
        let pipeline = document.required(&ROOT, "pipeline", file.pipeline.take(), values::name);
        let from_kafka = reads_from_kafka(&file);
        let to_kafka = publishes_to_kafka(&file);
        let input = document
            .required(&ROOT, "input", file.input, Ok)
            .and_then(|table| input::read_input(document, table, form));
        let windows = document
            .required(&ROOT, "windows", file.windows, Ok)
            .and_then(|table| schedule::read_schedule(document, table, from_kafka));
        let shared_place = file
            .privacy
            .as_ref()
            .and_then(|privacy| privacy.get_ref().budget.as_ref())
            .map(Spanned::span);
        let written = WrittenReleases {
            privacy: file.privacy,
            releases: file.release,
            grid: windows.as_ref().ok().map(|schedule| schedule.grid),
            to_kafka,
            input: declared_input(&pipeline, &input),
        };
        let PrivateReleases { privacy, drafts } = privacy_and_releases(document, written, recorded);
        let default_broker = input.as_ref().ok().map(|input| input.from.broker());
        let output = document
            .required(&ROOT, "output", file.output, Ok)
            .and_then(|table| output::read_output(document, table, default_broker));
        let ledger = document
            .required(&ROOT, "ledger", file.ledger, Ok)
            .and_then(|table| ledger::read_ledger(document, table));
        let serve = match file.serve {
            Some(table) => serve::read_serve(document, table).map(Some),
            None => Ok(None),
        };
        Sections {
            pipeline,
            form_place,
            registry,
            time_format,
            declared,
            input,
            windows,
            shared_place,
            privacy,
            drafts,
            output,
            ledger,
            serve,
            scale: file.scale,
        }
    }

    /// The windows of each release; none where they depend on a section with faults.
    fn window_kinds(&self, document: &mut Document<'_>) -> Checked<Vec<WindowKind>> {
        let Ok(schedule) = &self.windows else {
            return Ok(Vec::new());
        };
        let Ok(drafts) = &self.drafts else {
            return Ok(Vec::new());
        };
        let mut kinds = Vec::new();
        for draft in drafts {
            kinds.push(windowing::read_windowing(document, draft, schedule));
        }
        kinds.into_iter().collect()
    }

    /// Works out what the noise of each release costs, and checks that it can be paid for and drawn.
    fn settle_prices(
        &mut self,
        document: &mut Document<'_>,
        window_kinds: &Checked<Vec<WindowKind>>,
    ) {
        let Ok(privacy) = &mut self.privacy else {
            return;
        };
        let Ok(drafts) = &mut self.drafts else {
            return;
        };
        let mut kinds = window_kinds.iter().flatten();
        for draft in drafts.iter_mut() {
            let kind = kinds.next().copied().unwrap_or(WindowKind::Tumbling);
            draft.charge_own_rho(privacy, kind);
        }
        validate::can_pay_once(document, privacy, drafts);
        if sampled::apply_sampled_sensitivity(document, drafts, privacy).is_err() {
            return;
        }
        for draft in drafts.iter() {
            validate::can_be_drawn(document, privacy, draft);
        }
        if let Ok(input) = &self.input
            && let Some(key) = &input.key
            && let Some(found) = &key.found
        {
            validate::check_key_search(document, found, privacy, drafts);
        }
        if document.reported().is_none() {
            let grid = self.windows.as_ref().ok().map(|schedule| schedule.grid);
            let _reported = validate::composition_holds(document, privacy, drafts, grid);
        }
    }

    /// Checks the rules between sections, each where these are read.
    fn check_rules(&self, document: &mut Document<'_>) {
        if let Ok(input) = &self.input
            && let Ok(schedule) = &self.windows
        {
            validate::delays_past_the_slack(document, &input.from, schedule);
            validate::grace_exceeds_the_producer_delay(document, input, schedule);
        }
        if let Ok(output) = &self.output
            && let Ok(drafts) = &self.drafts
        {
            let key = self
                .input
                .as_ref()
                .ok()
                .and_then(|input| input.key.as_ref());
            let key_columns = key.map_or(0, |key| key.columns.len());
            for draft in drafts {
                validate::fits_a_message(document, output, draft, key_columns);
            }
        }
        let Ok(input) = &self.input else {
            return;
        };
        if let Ok(drafts) = &self.drafts {
            let with_one_a_key = drafts
                .iter()
                .filter(|draft| draft.function.get_ref().keyed_counts().is_none());
            validate::fits_a_row(document, input, with_one_a_key.count());
        }
        let Ok(output) = &self.output else {
            return;
        };
        validate::reads_no_output(document, input, output);
        if let Some(place) = &self.shared_place
            && let Ok(privacy) = &self.privacy
        {
            validate::shares_through_a_topic(document, place.clone(), privacy, input, output);
        }
    }

    /// The log of the ledger, beside the witness.
    fn ledger_log(&self, document: &mut Document<'_>) -> Checked<Option<log::KafkaLogParams>> {
        let Ok(ledger) = &self.ledger else {
            return Ok(None);
        };
        let Ok(output) = &self.output else {
            return Ok(None);
        };
        let log = ledger.log_params(document, &output.to);
        if let Ok(Some(log)) = &log
            && let Ok(input) = &self.input
        {
            validate::logs_no_input(document, input, log, ledger.log_place());
        }
        log
    }

    /// `[scale]`, where the sections that it follows from are read.
    fn read_scale(
        &mut self,
        document: &mut Document<'_>,
    ) -> Checked<Option<scale_out::ScaleParams>> {
        if let Some(table) = self.scale.take()
            && let Ok(pipeline) = &self.pipeline
            && let Ok(input) = &self.input
            && let Ok(schedule) = &self.windows
            && let Ok(privacy) = &self.privacy
        {
            let delay = schedule.delay.as_ref().map(Spanned::get_ref);
            let around = ScaleContext {
                pipeline: pipeline.get_ref(),
                input: &input.from,
                publish_delay: delay.copied().unwrap_or(Duration::ZERO),
                has_users: matches!(privacy.unit, PrivacyUnit::User { .. }),
                is_for_operators: matches!(&self.serve, Ok(Some(serve)) if serve.detail == MetricsDetail::Operator),
            };
            return scale::read_scale(document, table, around).map(Some);
        }
        Ok(None)
    }

    fn into_settings(
        self,
        document: &mut Document<'_>,
        window_kinds: Checked<Vec<WindowKind>>,
        log: Checked<Option<log::KafkaLogParams>>,
        scale: Checked<Option<scale_out::ScaleParams>>,
    ) -> Checked<WorkerSettings> {
        let pipeline = self.pipeline?.into_inner();
        let input = self.input?;
        let schedule = self.windows?;
        let privacy = self.privacy?;
        let drafts = self.drafts?;
        let output = self.output?;
        let ledger = self.ledger?;
        let serve = self.serve?;
        let places: Vec<_> = drafts.iter().map(|draft| draft.payment.span()).collect();
        let mut releases = Vec::new();
        for (draft, kind) in drafts.into_iter().zip(window_kinds?) {
            releases.push(draft.into_release(kind));
        }
        validate::share_the_slot(privacy.total, &mut releases);
        let has_listed_keys = input.key.as_ref().is_some_and(|key| key.found.is_none());
        let key = input.key.unwrap_or_default();
        let found = key
            .found
            .map(|found| found.into_inner().for_unit(&privacy.unit));
        let columns = Columns {
            time: input.time,
            time_format: self.time_format,
            key: key.columns,
            key_types: self.declared.key,
            unit: user_column(&privacy.unit),
            unit_type: self.declared.unit,
            values: value_columns(&releases),
        };
        if let InputParams::Kafka(kafka) = &input.from
            && let Some(place) = self.form_place
            && let TopicFormat::Records { form, declared } = &kafka.format
        {
            format::fields_can_be_there(document, place, form, declared, &columns)?;
        }
        let cap = user_cap(&privacy.unit, schedule.grid);
        let mut settings = WorkerSettings {
            pipeline,
            columns,
            producer_delay: input.producer_delay,
            registry: self.registry?,
            input: input.from,
            blocks: cap.as_ref().map_or(schedule.grid.into(), |cap| cap.period),
            windows: WindowRules {
                grid: schedule.grid,
                end: schedule.end,
                allowed_lateness: schedule.allowed_lateness,
                max_future_skew: schedule.max_future_skew,
                keys: has_listed_keys.then_some(key.values),
                other: key.other,
                longest_key: found.map(|found| found.longest as usize),
                cap,
            },
            found_keys: found,
            privacy,
            releases,
            publish_delay: schedule.delay.map_or(Duration::ZERO, Spanned::into_inner),
            output: output.to,
            standby: ledger.standby,
            ledger: ledger.params,
            ledger_log: log?,
            scale: scale?,
            serve: serve.as_ref().map(|serve| serve.listen),
            dashboard: serve.as_ref().and_then(|serve| serve.dashboard),
            hosts: serve
                .as_ref()
                .map(|serve| serve.hosts.clone())
                .unwrap_or_default(),
            detail: serve.map_or(MetricsDetail::Safe, |serve| serve.detail),
            normalised: String::new(),
        };
        validate::sums_can_be_drawn(document, &settings, &places)?;
        settings.normalised = canonical::canonical_json(&settings);
        Ok(settings)
    }
}

/// The sections that functions follow from; `None` if one has a fault.
fn declared_input<'a>(
    pipeline: &'a Checked<Spanned<String>>,
    input: &'a Checked<InputSettings>,
) -> Option<DeclaredInput<'a>> {
    let pipeline = pipeline.as_ref().ok()?.get_ref();
    let key = input.as_ref().ok()?.key.as_ref();
    Some(DeclaredInput { pipeline, key })
}

/// Returns whether the input is a topic; `None` if the file does not say.
///
/// Known even if the section has faults, so that the keys of `[windows]` are checked in any case.
fn reads_from_kafka(file: &ConfigFile) -> Option<bool> {
    let input = file.input.as_ref()?.get_ref();
    let is_kafka = input.kafka.is_some();
    (is_kafka != input.files.is_some()).then_some(is_kafka)
}

fn user_column(unit: &PrivacyUnit) -> Option<String> {
    match unit {
        PrivacyUnit::Record => None,
        PrivacyUnit::User { column, .. } => Some(column.clone()),
    }
}

fn user_cap(unit: &PrivacyUnit, windows: SpanGrid) -> Option<Cap> {
    let PrivacyUnit::User {
        per,
        max_records_per_window,
        ..
    } = unit
    else {
        return None;
    };
    let period: Blocks = match per {
        Period::Every(length) => SpanGrid::new(windows.origin(), *length)?.into(),
        Period::Ever => Blocks::Forever,
    };
    Some(Cap {
        period,
        // Nothing keeps records then.
        records: max_records_per_window.unwrap_or(0),
    })
}

/// The columns of all releases, each once.
fn value_columns(releases: &[ReleaseSettings]) -> Vec<String> {
    let mut columns: Vec<String> = Vec::new();
    for column in releases.iter().flat_map(|release| &release.columns) {
        if !columns.contains(column) {
            columns.push(column.clone());
        }
    }
    columns
}
