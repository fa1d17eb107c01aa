//! Other functions for the question of a release: what its file would release at the same price, had it another table.

use std::ops::Range;

use crate::file;
use crate::file::{ConfigFile, known_keys};
use crate::read::pricing::Pricing;
use crate::read::release;
use crate::select::ChoiceTerms;
use crate::settings::{Coordinates, Payment, ReleaseSettings, WindowKind, WorkerSettings};
use crate::text::{Checked, Document, Faults, Spanned};
use crate::validate;
use bernstream_release::window::{DomainAxis, OutsideRule, RecordLabel};
use bernstream_synopsis::Basis;
use bernstream_synopsis::description::{Method, PrivacyDefinition, TargetDescription};
use bernstream_synopsis::machine::Loss;
use bernstream_synopsis::price::Price;

/// The place of a value that no text has.
const NOWHERE: Range<usize> = 0..0;
/// Bandwidths of cells that are tried, in those of the file.
const WIDTHS: [f64; 5] = [1.0, 0.5, 2.0, 4.0, 8.0];
/// Part of every axis that cells start with where a release says nothing of how narrow its readers want to look.
const A_TENTH: f64 = 0.1;

/// A function that answers the question of a release.
#[derive(Clone, Debug, PartialEq)]
pub struct Alternative {
    /// Its kind. Those of a kind differ in a number that is free: of several the best counts.
    pub kind: String,
    /// Its family: the noise and the size that suit one of a family suit the others, nearly.
    pub family: String,
    /// Its table in the file.
    function: String,
    records: u64,
}

impl Alternative {
    /// The lines of `[release]` that are its own: noise and size, chosen by `"auto"` or those of another release, and its table.
    pub fn file_lines(&self, noise: Option<&str>) -> String {
        let noise = match noise {
            Some(lines) => lines.to_owned(),
            None => format!("noise = \"auto\"\nexpected_records = {}\n", self.records),
        };
        format!("{noise}\n{}", self.function)
    }
}

/// A reason why a release cannot be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Incomparable {
    #[error(
        "it has no label, so it is neither a regression nor a class: there is nothing to compare it with"
    )]
    NoLabel,
    #[error(
        "it publishes {0}, which is neither a regression nor a class: there is nothing to compare it with"
    )]
    Function(&'static str),
    #[error(
        "it covers several windows, whose noise and price depend on the function: compare it with windows = \"tumbling\", and see \
         `explain` for how the noise of sums grows"
    )]
    Windows,
    #[error(
        "its sensitivity was sampled, which is a weaker promise at the same epsilon: remove [release.sampled] to compare it with others"
    )]
    Sampled,
    #[error(
        "each window chooses its own order: write `order` in place of `private_order` to compare it with others"
    )]
    PrivateOrder,
}

impl ReleaseSettings {
    /// The functions that can be asked for in place of this one, for windows of so many records.
    pub fn alternative_functions(&self, label: &RecordLabel, records: u64) -> Vec<Alternative> {
        let mut found = self.cell_alternatives(records);
        match label {
            RecordLabel::Number(_) => {
                found.extend(self.machine_alternatives("Huber regression", "huber", records));
                found.extend(self.machine_alternatives("ridge regression", "squared", records));
            }
            RecordLabel::Above(_) => {
                found.extend(self.logistic_alternatives(records));
                found.extend(self.machine_alternatives("support vector machine", "hinge", records));
            }
            RecordLabel::Classes(_) => {}
        }
        found
    }

    /// Its name in a table of releases.
    pub fn table_name(&self) -> String {
        let method = match &self.function.about {
            TargetDescription::Cells(_) => {
                return format!(
                    "cells, bandwidths {}",
                    number_list(&self.narrowest_bandwidths())
                );
            }
            TargetDescription::Regression(about) => &about.method,
            TargetDescription::Classifier(about) | TargetDescription::Probability(about) => {
                &about.method
            }
            other => return other.name().to_owned(),
        };
        match method {
            Method::PriestleyChao { .. } => "regression by gaps".to_owned(),
            Method::KernelBayes { .. } | Method::GaussianBayes { .. } => "naive Bayes".to_owned(),
            Method::KernelMachine { loss, c, .. } => {
                let loss = match loss {
                    Loss::Hinge => "support vector machine",
                    Loss::Logistic => "logistic machine",
                    Loss::Squared => "ridge regression",
                    Loss::Huber => "Huber regression",
                };
                format!("{loss}, c = {c}")
            }
            Method::Logistic { c, .. } => format!("logistic regression, c = {c}"),
        }
    }

    /// Tables of cells, of narrower and of wider bandwidths than those of this release.
    fn cell_alternatives(&self, records: u64) -> Vec<Alternative> {
        let narrowest = self.narrowest_bandwidths();
        let own = matches!(self.function.about, TargetDescription::Cells(_));
        let mut found: Vec<Alternative> = Vec::new();
        for times in WIDTHS.into_iter().skip(usize::from(own)) {
            let widths = self.axes.iter().map(|axis| axis.max - axis.min);
            let bandwidths: Vec<f64> = narrowest
                .iter()
                .zip(widths)
                .map(|(b, width)| (times * b).min(width))
                .collect();
            let kind = format!("cells, bandwidths {}", number_list(&bandwidths));
            let function = format!(
                "[release.cells]\nbandwidths = {}\n",
                number_list(&bandwidths)
            );
            // Where every bandwidth is the whole axis, the next ones are the same.
            if found.last().is_none_or(|last| last.kind != kind) {
                found.push(Alternative {
                    family: kind.clone(),
                    kind,
                    function,
                    records,
                });
            }
        }
        found
    }

    /// The smallest bandwidths that readers want, in natural units.
    pub fn narrowest_bandwidths(&self) -> Vec<f64> {
        let mut parts = vec![A_TENTH; self.axes.len()];
        match &self.function.about {
            TargetDescription::Cells(_) => {
                if let Basis::Tables(basis) = self.shape().basis {
                    parts = basis.bandwidths;
                }
            }
            TargetDescription::Regression(regression) => {
                if let Method::PriestleyChao { bandwidth, .. } = regression.method {
                    return vec![bandwidth];
                }
            }
            TargetDescription::Classifier(classifier) => {
                if let Method::KernelBayes { bandwidths } = &classifier.method {
                    return bandwidths.clone();
                }
            }
            _ => {}
        }
        let axes = self.axes.iter().zip(parts);
        axes.map(|(axis, part)| ten_digits(part * (axis.max - axis.min)))
            .collect()
    }

    /// Machines with a wide kernel of every weight, and one with a narrower kernel.
    fn machine_alternatives(&self, kind: &str, loss: &str, records: u64) -> Vec<Alternative> {
        let landmarks = if self.axes.len() == 3 { 4 } else { 6 };
        let [middle, less, more] = self.record_weights(records);
        let machines = MachineFamily {
            kind,
            loss,
            landmarks,
            records,
        };
        let mut found = vec![
            machines.alternative(0.5, middle),
            machines.alternative(0.5, less),
        ];
        // A score far beyond its corner takes long to find, and only its sign counts.
        if loss != "hinge" {
            found.push(machines.alternative(0.5, more));
            found.push(machines.alternative(0.25, middle));
        }
        found
    }

    /// Logistic regressions, as probabilities.
    fn logistic_alternatives(&self, records: u64) -> Vec<Alternative> {
        let mut found = Vec::new();
        for c in self.record_weights(records) {
            found.push(Alternative {
                kind: "logistic regression".to_owned(),
                family: "logistic regression".to_owned(),
                function: format!(
                    "[release.logistic]\nscore = \"sigmoid\"\nc = {c}\nmax_records = {records}\n"
                ),
                records,
            });
        }
        found
    }

    /// Its noise and size as a file has them; `None` of cells, whose grid goes with their bandwidths.
    pub fn noise_lines(&self) -> Option<String> {
        let size = match self.on {
            Coordinates::Lattice { degree } => format!("degree = {degree}\norder = {}", self.order),
            Coordinates::Points { most } => format!("points = {most}"),
            Coordinates::Tensor(counts) => format!("points = {:?}", counts.along()),
            Coordinates::Cells(_) => return None,
        };
        Some(format!("noise = \"{}\"\n{size}\n", self.noise))
    }

    /// Weights of the records against smoothness, the middle one first, and a tenth and ten times of it. The noise is in proportion to
    /// the weight, and falls with records and price; on the flights, 28,000 for epsilon = 1, the best is about 100 to 300.
    #[expect(clippy::cast_precision_loss, reason = "a number to try")]
    fn record_weights(&self, records: u64) -> [f64; 3] {
        let paid = records as f64 * self.payment.epsilon().to_f64();
        let middle = 10.0_f64.powf((paid / 280.0).log10().round().clamp(1.0, 3.0));
        [middle, middle / 10.0, 10.0 * middle]
    }
}

/// Kernel machines that differ in their kernel and in the weight of the records.
struct MachineFamily<'a> {
    kind: &'a str,
    loss: &'a str,
    landmarks: u32,
    records: u64,
}

impl MachineFamily<'_> {
    fn alternative(&self, bandwidth: f64, c: f64) -> Alternative {
        let MachineFamily {
            kind,
            loss,
            landmarks,
            records,
        } = *self;
        Alternative {
            kind: kind.to_owned(),
            family: format!("{loss} {bandwidth}"),
            function: format!(
                "[release.machine]\nloss = \"{loss}\"\nkernel = {{ gaussian = {{ bandwidth = {bandwidth} }} }}\nc = {c}\n\
                 max_records = {records}\nlandmarks = {landmarks}\n"
            ),
            records,
        }
    }
}

impl WorkerSettings {
    /// The label that the function of a release is about, where it is a regression or tells classes.
    ///
    /// # Errors
    ///
    /// If it is neither, or if what another function costs is not what this one costs.
    pub fn compared_label<'r>(
        &self,
        release: &'r ReleaseSettings,
    ) -> Result<&'r RecordLabel, Incomparable> {
        match &release.function.about {
            TargetDescription::Regression(_)
            | TargetDescription::Classifier(_)
            | TargetDescription::Probability(_)
            | TargetDescription::Cells(_) => {}
            TargetDescription::Density(_) => return Err(Incomparable::Function("a density")),
            TargetDescription::Sum(_) => {
                return Err(Incomparable::Function("the sum of an expression"));
            }
            TargetDescription::Moments(_) => return Err(Incomparable::Function("moments")),
            TargetDescription::Counts(_) => return Err(Incomparable::Function("counts by key")),
        }
        if release.window_kind != WindowKind::Tumbling {
            return Err(Incomparable::Windows);
        }
        if matches!(self.privacy.definition, PrivacyDefinition::Random(_)) {
            return Err(Incomparable::Sampled);
        }
        if release.private_order.is_some() {
            return Err(Incomparable::PrivateOrder);
        }
        if release.is_user_weighted() {
            return Err(Incomparable::Function("a function of weighted users"));
        }
        release.label.as_ref().ok_or(Incomparable::NoLabel)
    }

    /// The release that `release` would be if its file had `lines` in place of its function, noise and size: the same label and domain, for
    /// windows of their own, at the same price.
    ///
    /// # Errors
    ///
    /// All faults of these lines; among them that the function has no noise at this price and for this adjacency.
    pub fn release_with_lines(
        &self,
        release: &ReleaseSettings,
        lines: &str,
    ) -> Result<ReleaseSettings, Faults> {
        let text = format!(
            "[release]\nname = {}\n{}{lines}",
            quoted_text(&release.name),
            domain_lines(release)
        );
        let (mut document, file) =
            Document::read::<ConfigFile>(&text, "the comparison", known_keys());
        let found = file.and_then(|file| self.read_alternative(&mut document, file, release));
        document.finish(found)
    }

    fn read_alternative(
        &self,
        document: &mut Document<'_>,
        file: ConfigFile,
        release: &ReleaseSettings,
    ) -> Checked<ReleaseSettings> {
        let place = file.release.as_ref().map_or(NOWHERE, Spanned::span);
        let Some(file::Releases::One(written)) = file.release.map(Spanned::into_inner) else {
            return Err(document.missing(place, "release"));
        };
        let terms = ChoiceTerms {
            adjacency: self.privacy.adjacency,
            contributions: self.privacy.unit.most_contributions(),
            most_values: usize::MAX,
        };
        // What is charged for epsilon under a total in rho depends on the noise: the same price is the same charge.
        let payment = match release.payment {
            Payment::Converted { rho, .. } => Payment::Own(Price::Concentrated(rho)),
            payment => payment,
        };
        let pricing = Pricing {
            payment: Spanned::new(NOWHERE, payment),
            policy: None,
        };
        let written = Spanned::new(place, *written);
        let mut draft =
            release::read_release(document, written, Ok(terms), Ok(pricing), None, None)?;
        draft.charge_own_rho(&self.privacy, WindowKind::Tumbling);
        validate::can_be_drawn(document, &self.privacy, &draft);
        match document.reported() {
            Some(reported) => Err(reported),
            None => Ok(draft.into_release(WindowKind::Tumbling)),
        }
    }
}

/// The domain and the label of a release, as a file has them.
fn domain_lines(release: &ReleaseSettings) -> String {
    let mut axes = Vec::new();
    for (column, axis) in release.columns.iter().zip(&release.axes) {
        axes.push(format!("{{ {} }}", axis_keys(column, axis)));
    }
    let domain = format!("domain = [{}]\n", axes.join(", "));
    let Some(label) = &release.label else {
        return domain;
    };
    let Some(column) = release.columns.get(release.axes.len()) else {
        return domain;
    };
    let label = match label {
        RecordLabel::Number(bounds) => axis_keys(column, bounds),
        RecordLabel::Above(above) => format!("column = {}, above = {above:?}", quoted_text(column)),
        RecordLabel::Classes(values) => {
            format!("column = {}, values = {values:?}", quoted_text(column))
        }
    };
    format!("{domain}label = {{ {label} }}\n")
}

fn axis_keys(column: &str, axis: &DomainAxis) -> String {
    let DomainAxis { min, max, outside } = axis;
    let outside = match outside {
        OutsideRule::Clamp => "clamp",
        OutsideRule::Drop => "drop",
    };
    format!(
        "column = {}, min = {min:?}, max = {max:?}, outside = \"{outside}\"",
        quoted_text(column)
    )
}

/// A text in quotes: one of JSON is one of TOML too.
fn quoted_text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Numbers as a list, without needless digits.
fn number_list(numbers: &[f64]) -> String {
    let numbers: Vec<String> = numbers
        .iter()
        .map(|number| ten_digits(*number).to_string())
        .collect();
    format!("[{}]", numbers.join(", "))
}

/// Ten digits: further ones are those of a conversion of units.
fn ten_digits(number: f64) -> f64 {
    format!("{number:.9e}").parse().unwrap_or(number)
}
