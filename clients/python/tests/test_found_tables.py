"""Intervals and thresholds of found keys, what a table announces to those that follow, and what a verification finds wrong."""

from __future__ import annotations

import copy
import math
import re
from bisect import bisect_left, bisect_right
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from found import HOUR, MANY, START, Worker, changed, table_of, written

import bernstream
from bernstream.description import check
from bernstream.forms import Keys
from bernstream.found_keys import UNIT, key_threshold
from bernstream.found_law import FoundLaw
from bernstream.verification.found_tables import check_rule, upper_mass
from bernstream.verification.prices import price
from bernstream.verification.report import Findings


@pytest.mark.parametrize("max_keys", [1, 3])
def test_intervals_of_new_keys_hold_given_that_they_were_found_and_plain_ones_do_not(max_keys: int) -> None:
    """By summation over all noise, at counts around the threshold, where the plain interval never holds."""
    worker = Worker(max_keys)
    law, noise = FoundLaw(worker.scale, worker.threshold, UNIT), np.arange(-worker.threshold, worker.threshold + 1)
    weights, plain = np.exp(-np.abs(noise) / worker.scale), math.log(20.0) * worker.scale * UNIT
    threshold = worker.threshold * UNIT
    worst_plain = 1.0
    for count in [1, 2, 5, round(threshold / 2), round(threshold), round(threshold) + 1, round(2 * threshold) + 3]:
        published = count / UNIT + noise
        is_found = published > worker.threshold
        values, chances = published[is_found] * UNIT, weights[is_found] / weights[is_found].sum()
        some = np.linspace(0, len(values) - 1, 500).astype(int)
        lower, upper = law.intervals(values[some])
        assert np.all(np.diff(lower) >= 0.0) and np.all(np.diff(upper) >= 0.0)
        assert np.all(lower >= np.maximum(values[some] - threshold, 1.0) - 1e-9) and np.all(upper <= values[some] + threshold)
        # Both ends grow with the published count, so that those whose interval holds follow each other.
        places = range(len(values))
        first = bisect_left(places, count, key=lambda at: law.intervals(values[at : at + 1]).upper[0])
        last = bisect_right(places, count, key=lambda at: law.intervals(values[at : at + 1]).lower[0])
        held = chances[first:last].sum()
        assert 0.95 <= held <= 0.976, (count, held)
        worst_plain = min(worst_plain, chances[np.abs(values - count) <= plain].sum())
    assert worst_plain < 1e-9
    far = law.intervals(np.array([1e6]))
    assert math.isclose(far.upper[0] - 1e6, plain, rel_tol=1e-3) and math.isclose(1e6 - far.lower[0], plain, rel_tol=1e-3)


def test_the_threshold_is_the_least_with_which_the_delta_holds_and_a_little_more() -> None:
    # Of a sampler that needs few points, so that they can be summed.
    scale, change, delta = Fraction(48), Fraction(16), Fraction(1, 10**6)
    weights = {x: math.exp(-abs(x) / 48) for x in range(-900, 901)}
    for bound in (500, 700, 900):
        upper = sum(weights[x] for x in range(bound - 15, bound + 1))
        whole = sum(weights[x] for x in range(-bound, bound + 1))
        assert math.isclose(float(upper_mass(scale, change, bound)), upper / whole, rel_tol=1e-12)
    for scale, max_keys, delta in [
        (4096, 1, "1e-9"),
        (4112, 3, "1e-6"),
        (16, 1, "0.3"),
        (20496, 2, "1e-12"),
        (2**30, 1, "1e-15"),
    ]:
        threshold = key_threshold(float(scale), max_keys, Fraction(delta))
        assert threshold is not None
        masses = [upper_mass(Fraction(scale), Fraction(4096), threshold - less) for less in (0, 16, 18)]
        part = Fraction(delta) / max_keys
        assert masses[0] <= part and (masses[2] > part or threshold == 4096), (scale, [float(m / part) for m in masses])
    assert key_threshold(4096.0, 1, Fraction("1e-9")) == 84_277
    assert key_threshold(16.0, 1, Fraction(0)) is None and key_threshold(16.0, 2**31, Fraction(1, 10**18)) is None


def stream(worker: Worker, windows: int = 8) -> list[dict[str, Any]]:
    """Keys that come and go."""
    return [
        worker.release({**MANY, **{f"/{hour}": 60 for hour in range(max(0, window - 1), window + 1)}, "few": window % 3})
        for window in range(windows)
    ]


def faults(documents: list[dict[str, Any]]) -> str:
    return "\n".join(bernstream.verify(documents).faults)


@pytest.mark.parametrize("worker", [Worker(), Worker(max_keys=3, keep=HOUR), Worker(most=7), Worker(limit=1_000_000)])
def test_what_a_worker_publishes_is_verified(worker: Worker) -> None:
    documents = stream(worker)
    if worker.limit is not None:
        documents += [worker.release(MANY, is_overfull=True), *stream(worker, 2)]
    for given in (documents, documents[::-1], documents[::2]):
        report = bernstream.verify(given)
        assert report, str(report)
    report = bernstream.verify(documents)
    assert any(
        "a key that one unit alone holds is named with a probability of 1e-09 at most" in line for line in report.verified
    ) or (worker.limit is not None and any("9.99e-10 at most" in line for line in report.verified))
    assert any(f"{len(documents)} tables have the keys that were announced before" in line for line in report.verified)
    assert any("what was announced before 1 tables" in line for line in report.believed)
    assert (worker.limit is not None) == any("as far apart as the test needs" in line for line in report.verified)


def without(document: dict[str, Any], key: str) -> dict[str, Any]:
    found = copy.deepcopy(document)
    keys = found["basis"]["keys"]
    place = keys["keys"].index(key)
    for of in (keys["keys"], keys["found"]["rows"], found["values"]):
        del of[place]
    return found


def said(document: dict[str, Any], key: str, **more: Any) -> dict[str, Any]:
    found = copy.deepcopy(document)
    keys = found["basis"]["keys"]
    place = keys["keys"].index(key)
    keys["found"]["rows"][place].update(more)
    return found


def test_a_key_that_was_announced_is_in_the_next_table_and_not_new_again() -> None:
    documents = stream(Worker())
    for changed_, says in [
        (without(documents[3], "/"), "the key '/' was announced until .*, and is missing"),
        (said(documents[3], "/", is_new=True), "the key '/' is new, and was announced before"),
        (said(documents[3], "/3", is_new=False), "the key '/3' was not announced before, and is not new"),
    ]:
        told = faults([*documents[:3], changed_, *documents[4:]])
        assert re.search(says, told), told
    # In a window after one that is not here nobody can tell.
    assert faults([documents[1], said(documents[3], "/3", is_new=False)]) == ""


def test_a_key_below_the_threshold_stays_as_long_as_it_was_told() -> None:
    worker = Worker()
    documents = [worker.release({"/": 90}), worker.release({}), worker.release({}), worker.release({})]
    until = [table_of(one).until.get("/") for one in documents]
    assert until == [START + 4 * HOUR] * 4 and len(table_of(worker.release({}))) == 0
    assert faults(documents) == ""
    later = said(documents[2], "/", until=written(START + 5 * HOUR))
    assert "is published until" in faults([*documents[:2], later])
    assert faults([later]) == "", "alone it may be so"
    far = said(documents[2], "/", until=written(START + 6 * HOUR))
    assert "is published until" in faults([far]), "as if it were above"


def test_a_full_table_pushes_keys_out_and_another_must_not() -> None:
    documents = stream(Worker(most=7))
    lost = [set(table_of(one).keys) - set(table_of(other).keys) for one, other in zip(documents, documents[1:])]
    assert any(lost), "nothing was pushed out"
    more = [changed(one, most=8) for one in documents]
    assert "and is missing" in faults(more)


def test_an_overfull_table_changes_nothing() -> None:
    worker = Worker(limit=1_000_000)
    documents = [worker.release(MANY), worker.release(MANY, is_overfull=True), worker.release(MANY)]
    assert faults(documents) == "" and table_of(documents[2]).new == ()
    rows = documents[2]["basis"]["keys"]["found"]["rows"]
    assert "was announced before" in faults(
        [*documents[:2], changed(documents[2], rows=[{**one, "is_new": True} for one in rows])]
    )


def test_a_price_that_does_not_buy_the_threshold_or_the_noise_is_found() -> None:
    def priced(document: dict[str, Any], **price: str) -> dict[str, Any]:
        found = copy.deepcopy(document)
        privacy = found["privacy"]
        privacy["price"] = {**privacy["price"], **price}
        privacy["blocks"][0] |= {"spent": privacy["price"], "total": privacy["price"]}
        return found

    users, records = Worker().release(MANY), Worker(limit=1_000_000).release(MANY)
    assert "its threshold is for a delta of 1e-09, above the 9e-10 paid" in faults([priced(users, delta="0.0000000009")])
    assert "the scale of its noise is too small" in faults([priced(users, epsilon="0.99")])
    # Of records a thousandth of epsilon and 1e-12 of delta are for the test whether there are too many keys.
    assert faults([records]) == ""
    assert "above the 9.98e-10 paid" in faults([priced(records, delta="0.000000000999")])
    # The noise costs 4096 / 4112 of epsilon.
    assert "the scale of its noise is too small: it costs epsilon 0.996109, and 0.9955" in faults(
        [priced(records, epsilon="0.9965")]
    )
    narrow = changed(records, overfull={"limit": 1_000_000, "soft_limit": 960_100, "is_overfull": False})
    assert "too near to each other" in faults([narrow])


def test_a_threshold_that_is_too_low_is_found_without_the_formula() -> None:
    document = Worker(max_keys=3).release(MANY)
    about, price_ = check(document), price(document["privacy"]["price"])
    assert isinstance(about.basis, Keys) and about.basis.found is not None
    for less, is_sound in [(0, True), (18, False)]:
        rule = replace(about.basis.found, threshold=about.basis.found.threshold - less)
        found = Findings()
        check_rule(replace(about, basis=replace(about.basis, found=rule)), document, price_, "here", found)
        assert bool(found.report()) == is_sound and (is_sound or "is too low" in str(found.report()))
