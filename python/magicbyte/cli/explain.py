"""`magicbyte explain`"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from magicbyte import _core
from magicbyte.cli import engines, options

__all__ = ["explain"]


@click.command(short_help="Tell what happened: producers, transactions, gaps.")
@click.argument("sources", metavar="SRC...", nargs=-1, required=True, type=click.Path(exists=True))
@click.option(
    "--html",
    "page",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    help="Write the story as one HTML page with pictures to this file, too. It may replace an earlier page,"
    " no other file.",
)
@click.option(
    "--now",
    type=options.TIME,
    show_default="the clock's",
    help="The time up to which open transactions age.",
)
@click.option(
    "--max-transaction-timeout",
    type=options.Number(0, 1 << 40),
    default=15,
    show_default=True,
    metavar="MINUTES",
    help="An open transaction hangs if its producer was last heard of longer ago.",
)
@click.option(
    "--list",
    "listed",
    type=click.IntRange(min=1),
    default=_core.LISTED,
    show_default=True,
    metavar="N",
    help="How many of each kind to list; memory grows with it.",
)
@engines.options
@options.threads
@options.as_json
def explain(
    sources: tuple[str, ...],
    page: Path | None,
    now: int | None,
    max_transaction_timeout: int,
    listed: int,
    as_json: bool,
    threads: int | None,
    **where: Any,
) -> int:
    """Tell the story of each partition at and below SRC, by the headers of its batches.

    Who wrote: producers and their epochs, sequences that are missing, come twice or go back, by the
    rules of a broker's ProducerStateManager. Transactions: committed, aborted, open and hanging. Offsets
    that compaction took, timestamps that go back, leader epochs, codecs, sizes of batches, control
    records, bytes that are in no batch. Nothing is decompressed. All are counted; of producers,
    transactions, gaps, anomalies and so on --json lists 1000 of each partition, or as --list says:
    open transactions first, then the largest; of gaps and steps back 1000 a segment at most.

    \b
    magicbyte explain /backup/kafka-logs/orders-0
    magicbyte explain /backup/kafka-logs/orders-0 --html orders.html
    magicbyte explain --json /backup/kafka-logs | jq '.partitions[].transactions[] | select(.hanging)'
    """  # noqa: D301 (click takes the character \b for "leave these lines as they are")
    from magicbyte.cli import report
    from magicbyte.cli.story_page import check_replaceable, write_page
    from magicbyte.cli.story_text import print_story
    from magicbyte.jobs.explain import explain as explain_job
    from magicbyte.jobs.explain import irregularities
    from magicbyte.jobs.progress import terminal_progress

    if page is not None:
        check_replaceable(page)
    with engines.chosen(
        "magicbyte explain", where["engine"], where["master"], where["conf"], threads
    ) as engine:
        stories = explain_job(
            sources,
            engine,
            now=round(time.time() * 1000) if now is None else now,
            transaction_max_timeout_ms=max_transaction_timeout * 60_000,
            max_listed=listed,
            progress=terminal_progress(),
        )
    if page is not None:
        write_page(page, stories)
    if as_json:
        report.print_json({"partitions": stories})
    else:
        for story in stories:
            print_story(story)
    return report.exit_code(balanced=True, problems=sum(map(irregularities, stories)))
