"""The options of `magicbyte records`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import click

from magicbyte.cli.options import BYTE_FORMATS, InternalTopics
from magicbyte.cli.selection import Selection
from magicbyte.enums import SchemaFormat
from magicbyte.options.declare import option
from magicbyte.options.shared import Connection, DeadLetters, Decoding, Isolation
from magicbyte.options.typed import Column, Registry
from magicbyte.options.typed_rules import asks_for_schemas
from magicbyte.options.values import COUNT, EXPRESSION, Kind, OneOf, Repeated

__all__ = ["RecordOptions"]

_FORMATS = OneOf({name: name for name in (*BYTE_FORMATS, "json", "avro", "protobuf")})


@dataclass(frozen=True, kw_only=True)
class RecordOptions(Selection, Registry, InternalTopics, DeadLetters, Isolation, Connection, Decoding):
    """The records to print, and the form of their lines."""

    follow: bool = option("Of a running cluster: go on with new records until interrupted.", default=False)
    tail: int | None = option("Only the last N records of each partition.", default=None, kind=COUNT)
    keys: tuple[str, ...] = option(
        "Only records with this key.", default=(), flag="--key", kind=Repeated("KEY")
    )
    grep: str | None = option(
        "Only records whose key or value matches this regular expression (Rust's crate regex).",
        default=None,
        kind=Kind("REGEX"),
    )
    where: str | None = option(
        "Only records for which this SQL expression is true.", default=None, kind=EXPRESSION
    )
    batches: bool = option("Print one object per batch instead of one per record.", default=False)
    format: str = option(
        "csv has the columns of the JSON lines; an empty field is null.",
        default="jsonl",
        kind=OneOf({"jsonl": "jsonl", "csv": "csv"}),
    )
    template: str | None = option(
        "Print with a format string of kcat; see above.", default=None, flag="-f", kind=Kind("FORMAT")
    )
    nulls: bool = option("With -f, print NULL for a key or value that is null.", default=False, flag="-Z")
    key_format: str = option("The format of keys, including --key.", default="utf-8", kind=_FORMATS)
    value_format: str = option(
        "The format of values and header values; utf-8 shows invalid bytes as U+FFFD, json embeds documents.",
        default="utf-8",
        kind=_FORMATS,
    )

    @property
    def by_schema(self) -> Mapping[Column, SchemaFormat]:
        """The columns that are decoded by schemas, with their formats: JSON if an option asks for that."""
        given: dict[Column, str] = {"key": self.key_format, "value": self.value_format}
        return {
            column: cast("SchemaFormat", format)
            for column, format in given.items()
            if format in ("avro", "protobuf") or (format == "json" and asks_for_schemas(self, column))
        }

    def check(self) -> None:
        """Raises UsageError for options that contradict each other."""
        by_schema = self.by_schema
        one_record = self.keys or self.grep is not None or self.tail is not None or self.where is not None
        as_text = self.format != "jsonl" or self.template is not None
        with_schemas = by_schema or asks_for_schemas(self, "key") or asks_for_schemas(self, "value")
        if self.batches and (one_record or as_text or with_schemas):
            raise click.UsageError("--batches goes with ranges, not with options about single records")
        if self.follow and (self.batches or self.end_offset is not None or self.end_timestamp is not None):
            raise click.UsageError("--follow has no end, and is for records")
        if self.template is not None and self.format != "jsonl":
            raise click.UsageError("-f and --format exclude each other")
        if self.nulls and self.template is None:
            raise click.UsageError("-Z needs -f")
        if self.decode not in ("auto", "none") and as_text:
            raise click.UsageError("--decode is for JSON lines")
        if self.dead_letters and (self.batches or as_text or with_schemas):
            raise click.UsageError("--dead-letters is for JSON lines of records without schemas")
        if self.keys and "key" in by_schema:
            raise click.UsageError(f"--key is not for keys in the format {self.key_format}: see --where")
