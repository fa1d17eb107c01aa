//! Sums over several windows, by the worker on real files: what is published, that it goes on after a stop, a kill and a
//! change of the settings, and what it costs.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::Duration;

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch};
use arrow_ipc::writer::StreamWriter;
use bernstream_config::WorkerSettings;
use bernstream_ledger::{ClosingWindow, Ledger, LedgerParams};
use bernstream_noise::Exact;
use bernstream_noise::continual::CalibratedSeries;
use bernstream_noise::noise::Generator;
use bernstream_release::{Dequantized, Sealed};
use bernstream_synopsis::NoiseDistribution;
use bernstream_synopsis::Positions;
use bernstream_synopsis::Synopsis;
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::description::{Panes, PanesKind};
use bernstream_synopsis::grid::Span;
use bernstream_synopsis::price::Price;
use bernstream_synopsis::{Adjacency, Sensitivity};

use crate::harness::wait_for;

const HOUR: i64 = 3_600_000_000;

/// A folder with an input, a configuration and what they make.
pub struct Place {
    folder: tempfile::TempDir,
}

/// How a configuration ends, what its budget is, and its releases.
struct Written<'a> {
    hours: i64,
    total: &'a str,
    releases: &'a str,
}

const DENSITY: &str = r#"
degree = 10
order = 2
domain = [{ column = "x", min = 0, max = 1, outside = "clamp" }]
density = { bandwidths = [0.2] }
"#;

fn release(name: &str, windows: &str, price: &str, noise: &str) -> String {
    format!(
        "[[release]]\nname = \"{name}\"\nwindows = {windows}\n{price}\nnoise = \"{noise}\"{DENSITY}\n"
    )
}

/// How many records an hour has: some have none.
fn count(hour: i64) -> i64 {
    (hour * 37 % 11) * 20
}

impl Place {
    fn new() -> Self {
        let place = Place::empty();
        let times: Vec<i64> = (0..60)
            .flat_map(|hour| (0..count(hour)).map(move |i| hour * HOUR + i))
            .collect();
        let x: Vec<f64> = vec![0.5; times.len()];
        let time =
            arrow_array::TimestampMicrosecondArray::from(Int64Array::from(times).values().to_vec());
        let columns: [(&str, ArrayRef); 2] = [
            ("time", Arc::new(time.with_timezone("UTC"))),
            ("x", Arc::new(Float64Array::from(x))),
        ];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema()).unwrap();
        writer.write(&batch).unwrap();
        fs::write(place.path("in.arrows"), writer.into_inner().unwrap()).unwrap();
        place
    }

    /// A folder without an input.
    pub fn empty() -> Self {
        Place {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, written: &Written<'_>) {
        let Written {
            hours,
            total,
            releases,
        } = written;
        let end = Timestamp::from_micros(hours * HOUR);
        let text = format!(
            "pipeline = \"p\"\n[input]\ntime = \"time\"\nfiles = {{ path = \"in.arrows\" }}\n[windows]\n\
             origin = \"1970-01-01T00:00:00Z\"\nlength = \"1h\"\nend = \"{end}\"\n[privacy]\nunit = \"record\"\n\
             adjacency = \"add_remove\"\n{total}\n{releases}\n[output]\nfiles = {{ path = \"out\" }}\n[ledger]\npath = \"ledger\"\n"
        );
        WorkerSettings::parse(&text, "written").unwrap();
        fs::write(self.path("c.toml"), text).unwrap();
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bernstream"));
        command.args(arguments).current_dir(self.folder.path());
        command
    }

    pub fn run(&self) -> Output {
        let output = self.command(&["run", "c.toml"]).output().unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        output
    }

    /// What is on the output of a release, by the newest hour of each.
    pub fn published(&self, release: &str) -> BTreeMap<i64, Synopsis> {
        let open = |path: &Path| Synopsis::decode_message(&fs::read(path).unwrap()).unwrap();
        let files = fs::read_dir(self.path("out").join("p").join(release))
            .unwrap()
            .map(|file| file.unwrap().path());
        files
            .filter(|path| {
                path.extension()
                    .is_some_and(|extension| extension == "arrows")
            })
            .map(|path| open(&path))
            .map(|synopsis| {
                (
                    synopsis.description().window.end.micros() / HOUR - 1,
                    synopsis,
                )
            })
            .collect()
    }

    /// How much is on the output of a release.
    fn count(&self, release: &str) -> usize {
        fs::read_dir(self.path("out").join("p").join(release)).map_or(0, Iterator::count)
    }

    pub fn verify(&self) -> String {
        let words: Vec<String> = [
            vec!["ledger", "verify", "c.toml"],
            vec!["ledger", "verify", "--output-only", "c.toml"],
        ]
        .iter()
        .map(|arguments| {
            let output = self.command(arguments).output().unwrap();
            assert!(
                output.status.success(),
                "{}",
                String::from_utf8_lossy(&output.stderr)
            );
            String::from_utf8_lossy(&output.stdout).into_owned()
        })
        .collect();
        words.join("\n")
    }
}

/// Records in the hours from `first` to `last`.
fn records(first: i64, last: i64) -> f64 {
    (first..=last).map(count).sum::<i64>() as f64
}

/// How many records each released mass is of: all lie in one place and each adds as much, so that the last one tells the unit.
fn masses(published: &BTreeMap<i64, Synopsis>, last: f64) -> BTreeMap<i64, f64> {
    let mass = |synopsis: &Synopsis| synopsis.evaluator(2).unwrap().total_mass();
    let unit = mass(published.values().next_back().unwrap()) / last;
    published
        .iter()
        .map(|(hour, synopsis)| (*hour, mass(synopsis) / unit))
        .collect()
}

const HIGH: &str = "rho = 1000";

fn both_sums(rho: &str) -> String {
    release("so-far", "{ cumulative = \"1000h\" }", rho, "gaussian")
        + &release("last", "{ hopping = \"5h\" }", rho, "gaussian")
}

/// With a budget so large that the noise is far below one record, so that a wrong sum shows.
#[test]
fn a_sum_goes_on_where_the_worker_was_stopped_and_speaks_of_the_hours_that_it_says() {
    let place = Place::new();
    for hours in [1, 7, 8, 30] {
        place.write(&Written {
            hours,
            total: HIGH,
            releases: &both_sums("rho = 500"),
        });
        place.run();
    }
    let so_far = place.published("so-far");
    let last = place.published("last");
    assert_eq!((so_far.len(), last.len()), (30, 30));
    let all_masses = masses(&so_far, records(0, 29));
    let few_masses = masses(&last, records(25, 29));
    for hour in 0..30 {
        let all = &so_far[&hour];
        let few = &last[&hour];
        let first = (hour - 4).max(0);
        let [found, of_few] = [&all_masses, &few_masses].map(|masses| masses[&hour]);
        assert!(
            (found - records(0, hour)).abs() < 0.5,
            "{hour}: {found} {}",
            records(0, hour)
        );
        assert!(
            (of_few - records(first, hour)).abs() < 0.5,
            "{hour}: {of_few} {}",
            records(first, hour)
        );
        for (synopsis, start, over) in [
            (all, 0, PanesKind::Cumulative),
            (few, first, PanesKind::Hopping(5)),
        ] {
            let about = synopsis.description();
            let panes = about.panes.unwrap();
            assert_eq!((panes.over, panes.step), (over, Some(hour as u64)));
            assert_eq!(about.window.start.micros(), start * HOUR);
            // Its pane is paid for once, whatever else it is in.
            let [block] = &about.privacy.blocks[..] else {
                panic!()
            };
            assert_eq!(
                (block.start, block.end),
                (panes.newest.start, about.window.end)
            );
            assert_eq!(block.spent, Price::Concentrated("1000".parse().unwrap()));
        }
    }
    // The noise of a sum that goes on grows, and far less than that of independent hours would.
    let scale = |hour| so_far[&hour].description().noise.scale;
    assert!(
        scale(29) > scale(0) && scale(29) < 3.0 * scale(0),
        "{} {}",
        scale(0),
        scale(29)
    );
    assert!(place.verify().contains("was paid for"));
}

/// Whoever knows the noise of a sum has its exact past: what no sum continues is deleted, to the last byte.
#[test]
fn a_sum_that_is_gone_leaves_no_noise_in_the_ledger() {
    let place = Place::new();
    let file = place.path("ledger").join("ledger.sqlite");
    let states = || -> Vec<(String, Vec<u8>)> {
        let connection = rusqlite::Connection::open(&file).unwrap();
        let mut all = connection
            .prepare("SELECT slot, bytes FROM states ORDER BY slot")
            .unwrap();
        let all = all
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
            .unwrap();
        all.collect::<Result<_, _>>().unwrap()
    };
    let is_in_file = |part: &[u8]| {
        fs::read(&file)
            .unwrap()
            .windows(part.len())
            .any(|bytes| bytes == part)
    };
    place.write(&Written {
        hours: 5,
        total: HIGH,
        releases: &both_sums("rho = 500"),
    });
    place.run();
    let before = states();
    let parts: Vec<&[u8]> = before
        .iter()
        .flat_map(|(_, bytes)| bytes[200..].chunks_exact(64))
        .collect();
    assert!(before.len() == 2 && parts.iter().all(|part| is_in_file(part)));
    let one = release(
        "so-far",
        "{ cumulative = \"1000h\" }",
        "rho = 500",
        "gaussian",
    );
    place.write(&Written {
        hours: 9,
        total: HIGH,
        releases: &one,
    });
    place.run();
    assert_eq!(
        states()
            .into_iter()
            .map(|(slot, _)| slot)
            .collect::<Vec<_>>(),
        [r#"["so-far",null]"#]
    );
    for part in parts
        .iter()
        .filter(|part| part.iter().any(|byte| ![0, 255].contains(byte)))
    {
        assert!(
            !is_in_file(part),
            "noise of an earlier hour is still in the file"
        );
    }
    place.verify();
}

/// Killed again and again while it draws: every hour has one synopsis of each release, and the steps go on without a gap.
#[test]
fn a_killed_worker_never_draws_a_step_twice() {
    let place = Place::new();
    place.write(&Written {
        hours: 60,
        total: HIGH,
        releases: &both_sums("rho = 500"),
    });
    let mut kills = 0;
    loop {
        let mut child = place
            .command(&["run", "c.toml"])
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        // Once it has published some more, or is done.
        let before = place.count("so-far");
        let ended = wait_for("a synopsis", String::new, || {
            let ended = child.try_wait().unwrap();
            (ended.is_some() || place.count("so-far") > before + kills).then_some(ended)
        });
        if let Some(status) = ended {
            assert!(status.success());
            break;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        kills += 1;
    }
    assert!(kills > 0, "it was killed at least once");
    place.run();
    let steps = |release| {
        let about = |synopsis: &Synopsis| synopsis.description().clone();
        place
            .published(release)
            .values()
            .map(about)
            .map(|about| about.panes.unwrap().step.unwrap())
            .collect::<Vec<_>>()
    };
    assert_eq!(steps("so-far"), (0..60).collect::<Vec<_>>());
    assert_eq!(steps("last"), (0..60).collect::<Vec<_>>());
    for (hour, mass) in masses(&place.published("so-far"), records(0, 59)) {
        assert!(
            (mass - records(0, hour)).abs() < 0.5,
            "{hour} after {kills} kills: {mass}"
        );
    }
    place.verify();
}

/// Other noise is another series: the sum begins anew, and the spending goes on.
#[test]
fn a_changed_release_begins_a_new_sum_in_a_row_of_its_own_and_spending_is_carried_over() {
    let place = Place::new();
    place.write(&Written {
        hours: 5,
        total: HIGH,
        releases: &both_sums("rho = 500"),
    });
    place.run();
    place.write(&Written {
        hours: 10,
        total: HIGH,
        releases: &both_sums("rho = 450"),
    });
    let said = String::from_utf8_lossy(&place.run().stderr).into_owned();
    assert!(
        said.contains("the settings have changed")
            && said.contains("price.rho of release")
            && said.contains("so-far\\\" starts over with the next window"),
        "{said}"
    );
    let published = place.published("so-far");
    let masses = masses(&published, records(5, 9));
    for (hour, synopsis) in published {
        let first = if hour < 5 { 0 } else { 5 };
        assert_eq!(
            synopsis.description().window.start.micros(),
            first * HOUR,
            "{hour}"
        );
        assert!((masses[&hour] - records(first, hour)).abs() < 0.5, "{hour}");
    }
    place.verify();
    // Only the releases may change: what the ledger promises may not.
    place.write(&Written {
        hours: 10,
        total: "rho = 999",
        releases: &both_sums("rho = 450"),
    });
    let output = place.command(&["run", "c.toml"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success()
            && said.contains("created for another guarantee")
            && said.contains("total"),
        "{said}"
    );
}

/// Before true 2-norms were read off, Gaussian noise was made for `sqrt(D1 S)`: a sum cannot go on with less noise. The price is what it was,
/// so nothing in the settings has changed; the synopses say from when on they count.
#[test]
fn a_sum_with_the_noise_of_an_older_program_begins_anew_and_one_with_this_noise_goes_on() {
    for is_older in [true, false] {
        let place = Place::new();
        let releases = release("so-far", "{ cumulative = \"1000h\" }", HIGH, "gaussian");
        place.write(&Written {
            hours: 5,
            total: HIGH,
            releases: &releases,
        });
        place.run();
        let params = LedgerParams {
            path: place.path("ledger"),
            keep_published: Duration::ZERO,
        };
        let mut ledger = Ledger::open(&params).unwrap();
        // The sixth hour, as a program left it that drew noise of this scale.
        let settings =
            WorkerSettings::parse(&fs::read_to_string(place.path("c.toml")).unwrap(), "c.toml")
                .unwrap();
        let release = &settings.releases[0];
        let today = settings.noise_series(release).unwrap().unwrap();
        let target = &*release.function.target;
        let [sum, sup] = [
            NoiseDistribution::DiscreteLaplace,
            NoiseDistribution::DiscreteCube,
        ]
        .map(|law| {
            target
                .sensitivity_in(law.norm(), Adjacency::AddRemove, 1)
                .unwrap()
                .0
        });
        let change = Sensitivity((u128::from(sum) * u128::from(sup)).isqrt() as u64 + 1);
        let law = NoiseDistribution::DiscreteGaussian;
        let of_today = target
            .sensitivity_in(law.norm(), Adjacency::AddRemove, 1)
            .unwrap();
        assert!(
            change.0 as f64 > 1.1 * of_today.0 as f64,
            "{change:?} {of_today:?}"
        );
        let over = release.window_kind.noise_windows().unwrap();
        let price = release.payment.mechanism_price();
        let values = target.shape().value_count();
        let theirs = CalibratedSeries::calibrated(
            over,
            law,
            change,
            values,
            1,
            price,
            release.window_kind.horizon(),
        )
        .unwrap();
        let series = if is_older { theirs } else { today };
        let slot = serde_json::json!(["so-far", null]).to_string();
        let stored = ledger
            .noise_state(&slot)
            .unwrap()
            .expect("the state of the fifth hour");
        let head = String::from_utf8_lossy(stored.split(|byte| *byte == b'\n').next().unwrap())
            .into_owned();
        let [next, last] =
            [5, 6].map(|hour| serde_json::json!(Timestamp::from_micros(hour * HOUR)).to_string());
        assert!(head.contains(&next), "{head}");
        let mut state = series.begin_state(values);
        let mut generator = Generator::frozen([5; 32]);
        let steps = (0..6)
            .map(|_| series.release_step(&Exact::new(vec![0; values]), &mut state, &mut generator));
        let noisy = steps.last().unwrap();
        let bytes = [
            head.replace(&next, &last).as_bytes(),
            b"\n",
            &state.to_bytes(&series),
        ]
        .concat();
        let window = Span {
            start: ledger.next_window(),
            end: Timestamp::from_micros(6 * HOUR),
        };
        let charges = vec![(window, Price::Concentrated("1000".parse().unwrap()))];
        let ends = Positions::default();
        let mut about = place.published("so-far")[&4].description().clone();
        about.window.end = window.end;
        about.panes = about.panes.map(|panes| Panes {
            newest: window,
            step: Some(5),
            ..panes
        });
        let sealed = vec![
            Sealed::new(
                about,
                Dequantized::from_noisy(&noisy, target, release.function.scaling),
            )
            .unwrap(),
        ];
        let states = vec![(slot, bytes)];
        ledger
            .pay_window(ClosingWindow {
                window,
                publish_at: window.end,
                charges,
                ends,
                sealed,
                states,
            })
            .unwrap();
        drop(ledger);

        place.write(&Written {
            hours: 10,
            total: HIGH,
            releases: &releases,
        });
        let said = String::from_utf8_lossy(&place.run().stderr).into_owned();
        assert!(
            !said.contains("price") && !said.contains("created for another guarantee"),
            "{said}"
        );
        let published = place.published("so-far");
        let (first, step) = if is_older { (6, 0) } else { (0, 6) };
        let about = published[&6].description();
        assert_eq!(
            (about.window.start.micros(), about.panes.unwrap().step),
            (first * HOUR, Some(step)),
            "{is_older}"
        );
        assert_eq!(
            published[&9].description().window.start.micros(),
            first * HOUR
        );
        if is_older {
            let mass = masses(&published, records(6, 9));
            assert!((mass[&7] - records(6, 7)).abs() < 0.5, "{mass:?}");
        }
        // No hour is paid for twice.
        assert_eq!(
            about.privacy.blocks[0].spent,
            Price::Concentrated("1000".parse().unwrap())
        );
        let output = place
            .command(&["ledger", "verify", "c.toml"])
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

/// Pure noise, and functions that are no sums: a hopping window of a machine charges every hour that it is evaluated on.
#[test]
fn other_windows_charge_every_hour_that_they_are_evaluated_on() {
    let place = Place::new();
    let machine = "[[release]]\nname = \"machine\"\nwindows = { hopping = \"3h\" }\nepsilon = 0.1\nnoise = \"cube\"\ndegree = 4\n\
                   order = 1\ndomain = [{ column = \"x\", min = 0, max = 1, outside = \"clamp\" }]\n\
                   label = { column = \"y\", above = 0.5 }\n\
                   machine = { loss = \"hinge\", kernel = { gaussian = { bandwidth = 0.3 } }, c = 1, max_records = 50 }\n";
    place.add_label();
    let sum = release("sum", "{ hopping = \"3h\" }", "epsilon = 0.2", "laplace");
    let tree = release(
        "tree",
        "{ cumulative = \"1000h\" }",
        "epsilon = 0.3",
        "laplace",
    );
    let releases = format!("{machine}{sum}{tree}");
    place.write(&Written {
        hours: 12,
        total: "epsilon = 0.8",
        releases: &releases,
    });
    place.run();
    let spent = |release: &str| -> BTreeMap<i64, Vec<String>> {
        let blocks = |synopsis: &Synopsis| {
            synopsis
                .description()
                .privacy
                .blocks
                .iter()
                .map(|block| block.spent.to_string())
                .collect()
        };
        place
            .published(release)
            .iter()
            .map(|(hour, synopsis)| (*hour, blocks(synopsis)))
            .collect()
    };
    // An hour pays 0.1 three times for the machine, 0.2 and 0.3 once for the sums: 0.6 in its own row, 0.8 in the end.
    assert_eq!(spent("machine")[&7], ["0.8", "0.7", "0.6"]);
    assert_eq!(spent("sum")[&7], ["0.6"]);
    assert_eq!(spent("tree")[&7], ["0.6"]);
    assert_eq!(spent("machine")[&0], ["0.6"]);
    let words = place.verify();
    assert!(words.contains("0.8"), "{words}");
    // A budget that the third window over an hour would break withholds windows, and the promise holds.
    let poor = Place::new();
    poor.add_label();
    poor.write(&Written {
        hours: 12,
        total: "epsilon = 0.75",
        releases: &releases,
    });
    poor.run();
    let released = poor.published("sum").len();
    assert!(released < 12 && released > 3, "{released}");
    // A sum that misses an hour begins anew after it: it never says that it holds what was not released.
    let tree = poor.published("tree");
    for (hour, synopsis) in &tree {
        let about = synopsis.description();
        let began = (0..=*hour)
            .rev()
            .take_while(|hour| tree.contains_key(hour))
            .last()
            .unwrap();
        assert_eq!(about.window.start.micros(), began * HOUR, "{hour}");
        assert_eq!(
            about.panes.unwrap().step,
            Some((hour - began) as u64),
            "{hour}"
        );
    }
    poor.verify();
}

impl Place {
    /// The same input with a second column.
    fn add_label(&self) {
        let bytes = fs::read(self.path("in.arrows")).unwrap();
        let batch = arrow_ipc::reader::StreamReader::try_new(&bytes[..], None)
            .unwrap()
            .next()
            .unwrap()
            .unwrap();
        let y: ArrayRef = batch.column_by_name("x").unwrap().clone();
        let columns = [
            ("time", batch.column_by_name("time").unwrap().clone()),
            ("x", y.clone()),
            ("y", y),
        ];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema()).unwrap();
        writer.write(&batch).unwrap();
        fs::write(self.path("in.arrows"), writer.into_inner().unwrap()).unwrap();
    }
}
