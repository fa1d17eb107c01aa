"""What the counts of cells probably were, given the known distribution of their noise.

The exact counts are ``mu m + f``: ``m`` the share of each node's spline inside the domain, ``mu`` an unknown constant, ``f`` a
Gaussian process. The posterior mean is averaged over a fixed list of lengths and sizes of ``f``, weighted by their marginal
likelihood. All of this follows from released values alone and costs no privacy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .arrays import Array, in_parts, product
from .forms import Cells

#: The most nodes of an axis.
MOST_NODES = 512
#: Length scales of the prior in bandwidths; at 0 the counts are independent of each other.
LENGTHS = (0.0, 0.5, 1.0, 2.0, 4.0)
#: The variance of a whole cell over that of the noise.
RATIOS = tuple(4.0**power for power in range(-4, 14))
#: Fits less likely than this are omitted.
NEGLIGIBLE = 1e-12
_OUTSIDE = {"box": (), "linear": (1.0 / 2.0,), "quadratic": (47.0 / 48.0, 1.0 / 2.0, 1.0 / 48.0)}


@dataclass(frozen=True)
class _Fit:
    """The posterior for one ratio."""

    ratio: float
    evidence: float
    left: float
    turned: Array


class _Prior:
    """One length of the prior."""

    def __init__(self, basis: Cells, length: float, values: Array, variance: float) -> None:
        shares = [_inside(basis.spline, steps) for steps in basis.steps]
        eigenvalues = []
        self.axes: list[Array] = []
        for nodes, share, bandwidth, step in zip(basis.nodes(), shares, basis.bandwidths(), basis.steps):
            apart = np.square(nodes[:, None] - nodes)
            spread = (length * bandwidth) ** 2 + 2.0 * basis.spline_variance / step**2
            kernel = np.exp(-apart / (2.0 * spread)) if length > 0.0 else np.eye(len(nodes))
            found, vectors = np.linalg.eigh(kernel * np.outer(share, share))
            eigenvalues.append(np.maximum(found, 0.0))
            self.axes.append(np.asarray(vectors))
        self.values = _products(eigenvalues)
        self.mean = self.turn(_products(shares))
        turned = self.turn(values)
        self.fits = [self._fit(ratio, turned, variance) for ratio in RATIOS]

    def _fit(self, ratio: float, values: Array, variance: float) -> _Fit:
        kept = 1.0 / (ratio * self.values + 1.0)
        left = float(np.square(self.mean) @ kept)
        mu = float((self.mean * values) @ kept) / left
        rest = values - mu * self.mean
        misfit, volume = float(np.square(rest) @ kept), -float(np.log(kept).sum())
        return _Fit(ratio, -(misfit / variance + volume + float(np.log(left))) / 2.0, left, values - rest * kept)

    def turn(self, x: Array) -> Array:
        """``Q' x``, for one or several columns."""
        tensor = x.reshape([len(axis) for axis in self.axes] + [-1])
        for axis in self.axes:
            # The first axis becomes the last but one, so that after all of them the order is what it was.
            tensor = np.moveaxis(np.tensordot(axis, tensor, axes=([0], [0])), 0, len(self.axes) - 1)
        return np.asarray(tensor.reshape(x.shape))

    def back(self, x: Array) -> Array:
        """``Q x``."""
        tensor = x.reshape([len(axis) for axis in self.axes])
        for axis in self.axes:
            tensor = np.tensordot(tensor, axis, axes=([0], [1]))
        return np.asarray(tensor.reshape(x.shape))


class Counts:
    """The posterior mean of the counts, and how uncertain they are."""

    def __init__(self, basis: Cells, values: Array, variance: float) -> None:
        self.basis, self.variance = basis, variance
        priors = [_Prior(basis, length, values, variance) for length in LENGTHS]
        evidences = np.array([[fit.evidence for fit in prior.fits] for prior in priors])
        weights = np.exp(evidences - evidences.max())
        weights /= weights.sum()
        self.mean = np.zeros(len(values))
        self._parts: list[tuple[_Prior, list[tuple[float, _Fit]]]] = []
        for prior, row in zip(priors, weights.tolist()):
            fits = [(weight, fit) for weight, fit in zip(row, prior.fits) if weight > NEGLIGIBLE]
            if fits:
                self._parts.append((prior, fits))
                self.mean += prior.back(np.sum([weight * fit.turned for weight, fit in fits], axis=0))

    def deviations(self, points: Array) -> Array:
        """The posterior standard deviation of the function, of what the kernel makes of the exact counts."""
        nodes = product(self.basis.nodes())

        def some(at: Array) -> Array:
            kernels = self.basis.kernel.between(nodes, at)
            value, square = np.zeros(len(at)), np.zeros(len(at))
            for prior, fits in self._parts:
                along = prior.turn(kernels)
                squares = np.square(along)
                for weight, fit in fits:
                    kept = 1.0 / (fit.ratio * prior.values + 1.0)
                    found = fit.turned @ along
                    of_mean = np.square((prior.mean * kept) @ along) / fit.left
                    value += weight * found
                    square += weight * (np.square(found) + self.variance * ((1.0 - kept) @ squares + of_mean))
            return np.asarray(np.sqrt(np.maximum(square - np.square(value), 0.0)))

        return in_parts(points, 4 * nodes.size, some)


def _inside(spline: str, steps: int) -> Array:
    """The share of each node's spline that lies inside the domain."""
    outside = np.array(_OUTSIDE[spline])
    shares = np.ones(Cells.nodes_of(spline, steps))
    shares[: len(outside)] -= outside
    shares[len(shares) - len(outside) :] -= outside[::-1]
    return shares


def _products(lists: list[Array]) -> Array:
    """The products of one number of each list, the last list fastest."""
    found = np.ones(1)
    for numbers in lists:
        found = np.outer(found, numbers).ravel()
    return found
