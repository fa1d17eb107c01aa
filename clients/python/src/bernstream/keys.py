"""Counts by key as they are described: rows and columns of the table, and the rules by which users and records count."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Optional

import numpy as np

from .arrays import Array
from .errors import SynopsisError
from .fields import Fields
from .forms import KeyColumn, Keys, ToldUnits
from .found_keys import FOUND_COLUMNS, found_of
from .ranks import MOST_PLACES, Quantiles, RankGrid, quantile_name

#: What a column tells of a key, beside counts of ranges.
STATISTICS = ("users", "records", "low", "middle", "high", "sum")
#: Laws under which all numbers have independent noise.
INDEPENDENT = ("discrete laplace", "discrete gaussian")
#: The largest whole number of a cap.
_MOST = 2**32 - 1
#: The most columns of a key.
MOST_PARTS = 3
#: Names that no column of a key has, as tables have them.
_OWN_COLUMNS = (
    *("window_start", "window_end", "key", "sequence", "users", "records", "low", "middle", "high", "sum", "mean"),
    *("variance", "deviation", "values", "keys", "parts", "lattice_values", "is_last_unclear"),
)
#: Names of quantiles and of counted ranges.
_OWN_NAMES = re.compile("p[0-9]|range_")
_ESCAPE = re.compile("%(?:25|2F)")


@dataclass(frozen=True)
class Counted:
    """Rules by which users and records count for a key."""

    #: The most keys of a unit in a window.
    max_keys: int
    #: The most records of a unit and key; None where no records are counted.
    max_records: Optional[int]
    #: Bounds of the sum of a unit and key; None where records bound it.
    per_user: Optional[tuple[float, float]]
    #: Bounds of one value; None where nothing is summed.
    value: Optional[tuple[float, float]]
    #: Quantiles that are told; None where other numbers are.
    quantiles: Optional[Quantiles]
    #: What part of the price is for each statistic.
    parts: Mapping[str, float]


def keys_of(form: Fields) -> Keys:
    """The rows and columns of a basis ``keys``."""
    is_found = form.found.get("found") is not None
    names = tuple(form.list("keys") if "keys" in form.found or not is_found else ())
    if not (names or is_found) or not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise form.wrong("keys", "are not one or more different texts")
    columns = tuple(_column(Fields(column, f"{form.place}columns.")) for column in form.list("columns"))
    units = {column.statistic: column.unit for column in columns}
    if not columns or len(units) < len(columns):
        raise form.wrong("columns", "are not one or more different statistics")
    are_alike = units.get("low") == units.get("high") == units.get("middle", units.get("low"))
    if not are_alike or ("low" in units and not units.keys().isdisjoint(("records", "sum"))):
        raise form.wrong("columns", "do not belong together")
    found = found_of(form, names)
    if found is not None and form.found.get("units") is not None:
        raise form.wrong("units", "are for listed keys")
    return Keys(names, columns, _told(form, len(names)), found)


def _told(form: Fields, keys: int) -> Optional[ToldUnits]:
    """The bins of units by their keys, from 1 to all keys without gaps."""
    if form.found.get("units") is None:
        return None
    told = form.object("units")
    bins = [Fields(one, f"{told.place}bins.") for one in told.list("bins")]
    ends = tuple((one.whole("least", 1, _MOST), one.whole("most", 1, _MOST)) for one in bins)
    follow = all(one[0] == before[1] + 1 for before, one in zip(((0, 0), *ends), ends))
    if not ends or not follow or ends[-1][1] != keys or any(least > most for least, most in ends):
        raise told.wrong("bins", "are not those of its keys")
    if told.found.get("packed"):
        raise told.wrong("packed", "is for messages")
    return ToldUnits(ends, told.positive("unit"))


def key_columns_of(document: Fields, basis: object) -> tuple[str, ...]:
    """The columns that a key has a part of each of; none where keys are one column."""
    if document.found.get("key_columns") is None:
        return ()
    columns = tuple(document.list("key_columns"))
    are_names = all(isinstance(column, str) and _is_part_name(column) for column in columns)
    if not (are_names and 2 <= len(columns) <= MOST_PARTS and len(set(columns)) == len(columns)):
        raise document.wrong("key_columns", "are not two or three different names")
    if isinstance(basis, Keys) and basis.found is not None and not set(FOUND_COLUMNS).isdisjoint(columns):
        raise document.wrong("key_columns", "are columns of the table")
    own = document.found.get("key")
    keys = basis.keys if isinstance(basis, Keys) else () if own is None else (own,)
    for key in keys:
        parts_of_key(key, columns)
    return columns


def _is_part_name(column: str) -> bool:
    """Whether a column can stand in a table by key, beside those that it has of its own."""
    for end in ("_lower", "_upper"):
        if column.endswith(end):
            column = column[: -len(end)]
            break
    return column not in ("", *_OWN_COLUMNS) and not _OWN_NAMES.match(column)


def first_keys(keys: Sequence[str], most: int = 5) -> str:
    """A few keys, and how many more there are, in words."""
    first = ", ".join(repr(key) for key in keys[:most]) or "none"
    return f"{first} and {len(keys) - most} more" if len(keys) > most else first


def parts_of_key(key: str, columns: Sequence[str]) -> tuple[str, ...]:
    """The parts of a key, one for each column; none without columns.

    They stand with ``/`` between, and ``%25`` and ``%2F`` for ``%`` and ``/`` within a part.
    """
    if not columns:
        return ()
    parts = key.split("/")
    if len(parts) != len(columns) or any(_ESCAPE.sub("", part).count("%") for part in parts):
        raise SynopsisError(f"not a synopsis: the key {key!r} does not have {len(columns)} parts")
    return tuple(part.replace("%2F", "/").replace("%25", "%") for part in parts)


def _column(form: Fields) -> KeyColumn:
    if isinstance(form.found.get("statistic"), Mapping):
        ends = form.object("statistic").object("range")
        start, stop = ends.whole("from", 0, MOST_PLACES), ends.whole("to", 1, MOST_PLACES)
        return KeyColumn(f"range_{start}_{stop}", form.positive("unit"))
    if (statistic := form.text("statistic")) not in STATISTICS:
        raise form.wrong("statistic", f"is '{statistic}', which this package does not know")
    return KeyColumn(statistic, form.positive("unit"))


def counted_of(target: Fields, keys: Keys) -> Counted:
    """The rules of a target ``counts``."""
    value = _bounds(target, "value")
    has_ranges = any(column.statistic not in STATISTICS for column in keys.columns)
    sums_values = not {column.statistic for column in keys.columns}.isdisjoint(("low", "middle", "high", "sum"))
    if value is None and (sums_values or has_ranges):
        raise SynopsisError("not a synopsis: it sums values, and does not say which")
    if value is not None:
        target.object("value").text("column")
    quantiles = _quantiles(target, keys)
    if has_ranges and quantiles is None:
        raise SynopsisError("not a synopsis: it counts ranges of a value, and does not say what for")
    max_keys = target.whole("max_keys", 1, _MOST)
    if keys.told is not None and all(most != max_keys for _, most in keys.told.bins):
        raise SynopsisError("not a synopsis: none of the numbers of keys of its units ends at max_keys")
    if keys.told is not None and quantiles is not None:
        raise SynopsisError("not a synopsis: a table of quantiles does not tell its caps")
    parts = [Fields(part, f"{target.place}parts.") for part in target.list("parts")]
    return Counted(
        max_keys=max_keys,
        max_records=target.whole("max_records", 1, _MOST) if target.found.get("max_records") is not None else None,
        per_user=_bounds(target, "per_user"),
        value=value,
        quantiles=quantiles,
        parts={part.text("of"): part.number("part") for part in parts},
    )


def _quantiles(target: Fields, keys: Keys) -> Optional[Quantiles]:
    """The quantiles of a table whose columns are the counts of their grid."""
    if target.found.get("quantiles") is None:
        return None
    of = target.object("quantiles")
    form = of.object("grid")
    places = form.whole("places", 2, MOST_PLACES)
    grid = RankGrid(places, form.whole("block", 2, places) if form.found.get("block") is not None else None)
    parts = of.list("parts")
    if not parts or not all(isinstance(part, float) and quantile_name(part) for part in parts):
        raise of.wrong("parts", "are not one or more thousandths above 0 and below 1")
    names = [quantile_name(part) for part in parts]
    columns = [column.statistic for column in keys.columns]
    units = {column.unit for column in keys.columns}
    if len(set(names)) < len(names) or columns != grid.ranges() or len(units) > 1:
        raise of.wrong("grid", "is not that of its columns")
    return Quantiles(grid, {str(name): round(part, 3) for name, part in zip(names, parts)})


def _bounds(target: Fields, name: str) -> Optional[tuple[float, float]]:
    """The ends of a range that may be absent."""
    if target.found.get(name) is None:
        return None
    of = target.object(name)
    low, high = of.number("min"), of.number("max")
    if not (high > low and math.isfinite(high - low)):
        raise target.wrong(name, "is no proper range")
    return low, high


def unpacked(document: dict[str, Any]) -> tuple[dict[str, Any], Array]:
    """The document of a table by key without the numbers of units that a message has in it, and these numbers."""
    basis = document["basis"]["keys"]
    told = basis.get("units")
    if not isinstance(told, dict):
        return document, np.empty(0)
    try:
        numbers = np.frombuffer(bytes.fromhex(told.get("packed", "")), dtype=">f8").astype(np.float64)
    except (ValueError, TypeError):
        raise SynopsisError("not a synopsis: its numbers of units are not numbers") from None
    plain = {name: found for name, found in told.items() if name != "packed"}
    return {**document, "basis": {"keys": {**basis, "units": plain}}}, numbers


def with_keys(document: dict[str, Any], keys: list[str]) -> dict[str, Any]:
    """The document of a table by key with the keys of its rows: a message has them in a column."""
    return {**document, "basis": {"keys": {**document["basis"]["keys"], "keys": keys}}}
