"""Compatibility of Avro schemas: the rules of `org.apache.avro.SchemaCompatibility`, as of 1.12."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from magicbyte.schema.compatibility.avro_defaults import Defaults
from magicbyte.schema.compatibility.avro_schema import AvroField, AvroSchema
from magicbyte.schema.compatibility.incompatibility import Incompatibility, Remedies
from magicbyte.schema.invalid_schema import InvalidSchemaError

__all__ = ["REMEDIES", "incompatibilities"]

MAX_DEPTH = 150
"""The maximum depth of a schema, due to Python's stack."""
_MAX_COMPARISONS = 1_000_000
_LISTED = 100

_PROMOTIONS = {
    "long": {"int"},
    "float": {"int", "long"},
    "double": {"int", "long", "float"},
    "bytes": {"string"},
    "string": {"bytes"},
}
"""The other types that a reader's type reads, by the reader's type."""

REMEDIES: Remedies = {
    "NAME_MISMATCH": (
        "keep the name, or give the new schema the old one as an alias",
        "keep the name",
    ),
    "FIXED_SIZE_MISMATCH": (
        "keep the size, or add a field of another name",
        "keep the size, or add a field of another name",
    ),
    "MISSING_ENUM_SYMBOLS": (
        "keep the symbols, or give the enum a default",
        "add no symbols until all readers know them; an enum with a default can have new ones",
    ),
    "READER_FIELD_MISSING_DEFAULT_VALUE": (
        "give the new field a default",
        "keep the field, since older readers have no default for it",
    ),
    "READER_FIELD_MATCHES_SEVERAL": (
        "leave out the alias that is the name of another field",
        "add no field whose name is an older reader's alias",
    ),
    "TYPE_MISMATCH": (
        "keep the type, or choose one that it is promoted to: int, long, float, double in this order",
        "keep the type, or add a field of another name",
    ),
    "MISSING_UNION_BRANCH": (
        "keep the branch in the union",
        "add no branch until all readers know it",
    ),
}


def incompatibilities(reader: AvroSchema, writer: AvroSchema) -> list[Incompatibility]:
    """The first 100 reasons why the reader does not read all data of the writer; empty if it does.

    The verdict, rules and places are those of Avro's Java library. A schema that it fails on has the rule
    `READER_FIELD_MATCHES_SEVERAL`.

    Raises:
        InvalidSchemaError: if the schemas are nested more deeply than 150 levels, or need more than a million
            comparisons.

    """
    return _Comparison().compare(reader, writer, [], "", 0)


@dataclass
class _Comparison:
    """The comparison of two schemas."""

    found: dict[tuple[int, int], list[Incompatibility] | None] = field(default_factory=dict)
    """The pairs compared so far; None during the comparison of a pair, which ends recursion."""
    defaults: Defaults = field(default_factory=lambda: Defaults(strict=False))

    def compare(
        self, reader: AvroSchema, writer: AvroSchema, place: list[str], name: str, depth: int
    ) -> list[Incompatibility]:
        """`place` leads from the root to the schemas, and `name` is the field's name in words."""
        pair = (id(reader), id(writer))
        if pair in self.found:
            # Compatible unless proven otherwise.
            return self.found[pair] or []
        if depth > MAX_DEPTH or len(self.found) > _MAX_COMPARISONS:
            raise InvalidSchemaError("the schemas are too deep or too large to be compared")
        self.found[pair] = None
        differences = self._differences(reader, writer, place, name, depth + 1)
        self.found[pair] = result = list(islice(differences, _LISTED))
        return result

    def _differences(
        self, reader: AvroSchema, writer: AvroSchema, place: list[str], name: str, depth: int
    ) -> Iterator[Incompatibility]:
        if reader.type != writer.type:
            if writer.type == "union":
                for number, branch in enumerate(writer.branches):
                    yield from self.compare(reader, branch, [*place, str(number)], name, depth)
            elif reader.type == "union":
                if not any(not self.compare(branch, writer, [], name, depth) for branch in reader.branches):
                    yield _missing_branch(writer, place, name)
            elif writer.type not in _PROMOTIONS.get(reader.type, ()):
                text = f"the reader's type {reader.shown} does not read {writer.shown}"
                yield _incompatibility("TYPE_MISMATCH", place, name, text)
        elif reader.type == "union":
            for number, branch in enumerate(writer.branches):
                if self.compare(reader, branch, [], name, depth):
                    yield _missing_branch(branch, [*place, str(number)], name)
        elif reader.type in ("array", "map"):
            key = "items" if reader.type == "array" else "values"
            inner = f"{name}[]" if key == "items" else f"{name}{{}}"
            assert reader.item is not None
            assert writer.item is not None
            yield from self.compare(reader.item, writer.item, [*place, key], inner, depth)
        elif reader.type in ("fixed", "enum", "record"):
            # Without the namespace, but aliases with it.
            same = reader.name.rpartition(".")[2] == writer.name.rpartition(".")[2]
            if not same and writer.name not in reader.aliases:
                text = f"the writer's {reader.type} is {writer.name}, the reader's {reader.name}"
                yield _incompatibility("NAME_MISMATCH", [*place, "name"], name, text)
            if reader.type == "fixed" and reader.size != writer.size:
                text = f"the writer's {writer.name} has {writer.size} bytes, the reader's {reader.size}"
                yield _incompatibility("FIXED_SIZE_MISMATCH", [*place, "size"], name, text)
            elif reader.type == "enum":
                yield from _missing_symbols(reader, writer, place, name)
            elif reader.type == "record":
                for number, one in enumerate(reader.fields):
                    inner = f"{name}.{one.name}" if name else one.name
                    yield from self._field(one, reader, writer, [*place, "fields", str(number)], inner, depth)

    def _field(
        self, one: AvroField, reader: AvroSchema, writer: AvroSchema, place: list[str], name: str, depth: int
    ) -> Iterator[Incompatibility]:
        names = [one.name, *one.aliases]
        matches = [other for named in dict.fromkeys(names) if (other := writer.field_named.get(named))]
        if len(matches) > 1:
            text = f"{' and '.join(other.name for other in matches)} are all fields of the writer"
            yield _incompatibility("READER_FIELD_MATCHES_SEVERAL", place, name, text)
        elif matches:
            yield from self.compare(one.schema, matches[0].schema, [*place, "type"], name, depth)
        elif not one.has_default:
            if one.schema.type == "enum" and one.schema.default is not None:
                # So does Java: the default of the enum does not count, and is reported as a type.
                yield from self.compare(one.schema, writer, [*place, "type"], name, depth)
            else:
                text = (
                    f"the reader's {reader.name} has it without a default, and the writer's does not have it"
                )
                yield _incompatibility("READER_FIELD_MISSING_DEFAULT_VALUE", place, name, text)
        elif not self.defaults.has_value(one):
            text = f"the reader's default is no value of the type {one.schema.shown}, and is not read"
            yield _incompatibility("READER_FIELD_MISSING_DEFAULT_VALUE", place, name, text)


def _missing_symbols(
    reader: AvroSchema, writer: AvroSchema, place: list[str], name: str
) -> Iterator[Incompatibility]:
    known = set(reader.symbols)
    missing = [symbol for symbol in writer.symbols if symbol not in known]
    if missing and reader.default not in known:
        listed = ", ".join(missing[:10]) + ("..." if len(missing) > 10 else "")
        text = f"the writer's enum {writer.name} has symbols that the reader's has not: {listed}"
        yield _incompatibility("MISSING_ENUM_SYMBOLS", [*place, "symbols"], name, text)


def _missing_branch(writer: AvroSchema, place: list[str], name: str) -> Incompatibility:
    text = f"no branch of the reader's union reads the writer's {writer.shown}"
    return _incompatibility("MISSING_UNION_BRANCH", place, name, text)


def _incompatibility(rule: str, place: Sequence[str], name: str, text: str) -> Incompatibility:
    return Incompatibility(rule, "/" + "/".join(place), f"{name}: {text}" if name else text)
