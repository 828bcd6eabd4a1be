"""Keys and values that are decoded by schemas."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from magicbyte.enums import Framing, JsonIntegers, SchemaFormat, Validation, Windows
from magicbyte.options.declare import Options, argument, option
from magicbyte.options.values import Kind, Repeated, words

if TYPE_CHECKING:
    from magicbyte.schema.http_client import HttpSettings

__all__ = ["UNTYPED", "Registry", "TypedColumns"]


@dataclass(frozen=True, kw_only=True)
class Registry(Options):
    """The source of schemas, and their use."""

    schema_registry: str | None = option(
        "The source of the schemas: the directory of the topic _schemas or one above it, a directory of"
        " files, or the address of a live registry.",
        default=None,
        kind=Kind("SRC"),
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
        "The windows of Kafka Streams and ksqlDB after keys. time and session add their times as columns.",
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
        """What JSON is validated by."""
        return "formats" if self.validate_formats else self.validate


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
    reader_schema: str | None = argument(
        "The text of the schema whose types values get, instead of the latest schema of the topic. Without a"
        " schema_registry, all values are of this schema.",
        default=None,
    )
    messages: tuple[str, ...] = option(
        "The Protobuf message that values are, with its package; by default the first one of the schema. Of"
        " several, each is a field.",
        default=(),
        flag="--message",
        kind=Repeated("NAME"),
    )
    json_integers: JsonIntegers = option(
        "The type of JSON integers: by default 64 bits, with null and an error for a longer one.",
        default="int64",
        kind=words(JsonIntegers),
    )
    http: HttpSettings | None = argument("Settings for requests to a live registry.", default=None)

    def __bool__(self) -> bool:
        return self.key_format is not None or self.value_format is not None


UNTYPED = TypedColumns()
