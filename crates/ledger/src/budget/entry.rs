//! Records of pipelines in the topic of a budget: a line of JSON each.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use bernstream_synopsis::Fraction;
use bernstream_synopsis::TimeFormat;
use bernstream_synopsis::clock::{self, Timestamp, saturating_micros};
use bernstream_synopsis::grid::{Blocks, Span, SpanGrid};
use bernstream_synopsis::price::Price;

/// One record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[expect(clippy::large_enum_variant, reason = "one at a time is in memory")]
pub enum BudgetRecord {
    Share(BudgetEntry),
    End(ShareEnd),
}

/// A pipeline takes a share of every block from a time on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BudgetEntry {
    pub holder: ShareHolder,
    /// The pipeline's name, for people.
    pub pipeline: String,
    pub share: Fraction,
    /// The start of the first block that it holds a share of.
    pub from: Timestamp,
    pub of: BudgetTerms,
}

/// Holder of a share. One pipeline holds one after the other, numbered by their generation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShareHolder {
    /// The id of the pipeline's witness.
    pub owner: String,
    pub generation: u64,
}

/// A share ends: its pipeline never charges a block that starts at `from` or later.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShareEnd {
    pub holder: ShareHolder,
    pub from: Timestamp,
}

/// Budget that is shared. Losses of units, blocks or totals that differ do not add up, so all pipelines must say the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BudgetTerms {
    /// The id of the input topic.
    pub input: String,
    pub unit: Value,
    /// The event-time column.
    pub time: String,
    /// Format of times, where the configuration declares it: the same number in another unit lies in another block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_format: Option<TimeFormat>,
    /// Event times and users in the schemas of the input, for records that have one: a field with the same name may be another one
    /// there. Two agree where neither says of the same schema or field what the other does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fields: Option<Value>,
    pub blocks: BlockGrid,
    pub adjacency: Value,
    /// The whole total of a block.
    pub total: Price,
}

/// The blocks, in one form: of all origins that make the same blocks the first after 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum BlockGrid {
    Every {
        origin: Timestamp,
        /// In microseconds.
        length: u64,
    },
    Ever,
}

impl BudgetRecord {
    /// One line of JSON.
    pub fn encode(&self) -> String {
        json!(self).to_string()
    }

    pub fn decode(text: &[u8]) -> Option<Self> {
        serde_json::from_slice(text).ok()
    }

    /// Returns true if a record that cannot be decoded has the name of a share or of its end: another version may have written it.
    pub fn is_of_another_version(text: &[u8]) -> bool {
        let fields: Option<serde_json::Map<String, Value>> = serde_json::from_slice(text).ok();
        fields.is_some_and(|fields| {
            ["share", "end"]
                .iter()
                .any(|name| fields.contains_key(*name))
        })
    }
}

impl BudgetTerms {
    /// Difference between the two, in the words of the configuration; `None` if they are the same.
    pub fn difference(&self, other: &BudgetTerms) -> Option<String> {
        let what = if self.input != other.input {
            "it belongs to another input topic, or to one that was made anew since".to_owned()
        } else if self.unit != other.unit {
            difference_in_words("the unit of privacy", &self.unit, &other.unit)
        } else if self.time != other.time {
            difference_in_words("input.time", &self.time, &other.time)
        } else if self.time_format != other.time_format {
            let ours = time_format_words(self.time_format);
            let theirs = time_format_words(other.time_format);
            difference_in_words("input.time_format", &ours, &theirs)
        } else if !values_agree(self.fields.as_ref(), other.fields.as_ref()) {
            "its schemas say otherwise which field is the event time or the user: all pipelines must pin one schema with an id, and read \
             the same fields of a message"
                .to_owned()
        } else if self.blocks != other.blocks {
            difference_in_words("the blocks", &self.blocks, &other.blocks)
        } else if self.adjacency != other.adjacency {
            difference_in_words("privacy.adjacency", &self.adjacency, &other.adjacency)
        } else if self.total != other.total {
            difference_in_words("the whole total", &self.total, &other.total)
        } else {
            return None;
        };
        Some(what)
    }
}

fn difference_in_words(what: &str, ours: &impl fmt::Display, theirs: &impl fmt::Display) -> String {
    format!("{what} is {theirs} there, and {ours} here")
}

fn time_format_words(format: Option<TimeFormat>) -> String {
    match format {
        Some(format) => json!(format).to_string(),
        None => "not declared".to_owned(),
    }
}

/// Returns true if two values have nothing that they say differently; what only one of them has, it may have.
fn values_agree(one: Option<&Value>, other: Option<&Value>) -> bool {
    match (one, other) {
        (None, _) | (_, None) => true,
        (Some(Value::Object(one)), Some(Value::Object(other))) => one
            .iter()
            .all(|(name, value)| values_agree(Some(value), other.get(name))),
        (Some(one), Some(other)) => one == other,
    }
}

impl From<Blocks> for BlockGrid {
    fn from(blocks: Blocks) -> Self {
        match blocks {
            Blocks::Forever => BlockGrid::Ever,
            Blocks::Every(grid) => {
                let length = saturating_micros(grid.length());
                let origin =
                    Timestamp::from_micros(grid.origin().micros().rem_euclid(length.max(1)));
                BlockGrid::Every {
                    origin,
                    length: length.unsigned_abs(),
                }
            }
        }
    }
}

impl fmt::Display for BlockGrid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            BlockGrid::Ever => f.write_str("one for ever"),
            BlockGrid::Every { origin, length } => {
                let length = clock::format_duration(Duration::from_micros(length));
                write!(f, "one every {length}, as from {origin}")
            }
        }
    }
}

impl BlockGrid {
    /// Words for "from this time on", where there is more than one block.
    pub fn words_since(&self, time: Timestamp) -> String {
        match self {
            BlockGrid::Ever => String::new(),
            BlockGrid::Every { .. } => format!(" from {time} on"),
        }
    }

    /// The start of the block of `time`; `None` for a grid without a length.
    pub fn start_of(&self, time: Timestamp) -> Option<Timestamp> {
        match *self {
            BlockGrid::Ever => Some(Span::ALL.start),
            BlockGrid::Every { origin, length } => {
                SpanGrid::new(origin, Duration::from_micros(length))
                    .map(|grid| grid.span_of(time).start)
            }
        }
    }

    /// Returns true if a block starts at `time`.
    pub fn has_start(&self, time: Timestamp) -> bool {
        self.start_of(time) == Some(time)
    }
}
