"""Avro schemas as data: the part of the specification that compatibility depends on."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from magicbyte import bounded_json
from magicbyte.schema.invalid_schema import InvalidSchemaError

__all__ = ["AvroField", "AvroSchema", "avro_document", "parse_avro"]

_PRIMITIVES = {"null", "boolean", "int", "long", "float", "double", "bytes", "string"}
_NAMED = {"record", "error", "enum", "fixed"}
_MAX_DEPTH = 150
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SHOWN = 100
# Groups are kept: text in quotes, which may have what would begin a comment, and a comment without an end.
# Both also match without an end, so that nothing is looked at twice.
_TEXT_OR_COMMENT = re.compile(r'("[^"\\]*+(?:\\.[^"\\]*+)*+"?)|//[^\n]*+|/\*.*?\*/|(/\*.*)', re.DOTALL)


NO_DEFAULT = object()
"""Stands for the default of a field that has none: null is one."""


@dataclass(eq=False, slots=True)
class AvroField:
    """A field of a record."""

    name: str
    schema: AvroSchema
    default: Any
    """The default as JSON, or `NO_DEFAULT`."""
    aliases: tuple[str, ...]

    @property
    def has_default(self) -> bool:
        """True if the schema gives a default, whatever it is."""
        return self.default is not NO_DEFAULT


@dataclass(eq=False, slots=True)
class AvroSchema:
    """A schema; only the attributes of its type are set."""

    type: str
    """A primitive type, `array`, `map`, `union`, `record`, `enum` or `fixed`."""
    name: str = ""
    """The full name, with the namespace."""
    aliases: frozenset[str] = frozenset()
    fields: list[AvroField] = field(default_factory=list)
    field_named: dict[str, AvroField] = field(default_factory=dict)
    symbols: tuple[str, ...] = ()
    default: str | None = None
    """The default symbol of an enum."""
    size: int = 0
    item: AvroSchema | None = None
    """The schema of the items of an array or the values of a map."""
    branches: tuple[AvroSchema, ...] = ()

    @property
    def shown(self) -> str:
        """The type for a message."""
        return f"{self.type} {self.name}" if self.name else self.type


def parse_avro(text: str, references: Sequence[tuple[str, str]] = ()) -> AvroSchema:
    """Parses a schema.

    Args:
        text: the schema.
        references: the names and texts of all schemas that it uses, each after its own references.

    Raises:
        InvalidSchemaError: if one of them is not an Avro schema, or is nested more deeply than 150 levels.

    """
    names: dict[str, AvroSchema] = {}
    for other in dict.fromkeys(other for _, other in references):
        _Parser(names).parse(avro_document(other), "", "", 0)
    return _Parser(names).parse(avro_document(text), "", "", 0)


def avro_document(text: str) -> Any:
    """The JSON of a schema, which may have comments, as in Java's parser.

    Raises:
        InvalidSchemaError: if it is not JSON.

    """
    try:
        return bounded_json.loads(
            _TEXT_OR_COMMENT.sub(lambda found: found[0] if found.lastindex else " ", text)
        )
    except RecursionError:
        raise InvalidSchemaError("the schema is nested too deeply") from None
    except ValueError as error:
        # A registry also takes the bare name of a primitive type.
        if text.strip() in _PRIMITIVES:
            return text.strip()
        raise InvalidSchemaError(f"the schema is not JSON: {error}") from None


class _Parser:
    def __init__(self, names: dict[str, AvroSchema]) -> None:
        self._names = names
        self._open: set[str] = set()
        """The names of the types that are being parsed."""

    def parse(self, node: Any, namespace: str, place: str, depth: int) -> AvroSchema:
        if depth > _MAX_DEPTH:
            raise InvalidSchemaError(f"the schema is nested more deeply than {_MAX_DEPTH} levels")
        if isinstance(node, str):
            return self._named(node, namespace, place)
        if isinstance(node, list):
            return self._union(node, namespace, place, depth)
        if not isinstance(node, dict):
            raise InvalidSchemaError(f"{place or '/'}: expected a schema")
        kind = node.get("type")
        if isinstance(kind, dict | list):
            # A schema in a schema, without anything else.
            return self.parse(kind, namespace, f"{place}/type", depth + 1)
        if kind in ("array", "map"):
            key = "items" if kind == "array" else "values"
            if key not in node:
                raise InvalidSchemaError(f"{place or '/'}: {kind} has no {key}")
            return AvroSchema(kind, item=self.parse(node[key], namespace, f"{place}/{key}", depth + 1))
        if kind in _NAMED:
            return self._definition(node, str(kind), namespace, place, depth)
        if not isinstance(kind, str):
            raise InvalidSchemaError(f"{place or '/'}: a schema has no type")
        return self._named(kind, namespace, place)

    def _named(self, name: str, namespace: str, place: str) -> AvroSchema:
        if name in _PRIMITIVES:
            return AvroSchema(name)
        found = self._names.get(_full(name, namespace)) or self._names.get(name)
        if found is None:
            raise InvalidSchemaError(f"{place or '/'}: no type has the name {name[:_SHOWN]}")
        return found

    def _union(self, node: list[Any], namespace: str, place: str, depth: int) -> AvroSchema:
        branches = []
        seen = set()
        for number, one in enumerate(node):
            branch = self.parse(one, namespace, f"{place}/{number}", depth + 1)
            if branch.type == "union" or (branch.type, branch.name) in seen:
                what = "a union" if branch.type == "union" else f"{branch.shown} twice"
                raise InvalidSchemaError(f"{place or '/'}: a union has {what} in it")
            seen.add((branch.type, branch.name))
            branches.append(branch)
        return AvroSchema("union", branches=tuple(branches))

    def _definition(
        self, node: dict[str, Any], kind: str, namespace: str, place: str, depth: int
    ) -> AvroSchema:
        given = node.get("namespace")
        name = _name(node, place)
        full = _full(name, given if isinstance(given, str) else namespace)
        earlier = self._names.get(full)
        inner = full.rpartition(".")[0]
        aliases = frozenset(_alias(alias, inner) for alias in _texts(node, "aliases", place))
        schema = AvroSchema("record" if kind == "error" else kind, full, aliases)
        self._names.setdefault(full, schema)
        if full not in self._open:
            self._open.add(full)
            self._define(node, schema, inner, place, depth)
            self._open.remove(full)
            # As in Java, a type may be defined again as it is.
            if earlier is None or _is_same(earlier, schema):
                return earlier or schema
        raise InvalidSchemaError(f"{place or '/'}: the name {full[:_SHOWN]} is defined twice, differently")

    def _define(self, node: dict[str, Any], schema: AvroSchema, inner: str, place: str, depth: int) -> None:
        """Adds what a type with a name is made of."""
        kind, full = schema.type, schema.name
        if kind == "fixed":
            size = node.get("size")
            if type(size) is not int or size < 0:
                raise InvalidSchemaError(f"{place or '/'}: {full[:_SHOWN]}: size: expected a number")
            schema.size = size
        elif kind == "enum":
            schema.symbols = tuple(_texts(node, "symbols", place, required=True))
            default = node.get("default")
            if default is not None and default not in schema.symbols:
                raise InvalidSchemaError(
                    f"{place or '/'}: {full[:_SHOWN]}: the default is none of the symbols"
                )
            schema.default = default
        else:
            self._fields(node, schema, inner, place, depth)

    def _fields(self, node: dict[str, Any], schema: AvroSchema, inner: str, place: str, depth: int) -> None:
        fields = node.get("fields")
        if not isinstance(fields, list):
            raise InvalidSchemaError(f"{place or '/'}: {schema.name[:_SHOWN]}: fields: expected a list")
        for number, one in enumerate(fields):
            where = f"{place}/fields/{number}"
            if not isinstance(one, dict) or "type" not in one:
                raise InvalidSchemaError(f"{where}: expected an object with name and type")
            name = _name(one, where)
            if "." in name or name in schema.field_named:
                raise InvalidSchemaError(
                    f"{where}: {name[:_SHOWN]} is a field already, or no name of a field"
                )
            type_ = self.parse(one["type"], inner, f"{where}/type", depth + 1)
            aliases = tuple(_texts(one, "aliases", where))
            schema.field_named[name] = made = AvroField(name, type_, one.get("default", NO_DEFAULT), aliases)
            schema.fields.append(made)


def _is_same(one: AvroSchema, other: AvroSchema) -> bool:
    """True if two schemas are equal. Types with names inside them are the same objects if they are equal."""
    if one is other:
        return True
    if one.item is not None and other.item is not None and not _is_same(one.item, other.item):
        return False
    fields = [(field.name, field.has_default) for field in one.fields]
    parts, others = ([*it.branches, *(field.schema for field in it.fields)] for it in (one, other))
    return (
        (one.type, one.name, one.symbols, one.size) == (other.type, other.name, other.symbols, other.size)
        and fields == [(field.name, field.has_default) for field in other.fields]
        and len(parts) == len(others)
        and all(map(_is_same, parts, others))
    )


def _name(node: dict[str, Any], place: str) -> str:
    name = node.get("name")
    if not isinstance(name, str) or not all(_NAME.fullmatch(part) for part in name.lstrip(".").split(".")):
        raise InvalidSchemaError(f"{place or '/'}: expected a name, not {json.dumps(name)[:_SHOWN]}")
    return name


def _texts(node: dict[str, Any], key: str, place: str, *, required: bool = False) -> list[str]:
    value = node.get(key)
    if value is None and not required:
        return []
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise InvalidSchemaError(f"{place or '/'}: {key}: expected a list of texts")
    return value


def _full(name: str, namespace: str) -> str:
    if "." in name:
        return name.lstrip(".")
    return f"{namespace}.{name}" if namespace else name


def _alias(alias: str, namespace: str) -> str:
    """The full name that an alias stands for. To Java, one that begins with a dot is none in a namespace."""
    is_none = alias.startswith(".") and (namespace or "." in alias[1:])
    return alias if is_none else _full(alias, namespace)
