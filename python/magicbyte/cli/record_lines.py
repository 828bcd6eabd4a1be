"""The JSON lines of `magicbyte records`: rows of the tables `records` and `batches`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from magicbyte import _core
from magicbyte.cli.exits import CLEAN, PROBLEMS
from magicbyte.cli.internal_records import decoder_for
from magicbyte.cli.options import TO_TEXT
from magicbyte.cli.selection import Selection
from magicbyte.cli.terminal import json_line, print_data, print_problem
from magicbyte.enums import IsolationLevel
from magicbyte.errors import Error
from magicbyte.jobs.columns import RECORDS_WITH_METADATA
from magicbyte.jobs.engines import LocalEngine
from magicbyte.jobs.plan import Planned, Range, plan_partitions, tasks_of
from magicbyte.jobs.reading import ReadOptions, read_chunk
from magicbyte.model import PartitionListing

__all__ = ["print_records"]

_TIMESTAMP_TYPES = {-1: "NoTimestampType", 0: "CreateTime", 1: "LogAppendTime"}


def print_records(
    listings: Sequence[PartitionListing],
    selection: Selection,
    *,
    batches: bool,
    key_format: str,
    value_format: str,
    decode: str,
    isolation_level: IsolationLevel,
    max_decompressed_bytes: int,
) -> int:
    """Prints the data records (or batches) of partitions, in order; returns the exit code."""

    def range_of(planned: Planned) -> Range:
        start = selection.start_offset
        if selection.start_timestamp is not None:
            first = _core.offset_for_timestamp(planned.text, selection.start_timestamp)
            start = max(start or 0, (planned.plan["next_offset"] or 0) if first is None else first)
        return start, selection.end_offset

    plans = plan_partitions(listings, LocalEngine(), isolation_level=isolation_level, bounds=range_of)
    # `timestamp` is in microseconds, which do not reach every time; `timestampMillis` always holds it.
    columns = () if batches else tuple(name for name in RECORDS_WITH_METADATA if name != "timestamp")
    rows = _Rows(
        plans,
        selection,
        ReadOptions(columns, batches, max_decompressed_bytes),
        TO_TEXT[key_format],
        TO_TEXT[value_format],
        decode,
    )
    for row in islice(rows.batches() if batches else rows.records(), selection.max_records):
        print_data(json_line(row))
    return PROBLEMS if rows.problems else CLEAN


@dataclass
class _Rows:
    """The rows to print; reports the problems it meets on standard error and counts them."""

    plans: Sequence[Planned]
    selection: Selection
    options: ReadOptions
    key_text: Callable[[bytes], str]
    value_text: Callable[[bytes], str]
    decode: str
    problems: int = 0

    def _rows_of(self, table: str) -> Iterator[dict[str, Any]]:
        for chunk in (chunk for task in tasks_of(self.plans, 1) for chunk in task.chunks):
            for item in read_chunk(chunk, self.options):
                if isinstance(item, str):
                    continue
                if item.table == table:
                    yield from item.batch.to_pylist()
                elif item.table == "problems":
                    for row in item.batch.to_pylist():
                        self.problems += 1
                        print_problem(f"magicbyte: {row['segment']} at byte {row['start']}: {row['message']}")

    def records(self) -> Iterator[dict[str, Any]]:
        for row in self._rows_of("records"):
            timestamp = row.pop("timestampMillis")
            if self.selection.includes(row["offset"], timestamp):
                yield self._record(row, timestamp)

    def _record(self, row: dict[str, Any], timestamp: int) -> dict[str, Any]:
        decoded = self._decoded(row)
        key, value = row.pop("key"), row.pop("value")
        headers = row.pop("headers") or []
        position = {name: row.pop(name) for name in ("topic", "partition", "offset")}
        return {
            **position,
            "timestamp": timestamp,
            "timestampType": _TIMESTAMP_TYPES[row.pop("timestampType")],
            "key": None if key is None else self.key_text(key),
            "value": None if value is None else self.value_text(value),
            "headers": [
                {
                    "key": header["key"],
                    "value": None if header["value"] is None else self.value_text(header["value"]),
                }
                for header in headers
            ],
            **row,
            **decoded,
        }

    def _decoded(self, row: dict[str, Any]) -> dict[str, Any]:
        """The fields of a decoded record of an internal topic; its key and value replace the bytes."""
        decoder = decoder_for(self.decode, row["topic"])
        if decoder is None:
            return {}
        try:
            decoded = decoder(row["key"], row["value"])
        except LookupError as unknown:
            return {"recordType": str(unknown)}
        except Error as error:
            self.problems += 1
            print_problem(f"magicbyte: record at offset {row['offset']}: {error}")
            return {"error": str(error)}
        value = None if row["value"] is None else decoded.value
        return {"recordType": decoded.name, "key": decoded.key, "value": value}

    def batches(self) -> Iterator[dict[str, Any]]:
        for row in self._rows_of("batches"):
            row["timestampType"] = _TIMESTAMP_TYPES[row["timestampType"]]
            if self.selection.may_include(row["baseOffset"], row["lastOffset"], row["maxTimestamp"]):
                yield row
