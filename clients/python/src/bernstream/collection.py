"""The synopses of a folder or a topic, chosen by release, key and window, and as tables."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Optional, Union

import numpy as np

from .arrays import Array
from .errors import SynopsisError
from .fields import time
from .key_table import KeyTable
from .synopsis import Synopsis, read
from .topic import published

#: Points per axis of a table, on one to three axes.
_POINTS = (101, 51, 21)
When = Union[str, datetime]
_COUNTS = "counts"
_VALUES = ("release", "key", "time", "window_start", "window_end", "value", "lower", "upper")


class Collection(Sequence[Synopsis]):
    """Synopses in the order of their windows; of copies of one the last. Nothing here costs privacy.

    A window is named by its start, as its file is; a running one, many of which start together, by that of its newest pane.
    Tables have a row per synopsis and point and the columns ``release``, ``key``, ``time`` (which names the window),
    ``window_start``, ``window_end``, one per axis (``at.value`` if it has the name of another column), ``value``, ``lower`` and
    ``upper``, the ends of the simultaneous band. Tables by key have a row per synopsis and key instead, and of each reading,
    such as ``users``, also ``users_lower`` and ``users_upper``; those of found keys also ``new`` and ``until``, and no row of a
    key in the windows that lack it.
    """

    def __init__(self, synopses: Sequence[Synopsis]) -> None:
        found: dict[tuple[Any, ...], Synopsis] = {}
        for one in synopses:
            own = (start_of(one), one.window, one.release, one.key or "")
            if own not in found or _sequence(one) >= _sequence(found[own]):
                found[own] = one
        self._all = [found[own] for own in sorted(found)]

    def __len__(self) -> int:
        return len(self._all)

    def __getitem__(self, i: Any) -> Any:
        return Collection(self._all[i]) if isinstance(i, slice) else self._all[i]

    def __iter__(self) -> Iterator[Synopsis]:
        return iter(self._all)

    @property
    def releases(self) -> list[str]:
        """The names of the releases that it has."""
        return sorted({one.release for one in self._all})

    @property
    def keys(self) -> list[str]:
        """The keys that it has; none where no release is grouped."""
        return sorted({one.key for one in self._all if one.key is not None})

    @property
    def windows(self) -> list[datetime]:
        """The starts of the windows, or of their newest panes."""
        return sorted({start_of(one) for one in self._all})

    def sel(
        self,
        *,
        release: Optional[str] = None,
        key: Union[str, Sequence[str], None] = None,
        window: Union[When, slice, None] = None,
    ) -> Collection:
        """Those of a release, of one or several keys, and of a window that starts then, or from then and before then (a slice).

        An error says what there is if nothing is left. A table by key has all its keys: choose rows of a frame.
        """
        keys = [key] if isinstance(key, str) else key
        first, last = (window.start, window.stop) if isinstance(window, slice) else (window, None)
        low, high = (None if end is None else _time(end) for end in (first, last))

        def fits(one: Synopsis) -> bool:
            start = start_of(one)
            inside = (low is None or start >= low) and (high is None or start < high) if isinstance(window, slice) else None
            return (
                (release is None or one.release == release)
                and (keys is None or one.key in keys)
                and (low is None or start == low if inside is None else inside)
            )

        found = [one for one in self._all if fits(one)]
        if not found and keys is not None and any(one.kind == _COUNTS for one in self._all):
            raise SynopsisError("key= chooses synopses of one key, and a table has a row for each: choose rows of to_pandas()")
        if not found:
            raise SynopsisError(f"nothing is left of {self!r} by release {release!r}, key {key!r}, window {window!r}")
        return Collection(found)

    def columns(self, points: Optional[int] = None) -> dict[str, Any]:
        """The table as arrays and lists by column; ``points`` even points per axis, which tables by key do not have."""
        first = self._of_one_form()
        if first.kind == _COUNTS:
            return self._by_key()
        grid = self._grid(first, points)
        mesh = [axis.ravel() for axis in np.meshgrid(*grid, indexing="ij")]
        parts = [(one, one(*mesh), one.band(*mesh)) for one in self._all]
        rows = len(mesh[0])

        def repeated(of: Any) -> list[Any]:
            return [value for one in self._all for value in [of(one)] * rows]

        return {
            "release": repeated(lambda one: one.release),
            "key": repeated(lambda one: one.key),
            "time": repeated(start_of),
            "window_start": repeated(lambda one: one.window[0]),
            "window_end": repeated(lambda one: one.window[1]),
            **{name: np.tile(axis, len(parts)) for name, axis in zip(self._axis_names(first), mesh)},
            "value": np.concatenate([values for _, values, _ in parts]),
            "lower": np.concatenate([band.lower for *_, band in parts]),
            "upper": np.concatenate([band.upper for *_, band in parts]),
        }

    def to_pandas(self, points: Optional[int] = None) -> Any:
        """A ``pandas.DataFrame``."""
        try:
            import pandas
        except ImportError as error:
            raise ImportError("to_pandas() needs pandas: pip install pandas") from error
        return pandas.DataFrame(self.columns(points))

    def to_polars(self, points: Optional[int] = None) -> Any:
        """A ``polars.DataFrame``."""
        try:
            import polars
        except ImportError as error:
            raise ImportError("to_polars() needs Polars: pip install polars") from error
        return polars.DataFrame(self.columns(points))

    def to_xarray(self, points: Optional[int] = None) -> Any:
        """An ``xarray.Dataset`` of one release over key, window (UTC) and the axes; NaN where there is no synopsis."""
        try:
            import xarray
        except ImportError as error:
            raise ImportError("to_xarray() needs xarray: pip install xarray") from error
        first = self._of_one_form()
        if first.kind == _COUNTS:
            raise SynopsisError("to_xarray() is for functions, and these are tables by key: use to_pandas() or to_polars()")
        if len(self.releases) > 1:
            raise SynopsisError(f"to_xarray() is for one release: choose one of {self.releases} with sel(release=...)")
        grid = self._grid(first, points)
        mesh = np.meshgrid(*grid, indexing="ij")
        keys, windows = sorted({one.key or "" for one in self._all}), self.windows
        shape = (3, len(keys), len(windows), *mesh[0].shape)
        found = np.full(shape, np.nan)
        for one in self._all:
            found[:, keys.index(one.key or ""), windows.index(start_of(one))] = np.stack([one(*mesh), *one.band(*mesh)])
        names = self._axis_names(first)
        places = ("key", "window", *names)
        starts = np.array([start.replace(tzinfo=None) for start in windows], dtype="datetime64[us]")
        return xarray.Dataset(
            {name: (places, found[i]) for i, name in enumerate(("value", "lower", "upper"))},
            coords={"key": keys, "window": starts, **dict(zip(names, grid))},
            attrs={"release": first.release, "meaning": first.meaning, "guarantee": first.in_words},
        )

    def _of_one_form(self) -> Synopsis:
        """The first, if all are functions on the same axes."""
        if not self._all:
            raise SynopsisError("there is no synopsis to make a table of")
        first = self._all[0]
        if any(_form(one) != _form(first) for one in self._all):
            raise SynopsisError(f"the synopses have different axes: choose one of {self.releases} with sel(release=...)")
        return first

    def _by_key(self) -> dict[str, Any]:
        """The rows of tables by key."""
        tables = [one.key_table() for one in self._all]
        each = [one for one, table in zip(self._all, tables) for _ in table.keys]
        columns = [table.columns() for table in tables]
        own = ("key", *tables[0].key_columns)
        return {
            "release": [one.release for one in each],
            "key": [key for table in tables for key in table.keys],
            **{name: [part for of in columns for part in of[name]] for name in tables[0].key_columns},
            "time": [start_of(one) for one in each],
            "window_start": [one.window[0] for one in each],
            "window_end": [one.window[1] for one in each],
            **{name: _joined([of[name] for of in columns]) for name in columns[0] if name not in own},
        }

    def history(self, key: str) -> dict[str, Any]:
        """One key of tables by key, window by window, by column: its readings with their intervals, NaN where a table lacks it.

        That a found key is not in a table does not mean that nobody had it. Where it is missing it is not ``new``, and its
        ``until`` is None.
        """
        if self._of_one_form().kind != _COUNTS:
            raise SynopsisError("history() is for tables by key, and these are functions: use to_pandas() or to_polars()")
        if len(self.releases) > 1:
            raise SynopsisError(f"history() is for one release: choose one of {self.releases} with sel(release=...)")
        tables = [one.key_table() for one in self._all]
        rows = [_row_of(table, key) for table in tables]
        if not any(rows):
            raise SynopsisError(f"there is no key {key!r} in these tables")
        absent = {"new": False, "until": None}
        found = {name: [row.get(name, absent.get(name, math.nan)) for row in rows] for name in next(filter(None, rows))}
        return {
            "time": [start_of(one) for one in self._all],
            "window_start": [one.window[0] for one in self._all],
            "window_end": [one.window[1] for one in self._all],
            **{name: of if name == "until" else np.array(of) for name, of in found.items()},
        }

    @staticmethod
    def _grid(first: Synopsis, points: Optional[int]) -> list[Array]:
        count = _POINTS[len(first.axes) - 1] if points is None else points
        if count < 2:
            raise SynopsisError(f"a table has at least 2 points per axis, not {count}")
        return [np.linspace(axis.min, axis.max, count) for axis in first.axes]

    @staticmethod
    def _axis_names(first: Synopsis) -> list[str]:
        return [f"at.{axis.column}" if axis.column in _VALUES else axis.column for axis in first.axes]

    def __repr__(self) -> str:
        if not self._all:
            return "<Collection of nothing>"
        span = f"{self._all[0].window[0]:%Y-%m-%d %H:%M} to {max(one.window[1] for one in self._all):%Y-%m-%d %H:%M} UTC"
        keys = f"; keys {', '.join(self.keys)}" if self.keys else ""
        return f"<Collection of {len(self)} synopses of {', '.join(self.releases)}{keys}; {span}>"


def open(
    source: Union[str, os.PathLike[str]],
    brokers: Optional[str] = None,
    *,
    config: Optional[Mapping[str, Any]] = None,
    patience: float = 10.0,
) -> Collection:
    """All synopses of a folder and the folders in it, or, with ``brokers``, of a topic up to its current end.

    What is no synopsis is passed over: a witness lies beside them. ``config`` and ``patience`` are those of ``published``.
    """
    if brokers is not None:
        found = [_synopsis(message) for message in published(str(source), brokers, config=config, patience=patience)]
        all_ = [one for one in found if one is not None]
    else:
        if not (folder := Path(source)).is_dir():
            raise SynopsisError(f"'{source}' is no folder; of a topic give the brokers too: open('{source}', 'localhost:9092')")
        all_ = [read(path) for path in sorted(folder.rglob("*.arrows"))]
    if not all_:
        raise SynopsisError(f"there is no synopsis in '{source}'")
    return Collection(all_)


def _synopsis(message: bytes) -> Optional[Synopsis]:
    try:
        return Synopsis.from_arrow(message)
    except SynopsisError:
        return None


def start_of(one: Synopsis) -> datetime:
    """What names a window: its start, or that of its newest pane."""
    panes = one.meta.get("panes")
    found = time(panes["newest"]["start"]) if panes else None
    return one.window[0] if found is None else found


def _form(one: Synopsis) -> tuple[Any, ...]:
    """What synopses have in common whose rows stand in one table: the axes, or the readings of each key."""
    if one.kind != _COUNTS:
        return one.axes
    table = one.key_table()
    return table.key_columns, table.readings, table.is_found


def _sequence(one: Synopsis) -> int:
    return int(one.meta["ledger"]["sequence"])


def _row_of(table: KeyTable, key: str) -> dict[str, Any]:
    """The readings of one key by column, with their intervals and what is said of a found key; nothing where it is missing."""
    if key not in table.keys:
        return {}
    row = table.keys.index(key)
    own = ("key", *table.key_columns)
    return {name: of[row] for name, of in table.columns().items() if name not in own}


def _joined(parts: list[Any]) -> Any:
    """A column of several tables: times stay a list."""
    return [each for part in parts for each in part] if isinstance(parts[0], list) else np.concatenate(parts)


def _time(when: When) -> datetime:
    found = time(when) if isinstance(when, str) else when
    if found is None or found.tzinfo is None:
        raise SynopsisError(f"'{when}' is not a time such as 2013-01-01T00:00:00Z")
    return found
