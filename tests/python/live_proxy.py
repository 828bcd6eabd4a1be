"""A broker that lies: a proxy before a real one, which changes bytes of its answers."""

from __future__ import annotations

import socket
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager

__all__ = ["lying"]


@contextmanager
def lying(address: str, changes: dict[bytes, bytes], asked: Counter[int] | None = None) -> Iterator[str]:
    """The address of a proxy for a broker that calls itself by this address too.

    In every answer, the first bytes of each change become the second, of the same length. `asked` counts the
    requests by the keys of their APIs.
    """
    host, _, port = address.rpartition(":")
    listener = socket.create_server(("127.0.0.1", 0))
    own = listener.getsockname()[1]
    # Metadata names the port of the broker, in four bytes after its host.
    name = len(host).to_bytes(2, "big") + host.encode()
    compact = (len(host) + 1).to_bytes(1, "big") + host.encode()
    changes = changes | {
        text + int(port).to_bytes(4, "big"): text + own.to_bytes(4, "big") for text in (name, compact)
    }

    def serve() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            server = socket.create_connection((host, int(port)))
            threading.Thread(target=relay, args=(client, server), daemon=True).start()
            threading.Thread(target=lie, args=(server, client), daemon=True).start()

    def relay(source: socket.socket, target: socket.socket) -> None:
        with closing(target):
            while size := _exactly(source, 4):
                request = _exactly(source, int.from_bytes(size, "big"))
                if asked is not None:
                    asked[int.from_bytes(request[:2], "big")] += 1
                target.sendall(size + request)

    def lie(source: socket.socket, target: socket.socket) -> None:
        with closing(target):
            while size := _exactly(source, 4):
                answer = _exactly(source, int.from_bytes(size, "big"))
                for old, new in changes.items():
                    answer = answer.replace(old, new)
                target.sendall(size + answer)

    threading.Thread(target=serve, daemon=True).start()
    with closing(listener):
        yield f"{host}:{own}"


def _received(source: socket.socket, size: int) -> bytes:
    try:
        return source.recv(size)
    except OSError:
        return b""


def _exactly(source: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = _received(source, size - len(data))
        if not more:
            return b""
        data += more
    return data
