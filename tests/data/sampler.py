"""What the sensitivity sampler of the R package diffpriv 0.4.2 chooses (its .sensitivity_sampler_config), by scipy's Lambert W.

Prints to sampler.txt: m, gamma ("-" for what is to be found), then m, gamma, k and rho as chosen.
"""
from math import ceil, exp, log, sqrt
from scipy.special import lambertw

def config(m, gamma):
    if m is not None:
        rho = exp(lambertw(-1 / (4 * m), -1).real / 2)
        least = rho + sqrt(log(1 / rho) / (2 * m))
        if gamma is None:
            return m, least, m, rho
    else:
        rho = exp(lambertw(-gamma / (2 * exp(0.5)), -1).real + 0.5)
        m = ceil(log(1 / rho) / (2 * (gamma - rho) ** 2))
        least = rho + sqrt(log(1 / rho) / (2 * m))
    return m, gamma, ceil(m * (1 - gamma + least)), rho

show = lambda x: "-" if x is None else x
for m, gamma in [(500, 0.2), (100, 0.2), (100, 0.5), (1000, 0.1), (20_000, 0.02), (1_000_000, 0.01), (10, None), (50, None),
                 (500, None), (123_456, None), (None, 0.5), (None, 0.33), (None, 0.2), (None, 0.1), (None, 0.05), (None, 0.01)]:
    print(show(m), show(gamma), *config(m, gamma))
