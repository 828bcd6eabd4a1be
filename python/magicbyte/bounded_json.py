"""JSON from others, whose values take bounded memory: an empty list of two bytes takes 72 in Python."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

__all__ = ["MAX_VALUES", "loads"]

MAX_VALUES = 1_000_000
"""Texts, and other values and keys, of a document; these take up to 250 bytes each, besides their text."""

# Possessive: it keeps no places to go back to.
_TEXT = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
_MARKS = b",[{:"


def loads(data: bytes | str, objects: Callable[[list[tuple[str, Any]]], Any] = dict) -> Any:
    """Reads a document.

    Args:
        data: its text.
        objects: makes an object of its names and values; by default, of several values of a name the last one
            counts.

    Raises:
        ValueError: if it is not JSON, or has more than `MAX_VALUES` values.
        RecursionError: if it is nested too deeply.

    """
    if _has_too_many_values(data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data):
        raise ValueError(f"it has more than {MAX_VALUES:,} values")
    return json.loads(data) if objects is dict else json.loads(data, object_pairs_hook=objects)


def _has_too_many_values(data: bytes) -> bool:
    """Counts texts, and the marks before other values."""
    if len(data) <= MAX_VALUES:
        return False
    texts = marks = end = 0
    while True:
        quote = data.find(b'"', end)
        marks += sum(data.count(mark, end, quote if quote >= 0 else None) for mark in _MARKS)
        if quote < 0 or max(texts, marks) > MAX_VALUES:
            return max(texts, marks) > MAX_VALUES
        texts += 1
        text = _TEXT.match(data, quote)
        assert text is not None
        end = text.end()
