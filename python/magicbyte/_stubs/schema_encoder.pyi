"""Typed columns as keys and values that name their schema: used by `magicbyte.schema.encoding`."""

from collections.abc import Sequence
from typing import final

from magicbyte._stubs.arrow import ArrowBatch, ArrowSchema

@final
class SchemaEncoder:
    """Encodes the column `value` of Arrow batches by one schema. Threads may share it.

    Args:
        format: `avro`, `protobuf` or `json`.
        schema: the text of the schema.
        references: the names and texts of the schemas that it uses, each after those that it uses itself.
        message: of Protobuf, the full name of the message: by default the first one.

    Raises ValueError if the schema cannot be used.
    """

    def __new__(
        cls,
        format: str,
        schema: str,
        references: Sequence[tuple[str, str]] | None = None,
        *,
        message: str | None = None,
    ) -> SchemaEncoder: ...
    @property
    def schema(self) -> ArrowSchema:
        """The type that the column has, as the only field `value`."""
    @property
    def message_indexes(self) -> list[int]:
        """The path of the Protobuf message in its file; empty for other formats."""
    def encode(self, batch: object, schema_id: int | bytes | None = None, *, id_bytes: int = 4) -> ArrowBatch:
        """Encodes a batch to one with the binary column `value`. Works without the GIL.

        With `schema_id`, an id or a GUID of 16 bytes, each value has the framing before its payload. Null
        stays null.

        Raises ValueError, which names row and field, if a value cannot be encoded, the column has another
        type or the values are larger than 2 GiB; Error for an id that does not fit.
        """
