"""Posterior smoothing: a Gaussian process given released values and their known noise distribution.

The function is ``m + A g``, ``g`` a Gaussian process of a public kernel; the released values are its values on the lattice (or
its whitened coordinates) plus uncorrelated noise of public variance, treated as Gaussian. ``A`` maximizes the marginal
likelihood, ``m`` has a flat prior. All of this follows from released values alone and costs no privacy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from . import kernels, noise
from .arrays import Array, in_parts, product
from .description import Description
from .forms import Kernels, Lattice
from .kernels import Kernel, Newton, backward, cholesky, forward

#: The most coordinates: rougher functions are smoothed on this many points.
MOST = 512
#: Candidate length scales if the description has none, in widths of the domain.
LENGTHS = (0.05, 0.1, 0.2, 0.4, 0.8)
#: ``A^2`` over the noise variance for kernel interpolation: just keeps rounding in check.
INTERPOLATION = 1e4


@dataclass(frozen=True)
class _Fit:
    """The posterior for one ratio of ``A^2`` to the noise variance."""

    ratio: float
    mean: float
    rest: Array
    factor: Array
    ones: Array
    ones_left: float
    evidence: float


class _Model:
    """``v = m u + F g + noise``, ``g`` the coordinates in Newton's basis of the prior: the sums needed to fit it."""

    def __init__(self, basis: Lattice | Kernels, axes: int, kernel: Kernel, values: Array) -> None:
        if isinstance(basis, Lattice):
            points = product([np.arange(basis.degree + 1) / basis.degree] * axes)
            self.newton = Newton.among(kernel, points, MOST)
            rows, ones, known = self.newton.at(points).T, np.ones(len(points)), values
        else:
            points, whiten = basis.points, Newton.on(basis.kernel, basis.points)
            self.newton = Newton.among(kernel, points, MOST)
            rows = whiten.whiten(self.newton.at(points).T)
            ones, known = whiten.whiten(np.ones(len(points))), whiten.coordinates(values)
        self.gram = rows.T @ rows
        self.along = np.stack([rows.T @ known, rows.T @ ones], axis=1)
        self.squares = (float(known @ known), float(ones @ known), float(ones @ ones))

    def fit(self, ratio: float, variance: float) -> _Fit:
        factor = cholesky(np.eye(len(self.gram)) + ratio * self.gram)
        values, ones = forward(factor, self.along).T
        vv, uv, uu = self.squares
        ones_left = max(uu - ratio * float(ones @ ones), 1e-12 * uu)
        both_left = uv - ratio * float(ones @ values)
        mean = both_left / ones_left
        misfit = max(vv - ratio * float(values @ values) - mean * both_left, 0.0)
        rest = ratio * (values - mean * ones)
        volume = float(np.log(np.diag(factor)).sum())
        evidence = -volume - (misfit / variance + float(np.log(ones_left))) / 2.0
        return _Fit(ratio, mean, rest, factor, ones, ones_left, evidence)

    def likeliest(self, variance: float) -> _Fit:
        """The fit with the largest marginal likelihood: over 15 powers of ten, then refined to a tenth of one."""

        def best(exponents: list[float]) -> tuple[float, _Fit]:
            fits = [(exponent, self.fit(10.0**exponent, variance)) for exponent in exponents]
            return max(fits, key=lambda one: one[1].evidence)

        coarse = best([i / 2.0 for i in range(-12, 19)])[0]
        return best([coarse + i / 10.0 for i in range(-4, 5)])[1]


class Smooth:
    """A function by kernel functions, and how uncertain it is."""

    def __init__(self, model: _Model, fit: _Fit, variance: float, offset: float) -> None:
        self.mean, self.newton, self.fit, self.variance = offset + fit.mean, model.newton, fit, variance
        self.coefficients = self.newton.coefficients(backward(fit.factor, fit.rest))

    def values(self, points: Array) -> Array:
        def some(at: Array) -> Array:
            return self.mean + self.newton.kernel.between(at, self.newton.points) @ self.coefficients

        return in_parts(points, self.newton.points.size, some)

    def deviations(self, points: Array) -> Array:
        fit, newton = self.fit, self.newton

        def some(at: Array) -> Array:
            n = newton.at(at)
            solved = forward(fit.factor, n)
            left = np.maximum(newton.kernel.diagonal(at) - np.square(n).sum(axis=0), 0.0)
            of_mean = np.square(1.0 - fit.ratio * (fit.ones @ solved)) / fit.ones_left
            return np.asarray(np.sqrt(self.variance * (fit.ratio * (np.square(solved).sum(axis=0) + left) + of_mean)))

        return in_parts(points, newton.points.size * 2, some)

    def integral(self, low: Array, high: Array) -> float:
        functions = self.newton.kernel.integrals(self.newton.points, low, high)
        return float(self.mean * np.prod(high - low) + self.coefficients @ functions)


def posterior(about: Description, values: Array) -> Smooth:
    """The posterior, of a lattice or of kernel functions."""
    basis = about.basis
    assert isinstance(basis, (Lattice, Kernels))
    variance = noise.variance(about.noise.law, basis.count(len(about.axes))) * about.noise.scale**2
    isotropic = [kernels.Gaussian(np.eye(len(about.axes)) / length**2) for length in LENGTHS]
    models = [_Model(basis, len(about.axes), k, values) for k in ([about.prior] if about.prior else isotropic)]
    fit, model = max(((m.likeliest(variance), m) for m in models), key=lambda one: one[0].evidence)
    return Smooth(model, fit, variance, about.offset if isinstance(basis, Kernels) else 0.0)


def interpolation(about: Description, prior: Kernel, values: Array) -> Smooth:
    """Kernel interpolation of lattice values."""
    assert isinstance(about.basis, Lattice)
    model = _Model(about.basis, len(about.axes), prior, values)
    return Smooth(model, model.fit(INTERPOLATION, 1.0), 0.0, 0.0)
