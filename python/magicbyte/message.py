"""Kafka's protocol messages as plain data: requests and responses of all APIs in all versions.

>>> from magicbyte.message import decode_request, encode_request
>>> frame = encode_request("Metadata", 12, {"topics": None}, header={"correlationId": 7, "clientId": "me"})
>>> request = decode_request(frame)
>>> request.api, request.header["clientId"], request.body["topics"]
('Metadata', 'me', None)

Fields have the names of Kafka's JSON (`throttleTimeMs`). Numbers and booleans are as in JSON, bytes and
record sets are bytes (`magicbyte.read_batches` reads the latter), a UUID is the text that Kafka's tools
print. A text that is not UTF-8 has surrogate escapes. Tagged fields are there if the frame has them; those
that no definition names are in ``_unknownTaggedFields``, bytes by tag.

A frame is what follows the four bytes of its size. Its bytes are not trusted: any that are not exactly one
message raise `magicbyte.Error` with the kind ``"invalid_message"``, the byte in the frame (`position`),
the `field`, and a text that names the message, its version and the path to the field. An API or a version
that is not known has the kind ``"unsupported_version"``. Memory is linear in the size of the frame.

What is decoded is complete, so that `encode_request` gives the same bytes. With ``secrets=False`` it is for
logs and people: passwords, keys and tokens are ``"[hidden]"`` in texts, and None where they are bytes. Which
fields are secret is a property of the message's definition; of configs, the name decides, as in
``ssl.key.password``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from magicbyte import _core

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = [
    "Api",
    "Message",
    "apis",
    "decode_request",
    "decode_response",
    "encode_request",
    "encode_response",
    "error_name",
]


class Api(NamedTuple):
    """An API, and the versions that can be read and written."""

    key: int
    """Its number in request headers."""
    name: str
    """Kafka's name, such as ``"ListOffsets"``."""
    min_version: int
    """The oldest version."""
    max_version: int
    """The newest version (inclusive)."""


class Message(NamedTuple):
    """A request or a response."""

    api: str
    """The name of its API."""
    api_key: int
    """The number of its API."""
    api_version: int
    """The version of its body."""
    header: dict[str, Any]
    """``correlationId``; of requests also ``requestApiKey``, ``requestApiVersion`` and ``clientId``."""
    body: dict[str, Any]
    """The fields, by name."""


def apis() -> list[Api]:
    """All APIs, by key: those of Kafka 4.4, and those of Kafka 3.9 that were removed since."""
    return list(_apis())


def decode_request(frame: Buffer, *, secrets: bool = True) -> Message:
    """Reads a request, whose header names the API and the version. Without `secrets`, those are hidden."""
    return _message(_core.decode_request(frame, secrets))


def decode_response(frame: Buffer, api: int | str, api_version: int, *, secrets: bool = True) -> Message:
    """Reads the response to a request of this API (its key or name) and version.

    The answer to an ApiVersions request of a version that the broker does not support has version 0, and
    `errorCode` 35. Without `secrets`, those are hidden.
    """
    return _message(_core.decode_response(frame, _key(api), api_version, secrets))


def encode_request(
    api: int | str, api_version: int, body: Mapping[str, Any], *, header: Mapping[str, Any] | None = None
) -> bytes:
    """Writes a request, as Kafka's own classes do.

    Fields that are missing have Kafka's defaults. The header's `requestApiKey` and `requestApiVersion` are
    those of the arguments. Raises `Error` for a field that the version does not have, and for a value that
    it cannot hold.
    """
    return _core.encode_request(_key(api), api_version, dict(header or {}), dict(body))


def encode_response(
    api: int | str, api_version: int, body: Mapping[str, Any], *, header: Mapping[str, Any] | None = None
) -> bytes:
    """Writes a response; otherwise like `encode_request`. The header has the request's `correlationId`."""
    return _core.encode_response(_key(api), api_version, dict(header or {}), dict(body))


def error_name(code: int) -> str | None:
    """Kafka's name of an error code, such as ``"OFFSET_OUT_OF_RANGE"`` of 1; None if Kafka 4.4 has none.

    >>> error_name(44)
    'POLICY_VIOLATION'
    """
    return _core.error_name(code)


@cache
def _apis() -> tuple[Api, ...]:
    return tuple(Api(*one) for one in _core.apis())


@cache
def _names() -> dict[int, str]:
    return {api.key: api.name for api in _apis()}


@cache
def _keys() -> dict[str, int]:
    return {api.name: api.key for api in _apis()}


def _key(api: int | str) -> int:
    if isinstance(api, int):
        return api
    if api not in _keys():
        raise ValueError(f"no API is named {api!r}: expected one of {', '.join(_keys())}")
    return _keys()[api]


def _message(decoded: tuple[int, int, dict[str, Any], dict[str, Any]]) -> Message:
    key, version, header, body = decoded
    return Message(_names()[key], key, version, header, body)
