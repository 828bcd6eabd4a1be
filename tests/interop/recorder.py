"""A proxy that forwards connections to a broker, and records them as a pcap file."""

from __future__ import annotations

import socket
import struct
import threading
import time
from pathlib import Path

CHUNK = 60_000
SYN, ACK, FIN = 2, 16, 1


class Recorder:
    """Listens on loopback; what passes is in `path` as TCP over IPv4, without a link layer."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.upstream = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._lock = threading.Lock()
        self._file = path.open("wb")
        self._file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 1 << 18, 101))
        self._sockets: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()
        with self._lock:
            for one in self._sockets:
                one.close()
            self._file.close()

    def flush(self) -> bytes:
        """Everything recorded so far."""
        with self._lock:
            self._file.flush()
            return self.path.read_bytes()

    def _accept(self) -> None:
        while True:
            try:
                client, (_, port) = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self.upstream))
            except OSError:
                return
            self._sockets += [client, server]
            state = {True: 1000, False: 2000}
            self._segment(port, state, from_client=True, flags=SYN, payload=b"")
            self._segment(port, state, from_client=False, flags=SYN | ACK, payload=b"")
            for source, target, from_client in ((client, server, True), (server, client, False)):
                arguments = (source, target, port, state, from_client)
                threading.Thread(target=self._forward, args=arguments, daemon=True).start()

    def _forward(
        self,
        source: socket.socket,
        target: socket.socket,
        port: int,
        state: dict[bool, int],
        from_client: bool,
    ) -> None:
        try:
            while data := source.recv(CHUNK):
                self._segment(port, state, from_client=from_client, flags=ACK, payload=data)
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        self._segment(port, state, from_client=from_client, flags=ACK | FIN, payload=b"")

    def _segment(
        self, port: int, state: dict[bool, int], *, from_client: bool, flags: int, payload: bytes
    ) -> None:
        with self._lock:
            if self._file.closed:
                return
            ports = (port, self.port) if from_client else (self.port, port)
            acknowledged = 0 if flags == SYN else state[not from_client]
            tcp = struct.pack(">HHIIBBHHH", *ports, state[from_client], acknowledged, 0x50, flags, 1024, 0, 0)
            address = socket.inet_aton("127.0.0.1")
            size = 40 + len(payload)
            ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, size, 0, 0, 64, 6, 0, address, address)
            state[from_client] += len(payload) + (flags & (SYN | FIN) != 0)
            micros = time.time_ns() // 1000
            self._file.write(struct.pack("<IIII", micros // 1_000_000, micros % 1_000_000, size, size))
            self._file.write(ip + tcp + payload)
