//! What a practitioner with twenty lines of code would use for a density, beside what `noise = "auto"` releases.
//!
//! 5,000 records; the mean over releases of the largest error of the density, at equal epsilon. On one axis the papers' mixture
//! (`papers_density`), on two a mixture of two bumps of which one is oblique. Rivals draw Laplace noise of the same scale:
//!
//! * three that follow a rule as public as ours: cells shared linearly with 1.25 cells a bandwidth, by a quadratic spline with
//!   `b/h = (epsilon' n b / 10)^0.15` cells, and a histogram with one bin a bandwidth;
//! * three that know which size was best: the histogram, cosine moments with the kernel's factor `exp(-(pi m b)^2 / 2)`, and Haar
//!   wavelets with the weights of `[XWG11]` (Xiao, Wang, Gehrke, Differential Privacy via Wavelet Transforms, 2011).
//!
//! All are read by the same kernel as ours. What is found is written to `rivals.csv` and drawn as `rivals.svg`.

use std::f64::consts::PI;
use std::fmt::Write;
use std::fs;

use bernstream_config::WorkerSettings;
use bernstream_functions::cells::CellDensity;
use bernstream_noise::noise::Generator;
use bernstream_release::Target;
use bernstream_synopsis::histogram::Spline;
use bernstream_synopsis::{Adjacency, CellBasis};
use bernstream_synopsis::{Synopsis, SynopsisReading};
use plotters::chart::SeriesLabelPosition::UpperRight;
use plotters::style::RGBColor;
use rand::rngs::ChaCha20Rng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Exp1, Normal, StandardNormal};

use crate::harness::exact::Opened as _;
use crate::harness::picture::{self, Axis, BRICK, DARK, GREEN, GREY, Layer, Panel, SKY};
use crate::harness::plan::plan;

const RECORDS: usize = 5_000;
const EPSILONS: [f64; 5] = [0.01, 0.03, 0.1, 0.3, 1.0];
const METHODS: [&str; 8] = [
    "auto",
    "auto, without negative counts",
    "linear, 1.25 cells a bandwidth",
    "quadratic, u^0.15",
    "histogram, one bin a bandwidth",
    "histogram, best of hindsight",
    "cosines, best of hindsight",
    "wavelets, best of hindsight",
];
/// How many of the first methods are ours.
const OURS: usize = 2;
/// Those that follow a public rule.
const RULES: std::ops::Range<usize> = 2..5;

/// One block of the table.
struct Setting {
    title: &'static str,
    axes: usize,
    adjacency: Adjacency,
    bandwidth: f64,
    records: Vec<Vec<f64>>,
    grid: Vec<Vec<f64>>,
    exact: Vec<f64>,
    releases: usize,
}

/// A mean and its standard error.
#[derive(Clone, Copy, Debug)]
struct Mean {
    mean: f64,
    error: f64,
}

impl Mean {
    fn of(values: &[f64]) -> Mean {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
        Mean {
            mean,
            error: (variance / n).sqrt(),
        }
    }
}

fn product(along: &[f64], axes: usize) -> Vec<Vec<f64>> {
    (0..axes).fold(vec![vec![]], |all: Vec<Vec<f64>>, _| {
        all.iter()
            .flat_map(|p| along.iter().map(move |y| [&p[..], &[*y]].concat()))
            .collect()
    })
}

impl Setting {
    fn new(title: &'static str, axes: usize, adjacency: Adjacency, bandwidth: f64) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(1);
        let mixture =
            [(0.5, 0.02_f64), (0.75, 0.005)].map(|(mean, v)| Normal::new(mean, v.sqrt()).unwrap());
        let mut record = || -> Vec<f64> {
            let first = rng.random_bool(0.4);
            if axes == 1 {
                return vec![mixture[usize::from(!first)].sample(&mut rng)];
            }
            let [u, v]: [f64; 2] = [(); 2].map(|()| StandardNormal.sample(&mut rng));
            if first {
                vec![0.3 + 0.1 * u, 0.35 + 0.08 * v]
            } else {
                vec![0.65 + 0.12 * u, 0.6 + 0.1 * (0.7 * u + 0.7 * v)]
            }
        };
        let records = (0..RECORDS)
            .map(|_| {
                record()
                    .into_iter()
                    .map(|x: f64| x.clamp(0.0, 1.0))
                    .collect()
            })
            .collect();
        Setting::of(title, axes, adjacency, bandwidth, records)
    }

    fn of(
        title: &'static str,
        axes: usize,
        adjacency: Adjacency,
        bandwidth: f64,
        records: Vec<Vec<f64>>,
    ) -> Self {
        let steps = if axes == 1 { 200_u32 } else { 50 };
        let along: Vec<f64> = (0..=steps)
            .map(|i| f64::from(i) / f64::from(steps))
            .collect();
        let grid = product(&along, axes);
        let peak = ((2.0 * PI).sqrt() * bandwidth).powi(axes as i32).recip();
        let at = |y: &Vec<f64>| {
            let square = |d: &[f64]| {
                y.iter()
                    .zip(d)
                    .map(|(y, d)| ((y - d) / bandwidth).powi(2))
                    .sum::<f64>()
            };
            records
                .iter()
                .map(|d| (-square(d) / 2.0).exp())
                .sum::<f64>()
                * peak
                / RECORDS as f64
        };
        let exact = grid.iter().map(at).collect();
        Setting {
            title,
            axes,
            adjacency,
            bandwidth,
            records,
            grid,
            exact,
            releases: if axes == 1 { 60 } else { 24 },
        }
    }

    /// Records by which neighbours differ in the 1-norm of counts.
    fn moves(&self) -> f64 {
        if self.adjacency == Adjacency::AddRemove {
            1.0
        } else {
            2.0
        }
    }

    /// What `noise = "auto"` releases, as published and without negative counts.
    fn auto(&self, epsilon: f64) -> ([Mean; OURS], String) {
        let axis = |i| format!("{{ column = \"x{i}\", min = 0, max = 1, outside = \"clamp\" }}");
        let axes: Vec<String> = (0..self.axes).map(axis).collect();
        let adjacency = match self.adjacency {
            Adjacency::AddRemove => "\"add_remove\"".to_owned(),
            Adjacency::ReplaceOne => {
                format!("{{ replace_one = {{ records_per_window = {RECORDS} }} }}")
            }
        };
        let text = format!(
            "pipeline = \"rivals\"\n[input]\ntime = \"time\"\nfiles.path = \"records\"\n\
             [windows]\norigin = \"2026-01-01T00:00:00Z\"\nlength = \"1d\"\nend = \"2026-01-02T00:00:00Z\"\n\
             [privacy]\nunit = \"record\"\nadjacency = {adjacency}\nepsilon = {epsilon}\n\
             [release]\nname = \"density\"\nepsilon = {epsilon}\nnoise = \"auto\"\nexpected_records = {RECORDS}\n\
             domain = [{}]\n[release.density]\nbandwidths = {:?}\n\
             [output]\nfiles.path = \"synopses\"\n[ledger]\npath = \"ledger\"\n",
            axes.join(", "),
            vec![self.bandwidth; self.axes]
        );
        let settings = WorkerSettings::parse(&text, "rivals")
            .unwrap_or_else(|faults| panic!("{faults}\n{text}"));
        let release = &settings.releases[0];
        let target = &release.function.target;
        let mechanism = settings.mechanism_of(release, &release.function).unwrap();
        let spec = target.accumulator();
        let exact = target
            .evaluate(&spec.filled_accumulator(self.records.iter().map(|x| spec.record(x, 0.0))));
        let about = plan(&settings).releases[0].description().clone();
        let mut generator = Generator::frozen([3; 32]);
        let mut errors = [(); OURS].map(|()| Vec::new());
        for _ in 0..self.releases {
            let noisy = mechanism.release_noisy(&exact, &mut generator);
            let values = noisy
                .values()
                .iter()
                .map(|value| *value as f64 * release.function.grid_unit())
                .collect();
            let synopsis =
                Synopsis::new(about.clone(), target.publish(values)).expect("a synopsis");
            for (errors, by) in errors.iter_mut().zip([
                SynopsisReading::Bernstein(about.order),
                SynopsisReading::Nonnegative,
            ]) {
                // Only counts of cells can be read without negative ones.
                let Ok(evaluator) = synopsis.evaluator(by) else {
                    continue;
                };
                let off = |(y, exact): (&Vec<f64>, &f64)| {
                    (evaluator.evaluate(y).expect("a value") / RECORDS as f64 - exact).abs()
                };
                errors.push(
                    self.grid
                        .iter()
                        .zip(&self.exact)
                        .map(off)
                        .fold(0.0, f64::max),
                );
            }
        }
        let taken = release
            .auto
            .as_ref()
            .expect("a choice")
            .taken
            .keys_in_file(&release.axes, &release.function);
        (errors.map(|errors| Mean::of(&errors)), taken)
    }

    /// A linear method: what it makes of the records without noise, less the exact density, and of `noise` alone; at each epsilon the
    /// mean largest size of their sum, the noise `moves / epsilon` times as large.
    fn linear(
        &self,
        form: &[f64],
        mut noise: impl FnMut(&mut ChaCha20Rng) -> Vec<f64>,
        moves: f64,
    ) -> [Mean; 5] {
        let mut rng = ChaCha20Rng::seed_from_u64(7);
        let draws: Vec<Vec<f64>> = (0..self.releases).map(|_| noise(&mut rng)).collect();
        EPSILONS.map(|epsilon| {
            let scale = moves / epsilon / RECORDS as f64;
            let sup = |draw: &Vec<f64>| {
                form.iter()
                    .zip(draw)
                    .map(|(f, z)| (f + scale * z).abs())
                    .fold(0.0, f64::max)
            };
            Mean::of(&draws.iter().map(sup).collect::<Vec<f64>>())
        })
    }

    /// Cells of a fixed grid; `None` where the spline is wider than the kernel.
    fn cells(&self, spline: Spline, cells_a_bandwidth: f64) -> Option<[Mean; 5]> {
        let steps = vec![((cells_a_bandwidth / self.bandwidth).round() as u32).max(1); self.axes];
        let density =
            CellDensity::diagonal(&vec![self.bandwidth; self.axes], spline, &steps).ok()?;
        let unit = density.unit();
        let peak = unit * 2.0_f64.powi(32);
        let spec = density.accumulator();
        let exact = density
            .evaluate(&spec.filled_accumulator(self.records.iter().map(|x| spec.record(x, 0.0))));
        let counts: Vec<f64> = exact
            .opened()
            .iter()
            .map(|count| *count as f64 * unit / RECORDS as f64)
            .collect();
        let basis = density.basis().clone();
        let count = counts.len();
        let rows: Vec<Vec<f64>> = self
            .grid
            .iter()
            .map(|y| CellBasis::kernel_values(&basis, y))
            .collect();
        let sum = |row: &Vec<f64>, z: &[f64]| row.iter().zip(z).map(|(a, z)| a * z).sum::<f64>();
        let form: Vec<f64> = rows
            .iter()
            .zip(&self.exact)
            .map(|(row, exact)| sum(row, &counts) - exact)
            .collect();
        let noise = |rng: &mut ChaCha20Rng| {
            let z: Vec<f64> = (0..count).map(|_| peak * laplace(rng)).collect();
            rows.iter().map(|row| sum(row, &z)).collect()
        };
        Some(self.linear(&form, noise, self.moves()))
    }

    /// Cosine moments on one axis: `1 + 2 sum_m a_m exp(-(pi m b)^2 / 2) cos(pi m y)`, which is the kernel mirrored at the ends. A
    /// record changes `frequencies` of them by at most 1 each, a replaced one by at most 2.
    fn cosines(&self, frequencies: u32) -> [Mean; 5] {
        let at = |m: u32, x: f64| (PI * f64::from(m) * x).cos();
        let factor = |m: u32| {
            if m == 0 {
                1.0
            } else {
                2.0 * (-(PI * f64::from(m) * self.bandwidth).powi(2) / 2.0).exp()
            }
        };
        let moments: Vec<f64> = (0..frequencies)
            .map(|m| self.records.iter().map(|x| at(m, x[0])).sum::<f64>() / RECORDS as f64)
            .collect();
        let read = |moments: &[f64]| -> Vec<f64> {
            let value = |y: &Vec<f64>| {
                (0..frequencies)
                    .zip(moments)
                    .map(|(m, a)| a * factor(m) * at(m, y[0]))
                    .sum()
            };
            self.grid.iter().map(value).collect()
        };
        let form: Vec<f64> = read(&moments)
            .iter()
            .zip(&self.exact)
            .map(|(a, b)| a - b)
            .collect();
        let noise = |rng: &mut ChaCha20Rng| {
            read(&(0..frequencies).map(|_| laplace(rng)).collect::<Vec<f64>>())
        };
        self.linear(&form, noise, self.moves() * f64::from(frequencies))
    }

    /// Haar wavelets of `2^levels` bins on one axis: noise of scale `(levels + 1) / weight` on each coefficient, whose weights are the
    /// numbers of bins that it covers.
    fn wavelets(&self, levels: u32) -> Option<[Mean; 5]> {
        let bins = 1_u32 << levels;
        let density = CellDensity::diagonal(&[self.bandwidth], Spline::Box, &[bins]).ok()?;
        let unit = density.unit();
        let spec = density.accumulator();
        let exact = density
            .evaluate(&spec.filled_accumulator(self.records.iter().map(|x| spec.record(x, 0.0))));
        let counts: Vec<f64> = exact
            .opened()
            .iter()
            .map(|count| *count as f64 * unit / RECORDS as f64)
            .collect();
        let basis = density.basis().clone();
        let peak = unit * 2.0_f64.powi(32);
        let rows: Vec<Vec<f64>> = self.grid.iter().map(|y| basis.kernel_values(y)).collect();
        let sum = |row: &Vec<f64>, z: &[f64]| row.iter().zip(z).map(|(a, z)| a * z).sum::<f64>();
        let form: Vec<f64> = rows
            .iter()
            .zip(&self.exact)
            .map(|(row, exact)| sum(row, &counts) - exact)
            .collect();
        let noise = |rng: &mut ChaCha20Rng| {
            // The mean of all bins, then at each level half the difference of the means of two halves.
            let mut z = vec![laplace(rng) / f64::from(bins); bins as usize];
            for level in 0..levels {
                let half = (bins >> (level + 1)) as usize;
                for block in z.chunks_exact_mut(2 * half) {
                    let coefficient = laplace(rng) / (2 * half) as f64;
                    let (left, right) = block.split_at_mut(half);
                    left.iter_mut().for_each(|z| *z += coefficient);
                    right.iter_mut().for_each(|z| *z -= coefficient);
                }
            }
            z.iter_mut().for_each(|z| *z *= peak);
            rows.iter().map(|row| sum(row, &z)).collect()
        };
        Some(self.linear(&form, noise, self.moves() * f64::from(levels + 1)))
    }

    /// A row of the table: every method at every epsilon.
    fn row(&self) -> (Vec<[Mean; 5]>, Vec<String>) {
        let never = [Mean {
            mean: f64::INFINITY,
            error: 0.0,
        }; 5];
        let best = |all: Vec<[Mean; 5]>| -> [Mean; 5] {
            all.into_iter().fold(never, |best, one| {
                std::array::from_fn(|i| {
                    if one[i].mean < best[i].mean {
                        one[i]
                    } else {
                        best[i]
                    }
                })
            })
        };
        let (ours, taken): (Vec<[Mean; OURS]>, Vec<String>) =
            EPSILONS.iter().map(|epsilon| self.auto(*epsilon)).unzip();
        let mine = |method: usize| std::array::from_fn(|i| ours[i][method]);
        let quadratic: [Mean; 5] = std::array::from_fn(|i| {
            let u = EPSILONS[i] / self.moves() * RECORDS as f64 * self.bandwidth / 10.0;
            self.cells(Spline::Quadratic, u.powf(0.15).max(0.8))
                .expect("a grid")[i]
        });
        let bins = (0..16)
            .filter_map(|i| self.cells(Spline::Box, 0.55 * 1.13_f64.powi(i)))
            .collect();
        let (cosines, wavelets) = if self.axes == 1 {
            let frequencies = [3, 5, 7, 9, 12, 16, 20, 28];
            (
                frequencies.into_iter().map(|t| self.cosines(t)).collect(),
                (2..=6).filter_map(|levels| self.wavelets(levels)).collect(),
            )
        } else {
            (Vec::new(), Vec::new())
        };
        let methods = vec![
            mine(0),
            mine(1),
            self.cells(Spline::Linear, 1.25).expect("a grid"),
            quadratic,
            self.cells(Spline::Box, 1.0).expect("a grid"),
            best(bins),
            best(cosines),
            best(wavelets),
        ];
        (methods, taken)
    }

    fn panel(&self, row: &[[Mean; 5]]) -> Panel {
        const COLORS: [RGBColor; 8] = [DARK, DARK, BRICK, GREEN, SKY, SKY, GREY, GREY];
        let line = |(method, means): (usize, &[Mean; 5])| Layer::Line {
            name: METHODS[method].into(),
            color: COLORS[method],
            is_dashed: matches!(method, 1 | 5 | 7),
            points: EPSILONS
                .into_iter()
                .zip(means.map(|mean| mean.mean))
                .collect(),
        };
        let shown: Vec<(usize, &[Mean; 5])> = row
            .iter()
            .enumerate()
            .filter(|(_, means)| means[0].mean.is_finite())
            .collect();
        let all = shown
            .iter()
            .flat_map(|(_, means)| means.iter().map(|mean| mean.mean));
        let (low, high) = all.fold((f64::INFINITY, 0.0_f64), |(low, high), e| {
            (low.min(e), high.max(e))
        });
        Panel {
            title: self.title,
            x: Axis {
                label: "epsilon",
                range: 0.01..1.0,
                is_logarithmic: true,
            },
            y: Axis {
                label: "mean largest error",
                range: low / 1.5..high * 1.5,
                is_logarithmic: true,
            },
            legend: UpperRight,
            layers: shown.into_iter().map(line).collect(),
        }
    }
}

fn laplace(rng: &mut ChaCha20Rng) -> f64 {
    let size: f64 = rng.sample(Exp1);
    if rng.random() { size } else { -size }
}

/// Where cells a bandwidth wide, or shared linearly, lead on two axes, they would be far behind on a spike: all records in one place, the
/// worst of a cell. A rule that holds everywhere gives up some of the lead.
#[test]
fn the_rules_that_lead_on_a_mixture_are_far_behind_on_a_spike() {
    let spike = |x: f64| {
        Setting::of(
            "spike",
            2,
            Adjacency::AddRemove,
            0.1,
            vec![vec![x; 2]; RECORDS],
        )
    };
    // On a node and between nodes, of 13 linear cells an axis and of 10 bins.
    let linear = spike(6.5 / 13.0);
    let bins = spike(0.5);
    for (name, setting, rule) in [
        (
            "linear",
            &linear,
            linear.cells(Spline::Linear, 1.25).expect("a grid"),
        ),
        ("bins", &bins, bins.cells(Spline::Box, 1.0).expect("a grid")),
    ] {
        let (ours, taken) = setting.auto(1.0);
        let times = rule[4].mean / ours[0].mean;
        println!(
            "{name} on a spike, epsilon 1: {:.4}, auto {:.4} by {taken}: {times:.2} times",
            rule[4].mean, ours[0].mean
        );
        assert!(times > 2.0, "{name}: {times}");
    }
}

mod long {
    use super::*;

    #[test]
    fn no_rival_that_follows_a_public_rule_is_far_ahead_and_most_are_behind() {
        let settings = [
            Setting::new("1-D, replace_one, b = 0.1", 1, Adjacency::ReplaceOne, 0.1),
            Setting::new("1-D, replace_one, b = 0.05", 1, Adjacency::ReplaceOne, 0.05),
            Setting::new("1-D, add_remove, b = 0.1", 1, Adjacency::AddRemove, 0.1),
            Setting::new("2-D, add_remove, b = 0.15", 2, Adjacency::AddRemove, 0.15),
            Setting::new("2-D, add_remove, b = 0.1", 2, Adjacency::AddRemove, 0.1),
        ];
        let rows: Vec<_> = std::thread::scope(|scope| {
            let workers: Vec<_> = settings
                .iter()
                .map(|setting| scope.spawn(|| setting.row()))
                .collect();
            workers
                .into_iter()
                .map(|worker| worker.join().expect("it ends"))
                .collect()
        });
        let mut table = String::from("setting,epsilon,method,mean_sup_error,standard_error\n");
        let mut behind = Vec::new();
        let mut worst = 0.0_f64;
        let mut within = 0;
        for (setting, (row, taken)) in settings.iter().zip(&rows) {
            println!("{}", setting.title);
            for (method, means) in METHODS.iter().zip(row) {
                let shown: Vec<String> = means
                    .iter()
                    .map(|mean| format!("{:.4} ±{:.4}", mean.mean, mean.error))
                    .collect();
                println!("  {method:<32} {}", shown.join("  "));
                for (epsilon, Mean { mean, error }) in EPSILONS.iter().zip(means) {
                    let _ = writeln!(
                        table,
                        "\"{}\",{epsilon},\"{method}\",{mean:.6},{error:.6}",
                        setting.title
                    );
                }
            }
            for (i, epsilon) in EPSILONS.iter().enumerate() {
                println!("  {epsilon}: auto takes {}", taken[i]);
                // Only counts of cells have a reading without negative ones.
                let read = row[..OURS]
                    .iter()
                    .map(|means| means[i])
                    .filter(|mean| mean.mean.is_finite());
                let ours = read.min_by(|a, b| a.mean.total_cmp(&b.mean)).unwrap();
                let rule = RULES
                    .map(|method| row[method][i])
                    .min_by(|a, b| a.mean.total_cmp(&b.mean))
                    .unwrap();
                let times = ours.mean / rule.mean;
                let is_close = ours.mean <= 1.05 * rule.mean + 3.0 * ours.error.hypot(rule.error);
                worst = worst.max(times);
                within += u32::from(times <= 1.05);
                behind
                    .extend((!is_close).then(|| {
                        format!("{}, epsilon {epsilon}: {times:.3} times", setting.title)
                    }));
            }
        }
        println!(
            "within 5 % of the best public rule in {within} of 25, or within three standard errors in {}, at worst {worst:.3} times: {behind:#?}",
            25 - behind.len()
        );
        fs::write(picture::output("rivals.csv"), table).expect("written");
        let panels: Vec<Panel> = settings
            .iter()
            .zip(&rows)
            .map(|(setting, (row, _))| setting.panel(row))
            .collect();
        picture::draw(&picture::output("rivals.svg"), 3, picture::WIDE, &panels);
        assert!(behind.is_empty() && worst < 1.3, "{behind:#?}, {worst}");
    }
}
