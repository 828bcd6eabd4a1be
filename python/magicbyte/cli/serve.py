"""`magicbyte serve`"""

from __future__ import annotations

import click

from magicbyte.cli import options, partition_choice
from magicbyte.cli.interrupts import wait_for_interrupt
from magicbyte.cli.terminal import flush, json_line, print_data, print_line, print_problem
from magicbyte.jobs.find.choice import PartitionChoice

__all__ = ["serve"]


@click.command(short_help="Let every Kafka client read the partitions: a read-only broker.")
@partition_choice.sources
@partition_choice.options(prefer=True)
@click.option(
    "--listen",
    default="127.0.0.1:9092",
    show_default=True,
    metavar="HOST:PORT",
    help="The address to listen on; port 0 is any free port.",
)
@click.option(
    "--advertised-listener",
    metavar="HOST:PORT",
    help="The address that clients are told to use, if it differs from the address that they connected to.",
)
@click.option(
    "--magic",
    type=click.Choice(["2"]),
    help="Convert batches of magic 0 and 1 for clients that do not read them.",
)
@click.option(
    "--as-of",
    type=options.TIME,
    metavar="TIME",
    help="Serve the logs as they were then: they end before the first batch with a later timestamp.",
)
@click.option(
    "--read-committed-only",
    is_flag=True,
    help="Hide records of transactions that were aborted or had not ended from all clients.",
)
@options.follow
@click.option(
    "--no-committed-offsets",
    is_flag=True,
    help="Do not read __consumer_offsets: groups start without committed offsets.",
)
@options.max_connections
@click.option(
    "--max-request-bytes",
    type=options.BYTES,
    default="2m",
    show_default=True,
    metavar="SIZE",
    help="The maximum size of a request; a connection with a larger request is closed.",
)
@click.option(
    "--idle",
    type=options.Number(1, 1 << 31),
    default=600,
    show_default=True,
    metavar="SECONDS",
    help="The idle time after which a connection is closed.",
)
@options.max_decompressed_bytes
@options.as_json
def serve(
    sources: tuple[str, ...],
    choice: PartitionChoice,
    listen: str,
    advertised_listener: str | None,
    magic: str | None,
    as_of: int | None,
    read_committed_only: bool,
    follow: bool,
    no_committed_offsets: bool,
    max_connections: int,
    max_request_bytes: int,
    idle: int,
    max_decompressed_bytes: int,
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
    from magicbyte.jobs.run.engines import LocalEngine
    from magicbyte.jobs.run.progress import terminal_progress
    from magicbyte.jobs.serve import ServeOptions
    from magicbyte.jobs.serve import serve as serve_job

    chosen = ServeOptions(
        listen=listen,
        advertised_listener=advertised_listener,
        to_magic_2=magic == "2",
        as_of=as_of,
        read_committed_only=read_committed_only,
        follow=follow,
        committed_offsets=not no_committed_offsets,
        max_connections=max_connections,
        max_request_bytes=max_request_bytes,
        idle_ms=idle * 1000,
    )
    with serve_job(
        sources,
        LocalEngine(),
        chosen,
        choice=choice,
        max_decompressed_bytes=max_decompressed_bytes,
        progress=terminal_progress(),
    ) as server:
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
