"""What the count of a key is that was found because its noisy count exceeds a threshold: docs/proofs/found-keys.md."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .arrays import Array, Bounds

Mask = npt.NDArray[np.bool_]

#: Of each side of an interval, that it does not hold.
_OUTSIDE = 0.025
#: Halvings after which no float is left between the ends.
_HALVINGS = 1100


@dataclass(frozen=True)
class FoundLaw:
    """The law of ``n G + X`` given that it exceeds the threshold ``K``, ``X`` discrete Laplace noise within ``K``.

    ``G`` grid units make a user or record; ``unit`` is ``1 / G``, and scale and threshold are in grid units.
    """

    scale: float
    threshold: float
    unit: float

    def intervals(self, published: Array) -> Bounds:
        """The true counts of keys found with these counts, in users or records: 95 % for each, given that it is found.

        A count belongs to it where neither the published count or more, nor that or less, has a probability below 2.5 %. It is
        at least 1, and within the threshold of the published count, where the count always is. What is published is in it.
        """
        noisy = np.maximum(published / self.unit, self.threshold + 1.0)
        least = np.maximum(noisy - self.threshold, 1.0 / self.unit)
        most = np.maximum(noisy + self.threshold, least)
        lower = _end(least, most, lambda exact: self._above(noisy, exact) >= _OUTSIDE)
        upper = _end(most, least, lambda exact: self._below(noisy, exact) >= _OUTSIDE)
        return Bounds(lower * self.unit, np.maximum(upper, noisy) * self.unit)

    def _above(self, noisy: Array, exact: Array) -> Array:
        """The probability of a published count or a larger one, of found keys with an exact count."""
        lowest, most = self._lowest(exact), np.full(len(exact), self.threshold)
        return self._weight(noisy - exact, most, lowest) / self._weight(lowest, most, lowest)

    def _below(self, noisy: Array, exact: Array) -> Array:
        """The probability of a published count or a smaller one."""
        lowest, most = self._lowest(exact), np.full(len(exact), self.threshold)
        return self._weight(lowest, noisy - exact, lowest) / self._weight(lowest, most, lowest)

    def _lowest(self, exact: Array) -> Array:
        """The least noise with which a count is found."""
        return np.maximum(self.threshold + 1.0 - exact, -self.threshold)

    def _weight(self, first: Array, last: Array, lowest: Array) -> Array:
        """The sum of ``exp(-abs(x) / s)`` from ``first`` to ``last``, up to a factor for each ``lowest``."""
        nearest = np.maximum(lowest, 0.0)
        above = self._tail(np.maximum(first, 0.0), last, nearest)
        below = self._tail(np.maximum(-last, 1.0), -first, nearest)
        return np.where(first > 0.0, above, np.where(last < 0.0, self._tail(-last, -first, nearest), above + below))

    def _tail(self, first: Array, last: Array, nearest: Array) -> Array:
        """The same on one side of zero."""
        with np.errstate(over="ignore", invalid="ignore"):
            share = -np.expm1((first - last - 1.0) / self.scale)
            return np.asarray(np.exp((nearest - first) / self.scale) * share)


def _end(outside: Array, inside: Array, is_inside: Callable[[Array], Mask]) -> Array:
    """Where intervals end, between counts that are outside and others that are inside."""
    outside, inside = outside.copy(), inside.copy()
    for _ in range(_HALVINGS):
        middle = outside + (inside - outside) / 2.0
        is_between = (middle != outside) & (middle != inside)
        if not is_between.any():
            break
        belongs = is_inside(middle)
        inside = np.where(is_between & belongs, middle, inside)
        outside = np.where(is_between & ~belongs, middle, outside)
    return outside
