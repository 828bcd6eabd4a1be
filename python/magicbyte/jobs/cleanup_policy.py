"""Partitions that `compact` may compact: those whose topic's `cleanup.policy` allows it.

A record without a key proves that its topic is not compacted, since a broker refuses one for a compacted
topic (`LogValidator`), and a cleaner would drop it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import TypedDict

from magicbyte.errors import RefusedError
from magicbyte.internal_topics.names import CLUSTER_METADATA
from magicbyte.jobs.find.cluster import Cluster
from magicbyte.jobs.run.engines import Engine
from magicbyte.jobs.run.plan import count_of
from magicbyte.jobs.run.progress import Progress
from magicbyte.log import PartitionLog
from magicbyte.model import PartitionListing

__all__ = ["LeftOut", "number_of", "select"]

_SHOWN = 5


class LeftOut(TypedDict):
    """A partition that a job leaves out."""

    topic: str
    partition: int
    reason: str


def select(
    listings: Sequence[PartitionListing],
    cluster: Cluster,
    engine: Engine,
    progress: Progress,
    *,
    all_topics: bool,
    max_decompressed_bytes: int,
) -> tuple[list[PartitionListing], list[LeftOut]]:
    """The partitions to compact, and the others with the reason.

    Where the policy is unknown, every record is read to see whether it has a key.

    Raises:
        RefusedError: if nothing is left, or the policy of a topic is unknown and it has records without a
            key.

    """
    chosen, unknown = [], []
    left_out: list[LeftOut] = []
    for listing in listings:
        topic = listing["topic"]
        policy, source = cluster.policy(topic)
        reason = None
        if topic == CLUSTER_METADATA:
            reason = "Kafka replaces this log by snapshots, it is never compacted"
        elif not all_topics and policy is None and source is None:
            unknown.append(listing)
        elif not all_topics and policy is None:
            reason = (
                "cleanup.policy is the brokers' default, which only their server.properties has: give that"
                " with --server-properties, or the policy with --topic-config"
            )
        elif not all_topics and "compact" not in re.split(r"\s*,\s*", (policy or "").strip()):
            reason = f"cleanup.policy={policy or '(empty)'} ({source})"
        if reason is None:
            chosen.append(listing)
        else:
            left_out.append(LeftOut(topic=topic, partition=listing["partition"], reason=reason))
    if not chosen:
        one = left_out[0]
        raise RefusedError(
            f"nothing to compact: {one['topic']}-{one['partition']}: {one['reason']}"
            f"{_more(len(left_out) - 1)}; --all-topics compacts any topic but __cluster_metadata"
        )
    _refuse_keyless(unknown, engine, progress, max_decompressed_bytes)
    return chosen, left_out


def _refuse_keyless(
    listings: Sequence[PartitionListing], engine: Engine, progress: Progress, max_decompressed_bytes: int
) -> None:
    listings = [listing for listing in listings if listing["segments"]]
    counts = engine.map(
        partial(_keyless, max_decompressed_bytes=max_decompressed_bytes),
        [listing["path"] for listing in listings],
        name=f"magicbyte keys: {count_of(len(listings), 'partition')}",
        sizes=[sum(segment["size"] for segment in listing["segments"]) for listing in listings],
        progress=progress,
    )
    found = [
        f"{one['topic']}-{one['partition']} ({count_of(count, 'record')})"
        for one, count in zip(listings, counts, strict=True)
        if count
    ]
    if found:
        raise RefusedError(
            f"records without a key, which compaction would drop, in {', '.join(found[:_SHOWN])}"
            f"{_more(len(found) - _SHOWN)}: so these topics are not compacted ones. Name those that are with"
            " --topic-config, or drop the records with --all-topics"
        )


def _more(count: int) -> str:
    return f" and {count:,} more" if count > 0 else ""


def _keyless(path: str, max_decompressed_bytes: int) -> int:
    """The number of a partition's records without a key. Ignores damage, which the job itself reports."""
    import pyarrow as pa

    try:
        log = PartitionLog(path, mode="PERMISSIVE", max_decompressed_bytes=max_decompressed_bytes)
        with pa.RecordBatchReader.from_stream(log.to_arrow(["key"])) as batches:
            return sum(batch.column(0).null_count for batch in batches)
    except OSError:
        return 0


def number_of(cluster: Cluster, topic: str, name: str, values: range) -> int | None:
    """A topic's config as a number; None if it is not set.

    Raises:
        RefusedError: if it is not one of `values`.

    """
    text = cluster.config(topic, name)
    if text is None:
        return None
    number = int(text) if re.fullmatch(r"[0-9]{1,19}", text) else -1
    if number not in values:
        raise RefusedError(
            f"{topic}: {name}={text[:40]}: expected a number from {values.start} to {values.stop - 1}"
        )
    return number
