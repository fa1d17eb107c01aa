//! Why there is no such lattice, kernel or grid of cells.

use crate::histogram::Spline;

/// Why there is no such lattice, kernel or grid of cells. Axes count from 1.
#[derive(Clone, Debug, thiserror::Error, PartialEq)]
pub enum ShapeError {
    #[error("a function has 1 to 3 axes, not {0}")]
    Axes(usize),
    #[error(
        "the bandwidth of axis {axis} is {bandwidth} of its domain's width: it must be more than 0 and at most 1; \
         change the bandwidth or the domain"
    )]
    Bandwidth { axis: usize, bandwidth: f64 },
    #[error("{cells} cells in all, more than {most}: take wider steps, or a larger bandwidth")]
    CellGrid { cells: u128, most: usize },
    #[error(
        "the steps are too wide: a record shared by a {spline} spline alone is as wide as the kernel; take steps of at most \
         the bandwidth"
    )]
    WideSteps { spline: Spline },
    #[error("a covariance matrix is symmetric, with 2 or 3 rows and as many columns")]
    Matrix,
    #[error(
        "the covariance matrix is not positive definite: some direction has no width; lower the covariances or raise \
         the variances"
    )]
    NotPositiveDefinite,
    #[error(
        "the kernel's bandwidth is {bandwidth} of the domain's width: it must lie between 0.001 and 10"
    )]
    KernelBandwidth { bandwidth: f64 },
    #[error("the kernel's power is {power}: it must lie between 1 and {most}")]
    Power { power: u32, most: u32 },
    #[error("a kernel on public points takes 1 to {most} points, not {points}")]
    KernelPoints { points: usize, most: usize },
    #[error(
        "a grid of points on {counts} axes, and the function has {axes}: give one number for each axis"
    )]
    PointAxes { counts: usize, axes: usize },
}
