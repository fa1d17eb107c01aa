"""What any smooth function adds up to over the records of a synopsis that holds their cosine moments.

The function is taken for the sum of products of cosines that the moments hold. Two errors are told apart: that of the
*noise* on the moments, whose law is known, and the *truncation*, what the function differs from those cosines.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Optional

import numpy as np

from . import noise
from .arrays import Array
from .bernstein import turn
from .description import Description, Moments
from .errors import SynopsisError
from .noise import NoiseError

#: Of as many arrays as there are axes, in natural units; it broadcasts as numpy does.
Function = Callable[..., Any]

NO_MOMENTS = "it holds a function of a point, not moments of the records: call it with points"


@dataclass(frozen=True)
class Truncation:
    """What an answer misses because the moments end."""

    #: The largest difference that was seen on a fine grid: an estimate. The Rust program proves a bound for expressions.
    per_record: float
    #: How often it counts: the released number of records, itself noisy.
    records: float

    @property
    def error(self) -> float:
        """The most that it can change the sum."""
        return self.per_record * self.records


@dataclass(frozen=True)
class Mean:
    """The sum over the released number of records; its truncation is that of one record."""

    value: float
    noise: NoiseError


@dataclass(frozen=True)
class Answer:
    """What a function adds up to over the records, and on average."""

    sum: float
    noise: NoiseError
    truncation: Truncation
    #: None where the released number of records is not three times its own noise.
    mean: Optional[Mean]


def coefficients(about: Description, function: Function) -> Array:
    """The coefficients of the cosines: the answer is the sum of their products with the values."""
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
        # Of sum and number together, to first order.
        mean = Mean(total / records, noise_of((weights - alone * (total / records)) / records))
    return Answer(total, noise_of(weights), truncation, mean)


def _moments(about: Description) -> Moments:
    if not isinstance(about.basis, Moments):
        raise SynopsisError(NO_MOMENTS)
    return about.basis


def _resolution(axes: int, frequencies: int) -> int:
    """How many nodes of an axis are looked at: what a moment has the patience for."""
    low, high = ((1024, 2048), (128, 256), (24, 48))[axes - 1]
    return max(min(max(4 * frequencies, low), high), 2 * frequencies)


def _sample(about: Description, function: Function, angles: Array) -> Array:
    """The function at these angles of each axis; an error where it is not a number."""
    axes = [np.clip(a.min + (np.cos(angles) + 1.0) / 2.0 * (a.max - a.min), a.min, a.max) for a in about.axes]
    mesh = np.meshgrid(*axes, indexing="ij")
    values = np.broadcast_to(np.asarray(function(*mesh), dtype=np.float64), mesh[0].shape)
    wrong = np.argwhere(~np.isfinite(values))
    if len(wrong):
        at = [float(axis[i]) for axis, i in zip(axes, wrong[0])]
        raise SynopsisError(f"the question has no finite answer at {at}: it must be a number everywhere in the domain")
    return values


def _largest_miss(about: Description, function: Function, weights: Array) -> float:
    """``sup |f - p|`` as seen at even angles, two to four a frequency."""
    frequencies, axes = _moments(about).frequencies, len(about.axes)
    angles = np.pi * np.arange(_resolution(axes, frequencies) + 1) / _resolution(axes, frequencies)
    cosines = np.cos(np.outer(angles, np.arange(frequencies)))
    polynomial = turn(weights.reshape((frequencies,) * axes), cosines)
    return float(np.abs(_sample(about, function, angles) - polynomial).max())
