"""Counts by key against other libraries at the same price: mean absolute errors of users, records, sums and means of each key.

Every user is in 2 of 40 keys, with 3 records in each, so that no cap leaves anything out and all that differs is noise. `bernstream run` reads the
records from a file and releases each of the four tables in every window, at epsilon 1 each; the libraries get the same records of one window, and
the same price for all keys together, once for each window.

    cargo build --release
    python3 -m venv env && env/bin/pip install -r tests/rivals/requirements.txt "./clients/python[arrow]"
    env/bin/python tests/rivals/counts.py target/release/bernstream

The records follow from a seed. Noise does not: neither bernstream nor OpenDP can be given one.
"""

from __future__ import annotations

import argparse
import math
import random
import subprocess
import tempfile
import warnings
from collections import defaultdict
from importlib.metadata import version
from pathlib import Path

import bernstream
import diffprivlib.tools as ibm
import opendp.prelude as dp

KEYS = [f"k{key:02}" for key in range(40)]
USERS = 2000
KEYS_OF_USER = 2
RECORDS_OF_KEY = 3
EPSILON = 1.0
LARGEST_VALUE = 100
LARGEST_SUM = 150
STATISTICS = ["users", "records", "sum", "mean"]

CONFIGURATION = """
pipeline = "rivals"
[input]
time = "time"
key = {{ column = "key", type = "text", values = [{keys}] }}
files.path = "records"
[windows]
origin = "2026-01-01T00:00:00Z"
length = "1d"
end = "{end}"
[privacy]
unit = {{ user = {{ column = "user", type = "text", per = "1d" }} }}
adjacency = "add_remove"
epsilon = 4.0
[[release]]
name = "users"
epsilon = 1.0
counts = {{ of = ["users"], max_keys = 2 }}
[[release]]
name = "records"
epsilon = 1.0
counts = {{ of = ["records"], max_keys = 2, max_records = 3 }}
[[release]]
name = "sum"
epsilon = 1.0
counts = {{ of = ["sum"], max_keys = 2, value = {{ column = "value", min = 0, max = 100, outside = "clamp" }}, per_user = {{ min = 0, max = 150 }} }}
[[release]]
name = "mean"
epsilon = 1.0
counts = {{ of = ["mean"], max_keys = 2, max_records = 3, value = {{ column = "value", min = 0, max = 100, outside = "clamp" }} }}
[output]
files.path = "out"
[ledger]
path = "ledger"
"""


def records_of(seed: int) -> list[tuple[str, str, int]]:
    """User, key and value of each record; a user's values of a key add up to at most 150."""
    made = random.Random(seed)
    records = []
    for user in range(USERS):
        for key in made.sample(KEYS, KEYS_OF_USER):
            for _ in range(RECORDS_OF_KEY):
                records.append((f"u{user}", key, made.randint(0, LARGEST_SUM // RECORDS_OF_KEY)))
    return records


def exact_numbers(records: list[tuple[str, str, int]]) -> dict[str, dict[str, float]]:
    users, values = defaultdict(set), defaultdict(list)
    for user, key, value in records:
        users[key].add(user)
        values[key].append(value)
    return {
        "users": {key: len(users[key]) for key in KEYS},
        "records": {key: len(values[key]) for key in KEYS},
        "sum": {key: sum(values[key]) for key in KEYS},
        "mean": {key: sum(values[key]) / len(values[key]) for key in KEYS},
    }


def by_bernstream(program: str, records, windows: int) -> dict[str, list[dict[str, float]]]:
    """The numbers of each key in so many windows with the same records."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "records").mkdir()
        days = [f"2026-{1 + day // 28:02}-{1 + day % 28:02}" for day in range(windows)]
        month, day = divmod(windows, 28)
        # Days 29 to 31 of a month have windows too, without records: they are left out below.
        end = f"2026-{1 + month:02}-{1 + day:02}T00:00:00Z"
        keys = ", ".join(f'"{key}"' for key in KEYS)
        (place / "rivals.toml").write_text(CONFIGURATION.format(keys=keys, end=end))
        with (place / "records" / "all.csv").open("w") as file:
            file.write("time,user,key,value\n")
            for day_text in days:
                file.writelines(f"{day_text}T12:00:00Z,{user},{key},{value}\n" for user, key, value in records)
        subprocess.run([program, "run", "rivals.toml"], cwd=place, check=True, capture_output=True)
        found = {}
        for statistic in STATISTICS:
            tables = []
            for day_text in days:
                path = place / "out" / "rivals" / statistic / f"{day_text}T000000Z.arrows"
                table = bernstream.read(path).key_table()
                tables.append({key: float(table[key][statistic].value) for key in KEYS})
            found[statistic] = tables
        return found


class OpenDp:
    """The framework of OpenDP: a transformation, noise, and a scale that is searched for so that the map says the price."""

    def __init__(self) -> None:
        dp.enable_features("contrib")
        self.measurements = {}

    def measured(self, name: str, make, d_in: int, epsilon: float):
        if name not in self.measurements:
            scale = dp.binary_search_param(make, d_in=d_in, d_out=epsilon, T=float)
            self.measurements[name] = make(scale)
        return self.measurements[name]

    def counts(self, name: str, keys: list[str], contributions: int) -> dict[str, float]:
        space = dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance()
        counted = space >> dp.t.then_count_by_categories(KEYS, null_category=False)
        measured = self.measured(name, lambda scale: counted >> dp.m.then_laplace(scale), contributions, EPSILON)
        return dict(zip(KEYS, measured(keys)))

    def sums(self, name: str, by_key, largest: int, contributions: int, epsilon: float) -> dict[str, float]:
        space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
        summed = space >> dp.t.then_clamp((0, largest)) >> dp.t.then_sum()
        # A user is in two keys, each of which is measured by itself.
        measured = self.measured(
            name, lambda scale: summed >> dp.m.then_laplace(scale), contributions, epsilon / KEYS_OF_USER
        )
        return {key: measured(values) for key, values in by_key.items()}

    def release(self, records, users_of_key, values, sums) -> dict[str, dict[str, float]]:
        halves = {
            "sum": self.sums("half a sum", values, LARGEST_VALUE, RECORDS_OF_KEY, EPSILON / 2),
            "count": self.sums(
                "half a count", {key: [1] * len(own) for key, own in values.items()}, 1, RECORDS_OF_KEY, EPSILON / 2
            ),
        }
        return {
            "users": self.counts("users", users_of_key, KEYS_OF_USER),
            "records": self.counts("records", [key for _, key, _ in records], KEYS_OF_USER * RECORDS_OF_KEY),
            "sum": self.sums("sum", sums, LARGEST_SUM, 1, EPSILON),
            "mean": {key: halves["sum"][key] / max(halves["count"][key], 1) for key in KEYS},
        }


class Ibm:
    """diffprivlib. It knows no users: a user with several records costs as many times the price."""

    def __init__(self, seed: int) -> None:
        warnings.simplefilter("ignore")
        self.seed = seed

    def counts(self, keys: list[str], contributions: int) -> dict[str, float]:
        self.seed += 1
        places = [KEYS.index(key) for key in keys]
        counts, _ = ibm.histogram(
            places,
            epsilon=EPSILON / contributions,
            bins=len(KEYS),
            range=(-0.5, len(KEYS) - 0.5),
            random_state=self.seed,
        )
        return dict(zip(KEYS, map(float, counts)))

    def each(self, function, by_key, largest: int, contributions: int) -> dict[str, float]:
        released = {}
        for key, values in by_key.items():
            self.seed += 1
            epsilon = EPSILON / KEYS_OF_USER / contributions
            released[key] = float(function(values, epsilon=epsilon, bounds=(0, largest), random_state=self.seed))
        return released

    def release(self, records, users_of_key, values, sums) -> dict[str, dict[str, float]]:
        return {
            "users": self.counts(users_of_key, KEYS_OF_USER),
            "records": self.counts([key for _, key, _ in records], KEYS_OF_USER * RECORDS_OF_KEY),
            "sum": self.each(ibm.sum, sums, LARGEST_SUM, 1),
            # The number of records of a key is taken to be public.
            "mean": self.each(ibm.mean, values, LARGEST_VALUE, RECORDS_OF_KEY),
        }


def errors(tables: list[dict[str, float]], exact: dict[str, float]) -> tuple[float, float]:
    """The mean absolute error, and its standard error."""
    sizes = [abs(table[key] - exact[key]) for table in tables for key in KEYS]
    mean = sum(sizes) / len(sizes)
    variance = sum((size - mean) ** 2 for size in sizes) / (len(sizes) - 1)
    return mean, math.sqrt(variance / len(sizes))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="the built bernstream")
    parser.add_argument("--windows", type=int, default=56)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    records = records_of(arguments.seed)
    exact = exact_numbers(records)
    users_of_key = [key for _, key in sorted({(user, key) for user, key, _ in records})]
    values, of_user = defaultdict(list), defaultdict(int)
    for user, key, value in records:
        values[key].append(value)
        of_user[user, key] += value
    sums = defaultdict(list)
    for (_, key), total in of_user.items():
        sums[key].append(total)
    open_dp, ibm_tools = OpenDp(), Ibm(1000 * arguments.seed)
    others = {f"OpenDP {version('opendp')}": open_dp, f"diffprivlib {version('diffprivlib')}": ibm_tools}
    released = {name: defaultdict(list) for name in others}
    for _ in range(arguments.windows):
        for name, other in others.items():
            for statistic, table in other.release(records, users_of_key, values, sums).items():
                released[name][statistic].append(table)
    ours = by_bernstream(str(Path(arguments.program).resolve()), records, arguments.windows)
    print(f"{arguments.windows} windows of {len(KEYS)} keys, {USERS} users, epsilon {EPSILON:g}, seed {arguments.seed}")
    print("| | bernstream | " + " | ".join(f"{name} | ours / theirs" for name in others) + " |")
    print("|---|---|" + "---|---|" * len(others))
    for statistic in STATISTICS:
        own, own_error = errors(ours[statistic], exact[statistic])
        cells = [statistic, f"{own:.3g}"]
        for name in others:
            mean, error = errors(released[name][statistic], exact[statistic])
            ratio = own / mean
            spread = ratio * math.hypot(own_error / own, error / mean)
            cells += [f"{mean:.3g}", f"{ratio:.3f} ± {2 * spread:.3f}"]
        print("| " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
