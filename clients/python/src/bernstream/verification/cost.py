"""What noise costs, from its law, its scale and the change that it hides: docs/proofs/noise.md and concentrated.md."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..errors import SynopsisError
from .prices import Price, rho_of_pure, show

#: Scales and changes are told as floats: what a float may lose.
_FLOATS = 1e-12
#: What the constants of the samplers cost, of rho and of epsilon: docs/proofs/noise.md.
_RHO_PART, _RHO, _EPSILON = 2.0**-30, 1e-12, 1e-15

#: The norm in which each law hides a change.
NORMS = {"discrete laplace": "1-norm", "discrete cube": "sup norm", "rounded ball": "2-norm", "discrete gaussian": "2-norm"}


@dataclass(frozen=True)
class Noise:
    """Independent noise for each key: its scale and the change in grid units, and how many values."""

    law: str
    scale: float
    change: float
    #: Values of one key, and values that a unit can change in all keys.
    values: int
    touched: int

    @property
    def ratio(self) -> float:
        return self.change / self.scale


def shortfall(noise: Noise, paid: Price) -> str:
    """Why the noise costs more than was paid for it; empty where it does not."""
    if set(paid) == {"epsilon"}:
        return _beyond("epsilon", _epsilon(noise), float(paid["epsilon"]))
    if set(paid) == {"epsilon", "delta"}:
        epsilon, delta = float(paid["epsilon"]), float(paid["delta"])
        if noise.law != "discrete gaussian":
            return _beyond("epsilon", _epsilon(noise), epsilon)
        return _beyond(f"delta at epsilon {epsilon:g}", gaussian_delta(noise, epsilon), delta)
    if set(paid) == {"rho"}:
        return _beyond("rho", rho(noise), float(paid["rho"]))
    raise SynopsisError(f"a price of {show(paid)} buys no noise")


def _beyond(what: str, cost: float, paid: float) -> str:
    return f"it costs {what} {cost:.6g}, and {paid:.6g} was paid" if cost > paid * (1.0 + _FLOATS) else ""


def _epsilon(noise: Noise) -> float:
    """Of every law whose density falls as ``exp(-norm / scale)``."""
    if noise.law == "discrete gaussian":
        raise SynopsisError("Gaussian noise has no price of pure differential privacy")
    return noise.ratio + _EPSILON


def rho(noise: Noise) -> float:
    t, scale = noise.ratio, noise.scale
    if noise.law == "discrete gaussian":
        return t * t / 2.0 * (1.0 + _RHO_PART) + _RHO
    if noise.law == "discrete laplace":
        own = t + math.expm1(-t) + min(t, 1.0) / (6.0 * scale * scale)
    elif noise.law == "rounded ball":
        own = t * t / (2.0 * noise.values) if t <= noise.values else t - noise.values / 2.0
    else:
        own = math.inf
    # The rounding of the integer version is up: the page says by less than six units of 10^-12.
    return min(own, rho_of_pure(t))


def advanced(noise: Noise, delta: float) -> float:
    """The epsilon of Laplace noise on values that change by the same, with a delta: advanced composition."""
    each = noise.ratio / noise.values
    if not 0.0 < delta < 1.0 or each > 700.0:
        return math.inf
    return math.sqrt(2.0 * noise.values * math.log(1.0 / delta)) * each + noise.values * each * math.expm1(each)


def tail(x: float) -> float:
    """The upper tail of the normal law."""
    return math.erfc(x / math.sqrt(2.0)) / 2.0


def gaussian_curve(mu: float, epsilon: float) -> float:
    """The delta of continuous Gaussian noise, the change ``mu`` times its deviation."""
    if mu == 0.0:
        return 0.0
    near, far = epsilon / mu - mu / 2.0, epsilon / mu + mu / 2.0
    # exp(epsilon) Q(far), without an overflow.
    log_of_far = math.log(tail(far)) if far < 37.0 else -far * far / 2.0 - math.log(far * math.sqrt(2.0 * math.pi))
    return max(0.0, tail(near) - math.exp(epsilon + log_of_far))


def gaussian_delta(noise: Noise, epsilon: float) -> float:
    """That of the discrete law: a value is within ``1 / 40 sigma^2`` of the continuous one, rounded, in total variation."""
    epsilon = min(epsilon, 24.0)
    apart = (1.0 + math.exp(epsilon)) * noise.touched / (40.0 * noise.scale**2)
    return gaussian_curve(noise.ratio, epsilon) + apart


def epsilon_of_rho(total: float, delta: float) -> float:
    """The infimum over ``a > 1`` of ``a rho + ln(1 - 1/a) + ln(1 / (a delta)) / (a - 1)``, on a fine grid."""
    if total == 0.0:
        return 0.0
    best = math.inf
    middle = math.sqrt(math.log(1.0 / delta) / total)
    for step in range(-4000, 4001):
        y = middle * math.exp(step / 1000.0)
        a = 1.0 + y
        best = min(best, a * total + math.log(y / a) - (math.log(delta) + math.log(a)) / y)
    return max(best, 0.0)
