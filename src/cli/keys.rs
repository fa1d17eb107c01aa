//! `keys`: the keys that a pipeline has found, since when and until when each is published.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use crate::cli::failure::Failure;
use crate::cli::ledger::verified_ledger;
use crate::cli::print::{as_json, line, print};
use crate::cli::settings;
use bernstream_config::{WorkerSettings, canonical};
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::key_parts::split_key;
use bernstream_synopsis::terminal_text::escape_unprintable;
use bernstream_worker::pipeline::AnnouncedKeys;

#[derive(Debug, Args)]
pub struct KeysArguments {
    /// The configuration.
    configuration: PathBuf,
    /// Print the keys as `values` of `input.key`, to stand in the place of `found`: they are then listed.
    #[arg(long, conflicts_with = "json")]
    pin: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// A key that is announced.
#[derive(Serialize)]
struct ListedKey<'a> {
    key: &'a str,
    /// The end of the window that found it.
    since: Timestamp,
    /// Every window that begins before this time publishes it.
    until: Timestamp,
}

/// Prints the list that the next window begins with: all of it has been paid for, and is published at the latest when its windows are.
///
/// # Errors
///
/// If the configuration has a fault or lists its keys, if the ledger cannot be read, or if there is none to be pinned.
pub fn run(arguments: &KeysArguments) -> Result<(), Failure> {
    let settings = settings::load_settings(&arguments.configuration)?;
    let stored = stored_list(&settings)?;
    // The time of a key may have passed while windows were withheld, or just now.
    let published = stored.announced.published_at(stored.next_window);
    let mut listed = Vec::new();
    for (key, announced) in stored.announced.keys() {
        if published.contains(key) {
            listed.push(ListedKey {
                key,
                since: announced.since,
                until: announced.until,
            });
        }
    }
    if arguments.json {
        return line(as_json(&listed)?);
    }
    if listed.is_empty() {
        let what = "no key is announced: none was found yet, the time of those that were is over, or other columns, types or lengths of keys have begun an empty list";
        return match arguments.pin {
            true => Err(Failure::Other(what.to_owned())),
            false => line(what),
        };
    }
    if arguments.pin {
        return print_values(&listed, &settings.columns.key);
    }
    let mut text = String::new();
    for one in &listed {
        let key = escape_unprintable(one.key);
        text.push_str(&format!(
            "{key}  since {}, until {}\n",
            one.since, one.until
        ));
    }
    print(text)
}

/// The list that the ledger has, and the window that comes next.
struct StoredList {
    announced: AnnouncedKeys,
    next_window: Timestamp,
}

fn stored_list(settings: &WorkerSettings) -> Result<StoredList, Failure> {
    let (Some(_), Some(release)) = (settings.found_keys, settings.releases.first()) else {
        let what = "the keys of this pipeline are listed in its configuration: only `input.key.found` finds keys";
        return Err(Failure::Configuration(what.to_owned()));
    };
    let ledger = verified_ledger(settings)?;
    let slot = AnnouncedKeys::slot_name(&release.name);
    let stored = ledger.noise_state(&slot)?;
    let identity = canonical::announced_identity(settings);
    let announced = AnnouncedKeys::from_stored(stored.as_deref(), &identity)
        .map_err(|error| Failure::Other(error.to_string()))?;
    Ok(StoredList {
        announced,
        next_window: ledger.next_window(),
    })
}

/// Prints the keys as `values` of `input.key`, in the place of `found`.
fn print_values(listed: &[ListedKey<'_>], columns: &[String]) -> Result<(), Failure> {
    let mut text = "values = [\n".to_owned();
    for one in listed {
        let value = match split_key(one.key, columns.len()) {
            Some(parts) if columns.len() > 1 => {
                let parts: Vec<String> = parts.iter().map(|part| quoted(part)).collect();
                format!("[{}]", parts.join(", "))
            }
            _ => quoted(one.key),
        };
        text.push_str(&format!("  {value},\n"));
    }
    text.push_str("]\n");
    print(text)
}

/// A text as TOML writes it, with escapes for what does not show or turns the direction of others.
fn quoted(text: &str) -> String {
    let mut quoted = "\"".to_owned();
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            _ if escape_unprintable(character.encode_utf8(&mut [0; 4])).len()
                > character.len_utf8() =>
            {
                quoted.push_str(&format!("\\U{:08X}", u32::from(character)));
            }
            _ => quoted.push(character),
        }
    }
    quoted.push('"');
    quoted
}
