//! The pictures of a report, as SVG.

use plotters::coord::Shift;
use plotters::prelude::*;

use super::replay::Change;
use crate::audit::samplers::Curve;
use crate::audit::trade_off::Walked;
use crate::cli::failure::Failure;

const DARK: RGBColor = RGBColor(68, 68, 68);
const SKY: RGBColor = RGBColor(43, 108, 176);
const BRICK: RGBColor = RGBColor(192, 66, 33);
const GREEN: RGBColor = RGBColor(47, 133, 90);
/// Drawn this much larger, and shown at its size: whole pixels make stairs of curves.
const GRAIN: u32 = 4;
const WIDTH: u32 = 460;
const HEIGHT: u32 = 340;
/// Bars of a histogram.
const BARS: usize = 32;

type Drawn = Result<(), Box<dyn std::error::Error>>;
type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Found as a part of declared: a bar each.
///
/// # Errors
///
/// If it cannot be drawn.
pub fn changes(changes: &[Change]) -> Result<String, Failure> {
    let rows = u32::try_from(changes.len()).unwrap_or(u32::MAX).clamp(1, 40);
    picture((2 * WIDTH, 60 + 26 * rows), |area| {
        let most = changes.iter().map(|change| change.found_of_declared).fold(1.1, f64::max);
        let mut chart = ChartBuilder::on(area)
            .margin(10 * GRAIN)
            .x_label_area_size(36 * GRAIN)
            .build_cartesian_2d(0.0..most, 0.0..f64::from(rows))?;
        let mut mesh = chart.configure_mesh();
        mesh.disable_y_mesh().light_line_style(TRANSPARENT).y_labels(0).x_labels(6).label_style(font(12));
        mesh.bold_line_style(DARK.mix(0.12).stroke_width(GRAIN)).axis_style(DARK.stroke_width(GRAIN));
        mesh.x_desc("found / declared").draw()?;
        for (row, change) in (1..=rows).zip(changes) {
            let (top, part) = (f64::from(rows - row) + 0.85, change.found_of_declared);
            let color = if part > 1.0 { BRICK } else { SKY };
            let bar = [(0.0, top - 0.7), (part, top)];
            chart.draw_series([Rectangle::new(bar, color.mix(0.35).filled())])?;
            let text = format!("{}, {}: {part:.3}", change.release, change.of);
            chart.draw_series([Text::new(text, (0.01, top - 0.1), font(13))])?;
        }
        let line = vec![(1.0, 0.0), (1.0, f64::from(rows))];
        chart.draw_series([PathElement::new(line, DARK.stroke_width(2 * GRAIN))])?;
        Ok(())
    })
}

/// The histogram of the sizes of draws beside their law.
///
/// # Errors
///
/// If it cannot be drawn.
pub fn sizes(sizes: &Curve) -> Result<String, Failure> {
    let step = (sizes.thresholds.len() / BARS).max(1);
    let places: Vec<[f64; 3]> = sizes
        .thresholds
        .iter()
        .zip(&sizes.found)
        .zip(&sizes.law)
        .map(|((x, f), l)| [*x, *f, *l])
        .step_by(step)
        .collect();
    // Middle, density found and density of the law, between neighbouring thresholds.
    let bars: Vec<[f64; 4]> = places
        .iter()
        .zip(places.iter().skip(1))
        .map(|([x, f, l], [to, g, m])| {
            let width = (to - x).max(f64::MIN_POSITIVE);
            [*x, *to, (g - f) / width, (m - l) / width]
        })
        .collect();
    let range = places.first().map_or(0.0, |p| p[0])..places.last().map_or(1.0, |p| p[0]).max(1e-9);
    let most = bars.iter().flat_map(|bar| [bar[2], bar[3]]).fold(0.0, f64::max) * 1.15;
    picture((WIDTH, HEIGHT), |area| {
        let mut chart = ChartBuilder::on(area)
            .margin(10 * GRAIN)
            .x_label_area_size(40 * GRAIN)
            .y_label_area_size(54 * GRAIN)
            .build_cartesian_2d(range.clone(), 0.0..most.max(1e-12))?;
        mesh(&mut chart, ("size of a draw, in scales", "density"))?;
        let rectangle = |bar: &[f64; 4]| Rectangle::new([(bar[0], 0.0), (bar[1], bar[2])], SKY.mix(0.35).filled());
        let found = chart.draw_series(bars.iter().map(rectangle))?;
        found.label("found").legend(|(x, y)| swatch((x, y), SKY));
        let law = bars.iter().map(|bar| (f64::midpoint(bar[0], bar[1]), bar[3]));
        let law = chart.draw_series(LineSeries::new(law, BRICK.stroke_width(2 * GRAIN)))?;
        law.label("law").legend(|(x, y)| swatch((x, y), BRICK));
        legend(&mut chart)
    })
}

/// The curve found with its band, that which was promised, and that which was calculated.
///
/// # Errors
///
/// If it cannot be drawn.
pub fn trade_off(walked: &Walked) -> Result<String, Failure> {
    let band = walked.tests.first().map_or(0.0, |test| test.allowed);
    let unit = |y: f64| y.clamp(0.0, 1.0);
    let of = |y: &dyn Fn(&crate::audit::trade_off::Point) -> (f64, f64)| walked.curve.iter().map(y).collect::<Vec<_>>();
    let found = of(&|p| (p.false_accusations, p.false_denials));
    let calculated = of(&|p| (p.calculated_accusations, p.calculated_denials));
    let promised = of(&|p| (p.false_accusations, p.promised_denials));
    // Chance moves both errors.
    let low = found.iter().map(|(x, y)| (unit(x - band), unit(y - band)));
    let high = found.iter().rev().map(|(x, y)| (unit(x + band), unit(y + band)));
    let outline: Vec<(f64, f64)> = low.chain(high).collect();
    picture((WIDTH, HEIGHT), |area| {
        let mut chart = ChartBuilder::on(area)
            .margin(10 * GRAIN)
            .x_label_area_size(40 * GRAIN)
            .y_label_area_size(54 * GRAIN)
            .build_cartesian_2d(0.0..1.0, 0.0..1.0)?;
        mesh(&mut chart, ("false accusations", "false denials"))?;
        chart.draw_series([Polygon::new(outline.clone(), SKY.mix(0.25))])?;
        for (points, name, color) in
            [(&promised, "promised", BRICK), (&calculated, "calculated", GREEN), (&found, "found", SKY)]
        {
            let line = LineSeries::new(points.iter().copied(), color.stroke_width(2 * GRAIN));
            chart.draw_series(line)?.label(name).legend(move |(x, y)| swatch((x, y), color));
        }
        legend(&mut chart)
    })
}

type Chart<'a, 'b> = ChartContext<
    'a,
    SVGBackend<'b>,
    Cartesian2d<plotters::coord::types::RangedCoordf64, plotters::coord::types::RangedCoordf64>,
>;

fn mesh(chart: &mut Chart<'_, '_>, (x, y): (&str, &str)) -> Drawn {
    let mut mesh = chart.configure_mesh();
    mesh.light_line_style(TRANSPARENT).bold_line_style(DARK.mix(0.12).stroke_width(GRAIN));
    mesh.axis_style(DARK.stroke_width(GRAIN)).x_labels(6).y_labels(6).label_style(font(12));
    mesh.x_label_formatter(&short).y_label_formatter(&short);
    mesh.x_desc(x).y_desc(y).draw()?;
    Ok(())
}

fn short(x: &f64) -> String {
    crate::cli::figures::two_digits(*x).to_string()
}

fn legend<'a, 'b: 'a>(chart: &mut Chart<'a, 'b>) -> Drawn {
    let mut labels = chart.configure_series_labels();
    labels.position(SeriesLabelPosition::UpperRight).background_style(WHITE.mix(0.85)).label_font(font(12));
    labels.legend_area_size(26 * GRAIN).margin(8 * GRAIN).draw()?;
    Ok(())
}

fn swatch((x, y): (i32, i32), color: RGBColor) -> PathElement<(i32, i32)> {
    let length = 18 * i32::try_from(GRAIN).unwrap_or(1);
    PathElement::new(vec![(x, y), (x + length, y)], color.stroke_width(3 * GRAIN))
}

fn font(size: u32) -> TextStyle<'static> {
    ("sans-serif", size * GRAIN).into_font().color(&DARK)
}

fn picture((width, height): (u32, u32), draw: impl Fn(&Area<'_>) -> Drawn) -> Result<String, Failure> {
    let size = (width * GRAIN, height * GRAIN);
    let mut picture = String::new();
    let drawn = || -> Drawn {
        let root = SVGBackend::with_string(&mut picture, size).into_drawing_area();
        root.fill(&WHITE)?;
        draw(&root)?;
        root.present()?;
        Ok(())
    };
    let mut drawn = drawn;
    drawn().map_err(|error| Failure::Other(format!("cannot draw a picture: {error}")))?;
    // Shown at its size, in the page that it is a part of.
    let large = format!("width=\"{}\" height=\"{}\"", size.0, size.1);
    let shown = format!("width=\"{width}\" height=\"{height}\"");
    let start = picture.find("<svg").unwrap_or(0);
    Ok(picture.split_off(start).replacen(&large, &shown, 1))
}
