"""Frames from bodies, and back. `codec.pyi` has the types of the bodies of each API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from magicbyte import _core
from magicbyte.message.model import Message, key_of, name_of

if TYPE_CHECKING:
    from typing_extensions import Buffer


def decode_request(frame: Buffer, *, secrets: bool = True) -> Message:
    """Reads a request, whose header names the API and the version. Without `secrets`, those are hidden."""
    return _message(_core.decode_request(frame, secrets))


def decode_response(frame: Buffer, api: int | str, api_version: int, *, secrets: bool = True) -> Message[Any]:
    """Reads the response to a request of this API and version.

    The API is a name, a number or a member of `ApiKeys`. The answer to an ApiVersions request of a version
    that the broker does not support has version 0, and `errorCode` 35. Without `secrets`, those are hidden.
    """
    return _message(_core.decode_response(frame, key_of(api), api_version, secrets))


def encode_request(
    api: int | str, api_version: int, body: Mapping[str, Any], *, header: Mapping[str, Any] | None = None
) -> bytes:
    """Writes a request, as Kafka's own classes do.

    The API is a name, a number or a member of `ApiKeys`. With a name, type checkers check the body, so they
    refuse a name that is not a literal; with a number, they take any body.

    Fields that are missing have Kafka's defaults. The header's `requestApiKey` and `requestApiVersion` are
    those of the arguments. Raises `Error` for a field that the version does not have, and for a value that
    it cannot hold.
    """
    return _core.encode_request(key_of(api), api_version, dict(header or {}), dict(body))


def encode_response(
    api: int | str, api_version: int, body: Mapping[str, Any], *, header: Mapping[str, Any] | None = None
) -> bytes:
    """Writes a response; otherwise like `encode_request`. The header has the request's `correlationId`."""
    return _core.encode_response(key_of(api), api_version, dict(header or {}), dict(body))


def _message(decoded: tuple[int, int, dict[str, Any], dict[str, Any]]) -> Message:
    key, version, header, body = decoded
    return Message(name_of(key), key, version, header, body)
