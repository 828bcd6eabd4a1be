"""The lines of `magicbyte records`: rows of the tables `records` and `batches`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import pyarrow as pa

from magicbyte import _core
from magicbyte.cli.exits import CLEAN, PROBLEMS
from magicbyte.cli.internal_records import decoder_for
from magicbyte.cli.selection import Selection
from magicbyte.cli.terminal import json_line, print_bytes, print_data, print_problem
from magicbyte.enums import IsolationLevel
from magicbyte.errors import Error
from magicbyte.internal_topics.decode import Decode
from magicbyte.jobs.columns import RECORDS_WITH_METADATA
from magicbyte.jobs.engines import LocalEngine
from magicbyte.jobs.plan import Planned, Range, plan_partitions
from magicbyte.jobs.reading import ReadOptions, read_chunk
from magicbyte.model import PartitionListing

__all__ = ["print_records"]

_TIMESTAMP_TYPES = {-1: "NoTimestampType", 0: "CreateTime", 1: "LogAppendTime"}
# `timestamp` is in microseconds, which do not reach every time; `timestampMillis` always holds it.
_COLUMNS = tuple(name for name in RECORDS_WITH_METADATA if name != "timestamp")


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
    reading = _Reading(
        selection,
        ReadOptions(
            () if batches else _COLUMNS,
            batches,
            max_decompressed_bytes,
            start_timestamp=None if batches else selection.start_timestamp,
            end_timestamp=None if batches else selection.end_timestamp,
        ),
    )
    if batches:
        for row in islice(reading.batches(plans), selection.max_records):
            print_data(json_line(row))
    else:
        writer = _core.LineWriter(key_format=key_format, value_format=value_format)
        for topic, records in reading.records(plans):
            decoder = decoder_for(decode, topic)
            if decoder is None:
                print_bytes(writer.lines(records))
            else:
                for row in reading.decoded(records, writer, decoder):
                    print_data(json_line(row))
    return PROBLEMS if reading.problems else CLEAN


@dataclass
class _Reading:
    """The rows to print; reports the problems it meets on standard error and counts them."""

    selection: Selection
    options: ReadOptions
    problems: int = 0

    def _rows_of(self, table: str, planned: Planned) -> Iterator[pa.RecordBatch]:
        for chunk in planned.plan["chunks"]:
            for item in read_chunk(json.dumps(chunk), self.options):
                if isinstance(item, str):
                    continue
                if item.table == table:
                    yield item.batch
                elif item.table == "problems":
                    for row in item.batch.to_pylist():
                        self._problem(f"{row['segment']} at byte {row['start']}: {row['message']}")

    def _problem(self, message: str) -> None:
        self.problems += 1
        print_problem(f"magicbyte: {message}")

    def records(self, plans: Sequence[Planned]) -> Iterator[tuple[str, pa.RecordBatch]]:
        """The selected records of each partition, with the name of its topic."""
        left = self.selection.max_records
        for planned in plans:
            if left == 0:
                return
            for records in self._rows_of("records", planned):
                chosen = records if left is None else records.slice(0, left)
                yield planned.listing["topic"], chosen
                if left is not None:
                    left -= chosen.num_rows
                    if left == 0:
                        return

    def decoded(
        self, records: pa.RecordBatch, writer: _core.LineWriter, decoder: Decode
    ) -> Iterator[dict[str, Any]]:
        """Records of an internal topic: the decoded key and value replace the bytes."""
        payloads = zip(*(records.column(name).to_pylist() for name in ("key", "value")), strict=True)
        for line, (key, value) in zip(writer.lines(records).splitlines(), payloads, strict=True):
            row = json.loads(line)
            try:
                decoded = decoder(key, value)
            except LookupError as unknown:
                yield row | {"recordType": str(unknown)}
            except Error as error:
                self._problem(f"record at offset {row['offset']}: {error}")
                yield row | {"error": str(error)}
            else:
                shown = None if value is None else decoded.value
                yield row | {"recordType": decoded.name, "key": decoded.key, "value": shown}

    def batches(self, plans: Sequence[Planned]) -> Iterator[dict[str, Any]]:
        """The batches that can hold selected records."""
        for planned in plans:
            for batch in self._rows_of("batches", planned):
                for row in batch.to_pylist():
                    row["timestampType"] = _TIMESTAMP_TYPES[row["timestampType"]]
                    if self.selection.may_include(row["baseOffset"], row["lastOffset"], row["maxTimestamp"]):
                        yield row
