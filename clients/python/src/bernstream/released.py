"""A released function: its description, its noisy values, and what it is at points with its bands."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from functools import cached_property
from typing import Any, Optional

import numpy as np

from . import bands, places, readings
from .arrays import Array, Bounds, Numbers
from .description import Axis, check
from .document import freeze, parse
from .errors import SynopsisError
from .forms import Keys
from .found_keys import check_numbers
from .key_table import KeyTable
from .readings import By

#: The 97.5 % quantile of the normal distribution, as in the Rust evaluator.
_NORMAL = 1.96


class Released:
    """What a synopsis is before anything is derived from it, drawn or printed."""

    def __init__(self, document: Mapping[str, Any], values: Any, by: Optional[By] = None) -> None:
        """Use :meth:`from_json`, :meth:`from_arrow` or :func:`read`."""
        document = parse(document)
        document.pop("values", None)
        self._document, self._about = document, check(document)
        try:
            self._values = np.array(values, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            raise SynopsisError("not a synopsis: its values are not numbers") from None
        expected = self._about.basis.count(len(self._about.axes))
        if self._values.shape != (expected,):
            found = self._values.size
            raise SynopsisError(f"not a synopsis: it has {found} values, its description asks for {expected}")
        if not np.all(np.isfinite(self._values)):
            raise SynopsisError("not a synopsis: a lattice value is not a number")
        if isinstance(basis := self._about.basis, Keys) and basis.found is not None:
            check_numbers(basis.found, self._values, self._about.window[1])
        self._values.flags.writeable = False
        self._by = self._about.order if by is None else readings.proper(by)

    @cached_property
    def meta(self) -> Mapping[str, Any]:
        """The whole description, read-only."""
        found: Mapping[str, Any] = freeze(self._document)
        return found

    @property
    def values(self) -> Array:
        """The released noisy values, read-only: a lattice in row-major order, the last axis fastest; a table by column."""
        return self._values

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The axes of the domain: ``column``, ``min`` and ``max`` in natural units."""
        return self._about.axes

    @property
    def kind(self) -> str:
        """``density``, ``regression``, ``classifier``, ``probability``, ``sum``, ``moments``, ``cells`` or ``counts``."""
        return self._about.kind

    @property
    def release(self) -> str:
        """The name of the release in the configuration."""
        return str(self._document["release"])

    @property
    def key(self) -> Optional[str]:
        """The released group; None if the release has no groups."""
        return self._about.key

    @property
    def window(self) -> tuple[datetime, datetime]:
        """The window in event time, start included, end excluded."""
        return self._about.window

    @property
    def meaning(self) -> str:
        """What a value means, in words."""
        return str(self._document["meaning"])

    @property
    def in_words(self) -> str:
        """The guarantee in words: who is protected, against what, and by how much."""
        return str(self._document["privacy"]["in_words"])

    @property
    def price(self) -> str:
        """The price of this window, such as ``epsilon 0.5``."""
        found = self._document["privacy"]["price"]
        if not isinstance(found, Mapping):
            return f"epsilon {found}"
        return ", ".join(f"{name} {value}" for name, value in found.items())

    @property
    def unit(self) -> str:
        """Whose privacy is protected: ``record``, or ``user (column)``."""
        found = self._document["privacy"]["unit"]
        if not isinstance(found, Mapping):
            return str(found)
        user = found.get("user", {})
        return f"user ({user.get('column')}, per {user.get('per')})"

    @property
    def level(self) -> float:
        """The probability with which the band holds."""
        return self._about.band.level

    @property
    def reading(self) -> By:
        """How the values are read: the order of the Bernstein operator, or the name of another reading."""
        return self._by

    @property
    def recommended(self) -> By:
        """The reading that is expected to be the most accurate; the simultaneous band belongs to the default one."""
        found: Optional[str] = self._document.get("reading")
        return self._about.order if found is None else found

    def __call__(self, *coordinates: Numbers, by: Optional[By] = None) -> Any:
        """The function at points in natural units: one argument per axis, which broadcast as in numpy.

        A probability is clipped to 0 to 1, as are the ends of its bands.
        """
        function = self._function if by is None else readings.read(self._about, self._values, readings.proper(by))
        points, shape = places.points(self.axes, coordinates)
        return places.shaped(self._possible(function.values(points)), shape)

    def band(self, *coordinates: Numbers, pointwise: bool = False) -> Bounds:
        """Lower and upper bounds: they cover the noise, not the approximation error, with probability :attr:`level`.

        At all points simultaneously; with ``pointwise`` at a single point, which is narrower. ``"posterior"`` has only
        pointwise bounds; they cover the function itself with 95 % probability if it is as smooth as its kernel. Those of an
        expected label or a probability of cells are all that it can be where the noise leaves it unknown.
        """
        points, shape = places.points(self.axes, coordinates)
        if isinstance(self._function, readings.OfTables):
            return Bounds(*(places.shaped(end, shape) for end in self._function.bounds(points, pointwise)))
        values, half_widths = self._function.values(points), self._half_widths(points, pointwise)
        ends = values - half_widths, values + half_widths
        return Bounds(*(places.shaped(self._possible(end), shape) for end in ends))

    def half_width(self, *coordinates: Numbers, pointwise: bool = False) -> Any:
        """The half-width of :meth:`band`, or the distance of its further end; the width of the label's range if unknown."""
        points, shape = places.points(self.axes, coordinates)
        return places.shaped(self._half_widths(points, pointwise), shape)

    def key_table(self) -> KeyTable:
        """Users, records, sums, means, variances or quantiles of each key, of a synopsis with the target ``counts``."""
        return KeyTable(self._about, self._values)

    @property
    def form_error(self) -> Optional[float]:
        """How far the exact values' function is from the density itself, everywhere and whatever the records are.

        Add it to a half-width of :meth:`band`: with the simultaneous one it holds in at least 9 of 10 windows. It is of the
        published reading at its own order; None of any other, and where it is not known.
        """
        return None if self._about.form_error is None else self._of_sum(self._about.form_error)

    def _of_sum(self, part: float) -> Optional[float]:
        """A part of the sum of the exact values, at most; None where nothing is known of this reading's form."""
        pointwise = self._about.band.pointwise
        if pointwise is None or self._by != self._about.order:
            return None
        return float(part * max(0.0, self._values.sum() + pointwise * math.sqrt(len(self._values))))

    def deviation(self, *coordinates: Numbers) -> Any:
        """The standard deviation of the noise at points; for ``"posterior"``, of noise and approximation together."""
        points, shape = places.points(self.axes, coordinates)
        if (posterior := readings.deviations(self._function)) is not None:
            return places.shaped(posterior(points), shape)
        return places.shaped(self._pointwise.deviation * self._pointwise.lengths(points), shape)

    @cached_property
    def _function(self) -> readings.Reading:
        return readings.read(self._about, self._values, self._by)

    @cached_property
    def _pointwise(self) -> bands.Pointwise:
        return bands.Pointwise(self._about, self._by)

    def _half_widths(self, points: Array, pointwise: bool) -> Array:
        if isinstance(self._function, readings.OfTables):
            return self._function.half_widths(points, pointwise)
        if not pointwise:
            return bands.simultaneous(self._about, self._by, points)
        if (posterior := readings.deviations(self._function)) is not None:
            return _NORMAL * posterior(points)
        return self._pointwise.factor * self._pointwise.lengths(points)

    def _possible(self, values: Array) -> Array:
        """The values that the function can have: noise moves a probability outside 0 to 1."""
        return np.clip(values, 0.0, 1.0) if self.kind == "probability" else values
