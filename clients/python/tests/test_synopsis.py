"""What a data scientist does with a synopsis, and what it says when asked wrongly."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path
from typing import Any, Callable

import numpy as np
import pandas
import pytest

import bernstream
from bernstream import Synopsis, SynopsisError

ARROW = Path(__file__).with_name("flights.arrows")


def test_a_file_is_read_whatever_its_form(tmp_path: Path) -> None:
    f = bernstream.read(ARROW)
    (tmp_path / "one.json").write_text(f.to_json())
    again = bernstream.read(tmp_path / "one.json")
    assert again.meta == f.meta and np.array_equal(again.values, f.values)
    assert np.array_equal(Synopsis.from_arrow(memoryview(ARROW.read_bytes()))(15.0), f(15.0))
    assert Synopsis.from_json(f.to_json().encode())(15.0) == Synopsis.from_json(json.loads(f.to_json()))(15.0)


def test_points_broadcast(lattice: Callable[..., Synopsis]) -> None:
    f, g = lattice(1, 8), lattice(2, 5)
    assert np.isscalar(f(0.5)) and f([0.5, 1.0]).shape == (2,) and f(np.zeros((2, 3, 4))).shape == (2, 3, 4)
    x, y = np.linspace(-1.0, 2.0, 7), np.linspace(-2.0, 3.0, 5)
    grid = g(x[:, None], y[None, :])
    assert grid.shape == (7, 5) and np.isclose(grid[3, 2], g(x[3], y[2]), rtol=1e-12) and g(x, 0.0).shape == (7,)
    assert np.array_equal(f(np.float32([0.5])), f([0.5])) and f(pandas.Series([0.5, 1.0])).shape == (2,)
    assert f([]).shape == (0,)
    lower, upper = g.band(x[:, None], y)
    assert lower.shape == (7, 5) and np.all(lower < upper)


def test_many_points_are_worked_on_in_parts(lattice: Callable[..., Synopsis]) -> None:
    g = lattice(3, 9, 2)
    points = np.random.default_rng(0).uniform([-1.0, -2.0, -3.0], [2.0, 3.0, 4.0], size=(60_000, 3))
    some = slice(0, None, 5_000)
    assert np.allclose(g(*points.T)[some], g(*points[some].T), rtol=1e-12)


def test_readings_are_asked_for_by_name() -> None:
    f = bernstream.example()
    smooth = f.by("posterior")
    assert f.reading == 4 and smooth.reading == "posterior" and f(15.0, by="posterior") == smooth(15.0)
    assert f.by(1)(15.0) != f(15.0) == f.by(np.int64(4))(15.0)
    with pytest.raises(SynopsisError, match="ask with pointwise=True"):
        smooth.band(15.0)
    lower, upper = smooth.band(15.0, pointwise=True)
    assert np.isclose(upper - lower, 2 * 1.96 * smooth.deviation(15.0))
    for wrong in (0, 1001, True, 2.0, "spline"):
        with pytest.raises(SynopsisError):
            f.by(wrong)  # type: ignore[arg-type]


def test_a_synopsis_tells_its_best_reading(cells: Callable[..., Synopsis], document: dict[str, Any]) -> None:
    plain, told = (cells([[90.0]], "linear", [9], **more) for more in ({}, {"reading": "nonnegative"}))
    assert (plain.recommended, told.recommended) == (1, "nonnegative") and bernstream.example().recommended == 4
    assert "more accurate" in told._repr_html_() and "more accurate" not in plain._repr_html_()
    assert "more accurate" not in told.by("nonnegative")._repr_html_()
    assert told(0.5) == plain(0.5) and np.all(told.by(told.recommended)(np.linspace(0.0, 2.0, 99)) >= 0.0)
    for wrong in ("sharp", 3):
        with pytest.raises(SynopsisError, match="reading"):
            cells([[90.0]], "linear", [9], reading=wrong)
    with pytest.raises(SynopsisError, match="reading"):
        Synopsis.from_json({**document, "reading": "nonnegative"})
    with pytest.raises(SynopsisError, match="cannot be read"):
        bernstream.example().by("nonnegative")
    with pytest.raises(SynopsisError, match="cannot be read"):
        cells([[1e6]], "linear", [600]).by("posterior")


def test_the_values_are_predicted_as_scikit_learn_has_it(document: dict[str, Any]) -> None:
    f = bernstream.example()
    frame = pandas.DataFrame({"other": [1.0, 2.0], "dep_delay": [0.0, 60.0]})
    assert np.array_equal(f.predict(frame), f([0.0, 60.0])) and np.array_equal(f.predict([[0.0], [60.0]]), f([0.0, 60.0]))
    with pytest.raises(SynopsisError, match="row per point"):
        f.predict([0.0, 60.0])
    assert np.allclose(f.score_samples([[0.0]]), np.log(f.density(proper=True)(0.0)))
    with pytest.raises(SynopsisError, match="no probabilities"):
        f.predict_proba([[0.0]])
    late = {"label": "arr_delay", "above": 15.0, "method": {"logistic": {"c": 1.0, "max_records": 10}}}
    values = np.linspace(-0.5, 1.5, 41).tolist()
    X = [[-29.0], [72.0], [79.0], [179.0]]
    probability = Synopsis.from_json({**document, "target": {"probability": late}, "values": values})
    assert probability.predict(X).tolist() == [0, 0, 1, 1]
    proba = probability.predict_proba(X)
    assert proba.shape == (4, 2) and np.allclose(proba.sum(axis=1), 1.0) and proba.min() == 0.0
    score = Synopsis.from_json({**document, "target": {"classifier": late}, "values": values})
    assert score.predict(X).tolist() == [0, 1, 1, 1] and score.decision_function(X)[0] < 0.0
    with pytest.raises(SynopsisError, match="no density"):
        score.density()


def test_a_synopsis_says_what_it_is() -> None:
    f = bernstream.read(ARROW)
    assert (f.release, f.key, f.kind, f.unit, f.price) == ("departure-delay", "JFK", "density", "record", "epsilon 1")
    assert f.window[0].isoformat() == "2013-01-01T05:00:00+00:00" and "pure differential privacy" in f.in_words
    assert f.meta["privacy"]["price"] == "1" and f.meta["domain"][0]["column"] == "dep_delay"
    with pytest.raises(TypeError):
        f.meta["order"] = 1  # type: ignore[index]
    with pytest.raises(TypeError):
        f.meta["privacy"]["price"] = "0"
    with pytest.raises(ValueError, match="read-only"):
        f.values[0] = 0.0
    shown = f._repr_html_()
    assert "<svg" in shown and "pure differential privacy" in shown and "departure-delay" in repr(f)


def test_what_people_wrote_is_shown_and_not_run(document: dict[str, Any]) -> None:
    shown = Synopsis.from_json({**document, "release": "<script>", "meaning": "'><script>"})._repr_html_()
    assert "<script" not in shown.lower() and "&lt;script&gt;" in shown and "'><script" not in shown


def test_a_synopsis_travels_between_processes() -> None:
    f = bernstream.example().by("posterior")
    again = pickle.loads(pickle.dumps(f))
    assert again.reading == "posterior" and again(15.0) == f(15.0) == copy.deepcopy(f)(15.0)


def test_wrong_points_are_refused_with_their_place(lattice: Callable[..., Synopsis]) -> None:
    f, g = bernstream.example(), lattice(2, 3)
    with pytest.raises(SynopsisError, match=r"dep_delay = 181.0 is outside the domain -30.0 to 180.0"):
        f([0.0, 181.0])
    with pytest.raises(SynopsisError, match="outside"):
        f(float("nan"))
    with pytest.raises(SynopsisError, match="2 coordinates, not 1"):
        g(0.0)
    with pytest.raises(SynopsisError, match="ends before it begins"):
        f.integrate((10.0, 0.0))
    with pytest.raises(SynopsisError, match="intervals"):
        g.integrate((0.0, 1.0))
    with pytest.raises(SynopsisError, match="SciPy polynomial"):
        g.to_bpoly()


def test_values_that_outweigh_records_are_no_density(document: dict[str, Any]) -> None:
    f = Synopsis.from_json({**document, "values": [-1.0] * 41})
    for ask in (f.density, f.cumulative, lambda: f.density(proper=True)):
        with pytest.raises(SynopsisError, match="noise outweighs"):
            ask()
    public = copy.deepcopy(document)
    public["target"]["density"]["divide_by"] = 200
    assert Synopsis.from_json(public).density().divisor == 200.0


def test_a_newer_synopsis_may_say_more(document: dict[str, Any]) -> None:
    more = {**document, "weather": "rain", "noise": {**document["noise"], "colour": "white"}}
    assert Synopsis.from_json(more).meta["weather"] == "rain"


def damaged(content: bytes) -> list[bytes]:
    rng = np.random.default_rng(9)
    found = [b"", content[:-1], content + b"\0", content[: len(content) // 2], content[8:], b"\xff" * 64]
    for _ in range(400):
        broken = bytearray(content)
        for at in rng.integers(0, len(content), size=rng.integers(1, 4)):
            broken[at] = rng.integers(0, 256)
        found.append(bytes(broken))
    return found


def test_damaged_arrow_is_a_synopsis_or_an_error_in_words() -> None:
    refused = 0
    for broken in damaged(ARROW.read_bytes()):
        try:
            f = Synopsis.from_arrow(broken)
            assert np.all(np.isfinite(f.values))
        except SynopsisError as error:
            refused += 1
            assert str(error).startswith("not a synopsis: ")
    assert refused > 50


def test_damaged_json_is_a_synopsis_or_an_error_in_words() -> None:
    refused = 0
    for broken in damaged(bernstream.example().to_json().encode()):
        try:
            Synopsis.from_json(broken)
        except SynopsisError as error:
            refused += 1
            assert str(error).startswith("not a synopsis: ")
    assert refused > 50
    for wrong in ("[" * 100_000, '{"a":' * 100_000, "1", "null", '{"format": 1}'):
        with pytest.raises(SynopsisError):
            Synopsis.from_json(wrong)


def test_compressed_arrow_is_refused() -> None:
    import pyarrow as pa

    with pa.ipc.open_stream(ARROW.read_bytes()) as reader:
        table = reader.read_all()

    def written(compression: Any, rows: pa.Table) -> bytes:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, rows.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
            writer.write_table(rows)
        return bytes(sink.getvalue())

    assert Synopsis.from_arrow(written(None, table))(15.0) == bernstream.read(ARROW)(15.0)
    with pytest.raises(SynopsisError, match="compressed"):
        Synopsis.from_arrow(written("zstd", table))
    with pytest.raises(SynopsisError, match="more than one batch"):
        Synopsis.from_arrow(written(None, pa.concat_tables([table, table])))
    other = table.set_column(3, table.schema.field(3), pa.array([99], pa.uint64()))
    with pytest.raises(SynopsisError, match="disagree"):
        Synopsis.from_arrow(written(None, other))


@pytest.mark.parametrize("name", ["format", "domain", "basis", "degree", "noise", "band", "privacy", "window", "ledger"])
def test_every_field_that_is_needed_is_asked_for(document: dict[str, Any], name: str) -> None:
    del document[name]
    with pytest.raises(SynopsisError, match=f"{name} is missing"):
        Synopsis.from_json(document)
    for wrong in (None, True, [], {}, "?", -1):
        with pytest.raises(SynopsisError):
            Synopsis.from_json({**document, name: wrong})
