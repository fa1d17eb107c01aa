"""The package as pip installs it."""

from __future__ import annotations

import ast
import graphlib
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parents[1]
SOURCE = HERE / "src"


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
        "bernstream/example-keys.json",
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


def test_no_modules_import_each_other_in_a_circle() -> None:
    modules = {path: set(imported(path)) for path in SOURCE.rglob("*.py")}
    assert SOURCE / "bernstream/released.py" in modules[SOURCE / "bernstream/synopsis.py"]
    # It raises, and names the circle. Imports for types alone count too: they also say who needs whom.
    graphlib.TopologicalSorter(modules).prepare()


def imported(path: Path) -> Iterator[Path]:
    """The modules of the package that a module imports anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            package = path.parents[node.level - 1] if node.level else SOURCE
            module = package / (node.module or "").replace(".", "/")
            for name in node.names:
                yield from files(module / name.name) or files(module)
        elif isinstance(node, ast.Import):
            for name in node.names:
                yield from files(SOURCE / name.name.replace(".", "/"))


def files(module: Path) -> list[Path]:
    return [path for path in (module.with_suffix(".py"), module / "__init__.py") if path.exists()]
