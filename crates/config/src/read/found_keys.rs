//! `input.key.found`: keys that nobody lists.

use std::time::Duration;

use crate::file;
use crate::settings::FoundKeySettings;
use crate::text::{Checked, Document, Spanned, values};

const KEEP: Duration = Duration::from_secs(7 * 24 * 3600);
const MOST: u32 = 10_000;
/// Rows of the largest table that a topic is made for.
const LARGEST_MOST: u32 = 100_000;
const LONGEST: u32 = 256;
/// The longest key that can be asked for.
const LARGEST_LONGEST: u32 = 1024;

/// The longest time that a key can be kept: `until` is a time that a message can hold, whatever window found the key.
const LARGEST_KEEP: Duration = Duration::from_secs(3660 * 24 * 3600);

/// Reads the table; `candidates` stays as it was written, because only the unit of privacy says whether it is needed.
pub fn read_found(
    document: &mut Document<'_>,
    table: Spanned<file::FoundTable>,
) -> Checked<Spanned<FoundKeySettings>> {
    let place = table.span();
    let written = table.into_inner();
    let keep = document.optional(written.keep, keep_time);
    let most = document.optional(written.most, |most| up_to(most, LARGEST_MOST));
    let longest = document.optional(written.longest, |longest| up_to(longest, LARGEST_LONGEST));
    let candidates = document.optional(written.candidates, values::count);
    let found = FoundKeySettings {
        keep: keep?.map_or(KEEP, Spanned::into_inner),
        most: most?.map_or(MOST, Spanned::into_inner),
        longest: longest?.map_or(LONGEST, Spanned::into_inner),
        candidates: candidates?.map(Spanned::into_inner),
    };
    Ok(Spanned::new(place, found))
}

fn keep_time(text: String) -> Result<Duration, String> {
    let keep = values::positive_duration(text)?;
    if keep > LARGEST_KEEP {
        return Err("must be at most 3660d".to_owned());
    }
    if keep.subsec_nanos() > 0 {
        return Err("must be a whole number of seconds".to_owned());
    }
    Ok(keep)
}

fn up_to(number: u32, most: u32) -> Result<u32, String> {
    match number {
        1.. if number <= most => Ok(number),
        _ => Err(format!("must be from 1 to {most}")),
    }
}
