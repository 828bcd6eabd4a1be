"""The columns of the table `records`. Their types are in the core's `arrow_schema`."""

from __future__ import annotations

__all__ = [
    "BATCH_METADATA",
    "DIGEST_COLUMN",
    "INTERNAL_TABLES",
    "INVALID_COLUMNS",
    "KAFKA_COLUMNS",
    "RECORDS_WITH_METADATA",
    "TABLES",
]

KAFKA_COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
"""The columns of Spark's own Kafka source, in its order; it adds `headers` on request."""

BATCH_METADATA = (
    "timestampMillis",
    "magic",
    "compression",
    "producerId",
    "producerEpoch",
    "sequence",
    "isTransactional",
    "leaderEpoch",
    "segment",
    "position",
)
"""Columns with facts about a record's batch and its place in the log."""

RECORDS_WITH_METADATA = (*KAFKA_COLUMNS, "headers", *BATCH_METADATA)

INVALID_COLUMNS = {"key": "invalidKey", "value": "invalidValue"}
"""For each column that can be text: the one with the bytes of what is not, at the end of the table."""

DIGEST_COLUMN = "_digest"
"""In tables with typed keys or values: what makes the rows add up to the digest of their records. It is null
in most rows; see `_core.digest_records`."""

TABLES = ("records", "batches", "problems")
"""The tables that decoding produces."""

INTERNAL_TABLES = ("offsets", "share_offsets", "topics")
"""The tables that an ingest adds if it reads Kafka's own topics."""
