"""`magicbyte compact`"""

from __future__ import annotations

import click

import magicbyte
from magicbyte.cli import partition_choice
from magicbyte.cli.engines import EngineChoice
from magicbyte.cli.flags import flags
from magicbyte.cli.overview import View
from magicbyte.jobs.find.choice import PartitionChoice
from magicbyte.options.compact import CompactOptions

__all__ = ["compact"]


@click.command(short_help="Keep the last record of each key, as Kafka's cleaner does.")
@partition_choice.local_sources
@partition_choice.out
@partition_choice.choice(prefer=True)
@flags(CompactOptions, "given")
@flags(EngineChoice, "engine")
@flags(View, "view")
def compact(
    sources: tuple[str, ...],
    out: str,
    choice: PartitionChoice,
    given: CompactOptions,
    view: View,
    engine: EngineChoice,
) -> int:
    """Compact the partitions at and below SRC into OUT: only the last record of each key is kept.

    A topic is compacted if its cleanup.policy includes compact, by __cluster_metadata in SRC or by
    --topic-config. Partitions of other topics are left out of OUT, and listed, and so are those with the
    brokers' default, unless --server-properties has it. If nothing is known about a topic, a record without a
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
    from magicbyte.jobs.run.progress import terminal_progress

    with engine.open(f"magicbyte compact {sources[0]}") as runner:
        report = magicbyte.compact(
            sources, out, choice=choice, engine=runner, progress=terminal_progress(), **vars(given)
        )
    return accounts.print_written(report, out, reports.print_clean, view, certified=given.certify)
