"""The topics of a cluster with ZooKeeper, or whose metadata is lost, as its directories tell."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from magicbyte.errors import RefusedError
from magicbyte.internal_topics.metadata.topics import PartitionState, TopicState
from magicbyte.jobs.disks.topics import Directories
from magicbyte.jobs.restoring.doubts import HIGHEST_EPOCH

__all__ = ["topics_of_directories"]


def topics_of_directories(
    directories: Directories, brokers: Mapping[str, int | None]
) -> Iterator[TopicState]:
    """Yields the topics; `brokers` has the broker of each log directory. Who was in sync is unknown: every
    copy counts, and the one with the last leader epoch leads. A topic from before Kafka 2.8 has its name as
    its id.

    Raises:
        RefusedError: there are directories of several topics with the same name.

    """
    for name, ids in sorted(directories.repeated.items()):
        raise RefusedError(
            f"nothing tells which topic {name} is right: its directories have the ids {', '.join(ids)}."
            " Leave out those of the one that was deleted"
        )
    for (name, topic_id), listings in directories.of_topics.items():
        partitions = {}
        for number, copies in listings.items():
            found = (brokers.get(os.path.dirname(one["path"])) for one in copies)
            replicas = sorted({broker for broker in found if broker is not None})
            partitions[number] = PartitionState(replicas, replicas, -1, HIGHEST_EPOCH, [])
        yield TopicState(name, topic_id or name, partitions)
