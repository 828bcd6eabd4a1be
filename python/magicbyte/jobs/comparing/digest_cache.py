"""The file in which `diff` keeps digests from one run to the next.

It has the digests of chunks by segment. They are used again while the segment is certainly unchanged: an
object of a store by its version, a local file by its inode and its times. After anything else that happened
to a local segment, such as an append, the bytes of each chunk are compared: the cache has a hash of them.

A cache that cannot be read, or was written by another version of magicbyte, is empty.
"""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from magicbyte import _core
from magicbyte.jobs.publish.single_files import check_replaceable
from magicbyte.model import Chunk, Problem
from magicbyte.storage.paths import is_url, local_path
from magicbyte.storage.replacing import replacing

__all__ = [
    "DIGEST_MODULUS",
    "RANGE_OFFSETS",
    "ChunkDigests",
    "DigestCache",
    "Digests",
    "add_digests",
    "check_cache",
    "has_hash",
]

RANGE_OFFSETS = 4096
"""The offsets of a range with a digest."""
DIGEST_MODULUS = 1 << 128
"""Hashes of records are added up modulo this number."""

Digests: TypeAlias = dict[int, tuple[int, int]]
"""The number of records and the sum of their hashes, by range of offsets."""


@dataclass(frozen=True)
class ChunkDigests:
    """The digests of a chunk, and its problems."""

    digests: Digests
    problems: tuple[Problem, ...] = ()
    problems_left_out: int = 0
    bytes_hash: int | None = None
    """The hash of the bytes that were read (`_core.hash_chunk`), if they are those of a local file."""

    @property
    def is_lasting(self) -> bool:
        """True if the bytes were read, so that another look at them would find the same."""
        return all(problem["kind"] not in _UNREAD for problem in self.problems)


_FORMAT = {"format": "magicbyte-diff-2", "magicbyte": _core.__version__, "range_offsets": RANGE_OFFSETS}
"""The digests of another version may be those of other parts of a record, and its rules of damage others."""
_START = '{"format": "magicbyte-diff-'
"""The start of a cache, whatever version of magicbyte has written it."""
_UNREAD = {"file_unreadable", "file_missing", "file_truncated"}
_SETTLED_NS = 2_000_000_000
"""A file that was changed less than this before its times were read may change again at the same time."""


def check_cache(path: str | os.PathLike[str], sources: Sequence[str]) -> None:
    """Raises RefusedError if the path is one of another file than a cache, or is among the sources."""
    check_replaceable(os.fspath(path), _START, "a cache of magicbyte diff", sources)


def add_digests(total: Digests, more: Digests) -> None:
    """Adds the digests of other records."""
    for number, (records, digest) in more.items():
        before = total.get(number, (0, 0))
        total[number] = before[0] + records, (before[1] + digest) % DIGEST_MODULUS


class DigestCache:
    """The digests of chunks, by segment and position."""

    def __init__(
        self, path: str | os.PathLike[str] | None, max_decompressed_bytes: int, *, with_control: bool = True
    ) -> None:
        """Reads the file, if there is one. `with_control` says whether digests have control records."""
        self._path = None if path is None else os.fspath(path)
        self._limit = max_decompressed_bytes
        self._with_control = with_control
        self._before: dict[str, Any] = {}
        self._now: dict[str, Any] = {}
        self._of_run: dict[str, tuple[Chunk, ChunkDigests]] = {}
        if self._path is not None and os.path.isfile(self._path):
            self._before = _read(self._path)

    @property
    def is_kept(self) -> bool:
        """True if there is a file for the digests of this run."""
        return self._path is not None

    def find(self, chunk: Chunk) -> ChunkDigests | None:
        """The digests of the chunk at this place, which may have had other bytes: see `is_unchanged`."""
        kept = self._before.get(chunk["path"], {"chunks": {}})["chunks"].get(self._key(chunk))
        if kept is None:
            return None
        return ChunkDigests(
            {number: (records, int(digest, 16)) for number, records, digest in kept["digests"]},
            tuple(kept["problems"]),
            kept["problems_left_out"],
            None if kept["bytes_hash"] is None else int(kept["bytes_hash"], 16),
        )

    def is_unchanged(self, chunk: Chunk) -> bool:
        """True if nothing has changed the segment since its digests were made."""
        identity = self._segment(chunk)["identity"]
        return identity is not None and bool(self._before[chunk["path"]]["identity"] == identity)

    def find_twin(self, chunk: Chunk) -> tuple[Chunk, ChunkDigests] | None:
        """A chunk of the same place in another local file, of which this run has the digests: they hold for
        this one if it has the same bytes, as replicas do.
        """
        twin = self._of_run.get(self._place(chunk))
        return twin if twin is not None and twin[0]["path"] != chunk["path"] and has_hash(chunk) else None

    def _place(self, chunk: Chunk) -> str:
        return f"{chunk['topic']} {chunk['partition']} {chunk['segment']} {self._key(chunk)}"

    def keep(self, chunk: Chunk, found: ChunkDigests) -> None:
        """Keeps the digests of a chunk that was read or compared after it was looked for."""
        if has_hash(chunk) and not found.problems:
            self._of_run[self._place(chunk)] = chunk, found
        if self.is_kept and found.is_lasting:
            self._segment(chunk)["chunks"][self._key(chunk)] = {
                "digests": [
                    [number, records, f"{digest:032x}"] for number, (records, digest) in found.digests.items()
                ],
                "problems": found.problems,
                "problems_left_out": found.problems_left_out,
                "bytes_hash": None if found.bytes_hash is None else f"{found.bytes_hash:032x}",
            }

    def save(self) -> None:
        """Replaces the file. Segments that were not compared stay in it."""
        if self._path is None:
            return
        document = {**_FORMAT, "segments": {**self._before, **self._now}}
        with replacing(self._path) as file:
            json.dump(document, file)

    def examine(self, chunks: Iterable[Chunk]) -> None:
        """Notes what the files of the chunks are before they are read, so that later changes are noticed."""
        for chunk in chunks if self.is_kept else ():
            self._segment(chunk)

    def _segment(self, chunk: Chunk) -> dict[str, Any]:
        path = chunk["path"]
        if path not in self._now:
            self._now[path] = {"identity": _identity(chunk), "chunks": {}}
        return cast(dict[str, Any], self._now[path])

    def _key(self, chunk: Chunk) -> str:
        """The place of a chunk, and whatever decides which batches are good and which records count."""
        bounds = (chunk["start"], chunk["end"], chunk["expected_offset"], chunk["max_offset"])
        others = (chunk["next_offset"], chunk["start_offset"], chunk["log_start_offset"], self._limit)
        # The records of a reader of committed records.
        selected = (chunk["end_offset"], chunk["aborted"], self._with_control)
        return " ".join(map(str, (*bounds, *others, *(selected if selected != (None, [], True) else ()))))


def _read(path: str) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        segments = document.pop("segments")
        return (
            {name: kept for name, kept in segments.items() if _is_well_formed(kept)}
            if document == _FORMAT
            else {}
        )
    except (OSError, ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return {}


def _is_well_formed(kept: Any) -> bool:
    return isinstance(kept["identity"], str | None) and all(map(_is_chunk, kept["chunks"].values()))


def _is_chunk(kept: Any) -> bool:
    problems, bytes_hash = kept["problems"], kept["bytes_hash"]
    return (
        all(
            type(number) is int and type(records) is int and 0 <= int(digest, 16) < DIGEST_MODULUS
            for number, records, digest in kept["digests"]
        )
        and isinstance(problems, list)
        and all(isinstance(one, dict) and one.keys() == Problem.__annotations__.keys() for one in problems)
        and isinstance(kept["problems_left_out"], int)
        and (bytes_hash is None or 0 <= int(bytes_hash, 16) < DIGEST_MODULUS)
    )


def has_hash(chunk: Chunk) -> bool:
    """True if a chunk has bytes of a local file, rather than fetched, restored or decompressed ones."""
    return isinstance(chunk["version"], str) and chunk["version"].startswith("inode ")


def _identity(chunk: Chunk) -> str | None:
    """Text that changes whenever the segment does; None if the segment may change without it."""
    file = None if is_url(chunk["path"]) else _file_of(local_path(chunk["path"]))
    if file is None:
        return None if chunk["version"] is None else f"{chunk['version']} {chunk['size']}"
    # Anyone can set back the time of the modification, but not the time of the change.
    if max(file.st_mtime_ns, file.st_ctime_ns) + _SETTLED_NS >= time.time_ns():
        return None
    fields = (file.st_dev, file.st_ino, file.st_size, file.st_mtime_ns, file.st_ctime_ns)
    return " ".join(map(str, fields))


def _file_of(path: str) -> os.stat_result | None:
    """The file at a path, or the archive that the path leads into."""
    while True:
        try:
            file = os.stat(path)
            return file if stat.S_ISREG(file.st_mode) else None
        except OSError:
            above = os.path.dirname(path)
        if above == path:
            return None
        path = above
