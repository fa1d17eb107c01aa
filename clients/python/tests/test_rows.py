"""What the rows of an export say, where their chain is right: their fields, and what synopses say of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from test_export import claims, export, message, rows
from test_verify import faults, series

import bernstream

#: Each is an edit of the rows of three synopses, whose chain is right, and what is said of it.
GENESIS, FIRST = ("0", "1", "genesis"), ("1", "1", "window")
RELEASED = (*FIRST, "outcome", "released")
BLOCK = {"start": "2013-06-18T05:00:00Z", "end": "2013-06-19T05:00:00Z"}
WRONG_ROWS: list[tuple[tuple[str, ...], Any, str]] = [
    ((*GENESIS, "total"), {}, "is of no kind"),
    ((*GENESIS, "total"), {"epsilon": "1"}, "is of no kind"),
    ((*GENESIS, "total"), {"rho": "1"}, "not of the kind of rho 1"),
    ((*GENESIS, "total"), "1e400", "'1e400' is not a price"),
    ((*GENESIS, "total"), {"slots": "3"}, "is not a number of slots"),
    ((*GENESIS, "ledger"), [1], "is not a text"),
    ((*GENESIS, "first"), "2013-06-18T05:00:00", "is not a time"),
    ((*GENESIS, "previous"), [1], "is not an object"),
    ((*GENESIS, "previous"), {"sequence": 15, "digest": "ab"}, "64 lower-case hexadecimal digits"),
    ((*GENESIS, "reach"), 0, "its reach is 0"),
    ((*GENESIS, "budget"), {"topic": "t"}, "it has no field generation"),
    ((*GENESIS, "budget"), {"topic": "t", "generation": 1, "more": 1}, "it has a field more"),
    ((*GENESIS, "budget"), None, "is not an object"),
    ((*GENESIS, "more"), 1, "it has a field more"),
    ((*FIRST, "ends"), {"0": 3}, "it has a field ends"),
    ((*FIRST, "outcome"), [], "is not an object"),
    ((*FIRST, "outcome"), None, "is not an object"),
    ((*FIRST, "outcome"), {"withheld": None}, "it has a field withheld"),
    ((*FIRST, "outcome", "withheld"), 1, "it has a field withheld"),
    ((*FIRST, "outcome"), {"released": {"publish_at": BLOCK["end"], "charges": []}}, "it has no field messages"),
    ((*RELEASED, "messages"), [7], "is not an object"),
    ((*RELEASED, "messages"), [{"key": "k", "headers": "", "bytes": ""}], "64 lower-case hexadecimal digits"),
    ((*RELEASED, "messages"), [], "an empty list"),
    ((*RELEASED, "states"), [], "an empty list"),
    ((*RELEASED, "states"), [{"slot": "s", "digest": part * 32} for part in ("ab", "cd")], "two states of the slot 's'"),
    ((*RELEASED, "charges"), {"a": 1}, "is not a list"),
    ((*RELEASED, "charges"), [[BLOCK]], "not a pair of block and price"),
    ((*RELEASED, "charges"), [[{**BLOCK, "more": 1}, "0.1"]], "it has a field more"),
    ((*RELEASED, "charges"), [[{"start": BLOCK["end"], "end": BLOCK["start"]}, "0.1"]], "is no time at all"),
    *(
        ((*RELEASED, "charges"), [[BLOCK, text]], "is not a price")
        for text in (".1", "0_1", " 0.1", "1/10", "1e5000", "\u0661", 1)
    ),
]


@pytest.mark.parametrize(
    ("way", "value", "says"), WRONG_ROWS, ids=[f"{way[-1]} {value!r}"[:60] for way, value, _ in WRONG_ROWS]
)
def test_a_row_has_the_fields_of_its_kind_and_no_other(tmp_path: Path, way: tuple[str, ...], value: Any, says: str) -> None:
    documents, found = series(3), rows(series(3))
    place: Any = found
    for name in way[:-1]:
        place = place[int(name) if name.isdigit() else name]
    place[way[-1]] = value
    said = faults(documents, ledger=export(tmp_path / "ledger.jsonl", found))
    assert says in said and "the chain is broken" not in said, said


@pytest.mark.parametrize(
    ("until", "blocks", "says"),
    [
        ("19", ["18"], ""),
        ("18", ["18"], "row 18 ends the share of the budget before blocks that were charged"),
        ("19", ["18", "19"], "the share of the budget has ended before"),
        ("20", ["18", "19"], ""),
    ],
)
def test_a_share_that_has_ended_pays_for_no_later_block(tmp_path: Path, until: str, blocks: list[str], says: str) -> None:
    found = rows(series(2))
    found[0][1]["genesis"]["budget"] = {"topic": "Z3JvY2VyaWVzMTIzNDU2Nw", "generation": 2}
    first = found[2][1]["window"]["window"]["start"]
    ended = {"settings": "{}", "first": first, "until": f"2013-06-{until}T05:00:00Z"}
    later = found[2][1]
    later["window"]["outcome"]["released"]["charges"] = [
        [{"start": f"2013-06-{day}T05:00:00Z", "end": f"2013-06-{int(day) + 1}T05:00:00Z"}, "0.1"] for day in blocks
    ]
    found = [*found[:2], (18, {"configuration": ended}, {}), (19, later, {"ends": {"0": 17}})]
    said = faults([], ledger=export(tmp_path / "ledger.jsonl", found))
    assert (says in said) if says else said == "", said


def test_a_secret_export_has_the_secrets_of_its_rows_and_no_other(tmp_path: Path) -> None:
    for row, secret in (
        (0, {"ends": {"0": 1}}),
        (1, {}),
        (1, {"ends": {"00": 1}}),
        (1, {"ends": {"0": -1}}),
        (1, {"ends": []}),
    ):
        found = rows(series(1))
        found[row] = (*found[row][:2], secret)
        said = faults([], ledger=export(tmp_path / "ledger.jsonl", found, form="secret"))
        assert f"line {row + 1} of the export is no row" in said, said


def test_an_export_whose_last_line_is_cut_off_is_found(tmp_path: Path) -> None:
    path = export(tmp_path / "ledger.jsonl", rows(series(1)))
    path.write_bytes(path.read_bytes()[:-1])
    assert "does not end with a line feed" in faults([], ledger=path)


def test_blocks_that_overlap_are_found(tmp_path: Path) -> None:
    """Each would have a total of its own for the same records."""
    found = rows(series(3))
    for (_, public, _), hour in zip(found[1:], (6, 7, 8)):
        (charge,) = public["window"]["outcome"]["released"]["charges"]
        charge[0] = {**BLOCK, "end": f"2013-06-18T{hour:02}:00:00Z"}
        charge[1] = "1"
    said = faults([], ledger=export(tmp_path / "ledger.jsonl", found))
    assert "overlaps the block 2013-06-18T05:00:00+00:00" in said and "each has a total of its own" in said


def test_a_message_in_two_versions_is_found_by_whoever_is_shown_one_of_them(tmp_path: Path) -> None:
    documents = series(3)
    found = rows(documents)
    messages = found[2][1]["window"]["outcome"]["released"]["messages"]
    messages.append({**messages[0], "bytes": "12" * 32})
    path = export(tmp_path / "ledger.jsonl", found)
    said = faults(documents, ledger=path, witness=claims(path, [16, 19]))
    assert f"it has two messages with the key {messages[0]['key']!r}" in said


def test_synopses_cost_no_more_than_their_row_charged(tmp_path: Path) -> None:
    """Though their block had spent enough before."""
    documents = series(3)
    documents[2]["privacy"]["price"] = "0.2"
    path = export(tmp_path / "ledger.jsonl", rows(documents))
    said = faults(documents[2], ledger=path)
    assert "row 19: the row charged epsilon 0.1 to the block" in said and "less than the prices of its synopses" in said
    # Two releases of one row, of which each alone would fit.
    documents = series(3)
    both, found = [documents[2], {**documents[2], "release": "other"}], rows(documents)
    found[3][1]["window"]["outcome"]["released"]["messages"] += [message(both[1])]
    said = faults(both, ledger=export(path, found))
    assert "less than the prices of its synopses" in said
    found[3][1]["window"]["outcome"]["released"]["charges"][0][1] = "0.2"
    for document in both:
        document["privacy"]["blocks"][0]["spent"] = "0.4"
    assert faults(both, ledger=export(path, found)) == ""


def test_synopses_of_other_ledgers_are_counted_or_found(tmp_path: Path) -> None:
    documents = series(3)
    found = rows(documents)
    path = export(tmp_path / "ledger.jsonl", found)
    # A ledger before this one, and one after it.
    for sequence, day in ((3, 16), (30, 20)):
        other = series(1)[0]
        other["ledger"] = {"id": "another", "sequence": sequence}
        for span in (other["window"], *other["privacy"]["blocks"]):
            span.update(start=f"2013-06-{day}T05:00:00Z", end=f"2013-06-{day + 1}T05:00:00Z")
        report = bernstream.verify([*documents, other], ledger=path)
        assert report, str(report)
        assert any("1 synopses of other ledgers, which its export cannot show" in line for line in report.believed)
        assert "no synopsis is of this ledger" in faults([other], ledger=path)
    found[0][1]["genesis"]["ledger"] = "another"
    said = faults(documents, ledger=export(path, found))
    assert "row 17: it names the ledger" in said and "that row is one of the ledger another" in said


def test_what_a_synopsis_says_is_compared_with_its_row(tmp_path: Path) -> None:
    path = export(tmp_path / "ledger.jsonl", rows(series(3)))
    report = bernstream.verify(series(3), ledger=path)
    assert any("what else 3 synopses say, whose bytes are not here to compare" in line for line in report.believed)
    total, key, blocks = series(3), series(3), series(3)
    for document in total:
        document["privacy"]["blocks"][0]["total"] = "100"
    for document in key:
        document["key"] = "LGA"
    blocks[0]["privacy"]["blocks"] = []
    for documents, says in (
        (total, "is epsilon 100, by the export epsilon 1"),
        (key, "the row paid for no message with the key"),
        (blocks, "it does not name the blocks that the row charged for it"),
    ):
        said = faults(documents, ledger=path)
        assert says in said, said
        assert not any("3 synopses say what its" in line for line in bernstream.verify(documents, ledger=path).verified)


@pytest.mark.parametrize("way", ["ledger", "privacy", "pipeline", "window", "noise"])
def test_a_description_that_lacks_something_is_a_fault_and_no_crash(tmp_path: Path, way: str) -> None:
    path = export(tmp_path / "ledger.jsonl", rows(series(1)))
    for value in (None, [], "1", {}):
        document = {**series(1)[0], way: value}
        assert faults(document, ledger=path) != "" or isinstance(value, str)
    document = series(1)[0]
    document["privacy"]["blocks"][0]["spent"] = "1e5000"
    assert "is not a price" in faults(document, ledger=path)
