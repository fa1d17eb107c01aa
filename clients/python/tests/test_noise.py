"""Plausible curves and quantiles of the noise, beside SciPy's laws."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import pytest
from scipy import stats

import bernstream
from bernstream import Synopsis, noise

DRAWS = 2_000


@pytest.mark.parametrize("law", noise.LAWS)
def test_every_law_has_the_variance_that_it_is_said_to_have(law: str) -> None:
    for count in (1, 5, 40):
        drawn = noise.draw(law, count, 20_000, np.random.default_rng(8))
        # The worst is the ball of one value: 1.6 % a deviation.
        assert abs(np.square(drawn).mean() / noise.variance(law, count) - 1.0) < 0.065


def test_one_value_has_its_law() -> None:
    rng = np.random.default_rng(3)
    law_of = {"discrete laplace": stats.laplace, "discrete gaussian": stats.norm, "rounded ball": stats.laplace}
    for law, expected in law_of.items():
        drawn = noise.draw(law, 1, 20_000, rng).ravel()
        assert stats.kstest(drawn, expected.cdf).pvalue > 1e-4, law
        assert stats.kstest(1.1 * drawn, expected.cdf).pvalue < 1e-4, law


@pytest.mark.parametrize("law", noise.LAWS)
@pytest.mark.parametrize("weights", [[1.0], [1.0, -1.0, 1.0], list(0.5 ** np.arange(8.0)), [0.1] * 60], ids=len)
def test_a_sum_is_within_its_half_width_as_often_as_said(law: str, weights: list[float]) -> None:
    of = noise.of_sum(law, 3.0, np.array(weights))
    sums = 3.0 * noise.draw(law, len(weights), 40_000, np.random.default_rng(4)) @ np.array(weights)
    # Four deviations of a count of 2,000.
    assert abs(np.mean(np.abs(sums) > of.half_width) - 0.05) < 0.0044
    assert np.mean(np.abs(sums) > 0.7 * of.half_width) > 0.08
    assert abs(np.mean(np.square(sums)) / of.deviation**2 - 1.0) < 0.08


@pytest.mark.parametrize("law", noise.LAWS)
def test_plausible_curves_are_as_far_apart_as_the_noise(lattice: Callable[..., Synopsis], law: str) -> None:
    of = {"law": law, "scale": 0.3, "grid": 1e-9, "calibrated": "tight"}
    for synopsis in (lattice(1, 6, 2, noise=of), lattice(2, 3, 3, noise=of)):
        at = np.random.default_rng(2).uniform(-0.9, 1.9, size=(len(synopsis.axes), 5))
        curves = np.array([one(*at) for one in synopsis.sample(DRAWS, rng=7)])
        assert np.allclose(curves.mean(axis=0), synopsis(*at), atol=5.0 * synopsis.deviation(*at).max() / DRAWS**0.5)
        ratio = curves.std(axis=0) / synopsis.deviation(*at)
        # Four deviations of what so many draws leave; a fifth more noise is found out.
        assert np.all(np.abs(ratio - 1.0) < 0.1), ratio
        assert np.any(np.abs(1.2 * ratio - 1.0) > 0.1)


@pytest.mark.parametrize("law", ["rounded ball", "discrete gaussian"])
def test_noise_on_kernel_points_is_on_their_coordinates(kernels: Callable[..., Synopsis], law: str) -> None:
    of = {"law": law, "scale": 0.3, "grid": 1e-9, "calibrated": "tight"}
    synopsis = kernels({"machine": {"gaussian": {"bandwidth": 0.15}}}, 1, noise=of)
    x = np.linspace(0.0, 2.0, 7)
    curves = np.array([one(x) for one in synopsis.sample(DRAWS, rng=7)])
    assert np.all(np.abs(curves.std(axis=0) / synopsis.deviation(x) - 1.0) < 0.1)
    # Noise on the coefficients themselves would be another.
    wrong = synopsis.values - 0.3 * noise.draw(law, 9, DRAWS, np.random.default_rng(7))
    plain = np.array([Synopsis(synopsis.meta, one)(x) for one in wrong])
    assert np.any(np.abs(plain.std(axis=0) / synopsis.deviation(x) - 1.0) > 0.2)


@pytest.mark.parametrize("law", ["discrete laplace", "discrete gaussian"])
@pytest.mark.parametrize("precision", [[[90.0, 0.0], [0.0, 60.0]], [[90.0, 40.0], [40.0, 60.0]]], ids=str)
def test_noise_on_cells_is_on_each_of_them(cells: Callable[..., Synopsis], law: str, precision: Any) -> None:
    of = {"law": law, "scale": 0.3, "grid": 1e-9, "calibrated": "tight"}
    synopsis = cells(precision, "quadratic", [6, 5], noise=of)
    at = np.random.default_rng(2).uniform(0.0, 2.0, size=(2, 7))
    curves = np.array([one(*at) for one in synopsis.sample(DRAWS, rng=7)])
    ratio = curves.std(axis=0) / synopsis.deviation(*at)
    assert np.all(np.abs(ratio - 1.0) < 0.1), ratio
    assert np.any(np.abs(1.2 * ratio - 1.0) > 0.1)


def test_samples_follow_from_the_seed() -> None:
    f = bernstream.example()
    one, same = f.sample(2, rng=1), f.sample(2, rng=np.random.default_rng(1))
    assert np.array_equal(one[1].values, same[1].values) and not np.array_equal(one[0].values, one[1].values)


def test_the_band_holds_as_often_as_it_says() -> None:
    """Of curves that differ from the released one by the noise alone, 95 % lie within its band everywhere."""
    f = bernstream.example()
    x = np.linspace(-30.0, 180.0, 400)
    lower, upper = f.band(x)
    inside = np.mean([np.all((lower <= one(x)) & (one(x) <= upper)) for one in f.sample(600, rng=3)])
    assert 0.925 < inside < 0.975
    narrow = np.mean([np.all(np.abs(one(x) - f(x)) <= 0.8 * (upper - f(x))) for one in f.sample(600, rng=3)])
    assert narrow < 0.9
    pointwise = f.band(x, pointwise=True)
    at_each = np.mean([(pointwise.lower <= one(x)) & (one(x) <= pointwise.upper) for one in f.sample(600, rng=3)], axis=0)
    assert np.all(at_each > 0.92) and np.all(pointwise.upper - pointwise.lower < upper - lower)


def test_a_synopsis_that_does_not_say_its_pointwise_factor_has_nearly_the_same(document: dict[str, Any]) -> None:
    for law in noise.LAWS:
        found = noise.pointwise(law, 30)
        drawn = noise.draw(law, 30, 40_000, np.random.default_rng(5)) @ np.full(30, 30.0**-0.5)
        covered = np.mean(np.abs(drawn) <= found)
        assert 0.947 < covered < 0.97, law
