"""The lines of `magicbyte records`: rows of the tables `records` and `batches`."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from magicbyte import _core
from magicbyte.cli.dead_letters import joined_lines
from magicbyte.cli.exits import exit_code
from magicbyte.cli.internal_records import HIDDEN, decoder_for
from magicbyte.cli.record_options import RecordOptions
from magicbyte.cli.record_reading import Found, Reader, Select
from magicbyte.cli.terminal import is_terminal, json_line, print_bytes, print_data
from magicbyte.cli.window_fields import csv_header, windowed_lines
from magicbyte.errors import Error
from magicbyte.expressions.record_filter import RecordFilter
from magicbyte.internal_topics.decode import Decoder
from magicbyte.jobs.run.columns import RECORDS_WITH_METADATA
from magicbyte.jobs.run.reading import ReadOptions, no_rows

if TYPE_CHECKING:
    from magicbyte.cli.typed_text import TypedText
    from magicbyte.jobs.source_records import SourceRecords

__all__ = ["Lines", "lines_of", "print_batches", "print_records"]

_TIMESTAMP_TYPES = {-1: "NoTimestampType", 0: "CreateTime", 1: "LogAppendTime"}
# `timestamp` is in microseconds, which do not reach every time; `timestampMillis` always holds it.
_COLUMNS = tuple(name for name in RECORDS_WITH_METADATA if name != "timestamp")


@dataclass(frozen=True)
class Lines:
    """The format of records as lines: see `LineWriter`."""

    format: str
    template: str | None
    key_format: str
    value_format: str
    null: str
    decode: str
    """The decoder of internal topics, for JSON lines only."""
    show_secrets: bool
    """True if decoded records include passwords and keys."""

    def writer(self) -> _core.LineWriter:
        """Writes lines for standard output.

        Raises:
            ValueError: the template is malformed, or the formats do not go together.

        """
        return _core.LineWriter(
            format=self.format,
            template=self.template,
            key_format=self.key_format,
            value_format=self.value_format,
            visible=is_terminal(),
            null=self.null,
        )

    def decoder(self, topic: str) -> Decoder | None:
        """The decoder for the records of a topic."""
        is_json = self.format == "jsonl" and self.template is None
        return decoder_for(self.decode, topic, secrets=self.show_secrets) if is_json else None


def lines_of(given: RecordOptions, by_schema: Collection[str]) -> Lines:
    """The form of the lines; the columns `by_schema` are JSON, of which a template has the text."""
    formats = {"key": given.key_format, "value": given.value_format}
    formats |= dict.fromkeys(by_schema, "json" if given.template is None else "utf-8")
    return Lines(
        given.format,
        given.template,
        formats["key"],
        formats["value"],
        "NULL" if given.nulls else "",
        given.decode,
        given.show_secrets,
    )


def print_records(
    found: Found,
    given: RecordOptions,
    lines: Lines,
    writer: _core.LineWriter,
    *,
    where: RecordFilter | None,
    filters: Sequence[Select],
    typed: TypedText | None,
    sources: SourceRecords | None,
) -> int:
    """Prints the selected records of partitions, in order; returns the exit code.

    With `sources`, dead letters are joined to their source records.
    """
    options = ReadOptions(_COLUMNS, max_decompressed_bytes=given.max_decompressed_bytes, where=where)
    reader = Reader(found, given, given.isolation_level, options, filters, given.tail, follow=given.follow)
    windows = () if typed is None or lines.template is not None else typed.windows
    is_csv = lines.format == "csv"
    header = writer.header(no_rows(options.records_schema))
    print_bytes(csv_header(header, windows) if is_csv else header)
    for topic, records in reader.records():
        if typed is not None:
            for piece in typed.of_topic(topic, reader.problem).replace(records, reader.problem):
                if windows:
                    print_bytes(b"".join(windowed_lines(writer, piece, is_csv=is_csv)))
                else:
                    print_bytes(writer.lines(piece.rows))
            continue
        decoder = lines.decoder(topic)
        if decoder is None and sources is not None:
            print_bytes(b"".join(joined_lines(writer, records, sources)))
        elif decoder is None:
            print_bytes(writer.lines(records))
        else:
            for row in _decoded(records, writer, decoder, reader):
                print_data(json_line(row))
    return exit_code(reader.problems)


def _decoded(
    records: pa.RecordBatch, writer: _core.LineWriter, decoder: Decoder, reader: Reader
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
            reader.problem(f"record at offset {row['offset']}: {error}")
            if decoder.hides(value):
                row |= {name: HIDDEN for name in ("value", "invalidValue") if name in row}
            yield row | {"error": str(error)}
        else:
            shown = None if value is None else decoded.value
            row |= {"recordType": decoded.name, "key": decoded.key, "value": shown}
            yield {name: cell for name, cell in row.items() if name not in ("invalidKey", "invalidValue")}


def print_batches(found: Found, given: RecordOptions) -> int:
    """Prints the batches that can hold records in range; returns the exit code."""
    options = ReadOptions(batches=True, max_decompressed_bytes=given.max_decompressed_bytes)
    reader = Reader(found, given, given.isolation_level, options)
    rows = (row for batch in reader.batches() for row in batch.to_pylist())
    chosen = (
        row for row in rows if given.may_include(row["baseOffset"], row["lastOffset"], row["maxTimestamp"])
    )
    for row in islice(chosen, given.max_records):
        print_data(json_line(row | {"timestampType": _TIMESTAMP_TYPES[row["timestampType"]]}))
    return exit_code(reader.problems)
