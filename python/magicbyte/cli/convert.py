"""`magicbyte convert`"""

from __future__ import annotations

import click

from magicbyte import RecordsBuilder
from magicbyte.cli import engines, options, overview, partition_choice
from magicbyte.cli.engines import EngineChoice
from magicbyte.cli.overview import View
from magicbyte.enums import Compression
from magicbyte.jobs.find.choice import PartitionChoice

__all__ = ["convert"]

_CODECS = {codec.name.lower(): codec.value for codec in Compression}


@click.command(short_help="Rewrite old segments for a current broker.")
@partition_choice.local_sources
@partition_choice.out
@partition_choice.options(prefer=True)
@click.option(
    "--magic",
    type=click.Choice(["2", "1", "0", "keep"]),
    default="2",
    show_default=True,
    help="The format to write. 1 and 0 have no headers, producers and transactions; losses are counted.",
)
@click.option(
    "--compression",
    type=click.Choice(list(_CODECS)),
    show_default="each batch's own",
    help="The codec to write.",
)
@click.option(
    "--level",
    type=options.Number(-(1 << 31), (1 << 31) - 1),
    show_default="Kafka's",
    metavar="LEVEL",
    help="With --compression: gzip 1 to 9, lz4 1 to 17, zstd -131072 to 22.",
)
@click.option(
    "--rebatch", is_flag=True, help="Pack the records of batches without a producer id into full batches."
)
@click.option(
    "--batch-bytes",
    type=options.BYTES,
    default="1MiB",
    show_default=True,
    help="With --rebatch: the size of a batch before compression.",
)
@options.leader_epoch
@options.segment_bytes
@options.topic_ids()
@overview.options
@engines.options
@options.max_decompressed_bytes
@options.as_json
def convert(
    sources: tuple[str, ...],
    out: str,
    choice: PartitionChoice,
    magic: str,
    compression: str | None,
    level: int | None,
    rebatch: bool,
    batch_bytes: int,
    leader_epoch: int | None,
    segment_bytes: int,
    topic_ids: dict[str, str],
    view: View,
    engine: EngineChoice,
    max_decompressed_bytes: int,
    as_json: bool,
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
    from magicbyte.jobs.rewrite import RewriteOptions, rewrite
    from magicbyte.jobs.run.progress import terminal_progress

    if level is not None and compression is None:
        raise click.UsageError("--level needs --compression")
    if compression is not None:
        try:
            RecordsBuilder(2 if magic == "keep" else int(magic), _CODECS[compression], level)
        except ValueError as error:
            raise click.UsageError(str(error)) from None
    if rebatch and magic not in ("2", "keep"):
        raise click.UsageError("--rebatch needs magic 2")
    settings = RewriteOptions(
        magic=None if magic == "keep" else int(magic),
        compression=None if compression is None else _CODECS[compression],
        level=level,
        rebatch=batch_bytes if rebatch else None,
        max_decompressed_bytes=max_decompressed_bytes,
        leader_epoch=leader_epoch,
        segment_bytes=segment_bytes,
        topic_ids=topic_ids,
    )
    with engine.open(f"magicbyte convert {sources[0]}") as runner:
        report = rewrite(sources, out, runner, settings, choice=choice, progress=terminal_progress())
    return accounts.print_written(report, out, reports.print_rewrite, view, as_json=as_json)
