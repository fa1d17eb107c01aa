"""What is read from tables of noisy counts of cells, each with its interval: clients/FORMAT.md, on the unit cube.

Every reading is made of sums of the values with weights of a kernel around a point, or of a range. A sum with weights ``a``
is within ``q |a|`` of what it would be without noise; so is, to first order, a function of the values with the gradient ``a``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from . import bernstein, noise
from .arrays import Array, Bounds, in_parts, isotonic, parts
from .description import Description
from .errors import SynopsisError
from .forms import Tables
from .sums import Sums, ratio

#: The number of steps in which a quantile is looked for.
STEPS = 1_000

#: How a label is fitted around a point; "naive" is naive Bayes, of classes only.
DEGREES = ("constant", "linear", "naive")


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
        """By the kernel at points: local constant, local linear, or on each axis for itself."""
        if degree not in DEGREES:
            raise SynopsisError(f"a degree is {DEGREES[0]!r}, {DEGREES[1]!r} or {DEGREES[2]!r}, not {degree!r}")
        variances = self.basis.narrowed(bandwidths)
        of = {"constant": self._constant, "linear": self._linear, "naive": self._naive}[degree]
        size = self.counts.size if degree == "constant" else 5 * self.counts.size
        return Sums.joined([of(_Kernel(self.nodes, at, variances)) for at in parts(points, size)])

    def _constant(self, kernel: _Kernel) -> Sums:
        return self._products(kernel.along)

    def _linear(self, kernel: _Kernel) -> Sums:
        """What noise moves a slope by is told with it: that of every table alone, and the moments of the squared weights."""
        slopes = self._slopes(kernel)
        away, weights = kernel.offsets(), kernel.weights(slopes.sum(axis=1))
        squares = np.square(weights)
        moments = np.einsum("nj,njb,njc->nbc", squares, away, away, optimize=True)
        lengths = np.sqrt(moments[:, 0, 0])
        return Sums(weights @ self.tables.reshape(self.count, -1).T, np.tile(lengths[:, None], self.count), slopes, moments)

    def _naive(self, kernel: _Kernel) -> Sums:
        """For every class the product over the axes of what is counted along each, by its records for each axis but one."""
        axes, cells = len(self.nodes), float(self.counts.size)
        if axes == 1:
            return self._constant(kernel)
        one = self.deviation / math.sqrt(self.count)
        along = [self._alone(kernel, i) for i in range(axes)]
        factors = np.stack([self._products(of).of_tables for of in along], axis=-1)
        # The products of the gradients of the factors, the last of them that of the number of records.
        each = [*along, [np.ones_like(factor) for factor in kernel.along]]
        gram = np.stack([np.stack([_inner(a, b) for b in each], axis=-1) for a in each], axis=-1)
        records = self.tables.reshape(self.count, -1).sum(axis=1)
        least = np.maximum(records, one * math.sqrt(cells))
        divisor = least ** (axes - 1)
        sign = np.where(np.any(factors < 0.0, axis=-1), -1.0, 1.0)
        sums = sign * np.prod(np.abs(factors), axis=-1) / divisor
        # Beside each factor the others, as large as they and their noise probably are.
        sizes = np.hypot(factors, one * np.sqrt(np.diagonal(gram, axis1=1, axis2=2)[:, None, :axes]))
        others = np.stack([np.prod(np.delete(sizes, i, axis=-1), axis=-1) for i in range(axes)], axis=-1)
        by = np.concatenate([others / divisor[:, None], (-(axes - 1.0) * sums / least)[..., None]], axis=-1)
        squares = np.einsum("nta,nab,ntb->nt", by, gram, by)
        return Sums(sums, np.sqrt(np.maximum(squares, 0.0)), None, None, float(records.min()) / math.sqrt(cells))

    def _alone(self, kernel: _Kernel, axis: int) -> list[Array]:
        return [factor if i == axis else np.ones_like(factor) for i, factor in enumerate(kernel.along)]

    def within(self, ranges: Array) -> Sums:
        """Of ranges: for each a low and a high end on every axis."""
        return Sums.joined([self._products(self._shares(some)) for some in parts(ranges, self.counts.size)])

    def _shares(self, ranges: Array) -> list[Array]:
        """The share of each node's spline inside the ranges, along each axis."""
        below = (spline_below(self.basis, axis, ranges[:, axis]) for axis in range(len(self.nodes)))
        return [ends[:, 1] - ends[:, 0] for ends in below]

    def _products(self, along: list[Array]) -> Sums:
        """The sums of all tables with weights that are products over the axes."""
        sums = np.column_stack([bernstein.evaluate(table, along) for table in self.tables])
        return Sums(sums, np.tile(np.sqrt(_inner(along, along))[:, None], self.count))

    def _slopes(self, kernel: _Kernel) -> Array:
        """What makes the kernel's weights local linear: the part of every table, 0 where the counts do not say it."""
        axes = range(len(self.nodes))

        def moments(counts: Array, *axes: int) -> Array:
            return bernstein.evaluate(counts, kernel.times(*axes))

        first = np.stack([np.stack([moments(table, i) for i in axes], axis=1) for table in self.tables], axis=1)
        second = np.stack([np.stack([moments(self.counts, i, k) for k in axes], axis=1) for i in axes], axis=1)
        for i in axes:
            second[:, i, i] += 2.0 * self.deviation * kernel.spread(i)
        return np.stack([_solve(second, first[:, table]) for table in range(self.count)], axis=1)

    def density(self, points: Array, bandwidths: Array) -> tuple[Array, Array]:
        """Records per unit of the cube, and what a factor ``q`` is multiplied by for its half-width."""
        sums = self.around(points, bandwidths)
        peak = float(np.prod(np.sqrt(2.0 * np.pi * self.basis.narrowed(bandwidths))))
        return sums.total / peak, sums.length / peak

    def share(self, ranges: Array) -> tuple[Array, Bounds]:
        """Of all records in each range."""
        inside, shares = self.within(ranges), self._shares(ranges)
        once, twice = (np.prod([(along**power).sum(axis=1) for along in shares], axis=0) for power in (1, 2))
        value = np.clip(inside.total / self.all, 0.0, 1.0) if self.all > 0.0 else np.full(len(ranges), np.nan)
        factor = np.full(len(ranges), self.pointwise * math.sqrt(self.count))
        found = ratio(
            inside.total, np.full(len(ranges), self.all), twice, once, np.full(len(ranges), float(self.counts.size)), factor
        )
        return value, Bounds(*(np.clip(end, 0.0, 1.0) for end in found))

    def probabilities(self, sums: Sums) -> Array:
        """Of each table, a column each: shrunk to those of all records where there are few, as much as the noise asks for."""
        overall = np.maximum(self.tables.reshape(self.count, -1).sum(axis=1), 0.0)
        overall = overall / overall.sum() if overall.sum() > 0.0 else np.full(self.count, 1.0 / self.count)
        error = self.deviation / math.sqrt(self.count) * sums.length
        with np.errstate(divide="ignore", invalid="ignore"):
            more = np.square(error) / np.maximum(sums.total, error)
            shrunk = (sums.of_tables + more[:, None] * overall) / (np.maximum(sums.total, 0.0) + more)[:, None]
            clipped = np.clip(shrunk, 0.0, 1.0)
            total = clipped.sum(axis=1, keepdims=True)
            return np.asarray(np.where(total > 0.0, clipped / total, overall))

    def errors(self, sums: Sums, table: int) -> Array:
        """The standard deviation of the noise on the probability of a table, to first order; infinite without records."""
        p = self.probabilities(sums)[:, table]
        own, shared, whole = sums.variances(table)
        lengths = np.sqrt(np.maximum(own - 2.0 * p * shared + np.square(p) * whole, 0.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(sums.total > 0.0, self.deviation / math.sqrt(self.count) * lengths / sums.total, np.inf)

    def interval(self, sums: Sums, table: int, factor: float) -> Bounds:
        """Of the probability of a table: all that the noise does not exclude, by Fieller's theorem."""
        if sums.least_divisor <= factor:
            return Bounds(*np.full((2, len(sums.lengths)), np.nan))
        found = ratio(sums.of_tables[:, table], sums.total, *sums.variances(table), np.full(len(sums.lengths), factor))
        return Bounds(*(np.clip(end, 0.0, 1.0) for end in found))

    def classes(self, sums: Sums, factor: float) -> tuple[Any, Any]:
        """The most probable table of each row, and whether that is too close to call."""
        order = np.argsort(-self.probabilities(sums), axis=1, kind="stable")
        apart, length = sums.apart(order[:, 0], order[:, 1])
        return order[:, 0], np.asarray((apart <= factor * length) | (sums.least_divisor <= factor))

    def density_ratio(
        self, points: Array, bandwidths: Array, of: int, over: int, factors: tuple[float, ...]
    ) -> tuple[Array, list[Bounds]]:
        """How much denser one class lies at points than another, and what the noise does not exclude of it, for each factor."""
        sums, cells = self.around(points, bandwidths), float(self.counts.size)
        kernel = _Kernel(self.nodes, points, self.basis.narrowed(bandwidths)).along
        once, square = np.prod([along.sum(axis=1) for along in kernel], axis=0), _inner(kernel, kernel)
        (a, b), (n, m) = sums.of_tables[:, [of, over]].T, self.tables.reshape(self.count, -1).sum(axis=1)[[of, over]]
        variances = (m * m * square + a * a * cells, (m * b + a * n) * once, b * b * cells + n * n * square)

        def within(factor: float) -> Bounds:
            known = (b > factor * np.sqrt(square)) & (min(n, m) > factor * math.sqrt(cells))
            found = ratio(a * m, b * n, *variances, np.full(len(points), factor))
            return Bounds(*(np.where(known, np.maximum(end, 0.0), np.nan) for end in found))

        known = (b > 0.0) & (min(n, m) > 0.0)
        value = np.where(known, np.maximum(a * m, 0.0) / np.where(known, b * n, 1.0), np.nan)
        return value, [within(factor) for factor in factors]

    def quantiles(self, shares: Array) -> tuple[Array, Bounds]:
        """Where the distribution function reaches each part, on one axis."""
        if len(self.nodes) != 1:
            raise SynopsisError(f"quantiles need one axis, not {len(self.nodes)}")

        def some(at: Array) -> Array:
            below = spline_below(self.basis, 0, at)
            return np.column_stack([below @ self.counts, below.sum(axis=1), np.square(below).sum(axis=1)])

        places = np.arange(STEPS + 1) / STEPS
        running, once, twice = in_parts(places, self.counts.size, some).T
        rising = isotonic(running)
        found = np.array([self._quantile(part, running, rising, once, twice) for part in shares.tolist()]).reshape(-1, 3).T
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

    def offsets(self) -> Array:
        """1 and the distance along each axis, for every point and node."""
        count, axes = len(self.away[0]), len(self.away)
        wide = np.broadcast_arrays(*(self._on_axis(away, i) for i, away in enumerate(self.away)))
        return np.stack([np.ones(wide[0].shape), *wide], axis=-1).reshape(count, -1, axes + 1)

    def weights(self, slopes: Array) -> Array:
        """``K_j (1 - slopes . d_j)``, a row for each point."""
        product, slope = np.float64(1.0), np.float64(1.0)
        for i, along in enumerate(self.along):
            product = product * self._on_axis(along, i)
            slope = slope - self._on_axis(slopes[:, i : i + 1] * self.away[i], i)
        return np.asarray(product * slope).reshape(len(slopes), -1)

    def _on_axis(self, along: Array, axis: int) -> Array:
        shape = [len(along)] + [1] * len(self.away)
        shape[1 + axis] = -1
        return along.reshape(shape)


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


def _inner(one: list[Array], other: list[Array]) -> Array:
    """The inner product of weights that are products over the axes, for each row."""
    return np.asarray(np.prod([(a * b).sum(axis=1) for a, b in zip(one, other)], axis=0))


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
