"""Prices: exact decimals of one kind."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Union

from ..errors import SynopsisError

#: A price by its parts: ``epsilon``, ``epsilon`` and ``delta``, ``rho``, or ``slots``.
Price = dict[str, Fraction]


def decimal(text: Any) -> Fraction:
    """A plain decimal, exactly."""
    if isinstance(text, bool) or not isinstance(text, (str, int)):
        raise SynopsisError(f"{text!r} is not a price: prices are decimals as text")
    try:
        found = Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise SynopsisError(f"{text!r} is not a price: prices are decimals as text") from None
    if found < 0:
        raise SynopsisError(f"a price of {text} is below 0")
    return found


def price(found: Union[str, Mapping[str, Any]]) -> Price:
    if isinstance(found, Mapping):
        return {part: decimal(amount) for part, amount in found.items()}
    return {"epsilon": decimal(found)}


def add(one: Price, other: Price) -> Price:
    if set(one) != set(other):
        raise SynopsisError(f"{show(one)} and {show(other)} are prices of two kinds, which do not add up")
    return {part: one[part] + other[part] for part in one}


def within(part: Price, whole: Price) -> bool:
    """Whether no part of one exceeds that of the other."""
    return set(part) == set(whole) and all(part[name] <= whole[name] for name in part)


def show(found: Price) -> str:
    return ", ".join(f"{name} {_decimal(amount)}" for name, amount in found.items())


def _decimal(amount: Fraction) -> str:
    return f"{float(amount):.12g}"


def rho_of_pure(epsilon: float) -> float:
    """What any mechanism of pure differential privacy costs in rho: ``epsilon tanh(epsilon / 2)``."""
    return epsilon * math.tanh(epsilon / 2.0)
