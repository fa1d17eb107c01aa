//! A registry that knows a newer schema than those that are pinned: the worker and `check` say so, and nothing else changes.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;

use bernstream_config::WorkerSettings;
use bernstream_kafka::source::registry::{RegistryLogin, SchemaRegistry};

use crate::harness::http::free_address;
use crate::harness::kafka;
use crate::harness::running::Running;
use crate::harness::setup::Setup;

/// A registry that knows the newest schema of the subject `rides value`, and tells a reader with the password "secret" that of `private`.
struct MockRegistry {
    address: String,
    newest: Arc<AtomicU32>,
}

impl MockRegistry {
    fn start(newest: u32) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address").to_string();
        let newest = Arc::new(AtomicU32::new(newest));
        let known = Arc::clone(&newest);
        // Ends with the program of the tests.
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.expect("a connection");
                let asked: Vec<String> = BufReader::new(&stream)
                    .lines()
                    .map_while(Result::ok)
                    .take_while(|line| !line.is_empty())
                    .collect();
                let (status, body) = match asked.first().map_or("", String::as_str) {
                    "GET /ccompat/subjects/rides%20value/versions/latest HTTP/1.1" => {
                        let id = known.load(Relaxed);
                        (
                            "200 OK",
                            format!(
                                r#"{{"subject":"rides value","version":3,"id":{id},"schema":"\"long\""}}"#
                            ),
                        )
                    }
                    "GET /subjects/private/versions/latest HTTP/1.1" => {
                        let is_known = asked
                            .iter()
                            .any(|line| line == "authorization: Basic cmVhZGVyOnNlY3JldA==");
                        if is_known {
                            ("200 OK", r#"{"id":9}"#.to_owned())
                        } else {
                            ("401 Unauthorized", String::new())
                        }
                    }
                    "GET /subjects/other/versions/latest HTTP/1.1" => {
                        ("200 OK", r#"{"id":9,"schemaType":"PROTOBUF"}"#.to_owned())
                    }
                    _ => (
                        "404 Not Found",
                        r#"{"error_code":40401,"message":"Subject not found."}"#.to_owned(),
                    ),
                };
                // In pieces, as a proxy may answer.
                let head = "Transfer-Encoding: chunked\r\nConnection: close\r\n";
                let _ = write!(
                    stream,
                    "HTTP/1.1 {status}\r\n{head}\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
                    body.len()
                );
            }
        });
        MockRegistry { address, newest }
    }

    fn url(&self) -> String {
        format!("http://{}/ccompat/", self.address)
    }
}

/// Adds what reads records of the schema 7, and names the registry at `url`.
fn reads_avro(setup: &Setup, url: &str, more: &str) {
    let schema = setup.folder.path().join("ride.avsc");
    let fields = r#"{"name":"time","type":"long"},{"name":"key","type":"string"},{"name":"value","type":"double"}"#;
    fs::write(
        &schema,
        format!(r#"{{"type":"record","name":"ride","fields":[{fields}]}}"#),
    )
    .expect("a schema");
    let registry = format!("registry = {{ url = \"{url}\", subject = \"rides value\"{more} }}");
    let format = format!(
        "format = {{ avro = {{ schemas = [{{ id = 7, file = {schema:?} }}], {registry} }} }}"
    );
    setup.edit("clock_slack", &format!("{format}\nclock_slack"));
    setup.edit(
        "time = \"time\"",
        "time = \"time\"\ntime_format = \"milliseconds\"",
    );
    setup.edit("column = \"key\"", "column = \"key\", type = \"text\"");
}

/// What `check` says, and its code.
fn check(setup: &Setup, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = setup.bernstream(&[&["check"], arguments].concat());
    let done = command
        .arg(setup.configuration())
        .output()
        .expect("it runs");
    (
        done.status.code(),
        String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned(),
    )
}

/// What processes compare of the settings: of privacy, and of reading.
fn compared(setup: &Setup) -> ([u8; 32], String) {
    let settings = WorkerSettings::load(&setup.configuration()).expect("a configuration");
    (settings.digest(), settings.reading_digest())
}

/// The lines of `text` with these words.
fn lines<'t>(text: &'t str, words: &str) -> Vec<&'t str> {
    text.lines().filter(|line| line.contains(words)).collect()
}

const NEWER: &str = "the newest schema of subject 'rides value', id 8, is not pinned";

#[test]
fn a_registry_that_does_not_answer_changes_nothing_in_a_worker() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let setup = Setup::of_seconds(&servers, 0);
    reads_avro(&setup, &format!("http://{}", free_address()), "");
    assert!(setup.ledger_command(&["init"]).status.success());
    let mut worker = Running::start(&setup);
    setup.wait_for("the silence", || {
        worker
            .metric("schema_registry_answers")
            .filter(|answers| *answers == 0.0)
    });
    worker.wait_metric(&setup, "windows_released_total", 1.0);
    worker.wait_ready(&setup, true);
    assert_eq!(worker.metric("newest_schema_pinned"), None, "nobody knows");
    worker.terminate();
    assert!(worker.end(&setup).success());
    let log = setup.read_log();
    assert_eq!(
        lines(
            &log,
            "does not say which schema of subject 'rides value' is the newest"
        )
        .len(),
        1,
        "{log}"
    );
}

#[test]
fn check_compares_the_newest_schema_with_those_that_are_pinned() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let registry = MockRegistry::start(7);
    let setup = Setup::new(&servers, 2);
    reads_avro(&setup, &registry.url(), "");
    let of_registry = |told: &str, word: &str| {
        let told = lines(told, "the newest schema of rides value at http://").concat();
        assert!(told.trim_start().starts_with(word), "{word}: {told}");
        told
    };
    let (code, told) = check(&setup, &[]);
    assert_eq!(code, Some(0), "{told}");
    assert!(
        of_registry(&told, "ok").ends_with("/ccompat is pinned: id 7"),
        "{told}"
    );

    registry.newest.store(8, Relaxed);
    let (code, told) = check(&setup, &[]);
    assert_eq!(code, Some(0), "producers may not use it yet: {told}");
    assert!(of_registry(&told, "warn").contains(NEWER), "{told}");
    assert!(told.contains("{ id = 8, file = \"FILE\" }"), "{told}");
    let (code, told) = check(&setup, &["--json"]);
    let checked: serde_json::Value = serde_json::from_str(&told).expect("JSON");
    let last = checked["checks"]
        .as_array()
        .and_then(|checks| checks.last())
        .expect("a check");
    assert!(
        code == Some(0) && last["fault"].is_null() && last["warning"].to_string().contains(NEWER),
        "{told}"
    );

    // A misspelt subject is told, as is a registry that is not there; the one that is there is not asked offline.
    setup.edit("\"rides value\"", "\"rides\"");
    let (code, told) = check(&setup, &[]);
    assert!(
        code == Some(0) && told.contains("is the newest: it has no such subject"),
        "{told}"
    );
    let before = compared(&setup);
    setup.edit(&registry.address, &free_address());
    assert_eq!(
        compared(&setup),
        before,
        "no record depends on the registry"
    );
    let (code, told) = check(&setup, &[]);
    assert!(
        code == Some(0) && told.contains("is the newest: io: Connection refused"),
        "{told}"
    );
    let (code, told) = check(&setup, &["--offline"]);
    assert!(
        code == Some(0)
            && !told.contains("is the newest")
            && told.contains("the registry at http://"),
        "{told}"
    );
}

#[test]
fn a_registry_of_https_needs_tls_and_a_password_needs_https() {
    let Some(servers) = kafka::broker() else {
        return;
    };
    let setup = Setup::new(&servers, 2);
    let file = setup.folder.path().join("password");
    fs::write(&file, "secret\n").expect("a password");
    let login = format!(", username = \"reader\", password_file = {file:?}");
    reads_avro(&setup, "https://registry", &login);
    let (code, told) = check(&setup, &["--offline"]);
    let without_tls = "https://registry cannot be reached: this program was built without TLS";
    assert_eq!(
        told.contains(without_tls),
        cfg!(not(feature = "tls")),
        "{told}"
    );
    assert!(
        code == Some(0) && told.contains("can read the secret in"),
        "{told}"
    );
    for (right, wrong, words) in [
        ("\"reader\"", "\"reader:of\"", "must not contain ':'"),
        (
            "https://registry",
            "http://registry",
            "an http:// address gets the password in the clear",
        ),
        (
            "https://registry",
            "https://reader:secret@registry",
            "a name and a password belong to username and password_file",
        ),
        (
            "https://registry",
            "registry:8081",
            "is not the address of a registry",
        ),
    ] {
        setup.edit(right, wrong);
        let (code, told) = check(&setup, &["--offline"]);
        assert!(code == Some(78) && told.contains(words), "{wrong}: {told}");
        setup.edit(wrong, right);
    }
}

#[test]
fn a_registry_that_asks_for_a_password_gets_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let password_file = folder.path().join("password");
    let server = MockRegistry::start(7);
    let ask = |password: &str| {
        fs::write(&password_file, password).expect("a password");
        let login = RegistryLogin {
            username: "reader".to_owned(),
            password_file: password_file.clone(),
        };
        let newest = registry_of("private", &server, Some(login)).newest_schema();
        newest
            .map(|newest| newest.id)
            .map_err(|failure| failure.to_string())
    };
    assert_eq!(ask("secret\n"), Ok(9));
    for (wrong, words) in [("other\n", "it refuses the user"), ("", "is empty")] {
        let told = ask(wrong).expect_err("it is wrong");
        assert!(told.ends_with(words) && !told.contains("other"), "{told}");
    }
}

#[test]
fn a_schema_that_is_not_of_avro_is_said_to_be_none() {
    let registry = registry_of("other", &MockRegistry::start(7), None);
    let newest = registry.newest_schema().expect("it is named");
    assert!(
        registry.pinned.contains(&newest.id) && !registry.pins_schema(&newest),
        "an id of another format"
    );
    assert_eq!((newest.id, newest.format.as_str()), (9, "PROTOBUF"));
}

fn registry_of(
    subject: &str,
    server: &MockRegistry,
    login: Option<RegistryLogin>,
) -> SchemaRegistry {
    let url = format!("http://{}", server.address);
    SchemaRegistry {
        url,
        subject: subject.to_owned(),
        login,
        pinned: [9].into(),
    }
}

mod long {
    use super::*;

    #[test]
    fn a_worker_says_that_a_newer_schema_is_not_pinned() {
        let Some(servers) = kafka::broker() else {
            return;
        };
        let registry = MockRegistry::start(7);
        let setup = Setup::of_seconds(&servers, 0);
        reads_avro(&setup, &registry.url(), "");
        assert!(setup.ledger_command(&["init"]).status.success());
        let mut worker = Running::start(&setup);
        setup.wait_for("the first answer", || {
            worker
                .metric("newest_schema_pinned")
                .filter(|pinned| *pinned == 1.0)
        });
        worker.wait_ready(&setup, true);
        let (_, metrics) = worker.get("/metrics");
        assert_eq!(lines(&metrics, "bernstream_newest_schema_pinned{").len(), 1);
        assert!(metrics.contains("subject=\"rides value\""), "{metrics}");
        assert_eq!(
            lines(&setup.read_log(), "subject").len(),
            0,
            "{}",
            setup.read_log()
        );

        registry.newest.store(8, Relaxed);
        setup.wait_for("a newer schema", || {
            worker
                .metric("newest_schema_pinned")
                .filter(|pinned| *pinned == 0.0)
        });
        assert_eq!(worker.metric("schema_registry_answers"), Some(1.0));
        worker.wait_ready(&setup, true);
        worker.terminate();
        assert!(worker.end(&setup).success());
        let log = setup.read_log();
        let told = lines(&log, NEWER);
        assert!(
            told.len() == 1 && told[0].contains("/ccompat/schemas/ids/8/schema > FILE"),
            "{log}"
        );
    }
}
