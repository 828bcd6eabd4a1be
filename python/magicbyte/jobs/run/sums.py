"""Counts and digests of records by partition, which add up in any order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING

from magicbyte import _core
from magicbyte.jobs.run.columns import DIGEST_COLUMN

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "MILLIS",
    "NullTimes",
    "RecordSum",
    "RecordSums",
    "TopicPartition",
    "digest_field",
    "with_digest",
]

MILLIS = "timestampMillis"
"""The column that has timestamps which are null in `timestamp`."""

TopicPartition = tuple[str, int]

_BYTES = 16
_MODULUS = 1 << 8 * _BYTES
_NO_TIMESTAMP_TYPE = -1


@dataclass
class RecordSum:
    """Records of one partition."""

    rows: int = 0
    first_offset: int | None = None
    last_offset: int | None = None
    digest: int = 0
    """See `_core.digest_records`."""

    @property
    def hex_digest(self) -> str:
        """The digest as 32 hexadecimal digits."""
        return f"{self.digest:032x}"

    def add(self, other: RecordSum) -> None:
        """Adds other records of the partition."""
        firsts = [one.first_offset for one in (self, other) if one.first_offset is not None]
        lasts = [one.last_offset for one in (self, other) if one.last_offset is not None]
        self.rows += other.rows
        self.first_offset, self.last_offset = min(firsts, default=None), max(lasts, default=None)
        self.digest = (self.digest + other.digest) % _MODULUS


class RecordSums(dict[TopicPartition, RecordSum]):
    """The sums of partitions; those without records may be absent."""

    def add_rows(self, data: object) -> None:
        """Adds rows of the table `records`, as `_core.digest_records` takes them."""
        for topic, partition, rows, first, last, digest in _core.digest_records(data):
            self._of(topic, partition).add(RecordSum(rows, first, last, digest))

    def add_all(self, others: Iterable[RecordSums]) -> None:
        """Adds the sums of other rows."""
        for sums in others:
            for (topic, partition), one in sums.items():
                self._of(topic, partition).add(one)

    def _of(self, topic: str, partition: int) -> RecordSum:
        return self.setdefault((topic, partition), RecordSum())


@dataclass
class NullTimes:
    """The rows of each partition whose timestamp is null although their record has one, which is out of range
    in microseconds. Their digests do not depend on that timestamp. Records of magic 0 have no timestamp.
    """

    digests: dict[TopicPartition, int] = field(default_factory=dict)
    """Sums of hashes of offset and milliseconds."""
    first: dict[TopicPartition, int] = field(default_factory=dict)
    """The smallest offset of such a row."""
    unknown: dict[TopicPartition, int] = field(default_factory=dict)
    """The number of these rows that have no milliseconds either."""

    def add_rows(self, batch: pa.RecordBatch) -> None:
        """Adds rows of the table `records`."""
        import pyarrow.compute as pc

        times = batch.column("timestamp")
        if not times.null_count:
            return
        has_type = pc.not_equal(batch.column("timestampType"), _NO_TIMESTAMP_TYPE)
        found = batch.filter(pc.and_(times.is_null(), has_type))
        columns = [name for name in ("topic", "partition", "offset", MILLIS) if name in found.schema.names]
        for row in found.select(columns).to_pylist():
            place, offset, millis = (row["topic"], row["partition"]), row["offset"], row.get(MILLIS)
            if millis is None:
                self.unknown[place] = self.unknown.get(place, 0) + 1
                continue
            digest = sha256(f"{offset} {millis}".encode()).digest()[:_BYTES]
            self._add(place, int.from_bytes(digest, "big"), offset)

    def add_all(self, others: Iterable[NullTimes]) -> None:
        """Adds the null timestamps of other rows."""
        for other in others:
            for place, digest in other.digests.items():
                self._add(place, digest, other.first[place])
            for place, rows in other.unknown.items():
                self.unknown[place] = self.unknown.get(place, 0) + rows

    def _add(self, place: TopicPartition, digest: int, offset: int) -> None:
        self.digests[place] = (self.digests.get(place, 0) + digest) % _MODULUS
        self.first[place] = min(self.first.get(place, offset), offset)


def digest_field() -> pa.Field:
    """The column `_digest` of tables with typed keys or values."""
    import pyarrow as pa

    return pa.field(DIGEST_COLUMN, pa.binary())


def with_digest(rows: pa.RecordBatch, records: RecordSums) -> pa.RecordBatch:
    """Rows of one partition with the column that makes them add up to the digest of their `records`, whose
    keys or values became typed ones. The last row has it for all of them.
    """
    import pyarrow as pa

    field = digest_field()
    nulls = pa.nulls(rows.num_rows, field.type)
    sums = RecordSums()
    sums.add_rows(rows.append_column(field, nulls))
    ((place, of_rows),) = sums.items()
    difference = (records[place].digest - of_rows.digest) % _MODULUS
    cell = pa.array([difference.to_bytes(_BYTES, "big")], field.type)
    return rows.append_column(field, pa.concat_arrays([nulls[1:], cell]))
