//! The docstrings of `_stubs/compat_functions.pyi`. Written by `make docstrings`.

macro_rules! compat_functions {
    (counts) => {
        r"The batches read, records read, batches built and records built by a drop-in in this process.

Raises ValueError for a `client` other than `aiokafka` and `kafka_python`."
    };
    (aiokafka_crc32c) => {
        r"CRC-32C (Castagnoli) of `data`, computed in hardware."
    };
    (kafka_python_crc32c) => {
        r"CRC-32C (Castagnoli) of `memview`, computed in hardware."
    };
    (aiokafka_decode_varint) => {
        r"The zigzag varint (64-bit) at `pos`: its value and the position after it.

Raises ValueError if it is longer than 10 bytes, IndexError if the buffer ends inside it."
    };
    (kafka_python_decode_varint) => {
        r"Like `aiokafka_decode_varint`, except for the text of the error."
    };
    (aiokafka_encode_varint) => {
        r"Calls `write` with each byte of the zigzag varint of a 64-bit integer; returns the number of bytes."
    };
    (kafka_python_encode_varint) => {
        r"Like `aiokafka_encode_varint`, but for integers only."
    };
    (aiokafka_size_of_varint) => {
        r"Size of the zigzag varint of a 64-bit integer: 1 to 10 bytes."
    };
    (kafka_python_size_of_varint) => {
        r"Like `aiokafka_size_of_varint`, but for integers only."
    };
    (compress) => {
        r"Compresses a payload as Kafka does in a batch of this `magic`; `magicbyte._core.decompress` reads it.

The level is as in `RecordsBuilder`, None for Kafka's default. Raises UnsupportedCompressionError for an
invalid level, for zstd below magic 2, and for a codec that Kafka does not know."
    };
    (compress_snappy) => {
        r"Compresses with snappy, in xerial chunks of this many bytes before compression or as one raw block.

Raises ValueError for a chunk size outside 1 to 512 MiB."
    };
}
pub(crate) use compat_functions;
