//! The dashboard from outside: what it serves are the synopses that were released and the numbers of the evaluator, as they
//! come, to whoever asks, whatever was in the messages.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::time::Duration;

use bernstream_config::WorkerSettings;
use bernstream_synopsis::Synopsis;
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::description::Description;
use bernstream_synopsis::key_table::KeyReading;
use bernstream_synopsis::query::Query;
use bernstream_synopsis::tables::{AnswerKind, Questions, in_context};
use flate2::read::GzDecoder;
use rdkafka::ClientConfig;
use rdkafka::mocking::MockCluster;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use serde_json::Value;

use crate::harness::http::{self, Answer};
use crate::harness::setup::{self, Setup};
use crate::harness::{PATIENCE, kafka};

/// Three functions of the same flights: of one axis, of two, and moments.
const CONFIGURATION: &str = r#"
pipeline = "flights"
input = { time = "time", key = { column = "origin", values = ["EWR", "JFK"] }, files = { path = "tests/data/flights.parquet" } }
windows = { origin = "2013-01-01T05:00:00Z", length = "28d", end = "2013-04-23T05:00:00Z" }
privacy = { unit = "record", adjacency = "add_remove", epsilon = 3.0 }
output = { files = { path = "FOLDER/out" } }
ledger = { path = "FOLDER/ledger" }
[[release]]
name = "delay"
epsilon = 1.0
degree = 12
order = 3
domain = [{ column = "dep_delay", min = -30, max = 180, outside = "clamp" }]
density = { bandwidths = [15] }
[[release]]
name = "delays"
epsilon = 1.0
degree = 6
order = 2
domain = [
    { column = "dep_delay", min = -30, max = 180, outside = "clamp" },
    { column = "arr_delay", min = -60, max = 180, outside = "clamp" },
]
density = { bandwidths = [30, 30] }
[[release]]
name = "summary"
epsilon = 1.0
noise = "cube"
domain = [{ column = "dep_delay", min = -30, max = 180, outside = "clamp" }]
moments = { frequencies = 12 }
"#;
const WINDOWS: usize = 4;

/// A program that serves a dashboard; it is ended when this is dropped.
struct Dashboard {
    child: Child,
    address: String,
}

impl Dashboard {
    fn start(arguments: &[&str]) -> Dashboard {
        Dashboard::of(&[&["dashboard", "--listen", "127.0.0.1:0"], arguments].concat())
    }

    /// Of any command that serves one, and says where.
    fn of(arguments: &[&str]) -> Dashboard {
        let (said, says) = std::io::pipe().expect("a pipe");
        let mut command = Command::new(env!("CARGO_BIN_EXE_bernstream"));
        command
            .args(arguments)
            .stdout(says.try_clone().expect("a copy"))
            .stderr(says);
        let child = command.spawn().expect("it starts");
        drop(command);
        let mut lines = BufReader::new(said).lines().map(|line| line.expect("text"));
        let place = |line: String| {
            let (_, place) = line.split_once("http://")?;
            let end = place
                .find(|c: char| !c.is_ascii_digit() && c != '.' && c != ':')
                .unwrap_or(place.len());
            (!place.contains("/metrics")).then(|| place[..end].to_owned())
        };
        let address = lines.find_map(place).expect("an address");
        // So that it never waits for us.
        std::thread::spawn(move || lines.for_each(drop));
        Dashboard { child, address }
    }

    fn ask(&self, method: &str, path: &str) -> Answer {
        http::ask(&self.address, method, path).expect("an answer")
    }

    fn get(&self, path: &str) -> Value {
        let Answer {
            status,
            headers,
            body,
        } = self.ask("GET", path);
        assert!(
            status == 200 && headers.contains("content-type: application/json"),
            "{path}: {headers}\n{body}"
        );
        serde_json::from_str(&body).expect("JSON")
    }

    /// Why it does not answer.
    fn refusal(&self, path: &str) -> (u16, String) {
        let Answer {
            status,
            headers,
            body,
        } = self.ask("GET", path);
        assert!(
            headers.contains("content-type: application/json"),
            "{headers}"
        );
        let error = serde_json::from_str::<Value>(&body).expect("JSON")["error"]
            .as_str()
            .expect("words")
            .to_owned();
        (status, error)
    }

    fn events(&self, last: Option<&str>) -> Events {
        let last = last
            .map(|id| format!("Last-Event-ID: {id}\r\n"))
            .unwrap_or_default();
        let request = format!("GET /api/v1/events HTTP/1.0\r\n{last}\r\n");
        let mut lines = BufReader::new(http::connect(&self.address, &request).expect("it listens"));
        let mut headers = String::new();
        while !headers.ends_with("\r\n\r\n") {
            lines.read_line(&mut headers).expect("headers");
        }
        assert!(
            headers.contains("content-type: text/event-stream"),
            "{headers}"
        );
        assert_strict(&headers);
        Events(lines)
    }

    /// SIGTERM, as a container does it; it ends soon, and well.
    fn end(mut self) {
        let kill = Command::new("kill")
            .arg(self.child.id().to_string())
            .status()
            .expect("kill");
        assert!(kill.success() && self.child.wait().expect("it ends").success());
    }
}

impl Drop for Dashboard {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Events(BufReader<TcpStream>);

#[derive(Debug)]
struct Event {
    name: String,
    id: String,
    data: Value,
}

impl Events {
    fn next(&mut self) -> Event {
        let mut name = String::new();
        let mut id = String::new();
        let mut data = None;
        loop {
            let mut line = String::new();
            assert!(
                self.0.read_line(&mut line).expect("an event in time") > 0,
                "the stream goes on"
            );
            match line.trim_end_matches('\n').split_once(": ") {
                Some(("event", text)) => name = text.to_owned(),
                Some(("id", text)) => id = text.to_owned(),
                Some(("data", text)) => {
                    assert!(data.is_none(), "an event is one line");
                    data = Some(serde_json::from_str(text).expect("JSON"));
                }
                None if line == "\n" => {
                    if let Some(data) = data.take() {
                        return Event { name, id, data };
                    }
                }
                _ => {}
            }
        }
    }

    fn next_of(&mut self, name: &str) -> Event {
        loop {
            let event = self.next();
            if event.name == name {
                return event;
            }
        }
    }

    /// What is said once the source is there, or is not any more.
    fn next_source(&mut self, is_connected: bool) -> Value {
        loop {
            let event = self.next_of("source");
            if event.data["connected"] == is_connected {
                return event.data;
            }
        }
    }

    /// The greeting, and as many synopses as it promises.
    fn history(&mut self) -> (Value, Vec<Event>) {
        let hello = self.next();
        assert_eq!(hello.name, "hello");
        let count = hello.data["history"].as_u64().expect("a number");
        (
            hello.data,
            (0..count).map(|_| self.next_of("synopsis")).collect(),
        )
    }
}

fn assert_strict(headers: &str) {
    let headers = headers.to_ascii_lowercase();
    for header in [
        "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src \
         'self' data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        "x-content-type-options: nosniff",
        "referrer-policy: no-referrer",
        "cache-control: no-cache",
    ] {
        assert_eq!(headers.matches(header).count(), 1, "{header} in {headers}");
    }
}

/// What the worker publishes of the flights, in `folder/out`.
fn release(folder: &Path) -> PathBuf {
    release_of(folder, CONFIGURATION)
}

fn release_of(folder: &Path, text: &str) -> PathBuf {
    let configuration = folder.join("bernstream.toml");
    fs::write(
        &configuration,
        text.replace("FOLDER", &folder.display().to_string()),
    )
    .expect("written");
    let output = bernstream(&["run", &configuration.display().to_string()]);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    folder.join("out")
}

fn bernstream(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_bernstream"))
        .args(arguments)
        .output()
        .expect("it runs")
}

fn open(path: &Path) -> Synopsis {
    Synopsis::decode_message(&fs::read(path).expect("a file")).expect("a synopsis")
}

/// Every synopsis of a release and key, by its window.
fn synopses(out: &Path, release: &str, key: &str) -> Vec<PathBuf> {
    let folder = fs::read_dir(out.join("flights").join(release).join(key)).expect("its folder");
    let mut files: Vec<_> = folder.map(|entry| entry.expect("a file").path()).collect();
    files.sort();
    files
}

/// Appears whole, as the worker's files do.
fn put(path: &Path, bytes: &[u8]) {
    let draft = path.with_extension("new");
    fs::write(&draft, bytes).expect("written");
    fs::rename(draft, path).expect("renamed");
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn a_folder_is_shown_with_the_numbers_of_the_evaluator_and_as_it_grows() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = release(folder.path());
    let files = synopses(&out, "delay", "JFK");
    assert_eq!(files.len(), WINDOWS);
    let newest = open(&files[2]);
    let late = folder.path().join("late");
    fs::rename(&files[3], &late).expect("moved away");
    let dashboard = Dashboard::start(&[&out.display().to_string()]);

    let end = open(&late).description().window.end;
    assert_eq!(
        newest.description().grid_end,
        Some(end),
        "which window is the last is known before"
    );

    // Everything that lies there.
    let mut events = dashboard.events(None);
    assert_eq!(events.next().name, "hello");
    let mut seen: Vec<Event> = Vec::new();
    while seen.len() < 6 * WINDOWS - 1 {
        seen.push(events.next_of("synopsis"));
    }
    let list = dashboard.get("/api/v1/synopses");
    assert_eq!(list.as_array().expect("a list").len(), 6 * WINDOWS - 1);
    let of = |event: &Event| Synopsis::from_json(&event.data.to_string()).expect("a synopsis");
    assert!(
        seen.iter().any(|event| of(event) == newest),
        "byte for byte what was released"
    );
    let ends: Vec<Timestamp> = seen
        .iter()
        .map(|event| of(event).description().window.end)
        .collect();
    assert!(ends.is_sorted(), "the oldest first");

    // Its numbers.
    let about = newest.description();
    let latest = dashboard.get("/api/v1/synopses/latest?release=delay&key=JFK");
    assert_eq!(
        Synopsis::from_json(&latest.to_string()).expect("a synopsis"),
        newest
    );
    let evaluator = newest.evaluator(about.order).expect("an evaluator");
    let assert_row = |row: &Value, point: &[f64], synopsis: &Synopsis| {
        let value = synopsis.evaluate(point).expect("a value");
        let half = synopsis.half_width(point).expect("a width");
        assert_eq!(
            [&row["value"], &row["lower"], &row["upper"]].map(number),
            [value, value - half, value + half]
        );
        let total = synopsis
            .form_error()
            .map(|form| [value - (half + form), value + (half + form)]);
        assert_eq!(
            [&row["total_lower"], &row["total_upper"]].map(Value::as_f64),
            [0, 1].map(|end| Some(total?[end]))
        );
    };
    let curve = dashboard.get("/api/v1/curve?release=delay&key=JFK&points=31");
    assert_eq!(curve.as_array().expect("rows").len(), 31);
    for (step, row) in curve.as_array().expect("rows").iter().enumerate() {
        let x = -30.0 + 7.0 * step as f64;
        assert!((number(&row["dep_delay"]) - x).abs() < 1e-9);
        assert!((number(&row["value"]) - evaluator.evaluate(&[x]).expect("a value")).abs() < 1e-6);
        assert_row(row, &[number(&row["dep_delay"])], &newest);
    }
    let older = format!(
        "/api/v1/curve?release=delay&key=JFK&points=3&window={}",
        open(&files[0]).description().window.start
    );
    assert_row(&dashboard.get(&older)[1], &[75.0], &open(&files[0]));
    let surface = dashboard.get("/api/v1/curve?release=delays&key=EWR&points=5");
    let two = open(&synopses(&out, "delays", "EWR")[3]);
    assert_eq!(surface.as_array().expect("rows").len(), 25);
    assert_eq!(
        [&surface[7]["dep_delay"], &surface[7]["arr_delay"]].map(number),
        [22.5, 60.0]
    );
    assert_row(&surface[7], &[22.5, 60.0], &two);
    let history = dashboard.get("/api/v1/history?release=delay&key=JFK&at=15");
    assert_eq!(history.as_array().expect("rows").len(), 3);
    for (row, file) in history.as_array().expect("rows").iter().zip(&files) {
        let synopsis = open(file);
        assert_row(row, &[15.0], &synopsis);
        assert_eq!(
            row["window_start"],
            synopsis.description().window.start.to_string()
        );
        assert_eq!(row["time"], synopsis.description().window.end.to_string());
        assert_eq!(
            row["published"],
            synopsis.description().published.to_string()
        );
    }
    let range = "/api/v1/query?release=delay&key=JFK&range=15..180";
    let found = newest.integrate(&[[15.0, 180.0]]);
    let counted = &dashboard.get(range)["answers"][0];
    let found = found.expect("an integral");
    assert_eq!(number(&counted["value"]), found.value);
    assert_eq!(
        number(&counted["interval"]["upper"]),
        found.value + found.noise.half_width
    );
    assert_eq!(counted["form_error"].as_f64(), found.form_error);
    assert_eq!(newest.form_error().is_some(), found.form_error.is_some());
    let csv = dashboard.ask(
        "GET",
        "/api/v1/curve?release=delay&key=JFK&points=2&format=csv",
    );
    assert!(
        csv.headers.contains("content-type: text/csv"),
        "{}",
        csv.headers
    );
    let lines: Vec<&str> = csv.body.lines().collect();
    assert_eq!(
        (lines[0], lines.len()),
        ("dep_delay,value,lower,upper,total_lower,total_upper", 3)
    );
    assert!(
        lines[1].starts_with(&format!(
            "-30,{},",
            evaluator.evaluate(&[-30.0]).expect("a value")
        )),
        "{}",
        lines[1]
    );
    let moments = open(&synopses(&out, "summary", "EWR")[3]);
    let asked = dashboard.get("/api/v1/query?release=summary&key=EWR&ask=exp(-(dep_delay/60)%5E2)");
    let query = Query::expression("exp(-(dep_delay/60)^2)", &moments).expect("a query");
    let answer = moments.answer(&query).expect("an answer");
    assert_eq!(asked["answer"], serde_json::to_value(answer).expect("JSON"));
    assert_eq!(
        asked["weights"],
        serde_json::to_value(moments.weights(&query).expect("weights")).expect("JSON")
    );
    assert_eq!(
        (&asked["function"], &asked["key"]),
        (&"exp(-(dep_delay/60)^2)".into(), &"EWR".into())
    );

    // As it grows.
    fs::rename(&late, &files[3]).expect("moved there");
    let live = events.next_of("synopsis");
    assert_eq!(of(&live), open(&files[3]));
    let latest = dashboard.get("/api/v1/synopses/latest?release=delay&key=JFK");
    assert_eq!(
        Synopsis::from_json(&latest.to_string()).expect("a synopsis"),
        open(&files[3])
    );

    // A browser that comes back.
    let (_, again) = dashboard.events(Some(&seen[20].id)).history();
    let expected: Vec<&str> = seen[21..]
        .iter()
        .chain([&live])
        .map(|event| event.id.as_str())
        .collect();
    assert_eq!(
        again
            .iter()
            .map(|event| event.id.as_str())
            .collect::<Vec<_>>(),
        expected
    );
    let mut elsewhere = dashboard.events(Some("another-20"));
    let (hello, all) = elsewhere.history();
    assert_eq!(all.len(), 6 * WINDOWS);
    assert_eq!(hello["source"], format!("folder {}", out.display()));
    assert_eq!(hello["version"], env!("CARGO_PKG_VERSION"));
    assert!(Timestamp::parse(hello["now"].as_str().expect("a time")).is_some());

    // What cannot be read.
    put(
        &out.join("flights/delay/broken.arrows"),
        b"<script>alert(1)</script>",
    );
    let unreadable = events.next_of("unreadable");
    assert_eq!(unreadable.data["where"], "flights/delay/broken.arrows");
    assert!(
        unreadable.data["why"]
            .as_str()
            .expect("words")
            .contains("not a synopsis")
    );

    // A folder that goes, and comes back.
    let away = folder.path().join("away");
    fs::rename(&out, &away).expect("moved away");
    let lost = events.next_source(false);
    assert!(
        lost["why"]
            .as_str()
            .expect("words")
            .contains("cannot be read"),
        "{lost:?}"
    );
    fs::rename(&away, &out).expect("moved back");
    assert_eq!(
        events.next_source(true),
        serde_json::json!({ "connected": true, "why": null })
    );
    assert_eq!(
        dashboard
            .get("/api/v1/synopses")
            .as_array()
            .expect("a list")
            .len(),
        6 * WINDOWS,
        "nothing twice"
    );
    dashboard.end();
}

/// A synopsis of two values, whose words are as given.
fn example(key: &str, sequence: u64) -> Synopsis {
    let mut about: Description = serde_json::from_str(bernstream_synopsis::EXAMPLE).expect("it");
    about.key = Some(key.to_owned());
    about.ledger.sequence = sequence;
    about.window.end = about.window.end.plus(Duration::from_secs(sequence));
    Synopsis::new(about, vec![1.0, 2.0, 3.0]).expect("a synopsis")
}

#[test]
fn whatever_is_in_a_message_leaves_inside_json_only_and_wrong_questions_are_refused_in_words() {
    let folder = tempfile::tempdir().expect("a folder");
    let hostile = "</script><img src=x onerror=alert(1)>\n\ndata: \"'";
    let mut worst = example(hostile, 1).description().clone();
    worst.release = "r\u{2028}\r\n\r\nevent: hello".to_owned();
    worst.domain[0].column = "=cmd(),\"value\"".to_owned();
    let worst = Synopsis::new(worst, vec![1.0, 2.0, 3.0]).expect("a synopsis");
    put(
        &folder.path().join("worst.arrows"),
        &worst.encode().expect("sealed").bytes,
    );
    put(
        &folder.path().join("plain.arrows"),
        &example("JFK", 2).encode().expect("sealed").bytes,
    );
    let dashboard = Dashboard::start(&[&folder.path().display().to_string()]);
    let mut events = dashboard.events(None);
    let both = [events.next_of("synopsis"), events.next_of("synopsis")];
    assert!(both.iter().any(|event| event.data["key"] == hostile
        && event.data["release"] == worst.description().release));
    assert_eq!(
        dashboard
            .get("/api/v1/synopses")
            .as_array()
            .expect("a list")
            .len(),
        2
    );
    let asked = "key=%3C%2Fscript%3E%3Cimg+src%3Dx+onerror%3Dalert%281%29%3E%0A%0Adata%3A+%22%27";
    assert_eq!(
        dashboard.get(&format!("/api/v1/synopses/latest?{asked}"))["key"],
        hostile
    );
    assert_eq!(
        number(&dashboard.get(&format!("/api/v1/curve?{asked}&points=2"))[1]["=cmd(),\"value\""]),
        180.0
    );
    let csv = dashboard.ask("GET", &format!("/api/v1/curve?{asked}&points=2&format=csv"));
    assert!(
        csv.body
            .starts_with("\"'=cmd(),\"\"value\"\"\",value,lower,upper,total_lower,total_upper\r\n"),
        "{}",
        csv.body
    );

    for (path, status, word) in [
        ("/api/v1/synopses/latest", 400, "several releases or keys"),
        (
            "/api/v1/synopses/latest?key=%3Cb%3E",
            404,
            "no synopsis matches",
        ),
        (
            "/api/v1/synopses/latest?key=JFK&window=yesterday",
            400,
            "is not a time",
        ),
        (
            "/api/v1/synopses/latest?key=JFK&window=2013-01-01T00:00:00Z",
            404,
            "no cached window",
        ),
        (
            "/api/v1/synopses/latest?keys=JFK",
            400,
            "unknown field `keys`",
        ),
        ("/api/v1/curve?key=JFK&points=1", 400, "at least 2"),
        (
            "/api/v1/curve?key=JFK&points=20001",
            400,
            "at most 20000 rows",
        ),
        ("/api/v1/curve?key=JFK&points=-3", 400, "points"),
        (
            "/api/v1/curve?key=JFK&format=xml",
            400,
            "unknown variant `xml`",
        ),
        ("/api/v1/history?key=JFK", 400, "'at' is missing"),
        ("/api/v1/history?key=JFK&at=x", 400, "'x' is not a number"),
        ("/api/v1/history?key=JFK&at=NaN", 400, "outside the domain"),
        ("/api/v1/history?key=JFK&at=1,2", 400, "1 coordinates"),
        (
            "/api/v1/history?key=JFK&at=1000",
            400,
            "outside the domain -30 to 180",
        ),
        (
            "/api/v1/query?key=JFK&ask=dep_delay",
            400,
            "function of a point",
        ),
        ("/api/v1/query?key=JFK", 400, "needs 'ask'"),
        (
            "/api/v1/query?key=JFK&range=0..10&quantile=0.5",
            400,
            "no tables of cells",
        ),
        (
            "/api/v1/query?key=JFK&range=0..10,2..3",
            400,
            "two ends on each axis",
        ),
        (
            "/api/v1/query?key=JFK&range=0..1000",
            400,
            "outside the domain -30 to 180",
        ),
        (
            "/api/v1/query?key=JFK&range=0-10",
            400,
            "not a range such as 10..20",
        ),
        ("/api/v2", 404, "nothing here"),
        ("/../Cargo.toml", 404, "nothing here"),
    ] {
        let (answered, why) = dashboard.refusal(path);
        assert!(
            answered == status && why.contains(word),
            "{path}: {answered} {why}"
        );
    }
    let long = "1%2B".repeat(2000) + "1";
    assert_eq!(
        dashboard
            .refusal(&format!("/api/v1/query?key=JFK&ask={long}"))
            .0,
        400
    );

    for path in [
        "/",
        "/bernstream.js",
        "/api/v1/synopses",
        "/api/v1/curve?key=JFK",
        "/no",
    ] {
        assert_strict(&dashboard.ask("GET", path).headers);
    }
    let page = dashboard.ask("GET", "/");
    assert!(
        page.status == 200
            && page.headers.contains("content-type: text/html")
            && page.body.contains("<html")
    );
    assert!(
        dashboard
            .ask("GET", "/bernstream.js")
            .headers
            .contains("content-type: text/javascript")
    );
    for method in ["POST", "DELETE", "OPTIONS"] {
        let refused = dashboard.ask(method, "/api/v1/synopses");
        assert_eq!(refused.status, 405);
        assert_strict(&refused.headers);
    }
}

/// And to whoever cannot read gzip, or refuses it, as they are.
#[test]
fn the_files_of_the_page_are_sent_compressed_to_who_asks() {
    let folder = tempfile::tempdir().expect("a folder");
    let dashboard = Dashboard::start(&[&folder.path().display().to_string()]);
    let plain = dashboard.ask("GET", "/page.js");
    assert!(
        plain.headers.contains("vary: accept-encoding")
            && !plain.headers.contains("content-encoding")
    );
    for (accepted, compressed) in [
        ("gzip, deflate", true),
        ("br;q=1.0, GZIP;q=0.8", true),
        ("gzip;q=0, *", false),
        ("x-gzip-2", false),
    ] {
        let request = format!("GET /page.js HTTP/1.0\r\nAccept-Encoding: {accepted}\r\n\r\n");
        let mut answer = Vec::new();
        http::connect(&dashboard.address, &request)
            .expect("it listens")
            .read_to_end(&mut answer)
            .expect("an answer");
        let end = answer
            .windows(4)
            .position(|four| four == b"\r\n\r\n")
            .expect("headers")
            + 4;
        let headers = String::from_utf8_lossy(&answer[..end]).to_ascii_lowercase();
        let body = &answer[end..];
        assert_strict(&headers);
        assert!(
            headers.contains("content-type: text/javascript")
                && headers.contains("vary: accept-encoding")
        );
        assert_eq!(
            headers.contains("content-encoding: gzip"),
            compressed,
            "{accepted}: {headers}"
        );
        let mut text = String::new();
        match compressed {
            true => GzDecoder::new(body)
                .read_to_string(&mut text)
                .expect("gzip"),
            false => {
                let mut body = body;
                body.read_to_string(&mut text).expect("text")
            }
        };
        assert_eq!(text, plain.body, "{accepted}");
        assert!(
            !compressed || 2 * body.len() < text.len(),
            "{accepted}: {} bytes",
            body.len()
        );
    }
}

/// Over HTTP and on the command line: the answers of the library.
#[test]
fn tables_of_cells_are_asked_for_ranges_and_quantiles() {
    let folder = tempfile::tempdir().expect("a folder");
    let golden: Value =
        serde_json::from_str(include_str!("../../clients/golden/cells-number-1d.json"))
            .expect("JSON");
    let synopsis = Synopsis::from_json(&golden["synopsis"].to_string()).expect("a synopsis");
    let file = folder.path().join("cells.arrows");
    put(&file, &synopsis.encode().expect("sealed").bytes);
    let questions = Questions {
        ranges: vec!["-5..40".parse().expect("a range")],
        quantiles: vec![0.5],
    };
    let answers = synopsis.answer_questions(&questions).expect("answers");
    let expected = in_context(&answers, synopsis.description());
    assert_eq!(
        answers.iter().map(|answer| answer.kind).collect::<Vec<_>>(),
        [
            AnswerKind::Count,
            AnswerKind::Share,
            AnswerKind::Mean,
            AnswerKind::Quantile
        ]
    );
    let dashboard = Dashboard::start(&[&folder.path().display().to_string()]);
    dashboard.events(None).next_of("synopsis");
    assert_eq!(
        dashboard.get("/api/v1/query?range=-5..40&quantile=0.5"),
        expected
    );
    let table = dashboard.get("/api/v1/curve?points=2");
    assert_eq!(
        number(&table[0]["value"]),
        synopsis.evaluate(&[-30.0]).expect("a value")
    );
    let (status, why) = dashboard.refusal("/api/v1/query?range=40..-5");
    assert!(
        status == 400 && why.contains("the lower one first"),
        "{why}"
    );
    dashboard.end();

    let file = file.display().to_string();
    let asked = bernstream(&[
        "query",
        &file,
        "--range",
        "-5..40",
        "--quantile",
        "0.5",
        "--json",
    ]);
    assert_eq!(
        serde_json::from_slice::<Value>(&asked.stdout).expect("JSON"),
        expected
    );
    let words = bernstream(&["query", &file, "--range", "-5..40", "--quantile", "0.5"]);
    let words = String::from_utf8_lossy(&words.stdout).into_owned();
    for (line, start) in words.lines().zip([
        "records with dep_delay from -5 to 40: ",
        "their share of all records: 0.",
        "their mean arr_delay: ",
        "dep_delay below which 50 % of the records lie: ",
    ]) {
        assert!(
            line.starts_with(start) && line.ends_with("with 95 % probability"),
            "{line}"
        );
    }
    assert!(
        words.contains("intervals cover the noise, not the cells: ")
            && words.contains(" times the noise on"),
        "{words}"
    );
    let refused = bernstream(&["query", &file, "--range", "500..600"]);
    assert_eq!(refused.status.code(), Some(78));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("outside the domain"));
    // How the records are distributed, and a wider kernel.
    for more in [
        ["--density", "--at=0"],
        ["--cumulative", "--at=180"],
        ["--bandwidths=30", "--at=0"],
        ["--fit=constant", "--at=0"],
    ] {
        let table = bernstream(&[&["evaluate", &file], &more[..]].concat());
        let table = String::from_utf8_lossy(&table.stdout).into_owned();
        assert!(
            table.starts_with("dep_delay,value,lower,upper\n"),
            "{more:?}: {table}"
        );
        assert!(
            more[0] != "--cumulative" || table.ends_with("180,1,1,1\n"),
            "{table}"
        );
    }
    let narrow = bernstream(&["evaluate", &file, "--bandwidths=1", "--at=0"]);
    assert_eq!(narrow.status.code(), Some(78));
}

#[test]
fn a_browser_that_does_not_read_holds_up_nobody() {
    let folder = tempfile::tempdir().expect("a folder");
    let dashboard = Dashboard::start(&[&folder.path().display().to_string()]);
    let sleeping: Vec<Events> = (0..20).map(|_| dashboard.events(None)).collect();
    let mut awake = dashboard.events(None);
    awake.next_source(true);
    let mut large = example("JFK", 0).description().clone();
    large.degree = 100;
    large.domain.push(large.domain[0].clone());
    large.domain[1].column = "other".to_owned();
    for sequence in 0..10 {
        large.ledger.sequence = sequence;
        large.window.end = large.window.end.plus(Duration::from_secs(1));
        let synopsis =
            Synopsis::new(large.clone(), vec![0.1234567890123; 101 * 101]).expect("a synopsis");
        put(
            &folder.path().join(format!("{sequence}.arrows")),
            &synopsis.encode().expect("sealed").bytes,
        );
        assert_eq!(
            awake.next_of("synopsis").data["ledger"]["sequence"],
            sequence
        );
    }
    for mut late in sleeping {
        assert_eq!(late.next_of("synopsis").data["ledger"]["sequence"], 0);
    }
}

#[test]
fn a_topic_is_shown_from_its_history_on_and_a_broker_that_is_lost_is_found_again() {
    let cluster = MockCluster::new(1).expect("a cluster");
    let brokers = cluster.bootstrap_servers();
    cluster.create_topic("synopses", 2, 1).expect("a topic");
    let send = |key: &str, bytes: &[u8]| {
        // A new one each time: one that has lost the mock broker does not find it again.
        let producer: BaseProducer = ClientConfig::new()
            .set("bootstrap.servers", &brokers)
            .create()
            .expect("a producer");
        producer
            .send(
                BaseRecord::to("synopses")
                    .key(key)
                    .partition(0)
                    .payload(bytes),
            )
            .map_err(|e| e.0)
            .expect("sent");
        producer.flush(PATIENCE).expect("stored");
    };
    let sealed = |sequence| example("JFK", sequence).encode().expect("sealed");
    send(&sealed(1).key, &sealed(1).bytes);
    send("noise", b"not one of ours");
    send(&sealed(2).key, &sealed(2).bytes);
    send(&sealed(2).key, &sealed(2).bytes);
    let dashboard = Dashboard::start(&[
        "--topic",
        "synopses",
        "--brokers",
        &brokers,
        "--history",
        "all",
    ]);
    let mut events = dashboard.events(None);
    let hello = events.next();
    assert_eq!(hello.data["source"], "topic synopses");
    assert_eq!(events.next_of("synopsis").data["ledger"]["sequence"], 1);
    assert_eq!(
        events.next_of("unreadable").data["where"],
        "partition 0, offset 1"
    );
    assert_eq!(events.next_of("synopsis").data["ledger"]["sequence"], 2);
    send(&sealed(3).key, &sealed(3).bytes);
    assert_eq!(
        events.next_of("synopsis").data["ledger"]["sequence"],
        3,
        "the copy is not shown"
    );

    cluster.broker_down(1).expect("down");
    let lost = events.next_source(false);
    assert!(
        !lost["why"].as_str().expect("words").contains(&brokers),
        "{lost:?}"
    );
    assert_eq!(
        dashboard
            .get("/api/v1/synopses")
            .as_array()
            .expect("a list")
            .len(),
        3,
        "what is known is shown"
    );
    cluster.broker_up(1).expect("up");
    events.next_source(true);
    send(&sealed(4).key, &sealed(4).bytes);
    assert_eq!(events.next_of("synopsis").data["ledger"]["sequence"], 4);
    dashboard.end();
}

#[test]
fn a_dashboard_that_cannot_start_says_why() {
    let folder = tempfile::tempdir().expect("a folder");
    let here = folder.path().display().to_string();
    let cluster = MockCluster::new(1).expect("a cluster");
    let brokers = cluster.bootstrap_servers();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = taken.local_addr().expect("it").to_string();
    let free = ["--listen", "127.0.0.1:0"];
    let cases: [(&[&str], i32, &str); 5] = [
        (&[&here, "--listen", &taken], 69, "change --listen"),
        (&["no/such/folder"], 69, "there is no folder no/such/folder"),
        (
            &["--topic", "synopses", "--brokers", &brokers],
            78,
            "there is no topic 'synopses'",
        ),
        (&["--topic", "synopses"], 2, "--brokers"),
        (&[&here, "--history", "long"], 2, "--history"),
    ];
    for (arguments, code, word) in cases {
        let free = if arguments.contains(&"--listen") {
            &[][..]
        } else {
            &free
        };
        let output = bernstream(&[&["dashboard"], arguments, free].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.code() == Some(code) && said.contains(word),
            "{arguments:?}: {:?} {said}",
            output.status
        );
    }
}

/// A worker on the flights with a page of its own.
fn worker(folder: &Path, windows: &str) -> Dashboard {
    let (before, rest) = CONFIGURATION.split_once("windows = ").expect("its windows");
    let (_, after) = rest.split_once('\n').expect("a line");
    let text = format!("{before}windows = {windows}\n{after}")
        .replace("FOLDER", &folder.display().to_string());
    let configuration = folder.join("bernstream.toml");
    fs::write(
        &configuration,
        text + "[serve]\nlisten = \"127.0.0.1:0\"\ndashboard = \"127.0.0.1:0\"\n",
    )
    .expect("written");
    Dashboard::of(&["run", &configuration.display().to_string()])
}

#[test]
fn a_worker_shows_what_it_publishes() {
    let folder = tempfile::tempdir().expect("a folder");
    // Two windows are over. The third is not, so the worker stays until it has been looked at.
    let origin = Timestamp::parse("2013-01-01T05:00:00Z").expect("a time");
    let length = Timestamp::now().since(origin).mul_f64(0.4).as_secs();
    let end = origin.plus(Duration::from_secs(3 * length));
    let windows = format!("{{ origin = \"{origin}\", length = \"{length}s\", end = \"{end}\" }}");
    let worker = worker(folder.path(), &windows);
    let mut events = worker.events(None);
    let out = folder.path().join("out");
    assert_eq!(
        events.next().data["source"],
        format!("folder {}", out.display())
    );
    for _ in 0..2 * 6 {
        let data = events.next_of("synopsis").data;
        let synopsis = Synopsis::from_json(&data.to_string()).expect("a synopsis");
        let about = synopsis.description();
        let files = synopses(&out, &about.release, about.key.as_ref().expect("a key"));
        assert!(
            files.iter().any(|file| open(file) == synopsis),
            "what was published"
        );
    }
    worker.end();
}

#[test]
fn a_worker_ends_when_its_work_is_done_whoever_looks() {
    let folder = tempfile::tempdir().expect("a folder");
    let windows =
        r#"{ origin = "2013-01-01T05:00:00Z", length = "7d", end = "2013-04-23T05:00:00Z" }"#;
    let mut worker = worker(folder.path(), windows);
    // It may be done before anybody looks.
    if let Ok(mut page) = http::connect(&worker.address, "GET /api/v1/events HTTP/1.0\r\n\r\n") {
        let _ = std::io::copy(&mut page, &mut std::io::sink());
    }
    assert!(worker.child.wait().expect("it ends").success());
    assert_eq!(
        synopses(&folder.path().join("out"), "delay", "JFK").len(),
        16
    );
}

#[test]
fn the_demonstration_shows_its_curves_in_a_browser() {
    let demo = Dashboard::of(&["demo", "--dashboard", "127.0.0.1:0"]);
    let page = demo.ask("GET", "/");
    assert!(
        page.status == 200 && page.headers.contains("content-type: text/html"),
        "{}",
        page.headers
    );
    let mut events = demo.events(None);
    assert_eq!(events.next().data["source"], "topic waiting-times-synopses");
    // A table of all counters, and a curve for each.
    let keys: Vec<Value> = (0..6)
        .map(|_| events.next_of("synopsis").data["key"].clone())
        .collect();
    let of_window = [Value::Null, "north".into(), "south".into()];
    assert_eq!(keys, [of_window.clone(), of_window].concat());
    demo.end();
}

#[test]
fn a_real_topic_is_shown_as_it_was_published() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let setup = Setup::new(&servers, 5);
    setup.send(&setup.rows(5_000, 1));
    setup.begin(Duration::from_millis(500));
    let mut worker = setup.start();
    // Before it has made its first window: it comes live, or from the history.
    let dashboard = Dashboard::start(&[
        "--topic",
        &setup.output,
        "--brokers",
        &servers,
        "--history",
        "1h",
    ]);
    let mut events = dashboard.events(None);
    let mut shown: Vec<Value> = (0..10).map(|_| events.next_of("synopsis").data).collect();
    assert!(
        worker.wait().expect("it ends").success(),
        "{}",
        setup.read_log()
    );
    let name = |data: &Value| data["window"]["start"].to_string() + &data["key"].to_string();
    shown.sort_by_key(name);
    let open = |published: &setup::Published| {
        Synopsis::decode_message(&published.payload).expect("a synopsis")
    };
    let json = |synopsis: Synopsis| {
        serde_json::from_str(&synopsis.to_json().expect("JSON")).expect("JSON")
    };
    let mut published: Vec<Value> = setup.published().iter().map(open).map(json).collect();
    published.sort_by_key(name);
    assert_eq!(shown, published);
    let past = Dashboard::start(&[
        "--topic",
        &setup.output,
        "--brokers",
        &servers,
        "--history",
        "0s",
    ]);
    past.events(None).next_source(true);
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(
        past.get("/api/v1/synopses"),
        serde_json::json!([]),
        "nothing is so new"
    );
}

#[test]
fn the_workers_own_dashboard_is_not_at_the_address_of_its_metrics() {
    let serve = |dashboard: &str| {
        let text = format!(
            "{CONFIGURATION}\n[serve]\nlisten = \"127.0.0.1:9464\"\ndashboard = \"{dashboard}\"\n"
        );
        WorkerSettings::parse(&text, "f")
    };
    let settings = serve("127.0.0.1:9465").expect("a configuration");
    assert_eq!(settings.dashboard.map(|address| address.port()), Some(9465));
    let faults = serve("127.0.0.1:9464").expect_err("a fault").to_string();
    assert!(
        faults.contains("serve.dashboard") && faults.contains("use another port"),
        "{faults}"
    );
}

/// Two windows a block; of each 1 for each of three releases, for all keys together.
#[test]
fn what_was_spent_is_told_by_release_by_day_and_by_block_as_the_ledger_has_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let unit =
        "unit = { user = { column = \"carrier\", per = \"56d\", max_records_per_window = 1 } }";
    let text = CONFIGURATION
        .replace("unit = \"record\"", unit)
        .replace("epsilon = 3.0", "epsilon = 9.5");
    let out = release_of(folder.path(), &text);
    // Of the second block only the first window lies there.
    for (release, key) in [
        ("delay", "EWR"),
        ("delay", "JFK"),
        ("delays", "EWR"),
        ("delays", "JFK"),
        ("summary", "EWR"),
    ] {
        fs::remove_file(&synopses(&out, release, key)[3]).expect("removed");
    }
    fs::remove_file(&synopses(&out, "summary", "JFK")[3]).expect("removed");
    let dashboard = Dashboard::start(&[&out.display().to_string()]);
    let mut events = dashboard.events(None);
    (0..18).for_each(|_| drop(events.next_of("synopsis")));
    let spending = dashboard.get("/api/v1/spending");
    let releases = spending["releases"].as_array().expect("releases");
    let names: Vec<&str> = releases
        .iter()
        .filter_map(|one| one["release"].as_str())
        .collect();
    assert_eq!(names, ["delay", "delays", "summary"]);
    for one in releases {
        assert_eq!(
            (&one["windows"], &one["charged"]),
            (&3.into(), &"3".into()),
            "{one}"
        );
        assert_eq!(
            one["span"],
            serde_json::json!({ "start": "2013-01-01T05:00:00Z", "end": "2013-03-26T05:00:00Z" })
        );
    }
    let days: Vec<&str> = spending["days"]
        .as_array()
        .expect("days")
        .iter()
        .filter_map(|one| one["day"].as_str())
        .collect();
    assert_eq!(
        (days.len(), days[0], days[8]),
        (9, "2013-01-01T00:00:00Z", "2013-02-26T00:00:00Z")
    );
    let blocks = spending["blocks"].as_array().expect("blocks");
    let told = |at: usize| {
        ["spent", "total", "left"].map(|name| blocks[at][name].as_str().expect("a price"))
    };
    assert_eq!(
        (blocks.len(), told(0), told(1)),
        (2, ["6", "9.5", "3.5"], ["3", "9.5", "6.5"])
    );
    assert_eq!(
        [&blocks[0]["windows_left"], &blocks[1]["windows_left"]],
        [1, 2]
    );
    assert_eq!(blocks[0]["releases"][2]["charged"], "2");
    // A window of the new block is charged 3 of 9.5, so that the third one after it does not fit; the block ends before.
    let newest = |at: usize| {
        [
            &blocks[at]["price"],
            &blocks[at]["releases"][2]["price"],
            &blocks[at]["newest"]["end"],
        ]
    };
    assert_eq!(newest(1), ["3", "1", "2013-03-26T05:00:00Z"]);
    assert!(
        blocks
            .iter()
            .all(|block| block.get("lasts_until").is_none()),
        "{blocks:?}"
    );
    let shown = bernstream(&[
        "ledger",
        "show",
        "--by",
        "block",
        &folder.path().join("bernstream.toml").display().to_string(),
    ]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(
        shown.contains("6 of 9.5: 2 for delay, 2 for delays, 2 for summary; 2 windows released"),
        "{shown}"
    );
    for (by, field) in [
        ("release", "releases"),
        ("day", "days"),
        ("block", "blocks"),
    ] {
        let of_one = dashboard.get(&format!("/api/v1/spending?by={by}"));
        assert_eq!(of_one, serde_json::json!({ field: spending[field] }));
    }
    for path in [
        "spending?",
        "synopses?",
        "synopses/latest?release=delays&key=JFK&",
        "query?ask=1&",
    ] {
        let (status, why) = dashboard.refusal(&format!("/api/v1/{path}format=csv"));
        assert!(
            status == 400 && why.contains("not available as CSV"),
            "{path}: {status} {why}"
        );
    }
    let one = dashboard.get("/api/v1/spending?release=delays&key=JFK");
    assert_eq!(
        (
            one["releases"].as_array().expect("one").len(),
            &one["blocks"][0]["releases"][0]["windows"]
        ),
        (1, &2.into())
    );
    assert_eq!(
        one["blocks"][0]["spent"], "6",
        "a block is spent by all releases"
    );
}

/// Carriers, and the delays of their flights, by airport.
const COUNTS: &str = r#"
pipeline = "flights"
input = { time = "time", key = { column = "origin", type = "text", values = ["EWR", "JFK", "=1+1"] }, files = { path = "tests/data/flights.parquet" } }
windows = { origin = "2013-01-01T05:00:00Z", length = "28d", end = "2013-04-23T05:00:00Z" }
privacy = { unit = { user = { column = "carrier", type = "text", per = "28d" } }, adjacency = "add_remove", epsilon = 4.0 }
output = { files = { path = "FOLDER/out" } }
ledger = { path = "FOLDER/ledger" }
[release]
name = "carriers"
epsilon = 4.0
[release.counts]
of = ["users", "sum", "mean"]
max_keys = 2
max_records = 50
value = { column = "dep_delay", min = -30, max = 180, outside = "clamp" }
caps = { part = 0.5 }
"#;

#[test]
fn counts_by_key_are_rows_with_intervals_and_no_endpoint_fails_on_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = release_of(folder.path(), COUNTS);
    let mut files: Vec<PathBuf> = fs::read_dir(out.join("flights/carriers"))
        .expect("its folder")
        .map(|entry| entry.expect("a file").path())
        .collect();
    files.sort();
    let newest = open(&files[WINDOWS - 1]);
    let table = newest.key_table().expect("a table");
    let dashboard = Dashboard::start(&[&out.display().to_string(), "--history", "all"]);
    let mut events = dashboard.events(None);
    (0..WINDOWS).for_each(|_| drop(events.next_of("synopsis")));

    let all = dashboard.get("/api/v1/keys");
    let rows = all.as_array().expect("rows");
    assert_eq!(rows.len(), table.keys().len());
    for (row, own) in rows.iter().zip(table.rows()) {
        assert_eq!(row["key"], own.key);
        for (reading, estimate) in table.readings().iter().zip(&own.estimates) {
            let name = reading.name().into_owned();
            let ends = [&row[format!("{name}_lower")], &row[format!("{name}_upper")]];
            match estimate.interval {
                Some(interval) => {
                    assert_eq!(number(&row[&name]), estimate.value);
                    assert_eq!(ends.map(number), [interval.lower, interval.upper]);
                }
                None => assert!(row[&name].is_null() && ends.iter().all(|end| end.is_null())),
            }
        }
    }

    let top = dashboard.get("/api/v1/keys?top=1&by=users");
    let most = rows
        .iter()
        .max_by(|one, other| number(&one["users"]).total_cmp(&number(&other["users"])));
    let mut most = most.expect("one").clone();
    let largest = table.top_keys(KeyReading::Users, 1).expect("users");
    most["is_last_unclear"] = largest.is_last_unclear.into();
    assert_eq!(top, serde_json::json!([most]));
    // All keys leave none out, and nothing else is called the largest.
    let every = dashboard.get("/api/v1/keys?top=3&by=users");
    assert_eq!(every[2]["is_last_unclear"], false);
    assert!(rows[0].get("is_last_unclear").is_none());
    let csv = dashboard
        .ask("GET", "/api/v1/keys?top=3&by=users&format=csv")
        .body;
    assert!(csv.trim_end().ends_with(",false"), "{csv}");
    assert_eq!(dashboard.get("/api/v1/keys?row=JFK")[0], rows[1]);
    let csv = dashboard.ask("GET", "/api/v1/keys?format=csv").body;
    let (head, lines) = csv.split_once("\r\n").expect("a head");
    assert_eq!(
        head,
        "key,users,users_lower,users_upper,records,records_lower,records_upper,sum,sum_lower,sum_upper,mean,mean_lower,mean_upper"
    );
    assert!(lines.starts_with("EWR,") && !csv.contains("NaN"), "{csv}");

    let caps = dashboard.get("/api/v1/caps");
    let told = newest.told_caps().expect("told caps");
    assert_eq!(caps, serde_json::json!(told));
    assert_eq!(caps["max_keys"], 2);
    assert!(number(&caps["dropped"]["interval"]["upper"]) >= number(&caps["dropped"]["value"]));
    assert_eq!(caps["units"][2]["most"], 3);
    number(&caps["units"][2]["interval"]["lower"]);

    let history = dashboard.get("/api/v1/history?row=JFK&by=records");
    let history = history.as_array().expect("rows");
    assert_eq!(history.len(), WINDOWS);
    assert_eq!(history[WINDOWS - 1]["value"], rows[1]["records"]);
    assert_eq!(history[WINDOWS - 1]["upper"], rows[1]["records_upper"]);
    let csv = dashboard
        .ask("GET", "/api/v1/history?row=JFK&format=csv")
        .body;
    assert!(
        csv.starts_with("time,window_start,published,value,lower,upper\r\n2013-01-29T05:00:00Z,"),
        "{csv}"
    );

    for (path, words) in [
        ("curve", "counts by key"),
        ("history?at=15", "counts by key"),
        ("history", "'row' is missing"),
        ("history?row=LGA", "no key 'LGA'"),
        (
            "history?row=JFK&by=median",
            "the table has users, records, sum, mean",
        ),
        (
            "keys?top=1&by=median",
            "the table has users, records, sum, mean",
        ),
        ("keys?by=users", "add top=10"),
        ("keys?margin=origin", "is no column of several"),
        ("keys?margin=origin&row=JFK", "give one of them"),
        ("keys?row=LGA", "no key 'LGA'"),
        ("keys?top=-1", "top"),
        ("caps?format=csv", "not available as CSV"),
        ("query", "counts by key"),
        ("query?ask=1", "counts by key"),
        ("query?range=0..10", "counts by key"),
        ("query?quantile=0.5", "counts by key"),
        ("spending?by=users", "release, day or block"),
    ] {
        let (status, why) = dashboard.refusal(&format!("/api/v1/{path}"));
        assert!(
            status == 400 && why.contains(words),
            "{path}: {status} {why}"
        );
    }
    assert_eq!(dashboard.get("/api/v1/synopses")[0]["target"], "counts");
    dashboard.get("/api/v1/synopses/latest");
    assert_eq!(
        dashboard.get("/api/v1/spending")["releases"][0]["windows"],
        WINDOWS
    );
    let (status, why) = {
        let curves = tempfile::tempdir().expect("a folder");
        let of_curves = Dashboard::start(&[&release(curves.path()).display().to_string()]);
        let mut events = of_curves.events(None);
        (0..6 * WINDOWS).for_each(|_| drop(events.next_of("synopsis")));
        let (status, why) = of_curves.refusal("/api/v1/caps?release=delay&key=JFK");
        assert!(
            status == 400 && why.contains("no counts by key"),
            "{status} {why}"
        );
        of_curves.refusal("/api/v1/keys?release=delay&key=JFK")
    };
    assert!(
        status == 400 && why.contains("no counts by key"),
        "{status} {why}"
    );
}

#[test]
fn rows_of_several_columns_have_their_parts_and_add_up_to_margins() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = COUNTS.replace(
        r#"column = "origin", type = "text", values = ["EWR", "JFK", "=1+1"]"#,
        r#"columns = ["origin", "carrier"], type = "text", values = { origin = ["EWR", "JFK"], carrier = ["B6", "UA"] }"#,
    );
    let out = release_of(folder.path(), &text);
    let dashboard = Dashboard::start(&[&out.display().to_string(), "--history", "all"]);
    let mut events = dashboard.events(None);
    (0..WINDOWS).for_each(|_| drop(events.next_of("synopsis")));
    let rows = dashboard.get("/api/v1/keys");
    assert_eq!(rows[1]["key"], "EWR/UA");
    assert_eq!([&rows[1]["origin"], &rows[1]["carrier"]], ["EWR", "UA"]);
    assert_eq!(dashboard.get("/api/v1/keys?row=EWR/UA")[0], rows[1]);
    let margin = dashboard.get("/api/v1/keys?margin=origin");
    let margin = margin.as_array().expect("rows");
    assert_eq!(margin.len(), 2);
    assert_eq!(margin[0]["origin"], "EWR");
    assert_eq!(number(&margin[0]["keys"]), 2.0);
    let records = number(&rows[0]["records"]) + number(&rows[1]["records"]);
    assert!((number(&margin[0]["records"]) - records).abs() < 1e-6);
    let csv = dashboard
        .ask("GET", "/api/v1/keys?margin=carrier&format=csv")
        .body;
    let head = "carrier,keys,records,records_lower,records_upper,sum,sum_lower,sum_upper,mean,mean_lower,mean_upper";
    assert!(csv.starts_with(head), "{csv}");
    let both = dashboard.get("/api/v1/keys?margin=origin,carrier");
    assert_eq!(both.as_array().expect("rows").len(), 4);
    let (status, why) = dashboard.refusal("/api/v1/keys?margin=device");
    assert!(
        status == 400 && why.contains("origin, carrier"),
        "{status} {why}"
    );
}

/// Delays by airport, through the program, its pages for programs and its terminal.
#[test]
fn quantiles_by_key_are_rows_in_the_api_and_in_the_terminal() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = include_str!("../../config/flights-quantiles.toml")
        .replace("path = \"out/flights-quantiles", "path = \"FOLDER/out")
        .replace("path = \"ledger", "path = \"FOLDER/ledger")
        .replace("length = \"1d\"", "length = \"28d\"")
        .replace(
            "end = \"2013-12-31T05:00:00Z\"",
            "end = \"2013-04-23T05:00:00Z\"",
        );
    let out = release_of(folder.path(), &text);
    let mut files: Vec<PathBuf> = fs::read_dir(out.join("flights-quantiles/delay-quantiles"))
        .expect("its folder")
        .map(|entry| entry.expect("a file").path())
        .collect();
    files.sort();
    let newest = open(&files[WINDOWS - 1]);
    let table = newest.key_table().expect("a table");
    let dashboard = Dashboard::start(&[&out.display().to_string(), "--history", "all"]);
    let mut events = dashboard.events(None);
    (0..WINDOWS).for_each(|_| drop(events.next_of("synopsis")));
    let all = dashboard.get("/api/v1/keys");
    let rows = all.as_array().expect("rows");
    assert_eq!(rows.len(), 3);
    for (row, own) in rows.iter().zip(table.rows()) {
        assert_eq!(row["key"], own.key);
        let [early, middle, late, outer, values] =
            ["p25", "p50", "p75", "p90", "values"].map(|name| number(&row[name]));
        // About 8,000 flights of each: the noise is about a minute at most where few flights are.
        assert!(
            (-8.0..=-3.0).contains(&early) && (-4.0..=1.0).contains(&middle),
            "{row}"
        );
        assert!(
            (2.0..=15.0).contains(&late) && (20.0..=60.0).contains(&outer),
            "{row}"
        );
        assert!((5000.0..=11_000.0).contains(&values), "{row}");
        assert!(
            number(&row["p50_upper"]) - number(&row["p50_lower"]) <= 2.0,
            "{row}"
        );
        assert_eq!([early, middle].map(f64::fract), [0.0; 2], "whole minutes");
    }
    let history = dashboard.get("/api/v1/history?row=JFK&by=p50");
    assert_eq!(history.as_array().expect("rows").len(), WINDOWS);
    let (status, why) = dashboard.refusal("/api/v1/caps");
    assert!(
        status == 400 && why.contains("max_keys drops is not told"),
        "{status} {why}"
    );
    let top = dashboard.get("/api/v1/keys?top=1&by=values");
    let most = rows
        .iter()
        .max_by(|one, other| number(&one["values"]).total_cmp(&number(&other["values"])));
    let mut top = top[0].clone();
    top.as_object_mut()
        .expect("a row")
        .remove("is_last_unclear");
    assert_eq!(top, *most.expect("a row"));
    let printed = bernstream(&["query", &files[WINDOWS - 1].display().to_string()]);
    let text = String::from_utf8_lossy(&printed.stdout);
    assert!(
        text.starts_with("key  p25 ") && text.contains("rounded to steps of 1 from -30 to 180"),
        "{text}"
    );
}

/// Windows of pages that nobody listed, a day each: all of the golden table, none, and all but those that are new.
fn found_windows(folder: &Path) -> Vec<PathBuf> {
    let golden: Value =
        serde_json::from_str(include_str!("../../clients/golden/counts-found.json")).expect("JSON");
    let all = golden["synopsis"].clone();
    let own = folder.join("flights/counts-found");
    fs::create_dir_all(&own).expect("a folder");
    let mut files = Vec::new();
    for day in 0..3 {
        let mut window = all.clone();
        let [start, end] = [18, 19].map(|first| format!("2013-06-{}T05:00:00Z", first + day));
        window["window"] = serde_json::json!({ "start": start, "end": end });
        window["published"] = format!("2013-06-{}T06:01:00Z", 19 + day).into();
        window["ledger"]["sequence"] = (17 + day).into();
        let keys = &mut window["basis"]["keys"];
        let mut rows = keys["found"]["rows"].as_array().expect("rows").clone();
        let mut places = Vec::new();
        for (place, row) in rows.iter_mut().enumerate() {
            if row["until"] == "2013-06-26T05:00:00Z" {
                row["until"] = format!("2013-06-{}T05:00:00Z", 26 + day).into();
            }
            if day == 0 || (day == 2 && row["is_new"] == false) {
                places.push(place);
            }
        }
        let names = keys["keys"].clone();
        keys["keys"] = places.iter().map(|place| names[*place].clone()).collect();
        keys["found"]["rows"] = places.iter().map(|place| rows[*place].clone()).collect();
        let values = places.iter().map(|place| all["values"][*place].clone());
        window["values"] = values.collect();
        let synopsis = Synopsis::from_json(&window.to_string()).expect("a synopsis");
        let path = own.join(format!("2013-06-{}T050000Z.arrows", 18 + day));
        put(&path, &synopsis.encode().expect("a message").bytes);
        files.push(path);
    }
    files
}

#[test]
fn keys_that_nobody_listed_come_and_go_and_are_never_0_where_they_were_not_published() {
    let folder = tempfile::tempdir().expect("a folder");
    found_windows(folder.path());
    let dashboard = Dashboard::start(&[&folder.path().display().to_string(), "--history", "all"]);
    let mut events = dashboard.events(None);
    let sent: Vec<Event> = (0..3).map(|_| events.next_of("synopsis")).collect();
    let rows_sent = sent.iter().map(|event| {
        let synopsis = Synopsis::from_json(&event.data.to_string()).expect("a synopsis");
        synopsis.values().len()
    });
    assert_eq!(rows_sent.collect::<Vec<_>>(), [7, 0, 3]);

    let first = dashboard.get("/api/v1/keys?window=2013-06-18T05:00:00Z");
    let first = first.as_array().expect("rows");
    assert_eq!(first.len(), 7);
    assert_eq!(first[0]["key"], "/");
    assert_eq!([&first[0]["new"], &first[1]["new"]], [true, false]);
    assert_eq!(first[1]["until"], "2013-06-23T05:00:00Z");
    let threshold = number(&first[0]["threshold"]);
    for row in first {
        assert_eq!(number(&row["threshold"]), threshold);
        assert!(row["new"] == false || number(&row["users"]) > threshold);
    }
    // A new key near the threshold may have far fewer users than is published.
    assert!(number(&first[3]["users_lower"]) < 10.0 && number(&first[3]["users"]) > 43.0);
    let none = dashboard.get("/api/v1/keys?window=2013-06-19T05:00:00Z");
    assert_eq!(none, serde_json::json!([]));
    let csv = |path: &str| dashboard.ask("GET", path).body;
    let head = "key,users,users_lower,users_upper,new,until,threshold\r\n";
    assert_eq!(
        csv("/api/v1/keys?window=2013-06-19T05:00:00Z&format=csv"),
        head
    );
    let all = csv("/api/v1/keys?window=2013-06-18T05:00:00Z&format=csv");
    assert!(all.starts_with(head) && all.contains("\r\n'=1+1,"), "{all}");
    assert_eq!(
        dashboard.get("/api/v1/keys").as_array().map(Vec::len),
        Some(3)
    );

    // Published in the first and last window, and in the first alone.
    for (key, is_there) in [
        ("/basket", [true, false, true]),
        ("/", [true, false, false]),
    ] {
        let history = dashboard.get(&format!("/api/v1/history?row={key}"));
        let history = history.as_array().expect("rows");
        assert_eq!(history.len(), 3);
        for (row, is_there) in history.iter().zip(is_there) {
            for number in ["value", "lower", "upper"] {
                assert_eq!(row[number].is_number(), is_there, "{key}: {row}");
                assert_eq!(row[number].is_null(), !is_there, "{key}: {row}");
            }
            assert!(row["time"].is_string());
        }
    }
    let gaps = csv("/api/v1/history?row=/&format=csv");
    assert_eq!(gaps.matches(",,,\r\n").count(), 2, "{gaps}");
    for path in ["history?row=/nobody", "keys?row=/nobody"] {
        let (status, why) = dashboard.refusal(&format!("/api/v1/{path}"));
        assert!(
            status == 400 && why.contains("had fewer than about 41 users"),
            "{path}: {status} {why}"
        );
    }
    assert_eq!(dashboard.refusal("/api/v1/history").0, 400);
    assert_eq!(dashboard.refusal("/api/v1/history?row=/&by=records").0, 400);
}

#[test]
fn keys_that_nobody_listed_are_shown_in_the_terminal_with_what_their_absence_says() {
    let folder = tempfile::tempdir().expect("a folder");
    let files = found_windows(folder.path());
    let shown = |arguments: &[&str]| {
        let output = bernstream(arguments);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text + &String::from_utf8_lossy(&output.stderr)
    };
    let [all, none, _] = [0, 1, 2].map(|place| files[place].display().to_string());
    let text = shown(&["query", &all]);
    assert!(
        text.contains(
            "7 keys, 4 of them new; a key that is not here had fewer than about 41 users"
        ),
        "{text}"
    );
    assert!(text.contains("2013-06-26T05:00:00Z  new\n"), "{text}");
    assert!(text.contains(r"/\u{202e}lmth.\u{1b}[2J<script>"), "{text}");
    assert!(!text.contains(['\u{202e}', '\u{1b}']), "{text:?}");
    let text = shown(&["query", &none]);
    assert!(text.contains("0 keys, 0 of them new; a key"), "{text}");
    let text = shown(&["query", &all, "--row", "/nobody"]);
    assert!(
        text.contains("no key '/nobody' in this table: a key that is not here had fewer"),
        "{text}"
    );
    let answer: Value =
        serde_json::from_str(&shown(&["query", &all, "--top", "2", "--json"])).expect("JSON");
    assert_eq!(answer["found"]["new"], 4);
    assert_eq!(answer["keys"][0]["new"], true);
    assert_eq!(answer["keys"][1]["until"], "2013-06-26T05:00:00Z");
    let golden: Value = serde_json::from_str(include_str!(
        "../../clients/golden/counts-found-overfull.json"
    ))
    .expect("JSON");
    let overfull = folder.path().join("overfull.json");
    fs::write(&overfull, golden["synopsis"].to_string()).expect("written");
    let text = shown(&["query", &overfull.display().to_string()]);
    assert!(
        text.contains("too many different keys to look for new ones"),
        "{text}"
    );
}
