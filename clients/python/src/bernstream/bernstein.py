"""Bernstein polynomials on the unit cube, and the iterated Bernstein operator."""

from __future__ import annotations

import numpy as np

from .arrays import Array

#: The largest degree and order that are accepted.
MAX_DEGREE = 5_000
MAX_ORDER = 1_000


def basis(degree: int, x: Array) -> Array:
    """``C(k,j) x^j (1-x)^(k-j)`` for ``j = 0..k`` at points of ``[0, 1]``: one row per point.

    Computed from the mode outwards and divided by the sum: a recurrence from ``j = 0`` underflows from degree 148 on.
    """
    j = np.arange(degree)
    mode = np.minimum((degree + 1.0) * x, degree).astype(np.int64)[:, None]
    with np.errstate(divide="ignore", over="ignore"):
        up = (degree - j) / (j + 1.0) * (x / (1.0 - x))[:, None]
        down = (j + 1.0) / (degree - j) * ((1.0 - x) / x)[:, None]
    entries = np.ones((len(x), degree + 1))
    entries[:, 1:] *= np.cumprod(np.where(j >= mode, up, 1.0), axis=1)
    entries[:, :-1] *= np.cumprod(np.where(j < mode, down, 1.0)[:, ::-1], axis=1)[:, ::-1]
    return np.asarray(entries / entries.sum(axis=1, keepdims=True), dtype=np.float64)


def evaluate(coefficients: Array, bases: list[Array]) -> Array:
    """A sum of products of functions at several points: one matrix of bases per axis, one row per point."""
    count, side = bases[0].shape
    values: Array = bases[0] @ coefficients.reshape(side, -1)
    for along in bases[1:]:
        values = np.einsum("nij,ni->nj", values.reshape(count, along.shape[1], -1), along)
    return np.asarray(values.reshape(count))


def integrals(degree: int, low: float, high: float) -> Array:
    """The integral of each basis function from ``low`` to ``high``."""
    below = basis(degree + 1, np.array([low, high]))[:, ::-1].cumsum(axis=1)[:, ::-1][:, 1:]
    return np.asarray((below[1] - below[0]) / (degree + 1))


class Operator:
    """The iterated Bernstein operator on the lattice ``{0, 1/k, ..., 1}^l``.

    ``B^(h) v = B c_h`` with ``c_1 = v`` and ``c_{j+1} = c_j + (v - A c_j)``, where ``A`` maps lattice values of ``f`` to
    lattice values of ``B f`` along each axis in turn. The alternating binomial sum is the same operator but loses every
    digit near order 64.
    """

    def __init__(self, dimensions: int, degree: int) -> None:
        self.shape = (degree + 1,) * dimensions
        self.on_lattice = basis(degree, np.arange(degree + 1) / degree)

    def coefficients(self, values: Array, order: int) -> Array:
        lattice = values.reshape(self.shape)
        sharpened = lattice
        for _ in range(order - 1):
            sharpened = sharpened + (lattice - turn(sharpened, self.on_lattice))
        return sharpened

    def influences(self, bases: list[Array], order: int) -> Array:
        """The influence of noise on each lattice value on the value at each point: one row per point."""
        direct = bases[0]
        for along in bases[1:]:
            direct = np.einsum("n...,nj->n...j", direct, along)
        influences = direct
        for _ in range(order - 1):
            smoothed = influences
            for _ in self.shape:
                smoothed = np.tensordot(smoothed, self.on_lattice, axes=([1], [0]))
            influences = influences + (direct - smoothed)
        return influences.reshape(len(direct), -1)


def turn(tensor: Array, matrix: Array) -> Array:
    """One matrix applied along each axis in turn: it has as many columns as the axis has entries."""
    for _ in range(tensor.ndim):
        tensor = np.tensordot(tensor, matrix, axes=([0], [1]))
    return tensor
