//! What is shown to people is true: the manifests' configurations, the README's commands. The rest of deploy/: tests/deploy.sh.

use std::fs;
use std::process::Command;

use bernstream::config::Settings;

#[test]
fn the_manifests_hold_sound_configurations() {
    for folder in ["base", "overlays/dev", "overlays/production"] {
        let path = format!("deploy/{folder}/bernstream.toml");
        let text = fs::read_to_string(&path).expect("the configuration");
        let settings = Settings::parse(&text, &path).unwrap_or_else(|faults| panic!("{faults}"));
        assert!(settings.ledger.path.starts_with("/var/lib/bernstream"), "the ledger is on the volume");
        assert_eq!(settings.serve.expect("the probes need it").port(), 9464);
    }
}

/// Commands of the README that need no broker, run as they stand there.
#[test]
fn the_commands_of_the_readme_work() {
    let readme = fs::read_to_string("README.md").expect("the README");
    let shell: Vec<&str> = readme.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    let commands: Vec<&str> = shell.iter().flat_map(|block| block.lines()).collect();
    let mut run = 0;
    for command in &commands {
        let words: Vec<&str> = command.split('#').next().unwrap_or_default().split_whitespace().collect();
        match words.as_slice() {
            ["bernstream", "explain" | "check" | "sample", ..] => {
                let output =
                    Command::new(env!("CARGO_BIN_EXE_bernstream")).args(&words[1..]).output().expect("it runs");
                assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
                run += 1;
            }
            // With a broker: in tests/it/flights.rs; without: in tests/it/functions.rs. The demonstration: in tests/it/demo.rs. The page: in
            // tests/it/api.rs. The audit: in tests/it/audit.rs. The tests: this.
            ["bernstream", "audit" | "produce" | "ledger" | "run" | "evaluate" | "query" | "dashboard", ..]
            | ["cargo", "run", ..]
            | ["tests/run"] => {
                run += 1;
            }
            [] => {}
            _ => panic!("nothing tests `{command}`"),
        }
    }
    assert_eq!(run, 18, "{commands:?}");
}
