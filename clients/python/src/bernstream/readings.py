"""Ways to read the values of one synopsis as a function on the unit cube; none costs privacy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Optional, Protocol, Union

import numpy as np

from . import bernstein, noise, posterior, tables
from .arrays import Array, Bounds, in_parts, product
from .bernstein import MAX_ORDER
from .counts import MOST_NODES, Counts
from .description import Description
from .errors import SynopsisError
from .forms import Affine, Cells, Kernels, Keys, Lattice, Moments, Tables
from .kernels import Gaussian, Newton
from .label import Label
from .places import NO_POINTS
from .sums import Sums

#: The order of the Bernstein operator, or ``"nearest"``, ``"kernel"``, ``"posterior"`` or ``"nonnegative"``.
By = Union[int, str]
NAMES = ("nearest", "kernel", "posterior", "nonnegative")

NO_FUNCTION = "it holds moments of the records, not a function of a point: ask with query()"


class Reading(Protocol):
    """One reading of a synopsis, ready for many points of the unit cube."""

    def values(self, points: Array) -> Array: ...

    def mean(self) -> float:
        """The mean over the cube, as in the Rust evaluator: exact for polynomials, otherwise by the midpoint rule."""

    def integral(self, low: Array, high: Array) -> float:
        """The integral over a box of the cube."""


class Polynomial:
    """A Bernstein polynomial."""

    def __init__(self, coefficients: Array) -> None:
        self.coefficients = coefficients
        self.degree = coefficients.shape[0] - 1

    def values(self, points: Array) -> Array:
        def some(at: Array) -> Array:
            return bernstein.evaluate(self.coefficients, [bernstein.basis(self.degree, x) for x in at.T])

        return in_parts(points, (self.degree + 1) ** max(1, self.coefficients.ndim - 1), some)

    def mean(self) -> float:
        return float(self.coefficients.mean())

    def integral(self, low: Array, high: Array) -> float:
        rest = self.coefficients
        for a, b in zip(low, high):
            rest = np.tensordot(bernstein.integrals(self.degree, a, b), rest, axes=1)
        return float(rest)


class Nearest:
    """The value of the nearest lattice point."""

    def __init__(self, lattice: Array) -> None:
        self.lattice, self.degree = lattice, lattice.shape[0] - 1

    def values(self, points: Array) -> Array:
        place = points * self.degree
        below = np.floor(place)
        at = (below + (place - below >= 0.5)).astype(np.int64)
        return np.asarray(self.lattice[tuple(at.T)])

    def mean(self) -> float:
        return _mean(self, self.lattice.ndim)

    def integral(self, low: Array, high: Array) -> float:
        ends = np.concatenate([[0.0], (np.arange(self.degree) + 0.5) / self.degree, [1.0]])
        rest = self.lattice
        for a, b in zip(low, high):
            inside = np.diff(np.clip(ends, a, b))
            rest = np.tensordot(inside, rest, axes=1)
        return float(rest)


class Plane:
    """An affine function."""

    def __init__(self, coefficients: Array) -> None:
        self.coefficients = coefficients

    def values(self, points: Array) -> Array:
        return np.asarray(self.coefficients[0] + (2.0 * points - 1.0) @ self.coefficients[1:])

    def mean(self) -> float:
        return float(self.coefficients[0])

    def integral(self, low: Array, high: Array) -> float:
        return float(np.prod(high - low) * self.values((low + high)[None, :] / 2.0)[0])


class Sum:
    """A sum of kernel functions."""

    def __init__(self, basis: Kernels, coefficients: Array, offset: float) -> None:
        self.basis, self.coefficients, self.offset = basis, coefficients, offset

    def values(self, points: Array) -> Array:
        def some(at: Array) -> Array:
            return self.offset + self.basis.kernel.between(at, self.basis.points) @ self.coefficients

        return in_parts(points, self.basis.points.size, some)

    def mean(self) -> float:
        return _mean(self, self.basis.points.shape[1])

    def integral(self, low: Array, high: Array) -> float:
        functions = self.basis.kernel.integrals(self.basis.points, low, high)
        return float(self.offset * np.prod(high - low) + self.coefficients @ functions)


class Grid:
    """A sum of kernel functions on the nodes of a grid."""

    def __init__(self, basis: Cells, counts: Array, posterior: Optional[Counts] = None) -> None:
        self.basis, self.counts, self.posterior = basis, counts, posterior

    def values(self, points: Array) -> Array:
        basis, counts = self.basis, self.counts
        if basis.kernel.is_diagonal:
            shape = tuple(len(nodes) for nodes in basis.nodes())

            def separately(at: Array) -> Array:
                return bernstein.evaluate(counts.reshape(shape), basis.factors(at))

            return in_parts(points, max(len(counts) // shape[0], sum(shape)), separately)
        nodes = product(basis.nodes())
        return in_parts(points, nodes.size, lambda at: np.asarray(basis.kernel.between(at, nodes) @ counts))

    def mean(self) -> float:
        return _mean(self, len(self.basis.steps))

    def integral(self, low: Array, high: Array) -> float:
        return float(self.counts @ self.weights(low, high))

    def weights(self, low: Array, high: Array) -> Array:
        """The integrals of the nodes' kernels over a box."""
        kernel, nodes = self.basis.kernel, self.basis.nodes()
        if not kernel.is_diagonal:
            # As many places as a quadrature has at once, and a few coordinates each.
            return in_parts(product(nodes), 1_000, lambda some: kernel.integrals(some, low, high))
        weights = np.ones(1)
        for i, along in enumerate(nodes):
            of_axis = Gaussian(kernel.precision[i : i + 1, i : i + 1])
            one = of_axis.integrals(along[:, None], low[i : i + 1], high[i : i + 1])
            weights = np.multiply.outer(weights, one).ravel()
        return weights


class DensityOfTables(Grid):
    """The density of counts without a label, by the smallest bandwidths."""

    def __init__(self, of: tables.Readings, volume: float) -> None:
        basis = of.basis
        variances = basis.narrowed(basis.bandwidths)
        self.peak = 1.0 / float(np.prod(np.sqrt(2.0 * np.pi * variances)) * volume)
        super().__init__(Cells(basis.spline, basis.steps, Gaussian(np.diag(1.0 / variances))), of.counts.ravel() * self.peak)
        self.of = of

    def bounds(self, points: Array, pointwise: bool) -> Bounds:
        values, widths = self.values(points), self.half_widths(points, pointwise)
        return Bounds(values - widths, values + widths)

    def half_widths(self, points: Array, pointwise: bool) -> Array:
        return self.of.factor(pointwise) * self._lengths(points)

    def deviations(self, points: Array) -> Array:
        return self.of.deviation * self._lengths(points)

    def _lengths(self, points: Array) -> Array:
        return self.peak * self.of.around(points, self.of.basis.bandwidths).length


class LabelOfTables:
    """The expected label, or the probability of one class, by the smallest bandwidths."""

    def __init__(self, of: tables.Readings, label: Label) -> None:
        self.of, self.table = of, label.shown
        self.low, self.high = (0.0, 1.0) if label.range is None else label.range
        self.degree = "constant" if label.range is None else "linear"

    def values(self, points: Array) -> Array:
        return np.asarray(self.low + (self.high - self.low) * self.of.probabilities(self._sums(points))[:, self.table])

    def bounds(self, points: Array, pointwise: bool) -> Bounds:
        """What the noise does not exclude: all that the label can be, where that is unknown."""
        lower, upper = self._interval(points, pointwise)
        return Bounds(np.where(np.isnan(lower), self.low, lower), np.where(np.isnan(upper), self.high, upper))

    def half_widths(self, points: Array, pointwise: bool) -> Array:
        """The distance of the further end; the width of the label's range, where that is unknown."""
        lower, upper = self._interval(points, pointwise)
        values = self.values(points)
        found = np.maximum(upper - values, values - lower)
        return np.where(np.isnan(found), self.high - self.low, found)

    def deviations(self, points: Array) -> Array:
        """To first order; infinite where there may be no records."""
        return (self.high - self.low) * self.of.errors(self._sums(points), self.table)

    def mean(self) -> float:
        return _mean(self, len(self.of.nodes))

    def integral(self, low: Array, high: Array) -> float:
        raise SynopsisError("an expected label or a probability has no integral: ask for mean(), proportions() or count()")

    def _sums(self, points: Array) -> Sums:
        return self.of.around(points, self.of.basis.bandwidths, self.degree)

    def _interval(self, points: Array, pointwise: bool) -> Bounds:
        ends = self.of.interval(self._sums(points), self.table, self.of.factor(pointwise))
        return Bounds(*(self.low + (self.high - self.low) * end for end in ends))


#: Readings that know their own intervals.
OfTables = (DensityOfTables, LabelOfTables)


class Smooth:
    """The posterior of a Gaussian process, or kernel interpolation."""

    def __init__(self, of: posterior.Smooth, uncertain: bool) -> None:
        self.of, self.uncertain = of, uncertain

    def values(self, points: Array) -> Array:
        return self.of.values(points)

    def mean(self) -> float:
        return _mean(self, self.of.newton.points.shape[1])

    def integral(self, low: Array, high: Array) -> float:
        return self.of.integral(low, high)


def deviations(reading: Reading) -> Optional[Callable[[Array], Array]]:
    """The reading's own standard deviation at points of the cube; None if it is that of the noise on its values."""
    if isinstance(reading, OfTables):
        return reading.deviations
    if isinstance(reading, Smooth) and reading.uncertain:
        return reading.of.deviations
    if isinstance(reading, Grid) and reading.posterior is not None:
        return reading.posterior.deviations
    return None


def integral_weights(reading: Reading, about: Description, by: By, low: Array, high: Array) -> Optional[Array]:
    """What each value that noise was added to counts in an integral over a box; None if it is no linear function of them."""
    if isinstance(reading, Polynomial) and isinstance(by, int):
        along = [bernstein.integrals(reading.degree, a, b)[None, :] for a, b in zip(low, high)]
        operator = bernstein.Operator(len(along), reading.degree)
        return np.asarray(operator.influences(along, by)).ravel()
    if isinstance(reading, Nearest):
        ends = np.concatenate([[0.0], (np.arange(reading.degree) + 0.5) / reading.degree, [1.0]])
        weights = np.ones(1)
        for a, b in zip(low, high):
            weights = np.multiply.outer(weights, np.diff(np.clip(ends, a, b))).ravel()
        return weights
    if isinstance(reading, Plane):
        return np.asarray(np.prod(high - low) * np.concatenate([[1.0], low + high - 1.0]))
    if isinstance(reading, Sum):
        functions = reading.basis.kernel.integrals(reading.basis.points, low, high)
        # The noise is on the coordinates in Newton's basis.
        return Newton.on(reading.basis.kernel, reading.basis.points).whiten(functions)
    if isinstance(reading, Grid) and reading.posterior is None and by != "nonnegative":
        scale = reading.peak if isinstance(reading, DensityOfTables) else 1.0
        return scale * reading.weights(low, high)
    return None


def midpoints(axes: int) -> Array:
    """The midpoints of equal cells of the unit cube."""
    side = (500, 80, 30)[axes - 1]
    return product([(np.arange(side) + 0.5) / side] * axes)


def _mean(reading: Reading, axes: int) -> float:
    return float(reading.values(midpoints(axes)).mean())


def proper(by: object) -> By:
    """Checks the name of a reading; not every synopsis has all of them."""
    if isinstance(by, str) and by in NAMES:
        return by
    if isinstance(by, (int, np.integer)) and not isinstance(by, bool):
        if 1 <= by <= MAX_ORDER:
            return int(by)
        raise SynopsisError(f"order {by} is not from 1 to {MAX_ORDER}")
    raise SynopsisError(f"a reading is an order or one of {', '.join(NAMES)}, not {by!r}")


def read(about: Description, values: Array, by: By) -> Reading:
    """The function by any reading that the values allow."""
    basis, axes = about.basis, len(about.axes)
    if isinstance(basis, Moments):
        raise SynopsisError(NO_FUNCTION)
    if isinstance(basis, Keys):
        raise SynopsisError(NO_POINTS)
    if isinstance(basis, Tables):
        if not isinstance(by, int):
            raise _not(by)
        of = tables.Readings(about, values)
        return DensityOfTables(of, float(np.prod(about.widths))) if about.label is None else LabelOfTables(of, about.label)
    if isinstance(basis, Cells):
        return _read_cells(about, basis, values, by)
    if isinstance(by, int):
        if isinstance(basis, Lattice):
            if by == 1:
                return Polynomial(values.reshape((basis.degree + 1,) * axes))
            return Polynomial(bernstein.Operator(axes, basis.degree).coefficients(values, by))
        return Plane(values) if isinstance(basis, Affine) else Sum(basis, values, about.offset)
    if by == "nearest" and isinstance(basis, Lattice):
        return Nearest(values.reshape((basis.degree + 1,) * axes))
    if by == "kernel" and isinstance(basis, Kernels):
        return Sum(basis, values, about.offset)
    if by == "kernel" and isinstance(basis, Lattice) and about.prior is not None:
        return Smooth(posterior.interpolation(about, about.prior, values), uncertain=False)
    if by == "posterior" and isinstance(basis, (Lattice, Kernels)):
        return Smooth(posterior.posterior(about, values), uncertain=True)
    raise _not(by)


def _read_cells(about: Description, basis: Cells, values: Array, by: By) -> Reading:
    if isinstance(by, int) or by == "kernel":
        return Grid(basis, values)
    if by not in ("posterior", "nonnegative") or max(map(len, basis.nodes())) > MOST_NODES:
        raise _not(by)
    variance = noise.variance(about.noise.law, len(values)) * about.noise.scale**2
    posterior = Counts(basis, values, variance)
    if by == "posterior":
        return Grid(basis, posterior.mean, posterior)
    return Grid(basis, np.maximum(posterior.mean, 0.0))


def _not(by: By) -> SynopsisError:
    return SynopsisError(f"the values of this synopsis cannot be read by {by!r}")
