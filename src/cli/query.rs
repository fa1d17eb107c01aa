//! `bernstream query`: the sum of a function over the records, from a synopsis of their moments.

use std::path::Path;

use crate::cli::cluster::Cluster;
use crate::cli::evaluate;
use crate::cli::failure::Failure;
use crate::cli::figures::{above_noise, ten_digits, two_digits};
use crate::cli::key_rows;
use crate::cli::newest::TopicArguments;
use crate::cli::print::{line, print};
use crate::cli::progress::show_during;
use bernstream_synopsis as synopsis;
use bernstream_synopsis::Synopsis;
use bernstream_synopsis::description::{Basis, Density, Description, Smoothing, TargetDescription};
use bernstream_synopsis::key_table::{CountedTable, KeyReading, KeyShares};
use bernstream_synopsis::query::{
    AnswerNoise, Approximation, CoefficientGrid, MOST_SMOOTHNESS, Query, QueryAnswer,
};
use bernstream_synopsis::tables;
use bernstream_synopsis::tables::{ConfidenceInterval, Estimate, Questions, RangeSides};

/// Estimates, from one synopsis, sums and means of functions over the records (moments), counts, shares, means and quantiles
/// (tables of cells), or counts of ranges (other densities); of counts by key it prints the table.
///
/// Of moments the question is a function: an expression such as 'exp(-x^2) * y'. Its variables are the columns of the synopsis, in natural units; a
/// name that is not a single word stands in double quotes. Allowed are + - * / ^, abs cos exp ln max min sin sqrt tanh, pi and
/// parentheses. Any number of queries costs no privacy.
#[derive(Clone, Debug, clap::Args)]
pub struct QueryArguments {
    /// A synopsis, as it is published or as JSON; `-` reads standard input. With --topic there is none, and the function comes first
    #[arg(allow_hyphen_values = true)]
    file: Option<String>,
    /// The function, of a synopsis of moments
    #[arg(allow_hyphen_values = true, value_name = "EXPRESSION", conflicts_with_all = ["range", "quantile", "topic"])]
    function: Option<String>,
    #[command(flatten)]
    topic: Option<TopicArguments>,
    #[command(flatten)]
    cluster: Option<Cluster>,
    /// Of a density or tables of cells, how many records lie in a range; of tables also which share of all they are, and what their
    /// label is: an interval for each axis, such as 10..20 or 10..20,5..7; can be repeated
    #[arg(long, value_name = "LOW..HIGH[,LOW..HIGH]", allow_hyphen_values = true)]
    range: Vec<RangeSides>,
    /// Of tables of cells on one axis, where this part of the records, from 0 to 1, lies below; can be repeated
    #[arg(long, value_name = "PART")]
    quantile: Vec<f64>,
    /// Of counts by key, the row of this key only; can be repeated
    #[arg(long, value_name = "KEY")]
    row: Vec<String>,
    /// Of counts by key, only the keys with the largest numbers, so many of them
    #[arg(long, value_name = "COUNT", conflicts_with = "row")]
    top: Option<usize>,
    /// The number that --top sorts by, such as users; by default the first
    #[arg(long, value_name = "NAME", requires = "top")]
    by: Option<String>,
    /// Of counts by key of several columns, the sums over all keys with the same part in this column; can be repeated
    #[arg(long, value_name = "COLUMN", conflicts_with_all = ["row", "top", "shares"])]
    margin: Vec<String>,
    /// Of counts by key, the share of each key in all; with a column, in the keys with the same part in it
    #[arg(long, value_name = "COLUMN", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    shares: Option<String>,
    /// Use the coefficients of Wang et al. (2013) for functions of this smoothness, instead of Chebyshev coefficients
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_SMOOTHNESS)))]
    jackson: Option<u32>,
    /// Compute the coefficients on a sparse grid of this level, instead of on all nodes
    #[arg(long, value_name = "LEVEL", value_parser = clap::value_parser!(u32).range(1..=14))]
    sparse: Option<u32>,
    /// Print the answer as JSON, and nothing else
    #[arg(long)]
    json: bool,
}

/// Prints the answer.
///
/// # Errors
///
/// If the synopsis cannot be read, if it cannot answer the query, or if standard output cannot be written.
pub fn run(arguments: &QueryArguments) -> Result<(), Failure> {
    // With a topic there is no file, and the function comes first.
    let has_topic = arguments.topic.is_some() && arguments.cluster.is_some();
    let function = match has_topic {
        true => &arguments.file,
        false => &arguments.function,
    };
    if !has_topic && arguments.file.is_none() {
        return Err(Failure::Configuration(
            "which synopsis? Name a file, or --topic with --brokers".to_owned(),
        ));
    }
    arguments.check_question(function.as_deref())?;
    let file = Path::new(arguments.file.as_deref().unwrap_or("-"));
    let synopsis = evaluate::newest_or_read(&arguments.topic, &arguments.cluster, file)?;
    if matches!(synopsis.description().basis, Basis::Keys(_)) {
        return print_keys(arguments, function.as_deref(), &synopsis);
    }
    let Some(function) = function else {
        if !arguments.asks_tables() {
            return Err(Failure::Configuration(
                "what is asked? Give a function of the columns, in quotes, or --range or --quantile".to_owned(),
            ));
        }
        let questions = Questions {
            ranges: arguments.range.clone(),
            quantiles: arguments.quantile.clone(),
        };
        let answers = synopsis.answer_questions(&questions).map_err(unanswered)?;
        return match arguments.json {
            true => line(format_args!(
                "{:#}",
                tables::in_context(&answers, synopsis.description())
            )),
            false => {
                let about = synopsis.description();
                print(
                    answers.iter().map(estimate_in_words).collect::<String>()
                        + &blur_in_words(about)
                        + &source_and_guarantee(about),
                )
            }
        };
    };
    let answer = show_during("computing the answer", || {
        answer_expression(&synopsis, function, arguments)
    })
    .map_err(unanswered)?;
    match arguments.json {
        true => line(format_args!(
            "{:#}",
            answer.in_context(function, synopsis.description())
        )),
        false => print(answer_in_words(&answer, function, synopsis.description())),
    }
}

/// Prints the rows of a table by key that are asked for, all of them by default.
fn print_keys(
    arguments: &QueryArguments,
    function: Option<&str>,
    synopsis: &Synopsis,
) -> Result<(), Failure> {
    if function.is_some() || !arguments.range.is_empty() || !arguments.quantile.is_empty() {
        return Err(Failure::Configuration(
            "it holds counts by key, which answer no functions, ranges or quantiles: leave them out, or ask with --row or --top".to_owned(),
        ));
    }
    let about = synopsis.description();
    let table = synopsis.key_table().map_err(unanswered)?;
    if !arguments.margin.is_empty() {
        return print_margin(arguments, &table, about);
    }
    let shares = arguments.shares_of(&table)?;
    let mut remark = "";
    let mut is_last_unclear = None;
    let rows = match arguments.top {
        Some(count) => {
            let reading = arguments.sorted_reading(&table)?;
            let top = table.top_keys(reading, count).unwrap_or_default();
            if top.is_last_unclear {
                remark = "\nthe last of these and the first that is left out cannot be told apart: noise may make either the larger\n";
            }
            is_last_unclear = Some(top.is_last_unclear);
            top.rows
        }
        None if arguments.row.is_empty() => table.rows(),
        None => {
            let mut rows = Vec::new();
            for key in &arguments.row {
                rows.push(table.row_of(key).map_err(unanswered)?);
            }
            rows
        }
    };
    if arguments.json {
        return line(format_args!(
            "{:#}",
            key_rows::rows_as_json(&table, &rows, shares.as_ref(), is_last_unclear, synopsis)
        ));
    }
    print(
        key_rows::rows_in_words(&table, &rows, shares.as_ref())
            + remark
            + &key_rows::found_in_words(&table)
            + &key_rows::caps_in_words(about)
            + &key_rows::told_caps_in_words(synopsis)
            + &source_and_guarantee(about),
    )
}

/// Prints the sums over the keys with the same parts.
fn print_margin(
    arguments: &QueryArguments,
    table: &CountedTable<'_>,
    about: &Description,
) -> Result<(), Failure> {
    let columns: Vec<&str> = arguments.margin.iter().map(String::as_str).collect();
    let margin = table.margin(&columns).map_err(unanswered)?;
    if arguments.json {
        return line(format_args!(
            "{:#}",
            key_rows::margin_as_json(&margin, about)
        ));
    }
    print(
        key_rows::margin_in_words(&margin)
            + &key_rows::margin_remarks(table, &margin)
            + &key_rows::caps_in_words(about)
            + &source_and_guarantee(about),
    )
}

impl QueryArguments {
    /// The shares that are asked for.
    fn shares_of<'a>(&self, table: &CountedTable<'a>) -> Result<Option<KeyShares<'a>>, Failure> {
        let Some(column) = self.shares.as_deref() else {
            return Ok(None);
        };
        let columns: &[&str] = if column.is_empty() { &[] } else { &[column] };
        table.shares(columns).map(Some).map_err(unanswered)
    }

    /// The reading that --top sorts by.
    fn sorted_reading(&self, table: &CountedTable<'_>) -> Result<KeyReading, Failure> {
        let readings = table.readings().iter();
        let names: Vec<String> = readings
            .map(|reading| reading.name().into_owned())
            .collect();
        let name = match &self.by {
            Some(name) => name.as_str(),
            None => names.first().map_or("", String::as_str),
        };
        key_rows::reading_of_name(table, name).ok_or_else(|| {
            Failure::Configuration(format!("--by {name}: the table has {}", names.join(", ")))
        })
    }

    fn asks_tables(&self) -> bool {
        !self.range.is_empty() || !self.quantile.is_empty()
    }

    /// Checks that ranges or quantiles are not asked for together with a function.
    fn check_question(&self, function: Option<&str>) -> Result<(), Failure> {
        match function {
            Some(function) if self.asks_tables() => Err(Failure::Configuration(format!(
                "--range and --quantile ask tables of cells and densities, '{function}' asks moments: give one of them"
            ))),
            _ => Ok(()),
        }
    }
}

fn answer_expression(
    synopsis: &Synopsis,
    function: &str,
    arguments: &QueryArguments,
) -> Result<QueryAnswer, synopsis::SynopsisError> {
    let approximation = arguments
        .jackson
        .map_or_else(Approximation::default, |smoothness| {
            Approximation::Jackson { smoothness }
        });
    let grid = arguments
        .sparse
        .map_or_else(CoefficientGrid::default, |level| CoefficientGrid::Sparse {
            level,
        });
    synopsis.answer(
        &Query::expression(function, synopsis)?
            .with_approximation(approximation)
            .with_grid(grid),
    )
}

/// A query that cannot be answered is for the caller to change.
fn unanswered(error: synopsis::SynopsisError) -> Failure {
    match error {
        synopsis::SynopsisError::Damaged(_) => Failure::Other(error.to_string()),
        _ => Failure::Configuration(error.to_string()),
    }
}

fn answer_in_words(answer: &QueryAnswer, function: &str, about: &Description) -> String {
    let QueryAnswer {
        sum,
        noise,
        truncation,
        mean,
    } = answer;
    let mut most = "at most";
    let mut misses = "proved";
    if !truncation.is_proved {
        most = "about";
        misses = "the largest on a fine grid; between its points, as at a pole, it may be larger";
    }
    let mut text = format!(
        "sum of {function}: {}\n{}",
        above_noise(*sum, noise.half_width),
        noise_in_words(noise)
    );
    text += &format!(
        "  truncation {most} {}: {} a record ({misses}), times the {} records released\n",
        two_digits(truncation.error),
        two_digits(truncation.per_record),
        truncation.records.round()
    );
    match mean {
        Some(mean) => {
            text += &format!(
                "mean: {}\n{}",
                above_noise(mean.value, mean.noise.half_width),
                noise_in_words(&mean.noise)
            );
            text += &format!(
                "  truncation {most} {}\n",
                two_digits(truncation.per_record)
            );
        }
        None => text += "mean: none, because the noise exceeds the number of records\n",
    }
    text + &source_and_guarantee(about)
}

/// An answer with its interval, in a line.
fn estimate_in_words(answer: &tables::TableAnswer) -> String {
    let tables::TableAnswer {
        of,
        estimate: Estimate { value, interval },
        form_error,
        ..
    } = answer;
    match interval {
        Some(ConfidenceInterval { lower, upper }) => {
            let half = (upper - lower) / 2.0;
            let [shown, from, to] = [*value, *lower, *upper].map(|x| above_noise(x, half));
            let text = format!("{of}: {shown}, from {from} to {to} with 95 % probability\n");
            let Some(form) = form_error else { return text };
            let [from, to] = [lower - form, upper + form].map(|x| above_noise(x, half));
            let form = two_digits(*form);
            text + &format!(
                "  what the form cannot follow is at most {form}, wherever the records are: with the noise from {from} to {to} in at least 9 \
                 of 10 windows\n"
            )
        }
        None => format!("{of}: unknown, the noise may be as large as the number of records\n"),
    }
}

/// Tells what intervals do not cover: of a density its bandwidth, of tables of cells their step, and what less of it would cost: a count sums up as many nodes as a range has, so that
/// half the step has noise of the root of 2 on each axis.
fn blur_in_words(about: &Description) -> String {
    if let TargetDescription::Density(Density {
        kernel: Smoothing::Bandwidths(bandwidths),
        ..
    }) = &about.target
        && !matches!(about.basis, Basis::Cosine { .. })
    {
        let widths = along_axes(about, bandwidths.iter().copied());
        return format!(
            "\nthe curve is smoothed: the ends of ranges are blurred by about a bandwidth, {widths}\n"
        );
    }
    let Basis::Tables(basis) = &about.basis else {
        return String::new();
    };
    let axes = about.domain.iter().zip(&basis.steps);
    let steps = axes.map(|(axis, steps)| (axis.max - axis.min) / f64::from(*steps));
    let steps = along_axes(about, steps);
    let times = 2.0_f64.powf(about.domain.len() as f64 / 2.0);
    let which = if about.domain.len() > 1 {
        " on every axis"
    } else {
        ""
    };
    let times = two_digits(times);
    format!(
        "\nintervals cover the noise, not the cells: ends of ranges and quantiles are blurred by about a step, {steps}\nhalf the \
         step{which} blurs half as far, with {times} times the noise on the count of a range, at the same price: `step` of [release]\n"
    )
}

/// A length along each axis.
fn along_axes(about: &Description, lengths: impl Iterator<Item = f64>) -> String {
    let mut words = Vec::new();
    for (axis, length) in about.domain.iter().zip(lengths) {
        words.push(format!("{} of {}", ten_digits(length), axis.column));
    }
    words.join(", ")
}

/// The window that an answer is of, and its guarantee.
fn source_and_guarantee(about: &Description) -> String {
    let source = evaluate::source_in_words(about);
    format!("\n{source}{}\n", about.privacy.in_words)
}

fn noise_in_words(noise: &AnswerNoise) -> String {
    let percent = noise.level * 100.0;
    let half_width = two_digits(noise.half_width);
    let deviation = two_digits(noise.deviation);
    format!(
        "  noise within {half_width} with {percent} % probability (standard deviation {deviation})\n"
    )
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use bernstream_synopsis::query;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        arguments: QueryArguments,
    }

    fn arguments(words: &[&str]) -> QueryArguments {
        Command::try_parse_from([&["query", "file"], words].concat())
            .unwrap()
            .arguments
    }

    #[test]
    fn an_answer_tells_noise_and_truncation_apart() {
        let synopsis = query::example();
        // A thousand records at 75: the synopsis holds four frequencies, and a cubic needs no more.
        let cubic = answer_expression(&synopsis, "(dep_delay / 75)^3", &arguments(&["x"])).unwrap();
        assert!(
            (cubic.sum - 1000.0).abs() < 1e-9 && (cubic.mean.unwrap().value - 1.0).abs() < 1e-9,
            "{cubic:?}"
        );
        assert!(
            cubic.truncation.per_record < 1e-3 && cubic.truncation.is_proved,
            "{cubic:?}"
        );
        let text = answer_in_words(&cubic, "(dep_delay / 75)^3", synopsis.description());
        assert!(
            text.starts_with("sum of (dep_delay / 75)^3: 1000\n  noise within ")
                && text.contains("(proved)"),
            "{text}"
        );
        let wave = answer_expression(&synopsis, "-sin(dep_delay)", &arguments(&["x"])).unwrap();
        assert!(wave.truncation.per_record > 0.9, "{wave:?}");
    }

    #[test]
    fn how_far_cells_blur_is_told_with_the_cost_of_less() {
        let said = |golden: &str| {
            let golden: serde_json::Value = serde_json::from_str(golden).unwrap();
            let about: Description = serde_json::from_value(golden["synopsis"].clone()).unwrap();
            (blur_in_words(&about), about)
        };
        let (text, about) = said(include_str!("../../clients/golden/cells-number-1d.json"));
        let Basis::Tables(basis) = &about.basis else {
            panic!("tables")
        };
        let step = 210.0 / f64::from(basis.steps[0]);
        assert!(
            text.contains(&format!("a step, {} of dep_delay\n", ten_digits(step))),
            "{text}"
        );
        assert!(
            text.contains("half the step blurs half as far, with 1.4 times the noise"),
            "{text}"
        );
        let (text, _) = said(include_str!("../../clients/golden/cells-number-3d.json"));
        assert!(
            text.contains("on every axis")
                && text.contains("2.8 times")
                && text.contains(" of hour, "),
            "{text}"
        );
        assert_eq!(blur_in_words(query::example().description()), "");
    }

    #[test]
    fn a_wrong_question_is_refused_in_words() {
        let says = |question: &str| {
            unanswered(
                answer_expression(&query::example(), question, &arguments(&["x"])).unwrap_err(),
            )
            .to_string()
        };
        assert!(
            says("dep_delya").contains("'dep_delya' is unknown: there are dep_delay"),
            "{}",
            says("dep_delya")
        );
        assert!(
            says("1 / (dep_delay - 75)").contains("no finite answer at [75.0]"),
            "{}",
            says("1 / (dep_delay - 75)")
        );
        let function: Description = serde_json::from_str(bernstream_synopsis::EXAMPLE).unwrap();
        let function = Synopsis::new(function, vec![0.0; 3]).unwrap();
        let refused = answer_expression(&function, "dep_delay", &arguments(&["x"]))
            .unwrap_err()
            .to_string();
        assert!(refused.contains("use `bernstream evaluate`"), "{refused}");
    }

    #[test]
    fn coefficients_can_be_chosen() {
        let synopsis = query::example();
        let sum =
            |words: &[&str]| answer_expression(&synopsis, words[0], &arguments(words)).unwrap();
        let plain = sum(&["exp(dep_delay/50)"]);
        let jackson = sum(&["exp(dep_delay/50)", "--jackson", "2"]);
        assert!(jackson.truncation.per_record > plain.truncation.per_record);
        let sparse = sum(&["exp(dep_delay/50)", "--sparse", "8"]);
        assert!(
            (sparse.sum - plain.sum).abs() < 1e-6,
            "{} {}",
            sparse.sum,
            plain.sum
        );
    }
}
