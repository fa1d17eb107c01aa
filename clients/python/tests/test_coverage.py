"""How often the intervals of cells hold what would be read without noise: simulated laws, at little and at much noise."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import pytest
from cells import share
from test_tables import ABOVE, CLASSES, NUMBER, Made

from bernstream import Synopsis

DRAWS = 100
RECORDS, STEPS = 2_000, 12
#: Places that have records, and a part of the domain that has few.
PLACES = np.array([-0.9, -0.55, -0.2, 0.3, 0.75])
RANGES = np.array([[-1.0, -0.7], [-0.6, 0.1], [-0.1, 0.0], [0.5, 1.0]])
PARTS = np.array([0.1, 0.5, 0.8])


def sloping(rng: np.random.Generator) -> tuple[Any, Any]:
    """Many records at the left, and a label that rises."""
    x = rng.beta(1.2, 3.0, size=RECORDS)
    return x, np.clip(0.1 + 0.8 * x + rng.normal(0.0, 0.15, size=RECORDS), 0.0, 1.0)


def hilly(rng: np.random.Generator) -> tuple[Any, Any]:
    """Two hills, and a label that jumps between them."""
    x = np.clip(np.where(rng.random(RECORDS) < 0.6, rng.normal(0.25, 0.08, RECORDS), rng.normal(0.7, 0.12, RECORDS)), 0.0, 1.0)
    return x, np.where(rng.random(RECORDS) < np.where(x < 0.45, 0.2, 0.8), rng.uniform(0.6, 1.0, RECORDS), 0.2)


def counted(x: Any, parts: Any, spline: str) -> Any:
    """The exact tables: every record shared among the nodes, and divided among the tables."""
    nodes = {"box": np.arange(STEPS) + 0.5, "linear": np.arange(STEPS + 1.0), "quadratic": np.arange(STEPS + 3.0) - 1.0}[spline]
    shares = np.vectorize(lambda f: share(spline, f))(x[:, None] * STEPS - nodes)
    shares /= shares.sum(axis=1, keepdims=True)
    return parts.T @ shares


def labelled(label: Any, y: Any) -> Any:
    """What part of a record is in each table."""
    if label is NUMBER:
        return np.stack([1.0 - y, y], axis=1)
    places = [0.5] if label is ABOVE else [0.3, 0.6]
    return np.eye(len(places) + 1)[np.searchsorted(places, y)]


def between(bounds: Any, exact: Any) -> Any:
    """Unknown holds everything."""
    return ~((exact < bounds.lower - 1e-9) | (exact > bounds.upper + 1e-9))


READINGS: dict[str, tuple[Any, Callable[[Synopsis], Any]]] = {
    "density": (None, lambda f: f.density(PLACES)),
    "count": (ABOVE, lambda f: f.count(RANGES)),
    "share": (ABOVE, lambda f: f.share(RANGES)),
    "quantile": (ABOVE, lambda f: f.quantile(PARTS)),
    "proportions": (CLASSES, lambda f: f.proportions(RANGES)),
    "probabilities, constant": (CLASSES, lambda f: f.probabilities(PLACES)),
    "probabilities, linear": (CLASSES, lambda f: f.probabilities(PLACES, degree="linear")),
    "expected, constant": (NUMBER, lambda f: f.expected(PLACES, degree="constant")),
    "expected, linear": (NUMBER, lambda f: f.expected(PLACES)),
    "mean": (NUMBER, lambda f: f.mean(RANGES)),
}


def coverage(
    tables: Made, law: Any, scale: float, noise: str, draws: int, names: Any = tuple(READINGS), told: float = 1.0
) -> dict[str, tuple[Any, float]]:
    """For these readings: how often the interval at each place held the exact value, and how often it was unknown.

    The scale that the synopsis tells is ``told`` times the real one.
    """
    found = {}
    x, y = law(np.random.default_rng(1))
    for number, name in enumerate(names):
        label, ask = READINGS[name]
        spline = ("linear", "quadratic", "box")[number % 3]
        parts = np.ones((len(x), 1)) if label is None else labelled(label, y)

        def made(scale: float) -> Synopsis:
            of = {"law": noise, "scale": scale, "grid": 2.0**-32, "calibrated": "tight"}
            q = scale * (1.96 if noise == "discrete gaussian" else np.log(20.0))
            band = {"level": 0.95, "half_width": q, "weights": [1.0], "pointwise": q, "draws": 0}
            band["covers"] = "the noise, not the approximation"
            return tables(spline, [STEPS], label, counted(x, parts, spline), noise=of, band=band)  # noqa: B023

        exact, described = ask(made(1e-6)).value, made(scale * told).meta
        asked = [ask(Synopsis(described, one.values)) for one in made(scale).sample(draws, rng=number)]
        held = np.mean([between(one.pointwise, exact) for one in asked], axis=0)
        found[name] = (held, float(np.mean([np.isnan(one.pointwise.lower) for one in asked])))
    return found


@pytest.mark.parametrize("scale", [1.0, 12.0])
@pytest.mark.parametrize("law", [sloping, hilly])
def test_intervals_hold_what_would_be_read_without_noise(tables: Made, law: Any, scale: float) -> None:
    # Five deviations of the mean over as many draws, were all places one.
    least = 0.95 - 5.0 * (0.95 * 0.05 / DRAWS) ** 0.5
    for name, (held, _) in coverage(tables, law, scale, "discrete gaussian", DRAWS).items():
        assert np.mean(held) > least, (name, held)
    # Of a scale that is told too small by half, all of them miss too often, except where that much is unknown.
    known = ("density", "count", "share", *(("expected, linear", "mean") if scale == 1.0 else ()))
    for name, (held, _) in coverage(tables, law, scale, "discrete gaussian", DRAWS, known, told=0.5).items():
        assert np.mean(held) < least, (name, held)
