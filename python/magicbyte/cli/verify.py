"""`magicbyte verify`"""

from __future__ import annotations

import click

from magicbyte.cli import options
from magicbyte.enums import IsolationLevel

__all__ = ["verify"]


@click.command(short_help="Decode every record, write nothing, print the sums.")
@click.argument("sources", metavar="SRC...", nargs=-1, required=True, type=click.Path(exists=True))
@options.isolation_level
@options.max_decompressed_bytes
@options.threads
@options.as_json
def verify(
    sources: tuple[str, ...],
    isolation_level: IsolationLevel,
    max_decompressed_bytes: int,
    threads: int | None,
    as_json: bool,
) -> int:
    """Decode every record of every partition at and below SRC; write nothing.

    Sizes, CRCs, compression and each record are checked. Every byte comes out as part of a good batch,
    as quarantined with a reason, or as a segment's tail; every record a batch announces is found.

    \b
    magicbyte verify /backup/kafka-logs
    magicbyte verify /backup/kafka-logs/orders-0 /backup/kafka-logs/orders-1
    magicbyte verify --json /backup/kafka-logs | jq '.problems[] | .message'

    --json lists the first 1000 problems, and counts all; the table problems of ingest has each.
    """  # noqa: D301 (click takes the character \b for "leave these lines as they are")
    from magicbyte.cli import report
    from magicbyte.jobs.engines import LocalEngine
    from magicbyte.jobs.progress import terminal_progress
    from magicbyte.jobs.verify import verify as verify_job

    found = verify_job(
        sources,
        LocalEngine(threads),
        isolation_level=isolation_level,
        max_decompressed_bytes=max_decompressed_bytes,
        progress=terminal_progress(),
    )
    if as_json:
        report.print_json(found)
    else:
        report.print_reconciliation(found["partitions"], found["total"])
        report.print_problems(found["problems"], found["problems_left_out"])
    return report.exit_code(balanced=found["balanced"], problems=found["total"]["problems"])
