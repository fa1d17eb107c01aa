"""How far neighbours are apart, from what single records do: norms of columns, and of pairs of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Optional

import numpy as np

from ..arrays import Array

#: More pairs than these are not compared, but a part of them.
_COLUMNS = 400


@dataclass(frozen=True)
class Needed:
    """The change that noise must hide, in natural units, for one record."""

    change: float
    #: By what part it may be larger than what must be declared: what tables and samples of places lose.
    tolerance: float
    #: What of the declared change the description cannot show.
    believed: Optional[str] = None


def norm_of(columns: Array, norm: str) -> Array:
    """The norm of each column."""
    sizes = np.abs(columns)
    if norm == "1-norm":
        return np.asarray(sizes.sum(axis=0))
    if norm == "2-norm":
        return np.asarray(np.sqrt(np.square(sizes).sum(axis=0)))
    return np.asarray(sizes.max(axis=0))


def largest(columns: Array, norm: str, adjacency: str) -> float:
    """Over one record more or less, or over one that is replaced or becomes invalid: by pairs of columns, zeros among them."""
    alone = norm_of(columns, norm)
    found = float(alone.max())
    if adjacency == "add_remove":
        return found
    if columns.shape[1] > _COLUMNS:
        some = np.unique(np.linspace(0, columns.shape[1] - 1, _COLUMNS).astype(int))
        columns = columns[:, np.union1d(some, [int(alone.argmax())])]
    for column in columns.T:
        found = max(found, float(norm_of(columns - column[:, None], norm).max()))
    return found


def rounding(values: int, norm: str) -> float:
    """What rounding to whole grid units adds to a change, in grid units; halves are rounded up."""
    return {"1-norm": float(values), "2-norm": float(np.sqrt(values)), "sup norm": 0.0}[norm]


def lattice(axes: int, degree: int) -> Array:
    """Its points in the unit cube, one a row, the last axis fastest."""
    along = np.arange(degree + 1) / degree
    return np.stack(np.meshgrid(*[along] * axes, indexing="ij"), axis=-1).reshape(-1, axes)


def places(axes: int, degree: int) -> Array:
    """Places of records to try: on a lattice, between its points, at the border and in the middle."""
    count = {1: 401, 2: 33, 3: 11}[axes]
    even = np.linspace(0.0, 1.0, count)
    nearest = np.round(even * degree) / degree
    grid = np.stack(np.meshgrid(*[np.unique(nearest)] * axes, indexing="ij"), axis=-1).reshape(-1, axes)
    other = np.stack(np.meshgrid(*[even] * axes, indexing="ij"), axis=-1).reshape(-1, axes)
    return np.concatenate([grid, other])


def chunks(rows: int, size: int) -> Iterator[slice]:
    return (slice(start, start + size) for start in range(0, rows, size))
