//! Keys that nobody listed as canonical bytes.
//!
//! Of users the names that a unit holds, sorted by their bytes, each once; then the units in the order of their periods and names, each
//! with its keys in the order of their ranks, as places among the names. Of records the names, sorted, each with its number, and whether
//! the part is full, which then has no names: which of them came first says nothing of the records.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::encoding::{ByteReader, is_unit_of_window, write_natural, write_unit};
use super::found_keys::{FoundKeyCounting, FoundRecords, FoundUnits, OpenFoundKeys, RankedKey};
use super::open::UnitKey;
use super::rules::WindowRules;
use bernstream_synopsis::grid::Span;

/// Bytes of a window without records: no names and no units, or no names and not full.
pub(super) const NOTHING_FOUND: [u8; 2] = [0, 0];

pub(super) fn encode_found_keys(open: OpenFoundKeys, bytes: &mut Vec<u8>) {
    match open {
        OpenFoundKeys::Users(units) => encode_found_units(&units, bytes),
        OpenFoundKeys::Records(records) => encode_found_records(records, bytes),
    }
}

fn encode_found_units(open: &FoundUnits, bytes: &mut Vec<u8>) {
    let mut units: Vec<_> = open.units.iter().collect();
    units.sort_unstable_by_key(|(unit, _)| *unit);
    let mut places: HashMap<&str, u64> = HashMap::with_capacity(open.names.len());
    for (_, kept) in &units {
        for key in *kept {
            places.insert(&key.name, 0);
        }
    }
    let mut names: Vec<&str> = places.keys().copied().collect();
    names.sort_unstable();
    write_natural(bytes, names.len() as u64);
    for (place, name) in (0..).zip(names) {
        write_name(bytes, name);
        places.insert(name, place);
    }
    write_natural(bytes, units.len() as u64);
    for (unit, kept) in units {
        write_unit(bytes, unit);
        write_natural(bytes, kept.len() as u64);
        for key in kept {
            write_natural(bytes, places.get(&*key.name).copied().unwrap_or_default());
        }
    }
}

fn encode_found_records(records: FoundRecords, bytes: &mut Vec<u8>) {
    let FoundRecords::Counted(counts) = records else {
        return bytes.extend([0, 1]);
    };
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_unstable();
    write_natural(bytes, counts.len() as u64);
    for (name, records) in counts {
        write_name(bytes, &name);
        write_natural(bytes, records);
    }
    bytes.push(0);
}

fn write_name(bytes: &mut Vec<u8>, name: &str) {
    write_natural(bytes, name.len() as u64);
    bytes.extend(name.as_bytes());
}

/// Reads what [`encode_found_keys`] has written; `None` if a reader with these rules writes no such bytes of `window`.
pub(super) fn decode_found_keys(
    open: &mut OpenFoundKeys,
    rules: &WindowRules,
    counting: &FoundKeyCounting,
    window: Span,
    reader: &mut ByteReader<'_>,
) -> Option<()> {
    match open {
        OpenFoundKeys::Users(units) => {
            *units = decode_found_units(rules, counting, window, reader)?;
        }
        OpenFoundKeys::Records(records) => *records = decode_found_records(counting, reader)?,
    }
    Some(())
}

fn decode_found_units(
    rules: &WindowRules,
    counting: &FoundKeyCounting,
    window: Span,
    reader: &mut ByteReader<'_>,
) -> Option<FoundUnits> {
    let cap = rules.cap.as_ref()?;
    let mut names: Vec<Arc<str>> = Vec::new();
    for _ in 0..reader.read_count()? {
        let name = read_name(counting, reader)?;
        if names.last().is_some_and(|before| **before >= *name) {
            return None;
        }
        names.push(name.into());
    }
    let mut units = HashMap::new();
    let mut before: Option<UnitKey> = None;
    for _ in 0..reader.read_count()? {
        let unit = reader.read_unit()?;
        let is_in_order = before.is_none_or(|before| before < unit);
        if !is_in_order || !is_unit_of_window(cap, &unit, window) {
            return None;
        }
        let kept = decode_ranked_keys(counting, &unit, &names, reader)?;
        units.insert(unit.clone(), kept);
        before = Some(unit);
    }
    // Beside this list each unit that holds a name has one.
    let are_all_held = names.iter().all(|name| Arc::strong_count(name) > 1);
    are_all_held.then(|| FoundUnits {
        units,
        names: HashSet::from_iter(names),
    })
}

/// The keys of a unit in the order of their ranks, each once.
fn decode_ranked_keys(
    counting: &FoundKeyCounting,
    unit: &UnitKey,
    names: &[Arc<str>],
    reader: &mut ByteReader<'_>,
) -> Option<Vec<RankedKey>> {
    let count = reader.read_count()?;
    if count == 0 || count > counting.most_keys() {
        return None;
    }
    let mut kept: Vec<RankedKey> = Vec::with_capacity(count);
    for _ in 0..count {
        let name = names.get(reader.read_count_up_to(usize::MAX)?)?;
        let rank = counting.ranks.rank(unit, name);
        if kept.last().is_some_and(|last| !last.precedes(rank, name)) {
            return None;
        }
        let name = Arc::clone(name);
        kept.push(RankedKey { rank, name });
    }
    Some(kept)
}

fn decode_found_records(
    counting: &FoundKeyCounting,
    reader: &mut ByteReader<'_>,
) -> Option<FoundRecords> {
    let count = reader.read_count()?;
    // What is full says so, and has no names.
    if count > 0 && counting.is_full_at(count) {
        return None;
    }
    let mut counts: HashMap<Box<str>, u64> = HashMap::new();
    let mut before: Option<&str> = None;
    for _ in 0..count {
        let name = read_name(counting, reader)?;
        let records = reader.read_natural()?;
        let is_in_order = before.is_none_or(|before| before < name);
        if !is_in_order || records == 0 {
            return None;
        }
        counts.insert(name.into(), records);
        before = Some(name);
    }
    match reader.read_natural()? {
        0 => Some(FoundRecords::Counted(counts)),
        1 if count == 0 && counting.limit.is_some() => Some(FoundRecords::Full),
        _ => None,
    }
}

/// A name that a record can have.
fn read_name<'a>(counting: &FoundKeyCounting, reader: &mut ByteReader<'a>) -> Option<&'a str> {
    let length = reader.read_count_up_to(counting.longest)?;
    let name = std::str::from_utf8(reader.take(length)?).ok()?;
    (!name.is_empty()).then_some(name)
}
