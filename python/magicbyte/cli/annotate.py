"""`dump --annotate`: the bytes of batches, each field with its meaning."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Sequence
from typing import BinaryIO

from magicbyte.cli.exits import CLEAN, PROBLEMS
from magicbyte.cli.segment_file import open_segment
from magicbyte.cli.terminal import print_data, print_problem
from magicbyte.cli.trace import Section, Span, trace_batch
from magicbyte.errors import Error

__all__ = ["annotate"]

_HEADER = struct.Struct(">qiibIhi")
_OVERHEAD = 12
_MAGIC_AT = 16
_LINE = 8
_SHOWN = 64


def annotate(
    files: Sequence[str], *, offset: int | None, limit: int | None, max_decompressed_bytes: int
) -> int:
    """Prints batches as traces, from the one that holds `offset` on; returns the exit code."""
    problems, left = 0, limit
    for path in files:
        try:
            for position, data in _batches(path, offset, max_decompressed_bytes):
                if left == 0:
                    return PROBLEMS if problems else CLEAN
                left = None if left is None else left - 1
                problems += not _print_batch(path, position, data, max_decompressed_bytes)
        except Error as error:
            problems += 1
            print_problem(f"magicbyte: {error}")
    return PROBLEMS if problems else CLEAN


def _batches(path: str, offset: int | None, most: int) -> Iterator[tuple[int, bytes]]:
    """Yields position and bytes of each batch by its length alone; at last what is too short for one.

    No more than `most` bytes of one are read, whatever its length says.
    """
    position = 0
    with open_segment(path) as file:
        size = os.fstat(file.fileno()).st_size
        while position < size:
            end, last_offset = _bounds(file, position)
            if end is None or end > size:
                end = size
            if offset is None or last_offset is None or last_offset >= offset:
                file.seek(position)
                yield position, file.read(min(end - position, most))
            position = end


def _bounds(file: BinaryIO, position: int) -> tuple[int | None, int | None]:
    """Where the batch ends and its last offset, as far as its header says so."""
    file.seek(position)
    header = file.read(_HEADER.size)
    if len(header) <= _MAGIC_AT:
        return None, None
    # The smallest message of magic 0 ends before the last of these fields.
    base, length, _, magic, _, _, delta = _HEADER.unpack(header.ljust(_HEADER.size, b"\0"))
    last_offset = base + delta if magic == 2 else base
    return (position + _OVERHEAD + length if length > 0 else None), last_offset


def _print_batch(path: str, position: int, data: bytes, max_decompressed_bytes: int) -> bool:
    """Prints as far as the bytes make sense, then what is wrong; returns whether nothing is."""
    print_data(f"{path}: batch at byte {position}, {len(data)} bytes")
    print_data(f"{'offset':>8}  {'bytes':<{3 * _LINE - 1}}  {'field':<26}  meaning")
    try:
        for part in trace_batch(data, max_decompressed_bytes):
            _print_part(part)
    except Error as error:
        print_data(f"error: {error}", "")
        print_problem(f"magicbyte: {path}, batch at byte {position}: {error}")
        return False
    print_data("")
    return True


def _print_part(part: Span | Section) -> None:
    if isinstance(part, Section):
        print_data(f"--- {part.title}")
        return
    shown = part.data[:_SHOWN]
    lines = [shown[start : start + _LINE].hex(" ") for start in range(0, len(shown), _LINE)] or [""]
    print_data(f"{part.start:>8}  {lines[0]:<{3 * _LINE - 1}}  {part.name:<26}  {part.meaning}".rstrip())
    for number, line in enumerate(lines[1:], 1):
        print_data(f"{part.start + number * _LINE:>8}  {line}")
    if len(part.data) > _SHOWN:
        print_data(f"{'':>8}  ... {len(part.data) - _SHOWN} more bytes")
