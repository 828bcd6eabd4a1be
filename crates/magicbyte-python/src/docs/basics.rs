//! The docstrings of `_stubs/basics.pyi`. Written by `make docstrings`.

macro_rules! basics {
    (InternalError) => {
        r"A bug in magicbyte: its Rust code panicked. Please report it with its message.

The objects involved remain usable, except that a stream of Arrow batches has ended. Not a
`magicbyte.Error`, as it implies nothing about the bytes that were read."
    };
    (crc32c) => {
        r"CRC-32C (Castagnoli) of `data`, computed in hardware, continuing the checksum `value`."
    };
    (encode_varint) => {
        r"The zigzag varint of a 64-bit integer: 1 to 10 bytes. Raises OverflowError beyond 64 bits."
    };
    (decode_varint) => {
        r"The zigzag varint (64-bit) at `position`: its value and the position after it.

Raises InvalidRecordError if the data ends inside it or it is longer than 10 bytes."
    };
    (decompress) => {
        r"Decompresses a batch's payload with the codec of this number, as Kafka does for this `magic`."
    };
}
pub(crate) use basics;
