"""The steps of merging the copies of a partition: JSON in, JSON out, with the shapes of `magicbyte.model`."""

from collections.abc import Sequence
from os import PathLike

def align_copies(
    listings: Sequence[str],
    plans: Sequence[str],
    *,
    cleaned_until: int = ...,
    max_decompressed_bytes: int = ...,
) -> str:
    """Reads all copies of a partition once, side by side, and notes which of them have the same batches: an
    Alignment. `listings` and `plans` are those of the copies, in the same order.

    Batches before the offset `cleaned_until` are not compared, since compaction leaves other batches in each
    copy. The plans are for all offsets.

    Cost: reads all bytes and checks all CRCs; decodes no records of magic 2. Memory: a block or the largest
    batch of each copy, and the result, which grows with damage and differences.

    Raises ValueError for more than 64 copies, OSError if a store fails. Damage is a part of the result.
    """

def plan_merge(
    alignment: str,
    listings: Sequence[str],
    plans: Sequence[str],
    *,
    leader: int | None = None,
    cleaned_until: int = ...,
) -> str:
    """Plans the log that the aligned copies add up to: a MergePlan. Reads no file.

    `leader` is the place of the copy that leads; by default, it is the copy whose last batch has the highest
    leader epoch and offset. One plan more than listings is that of the repairs.

    Raises ValueError if the alignment is not that of these copies.
    """

def repair_holes(
    alignment: str,
    merged: str,
    plans: Sequence[str],
    directory: str | PathLike[str],
    *,
    max_decompressed_bytes: int = ...,
) -> int:
    """Repairs damaged batches at offsets that no copy has, if a CRC proves it; returns their number.

    Each is written to `directory` as a segment named by its first offset. `merged` is the MergePlan.

    Raises OSError if a file cannot be read or written.
    """

def join_alignments(alignment: str, repairs: str) -> str:
    """Adds the Alignment of the repairs, as one more copy."""
