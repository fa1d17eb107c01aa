//! The configuration, through its public face.
#![cfg(feature = "worker")]

use bernstream::config::Settings;

#[test]
fn dump() {
    let text = r#"
pipeline = "flüge und so"
windws = 3

[input]
time = "time"
key = { column = "origin", values = ["EWR", "JFK", "EWR", ""] }
[input.kafka]
brokers = "localhost:9092"
topic = "flights"
clock_slack = "10"
on_bad_message = "ignore"
skip = [{ partition = -1, offset = 3 }, { partition = 0 }]
lost = [{ partition = 0, from = 5, to = 5 }]
grace = "1h"

[windows]
origin = 2013-01-01T05:00:00
length = "1 month"
end = "2014-01-01T05:00:00Z"
ahead = "5m"
publish_delay = "1m"

[privacy]
unit = { usr = { column = "user_id" } }
adjacency = { replace_one = { records_per_window = 0 } }
epsilon = nan

[release]
name = "departure-delay"
epsilon = 0.1234567890123
degree = 40.5
order = 0
[[release.density.domain]]
column = "a"
min = 10
max = -10
bandwidth = 10
outside = "clamp"
[[release.density.domain]]
column = "a"
max = 1
bandwidth = "x"
outside = "clamp"

[output.kafka]
topic = "flights"
witness = "flights"

[ledger]
keep_published = "7d"

[serve]
listen = "localhost"
"#;
    println!("{}", Settings::parse(text, "wrong.toml").unwrap_err());
    for f in std::fs::read_dir("config").unwrap() {
        let p = f.unwrap().path();
        let s = Settings::load(&p);
        println!("{} {}", p.display(), s.map(|s| s.normalised).unwrap_or_else(|e| e.to_string()));
    }
}
