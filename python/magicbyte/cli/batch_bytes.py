"""The output of `magicbyte dump --bytes`: the bytes of batches, each field with its meaning."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Sequence
from typing import BinaryIO

from magicbyte import _core
from magicbyte.cli.dump_options import DumpOptions
from magicbyte.cli.exits import CLEAN, PROBLEMS
from magicbyte.cli.selection import Selection
from magicbyte.cli.terminal import plain, print_data, print_problem
from magicbyte.errors import Error
from magicbyte.files.segment import open_segment, reading

__all__ = ["print_bytes"]

_HEADER = struct.Struct(">qiibIhi")
_OVERHEAD = 12
"""Bytes of a batch before those that its length counts: the offset and the length."""
_MAGIC_AT = 16
_BYTES_PER_LINE = 8
_BYTES_SHOWN = 64


def print_bytes(files: Sequence[str], given: DumpOptions) -> int:
    """Prints the batches of segments field by field; returns the exit code.

    The options have no times. `max_records` counts batches.
    """
    code = CLEAN
    left, limit = given.max_records, given.max_decompressed_bytes
    for path in files:
        try:
            for position, data in _batches(path, given, limit):
                if left == 0:
                    return code
                left = None if left is None else left - 1
                layout = _core.BatchLayout(data, max_decompressed_bytes=limit)
                if not _print_batch(path, position, len(data), layout):
                    code = PROBLEMS
        except Error as error:
            code = PROBLEMS
            print_problem(f"magicbyte: {error}")
    return code


def _batches(path: str, selection: Selection, max_bytes: int) -> Iterator[tuple[int, bytes]]:
    """Yields the position and bytes of each batch, framed by its length alone, and any rest of the file.

    Reads at most `max_bytes` of a batch, whatever its length says.
    """
    position = 0
    with open_segment(path) as file:
        with reading(path):
            size = file.seek(0, os.SEEK_END)
        while position < size:
            with reading(path):
                end, offsets = _bounds(file, position)
            if end is None or end > size:
                end = size
            if offsets is None or selection.may_include(*offsets, max_timestamp=0):
                with reading(path):
                    file.seek(position)
                    data = file.read(min(end - position, max_bytes))
                yield position, data
            position = end


def _bounds(file: BinaryIO, position: int) -> tuple[int | None, tuple[int, int] | None]:
    """The end of the batch, and its base offset and last offset; None for what the header lacks."""
    file.seek(position)
    header = file.read(_HEADER.size)
    if len(header) <= _MAGIC_AT:
        return None, None
    # The smallest message of magic 0 is shorter than this header.
    base, length, _, magic, _, _, delta = _HEADER.unpack(header.ljust(_HEADER.size, b"\0"))
    # The header of a compressed wrapper has the last offset alone.
    offsets = (base, base + delta) if magic >= 2 else (0, base)
    return (position + _OVERHEAD + length if length > 0 else None), offsets


def _print_batch(path: str, position: int, size: int, layout: _core.BatchLayout) -> bool:
    """Prints a batch, up to its first error; returns whether there is none."""
    print_data(f"{path}: batch at byte {position}, {size} bytes")
    print_data(f"{'position':>8}  {'bytes':<{3 * _BYTES_PER_LINE - 1}}  {'field':<26}  meaning")
    is_decompressed = False
    try:
        for field in layout:
            if field.is_decompressed and not is_decompressed:
                is_decompressed = True
                payload = f"{layout.payload}: {layout.decompressed_size} bytes"
                print_data(f"--- {payload}; positions count from their start")
            _print_field(field)
    except Error as error:
        print_data(f"error: {error}", "")
        print_problem(f"magicbyte: {path}, batch at byte {position}: {error}")
        return False
    print_data("")
    return True


def _print_field(field: _core.BatchField) -> None:
    shown = field.data[:_BYTES_SHOWN]
    starts = range(0, len(shown), _BYTES_PER_LINE)
    lines = [shown[start : start + _BYTES_PER_LINE].hex(" ") for start in starts] or [""]
    width = 3 * _BYTES_PER_LINE - 1
    print_data(f"{field.start:>8}  {lines[0]:<{width}}  {field.label:<26}  {plain(field.meaning)}".rstrip())
    for number, line in enumerate(lines[1:], 1):
        print_data(f"{field.start + number * _BYTES_PER_LINE:>8}  {line}")
    if len(field.data) > _BYTES_SHOWN:
        print_data(f"{'':>8}  ... {len(field.data) - _BYTES_SHOWN} more bytes")
