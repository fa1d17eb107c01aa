"""Values for the test of target/regression.rs, by numpy 2.4: the sums as docs/proofs/regression.md writes them, in floats.

Prints to regression.txt, one line a case: name | bandwidth, degree, gap | x | labels | lattice values. Records are in no
order. The case "vignette" is the R function of the vignette of the package diffpriv, line by line, over sqrt(2 pi).
"""
import numpy as np

rng = np.random.default_rng(4)

def clipped(x, labels, b, k, g):
    places = np.unique(x)                                            # sorted, tied records together
    means = np.array([labels[x == place].mean() for place in places])
    weights = np.minimum(np.diff(places), g) * means[1:]
    y = np.arange(k + 1)[:, None] / k
    return (weights * np.exp(-((y - places[1:]) / b) ** 2 / 2) / (np.sqrt(2 * np.pi) * b)).sum(axis=1)

def vignette(x, labels, b, k, _):
    ids = np.argsort(x)
    x, labels = x[ids], labels[ids]
    ws = (x[1:] - x[:-1]) * labels[1:]
    predictor = lambda y: (ws * np.exp(-((y - x[1:]) / b) ** 2 / 2)).sum() / b
    return np.array([predictor(j / k) for j in range(k + 1)]) / np.sqrt(2 * np.pi)

def write(name, function, x, labels, b, k, g):
    parts = [(b, k, g), x, labels, function(x, labels, b, k, g)]
    print(name, *(" ".join(f"{float(v):.12g}" for v in part) for part in parts), sep="|")

x = rng.random(250).round(9)
labels = np.clip(np.sin(10 * x) * x + rng.normal(0, 0.2, 250), -1, 1).round(9)
write("vignette", vignette, x, labels, 0.1, 25, 1)
write("unclipped", clipped, x[:60], labels[:60], 0.1, 25, 1)
write("clipped", clipped, x[:80], labels[:80], 0.05, 20, 0.004)
write("narrow", clipped, x[:80], labels[:80], 0.011, 33, 0.02)
heaped = (np.floor(24 * x[:120]) / 24).round(9)
write("heaped", clipped, heaped, labels[:120], 0.1, 10, 0.05)
write("two records", clipped, np.array([0.7, 0.2]), np.array([-1, 1]), 0.3, 5, 0.25)
