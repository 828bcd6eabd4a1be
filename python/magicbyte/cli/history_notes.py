"""Notable facts of partitions' histories, and the distribution of their data over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from magicbyte.jobs.explain import irregularities
from magicbyte.model import Bin, PartitionHistory

__all__ = ["TimeSteps", "by_notability", "name_of", "notes_of", "time_steps"]


def name_of(history: PartitionHistory) -> str:
    """`topic-N`."""
    return f"{history['topic']}-{history['partition']}"


def notes_of(history: PartitionHistory) -> list[str]:
    """Notable facts of a partition, in a few words each, except facts that compaction explains."""
    outcomes = history["transaction_counts"]
    counted = [
        (outcomes["hanging"], "hanging transaction"),
        (outcomes["open"] - outcomes["hanging"], "open transaction"),
        (sum(history["anomaly_counts"].values()) - history["compacted_anomalies"], "anomaly"),
        (history["problem_count"], "problem"),
        (history["skipped_count"], "range of bytes in no batch"),
        (history["unknown_wrappers"], "wrapper that does not decode"),
        (history["step_back_count"], "step back in time"),
    ]
    plurals = {
        "anomaly": "anomalies",
        "range of bytes in no batch": "ranges of bytes in no batch",
        "wrapper that does not decode": "wrappers that do not decode",
        "step back in time": "steps back in time",
    }
    found = [(count, what) for count, what in counted if count > 0]
    return [f"{count:,} {what if count == 1 else plurals.get(what, f'{what}s')}" for count, what in found]


def by_notability(histories: Sequence[PartitionHistory]) -> list[PartitionHistory]:
    """Partitions with the most irregularities first, then those with other notes; otherwise in order."""
    return sorted(histories, key=lambda one: (-irregularities(one), not notes_of(one)))


class TimeSteps(NamedTuple):
    """Bytes of data, and records, by time, in steps of equal length; at least one."""

    start: int
    """Milliseconds since 1970 (inclusive)."""
    end: int
    """The maximum timestamp (inclusive)."""
    bytes: list[float]
    records: list[float]


def time_steps(bins: Sequence[Bin], count: int) -> TimeSteps | None:
    """Spreads each bin evenly from the maximum timestamp before it to its own; None without timestamps."""
    timed = [one for one in bins if one["max_timestamp"] >= 0]
    if not timed:
        return None
    start, end = timed[0]["max_timestamp"], max(one["max_timestamp"] for one in timed)
    width = max(1, end - start + 1) / count
    steps = TimeSteps(start, end, [0.0] * count, [0.0] * count)
    before = start
    for one in timed:
        until = max(before, one["max_timestamp"])
        first, last = (min(count - 1, int((time - start) / width)) for time in (before, until))
        share = 1 / (last - first + 1)
        for at in range(first, last + 1):
            steps.bytes[at] += (one["bytes"] - one["control_bytes"]) * share
            steps.records[at] += one["records"] * share
        before = until
    return steps
