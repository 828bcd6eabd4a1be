"""SQLite's LIKE and GLOB for any bytes: in blobs, past zero bytes, in time linear in the value.

A pattern is a sequence of fixed-length pieces, separated by wildcards for any text. The first piece matches
at the start of the value, the last at its end, and each of the others at the first possible position after
its predecessor. So there is no backtracking, whatever the value.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

__all__ = ["glob", "like"]

_MAX_PATTERN = 50_000
"""In bytes, SQLite's `SQLITE_MAX_LIKE_PATTERN_LENGTH`."""
_ANY_TEXT = None
_ANY_CHARACTER = "."


def like(pattern: Any, value: Any, escape: Any = "") -> bool | None:
    """SQLite's `value LIKE pattern ESCAPE escape`: `%` is any text, `_` any character, a-z equal A-Z.

    If the pattern is not ASCII, the case of all letters is ignored.
    """
    if pattern is None or value is None or escape is None:
        return None
    pattern, escape = _text(pattern), _text(escape)
    if len(escape) > 1:
        raise ValueError("ESCAPE expression must be a single character")
    pieces = _like_pieces(pattern, escape)
    return pieces is not None and _matches(pieces, _folded(_text(value), ascii_only=pattern.isascii()))


def glob(pattern: Any, value: Any) -> bool | None:
    """SQLite's `value GLOB pattern`: `*` is any text, `?` any character, `[a-z]` or `[^a-z]` one of a set."""
    if pattern is None or value is None:
        return None
    pieces = _glob_pieces(_text(pattern))
    return pieces is not None and _matches(pieces, _text(value))


@dataclass(frozen=True)
class _Piece:
    """The part of a pattern between two wildcards for any text."""

    length: int
    """How many characters it matches."""
    literal: str | None
    """The characters, if it has no wildcards."""
    expression: re.Pattern[str]

    def matches_at(self, value: str, at: int) -> bool:
        if self.literal is not None:
            return value.startswith(self.literal, at)
        return self.expression.match(value, at) is not None

    def find(self, value: str, start: int, end: int) -> int:
        """The first match between two positions, or -1."""
        if self.literal is not None:
            return value.find(self.literal, start, end)
        found = self.expression.search(value, start, end)
        return -1 if found is None else found.start()


def _matches(pieces: Sequence[_Piece], value: str) -> bool:
    first, last = pieces[0], pieces[-1]
    if len(pieces) == 1:
        return len(value) == first.length and first.matches_at(value, 0)
    at, end = first.length, len(value) - last.length
    if at > end or not first.matches_at(value, 0) or not last.matches_at(value, end):
        return False
    for piece in pieces[1:-1]:
        found = piece.find(value, at, end)
        if found < 0:
            return False
        at = found + piece.length
    return True


@lru_cache
def _like_pieces(pattern: str, escape: str) -> tuple[_Piece, ...] | None:
    """The pieces of a LIKE pattern; None if nothing can match it."""
    _check_length(pattern)
    ascii_only = pattern.isascii()
    elements: list[str | None] = []
    characters = iter(pattern)
    for one in characters:
        if one != escape and one in "%_":
            elements.append(_ANY_TEXT if one == "%" else _ANY_CHARACTER)
            continue
        literal = next(characters, None) if one == escape else one
        if literal is None:
            return None
        elements.append(re.escape(_folded(literal, ascii_only=ascii_only)))
    return _pieces(elements)


@lru_cache
def _glob_pieces(pattern: str) -> tuple[_Piece, ...] | None:
    """The pieces of a GLOB pattern; None if nothing can match it."""
    _check_length(pattern)
    elements: list[str | None] = []
    at = 0
    while at < len(pattern):
        one = pattern[at]
        at += 1
        if one == "[":
            # A closing bracket right at the start is a member of the set.
            inverted = pattern.startswith("^", at)
            start = at + inverted
            end = pattern.find("]", start + pattern.startswith("]", start))
            if end < 0:
                return None
            elements.append(_set_expression(pattern[start:end], inverted=inverted))
            at = end + 1
        else:
            elements.append({"*": _ANY_TEXT, "?": _ANY_CHARACTER}.get(one, re.escape(one)))
    return _pieces(elements)


def _set_expression(members: str, *, inverted: bool) -> str:
    out, at = "", 0
    while at < len(members):
        low = high = members[at]
        at += 1
        if members.startswith("-", at) and at + 1 < len(members):
            high = members[at + 1]
            at += 2
        if low <= high:
            out += f"{re.escape(low)}-{re.escape(high)}"
    if not out:
        return _ANY_CHARACTER if inverted else r"(?!)."
    return f"[{'^' if inverted else ''}{out}]"


def _pieces(elements: Sequence[str | None]) -> tuple[_Piece, ...]:
    pieces: list[list[str]] = [[]]
    for element in elements:
        if element is _ANY_TEXT:
            pieces.append([])
        else:
            pieces[-1].append(element)
    # Adjacent wildcards for any text count as one.
    inner = [piece for piece in pieces[1:-1] if piece]
    return tuple(_piece(piece) for piece in (pieces[:1] + inner + pieces[1:][-1:]))


def _piece(elements: Sequence[str]) -> _Piece:
    characters = [_literal(element) for element in elements]
    literal = None if None in characters else "".join(map(str, characters))
    return _Piece(len(elements), literal, re.compile("".join(elements), re.DOTALL))


def _literal(element: str) -> str | None:
    """The character that an element stands for, if it is exactly one."""
    if len(element) == 1:
        return None if element == _ANY_CHARACTER else element
    return element[1] if len(element) == 2 and element[0] == "\\" else None


def _check_length(pattern: str) -> None:
    if len(pattern.encode("utf-8", "surrogateescape")) > _MAX_PATTERN:
        raise ValueError("LIKE or GLOB pattern too complex")


def _text(value: Any) -> str:
    """Any value as text, with bytes that are not UTF-8 as surrogates."""
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else str(value)


def _folded(text: str, *, ascii_only: bool) -> str:
    """The text in lower case, character by character."""
    if ascii_only and not text.isascii():
        return text.encode("utf-8", "surrogateescape").lower().decode("utf-8", "surrogateescape")
    # Letters that would change the length, or depend on their position in a word.
    return text.replace("\u0130", "i").replace("\u03a3", "\u03c3").replace("\u03c2", "\u03c3").lower()
