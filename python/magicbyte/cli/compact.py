"""`magicbyte compact`"""

from __future__ import annotations

import time

import click

from magicbyte.cli import engines, options
from magicbyte.enums import DamageMode

__all__ = ["compact"]


@click.command(short_help="Keep the last record of each key, as Kafka's cleaner.")
@click.argument("source", metavar="SRC", type=click.Path(exists=True, file_okay=False))
@click.argument("out", metavar="OUT", type=click.Path())
@click.option(
    "--all", "everything", is_flag=True, help="Clean the last segment too; a broker leaves it alone."
)
@click.option(
    "--until-offset",
    type=options.OFFSET,
    metavar="OFFSET",
    help="Clean nothing from the segment with this offset on.",
)
@click.option(
    "--min-compaction-lag-ms",
    type=options.MILLIS,
    default=0,
    show_default=True,
    metavar="MS",
    help="Leave segments alone that have a record younger than this.",
)
@click.option(
    "--delete-retention-ms",
    type=options.MILLIS,
    default=86_400_000,
    show_default=True,
    metavar="MS",
    help="How long tombstones and the markers of empty transactions stay.",
)
@click.option("--now", type=options.TIME, show_default="the clock's", help="The time it is.")
@click.option(
    "--producer-id-expiration-ms",
    type=options.Number(1),
    default=86_400_000,
    show_default=True,
    metavar="MS",
    help="Forget producers that were silent for so long: their last batch need not stay.",
)
@click.option(
    "--checkpoint",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="A broker's cleaner-offset-checkpoint: where old tombstones of magic 0 and 1 may go.",
)
@click.option(
    "--segment-bytes",
    type=options.SEGMENT_BYTES,
    default="1GiB",
    show_default=True,
    help="Neighbouring segments that are not larger together become one.",
)
@click.option(
    "--memory",
    type=options.BYTES,
    default="128MiB",
    show_default=True,
    help="For the maps of keys; more goes to files beside OUT.",
)
@options.mode
@options.topic_ids
@engines.options
@options.max_decompressed_bytes
@options.threads
@options.as_json
def compact(
    source: str,
    out: str,
    everything: bool,
    until_offset: int | None,
    min_compaction_lag_ms: int,
    delete_retention_ms: int,
    now: int | None,
    producer_id_expiration_ms: int,
    checkpoint: str | None,
    segment_bytes: int,
    memory: int,
    mode: DamageMode,
    topic_ids: dict[str, str],
    engine: str,
    master: str | None,
    conf: tuple[str, ...],
    max_decompressed_bytes: int,
    threads: int | None,
    as_json: bool,
) -> int:
    """Write every partition at and below SRC into OUT with the last record of each key, as Kafka's cleaner.

    Tombstones and transaction markers go when their time is over, aborted records and records without key
    at once; offsets, sequences, leader epochs and producers' last batches stay. Whole segments are cleaned,
    up to the last stable offset and not the last one. OUT gets all the files a broker makes,
    cleaner-offset-checkpoint among them, and reconciliation.json: what became of every record. SRC is only
    read. OUT has its name when all is done; a job that was killed is started again.

    \b
    magicbyte compact /backup/kafka-logs/orders-0/.. compacted/          as a broker would, now
    magicbyte compact --all --delete-retention-ms 0 archive/ small/      an archive, the last segment too
    magicbyte compact --now 2024-05-01 --engine local logs/ out/         as it would have been then
    """  # noqa: D301 (click takes the character \b for "leave these lines as they are")
    from magicbyte.cli import report
    from magicbyte.jobs.compact import CompactOptions, compact_partitions, read_checkpoint
    from magicbyte.jobs.progress import terminal_progress

    asked = CompactOptions(
        now=round(time.time() * 1000) if now is None else now,
        delete_retention_ms=delete_retention_ms,
        min_compaction_lag_ms=min_compaction_lag_ms,
        until_offset=until_offset,
        all=everything,
        checkpoint=read_checkpoint(checkpoint) if checkpoint else {},
        producer_id_expiration_ms=producer_id_expiration_ms,
        segment_bytes=segment_bytes,
        memory=memory,
        max_decompressed_bytes=max_decompressed_bytes,
        mode=mode,
        topic_ids=topic_ids,
    )
    with engines.chosen(f"magicbyte compact {source}", engine, master, conf, threads) as runner:
        found = compact_partitions([source], out, runner, asked, terminal_progress())
    return report.written(found, out, report.print_clean, as_json=as_json)
