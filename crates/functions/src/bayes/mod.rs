//! Naive Bayes with two classes: the score `F(y) = G_+(y) - G_-(y)`, `G_c(y) = n_c prod_i f_{c,i}(y_i)`, on the lattice;
//! the class of `y` is its sign, so no normaliser is needed (`[AR17]` section 6; `docs/proofs/bayes.md`).
//!
//! `n_c` is how many records have the class `c`, `f_{c,i}` the density of their coordinates on axis `i`: a kernel density
//! ([`kernel`]) or a Gaussian ([`gaussian`]). A class without records has `G_c = 0`. A score is in records per volume
//! of the unit cube, and the record count stays private.
//!
//! # One record
//!
//! `G_c` is homogeneous of degree 1 in the sums it is made of, so what a record changes is an integral over `t` in
//! `[0, 1]`, the part of the record that is already in, of a derivative that knows no `n_c`:
//!
//! ```text
//! dG_c/dt = prod_i f_i + sum_i r_i prod_{j != i} f_j,    r_i = n_c times the derivative of f_i
//! ```
//!
//! Both targets bound its norms over everything that `f_i` and `r_i` can be. A record touches one class. One that is
//! replaced may change its class, and then leaves one term and enters the other: twice the bound, and reached. The papers'
//! constant (`[AR17]` appendix F) takes densities to be at most 1 and is false here, so there is no scale of the paper.

mod bound;
pub mod gaussian;
pub mod kernel;
