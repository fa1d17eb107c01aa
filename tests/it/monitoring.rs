//! Alerts, dashboards and runbook are true: against each other, and with the real promtool and a real Prometheus that scrapes
//! real workers.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::harness::http::{free_address, get};
use crate::harness::prometheus::{ask, results, start, tools};
use crate::harness::wait_for;

const ALERTS: &str = "deploy/monitoring/alerts.yaml";
const OPERATOR: &str = "deploy/monitoring/grafana-operator.json";
const SYNOPSES: &str = "deploy/monitoring/grafana-synopses.json";
const RUNBOOK: &str = "deploy/RUNBOOK.md";

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn json(path: &str) -> Value {
    serde_json::from_str(&read(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Each alert with its lines of the rule file.
fn alerts() -> Vec<(String, String)> {
    let text = read(ALERTS);
    let alerts = text.split("- alert: ").skip(1);
    alerts
        .map(|alert| {
            (
                alert.lines().next().unwrap_or_default().to_owned(),
                alert.to_owned(),
            )
        })
        .collect()
}

/// Every panel of a dashboard, those in rows too.
fn panels(dashboard: &Value) -> Vec<Value> {
    let inner = |panel: &Value| panel["panels"].as_array().cloned().unwrap_or_default();
    let outer = dashboard["panels"].as_array().expect("panels").iter();
    outer
        .flat_map(|panel| [panel.clone()].into_iter().chain(inner(panel)))
        .collect()
}

/// Every query of a dashboard, with the title of its panel; variables stand for all there is.
fn queries() -> Vec<(String, String)> {
    let query = |panel: &Value, target: &Value| {
        let query = target["expr"]
            .as_str()
            .expect("an expression")
            .replace("$namespace", ".*")
            .replace("$pipeline", ".*");
        (panel["title"].as_str().expect("a title").to_owned(), query)
    };
    let of_panel = |panel: Value| {
        let targets = panel["targets"].as_array().cloned().unwrap_or_default();
        targets
            .iter()
            .map(|target| query(&panel, target))
            .collect::<Vec<_>>()
    };
    panels(&json(OPERATOR))
        .into_iter()
        .flat_map(of_panel)
        .collect()
}

/// Names that begin with `bernstream_`.
fn series(text: &str) -> BTreeSet<String> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let names = text
        .match_indices("bernstream_")
        .map(|(at, _)| text[at..].split(|c| !is_name(c)).next());
    names.flatten().map(str::to_owned).collect()
}

/// What the workers show, as the test beside the metrics lists it.
fn shown() -> BTreeSet<String> {
    let lines = read("crates/worker/src/metrics.rs");
    let lists = lines
        .lines()
        .filter(|line| line.starts_with("bernstream_") || line.contains("r\"bernstream_"));
    lists
        .flat_map(|line| series(line.split('{').next().unwrap_or_default()))
        .collect()
}

#[test]
fn every_alert_says_what_it_is_and_links_to_what_to_do() {
    let runbook = read(RUNBOOK);
    let sections: Vec<&str> = runbook
        .lines()
        .filter_map(|line| line.strip_prefix("## "))
        .collect();
    let alerts = alerts();
    assert!(alerts.len() >= 8);
    let names: Vec<&str> = alerts.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        sections, names,
        "a section for each alert, in the same order"
    );
    for (name, alert) in &alerts {
        let line = |start: &str| {
            alert
                .lines()
                .find_map(|line| line.trim().strip_prefix(start))
                .map(str::to_owned)
        };
        assert!(
            line("summary: ").is_some() && line("description: ").is_some(),
            "{name}"
        );
        assert_eq!(
            line("runbook_url: "),
            Some(format!("{RUNBOOK}#{}", name.to_lowercase())),
            "{name}"
        );
        assert!(
            alert.contains("severity: critical") || alert.contains("severity: warning"),
            "{name}"
        );
    }
    let tests = read("deploy/monitoring/alerts_test.yaml");
    for name in names {
        assert!(
            tests.contains(&format!("alertname: {name}, exp_alerts: []")),
            "{name} is tested not to fire"
        );
        assert!(
            tests.contains(&format!("alertname: {name}\n        exp_alerts:\n")),
            "{name} is tested to fire"
        );
    }
    // By design is no emergency.
    for by_design in ["BernstreamBudgetEndsSoon", "BernstreamBudgetSpent"] {
        let alert = alerts
            .iter()
            .find(|(name, _)| name == by_design)
            .expect(by_design);
        assert!(alert.1.contains("severity: warning"), "{by_design}");
    }
}

#[test]
fn every_section_of_the_runbook_says_what_it_means_what_to_do_and_what_never() {
    let runbook = read(RUNBOOK);
    for section in runbook.split("\n## ").skip(1) {
        let name = section.lines().next().unwrap_or_default();
        for part in ["**It means**", "**Look at**", "**Do**", "**Never**"] {
            // Or as the head of a column.
            let column = part.trim_matches('*').to_lowercase();
            assert!(
                section.contains(part) || section.contains(&format!("| {column} |")),
                "{name}: {part}"
            );
        }
    }
    // What it quotes of the log is what the program says.
    let mut source = String::new();
    let mut folders = vec![PathBuf::from("src"), PathBuf::from("crates")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if let Ok(text) = fs::read_to_string(&path) {
                source.push_str(&text);
            }
        }
    }
    let source = source
        .replace("\\\n", " ")
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    let text = runbook.replace('\n', " ");
    let quotes = text
        .split('"')
        .skip(1)
        .step_by(2)
        .filter(|quote| quote.contains(' '));
    let wrong: Vec<&str> = quotes.filter(|quote| !source.contains(quote)).collect();
    assert!(wrong.is_empty(), "nothing says: {wrong:?}");
}

#[test]
fn every_series_has_a_user_and_every_user_a_series() {
    let used: String = [ALERTS, OPERATOR, RUNBOOK].map(read).concat();
    let shown = shown();
    let used = series(&used);
    assert!(shown.len() > 20, "{shown:?}");
    assert_eq!(shown, used);
}

#[test]
fn the_dashboards_are_sound() {
    for path in [OPERATOR, SYNOPSES] {
        let dashboard = json(path);
        assert!(
            dashboard["uid"].is_null() && dashboard["id"].is_null(),
            "{path}: whoever imports it gives the id"
        );
        let variables: Vec<&Value> = dashboard["templating"]["list"]
            .as_array()
            .expect("variables")
            .iter()
            .collect();
        assert!(
            variables
                .iter()
                .any(|one| one["type"] == "datasource" && one["name"] == "datasource"),
            "{path}"
        );
        let panels = panels(&dashboard);
        let ids: BTreeSet<i64> = panels
            .iter()
            .map(|panel| panel["id"].as_i64().expect("a number"))
            .collect();
        assert_eq!(ids.len(), panels.len(), "{path}: ids are unique");
        for panel in panels.iter().filter(|panel| panel["type"] != "row") {
            let title = panel["title"].as_str().expect("a title");
            assert!(
                panel["description"]
                    .as_str()
                    .is_some_and(|text| text.len() > 10),
                "{path}: {title}"
            );
            for asked in panel["targets"]
                .as_array()
                .expect("targets")
                .iter()
                .chain([panel])
            {
                assert_eq!(
                    asked["datasource"]["uid"], "${datasource}",
                    "{path}: {title}"
                );
            }
            let place = &panel["gridPos"];
            let side = |name: &str| place[name].as_i64().unwrap_or(-1);
            assert!(
                side("x") >= 0 && side("w") > 0 && side("h") > 0 && side("x") + side("w") <= 24,
                "{path}: {title}"
            );
        }
        let text = read(path);
        let variable = |name: &str| variables.iter().any(|one| one["name"] == name);
        for name in ["namespace", "pipeline", "release", "key", "column", "at"] {
            let is_used =
                text.contains(&format!("${name}")) || text.contains(&format!("${{{name}"));
            assert_eq!(is_used, variable(name), "{path}: {name}");
        }
    }
}

/// What a panel of synopses asks the JSON endpoint of the dashboard, with its variables as they are at first, which is for the
/// demonstration.
struct Question {
    url: String,
    columns: Vec<String>,
}

fn questions() -> Vec<Question> {
    let dashboard = json(SYNOPSES);
    let variables = dashboard["templating"]["list"]
        .as_array()
        .expect("variables")
        .iter();
    let values: Vec<(String, String)> = variables
        .filter_map(|one| {
            Some((
                one["name"].as_str()?.to_owned(),
                one["current"]["value"].as_str()?.to_owned(),
            ))
        })
        .collect();
    let fill = |text: &str| {
        values.iter().fold(text.to_owned(), |text, (name, value)| {
            text.replace(&format!("${{{name}}}"), value)
                .replace(&format!("${{{name}:percentencode}}"), value)
        })
    };
    let question = |target: &Value| {
        let columns = target["columns"].as_array().expect("columns").iter();
        let selected = columns.map(|column| fill(column["selector"].as_str().expect("a selector")));
        Question {
            url: fill(target["url"].as_str().expect("an address")),
            columns: selected.collect(),
        }
    };
    let targets = |panel: Value| panel["targets"].as_array().cloned().unwrap_or_default();
    let variables = dashboard["templating"]["list"]
        .as_array()
        .expect("variables")
        .iter();
    let listed = variables
        .map(|one| one["query"]["infinityQuery"].clone())
        .filter(Value::is_object);
    panels(&dashboard)
        .into_iter()
        .flat_map(targets)
        .chain(listed)
        .map(|target| question(&target))
        .collect()
}

/// What the panels of synopses ask, by the JSON endpoint of the dashboard.
#[test]
fn the_synopses_are_asked_for_as_the_endpoint_has_them() {
    let mut asked = BTreeSet::new();
    for panel in panels(&json(SYNOPSES)) {
        for target in panel["targets"].as_array().expect("targets") {
            let url = target["url"].as_str().expect("an address");
            let (path, question) = url.split_once('?').unwrap_or((url, ""));
            let names: Vec<&str> = question
                .split('&')
                .filter_map(|part| Some(part.split_once('=')?.0))
                .collect();
            let known: &[&str] = match path {
                "/api/v1/curve" => &["release", "key", "points"],
                "/api/v1/history" => &["release", "key", "at"],
                "/api/v1/synopses" => &[],
                _ => panic!("nothing answers {url}"),
            };
            assert_eq!(names, known, "{url}");
            asked.insert(path.to_owned());
            let columns = target["columns"].as_array().expect("columns");
            let selected: Vec<&str> = columns
                .iter()
                .filter_map(|column| column["selector"].as_str())
                .collect();
            let is_band = ["value", "lower", "upper", "total_lower", "total_upper"]
                .iter()
                .all(|name| selected.contains(name));
            assert!(is_band || path == "/api/v1/synopses", "{url}: {selected:?}");
            let fills = panel
                .to_string()
                .contains(r#"{"id":"custom.fillBelowTo","value":"lower"}"#);
            assert_eq!(fills, is_band, "{url}: the band is filled");
        }
    }
    assert_eq!(asked.len(), 3);
    // A release is chosen by its title, and asked for by its name.
    let dashboard = json(SYNOPSES);
    let mut variables = dashboard["templating"]["list"]
        .as_array()
        .expect("variables")
        .iter();
    let release = variables
        .find(|one| one["name"] == "release")
        .expect("it is a variable");
    let listed = &release["query"]["infinityQuery"];
    let columns = listed["columns"].as_array().expect("columns").iter();
    let named: Vec<[&Value; 2]> = columns
        .map(|column| [&column["text"], &column["selector"]])
        .collect();
    assert_eq!(
        (&listed["url"], named),
        (
            &"/api/v1/synopses".into(),
            vec![
                [&"__text".into(), &"title".into()],
                [&"__value".into(), &"release".into()]
            ]
        )
    );
    let titles = panels(&dashboard)
        .into_iter()
        .take(2)
        .filter(|panel| panel.to_string().contains("${release:text}"));
    assert_eq!(titles.count(), 2);
}

fn test_rules(tools: &Path, folder: &Path) -> Output {
    let mut promtool = Command::new(fs::canonicalize(tools.join("promtool")).expect("promtool"));
    promtool
        .args(["test", "rules", "alerts_test.yaml"])
        .current_dir(folder)
        .output()
        .expect("it runs")
}

/// A worker on files, with so many windows that it works as long as the test does.
fn configuration(name: &str, privacy: &str, folder: &Path) -> String {
    let flights = fs::canonicalize("tests/data/flights.parquet").expect("the flights");
    format!(
        r#"
pipeline = "{name}"

[input]
time = "time"
files = {{ path = "{flights}" }}

[windows]
origin = "1990-01-01T00:00:00Z"
length = "10m"
end = "1991-06-30T00:00:00Z"

[privacy]
unit = {{ user = {{ column = "carrier", per = "30d", max_records_per_window = 1 }} }}
adjacency = "add_remove"
{privacy}

[release]
name = "departure-delay"
degree = 4
order = 1
domain = [{{ column = "dep_delay", min = -30, max = 180, outside = "drop" }}]
density = {{ bandwidths = [60] }}
{price}

[output]
files = {{ path = "{folder}/{name}" }}

[ledger]
path = "{folder}/{name}-ledger"

[serve]
listen = "127.0.0.1:0"
detail = "operator"
"#,
        flights = flights.display(),
        folder = folder.display(),
        price = if privacy.contains("rho") {
            "rho = 0.0001"
        } else {
            "epsilon = 0.0005"
        },
    )
}

/// Real workers, a real Prometheus: every query of a panel and every alert has data, or there is a reason why not.
#[test]
fn every_panel_and_every_alert_has_data_of_real_workers() {
    let Some(tools) = tools() else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let place = |name: &str| folder.path().join(name);
    let bernstream = || Command::new(env!("CARGO_BIN_EXE_bernstream"));
    // Live windows at the default level; and budgets of each kind with exact counts.
    let demo = free_address();
    let demonstration = ["demo", "--listen", &demo, "--dashboard", "127.0.0.1:0"];
    let mut running = vec![start(bernstream().args(demonstration), &place("demo.log"))];
    let kinds = [
        ("approximate", "epsilon = 4.0\ndelta = 1e-6\nreserve = 0.1"),
        ("concentrated", "rho = 0.47\nreserve = 0.1"),
        (
            "planned",
            "epsilon = 4.0\ndelta = 1e-6\ncomposition = \"plan\"\nwindows = 4800\nreserve = 0.1",
        ),
    ];
    for (name, privacy) in kinds {
        let path = place(&format!("{name}.toml"));
        fs::write(&path, configuration(name, privacy, folder.path())).expect("it is written");
        running.push(start(
            bernstream().arg("run").arg(&path),
            &place(&format!("{name}.log")),
        ));
    }
    let names = ["demo", "approximate", "concentrated", "planned"];
    let log = |name: &str| fs::read_to_string(place(&format!("{name}.log"))).unwrap_or_default();
    let logs = || names.map(log).join("\n");
    // Workers take a free port, and their logs say which.
    let address = |name: &str, before: &str, after: &str| {
        wait_for("an address", logs, || {
            let log = log(name);
            let (address, _) = log.split_once(before)?.1.split_once(after)?;
            Some(address.to_owned())
        })
    };
    let mut addresses = vec![demo];
    addresses.extend(
        names[1..]
            .iter()
            .map(|name| address(name, "serving http://", "/metrics")),
    );
    let page = address("demo", "==>  http://", "  <==");

    let targets = addresses
        .iter()
        .map(|address| format!("\"{address}\""))
        .collect::<Vec<_>>()
        .join(", ");
    let rules = fs::canonicalize(ALERTS).expect("the rules");
    let text = format!(
        "global: {{ scrape_interval: 1s, evaluation_interval: 1s }}\nrule_files: [\"{}\"]\nscrape_configs:\n  - job_name: \
         bernstream\n    static_configs: [{{ targets: [{targets}], labels: {{ namespace: here }} }}]\n",
        rules.display()
    );
    fs::write(place("prometheus.yml"), text).expect("it is written");
    let server = free_address();
    let mut command = Command::new(tools.join("prometheus"));
    command.arg(format!(
        "--config.file={}",
        place("prometheus.yml").display()
    ));
    command.arg(format!("--storage.tsdb.path={}", place("data").display()));
    command.arg(format!("--web.listen-address={server}"));
    running.push(start(&mut command, &place("prometheus.log")));

    // Counters grow between two scrapes.
    // The demonstration counts a window in three seconds.
    let grown = "count(increase(bernstream_windows_released_total[1m]) > 0)";
    wait_for("a server", logs, || {
        get(&server, "/-/ready").filter(|said| said.contains("is Ready"))
    });
    let grown = format!("{grown} == {}", addresses.len());
    wait_for("windows that are released and scraped", logs, || {
        (results(&server, &grown) > 0).then_some(())
    });

    for asked in questions() {
        // The page may not have read the first window yet.
        let rows: Vec<Value> = wait_for(&asked.url, logs, || {
            serde_json::from_str(&get(&page, &asked.url)?)
                .ok()
                .filter(|rows: &Vec<Value>| !rows.is_empty())
        });
        for column in &asked.columns {
            // Counts by key have no key of their own.
            let has_value = rows.iter().any(|row| {
                let value = column.split('.').fold(row, |row, name| &row[name]);
                !value.is_null()
            });
            assert!(has_value, "{}: {column}: {}", asked.url, rows[0]);
        }
    }

    for address in &addresses {
        let metrics = get(address, "/metrics").expect("metrics");
        let mut lint = Command::new(tools.join("promtool"));
        let lint = lint
            .args(["check", "metrics"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut lint = lint.spawn().expect("it runs");
        lint.stdin
            .take()
            .expect("a pipe")
            .write_all(metrics.as_bytes())
            .expect("it reads");
        let said = lint.wait_with_output().expect("it ends");
        assert!(
            said.status.success() && said.stderr.is_empty(),
            "{}",
            String::from_utf8_lossy(&said.stderr)
        );
    }

    // Files have no message timestamps.
    let queries = queries();
    assert!(queries.len() > 25, "{queries:?}");
    for (title, query) in &queries {
        if query.contains("read_until") {
            assert_eq!(results(&server, query), 0, "{title}: {query}");
        } else {
            wait_for(&format!("{title}: {query}"), logs, || {
                (results(&server, query) > 0).then_some(())
            });
        }
    }

    let rules = wait_for("an evaluation of every alert", logs, || {
        let rules = ask(&server, "/api/v1/rules")["groups"][0]["rules"]
            .as_array()
            .cloned()?;
        rules
            .iter()
            .all(|rule| rule["health"] == "ok")
            .then_some(rules)
    });
    assert_eq!(rules.len(), alerts().len());
    for rule in rules {
        let name = rule["name"].as_str().expect("a name");
        let query = rule["query"].as_str().expect("a query");
        results(&server, query);
        // No absorbers send anything here, and no registry is named.
        let absent = [
            "bernstream_partials_total",
            "bernstream_newest_schema_pinned",
            "bernstream_schema_registry_answers",
        ];
        for series in series(query)
            .iter()
            .filter(|series| !absent.contains(&series.as_str()))
        {
            wait_for(&format!("{name}: {series}"), logs, || {
                (results(&server, series) > 0).then_some(())
            });
        }
        // The workers on files show counts, which is alerted after an hour; and they come to the end of a block now and then.
        if ["BernstreamShowsCounts", "BernstreamBudgetSpent"].contains(&name) {
            continue;
        }
        // A scrape that a busy machine misses passes; nothing fires.
        let firing = format!("ALERTS{{alertname=\"{name}\",alertstate=\"pending\"}}");
        wait_for(&format!("{name} inactive"), logs, || {
            (results(&server, &firing) == 0).then_some(())
        });
        assert_ne!(rule["state"], "firing", "{rule}");
    }
}

mod long {
    use super::*;

    #[test]
    fn the_alerts_fire_when_they_should_and_only_then() {
        let Some(tools) = tools() else { return };
        let checked = Command::new(tools.join("promtool"))
            .args(["check", "rules", ALERTS])
            .output()
            .expect("it runs");
        assert!(
            checked.status.success(),
            "{}",
            String::from_utf8_lossy(&checked.stderr)
        );
        let tested = test_rules(&tools, Path::new("deploy/monitoring"));
        let said = String::from_utf8_lossy(&tested.stdout).into_owned()
            + &String::from_utf8_lossy(&tested.stderr);
        assert!(tested.status.success(), "{said}");

        // Each of them can fail: an alert that asks for something else does not pass its tests.
        let changes = [
            (
                "unless group by (namespace, pipeline) (bernstream_build_info)",
                "unless bernstream_build_info",
            ),
            ("{part!=\"clock\"} == 0", " == 0"),
            ("{part!=\"clock\"} == 0", "{part!=\"clock\"} == 2"),
            ("{part=\"clock\"} == 0", "{part=\"clock\"} == 2"),
            ("unless changes(", "and changes("),
            ("and changes(", "unless changes("),
            ("pipeline, ledger)", "pipeline, instance)"),
            ("records_lost == 1", "records_lost == 2"),
            (
                "delta(bernstream_stray_records[1h]) > 0",
                "delta(bernstream_stray_records[1h]) > 5",
            ),
            (
                "unless bernstream_stray_records",
                "and bernstream_stray_records",
            ),
            ("schema_pinned == 0", "schema_pinned == 1"),
            ("registry_answers == 0", "registry_answers == 1"),
            ("< 7 * 86400", "> 7 * 86400"),
            ("withheld == 1", "withheld == 0"),
            ("detail=\"operator\"", "detail=\"safe\""),
            ("read_here > 0", "read_here > 5"),
            ("refused\"}[1h]) > 0", "refused\"}[1h]) > 5"),
            (
                "unless bernstream_partials_total",
                "and bernstream_partials_total",
            ),
            ("{fate=~\"differing|broken|refused\"}[1h]", "[1h]"),
        ];
        for (from, to) in changes {
            let folder = tempfile::tempdir().expect("a temporary folder");
            let text = read(ALERTS);
            assert!(text.contains(from), "{from}");
            fs::write(folder.path().join("alerts.yaml"), text.replace(from, to))
                .expect("it is written");
            fs::copy(
                "deploy/monitoring/alerts_test.yaml",
                folder.path().join("alerts_test.yaml"),
            )
            .expect("it is copied");
            assert!(!test_rules(&tools, folder.path()).status.success(), "{to}");
        }
    }
}
