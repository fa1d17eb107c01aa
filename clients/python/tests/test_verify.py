"""What a verification recomputes, on what the Rust program declares, and on what is wrong with it."""

from __future__ import annotations

import copy
import json
import math
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
#: The noise of keys that nobody listed belongs to their threshold.
FOUND = {name for name in CASES if name.startswith("counts-found")}


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
        if name in FOUND:
            assert "found above another threshold than its noise needs" in said
        elif name == "density-1d-planned":
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
    document = of(name) if name in FOUND else scaled(of(name), 0.8)
    document["sensitivity"]["units"] = round(document["sensitivity"]["units"] * 0.8) - 16
    assert "but " in (said := faults(document)) and "changes the values by" in said


@pytest.mark.parametrize(
    ("law", "adjacency", "spline", "records"),
    [
        ("discrete laplace", "add_remove", "linear", 1.0),
        ("discrete laplace", "replace_one", "quadratic", 2.0),
        ("discrete gaussian", "add_remove", "box", 1.0),
        ("discrete gaussian", "add_remove", "quadratic", 0.7706),
        ("discrete gaussian", "replace_one", "linear", 2.0**0.5),
    ],
)
def test_a_record_changes_counts_by_one_whatever_its_label(law: str, adjacency: str, spline: str, records: float) -> None:
    document = of("density-1d-gaussian" if law == "discrete gaussian" else "density-1d")
    # Of tables of cells no error of the form is known.
    document.pop("form_error", None)
    grid, more = 2.0**-32, {"box": 0, "linear": 1, "quadratic": 3}[spline]
    rho = document["privacy"]["price"].get("rho") if law == "discrete gaussian" else None
    scale = records / (2.0 * float(rho)) ** 0.5 if rho else records / float(document["privacy"]["price"])
    norm, label = "2-norm" if rho else "1-norm", {"number": {"column": "delay", "min": 0.0, "max": 9.0}}
    document |= {
        "basis": {"tables": {"spline": spline, "steps": [8], "bandwidths": [0.2], "tables": 2}},
        "target": {"cells": {"label": label}},
        "degree": 1,
        "order": 1,
        "values": [3.0] * (2 * (8 + more)),
        "privacy": {**document["privacy"], "adjacency": adjacency},
        "noise": {**document["noise"], "law": law, "scale": 16 * round(1.01 * scale / grid / 16) * grid, "grid": grid},
        "sensitivity": {
            "norm": norm, "units": round(1.0005 * records / grid), "records": 1, "values": 2 * (8 + more), "derived": "cells"
        },
    }  # fmt: skip
    report = bernstream.verify(document)
    assert report, str(report)
    assert any("changes the values by at most" in line for line in report.verified)
    less = copy.deepcopy(document)
    less["sensitivity"]["units"] = round(0.99 * records / grid)
    assert "but one record changes the values by" in faults(less)
    assert "the scale of its noise is too small" in faults(scaled(document, 0.9))


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


def test_two_ledgers_that_charge_the_same_time_are_found() -> None:
    """Each of them says that no block has spent more than its total."""
    other = series(2)
    for document in other:
        document["ledger"]["id"] = "another"
    assert bernstream.verify(other)
    assert "of ledger another overlaps the block 2013-06-18T05:00:00" in (said := faults([*series(2), *other])), said
    for document in other:
        document["pipeline"] = "of another output"
    assert faults([*series(2), *other]) == ""


def of_users(name: str, per: str) -> dict[str, Any]:
    document = of(name)
    document["privacy"]["unit"] = {"user": {"column": "passenger", "per": per, "max_records_per_window": 1}}
    return document


def test_a_block_is_the_whole_period_of_a_user() -> None:
    """A shorter one would give a unit its total several times."""
    for per in ("1d", "24h", "23h 60m", "86400s", "86399s 999ms 1000us"):
        assert faults(of_users("density-1d", per)) == "", per
    for per in ("1d 1us", "365d", "12h", "ever"):
        assert f"is not a period of its unit, {per}, which has one total" in faults(of_users("density-1d", per)), per
    for per in ("", "1", "1 d", "-1d", "0d", "\u0661d", "9" * 18 + "d"):
        assert "is no duration" in faults(of_users("density-1d", per)), per
    ever = of_users("density-1d", "ever")
    ever["privacy"]["blocks"][0].update(start="0001-01-01T00:00:00Z", end="9999-12-31T23:59:59.999999Z")
    assert faults(ever) == ""


def test_a_user_in_several_windows_of_a_sum_needs_noise_for_all_of_them() -> None:
    """What the changes of all come to in one draw grows faster in rho than the prices of the windows add up."""
    for law, norm, fresh in (
        ("discrete laplace", "1-norm", {"nodes": 2}),
        ("discrete gaussian", "2-norm", {"norm_squared": 1.5}),
    ):
        document = of_users("density-1d-hopping", "1d")
        privacy, said = document["privacy"], document["sensitivity"]
        privacy["definition"], privacy["price"] = "zero-concentrated", {"rho": "0.8"}
        privacy["blocks"][0].update(spent={"rho": "0.8"}, total={"rho": "50"})
        document["noise"]["law"], said["norm"] = law, norm
        said["fresh"] = {"scale": said["fresh"]["scale"], **fresh}
        # All of a change is as far as the noise is wide: the 1-norm of one is no less than its 2-norm.
        document["noise"]["scale"] *= 2.0
        assert faults(document) == "", law
        week = copy.deepcopy(document)
        week["privacy"]["unit"]["user"]["per"] = "7d"
        week["privacy"]["blocks"][0]["start"] = "2013-06-12T05:00:00Z"
        assert "too small for a user in 7 windows" in faults(week), law
        for at in (week["noise"], week["sensitivity"]["fresh"]):
            at["scale"] *= 3.0
        assert faults(week) == "", law


@pytest.mark.parametrize(
    ("path", "value"),
    [
        *(
            (f"sensitivity.{name}", value)
            for name in ("units", "records", "values")
            for value in (math.nan, 0, -1, 1.5, "1", None)
        ),
        ("sensitivity.values", 1),
        ("sensitivity.fresh", {"scale": 1e300, "nodes": 1}),
        *(("sensitivity.fresh.nodes", value) for value in (0, 0.5, math.nan, None)),
        *(("sensitivity.fresh.scale", value) for value in (0.0, -1.0, math.nan, math.inf, 1e300, "1")),
        *(("sensitivity.fresh.norm_squared", value) for value in (1e-12, 0.99, math.nan, math.inf)),
    ],
)
def test_what_is_no_number_of_a_sensitivity_is_found(path: str, value: Any) -> None:
    document = of("density-1d-hopping" if "fresh." in path else "density-1d")
    put(document, path, value)
    assert "its sensitivity" in (said := faults(document)) or "its noise.scale" in said


def test_the_scale_of_a_paper_is_recomputed() -> None:
    document = of("density-1d-paper")
    privacy, values = document["privacy"], len(document["values"])
    privacy["definition"], privacy["price"] = "epsilon-delta", {"epsilon": "1", "delta": "0.2"}
    privacy["blocks"][0].update(spent=privacy["price"], total=privacy["price"])
    # Where there are more values than 8 ln(1 / delta) that is less noise than without a delta.
    each = 0.5 / math.sqrt(2.0 * values * math.log(5.0))
    noise = document["noise"]
    units = document["sensitivity"]["units"] / values / each
    noise["scale"] = 16 * math.ceil(units / 16) * noise["grid"]
    assert faults(document) == ""
    # That leaves half for what is less than that.
    assert "the scale of its noise is too small" in faults(scaled(document, 0.45))
    # No other noise has such a scale.
    other = of("density-1d-gaussian")
    small = {"epsilon": "1", "delta": "0.000001"}
    other["privacy"].update(privacy, implies=None, price=small)
    other["privacy"]["blocks"][0].update(spent=small, total=small)
    other["noise"]["calibrated"] = noise["calibrated"]
    assert "the scale of its noise is too small" in faults(scaled(other, 0.1))


def test_a_clip_of_both_signs_counts_twice_where_a_record_is_replaced() -> None:
    document = of("sum-2d-clipped")
    document["privacy"]["adjacency"] = "replace_one"
    assert "but one record changes the values by" in faults(document)
    document["sensitivity"]["units"] *= 2
    assert faults(scaled(document, 2.0)) == ""


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


def test_a_folder_is_verified_with_its_export_and_its_witness_as_the_readme_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (HERE.parent / "README.md").read_text()
    (example,) = re.findall(r"```python\n(# bernstream ledger export .*?)```", text, flags=re.DOTALL)
    (tmp_path / "out").symlink_to(HERE / "upgraded")
    (tmp_path / "ledger.jsonl").symlink_to(HERE / "upgraded" / "ledger.jsonl")
    monkeypatch.chdir(tmp_path)
    scope: dict[str, Any] = {"bernstream": bernstream}
    exec(example, scope)
    assert scope["report"], scope["report"].faults


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        ("target.counts.max_keys", 3, "changes the values by"),
        ("target.counts.max_records", 4, "changes the values by"),
        ("target.counts.max_records", 2, "of the price, and not the 0.3"),
        ("basis.keys.columns.0.unit", 1e-13, "changes the values by"),
        ("target.counts.parts.0.part", 0.4, "users have 0.3 of the price, and not the 0.4"),
        ("target.counts.parts.0.of", "sums", "no such column"),
        ("target.counts.parts.0.of", "medians", "does not know"),
        ("target.counts.parts", [{"of": "users", "part": 1.0}], "nothing was paid for its column low"),
        ("privacy.adjacency", "replace_one", "users and sums of users have no sensitivity"),
    ],
)
def test_counts_are_sound_by_their_caps_and_parts(path: str, value: Any, says: str) -> None:
    document = of("counts-laplace")
    assert faults(document) == ""
    put(document, path, value)
    assert says in (said := faults(document)), said


def test_caps_of_counts_hold_for_all_records_of_a_user() -> None:
    """Another release of the pipeline may keep more records."""
    document = of("counts-gaussian")
    document["privacy"]["unit"]["user"]["max_records_per_window"] = 5
    document["sensitivity"]["records"] = 5
    assert faults(document) == ""
    put(document, "target.counts.per_user.max", 900.0)
    assert "a user with 5 records changes the values by" in faults(document)
    del document["target"]["counts"]["per_user"]
    assert "without bounds for each" in faults(document)


@pytest.mark.parametrize("name", ["counts-laplace", "counts-variance"])
def test_a_record_that_is_replaced_moves_a_whole_record_of_its_value(name: str) -> None:
    document = of(name)
    document["basis"]["keys"]["columns"] = document["basis"]["keys"]["columns"][1:]
    document["target"]["counts"].update(max_keys=1, max_records=1, parts=[{"of": "values", "part": 1.0}])
    unit = document["basis"]["keys"]["columns"][0]["unit"]
    for norm, law, records in (("1-norm", "discrete laplace", 2.0), ("2-norm", "discrete gaussian", 2.0**0.5)):
        document["noise"]["law"] = law
        for adjacency, times in (("add_remove", 1.0), ("replace_one", records)):
            found = recompute(check(document), document, norm, adjacency, 1.0)
            assert math.isclose(found.change * unit, times)
