"""What clients/FORMAT.md says of tables of cells, written out one node at a time."""

from __future__ import annotations

import copy
import itertools
import math
from typing import Any, Callable

import numpy as np
from scipy import integrate

from bernstream import Synopsis


def share(spline: str, distance: float) -> float:
    """What a record leaves on a node at a distance of so many steps."""
    f = abs(distance)
    if spline == "box":
        return 1.0 if f <= 0.5 else 0.0
    if spline == "linear":
        return max(1.0 - f, 0.0)
    return 0.75 - f * f if f <= 0.5 else max(1.5 - f, 0.0) ** 2 / 2.0


class Reference:
    """One node at a time."""

    def __init__(self, synopsis: Synopsis) -> None:
        form = synopsis.meta["basis"]["tables"]
        self.spline, self.steps = form["spline"], form["steps"]
        first, more, variance = {"box": (0.5, 0, 12), "linear": (0.0, 1, 6), "quadratic": (-1.0, 3, 4)}[self.spline]
        along = [[(j + first) / m for j in range(m + more)] for m in self.steps]
        self.nodes = list(itertools.product(*along))
        self.tables = synopsis.values.reshape(form["tables"], len(self.nodes))
        self.counts, self.all = self.tables.sum(axis=0), float(synopsis.values.sum())
        self.widths = [axis.max - axis.min for axis in synopsis.axes]
        self.low = [axis.min for axis in synopsis.axes]
        self.added = [1.0 / (variance * m * m) for m in self.steps]
        self.tau = math.sqrt(2.0 * form["tables"])

    def cube(self, point: Any) -> list[float]:
        return [(x - low) / width for x, low, width in zip(point, self.low, self.widths)]

    def variances(self, bandwidths: Any) -> list[float]:
        return [(b / width) ** 2 - added for b, width, added in zip(bandwidths, self.widths, self.added)]

    def kernel(self, point: Any, bandwidths: Any) -> Any:
        y, s2 = self.cube(point), self.variances(bandwidths)
        return np.array([math.exp(-sum((a - b) ** 2 / (2.0 * s) for a, b, s in zip(y, p, s2))) for p in self.nodes])

    def linear(self, point: Any, bandwidths: Any) -> Any:
        """By a least-squares fit of an affine function, ridged as the page says."""
        kernel, y = self.kernel(point, bandwidths), self.cube(point)
        away = np.array([[a - b for a, b in zip(p, y)] for p in self.nodes])
        matrix = (kernel * self.counts * away.T) @ away
        matrix += np.diag(
            [2.0 * self.tau * math.sqrt(sum((k * d * d) ** 2 for k, d in zip(kernel, along))) for along in away.T]
        )
        if np.linalg.eigvalsh(matrix)[0] <= 0.0:
            return kernel
        return kernel * (1.0 - away @ np.linalg.solve(matrix, away.T @ (kernel * self.counts)))

    def inside(self, ranges: Any) -> Any:
        """The share of each node's spline in a box: of what lies inside the domain."""

        def along(axis: int, node: float, low: float, high: float) -> float:
            m = self.steps[axis]
            breaks = sorted({low, high, *(x for k in range(-3, 4) if low < (x := node + k / 2.0 / m) < high)})
            pieces = itertools.pairwise(breaks)
            return sum(integrate.quad(lambda x: m * share(self.spline, (x - node) * m), a, b)[0] for a, b in pieces)

        def part(axis: int, node: float, low: float, high: float) -> float:
            return along(axis, node, low, high) / along(axis, node, 0.0, 1.0)

        ends = np.transpose([self.cube(end) for end in np.transpose(ranges)])
        return np.array([math.prod(part(i, p[i], *ends[i]) for i in range(len(ends))) for p in self.nodes])

    def weights(self, point: Any, bandwidths: Any, degree: str) -> Any:
        return self.linear(point, bandwidths) if degree == "linear" else self.kernel(point, bandwidths)

    def gradients(self, point: Any, bandwidths: Any, degree: str) -> Any:
        """What every value moves the sum of every table by: a row each, by differences."""
        found = np.zeros((len(self.tables), self.tables.size))
        for i in range(self.tables.size):
            for step in (1e-4, -1e-4):
                moved = copy.copy(self)
                moved.tables = self.tables.copy()
                moved.tables.flat[i] += step
                moved.counts = moved.tables.sum(axis=0)
                found[:, i] += moved.tables @ moved.weights(point, bandwidths, degree) / (2.0 * step)
        return found

    def naive(self, point: Any, bandwidths: Any) -> tuple[Any, Any]:
        """The number for each class, and what its own values move it by, each factor beside others that are not small."""
        y, s2, axes = self.cube(point), self.variances(bandwidths), len(self.steps)
        along = [np.array([math.exp(-((y[i] - p[i]) ** 2) / (2.0 * s2[i])) for p in self.nodes]) for i in range(axes)]
        sums, gradients = [], []
        for table in self.tables:
            divisor = max(table.sum(), math.sqrt(2.0 * len(table)))
            factors = [float(table @ kernel) for kernel in along]
            sizes = [math.sqrt(factor**2 + 2.0 * kernel @ kernel) for factor, kernel in zip(factors, along)]
            sign = -1.0 if min(factors) < 0.0 else 1.0
            sums.append(sign * abs(math.prod(factors)) / divisor ** (axes - 1))
            others = [math.prod(sizes[:i] + sizes[i + 1 :]) / divisor ** (axes - 1) for i in range(axes)]
            gradients.append(sum(one * kernel for one, kernel in zip(others, along)) - (axes - 1) * sums[-1] / divisor)
        # No value moves the number of another class.
        count, size = self.tables.shape
        apart = np.zeros((count, count * size))
        for table, gradient in enumerate(gradients):
            apart[table, table * size : (table + 1) * size] = gradient
        return np.array(sums), apart

    def probability(self, weights: Any, table: int) -> float:
        length = math.sqrt(len(self.tables)) * float(np.linalg.norm(weights))
        return self.part(self.tables @ weights, length, table)

    def part(self, sums: Any, length: float, table: int) -> float:
        overall = np.maximum(self.tables.sum(axis=1), 0.0)
        overall = overall / overall.sum() if overall.sum() > 0.0 else np.full(len(sums), 1.0 / len(sums))
        e = math.sqrt(2.0) * length
        more = e * e / max(sums.sum(), e)
        clipped = np.clip((sums + more * overall) / (max(sums.sum(), 0.0) + more), 0.0, 1.0)
        return float(clipped[table] / clipped.sum()) if clipped.sum() > 0.0 else float(overall[table])


def scanned(misfit: Callable[[float], float], found: Any) -> None:
    """The interval is where the misfit is not positive: by trying."""
    lower, upper = float(found.lower), float(found.upper)
    p = np.linspace(0.0, 1.0, 2001)
    held = np.array([misfit(x) <= 0.0 for x in p])
    assert np.array_equal(held, (lower <= p) & (p <= upper)), (lower, upper)
    for end in (lower, upper):
        assert end in (0.0, 1.0) or abs(misfit(end)) < 1e-6 * max(abs(misfit(0.0)), abs(misfit(1.0)), 1.0)


def fieller(sums: Any, gradients: Any, table: int, q: float) -> Callable[[float], float]:
    def misfit(p: float) -> float:
        length = float(np.linalg.norm(gradients[table] - p * gradients.sum(axis=0)))
        return abs(float(sums[table] - p * sums.sum())) - q * length

    return misfit


def somewhere(synopsis: Synopsis, count: int = 4) -> list[list[float]]:
    rng = np.random.default_rng(11)
    points = [[rng.uniform(axis.min, axis.max) for axis in synopsis.axes] for _ in range(count)]
    return [*points, [axis.min for axis in synopsis.axes], [axis.max for axis in synopsis.axes]]


def boxes(synopsis: Synopsis) -> list[list[tuple[float, float]]]:
    pairs = zip(somewhere(synopsis), reversed(somewhere(synopsis)))
    return [[(min(a, b), max(a, b)) for a, b in zip(one, other)] for one, other in pairs if one != other]
