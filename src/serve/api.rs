//! Synopses, and their numbers, for programs: JSON, and CSV where there are rows.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::{Query, State, rejection::QueryRejection};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::dashboard::Desk;
use super::table::{Cell, Table};
use crate::clock::Timestamp;
use crate::feed::{Feed, Kept};
use crate::synopsis::Synopsis;
use crate::synopsis::description::Description;
use crate::synopsis::query;

/// Rows of one answer.
const MOST_ROWS: u64 = 20_000;
/// Points an axis, for one to three axes.
const POINTS: [u32; 3] = [100, 50, 20];
/// Bytes of an expression.
const LONGEST: usize = 300;
/// What a refusal names at most.
const NAMED: usize = 20;

/// What a question can say.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    pipeline: Option<String>,
    release: Option<String>,
    key: Option<String>,
    window: Option<String>,
    points: Option<u32>,
    at: Option<String>,
    ask: Option<String>,
    format: Option<Format>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Format {
    #[default]
    Json,
    Csv,
}

/// Why a question is not answered.
#[derive(Debug)]
pub struct Refusal {
    status: StatusCode,
    why: String,
}

impl Refusal {
    pub fn new(status: StatusCode, why: impl Into<String>) -> Self {
        Refusal { status, why: why.into() }
    }

    fn wrong(why: impl Into<String>) -> Self {
        Refusal::new(StatusCode::BAD_REQUEST, why)
    }
}

impl From<crate::synopsis::Error> for Refusal {
    fn from(error: crate::synopsis::Error) -> Self {
        Refusal::wrong(error.to_string())
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        (self.status, text(json!({ "error": self.why }).to_string())).into_response()
    }
}

/// A JSON text as an answer.
fn text(json: String) -> Response {
    ([(CONTENT_TYPE, "application/json")], json).into_response()
}

fn written(value: &impl Serialize) -> Result<Response, Refusal> {
    let json = serde_json::to_string(value);
    json.map(text).map_err(|error| Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))
}

type Question = Result<Query<Asked>, QueryRejection>;
type Answer = Result<Response, Refusal>;

fn asked(question: Question) -> Result<Asked, Refusal> {
    question.map(|Query(asked)| asked).map_err(|wrong| Refusal::wrong(wrong.body_text()))
}

pub async fn list(State(desk): State<Desk>, question: Question) -> Answer {
    let asked = asked(question)?;
    let kept = desk.feed.kept();
    let matching = kept.iter().map(|kept| kept.synopsis.description()).filter(|about| asked.matches(about));
    written(&matching.map(Summary::of).collect::<Vec<_>>())
}

pub async fn latest(State(desk): State<Desk>, question: Question) -> Answer {
    Ok(text(asked(question)?.one(&desk.feed)?.json.clone()))
}

pub async fn curve(State(desk): State<Desk>, question: Question) -> Answer {
    let asked = asked(question)?;
    if asked.at.is_some() {
        return Err(Refusal::wrong("a curve has its points from end to end; what it is at one: /api/v1/history?at="));
    }
    let kept = asked.one(&desk.feed)?;
    let table = compute(&desk, move || on_grid(&kept.synopsis, asked.points)).await?;
    asked.format.unwrap_or_default().write(&table)
}

pub async fn history(State(desk): State<Desk>, question: Question) -> Answer {
    let asked = asked(question)?;
    let (kept, point) = (asked.all(&desk.feed)?, asked.point()?);
    let table = compute(&desk, move || over_time(&kept, &point)).await?;
    asked.format.unwrap_or_default().write(&table)
}

pub async fn query(State(desk): State<Desk>, question: Question) -> Answer {
    let asked = asked(question)?;
    let kept = asked.one(&desk.feed)?;
    let function = match asked.ask {
        Some(function) if function.len() <= LONGEST => function,
        Some(_) => return Err(Refusal::wrong(format!("an expression has at most {LONGEST} bytes"))),
        None => return Err(Refusal::wrong("ask for something, as in ask=exp(-x^2)")),
    };
    let answer = compute(&desk, move || {
        let answer = kept.synopsis.answer(&query::Query::expression(&function, &kept.synopsis)?)?;
        Ok(answer.in_context(&function, kept.synopsis.description()))
    });
    written(&answer.await?)
}

/// Computes beside the loop that serves, a few questions at a time.
async fn compute<T: Send + 'static>(
    desk: &Desk,
    work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    let failed = |_| Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "this cannot be computed; please report it");
    let turn = desk.work.clone().acquire_owned().await;
    let turn = turn.map_err(|_| Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "stopping"))?;
    // The turn is over when the work is, even where whoever asked has hung up.
    let work = move || {
        let done = work();
        drop(turn);
        done
    };
    tokio::task::spawn_blocking(work).await.map_err(failed)?
}

impl Format {
    fn write(self, table: &Table) -> Answer {
        match self {
            Format::Json => written(table),
            Format::Csv => Ok(table.csv()),
        }
    }
}

#[derive(Serialize)]
struct Summary<'a> {
    pipeline: &'a str,
    release: &'a str,
    key: Option<&'a str>,
    window: crate::window::grid::Span,
    published: Timestamp,
    target: &'static str,
    sequence: u64,
}

impl<'a> Summary<'a> {
    fn of(about: &'a Description) -> Self {
        Summary {
            pipeline: &about.pipeline,
            release: &about.release,
            key: about.key.as_deref(),
            window: about.window,
            published: about.published,
            target: about.target.name(),
            sequence: about.ledger.sequence,
        }
    }
}

/// What was given; an empty text is nothing, as a form sends it.
fn given(text: &Option<String>) -> Option<&str> {
    text.as_deref().filter(|text| !text.is_empty())
}

impl Asked {
    fn matches(&self, about: &Description) -> bool {
        given(&self.pipeline).is_none_or(|pipeline| about.pipeline == pipeline)
            && given(&self.release).is_none_or(|release| about.release == release)
            && given(&self.key).is_none_or(|key| about.key.as_deref() == Some(key))
    }

    /// Those of the one release and key that was asked for, the newest window last; never none.
    fn all(&self, feed: &Feed) -> Result<Vec<Arc<Kept>>, Refusal> {
        let mut kept = feed.kept();
        let groups = |kept: &[Arc<Kept>]| kept.iter().map(|kept| group(kept.synopsis.description())).collect();
        let there: BTreeSet<Group> = groups(&kept);
        kept.retain(|kept| self.matches(kept.synopsis.description()));
        let found: BTreeSet<Group> = groups(&kept);
        match found.len() {
            0 if there.is_empty() => Err(Refusal::new(StatusCode::NOT_FOUND, "there is no synopsis yet")),
            0 => Err(Refusal::new(StatusCode::NOT_FOUND, format!("there is none of this; there are {}", some(&there)))),
            1 => Ok(kept),
            _ => Err(Refusal::wrong(format!("say of which, with release= and key= (and pipeline=): {}", some(&found)))),
        }
    }

    /// The one of the window that was asked for, or the newest.
    fn one(&self, feed: &Feed) -> Result<Arc<Kept>, Refusal> {
        let mut kept = self.all(feed)?;
        if let Some(window) = given(&self.window) {
            let start =
                Timestamp::try_from(window.to_owned()).map_err(|why| Refusal::wrong(format!("window: {why}")))?;
            // Windows that overlap are told apart by their newest part.
            let newest = |about: &Description| about.panes.map(|panes| panes.newest.start);
            let is_newest = kept.iter().any(|kept| newest(kept.synopsis.description()) == Some(start));
            kept.retain(|kept| {
                let about = kept.synopsis.description();
                if is_newest { newest(about) == Some(start) } else { about.window.start == start }
            });
        }
        let none = || Refusal::new(StatusCode::NOT_FOUND, "no window that is kept starts then; see /api/v1/synopses");
        kept.pop().ok_or_else(none)
    }

    fn point(&self) -> Result<Vec<f64>, Refusal> {
        let at =
            given(&self.at).ok_or_else(|| Refusal::wrong("say where, one number an axis, as in at=15 or at=15,3"))?;
        let number = |part: &str| {
            let number = part.trim().parse::<f64>();
            number.map_err(|_| Refusal::wrong(format!("at: '{part}' is not a number")))
        };
        at.split(',').map(number).collect()
    }
}

/// Pipeline, release and key.
type Group = (String, String, Option<String>);

fn group(about: &Description) -> Group {
    (about.pipeline.clone(), about.release.clone(), about.key.clone())
}

/// The first of them, in words.
fn some(groups: &BTreeSet<Group>) -> String {
    let name = |(pipeline, release, key): &Group| {
        let key = key.as_ref().map(|key| format!(", key '{key}'")).unwrap_or_default();
        format!("{release} of {pipeline}{key}")
    };
    let names: Vec<String> = groups.iter().take(NAMED).map(name).collect();
    let more = groups.len().saturating_sub(NAMED);
    names.join("; ") + &if more > 0 { format!("; and {more} more") } else { String::new() }
}

/// The columns of an axis' coordinates; one that is called as a column of the values is marked.
fn axes(about: &Description) -> impl Iterator<Item = String> {
    let taken = |column: &str| ["value", "lower", "upper"].contains(&column);
    about
        .domain
        .iter()
        .map(move |axis| if taken(&axis.column) { format!("at.{}", axis.column) } else { axis.column.clone() })
}

const VALUES: [&str; 3] = ["value", "lower", "upper"];

fn on_grid(synopsis: &Synopsis, points: Option<u32>) -> Result<Table, Refusal> {
    let about = synopsis.description();
    let evaluator = synopsis.evaluator(about.order)?;
    let points = points.or(POINTS.get(about.domain.len() - 1).copied()).unwrap_or(2);
    let axes_in_all = u32::try_from(about.domain.len()).unwrap_or(u32::MAX);
    if points < 2 || u64::from(points).checked_pow(axes_in_all).is_none_or(|rows| rows > MOST_ROWS) {
        return Err(Refusal::wrong(format!("points: from 2 an axis, and no more than {MOST_ROWS} rows in all")));
    }
    let row = |point: Vec<f64>| {
        let (value, half) = (evaluator.evaluate(&point)?, synopsis.half_width(&point)?);
        Ok(point.into_iter().chain([value, value - half, value + half]).map(Cell::Number).collect())
    };
    let rows = about.even_points(points).into_iter().map(row).collect::<Result<_, crate::synopsis::Error>>()?;
    Ok(Table { columns: axes(about).chain(VALUES.map(str::to_owned)).collect(), rows })
}

/// An error only where the newest has no value there: older ones may have had another domain.
fn over_time(kept: &[Arc<Kept>], point: &[f64]) -> Result<Table, Refusal> {
    let row = |synopsis: &Synopsis| {
        let about = synopsis.description();
        let (value, half) = (synopsis.evaluate(point)?, synopsis.half_width(point)?);
        let times = [about.published, about.window.start].map(|time| Cell::Text(time.to_string()));
        Ok(times.into_iter().chain([value, value - half, value + half].map(Cell::Number)).collect())
    };
    let mut rows: Vec<Result<Vec<Cell>, crate::synopsis::Error>> =
        kept.iter().map(|kept| row(&kept.synopsis)).collect();
    if let Some(Err(error)) = rows.pop_if(|newest| newest.is_err()) {
        return Err(error.into());
    }
    let columns = ["time", "window_start"].into_iter().chain(VALUES).map(str::to_owned).collect();
    Ok(Table { columns, rows: rows.into_iter().flatten().collect() })
}
