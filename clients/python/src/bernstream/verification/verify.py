"""Verifies synopses: sensitivity, scale, composition and what was spent."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Optional, Union

from ..description import check as checked
from ..document import thaw
from ..errors import SynopsisError
from ..synopsis import Synopsis, read
from . import sensitivity
from .composition import Books, check_blocks, check_implied
from .cost import NORMS, Noise, gaussian_curve, shortfall
from .export import Export
from .prices import Price, price, rho_of_pure, show
from .report import Findings, Report
from .witness import Witness

#: A synopsis, its document, the bytes of a message, or where a file or a folder of them is.
One = Union[Synopsis, Mapping[str, Any], bytes, str, "os.PathLike[str]"]


def verify(
    published: Union[One, Iterable[One]],
    ledger: Optional[Union[str, "os.PathLike[str]"]] = None,
    witness: Optional[Witness] = None,
) -> Report:
    """Recomputes what synopses promise, and says what had to be believed. True where nothing is wrong.

    ``published`` is a synopsis, a file, a folder of an output, or any iterable of synopses, documents and messages of a
    topic, such as :func:`bernstream.published`. ``ledger`` is the file of a ``bernstream ledger export``, and
    ``witness`` the witness file of an output, or the messages of a witness topic. With these, ``published`` may be empty.

    >>> import bernstream
    >>> report = bernstream.verify(bernstream.example())
    >>> bool(report)
    True
    >>> len(report.believed) > 0        # no description shows everything
    True
    """
    if witness is not None and ledger is None:
        raise SynopsisError("a witness is compared with the export of a ledger: give that too")
    found = Findings()
    books: dict[str, Books] = {}
    export = None if ledger is None else Export.read(Path(ledger), found)
    count = 0
    for place, synopsis, digest in _each(published, found):
        count += 1
        document = thaw(synopsis.meta)
        try:
            where = _where(document)
            _one(document, synopsis, where, found)
            content = hashlib.sha256(json.dumps([document, synopsis.values.tolist()], sort_keys=True).encode()).hexdigest()
            entry = document["ledger"]
            # Two ledgers may follow each other on one output.
            book = books.setdefault(entry["id"], Books(entry["id"]))
            book.add(document, content, f"{where}, row {entry['sequence']}", found)
            if export is not None:
                export.match(document, digest, found)
        except SynopsisError as error:
            found.wrong(f"{place}: {error}")
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            found.wrong(f"{place}: its description cannot be understood: {error!r}")
    if not count and not found.faults and export is None:
        raise SynopsisError("there is no synopsis to verify")
    for book in books.values():
        book.close(found)
    if export is not None:
        export.witnessed(witness, found)
        export.close(found)
    _always(found)
    return found.report()


def _each(published: Any, found: Findings) -> Iterable[tuple[str, Synopsis, Optional[str]]]:
    """Where each is, the synopsis, and the digest of its bytes where these are known."""
    if isinstance(published, (Synopsis, Mapping, bytes)):
        published = [published]
    elif isinstance(published, (str, os.PathLike)):
        path = Path(published)
        published = sorted(p for p in path.rglob("*") if p.suffix in (".arrows", ".json")) if path.is_dir() else [path]
    for number, one in enumerate(published):
        place = str(one) if isinstance(one, (str, os.PathLike)) else f"synopsis {number + 1}"
        try:
            yield (place, *_opened(one))
        except SynopsisError as error:
            found.wrong(f"{place}: {error}")


def _opened(one: Any) -> tuple[Synopsis, Optional[str]]:
    if isinstance(one, (str, os.PathLike)):
        path = Path(one)
        if path.suffix == ".json":
            return read(path), None
        try:
            one = path.read_bytes()
        except OSError as error:
            raise SynopsisError(f"it cannot be read: {error}") from error
    if isinstance(one, bytes):
        return Synopsis.from_arrow(one), hashlib.sha256(one).hexdigest()
    return (one if isinstance(one, Synopsis) else Synopsis.from_json(one)), None


def _where(document: Mapping[str, Any]) -> str:
    key = document.get("key")
    return f"{document['pipeline']}/{document['release']}" + (f"/{key}" if key is not None else "")


def _one(document: Mapping[str, Any], synopsis: Synopsis, where: str, found: Findings) -> None:
    about = checked(document)
    privacy = document["privacy"]
    check_blocks(document, where, found)
    check_implied(privacy, where, found)
    if "sensitivity" not in document:
        found.believe(
            f"{where}: its sensitivity and the scale of its noise, which a synopsis of an older program does not derive"
        )
        return
    declared, noise = document["sensitivity"], document["noise"]
    if declared["norm"] != NORMS[noise["law"]]:
        found.wrong(f"{where}: {noise['law']} noise hides a change in the {NORMS[noise['law']]}, not in the {declared['norm']}")
        return
    sensitivity.check(about, document, where, found)
    fresh = declared.get("fresh")
    scale = noise["scale"] if fresh is None else fresh["scale"]
    if fresh is None and (document.get("panes") or {}).get("step") is not None:
        found.believe(f"{where}: the noise of a sum over windows, which its description does not derive")
        return
    if fresh is None and not sensitivity.is_multiple(scale, noise["grid"]):
        found.wrong(f"{where}: the scale of its noise is not a multiple of 16 grid units")
    # Each pane is in several draws, or in one draw and, by a filter, in all that follow.
    times = 1.0 if fresh is None else float(fresh.get("nodes", 1)) if noise["law"] != "discrete gaussian" else 1.0
    spread = 1.0 if fresh is None else float(fresh.get("norm_squared", 1.0)) ** 0.5
    drawn = Noise(
        law=noise["law"],
        scale=scale / noise["grid"],
        change=declared["units"] * spread,
        values=len(synopsis.values),
        touched=declared["values"],
    )
    if fresh is not None and "norm_squared" in fresh:
        found.believe(
            f"{where}: the norm of the filter that correlates the noise of its sums, {fresh['norm_squared']:.6g} squared"
        )
    _scale(document, drawn, times, where, found)


def _scale(document: Mapping[str, Any], drawn: Noise, times: float, where: str, found: Findings) -> None:
    privacy = document["privacy"]
    paid = price(privacy["price"])
    if set(paid) == {"slots"}:
        _planned(privacy, drawn, where, found)
        return
    own = _without_choices(paid, document.get("choices", ()))
    if times > 1.0:
        own = {part: amount / int(times) for part, amount in own.items()}
    calibrated = document["noise"].get("calibrated", "tight")
    why = shortfall(drawn, own)
    if not why:
        found.holds(f"{where}: {drawn.law} noise of this scale costs no more than the {show(own)} that were paid for it")
    elif calibrated != "tight" and set(paid) == {"epsilon", "delta"}:
        found.believe(f"{where}: the advanced composition of Laplace noise that a paper's scale rests on")
    else:
        found.wrong(f"{where}: the scale of its noise is too small: {why}")


def _without_choices(paid: Price, choices: Iterable[Mapping[str, Any]]) -> Price:
    """What was paid for the noise: private choices are a part of the price of a window."""
    own = dict(paid)
    for choice in choices:
        for what in choice.values():
            epsilon = price(what["price"])["epsilon"]
            if "rho" in own:
                own["rho"] -= type(epsilon)(rho_of_pure(float(epsilon)))
            else:
                own["epsilon"] -= epsilon
    if any(amount <= 0 for name, amount in own.items() if name != "delta"):
        raise SynopsisError("its private choices cost all of its price")
    return own


def _planned(privacy: Mapping[str, Any], drawn: Noise, where: str, found: Findings) -> None:
    """All windows of a plan with this noise alone must be within what the plan implies."""
    windows = max(int(price(block["total"])["slots"]) for block in privacy["blocks"])
    implied = price(privacy["implies"])
    epsilon, delta = float(implied["epsilon"]), float(implied["delta"])
    if drawn.law == "discrete gaussian":
        needed = gaussian_curve(drawn.ratio * windows**0.5, epsilon)
        if needed > delta * (1.0 + 1e-9):
            found.wrong(
                f"{where}: {windows} windows with this noise have a delta of {needed:.3g} at epsilon {epsilon:g}, not {delta:g}"
            )
            return
        found.holds(f"{where}: {windows} windows with this noise alone are within epsilon {epsilon:g} and delta {delta:g}")
    elif windows * drawn.ratio <= epsilon:
        found.holds(f"{where}: {windows} windows with this noise alone are within epsilon {epsilon:g}")
    else:
        found.believe(f"{where}: the privacy-loss distribution of {windows} windows with this noise")
    found.believe(f"{where}: what other releases of its plan add")


def _always(found: Findings) -> None:
    found.believe(
        "that the program computed the functions that it describes, of records that it bounded and capped as its pages say"
    )
    found.believe("that the noise was drawn from its law, from secret random numbers, once for every window")
    found.believe(
        "that nothing else was published of the same records, and that rows of the input stand for what the unit says"
    )
