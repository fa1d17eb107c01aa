"""Keys that nobody listed: docs/proofs/found-keys.md. The threshold, and what one table announces to those that follow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import Any, Optional

from ..arrays import Array
from ..description import Description
from ..forms import Keys
from ..found_keys import UNIT, FoundKeys
from .composition import Span
from .prices import Price
from .report import Findings

#: What the test whether there are too many keys takes of the price of a window.
_OVERFULL_PART, _OVERFULL_DELTA = Fraction(1, 1000), Fraction(1, 10**12)
_DIGITS = Context(prec=60)


def rule_of(about: Description) -> Optional[FoundKeys]:
    """The rule by which a table found its keys; None of everything else."""
    return about.basis.found if isinstance(about.basis, Keys) else None


def selection_price(paid: Price, rule: FoundKeys) -> Price:
    """What of the price of a window is for its counts."""
    if rule.overfull is None:
        return paid
    return {**paid, "epsilon": paid["epsilon"] * (1 - _OVERFULL_PART), "delta": paid["delta"] - _OVERFULL_DELTA}


def check_rule(about: Description, document: Mapping[str, Any], paid: Price, where: str, found: Findings) -> None:
    """Whether a key that one unit alone holds is named with no more than the delta that was paid."""
    rule = rule_of(about)
    if rule is None:
        return
    assert isinstance(about.basis, Keys) and about.counted is not None
    if set(paid) != {"epsilon", "delta"} or document["privacy"]["adjacency"] != "add_remove":
        found.wrong(f"{where}: keys are found for a price with a delta, where a unit is added or removed")
        return
    most = about.counted.max_keys
    scale, units = (
        Fraction(document["noise"]["scale"]) / Fraction(document["noise"]["grid"]),
        1 / Fraction(about.basis.columns[0].unit),
    )
    if (own := selection_price(paid, rule))["delta"] < rule.delta:
        found.wrong(f"{where}: its threshold is for a delta of {float(rule.delta):g}, above the {float(own['delta']):g} paid")
    elif (needed := upper_mass(scale, units, rule.threshold) * most) > rule.delta:
        found.wrong(
            f"{where}: its threshold of {float(rule.threshold / units):.4g} is too low: a key of one unit is named with "
            f"{float(needed):.3g}, more than the delta of {float(rule.delta):g}"
        )
    else:
        found.holds(
            f"{where}: a key that one unit alone holds is named with a probability of {float(rule.delta):g} at most, by the "
            f"threshold of {float(rule.threshold / units):.4g}"
        )
    _check_overfull(rule, paid, most, where, found)


def _check_overfull(rule: FoundKeys, paid: Price, most: int, where: str, found: Findings) -> None:
    """The noise of the number of keys is bounded, half of the way from the soft limit to the limit."""
    if rule.overfull is None:
        return
    bound = (rule.overfull.limit - rule.overfull.soft_limit - 1) // 2
    scale = most / (paid["epsilon"] * _OVERFULL_PART)
    if bound < most or upper_mass(scale, Fraction(most), bound) > _OVERFULL_DELTA:
        found.wrong(f"{where}: its limits of keys are too near to each other for the test whether there are too many")
    else:
        found.holds(f"{where}: its limits of keys are as far apart as the test needs whether there are too many")


def upper_mass(scale: Fraction, change: Fraction, bound: int) -> Fraction:
    """Of discrete Laplace noise within a bound the mass of the highest points that a change reaches; 1 if it reaches 0."""
    if change > bound or change.denominator != 1:
        return Fraction(1)
    with localcontext(_DIGITS):
        step = Decimal(scale.denominator) / Decimal(scale.numerator)
        whole = 1 + (-step).exp() - 2 * (-step * (bound + 1)).exp()
        reached = (-step * (bound + 1 - int(change))).exp() * (1 - (-step * int(change)).exp())
        return Fraction(reached / whole)


@dataclass(frozen=True)
class _FoundTable:
    """What a table says of its keys."""

    window: Span
    settings: str
    keys: tuple[str, ...]
    #: Whether the published count of each is above the threshold.
    above: tuple[bool, ...]
    rule: FoundKeys
    #: Until when keys stay that this window finds, or publishes above the threshold.
    renewed: datetime


@dataclass
class FoundTables:
    """All tables of found keys of one release of a ledger, by row of the ledger."""

    where: str
    tables: dict[int, _FoundTable] = field(default_factory=dict)

    def add(self, about: Description, document: Mapping[str, Any], values: Array) -> None:
        rule = rule_of(about)
        assert rule is not None and isinstance(about.basis, Keys)
        settings, renewed = document["digests"]["configuration"], rule.renewed(about.window[1])
        above = tuple(number > rule.threshold * UNIT for number in values.tolist())
        table = _FoundTable(about.window, settings, about.basis.keys, above, rule, renewed)
        self.tables.setdefault(document["ledger"]["sequence"], table)

    def close(self, found: Findings) -> None:
        """Compares each table with the one before: what was announced is published, and only that and what is new."""
        announced: Optional[dict[str, datetime]] = None
        before: Optional[_FoundTable] = None
        unknown = sound = 0
        for row, table in sorted(self.tables.items()):
            if before is not None and (before.window[1] != table.window[0] or before.settings != table.settings):
                announced = None
            unknown += announced is None
            wrong = list(_contradictions(table, announced))
            for words in wrong:
                found.wrong(f"{self.where}, row {row}: {words}")
            sound += not wrong
            if not table.rule.is_overfull:
                announced = dict(zip(table.keys, table.rule.until))
            before = table
        if sound:
            found.holds(f"{self.where}: {sound} tables have the keys that were announced before, and new ones")
        if unknown:
            found.believe(f"{self.where}: what was announced before {unknown} tables, without those of the windows before")
        found.believe(f"{self.where}: that keys which were found and are not published had the smallest counts")


def _contradictions(table: _FoundTable, announced: Optional[Mapping[str, datetime]]) -> Iterator[str]:
    """What a table says against its rule, and against the keys that were announced before, where these are known."""
    start = table.window[0]
    live = None if announced is None else {key: until for key, until in announced.items() if start < until}
    for key, is_above, is_new, until in zip(table.keys, table.above, table.rule.new, table.rule.until):
        is_live = live is not None and key in live
        if is_new and is_live:
            yield f"the key {key!r} is new, and was announced before"
        if not is_new and live is not None and not is_live:
            yield f"the key {key!r} was not announced before, and is not new"
        # What is above the threshold is announced anew, and what is not stays as long as it was told, by a window before.
        told = until if live is None else live.get(key, until)
        if not is_above and (until != told or until > table.renewed - (table.window[1] - start)):
            yield f"the key {key!r} is published until {until.isoformat()}, which is not what its rule says"
    if live is not None and not table.rule.is_overfull and len(table.keys) < table.rule.most:
        for key in sorted(live.keys() - set(table.keys)):
            yield f"the key {key!r} was announced until {live[key].isoformat()}, and is missing"
