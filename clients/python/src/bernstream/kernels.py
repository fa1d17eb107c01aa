"""Kernels on the unit cube, and Newton's basis of the kernel functions at public points."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from .arrays import Array

#: Points count as indistinguishable if the squared power function is at most this fraction of ``K(y, y)``.
REST = 1e-10


class Kernel(Protocol):
    """A symmetric function of two points of the unit cube."""

    def between(self, x: Array, y: Array) -> Array:
        """``K(x_i, y_j)`` as a matrix."""

    def diagonal(self, x: Array) -> Array:
        """``K(x_i, x_i)``."""

    def integrals(self, points: Array, low: Array, high: Array) -> Array:
        """The integral of ``K(., p)`` over a box of the unit cube, for each point."""


@dataclass(frozen=True, eq=False)
class Gaussian:
    """``exp(-(x - y)' P (x - y) / 2)``."""

    precision: Array

    @property
    def is_diagonal(self) -> bool:
        """Whether it is a product over the axes."""
        return not np.any(self.precision != np.diag(np.diag(self.precision)))

    def between(self, x: Array, y: Array) -> Array:
        apart = x[:, None, :] - y[None, :, :]
        square = np.zeros(apart.shape[:2])
        for row, d in zip(self.precision, np.moveaxis(apart, 2, 0)):
            square += d * (apart @ row)
        return np.asarray(np.exp(-np.maximum(square, 0.0) / 2.0))

    def diagonal(self, x: Array) -> Array:
        return np.ones(len(x))

    def integrals(self, points: Array, low: Array, high: Array) -> Array:
        widths = np.diag(self.precision) ** -0.5
        if not self.is_diagonal:
            narrowest = np.linalg.eigvalsh(self.precision).max() ** -0.5
            return quadrature(self, points, low, high, narrowest)
        ends = [erf((end - points) / (widths * math.sqrt(2.0))) for end in (low, high)]
        return np.asarray(np.prod(math.sqrt(math.pi / 2.0) * widths * (ends[1] - ends[0]), axis=1))


@dataclass(frozen=True)
class Laplacian:
    """``exp(-|x - y|_1 / bandwidth)``."""

    bandwidth: float

    def between(self, x: Array, y: Array) -> Array:
        distance = np.abs(x[:, None, :] - y[None, :, :]).sum(axis=2)
        return np.asarray(np.exp(-distance / self.bandwidth))

    def diagonal(self, x: Array) -> Array:
        return np.ones(len(x))

    def integrals(self, points: Array, low: Array, high: Array) -> Array:
        def below(end: Array) -> Array:
            apart = end - points
            return np.asarray(-np.sign(apart) * self.bandwidth * np.expm1(-np.abs(apart) / self.bandwidth))

        return np.asarray(np.prod(below(high) - below(low), axis=1))


@dataclass(frozen=True)
class Polynomial:
    """``((1 + <t, u>) / (1 + l))^power`` with ``t = 2 x - 1``; the linear kernel has power 1."""

    power: int

    def between(self, x: Array, y: Array) -> Array:
        inner = (2.0 * x - 1.0) @ (2.0 * y - 1.0).T
        return np.asarray(((1.0 + inner) / (1.0 + x.shape[1])) ** self.power)

    def diagonal(self, x: Array) -> Array:
        square = np.square(2.0 * x - 1.0).sum(axis=1)
        return np.asarray(((1.0 + square) / (1.0 + x.shape[1])) ** self.power)

    def integrals(self, points: Array, low: Array, high: Array) -> Array:
        return quadrature(self, points, low, high, 10.0)


def quadrature(kernel: Kernel, points: Array, low: Array, high: Array, width: float) -> Array:
    """By 12-point Gauss quadrature on pieces about as wide as the kernel."""
    nodes, weights = np.polynomial.legendre.leggauss(12)
    most = [400, 24, 6][len(low) - 1]
    axes, factors = [], []
    for a, b in zip(low, high):
        parts = int(np.clip(math.ceil((b - a) / width), 1, most))
        ends = np.linspace(a, b, parts + 1)
        half = (b - a) / (2 * parts)
        axes.append(((ends[:-1, None] + half) + half * nodes).ravel())
        factors.append(np.tile(half * weights, parts))
    sums = np.zeros(len(points))
    # Node by node on the first axis: three axes have many nodes.
    rest = np.stack(np.meshgrid(*axes[1:], indexing="ij"), axis=-1).reshape(-1, len(axes) - 1)
    weight = np.ones(1)
    for factor in factors[1:]:
        weight = np.outer(weight, factor).ravel()
    for x, factor in zip(axes[0], factors[0]):
        at = np.column_stack([np.full(len(rest), x), rest])
        sums += factor * (weight @ kernel.between(at, points))
    return sums


def erf(x: Array) -> Array:
    return np.asarray(np.frompyfunc(math.erf, 1, 1)(x), dtype=np.float64)


class Newton:
    """Public points of a kernel and ``L``, ``K_PP = L L'``: ``n(y) = L^-1 k_P(y)`` is orthonormal in its space."""

    def __init__(self, kernel: Kernel, points: Array, factor: Array) -> None:
        self.kernel, self.points, self.factor = kernel, points, factor

    @staticmethod
    def on(kernel: Kernel, points: Array) -> Newton:
        """On these points, in their order. Points that the kernel cannot distinguish get a pivot of :data:`REST`."""
        return Newton(kernel, points, cholesky(kernel.between(points, points)))

    @staticmethod
    def among(kernel: Kernel, candidates: Array, most: int) -> Newton:
        """On at most ``most`` of the candidates, greedily where the power function is largest."""
        rests = kernel.diagonal(candidates)
        columns = np.zeros((min(most, len(candidates)), len(candidates)))
        least = REST * rests.max()
        chosen: list[int] = []
        while len(chosen) < len(columns):
            pivot = int(np.argmax(rests))
            rest = rests[pivot]
            if not rest > least:
                break
            m = len(chosen)
            row = kernel.between(candidates[pivot][None, :], candidates)[0]
            columns[m] = (row - in_fours(columns[:m, pivot], columns[:m])) / math.sqrt(rest)
            columns[m, pivot] = math.sqrt(rest)
            rests = rests - columns[m] * columns[m]
            rests[pivot] = 0.0
            chosen.append(pivot)
        return Newton(kernel, candidates[chosen], np.tril(columns[: len(chosen), chosen].T))

    def at(self, y: Array) -> Array:
        """``n(y)`` for several points: one column per point."""
        return forward(self.factor, self.kernel.between(self.points, y))

    def whiten(self, values: Array) -> Array:
        """The coordinates of functions with these values at the points: one column per function."""
        return forward(self.factor, values)

    def coordinates(self, coefficients: Array) -> Array:
        """``L' a``: the coordinates of ``sum_i a_i K(., p_i)``."""
        return np.asarray(self.factor.T @ coefficients)

    def coefficients(self, coordinates: Array) -> Array:
        """``L'^-1 c``: the kernel coefficients of functions with these coordinates."""
        return backward(self.factor, coordinates)


def in_fours(a: Array, columns: Array) -> Array:
    """``a`` times each column, in four sums like the Rust evaluator: rounding decides between equally good points."""
    whole = len(a) // 4 * 4
    products = columns * a[:, None]
    fours = products[:whole].reshape(-1, 4, columns.shape[1]).sum(axis=0)
    return np.asarray(fours.sum(axis=0) + products[whole:].sum(axis=0))


def cholesky(matrix: Array) -> Array:
    """The factor ``L`` of a positive definite matrix; no pivot's square is below :data:`REST` of its entry."""
    try:
        whole = np.asarray(np.linalg.cholesky(matrix), dtype=np.float64)
        if np.all(np.diag(whole) ** 2 >= REST * np.diag(matrix)):
            return whole
    except np.linalg.LinAlgError:
        pass
    factor = np.zeros_like(matrix)
    for j in range(len(matrix)):
        column = matrix[j:, j] - factor[j:, :j] @ factor[j, :j]
        factor[j, j] = math.sqrt(max(column[0], REST * matrix[j, j]))
        factor[j + 1 :, j] = column[1:] / factor[j, j]
    return factor


def forward(factor: Array, x: Array) -> Array:
    """``L^-1 x``, for one or several columns."""
    solved = np.array(x, dtype=np.float64)
    for i, row in enumerate(factor):
        solved[i] = (solved[i] - row[:i] @ solved[:i]) / row[i]
    return solved


def backward(factor: Array, x: Array) -> Array:
    """``L'^-1 x``, for one or several columns."""
    solved = np.array(x, dtype=np.float64)
    for i in range(len(factor) - 1, -1, -1):
        solved[i] = (solved[i] - factor[i + 1 :, i] @ solved[i + 1 :]) / factor[i, i]
    return solved
