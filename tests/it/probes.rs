//! The probes answer whatever else is asked of a worker.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use crate::harness::running::Running;
use crate::harness::setup::Setup;
use crate::harness::{http, kafka};

/// The patience of the probes in `deploy/`.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);
/// More than the server has places.
const SLOW: usize = 150;

/// Holds connections that send a byte a second and never a whole request; opens those again that were closed. Returns how many
/// were.
fn trickle(address: &str, count: usize, stop: &AtomicBool, open: &AtomicU32) -> u32 {
    let connect = || {
        TcpStream::connect(address)
            .and_then(|mut stream| stream.write_all(b"GET / HTTP/1.1\r\nA: ").map(|()| stream))
    };
    let mut streams: Vec<Option<TcpStream>> = (0..count).map(|_| connect().ok()).collect();
    let mut closed = 0;
    while !stop.load(Relaxed) {
        open.store(
            u32::try_from(streams.iter().flatten().count()).expect("some"),
            Relaxed,
        );
        thread::sleep(Duration::from_secs(1));
        for stream in &mut streams {
            if stream
                .as_mut()
                .is_none_or(|stream| stream.write_all(b"a").is_err())
            {
                closed += 1;
                *stream = connect().ok();
            }
        }
    }
    closed
}

/// Asks for an end when it is dropped, however its test ends.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

#[test]
fn slow_connections_starve_neither_probes_nor_metrics() {
    let Some(broker) = kafka::broker() else {
        return;
    };
    let setup = Setup::new(&broker, 4);
    setup.begin(Duration::from_secs(600));
    let worker = Running::start(&setup);
    worker.wait_ready(&setup, true);
    let address = worker.address();
    let stop = AtomicBool::new(false);
    let open = AtomicU32::new(0);
    thread::scope(|scope| {
        let over = Over(&stop);
        let slow = scope.spawn(|| trickle(address, SLOW, &stop, &open));
        setup.wait_for("slow connections", || {
            (open.load(Relaxed) > 0).then_some(())
        });
        let started = Instant::now();
        let mut slowest = Duration::ZERO;
        while started.elapsed() < Duration::from_secs(12) {
            for path in ["/healthz", "/readyz", "/metrics"] {
                let asked = Instant::now();
                assert_eq!(
                    worker.get(path).0,
                    200,
                    "{path} after {:?}",
                    started.elapsed()
                );
                slowest = slowest.max(asked.elapsed());
            }
            thread::sleep(Duration::from_millis(200));
        }
        drop(over);
        let closed = slow.join().expect("it ends");
        assert!(
            slowest < PROBE_TIMEOUT,
            "the slowest answer took {slowest:?}"
        );
        assert!(
            closed as usize > SLOW,
            "slow connections are closed, those that trickle too: {closed}"
        );
    });
}

/// A worker that leaves reading to absorbers is ready without one: it reads by itself, and says nothing else about them.
#[test]
fn a_worker_is_ready_without_any_absorber() {
    let Some(broker) = kafka::broker() else {
        return;
    };
    let setup = Setup::new(&broker, 4);
    fs::write(setup.folder.path().join("key"), [7; 32]).expect("it is written");
    let key = setup.folder.path().join("key");
    let scale = format!(
        "[scale]\ntopic = \"{}\"\nkey_file = \"{}\"\n[ledger]\n",
        kafka::fresh_name("partials"),
        key.display()
    );
    setup.edit("[ledger]\n", &scale);
    setup.begin(Duration::from_secs(600));
    let worker = Running::start(&setup);
    worker.wait_ready(&setup, true);
    assert_eq!(worker.get("/healthz").0, 200);
}

/// Starts a worker that may open few files.
fn start_with_few_files(setup: &Setup) -> Child {
    let log = fs::File::options()
        .create(true)
        .append(true)
        .open(setup.log())
        .expect("a log");
    let worker = setup.bernstream(&["run"]);
    let mut shell = Command::new("sh");
    shell
        .args(["-c", "ulimit -n 256; exec \"$0\" run \"$1\""])
        .arg(worker.get_program())
        .arg(setup.configuration());
    shell
        .env("BERNSTREAM_LOG", "info")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log);
    shell.spawn().expect("the worker starts")
}

/// Probes and dashboard, each on a free port.
fn serve_both(setup: &Setup, more: &str) {
    let text = fs::read_to_string(setup.configuration()).expect("the configuration");
    let serve =
        format!("\n[serve]\nlisten = \"127.0.0.1:0\"\ndashboard = \"127.0.0.1:0\"\n{more}\n");
    fs::write(setup.configuration(), text + &serve).expect("it is written");
}

/// Where the dashboard of a worker is.
fn dashboard(setup: &Setup) -> String {
    setup.wait_for("the dashboard", || {
        let log = setup.read_log();
        let address = log
            .split_once("serving the dashboard at http://")?
            .1
            .split_once('"')?
            .0;
        Some(address.to_owned())
    })
}

#[test]
fn a_worker_that_may_open_few_files_keeps_those_of_ledger_and_brokers() {
    let Some(broker) = kafka::broker() else {
        return;
    };
    let setup = Setup::ticking(&broker);
    serve_both(&setup, "");
    let mut worker = Running::start_by(&setup, start_with_few_files);
    worker.wait_ready(&setup, true);
    let page = dashboard(&setup);
    let stop = AtomicBool::new(false);
    let [open, opened] = [AtomicU32::new(0), AtomicU32::new(0)];
    let files =
        || fs::read_dir(format!("/proc/{}/fd", worker.child.id())).map_or(0, Iterator::count);
    println!("{} files before", files());
    let most = thread::scope(|scope| {
        let _over = Over(&stop);
        scope.spawn(|| trickle(worker.address(), SLOW / 2, &stop, &open));
        scope.spawn(|| trickle(&page, SLOW, &stop, &opened));
        setup.wait_for("slow connections", || {
            (open.load(Relaxed) > 0 && opened.load(Relaxed) > 0).then_some(())
        });
        // Streams that wait for synopses: more than the page has places for.
        let request = "GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n";
        let _streams: Vec<TcpStream> = (0..SLOW)
            .filter_map(|_| http::connect(&page, request).ok())
            .collect();
        let published = worker
            .metric("synopses_published_total")
            .unwrap_or_default();
        let started = Instant::now();
        let mut most = 0;
        while started.elapsed() < Duration::from_secs(10) {
            let asked = Instant::now();
            assert_eq!(worker.get("/readyz").0, 200, "{}", setup.read_log());
            assert!(asked.elapsed() < PROBE_TIMEOUT, "{:?}", asked.elapsed());
            let asked = Instant::now();
            let listed = http::ask(&page, "GET", "/api/v1/synopses").expect("an answer");
            assert!(
                listed.status == 200 && asked.elapsed() < PROBE_TIMEOUT,
                "{:?}",
                asked.elapsed()
            );
            most = most.max(files());
            thread::sleep(Duration::from_millis(200));
        }
        worker.wait_metric(&setup, "synopses_published_total", published + 10.0);
        most
    });
    println!("{most} files at most");
    assert!(most < 240, "some are left for ledger and brokers: {most}");
    worker.terminate();
    assert!(worker.end(&setup).success(), "{}", setup.read_log());
    let log = setup.read_log();
    assert_eq!(
        log.matches("this process may open 256 files").count(),
        2,
        "of each server once: {log}"
    );
    assert!(
        log.contains("connections of the dashboard are taken"),
        "{log}"
    );
}

/// The status with which a request is answered that names this host.
fn status_for(address: &str, host: &str) -> String {
    let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    let mut answer = String::new();
    http::connect(address, &request)
        .expect("it connects")
        .read_to_string(&mut answer)
        .expect("an answer");
    answer.split(' ').nth(1).expect("a status").to_owned()
}

#[test]
fn a_page_of_another_name_that_leads_to_this_machine_is_refused() {
    let Some(broker) = kafka::broker() else {
        return;
    };
    let setup = Setup::new(&broker, 4);
    setup.begin(Duration::from_secs(600));
    serve_both(&setup, "hosts = [\"page.example.org\"]");
    let worker = Running::start(&setup);
    let probes = worker.address().to_owned();
    let page = dashboard(&setup);
    for (address, found) in [(&probes, "404"), (&page, "200")] {
        for own in [
            "localhost",
            "127.0.0.1:1",
            "[::1]",
            "10.0.0.7",
            "page.example.org:80",
        ] {
            assert_eq!(status_for(address, own), found, "{own}");
        }
        for foreign in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
        ] {
            assert_eq!(status_for(address, foreign), "421", "{foreign}");
        }
    }
    drop(worker);
    // Everybody may know a public address by another name.
    setup.edit(
        "dashboard = \"127.0.0.1:0\"\nhosts = [\"page.example.org\"]",
        "",
    );
    setup.edit("listen = \"127.0.0.1:0\"", "listen = \"0.0.0.0:0\"");
    let worker = Running::start(&setup);
    assert_eq!(status_for(worker.address(), "worker.example"), "404");
}
