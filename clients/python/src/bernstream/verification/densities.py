"""Densities: docs/proofs/densities.md and docs/proofs/cells.md."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..arrays import Array
from ..description import Description
from ..forms import Cells, Kernels, Lattice, Nodes, Tables
from ..kernels import Gaussian, cholesky, forward
from .changes import Needed, largest, lattice, norm_of, places, rounding

#: The most cells of a fine grid: beyond, it has three cells a bandwidth and not four.
_CELLS = 4_300_000
#: The most entries of a table that is written down.
_ENTRIES = 20_000_000
#: What a table of whole numbers and a fine grid lose.
_TABLE, _SAMPLE = 1e-6, 0.01


def needed(about: Description, document: Mapping[str, Any], norm: str, adjacency: str, grid: float) -> Needed:
    volume = math.prod(about.widths)
    if isinstance(about.basis, Cells):
        return _cells(about, about.basis, norm, adjacency, volume)
    kernel = about.target["kernel"]
    if isinstance(about.basis, Lattice) and "bandwidths" in kernel:
        bandwidths = np.array(kernel["bandwidths"], dtype=np.float64) / about.widths
        return _diagonal(bandwidths, _narrowest(document, about, bandwidths), about.basis.degree, norm, adjacency, volume, grid)
    covariance = _covariance(about)
    peak = 1.0 / math.sqrt((2.0 * math.pi) ** len(about.axes) * float(np.linalg.det(covariance))) / volume
    if isinstance(about.basis, Kernels):
        columns = coordinates(about.basis, places(len(about.axes), 40))
        values = len(about.basis.points)
    else:
        assert isinstance(about.basis, Lattice)
        points = lattice(len(about.axes), about.basis.degree)
        kernel_at = Gaussian(np.asarray(np.linalg.inv(covariance), dtype=np.float64))
        tried = places(len(about.axes), about.basis.degree)
        step = max(1, len(tried) * len(points) // _ENTRIES)
        columns = kernel_at.between(points, tried[::step])
        values = len(points)
    change = largest(columns, norm, adjacency) * peak + rounding(values, norm) * grid
    return Needed(change, _SAMPLE)


def coordinates(form: Kernels, tried: Array) -> Array:
    """The whitened coordinates of the kernel's function at each place, one a column."""
    factor = cholesky(np.tril(form.kernel.between(form.points, form.points)))
    return np.asarray(forward(factor, form.kernel.between(form.points, tried)))


def _covariance(about: Description) -> Array:
    kernel = about.target["kernel"]
    if "bandwidths" in kernel:
        return np.diag(np.square(np.array(kernel["bandwidths"], dtype=np.float64) / about.widths))
    return np.array(kernel["covariance"], dtype=np.float64) / np.outer(about.widths, about.widths)


def _narrowest(document: Mapping[str, Any], about: Description, bandwidths: Array) -> Array:
    """Of each axis among all that could have been chosen: they share a grid."""
    choices = [choice["bandwidths"] for choice in document.get("choices", ()) if "bandwidths" in choice]
    if not choices:
        return bandwidths
    return np.asarray(np.min(np.array(choices[0]["candidates"], dtype=np.float64), axis=0) / about.widths)


def cells_of(bandwidths: Array) -> list[int]:
    """Cells of the fine grid on each axis."""
    four = [math.ceil(4.0 / b) for b in bandwidths]
    return four if math.prod(m + 3 for m in four) <= _CELLS else [math.ceil(3.0 / b) for b in bandwidths]


def table(bandwidth: float, cells: int, degree: int) -> tuple[Array, float]:
    """What a deposit on each node adds to the lattice points, one node a column, and the kernel's own bandwidth."""
    narrowed = math.sqrt(bandwidth**2 - 0.25 / cells**2)
    nodes = np.arange(-1, cells + 2) / cells
    if (degree + 1) * len(nodes) > _ENTRIES:
        nodes = nodes[:: -(-(degree + 1) * len(nodes) // _ENTRIES)]
    away = (np.arange(degree + 1)[:, None] / degree - nodes) / narrowed
    return np.exp(-np.square(away) / 2.0), narrowed


def _diagonal(b: Array, grids: Array, degree: int, norm: str, adjacency: str, volume: float, grid: float) -> Needed:
    tables, narrowed = zip(*(table(float(b_i), m, degree) for b_i, m in zip(b, cells_of(grids))))
    peak = math.prod(1.0 / (math.sqrt(2.0 * math.pi) * bandwidth) for bandwidth in narrowed) / volume
    values = (degree + 1) ** len(tables)

    def of(which: str) -> float:
        """By the proof of one norm, without the other two."""
        single: float = math.prod(float(norm_of(columns, which).max()) for columns in tables)
        if adjacency == "replace_one":
            if which == "sup norm":
                pass  # Weights are not negative: no more than one that comes or goes.
            elif len(tables) == 1:
                single = largest(tables[0], which, adjacency)
            elif which == "1-norm":
                highest: float = math.prod(float(columns.max()) for columns in tables)
                single = min(2.0 * single, values * highest)
            else:
                single *= math.sqrt(2.0)
        return float(single * peak + rounding(values, which) * grid)

    change = of(norm)
    if norm == "2-norm":
        change = min(change, math.sqrt(of("1-norm") * of("sup norm")))
    return Needed(change, _TABLE)


def _cells(about: Description, form: Cells, norm: str, adjacency: str, volume: float) -> Needed:
    """A record's shares are not negative and add up to 1; a value is a count times the peak of the kernel that reads it."""
    peak = math.sqrt(float(np.linalg.det(form.kernel.precision)) / (2.0 * math.pi) ** len(form.steps)) / volume
    return _shares(form, norm, adjacency, peak)


def of_tables(about: Description, norm: str, adjacency: str) -> Needed:
    """A label only divides a record's shares among tables, which makes no norm larger; a value is a number of records."""
    assert isinstance(about.basis, Tables)
    return _shares(about.basis, norm, adjacency, 1.0)


def _shares(form: Nodes, norm: str, adjacency: str, peak: float) -> Needed:
    """What the shares of a record change, each times ``peak``."""
    longest = {"box": 1.0, "linear": 1.0, "quadratic": math.sqrt(0.75**2 + 2.0 * 0.125**2)}[form.spline] ** len(form.steps)
    replaced = adjacency == "replace_one"
    change = {
        "1-norm": 2.0 if replaced else 1.0,
        "2-norm": longest * (math.sqrt(2.0) if replaced else 1.0),
        "sup norm": 1.0,
    }[norm]
    return Needed(change * peak, 1e-4 if norm == "2-norm" else 1e-9)
