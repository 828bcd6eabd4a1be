"""Counts and digests of records by partition, which add up in any order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from magicbyte import _core
from magicbyte.jobs.columns import DIGEST_COLUMN

__all__ = ["DIGEST_FIELD", "RecordSum", "RecordSums", "TopicPartition", "with_digest"]

DIGEST_FIELD = pa.field(DIGEST_COLUMN, pa.binary())

TopicPartition = tuple[str, int]

_BYTES = 16
_MODULUS = 1 << 8 * _BYTES


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


def with_digest(rows: pa.RecordBatch, records: RecordSums) -> pa.RecordBatch:
    """Rows of one partition with the column that makes them add up to the digest of their `records`, whose
    keys or values became typed ones. The last row has it for all of them.
    """
    nulls = pa.nulls(rows.num_rows, DIGEST_FIELD.type)
    sums = RecordSums()
    sums.add_rows(rows.append_column(DIGEST_FIELD, nulls))
    ((place, of_rows),) = sums.items()
    difference = (records[place].digest - of_rows.digest) % _MODULUS
    cell = pa.array([difference.to_bytes(_BYTES, "big")], DIGEST_FIELD.type)
    return rows.append_column(DIGEST_FIELD, pa.concat_arrays([nulls[1:], cell]))
