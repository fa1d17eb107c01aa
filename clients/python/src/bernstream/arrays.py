"""Arrays of numbers: what callers give and get, and work on them in chunks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Union

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
#: What a caller may pass as the coordinates of an axis.
Numbers = Union[float, npt.ArrayLike]

#: Numbers processed at a time: 16 MB.
AT_ONCE = 2_000_000


class Bounds(NamedTuple):
    """The ends of a band."""

    lower: Any
    upper: Any


def in_parts(points: Array, numbers_a_point: int, work: Callable[[Array], Array]) -> Array:
    """Applies ``work`` in chunks, so that a million points fit into memory."""
    done = [work(some) for some in parts(points, numbers_a_point)]
    return done[0] if len(done) == 1 else np.concatenate(done)


def parts(points: Array, numbers_a_point: int) -> list[Array]:
    """The points in chunks, at least one."""
    step = max(1, AT_ONCE // max(1, numbers_a_point))
    return [points[i : i + step] for i in range(0, max(1, len(points)), step)]


def product(axes: list[Any]) -> Array:
    """The points with these coordinates, the last axis fastest: one row per point."""
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes)).astype(np.float64)


def isotonic(values: Array) -> Array:
    """The nondecreasing sequence nearest in least squares: decreasing neighbours are pooled."""
    blocks: list[tuple[float, int]] = []
    for value in values.tolist():
        total, count = value, 1
        while blocks and blocks[-1][0] / blocks[-1][1] > total / count:
            before, more = blocks.pop()
            total, count = total + before, count + more
        blocks.append((total, count))
    return np.repeat([total / count for total, count in blocks], [count for _, count in blocks])
