"""The label of a synopsis of cells: what divides the records among its tables."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Optional

from .errors import SynopsisError
from .fields import Fields

#: The most classes of a label.
MOST_CLASSES = 16


@dataclass(frozen=True)
class Label:
    column: str
    #: The table whose probability is shown where none is asked for.
    shown: int
    #: Of a number: the range that it was clipped to or must lie in.
    range: Optional[tuple[float, float]]
    #: The classes, one per table: 0 and 1 of a label that is above a threshold; none of a number.
    classes: tuple[Any, ...]

    @property
    def tables(self) -> int:
        return 2 if self.range is not None else len(self.classes)


def label_of(target: Fields) -> Optional[Label]:
    """The label of a target ``cells``; None if it has none."""
    if target.found.get("label") is None:
        return None
    kind, content = target.variant("label")
    about = Fields(content, f"{target.place}label.{kind}.")
    column = about.text("column")
    if kind == "number":
        low, high = about.number("min"), about.number("max")
        if not (high > low and math.isfinite(high - low)):
            raise SynopsisError(f"not a synopsis: the label '{column}' has no proper range")
        return Label(column, 1, (low, high), ())
    if kind == "above":
        about.number("above")
        return Label(column, 1, None, (0, 1))
    if kind == "classes":
        values = tuple(about.list("values"))
        if not 2 <= len(values) <= MOST_CLASSES or not all(isinstance(value, (str, int, float)) for value in values):
            raise about.wrong("values", f"are not 2 to {MOST_CLASSES} texts or numbers")
        return Label(column, 0, None, values)
    raise target.wrong("label", f"is '{kind}', which this package does not know")
