"""Counts by key: docs/proofs/counts.md; quantiles: docs/proofs/quantiles.md."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..description import Description
from ..errors import SynopsisError
from ..forms import Keys
from ..keys import Counted
from .changes import Needed
from .report import Findings

#: The columns of each statistic that has a part of the price, of values the middle only with variances; of ranges all.
_COLUMNS: dict[str, tuple[str, ...]] = {
    "users": ("users",),
    "records": ("records",),
    "values": ("low", "middle", "high"),
    "sums": ("sum",),
    "ranges": (),
    "caps": (),
}
#: What floats lose, and what whole grid units lose of a part.
_FLOATS, _PARTS = 1e-9, 1e-5


@dataclass(frozen=True)
class Change:
    """The largest change of a statistic by a unit in one key, in units of the noise."""

    size: float
    #: How many columns change by as much where a unit is added, and where a record is replaced.
    added: int
    replaced: int
    #: In how many keys: numbers of units change in one bin, whatever the unit has.
    keys: int


def needed(about: Description, norm: str, adjacency: str) -> Needed:
    """A unit is in at most ``max_keys`` keys, and changes each statistic of a key by no more than its cap."""
    counted = _counted(about)
    changes = _changes(about, counted)
    replaced = adjacency == "replace_one"
    if replaced and not changes.keys().isdisjoint(("users", "sums", "caps")):
        raise SynopsisError("where a record is replaced its user stays: users and sums of users have no sensitivity")
    power = 2 if norm == "2-norm" else 1
    times = [change.keys * (change.replaced if replaced else change.added) for change in changes.values()]
    whole = math.fsum(many * change.size**power for many, change in zip(times, changes.values()))
    return Needed(whole ** (1.0 / power), _FLOATS)


def check_parts(about: Description, norm: str, where: str, found: Findings) -> None:
    """Compares what the noise of each statistic takes of the price with its part of it."""
    counted, power = _counted(about), 2 if norm == "2-norm" else 1
    sizes = {of: change.keys * change.size**power for of, change in _changes(about, counted).items()}
    whole = sum(sizes.values())
    for of, part in counted.parts.items():
        if not math.isclose(sizes[of] / whole, part, rel_tol=_PARTS):
            found.wrong(f"{where}: {of} have {sizes[of] / whole:.6g} of the price, and not the {part:.6g} that it says")
            return
    shares = ", ".join(f"{of} {part:g}" for of, part in counted.parts.items())
    found.holds(f"{where}: the price is divided as it says: {shares}")


def _counted(about: Description) -> Counted:
    assert about.counted is not None
    return about.counted


def _changes(about: Description, counted: Counted) -> dict[str, Change]:
    """Of each statistic that has a part of the price. Raises an error unless every column belongs to one of them."""
    assert isinstance(about.basis, Keys)
    units = {column.statistic: column.unit for column in about.basis.columns}
    found = {}
    for of in counted.parts:
        if of == "caps" and (told := about.basis.told) is not None:
            found[of] = Change(1.0 / told.unit, 1, 1, 1)
            continue
        if of not in _COLUMNS:
            raise SynopsisError(f"it has a part of the price for '{of}', which this package does not know")
        names = list(units) if of == "ranges" else [name for name in _COLUMNS[of] if name != "middle" or name in units]
        columns = [units.pop(column, None) for column in names]
        if not columns or columns[0] is None or any(unit != columns[0] for unit in columns):
            raise SynopsisError(f"it has a part of the price for {of}, and no such column")
        # A value is in one range of each level, and in another one where it is replaced. Of values a whole record goes from one
        # column to another at most.
        levels = 1 if counted.quantiles is None or counted.quantiles.grid.block is None else 2
        added, replaced = (levels, 2 * levels) if of == "ranges" else (1, min(len(columns), 2))
        found[of] = Change(_most(of, counted) / columns[0], added, replaced, counted.max_keys)
    if about.basis.told is not None and "caps" not in found:
        raise SynopsisError("nothing was paid for its numbers of units")
    if units:
        raise SynopsisError(f"nothing was paid for its column {next(iter(units))}")
    return found


def _most(of: str, counted: Counted) -> float:
    """The largest change in natural units. Of a value all columns together: they add up to its records."""
    if of in ("users", "ranges"):
        return 1.0
    if of == "sums":
        if counted.per_user is None:
            raise SynopsisError("it sums values of users without bounds for each")
        return max(abs(end) for end in counted.per_user)
    if counted.max_records is None:
        raise SynopsisError("it counts records without a cap for each user and key")
    return float(counted.max_records)
