"""Sums of every table with weights, and what the noise on the values does to them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Optional

import numpy as np

from .arrays import Array, Bounds


@dataclass(frozen=True, eq=False)
class Sums:
    """A number for each table, a row per point or range. What a value moves it by, to first order, is its gradient."""

    of_tables: Array
    #: The lengths of the weights of each table's own values.
    lengths: Array
    #: Of local lines: what the slope would be of the records of each table alone, an axis each; they add up to the slope.
    slopes: Optional[Array] = None
    #: And ``sum_j W_j^2 e_j e_j'``, ``e_j`` 1 and the distances of node ``j`` along the axes.
    moments: Optional[Array] = None
    #: The least of the numbers divided by, in lengths of its weights: where the noise may be so large nothing is known.
    least_divisor: float = math.inf

    @property
    def total(self) -> Array:
        return np.asarray(self.of_tables.sum(axis=1))

    @property
    def length(self) -> Array:
        """That of the weights of the total, as if the slope were public."""
        return np.asarray(np.sqrt(np.square(self.lengths).sum(axis=1)))

    def variances(self, table: int) -> tuple[Array, Array, Array]:
        """Under noise of variance 1: of the sum of a table, of that and the total together, of the total."""
        squares = np.square(self.lengths)
        own, shared, whole = squares[:, table], squares[:, table], squares.sum(axis=1)
        if self.slopes is None:
            return own, shared, whole
        count, slope = squares.shape[1], self.slopes.sum(axis=1)
        of_table = self.slopes[:, table]
        own = own - 2.0 * self._along(of_table) + count * self._across(of_table, of_table)
        shared = shared - count * self._along(of_table) - self._along(slope) + count * self._across(of_table, slope)
        whole = whole - 2.0 * count * self._along(slope) + count * self._across(slope, slope)
        return own, shared, whole

    def apart(self, first: Any, second: Any) -> tuple[Array, Array]:
        """How much more the sum of one table is than that of another, chosen for each row, and the length of that."""

        def of(each: Array) -> tuple[Array, Array]:
            a, b = (np.take_along_axis(each, index[:, None], axis=1)[:, 0] for index in (first, second))
            return a, b

        (more, less), (own, other) = of(self.of_tables), of(np.square(self.lengths))
        square = own + other
        if self.slopes is not None:
            rows = np.arange(len(first))
            tilt = self.slopes[rows, first] - self.slopes[rows, second]
            square = square + self.lengths.shape[1] * self._across(tilt, tilt)
        return more - less, np.sqrt(np.maximum(square, 0.0))

    def _along(self, slope: Array) -> Array:
        """``sum_j W_j^2 (slope . d_j)``."""
        assert self.moments is not None
        return np.asarray(np.einsum("ni,ni->n", self.moments[:, 0, 1:], slope))

    def _across(self, one: Array, other: Array) -> Array:
        """``sum_j W_j^2 (one . d_j) (other . d_j)``."""
        assert self.moments is not None
        return np.asarray(np.einsum("ni,nik,nk->n", one, self.moments[:, 1:, 1:], other))

    @staticmethod
    def joined(parts: list[Sums]) -> Sums:
        """Those of several parts of the rows, all of one kind."""

        def of(each: list[Optional[Array]]) -> Optional[Array]:
            found = [one for one in each if one is not None]
            return np.concatenate(found) if found else None

        first = parts[0]
        if len(parts) == 1:
            return first
        return Sums(
            np.concatenate([part.of_tables for part in parts]),
            np.concatenate([part.lengths for part in parts]),
            of([part.slopes for part in parts]),
            of([part.moments for part in parts]),
            first.least_divisor,
        )


def ratio(part: Array, whole: Array, own: Array, shared: Array, none: Array, factor: Array) -> Bounds:
    """All ``p`` with ``|part - p whole| <= factor sqrt(own - 2 p shared + p^2 none)``.

    NaN where the noise does not tell ``whole`` from 0.
    """
    known = whole > factor * np.sqrt(np.maximum(none, 0.0))
    square = np.square(factor)
    a, b = np.square(whole) - square * none, part * whole - square * shared
    # `b^2 - a d`, without the difference of two large numbers.
    spread = np.square(whole) * own - 2.0 * part * whole * shared + np.square(part) * none
    root = factor * np.sqrt(np.maximum(spread - square * (none * own - np.square(shared)), 0.0))
    a = np.where(known, a, np.nan)
    return Bounds((b - root) / a, (b + root) / a)
