"""A proxy in front of an S3 server that fails in every way that servers and networks do."""

from __future__ import annotations

import http.client
import http.server
import random
import socket
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

__all__ = ["flaky_proxy"]


@contextmanager
def flaky_proxy(endpoint: str, troubles: Sequence[int | str]) -> Iterator[Any]:
    """Runs a proxy; its `seen` counts what became of the requests."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Flaky) as proxy:
        server: Any = proxy
        server.daemon_threads = True
        server.random = random.Random(23)
        server.troubles = list(troubles)
        server.seen = Counter()
        host, _, port = endpoint.removeprefix("http://").partition(":")
        server.upstream = host, int(port)
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        yield server
        proxy.shutdown()


class _Flaky(http.server.BaseHTTPRequestHandler):
    """Passes on requests; every third one fails in one of many ways."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._pass_on("GET")

    def do_HEAD(self) -> None:
        self._pass_on("HEAD")

    def do_PUT(self) -> None:
        self._pass_on("PUT")

    def do_POST(self) -> None:
        self._pass_on("POST")

    def do_DELETE(self) -> None:
        self._pass_on("DELETE")

    def _pass_on(self, method: str) -> None:
        server: Any = self.server
        sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        trouble = server.random.choice(server.troubles) if server.random.random() < 0.33 else None
        server.seen[trouble] += 1
        if trouble in (500, 503):
            self.send_response(trouble)
            if trouble == 503:
                self.send_header("Retry-After", "0")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if trouble == "reset":
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        host, port = server.upstream
        upstream = http.client.HTTPConnection(host, port)
        # The signature covers the host, which is the server's own in both.
        upstream.request(method, self.path, sent, headers=dict(self.headers.items()))
        answer = upstream.getresponse()
        body = answer.read()
        if trouble == "lost":  # done, and the client does not get to know it
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("transfer-encoding", "connection", "content-length", "date", "server"):
                self.send_header(name, value)
        length = answer.getheader("Content-Length") or str(len(body))
        self.send_header("Content-Length", length)
        self.end_headers()
        if trouble == "truncated" and len(body) > 1:
            self.wfile.write(body[: len(body) // 2])
            self.close_connection = True
            return
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Says nothing."""
