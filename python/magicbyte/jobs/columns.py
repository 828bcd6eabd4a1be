"""Which columns of the table `records` go where. The core's `arrow_schema` has their types."""

from __future__ import annotations

__all__ = ["BATCH_METADATA", "KAFKA_COLUMNS", "RECORDS_WITH_METADATA", "TABLES"]

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
"""What a record's batch and place in the log say about it."""

RECORDS_WITH_METADATA = (*KAFKA_COLUMNS, "headers", *BATCH_METADATA)

TABLES = ("records", "batches", "problems")
"""The tables that decoding yields."""
