//! `[windows]`

use std::ops::Range;
use std::time::Duration;

use crate::file;
use crate::text::{Checked, Document, Field, Spanned, values};
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::grid::Grid;

/// `[windows]`
pub struct Schedule {
    pub grid: Grid,
    pub end: Option<Timestamp>,
    pub allowed_lateness: Duration,
    /// Where it is written.
    pub grace_place: Option<Range<usize>>,
    pub max_future_skew: Duration,
    /// None for files.
    pub delay: Option<Spanned<Duration>>,
}

/// `from_kafka` is `None` if the kind of input is unknown: then the keys of neither kind are required.
pub fn schedule(
    document: &mut Document<'_>,
    table: Spanned<file::Windows>,
    from_kafka: Option<bool>,
) -> Checked<Schedule> {
    let place = table.span();
    let written = table.into_inner();
    let origin = document.required(&place, "origin", written.origin, values::time);
    let length = document.required(&place, "length", written.length, values::positive_duration);
    let end = document.optional(written.end, values::time);
    if let (Some(false), Ok(None)) = (from_kafka, &end) {
        document.missing(place.clone(), "end");
    }
    let mut delay_of = |key: &str, field: Field<String>| match (field, from_kafka) {
        (Some(field), Some(false)) => Err(document.fault(
            field.span(),
            "does not apply to files",
            "every window is cut off at the end of the input: remove it",
        )),
        (None, Some(true)) => Err(document.missing(place.clone(), key)),
        (field, _) => document.optional(field, values::duration),
    };
    let grace_place = written.grace.as_ref().map(Spanned::span);
    let grace = delay_of("grace", written.grace);
    let ahead = delay_of("ahead", written.ahead);
    let delay = delay_of("publish_delay", written.publish_delay);

    let origin = origin?.into_inner();
    let length = length?.into_inner();
    let end = end?;
    let Some(grid) = Grid::new(origin, length) else {
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
    let zero = |span: Option<Spanned<Duration>>| span.map_or(Duration::ZERO, Spanned::into_inner);
    Ok(Schedule {
        grid,
        end: end.map(Spanned::into_inner),
        allowed_lateness: zero(grace?),
        grace_place,
        max_future_skew: zero(ahead?),
        delay: delay?,
    })
}
