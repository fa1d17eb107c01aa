//! What of the settings bears on reading: processes that read for one another compare a digest of it.
//!
//! It is not what affects privacy: prices, totals, noise and delays change nothing in what a window keeps of its records, while the
//! messages that an operator has given up do.

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::clock::micros;
use crate::config::canonical;
use crate::config::settings::{Input, Settings};
use crate::source::kafka::{self, OnBadMessage};
use crate::window::grid::Blocks;
use crate::window::{Cap, Form};

impl Settings {
    /// What each release takes of the records of a single window, in order.
    pub fn forms(&self) -> Vec<Form> {
        self.releases.iter().map(|release| self.form(release)).collect()
    }

    /// SHA-256 of everything that decides what a window keeps of the messages before an end, in hexadecimal digits: equal where that is
    /// the same. Programs of two versions never have the same.
    pub fn reading(&self) -> String {
        self.reading_into(&self.forms())
    }

    /// The same, if windows kept what `forms` say.
    pub fn reading_into(&self, forms: &[Form]) -> String {
        let windows = &self.windows;
        let mut about = json!({
            // How a message is decoded is the program's, and may change with it.
            "program": env!("CARGO_PKG_VERSION"),
            "time": self.columns.time,
            "ledger": { "unit": { "column": self.columns.unit } },
            "keys": { "column": self.columns.key, "values": windows.keys },
            "windows": canonical::membership(windows),
            "cap": windows.cap.as_ref().map(cap),
            "forms": forms.iter().map(|one| self.taken(one)).collect::<Vec<_>>(),
        });
        canonical::declared(self, &mut about);
        if let Input::Kafka(input) = &self.input {
            about["messages"] = messages(input);
        }
        Sha256::digest(about.to_string()).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// What was left to `"auto"`, and what is in use for it: [`Recorded`](super::recorded::Recorded) reads it, as it reads what a ledger
    /// has recorded.
    pub fn choices(&self) -> String {
        let asked = self.releases.iter().filter(|release| release.auto.is_some());
        let chosen: Map<String, Value> =
            asked.map(|release| (release.name.clone(), canonical::chosen(self, release))).collect();
        json!({ "releases": chosen }).to_string()
    }

    /// What one release takes of a record, and what it keeps of it. Columns go by their names.
    fn taken(&self, form: &Form) -> Value {
        let name = |at: &usize| self.columns.values.get(*at).cloned().unwrap_or_default();
        let columns: Vec<String> = form.columns.iter().map(name).collect();
        let (domain, label) = canonical::domain(&columns, &form.axes, form.label.as_ref());
        json!({ "domain": domain, "label": label, "keeps": format!("{:?}", form.accumulator) })
    }
}

fn cap(cap: &Cap) -> Value {
    let period = match cap.period {
        Blocks::Every(grid) => json!({ "origin": grid.origin(), "length": micros(grid.length()) }),
        Blocks::Forever => json!("ever"),
    };
    json!({ "period": period, "records": cap.records })
}

/// Which messages are read, and which are given up.
fn messages(input: &kafka::Params) -> Value {
    let lost: Vec<_> = input.lost.iter().map(|lost| (lost.partition, lost.from, lost.to)).collect();
    json!({
        "trust_producer_time": input.trust_producer_time,
        "skips_bad_messages": input.on_bad_message == OnBadMessage::Skip,
        "skip": input.skip,
        "lost": lost,
    })
}
