//! Reads a synopsis, as a message or as JSON, and prints its function with its noise band.
//!
//! ```sh
//! cargo run -p bernstream-synopsis --example evaluate -- out/flights/departure-delay/JFK/2013-06-18T050000Z.arrows 0 15 60
//! ```

use std::error::Error;
use std::{env, fs, str};

use bernstream_synopsis::Synopsis;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let file = arguments
        .next()
        .ok_or("name a file, then points: numbers, for several axes with commas between them")?;
    let bytes = fs::read(file)?;
    let synopsis = match str::from_utf8(&bytes) {
        Ok(text) if text.trim_start().starts_with('{') => Synopsis::from_json(text)?,
        _ => Synopsis::decode_message(&bytes)?,
    };
    let about = synopsis.description();
    println!("{}: {}", about.release, about.meaning);
    println!("{}", about.privacy.in_words);
    // One evaluator for all points.
    let evaluator = synopsis.evaluator(about.order)?;
    for argument in arguments {
        let point: Vec<f64> = argument
            .split(',')
            .map(str::parse)
            .collect::<Result<_, _>>()?;
        let value = evaluator.evaluate(&point)?;
        let noise = synopsis.half_width(&point)?;
        println!(
            "{argument}: {value:.4}, from {:.4} to {:.4}",
            value - noise,
            value + noise
        );
    }
    println!("over the whole domain: {:.1}", evaluator.total_mass());
    Ok(())
}
