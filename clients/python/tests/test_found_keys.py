"""Tables of keys that nobody listed: as rows and frames, hostile ones, what they announce, and whether that holds."""

from __future__ import annotations

import copy
import json
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from found import HOUR, MANY, START, Worker, changed, table_of, written

import bernstream
from bernstream import Collection, Synopsis, SynopsisError, parquet
from bernstream.found_keys import UNIT


def message(document: dict[str, Any], change: Any = lambda table: table, **more: Any) -> bytes:
    """The Arrow form of a table, changed."""
    basis, rule = document["basis"]["keys"], document["basis"]["keys"]["found"]
    names, rows, time = basis.get("keys", []), rule.get("rows", []), pa.timestamp("us", tz="UTC")
    start, end = (datetime.fromisoformat(document["window"][at].replace("Z", "+00:00")) for at in ("start", "end"))
    bare = {name: value for name, value in document.items() if name != "values"}
    without = {name: value for name, value in {**rule, **more}.items() if name != "rows" or more.get("rows")}
    bare["basis"] = {"keys": {"columns": basis["columns"], "found": without}}
    fields = [
        pa.field("window_start", time, False),
        pa.field("window_end", time, False),
        pa.field("key", pa.string()),
        pa.field("sequence", pa.uint64(), False),
        pa.field(basis["columns"][0]["statistic"], pa.float64(), False),
        pa.field("new", pa.bool_(), False),
        pa.field("until", time, False),
    ]
    until = [datetime.fromisoformat(row["until"].replace("Z", "+00:00")) for row in rows]
    columns = [
        [start] * len(names),
        [end] * len(names),
        names,
        [document["ledger"]["sequence"]] * len(names),
        document["values"],
        [row["is_new"] for row in rows],
        until,
    ]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, fields)]
    schema = pa.schema(fields, metadata={"bernstream": json.dumps(bare)})
    batch = change(pa.RecordBatch.from_arrays(arrays, schema=schema))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def test_a_table_says_which_keys_are_new_until_when_they_are_there_and_what_it_means_that_one_is_not() -> None:
    worker = Worker()
    first, second = (table_of(worker.release(MANY | {"few": 2})) for _ in range(2))
    assert first.is_found and set(first.new) == set(first.keys) == set(MANY) and second.new == ()
    assert list(first.keys) == sorted(MANY, key=str.encode)
    assert first.until["/"] == START + 4 * HOUR and second.until["/"] == START + 5 * HOUR
    assert first.threshold == worker.threshold * UNIT and 20.0 < first.threshold < 21.0
    assert first.absent_below == first.threshold and not first.is_overfull
    with pytest.raises(
        SynopsisError, match=r"no key 'few' .*: it has .* a key that is not there had fewer than about 21 users"
    ):
        first["few"]
    assert repr(first) == "<KeyTable of users of 6 found keys>"
    listed = bernstream.example("keys").key_table()
    assert not listed.is_found and listed.new == () and listed.until == {} and not listed.is_overfull
    assert listed.threshold is None and listed.absent_below is None


def test_what_is_missing_in_a_full_table_had_less_than_its_least() -> None:
    table = table_of(Worker(most=3).release(MANY))
    assert len(table) == 3 and table.absent_below == table.column("users").value.min() > table.threshold


def test_a_window_without_keys_and_one_with_too_many_are_tables() -> None:
    empty = Synopsis.from_json(Worker().release({"few": 1}))
    worker = Worker(limit=1_000_000)
    worker.release(MANY)
    overfull = Synopsis.from_json(worker.release(MANY, is_overfull=True))
    for f in (empty, overfull):
        table = f.key_table()
        assert len(table) == 0 and table.keys == () and table.top(3).keys == () and table.rows() == []
        assert list(table.to_pandas().columns)[-2:] == ["new", "until"] and len(table.to_polars()) == 0
        assert Synopsis.from_json(f.to_json()).key_table().is_overfull == (f is overfull)
        assert "0 found keys>" in repr(f)
    assert not empty.key_table().is_overfull and overfull.key_table().is_overfull
    assert overfull.key_table().absent_below is None
    assert "fewer than about 21 users" in empty._repr_html_()
    assert "too many different ones to look for new ones" in overfull._repr_html_()


@pytest.mark.parametrize("limit", [None, 1_000_000])
def test_both_forms_of_a_message_are_one_table(limit: Any) -> None:
    worker = Worker(limit=limit)
    for counts in (MANY, dict.fromkeys(MANY, 1), {}):
        document = worker.release(counts)
        plain, arrow = Synopsis.from_json(document), Synopsis.from_arrow(message(document))
        assert json.loads(arrow.to_json()) == json.loads(plain.to_json())
        pandas.testing.assert_frame_equal(arrow.key_table().to_pandas(), plain.key_table().to_pandas())
    empty = Worker(limit=limit).release({})
    assert json.loads(Synopsis.from_arrow(message(empty)).to_json()) == json.loads(Synopsis.from_json(empty).to_json())


def test_rows_frames_and_files_have_what_is_said_of_each_key(tmp_path: Path) -> None:
    worker = Worker()
    both = Collection([Synopsis.from_json(worker.release(counts)) for counts in (MANY, {**MANY, "late": 90})])
    table = both[1].key_table()
    assert list(table.columns()) == ["key", "users", "users_lower", "users_upper", "new", "until"]
    assert [row["key"] for row in table.rows() if row["new"]] == ["late"]
    for frame in (table.to_pandas(), table.to_polars().to_pandas(), table.to_arrow().to_pandas()):
        assert list(frame["new"]) == [key == "late" for key in table.keys]
        assert {at.to_pydatetime() for at in frame["until"]} == set(table.until.values())
    frame = both.to_pandas()
    assert len(frame) == 13 and list(frame.columns)[-2:] == ["new", "until"] and both.to_polars().shape == frame.shape
    assert parquet.append(both, tmp_path) == 2
    written_rows = pa.concat_tables([pq.read_table(path) for path in sorted(tmp_path.rglob("*.parquet"))])
    assert written_rows.column_names == list(frame.columns)
    assert (
        written_rows.schema.field("new").type == pa.bool_() and written_rows.column("until").to_pylist()[0] == START + 4 * HOUR
    )
    html = both[1]._repr_html_()
    assert "&lt;script&gt;" in html and "\\u{202e}abc" in html and "late (new)" in html


def test_a_key_that_a_window_lacks_has_no_value_there_and_not_0() -> None:
    worker = Worker(keep=HOUR)
    counts: list[dict[str, int]] = [{"/": 90}, {"/": 90, "/b": 80}, {"/": 90}, {"/": 90}, {"/": 90, "/b": 80}]
    all_ = Collection([Synopsis.from_json(worker.release(one)) for one in counts])
    history = all_.history("/b")
    # It was announced for an hour, so that the window after it has a number, near 0.
    assert np.isnan(history["users"]).tolist() == [True, False, False, True, False]
    assert np.isnan(history["users_lower"]).tolist() == np.isnan(history["users"]).tolist()
    assert history["new"].tolist() == [False, True, False, False, True] and history["until"][0] is None
    assert history["window_start"] == [START + place * HOUR for place in range(5)]
    pivot = all_.to_pandas().pivot(index="time", columns="key", values="users")
    assert np.array_equal(pivot["/b"], history["users"], equal_nan=True) and not pivot["/"].isna().any()
    with pytest.raises(SynopsisError, match="no key '/c'"):
        all_.history("/c")
    with pytest.raises(SynopsisError, match="tables by key"):
        Collection([bernstream.example()]).history("/")


def test_found_keys_do_not_add_up_and_have_no_other_noise() -> None:
    f = Synopsis.from_json(Worker(limit=1_000_000).release(MANY))
    table = f.key_table()
    for ask in (table.margin, table.shares):
        with pytest.raises(SynopsisError, match="nobody listed"):
            ask()
    with pytest.raises(SynopsisError, match="other noise would have found others"):
        f.sample(2)


def test_new_keys_are_told_apart_by_their_intervals_and_others_by_the_noise_of_their_difference() -> None:
    worker = Worker()
    first = table_of(worker.release({"a": 40, "b": 45, "c": 200}))
    assert first.top(2).keys == ("c", "b") and first.top(2).is_last_unclear and not first.top(1).is_last_unclear
    later = table_of(worker.release({"a": 40, "b": 46, "c": 200}))
    value, (lower, upper), _ = later.column("users")
    assert lower[1] < upper[0] and value[1] > value[0]
    assert later.top(2).is_last_unclear == (value[1] - value[0] <= later._half_width((UNIT, UNIT)))


GOOD = Worker().release({**MANY, "\U0001f600": 60, "\uffee": 60})
OVERFULL = Worker(limit=1_000_000).release({}, is_overfull=True)
ROWS = GOOD["basis"]["keys"]["found"]["rows"]


def keyed(keys: list[str]) -> dict[str, Any]:
    found = copy.deepcopy(GOOD)
    found["basis"]["keys"]["keys"] = keys
    return found


def row(place: int, **more: Any) -> list[Any]:
    return [{**one, **(more if at == place else {})} for at, one in enumerate(ROWS)]


@pytest.mark.parametrize(
    ("document", "says"),
    [
        (changed(GOOD, rows=ROWS[1:]), "rows are 7, and there are 8 keys"),
        (changed(GOOD, rows=None), "rows are 0"),
        (changed(GOOD, rows="new"), "rows is not a list"),
        (changed(GOOD, rows=row(0, is_new=1)), "is_new is not true or false"),
        (changed(GOOD, rows=row(0, until="soon")), "until 'soon'"),
        (changed(GOOD, rows=row(0, until=written(START))), "not published for the time"),
        (changed(GOOD, rows=row(0, until=written(START + 5 * HOUR))), "not published for the time"),
        (changed(GOOD, rows=row(0, is_new=False, until=written(START + 2 * HOUR))), "not announced anew"),
        (changed(GOOD, most=7), "most is 7"),
        (changed(GOOD, longest=5), "longest is 5"),
        (changed(GOOD, threshold=0), "threshold is 0"),
        (changed(GOOD, threshold=1.5), "threshold is not a whole"),
        (changed(GOOD, threshold=GOOD["basis"]["keys"]["found"]["threshold"] - 2), "another threshold"),
        (changed(GOOD, delta="0"), "delta"),
        (changed(GOOD, delta="1e-9"), "delta"),
        (changed(GOOD, delta=1e-9), "delta is not a text"),
        (changed(GOOD, delta="0.00000001"), "another threshold"),
        (changed(GOOD, keep_seconds=-1), "keep_seconds is -1"),
        (changed(GOOD, keep_seconds=10**15), "keep_seconds"),
        (changed(OVERFULL, overfull={"limit": 10, "soft_limit": 10, "is_overfull": True}), "soft_limit is 10"),
        (changed(GOOD, overfull={"limit": 10, "soft_limit": 1, "is_overfull": True}), "too many keys, and some are told"),
        (keyed(["", *GOOD["basis"]["keys"]["keys"][1:]]), "a key is empty"),
        (keyed(GOOD["basis"]["keys"]["keys"][::-1]), "order of their bytes"),
        (keyed(sorted(GOOD["basis"]["keys"]["keys"], key=lambda key: key.encode("utf-16-be"))), "order of their bytes"),
        ({**GOOD, "values": [5.0, *GOOD["values"][1:]]}, "a new key is not above"),
        ({**GOOD, "values": [GOOD["values"][0] + 2.0**-13, *GOOD["values"][1:]]}, "not on the grid"),
        ({**GOOD, "noise": {**GOOD["noise"], "law": "discrete gaussian"}}, "not that of found keys"),
        ({**GOOD, "noise": {**GOOD["noise"], "grid": 2.0}}, "not that of found keys"),
        ({**GOOD, "noise": {**GOOD["noise"], "scale": 4096.5}}, "not that of found keys"),
        ({**GOOD, "noise": {**GOOD["noise"], "scale": 4112.0}}, "another threshold"),
        ({**GOOD, "privacy": {**GOOD["privacy"], "adjacency": "replace_one"}}, "cannot find keys"),
        ({**GOOD, "privacy": {**GOOD["privacy"], "unit": "record"}}, "another number"),
        ({**GOOD, "panes": {"over": "cumulative", "newest": GOOD["window"], "step": 0}}, "running sums"),
        ({**GOOD, "key_columns": ["until", "page"]}, "columns of the table"),
    ],
)
def test_tables_that_do_not_agree_with_themselves_are_refused(document: dict[str, Any], says: str) -> None:
    assert len(Synopsis.from_json(GOOD).key_table()) == 8 and Synopsis.from_json(OVERFULL).key_table().is_overfull
    with pytest.raises(SynopsisError, match=f"^not a synopsis: .*{says}"):
        Synopsis.from_json(document)


def replaced(name: str, column: Any, field: Any = None) -> Any:
    def change(batch: Any) -> Any:
        place = batch.schema.get_field_index(name)
        schema = batch.schema if field is None else batch.schema.set(place, field)
        arrays = [column if at == place else one for at, one in enumerate(batch.columns)]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    return change


@pytest.mark.parametrize(
    ("change", "more", "says"),
    [
        (replaced("new", pa.array([None] * 8, pa.bool_()), pa.field("new", pa.bool_())), {}, "missing"),
        (replaced("new", pa.array([1] * 8, pa.int8()), pa.field("new", pa.int8(), False)), {}, "found keys"),
        (replaced("until", pa.array([0] * 8, pa.int64()), pa.field("until", pa.int64(), False)), {}, "found keys"),
        (replaced("until", pa.array([2**62] * 8, pa.timestamp("us", tz="UTC"))), {}, "no time"),
        (replaced("new", pa.array([True] * 8), pa.field("new", pa.bool_(), True)), {}, "columns are not those"),
        (lambda batch: batch.drop_columns(["new"]), {}, "found keys"),
        (lambda batch: batch.select([0, 1, 2, 3, 5, 6, 4]), {}, "columns are not those"),
        (lambda batch: batch, {"rows": ROWS}, "in its description too"),
    ],
)
def test_messages_that_do_not_agree_with_themselves_are_refused(change: Any, more: dict[str, Any], says: str) -> None:
    with pytest.raises(SynopsisError, match=f"^not a synopsis: .*{says}"):
        Synopsis.from_arrow(message(GOOD, change, **more))
