//! All functions. No other crate adds one: what a function publishes counts as noisy, whatever it returns.

use super::bayes::gaussian::GaussianBayes;
use super::bayes::kernel::KernelBayes;
use super::blackbox::{BlackBox, Function};
use super::cells::CellDensity;
use super::covariance::CovarianceDensity;
use super::density::Density;
use super::expression::Expression;
use super::logistic::Logistic;
use super::machine::{KernelMachine, Machine};
use super::moments::Moments;
use super::regression::Regression;
use super::sampled::SampledTarget;
use super::tables::CellTables;
use super::whitened::{KernelBlackBox, KernelDensity};

/// A function of this crate. It is not named outside of it.
pub trait InThisCrate {}

impl<F: Function> InThisCrate for BlackBox<F> {}
impl InThisCrate for CellDensity {}
impl InThisCrate for CellTables {}
impl InThisCrate for CovarianceDensity {}
impl InThisCrate for Density {}
impl InThisCrate for Expression {}
impl InThisCrate for GaussianBayes {}
impl InThisCrate for KernelBayes {}
impl<F: Function> InThisCrate for KernelBlackBox<F> {}
impl InThisCrate for KernelDensity {}
impl InThisCrate for KernelMachine {}
impl InThisCrate for Logistic {}
impl InThisCrate for Machine {}
impl InThisCrate for Moments {}
impl InThisCrate for Regression {}
impl InThisCrate for SampledTarget {}
