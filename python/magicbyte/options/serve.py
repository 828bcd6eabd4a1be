"""Options of `serve`."""

from __future__ import annotations

from dataclasses import dataclass

from magicbyte.options.declare import option
from magicbyte.options.shared import Decoding, Follow
from magicbyte.options.values import SIZE, TIME, Kind, Number, OneOf, Seconds

__all__ = ["DEFAULT_LISTEN", "ServeOptions"]

DEFAULT_LISTEN = "127.0.0.1:9092"
"""The address of `magicbyte serve`; in a program, the default is any free port."""


@dataclass(frozen=True, kw_only=True)
class ServeOptions(Follow, Decoding):
    """Options of a read-only broker."""

    listen: str = option(
        "The address to listen on; port 0 is any free port.", default="127.0.0.1:0", kind=Kind("HOST:PORT")
    )
    advertised_listener: str | None = option(
        "The address that clients are told to use, if it differs from the address that they connected to.",
        default=None,
        kind=Kind("HOST:PORT"),
    )
    to_magic_2: bool = option(
        "Convert batches of magic 0 and 1 for clients that do not read them.",
        default=False,
        flag="--magic",
        kind=OneOf({"2": True}),
    )
    as_of: int | None = option(
        "Serve the logs as they were then: they end before the first batch with a later timestamp.",
        default=None,
        kind=TIME,
    )
    read_committed_only: bool = option(
        "Hide records of transactions that were aborted or had not ended from all clients.", default=False
    )
    committed_offsets: bool = option(
        "Let groups continue at their committed offsets, as __consumer_offsets has them.", default=True
    )
    max_connections: int = option(
        "The maximum number of connections; further connections are closed at once.",
        default=256,
        kind=Number(1, 1 << 16),
    )
    max_request_bytes: int = option(
        "The maximum size of a request; a connection with a larger request is closed.",
        default=2 << 20,
        kind=SIZE,
    )
    idle_ms: int = option(
        "The idle time after which a connection is closed.",
        default=600_000,
        kind=Seconds(1, 1 << 31, "SECONDS"),
        flag="--idle",
    )
