//! A curve with its band, drawn in characters.

use std::fmt::Write;

/// A point of a curve: the released value and its band.
#[derive(Clone, Copy, Debug)]
pub struct ChartPoint {
    pub x: f64,
    pub value: f64,
    pub half_width: f64,
}

/// Lines between two labels of the vertical axis.
const TICK: u32 = 4;

/// Draws `points`, one per column, from zero to above the top of the band: `*` for the curve, `:` for its band.
pub fn draw_curve(points: &[ChartPoint], rows: u32) -> String {
    let top = points
        .iter()
        .map(|p| p.value + p.half_width)
        .fold(f64::MIN_POSITIVE, f64::max);
    let step = round_up(top * f64::from(TICK) / f64::from(rows)) / f64::from(TICK);
    let mut text = String::new();
    for row in (0..rows).rev() {
        let low = f64::from(row) * step;
        let high = f64::from(row + 1) * step;
        let label = if (row + 1) % TICK == 0 {
            format!("{:>10}", axis_label(high))
        } else {
            " ".repeat(10)
        };
        let line: String = points
            .iter()
            .map(|point| mark_of_point(point, low, high))
            .collect();
        let _ = writeln!(text, "{label} |{}", line.trim_end());
    }
    let _ = writeln!(text, "{:>10} +{}", 0, "-".repeat(points.len()));
    if let (Some(first), Some(last)) = (points.first(), points.last()) {
        let left = format!("{}", first.x);
        let _ = writeln!(
            text,
            "{:>12}{left}{:>width$}",
            "",
            last.x,
            width = points.len().saturating_sub(left.len())
        );
    }
    text
}

/// The next round number: 1, 1.2, 1.5, 2 and so on, times a power of ten.
fn round_up(x: f64) -> f64 {
    let power = 10_f64.powf(x.log10().floor());
    let round = [1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0]
        .into_iter()
        .find(|round| round * power >= x);
    round.unwrap_or(10.0) * power
}

/// Without rounding artefacts.
fn axis_label(x: f64) -> String {
    format!("{x:.3e}")
        .parse::<f64>()
        .map_or_else(|_| x.to_string(), |x| x.to_string())
}

fn mark_of_point(point: &ChartPoint, low: f64, high: f64) -> char {
    let value = point.value.max(0.0);
    if value >= low && value < high {
        '*'
    } else if point.value + point.half_width > low && point.value - point.half_width < high {
        ':'
    } else {
        ' '
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_axis_has_round_labels_and_holds_the_band() {
        let point = |value: f64| ChartPoint {
            x: value,
            value,
            half_width: 2.3,
        };
        let text = draw_curve(&[point(0.0), point(395.7)], 12);
        let labels: Vec<&str> = text
            .lines()
            .filter_map(|line| line.split_once(" |"))
            .map(|(l, _)| l.trim())
            .collect();
        assert_eq!(
            labels,
            ["450", "", "", "", "300", "", "", "", "150", "", "", ""]
        );
        assert!(
            text.lines()
                .next()
                .is_some_and(|line| !line.contains(['*', ':'])),
            "{text}"
        );
        assert!(
            text.lines().nth(1).is_some_and(|line| line.ends_with(" *")),
            "{text}"
        );
        assert_eq!(
            [0.003, 1.0, 1.21, 9.0].map(round_up),
            [0.003, 1.0, 1.5, 10.0]
        );
    }
}
