"""What values are, and how many there are of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Optional, Union

import numpy as np

from .arrays import Array
from .found_keys import FoundKeys
from .kernels import Gaussian, Kernel


@dataclass(frozen=True)
class Lattice:
    """Values on ``{0, 1/k, ..., 1}^l``, the last axis fastest; a polynomial by the iterated Bernstein operator."""

    degree: int

    def count(self, axes: int) -> int:
        return int((self.degree + 1) ** axes)


@dataclass(frozen=True)
class Affine:
    """Coefficients of ``c_0 + sum_i c_i t_i``, ``t_i = 2 y_i - 1``."""

    def count(self, axes: int) -> int:
        return axes + 1


@dataclass(frozen=True, eq=False)
class Kernels:
    """``sum_i a_i K(y, p_i)``."""

    kernel: Kernel
    points: Array

    def count(self, axes: int) -> int:
        return len(self.points)


#: Of an axis: where its first node lies, in steps from the lower end; how many more nodes than steps; the spline's variance.
SPLINES = {"box": (0.5, 0, 1.0 / 12.0), "linear": (0.0, 1, 1.0 / 6.0), "quadratic": (-1.0, 3, 1.0 / 4.0)}


@dataclass(frozen=True, eq=False)
class Nodes:
    """A grid that records were shared among, by a spline; the last axis fastest."""

    spline: str
    steps: tuple[int, ...]

    def nodes(self) -> list[Array]:
        """The coordinates of the nodes along each axis."""
        first = SPLINES[self.spline][0]
        return [(np.arange(self.nodes_of(self.spline, steps)) + first) / steps for steps in self.steps]

    @staticmethod
    def nodes_of(spline: str, steps: int) -> int:
        """How many nodes an axis has."""
        return steps + SPLINES[spline][1]

    def count(self, axes: int) -> int:
        return math.prod(self.nodes_of(self.spline, steps) for steps in self.steps)

    @property
    def spline_variance(self) -> float:
        """In steps squared."""
        return SPLINES[self.spline][2]


@dataclass(frozen=True, eq=False)
class Cells(Nodes):
    """``sum_j c_j K(y, p_j)``, ``p_j`` the nodes; the noise is on the ``c_j``."""

    kernel: Gaussian

    def bandwidths(self) -> Array:
        """The standard deviation of the density's kernel along each axis of the unit cube."""
        of_kernel = np.diag(np.linalg.inv(self.kernel.precision))
        return np.asarray(np.sqrt(of_kernel + self.spline_variance / np.square(np.array(self.steps, dtype=np.float64))))

    def factors(self, points: Array) -> list[Array]:
        """Of a diagonal kernel between points and nodes: one matrix per axis, one row per point."""
        along = zip(np.diag(self.kernel.precision), points.T, self.nodes())
        return [np.exp(-p * np.square(y[:, None] - nodes) / 2.0) for p, y, nodes in along]


@dataclass(frozen=True)
class Moments:
    """``sum_x prod_i cos(m_i arccos t_i)``, ``0 <= m_i < frequencies``: not a function of a point."""

    frequencies: int

    def count(self, axes: int) -> int:
        return int(self.frequencies**axes)


@dataclass(frozen=True, eq=False)
class Tables(Nodes):
    """Counts of records on the nodes, one table after the other: what many functions can be read from."""

    #: The smallest that a reading may have, in units of the cube.
    bandwidths: Array
    tables: int

    def count(self, axes: int) -> int:
        return self.tables * super().count(axes)

    def narrowed(self, bandwidths: Array) -> Array:
        """The variance of the kernel along each axis, without what the spline has added already."""
        return np.asarray(np.square(bandwidths) - self.spline_variance / np.square(np.array(self.steps, dtype=np.float64)))


@dataclass(frozen=True)
class KeyColumn:
    """One number for each key."""

    statistic: str
    #: The scale of its noise, in units of that of the description.
    unit: float


@dataclass(frozen=True)
class ToldUnits:
    """Numbers of units by how many keys they have, before the cap on keys."""

    #: The least and the most keys of each bin.
    bins: tuple[tuple[int, int], ...]
    #: The scale of the noise of a number, in units of that of the description.
    unit: float


@dataclass(frozen=True)
class Keys:
    """A row for each key and a column for each statistic, one column after the other: not a function of a point."""

    keys: tuple[str, ...]
    columns: tuple[KeyColumn, ...]
    #: What follows the columns; None where caps are not told.
    told: Optional[ToldUnits] = None
    #: How the keys were found; None where they are listed.
    found: Optional[FoundKeys] = None

    @property
    def table(self) -> int:
        """The number of values of the columns."""
        return len(self.keys) * len(self.columns)

    def count(self, axes: int) -> int:
        return self.table + (0 if self.told is None else len(self.told.bins))

    def units(self) -> Array:
        """The unit of each value."""
        of_columns = np.repeat([column.unit for column in self.columns], len(self.keys))
        return of_columns if self.told is None else np.append(of_columns, [self.told.unit] * len(self.told.bins))


Basis = Union[Lattice, Affine, Kernels, Cells, Tables, Moments, Keys]
