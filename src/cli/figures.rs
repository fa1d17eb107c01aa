//! Numbers as people read them.

/// A figure to show: three significant digits, and plain where that is readable.
pub fn three_digits(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 {
        return "0".to_owned();
    }
    if !(1e-3..1e6).contains(&size) {
        return format!("{value:.2e}");
    }
    match size {
        100.0.. => format!("{value:.0}"),
        10.0.. => format!("{value:.1}"),
        1.0.. => format!("{value:.2}"),
        0.1.. => format!("{value:.3}"),
        0.01.. => format!("{value:.4}"),
        _ => format!("{value:.5}"),
    }
}

/// A count and what is counted: "1 window", "2 windows".
pub fn count_in_words(count: u64, one: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {one}{plural}")
}

/// Bytes as two digits each.
pub fn hexadecimal<'b>(bytes: impl IntoIterator<Item = &'b u8>) -> String {
    bytes
        .into_iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Numbers with a separator between two of them.
pub fn join_numbers<T: ToString>(numbers: impl IntoIterator<Item = T>, separator: &str) -> String {
    let numbers: Vec<String> = numbers
        .into_iter()
        .map(|number| number.to_string())
        .collect();
    numbers.join(separator)
}

/// Rounds to a hundredth of the noise or finer: further digits carry no information.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "from 0 to 17"
)]
pub fn above_noise(x: f64, half_width: f64) -> f64 {
    let decimals = (2.0 - half_width.log10().floor()).clamp(0.0, 17.0) as usize;
    // Zero has no sign.
    format!("{x:.decimals$}").parse().unwrap_or(x) + 0.0
}

/// Ten digits: further ones only show machine rounding.
pub fn ten_digits(x: f64) -> f64 {
    format!("{x:.9e}").parse().unwrap_or(x)
}

/// Two digits.
pub fn two_digits(x: f64) -> f64 {
    format!("{x:.1e}").parse().unwrap_or(x)
}

/// A number to show: nothing that is charged or drawn depends on it.
#[expect(clippy::cast_precision_loss, reason = "a figure to show")]
pub fn float(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits() {
        let shown = [0.0, 12.345, 0.012_345, 1234.5, 1.5e9, 2e-7].map(three_digits);
        assert_eq!(shown, ["0", "12.3", "0.0123", "1234", "1.50e9", "2.00e-7"]);
    }

    #[test]
    fn numbers_end_where_the_noise_begins() {
        for (x, half_width, shown) in [
            (62.664_487, 8.099, 62.66),
            (0.180_96, 0.0373, 0.181),
            (-1e-9, 0.5, 0.0),
            (123_456.7, 5e4, 123_457.0),
        ] {
            assert_eq!(above_noise(x, half_width).to_string(), shown.to_string());
        }
        assert_eq!(above_noise(0.1, 0.0), 0.1);
    }
}
