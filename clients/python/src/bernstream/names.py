"""What the operator declared for people: a title, what a record is, labels and units of axes. Public text and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Optional


class Names:
    """The names of a description; whatever is missing or no text is not there."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        found = document.get("names")
        self._found: Mapping[str, Any] = found if isinstance(found, Mapping) else {}
        axes = self._found.get("axes")
        self._axes: Sequence[Any] = axes if isinstance(axes, Sequence) and not isinstance(axes, str) else ()

    @property
    def title(self) -> Optional[str]:
        return _text(self._found, "title")

    @property
    def description(self) -> Optional[str]:
        return _text(self._found, "description")

    @property
    def record(self) -> str:
        return _text(self._found, "record") or "record"

    def label(self, axis: int) -> Optional[str]:
        return self._of_axis(axis, "label")

    def unit(self, axis: int) -> Optional[str]:
        return self._of_axis(axis, "unit")

    def _of_axis(self, axis: int, name: str) -> Optional[str]:
        found = self._axes[axis] if axis < len(self._axes) else None
        return _text(found, name) if isinstance(found, Mapping) else None


def several(noun: str) -> str:
    """The plural of an English noun; of an abbreviation such as "km" itself. As on the page."""
    vowels = "aeiou"
    if len(noun) < 4 and not (any(c in vowels for c in noun[:-1]) and noun.isalpha() and noun.islower()):
        return noun
    if noun.endswith("y") and noun[-2:-1] not in vowels:
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith(("s", "x", "z", "ch", "sh")) else f"{noun}s"


def _text(of: Mapping[str, Any], name: str) -> Optional[str]:
    found = of.get(name)
    return found if isinstance(found, str) and found.strip() else None
