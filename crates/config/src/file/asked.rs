//! What people ask for under names that are no keys here, and what does that.

use crate::text::AskedName;

pub const ASKED: &[AskedName] = &[
    AskedName {
        table: Some("release"),
        names: &["count", "users", "records", "table", "distinct"],
        key: Some("counts"),
        instead: "[release.counts] tells of each key how many users and records there are, and the sum, mean and variance of a column",
    },
    AskedName {
        table: Some("release"),
        names: &["sum", "sums", "mean", "means", "average", "avg"],
        key: Some("counts"),
        instead: "[release.counts] has the sum and the mean of a column for each key; [release.moments] answers sums and means of functions of \
                  the columns, [release.expression] is one sum of your own, and [release.cells] with a `label` has its mean in ranges",
    },
    AskedName {
        table: Some("release"),
        names: &["histogram", "histograms", "heatmap", "bins"],
        key: Some("cells"),
        instead: "[release.cells] has noisy counts of cells, as wide as `step`; `bernstream query FILE --range 15..120` counts a range",
    },
    AskedName {
        table: Some("release"),
        names: &["quantile", "percentile", "percentiles", "median", "cdf"],
        key: Some("quantiles"),
        instead: "[release.quantiles] tells quantiles of a column for each key; [release.cells] has a curve and its quantiles",
    },
    AskedName {
        table: Some("release.counts.of"),
        names: &[
            "median",
            "quantile",
            "quantiles",
            "percentile",
            "percentiles",
            "p50",
        ],
        key: None,
        instead: "[release.quantiles] tells quantiles of a column for each key, in a release of its own",
    },
    AskedName {
        table: Some("release.counts.of"),
        names: &["std", "stddev", "sd", "deviation", "var"],
        key: None,
        instead: "write \"variance\": readers take its root as well, the `deviation`",
    },
    AskedName {
        table: Some("release.counts.of"),
        names: &["avg", "average"],
        key: None,
        instead: "write \"mean\"",
    },
    AskedName {
        table: Some("release.counts.of"),
        names: &["count", "counts", "rows"],
        key: None,
        instead: "write \"records\"",
    },
    AskedName {
        table: Some("release.quantiles"),
        names: &["max_records", "per_user"],
        key: None,
        instead: "remove it: of a user the mean of its values in a key counts, so that records need no cap",
    },
    AskedName {
        table: Some("release"),
        names: &["variance", "deviation", "stddev"],
        key: Some("counts"),
        instead: "[release.counts] has the \"variance\" and the standard deviation of a column for each key; [release.moments] answers sums and \
                  means of functions of the columns, such as their squares",
    },
    AskedName {
        table: Some("release"),
        names: &["kde", "curve"],
        key: Some("density"),
        instead: "a curve of how records are distributed is [release.density], or [release.cells] at any bandwidth",
    },
    AskedName {
        table: Some("release"),
        names: &["svm", "huber", "ridge", "classifier"],
        key: Some("machine"),
        instead: "[release.machine] has it as its `loss`; [release.logistic] and [release.bayes] are other classifiers",
    },
    AskedName {
        table: None,
        names: &[
            "where",
            "filter",
            "condition",
            "predicate",
            "sql",
            "query",
            "select",
        ],
        key: None,
        instead: "records are not selected by a condition: list the keys that count in `input.key`, let a domain leave out what lies outside \
                  (outside = \"drop\"), or filter before the topic or the file is written",
    },
    AskedName {
        table: None,
        names: &["group_by", "groupby", "partition_by"],
        key: None,
        instead: "`input.key` names the column and lists its values: each gets a synopsis of its own",
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::known_keys;

    #[test]
    fn what_does_it_is_a_key_and_what_is_asked_for_is_none() {
        let keys = known_keys();
        for AskedName {
            table, names, key, ..
        } in ASKED
        {
            let is_known = |name: &str| {
                keys.form(&format!("{}.{name}", table.unwrap_or("input")))
                    .is_some()
            };
            assert!(key.is_none_or(is_known), "{key:?}");
            assert_eq!(names.iter().find(|name| is_known(name)), None);
        }
    }
}
