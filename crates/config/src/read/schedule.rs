//! `[windows]`

use std::ops::Range;
use std::time::Duration;

use crate::file;
use crate::text::{Checked, Document, Field, Spanned, values};
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::grid::SpanGrid;

/// `[windows]`
pub struct Schedule {
    pub grid: SpanGrid,
    pub end: Option<Timestamp>,
    pub allowed_lateness: Duration,
    /// The place where `grace` is written.
    pub grace_place: Option<Range<usize>>,
    pub max_future_skew: Duration,
    /// None for files.
    pub delay: Option<Spanned<Duration>>,
}

/// Reads `[windows]`; `from_kafka` is `None` if the kind of input is unknown: then the keys of neither kind are required.
pub fn read_schedule(
    document: &mut Document<'_>,
    table: Spanned<file::WindowsTable>,
    from_kafka: Option<bool>,
) -> Checked<Schedule> {
    let place = table.span();
    let written = table.into_inner();
    let origin = document.required(&place, "origin", written.origin, values::time);
    let length = document.required(&place, "length", written.length, values::positive_duration);
    let end = document.optional(written.end, values::time);
    if from_kafka == Some(false) && matches!(end, Ok(None)) {
        document.missing(place.clone(), "end");
    }
    let grace_place = written.grace.as_ref().map(Spanned::span);
    let mut keys = DelayKeys {
        document,
        place: &place,
        from_kafka,
    };
    let grace = keys.read("grace", written.grace);
    let ahead = keys.read("ahead", written.ahead);
    let delay = keys.read("publish_delay", written.publish_delay);

    let origin = origin?.into_inner();
    let length = length?.into_inner();
    let end = end?;
    let Some(grid) = SpanGrid::new(origin, length) else {
        return Err(document.fault(place, "the windows have no length", ""));
    };
    if let Some(end) = &end {
        let last = *end.get_ref();
        if last <= origin {
            document.fault(
                end.span(),
                format!("must be later than windows.origin, {origin}"),
                "",
            );
        } else if grid.span_of(last).start != last {
            let before = grid.span_of(last);
            let hint = format!("windows end at {} and at {}", before.start, before.end);
            document.fault(
                end.span(),
                "is not a whole number of windows after windows.origin",
                hint,
            );
        }
    }
    Ok(Schedule {
        grid,
        end: end.map(Spanned::into_inner),
        allowed_lateness: grace?.map_or(Duration::ZERO, Spanned::into_inner),
        grace_place,
        max_future_skew: ahead?.map_or(Duration::ZERO, Spanned::into_inner),
        delay: delay?,
    })
}

/// The keys that windows of a topic must have, and windows of files must not.
struct DelayKeys<'d, 't> {
    document: &'d mut Document<'t>,
    place: &'d Range<usize>,
    from_kafka: Option<bool>,
}

impl DelayKeys<'_, '_> {
    fn read(&mut self, key: &str, written: Field<String>) -> Checked<Option<Spanned<Duration>>> {
        match written {
            None if self.from_kafka == Some(true) => {
                Err(self.document.missing(self.place.clone(), key))
            }
            Some(written) if self.from_kafka == Some(false) => Err(self.document.fault(
                written.span(),
                "does not apply to files",
                "every window is cut off at the end of the input: remove it",
            )),
            written => self.document.optional(written, values::duration),
        }
    }
}
