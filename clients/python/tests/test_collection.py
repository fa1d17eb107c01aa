"""Folders and topics of synopses as collections, tables and Parquet."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, Callable

import duckdb
import numpy as np
import pytest

import bernstream
from bernstream import Synopsis, SynopsisError, parquet

RUNNING = Path(__file__).with_name("running")
DAYS = "year-so-far"


def test_a_folder_is_a_collection() -> None:
    every = bernstream.open(RUNNING)
    assert len(every) == 10 and every.releases == ["last-four-weeks", DAYS] and len(every.windows) == 5
    chosen = every.sel(release=DAYS, window="2013-01-03T05:00:00Z")
    (one,) = chosen
    assert (
        one.release == DAYS
        and str(one.meta["panes"]["newest"]["start"]) == "2013-01-03T05:00:00Z"
        and f"1 synopses of {DAYS}" in repr(chosen)
    )
    assert len(every.sel(window=slice("2013-01-02T05:00:00Z", "2013-01-04T05:00:00Z"))) == 4
    assert len(every.sel(window=slice(every.windows[3], None))) == 4
    assert [one.window[1] for one in every] == sorted(one.window[1] for one in every)


def test_what_is_not_there_is_told() -> None:
    every = bernstream.open(RUNNING)
    with pytest.raises(SynopsisError, match=r"nothing is left of <Collection of 10 synopses .* key 'XYZ'"):
        every.sel(key="XYZ")
    with pytest.raises(SynopsisError, match="is not a time such as"):
        every.sel(window="yesterday")
    with pytest.raises(SynopsisError, match=r"one of \['last-four-weeks'"):
        every.to_xarray()
    with pytest.raises(SynopsisError, match="no folder; of a topic give the brokers"):
        bernstream.open("synopses")
    with pytest.raises(SynopsisError, match="no synopsis in"):
        bernstream.open(Path(__file__).parents[1] / "src")


def test_of_copies_the_last_counts(document: dict[str, Any]) -> None:
    def copy(sequence: int, key: str) -> Synopsis:
        return Synopsis.from_json({**document, "key": key, "ledger": {**document["ledger"], "sequence": sequence}})

    made = bernstream.Collection([copy(9, "JFK"), copy(3, "JFK"), copy(4, "LGA")])
    assert [(one.key, one.meta["ledger"]["sequence"]) for one in made] == [("JFK", 9), ("LGA", 4)]
    assert [one.key for one in made.sel(key=["LGA", "EWR"])] == ["LGA"]


def test_tables_hold_the_function_and_its_band() -> None:
    days = bernstream.open(RUNNING).sel(release=DAYS)
    pandas, polars, cube = days.to_pandas(points=7), days.to_polars(points=7), days.to_xarray(points=7)
    (column,) = [axis.column for axis in days[0].axes]
    assert list(pandas.columns) == [
        *("release", "key", "time", "window_start", "window_end"),
        column,
        "value",
        "lower",
        "upper",
    ]
    assert polars.columns == list(pandas.columns) and len(pandas) == len(polars) == 35
    assert dict(cube.sizes) == {"key": 1, "window": 5, column: 7}
    for i, one in enumerate(days):
        at = pandas[column][7 * i : 7 * i + 7].to_numpy()
        for name, expected in zip(("value", "lower", "upper"), (one(at), *one.band(at))):
            assert np.array_equal(pandas[name][7 * i : 7 * i + 7], expected)
            assert np.array_equal(polars[name][7 * i : 7 * i + 7], expected)
            assert np.array_equal(cube[name][0, i], expected)
    assert pandas["time"].iloc[0] == days.windows[0]


def test_a_window_that_is_missing_is_not_a_number(document: dict[str, Any]) -> None:
    other = {**document, "key": "LGA", "window": {"start": "2013-01-02T05:00:00Z", "end": "2013-01-03T05:00:00Z"}}
    cube = bernstream.Collection([Synopsis.from_json(document), Synopsis.from_json(other)]).to_xarray(points=3)
    assert np.array_equal(np.isnan(cube["value"]).all("dep_delay"), [[False, True], [True, False]])


def test_rows_are_appended_for_sql(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, rows = tmp_path / "out", tmp_path / "rows"
    shutil.copytree(RUNNING, out)
    late = out / DAYS / "2013-01-05T050000Z.arrows"
    later = late.read_bytes()
    late.unlink()
    for new in (9, 0):
        assert parquet.main([str(out), str(rows), "--points", "11"]) == 0
        assert f"{new} of 9 synopses were new" in capsys.readouterr().out
    late.write_bytes(later)
    assert parquet.main([str(out), str(rows), "--points", "11"]) == 0 and "1 of 10" in capsys.readouterr().out
    columns = "release, count(*), count(distinct time), min(value - lower)"
    asked = f"select {columns} from '{rows}/*/*.parquet' group by 1 order by 1"
    found = duckdb.sql(asked).fetchall()
    assert [row[:3] for row in found] == [("last-four-weeks", 55, 5), (DAYS, 55, 5)] and all(row[3] > 0.0 for row in found)
    newest = bernstream.read(late)
    (column,) = [axis.column for axis in newest.axes]
    top = duckdb.sql(
        f"select {column}, value, upper from '{rows}/{DAYS}/*.parquet' order by window_end desc, value desc limit 1"
    )
    at, value, upper = top.fetchall()[0]
    assert value == newest(at) and upper == newest.band(at).upper
    assert parquet.main([str(tmp_path / "nowhere"), str(rows)]) == 1 and "no folder" in capsys.readouterr().err


def test_a_hostile_release_stays_in_the_folder(document: dict[str, Any], tmp_path: Path) -> None:
    for release in ("..", "../up", "/etc/x"):
        assert (
            parquet.append(bernstream.Collection([Synopsis.from_json({**document, "release": release})]), tmp_path / "rows")
            == 1
        )
    found = list(tmp_path.rglob("*.parquet"))
    assert len(found) == 3 and all(path.parents[1] == tmp_path / "rows" for path in found)


def test_an_integral_says_what_the_noise_adds(
    lattice: Callable[..., Synopsis], kernels: Callable[..., Synopsis], cells: Callable[..., Synopsis]
) -> None:
    forms = [
        bernstream.example(),
        lattice(2, 5),
        lattice(1, 8, order=1),
        lattice(1, 8).by("nearest"),
        kernels({"gaussian": {"precision": [[30.0]]}}, 1),
        cells([[40.0]], "quadratic", [8]),
    ]
    for f in forms:
        box = [(a.min + 0.2 * (a.max - a.min), a.min + 0.7 * (a.max - a.min)) for a in f.axes]
        found = f.integrate(box)
        assert found.noise is not None
        drawn = np.array([float(one.integrate(box)) for one in f.sample(800, rng=3)])
        assert 0.9 < np.std(drawn) / found.noise.deviation < 1.1, f
        inside = np.mean(np.abs(drawn - float(found)) <= found.noise.half_width)
        assert 0.92 < inside < 0.98, f
    assert bernstream.example().by("posterior").integrate().noise is None


def test_what_is_printed_is_plain(document: dict[str, Any]) -> None:
    f = bernstream.example()
    assert type(f(15.0)) is float and "np." not in repr((f(15.0), f.band(15.0), f.deviation(15.0)))
    assert bernstream.figures.give_or_take(6991.4, 112.2) == "6991 ± 112"
    assert str(f.integrate((15, 180))).count(" ± ") == 1
    axes = [{"label": "departure delay", "unit": "minute"}]
    named = Synopsis.from_json({**document, "names": {"title": "Delays <b>", "record": "flight", "axes": axes}})
    shown = named._repr_html_()
    for part in (
        "Delays &lt;b&gt;",
        "departure delay (minutes)",
        "flights per minute",
        "<details><summary>How this is protected",
        ">150<",
    ):
        assert part in shown, part
    assert json.loads(named.to_json())["names"]["record"] == "flight"


def test_a_figure_is_drawn(document: dict[str, Any], lattice: Callable[..., Synopsis]) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    axes = [{"label": "departure delay", "unit": "minute"}]
    drawn = Synopsis.from_json({**document, "names": {"axes": axes}}).plot()
    assert drawn.get_xlabel() == "departure delay (minutes)" and drawn.get_ylabel() == "records per minute"
    assert len(drawn.lines) == 1 and len(drawn.collections) == 1
    assert lattice(2, 4).plot().get_ylabel() == "y"
    with pytest.raises(SynopsisError, match="one or two axes"):
        lattice(3, 2).plot()
