"""The rows of a ledger as ``bernstream ledger export`` writes them: docs/proofs/ledger.md."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from functools import reduce
from pathlib import Path
from typing import Any, Optional

from ..errors import SynopsisError
from .chain import SPLIT, WHOLE, Gap, Line, Link
from .composition import Span, name, newest, paid_for, span
from .prices import Price, add, price, show, within
from .report import Findings
from .rows import Configuration, Genesis, Row, Window, row_of
from .witness import Head, Witness, accepted


@dataclass
class Export:
    """The rows by number, and what each block had spent after each of them."""

    ledger: str = ""
    total: Price = field(default_factory=dict)
    rows: dict[int, Row] = field(default_factory=dict)
    digests: dict[int, str] = field(default_factory=dict)
    previous: Optional[Head] = None
    #: The last row whose digest cannot be computed from what is shown: nothing ties it, and those before, to the newest digest.
    loose: Optional[int] = None
    #: The last row that an older program wrote.
    older: Optional[int] = None
    #: The rows that the ledger does not have, and when the first window after them starts.
    gap: Optional[Gap] = None
    goes_on: Optional[datetime] = None
    computed: set[int] = field(default_factory=set)
    spent: dict[Span, list[tuple[int, Price]]] = field(default_factory=dict)
    #: Where the next window starts.
    next_window: Optional[datetime] = None
    #: When the ledger's share of a budget ends.
    until: Optional[datetime] = None
    #: What the synopses of a row cost, by release and blocks.
    prices: dict[int, dict[tuple[str, frozenset[Span]], Price]] = field(default_factory=dict)
    #: All blocks that were charged, in order.
    blocks: list[Span] = field(default_factory=list)
    #: How many synopses are of this ledger, how many of them say what it says, and of these, of rows that have to
    #: be believed, and of the others, with bytes to compare.
    ours: int = 0
    matched: int = 0
    by_bytes: int = 0
    by_belief: int = 0
    #: How many are of rows in the gap, and of how many others it says what some blocks had spent in part.
    in_gap: int = 0
    by_part: int = 0
    #: How many are of other ledgers.
    others: int = 0

    @classmethod
    def read(cls, path: Path, found: Findings) -> Export:
        """Reads every row, follows the chain, and adds up what was charged."""
        export, before = cls(), Link()
        try:
            lines = path.read_bytes().decode("utf-8").split("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise SynopsisError(f"{path} cannot be read: {error}") from error
        if lines.pop():
            found.wrong(f"{path} does not end with a line feed: its last line is cut off")
        for number, text in enumerate(lines, 1):
            where = f"line {number} of the export"
            try:
                if (gap := Gap.read(text)) is not None:
                    export._pass_gap(gap, where, found)
                    before = gap.before
                    continue
                line = Line.read(text)
                export._link(line, before, where, found)
                export._take(line, where, found)
            except (ValueError, RecursionError, SynopsisError) as error:
                found.wrong(f"{where} is no row: {error}")
                return export
            before = line.link()
        if not export.rows:
            raise SynopsisError(f"{path} has no rows: is it a ledger export?")
        export._say(found)
        return export

    def _pass_gap(self, gap: Gap, where: str, found: Findings) -> None:
        """A ledger that was built from a checkpoint has its first row, and goes on after the gap."""
        if len(self.rows) != 1 or gap.first != max(self.rows) + 1:
            found.wrong(f"{where}: a gap of the rows {gap.first} to {gap.last} can only follow the first row")
        # Neither the first row nor what blocks had spent by then is tied to what follows.
        self.gap, self.loose, self.next_window = gap, gap.last, None
        self.digests[gap.last] = gap.before.digest.hex()

    def _link(self, line: Line, before: Link, where: str, found: Findings) -> None:
        """Whether a row is in its place, and what its digest says."""
        row, last = line.sequence, max(self.digests, default=None)
        if last is not None and row != last + 1:
            found.wrong(f"{where}: row {last + 1} is missing, or not in its place: this is row {row}")
        if line.form == WHOLE and before.form == SPLIT:
            # Nobody could tell what it says from what somebody says that it says.
            found.wrong(f"{where}: row {row} is shown as one of an older program, and row {row - 1} before it is not")
        if line.form == WHOLE:
            self.older = row
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
        row, sequence = row_of(line), line.sequence
        if isinstance(row, Genesis) == bool(self.rows):
            raise ValueError("a genesis row must be the first row, and no other")
        self.rows[sequence] = row
        if isinstance(row, Genesis):
            self.ledger, self.total, self.previous, self.next_window = row.ledger, row.total, row.previous, row.first
            if sequence != (0 if self.previous is None else self.previous[0] + 1):
                found.wrong(f"{where}: row {sequence} is not numbered as a first row")
        elif isinstance(row, Configuration):
            if self.next_window is not None and row.first < self.next_window:
                found.wrong(f"{where}: row {sequence} changes the settings of windows that are closed")
            self.goes_on, self.next_window = self.goes_on or row.first, row.first
            if row.until is not None:
                self._end_share(row.until, sequence, where, found)
        else:
            self._close_window(sequence, row, where, found)

    def _end_share(self, until: datetime, sequence: int, where: str, found: Findings) -> None:
        """From here on no block that ends later is charged: another pipeline may have the rest of the budget."""
        if any(block[1] > until for block in self.spent):
            found.wrong(f"{where}: row {sequence} ends the share of the budget before blocks that were charged")
        self.until = until if self.until is None else min(until, self.until)

    def _close_window(self, sequence: int, row: Window, where: str, found: Findings) -> None:
        if self.next_window is None and self.goes_on is None:
            self.goes_on = row.at[0]
        elif row.at[0] != self.next_window:
            found.wrong(f"{where}: the window of row {sequence} is not the next one")
        self.next_window = row.at[1]
        if row.charges is None:
            return
        blocks = [block for block, _ in row.charges]
        is_joined = all(one[1] == other[0] for one, other in zip(blocks, blocks[1:]))
        if not blocks or not is_joined or blocks[0][0] > row.at[0] or blocks[-1][1] < row.at[1]:
            found.wrong(f"{where}: row {sequence} does not charge every block that its window overlaps")
        for block, paid in row.charges:
            if not any(paid.values()):
                found.wrong(f"{where}: row {sequence} charges nothing to the {name(block)}")
            if self.until is not None and block[1] > self.until:
                found.wrong(f"{where}: row {sequence} charges the {name(block)}, and the share of the budget has ended before")
            if (other := self._overlapping(block)) is not None:
                found.wrong(f"{where}: the {name(block)} overlaps the {name(other)}, and each has a total of its own")
            if set(paid) != set(self.total):
                found.wrong(f"{where}: row {sequence} charges {show(paid)}, which is not of the kind of {show(self.total)}")
                continue
            history = self.spent.setdefault(block, [])
            now = add(history[-1][1], paid) if history else paid
            history.append((sequence, now))
            if not within(now, self.total):
                found.wrong(f"{where}: the {name(block)} has spent {show(now)}, more than its total, {show(self.total)}")

    def _overlapping(self, block: Span) -> Optional[Span]:
        """Another block with a part of the same time. Notes the block."""
        place = bisect_left(self.blocks, block)
        near = self.blocks[max(place - 1, 0) : place + 1]
        if block in near:
            return None
        self.blocks.insert(place, block)
        return next((other for other in near if other[0] < block[1] and block[0] < other[1]), None)

    def _say(self, found: Findings) -> None:
        first, last, ledger = min(self.rows), max(self.rows), f"ledger {self.ledger}"
        head = self.digests[last]
        if self.loose is None:
            found.holds(f"{ledger}: rows {first} to {last} of the export are chained without a gap, up to the digest {head}")
        else:
            self._say_loose(ledger, first, found)
            if (tied := self.loose + 1) <= last:
                found.holds(
                    f"{ledger}: rows {tied} to {last} are chained to the digest of row {tied - 1}, up to the digest {head}"
                )
        if self.previous is not None:
            found.believe(f"{ledger}: what the ledger before it has charged, which ended with row {self.previous[0]}")

    def _say_loose(self, ledger: str, first: int, found: Findings) -> None:
        """What is not tied to the newest digest, and why."""
        if (gap := self.gap) is not None:
            found.believe(
                f"{ledger}: what the rows {gap.first} to {gap.last} said, and what blocks had spent by then: the ledger was "
                "built from a checkpoint of its log and does not have them"
            )
            found.believe(f"{ledger}: that row {first} is its first one, which no row of the export is chained to")
        if (loose := self.loose) is not None and (gap is None or loose > gap.last):
            before = first if gap is None else gap.last + 1
            found.believe(
                f"{ledger}: what the rows {before} to {loose} say, {loose + 1 - before} of {len(self.rows)}: older "
                "programs wrote them, and a public export does not tie them to the newest digest"
            )

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
        claims = accepted(witness, found)
        heads = [claim.head for claim in claims]
        if self.previous is not None and self.previous not in heads:
            found.wrong(f"{ledger}: it follows a row {self.previous[0]} that the witness has not accepted")
        genesis, last_of_before = self.rows[first], self.previous[0] if self.previous is not None else -1
        for claim in claims:
            end = claim.charged_until if claim.head[0] <= last_of_before else None
            if end is not None and isinstance(genesis, Genesis) and genesis.first < end:
                found.wrong(
                    f"{ledger}: its first window starts before {end.isoformat()}, until when a ledger before it has charged"
                )
        ours = [head for head in heads if first <= head[0] <= last]
        for sequence, digest in ours:
            if self.digests.get(sequence, digest) != digest:
                found.wrong(f"{ledger}: the witness has accepted another row {sequence}, with the digest {digest}")
        if not ours:
            found.wrong(f"{ledger}: the witness has accepted none of its rows")
            return
        for sequence in sorted(self.computed & {head[0] for head in ours}):
            if self.loose is not None and sequence < self.loose:
                what = "its first one" if self.gap is not None else "of an older program"
                found.holds(f"{ledger}: the witness has accepted row {sequence}, {what}, as the export shows it")
        newest_of_ours, digest = ours[-1]
        if self.digests.get(newest_of_ours) == digest:
            if self._is_tied(newest_of_ours):
                tied = first if self.loose is None else self.loose + 1
                found.holds(
                    f"{ledger}: the witness has accepted its rows {tied} to {newest_of_ours}, with the digest of the export"
                )
            else:
                found.believe(
                    f"{ledger}: that row {newest_of_ours} says what the witness has accepted: the export has that digest, but "
                    "not what it was made of"
                )
        if newest_of_ours < last:
            found.believe(f"{ledger}: rows {newest_of_ours + 1} to {last}, which the witness has not accepted")
        if heads[-1][0] > last:
            found.believe(
                f"{ledger}: rows {last + 1} to {heads[-1][0]}, which the witness has accepted: they are not in the export"
            )

    def match(self, document: Mapping[str, Any], digest: Optional[str], found: Findings) -> None:
        """Compares a synopsis with the row that paid for it."""
        if not self.rows:
            return
        entry, sequence = document["ledger"], document["ledger"]["sequence"]
        where = f"{document['release']}, row {sequence}"
        if entry["id"] != self.ledger:
            self.others += 1
            # Ledgers that follow each other number their rows as one.
            if min(self.rows) <= sequence <= max(self.rows) or (sequence < min(self.rows) and self.previous is None):
                found.wrong(f"{where}: it names the ledger {entry['id']}, and that row is one of the ledger {self.ledger}")
            return
        self.ours += 1
        if self.gap is not None and self.gap.first <= sequence <= self.gap.last:
            self.in_gap += 1
            return
        row = self.rows.get(sequence)
        if not isinstance(row, Window) or row.charges is None:
            found.wrong(f"{where}: the export has no such row, or it released nothing")
            return
        if wrong := list(self._contradictions(document, row, digest)):
            for words in wrong:
                found.wrong(f"{where}: {words}")
            return
        self.matched += 1
        self.by_bytes += digest is not None and self._is_tied(sequence)
        self.by_belief += not self._is_tied(sequence)

    def _contradictions(self, document: Mapping[str, Any], row: Window, digest: Optional[str]) -> Iterator[str]:
        privacy, sequence = document["privacy"], document["ledger"]["sequence"]
        if newest(document) != row.at:
            yield "its window is not that of the row"
        keys = self._keys(document)
        if not any(key in keys for key, _ in row.messages):
            yield f"the row paid for no message with the key {keys[0]}"
        elif digest is not None and not any((key, digest) in row.messages for key in keys):
            yield "its bytes are not those that the row paid for"
        start, end = paid_for(document)
        charged = {block: paid for block, paid in row.charges or () if block[0] < end and start < block[1]}
        if set(charged) != {span(block) for block in privacy["blocks"]}:
            yield "it does not name the blocks that the row charged for it"
        self.prices.setdefault(sequence, {})[document["release"], frozenset(charged)] = price(privacy["price"])
        for at, whole in charged.items():
            prices = [paid for (_, blocks), paid in self.prices[sequence].items() if at in blocks]
            if not within(reduce(add, prices), whole):
                yield f"the row charged {show(whole)} to the {name(at)}, less than the prices of its synopses"
        for block in privacy["blocks"]:
            at, spent, total = span(block), price(block["spent"]), price(block["total"])
            history = dict(self.spent.get(at, ()))
            if self._is_charged_before(at) and sequence in history and within(history[sequence], spent):
                # What it had spent before is not in the export.
                self.by_part += 1
            elif history.get(sequence) != spent:
                told = show(history[sequence]) if sequence in history else "nothing"
                yield f"it says that the {name(at)} has spent {show(spent)}, by the export it was {told}"
            if total != self.total:
                yield f"it says that the total of the {name(at)} is {show(total)}, by the export {show(self.total)}"

    def _is_charged_before(self, block: Span) -> bool:
        """Whether a row in the gap may have charged a block."""
        return self.gap is not None and (self.goes_on is None or block[0] < self.goes_on)

    def _keys(self, document: Mapping[str, Any]) -> list[str]:
        """The key of its message; the first programs did not name the release in it."""
        pipeline, last = document["pipeline"], "" if document.get("key") is None else f"/{document['key']}"
        is_older = self.older is not None and document["ledger"]["sequence"] <= self.older
        return [f"{pipeline}/{document['release']}{last}", *([f"{pipeline}{last}"] if is_older else [])]

    def _is_tied(self, sequence: int) -> bool:
        """Whether a digest that can be computed ties what the row says to the newest one."""
        return self.loose is None or sequence > self.loose

    def close(self, found: Findings) -> None:
        """What the export and the synopses say together."""
        if not self.rows:
            return
        ledger = f"ledger {self.ledger}"
        most = {part: max((now[-1][1][part] for now in self.spent.values()), default=Fraction(0)) for part in self.total}
        sums = f"no block has spent more than its total, at most {show(most)} of {show(self.total)}"
        if self.loose is None:
            found.holds(f"{ledger}: {sums}")
        elif self.gap is None:
            found.believe(f"{ledger}: that {sums}, for that rests on rows that have to be believed")
        else:
            found.believe(f"{ledger}: that {sums} by these rows, and no more together with the rows before them")
        if tied := self.matched - self.by_belief:
            what = "window, key and blocks" + (", and what these had spent and may spend" if self.loose is None else "")
            found.holds(f"{ledger}: {tied} synopses say what its export says: their {what}")
        if self.by_bytes:
            found.holds(f"{ledger}: {self.by_bytes} synopses have the bytes that its rows paid for")
        if tied > self.by_bytes:
            found.believe(f"{ledger}: what else {tied - self.by_bytes} synopses say, whose bytes are not here to compare")
        if self.by_belief:
            found.believe(f"{ledger}: that {self.by_belief} synopses were paid for, whose rows have to be believed")
        if self.in_gap:
            found.believe(f"{ledger}: that {self.in_gap} synopses were paid for, whose rows are not in the export")
        if self.by_part:
            found.believe(f"{ledger}: what {self.by_part} blocks that synopses name had spent before the rows that are there")
        if self.others:
            found.believe(f"{ledger}: {self.others} synopses of other ledgers, which its export cannot show")
            if not self.ours:
                found.wrong(f"{ledger}: no synopsis is of this ledger: is it the export of another output?")
