//! Settings that are allowed but may surprise.

use std::time::Duration;

use crate::settings::{
    InputParams, PRODUCTS_A_SECOND, Period, PrivacyUnit, WorkerSettings, most_blocks,
};
use bernstream_ledger::StandbyRule;
use bernstream_synopsis::clock::{format_duration, saturating_micros};

/// Time that it takes a standby to wait its turn and to claim, at most.
const CLAIMING: Duration = Duration::from_secs(1);

/// Settings that are allowed but may surprise: slow windows, and windows and periods that do not align.
pub fn surprising_settings(settings: &WorkerSettings) -> Vec<String> {
    let unguarded = settings.output.unguarded_warning();
    slow_windows(settings)
        .into_iter()
        .chain(misaligned_periods(settings))
        .chain(unpaid_overlaps(settings))
        .chain(hasty_standby(settings))
        .chain(undeclared_delay(settings))
        .chain(published_names(settings))
        .chain(unguarded)
        .collect()
}

/// The total does not cover all windows that a record is in.
fn unpaid_overlaps(settings: &WorkerSettings) -> Option<String> {
    let is_short =
        settings.privacy.unit == PrivacyUnit::Record && settings.total_window_price().is_none();
    is_short.then(|| {
        format!(
            "{} does not pay for all the releases that cover a window: some windows will not be published",
            settings.privacy.spendable_limit()
        )
    })
}

/// Nobody has said how long producers keep a record.
fn undeclared_delay(settings: &WorkerSettings) -> Option<String> {
    let is_open =
        matches!(settings.input, InputParams::Kafka(_)) && settings.producer_delay.is_none();
    is_open.then(|| {
        format!(
            "input.kafka.producer_delay is not declared: the guarantee needs producers that send by the clock and not by a count. Whatever other \
             records there are, each must be on the topic from windows.ahead, {}, before its event time to windows.grace, {}, after it, or at \
             a moment that no other record decides; declare the delay of yours",
            bernstream_synopsis::clock::format_duration(settings.windows.max_future_skew),
            bernstream_synopsis::clock::format_duration(settings.windows.allowed_lateness)
        )
    })
}

/// Names of keys that nobody listed are published.
fn published_names(settings: &WorkerSettings) -> Option<String> {
    settings.found_keys.as_ref()?;
    let column = settings.columns.key.join(" and ");
    let by_whom = match settings.privacy.unit {
        PrivacyUnit::Record => {
            "; and one person can have any text published, a name of somebody for example, by sending it in enough records"
        }
        PrivacyUnit::User { .. } => {
            ", and what many users have is published whatever it says, a name of one of them for example"
        }
    };
    Some(format!(
        "keys are found and published as they stand in {column}: a text that was published stays public for ever{by_whom}"
    ))
}

/// A standby acts when a window is due on the output already.
fn hasty_standby(settings: &WorkerSettings) -> Option<String> {
    let InputParams::Kafka(kafka) = &settings.input else {
        return None;
    };
    settings.ledger_log.as_ref()?;
    let StandbyRule {
        patience, drawing, ..
    } = settings.standby_times();
    // It waits, draws, claims, and publishes.
    let needed = kafka.clock_slack + patience + drawing + CLAIMING;
    let writing = settings.longest_drawing();
    if writing > patience / 2 {
        return Some(format!(
            "a window can take {} to compute, draw and write, and others wait {} (ledger.standby) for it: two workers may draw it, and one \
             of them in vain; give it at least twice that",
            format_duration(writing),
            format_duration(patience)
        ));
    }
    if needed <= settings.publish_delay {
        return None;
    }
    let writing = match writing {
        Duration::ZERO => String::new(),
        writing => format!(
            "{} to compute, draw and write a window, ",
            format_duration(writing)
        ),
    };
    Some(format!(
        "if the worker that acts dies, a standby publishes a window up to {} after its cutoff (input.kafka.clock_slack, \
         ledger.standby, {writing}and 1.5 seconds), and windows.publish_delay is {}: it is then late, for all to \
         see. That is of no consequence where only one worker runs",
        format_duration(needed),
        format_duration(settings.publish_delay)
    ))
}

/// A window can take longer to compute than the time until it is due.
fn slow_windows(settings: &WorkerSettings) -> Option<String> {
    let products = settings.window_products();
    let longest = settings.longest_computation();
    let delay = settings.publish_delay;
    let InputParams::Kafka(kafka) = &settings.input else {
        let longest = Duration::from_millis((products / (PRODUCTS_A_SECOND / 1000)).max(1));
        return (products > 0).then(|| {
            format!(
                "a window whose keys are all full can take {products} multiplications, some {} where {PRODUCTS_A_SECOND} take a \
                 second; windows of files are all due at once, so how long each took shows in when its synopses appear, and that \
                 shows something of the records",
                bernstream_synopsis::clock::format_duration(longest)
            )
        });
    };
    // Windows are computed one after the other, each from its cutoff on: what falls due then waits.
    let length = saturating_micros(settings.windows.grid.length()).max(1);
    let busy = kafka.clock_slack.saturating_add(longest);
    let falls_into = saturating_micros(delay) % length < saturating_micros(busy);
    (longest >= Duration::from_secs(1) && (longest > delay || falls_into)).then(|| {
        format!(
            "a window whose keys are all full can take {products} multiplications, some {} where {PRODUCTS_A_SECOND} take a \
             second, and is computed from its cutoff on; windows.publish_delay is {}: what falls due meanwhile is late, and that \
             shows something of the records",
            bernstream_synopsis::clock::format_duration(longest),
            bernstream_synopsis::clock::format_duration(delay)
        )
    })
}

fn misaligned_periods(settings: &WorkerSettings) -> Vec<String> {
    let PrivacyUnit::User {
        per: Period::Every(per),
        max_records_per_window: cap,
        ..
    } = &settings.privacy.unit
    else {
        return Vec::new();
    };
    let length = settings.windows.grid.length();
    let window = saturating_micros(length);
    let period = saturating_micros(*per);
    let shown_window = bernstream_synopsis::clock::format_duration(length);
    let shown_period = bernstream_synopsis::clock::format_duration(*per);
    if period % window == 0 {
        return Vec::new();
    }
    let straddled = format!(
        "windows of {shown_window} do not fill periods of {shown_period} evenly: a window that meets several periods \
         charges each of them its whole price"
    );
    if period >= window {
        return vec![straddled];
    }
    // A window that starts just before a border meets one period more than fit into it.
    let most = most_blocks(length, *per);
    let several = match cap {
        Some(cap) => format!(
            "a window is longer than a period: it meets up to {most} periods, a user may count with up to {} records in it, {cap} for each \
             period, and loses its price for each of them",
            u64::from(*cap).saturating_mul(most)
        ),
        None => format!(
            "a window is longer than a period: it meets up to {most} periods, the caps of counts by key hold for each of them, and a \
             user loses its price for each"
        ),
    };
    if window % period == 0 {
        vec![several]
    } else {
        vec![straddled, several]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USERS: &str = include_str!("../../../../config/users.toml");

    #[test]
    fn a_function_that_is_solved_for_is_noted_for_files_too() {
        let notes = |text: &str| {
            surprising_settings(&WorkerSettings::parse(text, "test").unwrap()).join("\n")
        };
        let late = include_str!("../../../../tests/data/late-logistic.toml");
        assert!(
            notes(late).contains("windows of files are all due at once"),
            "{}",
            notes(late)
        );
        let quick = include_str!("../../../../config/files.toml");
        assert!(!notes(quick).contains("due at once"), "{}", notes(quick));
    }

    #[test]
    fn what_it_takes_to_write_many_synopses_is_predicted_for_a_standby() {
        let standby = |keys: usize, standby: &str, delay: &str| {
            let values: Vec<String> = (0..keys).map(|key| format!("\"k{key}\"")).collect();
            let text = include_str!("../../../../tests/data/lattice.toml")
                .replace(
                    "values = [\"EWR\", \"JFK\", \"LGA\"]",
                    &format!("values = [{}]", values.join(", ")),
                )
                .replace(
                    "publish_delay = \"1m\"",
                    &format!("publish_delay = \"{delay}\""),
                )
                .replace("[windows]", "producer_delay = \"10s\"\n[windows]")
                .replace(
                    "[ledger]",
                    &format!(
                        "[ledger]\nlog = \"log\"\nkey_file = \"key\"\nstandby = \"{standby}\""
                    ),
                );
            let settings = WorkerSettings::parse(&text, "test").unwrap();
            (
                settings.standby_times().drawing,
                surprising_settings(&settings).join("\n"),
            )
        };
        // The slack is 10 s.
        let half = Duration::from_millis(500);
        assert_eq!(standby(3, "10s", "21500ms"), (half, String::new()));
        assert!(
            standby(3, "10s", "21499ms")
                .1
                .contains("ledger.standby, and 1.5 seconds")
        );
        let (drawing, note) = standby(400, "10s", "21500ms");
        assert_eq!(drawing, half + Duration::from_millis(1800));
        assert!(
            note.contains("1s 800ms to compute, draw and write a window"),
            "{note}"
        );
        assert_eq!(standby(400, "10s", "23300ms").1, "");
        let (_, note) = standby(400, "3s", "1m");
        assert!(
            note.contains(
                "a window can take 1s 800ms to compute, draw and write, and others wait 3s"
            ),
            "{note}"
        );
    }

    #[test]
    fn periods_shorter_than_a_window_have_caps_of_their_own() {
        let text = include_str!("../../../../config/active-users.toml")
            .replace("per = \"1d\"", "per = \"8h\"");
        let notes = surprising_settings(&WorkerSettings::parse(&text, "test").unwrap()).join("\n");
        assert!(
            notes.contains("up to 3 periods, the caps of counts by key hold for each of them"),
            "{notes}"
        );
        assert!(!notes.contains("records in it"), "{notes}");
    }

    #[test]
    fn windows_and_periods_that_do_not_fit_are_noted() {
        let notes = |per: &str| {
            let text = USERS.replace("per = \"1d\"", &format!("per = \"{per}\""));
            surprising_settings(&WorkerSettings::parse(&text, "test").unwrap()).join("\n")
        };
        assert_eq!(notes("1d"), "");
        assert_eq!(notes("1h"), "");
        assert!(notes("90m").contains("charges each of them its whole price"));
        assert!(!notes("90m").contains("longer than a period"));
        assert!(
            notes("30m").contains("meets up to 2 periods, a user may count with up to 40 records")
        );
        // 60 minutes over periods of 25 meet up to four: 5 + 25 + 25 + 5.
        assert_eq!(notes("ever"), "");
        assert!(
            notes("25m").contains("meets up to 4 periods, a user may count with up to 80 records")
        );
    }
}
