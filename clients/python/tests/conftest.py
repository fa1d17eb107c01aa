"""What the tests share: golden vectors, and synopses to ask."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, Callable

import numpy as np
import pytest

import bernstream

CLIENTS = Path(__file__).parents[2]
FOLDER = CLIENTS / "golden"
GOLDEN = sorted(path for path in FOLDER.glob("*.json") if path.name != "wrong.json")
WRONG = json.loads((FOLDER / "wrong.json").read_text()) if (FOLDER / "wrong.json").exists() else []


@pytest.fixture
def document() -> dict[str, Any]:
    """A synopsis as it is written, to be changed."""
    found: dict[str, Any] = json.loads(bernstream.example().to_json())
    return found


@pytest.fixture
def lattice(document: dict[str, Any]) -> Callable[..., bernstream.Synopsis]:
    """A synopsis on a lattice of so many axes, with seeded values."""

    def made(axes: int, degree: int, order: int = 3, **more: Any) -> bernstream.Synopsis:
        domain = [{"column": "xyz"[i], "min": -1.0 - i, "max": 2.0 + i} for i in range(axes)]
        values = np.random.default_rng(5).normal(size=(degree + 1) ** axes).tolist()
        target = {"sum": {"expression": "1"}}
        changed = {**document, "domain": domain, "degree": degree, "order": order, "target": target, "values": values, **more}
        return bernstream.Synopsis.from_json(changed)

    return made


@pytest.fixture
def kernels(document: dict[str, Any]) -> Callable[..., bernstream.Synopsis]:
    """A sum of kernel functions."""

    def made(kernel: Any, axes: int, **more: Any) -> bernstream.Synopsis:
        rng = np.random.default_rng(6)
        points = rng.uniform(size=(9, axes)).tolist()
        changed = {
            **document,
            "domain": [{"column": "xyz"[i], "min": 0.0, "max": 2.0 + i} for i in range(axes)],
            "basis": {"kernel": {"kernel": kernel, "points": points}},
            "degree": 1,
            "order": 1,
            "target": {"sum": {"expression": "1"}},
            "values": rng.normal(size=9).tolist(),
            **more,
        }
        return bernstream.Synopsis.from_json(changed)

    return made


@pytest.fixture
def cells(document: dict[str, Any]) -> Callable[..., bernstream.Synopsis]:
    """Counts of cells, read by a Gaussian kernel."""

    def made(precision: list[list[float]], spline: str, steps: list[int], **more: Any) -> bernstream.Synopsis:
        count = math.prod(m + {"box": 0, "linear": 1, "quadratic": 3}[spline] for m in steps)
        changed = {
            **document,
            "domain": [{"column": "xyz"[i], "min": 0.0, "max": 2.0 + i} for i in range(len(steps))],
            "basis": {"cells": {"precision": precision, "spline": spline, "steps": steps}},
            "degree": 1,
            "order": 1,
            "target": {"density": {"kernel": {"bandwidths": [0.3] * len(steps)}}},
            "values": np.random.default_rng(6).normal(size=count).tolist(),
            **more,
        }
        return bernstream.Synopsis.from_json(changed)

    return made


@pytest.fixture
def tables(document: dict[str, Any]) -> Callable[..., bernstream.Synopsis]:
    """Counts of cells without a function; of as many tables as the label has."""

    def made(spline: str, steps: list[int], label: Any = None, values: Any = None, **more: Any) -> bernstream.Synopsis:
        count = 1 if label is None else len(label["classes"]["values"]) if "classes" in label else 2
        size = count * math.prod(m + {"box": 0, "linear": 1, "quadratic": 3}[spline] for m in steps)
        if values is None:
            values = np.random.default_rng(7).normal(8.0, 5.0, size=size)
        basis = {"spline": spline, "steps": steps, "bandwidths": [1.5 / m for m in steps], "tables": count}
        changed = {
            **document,
            "domain": [{"column": "xyz"[i], "min": -1.0, "max": 1.0 + i} for i in range(len(steps))],
            "basis": {"tables": basis},
            "degree": 1,
            "order": 1,
            "target": {"cells": {"label": label}},
            "noise": {"law": "discrete laplace", "scale": 1.0, "grid": 2.0**-32, "calibrated": "tight"},
            "band": {**document["band"], "half_width": 5.0, "weights": [1.0], "pointwise": 3.0},
            "values": np.asarray(values, dtype=float).ravel().tolist(),
            **more,
        }
        return bernstream.Synopsis.from_json(changed)

    return made
