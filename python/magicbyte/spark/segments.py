"""The table `segments`: one row per file of the log, from listing and survey; nothing is decoded."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pyarrow as pa

from magicbyte.jobs.run.plan import Planned
from magicbyte.model import Survey
from magicbyte.spark.schema import SEGMENTS

__all__ = ["segment_rows"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def segment_rows(plans: Iterable[Planned]) -> pa.RecordBatch:
    """Makes the rows of all partitions; `state` has the reason if a file is not read."""
    rows = [row for planned in plans for row in _rows_of(planned)]
    return pa.RecordBatch.from_pylist(rows, SEGMENTS)


def _rows_of(planned: Planned) -> Iterator[dict[str, Any]]:
    ignored = {one["file"]: one for one in planned.plan["ignored"]}
    for text in planned.surveys:
        survey = cast(Survey, json.loads(text))
        segment = survey["segment"]
        reason = ignored.pop(segment["file"], None)
        yield {
            **_partition_columns(planned),
            "segment": segment["file"],
            "baseOffset": segment["base_offset"],
            "size": segment["size"],
            "modified": _EPOCH + timedelta(milliseconds=segment["modified_ms"]),
            "firstOffset": survey["first_offset"],
            "lastOffset": survey["last_offset"],
            "batches": survey["batches"],
            "maxTimestamp": survey["max_timestamp"],
            "state": "read" if reason is None else f"ignored:{reason['reason']}",
        }
    for one in ignored.values():
        yield {
            **_partition_columns(planned),
            "segment": one["file"],
            "size": one["size"],
            "state": f"ignored:{one['reason']}",
        }


def _partition_columns(planned: Planned) -> dict[str, Any]:
    return {"topic": planned.plan["topic"], "partition": planned.plan["partition"]}
