"""`magicbyte backup`"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

import magicbyte
from magicbyte.cli import options, partition_choice
from magicbyte.cli.exits import exit_code
from magicbyte.cli.flags import flags
from magicbyte.jobs.find.choice import PartitionChoice
from magicbyte.jobs.find.problems import offsets_text
from magicbyte.options.backup import BackupOptions

if TYPE_CHECKING:
    from magicbyte.jobs.backup import BackupReport

__all__ = ["backup"]

_SHOWN = 20


@click.command(short_help="Copy a running cluster, batch by batch; again, what is new.")
@click.argument("source", metavar="kafka://HOST:PORT[,...]")
@partition_choice.out
@partition_choice.of_cluster()
@flags(BackupOptions, "given")
@options.as_json
def backup(source: str, out: str, choice: PartitionChoice, given: BackupOptions, as_json: bool) -> int:
    """Copy the partitions of a running cluster into OUT; a second run adds what is new.

    OUT is like the log directory of one more broker: the batches are those of the cluster byte for byte,
    with their offsets, producers, transactions, timestamps and leader epochs. So every command reads it,
    and restore makes a cluster of it that starts. Kafka's own topics are copied with the others, so groups
    go on at their positions. The topics with their ids, the settings, quotas and features are in a snapshot
    of the metadata. No broker tells passwords: users and secret settings are only named.

    Every partition ends at the high watermark that it has when the run starts; with --as-of, before the
    first record of that time, and without the transactions that were open then. Batches stay whole.

    OUT is a directory or the URL of a store. There, each run begins a segment in every partition that has
    something new, since objects do not grow.

    A run that is killed at any time is continued by the next one: what it has written is checked batch by
    batch. OUT/backup.json comes last; it has the SHA-256 of every file, so verify proves the backup later,
    without the cluster.

    What the cluster has deleted before it was copied is named. Batches that an unclean election has removed
    from the cluster, and logs of topics that were deleted, are moved to TOPIC-N.ID-stray, and named. The
    copy of a log that the cluster compacts only grows: --full copies it again, and replaces the old copy
    when that is done. Segments of the backup that are missing, or have other bytes than were copied, are
    named; no run removes what the cluster does not have any more.

    \b
    magicbyte backup kafka://broker:9092 backup/
    magicbyte backup kafkas://broker:9093 backup/ --command-config client.properties
    magicbyte backup kafka://broker:9092 backup/ --topic 'orders-*' --full
    magicbyte backup kafka://broker:9092 sunday/ --as-of 2026-11-22T00:00:00Z
    magicbyte backup kafka://broker:9092 s3://bucket/backup --storage-option region=eu-west-1
    magicbyte verify backup/ --certificate backup/backup.json
    magicbyte restore backup/ --out restored/

    Exit codes: 0 all is copied; 1 something was lost, set aside, damaged, or is not told by the cluster.
    """  # noqa: D301 (click takes the character \b for "leave these lines as they are")
    from magicbyte.cli.reports import print_json
    from magicbyte.jobs.run.progress import terminal_progress

    report = magicbyte.backup(source, out, choice=choice, progress=terminal_progress(), **vars(given))
    if as_json:
        print_json(report)
    else:
        _print(report, out)
    return exit_code(report["findings"] or report["unknown_settings"])


def _print(report: BackupReport, out: str) -> None:
    from magicbyte.cli.overview import print_next
    from magicbyte.cli.terminal import print_line
    from magicbyte.jobs.run.progress import format_bytes

    partitions = report["partitions"]
    print_line(
        f"copied {format_bytes(report['copied_bytes'])}: {report['copied_batches']:,} batches,"
        f" {report['copied_records']:,} records"
    )
    size = sum(one["size"] for one in partitions)
    topics = {one["topic"] for one in partitions}
    print_line(
        f"{out} has {len(partitions):,} partitions of {len(topics):,} topics, {format_bytes(size)}, of the"
        f" cluster {report['cluster_id']}"
    )
    for finding in report["findings"][:_SHOWN]:
        name = (
            finding["topic"] if finding["partition"] is None else f"{finding['topic']}-{finding['partition']}"
        )
        offsets = ""
        if finding["first_offset"] is not None:
            last = finding["last_offset"] if finding["last_offset"] is not None else finding["first_offset"]
            offsets = f" {offsets_text(finding['first_offset'], last, ',')}:"
        print_line(f"{name}: {finding['found']}:{offsets} {finding['message']}")
    if len(report["findings"]) > _SHOWN:
        print_line(f"... and {len(report['findings']) - _SHOWN:,} more (--json has them)")
    for title, names in (
        ("not told by the cluster", report["unknown_settings"]),
        ("set again after a restore (no broker tells the values)", report["secret_configs"]),
        ("create again after a restore (no broker tells the passwords)", report["scram_users"]),
    ):
        if names:
            more = f", and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
            print_line(f"{title}: {', '.join(names[:_SHOWN])}{more}")
    print_next("magicbyte", "verify", out, "--certificate", f"{out.rstrip('/')}/backup.json")
