"""The example client against servers that answer with garbage: clear errors, soon."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from asyncio_client import Client, KafkaError, ProtocolError
from example_client import run
from magicbyte.message import encode_response

pytestmark = pytest.mark.interop

Answer = Callable[[bytes, asyncio.StreamWriter], Awaitable[None]]


def framed(frame: bytes) -> bytes:
    return len(frame).to_bytes(4) + frame


def offers() -> dict[str, Any]:
    keys = {0: 12, 1: 12, 2: 7, 3: 12, 10: 3, 22: 5}
    return {
        "apiKeys": [{"apiKey": key, "minVersion": 0, "maxVersion": newest} for key, newest in keys.items()]
    }


def spoil(
    spoilt: bytes | None, *, closes: bool = False, honest: int = 0, keep: int | None = None, times: int = 1
) -> Answer:
    """Answers `honest` requests, and then with these bytes, or with a part of the right answer."""
    count = itertools.count()

    async def answer(request: bytes, writer: asyncio.StreamWriter) -> None:
        response = framed(
            encode_response(
                "ApiVersions", 3, offers(), header={"correlationId": int.from_bytes(request[4:8])}
            )
        )
        if next(count) < honest:
            writer.write(response)
            return
        writer.write(response[:keep] * times if spoilt is None else spoilt)
        if closes:
            await writer.drain()
            writer.close()

    return answer


GARBAGE: dict[str, tuple[Answer, type[Exception], str]] = {
    "a web server": (
        spoil(b"HTTP/1.1 400 Bad Request\r\n\r\n"),
        ProtocolError,
        "a response of 1213486160 bytes",
    ),
    "a negative size": (spoil(b"\xff\xff\xff\xff"), ProtocolError, "a response of -1 bytes: expected 4 to"),
    "a size of zero": (spoil(bytes(4)), ProtocolError, "a response of 0 bytes"),
    "a huge size": (spoil(b"\x7f\xff\xff\xff" + bytes(100)), ProtocolError, "a response of 2147483647 bytes"),
    "another correlation id": (
        spoil(framed(b"\0\0\0\x63" + bytes(20))),
        ProtocolError,
        "correlation id 99: expected 1",
    ),
    "a response too many": (
        spoil(None, times=2),
        ProtocolError,
        "correlation id 1: expected",
    ),
    "bytes of no message": (
        spoil(framed(b"\0\0\0\1" + b"\x9c" * 50)),
        ProtocolError,
        "ApiVersionsResponse version 3",
    ),
    "bytes after the message": (spoil(framed(b"\0\0\0\1" + bytes(30))), ProtocolError, "ApiVersionsResponse"),
    "an array without end": (spoil(framed(b"\0\0\0\1\0\0\xff\xff\xff\xff\x0f")), ProtocolError, "apiKeys"),
    "an empty frame": (spoil(framed(b"\0\0\0\1")), ProtocolError, "ApiVersionsResponse version 3"),
    "an error code": (spoil(framed(b"\0\0\0\1\0\x3a\1\0\0\0\0\0")), KafkaError, "SASL_AUTHENTICATION_FAILED"),
    "half a size": (spoil(b"\0\0", closes=True), ConnectionError, "closed the connection after 2 of 4 bytes"),
    "half a frame": (spoil(None, keep=30, closes=True), ConnectionError, "closed the connection after 26 of"),
    "half a frame, and silence": (
        spoil(None, keep=30),
        TimeoutError,
        "did not answer ApiVersions within 1 s",
    ),
    "silence": (spoil(b""), TimeoutError, "did not answer ApiVersions within 1 s"),
    "closing": (spoil(b"", closes=True), ConnectionError, "closed the connection"),
    "garbage later": (
        spoil(framed(b"\0\0\0\2\0" + b"\x9c" * 50), honest=1),
        ProtocolError,
        "MetadataResponse version 12",
    ),
    "silence later": (spoil(b"", honest=1), TimeoutError, "did not answer Metadata within 1 s"),
}


@asynccontextmanager
async def garbage_broker(answer: Answer) -> AsyncIterator[str]:
    """The address of a server that answers each request like this."""
    handlers: set[asyncio.Task[None] | None] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        handlers.add(asyncio.current_task())
        with suppress(asyncio.IncompleteReadError, OSError):
            while not writer.is_closing():
                await answer(await reader.readexactly(int.from_bytes(await reader.readexactly(4))), writer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    yield f"{host}:{port}"
    server.close()
    await asyncio.gather(*(handler for handler in handlers if handler))


@pytest.mark.parametrize("kind", GARBAGE)
def test_garbage(kind: str) -> None:
    """An error that says what was wrong, soon."""
    answer, error, text = GARBAGE[kind]

    async def test() -> None:
        async with (
            garbage_broker(answer) as address,
            Client(address, request_timeout=1 if error is TimeoutError else 10, retry_timeout=0.3) as client,
        ):
            with pytest.raises(error, match=text) as raised:
                await client.partitions("t")
            assert address in str(raised.value)

    run(test(), seconds=20)


def test_random_damage() -> None:
    """Whatever a broker answers, there is an error of one of three kinds."""
    chance = random.Random(7)

    async def answer(request: bytes, writer: asyncio.StreamWriter) -> None:
        header = {"correlationId": int.from_bytes(request[4:8])}
        frame = bytearray(encode_response("ApiVersions", 3, offers(), header=header))
        for _ in range(chance.randrange(1, 6)):
            frame[chance.randrange(len(frame))] = chance.randrange(256)
        writer.write(framed(bytes(frame)) + chance.randbytes(chance.randrange(40)))
        writer.close()

    async def test() -> None:
        async with garbage_broker(answer) as address:
            for _ in range(200):
                async with Client(address, request_timeout=10, retry_timeout=0) as client:
                    with pytest.raises((KafkaError, ProtocolError, OSError)):
                        await client.partitions("t")

    run(test())


def test_old_versions() -> None:
    """A broker whose versions are all too old for this client."""

    async def answer(request: bytes, writer: asyncio.StreamWriter) -> None:
        body = {"apiKeys": [{"apiKey": 3, "minVersion": 0, "maxVersion": 1}]}
        header = {"correlationId": int.from_bytes(request[4:8])}
        writer.write(framed(encode_response("ApiVersions", 3, body, header=header)))

    async def test() -> None:
        async with garbage_broker(answer) as address, Client(address) as client:
            with pytest.raises(
                KafkaError, match=r"Metadata: UNSUPPORTED_VERSION \(the broker has 0 to 1, this"
            ):
                await client.partitions("t")

    run(test())


def test_silence_that_nobody_waits_for() -> None:
    """A connection that stays silent is given up, also if each caller is cancelled before that."""
    connections: set[asyncio.StreamWriter] = set()

    async def answer(request: bytes, writer: asyncio.StreamWriter) -> None:
        if writer not in connections:
            connections.add(writer)
            await spoil(None)(request, writer)

    async def test() -> None:
        async with garbage_broker(answer) as address, Client(address, request_timeout=1) as client:
            while len(connections) < 3:
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(client.partitions("t"), 0.1)

    run(test(), seconds=20)
