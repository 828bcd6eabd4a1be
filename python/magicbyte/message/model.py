"""Plain data: the APIs of Kafka's protocol, and messages that were read."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Generic, NamedTuple

from magicbyte import _core
from magicbyte.message.errors import Errors

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    Body = TypeVar("Body", default=dict[str, Any], covariant=True)
else:
    from typing import TypeVar

    Body = TypeVar("Body", covariant=True)


class Api(NamedTuple):
    """An API, and the versions that can be read and written."""

    key: int
    """Its number in request headers: one of `ApiKeys`."""
    name: str
    """Kafka's name, such as ``"ListOffsets"``."""
    min_version: int
    """The oldest version."""
    max_version: int
    """The newest version (inclusive)."""
    min_flexible_version: int | None
    """The oldest version with compact lengths and tagged fields (KIP-482); None if there is none."""

    def request_header_version(self, version: int) -> int:
        """The version of the header before a request (`ApiKeys.requestHeaderVersion`).

        Raises `Error` with the kind ``"unsupported_version"`` for a version that the API does not have.
        """
        return _core.header_versions(self.key, version)[0]

    def response_header_version(self, version: int) -> int:
        """The version of the header before a response (`ApiKeys.responseHeaderVersion`).

        Raises `Error` as `request_header_version` does.
        """
        return _core.header_versions(self.key, version)[1]


class Message(NamedTuple, Generic[Body]):
    """A request or a response."""

    api: str
    """The name of its API."""
    api_key: int
    """The number of its API: one of `ApiKeys`."""
    api_version: int
    """The version of its body."""
    header: dict[str, Any]
    """``correlationId``; of requests also ``requestApiKey``, ``requestApiVersion`` and ``clientId``."""
    body: Body
    """The fields, by name."""


def apis() -> list[Api]:
    """All APIs, by key: those of Kafka 4.4, and those of Kafka 3.9 that were removed since."""
    return list(_apis())


def error_name(code: int) -> str | None:
    """The name of a member of `Errors`, such as ``"OFFSET_OUT_OF_RANGE"`` of 1; None if Kafka 4.4 has none.

    Raises ValueError for a number that is no int16.

    >>> error_name(44)
    'POLICY_VIOLATION'
    """
    name = Errors(code).name
    return name if name in Errors.__members__ else None


def name_of(key: int) -> str:
    """The name of an API that the core knows."""
    return _names()[key]


def key_of(api: int | str) -> int:
    """The number of an API that is given by its number or name; raises ValueError for an unknown name."""
    if isinstance(api, int):
        return api
    if api not in _keys():
        raise ValueError(f"no API is named {api!r}: expected one of {', '.join(_keys())}")
    return _keys()[api]


@cache
def _apis() -> tuple[Api, ...]:
    return tuple(Api(*one) for one in _core.apis())


@cache
def _names() -> dict[int, str]:
    return {api.key: api.name for api in _apis()}


@cache
def _keys() -> dict[str, int]:
    return {api.name: api.key for api in _apis()}
