//! `bernstream sample`: how much one record changes the configured function on windows drawn from a public prior. Input,
//! ledger and output are not opened.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::cli::failure::Failure;
use crate::cli::parallel::on_all_processors;
use crate::cli::print::{note, print};
use crate::cli::progress::{WorkDone, show_progress};
use bernstream_config::SamplerInput;
use bernstream_functions::sampled::{NeighbouringWindows, SampledChange};

#[derive(Debug, clap::Args)]
pub struct SampleArguments {
    /// The configuration; only its privacy and release are needed.
    file: PathBuf,
}

/// Prints the table for the configuration on standard output, explanation and progress on standard error.
///
/// # Errors
///
/// If the configuration has a fault, or if standard output cannot be written.
pub fn run(arguments: &SampleArguments) -> Result<(), Failure> {
    let study = SamplerInput::load(&arguments.file)?;
    let plan = study.plan;
    let neighbours = &study.neighbours;
    note(format_args!(
        "drawing {} pairs of neighbouring windows of {} records from the prior, with seed {}",
        plan.samples, neighbours.records, neighbours.seed
    ));
    let changes = show_progress("drawing pairs", |done| {
        sample_changes(neighbours, plan.samples, done)
    })?;
    let change = plan
        .integer_statistic(&changes)
        .map_err(|error| Failure::Other(error.to_string()))?;
    let SampledChange { sum, .. } = change;
    let which = match plan.samples - plan.order {
        0 => "all changes".to_owned(),
        left_out => format!("all but the {left_out} largest changes"),
    };
    note(format_args!(
        "{which} are at most {sum} grid units; gamma = {}, of which rho = {:.4} is for the sampler",
        plan.gamma, plan.rho
    ));
    if let Ok(proved) = neighbours
        .target
        .target()
        .sensitivity(neighbours.adjacency, 1)
    {
        #[expect(clippy::cast_precision_loss, reason = "a figure to show")]
        let times = proved.0 as f64 / sum as f64;
        note(format_args!(
            "what is proved for any records is {times:.2} times that: without [release.sampled] the guarantee is plain differential privacy"
        ));
    }
    note(format_args!(
        "this is RANDOM differential privacy. Choose prior and seed before you see a result: trying several until one is small \
         voids gamma. Add this table to the configuration, in place of an older one:\n"
    ));
    print(study.result_table(change))
}

/// Every pair depends on its number alone, so the order of the threads does not matter.
fn sample_changes(
    neighbours: &NeighbouringWindows,
    samples: u32,
    done: &WorkDone,
) -> Result<Vec<SampledChange>, Failure> {
    let next = AtomicU32::new(0);
    let drawn = on_all_processors(
        || {
            let mut drawn = Vec::new();
            loop {
                let pair = next.fetch_add(1, Relaxed);
                if pair >= samples {
                    return Ok(drawn);
                }
                drawn.push(neighbours.pair_change(pair));
                done.set(u64::from(pair) + 1, u64::from(samples));
            }
        },
        "the function panicked",
    )?;
    Ok(drawn.into_iter().flatten().collect())
}
