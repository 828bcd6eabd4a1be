"""Options that several jobs have."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike

from magicbyte import _core
from magicbyte.enums import DamageMode, IsolationLevel
from magicbyte.options.declare import Options, option
from magicbyte.options.values import FILE, TIME, TOPIC_IDS, Number, Size, words

__all__ = [
    "Certified",
    "CleanOptions",
    "Clock",
    "ConfigFiles",
    "Connection",
    "Damage",
    "DeadLetters",
    "Decoding",
    "Epochs",
    "Follow",
    "Indexes",
    "Isolation",
    "TopicIds",
]


@dataclass(frozen=True, kw_only=True)
class Decoding(Options):
    """The limit for a batch."""

    # Positions within a batch's records are 32-bit numbers.
    max_decompressed_bytes: int = option(
        "Treat batches that are larger than this after decompression as damaged.",
        default=_core.DEFAULT_MAX_DECOMPRESSED_BYTES,
        kind=Size((1 << 32) - 1, least=1),
    )


@dataclass(frozen=True, kw_only=True)
class Connection(Options):
    """The connection to a running cluster."""

    command_config: str | PathLike[str] | None = option(
        "A file of properties of Kafka's own clients, for the connection to the cluster: security.protocol,"
        " sasl.*, and ssl.* with PEM.",
        default=None,
        kind=FILE,
    )


@dataclass(frozen=True, kw_only=True)
class Isolation(Options):
    """The records of transactions that are read."""

    isolation_level: IsolationLevel = option(
        "read_committed leaves out aborted records and ends at the last stable offset.",
        default="read_uncommitted",
        kind=words(IsolationLevel),
    )


@dataclass(frozen=True, kw_only=True)
class Damage(Options):
    """The response to damage."""

    mode: DamageMode = option(
        "PERMISSIVE leaves out damaged batches and counts them. FAILFAST fails at the first one, without any"
        " output.",
        default="PERMISSIVE",
        kind=words(DamageMode),
    )


@dataclass(frozen=True, kw_only=True)
class Epochs(Options):
    """The leader epochs of what is written."""

    leader_epoch: int | None = option(
        "The leader epoch of every batch written. Followers refuse epochs above that of the partition:"
        " for another cluster give 0.",
        default=None,
        default_text="each batch's own; 0 if it has none",
        kind=Number(0, (1 << 31) - 1, "EPOCH"),
    )


@dataclass(frozen=True, kw_only=True)
class TopicIds(Options):
    """The ids of topics in what is written."""

    topic_ids: Mapping[str, str] = option(
        "The topic's id in the cluster that the output is for, for partition.metadata.",
        default_factory=dict,
        default_text="that of the sources",
        flag="--topic-id",
        kind=TOPIC_IDS,
    )


@dataclass(frozen=True, kw_only=True)
class ConfigFiles(Options):
    """The configs of topics and brokers."""

    topic_config: str | PathLike[str] | None = option(
        "Configs of topics as JSON, for clusters with ZooKeeper: "
        '{"orders": {"cleanup.policy": "compact"}}. They take precedence over __cluster_metadata.',
        default=None,
        kind=FILE,
    )
    server_properties: str | PathLike[str] | None = option(
        "The brokers' server.properties, which has the defaults of topics, such as log.cleanup.policy. No log"
        " directory has it.",
        default=None,
        kind=FILE,
    )


@dataclass(frozen=True, kw_only=True)
class DeadLetters(Options):
    """The join of dead-letter queues."""

    dead_letters: bool = option(
        "Join the records of dead-letter queues of share groups and connectors, by their headers, to the"
        " records that they are of, in any partition of the sources.",
        default=False,
    )


@dataclass(frozen=True, kw_only=True)
class Indexes(Options):
    """The indexes of what is written."""

    index_interval_bytes: int = option(
        "The bytes of log between two entries of an index.", default=4096, kind=Size((1 << 31) - 1, least=1)
    )


@dataclass(frozen=True, kw_only=True)
class Certified(Options):
    """The proof of what was read and written."""

    certify: bool = option(
        "Also write certificate.json into the output: the SHA-256 of every segment that was read and of every"
        " file that was written, the sums, and the command line.",
        default=False,
    )


@dataclass(frozen=True, kw_only=True)
class Follow(Options):
    """The choice to follow logs that grow."""

    follow: bool = option("Follow growing logs: go on with new records until interrupted.", default=False)


@dataclass(frozen=True, kw_only=True)
class Clock(Options):
    """The time at which a job counts ages."""

    now: int | None = option(
        "The current time, for computing ages.", default=None, default_text="the clock", kind=TIME
    )

    @property
    def now_ms(self) -> int:
        """The current time in milliseconds since 1970: `now`, or the clock's."""
        return round(time.time() * 1000) if self.now is None else self.now


@dataclass(frozen=True, kw_only=True)
class CleanOptions(Damage, TopicIds, Indexes, Certified, Decoding):
    """Options of every job that removes records."""
