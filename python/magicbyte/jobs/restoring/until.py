"""`restore --until`: where the logs ended at a time, or end by a file with offsets."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from magicbyte import _core
from magicbyte.errors import RefusedError

__all__ = ["Until", "read_until"]

_MOST_OFFSETS = (1 << 63) - 1

Offsets = dict[tuple[str, int], int]


@dataclass(frozen=True)
class Until:
    """The ends of logs."""

    time: int | None = None
    """Each log ends before the first batch with a later timestamp (ms), as with `serve --as-of`."""
    offsets: Offsets = field(default_factory=dict)
    """Or the offset (exclusive) at which a log ends, by topic and partition; others are not cut."""


def read_until(value: int | str | None) -> Until | None:
    """The value of `--until`: a time in ms, or the path of a file with offsets. The file is the output of
    `magicbyte offsets --json` (each log's end at that time), one as for `kafka-delete-records`, or a JSON
    object such as `{"orders-0": 150}`.

    Raises:
        RefusedError: the file has another form.
        OSError: it cannot be read, or is larger than 64 MiB.

    """
    if value is None:
        return None
    if isinstance(value, int):
        return Until(time=value)
    try:
        document = json.loads(_core.read_sidecar(value))
        offsets: Offsets = {}
        for place, offset in _offsets_of(document):
            if offsets.setdefault(place, offset) != offset:
                raise ValueError(f"{place[0]}-{place[1]} has two, {offsets[place]} and {offset}")
    except (ValueError, TypeError, LookupError, RecursionError) as error:
        raise RefusedError(
            f"{value} has no offsets ({error}): expected the output of `magicbyte offsets --json`, a file as"
            ' for kafka-delete-records, or an object such as {"orders-0": 150}'
        ) from None
    if not offsets:
        raise RefusedError(f"{value} has no offsets: nothing would be cut")
    return Until(offsets=offsets)


def _offsets_of(document: Any) -> Iterator[tuple[tuple[str, int], int]]:
    if isinstance(document, Mapping) and isinstance(document.get("offsets"), list):
        # Of several groups, each has the end of the log: it is the same one.
        for row in (*document["offsets"], *document.get("share_offsets", ())):
            if row["log_end_offset"] is not None:
                yield _entry(row["topic"], row["partition"], row["log_end_offset"])
    elif isinstance(document, Mapping) and isinstance(document.get("partitions"), list):
        for row in document["partitions"]:
            yield _entry(row["topic"], row["partition"], row["offset"])
    elif isinstance(document, Mapping):
        for name, offset in document.items():
            topic, _, partition = name.rpartition("-")
            if not topic or not partition.isdecimal():
                raise ValueError(f"{name!r} is not TOPIC-PARTITION")
            yield _entry(topic, int(partition), offset)
    else:
        raise TypeError("it is not an object")


def _entry(topic: Any, partition: Any, offset: Any) -> tuple[tuple[str, int], int]:
    is_whole = type(partition) is int and type(offset) is int
    if not isinstance(topic, str) or not is_whole or not 0 <= offset <= _MOST_OFFSETS:
        raise ValueError(f"{topic}-{partition}: {offset} is not an offset")
    return (topic, partition), offset
