"""The laws of noise by exact arithmetic: nothing here knows how the program draws.

Every probability is an enclosure in rational numbers whose ends agree in 30 digits. Prints to noise.txt:
    digit J HEX, carry HEX        floor(2^192 / (1 + exp(2^J / 16))), floor(2^192 exp(-64)), in 48 digits
    case LAW SCALE VALUES WHAT    then the cells of WHAT: FROM TO PROBABILITY, ends included, "-" for none
WHAT is "each", any one of the values, or "largest", the largest size among them.
"""
from fractions import Fraction as F
from math import comb

BITS = 420
ONE = 1 << BITS


def exp_below(x):
    """Whole numbers below and above 2^BITS exp(-x), x a fraction from 0 on: an alternating series in x / 2^k, squared k times."""
    bits = BITS + 60
    k = (x.numerator // x.denominator).bit_length() + 12
    y = x / 2**k
    ends = [1 << bits, 1 << bits]  # Of the term.
    below = above = 1 << bits  # Of the sum.
    n = 0
    while ends[1] > 1:
        n += 1
        ends = [ends[0] * y.numerator // (y.denominator * n), -(-ends[1] * y.numerator // (y.denominator * n))]
        below, above = (below - ends[1], above - ends[0]) if n % 2 else (below + ends[0], above + ends[1])
    # What is left out is less than the last term.
    below, above = below - ends[1], above + ends[1]
    for _ in range(k):
        below, above = (below * below) >> bits, -((-above * above) >> bits)
    return below >> 60, (above >> 60) + 1


class Range:
    """A number between two fractions of 2^BITS."""

    def __init__(self, low, high):
        self.low, self.high = low, high

    def __add__(self, other):
        return Range(self.low + other.low, self.high + other.high)

    def times(self, part):
        """By a fraction that is not negative."""
        part = F(part)
        return Range(self.low * part.numerator // part.denominator, -(-self.high * part.numerator // part.denominator))

    def over(self, other):
        return Range((self.low << BITS) // other.high, -((-self.high << BITS) // other.low))

    def minus(self, other):
        return Range(max(0, self.low - other.high), self.high - other.low)

    def digits(self):
        """30 digits after the point that both ends agree in, but for the last."""
        low, high = (end * 10**30 // ONE for end in (self.low, self.high))
        assert high - low <= 1, (low, high)
        return f"{low // 10**30}.{low % 10**30:030}"


def exp(x):
    return Range(*exp_below(F(x)))


NOTHING = Range(0, 0)


def total(ranges):
    return sum(ranges, NOTHING)


def by_weights(weight, reach, cells):
    """Of a symmetric law on the whole numbers: cells of its values, and the rest on either side."""
    weights = {z: weight(z) for z in range(reach + 1)}
    whole = weights[0] + total(weights[z].times(2) for z in range(1, reach + 1))
    for low, high in cells:
        yield low, high, total(weights[abs(z)] for z in range(low, high + 1)).over(whole)


def with_tails(found):
    found = list(found)
    inside = total(mass for _, _, mass in found)
    rest = Range(ONE, ONE).minus(inside).times(F(1, 2))
    return [("-", found[0][0] - 1, rest), *found, (found[-1][1] + 1, "-", rest)]


def laplace(scale, cells):
    """P[z] ~ exp(-|z| / s): cells by sums of the geometric series, exactly."""
    q = lambda n: exp(F(n, scale))
    whole = (Range(ONE, ONE) + q(1)).over(Range(ONE, ONE).minus(q(1)))
    for low, high in cells:
        if low <= 0 <= high:
            sides = [(1, high), (1, -low)]
            mass = Range(ONE, ONE)
        else:
            sides, mass = [(min(abs(low), abs(high)), max(abs(low), abs(high)))], NOTHING
        for near, far in sides:
            if near <= far:
                mass = mass + q(near).minus(q(far + 1)).over(Range(ONE, ONE).minus(q(1)))
        yield low, high, mass.over(whole)


def ball(scale, values, cells):
    """One coordinate of exp(-length(x) / s), rounded. Of an odd number of values its density is a polynomial in |x| / s times
    exp(-|x| / s): the characteristic function is (1 + s^2 t^2)^(-(d+1)/2)."""
    n = (values + 1) // 2
    # The density of (1 + t^2)^-n: sum_k C(n-1+k, k) 2^-(n+k-1)/2 ... as a sum of x^j exp(-x) / j!, j = n - 1 - k.
    part = [F(comb(n - 1 + k, k), 2 ** (n + k)) for k in range(n)]

    def above(x):
        """P[X > s x], x at least 0: of each x^j exp(-x) / j! the tail is exp(-x) sum_{i <= j} x^i / i!."""
        sum_of, poly = F(0), F(0)
        for k in range(n):
            j, term, tail = n - 1 - k, F(1), F(1)
            for i in range(1, j + 1):
                term = term * x / i
                tail += term
            poly += part[k] * tail
            sum_of += part[k]
        assert sum_of == F(1, 2), sum_of
        return exp(x).times(poly)

    for low, high in cells:
        near, far = sorted((abs(F(2 * low - 1, 2 * scale)), abs(F(2 * high + 1, 2 * scale))))
        if low <= 0 <= high:
            yield low, high, Range(ONE, ONE).minus(above(near)).minus(above(far))
        else:
            near, far = (F(2 * min(abs(low), abs(high)) - 1, 2 * scale), F(2 * max(abs(low), abs(high)) + 1, 2 * scale))
            yield low, high, above(near).minus(above(far))


def cube_radii(scale, values, reach):
    """P[max = m] ~ ((2m+1)^N - (2m-1)^N) exp(-m / s)."""
    shell = lambda m: (2 * m + 1) ** values - ((2 * m - 1) ** values if m else 0)
    return [exp(F(m, scale)).times(shell(m)) for m in range(reach + 1)]


def cube_largest(scale, values, reach, cells):
    weights = cube_radii(scale, values, reach)
    whole = total(weights)
    for low, high in cells:
        yield low, high, total(weights[low : high + 1]).over(whole)


def cube_each(scale, values, reach, cells):
    """Sum over the radii R of weight (2R+1)^N exp(-R / s) of uniform values in -R..R."""
    weights = [exp(F(r, scale)).times((2 * r + 1) ** values) for r in range(reach + 1)]
    whole = total(weights)
    each = [NOTHING] * (reach + 2)
    for r in range(reach, -1, -1):
        each[r] = each[r + 1] + weights[r].times(F(1, 2 * r + 1))
    for low, high in cells:
        yield low, high, total(each[abs(z)] for z in range(low, high + 1)).over(whole)


def show(law, scale, values, what, found):
    print("case", law.replace(" ", "-"), scale, values, what)
    for low, high, mass in found:
        print(low, high, mass.digits())


def single(reach):
    return [(z, z) for z in range(-reach, reach + 1)]


def eighths(scale, reach):
    """Cells of an eighth of the scale that do not begin at multiples of 16."""
    step = scale // 8
    return [(i * step + 1, (i + 1) * step) for i in range(-8 * reach, 8 * reach)]


def main():
    for j in range(10):
        e = exp(F(2**j, 16))
        # 1 / (1 + exp(x)) = exp(-x) / (1 + exp(-x)).
        found = e.over(Range(ONE, ONE) + e)
        low, high = found.low >> (BITS - 192), found.high >> (BITS - 192)
        assert low == high
        print(f"digit {j} {low:048X}")
    carry = exp(64)
    assert carry.low >> (BITS - 192) == carry.high >> (BITS - 192)
    print(f"carry {carry.low >> (BITS - 192):048X}")

    # Far beyond, weights are below 10^-40 of the whole.
    for scale, reach in ((16, 100), (48, 290), (160, 900)):
        show("discrete laplace", scale, 1, "each", with_tails(laplace(scale, single(reach) if scale < 160 else eighths(scale, 5))))
    for scale in (16 * (2**41 + 12345), 2**56):
        show("discrete laplace", scale, 1, "each", with_tails(laplace(scale, eighths(scale, 6))))
    for scale in (16, 48, 160):
        weight = lambda z: exp(F(z * z, 2 * scale * scale))
        reach = 4 * scale
        cells = single(reach) if scale < 160 else eighths(scale, 3)
        show("discrete gaussian", scale, 1, "each", with_tails(by_weights(weight, 20 * scale, cells)))
    for scale, values in ((16, 1), (16, 3), (48, 5), (16, 21)):
        show("rounded ball", scale, values, "each", with_tails(ball(scale, values, eighths(scale, 4 if values < 21 else 16))))
    for scale in (16 * (2**41 + 12345), 2**56):
        show("rounded ball", scale, 7, "each", with_tails(ball(scale, 7, eighths(scale, 8))))
    for scale, values in ((16, 1), (16, 2), (48, 3), (16, 25)):
        reach = (110 + 6 * values) * scale
        step = scale // 8
        most = 4 * scale if values < 25 else 40 * scale
        cells = [(low, low + step - 1) for low in range(0, most, step)]
        found = list(cube_largest(scale, values, reach, cells))
        found.append((most, "-", Range(ONE, ONE).minus(total(mass for _, _, mass in found))))
        show("discrete cube", scale, values, "largest", found)
        show("discrete cube", scale, values, "each", with_tails(cube_each(scale, values, reach, eighths(scale, 4 if values < 25 else 30))))


if __name__ == "__main__":
    main()
