//! The terms of the budget that a pipeline shares, and its topic.

use serde_json::json;

use crate::settings::{InputParams, WorkerSettings};
use crate::{canonical, schemas};
use bernstream_kafka::ledger::budget::topic::OrderedTopicParams;
use bernstream_kafka::sink::OutputParams;
use bernstream_kafka::source::record::{TimeFormat, TopicFormat};
use bernstream_ledger::budget::entry::BudgetTerms;

impl WorkerSettings {
    /// The topic of the budget, on the cluster of the input; `None` without one.
    pub fn budget_topic(&self) -> Option<OrderedTopicParams> {
        let budget = self.privacy.budget.as_ref()?;
        let InputParams::Kafka(input) = &self.input else {
            return None;
        };
        let OutputParams::Kafka { witness, .. } = &self.output else {
            return None;
        };
        Some(OrderedTopicParams {
            broker: input.broker.clone(),
            topic: budget.topic.clone(),
            min_insync_replicas: witness.min_insync_replicas,
            power_loss: witness.power_loss,
        })
    }

    /// The facts that all pipelines of the budget must say alike, where the input topic has the id `input`; `None` without a budget.
    pub fn shared_budget_terms(&self, input: String) -> Option<BudgetTerms> {
        let budget = self.privacy.budget.as_ref()?;
        let mut unit = canonical::unit_text(&self.privacy.unit);
        if let Some(user) = unit.as_object_mut() {
            // How many of a user's records count is each pipeline's own matter.
            user.remove("max_records_per_window");
            if let Some(kind) = self.columns.unit_type {
                user.insert("type".to_owned(), json!(kind));
            }
        }
        Some(BudgetTerms {
            input,
            unit,
            time: self.columns.time.clone(),
            fields: schemas::shared(self),
            time_format: self.declared_time_format(),
            blocks: self.blocks.into(),
            adjacency: canonical::adjacency_text(&self.privacy),
            total: budget.whole,
        })
    }

    /// The form of event times: as declared of records, which have no schema of their own, or of columns.
    fn declared_time_format(&self) -> Option<TimeFormat> {
        if let InputParams::Kafka(kafka) = &self.input
            && let TopicFormat::Records { declared, .. } = &kafka.format
        {
            return Some(declared.time);
        }
        self.columns.time_format
    }
}
