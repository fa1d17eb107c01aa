//! `bernstream query`: the sum of a function over the records, from a synopsis of their moments.

use std::path::PathBuf;

use crate::cli::evaluate;
use crate::cli::failure::Failure;
use crate::cli::figures::{above_noise, two_digits};
use crate::cli::print::{line, print};
use crate::cli::progress::during;
use crate::synopsis::description::Description;
use crate::synopsis::query::{Answer, Approximation, Grid, MOST_SMOOTHNESS, NoiseError, Query};
use crate::synopsis::{self, Synopsis};

/// Estimates the sum and the mean of a smooth function over the records of a window and key.
///
/// The function is an expression such as 'exp(-x^2) * y'. Its variables are the columns of the synopsis, in natural units; a
/// name that is not a single word stands in double quotes. Allowed are + - * / ^, abs cos exp ln max min sin sqrt tanh, pi and
/// parentheses. Any number of queries costs no privacy.
#[derive(Clone, Debug, clap::Args)]
pub struct Arguments {
    /// A synopsis, as it is published or as JSON; `-` reads standard input
    file: PathBuf,
    /// The function
    #[arg(allow_hyphen_values = true, value_name = "EXPRESSION")]
    function: String,
    /// Use the coefficients of [WFZW13] for functions of this smoothness, instead of Chebyshev coefficients
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
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let synopsis = evaluate::read(&arguments.file)?;
    let answer = during("computing the answer", || ask(&synopsis, arguments)).map_err(failure)?;
    match arguments.json {
        true => line(format_args!("{:#}", answer.in_context(&arguments.function, synopsis.description()))),
        false => print(words(&answer, &arguments.function, synopsis.description())),
    }
}

fn ask(synopsis: &Synopsis, arguments: &Arguments) -> Result<Answer, synopsis::Error> {
    let approximation =
        arguments.jackson.map_or_else(Approximation::default, |smoothness| Approximation::Jackson { smoothness });
    let grid = arguments.sparse.map_or_else(Grid::default, |level| Grid::Sparse { level });
    synopsis.answer(&Query::expression(&arguments.function, synopsis)?.by(approximation).on(grid))
}

/// A query that cannot be answered is for the caller to change.
fn failure(error: synopsis::Error) -> Failure {
    match error {
        synopsis::Error::Damaged(_) => Failure::Other(error.to_string()),
        _ => Failure::Configuration(error.to_string()),
    }
}

fn words(answer: &Answer, function: &str, about: &Description) -> String {
    let Answer { sum, noise, truncation, mean } = answer;
    let (most, misses) = match truncation.is_proved {
        true => ("at most", "proved"),
        false => ("about", "the largest on a fine grid; between its points, as at a pole, it may be larger"),
    };
    let mut text = format!("sum of {function}: {}\n{}", above_noise(*sum, noise.half_width), within(noise));
    text += &format!(
        "  truncation {most} {}: {} a record ({misses}), times the {} records released\n",
        two_digits(truncation.error),
        two_digits(truncation.per_record),
        truncation.records.round()
    );
    match mean {
        Some(mean) => {
            text += &format!("mean: {}\n{}", above_noise(mean.value, mean.noise.half_width), within(&mean.noise));
            text += &format!("  truncation {most} {}\n", two_digits(truncation.per_record));
        }
        None => text += "mean: none, because the noise exceeds the number of records\n",
    }
    let key = about.key.as_ref().map(|key| format!(", key '{key}'")).unwrap_or_default();
    let simulated = if about.synthetic { "; the records were simulated" } else { "" };
    let (pipeline, release, window) = (&about.pipeline, &about.release, about.window);
    text += &format!("\n{release} of {pipeline}{key}, {} to {}{simulated}\n", window.start, window.end);
    text + &format!("{}\n", about.privacy.in_words)
}

fn within(noise: &NoiseError) -> String {
    let percent = noise.level * 100.0;
    let (half_width, deviation) = (two_digits(noise.half_width), two_digits(noise.deviation));
    format!("  noise within {half_width} with {percent} % probability (standard deviation {deviation})\n")
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::synopsis::query;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn arguments(words: &[&str]) -> Arguments {
        Command::try_parse_from([&["query", "file"], words].concat()).unwrap().arguments
    }

    #[test]
    fn an_answer_tells_noise_and_truncation_apart() {
        let synopsis = query::example();
        // A thousand records at 75: the synopsis holds four frequencies, and a cubic needs no more.
        let cubic = ask(&synopsis, &arguments(&["(dep_delay / 75)^3"])).unwrap();
        assert!((cubic.sum - 1000.0).abs() < 1e-9 && (cubic.mean.unwrap().value - 1.0).abs() < 1e-9, "{cubic:?}");
        assert!(cubic.truncation.per_record < 1e-3 && cubic.truncation.is_proved, "{cubic:?}");
        let text = words(&cubic, "(dep_delay / 75)^3", synopsis.description());
        assert!(
            text.starts_with("sum of (dep_delay / 75)^3: 1000\n  noise within ") && text.contains("(proved)"),
            "{text}"
        );
        let wave = ask(&synopsis, &arguments(&["-sin(dep_delay)"])).unwrap();
        assert!(wave.truncation.per_record > 0.9, "{wave:?}");
    }

    #[test]
    fn a_wrong_question_is_refused_in_words() {
        let says = |question: &str| failure(ask(&query::example(), &arguments(&[question])).unwrap_err()).to_string();
        assert!(says("dep_delya").contains("'dep_delya' is unknown: there are dep_delay"), "{}", says("dep_delya"));
        assert!(
            says("1 / (dep_delay - 75)").contains("no finite answer at [75.0]"),
            "{}",
            says("1 / (dep_delay - 75)")
        );
        let function: Description = serde_json::from_str(include_str!("../synopsis/example.json")).unwrap();
        let function = Synopsis::new(function, vec![0.0; 3]).unwrap();
        let refused = ask(&function, &arguments(&["dep_delay"])).unwrap_err().to_string();
        assert!(refused.contains("use `bernstream evaluate`"), "{refused}");
    }

    #[test]
    fn coefficients_can_be_chosen() {
        let synopsis = query::example();
        let sum = |words: &[&str]| ask(&synopsis, &arguments(words)).unwrap();
        let (plain, jackson) = (sum(&["exp(dep_delay/50)"]), sum(&["exp(dep_delay/50)", "--jackson", "2"]));
        assert!(jackson.truncation.per_record > plain.truncation.per_record);
        let sparse = sum(&["exp(dep_delay/50)", "--sparse", "8"]);
        assert!((sparse.sum - plain.sum).abs() < 1e-6, "{} {}", sparse.sum, plain.sum);
    }
}
