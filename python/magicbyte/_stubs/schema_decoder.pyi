"""Keys and values that name their schemas, as typed columns: used by `magicbyte.schema.decoding`."""

from collections.abc import Sequence
from typing import final

from magicbyte._stubs.arrow import ArrowBatch, ArrowSchema

@final
class SchemaDecoder:
    """Decodes the column `value` (or `key`) of Arrow batches, whatever schema each row was written with.

    The caller decodes, adds the schemas of unknown ids, and decodes again. Threads may share it.

    Args:
        format: `avro`, `protobuf` or `json`.
        reader_schema: the text of a schema, whose types the column gets; None for JSON text by each row's
            own schema.
        references: the schemas it uses, as name and text, each after those that it uses itself.
        messages: of Protobuf, the full names of the messages that the column has: by default the first one
            of the schema; of several, each is a field of the struct.
        is_key: decode the column `key`.
        framing: how rows name their schemas: `auto`, `confluent`, `apicurio` (ids of 8 bytes), `glue`,
            `single-object` or `none`.
        windows: the windows after keys: `none`, `time`, `session`, `store`; `auto` for those of rows that
            cannot be decoded otherwise.
        json_rules: of JSON, whether a row that its own schema does not allow is an error, whether the keyword
            `format` counts there, and the type of columns of integers: `int64`, `decimal` (38 digits) or
            `text`. A row without a schema is validated by the reader's. Time and memory are bounded by its
            bytes and the schema, whatever they are.

    Raises ValueError if the schema cannot be used, for another framing, or if rows of another format are to
    be validated.
    """

    def __new__(
        cls,
        format: str,
        reader_schema: str | None,
        references: Sequence[tuple[str, str]] | None = None,
        *,
        messages: Sequence[str] | None = None,
        is_key: bool = False,
        framing: str = "auto",
        windows: str = "none",
        json_rules: tuple[bool, bool, str] = ...,
    ) -> SchemaDecoder: ...
    @property
    def schema(self) -> ArrowSchema:
        """The columns that `decode` returns: `value`, `_schema_id`, `_error`, `invalidValue`.

        With `is_key`: `key`, `_key_schema_id`, `_key_error`, `invalidKey`. With windows also their start and
        for sessions their end: `_key_window_start`, `_key_window_end`.
        """
    def new_ids(self, batch: object) -> list[int | bytes]:
        """The ids, UUIDs (16 bytes) and fingerprints (8 bytes) in a batch that have no schema yet.

        They are in order of their first rows.

        Raises Error if the batch does not have the column, or it is neither binary nor text.
        """
    def add_writer(
        self, schema_id: int | bytes, schema: str, references: Sequence[tuple[str, str]] | None = None
    ) -> None:
        """Adds the schema with this id or GUID; `references` are as above.

        If it cannot be used or read as the reader's schema, the reason becomes the error of its rows.
        """
    def give(
        self,
        schema: str,
        references: Sequence[tuple[str, str]] | None = None,
        *,
        message: str | None = None,
        is_sole: bool = False,
        no_ids: bool = False,
    ) -> None:
        """Gives the schema of rows that name none.

        It is also that of rows framed by AWS Glue or as single objects, if their schema was refused, and with
        `is_sole` of all rows, whatever they name. With `no_ids`, bare Avro may also begin like a framed row
        whose schema is `absent`: the row stays absent if this schema does not read it. `message` is the
        Protobuf message, by default the first one.
        """
    def refuse(self, schema_id: int | bytes, reason: str) -> None:
        """Makes this the error of all rows with the id or GUID."""
    def absent(self, schema_id: int | bytes, reason: str) -> None:
        """The same for a schema that the registry does not have, and may have later."""
    def messages(self, batch: object) -> list[str]:
        """The Protobuf messages of a batch's rows, by full name, in order of their first rows.

        Rows whose schema was not added are left out. Raises Error as `new_ids`.
        """
    def decode(self, batch: object) -> tuple[ArrowBatch, int, list[int]] | list[int | bytes]:
        """Decodes the rows of a batch: the columns are those of `schema`. Works without the GIL.

        Once the columns have 64 MiB, the rows that follow are left out: slice the batch, and decode again.
        A row whose columns would take more than 1 MiB and 512 times its bytes, or than 64 MiB and 16 times
        its bytes, cannot be decoded.

        If rows name schemas that were neither added nor refused, it returns their ids and GUIDs instead, as
        `new_ids`, before anything is decoded.

        Also returns the number of these rows that name no schema. JSON is still decoded, with the reader's
        schema, and so is a row whose schema is given; in other formats each other row is an error. Last come
        the rows whose schema is `absent`.

        A row that cannot be decoded is null, says why in `_error`, and has its bytes in `invalidValue`;
        other rows are not affected. `_schema_id` is null for a row without id or with a GUID. If the batch
        has a column `headers` (a list of key and value), a schema header counts.

        Raises Error as `new_ids`, ValueError if the column would be larger than Arrow's 2 GiB.
        """
