"""The schema reference of a key or value: used by `magicbyte.schema.framing`."""

from collections.abc import Sequence

from typing_extensions import Buffer

def parse_schema_framing(
    value: Buffer, header: tuple[Buffer, Buffer] | None = None, *, framing: str = "auto"
) -> tuple[int | bytes, str, int, bool] | None:
    """The schema that a value, or a header of its record, names; None if the value is not framed.

    Returns an id, a UUID of 16 bytes, or a fingerprint of 8 bytes with the most significant one first; the
    framing; the position at which the payload begins; and whether it is compressed by zlib. `header` is the
    key and the content of the header with the schema. Raises InvalidRecordError if its content is invalid,
    ValueError for another framing.
    """

def schema_header_names(*, is_key: bool = False, framing: str = "auto") -> list[str]:
    """The headers that may name the schema of a key or value; the first one that a record has is decisive.

    Raises ValueError for another framing.
    """

def split_window(key: Buffer, windows: str) -> tuple[int, int, int | None] | None:
    """The size of a key without its window, and the window's start and end (ms); None if it is too short.

    `windows` is `time` or `store`, without an end, or `session`. Raises ValueError for others.
    """

def parse_message_indexes(data: Buffer, position: int = 0) -> tuple[list[int], int]:
    """The message indexes of a Protobuf payload at `position`, and the position after them.

    Raises InvalidRecordError, with the position of the number that is invalid.
    """

def write_schema_framing(schema: int | bytes, message_indexes: Sequence[int], *, id_bytes: int = 4) -> bytes:
    """The bytes before a payload, or in a header: an id or a GUID of 16 bytes, then the message indexes.

    Raises Error for an id that does not fit, a fingerprint or a negative index, ValueError for bytes of
    another size.
    """
