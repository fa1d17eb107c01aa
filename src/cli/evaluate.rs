//! `bernstream evaluate`: a synopsis at points, as CSV.

mod asked;
mod error;
mod remarks;
mod table;

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

pub use self::asked::EvaluateArguments;
use self::asked::PointArgument;
pub use self::error::EvaluateError;
pub(super) use self::remarks::source_in_words;
use self::remarks::{guarantee_in_words, source_and_meaning};
use self::table::{Printed, write_table};
use crate::cli::cluster::Cluster;
use crate::cli::failure::Failure;
use crate::cli::newest::TopicArguments;
use crate::cli::print::{line, note};
use crate::cli::progress::{show_during, show_progress};
use crate::cli::reading::ReadingArgument;
use bernstream_kafka::sink::files;
use bernstream_synopsis::Synopsis;

/// Prints the table, the description or the whole synopsis.
///
/// # Errors
///
/// If no synopsis can be read, if the arguments do not fit it, or if standard output cannot be written.
pub fn run(arguments: &EvaluateArguments) -> Result<(), Failure> {
    Ok(print(arguments)?)
}

fn print(arguments: &EvaluateArguments) -> Result<(), EvaluateError> {
    let file = arguments.file.as_deref().unwrap_or(Path::new("-"));
    let synopsis = newest_or_read(&arguments.topic, &arguments.cluster, file)?;
    let synopsis = match &arguments.bandwidths {
        Some(PointArgument(bandwidths)) => show_progress("simulating the noise", |done| {
            synopsis.at_bandwidths_with_progress(bandwidths, &|draws, all| done.set(draws, all))
        })?,
        None => synopsis,
    };
    if arguments.describe {
        return Ok(line(serde_json::to_string_pretty(synopsis.description())?)?);
    }
    if arguments.json {
        return Ok(line(synopsis.to_json()?)?);
    }
    let mut csv = Vec::new();
    let Printed {
        divisor,
        band,
        approximation,
        form,
    } = show_during("evaluating", || write_table(&synopsis, arguments, &mut csv))?;
    io::stdout().lock().write_all(&csv)?;
    note(format_args!(
        "\n{}",
        source_and_meaning(synopsis.description(), divisor)
    ));
    if let Some(off) = approximation {
        note(format_args!(
            "approximation error: at most {off:.3e} at these points, if the function is as smooth as declared"
        ));
    }
    if let Some(form) = form {
        note(format_args!("form: {form}"));
    }
    note(guarantee_in_words(
        synopsis.description(),
        &band,
        arguments.pointwise,
    ));
    if let Some(reading) = synopsis
        .description()
        .reading
        .filter(|_| arguments.by == ReadingArgument::Bernstein)
    {
        note(format_args!(
            "`--by {reading}` is expected to be more accurate; it has no band"
        ));
    }
    Ok(())
}

/// Reads the newest synopsis of a topic, or else that of a file.
///
/// # Errors
///
/// If the topic or the file cannot be read, or has no synopsis.
pub(super) fn newest_or_read(
    topic: &Option<TopicArguments>,
    cluster: &Option<Cluster>,
    file: &Path,
) -> Result<Synopsis, EvaluateError> {
    match (topic, cluster) {
        (Some(topic), Some(cluster)) => Ok(topic.newest_synopsis(&cluster.broker()?)?),
        _ => read_synopsis(file),
    }
}

/// Reads a synopsis, as published or as JSON, which begins with a brace.
///
/// # Errors
///
/// If the file cannot be read or is not a synopsis.
fn read_synopsis(path: &Path) -> Result<Synopsis, EvaluateError> {
    let bytes = read_bytes(path)?;
    let synopsis = match std::str::from_utf8(&bytes) {
        Ok(text) if text.trim_start().starts_with('{') => Synopsis::from_json(text),
        _ => Synopsis::decode_message(&bytes),
    };
    synopsis.map_err(|source| EvaluateError::NoSynopsis {
        path: path.to_owned(),
        source,
    })
}

fn read_bytes(path: &Path) -> Result<Vec<u8>, EvaluateError> {
    if path.is_dir() {
        let newest = files::synopses_below(path)
            .ok()
            .and_then(|found| found.last().cloned());
        let example = newest.unwrap_or_else(|| path.join("PIPELINE/RELEASE/WINDOW.arrows"));
        return Err(EvaluateError::Folder {
            path: path.to_owned(),
            example,
        });
    }
    let mut bytes = Vec::new();
    let read = if path == Path::new("-") {
        io::stdin().lock().read_to_end(&mut bytes)
    } else {
        File::open(path).and_then(|mut file| file.read_to_end(&mut bytes))
    };
    match read {
        Ok(_) => Ok(bytes),
        Err(source) => Err(EvaluateError::Read {
            path: path.to_owned(),
            source,
        }),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::figures::three_digits;
    use bernstream_synopsis as synopsis;
    use bernstream_synopsis::description::Description;
    use bernstream_synopsis::description::Smoothness;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        arguments: EvaluateArguments,
    }

    fn parse(line: &str) -> Result<EvaluateArguments, String> {
        let words = std::iter::once("evaluate").chain(line.split_whitespace());
        Command::try_parse_from(words)
            .map(|command| command.arguments)
            .map_err(|e| e.to_string())
    }

    fn example() -> Description {
        serde_json::from_str(bernstream_synopsis::EXAMPLE).unwrap()
    }

    fn printed(line: &str, values: [f64; 3]) -> Result<String, EvaluateError> {
        let mut out = Vec::new();
        let synopsis = Synopsis::new(example(), values.to_vec()).unwrap();
        write_table(&synopsis, &parse(line).unwrap(), &mut out)
            .map(|_| String::from_utf8(out).unwrap())
    }

    #[test]
    fn points_come_out_in_the_order_asked_for_with_their_band() {
        let csv = printed("file --at 75 --at -30", [2.0, 4.0, 6.0]).unwrap();
        assert_eq!(
            csv,
            "dep_delay,value,lower,upper\n75,4,3,5\n-30,2,0.75,3.25\n"
        );
    }

    #[test]
    fn without_points_the_domain_is_covered_from_end_to_end() {
        assert_eq!(printed("file", [1.0; 3]).unwrap().lines().count(), 26);
        let csv = printed("file --points 2", [1.0; 3]).unwrap();
        assert!(csv.contains("\n-30,") && csv.contains("\n180,"), "{csv}");
    }

    #[test]
    fn another_order_gets_a_band_of_its_own() {
        let width = |line| -> f64 {
            let csv = printed(line, [0.0; 3]).unwrap();
            csv.trim().rsplit(',').next().unwrap().parse().unwrap()
        };
        assert_eq!(width("file --at 75 --order 2"), width("file --at 75"));
        assert_ne!(width("file --at 75 --order 5"), width("file --at 75"));
    }

    #[test]
    fn a_density_integrates_to_one_and_needs_a_positive_mass() {
        let csv = printed("file --density --at 75", [2.0, 4.0, 6.0]).unwrap();
        let value: f64 = csv
            .lines()
            .nth(1)
            .unwrap()
            .split(',')
            .nth(1)
            .unwrap()
            .parse()
            .unwrap();
        assert!((value - 1.0 / 210.0).abs() < 1e-5, "{value}");
        assert!(matches!(
            printed("file --density", [-1.0; 3]),
            Err(EvaluateError::Synopsis(
                synopsis::SynopsisError::NoMass { .. }
            ))
        ));
    }

    #[test]
    fn readings_and_bands_are_asked_for_by_name() {
        let widths = |line: &str| -> (f64, f64) {
            let csv = printed(line, [2.0, 9.0, 4.0]).unwrap();
            let cells: Vec<f64> = csv
                .lines()
                .nth(1)
                .unwrap()
                .split(',')
                .map(|x| x.parse().unwrap())
                .collect();
            (cells[1], cells[3] - cells[1])
        };
        let (value, everywhere) = widths("file --at 75");
        let (same, at_one_point) = widths("file --at 75 --pointwise");
        assert!(
            value == same && at_one_point < everywhere,
            "{at_one_point} {everywhere}"
        );
        assert_eq!(widths("file --at 80 --by nearest").0, 9.0);
        assert!(
            widths("file --at 75 --by nearest --pointwise").1
                < widths("file --at 75 --by nearest").1
        );
        // Three bumps of a bandwidth of 10 are far apart: nothing to smooth, and the band is that of the prior.
        assert!(widths("file --at 75 --by posterior").1 > 0.0);
        assert!(
            printed("file --at 75 --by kernel", [1.0; 3])
                .unwrap()
                .starts_with("dep_delay,value\n")
        );
    }

    #[test]
    fn cells_are_read_by_their_kernel_and_have_both_bands() {
        let golden: serde_json::Value = serde_json::from_str(include_str!(
            "../../clients/golden/density-cells-1d-box.json"
        ))
        .unwrap();
        let synopsis = Synopsis::from_json(&golden["synopsis"].to_string()).unwrap();
        let printed = |line: &str| {
            let mut out = Vec::new();
            write_table(&synopsis, &parse(line).unwrap(), &mut out)
                .map(|_| String::from_utf8(out).unwrap())
        };
        let cells = |line: &str| -> Vec<f64> {
            printed(line)
                .unwrap()
                .lines()
                .nth(1)
                .unwrap()
                .split(',')
                .map(|x| x.parse().unwrap())
                .collect()
        };
        let plain = cells("file --at 0");
        let value = synopsis.evaluate(&[0.0]).unwrap();
        assert!(
            (plain[1] / value - 1.0).abs() < 0.05 && plain[2] < plain[1] && plain[1] < plain[3],
            "{plain:?} {value}"
        );
        assert_eq!(cells("file --at 0 --by kernel"), plain);
        assert_eq!(cells("file --at 0 --order 5"), plain);
        assert!(cells("file --at 0 --pointwise")[3] < plain[3]);
        let refused = printed("file --at 0 --by nearest");
        assert!(matches!(
            refused,
            Err(EvaluateError::Synopsis(
                synopsis::SynopsisError::Reading { .. }
            ))
        ));
    }

    #[test]
    fn a_label_of_cells_is_fitted_as_is_asked_for() {
        let golden = |name: &str| {
            let text = match name {
                "classes" => include_str!("../../clients/golden/cells-classes-2d.json"),
                "number" => include_str!("../../clients/golden/cells-number-1d.json"),
                _ => include_str!("../../clients/golden/cells-1d.json"),
            };
            let golden: serde_json::Value = serde_json::from_str(text).unwrap();
            Synopsis::from_json(&golden["synopsis"].to_string()).unwrap()
        };
        let printed = |name: &str, line: &str| {
            let mut out = Vec::new();
            write_table(&golden(name), &parse(line).unwrap(), &mut out)
                .map(|_| String::from_utf8(out).unwrap())
        };
        let first = |name: &str, line: &str| -> Vec<f64> {
            let csv = printed(name, line).unwrap();
            csv.lines()
                .nth(1)
                .unwrap()
                .split(',')
                .map(|x| x.parse().unwrap_or(f64::NAN))
                .collect()
        };
        let at = "file --at 20,12 --pointwise";
        let [constant, linear, naive] = ["constant", "linear", "naive"]
            .map(|fit| first("classes", &format!("{at} --fit {fit}")));
        assert!(
            constant[2] != linear[2] && naive[2] != constant[2],
            "{constant:?} {linear:?} {naive:?}"
        );
        assert!(naive[3] <= naive[2] && naive[2] <= naive[4], "{naive:?}");
        assert_eq!(first("classes", at)[2], constant[2]);
        assert!(first("classes", "file --at 20,12 --fit naive")[4] > naive[4]);
        assert!(matches!(
            printed("number", "file --fit naive"),
            Err(EvaluateError::Synopsis(synopsis::SynopsisError::NoClasses))
        ));
        assert!(matches!(
            printed("none", "file --fit linear"),
            Err(EvaluateError::Synopsis(synopsis::SynopsisError::NoLabel))
        ));
        assert!(parse("file --fit naive --density").is_err() && parse("file --fit cubic").is_err());
    }

    #[test]
    fn the_approximation_error_is_shown_if_a_smoothness_is_declared() {
        let shown = |smoothness: Option<Smoothness>, line: &str| {
            let about = Description {
                smoothness,
                ..example()
            };
            let synopsis = Synopsis::new(about, vec![1.0; 3]).unwrap();
            write_table(&synopsis, &parse(line).unwrap(), &mut Vec::new())
                .unwrap()
                .approximation
        };
        let declared = || Some(Smoothness::Lipschitz(vec![0.01]));
        assert_eq!(shown(None, "file"), None);
        assert!(shown(declared(), "file").unwrap() > 0.7);
        assert_eq!(shown(declared(), "file --by posterior"), None);
        assert_eq!(shown(declared(), "file --order 3"), None);
    }

    #[test]
    fn what_noise_and_form_stay_within_together_is_said_of_the_published_reading() {
        let shown = |form_error: Option<f64>, line: &str| {
            let mut about = Description {
                form_error,
                ..example()
            };
            about.band.pointwise = Some(0.5);
            let synopsis = Synopsis::new(about, vec![3.0, 1.0, 2.0]).unwrap();
            write_table(&synopsis, &parse(line).unwrap(), &mut Vec::new())
                .unwrap()
                .form
        };
        let [noise, form] = [
            example().band.half_width,
            0.1 * (6.0 + 0.5 * 3.0_f64.sqrt()),
        ];
        let words = shown(Some(0.1), "file").unwrap();
        assert!(
            words.contains(&format!("at most {},", three_digits(form))),
            "{words}"
        );
        let weights = example().band.weights;
        let narrowest = weights.iter().copied().fold(f64::INFINITY, f64::min);
        assert!(
            words.contains(&format!(
                "within {} at all",
                three_digits(form + noise / narrowest)
            )),
            "{words}"
        );
        assert!(
            shown(Some(0.1), "file --pointwise")
                .unwrap()
                .contains("at any single point")
        );
        for none in [
            shown(None, "file"),
            shown(Some(0.1), "file --by posterior"),
            shown(Some(0.1), "file --order 3"),
        ] {
            assert_eq!(none, None);
        }
    }

    #[test]
    fn a_proper_density_and_a_distribution_are_clipped_and_rise() {
        let csv = printed("file --density --proper", [9.0, -8.0, 3.0]).unwrap();
        assert!(!csv.contains(",-"), "{csv}");
        let csv = printed("file --cumulative --points 40", [9.0, -2.0, 3.0]).unwrap();
        let values: Vec<f64> = csv
            .lines()
            .skip(1)
            .map(|l| l.rsplit(',').next().unwrap().parse().unwrap())
            .collect();
        assert!(
            values.is_sorted() && values[0] == 0.0 && values[39] == 1.0,
            "{csv}"
        );
        assert!(parse("file --proper").is_err() && parse("file --cumulative --density").is_err());
    }

    #[test]
    fn a_command_line_names_a_file_or_a_topic_with_its_brokers() {
        for wrong in [
            "",
            "--topic t",
            "--brokers b:1",
            "file --topic t --brokers b:1",
            "--topic t --brokers b",
            "file --key K",
            "file --at x",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        for wrong in [
            "file --points 1",
            "file --order 0",
            "file --at 1 --points 3",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert!(
            parse("--topic t --brokers b:9092 --key K --window 2013-01-01T05:00:00Z")
                .unwrap()
                .topic
                .is_some()
        );
        assert!(parse("- --at -12.5,3").unwrap().topic.is_none());
    }
}
