//! Kernel density, Gaussian kernel, diagonal bandwidth.
