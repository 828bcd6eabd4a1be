"""A proxy between a client and brokers that delays what it passes on, and resets connections in the middle of it."""

from __future__ import annotations

import contextlib
import itertools
import random
import socket
import struct
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from redirect import Redirect

__all__ = ["ToxicProxy", "toxic_proxy"]

_RESET = struct.pack("ii", 1, 0)
"""`SO_LINGER` that ends a connection with a reset."""


class ToxicProxy:
    """Listens for each broker on a port of its own, to which the addresses in responses lead."""

    def __init__(self, upstream: tuple[str, int], cuts: Sequence[int], delay: float) -> None:
        """Starts, in threads.

        Args:
            upstream: host and port of a broker.
            cuts: the bytes after which the first connection is reset, the second, and so on; later ones last.
            delay: the seconds by which every portion of a response comes late.

        """
        self.resets = 0
        self._cuts = cuts
        self._numbers = itertools.count()
        self._delay = delay
        self._random = random.Random(41)
        self._lock = threading.Lock()
        self._listeners: dict[tuple[str, int], socket.socket] = {}
        self.address = self._place(*upstream)

    def close(self) -> None:
        """Accepts no more connections."""
        for listener in self._listeners.values():
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()

    def _place(self, host: str, port: int) -> tuple[str, int]:
        with self._lock:
            if (host, port) not in self._listeners:
                listener = self._listeners[host, port] = socket.create_server(("127.0.0.1", 0))
                threading.Thread(target=self._accept, args=(listener, (host, port)), daemon=True).start()
            found: tuple[str, int] = self._listeners[host, port].getsockname()
            return found

    def _accept(self, listener: socket.socket, upstream: tuple[str, int]) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                number = next(self._numbers)
                cut = self._cuts[number] if number < len(self._cuts) else None
                threading.Thread(target=self._serve, args=(client, upstream, cut), daemon=True).start()

    def _serve(self, client: socket.socket, upstream: tuple[str, int], cut: int | None) -> None:
        redirect = Redirect(self._place)
        with client, contextlib.suppress(OSError), socket.create_connection(upstream) as server:
            threading.Thread(target=_request, args=(client, server, redirect), daemon=True).start()
            while data := server.recv(self._random.randrange(1, 60_000)):
                time.sleep(self._delay)
                data = redirect.response(data)
                if cut is not None and len(data) >= cut:
                    client.sendall(data[:cut])
                    self.resets += 1
                    # The other thread has to leave the socket, or closing it would end nothing.
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                    client.shutdown(socket.SHUT_RD)
                    return
                client.sendall(data)
                cut = None if cut is None else cut - len(data)


def _request(client: socket.socket, server: socket.socket, redirect: Redirect) -> None:
    with contextlib.suppress(OSError):
        while data := client.recv(60_000):
            redirect.request(data)
            server.sendall(data)
        server.shutdown(socket.SHUT_WR)


@contextmanager
def toxic_proxy(bootstrap: str, cuts: Sequence[int], delay: float = 0.0) -> Iterator[ToxicProxy]:
    """Runs a proxy before the broker at this address."""
    host, _, port = bootstrap.partition(":")
    proxy = ToxicProxy((host, int(port)), cuts, delay)
    try:
        yield proxy
    finally:
        proxy.close()
