"""What the rows of a ledger say, in exactly the fields that the program writes: docs/proofs/ledger.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Optional, Union

from ..fields import time
from .chain import WHOLE, Line, digits
from .composition import Span
from .prices import Price, price
from .witness import Head


@dataclass(frozen=True)
class Genesis:
    ledger: str
    total: Price
    first: datetime
    previous: Optional[Head]


@dataclass(frozen=True)
class Configuration:
    first: datetime
    #: No block that ends later is charged from here on.
    until: Optional[datetime]


@dataclass(frozen=True)
class Window:
    """A closed window: what it charged to each block, and the key of each message by the digest of its bytes."""

    at: Span
    #: None where it was withheld.
    charges: Optional[list[tuple[Span, Price]]]
    #: Pairs of key and digest.
    messages: frozenset[tuple[str, str]]


Row = Union[Genesis, Configuration, Window]


def row_of(line: Line) -> Row:
    """Reads the row of a line. Raises an error unless it has the fields of its kind, and no other."""
    ((kind, said),) = line.row.items()
    if kind not in ("genesis", "configuration", "window"):
        raise ValueError(f"its kind is {kind}")
    if line.secret is not None:
        _fields(line.secret, ["ends"] if kind == "window" else [], ["account"])
        if "account" in line.secret:
            digits(line.secret["account"])
        _ends(line.secret.get("ends", {}))
    if kind == "genesis":
        return _genesis(said)
    if kind == "configuration":
        return _configuration(said)
    # Only whole rows with their salts, which are secret, have it.
    has_ends = line.form == WHOLE and line.hidden is not None
    return _window(said, has_ends)


def _genesis(found: Any) -> Genesis:
    needed = ["ledger", "created", "settings", "total", "first", "backfill_until", "input", "witness", "previous"]
    said = _fields(found, needed, ["reach", "budget"])
    for name in ("settings", "input", "witness"):
        _text(said[name])
    _time(said["created"])
    if said["backfill_until"] is not None:
        _time(said["backfill_until"])
    _reach(said)
    if "budget" in said:
        share = _fields(said["budget"], ["topic", "generation"])
        _text(share["topic"])
        _whole(share["generation"])
    previous = None if said["previous"] is None else _head(said["previous"])
    return Genesis(_text(said["ledger"]), price(said["total"]), _time(said["first"]), previous)


def _configuration(found: Any) -> Configuration:
    said = _fields(found, ["settings", "first"], ["reach", "ended", "until"])
    _text(said["settings"])
    _reach(said)
    if "ended" in said:
        for slot in _some(said["ended"]):
            _text(slot)
    return Configuration(_time(said["first"]), _time(said["until"]) if "until" in said else None)


def _window(found: Any, has_ends: bool) -> Window:
    said = _fields(found, ["window", *(["ends"] if has_ends else []), "outcome"])
    at, outcome = _span(said["window"]), said["outcome"]
    if has_ends:
        _ends(said["ends"])
    if outcome == "withheld":
        return Window(at, None, frozenset())
    released = _fields(_fields(outcome, ["released"])["released"], ["publish_at", "charges", "messages"], ["states"])
    _time(released["publish_at"])
    if "states" in released:
        _once([_state(one) for one in _some(released["states"])], "states of the slot")
    charges = [_charge(one) for one in _list(released["charges"])]
    messages = [_message(one) for one in _some(released["messages"])]
    # Of two versions of one message everybody could be shown another one.
    _once([key for key, _ in messages], "messages with the key")
    return Window(at, charges, frozenset(messages))


def _charge(found: Any) -> tuple[Span, Price]:
    if len(_list(found)) != 2:
        raise ValueError("a charge is not a pair of block and price")
    return _span(found[0]), price(found[1])


def _message(found: Any) -> tuple[str, str]:
    said = _fields(found, ["key", "headers", "bytes"])
    digits(said["headers"])
    return _text(said["key"]), digits(said["bytes"])


def _state(found: Any) -> str:
    said = _fields(found, ["slot", "digest"])
    digits(said["digest"])
    return _text(said["slot"])


def _head(found: Any) -> Head:
    said = _fields(found, ["sequence", "digest"])
    return _whole(said["sequence"]), digits(said["digest"])


def _span(found: Any) -> Span:
    said = _fields(found, ["start", "end"])
    start, end = _time(said["start"]), _time(said["end"])
    if end <= start:
        raise ValueError(f"{said['start']} to {said['end']} is no time at all")
    return start, end


def _reach(said: Mapping[str, Any]) -> None:
    if "reach" in said and _whole(said["reach"]) == 0:
        raise ValueError("its reach is 0, which is never written")


def _ends(found: Any) -> None:
    if not isinstance(found, dict):
        raise ValueError("its ends are no object")
    for partition, end in found.items():
        if partition != str(_whole(int(partition))):
            raise ValueError(f"{partition!r} is no partition")
        _whole(end)


def _fields(found: Any, needed: list[str], possible: Optional[list[str]] = None) -> Mapping[str, Any]:
    if not isinstance(found, dict):
        raise ValueError(f"{str(found)[:40]!r} is not an object")
    for name in found:
        if name not in needed and name not in (possible or []):
            raise ValueError(f"it has a field {name}")
    for name in needed:
        if name not in found:
            raise ValueError(f"it has no field {name}")
    return found


def _list(found: Any) -> list[Any]:
    if not isinstance(found, list):
        raise ValueError(f"{str(found)[:40]!r} is not a list")
    return found


def _some(found: Any) -> list[Any]:
    """A list that is never empty."""
    if not _list(found):
        raise ValueError("it has an empty list, which is never written")
    return _list(found)


def _once(names: list[str], what: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ValueError(f"it has two {what} {name[:80]!r}")
        seen.add(name)


def _text(found: Any) -> str:
    if not isinstance(found, str):
        raise ValueError(f"{str(found)[:40]!r} is not a text")
    return found


def _whole(found: Any) -> int:
    if type(found) is not int or not 0 <= found < 2**64:
        raise ValueError(f"{str(found)[:40]!r} is not a whole number of 64 bits")
    return found


def _time(found: Any) -> datetime:
    if (at := time(_text(found))) is None:
        raise ValueError(f"{found!r} is not a time")
    return at
