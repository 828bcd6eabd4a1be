"""The steps of `audit`: headers of batches as columns, and digests of their contents."""

from collections.abc import Sequence
from typing import Self, final

from magicbyte._stubs.arrow import ArrowBatch

@final
class BatchHeaders:
    """The headers of a Segment's batches of magic 2 that have data records, as Arrow batches of 65,536 rows.

    The columns are position and size (bytes), baseOffset and lastOffset (inclusive), count, crc, attributes,
    baseTimestamp and maxTimestamp (ms), producerId, producerEpoch and baseSequence (-1 for none);
    nextSequence, the base sequence of the producer's next batch; follows, which is true if the producer's
    last batch in the segment has this baseSequence as its nextSequence, and the same epoch; and followed,
    which is true if the producer's next batch so follows, and is in the same Arrow batch. Cost: a survey, no
    decompression.
    """

    def __new__(cls, segment: str) -> Self: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> ArrowBatch: ...
    def survey(self) -> str | None:
        """The Survey of the segment, once the iterator is exhausted."""

def digest_contents(
    segment: str, positions: Sequence[int], *, max_decompressed_bytes: int = ...
) -> list[int | None]:
    """Digests the contents of the batches at these positions of a Segment: the 128-bit XXH3 of the key, value
    and headers of each record, in order. Offsets, timestamps, codec and producer make no difference.

    None where there is no batch whose CRC holds and whose records decode within the limit. Raises OSError if
    the file cannot be opened; a file that is missing has no batches.
    """
