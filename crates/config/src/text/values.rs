//! Parsers of single values. Each returns what is wrong, in words, where it refuses a value.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use humantime::DurationError;
use schemars::JsonSchema;
use serde::Deserialize;
use toml::value::Datetime;

use crate::settings::Period;
use bernstream_kafka as kafka;
use bernstream_synopsis::Fraction;
use bernstream_synopsis::calibrate::{Delta, Epsilon, Rho};
use bernstream_synopsis::clock::Timestamp;

/// The longest name that Kafka accepts for a topic.
const LONGEST_NAME: usize = 249;

/// Far above any meaningful price, and far below the maximum of [`Epsilon`] and [`Rho`].
const LARGEST_PRICE: f64 = 1000.0;

/// A name that Kafka accepts for a topic, so that it can be part of topics, keys and file names.
pub fn name(text: String) -> Result<String, String> {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
    if text.is_empty() {
        return Err("must not be empty".to_owned());
    }
    if text.len() > LONGEST_NAME {
        return Err(format!(
            "has {} characters, a name has at most {LONGEST_NAME}",
            text.len()
        ));
    }
    match text.chars().find(|c| !is_safe(*c)) {
        Some(c) => Err(format!(
            "a name has only letters, digits, `.`, `_` and `-`, not {c:?}"
        )),
        None if text == "." || text == ".." => Err("`.` and `..` cannot be names".to_owned()),
        None => Ok(text),
    }
}

/// A time, as a string or as a TOML date-time.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(with = "String")]
pub enum Time {
    Datetime(Datetime),
    Text(String),
}

/// Text that is not blank.
pub fn words(text: String) -> Result<String, String> {
    if text.trim().is_empty() {
        Err("must not be empty".to_owned())
    } else {
        Ok(text)
    }
}

fn why(error: &DurationError) -> String {
    match error {
        DurationError::UnknownUnit { unit, .. } if unit.is_empty() => {
            "it has a number without a unit".to_owned()
        }
        DurationError::UnknownUnit { unit, .. } => {
            format!("unknown unit {unit:?}, use s, m, h or d")
        }
        DurationError::NumberOverflow => "it is too long".to_owned(),
        _ => "it is not a number with a unit".to_owned(),
    }
}

/// A duration, zero allowed. Months and years are refused, because their lengths vary.
pub fn duration(text: String) -> Result<Duration, String> {
    let vague = ["M", "month", "months", "y", "yr", "yrs", "year", "years"];
    if text
        .split(|c: char| !c.is_ascii_alphabetic())
        .any(|unit| vague.contains(&unit))
    {
        return Err("months and years differ in length: use days".to_owned());
    }
    let span = humantime::parse_duration(&text)
        .map_err(|error| format!("not a duration: {}", why(&error)))?;
    if span.subsec_nanos() % 1000 != 0 {
        return Err("must be a whole number of microseconds".to_owned());
    }
    if i64::try_from(span.as_micros()).is_err() {
        return Err("too long".to_owned());
    }
    Ok(span)
}

/// A duration longer than zero.
pub fn positive_duration(text: String) -> Result<Duration, String> {
    let span = duration(text)?;
    if span.is_zero() {
        Err("must be longer than zero".to_owned())
    } else {
        Ok(span)
    }
}

/// How long all records of a user form one privacy unit.
pub fn period(text: String) -> Result<Period, String> {
    if text == "ever" {
        Ok(Period::Ever)
    } else {
        positive_duration(text).map(Period::Every)
    }
}

/// A point in time.
pub fn time(written: Time) -> Result<Timestamp, String> {
    let text = match written {
        Time::Datetime(time) => time.to_string(),
        Time::Text(text) => text,
    };
    Timestamp::parse(&text).ok_or_else(|| format!("{text:?} is not a time with a UTC offset"))
}

/// A price or total, exact: the shortest decimal that reads back as the same number.
pub fn epsilon(number: f64) -> Result<Epsilon, String> {
    amount(number)?
        .parse()
        .map_err(|_| format!("{number} has more than 12 decimals"))
}

/// As [`epsilon`].
pub fn rho(number: f64) -> Result<Rho, String> {
    amount(number)?
        .parse()
        .map_err(|_| format!("{number} has more than 12 decimals"))
}

/// As [`epsilon`], below 1.
pub fn delta(number: f64) -> Result<Delta, String> {
    let decimal = amount(number)?;
    if number >= 1.0 {
        return Err(format!("{number} gives no privacy: must be below 1"));
    }
    decimal
        .parse()
        .map_err(|_| format!("{number} has more than 18 decimals"))
}

/// A fraction to be held in reserve: less than the whole.
pub fn reserve(number: f64) -> Result<Fraction, String> {
    if !(0.0..1.0).contains(&number) {
        return Err("must be at least 0 and below 1".to_owned());
    }
    fraction(number)
}

/// A fraction above zero.
pub fn share(number: f64) -> Result<Fraction, String> {
    if !(number > 0.0 && number <= 1.0) {
        return Err("must be above 0 and at most 1".to_owned());
    }
    fraction(number)
}

/// Exact: at most six decimals.
fn fraction(number: f64) -> Result<Fraction, String> {
    let more = || format!("{number} has more than 6 decimals");
    let units: Epsilon = number.to_string().parse().map_err(|_| more())?;
    let whole = units.trillionths().is_multiple_of(1_000_000);
    let millionths = u32::try_from(units.trillionths() / 1_000_000)
        .ok()
        .filter(|_| whole);
    millionths
        .and_then(Fraction::from_millionths)
        .ok_or_else(more)
}

/// The decimal of a number that can be a price.
fn amount(number: f64) -> Result<String, String> {
    if !number.is_finite() {
        return Err(format!("{number} is not a price"));
    }
    if number <= 0.0 {
        return Err("must be above 0".to_owned());
    }
    if number > LARGEST_PRICE {
        return Err(format!(
            "{number} gives no meaningful privacy: must be at most {LARGEST_PRICE}"
        ));
    }
    Ok(number.to_string())
}

/// A number that is neither NaN nor infinite.
pub fn finite(number: f64) -> Result<f64, String> {
    if number.is_finite() {
        Ok(number)
    } else {
        Err(format!("{number} is not a finite number"))
    }
}

/// A number above zero.
pub fn positive(number: f64) -> Result<f64, String> {
    if number > 0.0 && number.is_finite() {
        Ok(number)
    } else {
        Err("must be a number above 0".to_owned())
    }
}

/// A whole number of at least one.
pub fn count<N: Copy + PartialEq + Default>(number: N) -> Result<N, String> {
    if number == N::default() {
        Err("must be at least 1".to_owned())
    } else {
        Ok(number)
    }
}

/// The addresses of a cluster.
pub fn brokers(text: String) -> Result<String, String> {
    kafka::addresses(&text)
}

/// An address to listen at.
///
/// # Errors
///
/// If it is not an address with a port.
pub fn socket_address(text: &str) -> Result<SocketAddr, String> {
    let here = text
        .strip_prefix("localhost:")
        .map(|port| format!("{}:{port}", Ipv4Addr::LOCALHOST));
    here.as_deref()
        .unwrap_or(text)
        .parse()
        .map_err(|_| format!("{text:?} is not an address and a port"))
}

/// The name of a host as browsers send it, without the port.
///
/// # Errors
///
/// If it is not one.
pub fn host(name: &str) -> Result<String, String> {
    match !name.is_empty()
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-._".contains(c))
    {
        true => Ok(name.to_owned()),
        false => Err(format!("{name:?} is not the name of a host")),
    }
}

/// A partition number of Kafka.
pub fn partition(number: u32) -> Result<i32, String> {
    number
        .try_into()
        .map_err(|_| "too large for a partition number".to_owned())
}

/// An offset of Kafka.
pub fn offset(number: u64) -> Result<i64, String> {
    number
        .try_into()
        .map_err(|_| "too large for an offset".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_is_exactly_what_was_written() {
        for (written, meant) in [
            (0.1, 100_000_000_000),
            (1.0, 1_000_000_000_000),
            (1e-12, 1),
            (0.3, 300_000_000_000),
        ] {
            assert_eq!(epsilon(written).unwrap().trillionths(), meant);
        }
        // Not 0.3: ten of these would not add up to 3.
        assert!(epsilon(0.1 + 0.2).is_err());
        for wrong in [0.0, -0.0, -1.0, f64::NAN, f64::INFINITY, 1e-13, 1e30] {
            assert!(epsilon(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_delta_is_below_1_and_finer_than_an_epsilon() {
        for (written, meant) in [
            (1e-18, 1),
            (1e-9, 1_000_000_000),
            (0.1, 100_000_000_000_000_000),
        ] {
            assert_eq!(delta(written).unwrap().quintillionths(), meant);
        }
        for wrong in [0.0, -1e-9, 1.0, 2.0, f64::NAN, f64::INFINITY, 1e-19] {
            assert!(delta(wrong).is_err(), "{wrong}");
        }
        assert_eq!(rho(0.005).unwrap().trillionths(), 5_000_000_000);
        assert!(rho(1e-13).is_err() && rho(1001.0).is_err());
    }

    #[test]
    fn months_and_years_are_no_durations() {
        for vague in ["1M", "1month", "2 years", "1d 1y"] {
            assert!(
                duration(vague.to_owned())
                    .unwrap_err()
                    .contains("differ in length"),
                "{vague}"
            );
        }
        assert_eq!(
            duration("1day 2h".to_owned()).unwrap(),
            Duration::from_secs(26 * 3600)
        );
        assert_eq!(duration("0s".to_owned()).unwrap(), Duration::ZERO);
        assert!(duration("100ns".to_owned()).is_err());
        assert!(duration("1500000years".to_owned()).is_err());
    }

    #[test]
    fn a_name_is_one_that_kafka_takes() {
        assert!(name("a.B-9_".to_owned()).is_ok());
        assert!(name("x".repeat(249)).is_ok());
        for wrong in ["", "a b", ".", "..", "a/b", "\u{e4}"] {
            assert!(name(wrong.to_owned()).is_err(), "{wrong}");
        }
        assert!(name("x".repeat(250)).is_err());
    }
}
