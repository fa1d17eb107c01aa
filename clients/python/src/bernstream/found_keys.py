"""How a table by key found the keys that nobody listed: clients/FORMAT.md, "Keys that nobody listed"."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from fractions import Fraction
from typing import Any, Optional

from .arrays import Array
from .errors import SynopsisError
from .fields import Fields

#: Names that no column of a found key has, beside those of all tables.
FOUND_COLUMNS = ("new", "until", "threshold")
#: Users or records of a grid unit of the noise.
UNIT = 2.0**-12
#: The largest whole numbers that the program writes.
_MOST, _MOST_UNITS = 2**32 - 1, 2**53
#: Longer than all of time, in seconds.
_MOST_TIME = 10**12
_LATEST = datetime.max.replace(tzinfo=timezone.utc)
#: The largest scale, what a threshold is above its formula, and how far another computer may round it otherwise.
_LARGEST_SCALE, _SLACK, _ROUNDING = 2.0**56, 16, 1
_QUINTILLION = 10**18
_DECIMAL = re.compile(r"0|0?\.[0-9]{1,40}")


@dataclass(frozen=True)
class OverfullRule:
    """A test whether a window has too many different keys to look for new ones, and its outcome."""

    #: A window with so many different keys is overfull for certain.
    limit: int
    #: A window with at most so many is not.
    soft_limit: int
    is_overfull: bool


@dataclass(frozen=True)
class FoundKeys:
    """The rule by which a table found its keys, and what it says of each."""

    #: In grid units of the noise: a noisy count above it is found, and the noise that finds keys is never larger.
    threshold: int
    #: The delta that the threshold was made for.
    delta: Fraction
    #: Seconds for which a key stays after the last window that published it above the threshold.
    keep: int
    #: The most rows, and the most bytes of a key.
    most: int
    longest: int
    #: None where it is not tested whether there are too many keys.
    overfull: Optional[OverfullRule]
    #: Of each row: whether its key was found in this window, and windows that begin before when publish it.
    new: tuple[bool, ...]
    until: tuple[datetime, ...]

    @property
    def is_overfull(self) -> bool:
        return self.overfull is not None and self.overfull.is_overfull

    def renewed(self, end: datetime) -> datetime:
        """Until when a key stays that a window with this end publishes above the threshold."""
        return end + min(timedelta(seconds=self.keep), _LATEST - end)


def found_of(form: Fields, keys: Sequence[str]) -> Optional[FoundKeys]:
    """The rule of a basis ``keys`` with these keys; None where they are listed."""
    if form.found.get("found") is None:
        return None
    rule = form.object("found")
    rows = [Fields(row, f"{rule.place}rows.") for row in (rule.list("rows") if rule.found.get("rows") is not None else ())]
    if len(rows) != len(keys):
        raise rule.wrong("rows", f"are {len(rows)}, and there are {len(keys)} keys")
    most, longest = rule.whole("most", 1, _MOST), rule.whole("longest", 1, _MOST)
    if len(keys) > most:
        raise rule.wrong("most", f"is {most}, and there are {len(keys)} keys")
    sizes = [key.encode("utf-8", "surrogatepass") for key in keys]
    if not all(0 < len(size) <= longest for size in sizes):
        raise rule.wrong("longest", f"is {longest}, and a key is empty or has more bytes")
    if any(not one < other for one, other in zip(sizes, sizes[1:])):
        raise form.wrong("keys", "are not in the order of their bytes")
    overfull = _overfull(rule)
    if overfull is not None and overfull.is_overfull and keys:
        raise rule.wrong("overfull", "says that there are too many keys, and some are told")
    return FoundKeys(
        threshold=rule.whole("threshold", 1, _MOST_UNITS),
        delta=_delta(rule),
        keep=rule.whole("keep_seconds", 0, _MOST_TIME),
        most=most,
        longest=longest,
        overfull=overfull,
        new=tuple(row.flag("is_new") for row in rows),
        until=tuple(row.time("until") for row in rows),
    )


def check_found(document: Fields, rule: FoundKeys, units: Mapping[str, float], max_keys: int) -> None:
    """Raises an error unless a table is one that this rule makes: by its number, its noise, its privacy and its times."""
    privacy, noise = document.object("privacy"), document.object("noise")
    statistic = "records" if privacy.variant("unit")[0] == "record" else "users"
    if units != {statistic: UNIT}:
        raise SynopsisError("not a synopsis: its keys were found by another number than that of units")
    if privacy.variant("definition")[0] == "pure epsilon" or privacy.text("adjacency") != "add_remove":
        raise SynopsisError("not a synopsis: its definition of privacy cannot find keys")
    if isinstance(panes := document.found.get("panes"), Mapping) and panes.get("step") is not None:
        raise SynopsisError("not a synopsis: running sums do not find keys")
    scale = noise.number("scale")
    if noise.text("law") != "discrete laplace" or noise.number("grid") != 1.0 or not scale.is_integer():
        raise SynopsisError("not a synopsis: its keys were found by noise that is not that of found keys")
    needed = key_threshold(scale, max_keys, rule.delta)
    if needed is None or abs(needed - rule.threshold) > _ROUNDING:
        raise SynopsisError("not a synopsis: its keys were found above another threshold than its noise needs")
    span = document.object("window")
    start, renewed = span.time("start"), rule.renewed(span.time("end"))
    if not all(start < until and (until == renewed or not new) for until, new in zip(rule.until, rule.new)):
        raise SynopsisError("not a synopsis: a key is not published for the time that it is")


def check_numbers(rule: FoundKeys, numbers: Array, end: datetime) -> None:
    """Raises an error unless new keys are above the threshold, and whatever is above it stays as long as a new key."""
    renewed = rule.renewed(end)
    for number, new, until in zip((numbers / UNIT).tolist(), rule.new, rule.until):
        if not number.is_integer():
            raise SynopsisError("not a synopsis: the number of a key is not on the grid of its noise")
        if new and number <= rule.threshold:
            raise SynopsisError("not a synopsis: a new key is not above the threshold")
        if number > rule.threshold and until != renewed:
            raise SynopsisError("not a synopsis: a key above the threshold is not announced anew")


def key_threshold(scale: float, max_keys: int, delta: Fraction) -> Optional[int]:
    """The threshold that noise of this scale needs, all in grid units; None where it is unbounded."""
    part = int(delta * _QUINTILLION) // max_keys / _QUINTILLION
    if not (part > 0.0 and 1.0 <= scale <= _LARGEST_SCALE):
        return None
    odds = 1.0 / UNIT / scale
    most = math.log(math.expm1(odds) + 2.0 * part) if odds < 40.0 else odds + math.exp(-odds)
    least = math.ceil(scale * (most - math.log(part * (1.0 + math.exp(1.0 / scale)))))
    return max(least + _SLACK + int(scale) // 2**40, round(1.0 / UNIT))


def _overfull(rule: Fields) -> Optional[OverfullRule]:
    if rule.found.get("overfull") is None:
        return None
    test = rule.object("overfull")
    limit = test.whole("limit", 1, _MOST)
    return OverfullRule(limit, test.whole("soft_limit", 0, limit - 1), test.flag("is_overfull"))


def _delta(rule: Fields) -> Fraction:
    text = rule.text("delta")
    if not _DECIMAL.fullmatch(text) or not 0 < (delta := Fraction(text)) < 1:
        raise rule.wrong("delta", f"is {text[:40]!r}, and not a part of 1")
    return delta


def with_rows(document: dict[str, Any], table: Any, pa: Any) -> dict[str, Any]:
    """The document of a table of found keys with what a message says of them in columns of their own."""
    basis = document["basis"]["keys"]
    rule = basis.get("found")
    if not isinstance(rule, Mapping):
        return document
    if rule.get("rows"):
        raise SynopsisError("not a synopsis: what it says of its keys is in columns, and in its description too")
    kinds = dict(zip(FOUND_COLUMNS, (pa.bool_(), pa.timestamp("us", tz="UTC"))))
    if any(name not in table.column_names or table.schema.field(name).type != kind for name, kind in kinds.items()):
        raise SynopsisError("not a synopsis: its columns are not those of a table of found keys")
    try:
        until = [_written(at) for at in table.column("until").to_pylist()]
    except (ValueError, OverflowError):
        raise SynopsisError("not a synopsis: until when it keeps a key is no time") from None
    rows = [{"is_new": new, "until": at} for new, at in zip(table.column("new").to_pylist(), until)]
    # What is empty is absent, as in JSON.
    lists = {"keys": basis["keys"]} if rows else {}
    found = {name: value for name, value in rule.items() if name != "rows"} | ({"rows": rows} if rows else {})
    others = {name: value for name, value in basis.items() if name not in ("keys", "found")}
    return {**document, "basis": {"keys": {**lists, **others, "found": found}}}


def _written(at: datetime) -> str:
    """A time as the program writes it: with as many digits of the second as it needs, none, three or six."""
    digits = "seconds" if at.microsecond == 0 else "milliseconds" if at.microsecond % 1000 == 0 else "microseconds"
    return at.replace(tzinfo=None).isoformat(timespec=digits) + "Z"
