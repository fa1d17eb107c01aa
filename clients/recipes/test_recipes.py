"""The recipes of the README, each run as it stands in a folder that a worker could have written."""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bernstream

HERE = Path(__file__).parent
SYNOPSIS = HERE.parent / "python" / "tests" / "flights.arrows"
CELLS = json.loads((HERE.parent / "golden" / "density-cells-1d-box.json").read_text())
X = np.linspace(-30.0, 180.0, 43)


def recipe(name: str) -> str:
    text = (HERE / "README.md").read_text()
    found = re.search(rf"^## {name}$.*?^```(?:python|r)$\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert found, f"there is no recipe for {name}"
    return found[1]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    of_key = tmp_path / "out" / "flights" / "departure-delay" / "JFK"
    of_key.mkdir(parents=True)
    shutil.copy(SYNOPSIS, of_key / "2013-01-01T050000Z.arrows")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ran(name: str) -> Any:
    names: dict[str, Any] = {}
    exec(compile(recipe(name), f"the recipe for {name}", "exec"), names)
    return names["curves"]


def test_pandas(folder: Path) -> None:
    curves, f = ran("pandas"), bernstream.read(SYNOPSIS)
    assert np.array_equal(curves["value"], f(X)) and set(curves["key"]) == {"JFK"}
    assert (curves["lower"] < curves["value"]).all() and (curves["value"] < curves["upper"]).all()


def test_polars(folder: Path) -> None:
    curves, f = ran("Polars"), bernstream.read(SYNOPSIS)
    assert np.array_equal(curves["value"].to_numpy(), f(X)) and curves["key"].unique().to_list() == ["JFK"]
    assert np.array_equal(curves["lower"].to_numpy(), f.band(X).lower)


def test_duckdb(folder: Path) -> None:
    rows = np.array(ran("DuckDB").fetchall())
    assert np.array_equal(rows[:, 0], X) and np.allclose(rows[:, 1], bernstream.read(SYNOPSIS)(X), rtol=1e-12)


@pytest.mark.parametrize("name", ["R", "R, cells"])
def test_r(folder: Path, name: str) -> None:
    if shutil.which("Rscript") is None:
        pytest.skip("there is no Rscript on this machine: the recipe for R was not run")
    if subprocess.run(["Rscript", "-e", "library(jsonlite)"], capture_output=True).returncode != 0:
        pytest.skip("R has no package jsonlite here: the recipe for R was not run")
    synopsis = bernstream.read(SYNOPSIS) if name == "R" else bernstream.Synopsis.from_json(CELLS["synopsis"])
    (folder / "synopsis.json").write_text(synopsis.to_json())
    subprocess.run(["Rscript", "-"], input=recipe(name), text=True, check=True)
    with Path("curves.csv").open() as rows:
        found = np.array([[float(x) for x in row.values()] for row in csv.DictReader(rows)])
    assert np.allclose(found[:, 1], synopsis(X), rtol=1e-9)
