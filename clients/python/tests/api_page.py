"""The page of the Python API in the documentation, from signatures and docstrings: ``python tests/api_page.py`` writes it."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import bernstream

PAGE = Path(__file__).parents[3] / "docs/reference/python.md"
HEAD = """# The Python client

`pip install './clients/python[arrow]'`; its [README](../../clients/python) shows what a day with it looks like.
Here is every public name, with its signature and what it says of itself; `help(bernstream.Synopsis)` shows the same.
The page is written by `clients/python/tests/api_page.py`.
"""


def page() -> str:
    parts = [HEAD]
    for name in sorted(bernstream.__all__, key=lambda name: (inspect.isclass(getattr(bernstream, name)), name.lower())):
        parts.append("\n".join(of_class(name) if inspect.isclass(getattr(bernstream, name)) else of_function(name)))
    return "\n".join(parts)


def of_function(name: str) -> Iterator[str]:
    function = getattr(bernstream, name)
    yield f"## `{name}`\n"
    yield f"```python\n{name}{signature(function)}\n```\n"
    yield prose(function.__doc__, name)


def of_class(name: str) -> Iterator[str]:
    kind = getattr(bernstream, name)
    yield f"## `{name}`\n"
    yield prose(kind.__doc__, name)
    for field, (what, said) in fields(kind).items():
        yield f"- `{field}: {what}`{': ' + said if said else ''}"
    if fields(kind):
        yield ""
    for member, found in public(kind):
        if member in fields(kind):
            continue
        if isinstance(found, property) or type(found).__name__ == "cached_property":
            getter = found.fget if isinstance(found, property) else found.func
            yield f"### `{name}.{member}`\n"
            yield f"```python\n{member}: {returns(getter)}\n```\n"
            yield prose(getter.__doc__, f"{name}.{member}")
            continue
        function = found.__func__ if isinstance(found, (classmethod, staticmethod)) else found
        bound, shown = (f"f(x)`, `{name}.__call__", "f") if member == "__call__" else (f"{name}.{member}", member)
        yield f"### `{bound}`\n"
        yield f"```python\n{shown}{signature(function, bound=True)}\n```\n"
        yield prose(function.__doc__, f"{name}.{member}")


def public(kind: Any) -> Iterator[tuple[str, Any]]:
    """The members that a class and its own bases have, in the order of their source."""
    seen = set()
    for base in kind.__mro__:
        if not base.__module__.startswith("bernstream"):
            continue
        for member, found in vars(base).items():
            is_member = callable(found) or isinstance(found, (property, classmethod, staticmethod))
            is_member = is_member or type(found).__name__ == "cached_property"
            wanted = member == "__call__" or not member.startswith("_")
            if is_member and wanted and member not in seen:
                seen.add(member)
                yield member, found


def fields(kind: Any) -> dict[str, tuple[str, str]]:
    """The fields of a data class or a named tuple, each with its type and the comment before it."""
    if not (dataclasses.is_dataclass(kind) or hasattr(kind, "_fields")):
        return {}
    source = textwrap.dedent(inspect.getsource(kind))
    (body,) = ast.parse(source).body
    assert isinstance(body, ast.ClassDef)
    lines = source.splitlines()
    found = {}
    for node in body.body:
        if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name) or node.target.id.startswith("_"):
            continue
        said: list[str] = []
        for line in reversed(lines[: node.lineno - 1]):
            if not line.strip().startswith("#:"):
                break
            said.insert(0, line.strip()[2:].strip())
        found[node.target.id] = (ast.unparse(node.annotation), text(" ".join(said)))
    return found


def signature(function: Any, bound: bool = False) -> str:
    found = inspect.signature(inspect.unwrap(function))
    parameters = list(found.parameters.values())
    if bound and parameters and parameters[0].name in ("self", "cls"):
        parameters = parameters[1:]
    parameters = [one.replace(annotation=plain(one.annotation)) for one in parameters]
    return str(found.replace(parameters=parameters, return_annotation=plain(found.return_annotation)))


def returns(function: Any) -> str:
    return repr(plain(inspect.signature(function).return_annotation))


class Plain(str):
    """An annotation, which is a text, without the quotes of one."""

    def __repr__(self) -> str:
        return self.replace('"', "").replace("'", "")


def plain(annotation: Any) -> Any:
    return Plain(annotation) if isinstance(annotation, str) else annotation


def text(said: str) -> str:
    """Markdown instead of the marks of Sphinx."""
    said = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", said)
    return said.replace("``", "`")


def prose(said: Any, whose: str) -> str:
    if not said:
        raise SystemExit(f"{whose} has no docstring")
    lines: list[str] = []
    inside = False
    for line in inspect.cleandoc(said).splitlines():
        is_example = line.startswith((">>>", "...")) or (inside and line != "")
        if is_example and not inside:
            lines.append("```python")
        elif inside and not is_example:
            lines.append("```")
        inside = is_example
        lines.append(line if is_example else text(line))
    if inside:
        lines.append("```")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
    sys.stdout.write(f"{PAGE} is written\n")
