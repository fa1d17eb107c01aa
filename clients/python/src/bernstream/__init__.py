"""Reads synopses of bernstream: private functions of a stream, evaluated anywhere at no cost in privacy.

>>> import bernstream
>>> f = bernstream.example()            # or bernstream.read("2013-01-01T050000Z.arrows")
>>> bool(f(15.0) > f(120.0))            # more flights left 15 minutes late than two hours late
True
>>> lower, upper = f.band(15.0)         # bounds on the noise, at all points simultaneously
>>> bool(lower < f(15.0) < upper)
True
"""

from .arrays import Bounds
from .cell_readings import Estimate
from .collection import Collection, open
from .density import Cumulative, Density
from .description import Axis
from .errors import SynopsisError
from .figures import Integral
from .key_table import KeyTable, TopKeys
from .noise import NoiseError
from .query import Answer, Mean, Truncation
from .synopsis import Synopsis, example, read
from .topic import newest, published
from .verification import Report, verify

__all__ = [
    "Answer",
    "Axis",
    "Bounds",
    "Collection",
    "Cumulative",
    "Density",
    "Estimate",
    "Integral",
    "KeyTable",
    "Mean",
    "NoiseError",
    "Report",
    "Synopsis",
    "SynopsisError",
    "TopKeys",
    "Truncation",
    "example",
    "newest",
    "open",
    "published",
    "read",
    "verify",
]
__version__ = "0.1.0"
