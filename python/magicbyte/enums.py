"""Kafka's numbered names, as IntEnums."""

from enum import IntEnum

__all__ = ["Compression", "TimestampType"]


class Compression(IntEnum):
    """The codec of a batch: bits 0-2 of its attributes (Kafka's `CompressionType`)."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class TimestampType(IntEnum):
    """What a record's timestamp means (Kafka's `TimestampType`)."""

    NO_TIMESTAMP_TYPE = -1
    """Magic 0: there is no timestamp."""
    CREATE_TIME = 0
    """The producer's time."""
    LOG_APPEND_TIME = 1
    """The broker's time at append."""
