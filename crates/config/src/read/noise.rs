//! `noise`, `degree`, `order`, `points`: what the file asks for, or leaves to `"auto"`.

use std::ops::Range;

use crate::file;
use crate::file::Auto;
use crate::file::KeyedFunction;
use crate::read::cells;
use crate::read::cells::GivenGrid;
use crate::read::private_order;
use crate::read::private_order::LARGEST_ORDER;
use crate::select;
use crate::settings::{CellGrid, Coordinates, NoiseKind, Payment, PrivateOrder};
use crate::text::{Checked, Document, Field, Spanned, values};
use bernstream_noise::Mechanism;
use bernstream_synopsis::Sensitivity;
use bernstream_synopsis::bernstein::MAX_DEGREE;
use bernstream_synopsis::histogram::Spline;
use bernstream_synopsis::whitened::AxisCounts;
use bernstream_synopsis::whitened::points::MOST_POINTS;

/// The noise that the file asks for; `None` within a key is left to `"auto"`.
pub struct NoiseRequest {
    /// Never empty.
    pub kinds: Vec<NoiseKind>,
    pub degree: Option<Spanned<Option<u32>>>,
    pub order: Option<Spanned<Option<u32>>>,
    pub private_order: Option<Spanned<PrivateOrder>>,
    pub points: Option<Spanned<Option<Coordinates>>>,
    /// The grid of noise on cells.
    pub cells: Option<cells::CellKeys>,
    /// The position of the key that decides the size of a message.
    pub place: Range<usize>,
}

/// The keys of `[release]` that it is read from.
pub struct NoiseKeys {
    pub noise: Field<Auto<NoiseKind>>,
    pub degree: Field<Auto<u32>>,
    pub order: Field<Auto<u32>>,
    pub private_order: Field<file::PrivateOrderTable>,
    pub points: Field<Auto<file::PointCounts>>,
    pub cells: cells::CellKeys,
}

/// Shape of a table by key, as far as its noise follows from it.
#[derive(Clone, Copy)]
pub struct CountedNoise {
    pub counting: KeyedFunction,
    /// Numbers of which a unit changes each by as much as any.
    pub changed: u32,
}

impl NoiseRequest {
    pub fn read(
        document: &mut Document<'_>,
        place: &Range<usize>,
        keys: NoiseKeys,
        payment: Option<&Payment>,
    ) -> Checked<NoiseRequest> {
        let noise = keys.noise.as_ref().map_or(place.clone(), Spanned::span);
        let kinds = match keys.noise.as_ref().map(Spanned::get_ref) {
            None => vec![NoiseKind::Laplace],
            Some(Auto::Fixed(kind)) => vec![*kind],
            Some(Auto::Auto(_)) => NoiseKind::paid_with(payment),
        };
        if let [kind] = kinds[..] {
            let pure = r#""cells", "ball", "cube" or "laplace""#;
            pays_for(document, noise.clone(), kind, payment, pure)?;
        }
        match kinds[..] {
            [kind] if kind.is_on_cells() => {
                let why = "does not apply: this noise is added to counts of cells";
                no_lattice(document, &keys, why)?;
                no_key(document, &keys.points, why)?;
                let place = keys.cells.step.as_ref().map_or(noise, Spanned::span);
                Ok(NoiseRequest {
                    cells: Some(keys.cells),
                    ..NoiseRequest::of_kinds(kinds, place)
                })
            }
            [kind] if kind.is_on_points() => {
                let why = "does not apply: this noise is added to kernel points, not to a lattice";
                no_lattice(document, &keys, why)?;
                let why = "does not apply: this noise is added to kernel points";
                no_cells(document, &keys.cells, why)?;
                let points = document.required(place, "points", keys.points, read_points)?;
                let place = points.span();
                Ok(NoiseRequest {
                    points: Some(points),
                    ..NoiseRequest::of_kinds(kinds, place)
                })
            }
            [_] => NoiseRequest::on_lattice(document, place, keys, kinds),
            _ => {
                let why = "is chosen together with the noise";
                no_lattice(document, &keys, why)?;
                no_key(document, &keys.points, why)?;
                no_cells(document, &keys.cells, why)?;
                Ok(NoiseRequest::of_kinds(kinds, noise))
            }
        }
    }

    fn on_lattice(
        document: &mut Document<'_>,
        place: &Range<usize>,
        keys: NoiseKeys,
        kinds: Vec<NoiseKind>,
    ) -> Checked<NoiseRequest> {
        let why = "does not apply: this noise is added to a lattice";
        no_key(document, &keys.points, why)?;
        no_cells(document, &keys.cells, why)?;
        let degree = document.required(place, "degree", keys.degree, read_degree);
        let private_order = match keys.private_order {
            Some(_) if keys.order.is_some() => {
                Err(document.not_one_of(place.clone(), &["order", "private_order"], true))
            }
            Some(table) => private_order::read_private_order(document, table).map(Some),
            None => Ok(None),
        };
        let order = match &private_order {
            // The first of the candidates stands for all.
            Ok(Some(private)) => Ok(Spanned::new(
                private.span(),
                Some(*private.get_ref().candidates.first()),
            )),
            Err(reported) => Err(*reported),
            Ok(None) => document.required(place, "order", keys.order, read_order),
        };
        let degree = degree?;
        let order = order?;
        let private_order = private_order?;
        let place = degree.span();
        Ok(NoiseRequest {
            degree: Some(degree),
            order: Some(order),
            private_order,
            ..NoiseRequest::of_kinds(kinds, place)
        })
    }

    /// Reads the noise of moments, which have no lattice and no kernel. Cube noise is always the smaller pure noise for them: a
    /// record can change every moment by nearly as much as any single one.
    pub fn of_moments(
        document: &mut Document<'_>,
        place: &Range<usize>,
        keys: NoiseKeys,
        payment: Option<&Payment>,
    ) -> Checked<NoiseRequest> {
        let why = "does not apply: [release.moments] alone says how many moments there are";
        no_lattice(document, &keys, why)?;
        no_key(document, &keys.points, why)?;
        no_cells(document, &keys.cells, why)?;
        let Some(noise) = keys.noise else {
            return Ok(NoiseRequest::of_kinds(
                vec![NoiseKind::Laplace],
                place.clone(),
            ));
        };
        let kind = match *noise.get_ref() {
            Auto::Fixed(kind) if kind.is_on_points() => {
                let what = "is added to kernel points, and moments have none";
                let hint = "use noise = \"cube\", the smallest for moments";
                return Err(document.fault(noise.span(), what, hint));
            }
            Auto::Fixed(kind) if kind.is_on_cells() => {
                let what = "is added to counts of cells, and moments have none";
                let hint = "use noise = \"cube\", the smallest for moments";
                return Err(document.fault(noise.span(), what, hint));
            }
            Auto::Fixed(kind) => {
                let pure = r#""cube" or "laplace""#;
                pays_for(document, noise.span(), kind, payment, pure)?;
                kind
            }
            // Of those that are paid for the smallest, whatever the weights of a question.
            Auto::Auto(_) if payment.is_some_and(|payment| payment.pays_for_gaussian()) => {
                NoiseKind::Gaussian
            }
            Auto::Auto(_) => NoiseKind::Cube,
        };
        Ok(NoiseRequest::of_kinds(vec![kind], place.clone()))
    }

    /// Reads the noise of tables of cells: whatever the law, it is added to counts.
    pub fn of_tables(
        document: &mut Document<'_>,
        place: &Range<usize>,
        keys: NoiseKeys,
        payment: Option<&Payment>,
    ) -> Checked<NoiseRequest> {
        let why = "does not apply: [release.cells] publishes counts of cells";
        no_lattice(document, &keys, why)?;
        no_key(document, &keys.points, why)?;
        let mut kinds = vec![NoiseKind::Cells];
        if let Some(noise) = keys.noise {
            match *noise.get_ref() {
                Auto::Fixed(NoiseKind::Laplace) => {}
                Auto::Fixed(NoiseKind::Gaussian) => {
                    kinds = vec![NoiseKind::GaussianCells];
                    let kind = NoiseKind::GaussianCells;
                    pays_for(document, noise.span(), kind, payment, r#""laplace""#)?;
                }
                Auto::Fixed(_) => {
                    let what = "is not for [release.cells], whose noise is added to counts";
                    let hint = "use noise = \"laplace\", \"gaussian\" or \"auto\"";
                    return Err(document.fault(noise.span(), what, hint));
                }
                Auto::Auto(_) => {
                    if payment.is_some_and(|payment| payment.pays_for_gaussian()) {
                        kinds.push(NoiseKind::GaussianCells);
                    }
                }
            }
        }
        let step = keys.cells.step.as_ref();
        let place = step.map_or(place.clone(), Spanned::span);
        Ok(NoiseRequest {
            cells: Some(keys.cells),
            ..NoiseRequest::of_kinds(kinds, place)
        })
    }

    /// Reads the noise of counts and quantiles by key.
    pub fn of_counts(
        document: &mut Document<'_>,
        place: &Range<usize>,
        keys: NoiseKeys,
        payment: Option<&Payment>,
        of: CountedNoise,
    ) -> Checked<NoiseRequest> {
        let why = match of.counting {
            KeyedFunction::Counts => {
                "does not apply: [release.counts] publishes a number for each key"
            }
            KeyedFunction::Quantiles => {
                "does not apply: [release.quantiles] publishes numbers for each key"
            }
        };
        no_lattice(document, &keys, why)?;
        no_key(document, &keys.points, why)?;
        no_cells(document, &keys.cells, why)?;
        let kind = match keys.noise {
            None => NoiseKind::Laplace,
            Some(noise) => match *noise.get_ref() {
                Auto::Fixed(kind @ (NoiseKind::Laplace | NoiseKind::Gaussian)) => {
                    pays_for(document, noise.span(), kind, payment, r#""laplace""#)?;
                    kind
                }
                Auto::Fixed(_) => {
                    let what = match of.counting {
                        KeyedFunction::Counts => {
                            "is not for [release.counts], whose noise is added to each number"
                        }
                        KeyedFunction::Quantiles => {
                            "is not for [release.quantiles], whose noise is added to each count"
                        }
                    };
                    let hint = "use noise = \"laplace\", \"gaussian\" or \"auto\"";
                    return Err(document.fault(noise.span(), what, hint));
                }
                Auto::Auto(_) => smaller_noise(payment, of.changed),
            },
        };
        Ok(NoiseRequest::of_kinds(vec![kind], place.clone()))
    }

    /// Kinds of noise alone.
    fn of_kinds(kinds: Vec<NoiseKind>, place: Range<usize>) -> Self {
        NoiseRequest {
            kinds,
            degree: None,
            order: None,
            private_order: None,
            points: None,
            cells: None,
            place,
        }
    }

    /// The keys that are left to `"auto"`.
    pub fn open_keys(&self) -> Vec<&'static str> {
        fn is_auto<T>(written: &Option<Spanned<Option<T>>>) -> bool {
            written
                .as_ref()
                .is_some_and(|written| written.get_ref().is_none())
        }
        let mut open = Vec::new();
        if self.kinds.len() > 1 {
            open.push("noise");
        }
        if is_auto(&self.degree) {
            open.push("degree");
        }
        if is_auto(&self.order) {
            open.push("order");
        }
        if is_auto(&self.points) {
            open.push("points");
        }
        if let Some(cells) = &self.cells {
            if cells.is_spline_open() {
                open.push("spline");
            }
            if cells.are_steps_open() {
                open.push("step");
            }
        }
        open
    }

    /// The coordinates to build first: those asked for, or the smallest that are tried.
    pub fn first_coordinates(&self, given: &GivenGrid, axes: usize, tables: u32) -> Coordinates {
        if self.kinds.iter().all(|kind| kind.is_on_points()) {
            return NoiseRequest::fixed_value(&self.points)
                .unwrap_or(Coordinates::Points { most: 1 });
        }
        if self.kinds.iter().all(|kind| kind.is_on_cells()) {
            let spline = given.spline.unwrap_or(Spline::Box);
            let grid = given.steps.map(|grid| CellGrid::new(spline, grid.steps()));
            return Coordinates::Cells(grid.unwrap_or(CellGrid::finest_grid(
                Spline::Box,
                axes,
                tables,
            )));
        }
        Coordinates::Lattice {
            degree: NoiseRequest::fixed_value(&self.degree).unwrap_or(select::first_degree()),
        }
    }

    /// The value, if the file gives one.
    pub fn fixed_value<T: Copy>(written: &Option<Spanned<Option<T>>>) -> Option<T> {
        written.as_ref().and_then(|written| *written.get_ref())
    }
}

/// The noise with the smaller deviation where a unit changes as many numbers by 1 each.
fn smaller_noise(payment: Option<&Payment>, changed: u32) -> NoiseKind {
    let Some(payment) = payment.filter(|payment| payment.pays_for_gaussian()) else {
        return NoiseKind::Laplace;
    };
    let laplace = noise_deviation(NoiseKind::Laplace, payment, f64::from(changed));
    let gaussian = noise_deviation(NoiseKind::Gaussian, payment, f64::from(changed).sqrt());
    match (laplace, gaussian) {
        (Some(laplace), Some(gaussian)) if laplace <= gaussian => NoiseKind::Laplace,
        (Some(_), None) => NoiseKind::Laplace,
        _ => NoiseKind::Gaussian,
    }
}

/// The deviation of noise for a change of this norm; `None` if the price does not buy it.
fn noise_deviation(kind: NoiseKind, payment: &Payment, norm: f64) -> Option<f64> {
    const UNIT: f64 = (1_u64 << 32) as f64;
    let law = kind.noise_distribution();
    let change = Sensitivity((norm * UNIT).ceil() as u64);
    let price = payment.mechanism_price();
    let mechanism = Mechanism::calibrated(law, change, 1, price).ok()?;
    #[expect(
        clippy::cast_precision_loss,
        reason = "compared with another deviation"
    )]
    let scale = mechanism.scale().units() as f64;
    Some(scale * law.deviation(1))
}

/// Checks that the price buys this noise, in place of which the release can have any of `pure`.
fn pays_for(
    document: &mut Document<'_>,
    noise: Range<usize>,
    kind: NoiseKind,
    payment: Option<&Payment>,
    pure: &str,
) -> Checked<()> {
    if kind.is_pure() || payment.is_none_or(|payment| payment.pays_for_gaussian()) {
        return Ok(());
    }
    let hint =
        format!("give [privacy] and [release] a `delta`, or price both in `rho`; or use {pure}");
    let what = "Gaussian noise does not give pure differential privacy";
    Err(document.fault(noise, what, hint))
}

fn read_degree(written: Auto<u32>) -> Result<Option<u32>, String> {
    match written {
        Auto::Fixed(degree) if degree > MAX_DEGREE => {
            Err(format!("must be from 1 to {MAX_DEGREE}"))
        }
        Auto::Fixed(degree) => values::count(degree).map(Some),
        Auto::Auto(_) => Ok(None),
    }
}

fn read_order(written: Auto<u32>) -> Result<Option<u32>, String> {
    match written {
        Auto::Fixed(order @ 1..=LARGEST_ORDER) => Ok(Some(order)),
        Auto::Fixed(_) => Err(format!("must be from 1 to {LARGEST_ORDER}")),
        Auto::Auto(_) => Ok(None),
    }
}

/// Checks that no key of a lattice is there.
fn no_lattice(document: &mut Document<'_>, keys: &NoiseKeys, why: &str) -> Checked<()> {
    no_key(document, &keys.degree, why)?;
    no_key(document, &keys.order, why)?;
    no_key(document, &keys.private_order, why)
}

/// Checks that no key of a grid of cells is there.
fn no_cells(document: &mut Document<'_>, keys: &cells::CellKeys, why: &str) -> Checked<()> {
    no_key(document, &keys.spline, why)?;
    no_key(document, &keys.step, why)
}

fn read_points(written: Auto<file::PointCounts>) -> Result<Option<Coordinates>, String> {
    match written {
        Auto::Fixed(file::PointCounts::Most(most)) => Ok(Some(Coordinates::Points {
            most: values::count(most)?,
        })),
        Auto::Fixed(file::PointCounts::Tensor(along)) => {
            let counts = AxisCounts::new(&along).ok_or_else(|| {
                format!("must be a whole number from 1 for each axis, with a product of at most {MOST_POINTS}")
            })?;
            Ok(Some(Coordinates::Tensor(counts)))
        }
        Auto::Auto(_) => Ok(None),
    }
}

fn no_key<T>(document: &mut Document<'_>, field: &Field<T>, why: &str) -> Checked<()> {
    match field {
        None => Ok(()),
        Some(field) => Err(document.fault(field.span(), why, "remove it")),
    }
}
