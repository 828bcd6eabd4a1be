"""Options of the jobs that only read: `verify`, `explain`, `stats`, `advise`, `offsets`, `topics`, `cluster`,
`rescue` and `schemas`.
"""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike

from magicbyte import _core
from magicbyte.options.declare import option
from magicbyte.options.ingest import CatalogOptions
from magicbyte.options.shared import Clock, ConfigFiles, Connection, Decoding, Isolation
from magicbyte.options.values import COUNT, FILE, MILLIS, Kind, Number, Real, Size

__all__ = [
    "DEFAULT_TRANSACTION_MAX_TIMEOUT_MS",
    "SCHEMAS_TOPIC",
    "AdviseOptions",
    "ClusterOptions",
    "ExplainOptions",
    "GroupChoice",
    "OffsetsOptions",
    "SchemasOptions",
    "StatsOptions",
    "TopicsOptions",
    "TransactionTimeout",
    "VerifyOptions",
]

DEFAULT_TRANSACTION_MAX_TIMEOUT_MS = 15 * 60 * 1000
"""Kafka's default of `transaction.max.timeout.ms`, which `kafka-transactions.sh find-hanging` assumes."""
SCHEMAS_TOPIC = "_schemas"
"""The topic of a schema registry, unless its `kafkastore.topic` says otherwise."""


@dataclass(frozen=True, kw_only=True)
class VerifyOptions(CatalogOptions, Isolation, Connection, Decoding):
    """Options of a verification."""

    table: str | PathLike[str] | None = option(
        "Compare the records with those of a table of ingest: a Delta or Parquet directory or URL, or an"
        " Iceberg table of a catalog.",
        default=None,
        kind=Kind("TABLE"),
    )
    indexes: bool = option(
        "Also compare the indexes (.index .timeindex .txnindex) with their segments, entry by entry.",
        default=False,
    )
    certificate: str | PathLike[str] | None = option(
        "Compare every file of an output with its certificate.json.",
        default=None,
        kind=FILE,
    )
    against: str | None = option(
        "Compare the records with those that consumers of a running cluster get, at both isolation levels.",
        default=None,
        kind=Kind("HOST:PORT"),
    )


@dataclass(frozen=True, kw_only=True)
class TopicsOptions(ConfigFiles, Connection):
    """Options of the list of topics."""


@dataclass(frozen=True, kw_only=True)
class StatsOptions(Connection, Decoding):
    """Options of statistics."""


@dataclass(frozen=True, kw_only=True)
class TransactionTimeout(Clock):
    """When an open transaction hangs."""

    transaction_max_timeout_ms: int = option(
        "The broker's setting: an open transaction is hanging if its producer has been silent for longer.",
        default=DEFAULT_TRANSACTION_MAX_TIMEOUT_MS,
        kind=MILLIS,
    )


@dataclass(frozen=True, kw_only=True)
class ExplainOptions(TransactionTimeout):
    """Options of histories."""

    max_listed: int = option(
        "The maximum number of each kind to list per partition; memory grows with it.",
        default=_core.LISTED,
        kind=Number(1),
    )


@dataclass(frozen=True, kw_only=True)
class AdviseOptions(Decoding):
    """Options of advice."""

    windows: int = option(
        "The total number of places in the logs to sample.", default=32, kind=Number(1, 10_000)
    )
    window_bytes: int = option(
        "The size of the sample at each place, after decompression.",
        default=4 << 20,
        kind=Size(least=1),
    )
    seed: int = option("The seed of the sample.", default=0, kind=COUNT)
    thorough: bool = option("Try slow levels, too: lz4 12, gzip 9, zstd 12 and 19.", default=False)
    price_per_tb_month: float | None = option(
        "Show each layout's monthly price, per replica.", default=None, kind=Real("PRICE")
    )


@dataclass(frozen=True, kw_only=True)
class GroupChoice(Decoding):
    """The choice among groups."""

    group: str = option(
        "Only groups whose name matches; * ? and [...] are wildcards.", default="*", kind=Kind("PATTERN")
    )


@dataclass(frozen=True, kw_only=True)
class OffsetsOptions(GroupChoice, Connection):
    """Options of committed offsets."""


@dataclass(frozen=True, kw_only=True)
class ClusterOptions(GroupChoice, TransactionTimeout):
    """Options of the description of a cluster."""

    headers_only: bool = option(
        "Do not decode the records ahead of groups: records that are lost inside of batches are not found.",
        default=False,
    )


@dataclass(frozen=True, kw_only=True)
class SchemasOptions(Decoding):
    """Options of a registry's schemas."""

    schemas_topic: str = option(
        "The registry's topic (kafkastore.topic).", default=SCHEMAS_TOPIC, kind=Kind("TOPIC")
    )
