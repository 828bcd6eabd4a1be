"""`magicbyte dump`"""

from __future__ import annotations

import os

import click

from magicbyte.cli import options

__all__ = ["dump"]

_VALUE_FORMAT = click.Choice(["utf-8", "hex", "base64"])


@click.command()
@click.argument("source", metavar="SRC", type=click.Path(exists=True))
@click.option(
    "--format",
    "form",
    type=click.Choice(["kafka", "jsonl"]),
    default="kafka",
    show_default=True,
    help="kafka: lines as kafka-dump-log --print-data-log prints them; jsonl: one JSON object a record.",
)
@click.option("--json", "as_json", is_flag=True, help="Short for --format jsonl.")
@click.option("--key-format", type=_VALUE_FORMAT, default="utf-8", show_default=True, help="jsonl: of keys.")
@click.option(
    "--value-format",
    type=_VALUE_FORMAT,
    default="utf-8",
    show_default=True,
    help="jsonl: of values and header values; utf-8 shows other bytes as U+FFFD.",
)
@click.option("--start-offset", type=click.IntRange(min=0), help="First offset.")
@click.option("--end-offset", type=click.IntRange(min=0), help="The offset behind the last one.")
@click.option(
    "--start-timestamp", type=options.TIME, help="First time: ISO 8601, or milliseconds since 1970."
)
@click.option("--end-timestamp", type=options.TIME, help="The time behind the last one.")
@click.option("--max-records", type=click.IntRange(min=0), help="Stop after so many records (or batches).")
@click.option("--no-records", is_flag=True, help="Print batches only.")
@options.isolation_level
@options.max_decompressed_bytes
def dump(
    source: str,
    form: str,
    as_json: bool,
    key_format: str,
    value_format: str,
    start_offset: int | None,
    end_offset: int | None,
    start_timestamp: int | None,
    end_timestamp: int | None,
    max_records: int | None,
    no_records: bool,
    isolation_level: str,
    max_decompressed_bytes: int,
) -> int:
    """Print the records of SRC: a partition directory, a segment file, or a directory of partitions.

    The kafka format shows what is in the file, control records and aborted ones included. jsonl shows
    the data records, with the facts of their batches.

    \b
    magicbyte dump orders-0/ | head
    magicbyte dump orders-0/00000000000000000000.log --no-records
    magicbyte dump orders-0/ --format jsonl --start-timestamp 2024-05-01T12:00 --max-records 10
    magicbyte dump orders-0/ --format jsonl --value-format base64 | jq -r .value
    """  # noqa: D301 (click takes the character \b for "leave these lines as they are")
    from magicbyte.cli.selection import Selection
    from magicbyte.jobs.partitions import list_partitions, list_segment_file

    selection = Selection(start_offset, end_offset, start_timestamp, end_timestamp, max_records)
    whole = os.path.isdir(source)
    if as_json or form == "jsonl":
        from magicbyte.cli.dump_jsonl import dump_jsonl

        listings = list_partitions([source]) if whole else [list_segment_file(source)]
        return dump_jsonl(
            listings,
            selection,
            key_format=key_format,
            value_format=value_format,
            isolation_level=isolation_level,
            no_records=no_records,
            max_decompressed_bytes=max_decompressed_bytes,
        )
    if isolation_level != "read_uncommitted":
        raise click.UsageError("--isolation-level belongs to --format jsonl")
    from magicbyte.cli.dump_kafka import dump_kafka

    files = [source]
    if whole:
        segments = [segment["path"] for one in list_partitions([source]) for segment in one["segments"]]
        # As Kafka does, the lines name files by the path that was given.
        files = [os.path.join(source, os.path.relpath(path, source)) for path in segments]
    return dump_kafka(files, selection, no_records=no_records, max_decompressed_bytes=max_decompressed_bytes)
