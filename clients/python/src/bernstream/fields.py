"""The fields of a document that may come from an untrusted source: each is checked when it is asked for."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any, Optional

import numpy as np

from .arrays import Array
from .errors import SynopsisError


class Fields:
    """An object of the document, and its path."""

    def __init__(self, found: Any, place: str = "") -> None:
        if not isinstance(found, Mapping):
            raise SynopsisError(f"not a synopsis: {place.rstrip('.') or 'the document'} is not an object")
        self.found, self.place = found, place

    def wrong(self, name: str, what: str) -> SynopsisError:
        return SynopsisError(f"not a synopsis: its {self.place}{name} {what}")

    def any(self, name: str) -> Any:
        if name not in self.found:
            raise self.wrong(name, "is missing")
        return self.found[name]

    def object(self, name: str) -> Fields:
        return Fields(self.any(name), f"{self.place}{name}.")

    def text(self, name: str) -> str:
        if not isinstance(found := self.any(name), str):
            raise self.wrong(name, "is not a text")
        return found

    def number(self, name: str) -> float:
        return self._number(name, self.any(name))

    def _number(self, name: str, found: Any) -> float:
        if isinstance(found, bool) or not isinstance(found, (int, float)):
            raise self.wrong(name, "is not a number")
        try:
            number = float(found)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise self.wrong(name, "is not a finite number")
        return number

    def positive(self, name: str) -> float:
        if not (found := self.number(name)) > 0.0:
            raise self.wrong(name, "is not positive")
        return found

    def whole(self, name: str, low: int, high: int) -> int:
        found = self.any(name)
        if isinstance(found, bool) or not isinstance(found, int):
            raise self.wrong(name, "is not a whole number")
        if not low <= found <= high:
            raise self.wrong(name, f"is {found}, not {low} to {high}")
        return found

    def numbers(self, name: str) -> Array:
        return np.array([self._number(name, x) for x in self.list(name)], dtype=np.float64)

    def list(self, name: str) -> Sequence[Any]:
        if not isinstance(found := self.any(name), (list, tuple)):
            raise self.wrong(name, "is not a list")
        return found

    def matrix(self, name: str, columns: int) -> Array:
        rows = [Fields({name: row}, self.place).numbers(name) for row in self.list(name)]
        if not rows or any(len(row) != columns for row in rows):
            raise self.wrong(name, f"does not have rows of {columns} numbers")
        return np.array(rows)

    def flag(self, name: str) -> bool:
        if not isinstance(found := self.any(name), bool):
            raise self.wrong(name, "is not true or false")
        return found

    def time(self, name: str) -> datetime:
        if (found := time(self.text(name))) is None:
            raise self.wrong(name, f"'{self.found[name]}' is not a time such as 2013-01-01T00:00:00Z")
        return found

    def variant(self, name: str) -> tuple[str, Any]:
        """``"word"`` or ``{"word": content}``."""
        found = self.any(name)
        if isinstance(found, str):
            return found, None
        if isinstance(found, Mapping) and len(found) == 1:
            return next(iter(found.items()))
        raise self.wrong(name, "is not of one kind")


def time(text: str) -> Optional[datetime]:
    """A time in RFC 3339, to the microsecond."""
    found = re.fullmatch(r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(\.\d+)?([Zz]|[+-]\d\d:\d\d)", text)
    if found is None:
        return None
    day, clock, part, zone = found.groups()
    part = ((part or ".") + "000000")[:7]
    try:
        return datetime.fromisoformat(f"{day}T{clock}{part}{'+00:00' if zone in 'Zz' else zone}").astimezone(timezone.utc)
    except (ValueError, OverflowError):
        return None
