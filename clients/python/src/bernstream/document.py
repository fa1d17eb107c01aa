"""The document of a synopsis: parsed from JSON, and frozen."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Union

from .errors import SynopsisError

Text = Union[str, bytes, bytearray, memoryview]


def parse(source: Text | Mapping[str, Any]) -> dict[str, Any]:
    """Parses a document from its text, or copies one."""
    try:
        found = thaw(source) if isinstance(source, Mapping) else json.loads(_text(source), parse_constant=_no_number)
    except RecursionError:
        raise SynopsisError("not a synopsis: it is nested too deeply") from None
    except ValueError as error:
        raise SynopsisError(f"not a synopsis: it is not a synopsis written as JSON: {error}") from None
    if not isinstance(found, dict):
        raise SynopsisError("not a synopsis: the document is not an object")
    return found


def _text(source: Text) -> str:
    if isinstance(source, str):
        return source
    if isinstance(source, (bytes, bytearray, memoryview)):
        return bytes(source).decode("utf-8")
    raise TypeError(f"a synopsis as JSON is a str, bytes or a mapping, not {type(source).__name__}")


def _no_number(word: str) -> float:
    raise ValueError(f"{word} is not a number")


def thaw(found: Any) -> Any:
    """Plain dicts and lists."""
    if isinstance(found, Mapping):
        return {name: thaw(value) for name, value in found.items()}
    return [thaw(value) for value in found] if isinstance(found, (list, tuple)) else found


def freeze(found: Any) -> Any:
    """A read-only copy."""
    if isinstance(found, dict):
        return MappingProxyType({name: freeze(value) for name, value in found.items()})
    return tuple(freeze(value) for value in found) if isinstance(found, list) else found
