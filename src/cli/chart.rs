//! A curve with its band, drawn in characters.

use std::fmt::Write;

/// A point of a curve: the released value and its band.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    pub x: f64,
    pub value: f64,
    pub half_width: f64,
}

/// Draws `points`, one a column, between zero and the top of the band: `*` the curve, `:` its band.
pub fn draw(points: &[Point], rows: u32) -> String {
    let top = points.iter().map(|p| p.value + p.half_width).fold(f64::MIN_POSITIVE, f64::max);
    let step = top / f64::from(rows);
    let mut text = String::new();
    for row in (0..rows).rev() {
        let (low, high) = (f64::from(row) * step, f64::from(row + 1) * step);
        let label = if row % 4 == 3 { format!("{high:>10.4}") } else { " ".repeat(10) };
        let line: String = points.iter().map(|point| mark(point, low, high)).collect();
        let _ = writeln!(text, "{label} |{}", line.trim_end());
    }
    let _ = writeln!(text, "{:>10} +{}", 0, "-".repeat(points.len()));
    if let (Some(first), Some(last)) = (points.first(), points.last()) {
        let left = format!("{}", first.x);
        let _ = writeln!(text, "{:>12}{left}{:>width$}", "", last.x, width = points.len().saturating_sub(left.len()));
    }
    text
}

fn mark(point: &Point, low: f64, high: f64) -> char {
    let value = point.value.max(0.0);
    if value >= low && value < high {
        '*'
    } else if point.value + point.half_width > low && point.value - point.half_width < high {
        ':'
    } else {
        ' '
    }
}
