"""Numbers for people: with as many digits as their error leaves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Optional

import numpy as np

from .noise import NoiseError


def give_or_take(value: float, half_width: float) -> str:
    """``6991 ± 112``: three digits of the error, and the value to the same place."""
    if not (math.isfinite(value) and math.isfinite(half_width)):
        return f"{value:.4g}, its error unknown"
    if half_width <= 0.0:
        return f"{value:.6g}"
    decimals = min(max(2 - math.floor(math.log10(half_width)), 0), 15)
    return f"{value:.{decimals}f} ± {half_width:.{decimals}f}"


@dataclass(frozen=True, repr=False)
class Integral:
    """An integral, and what noise and form add to it; ``float(found)`` is its value.

    Neither covers the bandwidth, by which the curve is smoothed: it blurs the ends of a range.
    """

    value: float
    #: None where the reading is no linear function of the values, as the posterior is.
    noise: Optional[NoiseError]
    #: What the form adds to the noise at most, wherever the records are; both hold in at least 9 of 10 windows. None where
    #: it is not known.
    form_error: Optional[float] = None

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        if self.noise is None:
            return f"{self.value:.6g}, its error unknown"
        found = give_or_take(self.value, self.noise.half_width)
        if self.form_error is None:
            return found
        return f"{found}, with the form ± {self.noise.half_width + self.form_error:.3g}"

    __repr__ = __str__


def ticks(low: float, high: float, most: int) -> Sequence[float]:
    """Round numbers between two ends, at even distances of 1, 2 or 5 times a power of ten."""
    least = (high - low) / most
    power = 10.0 ** math.floor(math.log10(least))
    step = next(power * of for of in (1.0, 2.0, 5.0, 10.0) if power * of >= least * (1.0 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{one * step:.12g}") for one in np.arange(first, last + 1)]


def nearly(number: float) -> str:
    """A number that is no more than about itself: whole from ten on."""
    return f"{number:.{0 if number >= 10.0 else 1}f}"
