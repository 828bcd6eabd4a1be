"""A connection to one broker: frames, versions, and requests that are pipelined."""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from typing import NamedTuple, Self

import magicbyte
from magicbyte.message import apis, decode_response, encode_request

from .errors import UNSUPPORTED_VERSION, Body, KafkaError, ProtocolError, check

Address = tuple[str, int]

CLIENT_ID = "asyncio-client"
MAX_RESPONSE_BYTES = 100 << 20
# The oldest and the newest version of each API that this client knows.
VERSIONS = {
    "Produce": (7, 12),  # 7 has zstd; 13 names topics by id
    "Fetch": (10, 12),  # the same
    "ListOffsets": (2, 7),
    "Metadata": (4, 12),
    "FindCoordinator": (1, 3),
    "InitProducerId": (3, 5),
    "AddPartitionsToTxn": (1, 3),
    "EndTxn": (1, 5),
}
API_KEYS = {api.name: api.key for api in apis()}


class Request(NamedTuple):
    """A request that waits for its response."""

    correlation_id: int
    api: str
    version: int
    response: asyncio.Future[Body]
    timer: asyncio.TimerHandle


class Connection:
    """A connection to a broker. Requests are pipelined, and responses come in their order."""

    def __init__(
        self, name: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, timeout: float
    ) -> None:
        self.name = name
        self.failure: Exception | None = None
        self.features: dict[str, int] = {}
        self._offered: dict[int, tuple[int, int]] = {}
        self._waiting: deque[Request] = deque()
        self._correlation_ids = itertools.count(1)
        self._writer, self._timeout = writer, timeout
        self._reading = asyncio.create_task(self._read(reader))

    @classmethod
    async def open(cls, address: Address, timeout: float) -> Self:
        """Connects, and asks the broker for its versions and features."""
        name = f"{address[0]}:{address[1]}"
        try:
            async with asyncio.timeout(timeout):
                streams = await asyncio.open_connection(*address, limit=1 << 20)
        except TimeoutError:
            raise TimeoutError(f"{name} accepted no connection within {timeout} s") from None
        connection = cls(name, *streams, timeout)
        try:
            await connection._ask_versions()
        except BaseException:
            connection.close()
            raise
        return connection

    def send(self, api: str, body: Body, newest: int | None = None) -> asyncio.Future[Body]:
        """Sends a request at once, in the newest version that both sides know; the future is its response."""
        known, offered = VERSIONS[api], self._offered.get(API_KEYS[api])
        if offered is None:
            raise KafkaError(UNSUPPORTED_VERSION, f"{self.name}, {api}", "the broker does not have it")
        version = min(newest or known[1], offered[1])
        if version < max(known[0], offered[0]):
            detail = "the broker has {} to {}, this client {} to {}".format(*offered, *known)
            raise KafkaError(UNSUPPORTED_VERSION, f"{self.name}, {api}", detail)
        return self._send(api, version, body)

    def close(self, failure: Exception | None = None) -> None:
        """Closes the connection; requests that wait fail."""
        self.failure = self.failure or failure or ConnectionError(f"{self.name}: the connection was closed")
        for request in self._waiting:
            request.timer.cancel()
            if not request.response.done():
                request.response.set_exception(self.failure)
                # Whoever asked may no longer wait, and then nobody else retrieves it.
                request.response.exception()
        self._waiting.clear()
        self._writer.transport.abort()
        self._reading.cancel()

    async def _ask_versions(self) -> None:
        software = {"clientSoftwareName": CLIENT_ID, "clientSoftwareVersion": "1"}
        response = await self._send("ApiVersions", 3, software)
        if response["errorCode"] == UNSUPPORTED_VERSION:
            response = await self._send("ApiVersions", 0, {})
        check(response["errorCode"], f"{self.name}, ApiVersions")
        self._offered = {api["apiKey"]: (api["minVersion"], api["maxVersion"]) for api in response["apiKeys"]}
        finalized = response.get("finalizedFeatures", [])
        self.features = {feature["name"]: feature["maxVersionLevel"] for feature in finalized}

    def _send(self, api: str, version: int, body: Body) -> asyncio.Future[Body]:
        if self.failure:
            raise self.failure
        loop = asyncio.get_running_loop()
        correlation_id = next(self._correlation_ids)
        header = {"correlationId": correlation_id, "clientId": CLIENT_ID}
        frame = encode_request(API_KEYS[api], version, body, header=header)
        late = TimeoutError(f"{self.name} did not answer {api} within {self._timeout} s")
        # It runs until the response is there, even if nobody waits for that any more: a broker that stays
        # silent must not keep its connection.
        timer = loop.call_later(self._timeout, self.close, late)
        request = Request(correlation_id, api, version, loop.create_future(), timer)
        self._waiting.append(request)
        self._writer.write(len(frame).to_bytes(4) + frame)
        return request.response

    async def _read(self, reader: asyncio.StreamReader) -> None:
        try:
            while True:
                size = int.from_bytes(await reader.readexactly(4), signed=True)
                if not 4 <= size <= MAX_RESPONSE_BYTES:
                    expected = f"expected 4 to {MAX_RESPONSE_BYTES}"
                    raise ProtocolError(f"{self.name}: a response of {size} bytes: {expected}")
                self._receive(await reader.readexactly(size))
        except asyncio.IncompleteReadError as error:
            place = f" after {len(error.partial)} of {error.expected} bytes" if error.partial else ""
            self.close(ConnectionError(f"{self.name} closed the connection{place}"))
        except OSError as error:
            self.close(ConnectionError(f"{self.name}: {error}"))
        except ProtocolError as error:
            self.close(error)

    def _receive(self, frame: bytes) -> None:
        number = int.from_bytes(frame[:4], signed=True)
        if not self._waiting or number != self._waiting[0].correlation_id:
            expected = self._waiting[0].correlation_id if self._waiting else "none"
            raise ProtocolError(f"{self.name}: a response with correlation id {number}: expected {expected}")
        request = self._waiting[0]
        try:
            body = decode_response(frame, request.api, request.version).body
        except magicbyte.Error as error:
            raise ProtocolError(f"{self.name}: {error}") from error
        self._waiting.popleft()
        request.timer.cancel()
        if not request.response.done():
            request.response.set_result(body)
