"""What the witness of a ledger has accepted: docs/proofs/ledger.md."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any, Optional, Union

from ..errors import SynopsisError
from ..fields import time
from .report import Findings

#: The number of a row, and its digest in hexadecimal.
Head = tuple[int, str]

#: Where a witness file is, or the messages of a witness topic.
Witness = Union[str, "os.PathLike[str]", Iterable[bytes]]

_CLAIM = ("previous", "head", "last_block_end", "maker")
_HEAD = ("sequence", "digest")
_TIME = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt ]([01][0-9]|2[0-3]):[0-5][0-9]:([0-5][0-9]|60)(\.[0-9]+)?"
    "([Zz]|[-+\N{MINUS SIGN}]([01][0-9]|2[0-3]):[0-5][0-9])"
)


@dataclass(frozen=True)
class Claim:
    """An accepted claim: its head, and where the last block ends that was charged up to it."""

    head: Head
    charged_until: Optional[datetime]


def accepted(witness: Witness, found: Findings) -> list[Claim]:
    """The claims that a witness has accepted, oldest first: each that names the newest head, and has a higher number."""
    is_file = isinstance(witness, (str, os.PathLike))
    claims: list[Claim] = []
    lines = _lines(witness) if isinstance(witness, (str, os.PathLike)) else witness
    for number, text in enumerate(lines, 2 if is_file else 0):
        try:
            previous, head, until = _claim(text)
        except (UnicodeDecodeError, RecursionError):
            # The program may read it where this package cannot: nobody may be shown another chain by that.
            found.wrong(f"the witness: {'line' if is_file else 'message'} {number} cannot be read")
            continue
        except ValueError as error:
            # Void: what a crash has torn, and what somebody else has written.
            if _is_of_another_version(text):
                what = f"{'line' if is_file else 'message'} {number}"
                found.wrong(f"the witness: {what} is a claim of another version, and no program goes on with it: {error}")
            continue
        if previous == (claims[-1].head if claims else None) and (previous is None or head[0] > previous[0]):
            claims.append(Claim(head, until))
    return claims


def _lines(witness: Union[str, os.PathLike[str]]) -> Iterable[bytes]:
    try:
        lines = Path(witness).read_bytes().split(b"\n")
    except OSError as error:
        raise SynopsisError(f"the witness {witness} cannot be read: {error}") from error
    # The first line is its identity, and one without its line break is not complete.
    return lines[1:-1]


def _claim(text: bytes) -> tuple[Optional[Head], Head, Optional[datetime]]:
    """What a claim follows, its head and the end of its last block: of what the program takes for a claim and nothing else."""
    # Objects are tuples of pairs, so that a name that comes twice is seen.
    claim = json.loads(
        text.decode("utf-8"), object_pairs_hook=tuple, parse_int=_whole, parse_float=_no_whole, parse_constant=_refuse
    )
    said = _fields(claim, _CLAIM, needs=3)
    if not set(said) <= set(_CLAIM) or not {"head", "last_block_end"} <= set(said):
        raise ValueError("its fields are not those of a claim")
    if not _is_time(said["last_block_end"]):
        raise ValueError("its last_block_end is not a time")
    maker = said.get("maker")
    if maker is not None and not (isinstance(maker, str) and re.fullmatch("[0-9a-f]{16}", maker)):
        raise ValueError("its maker is not 16 lower-case hexadecimal digits")
    previous = said.get("previous")
    return (None if previous is None else _head(previous)), _head(said["head"]), time(said["last_block_end"])


def _is_of_another_version(text: bytes) -> bool:
    """Whether what is no claim here has the fields of one."""
    try:
        said = json.loads(text.decode("utf-8"), parse_int=_whole, parse_constant=_refuse)
    except ValueError:
        return False
    return isinstance(said, dict) and set(_CLAIM[:3]) <= set(said)


def _head(found: Any) -> Head:
    said = _fields(found, _HEAD, needs=2)
    sequence, digest = said.get("sequence"), said.get("digest")
    if type(sequence) is not int or not 0 <= sequence < 2**64:
        raise ValueError("the number of its head is not a whole number of 64 bits")
    if not isinstance(digest, str) or not re.fullmatch("[0-9a-f]{64}", digest):
        raise ValueError("its digest is not 64 lower-case hexadecimal digits")
    return sequence, digest


def _fields(found: Any, names: tuple[str, ...], needs: int) -> dict[str, Any]:
    """The fields of an object, or of a list in their order, which the program takes as well."""
    if isinstance(found, list) and needs <= len(found) <= len(names):
        return dict(zip(names, found))
    if not isinstance(found, tuple):
        raise ValueError("it is not an object")
    said: dict[str, Any] = {}
    for name, value in found:
        # Half a pair of surrogates is no text.
        name.encode("utf-8")
        if name in said and name in names:
            raise ValueError(f"it has {name} twice")
        said[name] = value
    return said


def _is_time(found: Any) -> bool:
    """Whether it is a time in RFC 3339, leap seconds included."""
    if not isinstance(found, str) or (parts := _TIME.fullmatch(found)) is None:
        return False
    year, month, day = (int(part) for part in parts.groups()[:3])
    try:
        # Python has no year 0, which has the days of the year 400.
        date(year or 400, month, day)
    except ValueError:
        return False
    return True


def _whole(text: str) -> Any:
    return int(text) if len(text) <= 20 and not text.startswith("-") else _no_whole(text)


def _no_whole(_: str) -> Any:
    """A number that is the number of no row."""
    return 0.5


def _refuse(text: str) -> Any:
    raise ValueError(f"{text} is no JSON")
