"""What to ask a synopsis of cells: densities, shares, means, classes and quantiles, each with its interval."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple, Optional

import numpy as np

from .arrays import Array, Bounds, Numbers
from .description import Description
from .errors import SynopsisError
from .label import Label
from .places import points, ranges, shaped
from .sums import Sums
from .tables import Readings

#: Bandwidths in natural units may be beyond the smallest and the largest by this part of them: they are rounded.
_ROUNDING = 1e-9


class Estimate(NamedTuple):
    """A value, and the intervals that hold what it would be without noise; NaN is unknown.

    They cover the noise, not how far cells blur the records, and not what caps leave out.
    """

    value: Any
    #: For this place or key alone, with 95 % probability.
    pointwise: Bounds
    #: For all points and all bandwidths at once, with the level of the band; None of ranges, quantiles and keys.
    simultaneous: Optional[Bounds] = None


class CellReadings:
    """The methods of a synopsis with the target ``cells``. Bandwidths are one number per axis, in natural units."""

    _about: Description
    _values: Array

    def _density_at(self, *coordinates: Numbers, bandwidths: Optional[Numbers] = None) -> Estimate:
        """Records per unit of the axes at points, by any bandwidth not below the smallest."""
        at, shape = points(self._about.axes, coordinates)
        value, length = (part / self._volume for part in self._tables.density(at, self._bandwidths(bandwidths)))
        bands = (
            Bounds(shaped(value - q * length, shape), shaped(value + q * length, shape))
            for q in (self._tables.pointwise, self._tables.simultaneous)
        )
        return Estimate(shaped(value, shape), *bands)

    def expected(self, *coordinates: Numbers, bandwidths: Optional[Numbers] = None, degree: str = "linear") -> Estimate:
        """The expected label at points: a regression, local linear or local constant. Of a number only.

        Where the noise is large beside the records it is drawn to the mean of all, as much as the noise asks for.
        """
        low, high = self._number("no expected label")
        self._fits(degree)
        at, shape = points(self._about.axes, coordinates)
        found = self._probability(self._tables.around(at, self._bandwidths(bandwidths), degree), 1, shape, at_points=True)
        return _mapped(found, low, high - low)

    def probabilities(self, *coordinates: Numbers, bandwidths: Optional[Numbers] = None, degree: str = "constant") -> Estimate:
        """The probability of each class at points, along one more axis: of ``above`` first not above, then above.

        They add up to 1. Of a number they are the parts of the label in the first and the second table. With the degree
        ``"naive"`` they are those of naive Bayes, each axis for itself: for several axes and few records, of classes only.
        """
        self._labelled("no probabilities")
        self._fits(degree)
        at, shape = points(self._about.axes, coordinates)
        return self._all(self._tables.around(at, self._bandwidths(bandwidths), degree), shape, at_points=True)

    def classify(
        self,
        *coordinates: Numbers,
        bandwidths: Optional[Numbers] = None,
        degree: str = "constant",
        simultaneous: bool = False,
    ) -> Any:
        """The most probable class at points; None where the noise makes it too close to call. 1 and 0 of ``above``.

        For each point alone, or with ``simultaneous`` for all of them at once. :meth:`predict` always has a class.
        """
        classes = self._of_classes("no classes")
        self._fits(degree)
        at, shape = points(self._about.axes, coordinates)
        sums = self._tables.around(at, self._bandwidths(bandwidths), degree)
        found, close = self._tables.classes(sums, self._tables.simultaneous if simultaneous else self._tables.pointwise)
        named = np.empty(len(found), dtype=object)
        named[:] = [None if unsure else classes[table] for table, unsure in zip(found.tolist(), close.tolist())]
        return named[0] if shape == () else named.reshape(shape)

    def density_ratio(self, *coordinates: Numbers, of: Any, over: Any, bandwidths: Optional[Numbers] = None) -> Estimate:
        """The density of the records of class ``of`` at points over that of class ``over``.

        Each is divided by the number of its records: above 1 a record is likelier to be ``of`` than the shares of the classes
        alone say. NaN where there may be no records to divide by.
        """
        classes = self._of_classes("no ratios of densities")
        for one in (of, over):
            if one not in classes:
                raise SynopsisError(f"there is no class {one!r}: its classes are {', '.join(map(repr, classes))}")
        if of == over:
            raise SynopsisError("a ratio of densities is one of two classes, not of a class and itself")
        at, shape = points(self._about.axes, coordinates)
        factors = (self._tables.pointwise, self._tables.simultaneous)
        tables = classes.index(of), classes.index(over)
        value, found = self._tables.density_ratio(at, self._bandwidths(bandwidths), *tables, factors)
        return Estimate(shaped(value, shape), *(Bounds(*(shaped(end, shape) for end in ends)) for ends in found))

    def count(self, *ends: Optional[Numbers]) -> Estimate:
        """How many records are in a range: a pair ``(low, high)`` per axis or arrays of pairs; without one, in all.

        Cells that a range covers in part count in part, so its ends are blurred by a step.
        """
        boxes, shape = ranges(self._about.axes, ends)
        sums = self._tables.within(boxes)
        value, width = sums.total, self._tables.pointwise * sums.length
        return Estimate(shaped(value, shape), Bounds(shaped(value - width, shape), shaped(value + width, shape)))

    def share(self, *ends: Optional[Numbers]) -> Estimate:
        """The share of all records that is in a range; its interval is unknown if there may be no records."""
        boxes, shape = ranges(self._about.axes, ends)
        value, interval = self._tables.share(boxes)
        return Estimate(shaped(value, shape), Bounds(*(shaped(end, shape) for end in interval)))

    def mean(self, *ends: Optional[Numbers]) -> Estimate:
        """The expected label of the records in a range, of a number only."""
        low, high = self._number("no mean")
        boxes, shape = ranges(self._about.axes, ends)
        return _mapped(self._probability(self._tables.within(boxes), 1, shape), low, high - low)

    def proportions(self, *ends: Optional[Numbers]) -> Estimate:
        """The probability of each class among the records in a range, along one more axis."""
        self._labelled("no proportions")
        boxes, shape = ranges(self._about.axes, ends)
        return self._all(self._tables.within(boxes), shape)

    def quantile(self, part: Numbers) -> Estimate:
        """Below which so many of the records are, on one axis: ``quantile(0.9)``, ``quantile([0.25, 0.75])``."""
        given = np.asarray(part, dtype=np.float64)
        if not np.all((given >= 0.0) & (given <= 1.0)):
            raise SynopsisError("the part of a quantile is from 0 to 1")
        value, interval = self._tables.quantiles(given.ravel())
        axis = self._about.axes[0]
        unit = Estimate(shaped(value, given.shape), Bounds(*(shaped(end, given.shape) for end in interval)))
        return _mapped(unit, axis.min, axis.max - axis.min)

    def median(self) -> Estimate:
        """Half of the records are below it; on one axis."""
        return self.quantile(0.5)

    @cached_property
    def _tables(self) -> Readings:
        return Readings(self._about, self._values)

    @property
    def _volume(self) -> float:
        return float(np.prod(self._about.widths))

    def _bandwidths(self, given: Optional[Numbers]) -> Array:
        """In units of the cube."""
        smallest = self._tables.basis.bandwidths
        if given is None:
            return smallest
        found = np.atleast_1d(np.asarray(given, dtype=np.float64)) / self._about.widths
        if found.shape != smallest.shape or not np.all(found <= 1.0 + _ROUNDING):
            raise SynopsisError(f"bandwidths are {len(smallest)} numbers, one per axis, that do not exceed the domain")
        if not np.all(found >= smallest * (1.0 - _ROUNDING)):
            least = ", ".join(f"{b:.6g}" for b in smallest * self._about.widths)
            raise SynopsisError(f"the cells are too coarse for such bandwidths: the smallest are {least}")
        return np.asarray(found)

    def _labelled(self, what: str) -> Label:
        readings = self._tables  # Of other targets it says what they are.
        if self._about.label is None or readings.count < 2:
            raise SynopsisError(f"these cells have no label, and so {what}")
        return self._about.label

    def _of_classes(self, what: str) -> tuple[Any, ...]:
        classes = self._labelled(what).classes
        if not classes:
            raise SynopsisError(f"its label is a number, which has {what}: ask for expected()")
        return classes

    def _fits(self, degree: str) -> None:
        if degree == "naive":
            self._of_classes("no naive Bayes")

    def _number(self, what: str) -> tuple[float, float]:
        label = self._labelled(what)
        if label.range is None:
            raise SynopsisError(f"its label is a class, which has {what}: ask for probabilities() or proportions()")
        return label.range

    def _probability(self, sums: Sums, table: int, shape: tuple[int, ...], at_points: bool = False) -> Estimate:
        value = shaped(self._tables.probabilities(sums)[:, table], shape)
        factors = (self._tables.pointwise, self._tables.simultaneous)[: 2 if at_points else 1]
        intervals = (self._tables.interval(sums, table, q) for q in factors)
        return Estimate(value, *(Bounds(*(shaped(end, shape) for end in ends)) for ends in intervals))

    def _all(self, sums: Sums, shape: tuple[int, ...], at_points: bool = False) -> Estimate:
        """The probabilities of all tables along one more axis."""
        each = [self._probability(sums, table, shape, at_points) for table in range(self._tables.count)]

        def joined(bounds: list[Bounds]) -> Bounds:
            return Bounds(*(np.stack(ends, axis=-1) for ends in zip(*bounds)))

        wide = joined([one.simultaneous for one in each if one.simultaneous is not None]) if at_points else None
        return Estimate(np.stack([one.value for one in each], axis=-1), joined([one.pointwise for one in each]), wide)


def _mapped(found: Estimate, low: float, width: float) -> Estimate:
    """From 0 to 1 to natural units."""

    def mapped(ends: Bounds) -> Bounds:
        return Bounds(low + width * ends.lower, low + width * ends.upper)

    wide = None if found.simultaneous is None else mapped(found.simultaneous)
    return Estimate(low + width * found.value, mapped(found.pointwise), wide)
