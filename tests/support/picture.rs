//! A curve with its band beside the exact one, as SVG.

use std::fmt::Write;
use std::fs;
use std::path::Path;

/// One point of the comparison.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    pub x: f64,
    pub released: f64,
    /// What would be released without noise.
    pub noiseless: f64,
    pub half_width: f64,
    pub exact: f64,
}

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 60.0;
const BOTTOM: f64 = 50.0;
const MARGIN: f64 = 20.0;

/// Draws `samples`: the band grey-blue, the released curve blue, the exact one dark and dashed.
pub fn draw(path: &Path, samples: &[Sample], x_label: &str, y_label: &str) {
    let (first, last) = (samples.first().expect("a sample").x, samples.last().expect("a sample").x);
    let top = samples.iter().map(|s| s.released + s.half_width).fold(0.0, f64::max);
    let low = samples.iter().map(|s| s.released - s.half_width).fold(0.0, f64::min);
    let across = |x: f64| LEFT + (x - first) / (last - first) * (WIDTH - LEFT - MARGIN);
    let down = |y: f64| HEIGHT - BOTTOM - (y - low) / (top - low) * (HEIGHT - BOTTOM - MARGIN);
    let points = |value: &dyn Fn(&Sample) -> f64| {
        samples.iter().map(|s| format!("{:.1},{:.1}", across(s.x), down(value(s)))).collect::<Vec<_>>()
    };
    let mut band = points(&|s| s.released + s.half_width);
    band.extend(points(&|s| s.released - s.half_width).into_iter().rev());

    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"13\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n"
    );
    for tick in 0..=6 {
        let x = first + (last - first) * f64::from(tick) / 6.0;
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#555\">{x:.0}</text>",
            across(x),
            HEIGHT - BOTTOM + 18.0
        );
    }
    for tick in 0..=4 {
        let y = top * f64::from(tick) / 4.0;
        let _ = writeln!(
            svg,
            "<line x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"#e4e4e4\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#555\">{y:.1}</text>",
            WIDTH - MARGIN,
            LEFT - 8.0,
            down(y) + 4.0,
            at = down(y),
        );
    }
    let _ = write!(
        svg,
        "<polygon points=\"{}\" fill=\"#2b6cb0\" fill-opacity=\"0.18\"/>\n\
         <polyline points=\"{}\" fill=\"none\" stroke=\"#444\" stroke-width=\"1.5\" stroke-dasharray=\"5 4\"/>\n\
         <polyline points=\"{}\" fill=\"none\" stroke=\"#2b6cb0\" stroke-width=\"2.5\"/>\n\
         <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#333\">{x_label}</text>\n\
         <text transform=\"translate(16 {:.1}) rotate(-90)\" text-anchor=\"middle\" fill=\"#333\">{y_label}</text>\n\
         </svg>\n",
        band.join(" "),
        points(&|s| s.exact).join(" "),
        points(&|s| s.released).join(" "),
        (LEFT + WIDTH - MARGIN) / 2.0,
        HEIGHT - 10.0,
        (HEIGHT - BOTTOM) / 2.0,
    );
    fs::write(path, svg).expect("the picture is written");
}
