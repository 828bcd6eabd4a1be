"""A read-only broker over partition directories: used by `magicbyte.jobs.serve`."""

from collections.abc import Iterable, Mapping
from typing import Final, Self, final

PROBLEMS_TOPIC: Final[str]
"""The topic that lists the damage met so far."""

@final
class Server:
    """A read-only broker over partition directories, which runs in threads until it is stopped.

    >>> import magicbyte
    >>> with magicbyte.serve("samples", listen="127.0.0.1:0") as server:
    ...     host, _, port = server.bootstrap_servers.partition(":")
    >>> host
    '127.0.0.1'
    """

    def __new__(
        cls,
        listings: Iterable[str],
        listen: tuple[str, int],
        *,
        advertised_listener: tuple[str, int] | None = None,
        to_magic_2: bool = False,
        as_of: int | None = None,
        read_committed_only: bool = False,
        follow: bool = False,
        topics: Iterable[Mapping[str, object]] = (),
        groups: Iterable[Mapping[str, object]] = (),
        committed: Iterable[Mapping[str, object]] = (),
        transactions: Iterable[object] = (),
        problems: Iterable[str] = (),
        max_connections: int | None = None,
        max_request_bytes: int | None = None,
        idle_ms: int | None = None,
    ) -> Self: ...
    @property
    def bootstrap_servers(self) -> str:
        """The address for clients, such as `127.0.0.1:9092`."""

    @property
    def partitions(self) -> list[tuple[str, int]]:
        """The topic and number of each partition that is served, apart from the list of problems."""

    @property
    def problems(self) -> list[str]:
        """Problems with reading the cluster's metadata, the groups and the transactions."""

    @property
    def connections(self) -> int:
        """The number of open connections."""

    def stop(self) -> None:
        """Closes all connections. Does nothing if that was done before."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *_error: object) -> None: ...
