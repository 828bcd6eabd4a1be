r"""The reference from a key or value to the schema that it was written with.

Confluent's serializers put 0x00 and an id of 4 bytes, or 0x01 and a GUID of 16 bytes, before the payload; or
both into a header of the record, and then the payload is the whole value. With Protobuf, the indexes of the
message in its file follow.

>>> from magicbyte.schema import framing
>>> framed = framing.parse(b"\x00\x00\x00\x00\x07payload")
>>> framed.id, framed.payload
(7, b'payload')
>>> framing.parse(b"{}") is None
True
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from magicbyte import _core

__all__ = ["KEY_SCHEMA_ID", "VALUE_SCHEMA_ID", "Framed", "parse", "write"]

KEY_SCHEMA_ID = "__key_schema_id"
"""The header with the schema of a record's key."""
VALUE_SCHEMA_ID = "__value_schema_id"
"""The header with the schema of a record's value."""

_SCHEMA_HEADERS = {False: VALUE_SCHEMA_ID, True: KEY_SCHEMA_ID}


@dataclass(frozen=True, slots=True)
class Framed:
    """A key or value with its schema: either `id` or `guid` is set."""

    id: int | None
    """A registry's number, unique in a context of the registry."""
    guid: str | None
    """A hash of the schema as the text of a UUID, the same in every registry."""
    payload: bytes
    """The bytes after the id; with a Protobuf schema, they begin with the message indexes."""
    header: bytes | None = None
    """The bytes after the id in the header, if the id was there."""

    def message_indexes(self) -> tuple[list[int], bytes]:
        """For a Protobuf schema: an index for each level of nesting, and the payload without them.

        Raises:
            InvalidRecordError: if they are invalid; its position counts from the end of the id.

        """
        if self.header is not None:
            return _core.parse_message_indexes(self.header)[0], self.payload
        indexes, end = _core.parse_message_indexes(self.payload)
        return indexes, self.payload[end:]


def parse(
    value: bytes | None,
    headers: Iterable[tuple[str, bytes | None]] = (),
    *,
    is_key: bool = False,
    id_bytes: Literal[4, 8] = 4,
) -> Framed | None:
    """Takes a key or value apart; None if it is null or not framed.

    Args:
        value: the key or value.
        headers: the record's headers; of several schema headers, the last one counts, and it is decisive.
        is_key: True for a key, whose header has another name.
        id_bytes: 8 for what Apicurio's `DefaultIdHandler` wrote, where there are no GUIDs.

    Raises:
        InvalidRecordError: if there is a schema header with other content.

    """
    if value is None:
        return None
    name = _SCHEMA_HEADERS[is_key]
    header = None
    for key, content in headers:
        if key == name:
            header = content
    parts = _core.parse_schema_framing(value, header, id_bytes=id_bytes)
    if parts is None:
        return None
    number, guid, size = parts
    text = None if guid is None else str(UUID(bytes=guid))
    if header is not None:
        return Framed(number, text, value, header[size:])
    return Framed(number, text, value[size:])


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
