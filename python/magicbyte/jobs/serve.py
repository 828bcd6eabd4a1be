"""The job of `magicbyte serve`: finds the partitions and the committed offsets of groups, and serves them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self

from magicbyte import _core
from magicbyte.errors import RefusedError
from magicbyte.internal_topics.names import CLUSTER_METADATA, CONSUMER_OFFSETS
from magicbyte.jobs.find.choice import EVERYTHING, PartitionChoice
from magicbyte.jobs.find.cluster import read_cluster
from magicbyte.jobs.find.partitions import find_inputs
from magicbyte.jobs.offsets import OffsetsReport, offsets_of
from magicbyte.jobs.run.engines import Engine
from magicbyte.jobs.run.progress import NO_PROGRESS, Progress
from magicbyte.jobs.topics import topics_of
from magicbyte.model import PartitionListing
from magicbyte.options.serve import DEFAULT_LISTEN, ServeOptions

__all__ = ["PROBLEMS_TOPIC", "Server", "parse_address", "serve"]

PROBLEMS_TOPIC = "__magicbyte_problems"
"""The topic that lists the damage met so far."""

_Topics = Mapping[str, tuple[str | None, dict[str, str]]]
_Committed = list[tuple[str, str, int, int, int, str | None]]


class Server:
    """A read-only broker over partition directories, which runs in threads until it is stopped.

    >>> import magicbyte
    >>> with magicbyte.serve("samples", listen="127.0.0.1:0") as server:
    ...     host, _, port = server.bootstrap_servers.partition(":")
    >>> host
    '127.0.0.1'
    """

    def __init__(self, core: _core.ServerCore, listings: Sequence[PartitionListing], problems: list[str]):
        self._core = core
        self._listings = listings
        self._problems = problems

    @property
    def bootstrap_servers(self) -> str:
        """The address for clients, such as `127.0.0.1:9092`."""
        host, port = self._core.address
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    @property
    def partitions(self) -> list[tuple[str, int]]:
        """The topic and number of each partition that is served, apart from the list of problems."""
        return [(one["topic"], one["partition"]) for one in self._listings]

    @property
    def problems(self) -> list[str]:
        """Problems with reading the cluster's metadata and the committed offsets."""
        return list(self._problems)

    @property
    def connections(self) -> int:
        """The number of open connections."""
        return self._core.connections

    def stop(self) -> None:
        """Closes all connections. Does nothing if that was done before."""
        self._core.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<Server {self.bootstrap_servers}: {len(self._listings)} partitions>"


def serve(
    sources: Sequence[str],
    engine: Engine,
    options: ServeOptions,
    *,
    choice: PartitionChoice = EVERYTHING,
    progress: Progress = NO_PROGRESS,
) -> Server:
    """Serves the partitions at and below `sources`.

    The committed offsets and the cluster's metadata are read first, partitions only when a client asks.

    Raises:
        RefusedError: if there is nothing to serve, or a partition is found twice.
        OSError: if the address cannot be listened on.

    """
    listen = parse_address(options.listen)
    advertised = options.advertised_listener
    consult = {CLUSTER_METADATA, CONSUMER_OFFSETS} if options.committed_offsets else {CLUSTER_METADATA}
    inputs = find_inputs(sources, choice, distinct=True, consult=consult)
    cluster = read_cluster(inputs.consulted_partition(CLUSTER_METADATA))
    topics: _Topics = {
        topic["topic"]: (topic["topic_id"], topic["configs"])
        for topic in topics_of(cluster, inputs.directories, choice)["topics"]
    }
    problems = list(cluster.problems)
    committed: _Committed = []
    own = [one for one in inputs.consulted if one["topic"] == CONSUMER_OFFSETS]
    if own:
        report = offsets_of(
            own,
            lambda _: {},
            engine,
            choice=choice,
            max_decompressed_bytes=options.max_decompressed_bytes,
            progress=progress,
        )
        committed = _committed(report)
        problems += report["problems"]
    core = _core.ServerCore(
        [json.dumps(one) for one in inputs.listings],
        listen,
        advertised_listener=None if advertised is None else parse_address(advertised),
        to_magic_2=options.to_magic_2,
        as_of=options.as_of,
        read_committed_only=options.read_committed_only,
        follow=options.follow,
        topics=topics,
        committed=committed,
        max_connections=options.max_connections,
        max_request_bytes=options.max_request_bytes,
        idle_ms=options.idle_ms,
    )
    return Server(core, inputs.listings, problems)


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


def _committed(report: OffsetsReport) -> _Committed:
    return [
        (
            one["group"],
            one["topic"],
            one["partition"],
            one["offset"],
            -1 if one["leader_epoch"] is None else one["leader_epoch"],
            one["metadata"],
        )
        for one in report["offsets"]
    ]
