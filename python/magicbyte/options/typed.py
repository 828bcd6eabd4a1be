"""Keys and values that are decoded by schemas."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from magicbyte.enums import Framing, JsonIntegers, SchemaFormat, Validation, Windows
from magicbyte.options.declare import Options, argument, option
from magicbyte.options.values import CONTENT, Kind, Repeated, words

if TYPE_CHECKING:
    from magicbyte.schema.http_client import HttpSettings

__all__ = ["UNTYPED", "Column", "Registry", "SchemaSource", "TypedColumns"]

Column: TypeAlias = Literal["key", "value"]
"""A column that schemas can decode."""


@dataclass(frozen=True, kw_only=True)
class SchemaSource(Options):
    """The source of schemas."""

    schema_registry: str | None = option(
        "The source of the schemas: the directory of the topic _schemas or one above it, a directory of"
        " files, or the address of a live registry.",
        default=None,
        kind=Kind("SRC"),
    )
    http: HttpSettings | None = argument(
        "Settings for requests to a live registry.", default=None, flag="--registry-config"
    )


@dataclass(frozen=True, kw_only=True)
class Registry(SchemaSource):
    """The source of schemas, and their use."""

    reader_schema: str | None = option(
        "The schema of values. Without a registry it is that of all values. With one, a typed column gets its"
        " types instead of those of the topic's latest schema, and text is made by it of values that name no"
        " schema, if the registry has none for them.",
        default=None,
        kind=CONTENT,
    )
    key_reader_schema: str | None = option(
        "The schema of keys, with the same uses.", default=None, kind=CONTENT
    )
    messages: tuple[str, ...] = option(
        "The Protobuf message that values are, with its package; by default the first one of the schema. A"
        " typed column may have several, each as a field.",
        default=(),
        flag="--message",
        kind=Repeated("NAME"),
    )
    key_framing: Framing = option(
        "How keys name their schemas: by default as their bytes and headers say; apicurio has ids of 8 bytes,"
        " none are keys of one schema.",
        default="auto",
        kind=words(Framing),
    )
    value_framing: Framing = option(
        "How values name their schemas, with the same words.", default="auto", kind=words(Framing)
    )
    key_windows: Windows = option(
        "The windows of Kafka Streams and ksqlDB after keys. time, session and store add their times, as"
        " columns or as fields of printed records.",
        default="auto",
        kind=words(Windows),
    )
    validate: bool = option(
        "Treat a JSON key or value that its own JSON Schema does not allow as invalid.", default=False
    )
    validate_formats: bool = option(
        "The same also where a string is not of the format that its schema names, such as date-time.",
        default=False,
    )

    @property
    def validation(self) -> Validation:
        """The rules by which JSON is validated."""
        return "formats" if self.validate_formats else self.validate

    def reader_of(self, column: Column) -> str | None:
        """The text of the given schema of a column."""
        return self.key_reader_schema if column == "key" else self.reader_schema

    def framing_of(self, column: Column) -> Framing:
        """The framing of a column."""
        return self.key_framing if column == "key" else self.value_framing

    def messages_of(self, column: Column) -> tuple[str, ...]:
        """The Protobuf messages of a column; none for the first one of its schema."""
        return () if column == "key" else self.messages

    def has_schemas(self, column: Column) -> bool:
        """True if there is a source of schemas for a column."""
        return self.schema_registry is not None or self.reader_of(column) is not None


@dataclass(frozen=True, kw_only=True)
class TypedColumns(Registry):
    """The choice of keys or values that become typed columns, and of their schemas."""

    key_format: SchemaFormat | None = option(
        "Decode the column key by the schemas that its bytes or headers name.",
        default=None,
        kind=words(SchemaFormat),
    )
    value_format: SchemaFormat | None = option(
        "Decode the column value by the schemas that its bytes or headers name.",
        default=None,
        kind=words(SchemaFormat),
    )
    json_integers: JsonIntegers = option(
        "The type of JSON integers: by default 64 bits, with null and an error for a longer one.",
        default="int64",
        kind=words(JsonIntegers),
    )

    @property
    def formats(self) -> Mapping[Column, SchemaFormat]:
        """The formats of the columns that are decoded."""
        given: dict[Column, SchemaFormat | None] = {"key": self.key_format, "value": self.value_format}
        return {column: format for column, format in given.items() if format is not None}

    def __bool__(self) -> bool:
        return bool(self.formats)


UNTYPED = TypedColumns()
