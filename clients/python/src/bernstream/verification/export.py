"""The rows of a ledger as ``bernstream ledger export`` writes them: docs/proofs/composition.md."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, Optional

from ..errors import SynopsisError
from .composition import Span, name, span
from .prices import Price, add, price, show, within
from .report import Findings

_ROW = ',"row":'
_TAG = b"bernstream ledger row 1\n"


@dataclass
class Export:
    """The rows by number, and what each block had spent after each of them."""

    ledger: str = ""
    total: Price = field(default_factory=dict)
    rows: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    spent: dict[Span, list[tuple[int, Price]]] = field(default_factory=dict)
    matched: int = 0

    @classmethod
    def read(cls, path: Path, found: Findings) -> Export:
        """Reads every row and follows the chain: each digest is that of the one before, the number, the salt and the row."""
        export, before, next_row, is_whole = cls(), bytes(32), None, True
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            where = f"line {number} of the export"
            try:
                about, text = _split(line)
                row, sequence, digest = json.loads(text), int(about["sequence"]), bytes.fromhex(about["digest"])
                salt = None if about.get("salt") is None else bytes.fromhex(about["salt"])
            except (ValueError, KeyError, TypeError) as error:
                found.wrong(f"{where} is no row: {error}")
                return export
            if next_row is not None and sequence != next_row:
                found.wrong(f"{where}: row {next_row} is missing, or not in its place: this is row {sequence}")
            next_row = sequence + 1
            if salt is None or not _is_whole(row):
                is_whole = False
            elif hashlib.sha256(_TAG + before + sequence.to_bytes(8, "big") + salt + text.encode()).digest() != digest:
                found.wrong(f"{where}: the chain is broken: row {sequence} or one before it is not what its digest says")
            before = digest
            export._take(sequence, row, where, found)
        if not export.rows:
            raise SynopsisError(f"{path} has no rows: is it a ledger export?")
        rows = f"ledger {export.ledger}: rows {min(export.rows)} to {max(export.rows)} of the export"
        if is_whole:
            found.holds(f"{rows} are chained without a gap")
        else:
            found.holds(f"{rows} follow each other without a gap")
            found.believe(f"{rows}: their digests, of which the public form leaves out what is secret")
        return export

    def _take(self, sequence: int, row: Mapping[str, Any], where: str, found: Findings) -> None:
        self.rows[sequence] = row
        if "genesis" in row:
            self.ledger, self.total = row["genesis"]["ledger"], price(row["genesis"]["total"])
        for at, paid in _charges(row):
            history = self.spent.setdefault(at, [])
            now = add(history[-1][1], paid) if history else paid
            history.append((sequence, now))
            if self.total and not within(now, self.total):
                found.wrong(f"{where}: the {name(at)} has spent {show(now)}, more than its total, {show(self.total)}")

    def match(self, document: Mapping[str, Any], digest: Optional[str], found: Findings) -> None:
        """Compares a synopsis with the row that paid for it."""
        entry, privacy = document["ledger"], document["privacy"]
        where = f"{document['release']}, row {entry['sequence']}"
        if entry["id"] != self.ledger:
            return
        row = self.rows.get(entry["sequence"])
        released = None if row is None else row.get("window", {}).get("outcome", {})
        if not isinstance(released, Mapping) or "released" not in released:
            found.wrong(f"{where}: the export has no such row, or it released nothing")
            return
        self.matched += 1
        digests = {message["bytes"] for message in released["released"]["messages"]}
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


def _split(line: str) -> tuple[dict[str, Any], str]:
    """What is said about a row, and the row's own text, which the digest is of."""
    about, separator, text = line.partition(_ROW)
    if not separator or not text.endswith("}"):
        raise ValueError("it has no row")
    found: dict[str, Any] = json.loads(about + "}")
    return found, text[:-1]


def _is_whole(row: Mapping[str, Any]) -> bool:
    """Whether the row still has the ends of the input, which are exact counts and no part of the public form."""
    return "window" not in row or "ends" in row["window"]


def _charges(row: Mapping[str, Any]) -> list[tuple[Span, Price]]:
    outcome = row.get("window", {}).get("outcome", {})
    if not isinstance(outcome, Mapping) or "released" not in outcome:
        return []
    return [(span(at), price(paid)) for at, paid in outcome["released"]["charges"]]
