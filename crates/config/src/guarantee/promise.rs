//! The guarantee: the unit of privacy, the definition, the prices and how they compose.

use crate::guarantee::price;
use crate::guarantee::price::policy_sentence;
use crate::guarantee::{definition, windows};
use crate::settings::{Period, PrivacyUnit, ReleaseSettings, WindowKind, WorkerSettings};
use bernstream_synopsis::calibrate::Epsilon;
use bernstream_synopsis::description::{KeyedCounts, PrivacyDefinition, ValueBounds};
use bernstream_synopsis::price::Price;

/// The guarantee, one sentence a line: the unit of privacy, the definition, the prices and how they compose.
pub fn promise_lines(settings: &WorkerSettings) -> Vec<String> {
    let total = settings.privacy.total;
    let price = settings.window_price();
    let mut lines = match &settings.privacy.definition {
        PrivacyDefinition::Random(random) => definition::random_guarantee(settings, random),
        _ => definition::plain_guarantee(settings),
    };
    let keys = of_all_keys(settings);
    if settings
        .releases
        .iter()
        .all(ReleaseSettings::has_fixed_price)
    {
        lines.push(format!("A window costs {price}{keys}."));
    } else {
        lines.push(format!(
            "What a window costs{keys} follows from how many windows met its block before; the first costs {price}."
        ));
    }
    if let Some(budget) = &settings.privacy.budget {
        lines.push(format!(
            "The total of this pipeline is {} of the whole total of the input, {}, which all pipelines with a share in the budget topic {} keep together.",
            budget.share, budget.whole, budget.topic
        ));
    }
    if settings.privacy.spendable_limit() != total {
        let limit = settings.privacy.spendable_limit();
        lines.push(format!(
            "Windows spend {limit} of a block at most; nothing spends the rest."
        ));
    }
    for release in &settings.releases {
        lines.extend(release_lines(settings, release));
        lines.extend(windows::overlap_sentence(
            release,
            settings.windows.grid.length(),
        ));
    }
    lines.extend(composition_lines(settings));
    lines
}

/// Words for what a price covers where there are several keys: a user is in several of a table by key, and their caps bound how many.
fn of_all_keys(settings: &WorkerSettings) -> &'static str {
    let has_tables = settings
        .releases
        .iter()
        .any(|release| release.function.keyed_counts().is_some());
    match settings.key_count() {
        0 | 1 => "",
        _ if has_tables => " for all its keys together",
        _ => " for all its keys together, because keys partition the records",
    }
}

/// Sentences about how the prices of windows add up, and what a cap is for.
fn composition_lines(settings: &WorkerSettings) -> Vec<String> {
    let total = settings.privacy.total;
    let mut lines = Vec::new();
    match &settings.privacy.unit {
        PrivacyUnit::Record if settings.releases.iter().all(|release| release.window_kind == WindowKind::Tumbling) => {
            lines.push("A record lies in one window, so windows do not add up (parallel composition).".to_owned())
        }
        PrivacyUnit::Record => lines.push(format!(
            "{} A record lies in one window of [windows], so windows do not add up (parallel composition) but where one pays for \
             several releases, or several times.",
            match settings.total_window_price() {
                Some(all) => format!("In all a window is charged {all}."),
                None => format!("{total} does not pay for all the releases that cover a window: some are not published."),
            }
        )),
        PrivacyUnit::User { per, max_records_per_window, .. } => {
            let unit = match per {
                Period::Ever => {
                    lines.push(format!(
                        "All windows add up (sequential composition), forever; a window that would take the sum over {total} is \
                         not published."
                    ));
                    "a user"
                }
                Period::Every(_) => {
                    lines.push(format!(
                        "The windows of a period add up (sequential composition); a window that would take its period over \
                         {total} is not published."
                    ));
                    "a user and period"
                }
            };
            if let Some(most) = max_records_per_window {
                lines.push(format!(
                    "At most {most} records of {unit} count in {}, over all keys; which ones depends on that \
                     user's records alone.",
                    capped_window(settings)
                ));
            }
            lines.extend(user_weight_lines(settings));
            lines.extend(key_cap_lines(settings, unit));
        }
    }
    lines.extend(found_key_lines(settings));
    lines
}

/// Sentences about keys that nobody listed.
fn found_key_lines(settings: &WorkerSettings) -> Vec<String> {
    let (Some(_), Some(release)) = (&settings.found_keys, settings.releases.first()) else {
        return Vec::new();
    };
    let Ok(Some(search)) = settings.key_search(release) else {
        return Vec::new();
    };
    let column = settings.columns.key.join(" and ");
    let delta = search.selection_delta();
    let unit = match settings.privacy.unit {
        PrivacyUnit::Record => "one record alone has",
        PrivacyUnit::User { .. } => "one user alone has",
    };
    let mut lines = vec![format!(
        "Keys ({column}) are found privately: one that {unit} is named by a window with a probability of at most {delta}, which is part of \
         its price; what several windows of a period do so adds up. A key that was found is published by every window from the next one on, \
         whatever its number is then, until it has not been above the threshold for a while or others fill the table: that follows from \
         published numbers alone."
    )];
    if let Some(test) = search.overfull_test() {
        lines.push(format!(
            "A thousandth of the epsilon and 0.000000000001 of the delta pay for a test whether a window has too many different keys, \
             between {} and {}, to look for any: it then publishes that alone.",
            test.soft_limit(),
            test.limit()
        ));
    }
    lines
}

/// Sentences about the caps of releases that count by key.
fn key_cap_lines(settings: &WorkerSettings, unit: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for release in &settings.releases {
        if let Some(counts) = release.function.keyed_counts() {
            let caps = key_caps_in_words(counts, &settings.columns.key);
            lines.push(format!("In the release {:?} {unit} {caps}.", release.name));
        }
    }
    lines
}

/// Sentences about releases to which a user counts as much as one record.
fn user_weight_lines(settings: &WorkerSettings) -> Vec<String> {
    let mut lines = Vec::new();
    for release in &settings.releases {
        if release.is_user_weighted() {
            lines.push(format!(
                "In the release {:?} these records weigh as much as one together, and the noise covers one.",
                release.name
            ));
        }
    }
    lines
}

/// Predicate of a sentence: how much of a unit counts by key.
fn key_caps_in_words(counts: &KeyedCounts, columns: &[String]) -> String {
    let has_keys = !columns.is_empty();
    let mut caps = match (counts.max_keys, has_keys) {
        (_, false) => "counts in a window".to_owned(),
        (1, true) => "counts in at most one key of a window".to_owned(),
        (most, true) => format!("counts in at most {most} keys of a window"),
    };
    if columns.len() > 1 {
        caps += &format!(" (each combination of {} is a key)", columns.join(" and "));
    }
    let place = if has_keys { " in each" } else { "" };
    match counts.max_records {
        Some(1) => caps += &format!(", as one record{place}"),
        Some(most) => caps += &format!(", with at most {most} records{place}"),
        None => {}
    }
    if counts.quantiles.is_some() && counts.max_records.is_none() {
        caps += &format!(", with the mean of its values{place}");
    }
    if let Some(ValueBounds { min, max }) = counts.per_user {
        caps += &format!(", with a sum from {min} to {max}{place}");
    }
    if has_keys {
        caps += "; which keys count is a random choice that depends on that user alone";
    }
    caps
}

/// The windows that a cap is for: of several releases each can take rows that another one drops.
fn capped_window(settings: &WorkerSettings) -> &'static str {
    if settings.releases.len() > 1 {
        "a window of each release"
    } else {
        "a window"
    }
}

/// The price of one release, what it pays for apart from its noise, and what is unusual about it.
fn release_lines(settings: &WorkerSettings, release: &ReleaseSettings) -> Vec<String> {
    let total = settings.privacy.total;
    let name = &release.name;
    let mut lines = Vec::new();
    if !release.has_fixed_price() {
        let prices = policy_sentence(release.policy);
        lines.push(format!("The release {name:?} costs {prices}."));
    } else if settings.releases.len() > 1
        && let Some(price) = release.policy.window_price(0)
        && !price.is_zero()
    {
        lines.push(format!("Of that, {price} pays for the release {name:?}."));
    }
    if settings.privacy.definition == PrivacyDefinition::Planned {
        let own = release.payment.mechanism_price();
        lines.push(format!(
            "The noise of the release {name:?} is declared at {own}."
        ));
    }
    // The noise of a sum is not that of a window of its own.
    if !release.is_sum_of_panes() {
        lines.extend(price::pure_noise_sentence(release));
    }
    if let Some(choice) = &release.private_bandwidths {
        lines.extend(choice_line(total, "bandwidths", choice.price));
    }
    if let Some(choice) = &release.private_order {
        lines.extend(choice_line(total, "order", choice.price));
    }
    if let Ok(calibrated) = settings.calibration_shown(release, &release.function) {
        lines.extend(calibrated.remark_for_people());
    }
    lines
}

/// The price of a private choice. `None` in a declared plan: what a window of it chooses was declared with the plan.
fn choice_line(total: Price, choice: &str, epsilon: Epsilon) -> Option<String> {
    let paid = total.of_pure(epsilon)?;
    let pure = if matches!(total, Price::Concentrated(_)) {
        format!(", of pure differential privacy with epsilon = {epsilon}")
    } else {
        String::new()
    };
    Some(format!(
        "Of that, {paid} pays for the choice of the {choice}{pure}, which each window and key makes from its own records."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const USERS: &str = include_str!("../../../../config/users.toml");

    #[test]
    fn counts_by_key_say_what_of_a_user_counts() {
        let promise =
            |text: &str| promise_lines(&WorkerSettings::parse(text, "test").unwrap()).join(" ");
        let active = include_str!("../../../../config/active-users.toml");
        let said = promise(active);
        for words in [
            "A window costs 1 for all its keys together. ",
            "In the release \"active-users\" a user and period counts in at most one key of a window; which keys count is a random choice that \
             depends on that user alone.",
        ] {
            assert!(said.contains(words), "{said}");
        }
        let visits = active.replace(
            "of = [\"users\"]\nmax_keys = 1",
            "of = [\"records\"]\nmax_keys = 2\nmax_records = 4",
        );
        assert!(
            promise(&visits).contains(
                "counts in at most 2 keys of a window, with at most 4 records in each; which"
            ),
            "{}",
            promise(&visits)
        );
        let revenue = promise(include_str!("../../../../config/revenue.toml"));
        assert!(
            revenue.contains("3 keys of a window, with a sum from 0 to 300 in each; which"),
            "{revenue}"
        );
        let mut lines = visits.lines().collect::<Vec<_>>();
        lines.retain(|line| !line.starts_with("key = ") && !line.starts_with("max_keys"));
        let all = promise(&lines.join("\n"));
        assert!(
            all.contains("A window costs 1. ")
                && all.contains("counts in a window, with at most 4 records."),
            "{all}"
        );
    }

    #[test]
    fn every_kind_of_budget_says_what_it_means() {
        let promise = |total: &str, price: &str| {
            let text = USERS
                .replace("epsilon = 1.0", total)
                .replace("epsilon = 0.04", price);
            promise_lines(&WorkerSettings::parse(&text, "test").unwrap()).join(" ")
        };
        let said = promise("epsilon = 1.0\ndelta = 1e-7", "epsilon = 0.04");
        for words in [
            "to at most exp(1) times as much plus 0.0000001",
            "A window costs (epsilon 0.04, delta 0)",
        ] {
            assert!(
                said.starts_with("All records of one user") && said.contains(words),
                "{said}"
            );
        }
        assert!(!said.contains("makes no use of the delta"), "{said}");
        let said = promise("rho = 0.5", "epsilon = 0.04");
        // By a search over the orders of [CKS20, corollary 13]: 5.22153... and 6.47407...
        for words in [
            "Renyi divergence of at most 0.5 a",
            "epsilon = 5.222 at delta = 1e-6, or 6.475 at delta = 1e-9",
        ] {
            assert!(said.contains(words), "{said}");
        }
        assert!(
            said.contains("A window costs rho 0.00078943")
                && said.contains("epsilon = 0.04, which costs"),
            "{said}"
        );
    }

    #[test]
    fn every_promise_names_its_unit_and_its_total() {
        let promise =
            |text: &str| promise_lines(&WorkerSettings::parse(text, "test").unwrap()).join(" ");
        let flights = include_str!("../../../../tests/data/lattice.toml");
        let ever = USERS.replace("per = \"1d\"", "per = \"ever\"");
        let replaced = flights.replace(
            "\"add_remove\"",
            "{ replace_one = { records_per_window = 9 } }",
        );
        for (text, unit) in [
            (flights, "One record more or less"),
            (replaced.as_str(), "Other values in one record"),
            (
                USERS,
                "All records of one user (user_id) in one period of 1d more or less",
            ),
            (
                ever.as_str(),
                "All records of one user (user_id) more or less, whenever they were sent, change",
            ),
        ] {
            let said = promise(text);
            assert!(
                said.starts_with(unit) && said.contains("epsilon = 1."),
                "{said}"
            );
            let is_replaced = unit.starts_with("Other values");
            assert_eq!(
                said.contains("null, not a number, outside a domain that drops"),
                is_replaced,
                "{said}"
            );
        }
    }

    #[test]
    fn a_cap_is_one_of_each_release() {
        let said =
            |text: &str| promise_lines(&WorkerSettings::parse(text, "test").unwrap()).join(" ");
        assert!(said(USERS).contains("count in a window, over all keys"));
        let (head, rest) = USERS.split_once("[release]").unwrap();
        let (release, tail) = rest.split_once("[output.kafka]").unwrap();
        let other = release.replace("response-time", "other");
        let both = format!("{head}[[release]]{release}[[release]]{other}[output.kafka]{tail}");
        // Each has rows of its own that it can use.
        assert!(
            said(&both).contains("count in a window of each release, over all keys"),
            "{}",
            said(&both)
        );
    }
}
