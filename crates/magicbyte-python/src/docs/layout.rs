//! The docstrings of `_stubs/layout.pyi`. Written by `make docstrings`.

macro_rules! layout {
    (BatchLayoutCore) => {
        r"Iterates over the fields of one batch of any magic, in the order of their bytes.

A field is (in the decompressed payload, position, bytes, name, record, header, number, computed CRC).
`record` and `header` are indexes, None outside of records and headers; `number` is None for fields that
are not numbers; `name` is Kafka's, or `rest` for the bytes after the last field. Raises Error after the
last field before damage. With `experimental_v3` it takes batches of `magicbyte.magic3`, and no others."
    };
    (BatchLayoutCore.decompressed_size) => {
        r"Size of the decompressed payload; 0 until one of its fields has been returned."
    };
}
pub(crate) use layout;
