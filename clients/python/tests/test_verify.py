"""What a verification recomputes, on what the Rust program declares, and on what is wrong with it."""

from __future__ import annotations

import copy
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from conftest import GOLDEN

import bernstream
from bernstream.description import check
from bernstream.verification.sensitivity import recompute

HERE = Path(__file__).parent
CASES = {path.stem: json.loads(path.read_text())["synopsis"] for path in GOLDEN}
UNSOUND = json.loads((HERE / "unsound.json").read_text())
#: Where the declared change is not that of a page: it is sampled, or a paper's.
NOT_PROVED = {"density-1d-random", "density-1d-paper"}


def of(name: str) -> dict[str, Any]:
    return copy.deepcopy(CASES[name])


def put(document: Any, path: str, value: Any) -> None:
    *way, last = (int(part) if part.isdigit() else part for part in path.split("."))
    for part in way:
        document = document[part]
    document[last] = value


def scaled(document: dict[str, Any], factor: float) -> dict[str, Any]:
    """Noise of so many times the scale, on its grid."""
    noise = document["noise"]
    noise["scale"] = 16 * round(noise["scale"] * factor / noise["grid"] / 16) * noise["grid"]
    if "fresh" in document["sensitivity"]:
        document["sensitivity"]["fresh"]["scale"] *= factor
    return document


def faults(found: Any, **more: Any) -> str:
    report = bernstream.verify(found, **more)
    assert bool(report) == (not report.faults)
    return "\n".join(report.faults)


@pytest.mark.parametrize("name", CASES)
def test_what_is_sound_is_verified_and_what_is_believed_is_said(name: str) -> None:
    report = bernstream.verify(of(name))
    assert report, str(report)
    assert any("that the noise was drawn from its law" in line for line in report.believed)
    text = str(report)
    assert "WRONG" not in text and "verified:" in text and "believed:" in text
    if name not in NOT_PROVED:
        assert any("changes the values by at most" in line for line in report.verified)
    if name == "density-1d-random":
        assert any("random differential privacy, a weaker promise" in line for line in report.believed)


@pytest.mark.parametrize("name", sorted(set(CASES) - NOT_PROVED))
def test_what_rust_declares_is_what_the_pages_say(name: str) -> None:
    """And no more than a few percent above, so that the comparison means something."""
    document = of(name)
    declared, adjacency = document["sensitivity"], document["privacy"]["adjacency"]
    grid = document["noise"]["grid"]
    needed = recompute(check(document), document, declared["norm"], adjacency, grid)
    change = declared["units"] * grid / declared["records"]
    assert needed.change * (1.0 - needed.tolerance) <= change <= needed.change * 1.03


@pytest.mark.parametrize("name", CASES)
def test_noise_of_less_than_its_scale_is_found(name: str) -> None:
    for factor in (0.8, 0.99):
        said = faults(scaled(of(name), factor))
        if name == "density-1d-planned":
            # Only all windows of the plan together have a promise, and it has some room.
            assert ("24 windows with this noise have a delta of" in said) == (factor < 0.9)
        elif name == "density-1d-gaussian":
            # More was paid than this noise costs.
            assert said == "" and faults(scaled(of(name), 0.4)) != ""
        else:
            assert "the scale of its noise is too small" in said, said


@pytest.mark.parametrize("name", sorted(set(CASES) - NOT_PROVED))
def test_a_sensitivity_of_less_than_what_is_needed_is_found(name: str) -> None:
    """Though the scale fits it."""
    document = scaled(of(name), 0.8)
    document["sensitivity"]["units"] = round(document["sensitivity"]["units"] * 0.8) - 16
    assert "but " in (said := faults(document)) and "changes the values by" in said


@pytest.mark.parametrize("case", UNSOUND, ids=lambda case: case["why"])
def test_every_unsound_synopsis_is_found_and_says_why(case: dict[str, Any]) -> None:
    document = of(case["of"])
    assert faults(document) == ""
    for path, value in case["set"].items():
        put(document, path, value)
    assert case["says"] in faults(document)


def series(count: int) -> list[dict[str, Any]]:
    """Synopses of one block: rows 17, 18, ..., each of an hour of the same day."""
    found = []
    for i in range(count):
        document = scaled(of("density-1d"), 10.0)
        document["ledger"]["sequence"] += i
        document["window"] = {"start": f"2013-06-18T{5 + i:02}:00:00Z", "end": f"2013-06-18T{6 + i:02}:00:00Z"}
        document["privacy"]["price"] = "0.1"
        document["privacy"]["blocks"][0]["spent"] = f"{(i + 1) / 10}"
        found.append(document)
    return found


def test_synopses_of_a_ledger_add_up() -> None:
    report = bernstream.verify(series(4))
    assert report, str(report)
    assert any("the prices of 4 synopses add up" in line and "epsilon 0.4 of epsilon 1" in line for line in report.verified)
    assert not any("that are not here" in line for line in report.believed)
    # Copies, another order, one that is missing, and another key of the same row, which costs no more.
    assert bernstream.verify([*series(4), *reversed(series(4))])
    assert any(
        "what 1 blocks spent on synopses that are not here" in line for line in bernstream.verify(series(4)[1:]).believed
    )
    other = {**series(1)[0], "key": "LGA"}
    assert bernstream.verify([*series(4), other])


def test_composition_that_does_not_add_up_is_found() -> None:
    cheaper = series(4)
    for document in cheaper:
        document["privacy"]["blocks"][0]["spent"] = "0.2"
    assert "cost epsilon 0.4 together, more than the epsilon 0.2" in faults(cheaper)
    back = series(4)
    back[3]["privacy"]["blocks"][0]["spent"] = "0.2"
    assert "by row 20, epsilon 0.3 by row 19" in faults(back)
    total = series(2)
    total[1]["privacy"]["blocks"][0]["total"] = "2"
    assert "is epsilon 2, and epsilon 1 elsewhere" in faults(total)
    versions = series(2)
    versions[1]["ledger"]["sequence"] = 17
    versions[1]["window"] = versions[0]["window"]
    assert "row 17 was published in two versions" in faults(versions)
    again = series(2)
    again[1]["window"] = again[0]["window"]
    assert "its window was published again, by rows 17 and 18" in faults(again)


def link(before: bytes, sequence: int, salt: bytes, text: str) -> bytes:
    return hashlib.sha256(b"bernstream ledger row 1\n" + before + sequence.to_bytes(8, "big") + salt + text.encode()).digest()


def test_the_digest_of_a_row_is_that_of_the_program() -> None:
    # Of src/ledger/chain.rs.
    assert link(bytes(32), 1, b"\7" * 32, "{}").hex() == "abc0b6ec0e9d0dbeacf7a40fcc0a374140e1cf9aea9f2fa56b3b2098e2bce315"


def rows(documents: list[dict[str, Any]]) -> list[tuple[int, dict[str, Any]]]:
    """The rows that paid for them, as `ledger export` writes them."""
    genesis = {"ledger": documents[0]["ledger"]["id"], "total": "1", "settings": "{}", "first": "2013-06-18T05:00:00Z"}
    found: list[tuple[int, dict[str, Any]]] = [(16, {"genesis": genesis})]
    for document in documents:
        block = {name: document["privacy"]["blocks"][0][name] for name in ("start", "end")}
        released = {"publish_at": document["published"], "charges": [[block, "0.1"]], "messages": []}
        closed = {"window": document["window"], "ends": {"0": 17}, "outcome": {"released": released}}
        found.append((document["ledger"]["sequence"], {"window": closed}))
    return found


def export(path: Path, found: list[tuple[int, dict[str, Any]]]) -> Path:
    before, lines = bytes(32), []
    for sequence, row in found:
        salt, text = bytes([sequence]) * 32, json.dumps(row, separators=(",", ":"))
        before = link(before, sequence, salt, text)
        lines.append(f'{{"sequence":{sequence},"digest":"{before.hex()}","salt":"{salt.hex()}","row":{text}}}')
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_chain_is_followed_and_its_breaks_are_found(tmp_path: Path) -> None:
    documents = series(3)
    path = export(tmp_path / "ledger.jsonl", rows(documents))
    report = bernstream.verify(documents, ledger=path)
    assert report, str(report)
    assert any("rows 16 to 19 of the export are chained without a gap" in line for line in report.verified)
    assert any("3 synopses say what its export says" in line for line in report.verified)
    lines = path.read_text().splitlines()
    for what, says in {
        "removed": "row 17 is missing, or not in its place: this is row 18",
        "edited": "the chain is broken: row 17 or one before it is not what its digest says",
        "swapped": "row 17 is missing",
        "cut": "the export has no such row",
        "no row": "is no row",
    }.items():
        wrong = list(lines)
        if what == "removed":
            del wrong[1]
        elif what == "edited":
            wrong[1] = wrong[1].replace('"0.1"', '"0.05"')
        elif what == "swapped":
            wrong[1:3] = reversed(wrong[1:3])
        elif what == "cut":
            del wrong[3]
        else:
            wrong[2] = wrong[2][:40]
        path.write_text("\n".join(wrong))
        assert says in (said := faults(documents, ledger=path)), f"{what}: {said}"


def test_a_rewritten_chain_still_contradicts_the_synopses(tmp_path: Path) -> None:
    documents = series(3)
    cheaper = rows(documents)
    cheaper[1][1]["window"]["outcome"]["released"]["charges"][0][1] = "0.05"
    said = faults(documents, ledger=export(tmp_path / "cheaper.jsonl", cheaper))
    assert "it says that the block" in said and "by the export it was epsilon 0.05" in said
    dearer = rows(documents)
    dearer[2][1]["window"]["outcome"]["released"]["charges"][0][1] = "1.1"
    assert "more than its total, epsilon 1" in faults(documents, ledger=export(tmp_path / "dearer.jsonl", dearer))


def test_a_public_export_is_followed_without_its_secrets(tmp_path: Path) -> None:
    documents = series(2)
    public = rows(documents)
    for _, row in public[1:]:
        del row["window"]["ends"]
    path = export(tmp_path / "public.jsonl", public)
    genesis, *windows = path.read_text().splitlines()
    # The salts of windows are left out too: with them the ends could be guessed from the digests.
    path.write_text("\n".join([genesis, *(re.sub(r'"salt":"[0-9a-f]*",', "", line) for line in windows)]))
    report = bernstream.verify(documents, ledger=path)
    assert report and any("follow each other without a gap" in line for line in report.verified)
    assert any("their digests, of which the public form leaves out what is secret" in line for line in report.believed)
    lines = path.read_text().splitlines()
    # What the public form has salts for is recomputed still.
    path.write_text("\n".join([lines[0].replace('"total":"1"', '"total":"2"'), *lines[1:]]))
    assert "the chain is broken: row 16" in faults(documents, ledger=path)
    path.write_text("\n".join([lines[0], lines[2]]))
    assert "row 17 is missing" in faults(documents, ledger=path)


def test_bytes_that_the_row_did_not_pay_for_are_found(tmp_path: Path) -> None:
    flights = HERE / "flights.arrows"
    synopsis = bernstream.read(flights)
    document = json.loads(synopsis.to_json())
    block = {name: document["privacy"]["blocks"][0][name] for name in ("start", "end")}
    digest = hashlib.sha256(flights.read_bytes()).hexdigest()
    found = rows([document])
    found[0] = (document["ledger"]["sequence"] - 1, {"genesis": {**found[0][1]["genesis"], "total": "1000"}})
    released = found[1][1]["window"]["outcome"]["released"]
    released["charges"] = [[block, document["privacy"]["blocks"][0]["spent"]]]
    for bytes_of, says in ((digest, ""), ("0" * 64, "its bytes are not those that the row paid for")):
        released["messages"] = [{"key": "", "headers": "", "bytes": bytes_of}]
        said = faults(flights, ledger=export(tmp_path / "ledger.jsonl", found))
        assert (says in said) if says else said == "", said


def test_what_a_worker_published_and_its_ledger_are_verified(tmp_path: Path) -> None:
    """Five days of config/flights-running.toml: sums over windows, with the whole export of their ledger."""
    folder = HERE / "running"
    report = bernstream.verify(folder, ledger=folder / "ledger.jsonl")
    assert report, str(report)
    for line in (
        "rows 0 to 5 of the export are chained without a gap",
        "flights-running/last-four-weeks: one record changes the values by at most",
        "flights-running/year-so-far: discrete gaussian noise of this scale costs no more than the rho 0.01",
        "the prices of 10 synopses add up; of 5 blocks none has spent more than its total, at most rho 0.02 of rho 0.02",
        "10 synopses say what its export says",
    ):
        assert any(line in said for said in report.verified), f"{line}: {report}"
    assert any("the norm of the filter that correlates the noise of its sums" in line for line in report.believed)
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


def test_a_folder_and_messages_are_read(tmp_path: Path) -> None:
    for document in series(2):
        (tmp_path / f"{document['ledger']['sequence']}.json").write_text(json.dumps({**document}))
    assert bernstream.verify(tmp_path)
    (tmp_path / "other.json").write_text("{}")
    assert "other.json: not a synopsis" in faults(tmp_path)
    assert bernstream.verify([(HERE / "flights.arrows").read_bytes()])
    with pytest.raises(bernstream.SynopsisError, match="no synopsis to verify"):
        bernstream.verify([])


def test_an_older_synopsis_is_read_and_what_it_lacks_is_said() -> None:
    older = of("density-1d")
    del older["sensitivity"]
    report = bernstream.verify(older)
    assert report and any("a synopsis of an older program does not derive" in line for line in report.believed)


def test_what_is_said_is_what_the_readme_shows() -> None:
    text = (HERE.parent / "README.md").read_text()
    (example,) = re.findall(r"```python\n(import bernstream\n\nreport = .*?)```", text, flags=re.DOTALL)
    scope: dict[str, Any] = {}
    exec(example, scope)
    assert scope["report"]
