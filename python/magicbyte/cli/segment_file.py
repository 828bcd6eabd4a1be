"""Reading one segment file as it lies there, damage included."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from magicbyte import _core

__all__ = ["Batch", "batches"]

Batch: TypeAlias = "_core.RecordBatch | _core.LegacyBatch"

_BLOCK_BYTES = 16 << 20


def batches(path: str, max_decompressed_bytes: int) -> Iterator[tuple[int, Batch]]:
    """Yields each batch with its position in the file, reading it block by block."""
    start, size = 0, _BLOCK_BYTES
    with open(path, "rb") as file:
        while True:
            file.seek(start)
            block = file.read(size)
            # A wrong CRC is shown as `isvalid: false`, and the records all the same.
            framed = _core.read_batches(
                block, check_crcs=False, max_decompressed_bytes=max_decompressed_bytes
            )
            for batch in framed:
                yield start + batch.position, batch
            if len(block) < size:
                return
            consumed = len(block) - framed.remaining
            start += consumed
            # A batch that is larger than the block is read as a whole.
            size = _BLOCK_BYTES if consumed else size + max(framed.needed, _BLOCK_BYTES)
