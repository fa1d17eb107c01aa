"""Users, records, sums, moments and quantiles of each key, with their intervals: clients/FORMAT.md, "Tables by key"."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, Optional

import numpy as np

from . import moments, noise
from .arrays import Array, Bounds
from .cell_readings import Estimate
from .description import Description
from .errors import SynopsisError
from .figures import nearly
from .forms import Keys
from .found_law import FoundLaw
from .keys import first_keys, parts_of_key
from .ranks import quantile
from .sums import ratio
from .told_caps import dropped_share

#: Most keys of a margin whose noise has the exact law of their sum: more keys are as wide as the law of so many, or less.
_EXACT_TERMS = 64
#: Readings that are ratios of noisy numbers, or the root of one.
_MOMENTS = ("mean", "variance", "deviation")


@dataclass(frozen=True)
class TopKeys:
    """The keys with the largest values."""

    #: Their names, the largest first.
    keys: tuple[str, ...]
    #: Whether noise may have made the last of them larger than the first one that is left out.
    is_last_unclear: bool


class _Row(dict[str, Estimate]):
    """The readings of one key."""

    def __missing__(self, reading: str) -> Estimate:
        raise KeyError(f"this table has {', '.join(self)}, and no {reading!r}")


class KeyTable:
    """Users, records, sums, means, variances and quantiles of each key, each with its own 95 % interval; all cost no privacy.

    Intervals cover the noise, and not :attr:`left_out`: how much that is no row tells. Bounds of NaN
    are unknown, of a mean or a variance of what may be no records: then its value says nothing. Where keys were found,
    :attr:`is_found`, a key that is not here had fewer than about :attr:`absent_below` users or records.

    >>> from bernstream import example
    >>> table = example("keys").key_table()
    >>> table.readings
    ('users', 'records', 'sum', 'mean')
    >>> lower, upper = table["CH"]["users"].pointwise
    >>> bool(lower < table["CH"]["users"].value < upper)
    True
    >>> table.top(1).keys
    ('DE',)
    """

    def __init__(self, about: Description, values: Array) -> None:
        """Use :meth:`Synopsis.key_table`."""
        if not isinstance(about.basis, Keys) or about.counted is None:
            raise SynopsisError(f"it holds a {about.kind}, and no table by key: only those with the target 'counts' do")
        self._law, self._scale, self._keys = about.noise.law, about.noise.scale, about.basis.keys
        self._counted, self._key_columns, self._found_keys = about.counted, about.key_columns, about.basis.found
        self._capped = "each window that is added up" if about.is_running_sum else "a window"
        self._range = (0.0, 1.0) if about.counted.value is None else about.counted.value
        columns = about.basis.columns
        self._units = {column.statistic: column.unit for column in columns}
        table = values[: about.basis.table].reshape(len(columns), -1)
        self._columns = dict(zip(self._units, table))
        self._told, self._unit_counts = about.basis.told, values[about.basis.table :]
        #: The half-width of noise with weights of length 1 on counts of ranges, and the values up to each place.
        self._rank_unit = (about.band.pointwise or math.nan) * columns[0].unit
        quantiles = about.counted.quantiles
        self._up_to = None if quantiles is None else quantiles.grid.up_to(table)
        self._estimates = {reading: self._estimate(reading) for reading in self._found()}

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys, in the order of the rows."""
        return self._keys

    @property
    def key_columns(self) -> tuple[str, ...]:
        """The columns that a key has a part of each of; none where keys are one column."""
        return self._key_columns

    def parts(self, key: str) -> dict[str, str]:
        """The parts of a key by their columns."""
        return dict(zip(self._key_columns, parts_of_key(key, self._key_columns)))

    @property
    def readings(self) -> tuple[str, ...]:
        """What is known of each key: some of ``users``, ``records``, ``sum``, ``mean``, ``variance`` and ``deviation``.

        The deviation is the standard deviation. Of quantiles these are ``p50``, .. and ``values``.
        """
        return tuple(self._estimates)

    @property
    def is_found(self) -> bool:
        """Whether its keys are those that were found, and nobody listed them."""
        return self._found_keys is not None

    @property
    def new(self) -> tuple[str, ...]:
        """The keys that were found in this window. Their counts are near the threshold, or above it, by selection."""
        rule = self._found_keys
        return () if rule is None else tuple(key for key, is_new in zip(self._keys, rule.new) if is_new)

    @property
    def until(self) -> Mapping[str, datetime]:
        """Of each found key until when it is published: in every window that begins before, whatever its count is."""
        return {} if self._found_keys is None else dict(zip(self._keys, self._found_keys.until))

    @property
    def threshold(self) -> Optional[float]:
        """A key of so many users or records is found with about even odds; None where keys are listed."""
        return None if self._found_keys is None else self._found_keys.threshold * next(iter(self._units.values()))

    @property
    def is_overfull(self) -> bool:
        """Whether there were too many different keys to look for new ones; then the table is empty."""
        return self._found_keys is not None and self._found_keys.is_overfull

    @property
    def absent_below(self) -> Optional[float]:
        """A key that is not in the table had fewer than about so many users or records; None where nobody looked for new ones.

        That is the threshold, or of a full table its least count where that is larger. Also None where keys are listed.
        """
        if self._found_keys is None or self.threshold is None or self.is_overfull:
            return None
        least = next(iter(self._columns.values())).min() if len(self) >= self._found_keys.most else 0.0
        return max(float(least), self.threshold)

    @property
    def left_out(self) -> str:
        """What caps leave out of the numbers, in words."""
        keys = "one key" if self._counted.max_keys == 1 else f"{self._counted.max_keys} keys"
        most = self._counted.max_records
        records = "" if most is None else f", with at most {most} record{'s' if most > 1 else ''} in each"
        if most is None and self._counted.quantiles is not None:
            records = ", with the mean of its values in each"
        return f"what a unit has beyond its caps: it counts in at most {keys} of {self._capped}{records}"

    @property
    def dropped(self) -> Optional[Estimate]:
        """The share of all pairs of a unit and a key of it that ``max_keys`` drops; None where caps are not told."""
        if self._told is None:
            return None
        factor = self._half_width((self._told.unit,))
        return dropped_share(self._told.bins, self._unit_counts, self._counted.max_keys, factor)

    @property
    def units(self) -> Optional[dict[str, Any]]:
        """The numbers of units with so many keys, before the cap, and what a cap of ``most`` keys would drop, by column.

        None where caps are not told.
        """
        if self._told is None:
            return None
        bins, value, half_width = self._told.bins, self._unit_counts, self._half_width((self._told.unit,))
        least, most = (list(ends) for ends in zip(*bins))
        estimate = Estimate(value, Bounds(value - half_width, value + half_width))
        shares = [dropped_share(bins, value, cap, half_width) for cap in most]
        dropped = Estimate(
            np.array([share.value for share in shares]),
            Bounds(*(np.array(ends) for ends in zip(*(share.pointwise for share in shares)))),
        )
        return {"least": least, "most": most, **_columns_of("units", estimate), **_columns_of("dropped", dropped)}

    def __len__(self) -> int:
        """The number of keys."""
        return len(self._keys)

    def __getitem__(self, key: str) -> Mapping[str, Estimate]:
        """The readings of one key."""
        if key not in self._keys:
            below = ""
            if self.absent_below is not None:
                below = f"; a key that is not there had fewer than about {nearly(self.absent_below)} {self.readings[0]}"
            raise SynopsisError(f"there is no key {key!r} in this table: it has {first_keys(self._keys)}{below}")
        row = self._keys.index(key)
        return _Row({reading: self._in_row(reading, row) for reading in self.readings})

    def column(self, reading: str) -> Estimate:
        """One reading of all keys, as arrays."""
        if reading not in self._estimates:
            raise SynopsisError(f"this table has {', '.join(self.readings)}, and no {reading!r}")
        return self._estimates[reading]

    def columns(self) -> dict[str, Any]:
        """The table by column: ``key``, and of each reading, such as ``users``, also ``users_lower`` and ``users_upper``.

        A key of several columns also has each part, in a column of that name. Found keys have ``new`` and ``until`` at the end.
        """
        found: dict[str, Any] = {"key": list(self._keys), **self._part_columns(self._keys)}
        for reading, estimate in self._estimates.items():
            found.update(_columns_of(reading, estimate))
        if self._found_keys is not None:
            found.update(new=np.array(self._found_keys.new, dtype=bool), until=list(self._found_keys.until))
        return found

    def margin(self, *columns: str) -> dict[str, Any]:
        """Sums over all keys with the same parts in these columns, by column; over all keys where there are none.

        ``keys`` is the number of keys that are summed. A mean and a variance are those of all their records. Users do not add
        up, as a user may be in several keys. Each interval is 95 % for itself. Found keys have none:
        others are missing in the table.
        """
        self._is_of_all_keys()
        readings = [reading for reading in self.readings if reading in ("records", "sum", *_MOMENTS)]
        if not readings:
            raise SynopsisError("users and quantiles do not add up: a user may be in several keys")
        groups = self._groups(columns)
        found: dict[str, Any] = {name: [parts[place] for parts in groups] for place, name in enumerate(columns)}
        found["keys"] = np.array([len(rows) for rows in groups.values()])
        for reading in readings:
            sums = [self._sum_over(reading, rows) for rows in groups.values()]
            value, lower, upper = (np.array(column) for column in zip(*sums))
            found.update(_columns_of(reading, Estimate(value, Bounds(lower, upper))))
        return found

    def shares(self, *columns: str) -> dict[str, Any]:
        """The share of each key in all keys with its parts in these columns, in all where there are none; by column.

        Of records, and of sums of values none of which is below 0. Intervals are Fieller's, 95 %; NaN is unknown. Found keys
        have none.
        """
        self._is_of_all_keys()
        has_least = [bounds[0] >= 0.0 for bounds in (self._counted.value, self._counted.per_user) if bounds is not None]
        readings = [r for r in self.readings if r == "records" or (r == "sum" and any(has_least))]
        if not readings:
            raise SynopsisError("it has no shares: only records have, and sums of values none of which is below 0")
        found: dict[str, Any] = {"key": list(self._keys), **self._part_columns(self._keys)}
        groups = self._groups(columns).values()
        for reading in readings:
            share, lower, upper = (np.full(len(self), math.nan) for _ in range(3))
            for rows in groups:
                (value, _, _), one = self._estimates[reading], np.ones(len(rows))
                own, whole = value[rows], np.full(len(rows), value[rows].sum())
                if whole[0] > 0.0:
                    share[rows] = np.clip(own / whole, 0.0, 1.0)
                half_width = self._half_width(self._weights(reading))
                bounds = ratio(own, whole, one, one, len(rows) * one, half_width * one)
                lower[rows], upper[rows] = (np.clip(end, 0.0, 1.0) for end in bounds)
            found.update(_columns_of(f"{reading}_share", Estimate(share, Bounds(lower, upper))))
        return found

    def _part_columns(self, keys: Sequence[str]) -> dict[str, list[str]]:
        each = [parts_of_key(key, self._key_columns) for key in keys]
        return {name: [parts[place] for parts in each] for place, name in enumerate(self._key_columns)}

    def _groups(self, columns: Sequence[str]) -> dict[tuple[str, ...], list[int]]:
        """The rows of the keys with the same parts in these columns, in the order of the first of each."""
        for column in columns:
            if column not in self._key_columns:
                known = f", only {', '.join(self._key_columns)}" if self._key_columns else ": they are one column"
                raise SynopsisError(f"its keys have no parts {column!r}{known}")
        places = [self._key_columns.index(column) for column in columns]
        groups: dict[tuple[str, ...], list[int]] = {}
        for row, key in enumerate(self._keys):
            parts = parts_of_key(key, self._key_columns)
            groups.setdefault(tuple(parts[place] for place in places), []).append(row)
        return groups

    def _sum_over(self, reading: str, rows: list[int]) -> tuple[float, float, float]:
        """The sum over these rows, and the ends of its interval."""
        if reading in _MOMENTS:
            records = self._records()[:, rows].sum(axis=1, keepdims=True)
            value, (lower, upper), _ = self._moment(reading, records, self._margin_half_width(reading, len(rows)))
            return float(value[0]), float(lower[0]), float(upper[0])
        total = float(self._estimates[reading].value[rows].sum())
        half_width = self._margin_half_width(reading, len(rows))
        return total, total - half_width, total + half_width

    def _margin_half_width(self, reading: str, keys: int) -> float:
        """That of the sum over so many keys; of a mean and a variance that of the numbers at one end of the value."""
        weights = (self._units["low"],) if reading in _MOMENTS else self._weights(reading)
        # Under the normal law, whose quantile is one whatever the number of terms.
        terms = 1 if self._law == "discrete gaussian" else min(keys, _EXACT_TERMS)
        return math.sqrt(keys / terms) * self._half_width(terms * weights)

    def rows(self) -> list[dict[str, Any]]:
        """The table as a dictionary for each key, by the names of :meth:`columns`."""
        columns = {name: np.asarray(column).tolist() for name, column in self.columns().items()}
        return [dict(zip(columns, row)) for row in zip(*columns.values())]

    def to_pandas(self) -> Any:
        """A ``pandas.DataFrame`` of :meth:`columns`."""
        try:
            import pandas
        except ImportError as error:
            raise ImportError("to_pandas() needs pandas: pip install pandas") from error
        return pandas.DataFrame(self.columns())

    def to_polars(self) -> Any:
        """A ``polars.DataFrame`` of :meth:`columns`."""
        try:
            import polars
        except ImportError as error:
            raise ImportError("to_polars() needs Polars: pip install polars") from error
        return polars.DataFrame(self.columns())

    def to_arrow(self) -> Any:
        """A ``pyarrow.Table`` of :meth:`columns`."""
        try:
            import pyarrow
        except ImportError as error:
            raise ImportError("to_arrow() needs pyarrow: pip install pyarrow") from error
        return pyarrow.table(self.columns())

    def quantile(self, part: float) -> Estimate:
        """The least value that ``part`` of the values lie up to, of all keys as arrays: any part above 0 and below 1.

        Only of tables that count ranges of a value, for the quantiles that they tell.
        """
        if self._up_to is None or self._counted.quantiles is None:
            raise SynopsisError("this table counts no ranges of a value: only those with quantiles do")
        if not 0.0 < part < 1.0:
            raise SynopsisError(f"a quantile is of a part above 0 and below 1, not {part}")
        grid = self._counted.quantiles.grid
        half_widths = self._rank_unit * grid.lengths(part)
        found = [quantile(up_to, part, half_widths, self._half_width_of_all()) for up_to in self._up_to.T]
        (low, high), last = self._range, grid.places - 1
        place, lower, upper = (low * (last - places) + high * places for places in np.array(found).T)
        return Estimate(place / last, Bounds(lower / last, upper / last))

    def _half_width_of_all(self) -> float:
        """That of the number of all values of a key."""
        assert self._counted.quantiles is not None
        return float(self._rank_unit * self._counted.quantiles.grid.lengths(0.0)[-1])

    def top(self, count: int, by: Optional[str] = None) -> TopKeys:
        """The keys with the largest values of a reading, by default the first; those whose mean is unknown come last."""
        if count < 1:
            raise SynopsisError(f"the largest keys are one or more, not {count}")
        by = self.readings[0] if by is None else by
        value, interval, _ = self.column(by)
        order = np.lexsort((np.where(np.isnan(interval.lower), 0.0, -value), np.isnan(interval.lower)))
        is_last_unclear = count < len(order) and not self._is_larger(by, int(order[count - 1]), int(order[count]))
        return TopKeys(tuple(self._keys[row] for row in order[:count]), is_last_unclear)

    def _is_of_all_keys(self) -> None:
        if self.is_found:
            raise SynopsisError("nobody listed its keys: those that were not found are missing in it, and would be in a sum")

    def _is_larger(self, reading: str, one: int, other: int) -> bool:
        """Whether the noise does not explain that one row has more than another."""
        value, interval, _ = self._estimates[reading]
        if self._found_keys is not None and (self._found_keys.new[one] or self._found_keys.new[other]):
            # The noise of a new key is not symmetric.
            return bool(interval.lower[one] > interval.upper[other])
        if reading in _MOMENTS or (self._counted.quantiles is not None and reading != "values"):
            return bool(interval.lower[one] > interval.upper[other])
        if reading == "values":
            return bool(value[one] - value[other] > math.sqrt(2.0) * self._half_width_of_all())
        return bool(value[one] - value[other] > self._half_width(2 * self._weights(reading)))

    def _found(self) -> list[str]:
        """The readings that the columns allow: ``low`` and ``high`` are records, sum and mean; ``middle`` adds a variance."""
        if self._counted.quantiles is not None:
            return [*self._counted.quantiles.parts, "values"]
        of_ends = {"low": ["records", "sum", "mean"], "middle": ["variance", "deviation"], "high": []}
        return [reading for statistic in self._units for reading in of_ends.get(statistic, [statistic])]

    def _weights(self, reading: str) -> tuple[float, ...]:
        """The units of noise that a reading adds up: of its own column, or of all records by their place in the value."""
        if reading in self._units:
            return (self._units[reading],)
        return tuple(weight * self._units["low"] for weight in self._of_places(reading))

    def _of_places(self, reading: str) -> tuple[float, ...]:
        """What ``low``, ``middle``, if it is there, and ``high`` count in a reading of all of them."""
        (low, high), has_middle = self._range if reading == "sum" else (1.0, 1.0), "middle" in self._units
        return (low, 0.5 * (low + high), high) if has_middle else (low, high)

    def _records(self) -> Array:
        """``low``, ``middle``, if it is there, and ``high``, a column for each key."""
        return np.array([self._columns[place] for place in ("low", "middle", "high") if place in self._columns])

    def _half_width(self, weights: tuple[float, ...]) -> float:
        return self._scale * _half_width(self._law, weights)

    def _estimate(self, reading: str) -> Estimate:
        if reading in _MOMENTS:
            return self._moment(reading, self._records(), self._half_width((self._units["low"],)))
        if self._counted.quantiles is not None:
            if reading in self._counted.quantiles.parts:
                return self.quantile(self._counted.quantiles.parts[reading])
            assert self._up_to is not None
            value, half_width = self._up_to[-1], self._half_width_of_all()
            return Estimate(value, Bounds(value - half_width, value + half_width))
        own = self._columns.get(reading)
        value = np.array(self._of_places(reading)) @ self._records() if own is None else own
        half_width = self._half_width(self._weights(reading))
        lower, upper = value - half_width, value + half_width
        if self._found_keys is not None and any(self._found_keys.new):
            unit, new = self._units[reading], np.array(self._found_keys.new)
            law = FoundLaw(self._scale, self._found_keys.threshold, unit)
            lower[new], upper[new] = law.intervals(value[new])
        return Estimate(value, Bounds(lower, upper))

    def _moment(self, reading: str, records: Array, factor: float) -> Estimate:
        """A mean or a variance; ``factor`` is the half-width of each of the records."""
        low, high = self._range
        if reading == "mean":
            return _mapped(moments.mean(records, factor), lambda share: low + (high - low) * share)
        found = moments.variance(records, factor)
        if reading == "deviation":
            return _mapped(found, lambda square: (high - low) * np.sqrt(square))
        return _mapped(found, lambda square: (high - low) ** 2 * square)

    def _in_row(self, reading: str, row: int) -> Estimate:
        value, (lower, upper), _ = self._estimates[reading]
        return Estimate(float(value[row]), Bounds(float(lower[row]), float(upper[row])))

    def __repr__(self) -> str:
        kind = "found keys" if self.is_found else "keys"
        return f"<KeyTable of {', '.join(self.readings)} of {len(self)} {kind}>"


def _mapped(found: Estimate, scale: Callable[[Array], Array]) -> Estimate:
    value, (lower, upper), _ = found
    return Estimate(scale(value), Bounds(scale(lower), scale(upper)))


def _columns_of(name: str, estimate: Estimate) -> dict[str, Any]:
    value, interval, _ = estimate
    return {name: value, f"{name}_lower": interval.lower, f"{name}_upper": interval.upper}


@lru_cache(maxsize=512)
def _half_width(law: str, weights: tuple[float, ...]) -> float:
    """That of the sum of noise of scale 1 with these weights: the same in all windows."""
    return noise.of_sum(law, 1.0, np.array(weights)).half_width
