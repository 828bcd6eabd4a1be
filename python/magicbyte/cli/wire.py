"""`magicbyte wire`"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from magicbyte.cli.exits import PROBLEMS, exit_code
from magicbyte.cli.flags import flags
from magicbyte.cli.options import OutFile, Secrets
from magicbyte.cli.terminal import json_line, print_data, print_line, print_problem
from magicbyte.jobs.find.problems import offsets_text
from magicbyte.options.declare import option
from magicbyte.options.values import FILE, NAMED_TOPIC_IDS, PORTS

if TYPE_CHECKING:
    from magicbyte.jobs.wire_extract import ExtractReport
    from magicbyte.message import Message
    from magicbyte.wire import Exchange, Exchanges

__all__ = ["wire"]


@dataclass(frozen=True, kw_only=True)
class _Capture(Secrets):
    """The traffic to read."""

    requests: str | None = option(
        "Read, instead of captures, all bytes that a client sent on one connection.", default=None, kind=FILE
    )
    responses: str | None = option(
        "All bytes that the broker sent on that connection.", default=None, kind=FILE
    )
    ports: tuple[int, ...] = option(
        "Read only connections to this port.", default=(), flag="--port", kind=PORTS
    )
    topic_ids: Mapping[str, str] = option(
        "The id of a topic that the capture does not name.",
        default_factory=dict,
        flag="--topic-id",
        kind=NAMED_TOPIC_IDS,
    )


@click.command(short_help="Decode captured network traffic: who asked for what, and the batches in it.")
@click.argument("captures", metavar="FILE...", nargs=-1, type=click.Path(exists=True, dir_okay=False))
@flags(_Capture, "given")
@click.option(
    "--json", "as_json", is_flag=True, help="Print every exchange in full, one JSON document per line."
)
@click.option(
    "--parquet",
    metavar="FILE",
    type=OutFile(),
    help="Write a row for each exchange to a new Parquet file.",
)
@click.option(
    "--extract",
    "out",
    metavar="DIR",
    type=click.Path(),
    help="Write the fetched and produced batches as partition directories.",
)
def wire(
    captures: tuple[str, ...],
    given: _Capture,
    as_json: bool,
    parquet: str | None,
    out: str | None,
) -> int:
    """Decode Kafka's protocol in captured network traffic: pcap and pcapng files, one after the other, also
    compressed with gzip, and in tunnels such as VXLAN.

    Each request with its response is a line: the time of the request, the client (address and client id), the
    API and its version, the sizes of both, the time until the response was complete, topics, and errors. A
    capture may begin in the middle of a connection, and packets may be missing from it: lost data is counted.
    Requests without a response have - in its columns.

    Encrypted connections are counted and not read. Wireshark decrypts a capture with a log of TLS keys, and
    "Export PDUs" or "Follow TCP stream" saves the bytes of each direction for --requests and --responses.

    --extract writes the fetched batches, each once, as directories that every other command reads, and
    wire.json, which has the gaps. Produced batches that nobody fetched are also there, with the offsets from
    the broker's response.

    --parquet writes a row for each exchange, with the columns connection, client, server, clientId, api,
    apiKey, apiVersion, correlationId, isSaslToken, requestTime, responseTime, latency, requestBytes,
    responseBytes, topics, errors, and problem where a message cannot be decoded.

    --json has bytes and record sets in base64. Passwords, keys and tokens are left out, as are the records of
    __cluster_metadata: texts are [hidden], bytes null, unless --show-secrets is given. --extract writes
    records as they are.

    \b
    tcpdump -i any -w kafka.pcap port 9092
    magicbyte wire kafka.pcap
    magicbyte wire --json kafka.pcap | jq 'select(.api == "Produce") | .client'
    magicbyte wire --parquet kafka.parquet kafka.pcap
    magicbyte wire --extract fetched/ kafka.pcap
    magicbyte records fetched/orders-0
    magicbyte wire --requests client.bin --responses broker.bin
    """  # noqa: D301 (click takes the character \b for "leave these lines as they are")
    from magicbyte.jobs.wire_extract import extract
    from magicbyte.wire import Exchanges

    streams = (given.requests, given.responses)
    if bool(captures) == any(streams) or any(streams) != all(streams):
        raise click.UsageError("expected capture files, or both --requests and --responses")
    if sum((as_json, parquet is not None, out is not None)) > 1:
        raise click.UsageError("--json, --parquet and --extract exclude each other")
    if given.show_secrets and not as_json:
        raise click.UsageError("--show-secrets goes with --json: nothing else shows messages in full")
    if given.requests is not None and given.responses is not None:
        exchanges = Exchanges.of_streams(
            given.requests, given.responses, topic_ids=given.topic_ids, secrets=given.show_secrets
        )
    else:
        exchanges = Exchanges(
            captures, ports=given.ports, topic_ids=given.topic_ids, secrets=given.show_secrets
        )
    if out is not None:
        report = extract(exchanges, out, sources=[one for one in (*captures, *streams) if one])
        _print_extracted(report)
        return _print_summary(exchanges, report["problems"], report["problems_left_out"])
    if parquet is not None:
        from magicbyte.jobs.wire_table import write_parquet

        failed = write_parquet(exchanges, parquet)
    else:
        # Not a loop, whose variable would keep an exchange while the next one is read.
        failed = sum(map(_print_json if as_json else _Lines(), exchanges))
    summary = exchanges.summary
    code = _print_summary(exchanges, summary.problems, summary.problems_left_out)
    return PROBLEMS if failed else code


_HEAD = (
    f"{'time':24}  {'client':21}  {'client id':20}  {'API':18} {'ver':>3}  {'request':>9}  {'response':>10}"
    f"  {'latency':>10}  {'topics':20}  errors"
)


class _Lines:
    """Prints a line for each exchange, and a header above the first one."""

    def __init__(self) -> None:
        self._has_head = False

    def __call__(self, one: Exchange) -> bool:
        if not self._has_head:
            print_line(_HEAD)
            self._has_head = True
        return _print_exchange(one)


def _print_exchange(one: Exchange) -> bool:
    """Prints a line; returns whether the exchange has a message that cannot be decoded."""
    from magicbyte.cli.times import time_text
    from magicbyte.errors import Error

    time = one.response_time if one.request_time is None else one.request_time
    problem = None
    client_id, errors, topics = None, [], []
    try:
        client_id, topics, errors = one.client_id, one.topics, one.errors
    except Error as error:
        problem = error
    latency = "-" if one.latency is None else f"{one.latency / 1000:,.3f} ms"
    api = one.api or ("(SASL token)" if one.is_sasl_token else "-")
    version = "-" if one.api_version is None else str(one.api_version)
    print_line(
        f"{time_text(None if time is None else time // 1000) or '-':24}  {one.client or '-':21}"
        f"  {client_id or '-':20}  {api:18} {version:>3}  {_size(one.request_frame):>9}"
        f"  {_size(one.response_frame):>10}  {latency:>10}  {', '.join(topics) or '-':20}"
        f"  {f'cannot be decoded: {problem}' if problem else ', '.join(errors) or '-'}"
    )
    return problem is not None


def _size(frame: bytes | None) -> str:
    return "-" if frame is None else f"{len(frame):,}"


def _print_json(one: Exchange) -> bool:
    """Prints a document; returns whether the exchange has a message that cannot be decoded."""
    document, problems = _document(one)
    print_data(json_line(document))
    return bool(problems)


def _document(one: Exchange) -> tuple[dict[str, Any], list[str]]:
    """An exchange as JSON, and why messages in it cannot be decoded."""
    from magicbyte.errors import Error

    problems = []
    messages: dict[str, Message | None] = {"request": None, "response": None}
    for name in messages:
        try:
            messages[name] = getattr(one, name)
        except Error as error:
            problems.append(f"{name}: {error}")
    if one.response_frame is not None and one.api is None and not one.is_sasl_token:
        problems.append("response: its request is not in the capture")
    request, response = messages["request"], messages["response"]
    errors = [] if response is None else one.errors
    document = {
        "connection": one.connection,
        "client": one.client,
        "server": one.server,
        "client_id": request and request.header.get("clientId"),
        "api": one.api,
        "api_key": one.api_key,
        "api_version": one.api_version,
        "correlation_id": one.correlation_id,
        "request_time": one.request_time,
        "response_time": one.response_time,
        "latency": one.latency,
        "request_bytes": None if one.request_frame is None else len(one.request_frame),
        "response_bytes": None if one.response_frame is None else len(one.response_frame),
        "request": request and request.body,
        "response": response and response.body,
        "errors": errors,
        "problems": problems,
    }
    return document, problems


def _print_extracted(report: ExtractReport) -> None:
    from magicbyte.cli.tables import print_table

    print_table(
        ["partition", "first offset", "end offset", "batches", "bytes", "produced", "gaps"],
        [
            [
                f"{partition['topic']}-{partition['partition']}",
                partition["first_offset"],
                partition["end_offset"],
                partition["batches"],
                partition["size"],
                partition["produced"],
                len(partition["gaps"]) + partition["gaps_left_out"],
            ]
            for partition in report["written"]
        ],
    )
    for partition in report["written"]:
        for first, last in partition["gaps"]:
            print_line(
                f"{partition['topic']}-{partition['partition']}:"
                f" the capture does not have {offsets_text(first, last, ',')}"
            )
    if report["unacknowledged"]:
        print_line(f"{report['unacknowledged']:,} produced record sets have no offset, and are left out")


def _print_summary(exchanges: Exchanges, problems: list[str], problems_left_out: int) -> int:
    """Reports what could not be read; returns the exit code."""
    for problem in problems:
        print_problem(f"magicbyte: {problem}")
    if problems_left_out:
        print_problem(f"magicbyte: {problems_left_out:,} more problems")
    summary = exchanges.summary
    found = [
        (summary.tls_connections, "connections are encrypted (TLS), and not read"),
        (summary.other_connections, "connections carry another protocol than Kafka's"),
        (summary.other_packets, "packets are not TCP over IP, or of other ports"),
        (summary.lost_bytes, "bytes were lost in packets that are not in the capture"),
        (summary.skipped_bytes, "bytes were skipped, in which no frame could be recognized"),
    ]
    for count, what in found:
        if count:
            print_problem(f"magicbyte: {count:,} {what}")
    incomplete = problems or summary.tls_connections or summary.lost_bytes or summary.skipped_bytes
    return exit_code(incomplete)
