"""The job of `magicbyte serve`: finds the partitions and the committed offsets of groups, and serves them."""

from __future__ import annotations

import json
from collections.abc import Sequence

from magicbyte._core import PROBLEMS_TOPIC, Server
from magicbyte.errors import RefusedError
from magicbyte.internal_topics.names import CLUSTER_METADATA, CONSUMER_OFFSETS, TRANSACTION_STATE
from magicbyte.jobs.explain import coordinated_transactions
from magicbyte.jobs.find.choice import EVERYTHING, PartitionChoice
from magicbyte.jobs.find.cluster import read_cluster
from magicbyte.jobs.find.partitions import find_inputs
from magicbyte.jobs.offsets import CommittedOffset, ConsumerGroup, PositionChoice, offsets_of
from magicbyte.jobs.run.engines import Engine
from magicbyte.jobs.run.progress import NO_PROGRESS, Progress
from magicbyte.jobs.topics import topics_of
from magicbyte.options.serve import DEFAULT_LISTEN, ServeOptions

__all__ = ["PROBLEMS_TOPIC", "Server", "parse_address", "serve"]


def serve(
    sources: Sequence[str],
    engine: Engine,
    options: ServeOptions,
    *,
    choice: PartitionChoice = EVERYTHING,
    progress: Progress = NO_PROGRESS,
) -> Server:
    """Serves the partitions at and below `sources`.

    The groups, the transactions and the cluster's metadata are read first, partitions only when a client
    asks.

    Raises:
        RefusedError: if there is nothing to serve, or a partition is found twice.
        OSError: if the address cannot be listened on.

    """
    listen = parse_address(options.listen)
    advertised = options.advertised_listener
    consult = {CLUSTER_METADATA, TRANSACTION_STATE}
    if options.committed_offsets:
        consult.add(CONSUMER_OFFSETS)
    inputs = find_inputs(sources, choice, distinct=True, consult=consult)
    cluster = read_cluster(inputs.consulted_partition(CLUSTER_METADATA))
    transactions, transaction_problems = coordinated_transactions(inputs.consulted, as_of=options.as_of)
    problems = [*cluster.problems, *transaction_problems]
    committed: list[CommittedOffset] = []
    groups: list[ConsumerGroup] = []
    own = [listing for listing in inputs.consulted if listing["topic"] == CONSUMER_OFFSETS]
    if own:
        report = offsets_of(
            own,
            lambda _: {},
            engine,
            choice=PositionChoice(choice, as_of=options.as_of),
            max_decompressed_bytes=options.max_decompressed_bytes,
            progress=progress,
        )
        committed, groups = report["offsets"], report["groups"]
        problems += report["problems"]
    try:
        return Server(
            [json.dumps(listing) for listing in inputs.listings],
            listen,
            advertised_listener=None if advertised is None else parse_address(advertised),
            to_magic_2=options.to_magic_2,
            as_of=options.as_of,
            read_committed_only=options.read_committed_only,
            follow=options.follow,
            topics=topics_of(cluster, inputs.directories, choice)["topics"],
            groups=groups,
            committed=committed,
            transactions=transactions.transactions,
            problems=problems,
            max_connections=options.max_connections,
            max_request_bytes=options.max_request_bytes,
            idle_ms=options.idle_ms,
        )
    except OSError as error:
        if error.errno is not None:
            raise
        # A name without an address: the message has no number.
        raise OSError(error.strerror) from None


def parse_address(text: str) -> tuple[str, int]:
    """`host:port` or `[host]:port`.

    Raises:
        RefusedError: if it is neither.

    """
    host, colon, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise RefusedError(f"{text!r} is not an address such as {DEFAULT_LISTEN}")
    return host, int(port)
