"""The schema reference of a key or value: used by `magicbyte.schema.framing`."""

from collections.abc import Sequence

from typing_extensions import Buffer

def parse_schema_framing(
    value: Buffer, header: Buffer | None = None, *, id_bytes: int = 4
) -> tuple[int | None, bytes | None, int] | None:
    """The id or the GUID of a value, or of its schema header, and how many bytes of that it takes.

    None if there is no header and the value is not framed. Raises InvalidRecordError if the header is
    invalid, ValueError if `id_bytes` is neither 4 nor 8.
    """

def parse_message_indexes(data: Buffer, position: int = 0) -> tuple[list[int], int]:
    """The message indexes of a Protobuf payload at `position`, and the position after them.

    Raises InvalidRecordError, with the position of the number that is invalid.
    """

def write_schema_framing(schema: int | bytes, message_indexes: Sequence[int], *, id_bytes: int = 4) -> bytes:
    """The bytes before a payload, or in a header: an id or a GUID of 16 bytes, then the message indexes.

    Raises Error for an id that does not fit or a negative index, ValueError for a GUID of another size.
    """
