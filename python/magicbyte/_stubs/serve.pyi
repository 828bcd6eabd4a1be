"""A read-only broker over partition directories: used by `magicbyte.jobs.serve`."""

from collections.abc import Mapping, Sequence
from typing import final

@final
class ServerCore:
    """Serves the partitions of PartitionListings (JSON). See `magicbyte.serve` for the arguments.

    `listen` is a host and a port, 0 for any free one; `topics` has the id and the configs of topics, and
    `committed` what groups had committed: group, topic, partition, offset, leader epoch (-1 if unknown),
    metadata. Raises OSError if the address cannot be listened on.
    """

    def __new__(
        cls,
        listings: Sequence[str],
        listen: tuple[str, int],
        *,
        advertised_listener: tuple[str, int] | None = None,
        to_magic_2: bool = False,
        as_of: int | None = None,
        read_committed_only: bool = False,
        follow: bool = False,
        topics: Mapping[str, tuple[str | None, dict[str, str]]] = ...,
        committed: Sequence[tuple[str, str, int, int, int, str | None]] = ...,
        max_connections: int | None = None,
        max_request_bytes: int | None = None,
        idle_ms: int | None = None,
    ) -> ServerCore: ...
    @property
    def address(self) -> tuple[str, int]:
        """The host and port that the server listens on."""

    @property
    def connections(self) -> int:
        """The number of open connections."""

    def stop(self) -> None:
        """Closes all connections. Does nothing if that was done before."""
