"""What a public export shows: the chain of its rows, and what they say, on exports of the program and on false ones."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from test_verify import faults, series

import bernstream
from bernstream.verification.chain import Line
from bernstream.verification.export import Export
from bernstream.verification.report import Findings

HERE = Path(__file__).parent
FALSE = json.loads((HERE / "false-exports.json").read_text())


def digest(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(parts)).digest()


def test_the_digests_are_those_of_the_program() -> None:
    # Of crates/ledger/src/chain.rs.
    number, salt, text = (1).to_bytes(8, "big"), b"\7" * 32, b"{}"
    older = digest(b"bernstream ledger row 1\n", bytes(32), number, salt, text)
    assert older.hex() == "abc0b6ec0e9d0dbeacf7a40fcc0a374140e1cf9aea9f2fa56b3b2098e2bce315"
    secret = digest(b"bernstream ledger secret 1\n", salt, text)
    assert secret.hex() == "e58333b818bdae794dd553cb00cc545db3663cd2418c92b197edf9348e1d91c5"
    row = digest(b"bernstream ledger row 2\n", b"\2", digest(b"before"), number, secret, text)
    assert row.hex() == "5b64f197425407480df9ac9035e72cac7883014797a4dd5e97092a7e6ed01b82"


def rows(documents: list[dict[str, Any]]) -> list[tuple[int, dict[str, Any], dict[str, Any]]]:
    """The rows that paid for them: number, public part, secret part."""
    genesis = {
        "ledger": documents[0]["ledger"]["id"],
        "created": "2013-06-18T04:00:00Z",
        "settings": "{}",
        "total": "1",
        "first": documents[0]["window"]["start"],
        "backfill_until": None,
        "input": "files",
        "witness": "w",
        "previous": {"sequence": 15, "digest": "ab" * 32},
    }
    found: list[tuple[int, dict[str, Any], dict[str, Any]]] = [(16, {"genesis": genesis}, {})]
    for document in documents:
        block = {name: document["privacy"]["blocks"][0][name] for name in ("start", "end")}
        released = {"publish_at": document["published"], "charges": [[block, "0.1"]], "messages": [message(document)]}
        closed = {"window": document["window"], "outcome": {"released": released}}
        found.append((document["ledger"]["sequence"], {"window": closed}, {"ends": {"0": 17}}))
    return found


def message(document: dict[str, Any], bytes_of: str = "ef" * 32) -> dict[str, str]:
    key = "/".join(document[part] for part in ("pipeline", "release", "key") if document.get(part) is not None)
    return {"key": key, "headers": "cd" * 32, "bytes": bytes_of}


def export(path: Path, found: list[Any], older: int = 0, form: str = "public") -> Path:
    """An export of rows, of which an older program wrote the first so many."""
    before, lines = b"\0" + bytes(32), []
    for place, (sequence, public, secret) in enumerate(found):
        salt, number, row = digest(b"salt", bytes([place])), sequence.to_bytes(8, "big"), compact(public)
        if place < older:
            whole = json.loads(row)
            if "window" in whole:
                closed = whole["window"]
                whole = {"window": {"window": closed["window"], **secret, "outcome": closed["outcome"]}}
            now = digest(b"bernstream ledger row 1\n", before[1:], number, salt, compact(whole).encode())
            shown = {"salt": salt.hex()} if form == "secret" or not secret else {}
            last = {"row": whole if form == "secret" else public}
        else:
            commitment = digest(b"bernstream ledger secret 1\n", salt, compact(secret).encode())
            now = digest(b"bernstream ledger row 2\n", before, number, commitment, row.encode())
            shown = {"commitment": commitment.hex()} if form == "public" else {"salt": salt.hex(), "secret": secret}
            last = {"row": public}
        lines.append(compact({"sequence": sequence, "digest": now.hex(), **shown, **last}))
        before = (b"\1" if place < older else b"\2") + now
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def compact(found: Any) -> str:
    return json.dumps(found, separators=(",", ":"), ensure_ascii=False)


def claims(path: Path, heads: list[int]) -> list[bytes]:
    """Claims of a witness on these rows of an export, after one on the ledger before it."""
    lines = {line["sequence"]: line for line in map(json.loads, path.read_text(encoding="utf-8").splitlines())}
    found, previous = [], None
    for head in [{"sequence": 15, "digest": "ab" * 32}, *({k: lines[n][k] for k in ("sequence", "digest")} for n in heads)]:
        found.append(compact({"previous": previous, "head": head, "last_block_end": "2013-06-18T05:00:00Z"}).encode())
        previous = head
    return found


@pytest.mark.parametrize("form", ["public", "secret"])
def test_a_chain_is_followed_to_its_head(tmp_path: Path, form: str) -> None:
    documents = series(3)
    path = export(tmp_path / "ledger.jsonl", rows(documents), form=form)
    report = bernstream.verify(documents, ledger=path)
    assert report, str(report)
    head = json.loads(path.read_text().splitlines()[-1])["digest"]
    assert any(f"rows 16 to 19 of the export are chained without a gap, up to the digest {head}" in s for s in report.verified)
    assert any("3 synopses say what its export says" in line for line in report.verified)
    assert any(f"that its newest row is row 19 with the digest {head}" in line for line in report.believed)
    assert any("what the ledger before it has charged, which ended with row 15" in line for line in report.believed)
    assert not any("older program" in line for line in report.believed if "sensitivity" not in line)
    # Whoever has no synopses has the chain all the same.
    alone = bernstream.verify([], ledger=path)
    assert alone and any("chained without a gap" in line for line in alone.verified)


def test_rows_of_older_programs_are_said_by_number(tmp_path: Path) -> None:
    documents = series(4)
    path = export(tmp_path / "ledger.jsonl", rows(documents), older=3)
    report = bernstream.verify(documents, ledger=path)
    assert report, str(report)
    assert any("what the rows 16 to 18 say, 3 of 5: older programs wrote them" in line for line in report.believed)
    assert any("rows 19 to 20 are chained to the digest of row 18" in line for line in report.verified)
    assert not any("without a gap, up to" in line for line in report.verified)
    # Nothing ties the first row to the newest digest, though its own digest can be computed; the witness may have accepted it.
    other = rows(documents)
    other[0][1]["genesis"]["total"] = "2"
    true, false = path.read_text().splitlines(), export(tmp_path / "other.jsonl", other, older=3).read_text().splitlines()
    path.write_text("\n".join([false[0], *true[1:]]) + "\n")
    for document in documents:
        document["privacy"]["blocks"][0]["total"] = "2"
    witness = claims(export(tmp_path / "true.jsonl", rows(documents), older=3), [16, 20])
    assert faults(documents, ledger=path) == ""
    assert "the witness has accepted another row 16" in faults(documents, ledger=path, witness=witness)
    # With its secrets all of it can be computed.
    documents = series(4)
    report = bernstream.verify(documents, ledger=export(path, rows(documents), older=3, form="secret"))
    assert report and any("chained without a gap, up to the digest" in line for line in report.verified)


@pytest.mark.parametrize("case", FALSE, ids=lambda case: case["why"])
def test_every_false_export_is_found_and_says_why(tmp_path: Path, case: dict[str, Any]) -> None:
    """Each is a true export with an edit of its text."""
    documents = series(4)
    path = export(tmp_path / "ledger.jsonl", rows(documents), older=case.get("older", 0))
    assert faults(documents, ledger=path) == ""
    lines = path.read_text(encoding="utf-8").splitlines()
    for edit in case["edits"]:
        if "remove" in edit:
            del lines[edit["remove"]]
        elif "swap" in edit:
            one, other = edit["swap"]
            lines[one], lines[other] = lines[other], lines[one]
        elif "copy" in edit:
            lines.insert(edit["copy"], lines[edit["copy"]])
        else:
            at = edit["in"]
            lines[at], count = re.subn(edit["replace"], edit["by"], lines[at], count=1)
            assert count == 1
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    said = faults(documents, ledger=path)
    assert case["says"] in said, said


def test_a_flip_of_any_bit_is_found(tmp_path: Path) -> None:
    whole = export(tmp_path / "ledger.jsonl", rows(series(1))).read_bytes()
    path, found = tmp_path / "flipped.jsonl", Findings()
    path.write_bytes(whole)
    assert Export.read(path, found).ledger and not found.faults
    for place in range(8 * len(whole)):
        flipped = bytearray(whole)
        flipped[place // 8] ^= 1 << place % 8
        path.write_bytes(flipped)
        found = Findings()
        try:
            Export.read(path, found)
        except bernstream.SynopsisError:
            continue
        assert found.faults, (place, bytes(flipped))


def test_whoever_rewrites_the_whole_chain_contradicts_the_synopses(tmp_path: Path) -> None:
    documents = series(3)
    released = lambda found, row: found[row][1]["window"]["outcome"]["released"]  # noqa: E731
    cheaper, dearer, unpaid, late = (rows(documents) for _ in range(4))
    released(cheaper, 1)["charges"][0][1] = "0.05"
    released(dearer, 2)["charges"][0][1] = "1.1"
    released(unpaid, 2)["charges"][0][1] = "0"
    late[2][1]["window"]["window"] = {**late[2][1]["window"]["window"], "start": "2013-06-18T06:30:00Z"}
    for found, says in (
        (cheaper, "by the export it was epsilon 0.05"),
        (dearer, "more than its total, epsilon 1"),
        (unpaid, "row 18 charges nothing to the block"),
        (late, "the window of row 18 is not the next one"),
        (late, "row 18: its window is not that of the row"),
    ):
        said = faults(documents, ledger=export(tmp_path / "ledger.jsonl", found))
        assert says in said and "the chain is broken" not in said, said


def test_a_ledger_that_charges_what_the_ledger_before_it_has_charged_contradicts_the_witness(tmp_path: Path) -> None:
    documents = series(3)
    path = export(tmp_path / "ledger.jsonl", rows(documents))
    witness = claims(path, [16, 19])
    assert faults(documents, ledger=path, witness=witness) == ""
    before = json.loads(witness[0])
    before["last_block_end"] = "2013-06-18T05:00:00.000001Z"
    said = faults(documents, ledger=path, witness=[compact(before).encode(), *witness[1:]])
    assert "its first window starts before 2013-06-18T05:00:00.000001+00:00, until when a ledger before it has charged" in said


def test_whoever_rewrites_the_whole_chain_contradicts_the_witness(tmp_path: Path) -> None:
    documents = series(3)
    path = export(tmp_path / "ledger.jsonl", rows(documents))
    witness = claims(path, [16, 17, 19])
    report = bernstream.verify(documents, ledger=path, witness=witness)
    assert report and any("has accepted its rows 16 to 19, with the digest of the export" in s for s in report.verified)
    assert not any("compare it with what the witness has accepted" in line for line in report.believed)
    # Whoever claims first has claimed, and all other claims are void: what is torn, or follows another head.
    (taken,) = re.findall(rb'"head":\{"sequence":16,"digest":"([0-9a-f]*)"', witness[1])
    other = witness[1].replace(taken, b"cd" * 32)
    assert bernstream.verify(documents, ledger=path, witness=[*witness[:3], witness[1], other, witness[3]])
    torn = [b"{", b"[]", b'{"previous":null}', witness[3][:-1], b"\0\0"]
    for text in torn:
        assert bernstream.verify(documents, ledger=path, witness=[*witness[:3], text, witness[3]])
    newer = witness[3].replace(b"{", b'{"more":1,', 1)
    said = faults(documents, ledger=path, witness=[*witness[:3], newer, witness[3]])
    assert "the witness: message 3 is a claim of another version, and no program goes on with it" in said
    said = faults(documents, ledger=path, witness=[witness[0], other, *witness[1:]])
    assert "the witness has accepted another row 16, with the digest cdcd" in said
    # As a file: the first line is its identity, and the last one is not complete.
    file = tmp_path / "witness"
    file.write_bytes(b"identity\n\n" + b"\n\n".join([*witness[:3], *torn, witness[3]]) + b'\n{"previous"')
    assert bernstream.verify(documents, ledger=path, witness=file)
    # Rows that are not accepted yet, and rows that are not in the export.
    report = bernstream.verify(documents, ledger=path, witness=witness[:3])
    assert report and any("rows 18 to 19, which the witness has not accepted" in line for line in report.believed)
    short = tmp_path / "short.jsonl"
    short.write_text("".join(f"{line}\n" for line in path.read_text().splitlines()[:-1]))
    report = bernstream.verify(documents[:-1], ledger=short, witness=witness)
    assert report and any("rows 19 to 19, which the witness has accepted: they" in line for line in report.believed)
    # Another ledger with the same synopses: its salts, or one price that none of them tells.
    other = rows(documents)
    other[0][1]["genesis"]["settings"] = "{ }"
    rewritten = export(tmp_path / "other.jsonl", other)
    assert faults(documents, ledger=rewritten) == ""
    assert "the witness has accepted another row 19" in faults(documents, ledger=rewritten, witness=witness)
    other[0][1]["genesis"]["previous"]["digest"] = "ac" * 32
    said = faults(documents, ledger=export(rewritten, other), witness=witness)
    assert "it follows a row 15 that the witness has not accepted" in said
    assert "has accepted none of its rows" in faults(documents, ledger=path, witness=[])
    with pytest.raises(bernstream.SynopsisError, match="give that too"):
        bernstream.verify(documents, witness=witness)


def test_a_ledger_that_is_passed_off_as_an_older_one_ties_nothing_and_contradicts_the_witness(tmp_path: Path) -> None:
    documents = series(3)
    true = export(tmp_path / "true.jsonl", rows(documents))
    false = rows(documents)
    false[0][1]["genesis"]["settings"] = "{ }"
    path = export(tmp_path / "false.jsonl", false, older=4)
    # The newest digest is the true one: nobody can compute that it is not that of this row.
    digests = [json.loads(file.read_text().splitlines()[-1])["digest"] for file in (path, true)]
    path.write_text(path.read_text().replace(*digests))
    report = bernstream.verify(documents, ledger=path)
    assert report and any("what the rows 16 to 19 say, 4 of 4: older programs" in line for line in report.believed)
    assert not any(words in line for line in report.verified for words in ("chained", "rows 16", "its export says"))
    # Nor does a witness whose digest is only shown.
    report = bernstream.verify(documents, ledger=path, witness=claims(true, [19]))
    assert report and not any("the witness" in line for line in report.verified)
    assert any("that row 19 says what the witness has accepted" in line for line in report.believed)
    said = faults(documents, ledger=path, witness=claims(true, [16, 19]))
    assert "the witness has accepted another row 16" in said and "another row 19" not in said


def line(row: str, **more: str) -> str:
    fields = {"sequence": "1", "digest": f'"{"ab" * 32}"', "commitment": f'"{"cd" * 32}"', **more}
    return "{" + "".join(f'"{name}":{text},' for name, text in fields.items()) + f'"row":{row}}}'


@pytest.mark.parametrize(
    "wrong",
    [
        line('{"window":{"a":1,"a":1}}'),
        line('{"window":{"a":1}}').replace(",", ", "),
        line('{"window":{"a":1.0}}'),
        line('{"window":{"a":1e2}}'),
        line('{"window":{"a":-0}}'),
        line('{"window":{"a":NaN}}'),
        line('{"window":{"a":"\\u00e9"}}'),
        line('{"window":{"a":"\\u002F"}}'),
        line('{"window":{"a":"\\u001F"}}'),
        line('{"window":{"a":"\\/"}}'),
        line('{"window":{"a":"\\ud800"}}'),
        line('{"window":{},"genesis":{}}'),
        line('"window"'),
        line('{"window":{}}') + " ",
        line('{"window":{}}', sequence="-1"),
        line('{"window":{}}', sequence=str(2**64)),
        line('{"window":{}}', sequence="true"),
        line('{"window":{}}', digest=f'"{"AB" * 32}"'),
        line('{"window":{}}', digest=f'"{"ab" * 31}"'),
        line('{"window":{}}', salt=f'"{"ab" * 32}"'),
        line('{"window":{}}').replace('"row"', '"row":{"genesis":{}},"row"'),
        line('{"window":' + '{"a":' * 5000 + "1" + "}" * 5000 + "}"),
    ],
    ids=lambda text: text[-40:],
)
def test_lines_that_two_readers_could_understand_in_two_ways_are_refused(tmp_path: Path, wrong: str) -> None:
    assert Line.read(line('{"window":{"a":"\\u001f\\"é\\u0000\u2028\x7f"}}')).row == {"window": {"a": '\x1f"é\0\u2028\x7f'}}
    (tmp_path / "ledger.jsonl").write_text(wrong + "\n", encoding="utf-8")
    assert "line 1 of the export is no row" in faults(series(1), ledger=tmp_path / "ledger.jsonl")


def test_bytes_that_the_row_did_not_pay_for_are_found(tmp_path: Path) -> None:
    flights = HERE / "flights.arrows"
    document = json.loads(bernstream.read(flights).to_json())
    block = {name: document["privacy"]["blocks"][0][name] for name in ("start", "end")}
    true = hashlib.sha256(flights.read_bytes()).hexdigest()
    found = rows([document])
    genesis = {**found[0][1]["genesis"], "total": document["privacy"]["blocks"][0]["total"], "previous": None}
    found[0] = (document["ledger"]["sequence"] - 1, {"genesis": genesis}, {})
    released = found[1][1]["window"]["outcome"]["released"]
    released["charges"] = [[block, document["privacy"]["blocks"][0]["spent"]]]
    for bytes_of, says in ((true, ""), ("0" * 64, "its bytes are not those that the row paid for")):
        released["messages"] = [message(document, bytes_of)]
        said = faults(flights, ledger=export(tmp_path / "ledger.jsonl", found))
        assert (says in said) if says else said == "", said


def test_what_an_older_program_published_and_its_ledger_are_verified(tmp_path: Path) -> None:
    """Five days of config/flights-running.toml: sums over windows, with the whole export of their ledger, in the older form."""
    folder = HERE / "running"
    report = bernstream.verify(folder, ledger=folder / "ledger.jsonl")
    assert report, str(report)
    for words in (
        "rows 0 to 5 of the export are chained without a gap",
        "flights-running/last-four-weeks: one record changes the values by at most",
        "flights-running/year-so-far: discrete gaussian noise of this scale costs no more than the rho 0.01",
        "the prices of 10 synopses add up; of 5 blocks none has spent more than its total, at most rho 0.02 of rho 0.02",
        "10 synopses say what its export says",
    ):
        assert any(words in said for said in report.verified), f"{words}: {report}"
    assert any("the norm of the filter that correlates the noise of its sums" in said for said in report.believed)
    # A day of another run: its bytes were never paid for.
    lines = (folder / "ledger.jsonl").read_text().splitlines()
    short = tmp_path / "ledger.jsonl"
    short.write_text("\n".join(lines[:3] + lines[4:]))
    assert "row 3 is missing" in faults(folder, ledger=short)
    document = json.loads(bernstream.read(folder / "year-so-far/2013-01-05T050000Z.arrows").to_json())
    document["sensitivity"]["fresh"]["norm_squared"] *= 1.3
    assert "the scale of its noise is too small" in faults(document)
    document["sensitivity"]["fresh"]["norm_squared"] /= 1.3
    document["sensitivity"]["fresh"]["scale"] *= 0.8
    assert "the scale of its noise is too small" in faults(document)


def test_what_a_program_exported_after_an_upgrade_is_verified(tmp_path: Path) -> None:
    """Three days by a version before this form of the export, three by one since; older than those of tests/data/upgrade."""
    folder = HERE / "upgraded"
    path, witness = folder / "ledger.jsonl", folder / "witness"
    report = bernstream.verify(folder, ledger=path, witness=witness)
    assert report, str(report)
    for words in (
        "rows 4 to 7 are chained to the digest of row 3",
        "the witness has accepted its rows 4 to 7, with the digest of the export",
        "the witness has accepted row 0, of an older program, as the export shows it",
        "3 synopses say what its export says: their window, key and blocks",
        "3 synopses have the bytes that its rows paid for",
    ):
        assert any(words in said for said in report.verified), f"{words}: {report}"
    # What rests on rows that have to be believed stands under nothing else.
    assert not any("no block has spent" in said or "rows 0" in said for said in report.verified)
    assert any("that no block has spent more than its total" in said for said in report.believed)
    assert any("that 3 synopses were paid for, whose rows have to be believed" in said for said in report.believed)
    assert any("what the rows 0 to 3 say, 4 of 8: older programs wrote them" in said for said in report.believed)
    text = path.read_text()
    assert "ends" not in text and text.count("salt") == 1
    lines = text.splitlines()
    for at, old, new, says in (
        (4, '"first":"2013-06-04', '"first":"2013-06-03', "the chain is broken: row 4"),
        (5, '"1"]', '"0.9"]', "the chain is broken: row 5"),
        (7, '"bytes":"', '"bytes":"00', "the chain is broken: row 7"),
        (6, "publish_at", "published_at", "the chain is broken: row 6"),
        (2, '"1"]', '"0.9"]', "by the export it was epsilon 0.9"),
        (3, '"digest":"0fae', '"digest":"1fae', "the chain is broken: row 4"),
        (3, '"digest":"0fae', '"digest":"1fae', "the witness has accepted another row 3"),
    ):
        wrong = [line.replace(old, new, 1) if place == at else line for place, line in enumerate(lines)]
        assert wrong != lines
        (tmp_path / "ledger.jsonl").write_text("\n".join(wrong) + "\n")
        assert says in faults(folder, ledger=tmp_path / "ledger.jsonl", witness=witness)


PROGRAM = Path(os.environ.get("BERNSTREAM_TEST_PROGRAM", HERE.parents[2] / "target/debug/bernstream"))
UPGRADE = HERE.parents[2] / "tests/data/upgrade"


@pytest.mark.skipif(not PROGRAM.exists(), reason=f"{PROGRAM} is not built: its exports are NOT tested")
@pytest.mark.parametrize("older", ["", *sorted(path.name for path in UPGRADE.glob("*format-*"))])
def test_what_a_program_exports_is_followed(tmp_path: Path, older: str) -> None:
    """A new ledger, and one of each format with three windows of it, as the program goes on with them."""
    text = (UPGRADE / ("sums.toml" if older.startswith("sums") else "upgrade.toml")).read_text()
    (tmp_path / "c.toml").write_text(text.replace("06-04T05", "06-07T05"))
    (tmp_path / "flights").mkdir()
    shutil.copy(UPGRADE.parent / "flights.parquet", tmp_path / "flights")
    if older:
        shutil.copytree(UPGRADE / older, tmp_path, dirs_exist_ok=True)
    for name, command in {"run": ["run"], "public": ["ledger", "export"], "secret": ["ledger", "export", "--secret"]}.items():
        done = subprocess.run([PROGRAM, *command, "c.toml"], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        (tmp_path / f"{name}.jsonl").write_text(done.stdout)
        assert "were written by older versions" not in done.stderr
    assert all("commitment" in line for line in (tmp_path / "public.jsonl").read_text().splitlines())
    for name in ("public", "secret"):
        report = bernstream.verify(tmp_path / "out", ledger=tmp_path / f"{name}.jsonl", witness=tmp_path / "out/witness")
        assert report, str(report)
        count = 12 if older.startswith("sums") else 6
        assert any(f"{count} synopses say what its export says" in words for words in report.verified), str(report)
        assert any(f"{count} synopses have the bytes that its rows paid for" in words for words in report.verified)
