"""A directory of partitions: a broker's, a backup, or any folder with segments somewhere below it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from magicbyte._core import CONSUMED_COLUMNS, DEFAULT_MAX_DECOMPRESSED_BYTES
from magicbyte.calls import Sources, paths_of
from magicbyte.enums import DamageMode, IsolationLevel
from magicbyte.errors import RefusedError
from magicbyte.jobs.find.choice import EVERYTHING, PartitionChoice, check_choice
from magicbyte.jobs.find.partitions import SkippedDirectory, find_inputs, without_copies
from magicbyte.live import CommandConfig, open_live_partitions, split_sources
from magicbyte.log import PartitionLog
from magicbyte.open_partition import OpenPartition
from magicbyte.reconciliation import Reconciliation
from magicbyte.storage.location import locate
from magicbyte.table import Table

if TYPE_CHECKING:
    from magicbyte.jobs.find.log_dirs import LogDir

__all__ = ["Log"]


class Log(Table):
    """The partitions at and below a directory, or below several: together a table, as each of them is.

    Opening lists the directories; no segment is read. `magicbyte.verify`, `magicbyte.ingest` and the other
    commands are functions that work on such a directory as a whole.

    A stream over a running cluster asks where all logs begin and end when it is first read. While one
    partition is read, the next ones are fetched, many in one request and from several brokers at a time, with
    the memory of a few answers of about 2 MiB, whatever the number of partitions.

    A partition that is there several times, as on several brokers, appears once per copy in `partitions` and
    in `verify`. Its records are those of one copy: `choice.prefer` names it, and of Kafka's own topics it is
    the newest. Without a choice, `to_arrow` and `magicbyte.scan` raise RefusedError.

    Args:
        sources: directories, archives or segment files, URLs of them, or running clusters, such as
            `kafka://host:9092` or `kafka://host:9092/topic`: one path, or a sequence of them.
        choice: which partitions to open, for example `PartitionChoice(topics=("orders*",))`.
        check_crcs: whether checksums are checked.
        max_decompressed_bytes: the limit for one batch, stored or decompressed.
        mode: as in `PartitionLog`.
        command_config: as in `PartitionLog`.

    Raises:
        RefusedError: if there is no partition, or a source is missing.
        OSError: if a source cannot be listed, or a running cluster does not answer or refuses.

    """

    def __init__(
        self,
        sources: Sources,
        choice: PartitionChoice = EVERYTHING,
        *,
        check_crcs: bool = True,
        max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
        mode: DamageMode = "FAILFAST",
        command_config: CommandConfig = None,
    ) -> None:
        check_choice(choice)
        self._sources = tuple(paths_of(sources))
        self._choice = choice
        files, clusters = split_sources(self._sources, command_config)
        self._inputs = find_inputs(files, choice, may_be_none=bool(clusters))
        self._partitions = [
            PartitionLog.of_listing(
                listing,
                check_crcs=check_crcs,
                max_decompressed_bytes=max_decompressed_bytes,
                mode=mode,
            )
            for listing in self._inputs.listings
            if locate(listing["path"]).is_still_there()
        ]
        readers = open_live_partitions(
            clusters,
            command_config,
            choice.includes,
            check_crcs=check_crcs,
            max_decompressed_bytes=max_decompressed_bytes,
            mode=mode,
        )
        self._partitions += [PartitionLog._of_reader(reader, mode) for reader in readers]

    @property
    def sources(self) -> tuple[str, ...]:
        """The paths as given."""
        return self._sources

    @property
    def partitions(self) -> list[PartitionLog]:
        """The partitions that have a directory, ordered by topic, partition and path.

        Those that only a broker's checkpoints name are in `absent` of its entry in `log_dirs`.
        """
        return list(self._partitions)

    @property
    def topics(self) -> list[str]:
        """The names of the topics, in order."""
        return sorted({partition.topic for partition in self._partitions})

    @property
    def skipped(self) -> list[SkippedDirectory]:
        """Directories that are not read, because of their state (`-future`, `-stray`, `-delete`)."""
        return self._inputs.skipped

    @property
    def log_dirs(self) -> list[LogDir]:
        """The brokers' directories among the sources and below them, with what their checkpoints say."""
        return self._inputs.log_dirs

    def partition(self, topic: str, partition: int = 0) -> PartitionLog:
        """The partition of a topic.

        Raises:
            KeyError: if there is none, or more than one copy of it.

        """
        copies = [one for one in self._partitions if (one.topic, one.partition) == (topic, partition)]
        if len(copies) == 1:
            return copies[0]
        name = f"{topic}-{partition}"
        if not copies:
            raise KeyError(f"no partition {name} in {', '.join(self.sources)}")
        raise KeyError(f"{len(copies)} copies of {name}: {', '.join(copy.path for copy in copies)}")

    def verify(self, isolation_level: IsolationLevel = "read_uncommitted") -> list[Reconciliation]:
        """Decodes every record of every partition and accounts for every byte; keeps nothing."""
        return [partition.verify(isolation_level) for partition in self._partitions]

    def _open_partitions(self) -> Sequence[OpenPartition]:
        opened = [one for partition in self._partitions for one in partition._open_partitions()]
        if not opened:
            raise RefusedError(f"no partition is left in {', '.join(self.sources)}")
        read = {one["path"] for one in without_copies([one.listing for one in opened], self._choice)}
        return [one for one in opened if one.listing["path"] in read]

    @property
    def _default_columns(self) -> Sequence[str]:
        return ("topic", "partition", *CONSUMED_COLUMNS)

    def __iter__(self) -> Iterator[PartitionLog]:
        return iter(self._partitions)

    def __len__(self) -> int:
        return len(self._partitions)

    def __repr__(self) -> str:
        size = sum(partition.size for partition in self._partitions)
        topics = len(self.topics)
        return f"<Log {', '.join(self.sources)}: {len(self)} partitions of {topics} topics, {size} bytes>"

    def _repr_html_(self) -> str:
        """A table of the partitions for notebooks."""
        from magicbyte.html import table

        rows = [
            (partition.topic, partition.partition, len(partition.segments), partition.size)
            for partition in self._partitions
        ]
        return table(repr(self), ("topic", "partition", "segments", "bytes"), rows)
