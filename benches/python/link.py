"""A slow link to a server: a proxy that delays requests, limits the rate of the answers, and counts both.

    python benches/python/link.py HOST PORT MILLISECONDS MEGABYTES_PER_SECOND

Prints its port. For each line on its standard input, it prints the requests and the bytes of the answers
since the line before; with the end of the input it ends.
"""

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

CHUNK = 256 << 10


@dataclass(frozen=True)
class Passed:
    """What a link has passed on; `bytes` are those of the answers, headers included."""

    requests: int
    bytes: int


class Link:
    """The link to one server, in a process of its own."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self.endpoint = f"http://127.0.0.1:{self._line()}"

    def passed(self) -> Passed:
        """What was passed on since the last call."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        requests, size = self._line().split()
        return Passed(int(requests), int(size))

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


@contextmanager
def linked(endpoint: str, milliseconds: float, megabytes_per_second: float) -> Iterator[Link]:
    """Runs a link to the server at `http://HOST:PORT`."""
    host, _, port = endpoint.removeprefix("http://").partition(":")
    command = [sys.executable, __file__, host, port, str(milliseconds), str(megabytes_per_second)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Link(process)


class _Proxy:
    def __init__(self, upstream: tuple[str, int], delay: float, rate: float) -> None:
        self._upstream, self._delay, self._rate = upstream, delay, rate
        self._lock = threading.Lock()
        self._free = 0.0
        """When the link has passed on all that it was given."""
        self._requests = self._bytes = 0

    def take(self) -> tuple[int, int]:
        with self._lock:
            taken = self._requests, self._bytes
            self._requests = self._bytes = 0
        return taken

    def serve(self, listener: socket.socket) -> None:
        while True:
            client, _ = listener.accept()
            threading.Thread(target=self._connect, args=(client,), daemon=True).start()

    def _connect(self, client: socket.socket) -> None:
        server = socket.create_connection(self._upstream)
        for one in (client, server):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # A connection takes a round trip, as a request does.
        time.sleep(self._delay)
        threading.Thread(target=self._pass_on, args=(client, server, self._request), daemon=True).start()
        self._pass_on(server, client, self._answer)

    def _pass_on(self, source: socket.socket, target: socket.socket, shape: object) -> None:
        try:
            while data := source.recv(CHUNK):
                shape(data)  # type: ignore[operator]
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            # One side has gone, so the other one can.
            for one in (source, target):
                one.close()

    def _request(self, data: bytes) -> None:
        with self._lock:
            self._requests += data.count(b"\r\n\r\n")
        time.sleep(self._delay)

    def _answer(self, data: bytes) -> None:
        with self._lock:
            self._bytes += len(data)
            self._free = max(self._free, time.monotonic()) + len(data) / self._rate
            wait = self._free - time.monotonic()
        if wait > 0:
            time.sleep(wait)


def main() -> None:
    host, port, milliseconds, megabytes = sys.argv[1:]
    proxy = _Proxy((host, int(port)), float(milliseconds) / 1e3, float(megabytes) * 1e6)
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    print(listener.getsockname()[1], flush=True)
    threading.Thread(target=proxy.serve, args=(listener,), daemon=True).start()
    for _ in sys.stdin:
        print(*proxy.take(), flush=True)


if __name__ == "__main__":
    main()
