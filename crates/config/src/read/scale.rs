//! `[scale]`

use std::time::Duration;

use crate::file;
use crate::settings::InputParams;
use crate::text::{Checked, Document, Field, Spanned, values};
use bernstream_worker::scale;

/// The most megabytes of partials that a worker holds by default: less under a cap, where what users have takes many times the room
/// once it is unpacked.
const MOST: u32 = 512;
const MOST_OF_USERS: u32 = 64;

/// The settings that the section follows from.
#[derive(Clone, Copy)]
pub struct ScaleContext<'a> {
    pub pipeline: &'a str,
    pub input: &'a InputParams,
    pub publish_delay: Duration,
    pub has_users: bool,
    pub is_for_operators: bool,
}

pub fn read_scale(
    document: &mut Document<'_>,
    table: Spanned<file::ScaleTable>,
    around: ScaleContext<'_>,
) -> Checked<scale::ScaleParams> {
    let place = table.span();
    let written = table.into_inner();
    let ScaleContext {
        pipeline,
        input,
        publish_delay,
        has_users,
        is_for_operators,
    } = around;
    let InputParams::Kafka(input) = input else {
        return Err(document.fault(
            place,
            "splits reading a topic",
            "remove it, or read from [input.kafka]",
        ));
    };
    let topic = document.required(&place, "topic", written.topic, values::name);
    let key_file = document.required(&place, "key_file", written.key_file, values::words);
    let group = document.optional(written.group, values::name);
    // What is left when the end of a window is known.
    let left = publish_delay.saturating_sub(input.clock_slack);
    let deadline = read_deadline(document, written.deadline, left);
    let most = document.optional(written.most_megabytes, values::count);
    let topic = topic?;
    let group = group?.map_or(pipeline.to_owned(), Spanned::into_inner);
    if [&input.topic, &input.clock].contains(&topic.get_ref()) {
        let hint = "announcements and partials need a topic of their own";
        return Err(document.fault(topic.span(), "is a topic of the input", hint));
    }
    let key_file = key_file?.into_inner().into();
    let deadline = deadline?.unwrap_or(left / 2);
    let default = if has_users { MOST_OF_USERS } else { MOST };
    let megabytes = most?.map_or(default, Spanned::into_inner);
    Ok(scale::ScaleParams {
        topic: topic.into_inner(),
        key_file,
        group,
        deadline,
        most: u64::from(megabytes) * 1_000_000,
        is_for_operators,
    })
}

fn read_deadline(
    document: &mut Document<'_>,
    written: Field<String>,
    left: Duration,
) -> Checked<Option<Duration>> {
    let Some(deadline) = document.optional(written, values::positive_duration)? else {
        return Ok(None);
    };
    if *deadline.get_ref() >= left {
        let what = format!(
            "must be shorter than windows.publish_delay without the slack, {}",
            bernstream_synopsis::clock::format_duration(left)
        );
        let hint = "the worker reads what is missing after the deadline, and needs time for that";
        return Err(document.fault(deadline.span(), what, hint));
    }
    Ok(Some(deadline.into_inner()))
}
