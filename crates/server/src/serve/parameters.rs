//! The parameters of a request, and the synopses that they select.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::http::StatusCode;
use serde::Deserialize;

use super::api_error::ApiError;
use super::key_rows::KeyRowRequest;
use crate::feed::{CachedSynopsis, Feed, SynopsisSeries};
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::description::Description;
use bernstream_synopsis::terminal_text::escape_unprintable;

/// Number of releases and keys that an error lists.
const MAX_LISTED: usize = 20;

/// The query string of a request. An empty value counts as absent: that is how a form sends it.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueryParameters {
    pipeline: Option<String>,
    release: Option<String>,
    key: Option<String>,
    window: Option<String>,
    pub points: Option<u32>,
    pub at: Option<String>,
    pub ask: Option<String>,
    pub range: Option<String>,
    pub quantile: Option<f64>,
    pub format: Option<ResponseFormat>,
    /// Part of the spending, or the number of a table by key.
    by: Option<String>,
    /// Key of a table by key.
    row: Option<String>,
    /// Columns of the keys of a table by key.
    margin: Option<String>,
    top: Option<u32>,
}

/// Selects by what it is told where the budget went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpendingPart {
    Release,
    Day,
    Block,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ResponseFormat {
    #[default]
    Json,
    Csv,
}

fn non_empty(text: &Option<String>) -> Option<&str> {
    text.as_deref().filter(|text| !text.is_empty())
}

impl QueryParameters {
    pub fn matches(&self, about: &Description) -> bool {
        non_empty(&self.pipeline).is_none_or(|pipeline| about.pipeline == pipeline)
            && non_empty(&self.release).is_none_or(|release| about.release == release)
            && non_empty(&self.key).is_none_or(|key| about.key.as_deref() == Some(key))
    }

    /// The synopses of the one release and key that match, at least one, the newest window last.
    ///
    /// # Errors
    ///
    /// If nothing matches, or several releases or keys do.
    pub fn matching_synopses(&self, feed: &Feed) -> Result<Vec<Arc<CachedSynopsis>>, ApiError> {
        let mut synopses = feed.synopses();
        let known = series_of(&synopses);
        synopses.retain(|cached| self.matches(cached.synopsis.description()));
        let found = series_of(&synopses);
        match found.len() {
            0 if known.is_empty() => Err(ApiError::new(
                StatusCode::NOT_FOUND,
                "there is no synopsis yet",
            )),
            0 => Err(ApiError::new(
                StatusCode::NOT_FOUND,
                format!("no synopsis matches; there are {}", list_series(&known)),
            )),
            1 => Ok(synopses),
            _ => Err(ApiError::bad_request(format!(
                "several releases or keys match; choose one with release= and key= (and pipeline=): {}",
                list_series(&found)
            ))),
        }
    }

    /// The synopsis of the window that the request names, or the newest.
    ///
    /// # Errors
    ///
    /// If nothing matches, several releases or keys do, or `window` is not a time or no window of the cache starts then.
    pub fn selected_synopsis(&self, feed: &Feed) -> Result<Arc<CachedSynopsis>, ApiError> {
        let mut synopses = self.matching_synopses(feed)?;
        if let Some(window) = non_empty(&self.window) {
            let start = Timestamp::try_from(window.to_owned())
                .map_err(|why| ApiError::bad_request(format!("window: {why}")))?;
            // Overlapping windows are told apart by their newest pane.
            let is_pane = synopses
                .iter()
                .any(|cached| newest_pane(cached.synopsis.description()) == Some(start));
            synopses.retain(|cached| {
                let about = cached.synopsis.description();
                if is_pane {
                    newest_pane(about) == Some(start)
                } else {
                    about.window.start == start
                }
            });
        }
        synopses.pop().ok_or_else(|| {
            ApiError::new(
                StatusCode::NOT_FOUND,
                "no cached window starts then; see /api/v1/synopses",
            )
        })
    }

    /// Part of the spending that `by` names; all of it if there is none.
    ///
    /// # Errors
    ///
    /// If there is no such part.
    pub fn spending_part(&self) -> Result<Option<SpendingPart>, ApiError> {
        match non_empty(&self.by) {
            None => Ok(None),
            Some("release") => Ok(Some(SpendingPart::Release)),
            Some("day") => Ok(Some(SpendingPart::Day)),
            Some("block") => Ok(Some(SpendingPart::Block)),
            Some(other) => Err(ApiError::bad_request(format!(
                "by={other}: spending is told by release, day or block"
            ))),
        }
    }

    /// Rows of a table by key that are asked for.
    pub fn key_rows(&self) -> KeyRowRequest {
        KeyRowRequest {
            top: self.top,
            by: non_empty(&self.by).map(str::to_owned),
            row: non_empty(&self.row).map(str::to_owned),
            margin: non_empty(&self.margin).map(str::to_owned),
        }
    }

    /// # Errors
    ///
    /// If `at` is missing or is not a list of numbers.
    pub fn parse_point(&self) -> Result<Vec<f64>, ApiError> {
        let missing =
            "the parameter 'at' is missing: one number for each axis, for example at=15 or at=15,3";
        let at = non_empty(&self.at).ok_or_else(|| ApiError::bad_request(missing))?;
        let mut point = Vec::new();
        for part in at.split(',') {
            let Ok(number) = part.trim().parse::<f64>() else {
                let why = format!("at: '{part}' is not a number");
                return Err(ApiError::bad_request(why));
            };
            point.push(number);
        }
        Ok(point)
    }
}

fn newest_pane(about: &Description) -> Option<Timestamp> {
    about.panes.map(|panes| panes.newest.start)
}

fn series_of(synopses: &[Arc<CachedSynopsis>]) -> BTreeSet<SynopsisSeries> {
    let descriptions = synopses.iter().map(|cached| cached.synopsis.description());
    descriptions.map(SynopsisSeries::of).collect()
}

/// The first of them, in words.
fn list_series(all: &BTreeSet<SynopsisSeries>) -> String {
    let mut names = Vec::new();
    for series in all.iter().take(MAX_LISTED) {
        let mut name = format!("{} of {}", series.release, series.pipeline);
        if let Some(key) = &series.key {
            name += &format!(", key '{}'", escape_unprintable(key));
        }
        names.push(name);
    }
    let mut list = names.join("; ");
    let more = all.len().saturating_sub(MAX_LISTED);
    if more > 0 {
        list += &format!("; and {more} more");
    }
    list
}
