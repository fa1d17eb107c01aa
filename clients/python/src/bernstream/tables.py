"""What is read from tables of noisy counts of cells, each with its interval: clients/FORMAT.md, on the unit cube.

Every reading is made of sums of the values with weights of a kernel around a point, or of a range. A sum with weights ``a``
is within ``q |a|`` of what it would be without noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import bernstein, noise
from .arrays import Array, in_parts
from .density import Bounds, isotonic
from .description import Description
from .errors import SynopsisError
from .forms import Tables

#: The number of steps in which a quantile is looked for.
STEPS = 1_000


@dataclass(frozen=True, eq=False)
class Sums:
    """The sums of every table with weights ``W``: a row per point or range, and a column per table."""

    of_tables: Array
    #: ``|W|``
    lengths: Array

    @property
    def total(self) -> Array:
        return np.asarray(self.of_tables.sum(axis=1))


class Readings:
    """All that the values say. Points and ranges have one row each; unknown is NaN."""

    def __init__(self, about: Description, values: Array) -> None:
        if not isinstance(about.basis, Tables):
            raise SynopsisError(f"this synopsis is a {about.kind}: only those with the target 'cells' hold counts to read from")
        self.basis, self.count = about.basis, about.basis.tables
        self.nodes = self.basis.nodes()
        self.tables = values.reshape(self.count, *(len(along) for along in self.nodes))
        self.counts = np.asarray(self.tables.sum(axis=0))
        self.all = float(self.counts.sum())
        law, scale = about.noise.law, about.noise.scale
        stated = about.band.pointwise
        self.pointwise = stated if stated is not None else scale * noise.pointwise(law, len(values))
        self.simultaneous = about.band.half_width
        #: The standard deviation of the noise on a cell, over all tables.
        self.deviation = scale * math.sqrt(noise.variance(law, len(values)) * self.count)

    def factor(self, pointwise: bool) -> float:
        """Of statements about one place, or about all of them and all bandwidths at once."""
        return self.pointwise if pointwise else self.simultaneous

    def around(self, points: Array, bandwidths: Array, degree: str = "constant") -> Sums:
        """By the kernel at points, local constant or local linear."""
        if degree not in ("constant", "linear"):
            raise SynopsisError(f"a degree is 'constant' or 'linear', not {degree!r}")
        size = self.counts.size

        def some(at: Array) -> Array:
            kernel = _Kernel(self.nodes, at, self.basis.narrowed(bandwidths))
            if degree == "constant":
                return self._products(kernel.along)
            weights = kernel.weights(self._slopes(kernel)).reshape(len(at), size)
            return np.column_stack([weights @ self.tables.reshape(self.count, size).T, np.linalg.norm(weights, axis=1)])

        return _sums(in_parts(points, size if degree == "constant" else 3 * size, some))

    def within(self, ranges: Array) -> Sums:
        """Of ranges: for each a low and a high end on every axis."""
        return _sums(in_parts(ranges, self.counts.size, lambda some: self._products(self._shares(some))))

    def _shares(self, ranges: Array) -> list[Array]:
        """The share of each node's spline inside the ranges, along each axis."""
        below = (spline_below(self.basis, axis, ranges[:, axis]) for axis in range(len(self.nodes)))
        return [ends[:, 1] - ends[:, 0] for ends in below]

    def _products(self, along: list[Array]) -> Array:
        """The sums of all tables with weights that are products over the axes, and their length."""
        sums = [bernstein.evaluate(table, along) for table in self.tables]
        return np.column_stack([*sums, np.prod([np.linalg.norm(factor, axis=1) for factor in along], axis=0)])

    def _slopes(self, kernel: _Kernel) -> Array:
        """What makes the kernel's weights local linear: 0 where the counts do not say it."""
        axes = range(len(self.nodes))

        def moments(*axes: int) -> Array:
            return bernstein.evaluate(self.counts, kernel.times(*axes))

        first = np.stack([moments(i) for i in axes], axis=1)
        second = np.stack([np.stack([moments(i, k) for k in axes], axis=1) for i in axes], axis=1)
        for i in axes:
            second[:, i, i] += 2.0 * self.deviation * kernel.spread(i)
        return _solve(second, first)

    def density(self, points: Array, bandwidths: Array) -> tuple[Array, Array]:
        """Records per unit of the cube, and what a factor ``q`` is multiplied by for its half-width."""
        sums = self.around(points, bandwidths)
        peak = float(np.prod(np.sqrt(2.0 * np.pi * self.basis.narrowed(bandwidths))))
        return sums.total / peak, math.sqrt(self.count) * sums.lengths / peak

    def share(self, ranges: Array) -> tuple[Array, Bounds]:
        """Of all records in each range."""
        inside, shares = self.within(ranges), self._shares(ranges)
        once, twice = (np.prod([(along**power).sum(axis=1) for along in shares], axis=0) for power in (1, 2))
        value = np.clip(inside.total / self.all, 0.0, 1.0) if self.all > 0.0 else np.full(len(ranges), np.nan)
        factor = np.full(len(ranges), self.pointwise * math.sqrt(self.count))
        return value, _ratio(inside.total, np.full(len(ranges), self.all), twice, once, float(self.counts.size), factor)

    def probabilities(self, sums: Sums) -> Array:
        """Of each table, a column each: shrunk to those of all records where there are few, as much as the noise asks for."""
        overall = np.maximum(self.tables.reshape(self.count, -1).sum(axis=1), 0.0)
        overall = overall / overall.sum() if overall.sum() > 0.0 else np.full(self.count, 1.0 / self.count)
        error = self.deviation * sums.lengths
        with np.errstate(divide="ignore", invalid="ignore"):
            more = np.square(error) / np.maximum(sums.total, error)
            shrunk = (sums.of_tables + more[:, None] * overall) / (np.maximum(sums.total, 0.0) + more)[:, None]
            clipped = np.clip(shrunk, 0.0, 1.0)
            total = clipped.sum(axis=1, keepdims=True)
            return np.asarray(np.where(total > 0.0, clipped / total, overall))

    def errors(self, sums: Sums, table: int) -> Array:
        """The standard deviation of the noise on the probability of a table, to first order; infinite without records."""
        p = self.probabilities(sums)[:, table]
        lengths = sums.lengths * np.sqrt(np.square(1.0 - p) + (self.count - 1.0) * np.square(p))
        with np.errstate(divide="ignore", invalid="ignore"):
            one = self.deviation / math.sqrt(self.count)
            return np.where(sums.total > 0.0, one * lengths / sums.total, np.inf)

    def interval(self, sums: Sums, table: int, factor: float) -> Bounds:
        """Of the probability of a table: all that the noise does not exclude, by Fieller's theorem."""
        ones = np.ones(len(sums.lengths))
        return _ratio(sums.of_tables[:, table], sums.total, ones, ones, float(self.count), factor * sums.lengths)

    def classes(self, sums: Sums, factor: float) -> tuple[Any, Any]:
        """The most probable table of each row, and whether that is too close to call."""
        order = np.argsort(-self.probabilities(sums), axis=1, kind="stable")
        first, second = (np.take_along_axis(sums.of_tables, order[:, i : i + 1], axis=1)[:, 0] for i in (0, 1))
        return order[:, 0], np.asarray(first - second <= factor * math.sqrt(2.0) * sums.lengths)

    def quantiles(self, parts: Array) -> tuple[Array, Bounds]:
        """Where the distribution function reaches each part, on one axis."""
        if len(self.nodes) != 1:
            raise SynopsisError(f"quantiles need one axis, not {len(self.nodes)}")

        def some(at: Array) -> Array:
            shares = spline_below(self.basis, 0, at)
            return np.column_stack([shares @ self.counts, shares.sum(axis=1), np.square(shares).sum(axis=1)])

        places = np.arange(STEPS + 1) / STEPS
        running, once, twice = in_parts(places, self.counts.size, some).T
        rising = isotonic(running)
        found = np.array([self._quantile(part, running, rising, once, twice) for part in parts.tolist()]).reshape(-1, 3).T
        return found[0], Bounds(found[1], found[2])

    def _quantile(self, part: float, running: Array, rising: Array, once: Array, twice: Array) -> tuple[float, float, float]:
        lengths = np.sqrt(np.maximum(twice - 2.0 * part * once + part * part * self.counts.size, 0.0))
        noise, above = self.pointwise * math.sqrt(self.count) * lengths, running - part * self.all
        low = max(int(np.flatnonzero(above >= -noise)[0]) - 1, 0)
        high = min(int(np.flatnonzero(above <= noise)[-1]) + 1, STEPS)
        if not self.all > 0.0:
            return math.nan, low / STEPS, high / STEPS
        at = min(int(np.searchsorted(rising, part * self.all)), STEPS)
        before, here = float(rising[max(at - 1, 0)]), float(rising[at])
        back = (here - part * self.all) / (here - before) if here > before else 0.0
        return (at - min(max(back, 0.0), 1.0)) / STEPS, low / STEPS, high / STEPS


class _Kernel:
    """The kernel of several points at all nodes: a factor for each axis."""

    def __init__(self, nodes: list[Array], points: Array, variances: Array) -> None:
        self.away = [along - at[:, None] for along, at in zip(nodes, points.T)]
        self.along = [np.exp(-np.square(away) / (2.0 * variance)) for away, variance in zip(self.away, variances)]

    def times(self, *axes: int) -> list[Array]:
        """Multiplied by the distance along each of these axes."""
        found = list(self.along)
        for axis in axes:
            found[axis] = found[axis] * self.away[axis]
        return found

    def spread(self, axis: int) -> Array:
        """``sqrt(sum_j K_j^2 d_j^4)``, ``d`` the distance along an axis."""
        return np.asarray(np.prod([np.linalg.norm(factor, axis=1) for factor in self.times(axis, axis)], axis=0))

    def weights(self, slopes: Array) -> Array:
        """``K_j (1 - slopes . d_j)``, all axes in one tensor."""
        count, axes = slopes.shape
        product, slope = np.ones((count,) + (1,) * axes), np.ones((count,) + (1,) * axes)
        for i in range(axes):
            shape = [count] + [1] * axes
            shape[1 + i] = -1
            product = product * self.along[i].reshape(shape)
            slope = slope - (slopes[:, i : i + 1] * self.away[i]).reshape(shape)
        return product * slope


def spline_below(basis: Tables, axis: int, x: Array) -> Array:
    """The part of every node's spline inside the cube that lies below ``x`` along an axis."""
    nodes, steps = basis.nodes()[axis], basis.steps[axis]
    first, last = (_integral(basis.spline, (end - nodes) * steps) for end in (0.0, 1.0))
    return (_integral(basis.spline, (x[..., None] - nodes) * steps) - first) / (last - first)


def _integral(spline: str, u: Array) -> Array:
    """Of a spline up to ``u`` steps from its node."""
    if spline == "box":
        return np.clip(u + 0.5, 0.0, 1.0)
    size = np.abs(u)
    if spline == "linear":
        tail = np.square(1.0 - np.minimum(size, 1.0)) / 2.0
    else:
        tail = np.where(size <= 0.5, 0.5 - 0.75 * size + size**3 / 3.0, (1.5 - np.minimum(size, 1.5)) ** 3 / 6.0)
    return np.where(u < 0.0, tail, 1.0 - tail)


def _sums(columns: Array) -> Sums:
    return Sums(columns[:, :-1], columns[:, -1])


def _ratio(above: Array, below: Array, twice: Array, once: Array, none: float, factor: Array) -> Bounds:
    """All ``p`` from 0 to 1 with ``|above - p below| <= factor sqrt(twice - 2 p once + p^2 none)``.

    NaN where the noise does not tell ``below`` from 0.
    """
    known = below > factor * math.sqrt(none)
    square = np.square(factor)
    a, b = np.square(below) - square * none, above * below - square * once
    # `b^2 - a d`, without the difference of two large numbers.
    spread = np.square(below) * twice - 2.0 * above * below * once + np.square(above) * none
    root = factor * np.sqrt(np.maximum(spread - square * (none * twice - np.square(once)), 0.0))
    a = np.where(known, a, np.nan)
    return Bounds(np.clip((b - root) / a, 0.0, 1.0), np.clip((b + root) / a, 0.0, 1.0))


def _solve(matrices: Array, right: Array) -> Array:
    """Each system by Cholesky's factors; 0 where its matrix is not positive definite."""
    axes = right.shape[1]
    lower, found = np.zeros_like(matrices), np.zeros_like(right)
    definite = np.ones(len(right), dtype=bool)
    for i in range(axes):
        for k in range(i + 1):
            rest = matrices[:, i, k] - (lower[:, i, :k] * lower[:, k, :k]).sum(axis=1)
            if k < i:
                lower[:, i, k] = rest / lower[:, k, k]
            else:
                definite &= rest > 0.0
                lower[:, i, i] = np.sqrt(np.where(rest > 0.0, rest, 1.0))
    for i in range(axes):
        found[:, i] = (right[:, i] - (lower[:, i, :i] * found[:, :i]).sum(axis=1)) / lower[:, i, i]
    for i in reversed(range(axes)):
        found[:, i] = (found[:, i] - (lower[:, i + 1 :, i] * found[:, i + 1 :]).sum(axis=1)) / lower[:, i, i]
    return np.asarray(np.where(definite[:, None], found, 0.0))
