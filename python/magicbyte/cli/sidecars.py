"""`magicbyte sidecars`"""

from __future__ import annotations

import os

import click

from magicbyte.cli.exits import CLEAN, PROBLEMS
from magicbyte.cli.sidecar_entries import is_sidecar, read_sidecar
from magicbyte.cli.terminal import json_line, print_data, print_problem

__all__ = ["sidecars"]


@click.command(short_help="Print indexes, snapshots and checkpoints as JSON lines.")
@click.argument(
    "files", metavar="FILE...", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False)
)
def sidecars(files: tuple[str, ...]) -> int:
    """Print the entries of the files beside segments as JSON lines: one object per entry.

    FILE is an .index, .timeindex, .txnindex or .snapshot, a leader-epoch-checkpoint, or a
    partition.metadata; or a file of a broker's log directory: meta.properties, .kafka_cleanshutdown,
    replication-offset-checkpoint, recovery-point-offset-checkpoint, log-start-offset-checkpoint or
    cleaner-offset-checkpoint. The fields have the names that kafka-dump-log or Kafka's classes give them.

    \b
    magicbyte sidecars orders-0/*.index
    magicbyte sidecars orders-0/00000000000000000000.timeindex | jq .timestamp
    magicbyte sidecars orders-0/*.txnindex orders-0/*.snapshot | jq 'select(.producerId == 4711)'
    magicbyte sidecars orders-0/leader-epoch-checkpoint orders-0/partition.metadata
    magicbyte sidecars /backup/kafka-logs/meta.properties /backup/kafka-logs/replication-offset-checkpoint
    """  # noqa: D301 (click takes the character \b for "leave these lines as they are")
    from magicbyte.cli.sources import readable

    for path in readable(files):
        if not is_sidecar(path):
            raise click.UsageError(
                f"{path} is not an index, a snapshot or a checkpoint of a partition;"
                " `magicbyte records` prints segments"
            )
    code = CLEAN
    for path in files:
        entries, error = read_sidecar(path)
        for entry in entries:
            print_data(json_line({"file": os.path.basename(path), **entry}))
        if error is not None:
            code = PROBLEMS
            # The system's errors name the file themselves.
            place = "" if isinstance(error, OSError) else f"{path}: "
            print_problem(f"magicbyte: {place}{error}")
    return code
