//! TLS and SASL against a broker that requires both: everything works, and everything that is wrong is told in words.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;

use crate::harness::kafka;
use crate::harness::running::Running;
use crate::harness::setup::{self, Setup};

/// The listener of the tests' broker that requires TLS and a password.
pub struct Secure {
    plain: String,
    address: String,
    ca: PathBuf,
    password_file: PathBuf,
    password: String,
}

fn secure() -> Option<Secure> {
    let plain = kafka::broker()?;
    let script = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/kafka.sh"))
        .arg("secure")
        .output();
    let told = script.expect("the script runs");
    assert!(
        told.status.success(),
        "{}",
        String::from_utf8_lossy(&told.stderr)
    );
    Some(Secure::of(
        &plain,
        &String::from_utf8(told.stdout).expect("text"),
    ))
}

impl Secure {
    /// The one of the broker at `plain`, as `tests/kafka.sh secure` tells it.
    pub fn of(plain: &str, told: &str) -> Self {
        let [address, ca, password_file] = told.split_whitespace().collect::<Vec<_>>()[..] else {
            panic!("{told}")
        };
        let password = fs::read_to_string(password_file)
            .expect("a password")
            .trim()
            .to_owned();
        assert!(password.len() > 20);
        let plain = plain.to_owned();
        let address = address.to_owned();
        Secure {
            plain,
            address,
            ca: ca.into(),
            password_file: password_file.into(),
            password,
        }
    }

    /// The arguments of a command, and the keys of a configuration, that say the same.
    pub fn right(&self) -> Way<'_> {
        Way {
            brokers: &self.address,
            ca: Some(&self.ca),
            sasl: Some(("SCRAM-SHA-512", "bernstream", &self.password_file)),
        }
    }

    /// What a command prints, which never holds the password.
    fn told(&self, done: &Output) -> String {
        let told = [&done.stdout, &done.stderr]
            .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
            .concat();
        assert!(
            !told.contains(&self.password),
            "the password is told: {told}"
        );
        told
    }

    pub fn setup(&self, way: &Way<'_>, windows: u32) -> Setup {
        let setup = Setup::new(&self.plain, windows);
        setup.edit(&format!("brokers = \"{}\"", self.plain), &way.keys());
        setup
    }
}

/// A way to reach a cluster.
#[derive(Clone, Copy)]
pub struct Way<'a> {
    brokers: &'a str,
    ca: Option<&'a Path>,
    /// Mechanism, user, password file.
    sasl: Option<(&'a str, &'a str, &'a Path)>,
}

impl Way<'_> {
    fn arguments(&self) -> Vec<String> {
        let mut arguments = vec!["--brokers".to_owned(), self.brokers.to_owned()];
        if let Some(ca) = self.ca {
            arguments.extend(["--ca".to_owned(), ca.display().to_string()]);
        }
        if let Some((mechanism, user, file)) = self.sasl {
            let words = [
                "--sasl",
                mechanism,
                "--username",
                user,
                "--password-file",
                &file.display().to_string(),
            ];
            arguments.extend(words.map(str::to_owned));
        }
        arguments
    }

    fn keys(&self) -> String {
        let ca = self
            .ca
            .map(|ca| format!("\ntls = {{ ca = \"{}\" }}", ca.display()))
            .unwrap_or_default();
        let sasl = self.sasl.map(|(mechanism, user, file)| {
            let file = file.display();
            format!("\nsasl = {{ mechanism = \"{mechanism}\", username = \"{user}\", password_file = \"{file}\" }}")
        });
        format!(
            "brokers = \"{}\"{ca}{}",
            self.brokers,
            sasl.unwrap_or_default()
        )
    }
}

/// A file with a password, for its owner alone.
fn file(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, text).expect("a file");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("its mode");
    path
}

/// A certificate authority that has signed nothing.
fn stranger(folder: &Path) -> PathBuf {
    let store = folder.join("stranger.p12");
    let pem = folder.join("stranger.pem");
    let keytool = |arguments: &[&str]| {
        let mut command = Command::new("keytool");
        command.args(arguments).arg("-keystore").arg(&store).args([
            "-storepass",
            "stranger",
            "-alias",
            "stranger",
        ]);
        assert!(command.output().expect("keytool runs").status.success());
    };
    keytool(&["-genkeypair", "-keyalg", "EC", "-dname", "CN=stranger"]);
    keytool(&["-exportcert", "-rfc", "-file", &pem.display().to_string()]);
    pem
}

fn run(setup: &Setup, arguments: &[&str], way: &Way<'_>) -> Output {
    setup
        .bernstream(arguments)
        .args(way.arguments())
        .output()
        .expect("it runs")
}

#[test]
#[cfg_attr(not(feature = "tls"), ignore = "built without the feature `tls`")]
fn rows_become_a_curve_over_tls_and_a_password() {
    let Some(secure) = secure() else { return };
    let way = secure.right();
    let setup = secure.setup(&way, 3);
    let rows = setup.folder.path().join("rows.arrows");
    fs::write(&rows, setup::message(&setup.rows(3000, 1))).expect("rows");

    let done = run(
        &setup,
        &[
            "produce",
            &rows.display().to_string(),
            "--topic",
            &setup.input,
        ],
        &way,
    );
    let told = secure.told(&done);
    assert!(
        done.status.success() && told.contains("3000 rows in 3 messages"),
        "{told}"
    );
    let made = run(
        &setup,
        &[
            "produce",
            &rows.display().to_string(),
            "--topic",
            &kafka::fresh_name("new"),
            "--create",
            "1",
        ],
        &way,
    );
    assert!(made.status.success(), "{}", secure.told(&made));

    let begun = setup.ledger_command(&["init", "--from", &setup.origin.to_string()]);
    assert!(begun.status.success(), "{}", secure.told(&begun));
    let configuration = setup.configuration().display().to_string();
    let checked = setup
        .bernstream(&["check", &configuration])
        .output()
        .expect("it runs");
    let told = secure.told(&checked);
    assert!(
        checked.status.success() && told.contains("ok     topic"),
        "{told}"
    );
    assert!(
        !told.contains("warning"),
        "nobody else can read the password: {told}"
    );

    let mut worker = Running::start(&setup);
    assert!(worker.end(&setup).success(), "{}", setup.read_log());
    setup.assert_whole();
    assert!(!setup.read_log().contains(&secure.password));

    let read = run(
        &setup,
        &[
            "evaluate",
            "--topic",
            &setup.output,
            "--key",
            "a",
            "--points",
            "5",
        ],
        &way,
    );
    let told = secure.told(&read);
    assert!(
        read.status.success() && told.contains("value,value,lower,upper"),
        "{told}"
    );
}

#[test]
#[cfg_attr(not(feature = "tls"), ignore = "built without the feature `tls`")]
fn plain_passwords_and_other_mechanisms_are_taken_where_the_broker_takes_them() {
    let Some(secure) = secure() else { return };
    let ask = |mechanism| {
        let way = Way {
            sasl: Some((mechanism, "bernstream", &secure.password_file)),
            ..secure.right()
        };
        let setup = secure.setup(&way, 1);
        let done = run(&setup, &["evaluate", "--topic", &setup.input], &way);
        secure.told(&done)
    };
    assert!(ask("PLAIN").contains("no synopsis in"), "{}", ask("PLAIN"));
    let refused = ask("SCRAM-SHA-256");
    assert!(
        refused.contains("does not support SCRAM-SHA-256") && refused.contains("SCRAM-SHA-512"),
        "{refused}"
    );
}

#[test]
#[cfg_attr(not(feature = "tls"), ignore = "built without the feature `tls`")]
fn what_is_wrong_is_told_in_words_by_every_command() {
    let Some(secure) = secure() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let right = secure.right();
    let folder = folder.path();
    let wrong_password = file(folder, "wrong", "not-the-password\n");
    let stranger = stranger(folder);
    let by_name = secure.address.replace("127.0.0.1", "localhost");
    let missing = folder.join("missing");
    let empty = file(folder, "empty", "\n");

    // What no waiting mends ends a command at once, with the code for a wrong configuration.
    let lasting: [(&str, Way<'_>, &[&str]); 8] = [
        (
            "password",
            Way {
                sasl: with(&right, "bernstream", &wrong_password),
                ..right
            },
            &["rejects user 'bernstream'", "wrong"],
        ),
        (
            "user",
            Way {
                sasl: with(&right, "nobody", &secure.password_file),
                ..right
            },
            &["rejects user 'nobody'"],
        ),
        (
            "authority",
            Way {
                ca: Some(&stranger),
                ..right
            },
            &["certificate is not accepted", "stranger.pem"],
        ),
        (
            "host",
            Way {
                brokers: &by_name,
                ..right
            },
            &["certificate is not accepted", "name the host"],
        ),
        (
            "no ca",
            Way {
                ca: Some(&missing),
                ..right
            },
            &["the certificate authorities in", "missing", "No such file"],
        ),
        (
            "not a ca",
            Way {
                ca: Some(&wrong_password),
                ..right
            },
            &["ssl.ca.location"],
        ),
        (
            "no file",
            Way {
                sasl: with(&right, "bernstream", &missing),
                ..right
            },
            &["the password in", "No such file"],
        ),
        (
            "no password",
            Way {
                sasl: with(&right, "bernstream", &empty),
                ..right
            },
            &["empty is empty"],
        ),
    ];
    // A broker that shuts down closes connections in the same way, so these are retried.
    let passing: [(&str, Way<'_>, &[&str]); 3] = [
        (
            "plain text",
            Way {
                ca: None,
                sasl: None,
                ..right
            },
            &["closed a plaintext connection", "set `tls`"],
        ),
        (
            "no password",
            Way {
                sasl: None,
                ..right
            },
            &["closed the connection at the first request", "set `sasl`"],
        ),
        (
            "tls to plain text",
            Way {
                brokers: &secure.plain,
                ..right
            },
            &["the port does not speak TLS"],
        ),
    ];
    let lasting = lasting
        .iter()
        .map(|(case, way, words)| (*case, way, *words, Some(78)));
    let cases = lasting.chain(
        passing
            .iter()
            .map(|(case, way, words)| (*case, way, *words, None)),
    );
    // All at once: each of them mostly waits for a broker.
    thread::scope(|scope| {
        for (case, way, words, code) in cases {
            let secure = &secure;
            scope.spawn(move || refused(secure, case, way, words, code));
        }
    });
}

fn with<'a>(way: &Way<'a>, user: &'a str, file: &'a Path) -> Option<(&'a str, &'a str, &'a Path)> {
    way.sasl.map(|(mechanism, ..)| (mechanism, user, file))
}

/// Every command tells `words`; where it has a `code`, the worker ends with it, and else waits and says why.
fn refused(secure: &Secure, case: &str, way: &Way<'_>, words: &[&str], code: Option<i32>) {
    let setup = secure.setup(way, 1);
    let configuration = setup.configuration().display().to_string();
    let tells = |told: &str| words.iter().all(|word| told.contains(word));
    let commands: [(&[&str], bool); 3] = [
        (
            &[
                "produce",
                "tests/data/flights.parquet",
                "--topic",
                &setup.input,
            ],
            true,
        ),
        (&["evaluate", "--topic", &setup.input], true),
        (&["check", &configuration], false),
    ];
    for (arguments, takes_way) in commands {
        let mut command = setup.bernstream(arguments);
        let done = command
            .args(if takes_way {
                way.arguments()
            } else {
                Vec::new()
            })
            .output()
            .expect("it runs");
        let told = secure.told(&done);
        assert!(tells(&told), "{case}, {arguments:?}: {told}");
        assert_eq!(
            done.status.code(),
            Some(code.unwrap_or(69)),
            "{case}: {told}"
        );
    }
    let mut worker = Running::start(&setup);
    match code {
        Some(code) => {
            assert_eq!(
                worker.end(&setup).code(),
                Some(code),
                "{case}: {}",
                setup.read_log()
            );
            assert!(tells(&setup.read_log()), "{case}: {}", setup.read_log());
        }
        None => {
            setup.wait_for("the reason", || tells(&setup.read_log()).then_some(()));
            assert!(
                setup.read_log().contains("trying again"),
                "{case}: {}",
                setup.read_log()
            );
        }
    }
    assert!(!setup.read_log().contains(&secure.password), "{case}");
}

#[test]
#[cfg_attr(not(feature = "tls"), ignore = "built without the feature `tls`")]
fn a_password_that_every_user_can_read_is_warned_of() {
    let Some(secure) = secure() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let open = file(folder.path(), "open", &format!("{}\n", secure.password));
    let right = secure.right();
    let way = Way {
        sasl: with(&right, "bernstream", &open),
        ..right
    };
    let setup = secure.setup(&way, 1);
    for (mode, is_warned) in [(0o600, false), (0o440, false), (0o644, true)] {
        fs::set_permissions(&open, fs::Permissions::from_mode(mode)).expect("its mode");
        let told = secure.told(&run(&setup, &["evaluate", "--topic", &setup.input], &way));
        assert_eq!(
            told.contains("every user of this machine can read"),
            is_warned,
            "{mode:o}: {told}"
        );
        assert!(
            told.contains("no synopsis in"),
            "it is used all the same: {told}"
        );
    }
}
