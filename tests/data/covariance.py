"""Values for tests/laws/covariance.rs, by scipy 1.17: sums of multivariate_normal.pdf over records, and n times gaussian_kde.

Prints to covariance.txt, one line a case: name | degree | matrix by rows | records | intensity on the lattice, the last
axis fastest.
"""
import itertools

import numpy as np
from scipy.stats import gaussian_kde, multivariate_normal

rng = np.random.default_rng(5)

def write(name, h, k, records, values):
    parts = [[k], h.ravel(), records.ravel(), values]
    print(name, *(" ".join(f"{float(v):.12g}" for v in part) for part in parts), sep="|")

def lattice(l, k):
    return np.array(list(itertools.product(np.arange(k + 1) / k, repeat=l)))

for name, b, correlations, k, n in [
    ("thin", [0.05, 0.05], [0.97], 8, 40),
    ("unlike axes", [0.1, 0.3], [-0.7], 7, 40),
    ("finer lattice than cells", [0.5, 0.4], [0.5], 18, 10),
    ("three axes", [0.2, 0.3, 0.25], [0.5, -0.3, 0.4], 4, 20),
]:
    l = len(b)
    h = np.diag(np.array(b) ** 2)
    for (i, j), correlation in zip(itertools.combinations(range(l), 2), correlations):
        h[i, j] = h[j, i] = correlation * b[i] * b[j]
    h = np.array([[float(f"{v:.12g}") for v in row] for row in h])
    records = rng.random((n, l)).round(9)
    y = lattice(l, k)
    write(name, h, k, records, sum(multivariate_normal(record, h).pdf(y) for record in records))

x = rng.normal(0.5, 0.15, (60, 2))
records = np.clip(np.column_stack([x[:, 0], 0.8 * x[:, 0] + 0.2 * x[:, 1]]), 0, 1).round(9)
kde = gaussian_kde(records.T)
write("gaussian_kde", kde.covariance, 9, records, len(records) * kde(lattice(2, 9).T))
