"""`magicbyte dump`"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from magicbyte.cli import options
from magicbyte.cli.exits import CLEAN, PROBLEMS
from magicbyte.cli.selection import Selection
from magicbyte.cli.terminal import print_problem
from magicbyte.enums import IsolationLevel

if TYPE_CHECKING:
    from magicbyte.model import PartitionListing

__all__ = ["dump"]

_VALUE_FORMAT = click.Choice(["utf-8", "hex", "base64"])


@click.command(short_help="Print records, batches, and the files beside segments.")
@click.argument("sources", metavar="SRC...", nargs=-1, required=True, type=click.Path(exists=True))
@click.option(
    "--format",
    "form",
    type=click.Choice(["kafka", "jsonl"]),
    default="kafka",
    show_default=True,
    help="kafka: lines as kafka-dump-log --print-data-log prints them; jsonl: one JSON object a record.",
)
@click.option("--json", "as_json", is_flag=True, help="Short for --format jsonl.")
@click.option(
    "--key-format",
    type=_VALUE_FORMAT,
    default="utf-8",
    show_default=True,
    help="jsonl: how keys are written.",
)
@click.option(
    "--value-format",
    type=_VALUE_FORMAT,
    default="utf-8",
    show_default=True,
    help="jsonl: how values and header values are written; utf-8 shows other bytes as U+FFFD.",
)
@click.option("--start-offset", type=options.OFFSET, metavar="OFFSET", help="First offset.")
@click.option("--end-offset", type=options.OFFSET, metavar="OFFSET", help="The offset after the last one.")
@click.option(
    "--start-timestamp", type=options.TIME, help="First time: ISO 8601, or milliseconds since 1970."
)
@click.option("--end-timestamp", type=options.TIME, help="The time behind the last one.")
@click.option(
    "--max-records", type=options.COUNT, metavar="N", help="Stop after so many records (or batches)."
)
@click.option("--no-records", is_flag=True, help="Print batches only.")
@click.option(
    "--decode",
    type=click.Choice(["auto", "offsets", "transactions", "metadata", "none"]),
    default="auto",
    show_default=True,
    help="Decode the records of an internal topic; auto: if the directory is named as one.",
)
@click.option(
    "--verify-index",
    is_flag=True,
    help="Compare the indexes with the log and print what differs, nothing else.",
)
@click.option("--annotate", is_flag=True, help="Print the bytes of batches, each field with its meaning.")
@click.option(
    "--offset",
    type=options.OFFSET,
    metavar="OFFSET",
    help="annotate: begin with the batch that holds this offset.",
)
@click.option(
    "--limit",
    type=options.COUNT,
    show_default="1 with --offset, else all",
    metavar="N",
    help="annotate: so many batches.",
)
@options.isolation_level
@options.max_decompressed_bytes
def dump(
    sources: tuple[str, ...],
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
    decode: str,
    verify_index: bool,
    annotate: bool,
    offset: int | None,
    limit: int | None,
    isolation_level: IsolationLevel,
    max_decompressed_bytes: int,
) -> int:
    """Print what is in SRC: partition directories or directories of them, segment files, and the files
    beside segments (.index .timeindex .txnindex .snapshot .checkpoint leader-epoch-checkpoint
    partition.metadata).

    The kafka format shows what is in the file, control records and aborted ones included. jsonl shows
    the data records, with the facts of their batches. In __consumer_offsets, __transaction_state and
    __cluster_metadata the records are decoded. --verify-index finds what kafka-dump-log finds, entries
    of old brokers included that point inside an append: they do no harm.

    \b
    magicbyte dump orders-0/ | head
    magicbyte dump orders-0/00000000000000000000.log --no-records
    magicbyte dump orders-0/*.index orders-0/*.snapshot
    magicbyte dump orders-0/ --format jsonl --start-timestamp 2024-05-01T12:00 --max-records 10
    magicbyte dump orders-0/ --format jsonl --value-format base64 | jq -r .value
    magicbyte dump __consumer_offsets-7/                  who committed what
    magicbyte dump backup/offsets --decode offsets        the same in a directory of another name
    magicbyte dump orders-0/ --verify-index               do the indexes lead to the right batches?
    magicbyte dump orders-0/ --annotate --offset 1234     the bytes of one batch, explained
    """  # noqa: D301 (click takes the character \b for "leave these lines as they are")
    from magicbyte.cli.sidecars import is_sidecar
    from magicbyte.jobs.partitions import refuse_other_encodings

    for source in sources:
        refuse_other_encodings(source)
    jsonl = as_json or form == "jsonl"
    if (offset is not None or limit is not None) and not annotate:
        raise click.UsageError("--offset and --limit belong to --annotate")
    if annotate and (jsonl or verify_index):
        raise click.UsageError("--annotate prints text of its own: neither --format jsonl nor --verify-index")
    if isolation_level != "read_uncommitted" and not (jsonl and not verify_index):
        raise click.UsageError("--isolation-level belongs to --format jsonl")
    if verify_index:
        from magicbyte.cli.verify_index import verify_indexes

        files, code = _files(sources)
        differences = verify_indexes(files, as_json=jsonl, max_decompressed_bytes=max_decompressed_bytes)
        return max(code, differences)
    if annotate:
        from magicbyte.cli.annotate import annotate as print_traces

        files, code = _files(sources)
        logs = [path for path in files if not is_sidecar(path)]
        if not logs and not code:
            raise click.UsageError("--annotate is for segments (.log, .checkpoint)")
        traced = print_traces(
            logs,
            offset=offset,
            limit=1 if limit is None and offset is not None else limit,
            max_decompressed_bytes=max_decompressed_bytes,
        )
        return max(code, traced)
    selection = Selection(start_offset, end_offset, start_timestamp, end_timestamp, max_records)
    if jsonl:
        from magicbyte.cli.dump_jsonl import dump_jsonl, dump_sidecars_jsonl

        sidecars = [path for path in sources if is_sidecar(path)]
        logs = [path for path in sources if not is_sidecar(path)]
        code = dump_sidecars_jsonl(sidecars)
        if not logs:
            return code
        listings, unread = _listings(logs)
        return max(
            code,
            unread,
            dump_jsonl(
                listings,
                selection,
                key_format=key_format,
                value_format=value_format,
                decode=decode,
                isolation_level=isolation_level,
                no_records=no_records,
                max_decompressed_bytes=max_decompressed_bytes,
            ),
        )
    from magicbyte.cli.dump_kafka import dump_kafka

    files, code = _files(sources)
    dumped = dump_kafka(
        files,
        selection,
        decode=decode,
        no_records=no_records,
        max_decompressed_bytes=max_decompressed_bytes,
    )
    return max(code, dumped)


def _listings(sources: Sequence[str]) -> tuple[list[PartitionListing], int]:
    """The partitions, and the exit code by what of them cannot be read, which is said."""
    from magicbyte.jobs.partitions import list_partitions, list_segment_file
    from magicbyte.listing import unread_segments

    listings: list[PartitionListing] = []
    code = CLEAN
    for source in sources:
        try:
            found = list_partitions([source]) if os.path.isdir(source) else [list_segment_file(source)]
        except OSError as error:
            code = PROBLEMS
            print_problem(f"magicbyte: {error}")
            continue
        listings += found
        for listing in found:
            for problem in unread_segments(listing):
                code = PROBLEMS
                path = os.path.join(listing["path"], problem["segment"] or "")
                print_problem(f"magicbyte: {path}: {problem['message']}")
    return listings, code


def _files(sources: Sequence[str]) -> tuple[list[str], int]:
    """The files themselves, and the segments of directories, named as Kafka does by the path given; and
    the exit code by what cannot be read.
    """
    files = []
    code = CLEAN
    for source in sources:
        if os.path.isdir(source):
            listings, unread = _listings([source])
            code = max(code, unread)
            paths = [segment["path"] for one in listings for segment in one["segments"]]
            files += [os.path.join(source, os.path.relpath(path, source)) for path in paths]
        else:
            files.append(source)
    return files, code
