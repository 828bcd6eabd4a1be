"""Kafka's numbered names as enumerations, and the words that options take."""

from enum import IntEnum
from typing import Literal, TypeAlias

__all__ = [
    "CompatibilityLevel",
    "Compression",
    "DamageMode",
    "Framing",
    "IsolationLevel",
    "JsonIntegers",
    "PartitionBy",
    "PayloadType",
    "SchemaFormat",
    "TableFormat",
    "TimestampType",
    "Validation",
    "Windows",
    "fails_fast",
]

IsolationLevel: TypeAlias = Literal["read_uncommitted", "read_committed"]
"""The records of transactions that a reader gets (Kafka's `isolation.level`)."""

DamageMode: TypeAlias = Literal["PERMISSIVE", "FAILFAST"]
"""The response to damage (Spark's words): PERMISSIVE skips damaged batches and reports them, FAILFAST raises
the first error."""

PayloadType: TypeAlias = Literal["binary", "string", "json"]
"""The format of keys or values: bytes, UTF-8, or JSON documents in UTF-8."""

TableFormat: TypeAlias = Literal["parquet", "delta", "iceberg"]
"""The output of an ingest: a directory of Parquet tables, or a commit of a transactional table."""

SchemaFormat: TypeAlias = Literal["avro", "protobuf", "json"]
"""The format of keys or values that have a schema."""

Framing: TypeAlias = Literal["auto", "confluent", "apicurio", "glue", "single-object", "none"]
"""How keys or values name their schemas: `auto` as bytes and headers say, `apicurio` by ids of 8 bytes."""

Windows: TypeAlias = Literal["auto", "none", "time", "session", "store"]
"""The windows of Kafka Streams and ksqlDB after keys: `auto` for keys that cannot be read without them,
`store` for those of a window store's changelog topic."""

JsonIntegers: TypeAlias = Literal["int64", "decimal", "text"]
"""The type of JSON integers in typed columns: 64 bits, a decimal of 38 digits, or text with any number."""

Validation: TypeAlias = bool | Literal["formats"]
"""Whether JSON is validated by its schema, and whether by the keyword `format`, too."""

CompatibilityLevel: TypeAlias = Literal[
    "NONE", "BACKWARD", "FORWARD", "FULL", "BACKWARD_TRANSITIVE", "FORWARD_TRANSITIVE", "FULL_TRANSITIVE"
]
"""The versions of a schema that must be able to read each other (a registry's words)."""

PartitionBy: TypeAlias = Literal["topic", "day"]
"""The partitioning of a transactional table's files: by topic, or by topic and day of the timestamp."""


def fails_fast(mode: DamageMode) -> bool:
    """True if `mode` is FAILFAST; letter case does not matter.

    Raises:
        ValueError: if it is neither PERMISSIVE nor FAILFAST.

    """
    if not isinstance(mode, str) or mode.upper() not in ("PERMISSIVE", "FAILFAST"):
        raise ValueError(f"mode is PERMISSIVE or FAILFAST, not {mode!r}")
    return mode.upper() == "FAILFAST"


class Compression(IntEnum):
    """The codec of a batch: bits 0-2 of its attributes (Kafka's `CompressionType`)."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class TimestampType(IntEnum):
    """The meaning of a record's timestamp (Kafka's `TimestampType`)."""

    NO_TIMESTAMP_TYPE = -1
    """Magic 0: there is no timestamp."""
    CREATE_TIME = 0
    """The producer's time."""
    LOG_APPEND_TIME = 1
    """The broker's time when it appended the batch."""
