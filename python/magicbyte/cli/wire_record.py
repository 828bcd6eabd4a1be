"""`magicbyte wire record`"""

from __future__ import annotations

from contextlib import suppress

import click

from magicbyte.cli import options
from magicbyte.cli.exits import CLEAN, PROBLEMS
from magicbyte.cli.interrupts import wait_for_interrupt
from magicbyte.cli.terminal import flush, print_line, print_problem

__all__ = ["wire_record"]


@click.command("record")
@click.argument("out", metavar="OUT", type=click.Path(dir_okay=False))
@click.option(
    "--listen",
    required=True,
    metavar="HOST:PORT",
    help="The address that clients connect to; port 0 is any free port.",
)
@click.option("--upstream", required=True, metavar="HOST:PORT", help="The broker behind the proxy.")
@click.option(
    "--max-bytes",
    type=options.BYTES,
    default="16g",
    show_default=True,
    metavar="SIZE",
    help="The maximum size of OUT; later bytes are passed on and not recorded.",
)
@options.max_connections
def wire_record(out: str, listen: str, upstream: str, max_bytes: int, max_connections: int) -> int:
    """Pass on what clients and brokers send, and record it, until interrupted.

    OUT is a new pcap file, complete at any time, which `magicbyte wire` reads. It has the brokers' original
    responses. Clients get other addresses of brokers, which lead through the proxy: it listens on HOST, on a
    free port for each broker other than the first.

    Encrypted connections are passed on as they are, and their clients then connect to the brokers themselves.

    \b
    magicbyte wire record --listen 127.0.0.1:9093 --upstream broker:9092 kafka.pcap
    """  # noqa: D301 (click takes the character \b for "leave these lines as they are")
    from magicbyte.jobs.serve import parse_address
    from magicbyte.jobs.wire_recorder import WireRecorder

    with WireRecorder(
        out,
        parse_address(listen),
        parse_address(upstream),
        max_bytes=max_bytes,
        max_connections=max_connections,
    ) as recorder:
        host, port = recorder.address
        with suppress(KeyboardInterrupt):
            print_line(f"recording {upstream} at {host}:{port} in {out}; Ctrl-C stops")
            flush()
            wait_for_interrupt()
    summary = recorder.summary  # now that it is closed, nothing is added
    print_line(f"{recorder.connections:,} connections, {summary.size:,} bytes")
    problems = [*recorder.problems, *([] if summary.problem is None else [summary.problem])]
    for problem in problems:
        print_problem(f"magicbyte: {problem}")
    return PROBLEMS if problems else CLEAN
