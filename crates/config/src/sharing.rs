//! What a pipeline says of the budget that it shares, and where that is.

use serde_json::json;

use crate::schemas;
use crate::settings::{Input, Period, Settings, Unit};
use bernstream_kafka::ledger::budget::topic::Params;
use bernstream_kafka::sink::Output;
use bernstream_kafka::source::record::{Declared, Format};
use bernstream_ledger::budget::entry::Shared;
use bernstream_synopsis::Adjacency;
use bernstream_synopsis::clock::micros;

impl Settings {
    /// The topic of the budget, on the cluster of the input; `None` without one.
    pub fn budget_topic(&self) -> Option<Params> {
        let budget = self.privacy.budget.as_ref()?;
        let (Input::Kafka(input), Output::Kafka { witness, .. }) = (&self.input, &self.output)
        else {
            return None;
        };
        Some(Params {
            broker: input.broker.clone(),
            topic: budget.topic.clone(),
            min_insync_replicas: witness.min_insync_replicas,
            power_loss: witness.power_loss,
        })
    }

    /// What all pipelines of the budget must say alike, where the input topic has the id `input`; `None` without a budget.
    pub fn shared(&self, input: String) -> Option<Shared> {
        let budget = self.privacy.budget.as_ref()?;
        let unit = match &self.privacy.unit {
            Unit::Record => json!("record"),
            // How many of a user's records count is each pipeline's own matter.
            Unit::User { column, per, .. } => {
                let per = match per {
                    Period::Every(length) => json!(micros(*length)),
                    Period::Ever => json!("ever"),
                };
                let mut unit = json!({ "column": column, "per": per });
                if let Some(kind) = self.columns.unit_type {
                    unit["type"] = json!(kind);
                }
                unit
            }
        };
        let adjacency = match self.privacy.adjacency {
            Adjacency::AddRemove => json!("add_remove"),
            Adjacency::ReplaceOne => {
                json!({ "records_per_window": self.privacy.records_per_window })
            }
        };
        Some(Shared {
            input,
            unit,
            time: self.columns.time.clone(),
            fields: schemas::shared(self),
            time_format: self
                .declared()
                .map(|declared| declared.time)
                .or(self.columns.time_format),
            blocks: self.blocks.into(),
            adjacency,
            total: budget.whole,
        })
    }

    /// What the configuration declares of records that have no schema of their own.
    fn declared(&self) -> Option<&Declared> {
        match &self.input {
            Input::Kafka(kafka) => match &kafka.format {
                Format::Records { declared, .. } => Some(declared),
                Format::Arrow => None,
            },
            Input::Files(_) => None,
        }
    }
}
