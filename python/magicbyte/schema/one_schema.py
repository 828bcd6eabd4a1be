"""A registry in which every name leads to one schema: to read values as if they had been written with it."""

from __future__ import annotations

from magicbyte.schema.registry import (
    DEFAULT_CONTEXT,
    Schema,
    SchemaNotFoundError,
    StoredRegistry,
    SubjectVersion,
)

__all__ = ["OneSchema"]


class OneSchema(StoredRegistry):
    """One schema by any name; the schemas that it uses are in another registry.

    The id 0 is no name, as in all registries, so that Apicurio's ids of 8 bytes are found.
    """

    def __init__(self, schema: Schema, others: StoredRegistry | None = None) -> None:
        super().__init__()
        self._schema = schema
        self._others = StoredRegistry() if others is None else others

    def by_id(self, schema_id: int, context: str = DEFAULT_CONTEXT) -> Schema:  # noqa: D102 (as in Registry)
        if schema_id == 0:
            raise SchemaNotFoundError("no schema has the id 0")
        return self._schema

    def by_guid(self, guid: str) -> Schema:  # noqa: D102 (as in Registry)
        return self._schema

    def by_fingerprint(self, fingerprint: bytes) -> Schema:  # noqa: D102 (as in Registry)
        return self._schema

    def version(self, subject: str, version: int) -> SubjectVersion:  # noqa: D102 (as in Registry)
        return self._others.version(subject, version)
