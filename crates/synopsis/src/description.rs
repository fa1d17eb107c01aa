//! The description of a synopsis: one JSON document, readable without this program.

mod names;
mod privacy;
mod recommended;
mod sensitivity;
mod smoothness;
mod target;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt;

use serde::{Deserialize, Serialize};

pub use self::names::{AxisNames, PlotNames};
pub use self::privacy::{
    BlockCharge, ImpliedPrivacy, PriorColumn, PrivacyDefinition, PrivacyDescription, RandomPrivacy,
    UnitDescription,
};
pub use self::recommended::Recommended;
pub use self::sensitivity::{Derivation, FreshNoise, SensitivityDescription};
pub use self::smoothness::Smoothness;
pub use self::target::{
    CellLabel, Cells, Classifier, Clip, CountedQuantiles, CountedValue, Density, ExpressionSum,
    KeyedCounts, Method, Moments, PricePart, Regression, Smoothing, TargetDescription, ValueBounds,
};
use crate::MOST_CLASSES;
pub use crate::NoiseDistribution;
use crate::Shape;
use crate::bernstein::{MAX_DEGREE, MAX_ORDER};
use crate::calibrate::Epsilon;
use crate::cell_kernel::MOST_CELLS;
use crate::clock::Timestamp;
use crate::found_keys::check_found_keys;
use crate::grid::Span;
use crate::key_parts;
use crate::key_parts::MOST_PARTS;
use crate::key_quantiles::QuantilePart;
use crate::moments::grid::most_frequencies;
use crate::tensor::{even_coordinates, grid_points};
use crate::told_caps::{check_cap_of_bins, check_unit_counts};
pub use crate::{
    Basis, CellBasis, KernelBasis, KeyBasis, KeyColumn, KeyStatistic, PointKernel, TableBasis,
};

/// The version of the format that this program writes and reads.
pub const FORMAT: u32 = 1;

/// The facts of one synopsis. Readers ignore fields that they do not know, so that a format can grow.
///
/// Nothing here depends on a record but what was chosen privately ([`Description::choices`]), what was found privately
/// ([`crate::found_keys::FoundKeys`]) and follows from that: every other field follows from the configuration, the schedule and the ledger.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Description {
    /// [`FORMAT`].
    pub format: u32,
    pub pipeline: String,
    pub release: String,
    /// The group that was released; none where the release has no groups.
    pub key: Option<String>,
    /// The columns that a key has a part of each of, where they are several: a key is the text of its parts ([`key_parts`]). Absent
    /// where a key is one column.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub key_columns: Vec<String>,
    /// Event time that the synopsis speaks of, start included, end excluded.
    pub window: Span,
    /// Time at which publication was scheduled.
    pub published: Timestamp,
    /// End of the windows, by the configuration: a synopsis whose window ends there is the last of its release and key. Absent where
    /// they go on, and in synopses of older programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grid_end: Option<Timestamp>,
    pub target: TargetDescription,
    /// Meaning of a value, in words.
    pub meaning: String,
    /// The axes of the domain, one to three.
    pub domain: Vec<AxisDescription>,
    /// Names that were declared to be written at a plot; absent where nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub names: Option<PlotNames>,
    pub basis: Basis,
    /// Offset that is added to a sum of kernel functions; 0 for every other basis.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub offset: f64,
    /// Degree `k` on every axis: the lattice has `(k + 1)^l` points. 1 where there is no lattice.
    pub degree: u32,
    /// The order `h` that the band holds for. Any other can be evaluated.
    pub order: u32,
    pub noise: NoiseDescription,
    /// Sensitivity that the noise was made for; absent in synopses of older programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sensitivity: Option<SensitivityDescription>,
    pub privacy: PrivacyDescription,
    /// Choices that were made from the records of this window and key, privately.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<PrivateChoice>,
    pub band: NoiseBand,
    /// Smoothness that is declared of the function, and bounds the approximation ([`crate::Synopsis::approximation_band`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smoothness: Option<Smoothness>,
    /// Largest distance of the form from the function, as a part of the sum of the exact values; see [`crate::form_error`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form_error: Option<f64>,
    /// The reading that is expected to be more accurate than the published one, which the bands belong to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reading: Option<Recommended>,
    /// Exceptions that the guarantee does not cover, in words.
    pub not_protected: Vec<String>,
    /// The operator has accepted that input was deleted before it was read, or cannot be read: records may be missing.
    #[serde(default)]
    pub incomplete: bool,
    pub digests: Digests,
    pub ledger: PaymentRow,
    /// Panes where the window is made of several, and overlaps those of other synopses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub panes: Option<Panes>,
    /// Tells that the records were simulated, as by `demo`.
    pub synthetic: bool,
}

/// The windows of the grid that a synopsis speaks of together; there is a synopsis for each newest one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Panes {
    pub over: PanesKind,
    /// The newest pane.
    pub newest: Span,
    /// Number of synopses of a sum that came before this one. Their noise is not independent: each has that of the panes that it
    /// shares with others, and `NoiseDescription::scale` is such that the deviation of every value is right. Only the newest pane was
    /// paid for. Absent where the function was evaluated anew, with noise of its own, and every pane paid again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<u64>,
}

/// Number of panes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PanesKind {
    /// The last so many, or all since the beginning where there are fewer.
    Hopping(u32),
    /// All since the beginning.
    Cumulative,
}

/// One axis of the domain, in natural units.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AxisDescription {
    pub column: String,
    pub min: f64,
    pub max: f64,
}

/// The noise on the exact vector: on the values of a lattice, on the coefficients of an affine function.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct NoiseDescription {
    pub law: NoiseDistribution,
    /// The `s` of the [`NoiseDistribution`], in the units of the values.
    pub scale: f64,
    /// The noise, and each value, is a whole multiple of this, in the units of the values.
    pub grid: f64,
    #[serde(default)]
    pub calibrated: CalibrationBound,
}

/// Bound that the scale of the noise was made for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CalibrationBound {
    /// The least bound that we prove.
    #[default]
    Tight,
    /// The bound of the paper, to compare with: the scale is so many times what is needed.
    Paper { times_needed: f64 },
    /// A bound that was sampled on a public prior; see [`PrivacyDefinition::Random`].
    Sampled,
}

impl CalibrationBound {
    /// Derivation of the sensitivity of a function in this form.
    pub fn sensitivity_derivation(&self, target: &TargetDescription, basis: &Basis) -> Derivation {
        match self {
            CalibrationBound::Tight => Derivation::for_target(target, basis),
            CalibrationBound::Paper { .. } => Derivation::Paper,
            CalibrationBound::Sampled => Derivation::Sampled,
        }
    }

    /// Remark for people; nothing where nothing is unusual.
    pub fn remark_for_people(&self) -> Option<String> {
        match self {
            CalibrationBound::Tight | CalibrationBound::Sampled => None,
            CalibrationBound::Paper { times_needed } => Some(format!(
                "Noise calibrated as in the paper, {times_needed:.2} times more than needed: for comparison."
            )),
        }
    }
}

/// A private choice, of pure differential privacy: what was taken, of what, and the epsilon that is part of the window's
/// price.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PrivateChoice {
    /// The kernel's standard deviation on each axis.
    Bandwidths {
        taken: Vec<f64>,
        candidates: Vec<Vec<f64>>,
        price: Epsilon,
    },
    /// The order `h`.
    Order {
        taken: u32,
        candidates: Vec<u32>,
        price: Epsilon,
    },
}

impl fmt::Display for PrivateChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PrivateChoice::Bandwidths {
                taken, candidates, ..
            } => write!(f, "bandwidths {taken:?} of {candidates:?}"),
            PrivateChoice::Order {
                taken, candidates, ..
            } => write!(f, "order {taken} of {candidates:?}"),
        }
    }
}

/// A simultaneous band for the noise, in the units of the values: with probability `level` the noise at `x` is within
/// `half_width / prod_i s(x_i)` at every point of the domain at once, `x` the point mapped to the unit cube and `s` the
/// Bernstein polynomial with coefficients `weights`.
///
/// It covers the noise only. How far the polynomial of the exact values is from the function itself is not part of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NoiseBand {
    pub covers: BandCoverage,
    pub level: f64,
    pub half_width: f64,
    pub weights: Vec<f64>,
    /// Pointwise factor: at one point alone the noise is within `pointwise |a|_2` with probability at least `level`, `a` the influences of the
    /// released values on the function there: on a lattice its Bernstein basis, sharpened `order` times; for kernel functions
    /// `L^-1 k_P(x)`, `L` the Cholesky factor of the kernel matrix of the points.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pointwise: Option<f64>,
    /// Simulated draws that the band rests on; 0 where it is exact.
    pub draws: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BandCoverage {
    #[serde(rename = "the noise, not the approximation")]
    Noise,
}

/// Digests that tell one plan from another, in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Digests {
    /// Digest of the normalised privacy settings.
    pub configuration: String,
    pub program: String,
}

/// The ledger row that paid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PaymentRow {
    pub id: String,
    pub sequence: u64,
}

impl Description {
    /// Describes noise of another scale, `factor` times this one.
    #[must_use]
    pub fn at_scale(mut self, factor: f64) -> Self {
        self.noise.scale *= factor;
        self.band.half_width *= factor;
        self.band.pointwise = self.band.pointwise.map(|pointwise| pointwise * factor);
        self
    }

    /// Shape of the released values.
    pub fn shape(&self) -> Shape {
        Shape {
            dimensions: self.domain.len(),
            degree: self.degree,
            basis: self.basis.clone(),
        }
    }

    /// Volume of the domain in natural units.
    pub fn volume(&self) -> f64 {
        self.domain.iter().map(|axis| axis.max - axis.min).product()
    }

    /// Points that are evenly spaced along every axis, so many on each, ends included, in natural units; the last axis fastest.
    /// At least two an axis.
    pub fn even_points(&self, an_axis: u32) -> Vec<Vec<f64>> {
        let parts = even_coordinates(an_axis.max(2) - 1);
        let mut coordinates = Vec::with_capacity(self.domain.len());
        for axis in &self.domain {
            let width = axis.max - axis.min;
            coordinates.push(
                parts
                    .iter()
                    .map(|part| (axis.min + width * part).min(axis.max))
                    .collect(),
            );
        }
        grid_points(&coordinates)
    }

    /// The parts of a key, one for each of [`Description::key_columns`]; none where keys have no parts, or this is no key.
    pub fn parts_of_key<'a>(&self, key: &'a str) -> Vec<Cow<'a, str>> {
        match self.key_columns.len() {
            0 => Vec::new(),
            columns => key_parts::split_key(key, columns).unwrap_or_default(),
        }
    }

    /// Says what is wrong, if anything is, with the columns of the keys or the parts of a key.
    fn check_key_parts(&self) -> Result<(), String> {
        let columns = &self.key_columns;
        if columns.is_empty() {
            return Ok(());
        }
        let different: HashSet<&String> = columns.iter().collect();
        let are_proper = columns.iter().all(|column| key_parts::is_part_name(column));
        if !(2..=MOST_PARTS).contains(&columns.len())
            || different.len() < columns.len()
            || !are_proper
        {
            return Err("the columns of its keys are not two or three different names".to_owned());
        }
        let keys: &[String] = match &self.basis {
            Basis::Keys(basis) => &basis.keys,
            _ => &[],
        };
        for key in keys.iter().chain(&self.key) {
            if key_parts::split_key(key, columns.len()).is_none() {
                return Err(format!("a key does not have {} parts", columns.len()));
            }
        }
        Ok(())
    }

    /// Says what is wrong, if anything is, with the numbers that evaluation relies on.
    pub(super) fn check_consistency(&self) -> Result<(), String> {
        if self.format != FORMAT {
            return Err(format!(
                "it has format {}, this program reads format {FORMAT}",
                self.format
            ));
        }
        let axes = if matches!(self.basis, Basis::Keys(_)) {
            0..=0
        } else {
            1..=3
        };
        if !axes.contains(&self.domain.len()) {
            let (least, most) = axes.into_inner();
            return Err(format!(
                "it has {} axes, not {least} to {most}",
                self.domain.len()
            ));
        }
        if !(1..=MAX_DEGREE).contains(&self.degree) || !(1..=MAX_ORDER).contains(&self.order) {
            let k = self.degree;
            let h = self.order;
            return Err(format!(
                "degree {k} or order {h} is not within 1..={MAX_DEGREE} and 1..={MAX_ORDER}"
            ));
        }
        if self.basis != Basis::Bernstein && (self.degree != 1 || self.order != 1) {
            return Err("what has no lattice has degree 1 and order 1".to_owned());
        }
        check_basis(&self.basis, self.domain.len())?;
        check_tables(&self.basis, &self.target)?;
        check_counts(self)?;
        self.check_key_parts()?;
        if !self.offset.is_finite() {
            return Err("its offset is not a number".to_owned());
        }
        for axis in &self.domain {
            if !is_positive(axis.max - axis.min) || !axis.min.is_finite() {
                return Err(format!("axis '{}' has no proper domain", axis.column));
            }
        }
        if !is_positive(self.noise.scale) || !is_positive(self.noise.grid) {
            return Err("its noise has no positive scale and grid".to_owned());
        }
        if (self.noise.calibrated == CalibrationBound::Sampled)
            != matches!(self.privacy.definition, PrivacyDefinition::Random(_))
        {
            return Err("its noise and its definition of privacy do not fit".to_owned());
        }
        self.privacy.check()?;
        if self
            .smoothness
            .as_ref()
            .is_some_and(|smoothness| !smoothness.fits_basis(self.domain.len(), &self.basis))
        {
            return Err("the smoothness that it declares does not fit its form".to_owned());
        }
        let of_density = matches!(self.target, TargetDescription::Density(_))
            && matches!(self.basis, Basis::Bernstein | Basis::Cells(_));
        if self.form_error.is_some_and(|error| {
            !is_positive(error) || !of_density || self.band.pointwise.is_none()
        }) {
            return Err(
                "the error of its form is not positive, or does not fit its form".to_owned(),
            );
        }
        if self.reading.is_some() && !matches!(self.basis, Basis::Cells(_)) {
            return Err(
                "the reading that it recommends is one of cells, which it has none of".to_owned(),
            );
        }
        self.band.check()
    }
}

impl NoiseBand {
    /// Says what is wrong, if anything is.
    fn check(&self) -> Result<(), String> {
        if !is_positive(self.half_width)
            || self.weights.is_empty()
            || !self.weights.iter().all(|weight| is_positive(*weight))
        {
            return Err("its band is not positive".to_owned());
        }
        if self.pointwise.is_some_and(|width| !is_positive(width)) {
            return Err("its pointwise band is not positive".to_owned());
        }
        if self.weights.len() > MAX_DEGREE as usize + 1 {
            return Err("its band has too many weights".to_owned());
        }
        Ok(())
    }
}

fn is_positive(number: f64) -> bool {
    number.is_finite() && number > 0.0
}

fn is_zero(value: &f64) -> bool {
    *value == 0.0
}

/// Tables and their target belong together, and to the label.
fn check_tables(basis: &Basis, target: &TargetDescription) -> Result<(), String> {
    let has_tables = matches!(basis, Basis::Tables(_));
    if has_tables != matches!(target, TargetDescription::Cells(_)) {
        return Err(
            "tables of cells and the function that it describes do not belong together".to_owned(),
        );
    }
    let Basis::Tables(basis) = basis else {
        return Ok(());
    };
    let TargetDescription::Cells(Cells { label }) = target else {
        return Ok(());
    };
    match label {
        Some(CellLabel::Number { min, max, .. })
            if !(min.is_finite() && max.is_finite() && min < max) =>
        {
            return Err("the bounds of its label are no range".to_owned());
        }
        Some(CellLabel::Classes { values, .. }) if !(2..=MOST_CLASSES).contains(&values.len()) => {
            return Err(format!(
                "its label does not have 2 to {MOST_CLASSES} classes"
            ));
        }
        _ => {}
    }
    let tables = label.as_ref().map_or(1, CellLabel::tables);
    if tables != basis.tables as usize {
        return Err(format!(
            "it has {} tables, its label asks for {tables}",
            basis.tables
        ));
    }
    Ok(())
}

/// Tables by key, their target, their noise and what they are of belong together.
fn check_counts(description: &Description) -> Result<(), String> {
    let has_keys = matches!(description.basis, Basis::Keys(_));
    let TargetDescription::Counts(counts) = &description.target else {
        return match has_keys {
            true => {
                Err("a table by key describes counts, and it describes something else".to_owned())
            }
            false => Ok(()),
        };
    };
    let Basis::Keys(basis) = &description.basis else {
        return Err("it describes counts by key, and has no table by key".to_owned());
    };
    if description.key.is_some() {
        return Err("a table by key is of all keys, and it names one".to_owned());
    }
    if !matches!(
        description.noise.law,
        NoiseDistribution::DiscreteLaplace | NoiseDistribution::DiscreteGaussian
    ) {
        return Err("the noise of a table by key is not independent".to_owned());
    }
    let needs_value = basis.columns.iter().any(|column| {
        matches!(
            column.statistic,
            KeyStatistic::Low
                | KeyStatistic::Middle
                | KeyStatistic::High
                | KeyStatistic::Sum
                | KeyStatistic::Range(_)
        )
    });
    check_quantiles(basis, counts.quantiles.as_ref())?;
    if let Some(told) = &basis.units {
        check_cap_of_bins(told, counts.max_keys)?;
    }
    if let Some(found) = &basis.found {
        check_found_keys(found, basis, counts, description)?;
    }
    match &counts.value {
        None if needs_value => Err("it sums values, and does not say which".to_owned()),
        Some(value)
            if !(value.min.is_finite() && value.max.is_finite() && value.min < value.max) =>
        {
            Err("the bounds of its values are no range".to_owned())
        }
        _ => Ok(()),
    }
}

/// Counts of ranges are all that a table of quantiles has, and no other table has any.
fn check_quantiles(basis: &KeyBasis, quantiles: Option<&CountedQuantiles>) -> Result<(), String> {
    let Some(CountedQuantiles { grid, parts }) = quantiles else {
        let mut columns = basis.columns.iter();
        return match columns.any(|column| matches!(column.statistic, KeyStatistic::Range(_))) {
            true => Err("it counts ranges of a value, and does not say what for".to_owned()),
            false => Ok(()),
        };
    };
    if basis.units.is_some() {
        return Err("a table of quantiles does not tell its caps".to_owned());
    }
    grid.check()?;
    let mut different = HashSet::new();
    let are_proper = parts
        .iter()
        .all(|part| QuantilePart::new(*part).is_some_and(|part| different.insert(part)));
    if parts.is_empty() || !are_proper {
        return Err("the parts of its quantiles are not different thousandths".to_owned());
    }
    let expected = grid.ranges().into_iter().map(KeyStatistic::Range);
    let columns = basis.columns.iter().map(|column| column.statistic);
    let first = basis.columns.first().map(|column| column.unit);
    let have_one_unit = basis
        .columns
        .iter()
        .all(|column| Some(column.unit) == first);
    if !expected.eq(columns) || !have_one_unit {
        return Err("its columns are not those of its quantiles".to_owned());
    }
    Ok(())
}

/// Rows and columns of a table by key differ, and the columns tell each number once.
fn check_keys(basis: &KeyBasis) -> Result<(), String> {
    // Only where nobody listed the keys there may be none.
    if basis.columns.is_empty() || (basis.keys.is_empty() && basis.found.is_none()) {
        return Err("its table by key is empty".to_owned());
    }
    let different: HashSet<&str> = basis.keys.iter().map(String::as_str).collect();
    if different.len() < basis.keys.len() {
        return Err("its table by key has two rows of one key".to_owned());
    }
    let mut units = HashMap::new();
    if let Some(told) = &basis.units {
        check_unit_counts(told, basis.keys.len())?;
    }
    for column in &basis.columns {
        let is_second = units.insert(column.statistic, column.unit).is_some();
        if is_second || !is_positive(column.unit) {
            return Err("the columns of its table by key are not proper".to_owned());
        }
    }
    let has_ends = units.contains_key(&KeyStatistic::Low);
    let has_own =
        units.contains_key(&KeyStatistic::Records) || units.contains_key(&KeyStatistic::Sum);
    let end = units.get(&KeyStatistic::Low);
    let middle = units.get(&KeyStatistic::Middle);
    let are_alike = end == units.get(&KeyStatistic::High) && (middle.is_none() || middle == end);
    if !are_alike || (has_ends && has_own) {
        return Err("the columns of its table by key do not belong together".to_owned());
    }
    Ok(())
}

/// Kernel points lie in the cube, and there are not too many of anything.
fn check_basis(basis: &Basis, axes: usize) -> Result<(), String> {
    match basis {
        Basis::Bernstein | Basis::Affine => Ok(()),
        Basis::Kernel(KernelBasis { kernel, points }) => {
            let are_inside = points
                .iter()
                .all(|point| point.len() == axes && point.iter().all(|x| (0.0..=1.0).contains(x)));
            if points.is_empty() || !are_inside {
                return Err("its kernel points do not lie in the domain".to_owned());
            }
            match kernel {
                PointKernel::Gaussian { precision }
                    if precision.len() != axes || precision.iter().any(|row| row.len() != axes) =>
                {
                    Err(format!(
                        "the matrix of its kernel does not have {axes} rows and columns"
                    ))
                }
                _ => Ok(()),
            }
        }
        Basis::Cells(basis) => {
            let steps = &basis.steps;
            if steps.len() != axes || steps.contains(&0) || basis.count() > MOST_CELLS {
                return Err(format!(
                    "its cells do not have {axes} axes, each with a step, and at most {MOST_CELLS} in all"
                ));
            }
            if !basis.is_proper() {
                return Err("the kernel that reads its cells is none".to_owned());
            }
            Ok(())
        }
        Basis::Tables(basis) => {
            let TableBasis {
                steps, bandwidths, ..
            } = basis;
            if steps.len() != axes
                || steps.contains(&0)
                || !(1..=MOST_CELLS).contains(&basis.values())
            {
                return Err(format!(
                    "its tables do not have {axes} axes, each with a step, and at most {MOST_CELLS} values in all"
                ));
            }
            let are_parts =
                bandwidths.len() == axes && bandwidths.iter().all(|b| *b > 0.0 && *b <= 1.0);
            if !are_parts || basis.basis_for_bandwidths(bandwidths).is_none() {
                return Err("the bandwidths of its tables cannot be read off its cells".to_owned());
            }
            Ok(())
        }
        Basis::Keys(basis) => check_keys(basis),
        Basis::Cosine { frequencies } => {
            let most = most_frequencies(axes);
            if !(1..=most).contains(frequencies) {
                return Err(format!(
                    "{frequencies} frequencies are not within 1..={most}"
                ));
            }
            Ok(())
        }
    }
}
