"""`magicbyte convert`"""

from __future__ import annotations

import click

import magicbyte
from magicbyte import RecordsBuilder
from magicbyte.cli import partition_choice
from magicbyte.cli.engines import EngineChoice
from magicbyte.cli.flags import flags
from magicbyte.cli.overview import View
from magicbyte.jobs.find.choice import PartitionChoice
from magicbyte.options.rewrite import ConvertOptions

__all__ = ["convert"]


@click.command(short_help="Rewrite old segments for a current broker.")
@partition_choice.local_sources
@partition_choice.out
@partition_choice.choice(prefer=True)
@flags(ConvertOptions, "given")
@flags(EngineChoice, "engine")
@flags(View, "view")
def convert(
    sources: tuple[str, ...],
    out: str,
    choice: PartitionChoice,
    given: ConvertOptions,
    view: View,
    engine: EngineChoice,
) -> int:
    """Rewrite every partition at and below SRC into OUT, for a current broker to open.

    Every record is kept, with its offset and timestamp. Magic 0 and 1 become magic 2, a compressed message
    set becomes one batch. OUT gets a directory per partition with every file of a broker (segments, indexes,
    snapshots, leader epochs), and reconciliation.json: records and bytes in, out and quarantined. SRC is only
    read. OUT appears under its name at the end; if the job is killed, start it again. OUT may be a URL.

    \b
    magicbyte convert /backup/kafka-0.10 new-logs/                          move old logs to Kafka 4
    magicbyte convert --magic keep --compression lz4 logs/ lz4-logs/        change the codec only
    magicbyte convert --compression zstd --level 9 --rebatch archive/ small/
    magicbyte convert --topic-id orders=AAAAAAAAAAAAAAAAAAAAAQ backup/ new-logs/
    """  # noqa: D301 (click takes the character \b for "leave these lines as they are")
    from magicbyte.cli import accounts, reports
    from magicbyte.jobs.run.progress import terminal_progress

    if given.level is not None and given.codec is None:
        raise click.UsageError("--level needs --compression")
    if given.codec is not None:
        try:
            RecordsBuilder(2 if given.magic is None else given.magic, given.codec, given.level)
        except ValueError as error:
            raise click.UsageError(str(error)) from None
    if given.rebatch and given.magic not in (2, None):
        raise click.UsageError("--rebatch needs magic 2")
    with engine.open(f"magicbyte convert {sources[0]}") as runner:
        report = magicbyte.convert(
            sources, out, choice=choice, engine=runner, progress=terminal_progress(), **vars(given)
        )
    return accounts.print_written(report, out, reports.print_rewrite, view, certified=given.certify)
