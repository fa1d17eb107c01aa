"""What the witness of a ledger has accepted: docs/proofs/ledger.md."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Optional, Union

from ..errors import SynopsisError

#: The number of a row, and its digest in hexadecimal.
Head = tuple[int, str]

#: Where a witness file is, or the messages of a witness topic.
Witness = Union[str, "os.PathLike[str]", Iterable[bytes]]

_FIELDS = {"previous", "head", "last_block_end"}


def accepted(witness: Witness) -> list[Head]:
    """The heads that a witness has accepted, oldest first: of each claim that names the newest one, and has a higher number."""
    heads: list[Head] = []
    for text in _claims(witness):
        if (claim := _claim(text)) is None:
            continue
        previous, head = claim
        if previous == (heads[-1] if heads else None) and (previous is None or head[0] > previous[0]):
            heads.append(head)
    return heads


def _claims(witness: Witness) -> Iterator[bytes]:
    if not isinstance(witness, (str, os.PathLike)):
        yield from witness
        return
    try:
        lines = Path(witness).read_bytes().split(b"\n")
    except OSError as error:
        raise SynopsisError(f"the witness {witness} cannot be read: {error}") from error
    # The first line is its identity, and one without its line break is not complete.
    yield from lines[1:-1]


def _claim(text: bytes) -> Optional[tuple[Optional[Head], Head]]:
    """What a claim follows, and its head. Whatever else stands in a witness counts as nothing."""
    try:
        claim = json.loads(text)
        if not isinstance(claim, Mapping) or not _FIELDS <= set(claim) <= _FIELDS | {"maker"}:
            return None
        return (None if claim["previous"] is None else _head(claim["previous"])), _head(claim["head"])
    except (ValueError, KeyError, TypeError):
        return None


def _head(found: Any) -> Head:
    sequence, digest = found["sequence"], found["digest"]
    if type(sequence) is not int or len(bytes.fromhex(digest)) != 32 or digest != digest.lower():
        raise ValueError("no head")
    return sequence, digest
