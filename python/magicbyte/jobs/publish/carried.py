"""Files of an output that a broker reads beside the segments: the topics' IDs, and the starts of logs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TypedDict

from magicbyte import _core
from magicbyte.errors import Error, RefusedError
from magicbyte.internal_topics.names import CLUSTER_METADATA
from magicbyte.jobs.find.cluster import read_cluster
from magicbyte.jobs.find.partitions import Inputs, enumerated
from magicbyte.jobs.find.reach import reach
from magicbyte.listing import topic_id_of
from magicbyte.log_dir import LOG_START_OFFSET_CHECKPOINT, format_offset_checkpoint
from magicbyte.model import PartitionListing, PartitionPlan
from magicbyte.options.values import ONLY_TOPIC

__all__ = ["Carried", "carried_ids", "carried_start", "log_start_checkpoint", "with_log_end"]


_DIGITS = 20
"""The number of digits of the base offset in a segment's name."""


class Carried(TypedDict):
    """The part of a written partition's report with the values that a broker reads beside the segments."""

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
        RefusedError: if the caller gives an ID for a topic that is not there, or without a topic, and there
            are several topics.

    """
    topics = {one["topic"] for one in inputs.listings}
    ids = dict(given)
    only = ids.pop(ONLY_TOPIC, None)
    there = topics | {one["topic"] for one in inputs.directories}
    if unknown := sorted({*ids} - there):
        raise RefusedError(
            f"an ID is given for the topic {unknown[0]}; there are {enumerated(sorted(there))}"
        )
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
    """The IDs of topics in the copies of the cluster's metadata; the newest copy counts."""
    ids: dict[str, str] = {}
    copies = [
        directory
        for directory in directories
        if directory["topic"] == CLUSTER_METADATA and directory["segments"]
    ]
    for copy in sorted(copies, key=reach):
        try:
            state = read_cluster(copy).state
        except (Error, OSError):
            continue  # its own partition reports the damage
        ids |= {topic.name: topic.topic_id for topic in state.topics.values()}
    return ids


def carried_start(plan: PartitionPlan, directory: str) -> int | None:
    """The start of a plan's log, if the first segment in its output's directory begins before it."""
    start = plan["log_start_offset"]
    if start is None or not os.path.isdir(directory):
        return None
    bases = [int(name[:_DIGITS]) for name in os.listdir(directory) if _core.is_segment_file(name)]
    return start if bases and min(bases) < start else None


def with_log_end(
    plan: PartitionPlan, written: Sequence[str], directory: str, cut: str | None = None
) -> list[str]:
    """The summaries of a partition's written segments, up to the end of its log.

    A log may end after its last record: records expire or are deleted, and the segment that a broker
    appends to is empty. Without that segment, a broker would assign offsets a second time, so an empty one is
    written below `directory`. With `cut`, the log ends in the segment of this name, as after a broker's
    recovery.
    """
    start, end = plan["log_start_offset"], plan["next_offset"]
    # A broker would delete segments that end before the log's start.
    kept = [] if start is not None and end is not None and start >= end else list(written)
    log_end = _log_end(plan, cut)
    if log_end is None or any(json.loads(summary)["next_offset"] >= log_end for summary in reversed(kept)):
        return kept
    return kept + _core.PartitionWriter(os.path.join(directory, "end"), log_end).finish()


def _log_end(plan: PartitionPlan, cut: str | None) -> int | None:
    """The offset at which the log ends, by its batches or by the name of its last segment."""
    segments = [segment for segment in plan["segments"] if not segment["is_checkpoint"]]
    if cut is not None:
        return next((segment["base_offset"] for segment in segments if segment["file"] == cut), None)
    if not segments:
        return None
    last, end = segments[-1], plan["next_offset"]
    if end is None or not last["batches"]:
        return max(last["base_offset"], end or 0)
    return end


def log_start_checkpoint(written: Iterable[Carried]) -> dict[str, str]:
    """The `log-start-offset-checkpoint` of an output, by its name; nothing if no partition needs it."""
    starts = {
        (partition["topic"], partition["partition"]): partition["log_start_offset"]
        for partition in written
        if partition["log_start_offset"] is not None
    }
    return {LOG_START_OFFSET_CHECKPOINT: format_offset_checkpoint(starts)} if starts else {}
