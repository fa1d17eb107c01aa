//! What stands between a broker and its controller, and can keep the broker's signs of life to itself.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

/// Forwards each connection to the controller that the broker's settings name.
pub struct Lifeline {
    pub port: u16,
    is_cut: Arc<AtomicBool>,
}

impl Lifeline {
    /// `settings` is the file of a broker that starts later.
    pub fn lay(settings: PathBuf) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("its address").port();
        let is_cut = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&is_cut);
        thread::spawn(move || {
            for broker in listener.incoming() {
                // Who finds nobody tries again.
                let Some(controller) = controller(&settings) else {
                    continue;
                };
                let (Ok(broker), Ok(controller)) = (broker, TcpStream::connect(controller)) else {
                    continue;
                };
                let copies = (
                    broker.try_clone().expect("a copy"),
                    controller.try_clone().expect("a copy"),
                );
                for (from, to) in [(broker, copies.1), (controller, copies.0)] {
                    let is_cut = Arc::clone(&seen);
                    thread::spawn(move || forward(from, to, &is_cut));
                }
            }
        });
        Lifeline { port, is_cut }
    }

    /// Nothing passes any more, and nothing is lost.
    pub fn cut(&self) {
        self.is_cut.store(true, Relaxed);
    }

    pub fn heal(&self) {
        self.is_cut.store(false, Relaxed);
    }
}

fn controller(settings: &PathBuf) -> Option<String> {
    let text = std::fs::read_to_string(settings).ok()?;
    let listeners = text.lines().find(|line| line.starts_with("listeners="))?;
    Some(listeners.split_once("CONTROLLER://")?.1.to_owned())
}

fn forward(mut from: TcpStream, mut to: TcpStream, is_cut: &AtomicBool) -> io::Result<()> {
    let mut bytes = [0; 4096];
    loop {
        let count = from.read(&mut bytes)?;
        while is_cut.load(Relaxed) {
            thread::sleep(Duration::from_millis(10));
        }
        if count == 0 {
            return to.shutdown(std::net::Shutdown::Both);
        }
        to.write_all(bytes.get(..count).unwrap_or_default())?;
    }
}
