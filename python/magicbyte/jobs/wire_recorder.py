"""The job of `magicbyte wire record`: a proxy that records what passes between clients and brokers."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from types import TracebackType
from typing import Self

from magicbyte.jobs.failure import RefusedError
from magicbyte.jobs.pcap_file import Address, CapturedConnection, PcapFile, PcapSummary
from magicbyte.jobs.redirect import Redirect

__all__ = ["MAX_BYTES", "MAX_CONNECTIONS", "WireRecorder"]

MAX_BYTES = 16 << 30
MAX_CONNECTIONS = 256
_MOST_BROKERS = 1000
_RECEIVED = 60_000
_CONNECT_SECONDS = 10
_PAUSE_SECONDS = 0.05


class WireRecorder:
    """Listens for clients, passes on what they and the brokers send, and writes it to a capture.

    The capture has what a broker sent. Clients get other addresses of brokers, which lead to the proxy: it
    listens for each broker on a port of its own.
    """

    def __init__(
        self,
        path: str,
        listen: Address,
        upstream: Address,
        *,
        max_bytes: int = MAX_BYTES,
        max_connections: int = MAX_CONNECTIONS,
    ) -> None:
        """Starts, in threads.

        Args:
            path: the capture, a new pcap file.
            listen: host and port; port 0 is any free one.
            upstream: host and port of a broker.
            max_bytes: when the capture has this size, the rest is passed on and not recorded.
            max_connections: more are closed at once.

        Raises:
            RefusedError: if the capture exists.
            OSError: if it cannot be created, or the address cannot be listened on.

        """
        self._host = listen[0]
        self._most = max_connections
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._listeners: dict[Address, socket.socket] = {}
        self._connections = self._active = 0
        self._problems: list[str] = []
        self._closed = False
        listener = _listening(listen)
        try:
            self._file = PcapFile(path, max_bytes)
        except FileExistsError:
            listener.close()
            raise RefusedError(f"{path} exists") from None
        except OSError:
            listener.close()
            raise
        self._begin(upstream, listener)
        self._address: Address = listener.getsockname()[:2]

    @property
    def address(self) -> Address:
        """The address for clients to connect to."""
        return self._address

    @property
    def connections(self) -> int:
        """The number of connections so far."""
        return self._connections

    @property
    def summary(self) -> PcapSummary:
        """The content of the capture."""
        return self._file.summary

    @property
    def problems(self) -> list[str]:
        """Reasons why connections were not passed on, or brokers have no listener; the first 100."""
        return list(self._problems)

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
            except OSError as error:
                if self._closed:
                    return
                # For example, no more files can be opened.
                self._problem(f"a connection was not accepted: {error}")
                time.sleep(_PAUSE_SECONDS)
                continue
            with self._lock:
                is_refused = self._closed or self._active >= self._most
                if not is_refused:
                    self._open.add(client)
                    self._connections += 1
                    self._active += 1
            if is_refused:
                client.close()
                continue
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
        # A broker may name an impossible host or port.
        except (OSError, ValueError, OverflowError) as error:
            self._problem(f"{upstream[0]}:{upstream[1]}: {error}")
        finally:
            self._end(*ends)

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
                if len(self._listeners) >= _MOST_BROKERS:
                    return host, port
                try:
                    listener = _listening((self._host, 0))
                except OSError as error:
                    self._problem(f"no port for {host}:{port}: {error}")
                    return host, port
                self._begin((host, port), listener)
        return (host, port) if listener is None else (reached, listener.getsockname()[1])

    def _problem(self, problem: str) -> None:
        if len(self._problems) < 100:
            self._problems.append(problem)

    def _end(self, *ends: socket.socket) -> None:
        """Ends a connection."""
        with self._lock:
            self._open.difference_update(ends)
            self._active -= 1
        for end in ends:
            end.close()


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


def _listening(address: Address) -> socket.socket:
    try:
        (family, *_), *_ = socket.getaddrinfo(*address, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        return socket.create_server(address, family=family, backlog=128)
    except OSError as error:
        raise OSError(error.errno, f"cannot listen on {address[0]}:{address[1]}: {error}") from error
