"""The package as pip installs it."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

HERE = Path(__file__).parents[1]


def test_a_wheel_has_all_that_it_needs(tmp_path: Path) -> None:
    build = f"from hatchling.build import build_wheel; print(build_wheel({str(tmp_path)!r}))"
    subprocess.run([sys.executable, "-c", build], cwd=HERE, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as content:
        names = set(content.namelist())
        content.extractall(tmp_path / "installed")
    assert {
        "bernstream/py.typed",
        "bernstream/example.json",
        "bernstream/example-cells.json",
        "bernstream/synopsis.py",
    } <= names
    # With numpy alone: whatever else there is cannot be imported.
    ask = (
        "import sys\n"
        "sys.modules.update(dict.fromkeys(['pyarrow', 'scipy', 'confluent_kafka', 'pandas']))\n"
        "import bernstream\n"
        f"assert bernstream.__file__.startswith({str(tmp_path)!r}), bernstream.__file__\n"
        "f = bernstream.example()\n"
        "assert f.band(15.0).lower < f(15.0) and f.by('posterior')(15.0) > 0 and len(f.sample(2)) == 2\n"
        "for ask in (lambda: f.from_arrow(b''), lambda: bernstream.newest('t', 'localhost')):\n"
        "    try:\n"
        "        ask()\n"
        "    except ImportError as error:\n"
        "        assert 'pip install' in str(error), error\n"
        "    else:\n"
        "        raise AssertionError('it was imported')\n"
    )
    path = {**os.environ, "PYTHONPATH": str(tmp_path / "installed")}
    subprocess.run([sys.executable, "-c", ask], check=True, env=path)


def test_no_file_is_long() -> None:
    for path in [*HERE.glob("src/**/*.py"), *HERE.glob("tests/*.py"), *HERE.glob("../recipes/*.py")]:
        assert len(path.read_text().splitlines()) < 450, path
