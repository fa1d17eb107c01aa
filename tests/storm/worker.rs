//! The worker that a storm is about: what is between it and its system, its life and its death.

use std::fmt;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::harness::preload::{Clock, build};
use crate::harness::setup::Setup;

use super::schedule::{Call, Errno, Way};

/// What is preloaded into every worker of an episode.
pub struct Shim {
    pub clock: Clock,
    faults: PathBuf,
    kept: PathBuf,
}

impl Shim {
    /// None without a C compiler.
    pub fn new(folder: &Path) -> Option<Self> {
        let shim = Shim {
            clock: Clock::new(folder)?,
            faults: build("storm/faults.c", folder)?,
            kept: folder.join("kept"),
        };
        fs::create_dir(&shim.kept).expect("a folder");
        Some(shim)
    }

    /// Whether a call has failed since this was last asked.
    pub fn was_refused(&self) -> bool {
        fs::remove_file(self.kept.join("refused")).is_ok()
    }
}

/// Where and how a worker dies.
#[derive(Clone, Copy, Debug)]
pub struct Death {
    pub way: Way,
    pub call: Call,
    pub count: u32,
    pub seed: u32,
}

/// Which calls of a worker fail, and how.
#[derive(Clone, Copy, Debug)]
pub struct Refusal {
    pub error: Errno,
    pub call: Call,
    pub count: u32,
    pub times: u32,
}

/// What its system does to a worker.
#[derive(Clone, Copy, Debug)]
pub enum Plan {
    Dies(Death),
    Refused(Refusal),
    Nothing,
}

impl fmt::Display for Plan {
    /// As `faults.c` reads it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Plan::Dies(Death {
                way,
                call,
                count,
                seed,
            }) => write!(f, "{way} {call} {count} {seed}"),
            Plan::Refused(Refusal {
                error,
                call,
                count,
                times,
            }) => write!(f, "{error} {call} {count} {times}"),
            // Nothing is synced really in any of them.
            Plan::Nothing => write!(f, "never none 0 0"),
        }
    }
}

/// A worker; it ends with the episode.
pub struct Worker {
    pub child: Child,
    pub plan: Plan,
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Worker {
    pub fn start(setup: &Setup, shim: &Shim, plan: Plan) -> Self {
        let log = fs::File::options()
            .create(true)
            .append(true)
            .open(setup.log())
            .expect("a log");
        let mut command = setup.bernstream(&["run"]);
        let preloaded = format!("{}:{}", shim.faults.display(), shim.clock.library.display());
        command
            .arg(setup.configuration())
            .env("LD_PRELOAD", preloaded)
            .env(Clock::SHIFT, &shim.clock.shift)
            .env("BERNSTREAM_STORM_FOLDER", setup.ledger())
            .env("BERNSTREAM_STORM_KEPT", &shim.kept);
        command.env("BERNSTREAM_STORM_FAULT", plan.to_string());
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("it starts");
        Worker { child, plan }
    }

    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("it can be asked")
    }

    /// Waits until it has ended, at most so long.
    pub fn ends_within(&mut self, time: Duration) -> Option<ExitStatus> {
        let until = Instant::now() + time;
        loop {
            let ended = self.ended();
            if ended.is_some() || Instant::now() > until {
                return ended;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(
            Command::new("kill")
                .args([name, &id])
                .status()
                .expect("kill runs")
                .success()
        );
    }
}

pub fn was_killed(status: ExitStatus) -> bool {
    status.signal() == Some(9)
}
