"""Conversions between magics, codecs and batch sizes: used by `magicbyte.conversion`."""

from typing import Self, final

from magicbyte.conversion import Losses
from typing_extensions import Buffer

@final
class Converter:
    """Converts any number of inputs, reusing codec contexts and buffers.

    Every method takes complete batches, one after another, and returns all of them as new `bytes`, or
    raises an error that names the byte, the batch and the record. Releases the GIL; concurrent calls wait
    for each other.

    Args:
        compression: the codec to write; None keeps each batch's, at Kafka's default level.
        level: of `compression`, as in `RecordsBuilder`; None for Kafka's default.
        max_decompressed_bytes: the limit for one batch after decompression.

    Raises:
        UnsupportedCompressionError: for a codec or level that cannot be written.
        Error: for a level without a codec (`kind` is "invalid_options").

    """

    def __new__(
        cls,
        compression: int | str | None = None,
        level: int | None = None,
        *,
        max_decompressed_bytes: int = ...,
    ) -> Self: ...
    def up_convert(self, data: Buffer) -> bytes:
        """Rewrites every batch as magic 2, by the rules of Kafka 4's cleaner, without dropping anything.

        A compressed wrapper becomes one batch, and so does an uncompressed message. Magic 0 has no
        timestamps, so they become -1. Batches of magic 2 change only their codec.
        """
    def down_convert(self, data: Buffer, magic: int) -> tuple[bytes, Losses]:
        """Rewrites every batch as magic 0 or 1, as brokers up to 3.9 did (`RecordsUtil.downConvert`).

        Drops control batches, batches without records, headers, producers and transactions, as counted by
        the losses. A batch whose magic is not larger changes only its codec.

        Raises UnsupportedCompressionError where zstd would be written.
        """
    def recompress(self, data: Buffer) -> bytes:
        """Recompresses the records of every batch as bytes, leaving the rest of the batch unchanged.

        Compressing an uncompressed batch and decompressing it again yields the same bytes. Without a codec
        a compressed message of magic 0 or 1 becomes its inner messages; with one, a single message gets a
        wrapper.
        """
    def merge(self, data: Buffer) -> bytes:
        """Merges consecutive batches of magic 2 into one, with the converter's codec or the first batch's.

        Raises Error (`kind` "invalid_options") for batches that cannot be merged: with different flags,
        producers, leader epochs, append times or delete horizons, a gap in a producer's sequences, control
        batches, batches without records.
        """
    def split(self, data: Buffer, max_size_in_bytes: int) -> bytes:
        """Splits every batch of magic 2 into batches of at most this size before compression.

        A larger record gets a batch of its own. Control batches stay as they are. Sequences continue.
        """
    def rebatch(self, data: Buffer, max_size_in_bytes: int) -> bytes:
        """Packs records tightly into batches of magic 2 of at most this size before compression.

        Only batches without a producer, transaction or delete horizon are packed; all others are converted
        in place, as by `up_convert`.
        """
    def assign_offsets(self, batch: Buffer, base_offset: int) -> bytes:
        """Rewrites one batch of magic 0 with offsets from `base_offset` on, as brokers did for producers.

        Offsets inside a wrapper are absolute, so it is recompressed. For any other batch use
        `set_last_offset`.
        """

def set_last_offset(batch: Buffer, last_offset: int) -> bytes:
    """See `magicbyte.conversion.set_last_offset`."""

def set_partition_leader_epoch(data: Buffer, epoch: int) -> bytes:
    """See `magicbyte.conversion.set_partition_leader_epoch`."""

def set_max_timestamp(data: Buffer, timestamp_type: int, max_timestamp: int) -> bytes:
    """See `magicbyte.conversion.set_max_timestamp`."""

def set_producer_state(
    batch: Buffer, producer_id: int, producer_epoch: int, base_sequence: int, is_transactional: bool
) -> bytes:
    """See `magicbyte.conversion.set_producer_state`."""
