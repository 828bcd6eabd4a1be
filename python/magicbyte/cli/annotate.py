"""`magicbyte annotate`"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from typing import BinaryIO

import click

from magicbyte import _core
from magicbyte.cli import options, partition_choice
from magicbyte.cli.batch_layout import Field, Layout, Section, batch_layout
from magicbyte.cli.exits import PROBLEMS
from magicbyte.cli.segment_file import open_segment
from magicbyte.cli.terminal import print_data, print_problem
from magicbyte.errors import Error
from magicbyte.jobs.choice import PartitionChoice

__all__ = ["annotate"]

_HEADER = struct.Struct(">qiibIhi")
_OVERHEAD = 12
"""Bytes of a batch before those that its length counts: the offset and the length."""
_MAGIC_AT = 16
_EXPERIMENTAL, _DELTA_AT, _VARINT = 3, 41, 10
_BYTES_PER_LINE = 8
_BYTES_SHOWN = 64


@click.command(short_help="Print the bytes of batches, each field with its meaning.")
@partition_choice.local_sources
@partition_choice.options()
@click.option(
    "--offset", type=options.OFFSET, metavar="OFFSET", help="Begin with the batch that holds this offset."
)
@click.option(
    "--max-batches",
    type=options.COUNT,
    show_default="1 with --offset, otherwise all",
    metavar="N",
    help="Stop after N batches.",
)
@click.option(
    "--experimental-v3",
    is_flag=True,
    help="Expect batches of the experimental magic 3, which magicbyte.magic3 writes.",
)
@options.max_decompressed_bytes
def annotate(
    sources: tuple[str, ...],
    choice: PartitionChoice,
    offset: int | None,
    max_batches: int | None,
    experimental_v3: bool,
    max_decompressed_bytes: int,
) -> int:
    """Print the bytes of batches field by field: position, bytes, the name of the field, and its meaning.

    SRC is a segment file (.log or .checkpoint) or a directory. Batches of any magic are annotated; the
    decompressed records of a compressed batch follow it. A damaged batch is printed as far as its bytes make
    sense, followed by the error.

    \b
    magicbyte annotate orders-0/ | head -60
    magicbyte annotate orders-0/ --offset 1234                the batch that holds offset 1234
    magicbyte annotate orders-0/00000000000000000000.log --max-batches 3
    magicbyte annotate --experimental-v3 draft.log            what magicbyte.magic3 wrote
    """  # noqa: D301 (click takes the character \b for "leave these lines as they are")
    from magicbyte.cli.sources import files_of, segments_only

    files, code = files_of(segments_only("annotate", sources), choice)
    left = 1 if max_batches is None and offset is not None else max_batches
    for path in files:
        try:
            for position, data in _batches(path, offset, max_decompressed_bytes):
                if left == 0:
                    return code
                left = None if left is None else left - 1
                layout = batch_layout(data, max_decompressed_bytes, experimental_v3=experimental_v3)
                if not _print_batch(path, position, len(data), layout):
                    code = PROBLEMS
        except Error as error:
            code = PROBLEMS
            print_problem(f"magicbyte: {error}")
    return code


def _batches(path: str, offset: int | None, max_bytes: int) -> Iterator[tuple[int, bytes]]:
    """Yields the position and bytes of each batch, framed by its length alone, and any rest of the file.

    Reads at most `max_bytes` of a batch, whatever its length says.
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
                yield position, file.read(min(end - position, max_bytes))
            position = end


def _bounds(file: BinaryIO, position: int) -> tuple[int | None, int | None]:
    """The end of the batch and its last offset; None for a value that the header lacks."""
    file.seek(position)
    header = file.read(_HEADER.size)
    if len(header) <= _MAGIC_AT:
        return None, None
    # The smallest message of magic 0 is shorter than this header.
    base, length, _, magic, _, _, delta = _HEADER.unpack(header.ljust(_HEADER.size, b"\0"))
    if magic == _EXPERIMENTAL:
        # There the delta is a varint, elsewhere.
        file.seek(position + _DELTA_AT)
        delta, _ = _core.decode_varint(file.read(_VARINT).ljust(_VARINT, b"\0"))
    last_offset = base + delta if magic >= 2 else base
    return (position + _OVERHEAD + length if length > 0 else None), last_offset


def _print_batch(path: str, position: int, size: int, layout: Layout) -> bool:
    """Prints a batch, up to its first error; returns whether there is none."""
    print_data(f"{path}: batch at byte {position}, {size} bytes")
    print_data(f"{'position':>8}  {'bytes':<{3 * _BYTES_PER_LINE - 1}}  {'field':<26}  meaning")
    try:
        for part in layout:
            _print_part(part)
    except Error as error:
        print_data(f"error: {error}", "")
        print_problem(f"magicbyte: {path}, batch at byte {position}: {error}")
        return False
    print_data("")
    return True


def _print_part(part: Field | Section) -> None:
    if isinstance(part, Section):
        print_data(f"--- {part.title}")
        return
    shown = part.data[:_BYTES_SHOWN]
    starts = range(0, len(shown), _BYTES_PER_LINE)
    lines = [shown[start : start + _BYTES_PER_LINE].hex(" ") for start in starts] or [""]
    width = 3 * _BYTES_PER_LINE - 1
    print_data(f"{part.start:>8}  {lines[0]:<{width}}  {part.name:<26}  {part.meaning}".rstrip())
    for number, line in enumerate(lines[1:], 1):
        print_data(f"{part.start + number * _BYTES_PER_LINE:>8}  {line}")
    if len(part.data) > _BYTES_SHOWN:
        print_data(f"{'':>8}  ... {len(part.data) - _BYTES_SHOWN} more bytes")
