"""The last positions of groups, which the logs that they are in had reached."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from magicbyte.internal_topics.names import CONSUMER_OFFSETS, SHARE_GROUP_STATE
from magicbyte.jobs.find.cluster import Cluster
from magicbyte.jobs.find.log_dirs import LogDir
from magicbyte.jobs.merging.log_ends import KnownEnd, committed_end
from magicbyte.jobs.merging.planning import PlannedMerge
from magicbyte.jobs.offsets import offsets_of
from magicbyte.jobs.run.engines import Engine
from magicbyte.jobs.share_offsets import read_share_states
from magicbyte.model import PartitionListing

__all__ = ["ends_elsewhere", "last_positions"]


def ends_elsewhere(log_dirs: Iterable[LogDir]) -> Iterator[tuple[tuple[str, int], KnownEnd]]:
    """The ends that were committed, by the checkpoints of brokers that have lost the directory."""
    for log_dir in log_dirs:
        for listing in log_dir.absent:
            if (found := committed_end(listing)) is not None:
                yield (listing["topic"], listing["partition"]), found


def last_positions(
    merges: Iterable[PlannedMerge], cluster: Cluster, engine: Engine, max_decompressed_bytes: int
) -> dict[tuple[str, int], KnownEnd]:
    """The last position that a group has in each partition, by topic and partition: consumers only get
    records that are committed.
    """
    own: dict[str, list[PartitionListing]] = {CONSUMER_OFFSETS: [], SHARE_GROUP_STATE: []}
    for merge in merges:
        if merge.partition.topic in own:
            own[merge.partition.topic] += (merge.copies[copy].listing for copy in merge.continued)
    last: dict[tuple[str, int], KnownEnd] = {}
    for partition, found in _positions(own, cluster, engine, max_decompressed_bytes):
        last[partition] = max(found, last.get(partition, found))
    return last


def _positions(
    own: Mapping[str, list[PartitionListing]],
    cluster: Cluster,
    engine: Engine,
    max_decompressed_bytes: int,
) -> Iterator[tuple[tuple[str, int], KnownEnd]]:
    if listings := own[CONSUMER_OFFSETS]:
        report = offsets_of(listings, lambda _: {}, engine, max_decompressed_bytes=max_decompressed_bytes)
        for commit in report["offsets"]:
            source = f"the position of group {commit['group']}"
            yield (commit["topic"], commit["partition"]), KnownEnd(commit["offset"], source)
    # Each copy by itself: the state in one that lags would replace a newer one.
    for listing in own[SHARE_GROUP_STATE]:
        shares = read_share_states([listing], cluster, max_decompressed_bytes)
        for _, share in shares.states.values():
            topic = shares.names.get(share.topic_id)
            if topic is not None and share.start_offset is not None:
                source = f"the position of share group {share.group}"
                yield (topic, share.partition), KnownEnd(share.start_offset, source)
