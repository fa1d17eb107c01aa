"""The lines of an export, and how the digests of its rows are chained: docs/proofs/ledger.md."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Optional

#: What a row is written as: nothing before the first, one text by older programs, a public and a secret part since.
NOTHING, WHOLE, SPLIT = 0, 1, 2

_DIGEST = re.compile("[0-9a-f]{64}")
_LEFT_OUT = ["sequence", "digest", "row"]
_WHOLE = ["sequence", "digest", "salt", "row"]
_PUBLIC = ["sequence", "digest", "commitment", "row"]
_SECRET = ["sequence", "digest", "salt", "secret", "row"]
_GAP = ["first", "last", "form", "digest"]


@dataclass(frozen=True)
class Link:
    """What a row says about the one before."""

    form: int = NOTHING
    digest: bytes = bytes(32)


@dataclass(frozen=True)
class Gap:
    """Rows that an export does not have, because its ledger was built from a checkpoint, and what the next one follows."""

    first: int
    last: int
    before: Link

    @classmethod
    def read(cls, text: str) -> Optional[Gap]:
        """Reads a line; None if it is that of a row. Raises ``ValueError`` unless it is written in the only way it can be."""
        found = json.loads(text, parse_float=_refuse, parse_constant=_refuse)
        if not isinstance(found, dict) or list(found) != ["gap"]:
            return None
        said = found["gap"]
        if not isinstance(said, dict) or list(said) != _GAP or canonical(found) != text:
            raise ValueError("its gap is not canonical JSON with the fields " + ", ".join(_GAP))
        first, last, form = (said[name] for name in _GAP[:3])
        if any(type(number) is not int for number in (first, last, form)) or not 0 < first <= last < 2**64 - 1:
            raise ValueError("its gap is not one of rows")
        if form not in (WHOLE, SPLIT):
            raise ValueError(f"its gap ends with a row of form {form}")
        return cls(first, last, Link(form, bytes.fromhex(digits(said["digest"]))))


@dataclass(frozen=True)
class Line:
    """A row, and what hides its secret: the salt of a whole row, the commitment of a split one, or None if not shown."""

    sequence: int
    digest: bytes
    form: int
    row: Mapping[str, Any]
    hidden: Optional[bytes]
    #: The secret part of a split row, where it is shown.
    secret: Optional[Mapping[str, Any]] = None

    @classmethod
    def read(cls, text: str) -> Line:
        """Reads a line. Raises ``ValueError`` unless it is written in the only way that it can be."""
        found = json.loads(text, parse_float=_refuse, parse_constant=_refuse)
        # Two readers could understand anything else in two ways: names that come twice, for one.
        if not isinstance(found, dict) or canonical(found) != text:
            raise ValueError("it is not canonical JSON")
        fields = list(found)
        if fields not in (_LEFT_OUT, _WHOLE, _PUBLIC, _SECRET):
            raise ValueError(f"it has the fields {', '.join(fields)}")
        sequence, row = found["sequence"], found["row"]
        if type(sequence) is not int or not 0 <= sequence < 2**64:
            raise ValueError(f"its sequence is {sequence!r}")
        if not isinstance(row, dict) or len(row) != 1 or not isinstance(next(iter(row.values())), dict):
            raise ValueError("its row is not one object of one kind")
        hidden = None
        if fields == _PUBLIC:
            hidden = bytes.fromhex(digits(found["commitment"]))
        elif fields == _SECRET:
            hidden = commitment(bytes.fromhex(digits(found["salt"])), canonical(found["secret"]))
        elif fields == _WHOLE:
            hidden = bytes.fromhex(digits(found["salt"]))
        form = SPLIT if fields in (_PUBLIC, _SECRET) else WHOLE
        return cls(sequence, bytes.fromhex(digits(found["digest"])), form, row, hidden, found.get("secret"))

    def link(self) -> Link:
        return Link(self.form, self.digest)

    def follows(self, before: Link) -> Optional[bool]:
        """Whether its digest is that of what it shows, after the row before; None where too little is shown."""
        if self.hidden is None:
            return None
        number, text = self.sequence.to_bytes(8, "big"), canonical(self.row).encode()
        if self.form == WHOLE:
            made_of = b"bernstream ledger row 1\n" + before.digest + number + self.hidden + text
        else:
            made_of = b"bernstream ledger row 2\n" + bytes([before.form]) + before.digest + number + self.hidden + text
        return hashlib.sha256(made_of).digest() == self.digest


def commitment(salt: bytes, secret: str) -> bytes:
    """What stands for the secret part of a row in its digest."""
    return hashlib.sha256(b"bernstream ledger secret 1\n" + salt + secret.encode()).digest()


def canonical(found: Any) -> str:
    return json.dumps(found, ensure_ascii=False, separators=(",", ":"))


def digits(found: Any) -> str:
    """A digest as it is written."""
    if not isinstance(found, str) or not _DIGEST.fullmatch(found):
        raise ValueError(f"{str(found)[:80]!r} is not 64 lower-case hexadecimal digits")
    return found


def _refuse(found: str) -> Any:
    raise ValueError(f"{found} is not a whole number")
