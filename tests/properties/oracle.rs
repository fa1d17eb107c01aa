//! The four samplers against laws that were computed by exact arithmetic elsewhere: `tests/data/noise.py` knows the densities, and
//! nothing of how they are drawn.

use bernstream_noise::calibrate::Scale;
use bernstream_noise::noise::{
    DiscreteCube, DiscreteGaussian, DiscreteLaplace, Generator, RoundedBall,
};
use bernstream_synopsis::NoiseDistribution;

use crate::statistics::chi_square;

const VECTORS: &str = include_str!("../data/noise.txt");

/// A law, and the probabilities of the cells of one of its values or of the largest of them.
#[derive(Debug)]
struct Case {
    law: NoiseDistribution,
    scale: u64,
    values: usize,
    is_largest: bool,
    /// The last whole number of each cell, rising, and the probability.
    cells: Vec<(i128, f64)>,
}

fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    for line in VECTORS.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["digit" | "carry", ..] => {}
            ["case", law, scale, values, what] => cases.push(Case {
                law: serde_json::from_value(law.replace('-', " ").into()).unwrap(),
                scale: scale.parse().unwrap(),
                values: values.parse().unwrap(),
                is_largest: what == "largest",
                cells: Vec::new(),
            }),
            [_, to, mass] => {
                let to = if to == "-" {
                    i128::MAX
                } else {
                    to.parse().unwrap()
                };
                cases
                    .last_mut()
                    .unwrap()
                    .cells
                    .push((to, mass.parse().unwrap()));
            }
            _ => panic!("{line}"),
        }
    }
    cases
}

impl Case {
    /// Fewer of vectors that take longer.
    fn draws(&self) -> usize {
        1 << if self.values > 10 { 16 } else { 18 }
    }

    /// One number of every vector: the largest size, or the values in turn, the first and the last among them.
    fn drawn(&self, scale: u64, values: usize, seed: u8) -> Vec<i128> {
        let scale = Scale::new(scale).unwrap();
        let mut generator = Generator::frozen([seed; 32]);
        let mut numbers = vec![0; self.draws()];
        let cube = DiscreteCube::new(scale);
        let ball = RoundedBall::new(scale);
        let mut vector = vec![0; values];
        let fill: &dyn Fn(&mut Generator, &mut [i128]) = match self.law {
            // Values are independent: one vector of all.
            NoiseDistribution::DiscreteLaplace => {
                DiscreteLaplace::new(scale).fill(&mut generator, &mut numbers);
                return numbers;
            }
            NoiseDistribution::DiscreteGaussian => {
                DiscreteGaussian::new(scale).fill(&mut generator, &mut numbers);
                return numbers;
            }
            NoiseDistribution::DiscreteCube => &|generator, vector| cube.fill(generator, vector),
            NoiseDistribution::Ball => &|generator, vector| ball.fill(generator, vector),
        };
        for (turn, number) in numbers.iter_mut().enumerate() {
            fill(&mut generator, &mut vector);
            *number = match self.is_largest {
                true => vector.iter().map(|value| value.abs()).max().unwrap(),
                false => vector[turn % values],
            };
        }
        numbers
    }

    /// How far numbers are from the law: more than 1 rejects, once in 1e9 where they are right.
    fn misfit(&self, numbers: &[i128]) -> f64 {
        let mut observed = vec![0.0; self.cells.len()];
        for number in numbers {
            observed[self.cells.partition_point(|(to, _)| to < number)] += 1.0;
        }
        let mut bins: Vec<(f64, f64)> = Vec::new();
        for (observed, (_, mass)) in observed.into_iter().zip(&self.cells) {
            let expected = mass * numbers.len() as f64;
            match bins.last_mut() {
                // Neighbours are put together until twenty are expected.
                Some(bin) if bin.1 < 20.0 => *bin = (bin.0 + observed, bin.1 + expected),
                _ => bins.push((observed, expected)),
            }
        }
        if let [.., before, last] = &mut bins[..]
            && last.1 < 20.0
        {
            *before = (before.0 + last.0, before.1 + last.1);
            bins.pop();
        }
        chi_square(&bins)
    }
}

#[test]
fn what_is_drawn_has_the_law_of_exact_arithmetic() {
    let cases = cases();
    for law in [
        NoiseDistribution::DiscreteLaplace,
        NoiseDistribution::DiscreteCube,
        NoiseDistribution::Ball,
        NoiseDistribution::DiscreteGaussian,
    ] {
        assert!(
            cases.iter().filter(|case| case.law == law).count() >= 3,
            "{law}"
        );
    }
    for (seed, case) in (1..).zip(&cases) {
        let sum: f64 = case.cells.iter().map(|(_, mass)| mass).sum();
        assert!((sum - 1.0).abs() < 1e-12, "{sum}");
        let misfit = case.misfit(&case.drawn(case.scale, case.values, seed));
        println!(
            "{} of {} at {}: chi-square at {misfit:.3} of its limit",
            case.law, case.values, case.scale
        );
        assert!(
            misfit < 1.0,
            "{} of {} at {}: {misfit}",
            case.law,
            case.values,
            case.scale
        );
    }
}

/// All that is not decided exactly: the probabilities of the binary digits, cut to 192 bits.
#[test]
fn the_constants_of_the_samplers_are_those_of_exact_arithmetic() {
    let source = include_str!("../../crates/noise/src/noise/geometric.rs");
    let written = |hex: &str| {
        let words: Vec<String> = [0, 16, 32]
            .iter()
            .map(|at| format!("0x{}", &hex[*at..at + 16]))
            .collect();
        format!("[{}]", words.join(", "))
    };
    let constants: Vec<&str> = VECTORS
        .lines()
        .filter(|line| line.starts_with("digit ") || line.starts_with("carry "))
        .filter_map(|line| line.rsplit(' ').next())
        .collect();
    assert_eq!(constants.len(), 11);
    for hex in &constants {
        assert!(source.contains(&written(hex)), "{hex}");
        let other = format!(
            "{}{}",
            &hex[..47],
            if hex.ends_with('0') { '1' } else { '0' }
        );
        assert!(
            !source.contains(&written(&other)),
            "a digit that is off by one in the last place"
        );
    }
}

mod long {
    use super::*;

    /// Five percent less noise (of the least scale more, there is none below), a value more, a lost sign, and a value that has none.
    #[test]
    fn what_has_another_law_is_found_out() {
        for (seed, case) in (101..).zip(&cases()) {
            let less = (case.scale / 16 * 19 / 20).max(1) * 16;
            let other = if less < case.scale {
                less
            } else {
                case.scale + 16
            };
            let misfit = case.misfit(&case.drawn(other, case.values, seed));
            assert!(
                misfit > 1.0,
                "{} at {other} for {}: {misfit}",
                case.law,
                case.scale
            );
            if matches!(
                case.law,
                NoiseDistribution::DiscreteCube | NoiseDistribution::Ball
            ) && case.values < 10
            {
                let misfit = case.misfit(&case.drawn(case.scale, case.values + 1, seed));
                assert!(
                    misfit > 1.0,
                    "{} of one value more than {}: {misfit}",
                    case.law,
                    case.values
                );
            }
            let right = case.drawn(case.scale, case.values, seed);
            if !case.is_largest {
                let unsigned: Vec<i128> = right.iter().map(|number| number.abs()).collect();
                assert!(case.misfit(&unsigned) > 1.0, "{}: a lost sign", case.law);
            }
            // One draw in fifty is nothing at all.
            let silent: Vec<i128> = right
                .iter()
                .enumerate()
                .map(|(i, number)| if i % 50 == 0 { 0 } else { *number })
                .collect();
            assert!(
                case.misfit(&silent) > 1.0,
                "{} of {} at {}: values without noise",
                case.law,
                case.values,
                case.scale
            );
        }
    }
}
