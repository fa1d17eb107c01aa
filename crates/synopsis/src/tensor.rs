//! Products over the axes of a grid, row-major: the last axis is the fastest.

/// Returns the products of one number of each axis.
pub(crate) fn outer_product(axes: &[Vec<f64>]) -> Vec<f64> {
    let mut products = vec![1.0];
    for axis in axes {
        let mut longer = Vec::with_capacity(products.len() * axis.len());
        for product in &products {
            longer.extend(axis.iter().map(|factor| product * factor));
        }
        products = longer;
    }
    products
}

/// Returns the points that have one coordinate of each axis.
pub(crate) fn grid_points(axes: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let mut points = vec![vec![]];
    for axis in axes {
        let mut longer = Vec::with_capacity(points.len() * axis.len());
        for point in &points {
            for coordinate in axis {
                longer.push([point.as_slice(), &[*coordinate]].concat());
            }
        }
        points = longer;
    }
    points
}

/// Returns the points `0, 1/steps, ..., 1` of one axis.
pub(crate) fn even_coordinates(steps: u32) -> Vec<f64> {
    (0..=steps)
        .map(|index| f64::from(index) / f64::from(steps))
        .collect()
}
