"""A synopsis: a released function, with what can be derived from it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional, Union, overload

import numpy as np

from . import arrow, form_errors, noise, places, plot, readings, show
from .arrays import Array, Numbers
from .cell_readings import CellReadings, Estimate
from .density import Cumulative, Density, no_mass
from .document import Text, parse
from .errors import SynopsisError
from .figures import Integral
from .forms import Kernels, Keys
from .kernels import Newton
from .query import Answer, Function, answer, coefficients
from .readings import By
from .released import Released

if TYPE_CHECKING:
    from scipy.interpolate import BPoly


class Synopsis(Released, CellReadings):
    """A released function of the records of a window, callable with points in natural units.

    Everything here is post-processing of a release: it costs no privacy, however often it is used.

    >>> from bernstream import example
    >>> f = example()
    >>> f
    <Synopsis departure-delay of flights, key JFK, 2013-01-01T05:00:00Z to 2013-01-02T05:00:00Z, order 4>
    >>> f([0.0, 15.0, 60.0]).shape
    (3,)
    >>> [axis.column for axis in f.axes], f.price, f.level
    (['dep_delay'], 'epsilon 1', 0.95)
    >>> smooth = f.by("posterior")
    >>> bool(smooth.deviation(15.0) > 0.0)
    True
    >>> bool(abs(f.density()(0.0) * f.mass - f(0.0)) < 1e-9)
    True
    >>> len(f.sample(20, rng=1))
    20
    """

    @classmethod
    def from_json(cls, source: Text | Mapping[str, Any]) -> Synopsis:
        """Reads the JSON form: text, bytes, or what ``json.load`` made of it."""
        document = parse(source)
        values = document.pop("values", None)
        if not isinstance(values, list) or not all(type(value) in (int, float) for value in values):
            raise SynopsisError("not a synopsis: its values are not a list of numbers")
        return cls(document, values)

    @classmethod
    def from_arrow(cls, source: arrow.Bytes) -> Synopsis:
        """Reads the Arrow form: the value of a Kafka message, or the content of an ``.arrows`` file. Needs pyarrow."""
        return cls(*arrow.open_stream(source))

    def to_json(self) -> str:
        """The JSON form: every number with enough digits to round-trip."""
        return json.dumps({**self._document, "values": self._values.tolist()})

    def by(self, reading: By) -> Synopsis:
        """The synopsis by another reading: an order, or ``"nearest"``, ``"kernel"``, ``"posterior"``, ``"nonnegative"``."""
        other = self._like(self._values, readings.proper(reading))
        _ = other._function
        return other

    def predict(self, X: Any) -> Array:
        """As in scikit-learn: ``X`` has one row per point and one column per axis, or is a frame with the axes' columns.

        For a classifier or a probability, the class: 1 for a label above ``meta["target"][...]["above"]``, else 0; if the
        band of a score contains 0, it is too close to call. For cells with classes, the most probable one. For everything
        else, the value, as when called: for a density, records per unit.
        """
        if self._classes:
            return np.array([self._classes[table] for table in self._probable(X).argmax(axis=1)])
        values = self._rows(X)
        if self.kind == "classifier":
            return np.asarray(values > 0.0, dtype=np.int64)
        return np.asarray(values > 0.5, dtype=np.int64) if self.kind == "probability" else values

    def predict_proba(self, X: Any) -> Array:
        """The probabilities of the classes 0 and 1, or of the classes of cells, from 0 to 1, one row per point."""
        if self._classes:
            return self._probable(X)
        if self.kind != "probability":
            raise SynopsisError(f"a {self.kind} has no probabilities: only a target 'probability' and classes of cells have")
        above = self._rows(X)
        return np.stack([1.0 - above, above], axis=1)

    def decision_function(self, X: Any) -> Array:
        """A classifier's score, whose sign is the class."""
        if self.kind != "classifier":
            raise SynopsisError(f"a {self.kind} has no score: only a target 'classifier' has")
        return self._rows(X)

    def score_samples(self, X: Any) -> Array:
        """The logarithm of the proper density; minus infinity where noise pushed it below 0."""
        divisor = self.density(proper=True).divisor
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.maximum(self._rows(X), 0.0) / divisor))

    @property
    def mass(self) -> float:
        """The integral over the domain, for a density the noisy number of records; of a probability before it is clipped.

        As in the Rust evaluator: for kernels, posterior and nearest point by the midpoint rule, to about 1e-4.
        """
        return float(np.prod(self._about.widths)) * self._function.mean()

    def integrate(self, box: Optional[Any] = None) -> Integral:
        """The integral over a box ``[(low, high), ...]``, one interval per axis, or over the domain, with the noise in it.

        Exact except for correlated or polynomial kernels, which Gauss quadrature integrates to about 1e-12. It is printed as
        ``6991 ± 112``, which holds with the probability ``noise.level`` and covers the noise alone; where it is known what the
        form of a density adds to that, wherever the records are, ``form_error`` has it and it is printed beside.
        """
        ends = np.array([(a.min, a.max) for a in self.axes] if box is None else box, dtype=np.float64)
        if ends.shape == (2,) and len(self.axes) == 1:
            ends = ends[None, :]
        if ends.shape != (len(self.axes), 2):
            raise SynopsisError(f"a box of this synopsis has {len(self.axes)} intervals (low, high)")
        function = self._function
        low, high = (places.points(self.axes, tuple(end))[0][0] for end in ends.T)
        if np.any(low > high):
            raise SynopsisError("an interval of the box ends before it begins")
        volume, about = float(np.prod(self._about.widths)), self._about
        weights = readings.integral_weights(function, about, self._by, low, high)
        error = None if weights is None else noise.of_sum(about.noise.law, about.noise.scale, volume * weights)
        form = None
        if weights is not None and about.form_error is not None:
            form = self._of_sum(volume * form_errors.of_integral(about, low, high, weights))
        return Integral(volume * function.integral(low, high), error, form)

    @overload
    def density(self, *, proper: bool = False) -> Density: ...

    @overload
    def density(self, first: Numbers, /, *rest: Numbers, bandwidths: Optional[Numbers] = None) -> Estimate: ...

    def density(
        self, *coordinates: Numbers, proper: bool = False, bandwidths: Optional[Numbers] = None
    ) -> Union[Density, Estimate]:
        """A density instead of records per unit: divided by the public number of records, or by the released mass.

        With ``proper`` it is clipped at 0 and divided by the remaining mass. With points, of cells only: records per unit
        of the axes there with their intervals, by any bandwidths that are not below the smallest.
        """
        if coordinates:
            return self._density_at(*coordinates, bandwidths=bandwidths)
        self._is_density()
        divide_by = self._about.target.get("divide_by")
        if proper:
            clipped = np.maximum(self._function.values(readings.midpoints(len(self.axes))), 0.0).mean()
            divisor = float(np.prod(self._about.widths) * clipped)
        else:
            divisor = float(divide_by) if divide_by is not None else self.mass
        if not divisor > 0.0:
            raise no_mass(divisor)
        return Density(self, divisor, proper)

    def cumulative(self) -> Cumulative:
        """The fraction of the mass at or below a point, nondecreasing from 0 to 1: for a density on one axis."""
        self._is_density()
        return Cumulative(self)

    def sample(self, n: int, rng: Union[int, np.random.Generator, None] = None) -> list[Synopsis]:
        """``n`` plausible synopses: the values minus simulated noise from the known distribution.

        They show how much of a curve may be noise; they are not more data, and have no valid band. Found keys have none.
        """
        about, count = self._about, len(self._values)
        if isinstance(about.basis, Keys) and about.basis.found is not None:
            raise SynopsisError("its keys were found by their noise: other noise would have found others")
        drawn = about.noise.scale * noise.draw(about.noise.law, count, n, np.random.default_rng(rng))
        if isinstance(about.basis, Kernels):
            # The noise is on the coordinates in Newton's basis.
            drawn = Newton.on(about.basis.kernel, about.basis.points).coefficients(drawn.T).T
        if isinstance(about.basis, Keys):
            drawn = drawn * about.basis.units()
        return [self._like(self._values - one, self._by) for one in drawn]

    def query(self, function: Function) -> Answer:
        """The sum of a function over the records, and its mean, each with noise and truncation error; for moments only.

        ``function`` takes one array per axis, in natural units, and broadcasts as in numpy: ``lambda x: np.exp(-x**2)``.
        """
        return answer(self._about, self._values, function)

    def weights(self, function: Function) -> Array:
        """The coefficients of a query: its answer is the sum of their products with :attr:`values`."""
        return coefficients(self._about, function)

    def plot(self, ax: Optional[Any] = None) -> Any:
        """The curve with its band, or a map, on axes of Matplotlib, which are returned. Needs Matplotlib."""
        return plot.draw(self, ax)

    def to_bpoly(self) -> BPoly:
        """The polynomial as a ``scipy.interpolate.BPoly``: for a lattice on one axis, read by an order. Needs SciPy."""
        if not isinstance(self._function, readings.Polynomial) or len(self.axes) != 1:
            raise SynopsisError("only a lattice on one axis, read by an order, can become a SciPy polynomial")
        from scipy.interpolate import BPoly

        return BPoly(self._function.coefficients[:, None], [self.axes[0].min, self.axes[0].max])

    def _like(self, values: Array, by: By) -> Synopsis:
        """A synopsis with the same, already checked description."""
        other = object.__new__(Synopsis)
        other._document, other._about, other._values, other._by = self._document, self._about, values, by
        values.flags.writeable = False
        return other

    def _is_density(self) -> None:
        if self.kind == "cells" and self._about.label is not None:
            raise SynopsisError("its function is not the density: give density() points, or ask for quantile()")
        if self.kind not in ("density", "cells"):
            raise SynopsisError(f"this synopsis is no density but a {self.kind}")

    @property
    def _classes(self) -> tuple[Any, ...]:
        """The classes of cells; none of everything else."""
        return () if self._about.label is None else self._about.label.classes

    def _probable(self, X: Any) -> Array:
        return np.asarray(self.probabilities(*self._points_of(X).T).value)

    def _rows(self, X: Any) -> Array:
        return np.asarray(self(*self._points_of(X).T))

    def _points_of(self, X: Any) -> Array:
        columns = [axis.column for axis in self.axes]
        if hasattr(X, "columns") and set(columns) <= set(X.columns):
            X = np.stack([np.asarray(X[column], dtype=np.float64) for column in columns], axis=1)
        rows = np.asarray(X, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != len(columns):
            raise SynopsisError(
                f"X needs one row per point and {len(columns)} columns, {', '.join(columns)}; its shape is {rows.shape}"
            )
        return rows

    def __reduce__(self) -> tuple[Any, ...]:
        return Synopsis, (self._document, self._values, self._by)

    def __repr__(self) -> str:
        return show.line(self)

    def _repr_html_(self) -> str:
        return show.html(self)


def read(path: Union[str, os.PathLike[str]]) -> Synopsis:
    """A synopsis from a file, Arrow or JSON."""
    content = Path(path).read_bytes()
    return Synopsis.from_arrow(content) if content[:4] == b"\xff" * 4 else Synopsis.from_json(content)


def example(of: str = "density") -> Synopsis:
    """A synopsis for experiments: departure delays at one airport on one day of 2013, released with epsilon = 1.

    ``"cells"`` are noisy counts of simulated delays, with the arrival delay as their label, from which much can be read.
    ``"keys"`` are noisy counts of the users of a simulated shop, and of what they pay, in each of a few countries.
    """
    files = {"density": "example.json", "cells": "example-cells.json", "keys": "example-keys.json"}
    if of not in files:
        raise SynopsisError(f"there is no example of {of!r}, but of 'density', of 'cells' and of 'keys'")
    return read(Path(__file__).with_name(files[of]))
