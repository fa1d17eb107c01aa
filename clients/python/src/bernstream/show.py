"""A synopsis in one line, and as a table with its curve for notebooks."""

from __future__ import annotations

import html as markup
import unicodedata
from collections.abc import Mapping
from typing import Any

import numpy as np

from .arrays import Bounds
from .cell_readings import Estimate
from .figures import give_or_take, nearly, ticks
from .names import Names, several
from .released import Released

_WIDTH, _HEIGHT, _POINTS = 480, 200, 161
_LEFT, _BELOW = 56, 36
#: The most keys that a notebook shows.
_ROWS = 10
#: Control, format and bidirectional characters, those of no meaning, and separators of lines.
_SHAPELESS = ("Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp")


def line(synopsis: Released) -> str:
    meta = synopsis.meta
    key = f", key {synopsis.key}" if synopsis.key is not None else ""
    if synopsis.kind == "counts":
        table = synopsis.key_table()
        by = f"{len(table)} {'found keys' if table.is_found else 'keys'}"
    else:
        by = f"order {synopsis.reading}" if isinstance(synopsis.reading, int) else f"by {synopsis.reading}"
    window = f"{meta['window']['start']} to {meta['window']['end']}"
    return f"<Synopsis {synopsis.release} of {meta['pipeline']}{key}, {window}, {by}>"


def html(synopsis: Released) -> str:
    meta = synopsis.meta
    rows = {
        "value": synopsis.meaning,
        "window": f"{meta['window']['start']} to {meta['window']['end']}",
        "domain": ", ".join(f"{axis_title(synopsis, i)} {a.min:g} to {a.max:g}" for i, a in enumerate(synopsis.axes)),
        "left out": synopsis.key_table().left_out if synopsis.kind == "counts" else "",
        "not here": _not_here(synopsis),
        "price": f"{synopsis.price} a {synopsis.unit}",
    }
    if synopsis.recommended not in (meta["order"], synopsis.reading):
        rows["reading"] = f"by({synopsis.recommended!r}) is expected to be more accurate; it has no band"
    if meta["synthetic"]:
        rows["records"] = "simulated"
    key = f", key {synopsis.key}" if synopsis.key is not None else ""
    about = Names(meta).description
    described = "" if about is None else f"<div>{markup.escape(about)}</div>"
    folded = {"guarantee": synopsis.in_words, "not protected": "; ".join(meta["not_protected"])}
    return (
        f"<div><b>{markup.escape(title(synopsis) + key)}</b>{described}{_curve(synopsis)}{_keys(synopsis)}{_table(rows)}"
        f"<details><summary>How this is protected</summary>{_table(folded)}</details></div>"
    )


def title(synopsis: Released) -> str:
    """The declared title, or the release and its pipeline."""
    return Names(synopsis.meta).title or f"{synopsis.release} of {synopsis.meta['pipeline']}"


def axis_title(synopsis: Released, i: int) -> str:
    """The name of an axis with its unit: ``departure delay (minutes)``."""
    names = Names(synopsis.meta)
    label, unit = names.label(i) or synopsis.axes[i].column, names.unit(i)
    return label if unit is None else f"{label} ({several(unit)})"


def value_title(synopsis: Released) -> str:
    """What a value is, in the declared units: ``flights per minute``."""
    names = Names(synopsis.meta)
    units = [names.unit(i) for i in range(len(synopsis.axes))]
    if synopsis.kind != "density" or not any(units):
        return synopsis.meaning.split(";")[0]
    return f"{several(names.record)} per {' and '.join(unit or 'unit' for unit in units)}"


def _table(rows: Mapping[str, str]) -> str:
    cells = "".join(
        f"<tr><th style='text-align:left'>{name}</th><td style='text-align:left'>{markup.escape(text)}</td></tr>"
        for name, text in rows.items()
        if text
    )
    return f"<table>{cells}</table>"


def _keys(synopsis: Released) -> str:
    """The largest keys by the first reading, each number give or take its noise."""
    if synopsis.kind != "counts":
        return ""
    table = synopsis.key_table()
    heads = "".join(f"<th>{name}</th>" for name in ("key", *table.readings))
    new = frozenset(table.new)
    lines = "".join(
        f"<tr><td>{markup.escape(visible(key))}{' (new)' if key in new else ''}</td>{_cells(table[key])}</tr>"
        for key in table.top(_ROWS).keys
    )
    more = f"<div>and {len(table) - _ROWS} keys more</div>" if len(table) > _ROWS else ""
    return f"<table><tr>{heads}</tr>{lines}</table>{more}"


def _not_here(synopsis: Released) -> str:
    """What it means that a key is not among those that were found."""
    if synopsis.kind != "counts" or not (table := synopsis.key_table()).is_found:
        return ""
    if table.is_overfull:
        return "all keys: there were too many different ones to look for new ones"
    return (
        "" if table.absent_below is None else f"keys that had fewer than about {nearly(table.absent_below)} {table.readings[0]}"
    )


def visible(text: str) -> str:
    """A key with escapes for what has no shape of its own, or changes that of others, as on the command line."""
    return "".join(_escape(one) if unicodedata.category(one) in _SHAPELESS or one == "\\" else one for one in text)


def _escape(one: str) -> str:
    return {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\\": "\\\\"}.get(one, f"\\u{{{ord(one):x}}}")


def _cells(row: Mapping[str, Estimate]) -> str:
    return "".join(f"<td>{_estimate(*estimate[:2])}</td>" for estimate in row.values())


def _estimate(value: float, interval: Bounds) -> str:
    """Give or take the further end."""
    return give_or_take(value, max(interval.upper - value, value - interval.lower))


def _curve(synopsis: Released) -> str:
    """The curve on one axis with its released band."""
    if len(synopsis.axes) != 1 or synopsis.kind == "moments":
        return ""
    axis = synopsis.axes[0]
    at = np.linspace(axis.min, axis.max, _POINTS)
    values = synopsis(at)
    lower, upper = synopsis.band(at) if synopsis.reading == synopsis.meta["order"] else (values, values)
    low, high = min(float(lower.min()), 0.0), max(float(upper.max()), 0.0)
    span = (high - low) or 1.0

    def across(x: Any) -> Any:
        return _LEFT + (x - axis.min) / (axis.max - axis.min) * _WIDTH

    def up(y: Any) -> Any:
        return _HEIGHT - (y - low) / span * _HEIGHT + 8

    def path(x: Any, y: Any) -> str:
        return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(across(x), up(y)))

    def text(x: float, y: float, anchor: str, words: str, more: str = "") -> str:
        return f"<text x='{x:.1f}' y='{y:.1f}' text-anchor='{anchor}'{more}>{markup.escape(words)}</text>"

    around = path(np.concatenate([at, at[::-1]]), np.concatenate([upper, lower[::-1]]))
    marks = [text(across(x), _HEIGHT + 22, "middle", f"{x:g}") for x in ticks(axis.min, axis.max, 7)]
    marks += [text(_LEFT - 6, up(y) + 4, "end", f"{y:g}") for y in ticks(low, low + span, 5)]
    marks.append(text(_LEFT + _WIDTH / 2, _HEIGHT + 8 + _BELOW, "middle", axis_title(synopsis, 0)))
    label = markup.escape(f"{value_title(synopsis)}: {low:.4g} to {high:.4g}")
    return (
        f"<div>{markup.escape(value_title(synopsis))}</div>"
        f"<svg role='img' aria-label='{label}' width='{_LEFT + _WIDTH + 16}' height='{_HEIGHT + _BELOW + 14}'"
        f" style='display:block' font-size='11' font-family='sans-serif' fill='currentColor'>"
        f"<title>{label}</title>"
        f"<polygon points='{around}' fill='#4477aa' fill-opacity='0.25'/>"
        f"<polyline points='{path(at, values)}' fill='none' stroke='#4477aa' stroke-width='2'/>"
        f"<polyline points='{path(at[[0, -1]], np.zeros(2))}' fill='none' stroke='#888888' stroke-width='1'/>"
        f"{''.join(marks)}</svg>"
    )
