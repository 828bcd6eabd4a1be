"""Brokers tell clients where to connect to: here, their responses are changed to lead through a proxy."""

from __future__ import annotations

import struct
import sys
import threading
from collections.abc import Callable
from typing import Any

from magicbyte.errors import Error
from magicbyte.message import apis, decode_response, encode_response

__all__ = ["Redirect"]

_BROKERS = {
    ("Metadata", 0): "brokers",
    ("FindCoordinator", 0): "coordinators",
    ("DescribeCluster", 0): "brokers",
    # Where the leader has moved to (KIP-951).
    ("Produce", 10): "nodeEndpoints",
    ("Fetch", 16): "nodeEndpoints",
    ("ShareFetch", 0): "nodeEndpoints",
    ("ShareAcknowledge", 0): "nodeEndpoints",
}
"""The list of brokers in a response, from a version of the API on. Without a list, FindCoordinator answers
with one broker.
"""
_KEYS = {api.name: api.key for api in apis()}
_LISTS = {_KEYS[name]: (version, field) for (name, version), field in _BROKERS.items()}
_LARGEST_FRAME = 100 << 20
"""Kafka's limit (`socket.request.max.bytes`): what claims more is not its protocol."""
_LARGEST_CHANGED = 64 << 20
"""A larger response is passed on as it is: but for a single larger batch, records are at most 55 MiB
(`fetch.max.bytes`).
"""
_MOST_PENDING = 1024
_REST = sys.maxsize

Place = Callable[[str, int], tuple[str, int]]
"""Where clients reach the broker with this address."""


class Redirect:
    """The two directions of a connection; each is used by one thread.

    What is not Kafka's protocol, such as an encrypted connection, is passed on as it is.
    """

    def __init__(self, place: Place) -> None:
        self._place = place
        self._pending: dict[int, tuple[int, int]] = {}
        """API and version of the requests whose responses will be changed, by correlation id."""
        self._lock = threading.Lock()
        self._requests = bytearray()
        self._unread = 0
        self._responses = bytearray()
        self._unchanged = 0

    def request(self, data: bytes) -> None:
        """Takes bytes of the client, which are passed on as they are."""
        buffer = self._requests
        buffer += data
        while len(buffer) >= 4 or self._unread:
            if self._unread:
                taken = min(self._unread, len(buffer))
                del buffer[:taken]
                self._unread -= taken
                if not buffer:
                    return
                continue
            (size,) = struct.unpack_from(">i", buffer)
            if not 0 <= size <= _LARGEST_FRAME:
                self._unread = _REST
                continue
            if size >= 8:
                if len(buffer) < 12:
                    return
                key, version, correlation_id = struct.unpack_from(">hhi", buffer, 4)
                if key in _LISTS and version >= _LISTS[key][0]:
                    self._await(correlation_id, key, version)
            self._unread = 4 + size

    def _await(self, correlation_id: int, key: int, version: int) -> None:
        with self._lock:
            if len(self._pending) >= _MOST_PENDING:
                # It has no response, as with acks=0.
                del self._pending[next(iter(self._pending))]
            self._pending[correlation_id] = key, version

    def _asked(self, correlation_id: int) -> tuple[int, int] | None:
        """API and version of a request. Those before it have no response: the order is the same."""
        with self._lock:
            if correlation_id in self._pending:
                while next(iter(self._pending)) != correlation_id:
                    del self._pending[next(iter(self._pending))]
            return self._pending.get(correlation_id)

    def response(self, data: bytes) -> bytes:
        """Takes bytes of the broker; returns what the client gets, whole responses if they are changed."""
        buffer, out = self._responses, bytearray()
        buffer += data
        while buffer:
            if self._unchanged:
                taken = min(self._unchanged, len(buffer))
                out += buffer[:taken]
                del buffer[:taken]
                self._unchanged -= taken
                continue
            if len(buffer) < 8:
                break
            size, correlation_id = struct.unpack_from(">ii", buffer)
            asked = self._asked(correlation_id)
            if not 0 <= size <= _LARGEST_FRAME:
                self._unchanged = _REST
            elif asked is None or size > _LARGEST_CHANGED:
                self._unchanged = 4 + size
            elif len(buffer) < 4 + size:
                break
            else:
                with self._lock:
                    del self._pending[correlation_id]
                with memoryview(buffer) as view:
                    frame = _changed(bytes(view[4 : 4 + size]), *asked, self._place)
                out += struct.pack(">i", len(frame)) + frame
                del buffer[: 4 + size]
        return bytes(out)

    def end(self) -> bytes:
        """The broker sends nothing more: what was kept of it."""
        return bytes(self._responses)


def _changed(frame: bytes, api_key: int, api_version: int, place: Place) -> bytes:
    """A response with other addresses; as it is if it cannot be read."""
    try:
        header, body = decode_response(frame, api_key, api_version)[3:]
        one: list[dict[str, Any]] = [body] if "host" in body else []
        brokers = [*one, *(body.get(_LISTS[api_key][1]) or ())]
        if not brokers:
            return frame
        for broker in brokers:
            # There may be none, as where a coordinator is not available.
            if broker["host"] and broker["port"] >= 0:
                broker["host"], broker["port"] = place(broker["host"], broker["port"])
        return encode_response(api_key, api_version, body, header=header)
    except Error:
        return frame
