"""What an output gets of what a broker reads beside the segments: the topics' IDs, and where logs start."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TypedDict

from magicbyte import _core
from magicbyte.errors import Error
from magicbyte.internal_topics.names import CLUSTER_METADATA
from magicbyte.jobs.choice import ONLY_TOPIC
from magicbyte.jobs.cluster import read_cluster
from magicbyte.jobs.failure import RefusedError
from magicbyte.jobs.partitions import Inputs
from magicbyte.listing import topic_id_of
from magicbyte.log_dir import LOG_START_OFFSET_CHECKPOINT, format_offset_checkpoint
from magicbyte.model import PartitionListing, PartitionPlan

__all__ = ["Carried", "carried_ids", "carried_start", "emptied_segment", "log_start_checkpoint"]


_DIGITS = 20
"""Of the base offset in the name of a segment."""


class Carried(TypedDict):
    """The part of a report about a written partition that a broker reads beside the segments."""

    topic: str
    partition: int
    topic_id: str | None
    """The content of `partition.metadata`; None if it was not written, since the ID is unknown."""
    log_start_offset: int | None
    """The log's start, if the first segment begins before it."""


def carried_ids(inputs: Inputs, given: Mapping[str, str]) -> dict[str, str]:
    """The IDs of the topics of `inputs`, as far as they are known: those that the caller gives, those in the
    `partition.metadata` of the sources, and those in the cluster's metadata.

    Raises:
        RefusedError: if the caller gives an ID without a topic, and there are several topics.

    """
    topics = {one["topic"] for one in inputs.listings}
    ids = dict(given)
    only = ids.pop(ONLY_TOPIC, None)
    if only is not None:
        if len(topics) > 1:
            raise RefusedError(
                f"{only} is one ID, but there are {len(topics)} topics: give TOPIC=ID for each"
            )
        ids.update(dict.fromkeys(topics, only))
    for listing in inputs.listings:
        if listing["topic"] not in ids and (topic_id := topic_id_of(listing)) is not None:
            ids[listing["topic"]] = topic_id
    if topics <= {*ids}:
        return ids
    return _ids_of_cluster(inputs.directories) | ids


def _ids_of_cluster(directories: Iterable[PartitionListing]) -> dict[str, str]:
    """The IDs of topics in the copies of the cluster's metadata; the longest copy counts."""

    def reach(copy: PartitionListing) -> tuple[int, int]:
        last = copy["segments"][-1]
        return last["base_offset"], last["size"]

    ids: dict[str, str] = {}
    copies = [one for one in directories if one["topic"] == CLUSTER_METADATA and one["segments"]]
    for copy in sorted(copies, key=reach):
        try:
            state = read_cluster(copy).state
        except (Error, OSError):
            continue  # its own partition reports the damage
        ids |= {topic.name: topic.topic_id for topic in state.topics.values()}
    return ids


def carried_start(plan: PartitionPlan, directory: str) -> int | None:
    """Where the log of a plan starts, if the first segment in its output's directory begins before it."""
    start = plan["log_start_offset"]
    if start is None or not os.path.isdir(directory):
        return None
    bases = [int(name[:_DIGITS]) for name in os.listdir(directory) if _core.is_segment_file(name)]
    return start if bases and min(bases) < start else None


def emptied_segment(plan: PartitionPlan, directory: str) -> list[str]:
    """Writes the segment of a log whose records were all deleted: empty, where the log ends.

    It is below `directory`. Returns its summary; nothing for other logs. A broker would delete segments that
    end before the log's start.
    """
    start, end = plan["log_start_offset"], plan["next_offset"]
    if start is None or end is None or start < end:
        return []
    return _core.PartitionWriter(os.path.join(directory, "emptied"), end).finish()


def log_start_checkpoint(written: Iterable[Carried]) -> dict[str, str]:
    """The `log-start-offset-checkpoint` of an output, by its name; nothing if no partition needs it."""
    starts = {
        (one["topic"], one["partition"]): one["log_start_offset"]
        for one in written
        if one["log_start_offset"] is not None
    }
    return {LOG_START_OFFSET_CHECKPOINT: format_offset_checkpoint(starts)} if starts else {}
