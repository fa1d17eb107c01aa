//! Part of a window that a reader has, as bytes: the same bytes for the same records of a partition, whoever read them and however they
//! were fetched.
//!
//! For each form, in order: for counts by key the units and their keys, or the totals of the keys (`encode_keys`); for keys that nobody listed what `encode_found_keys` writes; for all others the users, the records that are kept one by one, in their order of survival, each with the user that it
//! waits for, then the sums of each key that has any. Whole numbers are written in groups of seven bits, the lowest first; signed
//! ones as `2 n` or `-2 n - 1`. Keys and cells without records are left out.

use super::accumulator::{Accumulator, AccumulatorSpec, Record};
use super::found_encoding::{NOTHING_FOUND, decode_found_keys, encode_found_keys};
use super::open::{GroupState, OpenGroups, OpenWindow, UnitKey, WaitingRecord};
use super::part::WindowPart;
use super::router::LONGEST_UNIT;
use super::rules::{Cap, ReleaseInput, WindowRules};
use super::unit_keys::{KeptKey, KeyCounting, KeyTotals, OpenKeys, UnitKeys};
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::grid::Span;
use bernstream_synopsis::histogram::{GridPoint, Histogram};

/// Raised whenever the same records would become other bytes: a golden test sees it. A new kind of state, which older programs did not
/// have, changes no bytes that there were.
pub const VERSION: u32 = 3;

impl WindowPart {
    /// The canonical bytes of a reader that has read one partition only, of which [`WindowStore::take_part`](super::WindowStore::take_part) makes the
    /// same part.
    pub fn canonical_bytes(self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (form, open) in self.all.iter().zip(self.forms) {
            match open {
                Some(OpenWindow::Groups(open)) => encode(&form.accumulator, open, &mut bytes),
                Some(OpenWindow::Keys(open)) => {
                    if let AccumulatorSpec::Keys(counting) = &form.accumulator {
                        encode_keys(counting, open, &mut bytes);
                    }
                }
                Some(OpenWindow::Found(open)) => encode_found_keys(open, &mut bytes),
                None if matches!(form.accumulator, AccumulatorSpec::FoundKeys(_)) => {
                    bytes.extend(NOTHING_FOUND);
                }
                // No units and no totals.
                None if matches!(form.accumulator, AccumulatorSpec::Keys(_)) => bytes.push(0),
                // No records, no users, no sums.
                None => bytes.extend([0, 0, 0]),
            }
        }
        bytes
    }
}

fn encode(spec: &AccumulatorSpec, open: OpenGroups, bytes: &mut Vec<u8>) {
    let mut units: Vec<&UnitKey> = open.waiting.keys().collect();
    units.sort_unstable();
    write_natural(bytes, units.len() as u64);
    for unit in &units {
        write_unit(bytes, unit);
    }
    let mut kept = Vec::new();
    for group in &open.groups {
        if let GroupState::First(first) = group {
            kept.extend(first.iter().map(|waiting| KeptRecord { waiting, unit: 0 }));
        }
    }
    for (unit, waiting) in &open.waiting {
        let unit = units
            .binary_search(&unit)
            .map_or(0, |place| place as u64 + 1);
        kept.extend(waiting.iter().map(|waiting| KeptRecord { waiting, unit }));
    }
    kept.sort_unstable();
    write_natural(bytes, kept.len() as u64);
    let mut last = 0;
    for KeptRecord { waiting, unit } in kept {
        write_integer(bytes, i128::from(waiting.time.micros()) - last);
        last = i128::from(waiting.time.micros());
        write_natural(bytes, u64::from(waiting.group));
        for coordinate in waiting.record.place.0 {
            write_natural(bytes, u64::from(coordinate));
        }
        write_integer(bytes, i128::from(waiting.record.label));
        write_natural(bytes, unit);
    }
    let mut sums = Vec::new();
    let mut count = 0;
    for (group, held) in open.groups.into_iter().enumerate() {
        let GroupState::Sum(sum) = held else { continue };
        let Some(sum) = sum.total_if_any(spec).filter(|sum| !is_nothing(sum)) else {
            continue;
        };
        count += 1;
        write_natural(&mut sums, group as u64);
        match &sum {
            Accumulator::Sums(all) => {
                for one in all {
                    write_integer(&mut sums, *one);
                }
            }
            sum => {
                for histogram in all_histograms(sum) {
                    write_sparse(&mut sums, &histogram.cells);
                }
            }
        }
    }
    write_natural(bytes, count);
    bytes.append(&mut sums);
}

/// The units in the order of their periods and names, each with its keys in the order of their ranks; or the totals of the keys that have
/// any. Squares are there only where variances are told.
fn encode_keys(counting: &KeyCounting, open: OpenKeys, bytes: &mut Vec<u8>) {
    match open {
        OpenKeys::Users(units) => encode_units(counting, units, bytes),
        OpenKeys::Records(totals) => {
            let filled = totals.iter().filter(|totals| totals.records != 0);
            write_natural(bytes, filled.count() as u64);
            for (group, totals) in totals.iter().enumerate() {
                if totals.records != 0 {
                    write_natural(bytes, group as u64);
                    write_integer(bytes, totals.low);
                    if counting.keeps_squares {
                        write_integer(bytes, totals.middle);
                    }
                    write_integer(bytes, totals.high);
                    if !totals.places.is_empty() {
                        write_sparse(bytes, &totals.places);
                    }
                }
            }
        }
    }
}

fn encode_units(counting: &KeyCounting, units: UnitKeys, bytes: &mut Vec<u8>) {
    let mut units: Vec<_> = units.0.into_iter().collect();
    units.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    write_natural(bytes, units.len() as u64);
    for (unit, kept) in units {
        write_unit(bytes, &unit);
        write_natural(bytes, kept.len() as u64);
        for kept in kept {
            write_natural(bytes, u64::from(kept.group));
            write_natural(bytes, u64::from(kept.records));
            write_integer(bytes, i128::from(kept.labels));
            if counting.keeps_squares {
                write_natural(bytes, kept.squares);
            }
        }
    }
}

pub(super) fn write_unit(bytes: &mut Vec<u8>, unit: &UnitKey) {
    write_integer(bytes, i128::from(unit.period.micros()));
    write_natural(bytes, unit.user.len() as u64);
    bytes.extend(&unit.user);
}

/// A record that is kept by itself, and the user that it waits for: 0 for none. Ordered by the record.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct KeptRecord<'a> {
    waiting: &'a WaitingRecord,
    unit: u64,
}

fn all_histograms(sum: &Accumulator) -> impl Iterator<Item = &Histogram> {
    let [negative, positive] = sum.marginals();
    sum.tables().iter().chain(negative).chain(positive)
}

fn is_nothing(sum: &Accumulator) -> bool {
    sum.sums().iter().all(|sum| *sum == 0)
        && all_histograms(sum).all(|one| one.cells.iter().all(|grains| *grains == 0))
}

fn write_sparse(bytes: &mut Vec<u8>, cells: &[u64]) {
    let filled = cells.iter().filter(|grains| **grains != 0);
    write_natural(bytes, filled.count() as u64);
    let mut next = 0;
    for (cell, grains) in cells.iter().enumerate() {
        if *grains != 0 {
            write_natural(bytes, (cell - next) as u64);
            write_natural(bytes, *grains);
            next = cell + 1;
        }
    }
}

pub(super) fn write_natural(bytes: &mut Vec<u8>, number: u64) {
    write_wide(bytes, u128::from(number));
}

fn write_integer(bytes: &mut Vec<u8>, number: i128) {
    write_wide(
        bytes,
        (number.cast_unsigned() << 1) ^ (number >> 127).cast_unsigned(),
    );
}

fn write_wide(bytes: &mut Vec<u8>, mut number: u128) {
    while number >= 0x80 {
        bytes.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    bytes.push(number.to_le_bytes()[0]);
}

/// The windows that [`WindowPart::canonical_bytes`] has written in `window`, one a form; `None` if these are no such bytes, or if they have
/// a record, a user or a key that no reader with these rules and forms keeps in this window.
pub(super) fn decode_windows(
    rules: &WindowRules,
    forms: &[ReleaseInput],
    window: Span,
    bytes: &[u8],
) -> Option<Vec<Option<OpenWindow>>> {
    let mut reader = ByteReader(bytes);
    let mut opens = Vec::with_capacity(forms.len());
    for form in forms {
        let mut open = OpenWindow::new(rules, &form.accumulator);
        match &mut open {
            OpenWindow::Groups(groups) => {
                let units = decode_units(&mut reader)?;
                decode_records(groups, rules, form, window, &units, &mut reader)?;
                decode_sums(groups, rules, &form.accumulator, &mut reader)?;
            }
            OpenWindow::Keys(keys) => {
                let AccumulatorSpec::Keys(counting) = &form.accumulator else {
                    return None;
                };
                decode_keys(keys, rules, counting, window, &mut reader)?;
            }
            OpenWindow::Found(keys) => {
                let AccumulatorSpec::FoundKeys(counting) = &form.accumulator else {
                    return None;
                };
                decode_found_keys(keys, rules, counting, window, &mut reader)?;
            }
        }
        opens.push(Some(open));
    }
    if reader.0.is_empty() {
        Some(opens)
    } else {
        None
    }
}

fn decode_units(reader: &mut ByteReader<'_>) -> Option<Vec<UnitKey>> {
    let mut units = Vec::new();
    for _ in 0..reader.read_count()? {
        units.push(reader.read_unit()?);
    }
    Some(units)
}

fn decode_keys(
    open: &mut OpenKeys,
    rules: &WindowRules,
    counting: &KeyCounting,
    window: Span,
    reader: &mut ByteReader<'_>,
) -> Option<()> {
    match open {
        OpenKeys::Users(units) => decode_unit_keys(units, rules, counting, window, reader),
        OpenKeys::Records(totals) => decode_totals(totals, counting, reader),
    }
}

fn decode_unit_keys(
    units: &mut UnitKeys,
    rules: &WindowRules,
    counting: &KeyCounting,
    window: Span,
    reader: &mut ByteReader<'_>,
) -> Option<()> {
    let cap = rules.cap.as_ref()?;
    for _ in 0..reader.read_count()? {
        let unit = reader.read_unit()?;
        let is_of_window = is_unit_of_window(cap, &unit, window);
        let kept = decode_kept_keys(counting, &unit, reader)?;
        if !is_of_window || units.0.insert(unit, kept).is_some() {
            return None;
        }
    }
    Some(())
}

/// Returns whether the unit is of a period that the window meets.
pub(super) fn is_unit_of_window(cap: &Cap, unit: &UnitKey, window: Span) -> bool {
    let period = cap.period.span_of(unit.period);
    period.start == unit.period && period.start < window.end && window.start < period.end
}

fn decode_totals(
    totals: &mut [KeyTotals],
    counting: &KeyCounting,
    reader: &mut ByteReader<'_>,
) -> Option<()> {
    let mut before = None;
    for _ in 0..reader.read_count()? {
        let group = reader.read_count_up_to(usize::MAX)?;
        if before.replace(group).is_some_and(|before| before >= group) {
            return None;
        }
        let low = reader.read_integer()?;
        let middle = match counting.keeps_squares {
            true => reader.read_integer()?,
            false => 0,
        };
        let high = reader.read_integer()?;
        let mut decoded = KeyTotals::of_records([low, middle, high])?;
        if let Some(grid) = counting.grid {
            let mut places = vec![0; grid.places as usize];
            reader.read_sparse(&mut places)?;
            decoded = decoded.with_places(places)?;
        }
        *totals.get_mut(group)? = decoded;
    }
    Some(())
}

/// The keys of a unit, of which each has a record at least, in the order of their ranks.
fn decode_kept_keys(
    counting: &KeyCounting,
    unit: &UnitKey,
    reader: &mut ByteReader<'_>,
) -> Option<Vec<KeptKey>> {
    let count = reader.read_count()?;
    if !counting.can_keep(count) {
        return None;
    }
    let mut kept: Vec<KeptKey> = Vec::with_capacity(count);
    for _ in 0..count {
        let key = KeptKey {
            rank: 0,
            group: u32::try_from(reader.read_natural()?).ok()?,
            records: u32::try_from(reader.read_natural()?).ok()?,
            labels: i64::try_from(reader.read_integer()?).ok()?,
            squares: match counting.keeps_squares {
                true => reader.read_natural()?,
                false => 0,
            },
        };
        let key = key.ranked(counting, unit)?;
        // A key that is there twice would count for more than a unit may in it.
        let is_in_order = kept.last().is_none_or(|before| before.precedes(&key));
        if !is_in_order || !key.are_sums_possible() {
            return None;
        }
        kept.push(key);
    }
    Some(kept)
}

fn decode_records(
    open: &mut OpenGroups,
    rules: &WindowRules,
    form: &ReleaseInput,
    window: Span,
    units: &[UnitKey],
    reader: &mut ByteReader<'_>,
) -> Option<()> {
    let mut micros = 0_i128;
    for _ in 0..reader.read_count()? {
        micros = micros.checked_add(reader.read_integer()?)?;
        let time = Timestamp::from_micros(i64::try_from(micros).ok()?);
        let group = u32::try_from(reader.read_natural()?).ok()?;
        let mut place = GridPoint::default();
        for coordinate in &mut place.0 {
            *coordinate = u32::try_from(reader.read_natural()?).ok()?;
        }
        let record = Record {
            place,
            label: i32::try_from(reader.read_integer()?).ok()?,
        };
        let unit = reader.read_count_up_to(usize::MAX)?.checked_sub(1);
        if time < window.start || time >= window.end || !form.can_keep(&record) {
            return None;
        }
        let state = open.groups.get_mut(group as usize)?;
        // Under a cap everything waits for its user's records in other partitions.
        if let Some(cap) = &rules.cap {
            let unit = units.get(unit?)?;
            let all = open.waiting.entry(unit.clone()).or_default();
            all.push(WaitingRecord::new(time, &unit.user, group, record));
            if cap.period.span_of(time).start != unit.period
                || all.len() as u64 > u64::from(cap.records)
            {
                return None;
            }
        } else {
            let AccumulatorSpec::Records { most } = &form.accumulator else {
                return None;
            };
            let GroupState::First(first) = state else {
                return None;
            };
            first.push(WaitingRecord::new(time, &[], group, record));
            if unit.is_some() || first.len() as u64 > u64::from(*most) {
                return None;
            }
        }
    }
    Some(())
}

fn decode_sums(
    open: &mut OpenGroups,
    rules: &WindowRules,
    spec: &AccumulatorSpec,
    reader: &mut ByteReader<'_>,
) -> Option<()> {
    let sums = reader.read_count()?;
    if rules.cap.is_some() && sums > 0 {
        return None;
    }
    let mut before = None;
    for _ in 0..sums {
        let group = reader.read_count_up_to(usize::MAX)?;
        // Each takes the memory of an accumulator, whatever it has in the message.
        if before.replace(group).is_some_and(|before| before >= group) {
            return None;
        }
        let GroupState::Sum(state) = open.groups.get_mut(group)? else {
            return None;
        };
        let mut sum = spec.empty();
        match &mut sum {
            Accumulator::Histogram(histogram) => reader.read_sparse(&mut histogram.cells)?,
            Accumulator::Tables(tables) => {
                for histogram in tables {
                    reader.read_sparse(&mut histogram.cells)?;
                }
            }
            Accumulator::Marginals(classes) => {
                for histogram in classes.iter_mut().flatten() {
                    reader.read_sparse(&mut histogram.cells)?;
                }
            }
            Accumulator::Sums(sums) => {
                for sum in sums {
                    *sum = reader.read_integer()?;
                }
            }
            Accumulator::Records(_) | Accumulator::Keys(_) | Accumulator::FoundKeys(_) => {
                return None;
            }
        }
        *state = sum.into();
    }
    Some(())
}

/// Bytes that are left to read.
pub(super) struct ByteReader<'a>(&'a [u8]);

impl<'a> ByteReader<'a> {
    fn read_wide(&mut self) -> Option<u128> {
        let mut number = 0_u128;
        for shift in (0..128).step_by(7) {
            let (first, rest) = self.0.split_first()?;
            self.0 = rest;
            number |= u128::from(first & 0x7f) << shift;
            if first & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    pub fn read_natural(&mut self) -> Option<u64> {
        u64::try_from(self.read_wide()?).ok()
    }

    fn read_integer(&mut self) -> Option<i128> {
        let number = self.read_wide()?;
        Some((number >> 1).cast_signed() ^ -((number & 1).cast_signed()))
    }

    pub fn read_count_up_to(&mut self, most: usize) -> Option<usize> {
        usize::try_from(self.read_natural()?)
            .ok()
            .filter(|count| *count <= most)
    }

    pub fn read_unit(&mut self) -> Option<UnitKey> {
        let period = Timestamp::from_micros(i64::try_from(self.read_integer()?).ok()?);
        let length = self.read_count_up_to(LONGEST_UNIT)?;
        Some(UnitKey {
            period,
            user: self.take(length)?.to_vec(),
        })
    }

    /// Number of things that follow, each of a byte at least.
    pub fn read_count(&mut self) -> Option<usize> {
        self.read_count_up_to(self.0.len())
    }

    pub fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn read_sparse(&mut self, cells: &mut [u64]) -> Option<()> {
        let mut next = 0_usize;
        for _ in 0..self.read_count()? {
            let cell = next.checked_add(self.read_count_up_to(usize::MAX)?)?;
            *cells.get_mut(cell)? = self.read_natural()?;
            next = cell + 1;
        }
        Some(())
    }
}
