"""The change that the noise of a synopsis must hide, recomputed from what the synopsis says of its function."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ..description import Description
from . import by_key, densities, fits, sums
from .changes import Needed
from .declared import Declared
from .report import Findings


def check(about: Description, document: Mapping[str, Any], declared: Declared, where: str, found: Findings) -> None:
    """Compares the declared sensitivity with the recomputed one."""
    privacy, grid, norm = document["privacy"], document["noise"]["grid"], declared.norm
    records = _records(privacy["unit"])
    if declared.records != records:
        counted = f"its sensitivity is for {declared.records} records, but a unit has up to {records} in a window"
        found.wrong(f"{where}: {counted}")
    change = declared.units * grid
    if isinstance(privacy["definition"], Mapping):
        words = "its sensitivity, sampled on a public prior: this is random differential privacy, a weaker promise"
        found.believe(f"{where}: {words}")
        return
    needed = recompute(about, document, norm, privacy["adjacency"], grid)
    # The caps of counts hold for all records of a unit.
    least = needed.change * (1 if about.kind == "counts" else records)
    if change < least * (1.0 - needed.tolerance):
        found.wrong(
            f"{where}: its sensitivity is {change:.6g} in the {norm}, "
            f"but {_unit(privacy['unit'])} changes the values by {least:.6g}"
        )
        return
    if needed.change > 0.0:
        more = change / least - 1.0
        found.holds(
            f"{where}: {_unit(privacy['unit'])} changes the values by at most {change:.6g} in the {norm}"
            + (f" ({100.0 * more:.1f} % above what was recomputed)" if more > 5e-4 else " (recomputed)")
        )
    if about.kind == "counts":
        by_key.check_parts(about, norm, where, found)
    if needed.believed is not None:
        found.believe(f"{where}: {needed.believed}")


def recompute(about: Description, document: Mapping[str, Any], norm: str, adjacency: str, grid: float) -> Needed:
    """For one record, in natural units; of counts by key for a unit, in units of the noise."""
    if about.kind == "cells":
        return densities.of_tables(about, norm, adjacency)
    if about.kind == "density":
        return densities.needed(about, document, norm, adjacency, grid)
    if about.kind == "sum":
        return sums.of_expression(about, norm, adjacency, grid)
    if about.kind == "counts":
        return by_key.needed(about, norm, adjacency)
    if about.kind == "moments":
        return sums.of_moments(about, norm, adjacency, grid)
    return fits.needed(about, norm, adjacency, grid)


def _records(unit: Any) -> int:
    return 1 if unit == "record" else int(unit["user"].get("max_records_per_window", 1))


def _unit(unit: Any) -> str:
    if unit == "record":
        return "one record"
    most = unit["user"].get("max_records_per_window")
    return "a user" if most is None else f"a user with {most} records"


def is_multiple(scale: float, grid: float) -> bool:
    """Scales are multiples of 16 grid units; beyond 2^50 units a float cannot tell."""
    units = scale / grid
    return units > 2.0**50 or math.isclose(units, 16.0 * round(units / 16.0), rel_tol=1e-12)
