//! `[release.machine]`: a kernel machine, which fits a label.

use std::ops::Range;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::settings::{FunctionHeight, FunctionRoughness};
use crate::targets::context::{
    ClassLabel, NumberLabel, ReadTarget, TargetContext, built_target, class_label, number_label,
};
use crate::targets::wording::{expected_label_function, score_function};
use crate::text::{Checked, Document, Field, Spanned, values};
use bernstream_functions::machine;
use bernstream_functions::machine::{KernelMachine, Machine};
use bernstream_synopsis::PointKernel;
use bernstream_synopsis::description::Method;
use bernstream_synopsis::machine::{CubeKernel, Loss};

/// a table [release.machine]
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// "hinge", "logistic", "squared" or "huber"
    #[schemars(with = "Field<String>", extend("enum" = ["hinge", "logistic", "squared", "huber"]))]
    pub loss: Field<Loss>,
    /// { gaussian = { bandwidth = 0.2 } }, laplacian, { polynomial = { power = 2 } } or "linear"
    pub kernel: Field<KernelTable>,
    /// a number above 0 such as 1: the weight of the records against smoothness
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub c: Field<f64>,
    /// a whole number from 1, such as 5000: later records of a window are ignored
    #[schemars(range(min = 1))]
    pub max_records: Field<u32>,
    /// a whole number from 1, such as 8: the degree of the landmarks' lattice
    #[schemars(range(min = 1))]
    pub landmarks: Field<u32>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum KernelTable {
    /// a table such as { bandwidth = 0.2 }
    Gaussian(Spanned<GaussianTable>),
    /// a table such as { bandwidth = 0.5 }
    Laplacian(Spanned<LaplacianTable>),
    /// a table such as { power = 2 }
    Polynomial(Spanned<PowerTable>),
    Linear,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GaussianTable {
    /// a number above 0 such as 0.2, a fraction of the width of every axis
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub bandwidth: Field<f64>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LaplacianTable {
    /// a number above 0 such as 0.5, a fraction of the width of every axis
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub bandwidth: Field<f64>,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PowerTable {
    /// a whole number from 1, such as 2
    #[schemars(range(min = 1))]
    pub power: Field<u32>,
}

pub fn read(
    document: &mut Document<'_>,
    context: &TargetContext<'_>,
    place: &Range<usize>,
    written: Table,
) -> Checked<ReadTarget> {
    let loss = document.required(place, "loss", written.loss, Ok);
    let kernel = document
        .required(place, "kernel", written.kernel, Ok)
        .and_then(|written| read_kernel(document, written));
    let c = document.required(place, "c", written.c, values::positive);
    let max_records = document.required(place, "max_records", written.max_records, values::count);
    let landmarks = document.optional(written.landmarks, values::count);
    let loss = loss?;
    // The loss says which kind of label it is for.
    let label = if loss.get_ref().classifies() {
        class_label(document, context, place).map(FitLabel::Class)
    } else {
        number_label(document, context, place).map(FitLabel::Number)
    };
    let kernel = kernel?;
    let c = c?.into_inner();
    let records = max_records?.into_inner();
    let landmarks = landmarks?;
    if let Some(landmarks) = &landmarks {
        are_close_enough(document, landmarks, kernel)?;
    }
    let landmarks = landmarks.map(Spanned::into_inner);
    let label = label?;
    let loss = loss.into_inner();
    let mut settings = machine::MachineSettings {
        kernel,
        loss,
        c,
        records,
        dimensions: context.axes.len(),
        degree: 1,
        landmarks,
    };
    let target = match context.on.placement() {
        None => {
            settings.degree = context.lattice_degree(document, place)?;
            built_target(document, place, Machine::new(settings))?
        }
        Some(placement) => built_target(document, place, KernelMachine::new(settings, placement))?,
    };
    let method = Method::KernelMachine {
        loss,
        kernel,
        c,
        max_records: records,
        landmarks,
    };
    // However many records there are, what is expected of a label stays within its bounds, and a score is about 1. A fit by a
    // wide kernel bends more than its kernels.
    let rough = PointKernel::Machine(match kernel {
        CubeKernel::Gaussian { bandwidth } => CubeKernel::Gaussian {
            bandwidth: bandwidth.min(0.5),
        },
        other => other,
    });
    let height = FunctionHeight::Fixed(match &label {
        FitLabel::Number(label) => (label.bounds.max - label.bounds.min) / 2.0,
        FitLabel::Class(_) => 1.0,
    });
    let feature = FunctionRoughness {
        kernel: rough,
        height,
    };
    let function = match label {
        FitLabel::Number(label) => {
            expected_label_function(context, &label, method, target, feature)
        }
        FitLabel::Class(label) => {
            let unit = target.unit();
            let quantity = "of the score".to_owned();
            score_function(&label, method, target, unit, quantity, feature)
        }
    };
    Ok(function.into())
}

/// The label that a machine fits.
enum FitLabel<'g> {
    Number(NumberLabel<'g>),
    Class(ClassLabel<'g>),
}

/// Checks that landmarks are no farther apart than the width of the kernel.
fn are_close_enough(
    document: &mut Document<'_>,
    landmarks: &Spanned<u32>,
    kernel: CubeKernel,
) -> Checked<()> {
    if let CubeKernel::Gaussian { bandwidth } | CubeKernel::Laplacian { bandwidth } = kernel
        && bandwidth * f64::from(*landmarks.get_ref()) < 1.0
    {
        let what = format!(
            "are farther apart than the width of the kernel, {bandwidth} of the domain: the fit would miss what lies between them"
        );
        let least = (1.0 / bandwidth).ceil();
        let hint = format!("take {least} or more, or a wider kernel");
        return Err(document.fault(landmarks.span(), what, hint));
    }
    Ok(())
}

fn read_kernel(document: &mut Document<'_>, written: Spanned<KernelTable>) -> Checked<CubeKernel> {
    match written.into_inner() {
        KernelTable::Gaussian(table) => {
            let place = table.span();
            let bandwidth = read_bandwidth(document, &place, table.into_inner().bandwidth)?;
            Ok(CubeKernel::Gaussian { bandwidth })
        }
        KernelTable::Laplacian(table) => {
            let place = table.span();
            let bandwidth = read_bandwidth(document, &place, table.into_inner().bandwidth)?;
            Ok(CubeKernel::Laplacian { bandwidth })
        }
        KernelTable::Polynomial(table) => {
            let place = table.span();
            let written = table.into_inner();
            let power = document.required(&place, "power", written.power, values::count)?;
            Ok(CubeKernel::Polynomial {
                power: power.into_inner(),
            })
        }
        KernelTable::Linear => Ok(CubeKernel::Linear),
    }
}

/// The bandwidth of the kernel whose table is at `place`.
fn read_bandwidth(
    document: &mut Document<'_>,
    place: &Range<usize>,
    written: Field<f64>,
) -> Checked<f64> {
    document
        .required(place, "bandwidth", written, values::positive)
        .map(Spanned::into_inner)
}
