"""`dump --format jsonl`: one JSON object a data record, or a batch."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from magicbyte import _core
from magicbyte.cli.decode import decoder_for
from magicbyte.cli.exits import CLEAN, PROBLEMS
from magicbyte.cli.selection import Selection
from magicbyte.cli.sidecars import read_sidecar
from magicbyte.cli.terminal import json_line, print_data, print_problem
from magicbyte.enums import IsolationLevel
from magicbyte.errors import Error
from magicbyte.jobs.columns import RECORDS_WITH_METADATA
from magicbyte.jobs.engines import LocalEngine
from magicbyte.jobs.plan import Planned, Range, plan_partitions, tasks_of
from magicbyte.jobs.reading import ReadOptions, read_chunk
from magicbyte.model import PartitionListing

__all__ = ["dump_jsonl", "dump_sidecars_jsonl"]

Encode = Callable[[bytes], str]

_ENCODERS: dict[str, Encode] = {
    "utf-8": lambda value: value.decode("utf-8", "replace"),
    "hex": bytes.hex,
    "base64": lambda value: base64.b64encode(value).decode("ascii"),
}
_TIMESTAMP_TYPES = {-1: "NoTimestampType", 0: "CreateTime", 1: "LogAppendTime"}


def dump_jsonl(
    listings: Sequence[PartitionListing],
    selection: Selection,
    *,
    key_format: str,
    value_format: str,
    decode: str,
    isolation_level: IsolationLevel,
    no_records: bool,
    max_decompressed_bytes: int,
) -> int:
    """Prints the data records (or batches) of partitions, in order; returns the exit code."""

    def bounds(planned: Planned) -> Range:
        start = selection.start_offset
        if selection.start_timestamp is not None:
            first = _core.offset_for_timestamp(planned.text, selection.start_timestamp)
            start = max(start or 0, (planned.plan["next_offset"] or 0) if first is None else first)
        return start, selection.end_offset

    plans = plan_partitions(listings, LocalEngine(), isolation_level=isolation_level, bounds=bounds)
    # `timestamp` would be rounded or null where microseconds do not reach; milliseconds always do.
    columns = () if no_records else tuple(name for name in RECORDS_WITH_METADATA if name != "timestamp")
    lines = _Lines(
        plans,
        selection,
        ReadOptions(columns, no_records, max_decompressed_bytes),
        _ENCODERS[key_format],
        _ENCODERS[value_format],
        decode,
    )
    rows = lines.batches() if no_records else lines.records()
    for row in islice(rows, selection.max_records):
        print_data(json_line(row))
    return PROBLEMS if lines.problems else CLEAN


def dump_sidecars_jsonl(files: Sequence[str]) -> int:
    """Prints the entries of indexes, snapshots and checkpoints; returns the exit code."""
    problems = 0
    for path in files:
        entries, error = read_sidecar(path)
        for entry in entries:
            print_data(json_line({"file": os.path.basename(path), **entry}))
        if error is not None:
            problems += 1
            place = "" if isinstance(error, OSError) else f"{path}: "
            print_problem(f"magicbyte: {place}{error}")
    return PROBLEMS if problems else CLEAN


@dataclass
class _Lines:
    """The rows to print; counts the problems met on the way and says them on standard error."""

    plans: Sequence[Planned]
    selection: Selection
    options: ReadOptions
    encode_key: Encode
    encode_value: Encode
    decode: str
    problems: int = 0

    def _rows(self, table: str) -> Iterator[dict[str, Any]]:
        for chunk in (chunk for task in tasks_of(self.plans, 1) for chunk in task.chunks):
            for item in read_chunk(chunk, self.options):
                if isinstance(item, str):
                    continue
                if item.table == table:
                    yield from item.batch.to_pylist()
                elif item.table == "problems":
                    for row in item.batch.to_pylist():
                        self.problems += 1
                        print_problem(f"{row['segment']} at {row['start']}: {row['message']}")

    def records(self) -> Iterator[dict[str, Any]]:
        for row in self._rows("records"):
            timestamp = row.pop("timestampMillis")
            if self.selection.takes(row["offset"], timestamp):
                yield self._record(row, timestamp)

    def _record(self, row: dict[str, Any], timestamp: int) -> dict[str, Any]:
        facts = self._decoded(row)
        key, value = row.pop("key"), row.pop("value")
        headers = row.pop("headers") or []
        place = {name: row.pop(name) for name in ("topic", "partition", "offset")}
        return {
            **place,
            "timestamp": timestamp,
            "timestampType": _TIMESTAMP_TYPES[row.pop("timestampType")],
            "key": None if key is None else self.encode_key(key),
            "value": None if value is None else self.encode_value(value),
            "headers": [
                {
                    "key": one["key"],
                    "value": None if one["value"] is None else self.encode_value(one["value"]),
                }
                for one in headers
            ],
            **row,
            **facts,
        }

    def _decoded(self, row: dict[str, Any]) -> dict[str, Any]:
        """A record of an internal topic, decoded: its key and value then take the place of the bytes."""
        decoder = decoder_for(self.decode, row["topic"])
        if decoder is None:
            return {}
        try:
            decoded = decoder(row["key"], row["value"])
        except LookupError as unknown:
            return {"recordType": str(unknown)}
        except Error as error:
            self.problems += 1
            print_problem(f"record at offset {row['offset']}: {error}")
            return {"error": str(error)}
        value = None if row["value"] is None else decoded.value
        return {"recordType": decoded.name, "key": decoded.key, "value": value}

    def batches(self) -> Iterator[dict[str, Any]]:
        for row in self._rows("batches"):
            row["timestampType"] = _TIMESTAMP_TYPES[row["timestampType"]]
            if self.selection.may_take(row["baseOffset"], row["lastOffset"], row["maxTimestamp"]):
                yield row
