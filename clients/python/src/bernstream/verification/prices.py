"""Prices: exact decimals of one kind."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Union

from ..errors import SynopsisError

#: A price by its parts: ``epsilon``, ``epsilon`` and ``delta``, ``rho``, or ``slots``.
Price = dict[str, Fraction]


#: As the program writes a part: at most a count of 64 bits of its smallest unit.
_DECIMAL = re.compile(r"[0-9]{1,20}(\.[0-9]{1,18})?")
_KINDS = ({"epsilon", "delta"}, {"rho"}, {"slots"})


def decimal(text: Any) -> Fraction:
    """A plain decimal, exactly."""
    if not isinstance(text, str) or not _DECIMAL.fullmatch(text):
        raise SynopsisError(f"{str(text)[:40]!r} is not a price: prices are plain decimals as text, such as 0.1")
    return Fraction(text)


def price(found: Union[str, Mapping[str, Any]]) -> Price:
    """A price of one of the four kinds."""
    if not isinstance(found, Mapping):
        return {"epsilon": decimal(found)}
    if set(found) not in _KINDS:
        raise SynopsisError(f"{str(dict(found))[:80]} is not a price: it is of no kind")
    return {part: _slots(amount) if part == "slots" else decimal(amount) for part, amount in found.items()}


def _slots(found: Any) -> Fraction:
    if type(found) is not int or not 0 <= found < 2**64:
        raise SynopsisError(f"{str(found)[:40]!r} is not a number of slots")
    return Fraction(found)


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
