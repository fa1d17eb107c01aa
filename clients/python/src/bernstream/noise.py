"""The noise distributions at scale 1, ignoring their very fine grid."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .arrays import Array

LAWS = ("discrete laplace", "discrete cube", "rounded ball", "discrete gaussian")
LEVEL = 0.95
DRAWS = 100_000
SEED = 0x706F696E74776973


def draw(law: str, count: int, draws: int, rng: np.random.Generator) -> Array:
    """Noise of scale 1 on ``count`` values: one row per draw."""
    if law == "discrete laplace":
        return rng.laplace(size=(draws, count))
    if law == "discrete cube":
        # Uniform in a cube whose radius has a Gamma distribution of shape N + 1.
        return np.asarray(rng.gamma(count + 1.0, size=(draws, 1)) * rng.uniform(-1.0, 1.0, size=(draws, count)))
    noise = rng.standard_normal((draws, count))
    if law == "rounded ball":
        # On a sphere whose radius has a Gamma distribution of shape N.
        noise *= rng.gamma(float(count), size=(draws, 1)) / np.linalg.norm(noise, axis=1, keepdims=True)
    return noise


def variance(law: str, count: int) -> float:
    """The variance of each of ``count`` values under noise of scale 1. All are equal and uncorrelated."""
    return {
        "discrete laplace": 2.0,
        "discrete cube": (count + 1.0) * (count + 2.0) / 3.0,
        "rounded ball": count + 1.0,
        "discrete gaussian": 1.0,
    }[law]


def pointwise(law: str, count: int) -> float:
    """``q`` such that noise of scale 1 stays within ``q |a|_2`` at a point with 95 % probability, ``a`` the influences.

    For synopses that do not state it. Simulated for the cube and the ball, as in the Rust evaluator.
    """
    if law == "discrete laplace":
        return math.log(20.0)
    if law == "discrete gaussian":
        return 1.959963985
    rng = np.random.default_rng(SEED)
    if law == "discrete cube":
        sizes = rng.gamma(count + 1.0, size=DRAWS) * np.abs(rng.standard_normal(DRAWS)) / math.sqrt(3.0)
    else:
        along = rng.standard_normal(DRAWS)
        across = rng.chisquare(count - 1, size=DRAWS) if count > 1 else np.zeros(DRAWS)
        sizes = rng.gamma(float(count), size=DRAWS) * np.abs(along) / np.sqrt(along**2 + across)
    # Three standard deviations of the count above the quantile.
    return float(np.sort(sizes)[DRAWS * 95 // 100 + 207])


@dataclass(frozen=True)
class NoiseError:
    """The noise of an answer: at most ``half_width``, either sign, with probability ``level``."""

    deviation: float
    level: float
    half_width: float


# Weights below this fraction of the largest are omitted from the shape of the distribution, not from its width.
_SMALLEST = 1e-6
# Integration steps: a full turn of the phase covers this many standard deviations; and their maximum number.
_DEVIATIONS = 80.0
_MOST_STEPS = 40_000
_STEP = math.pi / _DEVIATIONS
_BLOCK = 200
# The tail of a characteristic function below this is ignored.
_NEGLIGIBLE = 1e-8


def of_sum(law: str, scale: float, weights: Array) -> NoiseError:
    """The noise of ``sum_i w_i z_i``, ``z`` noise of ``law`` with this scale on as many values as there are weights.

    The quantile inverts the characteristic function of the continuous distribution with a relative error below one
    thousandth, which is added.
    """
    length = float(np.linalg.norm(weights))
    if length == 0.0:
        return NoiseError(0.0, LEVEL, 0.0)
    sizes = np.abs(weights)
    few = sizes[sizes >= _SMALLEST * sizes.max()]
    count = float(len(weights))
    if law == "discrete laplace":
        deviation = math.sqrt(2.0) * length

        def laplace(u: Array) -> Array:
            return np.asarray(np.exp(-np.log1p(np.square(np.outer(u, few) / deviation)).sum(axis=1)))

        exceeds = _symmetric(laplace, laplace, len(few))
    elif law == "discrete cube":
        uniform = length / math.sqrt(3.0)
        radius = math.sqrt((count + 1.0) * (count + 2.0))
        deviation = uniform * radius
        one = _symmetric(
            lambda u: np.asarray(np.prod(np.sinc(np.outer(u, few) / (uniform * math.pi)), axis=1)),
            lambda u: np.asarray(np.prod(np.minimum(uniform / np.outer(u, few), 1.0), axis=1)),
            len(few),
        )
        radii, shares = _gamma(count + 1.0)

        def exceeds(x: Array) -> Array:
            return np.asarray(one(np.outer(x, radius / radii).ravel()).reshape(len(x), -1) @ shares)

    elif law == "rounded ball":
        deviation = math.sqrt(count + 1.0) * length

        def ball(u: Array) -> Array:
            return np.asarray(np.exp(-(count + 1.0) / 2.0 * np.log1p(u * u / (count + 1.0))))

        exceeds = _symmetric(ball, ball, 1)
    else:
        deviation = length

        def gaussian(u: Array) -> Array:
            return np.asarray(np.exp(-u * u / 2.0))

        exceeds = _symmetric(gaussian, gaussian, 1)
    half_width = scale * deviation * _quantile(exceeds) * 1.001
    return NoiseError(scale * deviation, LEVEL, half_width)


def _quantile(exceeds: Callable[[Array], Array]) -> float:
    """The smallest ``x``, up to 80, that is exceeded with probability at most 5 %."""
    low, high = 0.0, _DEVIATIONS
    while high - low > 1e-5:
        middle = (low + high) / 2.0
        if exceeds(np.array([middle]))[0] > 1.0 - LEVEL:
            low = middle
        else:
            high = middle
    return high


def _symmetric(law: Callable[[Array], Array], envelope: Callable[[Array], Array], weights: int) -> Callable[[Array], Array]:
    """``P[|X| > x]`` of a symmetric distribution of variance 1, from its characteristic function.

    It is ``1 - (2 / pi) integral phi(u) sin(u x) / u du``. Even steps of ``h`` wrap the distribution at ``2 pi / h``, 160
    deviations: there is nothing beyond half of that.
    """
    u = (np.arange(_MOST_STEPS) + 0.5) * _STEP
    parts = []
    at_once = max(1, min(512, 1_000_000 // weights))
    for some in np.split(u, range(at_once, len(u), at_once)):
        ends = np.flatnonzero(~(envelope(some) > _NEGLIGIBLE))
        some = some[: ends[0]] if len(ends) else some
        parts.append(law(some) / some)
        if len(ends):
            break
    terms = np.concatenate(parts)
    terms = np.append(terms, np.zeros(-len(terms) % _BLOCK)).reshape(-1, _BLOCK)

    def exceeds(x: Array) -> Array:
        # By the addition theorem: sines of block starts and within a block are far fewer.
        start = np.outer(x, np.arange(len(terms)) * (_BLOCK * _STEP))
        within = np.outer((np.arange(_BLOCK) + 0.5) * _STEP, x)
        sums = np.sum(np.sin(start) * (terms @ np.cos(within)).T + np.cos(start) * (terms @ np.sin(within)).T, axis=1)
        return np.where(x > _DEVIATIONS, 0.0, 1.0 - 2.0 / math.pi * _STEP * sums)

    return exceeds


def _gamma(shape: float) -> tuple[Array, Array]:
    """The Gamma law of this shape as a hundred values with their probabilities."""
    low, high = max(shape - 7.0 * math.sqrt(shape), 0.0), shape + 7.0 * math.sqrt(shape) + 20.0
    values = low + (high - low) * (np.arange(100) + 0.5) / 100.0
    mode = max(shape - 1.0, np.finfo(np.float64).tiny)
    weighed = np.exp((shape - 1.0) * np.log(values / mode) - (values - mode))
    return np.asarray(values, dtype=np.float64), np.asarray(weighed / weighed.sum(), dtype=np.float64)
