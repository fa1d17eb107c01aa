"""What a synopsis says that its noise was made for: clients/FORMAT.md."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Optional

from ..errors import SynopsisError

#: Of a tree a value has at least this part of the deviation of a draw: a node and its children are combined by their variances.
_TREE = math.sqrt(0.5)


@dataclass(frozen=True)
class Fresh:
    """The noise that is drawn for a sum over windows."""

    scale: float
    #: In how many draws a pane is with all of itself; None where it is a part of many.
    nodes: Optional[int]
    #: The squared 2-norm of the changes as which a change of one pane comes back.
    norm_squared: float

    @classmethod
    def read(cls, found: Mapping[str, Any]) -> Fresh:
        scale = _positive(found.get("scale"), "fresh.scale")
        if "norm_squared" in found:
            # The first of them is the change itself.
            if (squared := _positive(found["norm_squared"], "fresh.norm_squared")) < 1.0:
                raise SynopsisError("its sensitivity.fresh.norm_squared is below 1")
            return cls(scale, None, squared)
        return cls(scale, _whole(found.get("nodes"), "fresh.nodes", 1), 1.0)


@dataclass(frozen=True)
class Declared:
    """How far neighbours are apart, in whole grid units, for a unit of so many records that can change so many values."""

    norm: str
    units: int
    records: int
    values: int
    fresh: Optional[Fresh]

    @classmethod
    def read(cls, document: Mapping[str, Any], count: int) -> Declared:
        """Of a synopsis of ``count`` values. Raises an error unless every number is one."""
        found = document["sensitivity"]
        fresh = None if found.get("fresh") is None else Fresh.read(found["fresh"])
        if fresh is not None:
            if (document.get("panes") or {}).get("step") is None:
                raise SynopsisError("its sensitivity is that of a sum over windows, and it is none")
            least = fresh.scale * (1.0 if fresh.nodes in (None, 1) else _TREE)
            if not document["noise"]["scale"] >= least * (1.0 - 1e-9):
                raise SynopsisError("its noise.scale is below that of the noise that is drawn, sensitivity.fresh.scale")
        return cls(
            norm=found["norm"],
            units=_whole(found["units"], "units", 1),
            records=_whole(found["records"], "records", 1),
            values=_whole(found["values"], "values", count),
            fresh=fresh,
        )


def _whole(found: Any, name: str, least: int) -> int:
    if type(found) is not int or not least <= found <= 2**64:
        raise SynopsisError(f"its sensitivity.{name} is {found!r}, and not a whole number from {least} to 2^64")
    return found


def _positive(found: Any, name: str) -> float:
    if type(found) not in (int, float) or not 0.0 < found < math.inf:
        raise SynopsisError(f"its sensitivity.{name} is {found!r}, and not a number above 0")
    return float(found)
