"""A synopsis in one line, and as a table with its curve for notebooks."""

from __future__ import annotations

import html as markup
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .synopsis import Synopsis

_WIDTH, _HEIGHT, _POINTS = 480, 200, 161


def line(synopsis: Synopsis) -> str:
    meta = synopsis.meta
    key = f", key {synopsis.key}" if synopsis.key is not None else ""
    by = f"order {synopsis.reading}" if isinstance(synopsis.reading, int) else f"by {synopsis.reading}"
    window = f"{meta['window']['start']} to {meta['window']['end']}"
    return f"<Synopsis {synopsis.release} of {meta['pipeline']}{key}, {window}, {by}>"


def price(found: Any) -> str:
    if not isinstance(found, Mapping):
        return f"epsilon {found}"
    return ", ".join(f"{name} {value}" for name, value in found.items())


def unit(found: Any) -> str:
    if isinstance(found, Mapping):
        user = found.get("user", {})
        return f"user ({user.get('column')}, per {user.get('per')})"
    return str(found)


def html(synopsis: Synopsis) -> str:
    meta = synopsis.meta
    rows = {
        "value": synopsis.meaning,
        "window": f"{meta['window']['start']} to {meta['window']['end']}",
        "domain": ", ".join(f"{axis.column} {axis.min:g} to {axis.max:g}" for axis in synopsis.axes),
        "price": f"{price(meta['privacy']['price'])} a {unit(meta['privacy']['unit'])}",
        "guarantee": synopsis.in_words,
        "not protected": "; ".join(meta["not_protected"]),
    }
    if synopsis.recommended not in (meta["order"], synopsis.reading):
        rows["reading"] = f"by({synopsis.recommended!r}) is expected to be more accurate; it has no band"
    if meta["synthetic"]:
        rows["records"] = "simulated"
    key = f", key {synopsis.key}" if synopsis.key is not None else ""
    title = markup.escape(f"{synopsis.release} of {meta['pipeline']}{key}")
    cells = "".join(
        f"<tr><th style='text-align:left'>{name}</th><td style='text-align:left'>{markup.escape(text)}</td></tr>"
        for name, text in rows.items()
    )
    return f"<div><b>{title}</b>{_curve(synopsis)}<table>{cells}</table></div>"


def _curve(synopsis: Synopsis) -> str:
    """The curve on one axis with its released band."""
    if len(synopsis.axes) != 1 or synopsis.kind == "moments":
        return ""
    axis = synopsis.axes[0]
    at = np.linspace(axis.min, axis.max, _POINTS)
    values = synopsis(at)
    lower, upper = synopsis.band(at) if synopsis.reading == synopsis.meta["order"] else (values, values)
    low, high = min(float(lower.min()), 0.0), max(float(upper.max()), 0.0)
    span = (high - low) or 1.0

    def path(x: Any, y: Any) -> str:
        across = (x - axis.min) / (axis.max - axis.min) * _WIDTH
        return " ".join(f"{a:.1f},{_HEIGHT - b:.1f}" for a, b in zip(across, (y - low) / span * _HEIGHT))

    around = path(np.concatenate([at, at[::-1]]), np.concatenate([upper, lower[::-1]]))
    label = markup.escape(f"{synopsis.meaning}: {low:.4g} to {high:.4g}")
    return (
        f"<svg role='img' aria-label='{label}' width='{_WIDTH}' height='{_HEIGHT}' style='display:block'>"
        f"<title>{label}</title>"
        f"<polygon points='{around}' fill='#4477aa' fill-opacity='0.25'/>"
        f"<polyline points='{path(at, values)}' fill='none' stroke='#4477aa' stroke-width='2'/>"
        f"<polyline points='{path(at[[0, -1]], np.zeros(2))}' fill='none' stroke='#888888' stroke-width='1'/></svg>"
    )
