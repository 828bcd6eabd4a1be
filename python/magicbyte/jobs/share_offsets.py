"""The positions of share groups, as `kafka-share-groups.sh --describe --offsets` shows them
(`GroupCoordinatorService`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypedDict

from magicbyte._core import DEFAULT_MAX_DECOMPRESSED_BYTES, LegacyBatch, Record, RecordBatch
from magicbyte.internal_topics.groups import ShareTopic
from magicbyte.internal_topics.names import SHARE_GROUP_STATE
from magicbyte.internal_topics.share_groups import (
    DELIVERY_STATES,
    SharePartition,
    SharePartitions,
    state_partition_of,
)
from magicbyte.jobs.describing.groups import SharePosition
from magicbyte.jobs.find.cluster import Cluster
from magicbyte.jobs.find.replay import replay
from magicbyte.jobs.run.log_ranges import Ends, LogRange
from magicbyte.model import PartitionListing

__all__ = [
    "DeliveryBatch",
    "ShareOffset",
    "ShareStates",
    "live_share_offset",
    "read_share_states",
    "with_log",
]

_NAMED = 5


class DeliveryBatch(TypedDict):
    """Offsets from a share group's start offset on that it has begun to deliver."""

    first_offset: int
    last_offset: int
    """Inclusive."""
    delivery_state: str
    """`AVAILABLE` for another delivery, `ACKNOWLEDGED`, `ARCHIVED` (rejected, or delivered too often), or
    `ARCHIVING` on the way to a dead-letter queue.
    """
    delivery_count: int


class ShareOffset(TypedDict):
    """A share group's position in a partition; None for what is unknown."""

    group: str
    topic: str
    """The topic's ID, if nothing among the sources has its name."""
    topic_id: str
    partition: int
    start_offset: int | None
    """The records before it are done. None if the group has not read the partition, or its state is lost."""
    leader_epoch: int | None
    """The leader epoch of the partition when the state was written."""
    state_epoch: int | None
    """Also None for a running cluster, as everything below that only the state's log has."""
    delivery_complete_count: int | None
    """Records from the start offset on that are done: acknowledged, archived, or gone from the log."""
    state_batches: list[DeliveryBatch] | None
    """What the group knows of records from the start offset on; others have not been delivered."""
    log_start_offset: int | None
    """The first offset of the copy of the partition here, as in `CommittedOffset`."""
    log_end_offset: int | None
    lag: int | None
    """Records up to the end of the log, by offsets, without those that are done."""
    lost_ahead: int | None
    """Offsets from `start_offset` on that are in no file."""
    out_of_range: bool
    """True if the start offset is before the start or after the end of this copy."""
    state_partition: int | None
    """The partition of `__share_group_state` that has the state."""
    state_log: str | None
    """`whole`; `damaged`, if records are lost there, so that the truth may be newer than this row; `absent`,
    if it is not among the sources.
    """


@dataclass(frozen=True)
class ShareStates:
    """The state that partitions of `__share_group_state` add up to."""

    states: Mapping[tuple[str, str, int], tuple[int, SharePartition]] = field(default_factory=dict)
    """The state of each group, topic ID and partition, and the partition that has it."""
    here: Collection[int] = ()
    """The partitions that were read."""
    damaged: Collection[int] = ()
    partitions: int | None = None
    """The number of partitions of the topic; None if it is unknown."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Names of topics by ID."""
    problems: Sequence[str] = ()

    def rows(self, initialized: Mapping[str, Sequence[ShareTopic]]) -> Iterator[ShareOffset]:
        """Yields the positions without what the logs add, sorted: of the topics that the groups have
        initialized according to `__consumer_offsets`, and of those that have a state.
        """
        names = {topic.topic_id: topic.name for topics in initialized.values() for topic in topics}
        names.update(self.names)
        places = {
            (group, topic.topic_id, partition)
            for group, topics in initialized.items()
            for topic in topics
            for partition in topic.partitions
        }
        rows = [self._row(place, names) for place in places.union(self.states)]
        yield from sorted(rows, key=lambda row: (row["group"], row["topic"], row["partition"]))

    def _row(self, place: tuple[str, str, int], names: Mapping[str, str]) -> ShareOffset:
        group, topic_id, partition = place
        at, state = self.states.get(place, (None, SharePartition(*place, None, None, None, None, (), None)))
        if at is None and self.partitions is not None:
            at = state_partition_of(*place, self.partitions)
        return ShareOffset(
            group=group,
            topic=names.get(topic_id, topic_id),
            topic_id=topic_id,
            partition=partition,
            start_offset=state.start_offset,
            leader_epoch=state.leader_epoch,
            state_epoch=state.state_epoch,
            delivery_complete_count=state.delivery_complete_count,
            state_batches=[
                DeliveryBatch(
                    first_offset=one.first_offset,
                    last_offset=one.last_offset,
                    delivery_state=DELIVERY_STATES.get(one.delivery_state, str(one.delivery_state)),
                    delivery_count=one.delivery_count,
                )
                for one in state.state_batches
            ],
            log_start_offset=None,
            log_end_offset=None,
            lag=None,
            lost_ahead=None,
            out_of_range=False,
            state_partition=at,
            state_log="absent" if at not in self.here else "damaged" if at in self.damaged else "whole",
        )

    def damage(self, rows: Iterable[ShareOffset]) -> Iterator[str]:
        """Names each damaged partition, and the positions among `rows` that it has or had."""
        affected: dict[int, list[str]] = defaultdict(list)
        for row in rows:
            if (at := row["state_partition"]) is not None:
                affected[at].append(f"{row['group']}: {row['topic']}-{row['partition']}")
        for partition in sorted(self.damaged):
            names = affected[partition]
            known = f", among them {', '.join(names[:_NAMED])}" if names else ""
            more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
            yield (
                f"{SHARE_GROUP_STATE}-{partition} is damaged: the positions that hash to it may be old or"
                f" missing{known}{more}"
            )


def read_share_states(
    listings: Iterable[PartitionListing],
    cluster: Cluster,
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
) -> ShareStates:
    """Reads these partitions of `__share_group_state` as a share coordinator does when it starts.

    Without the cluster's metadata, the partitions are counted by the directories, unless a record that is
    elsewhere than its key says proves that some are missing.
    """
    states: dict[tuple[str, str, int], tuple[int, SharePartition]] = {}
    here, damaged, problems = set(), set(), []
    for listing in listings:
        number = listing["partition"]
        folded = SharePartitions()

        def apply(batch: RecordBatch | LegacyBatch, record: Record, folded: SharePartitions = folded) -> None:
            if not batch.is_control:
                folded.replay(record.key_bytes, record.value_bytes)

        found = replay(listing["path"], apply, max_decompressed_bytes=max_decompressed_bytes)
        found += [one["message"] for one in listing["problems"] if one["segment"] is None]
        here.add(number)
        if found:
            damaged.add(number)
            problems += found
        for state in folded.states:
            states[state.group, state.topic_id, state.partition] = number, state
    topics = cluster.state.topics.values()
    count = next((len(one.partitions) for one in topics if one.name == SHARE_GROUP_STATE), None)
    if count is None and here:
        count = max(here) + 1
        if any(state_partition_of(*place, count) != at for place, (at, _) in states.items()):
            count = None
    return ShareStates(states, here, damaged, count, {one.topic_id: one.name for one in topics}, problems)


def live_share_offset(position: SharePosition, state_partitions: int | None) -> ShareOffset:
    """The position in a running cluster, whose `__share_group_state` has so many partitions."""
    group, topic_id, partition = position.group, position.topic_id, position.partition
    return ShareOffset(
        group=group,
        topic=position.topic,
        topic_id=topic_id,
        partition=partition,
        start_offset=position.start_offset,
        leader_epoch=position.leader_epoch,
        state_epoch=None,
        delivery_complete_count=None,
        state_batches=None,
        log_start_offset=None,
        log_end_offset=None,
        lag=position.lag,
        lost_ahead=None,
        out_of_range=False,
        state_partition=state_partition_of(group, topic_id, partition, state_partitions)
        if state_partitions
        else None,
        state_log=None,
    )


def with_log(row: ShareOffset, ends: Ends) -> ShareOffset:
    """The position with the offsets of its log, if they are known."""
    log = ends.get((row["topic"], row["partition"]))
    known = log or LogRange()
    start, complete = row["start_offset"], row["delivery_complete_count"]
    lag, lost = row["lag"], None
    if start is not None:
        lost = None if log is None else log.lost_ahead(start)
        if known.end is not None and complete is not None:
            lag = known.end - start - complete
    return {
        **row,
        "log_start_offset": known.start,
        "log_end_offset": known.end,
        "lag": lag,
        "lost_ahead": lost,
        "out_of_range": start is not None and not known.has_position(start),
    }
