"""An upgrade with an open ledger: what older versions wrote, this one goes on with, and changes none of it. The ledgers of
tests/data/upgrade were made by versions of 2026-11-23 to 29, from `upgrade.toml` or `sums.toml` and the flights; `rows.jsonl` is what those versions
said of them. A rollback is in test_pod.py."""

import json
import re
import shutil
import sqlite3
import subprocess

import pytest

from pod import PROGRAM
from rendered import ROOT

DATA = ROOT / "tests/data/upgrade"
FORMATS = sorted(path.name for path in DATA.glob("format-*"))

pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason=f"{PROGRAM} is not built: upgrades are NOT tested")


def copied(of, configuration, tmp_path):
    """A copy of the older version's folder, and its configuration with three days more."""
    shutil.copytree(DATA / of, tmp_path, dirs_exist_ok=True)
    (tmp_path / "flights").mkdir()
    shutil.copy(ROOT / "tests/data/flights.parquet", tmp_path / "flights")
    text = (DATA / configuration).read_text()
    assert text.count("2013-06-04T05:00:00Z") == 1
    (tmp_path / "upgrade.toml").write_text(text.replace("2013-06-04T05:00:00Z", "2013-06-07T05:00:00Z"))
    return tmp_path


@pytest.fixture(params=FORMATS)
def place(request, tmp_path):
    return copied(request.param, "upgrade.toml", tmp_path)


def bernstream(place, *arguments):
    done = subprocess.run([PROGRAM, *arguments, "upgrade.toml"], cwd=place, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_there_is_a_ledger_of_this_format_and_of_the_one_before():
    newest = int((ROOT / "crates/ledger/src/store.rs").read_text().split("const FORMAT: i64 = ")[1].split(";")[0])
    assert FORMATS == [f"format-{number}" for number in (newest - 1, newest)], "a new format needs a ledger of it here"


def test_a_ledger_of_an_older_version_goes_on(place):
    before = [json.loads(line) for line in (place / "rows.jsonl").read_text().splitlines()]
    old = {path: path.read_bytes() for path in place.glob("out/**/*.arrows")}
    assert len(before) == 4 and len(old) == 3
    code, said = bernstream(place, "run")
    assert code == 0, said
    code, said = bernstream(place, "ledger", "export", "--secret")
    assert code == 0, said
    after = [json.loads(line) for line in said.splitlines()]
    assert after[:4] == before and len(after) > 4, "what was paid stays, digest for digest"
    code, said = bernstream(place, "ledger", "verify")
    assert code == 0 and "byte for byte: 6" in said, said
    assert {path: path.read_bytes() for path in old} == old, "what was published stays"
    assert len(list(place.glob("out/**/*.arrows"))) == 6


def test_an_edited_ledger_of_an_older_version_is_noticed(place):
    with sqlite3.connect(place / "ledger/ledger.sqlite") as connection:
        edited = "UPDATE rows SET body = replace(body, '2013-06-02', '2013-06-03') WHERE sequence = 2"
        assert connection.execute(edited).rowcount == 1
    code, said = bernstream(place, "ledger", "verify")
    assert code == 74 and "damaged" in said, said


def test_a_sum_over_windows_goes_on_with_the_noise_of_an_older_version(tmp_path):
    """A filter's and a tree's: both go on where they were, and every state is that of its row."""
    place = copied("sums-of-format-5", "sums.toml", tmp_path)
    before = [json.loads(line) for line in (place / "rows.jsonl").read_text().splitlines()]
    slots = set(slots_of(before[3]))
    assert slots == {'["last-days",null]', '["so-far",null]'}
    code, said = bernstream(place, "run")
    assert code == 0 and "anew" not in said, said
    code, said = bernstream(place, "ledger", "verify")
    assert code == 0 and "byte for byte: 12" in said, said
    code, said = bernstream(place, "ledger", "export", "--secret")
    after = [json.loads(line) for line in said.splitlines()]
    assert after[:4] == before and len(after) == 8
    assert "ended" not in after[4]["row"]["configuration"], "only the end has changed, and nothing began anew"
    assert all(set(slots_of(row)) == slots for row in after[5:])
    steps = [re.search(rb'"step":(\d+)', path.read_bytes()) for path in sorted(place.glob("out/upgrade/so-far/*"))]
    assert [int(step[1]) for step in steps] == [0, 1, 2, 3, 4, 5], "the tree counts on"


def slots_of(row):
    return [state["slot"] for state in row["row"]["window"]["outcome"]["released"]["states"]]
