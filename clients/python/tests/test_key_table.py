"""Tables by key: as rows and frames, from bytes that may be hostile, and what only functions have."""

from __future__ import annotations

import base64
import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import FOLDER

import bernstream
from bernstream import Collection, KeyTable, Synopsis, SynopsisError, parquet
from bernstream.told_caps import dropped_share

CASE = json.loads((FOLDER / "counts-laplace.json").read_text())
MESSAGE = base64.b64decode(CASE["arrow"])
TABLE = Synopsis.from_json(CASE["synopsis"]).key_table()


def document(keys: Any = None, **more: Any) -> dict[str, Any]:
    """The golden table with another basis or other fields."""
    found = {**CASE["synopsis"], **more}
    if keys is not None:
        found["basis"] = {"keys": {**found["basis"]["keys"], **keys}}
    return found


def test_rows_and_frames_are_one_table() -> None:
    rows = TABLE.rows()
    assert [row["key"] for row in rows] == list(TABLE.keys) and len(rows) == len(TABLE)
    columns = list(TABLE.columns())
    assert columns[:4] == ["key", "users", "users_lower", "users_upper"] and columns[-3:] == [
        "mean",
        "mean_lower",
        "mean_upper",
    ]
    frames = [TABLE.to_pandas(), TABLE.to_polars().to_pandas(), TABLE.to_arrow().to_pandas()]
    for frame in frames:
        assert list(frame.columns) == columns
        pandas.testing.assert_frame_equal(frame, pandas.DataFrame(rows))
    one = TABLE["AA"]["sum"]
    assert isinstance(one.value, float) and rows[0]["sum_lower"] == one.pointwise.lower
    assert isinstance(TABLE.to_polars(), polars.DataFrame)


def test_a_key_or_a_reading_that_is_not_there_is_an_error() -> None:
    with pytest.raises(SynopsisError, match="no key 'XX' in this table: it has 'AA', 'B6', ") as refused:
        TABLE["XX"]
    assert str(refused.value).endswith(f" and {len(TABLE) - 5} more")
    two = document({"keys": ["a", "b"]}, values=[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    with pytest.raises(SynopsisError, match=r"it has 'a', 'b'$"):
        Synopsis.from_json(two).key_table()["c"]
    with pytest.raises(KeyError, match="this table has users, records, sum, mean, and no 'std'"):
        TABLE["AA"]["std"]
    assert TABLE["AA"].get("std") is None and "std" not in TABLE["AA"]
    with pytest.raises(SynopsisError, match="users, records, sum, mean, and no 'median'"):
        TABLE.top(1, "median")
    with pytest.raises(SynopsisError, match="one or more"):
        TABLE.top(0)


def test_a_collection_of_tables_has_rows_by_key_and_says_so() -> None:
    tables = Collection([Synopsis.from_json(CASE["synopsis"])])
    frame = tables.sel(release=tables.releases[0]).to_pandas()
    assert frame[frame["key"] == "AA"]["users"].item() == TABLE["AA"]["users"].value
    with pytest.raises(SynopsisError, match=r"a table has a row for each: choose rows of to_pandas\(\)"):
        tables.sel(key="AA")
    with pytest.raises(SynopsisError, match="nothing is left"):
        tables.sel(release="other")


PARTS = json.loads((FOLDER / "counts-columns.json").read_text())


def test_keys_of_several_columns_have_a_column_for_each_part(tmp_path: Path) -> None:
    table = Synopsis.from_json(PARTS["synopsis"]).key_table()
    assert table.key_columns == ("carrier", "sold by")
    frame = table.to_pandas()
    assert list(frame.columns)[:4] == ["key", "carrier", "sold by", "users"]
    assert list(frame["sold by"]) == ["web", "desk/phone", "web", "50% club", "web", "%2F"]
    margin = table.margin("carrier")
    assert margin["carrier"][0] == "AA" and margin["keys"].tolist() == [3, 2, 1]
    assert "users" not in margin
    assert np.allclose(margin["records"], frame.groupby("carrier", sort=False)["records"].sum())
    shares = table.shares("carrier")
    assert shares["records_share"][4] == 1.0 and list(shares)[:3] == ["key", "carrier", "sold by"]
    message = pa.ipc.open_stream(base64.b64decode(PARTS["arrow"])).read_all()
    assert message.column("carrier").to_pylist() == list(frame["carrier"])
    both = Collection([Synopsis.from_json(PARTS["synopsis"])]).to_pandas()
    assert list(both["carrier"]) == list(frame["carrier"])
    assert parquet.append(Collection([Synopsis.from_json(PARTS["synopsis"])]), tmp_path) == 1
    (path,) = tmp_path.rglob("*.parquet")
    assert pq.read_table(path).column("carrier").to_pylist() == list(frame["carrier"])


def test_margins_that_are_not_there_are_errors() -> None:
    table = Synopsis.from_json(PARTS["synopsis"]).key_table()
    with pytest.raises(SynopsisError, match="no parts 'device', only carrier, sold by"):
        table.margin("device")
    with pytest.raises(SynopsisError, match="one column"):
        TABLE.shares("carrier")
    assert TABLE.margin()["keys"].tolist() == [len(TABLE)]
    basis = {**CASE["synopsis"]["basis"]["keys"], "columns": CASE["synopsis"]["basis"]["keys"]["columns"][:1]}
    users = document(basis, values=CASE["synopsis"]["values"][: len(TABLE)])
    with pytest.raises(SynopsisError, match="do not add up"):
        Synopsis.from_json(users).key_table().margin()


@pytest.mark.parametrize(
    "columns", [["a"], ["a", "a"], ["a", "users"], ["a", "sum_upper"], ["a", ""], list("abcd"), "ab", [1, 2]]
)
def test_columns_of_keys_that_are_none_are_refused(columns: Any) -> None:
    with pytest.raises(SynopsisError, match="key_columns"):
        Synopsis.from_json({**PARTS["synopsis"], "key_columns": columns})


@pytest.mark.parametrize("key", ["AA", "AA/web/x", "AA/%2f", "AA/%"])
def test_keys_without_a_part_for_each_column_are_refused(key: str) -> None:
    keys = {**PARTS["synopsis"]["basis"]["keys"]}
    keys["keys"] = [key, *keys["keys"][1:]]
    with pytest.raises(SynopsisError, match="does not have 2 parts"):
        Synopsis.from_json({**PARTS["synopsis"], "basis": {"keys": keys}})


def test_means_of_no_records_are_unknown_and_last() -> None:
    mean = TABLE.column("mean")
    unknown = np.isnan(mean.pointwise.lower)
    assert unknown[TABLE.keys.index("nobody")] and not unknown.all()
    order = TABLE.top(len(TABLE), "mean").keys
    assert set(order[-unknown.sum() :]) == {key for key, none in zip(TABLE.keys, unknown) if none}
    assert TABLE.top(1, "mean").keys == ("DL",)


def test_a_folder_of_tables_is_one_frame_and_rows_for_sql(tmp_path: Path) -> None:
    day = {"start": "2013-06-19T05:00:00Z", "end": "2013-06-20T05:00:00Z"}
    other = Synopsis.from_json(document(window=day))
    both = Collection([other, Synopsis.from_json(CASE["synopsis"])])
    frame = both.to_pandas()
    assert len(frame) == 2 * len(TABLE) and list(frame["key"][: len(TABLE)]) == list(TABLE.keys)
    assert list(frame.columns)[:5] == ["release", "key", "time", "window_start", "window_end"]
    assert list(frame["users"][: len(TABLE)]) == list(TABLE.columns()["users"])
    assert both.to_polars().shape == frame.shape
    assert parquet.append(both, tmp_path) == 2 and parquet.append(both, tmp_path) == 0
    written = pa.concat_tables([pq.read_table(path) for path in sorted(tmp_path.rglob("*.parquet"))])
    assert written.column_names == list(frame.columns) and written.column("mean").to_pandas().equals(frame["mean"])
    with pytest.raises(SynopsisError, match="tables by key"):
        both.to_xarray()
    with pytest.raises(SynopsisError, match="different axes"):
        Collection([other, bernstream.example()]).to_pandas()


def test_any_reader_of_arrow_reads_the_message() -> None:
    import duckdb

    counts = pa.ipc.open_stream(MESSAGE).read_all()
    assert counts.column("key").to_pylist() == list(TABLE.keys)
    rows = duckdb.sql("select key, users, low + high from counts where sequence = 17 order by users desc").fetchall()
    assert [key for key, *_ in rows] == list(TABLE.top(len(TABLE), "users").keys)
    assert rows[0][2] == TABLE[rows[0][0]]["records"].value


def test_it_is_no_function() -> None:
    f = Synopsis.from_json(CASE["synopsis"])
    for ask in (
        lambda: f(),
        lambda: f.band(),
        lambda: f.half_width(1.0),
        lambda: f.deviation(),
        lambda: f.mass,
        lambda: f.integrate(),
        lambda: f.count(),
        lambda: f.median(),
        lambda: f.density(),
        lambda: f.query(lambda x: x),
        lambda: f.plot(),
        lambda: f.by("posterior"),
        lambda: f.predict([[1.0]]),
        lambda: bernstream.example().key_table(),
    ):
        with pytest.raises(SynopsisError, match=r"key|axis|axes|density|cells|box|columns"):
            ask()
    assert f.form_error is None and f.kind == "counts" and f.key is None


def test_samples_have_the_noise_of_each_column() -> None:
    f = Synopsis.from_json(CASE["synopsis"])
    drawn = np.array([one.values for one in f.sample(400, rng=1)]).reshape(400, -1, len(TABLE))
    spread = drawn.std(axis=0).mean(axis=1)
    units = np.array([column["unit"] for column in CASE["synopsis"]["basis"]["keys"]["columns"]])
    assert np.allclose(spread / units, spread[0] / units[0], rtol=0.1)
    assert 0.8 < spread[0] / (2**0.5 * f.meta["noise"]["scale"] * units[0]) < 1.2


def test_it_shows_its_rows_and_what_is_left_out() -> None:
    f = Synopsis.from_json(CASE["synopsis"])
    assert "6 keys>" in repr(f) and repr(TABLE) == "<KeyTable of users, records, sum, mean of 6 keys>"
    html = f._repr_html_()
    assert "at most 2 keys of a window, with at most 3 records in each" in html
    running = Synopsis.from_json(
        {**CASE["synopsis"], "panes": {"over": "cumulative", "newest": CASE["synopsis"]["window"], "step": 0}}
    )
    assert "at most 2 keys of each window that is added up, with" in running.key_table().left_out
    target = {"counts": {**CASE["synopsis"]["target"]["counts"], "max_records": 1}}
    assert Synopsis.from_json(document(target=target)).key_table().left_out.endswith("with at most 1 record in each")
    assert "Lin\u00f3pe &quot;air&quot;" in html and "±" in html and "its error unknown" in html


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        (document({"keys": []}), "keys"),
        (document({"keys": ["AA"] * 6}), "different texts"),
        (document({"keys": ["AA", "B6"]}), "18 values, its description asks for 6"),
        (document({"columns": []}), "columns"),
        (document({"columns": [{"statistic": "users", "unit": 1.0}] * 3}), "different statistics"),
        (document({"columns": [{"statistic": "median", "unit": 1.0}]}), "'median'"),
        (document({"columns": [{"statistic": "users", "unit": 0.0}]}), "not positive"),
        (document({"columns": [{"statistic": name, "unit": 1.0} for name in ("users", "low", "records")]}), "belong together"),
        (document({"columns": [{"statistic": name, "unit": 1.0} for name in ("low", "high", "sum")]}), "belong together"),
        (document(key="AA"), "of all keys"),
        (document(domain=[{"column": "x", "min": 0.0, "max": 1.0}]), "1 axes, not 0 to 0"),
        (document(noise={**CASE["synopsis"]["noise"], "law": "rounded ball"}), "independent noise"),
        (document(target={"sum": {"expression": "1"}}), "do not fit"),
        (document(target={"counts": {"max_keys": 1, "parts": []}}), "does not say which"),
        (document(target={"counts": {"max_keys": 0, "parts": [], "value": {"column": "x", "min": 0, "max": 1}}}), "max_keys"),
        (
            document(target={"counts": {"max_keys": 1, "parts": [], "value": {"column": "x", "min": 1, "max": 1}}}),
            "proper range",
        ),
    ],
    ids=lambda found: found if isinstance(found, str) else "",
)
def test_tables_that_do_not_agree_with_themselves_are_refused(changed: dict[str, Any], says: str) -> None:
    with pytest.raises(SynopsisError, match=f"^not a synopsis: .*{says}"):
        Synopsis.from_json(changed)


def stream(change: Any) -> bytes:
    """The message with a changed table."""
    table = change(pa.ipc.open_stream(MESSAGE).read_all())
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def renamed(table: Any, name: str, other: str) -> Any:
    names = [other if one == name else one for one in table.column_names]
    return table.rename_columns(names).replace_schema_metadata(table.schema.metadata)


def replaced(table: Any, name: str, column: Any) -> Any:
    place = table.column_names.index(name)
    return table.set_column(place, table.schema.field(place), column)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda table: table.slice(0, 0), "not a synopsis"),
        (lambda table: table.drop_columns(["high"]), "columns are not those"),
        (lambda table: table.drop_columns(["key"]), "table by key"),
        (lambda table: renamed(table, "high", "sum"), "columns are not those"),
        (lambda table: replaced(table, "key", pa.array([None] * 6, pa.string())), "missing"),
        (lambda table: replaced(table, "key", pa.array(["AA"] * 6)), "different texts"),
        (lambda table: replaced(table, "sequence", pa.array([17] * 5 + [18], pa.uint64())), "disagree"),
        (lambda table: replaced(table, "window_end", table.column("window_start")), "disagree"),
        (lambda table: replaced(table, "low", pa.array([1.0] * 5 + [float("nan")])), "not a number"),
    ],
)
def test_messages_that_do_not_agree_with_themselves_are_refused(change: Any, says: str) -> None:
    assert isinstance(Synopsis.from_arrow(stream(lambda table: table)).key_table(), KeyTable)
    with pytest.raises(SynopsisError, match=says):
        Synopsis.from_arrow(stream(change))


QUANTILES = json.loads((FOLDER / "quantiles-laplace.json").read_text())["synopsis"]


def of_quantiles(**more: Any) -> dict[str, Any]:
    """The golden quantiles with other grids, parts or columns."""
    counts = QUANTILES["target"]["counts"]
    found = {**QUANTILES, "target": {"counts": {**counts, "quantiles": {**counts["quantiles"], **more.pop("quantiles", {})}}}}
    if "columns" in more:
        found["basis"] = {"keys": {**found["basis"]["keys"], "columns": more.pop("columns")}}
    return {**found, **more}


def test_any_quantile_is_read_and_those_that_are_told_are_columns() -> None:
    table = Synopsis.from_json(QUANTILES).key_table()
    assert table.readings == ("p25", "p50", "p90", "p99.9", "values")
    assert np.array_equal(table.quantile(0.5).value, table.column("p50").value, equal_nan=True)
    low, middle, high = (table.quantile(part).value for part in (0.3, 0.5, 0.7))
    known = ~np.isnan(middle)
    assert known.any() and (low[known] <= middle[known]).all() and (middle[known] <= high[known]).all()
    assert "the mean of its values" in table.left_out
    for part in (0.0, 1.0, float("nan")):
        with pytest.raises(SynopsisError, match="above 0 and below 1"):
            table.quantile(part)
    with pytest.raises(SynopsisError, match="no ranges"):
        TABLE.quantile(0.5)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        (of_quantiles(quantiles={"parts": []}), "parts"),
        (of_quantiles(quantiles={"parts": [0.5, 0.5]}), "not that of its columns"),
        (of_quantiles(quantiles={"parts": [0.12345]}), "thousandths"),
        (of_quantiles(quantiles={"grid": {"places": 31, "block": 6}}), "not that of its columns"),
        (of_quantiles(quantiles={"grid": {"places": 32}}), "not that of its columns"),
        (of_quantiles(quantiles={"grid": {"places": 4000}}), "places"),
        (of_quantiles(columns=QUANTILES["basis"]["keys"]["columns"][:-1]), "not that of its columns"),
        (
            {**QUANTILES, "target": {"counts": {**QUANTILES["target"]["counts"], "quantiles": None}}},
            "does not say what for",
        ),
        ({**QUANTILES, "target": {"counts": {**QUANTILES["target"]["counts"], "value": None}}}, "does not say which"),
    ],
)
def test_quantiles_that_do_not_agree_with_their_columns_are_refused(changed: dict[str, Any], says: str) -> None:
    with pytest.raises(SynopsisError, match=says):
        Synopsis.from_json(changed)


def test_the_share_that_a_cap_drops_holds_wherever_in_their_bins_units_are() -> None:
    bins, counts = [(1, 1), (2, 2), (3, 3), (4, 4), (5, 6), (7, 8), (9, 11)], np.array([3.0, 2.0, 0.0, 1.0, 2.0, 1.0, 1.0])
    for cap in (1, 2, 3, 4, 6, 8):
        shares = []
        for ends in itertools.product((5, 6), (5, 6), (7, 8), (9, 10, 11)):
            keys = np.array([1, 1, 1, 2, 2, 4, *ends])
            shares.append(np.maximum(keys - cap, 0).sum() / keys.sum())
        value, (lower, upper), _ = dropped_share(bins, counts, cap, 0.0)
        assert lower == pytest.approx(min(shares)) and upper == pytest.approx(max(shares))
        assert lower <= value <= upper
    # Noise can make the number of units of the last bin negative.
    value, (lower, upper), _ = dropped_share(
        [(1, 1), (2, 2), (3, 3), (4, 4), (5, 11)], np.array([0, 0, 0, 300.0, -50]), 3, 1.96
    )
    assert lower < 0.1 and upper > 0.2 and lower <= value <= upper


def test_numbers_of_units_follow_the_columns() -> None:
    keys = len(TABLE)
    cap = CASE["synopsis"]["target"]["counts"]["max_keys"]
    units = {"bins": [{"least": 1, "most": cap}, {"least": cap + 1, "most": keys}], "unit": 1e-12}
    values = [*CASE["synopsis"]["values"], 900.0, 100.0]
    table = Synopsis.from_json(document({"units": units}, values=values)).key_table()
    assert table.column("users").value.tolist() == TABLE.column("users").value.tolist()
    assert table.units is not None and table.units["units"].tolist() == [900.0, 100.0]
    assert table.dropped is not None and 0.0 <= table.dropped.pointwise.lower <= table.dropped.pointwise.upper <= 1.0
    assert TABLE.dropped is None and TABLE.units is None
    gap = {**units, "bins": [{"least": 2, "most": keys}]}
    cut = {**units, "bins": [{"least": 1, "most": cap - 1}, {"least": cap, "most": keys}]}
    for broken in (
        document({"units": units}),
        document({"units": gap}, values=values),
        document({"units": cut}, values=values),
    ):
        with pytest.raises(SynopsisError):
            Synopsis.from_json(broken)


def test_a_variance_is_that_of_all_records_of_a_key_or_of_several() -> None:
    case = json.loads((FOLDER / "counts-variance.json").read_text())
    table = Synopsis.from_json(case["synopsis"]).key_table()
    assert table.readings == ("users", "records", "sum", "mean", "variance", "deviation")
    values = np.array(case["synopsis"]["values"]).reshape(4, -1)
    low, high = (case["synopsis"]["target"]["counts"]["value"][end] for end in ("min", "max"))
    for places, found in (([0], table["AA"]), (range(len(table)), None)):
        first, middle, last = values[1:, list(places)].sum(axis=1)
        mean = (0.5 * middle + last) / (first + middle + last)
        square = last / (first + middle + last) - mean**2
        if found is None:
            margin = table.margin()
            variance, deviation = margin["variance"][0], margin["deviation"][0]
        else:
            variance, deviation = found["variance"].value, found["deviation"].value
        assert variance == pytest.approx((high - low) ** 2 * square) and deviation == pytest.approx(math.sqrt(variance))
    mean, spread = table.column("mean"), table.column("variance")
    unknown = np.isnan(mean.pointwise.lower)
    assert unknown.any() and np.array_equal(unknown, np.isnan(spread.pointwise.upper))
    assert (spread.pointwise.lower[~unknown] <= spread.value[~unknown]).all() and np.nanmin(spread.pointwise.lower) >= 0.0
    assert np.nanmax(spread.pointwise.upper) <= (high - low) ** 2 / 4
    for column in (1, 3):
        broken = json.loads(json.dumps(case["synopsis"]))
        broken["basis"]["keys"]["columns"][column]["unit"] *= 2
        with pytest.raises(SynopsisError, match="belong together"):
            Synopsis.from_json(broken)
