//! Writes `clients/golden`: synopses of every kind with the results that every client must get. `tests/it/golden.rs` checks that
//! the committed files are current.
//!
//! ```sh
//! cargo run --example golden
//! ```
#![allow(clippy::too_many_lines, reason = "lists of cases")]

mod cases;
mod file;
mod release;
mod wrong;

use std::error::Error;
use std::fs;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/golden");
    fs::create_dir_all(&folder)?;
    for case in cases::all()? {
        let text = file::text(&case)?;
        println!("{} {} bytes", case.name, text.len());
        fs::write(folder.join(format!("{}.json", case.name)), text)?;
    }
    Ok(fs::write(folder.join("wrong.json"), wrong::text()?)?)
}
