"""The description of a synopsis: checked, because it may come from an untrusted source."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Optional

import numpy as np

from . import noise
from .arrays import Array
from .bernstein import MAX_DEGREE, MAX_ORDER
from .errors import SynopsisError
from .fields import Fields
from .forms import SPLINES, Affine, Basis, Cells, Kernels, Keys, Lattice, Moments, Tables
from .found_keys import check_found
from .kernels import Gaussian, Kernel, Laplacian, Polynomial, backward, cholesky, forward
from .keys import INDEPENDENT, Counted, counted_of, key_columns_of, keys_of
from .label import MOST_CLASSES, Label, label_of

#: The version of the format that this package reads.
FORMAT = 1
#: The most cosines per axis, on one to three axes.
MOST_FREQUENCIES = (1024, 258, 19)
#: The most cells of a release.
MOST_CELLS = 65_536
_SUM, _MOMENTS, _CELLS, _COUNTS = "sum", "moments", "cells", "counts"


@dataclass(frozen=True)
class Axis:
    """One axis of the domain, in natural units."""

    column: str
    min: float
    max: float


@dataclass(frozen=True)
class Noise:
    law: str
    scale: float


@dataclass(frozen=True, eq=False)
class Band:
    level: float
    half_width: float
    weights: Array
    pointwise: Optional[float]


@dataclass(frozen=True, eq=False)
class Description:
    """The checked part of a description that evaluation needs."""

    axes: tuple[Axis, ...]
    basis: Basis
    offset: float
    order: int
    noise: Noise
    band: Band
    #: ``density``, ``regression``, ``classifier``, ``probability``, ``sum``, ``moments``, ``cells`` or ``counts``.
    kind: str
    target: Mapping[str, Any]
    #: What divides the records of cells among tables, if anything does.
    label: Optional[Label]
    #: By what rules users and records count for a key, if they do.
    counted: Optional[Counted]
    #: How far the form is from the density at most, as a part of the sum of the exact values.
    form_error: Optional[float]
    #: The kernel of the posterior, if the description names one.
    prior: Optional[Kernel]
    window: tuple[datetime, datetime]
    #: Whether it is a sum of windows that each have noise and caps of their own.
    is_running_sum: bool
    key: Optional[str]
    #: The columns that a key has a part of each of; none where keys are one column.
    key_columns: tuple[str, ...]

    @property
    def low(self) -> Array:
        return np.array([axis.min for axis in self.axes])

    @property
    def widths(self) -> Array:
        return np.array([axis.max - axis.min for axis in self.axes])


def check(document: Mapping[str, Any]) -> Description:
    """The part of a description that evaluation needs. Raises an error that says what is invalid."""
    fields = Fields(document)
    if (found := fields.any("format")) != FORMAT or type(found) is not int:
        raise SynopsisError(f"not a synopsis: it has format {found!r}, this package reads format {FORMAT}")
    axes = tuple(_axis(Fields(axis, "domain.")) for axis in fields.list("domain"))
    least, most = (0, 0) if fields.variant("basis")[0] == "keys" else (1, 3)
    if not least <= len(axes) <= most:
        raise SynopsisError(f"not a synopsis: it has {len(axes)} axes, not {least} to {most}")
    degree, order = fields.whole("degree", 1, MAX_DEGREE), fields.whole("order", 1, MAX_ORDER)
    basis = _basis(fields, degree, len(axes))
    if not isinstance(basis, Lattice) and (degree, order) != (1, 1):
        raise SynopsisError("not a synopsis: what has no lattice has degree 1 and order 1")
    kind, target = fields.variant("target")
    if kind not in ("density", "regression", "classifier", "probability", _SUM, _MOMENTS, _CELLS, _COUNTS):
        raise fields.wrong("target", f"is a '{kind}', which this package does not know")
    about = Fields(target, f"target.{kind}.")
    label = label_of(about) if kind == _CELLS else None
    if isinstance(basis, Tables) != (kind == _CELLS) or (
        isinstance(basis, Tables) and basis.tables != (1 if label is None else label.tables)
    ):
        raise SynopsisError("not a synopsis: its tables of cells and its target do not fit")
    if isinstance(basis, Keys) != (kind == _COUNTS):
        raise SynopsisError("not a synopsis: a table by key and its target do not fit")
    counted = counted_of(about, basis) if isinstance(basis, Keys) else None
    _words(fields)
    if document.get("smoothness") is not None:
        _smoothness(fields, basis, len(axes))
    band = _band(fields.object("band"))
    form_error = _form_error(fields, kind, basis, band) if document.get("form_error") is not None else None
    if (reading := document.get("reading")) is not None and (reading != "nonnegative" or not isinstance(basis, Cells)):
        raise fields.wrong("reading", f"is {reading!r}, which this package does not know for such values")
    span = fields.object("window")
    _privacy(fields)
    key = fields.text("key") if fields.found.get("key") is not None else None
    drawn = _noise(fields.object("noise"))
    if isinstance(basis, Keys) and (key is not None or drawn.law not in INDEPENDENT):
        raise SynopsisError("not a synopsis: a table by key is of all keys, with independent noise")
    if isinstance(basis, Keys) and basis.found is not None and counted is not None:
        check_found(fields, basis.found, {column.statistic: column.unit for column in basis.columns}, counted.max_keys)
    return Description(
        axes=axes,
        basis=basis,
        offset=fields.number("offset") if "offset" in document else 0.0,
        order=order,
        noise=drawn,
        band=band,
        kind=kind,
        target=about.found,
        label=label,
        counted=counted,
        form_error=form_error,
        prior=_prior(kind, about, axes),
        window=(span.time("start"), span.time("end")),
        is_running_sum=isinstance(panes := document.get("panes"), Mapping) and panes.get("step") is not None,
        key=key,
        key_columns=key_columns_of(fields, basis),
    )


def _words(fields: Fields) -> None:
    """Checks the texts that people are shown."""
    for name in ("pipeline", "release", "meaning"):
        fields.text(name)
    fields.time("published")
    if fields.found.get("grid_end") is not None:
        fields.time("grid_end")
    if not all(isinstance(line, str) for line in fields.list("not_protected")):
        raise fields.wrong("not_protected", "has something that is not a text")
    fields.flag("synthetic")
    entry = fields.object("ledger")
    entry.text("id")
    entry.whole("sequence", 0, 2**64 - 1)
    digests = fields.object("digests")
    digests.text("configuration")
    digests.text("program")


def _axis(axis: Fields) -> Axis:
    column, low, high = axis.text("column"), axis.number("min"), axis.number("max")
    if not (math.isfinite(high - low) and high > low):
        raise SynopsisError(f"not a synopsis: axis '{column}' has no proper domain")
    return Axis(column, low, high)


def _basis(fields: Fields, degree: int, axes: int) -> Basis:
    name, content = fields.variant("basis")
    if (name, content) == ("bernstein", None):
        return Lattice(degree)
    if (name, content) == ("affine", None):
        return Affine()
    if name == "cosine":
        return Moments(Fields(content, "basis.cosine.").whole("frequencies", 1, MOST_FREQUENCIES[axes - 1]))
    if name == "kernel":
        form = Fields(content, "basis.kernel.")
        points = form.matrix("points", axes)
        if not np.all((points >= 0.0) & (points <= 1.0)):
            raise SynopsisError("not a synopsis: its kernel points do not lie in the domain")
        return Kernels(_point_kernel(form, axes), points)
    if name == "cells":
        return _cells(Fields(content, "basis.cells."), axes)
    if name == "keys":
        return keys_of(Fields(content, "basis.keys."))
    if name == "tables":
        return _tables(Fields(content, "basis.tables."), axes)
    raise fields.wrong("basis", f"is '{name}', which this package does not know")


def _cells(form: Fields, axes: int) -> Cells:
    precision = form.matrix("precision", axes)
    if len(precision) != axes or not _is_definite(precision):
        raise SynopsisError(f"not a synopsis: the matrix that reads its cells is not a positive definite one of {axes} rows")
    cells = Cells(*_grid(form, axes), Gaussian(precision))
    if cells.count(axes) > MOST_CELLS:
        raise form.wrong("steps", f"make more than {MOST_CELLS} cells")
    return cells


def _tables(form: Fields, axes: int) -> Tables:
    bandwidths = form.numbers("bandwidths")
    if len(bandwidths) != axes or not np.all((bandwidths > 0.0) & (bandwidths <= 1.0)):
        raise form.wrong("bandwidths", f"are not {axes} numbers above 0 and at most 1")
    tables = Tables(*_grid(form, axes), bandwidths, form.whole("tables", 1, MOST_CLASSES))
    if tables.count(axes) > MOST_CELLS:
        raise form.wrong("steps", f"make more than {MOST_CELLS} values")
    if not np.all(tables.narrowed(bandwidths) > 0.0):
        raise form.wrong("bandwidths", "are less than what the spline blurs")
    return tables


def _grid(form: Fields, axes: int) -> tuple[str, tuple[int, ...]]:
    """The spline, and the steps of each axis."""
    if (spline := form.text("spline")) not in SPLINES:
        raise form.wrong("spline", f"is '{spline}', which this package does not know")
    steps = tuple(Fields({"steps": m}, form.place).whole("steps", 1, MOST_CELLS) for m in form.list("steps"))
    if len(steps) != axes:
        raise form.wrong("steps", "are not one number per axis")
    return spline, steps


def _is_definite(matrix: Array) -> bool:
    try:
        np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return False
    return True


def _point_kernel(form: Fields, axes: int) -> Kernel:
    name, content = form.variant("kernel")
    if name == "gaussian":
        precision = Fields(content, f"{form.place}kernel.gaussian.").matrix("precision", axes)
        if len(precision) != axes or not np.all(np.diag(precision) > 0.0):
            raise SynopsisError(f"not a synopsis: the matrix of its kernel does not have {axes} proper rows and columns")
        return Gaussian(precision)
    if name == "machine":
        return _machine(Fields({"machine": content}, f"{form.place}kernel."), "machine", axes)
    raise form.wrong("kernel", f"is '{name}', which this package does not know")


def _machine(form: Fields, at: str, axes: int) -> Kernel:
    name, content = form.variant(at)
    inner = f"{form.place}{at}.{name}."
    if name == "gaussian":
        return Gaussian(np.eye(axes) / Fields(content, inner).positive("bandwidth") ** 2)
    if name == "laplacian":
        return Laplacian(Fields(content, inner).positive("bandwidth"))
    if name == "polynomial":
        return Polynomial(Fields(content, inner).whole("power", 1, 20))
    if (name, content) == ("linear", None):
        return Polynomial(1)
    raise form.wrong(at, f"is '{name}', which this package does not know")


def _noise(about: Fields) -> Noise:
    if (law := about.text("law")) not in noise.LAWS:
        raise about.wrong("law", f"is '{law}', which this package does not know")
    about.positive("grid")
    return Noise(law, about.positive("scale"))


def _band(about: Fields) -> Band:
    weights = about.numbers("weights")
    if not 1 <= len(weights) <= MAX_DEGREE + 1 or not np.all(weights > 0.0):
        raise about.wrong("weights", f"are not 1 to {MAX_DEGREE + 1} positive numbers")
    pointwise = about.positive("pointwise") if about.found.get("pointwise") is not None else None
    about.whole("draws", 0, 2**32 - 1)
    if about.text("covers") != "the noise, not the approximation":
        raise about.wrong("covers", "is not what this package knows")
    return Band(about.number("level"), about.positive("half_width"), weights, pointwise)


def _smoothness(fields: Fields, basis: Basis, axes: int) -> None:
    name, content = fields.variant("smoothness")
    of = Fields({name: content}, "smoothness.")
    if name in ("lipschitz", "curvature") and isinstance(basis, Lattice):
        bounds = of.numbers(name)
        if len(bounds) == axes and np.all(bounds > 0.0):
            return
    elif name == "norm" and isinstance(basis, Kernels) and of.number(name) > 0.0:
        return
    raise SynopsisError("not a synopsis: the smoothness that it declares does not fit its form")


def _form_error(fields: Fields, kind: str, basis: Basis, band: Band) -> float:
    if kind != "density" or not isinstance(basis, (Lattice, Cells)) or band.pointwise is None:
        raise SynopsisError("not a synopsis: the error of its form does not fit its form")
    return fields.positive("form_error")


def _privacy(fields: Fields) -> None:
    """Every price is of the kind that belongs to the definition."""
    privacy = fields.object("privacy")
    privacy.text("in_words")
    privacy.text("adjacency")
    privacy.variant("unit")
    definition, content = privacy.variant("definition")
    keys: dict[str, set[str]] = {
        "pure epsilon": set(),
        "random": set(),
        "epsilon-delta": {"epsilon", "delta"},
        "zero-concentrated": {"rho"},
        "gaussian": {"rho"},
        "declared plan": {"slots"},
    }
    if definition not in keys:
        raise privacy.wrong("definition", f"is '{definition}', which this package does not know")
    if definition == "random" and not 0.0 < Fields(content, "privacy.definition.random.").number("gamma") < 1.0:
        raise SynopsisError("not a synopsis: its gamma is not between 0 and 1")
    if (fields.object("noise").found.get("calibrated") == "sampled") != (definition == "random"):
        raise SynopsisError("not a synopsis: its noise and its definition of privacy do not fit")
    if definition == "declared plan" and privacy.found.get("implies") is None:
        raise SynopsisError("not a synopsis: it does not say what epsilon and delta its plan has")
    blocks = [Fields(block, "privacy.blocks.") for block in privacy.list("blocks")]
    for price in [privacy.any("price"), *(block.any(name) for block in blocks for name in ("spent", "total"))]:
        written = set(price) if isinstance(price, Mapping) else set()
        if written != keys[definition] or not isinstance(price, (Mapping, str)) or isinstance(price, str) == bool(written):
            raise SynopsisError("not a synopsis: its prices are not those of its definition of privacy")
    for block in blocks:
        block.time("start")
        block.time("end")


def _prior(kind: str, about: Fields, axes: tuple[Axis, ...]) -> Optional[Kernel]:
    """The covariance of sums of a kernel's functions at independent places: ``sqrt 2`` wider, if Gaussian."""
    widths = np.array([axis.max - axis.min for axis in axes])
    if kind == "density":
        divide_by = about.found.get("divide_by")
        if divide_by is not None:
            about.whole("divide_by", 1, 2**64 - 1)
        name, _ = about.variant("kernel")
        kernel = about.object("kernel")
        if name == "bandwidths":
            bandwidths = kernel.numbers(name)
            if len(bandwidths) != len(axes) or not np.all(bandwidths > 0.0):
                raise kernel.wrong(name, f"are not {len(axes)} positive numbers")
            return Gaussian(np.diag(1.0 / (2.0 * (bandwidths / widths) ** 2)))
        if name == "covariance":
            matrix = kernel.matrix(name, len(axes))
            if len(matrix) != len(axes) or not np.all(np.diag(matrix) > 0.0):
                raise kernel.wrong(name, f"is not a matrix of {len(axes)} rows and columns")
            factor = cholesky(np.tril(2.0 * matrix / np.outer(widths, widths)))
            return Gaussian(backward(factor, forward(factor, np.eye(len(axes)))))
        raise about.wrong("kernel", f"is '{name}', which this package does not know")
    if kind in (_SUM, _MOMENTS, _CELLS, _COUNTS):
        return None
    about.text("label")
    if kind == "regression":
        about.number("min")
        about.number("max")
    else:
        about.number("above")
    method, content = about.variant("method")
    if method != "kernel_machine":
        return None
    kernel_of = Fields(content, f"{about.place}method.kernel_machine.")
    machine = _machine(kernel_of, "kernel", len(axes))
    return Gaussian(machine.precision / 2.0) if isinstance(machine, Gaussian) else machine
