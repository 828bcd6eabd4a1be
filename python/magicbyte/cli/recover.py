"""`magicbyte recover`"""

from __future__ import annotations

from typing import Literal

import click

from magicbyte.cli import engines, options
from magicbyte.cli.exits import CLEAN, PROBLEMS

__all__ = ["recover"]


@click.command(short_help="Make damaged partitions ones that a broker opens.")
@click.argument("source", metavar="SRC", type=click.Path(exists=True, file_okay=False))
@click.argument("out", metavar="[OUT]", type=click.Path(), required=False)
@click.option(
    "--mode",
    type=click.Choice(["keep", "truncate"]),
    default="keep",
    show_default=True,
    help="keep: all good batches, those behind damage too. truncate: nothing from the first damage on, as a"
    " broker does when it starts after a crash.",
)
@options.leader_epoch
@options.segment_bytes
@options.topic_ids
@engines.options
@options.max_decompressed_bytes
@options.threads
@options.as_json
def recover(
    source: str,
    out: str | None,
    mode: Literal["keep", "truncate"],
    leader_epoch: int | None,
    segment_bytes: int,
    topic_ids: dict[str, str],
    engine: str,
    master: str | None,
    conf: tuple[str, ...],
    max_decompressed_bytes: int,
    threads: int | None,
    as_json: bool,
) -> int:
    """Make the damaged partitions at and below SRC ones that a broker opens, in OUT.

    Without OUT it is a dry run: it says what is damaged and where a broker would cut, and writes
    nothing. With OUT, batches go there as they are (their bytes are not changed), and every index,
    snapshot and checkpoint is made anew from them. SRC is only read.

    \b
    magicbyte recover /backup/kafka-logs                          what is damaged, what would be lost?
    magicbyte recover /backup/kafka-logs repaired/                keep all that is good
    magicbyte recover --mode truncate /backup/kafka-logs cut/     cut as a broker would
    """  # noqa: D301 (click takes the character \b for "leave these lines as they are")
    from magicbyte.cli import report
    from magicbyte.cli.terminal import print_line
    from magicbyte.jobs.progress import terminal_progress
    from magicbyte.jobs.recover import cuts_of, diagnose
    from magicbyte.jobs.recover import recover as recover_job
    from magicbyte.jobs.rewrite import RewriteOptions

    progress = terminal_progress()
    with engines.chosen(f"magicbyte recover {source}", engine, master, conf, threads) as runner:
        if out is None:
            seen = diagnose(
                [source], runner, max_decompressed_bytes=max_decompressed_bytes, progress=progress
            )
            cuts = cuts_of(seen["partitions"])
            if as_json:
                places = [
                    {"topic": topic, "partition": partition, "segment": segment, "position": position}
                    for (topic, partition), (segment, position) in cuts.items()
                ]
                report.print_json({**seen, "cuts": places})
            else:
                report.print_reconciliation(seen["partitions"], seen["total"])
                report.print_problems(seen["problems"], seen["problems_left_out"])
                for (topic, partition), (segment, position) in cuts.items():
                    print_line(f"a broker would cut {topic}-{partition} at {segment} byte {position:,}")
                print_line("nothing was written: give OUT to recover")
            return PROBLEMS if seen["total"]["problems"] or cuts else CLEAN
        asked = RewriteOptions(
            leader_epoch=leader_epoch,
            max_decompressed_bytes=max_decompressed_bytes,
            segment_bytes=segment_bytes,
            topic_ids=topic_ids,
        )
        found = recover_job([source], out, runner, asked, mode, progress)
    return report.written(found, out, report.print_rewrite, as_json=as_json)
