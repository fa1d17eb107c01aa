//! What is shown to people is true: the manifest's configuration, the Dockerfile's paths, the README's commands.

use std::fs;
use std::path::Path;
use std::process::Command;

use bernstream::config::Settings;

/// The configuration inside the manifest's ConfigMap.
fn configuration_of_the_manifest() -> String {
    let manifest = fs::read_to_string("deploy/kubernetes.yaml").expect("the manifest");
    let start = manifest.find("bernstream.toml: |\n").expect("the configuration") + "bernstream.toml: |\n".len();
    let lines = manifest[start..].lines().take_while(|line| line.is_empty() || line.starts_with("    "));
    lines.map(|line| line.strip_prefix("    ").unwrap_or(line)).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_manifest_holds_a_sound_configuration() {
    let text = configuration_of_the_manifest();
    let settings = Settings::parse(&text, "deploy/kubernetes.yaml").unwrap_or_else(|faults| panic!("{faults}"));
    assert!(settings.ledger.path.starts_with("/var/lib/bernstream"), "the ledger is on the volume");
    assert_eq!(settings.serve.expect("the probes need it").port(), 9464);
}

#[test]
fn the_dockerfile_copies_what_is_there() {
    let dockerfile = fs::read_to_string("deploy/Dockerfile").expect("the Dockerfile");
    let mut copied = 0;
    for line in dockerfile.lines().filter(|line| line.starts_with("COPY ") && !line.contains("--from=")) {
        let mut words: Vec<&str> = line.split_whitespace().skip(1).collect();
        words.pop();
        for source in words {
            assert!(Path::new(source).exists(), "{source}");
            copied += 1;
        }
    }
    assert!(copied >= 4);
    assert!(dockerfile.contains("USER 65532:65532"));
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
            // With a broker: in tests/flights.rs; without: in tests/functions.rs. The demonstration: in tests/demo.rs. The tests: this.
            ["bernstream", "produce" | "ledger" | "run" | "evaluate" | "query", ..]
            | ["cargo", "run", ..]
            | ["tests/run"] => {
                run += 1;
            }
            [] => {}
            _ => panic!("nothing tests `{command}`"),
        }
    }
    assert_eq!(run, 16, "{commands:?}");
}
