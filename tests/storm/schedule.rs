//! What happens to a worker, in which order: drawn from a seed, written as one line, read again.

use std::fmt;
use std::str::FromStr;

use rand::rngs::ChaCha20Rng;
use rand::{RngExt, SeedableRng};

/// The windows of an episode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grid {
    /// Of a minute, long ago: closed one after the other, as fast as they can be.
    Past,
    /// Of a second, as they come.
    Live,
}

/// How a worker dies at a system call; `faults.c` says what each means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Before,
    After,
    Torn,
    Cut,
    /// A cut of a disk that never syncs: no worker can live with that. Not drawn.
    Lie,
}

/// With which error a system call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Errno {
    Eio,
    Enospc,
    Erofs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// Fails, and kills nobody.
    Read,
    Write,
    Sync,
    Truncate,
    Unlink,
    Rename,
    Create,
    Send,
    Receive,
    Log,
}

/// What happens to a broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Harm {
    /// It is killed, and comes back.
    Killed,
    /// It is stopped, and goes on.
    Frozen,
    /// It does not reach the other brokers; clients reach it.
    Alone,
    /// It does not reach the next one.
    Parted,
    /// Its clock is two seconds ahead.
    Ahead,
    /// Its clock is two seconds behind.
    Behind,
}

/// What becomes of the worker where all brokers lose their power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beside {
    /// It has power of its own.
    Lives,
    /// It dies with them.
    Dies,
    /// It dies with them, and loses its disk.
    LosesDisk,
}

/// One thing that happens. Times are in milliseconds; where no worker runs one is started first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A new worker dies at its `count`th call.
    Dies {
        way: Way,
        call: Call,
        count: u32,
        seed: u32,
    },
    /// So many calls of a new worker fail, from the `count`th on, on files of its ledger.
    Refused {
        error: Errno,
        call: Call,
        count: u32,
        times: u32,
    },
    /// It is killed from outside.
    Killed { after: u32 },
    /// It is stopped, and goes on.
    Frozen { after: u32, lasts: u32 },
    /// Its clock is wrong by so many seconds.
    Clock {
        after: u32,
        seconds: i32,
        lasts: u32,
    },
    /// Another worker is started on its ledger.
    Second { after: u32 },
    /// A broker has an accident for a while.
    Broker {
        harm: Harm,
        broker: i32,
        after: u32,
        lasts: u32,
    },
    /// All brokers lose their power at once, and what they had not synced.
    PowerCut {
        after: u32,
        lasts: u32,
        worker: Beside,
    },
    /// `ledger verify`, an export that nobody reads, and slow readers of the endpoints, all at once.
    Readers { after: u32, lasts: u32 },
    /// A batch that no client can unpack comes to a partition of the input; the worker is started again without it.
    Bomb { after: u32, partition: i32 },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    pub grid: Grid,
    pub windows: u32,
    /// Of the records.
    pub seed: u64,
    pub faults: Vec<Fault>,
}

const WAYS: [(Way, &str); 5] = [
    (Way::Before, "before"),
    (Way::After, "after"),
    (Way::Torn, "torn"),
    (Way::Cut, "cut"),
    (Way::Lie, "lie"),
];
const ERRORS: [(Errno, &str); 3] = [
    (Errno::Eio, "eio"),
    (Errno::Enospc, "enospc"),
    (Errno::Erofs, "erofs"),
];
const BESIDE: [(Beside, &str); 3] = [
    (Beside::Lives, "lives"),
    (Beside::Dies, "dies"),
    (Beside::LosesDisk, "loses-disk"),
];
const CALLS: [(Call, &str); 10] = [
    (Call::Read, "read"),
    (Call::Write, "write"),
    (Call::Sync, "sync"),
    (Call::Truncate, "truncate"),
    (Call::Unlink, "unlink"),
    (Call::Rename, "rename"),
    (Call::Create, "create"),
    (Call::Send, "send"),
    (Call::Receive, "receive"),
    (Call::Log, "log"),
];
const HARMS: [(Harm, &str); 6] = [
    (Harm::Killed, "killed"),
    (Harm::Frozen, "frozen"),
    (Harm::Alone, "alone"),
    (Harm::Parted, "parted"),
    (Harm::Ahead, "ahead"),
    (Harm::Behind, "behind"),
];
const GRIDS: [(Grid, &str); 2] = [(Grid::Past, "past"), (Grid::Live, "live")];

fn name<T: PartialEq>(names: &[(T, &'static str)], of: &T) -> &'static str {
    names
        .iter()
        .find(|(value, _)| value == of)
        .expect("all are named")
        .1
}

fn named<T: Copy>(names: &[(T, &str)], text: &str) -> Option<T> {
    names
        .iter()
        .find(|(_, name)| *name == text)
        .map(|(value, _)| *value)
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(name(&CALLS, self))
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(name(&WAYS, self))
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(name(&ERRORS, self))
    }
}

impl fmt::Display for Beside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(name(&BESIDE, self))
    }
}

impl fmt::Display for Harm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(name(&HARMS, self))
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Dies {
                way,
                call,
                count,
                seed,
            } => write!(f, "{way}:{call}:{count}:{seed}"),
            Fault::Refused {
                error,
                call,
                count,
                times,
            } => write!(f, "refused:{error}:{call}:{count}:{times}"),
            Fault::PowerCut {
                after,
                lasts,
                worker,
            } => write!(f, "power:{after}:{lasts}:{worker}"),
            Fault::Killed { after } => write!(f, "killed:{after}"),
            Fault::Frozen { after, lasts } => write!(f, "frozen:{after}:{lasts}"),
            Fault::Clock {
                after,
                seconds,
                lasts,
            } => write!(f, "clock:{after}:{seconds}:{lasts}"),
            Fault::Second { after } => write!(f, "second:{after}"),
            Fault::Broker {
                harm,
                broker,
                after,
                lasts,
            } => write!(f, "broker:{harm}:{broker}:{after}:{lasts}"),
            Fault::Readers { after, lasts } => write!(f, "readers:{after}:{lasts}"),
            Fault::Bomb { after, partition } => write!(f, "bomb:{after}:{partition}"),
        }
    }
}

impl FromStr for Fault {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split(':').collect();
        let fault = || match parts[..] {
            ["killed", after] => Some(Fault::Killed {
                after: after.parse().ok()?,
            }),
            ["second", after] => Some(Fault::Second {
                after: after.parse().ok()?,
            }),
            ["bomb", after, partition] => Some(Fault::Bomb {
                after: after.parse().ok()?,
                partition: partition.parse().ok()?,
            }),
            ["refused", error, call, count, times] => Some(Fault::Refused {
                error: named(&ERRORS, error)?,
                call: named(&CALLS, call)?,
                count: count.parse().ok()?,
                times: times.parse().ok()?,
            }),
            ["power", after, lasts, worker] => Some(Fault::PowerCut {
                after: after.parse().ok()?,
                lasts: lasts.parse().ok()?,
                worker: named(&BESIDE, worker)?,
            }),
            ["clock", after, seconds, lasts] => Some(Fault::Clock {
                after: after.parse().ok()?,
                seconds: seconds.parse().ok()?,
                lasts: lasts.parse().ok()?,
            }),
            [what, after, lasts] => {
                let after = after.parse().ok()?;
                let lasts = lasts.parse().ok()?;
                match what {
                    "frozen" => Some(Fault::Frozen { after, lasts }),
                    "readers" => Some(Fault::Readers { after, lasts }),
                    _ => None,
                }
            }
            ["broker", harm, broker, after, lasts] => Some(Fault::Broker {
                harm: named(&HARMS, harm)?,
                broker: broker.parse().ok()?,
                after: after.parse().ok()?,
                lasts: lasts.parse().ok()?,
            }),
            [way, call, count, seed] => Some(Fault::Dies {
                way: named(&WAYS, way)?,
                call: named(&CALLS, call)?,
                count: count.parse().ok()?,
                seed: seed.parse().ok()?,
            }),
            _ => None,
        };
        fault().ok_or_else(|| format!("'{text}' is no fault"))
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}:{}:{}",
            name(&GRIDS, &self.grid),
            self.windows,
            self.seed
        )?;
        self.faults
            .iter()
            .try_for_each(|fault| write!(f, " {fault}"))
    }
}

impl FromStr for Schedule {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let (about, faults) = text.split_once(' ').unwrap_or((text, ""));
        let parts: Vec<&str> = about.split(':').collect();
        let about = || match parts[..] {
            [grid, windows, seed] => Some((
                named(&GRIDS, grid)?,
                windows.parse().ok()?,
                seed.parse().ok()?,
            )),
            _ => None,
        };
        let (grid, windows, seed) =
            about().ok_or_else(|| format!("'{text}' does not begin with grid:windows:seed"))?;
        let faults = faults
            .split_whitespace()
            .map(str::parse)
            .collect::<Result<_, _>>()?;
        Ok(Schedule {
            grid,
            windows,
            seed,
            faults,
        })
    }
}

/// Which faults an episode may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Site {
    /// A broker that others use too.
    Shared,
    /// One of its own, which may be killed.
    Own,
    /// Three of its own.
    Cluster,
    /// Three of its own, whose power can fail.
    Powered,
}

impl Schedule {
    /// The schedule of a seed.
    pub fn draw(seed: u64, site: Site) -> Self {
        let mut random = ChaCha20Rng::seed_from_u64(seed);
        let grid = if random.random_bool(0.7) {
            Grid::Past
        } else {
            Grid::Live
        };
        let (windows, faults) = match (grid, site) {
            (Grid::Past, _) => (120, 24),
            (Grid::Live, Site::Cluster | Site::Powered) => (60, 14),
            (Grid::Live, _) => (14, 12),
        };
        let faults = (0..faults)
            .map(|_| fault(&mut random, grid, site))
            .collect();
        Schedule {
            grid,
            windows,
            seed,
            faults,
        }
    }

    /// Whether brokers lose their power.
    pub fn loses_power(&self) -> bool {
        self.faults
            .iter()
            .any(|fault| matches!(fault, Fault::PowerCut { .. }))
    }

    /// Whether it needs a broker of its own.
    pub fn harms_the_broker(&self) -> bool {
        self.faults
            .iter()
            .any(|fault| matches!(fault, Fault::Broker { .. } | Fault::PowerCut { .. }))
    }
}

fn fault(random: &mut ChaCha20Rng, grid: Grid, site: Site) -> Fault {
    let after = random.random_range(0..1500);
    let lasts = random.random_range(100..2500);
    match site {
        Site::Own if random.random_bool(0.2) => {
            let harm = if random.random_bool(0.5) {
                Harm::Killed
            } else {
                Harm::Frozen
            };
            return Fault::Broker {
                harm,
                broker: 1,
                after,
                lasts: lasts * 2,
            };
        }
        Site::Powered if random.random_bool(0.2) => {
            let worker =
                [Beside::Lives, Beside::Dies, Beside::LosesDisk][random.random_range(0..3)];
            return Fault::PowerCut {
                after: after * 2,
                lasts,
                worker,
            };
        }
        Site::Cluster | Site::Powered if random.random_bool(0.3) => {
            let (harm, _) = HARMS[random.random_range(0..HARMS.len())];
            return Fault::Broker {
                harm,
                broker: random.random_range(1..4),
                after,
                lasts: lasts * 8,
            };
        }
        _ => {}
    }
    match random.random_range(0..100) {
        0..56 => dies(random),
        56..76 => refused(random),
        76..84 => Fault::Killed { after },
        84..90 => Fault::Frozen { after, lasts },
        90..92 => Fault::Bomb {
            after,
            partition: random.random_range(0..2),
        },
        92..94 => Fault::Second { after },
        94..97 => Fault::Readers { after, lasts },
        // Windows that are over do not wait for a clock.
        _ if grid == Grid::Past => Fault::Killed { after: after / 4 },
        _ => Fault::Clock {
            after,
            seconds: random.random_range(-30..30),
            lasts,
        },
    }
}

fn refused(random: &mut ChaCha20Rng) -> Fault {
    let (error, _) = ERRORS[random.random_range(0..ERRORS.len())];
    let call = match random.random_range(0..100) {
        0..35 => Call::Read,
        35..60 => Call::Write,
        60..85 => Call::Sync,
        85..92 => Call::Unlink,
        92..98 => Call::Create,
        _ => Call::Truncate,
    };
    let times = if random.random_bool(0.7) {
        1
    } else {
        random.random_range(2..20)
    };
    Fault::Refused {
        error,
        call,
        count: count(random, call),
        times,
    }
}

fn dies(random: &mut ChaCha20Rng) -> Fault {
    let way = match random.random_range(0..100) {
        0..25 => Way::Before,
        25..50 => Way::After,
        50..68 => Way::Torn,
        _ => Way::Cut,
    };
    let call = match (way, random.random_range(0..100)) {
        (Way::Torn, _) | (_, 0..25) => Call::Write,
        (_, 25..45) => Call::Sync,
        (_, 45..47) => Call::Truncate,
        (_, 47..62) => Call::Unlink,
        (_, 62..65) => Call::Rename,
        (_, 65..72) => Call::Create,
        (_, 72..85) => Call::Send,
        (_, 85..97) => Call::Receive,
        _ => Call::Log,
    };
    Fault::Dies {
        way,
        call,
        count: count(random, call),
        seed: random.random_range(0..1_000_000),
    }
}

/// At which call of its kind something happens: after about as many windows in each case, for a window syncs seldom, and sends often.
fn count(random: &mut ChaCha20Rng, call: Call) -> u32 {
    let most: f64 = match call {
        Call::Read | Call::Write | Call::Send | Call::Receive => 400.0,
        Call::Sync => 160.0,
        Call::Unlink | Call::Create => 40.0,
        Call::Truncate | Call::Rename => 2.0,
        Call::Log => 12.0,
    };
    (most.powf(random.random_range(0.0..1.0)) as u32).max(1)
}
