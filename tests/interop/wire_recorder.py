"""A proxy that records the traffic between clients and brokers."""

from __future__ import annotations

import contextlib
import socket
import threading
from types import TracebackType
from typing import Self

from pcap_file import Address, CapturedConnection, PcapFile
from redirect import Redirect

_RECEIVED = 60_000
_CONNECT_SECONDS = 10


class WireRecorder:
    """Listens for clients, passes on what they and the brokers send, and writes it to a capture.

    The capture has what a broker sent. Clients get other addresses of brokers, which lead to the proxy: it
    listens for each broker on a port of its own.
    """

    def __init__(self, path: str, listen: Address, upstream: Address) -> None:
        """Starts, in threads.

        Args:
            path: the capture, a new pcap file.
            listen: host and port; port 0 is any free one.
            upstream: host and port of a broker.

        """
        self._host = listen[0]
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._listeners: dict[Address, socket.socket] = {}
        self._closed = False
        listener = socket.create_server(listen)
        self._file = PcapFile(path)
        self._begin(upstream, listener)
        self._address: Address = listener.getsockname()[:2]

    @property
    def address(self) -> Address:
        """The address for clients to connect to."""
        return self._address

    def close(self) -> None:
        """Ends all connections and the capture. Does nothing if that was done before."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            ends = [*self._listeners.values(), *self._open]
        for end in ends:
            # Also wakes the thread that waits for it.
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _begin(self, upstream: Address, listener: socket.socket) -> None:
        self._listeners[upstream] = listener
        threading.Thread(target=self._accept, args=(listener, upstream), daemon=True).start()

    def _accept(self, listener: socket.socket, upstream: Address) -> None:
        while True:
            try:
                client, address = listener.accept()
            except OSError:
                return
            with self._lock:
                self._open.add(client)
            threading.Thread(target=self._serve, args=(client, address, upstream), daemon=True).start()

    def _serve(self, client: socket.socket, address: Address, upstream: Address) -> None:
        ends = [client]
        try:
            server = socket.create_connection(upstream, _CONNECT_SECONDS)
            ends.append(server)
            server.settimeout(None)
            with self._lock:
                self._open.add(server)
                if self._closed:
                    return
            self._pass_on(client, address, server)
        except OSError:
            # The broker is down: the client sees its connection end.
            pass
        finally:
            with self._lock:
                self._open.difference_update(ends)
            for end in ends:
                end.close()

    def _pass_on(self, client: socket.socket, address: Address, server: socket.socket) -> None:
        reached = client.getsockname()[0]
        redirect = Redirect(lambda host, port: self._place(reached, host, port))
        recorded = self._file.connection(address[:2], server.getpeername()[:2])
        responses = threading.Thread(target=_respond, args=(server, client, recorded, redirect), daemon=True)
        responses.start()
        _request(client, server, recorded, redirect)
        responses.join()

    def _place(self, reached: str, host: str, port: int) -> Address:
        """The address at which clients reach a broker: the same host as for this one."""
        with self._lock:
            listener = self._listeners.get((host, port))
            if listener is None and not self._closed:
                listener = socket.create_server((self._host, 0))
                self._begin((host, port), listener)
        return (host, port) if listener is None else (reached, listener.getsockname()[1])


def _request(
    client: socket.socket, server: socket.socket, recorded: CapturedConnection, redirect: Redirect
) -> None:
    try:
        with contextlib.suppress(OSError):
            while data := client.recv(_RECEIVED):
                recorded.sent(data, by_client=True)
                redirect.request(data)
                server.sendall(data)
        recorded.ended(by_client=True)
    finally:
        _shut(server)


def _respond(
    server: socket.socket, client: socket.socket, recorded: CapturedConnection, redirect: Redirect
) -> None:
    try:
        with contextlib.suppress(OSError):
            while data := server.recv(_RECEIVED):
                recorded.sent(data, by_client=False)
                client.sendall(redirect.response(data))
            client.sendall(redirect.end())
        recorded.ended(by_client=False)
    finally:
        _shut(client)


def _shut(end: socket.socket) -> None:
    """Stops sending to a socket."""
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_WR)
