"""`magicbyte compact`"""

from __future__ import annotations

import time

import click

from magicbyte.cli import engines, options, overview, partition_choice
from magicbyte.cli.engines import EngineChoice
from magicbyte.cli.overview import View
from magicbyte.enums import DamageMode
from magicbyte.jobs.find.choice import PartitionChoice

__all__ = ["compact"]


@click.command(short_help="Keep the last record of each key, as Kafka's cleaner does.")
@partition_choice.local_sources
@partition_choice.out
@partition_choice.options(prefer=True)
@click.option(
    "--all", "everything", is_flag=True, help="Clean the last segment too, which a broker never does."
)
@click.option(
    "--all-topics",
    is_flag=True,
    help="Compact topics whatever their cleanup.policy; records without a key are dropped.",
)
@options.topic_config
@click.option(
    "--until-offset",
    type=options.OFFSET,
    metavar="OFFSET",
    help="Leave the segment that holds this offset, and all after it, as they are.",
)
@click.option(
    "--min-compaction-lag-ms",
    type=options.MILLIS,
    show_default="the topic's, or 0",
    metavar="MS",
    help="Leave segments with a record younger than this as they are.",
)
@click.option(
    "--delete-retention-ms",
    type=options.MILLIS,
    show_default="the topic's, or a day",
    metavar="MS",
    help="The retention time of tombstones, and of the markers of empty transactions.",
)
@click.option(
    "--now",
    type=options.TIME,
    show_default="the clock",
    help="The current time, for computing ages.",
)
@click.option(
    "--producer-id-expiration-ms",
    type=options.Number(1),
    default=86_400_000,
    show_default=True,
    metavar="MS",
    help="Forget producers that were silent for longer, so that their last batch need not be kept.",
)
@click.option(
    "--checkpoint",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="A broker's cleaner-offset-checkpoint, up to which old tombstones of magic 0 and 1 may be removed.",
)
@click.option(
    "--segment-bytes",
    type=options.SEGMENT_BYTES,
    show_default="the topic's, or 1GiB",
    help="Merge neighbouring segments up to this size.",
)
@click.option(
    "--memory-bytes",
    type=options.BYTES,
    default="128MiB",
    show_default=True,
    help="Memory for the maps of keys; larger maps go to files beside OUT.",
)
@options.mode
@options.topic_ids()
@overview.options
@engines.options
@options.max_decompressed_bytes
@options.as_json
def compact(
    sources: tuple[str, ...],
    out: str,
    choice: PartitionChoice,
    everything: bool,
    all_topics: bool,
    topic_config: str | None,
    until_offset: int | None,
    min_compaction_lag_ms: int | None,
    delete_retention_ms: int | None,
    now: int | None,
    producer_id_expiration_ms: int,
    checkpoint: str | None,
    segment_bytes: int | None,
    memory_bytes: int,
    mode: DamageMode,
    topic_ids: dict[str, str],
    view: View,
    engine: EngineChoice,
    max_decompressed_bytes: int,
    as_json: bool,
) -> int:
    """Compact the partitions at and below SRC into OUT: only the last record of each key is kept.

    A topic is compacted if its cleanup.policy includes compact, by __cluster_metadata in SRC or by
    --topic-config. Partitions of other topics are left out of OUT, and listed, and so are those with the
    brokers' default, which only server.properties has. If nothing is known about a topic, a record without a
    key shows that it is not compacted, since Kafka refuses such records there: the command then refuses to
    start. --all-topics compacts everything but __cluster_metadata.

    The rules are those of Kafka's cleaner. Tombstones and transaction markers are removed after their
    retention time, aborted records and records without a key at once. Offsets, sequences, leader epochs and
    each producer's last batch are kept. Whole segments are cleaned, up to the last stable offset and except
    for the last segment.

    OUT gets every file that a broker writes, including cleaner-offset-checkpoint, and reconciliation.json,
    which accounts for each record. SRC is only read. OUT appears under its name at the end; if the job
    is killed, start it again. OUT may be a URL.

    \b
    magicbyte compact /backup/kafka-logs compacted/                      what a broker would do now
    magicbyte compact --all --delete-retention-ms 0 archive/ small/      an archive, the last segment too
    magicbyte compact --now 2024-05-01 logs/ out/                        what a broker would have done then
    magicbyte compact --topic-config topics.json logs/ out/              a cluster with ZooKeeper
    """  # noqa: D301 (click takes the character \b for "leave these lines as they are")
    from magicbyte.cli import accounts, reports
    from magicbyte.jobs.compact import CompactOptions, compact_partitions, read_checkpoint
    from magicbyte.jobs.find.cluster import read_topic_config
    from magicbyte.jobs.run.progress import terminal_progress

    settings = CompactOptions(
        now=round(time.time() * 1000) if now is None else now,
        delete_retention_ms=delete_retention_ms,
        min_compaction_lag_ms=min_compaction_lag_ms,
        until_offset=until_offset,
        all=everything,
        checkpoint=read_checkpoint(checkpoint) if checkpoint else {},
        producer_id_expiration_ms=producer_id_expiration_ms,
        segment_bytes=segment_bytes,
        memory_bytes=memory_bytes,
        max_decompressed_bytes=max_decompressed_bytes,
        mode=mode,
        topic_ids=topic_ids,
        topic_config=read_topic_config(topic_config) if topic_config else {},
        all_topics=all_topics,
    )
    with engine.open(f"magicbyte compact {sources[0]}") as runner:
        report = compact_partitions(sources, out, runner, settings, terminal_progress(), choice=choice)
    return accounts.print_written(report, out, reports.print_clean, view, as_json=as_json)
