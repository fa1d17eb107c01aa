//! What the program says of mistakes that people make: each is made, and `docs/evidence/mistakes.md` shows the answer and a verdict.
//!
//! `BERNSTREAM_WRITE_MISTAKES=1` writes the page anew.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use rdkafka::producer::{BaseRecord, Producer};

use crate::harness::PATIENCE;
use crate::harness::http::free_address;
use crate::harness::kafka;
use crate::harness::setup::Setup;

const PAGE: &str = "docs/evidence/mistakes.md";
const HEAD: &str = "# Mistakes, and what the program says

Each row is a mistake that people make with programs like this one. `tests/it/mistakes.rs` makes it, in a folder of its own, and compares the first line of
the answer with this page, so that neither can change alone. Below that line `check` shows the place in the file, underlined, and mostly a hint.
[What an error means](../../config) has the remedies.

The verdict is ours, by three questions: is it told before it does harm, does the line say where it is, and does it say what to do?
";

/// One mistake: what it is, the verdict on the answer, and how it is made.
struct Mistake {
    what: &'static str,
    verdict: &'static str,
    /// What is said; `None` where it cannot be made without a broker and there is none.
    made: fn(&Place) -> Option<String>,
}

/// A folder to make it in.
struct Place(tempfile::TempDir);

impl Place {
    fn path(&self) -> &Path {
        self.0.path()
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("it can be made");
        fs::write(path, text).expect("it can be written");
    }

    /// The line of an answer that says what is wrong; what is of this machine is left out.
    fn said(&self, arguments: &[&str]) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bernstream"));
        let output = command
            .args(arguments)
            .current_dir(self.path())
            .output()
            .expect("it runs");
        let said = [output.stdout, output.stderr]
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let lines = || said.iter().flat_map(|text| text.lines()).map(str::trim);
        let of =
            |mark: &str| lines().find_map(|line| line.find(mark).and_then(|at| line.get(at..)));
        let line = of("fault  ")
            .or_else(|| of("error: "))
            .or_else(|| of("warning: "))
            .unwrap_or("nothing is said");
        let line = line.replace(&self.path().display().to_string(), "FOLDER");
        // Identities are drawn.
        let plain = |word: &str| match word.trim_end_matches([',', ';']) {
            long if long.len() >= 32 && long.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
                word.replace(long, "…")
            }
            _ => word.to_owned(),
        };
        line.split_whitespace()
            .map(plain)
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// `check --offline` of a file with something else in one place.
    fn checked(&self, text: &str, old: &str, new: &str) -> Option<String> {
        assert!(text.contains(old), "{old}");
        self.write("c.toml", text.replacen(old, new, 1));
        Some(self.said(&["check", "--offline", "c.toml"]))
    }

    /// The example of files, of three days and five records.
    fn worked(&self) -> String {
        let text = files()
            .replace("2014-01-01T05", "2013-01-04T05")
            .replace("/files\"", "\"");
        let text = text.replace(
            "column = \"origin\",",
            "column = \"origin\", type = \"text\",",
        );
        let text = text
            .replace("degree = 40", "degree = 8")
            .replace("bandwidths = [10]", "bandwidths = [40]");
        self.write("c.toml", &text);
        let records = "time,origin,dep_delay\n2013-01-01T06:00:00Z,EWR,3\n2013-01-02T06:00:00Z,JFK,5\n2013-01-03T06:00:00Z,LGA,7\n";
        self.write("flights/a.csv", records);
        text
    }

    /// A golden synopsis in `s.json`.
    fn synopsis(&self, case: &str) {
        let text = fs::read_to_string(format!("clients/golden/{case}.json")).expect("the case");
        let case: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        self.write("s.json", case["synopsis"].to_string());
    }
}

/// A lattice is found at once, and is none of what is looked at here.
fn quick(text: &str) -> String {
    let lines = text
        .lines()
        .filter(|line| !line.starts_with("expected_records"));
    let lines = lines.map(|line| {
        if line.starts_with("noise = \"auto\"") {
            "degree = 40\norder = 4"
        } else {
            line
        }
    });
    lines.collect::<Vec<_>>().join("\n") + "\n"
}

fn files() -> String {
    include_str!("../../config/files.toml").to_owned()
}

fn flights() -> String {
    quick(include_str!("../../config/flights.toml"))
}

fn users() -> String {
    include_str!("../../config/users.toml").to_owned()
}

fn rides() -> String {
    quick(include_str!("../../config/rides.toml"))
}

fn active_users() -> String {
    include_str!("../../config/active-users.toml").to_owned()
}

fn revenue() -> String {
    include_str!("../../config/revenue.toml").to_owned()
}

const IN_PLACE: &str = "good: place and remedy";
const WARNED: &str = "good: it may be meant, so it is a warning";

const CONFIGURATION: &[Mistake] = &[
    Mistake {
        what: "a key is misspelt",
        verdict: IN_PLACE,
        made: |at| at.checked(&files(), "degree = 40", "degre = 40"),
    },
    Mistake {
        what: "a key stands in another table",
        verdict: IN_PLACE,
        made: |at| at.checked(&files(), "adjacency =", "length = \"1d\"\nadjacency ="),
    },
    Mistake {
        what: "a number in quotes",
        verdict: IN_PLACE,
        made: |at| at.checked(&files(), "degree = 40", "degree = \"40\""),
    },
    Mistake {
        what: "a duration in seconds, without a unit",
        verdict: IN_PLACE,
        made: |at| at.checked(&files(), "length = \"1d\"", "length = 86400"),
    },
    Mistake {
        what: "windows of a month",
        verdict: "good: no month has a fixed length, and the units are listed",
        made: |at| at.checked(&files(), "length = \"1d\"", "length = \"1mo\""),
    },
    Mistake {
        what: "windows of no length",
        verdict: IN_PLACE,
        made: |at| at.checked(&files(), "length = \"1d\"", "length = \"0s\""),
    },
    Mistake {
        what: "a time without its offset from UTC",
        verdict: IN_PLACE,
        made: |at| at.checked(&files(), "2013-01-01T05:00:00Z", "2013-01-01T05:00:00"),
    },
    Mistake {
        what: "a date where a time belongs",
        verdict: IN_PLACE,
        made: |at| at.checked(&files(), "2013-01-01T05:00:00Z", "2013-01-01"),
    },
    Mistake {
        what: "text without quotes",
        verdict: "mended: the parser's words are odd, so the hint names the quotes",
        made: |at| at.checked(&files(), "pipeline = \"flights\"", "pipeline = flights"),
    },
    Mistake {
        what: "YAML instead of TOML",
        verdict: "mended: the hint shows the form",
        made: |at| at.checked(&files(), "pipeline = ", "pipeline: "),
    },
    Mistake {
        what: "an empty file",
        verdict: "good: all that is required is listed, each with its form",
        made: |at| at.checked(&files(), &files(), ""),
    },
    Mistake {
        what: "a second [release] instead of [[release]]",
        verdict: IN_PLACE,
        made: |at| at.checked(&files(), "[output]", "[release]\nname = \"b\"\n[output]"),
    },
    Mistake {
        what: "a file that is not there",
        verdict: "good: the name that was tried",
        made: |at| Some(at.said(&["check", "--offline", "c.toml"])),
    },
    Mistake {
        what: "no epsilon",
        verdict: IN_PLACE,
        made: |at| at.checked(&files(), "epsilon = 1.0\n\n", "\n"),
    },
    Mistake {
        what: "epsilon below 0",
        verdict: IN_PLACE,
        made: |at| at.checked(&files(), "epsilon = 1.0\n\n", "epsilon = -1\n\n"),
    },
    Mistake {
        what: "epsilon in per cent",
        verdict: IN_PLACE,
        made: |at| at.checked(&files(), "epsilon = 1.0\n\n", "epsilon = \"100 %\"\n\n"),
    },
    Mistake {
        what: "an epsilon that protects nobody",
        verdict: WARNED,
        made: |at| at.checked(&files(), "epsilon = 1.0\n\n", "epsilon = 100.0\n\n"),
    },
    Mistake {
        what: "a window that costs more than there is",
        verdict: IN_PLACE,
        made: |at| at.checked(&files(), "epsilon = 1.0\n\n", "epsilon = 0.5\n\n"),
    },
    Mistake {
        what: "Gaussian noise without a delta",
        verdict: IN_PLACE,
        made: |at| at.checked(&files(), "order = 4", "order = 4\nnoise = \"gaussian\""),
    },
    Mistake {
        what: "a law of noise that there is not",
        verdict: IN_PLACE,
        made: |at| at.checked(&files(), "order = 4", "order = 4\nnoise = \"normal\""),
    },
    Mistake {
        what: "an adjacency that is misspelt",
        verdict: IN_PLACE,
        made: |at| at.checked(&files(), "add_remove", "add-remove"),
    },
    Mistake {
        what: "users without a period",
        verdict: IN_PLACE,
        made: |at| at.checked(&users(), "per = \"1d\", ", ""),
    },
    Mistake {
        what: "users without a cap",
        verdict: IN_PLACE,
        made: |at| at.checked(&users(), ", max_records_per_window = 20", ""),
    },
    Mistake {
        what: "counts by key without the cap on keys",
        verdict: IN_PLACE,
        made: |at| at.checked(&revenue(), "max_keys = 3\n", ""),
    },
    Mistake {
        what: "sums without a bound of what a user adds",
        verdict: "good: the hint has the form; `per_user` is in the page of functions",
        made: |at| at.checked(&revenue(), "per_user = { min = 0, max = 300 }", ""),
    },
    Mistake {
        what: "users are counted where records are protected",
        verdict: "good: both ways out",
        made: |at| {
            at.checked(
                &revenue(),
                "unit = { user = { column = \"customer\", type = \"text\", per = \"1d\" } }",
                "unit = \"record\"",
            )
        },
    },
    Mistake {
        what: "parts of a price that leave some over",
        verdict: IN_PLACE,
        made: |at| at.checked(&revenue(), "sum = 0.7", "sum = 0.6"),
    },
    Mistake {
        what: "the mean of sums that are bounded for a user",
        verdict: "good: both ways out",
        made: |at| {
            at.checked(
                &revenue(),
                "of = [\"sum\", \"users\"]",
                "of = [\"mean\", \"sum\", \"users\"]",
            )
        },
    },
    Mistake {
        what: "a domain of counts",
        verdict: "good: where it belongs",
        made: |at| {
            at.checked(
                &revenue(),
                "[release.counts]",
                "domain = [{ column = \"amount\", min = 0, max = 9, outside = \"clamp\" }]\n\n[release.counts]",
            )
        },
    },
    Mistake {
        what: "one statistic without brackets",
        verdict: "good: the hint has the brackets",
        made: |at| at.checked(&active_users(), "of = [\"users\"]", "of = \"users\""),
    },
    Mistake {
        what: "the cap of densities for counts",
        verdict: "good: the caps that take its place are named in the hint",
        made: |at| {
            at.checked(
                &active_users(),
                "per = \"1d\"",
                "per = \"1d\", max_records_per_window = 20",
            )
        },
    },
    Mistake {
        what: "a budget that pays for few windows of a user's day",
        verdict: WARNED,
        made: |at| at.checked(&users(), "epsilon = 0.04", "epsilon = 0.5"),
    },
    Mistake {
        what: "the ends of a domain exchanged",
        verdict: IN_PLACE,
        made: |at| at.checked(&files(), "min = -30, max = 180", "min = 180, max = -30"),
    },
    Mistake {
        what: "no word on what lies outside of a domain",
        verdict: IN_PLACE,
        made: |at| at.checked(&files(), ", outside = \"clamp\"", ""),
    },
    Mistake {
        what: "another word for it",
        verdict: IN_PLACE,
        made: |at| at.checked(&files(), "\"clamp\"", "\"clip\""),
    },
    Mistake {
        what: "a release of nothing",
        verdict: "good: all functions are named",
        made: |at| at.checked(&files(), "[release.density]\nbandwidths = [10]\n", ""),
    },
    Mistake {
        what: "a release of two functions",
        verdict: IN_PLACE,
        made: |at| {
            at.checked(
                &files(),
                "[release.density]",
                "[release.moments]\nfrequencies = 8\n\n[release.density]",
            )
        },
    },
    Mistake {
        what: "one bandwidth without brackets",
        verdict: IN_PLACE,
        made: |at| at.checked(&files(), "bandwidths = [10]", "bandwidths = 10"),
    },
    Mistake {
        what: "two bandwidths for one axis",
        verdict: IN_PLACE,
        made: |at| at.checked(&files(), "bandwidths = [10]", "bandwidths = [10, 5]"),
    },
    Mistake {
        what: "a bandwidth below 0",
        verdict: IN_PLACE,
        made: |at| at.checked(&files(), "bandwidths = [10]", "bandwidths = [-10]"),
    },
    Mistake {
        what: "a bandwidth that falls between the points of the lattice",
        verdict: WARNED,
        made: |at| at.checked(&files(), "bandwidths = [10]", "bandwidths = [1]"),
    },
    Mistake {
        what: "a degree beyond all bounds",
        verdict: "mended: it pointed at the bandwidths",
        made: |at| at.checked(&files(), "degree = 40", "degree = 100000"),
    },
    Mistake {
        what: "four axes",
        verdict: IN_PLACE,
        made: |at| {
            let more = ["a", "b", "c"].map(|name| {
                format!("{{ column = \"{name}\", min = 0, max = 1, outside = \"clamp\" }}, ")
            });
            at.checked(
                &files(),
                "domain = [",
                &format!("domain = [{}", more.concat()),
            )
        },
    },
    Mistake {
        what: "two releases of one name",
        verdict: IN_PLACE,
        made: |at| {
            let text = files();
            let (_, release) = text.split_once("[release]").expect("a release");
            let (release, _) = release.split_once("[output]").expect("an output");
            let cheap = release.replace("epsilon = 1.0", "epsilon = 0.5");
            let twice = format!("[[release]]{cheap}[[release]]{cheap}");
            at.checked(&text, &format!("[release]{release}"), &twice)
        },
    },
    Mistake {
        what: "keys that the data should tell",
        verdict: "good: keys are public, and have to be listed",
        made: |at| at.checked(&files(), ", values = [\"EWR\", \"JFK\", \"LGA\"]", ""),
    },
    Mistake {
        what: "no keys in the list",
        verdict: IN_PLACE,
        made: |at| at.checked(&files(), "[\"EWR\", \"JFK\", \"LGA\"]", "[]"),
    },
    Mistake {
        what: "a key twice",
        verdict: IN_PLACE,
        made: |at| at.checked(&files(), "\"JFK\"", "\"EWR\""),
    },
    Mistake {
        what: "files without an end",
        verdict: IN_PLACE,
        made: |at| at.checked(&files(), "end = \"2014-01-01T05:00:00Z\"\n", ""),
    },
    Mistake {
        what: "an end within a window",
        verdict: "good: the hint has the ends before and behind",
        made: |at| at.checked(&files(), "2014-01-01T05", "2014-01-01T06"),
    },
    Mistake {
        what: "synopses go to the topic that is read",
        verdict: IN_PLACE,
        made: |at| at.checked(&flights(), "\"flights-synopses\"", "\"flights\""),
    },
    Mistake {
        what: "synopses go to the folder that is read",
        verdict: IN_PLACE,
        made: |at| at.checked(&files(), "\"out/files\"", "\"flights\""),
    },
    Mistake {
        what: "a topic with a blank in its name",
        verdict: IN_PLACE,
        made: |at| at.checked(&flights(), "topic = \"flights\"", "topic = \"my flights\""),
    },
    Mistake {
        what: "brokers as a URL",
        verdict: "mended: it was taken, and nothing answered",
        made: |at| at.checked(&flights(), "localhost:9092", "kafka://localhost:9092"),
    },
    Mistake {
        what: "brokers without a port",
        verdict: "mended: it was taken",
        made: |at| at.checked(&flights(), "localhost:9092", "localhost"),
    },
    Mistake {
        what: "a variable of the environment",
        verdict: "mended: it was taken as it stands",
        made: |at| at.checked(&files(), "out/files", "${OUT}/files"),
    },
    Mistake {
        what: "an expression for a column",
        verdict: "mended: nothing was said; a column may have such a name, so it is a warning",
        made: |at| at.checked(&files(), "\"dep_delay\"", "\"log(dep_delay)\""),
    },
    Mistake {
        what: "a path of Arrow for a column",
        verdict: "mended: nothing was said; a column may have such a name, so it is a warning",
        made: |at| at.checked(&flights(), "\"dep_delay\"", "\"after.dep_delay\""),
    },
    Mistake {
        what: "a delta that nothing needs",
        verdict: "mended: nothing was said",
        made: |at| {
            at.checked(
                &files(),
                "epsilon = 1.0\n\n",
                "epsilon = 1.0\ndelta = 1e-9\n\n",
            )
        },
    },
    Mistake {
        what: "keys without quotes",
        verdict: "mended: an empty list was told first",
        made: |at| at.checked(&files(), "[\"EWR\", \"JFK\", \"LGA\"]", "[1, 2]"),
    },
    Mistake {
        what: "a file of keys with a header, quotes and commas",
        verdict: "mended: they were taken for keys",
        made: |at| {
            at.write("keys.txt", "origin\n\"EWR\"\nJFK,Kennedy\n");
            at.checked(
                &files(),
                "values = [\"EWR\", \"JFK\", \"LGA\"]",
                "values_file = \"keys.txt\"",
            )
        },
    },
    Mistake {
        what: "no slack for the clocks of brokers",
        verdict: IN_PLACE,
        made: |at| at.checked(&flights(), "clock_slack = \"45s\"", "clock_slack = \"0s\""),
    },
    Mistake {
        what: "publishing before the end of a window is known",
        verdict: IN_PLACE,
        made: |at| {
            at.checked(
                &flights(),
                "publish_delay = \"1m\"",
                "publish_delay = \"10s\"",
            )
        },
    },
    Mistake {
        what: "a producer that waits longer than a window does",
        verdict: IN_PLACE,
        made: |at| {
            at.checked(
                &flights(),
                "producer_delay = \"10m\"",
                "producer_delay = \"2h\"",
            )
        },
    },
    Mistake {
        what: "JSON, and no type of the key",
        verdict: IN_PLACE,
        made: |at| at.checked(&rides(), " type = \"text\",", ""),
    },
    Mistake {
        what: "a format of messages that there is not",
        verdict: "mended: types of keys were called wrong first",
        made: |at| at.checked(&rides(), "format = \"json\"", "format = \"csv\""),
    },
    Mistake {
        what: "an abbreviation for milliseconds",
        verdict: IN_PLACE,
        made: |at| at.checked(&rides(), "[input]\n", "[input]\ntime_format = \"ms\"\n"),
    },
    Mistake {
        what: "an Avro schema that is elsewhere",
        verdict: "good: the hint says what paths are relative to",
        made: |at| {
            at.checked(
                &rides(),
                "\"json\"",
                "{ avro = { schemas = [{ id = 7, file = \"ride.avsc\" }] } }",
            )
        },
    },
    Mistake {
        what: "skipping messages that are one record each",
        verdict: IN_PLACE,
        made: |at| {
            at.checked(
                &rides(),
                "format = \"json\"",
                "on_bad_message = \"skip\"\nformat = \"json\"",
            )
        },
    },
];

const INPUT: &[Mistake] = &[
    Mistake {
        what: "a folder of records that is not there",
        verdict: "good: the path that was tried",
        made: |at| {
            at.write("c.toml", files());
            Some(at.said(&["check", "c.toml"]))
        },
    },
    Mistake {
        what: "a file that lacks a column",
        verdict: "good: the file, the column, and those that it has",
        made: |at| {
            at.worked();
            at.write(
                "flights/a.csv",
                "time,origin,delay\n2013-01-01T06:00:00Z,EWR,3\n",
            );
            Some(at.said(&["check", "c.toml"]))
        },
    },
    Mistake {
        what: "Parquet whose event times are integers",
        verdict: "good: `time_format` is named",
        made: |at| {
            at.write("c.toml", files());
            let time: ArrayRef = Arc::new(Int64Array::from(vec![1_357_020_000]));
            let origin: ArrayRef = Arc::new(StringArray::from(vec!["EWR"]));
            let delay: ArrayRef = Arc::new(Float64Array::from(vec![3.0]));
            let records = RecordBatch::try_from_iter([
                ("time", time),
                ("origin", origin),
                ("dep_delay", delay),
            ]);
            let records = records.expect("records");
            let mut bytes = Vec::new();
            let mut writer =
                ArrowWriter::try_new(&mut bytes, records.schema(), None).expect("a writer");
            writer.write(&records).expect("it is written");
            writer.close().expect("it is closed");
            at.write("flights/a.parquet", bytes);
            Some(at.said(&["check", "c.toml"]))
        },
    },
    Mistake {
        what: "a spreadsheet in the folder",
        verdict: "good: what can be read",
        made: |at| {
            at.worked();
            fs::remove_file(at.path().join("flights/a.csv")).expect("it was there");
            at.write("flights/a.xlsx", "PK");
            Some(at.said(&["check", "c.toml"]))
        },
    },
    Mistake {
        what: "a file that was copied in its folder",
        verdict: "good: both names, and what happens with the records",
        made: |at| {
            at.worked();
            fs::copy(
                at.path().join("flights/a.csv"),
                at.path().join("flights/a (copy).csv"),
            )
            .expect("it is copied");
            Some(at.said(&["check", "c.toml"]))
        },
    },
    Mistake {
        what: "the folder of a Delta table",
        verdict: "good: the format, and what to do instead",
        made: |at| {
            at.worked();
            at.write("flights/_delta_log/00000000000000000000.json", "{}");
            Some(at.said(&["check", "c.toml"]))
        },
    },
    Mistake {
        what: "a broker that does not answer",
        verdict: "good: the address, and why",
        made: |at| {
            let address = free_address();
            at.write("c.toml", flights().replace("localhost:9092", &address));
            Some(at.said(&["check", "c.toml"]).replace(&address, "ADDRESS"))
        },
    },
    Mistake {
        what: "a topic that is not there",
        verdict: "good: the topic, and how to create it",
        made: |at| {
            let servers = kafka::broker()?;
            at.write(
                "c.toml",
                flights()
                    .replace("localhost:9092", &servers)
                    .replace("\"flights", "\"no-flights"),
            );
            Some(at.said(&["check", "c.toml"]).replace(&servers, "ADDRESS"))
        },
    },
    Mistake {
        what: "a controller in the place of a broker",
        verdict: "mended: it gave a code of the client's library",
        made: |at| {
            // `tests/kafka.sh` gives it the next port.
            let servers = kafka::broker()?;
            let (host, port) = servers.rsplit_once(':')?;
            let controller = format!("{host}:{}", port.parse::<u16>().ok()? + 1);
            at.write("c.toml", flights().replace("localhost:9092", &controller));
            Some(
                at.said(&["check", "c.toml"])
                    .replace(&controller, "ADDRESS"),
            )
        },
    },
    Mistake {
        what: "what is no file of records is produced",
        verdict: "mended: its code was that of a fault in the program",
        made: |at| {
            at.write("make.py", "print(1)");
            Some(at.said(&[
                "produce",
                "make.py",
                "--brokers",
                "localhost:9092",
                "--topic",
                "t",
            ]))
        },
    },
    Mistake {
        what: "Avro of a schema that was registered later",
        verdict: "good, with `check --sample`: the id; without it such records are dropped one by one, and where `registry` names the registry, a metric, an alert and a line of `check` say so",
        made: |at| {
            let field = |name: &str, kind: &str| format!(r#"{{"name":"{name}","type":"{kind}"}}"#);
            let fields = [
                field("time", "long"),
                field("key", "string"),
                field("value", "double"),
            ]
            .join(",");
            at.write(
                "ride.avsc",
                format!(r#"{{"type":"record","name":"ride","fields":[{fields}]}}"#),
            );
            let file = at.path().join("ride.avsc").display().to_string();
            let format = format!(
                "format = {{ avro = {{ schemas = [{{ id = 7, file = {file:?} }}] }} }}\nclock_slack"
            );
            sampled(
                "milliseconds",
                &[&format],
                &[0, 0, 0, 0, 9, 2, 2, b'a', 0, 0, 0, 0, 0, 0, 0, 0],
            )
        },
    },
    Mistake {
        what: "a producer that sends JSON to a topic of Arrow",
        verdict: "good, with `check --sample`: offset, reason and remedy",
        made: |_| {
            sampled(
                "",
                &[],
                br#"{"time":"2025-01-01T00:00:30Z","key":"a","value":5}"#,
            )
        },
    },
    Mistake {
        what: "times in seconds that are declared as milliseconds",
        verdict: "mended, with `check --sample`: nothing told it before, because records of another time are dropped one by one",
        made: |_| {
            sampled(
                "milliseconds",
                &["format = \"json\"\nclock_slack"],
                br#"{"time":1767225630,"key":"a","value":5}"#,
            )
        },
    },
    Mistake {
        what: "times as text where integers are declared",
        verdict: "good, with `check --sample`: the column that no record has",
        made: |_| {
            sampled(
                "seconds",
                &["format = \"json\"\nclock_slack"],
                br#"{"time":"2026-01-01T00:00:30Z","key":"a","value":5}"#,
            )
        },
    },
    Mistake {
        what: "a misspelt field of JSON records",
        verdict: "good, with `check --sample`: the field that no record has",
        made: |_| {
            sampled(
                "rfc3339",
                &["format = \"json\"\nclock_slack"],
                br#"{"time":"2026-01-01T00:00:30Z","key":"a","worth":5}"#,
            )
        },
    },
    Mistake {
        what: "listed keys in another spelling",
        verdict: "mended, with `check --sample`: the commonest keys that there are; nothing told it before",
        made: |_| {
            sampled(
                "rfc3339",
                &["format = \"json\"\nclock_slack"],
                br#"{"time":"2025-01-01T00:00:30Z","key":"A","value":5}"#,
            )
        },
    },
    Mistake {
        what: "a domain in another unit than its column",
        verdict: "mended, with `check --sample`: how few lie inside; nothing told it before",
        made: |_| {
            sampled(
                "rfc3339",
                &["format = \"json\"\nclock_slack"],
                br#"{"time":"2025-01-01T00:00:30Z","key":"a","value":5000}"#,
            )
        },
    },
];

/// `check --sample` of a topic with this message three times, where times are written so; the name of the topic left out.
fn sampled(time_format: &str, edits: &[&str], payload: &[u8]) -> Option<String> {
    let servers = kafka::broker()?;
    let setup = Setup::new(&servers, 2);
    setup.begin(std::time::Duration::from_secs(60));
    if !time_format.is_empty() {
        setup.edit(
            "time = \"time\"",
            &format!("time = \"time\"\ntime_format = \"{time_format}\""),
        );
        setup.edit("column = \"key\"", "column = \"key\", type = \"text\"");
    }
    for new in edits {
        setup.edit("clock_slack", new);
    }
    let producer = setup.producer(&[]);
    for _ in 0..3 {
        let record = BaseRecord::<(), _>::to(&setup.input)
            .partition(0)
            .payload(payload);
        producer
            .send(record)
            .map_err(|(error, _)| error)
            .expect("it is queued");
    }
    producer.flush(PATIENCE).expect("the broker takes it");
    let output = setup
        .bernstream(&["check", "--sample"])
        .arg(setup.configuration())
        .output()
        .expect("it runs");
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = told
        .lines()
        .map(str::trim)
        .find(|line| line.starts_with("fault"))
        .unwrap_or("nothing is said");
    Some(
        line.replace(&setup.input, "TOPIC")
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" "),
    )
}

const LEDGER: &[Mistake] = &[
    Mistake {
        what: "a ledger that is not there is asked",
        verdict: "good: the path, and the command that creates it",
        made: |at| {
            at.worked();
            Some(at.said(&["ledger", "show", "c.toml"]))
        },
    },
    Mistake {
        what: "the ledger of another pipeline",
        verdict: "mended: what differs stood below the advice",
        made: |at| {
            let text = at.worked();
            at.said(&["run", "c.toml"]);
            at.write(
                "c.toml",
                text.replace("pipeline = \"flights\"", "pipeline = \"trains\""),
            );
            Some(at.said(&["run", "c.toml"]))
        },
    },
    Mistake {
        what: "another total than the ledger has promised",
        verdict: "mended: what differs stood below the advice",
        made: |at| {
            let text = at.worked();
            at.said(&["run", "c.toml"]);
            at.write(
                "c.toml",
                text.replace("epsilon = 1.0\n\n[release]", "epsilon = 2.0\n\n[release]"),
            );
            Some(at.said(&["run", "c.toml"]))
        },
    },
    Mistake {
        what: "the ledger is deleted to start anew",
        verdict: "good: what was published is not forgotten; the advice is hard reading",
        made: |at| {
            at.worked();
            at.said(&["run", "c.toml"]);
            fs::remove_dir_all(at.path().join("ledger")).expect("it was there");
            Some(at.said(&["run", "c.toml"]))
        },
    },
    Mistake {
        what: "the ledger is gone, and `check` is asked before the worker starts",
        verdict: "mended: `check` found nothing wrong, and the worker did not start",
        made: |at| {
            at.worked();
            at.said(&["run", "c.toml"]);
            fs::remove_dir_all(at.path().join("ledger")).expect("it was there");
            Some(at.said(&["check", "--offline", "c.toml"]))
        },
    },
    Mistake {
        what: "a second pipeline publishes into the folder of the first",
        verdict: "mended: it said that something was written before, and not by whom",
        made: |at| {
            let text = at.worked();
            at.said(&["run", "c.toml"]);
            let text = text.replace("pipeline = \"flights\"", "pipeline = \"trains\"");
            at.write(
                "c.toml",
                text.replace("path = \"ledger\"", "path = \"other\""),
            );
            Some(at.said(&["run", "c.toml"]))
        },
    },
    Mistake {
        what: "everything is published again, where one window was meant",
        verdict: "mended: it was sent without a word",
        made: |at| {
            at.worked();
            at.said(&["run", "c.toml"]);
            Some(at.said(&["ledger", "republish", "c.toml"]))
        },
    },
    Mistake {
        what: "the output is deleted to publish anew",
        verdict: "fair: it names the witnesses, and not the folder that was emptied, in which the witness lay",
        made: |at| {
            at.worked();
            at.said(&["run", "c.toml"]);
            fs::remove_dir_all(at.path().join("out")).expect("it was there");
            Some(at.said(&["run", "c.toml"]))
        },
    },
];

const READING: &[Mistake] = &[
    Mistake {
        what: "a folder is evaluated",
        verdict: "mended: it said that it could not be read",
        made: |at| {
            at.worked();
            at.said(&["run", "c.toml"]);
            Some(at.said(&["evaluate", "out"]))
        },
    },
    Mistake {
        what: "the page of a file",
        verdict: "mended: it said that there is no such folder",
        made: |at| {
            at.synopsis("density-1d");
            Some(at.said(&["dashboard", "s.json"]))
        },
    },
    Mistake {
        what: "a file that is no synopsis is evaluated",
        verdict: "good: what it is not",
        made: |at| {
            at.write("s.json", "{\"a\": 1}");
            Some(at.said(&["evaluate", "s.json"]))
        },
    },
    Mistake {
        what: "a point outside of the domain",
        verdict: "good: the column, the value, and the ends",
        made: |at| {
            at.synopsis("density-1d");
            Some(at.said(&["evaluate", "s.json", "--at", "1000"]))
        },
    },
    Mistake {
        what: "two coordinates for one axis",
        verdict: "good: how many there are",
        made: |at| {
            at.synopsis("density-1d");
            Some(at.said(&["evaluate", "s.json", "--at", "1,2"]))
        },
    },
    Mistake {
        what: "moments are evaluated",
        verdict: "good: the command for them",
        made: |at| {
            at.synopsis("moments-1d");
            Some(at.said(&["evaluate", "s.json"]))
        },
    },
    Mistake {
        what: "a function of a point is queried",
        verdict: "good: the command for it",
        made: |at| {
            at.synopsis("density-1d");
            Some(at.said(&["query", "s.json", "dep_delay"]))
        },
    },
    Mistake {
        what: "a column of a query is misspelt",
        verdict: "good: the columns that there are",
        made: |at| {
            at.synopsis("moments-1d");
            Some(at.said(&["query", "s.json", "dep_delya"]))
        },
    },
    Mistake {
        what: "a range with a hyphen",
        verdict: "good: the form",
        made: |at| {
            at.synopsis("density-1d");
            Some(at.said(&["query", "s.json", "--range", "15-120"]))
        },
    },
    Mistake {
        what: "a quantile of a density",
        verdict: "good: what it is read from",
        made: |at| {
            at.synopsis("density-1d");
            Some(at.said(&["query", "s.json", "--quantile", "0.5"]))
        },
    },
    Mistake {
        what: "a folder of synopses that is not there",
        verdict: "good: the path that was tried",
        made: |at| Some(at.said(&["dashboard", "no-synopses"])),
    },
];

#[test]
fn what_is_said_of_every_mistake_is_what_the_page_shows() {
    let sections = [
        ("The configuration", CONFIGURATION),
        ("The input", INPUT),
        ("The ledger", LEDGER),
        ("Reading", READING),
    ];
    let committed = fs::read_to_string(PAGE).unwrap_or_default();
    let row_of = |what: &str| {
        committed
            .lines()
            .find(|line| line.starts_with(&format!("| {what} | ")))
            .map(str::to_owned)
    };
    let mut page = HEAD.to_owned();
    let mut count = 0;
    let mut without_broker = 0;
    let mut silent: Vec<&str> = Vec::new();
    for (heading, mistakes) in sections {
        page += &format!(
            "\n## {heading}\n\n| mistake | what is said first | verdict |\n|---|---|---|\n"
        );
        for Mistake {
            what,
            verdict,
            made,
        } in mistakes
        {
            let place = Place(tempfile::tempdir().expect("a folder"));
            count += 1;
            let row = match made(&place) {
                Some(said) => {
                    silent.extend((said == "nothing is said").then_some(what));
                    format!(
                        "| {what} | `{}` | {verdict} |",
                        said.replace('|', "\\|").replace('`', "'")
                    )
                }
                None => {
                    without_broker += 1;
                    row_of(what).unwrap_or_default()
                }
            };
            page += &format!("{row}\n");
        }
    }
    assert!(
        count >= 64 && without_broker < 10,
        "{count} mistakes, {without_broker} without a broker"
    );
    if std::env::var_os("BERNSTREAM_WRITE_MISTAKES").is_some() {
        fs::write(PAGE, &page).expect("it can be written");
        return;
    }
    assert_eq!(silent, Vec::<&str>::new(), "nothing is said");
    for (shown, found) in committed.lines().zip(page.lines()) {
        assert_eq!(
            shown, found,
            "{PAGE} is not what is said; write it anew with BERNSTREAM_WRITE_MISTAKES=1"
        );
    }
    assert_eq!(
        committed.lines().count(),
        page.lines().count(),
        "{PAGE}: write it anew with BERNSTREAM_WRITE_MISTAKES=1"
    );
}
