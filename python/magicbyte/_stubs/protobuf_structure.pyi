"""The declarations of a Protobuf schema: used by `magicbyte.schema.compatibility.protobuf_schema`."""

from collections.abc import Sequence

def protobuf_structure(schema: str, references: Sequence[tuple[str, str]] | None = None) -> str:
    """The messages of a schema and of the files that it imports, as JSON text.

    `package`, `messages` (the full names of the outermost messages) and `types`: for each message by full
    name its `package`, `local` (true if it is not imported), the `messages` in it and its `fields`.

    Args:
        schema: a `.proto`, or an encoded file descriptor in base64.
        references: the files that it imports, directly or not: their names and texts. Those of
            Google and of registries' clients are known, and others that are missing are empty.

    Raises ValueError if the schema does not compile.
    """
