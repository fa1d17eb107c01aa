"""Beside SciPy, which knows nothing of us."""

from __future__ import annotations

import math
from typing import Any, Callable

import numpy as np
import pytest
from scipy import integrate, stats

import bernstream
from bernstream import Synopsis, SynopsisError, bernstein

KERNELS: list[Any] = [
    {"gaussian": {"precision": [[20.0, 0.0], [0.0, 9.0]]}},
    {"gaussian": {"precision": [[20.0, 11.0], [11.0, 9.0]]}},
    {"machine": {"gaussian": {"bandwidth": 0.2}}},
    {"machine": {"laplacian": {"bandwidth": 0.3}}},
    {"machine": {"polynomial": {"power": 5}}},
    {"machine": "linear"},
]


@pytest.mark.parametrize("order", [1, 2, 7])
@pytest.mark.parametrize("degree", [1, 2, 9, 40])
def test_a_lattice_of_one_axis_is_a_bpoly(lattice: Callable[..., Synopsis], degree: int, order: int) -> None:
    synopsis = lattice(1, degree, order)
    oracle, x = synopsis.to_bpoly(), np.linspace(-1.0, 2.0, 301)
    assert np.abs(synopsis(x) - oracle(x)).max() < 1e-12 * np.abs(oracle(x)).max()
    for low, high in [(-1.0, 2.0), (-0.3, 0.1), (1.9, 2.0), (0.5, 0.5)]:
        assert math.isclose(float(synopsis.integrate((low, high))), float(oracle.integrate(low, high)), abs_tol=1e-12)


def test_the_operator_is_the_one_of_the_papers() -> None:
    """``B^(h) = sum_i C(h,i) (-1)^(i-1) B^i``, by SciPy's polynomials."""
    from scipy.interpolate import BPoly

    degree, order = 6, 4
    values = np.random.default_rng(1).normal(size=degree + 1)
    x = np.arange(degree + 1) / degree
    expected, iterated = np.zeros(degree + 1), values
    for i in range(1, order + 1):
        expected = expected + math.comb(order, i) * (-1) ** (i - 1) * iterated
        iterated = BPoly(iterated[:, None], [0.0, 1.0])(x)
    assert np.allclose(bernstein.Operator(1, degree).coefficients(values, order), expected, atol=1e-12)


@pytest.mark.parametrize("degree", [1, 40, 149, 5000])
def test_the_basis_is_binomial(degree: int) -> None:
    x = np.array([0.0, 1e-300, 1e-9, 0.1, 0.5, 0.77, 1.0 - 1e-9, 1.0])
    expected = stats.binom.pmf(np.arange(degree + 1)[None, :], degree, x[:, None])
    assert np.allclose(bernstein.basis(degree, x), expected, atol=1e-11)


def box_of(synopsis: Synopsis, share: float) -> list[tuple[float, float]]:
    return [(a.min + 0.1 * (a.max - a.min), a.min + share * (a.max - a.min)) for a in synopsis.axes]


@pytest.mark.parametrize("order", [1, 3])
def test_integrals_are_those_of_scipy(lattice: Callable[..., Synopsis], order: int) -> None:
    for axes in (1, 2):
        synopsis = lattice(axes, 5, order)
        box = box_of(synopsis, 0.7)
        expected, _ = integrate.nquad(lambda *at, of=synopsis: float(of(*at)), box)
        assert math.isclose(float(synopsis.integrate(box)), expected, rel_tol=1e-9)
        assert math.isclose(float(synopsis.integrate()), synopsis.mass, rel_tol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_integrals_of_kernels_are_those_of_gauss(kernels: Callable[..., Synopsis], kernel: Any) -> None:
    synopsis = kernels(kernel, 2, offset=0.25)
    box = box_of(synopsis, 0.8)
    nodes, weights = np.polynomial.legendre.leggauss(200)
    at = [low + (high - low) * (nodes + 1.0) / 2.0 for low, high in box]
    area = math.prod((high - low) / 2.0 for low, high in box)
    expected = area * float(weights @ synopsis(at[0][:, None], at[1][None, :]) @ weights)
    # A Laplacian has corners, which Gauss's rule follows slowly.
    tolerance = 1e-4 if "laplacian" in str(kernel) else 1e-9
    assert math.isclose(float(synopsis.integrate(box)), expected, rel_tol=tolerance, abs_tol=tolerance)
    assert math.isclose(float(synopsis.integrate()), synopsis.mass, rel_tol=2e-3, abs_tol=2e-3)


@pytest.mark.parametrize("precision", [[[90.0, 0.0], [0.0, 60.0]], [[90.0, 40.0], [40.0, 60.0]]], ids=str)
@pytest.mark.parametrize("spline", ["box", "linear", "quadratic"])
def test_cells_are_kernels_on_the_nodes_and_integrate_to_what_they_show(
    cells: Callable[..., Synopsis], spline: str, precision: Any
) -> None:
    synopsis = cells(precision, spline, [5, 4])
    ends = {"box": (0.1, 0.9, 0.125, 0.875), "linear": (0.0, 1.0, 0.0, 1.0), "quadratic": (-0.2, 1.2, -0.25, 1.25)}[spline]
    counts = synopsis.values.reshape(round((ends[1] - ends[0]) * 5) + 1, round((ends[3] - ends[2]) * 4) + 1)
    x, y = np.linspace(*ends[:2], counts.shape[0]), np.linspace(*ends[2:], counts.shape[1])
    at = np.array([0.3, 0.7])
    away = np.stack([at[0] - x[:, None] + 0.0 * y, at[1] - y[None, :] + 0.0 * x[:, None]], axis=-1)
    kernels = np.exp(-np.einsum("ijk,kl,ijl->ij", away, np.array(precision), away) / 2.0)
    found = synopsis(2.0 * at[0], 3.0 * at[1])
    assert math.isclose(found, (counts * kernels).sum(), rel_tol=1e-12, abs_tol=1e-12)
    assert not math.isclose(found, (counts[::-1] * kernels).sum(), rel_tol=1e-3)
    length = float(np.linalg.norm(kernels))
    scale = synopsis.meta["noise"]["scale"]
    assert math.isclose(synopsis.deviation(2.0 * at[0], 3.0 * at[1]), 2.0**0.5 * scale * length, rel_tol=1e-12)
    box = box_of(synopsis, 0.8)
    expected, _ = integrate.nquad(lambda *at: float(synopsis(*at)), box, opts={"epsabs": 1e-7})
    assert math.isclose(float(synopsis.integrate(box)), expected, rel_tol=1e-5, abs_tol=1e-6)
    assert math.isclose(float(synopsis.integrate()), synopsis.mass, rel_tol=2e-3, abs_tol=2e-3)


@pytest.mark.parametrize("spline", ["box", "linear", "quadratic"])
def test_smoothed_counts_are_those_of_the_whole_systems(cells: Callable[..., Synopsis], spline: str) -> None:
    """Without eigenvectors: all 90 posteriors by SciPy's normal law of the counts."""
    precision = np.array([[40.0, 15.0], [15.0, 30.0]])
    of = {"law": "discrete laplace", "scale": 0.4, "grid": 1e-9, "calibrated": "tight"}
    synopsis = cells(precision.tolist(), spline, [3, 4], noise=of)
    variance = {"box": 1.0 / 12.0, "linear": 1.0 / 6.0, "quadratic": 1.0 / 4.0}[spline]
    first = {"box": 0.5, "linear": 0.0, "quadratic": -1.0}[spline]
    counts = {"box": 0, "linear": 1, "quadratic": 3}[spline]
    outside = {"box": [], "linear": [0.5], "quadratic": [47 / 48, 0.5, 1 / 48]}[spline]
    values, noise, at = synopsis.values, 2.0 * 0.4**2, np.array([0.3, 0.8])
    nodes, shares, bandwidths = [], [], np.linalg.inv(precision).diagonal() + variance / np.array([9.0, 16.0])
    for steps in (3, 4):
        nodes.append((np.arange(steps + counts) + first) / steps)
        share = np.ones(steps + counts)
        for i, out in enumerate(outside):
            share[i] -= out
            share[-1 - i] -= out
        shares.append(share)
    share = np.outer(*shares).ravel()
    points = np.stack(np.meshgrid(*nodes, indexing="ij"), axis=-1).reshape(-1, 2)
    away = at - points
    kernels = np.exp(-np.einsum("ik,kl,il->i", away, precision, away) / 2.0)
    evidences, means, squares, posteriors = [], [], [], []
    for length in (0.0, 0.5, 1.0, 2.0, 4.0):
        spread = length**2 * bandwidths + 2.0 * variance / np.array([9.0, 16.0])
        apart = np.square(points[:, None] - points) / spread
        process = np.exp(-apart.sum(axis=2) / 2.0) if length else np.eye(len(points))
        for power in range(-4, 14):
            system = np.eye(len(points)) + 4.0**power * process * np.outer(share, share)
            solved = np.linalg.solve(system, np.stack([values, share], axis=1))
            left = share @ solved[:, 1]
            mu = share @ solved[:, 0] / left
            posterior = values - solved[:, 0] + mu * solved[:, 1]
            # The flat prior on mu as the limit of a wide one: the density of the rest, and that of the mean.
            likelihood = stats.multivariate_normal(mu * share, noise * system).logpdf(values)
            evidences.append(likelihood - math.log(left) / 2.0)
            known = np.eye(len(points)) - np.linalg.inv(system) + np.outer(solved[:, 1], solved[:, 1]) / left
            posteriors.append(posterior)
            means.append(kernels @ posterior)
            squares.append(noise * kernels @ known @ kernels + means[-1] ** 2)
    weights = np.exp(np.array(evidences) - max(evidences))
    weights /= weights.sum()
    mean = float(weights @ np.array(means))
    smooth, x = synopsis.by("posterior"), (2.0 * at[0], 3.0 * at[1])
    assert math.isclose(smooth(*x), mean, rel_tol=1e-7)
    assert math.isclose(smooth.deviation(*x), math.sqrt(weights @ np.array(squares) - mean**2), rel_tol=1e-7)
    clipped = kernels @ np.maximum(weights @ np.array(posteriors), 0.0)
    assert math.isclose(synopsis(*x, by="nonnegative"), clipped, rel_tol=1e-7)
    assert abs(mean - synopsis(*x)) > 1e-3 and abs(mean - clipped) > 1e-3
    with pytest.raises(SynopsisError, match="no band"):
        synopsis.by("nonnegative").band(*x, pointwise=True)


def test_other_readings_integrate_to_what_they_show(document: dict[str, Any]) -> None:
    synopsis = bernstream.example()
    x = np.linspace(-30.0, 60.0, 200_001)
    for by in ("nearest", "kernel", "posterior"):
        reading = synopsis.by(by)
        expected = float(integrate.trapezoid(reading(x), x))
        assert math.isclose(reading.integrate((-30.0, 60.0)), expected, rel_tol=1e-4), by


def test_a_distribution_function_rises_from_0_to_1_with_its_density() -> None:
    synopsis = bernstream.example()
    x = np.linspace(-30.0, 180.0, 421)
    below = synopsis.cumulative()(x)
    assert below[0] == 0.0 and below[-1] == 1.0 and np.all(np.diff(below) >= 0.0)
    density = synopsis.density(proper=True)
    expected = integrate.cumulative_trapezoid(density(x), x, initial=0.0)
    assert np.abs(below - expected).max() < 0.05
    assert np.all(density(x) >= 0.0) and math.isclose(expected[-1], 1.0, rel_tol=1e-2)
    assert math.isclose(synopsis.density().divisor, synopsis.mass)


def test_a_query_of_a_polynomial_is_answered_without_truncation(document: dict[str, Any]) -> None:
    changed = {**document, "basis": {"cosine": {"frequencies": 4}}, "degree": 1, "order": 1}
    # A thousand records in the middle of the domain, at 75.
    synopsis = Synopsis.from_json({**changed, "target": {"moments": {"frequencies": 4}}, "values": [1e3, 0.0, -1e3, 0.0]})
    answer = synopsis.query(lambda x: (x / 75.0) ** 3)
    assert abs(answer.sum - 1000.0) < 1e-9 and answer.mean is not None and abs(answer.mean.value - 1.0) < 1e-9
    assert answer.truncation.per_record < 1e-9
    assert synopsis.query(np.sin).truncation.per_record > 0.9
    with pytest.raises(SynopsisError, match=r"no finite answer at \["):
        synopsis.query(lambda x: np.where(x > 100.0, np.inf, x))
    with pytest.raises(SynopsisError, match="query"):
        synopsis(75.0)
    with pytest.raises(SynopsisError, match="call it"):
        bernstream.example().query(np.sin)
