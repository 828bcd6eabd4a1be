"""`magicbyte cluster`"""

from __future__ import annotations

from pathlib import Path

import click

import magicbyte
from magicbyte.cli import options, partition_choice
from magicbyte.cli.engines import EngineChoice
from magicbyte.cli.exits import exit_code
from magicbyte.cli.flags import flags
from magicbyte.jobs.find.choice import PartitionChoice
from magicbyte.options.read import ClusterOptions

__all__ = ["cluster"]


@click.command(short_help="Describe a cluster: brokers, disks, topics, settings, groups, transactions.")
@partition_choice.local_sources
@partition_choice.choice(prefer=True, assigned=True)
@options.html("the description")
@flags(ClusterOptions, "given")
@flags(EngineChoice, "engine")
@options.as_json
def cluster(
    sources: tuple[str, ...],
    choice: PartitionChoice,
    page: Path | None,
    given: ClusterOptions,
    engine: EngineChoice,
    as_json: bool,
) -> int:
    """Describe the cluster whose log directories are SRC, from the disks alone.

    SRC may be directories of several brokers, as many as there are. All copies of __cluster_metadata-0 are
    read, each its newest snapshot and the log after it: the copy with the highest leader epoch and offset
    decides, and where it is damaged, the others and proven repairs help out. Without such a log, as in
    clusters with ZooKeeper, and where no copy has a part of it, topics and ids come from the directories.

    The output has the controllers and their leader; brokers with their disks, and which of these are not
    among SRC; topics with their replicas, in-sync and eligible leader replicas, and configs; dynamic configs
    of brokers, groups and client metrics; quotas, ACLs, and the names of SCRAM users and delegation tokens,
    but no password, key or HMAC; groups of every kind with their positions; and open transactions.

    Lost are offsets that no copy in SRC has. The records ahead of groups are decoded, so that damage inside
    of batches counts there; elsewhere only batch headers are read, and `magicbyte verify` finds the rest. A
    position is out of range if it is before the start or after the end of the newest copy.

    The text shows only the partitions that are not whole: without a leader or an in-sync replica, being
    reassigned, with lost offsets, or without a copy in SRC. Problems, positions that are hurt and
    transactions that hang make the exit code 1.

    \b
    magicbyte cluster /mnt/kafka-1/disk1 /mnt/kafka-1/disk2 /mnt/kafka-2/disk1
    magicbyte cluster --html cluster.html /backup/kafka-logs
    magicbyte cluster --headers-only --group 'billing-*' /backup/kafka-logs
    magicbyte cluster --json /backup/kafka-logs | jq '.brokers[].disks[] | select(.path == null)'
    """  # noqa: D301 (click takes the character \b for "leave these lines as they are")
    from magicbyte.cli import reports
    from magicbyte.cli.cluster_page import cluster_page
    from magicbyte.cli.cluster_text import print_cluster
    from magicbyte.cli.html_page import check_page, write_page
    from magicbyte.jobs.cluster import findings
    from magicbyte.jobs.run.progress import terminal_progress

    if page is not None:
        check_page(page, "cluster", sources)
    with engine.open("magicbyte cluster") as runner:
        report = magicbyte.cluster(
            sources, choice=choice, engine=runner, progress=terminal_progress(), **vars(given)
        )
    if page is not None:
        write_page(page, "cluster", cluster_page(report))
    reports.print_report(report, print_cluster, as_json=as_json)
    return exit_code(findings(report))
