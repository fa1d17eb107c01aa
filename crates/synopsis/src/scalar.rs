//! Integers and numbers in text: the same law in every format.
//!
//! Programs write a column of integers of which one is missing as floats, `7.0` for 7. So an integer may be written like that too: if
//! it could not, one record without an id would take the ids of its neighbours along.

use serde::{Deserialize, Serialize};

/// The one type of a key or a user. Were both accepted, 1 and "1" would be one user in one form and two in another, with two caps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IdType {
    Text,
    Integer,
}

/// The bits of the significand of a float of 64, 32 and 16 bits.
pub const OF_DOUBLE: u32 = 53;
pub const OF_SINGLE: u32 = 24;
pub const OF_HALF: u32 = 11;

/// The integer that is written in its one form: no sign but `-`, no leading zero, no `-0`; from -2^63 to 2^64 - 1.
pub fn parse_integer(text: &str) -> Option<i128> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_one_form = match digits.as_bytes() {
        [b'0'] => text == "0",
        [first, rest @ ..] => {
            (b'1'..=b'9').contains(first) && rest.len() < 20 && rest.iter().all(u8::is_ascii_digit)
        }
        [] => false,
    };
    let within = i128::from(i64::MIN)..=i128::from(u64::MAX);
    if !is_one_form {
        return None;
    }
    let integer = text.parse().ok()?;
    within.contains(&integer).then_some(integer)
}

/// The longest text that is looked at for an integer, in bytes: a text may stand for many rows.
const LONGEST: usize = 64;

/// The integer in its one form at the beginning of a text, if nothing follows but a fraction of zeros. With a fraction it is the text
/// of a float, and must be an integer that no other one is rounded to.
pub fn integer_part(text: &str) -> Option<&str> {
    if text.len() > LONGEST {
        return None;
    }
    let Some((whole, fraction)) = text.split_once('.') else {
        return parse_integer(text).map(|_| text);
    };
    let is_zero = !fraction.is_empty() && fraction.bytes().all(|digit| digit == b'0');
    let is_exact = parse_integer(whole)?.unsigned_abs() < 1 << OF_DOUBLE;
    (is_zero && is_exact).then_some(whole)
}

/// The integer that a float is, if it is one and no other integer is rounded to it: its magnitude is below `2^bits`, where `bits` are
/// those of the float's significand. Minus zero is none, as in text.
pub fn integer_of(float: f64, bits: u32) -> Option<i128> {
    let is_minus_zero = float == 0.0 && float.is_sign_negative();
    let is_exact = float.fract() == 0.0 && float.abs() < (1_u64 << bits) as f64;
    (is_exact && !is_minus_zero).then_some(float as i128)
}

/// The nearest `f64` to the number that a text is by the grammar of JSON (RFC 8259, section 6); none beyond the largest.
pub fn parse_number(text: &str) -> Option<f64> {
    if !skip_number(text.as_bytes())?.is_empty() {
        return None;
    }
    let number: f64 = text.parse().ok()?;
    number.is_finite().then_some(number)
}

/// Returns the bytes after a number at the beginning; `None` where there is none.
fn skip_number(bytes: &[u8]) -> Option<&[u8]> {
    let mut rest = match bytes.strip_prefix(b"-").unwrap_or(bytes) {
        [b'0', rest @ ..] => rest,
        rest => skip_digits(rest)?,
    };
    if let [b'.', after @ ..] = rest {
        rest = skip_digits(after)?;
    }
    if let [b'e' | b'E', after @ ..] = rest {
        rest = skip_digits(match after {
            [b'+' | b'-', after @ ..] => after,
            after => after,
        })?;
    }
    Some(rest)
}

/// Returns the bytes after one or more digits at the beginning.
fn skip_digits(bytes: &[u8]) -> Option<&[u8]> {
    match bytes.iter().position(|byte| !byte.is_ascii_digit()) {
        Some(0) => None,
        Some(count) => bytes.get(count..),
        None if bytes.is_empty() => None,
        None => Some(&[]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_integer_has_one_form() {
        for (text, expected) in [
            ("0", Some(0)),
            ("-1", Some(-1)),
            ("42", Some(42)),
            ("18446744073709551615", Some(i128::from(u64::MAX))),
            ("-9223372036854775808", Some(i128::from(i64::MIN))),
        ] {
            assert_eq!(parse_integer(text), expected, "{text}");
            assert_eq!(integer_part(text), Some(text));
        }
        let others = [
            "",
            "-",
            "-0",
            "00",
            "02",
            "+2",
            " 2",
            "2 ",
            "2.0",
            "1e3",
            "18446744073709551616",
            "0x1",
            "\u{661}",
        ];
        assert_eq!(others.map(parse_integer), [None; 13]);
        assert_eq!(parse_integer("-9223372036854775809"), None);
        assert_eq!(parse_integer(&"9".repeat(1_000_000)), None);
    }

    #[test]
    fn an_integer_may_be_written_as_the_float_that_it_is() {
        for (text, expected) in [
            ("7.0", Some("7")),
            ("-7.00", Some("-7")),
            ("0.0", Some("0")),
            ("9007199254740991.0", Some("9007199254740991")),
        ] {
            assert_eq!(integer_part(text), expected, "{text}");
        }
        // 2^53 is what 2^53 + 1 is rounded to as well.
        let others = [
            "9007199254740992.0",
            "-0.0",
            "07.0",
            "7.",
            ".0",
            "7.5",
            "7.0e0",
            "7.0 ",
            "7.0.0",
            "-.0",
        ];
        assert_eq!(others.map(integer_part), [None; 10]);
        let long = format!("7.{}", "0".repeat(LONGEST - 2));
        assert_eq!(
            (integer_part(&long), integer_part(&format!("{long}0"))),
            (Some("7"), None)
        );
    }

    #[test]
    fn a_float_is_an_integer_where_no_other_integer_is_rounded_to_it() {
        let largest = (1_i64 << 53) - 1;
        for integer in [0, 1, -1, largest, -largest] {
            assert_eq!(
                integer_of(integer as f64, OF_DOUBLE),
                Some(i128::from(integer))
            );
        }
        for float in [
            largest as f64 + 1.0,
            -1e300,
            0.5,
            -0.0,
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
        ] {
            assert_eq!(integer_of(float, OF_DOUBLE), None, "{float}");
        }
        assert_eq!(
            integer_of(f64::from(16_777_215_f32), OF_SINGLE),
            Some(16_777_215)
        );
        assert_eq!(integer_of(f64::from(16_777_216_f32), OF_SINGLE), None);
        assert_eq!(
            [2047.0, 2048.0].map(|float| integer_of(float, OF_HALF)),
            [Some(2047), None]
        );
    }

    #[test]
    fn a_number_in_text_is_one_of_json() {
        for (text, expected) in [
            ("12.50", 12.5),
            ("-0", -0.0),
            ("1e3", 1000.0),
            ("2.5E-1", 0.25),
            ("0.1", 0.1),
        ] {
            assert_eq!(parse_number(text), Some(expected), "{text}");
        }
        let others = [
            "", "-", ".5", "5.", "01", "+1", "1e", "1e+", "NaN", "inf", "Infinity", " 1", "1 ",
            "1,5", "0x10", "1e999",
        ];
        for text in others {
            assert_eq!(parse_number(text), None, "{text}");
        }
    }
}
