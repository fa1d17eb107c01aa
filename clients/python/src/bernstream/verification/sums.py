"""Sums of expressions and cosine moments: docs/proofs/expressions.md and moments.md."""

from __future__ import annotations

import ast
import math
import re
from typing import Any

import numpy as np

from ..arrays import Array
from ..description import Description
from ..errors import SynopsisError
from ..forms import Lattice, Moments
from .changes import Needed, largest, lattice, places, rounding

_FUNCTIONS = {
    "abs": np.abs, "cos": np.cos, "exp": np.exp, "ln": np.log, "max": np.maximum, "min": np.minimum, "sin": np.sin,
    "sqrt": np.sqrt, "tanh": np.tanh,
}  # fmt: skip
_OPERATORS: dict[type, Any] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
    ast.Pow: np.power,
}


def of_expression(about: Description, norm: str, adjacency: str, grid: float) -> Needed:
    assert isinstance(about.basis, Lattice)
    values = (about.basis.degree + 1) ** len(about.axes)
    if (clip := about.target.get("clip")) is not None:
        # A clip lets both signs pass: a record that is replaced can take away what it added and add as much of the other sign.
        times = 2.0 if adjacency == "replace_one" else 1.0
        sup, one = times * clip["sup"], times * min(clip["sum"], clip["sup"] * values)
        change = {"1-norm": one, "sup norm": sup, "2-norm": math.sqrt(one * sup)}[norm]
        return Needed(change, 1e-6)
    words = "that intervals bound the expression: only the largest change of many records that were tried was recomputed"
    try:
        columns = _columns(about, about.basis.degree)
    except _Unreadable as error:
        return Needed(0.0, 0.0, f"the bound of an expression that this package does not read ({error})")
    return Needed(largest(columns, norm, adjacency) + rounding(values, norm) * grid, 1e-6, words)


class _Unreadable(Exception):
    """An expression with something that is not known here."""


def _columns(about: Description, degree: int) -> Array:
    """What records at many places add, one a column. Expressions that name the label are not read: its bounds are not told."""
    axes = len(about.axes)
    points = about.low + lattice(axes, degree) * about.widths
    tried = about.low + places(axes, degree)[:4000] * about.widths
    names: dict[str, Array] = {"pi": np.array(math.pi)}
    for i, axis in enumerate(about.axes):
        names[axis.column] = tried[None, :, i]
        names[f"at.{axis.column}"] = points[:, i, None]
    text = about.target["expression"]
    quoted = re.sub(r'(at\.)?"([^"]*)"', lambda found: found.group(0).replace('"', ""), text)
    try:
        tree = ast.parse(quoted.replace("^", "**").strip(), mode="eval")
    except SyntaxError as error:
        raise _Unreadable(str(error)) from None
    with np.errstate(all="ignore"):
        found = np.broadcast_to(_value(tree.body, names), (len(points), len(tried)))
    return np.where(np.isfinite(found), found, 0.0)


def _value(node: ast.expr, names: dict[str, Array]) -> Array:
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        return np.array(float(node.value))
    if isinstance(node, ast.Name) and node.id in names:
        return names[node.id]
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and f"{node.value.id}.{node.attr}" in names:
        return names[f"{node.value.id}.{node.attr}"]
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return np.asarray(_OPERATORS[type(node.op)](_value(node.left, names), _value(node.right, names)))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        inner = _value(node.operand, names)
        return -inner if isinstance(node.op, ast.USub) else inner
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS and not node.keywords:
        return np.asarray(_FUNCTIONS[node.func.id](*[_value(argument, names) for argument in node.args]))
    raise _Unreadable(f"'{ast.unparse(node)}'")


def of_moments(about: Description, norm: str, adjacency: str, grid: float) -> Needed:
    """Products of cosines of the angles; where all angles are 0 every one is 1."""
    if not isinstance(about.basis, Moments):
        raise SynopsisError("moments have a basis of cosines")
    t, axes = about.basis.frequencies, len(about.axes)
    values = t**axes
    single = {"1-norm": float(values), "2-norm": math.sqrt(values), "sup norm": 1.0}[norm]
    if adjacency == "replace_one":
        if axes == 1:
            angles = np.linspace(0.0, math.pi, 8 * t + 1)
            single = largest(np.cos(np.arange(t)[:, None] * angles), norm, adjacency)
        else:
            # Two corners of the domain; twice one record is declared, which no pair passes.
            corners = np.ones((t, 2))
            corners[1::2, 1] = -1.0
            other = corners[:, 1]
            both = np.ones(1)
            for _ in range(axes):
                both = np.outer(both, other).ravel()
            single = largest(np.stack([np.ones(values), both], axis=1), norm, adjacency)
    return Needed(single + rounding(values, norm) * grid, 1e-6)
