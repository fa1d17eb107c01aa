"""Naive Bayes scores for tests/laws/bayes.rs, by scipy; the Gaussian ones are compared with scikit-learn's on the way.

Writes bayes.txt. A case is `target l k widths.. n`, then n lines `x.. label`, then a line of (k+1)^l scores, the last axis
fastest. `kernel` widths are bandwidths, `gaussian` widths are least standard deviations; both in the unit cube.
"""
from pathlib import Path

import numpy as np
from scipy.stats import gaussian_kde, norm
from sklearn.naive_bayes import GaussianNB

random = np.random.default_rng(4)


def kernel(x, width):
    if len(x) < 2 or np.ptp(x) == 0:                  # gaussian_kde needs a spread to divide by
        return lambda y: np.mean([norm(d, width).pdf(y) for d in x], axis=0)
    return gaussian_kde(x, width / x.std(ddof=1))


def gaussian(x, width):
    return norm(x.mean(), np.hypot(width, x.std())).pdf


def scores(likelihood, k, widths, x, label):
    total = np.zeros([k + 1] * len(widths))
    for sign in (1, -1):
        of_class = x[label == sign]
        product = np.array(float(sign * len(of_class)))
        for axis, width in enumerate(widths):
            values = likelihood(of_class[:, axis], width)(np.arange(k + 1) / k) if len(of_class) else np.zeros(k + 1)
            product = product[..., None] * values
        total += product
    return total


def by_sklearn(k, widths, x, label):
    """Only where all widths are one: scikit-learn adds the same to every variance."""
    model = GaussianNB(var_smoothing=widths[0]**2 / x.var(axis=0).max()).fit(x, label)
    lattice = np.stack(np.meshgrid(*[np.arange(k + 1) / k] * len(widths), indexing="ij"), -1).reshape(-1, len(widths))
    joint = np.exp(model.predict_joint_log_proba(lattice)) * len(x)
    return (joint @ model.classes_).reshape([k + 1] * len(widths))


lines = []
for likelihood in (kernel, gaussian):
    for k, widths, n, one_class in [(8, (0.1,), 12, False), (3, (0.6,), 5, True), (4, (0.2, 0.2), 15, False),
                                    (5, (0.3, 0.1), 1, False), (3, (0.25, 0.25, 0.25), 20, False),
                                    (2, (0.5, 0.2, 0.3), 6, False)]:
        label = np.ones(n) if one_class else np.where(random.random(n) < 0.4, -1.0, 1.0)
        x = np.round(np.clip(random.normal(0.5 + 0.15 * label[:, None], 0.2, (n, len(widths))), 0, 1), 3)
        values = scores(likelihood, k, widths, x, label)
        if likelihood is gaussian and len(set(widths)) == 1 and len(set(label)) == 2:
            assert np.allclose(values, by_sklearn(k, widths, x, label), rtol=1e-9, atol=1e-12)
            print("scikit-learn agrees:", widths)
        lines.append(f"{likelihood.__name__} {len(widths)} {k} {' '.join(map(str, widths))} {n}")
        lines += [" ".join(f"{c:g}" for c in (*row, sign)) for row, sign in zip(x, label)]
        lines.append(" ".join(f"{value:.12g}" for value in values.ravel()))
Path(__file__).with_name("bayes.txt").write_text("\n".join(lines) + "\n")
