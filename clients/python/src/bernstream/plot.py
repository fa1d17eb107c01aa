"""A synopsis as a figure of Matplotlib, which is asked for only when something is drawn."""

from __future__ import annotations

from typing import Any, Optional

import numpy as np

from . import show
from .errors import SynopsisError
from .released import Released

_COLOUR = "#4477aa"
_ALONG, _ACROSS = 401, 121


def draw(synopsis: Released, ax: Optional[Any]) -> Any:
    if synopsis.kind == "counts":
        raise SynopsisError("plot() draws functions: take the key_table() of this one")
    if synopsis.kind == "moments" or len(synopsis.axes) > 2:
        raise SynopsisError(
            "plot() draws functions of one or two axes: evaluate this one where you want it, or ask with query()"
        )
    if ax is None:
        try:
            from matplotlib import pyplot
        except ImportError as error:
            raise ImportError("plotting needs Matplotlib: pip install matplotlib") from error
        ax = pyplot.subplots()[1]
    draw_on = _curve if len(synopsis.axes) == 1 else _map
    draw_on(synopsis, ax)
    ax.set_xlabel(show.axis_title(synopsis, 0))
    key = f", {synopsis.key}" if synopsis.key is not None else ""
    ax.set_title(f"{show.title(synopsis)}{key}, {synopsis.window[0]:%Y-%m-%d %H:%M} UTC")
    return ax


def _curve(synopsis: Released, ax: Any) -> None:
    (axis,) = synopsis.axes
    at = np.linspace(axis.min, axis.max, _ALONG)
    if synopsis.reading == synopsis.meta["order"]:
        ends = synopsis.band(at)
        ax.fill_between(at, *ends, color=_COLOUR, alpha=0.25, linewidth=0, label=f"noise, {synopsis.level:.0%} at all points")
        ax.legend()
    ax.plot(at, synopsis(at), color=_COLOUR)
    ax.set_ylabel(show.value_title(synopsis))


def _map(synopsis: Released, ax: Any) -> None:
    x, y = (np.linspace(axis.min, axis.max, _ACROSS) for axis in synopsis.axes)
    drawn = ax.pcolormesh(x, y, synopsis(x[None, :], y[:, None]), shading="gouraud")
    ax.figure.colorbar(drawn, ax=ax, label=show.value_title(synopsis))
    ax.set_ylabel(show.axis_title(synopsis, 1))
