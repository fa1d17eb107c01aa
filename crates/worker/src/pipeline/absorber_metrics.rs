//! Counts for operators of what absorbers have sent. It shows how much was recorded: nothing of it is in the default metrics.

use std::collections::BTreeSet;

use crate::metrics::Metrics;
use crate::scale::AddedPiece;

/// The most absorbers with series of their own: whoever has the key can send any name.
const MOST_ABSORBER_NAMES: usize = 1_000;
/// The name of all others.
const OTHER_ABSORBERS: &str = "others";

pub(super) struct AbsorberMetrics {
    metrics: Metrics,
    names: BTreeSet<String>,
}

impl AbsorberMetrics {
    pub fn new(metrics: Metrics) -> Self {
        AbsorberMetrics {
            metrics,
            names: BTreeSet::new(),
        }
    }

    /// Returns whether what follows from the records may be told.
    pub fn are_shown(&self) -> bool {
        self.metrics.operator.is_some()
    }

    /// A piece of so many bytes has come from an absorber.
    pub fn count_piece(&mut self, absorber: String, bytes: u64, added: AddedPiece) {
        let name = self.series_name(&absorber).to_owned();
        let Some(operator) = &self.metrics.operator else {
            return;
        };
        operator
            .partial_bytes
            .with_label_values(&[&name])
            .inc_by(bytes);
        let fate = match added {
            AddedPiece::Nothing | AddedPiece::Known => None,
            AddedPiece::Complete => Some("taken"),
            AddedPiece::Broken => Some("broken"),
            AddedPiece::Differing => Some("differing"),
            AddedPiece::Full => Some("no_room"),
        };
        if let Some(fate) = fate {
            operator
                .partials
                .with_label_values(&[name.as_str(), fate])
                .inc();
        }
        self.names.insert(name);
    }

    /// Counts what an absorber has sent whole and is no partial.
    pub fn count_refused(&self, absorber: &str) {
        if let Some(operator) = &self.metrics.operator {
            operator
                .partials
                .with_label_values(&[self.series_name(absorber), "refused"])
                .inc();
        }
    }

    fn series_name<'a>(&self, absorber: &'a str) -> &'a str {
        if self.names.contains(absorber) || self.names.len() < MOST_ABSORBER_NAMES {
            absorber
        } else {
            OTHER_ABSORBERS
        }
    }

    /// Shows how many partitions are read here.
    pub fn show_read_here(&self, partitions: usize) {
        if let Some(operator) = &self.metrics.operator {
            operator
                .read_here
                .set(i64::try_from(partitions).unwrap_or(i64::MAX));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::MetricsDetail;

    fn shown(detail: MetricsDetail) -> String {
        let metrics = Metrics::new(detail, "p", "pure epsilon", "").unwrap();
        let mut absorbers = AbsorberMetrics::new(metrics.clone());
        absorbers.count_piece("one".to_owned(), 5, AddedPiece::Nothing);
        absorbers.count_piece("one".to_owned(), 7, AddedPiece::Complete);
        absorbers.show_read_here(3);
        (0..2 * MOST_ABSORBER_NAMES)
            .for_each(|number| absorbers.count_piece(number.to_string(), 1, AddedPiece::Differing));
        metrics.render_text().unwrap()
    }

    #[test]
    fn what_absorbers_send_is_shown_to_operators_only() {
        let shown_to_operators = shown(MetricsDetail::Operator);
        for line in [
            r#"bernstream_partial_bytes_total{absorber="one",pipeline="p"} 12"#,
            r#"bernstream_partials_total{absorber="one",fate="taken",pipeline="p"} 1"#,
            r#"bernstream_partitions_read_here{pipeline="p"} 3"#,
        ] {
            assert!(shown_to_operators.contains(line), "{line}");
        }
        assert!(!shown(MetricsDetail::Safe).contains("partial"));
        let series = shown_to_operators
            .lines()
            .filter(|line| line.starts_with("bernstream_partial_bytes_total{"));
        assert_eq!(
            series.count(),
            MOST_ABSORBER_NAMES + 1,
            "no name that somebody makes up gets a series without end"
        );
    }
}
