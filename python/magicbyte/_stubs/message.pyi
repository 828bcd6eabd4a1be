"""The protocol's requests and responses: used by `magicbyte.message`."""

from typing import Any

from typing_extensions import Buffer

_Message = tuple[int, int, dict[str, Any], dict[str, Any]]

def apis() -> list[tuple[int, str, int, int, int | None]]:
    """Key, name, oldest, newest and oldest flexible version of each API, by key."""

def decode_request(frame: Buffer, secrets: bool = True) -> _Message:
    """The request in a frame: API key, version, header, body. Without `secrets`, those are hidden."""

def decode_response(frame: Buffer, api_key: int, api_version: int, secrets: bool = True) -> _Message:
    """The response in a frame, to a request of this API and version: API key, version, header, body. Without
    `secrets`, those are hidden.
    """

def encode_request(api_key: int, api_version: int, header: dict[str, Any], body: dict[str, Any]) -> bytes:
    """The frame of a request, without its size."""

def encode_response(api_key: int, api_version: int, header: dict[str, Any], body: dict[str, Any]) -> bytes:
    """The frame of a response, without its size."""

def header_versions(api_key: int, api_version: int) -> tuple[int, int]:
    """The versions of the headers before a request and before a response of this API and version."""
