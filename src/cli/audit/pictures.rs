//! The pictures of a report, as SVG.

use plotters::coord::Shift;
use plotters::prelude::*;

use crate::cli::failure::Failure;
use bernstream_audit::samplers::SamplerFindings;
use bernstream_audit::{AttackReport, ErrorRatePoint};
use bernstream_synopsis::NoiseDistribution;

const DARK: RGBColor = RGBColor(68, 68, 68);
const SKY: RGBColor = RGBColor(43, 108, 176);
const BRICK: RGBColor = RGBColor(192, 66, 33);
/// Drawn this much larger, and shown at its size: whole pixels make stairs of curves.
const GRAIN: u32 = 4;
const WIDTH: u32 = 460;
const HEIGHT: u32 = 340;
/// Bars of a histogram.
const BARS: usize = 32;

type Drawn = Result<(), Box<dyn std::error::Error>>;
type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// The histogram of the sizes of draws beside the declared distribution.
///
/// # Errors
///
/// If it cannot be drawn.
pub fn size_histogram(sampled: &SamplerFindings) -> Result<String, Failure> {
    let sizes = &sampled.sizes;
    let step = (sizes.thresholds.len() / BARS).max(1);
    let places: Vec<[f64; 3]> = sizes
        .thresholds
        .iter()
        .zip(&sizes.drawn)
        .zip(&sizes.declared)
        .map(|((x, drawn), declared)| [*x, *drawn, *declared])
        .step_by(step)
        .collect();
    // From, to, and the two densities between neighbouring thresholds.
    let bars: Vec<[f64; 4]> = places
        .iter()
        .zip(places.iter().skip(1))
        .map(|([x, f, l], [to, g, m])| {
            let width = (to - x).max(f64::MIN_POSITIVE);
            [*x, *to, (g - f) / width, (m - l) / width]
        })
        .collect();
    let range = places.first().map_or(0.0, |p| p[0])..places.last().map_or(1.0, |p| p[0]).max(1e-9);
    let most = bars
        .iter()
        .flat_map(|bar| [bar[2], bar[3]])
        .fold(0.0, f64::max)
        * 1.15;
    draw_picture(|area| {
        let mut chart = ChartBuilder::on(area)
            .margin(10 * GRAIN)
            .x_label_area_size(40 * GRAIN)
            .y_label_area_size(54 * GRAIN)
            .build_cartesian_2d(range.clone(), 0.0..most.max(1e-12))?;
        draw_mesh(&mut chart, size_of(sampled.noise), "density of draws")?;
        let drawn = chart.draw_series(bars.iter().map(|[from, to, drawn, _]| {
            Rectangle::new([(*from, 0.0), (*to, *drawn)], SKY.mix(0.35).filled())
        }))?;
        drawn.label("drawn").legend(|place| swatch(place, SKY));
        let declared = bars
            .iter()
            .map(|bar| (f64::midpoint(bar[0], bar[1]), bar[3]));
        let declared =
            chart.draw_series(LineSeries::new(declared, BRICK.stroke_width(2 * GRAIN)))?;
        declared
            .label("declared")
            .legend(|place| swatch(place, BRICK));
        draw_legend(&mut chart)
    })
}

/// The size of a draw in words, of which the density of the noise is a function.
fn size_of(noise: NoiseDistribution) -> &'static str {
    match noise {
        NoiseDistribution::DiscreteLaplace => "sum of the absolute values of a draw / scale",
        NoiseDistribution::DiscreteCube => "largest absolute value of a draw / scale",
        NoiseDistribution::Ball => "length of a draw / scale",
        NoiseDistribution::DiscreteGaussian => "half the squared length of a draw / squared scale",
    }
}

/// The error rates of the attacker with their band, those that are calculated, and the lowest that the promise allows.
///
/// # Errors
///
/// If it cannot be drawn.
pub fn trade_off_curve(attacked: &AttackReport) -> Result<String, Failure> {
    let band = attacked.tests.first().map_or(0.0, |test| test.allowed);
    let curve = &attacked.curve;
    // Chance moves both errors.
    let low = curve.iter().map(|point| moved_rates(point, -band));
    let high = curve.iter().rev().map(|point| moved_rates(point, band));
    let outline: Vec<_> = low.chain(high).collect();
    draw_picture(|area| {
        let mut chart = ChartBuilder::on(area)
            .margin(10 * GRAIN)
            .x_label_area_size(40 * GRAIN)
            .y_label_area_size(54 * GRAIN)
            .build_cartesian_2d(0.0..1.0, 0.0..1.0)?;
        draw_mesh(&mut chart, "false positive rate", "false negative rate")?;
        chart.draw_series([Polygon::new(outline.clone(), SKY.mix(0.2))])?;
        let promised = curve
            .iter()
            .map(|point| (point.false_positives, point.promised_false_negatives));
        chart
            .draw_series(LineSeries::new(promised, BRICK.stroke_width(2 * GRAIN)))?
            .label("lowest that is promised")
            .legend(|place| swatch(place, BRICK));
        // The one lies on the other: wide and pale below, dashed and dark above.
        let measured = curve
            .iter()
            .map(|point| (point.false_positives, point.false_negatives));
        let wide = SKY.mix(0.6).stroke_width(5 * GRAIN);
        chart
            .draw_series(LineSeries::new(measured, wide))?
            .label("measured")
            .legend(|place| swatch(place, SKY));
        let calculated = curve.iter().map(|point| {
            let positives = point.calculated_false_positives;
            (positives, point.calculated_false_negatives)
        });
        let dash = 6 * GRAIN;
        let gap = 5 * GRAIN;
        let line = DashedLineSeries::new(calculated, dash, gap, DARK.stroke_width(2 * GRAIN));
        chart
            .draw_series(line)?
            .label("calculated")
            .legend(|place| swatch(place, DARK));
        draw_legend(&mut chart)
    })
}

/// The measured error rates, both moved by so much, within what rates can be.
fn moved_rates(point: &ErrorRatePoint, by: f64) -> (f64, f64) {
    (
        (point.false_positives + by).clamp(0.0, 1.0),
        (point.false_negatives + by).clamp(0.0, 1.0),
    )
}

type Chart<'a, 'b> = ChartContext<
    'a,
    SVGBackend<'b>,
    Cartesian2d<plotters::coord::types::RangedCoordf64, plotters::coord::types::RangedCoordf64>,
>;

fn draw_mesh(chart: &mut Chart<'_, '_>, x: &str, y: &str) -> Drawn {
    let mut mesh = chart.configure_mesh();
    mesh.light_line_style(TRANSPARENT)
        .bold_line_style(DARK.mix(0.12).stroke_width(GRAIN));
    mesh.axis_style(DARK.stroke_width(GRAIN))
        .x_labels(6)
        .y_labels(6)
        .label_style(font(12));
    mesh.x_label_formatter(&short).y_label_formatter(&short);
    mesh.x_desc(x).y_desc(y).draw()?;
    Ok(())
}

fn short(x: &f64) -> String {
    crate::cli::figures::two_digits(*x).to_string()
}

fn draw_legend<'a, 'b: 'a>(chart: &mut Chart<'a, 'b>) -> Drawn {
    let mut labels = chart.configure_series_labels();
    labels
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE.mix(0.85))
        .label_font(font(12));
    labels
        .legend_area_size(26 * GRAIN)
        .margin(8 * GRAIN)
        .draw()?;
    Ok(())
}

fn swatch((x, y): (i32, i32), color: RGBColor) -> PathElement<(i32, i32)> {
    let length = 18 * i32::try_from(GRAIN).unwrap_or(1);
    PathElement::new(vec![(x, y), (x + length, y)], color.stroke_width(3 * GRAIN))
}

fn font(size: u32) -> TextStyle<'static> {
    ("sans-serif", size * GRAIN).into_font().color(&DARK)
}

fn draw_picture(draw: impl Fn(&Area<'_>) -> Drawn) -> Result<String, Failure> {
    let width = WIDTH * GRAIN;
    let height = HEIGHT * GRAIN;
    let mut picture = String::new();
    draw_into(&mut picture, (width, height), draw)
        .map_err(|error| Failure::Other(format!("cannot draw a picture: {error}")))?;
    // Shown at its size, in the page that it is a part of.
    let large = format!("width=\"{width}\" height=\"{height}\"");
    let shown = format!("width=\"{WIDTH}\" height=\"{HEIGHT}\"");
    let start = picture.find("<svg").unwrap_or(0);
    Ok(picture.split_off(start).replacen(&large, &shown, 1))
}

fn draw_into(picture: &mut String, size: (u32, u32), draw: impl Fn(&Area<'_>) -> Drawn) -> Drawn {
    let root = SVGBackend::with_string(picture, size).into_drawing_area();
    root.fill(&WHITE)?;
    draw(&root)?;
    root.present()?;
    Ok(())
}
