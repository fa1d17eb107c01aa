//! Pictures of functions as SVG: panels side by side, each with its layers from the back to the front.
#![allow(dead_code, reason = "each test uses some of it")]

use std::ops::Range;
use std::path::Path;

use plotters::element::DashedPathElement;
use plotters::prelude::*;

/// One chart.
#[derive(Debug)]
pub struct Panel {
    pub title: &'static str,
    pub x: Axis,
    pub y: Axis,
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
    /// Where `is_inside` holds, on a grid over the panel.
    Region {
        color: RGBColor,
        is_inside: Vec<Vec<bool>>,
    },
}

pub const DARK: RGBColor = RGBColor(68, 68, 68);
pub const GREY: RGBColor = RGBColor(150, 150, 150);
pub const SKY: RGBColor = RGBColor(43, 108, 176);
pub const BRICK: RGBColor = RGBColor(192, 66, 33);
const SIZE: (u32, u32) = (620, 440);

impl Axis {
    pub fn new(label: &'static str, range: Range<f64>) -> Self {
        Axis { label, range, is_logarithmic: false }
    }

    fn place(&self, value: f64) -> f64 {
        if self.is_logarithmic { value.log10() } else { value }
    }

    fn places(&self) -> Range<f64> {
        self.place(self.range.start)..self.place(self.range.end)
    }

    fn tick(&self, place: f64) -> String {
        let value = if self.is_logarithmic { 10_f64.powf(place) } else { place };
        // As many digits as two neighbouring ticks need.
        let step = if self.is_logarithmic { value } else { (self.range.end - self.range.start) / 5.0 };
        let digits = (1.3 - step.log10()).floor().clamp(0.0, 6.0) as usize;
        let text = format!("{value:.digits$}");
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
    }
}

impl Panel {
    fn at(&self, (x, y): (f64, f64)) -> (f64, f64) {
        (self.x.place(x), self.y.place(y))
    }
}

/// Draws the panels from left to right, then the next row.
pub fn draw(path: &Path, columns: usize, panels: &[Panel]) {
    let rows = panels.len().div_ceil(columns);
    let size = (SIZE.0 * columns as u32, SIZE.1 * rows as u32);
    let root = SVGBackend::new(path, size).into_drawing_area();
    root.fill(&WHITE).expect("it is drawn");
    for (panel, area) in panels.iter().zip(root.split_evenly((rows, columns))) {
        let mut chart = ChartBuilder::on(&area)
            .caption(panel.title, ("sans-serif", 17, &DARK))
            .margin(14)
            .x_label_area_size(44)
            .y_label_area_size(58)
            .build_cartesian_2d(panel.x.places(), panel.y.places())
            .expect("a range");
        chart
            .configure_mesh()
            .light_line_style(TRANSPARENT)
            .bold_line_style(DARK.mix(0.12))
            .axis_style(DARK)
            .x_labels(7)
            .y_labels(7)
            .x_label_formatter(&|x| panel.x.tick(*x))
            .y_label_formatter(&|y| panel.y.tick(*y))
            .x_desc(panel.x.label)
            .y_desc(panel.y.label)
            .label_style(("sans-serif", 13, &DARK))
            .draw()
            .expect("it is drawn");
        let mut has_legend = false;
        for layer in &panel.layers {
            let mut dash = 18;
            let (series, name, color) = match layer {
                Layer::Line { name, color, is_dashed, points } => {
                    let places = points.iter().map(|point| panel.at(*point)).collect::<Vec<_>>().into_iter();
                    let style = color.stroke_width(2);
                    let series = if *is_dashed {
                        dash = 6;
                        chart.draw_series(DashedLineSeries::new(places, 6, 4, style))
                    } else {
                        chart.draw_series(LineSeries::new(places, style))
                    };
                    (series, name.as_str(), *color)
                }
                Layer::Band { color, points } => {
                    let low = points.iter().map(|(x, low, _)| panel.at((*x, *low)));
                    let high = points.iter().rev().map(|(x, _, high)| panel.at((*x, *high)));
                    let outline: Vec<_> = low.chain(high).collect();
                    (chart.draw_series([Polygon::new(outline, color.mix(0.18))]), "", *color)
                }
                Layer::Dots { name, color, points } => {
                    let dot = |point: &(f64, f64)| Circle::new(panel.at(*point), 2, color.mix(0.6).filled());
                    (chart.draw_series(points.iter().map(dot)), name.as_str(), *color)
                }
                Layer::Region { color, is_inside } => {
                    let cells = runs(is_inside).map(|(row, columns)| {
                        let (width, height) = (is_inside[row].len() as f64, is_inside.len() as f64);
                        let across = |i: usize| {
                            panel.x.range.start + (panel.x.range.end - panel.x.range.start) * i as f64 / width
                        };
                        let up = |i: usize| {
                            panel.y.range.start + (panel.y.range.end - panel.y.range.start) * i as f64 / height
                        };
                        let corners = [(across(columns.start), up(row)), (across(columns.end), up(row + 1))];
                        Rectangle::new(corners, color.mix(0.16).filled())
                    });
                    (chart.draw_series(cells), "", *color)
                }
            };
            let series = series.expect("it is drawn");
            if !name.is_empty() {
                has_legend = true;
                series.label(name).legend(move |(x, y)| {
                    DashedPathElement::new(vec![(x, y), (x + 18, y)].into_iter(), dash, 4, color.stroke_width(2))
                });
            }
        }
        if has_legend {
            chart
                .configure_series_labels()
                .position(SeriesLabelPosition::UpperRight)
                .background_style(WHITE.mix(0.85))
                .label_font(("sans-serif", 13, &DARK))
                .draw()
                .expect("it is drawn");
        }
    }
    root.present().expect("the picture is written");
}

/// The stretches of each row that are inside.
fn runs(is_inside: &[Vec<bool>]) -> impl Iterator<Item = (usize, Range<usize>)> {
    is_inside.iter().enumerate().flat_map(|(row, cells)| {
        let mut from = 0;
        cells.chunk_by(|a, b| a == b).filter_map(move |stretch| {
            let start = from;
            from += stretch.len();
            stretch[0].then_some((row, start..from))
        })
    })
}
