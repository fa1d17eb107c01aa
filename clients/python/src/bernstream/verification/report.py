"""What a verification found, in words."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Report:
    """What was recomputed and holds, what had to be believed, and what is wrong. True where nothing is wrong."""

    #: What was recomputed and holds.
    verified: tuple[str, ...]
    #: What the description alone cannot show.
    believed: tuple[str, ...]
    #: What is wrong, and where.
    faults: tuple[str, ...]

    def __bool__(self) -> bool:
        return not self.faults

    def __str__(self) -> str:
        parts = [("WRONG", self.faults), ("verified", self.verified), ("believed", self.believed)]
        return "\n".join(f"{name}:\n" + "".join(f"  - {line}\n" for line in lines) for name, lines in parts if lines)


@dataclass
class Findings:
    """Collects findings: the same words about many synopses are said once."""

    verified: dict[str, None] = field(default_factory=dict)
    believed: dict[str, None] = field(default_factory=dict)
    faults: dict[str, None] = field(default_factory=dict)

    def holds(self, words: str) -> None:
        self.verified.setdefault(words)

    def believe(self, words: str) -> None:
        self.believed.setdefault(words)

    def wrong(self, words: str) -> None:
        self.faults.setdefault(words)

    def report(self) -> Report:
        def lines(found: Iterable[str]) -> tuple[str, ...]:
            return tuple(found)

        return Report(lines(self.verified), lines(self.believed), lines(self.faults))
