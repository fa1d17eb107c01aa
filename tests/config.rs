//! The configuration, through its public face: every file that we ship is sound, every fault is found and told.
#![cfg(feature = "worker")]

use std::path::PathBuf;
use std::process::{Command, Output};

use bernstream::config::{Settings, Unit};
use bernstream::synopsis::band::Band;
use bernstream::synopsis::description::{Calibrated, Definition};
use bernstream::target::Adjacency;

const FLIGHTS: &str = include_str!("../config/flights.toml");
const FILES: &str = include_str!("../config/files.toml");
const USERS: &str = include_str!("../config/users.toml");
const WRONG: &str = include_str!("data/wrong.toml");

fn shipped() -> Vec<PathBuf> {
    let folder = std::fs::read_dir("config").unwrap();
    let mut files: Vec<_> = folder.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn bernstream(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_bernstream")).args(arguments).output().unwrap()
}

/// The first line of every fault.
fn faults(text: &str) -> Vec<String> {
    match Settings::parse(text, "f") {
        Ok(_) => Vec::new(),
        Err(faults) => faults.to_string().lines().filter(|l| l.starts_with("f:")).map(str::to_owned).collect(),
    }
}

/// `text` with one thing in it replaced; what is not there cannot be.
fn with(text: &str, old: &str, new: &str) -> String {
    assert_eq!(text.matches(old).count(), 1, "{old:?} is there once");
    text.replacen(old, new, 1)
}

#[test]
fn every_file_that_we_ship_is_sound() {
    assert!(shipped().len() >= 4);
    for file in shipped() {
        if let Err(faults) = Settings::load(&file) {
            panic!("{faults}");
        }
    }
}

#[test]
fn the_reference_says_what_the_defaults_are() {
    let text = include_str!("../config/reference.toml");
    let optional = [
        "trust_producer_time = false",
        "on_bad_message = \"stop\"",
        "scale = \"tight\"",
        "brokers = \"localhost:9092\"\ntopic = \"reference-synopses\"",
        "witness_min_insync_replicas = 2",
        "keep_published = \"7d\"",
        "detail = \"safe\"",
    ];
    let shown = |text: &str| format!("{:?}", Settings::parse(text, "f").unwrap());
    for line in optional {
        let without = line.split_once('\n').map_or("", |(_, rest)| rest);
        assert_eq!(shown(&with(text, line, without)), shown(text), "{line}");
    }
}

#[test]
fn all_faults_of_a_file_are_told_at_once() {
    assert_eq!(
        faults(WRONG),
        [
            "f:2:12: pipeline: a name has only letters, digits, `.`, `_` and `-`, not ' '",
            "f:3:1: windws: unknown key",
            "f:7:52: input.key.values[2]: stands here twice",
            "f:7:59: input.key.values[3]: a key must not be empty",
            "f:12:15: input.kafka.clock_slack: not a duration: time unit needed, for example 10sec or 10ms",
            "f:13:18: input.kafka.on_bad_message: expected \"stop\" or \"skip\"",
            "f:14:23: input.kafka.skip[0].partition: expected the number of a partition, such as 0",
            "f:14:41: input.kafka.skip[1].offset: missing",
            "f:15:41: input.kafka.lost[0].to: must be more than `from`, 5",
            "f:16:1: input.kafka.grace: unknown key",
            "f:18:1: windows.grace: missing",
            "f:19:10: windows.origin: \"2013-01-01T05:00:00\" is not a time with its offset",
            "f:20:10: windows.length: months and years differ in length, count in days",
            "f:26:10: privacy.unit.usr: unknown key",
            "f:27:52: privacy.adjacency.replace_one.records_per_window: must be at least 1",
            "f:28:11: privacy.epsilon: NaN is no price",
            "f:32:11: release.epsilon: 0.1234567890123 has more than 12 decimals",
            "f:33:10: release.degree: expected a whole number from 1, such as 40",
            "f:34:9: release.order: must be from 1 to 200",
            "f:39:7: release.domain[0].max: must be more than `min`, 10",
            "f:42:1: release.domain[1].min: missing",
            "f:43:10: release.domain[1].column: is an axis already",
            "f:48:15: release.density.bandwidths[0]: expected a number above 0 in the units of the column, such as 10",
            "f:52:11: output.kafka.witness: is the output topic",
            "f:54:1: ledger.path: missing",
            "f:58:10: serve.listen: \"localhost\" is not an address and a port",
        ]
    );
}

#[test]
fn a_fault_is_shown_the_way_a_compiler_shows_it() {
    let text = with(FLIGHTS, "degree = 40", "degre = 40");
    let shown = Settings::parse(&text, "flights.toml").unwrap_err().to_string();
    let line = text.lines().position(|line| line == "degre = 40").unwrap() + 1;
    let heading = text.lines().position(|line| line == "[release]").unwrap() + 1;
    assert_eq!(
        shown,
        format!(
            "flights.toml:{heading}:1: release.degree: missing
   |
{heading} | [release]
   | ^^^^^^^^^
  = add `degree`, a whole number from 1, such as 40

flights.toml:{line}:1: release.degre: unknown key
   |
{line} | degre = 40
   | ^^^^^
  = did you mean `degree`?
"
        )
    );
}

#[test]
fn each_rule_has_its_message() {
    let kafka_keys = "grace = \"1h\"\nahead = \"5m\"\npublish_delay = \"1m\"";
    let two_axes =
        r#"{ column = "a", min = 0, max = 1, outside = "drop" }, { column = "b", min = 0, max = 1, outside = "drop" }"#;
    let dep_delay = r#"{ column = "dep_delay", min = -30, max = 180, outside = "clamp" }"#;
    let table = [
        // What is written with a wrong value.
        (FLIGHTS, "epsilon = 1.0\n\n", "epsilon = inf\n\n", "privacy.epsilon: inf is no price"),
        (FLIGHTS, "epsilon = 1.0\n\n", "epsilon = 0\n\n", "privacy.epsilon: must be above 0"),
        (FLIGHTS, "epsilon = 1.0\n\n", "epsilon = -1\n\n", "privacy.epsilon: must be above 0"),
        (
            FLIGHTS,
            "epsilon = 1.0\n\n",
            "epsilon = 1e9\n\n",
            "privacy.epsilon: 1000000000 protects nobody: must be at most 1000",
        ),
        (FLIGHTS, "degree = 40", "degree = 0", "release.degree: must be at least 1"),
        (FLIGHTS, "degree = 40", "degree = -3", "release.degree: expected a whole number from 1, such as 40"),
        (FLIGHTS, "order = 4", "order = 201", "release.order: must be from 1 to 200"),
        (FLIGHTS, "min = -30", "min = nan", "release.domain[0].min: NaN is no bound"),
        (FLIGHTS, "min = -30", "min = 180", "release.domain[0].max: must be more than `min`, 180"),
        (FLIGHTS, "min = -30, ", "", "release.domain[0].min: missing"),
        (FLIGHTS, ", max = 180", "", "release.domain[0].max: missing"),
        (
            FLIGHTS,
            "bandwidths = [10]",
            "bandwidths = [0]",
            "release.density.bandwidths[0]: must be above 0 and at most the width of the domain, 210",
        ),
        (
            FLIGHTS,
            "bandwidths = [10]",
            "bandwidths = [211]",
            "release.density.bandwidths[0]: must be above 0 and at most the width of the domain, 210",
        ),
        (
            FLIGHTS,
            "outside = \"clamp\"",
            "outside = \"clip\"",
            "release.domain[0].outside: expected \"clamp\" or \"drop\"",
        ),
        (FLIGHTS, dep_delay, "", "release.domain: has 0 axes, must have 1 to 3"),
        (FLIGHTS, "length = \"1d\"", "length = \"0s\"", "windows.length: must be longer than zero"),
        (
            FLIGHTS,
            "origin = \"2013-01-01T05:00:00Z\"",
            "origin = \"New Year\"",
            "windows.origin: \"New Year\" is not a time with its offset",
        ),
        (
            FLIGHTS,
            "\"2014-01-01T05:00:00Z\"",
            "\"2013-12-31T23:00:00Z\"",
            "windows.end: is not a whole number of windows after windows.origin",
        ),
        (
            FLIGHTS,
            "\"2014-01-01T05:00:00Z\"",
            "\"2012-01-01T05:00:00Z\"",
            "windows.end: must be later than windows.origin, 2013-01-01T05:00:00Z",
        ),
        (
            FLIGHTS,
            "values = [\"EWR\", \"JFK\", \"LGA\"]",
            "values = []",
            "input.key.values: must not be empty: every key is declared",
        ),
        (FLIGHTS, "topic = \"flights\"", "topic = \"\"", "input.kafka.topic: must not be empty"),
        (
            FLIGHTS,
            "listen = \"127.0.0.1:9464\"",
            "listen = 9464",
            "serve.listen: expected an address such as \"127.0.0.1:9464\"",
        ),
        (FLIGHTS, "pipeline = \"flights\"", "", "pipeline: missing"),
        (
            USERS,
            "max_records_per_window = 20",
            "max_records_per_window = 0",
            "privacy.unit.user.max_records_per_window: must be at least 1",
        ),
        // What does not fit together.
        (
            FLIGHTS,
            "epsilon = 1.0\ndegree",
            "epsilon = 1.5\ndegree",
            "release.epsilon: the price of one window, 1.5, is more than privacy.epsilon, 1",
        ),
        (
            USERS,
            "epsilon = 0.04",
            "epsilon = 1.04",
            "release.epsilon: the price of one window, 1.04, is more than privacy.epsilon, 1",
        ),
        (
            FLIGHTS,
            "publish_delay = \"1m\"",
            "publish_delay = \"10s\"",
            "windows.publish_delay: must be longer than input.kafka.clock_slack, 10s",
        ),
        (FLIGHTS, "\nclock_slack = \"10s\"", "", "input.kafka.clock_slack: missing"),
        (FLIGHTS, "\ngrace = \"1h\"", "", "windows.grace: missing"),
        (FLIGHTS, "\nahead = \"5m\"", "", "windows.ahead: missing"),
        (FLIGHTS, "\npublish_delay = \"1m\"", "", "windows.publish_delay: missing"),
        (FILES, "\nend = \"2014-01-01T05:00:00Z\"", "", "windows.end: missing"),
        (FILES, "files = { path = \"flights\" }", "", "input: has neither `kafka` nor `files`"),
        (
            FILES,
            "files = { path = \"flights\" }",
            "files = { path = \"x\" }\nkafka = {}",
            "input: has both `kafka` and `files`",
        ),
        (FILES, "files = { path = \"out\" }", "", "output: has neither `kafka` nor `files`"),
        (FILES, "files = { path = \"out\" }", "files = { path = \"flights\" }", "output.files: is the input path"),
        (
            FILES,
            "files = { path = \"out\" }",
            "kafka = { topic = \"a\", witness = \"b\" }",
            "output.kafka.brokers: missing",
        ),
        (FLIGHTS, "topic = \"flights-synopses\"", "topic = \"flights\"", "output.kafka.topic: is the input topic"),
        (FLIGHTS, "witness = \"flights-witness\"", "witness = \"flights\"", "output.kafka.witness: is the input topic"),
        (
            FLIGHTS,
            "witness = \"flights-witness\"",
            "witness = \"flights-synopses\"",
            "output.kafka.witness: is the output topic",
        ),
        (
            USERS,
            "adjacency = \"add_remove\"",
            "adjacency = { replace_one = { records_per_window = 5 } }",
            "privacy.adjacency: replace_one protects the values of a record, not all records of a user",
        ),
        // What would be too large.
        (
            FLIGHTS,
            "degree = 40",
            "degree = 5001",
            "release.density.bandwidths: degree 5001 is out of range: it must lie between 1 and 5000",
        ),
    ];
    for (text, old, new, expected) in table {
        let found = faults(&with(text, old, new));
        let told: Vec<_> = found.iter().filter_map(|fault| fault.split_once(": ")).map(|(_, told)| told).collect();
        assert_eq!(told, [expected], "{old:?} -> {new:?}");
    }
    // The rest of Kafka's keys with files, and a lattice that no message holds.
    let told = faults(&with(FILES, "end = \"2014", &format!("{kafka_keys}\nend = \"2014")));
    assert_eq!(told.len(), 3);
    assert!(told.iter().all(|fault| fault.ends_with("means nothing with files")), "{told:?}");
    let square = |text| with(&with(text, dep_delay, two_axes), "bandwidths = [10]", "bandwidths = [0.1, 0.1]");
    let large = with(&square(FLIGHTS), "degree = 40", "degree = 400");
    assert!(
        faults(&large)[0].ends_with("a synopsis would have 1289480 bytes, more than Kafka's default limit of 1000000")
    );
    let files = with(&square(FILES), "degree = 40", "degree = 400");
    assert!(faults(&files).is_empty());
    let tiny = with(FILES, "bandwidths = [10]", "bandwidths = [1e-7]");
    assert!(faults(&tiny)[0].contains("cells"), "{:?}", faults(&tiny));
}

#[test]
fn what_is_not_toml_is_told_with_its_line() {
    assert_eq!(faults("pipeline = \"flights\"\n[input\ntime = 3\n")[0].split(": ").next(), Some("f:2:7"));
    assert_eq!(faults("").len(), 7);
    let shown = Settings::load(&PathBuf::from("no/such/file.toml")).unwrap_err().to_string();
    assert!(shown.starts_with("no/such/file.toml: cannot be read: "), "{shown}");
}

#[test]
fn a_time_can_be_a_toml_date() {
    let date = with(FLIGHTS, "origin = \"2013-01-01T05:00:00Z\"", "origin = 2013-01-01T00:00:00-05:00");
    assert_eq!(Settings::parse(&date, "f").unwrap().normalised, Settings::parse(FLIGHTS, "f").unwrap().normalised);
}

#[test]
fn the_digest_is_that_of_what_bears_on_privacy() {
    let digest = |text: &str| Settings::parse(text, "f").unwrap().digest();
    let bare = [
        ("brokers = \"localhost:9092\"", "brokers = \"elsewhere:9092\""),
        ("path = \"ledger\"", "path = \"elsewhere\"\nkeep_published = \"1d\""),
        ("listen = \"127.0.0.1:9464\"", "listen = \"127.0.0.1:1\"\ndetail = \"operator\""),
        ("topic = \"flights-synopses\"", "topic = \"elsewhere\""),
        ("epsilon = 1.0\n\n", "epsilon = 1.00\n\n"),
        ("clock_slack = \"10s\"", "clock_slack = \"10s\"\nskip = [{ partition = 0, offset = 1 }]"),
    ];
    for (old, new) in bare {
        assert_eq!(digest(&with(FLIGHTS, old, new)), digest(FLIGHTS), "{new}");
    }
    let private = [
        ("degree = 40", "degree = 41"),
        ("order = 4", "order = 3"),
        ("epsilon = 1.0\n\n", "epsilon = 1.1\n\n"),
        ("epsilon = 1.0\ndegree", "epsilon = 0.5\ndegree"),
        ("\"LGA\"", "\"LGB\""),
        ("bandwidths = [10]", "bandwidths = [11]"),
        ("max = 180", "max = 181"),
        ("\"clamp\"", "\"drop\""),
        ("\"dep_delay\"", "\"arr_delay\""),
        ("time = \"time\"", "time = \"when\""),
        ("column = \"origin\"", "column = \"dest\""),
        ("grace = \"1h\"", "grace = \"2h\""),
        ("publish_delay = \"1m\"", "publish_delay = \"2m\""),
        ("adjacency = \"add_remove\"", "adjacency = { replace_one = { records_per_window = 9 } }"),
        ("clock_slack = \"10s\"", "clock_slack = \"10s\"\ntrust_producer_time = true"),
        ("clock_slack = \"10s\"", "clock_slack = \"10s\"\non_bad_message = \"skip\""),
    ];
    for (old, new) in private {
        assert_ne!(digest(&with(FLIGHTS, old, new)), digest(FLIGHTS), "{new}");
    }
}

#[test]
fn blocks_are_the_windows_of_records_and_the_periods_of_users() {
    let records = Settings::parse(FLIGHTS, "f").unwrap();
    assert_eq!(records.blocks, records.windows.grid);
    let users = Settings::parse(USERS, "f").unwrap();
    let Unit::User { per, .. } = users.privacy.unit else { panic!("users are the unit") };
    assert_eq!((users.blocks.length(), users.blocks.origin()), (per, users.windows.grid.origin()));
}

#[test]
fn check_and_explain_take_every_file_that_we_ship() {
    for file in shipped() {
        let file = file.to_str().unwrap();
        let check = bernstream(&["check", "--offline", file]);
        assert!(check.status.success(), "{file}");
        let explain = bernstream(&["explain", file]);
        assert!(explain.status.success(), "{file}");
        for (output, sections) in
            [(check, ["Guarantee", "Schedule", "Memory"]), (explain, ["Sensitivity", "Noise", "Budget"])]
        {
            let text = String::from_utf8(output.stdout).unwrap();
            assert!(sections.iter().all(|section| text.lines().any(|line| line == *section)), "{text}");
        }
    }
}

#[test]
fn check_tells_the_faults_on_stderr_and_exits_78() {
    let output = bernstream(&["check", "tests/data/wrong.toml"]);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(78), 0));
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("tests/data/wrong.toml:3:1: windws: unknown key\n"), "{told}");
}

/// The scale of the noise, and what the synopsis says of it.
fn noise(text: &str) -> (f64, Calibrated, String) {
    let settings = Settings::parse(text, "f").unwrap();
    let band = Band::simulate(settings.shape(), settings.release.order);
    let description = settings.plan(&band, true).unwrap().description;
    (description.noise.scale, description.noise.calibrated, description.privacy.in_words)
}

#[test]
fn the_papers_scale_is_the_papers_and_is_labelled() {
    let paper = with(FLIGHTS, "order = 4", "order = 4\nscale = \"paper\"");
    let ((tight, none, plain), (scale, calibrated, said)) = (noise(FLIGHTS), noise(&paper));
    // `[AR17]`: lambda = S N / epsilon, S the peak of the kernel. That of the table in use is 0.8 % above it.
    let papers = 41.0 / (10.0 * (2.0 * std::f64::consts::PI).sqrt());
    assert!((1.0..1.01).contains(&(scale / papers)), "{scale} {papers}");
    let Calibrated::Paper { times_needed } = calibrated else { panic!("{calibrated:?}") };
    assert!(none == Calibrated::Tight && (times_needed / (scale / tight) - 1.0).abs() < 1e-6, "{times_needed}");
    let words = format!("Noise calibrated as in the paper, {times_needed:.2} times more than needed");
    assert!(said.contains(&words) && !plain.contains("paper"), "{said}");

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("paper.toml");
    std::fs::write(&file, &paper).unwrap();
    for command in [&["check", "--offline"][..], &["explain"]] {
        let output = bernstream(&[command, &[file.to_str().unwrap()]].concat());
        assert!(String::from_utf8(output.stdout).unwrap().contains(&words), "{command:?}");
    }
    // The default adds nothing to what a ledger is bound to.
    let settings = |text: &str| Settings::parse(text, "f").unwrap();
    assert!(!settings(FLIGHTS).normalised.contains("scale") && settings(&paper).digest() != settings(FLIGHTS).digest());
    let tight = with(FLIGHTS, "order = 4", "order = 4\nscale = \"tight\"");
    assert_eq!(settings(&tight).digest(), settings(FLIGHTS).digest());
}

#[test]
fn the_papers_scale_is_refused_where_its_constant_is_false_or_there_is_none() {
    let label = r#"label = { column = "arr_delay", min = -60, max = 180, outside = "clamp" }"#;
    let class = r#"label = { column = "arr_delay", above = 15 }"#;
    let table = [
        (label, "[release.regression]\nbandwidth = 10\ngap = 1\nmax_records = 50", "a Priestley-Chao regression"),
        (class, "[release.machine]\nloss = \"hinge\"\nkernel = \"linear\"\nc = 1\nmax_records = 50", "empirical risk"),
        ("", "[release.expression]\nvalue = \"dep_delay\"", "the papers give no sensitivity"),
    ];
    for (label, function, why) in table {
        let text = with(FLIGHTS, "[release.density]\nbandwidths = [10]", function);
        let text = with(&text, "order = 4", &format!("order = 4\n{label}"));
        assert!(faults(&text).is_empty(), "{:?}", faults(&text));
        let text = with(&text, "order = 4", "order = 4\nscale = \"paper\"");
        let line = text.lines().position(|line| line.starts_with("scale")).unwrap() + 1;
        let told = faults(&text);
        let [told] = &told[..] else { panic!("{told:?}") };
        assert!(told.starts_with(&format!("f:{line}:9: release.scale: ")) && told.contains(why), "{told}");
        assert!(told.contains("leave out scale"), "{told}");
    }
}

#[test]
fn an_expression_without_a_bound_needs_a_clip() {
    let text =
        |table: &str| with(FLIGHTS, "[release.density]\nbandwidths = [10]", &format!("[release.expression]\n{table}"));
    let unbounded = "value = \"1 / dep_delay\"";
    let told = faults(&text(unbounded));
    assert!(told[0].contains("cannot be bounded") && told[0].contains("clip what a record adds"), "{told:?}");
    let clipped = text(&format!("{unbounded}\nclip = {{ sup = 0.5, sum = 4 }}"));
    let settings = Settings::parse(&clipped, "f").unwrap();
    assert!(settings.function.meaning.ends_with("each clipped to 0.5 a lattice point and 4 in all"));
    let target = &settings.function.target;
    // What is promised is what the clip says, in natural units, and no word of a prior.
    let bound = target.sensitivity(Adjacency::AddRemove, 1).unwrap().0 as f64 * target.unit();
    assert!((bound - 4.0).abs() < 1e-6, "{bound}");
    assert!(settings.privacy.definition == Definition::PureEpsilon);
    let other = clipped.replace("sum = 4", "sum = 5");
    assert_ne!(Settings::parse(&other, "f").unwrap().digest(), settings.digest());
    // A sound expression says the same as before there were clips.
    assert!(!Settings::parse(&text("value = \"dep_delay\""), "f").unwrap().normalised.contains("clip"));
    let told = faults(&clipped.replace("sum = 4", "sum = 0.1"));
    assert!(told[0].contains("release.expression.clip: a record cannot be clipped"), "{told:?}");
    let told = faults(&clipped.replace("sup = 0.5, ", ""));
    assert!(told[0].ends_with("release.expression.clip.sup: missing"), "{told:?}");
}
