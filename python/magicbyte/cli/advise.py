"""`magicbyte advise`"""

from __future__ import annotations

from pathlib import Path

import click

import magicbyte
from magicbyte.cli import options, partition_choice
from magicbyte.cli.engines import EngineChoice
from magicbyte.cli.exits import exit_code
from magicbyte.cli.flags import flags
from magicbyte.jobs.find.choice import PartitionChoice
from magicbyte.options.read import AdviseOptions

__all__ = ["advise"]


@click.command(short_help="Recommend a codec, a level and a batch size for each topic.")
@partition_choice.sources
@partition_choice.choice()
@flags(AdviseOptions, "given")
@click.option("--every-layout", "show_all", is_flag=True, help="Show every layout.")
@options.html("the advice, with charts,")
@flags(EngineChoice, "engine")
@options.as_json
def advise(
    sources: tuple[str, ...],
    choice: PartitionChoice,
    given: AdviseOptions,
    show_all: bool,
    page: Path | None,
    engine: EngineChoice,
    as_json: bool,
) -> int:
    """Recommend a codec, a level and a batch size for the topics at and below SRC.

    Takes a sample from all over each topic's log, writes it with each codec, level and batch size, reads it
    again, and estimates the result for the whole topic: its size, with an interval that contains the true
    size in 19 of 20 samples, and the speed on one core of this machine, before compression.

    The table has the layouts that no other layout beats in size and in both speeds (--every-layout: all of
    them), and recommendations for the least storage, for the least CPU, and for quick fetches. "as is" keeps
    the batches of the log, as a broker or `magicbyte convert --compression` would. Other sizes are those of
    batches before compression: a producer's batch.size, or `convert --rebatch`, which does not change the
    batches of idempotent producers.

    \b
    magicbyte advise /backup/kafka-logs
    magicbyte advise --topic clicks --thorough --price-per-tb-month 20 /backup/kafka-logs
    magicbyte advise --html advice.html /backup/kafka-logs
    magicbyte advise --json /backup/kafka-logs | jq '.topics[] | {topic, advice}'
    magicbyte advise --engine spark --windows 500 /backup/kafka-logs
    """  # noqa: D301 (click takes the character \b for "leave these lines as they are")
    from magicbyte.cli import inputs, reports
    from magicbyte.cli.advice_page import advice_page
    from magicbyte.cli.advice_text import print_advice
    from magicbyte.cli.html_page import check_page, write_page
    from magicbyte.jobs.run.progress import terminal_progress

    if page is not None:
        check_page(page, "advise", sources)
    with engine.open("magicbyte advise") as runner:
        report = magicbyte.advise(
            sources, choice=choice, engine=runner, progress=terminal_progress(), **vars(given)
        )
    if page is not None:
        write_page(page, "advise", advice_page(report, show_all=show_all))
    if as_json:
        reports.print_json(report)
    else:
        print_advice(report, show_all=show_all)
        reports.print_problems(report["problems"], report["problems_left_out"])
        inputs.print_skipped(report["skipped"])
    return exit_code(report["problems"] or report["problems_left_out"])
