//! What worker and absorbers compare of their configurations: what bears on reading, and nothing else; and what absorbers, which have no
//! ledger, read for a worker whose ledger keeps an earlier choice of `"auto"`.

use std::fs;
use std::path::Path;

use bernstream_config::{WorkerSettings, canonical};
use bernstream_worker::metrics::{Metrics, MetricsDetail};
use serde_json::{Value, json};

use crate::absorbers::{NEVER, absorber, with_scale};
use crate::harness::kafka;
use crate::readers::{WINDOWS, configuration, published_of, send};

/// Releases of every kind of accumulator.
const FILE: &str = r#"
pipeline = "rides"

[input]
time = "started_at"
time_format = "milliseconds"
key = { column = "city", type = "text", values = ["11", "12"] }

[input.kafka]
brokers = "localhost:9092"
topic = "rides"
format = "json"
clock_slack = "45s"
readers = 2
lost = [{ partition = 1, from = 0, to = 12 }]

[windows]
origin = "2026-01-01T00:00:00Z"
length = "1h"
end = "2026-02-01T00:00:00Z"
grace = "5m"
ahead = "1m"
publish_delay = "3m"

[privacy]
unit = { user = { column = "rider", type = "integer", per = "1d", max_records_per_window = 5 } }
adjacency = "add_remove"
epsilon = 1.0
reserve = 0

[[release]]
name = "density"
epsilon = 0.01
degree = 10
order = 2
domain = [{ column = "kilometres", min = 0, max = 30, outside = "clamp" }]
density = { bandwidths = [2] }

[[release]]
name = "machine"
epsilon = 0.01
degree = 6
order = 1
label = { column = "fare", above = 20 }
domain = [{ column = "minutes", min = 0, max = 60, outside = "drop" }]
machine = { loss = "hinge", kernel = { gaussian = { bandwidth = 0.2 } }, c = 1, max_records = 30 }

[[release]]
name = "classes"
epsilon = 0.01
noise = "laplace"
step = [5]
spline = "box"
label = { column = "rating", values = [1, 2, 3] }
domain = [{ column = "kilometres", min = 0, max = 30, outside = "clamp" }]
cells = { bandwidths = [5] }

[[release]]
name = "sums"
epsilon = 0.01
degree = 4
order = 1
domain = [{ column = "minutes", min = 0, max = 60, outside = "clamp" }]
expression = { value = "exp(-((minutes - at.minutes) / 15)^2)" }

[output.kafka]
topic = "rides-synopses"
witness = "rides-witness"

[ledger]
path = "ledger"

[scale]
topic = "partials"
key_file = "key"

[serve]
listen = "127.0.0.1:9464"
"#;

/// What decides what windows keep of which messages.
const BEARS: &[(&str, &str)] = &[
    ("time = \"started_at\"", "time = \"ended_at\""),
    ("\"milliseconds\"", "\"seconds\""),
    ("{ column = \"city\"", "{ column = \"town\""),
    ("type = \"text\"", "type = \"integer\""),
    ("[\"11\", \"12\"]", "[\"12\", \"11\"]"),
    ("[\"11\", \"12\"]", "[\"11\"]"),
    (
        "clock_slack = \"45s\"",
        "clock_slack = \"45s\"\ntrust_producer_time = true",
    ),
    ("to = 12 }", "to = 13 }"),
    ("{ partition = 1, from = 0, to = 12 }", ""),
    ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"),
    ("length = \"1h\"", "length = \"2h\""),
    (
        "end = \"2026-02-01T00:00:00Z\"",
        "end = \"2026-03-01T00:00:00Z\"",
    ),
    ("grace = \"5m\"", "grace = \"6m\""),
    ("ahead = \"1m\"", "ahead = \"2m\""),
    (
        "{ column = \"rider\", type = \"integer\"",
        "{ column = \"rider\", type = \"text\"",
    ),
    ("{ column = \"rider\"", "{ column = \"driver\""),
    ("per = \"1d\"", "per = \"2d\""),
    ("max_records_per_window = 5", "max_records_per_window = 4"),
    (
        "{ user = { column = \"rider\", type = \"integer\", per = \"1d\", max_records_per_window = 5 } }",
        "\"record\"",
    ),
    // What windows keep, release by release.
    (
        "column = \"kilometres\", min = 0, max = 30",
        "column = \"miles\", min = 0, max = 30",
    ),
    (
        "column = \"kilometres\", min = 0, max = 30",
        "column = \"kilometres\", min = 5, max = 30",
    ),
    (
        "column = \"kilometres\", min = 0, max = 30",
        "column = \"kilometres\", min = 0, max = 35",
    ),
    (
        "max = 60, outside = \"drop\"",
        "max = 60, outside = \"clamp\"",
    ),
    (
        "density = { bandwidths = [2] }",
        "density = { bandwidths = [3] }",
    ),
    ("above = 20", "above = 21"),
    ("column = \"fare\"", "column = \"tip\""),
    ("max_records = 30", "max_records = 31"),
    ("step = [5]", "step = [2.5]"),
    ("spline = \"box\"", "spline = \"linear\""),
    ("values = [1, 2, 3]", "values = [1, 3, 2]"),
    ("values = [1, 2, 3]", "values = [1, 2]"),
    ("degree = 4", "degree = 5"),
    ("/ 15)^2", "/ 16)^2"),
    (
        "at.minutes) / 15)^2)\"",
        "at.minutes) / 15)^2)\", clip = { sup = 0.5, sum = 1 }",
    ),
];

/// The same of messages in Arrow.
const BEARS_IN_ARROW: &[(&str, &str)] = &[
    ("on_bad_message = \"stop\"", "on_bad_message = \"skip\""),
    ("offset = 17 }", "offset = 18 }"),
    ("{ partition = 0, offset = 17 }", ""),
];

/// What decides what becomes of it, or how it is read.
const BEARS_NOT: &[(&str, &str)] = &[
    ("pipeline = \"rides\"", "pipeline = \"others\""),
    (
        "brokers = \"localhost:9092\"",
        "brokers = \"127.0.0.1:9092\"",
    ),
    // Another topic has another id, which is announced.
    ("topic = \"rides\"", "topic = \"others\""),
    ("clock_slack = \"45s\"", "clock_slack = \"50s\""),
    (
        "clock_slack = \"45s\"",
        "clock_slack = \"45s\"\nclock = \"a-clock\"",
    ),
    ("readers = 2", "readers = 3"),
    ("publish_delay = \"3m\"", "publish_delay = \"4m\""),
    ("epsilon = 1.0", "epsilon = 2.0"),
    ("reserve = 0", "reserve = 0.1"),
    ("epsilon = 1.0", "epsilon = 1.0\ndelta = 1e-9"),
    ("name = \"density\"", "name = \"distance\""),
    (
        "name = \"density\"\nepsilon = 0.01",
        "name = \"density\"\nepsilon = 0.02",
    ),
    (
        "name = \"density\"\nepsilon = 0.01",
        "name = \"density\"\nshare = 0.02\nhorizon = \"365d\"",
    ),
    (
        "name = \"density\"",
        "name = \"density\"\ntitle = \"Distance\"",
    ),
    (
        "name = \"density\"",
        "name = \"density\"\nscale = \"paper\"",
    ),
    ("name = \"density\"", "name = \"density\"\nnoise = \"cube\""),
    (
        "name = \"density\"",
        "name = \"density\"\nwindows = { hopping = \"2h\" }",
    ),
    (
        "name = \"density\"",
        "name = \"density\"\nsmoothness = { lipschitz = [0.1] }",
    ),
    ("degree = 10\norder = 2", "degree = 11\norder = 2"),
    ("degree = 10\norder = 2", "degree = 10\norder = 3"),
    (
        "degree = 10\norder = 2",
        "degree = 10\nprivate_order = { epsilon = 0.01, candidates = [1, 2] }",
    ),
    ("degree = 6", "degree = 7"),
    ("loss = \"hinge\"", "loss = \"logistic\""),
    ("bandwidth = 0.2", "bandwidth = 0.3"),
    (", c = 1,", ", c = 2,"),
    ("topic = \"rides-synopses\"", "topic = \"synopses\""),
    ("path = \"ledger\"", "path = \"elsewhere\""),
    (
        "key_file = \"key\"",
        "key_file = \"other\"\nmost_megabytes = 9",
    ),
    (
        "listen = \"127.0.0.1:9464\"",
        "listen = \"127.0.0.1:9464\"\ndetail = \"operator\"",
    ),
];

fn reading(text: &str) -> String {
    WorkerSettings::parse(text, "f")
        .unwrap_or_else(|faults| panic!("{faults}"))
        .reading_digest()
}

#[test]
fn the_digest_of_reading_changes_with_what_bears_on_reading_and_with_nothing_else() {
    let json = "format = \"json\"";
    let arrow = FILE
        .replace("time_format = \"milliseconds\"\n", "")
        .replace(", type = \"text\"", "");
    let arrow = arrow.replace(", type = \"integer\"", "").replace(
        json,
        "skip = [{ partition = 0, offset = 17 }]\non_bad_message = \"stop\"",
    );
    assert_ne!(reading(&arrow), reading(FILE));
    let user = "{ user = { column = \"rider\", type = \"integer\", per = \"1d\", max_records_per_window = 5 } }";
    let records = FILE.replace(user, "\"record\"");
    let adjacency = [(
        "\"add_remove\"",
        "{ replace_one = { records_per_window = 5000 } }",
    )];
    let mut wrong = Vec::new();
    for (file, edits, changes) in [
        (FILE, BEARS, true),
        (&arrow, BEARS_IN_ARROW, true),
        (FILE, BEARS_NOT, false),
        (&arrow, BEARS_NOT, false),
        (&records, &adjacency, false),
    ] {
        for (from, to) in edits {
            assert!(file.contains(from), "{from}");
            match WorkerSettings::parse(&file.replace(from, to), "f") {
                Ok(settings) if (settings.reading_digest() != reading(file)) == changes => {}
                Ok(_) => wrong.push(format!("{from} -> {to}: must change it: {changes}")),
                Err(faults) => wrong.push(format!("{from} -> {to}: {faults}")),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let ours = reading(FILE);
    // Partials have the releases in the order of the file, and do not say which is which.
    let (head, density) = FILE.split_at(FILE.find("[[release]]").expect("releases"));
    let (density, rest) = density.split_at(density[1..].find("[[release]]").expect("another") + 1);
    let (others, tail) = rest.split_at(rest.find("[output.kafka]").expect("an output"));
    assert_ne!(reading(&[head, others, density, tail].concat()), ours);
    assert_ne!(reading(&[head, others, tail].concat()), ours);
}

/// If this fails, processes of this commit and of the last one do not read for one another, although nothing may have changed that bears
/// on reading: say so in the changelog, and write the new digest here. It changes with each version of the program.
#[test]
fn the_digest_of_reading_is_that_of_earlier_versions() {
    assert_eq!(reading(FILE)[..16], *"f49dd3a07ab55b72");
}

/// A configuration whose cells are left to `"auto"`, and the settings of a worker whose ledger has recorded others for it.
fn kept(text: &str, folder: &Path) -> (WorkerSettings, WorkerSettings) {
    fs::write(folder.join("bernstream.toml"), text).expect("it is written");
    let chosen = WorkerSettings::parse(text, "f").expect("a sound configuration");
    let mut recorded: Value =
        serde_json::from_str(&canonical::recorded_text(&chosen)).expect("JSON");
    let cells = recorded
        .pointer_mut("/releases/density/cells")
        .expect("cells");
    assert_ne!(
        *cells,
        json!({ "spline": "box", "steps": [23] }),
        "another choice than today's"
    );
    *cells = json!({ "spline": "box", "steps": [23] });
    let recorded = recorded.to_string();
    let kept =
        WorkerSettings::load_keeping(&folder.join("bernstream.toml"), |_| Some(recorded.clone()))
            .expect("settings");
    assert_eq!(
        canonical::recorded_text(&kept),
        recorded,
        "what the ledger has recorded holds"
    );
    (chosen, kept)
}

#[test]
fn absorbers_read_what_the_ledger_of_the_worker_keeps_of_auto() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let topic = send(&servers);
    let folders = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
    let [alone, together] = folders.each_ref().map(|folder| folder.path());
    let auto = |folder: &Path| {
        let text = configuration(&servers, &topic, folder, 1);
        let fixed = "epsilon = 1.0\ndegree = 10\norder = 1";
        assert!(text.contains(fixed));
        // The first release only.
        let open = "epsilon = 1.0\nnoise = \"cells\"\nspline = \"auto\"\nstep = \"auto\"\nexpected_records = 60";
        text.replacen(fixed, open, 1)
            .replace("publish_delay = \"300ms\"", "publish_delay = \"30m\"")
    };
    let expected = published_of(
        kept(&auto(alone), alone).1,
        alone,
        1,
        &metrics(),
        |worker, absorbed| (worker, absorbed),
    );
    assert_eq!(expected.len(), 6 * WINDOWS as usize);
    let (chosen, worker) = kept(&with_scale(&auto(together), together, NEVER), together);
    assert_ne!(
        chosen.reading_digest(),
        worker.reading_digest(),
        "what the absorbers would choose is something else"
    );
    let running = [absorber(together, None), absorber(together, None)];
    // Nothing is read here before the deadline, which never comes.
    let published = published_of(worker, together, 1, &metrics(), |worker, absorbed| {
        (worker, absorbed)
    });
    drop(running);
    assert!(published == expected);
}

fn metrics() -> Metrics {
    Metrics::new(MetricsDetail::Operator, "kept", "pure epsilon", "").expect("metrics")
}
