//! What `evaluate` is asked for.

use std::path::PathBuf;

use crate::cli::cluster::Cluster;
use crate::cli::newest::TopicArguments;
use crate::cli::reading::{LabelFit, ReadingArgument};

/// Prints a synopsis at points of its domain as CSV: coordinates, value, and the band that holds everywhere at once.
#[derive(Clone, Debug, clap::Args)]
pub struct EvaluateArguments {
    /// A synopsis, as published or as JSON; `-` reads standard input
    #[arg(required_unless_present = "topic", conflicts_with = "topic")]
    pub(super) file: Option<PathBuf>,
    #[command(flatten)]
    pub(super) topic: Option<TopicArguments>,
    #[command(flatten)]
    pub(super) cluster: Option<Cluster>,
    /// A point in natural units, one number per axis, separated by commas; can be repeated
    #[arg(long, allow_hyphen_values = true, value_name = "X[,Y[,Z]]", conflicts_with = "points", value_parser = point)]
    pub(super) at: Vec<PointArgument>,
    /// Evaluate on this many evenly spaced points per axis [default: 25, if no point is given]
    #[arg(long, value_parser = clap::value_parser!(u32).range(2..))]
    pub(super) points: Option<u32>,
    /// Order of the Bernstein operator [default: what the synopsis recommends]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=i64::from(bernstream_synopsis::bernstein::MAX_ORDER)))]
    pub(super) order: Option<u32>,
    /// How the released values become a function
    #[arg(long, value_enum, default_value_t = ReadingArgument::Bernstein)]
    pub(super) by: ReadingArgument,
    /// Smooth a density by counts of cells with larger bandwidths, in natural units, one per axis, separated by commas
    #[arg(long, value_name = "B[,B[,B]]", value_parser = point)]
    pub(super) bandwidths: Option<PointArgument>,
    /// Fit the label of tables of cells around each point so [default: a line for a number, a constant for classes]
    #[arg(long, value_enum, conflicts_with_all = ["density", "cumulative", "order", "by"])]
    pub(super) fit: Option<LabelFit>,
    /// Print the pointwise band: narrower, and valid at any single point instead of everywhere at once
    #[arg(long)]
    pub(super) pointwise: bool,
    /// Divide by the public number of records, or by the released mass if the number is private
    #[arg(long)]
    pub(super) density: bool,
    /// Clip negative values to 0, and normalise the density to integrate to 1
    #[arg(long, requires = "density")]
    pub(super) proper: bool,
    /// Print the cumulative distribution along the one axis, of the records as the kernel smooths them; it never decreases
    #[arg(long, conflicts_with_all = ["density", "pointwise"])]
    pub(super) cumulative: bool,
    /// Print the description of the synopsis as JSON, and nothing else
    #[arg(long)]
    pub(super) describe: bool,
    /// Print the whole synopsis as JSON, and nothing else; `evaluate`, `query` and the clients can read it
    #[arg(long, conflicts_with = "describe")]
    pub(super) json: bool,
}

#[derive(Clone, Debug)]
pub(super) struct PointArgument(pub Vec<f64>);

fn point(text: &str) -> Result<PointArgument, String> {
    let mut coordinates = Vec::new();
    for part in text.split(',') {
        let number = part.trim().parse();
        coordinates.push(number.map_err(|_| format!("'{part}' is not a number"))?);
    }
    Ok(PointArgument(coordinates))
}
