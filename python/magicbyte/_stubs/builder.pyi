"""Building batches."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Self, final

from magicbyte._stubs.records import Record
from typing_extensions import Buffer

_Payload = str | Buffer | None
_Time = int | datetime
_Headers = Mapping[str, _Payload] | Iterable[tuple[str | Buffer, _Payload]]
_RecordTuple = (
    tuple[int | None, _Time, _Payload, _Payload]
    | tuple[int | None, _Time, _Payload, _Payload, _Headers | None]
)

@final
class RecordsBuilder:
    """Builds one batch after another, reusing contexts and buffers.

    Uncompressed and snappy batches are byte for byte what Kafka writes for the same records; with other
    codecs they hold frames that Kafka reads. Keys, values and header values are `bytes`, which is
    fastest, any C-contiguous buffer, a str, which is written as UTF-8, or None for null.
    Times are milliseconds since 1970 (an int is fastest), or `datetime` with a time zone.

    Args:
        magic: 2, or 1 or 0: then one message for each record, or one wrapper if compressed.
        compression: the codec or its name, such as "zstd", which needs magic 2.
        level: gzip -1 or 1 to 9, zstd -131072 to 22, lz4 1 to 17, where 9 is Kafka's fast compressor and
            all others are high compression; None for Kafka's default.
        producer_id: an idempotent producer's id, -1 for none; with `producer_epoch` and
            `base_sequence`, which advances with each batch built (-1 in control batches).
        is_transactional: the batch is part of a transaction of its producer.
        is_control: the batch holds control records, whose keys are checked.
        partition_leader_epoch: epoch of the leader that appends the batch, -1 for none.
        delete_horizon_ms: the time (ms) from which tombstones or the marker may be removed.
        timestamp_type: follows from `magic` and `log_append_time`; an error if it contradicts them.
        log_append_time: the broker's time (ms), which replaces the records' own timestamps.
        base_offset: offset of the first batch, if that is before its first record.
        max_size_in_bytes: the maximum size of a batch; the size of a compressed batch is estimated. As in
            Kafka, the first record is taken whatever its size.

    Raises:
        Error: for a combination of options that Kafka does not allow (`kind` is "invalid_options"), or its
            subclasses UnsupportedMagicError and UnsupportedCompressionError.

    """

    def __new__(
        cls,
        magic: int = 2,
        compression: int | str = "none",
        level: int | None = None,
        *,
        producer_id: int = -1,
        producer_epoch: int = -1,
        base_sequence: int = -1,
        is_transactional: bool = False,
        is_control: bool = False,
        partition_leader_epoch: int = -1,
        delete_horizon_ms: _Time | None = None,
        timestamp_type: int | None = None,
        log_append_time: _Time | None = None,
        base_offset: int | None = None,
        max_size_in_bytes: int | None = None,
    ) -> Self: ...
    def append(
        self,
        offset: int | None,
        timestamp: _Time,
        key: _Payload = None,
        value: _Payload = None,
        headers: _Headers | None = None,
    ) -> None:
        """Appends one record with its offset (None for `next_offset`) and its timestamp (-1 for none).

        Offsets must increase, within 2**31 - 1 of the base; gaps are preserved. Headers are a mapping, or
        pairs of key and value. A header key that is a str is written as UTF-8, with surrogate escapes as the
        bytes they stand for.

        Raises InvalidRecordError or LimitExceededError with `record_index` and `field`, and leaves the
        batch as it was.
        """
    def try_append(
        self,
        offset: int | None,
        timestamp: _Time,
        key: _Payload = None,
        value: _Payload = None,
        headers: _Headers | None = None,
    ) -> bool:
        """Appends one record as `append` does, if the batch has room for it as `has_room_for` judges.

        If it returns False, the batch is as it was, and has to be built first.

        Raises as `append`, and LimitExceededError only for a record that no batch can hold.
        """
    def append_many(self, records: Iterable[_RecordTuple | Record]) -> None:
        """Appends records, or tuples (offset, timestamp, key, value) with or without headers.

        Raises as `append` for the first refused record; the records before it stay in the batch.
        """
    def append_arrow(self, data: object, *, offset: int = 0, timestamp: _Time = -1) -> int:
        """Appends the rows of Arrow data in one call, without intermediate copies; returns their number.

        Args:
            data: Anything with `__arrow_c_array__` or `__arrow_c_stream__`: a record batch, a table, a
                polars frame. Columns by name: `value` and optionally `key` (binary or text), `offset`
                (int64), `timestamp` (int64 ms or a timestamp; null for none), `headers` (list of key and
                value).
            offset: The offset of the first row, if there is no such column; it increases by one for each row.
            timestamp: The timestamp (ms) of all rows, if there is no such column.

        Raises:
            Error: The errors of `append`; the rows before the refused row stay in the batch.
        """
    def has_room_for(
        self,
        timestamp: _Time,
        key: _Payload = None,
        value: _Payload = None,
        headers: _Headers | None = None,
    ) -> bool:
        """True if the batch has room for this record at `next_offset`, so that `append` takes it.

        As in Kafka, a batch without records has.
        """
    def set_producer_state(
        self, producer_id: int, producer_epoch: int, base_sequence: int, *, is_transactional: bool = False
    ) -> None:
        """Sets the producer of the batch so far and of those after it; -1 is for none.

        As `MemoryRecordsBuilder.setProducerState`. `magicbyte.conversion.set_producer_state` does the same to
        a batch that is built.

        Raises Error (`kind` "invalid_options") for fields that Kafka does not combine, and below magic 2; the
        producer is then unchanged.
        """
    @property
    def base_sequence(self) -> int:
        """The sequence number of the batch's first record, -1 for none; advances with each batch built."""
    @property
    def next_offset(self) -> int:
        """The offset after the last record so far; before the first, `base_offset` or else 0.

        The batches of a produce request start at 0.
        """
    @property
    def estimated_size_in_bytes(self) -> int:
        """Size of the batch if built now: exact if uncompressed, else estimated from the ratio so far."""
    @property
    def record_count(self) -> int:
        """The number of records in the batch so far."""
    def build(self) -> bytes:
        """The finished batch, empty if there are no records; the builder then starts the next one.

        Releases the GIL.
        """
    def empty_batch(self, last_offset: int, max_timestamp: int) -> bytes:
        """The batch that compaction leaves after removing all its records: 61 bytes, magic 2 only.

        It begins at the given `base_offset` and ends at `last_offset` (inclusive).
        """
