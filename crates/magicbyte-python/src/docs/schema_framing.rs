//! The docstrings of `_stubs/schema_framing.pyi`. Written by `make docstrings`.

macro_rules! schema_framing {
    (parse_schema_framing) => {
        r"The id or the GUID of a value, or of its schema header, and how many bytes of that it takes.

None if there is no header and the value is not framed. Raises InvalidRecordError if the header is
invalid, ValueError if `id_bytes` is neither 4 nor 8."
    };
    (parse_message_indexes) => {
        r"The message indexes of a Protobuf payload at `position`, and the position after them.

Raises InvalidRecordError, with the position of the number that is invalid."
    };
    (write_schema_framing) => {
        r"The bytes before a payload, or in a header: an id or a GUID of 16 bytes, then the message indexes.

Raises Error for an id that does not fit or a negative index, ValueError for a GUID of another size."
    };
}
pub(crate) use schema_framing;
