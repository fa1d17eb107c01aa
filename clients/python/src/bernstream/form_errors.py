"""How far the form of a density moves an integral at most, wherever the records are: as ``FORMAT.md`` defines it."""

from __future__ import annotations

import math

import numpy as np

from .arrays import Array
from .description import Description
from .forms import Cells, Lattice
from .kernels import Gaussian

#: What the largest over places misses between them.
_BETWEEN_PLACES = 1.01
#: What a value of a lattice is off because it is computed from a histogram, and what rounding does to the shares of cells.
_OF_A_VALUE, _ROUNDED = 4.44e-4, 1e-4
_PLACES_IN_A_CELL = 24


def of_integral(about: Description, low: Array, high: Array, weights: Array) -> float:
    """Over a box of the unit cube, as a part of the sum of the exact values: at most that of the curve times its size."""
    assert about.form_error is not None
    everywhere = about.form_error * float(np.prod(high - low))
    widths = about.target["kernel"].get("bandwidths")
    if widths is None:
        return everywhere
    if isinstance(about.basis, Cells):
        return min(everywhere, _on_cells(about.basis, low, high))
    if isinstance(about.basis, Lattice) and len(about.axes) == 1:
        return min(everywhere, _on_lattice(about.basis.degree, float(widths[0]) / float(about.widths[0]), low, high, weights))
    return everywhere


def _bump(at: Array, width: float, low: Array, high: Array) -> Array:
    """The integral of ``exp(-(y - at)^2 / 2 width^2)`` over an interval."""
    return Gaussian(np.array([[width**-2.0]])).integrals(at[:, None], low, high)


def _on_lattice(degree: int, width: float, low: Array, high: Array, weights: Array) -> float:
    count = 4 * degree * max(1, -(-math.ceil(16.0 / width) // (4 * degree)))
    of_values = _OF_A_VALUE * float(np.abs(weights).sum())
    places = np.arange(count + 1) / count
    most = 0.0
    # A part at a time: a fine lattice has as many places again.
    for at in np.array_split(places, max(1, len(places) * degree // 1_000_000)):
        values = np.exp(-np.square((np.arange(degree + 1) / degree - at[:, None]) / width) / 2.0)
        off = np.abs(values @ weights - _bump(at, width, low, high)) + of_values
        most = max(most, float((off / values.sum(axis=1)).max()))
    return _BETWEEN_PLACES * most


def _on_cells(basis: Cells, low: Array, high: Array) -> float:
    """On several axes integrals are products: one axis does to them at most its error, times the largest of the others."""
    error, read = 0.0, 1.0
    narrow = np.diag(basis.kernel.precision) ** -0.5
    for axis, (steps, wide) in enumerate(zip(basis.steps, basis.bandwidths())):
        ends = low[axis : axis + 1], high[axis : axis + 1]
        of_nodes = _bump(basis.nodes()[axis], narrow[axis], *ends)
        cell, part = np.divmod(np.arange(steps * (_PLACES_IN_A_CELL + 1)), _PLACES_IN_A_CELL + 1)
        found = _shared(basis.spline, of_nodes, cell, part / _PLACES_IN_A_CELL)
        as_it_is = narrow[axis] / wide * _bump((cell + part / _PLACES_IN_A_CELL) / steps, wide, *ends)
        own = float(np.abs(found - as_it_is).max())
        # The axes so far as they are read, and this one off; or they off, and this one as it is.
        error = error * float(as_it_is.max()) + read * own
        read *= float(of_nodes.max())
    return _BETWEEN_PLACES * error + _ROUNDED * read


def _shared(spline: str, nodes: Array, cell: Array, part: Array) -> Array:
    """What is read of a record a part into a cell: the numbers of its nodes by its shares."""
    if spline == "box":
        return np.asarray(nodes[cell])
    if spline == "linear":
        return np.asarray((1.0 - part) * nodes[cell] + part * nodes[cell + 1])
    upper = part >= 0.5
    first, d = cell + upper, part - upper
    shares = np.square(0.5 - d) / 2.0, 0.75 - np.square(d), np.square(0.5 + d) / 2.0
    return np.asarray(sum(share * nodes[first + i] for i, share in enumerate(shares)))
