//! The probes answer whatever else is asked of a worker.

use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use crate::harness::kafka;
use crate::harness::running::Running;
use crate::harness::setup::Setup;

/// The patience of the probes in `deploy/`.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);
/// More than the server has places.
const SLOW: usize = 150;

/// Holds connections that send a byte a second and never a whole request; opens those again that were closed. Returns how many
/// were.
fn trickle(address: &str, stop: &AtomicBool, open: &AtomicU32) -> u32 {
    let connect = || {
        TcpStream::connect(address).and_then(|mut stream| stream.write_all(b"GET / HTTP/1.1\r\nA: ").map(|()| stream))
    };
    let mut streams: Vec<Option<TcpStream>> = (0..SLOW).map(|_| connect().ok()).collect();
    let mut closed = 0;
    while !stop.load(Relaxed) {
        open.store(u32::try_from(streams.iter().flatten().count()).expect("some"), Relaxed);
        thread::sleep(Duration::from_secs(1));
        for stream in &mut streams {
            if stream.as_mut().is_none_or(|stream| stream.write_all(b"a").is_err()) {
                closed += 1;
                *stream = connect().ok();
            }
        }
    }
    closed
}

#[test]
fn slow_connections_starve_neither_probes_nor_metrics() {
    let Some(broker) = kafka::broker() else { return };
    let setup = Setup::new(&broker, 4);
    setup.begin(Duration::from_secs(600));
    let worker = Running::start(&setup);
    worker.wait_ready(&setup, true);
    let address = worker.address();
    let (stop, open) = (AtomicBool::new(false), AtomicU32::new(0));
    thread::scope(|scope| {
        let slow = scope.spawn(|| trickle(address, &stop, &open));
        setup.wait_for("slow connections", || (open.load(Relaxed) > 0).then_some(()));
        let started = Instant::now();
        let mut slowest = Duration::ZERO;
        while started.elapsed() < Duration::from_secs(12) {
            for path in ["/healthz", "/readyz", "/metrics"] {
                let asked = Instant::now();
                assert_eq!(worker.get(path).0, 200, "{path} after {:?}", started.elapsed());
                slowest = slowest.max(asked.elapsed());
            }
            thread::sleep(Duration::from_millis(200));
        }
        stop.store(true, Relaxed);
        let closed = slow.join().expect("it ends");
        assert!(slowest < PROBE_TIMEOUT, "the slowest answer took {slowest:?}");
        assert!(closed as usize > SLOW, "slow connections are closed, those that trickle too: {closed}");
    });
}

/// A worker that leaves reading to absorbers is ready without one: it reads by itself, and says nothing else about them.
#[test]
fn a_worker_is_ready_without_any_absorber() {
    let Some(broker) = kafka::broker() else { return };
    let setup = Setup::new(&broker, 4);
    fs::write(setup.folder.path().join("key"), [7; 32]).expect("it is written");
    let key = setup.folder.path().join("key");
    let scale =
        format!("[scale]\ntopic = \"{}\"\nkey_file = \"{}\"\n[ledger]\n", kafka::fresh_name("partials"), key.display());
    setup.edit("[ledger]\n", &scale);
    setup.begin(Duration::from_secs(600));
    let worker = Running::start(&setup);
    worker.wait_ready(&setup, true);
    assert_eq!(worker.get("/healthz").0, 200);
}
