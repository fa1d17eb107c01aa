"""Tables of keys that nobody listed, as the program makes them: exact counts of each window go in, synopses come out."""

from __future__ import annotations

import copy
import json
import math
from datetime import datetime, timedelta, timezone
from fractions import Fraction
from typing import Any, Optional

import numpy as np
from conftest import FOLDER

from bernstream import KeyTable, Synopsis
from bernstream.found_keys import UNIT, key_threshold

BASE = json.loads((FOLDER / "counts-caps.json").read_text())["synopsis"]
START = datetime(2026, 1, 5, tzinfo=timezone.utc)
HOUR = timedelta(hours=1)


def written(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


class Worker:
    """A release of keys by users, each in at most ``max_keys``, or of records, for epsilon 1 and delta 1e-9 a window."""

    def __init__(self, max_keys: int = 1, keep: timedelta = 3 * HOUR, most: int = 1000, limit: Optional[int] = None) -> None:
        self.rng = np.random.default_rng(5)
        self.max_keys, self.keep, self.most, self.limit = max_keys, keep, most, limit
        self.delta = Fraction("0.000000001") - (0 if limit is None else Fraction("0.000000000001"))
        price = 1.0 if limit is None else 0.999
        self.scale = 16 * math.ceil(max_keys / UNIT / price / 16)
        self.threshold = key_threshold(float(self.scale), max_keys, self.delta) or 0
        self.announced: dict[str, datetime] = {}
        self.window = 0

    def noise(self) -> int:
        # The difference of two geometric numbers.
        return int(np.subtract(*self.rng.geometric(-np.expm1(-1.0 / self.scale), size=2)))

    def release(self, counts: dict[str, int], is_overfull: bool = False) -> dict[str, Any]:
        """The synopsis of the next window."""
        start = START + self.window * HOUR
        end, grains = start + HOUR, round(1.0 / UNIT)
        live = {key for key, until in self.announced.items() if start < until}
        numbers = {}
        for key in {} if is_overfull else sorted({*counts, *live}):
            noise = self.noise()
            while key not in live and abs(noise) > self.threshold:
                noise = self.noise()
            number = counts.get(key, 0) * grains + noise
            if key in live or number > self.threshold:
                numbers[key] = number
        kept = sorted(sorted(numbers), key=lambda key: -numbers[key])[: self.most]
        rows, renewed = {}, {}
        for key in sorted(kept, key=str.encode):
            is_new = key not in live
            until = end + self.keep if is_new or numbers[key] > self.threshold else self.announced[key]
            rows[key], renewed[key] = {"is_new": is_new, "until": written(until)}, until
        if not is_overfull:
            self.announced = renewed
        found = self.document(start, end, {key: numbers[key] for key in rows}, list(rows.values()), is_overfull)
        self.window += 1
        return found

    def document(
        self, start: datetime, end: datetime, numbers: dict[str, int], rows: list[dict[str, Any]], is_overfull: bool
    ) -> dict[str, Any]:
        statistic = "users" if self.limit is None else "records"
        price = {"epsilon": "1", "delta": "0.000000001"}
        unit = {"user": {"column": "visitor", "per": "1h"}} if self.limit is None else "record"
        caps = {} if self.limit is None else {"max_records": 1}
        block = {"start": written(start), "end": written(end), "spent": price, "total": price}
        rule = {
            "threshold": self.threshold,
            "delta": f"{float(self.delta):.12f}",
            "keep_seconds": int(self.keep.total_seconds()),
            "most": self.most,
            "longest": 128,
            **({"rows": rows} if rows else {}),
        }
        # What is empty is absent.
        keys = {"keys": list(numbers)} if numbers else {}
        if self.limit is not None:
            bound = overfull_bound()
            rule["overfull"] = {"limit": self.limit, "soft_limit": self.limit - 2 * bound - 1, "is_overfull": is_overfull}
        return {
            **BASE,
            "pipeline": "pages",
            "release": "by-page",
            "meaning": f"{statistic} of each page",
            "window": {"start": written(start), "end": written(end)},
            "published": written(end + timedelta(minutes=5)),
            "target": {"counts": {"max_keys": self.max_keys, **caps, "parts": [{"of": statistic, "part": 1.0}]}},
            "basis": {"keys": {**keys, "columns": [{"statistic": statistic, "unit": UNIT}], "found": rule}},
            "noise": {"law": "discrete laplace", "scale": float(self.scale), "grid": 1.0, "calibrated": "tight"},
            "sensitivity": {
                "norm": "1-norm",
                "units": round(self.max_keys / UNIT),
                "records": 1,
                "values": max(1, len(numbers)),
                "derived": "counts",
            },
            "privacy": {
                **BASE["privacy"],
                "definition": "epsilon-delta",
                "unit": unit,
                "adjacency": "add_remove",
                "price": price,
                "blocks": [block],
            },
            "band": {**BASE["band"], "half_width": 12.0 * self.scale, "pointwise": 3.0 * self.scale},
            "ledger": {"id": BASE["ledger"]["id"], "sequence": self.window + 1},
            "values": [number * UNIT for number in numbers.values()],
        }


def overfull_bound() -> int:
    """The bound of the noise on the number of keys, for a thousandth of epsilon 1 and 1e-12 of delta."""
    return 20_047


#: Some of them are what nobody would list.
NAMES = ["/", "/a", "<script>", "=1+1", "\u202eabc", "\u00e9t\u00e9"]
MANY = {name: 40 + 7 * place for place, name in enumerate(NAMES)}


def table_of(document: dict[str, Any]) -> KeyTable:
    return Synopsis.from_json(document).key_table()


def changed(document: dict[str, Any], **rule: Any) -> dict[str, Any]:
    """With another rule."""
    found = copy.deepcopy(document)
    found["basis"]["keys"]["found"].update(rule)
    return found
