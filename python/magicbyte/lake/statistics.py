"""Statistics of a data file, as a Delta table has them in its log: readers skip files by them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pyarrow.parquet as pq

__all__ = ["file_statistics"]


def file_statistics(path: str) -> str:
    """The statistics of a local Parquet file, from its footer, as JSON text."""
    footer = pq.read_metadata(path)
    least: dict[str, Any] = {}
    most: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for name in ("partition", "offset", "timestamp"):
        at = footer.schema.names.index(name)
        found = [footer.row_group(group).column(at).statistics for group in range(footer.num_row_groups)]
        if not all(one is not None and one.has_null_count for one in found):
            continue
        nulls[name] = sum(one.null_count for one in found)
        with_values = [one for one in found if one.has_min_max]
        if with_values and all(one.has_min_max or one.null_count == one.num_values for one in found):
            low, high = min(one.min_raw for one in with_values), max(one.max_raw for one in with_values)
            if name != "timestamp":
                least[name], most[name] = low, high
            else:  # in milliseconds, which these times are
                least[name], most[name] = _time(low // 1000), _time(high // 1000)
    return json.dumps(
        {"numRecords": footer.num_rows, "minValues": least, "maxValues": most, "nullCount": nulls}
    )


def _time(millis: int) -> str:
    seconds, rest = divmod(millis, 1000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:03d}Z"
