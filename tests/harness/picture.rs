//! Pictures of functions as SVG: panels side by side, each with its layers from the back to the front.

use std::ops::Range;
use std::path::{Path, PathBuf};

use plotters::element::DashedPathElement;
use plotters::prelude::*;

/// One chart.
pub struct Panel {
    pub title: &'static str,
    pub x: Axis,
    pub y: Axis,
    pub legend: SeriesLabelPosition,
    pub layers: Vec<Layer>,
}

#[derive(Clone, Debug)]
pub struct Axis {
    pub label: &'static str,
    pub range: Range<f64>,
    pub is_logarithmic: bool,
}

/// What is drawn. A name goes into the legend; `""` stays out of it.
#[derive(Debug)]
pub enum Layer {
    Line {
        name: String,
        color: RGBColor,
        is_dashed: bool,
        points: Vec<(f64, f64)>,
    },
    /// `(x, low, high)`.
    Band {
        color: RGBColor,
        points: Vec<(f64, f64, f64)>,
    },
    Dots {
        name: String,
        color: RGBColor,
        points: Vec<(f64, f64)>,
    },
    /// Where a function is positive; values on an even grid over the panel, rows from the bottom to the top.
    Region {
        color: RGBColor,
        values: Vec<Vec<f64>>,
    },
    /// Where it is zero.
    Boundary {
        name: String,
        color: RGBColor,
        values: Vec<Vec<f64>>,
    },
}

pub const DARK: RGBColor = RGBColor(68, 68, 68);
pub const GREY: RGBColor = RGBColor(150, 150, 150);
pub const SKY: RGBColor = RGBColor(43, 108, 176);
pub const BRICK: RGBColor = RGBColor(192, 66, 33);
pub const GREEN: RGBColor = RGBColor(47, 133, 90);
/// Sizes of a panel.
pub const WIDE: (u32, u32) = (620, 440);
pub const SQUARE: (u32, u32) = (460, 470);
/// Drawn this much larger, and shown at its size: plotters rounds to whole pixels, which makes stairs of curves.
const GRAIN: u32 = 8;

impl Axis {
    pub fn new(label: &'static str, range: Range<f64>) -> Self {
        Axis {
            label,
            range,
            is_logarithmic: false,
        }
    }

    fn place(&self, value: f64) -> f64 {
        if self.is_logarithmic {
            value.log10()
        } else {
            value
        }
    }

    fn places(&self) -> Range<f64> {
        self.place(self.range.start)..self.place(self.range.end)
    }

    fn tick(&self, place: f64) -> String {
        let value = if self.is_logarithmic {
            10_f64.powf(place)
        } else {
            place
        };
        // As many digits as two neighbouring ticks need.
        let step = if self.is_logarithmic {
            value
        } else {
            (self.range.end - self.range.start) / 5.0
        };
        let digits = (1.3 - step.log10()).floor().clamp(0.0, 6.0) as usize;
        let text = format!("{value:.digits$}");
        if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        } else {
            text
        }
    }
}

impl Panel {
    /// A point of the unit square on an even panel.
    fn inside(&self, (x, y): (f64, f64)) -> (f64, f64) {
        let along = |range: &Range<f64>, t: f64| range.start + t * (range.end - range.start);
        self.at((along(&self.x.range, x), along(&self.y.range, y)))
    }

    fn at(&self, (x, y): (f64, f64)) -> (f64, f64) {
        (self.x.place(x), self.y.place(y))
    }
}

/// Where pictures and tables go.
pub fn output(name: &str) -> PathBuf {
    let folder = Path::new("target");
    std::fs::create_dir_all(folder).expect("a folder");
    folder.join(name)
}

/// Draws the panels from left to right, then the next row.
#[allow(clippy::too_many_lines, reason = "one picture")]
pub fn draw(path: &Path, columns: usize, (width, height): (u32, u32), panels: &[Panel]) {
    let rows = panels.len().div_ceil(columns);
    let width = width * columns as u32;
    let height = height * rows as u32;
    let size = (width * GRAIN, height * GRAIN);
    let font = |size: u32| ("sans-serif", size * GRAIN, &DARK);
    let heading = ("sans-serif", 17 * GRAIN).into_font().color(&DARK);
    let line = |color: RGBColor| color.stroke_width(2 * GRAIN);
    let grain = GRAIN as i32;
    let mut picture = String::new();
    let root = SVGBackend::with_string(&mut picture, size).into_drawing_area();
    root.fill(&WHITE).expect("it is drawn");
    for (panel, area) in panels.iter().zip(root.split_evenly((rows, columns))) {
        let area = area
            .margin(12 * GRAIN, 0, 0, 0)
            .titled(panel.title, heading.clone())
            .expect("it is drawn");
        let mut chart = ChartBuilder::on(&area)
            .margin(14 * GRAIN)
            .x_label_area_size(44 * GRAIN)
            .y_label_area_size(58 * GRAIN)
            .build_cartesian_2d(panel.x.places(), panel.y.places())
            .expect("a range");
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(DARK.mix(0.12).stroke_width(GRAIN))
            .axis_style(DARK.stroke_width(GRAIN))
            .set_all_tick_mark_size(5 * GRAIN)
            .x_labels(7)
            .y_labels(7)
            .x_label_formatter(&|x| panel.x.tick(*x))
            .y_label_formatter(&|y| panel.y.tick(*y))
            .x_desc(panel.x.label)
            .y_desc(panel.y.label)
            .label_style(font(13))
            .draw()
            .expect("it is drawn");
        let mut has_legend = false;
        for layer in &panel.layers {
            let mut dash = 18 * grain;
            let (series, name, color) = match layer {
                Layer::Line {
                    name,
                    color,
                    is_dashed,
                    points,
                } => {
                    let places = points
                        .iter()
                        .map(|point| panel.at(*point))
                        .collect::<Vec<_>>()
                        .into_iter();
                    let style = line(*color);
                    let series = if *is_dashed {
                        dash = 6 * grain;
                        chart.draw_series(DashedLineSeries::new(
                            places,
                            6 * GRAIN,
                            4 * GRAIN,
                            style,
                        ))
                    } else {
                        chart.draw_series(LineSeries::new(places, style))
                    };
                    (series, name.as_str(), *color)
                }
                Layer::Band { color, points } => {
                    let low = points.iter().map(|(x, low, _)| panel.at((*x, *low)));
                    let high = points
                        .iter()
                        .rev()
                        .map(|(x, _, high)| panel.at((*x, *high)));
                    let outline: Vec<_> = low.chain(high).collect();
                    (
                        chart.draw_series([Polygon::new(outline, color.mix(0.18))]),
                        "",
                        *color,
                    )
                }
                Layer::Dots {
                    name,
                    color,
                    points,
                } => {
                    let dot = |point: &(f64, f64)| {
                        Circle::new(panel.at(*point), 2 * GRAIN, color.mix(0.6).filled())
                    };
                    (
                        chart.draw_series(points.iter().map(dot)),
                        name.as_str(),
                        *color,
                    )
                }
                Layer::Region { color, values } => {
                    let cells = positive(values)
                        .into_iter()
                        .map(|corners| corners.map(|corner| panel.inside(corner)));
                    let cells =
                        cells.map(|corners| Rectangle::new(corners, color.mix(0.16).filled()));
                    (chart.draw_series(cells), "", *color)
                }
                Layer::Boundary {
                    name,
                    color,
                    values,
                } => {
                    let pieces = zeros(values)
                        .into_iter()
                        .map(|ends| ends.map(|end| panel.inside(end)));
                    let pieces = pieces.map(|ends| PathElement::new(ends.to_vec(), line(*color)));
                    (chart.draw_series(pieces), name.as_str(), *color)
                }
            };
            let series = series.expect("it is drawn");
            if !name.is_empty() {
                has_legend = true;
                series.label(name).legend(move |(x, y)| {
                    DashedPathElement::new(
                        vec![(x, y), (x + 18 * grain, y)],
                        dash,
                        4 * grain,
                        line(color),
                    )
                });
            }
        }
        if has_legend {
            chart
                .configure_series_labels()
                .position(panel.legend.clone())
                .background_style(WHITE.mix(0.85))
                .label_font(font(13))
                .legend_area_size(30 * GRAIN)
                .margin(10 * GRAIN)
                .draw()
                .expect("it is drawn");
        }
    }
    root.present().expect("it is drawn");
    drop(root);
    let large = format!("width=\"{}\" height=\"{}\"", size.0, size.1);
    let shown = format!("width=\"{width}\" height=\"{height}\"");
    std::fs::write(path, picture.replacen(&large, &shown, 1)).expect("the picture is written");
}

/// Rectangles that cover the grid points with positive values, a stretch of a row each; the panel is the unit square.
fn positive(values: &[Vec<f64>]) -> Vec<[(f64, f64); 2]> {
    let mut rectangles = Vec::new();
    for (row, line) in values.iter().enumerate() {
        let width = line.len() as f64 - 1.0;
        let height = values.len() as f64 - 1.0;
        let edge = |index: usize, steps: f64| ((index as f64 - 0.5) / steps).clamp(0.0, 1.0);
        let mut start = 0;
        for stretch in line.chunk_by(|a, b| (*a > 0.0) == (*b > 0.0)) {
            let end = start + stretch.len();
            if stretch[0] > 0.0 {
                rectangles.push([
                    (edge(start, width), edge(row, height)),
                    (edge(end, width), edge(row + 1, height)),
                ]);
            }
            start = end;
        }
    }
    rectangles
}

/// Pieces of the level line 0, a cell of the grid each, by linear interpolation; the panel is the unit square.
fn zeros(values: &[Vec<f64>]) -> Vec<[(f64, f64); 2]> {
    let mut pieces = Vec::new();
    for (row, lines) in values.windows(2).enumerate() {
        for column in 0..lines[0].len() - 1 {
            let corner = |right: usize, up: usize| {
                let x = (column + right) as f64 / (lines[0].len() - 1) as f64;
                let y = (row + up) as f64 / (values.len() - 1) as f64;
                (x, y, lines[up][column + right])
            };
            let corners = [
                corner(0, 0),
                corner(1, 0),
                corner(1, 1),
                corner(0, 1),
                corner(0, 0),
            ];
            let crossing = |sides: &[(f64, f64, f64)]| {
                let [(x, y, a), (u, v, b)] = [sides[0], sides[1]];
                ((a > 0.0) != (b > 0.0))
                    .then(|| (x + (u - x) * a / (a - b), y + (v - y) * a / (a - b)))
            };
            let crossings: Vec<(f64, f64)> = corners.windows(2).filter_map(crossing).collect();
            pieces.extend(crossings.chunks_exact(2).map(|ends| [ends[0], ends[1]]));
        }
    }
    pieces
}
