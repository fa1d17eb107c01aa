"""Claims of a witness: what the program takes for one is one here, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from test_export import compact

from bernstream.verification.report import Findings
from bernstream.verification.witness import accepted

HEAD = {"sequence": 16, "digest": "cd" * 32}
TIME = "2013-06-18T05:00:00Z"


def claim(**more: Any) -> bytes:
    return compact({"previous": None, "head": HEAD, "last_block_end": TIME, **more}).encode()


@pytest.mark.parametrize(
    "text",
    [
        claim(last_block_end="soon"),
        claim(last_block_end=5),
        claim(last_block_end="2013-02-30T05:00:00Z"),
        claim(last_block_end="2013-06-18T24:00:00Z"),
        claim(last_block_end="2013-06-18T05:00:00"),
        claim(last_block_end="2013-06-18T05:00:00+24:00"),
        claim(last_block_end="٢013-06-18T05:00:00Z"),
        claim(maker=[1]),
        claim(maker="FF00000000000000"),
        claim(maker=""),
        claim(more=1),
        claim().decode().encode("utf-16"),
        claim()[:-1] + b',"head":{"sequence":16,"digest":"' + b"cd" * 32 + b'"}}',
        claim(head={"sequence": 16, "digest": " ".join(["cd"] * 32)}),
        claim(head={"sequence": 16, "digest": "CD" * 32}),
        claim(head={"sequence": 16, "digest": 5}),
        claim(head={"sequence": 2**64, "digest": "cd" * 32}),
        claim(head={"sequence": -1, "digest": "cd" * 32}),
        claim(head={"sequence": True, "digest": "cd" * 32}),
        claim(head={"sequence": 16.0, "digest": "cd" * 32}),
        claim().replace(b"16", b"-0"),
        claim().replace(b"16", b"9" * 5000),
        claim(previous=[1]),
        claim(previous=HEAD, head=None),
        b"[" * 100_000,
    ],
    ids=lambda text: repr(text[:60]),
)
def test_what_another_version_may_take_for_a_claim_is_a_fault(text: bytes) -> None:
    found = Findings()
    assert accepted([text], found) == [] and len(found.faults) == 1


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\x00",
        b"no claim",
        b"{}",
        b"null",
        b'{"head":1}',
        b"\xef\xbb\xbf" + claim(),
        compact([None, HEAD]).encode(),
        claim()[:-1],
    ],
    ids=lambda text: repr(text[:60]),
)
def test_what_the_program_takes_for_no_claim_is_void_here(text: bytes) -> None:
    found = Findings()
    assert [claim.head for claim in accepted([text, claim(), text], found)] == [(16, "cd" * 32)] and not found.faults


@pytest.mark.parametrize(
    "text",
    [
        claim(maker="00000000000000ff"),
        claim(maker=None),
        claim(last_block_end="2016-12-31t23:59:60.5-05:00"),
        claim(last_block_end="0000-02-29 00:00:00z"),
        claim(head={**HEAD, "more": 1e5}),
        claim().replace(b'"previous":null,', b" "),
        compact([None, HEAD, TIME]).encode(),
        compact([None, [16, "cd" * 32], TIME, None]).encode(),
    ],
    ids=lambda text: repr(text[:60]),
)
def test_what_the_program_takes_for_a_claim_is_one_here(text: bytes, tmp_path: Path) -> None:
    found = Findings()
    assert [claim.head for claim in accepted([text], found)] == [(16, "cd" * 32)] and not found.faults
    # In a file, a line that cannot be read is said, for the program may read it.
    (tmp_path / "witness").write_bytes(b"identity\n" + b"\xff\n" + text + b"\n")
    assert [claim.head for claim in accepted(tmp_path / "witness", found)] == [(16, "cd" * 32)]
    assert list(found.faults) == ["the witness: line 2 cannot be read"]
