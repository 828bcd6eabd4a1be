"""Reading one segment file as it is, with its damage."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from io import BufferedReader
from typing import BinaryIO, TypeAlias

from magicbyte import _core
from magicbyte.errors import Error
from magicbyte.storage.location import locate

__all__ = ["Batch", "batches", "open_segment", "reading", "size_of"]

Batch: TypeAlias = "_core.RecordBatch | _core.LegacyBatch"

_BLOCK_BYTES = 16 << 20


@contextmanager
def open_segment(path: str) -> Iterator[BinaryIO | BufferedReader]:
    """Opens a regular file, or the content of a compressed segment, without blocking.

    Raises:
        Error: of kind `file_unreadable`: it cannot be opened.

    """
    with ExitStack() as stack:
        with reading(path):
            file = stack.enter_context(locate(path).open(_BLOCK_BYTES))
        yield file


@contextmanager
def reading(path: str) -> Iterator[None]:
    """For the reads of an open segment.

    Raises:
        Error: of kind `file_unreadable`: it cannot be read.

    """
    try:
        yield
    except OSError as error:
        raise Error(f"{path}: cannot be read: {error.strerror or error}", "file_unreadable") from error


def size_of(path: str) -> int:
    """The size of a segment in bytes; raises as `open_segment` and `reading` do."""
    with open_segment(path) as file, reading(path):
        return file.seek(0, os.SEEK_END)


def batches(path: str, max_decompressed_bytes: int) -> Iterator[tuple[int, Batch]]:
    """Yields each batch with its position in the file, which is read in blocks.

    Raises:
        Error: the bytes cannot be framed, or as `open_segment` and `reading` do.

    """
    start, size = 0, _BLOCK_BYTES
    with open_segment(path) as file:
        while True:
            with reading(path):
                file.seek(start)
                block = file.read(size)
            # A batch with a wrong CRC is shown too, as `isvalid: false`.
            framed = _core.read_batches(
                block,
                check_crcs=False,
                max_decompressed_bytes=max_decompressed_bytes,
                allow_partial=True,
            )
            for batch in framed:
                yield start + batch.position, batch
            if len(block) < size:
                return
            consumed = len(block) - framed.remaining
            start += consumed
            # A batch that is larger than the block: read all of it.
            size = _BLOCK_BYTES if consumed else size + max(framed.needed, _BLOCK_BYTES)
