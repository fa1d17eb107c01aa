"""Sums of smooth functions over the records, from a synopsis of their cosine moments.

The function is expanded in the products of cosines whose moments were released. There are two separate errors: the
*noise* on the moments, whose distribution is known, and the *truncation* error of the expansion.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Optional

import numpy as np

from . import noise
from .arrays import Array
from .bernstein import turn
from .description import Description
from .errors import SynopsisError
from .figures import give_or_take
from .forms import Keys, Moments
from .noise import NoiseError
from .places import NO_POINTS

#: Takes one array per axis, in natural units; broadcasts as in numpy.
Function = Callable[..., Any]

NO_MOMENTS = "it holds a function of a point, not moments of the records: call it with points"


@dataclass(frozen=True)
class Truncation:
    """The error of ending the cosine expansion."""

    #: The largest error found on a fine grid: an estimate. The Rust program proves a bound for expressions.
    per_record: float
    #: The released number of records, itself noisy.
    records: float

    @property
    def error(self) -> float:
        """The largest error of the sum."""
        return self.per_record * self.records


@dataclass(frozen=True)
class Mean:
    """The sum divided by the released number of records; its truncation error is that of one record."""

    value: float
    noise: NoiseError


@dataclass(frozen=True)
class Answer:
    """The sum of a function over the records, and its mean."""

    sum: float
    noise: NoiseError
    truncation: Truncation
    #: None if the released number of records is below three times its own noise.
    mean: Optional[Mean]

    def __str__(self) -> str:
        """The sum, give or take its noise and its truncation error together."""
        return give_or_take(self.sum, self.noise.half_width + self.truncation.error)


def coefficients(about: Description, function: Function) -> Array:
    """The coefficients of the cosine expansion: the answer is the sum of their products with the values."""
    basis = _moments(about)
    count = _resolution(len(about.axes), basis.frequencies)
    angles = np.pi * (np.arange(count) + 0.5) / count
    m = np.arange(basis.frequencies)
    cosines = np.where(m == 0, 1.0, 2.0)[:, None] / count * np.cos(np.outer(m, angles))
    return turn(_sample(about, function, angles), cosines).ravel()


def answer(about: Description, values: Array, function: Function) -> Answer:
    weights = coefficients(about, function)
    records = float(values[0])

    def noise_of(weights: Array) -> NoiseError:
        return noise.of_sum(about.noise.law, about.noise.scale, weights)

    total = float(weights @ values)
    truncation = Truncation(_largest_miss(about, function, weights), max(records, 0.0))
    alone = np.zeros(len(weights))
    alone[0] = 1.0
    mean = None
    if records > 3.0 * noise_of(alone).half_width:
        # Of the ratio of sum and count, to first order.
        mean = Mean(total / records, noise_of((weights - alone * (total / records)) / records))
    return Answer(total, noise_of(weights), truncation, mean)


def _moments(about: Description) -> Moments:
    if isinstance(about.basis, Keys):
        raise SynopsisError(NO_POINTS)
    if not isinstance(about.basis, Moments):
        raise SynopsisError(NO_MOMENTS)
    return about.basis


def _resolution(axes: int, frequencies: int) -> int:
    """The number of nodes per axis: as many as take only a moment."""
    low, high = ((1024, 2048), (128, 256), (24, 48))[axes - 1]
    return max(min(max(4 * frequencies, low), high), 2 * frequencies)


def _sample(about: Description, function: Function, angles: Array) -> Array:
    """The function at these angles of each axis; an error if a value is not finite."""
    axes = [np.clip(a.min + (np.cos(angles) + 1.0) / 2.0 * (a.max - a.min), a.min, a.max) for a in about.axes]
    mesh = np.meshgrid(*axes, indexing="ij")
    values = np.broadcast_to(np.asarray(function(*mesh), dtype=np.float64), mesh[0].shape)
    wrong = np.argwhere(~np.isfinite(values))
    if len(wrong):
        at = [float(axis[i]) for axis, i in zip(axes, wrong[0])]
        raise SynopsisError(f"the question has no finite answer at {at}: it must be a number everywhere in the domain")
    return values


def _largest_miss(about: Description, function: Function, weights: Array) -> float:
    """``sup |f - p|`` found at even angles, two to four per frequency."""
    frequencies, axes = _moments(about).frequencies, len(about.axes)
    angles = np.pi * np.arange(_resolution(axes, frequencies) + 1) / _resolution(axes, frequencies)
    cosines = np.cos(np.outer(angles, np.arange(frequencies)))
    polynomial = turn(weights.reshape((frequencies,) * axes), cosines)
    return float(np.abs(_sample(about, function, angles) - polynomial).max())
