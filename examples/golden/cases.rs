//! Every kind of synopsis that a client may meet.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use bernstream_functions::bayes::gaussian::GaussianBayes;
use bernstream_functions::bayes::kernel::KernelBayes;
use bernstream_functions::cells::CellDensity;
use bernstream_functions::covariance::CovarianceDensity;
use bernstream_functions::density::LatticeDensity as Intensity;
use bernstream_functions::expression;
use bernstream_functions::expression::{Formula, Variable};
use bernstream_functions::key_counts::{CountedStatistic, KeyCounts, StatisticShare};
use bernstream_functions::logistic::{Logistic, LogisticScore};
use bernstream_functions::machine;
use bernstream_functions::machine::{KernelMachine, Machine};
use bernstream_functions::moments::CosineMoments as Cosines;
use bernstream_functions::regression::LatticeRegression as PriestleyChao;
use bernstream_functions::tables::CellTables;
use bernstream_functions::whitened::KernelDensity;
use bernstream_noise::continual::{CalibratedSeries, SeriesKind};
use bernstream_release::Target;
use bernstream_release::window::accumulator::TableLabel;
use bernstream_release::window::{KeyCounting, RankKey, UnitSum};
use bernstream_synopsis::Synopsis;
use bernstream_synopsis::band::Band;
use bernstream_synopsis::calibrate::Delta;
use bernstream_synopsis::description;
use bernstream_synopsis::description::{
    CalibrationBound, CellLabel, Cells, Classifier, Clip, CountedQuantiles, CountedValue, Density,
    Derivation, Description, ExpressionSum, FreshNoise, ImpliedPrivacy, KeyedCounts, Method,
    Moments, NoiseDistribution, Panes, PanesKind, PricePart, PriorColumn, PrivacyDefinition,
    PrivateChoice, RandomPrivacy, Recommended, Regression, Smoothing, Smoothness, UnitDescription,
    ValueBounds,
};
use bernstream_synopsis::found_keys::{FoundKeys, FoundRow, OverfullRule};
use bernstream_synopsis::grid::Span;
use bernstream_synopsis::histogram::Spline;
use bernstream_synopsis::key_parts::join_parts;
use bernstream_synopsis::key_quantiles::RankGrid;
use bernstream_synopsis::key_threshold::{UNIT_GRAINS, key_threshold};
use bernstream_synopsis::machine::{CubeKernel, Loss};
use bernstream_synopsis::price::Price;
use bernstream_synopsis::told_caps::unit_bins;
use bernstream_synopsis::{
    Adjacency, Basis, KeyBasis, KeyColumn, KeyStatistic, Sensitivity, sampler,
};

use super::file::Case;
use super::release::{AXES, LABEL, LATE, Labelled, Release, carriers, domain, time};

type Found<T> = Result<T, Box<dyn Error>>;

const C: f64 = 30.0;
/// The number of records of a window that keeps them.
const MOST: u32 = 400;

/// Sorted by the first words of their names.
pub fn all() -> Found<Vec<Case>> {
    let mut cases = densities()?;
    cases.extend(variants()?);
    cases.extend(on_kernel_points()?);
    cases.extend(on_cells()?);
    cases.extend(tables()?);
    cases.extend(regressions()?);
    cases.extend(classifiers()?);
    cases.extend(sums()?);
    cases.extend(moments()?);
    cases.extend(tables_by_key()?);
    Ok(cases)
}

fn pure(epsilon: &str) -> Found<Price> {
    Ok(Price::Pure(epsilon.parse()?))
}

fn approximate(epsilon: &str, delta: &str) -> Found<Price> {
    Ok(Price::Approximate {
        epsilon: epsilon.parse()?,
        delta: delta.parse()?,
    })
}

/// Bandwidths in natural units, given as fractions of the axes.
fn in_cube(bandwidths: &[f64]) -> Vec<f64> {
    bandwidths
        .iter()
        .zip(AXES)
        .map(|(b, (_, min, max))| b / (max - min))
        .collect()
}

fn volume(axes: usize) -> f64 {
    AXES.iter()
        .take(axes)
        .map(|(_, min, max)| max - min)
        .product()
}

fn read(release: &Release, orders: &[u32]) -> Found<Case> {
    Ok(case(release.name, release.synopsis()?, orders))
}

fn case(name: &'static str, synopsis: Synopsis, orders: &[u32]) -> Case {
    Case {
        name,
        synopsis,
        orders: orders.to_vec(),
        queries: Vec::new(),
        proper: false,
    }
}

/// The same values with a changed description.
fn changed(
    name: &'static str,
    of: &Synopsis,
    change: impl FnOnce(&mut Description),
) -> Found<Synopsis> {
    let mut about = of.description().clone();
    about.release = name.to_owned();
    change(&mut about);
    Ok(Synopsis::new(about, of.values().to_vec())?)
}

/// Noise of so many times the scale, or a little more: a multiple of 16 units.
fn widen(about: &mut Description, factor: f64) {
    let units = about.noise.scale / about.noise.grid;
    *about = about
        .clone()
        .at_scale((units * factor / 16.0).ceil() * 16.0 / units);
}

/// A density, with the settings that all cases share.
fn density(name: &'static str, target: Arc<dyn Target>, kernel: Smoothing) -> Found<Release> {
    let axes = target.shape().dimensions;
    let columns: Vec<&str> = AXES.iter().take(axes).map(|(column, ..)| *column).collect();
    Ok(Release {
        name,
        key: Some("JFK"),
        axes,
        records: 1_200,
        about: description::TargetDescription::Density(Density {
            kernel,
            divide_by: None,
        }),
        meaning: format!(
            "records per unit of {}; divide by the released mass for a density",
            columns.join(" x ")
        ),
        stands_for: 1.0 / volume(axes),
        offset: 0.0,
        label: Labelled::Number,
        law: NoiseDistribution::DiscreteLaplace,
        price: pure("1")?,
        adjacency: Adjacency::AddRemove,
        order: 2,
        target,
    })
}

fn on_lattice(name: &'static str, bandwidths: &[f64], degree: u32) -> Found<Release> {
    let target = Arc::new(Intensity::new(&in_cube(bandwidths), degree)?);
    density(name, target, Smoothing::Bandwidths(bandwidths.to_vec()))
}

fn densities() -> Found<Vec<Case>> {
    let two = [vec![400.0, 18.0], vec![18.0, 9.0]];
    let parts: Vec<Vec<f64>> = vec![
        vec![two[0][0] / (210.0 * 210.0), two[0][1] / (210.0 * 24.0)],
        vec![two[1][0] / (210.0 * 24.0), two[1][1] / (24.0 * 24.0)],
    ];
    let slanted = Arc::new(CovarianceDensity::new(&parts, 7)?);
    let one = on_lattice("density-1d", &[10.0], 40)?;
    let cube = on_lattice("density-3d", &[40.0, 5.0, 600.0], 3)?;
    let plane = Release {
        law: NoiseDistribution::DiscreteGaussian,
        price: Price::Concentrated("0.1".parse()?),
        order: 3,
        ..on_lattice("density-2d", &[20.0, 3.0], 10)?
    };
    let slanted = Release {
        law: NoiseDistribution::DiscreteGaussian,
        price: approximate("0.8", "0.000001")?,
        key: Some("S\u{e3}o Paulo / GRU"),
        ..density(
            "density-2d-covariance",
            slanted,
            Smoothing::Covariance(two.to_vec()),
        )?
    };
    let fine = Release {
        key: None,
        order: 3,
        ..on_lattice("density-1d-fine", &[4.0], 150)?
    };
    let coarse = Release {
        order: 1,
        law: NoiseDistribution::DiscreteCube,
        ..on_lattice("density-1d-coarse", &[60.0], 1)?
    };
    Ok(vec![
        Case {
            proper: true,
            ..read(&one, &[1, 2, 3, 200])?
        },
        read(&fine, &[1, 3, 50])?,
        read(&coarse, &[1, 2])?,
        Case {
            proper: true,
            ..read(&plane, &[1, 2, 3, 40])?
        },
        read(&slanted, &[1, 2])?,
        read(&Release { order: 1, ..cube }, &[1, 2, 3, 25])?,
    ])
}

/// Optional fields of descriptions, apart from the function.
fn variants() -> Found<Vec<Case>> {
    let one = on_lattice("density-1d", &[10.0], 20)?;
    let constant = Release {
        name: "density-1d-replace-one",
        adjacency: Adjacency::ReplaceOne,
        about: description::TargetDescription::Density(Density {
            kernel: Smoothing::Bandwidths(vec![10.0]),
            divide_by: Some(1_200),
        }),
        meaning: "records per unit of dep_delay; divide by 'divide_by' for a density".to_owned(),
        ..on_lattice("", &[10.0], 20)?
    };
    let plan = Release {
        law: NoiseDistribution::DiscreteGaussian,
        price: approximate("0.5", "0.0000001")?,
        ..on_lattice("", &[10.0], 20)?
    };
    let one = one.synopsis()?;
    let plan = plan.synopsis()?;
    let hours = |from: &str, to: &str| {
        Ok::<_, String>(Span {
            start: time(from)?,
            end: time(to)?,
        })
    };
    let newest = hours("2013-06-18T05:00:00Z", "2013-06-19T05:00:00Z")?;
    let month = hours("2013-05-22T05:00:00Z", "2013-06-19T05:00:00Z")?;

    let chosen = changed("density-1d-chosen", &one, |about| {
        let candidates = vec![vec![5.0], vec![10.0], vec![20.0]];
        // Two records, and what is left of the price for the noise.
        widen(about, 2.0 / 0.85);
        about.choices = vec![
            PrivateChoice::Bandwidths {
                taken: vec![10.0],
                candidates,
                price: "0.1".parse().unwrap_or_default(),
            },
            PrivateChoice::Order {
                taken: 2,
                candidates: vec![1, 2, 4],
                price: "0.05".parse().unwrap_or_default(),
            },
        ];
        let column = "passenger".to_owned();
        let per = "1d".to_owned();
        about.privacy.unit = UnitDescription::User {
            column,
            per,
            max_records_per_window: Some(2),
        };
        if let Some(sensitivity) = &mut about.sensitivity {
            (sensitivity.records, sensitivity.units, sensitivity.values) =
                (2, 2 * sensitivity.units, 2 * sensitivity.values);
        }
        about.incomplete = true;
        about.smoothness = Some(Smoothness::Lipschitz(vec![4.5]));
    })?;
    let hopping = changed("density-1d-hopping", &one, |about| {
        about.window = month;
        about.panes = Some(Panes {
            over: PanesKind::Hopping(28),
            newest,
            step: Some(41),
        });
        let scale = about.noise.scale;
        if let Some(sensitivity) = &mut about.sensitivity {
            sensitivity.fresh = Some(FreshNoise {
                scale,
                nodes: Some(1),
                norm_squared: None,
            });
        }
        // Of independent noise for each of the 28 panes, as far as they are there.
        *about = about.clone().at_scale(28_f64.sqrt());
    })?;
    let cumulative = changed("density-1d-cumulative", &one, |about| {
        about.window = month;
        about.panes = Some(Panes {
            over: PanesKind::Cumulative,
            newest,
            step: None,
        });
        about
            .privacy
            .blocks
            .iter_mut()
            .for_each(|block| (block.start, block.end) = (month.start, month.end));
        about.smoothness = Some(Smoothness::Curvature(vec![0.8]));
    })?;
    let epsilon = "1.5".parse()?;
    let delta = "0.000001".parse()?;
    let planned = changed("density-1d-planned", &plan, |about| {
        let privacy = &mut about.privacy;
        privacy.definition = PrivacyDefinition::Planned;
        privacy.implies = Some(ImpliedPrivacy {
            epsilon: "3".parse().unwrap_or_default(),
            delta,
        });
        privacy.price = Price::Slots(1);
        privacy
            .blocks
            .iter_mut()
            .for_each(|block| (block.spent, block.total) = (Price::Slots(3), Price::Slots(24)));
    })?;
    let rho = Price::Concentrated("0.02".parse()?);
    let gaussian = changed("density-1d-gaussian", &plan, |about| {
        let privacy = &mut about.privacy;
        privacy.definition = PrivacyDefinition::Gaussian;
        privacy.implies = Some(ImpliedPrivacy { epsilon, delta });
        privacy.price = rho;
        privacy
            .blocks
            .iter_mut()
            .for_each(|block| (block.spent, block.total) = (rho, rho));
        // As an older program wrote it.
        (about.band.pointwise, about.form_error) = (None, None);
    })?;
    let random = changed("density-1d-random", &one, |about| {
        let law = sampler::PriorDistribution::Points {
            values: vec![-5.0, 0.0, 30.0],
            weights: Some(vec![2.0, 5.0, 1.0]),
        };
        about.noise.calibrated = CalibrationBound::Sampled;
        if let Some(sensitivity) = &mut about.sensitivity {
            sensitivity.derived = Derivation::Sampled;
        }
        about.privacy.definition = PrivacyDefinition::Random(RandomPrivacy {
            gamma: 0.1,
            records: 300,
            prior: vec![PriorColumn {
                column: "dep_delay".to_owned(),
                law,
            }],
            samples: 285,
            order: 285,
            rho: 0.00974461166524198,
            seed: 1,
            range: [0.0, 300.0],
            epsilon_at_worst: 41.5,
        });
    })?;
    let paper = changed("density-1d-paper", &one, |about| {
        about.noise.calibrated = CalibrationBound::Paper { times_needed: 2.75 };
        if let Some(sensitivity) = &mut about.sensitivity {
            (sensitivity.units, sensitivity.derived) =
                (sensitivity.units * 11 / 4, Derivation::Paper);
        }
        widen(about, 2.75);
    })?;
    let all = [
        chosen, hopping, cumulative, planned, gaussian, random, paper,
    ];
    let names = [
        "density-1d-chosen",
        "density-1d-hopping",
        "density-1d-cumulative",
        "density-1d-planned",
        "density-1d-gaussian",
        "density-1d-random",
        "density-1d-paper",
    ];
    let mut cases = vec![read(&constant, &[1, 2])?];
    cases.extend(
        names
            .into_iter()
            .zip(all)
            .map(|(name, synopsis)| case(name, synopsis, &[2])),
    );
    Ok(cases)
}

fn on_kernel_points() -> Found<Vec<Case>> {
    let line = Arc::new(KernelDensity::diagonal(&in_cube(&[15.0]), 14)?);
    let parts = vec![vec![0.03, 0.012], vec![0.012, 0.02]];
    let natural = vec![
        vec![0.03 * 210.0 * 210.0, 0.012 * 210.0 * 24.0],
        vec![0.012 * 210.0 * 24.0, 0.02 * 24.0 * 24.0],
    ];
    let plane = Arc::new(KernelDensity::covariance(&parts, 16)?);
    let cube = Arc::new(KernelDensity::diagonal(&[0.5, 0.6, 0.7], 10)?);
    let by = |bandwidths: &[f64]| Smoothing::Bandwidths(bandwidths.to_vec());
    let line = Release {
        law: NoiseDistribution::Ball,
        order: 1,
        ..density("density-points-1d", line, by(&[15.0]))?
    };
    let plane = Release {
        law: NoiseDistribution::Ball,
        order: 1,
        key: None,
        ..density(
            "density-points-2d-covariance",
            plane,
            Smoothing::Covariance(natural),
        )?
    };
    let cube = Release {
        law: NoiseDistribution::DiscreteGaussian,
        price: approximate("1", "0.000000001")?,
        order: 1,
        ..density(
            "density-points-3d",
            cube,
            by(&[0.5 * 210.0, 0.6 * 24.0, 0.7 * 3000.0]),
        )?
    };
    let vouched = changed("density-points-1d-norm", &line.synopsis()?, |about| {
        about.smoothness = Some(Smoothness::Norm(900.0));
    })?;
    Ok(vec![
        Case {
            proper: true,
            ..read(&line, &[1])?
        },
        case("density-points-1d-norm", vouched, &[1]),
        read(&plane, &[1])?,
        read(&cube, &[1])?,
    ])
}

fn on_cells() -> Found<Vec<Case>> {
    let by = |bandwidths: &[f64]| Smoothing::Bandwidths(bandwidths.to_vec());
    let diagonal = |name, bandwidths: &[f64], spline, steps: &[u32]| -> Found<Release> {
        let target = Arc::new(CellDensity::diagonal(&in_cube(bandwidths), spline, steps)?);
        Ok(Release {
            order: 1,
            ..density(name, target, by(bandwidths))?
        })
    };
    let line = diagonal("density-cells-1d-box", &[10.0], Spline::Box, &[24])?;
    let constant = Release {
        adjacency: Adjacency::ReplaceOne,
        about: description::TargetDescription::Density(Density {
            kernel: by(&[15.0]),
            divide_by: Some(1_200),
        }),
        meaning: "records per unit of dep_delay; divide by 'divide_by' for a density".to_owned(),
        price: pure("0.05")?,
        ..diagonal(
            "density-cells-1d-quadratic",
            &[15.0],
            Spline::Quadratic,
            &[14],
        )?
    };
    let plane = Release {
        price: pure("0.2")?,
        ..diagonal("density-cells-2d", &[20.0, 3.0], Spline::Linear, &[10, 8])?
    };
    let cube = Release {
        key: None,
        ..diagonal(
            "density-cells-3d",
            &[40.0, 5.0, 600.0],
            Spline::Linear,
            &[5, 5, 4],
        )?
    };
    let natural = vec![vec![400.0, 18.0], vec![18.0, 9.0]];
    let widths = [210.0, 24.0];
    let entry = |i: usize, j: usize| natural[i][j] / (widths[i] * widths[j]);
    let parts: Vec<Vec<f64>> = (0..2)
        .map(|i| (0..2).map(|j| entry(i, j)).collect())
        .collect();
    let constant = changed(
        "density-cells-1d-quadratic",
        &constant.synopsis()?,
        |about| {
            about.reading = Some(Recommended::Nonnegative);
        },
    )?;
    let slanted = Arc::new(CellDensity::covariance(
        &parts,
        Spline::Quadratic,
        &[12, 9],
    )?);
    let slanted = Release {
        law: NoiseDistribution::DiscreteGaussian,
        price: approximate("0.5", "0.000001")?,
        order: 1,
        ..density(
            "density-cells-2d-covariance",
            slanted,
            Smoothing::Covariance(natural),
        )?
    };
    Ok(vec![
        Case {
            proper: true,
            ..read(&line, &[1, 2])?
        },
        Case {
            proper: true,
            ..case("density-cells-1d-quadratic", constant, &[1])
        },
        Case {
            proper: true,
            ..read(&plane, &[1])?
        },
        read(&slanted, &[1])?,
        read(&cube, &[1])?,
    ])
}

fn tables() -> Found<Vec<Case>> {
    let (column, min, max) = LABEL;
    let column = column.to_owned();
    let number = CellLabel::Number {
        column: column.clone(),
        min,
        max,
    };
    let above = CellLabel::Above {
        column: column.clone(),
        above: LATE,
    };
    let classes = CellLabel::Classes {
        column: "punctuality".to_owned(),
        values: vec![1.0, 2.0, 3.0],
    };
    let of = |name,
              bandwidths: &[f64],
              spline,
              steps: &[u32],
              label: Option<CellLabel>|
     -> Found<Release> {
        let (by, labelled) = match &label {
            None => (None, Labelled::Number),
            Some(CellLabel::Number { .. }) => (Some(TableLabel::Number), Labelled::Number),
            Some(CellLabel::Above { .. }) => (Some(TableLabel::Number), Labelled::Class),
            Some(CellLabel::Classes { .. }) => (Some(TableLabel::Classes(3)), Labelled::Classes),
        };
        let target = Arc::new(CellTables::new(&in_cube(bandwidths), spline, steps, by)?);
        Ok(Release {
            about: description::TargetDescription::Cells(Cells { label }),
            meaning: "noisy counts of cells".to_owned(),
            stands_for: 1.0,
            order: 1,
            label: labelled,
            ..density(name, target, Smoothing::Bandwidths(Vec::new()))?
        })
    };
    let poor = Release {
        records: 60,
        price: pure("0.1")?,
        adjacency: Adjacency::ReplaceOne,
        ..of(
            "cells-number-1d-poor",
            &[15.0],
            Spline::Box,
            &[16],
            Some(number.clone()),
        )?
    };
    let gaussian = Release {
        law: NoiseDistribution::DiscreteGaussian,
        price: Price::Concentrated("0.1".parse()?),
        ..of(
            "cells-classes-2d",
            &[30.0, 3.0],
            Spline::Quadratic,
            &[9, 8],
            Some(classes),
        )?
    };
    let releases = [
        of("cells-1d", &[10.0], Spline::Quadratic, &[28], None)?,
        of(
            "cells-number-1d",
            &[12.0],
            Spline::Quadratic,
            &[20],
            Some(number.clone()),
        )?,
        poor,
        of(
            "cells-above-2d",
            &[25.0, 3.0],
            Spline::Linear,
            &[10, 8],
            Some(above),
        )?,
        gaussian,
        of(
            "cells-number-3d",
            &[60.0, 8.0, 900.0],
            Spline::Linear,
            &[4, 4, 4],
            Some(number),
        )?,
    ];
    releases.iter().map(|release| read(release, &[1])).collect()
}

fn settings(
    kernel: CubeKernel,
    loss: Loss,
    dimensions: usize,
    degree: u32,
) -> machine::MachineSettings {
    machine::MachineSettings {
        kernel,
        loss,
        c: C,
        records: MOST,
        dimensions,
        degree,
        landmarks: None,
    }
}

fn regression(name: &'static str, target: Arc<dyn Target>, method: Method) -> Found<Release> {
    let (label, min, max) = LABEL;
    Ok(Release {
        about: description::TargetDescription::Regression(Regression {
            label: label.to_owned(),
            min,
            max,
            method,
        }),
        meaning: format!(
            "{label} as expected; {} where there are no records",
            (min + max) / 2.0
        ),
        records: MOST as usize,
        stands_for: (max - min) / 2.0,
        offset: (min + max) / 2.0,
        ..density(name, target, Smoothing::Bandwidths(Vec::new()))?
    })
}

fn method(kernel: CubeKernel, loss: Loss) -> Method {
    Method::KernelMachine {
        loss,
        kernel,
        c: C,
        max_records: MOST,
        landmarks: None,
    }
}

fn regressions() -> Found<Vec<Case>> {
    let wide = CubeKernel::Gaussian { bandwidth: 0.4 };
    let line = Arc::new(PriestleyChao::new(20.0 / 210.0, 25, 1.0 / 210.0, MOST)?);
    let line = Release {
        price: pure("4")?,
        ..regression(
            "regression-priestley-chao-1d",
            line,
            Method::PriestleyChao {
                bandwidth: 20.0,
                gap: 1.0,
                max_records: MOST,
            },
        )?
    };
    let plane = Arc::new(Machine::new(settings(wide, Loss::Huber, 2, 7))?);
    let plane = Release {
        law: NoiseDistribution::DiscreteCube,
        ..regression("regression-machine-2d", plane, method(wide, Loss::Huber))?
    };
    let points = Arc::new(KernelMachine::new(settings(wide, Loss::Huber, 1, 1), 7)?);
    let points = Release {
        law: NoiseDistribution::Ball,
        order: 1,
        ..regression("regression-points-1d", points, method(wide, Loss::Huber))?
    };
    let ridge = Arc::new(KernelMachine::new(
        settings(CubeKernel::Linear, Loss::Squared, 2, 1),
        3,
    )?);
    let ridge = Release {
        law: NoiseDistribution::Ball,
        adjacency: Adjacency::ReplaceOne,
        order: 1,
        ..regression(
            "regression-points-linear-2d",
            ridge,
            method(CubeKernel::Linear, Loss::Squared),
        )?
    };
    Ok(vec![
        read(&line, &[1, 2])?,
        read(&plane, &[1, 2, 3])?,
        read(&points, &[1])?,
        read(&ridge, &[1])?,
    ])
}

fn classifier(
    name: &'static str,
    target: Arc<dyn Target>,
    method: Method,
    stands_for: f64,
) -> Found<Release> {
    let label = LABEL.0.to_owned();
    Ok(Release {
        about: description::TargetDescription::Classifier(Classifier {
            label,
            above: LATE,
            method,
        }),
        meaning: format!(
            "a score: above 0 where {} > {LATE} is expected, below 0 where it is not",
            LABEL.0
        ),
        records: MOST as usize,
        label: Labelled::Class,
        stands_for,
        ..density(name, target, Smoothing::Bandwidths(Vec::new()))?
    })
}

fn classifiers() -> Found<Vec<Case>> {
    let bayes = Arc::new(KernelBayes::new(&in_cube(&[15.0, 2.0]), 7)?);
    let bayes = Release {
        records: 1_200,
        ..classifier(
            "classifier-kernel-bayes-2d",
            bayes,
            Method::KernelBayes {
                bandwidths: vec![15.0, 2.0],
            },
            1.0 / volume(2),
        )?
    };
    let deviations = vec![10.0, 1.5, 200.0];
    let normal = Arc::new(GaussianBayes::new(&in_cube(&deviations), 2)?);
    let normal = Release {
        records: 1_200,
        law: NoiseDistribution::DiscreteCube,
        order: 1,
        ..classifier(
            "classifier-gaussian-bayes-3d",
            normal,
            Method::GaussianBayes {
                min_deviations: deviations,
            },
            1.0 / volume(3),
        )?
    };
    let on_points = |name, kernel, loss, axes, most| -> Found<Release> {
        let target = Arc::new(KernelMachine::new(settings(kernel, loss, axes, 1), most)?);
        Ok(Release {
            law: NoiseDistribution::Ball,
            order: 1,
            ..classifier(name, target, method(kernel, loss), 1.0)?
        })
    };
    let laplacian = CubeKernel::Laplacian { bandwidth: 0.5 };
    let polynomial = CubeKernel::Polynomial { power: 3 };
    let flat = Arc::new(Logistic::new(2, C, MOST, LogisticScore::Linear)?);
    let logistic = Method::Logistic {
        c: C,
        max_records: MOST,
    };
    let flat = Release {
        order: 1,
        ..classifier("classifier-logistic-2d", flat, logistic.clone(), 1.0)?
    };
    let steep = Arc::new(Logistic::new(3, C, MOST, LogisticScore::Linear)?);
    let steep = Release {
        order: 1,
        law: NoiseDistribution::DiscreteCube,
        ..classifier("classifier-logistic-3d", steep, logistic.clone(), 1.0)?
    };
    let machine = Arc::new(Machine::new(settings(laplacian, Loss::Logistic, 1, 20))?);
    let machine = classifier(
        "classifier-machine-1d",
        machine,
        method(laplacian, Loss::Logistic),
        1.0,
    )?;
    let likely = Arc::new(Logistic::new(
        2,
        C,
        MOST,
        LogisticScore::Sigmoid { degree: 6 },
    )?);
    let likely = Release {
        about: description::TargetDescription::Probability(Classifier {
            label: LABEL.0.to_owned(),
            above: LATE,
            method: logistic.clone(),
        }),
        meaning: format!("the probability that {} > {LATE}", LABEL.0),
        price: pure("2")?,
        ..classifier("probability-2d", likely, logistic, 1.0)?
    };
    Ok(vec![
        read(&bayes, &[1, 2])?,
        read(&normal, &[1, 2])?,
        read(
            &on_points(
                "classifier-points-laplacian-1d",
                laplacian,
                Loss::Hinge,
                1,
                8,
            )?,
            &[1],
        )?,
        read(
            &on_points(
                "classifier-points-polynomial-2d",
                polynomial,
                Loss::Logistic,
                2,
                10,
            )?,
            &[1],
        )?,
        read(
            &on_points(
                "classifier-points-linear-3d",
                CubeKernel::Linear,
                Loss::Hinge,
                3,
                4,
            )?,
            &[1],
        )?,
        read(&flat, &[1, 2])?,
        read(&steep, &[1])?,
        read(&machine, &[1, 2, 3])?,
        read(&likely, &[1, 2])?,
    ])
}

fn sum(
    name: &'static str,
    text: &str,
    axes: usize,
    degree: u32,
    clip: Option<Clip>,
) -> Found<Release> {
    let variables: Vec<Variable> = domain(axes)
        .into_iter()
        .map(|axis| Variable {
            name: axis.column,
            min: axis.min,
            max: axis.max,
        })
        .collect();
    let (label, min, max) = LABEL;
    let label = expression::LabelVariable::Number(Variable {
        name: label.to_owned(),
        min,
        max,
    });
    let formula = Formula::new(text, &variables, Some(&label), degree)?;
    let target = match clip {
        Some(Clip { sup, sum }) => formula.with_clipped_ranges(sup, sum)?,
        None => formula.with_proved_ranges()?,
    };
    let clipped = clip.map(|Clip { sup, sum }| {
        format!(", each clipped to {sup} a lattice point and {sum} in all")
    });
    Ok(Release {
        about: description::TargetDescription::Sum(ExpressionSum {
            expression: text.to_owned(),
            clip,
        }),
        meaning: format!(
            "the sum of {text} over the records{}",
            clipped.unwrap_or_default()
        ),
        stands_for: 1.0,
        ..density(name, Arc::new(target), Smoothing::Bandwidths(Vec::new()))?
    })
}

fn sums() -> Found<Vec<Case>> {
    let line = sum(
        "sum-1d",
        "max(0, 1 - abs(dep_delay - at.dep_delay) / 30)",
        1,
        16,
        None,
    )?;
    let clip = Some(Clip {
        sup: 60.0,
        sum: 2_000.0,
    });
    let clipped =
        "arr_delay * exp(-((hour - at.hour) / 4)^2) * exp(-((dep_delay - at.dep_delay) / 60)^2)";
    let plane = Release {
        records: 300,
        ..sum("sum-2d-clipped", clipped, 2, 6, clip)?
    };
    Ok(vec![read(&line, &[1, 2])?, read(&plane, &[1, 2])?])
}

fn moments() -> Found<Vec<Case>> {
    let moments = |name, axes, frequencies, law, queries: &[&'static str]| -> Found<Case> {
        let target = Arc::new(Cosines::new(axes, frequencies)?);
        let release = Release {
            about: description::TargetDescription::Moments(Moments { frequencies }),
            meaning: "sums over the records of products of cosines of the angles of the columns"
                .to_owned(),
            stands_for: 1.0,
            order: 1,
            law,
            ..density(name, target, Smoothing::Bandwidths(Vec::new()))?
        };
        Ok(Case {
            queries: queries.to_vec(),
            ..read(&release, &[1])?
        })
    };
    let alone = [
        "1",
        "dep_delay",
        "dep_delay^3 - 2 * dep_delay",
        "exp(-(dep_delay/60)^2)",
        "1 / (1 + exp((15 - dep_delay) / 10))",
    ];
    let both = [
        "dep_delay * hour",
        "exp(-((dep_delay - 15)/40)^2/2) * exp(-((hour - 17)/6)^2/2)",
    ];
    Ok(vec![
        moments(
            "moments-1d",
            1,
            24,
            NoiseDistribution::DiscreteLaplace,
            &alone,
        )?,
        moments(
            "moments-1d-ball",
            1,
            6,
            NoiseDistribution::Ball,
            &["dep_delay", "exp(-(dep_delay/60)^2)"],
        )?,
        moments("moments-2d", 2, 8, NoiseDistribution::DiscreteCube, &both)?,
        moments(
            "moments-3d",
            3,
            4,
            NoiseDistribution::DiscreteLaplace,
            &["dep_delay", "dep_delay * hour * distance / 1000"],
        )?,
    ])
}

/// Most keys of a user, in a window of one of the tables by key.
const MOST_KEYS: u32 = 2;
/// Keys up to which users are told apart, where caps are told.
const TOLD_KEYS: u32 = 4;
/// What a passenger pays for a flight.
const FARE: (&str, f64, f64) = ("fare", -50.0, 450.0);

/// The case whose values have variances.
const WITH_VARIANCES: &str = "counts-variance";

/// Counts by key: users with records and values, and users with sums that are bounded for each.
fn tables_by_key() -> Found<Vec<Case>> {
    let (column, min, max) = FARE;
    let value = CountedValue {
        column: column.to_owned(),
        min,
        max,
    };
    let of_values = by_key(
        "counts-laplace",
        NoiseDistribution::DiscreteLaplace,
        pure("1")?,
        &[
            NamedShare::new("users", CountedStatistic::Users, 0.3),
            NamedShare::new("values", CountedStatistic::Values, 0.7),
        ],
        KeyedCounts {
            max_keys: MOST_KEYS,
            max_records: Some(3),
            per_user: None,
            value: Some(value.clone()),
            quantiles: None,
            parts: Vec::new(),
        },
    )?;
    let of_sums = by_key(
        "counts-gaussian",
        NoiseDistribution::DiscreteGaussian,
        Price::Concentrated("0.125".parse()?),
        &[
            NamedShare::new("users", CountedStatistic::Users, 0.5),
            NamedShare::new("records", CountedStatistic::Records, 0.25),
            NamedShare::new("sums", CountedStatistic::Sums, 0.25),
        ],
        KeyedCounts {
            max_keys: MOST_KEYS,
            max_records: Some(2),
            per_user: Some(ValueBounds {
                min: -100.0,
                max: 800.0,
            }),
            value: Some(value.clone()),
            quantiles: None,
            parts: Vec::new(),
        },
    )?;
    let of_caps = by_key(
        "counts-caps",
        NoiseDistribution::DiscreteLaplace,
        pure("1")?,
        &[
            NamedShare::new("users", CountedStatistic::Users, 0.75),
            NamedShare::new("caps", CountedStatistic::Caps, 0.25),
        ],
        KeyedCounts {
            max_keys: MOST_KEYS,
            max_records: None,
            per_user: None,
            value: None,
            quantiles: None,
            parts: Vec::new(),
        },
    )?;
    let of_parts = by_key(
        "counts-columns",
        NoiseDistribution::DiscreteLaplace,
        pure("1")?,
        &[
            NamedShare::new("users", CountedStatistic::Users, 0.3),
            NamedShare::new("values", CountedStatistic::Values, 0.7),
        ],
        KeyedCounts {
            max_keys: MOST_KEYS,
            max_records: Some(3),
            per_user: None,
            value: Some(CountedValue {
                column: column.to_owned(),
                min: 0.0,
                max,
            }),
            quantiles: None,
            parts: Vec::new(),
        },
    )?;
    let of_parts = Case {
        synopsis: changed("counts-columns", &of_parts.synopsis, |about| {
            about.key_columns = ["carrier", "sold by"].map(str::to_owned).to_vec();
            about.meaning = "users, records and fares of each carrier and shop".to_owned();
            if let Basis::Keys(basis) = &mut about.basis {
                basis.keys = SHOPS.iter().map(|parts| join_parts(parts)).collect();
            }
        })?,
        ..of_parts
    };
    let of_windows = by_key(
        "counts-running",
        NoiseDistribution::DiscreteGaussian,
        Price::Concentrated("0.125".parse()?),
        &[NamedShare::new("values", CountedStatistic::Values, 1.0)],
        KeyedCounts {
            max_keys: MOST_KEYS,
            max_records: Some(3),
            per_user: None,
            value: Some(value.clone()),
            quantiles: None,
            parts: Vec::new(),
        },
    )?;
    let running = Case {
        synopsis: running_table(&of_windows.synopsis)?,
        ..of_windows
    };
    let of_squares = by_key(
        WITH_VARIANCES,
        NoiseDistribution::DiscreteGaussian,
        Price::Concentrated("0.125".parse()?),
        &[
            NamedShare::new("users", CountedStatistic::Users, 0.25),
            NamedShare::new("values", CountedStatistic::Values, 0.75),
        ],
        KeyedCounts {
            max_keys: MOST_KEYS,
            max_records: Some(3),
            per_user: None,
            value: Some(value.clone()),
            quantiles: None,
            parts: Vec::new(),
        },
    )?;
    let of_ranges = by_key(
        "quantiles-laplace",
        NoiseDistribution::DiscreteLaplace,
        pure("1")?,
        &[NamedShare::new("ranges", CountedStatistic::Ranges, 1.0)],
        KeyedCounts {
            max_keys: 1,
            max_records: None,
            per_user: None,
            value: Some(value.clone()),
            quantiles: Some(CountedQuantiles {
                grid: RankGrid {
                    places: 32,
                    block: Some(6),
                },
                parts: vec![0.25, 0.5, 0.9, 0.999],
            }),
            parts: Vec::new(),
        },
    )?;
    let of_places = by_key(
        "quantiles-gaussian",
        NoiseDistribution::DiscreteGaussian,
        Price::Concentrated("0.125".parse()?),
        &[NamedShare::new("ranges", CountedStatistic::Ranges, 1.0)],
        KeyedCounts {
            max_keys: MOST_KEYS,
            max_records: None,
            per_user: None,
            value: Some(value),
            quantiles: Some(CountedQuantiles {
                grid: RankGrid {
                    places: 9,
                    block: None,
                },
                parts: vec![0.5],
            }),
            parts: Vec::new(),
        },
    )?;
    let mut cases = vec![
        of_values, of_sums, of_caps, of_parts, running, of_squares, of_ranges, of_places,
    ];
    cases.extend(found_keys()?);
    Ok(cases)
}

/// Row of a table of keys that nobody listed.
struct FoundCount {
    key: &'static str,
    /// Grid units of the noise.
    count: i32,
    is_new: bool,
    /// Whether a window before this one announced the key, and its number does not renew that.
    is_old: bool,
}

impl FoundCount {
    const fn new(key: &'static str, count: i32) -> Self {
        FoundCount {
            key,
            count,
            is_new: true,
            is_old: false,
        }
    }

    /// A key that was announced before.
    const fn announced(key: &'static str, count: i32, is_old: bool) -> Self {
        FoundCount {
            key,
            count,
            is_new: false,
            is_old,
        }
    }
}

/// Users of pages: numbers that are just above the threshold, far above it, and of announced keys also below it and below 0. Two of the
/// names are none that a page or a spreadsheet should take for its own.
const PAGES: [FoundCount; 7] = [
    FoundCount::new("/", 2_031_616),
    FoundCount::announced("/about", -3_277, true),
    FoundCount::announced("/basket", 912_384, false),
    FoundCount::new("/index.html?from=Lin\u{f3}pe", 179_201),
    FoundCount::announced("/offers", 66_003, true),
    FoundCount::new("/\u{202e}lmth.\u{1b}[2J<script>", 240_128),
    FoundCount::new("=1+1", 187_500),
];
/// Errors of services.
const ERRORS: [FoundCount; 4] = [
    FoundCount::new("api/404", 84_641),
    FoundCount::announced("api/500", 20_477, true),
    FoundCount::announced("shop%2Fweb/404", 8_207_331, false),
    FoundCount::new("shop%2Fweb/50%25", 101_370),
];

/// Counts of keys that nobody listed: users of pages, and errors of services, also in windows that have none to show.
fn found_keys() -> Found<Vec<Case>> {
    let pages = FoundTable {
        counted: "users",
        max_keys: MOST_KEYS,
        most: 1000,
        delta: "0.000000001",
        overfull: None,
        rows: &PAGES,
    };
    let rule = OverfullRule {
        limit: 1_000_000,
        soft_limit: 959_905,
        is_overfull: false,
    };
    let errors = FoundTable {
        counted: "records",
        max_keys: 1,
        // The table is full.
        most: 4,
        // The test whether there are too many keys takes 10^-12 of what the window pays.
        delta: "0.000000000999",
        overfull: Some(rule),
        rows: &ERRORS,
    };
    let none = FoundTable { rows: &[], ..pages };
    let too_many = FoundTable {
        rows: &[],
        overfull: Some(OverfullRule {
            is_overfull: true,
            ..rule
        }),
        ..errors
    };
    Ok(vec![
        found_case("counts-found", &pages)?,
        found_case("counts-found-columns", &errors)?,
        found_case("counts-found-empty", &none)?,
        found_case("counts-found-overfull", &too_many)?,
    ])
}

/// A table of keys that nobody listed.
#[derive(Clone, Copy)]
struct FoundTable {
    counted: &'static str,
    max_keys: u32,
    most: u32,
    /// That of the threshold.
    delta: &'static str,
    overfull: Option<OverfullRule>,
    rows: &'static [FoundCount],
}

impl FoundTable {
    fn is_of_users(&self) -> bool {
        self.counted == "users"
    }

    /// The description of a listed table, changed to be that of this one.
    fn describe(&self, name: &str, mut about: Description) -> Found<Description> {
        const EPSILON: &str = "1";
        // A thousandth of epsilon pays for the test of too many keys, and scales are multiples of 16.
        let scale = match self.overfull {
            Some(_) => 4112,
            None => u64::from(self.max_keys) * UNIT_GRAINS,
        };
        let delta: Delta = self.delta.parse()?;
        let mut found = FoundKeys {
            threshold: key_threshold(scale, self.max_keys, delta).ok_or("a threshold")?,
            delta,
            keep_seconds: 604_800,
            most: self.most,
            longest: 128,
            overfull: self.overfull,
            rows: Vec::new(),
        };
        let renewed = found.until(about.window.end);
        for row in self.rows {
            let days = Duration::from_secs(86_400) * 3;
            found.rows.push(FoundRow {
                is_new: row.is_new,
                until: if row.is_old {
                    renewed.minus(days)
                } else {
                    renewed
                },
            });
        }
        about.release = name.to_owned();
        about.meaning = format!("{} of each page", self.counted);
        if !self.is_of_users() {
            about.key_columns = ["service", "code"].map(str::to_owned).to_vec();
            about.meaning = "errors of each service and code".to_owned();
            about.privacy.unit = UnitDescription::Record;
        }
        let of_one = match self.is_of_users() {
            true => "All records of one passenger in one day",
            false => "One record",
        };
        about.target = description::TargetDescription::Counts(KeyedCounts {
            max_keys: self.max_keys,
            max_records: (!self.is_of_users()).then_some(1),
            per_user: None,
            value: None,
            quantiles: None,
            parts: vec![PricePart {
                of: self.counted.to_owned(),
                part: 1.0,
            }],
        });
        about.basis = Basis::Keys(KeyBasis {
            keys: self.rows.iter().map(|row| row.key.to_owned()).collect(),
            columns: vec![KeyColumn {
                statistic: match self.is_of_users() {
                    true => KeyStatistic::Users,
                    false => KeyStatistic::Records,
                },
                unit: 1.0 / UNIT_GRAINS as f64,
            }],
            units: None,
            found: Some(found),
        });
        about.noise.scale = scale as f64;
        about.noise.grid = 1.0;
        let band = Band::simulate(&about.shape(), about.noise.law, 1);
        about.band = band.scaled_to_noise(&about.noise);
        if let Some(sensitivity) = &mut about.sensitivity {
            sensitivity.units = u64::from(self.max_keys) * UNIT_GRAINS;
            sensitivity.values = u64::from(self.max_keys);
        }
        about.privacy.definition = PrivacyDefinition::Approximate;
        about.privacy.price = approximate(EPSILON, "0.000000001")?;
        about.privacy.in_words = format!(
            "{of_one} more or less changes the probability of what is published by no more than a price of {} allows.",
            about.privacy.price
        );
        for block in &mut about.privacy.blocks {
            block.spent = about.privacy.price;
            block.total = about.privacy.price;
        }
        Ok(about)
    }
}

fn found_case(name: &'static str, table: &FoundTable) -> Found<Case> {
    let listed = by_key(
        "listed",
        NoiseDistribution::DiscreteLaplace,
        pure("1")?,
        &[NamedShare::new("users", CountedStatistic::Users, 1.0)],
        KeyedCounts {
            max_keys: MOST_KEYS,
            max_records: None,
            per_user: None,
            value: None,
            quantiles: None,
            parts: Vec::new(),
        },
    )?;
    let about = table.describe(name, listed.synopsis.description().clone())?;
    let grid = 1.0 / UNIT_GRAINS as f64;
    let values = table.rows.iter().map(|row| f64::from(row.count) * grid);
    let synopsis = Synopsis::new(about, values.collect())?;
    Ok(case(name, synopsis, &[1]))
}

/// The newest of 28 running sums of a table of one window, as a worker describes it: with the noise of their series.
fn running_table(of: &Synopsis) -> Found<Synopsis> {
    let before = of.description();
    let change = before.sensitivity.as_ref().map_or(0, |one| one.units);
    let (values, grid) = (of.values().len(), before.noise.grid);
    let series = CalibratedSeries::calibrated(
        SeriesKind::Cumulative,
        before.noise.law,
        Sensitivity(change),
        values,
        1,
        before.privacy.price,
        365,
    )?;
    let step = 27;
    let newest = before.window;
    let start = time("2013-05-22T05:00:00Z")?;
    let deviation = before.noise.law.deviation(values) * before.noise.scale;
    let factor = series.deviation(values, step) * grid / deviation;
    changed("counts-running", of, |about| {
        about.window.start = start;
        about.panes = Some(Panes {
            over: PanesKind::Cumulative,
            newest,
            step: Some(step),
        });
        if let Some(sensitivity) = &mut about.sensitivity {
            sensitivity.fresh = Some(series.describe_noise(grid));
        }
        *about = about.clone().at_scale(factor);
    })
}

/// Keys of two columns: their parts have what stands between parts, and what escapes it.
const SHOPS: [[&str; 2]; 6] = [
    ["AA", "web"],
    ["AA", "desk/phone"],
    ["B6", "web"],
    ["AA", "50% club"],
    ["Lin\u{f3}pe \"air\"", "web"],
    ["B6", "%2F"],
];

/// A statistic of a table by key, its name in the description, and its part of the price.
struct NamedShare {
    name: &'static str,
    share: StatisticShare,
}

impl NamedShare {
    fn new(name: &'static str, statistic: CountedStatistic, part: f64) -> Self {
        NamedShare {
            name,
            share: StatisticShare { statistic, part },
        }
    }
}

fn by_key(
    name: &'static str,
    law: NoiseDistribution,
    price: Price,
    named: &[NamedShare],
    about: KeyedCounts,
) -> Found<Case> {
    let (_, value_min, value_max) = FARE;
    let tells_caps = named.iter().any(|named| named.name == "caps");
    let counting = KeyCounting {
        keys: carriers(),
        max_keys: about.max_keys,
        max_records: about.max_records.unwrap_or(1),
        sum: about.per_user.map(|ValueBounds { min, max }| UnitSum {
            value_min,
            value_max,
            min,
            max,
        }),
        keeps_squares: name == WITH_VARIANCES,
        grid: about.quantiles.as_ref().map(|quantiles| quantiles.grid),
        unit_bins: match tells_caps {
            true => unit_bins(TOLD_KEYS, carriers().len() as u32, about.max_keys),
            false => Vec::new(),
        },
        ranks: RankKey::for_pipeline("flights"),
    };
    let shares: Vec<StatisticShare> = named.iter().map(|named| named.share).collect();
    let parts = named.iter().map(|named| PricePart {
        of: named.name.to_owned(),
        part: named.share.part,
    });
    let about = KeyedCounts {
        parts: parts.collect(),
        ..about
    };
    let target = Arc::new(KeyCounts::new(counting, &shares, law.norm())?);
    let release = Release {
        key: None,
        axes: 0,
        about: description::TargetDescription::Counts(about),
        meaning: "users, records and fares of each carrier".to_owned(),
        stands_for: 1.0,
        order: 1,
        law,
        price,
        ..density(name, target, Smoothing::Bandwidths(Vec::new()))?
    };
    let synopsis = changed(name, &release.synopsis()?, |about| {
        about.privacy.unit = UnitDescription::User {
            column: "passenger".to_owned(),
            per: "1d".to_owned(),
            max_records_per_window: None,
        };
        about.privacy.in_words = format!(
            "All records of one passenger in one day more or less change the probability of what is published by no more than a \
             price of {price} allows."
        );
    })?;
    Ok(case(name, synopsis, &[1]))
}
