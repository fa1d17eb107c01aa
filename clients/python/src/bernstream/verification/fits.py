"""What is fitted to records with a label: docs/proofs/regression.md, bayes.md and machines.md."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Callable

import numpy as np

from ..arrays import Array
from ..description import Description
from ..forms import Affine, Kernels, Lattice
from ..kernels import Gaussian, Kernel, Laplacian, Polynomial
from .changes import Needed, lattice, norm_of, places, rounding
from .densities import cells_of, table

#: Where the Huber loss turns straight, in labels of -1 to 1.
_STRAIGHT = 0.25
#: `max_t t s(t)` of the logistic and the squared loss, and where it is.
_PEAKS = {"logistic": (1.278464542761074, 0.278464542761074), "squared": (0.5, 0.25)}
_ANGLES = 2048
#: How far a solver may end from the minimiser, as a part of what an exchanged record moves it.
_SOLVED = 0.025
#: The most entries of a kernel matrix that is written down.
_ENTRIES = 20_000_000


def needed(about: Description, norm: str, adjacency: str, grid: float) -> Needed:
    (name, method), *_ = about.target["method"].items()
    # A label is mapped to -1 to 1; a class is one of the two.
    label = (about.target["max"] - about.target["min"]) / 2.0 if about.kind == "regression" else 1.0
    if name == "priestley_chao":
        return _priestley_chao(about, method, norm, label, grid)
    if name == "kernel_bayes":
        return _kernel_bayes(about, method, norm, adjacency, grid)
    if name == "gaussian_bayes":
        return _gaussian_bayes(about, method, adjacency)
    if name == "kernel_machine":
        return _machine(about, method, norm, label, grid)
    return _logistic(about, method, norm, grid)


def _priestley_chao(about: Description, method: Mapping[str, Any], norm: str, label: float, grid: float) -> Needed:
    """Two windows of the most records differ by one that goes and one that comes, each with its successor's weight."""
    assert isinstance(about.basis, Lattice)
    width = float(about.widths[0])
    b, gap = method["bandwidth"] / width, method["gap"] / width
    cells = math.ceil(16.0 / b)
    columns, narrowed = table(b, cells, about.basis.degree)
    border = np.minimum((np.arange(columns.shape[1]) + 1) / cells, 1.0)
    values = columns.shape[0]

    def of(which: str) -> float:
        norms = norm_of(columns, which)
        most = min(4.0 * float((np.minimum(border, gap) * norms).max()), 2.0 * float(norms.max()))
        return most * label / (math.sqrt(2.0 * math.pi) * narrowed) + rounding(values, which) * grid

    change = of(norm)
    if norm == "2-norm":
        change = min(change, math.sqrt(of("1-norm") * of("sup norm")))
    return Needed(change, 1e-6)


def _kernel_bayes(about: Description, method: Mapping[str, Any], norm: str, adjacency: str, grid: float) -> Needed:
    assert isinstance(about.basis, Lattice)
    degree, volume = about.basis.degree, math.prod(about.widths)
    b = np.array(method["bandwidths"], dtype=np.float64) / about.widths
    tables, narrowed = zip(*(table(float(b_i), cells_of(np.array([b_i]))[0], degree) for b_i in b))
    peak = math.prod(1.0 / (math.sqrt(2.0 * math.pi) * bandwidth) for bandwidth in narrowed) / volume
    axes, values = len(tables), (degree + 1) ** len(tables)
    m = [float(columns.sum(axis=0).max()) for columns in tables]
    a = [_excess(columns) for columns in tables]
    lengths = math.prod(float(norm_of(columns, "2-norm").max()) for columns in tables)
    classes = 2.0 if adjacency == "replace_one" else 1.0
    sup = float(max(1, axes - 1))
    mass = min(_mass(m, a), values * sup)
    parts = {"1-norm": mass, "2-norm": math.sqrt(axes * axes - axes + 1) * lengths, "sup norm": sup}
    parts = {which: classes * part * peak + rounding(values, which) * grid for which, part in parts.items()}
    if norm == "2-norm":
        parts["2-norm"] = min(parts["2-norm"], math.sqrt(parts["1-norm"] * parts["sup norm"]))
    return Needed(parts[norm], 1e-5)


def _mass(m: list[float], a: list[float]) -> float:
    if len(m) == 1:
        return m[0]
    if len(m) == 2:
        return max(m[0] * m[1] + 2.0 * a[0] * a[1], 2.0 * a[0] * m[1], 2.0 * m[0] * a[1])
    open_ = math.prod(m) + 2.0 * (m[0] * a[1] * a[2] + a[0] * m[1] * a[2] + a[0] * a[1] * m[2]) - 2.0 * math.prod(a)
    sides = sorted(2.0 * a[i] * m[(i + 1) % 3] * m[(i + 2) % 3] for i in range(3))
    return max(open_, sides[1] + sides[2])


def _excess(columns: Array) -> float:
    """The largest mass by which one column exceeds another."""
    step = max(1, columns.shape[1] // 400)
    some = columns[:, ::step]
    return max(float(np.maximum(column[:, None] - some, 0.0).sum(axis=0).max()) for column in some.T)


def _gaussian_bayes(about: Description, method: Mapping[str, Any], adjacency: str) -> Needed:
    variances = np.square(np.array(method["min_deviations"], dtype=np.float64) / about.widths)
    peak = float(np.prod(1.0 / np.sqrt(2.0 * math.pi * variances))) / math.prod(about.widths)
    least = max(float((0.5 / variances).sum()) - 1.0, 1.0)
    classes = 2.0 if adjacency == "replace_one" else 1.0
    words = "the search that finds the largest change of a Gaussian score: only a change that is reached was recomputed"
    return Needed(classes * least * peak, 1e-6, words)


def reach(loss: str, c: float) -> float:
    """At least the norm of a minimiser."""
    found = math.inf
    at, peak = _PEAKS[loss]
    for _ in range(100):
        gain = peak if found > at else found * (1.0 / (1.0 + math.exp(found)) if loss == "logistic" else 1.0 - found)
        found = math.sqrt(c * gain)
    return found


def pulls(loss: str, c: float) -> tuple[float, float]:
    """The steepest slope of a loss, and how far apart the slopes times kernels of two records can be."""
    if loss == "hinge":
        return 1.0, 2.0
    if loss == "huber":
        return _STRAIGHT, 2.0 * _STRAIGHT
    most, (at, peak) = reach(loss, c), _PEAKS[loss]
    steepest = 1.0 / (1.0 + math.exp(-most)) if loss == "logistic" else 1.0 + most
    angles = 2.0 * math.pi * np.arange(_ANGLES) / _ANGLES
    margin = most * np.cos(angles)
    slope = 1.0 / (1.0 + np.exp(margin)) if loss == "logistic" else 1.0 - margin
    shortened = np.where(margin > at, peak / np.maximum(margin, at), slope)
    half = [float((np.roll(shortened, psi) * np.cos(angles)).max()) for psi in range(_ANGLES // 2 + 1)]
    apart = max(one + other for one, other in zip(half, reversed(half)))
    return steepest, min(apart, 2.0 * steepest)


def _exchange(loss: str, c: float, records: int) -> Callable[[float, float], float]:
    """How far an exchanged record moves a functional of the minimiser: by its norm, and the most it has on one record."""
    steepest, apart = pulls(loss, c)
    r, both = c / records * apart, c / records * 2.0 * steepest
    return lambda norm, at: (min(both * at, r * norm) + r * norm) / 2.0 + 2.0 * _SOLVED * r * norm


_SOLVER = "that solvers end as near to the minimiser as their certificates say, 2.5 % of what one record changes"


def _machine(about: Description, method: Mapping[str, Any], norm: str, label: float, grid: float) -> Needed:
    functional = _exchange(method["loss"], method["c"], method["max_records"])
    if isinstance(about.basis, Kernels):
        count = len(about.basis.points)
        moved = functional(1.0, 1.0)
        by_norm = {"1-norm": math.sqrt(count) * moved, "2-norm": moved, "sup norm": moved}
        return Needed(by_norm[norm] * label + rounding(count, norm) * grid, 1e-6, _SOLVER)
    assert isinstance(about.basis, Lattice)
    change, values = _on_lattice(
        _kernel(method["kernel"], len(about.axes)), len(about.axes), about.basis.degree, functional, norm
    )
    # Functions of landmarks are a little smaller than those of the kernel.
    tolerance = 0.05 if method.get("landmarks") else 1e-3
    return Needed(change * label + rounding(values, norm) * grid, tolerance, _SOLVER)


def _on_lattice(
    kernel: Kernel, axes: int, degree: int, functional: Callable[[float, float], float], norm: str
) -> tuple[float, int]:
    points = lattice(axes, degree)
    values = len(points)
    if norm == "sup norm":
        return functional(1.0, 1.0), values
    if values * values > _ENTRIES:
        # A part of the points has smaller sums: a bound from below.
        points = points[:: -(-values * values // _ENTRIES)]
    matrix = np.abs(kernel.between(points, points))
    if norm == "1-norm":
        tried = places(axes, degree)[:2000]
        column = max(float(matrix.sum(axis=0).max()), float(np.abs(kernel.between(points, tried)).sum(axis=0).max()))
        return functional(min(math.sqrt(float(matrix.sum())), float(values)), column), values
    rows, squares = float(matrix.sum(axis=0).max()), float(np.square(matrix).sum(axis=0).max())
    return functional(math.sqrt(rows), math.sqrt(squares)), values


def _kernel(written: Any, axes: int) -> Kernel:
    name, content = (written, {}) if isinstance(written, str) else next(iter(written.items()))
    if name == "gaussian":
        return Gaussian(np.eye(axes) / content["bandwidth"] ** 2)
    if name == "laplacian":
        return Laplacian(content["bandwidth"])
    return Polynomial(content.get("power", 1))


def _logistic(about: Description, method: Mapping[str, Any], norm: str, grid: float) -> Needed:
    functional = _exchange("logistic", method["c"], method["max_records"])
    width = len(about.axes) + 1
    root = math.sqrt(width)
    if isinstance(about.basis, Affine):
        change = {
            "1-norm": functional(root, root) / root,
            "2-norm": functional(1.0, 1.0) / root,
            "sup norm": functional(1.0, 1.0 / root) / root,
        }[norm]
        return Needed(change + rounding(width, norm) * grid, 1e-6, _SOLVER)
    assert isinstance(about.basis, Lattice)
    change, values = _on_lattice(_kernel("linear", len(about.axes)), len(about.axes), about.basis.degree, functional, norm)
    # A sigmoid is at most a quarter as steep as its score.
    return Needed(change / 4.0 + rounding(values, norm) * grid, 1e-3, _SOLVER)
