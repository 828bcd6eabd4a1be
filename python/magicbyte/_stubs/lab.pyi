"""What batches cost: JSON in, JSON out, with the shapes of `magicbyte.lab`."""

from collections.abc import Sequence

from typing_extensions import Buffer

def chunk_cost(chunk: str, *, max_decompressed_bytes: int = ...) -> str:
    """Decodes every record of a Chunk: a ChunkCost."""

def cost_report(chunks: Sequence[str]) -> str:
    """Adds up the ChunkCosts: a CostReport."""

def batches_cost(batches: Buffer, *, max_decompressed_bytes: int = ...) -> str:
    """Decodes every record of batches one after the other: a CostReport."""

def try_layouts(
    chunks: Sequence[str],
    position: int,
    layouts: Sequence[tuple[int, int | None, int | None]],
    *,
    window_bytes: int,
    max_decompressed_bytes: int = ...,
    dictionary: bool = False,
) -> str:
    """Writes the batches from `position` in the first of adjacent Chunks on, `window_bytes` after
    decompression, with each
    layout (codec, level, largest batch before compression), and with a zstd dictionary if asked: a Window."""
