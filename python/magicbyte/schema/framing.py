r"""The reference from a key or value to the schema that it was written with.

Serializers put the name of the schema before the payload, or into a header of the record, and then the
payload is the whole value. docs/schemas.md has a table of these framings. With Protobuf, the message in its
file follows: Confluent's indexes.

>>> from magicbyte.schema import framing
>>> framed = framing.parse(b"\x00\x00\x00\x00\x07payload")
>>> framed.id, framed.payload
(7, b'payload')
>>> framing.parse(b"\xc3\x01\x8f\x5c\x39\x3f\x1a\xd5\x75\x72\x0a").fingerprint.hex()
'7275d51a3f395c8f'
>>> framing.parse(b"{}") is None
True
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, cast
from uuid import UUID

from magicbyte import _core
from magicbyte.enums import Framing

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = [
    "KEY_SCHEMA_ID",
    "VALUE_SCHEMA_ID",
    "Framed",
    "Window",
    "header_names",
    "parse",
    "split_window",
    "write",
]

header_names = _core.schema_header_names

(KEY_SCHEMA_ID,) = header_names(is_key=True, framing="confluent")
"""Confluent's header with the schema of a record's key."""
(VALUE_SCHEMA_ID,) = header_names(framing="confluent")
"""Confluent's header with the schema of a record's value."""

_ID_BYTES = 5
_GUID_BYTES = 17


@dataclass(frozen=True, slots=True)
class Framed:
    """A key or value with its schema: one of `id`, `guid` and `fingerprint` is set."""

    id: int | None
    """A registry's number, unique in a context of the registry."""
    guid: str | None
    """The text of a UUID: a hash of the schema, the same in every registry, or AWS Glue's schema version."""
    payload: bytes
    """The bytes after the name; with a Protobuf schema, they begin with its message."""
    header: bytes | None = None
    """The bytes after the name in Confluent's header, if the name was there."""
    fingerprint: bytes | None = None
    """The CRC-64-AVRO of the schema's canonical form, 8 bytes, the most significant one first."""
    framing: Framing = "confluent"
    is_deflated: bool = False
    """True if the payload is compressed by zlib (AWS Glue)."""

    def message_indexes(self) -> tuple[list[int], bytes]:
        """For a Protobuf schema: an index for each level of nesting, and the payload without them.

        Raises:
            InvalidRecordError: if they are invalid; its position counts from the end of the id.

        """
        if self.header is not None:
            return _core.parse_message_indexes(self.header)[0], self.payload
        indexes, end = _core.parse_message_indexes(self.payload)
        return indexes, self.payload[end:]


@dataclass(frozen=True, slots=True)
class Window:
    """The window that Kafka Streams or ksqlDB put after a key, in milliseconds since 1970."""

    key: bytes
    """The key without it."""
    start: int
    end: int | None
    """The end of a session; None for a time window, whose key does not have it."""


def parse(
    value: Buffer | None,
    headers: Iterable[tuple[str, Buffer | None]] = (),
    *,
    is_key: bool = False,
    framing: Framing = "auto",
) -> Framed | None:
    """Takes a key or value apart; None if it is null or not framed.

    Args:
        value: the key or value: `bytes` or any C-contiguous buffer.
        headers: the record's headers; of several with one name, the last one counts. One with a schema is
            decisive: Confluent's before Apicurio's.
        is_key: True for a key, whose header has another name.
        framing: the framing, if it is known. Ids in values have 4 bytes for `auto`, and 8 for `apicurio`.

    Raises:
        InvalidRecordError: if there is a schema header with other content, or Apicurio's headers name no id.

    """
    if value is None or framing == "none":
        return None
    found = {key: b"" if content is None else content for key, content in headers}
    names = header_names(is_key=is_key, framing=framing)
    header = next(((name.encode(), found[name]) for name in names if name in found), None)
    parts = _core.parse_schema_framing(value, header, framing=framing)
    if parts is None:
        return None
    name, found_framing, start, is_deflated = parts
    guid = str(UUID(bytes=name)) if isinstance(name, bytes) and len(name) == 16 else None
    rest = None
    if header is not None and found_framing == "confluent":
        rest = _rest(header[1], _ID_BYTES if guid is None else _GUID_BYTES)
    return Framed(
        name if isinstance(name, int) else None,
        guid,
        _rest(value, start),
        rest,
        name if isinstance(name, bytes) and guid is None else None,
        cast("Framing", found_framing),
        is_deflated,
    )


def split_window(key: Buffer, windows: Literal["time", "session", "store"]) -> Window | None:
    """Takes the window off a key; None if the key is too short to have one."""
    parts = _core.split_window(key, windows)
    return None if parts is None else Window(_rest(key, 0)[: parts[0]], parts[1], parts[2])


def _rest(data: Buffer, start: int) -> bytes:
    """The bytes from `start` on."""
    # Like the core, and unlike `bytes` and `memoryview`, `join` takes buffers of items of any type.
    return b"".join((data,))[start:]


def write(schema: int | str, message_indexes: Sequence[int] = (), *, id_bytes: Literal[4, 8] = 4) -> bytes:
    """The bytes before a payload, or in a header.

    Args:
        schema: an id, or a GUID as the text of a UUID.
        message_indexes: of a Protobuf schema; empty for other schemas.
        id_bytes: the size of an id in bytes.

    Raises:
        ValueError: if the GUID is not the text of a UUID.
        Error: if the id does not fit, or an index is negative.

    """
    named = UUID(schema).bytes if isinstance(schema, str) else schema
    return _core.write_schema_framing(named, message_indexes, id_bytes=id_bytes)
