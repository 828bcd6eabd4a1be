"""Requests to a broker, byte by byte, without a client, which would refuse to send half of them."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

T = TypeVar("T")

# The last versions without tagged fields, except for markers.
PRODUCE, FETCH, LIST_OFFSETS, DELETE_RECORDS, WRITE_TXN_MARKERS = (0, 8), (1, 11), (2, 5), (21, 1), (27, 1)
COORDINATOR_LOAD_IN_PROGRESS = 14


def text(value: str | None) -> bytes:
    return b"\xff\xff" if value is None else struct.pack(">h", len(value)) + value.encode()


def array(*items: bytes) -> bytes:
    return struct.pack(">i", len(items)) + b"".join(items)


def compact(*items: bytes) -> bytes:
    """An array in a flexible version, short enough for a length of one byte."""
    return bytes([len(items) + 1]) + b"".join(items)


@dataclass
class Reader:
    data: bytes
    at: int = 0

    def read(self, kinds: str) -> Any:
        values = struct.unpack_from(">" + kinds, self.data, self.at)
        self.at += struct.calcsize(">" + kinds)
        return values[0] if len(values) == 1 else values

    def bytes(self, kind: str = "i") -> bytes:
        size = max(self.read(kind), 0)
        self.at += size
        return self.data[self.at - size : self.at]

    def array(self, item: Callable[[], T]) -> list[T]:
        return [item() for _ in range(self.read("i"))]


@dataclass
class RawClient:
    """One connection to a broker, for partition 0 of topics."""

    port: int
    _socket: socket.socket = field(init=False)
    _last: int = 0

    def __post_init__(self) -> None:
        self._socket = socket.create_connection(("127.0.0.1", self.port), timeout=30)

    def close(self) -> None:
        self._socket.close()

    def init_producer_id(self) -> int:
        """A new producer id; waits while the broker gets the next block of them."""
        while True:
            answer = self._ask((22, 1), text(None) + struct.pack(">i", 60_000))
            _, error, producer_id, _ = answer.read("ihqh")
            if error != COORDINATOR_LOAD_IN_PROGRESS:
                assert error == 0, error
                return int(producer_id)
            time.sleep(0.05)

    def _ask(self, api: tuple[int, int], body: bytes, *, flexible: bool = False) -> Reader:
        self._last += 1
        tags = b"\0" if flexible else b""
        request = struct.pack(">hhi", *api, self._last) + text("raw") + tags + body
        answer = Reader(self.exchange(request))
        assert answer.read("i") == self._last
        if flexible:
            assert answer.read("b") == 0
        return answer

    def exchange(self, request: bytes) -> bytes:
        """The response to a request, both without their sizes."""
        self._socket.sendall(struct.pack(">i", len(request)) + request)
        return self._receive(struct.unpack(">i", self._receive(4))[0])

    def _receive(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = self._socket.recv(size - len(data))
            assert part, "the broker closed the connection"
            data += part
        return data

    def produce(
        self, topic: str, records: bytes, transactional_id: str | None = None, *, acks: int = -1
    ) -> dict[str, Any]:
        partition = struct.pack(">ii", 0, len(records)) + records
        body = text(transactional_id) + struct.pack(">hi", acks, 20_000)
        answer = self._ask(PRODUCE, body + array(text(topic) + array(partition)))
        answer.read("i")
        answer.bytes("h")
        answer.read("i")
        _, code, base_offset, time, start = answer.read("ihqqq")
        errors = answer.array(lambda: (answer.read("i"), answer.bytes("h")))
        return {
            "code": code,
            "base_offset": base_offset,
            "time": time,
            "start": start,
            "record_errors": [index for index, _ in errors],
        }

    def fetch(self, topic: str, offset: int, max_bytes: int, *, committed: bool) -> dict[str, Any]:
        partition = struct.pack(">iiqqi", 0, -1, offset, -1, max_bytes)
        body = struct.pack(">iiiibii", -1, 0, 0, 1 << 30, committed, 0, -1)
        answer = self._ask(FETCH, body + array(text(topic) + array(partition)) + array() + text(""))
        answer.read("ihii")
        answer.bytes("h")
        answer.read("i")
        _, code, high_watermark, stable, start = answer.read("ihqqq")
        aborted = answer.array(lambda: list(answer.read("qq")))
        answer.read("i")
        return {
            "code": code,
            "high_watermark": high_watermark,
            "stable": stable,
            "start": start,
            "aborted": aborted,
            "records": answer.bytes(),
        }

    def list_offset(self, topic: str, timestamp: int, *, committed: bool) -> tuple[int, int, int, int]:
        """Returns error code, timestamp, offset, leader epoch."""
        partition = struct.pack(">iiq", 0, -1, timestamp)
        body = struct.pack(">ib", -1, committed) + array(text(topic) + array(partition))
        answer = self._ask(LIST_OFFSETS, body)
        answer.read("ii")
        answer.bytes("h")
        answer.read("i")
        _, code, time, offset, epoch = answer.read("ihqqi")
        return code, time, offset, epoch

    def delete_records(self, topic: str, offset: int) -> tuple[int, int]:
        """Returns error code and low watermark."""
        body = array(text(topic) + array(struct.pack(">iq", 0, offset))) + struct.pack(">i", 20_000)
        answer = self._ask(DELETE_RECORDS, body)
        answer.read("ii")
        answer.bytes("h")
        answer.read("i")
        _, low_watermark, code = answer.read("iqh")
        return code, low_watermark

    def end_transaction(
        self, topic: str, producer_id: int, producer_epoch: int, *, committed: bool, coordinator_epoch: int
    ) -> int:
        """Returns the error code."""
        name = bytes([len(topic) + 1]) + topic.encode()
        topics = compact(name + compact(struct.pack(">i", 0)) + b"\0")
        marker = struct.pack(">qhb", producer_id, producer_epoch, committed) + topics
        marker += struct.pack(">i", coordinator_epoch) + b"\0"
        answer = self._ask(WRITE_TXN_MARKERS, compact(marker) + b"\0", flexible=True)
        # One marker, one topic, one partition.
        _, _, _, size = answer.read("bqbb")
        answer.at += size - 1
        _, _, code = answer.read("bih")
        return int(code)
