"""The costs of batches: JSON in, JSON out, with the types of `magicbyte.lab`."""

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
    """Writes a window of batches with each layout, and optionally with a zstd dictionary: a Window.

    The window begins at `position` in the first of adjacent Chunks; it has `window_bytes` decompressed.
    A layout is (codec, level, maximum size of a batch before compression).
    """
