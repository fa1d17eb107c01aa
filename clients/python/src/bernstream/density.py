"""Densities and nondecreasing distribution functions: post-processing of a reading, at no cost in privacy."""

from __future__ import annotations

from typing import Any

import numpy as np

from .arrays import Bounds, Numbers, isotonic
from .errors import SynopsisError
from .released import Released

#: The number of steps of a distribution function.
STEPS = 1_000


class Density:
    """A density on the domain of a synopsis, callable like one."""

    def __init__(self, of: Released, divisor: float, proper: bool) -> None:
        self._of, self.divisor, self.proper = of, divisor, proper

    def __call__(self, *coordinates: Numbers) -> Any:
        """The density at points in natural units."""
        return self._possible(self._of(*coordinates))

    def band(self, *coordinates: Numbers, pointwise: bool = False) -> Bounds:
        """The band of the synopsis, divided likewise; without the noise of the divisor."""
        return Bounds(*(self._possible(end) for end in self._of.band(*coordinates, pointwise=pointwise)))

    def _possible(self, values: Any) -> Any:
        return (np.maximum(values, 0.0) if self.proper else values) / self.divisor


class Cumulative:
    """A distribution function on one axis: it rises from 0 to 1 and never falls.

    The nearest such function, in least squares, to the running integral of a reading, divided by the whole of it.
    """

    def __init__(self, of: Released) -> None:
        if len(of.axes) != 1:
            raise SynopsisError(f"a distribution function needs one axis, not {len(of.axes)}")
        self._axis = axis = of.axes[0]
        middles = axis.min + (axis.max - axis.min) * (np.arange(STEPS) + 0.5) / STEPS
        running = np.cumsum(of(middles) / STEPS)
        if not running[-1] > 0.0:
            raise no_mass(float(running[-1]) * (axis.max - axis.min))
        rising = np.clip(isotonic(running) / running[-1], 0.0, 1.0)
        self._values = np.concatenate([[0.0], rising[:-1], [1.0]])
        self._places = np.linspace(axis.min, axis.max, STEPS + 1)

    def __call__(self, x: Numbers) -> Any:
        """The fraction of the mass at or below points of the domain."""
        at = np.asarray(x, dtype=np.float64)
        if not np.all((at >= self._axis.min) & (at <= self._axis.max)):
            raise SynopsisError(f"{self._axis.column} is outside the domain {self._axis.min} to {self._axis.max}")
        return np.interp(at, self._places, self._values)


def no_mass(mass: float) -> SynopsisError:
    return SynopsisError(
        f"the released mass is {mass}, not positive: noise outweighs the records, and there is no density to show"
    )
