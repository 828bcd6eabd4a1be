"""Partitions of a running cluster, which is read by offsets: it has no files to list or to survey."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike

from magicbyte._core import ClusterReader, LiveCluster, PartitionReader
from magicbyte.enums import DamageMode
from magicbyte.errors import Error, RefusedError
from magicbyte.storage.location import ClusterUrl, cluster_of

__all__ = [
    "CommandConfig",
    "ConfigFile",
    "chosen_partitions",
    "connect",
    "only_cluster",
    "open_cluster",
    "open_live_partition",
    "open_live_partitions",
    "split_sources",
]

ConfigFile = str | PathLike[str] | None
"""A file of properties of Kafka's own clients."""
CommandConfig = ConfigFile | Mapping[str, str]
"""Such a file, or the properties by their names."""
_TOPICS_NAMED = 10
"""The number of topics that a message names."""


def split_sources(
    sources: Iterable[str], command_config: CommandConfig
) -> tuple[list[str], list[ClusterUrl]]:
    """The sources that have files, and those that are running clusters.

    Raises:
        RefusedError: if a URL of a cluster is invalid, or there are properties for a cluster and no cluster.

    """
    files: list[str] = []
    clusters: list[ClusterUrl] = []
    for source in sources:
        cluster = cluster_of(source)
        if cluster is None:
            files.append(source)
        else:
            clusters.append(cluster)
    if command_config is not None and not clusters:
        raise RefusedError(
            "properties for connections are given (command_config), and no running cluster, such as"
            " kafka://host:9092"
        )
    return files, clusters


def only_cluster(sources: Sequence[str], command_config: CommandConfig) -> ClusterUrl | None:
    """The running cluster that is described, instead of files; None if the sources are files.

    Raises:
        RefusedError: as `split_sources`, and for a cluster beside other sources.

    """
    _, clusters = split_sources(sources, command_config)
    if clusters and len(sources) > 1:
        raise RefusedError(f"{clusters[0].cluster}: a running cluster is described by itself: give one SRC")
    return clusters[0] if clusters else None


def open_cluster(
    servers: str, command_config: CommandConfig = None, on_retry: Callable[[str], object] | None = None
) -> ClusterReader:
    """Connects to a cluster, for requests about it and its batches: `host:port,host:port`, or its URL.

    `on_retry` is called with the error of each attempt that is repeated.

    Raises:
        RefusedError: if an address or a property is invalid, or the URL names a topic.
        OSError: if no broker answers, or the cluster does not accept the user.

    """
    # The reader says what it expects instead of an empty text.
    url = cluster_of(servers) if servers else None
    if url is not None and url.topic is not None:
        raise RefusedError(f"{servers}: expected HOST:PORT or {url.cluster}, without a topic")
    with _refusing_arguments():
        if url is None:
            return ClusterReader(servers, command_config, on_retry=on_retry)
        return ClusterReader(
            url.bootstrap_servers, command_config, tls=url.scheme == "kafkas", on_retry=on_retry
        )


def open_live_partitions(
    urls: Iterable[ClusterUrl],
    command_config: CommandConfig,
    is_chosen: Callable[[str, int], bool],
    *,
    check_crcs: bool,
    max_decompressed_bytes: int,
    mode: DamageMode,
) -> list[PartitionReader]:
    """Opens the chosen partitions that URLs name: those of each in the order of topics and partitions.

    A partition that several URLs name is opened once.

    Raises:
        RefusedError: if a URL has none, or an address or property is invalid.
        OSError: if a cluster does not answer or refuses.

    """
    readers: dict[str, PartitionReader] = {}
    for url in urls:
        cluster = connect(url, command_config)
        for place in chosen_partitions(url, cluster.partitions(), is_chosen):
            path = url.of(*place)
            if path not in readers:
                readers[path] = cluster.partition(path, *place, check_crcs, max_decompressed_bytes, mode)
    return [*readers.values()]


def chosen_partitions(
    url: ClusterUrl, there: Iterable[tuple[str, int]], is_chosen: Callable[[str, int], bool]
) -> list[tuple[str, int]]:
    """The chosen partitions that a URL names, of those that a cluster has, in their order.

    Raises:
        RefusedError: if there is none.

    """
    named = sorted(place for place in there if url.includes(*place))
    if not named and url.topic is not None:
        name = url.topic if url.partition is None else f"{url.topic}-{url.partition}"
        raise RefusedError(
            f"{url.bootstrap_servers}: the cluster has no {name}, or does not show it to this client"
        )
    chosen = [place for place in named if is_chosen(*place)]
    if not chosen:
        topics = ", ".join(sorted({topic for topic, _ in named})[:_TOPICS_NAMED])
        there_is = f"there are partitions of {topics}" if topics else "the cluster has no topics"
        raise RefusedError(f"{url.bootstrap_servers}: no partition is chosen; {there_is}")
    return chosen


def open_live_partition(
    url: ClusterUrl,
    command_config: CommandConfig,
    *,
    check_crcs: bool,
    max_decompressed_bytes: int,
    mode: DamageMode,
) -> PartitionReader:
    """Opens the one partition that a URL names; errors are those of `open_live_partitions`.

    Raises:
        ValueError: if the URL names a topic or a cluster.

    """
    if url.partition is None:
        name = url.cluster + (f"/{url.topic}" if url.topic else "")
        example = url.of(url.topic or "TOPIC", 0)
        raise ValueError(
            f"{name} is not a partition: open one, such as PartitionLog({example!r}),"
            f" or all with Log({name!r})"
        )
    [reader] = open_live_partitions(
        [url],
        command_config,
        lambda _topic, _partition: True,
        check_crcs=check_crcs,
        max_decompressed_bytes=max_decompressed_bytes,
        mode=mode,
    )
    return reader


def connect(url: ClusterUrl, command_config: CommandConfig) -> LiveCluster:
    """Connects to a cluster; errors are those of `open_live_partitions`."""
    with _refusing_arguments():
        return LiveCluster(url.bootstrap_servers, command_config, tls=url.scheme == "kafkas")


@contextmanager
def _refusing_arguments() -> Iterator[None]:
    """Turns the errors of addresses and properties into RefusedError; those of brokers pass."""
    try:
        yield
    except Error:
        raise
    except ValueError as error:
        raise RefusedError(str(error)) from None
