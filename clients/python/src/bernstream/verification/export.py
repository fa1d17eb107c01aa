"""The rows of a ledger as ``bernstream ledger export`` writes them: docs/proofs/ledger.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from typing import Any, Optional

from ..description import time
from ..errors import SynopsisError
from .chain import SPLIT, WHOLE, Line, Link
from .composition import Span, name, newest, span
from .prices import Price, add, price, show, within
from .report import Findings
from .witness import Head, Witness, accepted


@dataclass
class Export:
    """The rows by number, and what each block had spent after each of them."""

    ledger: str = ""
    total: Price = field(default_factory=dict)
    rows: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    digests: dict[int, str] = field(default_factory=dict)
    previous: Optional[Head] = None
    #: The last row whose digest cannot be computed from what is shown: nothing ties it, and those before, to the newest digest.
    loose: Optional[int] = None
    computed: set[int] = field(default_factory=set)
    spent: dict[Span, list[tuple[int, Price]]] = field(default_factory=dict)
    #: Where the next window starts.
    next_window: Optional[datetime] = None
    matched: int = 0

    @classmethod
    def read(cls, path: Path, found: Findings) -> Export:
        """Reads every row, follows the chain, and adds up what was charged."""
        export, before = cls(), Link()
        try:
            lines = path.read_bytes().decode("utf-8").split("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise SynopsisError(f"{path} cannot be read: {error}") from error
        if lines and not lines[-1]:
            del lines[-1]
        for number, text in enumerate(lines, 1):
            where = f"line {number} of the export"
            try:
                line = Line.read(text)
                export._link(line, before, where, found)
                export._take(line, where, found)
            except (ValueError, KeyError, TypeError, RecursionError, SynopsisError) as error:
                found.wrong(f"{where} is no row: {error}")
                return export
            before = line.link()
        if not export.rows:
            raise SynopsisError(f"{path} has no rows: is it a ledger export?")
        export._say(found)
        return export

    def _link(self, line: Line, before: Link, where: str, found: Findings) -> None:
        """Whether a row is in its place, and what its digest says."""
        row, last = line.sequence, max(self.rows, default=None)
        if last is not None and row != last + 1:
            found.wrong(f"{where}: row {last + 1} is missing, or not in its place: this is row {row}")
        if line.form == WHOLE and before.form == SPLIT:
            # Nobody could tell what it says from what somebody says that it says.
            found.wrong(f"{where}: row {row} is shown as one of an older program, and row {row - 1} before it is not")
        if (is_right := line.follows(before)) is None:
            self.loose = row
            if "window" not in line.row:
                found.wrong(f"{where}: row {row} has no salt, and nothing that a salt would hide")
        elif is_right:
            self.computed.add(row)
        else:
            found.wrong(f"{where}: the chain is broken: row {row} or one before it is not what its digest says")
        self.digests[row] = line.digest.hex()

    def _take(self, line: Line, where: str, found: Findings) -> None:
        """What a row says, by the rules of a ledger."""
        row, sequence = line.row, line.sequence
        if ("genesis" in row) == bool(self.rows):
            found.wrong(f"{where}: a genesis row must be the first row, and no other")
        self.rows[sequence] = row
        ((kind, said),) = row.items()
        if kind == "genesis":
            previous = said.get("previous")
            self.previous = None if previous is None else (previous["sequence"], previous["digest"])
            self.ledger, self.total, self.next_window = said["ledger"], price(said["total"]), _time(said["first"])
            if sequence != (0 if self.previous is None else self.previous[0] + 1):
                found.wrong(f"{where}: row {sequence} is not numbered as a first row")
        elif kind == "configuration":
            if self.next_window is not None and _time(said["first"]) < self.next_window:
                found.wrong(f"{where}: row {sequence} changes the settings of windows that are closed")
            self.next_window = _time(said["first"])
        elif kind == "window":
            self._close_window(sequence, said, where, found)
        else:
            raise ValueError(f"its kind is {kind}")

    def _close_window(self, sequence: int, said: Mapping[str, Any], where: str, found: Findings) -> None:
        at, charges = span(said["window"]), _charges(said)
        if (self.next_window is not None and at[0] != self.next_window) or at[1] <= at[0]:
            found.wrong(f"{where}: the window of row {sequence} is not the next one")
        self.next_window = at[1]
        if charges is None:
            return
        blocks = [block for block, _ in charges]
        is_joined = all(one[1] == other[0] for one, other in zip(blocks, blocks[1:]))
        if not blocks or not is_joined or blocks[0][0] > at[0] or blocks[-1][1] < at[1]:
            found.wrong(f"{where}: row {sequence} does not charge every block that its window overlaps")
        for block, paid in charges:
            if not any(paid.values()):
                found.wrong(f"{where}: row {sequence} charges nothing to the {name(block)}")
            history = self.spent.setdefault(block, [])
            now = add(history[-1][1], paid) if history else paid
            history.append((sequence, now))
            if self.total and not within(now, self.total):
                found.wrong(f"{where}: the {name(block)} has spent {show(now)}, more than its total, {show(self.total)}")

    def _say(self, found: Findings) -> None:
        first, last, ledger = min(self.rows), max(self.rows), f"ledger {self.ledger}"
        head, rows = self.digests[last], f"{ledger}: rows {first} to {last} of the export"
        if self.loose is None:
            found.holds(f"{rows} are chained without a gap, up to the digest {head}")
        else:
            found.holds(f"{rows} follow each other without a gap")
            found.believe(
                f"{ledger}: what the rows {first} to {self.loose} say, {self.loose + 1 - first} of {len(self.rows)}: older "
                "programs wrote them, and a public export does not tie them to the newest digest"
            )
            if (tied := self.loose + 1) <= last:
                found.holds(
                    f"{ledger}: rows {tied} to {last} are chained to the digest of row {tied - 1}, up to the digest {head}"
                )
        if self.previous is not None:
            found.believe(f"{ledger}: what the ledger before it has charged, which ended with row {self.previous[0]}")

    def witnessed(self, witness: Optional[Witness], found: Findings) -> None:
        """Compares the digests with those that the witness has accepted."""
        if not self.rows:
            return
        ledger, first, last = f"ledger {self.ledger}", min(self.rows), max(self.rows)
        if witness is None:
            found.believe(
                f"{ledger}: that its newest row is row {last} with the digest {self.digests[last]}, and that everybody is "
                "shown the same: compare it with what the witness has accepted"
            )
            return
        heads = accepted(witness, found)
        if self.previous is not None and self.previous not in heads:
            found.wrong(f"{ledger}: it follows a row {self.previous[0]} that the witness has not accepted")
        ours = [head for head in heads if first <= head[0] <= last]
        for sequence, digest in ours:
            if self.digests.get(sequence, digest) != digest:
                found.wrong(f"{ledger}: the witness has accepted another row {sequence}, with the digest {digest}")
        if not ours:
            found.wrong(f"{ledger}: the witness has accepted none of its rows")
            return
        for sequence in sorted(self.computed & {head[0] for head in ours}):
            if self.loose is not None and sequence < self.loose:
                found.holds(f"{ledger}: the witness has accepted row {sequence}, of an older program, as the export shows it")
        newest_of_ours, digest = ours[-1]
        if self.digests.get(newest_of_ours) == digest:
            found.holds(
                f"{ledger}: the witness has accepted its rows up to row {newest_of_ours}, with the digest of the export"
            )
        if newest_of_ours < last:
            found.believe(f"{ledger}: rows {newest_of_ours + 1} to {last}, which the witness has not accepted")
        if heads[-1][0] > last:
            found.believe(
                f"{ledger}: rows {last + 1} to {heads[-1][0]}, which the witness has accepted: they are not in the export"
            )

    def match(self, document: Mapping[str, Any], digest: Optional[str], found: Findings) -> None:
        """Compares a synopsis with the row that paid for it."""
        entry, privacy = document["ledger"], document["privacy"]
        where = f"{document['release']}, row {entry['sequence']}"
        if entry["id"] != self.ledger:
            return
        row = self.rows.get(entry["sequence"])
        closed = None if row is None else row.get("window")
        if closed is None or _charges(closed) is None:
            found.wrong(f"{where}: the export has no such row, or it released nothing")
            return
        self.matched += 1
        if newest(document) != span(closed["window"]):
            found.wrong(f"{where}: its window is not that of the row")
        digests = {message["bytes"] for message in closed["outcome"]["released"]["messages"]}
        if digest is not None and digest not in digests:
            found.wrong(f"{where}: its bytes are not those that the row paid for")
        for block in privacy["blocks"]:
            at, spent = span(block), price(block["spent"])
            history = dict(self.spent.get(at, ()))
            if history.get(entry["sequence"]) != spent:
                told = show(history[entry["sequence"]]) if entry["sequence"] in history else "nothing"
                found.wrong(f"{where}: it says that the {name(at)} has spent {show(spent)}, by the export it was {told}")

    def close(self, found: Findings) -> None:
        most = {part: max((now[-1][1][part] for now in self.spent.values()), default=Fraction(0)) for part in self.total}
        found.holds(
            f"ledger {self.ledger}: {self.matched} synopses say what its export says; no block has spent more than its total, "
            f"at most {show(most)} of {show(self.total)}"
        )


def _time(found: Any) -> datetime:
    if (at := time(found)) is None:
        raise ValueError(f"{found!r} is not a time")
    return at


def _charges(closed: Mapping[str, Any]) -> Optional[list[tuple[Span, Price]]]:
    """What a window charged to each block; None where it was withheld."""
    outcome = closed["outcome"]
    if outcome == "withheld":
        return None
    return [(span(at), price(paid)) for at, paid in outcome["released"]["charges"]]
