//! The demonstration: tables, and curves with bands, without a broker, ending by itself.

use std::process::Command;

#[test]
fn the_demonstration_draws_its_windows_and_ends() {
    let output = Command::new(env!("CARGO_BIN_EXE_bernstream"))
        .args(["demo", "--windows", "2"])
        .output()
        .expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(text.contains("mock"), "it says that its broker is a mock");
    for counter in ["north", "south"] {
        assert_eq!(
            text.matches(&format!("counter {counter}")).count(),
            2,
            "{text}"
        );
    }
    assert_eq!(
        text.matches(
            "privacy: epsilon = 0.5 for each record; a record lies in one window, so it pays once"
        )
        .count(),
        4,
        "{text}"
    );
    let tables = text.matches("key    records ").count();
    assert_eq!(tables, 2, "{text}");
    assert!(
        text.find("customers and their mean") < text.find("counter north"),
        "it starts with a table: {text}"
    );
    let curves = text
        .lines()
        .filter(|line| line.contains('|') && line.contains('*'))
        .count();
    assert!(curves > 20, "curves are drawn: {text}");
}
