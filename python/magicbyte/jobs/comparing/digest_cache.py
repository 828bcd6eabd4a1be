"""The file in which `diff` keeps digests from one run to the next.

It has the digests of chunks by segment. They are used again while the segment is the same file: unchanged,
or grown, as by a broker that appends to it. A cache that cannot be read, or has another format, is empty.
"""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from magicbyte.errors import RefusedError
from magicbyte.model import Chunk, Problem

__all__ = ["ChunkDigests", "DigestCache", "Digests", "add_digests"]

Digests: TypeAlias = dict[int, tuple[int, int]]
"""The number of records and the sum of their hashes, by range of offsets."""


@dataclass(frozen=True)
class ChunkDigests:
    """The digests of a chunk, and its problems."""

    digests: Digests
    problems: tuple[Problem, ...] = ()
    problems_left_out: int = 0

    @property
    def is_lasting(self) -> bool:
        """True if the bytes were read, so that another look at them would find the same."""
        return all(problem["kind"] not in _UNREAD for problem in self.problems)


_FORMAT = "magicbyte-diff-1"
_UNREAD = {"file_unreadable", "file_missing", "file_truncated"}
_MODULUS = 1 << 128


def add_digests(total: Digests, more: Digests) -> None:
    """Adds the digests of other records."""
    for number, (records, digest) in more.items():
        before = total.get(number, (0, 0))
        total[number] = before[0] + records, (before[1] + digest) % _MODULUS


class DigestCache:
    """The digests of chunks, by segment and position."""

    def __init__(self, path: str | os.PathLike[str] | None) -> None:
        """Reads the file, if there is one.

        Raises:
            RefusedError: if the path is not that of a regular file.

        """
        self._path = None if path is None else os.fspath(path)
        self._before: dict[str, Any] = {}
        self._now: dict[str, Any] = {}
        if self._path is None or not os.path.lexists(self._path):
            return
        if not os.path.isfile(self._path):
            raise RefusedError(f"{self._path} is not a regular file: choose another cache")
        self._before = _read(self._path)

    def find(self, chunk: Chunk) -> ChunkDigests | None:
        """The digests of a chunk, if its bytes have not changed; they are kept for the next run."""
        kept = self._before.get(chunk["path"])
        if kept is None or not _is_same(kept, chunk):
            return None
        found = kept["chunks"].get(_key(chunk))
        if found is None:
            return None
        self._segment(chunk)["chunks"][_key(chunk)] = found
        return ChunkDigests(
            {number: (records, int(digest, 16)) for number, records, digest in found["digests"]},
            tuple(found["problems"]),
            found["problems_left_out"],
        )

    def keep(self, chunk: Chunk, found: ChunkDigests) -> None:
        """Keeps the digests of a chunk."""
        if found.is_lasting:
            self._segment(chunk)["chunks"][_key(chunk)] = {
                "digests": [
                    [number, records, f"{digest:032x}"] for number, (records, digest) in found.digests.items()
                ],
                "problems": found.problems,
                "problems_left_out": found.problems_left_out,
            }

    def save(self) -> None:
        """Replaces the file. Segments that were not compared stay in it."""
        if self._path is None:
            return
        document = {"format": _FORMAT, "segments": {**self._before, **self._now}}
        directory = os.path.dirname(os.path.abspath(self._path))
        with tempfile.NamedTemporaryFile("w", dir=directory, delete=False, encoding="utf-8") as file:
            json.dump(document, file)
        os.replace(file.name, self._path)

    def _segment(self, chunk: Chunk) -> dict[str, Any]:
        new = {"version": chunk["version"], "size": chunk["size"], "chunks": {}}
        return cast(dict[str, Any], self._now.setdefault(chunk["path"], new))


def _read(path: str) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        segments = document["segments"] if document["format"] == _FORMAT else {}
        return {name: kept for name, kept in segments.items() if _is_well_formed(kept)}
    except (OSError, ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return {}


def _is_well_formed(kept: Any) -> bool:
    return isinstance(kept["size"], int) and all(map(_is_chunk, kept["chunks"].values()))


def _is_chunk(kept: Any) -> bool:
    problems = kept["problems"]
    return (
        all(
            type(number) is int and type(records) is int and 0 <= int(digest, 16) < _MODULUS
            for number, records, digest in kept["digests"]
        )
        and isinstance(problems, list)
        and all(isinstance(one, dict) and one.keys() == Problem.__annotations__.keys() for one in problems)
        and isinstance(kept["problems_left_out"], int)
    )


def _is_same(kept: dict[str, Any], chunk: Chunk) -> bool:
    if kept["version"] == chunk["version"]:
        return kept["version"] is not None and bool(kept["size"] == chunk["size"])
    return _inode(kept["version"]) == _inode(chunk["version"]) is not None and kept["size"] < chunk["size"]


def _inode(version: object) -> str | None:
    """The inode of a local file, from its version (`pin.rs`)."""
    fields = version.split(" ") if isinstance(version, str) else []
    return fields[1] if len(fields) == 4 and fields[0] == "inode" else None


def _key(chunk: Chunk) -> str:
    """The place of a chunk, and what else decides which of its records count."""
    bounds = (chunk["start"], chunk["end"], chunk["expected_offset"], chunk["start_offset"])
    return " ".join(map(str, (*bounds, chunk["log_start_offset"])))
