//! `bernstream evaluate`: a synopsis at points, as CSV.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::{Message, Offset, TopicPartitionList};

use crate::cli::Failure;
use crate::clock::Timestamp;
use crate::synopsis::band::Band;
use crate::synopsis::description::{Choice, Classifier, Definition, Density, Description, Target};
use crate::synopsis::{self, Synopsis};

/// How long a broker may be silent.
const PATIENCE: Duration = Duration::from_secs(10);
const DEFAULT_POINTS: u32 = 25;

/// Prints a synopsis at points of its domain as CSV: coordinates, value, and the band that holds everywhere at once.
#[derive(Clone, Debug, clap::Args)]
pub struct Arguments {
    /// A synopsis message; `-` reads standard input
    #[arg(required_unless_present = "topic", conflicts_with = "topic")]
    file: Option<PathBuf>,
    #[command(flatten)]
    topic: Option<Topic>,
    /// A point in natural units, one number an axis separated by commas; can be given several times
    #[arg(long, allow_hyphen_values = true, value_name = "X[,Y[,Z]]", conflicts_with = "points", value_parser = point)]
    at: Vec<Point>,
    /// Evaluate on this many evenly spaced points an axis [default: 25, where no point is given]
    #[arg(long, value_parser = clap::value_parser!(u32).range(2..))]
    points: Option<u32>,
    /// Order of the Bernstein operator [default: what the synopsis recommends]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=i64::from(crate::synopsis::bernstein::MAX_ORDER)))]
    order: Option<u32>,
    /// Divide by the public number of records, or by the released mass where the number is private
    #[arg(long)]
    density: bool,
    /// Print what the synopsis says about itself, as JSON, and nothing else
    #[arg(long)]
    describe: bool,
}

/// The newest synopsis of a topic.
#[derive(Clone, Debug, clap::Args)]
struct Topic {
    /// Read the newest synopsis of this topic instead of a file
    #[arg(long, required = false, requires = "brokers")]
    topic: String,
    /// Bootstrap servers of the topic's cluster
    #[arg(long, required = false, requires = "topic")]
    brokers: String,
    /// Only synopses of this group key
    #[arg(long, requires = "topic")]
    key: Option<String>,
    /// Only the window that starts at this time, such as 2013-01-01T05:00:00Z
    #[arg(long, requires = "topic", value_name = "START", value_parser = time)]
    window: Option<Timestamp>,
}

#[derive(Clone, Debug)]
struct Point(Vec<f64>);

fn time(text: &str) -> Result<Timestamp, String> {
    Timestamp::try_from(text.to_owned())
}

fn point(text: &str) -> Result<Point, String> {
    let number = |part: &str| part.trim().parse::<f64>().map_err(|_| format!("'{part}' is not a number"));
    text.split(',').map(number).collect::<Result<_, _>>().map(Point)
}

/// Why nothing, or not everything, was printed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read {path}")]
    Read { path: PathBuf, source: io::Error },
    #[error("cannot print")]
    Print(#[from] io::Error),
    #[error("cannot print the description")]
    Describe(#[from] serde_json::Error),
    #[error(transparent)]
    Synopsis(#[from] crate::synopsis::Error),
    #[error("this synopsis is no density: leave out --density")]
    NoDensity,
    #[error("the released mass is {0}, not positive: noise outweighs the records, and there is no density to show")]
    Mass(f64),
    #[error("cannot reach {brokers}; check the address, and that the broker is up")]
    Broker { brokers: String, source: KafkaError },
    #[error("topic '{topic}' does not exist on {brokers}; check its name")]
    NoTopic { topic: String, brokers: String },
    #[error("{brokers} stopped answering while '{topic}' was read")]
    Silent { topic: String, brokers: String },
    #[error("no synopsis in '{topic}' matches, of {messages} messages ({unreadable} of them are not synopses)")]
    NoMatch { topic: String, messages: u64, unreadable: u64 },
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let why = std::error::Error::source(&error).map(|source| format!(": {source}")).unwrap_or_default();
        let text = format!("{error}{why}");
        match error {
            Error::Read { .. } | Error::Broker { .. } | Error::NoTopic { .. } | Error::Silent { .. } => {
                Failure::Unavailable(text)
            }
            Error::NoDensity
            | Error::Synopsis(synopsis::Error::NoFunction)
            | Error::Synopsis(synopsis::Error::OutsideDomain { .. } | synopsis::Error::Dimensions { .. }) => {
                Failure::Configuration(text)
            }
            _ => Failure::Other(text),
        }
    }
}

pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    match print(arguments) {
        // Whoever reads the table may stop before its end.
        Err(Error::Print(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        done => Ok(done?),
    }
}

fn print(arguments: &Arguments) -> Result<(), Error> {
    let synopsis = match (&arguments.topic, &arguments.file) {
        (Some(topic), _) => topic.newest()?,
        (None, file) => Synopsis::open(&read(file.as_deref().unwrap_or(Path::new("-")))?)?,
    };
    let mut out = io::stdout().lock();
    if arguments.describe {
        serde_json::to_writer_pretty(&mut out, synopsis.description())?;
        return Ok(writeln!(out)?);
    }
    let divisor = table(&synopsis, arguments, &mut out)?;
    eprintln!("\n{}", what(synopsis.description(), divisor));
    eprintln!("{}", guarantee(synopsis.description()));
    Ok(())
}

pub(super) fn read(path: &Path) -> Result<Vec<u8>, Error> {
    let read = || match path == Path::new("-") {
        true => {
            let mut bytes = Vec::new();
            io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
        }
        false => std::fs::read(path),
    };
    read().map_err(|source| Error::Read { path: path.to_owned(), source })
}

/// What the values were divided by.
#[derive(Clone, Copy)]
enum Divisor {
    Nothing,
    Records(u64),
    Mass(f64),
}

fn table(synopsis: &Synopsis, arguments: &Arguments, out: &mut impl Write) -> Result<Divisor, Error> {
    let about = synopsis.description();
    let order = arguments.order.unwrap_or(about.order);
    let evaluator = synopsis.evaluator(order)?;
    let (divisor, by) = match (arguments.density, &about.target, evaluator.mass()) {
        (false, ..) => (Divisor::Nothing, 1.0),
        (true, Target::Density(Density { divide_by: Some(records), .. }), _) => {
            (Divisor::Records(*records), *records as f64)
        }
        (true, Target::Density(_), mass) if mass > 0.0 => (Divisor::Mass(mass), mass),
        (true, Target::Density(_), mass) => return Err(Error::Mass(mass)),
        (true, ..) => return Err(Error::NoDensity),
    };
    // The band in the message is that of its own order; the band of another follows from the noise alone.
    let band = match order == about.order {
        true => synopsis.clone(),
        false => {
            let band = Band::simulate(&about.shape(), about.noise.law, order).scaled(&about.noise);
            Synopsis::new(Description { order, band, ..about.clone() }, synopsis.values().to_vec())?
        }
    };
    // Everything before the first line: a wrong point leaves no half a table.
    let mut rows = Vec::new();
    for point in points(about, arguments) {
        let (value, half) = (evaluator.evaluate(&point)?, band.half_width(&point)?);
        let possible = |x: f64| if matches!(about.target, Target::Probability(_)) { x.clamp(0.0, 1.0) } else { x };
        let values = [value, value - half, value + half].map(|x| above_noise(possible(x) / by, half / by));
        let mut cells: Vec<String> = point.iter().map(|x| digits(*x)).chain(values).map(|x| x.to_string()).collect();
        if let Target::Classifier(classifier) = &about.target {
            cells.push(class(classifier, value, half));
        }
        rows.push(cells.join(","));
    }
    let columns: Vec<&str> = about.domain.iter().map(|axis| axis.column.as_str()).collect();
    let class = if matches!(about.target, Target::Classifier(_)) { ",class" } else { "" };
    writeln!(out, "{},value,lower,upper{class}", columns.join(","))?;
    rows.iter().try_for_each(|row| writeln!(out, "{row}"))?;
    Ok(divisor)
}

/// The class that a score names, where the noise leaves one to name.
fn class(classifier: &Classifier, score: f64, half_width: f64) -> String {
    let Classifier { label, above, .. } = classifier;
    if score.abs() <= half_width {
        "too close to call".to_owned()
    } else if score > 0.0 {
        format!("{label} > {above}")
    } else {
        format!("{label} <= {above}")
    }
}

/// To a hundredth of the noise or finer: more digits say nothing.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 17")]
pub(super) fn above_noise(x: f64, half_width: f64) -> f64 {
    let decimals = (2.0 - half_width.log10().floor()).clamp(0.0, 17.0) as usize;
    // Zero has no sign.
    format!("{x:.decimals$}").parse().unwrap_or(x) + 0.0
}

/// Ten digits: more show how the machine rounds.
fn digits(x: f64) -> f64 {
    format!("{x:.9e}").parse().unwrap_or(x)
}

/// The points asked for, or a grid over the domain, the last axis fastest.
fn points(about: &Description, arguments: &Arguments) -> Vec<Vec<f64>> {
    if !arguments.at.is_empty() {
        return arguments.at.iter().map(|point| point.0.clone()).collect();
    }
    let steps = arguments.points.unwrap_or(DEFAULT_POINTS) - 1;
    about.domain.iter().fold(vec![vec![]], |points, axis| {
        let at = |i| axis.min + (axis.max - axis.min) * (f64::from(i) / f64::from(steps));
        let longer = |p: Vec<f64>| (0..=steps).map(move |i| p.iter().copied().chain([at(i).min(axis.max)]).collect());
        points.into_iter().flat_map(longer).collect()
    })
}

fn what(about: &Description, divisor: Divisor) -> String {
    let key = about.key.as_ref().map(|key| format!(", key '{key}'")).unwrap_or_default();
    let (pipeline, release, window) = (&about.pipeline, &about.release, about.window);
    let divided = match divisor {
        Divisor::Nothing => String::new(),
        Divisor::Records(n) => format!(", here divided by {n}"),
        Divisor::Mass(mass) => format!(", here divided by the released mass {mass}, whose noise the band leaves out"),
    };
    let simulated = if about.synthetic { "; the records were simulated" } else { "" };
    let span = format!("{} to {}", window.start, window.end);
    format!("{release} of {pipeline}{key}, {span}{simulated}\nvalue: {}{divided}", about.meaning)
}

fn guarantee(about: &Description) -> String {
    let (privacy, percent) = (&about.privacy, about.band.level * 100.0);
    let band =
        format!("lower, upper: hold the noise, not the approximation, everywhere at once with {percent} % probability");
    let definition = match &privacy.definition {
        Definition::PureEpsilon => String::new(),
        random @ Definition::Random(_) => format!("{random}, epsilon {}: ", privacy.price),
        other => format!("{other}, {}: ", privacy.price),
    };
    let choice = |choice: &Choice| format!("\nchosen privately from the records of this window and key: {choice}");
    let choices: String = about.choices.iter().map(choice).collect();
    format!("{band}{choices}\n{definition}{}", privacy.in_words)
}

impl Topic {
    /// The synopsis of the newest window that matches, and of its copies the last; read from the beginning, outside any
    /// consumer group.
    fn newest(&self) -> Result<Synopsis, Error> {
        let lost = |source| Error::Broker { brokers: self.brokers.clone(), source };
        let consumer: BaseConsumer = ClientConfig::new()
            .set("bootstrap.servers", &self.brokers)
            // librdkafka wants a name to assign partitions by hand; nothing joins or commits.
            .set("group.id", "bernstream-evaluate")
            .set("enable.auto.commit", "false")
            .set("isolation.level", "read_committed")
            .set("auto.offset.reset", "error")
            .set("allow.auto.create.topics", "false")
            .create()
            .map_err(lost)?;
        let mut ends = self.ends(&consumer)?;
        let mut newest: Option<Synopsis> = None;
        let (mut messages, mut unreadable) = (0, 0);
        let mut heard = Instant::now();
        while !ends.is_empty() {
            if let Some(Ok(message)) = consumer.poll(Duration::from_millis(100)) {
                heard = Instant::now();
                messages += 1;
                ends.retain(|(partition, end)| *partition != message.partition() || message.offset() + 1 < *end);
                match Synopsis::open(message.payload().unwrap_or_default()) {
                    Ok(synopsis) if self.prefers(&synopsis, newest.as_ref()) => newest = Some(synopsis),
                    Ok(_) => {}
                    Err(_) => unreadable += 1,
                }
            } else {
                // Positions pass the marks of transactions, which are never delivered.
                let positions = consumer.position().map_err(lost)?;
                let position = |partition| positions.find_partition(&self.topic, partition).map(|p| p.offset());
                ends.retain(|(partition, end)| !matches!(position(*partition), Some(Offset::Offset(at)) if at >= *end));
            }
            if heard.elapsed() > PATIENCE {
                return Err(Error::Silent { topic: self.topic.clone(), brokers: self.brokers.clone() });
            }
        }
        newest.ok_or_else(|| Error::NoMatch { topic: self.topic.clone(), messages, unreadable })
    }

    /// Assigns every partition that has messages from its beginning, and says where each ends now.
    fn ends(&self, consumer: &BaseConsumer) -> Result<Vec<(i32, i64)>, Error> {
        let lost = |source| Error::Broker { brokers: self.brokers.clone(), source };
        let metadata = consumer.fetch_metadata(Some(&self.topic), PATIENCE).map_err(lost)?;
        let partitions = metadata.topics().iter().filter(|t| t.name() == self.topic && t.error().is_none());
        let partitions: Vec<i32> = partitions.flat_map(|topic| topic.partitions()).map(|p| p.id()).collect();
        if partitions.is_empty() {
            return Err(Error::NoTopic { topic: self.topic.clone(), brokers: self.brokers.clone() });
        }
        let mut assignment = TopicPartitionList::new();
        let mut ends = Vec::new();
        for partition in partitions {
            let (low, high) = consumer.fetch_watermarks(&self.topic, partition, PATIENCE).map_err(lost)?;
            if low < high {
                assignment.add_partition_offset(&self.topic, partition, Offset::Offset(low)).map_err(lost)?;
                ends.push((partition, high));
            }
        }
        consumer.assign(&assignment).map_err(lost)?;
        Ok(ends)
    }

    fn prefers(&self, candidate: &Synopsis, newest: Option<&Synopsis>) -> bool {
        let about = candidate.description();
        let matches = self.key.as_ref().is_none_or(|key| about.key.as_ref() == Some(key))
            && self.window.is_none_or(|start| about.window.start == start);
        let age = |s: &Synopsis| (s.description().window.end, s.description().ledger.sequence);
        matches && newest.is_none_or(|newest| age(candidate) >= age(newest))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use rdkafka::mocking::MockCluster;
    use rdkafka::producer::{BaseProducer, BaseRecord, Producer};

    use super::*;
    use crate::window::grid::Span;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn parse(line: &str) -> Result<Arguments, String> {
        let words = std::iter::once("evaluate").chain(line.split_whitespace());
        Command::try_parse_from(words).map(|command| command.arguments).map_err(|e| e.to_string())
    }

    fn example() -> Description {
        serde_json::from_str(include_str!("../synopsis/example.json")).unwrap()
    }

    fn printed(line: &str, values: [f64; 3]) -> Result<String, Error> {
        let mut out = Vec::new();
        let synopsis = Synopsis::new(example(), values.to_vec()).unwrap();
        table(&synopsis, &parse(line).unwrap(), &mut out).map(|_| String::from_utf8(out).unwrap())
    }

    #[test]
    fn points_come_out_in_the_order_asked_for_with_their_band() {
        let csv = printed("file --at 75 --at -30", [2.0, 4.0, 6.0]).unwrap();
        assert_eq!(csv, "dep_delay,value,lower,upper\n75,4,3,5\n-30,2,0.75,3.25\n");
    }

    #[test]
    fn without_points_the_domain_is_covered_from_end_to_end() {
        assert_eq!(printed("file", [1.0; 3]).unwrap().lines().count(), 26);
        let csv = printed("file --points 2", [1.0; 3]).unwrap();
        assert!(csv.contains("\n-30,") && csv.contains("\n180,"), "{csv}");
    }

    #[test]
    fn another_order_gets_a_band_of_its_own() {
        let width = |line| -> f64 {
            let csv = printed(line, [0.0; 3]).unwrap();
            csv.trim().rsplit(',').next().unwrap().parse().unwrap()
        };
        assert_eq!(width("file --at 75 --order 2"), width("file --at 75"));
        assert_ne!(width("file --at 75 --order 5"), width("file --at 75"));
    }

    #[test]
    fn numbers_end_where_the_noise_begins() {
        for (x, half_width, shown) in
            [(62.664_487, 8.099, 62.66), (0.180_96, 0.0373, 0.181), (-1e-9, 0.5, 0.0), (123_456.7, 5e4, 123_457.0)]
        {
            assert_eq!(above_noise(x, half_width).to_string(), shown.to_string());
        }
        assert_eq!(above_noise(0.1, 0.0), 0.1);
    }

    #[test]
    fn a_density_integrates_to_one_and_needs_a_positive_mass() {
        let csv = printed("file --density --at 75", [2.0, 4.0, 6.0]).unwrap();
        let value: f64 = csv.lines().nth(1).unwrap().split(',').nth(1).unwrap().parse().unwrap();
        assert!((value - 1.0 / 210.0).abs() < 1e-5, "{value}");
        assert!(matches!(printed("file --density", [-1.0; 3]), Err(Error::Mass(_))));
    }

    #[test]
    fn a_command_line_names_a_file_or_a_topic_with_its_brokers() {
        for wrong in ["", "--topic t", "--brokers b", "file --topic t --brokers b", "file --key K", "file --at x"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        for wrong in ["file --points 1", "file --order 0", "file --at 1 --points 3"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert!(parse("--topic t --brokers b --key K --window 2013-01-01T05:00:00Z").unwrap().topic.is_some());
        assert!(parse("- --at -12.5,3").unwrap().topic.is_none());
    }

    #[test]
    fn the_newest_matching_synopsis_is_read_from_a_topic() {
        let cluster = MockCluster::new(1).unwrap();
        let brokers = cluster.bootstrap_servers();
        cluster.create_topic("synopses", 2, 1).unwrap();
        let producer: BaseProducer = ClientConfig::new().set("bootstrap.servers", &brokers).create().unwrap();
        // The newest window comes before a late copy of an older one.
        for (key, day, sequence) in [("JFK", 1, 1), ("LGA", 1, 1), ("JFK", 3, 3), ("JFK", 2, 2)] {
            let start = Timestamp::parse(&format!("2013-01-0{day}T05:00:00Z")).unwrap();
            let mut about = Description { key: Some(key.to_owned()), ..example() };
            about.window = Span { start, end: start.plus(Duration::from_secs(86_400)) };
            about.ledger.sequence = sequence;
            let sealed = Synopsis::new(about, vec![0.0; 3]).unwrap().seal().unwrap();
            producer.send(BaseRecord::to("synopses").key(&sealed.key).payload(&sealed.bytes)).map_err(|e| e.0).unwrap();
        }
        producer.send(BaseRecord::to("synopses").key("noise").payload("not one of ours")).map_err(|e| e.0).unwrap();
        producer.flush(PATIENCE).unwrap();

        let newest = |more: &str| {
            let line = format!("--topic synopses --brokers {brokers} {more}");
            parse(&line).unwrap().topic.unwrap().newest().map(|s| s.description().ledger.sequence)
        };
        assert_eq!(newest("").unwrap(), 3);
        assert_eq!(newest("--key LGA").unwrap(), 1);
        assert_eq!(newest("--key JFK --window 2013-01-02T05:00:00Z").unwrap(), 2);
        assert!(matches!(newest("--key EWR"), Err(Error::NoMatch { messages: 5, unreadable: 1, .. })));
    }
}
