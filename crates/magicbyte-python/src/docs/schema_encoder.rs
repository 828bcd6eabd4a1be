//! The docstrings of `_stubs/schema_encoder.pyi`. Written by `make docstrings`.

macro_rules! schema_encoder {
    (SchemaEncoder) => {
        r"Encodes the column `value` of Arrow batches by one schema. Threads may share it.

Args:
    format: `avro`, `protobuf` or `json`.
    schema: the text of the schema.
    references: the names and texts of the schemas that it uses, each after those that it uses itself.
    message: of Protobuf, the full name of the message: by default the first one.

Raises ValueError if the schema cannot be used."
    };
    (SchemaEncoder.schema) => {
        r"The type that the column has, as the only field `value`."
    };
    (SchemaEncoder.message_indexes) => {
        r"The path of the Protobuf message in its file; empty for other formats."
    };
    (SchemaEncoder.encode) => {
        r"Encodes a batch to one with the binary column `value`. Works without the GIL.

With `schema_id`, an id or a GUID of 16 bytes, each value has the framing before its payload. Null
stays null.

Raises ValueError, which names row and field, if a value cannot be encoded, the column has another
type or the values are larger than 2 GiB; Error for an id that does not fit."
    };
}
pub(crate) use schema_encoder;
