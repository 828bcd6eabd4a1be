"""`magicbyte check-indexes`"""

from __future__ import annotations

import click

from magicbyte.cli import options, partition_choice
from magicbyte.cli.exits import CLEAN, PROBLEMS
from magicbyte.cli.terminal import json_line, print_data
from magicbyte.jobs.choice import PartitionChoice

__all__ = ["check_indexes"]


@click.command("check-indexes", short_help="Compare indexes with their segments.")
@partition_choice.local_sources
@partition_choice.options()
@options.max_decompressed_bytes
@click.option("--json", "as_json", is_flag=True, help="Print JSON lines, one object per difference.")
def check_indexes(
    sources: tuple[str, ...], choice: PartitionChoice, max_decompressed_bytes: int, as_json: bool
) -> int:
    """Compare the indexes (.index .timeindex .txnindex) of SRC with the log, and print every difference.

    SRC is an index, a segment file, which stands for the indexes beside it, or a directory. The rules are
    those of kafka-dump-log: an entry's offset has to be the last one of its batch. Brokers before 4.1 wrote
    entries that point inside an append; these are differences too, but do no harm.

    \b
    magicbyte check-indexes /backup/kafka-logs
    magicbyte check-indexes orders-0/00000000000000000000.index
    magicbyte check-indexes --json orders-0/ | jq -c '[.file, .kind, .offset]'

    Exit codes: 0 no difference, 1 differences were found.
    """  # noqa: D301 (click takes the character \b for "leave these lines as they are")
    from magicbyte.cli.index_mismatches import indexes_of, mismatches_of
    from magicbyte.cli.sources import files_of, readable

    files, unread = files_of(readable(sources), choice)
    indexes = indexes_of(files)
    count = 0
    for index in indexes:
        for mismatch in mismatches_of(index, max_decompressed_bytes):
            count += 1
            if as_json:
                print_data(json_line({"file": index, **mismatch}))
            else:
                fields = " ".join(f"{name}: {value}" for name, value in mismatch.items())
                print_data(f"{index} {fields}")
    if not as_json:
        print_data(f"{len(indexes):,} indexes compared, {count:,} differences")
    return max(unread, PROBLEMS if count else CLEAN)
