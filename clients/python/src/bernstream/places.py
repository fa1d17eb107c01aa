"""Points and ranges in natural units, and where they are on the unit cube."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional

import numpy as np

from .arrays import Array, Numbers
from .description import Axis
from .errors import SynopsisError

NO_POINTS = "it holds a table by key, not a function of a point: take its key_table()"


def points(axes: Sequence[Axis], coordinates: Sequence[Numbers]) -> tuple[Array, tuple[int, ...]]:
    """Points of the unit cube, one row per point, and the shape of the request: coordinates broadcast as in numpy."""
    if not axes:
        raise SynopsisError(NO_POINTS)
    if len(coordinates) != len(axes):
        raise SynopsisError(f"a point of this synopsis has {len(axes)} coordinates, not {len(coordinates)}")
    wide = np.broadcast_arrays(*(_on(axis, given) for axis, given in zip(axes, coordinates)))
    return np.stack([unit.ravel() for unit in wide], axis=1), wide[0].shape


def ranges(axes: Sequence[Axis], given: Sequence[Optional[Numbers]]) -> tuple[Array, tuple[int, ...]]:
    """Ranges of the unit cube, an array of low and high ends for each, and the shape of the request.

    One pair ``(low, high)`` per axis, or an array of pairs; they broadcast. None is the whole axis, and nothing the domain.
    """
    if not axes:
        raise SynopsisError(NO_POINTS)
    if len(given) not in (0, len(axes)):
        raise SynopsisError(f"a range of this synopsis has {len(axes)} pairs (low, high), not {len(given)}")
    pairs = []
    for axis, ends in zip(axes, given or [None] * len(axes)):
        found = _on(axis, (axis.min, axis.max) if ends is None else ends)
        if found.ndim == 0 or found.shape[-1] != 2:
            raise SynopsisError(f"a range of {axis.column} is a pair (low, high)")
        if not np.all(found[..., 0] <= found[..., 1]):
            raise SynopsisError(f"a range of {axis.column} ends before it begins")
        pairs.append(found)
    wide = np.broadcast_arrays(*pairs)
    return np.stack([pair.reshape(-1, 2) for pair in wide], axis=1), wide[0].shape[:-1]


def _on(axis: Axis, given: Numbers) -> Array:
    """Coordinates from 0 to 1; an error if one is outside the domain."""
    natural = np.asarray(given, dtype=np.float64)
    outside = ~((natural >= axis.min) & (natural <= axis.max))
    if np.any(outside):
        first = float(natural[outside].flat[0])
        raise SynopsisError(f"{axis.column} = {first} is outside the domain {axis.min} to {axis.max}")
    return np.asarray(np.clip((natural - axis.min) / (axis.max - axis.min), 0.0, 1.0))


def shaped(values: Array, shape: tuple[int, ...]) -> Any:
    """A number for a single point, else an array like the request."""
    return values[0].item() if shape == () else values.reshape(shape)
