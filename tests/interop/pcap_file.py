"""Writing a capture: the data of connections, as TCP segments in a pcap file."""

from __future__ import annotations

import socket
import struct
import threading
import time
from ipaddress import IPv4Address, IPv6Address, ip_address

# Link type 101: IP packets of both versions.
_HEADER = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 1 << 18, 101)
_LARGEST = 60_000
"""The maximum bytes of a segment: more do not fit into a packet."""
_SYN, _ACK, _FIN = 2, 16, 1
_WRAP = 1 << 32

Address = tuple[str, int]


class PcapFile:
    """A new file, complete after each segment; any number of threads may write."""

    def __init__(self, path: str) -> None:
        self._lock = threading.Lock()
        self._file = open(path, "xb", buffering=0)  # noqa: SIM115 (closed by `close`)
        self._file.write(_HEADER)

    def connection(self, client: Address, server: Address) -> CapturedConnection:
        """Begins a connection."""
        return CapturedConnection(self, client, server)

    def packet(self, data: bytes) -> None:
        """Adds an IP packet, with the current time."""
        with self._lock:
            if self._file.closed:
                return
            micros = time.time_ns() // 1000
            head = struct.pack("<IIII", micros // 1_000_000, micros % 1_000_000, len(data), len(data))
            self._file.write(head + data)

    def close(self) -> None:
        """Ends the file; later packets are left out."""
        with self._lock:
            self._file.close()


class CapturedConnection:
    """A TCP connection in a capture. Each direction is written by one thread at a time."""

    def __init__(self, file: PcapFile, client: Address, server: Address) -> None:
        self._file = file
        ends = [ip_address(host.partition("%")[0]) for host, _ in (client, server)]
        if len({end.version for end in ends}) > 1:
            ends = [_mapped(end) for end in ends]
        self._ips = [end.packed for end in ends]
        self._ports = [client[1], server[1]]
        self._next = [0, 0]
        self._segment(0, _SYN, b"")
        self._segment(1, _SYN | _ACK, b"")

    def sent(self, data: bytes, *, by_client: bool) -> None:
        """Adds bytes of one direction."""
        for start in range(0, len(data), _LARGEST):
            self._segment(0 if by_client else 1, _ACK, data[start : start + _LARGEST])

    def ended(self, *, by_client: bool) -> None:
        """Ends one direction."""
        self._segment(0 if by_client else 1, _ACK | _FIN, b"")

    def _segment(self, side: int, flags: int, payload: bytes) -> None:
        ports = (self._ports[side], self._ports[1 - side])
        acknowledged = self._next[1 - side] if flags & _ACK else 0
        tcp = struct.pack(">HHIIBBHHH", *ports, self._next[side], acknowledged, 0x50, flags, 65_535, 0, 0)
        self._next[side] = (self._next[side] + len(payload) + (flags & (_SYN | _FIN) != 0)) % _WRAP
        size = len(tcp) + len(payload)
        source, destination = self._ips[side], self._ips[1 - side]
        if len(source) == 4:
            ip = struct.pack(">BBHHHBBH", 0x45, 0, 20 + size, 0, 0, 64, socket.IPPROTO_TCP, 0)
        else:
            ip = struct.pack(">IHBB", 6 << 28, size, socket.IPPROTO_TCP, 64)
        self._file.packet(ip + source + destination + tcp + payload)


def _mapped(address: IPv4Address | IPv6Address) -> IPv6Address:
    """An IPv4 address among those of IPv6."""
    if isinstance(address, IPv6Address):
        return address
    return IPv6Address(b"\0" * 10 + b"\xff\xff" + address.packed)
