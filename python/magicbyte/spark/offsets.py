"""The start and end of a read: offsets and times, in the terms of Spark's Kafka source.

`startingTimestamp` takes precedence over `startingOffsetsByTimestamp`, and that over `startingOffsets`; the
options for the end likewise. Ends are exclusive. A time means the first offset whose record has this
timestamp or a later one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from magicbyte import _core
from magicbyte.jobs.run.plan import Planned

__all__ = [
    "EARLIEST",
    "LATEST",
    "Edge",
    "TopicPartition",
    "check_named",
    "check_order",
    "ending_edge",
    "log_end",
    "log_start",
    "no_record_at",
    "offsets_from_json",
    "offsets_to_json",
    "resolve_end",
    "resolve_start",
    "starting_edge",
]

EARLIEST = -2
LATEST = -1

Get = Callable[[str], str | None]
TopicPartition = tuple[str, int]
"""Topic and partition."""


@dataclass(frozen=True)
class Edge:
    """One end of a read. At most one of the three is set; without any, that end of the log."""

    option: str
    timestamp: int | None = None
    """Milliseconds, for all partitions."""
    timestamps: Mapping[TopicPartition, int] | None = None
    """Milliseconds, for each partition."""
    offsets: Mapping[TopicPartition, int] | None = None
    latest: bool = False
    """True if a stream starts at the end of the log."""
    strict: bool = True
    """True if a time after the last record is an error; otherwise it means the end of the log."""

    @property
    def named(self) -> Mapping[TopicPartition, int] | None:
        """The partitions that the option names, if it names any."""
        return self.timestamps if self.timestamps is not None else self.offsets


def starting_edge(get: Get, *, strict: bool, streaming: bool = False) -> Edge:
    """Parses the options for the start. By default, a stream starts at the end of the log."""
    if streaming:
        return _edge(get, "starting", "latest", ("earliest", "latest"), strict=strict)
    edge = _edge(get, "starting", "earliest", ("earliest",), strict=strict)
    if edge.offsets and LATEST in edge.offsets.values():
        raise ValueError("startingOffsets cannot be latest (-1) in a batch query")
    return edge


def ending_edge(get: Get) -> Edge:
    """Parses the options for the end."""
    edge = _edge(get, "ending", "latest", ("latest",), strict=False)
    if edge.offsets and EARLIEST in edge.offsets.values():
        raise ValueError("endingOffsets cannot be earliest (-2) in a batch query")
    return edge


def _edge(get: Get, side: str, default: str, words: tuple[str, ...], *, strict: bool) -> Edge:
    timestamp = get(f"{side}Timestamp")
    if timestamp is not None:
        if not timestamp.strip().lstrip("-").isdecimal():
            raise ValueError(f"{side}Timestamp must be milliseconds since 1970, not {timestamp!r}")
        return Edge(f"{side}Timestamp", timestamp=int(timestamp), strict=strict)
    by_timestamp = get(f"{side}OffsetsByTimestamp")
    if by_timestamp is not None:
        option = f"{side}OffsetsByTimestamp"
        return Edge(option, timestamps=_numbers(option, by_timestamp), strict=strict)
    option = f"{side}Offsets"
    text = (get(option) or default).strip()
    if text.lower() in words:
        return Edge(option, latest=side == "starting" and text.lower() == "latest")
    if text.lower() in ("earliest", "latest"):
        raise ValueError(f"{option} cannot be {text.lower()} in a batch query")
    offsets = _numbers(option, text)
    if min(offsets.values(), default=0) < EARLIEST:
        raise ValueError(f"{option}: offsets are not below -2 (earliest), but in {text!r}")
    return Edge(option, offsets=offsets)


def _numbers(option: str, text: str) -> dict[TopicPartition, int]:
    try:
        numbers = offsets_from_json(json.loads(text))
        return {partition: _whole(number) for partition, number in numbers.items()}
    except (AttributeError, TypeError, ValueError):
        raise ValueError(f'{option} must look like {{"topicA":{{"0":23,"1":42}}}}, not {text!r}') from None


def _whole(number: object) -> int:
    if isinstance(number, float) and number.is_integer():  # as Spark's source takes them
        return int(number)
    if not isinstance(number, int) or isinstance(number, bool):
        raise TypeError(number)
    return number


def check_named(edge: Edge, partitions: Iterable[TopicPartition]) -> None:
    """Checks Spark's rule that an option which names partitions names exactly those that are read."""
    if edge.named is None:
        return
    read = set(partitions)
    if read != set(edge.named):
        raise ValueError(
            f"{edge.option} must name exactly the partitions that are read (offsets: -2 is earliest, "
            f"-1 latest); named: {_names(edge.named)}; read: {_names(read)}"
        )


def check_order(partition: TopicPartition, start: int, end: int) -> None:
    """Checks Spark's rule that a query does not start after its end (exclusive)."""
    if start > end:
        raise ValueError(
            f"{partition[0]}-{partition[1]}: the query starts at offset {start}, after its end, offset {end}"
        )


def _names(partitions: Iterable[TopicPartition]) -> str:
    return ", ".join(f"{topic}-{number}" for topic, number in sorted(partitions))


def resolve_start(edge: Edge, planned: Planned, end: int) -> int | None:
    """The first offset to read; None for the start of the log. `end` (exclusive) is the end of the read."""
    partition = _topic_partition(planned)
    if edge.offsets is not None:
        requested = edge.offsets[partition]
        if requested == LATEST:
            return end
        return None if requested == EARLIEST else requested
    if edge.latest:
        return end
    time = _time(edge, partition)
    if time is None:
        return None
    if edge.strict and _core.offset_for_timestamp(planned.text, time) is None:
        raise no_record_at(edge, partition, time)
    offset = _core.start_for_timestamp(planned.text, time)
    return end if offset is None else offset


def no_record_at(edge: Edge, partition: TopicPartition, time: int) -> ValueError:
    """The error for a start after the last record of a partition."""
    return ValueError(
        f"{edge.option}: {partition[0]}-{partition[1]} has no record at or after {time}; "
        "startingOffsetsByTimestampStrategy=latest reads nothing in that case"
    )


def resolve_end(edge: Edge, planned: Planned) -> int | None:
    """The offset after the last offset to read; None for the end of the log."""
    partition = _topic_partition(planned)
    if edge.offsets is not None:
        return None if edge.offsets[partition] == LATEST else edge.offsets[partition]
    time = _time(edge, partition)
    return None if time is None else _core.offset_for_timestamp(planned.text, time)


def _topic_partition(planned: Planned) -> TopicPartition:
    return planned.plan["topic"], planned.plan["partition"]


def _time(edge: Edge, partition: TopicPartition) -> int | None:
    return edge.timestamp if edge.timestamps is None else edge.timestamps[partition]


def log_end(planned: Planned) -> int:
    """The offset after the last readable offset; with `read_committed`, the last stable offset."""
    plan = planned.plan
    committed = plan["isolation_level"] == "read_committed"
    end = plan["last_stable_offset"] if committed else plan["next_offset"]
    if end is None:  # without batches, as after retention, a log continues at its last segment's base offset
        return plan["segments"][-1]["base_offset"] if plan["segments"] else 0
    return end


def log_start(planned: Planned) -> int:
    """The first offset that retention has left."""
    # A renamed segment may begin before the offset in its name.
    starts = [segment["base_offset"] for segment in planned.listing["segments"][:1]]
    if planned.plan["first_offset"] is not None:
        starts.append(planned.plan["first_offset"])
    return min(starts, default=0)


def offsets_from_json(tree: Mapping[str, Mapping[str, int]]) -> dict[TopicPartition, int]:
    """Parses offsets in the form of Spark's Kafka source: `{"topicA":{"0":23,"1":42}}`."""
    return {
        (topic, int(partition)): offset
        for topic, partitions in tree.items()
        for partition, offset in partitions.items()
    }


def offsets_to_json(offsets: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    """The inverse of `offsets_from_json`. The order is fixed, since Spark compares the texts."""
    tree: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        tree.setdefault(topic, {})[str(partition)] = offset
    return tree
