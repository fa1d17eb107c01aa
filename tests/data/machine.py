"""Minimisers for tests/laws/machine.rs by scikit-learn and scipy, each by a method that has nothing in common with ours.

Prints to machine.txt, in blocks: a line with the kernel, its parameter, the loss, C, m, l and k; the values of the
minimiser on the lattice, row-major. The records are a formula, the same in the test.

numpy, scipy, scikit-learn. C/m is what these libraries call C, or the inverse of their alpha.
"""
from itertools import product

import numpy as np
from scipy.optimize import minimize
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

CORNER, STRAIGHT = 1 / 128, 0.25


def records(n, l, classes):
    i = np.arange(n)
    x = np.stack([(7919 * (a + 1) * i + 101 * a) % 1009 / 1009 for a in range(l)], 1)
    y = np.sin(6 * x[:, 0]) + (x[:, -1] - 0.5) + ((31 * i) % 17 - 8) / 16
    return x, np.where(y > 0, 1.0, -1.0) if classes else np.clip(y / 2, -1, 1)


def gram(kind, p, x, y):
    if kind == "gaussian":
        return np.exp(-((x[:, None] - y[None]) ** 2).sum(2) / (2 * p * p))
    if kind == "laplacian":
        return np.exp(-np.abs(x[:, None] - y[None]).sum(2) / p)
    affine = (1 + (2 * x - 1) @ (2 * y - 1).T) / (1 + x.shape[1])
    return affine ** (p if kind == "polynomial" else 1)


def smooth(K, pull, value, c):                # the primal in b, f = K b
    root = np.linalg.cholesky(K + 1e-12 * np.eye(len(K)))    # in whitened coordinates w, f = root w
    objective = lambda w: c * value(root @ w).sum() + w @ w / 2
    gradient = lambda w: w - c * (root.T @ pull(root @ w))
    w = minimize(objective, np.zeros(len(K)), jac=gradient, method="L-BFGS-B",
                 options=dict(maxiter=100000, maxfun=200000, ftol=1e-16, gtol=1e-11, maxcor=50)).x
    return np.linalg.solve(root.T, w)


def solve(loss, K, y, c):                     # coefficients b of the minimiser
    root = np.linalg.cholesky(K + 1e-12 * np.eye(len(K)))
    back = lambda w: np.linalg.solve(root.T, w)
    if loss == "squared":
        return KernelRidge(alpha=1 / c, kernel="precomputed").fit(K, y).dual_coef_
    if loss == "logistic":
        return back(LogisticRegression(C=c, fit_intercept=False, tol=1e-12, max_iter=100000).fit(root, y).coef_[0])
    if loss == "sharp":                       # the hinge as it is, corner and all
        svc = LinearSVC(C=c, loss="hinge", fit_intercept=False, tol=1e-10, max_iter=10000000)
        return back(svc.fit(root, y).coef_[0])
    if loss == "hinge":
        t = lambda f: 1 - y * f
        return smooth(K, lambda f: y * np.clip(t(f) / CORNER, 0, 1),
                      lambda f: np.where(t(f) < CORNER, np.maximum(t(f), 0) ** 2 / (2 * CORNER), t(f) - CORNER / 2), c)
    d = lambda f: y - f
    return smooth(K, lambda f: np.clip(d(f), -STRAIGHT, STRAIGHT),
                  lambda f: np.where(abs(d(f)) > STRAIGHT, STRAIGHT * (abs(d(f)) - STRAIGHT / 2), d(f) ** 2 / 2), c)


CASES = [("gaussian", 0.2, 2, 6), ("laplacian", 0.5, 1, 12), ("polynomial", 3, 2, 5), ("linear", 0, 3, 2)]
for (kind, p, l, k), (loss, C) in product(
        CASES, [("hinge", 24), ("sharp", 24), ("logistic", 20), ("squared", 5), ("huber", 10)]):
    n, m = 60, 80
    x, y = records(n, l, loss in ("hinge", "sharp", "logistic"))
    lattice = np.array(list(product(np.arange(k + 1) / k, repeat=l)))
    b = solve(loss, gram(kind, p, x, x), y, C / m)
    print(kind, p, loss, C, m, l, k)
    print(*(f"{v:.10g}" for v in gram(kind, p, lattice, x) @ b))
