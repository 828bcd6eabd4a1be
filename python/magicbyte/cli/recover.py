"""`magicbyte recover`"""

from __future__ import annotations

import click

import magicbyte
from magicbyte.cli import overview, partition_choice
from magicbyte.cli.engines import EngineChoice
from magicbyte.cli.exits import exit_code
from magicbyte.cli.flags import flags
from magicbyte.cli.overview import View
from magicbyte.jobs.find.choice import PartitionChoice
from magicbyte.options.rewrite import RecoverOptions

__all__ = ["recover"]


@click.command(short_help="Repair damaged partitions for a broker to open.")
@partition_choice.sources_and_out
@partition_choice.choice(prefer=True)
@flags(RecoverOptions, "given")
@flags(EngineChoice, "engine")
@flags(View, "view")
def recover(
    sources: tuple[str, ...],
    out: str | None,
    choice: PartitionChoice,
    given: RecoverOptions,
    view: View,
    engine: EngineChoice,
) -> int:
    """Repair the damaged partitions at and below SRC for a broker to open, in OUT.

    With only one argument, or with --dry-run, it prints what is damaged and where a broker would truncate,
    and writes nothing. With OUT, the good batches are copied byte for byte, and every index, snapshot and
    checkpoint is rebuilt from them. SRC is only read. OUT may be a URL.

    \b
    magicbyte recover /backup/kafka-logs                            what is damaged, what would be lost?
    magicbyte recover /backup/kafka-logs repaired/                  keep everything that is good
    magicbyte recover --method truncate /backup/kafka-logs cut/     truncate as a broker would
    """  # noqa: D301 (click takes the character \b for "leave these lines as they are")
    from magicbyte.cli import accounts, inputs, reports
    from magicbyte.cli.terminal import print_line
    from magicbyte.jobs.recover import cuts_of, diagnose
    from magicbyte.jobs.run.progress import terminal_progress

    progress = terminal_progress()
    with engine.open(f"magicbyte recover {sources[0]}") as runner:
        if out is None:
            diagnosis = diagnose(sources, runner, given, choice=choice, progress=progress)
            cuts = cuts_of(diagnosis["partitions"])
            if view.as_json:
                rows = [
                    {"topic": topic, "partition": partition, "segment": segment, "position": position}
                    for (topic, partition), (segment, position) in cuts.items()
                ]
                reports.print_json({**diagnosis, "cuts": rows})
            else:
                overview.print_overview(diagnosis["partitions"], diagnosis["total"], view)
                reports.print_problems(diagnosis["problems"], diagnosis["problems_left_out"])
                for (topic, partition), (segment, position) in cuts.items():
                    print_line(f"a broker would truncate {topic}-{partition} at {segment} byte {position:,}")
                inputs.print_unread(diagnosis["partitions"], diagnosis["skipped"], diagnosis["log_dirs"])
                print_line("nothing was written: give OUT to repair")
            return exit_code(diagnosis["total"]["problems"] or cuts)
        report = magicbyte.recover(
            sources, out, choice=choice, engine=runner, progress=progress, **vars(given)
        )
    return accounts.print_written(report, out, reports.print_rewrite, view, certified=given.certify)
