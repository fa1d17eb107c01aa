//! The API for programs: synopses as JSON, and their values as rows of JSON or CSV.

use std::sync::Arc;

use axum::extract::{Query, State, rejection::QueryRejection};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use super::api_error::ApiError;
use super::key_rows;
use super::parameters::{QueryParameters, ResponseFormat};
use super::spending::SpendingResponse;
use super::state::ServerState;
use super::table::{ResponseTable, TableCell};
use crate::feed::CachedSynopsis;
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::description::Description;
use bernstream_synopsis::query;
use bernstream_synopsis::tables::{Questions, RangeSides, in_context};
use bernstream_synopsis::{Evaluator, Synopsis};

/// Rows in one response.
const MAX_ROWS: u64 = 20_000;
/// Points on each axis unless the request says otherwise, for one to three axes.
const DEFAULT_POINTS: [u32; 3] = [100, 50, 20];
/// Answer to those who ask counts by key for a function.
const BY_KEY: &str = "it holds counts by key, not a function of a point: ask /api/v1/keys for its rows, or /api/v1/history?row= for one key \
                      over windows";
/// Bytes of an expression.
const MAX_EXPRESSION: usize = 300;

type ApiRequest = Result<Query<QueryParameters>, QueryRejection>;
type ApiResult = Result<Response, ApiError>;

pub async fn list_synopses(State(state): State<ServerState>, request: ApiRequest) -> ApiResult {
    let parameters = as_json(request)?;
    let synopses = state.feed.synopses();
    let matching = synopses
        .iter()
        .map(|cached| cached.synopsis.description())
        .filter(|about| parameters.matches(about));
    serialized_response(&matching.map(SynopsisSummary::of).collect::<Vec<_>>())
}

pub async fn latest_synopsis(State(state): State<ServerState>, request: ApiRequest) -> ApiResult {
    Ok(json_response(
        as_json(request)?
            .selected_synopsis(&state.feed)?
            .json
            .clone(),
    ))
}

pub async fn answer_curve(State(state): State<ServerState>, request: ApiRequest) -> ApiResult {
    let parameters = parse_parameters(request)?;
    if parameters.at.is_some() {
        return Err(ApiError::bad_request(
            "a curve covers the whole domain; for the values at one point use /api/v1/history?at=",
        ));
    }
    let cached = parameters.selected_synopsis(&state.feed)?;
    refuse_by_key(&cached.synopsis)?;
    let table =
        compute_blocking(&state, move || on_grid(&cached.synopsis, parameters.points)).await?;
    table_response(&table, parameters.format)
}

pub async fn answer_history(State(state): State<ServerState>, request: ApiRequest) -> ApiResult {
    let parameters = parse_parameters(request)?;
    let synopses = parameters.matching_synopses(&state.feed)?;
    if synopses
        .last()
        .is_some_and(|newest| key_rows::is_by_key(&newest.synopsis))
    {
        let wanted = parameters.key_rows();
        if parameters.at.is_some() {
            return Err(ApiError::bad_request(BY_KEY));
        }
        let table = compute_blocking(&state, move || key_rows::row_over_time(&synopses, &wanted));
        return table_response(&table.await?, parameters.format);
    }
    let point = parameters.parse_point()?;
    let table = compute_blocking(&state, move || over_time(&synopses, &point)).await?;
    table_response(&table, parameters.format)
}

pub async fn answer_keys(State(state): State<ServerState>, request: ApiRequest) -> ApiResult {
    let parameters = parse_parameters(request)?;
    let cached = parameters.selected_synopsis(&state.feed)?;
    let wanted = parameters.key_rows();
    let table = compute_blocking(&state, move || {
        key_rows::rows_of_window(&cached.synopsis, &wanted)
    });
    table_response(&table.await?, parameters.format)
}

pub async fn answer_caps(State(state): State<ServerState>, request: ApiRequest) -> ApiResult {
    let parameters = as_json(request)?;
    let cached = parameters.selected_synopsis(&state.feed)?;
    let reading = compute_blocking(&state, move || key_rows::caps_of_window(&cached.synopsis));
    serialized_response(&reading.await?)
}

pub async fn answer_query(State(state): State<ServerState>, request: ApiRequest) -> ApiResult {
    let parameters = as_json(request)?;
    let cached = parameters.selected_synopsis(&state.feed)?;
    refuse_by_key(&cached.synopsis)?;
    if parameters.range.is_some() || parameters.quantile.is_some() {
        let range = parameters
            .range
            .as_deref()
            .map(str::parse::<RangeSides>)
            .transpose();
        let ranges = range
            .map_err(|why| ApiError::bad_request(format!("range: {why}")))?
            .into_iter()
            .collect();
        let questions = Questions {
            ranges,
            quantiles: parameters.quantile.into_iter().collect(),
        };
        let answers = compute_blocking(&state, move || {
            let answers = cached.synopsis.answer_questions(&questions)?;
            Ok(in_context(&answers, cached.synopsis.description()))
        });
        return serialized_response(&answers.await?);
    }
    let function = match parameters.ask {
        Some(function) if function.len() <= MAX_EXPRESSION => function,
        Some(_) => {
            return Err(ApiError::bad_request(format!(
                "an expression has at most {MAX_EXPRESSION} bytes"
            )));
        }
        None => {
            return Err(ApiError::bad_request(
                "a query of moments needs 'ask', for example ask=exp(-x^2), and one of cells 'range' or 'quantile', for example \
                 range=10..20 or quantile=0.5",
            ));
        }
    };
    let answer = compute_blocking(&state, move || {
        let asked = query::Query::expression(&function, &cached.synopsis)?;
        let (answer, weights) = cached.synopsis.answer_and_weights(&asked)?;
        let mut found = answer.in_context(&function, cached.synopsis.description());
        // Who has other windows answers them by these: a sum of products each, and nothing to ask again.
        found["weights"] = weights.into();
        Ok(found)
    });
    serialized_response(&answer.await?)
}

pub async fn answer_spending(State(state): State<ServerState>, request: ApiRequest) -> ApiResult {
    let parameters = as_json(request)?;
    let part = parameters.spending_part()?;
    let synopses = state.feed.synopses();
    let about = synopses.iter().map(|cached| cached.synopsis.description());
    serialized_response(
        &SpendingResponse::from_descriptions(about.filter(|about| parameters.matches(about)))
            .filtered_by(part),
    )
}

fn parse_parameters(request: ApiRequest) -> Result<QueryParameters, ApiError> {
    request
        .map(|Query(parameters)| parameters)
        .map_err(|error| ApiError::bad_request(error.body_text()))
}

/// The parameters of an answer that is no table.
fn as_json(request: ApiRequest) -> Result<QueryParameters, ApiError> {
    let parameters = parse_parameters(request)?;
    match parameters.format {
        Some(ResponseFormat::Csv) => Err(ApiError::bad_request(
            "this is not available as CSV: leave format=csv out, or ask /api/v1/curve, /api/v1/history or /api/v1/keys, which have rows",
        )),
        _ => Ok(parameters),
    }
}

/// A response of JSON text.
fn json_response(text: String) -> Response {
    ([(CONTENT_TYPE, "application/json")], text).into_response()
}

fn serialized_response(value: &impl Serialize) -> ApiResult {
    let text = serde_json::to_string(value);
    text.map(json_response)
        .map_err(|error| ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))
}

fn table_response(table: &ResponseTable, format: Option<ResponseFormat>) -> ApiResult {
    match format.unwrap_or_default() {
        ResponseFormat::Json => serialized_response(table),
        ResponseFormat::Csv => Ok(table.csv_response()),
    }
}

/// Computes outside the event loop, a few requests at a time.
async fn compute_blocking<T: Send + 'static>(
    state: &ServerState,
    work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    let permit = state.computations.clone().acquire_owned().await;
    let permit = permit
        .map_err(|_| ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "the server is stopping"))?;
    // The permit is held until the work is done, even if the client has disconnected.
    let computed = tokio::task::spawn_blocking(move || {
        let done = work();
        drop(permit);
        done
    });
    match computed.await {
        Ok(done) => done,
        Err(_) => Err(ApiError::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "this cannot be computed; please report it",
        )),
    }
}

#[derive(Serialize)]
struct SynopsisSummary<'a> {
    pipeline: &'a str,
    release: &'a str,
    /// Title of the release for people: its name where the configuration says nothing else.
    title: &'a str,
    key: Option<&'a str>,
    window: bernstream_synopsis::grid::Span,
    published: Timestamp,
    target: &'static str,
    sequence: u64,
}

impl<'a> SynopsisSummary<'a> {
    fn of(about: &'a Description) -> Self {
        SynopsisSummary {
            pipeline: &about.pipeline,
            release: &about.release,
            title: about
                .names
                .as_ref()
                .and_then(|names| names.title.as_deref())
                .unwrap_or(&about.release),
            key: about.key.as_deref(),
            window: about.window,
            published: about.published,
            target: about.target.name(),
            sequence: about.ledger.sequence,
        }
    }
}

/// The columns of the coordinates. An axis with the name of a value column gets the prefix `at.`.
fn axis_columns(about: &Description) -> impl Iterator<Item = String> {
    about.domain.iter().map(|axis| {
        if VALUES.contains(&axis.column.as_str()) {
            format!("at.{}", axis.column)
        } else {
            axis.column.clone()
        }
    })
}

const VALUES: [&str; 5] = ["value", "lower", "upper", "total_lower", "total_upper"];

/// The value, the ends of its simultaneous band, and those of noise and form together, where it is known what the form adds.
fn at_point(
    synopsis: &Synopsis,
    evaluator: &Evaluator,
    point: &[f64],
) -> Result<[TableCell; VALUES.len()], bernstream_synopsis::SynopsisError> {
    let half = synopsis.half_width(point)?;
    let [lower, upper] = evaluator.interval(point, half)?.map(TableCell::Number);
    let total = synopsis
        .form_error()
        .map(|form| evaluator.interval(point, half + form))
        .transpose()?;
    let [total_lower, total_upper] = total.map_or([const { TableCell::Unknown }; 2], |ends| {
        ends.map(TableCell::Number)
    });
    Ok([
        TableCell::Number(evaluator.evaluate(point)?),
        lower,
        upper,
        total_lower,
        total_upper,
    ])
}

/// Refuses to read counts by key as a function.
fn refuse_by_key(synopsis: &Synopsis) -> Result<(), ApiError> {
    match key_rows::is_by_key(synopsis) {
        true => Err(ApiError::bad_request(BY_KEY)),
        false => Ok(()),
    }
}

fn on_grid(synopsis: &Synopsis, points: Option<u32>) -> Result<ResponseTable, ApiError> {
    let about = synopsis.description();
    let evaluator = synopsis.evaluator(about.order)?;
    let points = points
        .or(DEFAULT_POINTS.get(about.domain.len() - 1).copied())
        .unwrap_or(2);
    let axes_in_all = u32::try_from(about.domain.len()).unwrap_or(u32::MAX);
    if points < 2
        || u64::from(points)
            .checked_pow(axes_in_all)
            .is_none_or(|rows| rows > MAX_ROWS)
    {
        return Err(ApiError::bad_request(format!(
            "points must be at least 2 for each axis, and give at most {MAX_ROWS} rows in all"
        )));
    }
    let mut rows = Vec::new();
    for point in about.even_points(points) {
        let values = at_point(synopsis, &evaluator, &point)?;
        rows.push(
            point
                .into_iter()
                .map(TableCell::Number)
                .chain(values)
                .collect(),
        );
    }
    Ok(ResponseTable {
        columns: axis_columns(about)
            .chain(VALUES.map(str::to_owned))
            .collect(),
        rows,
    })
}

/// The times of a window, and its values at a point.
fn window_row(
    synopsis: &Synopsis,
    point: &[f64],
) -> Result<Vec<TableCell>, bernstream_synopsis::SynopsisError> {
    let about = synopsis.description();
    let values = at_point(synopsis, &synopsis.evaluator(about.order)?, point)?;
    // Windows that were published late, all at once, stand where they ended.
    let times = [about.window.end, about.window.start, about.published]
        .map(|time| TableCell::Text(time.to_string()));
    Ok(times.into_iter().chain(values).collect())
}

/// Fails only if the newest synopsis has no value there: older ones may have had another domain.
fn over_time(synopses: &[Arc<CachedSynopsis>], point: &[f64]) -> Result<ResponseTable, ApiError> {
    let mut rows: Vec<Result<Vec<TableCell>, bernstream_synopsis::SynopsisError>> = synopses
        .iter()
        .map(|cached| window_row(&cached.synopsis, point))
        .collect();
    if let Some(Err(error)) = rows.pop_if(|newest| newest.is_err()) {
        return Err(error.into());
    }
    let columns = ["time", "window_start", "published"]
        .into_iter()
        .chain(VALUES)
        .map(str::to_owned)
        .collect();
    Ok(ResponseTable {
        columns,
        rows: rows.into_iter().flatten().collect(),
    })
}
