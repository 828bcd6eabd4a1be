"""The protocol's requests and responses: used by `magicbyte.message`."""

from typing import Any

from typing_extensions import Buffer

_Message = tuple[int, int, dict[str, Any], dict[str, Any]]

def apis() -> list[tuple[int, str, int, int]]:
    """Key, name, oldest and newest version of each API, by key."""

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

def error_name(code: int) -> str | None:
    """Kafka's name of an error code; None for a code that Kafka 4.4 does not have."""
