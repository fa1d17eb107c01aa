"""Quantiles from noisy counts of places and of blocks of them: clients/FORMAT.md, "Quantiles"."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Optional

import numpy as np

from .arrays import Array

#: The most places that values count at.
MOST_PLACES = 1024


def quantile_name(part: float) -> Optional[str]:
    """The column of a quantile, ``p50`` of the median; None unless the part is a whole number of thousandths."""
    if not math.isfinite(part):
        return None
    thousandths = round(1000 * part)
    if not 1 <= thousandths <= 999 or abs(thousandths / 1000 - part) >= 1e-9:
        return None
    tenth = thousandths % 10
    return f"p{thousandths // 10}.{tenth}" if tenth else f"p{thousandths // 10}"


@dataclass(frozen=True)
class RankGrid:
    """Places that values count at, and blocks of them that are counted too."""

    #: How many places there are, the first and the last at the bounds of the value.
    places: int
    #: How many of them are in a block; None where only places are counted.
    block: Optional[int]

    def ranges(self) -> list[str]:
        """The columns: the blocks, and then the places."""
        return [f"range_{start}_{stop}" for size in filter(None, (self.block, 1)) for start, stop in self._ranges(size)]

    def up_to(self, counts: Array) -> Array:
        """Numbers of values up to each place, by least squares; a column of ``counts`` for each key."""
        if self.block is None:
            return np.cumsum(counts, axis=0)
        blocks = self._ranges(self.block)
        places = np.array(counts[len(blocks) :], dtype=float)
        for of_block, (start, stop) in zip(counts, blocks):
            places[start:stop] += (of_block - places[start:stop].sum(axis=0)) / (stop - start + 1)
        return np.cumsum(places, axis=0)

    def lengths(self, part: float) -> Array:
        """Of each place the length of the weights with which noise is in (values up to it) - part x (all values)."""
        up_to = np.arange(1.0, self.places + 1.0)
        if self.block is None:
            return np.sqrt(up_to * (1 - part) ** 2 + (self.places - up_to) * part**2)
        squares = np.zeros(self.places)
        for start, stop in self._ranges(self.block):
            size = stop - start
            counted = np.clip(up_to - start, 0.0, size)
            of_places = counted * (size + 1 - counted - part) ** 2 + (size - counted) * (counted + part) ** 2
            squares += ((counted - part * size) ** 2 + of_places) / (size + 1) ** 2
        return np.sqrt(squares)

    def _ranges(self, size: int) -> list[tuple[int, int]]:
        return [(start, min(start + size, self.places)) for start in range(0, self.places, size)]


@dataclass(frozen=True)
class Quantiles:
    """Quantiles that are told of each key."""

    grid: RankGrid
    #: The part of each by the name of its column.
    parts: Mapping[str, float]


def quantile(up_to: Array, part: float, half_widths: Array, of_all: float) -> tuple[float, float, float]:
    """The place of a quantile of one key and those of its interval; NaN is unknown.

    ``half_widths`` are those of (values up to a place) - part x (all values), ``of_all`` that of all values.
    """
    everything, last = up_to[-1], len(up_to) - 1
    above = up_to - part * everything
    not_below, not_above = np.flatnonzero(above >= -half_widths), np.flatnonzero(above <= half_widths)
    lower = int(not_below[0]) if len(not_below) else last
    upper = max(min(int(not_above[-1]) + 1, last) if len(not_above) else 0, lower)
    place = min(int(np.searchsorted(_rising(up_to), part * everything)), last)
    value = float(min(max(place, lower), upper)) if everything > 0.0 else math.nan
    return (value, float(lower), float(upper)) if everything > of_all else (value, math.nan, math.nan)


def _rising(sums: Array) -> Array:
    """The nearest sequence, in least squares, that never falls."""
    means: list[float] = []
    sizes: list[int] = []
    for one in sums:
        means.append(float(one))
        sizes.append(1)
        while len(means) > 1 and means[-2] > means[-1]:
            mean, size = means.pop(), sizes.pop()
            means[-1] = (means[-1] * sizes[-1] + mean * size) / (sizes[-1] + size)
            sizes[-1] += size
    return np.repeat(means, sizes)
