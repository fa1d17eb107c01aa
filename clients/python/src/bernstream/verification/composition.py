"""What all synopses of a ledger cost together: docs/proofs/composition.md."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any, Optional

from ..errors import SynopsisError
from ..fields import time
from .cost import epsilon_of_rho, gaussian_curve
from .prices import Price, add, price, show, within
from .report import Findings

Span = tuple[datetime, datetime]

_TICK = timedelta(microseconds=1)
#: A duration as the program writes it, such as "1d 12h".
_DURATION = re.compile(r"([0-9]{1,18})(d|h|ms|us|m|s)")
_LENGTHS = {
    "d": timedelta(days=1),
    "h": timedelta(hours=1),
    "m": timedelta(minutes=1),
    "s": timedelta(seconds=1),
    "ms": timedelta(milliseconds=1),
    "us": _TICK,
}


def span(found: Mapping[str, Any]) -> Span:
    start, end = time(found["start"]), time(found["end"])
    if start is None or end is None:
        raise SynopsisError(f"{found['start']} or {found['end']} is not a time")
    return start, end


def name(block: Span) -> str:
    return f"block {block[0].isoformat()} to {block[1].isoformat()}"


@dataclass
class _Block:
    """What was charged: by row and release, and what the newest row says of it."""

    total: Price
    newest: int
    spent: Price
    charged: dict[tuple[int, str], Price] = field(default_factory=dict)


@dataclass
class Books:
    """The synopses of one ledger."""

    pipeline: str
    ledger: str
    blocks: dict[Span, _Block] = field(default_factory=dict)
    #: The digest of the content by row, release and key; and the row by release, key and window.
    seen: dict[tuple[int, str, Any], str] = field(default_factory=dict)
    windows: dict[tuple[str, Any, Any], int] = field(default_factory=dict)

    def add(self, document: Mapping[str, Any], content: str, where: str, found: Findings) -> None:
        row, release, key = document["ledger"]["sequence"], document["release"], document.get("key")
        if self.seen.setdefault((row, release, key), content) != content:
            found.wrong(f"{where}: row {row} was published in two versions")
            return
        window = (release, key, newest(document))
        if self.windows.setdefault(window, row) != row:
            found.wrong(f"{where}: its window was published again, by rows {self.windows[window]} and {row}")
        paid = price(document["privacy"]["price"])
        for block in document["privacy"]["blocks"]:
            self._charge(span(block), price(block["spent"]), price(block["total"]), paid, (row, release), where, found)

    def _charge(
        self, at: Span, spent: Price, total: Price, paid: Price, of: tuple[int, str], where: str, found: Findings
    ) -> None:
        if not within(spent, total):
            found.wrong(f"{where}: the {name(at)} has spent {show(spent)}, more than its total, {show(total)}")
        if not within(paid, spent):
            found.wrong(f"{where}: it cost {show(paid)}, but the {name(at)} has spent {show(spent)} with it")
        block = self.blocks.setdefault(at, _Block(total, of[0], spent))
        if block.total != total:
            found.wrong(f"{where}: the total of the {name(at)} is {show(total)}, and {show(block.total)} elsewhere")
        block.charged[of] = paid
        older, newer = ((block.newest, block.spent), (of[0], spent))
        if older[0] > newer[0]:
            older, newer = newer, older
        if (older[0] == newer[0] and older[1] != newer[1]) or not within(older[1], newer[1]):
            found.wrong(
                f"{where}: the {name(at)} has spent {show(newer[1])} by row {newer[0]}, {show(older[1])} by row {older[0]}"
            )
        block.newest, block.spent = newer

    def close(self, found: Findings) -> None:
        """Compares what the synopses cost together with what they say was spent."""
        missing = 0
        for at, block in sorted(self.blocks.items()):
            sum_of: Price = {part: Fraction(0) for part in block.total}
            for paid in block.charged.values():
                sum_of = add(sum_of, paid)
            if not within(sum_of, block.spent):
                found.wrong(
                    f"ledger {self.ledger}: the synopses of the {name(at)} cost {show(sum_of)} together, more than the "
                    f"{show(block.spent)} that its newest says were spent"
                )
            missing += sum_of != block.spent
        if self.blocks:
            worst = max(self.blocks.values(), key=lambda block: max(block.spent.values()))
            found.holds(
                f"ledger {self.ledger}: the prices of {len(self.seen)} synopses add up; of {len(self.blocks)} blocks none has "
                f"spent more than its total, at most {show(worst.spent)} of {show(worst.total)}"
            )
        if missing:
            found.believe(f"ledger {self.ledger}: what {missing} blocks spent on synopses that are not here")


def newest(document: Mapping[str, Any]) -> Span:
    """The newest pane of a synopsis, or its window."""
    panes = document.get("panes")
    return span(panes["newest"] if panes else document["window"])


def paid_for(document: Mapping[str, Any]) -> Span:
    """The time that it was paid for: a sum over windows pays for its newest one alone."""
    panes = document.get("panes") or {}
    return newest(document) if panes.get("step") is not None else span(document["window"])


def check_overlaps(books: Iterable[Books], found: Findings) -> None:
    """No two ledgers of a pipeline charge the same time: what a unit loses in both adds up, and neither knows of the other."""
    last: dict[str, tuple[Span, str]] = {}
    charged = [(block, book.pipeline, book.ledger) for book in books for block in book.blocks]
    for block, pipeline, ledger in sorted(charged):
        before, other = last.get(pipeline, (None, ledger))
        if before is not None and ledger != other and block[0] < before[1]:
            found.wrong(f"{pipeline}: the {name(block)} of ledger {ledger} overlaps the {name(before)} of ledger {other}")
        if before is None or before[1] < block[1]:
            last[pipeline] = block, ledger


def period(unit: Any) -> Optional[timedelta]:
    """How long all records of a user are one unit; None for ever. Raises an error where it is no duration."""
    if (written := unit["user"]["per"]) == "ever":
        return None
    parts = written.split(" ")
    found = [_DURATION.fullmatch(part) for part in parts]
    try:
        length = sum((int(part[1]) * _LENGTHS[part[2]] for part in found if part), timedelta())
    except OverflowError:
        length = timedelta()
    if not all(found) or not length:
        raise SynopsisError(f"its unit is a user in a period of {str(written)[:40]!r}, which is no duration")
    return length


def panes_of_a_unit(document: Mapping[str, Any]) -> Optional[int]:
    """In how many windows of the grid a unit can be; None where nothing says it."""
    unit = document["privacy"]["unit"]
    if unit == "record":
        return 1
    if (length := period(unit)) is None:
        return None
    start, end = newest(document)
    window = end - start
    # A period starts a multiple of the divisor after a window does.
    step = math.gcd(length // _TICK, window // _TICK) * _TICK
    return -(-(window - step + length) // window)


def check_blocks(document: Mapping[str, Any], where: str, found: Findings) -> None:
    """Every moment that the synopsis was paid for lies in a block that was charged, and all of a user's period in one block."""
    start, end = paid_for(document)
    unit = document["privacy"]["unit"]
    length = None if unit == "record" else period(unit)
    for block in sorted(span(block) for block in document["privacy"]["blocks"]):
        # All of time, as it is written.
        is_all = block[0].year == 1 and block[1].year == 9999
        if unit != "record" and not (is_all if length is None else block[1] - block[0] == length):
            found.wrong(f"{where}: the {name(block)} is not a period of its unit, {unit['user']['per']}, which has one total")
        if block[0] <= start:
            start = max(start, block[1])
    if start < end:
        found.wrong(f"{where}: {start.isoformat()} to {end.isoformat()} lies in no block that it charged")


def check_implied(privacy: Mapping[str, Any], where: str, found: Findings) -> None:
    """What a total means in epsilon and delta."""
    if (implied := privacy.get("implies")) is None or not privacy["blocks"]:
        return
    parts = price(implied)
    epsilon, delta = float(parts["epsilon"]), float(parts["delta"])
    total = price(privacy["blocks"][0]["total"])
    words = f"a total of {show(total)} implies epsilon {epsilon:g} at delta {delta:g}"
    if set(total) != {"rho"}:
        return
    rho = float(total["rho"])
    by_any = delta > 0.0 and epsilon_of_rho(rho, delta) <= epsilon * (1.0 + 1e-9)
    by_curve = privacy["definition"] == "gaussian" and gaussian_curve((2.0 * rho) ** 0.5, epsilon) <= delta
    if by_any or by_curve:
        found.holds(f"{where}: {words}")
    else:
        found.wrong(f"{where}: it says that {words}, which is too little")
