"""Recomputes from synopses alone what they promise: written from docs/proofs and clients/FORMAT.md."""

from .report import Report
from .verify import verify

__all__ = ["Report", "verify"]
