//! Rules for a shared budget and the rest of the file.

use std::ops::Range;

use crate::read::input::InputSettings;
use crate::read::output::OutputSettings;
use crate::settings::{InputParams, PrivacySettings};
use crate::text::Document;
use bernstream_kafka::sink::OutputParams;
use bernstream_synopsis::description::PrivacyDefinition;

/// A share belongs to a witness topic, and the whole to an input topic; the budget is a topic of its own beside the input.
pub fn shares_through_a_topic(
    document: &mut Document<'_>,
    place: Range<usize>,
    privacy: &PrivacySettings,
    input: &InputSettings,
    output: &OutputSettings,
) {
    let Some(budget) = &privacy.budget else {
        return;
    };
    if let PrivacyDefinition::Random(_) = privacy.definition {
        let what = "a sampled sensitivity is random differential privacy, which does not compose with that of other pipelines";
        document.fault(place, what, "remove `budget`: its total is its own");
        return;
    }
    let InputParams::Kafka(from) = &input.from else {
        let what = "is shared by the pipelines of an input topic, and files are none: a copy of them would have another budget";
        document.fault(
            place,
            what,
            "remove `budget`: nothing counts what several pipelines release of the same files",
        );
        return;
    };
    let OutputParams::Kafka { sink, witness } = &output.to else {
        let what = "a share belongs to a witness topic, and an output of files has none";
        document.fault(place, what, "publish to [output.kafka], or remove `budget`");
        return;
    };
    let is_near = sink.broker.servers == from.broker.servers;
    let role = if budget.topic == from.topic {
        "input"
    } else if budget.topic == from.clock {
        "clock"
    } else if is_near && budget.topic == sink.topic {
        "output"
    } else if is_near && budget.topic == witness.topic {
        "witness"
    } else {
        return;
    };
    document.fault(
        place,
        format!("is the {role} topic"),
        "a budget is a topic of its own, of one partition",
    );
}
