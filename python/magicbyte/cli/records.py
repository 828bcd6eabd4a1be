"""`magicbyte records`"""

from __future__ import annotations

import click

from magicbyte.cli import options, partition_choice
from magicbyte.cli.selection import Selection
from magicbyte.cli.selection import options as selection_options
from magicbyte.enums import IsolationLevel
from magicbyte.jobs.choice import PartitionChoice

__all__ = ["records"]


@click.command(short_help="Print data records, or batches, as JSON lines.")
@partition_choice.sources
@partition_choice.options()
@selection_options
@click.option("--batches", is_flag=True, help="Print one object per batch instead of one per record.")
@options.key_format("How keys are written.")
@options.value_format("How values and header values are written; utf-8 shows invalid bytes as U+FFFD.")
@options.decode
@options.isolation_level
@options.max_decompressed_bytes
def records(
    sources: tuple[str, ...],
    choice: PartitionChoice,
    selection: Selection,
    batches: bool,
    key_format: str,
    value_format: str,
    decode: str,
    isolation_level: IsolationLevel,
    max_decompressed_bytes: int,
) -> int:
    """Print the data records of SRC as JSON lines: one object per record, with the fields of its batch.

    SRC is a partition directory, a directory of them, or a segment file. Damaged batches are left out and
    reported on standard error. In __consumer_offsets, __transaction_state and __cluster_metadata keys and
    values are decoded into objects.

    \b
    magicbyte records orders-0/ --max-records 10
    magicbyte records orders-0/ --start-timestamp 2024-05-01T12:00 --end-timestamp 2024-05-01T13:00
    magicbyte records orders-0/ --value-format base64 | jq -r .value
    magicbyte records orders-0/ --isolation-level read_committed | jq -c '[.offset, .producerId]'
    magicbyte records orders-0/ --batches | jq -s 'map(.size) | add'
    magicbyte records __consumer_offsets-7/ | jq .key
    """  # noqa: D301 (click takes the character \b for "leave these lines as they are")
    from magicbyte.cli.record_lines import print_records
    from magicbyte.cli.sources import partitions_of, segments_only

    listings, unread = partitions_of(segments_only("records", sources), choice)
    code = print_records(
        listings,
        selection,
        batches=batches,
        key_format=key_format,
        value_format=value_format,
        decode=decode,
        isolation_level=isolation_level,
        max_decompressed_bytes=max_decompressed_bytes,
    )
    return max(unread, code)
