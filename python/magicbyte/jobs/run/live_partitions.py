"""Partitions of running clusters, for jobs: each is fetched once, and its answers are read as chunks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import NamedTuple, cast

from magicbyte import _core
from magicbyte.enums import IsolationLevel
from magicbyte.jobs.find.choice import PartitionChoice
from magicbyte.live import CommandConfig, open_live_partitions
from magicbyte.model import PartitionListing, PartitionReconciliation
from magicbyte.storage.location import ClusterUrl

__all__ = ["LivePartition", "live_partitions"]


class LivePartition(NamedTuple):
    """A partition of a running cluster."""

    reader: _core.PartitionReader
    listing: str
    """A PartitionListing as JSON text, without files."""

    @property
    def topic(self) -> str:
        """The topic."""
        return self.described["topic"]

    @property
    def path(self) -> str:
        """The URL."""
        return self.described["path"]

    @property
    def described(self) -> PartitionListing:
        """The listing, which has no segments."""
        return cast(PartitionListing, json.loads(self.listing))

    def chunks(
        self,
        isolation_level: IsolationLevel = "read_uncommitted",
        start_offset: int | None = None,
        end_offset: int | None = None,
    ) -> _core.FetchedChunks:
        """Fetches a range of offsets (the end is exclusive), as far as the log has them now."""
        return self.reader.fetch(
            start_offset=start_offset, end_offset=end_offset, isolation_level=isolation_level
        )

    def reconciled(
        self, results: Sequence[str], isolation_level: IsolationLevel = "read_uncommitted"
    ) -> PartitionReconciliation:
        """The account of a fetch: the joined results of its chunks."""
        text = _core.reconcile_fetched(self.listing, isolation_level, results)
        return cast(PartitionReconciliation, json.loads(text))


def live_partitions(
    clusters: Iterable[ClusterUrl],
    command_config: CommandConfig,
    choice: PartitionChoice,
    max_decompressed_bytes: int,
) -> list[LivePartition]:
    """Opens the chosen partitions of clusters; errors are those of `open_live_partitions`."""
    readers = open_live_partitions(
        clusters,
        command_config,
        choice.includes,
        check_crcs=True,
        max_decompressed_bytes=max_decompressed_bytes,
        mode="PERMISSIVE",
    )
    return [LivePartition(reader, reader.listing()) for reader in readers]
