"""`magicbyte serve`"""

from __future__ import annotations

import click

import magicbyte
from magicbyte.cli import options, partition_choice
from magicbyte.cli.flags import flags
from magicbyte.cli.interrupts import wait_for_interrupt
from magicbyte.cli.terminal import flush, json_line, print_data, print_line, print_problem
from magicbyte.jobs.find.choice import PartitionChoice
from magicbyte.options.serve import DEFAULT_LISTEN, ServeOptions

__all__ = ["serve"]


@click.command(short_help="Let every Kafka client read the partitions: a read-only broker.")
@partition_choice.sources
@partition_choice.choice(prefer=True)
@flags(ServeOptions, "given", defaults={"listen": DEFAULT_LISTEN})
@options.as_json
def serve(
    sources: tuple[str, ...],
    choice: PartitionChoice,
    given: ServeOptions,
    as_json: bool,
) -> None:
    """Serve the partitions at and below SRC to Kafka clients, until interrupted. Nothing is ever written.

    Consumers read with assign or subscribe, at both isolation levels, and look up offsets by time; groups
    continue at their committed offsets, if __consumer_offsets is at or below SRC. New commits of groups are
    forgotten at the end. Producers are refused.

    Damaged batches are left out, as if they had been compacted away. The topic __magicbyte_problems lists the
    problems found so far, as JSON; `magicbyte verify` finds all of them.

    There is no encryption and no authentication: anyone who can reach HOST:PORT can read everything.

    --json prints a line with bootstrap_servers and the partitions as soon as clients can connect.

    \b
    magicbyte serve /backup/kafka-logs
    magicbyte serve --listen 127.0.0.1:0 --json /backup/kafka-logs
    magicbyte serve --listen 0.0.0.0:9092 --advertised-listener archive:9092 /backup/kafka-logs
    magicbyte serve --topic 'orders-*' --as-of 2026-03-01T00:00:00 /backup/kafka-logs
    magicbyte serve --magic 2 /backup/kafka-0.10
    """  # noqa: D301 (click takes the character \b for "leave these lines as they are")
    from magicbyte.jobs.run.progress import terminal_progress

    with magicbyte.serve(sources, choice=choice, progress=terminal_progress(), **vars(given)) as server:
        for problem in server.problems:
            print_problem(f"magicbyte: {problem}")
        if as_json:
            partitions = [{"topic": topic, "partition": number} for topic, number in server.partitions]
            print_data(json_line({"bootstrap_servers": server.bootstrap_servers, "partitions": partitions}))
        else:
            topics = len({topic for topic, _ in server.partitions})
            print_line(
                f"{len(server.partitions):,} partitions of {topics:,} topics at {server.bootstrap_servers};"
                " Ctrl-C stops"
            )
        flush()
        wait_for_interrupt()
