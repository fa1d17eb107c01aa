"""How far the noise can move a released function: simultaneous and pointwise bands."""

from __future__ import annotations

import math

import numpy as np

from . import bernstein, noise
from .arrays import Array, in_parts, product
from .description import Description
from .errors import SynopsisError
from .forms import Affine, Cells, Kernels, Lattice
from .kernels import Newton
from .readings import By


def simultaneous(about: Description, by: By, points: Array) -> Array:
    """The half-width of the released band, which holds at all points of the domain simultaneously."""
    if by == about.order or (isinstance(by, int) and not isinstance(about.basis, Lattice)) or _is_kernels(about, by):
        weights = about.band.weights
        product = np.ones(len(points))
        for x in points.T:
            product *= in_parts(x, len(weights), lambda some: bernstein.basis(len(weights) - 1, some) @ weights)
        return np.asarray(about.band.half_width / product)
    raise SynopsisError(
        f"the released band holds for the reading by order {about.order}, not by {by!r}: ask with pointwise=True"
    )


class Pointwise:
    """The pointwise band: at any one point the noise is within the half-width with the released probability."""

    def __init__(self, about: Description, by: By) -> None:
        self.about, self.by = about, by
        basis, axes = about.basis, len(about.axes)
        if not (isinstance(by, int) or by == "nearest" or _is_kernels(about, by)):
            raise SynopsisError(f"there is no band for the reading by {by!r}")
        self.operator = bernstein.Operator(axes, basis.degree) if isinstance(basis, Lattice) and by != "nearest" else None
        self.newton = Newton.on(basis.kernel, basis.points) if isinstance(basis, Kernels) else None
        self.count = basis.count(axes)

    @property
    def factor(self) -> float:
        """The half-width is this factor times the length of the influences."""
        if self.about.band.pointwise is not None:
            return self.about.band.pointwise
        return self.about.noise.scale * noise.pointwise(self.about.noise.law, self.count)

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise on one value."""
        return self.about.noise.scale * math.sqrt(noise.variance(self.about.noise.law, self.count))

    def lengths(self, points: Array) -> Array:
        """The length of the influences of the values on the function at each point."""
        return in_parts(points, 2 * self.count, self._some)

    def _some(self, points: Array) -> Array:
        if self.newton is not None:
            return np.asarray(np.linalg.norm(self.newton.at(points), axis=0))
        if isinstance(self.about.basis, Cells):
            return _of_cells(self.about.basis, points)
        if isinstance(self.about.basis, Affine):
            return np.asarray(np.sqrt(1.0 + np.square(2.0 * points - 1.0).sum(axis=1)))
        if self.operator is None or not isinstance(self.by, int):
            return np.ones(len(points))
        bases = [bernstein.basis(self.operator.shape[0] - 1, x) for x in points.T]
        return np.asarray(np.linalg.norm(self.operator.influences(bases, self.by), axis=1))


def _is_kernels(about: Description, by: By) -> bool:
    return by == "kernel" and isinstance(about.basis, (Kernels, Cells))


def _of_cells(basis: Cells, points: Array) -> Array:
    if not basis.kernel.is_diagonal:
        return np.asarray(np.linalg.norm(basis.kernel.between(points, product(basis.nodes())), axis=1))
    lengths = np.ones(len(points))
    for along in basis.factors(points):
        lengths *= np.linalg.norm(along, axis=1)
    return lengths
