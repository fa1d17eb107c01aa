"""Mean and variance of the values of noisy records, on the way from the lower end of the value, 0, to its upper end, 1."""

from __future__ import annotations

import numpy as np

from .arrays import Array, Bounds
from .cell_readings import Estimate
from .sums import ratio

#: The largest variance of numbers from 0 to 1.
_LARGEST_VARIANCE = 0.25


def mean(records: Array, factor: float) -> Estimate:
    """The mean, and the means that the noise allows (Fieller); a column for each key, ``factor`` the half-width of each number.

    The rows are records at both ends of the value, with variances in the middle too.
    """
    return _clipped(_ratio(records, np.linspace(0.0, 1.0, len(records))[:, None], factor), 1.0)


def variance(records: Array, factor: float) -> Estimate:
    """The variance of records at three places.

    It is the mean square distance from the mean that is estimated, less the square of how far that is off: the interval of
    the mean says how much that may be.
    """
    about, (low, high), _ = mean(records, factor)
    value, (lower, upper), _ = _ratio(records, np.array([about**2, about * (about - 1.0), (1.0 - about) ** 2]), factor)
    farthest = np.maximum(about - low, high - about)
    return _clipped(Estimate(value, Bounds(lower - farthest**2, upper)), _LARGEST_VARIANCE)


def _ratio(records: Array, weights: Array, factor: float) -> Estimate:
    """The mean of these weights over the records."""
    whole, part = records.sum(axis=0), (weights * records).sum(axis=0)
    value = np.divide(part, whole, out=np.full(len(whole), np.nan), where=whole > 0.0)
    own, shared, one = np.square(weights).sum(axis=0), weights.sum(axis=0), np.ones(len(whole))
    return Estimate(value, ratio(part, whole, own, shared, len(records) * one, factor * one))


def _clipped(found: Estimate, most: float) -> Estimate:
    value, interval, _ = found
    return Estimate(np.clip(value, 0.0, most), Bounds(*(np.clip(end, 0.0, most) for end in interval)))
