"""What an export shows of a ledger that was built from a checkpoint, and what is to be believed of the missing rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from test_export import claims, compact, export, rows
from test_verify import faults, series

import bernstream


def with_gap(path: Path, until: int, **other: Any) -> Path:
    """The export without its rows after the first up to ``until``, as a ledger that was built from a checkpoint has it."""
    lines = path.read_text(encoding="utf-8").splitlines()
    all_rows = {json.loads(line)["sequence"]: line for line in lines}
    first = min(all_rows)
    gap = {"first": first + 1, "last": until, "form": 2, "digest": json.loads(all_rows[until])["digest"]}
    kept = [all_rows[first], compact({"gap": {**gap, **other}}), *(line for n, line in all_rows.items() if n > until)]
    path.write_text("\n".join(kept) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("form", ["public", "secret"])
def test_a_ledger_that_was_built_from_a_checkpoint_is_verified_from_there_on(tmp_path: Path, form: str) -> None:
    documents = series(5)
    whole = export(tmp_path / "ledger.jsonl", rows(documents), form=form)
    witness = claims(whole, [16, 18, 19, 21])
    report = bernstream.verify(documents, ledger=with_gap(whole, 18), witness=witness)
    assert report, str(report)
    verified, believed = "\n".join(report.verified), "\n".join(report.believed)
    assert "rows 19 to 21 are chained to the digest of row 18" in verified, verified
    assert "the witness has accepted its rows 19 to 21" in verified and "accepted row 16, its first one" in verified
    assert "3 synopses say what its export says" in verified
    for words in [
        "what the rows 17 to 18 said, and what blocks had spent by then",
        "that 2 synopses were paid for, whose rows are not in the export",
        "had spent before the rows that are there",
    ]:
        assert words in believed, believed
    assert "no block has spent more than its total" not in verified


@pytest.mark.parametrize(
    ("other", "says"),
    [
        ({"digest": "00" * 32}, "the chain is broken: row 19"),
        ({"form": 1}, "the chain is broken: row 19"),
        ({"last": 17}, "row 18 is missing"),
        ({"first": 18}, "can only follow the first row"),
        ({"form": 3}, "ends with a row of form 3"),
        ({"first": 19}, "its gap is not one of rows"),
        ({"spent": 3}, "is not canonical JSON with the fields"),
    ],
)
def test_a_false_gap_is_found(tmp_path: Path, other: dict[str, Any], says: str) -> None:
    documents = series(5)
    path = with_gap(export(tmp_path / "ledger.jsonl", rows(documents)), 18, **other)
    assert says in faults(documents, ledger=path)


def test_what_contradicts_a_gap_is_found(tmp_path: Path) -> None:
    documents = series(5)
    whole = export(tmp_path / "ledger.jsonl", rows(documents))
    lines = whole.read_text().splitlines()
    witness = claims(whole, [16, 18, 21])
    path = with_gap(whole, 18)
    # The witness has accepted another row 18.
    other = [claim.replace(json.loads(lines[2])["digest"].encode(), b"00" * 32) for claim in witness]
    assert "the witness has accepted another row 18" in faults(documents, ledger=path, witness=other)
    # By the rows that are there, the block has spent more than the synopsis says.
    less = json.loads(json.dumps(documents))
    less[4]["privacy"]["blocks"][0]["spent"] = "0.2"
    assert "by the export it was" in faults(less, ledger=path)
    # A second gap hides more.
    shown = path.read_text().splitlines()
    second = shown[1].replace('"first":17,"last":18', '"first":20,"last":20')
    path.write_text("\n".join([*shown[:3], second, *shown[4:]]) + "\n")
    assert "can only follow the first row" in faults(documents, ledger=path)
