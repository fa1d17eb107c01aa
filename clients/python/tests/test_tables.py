"""What is read from tables of cells, beside the formulas of the format page written out one node at a time."""

from __future__ import annotations

import copy
import json
import math
from typing import Any, Callable

import numpy as np
import pytest
from cells import Reference, boxes, fieller, scanned, somewhere
from scipy import optimize

import bernstream
from bernstream import Synopsis, SynopsisError

NUMBER = {"number": {"column": "delay", "min": -10.0, "max": 30.0}}
ABOVE = {"above": {"column": "delay", "above": 15.0}}
CLASSES = {"classes": {"column": "carrier", "values": ["AA", "B6", "WN"]}}
GRIDS = [("box", [6]), ("linear", [5]), ("quadratic", [4]), ("linear", [3, 4]), ("quadratic", [3, 2]), ("box", [2, 3, 2])]
Made = Callable[..., Synopsis]


@pytest.mark.parametrize(("spline", "steps"), GRIDS)
def test_densities_counts_and_shares_are_those_of_the_page(tables: Made, spline: str, steps: list[int]) -> None:
    for label, count in ((None, 1), (CLASSES, 3)):
        synopsis = tables(spline, steps, label)
        reference = Reference(synopsis)
        bandwidths = [1.9 / m * width for m, width in zip(steps, reference.widths)]
        peak = math.prod(math.sqrt(2.0 * math.pi * s2) * w for s2, w in zip(reference.variances(bandwidths), reference.widths))
        for point in somewhere(synopsis):
            kernel = reference.kernel(point, bandwidths)
            value, pointwise, simultaneous = synopsis.density(*point, bandwidths=bandwidths)
            assert math.isclose(value, reference.counts @ kernel / peak, rel_tol=1e-12)
            width = math.sqrt(count) * float(np.linalg.norm(kernel)) / peak
            assert np.allclose([*pointwise], [value - 3.0 * width, value + 3.0 * width], rtol=1e-12)
            assert simultaneous is not None
            assert np.allclose([*simultaneous], [value - 5.0 * width, value + 5.0 * width], rtol=1e-12)
        for box in boxes(synopsis):
            inside = reference.inside(box)
            within = float(reference.counts @ inside)
            value, pointwise, simultaneous = synopsis.count(*box)
            assert math.isclose(value, within, rel_tol=1e-7) and simultaneous is None
            assert math.isclose(pointwise.upper - value, 3.0 * math.sqrt(count) * np.linalg.norm(inside), rel_tol=1e-7)
            value, pointwise, _ = synopsis.share(*box)
            assert math.isclose(value, min(max(within / reference.all, 0.0), 1.0), rel_tol=1e-7)
            exact = synopsis.count(*box).value

            def misfit(p: float) -> float:
                return abs(exact - p * reference.all) - 3.0 * math.sqrt(count) * float(np.linalg.norm(inside - p))  # noqa: B023

            scanned(misfit, pointwise)
        assert math.isclose(synopsis.count().value, reference.all, rel_tol=1e-12)
        assert math.isclose(synopsis.share().value, 1.0)


@pytest.mark.parametrize(("spline", "steps"), GRIDS)
@pytest.mark.parametrize("label", [NUMBER, ABOVE, CLASSES], ids=lambda label: next(iter(label)))
def test_probabilities_are_those_of_the_page(tables: Made, spline: str, steps: list[int], label: Any) -> None:
    synopsis = tables(spline, steps, label)
    reference = Reference(synopsis)
    bandwidths = [1.6 / m * width for m, width in zip(steps, reference.widths)]
    for point in somewhere(synopsis):
        for degree in ("constant", "linear", "naive")[: 2 if label is NUMBER else 3]:
            if degree == "naive":
                sums, gradients = reference.naive(point, bandwidths)
            else:
                weights = reference.weights(point, bandwidths, degree)
                sums, gradients = reference.tables @ weights, reference.gradients(point, bandwidths, degree)
            value, pointwise, simultaneous = synopsis.probabilities(*point, bandwidths=bandwidths, degree=degree)
            assert math.isclose(value.sum(), 1.0) and simultaneous is not None
            fewest = reference.tables.sum(axis=1).min() / math.sqrt(len(reference.nodes))
            divisor = fewest if degree == "naive" and len(steps) > 1 else math.inf
            for table in range(len(value)):
                length = np.linalg.norm(gradients)
                wanted = reference.part(sums, length, table) if degree == "naive" else reference.probability(weights, table)
                assert math.isclose(value[table], wanted, rel_tol=1e-9, abs_tol=1e-12)
                for q, found in ((3.0, pointwise), (5.0, simultaneous)):
                    known = sums.sum() > q * np.linalg.norm(gradients.sum(axis=0)) and divisor > q
                    assert np.isnan(found.lower[table]) == np.isnan(found.upper[table]) == (not known)
                    if known:
                        ends = bernstream.Bounds(found.lower[table], found.upper[table])
                        scanned(fieller(sums, gradients, table, q), ends)
    for box in boxes(synopsis):
        value, _, _ = synopsis.proportions(*box)
        expected = [reference.probability(reference.inside(box), table) for table in range(len(value))]
        assert np.allclose(value, expected, rtol=1e-7)


@pytest.mark.parametrize(("spline", "steps"), GRIDS)
def test_a_ratio_of_densities_is_that_of_the_page(tables: Made, spline: str, steps: list[int]) -> None:
    synopsis = tables(spline, steps, CLASSES)
    reference, known = Reference(synopsis), 0
    bandwidths = [1.6 / m * width for m, width in zip(steps, reference.widths)]
    for point in somewhere(synopsis):
        kernel, ones = reference.kernel(point, bandwidths), np.ones(len(reference.nodes))
        (a, b), (n, m) = (reference.tables @ kernel)[[2, 0]], reference.tables.sum(axis=1)[[2, 0]]
        found = synopsis.density_ratio(*point, of="WN", over="AA", bandwidths=bandwidths)
        assert np.isnan(found.value) if min(b, n, m) <= 0.0 else math.isclose(found.value, max(a * m / b / n, 0.0))
        for q, ends in ((3.0, found.pointwise), (5.0, found.simultaneous)):

            def moved(r: float, q: float = q, of: Any = (a, b, n, m, kernel), ones: Any = ones) -> float:
                a, b, n, m, kernel = of
                return q * math.hypot(*np.ravel([m * kernel - r * b * ones, a * ones - r * n * kernel]))

            limits = (q * np.linalg.norm(kernel), q * np.linalg.norm(ones))
            whole = b * n > q * math.hypot(b * np.linalg.norm(ones), n * np.linalg.norm(kernel))
            assert np.isnan(ends.lower) == (not (b > limits[0] and min(n, m) > limits[1] and whole))
            if not np.isnan(ends.lower):
                known += 1
                for end in ends:
                    assert end == 0.0 or math.isclose(abs(a * m - end * b * n), moved(end), rel_tol=1e-6)
                    beyond = end * (1.01 if end == ends.upper else 0.99)
                    assert end == 0.0 or abs(a * m - beyond * b * n) > moved(beyond)
                assert ends.lower <= found.value <= ends.upper
    assert known > 2


def test_an_expected_label_is_the_probability_of_its_upper_end(tables: Made) -> None:
    synopsis = tables("linear", [6], NUMBER)
    x = np.linspace(-1.0, 1.0, 9)
    found, of = synopsis.expected(x), synopsis.probabilities(x, degree="linear")
    assert np.allclose(found.value, -10.0 + 40.0 * of.value[:, 1], rtol=1e-14)
    assert np.allclose(found.pointwise, -10.0 + 40.0 * np.array([end[:, 1] for end in of.pointwise]), equal_nan=True)
    constant = synopsis.expected(x, degree="constant")
    assert np.allclose(constant.value, -10.0 + 40.0 * synopsis.probabilities(x).value[:, 1])
    assert not np.allclose(found.value, constant.value)
    assert synopsis.mean((-0.5, 0.5)).value == -10.0 + 40.0 * synopsis.proportions((-0.5, 0.5)).value[1]


def test_a_local_linear_fit_follows_a_slope_that_a_local_constant_one_does_not(tables: Made) -> None:
    """A thousand records in every cell, and a label that rises evenly from -10 to 30: the fits by other means."""
    middles = (np.arange(8) + 0.5) / 8
    synopsis = tables("box", [8], NUMBER, 1e5 * np.stack([1.0 - middles, middles]))
    at = np.array([-1.0, -0.3, 0.9, 1.0])
    truth = -10.0 + 40.0 * (at + 1.0) / 2.0
    assert np.allclose(synopsis.expected(at).value, truth, atol=0.02)
    assert np.abs(synopsis.expected(at, degree="constant").value - truth).max() > 3.0


@pytest.mark.parametrize("spline", ["box", "linear", "quadratic"])
def test_a_quantile_is_where_the_distribution_function_reaches_its_part(tables: Made, spline: str) -> None:
    for label, size in ((None, 1), (ABOVE, 2)):
        synopsis = tables(spline, [5], label)
        reference = Reference(synopsis)
        places = np.arange(1001) / 1000
        inside = np.array([[float(bernstream.tables.spline_below(synopsis._about.basis, 0, np.array([x]))[0, j])
                            for j in range(len(reference.nodes))] for x in places])  # fmt: skip
        assert np.allclose(inside[333], reference.inside([(-1.0, -1.0 + 2.0 * 0.333)]), atol=1e-9)
        running = inside @ reference.counts
        rising = optimize.isotonic_regression(running).x
        for part in (0.03, 0.25, 0.5, 0.9):
            value, (lower, upper), _ = synopsis.quantile(part)
            first = int(np.argmax(rising >= part * reference.all))
            rest = (part * reference.all - rising[first - 1]) / (rising[first] - rising[first - 1])
            assert math.isclose(value, -1.0 + 2.0 * (first - 1 + rest) / 1000, rel_tol=1e-9)
            noise = 3.0 * math.sqrt(size) * np.linalg.norm(inside - part, axis=1)
            held = np.flatnonzero(np.abs(running - part * reference.all) <= noise)
            ends = -1.0 + 0.002 * np.clip([held[0] - 1, held[-1] + 1], 0, 1000)
            assert np.allclose([lower, upper], ends, rtol=1e-12)
            assert lower <= value <= upper
        assert synopsis.median() == synopsis.quantile(0.5)
        several = synopsis.quantile([0.25, 0.5, 0.75])
        assert np.all(np.diff(several.value) > 0.0) and several.value[1] == synopsis.median().value


def test_a_quantile_of_very_many_records_is_known_to_a_step(tables: Made) -> None:
    """No place on the grid may be as near to a part as so little noise, and yet the quantile lies between two of them."""
    synopsis = tables("box", [4], None, [1e9, 2e9, 3e9, 1.5e9])
    value, (lower, upper), _ = synopsis.quantile(0.4321)
    assert lower <= value <= upper and upper - lower < 0.0041


def test_what_noise_may_hide_is_unknown(tables: Made) -> None:
    few = tables("box", [4], NUMBER, [0.5, -0.4, 0.3, 0.2, -0.2, 0.1, 0.0, 0.4])
    assert few.count().value == pytest.approx(0.9) and 0.0 <= few.share((-1.0, 0.0)).value <= 1.0
    assert np.isnan(few.share((-1.0, 0.0)).pointwise).all() and np.isnan(few.expected(0.3).pointwise).all()
    assert -10.0 <= few.expected(0.3).value <= 30.0
    assert few.quantile(0.5).pointwise == (-1.0, 1.0)
    # All that the label can be, where a band must have ends; and a half-width of that.
    assert few.band(0.3) == (-10.0, 30.0) and few.half_width(0.3) == 40.0
    many = tables("box", [4], NUMBER)
    assert np.allclose(many.proportions((0.3, 0.3)).value, many.proportions().value, atol=0.05)
    assert np.isnan(many.mean((0.3, 0.3)).pointwise).all()
    none = tables("box", [4], NUMBER, [-1.0] * 8)
    assert np.isnan(none.share((-1.0, 0.0)).value) and np.isnan(none.median().value) and none.expected(0.3).value == 10.0


def test_a_class_is_told_where_the_noise_allows_it(tables: Made) -> None:
    values = [[900.0, 10.0, 12.0, 0.2], [10.0, 800.0, 10.0, 0.0], [0.0, 0.0, 9.0, 0.1]]
    synopsis = tables(
        "box", [4], CLASSES, values, basis={"tables": {"spline": "box", "steps": [4], "bandwidths": [0.1], "tables": 3}}
    )
    assert synopsis.classify(-0.75) == "AA" and synopsis.classify([-0.25, 0.25, 0.75]).tolist() == ["B6", None, None]
    assert synopsis.classify([[-0.75], [-0.25]]).shape == (2, 1)
    # Without "too close": as predictors must.
    assert synopsis.predict([[-0.25], [0.25]]).tolist() == ["B6", "AA"]
    assert np.allclose(synopsis.predict_proba([[-0.25], [0.25]]), synopsis.probabilities([-0.25, 0.25]).value)
    above = tables("box", [4], ABOVE, [[9.0, 300.0, 9.0, 9.0], [9.0, 9.0, 300.0, 9.0]])
    assert above.classify([-0.25, 0.25]).tolist() == [0, 1] and above.predict([[-0.25], [0.25]]).tolist() == [0, 1]


def test_the_function_of_cells_is_the_usual_one_of_its_label(tables: Made) -> None:
    x = np.linspace(-1.0, 1.0, 7)
    plain, number, above, classes = (tables("linear", [6], label) for label in (None, NUMBER, ABOVE, CLASSES))
    assert np.allclose(plain(x), plain.density(x).value, rtol=1e-13)
    assert np.allclose(number(x), number.expected(x).value) and np.allclose(above(x), above.probabilities(x).value[:, 1])
    assert np.allclose(classes(x), classes.probabilities(x).value[:, 0])
    assert np.allclose(plain.half_width(x, pointwise=True), plain(x) - plain.density(x).pointwise.lower)
    for synopsis, lower, upper in ((number, *number.expected(x).simultaneous), (above, *above.probabilities(x).simultaneous)):
        lower, upper = (end if end.ndim == 1 else end[:, 1] for end in (lower, upper))
        found = np.fmax(upper - synopsis(x), synopsis(x) - lower)
        assert np.allclose(synopsis.half_width(x), np.where(np.isnan(found), 40.0 if synopsis is number else 1.0, found))
        assert np.all(synopsis.band(x).lower <= synopsis.band(x).upper)
    # Its mass, its proper density and curves that could have been are those of any density.
    assert math.isclose(plain.integrate(), plain.mass, rel_tol=1e-3)
    assert math.isclose(plain.density(proper=True).divisor, plain.mass, rel_tol=0.2)
    assert plain.cumulative()(1.0) == 1.0 and "<svg" in plain._repr_html_() and "<svg" in number._repr_html_()
    curves = np.array([one(x) for one in plain.sample(2000, rng=3)])
    assert np.all(np.abs(curves.std(axis=0) / plain.deviation(x) - 1.0) < 0.1)
    many = tables("linear", [6], NUMBER, number.values + 400.0)
    curves = np.array([one(x) for one in many.sample(1000, rng=3)])
    assert np.all(np.abs(curves.std(axis=0) / many.deviation(x) - 1.0) < 0.15)
    assert number.sample(1, rng=3)[0].expected(0.0).value != number.expected(0.0).value
    assert number.by(1)(0.0) == number(0.0) and "cells" in (plain.kind, number.kind)


def test_points_and_ranges_broadcast(tables: Made) -> None:
    synopsis = tables("quadratic", [4, 3], ABOVE)
    x, y = np.linspace(-1.0, 1.0, 5), np.linspace(-1.0, 2.0, 4)
    found = synopsis.probabilities(x[:, None], y)
    assert found.value.shape == (5, 4, 2) and found.pointwise.lower.shape == (5, 4, 2)
    assert np.allclose(found.value[2, 3], synopsis.probabilities(x[2], y[3]).value)
    hours = np.stack([y[:-1], y[1:]], axis=1)
    counts = synopsis.count((-0.5, 0.5), hours)
    assert counts.value.shape == (3,) and math.isclose(counts.value.sum(), synopsis.count((-0.5, 0.5), None).value)
    assert np.isscalar(synopsis.count((-0.5, 0.5), (0.0, 1.0)).value)


def test_many_points_are_worked_on_in_parts(tables: Made) -> None:
    synopsis = tables("quadratic", [9, 8, 7], NUMBER)
    points = np.random.default_rng(0).uniform(-1.0, [1.0, 2.0, 3.0], size=(3_000, 3))
    some = slice(0, None, 500)
    assert np.allclose(synopsis.expected(*points.T).value[some], synopsis.expected(*points[some].T).value, rtol=1e-12)


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda f: f.by("posterior"), "cannot be read by 'posterior'"),
        (lambda f: f.expected(0.0), "no label"),
        (lambda f: f.probabilities(0.0), "no label"),
        (lambda f: f.classify(0.0), "no label"),
        (lambda f: f.density(0.0, bandwidths=0.1), "too coarse for such bandwidths: the smallest are 0.6"),
        (lambda f: f.density(0.0, bandwidths=[1.0, 1.0]), "one per axis"),
        (lambda f: f.density(0.0, bandwidths=2.1), "exceed the domain"),
        (lambda f: f.density(0.0, bandwidths=float("nan")), "exceed the domain"),
        (lambda f: f.density(2.0), "outside the domain"),
        (lambda f: f.count((0.5, 0.2)), "ends before it begins"),
        (lambda f: f.count((0.5, 0.6), (0.1, 0.2)), "1 pairs"),
        (lambda f: f.count(0.5), "is a pair"),
        (lambda f: f.quantile(1.5), "from 0 to 1"),
        (lambda f: f.query(np.sin), "not moments"),
        (lambda f: f.predict_proba([[0.0]]), "no probabilities"),
        (lambda f: bernstream.example().quantile(0.5), "only those with the target 'cells'"),
        (lambda f: bernstream.example().density(15.0), "only those with the target 'cells'"),
    ],
)
def test_what_cells_do_not_say_is_refused_in_words(tables: Made, ask: Any, says: str) -> None:
    with pytest.raises(SynopsisError, match=says):
        ask(tables("linear", [5]))


def test_what_a_label_does_not_say_is_refused_in_words(tables: Made) -> None:
    number, classes, plane = tables("linear", [5], NUMBER), tables("linear", [5], CLASSES), tables("linear", [3, 3])
    for ask, says in (
        (lambda: number.classify(0.0), "ask for expected"),
        (lambda: classes.expected(0.0), "label is a class"),
        (lambda: classes.mean((0.0, 0.5)), "label is a class"),
        (lambda: number.integrate(), "has no integral"),
        (lambda: number.density(), "its function is not the density"),
        (lambda: number.cumulative(), "its function is not the density"),
        (lambda: number.expected(0.0, degree="cubic"), "'constant', 'linear' or 'naive'"),
        (lambda: number.expected(0.0, degree="naive"), "label is a number"),
        (lambda: number.probabilities(0.0, degree="naive"), "label is a number"),
        (lambda: number.density_ratio(0.0, of=1, over=0), "label is a number"),
        (lambda: classes.density_ratio(0.0, of="AA", over="ZZ"), "there is no class 'ZZ'"),
        (lambda: classes.density_ratio(0.0, of="AA", over="AA"), "a class and itself"),
        (lambda: plane.median(), "one axis"),
    ):
        with pytest.raises(SynopsisError, match=says):
            ask()


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("basis.tables.tables", 1),
        ("basis.tables.tables", 3),
        ("basis.tables.tables", 17),
        ("basis.tables.tables", 2.0),
        ("basis.tables.spline", "cubic"),
        ("basis.tables.steps", [5, 5]),
        ("basis.tables.steps", [0]),
        ("basis.tables.steps", [70_000]),
        ("basis.tables.steps", [40_000]),
        ("basis.tables.bandwidths", [0.3, 0.3]),
        ("basis.tables.bandwidths", [1.5]),
        ("basis.tables.bandwidths", [0.0]),
        ("basis.tables.bandwidths", [0.08]),
        ("target", {"sum": {"expression": "1"}}),
        ("target", {"cells": {}}),
        ("target.cells.label", {"number": {"column": "delay", "min": 3.0, "max": 3.0}}),
        ("target.cells.label", {"number": {"column": "delay", "min": 3.0}}),
        ("target.cells.label", {"above": {"column": "delay"}}),
        ("target.cells.label", {"below": {"column": "delay", "below": 3.0}}),
        ("target.cells.label", {"classes": {"column": "carrier", "values": ["AA"]}}),
        ("target.cells.label", {"classes": {"column": "carrier", "values": ["AA", None]}}),
        ("basis", "affine"),
        ("reading", "nonnegative"),
        ("order", 2),
        ("smoothness", {"norm": 3.0}),
        ("values", [1.0] * 6),
    ],
)
def test_wrong_tables_are_refused_in_words(tables: Made, path: str, value: Any) -> None:
    document = json.loads(tables("linear", [5], NUMBER).to_json())
    assert Synopsis.from_json(copy.deepcopy(document))
    *way, last = path.split(".")
    place = document
    for part in way:
        place = place[part]
    place[last] = value
    with pytest.raises(SynopsisError, match=r"^not a synopsis: .{10}"):
        Synopsis.from_json(document)
