"""What a cap on keys drops, by the numbers of units with so many keys: clients/FORMAT.md, "Told caps"."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from .arrays import Array, Bounds
from .cell_readings import Estimate
from .sums import ratio


def dropped_share(bins: Sequence[tuple[int, int]], counts: Array, cap: int, factor: float) -> Estimate:
    """The share of all pairs of a unit and a key that a cap drops, wherever in its bin a unit is."""
    least, most = np.array(bins, dtype=np.float64).T
    whole = most <= cap
    middle = np.minimum((least + most) / 2.0, 1.25 * least)
    dropped, pairs = np.maximum(middle - cap, 0.0) @ counts, middle @ counts
    value = float(np.clip(dropped / pairs, 0.0, 1.0)) if pairs > 0.0 else math.nan
    # The share falls with the keys of a unit that loses none, and rises with those of others; a bin has units of one kind only.
    low = _interval(np.where(whole, most, least), counts, cap, factor)
    high = _interval(np.where(whole, least, most), counts, cap, factor)
    # A number of units below 0 turns the two around.
    lower, upper = np.minimum(low.lower, high.lower), np.maximum(low.upper, high.upper)
    if math.isnan(lower) or math.isnan(upper):
        return Estimate(value, Bounds(math.nan, math.nan))
    ends = Bounds(float(np.clip(lower, 0.0, 1.0)), float(np.clip(upper, 0.0, 1.0)))
    # Noise of the last bin can put the value, which takes the middle there, outside of ends that take other numbers.
    return Estimate(min(max(value, ends.lower), ends.upper), ends)


def _interval(keys: Array, counts: Array, cap: int, factor: float) -> Bounds:
    """By Fieller's theorem, of units with so many keys in each bin."""
    dropped = np.maximum(keys - cap, 0.0)
    sums = [dropped @ counts, keys @ counts, dropped @ dropped, dropped @ keys, keys @ keys, factor]
    lower, upper = ratio(*(np.array([one], dtype=np.float64) for one in sums))
    return Bounds(float(lower[0]), float(upper[0]))
