"""The schema of the configuration, by a validator that is not ours: examples and deployed configurations are right, slips are not."""

import json
import tomllib
from pathlib import Path

import pytest
from jsonschema import Draft7Validator

SCHEMA = json.loads(Path("config/bernstream.schema.json").read_text())
CONFIGURATIONS = sorted(Path("config").glob("*.toml")) + sorted(Path("deploy").rglob("*.toml"))


def faults(text):
    # Dates become texts, as an editor has them.
    document = json.loads(json.dumps(tomllib.loads(text), default=str))
    return [fault.json_path for fault in Draft7Validator(SCHEMA).iter_errors(document)]


def test_it_is_a_schema_of_draft_7():
    Draft7Validator.check_schema(SCHEMA)
    assert len(CONFIGURATIONS) >= 14


@pytest.mark.parametrize("path", CONFIGURATIONS, ids=str)
def test_configurations_are_as_it_says(path):
    assert faults(path.read_text()) == []


@pytest.mark.parametrize(
    ("right", "wrong", "where"),
    [
        ('length = "1d"', 'lenght = "1d"', "$.windows"),
        ('length = "1d"', "length = 1", "$.windows.length"),
        ("degree = 40", "degree = true", "$.release"),
        ('unit = "record"', 'unit = "records"', "$.privacy.unit"),
        ("epsilon = 1.0", "epsilon = -1", "$.privacy.epsilon"),
    ],
)
def test_slips_are_found_where_they_stand(right, wrong, where):
    text = Path("tests/data/lattice.toml").read_text()
    assert right in text
    assert where in faults(text.replace(right, wrong))
