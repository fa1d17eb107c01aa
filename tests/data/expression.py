"""Sums over records by numpy, for tests/laws/expression.rs.

Prints to expression.txt, a case a line: its place in the test's list, then the lattice values, row-major. Records are
those of the test: x_i = (37 i mod 101) / 101, y_i = (53 i mod 97) / 97 in the unit cube, label (29 i mod 89) / 44.5 - 1.
"""
import numpy as np

i = np.arange(40)
x, y, label = (37 * i % 101) / 101, (53 * i % 97) / 97, (29 * i % 89) / 44.5 - 1
delay, hour = -60 + 240 * x, 24 * y
k = 6
D = -60 + 240 * np.arange(k + 1) / k
H = 24 * np.arange(k + 1) / k

def show(case, values):
    print(case, *np.asarray(values).ravel())

show(0, np.exp(-((delay[:, None] - D) / 15) ** 2 / 2).sum(0))
show(1, (np.tanh((D - delay[:, None]) / 20) / 2 + 0.5).sum(0))
show(2, (label[:, None] * (1 - np.abs(delay[:, None] - D) / 240) ** 3).sum(0))
show(3, (np.exp(-((delay[:, None, None] - D[:, None]) / 30) ** 2)
         * (1 + np.cos(np.pi * (hour[:, None, None] - H) / 12)) / 2).sum(0))
show(4, (np.sqrt(delay[:, None] + 61) * np.log(D + 100) / np.maximum(D + 70, np.minimum(delay[:, None] + 70, 50))).sum(0))
