"""Dead letters with their source records: a table for `explain`, fields of lines for `records`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from magicbyte import _core
from magicbyte.cli.tables import print_table
from magicbyte.cli.terminal import print_line, print_problem
from magicbyte.cli.times import time_text
from magicbyte.jobs.source_records import SourceRecord, SourceRecords, letters_of

if TYPE_CHECKING:
    from magicbyte.jobs.dead_letters import DeadLettersReport

__all__ = ["joined_lines", "print_dead_letters"]

_SHOWN = 20


_COLUMNS = (
    "dead letter",
    "offset",
    "time",
    "of",
    "deliveries",
    "source",
    "source offset",
    "state",
    "key",
    "value",
    "why",
)


def print_dead_letters(report: DeadLettersReport) -> None:
    """Prints the first dead letters, and the counts of all."""
    print_line()
    counts = ", ".join(f"{count:,} {state}" for state, count in report["counts"].items() if count)
    total = sum(report["counts"].values())
    print_line(
        f"{total:,} dead letters; source records: {counts or 'none'}; different: {report['different']:,}"
    )
    print_table(
        _COLUMNS,
        [
            [
                f"{one['topic']}-{one['partition']}",
                one["offset"],
                time_text(one["timestamp"]),
                one["group"] or one["connector"],
                one["delivery_count"],
                _partition_name(one["source"]),
                one["source"]["offset"],
                one["source"]["state"],
                one["source"]["key"],
                one["source"]["value"],
                one["message"],
            ]
            for one in report["dead_letters"][:_SHOWN]
        ],
    )
    if total > _SHOWN:
        print_line(f"... and {total - _SHOWN:,} more: --json lists the first {_core.LISTED:,}")
    for problem in report["problems"]:
        print_problem(f"magicbyte: {problem}")


def _partition_name(source: SourceRecord) -> str | None:
    return None if source["topic"] is None else f"{source['topic']}-{source['partition']}"


def joined_lines(writer: _core.LineWriter, rows: pa.RecordBatch, records: SourceRecords) -> Iterator[bytes]:
    """The lines of rows as JSON; dead letters get the field `source`."""
    lines = writer.lines(rows).splitlines(keepends=True)
    letters = letters_of(rows)
    for letter, source in zip(letters, records.join(letters), strict=True):
        field = f', "source": {json.dumps(source)}}}\n'
        lines[letter.row] = lines[letter.row].removesuffix(b"}\n") + field.encode()
    yield from lines
