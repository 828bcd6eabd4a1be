"""Options of `ingest`: the records that become tables, and the tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from magicbyte.enums import PartitionBy, PayloadType, TableFormat
from magicbyte.options.declare import Options, argument, narrowed, option
from magicbyte.options.ranges import Ranges
from magicbyte.options.shared import Connection, Decoding, Isolation
from magicbyte.options.typed import UNTYPED, Column, TypedColumns
from magicbyte.options.values import EXPRESSION, PROPERTIES, Kind, Real, Size, words

__all__ = ["CatalogOptions", "FollowOptions", "IngestOptions", "ParquetCodec", "TargetOptions"]

ParquetCodec = Literal["none", "gzip", "snappy", "lz4", "zstd"]
"""The compression of Parquet files."""


@dataclass(frozen=True, kw_only=True)
class IngestOptions(Ranges, Isolation, Decoding, Connection):
    """Options of an ingest."""

    where: str | None = option(
        "Write only records for which this SQL expression is true.", default=None, kind=EXPRESSION
    )
    key_as: PayloadType = option(
        "The type of the column key: string is UTF-8, json are JSON documents.",
        default="binary",
        kind=words(PayloadType),
    )
    value_as: PayloadType = option(
        "The type of the column value: string is UTF-8, json are JSON documents.",
        default="binary",
        kind=words(PayloadType),
    )
    typed: TypedColumns = argument("The keys or values that are decoded by schemas.", default=UNTYPED)
    include_batch_metadata: bool = option(
        "Add columns to the records: magic, compression, producer, sequence, leader epoch, segment, position"
        " and timestampMillis.",
        default=False,
    )
    overwrite: bool = option(
        "Replace an earlier output of ingest once the new output is complete.", default=False
    )
    parquet_compression: ParquetCodec = option(
        "The codec of the Parquet files.", default="zstd", kind=words(ParquetCodec)
    )
    bloom_filter: bool = option(
        "Write bloom filters of the keys, so that readers that look for a key skip most other row groups.",
        default=False,
    )
    digest: bool = option(
        "Write the column _digest, by which a verification compares typed keys and values with the log."
        " Delta and Iceberg tables always have it.",
        default=False,
    )
    target_file_size: int | None = option(
        "For delta and iceberg: the target size of files, if a task has enough to write.",
        default=None,
        default_text="256MiB",
        kind=Size(least=1),
    )
    repair: bool = option(
        "For delta and iceberg: replace the rows from the offset on where the log diverges from the table,"
        " and add records that earlier runs could not read, in one commit with the new records.",
        default=False,
    )
    fail_on_missing: bool = option(
        "For delta and iceberg: add nothing if records of the log are lost or unreadable.", default=False
    )

    @property
    def file_size(self) -> int:
        """The target size of files of a Delta or Iceberg table, in bytes."""
        return 256 << 20 if self.target_file_size is None else self.target_file_size

    @property
    def payloads(self) -> Mapping[Column, PayloadType]:
        """The types of the columns without schemas."""
        return {"key": self.key_as, "value": self.value_as}

    @property
    def ranges(self) -> Ranges:
        """The ranges alone."""
        return narrowed(Ranges, self)


@dataclass(frozen=True, kw_only=True)
class CatalogOptions(Options):
    """The catalog of an Iceberg table."""

    catalog: str | None = option(
        "The catalog of an Iceberg table, as in pyiceberg's configuration.", default=None, kind=Kind("NAME")
    )
    catalog_properties: Mapping[str, str] = option(
        "A property of the catalog, such as its uri.",
        default_factory=dict,
        secret=True,
        flag="--catalog-property",
        kind=PROPERTIES,
    )


@dataclass(frozen=True, kw_only=True)
class TargetOptions(CatalogOptions):
    """The table that is written."""

    format: TableFormat = option(
        "The output: a directory of Parquet tables, or the new records as one commit of a table.",
        default="parquet",
        kind=words(TableFormat),
    )
    partition_by: PartitionBy = option(
        "For delta and iceberg: the partitioning of files; day is by topic and day of the timestamp.",
        default="topic",
        kind=words(PartitionBy),
    )


@dataclass(frozen=True, kw_only=True)
class FollowOptions(Options):
    """The pace of `--follow`."""

    interval: float | None = option(
        "The time from one look at growing logs to the next, in seconds.",
        default=None,
        default_text="10",
        kind=Real("SECONDS", positive=True),
    )
    above_high_watermark: bool = option(
        "While following, do not wait until a broker has replicated records; a failover may replace them.",
        default=False,
    )

    @property
    def seconds(self) -> float:
        """The time from one look to the next."""
        return 10.0 if self.interval is None else self.interval
