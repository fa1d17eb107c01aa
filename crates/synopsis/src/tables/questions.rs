//! Questions in words: ranges and quantiles, as the command line and the dashboard ask them.

use std::str::FromStr;

use serde::Serialize;
use serde_json::{Value, json};

use super::{ConfidenceInterval, Estimate, Tables};
use crate::Synopsis;
use crate::description::{CellLabel, Description, TargetDescription};
use crate::error::SynopsisError;
use crate::integral::Integral;

/// A range as it is written: `10..20`, one for each axis, separated by commas.
#[derive(Clone, Debug, PartialEq)]
pub struct RangeSides(pub Vec<[f64; 2]>);

impl FromStr for RangeSides {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut sides = Vec::new();
        for part in text.split(',') {
            let (low, high) = part
                .split_once("..")
                .ok_or_else(|| format!("'{part}' is not a range such as 10..20"))?;
            sides.push([parse_number(low)?, parse_number(high)?]);
        }
        Ok(RangeSides(sides))
    }
}

fn parse_number(text: &str) -> Result<f64, String> {
    text.trim()
        .parse()
        .map_err(|_| format!("'{text}' is not a number"))
}

/// Questions to tables of cells, and to other densities as far as their integral answers them.
#[derive(Clone, Debug, Default)]
pub struct Questions {
    pub ranges: Vec<RangeSides>,
    /// Parts of the records, from 0 to 1.
    pub quantiles: Vec<f64>,
}

/// One answer.
#[derive(Clone, Debug, Serialize)]
pub struct TableAnswer {
    /// Description of the answer in words.
    pub of: String,
    pub kind: AnswerKind,
    #[serde(flatten)]
    pub estimate: Estimate,
    /// Most that the form of a density adds to its interval, on either side: [`crate::integral::Integral::form_error`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub form_error: Option<f64>,
}

/// Kind of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerKind {
    Count,
    Share,
    Mean,
    Probability,
    Quantile,
}

impl Synopsis {
    /// The answers to all questions, at no cost in privacy.
    ///
    /// # Errors
    ///
    /// If the synopsis holds no tables of cells, nor a density that only ranges are asked of, or if a question does not fit its axes.
    pub fn answer_questions(
        &self,
        questions: &Questions,
    ) -> Result<Vec<TableAnswer>, SynopsisError> {
        let description = self.description();
        let mut answers = Vec::new();
        if matches!(description.target, TargetDescription::Density(_))
            && questions.quantiles.is_empty()
        {
            for sides in &questions.ranges {
                answers.push(self.count_in_range(&sides.0)?);
            }
            return Ok(answers);
        }
        let tables = self.tables()?;
        for sides in &questions.ranges {
            answers.extend(answers_in_range(&tables, description, &sides.0)?);
        }
        for part in &questions.quantiles {
            let column = description
                .domain
                .first()
                .map_or("", |axis| axis.column.as_str());
            let of = format!("{column} below which {} % of the records lie", 100.0 * part);
            answers.push(TableAnswer::without_form_error(
                of,
                AnswerKind::Quantile,
                tables.quantile(*part)?,
            ));
        }
        Ok(answers)
    }

    /// The integral of a density over a range.
    fn count_in_range(&self, sides: &[[f64; 2]]) -> Result<TableAnswer, SynopsisError> {
        if sides.len() != self.description().domain.len() {
            return Err(SynopsisError::EmptyRange);
        }
        let Integral {
            value,
            noise,
            form_error,
        } = self.integrate(sides)?;
        let interval = Some(ConfidenceInterval {
            lower: value - noise.half_width,
            upper: value + noise.half_width,
        });
        let of = format!("records with {}", range_in_words(self.description(), sides));
        Ok(TableAnswer {
            of,
            kind: AnswerKind::Count,
            estimate: Estimate { value, interval },
            form_error,
        })
    }
}

/// The answers and their synopsis, as `bernstream query --json` and the dashboard have them.
pub fn in_context(answers: &[TableAnswer], description: &Description) -> Value {
    let window = json!({ "start": description.window.start, "end": description.window.end });
    json!({
        "pipeline": description.pipeline, "release": description.release, "key": description.key, "window": window, "answers": answers,
    })
}

impl TableAnswer {
    fn without_form_error(of: String, kind: AnswerKind, estimate: Estimate) -> Self {
        TableAnswer {
            of,
            kind,
            estimate,
            form_error: None,
        }
    }
}

/// Describes a range in words.
fn range_in_words(description: &Description, sides: &[[f64; 2]]) -> String {
    let mut words = Vec::with_capacity(sides.len());
    for (axis, [low, high]) in description.domain.iter().zip(sides) {
        words.push(format!("{} from {low} to {high}", axis.column));
    }
    words.join(", ")
}

fn answers_in_range(
    tables: &Tables,
    description: &Description,
    sides: &[[f64; 2]],
) -> Result<Vec<TableAnswer>, SynopsisError> {
    let range = tables.range(sides)?;
    let mut answers = Vec::new();
    let of = format!("records with {}", range_in_words(description, sides));
    answers.push(TableAnswer::without_form_error(
        of,
        AnswerKind::Count,
        range.count(),
    ));
    let of = "their share of all records".to_owned();
    answers.push(TableAnswer::without_form_error(
        of,
        AnswerKind::Share,
        range.share(),
    ));
    match tables.label() {
        None => {}
        Some(CellLabel::Number { column, .. }) => {
            let of = format!("their mean {column}");
            answers.push(TableAnswer::without_form_error(
                of,
                AnswerKind::Mean,
                range.mean()?,
            ));
        }
        Some(CellLabel::Above { column, above }) => {
            let of = format!("the part of them with {column} above {above}");
            let part = range.probability(1)?;
            answers.push(TableAnswer::without_form_error(
                of,
                AnswerKind::Probability,
                part,
            ));
        }
        Some(CellLabel::Classes { column, values }) => {
            for (table, value) in values.iter().enumerate() {
                let of = format!("the part of them with {column} = {value}");
                let part = range.probability(table)?;
                answers.push(TableAnswer::without_form_error(
                    of,
                    AnswerKind::Probability,
                    part,
                ));
            }
        }
    }
    Ok(answers)
}
