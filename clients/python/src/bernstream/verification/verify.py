"""Verifies synopses: sensitivity, scale, composition and what was spent."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Optional, Union

from ..description import check as checked
from ..document import thaw
from ..errors import SynopsisError
from ..found_keys import FoundKeys
from ..synopsis import Synopsis, read
from . import sensitivity
from .composition import Books, check_blocks, check_implied, check_overlaps, panes_of_a_unit
from .cost import NORMS, Noise, advanced, gaussian_curve, shortfall
from .declared import Declared, Fresh
from .export import Export
from .found_tables import FoundTables, check_rule, rule_of, selection_price
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
    lists: dict[tuple[str, str], FoundTables] = {}
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
            book = books.setdefault(entry["id"], Books(document["pipeline"], entry["id"]))
            book.add(document, content, f"{where}, row {entry['sequence']}", found)
            if rule_of(about := checked(document)) is not None:
                lists.setdefault((entry["id"], where), FoundTables(where)).add(about, document, synopsis.values)
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
    check_overlaps(books.values(), found)
    for tables in lists.values():
        tables.close(found)
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
    check_rule(about, document, price(privacy["price"]), where, found)
    if "sensitivity" not in document:
        found.believe(
            f"{where}: its sensitivity and the scale of its noise, which a synopsis of an older program does not derive"
        )
        return
    rule, count = rule_of(about), len(synopsis.values)
    if rule is not None and about.counted is not None:
        # The keys of a window are as many as it has, and a unit changes no more than it may have.
        count = min(count, about.counted.max_keys)
    declared, noise = Declared.read(document, count), document["noise"]
    if declared.norm != NORMS[noise["law"]]:
        found.wrong(f"{where}: {noise['law']} noise hides a change in the {NORMS[noise['law']]}, not in the {declared.norm}")
        return
    sensitivity.check(about, document, declared, where, found)
    fresh = declared.fresh
    if fresh is None and (document.get("panes") or {}).get("step") is not None:
        found.believe(f"{where}: the noise of a sum over windows, which its description does not derive")
        return
    scale = noise["scale"] if fresh is None else fresh.scale
    if fresh is None and not sensitivity.is_multiple(scale, noise["grid"]):
        found.wrong(f"{where}: the scale of its noise is not a multiple of 16 grid units")
    drawn = Noise(
        law=noise["law"],
        scale=scale / noise["grid"],
        change=declared.units * (1.0 if fresh is None else fresh.norm_squared**0.5),
        values=len(synopsis.values),
        touched=declared.values,
    )
    if fresh is not None and fresh.nodes is None:
        found.believe(
            f"{where}: the norm of the filter that correlates the noise of its sums, {fresh.norm_squared:.6g} squared"
        )
    elif fresh is not None:
        found.believe(f"{where}: in how many draws each window of its sums is, {fresh.nodes}")
    _scale(document, drawn, fresh, rule, where, found)


def _scale(
    document: Mapping[str, Any],
    drawn: Noise,
    fresh: Optional[Fresh],
    rule: Optional[FoundKeys],
    where: str,
    found: Findings,
) -> None:
    privacy = document["privacy"]
    paid = price(privacy["price"])
    if set(paid) == {"slots"}:
        _planned(privacy, drawn, where, found)
        return
    own = _without_choices(paid, document.get("choices", ()))
    if rule is not None and set(own) == {"epsilon", "delta"}:
        own = selection_price(own, rule)
    panes = 1
    if fresh is not None and fresh.nodes != 1:
        # Each pane is in several draws, or in all that follow: a unit in several panes moves one draw by all of its changes.
        if (several := panes_of_a_unit(document)) is None:
            found.believe(f"{where}: that its noise is enough for a user in several of the windows that a sum is over")
        panes = several or 1
    draws = 1 if fresh is None else fresh.nodes or 1
    each = {part: amount / draws for part, amount in own.items()}
    together = replace(drawn, change=drawn.change * panes)
    why = shortfall(together, {part: amount * panes for part, amount in each.items()})
    is_paper = rule is None and _is_paper(document, drawn)
    if why and is_paper and advanced(drawn, float(own["delta"])) <= float(own["epsilon"]) * (1.0 + 1e-9):
        why = ""
    if why:
        users = f" for a user in {panes} windows" if panes > 1 else ""
        found.wrong(f"{where}: the scale of its noise is too small{users}: {why}")
    else:
        found.holds(f"{where}: {drawn.law} noise of this scale costs no more than the {show(each)} that were paid for it")


def _is_paper(document: Mapping[str, Any], drawn: Noise) -> bool:
    """Whether its scale is that of a paper, for Laplace noise with a delta: docs/proofs/noise.md."""
    is_tight = document["noise"].get("calibrated", "tight") == "tight"
    return not is_tight and drawn.law == "discrete laplace" and set(price(document["privacy"]["price"])) == {"epsilon", "delta"}


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
    found.believe("that what synopses promise in words is what was verified")
    found.believe(
        "that nothing else was published of the same records, and that rows of the input stand for what the unit says"
    )
