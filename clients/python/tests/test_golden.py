"""The same numbers as the Rust evaluator, on vectors that it wrote."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any, Callable, Optional

import jsonschema
import numpy as np
import pytest
from conftest import CLIENTS, GOLDEN, WRONG
from functions import function

from bernstream import Bounds, Estimate, Synopsis, SynopsisError
from bernstream.fields import time


def cases(part: str) -> list[Any]:
    found = [(path, json.loads(path.read_text())) for path in GOLDEN]
    return [pytest.param(case, id=path.stem) for path, case in found if case.get(part)]


def read(case: dict[str, Any], form: str) -> Synopsis:
    if form == "arrow":
        return Synopsis.from_arrow(base64.b64decode(case["arrow"]))
    return Synopsis.from_json(case["synopsis"])


def close(found: Any, expected: Any, tolerance: float) -> None:
    found, expected = np.asarray(found, dtype=float), np.asarray(expected, dtype=float)
    size = max(float(np.abs(expected).max()), 1e-300)
    apart = float(np.abs(found - expected).max()) / size
    assert apart <= tolerance, f"off by {apart:.1e} of the largest, not {tolerance:.0e}"


def test_there_are_golden_vectors() -> None:
    assert GOLDEN, "clients/golden has no vectors: nothing was compared"
    assert WRONG, "clients/golden has no wrong.json: nothing was refused"
    for part in ("evaluations", "half_widths", "readings", "keys", "queries", "proper", "refused"):
        assert cases(part), part


@pytest.mark.parametrize("form", ["json", "arrow"])
@pytest.mark.parametrize("case", cases("evaluations"))
def test_readings_agree_with_rust(case: dict[str, Any], form: str) -> None:
    synopsis = read(case, form)
    for expected in case["evaluations"]:
        if form == "arrow" and expected["by"] == "posterior":
            continue  # It takes its time, and the two forms are one synopsis: see below.
        reading, points = synopsis.by(expected["by"]), np.transpose(expected["points"])
        tolerance = expected["tolerance"]
        values = reading(*points)
        close(values, expected["values"], tolerance)
        close(reading.mass, expected["mass"], tolerance)
        if expected.get("deviations") is not None:
            close(reading.deviation(*points), expected["deviations"], tolerance)
        # A test that cannot fail is none.
        with pytest.raises(AssertionError):
            close(values * (1.0 + 1e-3), expected["values"], tolerance)


@pytest.mark.parametrize("case", cases("half_widths"))
def test_bands_agree_with_rust(case: dict[str, Any]) -> None:
    synopsis, expected = read(case, "json"), case["half_widths"]
    tolerance = expected.get("tolerance", 1e-12)
    points = np.transpose(expected["points"])
    close(synopsis.half_width(*points), expected["simultaneous"], tolerance)
    if expected["ends"] is not None:
        close(np.transpose(synopsis.band(*points)), expected["ends"], tolerance)
    for band in expected["pointwise"]:
        reading = synopsis.by(band["order"])
        if band["ends"] is not None:
            close(np.transpose(reading.band(*points, pointwise=True)), band["ends"], band.get("tolerance", tolerance))
        close(reading.half_width(*points, pointwise=True), band["half_widths"], band.get("tolerance", tolerance))
        deviations, known = reading.deviation(*points), [one is not None for one in band["deviations"]]
        assert np.array_equal(np.isfinite(deviations), known)
        close(deviations[known], np.array(band["deviations"])[known], band.get("tolerance", tolerance))


@pytest.mark.parametrize("case", cases("evaluations"))
def test_the_error_of_the_form_agrees_with_rust(case: dict[str, Any]) -> None:
    synopsis, expected = read(case, "json"), case.get("form_error")
    if expected is None:
        assert synopsis.form_error is None
        return
    assert synopsis.form_error is not None and abs(synopsis.form_error / expected - 1.0) < 1e-12
    for by in ("posterior", case["synopsis"]["order"] + 1):
        if by not in case["refused"] and not (isinstance(by, int) and case["synopsis"]["basis"] != "bernstein"):
            assert synopsis.by(by).form_error is None


@pytest.mark.parametrize("case", cases("integrals"))
def test_integrals_and_their_errors_agree_with_rust(case: dict[str, Any]) -> None:
    synopsis = read(case, "json")
    for expected in case["integrals"]:
        found, tolerance = synopsis.integrate(expected["box"]), expected["tolerance"]
        assert found.noise is not None
        close(np.array([found.value]), np.array([expected["value"]]), tolerance)
        close(np.array([found.noise.deviation]), np.array([expected["noise_deviation"]]), tolerance)
        assert abs(found.noise.half_width / expected["noise_half_width"] - 1.0) < expected["half_width_tolerance"]
        if expected["form_error"] is None:
            assert found.form_error is None
        else:
            assert found.form_error is not None and abs(found.form_error / expected["form_error"] - 1.0) < tolerance
    if synopsis.form_error is not None:
        assert str(synopsis.integrate()).count(" ± ") == 2
        assert synopsis.by("posterior").integrate().form_error is None


@pytest.mark.parametrize("case", cases("readings"))
def test_what_is_read_from_cells_agrees_with_rust(case: dict[str, Any]) -> None:
    synopsis = read(case, "json")
    for expected in case["readings"]:
        found, wanted = numbers(estimate(synopsis, expected)), numbers_of(expected)
        assert np.array_equal(np.isnan(found), np.isnan(wanted)), expected
        known = ~np.isnan(wanted)
        if known.any():
            close(found[known], wanted[known], expected["tolerance"])


def estimate(synopsis: Synopsis, asked: dict[str, Any]) -> Estimate:
    """One number of the same reading; of a probability that of its table."""
    point, box, table = asked.get("point"), asked.get("range"), asked.get("table")
    at: dict[str, Any] = {"bandwidths": asked.get("bandwidths")}
    of_label = at if asked.get("degree") is None else {**at, "degree": asked["degree"]}
    ask: dict[str, Callable[[], Estimate]] = {
        "density": lambda: synopsis.density(*point, **at),
        "count": lambda: synopsis.count(*box),
        "share": lambda: synopsis.share(*box),
        "expected": lambda: synopsis.expected(*point, **of_label) if box is None else synopsis.mean(*box),
        "probability": lambda: synopsis.probabilities(*point, **of_label) if box is None else synopsis.proportions(*box),
        "quantile": lambda: synopsis.quantile(asked["part"]),
        "density_ratio": lambda: synopsis.density_ratio(
            *point, of=named(synopsis, table), over=named(synopsis, asked["over"]), **at
        ),
    }
    found = ask[asked["reading"]]()
    if asked["reading"] != "probability":
        return found
    bands = [None if ends is None else Bounds(*(end[table] for end in ends)) for ends in found[1:]]
    return Estimate(found.value[table], *bands)


def named(synopsis: Synopsis, table: Any) -> Any:
    """The class of a table; 0 and 1 of a threshold."""
    of_label = synopsis.meta["target"]["cells"]["label"]
    return of_label["classes"]["values"][table] if "classes" in of_label else table


def numbers(found: Estimate) -> Any:
    return np.array([found.value, *found.pointwise, *(found.simultaneous or ())], dtype=float)


def numbers_of(expected: dict[str, Any]) -> Any:
    """Null, of a value or of an interval, is NaN."""
    bands = ["pointwise"] + ["simultaneous"] * (expected.get("point") is not None)
    ends = [end for band in bands for end in (expected[band] or [None, None])]
    return np.array([expected["value"], *ends], dtype=float)


def _check_sums_over_keys(table: Any, expected: dict[str, Any]) -> None:
    """Margins and shares of a table whose keys have parts."""
    parts = expected.get("parts", [[] for _ in table.keys])
    assert [list(table.parts(key).values()) for key in table.keys] == parts
    for margin in expected.get("margins", []):
        found = table.margin(*margin["columns"])
        assert found["keys"].tolist() == [row["keys"] for row in margin["rows"]]
        for place, column in enumerate(margin["columns"]):
            assert found[column] == [row["parts"][place] for row in margin["rows"]]
        _check_estimates(found, margin["readings"], [row["estimates"] for row in margin["rows"]], "", expected)
    for shares in expected.get("shares", []):
        _check_estimates(table.shares(*shares["columns"]), shares["readings"], shares["rows"], "_share", expected)


def _check_estimates(
    found: dict[str, Any], readings: list[str], rows: list[list[Any]], end: str, expected: dict[str, Any]
) -> None:
    for place, reading in enumerate(readings):
        stated = [row[place] for row in rows]
        values = np.array([one["value"] for one in stated], dtype=float)
        ends = np.array([one["interval"] or [None, None] for one in stated], dtype=float)
        value, known = np.asarray(found[f"{reading}{end}"]), ~np.isnan(values)
        assert np.array_equal(~np.isnan(value), known)
        close(value[known], values[known], expected["tolerance"])
        own = np.array([found[f"{reading}{end}_lower"], found[f"{reading}{end}_upper"]]).T
        assert np.array_equal(np.isnan(own), np.isnan(ends)) and not np.isnan(own).all()
        width = ends[:, 1:] - ends[:, :1]
        assert np.nanmax(np.abs(own - ends) - expected["half_width_tolerance"] * width) <= 1e-12 * np.nanmax(np.abs(values))


def _check_caps(table: Any, stated: Optional[dict[str, Any]], expected: dict[str, Any]) -> None:
    """What a cap drops, and the numbers of units by their keys."""
    if stated is None:
        assert table.dropped is None and table.units is None
        return
    value, (lower, upper), _ = table.dropped
    share = {"share": value, "share_lower": lower, "share_upper": upper}
    one = {name: np.array([number]) for name, number in share.items()}
    _check_estimates(one, ["share"], [[stated["dropped"]]], "", expected)
    units = table.units
    assert [units["least"], units["most"]] == [[unit[end] for unit in stated["units"]] for end in ("least", "most")]
    _check_estimates(units, ["units", "dropped"], [[unit, unit["dropped"]] for unit in stated["units"]], "", expected)


def _check_found(table: Any, expected: dict[str, Any]) -> None:
    """What is said of keys that nobody listed, and of those that are not there."""
    assert table.is_found == ("found" in expected)
    if not table.is_found:
        return
    stated = expected["found"]
    assert (len(table), len(table.new), table.is_overfull) == (stated["keys"], stated["new"], stated["is_overfull"])
    assert (table.threshold, table.absent_below) == (stated["threshold"], stated["absent_below"])
    for row, own in zip(table.rows(), expected["rows"]):
        assert (row["new"], row["until"]) == (own["new"], time(own["until"]))
        interval = own["estimates"][0]["interval"]
        # That of a new key is found by bisection and not by integration: to the last digits.
        width = interval[1] - interval[0]
        found = [row[f"{table.readings[0]}_{end}"] for end in ("lower", "upper")]
        assert not row["new"] or np.max(np.abs(np.subtract(found, interval))) <= 1e-9 * width, own


@pytest.mark.parametrize("form", ["json", "arrow"])
@pytest.mark.parametrize("case", cases("keys"))
def test_tables_by_key_agree_with_rust(case: dict[str, Any], form: str) -> None:
    table, expected = read(case, form).key_table(), case["keys"]
    assert list(table.readings) == expected["readings"]
    assert list(table.keys) == [row["key"] for row in expected["rows"]]
    _check_found(table, expected)
    if not table.keys:
        assert table.is_found and len(table.to_pandas()) == 0
        return
    for i, reading in enumerate(table.readings):
        stated = [row["estimates"][i] for row in expected["rows"]]
        values = np.array([one["value"] for one in stated], dtype=float)
        ends = np.array([one["interval"] or [None, None] for one in stated], dtype=float).T
        found = table.column(reading)
        assert np.array_equal(np.isnan(found.value), np.isnan(values))
        assert np.array_equal(np.isnan(found.pointwise), np.isnan(ends))
        close(found.value[~np.isnan(values)], values[~np.isnan(values)], expected["tolerance"])
        apart, width = np.abs(np.array(found.pointwise) - ends), ends[1] - ends[0]
        assert np.nanmax(apart - expected["half_width_tolerance"] * width) <= 1e-12 * np.nanmax(np.abs(values))
    _check_sums_over_keys(table, expected)
    _check_caps(table, expected.get("caps"), expected)
    for top in expected["top"]:
        largest = table.top(top["count"], top["by"])
        assert (list(largest.keys), largest.is_last_unclear) == (top["keys"], top["is_last_unclear"]), top


@pytest.mark.parametrize("case", cases("queries"))
def test_queries_agree_with_rust(case: dict[str, Any]) -> None:
    synopsis = read(case, "json")
    names = [axis.column for axis in synopsis.axes]
    for expected in case["queries"]:
        answer, tolerance = synopsis.query(function(expected["function"], names)), expected["tolerance"]
        close(answer.sum, expected["sum"], tolerance)
        close(answer.noise.deviation, expected["noise_deviation"], tolerance)
        width = expected.get("half_width_tolerance", tolerance)
        close(answer.noise.half_width, expected["noise_half_width"], width)
        assert (answer.mean is None) == (expected["mean"] is None)
        if answer.mean is not None:
            close(answer.mean.value, expected["mean"], tolerance)
            # The mean of a constant has no noise but that of rounding.
            apart = abs(answer.mean.noise.half_width - expected["mean_noise_half_width"])
            assert apart <= width * expected["mean_noise_half_width"] + 1e-12 * abs(answer.mean.value)
        # What a polynomial of few degrees is missed by is rounding.
        largest = float(np.abs(expected["weights"]).sum())
        assert abs(answer.truncation.per_record - expected["truncation_per_record"]) <= tolerance * largest
        if expected.get("truncation_proved") is not None:
            assert answer.truncation.per_record <= expected["truncation_proved"] + tolerance * largest
        close(synopsis.weights(function(expected["function"], names)), expected["weights"], tolerance)


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_the_json_and_the_arrow_form_are_one_synopsis(path: Path) -> None:
    case = json.loads(path.read_text())
    one, other = read(case, "json"), read(case, "arrow")
    assert one.meta == other.meta and np.array_equal(one.values, other.values)
    assert Synopsis.from_json(one.to_json()).meta == one.meta


@pytest.mark.parametrize("case", cases("refused"))
def test_readings_that_values_do_not_allow_are_refused(case: dict[str, Any]) -> None:
    for by in case["refused"]:
        with pytest.raises(SynopsisError):
            read(case, "json").by(by)


@pytest.mark.parametrize("case", cases("proper"))
def test_densities_agree_with_rust(case: dict[str, Any]) -> None:
    synopsis, expected = read(case, "json"), case["proper"]
    points, tolerance = np.transpose(expected["points"]), expected["tolerance"]
    density = synopsis.by(expected["order"]).density(proper=True)
    close(density.divisor, expected["mass"], tolerance)
    close(density(*points), expected["densities"], tolerance)
    with np.errstate(divide="ignore"):
        close(np.exp(synopsis.score_samples(points.T)), expected["densities"], 1e-9)
    if expected["cumulative"] is None:
        with pytest.raises(SynopsisError):
            synopsis.cumulative()
    else:
        close(synopsis.cumulative()(*points), expected["cumulative"], tolerance)


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong["why"])
def test_wrong_synopses_are_refused_in_words(wrong: dict[str, Any]) -> None:
    with pytest.raises(SynopsisError, match=r"^not a synopsis: .{10}"):
        Synopsis.from_json(wrong["text"])


@pytest.mark.parametrize("case", cases("synopsis"))
def test_synopses_are_as_the_schema_says(case: dict[str, Any]) -> None:
    schema = json.loads((CLIENTS / "synopsis.schema.json").read_text())
    validator = jsonschema.Draft202012Validator(schema)
    validator.validate(case["synopsis"])
    broken = {**case["synopsis"], "format": "one"}
    assert not validator.is_valid(broken)


def test_what_the_readme_asks_cells_is_answered() -> None:
    text = (CLIENTS / "python" / "README.md").read_text()
    (example,) = re.findall(r"```python\n(import bernstream\n\nf = bernstream.example\(.cells.\).*?)```", text, flags=re.DOTALL)
    scope: dict[str, Any] = {}
    exec(example, scope)
    assert scope["pointwise"].lower < scope["value"] < scope["pointwise"].upper
